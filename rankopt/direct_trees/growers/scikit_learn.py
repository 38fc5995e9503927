"""Least squares by scikit-learn: `DecisionTreeRegressor`, leaf by leaf where it helps most, on features that are put
into at most 255 bins once.

Its trees know 32 bits of a feature. Numbers of bins are whole there, and splits between them are splits of the feature
itself, in 64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankopt.direct_trees.growers.documents import Size, TrainingDocuments
from rankopt.direct_trees.tree import Tree

Floats = NDArray[np.float64]

BINS = 255


@dataclass(frozen=True, eq=False)
class ScikitLearn:
    """A `Grower`. Of the package only the splits are taken; leaves are means in the order of the documents.

    bins: (N, d) float32, how many of the edges of its feature lie below each value.
    """

    documents: TrainingDocuments
    size: Size
    bins: NDArray[np.float32]
    edges: tuple[Floats, ...]

    @classmethod
    def of(cls, documents: TrainingDocuments, size: Size) -> ScikitLearn:
        learned = documents.learned
        edges = tuple(_edges(column) for column in learned.T)
        bins = np.empty(learned.shape, dtype=np.float32)
        for feature, own in enumerate(edges):
            bins[:, feature] = np.searchsorted(own, learned[:, feature])
        return cls(documents, size, bins, edges)

    def grow(self, target: Floats, scores: Floats) -> Tree | None:
        from sklearn.tree import DecisionTreeRegressor

        shares = self.documents.problem.shares
        regression = DecisionTreeRegressor(
            max_leaf_nodes=self.size.leaves, min_samples_leaf=self.size.fewest, random_state=self.size.seed
        )
        weights = None if np.ptp(shares) == 0 else shares
        grown = regression.fit(self.bins, target, sample_weight=weights, check_input=False).tree_
        if grown.node_count < 2:
            return None
        feature = np.maximum(grown.feature.astype(np.int64), -1)
        threshold = np.array(
            [self.edges[j][int(at)] if j >= 0 else 0.0 for j, at in zip(feature, grown.threshold, strict=True)]
        )
        left, right = (np.maximum(side, 0).astype(np.int64) for side in (grown.children_left, grown.children_right))
        return Tree.fitted(feature, threshold, left, right, self.documents.features, target, shares)


def _edges(column: Floats) -> Floats:
    """Values of the feature that part its bins, each with those that are not above it."""
    values = np.unique(column.astype(np.float64))
    if values.size > BINS:
        values = np.unique(np.quantile(column.astype(np.float64), np.arange(1, BINS) / BINS, method="lower"))
        return np.asarray(values)
    return values[:-1]
