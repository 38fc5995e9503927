"""An answer that carries its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints
from formulations.errors import NoAnswer

if TYPE_CHECKING:
    from formulations.modeling.form import Form

__all__ = ["Solution", "Status", "proven"]


class Status(Enum):
    """What is known of an answer, judged from the problem's data alone and never from a solver's word."""

    OPTIMAL = "feasible; value and proven bound agree to rounding"
    WITHIN_BOUND = "feasible; the optimum is proven to lie between value and bound"
    FEASIBLE = "feasible; nothing is proven about the optimum"
    INACCURATE = "breaks its constraints by more than their tolerance: no feasible point, whatever its value"


@dataclass(frozen=True, eq=False)
class Solution:
    """A point of `problem`, its value, and a bound that no feasible point can beat.

    `value`, `bound` and `violation` (of the worst constraint) are recomputed in double precision from the problem's
    data: for a maximum value <= optimum <= bound, for a minimum the reverse. `x` and `y` are the primal and dual
    vectors in the problem's own form; `primal` and `dual` are the same by name.
    """

    problem: Form
    x: NDArray[Any]
    y: Floats | None
    value: float
    bound: float
    status: Status
    violation: float = 0.0
    solver: str = ""
    version: str = ""
    seconds: float = float("nan")
    message: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """Distance from value to bound; negative only by rounding, or where a row is broken within its tolerance."""
        return self.bound - self.value if self.problem.maximises else self.value - self.bound

    @property
    def order(self) -> Ints:
        """The document at each position."""
        return self.problem.order_of(self.x)

    @property
    def primal(self) -> dict[str, NDArray[Any]]:
        """The value of every variable, one array a named block."""
        return self.problem.named_primal(self.x)

    @property
    def dual(self) -> dict[str, NDArray[Any]]:
        """The price of every row, one array a named block; empty where no dual is known."""
        return {} if self.y is None else self.problem.named_dual(self.y)

    def told_by(self, **changes: Any) -> Solution:
        """The same answer with solver, version, seconds, message or details filled in."""
        return replace(self, **changes)

    def __repr__(self) -> str:
        return (
            f"Solution({self.status.name}, value={self.value:.9g}, bound={self.bound:.9g}, "
            f"solver={self.solver!r}, {1e3 * self.seconds:.3g} ms)"
        )


def judged(problem: Form, x: NDArray[Any], y: Floats | None) -> Solution:
    """The solution with primal x and dual y, its violation, value and bound recomputed; y is recovered from x where it
    is missing or leaves a gap that recovered prices close. Raises `NoAnswer` if x is no point of the problem."""
    violation = problem.violation(x)
    if not np.isfinite(violation):
        raise NoAnswer(f"what came back is no point of this {type(problem).__name__}: {_shortly(x)}")
    value = problem.value(x)
    rounding = problem.rounding
    candidates: list[tuple[float, Floats | None]] = []
    told = proven(problem, y)
    if y is not None and told is not None:
        candidates.append((told, y))
    if not candidates or abs(candidates[0][0] - value) > rounding:
        recovered = problem.recovered_dual(x)
        if recovered is not None:
            candidates.append((problem.bound(recovered), recovered))
    sign = 1.0 if problem.maximises else -1.0
    bound, dual = min(candidates, key=lambda pair: sign * pair[0], default=(sign * np.inf, None))
    status = status_of(sign * (bound - value), violation, rounding, problem.tolerance)
    return Solution(problem, x, dual, float(value), float(bound), status, float(violation))


def proven(problem: Form, y: Floats | None) -> float | None:
    """The bound that y proves; None where it is no dual of this problem: of another shape, or no finite numbers."""
    if not isinstance(y, np.ndarray) or y.dtype.kind not in "biuf" or not np.isfinite(y).all():
        return None
    try:
        return problem.bound(y)
    except (ValueError, IndexError):
        return None


def status_of(gap: float, violation: float, rounding: float, tolerance: float) -> Status:
    """What a point with this gap and violation may be called."""
    if not violation <= tolerance:
        return Status.INACCURATE
    if not np.isfinite(gap):
        return Status.FEASIBLE
    return Status.OPTIMAL if gap <= rounding else Status.WITHIN_BOUND


def _shortly(x: NDArray[Any]) -> str:
    return np.array2string(np.asarray(x), threshold=8, edgeitems=3)
