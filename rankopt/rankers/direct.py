"""A linear ranker that maximizes the measure by coordinate ascent with exact line search [paper 3, DirectRank].

The best path becomes the model, or the mean of all paths does. The certificate is of local optimality along lines:
`verify` checks it by enumeration, and `plot_line` draws the measure along one line.
"""

# mypy: allow-subclassing-any
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from formulations.arrays import Floats
from formulations.display import Axes
from formulations.parallel import at_most, threads
from formulations.typing import SupportsArray
from rankopt.ascent import COMBINATIONS, ORDERS
from rankopt.ascent.ascent import (
    AscentLimits,
    AscentPath,
    AscentProblem,
    AscentRun,
    Directions,
    Move,
    Round,
    check_directions,
    climbed,
)
from rankopt.ascent.certificate import Verified, as_data, false_claim, paths_of, prove_epsilon, verify_directions
from rankopt.constraints.admissible import Admissible
from rankopt.data.canonical_order import canonical
from rankopt.data.queries import Queries
from rankopt.data.typing import Ids, Sizes, Values
from rankopt.engines import Threads, get_engine
from rankopt.errors import ModelError, OptionError
from rankopt.fitting import warn_interrupted
from rankopt.optimize.certificate import DIRECTIONS, Certificate, History, Stop, check_saved
from rankopt.optimize.line_search import LineSearch, Point
from rankopt.options import POSITIVE, RUN, Interval, Rules, check_options, seed_from
from rankopt.rankers import typing as types
from rankopt.rankers.base import Ranker
from rankopt.rankers.inputs import measure_for, query_weights, read_queries
from rankopt.rankers.linear import LinearRanker
from rankopt.rankers.run import TrainingRun, store_score, training_data, training_run, warn_best_at_start
from rankopt.rankers.starts import begun_at, check_start, start_weights
from rankopt.sweeps.step_function import draw_line

AT_ONCE = (Stop.TIME, Stop.INTERRUPTED)
"""Ends after which no round of lines is searched for the sake of the certificate: it holds what was tried anyway."""


def combine_paths(climb: AscentProblem, done: AscentRun, combine: str) -> tuple[Floats, Certificate, Floats, Floats]:
    """w, its certificate, and the ends of the paths (K, d) with the measure there (K,)."""
    search, paths = climb.search, done.paths
    ends = [path.w if path.chosen is None else path.chosen for path in paths]
    values = np.array([search.value(w) for w in ends])
    if combine == "best" or len(paths) == 1:
        rated = values if paths[0].chosen is None else [path.rating for path in paths]
        best = int(np.argmax(rated))
        w, path = ends[best], paths[best]
        known = path if np.array_equal(w, path.w) else None
    else:
        widths = [search.deviation(end) or 1.0 for end in ends]
        w, known = np.mean([end / width for end, width in zip(ends, widths, strict=True)], axis=0), None
    value = search.value(w)
    listed, excess, stop = _prove(climb, w, value, known, done.stop)
    features = np.array([v for v in listed if isinstance(v, int)], dtype=np.int64)
    vectors = np.array([v for v in listed if not isinstance(v, int)], dtype=np.float64).reshape(-1, w.size)
    epsilon = max(excess, 0.0)
    parts = {"epsilon": epsilon, "features": features, "vectors": vectors}
    at_start = bool(np.array_equal(w, climb.w0))
    certificate = Certificate("directions", value, value + epsilon, stop, at_start, parts)
    return w, certificate, np.array(ends), values


def _prove(
    climb: AscentProblem, w: Floats, value: float, known: AscentPath | None, stop: Stop
) -> tuple[list[int | Floats], float, Stop]:
    """The directions that were tried from w, how far above the measure there the best of their lines reached, and why
    the ascent ended. Of a path that was left elsewhere all coordinates are searched for that."""
    if known is not None and not known.moved and (known.over or stop in AT_ONCE):
        listed = climb.listed(known)
        return (listed if known.over else listed[: known.index]), known.excess, stop
    if stop in AT_ONCE:
        return [], 0.0, stop
    listed = [*range(w.size)] if known is None else climb.listed(known)
    try:
        return listed, prove_epsilon(climb.search, w, value, listed), stop
    except KeyboardInterrupt:
        return [], 0.0, Stop.INTERRUPTED


