"""What is minimised: a loss of each user's scores, and what pulls the parts of the model to zero and to a prior.

J(U, M, b) = Σ_u l_u(f_u) + Σ_u (λ_u/2)‖U_u‖² + Σ_j (λ_j/2)‖M_j‖² + Σ_j (μ_j/2)(b_j - b⁰_j)² + Σ_u (μ_u/2) b_u²,
f_uj = b_j + b_u + ⟨U_u, M_j⟩; weights stand in l_u.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.factors import Factors
from rankopt.collaborative.pull import pulled
from rankopt.collaborative.rated import Rated

__all__ = ["Problem", "Standing"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Problem:
    """prior b⁰ (m,); of_users λ_u (n,), of_items λ_j (m,), of_offsets μ_j (m,) or empty: b = b⁰ is fixed;
    of_user_offsets μ_u (n,) or empty: there are none. user_scale, item_scale: λ_u and λ_j are λ times these."""

    rated: Rated
    prior: Floats
    user_scale: Floats
    item_scale: Floats
    of_offsets: Floats
    of_user_offsets: Floats
    lam_users: float = 1.0
    lam_items: float = 1.0

    @property
    def of_users(self) -> Floats:
        return self.lam_users * self.user_scale

    @property
    def of_items(self) -> Floats:
        return self.lam_items * self.item_scale

    def at_strength(self, lam_users: float, lam_items: float) -> Problem:
        """The same with other λ."""
        return replace(self, lam_users=lam_users, lam_items=lam_items)

    def with_pull(self, times: float) -> Problem:
        """The same with item offsets pulled to their prior so many times as much."""
        return replace(self, of_offsets=times * self.of_offsets)

    def users_penalty(self, factors: Factors) -> float:
        """What U and b_u cost."""
        cost = 0.5 * float(self.of_users @ np.einsum("ij,ij->i", factors.users, factors.users))
        return cost + (0.5 * float(self.of_user_offsets @ factors.user_offsets**2) if self.of_user_offsets.size else 0)

    def items_penalty(self, factors: Factors) -> float:
        """What M and b cost."""
        cost = 0.5 * float(self.of_items @ np.einsum("ij,ij->i", factors.items, factors.items))
        away = factors.offsets - self.prior
        return cost + (0.5 * float(self.of_offsets @ away**2) if self.of_offsets.size else 0)

    def without_factors(self) -> Factors:
        """d = 0, b = b⁰."""
        n, m = self.rated.n_users, self.rated.n_items
        return Factors(np.zeros((n, 0)), np.zeros((m, 0)), self.prior, np.zeros(n))


@dataclass(frozen=True, eq=False)
class Standing:
    """Where a run stands, and its dual state.

    value: J. slopes ψ (ratings,) and heights δ (n,): l_u(f) >= δ_u + ⟨ψ_u, f⟩ for every f, weights included. users,
    items: the lower bounds of J over each block that the dual state proves; or, of the items, another one that the
    items' block left behind, `of_items`, its slopes and heights.
    """

    factors: Factors
    value: float
    slopes: Floats
    heights: Floats
    users: float
    items: float
    of_items: tuple[Floats, Floats] | None = None

    @classmethod
    def at(cls, problem: Problem, factors: Factors, loss: float, slopes: Floats, heights: Floats) -> Standing:
        """Of a loss Σ l_u at these factors, with any dual state."""
        value = loss + problem.users_penalty(factors) + problem.items_penalty(factors)
        users, items = block_bounds(problem, factors, slopes, heights)
        return cls(factors, value, slopes, heights, users, items)

    @property
    def gaps(self) -> tuple[float, float]:
        """How far J may lie above the best of the users' and of the items' block, as parts of J."""
        scale = abs(self.value) or 1.0
        return max(self.value - self.users, 0.0) / scale, max(self.value - self.items, 0.0) / scale


def block_bounds(problem: Problem, factors: Factors, slopes: Floats, heights: Floats) -> tuple[float, float]:
    """Lower bounds of J over all U, b_u for these M, b, and over all M, b for these U, b_u.

    In place of each l_u stands its plane δ_u + ⟨ψ_u, f⟩, and the minimum of the rest is closed:
    Σδ + ⟨ψ, b⟩ - Σ_u ‖Mᵀψ_u‖²/(2λ_u) - Σ_u (ψ_uᵀ1)²/(2μ_u), and likewise for the items.
    """
    rated = problem.rated
    per_user, per_item = rated.per_user(slopes), rated.per_item(slopes)
    total = float(heights.sum())
    moved = pulled(rated.bounds, rated.columns, slopes, factors.items)
    users = total + float(per_item @ factors.offsets) + problem.items_penalty(factors)
    users -= 0.5 * float((np.einsum("ij,ij->i", moved, moved) / problem.of_users).sum())
    if problem.of_user_offsets.size:
        users -= 0.5 * float((per_user**2 / problem.of_user_offsets).sum())
    moved = pulled(rated.item_bounds, rated.item_users, slopes, factors.users, rated.item_order)
    items = total + float(per_item @ problem.prior) + float(per_user @ factors.user_offsets)
    items += problem.users_penalty(factors)
    items -= 0.5 * float((np.einsum("ij,ij->i", moved, moved) / problem.of_items).sum())
    if problem.of_offsets.size:
        items -= 0.5 * float((per_item**2 / problem.of_offsets).sum())
    return users, items
