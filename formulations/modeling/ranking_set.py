"""A set of admissible rankings, stated one constraint at a time.

>>> site = ["a.org", "a.org", "b.org", "c.org"]
>>> admissible = RankingSet(4, 3).at_most(1, by=site, name="site").before(3, 2)
>>> print(admissible)
RankingSet: 3 of 4 documents, site (3 rows), before (2 rows)
>>> admissible.broken([0, 1, 3])
{"site['a.org']": 1.0}
>>> admissible.admits([0, 3, 2])
True
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

from formulations.arrays import Bools, finite, frozen
from formulations.errors import Infeasible, InvalidProblem
from formulations.modeling.assignment import is_order
from formulations.modeling.cells import by_label, chosen, count_for, numbers, one, whole_number
from formulations.modeling.constraint import Constraint, row_rounding, rows_of_cells

if TYPE_CHECKING:
    from formulations.modeling.set_rows import SetRows

__all__ = ["RankingSet"]


@dataclass(frozen=True, eq=False)
class RankingSet:
    """Rankings π in {0, 1}^(k × n) of k of n documents: each position holds one document, each document stands at one
    position at most, and every constraint holds. Immutable: each method returns a new set.

    documents=, positions= take a mask, indices or a range; None means all. by= takes one label a document (a tuple for
    several, None for none) and makes one row a label. name= is what duals, conflicts and witnesses call the rows.

    Raises InvalidProblem for what names no cell or count, Infeasible for k > n. Whether the set is empty is found out
    when a problem is stated over it, or by `check_nonempty`.
    """

    documents: int
    positions: int
    constraints: tuple[Constraint, ...] = ()

    def __post_init__(self) -> None:
        for name in ("documents", "positions"):
            size = whole_number(name, getattr(self, name))
            if size == 0:
                raise InvalidProblem(f"{name} = 0 leaves nothing to rank; give 1 or more")
            object.__setattr__(self, name, size)
        if self.positions > self.documents:
            raise Infeasible(
                f"{self.positions} positions cannot be filled by {self.documents} documents, one each; "
                f"lower k to {self.documents}"
            )

    def at_most(
        self, count: Any, *, documents: Any = None, positions: Any = None, by: Any = None, name: str | None = None
    ) -> RankingSet:
        """At most `count` of these documents at these positions; with `by`, of the documents of each label.

        count: a whole number; with `by` also a mapping from label to number (labels that it lacks are free).
        """
        return self._counted("at most", None, count, documents, positions, by, name)

    def at_least(
        self, count: Any, *, documents: Any = None, positions: Any = None, by: Any = None, name: str | None = None
    ) -> RankingSet:
        """At least `count` of these documents at these positions; with `by`, of the documents of each label.

        With a mapping also of a label that no document carries, and then the set is empty.
        """
        return self._counted("at least", count, None, documents, positions, by, name)

    def exactly(
        self, count: Any, *, documents: Any = None, positions: Any = None, by: Any = None, name: str | None = None
    ) -> RankingSet:
        """Exactly `count` of these documents at these positions; with `by`, of the documents of each label."""
        return self._counted("exactly", count, count, documents, positions, by, name)

    def pin(self, document: int, position: int, *, name: str | None = None) -> RankingSet:
        """This document stands at this position."""
        forbids = np.zeros((self.positions, self.documents), dtype=bool)
        i, j = one("position", position, self.positions), one("document", document, self.documents)
        forbids[i] = True
        forbids[:, j] = True
        forbids[i, j] = False
        name = self._named(name or f"pin[{j}, {i}]")
        return self._with(Constraint.mask(name, f"document {j} at position {i}", forbids))

    def ban(self, documents: Any = None, positions: Any = None, *, name: str | None = None) -> RankingSet:
        """None of these documents stands at any of these positions."""
        rows = chosen("positions", positions, self.positions)
        columns = chosen("documents", documents, self.documents)
        forbids = np.zeros((self.positions, self.documents), dtype=bool)
        forbids[np.ix_(rows, columns)] = True
        says = f"{columns.size} documents kept from {rows.size} positions"
        return self._with(Constraint.mask(self._named(name or "ban"), says, forbids))

    def before(self, x: int, y: int, *, name: str | None = None) -> RankingSet:
        """Wherever document y stands, x stands earlier: Σ_{i <= p} π[i, y] <= Σ_{i < p} π[i, x] at every p."""
        first, second = (one("document", document, self.documents) for document in (x, y))
        if first == second:
            raise InvalidProblem(f"document {first} cannot stand before itself; name two documents")
        k, n = self.positions, self.documents
        forbids = np.zeros((k, n), dtype=bool)
        forbids[0, second] = True
        # Row p >= 1: ones on y at positions 0 .. p, then minus ones on x at positions 0 .. p - 1.
        later = range(1, k)
        places = [np.concatenate([np.arange(p + 1) * n + second, np.arange(p) * n + first]) for p in later]
        values = [np.repeat([1.0, -1.0], [p + 1, p]) for p in later]
        indptr = np.cumsum([0, *(part.size for part in places)])
        data, cells = (np.concatenate([np.empty(0), *parts]) for parts in (values, places))
        matrix = csr_array((data, cells.astype(np.int64), indptr), shape=(k - 1, k * n))
        labels = tuple(later) if name else tuple((first, second, p) for p in later)
        says = f"document {first} before {second}"
        low, high = np.full(k - 1, -np.inf), np.zeros(k - 1)
        return self._with(Constraint(self._named(name or "before"), says, matrix, low, high, labels, forbids))

    def rows(
        self,
        matrix: Any,
        lower: ArrayLike = -np.inf,
        upper: ArrayLike = np.inf,
        *,
        name: str | None = None,
        labels: Iterable[Hashable] | None = None,
    ) -> RankingSet:
        """lower <= matrix π <= upper, the columns of `matrix` (r, k n) being the cells in C order."""
        dense = matrix if issparse(matrix) else np.atleast_2d(numbers("the matrix of rows", matrix))
        cells = self.positions * self.documents
        if dense.ndim != 2 or dense.shape[1] != cells:
            raise InvalidProblem(
                f"rows have shape {dense.shape}, but need {cells} columns: the cells (k n, in C order)"
            )
        rows = csr_array(dense, dtype=np.float64, copy=True)
        finite("entries of rows", rows.data, 1)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        low, high = numbers("lower", lower), numbers("upper", upper)
        if {low.shape, high.shape} - {(), rows.shape[:1]}:
            raise InvalidProblem(
                f"limits of shape {low.shape} and {high.shape} for {rows.shape[0]} rows; give one number, or one a row"
            )
        low, high = (np.broadcast_to(side, rows.shape[:1]).copy() for side in (low, high))
        if not ((low <= high) & (low < np.inf) & (high > -np.inf)).all():
            raise InvalidProblem(
                "lower and upper of rows must be numbers with lower <= upper; use -inf and inf for none"
            )
        given = tuple(range(rows.shape[0])) if labels is None else tuple(labels)
        if len(given) != rows.shape[0]:
            raise InvalidProblem(f"{len(given)} labels for {rows.shape[0]} rows; give each row one")
        single = rows.shape[0] == 1 and labels is None
        return self._with(
            Constraint(self._named(name or "row"), "within its limits", rows, low, high, None if single else given)
        )

    @classmethod
    def from_cvxpy(cls, variable: Any, constraints: Iterable[Any]) -> RankingSet:
        """The set that affine cvxpy constraints on `variable`, a `cvxpy.Variable((k, n))`, state.

        Constraints are named by their `set_label`. The rows that every set has (positions, documents, 0 <= π <= 1) may
        be among them. Raises InvalidProblem naming a constraint that is not affine or has other variables.
        """
        from formulations.modeling.cvxpy_rows import ranking_set_of

        return ranking_set_of(cls, variable, list(constraints))

    def __and__(self, other: RankingSet) -> RankingSet:
        """The rankings in both sets."""
        if not isinstance(other, RankingSet):
            return NotImplemented
        if (self.documents, self.positions) != (other.documents, other.positions):
            raise InvalidProblem(
                f"sets of {self.positions} of {self.documents} and of {other.positions} of {other.documents} documents "
                "have no rankings in common; state both for the same k and n"
            )
        both = self
        for constraint in other.constraints:
            both = both._with(replace(constraint, name=both._named(constraint.name)))
        return both

    @cached_property
    def allowed(self) -> Bools:
        """(k, n) which cells no pin or ban forbids."""
        allowed = np.ones((self.positions, self.documents), dtype=bool)
        for constraint in self.constraints:
            if constraint.forbids is not None:
                allowed &= ~constraint.forbids
        return frozen(allowed)

    @cached_property
    def stated(self) -> SetRows:
        """All rows over the allowed cells: position, document where no other row implies it, and the constraints."""
        from formulations.modeling.set_rows import SetRows

        return SetRows.of(self)

    @property
    def program(self) -> Any:
        """The linear program of the set, its objective zero."""
        return self.stated.program(np.zeros((self.positions, self.documents)))

    def broken(self, order: ArrayLike) -> dict[str, float]:
        """What a ranking (the document at each position) breaks: name of a row, pin or ban → by how much."""
        placed = np.asarray(order)
        if not is_order(placed, self.positions, self.documents):
            raise InvalidProblem(
                f"{placed.tolist()} is no ranking of {self.positions} of {self.documents} documents: give the document "
                "at each position, none of them twice"
            )
        cells = np.arange(self.positions) * self.documents + placed
        found: dict[str, float] = {}
        for constraint in self.constraints:
            if constraint.forbids is not None and constraint.forbids.ravel()[cells].any():
                found[constraint.name] = float(constraint.forbids.ravel()[cells].sum())
            if constraint.rows:
                reached = np.asarray(constraint.matrix[:, cells].sum(axis=1)).ravel()
                off = np.maximum(constraint.lower - reached, reached - constraint.upper)
                rounding = row_rounding(constraint.matrix, constraint.lower, constraint.upper, self.positions)
                over = np.flatnonzero(off > rounding).tolist()
                found.update({constraint.block.name(r): float(off[r]) for r in over})
        return found

    def admits(self, order: ArrayLike) -> bool:
        """Whether a ranking (the document at each position) is in the set."""
        return not self.broken(order)

    def check_nonempty(self) -> None:
        """Raise `Infeasible` if no ranking is in the set, naming constraints that cannot hold together."""
        from formulations.modeling.conflict import check_nonempty

        if not self.__dict__.get("_nonempty", False):
            check_nonempty(self)
            self.__dict__["_nonempty"] = True

    def __str__(self) -> str:
        parts = [f"{c.name} ({c.rows} rows)" if c.labels is not None else c.name for c in self.constraints]
        return f"RankingSet: {', '.join([f'{self.positions} of {self.documents} documents', *parts])}"

    __repr__ = __str__

    def _counted(
        self, word: str, least: Any, most: Any, documents: Any, positions: Any, by: Any, name: str | None
    ) -> RankingSet:
        columns = chosen("documents", documents, self.documents)
        rows = chosen("positions", positions, self.positions)
        name = self._named(name or word.replace(" ", "_"))
        count = most if least is None else least
        place = "" if rows.size == self.positions else f" at {rows.size} of {self.positions} positions"

        def limits(number: int | None) -> tuple[float, float]:
            return -np.inf if least is None else float(number or 0), np.inf if most is None else float(number or 0)

        if by is None:
            if isinstance(count, Mapping):
                raise InvalidProblem("count maps labels to numbers; say by= which labels the documents carry")
            low, high = limits(whole_number("count", count))
            matrix = rows_of_cells([(rows, columns)], self.positions, self.documents)
            says = f"{word} {whole_number('count', count)} of {columns.size} documents{place}"
            return self._with(Constraint(name, says, matrix, np.array([low]), np.array([high])))
        carried = by_label(by, self.documents)
        named = count if least is not None and isinstance(count, Mapping) else {}
        owed = {label: np.empty(0, dtype=np.int64) for label in named}
        members = {label: np.intersect1d(found, columns) for label, found in (owed | carried).items()}
        counts = {label: count_for("count", count, label) for label in members}
        members = {
            label: found
            for label, found in members.items()
            if counts[label] is not None and (found.size or (label in owed and counts[label]))
        }
        matrix = rows_of_cells([(rows, found) for found in members.values()], self.positions, self.documents)
        sides = np.array([limits(counts[label]) for label in members], dtype=np.float64).reshape(-1, 2)
        says = f"{word} {'its count' if isinstance(count, Mapping) else count}{place}"
        return self._with(Constraint(name, says, matrix, sides[:, 0].copy(), sides[:, 1].copy(), tuple(members)))

    def _with(self, constraint: Constraint) -> RankingSet:
        return replace(self, constraints=(*self.constraints, constraint))

    def _named(self, name: str) -> str:
        """`name`, with a number behind it if a constraint has it already."""
        taken = {constraint.name for constraint in self.constraints} | {"position", "document", "π"}
        if name not in taken:
            return name
        return next(f"{name}_{copy}" for copy in range(2, len(taken) + 3) if f"{name}_{copy}" not in taken)
