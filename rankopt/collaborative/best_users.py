"""The best users for items as they are: U (and b_u) of least Σ_u l_u + (λ_U/2)‖U‖² (+ (μ/2)‖b_u‖²).

Of a convex loss that is one users' block, of which the gap is proved; else one of a majorant after the other, each
touching the loss where the last one ended.
"""

from __future__ import annotations

from typing import Any

from rankopt.collaborative.problem import Standing

__all__ = ["best_users"]

MAJORANTS = 30
"""Convex majorants of a bound that is not convex, at most."""

TWICE = 2
"""Solutions of a convex block, at most: where the first value was far above the best, so was its tolerance."""


def best_users(blocks: Any, now: Standing, tol: float) -> Standing:
    """From a standing, its users given up for better ones only, until the gap is at most this part of the value; of a
    bound that is not convex until a majorant gains no more than that. Items cost the same throughout and count for
    nothing here."""
    items = blocks.problem.items_penalty(now.factors)
    for _ in range(TWICE if blocks.convex else MAJORANTS):
        part = 0.5 * tol * abs(now.value - items) / (abs(now.value) or 1.0)
        found = blocks.with_users(now, part)
        open_ = found.value - found.users if blocks.convex else now.value - found.value
        now = found
        if open_ <= tol * abs(now.value - items):
            break
    return now
