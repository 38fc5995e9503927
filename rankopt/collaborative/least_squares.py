"""The squared loss l_u(f) = Σ_j (w_uj/2)(f_j - y_uj)²: both blocks are ridge systems in closed form.

The best offsets alone minimize Σ_uj (w_uj/2)(b_u + b_j - y_uj)² + Σ_j (μ_j/2)(b_j - b⁰_j)² + Σ_u (μ_u/2) b_u², one
sparse system. Its matrix is diagonal but for the table of weights between users and items, so a step of conjugate
gradients costs two passes over the ratings; some ten of them close it.

Where pairs without a rating have the weight α, a rating of weight w counts as (w - α)/2 (f - t)² with t = w y/(w - α),
and (α/2) Σ f² is added over all pairs: a quadratic function that is the same for each row of a block; b⁰ = 0 there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from formulations.arrays import Floats
from rankopt.collaborative.encoded_ratings import RatedShard, item_shards, user_shards
from rankopt.collaborative.linear_algebra import NONE, UNIT, solve_ridges, squared_loss
from rankopt.collaborative.problem import FactorProblem, Factors, ModelState
from rankopt.engines import Threads
from rankopt.risk.risk import SHARD_ROWS

DENSE = 1 << 23  # pairs up to which a global bound is computed where those without a rating count
CLOSED = 1e-10  # the relative residual at which the system counts as solved


def best_offsets(problem: FactorProblem) -> tuple[Floats, Floats]:
    """b_u (n,) and b_j (m,); those that the problem does not have are 0, and b⁰."""
    from scipy.sparse.linalg import LinearOperator, cg

    rated, n, alpha = problem.rated, problem.rated.n_users, problem.unrated
    weights = rated.weights if rated.weights.size else np.ones(rated.n_ratings)
    left = problem.prior[rated.columns]
    np.subtract(rated.values, left, out=left)
    left *= weights
    has_users, has_items = bool(problem.of_user_offsets.size), bool(problem.of_offsets.size)
    of_users = rated.per_user(left) if has_users else np.zeros(n)
    right = np.append(of_users, rated.per_item(left) if has_items else np.zeros(rated.n_items))
    del left
    weights = weights - alpha if alpha else weights
    diagonal = np.concatenate([
        rated.per_user(weights) + alpha * rated.n_items + problem.of_user_offsets if has_users else np.ones(n),
        rated.per_item(weights) + alpha * n + problem.of_offsets if has_items else np.ones(rated.n_items),
    ])  # fmt: skip
    found = right / diagonal
    if has_users and has_items:
        table = rated.table(weights)

        def times(x: Floats) -> Floats:
            users, items = table @ x[n:] + alpha * x[n:].sum(), table.T @ x[:n] + alpha * x[:n].sum()
            return np.asarray(diagonal * x + np.concatenate([users, items]))

        shape = (right.size, right.size)
        matrix = LinearOperator(shape, matvec=times, dtype=np.float64)
        inverse = LinearOperator(shape, matvec=lambda x: x / diagonal, dtype=np.float64)
        found, _ = cg(matrix, right, x0=found, rtol=CLOSED, atol=0.0, maxiter=500, M=inverse)
    return found[:n], problem.prior + found[n:]


@dataclass(frozen=True, eq=False)
class RidgesFor:
    """The ridge systems of one side: x (rows, d) and z (rows,) for the factors and the offsets of the other, and the
    prior of a row's own offset; unrated: α; None of a shard of the other side."""

    side: str
    other: Floats
    offsets: Floats
    prior: Floats
    penalty: Floats
    offset_penalty: Floats
    unrated: float = 0.0

    @cached_property
    def common(self) -> Floats:
        """α Σ over the other side, with or without a rating."""
        if not self.unrated:
            return NONE
        x = np.column_stack([self.other, np.ones(len(self.other))]) if self.offset_penalty.size else self.other
        return self.unrated * np.column_stack([x.T @ x, -(x.T @ self.offsets)])

    def __call__(self, shard: RatedShard) -> tuple[Floats, Floats] | None:
        if shard.side != self.side:
            return None
        left, values, weights = self.offsets[shard.columns], shard.values, shard.weights
        if self.unrated:
            weights = (weights if weights.size else np.ones(values.size)) - self.unrated
            values *= 1.0 + self.unrated / weights
        np.subtract(values, left, out=left)
        del values  # as large as the ratings
        if self.prior.size:
            left -= np.repeat(self.prior[shard.rows], np.diff(shard.bounds))
        own = self.offset_penalty[shard.rows] if self.offset_penalty.size else self.offset_penalty
        penalty = self.penalty[shard.rows]
        return solve_ridges(shard.bounds, shard.columns, left, weights, self.other, penalty, own, self.common)


