"""The assignment of documents to positions, and duals that prove an assignment optimal.

For any order, moving position i from its document j to document j' gains profit[i, j'] - profit[i, j]. Duals v with
v[j'] >= v[j] + that gain, v >= 0 and v = 0 for unplaced documents make the bound of weak duality equal the value. The
least duals are longest paths in the residual graph. If the order is optimal, no cycle gains and k passes suffice.
Otherwise the vector after k passes is still dual feasible, hence still a bound.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from formulations.arrays import Bools, Floats, Ints, Out, Table, booleans, finite, frozen, numbers
from formulations.compiled import compiled
from formulations.errors import InfeasibleError, InvalidProblemError
from formulations.problems.directed_rounding import above, added, below
from formulations.problems.problem import EPSILON, Problem, checked_dual
from formulations.problems.program import Block, Program


def is_order(x: NDArray[Any], positions: int, documents: int) -> bool:
    """Whether x has a document at each position, without duplicates."""
    order = np.asarray(x)
    if order.shape != (positions,) or order.dtype.kind not in "iu":
        return False
    if order.size > 256:
        inside = order.min() >= 0 and order.max() < documents
        return bool(inside) and int(np.bincount(order, minlength=documents).max()) == 1
    assigned = set(order.tolist())  # faster than numpy's for the sizes that orders have
    return len(assigned) == positions and min(assigned) >= 0 and max(assigned) < documents


def order_of_cells(cells: Ints, k: int, n: int) -> Ints:
    """The document at each of k positions, from one of the k n cells for each; -1 at an empty position."""
    order = np.full(k, -1, dtype=np.int64)
    order[cells // n] = cells % n
    return order


class OrderProblem(Problem):
    """A problem whose points are orders: the document at each position, without duplicates."""

    always_feasible = True

    @property
    @abstractmethod
    def positions(self) -> int: ...

    @property
    @abstractmethod
    def documents(self) -> int: ...

    @property
    def shape_text(self) -> str:
        return f"{self.positions} positions × {self.documents} documents"

    @property
    def size(self) -> int:
        return self.positions * self.documents

    @property
    def rounding(self) -> float:
        return 16.0 * EPSILON * self.scale * (self.positions + self.documents)

    def violation(self, x: NDArray[Any]) -> float:
        """0 for an order, else infinity."""
        return 0.0 if is_order(x, self.positions, self.documents) else float("inf")

    def flaw_of(self, x: NDArray[Any]) -> str:
        order = np.asarray(x)
        if order.shape != (self.positions,) or order.dtype.kind not in "iu":
            return f"; it must be {self.positions} integers, the document (column) of each position (row)"
        for position, document in enumerate(order.tolist()):
            is_one = 0 <= document < self.documents
            flaw = "is also at an earlier one" if is_one else f"is not one of 0 to {self.documents - 1}"
            if document in order[:position] or not is_one:
                return f"; document (column) {document} at position (row) {position} {flaw}"
        return "; a document is at a position that is forbidden for it"

    def order_of(self, x: NDArray[Any]) -> Ints:
        return np.asarray(x, dtype=np.int64)

    def document_dual(self, y: Floats) -> Floats:
        """A dual per document; nonnegative if documents may stay unplaced."""
        prices = checked_dual(y, self.documents, "documents")
        return np.maximum(prices, 0.0) if self.documents > self.positions else prices


class ProfitProblem(OrderProblem):
    """The value of an order is the sum of its cells' profits (k, n)."""

    profit: Floats

    @property
    def positions(self) -> int:
        return int(self.profit.shape[0])

    @property
    def documents(self) -> int:
        return int(self.profit.shape[1])

    @property
    def scale(self) -> float:
        """The largest profit in magnitude."""
        return float(np.abs(self.profit).max())

    def value(self, x: NDArray[Any]) -> float:
        return float(self.profit[np.arange(self.positions), np.asarray(x)].sum())

    def value_lower_bound(self, x: NDArray[Any]) -> float:
        return below(self.profit[np.arange(self.positions), np.asarray(x)])

    def named_primal(self, x: NDArray[Any]) -> dict[str, NDArray[Any]]:
        assigned = np.zeros(self.profit.shape, dtype=np.int8)
        assigned[np.arange(self.positions), x] = 1
        return {"π": assigned}


