"""Layers of networks that decide: differentiable argmax of any linear problem, and losses of its decisions.

Y is the feasible set of a problem, θ (..., n) the scores that a network predicts, one a variable. A layer sees Y only
through an oracle, θ to a vertex of argmax_{y in Y} θᵀy: a function of arrays (m, n), `RankingArgmax`, or a problem of
`formulations` whose objective is replaced by θ; if it minimizes, θ are costs. Layers have no weights: call them in a
loop, or from the `forward` of a module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from formulations.arrays import Floats
from formulations.problems.cvxpy_problem import as_form, is_model
from formulations.problems.problem import Problem
from rankopt.errors import DataError, OptionError
from rankopt.losses.oracle_problem import ProblemOracle, variables_of
from rankopt.losses.position_weights import parse_position_weights
from rankopt.losses.segment_ops import mean_of_runs, sorted_rows
from rankopt.options import NOT_NEGATIVE, POSITIVE, Interval, check, seed_from
from rankopt.torch.losses import REDUCTIONS, Pullback, check_tensor, differentiable, numbers

OUTSIDE = "has no second derivative because its gradient is computed outside PyTorch"


def inner(scores: Floats, y: Floats) -> Floats:
    """scoresᵀy by row; a variable at 0 counts 0, whatever its score."""
    return np.asarray((np.where(y == 0.0, 0.0, scores) * y).sum(axis=-1))


@dataclass(frozen=True)
class RankingArgmax:
    """The oracle of rankings: y_j is the weight c of the position of document j in the ranking by score.

    position_weights: c, as in `LargeMarginRanker`; [1, 1, 1] selects the top 3. Documents of equal score share the mean
    of their weights. Documents with score -inf are padding and get 0. Called with relevance labels in place of scores,
    it is the target of a loss: the mean of all rankings by label.
    """

    position_weights: Any = "power(0.5)"

    def __post_init__(self) -> None:
        parse_position_weights(self.position_weights).weights(1)

    def __call__(self, scores: Any) -> Floats:
        given = numbers(scores)
        rows = given.reshape(-1, given.shape[-1])
        query, flat, y = np.repeat(np.arange(len(rows)), rows.shape[1]), rows.ravel(), np.empty(rows.size)
        weights = np.tile(parse_position_weights(self.position_weights).weights(rows.shape[1]), len(rows))
        order = sorted_rows(query, flat)
        y[order] = mean_of_runs(weights, query, flat[order]) if flat.size else weights
        return np.where(flat == -np.inf, 0.0, y).reshape(given.shape)


@dataclass(frozen=True, eq=False)
class _ProblemArgmax:
    """The oracle of a problem."""

    problem: ProblemOracle

    def __call__(self, scores: Floats) -> Floats:
        n = self.problem.profit.shape[1]
        if scores.shape[1] != n:
            raise DataError(f"scores must have the shape (..., {n}), one a variable of the problem; got {scores.shape}")
        return self.problem.solve(scores).decision


def get_oracle(argmax: Any, solver: Any) -> tuple[Callable[[Floats], Any], float]:
    """The oracle, and the sign of the scores: -1 for a problem that minimizes. OptionError for what is none."""
    if isinstance(argmax, Problem) or is_model(argmax):
        problem = as_form(argmax)
        oracle = ProblemOracle((problem,), np.zeros((1, variables_of(problem))), solver)
        return _ProblemArgmax(oracle), 1.0 if problem.is_maximization else -1.0
    if callable(argmax) and not isinstance(argmax, type):
        return argmax, 1.0
    raise OptionError(
        "argmax must be a problem of formulations, or a function from scores (m, n) to vertices (m, n); "
        f"got {argmax!r:.80}"
    )


@dataclass(eq=False)
class Oracle:
    """Base of what solves: argmax, an oracle or a problem; solver, of the problem, as in `formulations.solve`."""

    argmax: Any
    solver: Any = field(default="auto", kw_only=True)

    def __post_init__(self) -> None:
        self._oracle, self.sign = get_oracle(self.argmax, self.solver)

    def solve(self, scores: Floats) -> Floats:
        """(m, n) a vertex for each row of scores."""
        if not (scores < np.inf).all():
            raise DataError("the scores of a layer must be numbers below inf; got inf or nan. Check the network.")
        found = np.asarray(self._oracle(scores), dtype=np.float64)
        if found.shape != scores.shape or not np.isfinite(found).all():
            raise DataError(
                f"argmax must return one finite vertex for each row, of shape {scores.shape}; got shape {found.shape}"
            )
        return found


class Layer(Oracle):
    """Base of the layers."""

    def evaluate(self, theta: Floats) -> tuple[Floats, Pullback, Floats, Floats]:
        """For scores (m, n): the layer's y, its pullback, the convex function F (m,) whose gradient is the next, and
        this gradient (m, n)."""
        raise NotImplementedError

    def __call__(self, theta: Any) -> Any:
        """The layer's y, a tensor of the shape of the scores."""
        check_tensor("scores", theta)
        if theta.ndim == 0 or theta.shape[-1] == 0:
            raise DataError(f"scores must have the shape (..., n), n > 0; got {tuple(theta.shape)}")

        def compute(given: Floats) -> tuple[Floats, Pullback]:
            y, pullback, _, _ = self.evaluate(given.reshape(-1, given.shape[-1]))
            return y.reshape(given.shape), lambda grad: pullback(grad.reshape(y.shape)).reshape(given.shape)

        return differentiable(self.sign * theta, compute, f"{type(self).__name__} {OUTSIDE}")

    def offset(self, y: Floats) -> Floats:
        """(m,) Ω(y), where it is known: F(θ) + Ω(y) - θᵀy is at least 0."""
        return np.zeros(len(y))


