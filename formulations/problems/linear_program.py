"""Linear programs, with or without integers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from formulations.arrays import Bools, Floats, Ints, check_no_mask, finite, frozen, numbers
from formulations.display import plural
from formulations.errors import InfeasibleError, InvalidProblemError, InvalidSolutionError
from formulations.problems.directed_rounding import Pair, above, below, difference, products, weighted
from formulations.problems.dual_enclosure import CARE, enclosed_duals
from formulations.problems.problem import EPSILON, Problem, checked_dual
from formulations.problems.program import CONSTANT, Block, Program, name_at, named, split_by_block
from formulations.time_limit import is_out_of_time

TOLERANCE = 1e-6  # of a violation, in its unit
ROUNDING_OF_INTEGERS = 2.0**-26  # times TOLERANCE: the part of an integer's term that is rounding
INTEGRAL = 1e-5  # how far from an integer an integer variable may be
TRIES = 6  # sets of columns with reduced costs of 0 that are tried
NOISE = 16.0 * EPSILON  # reduced costs of this part of their terms are rounding
SMALL_PART = 1e-13  # of the bound, that rounding may cost
BIG = 1e4  # times the least coefficient of its row: a large coefficient ("big M")
ROUNDS = 8  # of interval propagation


Payment = Callable[[Pair, Floats], tuple[Bools, list[Floats], float]]
"""From reduced costs and their errors: the columns that are paid for, the terms of the bound, and their error."""


def implied_limits(
    matrix: csr_array, row_lower: Floats, row_upper: Floats, lower: Floats, upper: Floats
) -> tuple[Floats, Floats]:
    """Lower and upper limits of every x with row_lower <= matrix x <= row_upper and lower <= x <= upper, by interval
    propagation: a row bounds a variable by the limits of its other variables. Infinite where no row does.

    >>> limits = implied_limits(csr_array([[1.0, 2.0]]), np.array([2.0]), np.array([4.0]), np.zeros(2), np.ones(2) * 9)
    >>> [part.round(6).tolist() for part in limits]
    [[0.0, 0.0], [4.0, 2.0]]
    """
    row = np.repeat(np.arange(row_lower.size), np.diff(matrix.indptr))
    column, weight = matrix.indices, matrix.data
    held = weight != 0.0
    row, column, weight = row[held], column[held], weight[held]
    for _ in range(ROUNDS):
        lowest, highest = lower.copy(), upper.copy()
        for sign, limit in ((1.0, row_upper), (-1.0, -row_lower)):
            # sign * weight x <= limit: the least activity of the other variables bounds this one.
            part = sign * weight
            least = part * np.where(part > 0.0, lower[column], upper[column])
            endless = ~np.isfinite(least)
            finite = np.where(endless, 0.0, least)
            count = np.bincount(row, endless, limit.size)
            total = np.bincount(row, finite, limit.size)
            size = np.bincount(row, np.abs(finite), limit.size)
            known = np.isfinite(limit[row]) & (count[row] - endless == 0)
            allowance = (limit[row] - (total[row] - finite) + (CARE - 1.0) * (size[row] + np.abs(limit[row])))[known]
            at, by = column[known], part[known]
            np.minimum.at(highest, at[by > 0.0], (allowance / by)[by > 0.0])
            np.maximum.at(lowest, at[by < 0.0], (allowance / by)[by < 0.0])
        tighter = (np.isinf(lower) & np.isfinite(lowest)).any() or (np.isinf(upper) & np.isfinite(highest)).any()
        lower, upper = lowest, highest
        if not tighter:
            break
    return lower, upper


def finite_matrix(name: str, matrix: Any) -> csr_array:
    """A read-only copy of a sparse matrix in double precision, duplicates summed; errors as `finite`."""
    check_no_mask(name, matrix)
    try:
        copied = csr_array(matrix, dtype=np.float64, copy=True)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidProblemError(f"{name} must be numbers; got {type(matrix).__name__} ({error}).") from None
    if copied.ndim != 2:
        raise InvalidProblemError(f"{name} must have 2 dimensions; got shape {copied.shape}.")
    copied.sum_duplicates()
    finite(name, copied.data, 1)
    for part in (copied.data, copied.indices, copied.indptr):
        part.setflags(write=False)
    return copied


def _limits(name: str, values: Floats, size: int) -> Floats:
    array = np.array(numbers(name, values))
    if array.shape != (size,) or np.isnan(array).any():
        raise InvalidProblemError(f"{name} must have {size} entries without NaN, infinite ones for no limit.")
    return frozen(array)


def _nearest_limit(values: Floats, lower: Floats, upper: Floats) -> Floats:
    """The magnitude of the limit that each value breaks or is next to; 0 without limits."""
    size = np.abs(np.where(np.abs(values - lower) <= np.abs(upper - values), lower, upper))
    return np.where(np.isfinite(size), size, 0.0)


def _power_below(values: Floats) -> Floats:
    """The power of two at or below each value; 1 for 0."""
    return np.where(values > 0.0, np.ldexp(0.5, np.frexp(values)[1]), 1.0)


def least_size(costs: Floats) -> float:
    """The least magnitude of a cost that is not 0; 0 if all are."""
    return float(np.abs(costs[costs != 0.0]).min()) if costs.any() else 0.0


def row_sides(lower: Floats, upper: Floats) -> tuple[Ints, Ints, Ints]:
    """The rows that are equations, those with a lower limit, and those with an upper one."""
    equal = lower == upper
    sides = equal, ~equal & np.isfinite(lower), ~equal & np.isfinite(upper)
    equations, floors, ceilings = (np.flatnonzero(side) for side in sides)
    return equations, floors, ceilings


class RowProgram(Problem):
    """A linear or quadratic objective over row_lower <= matrix x <= row_upper, lower <= x <= upper."""

    matrix: csr_array
    row_lower: Floats
    row_upper: Floats
    lower: Floats
    upper: Floats
    variables: tuple[Block, ...]
    rows: tuple[Block, ...]

    @property
    def shape_text(self) -> str:
        return f"{plural(self.row_lower.size, 'row')} × {plural(self.lower.size, 'variable')}"

    @property
    def rounding(self) -> float:
        return 64.0 * EPSILON * self.scale

    def rounding_at(self, x: NDArray[Any]) -> float:
        return min(self.rounding, 1e-12 * self.magnitude_at(x))

    @property
    def tolerance(self) -> float:
        """The feasibility tolerance, in the units of `violation`."""
        return TOLERANCE

    def named_primal(self, x: NDArray[Any]) -> dict[str, NDArray[Any]]:
        named = split_by_block(self.variables, np.asarray(x, dtype=np.float64))
        return {name: part for name, part in named.items() if name != CONSTANT}

    def variable_name(self, column: int) -> str:
        return name_at(self.variables, column)

    def row_name(self, row: int) -> str:
        return name_at(self.rows, row)


@dataclass(frozen=True, eq=False, repr=False)
class LinearProgram(RowProgram):
    """maximize (or minimize) objective · x  subject to  row_lower <= matrix x <= row_upper, lower <= x <= upper.

    `integer` marks integer variables. `variables` and `rows` name columns and rows by block. A dual y has one entry per
    row, with the sign of a minimum: y > 0 is the dual of row_lower, y < 0 of row_upper.
    """

    objective: Floats
    matrix: csr_array
    row_lower: Floats
    row_upper: Floats
    lower: Floats
    upper: Floats
    is_maximization: bool = True
    integer: Bools | None = None
    variables: tuple[Block, ...] = ()
    rows: tuple[Block, ...] = ()

    def __post_init__(self) -> None:
        matrix = finite_matrix("matrix entries", self.matrix)
        count, size = matrix.shape
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "objective", finite("objective", self.objective, 1))
        if self.objective.size != size:
            raise InvalidProblemError(f"objective has {self.objective.size} entries, but matrix has {size} columns")
        for name, length in (("row_lower", count), ("row_upper", count), ("lower", size), ("upper", size)):
            object.__setattr__(self, name, _limits(name, getattr(self, name), length))
        if self.integer is not None:
            marked = np.array(numbers("integer", self.integer), dtype=np.bool_)
            if marked.shape != (size,):
                raise InvalidProblemError(f"integer has shape {marked.shape}, but matrix has {size} columns")
            object.__setattr__(self, "integer", frozen(marked) if marked.any() else None)
        object.__setattr__(self, "variables", named(self.variables, "x", size))
        object.__setattr__(self, "rows", named(self.rows, "row", count))
        for low, high, blocks in (
            (self.row_lower, self.row_upper, self.rows),
            (self.lower, self.upper, self.variables),
        ):
            crossed = np.flatnonzero(low > high)
            if crossed.size:
                index = int(crossed[0])
                raise InfeasibleError(f"{name_at(blocks, index)} must be at least {low[index]}, at most {high[index]}")

    @classmethod
    def from_program(cls, program: Program) -> LinearProgram:
        """The linear program of a `Program` with a linear objective."""
        return cls(**{name: getattr(program, name) for name in FIELDS})

    @property
    def program(self) -> Program:
        return Program(**{name: getattr(self, name) for name in FIELDS})

    def with_integer_limits(self) -> LinearProgram:
        """The program of the same points whose limits are rounded inwards: those of integer variables, and of rows of
        integer variables with integer coefficients."""
        if self.integer is None:
            return self
        held, entries = self.matrix.data != 0.0, self.matrix.data
        real = held & ~(self.integer[self.matrix.indices] & (entries == np.floor(entries)))
        rows = np.bincount(self._row_of_entry, real, self.row_lower.size) == 0
        return replace(
            self,
            row_lower=np.where(rows, np.ceil(self.row_lower), self.row_lower),
            row_upper=np.where(rows, np.floor(self.row_upper), self.row_upper),
            lower=np.where(self.integer, np.ceil(self.lower), self.lower),
            upper=np.where(self.integer, np.floor(self.upper), self.upper),
        )

    @property
    def size(self) -> int:
        return int(self.matrix.nnz) + self.objective.size

    @property
    def scale(self) -> float:
        """Σ |objective|, every variable at its largest finite limit, at least one."""
        return float(np.abs(self.objective) @ self.reach)

    @cached_property
    def reach(self) -> Floats:
        """The largest finite limit of each variable, at least one."""
        finite_limits = [np.where(np.isfinite(limit), np.abs(limit), 1.0) for limit in (self.lower, self.upper)]
        return np.maximum(1.0, np.maximum(*finite_limits))

    def magnitude_at(self, x: NDArray[Any]) -> float:
        return min(self.scale, max(float(np.abs(self.objective) @ np.abs(x)), least_size(self.objective)))

    def value(self, x: NDArray[Any]) -> float:
        return float(self.objective @ x)

    def violation(self, x: NDArray[Any]) -> float:
        """The largest violation of rows, limits and integrality, in units (`units_at`); rows with integers rounded."""
        if np.shape(x) != self.objective.shape:
            return float("inf")
        point = self.rounded(x)
        rows = self.matrix @ point
        row_units, units = self.units_at(point)
        parts = [(self.row_lower - rows) / row_units, (rows - self.row_upper) / row_units]
        parts += [(self.lower - point) / units, (point - self.upper) / units]
        if self.integer is not None:
            parts.append(np.abs(x - np.round(x))[self.integer])
        worst = [float(np.max(part, initial=0.0)) for part in parts]
        return float("inf") if np.isnan(worst).any() else max(worst)

    def flaw_of(self, x: NDArray[Any]) -> str:
        wanted = (self.lower.size,)
        return "" if np.shape(x) == wanted else f"; the shape must be {wanted}, one number a variable"

    def check_point(self, x: NDArray[Any]) -> float:
        violation = super().check_point(x)
        if self.integer is not None and violation > self.tolerance:
            raise InvalidSolutionError(
                f"the point breaks a constraint of an integer program by {violation:g}, with its integers rounded: "
                f"{self._broken(x)}"
            )
        return violation

    def _broken(self, x: NDArray[Any]) -> str:
        """The row that x breaks most, or else the variable, and the cure if the row has a large coefficient."""
        point = self.rounded(x)
        units, own = self.units_at(point)
        for value, low, high, unit, name in (
            (self.matrix @ point, self.row_lower, self.row_upper, units, self.row_name),
            (point, self.lower, self.upper, own, self.variable_name),
        ):
            off = np.maximum(low - value, value - high) / unit
            worst = int(np.argmax(off)) if off.size else 0
            if off.size and off[worst] > self.tolerance:
                side = f"at least {low[worst]:g}" if value[worst] < low[worst] else f"at most {high[worst]:g}"
                row = self.matrix[[worst]].data if value is not point else np.ones(1)
                cure = np.abs(row).max() >= BIG * np.abs(row[row != 0.0]).min() if row.any() else False
                large = ". Make its large coefficient (big M) smaller, or give other variables limits" if cure else ""
                return f"{name(worst)} is {value[worst]:.9g} and must be {side}{large}."
        column = int(np.argmax(np.abs(x - np.round(x)) * self.integer))
        return f"{self.variable_name(column)} is {x[column]:.9g} and must be an integer."

    def units_at(self, x: NDArray[Any]) -> tuple[Floats, Floats]:
        """The units in which violations of rows and of limits count at x: the power of two at or below the largest
        term of the row, the limit next to it included; at least what a change of a variable by 1 (by 1e-3 of the
        largest one, or by the largest one, if that is smaller) makes of its least coefficient.

        Integers have no errors but rounding: what they add to a row is taken off its limits.
        """
        point = np.asarray(x, dtype=np.float64)
        size = np.abs(point)
        largest = float(size.max(initial=0.0))
        usual = max(1e-3 * max(1.0, largest), min(1.0, largest))
        own = _power_below(np.maximum(_nearest_limit(point, self.lower, self.upper), np.maximum(size, usual)))
        terms = self._smallest * usual
        activity = self.matrix @ point
        row, entry = self._row_of_entry, np.abs(self.matrix.data) * size[self.matrix.indices]
        if self.integer is None:
            np.maximum.at(terms, row, entry)
            return _power_below(np.maximum(terms, _nearest_limit(activity, self.row_lower, self.row_upper))), own
        whole = self.integer[self.matrix.indices]
        added = self.matrix @ np.where(self.integer, point, 0.0)
        limits = _nearest_limit(activity - added, self.row_lower - added, self.row_upper - added)
        np.maximum.at(terms, row, np.where(whole, ROUNDING_OF_INTEGERS * entry, entry))
        return _power_below(np.maximum(terms, limits)), own

    def rounded(self, x: NDArray[Any]) -> NDArray[Any]:
        """x with its integer variables rounded, where they are within 1e-5 of an integer."""
        if self.integer is None:
            return x
        near = np.round(x)
        return np.where(self.integer & (np.abs(x - near) <= INTEGRAL), near, x)

    def repair(self, x: NDArray[Any]) -> NDArray[Any]:
        """x with integers rounded, and within the limits of the variables where it was so up to the tolerance."""
        if np.shape(x) != self.objective.shape or not np.isfinite(x).all():
            return x
        point = self.rounded(x)
        inside = np.clip(point, self.lower, self.upper)
        if (inside == point).all():
            return point
        slack = TOLERANCE * self.units_at(point)[1]
        inside = np.where(np.abs(inside - point) <= slack, inside, point)
        return inside if self.violation(inside) <= max(self.violation(point), TOLERANCE) else point

    @cached_property
    def _row_of_entry(self) -> Ints:
        return np.repeat(np.arange(self.row_lower.size), np.diff(self.matrix.indptr))

    @cached_property
    def _smallest(self) -> Floats:
        """The least nonzero coefficient of each row in magnitude; 0 for empty rows."""
        least, sizes = np.full(self.row_lower.size, np.inf), np.abs(self.matrix.data)
        np.minimum.at(least, self._row_of_entry, np.where(sizes > 0.0, sizes, np.inf))
        return np.where(np.isfinite(least), least, 0.0)

    def value_lower_bound(self, x: NDArray[Any]) -> float:
        terms, digits, off = products(self.objective, np.asarray(x, dtype=np.float64))
        return below(terms, digits, -off) if self.is_maximization else above(terms, digits, off)

    def bound(self, y: Floats) -> float:
        """Weak duality: the least of yᵀ(row limits) + (reduced cost)ᵀ(variable limits), in the sense of a minimum.

        A dual of an infinite limit counts as 0. A reduced cost that presses on a limit that does not exist uses the
        limit that the rows imply (`implied_limits`); where they imply none, nearby duals are used whose reduced cost
        there is exactly 0 (`enclosed_duals`). The bound is infinite if there are no such duals. If all costs are
        integers of integer variables, it is rounded to a multiple of their greatest common divisor.
        """
        sign = -1.0 if self.is_maximization else 1.0
        prices = checked_dual(y, self.row_lower.size, "rows")
        least = self.least(sign * self.objective, np.zeros(self.objective.size), prices)
        if self._step and np.isfinite(least):
            least = float(-(-ceil(least) // self._step) * self._step)
        return sign * least

    @cached_property
    def _step(self) -> int:
        """The greatest common divisor of the costs, if they are integers of integer variables; 0 otherwise."""
        used = self.objective != 0.0
        costs = np.abs(self.objective[used])
        if self.integer is None or not self.integer[used].all() or not (costs < 2.0**53).all():
            return 0
        return int(np.gcd.reduce(costs.astype(np.int64))) if (costs == np.floor(costs)).all() else 0

    def least(
        self, cost: Floats, digits: Floats, y: Floats, off: Floats | float = 0.0, curvature: Payment | None = None
    ) -> float:
        """A lower bound of the least (cost + digits) · x over feasible points, from duals y, rounded down; the error of
        the cost is at most `off`. `curvature` pays for reduced costs: which ones, and its terms of the bound."""
        prices, radius = self.active_dual(y), np.zeros(self.row_lower.size)
        spread = np.broadcast_to(np.asarray(off, dtype=np.float64), cost.shape)
        zero, best = np.zeros(cost.size, dtype=bool), -np.inf
        for tried in range(TRIES):
            if tried and is_out_of_time():
                break
            bound, wrong = self.pressed(cost, digits, spread, prices, radius, zero, curvature)
            best = max(best, bound)
            if not wrong.any():
                break
            zero |= wrong
            two_sided = np.isfinite(self.row_lower) & np.isfinite(self.row_upper)
            near = enclosed_duals(self._columns, cost, digits, spread, prices, two_sided, np.flatnonzero(zero))
            if near is None:
                break
            prices, radius = near.duals, near.radius
        return best

    def pressed(
        self,
        cost: Floats,
        digits: Floats,
        off: Floats,
        prices: Floats,
        radius: Floats,
        zero: Bools,
        curvature: Payment | None = None,
    ) -> tuple[float, Bools]:
        """The bound of duals that may be off by `radius`, with reduced costs of exactly 0 at `zero`; and the columns
        that make it infinite, or lower by a reduced cost that is rounding only."""
        reduced = difference(cost, self._columns, prices, digits)
        lost = reduced.off + off
        if radius.any():
            lost = lost + CARE * (abs(self._columns) @ radius)
        parts, wrong = list[Floats](), 0.0
        if curvature is not None:
            taken, parts, wrong = curvature(reduced, lost)
            zero = zero | taken
        limit = np.where(reduced.high > 0.0, self.lower, self.upper)
        unsure = ~zero & (lost > 0.0) & (np.abs(reduced.high) <= lost * (1.0 + 1e-15))
        sure = ~zero & ~unsure & (reduced.high != 0.0)
        reach = np.maximum(np.abs(self.lower), np.abs(self.upper))
        if (np.isinf(limit) & sure).any() or (np.isinf(reach) & unsure).any():
            lowest, highest = self._implied
            limit = np.where(np.isinf(limit), np.where(reduced.high > 0.0, lowest, highest), limit)
            reach = np.minimum(reach, CARE * np.maximum(np.abs(lowest), np.abs(highest)))
        endless = (sure & ~np.isfinite(limit)) | (unsure & ~np.isfinite(reach))
        if endless.any():
            return -np.inf, endless
        terms, lost_terms = weighted(limit[sure], Pair(reduced.high[sure], reduced.low[sure], lost[sure]))
        wrong += lost_terms + CARE * float(((np.abs(reduced.high) + lost)[unsure] * reach[unsure]).sum())
        side = np.where(prices > 0.0, self.row_lower, self.row_upper)
        used = prices != 0.0
        if radius.any():
            finite_limits = [np.where(np.isfinite(one), np.abs(one), 0.0) for one in (self.row_lower, self.row_upper)]
            wrong += CARE * float(radius @ np.maximum(*finite_limits))
        row_terms, row_digits, dropped = products(prices[used], side[used])
        wrong += dropped
        bound = below(row_terms, row_digits, *terms, *parts, -wrong if wrong else 0.0)
        noise = NOISE * (np.abs(cost) + abs(self._columns) @ np.abs(prices))
        noisy = ~zero & (np.abs(reduced.high) <= noise) & (reduced.high != 0.0)
        lowered = np.abs(reduced.high[noisy]) @ self.reach[noisy] > SMALL_PART * abs(bound)
        return bound, noisy & lowered

    def bounds_float64(self, costs: Floats, y: Floats) -> Floats:
        """(m,) `bound` of each row of objectives (m, n) and of duals (m, rows), in plain double precision and without
        repair: infinite where a reduced cost presses on a limit that neither exists nor follows from rows."""
        sign = -1.0 if self.is_maximization else 1.0
        own = np.stack([self.lower, self.upper])
        lower, upper = own if np.isfinite(own).all() else np.where(np.isinf(own), self._implied, own)
        reduced = sign * costs - (self._columns @ y.T).T
        total = np.zeros(len(costs))
        for duals, low, high in ((y, self.row_lower, self.row_upper), (reduced, lower, upper)):
            limit = np.where(duals > 0.0, low, high)
            total += np.where(duals == 0.0, 0.0, duals * np.where(duals == 0.0, 0.0, limit)).sum(axis=1)
        return sign * total

    @cached_property
    def _columns(self) -> csr_array:
        """The matrix in column format."""
        return csr_array(self.matrix.T)

    @cached_property
    def _implied(self) -> tuple[Floats, Floats]:
        """The limits of each variable that follow from its own and from rows."""
        return implied_limits(self.matrix, self.row_lower, self.row_upper, self.lower, self.upper)

    def recover_dual(self, x: NDArray[Any]) -> Floats:
        """Zero: the bound of the variables' own limits, which the duals of a relaxation with a big M may miss."""
        return np.zeros(self.row_lower.size)

    def active_dual(self, y: Floats) -> Floats:
        there = np.where(np.asarray(y) > 0, np.isfinite(self.row_lower), np.isfinite(self.row_upper))
        return np.where(there, y, 0.0)

    def named_dual(self, y: Floats) -> dict[str, NDArray[Any]]:
        return split_by_block(self.rows, self.active_dual(y))


FIELDS = tuple(field.name for field in fields(LinearProgram))
