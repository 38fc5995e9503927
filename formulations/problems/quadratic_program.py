"""Convex quadratic programs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from scipy.sparse.csgraph import connected_components

from formulations.arrays import Bools, Floats, Ints
from formulations.display import CompactReprMixin
from formulations.errors import InfeasibleError, InvalidProblemError, UnsupportedProblemError
from formulations.problems.directed_rounding import UNIT, Pair, above, added, below, difference, products, weighted
from formulations.problems.dual_enclosure import CARE, enclosed_duals
from formulations.problems.linear_program import LinearProgram, RowProgram, finite_matrix, least_size
from formulations.problems.problem import EPSILON, checked_dual, unit
from formulations.problems.program import Block, BlockNames, Program, name_at, with_constant
from formulations.time_limit import is_out_of_time

TRIES = 4  # maximum number of corrections of duals without a bound
NEWTON_STEPS = 3  # corrections of the point of linearization
NO_DUAL = 1e-8  # duals of this part of the largest are rounding
SHRINKS = (2.0**-44, 2.0**-36, 2.0**-28)  # by which duals are made smaller
LITTLE = 1e-12  # of the terms of the objective, that reduced costs may lower the bound by
MOST_CHECKED = 3000  # connected variables for which the hessian is tested for positive semidefiniteness
MOST_DENSE = 2000  # variables of a component of the hessian whose curvature is worked out


@dataclass(frozen=True, eq=False)
class Curvature(CompactReprMixin):
    """Of each variable: a lower bound of the least eigenvalue of its component of the hessian, scaled to a diagonal of
    order one (0 if unknown or not positive); and its scale. `parts` are the definite components, `done` all known."""

    least: Floats
    scale: Floats
    parts: list[Ints]
    done: set[int]


def least_eigenvalue(matrix: Floats) -> float:
    """A lower bound of the least eigenvalue of a symmetric matrix, 0 if none is proved to be positive: Cholesky's
    method succeeds after a shift that exceeds its rounding errors [Rump 2006].

    >>> 0.9 < least_eigenvalue(np.diag([1.0, 3.0])) <= 1.0, least_eigenvalue(np.ones((2, 2)))
    (True, 0.0)
    """
    count, trace = matrix.shape[0], float(np.trace(matrix))
    rounding = 4.0 * (count + 4) * UNIT * trace
    least = float(np.linalg.eigvalsh(matrix)[0])
    for part in (0.99, 0.5):
        aim = part * least - rounding
        if aim <= 0.0:
            return 0.0
        try:
            np.linalg.cholesky(matrix - (aim + rounding) * np.eye(count))
        except np.linalg.LinAlgError:
            continue
        return float(aim)
    return 0.0


def scaled_least(matrix: Floats) -> tuple[float, Floats]:
    """`least_eigenvalue` of the matrix scaled to a diagonal of order one, 0 if that is not positive; the scale."""
    diagonal = np.diag(matrix)
    if not (diagonal > 0.0).all():
        return 0.0, np.ones(diagonal.size)
    scale = np.ldexp(1.0, -(np.frexp(diagonal)[1] // 2))
    return least_eigenvalue(matrix * scale[:, None] * scale), scale


@dataclass(frozen=True, eq=False)
class QuadraticProgram(RowProgram):
    """min (or max) ½ xᵀ hessian x + linear · x  subject to  row_lower <= matrix x <= row_upper, lower <= x <= upper.

    `hessian` is symmetric, positive semidefinite for a minimum and negative semidefinite for a maximum (see
    `check_curvature`; the bound requires it). `variables` and `rows` name columns and rows by block. A dual y has one
    entry per row, with the sign of a minimum, followed by a point z at which the objective is linearized.
    """

    hessian: csr_array
    linear: Floats
    matrix: csr_array
    row_lower: Floats
    row_upper: Floats
    lower: Floats
    upper: Floats
    is_maximization: bool = False
    variables: tuple[Block, ...] = ()
    rows: tuple[Block, ...] = ()

    def __post_init__(self) -> None:
        hessian = finite_matrix("hessian entries", self.hessian)
        object.__setattr__(self, "hessian", hessian)
        rest = self._feasible_set
        for name in ("matrix", "row_lower", "row_upper", "lower", "upper", "variables", "rows"):
            object.__setattr__(self, name, getattr(rest, name))
        object.__setattr__(self, "linear", rest.objective)
        if hessian.shape != (self.linear.size, self.linear.size):
            raise InvalidProblemError(f"hessian has shape {hessian.shape}, but there are {self.linear.size} variables")

    @classmethod
    def from_program(cls, program: Program) -> QuadraticProgram:
        """The quadratic program of a `Program` that has a hessian and no integers."""
        if program.hessian is None or program.integer is not None:
            raise InvalidProblemError("a quadratic program must have a hessian and no integer variables")
        limits = (program.row_lower, program.row_upper, program.lower, program.upper)
        names = (program.variables, program.rows)
        return cls(program.hessian, program.objective, program.matrix, *limits, program.is_maximization, *names)

    def check_curvature(self, name: str) -> None:
        """Raise InvalidProblemError unless the objective is convex (for a maximum, concave) up to rounding."""
        label, sign = self._components, -1.0 if self.is_maximization else 1.0
        held = np.unique(label[np.flatnonzero(np.diff(self.hessian.indptr))])
        for component in held.tolist():
            part = np.flatnonzero(label == component)
            if part.size > MOST_CHECKED:
                raise InvalidProblemError(
                    f"{name}: squares of {part.size} connected variables are more than {MOST_CHECKED}; state it by "
                    "QuadraticProgram, which leaves convexity to you"
                )
            dense = sign * self.hessian[part][:, part].toarray()
            symmetric = np.array_equal(dense, dense.T)
            with suppress(np.linalg.LinAlgError):
                if symmetric:  # if it has a Cholesky factor, no eigenvalue is below -1e-9 of the largest entry (or 1)
                    np.linalg.cholesky(dense + 1e-9 * max(1.0, float(np.diag(dense).max())) * np.eye(len(dense)))
                    continue
            values = np.linalg.eigvalsh(dense)
            if not symmetric or values[0] < -1e-9 * max(1.0, values[-1]):
                curved = "concave" if self.is_maximization else "convex"
                raise InvalidProblemError(f"{name}: its squares are not {curved} (an eigenvalue is {values[0]:.3g})")

    @cached_property
    def minimum(self) -> QuadraticProgram:
        """The same points with minus the objective of a maximum; a minimum itself."""
        if not self.is_maximization:
            return self
        return replace(self, hessian=-self.hessian, linear=-self.linear, is_maximization=False)

    @property
    def program(self) -> Program:
        return replace(self._feasible_set.program, hessian=self.hessian)

    def linearized(self, objective: Floats) -> LinearProgram:
        """The linear program over the same feasible set with this objective."""
        limits = (self.row_lower, self.row_upper, self.lower, self.upper)
        names = (self.variables, self.rows)
        return LinearProgram(objective, self.matrix, *limits, self.is_maximization, None, *names)

    @cached_property
    def _feasible_set(self) -> LinearProgram:
        return self.linearized(self.linear)

    @property
    def size(self) -> int:
        return int(self.matrix.nnz + self.hessian.nnz) + self.linear.size

    @property
    def scale(self) -> float:
        """Σ |objective|, every variable at its largest finite limit, at least one."""
        reach = self._feasible_set.reach
        return float(np.abs(self.linear) @ reach + reach @ (abs(self.hessian) @ reach))

    def magnitude_at(self, x: NDArray[Any]) -> float:
        size = np.abs(x)
        terms = float(np.abs(self.linear) @ size + size @ (abs(self.hessian) @ size))
        return min(self.scale, max(terms, least_size(np.append(self.hessian.data, self.linear))))

    def value(self, x: NDArray[Any]) -> float:
        return float(0.5 * x @ (self.hessian @ x) + self.linear @ x)

    def violation(self, x: NDArray[Any]) -> float:
        return self._feasible_set.violation(x)

    def repair(self, x: NDArray[Any]) -> NDArray[Any]:
        return self._feasible_set.repair(x)

    def value_lower_bound(self, x: NDArray[Any]) -> float:
        point = np.asarray(x, dtype=np.float64)
        terms, digits, off = products(self.linear, point)
        bent, lost = weighted(0.5 * point, self._hessian_product(point))
        if self.is_maximization:
            return below(terms, digits, *bent, -(off + lost))
        return above(terms, digits, *bent, off + lost)

    def bound(self, y: Floats) -> float:
        """Convexity: f(x) = ½ (x - z)ᵀH(x - z) - ½ zᵀHz + ∇f(z)ᵀx for every z; then weak duality in x.

        Every z and every row dual give a bound. A reduced cost r that presses on a far or missing limit is paid for by
        the curvature, where that is positive definite: rᵀ(x - z) + ½ (x - z)ᵀH(x - z) >= -½ rᵀH⁻¹r. Where the bound is
        infinite still, nearby duals and a point with reduced costs of exactly 0 are enclosed. They stay unknown where
        more than about 70 free directions depend on each other up to rounding and the matrices are dense.
        """
        least = self.minimum._best_near(y)[0]
        return -least if self.is_maximization else least

    def nearby_dual(self, y: Floats) -> Floats:
        """The duals and the point of linearization near y that prove the bound, up to rounding."""
        return self.minimum._best_near(y)[1]

    def _best_near(self, y: Floats) -> tuple[float, Floats]:
        rows, size = self.row_lower.size, self.linear.size
        prices, z = np.split(checked_dual(y, rows + size, f"entries ({rows} rows, {size} variables)"), [rows])
        best, used, moved = -np.inf, np.asarray(y, dtype=np.float64), z
        for _ in range(NEWTON_STEPS):
            bound, step = self._bound_at(prices, moved)
            if bound >= best - 4.0 * EPSILON * abs(best):  # of equal ones, that with the least reduced costs
                best, used = max(best, bound), np.concatenate([prices, moved])
            if step is None or not np.isfinite(step).all():
                break
            moved = moved - step
        for part in SHRINKS:  # with rows of positive coefficients, smaller duals raise every reduced cost
            if best > -np.inf or not np.isfinite(prices).all():
                break
            smaller = prices * (1.0 - part)
            best, used = self._bound_at(smaller, z)[0], np.concatenate([smaller, z])
        firm = np.where(np.abs(prices) > NO_DUAL * np.abs(y).max(initial=0.0), prices, 0.0)
        for some in (prices, firm):  # some duals may be rounding, of the wrong sign
            if best == -np.inf and np.isfinite(y).all() and (some is prices or (firm != prices).any()):
                best, used = self._enclosed(np.concatenate([some, z]))
        return best, used

    def _enclosed(self, y: Floats) -> tuple[float, Floats]:
        """The bound of duals and a point near y with reduced costs of exactly 0 where a limit is missing: directions
        without curvature that are free need both."""
        rows, size = self.row_lower.size, self.linear.size
        columns = csr_array(hstack([self.matrix.T, -self.hessian]))
        two_sided = np.ones(rows + size, dtype=bool)
        two_sided[:rows] = np.isfinite(self.row_lower) & np.isfinite(self.row_upper)
        none, zero, radius = np.zeros(size), np.zeros(size, dtype=bool), np.zeros(rows + size)
        best, used, duals = -np.inf, y, self.active_dual(y)
        for tried in range(TRIES):
            if tried and is_out_of_time():
                break
            z, off = duals[rows:], radius[rows:]
            bent = self._hessian_product(z)
            terms, lost = weighted(-0.5 * z, bent)
            lost += CARE * float(off @ (np.abs(bent.high) + bent.off + abs(self.hessian) @ off))
            cost, digits, spread = self._gradient(bent)
            spread = spread + CARE * (abs(self.hessian) @ off)
            bound, wrong = self._feasible_set.pressed(cost, digits, spread, duals[:rows], radius[:rows], zero)
            bound = below(bound, *terms, -lost)
            if bound >= best:
                best, used = bound, duals
            if not wrong.any():
                break
            zero |= wrong
            near = enclosed_duals(columns, self.linear, none, none, duals, two_sided, np.flatnonzero(zero))
            if near is None:
                break
            duals, radius = near.duals, near.radius
        return best, used

    def _gradient(self, bent: Pair) -> tuple[Floats, Floats, Floats]:
        """The gradient at a point, from hessian times the point: sums, digits and a bound of their error."""
        cost, digits = added(self.linear, bent.high)
        digits = digits + bent.low
        size = np.abs(cost) + np.abs(digits) + np.abs(bent.high)
        return cost, digits, bent.off + EPSILON**2 * size * (bent.low != 0.0)

    def _bound_at(self, prices: Floats, z: Floats) -> tuple[float, Floats | None]:
        """The bound of these duals and z; a step from z that lowers what curvature pays, None if it pays nothing."""
        bent = self._hessian_product(z)
        curved, lost = weighted(-0.5 * z, bent)
        cost, digits, off = self._gradient(bent)
        moved = np.zeros(z.size)
        terms = float(np.abs(z) @ (np.abs(self.linear) + np.abs(bent.high)))

        def curvature(reduced: Pair, error: Floats) -> tuple[Bools, list[Floats], float]:
            """For reduced costs r whose limits are farther away than r²/2 over the least eigenvalue."""
            below_, above_ = np.abs(z - self.lower), np.abs(self.upper - z)
            unsure = np.abs(reduced.high) <= error
            way = np.where(unsure, np.maximum(below_, above_), np.where(reduced.high > 0.0, below_, above_))
            size = (np.abs(reduced.high) + np.abs(reduced.low) + error) * CARE
            pressing = size > 0.0
            far = np.zeros(z.size)
            far[pressing] = size[pressing] * way[pressing]
            if far.sum() <= LITTLE * terms:
                return np.zeros(z.size, dtype=bool), [], 0.0
            known, extra = self._curvature(np.flatnonzero(far > 0.0)), list[Floats]()
            if (np.isinf(far) & (known.least == 0.0)).any() and self._of_equations is not None:
                known, weight = self._of_equations
                left = difference(self.row_lower[self._equations], self.matrix[self._equations], z)
                away = (np.abs(left.high) + np.abs(left.low) + left.off) * CARE
                extra = [-0.5 * weight * CARE * away**2]
            paid = np.full(z.size, np.inf)
            definite = known.least > 0.0
            paid[definite] = CARE * (size[definite] * known.scale[definite]) ** 2 / (2.0 * known.least[definite])
            taken = far > paid
            at, lost = weighted(z[taken], Pair(reduced.high[taken], reduced.low[taken], error[taken]))
            for part in known.parts:
                if taken[part].any():
                    residual = np.where(taken[part], reduced.high[part] + reduced.low[part], 0.0)
                    moved[part] = np.linalg.solve(self.hessian[part][:, part].toarray(), residual)
            return taken, [*at, -paid[taken], *extra], lost

        bound = self._feasible_set.least(cost, digits, prices, off, curvature)
        return below(bound, *curved, -lost), moved if moved.any() else None

    def _curvature(self, columns: Ints) -> Curvature:
        """The curvature of the components of the hessian that contain these columns."""
        known = self._known_curvature
        label = self._components
        for component in np.unique(label[columns]).tolist():
            if component in known.done:
                continue
            known.done.add(component)
            part = np.flatnonzero(label == component)
            if part.size > MOST_DENSE:
                continue
            known.least[part], known.scale[part] = scaled_least(self.hessian[part][:, part].toarray())
            if known.least[part[0]] > 0.0:
                known.parts.append(part)
        return known

    @cached_property
    def _equations(self) -> Ints:
        """The rows that are equations."""
        return np.flatnonzero(self.row_lower == self.row_upper)

    @cached_property
    def _of_equations(self) -> tuple[Curvature, float] | None:
        """The curvature of H + weight AᵀA, A the equations, and the weight; None if it is not positive.

        For points w apart from z, ½ wᵀHw = ½ wᵀ(H + weight AᵀA)w - ½ weight ‖b - Az‖².
        """
        size = self.linear.size
        rows = self.matrix[self._equations]
        most = float(np.abs(self.hessian.data).max(initial=0.0))
        if size > MOST_DENSE or not rows.nnz or not most > 0.0:
            return None
        gram = (rows.T @ rows).toarray()
        weight = unit(np.array([most])) / unit(np.array([float(np.diag(gram).max())]))
        least, scale = scaled_least(self.hessian.toarray() + weight * gram)
        rounding = (abs(self.hessian).toarray() + weight * (abs(rows).T @ abs(rows)).toarray()) * UNIT
        error = 2.0 * (rows.shape[0] + 4) * float((rounding * scale[:, None] * scale).sum(axis=1).max())
        least -= error
        return (Curvature(np.full(size, least), scale, [], set()), weight) if least > 0.0 else None

    @cached_property
    def _components(self) -> Ints:
        """The component of the hessian's sparsity pattern that each variable belongs to."""
        return np.asarray(connected_components(self.hessian, directed=False)[1], dtype=np.int64)

    @cached_property
    def _known_curvature(self) -> Curvature:
        return Curvature(np.zeros(self.linear.size), np.ones(self.linear.size), [], set())

    def _hessian_product(self, x: Floats) -> Pair:
        """hessian x."""
        bent = difference(np.zeros(x.size), self.hessian, x)
        return Pair(-bent.high, -bent.low, bent.off)

    def active_dual(self, y: Floats) -> Floats:
        rows = self.row_lower.size
        return np.concatenate([self._feasible_set.active_dual(y[:rows]), y[rows:]])

    def named_dual(self, y: Floats) -> dict[str, NDArray[Any]]:
        return self._feasible_set.named_dual(y[: self.row_lower.size])


