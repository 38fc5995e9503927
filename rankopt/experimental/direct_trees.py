"""The estimator of trees weighted by exact line searches on the measure [paper 3, section 2.4]."""

# mypy: allow-subclassing-any
from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from formulations.arrays import Floats, is_sparse
from formulations.parallel import at_most
from rankopt.boosting.ranker import COUNT, seeds_of
from rankopt.constraints.admissible import Admissible
from rankopt.data.canonical_order import canonical
from rankopt.data.queries import Queries
from rankopt.data.validation import taken
from rankopt.errors import DataError, ModelError, OptionError
from rankopt.experimental.tree_ensemble import (
    MeasureObjective,
    TreeCallback,
    TreeGrower,
    TreeStep,
    TreeTable,
    TreeTraining,
    certify_weights,
)
from rankopt.fitting import warn_interrupted
from rankopt.measures.notation import parse
from rankopt.optimize.certificate import TREES, Certificate, History, Stop, check_saved
from rankopt.options import RUN, Interval, Rules, check_options, number
from rankopt.persistence.onnx import Nodes
from rankopt.rankers.base import Ranker
from rankopt.rankers.run import store_score
from rankopt.rankers.typing import AnyMeasure, Normalize, Seed

ROUNDS, MAX_ROUNDS = 100, 1000  # n_estimators=None: trees without eval_set, and at most with it


