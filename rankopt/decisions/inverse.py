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

Some instances may still have constant costs. W of loss 0 are a cone, so that W + W' has loss 0, where W' has loss 0 and
is normalized over those instances alone. If there is no such W', none of them has costs that are not constant.

Both are minimized by cutting planes, a linear program min (1/m) Σ_i ξ_i, ξ_i >= ‖y - y_i‖₁ + 2ĉ_iᵀ(y_i - y), over the
decisions y that the oracle has returned. Multipliers α >= 0 of the planes with Σ α <= 1/m for each instance, and μ of
the normalization, prove the bound Σ α ‖y - y_i‖₁ + μ - R ‖∇‖₁ for all |W| <= R, ∇ the gradient of the Lagrangian, with
features in units of their largest magnitude.
"""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import null_space
from scipy.sparse import csr_array, hstack, vstack
from sklearn.exceptions import ConvergenceWarning

from formulations.arrays import Bools, Floats
from formulations.display import CompactReprMixin
from formulations.errors import InfeasibleError, SolverError, UnboundedError
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
    of the least one. loss: (m,) the proven loss of each observation. explained: (m,) whether it is proved the only
    optimum under its costs, by more than rounding; with ties, one of the optima (loss <= tol, in units of how much it
    is better than a point inside), where the costs do not treat all decisions of the instance alike.
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
    """Costs, linear in features, under which each observed decision is the unique optimum; else the least loss.

    Parameters
    ----------
    problem, X, fit_intercept, solver : as in `DecisionRegressor`; the feasible set must be bounded.
    decisions : (m, n) observed decisions, feasible; unless `ties` of zeros and ones, with variables in [0, 1].
    ties : whether it suffices that each is an optimum, among others; costs under which all decisions are alike are
        excluded by a normalization.
    limit : of |w| max_i |x_i| for each weight w and its feature x, the most that it adds to a cost. Weights are within
        the limit, and the bound of the least loss is proved for such weights. Units of features do not matter.
    tol : the gap between the loss and its proven bound at which the search ends. max_iter : of its linear programs.

    Raises
    ------
    DataError : a decision breaks a constraint, or a variable is not within [0, 1]. InfeasibleError : with ties, only
    costs under which all decisions are alike explain the observations. UnboundedError : the feasible set is unbounded.
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
    try:
        if not ties:
            check_unit_box(oracle)
        inside = np.array([interior_decision(one, solver) for one in oracle.problems]) if ties else None
    except UnboundedError as error:
        raise UnboundedError(f"the feasible set must be bounded; add upper limits of variables ({error})") from error
    units = np.ldexp(1.0, np.frexp(np.abs(data.design).max(axis=0))[1] - 1)  # largest features are in [1, 2)
    seen = _Observations(oracle, data.design / units, data.sign, float(limit), float(tol), max_iter)
    found, explained = seen.unique_optima() if inside is None else seen.optima(observed - inside)
    w = (found.w.reshape(-1, units.size) / units).ravel()
    claimed = {"claimed": oracle.claimed} if oracle.claimed else {}
    value = float(found.loss.mean())
    proof = Certificate("global", value, min(found.bound, value), found.stop, parts=claimed)
    state = State(PlaneSet.empty(1, w.size), np.zeros(0), w, w)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it names lam
        model._keep(Training(w, proof, History.from_rows(Step, []), state, value), 0.0)
    if found.stop is not Stop.GAP and proof.gap > tol:
        cure = {Stop.ITERATIONS: "raise max_iter or ", Stop.STALLED: "pass an exact solver or "}.get(found.stop, "")
        text = f"recover_costs stopped before the gap closed ({proof}); {cure}accept a larger tol"
        warnings.warn(text, ConvergenceWarning, stacklevel=2)
    return RecoveredCosts(model, found.loss, explained)


class _Found(NamedTuple):
    """Weights w, their losses (m,), the proven bound of the least mean loss, and why the search ended."""

    w: Floats
    loss: Floats
    bound: float
    stop: Stop


