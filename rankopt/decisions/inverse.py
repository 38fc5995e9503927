"""Inverse optimization: costs under which observed decisions are optimal, or the proof that there are none.

Observations are features x_i and decisions y_i of a problem with the points Y_i; costs are ĉ_i = W x_i, without a
regularizer, so that scaling W is free (a problem that maximizes has profits, and all signs change).

*Unique optimum.* loss_i(W) = max_{y in Y_i} ‖y - y_i‖₁ + 2ĉ_iᵀ(y_i - y), variables within [0, 1]. If loss_i = 0, then
y_i is better than all other decisions. If loss_i < 1, then W / (1 - loss_i) has loss 0, unless Y_i has vertices that
are not of zeros and ones. Conversely, costs under which each y_i is the only optimum have loss 0 after scaling. So the
least mean loss is 0 exactly where such costs exist.

*Ties allowed.* loss_i(W) = max_{y in Y_i} 2ĉ_iᵀ(y_i - y), how far y_i is from optimal. W = 0 would do, and so would all
costs that are constant on Y_i. With a point ȳ_i of the relative interior of the hull of Y_i, ĉ_iᵀȳ_i >= ĉ_iᵀy_i holds
for an optimal y_i, with equality only for such constant costs. They are excluded by

    (1/m) Σ_i 2ĉ_iᵀ(ȳ_i - y_i) = 1: on average the observed decision is better than ȳ_i by one unit.

Both are minimized by cutting planes, a linear program min (1/m) Σ_i ξ_i, ξ_i >= ‖y - y_i‖₁ + 2ĉ_iᵀ(y_i - y), over the
decisions y that the oracle has returned. Multipliers α >= 0 of the planes with Σ α <= 1/m for each instance, and μ of
the normalization, prove the bound Σ α ‖y - y_i‖₁ + μ - R ‖∇‖₁ for all |W| <= R, ∇ the gradient of the Lagrangian.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import null_space
from scipy.sparse import csr_array, hstack, vstack

from formulations.arrays import Bools, Floats
from formulations.display import CompactReprMixin
from formulations.errors import InfeasibleError, SolverError
from formulations.problems.linear_program import LinearProgram
from formulations.problems.problem import Problem
from formulations.solvers.highs import Highs
from rankopt.decisions.regressor import DecisionRegressor
from rankopt.errors import DataError
from rankopt.losses.oracle_problem import ProblemOracle, check_unit_box, variables_of
from rankopt.optimize.certificate import Certificate, History, Step, Stop
from rankopt.optimize.concave_convex import Training
from rankopt.optimize.state import PlaneSet, State
from rankopt.options import COUNT, NOT_NEGATIVE, POSITIVE, check

SAME = 1e-9  # of a difference of values, that is rounding
EXPLAINED = 1e-6  # the loss that counts as 0


@dataclass(frozen=True, eq=False)
class RecoveredCosts(CompactReprMixin):
    """Costs that explain observed decisions as well as any.

    model: a fitted DecisionRegressor that predicts the costs; its `certificate_` has the mean loss and the proven bound
    of the least one. loss: (m,) the proven loss of each observation. explained: (m,) whether it is proved the unique
    optimum (loss 0 under a multiple of its costs); with ties, an optimum (loss <= tol).
    """

    model: DecisionRegressor
    loss: Floats
    explained: Bools


def recover_costs(
    problem: Any,
    X: Any,
    decisions: Any,
    *,
    ties: bool = False,
    fit_intercept: bool = True,
    solver: Any = "auto",
    limit: float = 1e6,
    tol: float = 1e-6,
    max_iter: int = 1000,
) -> RecoveredCosts:
    """Costs, linear in features, under which each observed decision is the unique optimum; the least loss if there are
    none.

    Parameters
    ----------
    problem, X, fit_intercept, solver : as in `DecisionRegressor`.
    decisions : (m, n) observed decisions, feasible; unless `ties` of zeros and ones, with variables in [0, 1].
    ties : whether it suffices that each is an optimum, among others; costs under which all decisions are alike are
        excluded by a normalization.
    limit : the bound of the least loss is proved for weights of at most this magnitude.
    tol : the gap between the loss and its proven bound at which the search ends. max_iter : of its linear programs.

    Raises
    ------
    DataError : a decision breaks a constraint, or a variable is not within [0, 1]. InfeasibleError : with ties, only
    costs under which all decisions are alike explain the observations.
    """
    for name, option, rule in (("limit", limit, POSITIVE), ("tol", tol, NOT_NEGATIVE), ("max_iter", max_iter, COUNT)):
        check(name, option, (rule,))
    check("ties", ties, (bool,))
    model = DecisionRegressor(problem, loss="hamming", fit_intercept=fit_intercept, solver=solver, tol=tol)
    data = model._read(X, None, decisions, None)
    oracle, observed = data.oracle, data.oracle.target
    if oracle.broken:
        raise DataError(f"{oracle.broken} of {len(observed)} decisions break the constraints; leave them out")
    if not (ties or np.isin(observed, (0.0, 1.0)).all()):
        raise DataError("decisions must be of zeros and ones to be unique optima by a margin; pass ties=True")
    if not ties:
        check_unit_box(oracle)
    features, normal = data.design.reshape(*observed.shape, -1) if oracle.flat else data.design[:, None, :], None

    def gradients(weight: Floats, terms: Floats = features) -> Floats:
        """(m, k) the gradients by W of weightᵀ(scores), for weights (m, n)."""
        product = 2.0 * data.sign * weight[:, :, None] * terms
        return product.sum(axis=1) if oracle.flat else product.reshape(len(weight), -1)

    if ties:
        oracle = replace(oracle, profit=np.zeros(observed.shape))
        better = observed - np.array([interior_decision(one, solver) for one in oracle.problems])
        normal = gradients(better).mean(axis=0)
        normal[np.abs(normal) <= SAME * np.abs(gradients(np.abs(better), np.abs(features))).mean(axis=0)] = 0.0
        if not normal.any():
            raise InfeasibleError("only costs under which all decisions are alike make every observed decision optimal")

    def losses(w: Floats, factor: Any = 1.0) -> tuple[Floats, Floats]:
        """The proven losses (m,), of costs times a factor (m, 1), and decisions (m, n) that have them."""
        scores = 2.0 * data.sign * data.design @ w.reshape(-1, data.design.shape[1]).T
        scores = factor * scores.reshape(observed.shape)
        found = oracle.at(scores.reshape(oracle.shape), prove=True)
        own = ((oracle.profit - scores) * observed).sum(axis=1)
        return np.maximum(found.bound + own, 0.0), found.slope.reshape(observed.shape)

    master = _Master(len(observed), gradients(observed).shape[1], normal, limit)
    best, bound, stop, last = np.inf, 0.0, Stop.ITERATIONS, np.zeros(0)
    for _ in range(max_iter):
        w, proved = master.solve()
        if np.array_equal(w, last):  # the oracle is inexact: its planes do not separate w
            stop = Stop.STALLED
            break
        last = w
        if ties and np.abs(w).max() > limit:
            raise DataError(f"weights exceed limit = {limit:g}; raise it, or scale or remove features")
        (loss, decision), bound = losses(w), max(bound, proved)
        if not ties and tol < loss.max() < 1.0:  # unique optima by some margin: enlarge it
            larger = w / (1.0 - loss.max())
            apart = losses(larger)
            if apart[0].mean() < loss.mean():  # else vertices are fractional
                w, (loss, decision) = larger, apart
        if loss.mean() < best:
            best, chosen, least = float(loss.mean()), w, loss
        if best - bound <= tol:
            stop = Stop.GAP
            break
        master.add(gradients(decision - observed), (oracle.profit * (observed - decision)).sum(axis=1))
    state = State(PlaneSet.empty(1, w.size), np.zeros(0), chosen, chosen)
    claimed = {"claimed": oracle.claimed} if oracle.claimed else {}
    proof = Certificate("global", best, min(bound, best), stop, parts=claimed)
    model._keep(Training(chosen, proof, History.from_rows(Step, []), state, best), 0.0)
    if ties:
        return RecoveredCosts(model, least, least <= tol)
    factor = 1.0 / np.where(least < 1.0, 1.0 - least, 1.0)
    return RecoveredCosts(model, least, (least < 1.0) & (losses(chosen, factor[:, None])[0] <= EXPLAINED))


class _Master:
    """min (1/m) Σ_i ξ_i, ξ_i >= height_k + gradient_kᵀw for planes k of observation i, ξ >= 0, and normalᵀw = 1 if
    there is a normal."""

    def __init__(self, m: int, size: int, normal: Floats | None, limit: float) -> None:
        self.m, self.size, self.limit = m, size, limit
        self.gradients, self.heights, self.owners = csr_array((0, size)), np.zeros(0), np.zeros(0, dtype=np.int64)
        self.normal = np.zeros((0, size)) if normal is None else normal[None]

    def add(self, gradients: Floats, heights: Floats) -> None:
        """A plane of each observation, gradients (m, k) and heights (m,)."""
        held = np.flatnonzero(gradients.any(axis=1) | (heights > 0.0))
        self.gradients = vstack([self.gradients, csr_array(gradients[held])], format="csr")
        self.heights, self.owners = np.append(self.heights, heights[held]), np.append(self.owners, held)

    def solve(self) -> tuple[Floats, float]:
        """A minimizer w, and the bound that the duals prove for all weights up to the limit."""
        count, equations = self.owners.size, len(self.normal)
        slack = csr_array((np.ones(count), (np.arange(count), self.owners)), (count + equations, self.m))
        rows = hstack([vstack([-self.gradients, csr_array(self.normal)]), slack])
        floor = np.append(self.heights, np.ones(equations))
        ceiling = np.append(np.full(count, np.inf), np.ones(equations))
        objective = np.append(np.zeros(self.size), np.full(self.m, 1.0 / self.m))
        lower = np.append(np.full(self.size, -np.inf), np.zeros(self.m))
        endless = np.full(lower.size, np.inf)
        found = Highs().solve(LinearProgram(objective, rows, floor, ceiling, lower, endless, is_maximization=False))
        if found.y is None:
            raise SolverError("HiGHS has no duals of the master program; scale the features")
        alpha, mu = np.maximum(found.y[:count], 0.0), found.y[count:]
        alpha /= np.maximum(1.0, self.m * np.bincount(self.owners, alpha, self.m))[self.owners]
        slope = self.gradients.T @ alpha - mu @ self.normal
        w = found.x[: self.size]
        w = w / (self.normal[0] @ w) if equations else w
        return w, float(alpha @ self.heights + mu.sum() - self.limit * np.abs(slope).sum())


def interior_decision(problem: Problem, solver: Any) -> Floats:
    """(n,) a point of the relative interior of the convex hull of the points: the mean of vertices that span it."""
    n = variables_of(problem)
    oracle = ProblemOracle((problem,), np.zeros((1, n)), solver)
    points = oracle.solve(np.zeros((1, n))).decision
    while (free := null_space(points - points[0])).size:  # ends: every round adds a dimension
        found = oracle.solve(np.vstack([free.T, -free.T])).decision
        new = found[(np.abs((found - points[0]) @ free) > SAME * (1.0 + np.abs(found).max())).any(axis=1)]
        if not len(new):
            break
        points = np.vstack([points, new])
    return np.asarray(np.unique(points, axis=0).mean(axis=0))