@dataclass(eq=False)
class PerturbedArgmax(Layer):
    """y_ε(θ) = E[argmax_{y in Y} (θ + εZ)ᵀy], Z standard normal: the mean over samples, with the unbiased estimate
    E[y Zᵀ]/ε of its Jacobian [Berthet et al. 2020].

    Parameters
    ----------
    argmax : a problem of `formulations`, whose objective is replaced by the scores, costs if it minimizes; or an
        oracle, a function from scores (m, n) to vertices (m, n) that maximizes.
    epsilon : ε > 0, in units of the scores. samples : at least 2; each is one call of the oracle for each row.
    perturbation : "additive"; or "multiplicative", θ exp(εZ - ε²/2): costs keep their signs [Dalle et al. 2022].
    random_state : a seed or a NumPy generator; None is 0. Each call draws new noise.
    solver : of a problem, as in `formulations.solve`.
    """

    epsilon: float = 1.0
    samples: int = 10
    perturbation: str = "additive"
    random_state: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check("epsilon", self.epsilon, (POSITIVE,))
        check("samples", self.samples, (Interval(2, integer=True),))
        check("perturbation", self.perturbation, ("additive", "multiplicative"))
        self._noise = np.random.default_rng(seed_from(self.random_state))

    def evaluate(self, theta: Floats) -> tuple[Floats, Pullback, Floats, Floats]:
        noise, scale = self._noise.standard_normal((self.samples, *theta.shape)), self.epsilon
        additive = self.perturbation == "additive"
        factor = np.ones(noise.shape) if additive else np.exp(scale * noise - scale**2 / 2.0)
        scores = theta + scale * noise if additive else theta * factor
        y = self.solve(scores.reshape(-1, theta.shape[1])).reshape(noise.shape)
        mean = y.mean(axis=0)
        width = scale * (np.ones(theta.shape) if additive else np.where(theta == 0.0, np.inf, theta))

        def pullback(grad: Floats) -> Floats:
            weight = (grad * (y - mean)).sum(axis=2, keepdims=True)  # centered: less variance, and no bias
            return np.asarray((weight * noise).sum(axis=0) / (self.samples - 1) / width)

        return mean, pullback, inner(scores, y).mean(axis=0), (factor * y).mean(axis=0)


