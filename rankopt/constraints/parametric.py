"""What a quota costs over a data set: in every query the best admissible value against the limit of one rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from formulations.constraints.parametric import Side
from formulations.constraints.parametric import swept as checked_limits
from formulations.constraints.ranking_set import RankingSet
from formulations.errors import Infeasible, InvalidProblem
from formulations.gallery.assignments import ranking_set
from formulations.solving.parametric import PriceCurve, PriceCurves, price_of
from formulations.solving.solve import solve
from rankopt.constraints.rule import Rule, names_of
from rankopt.constraints.rule import stated as said_by
from rankopt.errors import DataError, OptionError

if TYPE_CHECKING:
    from rankopt.data.canonical_order import Arrangement
    from rankopt.data.queries import Queries

Floats = NDArray[np.float64]
Weights = Callable[[int, int], Floats]


class Rules(Protocol):
    """What is asked of an `Admissible`."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def k(self) -> int: ...
    @property
    def rules(self) -> tuple[Rule, ...]: ...
    @property
    def short(self) -> str: ...
    @property
    def attributes(self) -> tuple[str, ...]: ...

    def check(self, attributes: Mapping[str, Any]) -> None: ...

    def stated(self, attributes: Mapping[str, Any], n: int) -> RankingSet: ...

    def on(self, attributes: Mapping[str, Any], n: int) -> RankingSet: ...


def swept(
    admissible: Rules,
    constraint: str,
    limits: Iterable[float],
    queries: Queries | Arrangement,
    scores: Floats,
    weights: Weights,
    side: Side | None = None,
    solver: Any = "auto",
) -> PriceCurves:
    """The curve of Σ_i c_i s_π(i) for each query, scores (N,) in the order of the rows of `queries`, c = weights(k, n).

    As in `Admissible`, a query is asked for no more documents than the rule has positions in it; under short="cut" its
    list is as long as the rules let it be as they stand. A query that has none of a rule's documents has the same value
    at all limits, one that has no admissible ranking at any limit counts as empty at all.
    """
    rule = _chosen(admissible.rules, constraint, side)
    if scores.shape != (queries.offsets[-1],) or not np.isfinite(scores).all():
        raise DataError(
            f"scores of shape {scores.shape} are no finite numbers, one for each of {queries.offsets[-1]} rows"
        )
    if rule.word == "before":
        raise OptionError(
            f"{constraint!r} has no limit because it says what stands before what; sweep a rule that counts, or let it "
            f"be broken: soft({constraint!r}, price=...)"
        )
    admissible.check(queries.attributes)
    try:
        asked = checked_limits(limits)
    except InvalidProblem as error:
        raise OptionError(str(error)) from None
    others = [one for one in admissible.rules if one is not rule]
    first = replace(admissible, rules=(rule, *others))  # so that no rule of the same name has its name
    curves: list[PriceCurve | None] = []
    for start, stop in pairwise(queries.offsets.tolist()):
        own = {name: queries.attributes[name][start:stop] for name in admissible.attributes}
        one = _stated(first, own, stop - start)
        if one is None:
            curves.append(None)
            continue
        reach = one.positions if rule.positions is None else sum(place < one.positions for place in rule.positions)
        profit = np.outer(weights(one.positions, stop - start), scores[start:stop])
        alone = said_by((rule,), own, stop - start, one.positions, min(admissible.k, stop - start))
        held = next(iter(names_of(alone)), None)
        curves.append(_curve(profit, one, constraint, held, asked, np.minimum(asked, reach), side, solver))
    name = next((curve.name for curve in curves if curve is not None and curve.name != constraint), constraint)
    nothing = np.full(asked.size, np.nan)
    empty = PriceCurve(name, asked, nothing, nothing, nothing, nothing, np.zeros(asked.size, dtype=bool))
    return PriceCurves(tuple(empty if curve is None else replace(curve, name=name) for curve in curves))


def _chosen(rules: tuple[Rule, ...], constraint: str, side: Side | None) -> Rule:
    """The rule of this name; of several the one of this side. OptionError where that is none, or not one alone."""
    titled = [rule for rule in rules if rule.title == constraint]
    named = titled or [rule for rule in rules if rule.said_as == constraint]
    if not named:
        known = ", ".join(dict.fromkeys(repr(rule.title) for rule in rules)) or "none"
        raise OptionError(f"no rule is named {constraint!r}, so none can be swept; there are {known}")
    words = [rule.word for rule in named]
    if len(named) == 1 or set(words) == {"before"}:
        return named[0]
    if words.count(str(side)) == 1:
        return named[words.index(str(side))]
    if sorted(words) == ["at least", "at most"]:
        neither = "" if side is None else f", and side = {side!r} is neither"
        raise OptionError(
            f"{constraint!r} has limits on both sides, each a rule of its own{neither}; say side='at most' or "
            "side='at least'"
        )
    titles = list(dict.fromkeys(str(rule.title) for rule in named))
    cure = "give rules names of their own, name=..., and sweep one of them"
    if len(titles) == len(named):
        cure = f"sweep one of them: {', '.join(map(repr, titles))}"
    raise OptionError(f"{len(named)} rules are called {constraint!r}, each with a limit of its own; {cure}")


def _stated(admissible: Rules, attributes: Mapping[str, Any], n: int) -> RankingSet | None:
    """The set of one query, which may be empty under the limits as they stand; None for one that nothing can fill."""
    if admissible.short != "cut":
        return admissible.stated(attributes, n)
    try:
        return admissible.on(attributes, n)
    except Infeasible:
        return None


def _curve(
    profit: Floats,
    one: RankingSet,
    constraint: str,
    held: str | None,
    asked: Floats,
    limits: Floats,
    side: Side | None,
    solver: Any,
) -> PriceCurve | None:
    """The curve of one query, whose set calls the rule `held` (None: it says nothing of this query); None where it has
    no ranking at any limit."""
    every = [*one.constraints, *(soft.constraint for soft in one.softened)]
    try:
        if held is not None and any(part.name == held and part.rows for part in every):
            found = price_of(one, held, limits, profit=profit, side=side, solver=solver)
            assert isinstance(found, PriceCurve)
            return replace(found, limits=asked, name=constraint + found.name.removeprefix(held))
        solution = solve(ranking_set(profit, one), solver)
    except Infeasible:
        return None
    best, bound = np.full(asked.size, solution.value), np.full(asked.size, solution.bound)
    return PriceCurve(constraint, asked, best, bound, bound, np.zeros(asked.size), np.ones(asked.size, dtype=bool))