def program_of(
    objective: Floats,
    matrix: Any,
    rows: tuple[Floats, Floats],
    limits: tuple[Floats, Floats],
    names: tuple[BlockNames, BlockNames],
    *,
    is_maximization: bool,
    integer: Any = None,
    constant: float = 0.0,
    hessian: Any = None,
) -> LinearProgram | QuadraticProgram:
    """The program of these arrays; names: of variables, of rows."""
    variables, row_names = names
    objective = np.asarray(objective, dtype=np.float64)
    size, count = objective.size, rows[0].size
    if not size:
        raise InvalidProblemError("the model has no variables; add one at least")
    for (low, high), held in ((rows, row_names), (limits, variables)):
        for index in np.flatnonzero((low == np.inf) | (high == -np.inf))[:1].tolist():
            raise InfeasibleError(f"{name_at(held.blocks, index)} must be between {low[index]} and {high[index]}")
    marked = None if integer is None else np.asarray(integer, dtype=np.bool_)
    sides = (rows[0] + 0.0, rows[1] + 0.0, limits[0] + 0.0, limits[1] + 0.0)  # no -0
    blocks = (tuple(variables.blocks), tuple(row_names.blocks))
    curved = None if hessian is None or not csr_array(hessian).count_nonzero() else csr_array(hessian)
    table = csr_array(matrix, shape=(count, size))
    stated = with_constant(Program(objective, table, *sides, is_maximization, marked, *blocks, curved), constant)
    if curved is None:
        return LinearProgram.from_program(stated)
    if marked is not None and marked.any():
        raise UnsupportedProblemError(
            "the model has a quadratic objective and integer variables, which no problem class supports; remove one"
        )
    program = QuadraticProgram.from_program(replace(stated, integer=None))
    program.check_curvature("the model")
    return program
