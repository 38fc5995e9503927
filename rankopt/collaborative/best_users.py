"""The best users for items as they are: U (and b_u) of least Σ_u l_u + (λ_U/2)‖U‖² (+ (μ/2)‖b_u‖²).

Of a convex loss that is one users' block, of which the gap is proved; else one of a majorant after the other, each
touching the loss where the last one ended.
"""

from __future__ import annotations

from typing import Any

from rankopt.collaborative.problem import FactorProblem, ModelState

__all__ = ["best_users", "users_alone"]

MAJORANTS = 30
"""Convex majorants of a bound that is not convex, at most."""

TWICE = 2
"""Solutions of a convex block, at most: where the first value was far above the best, so was its tolerance."""


def best_users(blocks: Any, now: ModelState, tol: float) -> ModelState:
    """From a standing, its users given up for better ones only, to a gap of this part of what users cost, or as near as
    their block comes; of a bound that is not convex until a majorant gains no more than that, or `MAJORANTS` were
    taken. Items cost the same throughout and count for nothing here."""
    cost, _ = users_alone(blocks.problem, now)
    for _ in range(TWICE if blocks.convex else MAJORANTS):
        found = blocks.with_users(now, 0.5 * tol * abs(cost) / (abs(now.value) or 1.0))
        before, (cost, bound) = cost, users_alone(blocks.problem, found)
        now = found
        if (cost - bound if blocks.convex else before - cost) <= tol * abs(cost):
            break
    return now


def users_alone(problem: FactorProblem, now: ModelState) -> tuple[float, float]:
    """What users cost, their losses with it, and what that cannot fall below for these items."""
    cost = now.lost + problem.users_penalty(now.factors)
    return cost, min(now.users - problem.items_penalty(now.factors), cost)
