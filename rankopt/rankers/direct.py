"""A linear ranker that climbs the measure itself, line by exact line [paper 3, DirectRank]."""
# mypy: allow-subclassing-any

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from formulations.given import SupportsArray
from rankopt.ascent.certificate import DirectionCertificate
from rankopt.ascent.directions import Directions
from rankopt.ascent.kept import as_data, false_claim, paths_of
from rankopt.ascent.moves import Moves
from rankopt.ascent.path import AscentProblem, Path
from rankopt.ascent.paths import AscentRun, Limits, Round, climbed
from rankopt.data.canonical import canonical
from rankopt.engines import ended, engine_named
from rankopt.errors import DataError, Interrupted, ModelError, OptionError
from rankopt.optimize.certificate import Stop
from rankopt.optimize.line_search import LineSearch, Point
from rankopt.persistence.checkpoint import Checkpoint
from rankopt.rankers.base import Ranker
from rankopt.rankers.choices import AnyCheckpoint, AnyEngine, AnyMeasure, DirectStartName, Normalize, Seed
from rankopt.rankers.direct_end import combined, workers_of
from rankopt.rankers.direct_options import check_direct, seed_of
from rankopt.rankers.direct_starts import begun_at, start_weights
from rankopt.rankers.in_range import in_range
from rankopt.rankers.judged_mixin import EvaluationMixin
from rankopt.rankers.line_mixin import LineSearchMixin
from rankopt.rankers.linear import LinearRanker
from rankopt.rankers.progress import shown
from rankopt.rankers.resumed import CheckpointMixin
from rankopt.rankers.selection import FeatureSelectionMixin

if TYPE_CHECKING:
    from rankopt.constraints.admissible import Admissible
    from rankopt.data.queries import Queries

__all__ = ["DirectRanker"]

Floats = NDArray[np.float64]


