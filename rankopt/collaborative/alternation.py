"""Alternate between the users' block and the items' block until both gaps are closed; return the best point.

The number of factors is fixed, or increased during the run. Where ‖Ψ‖₂ in the units of the
regularizer exceeds 1, some pair p, q with pᵀΨq < -1 is a direction along which J falls and which the present factors
lack; otherwise the global bound is attained. So the top singular pairs of the dual state are added until
none is left. A run can be stored as plain data and resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from formulations.arrays import Floats
from formulations.display import Axes
from rankopt.collaborative.global_bound import best_bound
from rankopt.collaborative.least_squares import balanced
from rankopt.collaborative.problem import Factors, ModelState
from rankopt.collaborative.singular_value import scaled_slopes, top_pairs
from rankopt.optimize.certificate import History, Stop


@dataclass(frozen=True)
class AlternationStep:
    """One round, 0 the start: J after it, the lower bounds of J over the users' and over the items' block, the measure
    on eval_set (NaN without one), and seconds since the start."""

    step: int
    primal: float
    users: float
    items: float
    judged: float
    seconds: float

    @property
    def bound(self) -> float:
        """The lower of the two bounds, not a global bound."""
        return min(self.users, self.items)

    axis: ClassVar[str] = "step"

    def __str__(self) -> str:
        gaps = ", ".join(f"{max(self.primal - bound, 0.0):.2g}" for bound in (self.users, self.items))
        return (
            f"step {self.step}: objective {self.primal:.6g}, absolute gaps {gaps} (users, items), {self.seconds:.1f} s"
        )

    @staticmethod
    def draw(history: History, axes: Axes, x: Floats) -> str:
        """J and the bounds of both blocks."""
        axes.plot(x, history.primal, label="objective")
        axes.plot(x, history.users, label="bound of the users' block")
        axes.plot(x, history.items, label="bound of the items' block")
        return "objective"


FINER = 4.0  # how much finer than the tolerance, and than the last round's gain, a block is solved
COARSE = 1e-2  # the coarsest relative gap of a block


@dataclass(frozen=True)
class Alternation:
    """tol: the relative gap of both blocks at which it ends. max_iter: rounds, time_limit: seconds after which it ends
    anyway. patience: rounds without a better measure on eval_set after which it ends. All apply to the full run."""

    tol: float = 1e-3
    max_iter: int = 100
    time_limit: float | None = None
    patience: int = 5


@dataclass(frozen=True, eq=False)
class AlternationResult:
    """best: the state of least J, or of best measure on eval_set, which is judged. now: the last one. spent: seconds
    of all parts of the run. begun: the round of the start of this part."""

    best: ModelState
    judged: float
    now: ModelState
    steps: tuple[AlternationStep, ...]
    stop: Stop | None
    spent: float
    begun: int = 0


def alternated(
    blocks: Any, settings: Alternation, begin: Callable[[], AlternationResult | ModelState],
    callbacks: Sequence[Callable[[AlternationStep, ModelState], bool | None]] = (),
    judge: Callable[[ModelState], float] | None = None, keep: Callable[[AlternationResult], None] | None = None,
) -> AlternationResult:  # fmt: skip
    """Run rounds of the blocks of a problem, `PlaneBlocks` or `Regression`, in which J never rises, from a state, or
    from an earlier part of the run. begin: a function that returns either, since a state
    is as large as the ratings and need not be referenced elsewhere. An interruption from the keyboard ends it as
    Stop.INTERRUPTED, in a callback too; before the first round is done there is nothing to keep, and it is raised."""
    at = _begun(begin(), judge)
    began = perf_counter() - at.spent
    interrupted = False
    while (stop := _over(at, settings, judge, interrupted)) is None:
        rounds = len(at.steps)
        try:
            at = _round(blocks, at, at.now if keep is None else at.now.apart(), settings, judge, began)
        except KeyboardInterrupt:
            if len(at.steps) == 1:
                raise
            interrupted = True
            continue
        if len(at.steps) == rounds:  # nothing but a proof that the gaps were closed
            continue
        try:
            answers = [callback(at.steps[-1], at.now) for callback in callbacks]
            if keep is not None:
                keep(at)
        except KeyboardInterrupt:
            interrupted = True
            continue
        if any(one is True for one in answers):
            stop = Stop.CALLBACK
            break
    at = replace(at, stop=stop, spent=perf_counter() - began)
    if keep is not None:
        keep(at)
    return at


def _begun(start: AlternationResult | ModelState, judge: Any) -> AlternationResult:
    if isinstance(start, AlternationResult):
        return start
    judged = np.nan if judge is None else judge(start)
    step = AlternationStep(0, start.value, start.users, start.items, judged, 0.0)
    return AlternationResult(start, judged, start, (step,), None, 0.0)


def _precision(at: AlternationResult, settings: Alternation) -> float:
    """A part of what the last round gained, but within the tolerance: early blocks need no proof."""
    finest = settings.tol / FINER
    if len(at.steps) < 2 or not at.now.value:
        return max(finest, COARSE)
    gained = (at.steps[-2].primal - at.steps[-1].primal) / abs(at.now.value)
    return min(max(finest, gained / FINER), COARSE)


def _round(
    blocks: Any, at: AlternationResult, start: ModelState, settings: Alternation, judge: Any, began: float
) -> AlternationResult:
    """start: a copy of the last state if the run is stored, since blocks may write to it."""
    checked, now = blocks.around(start, _precision(at, settings))
    steps = (*at.steps[:-1], replace(at.steps[-1], users=checked.users, items=checked.items))
    if max(checked.gaps) <= settings.tol and len(at.steps) > at.begun + 1:
        best = checked if at.best is at.now else at.best
        return replace(at, best=best, now=checked, steps=steps, spent=perf_counter() - began)
    judged = np.nan if judge is None else judge(now)
    step = AlternationStep(len(at.steps), now.value, now.users, now.items, judged, perf_counter() - began)
    better = judged > at.judged if judge is not None else now.value <= at.best.value
    best, best_judged = (now, judged) if better else (at.best, at.judged)
    if not better and best.planes is not None:  # the last one alone has them, and its blocks write to them
        best = blocks.complete(best)
    return AlternationResult(best, best_judged, now, (*steps, step), None, perf_counter() - began, at.begun)


def _over(at: AlternationResult, settings: Alternation, judge: Any, interrupted: bool) -> Stop | None:
    """Why the run is over, if it is."""
    if interrupted:
        return Stop.INTERRUPTED
    if len(at.steps) > at.begun + 1 and max(at.now.gaps) <= settings.tol:
        return Stop.GAP if at.best is at.now else Stop.CHOSEN if judge is not None else Stop.STALLED
    if judge is not None and idle(at) >= settings.patience:
        return Stop.PATIENCE
    if len(at.steps) > settings.max_iter:
        return Stop.ITERATIONS
    if settings.time_limit is not None and at.spent >= settings.time_limit:
        return Stop.TIME
    return None


def idle(at: AlternationResult) -> int:
    """Rounds since the measure on eval_set was best."""
    judged = [step.judged for step in at.steps]
    return len(judged) - 1 - int(np.argmax(judged))


FIRST_FACTORS = 8  # factors to begin with
WIDENING_FINER = 100.0  # ratio of the global gap to the gap of both blocks
GONE = 1e-4  # A factor below this fraction of the largest one is replaced
GAIN = 0.05  # the part of the open gap that a widening must close for another to follow


def widened(
    blocks: Any, done: AlternationResult,
    run: Callable[[Callable[[], AlternationResult], AlternationResult, float], AlternationResult],
    settings: Alternation, judged: bool, resumed: AlternationResult | None = None,
) -> AlternationResult:  # fmt: skip
    """Twice as many factors, again and again, while the global gap is above `settings.tol` and closes.

    run: a part of the run from the state of `begin()`, with more factors, to a gap of both blocks that is a fraction of
    the global gap; a larger one would end the part before new factors have grown. judged: the result is the best on
    eval_set; then the gap is that of the current state, and the run ends with its patience.
    resumed: such a part, of more factors than `done`, that an earlier run began.
    """
    most, last = min(blocks.problem.rated.n_users, blocks.problem.rated.n_items), done
    try:
        gap = _gap(blocks, done, judged)
        while resumed is not None or (gap > settings.tol and _is_closed(done, settings, judged)):
            at, resumed = resumed, None
            wider = _with_pairs(blocks, done.now if judged else done.best, most) if at is None else None
            if at is None and wider is None:
                break
            last = tried = run(
                partial(_begin, blocks, done, at, wider, judged), done, min(gap / WIDENING_FINER, settings.tol)
            )
            left = _gap(blocks, tried, judged)
            closes = left <= (1.0 - GAIN) * gap
            if left < gap or judged:  # closer to the global optimum, or perhaps with a better round on eval_set
                done = tried
            else:  # the narrower part, with all rounds, and why the run ended if the wider part did not end by itself
                stop = done.stop if tried.stop in (Stop.GAP, Stop.STALLED) else tried.stop
                done = replace(done, steps=tried.steps, stop=stop, spent=tried.spent)
            gap = min(left, gap)
            if not closes:
                break
    except KeyboardInterrupt:  # between two parts: each of them ends by itself
        if last.stop is Stop.INTERRUPTED:
            raise
        done = replace(done, stop=Stop.INTERRUPTED)
    return done


def _is_closed(done: AlternationResult, settings: Alternation, judged: bool) -> bool:
    return done.stop in (Stop.GAP, Stop.CHOSEN) and not (judged and idle(done) >= settings.patience)


def _begin(
    blocks: Any, done: AlternationResult, at: AlternationResult | None, wider: Factors | None, judged: bool
) -> AlternationResult:
    """The part at `at`, else the run continued from wider factors. The best on eval_set is retained.
    The best of J is not, since the wider part ends below it."""
    if at is not None:
        return at
    assert wider is not None
    start = blocks.begun(wider)
    best, known = (done.best, done.judged) if judged else (start, -np.inf)
    return AlternationResult(best, known, start, done.steps, None, done.spent, len(done.steps) - 1)


def _gap(blocks: Any, done: AlternationResult, judged: bool) -> float:
    """The global gap of the best state of J, or of the current one if the best is by another measure."""
    now = done.now if judged else done.best
    return best_bound(blocks, now).gap(now.value)


def _with_pairs(blocks: Any, now: ModelState, most: int) -> Factors | None:
    """The factors that have not gone to 0, and as many more, along the singular pairs of -Ψ above 1, of the size of
    those there are: smaller ones would not have grown before the blocks count as closed. None where there are none."""
    problem, factors = blocks.problem, balanced(blocks.problem, now.factors)
    held = problem.of_users @ factors.users**2  # λ‖column‖², twice what each factor costs; the largest first
    alive = held > GONE * held.max(initial=0.0)
    alive[most - 1 :] = False  # the rank of the table limits the number: the least factor is replaced
    factors = replace(factors, users=factors.users[:, alive], items=factors.items[:, alive])
    held, d = held[alive], factors.dimensions
    table = scaled_slopes(problem, blocks.complete(now), problem.of_users, problem.of_items)
    left, size, right = top_pairs(table, min(max(d, 1), most - d))
    fresh = size > 1.0
    if not fresh.any():
        return None
    root = np.sqrt(np.median(held) if d else size[fresh])
    users = -left[:, fresh] * root / np.sqrt(problem.of_users)[:, None]
    items = right[:, fresh] * root / np.sqrt(problem.of_items)[:, None]
    users, items = np.hstack([factors.users, users]), np.hstack([factors.items, items])
    return replace(factors, users=np.ascontiguousarray(users), items=np.ascontiguousarray(items))


NUMBERS = ("value", "users", "items")
DUALS = ("slopes", "heights")
ARRAYS = ("users", "items", "offsets", "user_offsets")


def run_as_data(at: AlternationResult, before: AlternationResult | None = None) -> dict[str, Any]:
    """The last state, the best one where that is another, and all rounds; and those of the part before, whose
    factors are fewer, where there is one."""
    stored = {
        "now": _state_as_data(at.now),
        "best": None if at.best is at.now else _state_as_data(at.best),
        "judged": float(at.judged),
        "history": History.from_rows(AlternationStep, at.steps),
        "spent": float(at.spent),
        "begun": int(at.begun),
    }
    return stored if before is None else {**stored, "before": {**run_as_data(before), "stop": str(before.stop)}}


def run_from_data(
    run: Mapping[str, Any], blocks: Any, factors: int | None
) -> tuple[AlternationResult, AlternationResult | None] | None:
    """The stored run, and the part before; None, or an error of attribute, lookup, type or value, if damaged."""
    at = _part_of(run, blocks, factors)
    if at is None or "before" not in run:
        return None if at is None else (at, None)
    before = _part_of(run["before"], blocks, factors)
    if factors is not None or before is None or len(before.steps) - 1 != at.begun:
        return None
    return at, replace(before, stop=Stop(run["before"]["stop"]))


def _part_of(run: Mapping[str, Any], blocks: Any, factors: int | None) -> AlternationResult | None:
    now = _state_from_data(run["now"], blocks, factors)
    best = now if run["best"] is None else _state_from_data(run["best"], blocks, factors)
    history, spent = run["history"], float(run["spent"])
    if not isinstance(history, History) or history.row != "AlternationStep":
        return None
    steps = tuple(history)
    begun = int(run["begun"])
    if not 0 <= begun < len(steps) or not 0 <= spent < np.inf or steps[-1].primal != now.value:
        return None
    return AlternationResult(best, float(run["judged"]), now, steps, None, spent, begun)


def _state_as_data(one: ModelState) -> dict[str, Any]:
    arrays = {name: getattr(one.factors, name) for name in ARRAYS}
    plain = {"factors": arrays, **{name: getattr(one, name) for name in (*NUMBERS, *DUALS)}}
    plain["of_items"] = None if one.of_items is None else list(one.of_items)
    plain["planes"] = None if one.planes is None else [dict(vars(part)) for part in one.planes]
    return {**plain, "by_planes": one.by_planes}


def _state_from_data(stored: Mapping[str, Any], blocks: Any, factors: int | None) -> ModelState:
    rated = blocks.problem.rated
    n, m = rated.n_users, rated.n_items
    factors = int(np.shape(stored["factors"]["users"])[1]) if factors is None else factors
    shapes = {
        "users": (n, factors), "items": (m, factors), "offsets": (m,), "user_offsets": (n,),
        "slopes": (rated.n_ratings,), "heights": (n,),
    }  # fmt: skip
    if not stored["slopes"].size:  # the factors determine them
        shapes["slopes"] = shapes["heights"] = (0,)
    for name, shape in shapes.items():
        array = (stored["factors"] if name in ARRAYS else stored)[name]
        if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.shape != shape:
            raise ValueError(f"{name} of the stored state has another shape")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} of the stored state is not finite")
    of_items = None if stored["of_items"] is None else tuple(stored["of_items"])
    if of_items is not None and [np.shape(one) for one in of_items] != [shapes["slopes"], shapes["heights"]]:
        raise ValueError("the items' dual state of the stored state has another shape")
    planes = None if stored["planes"] is None else blocks.planes_of(stored["planes"])
    by_planes = stored["by_planes"] is True
    if by_planes and planes is None:
        raise ValueError("the items' dual state is computed from planes, but no planes are stored")
    numbers = {name: float(stored[name]) for name in NUMBERS}
    found = ModelState(
        Factors(**{name: np.ascontiguousarray(stored["factors"][name]) for name in ARRAYS}),
        slopes=stored["slopes"], heights=stored["heights"], of_items=of_items, planes=planes,
        by_planes=by_planes, **numbers,
    )  # fmt: skip
    measured = blocks.at(found.factors).value
    if not abs(measured - found.value) <= 1e-9 * abs(measured):
        raise ValueError(f"the stored J is {found.value!r}, but J of the stored factors is {measured!r}")
    return found