@dataclass(frozen=True, eq=False)
class Assignment(ProfitProblem):
    """The best assignment of k of n documents to k positions.

    variables    π[i, j] = 1 if document j is at position i (only where `allowed`)
    maximize     Σ profit[i, j] π[i, j]          sense="min": minimize, and `profit` holds costs
    subject to   position   each of the k positions holds one document
                 document   each of the n documents is at one position at most
    integrality  totally unimodular (the incidence matrix of a bipartite graph)

    A point x is the order: the document at each position. A dual y has one entry per document, y >= 0 if n > k.
    """

    profit: Floats
    allowed: Bools | None = None
    sense: Literal["max", "min"] = "max"
    is_maximization: bool = field(init=False)

    def __post_init__(self) -> None:
        if not (isinstance(self.sense, str) and self.sense in ("max", "min")):
            raise InvalidProblemError(f"sense must be 'max' for profits or 'min' for costs; got {self.sense!r:.80}.")
        object.__setattr__(self, "is_maximization", self.sense == "max")
        name = "profit" if self.is_maximization else "cost"
        profit, forbidden = None, None
        with suppress(InvalidProblemError):
            profit = finite(name, self.profit, 2)
        if profit is None:
            values, forbidden = _forbidden_cells(name, self.profit, self.is_maximization)
            profit = finite(name, values, 2)
        positions, documents = profit.shape
        if positions == 0 or documents == 0:
            raise InvalidProblemError(f"{name} must have a position and a document at least; got shape {profit.shape}.")
        if positions > documents:
            raise InfeasibleError(f"{positions} positions cannot be filled by {documents} documents. Use {documents}.")
        object.__setattr__(self, "profit", profit)
        if self.allowed is not None:
            allowed = booleans("allowed", self.allowed, profit.shape)
            forbidden = ~allowed if forbidden is None else forbidden | ~allowed
        if forbidden is not None:
            object.__setattr__(self, "allowed", frozen(~forbidden) if forbidden.any() else None)
        positions = np.empty(0) if self.allowed is None else deficient_positions(self.allowed)
        if positions.size:  # Hall's condition fails
            few = int(np.asarray(self.allowed)[positions].any(axis=0).sum())
            raise InfeasibleError(
                f"positions {positions.tolist()} share only {few} allowed document(s); allow {positions.size}"
            )

    @cached_property
    def cells(self) -> tuple[Ints, Ints]:
        """Position and document of every allowed cell, in C order."""
        mask = np.ones(self.profit.shape, dtype=bool) if self.allowed is None else self.allowed
        positions, documents = np.nonzero(mask)
        return positions, documents

    @property
    def cell_names(self) -> tuple[Block, ...]:
        """The names of the allowed cells."""
        if self.allowed is None:
            return (Block("π", self.profit.shape),)
        return (Block("π", tuple((int(i), int(j)) for i, j in zip(*self.cells, strict=True))),)

    @property
    def program(self) -> Program:
        k, n = self.positions, self.documents
        positions, documents = self.cells
        count = positions.size
        ends = np.concatenate([positions, k + documents]), np.tile(np.arange(count), 2)
        matrix = csr_array((np.ones(2 * count), ends), shape=(k + n, count))
        row_lower = np.concatenate([np.ones(k), np.full(n, -np.inf if n > k else 1.0)])
        limits = row_lower, np.ones(k + n), np.zeros(count), np.ones(count)
        blocks = Block("position", (k,)), Block("document", (n,))
        objective = self.profit[positions, documents]
        return Program(objective, matrix, *limits, self.is_maximization, variables=self.cell_names, rows=blocks)

    @property
    def gains(self) -> Floats:
        """What is maximized: the profit, or minus the cost."""
        return self.profit if self.is_maximization else -self.profit

    def masked_profit(self) -> Floats:
        """What is maximized, the profit or minus the cost; -inf where a document is not allowed."""
        return self.gains if self.allowed is None else np.where(self.allowed, self.gains, -np.inf)

    @property
    def costs(self) -> Floats:
        """What is minimized, the cost or minus the profit; inf where a document is not allowed."""
        return 0.0 - self.masked_profit()

    def value_lower_bound(self, x: NDArray[Any]) -> float:
        terms = self.profit[np.arange(self.positions), np.asarray(x)]
        return below(terms) if self.is_maximization else above(terms)

    def violation(self, x: NDArray[Any]) -> float:
        """0 for an order of allowed documents, else infinity."""
        off = super().violation(x)
        if off == 0.0 and self.allowed is not None and not self.allowed[np.arange(self.positions), x].all():
            return float("inf")
        return off

    def bound(self, y: Floats) -> float:
        prices = self.document_dual(y)
        profit = self.masked_profit()
        left = profit - prices
        most = left.max(axis=1)
        positions, documents = np.divmod(np.flatnonzero(left == most[:, None]), self.documents)
        _, digits = added(profit[positions, documents], -prices[documents])
        starts = np.searchsorted(positions, np.arange(self.positions))
        bound = above(most, np.maximum.reduceat(digits, starts), prices)
        return bound if self.is_maximization else -bound

    def bound_float64(self, y: Floats) -> float:
        prices = self.document_dual(y)
        bound = float((self.masked_profit() - prices).max(axis=1).sum() + prices.sum())
        return bound if self.is_maximization else -bound

    def active_dual(self, y: Floats) -> Floats:
        return self.document_dual(y)

    def recover_dual(self, x: NDArray[Any]) -> Floats:
        self.check_point(x)
        return shortest_path_prices(self.masked_profit(), np.asarray(x, dtype=np.int64))

    def named_dual(self, y: Floats) -> dict[str, NDArray[Any]]:
        prices, sign = self.document_dual(y), 1.0 if self.is_maximization else -1.0
        return {"position": sign * (self.masked_profit() - prices).max(axis=1), "document": sign * prices + 0.0}


