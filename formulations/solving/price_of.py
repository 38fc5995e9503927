"""What a quota costs: the best ranking's value against the limit of a constraint, with a proven price at each point.

At the limit l let y be prices of the linear program. By weak duality no ranking under the limit l' is worth more than

    relaxed(l) + price(l) · (l' - l)      relaxed: what y proves at l; price: the sum of y over the constraint's rows

so each point proves a line above the whole curve. Of several prices that prove the same bound the one towards looser
limits is taken: what the next unit gains at most. Where the program is not whole, `relaxed` lies above the best value.
Limits that admit the same rankings (`limit_range`) are one problem; where the constraint cannot bind, its price is 0.

>>> site = RankingSet(4, 3).at_most(2, documents=[0, 1, 2], name="site")
>>> problem = ranking_set(np.outer([3.0, 2.0, 1.0], [5.0, 4.0, 3.0, 1.0]), site)
>>> print(price_of(problem, "site", range(1, 4)))
site at most  value  price  whole
           1  empty
           2     24      2    yes
           3     26      0    yes
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Floats, frozen
from formulations.errors import Infeasible, InvalidProblem
from formulations.problems.ranking_set import ranking_set
from formulations.sets.constrained_ranking import ConstrainedRanking
from formulations.sets.limit_range import limit_range
from formulations.sets.limits import ConstraintLimit, Side, limit_of, swept
from formulations.sets.prices import relaxation_prices
from formulations.sets.ranking_set import RankingSet
from formulations.solvers.solver import Solver
from formulations.solving.price_curve import PriceCurve, PriceCurves
from formulations.solving.solve import solve

__all__ = ["PriceCurve", "PriceCurves", "price_of"]


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
        problem: one of `ranking_set`; a set, with its profit (it may be
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
        return ranking_set(profit, admissible)
    except Infeasible:
        limit = _checked(admissible, name, limits, side)
        for one in dict.fromkeys(np.clip(limits, *limit_range(limit)).tolist()):
            with suppress(Infeasible):
                return ranking_set(profit, limit.at(one))
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
    found = relaxation_prices(moved.stated, moved.worth)
    prices = [*known, *([] if found is None else [found])]
    bounds = [moved.bound(y) for y in prices]
    relaxed = min(bounds, default=np.inf)
    slack = NEAR * float(np.abs(moved.profit).max())  # of what rankings are worth: soft rows may cost far more
    towards = 0.0 if limit.side == "exactly" else 0.5 if limit.side == "at most" else -0.5
    looser = replace(moved, admissible=limit.at(at + towards))
    next_ = relaxation_prices(looser.stated, looser.worth) if towards else None
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
