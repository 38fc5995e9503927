"""The group at each position: limits on prefixes, worths that fall with the number of earlier members of a group.

Duals prove a sequence of groups optimal. The potential of a node is the longest path from any node in the residual
network. A unit of group g before position p + 1 passes position p if a limit permits it, goes back over it if a limit
permits it, or changes groups where a position does. Of an optimal sequence no cycle gains, and potentials prove it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Bools, Floats, Ints, Out, Table, booleans, finite, frozen, integers, numbers
from formulations.compiled import compiled
from formulations.errors import InfeasibleError, InvalidProblemError
from formulations.problems.directed_rounding import above, added, below
from formulations.problems.min_cost_flow import MinCostFlow
from formulations.problems.problem import EPSILON, Problem, checked_dual, integers_below
from formulations.problems.program import Block, Program, with_constant


class GroupNetwork(NamedTuple):
    """The arrays of a `GroupSequence` that kernels read; start: the first column of each group in worth."""

    worth: Table[Floats]
    start: Ints
    lower: Table[Ints]
    upper: Table[Ints]
    banned: Table[Bools]


@compiled()
def settle_prices(
    network: GroupNetwork, noise: float, group: Ints, held: Table[Ints], price: Out[Table[Floats]]
) -> None:
    """price[g, p], the dual of passing position p in group g, for the group at each position; held[g, p] counts group g
    at positions 0 .. p. At most as many sweeps as nodes; rises within `noise` count as ties."""
    worth, start, lower, upper, banned = network
    groups, k = lower.shape
    height = np.zeros((groups, k + 1))
    top = 0.0
    moved, sweeps = True, 0
    while moved and sweeps <= groups * k:
        moved = False
        sweeps += 1
        for p in range(k):
            h = group[p]
            for g in range(groups):
                if not banned[g, p] and height[h, p] > height[g, p] + noise:
                    height[g, p] = height[h, p]
                    moved = True
            for g in range(groups):
                n = held[g, p]
                if n < upper[g, p]:
                    risen = height[g, p] + worth[p, start[g] + n]
                    if p == k - 1:
                        if risen > top + noise:
                            top = risen
                            moved = True
                    elif risen > height[g, p + 1] + noise:
                        height[g, p + 1] = risen
                        moved = True
        for p in range(k - 1, -1, -1):
            for g in range(groups):
                n = held[g, p]
                if n > lower[g, p]:
                    after = top if p == k - 1 else height[g, p + 1]
                    risen = after - worth[p, start[g] + n - 1]
                    if risen > height[g, p] + noise:
                        height[g, p] = risen
                        moved = True
            h = group[p]
            for g in range(groups):
                if not banned[g, p] and height[h, p] > height[g, p] + noise:
                    height[g, p] = height[h, p]
                    moved = True
    for g in range(groups):
        height[g, k] = top
        for p in range(k):
            price[g, p] = height[g, p + 1] - height[g, p]


NOISE = 8.0 * EPSILON  # differences that count as none, to the scale of a problem
WORK = 6000  # nanoseconds that Python takes for a node of the network in one sweep, about


@dataclass(frozen=True, eq=False)
class GroupSequence(Problem):
    """max over sequences g_0 .. g_{k-1} of groups of Σ_p Σ_g Σ_{r < N[g, p]} worth[p, start_g + r].

    N[g, p] is how many of g_0 .. g_p are g. `worth` (k, R) has `sizes[g]` columns for group g, one group after the
    other, and falls along them: the r-th of a group, at position p or before, earns worth[p, start_g + r] there.
    lower <= N <= upper (groups, k), and group g may be at p only where not `banned` (groups, k).

    It is a flow of k units: a position sends one to a group, whose units pass from position to position at rising cost.
    A point x is the group at each position. A dual y holds ρ[g, p], the cost of passing position p, flat: no sequence
    earns more than Σ_p max_g Σ_{q >= p} ρ[g, q] + Σ_{g, p} max_N (Σ_{r < N} worth[p, start_g + r] - ρ[g, p] N).
    """

    worth: Floats
    sizes: Ints
    lower: Ints
    upper: Ints
    banned: Bools

    def __post_init__(self) -> None:
        object.__setattr__(self, "worth", finite("worth", self.worth, 2))
        object.__setattr__(self, "sizes", integers("sizes", self.sizes))
        k, groups = self.worth.shape[0], self.sizes.size
        object.__setattr__(self, "banned", frozen(booleans("banned", self.banned, (groups, k))))
        for name in ("lower", "upper"):
            table = numbers(name, getattr(self, name))
            if table.shape != (groups, k) or (table != np.floor(table)).any():
                raise InvalidProblemError(f"{name} must be int64 of shape {(groups, k)}, one row per group")
            object.__setattr__(self, name, frozen(table.astype(np.int64)))
        object.__setattr__(self, "upper", frozen(np.minimum(self.upper, self.sizes[:, None])))
        if k == 0 or groups == 0 or self.sizes.min() < 1 or self.sizes.sum() != self.worth.shape[1]:
            raise InvalidProblemError("worth needs one column for each member of each group, and no group may be empty")
        inside = np.ones(self.worth.shape[1] - 1, dtype=bool)
        inside[self.start[1:] - 1] = False
        if (np.diff(self.worth, axis=1)[:, inside] > 0).any():
            raise InvalidProblemError("worth must not increase inside a group. Sort each group in descending order.")

    @cached_property
    def start(self) -> Ints:
        """(groups,) the first column of each group."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)

    @property
    def positions(self) -> int:
        return int(self.worth.shape[0])

    @property
    def groups(self) -> int:
        return int(self.sizes.size)

    @property
    def scale(self) -> float:
        """The largest sum of worths that one of a group earns, in magnitude."""
        return float(np.abs(self.worth).sum(axis=0).max())

    @property
    def rounding(self) -> float:
        return 16.0 * EPSILON * self.scale * self.positions * (self.positions + self.groups)

    @property
    def shape_text(self) -> str:
        return f"{self.positions} positions × {self.groups} groups"

    @property
    def size(self) -> int:
        return int(self.worth.size)

    @cached_property
    def group(self) -> Ints:
        """(R,) the group of each column."""
        return np.repeat(np.arange(self.groups), self.sizes)

    @cached_property
    def _rank(self) -> Ints:
        """(R, 1) the rank of each column in its group."""
        return (np.arange(self.worth.shape[1]) - np.repeat(self.start, self.sizes))[:, None]

    def counts(self, x: NDArray[Any]) -> Ints:
        """(groups, k) how many of each group are at positions 0 .. p."""
        return np.asarray(np.cumsum(np.asarray(x)[None, :] == np.arange(self.groups)[:, None], axis=1), dtype=np.int64)

    def _gains_of(self, x: NDArray[Any]) -> Floats:
        return np.where(self._rank < self.counts(x)[self.group], self.worth.T, 0.0)

    def value(self, x: NDArray[Any]) -> float:
        return float(self._gains_of(x).sum())

    def value_lower_bound(self, x: NDArray[Any]) -> float:
        return below(self._gains_of(x))

    def violation(self, x: NDArray[Any]) -> float:
        chosen = integers_below(x, self.positions, self.groups)
        if chosen is None:
            return float("inf")
        held = self.counts(chosen)
        if (held[:, -1] > self.sizes).any():
            return float("inf")
        off = max(0, int((self.lower - held).max()), int((held - self.upper).max()))
        return float(max(off, int(self.banned[chosen, np.arange(self.positions)].any())))

    def bound(self, y: Floats) -> float:
        price, most, _, used = self._reduced_gains(y)
        k = self.positions
        terms, digits = added(self.worth.T[used], -price[self.group][used])
        lost = (k + 1.0) * EPSILON * float(np.abs(price).sum(axis=1).max())
        return above(most, np.full(k, lost), terms, digits)

    def is_valid_dual(self, y: Any) -> bool:
        fits = isinstance(y, np.ndarray) and y.dtype.kind in "iuf" and y.shape == (self.groups * self.positions,)
        return fits and bool(np.isfinite(y).all())

    def bound_float64(self, y: Floats) -> float:
        _, most, gain, used = self._reduced_gains(y)
        return float(most.sum() + gain[used].sum())

    def _reduced_gains(self, y: Floats) -> tuple[Floats, Floats, Floats, Bools]:
        """The duals (groups, k), the largest cost of each position, the reduced worth of each unit (R, k), and
        the units taken at these duals."""
        k = self.positions
        price = checked_dual(y, self.groups * k, "groups × positions").reshape(self.groups, k)
        most = np.where(self.banned, -np.inf, np.cumsum(price[:, ::-1], axis=1)[:, ::-1]).max(axis=0)
        gain = self.worth.T - price[self.group]
        low, high = self.lower[self.group], self.upper[self.group]
        return price, most, gain, (self._rank < low) | ((self._rank < high) & (gain > 0.0))

    def recover_dual(self, x: NDArray[Any]) -> Floats | None:
        if self.violation(x) > 0.0:
            return None
        group = np.asarray(x, dtype=np.int64)
        paid = settle_prices.pays(WORK * self.groups * self.positions)
        return self.priced(group, self.counts(group), compiled=paid).ravel()

    @property
    def network(self) -> GroupNetwork:
        return GroupNetwork(self.worth, frozen(self.start), self.lower, self.upper, self.banned)

    def priced(self, group: Ints, held: Ints, compiled: bool) -> Floats:
        """(groups, k) the duals of a sequence with these counts; they prove it optimal if it is."""
        price = np.empty(self.lower.shape)
        (settle_prices if compiled else settle_prices.in_python)(self.network, NOISE * self.scale, group, held, price)
        return price

    @property
    def program(self) -> Program:
        program = self.flow().program
        return replace(program, objective=-program.objective, is_maximization=True)

    @property
    def full_program(self) -> Program:
        return with_constant(self.program, float(self.worth.T[self._rank < self.lower[self.group]].sum()))

    def flow(self) -> MinCostFlow:
        """One unit from each position to a group, arcs from (g, p) to (g, p + 1) each of one unit; units
        required by a lower limit move into the supplies, and their worth is left out."""
        k, groups = self.positions, self.groups
        sink = k + groups * k
        at, group = np.nonzero(~self.banned.T)
        tails, heads, costs, named = [at], [k + group * k + at], [np.zeros(at.size)], list[tuple[int, int, int]]()
        supply = np.zeros(sink + 1, dtype=np.int64)
        supply[:k], supply[sink] = 1, -k
        for g in range(groups):
            for p in range(k):
                low, high = int(self.lower[g, p]), int(min(self.upper[g, p], self.sizes[g], p + 2))
                if low > high:
                    raise InfeasibleError(f"group {g} needs {low} members at positions 0 to {p}; at most {high} fit")
                before, behind = k + g * k + p, sink if p == k - 1 else k + g * k + p + 1
                supply[before] -= low
                supply[behind] += low
                column = self.start[g] + np.arange(low, high)
                tails.append(np.full(high - low, before))
                heads.append(np.full(high - low, behind))
                costs.append(-self.worth[p, column])
                named += [(g, p, r) for r in range(low, high)]
        tail, head = (np.concatenate(part).astype(np.int64) for part in (tails, heads))
        return MinCostFlow(
            tail, head, np.ones(tail.size, dtype=np.int64), np.concatenate(costs), supply,
            arcs=(Block("holds", tuple(zip(at.tolist(), group.tolist(), strict=True))), Block("passes", tuple(named))),
            nodes=(Block("position", (k,)), Block("group", (groups, k)), Block("end", ())),
        )  # fmt: skip

    def named_primal(self, x: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return {"group": x}

    def named_dual(self, y: Floats) -> dict[str, NDArray[Any]]:
        return {"passing": y.reshape(self.groups, self.positions)}
