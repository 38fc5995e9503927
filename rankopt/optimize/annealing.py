"""Annealing: a quasi-Newton method of SciPy minimizes J_σ for a decreasing sequence of σ, each stage started at the end
of the previous one [paper 1, section 5].

With large σ the smoothed measure reflects the distribution of all documents; with small σ it is close to the measure. A
stage depends on its starting point alone, so that a resumed run gives identical results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats
from formulations.display import Axes, CompactReprMixin
from formulations.errors import InvalidProblemError
from rankopt.optimize.certificate import Certificate, History, Stop
from rankopt.optimize.objective import SmoothObjective
from rankopt.optimize.state import TrainingState


@dataclass(frozen=True)
class AnnealingStep:
    """One step: its number, σ, the objective J_σ, the length of its gradient (features in units of their deviation),
    and seconds since the start."""

    step: int
    sigma: float
    primal: float
    gradient: float
    seconds: float

    axis: ClassVar[str] = "step"

    def __str__(self) -> str:
        text = f"step {self.step}: objective {self.primal:.6g}, gradient {self.gradient:.2g}"
        return f"sigma {self.sigma:g}, {text}, {self.seconds:.1f} s"

    @staticmethod
    def draw(history: History, axes: Axes, x: NDArray[Any]) -> str:
        """J_σ, a line for each σ: the objectives of two σ are two functions."""
        for sigma in dict.fromkeys(history.sigma.tolist()):
            rows = history.sigma == sigma
            axes.plot(x[rows], history.primal[rows], label=f"σ = {sigma:g}")
        return "smoothed objective"


@dataclass(frozen=True, eq=False)
class AnnealingState(CompactReprMixin):
    """State after a stage. w: where the next one begins. best, sigma: the result so far, and its width."""

    w: Floats
    best: Floats
    sigma: float


def stored_run(
    run: Mapping[str, Any], features: int, bandwidths: tuple[float, ...], max_iter: int
) -> TrainingState | None:
    """The state of a checkpoint, `iteration` its stages, J and measures recomputed; None if no run can produce it."""
    found = TrainingState.from_data(run, AnnealingStep)
    state, stages, history = found.method_state, found.iteration, run["history"]
    sound = (
        isinstance(state, AnnealingState)
        and found.stop is None
        and type(stages) is int
        and 0 < stages <= len(bandwidths)
        and state.sigma in bandwidths[:stages]
        and all(
            isinstance(w, np.ndarray) and w.dtype == np.float64 and w.shape == (features,) and np.isfinite(w).all()
            for w in (state.w, state.best)
        )
        and len(history) <= stages * max_iter
        and all(np.isfinite(getattr(history, name)).all() for name in ("primal", "gradient", "seconds"))
        and bool(np.isin(history.sigma, bandwidths).all())
        and np.array_equal(history.step, np.arange(1, len(history) + 1))
        and bool((np.diff(history.seconds, prepend=0.0) >= 0).all())
    )
    return found if sound else None


DESCENTS = {"L-BFGS": "L-BFGS-B", "CG": "CG"}  # methods of descent, and what `scipy.optimize.minimize` calls them

PLAIN: dict[str, dict[str, Any]] = {"L-BFGS": {"ftol": 0.0, "gtol": 0.0, "maxcor": 10}, "CG": {"gtol": 0.0}}
"""Their options: when a stage is over is decided here."""


@dataclass(frozen=True, eq=False)
class At:
    """A point that a run passed through: w, J_σ and its gradient there. judged: how good it is on other data."""

    w: Floats
    sigma: float
    primal: float
    gradient: Floats
    judged: float | None = None


@dataclass(frozen=True)
class Annealing:
    """sigmas: σ of each stage. method: one of `DESCENTS`. max_iter: maximum of steps a stage. tol: gradient norm (see
    `SmoothObjective`) at which a stage ends. time_limit: seconds of the run."""

    bandwidths: tuple[float, ...]
    method: str = "L-BFGS"
    max_iter: int = 40
    tol: float = 1e-6
    time_limit: float | None = None


@dataclass(frozen=True, eq=False)
class Annealed:
    """The result: weights, what is known of them, the steps, and how a judge rated the weights if there was one."""

    w: Floats
    certificate: Certificate
    history: History
    judged: float | None


class _Over(Exception):
    """A stage, or the run if there is a reason, is over."""

    def __init__(self, reason: Stop | None = None) -> None:
        self.reason = reason


@dataclass
class _Run:
    """A run as it goes on. last: the last point; chosen: what would be returned."""

    objective: SmoothObjective
    settings: Annealing
    callbacks: Sequence[Callable[..., bool | None]]
    judge: Callable[[Floats], float] | None
    steps: list[AnnealingStep]
    began: float
    last: At
    chosen: At
    seen: dict[bytes, tuple[float, Floats]] = field(default_factory=dict)

    def stage(self, sigma: float) -> None:
        """Descend at one σ; raises _Over with a reason where the run is over."""
        from scipy.optimize import minimize

        objective, units = self.objective, self.objective.units
        moving, begun = objective.moving, self.last.w
        self.seen.clear()

        def there(u: Floats) -> Floats:
            w = begun.copy()
            w[moving] = u / units[moving]
            return w if objective.box is None else np.clip(w, *objective.box)

        def evaluate(u: Floats) -> tuple[float, Floats]:
            w = there(u)
            found = self._at(w, sigma)
            return found[0], found[1][moving] / units[moving]

        def passed(u: Floats) -> None:
            w = there(u)
            value, gradient = self._at(w, sigma)
            self.seen.clear()
            self._step(At(w, sigma, value, gradient))

        first = self._at(begun, sigma)
        if not objective.slope(begun, first[1]) > self.settings.tol:
            return
        options: dict[str, Any] = {**PLAIN[self.settings.method], "maxiter": self.settings.max_iter}
        name = DESCENTS[self.settings.method]
        box = None if objective.box is None else (objective.box * units)[:, moving].T
        try:
            minimize(
                evaluate, (begun * units)[moving], jac=True, method=name, bounds=box, callback=passed, options=options
            )
        except _Over as over:
            if over.reason is not None:
                raise

    def _at(self, w: Floats, sigma: float) -> tuple[float, Floats]:
        """J and gradient, computed once for each point of a step."""
        known = self.seen.get(w.tobytes())
        if known is None:
            known = self.seen[w.tobytes()] = self.objective.at(w, sigma)
        return known

    def _step(self, at: At) -> None:
        self.last = at
        slope = self.objective.slope(at.w, at.gradient)
        seconds = perf_counter() - self.began
        self.steps.append(AnnealingStep(len(self.steps) + 1, at.sigma, at.primal, slope, seconds))
        if self.judge is None:
            self.chosen = at
        else:
            rated = self.judge(at.w)
            if self.chosen.judged is None or rated > self.chosen.judged:  # of equals the least trained
                self.chosen = replace(at, judged=rated)
        if any([callback(self.steps[-1], at) for callback in self.callbacks]):
            raise _Over(Stop.CALLBACK)
        limit = self.settings.time_limit
        if limit is not None and perf_counter() - self.began >= limit:
            raise _Over(Stop.TIME)
        if slope <= self.settings.tol:
            raise _Over


def anneal(
    objective: SmoothObjective,
    settings: Annealing,
    callbacks: Sequence[Callable[..., bool | None]] = (),
    judge: Callable[[Floats], float] | None = None,
    begun: TrainingState | None = None,
    keep: Callable[[TrainingState, bool], None] | None = None,
) -> Annealed:
    """Minimize J_σ from w₀, or from the state `begun` of an earlier run, for each σ in turn.

    A judge rates w₀ and every step; the best-rated w is returned, without a judge the last. `keep` is called after
    each stage, with a flag for the last. A keyboard interruption, a callback that returns True and the time limit end
    the run with its current result; before the first step KeyboardInterrupt is raised.
    """
    sigmas, w0 = settings.bandwidths, objective.w0
    begun = begun or TrainingState(AnnealingState(w0, w0, sigmas[0]))
    known, steps = begun.method_state, list(begun.history)
    points = ((known.w, sigmas[0]), (known.best, known.sigma))
    last, best = (At(w, sigma, *objective.at(w, sigma)) for w, sigma in points)
    if not np.isfinite(last.primal):
        raise InvalidProblemError("the scores at w0 are not finite in double precision; rescale w0 or the features")
    if judge is not None:
        best = replace(best, judged=judge(known.best))
    used = steps[-1].seconds if steps else 0.0
    run = _Run(objective, settings, callbacks, judge, steps, perf_counter() - used, last, best)
    done, stop = begun.iteration, Stop.ANNEALED
    try:
        while done < len(sigmas):
            run.stage(sigmas[done])
            done += 1
            if keep is not None:
                best = run.chosen
                state = AnnealingState(run.last.w, best.w, best.sigma)
                keep(TrainingState(state, done, history=tuple(run.steps)), done == len(sigmas))
    except _Over as over:
        stop = over.reason or stop
    except KeyboardInterrupt:
        if not run.steps:
            raise
        stop = Stop.INTERRUPTED
    chosen = run.chosen
    reached, before = (objective.best - objective.risk(w) for w in (chosen.w, w0))
    slope, at_start = objective.slope(chosen.w, chosen.gradient), bool(np.array_equal(chosen.w, w0))
    parts = {"sigma": chosen.sigma, "gradient": slope, "measure": reached, "start": before}
    certificate = Certificate("stationary", chosen.primal, -np.inf, stop, at_start, parts)
    return Annealed(chosen.w, certificate, History.from_rows(AnnealingStep, run.steps), chosen.judged)