@dataclass(frozen=True, eq=False)
class _Observations:
    """Observed decisions, the target of the oracle, with features in units in which the largest are in [1, 2); and the
    options of the search."""

    oracle: ProblemOracle
    design: Floats
    sign: float
    limit: float
    tol: float
    max_iter: int

    def gradients(self, weight: Floats) -> Floats:
        """(m, k) the gradients by w of weightᵀ(scores), for weights (m, n)."""
        features = self.design.reshape(*weight.shape, -1) if self.oracle.flat else self.design[:, None, :]
        product = 2.0 * self.sign * weight[:, :, None] * features
        return product.sum(axis=1) if self.oracle.flat else product.reshape(len(weight), -1)

    def scores(self, w: Floats) -> Floats:
        """(m, n) twice the predicted profits."""
        scores = 2.0 * self.sign * self.design @ w.reshape(-1, self.design.shape[1]).T
        return np.asarray(scores.reshape(self.oracle.profit.shape))

    def losses(self, w: Floats, factor: Any = 1.0) -> tuple[Floats, Floats]:
        """The proven losses (m,), of costs times a factor (m, 1), and decisions (m, n) that have them."""
        oracle, scores = self.oracle, factor * self.scores(w)
        found = oracle.at(scores.reshape(oracle.shape), prove=True)
        own = ((oracle.profit - scores) * oracle.target).sum(axis=1)
        return np.maximum(found.bound + own, 0.0), found.slope.reshape(scores.shape)

    def better(self, w: Floats, apart: Floats) -> Floats:
        """(m,) scoresᵀ apart, 0 where it is negative or rounding. apart: (m, n) differences to other points."""
        terms = self.scores(w) * apart
        total = terms.sum(axis=1)
        return np.where(total > SAME * np.abs(terms).sum(axis=1), total, 0.0)

    def unique_optima(self) -> tuple[_Found, Bools]:
        """Weights of least loss, and which observed decisions are the only optima under them.

        y_i is, if a factor t of its costs makes ‖y - y_i‖₁ + 2t ĉ_iᵀ(y_i - y) <= 0 for all y. The least one is a
        greatest ratio, found by Dinkelbach's method (1967).
        """
        found = self.search(_Master(self))
        factor = np.ones(len(found.loss))
        while True:
            loss, decision = self.losses(found.w, factor[:, None])
            apart = self.oracle.target - decision
            better = self.better(found.w, apart)
            needed = np.divide(np.abs(apart).sum(axis=1), better, out=np.zeros_like(better), where=better > 0.0)
            rising = (loss > EXPLAINED) & (needed > factor * (1.0 + SAME))
            if not rising.any():
                return found, loss <= EXPLAINED
            factor = np.where(rising, needed, factor)

    def optima(self, apart: Floats) -> tuple[_Found, Bools]:
        """Weights of least loss where ties are allowed, and which decisions are optima, under costs that are not
        constant. apart: (m, n) y_i - ȳ_i. Raises InfeasibleError where all costs of least loss are constant."""
        untied = replace(self, oracle=replace(self.oracle, profit=np.zeros(apart.shape)))
        master = _Master(untied).normalized(apart)
        found = untied.search(master)

        def explained(found: _Found) -> Bools:
            better = untied.better(found.w, apart)
            return np.asarray((better > 0.0) & (found.loss <= max(self.tol, SAME) * better))

        known = explained(found)
        while found.loss.mean() <= self.tol and not known.all():
            try:
                more = untied.search(master.normalized(apart * ~known[:, None]))
            except (InfeasibleError, DataError):
                break
            w = found.w + more.w
            w = w / (master.normal[0] @ w)
            joint = found._replace(w=w, loss=untied.losses(w)[0])
            if more.loss.mean() > self.tol or not (explained(joint) & ~known).any():
                break
            found, known = joint, explained(joint)
        return found, known

    def search(self, master: _Master) -> _Found:
        """Cutting planes: weights of least mean loss."""
        best: _Found | None = None
        bound, stop, last = 0.0, Stop.ITERATIONS, np.zeros(0)
        for _ in range(self.max_iter):
            try:
                w, proved = master.solve()
            except SolverError:
                if best is None:
                    raise
                stop = Stop.MASTER
                break
            bound, same, last = max(bound, proved), np.array_equal(w, last), w
            loss, decision = self.losses(w)
            if not len(master.normal) and self.tol < loss.max() < 1.0:  # unique optima by some margin: enlarge it
                larger = np.clip(w / (1.0 - loss.max()), -master.limits, master.limits)
                apart = self.losses(larger)
                if apart[0].mean() < loss.mean():  # else vertices are fractional
                    w, (loss, decision) = larger, apart
            if best is None or loss.mean() < best.loss.mean():
                best = _Found(w, loss, bound, stop)
            closed = best.loss.mean() - bound <= self.tol
            if closed or same:  # same: the oracle is inexact, its planes do not separate w
                stop = Stop.GAP if closed else Stop.STALLED
                break
            observed = self.oracle.target
            master.add(self.gradients(decision - observed), (self.oracle.profit * (observed - decision)).sum(axis=1))
        assert best is not None
        return best._replace(bound=bound, stop=stop)


