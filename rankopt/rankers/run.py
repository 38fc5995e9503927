"""What all fits share: callbacks and progress display, checkpoint, and warnings at the end of training."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from inspect import signature
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from formulations.arrays import Floats
from formulations.errors import InvalidProblemError
from rankopt.data.queries import Queries
from rankopt.engines import ended
from rankopt.errors import DataError, MasterProblemError, ModelError, NoProgressWarning, WorseThanInitWarning
from rankopt.losses.margin import Nonconvex
from rankopt.losses.oracle_positional import PositionalOracle
from rankopt.losses.regret import RegretBound
from rankopt.optimize.annealing import Annealed
from rankopt.optimize.certificate import Certificate, Stop, check_saved
from rankopt.optimize.concave_convex import Judge, Method, Training, follow
from rankopt.optimize.least_squares import largest_magnitudes
from rankopt.optimize.objective import Objective
from rankopt.persistence.checkpoint import Checkpoint, identity

Found = TypeVar("Found")


@dataclass(frozen=True)
class TrainingRun:
    """One fit of a ranker: its callbacks, with the display of progress, and its checkpoint, locked."""

    ranker: Any
    callbacks: tuple[Callable[..., bool | None], ...]
    checkpoint: Checkpoint | None

    def resume(
        self, read: Callable[[Any], Found | None], queries: Queries, weights: Floats, start: Floats, judged: bool
    ) -> Found | None:
        """The stored state of an earlier run of the same problem, None without one. read: from stored data to a state,
        None for invalid data."""
        if self.checkpoint is None:
            return None
        ranker = self.ranker
        params, names = ranker.get_params(deep=False), ranker._content(queries)
        matters = {name: value for name, value in params.items() if name not in ranker._of_the_run}
        problem = identity(type(ranker).__name__, matters, queries, names, weights, start, judged)
        parameters = signature(type(ranker)).parameters.values()
        defaults = {one.name for one in parameters if repr(params[one.name]) == repr(one.default)}
        return self.checkpoint.found(problem, read, defaults)

    def store(self, state: Callable[[], Any], over: bool) -> None:
        """Write the plain data that `state` returns, if it is due or the run is over."""
        if self.checkpoint is not None:
            self.checkpoint.write(state, over)


@contextmanager
def training_run(ranker: Any, engine: Any = None) -> Iterator[TrainingRun]:
    """A run of `fit`. At its end the progress display is closed, the checkpoint folder unlocked, and the engine shut
    down if the ranker names it by a string."""
    checkpoint = ranker.checkpoint
    checkpoint = checkpoint if isinstance(checkpoint, Checkpoint | None) else Checkpoint(checkpoint)
    with (
        nullcontext() if engine is None else ended(engine, isinstance(ranker.engine, str)),
        shown(ranker.verbose) as progress,
        nullcontext() if checkpoint is None else checkpoint.claimed(),
    ):
        yield TrainingRun(ranker, (*ranker.callbacks, *progress), checkpoint)


def follow_path(
    estimator: Any, objective: Objective, method: Method, lams: Sequence[float], judge: Judge | None
) -> Iterator[Training]:
    """A run for each λ, with the limits, callbacks and display of the estimator; see `follow`."""
    with ended(objective.risk.engine, isinstance(estimator.engine, str)), shown(estimator.verbose) as progress:
        limits = estimator.max_iter, estimator.time_limit, (*estimator.callbacks, *progress)
        yield from follow(objective, method, objective.start, lams, estimator.tol, limits, judge)


def store_outcome(estimator: Any, outcome: Training | Annealed, lam: float) -> None:
    """Store what a run leaves besides its weights."""
    estimator.certificate_, estimator.history_ = outcome.certificate, outcome.history
    estimator.n_iter_, estimator.lam_ = len(outcome.history), lam
    store_score(estimator, outcome.judged)


def store_score(estimator: Any, judged: float | None) -> None:
    """Store the value on eval_set; without one, none is left of an earlier fit."""
    vars(estimator).pop("best_score_", None)
    if judged is not None:
        estimator.best_score_ = judged


def check_saved_run(ranker: Any, row: type[Any], layout: tuple[str, ...]) -> None:
    """Raise ModelError unless a loaded ranker has what `store_outcome` stores, and a w₀ (see `check_saved`)."""
    check_saved(ranker, row, layout)
    if getattr(ranker, "n_iter_", None) != len(ranker.history_):
        raise ModelError("n_iter_ does not count the steps of history_.")
    if np.shape(getattr(ranker, "w0_", 0.0)) != ranker._coef_shape():
        raise ModelError("w0_ is missing or has another shape than coef_.")


CURES = {
    Stop.ITERATIONS: "raise max_iter or time_limit",
    Stop.TIME: "raise max_iter or time_limit",
    Stop.STALLED: "scale the features",
    Stop.MASTER: "take another master (a checkpoint goes on with it), scale the features",
}
"""Remedies for an open gap, in addition to a larger lam or tol."""


NOTHING = 1e-12
"""A risk, or a gap, of this much or less is nothing but rounding: losses are in units of the measure, about 1."""


def cures_at_start(bound: Any, parts: Sequence[RegretBound], flat: bool) -> str:
    """What helps where the optimum is at w₀, of what is not done already. parts: the regrets that are bounded, of which
    those over positions may have position weights beyond the measure's k. flat: see `is_flat`."""
    cures = [] if flat else ["a smaller lam"]
    if bound != "nonconvex" and not isinstance(bound, Nonconvex):
        cures.append("bound='nonconvex'")
    if any(_goes_on(part) for part in parts) and not (flat and cures):
        cures.append("position weights cut at the measure's k")
    return f"try {' or '.join(cures or ['another w0', 'other features'])}"


