"""The best ranking of an admissible set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints, finite
from formulations.errors import InvalidProblem, NoAnswer
from formulations.modeling.assignment import is_order
from formulations.modeling.form import EPSILON, Form
from formulations.modeling.linear_program import LinearProgram
from formulations.modeling.names import split_by_block
from formulations.modeling.rank_two import RankTwoAssignment
from formulations.modeling.ranking_set import RankingSet
from formulations.modeling.set_cases import covers, open_cells, relaxation_prices
from formulations.modeling.solution import Solution

__all__ = ["ConstrainedRanking"]


@dataclass(frozen=True, eq=False)
class ConstrainedRanking(Form):
    """max over rankings π of an admissible set of Σ profit[i, j] π[i, j].

    variables    π[i, j] = 1 where document j stands at position i (only where the set allows it)
    subject to   position   each position holds one document
                 document   each document stands at one position at most (where no other row implies it)
                 and the rows of the set, by name
    integrality  that of the set's statement: see `verify_integrality`

    `profit` (k, n) has the set's shape. `ranked` is the same problem without its set, where profit has rank two. A
    point x is the order: the document at each position. A dual y holds one price a row other than the positions: one
    more unit of the row's limit raises the bound by no more than that (and the value, where the relaxation is whole);
    y > 0 presses on the upper limit, y < 0 on the lower. Where
    prices alone do not prove the best ranking, y is a proof by cases: a row of prices a case (`set_cases`).
    """

    profit: Floats
    admissible: RankingSet
    ranked: RankTwoAssignment | None = None

    solvable = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "profit", finite("profit", self.profit, 2))
        shape = (self.admissible.positions, self.admissible.documents)
        if self.profit.shape != shape:
            raise InvalidProblem(
                f"profit has shape {self.profit.shape}, but the set ranks {shape[0]} of {shape[1]} documents; "
                "give a row a position and a column a document"
            )
        self.admissible.check_nonempty()

    @property
    def positions(self) -> int:
        return self.admissible.positions

    @property
    def documents(self) -> int:
        return self.admissible.documents

    @property
    def scale(self) -> float:
        """The largest profit in magnitude."""
        return float(np.abs(self.profit).max())

    @property
    def extent(self) -> str:
        rows = self.admissible.stated.lower.size
        return f"{self.positions} positions × {self.documents} documents under {rows} rows"

    @property
    def size(self) -> int:
        return self.profit.size

    @property
    def rounding(self) -> float:
        return 16.0 * EPSILON * self.scale * (self.positions + self.documents)

    @property
    def cells(self) -> Ints:
        """The allowed cells, in C order."""
        return self.admissible.stated.cell

    def linear_program(self, integer: bool = False) -> LinearProgram:
        """The relaxation, or with `integer` the program in whole numbers."""
        return self.admissible.stated.program(self.profit, integer)

    def value(self, x: NDArray[Any]) -> float:
        return float(self.profit[np.arange(self.positions), np.asarray(x)].sum())

    def violation(self, x: NDArray[Any]) -> float:
        """0 for a ranking in the set, else by how much it breaks the worst row; infinity for what is no ranking."""
        if not is_order(x, self.positions, self.documents):
            return float("inf")
        stated, cells = self.admissible.stated, np.arange(self.positions) * self.documents + x
        if (stated.place[cells] < 0).any():
            return max(self.admissible.broken(x).values())
        return float(np.max(stated.excess(np.asarray(x)), initial=0.0))

    def bound(self, y: Floats) -> float:
        """Weak duality: Σ price · (the limit it presses on) + Σ_i max_j (profit[i, j] - the prices of the cell's rows).

        A price that presses on a limit which is not there counts as 0. A y of two dimensions is a proof by cases
        (`set_cases`): the worst of their bounds, infinite if they do not cover all rankings.
        """
        if y.ndim == 1:
            return self.case_bound(y, np.empty(0))
        rows = self.admissible.stated.lower.size - self.positions
        if not covers(y[:, rows:]):
            return float("inf")
        return max(self.case_bound(case[:rows], case[rows:]) for case in y)

    def case_bound(self, y: Floats, path: Floats) -> float:
        """The bound of one case: prices y, and the cells decided on its path."""
        price, limit = self.pressing(y)
        used = price != 0.0
        return float((price[used] * limit[used]).sum() + self._best(price, path).sum())

    def pressing(self, y: Floats) -> tuple[Floats, Floats]:
        """The prices that press on a limit which is there (0 for the others), and these limits."""
        stated, k = self.admissible.stated, self.positions
        low, high = stated.lower[k:], stated.upper[k:]
        price = np.where(np.where(y > 0, np.isfinite(high), np.isfinite(low)), y, 0.0)
        return price, np.where(price > 0, high, np.where(price < 0, low, 0.0))

    def _best(self, price: Floats, path: Floats) -> Floats:
        """(k,) the most that each position earns at these prices, in a case."""
        stated = self.admissible.stated
        left = np.full(self.profit.size, -np.inf)
        left[stated.cell] = self.profit.ravel()[stated.cell] - stated.weights @ price
        if path.size:
            left += open_cells(path, self.positions, self.documents)
        return np.asarray(left.reshape(self.profit.shape).max(axis=1))

    def recovered_dual(self, x: NDArray[Any]) -> Floats | None:
        from formulations.modeling.set_prices import recovered_prices

        return recovered_prices(self, np.asarray(x, dtype=np.int64))

    def solution(self, x: NDArray[Any], y: Floats | None = None) -> Solution:
        """The solution with this ranking, refused if it is not in the set: there is nothing inaccurate in an order."""
        found = super().solution(x, y)
        if found.violation > 0.0:
            breaks = ", ".join(self.admissible.broken(x))
            raise NoAnswer(f"the ranking {np.asarray(x).tolist()} is not in the set: it breaks {breaks}")
        return found

    def write(self, path: str | Path) -> None:
        """Write the program in whole numbers to an .mps or .lp file."""
        self.linear_program(integer=True).write(path)

    def order_of(self, x: NDArray[Any]) -> Ints:
        return np.asarray(x, dtype=np.int64)

    def named_primal(self, x: NDArray[Any]) -> dict[str, NDArray[Any]]:
        placed = np.zeros(self.profit.shape, dtype=np.int8)
        placed[np.arange(self.positions), x] = 1
        return {"π": placed}

    def named_dual(self, y: Floats) -> dict[str, NDArray[Any]]:
        """The price of every row by name; documents whose row is implied by another have the price 0. Beside a proof by
        cases, the prices of the relaxation."""
        stated = self.admissible.stated
        if y.ndim == 2:
            prices = relaxation_prices(self)
            y = np.zeros(stated.lower.size - self.positions) if prices is None else prices
        named = split_by_block(stated.blocks, np.concatenate([self._best(y, np.empty(0)), y]))
        documents = np.zeros(self.documents)
        documents[stated.kept] = named.get("document", np.empty(0))
        return {**named, "document": documents}
