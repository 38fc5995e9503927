"""Two questions about quotas: the Pareto front of two limits, and the best value by count of a group in a prefix.

**Pareto front.** The best value at every pair of limits of two constraints, and the pairs that no other dominates: none
is at least as tight in both limits, worth as much, and better in one of the three.

>>> from formulations import RankingSet, constrained_ranking
>>> both = RankingSet(5, 3).at_most(3, documents=[0, 1], name="old").at_least(0, documents=[3, 4], name="new")
>>> problem = constrained_ranking(np.outer([3.0, 2.0, 1.0], [5.0, 4.0, 3.0, 2.0, 1.0]), both)
>>> print(pareto_front(problem, ("old", range(1, 3)), ("new", range(0, 3))))
old at most  new at least  value
          2             0     26
          2             1     25
          1             1     23
          1             2     20

**Quota curve.** F(r): the best loss-augmented ranking with exactly r documents of a group in the first p positions.
Rankings are the vertices of the assignment polytope, and a limit l <= r <= u cuts its image in the plane (r, value). So
the linear program is worth the maximum, between l and u, of the concave envelope of F. It has a gap exactly where that
is above the maximum of F, and never where F is concave.

Documents of equal gain on one side of the limit stay in order of score, so F is a longest path over the counts of each
such chain: C(k + H, H) states at most for H chains and k positions.

>>> from formulations import ranking
>>> problem = ranking([3, 0, 1, 2], [2, 0, 1, 3], discount=[5, 2, 2], position_weights=[4, 4, 3])
>>> curve = LimitValueFunction.from_problem(problem, [0, 1], 2)
>>> curve.best, curve.concave
(array([6., 7., 9.]), False)
>>> curve.relaxed(0, 1), curve.integral(0, 1)
(7.5, 7.0)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from math import comb
from typing import Any

import numpy as np

from formulations.arrays import Floats, Ints, as_integer, frozen, to_integer
from formulations.constraints.constrained_ranking import ConstrainedRanking
from formulations.constraints.constraint import chosen
from formulations.constraints.ranking_set import RankingSet
from formulations.display import Axes, CompactReprMixin, aligned, axes_for, tick_each
from formulations.errors import InfeasibleError, InvalidProblemError, UnsupportedProblemError
from formulations.problems.ranking import RankTwoAssignment
from formulations.solvers.solver import Solver
from formulations.solving.sensitivity import MAX_POINTS, Side, limit_of, limit_range, read_limits
from formulations.solving.solve import solve

Quota = tuple[str, Iterable[float]]

MAX_STATES = 1 << 21  # largest number of states of the longest path in `LimitValueFunction.from_problem`


@dataclass(frozen=True, eq=False)
class ParetoFront(CompactReprMixin):
    """names: of the two constraints, with their sides. first (a,), second (b,): their limits. value (a, b): of the best
    ranking, NaN if there is none; bound: proved for it."""

    names: tuple[str, str]
    first: Floats
    second: Floats
    value: Floats
    bound: Floats

    @property
    def points(self) -> list[tuple[float, float, float]]:
        """(first limit, second limit, value) of the nondominated pairs, in descending order of value."""
        signs = [1.0 if name.endswith("at least") else -1.0 for name in self.names]
        points = [
            (self.first[i], self.second[j], self.value[i, j])
            for i, j in product(range(self.first.size), range(self.second.size))
            if not np.isnan(self.value[i, j])
        ]
        table = np.array(points).reshape(-1, 3) * [*signs, 1.0]
        slack = np.array([0.0, 0.0, 1e-9 * np.abs(table[:, 2]).max(initial=0.0)])
        selected = []
        for at, point in enumerate(table):
            as_good = (table >= point - slack).all(axis=1)
            if not (as_good & (table > point + slack).any(axis=1)).any():
                selected.append(points[at])
        return sorted(selected, key=lambda point: (-point[2], -point[0], -point[1]))

    def plot(self, axes: Axes | None = None) -> Axes:
        """The best value against the first limit, one line per second limit; nondominated pairs are filled."""
        axes = axes_for(axes)
        for j, limit in enumerate(self.second.tolist()):
            if np.isfinite(self.value[:, j]).any():
                (line,) = axes.plot(self.first, self.value[:, j], "-o", markerfacecolor="none", label=f"{limit:g}")
                points_ = [(x, value) for x, y, value in self.points if y == limit]
                if points_:
                    axes.plot(*zip(*points_, strict=True), "o", color=line.get_color())
        axes.set(xlabel=self.names[0], ylabel="value")
        tick_each(axes, self.first)
        if axes.get_legend_handles_labels()[1]:
            axes.legend(frameon=False, title=self.names[1])
        return axes

    def __str__(self) -> str:
        cells = [[*self.names, "value"], *([f"{x:g}", f"{y:g}", f"{value:.6g}"] for x, y, value in self.points)]
        return "\n".join(aligned(cells))


def pareto_front(
    problem: ConstrainedRanking,
    first: Quota,
    second: Quota,
    *,
    sides: tuple[Side | None, Side | None] = (None, None),
    solver: Solver | str = "auto",
) -> ParetoFront:
    """The best values at every pair of limits of two constraints, each (name, limits) as in `sensitivity`.

    An upper limit is tighter if smaller, a lower limit if larger. sides: "at most" or "at least" for each, if a
    constraint has both limits. Raises InvalidProblemError for an unknown name, for a constraint with two limits and no
    side, for one constraint named twice, and for more than 10,000 pairs.
    """
    if not isinstance(problem, ConstrainedRanking):
        raise InvalidProblemError(
            f"pareto_front() needs a problem of constrained_ranking(); got a {type(problem).__name__}."
        )
    for quota in (first, second):
        if not (isinstance(quota, tuple | list) and len(quota) == 2):
            raise InvalidProblemError(
                f"a quota must be the name and the limits of a constraint, such as ('site', range(5)); got {quota!r}."
            )
    if not (isinstance(sides, tuple | list) and len(sides) == 2):
        raise InvalidProblemError(f"sides = {sides!r} are not two; give the side of each quota: ('at most', None)")
    names = [limit_of(problem.admissible, name, side) for (name, _), side in zip((first, second), sides, strict=True)]
    if names[0].constraint is names[1].constraint and (names[0].rows & names[1].rows).any():
        raise InvalidProblemError(f"{first[0]!r} and {second[0]!r} are the same limit; use sensitivity() for one.")
    if "exactly" in {one.side for one in names}:
        raise InvalidProblemError("of 'exactly' no side is the tighter one; state the quota as at_most or at_least")
    grids = [read_limits(limits) for _, limits in (first, second)]
    if grids[0].size * grids[1].size > MAX_POINTS:
        raise InvalidProblemError(
            f"{grids[0].size} × {grids[1].size} pairs of limits are more than {MAX_POINTS}; give shorter ranges, or a "
            "step: range(0, 1000, 10)"
        )
    for limit, grid in zip(names, grids, strict=True):
        for one in grid.tolist():
            limit.check(one)
    outer, inner = (np.clip(grid, *limit_range(limit)).tolist() for limit, grid in zip(names, grids, strict=True))
    points: dict[tuple[float, float], tuple[float, float]] = {}
    for x in dict.fromkeys(outer):
        held = limit_of(names[0].at(x), second[0], names[1].side)
        points |= {(x, y): _best(problem, held.at(y), solver) for y in dict.fromkeys(inner)}
    found = np.array([[points[x, y] for y in inner] for x in outer])
    labels = (f"{first[0]} {names[0].title}", f"{second[0]} {names[1].title}")
    return ParetoFront(labels, *map(frozen, (*grids, found[..., 0].copy(), found[..., 1].copy())))


def _best(problem: ConstrainedRanking, admissible: RankingSet, solver: Solver | str) -> tuple[float, float]:
    """Value and bound of the problem over another set, NaN where it is empty."""
    try:
        solution = solve(replace(problem, admissible=admissible, ranked=None), solver)
    except InfeasibleError:
        return np.nan, np.nan
    return solution.value, solution.bound


@dataclass(frozen=True, eq=False)
class LimitValueFunction(CompactReprMixin):
    """best (prefix + 1,): F(r), -inf if no ranking has exactly r of the group in the prefix. slack: rounding error of
    differences."""

    best: Floats
    slack: float

    @classmethod
    def from_problem(cls, problem: RankTwoAssignment, documents: Any, prefix: int) -> LimitValueFunction:
        """The curve of `documents` (a mask, indices or a range) in the first `prefix` positions.

        Raises UnsupportedProblemError if the lattice has too many states (too many distinct gains), or if an unranked
        document may be better than a ranked one (a negative position weight with k < n).
        """
        if not isinstance(problem, RankTwoAssignment):
            raise InvalidProblemError(
                f"LimitValueFunction needs a problem of ranking(scores, gain, ...); got a {type(problem).__name__}."
            )
        k, n = problem.positions, problem.documents
        length = as_integer("prefix", prefix)
        if not 1 <= length <= k:
            raise InvalidProblemError(f"prefix must be from 1 to {k}; got {length}.")
        if k < n and problem.position_weights[-1] < 0.0:
            raise UnsupportedProblemError("position_weights must be nonnegative; clip negative entries to 0")
        inside = np.zeros(n, dtype=bool)
        inside[chosen("documents", documents, n)] = True
        lattice = _Lattice(problem, inside)
        states = comb(k + len(lattice.members), k) * (min(length, int(inside.sum())) + 1)
        if states > MAX_STATES:
            raise UnsupportedProblemError(
                f"LimitValueFunction takes at most {MAX_STATES} states; {len(lattice.members)} chains of equal gains "
                f"over {k} positions have {states}. Use integrality_gap()."
            )
        return cls(frozen(lattice.curve(length)), problem.rounding)

    @property
    def envelope(self) -> Floats:
        """(prefix + 1,) the least concave function above F; -inf before the first and after the last feasible r."""
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
        """The optimum of the linear program with low <= r <= high; -inf if it is infeasible."""
        return _most(self.envelope, low, high)

    def integral(self, low: int, high: int) -> float:
        """The value of the best ranking with low <= r <= high; -inf if there is none."""
        return _most(self.best, low, high)

    def gap(self, low: int, high: int) -> float:
        """The overestimate of the linear program; 0 up to rounding."""
        if not np.isfinite(self.integral(low, high)):
            return float("nan") if not np.isfinite(self.relaxed(low, high)) else float("inf")
        apart = self.relaxed(low, high) - self.integral(low, high)
        return 0.0 if apart <= self.slack else apart


def _most(values: Floats, low: Any, high: Any) -> float:
    """The largest of values[r] with low <= r <= high."""
    for name, limit in (("low", low), ("high", high)):
        if to_integer(limit) is None:
            raise InvalidProblemError(f"{name} must be an integer limit on the documents of a group; got {limit!r}.")
    low, high = int(low), int(high)
    return float(values[max(low, 0) : max(high + 1, 0)].max(initial=-np.inf))


class _Lattice:
    """Counts of chains (documents of one gain on one side of the limit, by score), as digits of one integer."""

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
            raise UnsupportedProblemError("the counts of so many chains overflow; use integrality_gap of the set")

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
        """The number of group members among the ranked documents."""
        return np.asarray(sum(self._count(code, h) for h in np.flatnonzero(self.counted).tolist()) + 0 * code)

    def _step(self, code: Ints, value: Floats, position: int) -> tuple[Ints, Floats]:
        """The states with one more document, each with the best value that leads to it."""
        c, a = self.problem.position_weights[position], self.problem.discount[position]
        codes, values = [], []
        for chain, members in enumerate(self.members):
            count = self._count(code, chain)
            available = count < members.size
            document = members[count[available]]
            codes.append(code[available] + int(self.strides[chain]))
            values.append(value[available] + (c * self.problem.scores[document] - a * self.problem.gain[document]))
        every, worth = np.concatenate(codes), np.concatenate(values)
        by_code = np.argsort(every, kind="stable")
        starts = np.flatnonzero(np.diff(every[by_code], prepend=-1))
        return every[by_code][starts], np.maximum.reduceat(worth[by_code], starts)