class DirectRanker(LinearRanker):
    """Linear ranker trained by coordinate ascent on the measure with exact line search [paper 3].

    It maximizes M(w) = Σ_q v_q measure_q(X_q w) over the queries on which the measure is defined; v_q is 1/m unless
    queries have weights. Along a line t -> w + t v the measure is a step function. The line search finds all its
    breakpoints, hence the best t. The search ends when no direction of a full round improves M. That point is not a
    global optimum, and no useful bound of the optimum is known; `certificate_` states what is proved.

    Parameters
    ----------
    **Start here**

    measure : default "nDCG@10"
        A measure of `rankopt.measures` or its notation, or a custom one (see `docs/extend.md`).
    init : default "smooth"
        The start: "smooth" (`SmoothRanker(measure)`, or nDCG@10 if the measure cannot be smoothed on these
        queries), "ridge" (as w0 of `LargeMarginRanker`), "zeros", a linear ranker, of which a clone is fitted
        on the same queries, or an array (d,).
    constraints : default None
        An `Admissible` for `rank` and `score`; training ignores it.
    normalize, missing : defaults None, "error"
        As in `LargeMarginRanker`.

    **Model**

    aggregate : default "mean"
        "mean" of the ends of the paths, each scaled to scores of deviation 1, or the "best" of them, on
        eval_set if passed, else on the training queries.
    lam : default 0.0
        λ >= 0 of the regularizer: the objective is M(w) - (λ/2) Σ_j σ_j² (w_j - w0_j)², σ_j the deviation of
        feature j within queries. With λ > 0 the best t is exact, and `step_rule` is not used.

    **Solver**

    selection : default "cyclic"
        "cyclic", a step along each direction that improves M, in turn; "greedy", a step along the best
        direction.
    directions : default ("coordinates",)
        Of each round, any of "coordinates" (the features), "powell" (the change of w in the last round), and
        `rankopt.rankers.RandomDirections(count)` (drawn anew).
    step_rule : default "window"
        The choice of t: "window", the t with the best neighborhood; "middle" of the best interval; or
        "plackett-luce", the point of that interval at which the ideal order is most likely.
    n_restarts : default 1
        The number of paths: the first from the start, the others from perturbed starts. engine="threads" runs
        several in parallel.
    tol : default 1e-06
        The smallest improvement of a step.
    random_state : default None
        Seed of restarts and draws. The model is reproducible with None too.
    step_window : default 0.2
        The width of the neighborhood of "window", as a fraction of the standard deviation of the scores.

    **Run**

    max_iter, time_limit : defaults 100, None
        Maximum rounds of each path and seconds after the start was computed; exceeding them raises a
        ConvergenceWarning.
    engine, n_jobs, checkpoint, verbose : defaults "threads", None, None, 0
        As in `LargeMarginRanker`.
    callbacks : default ()
        Functions (round, paths) called after each round with a `rankopt.ascent.ascent.Round`; training ends if
        one returns True.

    Notes
    -----
    Fitted: `coef_`; `certificate_`, of the listed directions; `history_`, the accepted steps (`history_.plot()`);
    `n_iter_`, rounds of the longest path; `w0_`, the scaled start; `path_coefs_` (restarts, d) and `path_values_`, the
    ends of the paths and their measure. With eval_set each path returns its best point on it, the start included, and
    `best_score_` is that of `coef_`.
    """

    _saved: ClassVar[tuple[str, ...]] = (
        *LinearRanker._saved, "certificate_", "history_", "n_iter_", "w0_", "path_coefs_", "path_values_",
        "best_score_",
    )  # fmt: skip
    _linear_in_gains: ClassVar[bool] = True

    _rules: ClassVar[Rules] = {
        **RUN, "lam": (Interval(0, 1e100),),
        "selection": ORDERS, "aggregate": COMBINATIONS, "step_rule": get_args(Point),
        "step_window": (POSITIVE,), "n_restarts": (Interval(1, 2**31, integer=True),),
    }  # fmt: skip

    certificate_: Certificate
    history_: History
    n_iter_: int
    w0_: Floats
    path_coefs_: Floats
    path_values_: Floats
    best_score_: float
    _learned_from: tuple[Queries, Floats]

    def __init__(
        self,
        measure: types.AnyMeasure = "nDCG@10",
        *,
        init: types.DirectStartName | Ranker | SupportsArray | Sequence[float] = "smooth",
        selection: Literal["cyclic", "greedy"] = "cyclic",
        directions: Sequence[Any] = ("coordinates",),
        step_rule: Point = "window",
        step_window: float = 0.2,
        n_restarts: int = 1,
        aggregate: Literal["mean", "best"] = "mean",
        lam: float = 0.0,
        tol: float = 1e-6,
        max_iter: int = 100,
        time_limit: float | None = None,
        random_state: types.Seed = None,
        engine: types.AnyEngine = "threads",
        n_jobs: int | None = None,
        callbacks: Sequence[Callable[[Round, tuple[AscentPath, ...]], bool | None]] = (),
        checkpoint: types.AnyCheckpoint = None,
        verbose: int = 0,
        constraints: Admissible | None = None,
        normalize: types.Normalize = None,
        missing: types.Missing = "error",
    ) -> None:
        self.measure = measure
        self.init = init
        self.selection = selection
        self.directions = directions
        self.step_rule = step_rule
        self.step_window = step_window
        self.n_restarts = n_restarts
        self.aggregate = aggregate
        self.lam = lam
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.random_state = random_state
        self.engine = engine
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.constraints = constraints
        self.normalize = normalize
        self.missing = missing

    def _fit(self, queries: Queries, weights: Floats, evaluation: Queries | None) -> None:
        self._check_params()
        engine = get_engine(self.engine, None if self.n_jobs == -1 else self.n_jobs)
        judge = None if evaluation is None else self._judge(evaluation)
        with training_data(queries), training_run(self, engine) as run:
            arranged = canonical(queries, weights / weights.max())
            search = LineSearch.from_measure(self.measure, arranged, engine=engine)
            start = start_weights(self, queries, weights, arranged)
            begun = begun_at(search, start, int(self.n_restarts), seed_from(self.random_state))
            climb = AscentProblem(
                search, Directions.from_spec(self.directions, search.deviations), self.selection == "greedy",
                self.step_rule, float(self.step_window), float(self.lam), begun[0][0], float(self.tol),
            )  # fmt: skip
            done = self._climbed(climb, begun, queries, weights, judge, run)
            self._keep(climb, done, begun[0][0], judge)
        self._learned_from = queries, weights
        proved = self.certificate_
        warn_best_at_start(proved, getattr(self, "best_score_", None), "another init", 5)
        if proved.stop in (Stop.ITERATIONS, Stop.TIME):
            warnings.warn(
                f"training stopped while some direction may still lead higher ({proved}); raise max_iter or time_limit",
                ConvergenceWarning,
                stacklevel=4,
            )
        if proved.stop is Stop.INTERRUPTED:
            warn_interrupted("weights")

    def _climbed(
        self,
        climb: AscentProblem,
        begun: list[tuple[Floats, dict[str, Any]]],
        queries: Queries,
        weights: Floats,
        judge: Callable[[Floats], float] | None,
        run: TrainingRun,
    ) -> AscentRun:
        """The paths followed to their ends, from where an earlier run of the same problem left them."""
        paths, spent, search = None, 0.0, climb.search
        found = run.resume(
            lambda stored: paths_of(stored, search.features), queries, weights, climb.w0, judge is not None
        )
        if found is not None and len(found[0]) == len(begun):
            (paths, spent), false = found, false_claim(found[0], search)
            if false is not None and run.checkpoint is not None:
                raise OptionError(f"checkpoint = {run.checkpoint.folder} cannot be resumed because {false}; remove it")
        if paths is None:
            paths = tuple(AscentPath.started(i, w, search.value(w), drawn) for i, (w, drawn) in enumerate(begun))
        workers = 1
        if isinstance(search.engine, Threads):  # other engines share out the shards of a path
            with at_most(search.engine.workers):
                workers = min(threads(), len(paths))
        if workers > 1:  # one path per thread, without nested threads
            climb = replace(climb, search=replace(search, engine=get_engine("serial")))
        limits = AscentLimits(self.max_iter, self.time_limit, workers, spent)

        def keep(paths: tuple[AscentPath, ...], seconds: float, over: bool) -> None:
            run.store(lambda: as_data(paths, seconds), over)

        return climbed(climb, paths, limits, judge, run.callbacks, keep)

    def _keep(self, climb: AscentProblem, done: AscentRun, w0: Floats, judge: Callable[[Floats], float] | None) -> None:
        if done.stop is Stop.INTERRUPTED and not any(path.lines for path in done.paths):
            raise KeyboardInterrupt("interrupted before the first line search was done")
        self.coef_, self.certificate_, self.path_coefs_, self.path_values_ = combine_paths(climb, done, self.aggregate)
        self.history_ = History.from_rows(Move, [move for path in done.paths for move in path.moves])
        self.n_iter_ = max(path.round + (path.index > 0 and not path.over) for path in done.paths)
        self.w0_ = w0
        store_score(self, None if judge is None else judge(self.coef_))

    def plot_line(
        self,
        direction: int | str | Any,
        X: types.AnyRows | None = None,
        y: Values | None = None,
        *,
        qid: Ids | None = None,
        group: Sizes | None = None,
        query_weight: types.Weights | None = None,
        point: Point | None = None,
        axes: Axes | None = None,
    ) -> Axes:
        """Plot the step function t -> M(coef_ + t v), the current weights (t = 0) and the interval that a line search
        chooses [paper 3, Figure 1].

        direction: the index or the name of a feature, or v (d,). X, y, qid, group, query_weight: as in `fit`; by
        default the training queries, which a loaded model does not store. point: as in `DirectRanker`; default: that
        of the ranker. Returns the axes of matplotlib.
        """
        check_is_fitted(self, "coef_")
        queries, weights = self._queries_and_weights(X, y, qid, group, query_weight)
        search = LineSearch.from_measure(measure_for(self, queries), queries, weights)
        names = self.get_feature_names_out().tolist()
        if isinstance(direction, str):
            if direction not in names:
                raise OptionError(f"direction = {direction!r} is no feature; give its number, or one of the names")
            direction = names.index(direction)
        about, at = "t", 0.0
        if isinstance(direction, int | np.integer):
            if isinstance(direction, bool) or not 0 <= direction < len(names):
                raise OptionError(f"direction must be a feature from 0 to {len(names) - 1}; got {direction}.")
            about, at = f"weight of {names[direction]}", float(self.coef_[direction])
        rule = self.step_rule if point is None else point
        line = search.along(self.coef_, direction, rule, self.step_window)
        return draw_line(search.steps(self.coef_, direction), line, at, str(self.measure), about, axes)

    def verify(
        self,
        X: types.AnyRows | None = None,
        y: Values | None = None,
        *,
        qid: Ids | None = None,
        group: Sizes | None = None,
        query_weight: types.Weights | None = None,
        only: int | None = None,
        seed: int = 0,
    ) -> Verified:
        """Whether `certificate_` is true of `coef_` on the training queries, by enumeration that shares nothing with
        the sweeps: all crossings of all pairs, the measure between each two (`rankopt.ascent.verify_directions`).

        Data as in `plot_line`. only: so many directions of the list, drawn with this seed: it takes O(n³) for a query
        of n documents and a direction. The answer is true where the certificate holds.
        """
        check_is_fitted(self, "coef_")
        queries, weights = self._queries_and_weights(X, y, qid, group, query_weight)
        measure = measure_for(self, queries)
        return verify_directions(self.certificate_, self.coef_, queries, measure, weights, only, seed)

    def _queries_and_weights(self, X: Any, y: Any, qid: Any, group: Any, query_weight: Any) -> tuple[Queries, Floats]:
        """The queries passed, else those of `fit`, with their weights."""
        if X is None:
            if not hasattr(self, "_learned_from"):
                raise OptionError("the training queries are not stored in a loaded model; pass X, y and qid")
            return self._learned_from
        queries = read_queries(self, X, y, qid=qid, group=group, attributes=None, reset=False)
        return queries, query_weights(queries, query_weight)

    def _check_params(self) -> None:
        super()._check_params()
        check_options(self)
        check_directions(self.directions)
        check_start(self.init)
        seed_from(self.random_state, drawn=False)

    def _check_loaded(self) -> None:
        super()._check_loaded()
        check_saved(self, Move, DIRECTIONS)
        (d,), proved = self._coef_shape(), self.certificate_
        if proved.vectors.shape[1] != d or np.any(proved.features >= d):
            raise ModelError("certificate_ is no certificate of directions of these features.")
        ends, values = np.shape(getattr(self, "path_coefs_", 0.0)), np.shape(getattr(self, "path_values_", 0.0))
        if len(ends) != 2 or ends[1] != d or values != ends[:1]:
            raise ModelError("path_coefs_ and path_values_ are not the ends of paths.")

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        state.pop("_learned_from", None)  # data are not part of a model
        return state
