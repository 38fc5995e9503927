"""What grows a tree: least squares by scikit-learn or LightGBM, or line searches on the measure itself.

Of the two packages only the splits are used. A leaf takes the mean of the target in double precision, summed in the
order of the documents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Bools, Floats
from formulations.display import CompactReprMixin
from rankopt.boosting.growth import lightgbm
from rankopt.experimental.tree_ensemble import Grower, MeasureObjective, Tree, descend
from rankopt.sweeps.step_function import LinePoint, StepEvents, middle_point

BINS = 255  # bins of a feature for scikit-learn
CANDIDATES = 7  # thresholds of a feature that are tried for a tree of the measure
BATCH = 16  # columns that are swept together
RISEN = 1e-9  # increase of M that a split must bring


@dataclass(frozen=True, eq=False)
class GrowerData(CompactReprMixin):
    """What a grower learns from.

    Attributes
    ----------
    features : (N + E, d) dense: the N training documents, then those of eval_set, which only land on leaves.
    objective : the measure of the training documents.
    leaves : of a tree, at most.
    samples : training documents of a leaf, at least.
    highest : the largest weight of a new tree.
    seed, threads : of the packages; 0 threads leave their number to the package.
    """

    features: Floats
    objective: MeasureObjective
    leaves: int
    samples: int
    highest: float
    seed: int = 0
    threads: int = 0

    @property
    def learned(self) -> Floats:
        """(N, d)"""
        return self.features[: self.objective.grades.size]


class ScikitLearn:
    """`DecisionTreeRegressor`, best leaf first, on features that are binned once. Its trees read features in single
    precision. Bin numbers are exact there, so a split of bins is a split of the feature in double precision."""

    def __init__(self, data: GrowerData) -> None:
        self.data, learned = data, data.learned
        self.edges = [_bin_edges(column) for column in learned.T]
        self.bins = np.empty(learned.shape, dtype=np.float32)
        for feature, edges in enumerate(self.edges):
            self.bins[:, feature] = np.searchsorted(edges, learned[:, feature])

    def grow(self, target: Floats, scores: Floats) -> Tree | None:
        from sklearn.tree import DecisionTreeRegressor

        shares = self.data.objective.shares
        regression = DecisionTreeRegressor(
            max_leaf_nodes=self.data.leaves, min_samples_leaf=self.data.samples, random_state=self.data.seed
        )
        weights = None if np.ptp(shares) == 0 else shares
        grown = regression.fit(self.bins, target, sample_weight=weights, check_input=False).tree_
        if grown.node_count < 2:
            return None
        feature = np.maximum(grown.feature.astype(np.int64), -1)
        threshold = np.array(
            [self.edges[j][int(bin)] if j >= 0 else 0.0 for j, bin in zip(feature, grown.threshold, strict=True)]
        )
        left, right = (np.maximum(side, 0).astype(np.int64) for side in (grown.children_left, grown.children_right))
        return Tree.from_splits(feature, threshold, left, right, self.data.features, target, shares)


def _bin_edges(column: Floats) -> Floats:
    """The largest value of each bin but the last."""
    values = np.unique(column.astype(np.float64))
    if values.size > BINS:
        return np.unique(np.quantile(column.astype(np.float64), np.arange(1, BINS) / BINS, method="lower"))
    return values[:-1]


class LightGBM:
    """LightGBM's trees on gradients of ours; its features are binned once."""

    def __init__(self, data: GrowerData) -> None:
        self.data, package = data, lightgbm()
        options = {"verbosity": -1, "feature_pre_filter": False, "use_missing": False}
        table = package.Dataset(data.learned, data.objective.grades, params=options).construct()
        settings = {
            "objective": "none", "metric": "None", "learning_rate": 1.0, "num_leaves": data.leaves,
            "min_data_in_leaf": data.samples, "min_sum_hessian_in_leaf": 0.0, "seed": data.seed,
            "num_threads": data.threads, "deterministic": True, "force_col_wise": True, **options,
        }  # fmt: skip
        bins = any(table.feature_num_bin(feature) for feature in range(data.features.shape[1]))
        self.booster = package.Booster(settings, table) if bins else None

    def grow(self, target: Floats, scores: Floats) -> Tree | None:
        if self.booster is None:
            return None
        shares, known = self.data.objective.shares, self.booster.num_trees()
        self.booster.update(fobj=lambda scores, data: (-shares * target, shares))
        if self.booster.num_trees() == known:
            return None
        text = self.booster.model_to_string(start_iteration=known, num_iteration=1)
        fields = dict(line.split("=", 1) for line in text[text.index("Tree=") :].split("\n") if "=" in line)
        leaves = int(fields["num_leaves"])
        if leaves < 2:
            return None

        def column(name: str, dtype: type, of_leaves: int = 0) -> NDArray[Any]:
            return np.append(np.array(fields[name].split(), dtype=dtype), np.full(leaves, of_leaves, dtype=dtype))

        children = [column(name, np.int64) for name in ("left_child", "right_child")]
        left, right = (np.where(child < 0, leaves - 1 + ~child, child) for child in children)  # ~child: a leaf
        feature, threshold = column("split_feature", np.int64, -1), column("threshold", np.float64)
        return Tree.from_splits(feature, threshold, left, right, self.data.features, target, shares)