def _forbidden_cells(name: str, values: Any, is_maximization: bool) -> tuple[Floats, Bools]:
    """The table with 0 in forbidden cells, and which these are: masked ones, and profits of -inf or costs of inf."""
    is_masked = isinstance(values, np.ma.MaskedArray)
    table = numbers(name, values.filled(0) if is_masked else values)
    never = -np.inf if is_maximization else np.inf
    wrong = np.isnan(table) | (table == -never)
    if wrong.any():
        index = [int(i) for i in np.argwhere(wrong)[0]]
        raise InvalidProblemError(
            f"{name}{index} is {table[tuple(index)]}; write a finite {name}, or {never} to forbid the cell."
        )
    forbidden = (table == never) | (np.ma.getmaskarray(values) if is_masked else False)
    return np.where(forbidden, 0.0, table), forbidden


def deficient_positions(allowed: Bools) -> Ints:
    """A set of positions with fewer allowed documents than positions (Hall's condition fails), empty if there is none.

    From a maximum matching, the positions reached from one unmatched position along alternating paths.
    """
    from scipy.sparse.csgraph import maximum_bipartite_matching

    matched = maximum_bipartite_matching(csr_array(allowed.astype(np.int8)), perm_type="column")
    unmatched = np.flatnonzero(matched < 0)
    if not unmatched.size:
        return unmatched.astype(np.int64)
    position_of = np.full(allowed.shape[1], -1)
    position_of[matched[matched >= 0]] = np.flatnonzero(matched >= 0)
    reached = {int(unmatched[0])}
    frontier = [int(unmatched[0])]
    while frontier:
        for document in np.flatnonzero(allowed[frontier.pop()]):
            position = int(position_of[document])
            if position >= 0 and position not in reached:
                reached.add(position)
                frontier.append(position)
    return np.array(sorted(reached), dtype=np.int64)


@compiled()
def settle(profit: Table[Floats], order: Ints, prices: Out[Floats], noise: float, passes: int) -> int:
    """Raise `prices` until prices[j] >= prices[order[i]] + profit[i, j] - profit[i, order[i]] for all i, j.

    Bellman-Ford with immediate updates, alternately down and up the positions. A position is visited only if the dual
    of its own document has risen, so chains of neighboring positions settle in one pass. Rises up to `noise` count as
    rounding, which makes tied cycles end. Returns the number of passes, or `passes` + 1 without convergence.
    """
    positions, documents = profit.shape
    position_of = np.full(documents, -1)
    for i in range(positions):
        position_of[order[i]] = i
    waits = np.ones(positions, np.bool_)
    for count in range(passes):
        quiet = True
        for step in range(positions):
            i = step if count % 2 == 1 else positions - 1 - step
            if not waits[i]:
                continue
            waits[i] = False
            own = order[i]
            base = prices[own] - profit[i, own]
            for j in range(documents):
                if base + profit[i, j] > prices[j] + noise and j != own:
                    prices[j] = base + profit[i, j]
                    quiet = False
                    if position_of[j] >= 0:
                        waits[position_of[j]] = True
        if quiet:
            return count
    return passes + 1


def shortest_path_prices(profit: Floats, order: Ints) -> Floats:
    """One dual per document for `profit` (k × n, -inf where not allowed) and the document at each position."""

    positions, documents = profit.shape
    prices = np.zeros(documents)
    noise = 4.0 * np.finfo(float).eps * float(np.abs(profit[np.isfinite(profit)]).max(initial=0.0))
    settle(np.ascontiguousarray(profit), np.asarray(order, dtype=np.int64), prices, noise, positions + 1)
    if documents > positions:
        idle = np.ones(documents, dtype=bool)
        idle[order] = False
        prices[idle] = 0.0
    return prices
