"""Sensitivity over a data set: the best admissible value of each query as a function of the limit of a constraint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from formulations.arrays import Floats, check_type
from formulations.constraints.constraint import Constraint
from formulations.constraints.language import ConstraintSpec
from formulations.constraints.ranking_set import RankingSet
from formulations.errors import InfeasibleError, InvalidProblemError
from formulations.gallery.assignments import constrained_ranking
from formulations.solving.sensitivity import SensitivityCurve, Side, read_limits, sensitivity
from formulations.solving.solve import solve
from rankopt.constraints.specs import attributes_of, check_values, label, resolve
from rankopt.data.canonical_order import Arrangement
from rankopt.data.queries import Queries
from rankopt.errors import DataError, OptionError
from rankopt.options import as_numbers


def rule_sensitivity(
    admissible: Any, constraint: str, limits: Iterable[float], queries: Queries | Arrangement, scores: Floats, weights:
    Callable[[int, int], Floats], side: Side | None = None, solver: Any = "auto",
) -> SensitivityCurve:  # fmt: skip
    """The curve of Σ_i c_i s_π(i) for each query, scores (N,) in the order of the rows of `queries`, c = weights(k, n).

    Limits are capped at the number of positions of the constraint in a query; those of share= are shares. Under
    on_infeasible="truncate" the length of a list is that under the original limits, full if these leave no list. A
    query without documents of the constraint has the same value at all limits; a query without an admissible ranking
    at any limit is empty.
    """
    specs = tuple(part for spec in admissible.specs for part in _one_sided(spec))
    rule = _choose_constraint(specs, constraint, side)
    if scores.shape != (queries.offsets[-1],) or not np.isfinite(scores).all():
        raise DataError(f"scores must be {queries.offsets[-1]} finite numbers, one per row; got shape {scores.shape}.")
    if rule.kind not in SIDES:
        raise OptionError(
            f"A sweep needs a constraint with one limit, at_most(), at_least(), exactly() or between(); got "
            f"{constraint!r}, a constraint of kind {rule.kind}. Name another, or make it soft: "
            f"penalized({constraint!r}, penalty=...)."
        )
    admissible.validate(queries.attributes)
    check_values(admissible.specs, queries.attributes)
    try:
        values = read_limits(limits)
    except InvalidProblemError as error:
        raise OptionError(str(error)) from None
    shares = "share" in dict(rule.options)
    if shares and ((values < 0.0) | (values > 1.0)).any():
        raise OptionError(
            f"limits of {constraint!r}, a share, must be from 0 to 1; got {values.tolist()!r:.80}. For counts state it "
            f"with {rule.kind}(count)."
        )
    if not shares and (values % 1.0).any():
        raise OptionError(
            f"limits of {constraint!r}, a count, must be integers; got {values.tolist()!r:.80}. For shares state it "
            f"with {rule.kind}(share=...)."
        )
    others = [one for one in specs if one is not rule]
    first = replace(admissible, specs=(rule, *others))  # first, so that it gets the plain name among equal ones
    found = [
        _curve(
            first, rule, constraint, {name: queries.attributes[name][start:stop] for name in admissible.attributes},
            scores[start:stop], weights, values, side, solver,
        )
        for start, stop in pairwise(queries.offsets.tolist())
    ]  # fmt: skip
    name = next((curve.name for curve in found if curve is not None and curve.name != constraint), constraint)
    longest = int(np.diff(queries.offsets).max())
    shown = np.asarray(weights(min(admissible.k, longest), longest), dtype=np.float64)
    more = ", ..." if shown.size > SHOWN_WEIGHTS else ""
    title = f"Sums of scores, not nDCG: Σ c_i s_π(i), c = {', '.join(f'{c:.3g}' for c in shown[:SHOWN_WEIGHTS])}{more}"
    if admissible.on_infeasible == "truncate":
        title += "; lists as long as the original limits admit"
    return replace(SensitivityCurve.from_curves(name, values, found), title=title)


SHOWN_WEIGHTS = 5  # of the longest list, in the title of the table

SIDES = {"at_most": "at most", "at_least": "at least", "exactly": "exactly"}
"""The kinds that have one limit, and its side."""


def _one_sided(spec: ConstraintSpec) -> tuple[ConstraintSpec, ...]:
    """`between` as a lower and an upper limit."""
    if spec.kind != "between":
        return (spec,)
    low, high = spec.args
    return replace(spec, kind="at_least", args=(low,)), replace(spec, kind="at_most", args=(high,))


def _choose_constraint(specs: tuple[ConstraintSpec, ...], constraint: str, side: Side | None) -> ConstraintSpec:
    """The constraint of this name, and of this side if there are several. OptionError if it is not unique."""
    check_type("constraint", constraint, str, error=OptionError)
    named = [spec for spec in specs if label(spec) == constraint]
    if not named and len({label(spec) for spec in specs if constraint in attributes_of(spec)}) == 1:
        named = [spec for spec in specs if constraint in attributes_of(spec)]
    if not named:
        known = ", ".join(dict.fromkeys(repr(label(spec)) for spec in specs)) or "none"
        raise OptionError(f"No constraint is named {constraint!r}; the names are {known}.")
    sides = [SIDES.get(spec.kind, "") if spec.args else "" for spec in named]
    if len(named) == 1 or not any(sides):
        return named[0]
    if sides.count(str(side)) == 1:
        return named[sides.index(str(side))]
    if sorted(sides) == ["at least", "at most"]:
        raise OptionError(f"{constraint!r} has limits on both sides; got side={side!r}. Give 'at most' or 'at least'.")
    raise OptionError(f"A sweep needs one constraint named {constraint!r}; got {len(named)}. Give each a name=.")


def _curve(
    admissible: Any, rule: ConstraintSpec, constraint: str, attributes: Mapping[str, Any], scores: Floats, weights:
    Callable[[int, int], Floats], limits: Floats, side: Side | None, solver: Any,
) -> SensitivityCurve | None:  # fmt: skip
    """The curve of one query; None if it has no ranking at any limit."""
    n = scores.size
    try:
        one: RankingSet = admissible.to_ranking_set(attributes, n)
        if admissible.on_infeasible == "truncate":
            with suppress(InfeasibleError):  # no list of any length under the original limits
                one = admissible.for_query(attributes, n)
        try:
            profit = np.outer(as_numbers("weights", weights(one.positions, n)), scores)
        except TypeError as error:
            raise OptionError(f"weights = {weights!r:.80} is no function (k, n): {error}") from error
        alone = resolve((rule,), attributes, n, one.positions, min(admissible.k, n))
        held = next((part.name for part in _every(alone)), None)  # its name in the set; None: it concerns no document
        every = _every(one)
        if held is not None and any(part.name == held and (part.rows or part.share_limit) for part in every):
            reach = one.positions if rule.positions is None else sum(at < one.positions for at in rule.positions)
            found = sensitivity(one, held, np.minimum(limits, reach), profit=profit, side=side, solver=solver)
            return replace(found, limits=limits, name=constraint + found.name.removeprefix(held))
        solution = solve(constrained_ranking(profit, one), solver)
    except InfeasibleError:
        return None
    best, bound = np.full(limits.size, solution.value), np.full(limits.size, solution.bound)
    return SensitivityCurve(
        constraint, limits, best, bound, bound, np.zeros(limits.size), np.ones(limits.size, dtype=bool)
    )


def _every(one: RankingSet) -> list[Constraint]:
    return [*one.constraints, *(soft.constraint for soft in one.soft_constraints)]
