"""A set of rankings with other limits in one of its constraints, or in one row of it.

Between which limits the rankings differ: beyond them a limit cannot bind, or leaves nothing.

A row a π of a ranking is no more than

    min( Σ_i max(0, max_j a[i, j]),  Σ_j max(0, max_i a[i, j]) )

for each position holds one document and each document stands at one position at most: of a group at some positions, the
smaller of the two numbers. The rows of positions and documents alone prove it, so it holds in the linear program too.
What it is no less than, likewise.

>>> from formulations import RankingSet
>>> from formulations.constraints.parametric import limit_of
>>> site = RankingSet(6, 4).at_most(1, by=["a.org", "a.org", "a.org", "b.org", "b.org", None], name="site")
>>> limit_range(limit_of(site, "site"))
(-1.0, 3.0)

What one limit on a prefix does to a loss-augmented ranking: F(r), the best with exactly r of a group in the prefix.

The relaxation may hold any r, and is worth the concave envelope of F there: the rankings are the vertices of the
assignment polytope, and a limit on how many of the group stand in the prefix cuts its image in the plane (r, value). So
with l <= r <= u it is worth the most of the envelope between l and u, and there is a gap exactly where that is above
the most of F: never where F is concave.

F is exact and cheap where there are few gains: documents of one gain on one side of the limit stay in order of score,
so a state is how many of each such chain are placed, C(k + H, H) states at most for H chains and k positions.

>>> from formulations import ranking
>>> problem = ranking([3, 0, 1, 2], [2, 0, 1, 3], discount=[5, 2, 2], decay=[4, 4, 3])
>>> curve = QuotaCurve.of(problem, [0, 1], 2)
>>> curve.best, curve.concave
(array([6., 7., 9.]), False)
>>> curve.relaxed(0, 1), curve.whole(0, 1)
(7.5, 7.0)
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from itertools import islice
from math import comb
from numbers import Integral
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from formulations.arrays import Bools, Floats, Ints, frozen
from formulations.constraints.constraint import MOST as COUNTED
from formulations.constraints.constraint import Constraint, chosen, row_rounding, whole_number
from formulations.constraints.ranking_set import RankingSet
from formulations.display import CompactReprMixin
from formulations.errors import InvalidProblem, Unsupported
from formulations.problems.ranking import RankTwoAssignment

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
            soft_constraints=tuple(
                replace(one, constraint=fresh) if one.constraint is held else one for one in admissible.soft_constraints
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
        if loose or not any(one.constraint is self.constraint for one in self.admissible.soft_constraints):
            return False
        largest = float(np.abs(self.constraint.matrix.data).max(initial=1.0))
        return abs(limit) > COUNTED * largest


def limit_of(admissible: RankingSet, constraint: str, side: str | None = None) -> ConstraintLimit:
    """The limit of a constraint (of all its rows), or of a row by its own name: "site", "site['a.org']".

    side: "at most", "at least" or "exactly"; needed where rows have two limits that differ.
    Raises InvalidProblem for a name that is none, for what has no limits, and for a side that is not there.
    """
    every = [*admissible.constraints, *(one.constraint for one in admissible.soft_constraints)]
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
            f"say, or let it be broken: penalized({name!r}, penalty=...)"
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


def limit_range(limit: ConstraintLimit) -> tuple[float, float]:
    """The limit that stands for all below it, and the one for all above it: they admit the same rankings.

    On its loose end the constraint cannot bind, on the other no ranking meets it; a soft constraint has no other end,
    for each unit costs.
    """
    least, most = _reach(limit)
    soft = any(one.constraint is limit.constraint for one in limit.admissible.soft_constraints)
    below, above = (-np.inf, np.inf) if soft else (-_beyond(-float(least.max())), _beyond(float(most.min())))
    if limit.side == "at most":
        return below, float(most.max())
    return (float(least.min()) if limit.side == "at least" else below), above


def _beyond(reach: float) -> float:
    """A limit that a row of this reach is clearly below."""
    return reach + max(1.0, 1e-9 * reach)


def _reach(limit: ConstraintLimit) -> tuple[Floats, Floats]:
    """What each of the rows that are moved is at least and at most, of any ranking."""
    held, n = limit.constraint, limit.admissible.documents
    matrix = csr_array(held.matrix[np.flatnonzero(limit.rows)])
    matrix.sum_duplicates()
    found = []
    for r in range(matrix.shape[0]):
        part = slice(matrix.indptr[r], matrix.indptr[r + 1])
        position, document = np.divmod(matrix.indices[part], n)
        lines = (position, limit.admissible.positions), (document, n)
        found.append([-min(_largest(-matrix.data[part], *line) for line in lines),
                      min(_largest(matrix.data[part], *line) for line in lines)])  # fmt: skip
    least, most = np.array(found).T
    off = row_rounding(matrix, least, most, limit.admissible.positions)
    whole = matrix.copy()
    whole.data = np.abs(matrix.data - np.round(matrix.data))
    off *= whole.sum(axis=1) > 0.0  # sums of whole numbers are exact
    return least - off, most + off


def _largest(weights: Floats, line: Ints, lines: int) -> float:
    """Σ over lines of the largest weight in each, 0 where all are below it."""
    largest = np.zeros(lines)
    np.maximum.at(largest, line, weights)
    return float(largest.sum())


MOST_STATES = 1 << 21
"""Lattices with more states, counted with r, are not gone through."""


@dataclass(frozen=True, eq=False)
class QuotaCurve(CompactReprMixin):
    """best (prefix + 1,): F(r), -inf where no ranking has exactly r of the group in the prefix. slack: differences that
    rounding explains."""

    best: Floats
    slack: float

    @classmethod
    def of(cls, problem: RankTwoAssignment, documents: Any, prefix: int) -> QuotaCurve:
        """The curve of `documents` (a mask, indices or a range) in the first `prefix` positions.

        Raises Unsupported where the gains are so many that the lattice has too many states, or where a document left
        out may be worth more than one placed (a decay below 0 with k < n).
        """
        if not isinstance(problem, RankTwoAssignment):
            raise InvalidProblem(
                f"QuotaCurve is of a ranking by gains and scores, not of a {type(problem).__name__}; state it by "
                "ranking(gain, scores)"
            )
        k, n = problem.positions, problem.documents
        length = whole_number("prefix", prefix)
        if not 1 <= length <= k:
            raise InvalidProblem(f"prefix = {length} is none of the {k} positions; give 1 to {k}")
        if k < n and problem.decay[-1] < 0.0:
            raise Unsupported("a decay below 0 places the worst of a gain, not the best; cut it at 0")
        inside = np.zeros(n, dtype=bool)
        inside[chosen("documents", documents, n)] = True
        lattice = _Lattice(problem, inside)
        states = comb(k + len(lattice.members), k) * (min(length, int(inside.sum())) + 1)
        if states > MOST_STATES:
            raise Unsupported(
                f"{len(lattice.members)} chains of equal gains over {k} positions have {states} states, and up to "
                f"{MOST_STATES} are gone through; ask integrality_gap of the set"
            )
        return cls(frozen(lattice.curve(length)), problem.rounding)

    @property
    def envelope(self) -> Floats:
        """(prefix + 1,) the least concave function above F; -inf before the first and behind the last r there is."""
        there = np.flatnonzero(np.isfinite(self.best))
        hull: list[int] = []
        for r in there.tolist():
            while len(hull) > 1 and self._below(hull[-2], hull[-1], r):
                hull.pop()
            hull.append(r)
        spread = np.full(self.best.size, -np.inf)
        between = np.arange(hull[0], hull[-1] + 1)
        spread[between] = np.interp(between, hull, self.best[hull])
        return spread

    def _below(self, first: int, middle: int, last: int) -> bool:
        rise, run = self.best[last] - self.best[first], last - first
        return bool((self.best[middle] - self.best[first]) * run <= rise * (middle - first))

    @property
    def concave(self) -> bool:
        """Whether no limit on this group and prefix has a gap."""
        return bool((self.envelope <= self.best + self.slack).all())

    def relaxed(self, low: int, high: int) -> float:
        """What the linear program is worth with low <= r <= high; -inf where it is empty."""
        return _most(self.envelope, low, high)

    def whole(self, low: int, high: int) -> float:
        """What the best ranking is worth with low <= r <= high; -inf where there is none."""
        return _most(self.best, low, high)

    def gap(self, low: int, high: int) -> float:
        """By how much the linear program overestimates; 0 to rounding."""
        if not np.isfinite(self.whole(low, high)):
            return float("nan") if not np.isfinite(self.relaxed(low, high)) else float("inf")
        apart = self.relaxed(low, high) - self.whole(low, high)
        return 0.0 if apart <= self.slack else apart


def _most(values: Floats, low: Any, high: Any) -> float:
    """The largest of values[r] with low <= r <= high."""
    for name, limit in (("low", low), ("high", high)):
        if isinstance(limit, bool) or not isinstance(limit, Integral):
            raise InvalidProblem(f"{name} = {limit!r} is no limit on how many of a group; give a whole number")
    return float(values[max(low, 0) : max(high + 1, 0)].max(initial=-np.inf))


class _Lattice:
    """Counts of chains (documents of one gain on one side of the limit, by score), as digits of one whole number."""

    def __init__(self, problem: RankTwoAssignment, inside: np.ndarray[Any, Any]) -> None:
        self.problem = problem
        k = problem.positions
        kinds = np.unique(np.column_stack([problem.gain, inside]), axis=0)
        self.members: list[Ints] = []
        for gain, side in kinds:
            chain = np.flatnonzero((problem.gain == gain) & (inside == side))
            self.members.append(chain[np.argsort(-problem.scores[chain], kind="stable")][:k])
        self.counted = kinds[:, 1] == 1.0
        self.sizes = [chain.size for chain in self.members]
        self.strides = np.concatenate([[1], np.cumprod([size + 1 for size in self.sizes])]).astype(object)
        if int(self.strides[-1]) * (k + 1) >= 2**62:
            raise Unsupported("the counts of so many chains fit no whole number; ask integrality_gap of the set")

    def curve(self, prefix: int) -> Floats:
        code, value = np.zeros(1, dtype=np.int64), np.zeros(1)
        for position in range(self.problem.positions):
            if position == prefix:
                code = code + self._counted(code) * int(self.strides[-1])
            code, value = self._step(code, value, position)
        if prefix == self.problem.positions:
            code = code + self._counted(code) * int(self.strides[-1])
        best = np.full(prefix + 1, -np.inf)
        np.maximum.at(best, code // int(self.strides[-1]), value)
        return best

    def _count(self, code: Ints, chain: int) -> Ints:
        return np.asarray(code // int(self.strides[chain]) % (self.sizes[chain] + 1))

    def _counted(self, code: Ints) -> Ints:
        """How many of the group are among those placed."""
        return np.asarray(sum(self._count(code, h) for h in np.flatnonzero(self.counted).tolist()) + 0 * code)

    def _step(self, code: Ints, value: Floats, position: int) -> tuple[Ints, Floats]:
        """The states with one document more, each with the best value that leads to it."""
        c, a = self.problem.decay[position], self.problem.discount[position]
        codes, values = [], []
        for chain, members in enumerate(self.members):
            count = self._count(code, chain)
            room = count < members.size
            document = members[count[room]]
            codes.append(code[room] + int(self.strides[chain]))
            values.append(value[room] + (c * self.problem.scores[document] - a * self.problem.gain[document]))
        every, worth = np.concatenate(codes), np.concatenate(values)
        by_code = np.argsort(every, kind="stable")
        starts = np.flatnonzero(np.diff(every[by_code], prepend=-1))
        return every[by_code][starts], np.maximum.reduceat(worth[by_code], starts)
