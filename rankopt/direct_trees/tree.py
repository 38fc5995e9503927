"""A grown tree: its splits, and on which leaf every training document lands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from formulations.display import CompactReprMixin
from rankopt.mcrank.classifier_data import GradeTrees

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tree(CompactReprMixin):
    """Node i is a split, feature_i >= 0: documents with x[feature_i] <= threshold_i go on to left_i, the others to
    right_i, both > i; or a leaf, feature_i = -1, worth values_i. landed: (N,) the leaf of every training document.

    Its column h = values[landed] has as many slopes as leaves.
    """

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    values: Floats
    landed: NDArray[np.unsignedinteger]

    @classmethod
    def fitted(
        cls, feature: Ints, threshold: Floats, left: Ints, right: Ints, features: Floats, target: Floats, shares: Floats
    ) -> Tree:
        """Of splits: a leaf is worth the mean of the target (N,) over its documents, with weights `shares`; behind the
        N documents that are learned from may stand others, which only land."""
        landed = landing(feature, threshold, left, right, features)
        own = landed[: target.size]
        total = np.bincount(own, shares * target, feature.size)
        weight = np.bincount(own, shares, feature.size)
        values = np.divide(total, weight, out=np.zeros(feature.size), where=weight > 0)
        return cls(feature, threshold, left, right, values, landed)

    @property
    def leaves(self) -> int:
        return int(np.count_nonzero(self.feature < 0))

    @property
    def column(self) -> Floats:
        """(N,) what the tree says of every training document."""
        return np.asarray(self.values[self.landed])

    def added(self, scores: Floats, weight: float) -> Floats:
        """scores + weight · column, to the bits of the saved trees: a leaf is multiplied once."""
        return np.asarray(scores + (weight * self.values)[self.landed])


class Grower(Protocol):
    """Grows trees on training documents that it was made of."""

    def grow(self, target: Floats, scores: Floats) -> Tree | None:
        """The next tree, for the residuals (N,) of a regression, or for the scores (N,) so far; None where nothing can
        be split."""


def landing(feature: Ints, threshold: Floats, left: Ints, right: Ints, features: Floats) -> NDArray[np.unsignedinteger]:
    """(N,) the leaf of every document, in the smallest integers that hold it."""
    kind = np.min_scalar_type(feature.size)
    node = np.zeros(len(features), dtype=np.int64)
    rows = np.flatnonzero(feature[node] >= 0)
    while rows.size:
        here = node[rows]
        goes_left = features[rows, feature[here]] <= threshold[here]
        node[rows] = np.where(goes_left, left[here], right[here])
        rows = rows[feature[node[rows]] >= 0]
    return node.astype(kind)


def joined(trees: list[Tree], weights: Floats, features: int) -> GradeTrees:
    """Trees times their weights as one table of nodes; none are one leaf of 0."""
    kept = [(tree, weight) for tree, weight in zip(trees, weights, strict=True) if weight != 0]
    sizes = [tree.feature.size for tree, _ in kept] or [1]
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    if not kept:
        feature, nothing = np.full(1, -1, np.int32), np.zeros(1, np.int32)
        return GradeTrees(feature, np.zeros(1), nothing, nothing, roots, np.zeros(1), features)
    parts = [
        (
            tree.feature,
            np.where(tree.feature >= 0, tree.threshold, weight * tree.values),
            np.where(tree.feature >= 0, tree.left + root, 0),
            np.where(tree.feature >= 0, tree.right + root, 0),
        )
        for (tree, weight), root in zip(kept, roots.tolist(), strict=True)
    ]
    feature, number, left, right = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return GradeTrees(
        feature.astype(np.int32), number, left.astype(np.int32), right.astype(np.int32), roots, np.zeros(1), features
    )
