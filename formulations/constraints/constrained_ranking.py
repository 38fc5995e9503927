"""Problem classes: the best ranking of a set, under hard constraints or with penalized violations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import LARGEST, Bools, Floats, Ints, check_type, finite, frozen
from formulations.constraints.constraint import violations
from formulations.constraints.duals import earned, pressing, proven_bound, recovered_prices, relaxation_prices
from formulations.constraints.ranking_set import RankingSet
from formulations.constraints.rows import SetRows, reach, valid_penalty, widened, with_soft_rows
from formulations.display import plural
from formulations.errors import InvalidProblemError, InvalidSolutionError
from formulations.problems.assignment import ProfitProblem
from formulations.problems.directed_rounding import added, below, products
from formulations.problems.linear_program import LinearProgram
from formulations.problems.problem import EPSILON, Solution
from formulations.problems.program import Program, split_by_block
from formulations.problems.ranking import RankTwoAssignment


@dataclass(frozen=True, eq=False, repr=False)
class ConstrainedRanking(ProfitProblem):
    """max Σ profit[i, j] π[i, j] over the rankings π of a set.

        variables    π[i, j] = 1: document j at position i, for allowed cells
        subject to   position   one document per position
                     document   at most one position per document (where no other row implies it)
                     and the rows of the set, by name
        integrality  that of the set: see `verify_integrality`

    `profit` (k, n) has the set's shape. `ranked` is the same problem without its set, if profit has rank two. A point x
    is the document at each position. A dual y has one entry per row, without the position rows: y > 0 for an active
    upper limit, y < 0 for a lower one. It bounds the change of the bound per unit of the limit (of the value, if the
    relaxation is integral). If one dual is no proof, y is a proof by cases, a row each (`constraints.duals`).
    """

    profit: Floats
    admissible: RankingSet
    ranked: RankTwoAssignment | None = None

    takes_soft: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "profit", finite("profit", self.profit, 2))
        check_type("admissible", self.admissible, RankingSet, cure="Build it by RankingSet(documents, positions).")
        check_type("ranked", self.ranked, RankTwoAssignment, type(None))
        shape = (self.admissible.positions, self.admissible.documents)
        if self.profit.shape != shape:
            raise InvalidProblemError(f"profit must have shape {shape}, as the set has; got {self.profit.shape}.")
        if self.admissible.soft_constraints and not self.takes_soft:
            raise InvalidProblemError("the set has soft constraints. Use constrained_ranking(profit, admissible).")
        self.admissible.check_nonempty()

    def check_stored(self) -> None:
        """Raise InvalidProblemError unless `ranked` has this profit."""
        if self.ranked is not None:
            profit = self.ranked.assignment().profit
            if profit.shape != self.profit.shape or not np.allclose(profit, self.profit):
                raise InvalidProblemError("ranked is another problem than profit")

    @property
    def compiled(self) -> SetRows:
        """The rows that the duals belong to."""
        return self.admissible.compiled

    @property
    def worth(self) -> Floats:
        """(k, n) the profit of each cell."""
        return self.profit

    @property
    def worth_digits(self) -> Floats | None:
        """(k, n) what the doubles of `worth` leave out; None if that is nothing."""
        return None

    @property
    def shape_text(self) -> str:
        return f"{super().shape_text} under {plural(self.admissible.compiled.lower.size, 'row')}"

    @property
    def cells(self) -> Ints:
        """The allowed cells, in C order."""
        return self.admissible.compiled.cell

    def cell_program(self, integer: bool = False, needed: Bools | None = None) -> Program:
        """The program, relaxed or integer; over the needed cells only, if passed."""
        return self.compiled.program(self.worth, integer, needed)

    @property
    def program(self) -> Program:
        return self.cell_program()

    def linear_program(self, integer: bool = False) -> LinearProgram:
        """The LP relaxation; with `integer` the integer program."""
        return LinearProgram.from_program(self.cell_program(integer))

    def violation(self, x: NDArray[Any]) -> float:
        """The largest violation of a row: 0 for a ranking in the set, infinity if x is not a ranking."""
        if super().violation(x):
            return float("inf")
        stated, cells = self.admissible.compiled, np.arange(self.positions) * self.documents + x
        if (stated.index[cells] < 0).any():
            return max(violations(self.admissible.constraints, np.asarray(x), self.documents).values())
        return float(np.max(stated.excess(np.asarray(x)), initial=0.0))

    def bound(self, y: Floats) -> float:
        """Weak duality: Σ y[r] · (its active limit) + Σ_i max_j (profit[i, j] - Σ duals of the cell's rows).

        A dual of an infinite limit counts as 0. A two-dimensional y is a proof by cases (`constraints.duals`): the
        bound is the maximum over the cases, infinite if they do not cover all rankings.
        """
        return proven_bound(self.compiled, self.worth, y, self.worth_digits)

    def bound_float64(self, y: Floats) -> float:
        stated = self.compiled
        if np.shape(y) != (stated.lower.size - self.positions,):
            return self.bound(y)
        price, limit = pressing(stated, y)
        used = price != 0.0
        return float((price[used] * limit[used]).sum() + earned(stated, self.worth, price).sum())

    def active_dual(self, y: Floats) -> Floats:
        """The duals of the cases of a proof by cases."""
        stated = self.compiled
        if y.ndim == 1:
            return pressing(stated, y)[0]
        rows = stated.lower.size - self.positions
        return np.column_stack([[pressing(stated, case)[0] for case in y[:, :rows]], y[:, rows:]])

    def recover_dual(self, x: NDArray[Any]) -> Floats | None:
        admitted = self.check_point(x) == 0.0
        return recovered_prices(self.compiled, self.worth, np.asarray(x, dtype=np.int64), admitted)

    def solution(self, x: NDArray[Any], y: Floats | None = None, *, outward: bool = True) -> Solution:
        """The solution with this ranking; raises `InvalidSolutionError` if it is not in the set."""
        found = super().solution(x, y, outward=outward)
        if found.violation > 0.0:
            breaks = ", ".join(violations(self.admissible.constraints, np.asarray(x), self.documents))
            raise InvalidSolutionError(f"the ranking {np.asarray(x).tolist()} is not in the set: it breaks {breaks}")
        return found

    @property
    def full_program(self) -> Program:
        return self.linear_program(integer=True).program

    def named_dual(self, y: Floats) -> dict[str, NDArray[Any]]:
        """The dual of every row by name, 0 for implied rows; for a proof by cases, the duals of the relaxation."""
        stated = self.compiled
        if y.ndim == 2:
            prices = relaxation_prices(stated, self.worth)
            y = np.zeros(stated.lower.size - self.positions) if prices is None else prices
        y = self.active_dual(y)
        named = split_by_block(stated.blocks, np.concatenate([earned(stated, self.worth, y), y]))
        documents = np.zeros(self.documents)
        documents[stated.own_row] = named.get("document")
        return {**named, "document": documents}


@dataclass(frozen=True, eq=False, repr=False)
class PenalizedRanking(ConstrainedRanking):
    """max Σ profit[i, j] π[i, j] - charge · Σ penalty · violation over the rankings π under the hard constraints.

        variables    π[i, j] = 1: document j at position i; over, under: the violation of each soft row
        subject to   the rows of the set; soft rows with over and under (`constraints.rows.widened`)
        integrality  that of the widened matrix: see `verify_integrality`

    A point x is the document at each position; `solution.violations` maps rows to amounts. A dual y has one entry per
    row, without the position rows; the entries of soft rows are last and at most charge · penalty in magnitude.
    """

    charge: float = 1.0

    takes_soft: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "charge", valid_penalty(self.charge))
        if self.ranked is not None:
            raise InvalidProblemError("a ranking of rank two has no set; leave `ranked` out")
        for one in self.admissible.soft_constraints:
            if not self.charge * one.penalty <= LARGEST:
                cost = f"charge {self.charge:g} × penalty {one.penalty:g}"
                raise InvalidProblemError(f"{one.name!r} costs {cost} a unit, more than {LARGEST:g}; lower its penalty")

    @cached_property
    def compiled(self) -> SetRows:
        if self.charge == 1.0:
            return self.admissible.compiled_with_soft
        return with_soft_rows(self.admissible.compiled, self.admissible.soft_constraints, self.charge)

    @cached_property
    def worth(self) -> Floats:
        return frozen(self._exact_worth[0])

    @cached_property
    def worth_digits(self) -> Floats | None:
        return self._exact_worth[1]

    @cached_property
    def _exact_worth(self) -> tuple[Floats, Floats | None]:
        """The profit of each cell without its penalties, as doubles and the digits that they leave out."""
        high, low = self.profit, np.zeros(self.profit.shape)
        for one in self.admissible.soft_constraints:
            if one.constraint.forbids is not None:
                charge, digits, _ = products(np.array([self.charge]), np.array([one.penalty]))
                used = one.constraint.forbids.reshape(high.shape)
                high, lost = added(high, np.where(used, -charge[0], 0.0))
                low = low + (lost - np.where(used, digits[0], 0.0))
        return high, low if low.any() else None

    @cached_property
    def scale(self) -> float:
        """The largest profit or charge of a row, in magnitude."""
        price, (over, under) = self._prices, reach(self.compiled)
        most = np.maximum(over, under)[self.compiled.lower.size - price.size :]
        return float(max(np.abs(self.worth).max(), (price * most).max(initial=0.0)))

    @property
    def _prices(self) -> Floats:
        """The duals of the soft rows, which are last."""
        price = self.compiled.price
        assert price is not None
        return price[self.admissible.compiled.lower.size :]

    @property
    def shape_text(self) -> str:
        return f"{super().shape_text}, and {self._prices.size} that may be broken"

    def cell_program(self, integer: bool = False, needed: Bools | None = None) -> Program:
        return widened(self.compiled, self.worth, integer, needed)

    @property
    def rounding(self) -> float:
        return super().rounding + 16.0 * EPSILON * self.scale * self._prices.size + self._unsure

    def magnitude_at(self, x: NDArray[Any]) -> float:
        price, off = self._charges(x)
        terms = float(np.abs(self.worth[np.arange(self.positions), np.asarray(x)]).sum() + price @ off)
        return min(self.scale, max(terms, float(np.abs(self.profit).max())))

    def rounding_at(self, x: NDArray[Any]) -> float:
        return min(self.rounding, 1e-12 * self.magnitude_at(x) + self._unsure)

    def violations(self, x: NDArray[Any]) -> dict[str, float]:
        """The violated soft constraints of a ranking: name of a row, pin or ban → violation."""
        held = [one.constraint for one in self.admissible.soft_constraints]
        return violations(held, np.asarray(x, dtype=np.int64), self.documents)

    @cached_property
    def _unsure(self) -> float:
        """Rounding error of the charges of rows with fractional coefficients or limits."""
        first = self.admissible.compiled.lower.size
        left = np.where(self.compiled.integral_rows[first:], 0.0, self.compiled.rounding[first - self.positions :])
        return float((self._prices * left).sum())

    def _charges(self, x: NDArray[Any]) -> tuple[Floats, Floats]:
        """Penalties of the soft rows that x violates, and the violations."""
        off = self.compiled.excess(np.asarray(x))[self.compiled.lower.size - self.positions - self._prices.size :]
        return self._prices[off > 0.0], off[off > 0.0]

    def value(self, x: NDArray[Any]) -> float:
        price, off = self._charges(x)
        return float(self.worth[np.arange(self.positions), np.asarray(x)].sum() - price @ off)

    def value_lower_bound(self, x: NDArray[Any]) -> float:
        terms, digits, dropped = products(*self._charges(x))
        cells = np.arange(self.positions), np.asarray(x)
        rest = 0.0 if self.worth_digits is None else self.worth_digits[cells]
        return below(self.worth[cells], rest, -terms, -digits, -dropped - self._unsure)
