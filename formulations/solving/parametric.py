"""What a quota costs: the best ranking's value against the limit of a constraint, with a proven price at each point.

At the limit l let y be prices of the linear program. By weak duality no ranking under the limit l' is worth more than

    relaxed(l) + price(l) · (l' - l)      relaxed: what y proves at l; price: the sum of y over the constraint's rows

so each point proves a line above the whole curve. Of several prices that prove the same bound the one towards looser
limits is taken: what the next unit gains at most. Where the program is not whole, `relaxed` lies above the best value.
Limits that admit the same rankings (`limit_range`) are one problem; where the constraint cannot bind, its price is 0.

>>> site = RankingSet(4, 3).at_most(2, documents=[0, 1, 2], name="site")
>>> problem = constrained_ranking(np.outer([3.0, 2.0, 1.0], [5.0, 4.0, 3.0, 1.0]), site)
>>> print(price_of(problem, "site", range(1, 4)))
site at most  value  price  whole
           1  empty
           2     24      2    yes
           3     26      0    yes

What a quota costs, as a curve of values and prices against the limit: of one problem, or of several.

Two quotas at once: the best value at every pair of limits, and the pairs that none beats in all three.

A pair is beaten by another that is at least as tight on both sides, leaves a ranking worth as much, and is better in
one of the three.

>>> from formulations import RankingSet, constrained_ranking
>>> both = RankingSet(5, 3).at_most(3, documents=[0, 1], name="old").at_least(0, documents=[3, 4], name="new")
>>> problem = constrained_ranking(np.outer([3.0, 2.0, 1.0], [5.0, 4.0, 3.0, 2.0, 1.0]), both)
>>> print(pareto(problem, ("old", range(1, 3)), ("new", range(0, 3))))
old at most  new at least  value
          2             0     26
          2             1     25
          1             1     23
          1             2     20
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Bools, Floats, frozen
from formulations.constraints.constrained_ranking import ConstrainedRanking
from formulations.constraints.duals import relaxation_prices
from formulations.constraints.parametric import MOST as MOST_PARETO
from formulations.constraints.parametric import ConstraintLimit, Side, limit_of, limit_range, swept
from formulations.constraints.ranking_set import RankingSet
from formulations.display import CompactReprMixin, axes_for, curves, data_frame, paragraph, table, tick_each, view
from formulations.errors import Infeasible, InvalidProblem
from formulations.gallery.assignments import constrained_ranking
from formulations.solvers.solver import Solver
from formulations.solving.solve import solve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 10
"""Limits that a sentence names."""

HEAD = ["mean", "spread", "lost", "spread of it", "price", "whole", "empty"]


@dataclass(frozen=True, eq=False)
class PriceCurve(CompactReprMixin):
    """limits (m,); value: of the best ranking at each, NaN where there is none; bound: proven for it; relaxed: what the
    linear program is worth; price: the sum of the constraint's prices, per unit of the limit; whole: whether the
    program's optimum is a ranking, to 1e-7 of the largest profit. name: of the constraint, with its side."""

    name: str
    limits: Floats
    value: Floats
    bound: Floats
    relaxed: Floats
    price: Floats
    whole: Bools

    @property
    def empty(self) -> Bools:
        """At which limits no ranking is left."""
        return np.isnan(self.value)

    def above(self, limit: ArrayLike) -> Floats:
        """What the prices of all points prove that no ranking under this limit is worth more than; inf where no point
        has a ranking, for then nothing is proved."""
        at = np.asarray(limit, dtype=np.float64)
        held = ~self.empty
        lines = self.relaxed[held] + self.price[held] * (at[..., None] - self.limits[held])
        return np.asarray(lines.min(axis=-1, initial=np.inf))

    def to_frame(self) -> Any:
        """A pandas data frame, a row a limit; FormulationError where pandas is missing."""
        names = ["limits", "value", "bound", "relaxed", "price", "whole"]
        return data_frame({name.removesuffix("s"): getattr(self, name) for name in names})

    def plot(self, axes: Axes | None = None) -> Axes:
        """The best value against the limit, and the linear program's above it; a gap where there is no ranking."""
        axes = axes_for(axes)
        axes.plot(self.limits, np.where(self.empty, np.nan, self.relaxed), "--s", markersize=4, label="linear program")
        axes.plot(self.limits, self.value, "-o", markersize=4, label="best ranking")
        axes.set(xlabel=self.name, ylabel="value")
        tick_each(axes, self.limits)
        axes.legend(frameon=False)
        return axes

    def _repr_html_(self) -> str:
        rows = [[f"{limit:g}", *row] for limit, row in zip(self.limits, self._cells, strict=True)]
        drawn = curves({"best ranking": self.value, "linear program": self.relaxed}, self.name)
        return view(
            "What a limit costs", {}, table([self.name, "value", "price", "whole"], rows, most=len(rows)), drawn
        )

    @property
    def _cells(self) -> list[list[str]]:
        columns = zip(self.empty, self.value, self.price, self.whole, strict=True)
        return [
            ["empty", "", ""] if nothing else [f"{value:.6g}", f"{price + 0.0:.4g}", "yes" if whole else "no"]
            for nothing, value, price, whole in columns
        ]

    def __str__(self) -> str:
        return _table(self.name, self.limits, ["value", "price", "whole"], self._cells)