@dataclass(eq=False)
class SparseMAP(Layer):
    """y(θ) = argmax over the convex hull of Y of θᵀy - ½‖y‖²: the point of the hull nearest to θ, a combination of few
    vertices [Niculae et al. 2018].

    It is found by Wolfe's algorithm (fully corrective Frank-Wolfe) to a gap of `tol` times 1 + ‖θ‖². The Jacobian is
    the projection onto the directions of the active vertices. Parameters: argmax and solver, as in `PerturbedArgmax`.
    """

    tol: float = 1e-12

    def __post_init__(self) -> None:
        super().__post_init__()
        check("tol", self.tol, (NOT_NEGATIVE,))

    def evaluate(self, theta: Floats) -> tuple[Floats, Pullback, Floats, Floats]:
        padding, y = theta == -np.inf, self.solve(theta)
        target = np.where(padding, 0.0, theta)
        active = [(row[None, :], np.ones(1)) for row in y]
        limits, left = self.tol * (1.0 + (target**2).sum(axis=1)), np.arange(len(y))
        while left.size:
            away = target[left] - y[left]
            vertices = self.solve(np.where(padding[left], -np.inf, away))
            moved = []
            for i, vertex, gap in zip(left.tolist(), vertices, inner(away, vertices - y[left]), strict=True):
                if gap > limits[i] and not (active[i][0] == vertex).all(axis=1).any():
                    hull = _nearest(np.vstack([active[i][0], vertex]), np.append(active[i][1], 0.0), target[i])
                    point = hull[1] @ hull[0]
                    if np.linalg.norm(target[i] - point) < np.linalg.norm(target[i] - y[i]):  # else it is rounding
                        active[i], y[i] = hull, point
                        moved.append(i)
            left = np.array(moved, dtype=np.int64)

        def pullback(grad: Floats) -> Floats:
            return np.array([_project(found[0], row) for found, row in zip(active, grad, strict=True)]).reshape(y.shape)

        return y, pullback, inner(target, y) - self.offset(y), y

    def offset(self, y: Floats) -> Floats:
        return np.asarray((y**2).sum(axis=1) / 2.0)


REST = 1e-12  # weights and singular values of this size, or less, are rounding


def _nearest(vertices: Floats, weights: Floats, target: Floats) -> tuple[Floats, Floats]:
    """The point of the hull of vertices (k, n) nearest to the target, from the combination `weights` (k,) on: the
    vertices that it needs and their weights, all positive."""
    while True:
        rest = np.linalg.lstsq((vertices[1:] - vertices[0]).T, target - vertices[0], rcond=None)[0]
        nearest = np.append(1.0 - rest.sum(), rest)
        out = np.flatnonzero(nearest <= REST)
        if out.size:  # go as far as all weights remain nonnegative
            ratio = weights[out] / np.maximum(weights[out] - nearest[out], REST)
            nearest = weights + min(1.0, float(ratio.min())) * (nearest - weights)
            nearest[out[ratio.argmin()]] = 0.0
        keep = nearest > REST
        vertices, weights = vertices[keep], nearest[keep] / nearest[keep].sum()
        if not out.size:
            return vertices, weights


def _project(vertices: Floats, grad: Floats) -> Floats:
    """The projection of a gradient onto the directions of the hull of these vertices."""
    basis, sizes, _ = np.linalg.svd((vertices[1:] - vertices[0]).T, full_matrices=False)
    basis = basis[:, sizes > REST * sizes.max(initial=1.0)]
    return np.asarray(basis @ (basis.T @ grad))


