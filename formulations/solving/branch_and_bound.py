"""Branch and bound for constrained rankings: laminar group limits are a min-cost flow; other rows are dualized
(Lagrangian).

Nested limits on groups over all positions are one flow (`assign_nested` of `argmax.group_limits`). Of the other rows
only those that the best ranking violates are added: a group that crosses no group of the tree joins it; every other row
(limits on prefixes, rows of any kind) gets a multiplier y on its cells (`ascend` of `argmax.group_limits`), for a soft
row at most its penalty. By weak duality the flow with multipliers y proves

    best <= max over rankings of the flow of (profit - Σ y a) π  +  Σ y · limit

If multipliers prove no more and the tied rankings contain a document fractionally, the problem is branched on that
document. The search ends with a ranking that satisfies all rows and whose value minus penalties equals the bound. Only
rows and trees are cached between calls, so equal problems have equal answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from formulations.argmax.group_limits import FOUND, FULL, GIVEN_UP, LOST, SETTLED, ascend, assign_nested
from formulations.arrays import Bools, Floats, Ints
from formulations.constraints.rows import SetRows
from formulations.constraints.structure import NestedGroups, SideConstraintRows
from formulations.display import CompactReprMixin
from formulations.problems.problem import EPSILON

SURE = 1e-6  # smaller fractions of documents are rounding


@dataclass(frozen=True, eq=False)
class Subproblem(CompactReprMixin):
    """The rankings on these cells with these documents. orders (t, k): the known ones, with value and reached."""

    allowed: Bools
    assigned: Ints
    orders: Ints
    value: Floats
    reached: Floats

    def some(self, which: Bools) -> Subproblem:
        """The same subproblem with a selection of the known rankings."""
        return Subproblem(self.allowed, self.assigned, self.orders[which], self.value[which], self.reached[which])

    def within(self, allowed: Bools, assigned: Ints) -> Subproblem:
        """A smaller subproblem."""
        here = allowed[np.arange(self.orders.shape[1]), self.orders].all(axis=1)
        for document in assigned.tolist():
            here &= (self.orders == document).any(axis=1)
        return Subproblem(allowed, assigned, self.orders[here], self.value[here], self.reached[here])

    def cut(self, weight: Floats) -> list[Subproblem] | None:
        """Two subproblems, with and without a fractional document (or cell), the likelier last; None if integral."""
        held = np.zeros(self.allowed.shape)
        for share, order in zip(weight.tolist(), self.orders, strict=True):
            held[np.arange(order.size), order] += share
        without, inside, assigned = self.allowed.copy(), self.allowed, self.assigned
        shares = held.sum(axis=0)
        if np.abs(shares - 0.5).min() < 0.5 - SURE:
            document = int(np.round(np.abs(shares - 0.5), 6).argmin())
            share = shares[document]
            without[:, document] = False
            assigned = np.append(assigned, document)
        elif np.abs(held - 0.5).min() < 0.5 - SURE:
            i, j = divmod(int(np.round(np.abs(held - 0.5), 6).argmin()), shares.size)
            share = held[i, j]
            without[i, j] = False
            inside = inside.copy()
            inside[i], inside[:, j] = False, False
            inside[i, j] = True
        else:
            return None
        parts = [self.within(inside, assigned), self.within(without, self.assigned)]
        return parts if share < 0.5 else parts[::-1]


NEAR = (2.0**-50, 2.0**-43, 2.0**-36)  # tolerance of equality, relative to the largest profit
WORK = 1e4  # nanoseconds per cell in Python
TIGHT = 1e-9  # relative gap above which the general solvers are used instead
CLOSED = 1e-11  # relative gap at which a subproblem is closed

MAX_FLOWS = 400  # largest number of flows before the general solvers are used instead
MAX_KNOWN = 24  # capacity of the list of known rankings


def best_of_groups(
    stated: SetRows,
    scores: Floats,
    gain: Floats,
    discount: Floats,
    position_weights: Floats,
    charge: float = 1.0,
    cell_prices: Floats | None = None,
) -> tuple[Ints, float, float, str] | None:
    """Order, value, bound and algorithm of the best ranking; None if it is not proved optimal. charge: multiplies the
    penalties of soft rows; cell_prices: (k, n) the penalties of softly forbidden cells."""
    rows = SideConstraintRows.from_rows(stated)
    if rows is None:
        return None
    k, n = position_weights.size, scores.size
    size = float(np.abs(position_weights).sum() * np.abs(scores).max() + np.abs(discount).sum() * np.abs(gain).max())
    base, price = np.zeros((k, n)), rows.price
    if cell_prices is not None:
        base = charge * cell_prices
        size += k * float(base.max())
    if not np.isfinite(size):
        return None
    spread = float(np.abs(position_weights).max() * (scores.max() - scores.min()))
    spread += float(np.abs(discount).max() * (gain.max() - gain.min()))
    soft = bool(rows.soft.any())
    if soft:
        price = np.where(rows.soft, charge * np.where(rows.soft, price, 0.0), np.inf)
    search = _Search(stated, rows, (scores, gain, discount, position_weights), price, base, size, spread / 8.0 or 1.0)
    nested = not soft and NestedGroups.from_rows(stated) is not None
    if not (search.solve_nested() if nested else search.solve_by_branching()):
        return None
    order, proven = search.order, float(search.summary[1])
    value = float(position_weights @ scores[order] - discount @ gain[order])
    if soft or cell_prices is not None:
        value -= search.penalty_of(order)
    proven += 16.0 * EPSILON * (2.0 + k + rows.groups.low.sum()) * (size + k * float(search.summary[2]))
    way = "groups" if search.parts == 1 else "groups, by cases"
    return (order, value, max(proven, value), way) if proven - value <= TIGHT * (size + spread) else None


@dataclass(eq=False)
class _Search:
    """The search for one query; data: scores, gains, discount and position weights. price (rows,), base (k, n):
    penalties of rows and cells; size: the largest possible value; step: the initial step of the multipliers.

    chosen: the groups of the tree; side: the dualized rows, sign: 1 for their upper limit and -1 for their lower; cap:
    the largest multiplier of each; at: the last multipliers. order: the best ranking; summary: its value, the bound of
    all closed subproblems, the largest multiplier of the proof.
    """

    stated: SetRows
    rows: SideConstraintRows
    data: tuple[Floats, Floats, Floats, Floats]
    price: Floats
    base: Floats
    size: float
    step: float
    order: Ints = field(init=False)
    summary: Floats = field(init=False)
    tree: NestedGroups = field(init=False)
    chosen: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    side: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    sign: Floats = field(default_factory=lambda: np.zeros(0))
    cap: Floats = field(default_factory=lambda: np.zeros(0))
    at: Floats = field(default_factory=lambda: np.zeros(1))
    calls: int = 0
    parts: int = 1

    def __post_init__(self) -> None:
        self.order = np.full(self.base.shape[0], -1, dtype=np.int64)
        self.summary = np.array([-np.inf, -np.inf, 0.0])

    def choose(self, groups: Ints) -> None:
        """Make the tree of these groups."""
        tree = self.stated.cached(f"tree of {groups.tolist()}", lambda: self.rows.groups.tree(groups))
        assert tree is not None  # groups that cross are never chosen together
        self.chosen, self.tree = groups, tree

    def penalty_of(self, order: Ints) -> float:
        """The penalties of a ranking."""
        soft = self.rows.soft
        off = self.rows.off(self.rows.reached(order))[soft]
        return float(self.price[soft] @ off) + float(self.base[np.arange(order.size), order].sum())

    def flow_bound(self) -> float | None:
        """The bound of the flow through the tree, whose ranking is written to `order`; None if it has none."""
        tree, result = self.tree, np.empty(2)
        solver: Any = assign_nested if assign_nested.pays(WORK * self.base.size) else assign_nested.in_python
        for near in NEAR:
            ended = solver(*self.data, self.base, *tree.network, near, self.order, result)
            if ended != LOST:
                break
        return float(result[1]) if ended == FOUND else None

    def solve_nested(self) -> bool:
        """Whether the flow has a ranking and all rows form a tree."""
        self.choose(np.arange(self.rows.groups.low.size))
        return self.record_bound(self.flow_bound())

    def record_bound(self, bound: float | None) -> bool:
        """Use the bound of the flow as that of the problem, if there is one."""
        if bound is not None:
            self.summary[1] = bound
        return bound is not None

    def solve_by_branching(self) -> bool:
        """Whether the tree alone, or multipliers and branching, closed the problem."""
        none = np.zeros(0, dtype=np.int64)
        self.choose(none)
        while not self.side.size:
            bound = self.flow_bound()
            if bound is None:
                return False
            reached = self.rows.reached(self.order)
            off = self.rows.off(reached)
            if not off.any() or not self.add_violated_rows(reached):
                return not off[~self.rows.soft].any() and self.record_bound(bound)
        scores, gain, discount, position_weights = self.data
        order = self.order.copy()
        value = position_weights @ scores[order] - discount @ gain[order]
        value -= self.base[np.arange(order.size), order].sum()
        self.order[:] = -1
        all_ = Subproblem(self.rows.groups.allowed, none, order[None], np.array([value]), reached[None])
        left = [(all_, np.inf)]
        while left:
            cut = self.process(*left.pop())
            if cut is None:
                return False
            self.parts += len(cut) // 2
            left += cut
        return bool(self.order[0] >= 0)

    def process(self, part: Subproblem, bound: float) -> list[tuple[Subproblem, float]] | None:
        """[] if a subproblem has nothing better than the incumbent, two if it is branched, None if given up."""
        while True:
            index = self.rows.index[self.chosen]
            low, high = self.rows.low[index], self.rows.high[index]
            keeps = (part.reached[:, index] >= low) & (part.reached[:, index] <= high)
            part = part.some(np.asarray(keeps.all(axis=1)))
            ended, part, weight, bounds = self.ascend(part, bound)
            bound = bounds[1]
            self.summary[0], self.summary[2] = bounds[0], max(self.summary[2], bounds[2])
            if ended == FULL and self.calls < MAX_FLOWS:
                continue
            if ended in (FULL, GIVEN_UP):
                return None
            if ended != SETTLED:
                self.summary[1] = max(self.summary[1], bound)
                return []
            if not self.add_violated_rows(weight @ part.reached):
                parts = part.cut(weight)
                return None if parts is None else [(one, bound) for one in parts]

    def ascend(self, part: Subproblem, bound: float) -> tuple[int, Subproblem, Floats, Floats]:
        """The multiplier ascent on a subproblem: status, the subproblem with rankings found, weights and bounds."""
        rows, tree, known = self.rows, self.tree, part.value.size
        most = known + min(max(MAX_FLOWS - self.calls, 0), MAX_KNOWN)
        orders, value = np.empty((most, part.orders.shape[1]), dtype=np.int64), np.empty(most)
        reached = np.empty((most, rows.low.size))
        orders[:known], value[:known], reached[:known] = part.orders, part.value, part.reached
        weight, counted = np.zeros(value.size), np.array([known, 0])
        bounds = np.array([self.summary[0], bound, self.summary[2]])
        sides = self.side.size
        self.at = np.concatenate([self.at[:-1], np.zeros(sides + 2 - self.at.size)])
        reward = 0.0
        if part.assigned.size:
            dearest = self.size + float(self.cap @ np.abs(rows.flat[self.side]).max(axis=1, initial=0.0))
            reward = 4.0 * (orders.shape[1] + 1.0) * dearest
        pays = ascend.pays(4.0 * WORK * self.base.size)
        search: Any = ascend if pays else ascend.in_python
        ended = search(
            *self.data, self.base, part.allowed, *tree.network[1:], part.assigned, reward,
            rows.flat, rows.low, rows.high, rows.rounding, self.price, self.side, self.sign, self.cap, orders, value,
            reached, weight, counted, self.at, self.order, bounds, CLOSED * (self.size + self.step),
        )  # fmt: skip
        self.calls += int(counted[1])
        found = slice(0, int(counted[0]))
        part = Subproblem(part.allowed, part.assigned, orders[found], value[found], reached[found])
        return int(ended), part, weight[found], bounds

    def add_violated_rows(self, mean: Floats) -> bool:
        """Add rows that the weighted rankings violate to the tree or to the dualized rows; whether there were any."""
        rows, groups = self.rows, self.rows.groups
        costs = self.price > 0.0
        above, below = (mean > rows.high + SURE) & costs, (mean < rows.low - SURE) & costs
        broken = (above | below)[rows.index]
        if self.side.size:
            broken &= ~np.isin(rows.index, self.side)
        chosen = self.chosen
        for group in np.flatnonzero(broken).tolist():
            if group not in chosen and not groups.crossing[group, chosen].any():
                chosen = np.sort(np.append(chosen, group))
        if chosen.size > self.chosen.size:
            self.choose(chosen)
            return True
        above[self.side[self.sign > 0.0]] = False
        below[self.side[self.sign < 0.0]] = False
        row = np.concatenate([np.flatnonzero(above), np.flatnonzero(below)])
        self.side = np.append(self.side, row)
        self.sign = np.append(self.sign, np.repeat([1.0, -1.0], [above.sum(), below.sum()]))
        self.cap = np.append(self.cap, np.where(rows.soft[row], self.price[row], self.step))
        return bool(row.size)
