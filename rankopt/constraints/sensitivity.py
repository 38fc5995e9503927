"""Sensitivity over a data set: in every query the best admissible value against the limit of one rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from formulations.constraints.ranking_set import RankingSet
from formulations.errors import Infeasible, InvalidProblem
from formulations.gallery.assignments import constrained_ranking
from formulations.solving.sensitivity import PriceCurve, Side, price_of, read_limits
from formulations.solving.solve import solve
from rankopt.constraints.rule import Rule, names_of, stated
from rankopt.errors import DataError, OptionError

if TYPE_CHECKING:
    from rankopt.data.canonical_order import Arrangement
    from rankopt.data.queries import Queries

Floats = NDArray[np.float64]


def price_of_rule(
    admissible: Any,
    constraint: str,
    limits: Iterable[float],
    queries: Queries | Arrangement,
    scores: Floats,
    weights: Callable[[int, int], Floats],
    side: Side | None = None,
    solver: Any = "auto",
) -> PriceCurve:
    """The curve of Σ_i c_i s_π(i) for each query, scores (N,) in the order of the rows of `queries`, c = weights(k, n).

    A query is asked for no more documents than the rule has positions in it; under on_infeasible="truncate" its
    list is as long as the rules allow under their own limits. A query that has none of a rule's documents has the same
    value at all limits; one that has no admissible ranking at any limit is empty at all.
    """
    rule = _chosen(admissible.rules, constraint, side)
    if scores.shape != (queries.offsets[-1],) or not np.isfinite(scores).all():
        raise DataError(
            f"scores of shape {scores.shape} are no finite numbers, one for each of {queries.offsets[-1]} rows"
        )
    if rule.word == "before":
        raise OptionError(
            f"{constraint!r} is a precedence and has no limit; sweep a rule that counts, or let it be broken: "
            f"soft({constraint!r}, price=...)"
        )
    admissible.check(queries.attributes)
    try:
        asked = read_limits(limits)
    except InvalidProblem as error:
        raise OptionError(str(error)) from None
    others = [one for one in admissible.rules if one is not rule]
    first = replace(admissible, rules=(rule, *others))  # so that no rule of the same name has its name
    found = [
        _curve(
            first, rule, constraint, {name: queries.attributes[name][start:stop] for name in admissible.attributes},
            scores[start:stop], weights, asked, side, solver,
        )
        for start, stop in pairwise(queries.offsets.tolist())
    ]  # fmt: skip
    name = next((curve.name for curve in found if curve is not None and curve.name != constraint), constraint)
    return PriceCurve.from_curves(name, asked, found)


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


def _curve(
    admissible: Any,
    rule: Rule,
    constraint: str,
    attributes: Mapping[str, Any],
    scores: Floats,
    weights: Callable[[int, int], Floats],
    asked: Floats,
    side: Side | None,
    solver: Any,
) -> PriceCurve | None:
    """The curve of one query; None where it has no ranking at any limit."""
    n = scores.size
    try:
        one: RankingSet = (
            admissible.for_query if admissible.on_infeasible == "truncate" else admissible.to_ranking_set
        )(attributes, n)
        profit = np.outer(weights(one.positions, n), scores)
        alone = stated((rule,), attributes, n, one.positions, min(admissible.k, n))
        held = next(iter(names_of(alone)), None)  # the rule's name in the set; None: it concerns no document
        every = [*one.constraints, *(soft.constraint for soft in one.soft_constraints)]
        if held is not None and any(part.name == held and part.rows for part in every):
            reach = one.positions if rule.positions is None else sum(at < one.positions for at in rule.positions)
            found = price_of(one, held, np.minimum(asked, reach), profit=profit, side=side, solver=solver)
            return replace(found, limits=asked, name=constraint + found.name.removeprefix(held))
        solution = solve(constrained_ranking(profit, one), solver)
    except Infeasible:
        return None
    best, bound = np.full(asked.size, solution.value), np.full(asked.size, solution.bound)
    return PriceCurve(constraint, asked, best, bound, bound, np.zeros(asked.size), np.ones(asked.size, dtype=bool))
