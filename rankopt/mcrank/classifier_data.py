"""Classifiers as plain data: which can be, and whether what was read is what the classifier says.

Logistic regression as data: a vector of weights for each class.

Boosted trees of a classifier as data: one table of nodes, descended by compiled code or by NumPy to the same bits.

Node i with feature_i >= 0 is a split: documents with x[feature_i] <= number_i go on to left_i, the others to right_i.
Node i with feature_i = -1 is a leaf, which adds number_i to the raw value of its class. Trees lie one after the other,
children behind their parents; tree t is of class t mod K' and begins at roots_t, K' the number of raw values (one for
two classes). The raw value of a class is its baseline and its leaves, added tree by tree.

From raw values of classes to their probabilities, as scikit-learn's boosting and logistic regression take it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from formulations.compiled import READ_FLOATS, READ_INTS, READ_SHORTS, compiled
from formulations.parallel import share
from formulations.registry import load
from rankopt.data.validation import is_sparse
from rankopt.errors import ModelError
from rankopt.mcrank import CLASSIFIERS, FORMS

CLOSE = 1e-12


def as_data(classifier: Any, rows: Any) -> Any:
    """The record of `FORMS` that gives the probabilities of a fitted classifier, on these rows as it does (1e-12), with
    class 0, 1, ... in its columns; None where there is none."""
    if not np.array_equal(classifier.classes_, np.arange(len(classifier.classes_))):
        return None
    for place in FORMS.values():
        form = load(place).of(classifier)
        if form is not None:
            given, found = classifier.predict_proba(rows), form.probabilities(rows)
            return form if given.shape == found.shape and np.abs(given - found).max() <= CLOSE else None
    return None


def check_form(form: Any, features: int, classes: int) -> None:
    """ModelError unless this is a record of `FORMS` for so many features and classes."""
    if not any(type(form) is load(place) for place in FORMS.values()):
        raise ModelError("grades_ is missing, or no classifier.")
    if (form.n_features, form.n_classes) != (features, classes):
        raise ModelError(
            f"grades_ is a classifier of {form.n_features} features into {form.n_classes} classes, not of {features} "
            f"into {classes}."
        )


def refusal(classifier: Any) -> ModelError:
    """Why a ranker by this classifier cannot be saved."""
    return ModelError(
        f"This McRanker cannot be saved because its classifier, a {type(classifier).__name__}, cannot be told as plain "
        f"arrays; {' and '.join(CLASSIFIERS)} can (trees that split by numbers, one softmax of all classes). Fit one "
        "of these, or keep the ranker by joblib, for readers who trust the file."
    )


Floats = NDArray[np.float64]


def probabilities(raw: Floats) -> Floats:
    """(N, K), K >= 2: softmax of the K columns of `raw`, or of one column z the logistic 1 / (1 + exp(-z)) of class 1
    beside that of class 0. The operations and their order are scikit-learn's, and so are the bits."""
    if raw.shape[1] == 1:
        found = np.empty((raw.shape[0], 2))
        found[:, 1] = expit(raw[:, 0])
        found[:, 0] = 1 - found[:, 1]
        return found
    powers: Floats = np.exp(raw - raw.max(axis=1)[:, None])
    powers /= powers.sum(axis=1)[:, None]
    return powers


LARGEST = 1e300


@dataclass(frozen=True, eq=False)
class GradeWeights:
    """P(y | x) = softmax(W x + b)_y; of two classes, that have one row of W, the logistic of w·x + b.

    weights (K, d), or (1, d) for K = 2. intercepts: (K,) or (1,). ModelError for anything else.
    """

    weights: Floats
    intercepts: Floats

    def __post_init__(self) -> None:
        for name, ndim in (("weights", 2), ("intercepts", 1)):
            array = getattr(self, name)
            if not (isinstance(array, np.ndarray) and array.dtype == np.float64 and array.ndim == ndim):
                raise ModelError(f"{name} of a linear classifier is no array of numbers in {ndim} dimensions.")
            if not (np.abs(array) < LARGEST).all():
                raise ModelError(f"{name} of a linear classifier holds numbers that are not finite.")
        rows = self.weights.shape[0]
        if rows in (0, 2) or self.weights.shape[1] == 0 or self.intercepts.shape != (rows,):
            raise ModelError(f"a linear classifier has {self.intercepts.size} intercepts for {rows} rows of weights.")

    @classmethod
    def of(cls, classifier: Any) -> GradeWeights | None:
        """The weights of a fitted `LogisticRegression`; None of anything else."""
        from sklearn.linear_model import LogisticRegression

        if type(classifier) is not LogisticRegression:
            return None
        weights = np.array(classifier.coef_, dtype=np.float64)
        intercepts = np.zeros(len(weights)) + np.asarray(classifier.intercept_, dtype=np.float64)
        return None if len(weights) == 2 else cls(weights, intercepts)

    @property
    def n_features(self) -> int:
        return int(self.weights.shape[1])

    @property
    def n_classes(self) -> int:
        return max(int(self.weights.shape[0]), 2)

    def probabilities(self, features: Any) -> Floats:
        """(N, K) for features (N, d), dense or CSR."""
        return probabilities(np.asarray(features @ self.weights.T) + self.intercepts)


Shorts = NDArray[np.int32]
Ints = NDArray[np.int64]

PART, BLOCK = 1 << 12, 256
"""Documents that one thread takes at a time, and that NumPy descends at a time."""


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