@dataclass(frozen=True, eq=False)
class Regression:
    """Ridge after ridge: users for fixed items, items for fixed users."""

    problem: FactorProblem
    engine: Any = field(default_factory=Threads)
    known: dict[int, tuple[RatedShard, ...]] = field(default_factory=dict, repr=False)

    convex: ClassVar[bool] = True

    @property
    def has_global_bound(self) -> bool:
        """Whether the table of slopes is small enough, where it is dense."""
        return not self.problem.unrated or self.problem.rated.n_users * self.problem.rated.n_items <= DENSE

    def at_strength(self, lam_users: float, lam_items: float) -> Regression:
        return replace(self, problem=self.problem.at_strength(lam_users, lam_items))

    def begun(self, factors: Factors) -> ModelState:
        """The state of these factors, without dual state."""
        return _bare(self.at(factors))

    def complete(self, now: ModelState) -> ModelState:
        """The state with its dual state, the residuals, which take as much memory as the ratings."""
        return now if now.slopes.size else self.at(now.factors)

    def with_users(self, now: ModelState, precision: float) -> ModelState:
        """U and b_u of least J for the items as they are."""
        return self.at(self._users(now.factors))

    def with_items(self, now: ModelState, precision: float) -> ModelState:
        """M and b of least J for the users as they are."""
        return self.at(self._items(now.factors))

    def bend(self) -> float:
        """1: what a rating of weight 1 adds to the pull on an offset."""
        return 1.0

    def curvature(self, slopes: Floats) -> float:
        """Σ ψ²/w: what the heights would lose if the slopes were twice as steep, and half of it is lost already."""
        weights, alpha = self.problem.rated.weights, self.problem.unrated
        if alpha:  # slopes of all pairs, user by user
            own = weights if weights.size else np.ones(self.problem.rated.n_ratings)
            table = self.problem.rated.table(own).toarray()
            weights = np.where(table > 0.0, table, alpha).ravel()
        return float((slopes * slopes / weights).sum() if weights.size else (slopes * slopes).sum())

    def around(self, now: ModelState, precision: float) -> tuple[ModelState, ModelState]:
        """The current state, complete; and the state after both blocks, for any precision, without dual state."""
        return now, _bare(self.at(self._items(self._users(now.factors))))

    def offsets_only(self) -> ModelState:
        """The best model without factors."""
        users, items = best_offsets(self.problem)
        return self.at(replace(self.problem.without_factors(), offsets=items, user_offsets=users))

    def _users(self, factors: Factors) -> Factors:
        problem, none = self.problem, np.zeros(0)
        penalties = (problem.of_users, problem.of_user_offsets, problem.unrated)
        question = RidgesFor("users", factors.items, factors.offsets, none, *penalties)
        found, offsets = self._answers(question)
        return replace(factors, users=found, user_offsets=offsets)

    def _items(self, factors: Factors) -> Factors:
        problem = self.problem
        penalties = (problem.of_items, problem.of_offsets, problem.unrated)
        question = RidgesFor("items", factors.users, factors.user_offsets, problem.prior, *penalties)
        found, away = self._answers(question)
        return replace(factors, items=found, offsets=problem.prior + away)

    def _answers(self, question: RidgesFor) -> tuple[Floats, Floats]:
        answers = [one for one in self.engine.map(question, self._shards) if one is not None]
        return np.concatenate([one[0] for one in answers]), np.concatenate([one[1] for one in answers])

    @cached_property
    def _shards(self) -> tuple[RatedShard, ...]:
        """Of users and of items, at once: an engine keeps one set of shards."""
        rated, key = self.problem.rated, id(self.problem.rated)
        if key not in self.known:
            none = np.zeros(rated.n_users)
            self.known[key] = (*user_shards(rated, SHARD_ROWS, none), *item_shards(rated, SHARD_ROWS))
        return self.known[key]

    def at(self, factors: Factors) -> ModelState:
        """The state of these factors. ψ is the weighted residual; δ_u = -Σ_j (ψ²/(2w) + ψ y), minus the conjugate."""
        rated = self.problem.rated
        slopes, alpha = factors.scores(rated.bounds, rated.columns), self.problem.unrated
        scores = slopes.copy() if alpha else slopes
        heights = np.zeros(rated.n_users)
        loss = squared_loss(rated.bounds, rated.values, rated.weights, slopes, heights)
        if alpha:
            slopes -= alpha * scores
            left, right = factors.sides()
            squares = np.einsum("ij,ij->i", left @ (right.T @ right), left) - rated.per_user(scores**2)
            size = np.einsum("ij,ij->i", np.abs(left) @ (np.abs(right).T @ np.abs(right)), np.abs(left))
            loss += 0.5 * alpha * float(squares.sum())
            heights -= 0.5 * alpha * (squares + UNIT * (rated.n_items + 4 * left.shape[1] + 16) * size)
        return ModelState.at(self.problem, factors, loss, slopes, heights)


def _bare(now: ModelState) -> ModelState:
    """Without the dual state, which the factors determine."""
    return replace(now, slopes=np.zeros(0), heights=np.zeros(0))


def balanced(problem: FactorProblem, factors: Factors) -> Factors:
    """P s Qᵀ, the decomposition of √Λ_U U Mᵀ √Λ_M, as U = Λ_U^-½ P √s and M = Λ_M^-½ Q √s: the penalty is then Σ s, the
    trace norm, and no scores change but by rounding."""
    if not factors.dimensions:
        return factors
    rows, columns = np.sqrt(problem.of_users)[:, None], np.sqrt(problem.of_items)[:, None]
    first, left = np.linalg.qr(factors.users * rows)
    second, right = np.linalg.qr(factors.items * columns)
    inside, size, across = np.linalg.svd(left @ right.T)
    root, d = np.sqrt(size), factors.dimensions
    users, items = np.zeros(factors.users.shape), np.zeros(factors.items.shape)
    k = min(d, size.size)
    users[:, :k] = (first @ inside[:, :k]) * root[:k] / rows
    items[:, :k] = (second @ across[:k].T) * root[:k] / columns
    return replace(factors, users=users, items=items)
