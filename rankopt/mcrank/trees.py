"""Boosted trees of a classifier as data: one table of nodes, descended by compiled code or by NumPy to the same bits.

Node i with feature_i >= 0 is a split: documents with x[feature_i] <= number_i go on to left_i, the others to right_i.
Node i with feature_i = -1 is a leaf, which adds number_i to the raw value of its class. Trees lie one after the other,
children behind their parents; tree t is of class t mod K' and begins at roots_t, K' the number of raw values (one for
two classes). The raw value of a class is its baseline and its leaves, added tree by tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import READ_FLOATS, READ_INTS, READ_SHORTS, compiled
from formulations.threads import share
from rankopt.data.values import is_sparse
from rankopt.errors import ModelError
from rankopt.mcrank.links import probabilities

__all__ = ["GradeTrees"]

Floats = NDArray[np.float64]
Shorts = NDArray[np.int32]
Ints = NDArray[np.int64]

PART, BLOCK = 1 << 12, 256
"""Documents that one thread takes at a time, and that NumPy descends at a time."""

LARGEST = 1e300

TABLES = [nb.types.Array(number, 2, "C", readonly=True) for number in (nb.float64, nb.float32)]
RAW = nb.types.Array(nb.float64, 2, "C")


@compiled(
    [
        nb.void(table, READ_SHORTS, READ_FLOATS, READ_SHORTS, READ_SHORTS, READ_INTS, nb.int64, nb.int64, RAW)
        for table in TABLES
    ]
)
def _descend(
    table: Floats,
    feature: Shorts,
    number: Floats,
    left: Shorts,
    right: Shorts,
    roots: Ints,
    low: int,
    high: int,
    raw: Floats,
) -> None:
    """Add the leaves of documents low <= i < high to raw (N, K')."""
    classes = raw.shape[1]
    for i in range(low, high):
        for tree in range(roots.size):
            node = roots[tree]
            while feature[node] >= 0:
                node = left[node] if np.float64(table[i, feature[node]]) <= number[node] else right[node]
            raw[i, tree % classes] += number[node]


@dataclass(frozen=True, eq=False)
class GradeTrees:
    """feature, left, right: (n,) int32. number: (n,). roots: (T,) int64, T a multiple of K'. baseline: (K',).
    n_features: d. ModelError unless these are trees."""

    feature: Shorts
    number: Floats
    left: Shorts
    right: Shorts
    roots: Ints
    baseline: Floats
    n_features: int

    def __post_init__(self) -> None:
        kinds = {
            "feature": np.int32, "number": np.float64, "left": np.int32, "right": np.int32, "roots": np.int64,
            "baseline": np.float64,
        }  # fmt: skip
        for name, kind in kinds.items():
            array = getattr(self, name)
            if not (isinstance(array, np.ndarray) and array.dtype == kind and array.ndim == 1):
                raise ModelError(f"{name} of the trees is no vector of {np.dtype(kind)}.")
        if type(self.n_features) is not int or self.n_features < 1:
            raise ModelError("n_features of the trees is no number of features.")
        self._check_nodes()

    def _check_nodes(self) -> None:
        """Each node but the roots is the child of one split before it, features exist, sums of leaves stay finite."""
        n, width = self.feature.size, self.baseline.size
        if not self.left.size == self.right.size == self.number.size == n or width in (0, 2):
            raise ModelError("the arrays of the trees have different lengths, or their baseline is of no classes.")
        if self.roots.size % width or not self.roots.size or self.roots[0] != 0:
            raise ModelError(f"{self.roots.size} trees are none for each of {width} raw values.")
        split = self.feature >= 0
        if (self.feature < -1).any() or (self.feature >= self.n_features).any():
            raise ModelError("a tree splits by a feature that the model does not have.")
        parents = np.flatnonzero(split)
        children = np.concatenate([self.left[split], self.right[split]])
        others = np.setdiff1d(np.arange(n), self.roots)
        if (np.diff(self.roots) < 1).any() or self.roots[-1] >= n or not np.array_equal(np.sort(children), others):
            raise ModelError("the nodes of the trees are no trees.")
        if (children <= np.concatenate([parents, parents])).any():
            raise ModelError("a child of the trees stands before its parent.")
        if np.isnan(self.number).any() or not np.abs(self.number[~split]).sum() + np.abs(self.baseline).sum() < LARGEST:
            raise ModelError("the trees hold numbers that are not finite.")

    @classmethod
    def of(cls, classifier: Any) -> GradeTrees | None:
        """The trees of a fitted `HistGradientBoostingClassifier` without categories; None of anything else.

        scikit-learn shows its trees in attributes that it calls private: None too where they are not what they were.
        """
        from sklearn.ensemble import HistGradientBoostingClassifier

        if type(classifier) is not HistGradientBoostingClassifier:
            return None
        try:
            tables = [tree.nodes for trees in classifier._predictors for tree in trees]
            sizes = np.array([len(table) for table in tables])
            roots = np.concatenate([[0], np.cumsum(sizes)[:-1]])
            nodes = np.concatenate(tables)
            if nodes["is_categorical"].any():
                return None
            leaf, start = nodes["is_leaf"] != 0, np.repeat(roots, sizes)
            return cls(
                np.where(leaf, -1, nodes["feature_idx"]).astype(np.int32),
                np.where(leaf, nodes["value"], nodes["num_threshold"]).astype(np.float64),
                np.where(leaf, 0, nodes["left"] + start).astype(np.int32),
                np.where(leaf, 0, nodes["right"] + start).astype(np.int32),
                roots.astype(np.int64),
                np.array(classifier._baseline_prediction, dtype=np.float64).ravel(),
                int(classifier.n_features_in_),
            )
        except (AttributeError, KeyError, TypeError, ValueError):  # of another scikit-learn: a ModelError too
            return None

    @property
    def n_classes(self) -> int:
        return max(self.baseline.size, 2)

    def probabilities(self, features: Any) -> Floats:
        """(N, K) for features (N, d), dense or CSR, float64 or float32."""
        return probabilities(self.raw(features))

    def raw(self, features: Any) -> Floats:
        """(N, K') the raw values: baselines and leaves, added tree by tree."""
        raw = np.tile(self.baseline, (features.shape[0], 1))
        parts = -(-len(raw) // PART)

        def part(number: int) -> None:
            rows = slice(number * PART, min((number + 1) * PART, len(raw)))
            table = features[rows]
            self._add(np.ascontiguousarray(table.toarray() if is_sparse(table) else table), raw[rows])

        share(parts, part)
        return raw

    def _add(self, table: Floats, raw: Floats) -> None:
        if _descend.pays(200 * len(raw) * self.roots.size):
            table.setflags(write=False)
            _descend(table, self.feature, self.number, self.left, self.right, self.roots, 0, len(raw), raw)
            return
        for low in range(0, len(raw), BLOCK):
            self._add_in_numpy(table[low : low + BLOCK], raw[low : low + BLOCK])

    def _add_in_numpy(self, table: Floats, raw: Floats) -> None:
        """The same, all trees of some documents at once, level by level."""
        rows, node = np.arange(len(raw))[:, None], np.tile(self.roots, (len(raw), 1))
        feature = self.feature[node]
        while (feature >= 0).any():
            further = table[rows, feature] <= self.number[node]
            node = np.where(feature < 0, node, np.where(further, self.left[node], self.right[node]))
            feature = self.feature[node]
        leaves = self.number[node].reshape(len(raw), -1, raw.shape[1])
        for round in range(leaves.shape[1]):
            raw += leaves[:, round]
