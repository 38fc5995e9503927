"""What each limit of a set of rankings costs: the duals of the program that ranks, query by query.

    maximise Σ_i c_i s_π(i) over the set            what `rank` shows; s the scores, c the weights of the positions

Were one limit looser by one (at most 3 instead of 2, at least 1 instead of 2), the optimum would gain no more than its
price, and were all of them, no more than the sum of their prices: weak duality, by the prices that prove the optimum as
it is. Where the set's linear program is not whole, add the `gap` of the query. So limits without a price need not be
looked at; for the others the program is solved again, one limit looser, and the difference is the gain.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.constraints.constrained_ranking import ConstrainedRanking
from formulations.constraints.duals import relaxation_prices
from formulations.constraints.ranking_set import RankingSet
from formulations.display import CompactReprMixin
from formulations.gallery.assignments import constrained_ranking
from formulations.problems.problem import EPSILON
from formulations.problems.program import Block
from formulations.solving.solve import solve
from rankopt.errors import RankoptError
from rankopt.explanations.numeric_table import lines_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SHOWN = 10
"""Limits that a printed table lists, those of the largest gain first."""


@dataclass(frozen=True, eq=False)
class Prices(CompactReprMixin):
    """A row a query and limit that presses; limits that are not among them cost nothing.

    Columns: `query`, its id; `constraint`, the rule, and `row`, the limit, such as site['a.org']; `side`, "at most" or
    "at least", the limit that presses; `gain`, what the query would gain were this limit one looser; `price` > 0, which
    proves that it is no more (with `gap`). By query, `queries` (m,) ids: `value`, the optimum; `cost`, by how much it
    stands below the best ranking of as many documents without any limit; `gap`, what the set's linear program
    overestimates it by. All in units of the objective, Σ c_i s_π(i).
    """

    query: tuple[Hashable, ...]
    constraint: tuple[str, ...]
    row: tuple[str, ...]
    side: tuple[str, ...]
    gain: Floats
    price: Floats
    queries: tuple[Hashable, ...]
    value: Floats
    cost: Floats
    gap: Floats

    def __len__(self) -> int:
        return len(self.query)

    def by_constraint(self) -> dict[str, float]:
        """The mean over the queries of what one looser limit of each rule brings back, the dearest of its limits each
        time; the largest first. Rules that never press are not among them."""
        best: dict[tuple[str, Hashable], float] = {}
        for name, query, gain in zip(self.constraint, self.query, self.gain.tolist(), strict=True):
            best[name, query] = max(best.get((name, query), 0.0), gain)
        sums = dict.fromkeys(self.constraint, 0.0)
        for (name, _), gain in best.items():
            sums[name] += gain
        return {name: total / len(self.queries) for name, total in sorted(sums.items(), key=lambda one: -one[1])}

    @property
    def finding(self) -> str:
        """One sentence of what was found, and one of what to do."""
        m, pressed = len(self.queries), int((self.cost > 0).sum())
        if not pressed:
            return f"No limit costs anything in any of the {m} queries: the best rankings keep to them by themselves."
        free = float((self.value + self.cost).mean())
        said = (
            f"The limits cost something in {pressed} of {m} queries, on average {self.cost.mean():.3g} of the "
            f"{free:.3g} that the best rankings without limits reach."
        )
        name, gain = next(iter(self.by_constraint().items()), ("", 0.0))
        if gain <= 0.0:
            return f"{said} No single limit, one looser, brings any of it back: loosen several at once."
        return f"{said} One looser limit of {name} brings back {gain:.3g} on average: loosen it first."

    def columns(self) -> dict[str, Any]:
        """The columns by name, in their order."""
        return {
            "query": [*self.query], "constraint": [*self.constraint], "row": [*self.row], "side": [*self.side],
            "gain": self.gain, "price": self.price,
        }  # fmt: skip

    def to_frame(self) -> Any:
        """All rows as a pandas data frame; raises RankoptError where pandas is not installed."""
        try:
            import pandas
        except ImportError as error:
            raise RankoptError("to_frame needs pandas, which is not installed; pip install pandas") from error
        return pandas.DataFrame(self.columns())

    def __str__(self) -> str:
        rows = np.lexsort((-self.price, -self.gain))[:SHOWN].tolist()
        left = len(self) - len(rows)
        lines = lines_of({name: [column[row] for row in rows] for name, column in self.columns().items()})
        return "\n".join([self.finding, *(lines if rows else []), *([f"{left} others"] if left else [])])


def prices_of(
    ids: Sequence[Hashable],
    sets: Sequence[RankingSet],
    offsets: Ints,
    scores: Floats,
    weights: Callable[[int, int], Floats],
    solver: Any = "auto",
) -> Prices:
    """The prices of the limits of sets[q] over the documents offsets[q] : offsets[q + 1] with these scores (N,).

    weights: k, n → c (k,), non-increasing and >= 0. Bans forbid cells and are no limits: they have no price.
    """
    rows: list[tuple[Hashable, str, str, str, float, float]] = []
    value, cost, gap = np.empty(len(sets)), np.empty(len(sets)), np.empty(len(sets))
    for q, (start, stop) in enumerate(pairwise(offsets.tolist())):
        own, admissible = scores[start:stop], sets[q]
        decay = weights(admissible.positions, own.size)
        problem = constrained_ranking(np.outer(decay, own), admissible)
        solution = solve(problem, solver)
        rounding = 64.0 * EPSILON * problem.scale * sum(problem.profit.shape)
        for pressed in _pressed(admissible, solution.dual, rounding):
            again = solve(constrained_ranking(problem.profit, pressed.looser(admissible)), solver)
            gain = _above(again.value - solution.value, rounding)
            rows.append((ids[q], pressed.constraint, pressed.row, pressed.side, gain, pressed.price))
        value[q] = solution.value
        cost[q] = _above(float(decay @ np.sort(own)[::-1][: decay.size]) - solution.value, rounding)
        gap[q] = _above(_relaxed_bound(problem, solution.y) - solution.value, rounding)
    query, constraint, name, side, gains, price = zip(*rows, strict=True) if rows else ((),) * 6
    return Prices(
        query, constraint, name, side, np.array(gains, dtype=np.float64), np.array(price, dtype=np.float64),
        tuple(ids), value, cost, gap,
    )  # fmt: skip


@dataclass(frozen=True)
class Pressed:
    """A limit with a price: row `member` of the constraint, from above or from below."""

    constraint: str
    member: int
    row: str
    side: str
    price: float

    def looser(self, admissible: RankingSet) -> RankingSet:
        """The set with this limit looser by one."""
        step = np.zeros(next(one.rows for one in admissible.constraints if one.name == self.constraint))
        step[self.member] = 1.0
        above = self.side == "at most"
        return replace(
            admissible,
            constraints=tuple(
                one if one.name != self.constraint
                else replace(one, upper=one.upper + step) if above
                else replace(one, lower=one.lower - step)
                for one in admissible.constraints
            ),
        )  # fmt: skip


def _pressed(admissible: RankingSet, dual: dict[str, NDArray[Any]], rounding: float) -> list[Pressed]:
    """The limits of the constraints whose price is not 0."""
    blocks: dict[str, Block] = {one.name: one.block for one in admissible.constraints if one.rows}
    found = []
    for name, block in blocks.items():
        prices = dual[name].ravel()
        for member in np.flatnonzero(np.abs(prices) > rounding).tolist():
            side = "at most" if prices[member] > 0 else "at least"
            found.append(Pressed(name, member, block.name(member), side, abs(float(prices[member]))))
    return found


def _relaxed_bound(problem: ConstrainedRanking, y: Floats | None) -> float:
    """What the prices that are shown prove by themselves: those of the relaxation, where `y` is a proof by cases."""
    if y is None or y.ndim == 2:
        y = relaxation_prices(problem.compiled, problem.worth)
    return float("inf") if y is None else problem.bound(y)


def _above(amount: float, rounding: float) -> float:
    """The amount, 0 where it is no more than rounding."""
    return amount if amount > rounding else 0.0
