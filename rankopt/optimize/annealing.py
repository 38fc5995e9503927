"""Annealing: J_σ is descended by a quasi-Newton method of SciPy for a while, at one σ after the other, each from where
the last one ended [paper 1, section 5]. A large σ sees how documents lie in the whole, a small one nearly the measure.

What a stage does depends on where it begins alone, so that a run that is taken up again at a stage ends at the same
bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.errors import InvalidProblem
from rankopt.optimize.annealing_certificate import AnnealingCertificate
from rankopt.optimize.annealing_history import AnnealingHistory, AnnealingStep
from rankopt.optimize.annealing_stages import Reached
from rankopt.optimize.certificate import Stop
from rankopt.optimize.smooth_objective import SmoothObjective

__all__ = ["DESCENTS", "Annealed", "Annealing", "At", "anneal"]

Floats = NDArray[np.float64]

DESCENTS = {"L-BFGS": "L-BFGS-B", "CG": "CG"}
"""Methods of descent, and what `scipy.optimize.minimize` calls them."""

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
    """sigmas: σ of each stage. method: of `DESCENTS`. max_iter: steps of a stage at most. tol: the length of the
    gradient (see `SmoothObjective`) at which a stage is over. time_limit: seconds of the whole run."""

    sigmas: tuple[float, ...]
    method: str = "L-BFGS"
    max_iter: int = 40
    tol: float = 1e-6
    time_limit: float | None = None


@dataclass(frozen=True, eq=False)
class Annealed:
    """The result: weights, what is known of them, the steps, and how a judge rated the weights if there was one."""

    w: Floats
    certificate: AnnealingCertificate
    history: AnnealingHistory
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
            return w

        def asked(u: Floats) -> tuple[float, Floats]:
            w = there(u)
            found = self._at(w, sigma)
            return found[0], found[1][moving] / units[moving]

        def passed(u: Floats) -> None:
            w = there(u)
            value, gradient = self._at(w, sigma)
            self.seen.clear()
            self._step(At(w, sigma, value, gradient))

        first = self._at(begun, sigma)
        if not objective.slope(first[1]) > self.settings.tol:
            return
        options = {**PLAIN[self.settings.method], "maxiter": self.settings.max_iter}
        name = DESCENTS[self.settings.method]
        try:
            minimize(asked, (begun * units)[moving], jac=True, method=name, callback=passed, options=options)
        except _Over as over:
            if over.reason is not None:
                raise

    def _at(self, w: Floats, sigma: float) -> tuple[float, Floats]:
        """J and gradient, worked out once for each point of a step."""
        known = self.seen.get(w.tobytes())
        if known is None:
            known = self.seen[w.tobytes()] = self.objective.at(w, sigma)
        return known

    def _step(self, at: At) -> None:
        self.last = at
        slope = self.objective.slope(at.gradient)
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
    begun: Reached | None = None,
    keep: Callable[[Reached, bool], None] | None = None,
) -> Annealed:
    """Descend J_σ from w₀, or from where a run that had `begun` stood, at each σ in turn.

    A judge is asked of w₀ and of every step, and the best judged is returned, else the last. `keep` is called after
    each stage, and told whether it was the last. An interruption from the keyboard, a callback that returns True and
    the limit of time end the run with what it has; before the first step there is nothing, and KeyboardInterrupt is
    raised.
    """
    sigmas, w0 = settings.sigmas, objective.w0
    known = begun or Reached(0, w0, w0, sigmas[0], AnnealingHistory.of([]))
    steps = [known.history[i] for i in range(len(known.history))]
    places = ((known.w, sigmas[0]), (known.best, known.sigma))
    last, best = (At(w, sigma, *objective.at(w, sigma)) for w, sigma in places)
    if not np.isfinite(last.primal):
        raise InvalidProblem("the scores at w0 leave double precision")
    if judge is not None:
        best = replace(best, judged=judge(known.best))
    used = steps[-1].seconds if steps else 0.0
    run = _Run(objective, settings, callbacks, judge, steps, perf_counter() - used, last, best)
    done, stop = known.stages, Stop.ANNEALED
    try:
        while done < len(sigmas):
            run.stage(sigmas[done])
            done += 1
            if keep is not None:
                best = run.chosen
                now = Reached(done, run.last.w, best.w, best.sigma, AnnealingHistory.of(run.steps))
                keep(now, done == len(sigmas))
    except _Over as over:
        stop = over.reason or stop
    except KeyboardInterrupt:
        if not run.steps:
            raise
        stop = Stop.INTERRUPTED
    chosen = run.chosen
    reached, before = (objective.best - objective.risk(w) for w in (chosen.w, w0))
    slope, at_start = objective.slope(chosen.gradient), bool(np.array_equal(chosen.w, w0))
    certificate = AnnealingCertificate(chosen.sigma, chosen.primal, slope, reached, before, stop, at_start)
    return Annealed(chosen.w, certificate, AnnealingHistory.of(run.steps), chosen.judged)
