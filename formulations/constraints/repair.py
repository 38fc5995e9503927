"""A ranking of least violation, of an empty set or not.

    minimize    Σ penalty[r] · violation[r]
    over        rankings that satisfy the constraints without a penalty

An integer search finds one. Duals within the penalties, or a proof by cases, bound the cost of every other ranking
(`constraints.duals`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from formulations.arrays import Floats, Ints, frozen
from formulations.constraints.conflict import SECONDS, emptiness, room
from formulations.constraints.constraint import Constraint, violations
from formulations.constraints.duals import proven_bound, recovered_prices, whole_point, within
from formulations.constraints.rows import (
    SetRows,
    SoftConstraint,
    cell_penalties,
    charge_of,
    valid_penalty,
    widened,
    with_soft_rows,
)
from formulations.display import CompactReprMixin
from formulations.errors import InfeasibleError, InvalidProblemError, SolverError
from formulations.problems.assignment import order_of_cells

FAR = 1e6
"""Largest ratio of two penalties in one objective: solvers resolve about ten digits."""


@dataclass(frozen=True, eq=False)
class Repair(CompactReprMixin):
    """order: the document at each position. broken: name of a row, pin or ban → violation. cost: the penalties of these
    violations; bound: a lower bound for all rankings. least: the smallest positive penalty."""

    order: Ints
    broken: dict[str, float]
    cost: float
    bound: float
    least: float = 1.0

    @property
    def proved(self) -> bool:
        """Whether no ranking costs less, up to rounding."""
        return self.cost - self.bound <= 1e-12 * self.cost + 1e-9 * self.least

    def __str__(self) -> str:
        if not self.broken:
            return f"Nothing has to be broken: {self.order.tolist()} is in the set"
        parts = ", ".join(f"{name} by {amount:g}" for name, amount in self.broken.items())
        proof = "none costs less" if self.proved else f"none is proved to cost less than {self.bound:g}"
        return f"{self.order.tolist()} breaks {parts}, at a cost of {self.cost:g}; {proof}"


def repair(
    shape: tuple[int, int],
    constraints: Sequence[Constraint],
    soft: Sequence[SoftConstraint],
    penalties: float | Mapping[str, float],
) -> Repair:
    """A ranking of least violation of k of n documents; see `RankingSet.repair`."""
    k, n = shape
    pairs = [(held, None) for held in constraints] + [(one.constraint, one.penalty) for one in soft]
    if isinstance(penalties, Mapping):
        unknown = sorted(set(penalties) - {held.name for held, _ in pairs}, key=repr)
        if unknown:
            known = ", ".join(repr(held.name) for held, _ in pairs) or "none"
            raise InvalidProblemError(f"No constraint is named {unknown[0]!r}; the names are {known}.")
    penalty_of = penalties if isinstance(penalties, Mapping) else {held.name: penalties for held, _ in pairs}
    may = [
        SoftConstraint(
            held, valid_penalty(penalty_of[held.name], held.name) if held.name in penalty_of else float(price or 0.0)
        )
        for held, price in pairs
        if held.name in penalty_of or price is not None
    ]
    must = [held for held, price in pairs if held.name not in penalty_of and price is None]
    stated = SetRows.from_constraints(must, shape)
    fillable = room(stated, must)
    if fillable < k:
        raise InfeasibleError(emptiness(stated, must, fillable))
    paid = sorted(one.penalty for one in may if one.penalty > 0.0)
    if paid and paid[-1] > FAR * paid[0]:
        raise InvalidProblemError(
            f"penalties must lie within a factor of {FAR:g} of each other; got {paid[0]:g} to {paid[-1]:g}. "
            "Rescale them, and remove the penalty of constraints that must hold."
        )
    rows, worth = with_soft_rows(stated, may), -cell_penalties(may, shape)
    order = _least(rows, worth)
    cost = charge_of(may, order, n)
    y = recovered_prices(rows, worth, order, admitted=True)
    bound = 0.0 if y is None else max(0.0, -proven_bound(rows, worth, y))
    off = violations([one.constraint for one in may], order, n)
    return Repair(frozen(order), off, cost, min(bound, cost), paid[0] if paid else 1.0)


def _least(stated: SetRows, worth: Floats) -> Ints:
    """The document at each position of the optimum of the widened integer program."""
    from scipy.optimize import Bounds, LinearConstraint

    program = widened(stated, worth, integer=True)
    costs = np.abs(program.objective[program.objective != 0.0])
    scale = float(costs.min(initial=np.inf)) if costs.size else 1.0
    found = whole_point(
        -program.objective / scale,
        constraints=LinearConstraint(program.matrix, program.row_lower, program.row_upper),
        bounds=Bounds(program.lower, program.upper),
        integrality=program.integer,
        options={"time_limit": SECONDS, "mip_rel_gap": 0.0},
    )
    if found.x is None:
        raise SolverError(f"no repair was found{within(found, SECONDS)} ({found.message}); let fewer constraints give")
    k, n = stated.shape
    return order_of_cells(stated.cell[found.x[: stated.cell.size] > 0.5], k, n)
