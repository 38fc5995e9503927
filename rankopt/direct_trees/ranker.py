"""Trees weighed by the measure itself: stage by stage, or all at once [paper 3, section 2.4].

Whether the options of `DirectBoostedRanker` can work.
"""

# mypy: allow-subclassing-any
from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from formulations.parallel import at_most
from formulations.registry import load
from rankopt.boosting.growth import told
from rankopt.data.canonical_order import canonical
from rankopt.data.validation import is_sparse, taken
from rankopt.direct_trees import GROWERS, STRATEGIES
from rankopt.direct_trees.certificate import MeasureObjective, TreeCertificate, TreeStop, certified
from rankopt.direct_trees.growers.documents import Size, TrainingDocuments
from rankopt.direct_trees.training import (
    Clock,
    EnsembleState,
    Plan,
    Run,
    TreeCallback,
    TreeHistory,
    TreeWeightSearch,
    trained,
)
from rankopt.direct_trees.tree import joined
from rankopt.errors import DataError, Interrupted, ModelError, OptionError
from rankopt.evaluation.evaluation import evaluate
from rankopt.mcrank.classifier_data import GradeTrees
from rankopt.measures.notation import parse
from rankopt.persistence.onnx import Nodes
from rankopt.rankers.base import Ranker
from rankopt.rankers.options import AnyMeasure, Normalize, Seed, number

if TYPE_CHECKING:
    from rankopt.constraints.admissible import Admissible
    from rankopt.data.queries import Queries

LARGEST = 2**31 - 1

WHOLE = {"n_estimators": 1, "num_leaves": 2, "min_child_samples": 1, "early_stopping": 1, "passes": 1}
"""Options that are whole numbers, and the least that each may be."""


def check_settings(
    *, trees: Any, strategy: Any, engine: Any, n_jobs: Any, time_limit: Any, callbacks: Any, **options: Any
) -> None:
    """Raise OptionError for a value that cannot work; options that are not listed here are checked where they are
    used."""
    for name, least in WHOLE.items():
        if name == "n_estimators" and options[name] is None:
            continue
        if not (least <= number(options[name]) <= LARGEST and number(options[name]).is_integer()):
            raise OptionError(f"{name} = {options[name]!r} is no such number; give a whole number, {least} or more")
    for name, value, known in (("trees", trees, GROWERS), ("strategy", strategy, STRATEGIES)):
        if value not in list(known):
            raise OptionError(f"{name} = {value!r} is unknown; known are {', '.join(known)}")
    if engine not in ("threads", "serial"):
        raise OptionError(
            f"engine = {engine!r} cannot grow trees, because a split is chosen on all documents at once; use 'threads' "
            "or 'serial'"
        )
    if n_jobs is not None and not (number(n_jobs).is_integer() and n_jobs >= -1 and n_jobs != 0):
        raise OptionError(f"n_jobs = {n_jobs!r} is no number of threads; give 1 or more, or None or -1 for all cores")
    if time_limit is not None and not number(time_limit) > 0:
        raise OptionError(f"time_limit = {time_limit!r} leaves no time; give seconds, or None")
    if not all(map(callable, callbacks if isinstance(callbacks, Iterable) else [None])):
        raise OptionError(f"callbacks = {callbacks!r} must be a sequence of functions (step, standing)")


def seed_of(random_state: Any) -> int:
    """A seed: the number itself, 0 for None; a generator draws one."""
    draw = getattr(random_state, "integers", getattr(random_state, "randint", None))  # of a generator, new or old
    seed = (0 if random_state is None else random_state) if draw is None else int(draw(LARGEST))
    if not (0 <= number(seed) < math.inf and number(seed).is_integer()):
        raise OptionError(f"random_state = {random_state!r} is no seed; give a whole number of 0 or more, or None")
    return int(seed) % LARGEST


# mypy: allow-subclassing-any


Floats = NDArray[np.float64]

ROUNDS, JUDGED = 100, 1000
"""Trees where nobody says how many, and where an eval_set says when to end."""


