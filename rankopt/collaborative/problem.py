"""The objective: a loss of each user's scores, and penalties that pull factors to zero and biases to a prior.

J(U, M, b) = Σ_u l_u(f_u) + Σ_u (λ_u/2)‖U_u‖² + Σ_j (λ_j/2)‖M_j‖² + Σ_j (μ_j/2)(b_j - b⁰_j)² + Σ_u (μ_u/2) b_u²,
f_uj = b_j + b_u + ⟨U_u, M_j⟩; l_u includes the weights.

A regression may add (α/2) Σ f_uj² over the pairs without a rating [Hu, Koren and Volinsky 2008]. With F = XYᵀ, X =
[U, b_u, 1] and Y = [M, 1, b], sums over all pairs follow from the small matrices XᵀX and YᵀY, so the cost of a round
is linear in the ratings. The dual state of all pairs is Ψ = S + α XYᵀ with S (ratings,) sparse: the slopes stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.active_set.working_set import inner
from formulations.arrays import Floats, Ints, Out, Shorts, Table
from formulations.compiled import compiled
from formulations.display import CompactReprMixin
from formulations.parallel import share_ranges
from rankopt.collaborative.encoded_ratings import EncodedRatings
from rankopt.collaborative.linear_algebra import UNIT, add_sizes, rated_table, row_sums

ENTRIES = 1 << 14  # ratings (of complete users) that one thread scores at a time


@dataclass(frozen=True, eq=False)
class Factors(CompactReprMixin):
    """F[u, j] = offsets[j] + user_offsets[u] + ⟨users[u], items[j]⟩: users (n, d), items (m, d), offsets (m,),
    user_offsets (n,)."""

    users: Floats
    items: Floats
    offsets: Floats
    user_offsets: Floats

    @property
    def dimensions(self) -> int:
        return int(self.items.shape[1])

    @property
    def used(self) -> int:
        """How many of the dimensions scores depend on: those that are 0 neither of all users nor of all items."""
        return int(np.count_nonzero(self.users.any(axis=0) & self.items.any(axis=0)))

    def sides(self) -> tuple[Floats, Floats]:
        """X (n, d + 2) and Y (m, d + 2) with F = XYᵀ."""
        ones = (np.ones(len(self.users)), np.ones(len(self.items)))
        return (
            np.column_stack([self.users, self.user_offsets, ones[0]]),
            np.column_stack([self.items, ones[1], self.offsets]),
        )

    def offsets_alone(self) -> Factors:
        """The same with U = M = 0."""
        return replace(self, users=np.zeros_like(self.users), items=np.zeros_like(self.items))

    def scores(self, bounds: Ints, columns: Shorts) -> Floats:
        """(entries,) of the pairs: user u with the items columns[bounds[u] : bounds[u + 1]]."""
        return pair_scores(self.users, self.items, self.offsets, self.user_offsets, bounds, columns)


def pair_scores(
    users: Floats, items: Floats, offsets: Floats, user_offsets: Floats, bounds: Ints, columns: Shorts
) -> Floats:
    """(entries,) the scores of the pairs that bounds and columns name, parallel over users."""
    found = np.empty(columns.size)
    arguments = (users, items, offsets, user_offsets, bounds, columns)
    if found.size:
        share_ranges(bounds, ENTRIES, lambda first, last: _fill_scores(*arguments, first, last, found))
    return found


@compiled()
def _fill_scores(
    users: Table[Floats], items: Table[Floats], offsets: Floats, user_offsets: Floats, bounds: Ints, columns: Shorts,
    first: int, last: int, found: Out[Floats],
) -> None:  # fmt: skip
    for u in range(first, last):
        for e in range(bounds[u], bounds[u + 1]):
            j = columns[e]
            found[e] = offsets[j] + user_offsets[u] + inner(users[u], items[j])


AT_ONCE = 1 << 16  # pairs whose factors are gathered at a time


def scores_of_pairs(factors: Factors, users: Ints, items: Ints, unknown: float) -> Floats:
    """(n,) b_j + b_u + ⟨U_u, M_j⟩ of the users and items with these indices, -1 for unknown: such a user adds 0,
    such an item has the offset `unknown` of an item without ratings."""
    found = np.empty(users.size)
    for begin in range(0, users.size, AT_ONCE):
        part = slice(begin, begin + AT_ONCE)
        u, j = users[part], items[part]
        some = np.where(j >= 0, factors.offsets[j] if factors.offsets.size else unknown, unknown)
        some += np.where(u >= 0, factors.user_offsets[u], 0.0)
        both = (u >= 0) & (j >= 0)
        some[both] += np.einsum("ij,ij->i", factors.users[u[both]], factors.items[j[both]])
        found[part] = some
    return found


@dataclass(frozen=True, eq=False)
class FactorProblem:
    """prior b⁰ (m,); of_users λ_u (n,), of_items λ_j (m,), of_offsets μ_j (m,) or empty: b = b⁰ is fixed;
    of_user_offsets μ_u (n,) or empty: there are none. user_scale, item_scale: λ_u and λ_j are λ times these.
    unrated: the weight α of the pairs without a rating."""

    rated: EncodedRatings
    prior: Floats
    user_scale: Floats
    item_scale: Floats
    of_offsets: Floats
    of_user_offsets: Floats
    lam_users: float = 1.0
    lam_items: float = 1.0
    unrated: float = 0.0

    @property
    def of_users(self) -> Floats:
        return self.lam_users * self.user_scale

    @property
    def of_items(self) -> Floats:
        return self.lam_items * self.item_scale

    def at_strength(self, lam_users: float, lam_items: float) -> FactorProblem:
        return replace(self, lam_users=lam_users, lam_items=lam_items)

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
class ModelState:
    """State of a run, and its dual state.

    value: J. slopes ψ (ratings,) and heights δ (n,): l_u(f) >= δ_u + ⟨ψ_u, f⟩ for every f, weights included. users,
    items: the lower bounds of J over each block that the dual state proves; or, of the items, another one of the
    items' block, `of_items`, its slopes and heights. planes: of the users of each shard, the start of the next
    block, if it stores planes, updated by it; by_planes: their mixture is that dual state of the
    items. lost: Σ l_u, where it is known.
    """

    factors: Factors
    value: float
    slopes: Floats
    heights: Floats
    users: float
    items: float
    of_items: tuple[Floats, Floats] | None = None
    planes: list[Any] | None = None
    by_planes: bool = False
    lost: float = np.nan

    @classmethod
    def at(cls, problem: FactorProblem, factors: Factors, loss: float, slopes: Floats, heights: Floats) -> ModelState:
        """Of a loss Σ l_u at these factors, with any dual state."""
        value = loss + problem.users_penalty(factors) + problem.items_penalty(factors)
        users, items = block_bounds(problem, factors, slopes, heights)
        return cls(factors, value, slopes, heights, users, items, lost=loss)

    def apart(self) -> ModelState:
        """The same, with a list of planes that is its own."""
        return self if self.planes is None else replace(self, planes=list(self.planes))

    @property
    def gaps(self) -> tuple[float, float]:
        """How far J may lie above the best of the users' and of the items' block, as parts of J."""
        scale = abs(self.value) or 1.0
        return max(self.value - self.users, 0.0) / scale, max(self.value - self.items, 0.0) / scale


def block_bounds(problem: FactorProblem, factors: Factors, slopes: Floats, heights: Floats) -> tuple[float, float]:
    """Lower bounds of J over all U, b_u for these M, b, and over all M, b for these U, b_u. Each l_u is replaced by its
    plane δ_u + ⟨ψ_u, f⟩, and the minimum has a closed form: Σδ + ⟨ψ, b⟩ - Σ_u ‖Mᵀψ_u‖²/(2λ_u) - Σ_u (ψ_uᵀ1)²/(2μ_u),
    and likewise for the items. A bound of the rounding error is subtracted."""
    rated = problem.rated
    sums = _Sums.from_problem(problem, factors, [(slice(0, rated.n_users), slopes, heights)])
    users = [sums.total, _product(sums.per_item, factors.offsets, sums.off_item)]
    users += [_penalty(problem.items_penalty(factors), factors)]
    moved = rated.table(slopes) @ factors.items
    if problem.unrated:
        left, right = factors.sides()
        moved += problem.unrated * (left @ (right.T @ factors.items))
    users += [_squares(moved, sums.off_user * _longest(factors.items), problem.of_users)]
    if problem.of_user_offsets.size:
        users += [_squares(sums.per_user[:, None], sums.off_user, problem.of_user_offsets)]
    return _sum_rounded_down(users), sums.items_bound(problem, factors)


def items_bound(problem: FactorProblem, factors: Factors, parts: Iterable[tuple[slice, Floats, Floats]]) -> float:
    """The second of these bounds. parts: some users after others, as a slice of all, with their slopes and heights."""
    return _Sums.from_problem(problem, factors, parts).items_bound(problem, factors)


@dataclass(frozen=True, eq=False)
class _Sums:
    """Of a dual state: heights (n,), Σψ of each user (n,) and item (m,), their errors of rounding, and Ψᵀ U (m, d)."""

    heights: Floats
    per_user: Floats
    per_item: Floats
    off_user: Floats
    off_item: Floats
    moved: Floats

    @classmethod
    def from_problem(
        cls, problem: FactorProblem, factors: Factors, parts: Iterable[tuple[slice, Floats, Floats]]
    ) -> _Sums:
        rated = problem.rated
        n, m = rated.n_users, rated.n_items
        heights, per_user, off_user = np.empty(n), np.empty(n), np.empty(n)
        per_item, off_item, moved = np.zeros(m), np.zeros(m), np.zeros((m, factors.dimensions))
        for users, slopes, own in parts:
            bounds = rated.bounds[users.start : users.stop + 1]
            columns = rated.columns[bounds[0] : bounds[-1]]
            bounds = bounds - bounds[0]
            heights[users], per_user[users] = own, row_sums(bounds, slopes)
            add_sizes(bounds, columns, slopes, off_user[users], off_item)
            table = rated_table(bounds, columns, slopes, m)
            per_item += table.sum(axis=0)
            moved += table.T @ factors.users[users]
        off_user *= UNIT * (np.diff(rated.bounds) + 8)
        off_item *= UNIT * (np.diff(rated.item_bounds) + 8)
        if problem.unrated:
            left, right = factors.sides()
            for one, other, total, off in ((left, right, per_user, off_user), (right, left, per_item, off_item)):
                total += problem.unrated * (one @ other.sum(axis=0))
                off += UNIT * (n + m + 16) * problem.unrated * (np.abs(one) @ np.abs(other).sum(axis=0))
            moved += problem.unrated * (right @ (left.T @ factors.users))
        return cls(heights, per_user, per_item, off_user, off_item, moved)

    @property
    def total(self) -> Term:
        return _product(self.heights, np.ones(self.heights.size), UNIT * np.abs(self.heights))

    def items_bound(self, problem: FactorProblem, factors: Factors) -> float:
        items = [self.total, _product(self.per_item, problem.prior, self.off_item)]
        items += [_product(self.per_user, factors.user_offsets, self.off_user)]
        items += [_penalty(problem.users_penalty(factors), factors)]
        items += [_squares(self.moved, self.off_item * _longest(factors.users), problem.of_items)]
        if problem.of_offsets.size:
            items += [_squares(self.per_item[:, None], self.off_item, problem.of_offsets)]
        return _sum_rounded_down(items)


Term = tuple[float, float]  # A number, and how much it may exceed the exact value


def _product(totals: Floats, times: Floats, off: Floats) -> Term:
    """Σ totals times, each total known up to `off`."""
    by = np.abs(times)
    return float(totals @ times), float(by @ off) + UNIT * (totals.size + 8) * float(by @ np.abs(totals))


def _squares(moved: Floats, off: Floats, penalty: Floats) -> Term:
    """-Σ ‖moved‖²/(2 penalty), each row known up to `off`."""
    lengths = np.sqrt(np.einsum("ij,ij->i", moved, moved))
    steep = 0.5 * float((lengths**2 / penalty).sum())
    return -steep, 0.5 * float(((2.0 * lengths + off) * off / penalty).sum()) + UNIT * (moved.size + 16) * steep


def _penalty(cost: float, factors: Factors) -> Term:
    terms = sum(one.size for one in (factors.users, factors.items, factors.offsets, factors.user_offsets))
    return cost, UNIT * (terms + 16) * cost


def _longest(factors: Floats) -> float:
    """The largest length of a row, from above."""
    return float(np.sqrt(np.einsum("ij,ij->i", factors, factors).max(initial=0.0))) * (1.0 + 1e-9)


def _sum_rounded_down(terms: list[Term]) -> float:
    value = sum(one for one, _ in terms)
    return value - (1.0 + 1e-9) * sum(off + 16.0 * UNIT * abs(one) for one, off in terms)


def dual_to_caller(problem: FactorProblem, slopes: Floats, heights: Floats) -> tuple[Floats, Floats]:
    """A dual state in the order of the `Ratings`: slopes ψ (ratings,) and heights δ (n,)."""
    rated = problem.rated
    return scattered(slopes, rated.given, rated.all_ratings), scattered(heights, rated.users, rated.all_users)


def factors_to_caller(problem: FactorProblem, factors: Factors, unknown: float) -> Factors:
    """Factors in the order of the `Ratings`. Users and items that `EncodedRatings` left out, for the loss cannot see
    them, have the factors 0, items the offset `unknown`."""
    rated = problem.rated
    return Factors(
        scattered(factors.users, rated.users, rated.all_users),
        scattered(factors.items, rated.items, rated.all_items),
        scattered(factors.offsets, rated.items, rated.all_items, unknown),
        scattered(factors.user_offsets, rated.users, rated.all_users),
    )


def scattered(values: Floats, indices: NDArray[Any], size: int, others: float = 0.0) -> Floats:
    """(size, ...) the values at their indices, and `others` elsewhere."""
    found = np.full((size, *values.shape[1:]), others)
    found[indices] = values
    return found
