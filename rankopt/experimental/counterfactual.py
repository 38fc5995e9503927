"""The smallest change of a document that reverses a pair, and the shadow prices of the limits of a constrained ranking.

Counterfactual of a pair under a linear ranker w:

variables    δ (d,), the change of the features z of the document that moves; u (d,) their units
minimize     Σ_j (δ_j / u_j)²                      all features together
          or |δ_j| / u_j, δ_i = 0 for i ≠ j        one feature j alone
subject to   wᵀδ = t                               t: the missing score, and the margin
             low <= z + δ <= high                  and δ_j = 0 for features that may not move

One feature: δ_j = t / w_j if the limits allow it. All together: δ_j = u_j² w_j μ, clipped at the limits; wᵀδ is
piecewise linear and increasing in μ, so sorting its breakpoints finds μ.

Shadow prices of the program that `rank` solves for each query:

    maximize Σ_i c_i s_π(i) over the set            s: scores, c: weights of the positions

A limit that is looser by one (at most 3 instead of 2) gains at most its shadow price: weak duality. For a set whose
linear program is not integral, add the `gap` of the query. Limits with a nonzero dual are loosened and solved again:
their `gain`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from formulations.arrays import Floats, each
from formulations.constraints.constrained_ranking import ConstrainedRanking
from formulations.constraints.duals import relaxation_prices
from formulations.constraints.ranking_set import RankingSet
from formulations.display import CompactReprMixin, aligned, data_frame
from formulations.gallery.assignments import constrained_ranking
from formulations.problems.problem import EPSILON
from formulations.solving.solve import solve
from rankopt.errors import OptionError
from rankopt.explanations.contributions import Explanation
from rankopt.options import check, number
from rankopt.rankers.inputs import read_queries


@dataclass(frozen=True, eq=False)
class CounterfactualChange(CompactReprMixin):
    """The smallest changes of one document after which it ties with the other; any more of them reverses the order.

    Fields (d features, in the order of the data):

    * `features`: their names; `moves`: the document that moves, "x" or "y"
    * `missing`: the change of its score that makes a tie, with a sign
    * `before` (d,): its features; `units` (d,): the unit of a change
    * `single` (d,): the change of each feature if no other changes, NaN where that is impossible
    * `joint` (d,): the smallest change of all features that may move, NaN where that is impossible
    * `reach`: the largest possible change of the score in this direction within the limits
    """

    features: tuple[str, ...]
    moves: str
    missing: float
    before: Floats
    units: Floats
    single: Floats
    joint: Floats
    reach: float

    @property
    def feasible(self) -> bool:
        """Whether the features that may move can make a tie, together."""
        return not np.isnan(self.joint).any()

    @property
    def best(self) -> int | None:
        """The column of the feature whose change alone is the smallest in its units, None if there is none."""
        costs = np.where(np.isnan(self.single), np.inf, np.abs(self.single)) / np.where(self.units > 0, self.units, 1.0)
        return int(np.argmin(costs)) if np.isfinite(costs).any() else None

    @property
    def cost(self) -> float:
        """|change of the feature `best`| in its unit; infinity without one."""
        return np.inf if self.best is None else abs(float(self.single[self.best])) / float(self.units[self.best])

    @property
    def distance(self) -> float:
        """√Σ (joint / units)², infinity where that is impossible. It is at most `cost`."""
        if not self.feasible:
            return np.inf
        moved = self.joint != 0.0
        return float(np.sqrt(((self.joint[moved] / self.units[moved]) ** 2).sum()))

    @property
    def single_document(self) -> Floats:
        """(d,) the document with the feature `best` changed."""
        after = self.before.copy()
        if self.best is not None:
            after[self.best] += self.single[self.best]
        return after

    @property
    def joint_document(self) -> Floats:
        """(d,) the document changed by `joint`."""
        return np.asarray(self.before + np.where(np.isnan(self.joint), 0.0, self.joint))


def counterfactual_change(
    ranker: Any,
    x: Any,
    y: Any,
    *,
    features: Iterable[str] | None = None,
    low: Any = None,
    high: Any = None,
    units: Any = None,
    moves: str = "y",
    margin: float = 0.0,
    **how: Any,
) -> CounterfactualChange:
    """The smallest changes of document `y` (or `x`) after which both documents have the same score.

    ranker: fitted, with `explain`. x, y: (d,) documents; `how` (slot=, among=) is passed to `explain`. features: names
    of the features that may move, all by default. low, high: limits of the changed features: a number, a mapping from
    name to number, or (d,); none by default. units: the unit of a change in the same forms, 1 by default; a feature
    with unit 0 cannot move. Changes, limits and units are in the units of the features as passed; of a ranker with
    `normalize` in those of the normalized features (deviations within the query for "zscore"). moves: the document that
    changes. margin: the difference of the scores after the change, in the reversed order. Raises OptionError for
    unknown features and for limits that exclude the document as it is.
    """
    if not callable(getattr(ranker, "explain", None)):
        raise OptionError(f"ranker must be a fitted ranker with a method explain; got a {type(ranker).__name__}.")
    return _smallest_change(ranker.explain(x, y, **how), features, low, high, units, moves, margin)


def _smallest_change(
    pair: Explanation, features: Iterable[str] | None, low: Any, high: Any, units: Any, moves: str, margin: float
) -> CounterfactualChange:
    check("moves", moves, ("x", "y"))
    if not 0.0 <= number(margin) < np.inf:
        raise OptionError(f"margin must be a finite number >= 0; got {margin!r:.80}.")
    back = np.argsort(pair.column)
    names = tuple(pair.features[j] for j in back.tolist())
    chosen = (
        [*names]
        if features is None
        else [features]
        if isinstance(features, str)
        else [*each("features", features, OptionError)]
    )
    _check_names("features", chosen, names)
    missing = pair.total + (margin if pair.total >= 0.0 else -margin)
    missing = missing if moves == "y" else -missing
    coef, before = pair.coef[back], (pair.y if moves == "y" else pair.x)[back]
    low, high, units = (
        _per_feature(what, value, names, default)
        for what, value, default in (("low", low, -np.inf), ("high", high, np.inf), ("units", units, 1.0))
    )
    if not (np.isfinite(units) & (units >= 0.0)).all():
        raise OptionError("units must be finite and >= 0; pass the standard deviation of each feature.")
    free = np.isin(names, chosen)
    outside = free & ((before < low) | (before > high))
    if outside.any():
        j = int(np.argmax(outside))
        raise OptionError(
            f"low and high must contain the document as it is; {names[j]} = {before[j]:g} is not within "
            f"[{low[j]:g}, {high[j]:g}]. Widen the limits, or leave {names[j]} out of features="
        )
    free &= units > 0.0
    slope = (-1.0 if missing < 0.0 else 1.0) * coef
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        change = np.where(slope != 0.0, missing / coef, np.nan)
        slack = np.where(slope > 0.0, high - before, before - low)
        fits = free & np.isfinite(change) & (before + change >= low) & (before + change <= high)
    if missing == 0.0:
        change, fits = np.zeros(coef.size), np.ones(coef.size, dtype=bool)
    joint, reach = _joint(np.where(free, np.abs(slope) * units, 0.0), slack / np.where(free, units, 1.0), missing)
    joint = np.where(joint > 0.0, np.sign(slope) * joint * units, joint)
    return CounterfactualChange(
        names, moves, missing, before.copy(), units, np.where(fits, change, np.nan), joint, reach
    )


def _check_names(what: str, found: Iterable[Any], names: tuple[str, ...]) -> None:
    for name in found:
        if not isinstance(name, str) or name not in names:
            raise OptionError(f"{what} must name features ({', '.join(names)}); got {name!r}."[:400])


def _per_feature(what: str, value: Any, names: tuple[str, ...], default: float) -> Floats:
    """(d,) numbers from a number, a mapping by name or a vector."""
    if isinstance(value, Mapping):
        _check_names(what, value, names)
        value = [value.get(name, default) for name in names]
    try:
        found = np.full(len(names), default if value is None else np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError, OverflowError) as error:
        raise OptionError(f"{what} must be a number, {len(names)} numbers, or numbers by name ({error}).") from None
    if np.isnan(found).any():
        raise OptionError(f"{what} must not contain nan; leave out features without a limit.")
    return found


def _joint(weight: Floats, slack: Floats, missing: float) -> tuple[Floats, float]:
    """min Σ e_j² over 0 <= e_j <= slack_j with Σ weight_j e_j = |missing|, and max Σ weight_j e_j:
    e_j = min(μ weight_j, slack_j). NaN where the maximum is too small."""
    moves = np.flatnonzero((weight > 0.0) & (slack > 0.0))
    found = np.zeros(weight.size)
    if missing == 0.0:
        return found, 0.0
    if not moves.size:
        return np.full(weight.size, np.nan), 0.0
    largest = weight[moves].max()
    a, r, t = weight[moves] / largest, slack[moves], abs(missing) / largest
    reach = float((a * r).sum()) * largest
    order = np.argsort(r / a, kind="stable")
    a, r = a[order], r[order]
    full = r / a  # the μ at which each reaches its limit
    spent = np.concatenate([[0.0], np.cumsum((a * r)[:-1])])  # by those at their limits
    squares = np.cumsum((a**2)[::-1])[::-1]  # of the others
    with np.errstate(invalid="ignore"):
        enough = spent + full * squares >= t
    if not enough.any():
        return np.full(weight.size, np.nan), reach
    first = int(np.argmax(enough))
    found[moves[order]] = np.minimum((t - spent[first]) / squares[first] * a, r)
    return found, reach


@dataclass(frozen=True)
class BindingLimit:
    """A limit with a nonzero dual: `row` of `constraint`, from `side` "at most" or "at least". gain: what the
    query gains with this limit looser by one; price > 0: the dual's magnitude, an upper bound of gain. (`sensitivity`
    counts per unit of the limit: its price of "at least", one more of which is tighter, is the negative of this.)"""

    query: Hashable
    constraint: str
    row: str
    side: str
    gain: float
    price: float


@dataclass(frozen=True, eq=False)
class ShadowPrices(CompactReprMixin):
    """The binding limits; other limits cost nothing. `print` and `to_frame()` show one row per limit.

    By query (m,): `value`, the optimum; `cost`, how much the best ranking without limits exceeds it; `gap`, how much
    the linear program of the set exceeds it."""

    limits: tuple[BindingLimit, ...]
    queries: tuple[Hashable, ...]
    value: Floats
    cost: Floats
    gap: Floats

    def to_frame(self) -> Any:
        """A pandas data frame, one row per binding limit; FormulationError if pandas is not installed."""
        names = [one.name for one in fields(BindingLimit)]
        return data_frame({name: [getattr(one, name) for one in self.limits] for name in names})

    def __str__(self) -> str:
        bound = {one.query for one in self.limits}
        title = f"{len(self.limits)} binding limits in {len(bound)} of {len(self.queries)} queries"
        rows = [("query", "limit", "side", "gain if looser by 1", "at most (price)")]
        rows += [(str(one.query), one.row, one.side, f"{one.gain:.4g}", f"{one.price:.4g}") for one in self.limits]
        return "\n".join([title, *(aligned(rows, left=True) if self.limits else [])])


def shadow_prices(
    ranker: Any, X: Any, *, qid: Any = None, group: Any = None, attributes: Any = None, constraints: Any = None
) -> ShadowPrices:
    """What each limit of the constraints (the ranker's own by default) costs in each query. Data are passed as to
    `rank`. Raises OptionError without constraints."""
    check_is_fitted(ranker)
    admissible = ranker._admissible(constraints)
    if admissible is None:
        raise OptionError("constraints must be an Admissible; got None. Pass constraints=Admissible(k).at_most(...).")
    queries = read_queries(ranker, X, None, qid=qid, group=group, attributes=attributes, reset=False, labels=False)
    sets, scores = admissible.for_queries(queries), ranker._scores(queries.features)
    deployment = ranker._deployment(queries, admissible)
    limits: list[BindingLimit] = []
    value, cost, gap = np.zeros((3, len(sets)))
    for q, (start, stop) in enumerate(pairwise(queries.offsets.tolist())):
        own = scores[start:stop]
        weights = deployment.weights(sets[q].positions, own.size)
        problem = constrained_ranking(np.outer(weights, own), sets[q])
        solution = solve(problem, deployment.solver)
        rounding = 64.0 * EPSILON * problem.scale * sum(problem.profit.shape)
        for one in (one for one in sets[q].constraints if one.rows):
            prices = solution.dual[one.name].ravel()
            for row in np.flatnonzero(np.abs(prices) > rounding).tolist():
                side = "at most" if prices[row] > 0 else "at least"
                again = solve(
                    constrained_ranking(problem.profit, _looser(sets[q], one.name, row, side)), deployment.solver
                )
                gain, price = _above(again.value - solution.value, rounding), abs(float(prices[row]))
                limits.append(BindingLimit(queries.query_ids[q], one.name, one.block.name(row), side, gain, price))
        value[q] = solution.value
        cost[q] = _above(float(weights @ np.sort(own)[::-1][: weights.size]) - solution.value, rounding)
        gap[q] = _above(_relaxed_bound(problem, solution.y) - solution.value, rounding)
    return ShadowPrices(tuple(limits), tuple(queries.query_ids), value, cost, gap)


def _looser(admissible: RankingSet, name: str, row: int, side: str) -> RankingSet:
    """The set with this limit of this row looser by one."""
    constraints = []
    for one in admissible.constraints:
        step = np.zeros(one.rows)
        if one.name == name:
            step[row] = 1.0
        above = side == "at most"
        constraints.append(
            one if not step.any()
            else replace(one, upper=one.upper + step) if above
            else replace(one, lower=one.lower - step)
        )  # fmt: skip
    return replace(admissible, constraints=tuple(constraints))


def _relaxed_bound(problem: ConstrainedRanking, y: Floats | None) -> float:
    """The bound proved by the duals alone: those of the relaxation if `y` is a proof by cases."""
    if y is None or y.ndim == 2:
        y = relaxation_prices(problem.compiled, problem.worth)
    return float("inf") if y is None else problem.bound(y)


def _above(amount: float, rounding: float) -> float:
    """The amount, 0 where it is within rounding."""
    return amount if amount > rounding else 0.0