class DirectRanker(LineSearchMixin, CheckpointMixin, EvaluationMixin, FeatureSelectionMixin, LinearRanker):
    """Maximises M(w) = Σ_q v_q measure_q(X_q w), v_q = 1/m unless queries have weights, over the queries on which the
    measure is defined: the measure itself, no bound of it.

    Along a line t -> w + t v the measure is a step function, all of whose jumping points are found, so that the best of
    all t is taken [paper 3]. Direction after direction, until none of a whole round leads higher. That end is no
    optimum over all w, and no useful bound of that optimum is known; what is proved stands in `certificate_`.

    Args:
        measure: any of `rankopt.measures`, or of your own (see `docs/adding.md` on lines), or its notation.
        start: where it begins: "smooth" (`SmoothRanker(measure)`; nDCG@10 in place of a measure that cannot be smoothed
            on these queries), "ridge" (as w0 of `LargeMarginRanker`), "zeros", a linear ranker, of which a clone is
            fitted on the same queries and which is so polished, or an array (d,).
        order: "cyclic", every direction in turn and a step wherever one leads higher; "greedy", the best of all
            directions for each step.
        directions: of each round, any of "coordinates" (the features), "powell" (by which the last round moved w), and
            `rankopt.rankers.Random(count)` (drawn anew).
        point: where to stand on a line: "window", the t whose surroundings are best, "middle" of the best interval,
            "plackett-luce", where in that the ideal order is most likely; window: the width of the surroundings, as a
            part of the deviation of the scores.
        restarts: how many paths there are in all: the first from the start, the others from places around it. engine
            "threads" follows several at once.
        combine: "mean" of the ends of the paths, each at scores of deviation 1, or the "best" of them: on eval_set
            where there is one, else on the training queries.
        lam: λ >= 0 of a pull to the start w0: what is climbed is M(w) - (λ/2) Σ_j σ_j² (w_j - w0_j)², σ_j the deviation
            of feature j inside queries; the best t is exact for that too, and `point` has no say.
        tol: what a step has to gain, at least.
        max_iter, time_limit: rounds of each path, and seconds, after which it ends anyway, with a ConvergenceWarning.
            The start is found first.
        random_state: of restarts and draws; a number gives the same weights each time, None does too.
        engine, n_jobs: as in `LargeMarginRanker`; the bits are the same.
        callbacks: functions (round, paths) called after each round, a `rankopt.ascent.paths.Round` and the paths; one
            that returns True ends training.
        checkpoint: as in `LargeMarginRanker`.
        verbose: 1 shows progress on a terminal.
        constraints: an `Admissible` that `rank` and `score` obey; training does not use it.
        normalize: as in `LargeMarginRanker`.

    Fitted: `coef_`; `certificate_`, a `DirectionCertificate`; `history_`, every accepted step (`history_.plot()`);
    `n_iter_`, rounds of the longest path; `w0_`, the start as it was scaled; `path_coefs_` (restarts, d) and
    `path_values_`, where the paths ended and the measure there. With eval_set a path ends where it was best on that,
    its start included, and `eval_score_` is that of `coef_`.
    """

    _saved: ClassVar[tuple[str, ...]] = (
        *LinearRanker._saved, "certificate_", "history_", "n_iter_", "w0_", "path_coefs_", "path_values_",
        "eval_score_",
    )  # fmt: skip
    _of_the_run: ClassVar[tuple[str, ...]] = ("callbacks", "checkpoint", "engine", "n_jobs", "verbose")

    certificate_: DirectionCertificate
    history_: Moves
    n_iter_: int
    w0_: Floats
    path_coefs_: Floats
    path_values_: Floats
    eval_score_: float

    def __init__(
        self,
        measure: AnyMeasure = "nDCG@10",
        *,
        start: DirectStartName | Ranker | SupportsArray | Sequence[float] = "smooth",
        order: Literal["cyclic", "greedy"] = "cyclic",
        directions: Sequence[Any] = ("coordinates",),
        point: Point = "window",
        window: float = 0.2,
        restarts: int = 1,
        combine: Literal["mean", "best"] = "mean",
        lam: float = 0.0,
        tol: float = 1e-6,
        max_iter: int = 100,
        time_limit: float | None = None,
        random_state: Seed = None,
        engine: AnyEngine = "threads",
        n_jobs: int | None = None,
        callbacks: Sequence[Callable[[Round, tuple[Path, ...]], bool | None]] = (),
        checkpoint: AnyCheckpoint = None,
        verbose: int = 0,
        constraints: Admissible | None = None,
        normalize: Normalize = None,
    ) -> None:
        self.measure = measure
        self.start = start
        self.order = order
        self.directions = directions
        self.point = point
        self.window = window
        self.restarts = restarts
        self.combine = combine
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

    def _fit(self, queries: Queries, weights: Floats, evaluation: Queries | None) -> None:
        check_direct(**self.get_params(deep=False))
        self._admissible()
        if queries.n_documents < 2:
            raise DataError("training cannot learn an order because there is 1 sample; give two documents or more")
        engine = engine_named(self.engine, None if self.n_jobs == -1 else self.n_jobs)
        kept = self._checkpoint()
        judge = None if evaluation is None else self._judge(evaluation)
        with (
            in_range(queries),
            ended(engine, isinstance(self.engine, str)),
            shown(self.verbose) as progress,
            nullcontext() if kept is None else kept.claimed(),
        ):
            arranged = canonical(queries, weights / weights.max())
            search = LineSearch.of(self.measure, arranged, engine=engine)
            start = start_weights(self, queries, weights, arranged)
            begun = begun_at(search, start, self.restarts, seed_of(self.random_state))
            climb = self._climb(search, begun[0][0])
            done = self._climbed(climb, begun, queries, weights, judge, progress, kept)
            self._keep(climb, done, begun[0][0], judge)
        self._learned_from = queries, weights
        proved = self.certificate_
        if proved.stop in (Stop.ITERATIONS, Stop.TIME):
            warnings.warn(
                f"training stopped while some direction may still lead higher ({proved}); raise max_iter or time_limit",
                ConvergenceWarning,
                stacklevel=4,
            )
        if proved.stop is Stop.INTERRUPTED:
            raise Interrupted("training was interrupted; the ranker holds the best weights so far")

    def _climb(self, search: LineSearch, w0: Floats) -> AscentProblem:
        directions = Directions.of(self.directions, search.deviations)
        greedy = self.order == "greedy"
        return AscentProblem(
            search, directions, greedy, self.point, float(self.window), float(self.lam), w0, float(self.tol)
        )

    def _climbed(
        self,
        climb: AscentProblem,
        begun: list[tuple[Floats, dict[str, Any]]],
        queries: Queries,
        weights: Floats,
        judge: Callable[[Floats], float] | None,
        progress: Sequence[Any],
        kept: Checkpoint | None,
    ) -> AscentRun:
        """The paths followed to their ends, from where an earlier run of the same problem left them."""
        paths, spent, search = None, 0.0, climb.search
        if kept is not None:
            of_run = self._of_run(queries, weights, climb.w0, judge is not None)
            found = kept.found(of_run, lambda run: paths_of(run, search.features), self._defaults())
            if found is not None and len(found[0]) == len(begun):
                (paths, spent), false = found, false_claim(found[0], search)
                if false is not None:
                    raise OptionError(f"checkpoint = {kept.folder} cannot be gone on from because {false}; remove it")
        if paths is None:
            paths = tuple(Path.started(i, w, search.value(w), drawn) for i, (w, drawn) in enumerate(begun))
        workers = workers_of(search.engine, len(paths))
        if workers > 1:  # a path a thread, and nobody beside it
            climb = replace(climb, search=replace(search, engine=engine_named("serial")))
        limits = Limits(self.max_iter, self.time_limit, workers, spent)

        def keep(paths: tuple[Path, ...], seconds: float, over: bool) -> None:
            if kept is not None:
                kept.write(lambda: as_data(paths, seconds), over)

        return climbed(climb, paths, limits, judge, (*self.callbacks, *progress, *self._each_step()), keep)

    def _tasks(self) -> int | None:
        return None

    def _reached(self, state: Sequence[Path]) -> dict[str, Any]:
        return {"coef_": max(state, key=lambda path: path.value).w}

    def _keep(self, climb: AscentProblem, done: AscentRun, w0: Floats, judge: Callable[[Floats], float] | None) -> None:
        if done.stop is Stop.INTERRUPTED and not any(path.lines for path in done.paths):
            raise KeyboardInterrupt("interrupted before the first line search was done")
        self.coef_, self.certificate_, self.path_coefs_, self.path_values_ = combined(climb, done, self.combine)
        self.history_ = Moves.of([move for path in done.paths for move in path.moves])
        self.n_iter_ = max(path.round + (path.place > 0 and not path.over) for path in done.paths)
        self.w0_ = w0
        if hasattr(self, "eval_score_"):
            del self.eval_score_
        if judge is not None:
            self.eval_score_ = judge(self.coef_)

    def _check_params(self) -> None:
        super()._check_params()
        check_direct(**self.get_params(deep=False))

    def _check_loaded(self) -> None:
        super()._check_loaded()
        d, proved = self.n_features_in_, getattr(self, "certificate_", None)
        if not isinstance(proved, DirectionCertificate) or proved.vectors.shape[1] != d or np.any(proved.features >= d):
            raise ModelError("certificate_ is missing or is no certificate of directions of these features.")
        if not isinstance(getattr(self, "history_", None), Moves):
            raise ModelError("history_ is missing or is no history of steps.")
        ends, values = np.shape(getattr(self, "path_coefs_", 0.0)), np.shape(getattr(self, "path_values_", 0.0))
        if len(ends) != 2 or ends[1] != d or values != ends[:1]:
            raise ModelError("path_coefs_ and path_values_ are not the ends of paths.")

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        state.pop("_learned_from", None)  # data are not part of a model
        return state