@dataclass(frozen=True, eq=False)
class PriceCurves(CompactReprMixin):
    """The curves of several problems (queries) at the same limits. mean, spread: of the values over the problems that
    have a ranking at every limit, `shared` in number; spread is their standard deviation. price: their mean price;
    whole, empty: of all problems, in how many the program is whole, and how many have no ranking."""

    curves: tuple[PriceCurve, ...]

    @property
    def limits(self) -> Floats:
        return self.curves[0].limits

    @property
    def name(self) -> str:
        return self.curves[0].name

    def _kept(self, field: str) -> Floats:
        kept = [getattr(one, field) for one in self.curves if not one.empty.any()]
        return np.array(kept, dtype=np.float64).reshape(len(kept), self.limits.size)

    @property
    def shared(self) -> int:
        return len(self._kept("value"))

    @property
    def unshared(self) -> str:
        """Why there is no mean, and the cure, where no problem has a ranking at every limit; else ""."""
        if self.shared:
            return ""
        empty = np.array([one.empty for one in self.curves])
        if empty.all():
            return "No problem has a ranking at any limit, so there is no mean: loosen what else they require."
        drop = empty[int(np.argmin(empty.sum(axis=1)))]  # of a problem that has fewest, so that it is left
        left = int((~empty[:, ~drop].any(axis=1)).sum())
        named = list(dict.fromkeys(f"{limit:g}" for limit in self.limits[drop]))
        more = f" and {len(named) - MOST} more" if len(named) > MOST else ""
        none = ", at which none has one" if empty[:, drop].all() else ""
        return (
            f"No problem has a ranking at every limit, so there is no mean. Drop "
            f"{'limit' if len(named) == 1 else 'limits'} {', '.join(named[:MOST])}"
            f"{more}{none}: then {left} of {len(empty)} {'has' if left == 1 else 'have'} one at every limit."
        )

    @property
    def mean(self) -> Floats:
        values = self._kept("value")
        return values.mean(axis=0) if len(values) else np.full(self.limits.size, np.nan)

    @property
    def spread(self) -> Floats:
        values = self._kept("value")
        return values.std(axis=0, ddof=1) if len(values) > 1 else np.full(self.limits.size, np.nan)

    @property
    def lost(self) -> tuple[Floats, Floats]:
        """Mean and spread of what each problem loses against the best of its own curve."""
        values = self._kept("value")
        if len(values) < 2:
            return np.full(self.limits.size, np.nan), np.full(self.limits.size, np.nan)
        off = values.max(axis=1, keepdims=True) - values
        return off.mean(axis=0), off.std(axis=0, ddof=1)

    @property
    def price(self) -> Floats:
        prices = self._kept("price")
        return prices.mean(axis=0) if len(prices) else np.full(self.limits.size, np.nan)

    @property
    def whole(self) -> Floats:
        return np.asarray(np.sum([one.whole & ~one.empty for one in self.curves], axis=0, dtype=np.float64))

    @property
    def empty(self) -> Floats:
        return np.asarray(np.sum([one.empty for one in self.curves], axis=0, dtype=np.float64))

    def to_frame(self) -> Any:
        """A pandas data frame, a row a limit; FormulationError where pandas is missing."""
        lost, off = self.lost
        columns = {"limit": self.limits, "mean": self.mean, "spread": self.spread, "lost": lost, "spread of it": off}
        return data_frame({**columns, "price": self.price, "whole": self.whole, "empty": self.empty})

    def plot(self, axes: Axes | None = None) -> Axes:
        """What is lost on average against the loosest limit, with the spread over the problems as a band."""
        axes = axes_for(axes)
        lost, off = self.lost
        (line,) = axes.plot(self.limits, lost, "-o", markersize=4, label=f"mean of {self.shared}")
        axes.fill_between(self.limits, np.maximum(lost - off, 0.0), lost + off, color=line.get_color(), alpha=0.2,
                          linewidth=0, label="spread")  # fmt: skip
        axes.set(xlabel=self.name, ylabel="lost of the best value")
        tick_each(axes, self.limits)
        axes.legend(frameon=False)
        return axes

    def _repr_html_(self) -> str:
        facts = {"problems": len(self.curves), "with a ranking at every limit": self.shared}
        rows = [[f"{limit:g}", *row] for limit, row in zip(self.limits, self._cells, strict=True)]
        drawn = curves({"lost": self.lost[0]}, self.name)
        below = [paragraph(self.unshared)] if self.unshared else []
        return view("What a limit costs", facts, table([self.name, *HEAD], rows, most=len(rows)), *below, drawn)

    @property
    def _cells(self) -> list[list[str]]:
        there = len(self.curves) - self.empty
        columns = zip(self.mean, self.spread, *self.lost, self.price, self.whole, there, self.empty, strict=True)
        return [
            [f"{mean:.5g}", f"{spread:.3g}", f"{lost:.4g}", f"{off:.3g}", f"{price + 0.0:.4g}", f"{whole:.0f}/{of:.0f}",
             f"{none:.0f}"]
            for mean, spread, lost, off, price, whole, of, none in columns
        ]  # fmt: skip

    def __str__(self) -> str:
        shown = _table(self.name, self.limits, HEAD, self._cells)
        return f"{shown}\n{self.unshared}" if self.unshared else shown


