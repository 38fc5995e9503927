"""Duals of the rows of a ranking set, and the bound that they prove for a profit (k, n).

If the LP bound does not reach the best ranking, a proof by cases does. The cases are the leaves of a binary tree: a
cell is used in one branch and not in the other. Each case has its own duals; the largest of their bounds holds for all
rankings. So an integer search is proved without a solver: the tree is built here until every bound reaches the value.

A proof is an array with one row per case: the duals of the rows after the positions, then the decided cells (c + 1 if
cell c is used, -(c + 1) if not, 0 for padding).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack, vstack

from formulations.arrays import Floats, Ints
from formulations.constraints.rows import SetRows
from formulations.constraints.structure import BlockCollapse, LaminarNetwork, PrefixNetwork, falls_in_groups
from formulations.errors import InvalidProblemError, SolverError
from formulations.problems.directed_rounding import above, difference, products
from formulations.problems.problem import EPSILON
from formulations.time_limit import is_out_of_time, seconds_left

Path = tuple[int, ...]

COSTS = (1.0, 1e6)
"""Costs of a unit of violation, as multiples of the largest profit. Rows with small coefficients have small violations;
for an integral point the higher cost decides whether it is a ranking of the set."""

INTEGRAL = 0.5 - 1e-6  # points with no entry nearer to 1/2 are integral
MOST_CASES = 200  # node limit of the tree; beyond it the bound of the linear program is used


def proven_bound(stated: SetRows, profit: Floats, y: Floats, digits: Floats | None = None) -> float:
    """The bound of duals y (rows,), or of a proof by cases (one case a row): infinity if the cases do not cover all
    rankings. Raises `InvalidProblemError` for another shape. digits: what the doubles of the profit leave out."""
    rows = stated.lower.size - stated.shape[0]
    if np.ndim(y) not in (1, 2) or np.shape(y)[-1] < rows or (np.ndim(y) == 1 and np.size(y) != rows):
        raise InvalidProblemError(f"y must have shape ({rows},) or (cases, {rows}), a dual per row; got {np.shape(y)}.")
    y = np.asarray(y, dtype=np.float64)
    if y.ndim == 1:
        return case_bound(stated, profit, y, np.empty(0), digits)
    if not covers(y[:, rows:], *stated.shape):
        return float("inf")
    return max(case_bound(stated, profit, case[:rows], case[rows:], digits) for case in y)


def case_bound(stated: SetRows, profit: Floats, y: Floats, path: Floats, digits: Floats | None = None) -> float:
    """Weak duality in one case with decided cells: Σ y[r] · (its active limit) + Σ_i max_j (profit[i, j] - Σ duals of
    the cell's rows), rounded up; -inf if the case has no ranking."""
    price, limit = pressing(stated, y)
    used = price != 0.0
    terms, low_terms, dropped = products(price[used], limit[used])
    k = stated.shape[0]
    near = _foremost(stated, profit, price, path)
    position = stated.cell[near] // stated.shape[1]
    if np.unique(position).size < k:
        return -float("inf")
    cell = stated.cell[near]
    rest = 0.0 if digits is None else digits.ravel()[cell]
    left = difference(profit.ravel()[cell], stated.weights[near], price, rest)
    high, low, off = np.full(k, -np.inf), np.full(k, -np.inf), np.zeros(k)
    np.maximum.at(high, position, left.high)
    nearest = left.high == high[position]
    np.maximum.at(low, position[nearest], left.low[nearest])
    np.maximum.at(off, position, left.off)
    return above(terms, low_terms, high, low, off, dropped)


def _foremost(stated: SetRows, profit: Floats, price: Floats, path: Floats) -> Ints:
    """The open cells of a case that may be the best of their position, up to rounding."""
    worth = profit.ravel()[stated.cell]
    weights = stated.weights
    left = worth - weights @ price
    if path.size:
        left = left + open_cells(path, *stated.shape)[stated.cell]
    terms = int(np.diff(weights.indptr).max(initial=0))
    largest = float(np.abs(weights.data).max(initial=0.0)) * float(np.abs(price).max(initial=0.0))
    hidden = 8.0 * (terms + 2) * EPSILON * (float(np.abs(worth).max(initial=0.0)) + terms * largest)
    most = np.full(stated.shape[0], -np.inf)
    position = stated.cell // stated.shape[1]
    np.maximum.at(most, position, left)
    return np.flatnonzero((left >= most[position] - hidden) & (left > -np.inf))


def pressing(stated: SetRows, y: Floats) -> tuple[Floats, Floats]:
    """The duals of finite limits (0 for the others), and these limits. Duals are clipped to the penalties."""
    k = stated.shape[0]
    if stated.price is not None:
        y = np.clip(y, -stated.price[k:], stated.price[k:])
    price, limit, used = np.zeros(y.size), np.zeros(y.size), np.flatnonzero(y)
    pressed = np.where(y[used] > 0, stated.upper[k:][used], stated.lower[k:][used])
    there = np.isfinite(pressed)
    price[used[there]], limit[used[there]] = y[used[there]], pressed[there]
    return price, limit


def earned(stated: SetRows, profit: Floats, price: Floats) -> Floats:
    """(k,) the largest reduced profit of each position."""
    if stated.is_full:
        return np.asarray((profit.ravel() - stated.weights @ price).reshape(profit.shape).max(axis=1))
    left = np.full(profit.size, -np.inf)
    left[stated.cell] = profit.ravel()[stated.cell] - stated.weights @ price
    return np.asarray(left.reshape(profit.shape).max(axis=1))


def recovered_prices(stated: SetRows, profit: Floats, order: Ints, admitted: bool) -> Floats | None:
    """Duals from a ranking alone, by the narrowest structure of the set: collapsed assignment, laminar flow, limits on
    prefixes (if the set admits the ranking), or linear program; a proof by cases if these leave a gap."""
    admitted = admitted and stated.price is None
    collapse = BlockCollapse.from_rows(stated) if admitted else None
    if collapse is not None:
        narrow, _ = collapse.assignment(profit)
        return narrow.recover_dual(collapse.rows_of(order))
    network = LaminarNetwork.from_rows(stated) if admitted else None
    if network is not None:
        flow = network.flow(profit)
        return network.prices(flow.recover_dual(network.integral_flow(order)))
    prefixes = PrefixNetwork.from_rows(stated) if admitted else ""
    if not isinstance(prefixes, str) and falls_in_groups(profit, prefixes.rows.group):
        return prefixes.proof(profit)
    value = float(profit[np.arange(stated.shape[0]), order].sum())
    if stated.price is not None:
        off = stated.excess(order)
        value -= float((np.where(off > 0.0, stated.price[stated.shape[0] :], 0.0) * off).sum())
    proof = proof_by_cases(stated, profit, value)
    return relaxation_prices(stated, profit) if proof is None else proof


def proof_by_cases(stated: SetRows, profit: Floats, value: float) -> Floats | None:
    """Cases that prove that no ranking exceeds `value`, up to rounding; None if one may, or if too many cases are
    needed. One row of duals if the linear program suffices."""
    k, n = stated.shape
    rows = stated.lower.size - k
    size = max(abs(value), float(np.median(np.abs(profit))))
    slack = size * max(16.0 * EPSILON * (k + n), 1e-11)
    leaves: list[tuple[Floats, Path]] = []
    waiting: list[Path] = [()]
    nodes = 0
    while waiting:
        path = waiting.pop()
        nodes += 1
        if nodes > MOST_CASES or is_out_of_time():
            return None
        for cost in COSTS:
            try:
                prices, mass = _solve_relaxation(stated, profit, path, cost)
            except SolverError:
                return None
            part = np.abs(mass - 0.5)
            cell = int(np.argmin(part))
            proved = prices is None or case_bound(stated, profit, prices, np.array(path, float)) <= value + slack
            if proved or part[cell] <= INTEGRAL:
                break
        else:  # integral, and better than the claimed optimum
            return None
        if proved:
            leaves.append((np.zeros(rows) if prices is None else prices, path))
            continue
        waiting += [(*path, -(int(stated.cell[cell]) + 1)), (*path, int(stated.cell[cell]) + 1)]
    deepest = max(len(path) for _, path in leaves)
    proof = np.zeros((len(leaves), rows + deepest))
    for leaf, (prices, path) in enumerate(leaves):
        proof[leaf, :rows] = prices
        proof[leaf, rows : rows + len(path)] = path
    return proof[0, :rows] if deepest == 0 else proof


def relaxation_prices(stated: SetRows, profit: Floats) -> Floats | None:
    """Row duals of the linear program; their bound is that of the relaxation."""
    try:
        return _solve_relaxation(stated, profit, (), COSTS[0])[0]
    except SolverError:
        return None


def open_cells(path: Floats, k: int, n: int) -> Floats:
    """(k n,) 0 for the open cells of a case, -inf for the excluded ones."""
    ruled = np.zeros(k * n)
    for decided in path[path != 0].astype(np.int64).tolist():
        cell = abs(decided) - 1
        if decided < 0:
            ruled[cell] = -np.inf
            continue
        held = ruled[cell]
        ruled[cell // n * n : (cell // n + 1) * n] = -np.inf
        ruled[cell % n :: n] = -np.inf
        ruled[cell] = held
    return ruled


def covers(paths: Floats, k: int, n: int) -> bool:
    """Whether every ranking falls into one of the cases: they are the leaves of one binary tree over the k n cells."""
    if (paths != np.round(paths)).any() or (np.abs(paths) > k * n).any():
        return False
    waiting = [[tuple(int(cell) for cell in path if cell != 0) for path in paths]]
    while waiting:
        branch = waiting.pop()
        if () in branch:
            continue
        if len({abs(path[0]) for path in branch}) != 1:
            return False
        waiting += [[path[1:] for path in branch if path[0] > 0], [path[1:] for path in branch if path[0] < 0]]
    return True


def _solve_relaxation(stated: SetRows, profit: Floats, path: Path, cost: float) -> tuple[Floats | None, Floats]:
    """Row duals and the point of the linear program in a case; no duals if a position has no cell left. Rows may be
    violated at a cost above any profit, soft rows at their penalty: a point exists even if no ranking is left."""
    from scipy.optimize import linprog

    k, n = stated.shape
    left = open_cells(np.array(path, dtype=np.float64), k, n)[stated.cell] == 0
    if not np.isin(np.arange(k), stated.cell[left] // n).all():
        return None, np.zeros(stated.cell.size)
    soft = np.empty(0) if stated.price is None else stated.price[np.isfinite(stated.price)]
    scale = float(np.abs(profit).max()) or float(soft.max(initial=0.0)) or 1.0
    weights = csr_array(stated.matrix[:, left])
    above, below = (np.flatnonzero(np.isfinite(limit[k:])) + k for limit in (stated.upper, stated.lower))
    limits = csr_array(vstack([weights[above], -weights[below]]))
    count, cells = limits.shape
    highest = 4.0 * (k + 1) * cost
    dear = np.full(stated.lower.size, np.inf) if stated.price is None else stated.price / scale
    costs = np.minimum(highest, dear[np.concatenate([above, below])])
    found = linprog(
        np.concatenate([-profit.ravel()[stated.cell[left]] / scale, costs]),
        A_ub=csr_array(hstack([limits, -eye_array(count)])),
        b_ub=np.concatenate([stated.upper[above], -stated.lower[below]]),
        A_eq=csr_array(hstack([weights[:k], csr_array((k, count))])),
        b_eq=np.ones(k),
        method="highs-ds",
        options={} if (left_seconds := seconds_left()) is None else {"time_limit": left_seconds},
    )
    if found.status != 0:
        raise SolverError(f"the relaxation of a case could not be solved: {found.message}")
    marginals = -np.asarray(found.ineqlin.marginals) * scale
    price = np.zeros(stated.lower.size)
    price[above] += marginals[: above.size]
    price[below] -= marginals[above.size :]
    mass = np.zeros(stated.cell.size)
    mass[left] = found.x[:cells]
    return price[k:], mass


OUT_OF_TIME, FAILED = 1, 4  # statuses of `milp`


def integral_point(
    cost: Floats, rows: tuple[Any, Any, Any], limits: tuple[Any, Any], integer: Any, seconds: float | None = None
) -> Any:
    """The result of `scipy.optimize.milp` at a gap of 0, for rows (matrix, lower, upper) and limits of the variables;
    retried without presolve, which fails on some small programs that the search decides."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    program = {"constraints": LinearConstraint(*rows), "bounds": Bounds(*limits), "integrality": integer}
    options: dict[str, Any] = {"mip_rel_gap": 0.0, **({} if seconds is None else {"time_limit": seconds})}
    found = milp(cost, options=options, **program)
    if found.status != FAILED or found.x is not None:
        return found
    return milp(cost, options={**options, "presolve": False}, **program)


def within(found: Any, seconds: float) -> str:
    """The time limit of a search that reached it: " in 30 seconds"; else ""."""
    return f" in {seconds:g} seconds" if found.status == OUT_OF_TIME else ""
