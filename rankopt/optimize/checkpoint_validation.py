"""Whether a standing that was kept can be gone on from: what can be looked at or recomputed is not believed.

flaw           of its form: arrays of the right types and shapes, all finite, groups that exist
false_claim    about its own w, by one pass over the data: what J is there, and that no plane lies above the risk
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.optimize.bundle import at_groups
from rankopt.optimize.certificate import Step, Stop
from rankopt.optimize.objective import Objective, norms
from rankopt.optimize.planes import PlaneSet
from rankopt.optimize.state import State
from rankopt.optimize.subgradient import generator_of, permuted
from rankopt.optimize.training_state import TrainingState

Floats = NDArray[np.float64]

ROUNDING = 1e-9
"""What sums may differ by on another machine, relative to what is summed."""

OPEN = ("primal", "latest", "precision", "radius", "least")
"""Numbers that are infinite as long as nothing is known. None is ever NaN."""

PARTS = ("state", "planes", "passed", "stop", "generator")
"""What is no number and no array of numbers."""


def flaw(standing: TrainingState, steps: Sequence[Step]) -> str | None:
    """What is wrong with the form of a standing after these steps; None if nothing is."""
    held: list[tuple[object, Any]] = [
        (standing, TrainingState), (standing.state, State), (standing.state.planes, PlaneSet),
        (standing.stop, Stop | None),
    ]  # fmt: skip
    for part, kind in held:
        if not isinstance(part, kind):
            return f"a {type(part).__name__} stands where something else should"
    return next(chain(_flaws(standing), _flaws_of_steps(standing, steps)), None)


def _flaws(standing: TrainingState) -> Iterator[str]:
    state, planes = standing.state, standing.state.planes
    d, p, groups = np.size(state.w), np.size(planes.heights), np.shape(planes.references)[:1]
    shapes = {
        "placed": (p, d),
        "references": (*groups, d),
        "paid": groups,
        **dict.fromkeys(("heights", "group", "idle", "alpha"), (p,)),
    }
    for name, value in chain(vars(standing).items(), vars(state).items(), vars(planes).items()):
        if isinstance(value, np.ndarray):
            yield from _flaws_of(name, value, shapes.get(name, (d,)))
        elif name not in PARTS and (isinstance(value, bool) or not isinstance(value, int | float)):
            yield f"{name} is a {type(value).__name__}"
        elif name not in PARTS and not (value >= 0 and (value < np.inf or name in OPEN)):
            yield f"{name} is {value}"
    for point in standing.passed:
        yield from _flaws_of("a point that it passed", point.w, (d,))
        if not np.isfinite([point.primal, point.bound]).all():
            yield f"a point that it passed has J = {point.primal}, bound {point.bound}"
    if (planes.group >= len(planes.references)).any():
        yield "a plane belongs to a group that is not there"
    permuted(1, getattr(state, "generator", None) or generator_of(0))  # raises for what is no generator's state


def _flaws_of_steps(standing: TrainingState, steps: Sequence[Step]) -> Iterator[str]:
    if len(steps) != standing.taken:
        yield f"it took {standing.taken} steps and {len(steps)} are written down"
    for step in steps:
        for name, value in vars(step).items():
            if not (value >= 0 and (value < np.inf or name in OPEN)):
                yield f"{name} of a step is {value}"


def _flaws_of(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> Iterator[str]:
    counts = name in ("group", "idle")
    if array.shape != shape or array.dtype != (np.int64 if counts else np.float64):
        yield f"{name} is no array of {' × '.join(map(str, shape))} numbers"
    elif not np.isfinite(array).all():
        yield f"{name} is not finite"
    elif (counts or name == "alpha") and (array < 0).any():
        yield f"{name} is negative"


def false_claim(standing: TrainingState, objective: Objective) -> str | None:
    """What a standing without flaw says of its own w that is not so; None if all is."""
    state, planes = standing.state, standing.state.planes
    if state.w.shape != objective.w0.shape or not 1 <= len(planes.references) <= objective.risk.weights.size:
        return f"it has {state.w.size} weights and {len(planes.references)} groups of queries"
    if not np.isfinite(state.primal):
        return None  # before its first step it claims nothing
    here = at_groups(objective.risk, state.w, len(planes.references))
    primal = objective.upper(state.w, here)
    if abs(primal - state.primal) > ROUNDING * abs(primal):
        return f"J at its w is {primal:.10g}, and it says {state.primal:.10g}"
    if state.bound > primal + ROUNDING * abs(primal):
        return f"its bound {state.bound:.10g} is above J at its w, {primal:.10g}"
    risk = here.heights + (here.slopes - here.references) @ state.w + (here.bound - here.value)
    above = planes.heights + planes.slopes @ state.w - risk[planes.group]
    size = np.abs(planes.heights) + norms(planes.slopes) * np.linalg.norm(state.w) + abs(primal)
    if (above > ROUNDING * size).any():
        return f"a plane lies {above.max():.3g} above the risk at its w"
    return None