def _table(name: str, limits: Floats, head: list[str], rows: list[list[str]]) -> str:
    cells = [[name, *head], *([f"{limit:g}", *row] for limit, row in zip(limits, rows, strict=True))]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = ("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "\n".join(line.rstrip() for line in lines)


NEAR = 1e-7
"""How far, of the largest profit, the program may lie above a ranking that counts as its optimum: solvers of linear
programs end that near."""


@overload
def price_of(
    problem: ConstrainedRanking | RankingSet,
    constraint: str,
    limits: Iterable[float],
    *,
    profit: ArrayLike | None = None,
    side: Side | None = None,
    solver: Solver | str = "auto",
) -> PriceCurve: ...
@overload
def price_of(
    problem: Sequence[ConstrainedRanking],
    constraint: str,
    limits: Iterable[float],
    *,
    profit: ArrayLike | None = None,
    side: Side | None = None,
    solver: Solver | str = "auto",
) -> PriceCurves: ...
def price_of(
    problem: ConstrainedRanking | RankingSet | Sequence[ConstrainedRanking],
    constraint: str,
    limits: Iterable[float],
    *,
    profit: ArrayLike | None = None,
    side: Side | None = None,
    solver: Solver | str = "auto",
) -> PriceCurve | PriceCurves:
    """The curve of the best value against the limit of a constraint.

    Args:
        problem: one of `constrained_ranking`; a set, with its profit (it may be
            empty as it stands); or a sequence of problems (one a query) whose sets have
            constraints of this name, which gives mean and spread.
        constraint: the name of a constraint, all of whose rows get the limit, or of one row, such as "site['a.org']".
        limits: the limits to try, 10,000 at most.
        side: "at most", "at least" or "exactly"; needed where the constraint has limits on both sides.
        solver: of each point.

    Raises:
        InvalidProblem: no constraint has this name, or has no limits; a set without a profit; no limits, or too many.
        Infeasible: a set that holds no ranking at any of the limits, nor as it stands.
        SolverFailed, Unsupported: as `solve` does. A limit that leaves no ranking is a point that says so.
    """
    asked = swept(limits)
    if isinstance(problem, RankingSet):
        if profit is None:
            raise InvalidProblem("a set alone has no values; give profit=, (k, n), or a problem of ranking_set")
        problem = _posed(profit, problem, constraint, asked, side)
    if isinstance(problem, ConstrainedRanking):
        return _curve(problem, constraint, asked, side, solver)
    every = tuple(problem)
    if not every or not all(isinstance(one, ConstrainedRanking) for one in every):
        raise InvalidProblem("price_of takes problems of ranking_set, one at least; give each set its profit there")
    return PriceCurves(tuple(_curve(one, constraint, asked, side, solver) for one in every))


def _posed(
    profit: ArrayLike, admissible: RankingSet, name: str, limits: Floats, side: str | None
) -> ConstrainedRanking:
    """The problem of a set, at the first of the limits that leaves a ranking if it holds none as it stands."""
    try:
        return constrained_ranking(profit, admissible)
    except Infeasible:
        limit = _checked(admissible, name, limits, side)
        for one in dict.fromkeys(np.clip(limits, *limit_range(limit)).tolist()):
            with suppress(Infeasible):
                return constrained_ranking(profit, limit.at(one))
        raise


def _curve(
    problem: ConstrainedRanking, name: str, limits: Floats, side: str | None, solver: Solver | str
) -> PriceCurve:
    limit = _checked(problem.admissible, name, limits, side)
    low, high = limit_range(limit)
    differing = np.clip(limits, low, high)
    points = {one: _point(problem, limit, one, solver) for one in dict.fromkeys(differing.tolist())}
    value, bound, relaxed, price, whole = np.array([points[one] for one in differing.tolist()]).T.copy()
    loose = limits >= high if limit.side == "at most" else (limits <= low) & (limit.side == "at least")
    price[loose & ~np.isnan(value)] = 0.0  # `relaxed` bounds the rankings under any limit
    arrays = map(frozen, (limits.copy(), value, bound, relaxed, price, whole == 1.0))
    return PriceCurve(f"{name} {limit.side}", *arrays)


def _checked(admissible: RankingSet, name: str, limits: Floats, side: str | None) -> ConstraintLimit:
    """The limit of this name; InvalidProblem if one of those asked for is beyond its limit on the other side."""
    limit = limit_of(admissible, name, side)
    for one in limits.tolist():
        limit.check(one)
    return limit


def _point(problem: ConstrainedRanking, limit: ConstraintLimit, at: float, solver: Solver | str) -> tuple[float, ...]:
    """Value, bound, relaxed value, price and whether the program is whole at one limit."""
    try:
        moved = replace(problem, admissible=limit.at(at), ranked=None)
    except Infeasible:
        return (np.nan, np.nan, np.nan, np.nan, 0.0)
    solution = solve(moved, solver)
    known = [solution.y] if solution.y is not None and solution.y.ndim == 1 else []
    found = relaxation_prices(moved.compiled, moved.worth)
    prices = [*known, *([] if found is None else [found])]
    bounds = [moved.bound(y) for y in prices]
    relaxed = min(bounds, default=np.inf)
    slack = NEAR * float(np.abs(moved.profit).max())  # of what rankings are worth: soft rows may cost far more
    towards = 0.0 if limit.side == "exactly" else 0.5 if limit.side == "at most" else -0.5
    looser = replace(moved, admissible=limit.at(at + towards))
    next_ = relaxation_prices(looser.compiled, looser.worth) if towards else None
    # The same prices bound what is worth at `at`: their bound is linear in the limit.
    price = np.nan if next_ is None else _sum(looser, limit, next_)
    shown = np.inf if next_ is None else looser.bound(next_) - price * towards  # what these prices prove here
    if not shown <= relaxed + slack:
        shown, price = relaxed, _sum(moved, limit, prices[int(np.argmin(bounds))]) if prices else np.nan
    return (solution.value, solution.bound, shown, price, float(relaxed - solution.value <= slack))


def _sum(problem: ConstrainedRanking, limit: ConstraintLimit, y: Floats) -> float:
    """The prices of the rows that are moved."""
    held = problem.named_dual(y)[limit.constraint.name].ravel()
    return float(held[limit.rows].sum())


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
    if grids[0].size * grids[1].size > MOST_PARETO:
        raise InvalidProblem(
            f"{grids[0].size} × {grids[1].size} pairs of limits are more than {MOST_PARETO}; give shorter ranges, or a "
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
    said = (f"{first[0]} {names[0].side}", f"{second[0]} {names[1].side}")
    return Pareto(said, *map(frozen, (*grids, found[..., 0].copy(), found[..., 1].copy())))


def _best(problem: ConstrainedRanking, admissible: RankingSet, solver: Solver | str) -> tuple[float, float]:
    """Value and bound of the problem over another set, NaN where it is empty."""
    try:
        solution = solve(replace(problem, admissible=admissible, ranked=None), solver)
    except Infeasible:
        return np.nan, np.nan
    return solution.value, solution.bound
