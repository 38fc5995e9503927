"""The base class of problems: value, feasibility and bound of a point from the data alone; solutions; scaling units.

A problem is a frozen record of arrays. Solvers accept problem classes; bridges reformulate one class as another. The
problem evaluates every `Solution`, independently of the solver.

Units are powers of two that scale numbers to order one: multiplying by them is exact.

>>> unit(np.array([0.3, -5.0])), unit(np.zeros(2))
(8.0, 1.0)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from formulations.arrays import Floats, Ints, as_path, check_no_mask
from formulations.display import CompactReprMixin
from formulations.errors import FormulationError, InvalidProblemError, InvalidSolutionError, UnsupportedProblemError
from formulations.problems.program import Program, algebra, write
from formulations.registry import load

EPSILON = 2.0**-52

GAINED = 1e-8  # of its terms, that the value of a feasible point may gain by violations within the tolerance

SMALL = 400  # most numbers in a problem that is printed in full


VECTOR_METHODS = (
    "value", "value_lower_bound", "violations", "repair", "recover_dual", "order_of", "named_primal",
    "bound", "bound_float64", "active_dual", "named_dual",
)  # fmt: skip
"""The methods whose only argument is a point or a dual."""


def checking_vector(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method of a problem; an error from inside names a point or dual that is malformed."""

    @wraps(method)
    def called(problem: Problem, *passed: Any, **named: Any) -> Any:
        if passed:
            check_no_mask("the point or dual", passed[0])
        try:
            return method(problem, *passed, **named)
        except FormulationError:
            raise
        except Exception as error:
            vector = next(iter((*passed, *named.values())), None)
            numeric = isinstance(vector, np.ndarray) and vector.dtype.kind in "iuf" and bool(np.isfinite(vector).all())
            if numeric and not isinstance(error, ValueError | IndexError | TypeError):
                raise  # not the vector's fault
            raise InvalidProblemError(
                f"{method.__name__}() of {type(problem).__name__} needs a point or dual of {problem.shape_text}; got "
                f"{vector!r:.80} ({error}). Pass `x` or `y` of a solution of this problem."
            ) from error

    return called


