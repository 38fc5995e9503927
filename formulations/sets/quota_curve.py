"""What one limit on a prefix does to a loss-augmented ranking: F(r), the best with exactly r of a group in the prefix.

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

from dataclasses import dataclass
from math import comb
from numbers import Integral
from typing import Any

import numpy as np

from formulations.arrays import Floats, Ints, frozen
from formulations.brevity import CompactReprMixin
from formulations.errors import InvalidProblem, Unsupported
from formulations.forms.rank_two_assignment import RankTwoAssignment
from formulations.sets.cells import chosen, whole_number

__all__ = ["QuotaCurve"]

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
