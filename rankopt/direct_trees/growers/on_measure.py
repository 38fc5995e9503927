"""Trees of the measure itself: every split is the one after which M can be raised most [paper 3, the last wish].

A split of leaf R by feature j at θ lets the documents of R with x_j > θ move together: its column is 1[R, x_j > θ], and
an exact line search says how far is best and what M is then. The best of all is taken, and the two leaves are searched
in turn. Candidates θ are quantiles, as many for each feature; a leaf's best split is searched where the leaf is made,
and weighed once more when it is taken.

A search costs about as much as sorting the documents, and a tree of L leaves takes (2 L - 1) d · candidates of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankopt.direct_trees.growers.documents import Size, TrainingDocuments
from rankopt.direct_trees.tree import Tree, landing
from rankopt.sweeps.step_function import LinePoint, StepEvents, middle_point

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CANDIDATES = 7
"""Thresholds of a feature that are tried."""

AT_ONCE = 16
"""Columns that are swept together."""

BEYOND = 0.2
"""Deviations of the scores by which documents go on where nothing is in their way any more."""

RISEN = 1e-9
"""What M must rise by for a split."""


@dataclass(frozen=True)
class Split:
    """Of a leaf: documents with x[feature] > threshold move by point.t."""

    feature: int
    threshold: float
    point: LinePoint


@dataclass(frozen=True, eq=False)
class OnMeasure:
    """A `Grower`; it heeds the scores and not the residuals. Leaves are given in units of the largest weight of a
    stage, so that this weight is the step that was searched for."""

    documents: TrainingDocuments
    size: Size
    thresholds: tuple[Floats, ...]

    @classmethod
    def of(cls, documents: TrainingDocuments, size: Size) -> OnMeasure:
        ranks = np.arange(1, CANDIDATES + 1) / (CANDIDATES + 1)
        found = []
        for column in documents.learned.T:
            cuts = np.unique(np.quantile(column.astype(np.float64), ranks, method="lower"))
            found.append(cuts[cuts < column.max()])
        return cls(documents, size, tuple(found))

    def grow(self, target: Floats, scores: Floats) -> Tree | None:
        problem, features = self.documents.problem, self.documents.features
        tree = Tree(*_leaf(), np.zeros(len(features), dtype=np.uint8))
        value, splits = problem.value(scores), {0: self._best(tree, 0, scores)}
        while tree.leaves < self.size.leaves:
            found = {leaf: split for leaf, split in splits.items() if split is not None}
            if not found:
                break
            leaf = max(found, key=lambda leaf: found[leaf].point.value)
            split = found[leaf]
            trial = self._split(tree, leaf, split)
            column = (trial.landed == trial.feature.size - 1).astype(np.float64)
            point = self._point(tree.added(scores, 1.0), column)
            moved = self._moved(trial, point.t)
            reached = problem.value(moved.added(scores, 1.0))
            if not reached > value + RISEN:
                splits[leaf] = None
                continue
            tree, value = moved, reached
            del splits[leaf]
            for new in (tree.feature.size - 2, tree.feature.size - 1):
                splits[new] = self._best(tree, new, tree.added(scores, 1.0))
        if tree.leaves < 2:
            return None
        return Tree(tree.feature, tree.threshold, tree.left, tree.right, tree.values / self.size.highest, tree.landed)

    def _best(self, tree: Tree, leaf: int, scores: Floats) -> Split | None:
        """The best split of a leaf; None where none leaves enough documents on both sides, or none raises M."""
        inside = tree.landed == leaf
        count, best = self.documents.problem.grades.size, None
        value = self.documents.problem.value(scores)
        tried: list[tuple[int, float, Floats]] = []

        def swept() -> Split | None:
            events = self.documents.problem.events(scores, np.array([column for _, _, column in tried]))
            points = [self._stand(scores, column, one) for (_, _, column), one in zip(tried, events, strict=True)]
            found = [Split(feature, cut, point) for (feature, cut, _), point in zip(tried, points, strict=True)]
            return max(([best] if best else []) + found, key=lambda split: split.point.value)

        for feature, cuts in enumerate(self.thresholds):
            for cut in cuts.tolist():
                column = inside & (self.documents.features[:, feature] > cut)
                above = int(column[:count].sum())
                if min(above, int(inside[:count].sum()) - above) < self.size.fewest:
                    continue
                tried.append((feature, cut, column.astype(np.float64)))
                if len(tried) == AT_ONCE:
                    best = swept()
                    tried = []
        best = swept() if tried else best
        return best if best is not None and best.point.value > value + RISEN else None

    def _point(self, scores: Floats, column: Floats) -> LinePoint:
        (events,) = self.documents.problem.events(scores, column[None])
        return self._stand(scores, column, events)

    def _stand(self, scores: Floats, column: Floats, events: StepEvents) -> LinePoint:
        return middle_point(events, self.documents.problem.reach(scores, column, BEYOND))

    def _split(self, tree: Tree, leaf: int, split: Split) -> Tree:
        """With the leaf split in two, both worth what it was worth."""
        at = tree.feature.size
        feature, left, right = (np.append(column, filler) for column, filler in (
            (tree.feature, [-1, -1]), (tree.left, [0, 0]), (tree.right, [0, 0]),
        ))  # fmt: skip
        threshold, values = np.append(tree.threshold, [0.0, 0.0]), np.append(tree.values, [tree.values[leaf]] * 2)
        feature[leaf], threshold[leaf], left[leaf], right[leaf] = split.feature, split.threshold, at, at + 1
        values[leaf] = 0.0
        landed = landing(feature, threshold, left, right, self.documents.features)
        return Tree(feature, threshold, left, right, values, landed)

    def _moved(self, tree: Tree, step: float) -> Tree:
        """With the last leaf moved."""
        values = tree.values.copy()
        values[-1] += step
        return Tree(tree.feature, tree.threshold, tree.left, tree.right, values, tree.landed)


def _leaf() -> tuple[Ints, Floats, Ints, Ints, Floats]:
    return np.full(1, -1), np.zeros(1), np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1)