class Problem(CompactReprMixin, ABC):
    """A problem as data. `x` is a point in the class's own shape, `y` a dual vector."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in VECTOR_METHODS:
            if name in vars(cls):
                setattr(cls, name, checking_vector(vars(cls)[name]))

    is_maximization: bool = True

    always_feasible: ClassVar[bool] = False
    """Whether every problem of this form, once made, has a solution: a solver that denies it has failed."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """The magnitude of the objective: its largest terms at typical points."""

    @property
    @abstractmethod
    def rounding(self) -> float:
        """A bound on the rounding error of a value or bound of this problem."""

    def magnitude_at(self, x: NDArray[Any]) -> float:
        """The magnitude of the value of x, to which gaps are relative: the sum of its terms if the class has them."""
        return self.scale

    def rounding_at(self, x: NDArray[Any]) -> float:
        """A gap at x up to this counts as rounding: by the terms of the objective at x if the class has them."""
        return self.rounding

    @property
    @abstractmethod
    def shape_text(self) -> str:
        """The size of the problem, as text."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of entries of its objective and constraints."""

    @property
    def program(self) -> Program:
        """The problem as rows and columns; raises `UnsupportedProblemError` if the class has none."""
        raise UnsupportedProblemError(f"{type(self).__name__} cannot be restated as a linear or quadratic program")

    @property
    def full_program(self) -> Program:
        """The `program` that `write` and the models of other tools state: with integers, and with the constant of the
        objective as a variable fixed at 1."""
        return self.program

    def to_text(self) -> str:
        """The full problem in algebraic notation."""
        return algebra(self.program)

    def __str__(self) -> str:
        return self.to_text() if self.size <= SMALL else f"{type(self).__name__} of {self.shape_text}"

    def __repr__(self) -> str:
        """Its class and size."""
        nonzeros = getattr(getattr(self, "matrix", None), "nnz", None)
        held = "" if nonzeros is None else f", {nonzeros} nonzeros"
        return f"<{type(self).__name__} of {self.shape_text}{held}>"

    @property
    def tolerance(self) -> float:
        """The violation up to which a point counts as feasible."""
        return 0.0

    @abstractmethod
    def value(self, x: NDArray[Any]) -> float:
        """The objective at x, in double precision."""

    def value_lower_bound(self, x: NDArray[Any]) -> float:
        """The objective at x, rounded down by its possible rounding error."""
        return self.value(x)

    @abstractmethod
    def violation(self, x: NDArray[Any]) -> float:
        """The largest constraint violation of x: 0 for a feasible point, infinity for a malformed one."""

    @abstractmethod
    def bound(self, y: Floats) -> float:
        """A bound on the optimum from any dual vector y (weak duality), rounded outward."""

    def bound_float64(self, y: Floats) -> float:
        """The bound in plain double precision, without outward rounding."""
        return self.bound(y)

    def is_valid_dual(self, y: Any) -> bool:
        """Whether y is a finite dual vector of the right shape; by default, whether it proves a bound."""
        return proven(self, y, outward=False) is not None

    def active_dual(self, y: Floats) -> Floats:
        """The entries of y that belong to finite limits, 0 for the others: they prove the bound of y."""
        return y

    def recover_dual(self, x: NDArray[Any]) -> Floats | None:
        """A dual that proves x optimal if it is; None if the class has no method."""
        return None

    def repair(self, x: NDArray[Any]) -> NDArray[Any]:
        """A feasible point near x if the class has a cheap repair, else x."""
        return x

    def improve_bound(self, solution: Solution) -> Solution:
        """The same solution with a better, costlier bound; default: unchanged."""
        return solution

    def violations(self, x: NDArray[Any]) -> dict[str, float]:
        """Violations of soft constraints at a point: name → amount."""
        return {}

    def order_of(self, x: NDArray[Any]) -> Ints:
        """The document at each position, for ranking problems."""
        raise UnsupportedProblemError(f"a solution of {type(self).__name__} has no order. Read `primal` instead.")

    def named_primal(self, x: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return {"x": x}

    def named_dual(self, y: Floats) -> dict[str, NDArray[Any]]:
        return {"y": y}

    def solution(self, x: NDArray[Any], y: Floats | None = None, *, outward: bool = True) -> Solution:
        """The solution with primal x and dual y, its violation, value and bound recomputed, rounded outward if
        requested; y is recovered from x if it is missing or if recovered duals close its gap. Raises
        `InvalidSolutionError` if x is infeasible or malformed."""
        violation = self.check_point(x)
        value = self.value_lower_bound(x) if outward else self.value(x)
        rounding = self.rounding_at(x)
        candidates: list[tuple[float, Floats | None]] = []
        proved = proven(self, y, outward)
        if y is not None and proved is not None:
            candidates.append((proved, y))
        if not candidates or abs(candidates[0][0] - value) > rounding:
            recovered = self.recover_dual(x)
            if recovered is not None:
                candidates.append((self.bound(recovered) if outward else self.bound_float64(recovered), recovered))
        sign = 1.0 if self.is_maximization else -1.0
        bound, dual = min(candidates, key=lambda pair: sign * pair[0], default=(sign * np.inf, None))
        status = status_of(sign * (bound - value), violation, rounding, self.tolerance)
        if violation > 0.0 and sign * (bound - value) < -GAINED * self.magnitude_at(x):  # better than feasible points
            status = Status.INACCURATE
        dual = None if dual is None else self.active_dual(dual)
        return Solution(self, x, dual, float(value), float(bound), status, float(violation))

    def check_point(self, x: NDArray[Any]) -> float:
        """The violation of x; raises `InvalidSolutionError` if x is infeasible or malformed."""
        with np.errstate(all="ignore"):
            violation = self.violation(x)
        if not np.isfinite(violation):
            point = np.array2string(np.asarray(x), threshold=8, edgeitems=3)
            raise InvalidSolutionError(
                f"an infeasible or malformed point of {type(self).__name__} ({self.shape_text}): {point} of shape "
                f"{np.shape(x)}{self.flaw_of(x)}"
            )
        return violation

    def flaw_of(self, x: NDArray[Any]) -> str:
        """What is malformed in x, to end a message; "" by default."""
        return ""

    def to_cvxpy(self) -> Any:
        """The problem as a cvxpy.Problem, to be changed or solved there: a variable for each block of variables, named
        as in `to_text`, and a constraint for each block of rows with the label of the block.

        More than 200 blocks, as of files and of models with scalar variables, are one vector x, and their rows one
        constraint for each relation. The variable named "open" is then `x[problem.program.names[0].index("open")]`. A
        margin dual is stated in its own variable α, not in solver scaling.
        """
        return load("formulations.solvers.cvxpy_models:to_cvxpy")(self)

    def to_highs(self) -> Any:
        """The problem as a highspy.Highs object, ready to run, with names of columns and rows. As in `write`, a margin
        dual is in solver scaling: a minimum, with another objective."""
        return load("formulations.solvers.models:to_highs")(self)

    def to_mathopt(self) -> Any:
        """The problem as a Model of OR-Tools MathOpt, with names of variables and linear constraints; a margin dual in
        solver scaling, as in `to_highs`."""
        return load("formulations.solvers.models:to_mathopt")(self)

    def write(self, path: str | Path) -> None:
        """Write the problem as a linear or quadratic program to an .mps or .lp file.

        A constrained ranking is written as an integer program. A margin dual is written in solver scaling: a minimum,
        with variables and objective of order one.
        """
        write(self.full_program, Path(as_path(path)))


class Status(Enum):
    """What is proven of an answer from the problem's data alone, independently of the solver."""

    OPTIMAL = "feasible; value and proven bound agree to rounding"
    BOUNDED_GAP = "feasible; the optimum is proven to lie between value and bound"
    FEASIBLE = "feasible; nothing is proven about the optimum"
    INACCURATE = "breaks its constraints by more than their tolerance, or gains by it: no feasible point"


@dataclass(frozen=True, eq=False)
class Solution(CompactReprMixin):
    """A point of `problem`, its value, and a bound that no feasible point can beat.

    `value`, `bound` and `violation` (of the worst constraint, relative to its largest term) are recomputed from the
    problem's data. For a maximum value <= optimum <= bound, for a minimum the reverse, for the exact input numbers:
    both are rounded outward (`directed_rounding`). One exception: a point that violates a row within its tolerance may
    exceed the optimum. `x` and `y` are the primal and dual vectors in the problem's own shape; `primal` and `dual` are
    the same by name. The solver's own claims are `reported_status` and `reported_bound`; `verdict` has all in words.
    """

    problem: Problem
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
        """Distance from value to bound; negative only if a violation within the tolerance exceeds rounding."""
        apart = self.bound - self.value if self.problem.is_maximization else self.value - self.bound
        return 0.0 if apart < 0.0 and apart >= -self.problem.rounding_at(self.x) else apart

    @property
    def reported_status(self) -> str | None:
        """The solver's own claim: "OPTIMAL" of a finished integer search, "TIME_LIMIT" of one that was cut; or None."""
        word = self.details.get("reported_status")
        return word if isinstance(word, str) else None

    @property
    def reported_bound(self) -> float | None:
        """The bound that the solver itself claims; None without a claim."""
        bound = self.details.get("reported_bound")
        return float(bound) if isinstance(bound, float | int) and not isinstance(bound, bool) else None

    @property
    def verdict(self) -> str:
        """What is proven, or else what the solver claims, in words: "optimal", "optimal (claimed)", "time limit",
        "bounded gap", "feasible", "inaccurate"."""
        if self.reported_status == "TIME_LIMIT" and self.status is not Status.OPTIMAL:
            return "time limit"
        if self.reported_status == "OPTIMAL" and self.status not in (Status.OPTIMAL, Status.INACCURATE):
            bound = self.value if self.reported_bound is None else self.reported_bound
            if abs(bound - self.value) <= GAINED * max(abs(bound), abs(self.value)):  # a claim about this value
                return "optimal (claimed)"
        return self.status.name.lower().replace("_", " ")

    @property
    def order(self) -> Ints:
        """The document at each position."""
        return self.problem.order_of(self.x)

    @property
    def violations(self) -> dict[str, float]:
        """Violations of soft constraints: name of a row, pin or ban → amount."""
        return self.problem.violations(self.x)

    @property
    def primal(self) -> dict[str, NDArray[Any]]:
        """The value of every variable, one array a named block; a float for a block of one, as of a file."""
        return self.problem.named_primal(self.x)

    @property
    def dual(self) -> dict[str, NDArray[Any]]:
        """The dual of every row, one array per named block; empty if none is known. Of a program it is positive for an
        active lower limit and negative for an upper one, also of a maximum; with integers, of the relaxation."""
        return {} if self.y is None else self.problem.named_dual(self.y)

    def has_point_for(self, problem: Problem) -> bool:
        """Whether x is a point of the shape of another problem, to start from."""
        sizes = [len(part.lower) for part in (self.problem, problem) if hasattr(part, "lower")]
        return type(self.problem) is type(problem) and len(set(sizes)) <= 1

    def assign_to(self, model: Any) -> None:
        """Write the values into the variables of the model that `as_problem` read, and the duals of a program without
        integers into its constraints: a cvxpy.Problem, linopy.Model, pulp.LpProblem or highspy.Highs (values only).

        Raises UnsupportedProblemError for a model without a place for solutions, InvalidSolutionError for another
        model than the one that was solved.
        """
        load("formulations.solvers.models:assign")(self, model)

    def __repr__(self) -> str:
        claim = ""
        if self.verdict.upper().replace(" ", "_") != self.status.name:
            bound = "" if self.reported_bound is None else f", claimed bound={self.reported_bound:.9g}"
            claim = f"{self.verdict}{bound}, "
        return (
            f"Solution({self.status.name}, value={self.value:.9g}, bound={self.bound:.9g}, {claim}"
            f"solver={self.solver!r}, {1e3 * self.seconds:.3g} ms)"
        )


def checked_dual(y: Any, size: int, entry: str) -> Floats:
    """A dual with one entry for each of `size` things as doubles; `InvalidProblemError` for another shape."""
    if np.shape(y) != (size,):
        raise InvalidProblemError(f"a dual must have one entry for each of {size} {entry}; got shape {np.shape(y)}.")
    return np.asarray(y, dtype=np.float64)


def integers_below(x: Any, size: int, limit: int) -> Ints | None:
    """A point as `size` integers from 0 to limit - 1; None if it is something else."""
    values = np.asarray(x)
    if values.shape != (size,) or values.dtype.kind not in "iuf" or (values != np.floor(values)).any():
        return None
    chosen = values.astype(np.int64)
    return chosen if chosen.min() >= 0 and chosen.max() < limit else None


def proven(problem: Problem, y: Floats | None, outward: bool = True) -> float | None:
    """The bound that y proves; None if y has a wrong shape or is not finite."""
    if not isinstance(y, np.ndarray) or y.dtype.kind not in "iuf" or not np.isfinite(y).all():
        return None
    try:
        with np.errstate(all="ignore"):
            return problem.bound(y) if outward else problem.bound_float64(y)
    except ValueError:  # `InvalidProblemError`, or arrays that do not fit
        return None


def status_of(gap: float, violation: float, rounding: float, tolerance: float) -> Status:
    """The status of a point with this gap and violation."""
    if not violation <= tolerance:
        return Status.INACCURATE
    if not np.isfinite(gap):
        return Status.FEASIBLE
    return Status.OPTIMAL if gap <= rounding else Status.BOUNDED_GAP


def unit(values: Floats) -> float:
    """The least power of two above every magnitude in `values`; 1 where all are zero."""
    largest = float(np.abs(values).max(initial=0.0))
    return float(np.ldexp(1.0, int(np.frexp(largest)[1]))) if largest > 0 else 1.0


def row_units(matrix: csr_array) -> Floats:
    """A unit for each row: of the largest number, or of the smallest where solvers would take it for 0 (2^-29 or less
    of the largest); 1 for rows of numbers of order one (1e-4 to 1e4)."""
    sizes, used = np.abs(matrix.data), np.flatnonzero(np.diff(matrix.indptr))
    largest, smallest = np.zeros(matrix.shape[0]), np.full(matrix.shape[0], np.inf)
    if used.size:
        starts = matrix.indptr[used]
        largest[used] = np.maximum.reduceat(sizes, starts)
        smallest[used] = np.minimum.reduceat(np.where(sizes > 0.0, sizes, np.inf), starts)
    moderate = (largest == 0) | ((smallest >= 1e-4) & (largest <= 1e4))
    powers = np.frexp(largest)[1]
    powers = np.where(smallest > np.ldexp(largest, -29), powers, np.maximum(np.frexp(smallest)[1], powers - 48))
    return np.where(moderate, 1.0, np.ldexp(1.0, powers))
