"""A set of rankings with other limits in one of its constraints, or in one row of it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal, TypeAlias

import numpy as np

from formulations.arrays import Bools, Floats
from formulations.errors import InvalidProblem
from formulations.sets.cells import MOST as COUNTED
from formulations.sets.constraint import Constraint
from formulations.sets.ranking_set import RankingSet

__all__ = ["MOST", "SIDES", "ConstraintLimit", "Side", "limit_of", "swept"]

Side: TypeAlias = Literal["at most", "at least", "exactly"]

SIDES = ("at most", "at least", "exactly")

MOST = 10_000
"""Points of one sweep: limits, or pairs of them."""


@dataclass(frozen=True, eq=False)
class ConstraintLimit:
    """The limits of `rows` (a mask) of a constraint of the set, on one side, or on both where that is "exactly"."""

    admissible: RankingSet
    constraint: Constraint
    rows: Bools
    side: str

    def at(self, limit: float) -> RankingSet:
        """The set with this limit."""
        self.check(limit)
        held = self.constraint
        upper, lower = held.upper.copy(), held.lower.copy()
        if self.side != "at least":
            upper[self.rows] = limit
        if self.side != "at most":
            lower[self.rows] = limit
        says = tuple(
            f"{self.side} {limit:g}, as swept" if moved else held.said(r) for r, moved in enumerate(self.rows.tolist())
        )
        fresh = replace(held, lower=lower, upper=upper, says=says)
        admissible = self.admissible
        return replace(
            admissible,
            constraints=tuple(fresh if one is held else one for one in admissible.constraints),
            softened=tuple(
                replace(one, constraint=fresh) if one.constraint is held else one for one in admissible.softened
            ),
        )

    def check(self, limit: float) -> None:
        """Raise InvalidProblem for a limit beyond the one on the other side, of a row that has one, and for one that
        breaks a soft row by more than can be counted."""
        if self._uncounted(limit):
            raise InvalidProblem(
                f"limit {limit:g} of {self.constraint.name!r} is beyond what doubles count, and as this is soft each "
                "unit costs; give a limit that rankings come near to"
            )
        other = (self.constraint.lower if self.side == "at most" else self.constraint.upper)[self.rows]
        crossed = other[other > limit if self.side == "at most" else other < limit]
        if crossed.size and self.side != "exactly":
            raise InvalidProblem(
                f"{self.constraint.name!r} cannot be {self.side} {limit:g}: its other limit is {crossed[0]:g}; sweep "
                "on that side only"
            )

    def _uncounted(self, limit: float) -> bool:
        """Whether the constraint is soft, and the limit breaks its rows by more than doubles count, in their units."""
        loose = limit > 0 if self.side == "at most" else limit < 0 and self.side == "at least"
        if loose or not any(one.constraint is self.constraint for one in self.admissible.softened):
            return False
        largest = float(np.abs(self.constraint.matrix.data).max(initial=1.0))
        return abs(limit) > COUNTED * largest


def limit_of(admissible: RankingSet, constraint: str, side: str | None = None) -> ConstraintLimit:
    """The limit of a constraint (of all its rows), or of a row by its own name: "site", "site['a.org']".

    side: "at most", "at least" or "exactly"; needed where rows have two limits that differ.
    Raises InvalidProblem for a name that is none, for what has no limits, and for a side that is not there.
    """
    every = [*admissible.constraints, *(one.constraint for one in admissible.softened)]
    for held in every:
        names = [held.block.name(row) for row in range(held.rows)]
        if constraint == held.name or constraint in names:
            rows = np.array([constraint in (held.name, name) for name in names], dtype=bool)
            return ConstraintLimit(admissible, held, rows, _side(held, rows, constraint, side))
    known = ", ".join(repr(held.name) for held in every if held.rows) or "none"
    raise InvalidProblem(f"no constraint is named {constraint!r}; with limits there are {known}")


def _side(held: Constraint, rows: Bools, name: Hashable, side: str | None) -> str:
    if not rows.any():
        raise InvalidProblem(f"{name!r} forbids cells and has no limit; sweep a constraint that counts")
    if held.forbids is not None and name == held.name:
        raise InvalidProblem(
            f"{name!r} forbids cells beside its rows and has no limit; sweep one of its rows, {held.block.name(0)!r} "
            f"say, or let it be broken: soft({name!r}, price=...)"
        )
    below, above = np.isfinite(held.lower[rows]), np.isfinite(held.upper[rows])
    if side is not None:
        if side not in SIDES:
            raise InvalidProblem(f"side = {side!r} is none of {', '.join(map(repr, SIDES))}")
        return side
    if (below & above).all() and (held.lower[rows] == held.upper[rows]).all():
        return "exactly"
    if not below.any():
        return "at most"
    if not above.any():
        return "at least"
    raise InvalidProblem(f"{name!r} has limits on both sides; say side='at most' or side='at least'")


def swept(limits: Any) -> Floats:
    """Limits to try, (m,) finite numbers in the order given, MOST at most; InvalidProblem for none, more, or others."""
    try:
        given = [] if isinstance(limits, str) else list(islice(limits, MOST + 1))
        asked = np.array(given, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        asked = np.empty(0)
    if asked.ndim != 1 or not asked.size or not np.isfinite(asked).all():
        raise InvalidProblem(f"limits = {limits!r} are no numbers to sweep over; give some, range(1, 5) say")
    if asked.size > MOST:
        raise InvalidProblem(
            f"limits from {asked[0]:g} on are more than {MOST}, the most that a sweep tries; give a shorter range, or "
            "one with a step: range(0, 1000, 10)"
        )
    return asked