class _Master:
    """min (1/m) Σ_i ξ_i, ξ_i >= height_k + gradient_kᵀw for planes k of observation i, ξ >= 0, |w| <= limits, and
    normalᵀw = 1 if there is a normal."""

    def __init__(self, seen: _Observations) -> None:
        self.seen, (self.m, self.size) = seen, seen.gradients(seen.oracle.target).shape
        largest = np.abs(seen.design).max(axis=0)
        self.limits = np.resize(seen.limit / np.where(largest > 0.0, largest, 1.0), self.size)
        self.limited, self.normal = np.zeros(self.size, dtype=bool), np.zeros((0, self.size))
        self.gradients, self.heights, self.owners = csr_array((0, self.size)), np.zeros(0), np.zeros(0, dtype=np.int64)

    def normalized(self, apart: Floats) -> Self:
        """With the same planes, and the normal of the differences y_i - ȳ_i (m, n)."""
        normal = self.seen.gradients(apart).mean(axis=0)
        size = replace(self.seen, design=np.abs(self.seen.design)).gradients(np.abs(apart)).mean(axis=0)
        normal[np.abs(normal) <= SAME * np.abs(size)] = 0.0
        if not normal.any():
            raise InfeasibleError("only costs under which all decisions are alike make every observed decision optimal")
        other = copy(self)
        other.normal = normal[None]
        return other

    def add(self, gradients: Floats, heights: Floats) -> None:
        """A plane of each observation, gradients (m, k) and heights (m,)."""
        held = np.flatnonzero(gradients.any(axis=1) | (heights > 0.0))
        self.gradients = vstack([self.gradients, csr_array(gradients[held])], format="csr")
        self.heights, self.owners = np.append(self.heights, heights[held]), np.append(self.owners, held)

    def solve(self) -> tuple[Floats, float]:
        """A minimizer w, and the bound that the duals prove for all weights within the limits."""
        while True:  # limits only where weights exceed them: HiGHS starts limited weights at a limit
            try:
                w, bound = self._solved()
            except InfeasibleError as error:
                text = f"no weights within limit = {self.seen.limit:g} fulfil the normalization; raise limit"
                raise DataError(text) from error
            beyond = np.abs(w) > self.limits
            if not (beyond & ~self.limited).any():
                return np.clip(w, -self.limits, self.limits), bound
            self.limited = self.limited | beyond

    def _solved(self) -> tuple[Floats, float]:
        count, equations = self.owners.size, len(self.normal)
        slack = csr_array((np.ones(count), (np.arange(count), self.owners)), (count + equations, self.m))
        rows = hstack([vstack([-self.gradients, csr_array(self.normal)]), slack])
        floor = np.append(self.heights, np.ones(equations))
        ceiling = np.append(np.full(count, np.inf), np.ones(equations))
        objective = np.append(np.zeros(self.size), np.full(self.m, 1.0 / self.m))
        upper = np.append(np.where(self.limited, self.limits * (1.0 - SAME), np.inf), np.full(self.m, np.inf))
        lower = np.append(-upper[: self.size], np.zeros(self.m))
        found = Highs().solve(LinearProgram(objective, rows, floor, ceiling, lower, upper, is_maximization=False))
        if found.y is None:
            raise SolverError("HiGHS has no duals of the master program; lower limit")
        alpha, mu = np.maximum(found.y[:count], 0.0), found.y[count:]
        alpha /= np.maximum(1.0, self.m * np.bincount(self.owners, alpha, self.m))[self.owners]
        slope = self.gradients.T @ alpha - mu @ self.normal
        w = found.x[: self.size]
        w = w / (self.normal[0] @ w) if equations else w
        return w, float(alpha @ self.heights + mu.sum() - self.limits @ np.abs(slope))


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
