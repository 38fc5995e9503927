"""Where factors start, without a draw: at the top singular pairs of what offsets alone leave over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.factors import Factors
from rankopt.collaborative.top_pairs import scaled, top_pairs
from rankopt.errors import OptionError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Start:
    """factors: U = P √s, M = Q √s for -Ψ ≈ P s Qᵀ, with the offsets that are best alone. lam_max: ‖Ψ‖₂, from which on
    √(λ_U λ_M) leaves no factors. alone: the offsets alone."""

    factors: Factors
    lam_max: float
    alone: Factors


def start_of(blocks: Any, count: int) -> Start:
    """Of so many factors; Ψ is the dual state of the best offsets, in units of the users' and items' scales."""
    problem, alone = blocks.problem, blocks.offsets_only()
    table = scaled(problem.rated.table(alone.slopes), problem.user_scale, problem.item_scale)
    left, size, right = top_pairs(table, max(count, 1))
    root = np.sqrt(size[:count])
    users = -left[:, :count] * (root / np.sqrt(problem.user_scale)[:, None])
    items = right[:, :count] * (root / np.sqrt(problem.item_scale)[:, None])
    factors = Factors(
        np.ascontiguousarray(users), np.ascontiguousarray(items), alone.factors.offsets, alone.factors.user_offsets
    )
    return Start(factors, float(size[0]), alone.factors)


def random_start(start: Start, random_state: Any) -> Factors:
    """Factors drawn from a normal distribution instead, of about the size of those of `start`."""
    from sklearn.utils import check_random_state

    factors = start.factors
    try:
        draws = check_random_state(random_state)
    except ValueError:
        raise OptionError(f"random_state = {random_state!r} draws nothing; give a whole number, or None") from None
    size = [float(np.sqrt(np.mean(one * one))) for one in (factors.users, factors.items)]
    users, items = (
        draws.normal(size=one.shape) * s for one, s in zip((factors.users, factors.items), size, strict=True)
    )
    return replace(factors, users=users, items=items)
