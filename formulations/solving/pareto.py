"""Two quotas at once: the best value at every pair of limits, and the pairs that none beats in all three.

A pair is beaten by another that is at least as tight on both sides, leaves a ranking worth as much, and is better in
one of the three.

>>> from formulations import RankingSet, ranking_set
>>> both = RankingSet(5, 3).at_most(3, documents=[0, 1], name="old").at_least(0, documents=[3, 4], name="new")
>>> problem = ranking_set(np.outer([3.0, 2.0, 1.0], [5.0, 4.0, 3.0, 2.0, 1.0]), both)
>>> print(pareto(problem, ("old", range(1, 3)), ("new", range(0, 3))))
old at most  new at least  value
          2             0     26
          2             1     25
          1             1     23
          1             2     20
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from formulations.arrays import Floats, frozen
from formulations.brevity import CompactReprMixin
from formulations.errors import Infeasible, InvalidProblem
from formulations.notebook_view import table, view
from formulations.sets.constrained_ranking import ConstrainedRanking
from formulations.sets.limit_range import limit_range
from formulations.sets.limits import MOST, Side, limit_of, swept
from formulations.sets.ranking_set import RankingSet
from formulations.solvers.solver import Solver
from formulations.solving.solve import solve
from formulations.views import axes_for, data_frame, tick_each

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Pareto", "pareto"]

Quota = tuple[str, Iterable[float]]


@dataclass(frozen=True, eq=False)
class Pareto(CompactReprMixin):
    """names: of the two constraints, with their sides. first (a,), second (b,): their limits. value (a, b): the best
    ranking's, NaN where there is none; bound: proven for it."""

    names: tuple[str, str]
    first: Floats
    second: Floats
    value: Floats
    bound: Floats

    @property
    def front(self) -> list[tuple[float, float, float]]:
        """(first limit, second limit, value) that none beats, the value falling."""
        signs = [1.0 if name.endswith("at least") else -1.0 for name in self.names]
        points = [
            (self.first[i], self.second[j], self.value[i, j])
            for i, j in product(range(self.first.size), range(self.second.size))
            if not np.isnan(self.value[i, j])
        ]
        table = np.array(points).reshape(-1, 3) * [*signs, 1.0]
        slack = np.array([0.0, 0.0, 1e-9 * np.abs(table[:, 2]).max(initial=0.0)])
        kept = []
        for at, point in enumerate(table):
            as_good = (table >= point - slack).all(axis=1)
            if not (as_good & (table > point + slack).any(axis=1)).any():
                kept.append(points[at])
        return sorted(kept, key=lambda point: (-point[2], -point[0], -point[1]))

    def to_frame(self) -> Any:
        """A pandas data frame, a row a pair of limits, `front` saying whether none beats it; FormulationError where
        pandas is missing."""
        first, second = np.meshgrid(self.first, self.second, indexing="ij")
        best = {(x, y) for x, y, _ in self.front}
        front = [pair in best for pair in zip(first.ravel().tolist(), second.ravel().tolist(), strict=True)]
        columns = {self.names[0]: first.ravel(), self.names[1]: second.ravel()}
        return data_frame({**columns, "value": self.value.ravel(), "bound": self.bound.ravel(), "front": front})

    def plot(self, axes: Axes | None = None) -> Axes:
        """The best value against the first limit, a line for each second; pairs that none beats are filled."""
        axes = axes_for(axes)
        for j, limit in enumerate(self.second.tolist()):
            if np.isfinite(self.value[:, j]).any():
                (line,) = axes.plot(self.first, self.value[:, j], "-o", markerfacecolor="none", label=f"{limit:g}")
                kept = [(x, value) for x, y, value in self.front if y == limit]
                if kept:
                    axes.plot(*zip(*kept, strict=True), "o", color=line.get_color())
        axes.set(xlabel=self.names[0], ylabel="value")
        tick_each(axes, self.first)
        if axes.get_legend_handles_labels()[1]:
            axes.legend(frameon=False, title=self.names[1])
        return axes

    def _repr_html_(self) -> str:
        rows = [[f"{x:g}", f"{y:g}", f"{value:.6g}"] for x, y, value in self.front]
        facts = {"pairs": self.value.size, "without a ranking": int(np.isnan(self.value).sum())}
        return view("Pairs of limits that none beats", facts, table([*self.names, "value"], rows, most=len(rows)))

    def __str__(self) -> str:
        cells = [[*self.names, "value"], *([f"{x:g}", f"{y:g}", f"{value:.6g}"] for x, y, value in self.front)]
        widths = [max(len(row[i]) for row in cells) for i in range(3)]
        return "\n".join("  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in cells)


def pareto(
    problem: ConstrainedRanking,
    first: Quota,
    second: Quota,
    *,
    sides: tuple[Side | None, Side | None] = (None, None),
    solver: Solver | str = "auto",
) -> Pareto:
    """The best values at every pair of limits of two constraints, each (name, limits) as `price_of` takes them.

    A quota from above is tight where it is small, one from below where it is large. sides: which side of each is meant,
    "at most" or "at least", where a constraint has limits on both. Raises InvalidProblem for a name that no constraint
    has, for a constraint with limits on both sides and no side named, for one constraint named twice, and for more than
    10,000 pairs.
    """
    if not isinstance(problem, ConstrainedRanking):
        raise InvalidProblem(f"pareto takes a problem of ranking_set, not a {type(problem).__name__}; give it a profit")
    for quota in (first, second):
        if not (isinstance(quota, tuple | list) and len(quota) == 2):
            raise InvalidProblem(f"{quota!r} is no quota; give name and limits of a constraint: ('site', range(5))")
    if not (isinstance(sides, tuple | list) and len(sides) == 2):
        raise InvalidProblem(f"sides = {sides!r} are not two; give the side of each quota: ('at most', None)")
    names = [limit_of(problem.admissible, name, side) for (name, _), side in zip((first, second), sides, strict=True)]
    if names[0].constraint is names[1].constraint and (names[0].rows & names[1].rows).any():
        raise InvalidProblem(f"{first[0]!r} and {second[0]!r} are the same limit; sweep one constraint by price_of")
    if "exactly" in {one.side for one in names}:
        raise InvalidProblem("of 'exactly' no side is the tighter one; state the quota as at_most or at_least")
    grids = [swept(limits) for _, limits in (first, second)]
    if grids[0].size * grids[1].size > MOST:
        raise InvalidProblem(
            f"{grids[0].size} × {grids[1].size} pairs of limits are more than {MOST}; give shorter ranges, or a step: "
            "range(0, 1000, 10)"
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
    said = (f"{first[0]} {names[0].side}", f"{second[0]} {names[1].side}")
    return Pareto(said, *map(frozen, (*grids, found[..., 0].copy(), found[..., 1].copy())))


def _best(problem: ConstrainedRanking, admissible: RankingSet, solver: Solver | str) -> tuple[float, float]:
    """Value and bound of the problem over another set, NaN where it is empty."""
    try:
        solution = solve(replace(problem, admissible=admissible, ranked=None), solver)
    except Infeasible:
        return np.nan, np.nan
    return solution.value, solution.bound
