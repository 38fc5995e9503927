"""Limits on groups of documents over all positions: a flow for groups that nest, prices for those that cross them.

Nested groups are one flow (`argmax.nested_groups`). Of others the rows that the best ranking breaks are added, and no
more: the first join a tree, those that cross it ask a toll of their members, as much as leaves just so many placed as
the limit says (their number falls as the toll rises). A ranking that keeps all limits, of which those with a toll hold
with equality, is the best, and flow and tolls prove it. Where no toll leaves just so many the usual solvers are asked.
Nothing is kept from one call to the next but the trees: equal questions have equal answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from formulations.argmax.nested_groups import FOUND, LOST, place_nested
from formulations.arrays import Floats, Ints
from formulations.forms.form import EPSILON
from formulations.sets.nested_groups import GroupRows, NestedGroups
from formulations.sets.rows import SetRows

__all__ = ["best_of_groups"]

NEAR = (2.0**-50, 2.0**-44, 2.0**-36)
"""Differences that count as none, relative to the largest profit."""

WORK = 1e4
"""Nanoseconds of a cell in Python."""

TIGHT = 1e-9
"""A gap, relative to the profits, from which the usual solvers are asked."""

ASKED = 60
"""Flows that may be asked for before the usual solvers are."""


def best_of_groups(
    stated: SetRows, scores: Floats, gain: Floats, discount: Floats, decay: Floats
) -> tuple[Ints, float, float] | None:
    """Order, value and bound of the best ranking; None where the set is another, or its answer not proved so."""
    rows = GroupRows.of(stated)
    if rows is None:
        return None
    search = _Search(stated, rows, scores, gain, discount, decay)
    proven = search.nested() if NestedGroups.of(stated) is not None else search.crossing()
    if proven is None:
        return None
    order = search.order
    value = float(decay @ scores[order] - discount @ gain[order])
    size = np.abs(decay).sum() * np.abs(scores).max() + np.abs(discount).sum() * np.abs(gain).max()
    size += decay.size * np.abs(search.toll).sum()
    proven += 16.0 * EPSILON * (2.0 + decay.size + rows.low.sum()) * size
    return (order, value, max(proven, value)) if proven - value <= TIGHT * size else None


@dataclass(eq=False)
class _Search:
    """One question. chosen: the rows of the tree; toll: (rows,) what a document pays for each."""

    stated: SetRows
    rows: GroupRows
    scores: Floats
    gain: Floats
    discount: Floats
    decay: Floats
    order: Ints = field(init=False)
    toll: Floats = field(init=False)
    chosen: Ints = field(init=False)
    asked: int = 0

    def __post_init__(self) -> None:
        self.order = np.empty(self.decay.size, dtype=np.int64)
        self.toll = np.zeros(self.rows.low.size)
        self.chosen = np.zeros(0, dtype=np.int64)

    def flow(self) -> float | None:
        """The bound of the flow under these tolls, whose ranking is `order`; None where there is none."""
        self.asked += 1
        name = f"tree of {self.chosen.tolist()}"
        tree = self.stated.kept(name, lambda: self.rows.tree(self.chosen))
        assert tree is not None  # rows that cross are never chosen together
        paid = np.zeros(self.scores.size)
        for row in np.flatnonzero(self.toll).tolist():
            paid[self.rows.member[row]] += self.toll[row]
        told = np.empty(2)
        pays = place_nested.pays(WORK * self.decay.size * self.scores.size)
        place = place_nested if pays else place_nested.in_python
        for near in NEAR:
            ended = place(
                self.scores, self.gain, self.discount, self.decay, paid, tree.allowed, tree.leaf, tree.parent, tree.low,
                tree.high, near, self.order, told,
            )  # fmt: skip
            if ended != LOST:
                break
        return float(told[1]) if ended == FOUND else None

    def nested(self) -> float | None:
        """The bound where all rows make a tree."""
        self.chosen = np.arange(self.rows.low.size)
        return self.flow()

    def crossing(self) -> float | None:
        """The bound at which no row is broken, and those with a toll hold with equality."""
        rows = self.rows
        while self.asked < ASKED:
            bound = self.flow()
            if bound is None:
                return None
            held = rows.held(self.order)
            limit = np.where(self.toll > 0.0, rows.high, rows.low)
            broken = np.flatnonzero((held < rows.low) | (held > rows.high))
            loose = np.flatnonzero((self.toll != 0.0) & (held != limit))
            if not broken.size and not loose.size:
                return bound + float(self.toll @ limit)
            size = self.chosen.size
            for row in broken[self.toll[broken] == 0.0].tolist():
                if not rows.crossing[row, self.chosen].any():
                    self.chosen = np.sort(np.append(self.chosen, row))
            if self.chosen.size == size and not self.tolled(int([*loose, *broken][0])):
                return None
        return None

    def tolled(self, row: int) -> bool:
        """Find a toll of this row under which it holds just so many documents as its limit; whether there is one, or
        none is needed."""
        rows, before = self.rows, self.toll[row]
        self.toll[row] = 0.0
        if self.flow() is None:
            return False
        held = int(rows.held(self.order)[row])
        if rows.low[row] <= held <= rows.high[row]:
            return bool(before != 0.0)
        sign, limit = (1.0, int(rows.high[row])) if held > rows.high[row] else (-1.0, int(rows.low[row]))
        short, long = 0.0, 0.0
        step = abs(float(before)) or float(np.abs(self.scores).max() * np.abs(self.decay).max()) / 8.0 + 1e-300
        while self.asked < ASKED:
            tried = 0.5 * (short + long) if long else short + step
            if long and not short < tried < long:
                return False
            self.toll[row] = sign * tried
            if self.flow() is None:
                return False
            held = int(rows.held(self.order)[row])
            if held == limit:
                return True
            if sign * (held - limit) > 0:
                short, step = tried, 2.0 * step
            else:
                long = tried
        return False
