"""The longest path in a lattice of counts: how many of each chain have been taken."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulations.arrays import Floats, finite
from formulations.errors import InvalidProblem
from formulations.forms.form import EPSILON, Form
from formulations.forms.lattice_levels import LatticeLevels, farthest
from formulations.forms.min_cost_flow import MinCostFlow
from formulations.forms.outward import above, added, below
from formulations.kept import Memoized
from formulations.notation.names import Block
from formulations.notation.program import Program

__all__ = ["LatticePath"]


@dataclass(frozen=True, eq=False)
class LatticePath(Form, Memoized):
    """max over paths from (0, ..., 0) to (N_0, ..., N_{G-1}) of the sum of their edges, and a constant.

    An edge leads from a state to the one with one more of chain h. profit has shape (G, N_0 + 1, ..., N_{G-1} + 1):
    profit[h, state] is what the edge of chain h out of the state earns; where all of the chain are taken there is no
    edge, and the entry does not matter. With two chains that is a grid of n₋ + 1 by n₊ + 1 states.

    A point x is the path: the chain of each of its edges. A dual y holds one potential a state, flat: no path earns
    more than y rises from the first state to the last and, at each level (of states with equal sums), the most by which
    an edge earns more than y rises along it.
    """

    profit: Floats
    constant: float = 0.0

    solvable = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "profit", finite("profit", self.profit, np.ndim(self.profit)))
        if self.profit.ndim < 2 or self.profit.shape[0] != self.profit.ndim - 1:
            raise InvalidProblem(
                f"profit has shape {self.profit.shape}, but needs one table of edges a chain: (G, N_0 + 1, ...)"
            )
        if self.profit.size == 0 or not sum(self.lengths):
            raise InvalidProblem("a lattice path needs one edge at least")
        object.__setattr__(self, "constant", float(finite("constant", [self.constant], 1)[0]))

    @classmethod
    def grid(cls, cells: ArrayLike) -> LatticePath:
        """Of goods and bads: cells (n₊, n₋ + 1), cells[g, b] what good g earns with b bads above it; bads earn nothing.

        >>> path = LatticePath.grid([[0.0, 2.0, 1.0], [0.0, 3.0, 4.0]])
        >>> path.value(np.array([0, 1, 0, 1]))  # a bad, a good, a bad, a good
        6.0
        """
        table = finite("cells", cells, 2)
        profit = np.zeros((2, table.shape[1], table.shape[0] + 1))
        profit[1, :, :-1] = table.T
        return cls(profit)

    @property
    def lengths(self) -> tuple[int, ...]:
        """How many there are of each chain."""
        return tuple(extent - 1 for extent in self.profit.shape[1:])

    @property
    def states(self) -> int:
        return int(self.profit[0].size)

    @cached_property
    def levels(self) -> LatticeLevels:
        return LatticeLevels(self.lengths)

    @property
    def edges(self) -> Floats:
        """(G, states) what each edge earns, flat."""
        return self.profit.reshape(self.profit.shape[0], -1)

    @property
    def scale(self) -> float:
        """The largest edge in magnitude."""
        return float(max(np.abs(self.edges[self.levels.there]).max(), abs(self.constant)))

    @property
    def rounding(self) -> float:
        return 16.0 * EPSILON * self.scale * (2.0 * sum(self.lengths) + 1.0)

    @property
    def extent(self) -> str:
        return f"{' × '.join(str(length + 1) for length in self.lengths)} states"

    @property
    def size(self) -> int:
        return int(self.levels.there.sum())

    @property
    def program(self) -> Program:
        program = self.flow().program
        return replace(program, objective=-program.objective, maximises=True)

    def flow(self) -> MinCostFlow:
        """One unit from the first state to the last: edges are arcs that cost what they earn, negated, those of a chain
        together; the constant stays behind."""
        levels = self.levels
        chain, tail = np.nonzero(levels.there)
        supply = np.zeros(self.states, dtype=np.int64)
        supply[0], supply[-1] = 1, -1
        return MinCostFlow(
            tail=tail,
            head=tail + levels.strides[chain],
            capacity=np.ones(tail.size, dtype=np.int64),
            cost=-self.edges[chain, tail],
            supply=supply,
            arcs=tuple(Block(f"chain {h}", (int(held.sum()),)) for h, held in enumerate(levels.there)),
            nodes=(Block("state", self.profit.shape[1:]),),
        )

    def value(self, x: NDArray[Any]) -> float:
        return float(self._walked(x).sum()) + self.constant

    def attained(self, x: NDArray[Any]) -> float:
        return below(self._walked(x), self.constant)

    def _walked(self, x: NDArray[Any]) -> Floats:
        """What each edge of the path earns."""
        chain = np.asarray(x, dtype=np.int64)
        passed = np.concatenate([[0], np.cumsum(self.levels.strides[chain])[:-1]])
        return np.asarray(self.edges[chain, passed])

    def violation(self, x: NDArray[Any]) -> float:
        chain = np.asarray(x)
        if chain.shape != (sum(self.lengths),) or chain.dtype.kind not in "iuf" or (chain != np.floor(chain)).any():
            return float("inf")
        inside = (chain >= 0).all() and (chain < len(self.lengths)).all()
        held = inside and np.array_equal(np.bincount(chain.astype(np.int64), minlength=len(self.lengths)), self.lengths)
        return 0.0 if held else float("inf")

    def bound(self, y: Floats) -> float:
        if np.shape(y) != (self.states,):
            raise InvalidProblem(f"potentials have shape {np.shape(y)}, but there are {self.states} states")
        prices, levels = np.asarray(y, dtype=np.float64), self.levels
        most = np.full(sum(self.lengths), -np.inf)
        for chain, stride in enumerate(levels.strides.tolist()):
            tail = np.flatnonzero(levels.there[chain])
            gained, digits = added(self.edges[chain, tail], prices[tail])
            reduced, more_digits = added(gained, -prices[tail + stride])
            dropped = digits + more_digits
            # The sum of the digits may round once more, and so may what it is added to.
            over = np.nextafter(np.nextafter(reduced + dropped, np.inf) + EPSILON * np.abs(dropped), np.inf)
            np.maximum.at(most, levels.level[tail], np.where((digits == 0.0) & (more_digits == 0.0), reduced, over))
        return above(most, prices[-1], -prices[0], self.constant)

    @property
    def potentials(self) -> Floats:
        """(states,) the length of the longest path to each state: the dual that proves what is longest."""
        found: Floats = self.kept("potentials", lambda: farthest(self.edges, self.levels))
        return found

    def recovered_dual(self, x: NDArray[Any]) -> Floats:
        return self.potentials

    def named_primal(self, x: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return {"chain": x}

    def named_dual(self, y: Floats) -> dict[str, NDArray[Any]]:
        return {"state": y.reshape(self.profit.shape[1:])}