class _DecisionLoss:
    """What losses of decisions share."""

    reduction: str

    def _reduced(self, theta: Any, compute: Callable[[Floats], tuple[Floats, Floats]]) -> Any:
        """The value of scores (..., n) as a tensor, from a function of (m, n) to values (m,) and slopes (m, n)."""

        def rows(given: Floats) -> tuple[Floats, Pullback]:
            value, slope = compute(given.reshape(-1, given.shape[-1]))
            return value.reshape(given.shape[:-1]), lambda grad: grad[..., None] * slope.reshape(given.shape)

        found = differentiable(theta, rows, f"{type(self).__name__} {OUTSIDE}")
        total = found if self.reduction == "none" else found.sum()
        return total / max(found.numel(), 1) if self.reduction == "mean" else total


def _matching(name: str, given: Any, theta: Any) -> Floats:
    """(m, n) numbers of the shape of the scores; DataError for another."""
    found = numbers(given)
    if found.shape != tuple(theta.shape) or np.isnan(found).any():
        raise DataError(f"{name} must be numbers of the shape {tuple(theta.shape)}; got shape {found.shape}, or nan")
    return np.asarray(found.reshape(-1, found.shape[-1]))


@dataclass(eq=False)
class FenchelYoungLoss(_DecisionLoss):
    """loss(θ) = F(θ) + Ω(ȳ) - θᵀȳ, with F of a layer and an observed decision ȳ; the gradient is ∇F(θ) - ȳ, without a
    Jacobian [Blondel, Martins and Niculae 2020].

    layer: `PerturbedArgmax`, F = E[max_y (θ + εZ)ᵀy], without Ω, which is unknown; or `SparseMAP`, Ω = ½‖y‖² and
    F = max_y θᵀy - Ω(y). reduction: "mean" over the rows (0 without rows), "sum" or "none". Call it with scores and
    decisions (..., n).
    """

    layer: Any
    reduction: str = "mean"

    def __post_init__(self) -> None:
        if not isinstance(self.layer, Layer):
            raise OptionError(f"layer must be PerturbedArgmax(...) or SparseMAP(...); got {self.layer!r:.80}")
        check("reduction", self.reduction, REDUCTIONS)

    def __call__(self, theta: Any, decisions: Any) -> Any:
        """The loss, a tensor."""
        check_tensor("scores", theta)
        y = _matching("decisions", decisions, theta)

        def compute(given: Floats) -> tuple[Floats, Floats]:
            _, _, potential, gradient = self.layer.evaluate(given)
            return potential + self.layer.offset(y) - inner(given, y), gradient - y

        return self._reduced(self.layer.sign * theta, compute)


@dataclass(eq=False)
class SPOPlusLoss(_DecisionLoss, Oracle):
    """Upper bound of the regret, what the decision under predicted costs ĉ costs more than the best one under the true
    costs c: max_y (c - 2ĉ)ᵀy + 2ĉᵀy* - cᵀy* [Elmachtoub and Grigas 2022, definition 3].

    Parameters
    ----------
    argmax : as in `PerturbedArgmax`. Costs are profits with an oracle, and with a problem that maximizes.
    bound : "convex", SPO+; or "nonconvex", 2ĉᵀy(ĉ) in place of 2ĉᵀy*, with y(ĉ) the decision under ĉ: tighter.
    reduction : "mean" over the rows, "sum" or "none".
    solver : of a problem, as in `formulations.solve`.
    """

    bound: str = "convex"
    reduction: str = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        check("bound", self.bound, ("convex", "nonconvex"))
        check("reduction", self.reduction, REDUCTIONS)

    def __call__(self, predicted: Any, costs: Any, decisions: Any = None) -> Any:
        """The loss of predicted costs (..., n), a tensor. decisions: y*, if known, which saves one solution a row."""
        check_tensor("predicted costs", predicted)
        profit = self.sign * _matching("costs", costs, predicted)
        best = self.solve(profit) if decisions is None else _matching("decisions", decisions, predicted)

        def compute(given: Floats) -> tuple[Floats, Floats]:
            margin = given - np.where(given == -np.inf, 0.0, profit)
            y, target = self.solve(margin), best if self.bound == "convex" else self.solve(given)
            return inner(margin, y) + inner(profit, best) - inner(given, target), y - target

        return self._reduced(2.0 * self.sign * predicted, compute)
