"""A set of admissible rankings, built one constraint at a time.

>>> site = ["a.org", "a.org", "b.org", "c.org"]
>>> admissible = RankingSet(4, 3).at_most(1, by=site, name="site").precedes(3, 2)
>>> print(admissible)
RankingSet: 3 of 4 documents, site (3 rows), precedes (2 rows)
>>> admissible.violations([0, 1, 3])
{"site['a.org']": 1.0}
>>> admissible.is_feasible([0, 3, 2])
True
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import count as counting
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

from formulations.arrays import Bools, Floats, Ints, as_integer, check_type, each, integers
from formulations.constraints.conflict import Repair, emptiness, fillable_positions, repair
from formulations.constraints.constraint import Constraint, Labels, Some, row_rounding, violations
from formulations.constraints.kinds import add_rows, fix
from formulations.constraints.language import ConstraintMethods, ConstraintSpec
from formulations.constraints.rows import (
    SetRows,
    SoftConstraint,
    allowed_cells,
    cell_penalties,
    charge_of,
    valid_penalty,
    widened,
    with_soft_rows,
)
from formulations.display import CompactReprMixin, data_frame, plural
from formulations.errors import InfeasibleError, InvalidProblemError
from formulations.problems.assignment import is_order
from formulations.problems.linear_program import LinearProgram

LARGEST = 1 << 28  # the largest number of cells; each has a variable


@dataclass(frozen=True, eq=False)
class RankingSet(ConstraintMethods[Some, Labels], CompactReprMixin):
    """Rankings π in {0, 1}^(k × n) of k of n documents that satisfy constraints. Immutable.

    Each position holds one document, and each document has at most one position. documents=, positions= take a mask,
    indices or a range; None means all. by= takes one label per document (a tuple for several, None for none) and makes
    one row per label. name= names the rows in duals, conflicts and violations.

    documents, positions: n and k. constraints: the compiled constraints; the methods append to it. soft_constraints:
    constraints that may be violated at a penalty (`penalized`); they exclude no ranking.

    Raises InvalidProblemError for arguments that name no cell or count, InfeasibleError for k > n. Whether the set is
    empty is found out when a problem is stated over it, or by `check_nonempty`.
    """

    documents: int
    positions: int
    constraints: tuple[Constraint, ...] = ()
    soft_constraints: tuple[SoftConstraint, ...] = ()

    def __post_init__(self) -> None:
        for name in ("documents", "positions"):
            size = as_integer(name, getattr(self, name))
            if size == 0:
                raise InvalidProblemError(f"{name} must be 1 or more; got 0.")
            object.__setattr__(self, name, size)
        k, n = self.shape
        if k * n > LARGEST:
            raise InvalidProblemError(f"{k} positions × {n} documents exceed {LARGEST} cells; rank fewer documents")
        if k > n:
            raise InfeasibleError(f"{k} positions cannot be filled by {n} documents, one each; lower k to {n}")
        for soft in each("soft_constraints", self.soft_constraints):
            check_type("a soft constraint", soft, SoftConstraint, cure="Call penalized() of a set.")
        if not isinstance(self.constraints, tuple) or not all(isinstance(one, Constraint) for one in self._every):
            raise InvalidProblemError("constraints must be a tuple of Constraint instances; call the methods of a set")
        for soft in self.soft_constraints:
            valid_penalty(soft.penalty, soft.name)
        for one in self._every:
            forbids = (k * n,) if one.forbids is None else one.forbids.shape
            cells = one.matrix.shape[1]
            if cells != k * n or forbids not in (self.shape, (cells,)):
                raise InvalidProblemError(f"{one.name!r} is not over the {k} × {n} cells")

    @property
    def shape(self) -> tuple[int, int]:
        """k positions and n documents."""
        return self.positions, self.documents

    def add(self, kind: str, *args: Any, **where: Any) -> RankingSet:
        """Add a constraint of this kind; see `ConstraintMethods.add`. penalty= makes it soft."""
        spec = ConstraintSpec.from_call(kind, args, where)
        added = self._with(spec.compile(self.shape))
        return added if spec.penalty is None else added.penalized(added.constraints[-1].name, penalty=spec.penalty)

    def penalized(self, constraint: str, *, penalty: float) -> RankingSet:
        """Make the constraint of this name soft: a ranking may violate it at `penalty` per unit of value.

        A unit is one of what a row counts, or one forbidden cell. Raises InvalidProblemError for an unknown name, and
        for a penalty that is not a number from 0 to 1e150.
        """
        cost = valid_penalty(penalty, constraint)
        every = {held.name: held for held in self._every}
        if not isinstance(constraint, str) or constraint not in every:
            known = ", ".join(map(repr, every)) or "none"
            raise InvalidProblemError(f"No constraint is named {constraint!r}; the names are {known}.")
        hard = tuple(held for held in self.constraints if held.name != constraint)
        others = tuple(one for one in self.soft_constraints if one.name != constraint)
        return replace(self, constraints=hard, soft_constraints=(*others, SoftConstraint(every[constraint], cost)))

    @property
    def _every(self) -> tuple[Constraint, ...]:
        return (*self.constraints, *(one.constraint for one in self.soft_constraints))

    @classmethod
    def from_cvxpy(cls, variable: Any, constraints: Iterable[Any]) -> RankingSet:
        """The set of affine cvxpy constraints on `variable`, a `cvxpy.Variable((k, n))`.

        Constraints are named by their `set_label`; penalized(constraint, penalty=...) makes one soft. The rows of every
        set (positions, documents, 0 <= π <= 1) may be among them. Raises InvalidProblemError naming a constraint that
        is not affine or has other variables.
        """
        k, n = shape_of(variable)
        return reduce(cls._with, read_constraints(variable, constraints), cls(n, k))

    def __and__(self, other: RankingSet) -> RankingSet:
        """The rankings in both sets."""
        if not isinstance(other, RankingSet):
            return NotImplemented
        if (self.documents, self.positions) != (other.documents, other.positions):
            raise InvalidProblemError(f"& needs two sets of the same k and n; got {self.shape} and {other.shape}.")
        others: tuple[Constraint | SoftConstraint, ...] = (*other.constraints, *other.soft_constraints)
        return reduce(RankingSet._with, others, self)

    @cached_property
    def allowed_cells(self) -> Bools:
        """(k, n) the cells that no hard constraint forbids."""
        return allowed_cells(self.constraints, self.shape)

    @cached_property
    def compiled(self) -> SetRows:
        """All rows over the allowed cells: positions, documents unless another row implies it, hard constraints."""
        return SetRows.from_constraints(self.constraints, self.shape)

    @cached_property
    def compiled_with_soft(self) -> SetRows:
        """`compiled`, followed by the rows of the soft constraints with their penalties."""
        return with_soft_rows(self.compiled, self.soft_constraints)

    @cached_property
    def cell_penalties(self) -> Floats:
        """(k, n) the penalty of each cell that soft constraints forbid."""
        return cell_penalties(self.soft_constraints, self.shape)

    @cached_property
    def hard(self) -> RankingSet:
        """The set without its soft constraints."""
        return replace(self, soft_constraints=()) if self.soft_constraints else self

    @property
    def program(self) -> LinearProgram:
        """The linear program of the set with objective zero; with soft constraints the widened one with penalties."""
        if not self.soft_constraints:
            return LinearProgram.from_program(self.compiled.program(np.zeros(self.shape)))
        return LinearProgram.from_program(widened(self.compiled_with_soft, -self.cell_penalties))

    def violations(self, order: ArrayLike) -> dict[str, float]:
        """The violations of a ranking (the document at each position), soft constraints included: name of a row, or of
        a constraint that forbids cells → by how much."""
        return violations(self._every, self._check_order(order), self.documents)

    def binding(self, order: ArrayLike, dual: Mapping[str, ArrayLike] | None = None) -> Any:
        """The limits that a ranking (the document at each position) reaches or breaks: a pandas DataFrame by name.

        Columns: the constraint in words, limit, attained, price. dual: `solution.dual`, for the price: what one more
        unit of the limit gains at most, perhaps nothing: `sensitivity` solves. Forbidden cells have no limit.
        """
        check_type("dual", dual, Mapping, type(None), cure="Pass solution.dual.")
        cells = np.arange(self.positions) * self.documents + self._check_order(order)
        rows: dict[str, tuple[Any, ...]] = {}
        for one in self._every:
            attained = np.asarray(one.matrix[:, cells].sum(axis=1)).ravel()
            above, below = attained - one.upper, one.lower - attained
            limit = np.where(above >= below, one.upper, one.lower)
            price = np.ravel((dual or {}).get(one.name, np.full(one.rows, np.nan))) + 0.0
            near = np.maximum(above, below) >= -row_rounding(one.matrix, one.lower, one.upper, cells.size)
            for r in np.flatnonzero(near).tolist():
                rows[one.block.name(r)] = one.description(r), limit[r], attained[r], price[r]
        columns = enumerate(("constraint", "limit", "attained", "price"))
        return data_frame({name: [row[at] for row in rows.values()] for at, name in columns}, index=[*rows])

    def charge(self, order: ArrayLike) -> float:
        """The penalties of a ranking (the document at each position)."""
        return charge_of(self.soft_constraints, self._check_order(order), self.documents)

    def repair(self, penalties: float | Mapping[str, float] = 1.0) -> Repair:
        """A ranking of least penalized violation, and a bound that proves it.

        penalties: one for all constraints, or name to penalty; of the others the hard ones must hold, and soft ones
        keep their penalty. Raises InvalidProblemError for an unknown name, InfeasibleError if hard ones conflict.
        """
        return repair(self.shape, self.constraints, self.soft_constraints, penalties)

    def _check_order(self, order: ArrayLike) -> Ints:
        ranks = integers("order", order)
        if not is_order(ranks, self.positions, self.documents):
            raise InvalidProblemError(f"A ranking is the document at each position, none twice; got {ranks.tolist()}.")
        return ranks

    def is_feasible(self, order: ArrayLike) -> bool:
        """Whether a ranking (the document at each position) is in the set."""
        return not violations(self.constraints, self._check_order(order), self.documents)

    @cached_property
    def max_positions(self) -> int:
        """The most positions, from the first on, that can be filled: k unless the set is empty."""
        return fillable_positions(self.compiled, self.constraints)

    def check_nonempty(self) -> None:
        """Raise `InfeasibleError` if no ranking is in the set, naming constraints that conflict."""
        if self.max_positions < self.positions:
            raise InfeasibleError(emptiness(self.compiled, self.constraints, self.max_positions))

    def __str__(self) -> str:
        parts = [f"{c.name} ({plural(c.rows, 'row')})" if c.labels is not None else c.name for c in self.constraints]
        parts += [f"{held.name} (soft, penalty {held.penalty:g})" for held in self.soft_constraints]
        return f"RankingSet: {', '.join([f'{self.positions} of {self.documents} documents', *parts])}"

    def _with(self, constraint: Constraint | SoftConstraint) -> RankingSet:
        """The set with one more constraint; a name that is taken gets a number behind it."""
        if isinstance(constraint, SoftConstraint):
            hard = self._with(constraint.constraint)
            return hard.penalized(hard.constraints[-1].name, penalty=constraint.penalty)
        taken = {held.name for held in self._every} | {"position", "document", "π"}
        copies = (f"{constraint.name}_{copy}" for copy in counting(2))
        name = constraint.name if constraint.name not in taken else next(c for c in copies if c not in taken)
        return replace(self, constraints=(*self.constraints, replace(constraint, name=name)))


# cvxpy flattens matrices by columns and moves equations before inequalities; here each constraint is read separately,
# in the order of the list, with its columns in C order. cvxpy is not imported.


def shape_of(variable: Any) -> tuple[int, int]:
    """k positions and n documents of the variable π; InvalidProblemError where it cannot be the variable of a set."""
    if type(variable).__name__ != "Variable" or len(getattr(variable, "shape", ())) != 2:
        raise InvalidProblemError("the variable of a set must be a cvxpy.Variable((k, n)), one row per position")
    declared = [name for name, value in variable.attributes.items() if value is not None and value is not False]
    unread = set(declared) - {"nonneg", "boolean", "integer"}
    if unread:
        raise InvalidProblemError(f"{variable.name()} is declared with {', '.join(sorted(unread))}; use constraints")
    k, n = variable.shape
    return int(k), int(n)


def read_constraints(variable: Any, constraints: Any) -> Iterator[Constraint | SoftConstraint]:
    """The cvxpy constraints on π = `variable` as constraints of a ranking set."""
    if not isinstance(constraints, Iterable):
        what = "None" if constraints is None else f"one {type(constraints).__name__}"
        raise InvalidProblemError(f"from_cvxpy(π, constraints) needs a list of constraints, [] for none; got {what}.")
    for index, entry in enumerate(each("constraints", constraints)):
        constraint = entry.constraint if isinstance(entry, SoftConstraint) else entry
        name = str(getattr(constraint, "label", None) or f"constraint {index}")
        found = _read(shape_of(variable), name, *_affine(constraint, variable, name), isinstance(entry, SoftConstraint))
        yield from (SoftConstraint(one, entry.penalty) for one in found) if isinstance(entry, SoftConstraint) else found


def _affine(constraint: Any, variable: Any, name: str) -> tuple[csr_array, Floats, Floats]:
    """lower <= matrix π <= upper, the cells in C order; the rows of a matrix expression in C order too."""
    k, n = variable.shape
    kind = type(constraint).__name__
    if kind not in ("Equality", "Inequality", "Zero", "NonPos", "NonNeg"):
        raise InvalidProblemError(f"{name!r} is a {kind}, but a set has rows only: ==, <= or >= of affine expressions")
    expression = constraint.expr if hasattr(constraint, "expr") else constraint.args[0]
    strangers = [other.name() for other in expression.variables() if other is not variable]
    if strangers:
        raise InvalidProblemError(f"{name!r} uses {', '.join(strangers)}, but a set has the variable π only")
    if not expression.is_affine():
        raise InvalidProblemError(f"{name!r} ({constraint}) is not affine: it needs auxiliary columns; use sums of π")
    if any(parameter.value is None for parameter in expression.parameters()):
        raise InvalidProblemError(f"{name!r} ({constraint}) has a parameter without a value; give it one")
    saved = variable.value
    variable.save_value(np.zeros((k, n)))
    try:
        value = expression.value.toarray() if issparse(expression.value) else expression.value
        constant = np.asarray(value, dtype=np.float64).ravel(order="F")
        gradient = expression.grad.get(variable)
    finally:
        variable.save_value(saved)
    if gradient is None:
        gradient = csr_array((k * n, constant.size))
    by_columns = csr_array(csr_array(gradient if issparse(gradient) else np.atleast_2d(gradient)).T)
    columns = np.arange(k * n).reshape((k, n)).ravel(order="F")
    entries = by_columns.tocoo()
    index = np.arange(constant.size).reshape(expression.shape or (1,), order="F").ravel()
    where = np.argsort(index)
    row, column = entries.coords
    matrix = csr_array((entries.data, (where[row], columns[column])), shape=by_columns.shape)
    right = 0.0 - constant[index]
    if np.isnan(right).any() or np.isnan(matrix.data).any():
        raise InvalidProblemError(f"{name!r} ({constraint}) holds NaN; give it a number, or leave it out")
    below = np.full(right.size, -np.inf)
    if kind in ("Equality", "Zero"):
        return matrix, right, right
    return (matrix, right, -below) if kind == "NonNeg" else (matrix, below, right)


def _read(
    shape: tuple[int, int], name: str, matrix: csr_array, lower: Floats, upper: Floats, softly: bool
) -> Iterator[Constraint]:
    """These rows: normalized sign, rows of every set removed, fixed cells as forbidden cells (if soft: only for unit
    coefficients, because the penalty is per unit of the row)."""
    k, n = shape
    keep, empty = [], np.zeros((k, n), dtype=bool)
    for r in range(matrix.shape[0]):
        part = slice(matrix.indptr[r], matrix.indptr[r + 1])
        cells, weights = matrix.indices[part][matrix.data[part] != 0], matrix.data[part][matrix.data[part] != 0]
        low, high = float(lower[r]), float(upper[r])
        if cells.size and (weights < 0).all():
            matrix.data[part] *= -1.0
            weights, low, high = -weights, -high, -low
            lower[r], upper[r] = low, high
        if cells.size == 1:
            # The limits of one cell: what they leave of {0, 1}.
            low, high = max(0.0, low / weights[0]), min(1.0, high / weights[0])
            i, j = divmod(int(cells[0]), n)
            if low <= 0.0 and high >= 1.0:
                continue
            if softly and (weights[0] != 1.0 or low > 0.0 or high != 0.0):
                keep.append(r)
                continue
            if low <= 0.0 <= high:
                empty[i, j] = True
                continue
            if 0.0 < low <= 1.0 <= high:
                yield fix(shape, j, i, name=name)
                continue
        if not _always(cells, weights, low, high, k, n):
            keep.append(r)
    if empty.any():
        yield Constraint.mask(name, f"{empty.sum()} cells stay empty", empty)
    if keep:
        labels = None if matrix.shape[0] == 1 else keep
        yield add_rows(shape, matrix[keep], lower=lower[keep], upper=upper[keep], labels=labels, name=name)


def _always(cells: Any, weights: Floats, low: float, high: float, k: int, n: int) -> bool:
    """Whether the row holds in every set: a position's, one that the documents' rows imply, or 0 within its limits."""
    if not cells.size:
        return low <= 0.0 <= high
    if not (weights == 1.0).all():
        return False
    rows, columns = np.divmod(np.sort(cells), n)
    full_position = cells.size == n and (rows == rows[0]).all()
    one_document = (columns == columns[0]).all()
    return bool((full_position and low <= 1.0 <= high) or (one_document and low <= 0.0 and high >= 1.0))