def loosened(w: Floats, box: Floats | None) -> str:
    """What helps where every weight is at a limit of the box (2, d); empty elsewhere."""
    at_limits = box is not None and bool((w == box).any(axis=0).all())
    return "coef_bounds hold all weights at their limits; loosen coef_bounds" if at_limits else ""


def is_flat(outcome: Training, objective: Objective) -> bool:
    """Whether the planes found prove that no smaller lam lowers the objective at w₀ by `FALL` of it."""
    planes, count = outcome.state.planes, np.ones(len(outcome.state.planes.references))
    lam = SMALLER * min(objective.lam, objective.natural_lam(planes, count))
    if lam < SMALLEST:
        return True
    if type(objective) is not Objective:
        return False
    easier, alpha = replace(objective, lam=lam, ends=None), outcome.state.alpha
    least = (1.0 - FALL) * outcome.certificate.primal
    if easier.dual_bound(planes.slopes, planes.heights, alpha)[1] >= least:
        return True  # the duals of the run prove it
    try:
        return easier.solve_master(planes, count, alpha, precision=0.02 * FALL).bound >= least
    except MasterProblemError:
        return False


SMALLER, FALL, SMALLEST = 1e-2, 0.05, 1e-200


def _goes_on(part: RegretBound) -> bool:
    k = part.measure.cutoff
    return (
        k is not None
        and part.feature_map is PositionalOracle
        and bool(part.position_weights.weights(k + 1, part.measure)[k] > 0)
    )


def warn_of_outcome(
    outcome: Training, objective: Objective, cures_at_start: Callable[[bool], str], stacklevel: int = 5
) -> None:
    """Warn of how the run ended, if there is something to warn of. cures_at_start: from whether the objective is flat
    to what helps. stacklevel: frames up to the user's, 5 from a method that `fit` calls."""
    proved = outcome.certificate
    if proved.at_start and proved.stop is Stop.GAP and outcome.judged is None and proved.primal > NOTHING:
        cure = loosened(outcome.w, objective.box) or cures_at_start(is_flat(outcome, objective))
        text = f"the optimum is at w0, so the ranker orders as w0 does: {cure}"
        warnings.warn(text, NoProgressWarning, stacklevel=stacklevel)
    warn_of_gap(outcome, stacklevel + 1)


def warn_of_gap(outcome: Training, stacklevel: int = 5) -> None:
    """Warn of a run that ended before its gap closed."""
    proved = outcome.certificate
    if proved.stop in CURES and proved.gap > NOTHING:
        failure = f": {outcome.failure}" if outcome.failure else ""
        warnings.warn(
            f"training stopped before the gap closed ({proved}){failure}; {CURES[proved.stop]}, enlarge lam or accept "
            "a larger tol",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )


