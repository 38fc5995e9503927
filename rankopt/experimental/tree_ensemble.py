"""Regression trees whose weights are found by exact line searches on a ranking measure [paper 3, section 2.4].

    maximize    M(s),    s_i = Σ_t α_t h_t(x_i)      M: the measure of the training queries, h_t: regression trees

Stage-wise: tree t is grown on the residuals y - f of the regression f so far, and M is searched exactly on the line
s + α h_t. The tree is added unless M falls. Otherwise only f takes it, with the smallest weight, so that the next tree
differs. Leveraging: all trees are grown first, then M is maximized by coordinate ascent in α.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints, Shorts
from formulations.display import Axes, CompactReprMixin
from rankopt.data.canonical_order import Arrangement
from rankopt.errors import ModelError
from rankopt.measures.measure import Measure
from rankopt.measures.tied_ranking import query_of_row
from rankopt.optimize.certificate import Certificate, History, Stop
from rankopt.sweeps.step_function import StepEvents, best_interval, clamped_point, inside_point, middle_point
from rankopt.sweeps.sweep import LineSweep

LARGEST = 1e300  # bound of the sum of all leaves: no score overflows
RISEN = 1e-12  # increase of M below which a change of weight is rounding
PASSES = 20  # passes of leveraging over all trees, at most
REACH = 0.2  # movement of the scores beyond the last jump of a line, in standard deviations within queries


@dataclass(frozen=True, eq=False)
class MeasureObjective:
    """M(s) = Σ_q v_q measure_q(s_q), averaged over the orders of equal scores.

    Attributes
    ----------
    sweep : the line sweep of M, over the queries on which the measure is defined.
    rows : positions of the documents of these queries among all N.
    grades : (N,) relevance.
    shares : (N,) weights of the documents in a regression, 1 on average.
    """

    sweep: LineSweep
    rows: Ints
    grades: Floats
    shares: Floats

    @classmethod
    def from_queries(cls, measure: Measure, queries: Arrangement) -> MeasureObjective:
        """M of queries with positive weights. Raises DataError if the measure is defined on none of them."""
        defined = measure.defined(queries.graded, queries.offsets)
        seen = queries.learnable(defined, f"give {measure} a value")
        sizes = np.diff(queries.offsets)
        shares = np.repeat(queries.weights, sizes)
        sweep = LineSweep.from_measure(measure, seen.graded, seen.offsets, seen.weights)
        return cls(sweep, np.flatnonzero(np.repeat(defined, sizes)), queries.graded, shares / shares.mean())

    def value(self, scores: Floats) -> float:
        return self.sweep.value(scores[self.rows])

    def events(self, scores: Floats, column: Floats) -> StepEvents:
        """The jumps of t -> M(scores + t column)."""
        return self.sweep.events(scores[self.rows], column[None, self.rows])[0]

    def reach(self, scores: Floats, column: Floats) -> float:
        """The t that moves the scores by REACH of their standard deviation within queries."""
        return REACH * (self._deviation(scores) or 1.0) / (self._deviation(column) or 1.0)

    def _deviation(self, values: Floats) -> float:
        own, offsets = values[self.rows], self.sweep.offsets
        sizes, query = np.diff(offsets), query_of_row(offsets)
        means = np.add.reduceat(own, offsets[:-1]) / sizes
        centered = own - means[query]
        return float(np.sqrt((self.sweep.weights / sizes)[query] @ (centered * centered)))


@dataclass(frozen=True, eq=False)
class Tree(CompactReprMixin):
    """A grown tree. Node i is a split if feature_i >= 0: x[feature_i] <= threshold_i goes to left_i, else to right_i,
    both > i. Otherwise it is a leaf of value values_i. leaf_of: (N + E,) the leaf of every document."""

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    values: Floats
    leaf_of: NDArray[np.unsignedinteger]

    @property
    def leaves(self) -> int:
        return int(np.count_nonzero(self.feature < 0))

    @property
    def column(self) -> Floats:
        """(N + E,) the output of the tree."""
        return np.asarray(self.values[self.leaf_of])

    def add_to(self, scores: Floats, weight: float) -> Floats:
        """scores + weight · column, with the roundings of `TreeTable.predict`: each leaf is multiplied once."""
        return np.asarray(scores + (weight * self.values)[self.leaf_of])


@dataclass(frozen=True, eq=False)
class TreeTable(CompactReprMixin):
    """Trees times their weights as arrays: nodes as in `Tree`, number_i the threshold of a split or the value of a
    leaf; tree t begins at roots_t. Raises ModelError for arrays that are no trees."""

    feature: Shorts
    number: Floats
    left: Shorts
    right: Shorts
    roots: Ints
    n_features: int

    def __post_init__(self) -> None:
        types = {"feature": np.int32, "number": np.float64, "left": np.int32, "right": np.int32, "roots": np.int64}
        for name, dtype in types.items():
            array = getattr(self, name)
            if not (isinstance(array, np.ndarray) and array.dtype == dtype and array.ndim == 1):
                raise ModelError(f"{name} of the trees is no vector of {np.dtype(dtype)}.")
        n, split = self.feature.size, self.feature >= 0
        if type(self.n_features) is not int or self.n_features < 1:
            raise ModelError("n_features of the trees must be a positive integer.")
        if not self.left.size == self.right.size == self.number.size == n:
            raise ModelError("the arrays of the trees have different lengths.")
        if not self.roots.size or self.roots[0] != 0 or (np.diff(self.roots) < 1).any() or self.roots[-1] >= n:
            raise ModelError("the roots of the trees are no increasing nodes from 0.")
        if (self.feature < -1).any() or (self.feature >= self.n_features).any():
            raise ModelError("a tree splits by a feature that the model does not have.")
        parents = np.flatnonzero(split)
        children = np.concatenate([self.left[split], self.right[split]])
        if not np.array_equal(np.sort(children), np.setdiff1d(np.arange(n), self.roots)):
            raise ModelError("a node of the trees is not the child of exactly one split.")
        if (children <= np.concatenate([parents, parents])).any():
            raise ModelError("a child of the trees precedes its parent.")
        if np.isnan(self.number).any() or not np.abs(self.number[~split]).sum() < LARGEST:
            raise ModelError("the trees hold numbers that are not finite.")

    @classmethod
    def from_trees(cls, trees: Sequence[Tree], weights: Sequence[float], n_features: int) -> TreeTable:
        """The trees of nonzero weight; one leaf of value 0 if there are none."""
        parts, roots, size = [], [0], 0
        for tree, weight in zip(trees, weights, strict=True):
            if weight == 0:
                continue
            split = tree.feature >= 0
            number = np.where(split, tree.threshold, weight * tree.values)
            parts.append(
                (tree.feature, number, np.where(split, tree.left + size, 0), np.where(split, tree.right + size, 0))
            )
            size += split.size
            roots.append(size)
        parts = parts or [(np.full(1, -1), np.zeros(1), np.zeros(1, np.int64), np.zeros(1, np.int64))]
        feature, number, left, right = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return cls(
            feature.astype(np.int32), number, left.astype(np.int32), right.astype(np.int32),
            np.array(roots[:-1] or roots, dtype=np.int64), n_features,
        )  # fmt: skip

    def predict(self, features: Floats) -> Floats:
        """(N,) the sums of the leaves, added tree by tree."""
        scores = np.zeros(len(features))
        for root in self.roots.tolist():
            node = np.full(len(features), root, dtype=np.int64)
            rows = np.flatnonzero(self.feature[node] >= 0)
            while rows.size:
                here = node[rows]
                goes_left = features[rows, self.feature[here]] <= self.number[here]
                node[rows] = np.where(goes_left, self.left[here], self.right[here])
                rows = rows[self.feature[node[rows]] >= 0]
            scores += self.number[node]
        return scores


def certify_weights(objective: MeasureObjective, trees: Sequence[Tree], scores: Floats, stop: Stop) -> Certificate:
    """M(s + t h) <= bound for each tree column h and every t that is no jump: M is swept along each column once."""
    value = bound = objective.value(scores)
    for tree in trees:
        bound = max(bound, best_interval(objective.events(scores, tree.column))[2])
    return Certificate("directions", value, bound, stop, parts={"trees": len(trees)})


@dataclass(frozen=True)
class TreeStep:
    """One step of training.

    Attributes
    ----------
    step : its number, from 1.
    sweep : 0 if a tree was added, else the pass over all trees.
    tree : the tree, from 0.
    weight : its new weight; 0 leaves it out.
    predicted : M on its line at that weight, by the sweep.
    measure : M of the training queries after the step, evaluated.
    judged : the measure on eval_set, NaN without one; in a pass only its last step has it.
    """

    step: int
    sweep: int
    tree: int
    weight: float
    predicted: float
    measure: float
    judged: float = np.nan

    axis: ClassVar[str] = "step"

    @staticmethod
    def draw(history: History, axes: Axes, x: NDArray[Any]) -> str:
        """M of the training queries, and the measure on eval_set if there is one."""
        axes.plot(x, history.measure, label="training queries")
        known = ~np.isnan(history.judged)
        if known.any():
            axes.plot(x[known], history.judged[known], label="eval_set")
        return "measure"


@dataclass(frozen=True, eq=False)
class EnsembleState(CompactReprMixin):
    """Trees and their weights. scores: (N + E,) Σ weight · column, for the training documents and those of eval_set.
    fitted: (N + E,) the regression, whose residuals the next tree fits. measure: M. judged: the measure on eval_set."""

    trees: tuple[Tree, ...]
    weights: tuple[float, ...]
    scores: Floats
    fitted: Floats
    measure: float
    judged: float = np.nan

    def reweigh(self, tree: int, weight: float) -> EnsembleState:
        """The same trees with another weight of one; `measure` is still that of the old weights."""
        weights = (*self.weights[:tree], weight, *self.weights[tree + 1 :])
        scores = np.zeros(self.scores.size)
        for one, own in zip(self.trees, weights, strict=True):
            if own != 0:
                scores = one.add_to(scores, own)
        return replace(self, weights=weights, scores=scores)


TreeCallback = Callable[[TreeStep, EnsembleState], bool | None]
"""Called after each step; ends training by returning True."""


BINS = 255  # bins of a feature


@dataclass(eq=False)
class TreeGrower:
    """Grows trees by scikit-learn's `DecisionTreeRegressor`, best leaf first, on features that are binned once.

    Its trees read features in single precision. Bin numbers are exact there, so a split of bins is a split of the
    feature in double precision. A leaf takes the mean of the target in double precision.

    Attributes
    ----------
    features : (N + E, d) dense: the N training documents, then those of eval_set, which only land on leaves.
    shares : (N,) weights of the training documents.
    leaves : of a tree, at most.
    samples : training documents of a leaf, at least.
    """

    features: Floats
    shares: Floats
    leaves: int
    samples: int
    seed: int = 0

    def __post_init__(self) -> None:
        learned = self.features[: self.shares.size]
        self.edges = [_bin_edges(column) for column in learned.T]
        self.bins = np.empty(self.features.shape, dtype=np.float32)
        for feature, edges in enumerate(self.edges):
            self.bins[:, feature] = np.searchsorted(edges, self.features[:, feature])

    def grow(self, target: Floats) -> Tree | None:
        """The next tree for the residuals (N,), each leaf their mean by shares; None if nothing can be split."""
        from sklearn.tree import DecisionTreeRegressor

        regression = DecisionTreeRegressor(
            max_leaf_nodes=self.leaves, min_samples_leaf=self.samples, random_state=self.seed
        )
        weights = None if np.ptp(self.shares) == 0 else self.shares
        grown = regression.fit(self.bins[: target.size], target, sample_weight=weights, check_input=False).tree_
        if grown.node_count < 2:
            return None
        feature = np.maximum(grown.feature.astype(np.int64), -1)
        threshold = np.array(
            [self.edges[j][int(bin)] if j >= 0 else 0.0 for j, bin in zip(feature, grown.threshold, strict=True)]
        )
        left, right = (np.maximum(side, 0).astype(np.int64) for side in (grown.children_left, grown.children_right))
        leaf_of = grown.apply(self.bins)
        own = leaf_of[: target.size]
        total, weight = (np.bincount(own, part, feature.size) for part in (self.shares * target, self.shares))
        values = np.divide(total, weight, out=np.zeros(feature.size), where=weight > 0)
        return Tree(feature, threshold, left, right, values, leaf_of.astype(np.min_scalar_type(feature.size)))


def _bin_edges(column: Floats) -> Floats:
    """The largest value of each bin but the last."""
    values = np.unique(column.astype(np.float64))
    if values.size > BINS:
        return np.unique(np.quantile(column.astype(np.float64), np.arange(1, BINS) / BINS, method="lower"))
    return values[:-1]


@dataclass(eq=False)
class TreeTraining:
    """One training run. After `run`, `best` is the last state, or the best on eval_set if there is one.

    Attributes
    ----------
    rounds, patience : trees at most; trees without improvement on eval_set after which growth ends.
    strategy : "stage-wise", "leveraging" or "both".
    weight : "inside" or "clamped", see `DirectBoostedRanker`.
    interval : smallest and largest weight of a tree when it is grown.
    judge : the measure on eval_set, from the scores of its documents; None without eval_set.
    """

    objective: MeasureObjective
    grower: TreeGrower
    rounds: int
    patience: int
    strategy: str
    weight: str
    interval: tuple[float, float]
    judge: Callable[[Floats], float] | None
    time_limit: float | None
    callbacks: Sequence[TreeCallback]
    steps: list[TreeStep] = field(default_factory=list)

    def run(self, documents: int) -> Stop:
        """Train from no trees; documents: N + E. An interruption after the first step keeps what was reached."""
        objective, zeros = self.objective, np.zeros(documents)
        mean = float(objective.shares @ objective.grades / objective.grades.size)
        self.best = EnsembleState((), (), zeros, zeros + mean, objective.value(zeros))
        self.started = perf_counter()
        try:
            stop = self._grow()
            finished = stop in (Stop.GROWN, Stop.NO_SPLIT, Stop.EARLIER)
            return self._leverage() if self.strategy != "stage-wise" and finished and self.best.trees else stop
        except KeyboardInterrupt:
            if not self.steps:
                raise
            return Stop.INTERRUPTED

    def _grow(self) -> Stop:
        state, since = self.best, 0
        for _ in range(self.rounds):
            grown = self._add_tree(state)
            if grown is None:
                return Stop.NO_SPLIT
            state, predicted = self._evaluate(grown[0]), grown[1]
            since = 0 if self._keep(state) else since + 1
            stop = self._record(state, 0, len(state.trees) - 1, predicted)
            if stop is not None:
                return stop
            if since >= self.patience:
                return Stop.EARLIER
        return Stop.GROWN if since == 0 else Stop.EARLIER

    def _add_tree(self, state: EnsembleState) -> tuple[EnsembleState, float] | None:
        """The state with one more tree, and the predicted M; None if no tree can be grown."""
        objective, (low, high) = self.objective, self.interval
        tree = self.grower.grow(objective.grades - state.fitted[: objective.grades.size])
        if tree is None:
            return None
        trees, searched = (*state.trees, tree), self.strategy != "leveraging"
        weight, predicted = self._search_weight(state.scores, tree.column) if searched else (high, np.nan)
        scores = tree.add_to(state.scores, weight)
        measure = objective.value(scores)
        if searched and measure < state.measure:
            fitted = tree.add_to(state.fitted, low)
            return replace(state, trees=trees, weights=(*state.weights, 0.0), fitted=fitted), predicted
        fitted = tree.add_to(state.fitted, weight)
        return EnsembleState(trees, (*state.weights, weight), scores, fitted, measure), predicted

    def _search_weight(self, scores: Floats, column: Floats) -> tuple[float, float]:
        """The weight of a new tree in `interval`, and M there."""
        events = self.objective.events(scores, column)
        if self.weight == "inside":
            point = inside_point(events, *self.interval)
        else:
            point = clamped_point(events, *self.interval, self.objective.reach(scores, column))
        return point.t, point.value

    def _leverage(self) -> Stop:
        """Coordinate ascent in the weights, each over the full line."""
        state, objective = self.best, self.objective
        for sweep in range(1, PASSES + 1):
            moved = False
            for number, tree in enumerate(state.trees):
                events = objective.events(state.scores, tree.column)
                point = middle_point(events, objective.reach(state.scores, tree.column))
                if point.value <= state.measure + RISEN:
                    continue
                trial = state.reweigh(number, state.weights[number] + point.t)
                measure = objective.value(trial.scores)
                if measure <= state.measure + RISEN:
                    continue
                state, moved = replace(trial, measure=measure, judged=np.nan), True
                if self.judge is None:
                    self._keep(state)
                stop = self._record(state, sweep, number, point.value)
                if stop is not None:
                    self._keep(self._evaluate(state))
                    return stop
            state = self._evaluate(state)
            if moved:
                self.steps[-1] = replace(self.steps[-1], judged=state.judged)
            retained = self._keep(state)
            if not moved:
                return Stop.WEIGHTS if retained or self.best.measure == state.measure else Stop.EARLIER
        return Stop.PASSES

    def _evaluate(self, state: EnsembleState) -> EnsembleState:
        """The state with its measure on eval_set."""
        if self.judge is None:
            return state
        return replace(state, judged=self.judge(state.scores[self.objective.grades.size :]))

    def _keep(self, state: EnsembleState) -> bool:
        """Make the state the best one unless another is better on eval_set."""
        better = bool(np.isnan(state.judged)) or not self.best.judged >= state.judged
        if better:
            self.best = state
        return better

    def _record(self, state: EnsembleState, sweep: int, tree: int, predicted: float) -> Stop | None:
        """Record a step; the reason to stop after it, if any."""
        weight, judged = state.weights[tree], np.nan if sweep else state.judged
        step = TreeStep(len(self.steps) + 1, sweep, tree, weight, predicted, state.measure, judged)
        self.steps.append(step)
        if any([callback(step, state) for callback in self.callbacks]):
            return Stop.CALLBACK
        late = self.time_limit is not None and perf_counter() - self.started >= self.time_limit
        return Stop.TIME if late else None