class DirectBoostedRanker(Ranker):
    """Regression trees, each weighted by an exact line search on the measure of the training queries.

    A document is scored by Σ_t α_t h_t(x). The trees h_t fit the residuals of the grades (MART). The weights α_t
    maximize M(s) = Σ_q v_q measure_q(s), the mean over the queries on which the measure is defined, with
    v_q = query_weight / Σ query_weight and equal scores averaged. M never falls: a tree that would lower it gets
    weight 0.

    Parameters
    ----------
    **Model**

    measure : of `rankopt.measures`, or its notation.
    constraints : an `Admissible` for `rank`, `score` and eval_set; training ignores it.
    normalize : as in `LargeMarginRanker`.

    **Solver**

    strategy : {"stage-wise", "leveraging", "both"}
        "stage-wise" weights each tree once, when it is grown. "leveraging" grows all trees with the largest weight of
        `weight_bounds` and then maximizes M by coordinate ascent in all weights. "both" does one after the other.
    weight_rule : {"inside", "clamped"}
        The weight of a new tree: the best in the open `weight_bounds`, or the best of the full line, clamped to
        `weight_bounds` [paper 3].
    weight_bounds : smallest and largest weight of a new tree; (0.1, 0.5) in [paper 3].
    n_estimators : int or None
        Trees. None is 100; with eval_set the number that is best for `measure` there, at most 1,000.
    num_leaves : leaves of a tree at most.
    min_child_samples : training documents of a leaf at least.
    random_state : seed of the choice among splits that are equally good; None is 0.

    **Run**

    early_stopping : trees without improvement on eval_set after which growth ends.
    time_limit : seconds after which training ends with a ConvergenceWarning.
    n_jobs : threads; None or -1 uses all cores. The number of threads does not change the model.
    callbacks : functions (step, state) called after each step; one that returns True ends training.

    Attributes
    ----------
    estimators_ : TreeTable, the trees times their weights.
    estimator_weights_ : (T,) the nonzero α.
    history_ : History, each step with the predicted and the evaluated M.
    certificate_ : Certificate; its `gap` bounds what changing one weight could gain.
    best_score_ : the measure on eval_set, if one was passed. The model is the best on it of all states.

    References
    ----------
    docs/results.md has the measurements: below MART with as many trees in winning numbers.
    """

    _saved: ClassVar[tuple[str, ...]] = (
        *Ranker._saved, "estimators_", "estimator_weights_", "history_", "certificate_", "best_score_",
    )  # fmt: skip
    _of_the_run: ClassVar[tuple[str, ...]] = ("callbacks", "n_jobs")

    estimators_: TreeTable
    estimator_weights_: Floats
    _rules: ClassVar[Rules] = {
        "n_estimators": (COUNT, None), "num_leaves": (Interval(2, 2**31 - 1, "both", integer=True),),
        "min_child_samples": (COUNT,), "early_stopping": (COUNT,),
        "strategy": ("stage-wise", "leveraging", "both"), "weight_rule": ("inside", "clamped"),
        "n_jobs": RUN["n_jobs"], "time_limit": RUN["time_limit"], "callbacks": RUN["callbacks"],
    }  # fmt: skip

    history_: History
    certificate_: Certificate
    best_score_: float

    def __init__(
        self,
        measure: AnyMeasure = "nDCG@10",
        *,
        strategy: Literal["stage-wise", "leveraging", "both"] = "stage-wise",
        weight_rule: Literal["inside", "clamped"] = "inside",
        weight_bounds: tuple[float, float] = (0.05, 0.2),
        n_estimators: int | None = None,
        num_leaves: int = 10,
        min_child_samples: int = 20,
        early_stopping: int = 50,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        callbacks: Sequence[TreeCallback] = (),
        constraints: Admissible | None = None,
        normalize: Normalize = None,
    ) -> None:
        self.measure = measure
        self.strategy = strategy
        self.weight_rule = weight_rule
        self.weight_bounds = weight_bounds
        self.n_estimators = n_estimators
        self.num_leaves = num_leaves
        self.min_child_samples = min_child_samples
        self.early_stopping = early_stopping
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callbacks = callbacks
        self.constraints = constraints
        self.normalize = normalize

    def _fit(self, queries: Queries, weights: Floats, evaluation: Queries | None) -> None:
        self._check_params()
        if queries.n_documents < 2:
            raise DataError("training cannot learn an order because there is 1 sample; give two documents or more")
        arranged = canonical(queries, weights)
        arranged = arranged.select(np.flatnonzero(arranged.weights > 0))
        objective = MeasureObjective.from_queries(parse(self.measure), arranged)
        features, judge = _dense(taken(arranged.features, arranged.rows)), None
        if evaluation is not None:
            features, deployment = np.concatenate([features, _dense(evaluation.features)]), self._deployment(evaluation)

            def judge(scores: Floats) -> float:
                return float(deployment.evaluate(scores, self.measure).mean())

        rounds = (ROUNDS if evaluation is None else MAX_ROUNDS) if self.n_estimators is None else int(self.n_estimators)
        low, high = map(float, self.weight_bounds)
        (seed,) = seeds_of(self.random_state, 1)
        grower = TreeGrower(features, objective.shares, int(self.num_leaves), int(self.min_child_samples), seed)
        with nullcontext() if self.n_jobs in (None, -1) else at_most(self.n_jobs):
            training = TreeTraining(
                objective, grower, rounds, int(self.early_stopping), self.strategy, self.weight_rule, (low, high),
                judge, self.time_limit, self.callbacks,
            )  # fmt: skip
            stop, best = training.run(len(features)), training.best
            chosen = [number for number, weight in enumerate(best.weights) if weight != 0]
            trees = [best.trees[number] for number in chosen]
            self.estimator_weights_ = np.array([best.weights[number] for number in chosen], dtype=np.float64)
            self.estimators_ = TreeTable.from_trees(trees, self.estimator_weights_.tolist(), self.n_features_in_)
            self.history_ = History.from_rows(TreeStep, training.steps)
            self.certificate_ = certify_weights(objective, trees, best.scores, stop)
        store_score(self, None if judge is None else judge(best.scores[objective.grades.size :]))
        if stop is Stop.TIME:
            warnings.warn(
                f"training stopped before all trees were grown and weighted ({self.certificate_}); raise time_limit",
                ConvergenceWarning,
                stacklevel=4,
            )
        if stop is Stop.INTERRUPTED:
            warn_interrupted("trees")

    @property
    def feature_importances_(self) -> Floats:
        """(d,) the share of each feature in the splits of all trees; 0 for all if no tree has a split."""
        check_is_fitted(self)
        trees = self.estimators_
        counts = np.bincount(trees.feature[trees.feature >= 0], minlength=trees.n_features)
        return counts / max(int(counts.sum()), 1)

    @property
    def best_iteration_(self) -> int:
        """The number of trees of nonzero weight in the state that was best on eval_set."""
        if not hasattr(self, "best_score_"):
            raise AttributeError("best_iteration_ needs an evaluation; call fit(..., eval_set=(X, y), eval_qid=qid)")
        return int(self.estimator_weights_.size)

    @property
    def evals_result_(self) -> Floats:
        """The measure on eval_set after each step; NaN without eval_set, and within a pass over all trees."""
        check_is_fitted(self)
        return np.array([row.judged for row in self.history_], dtype=np.float64)

    def _as_graph(self) -> Nodes:
        trees = self.estimators_
        feature, left, right = (column.astype(np.int64) for column in (trees.feature, trees.left, trees.right))
        return Nodes(feature, trees.number, left, right, trees.roots, trees.n_features)

    def _scores(self, features: Any) -> Floats:
        if self.estimators_.n_features != features.shape[1]:
            raise DataError(f"estimators_ are not of {features.shape[1]} features; fit again")
        return self.estimators_.predict(_dense(features))

    def _check_params(self) -> None:
        super()._check_params()
        check_options(self)
        ends = [number(end) for end in self.weight_bounds] if isinstance(self.weight_bounds, tuple | list) else []
        if not (len(ends) == 2 and 0 < ends[0] < ends[1] < np.inf):
            raise OptionError(f"weight_bounds must be two numbers 0 < low < high; got {self.weight_bounds!r}")

    def _check_learned(self) -> None:
        trees, weights = getattr(self, "estimators_", None), getattr(self, "estimator_weights_", None)
        if not (type(trees) is TreeTable and trees.n_features == self.n_features_in_):
            raise ModelError(f"estimators_ is missing, or holds no trees of {self.n_features_in_} features.")
        if not (isinstance(weights, np.ndarray) and weights.dtype == np.float64 and weights.ndim == 1):
            raise ModelError("estimator_weights_ is missing, or no vector of numbers.")
        if max(weights.size, 1) != trees.roots.size or not np.isfinite(weights).all():
            raise ModelError("estimator_weights_ are not one finite number a tree.")
        check_saved(self, TreeStep, TREES)


def _dense(features: Any) -> Any:
    return features.toarray() if is_sparse(features) else features