def warn_best_at_start(proved: Certificate, judged: float | None, cure: str, stacklevel: int) -> None:
    """Warn where nothing that training passed through was better on eval_set than the start w₀."""
    if proved.at_start and judged is not None and proved.stop is not Stop.INTERRUPTED:
        text = f"the start w0 was best on eval_set: training did not improve it; try {cure} or other features"
        warnings.warn(text, NoProgressWarning, stacklevel=stacklevel)


def warn_below_start(values: Callable[[Floats], Floats], w: Floats, start: Floats) -> None:
    """Warn where the training queries are ordered worse by w than by the start, by more than two standard errors of
    the mean difference: the bound fell, and the measure with it. values: from w to the measure (m,) of each query."""
    if np.array_equal(w, start) or not start.any():
        return
    before, after = values(start), values(w)
    lost = (before - after)[~np.isnan(before - after)]
    if lost.size > 1 and lost.mean() > 2.0 * lost.std(ddof=1) / np.sqrt(lost.size):
        warnings.warn(
            f"the measure on the training queries is {after[~np.isnan(after)].mean():.4f}, below the "
            f"{before[~np.isnan(before)].mean():.4f} of the start w0: raise lam, which keeps the result nearer to w0, "
            "or choose another bound or other position weights; an eval_set may choose w0 itself",
            WorseThanInitWarning,
            stacklevel=5,
        )


EVERY = 0.125  # seconds between two changes of what is shown
PERIOD = 10.0  # seconds between two lines where standard error is no terminal


@contextmanager
def shown(verbose: int) -> Iterator[list[Callable[[Any, Any], None]]]:
    """Callbacks that show a step in one line while training runs: objective, bound and gap, or σ and the gradient of
    what has no bound, or the measure itself; a line every ten seconds where standard error is no terminal. The last
    step is printed at the end. None if verbose is 0."""
    if not verbose:
        yield []
        return
    latest: list[Any] = []

    def note(step: Any, state: Any) -> None:
        latest[:] = [step]

    try:
        with _progress() as display:
            yield [display, note]
    finally:
        if latest:
            print(latest[0], file=sys.stderr, flush=True)


@contextmanager
def _progress() -> Iterator[Callable[[Any, Any], None]]:
    ipython = sys.modules.get("IPython")
    if ipython is not None and type(ipython.get_ipython()).__name__ == "ZMQInteractiveShell":  # with rich display
        cell = sys.modules["IPython"].display.display(_Text("training ..."), display_id=True)
        yield _shown_every(EVERY, lambda step: cell.update(_Text(str(step))), -math.inf)
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _shown_every(PERIOD, lambda step: print(step, file=sys.stderr, flush=True), perf_counter())
        return
    with Live(Text("training ..."), console=console, refresh_per_second=8, transient=True) as live:
        yield lambda step, state: live.update(Text(str(step)))


def _shown_every(seconds: float, show: Callable[[Any], None], shown_at: float) -> Callable[[Any, Any], None]:
    """A callback that shows a step at most once in so many seconds."""

    def display(step: Any, state: Any) -> None:
        nonlocal shown_at
        if perf_counter() - shown_at >= seconds:
            shown_at = perf_counter()
            show(step)

    return display


class _Text(str):
    """Text without quotes around it."""

    __repr__ = str.__str__


FAR = 1e100  # features beyond this are what a problem with numbers that are too large comes from


@contextmanager
def training_data(queries: Queries) -> Iterator[None]:
    """DataError for a single document; and, while a ranker is trained, of the feature that makes the numbers of a
    problem too large, in place of the error of the problem."""
    if queries.n_documents < 2:
        raise DataError("training cannot learn an order because there is 1 sample; give two documents or more")
    try:
        yield
    except (InvalidProblemError, OverflowError) as error:
        largest = largest_magnitudes(queries.features)
        worst = int(largest.argmax())
        if not largest[worst] > FAR:
            raise
        name = f"feature {worst}" if queries.feature_names is None else f"feature {queries.feature_names[worst]!r}"
        raise DataError(
            f"training cannot go on because {name} reaches {largest[worst]:.3g} in magnitude, and products with it "
            f"leave double precision ({error}); divide it by {largest[worst]:.0e}, and others of that size too"
        ) from error