@dataclass(frozen=True)
class TreeSplit:
    """Of a leaf: its documents with x[feature] > threshold move by point.t."""

    feature: int
    threshold: float
    point: LinePoint


class OnMeasure:
    """Trees of the measure itself: each split is the one after which M can be raised most [paper 3, outlook].

    A split of leaf R by feature j at θ moves the documents of R with x_j > θ together. An exact line search along the
    column 1[R, x_j > θ] finds the best step and M there. The best split of all is taken, then its two leaves are
    searched. θ are quantiles. A search costs about a sort of the documents, and a tree of L leaves takes
    (2 L - 1) d · CANDIDATES searches.

    The residuals are not used. Leaves are in units of the largest weight of a new tree: that weight is the step found.
    """

    def __init__(self, data: GrowerData) -> None:
        self.data, self.objective = data, data.objective
        ranks, self.cuts = np.arange(1, CANDIDATES + 1) / (CANDIDATES + 1), list[tuple[int, float]]()
        for feature, column in enumerate(data.learned.T):
            cuts = np.unique(np.quantile(column.astype(np.float64), ranks, method="lower"))
            self.cuts += [(feature, cut) for cut in cuts[cuts < column.max()].tolist()]

    def grow(self, target: Floats, scores: Floats) -> Tree | None:
        node, objective = np.zeros(1, dtype=np.int64), self.objective
        tree = Tree(node - 1, np.zeros(1), node, node, np.zeros(1), np.zeros(len(self.data.features), dtype=np.uint8))
        value, splits = objective.value(scores), {0: self._best_split(tree, 0, scores)}
        while tree.leaves < self.data.leaves:
            found = {leaf: split for leaf, split in splits.items() if split is not None}
            if not found:
                break
            leaf = max(found, key=lambda leaf: found[leaf].point.value)
            trial = self._split_leaf(tree, leaf, found[leaf])
            column, now = (trial.leaf_of == trial.feature.size - 1).astype(np.float64), tree.add_to(scores, 1.0)
            (events,) = objective.events(now, column[None])  # other leaves have moved since the split was found
            trial.values[-1] += self._point(now, column, events).t
            reached = objective.value(trial.add_to(scores, 1.0))
            if not reached > value + RISEN:
                splits[leaf] = None
                continue
            tree, value = trial, reached
            del splits[leaf]
            for new in (tree.feature.size - 2, tree.feature.size - 1):
                splits[new] = self._best_split(tree, new, tree.add_to(scores, 1.0))
        if tree.leaves < 2:
            return None
        tree.values[:] /= self.data.highest
        return tree

    def _best_split(self, tree: Tree, leaf: int, scores: Floats) -> TreeSplit | None:
        """None if no split leaves enough documents on both sides, or none raises M."""
        inside, count, found = tree.leaf_of == leaf, self.objective.grades.size, list[TreeSplit]()

        def column(feature: int, cut: float) -> Bools:
            return np.asarray(inside & (self.data.features[:, feature] > cut))

        def fewest(feature: int, cut: float) -> int:
            above = int(column(feature, cut)[:count].sum())
            return min(above, int(inside[:count].sum()) - above)

        cuts = [cut for cut in self.cuts if fewest(*cut) >= self.data.samples]
        for start in range(0, len(cuts), BATCH):
            batch = cuts[start : start + BATCH]
            columns = np.array([column(*cut) for cut in batch], dtype=np.float64)
            events = self.objective.events(scores, columns)
            points = [self._point(scores, one, own) for one, own in zip(columns, events, strict=True)]
            found += [TreeSplit(*cut, point) for cut, point in zip(batch, points, strict=True)]
        best = max(found, key=lambda split: split.point.value, default=None)
        return best if best is not None and best.point.value > self.objective.value(scores) + RISEN else None

    def _point(self, scores: Floats, column: Floats, events: StepEvents) -> LinePoint:
        return middle_point(events, self.objective.reach(scores, column))

    def _split_leaf(self, tree: Tree, leaf: int, split: TreeSplit) -> Tree:
        """The leaf becomes a split of two leaves with its value."""
        first = tree.feature.size
        feature, threshold, left, right, values = (
            np.append(column, [fill, fill])
            for column, fill in (
                (tree.feature, -1), (tree.threshold, 0.0), (tree.left, 0), (tree.right, 0),
                (tree.values, tree.values[leaf]),
            )
        )  # fmt: skip
        feature[leaf], threshold[leaf], left[leaf], right[leaf] = split.feature, split.threshold, first, first + 1
        values[leaf] = 0.0
        return Tree(
            feature, threshold, left, right, values, descend(feature, threshold, left, right, self.data.features)
        )


GROWERS: dict[str, Callable[[GrowerData], Grower]] = {
    "scikit-learn": ScikitLearn,
    "lightgbm": LightGBM,
    "measure": OnMeasure,
}