class DirectBoostedRanker(Ranker):
    """Scores a document by Σ_t α_t h_t(x): h_t are regression trees of the grades, each grown on the residuals of those
    before it (MART), and α_t is what is best for the measure M itself of the training queries, by an exact line search.

    M(s) = Σ_q v_q measure_q(s), the mean over the queries on which the measure is defined, v_q = query_weight /
    Σ query_weight, documents of equal score averaged: what `score` says. Any measure is taken, AP@10 and ERR@10 too. M
    never falls from stage to stage; a tree that would make it fall stays out of the ranking.

    Args:
        measure: of `rankopt.measures`, or its notation.
        trees: who grows them: "scikit-learn", "lightgbm" (`pip install 'rankopt[boosting]'`), or "measure": each split
            is the one that raises M most, each leaf moved to its best place by a line search; slow, for small data.
        strategy: "stage-wise", each tree weighed when it is grown, once; "leveraging", all grown first, with the
            largest weight of `interval`, then all weights by coordinate ascent, from -∞ to ∞; "both", one after the
            other.
        weight: where on its line a tree stands: "inside", the best of the open `interval`; "window", the best of it on
            average over a window; "clamped", the best of the whole line brought to the nearer end of `interval`
            [paper 3].
        interval: the least and the largest weight of a tree as it is grown; (0.1, 0.5) in [paper 3], for data a hundred
            times as large as those on which the default was chosen (benchmarks/direct_trees.md).
        window: half the width of windows, in deviations of the scores inside queries.
        n_estimators: trees; None is 100, or with eval_set as many as are best for `measure` there, 1,000 at most.
        num_leaves, min_child_samples: of a tree, as LightGBM calls them: its leaves, at most, and the documents that
            one holds at least.
        passes: of leveraging, over all trees, at most; fewer where no weight alone raises M any more.
        early_stopping: trees without a better measure on eval_set after which no more are grown.
        time_limit: seconds after which training ends anyway, with a ConvergenceWarning.
        engine, n_jobs: "threads", so many of them (None or -1 for all cores), or "serial"; the weights found on the
            same trees are the same bits.
        random_state: of which documents the packages choose their bins by, beyond 200,000; a number gives the same
            trees each time, None does too.
        callbacks: functions (step, standing) called after each step; one that returns True ends training.
        verbose: 1 shows progress on a terminal.
        constraints: an `Admissible` that `rank`, `score` and the choice on eval_set obey; training does not use it.
        normalize: as in `LargeMarginRanker`.

    Sparse features are made dense. Fitted: `trees_`, the trees times their weights as arrays, `weights_` (T,), α of
    those that are in the ranking, `history_`, every step with what was predicted and what was measured,
    `certificate_`: what M could still gain by the weight of one of these trees (`gap`). With eval_set `eval_score_`,
    and the ranker is the best on it of what the run passed through.
    """

    _saved: ClassVar[tuple[str, ...]] = (
        *Ranker._saved, "trees_", "weights_", "history_", "certificate_", "eval_score_",
    )  # fmt: skip
    _of_the_run: ClassVar[tuple[str, ...]] = ("callbacks", "engine", "n_jobs", "verbose")

    trees_: GradeTrees
    weights_: Floats
    history_: TreeHistory
    certificate_: TreeCertificate
    eval_score_: float

    def __init__(
        self,
        measure: AnyMeasure = "nDCG@10",
        *,
        trees: Literal["scikit-learn", "lightgbm", "measure"] = "scikit-learn",
        strategy: Literal["stage-wise", "leveraging", "both"] = "stage-wise",
        weight: str = "inside",
        interval: tuple[float, float] = (0.05, 0.2),
        window: float = 0.2,
        n_estimators: int | None = None,
        num_leaves: int = 10,
        min_child_samples: int = 20,
        passes: int = 20,
        early_stopping: int = 50,
        time_limit: float | None = None,
        engine: Literal["threads", "serial"] = "threads",
        n_jobs: int | None = None,
        random_state: Seed = None,
        callbacks: Sequence[TreeCallback] = (),
        verbose: int = 0,
        constraints: Admissible | None = None,
        normalize: Normalize = None,
    ) -> None:
        self.measure = measure
        self.trees = trees
        self.strategy = strategy
        self.weight = weight
        self.interval = interval
        self.window = window
        self.n_estimators = n_estimators
        self.num_leaves = num_leaves
        self.min_child_samples = min_child_samples
        self.passes = passes
        self.early_stopping = early_stopping
        self.time_limit = time_limit
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callbacks = callbacks
        self.verbose = verbose
        self.constraints = constraints
        self.normalize = normalize

    def _fit(self, queries: Queries, weights: Floats, evaluation: Queries | None) -> None:
        self._check_options()
        if queries.n_documents < 2:
            raise DataError("training cannot learn an order because there is 1 sample; give two documents or more")
        measure, weighing = parse(self.measure), self._weighing()
        arranged = canonical(queries, weights)
        arranged = arranged.select(np.flatnonzero(arranged.weights > 0))
        problem = MeasureObjective.of(measure, arranged)
        parts = [_dense(taken(arranged.features, arranged.rows))]
        parts += [] if evaluation is None else [_dense(evaluation.features)]
        documents = TrainingDocuments(np.concatenate(parts) if evaluation is not None else parts[0], problem)
        with (
            self._threads() as threads,
            told(self.verbose, 1, self._rounds(evaluation is not None), repr(measure)) as progress,
        ):
            size = Size(
                self.num_leaves, self.min_child_samples, weighing.high, seed_of(self.random_state), threads or 0
            )
            grower = load(GROWERS[self.trees]).of(documents, size)
            plan = Plan(
                self._rounds(evaluation is not None),
                self.early_stopping,
                self.strategy != "leveraging",
                0 if self.strategy == "stage-wise" else self.passes,
            )
            judge = None if evaluation is None else self._judge(evaluation)
            clock = Clock.started(self.time_limit, self.callbacks)
            run = Run(problem, grower, weighing, plan, judge, progress)
            now, stop = trained(run, len(documents.features), clock)
            self._keep(run, now, stop, clock)
        stop = self.certificate_.stop
        if stop is TreeStop.TIME:
            warnings.warn(
                f"training stopped before all was grown and weighed ({self.certificate_}); raise time_limit",
                ConvergenceWarning,
                stacklevel=4,
            )
        if stop is TreeStop.INTERRUPTED:
            raise Interrupted("training was interrupted; the ranker holds the trees so far")

    def _keep(self, run: Run, now: EnsembleState, stop: TreeStop, clock: Clock) -> None:
        kept = [(tree, weight) for tree, weight in zip(now.trees, now.weights, strict=True) if weight != 0]
        trees = [tree for tree, _ in kept]
        self.weights_ = np.array([weight for _, weight in kept], dtype=np.float64)
        self.trees_ = joined(trees, self.weights_, self.n_features_in_)
        self.history_ = TreeHistory.of(clock.steps)
        self.certificate_ = certified(run.problem, trees, now.scores, stop)
        if hasattr(self, "eval_score_"):
            del self.eval_score_
        if run.judge is not None:
            self.eval_score_ = run.rated(now).judged

    def _weighing(self) -> TreeWeightSearch:
        return TreeWeightSearch.named(self.weight, self.interval, self.window)

    def _rounds(self, judged: bool) -> int:
        return (JUDGED if judged else ROUNDS) if self.n_estimators is None else self.n_estimators

    def _judge(self, evaluation: Queries) -> Callable[[Floats], float]:
        """The measure on the evaluation queries, as `score` has it."""
        deployment = self._deployment(evaluation)
        return lambda scores: float(evaluate(evaluation, deployment.places(scores), self.measure).mean())

    @contextmanager
    def _threads(self) -> Iterator[int | None]:
        """Within this block no more threads than asked for, None for all cores."""
        limit = 1 if self.engine == "serial" else None if self.n_jobs in (None, -1) else self.n_jobs
        if limit is None:
            yield None
            return
        from threadpoolctl import threadpool_limits

        with at_most(limit), threadpool_limits(limit, user_api="openmp"):
            yield limit

    def _as_graph(self) -> Nodes:
        trees, none = self.trees_, np.zeros(1, np.int64)  # the baseline is one leaf more
        feature = np.append(trees.feature, -1).astype(np.int64)
        left, right = (np.append(child, none).astype(np.int64) for child in (trees.left, trees.right))
        roots = np.append(trees.roots, trees.feature.size)
        return Nodes(feature, np.append(trees.number, trees.baseline), left, right, roots, trees.n_features)

    def _scores(self, features: Any) -> Floats:
        if self.trees_.n_features != features.shape[1]:
            raise DataError(f"trees_ are not of {features.shape[1]} features; fit again")
        with self._threads():
            return np.asarray(self.trees_.raw(features)[:, 0])

    def _check_options(self) -> None:
        check_settings(**self.get_params(deep=False))
        self._weighing()

    def _check_params(self) -> None:
        super()._check_params()
        self._check_options()

    def _check_learned(self) -> None:
        trees, weights = getattr(self, "trees_", None), getattr(self, "weights_", None)
        if not (type(trees) is GradeTrees and trees.baseline.size == 1 and trees.n_features == self.n_features_in_):
            raise ModelError(f"trees_ is missing, or holds no trees of {self.n_features_in_} features.")
        if not (isinstance(weights, np.ndarray) and weights.dtype == np.float64 and weights.ndim == 1):
            raise ModelError("weights_ is missing, or no vector of numbers.")
        if max(weights.size, 1) != trees.roots.size or not np.isfinite(weights).all():
            raise ModelError("weights_ are not one finite number a tree.")
        if not isinstance(getattr(self, "history_", None), TreeHistory):
            raise ModelError("history_ is missing or is no history of trees.")
        if not isinstance(getattr(self, "certificate_", None), TreeCertificate):
            raise ModelError("certificate_ is missing or is no certificate of trees.")


def _dense(features: Any) -> Any:
    return features.toarray() if is_sparse(features) else features
