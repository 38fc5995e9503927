"""Value, violation and bound of solutions in rational arithmetic.

Doubles are integral multiples of powers of two, so every number is exact: a gap of 0 proves optimality, any other gap
is a proved distance. Costs of orders and integral flows become integers by a common power of two, and duals are
recovered in integers, so optimal ones have gap exactly 0. For paths the potentials are lengths of longest paths,
checked at every edge. Rankings under constraints are certified by the narrowest structure of their set.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints
from formulations.bridges.widening import IntegerCosts
from formulations.constraints.constrained_ranking import ConstrainedRanking, PenalizedRanking
from formulations.constraints.duals import covers, open_cells, pressing
from formulations.constraints.structure import BlockCollapse, LaminarNetwork, PrefixNetwork, falls_in_groups
from formulations.errors import CertificateError, UnsupportedProblemError
from formulations.integrality.prefix_limits import PrefixRows
from formulations.problems.assignment import Assignment
from formulations.problems.group_sequence import GroupSequence
from formulations.problems.lattice_path import LatticeLevels, LatticePath, edges_of, farthest
from formulations.problems.linear_program import LinearProgram
from formulations.problems.min_cost_flow import MinCostFlow, residual_potentials
from formulations.problems.quadratic_program import QuadraticProgram
from formulations.problems.ranking import RankTwoAssignment
from formulations.problems.relevance_ranking import RelevanceRanking
from formulations.problems.relevance_values import exact_value, rational_array
from formulations.problems.simplex_qp import GroupedSimplexQP

Rational = Fraction | float  # A fraction, or a float that is infinite

Exact = NDArray[Any]  # an array of Python's integers or fractions


@dataclass(frozen=True)
class Evidence:
    """Violation, value and bound of a solution, as rational numbers; a bound may be infinite."""

    violation: Rational
    value: Fraction
    bound: Rational


def linear_evidence(problem: LinearProgram, x: NDArray[Any], y: Floats | None) -> Evidence:
    """The bound of weak duality; infinite without duals. Integer variables count by their distance to an integer."""
    point = rational_array(x)
    off = _largest_violation(problem, rational_array(problem.rounded(x)))
    if problem.integer is not None:
        off = max([off, *(abs(value - round(value)) for value in point[problem.integer])])
    cost = rational_array(problem.objective)
    sign = -1 if problem.is_maximization else 1
    bound: Rational = -sign * float("inf") if y is None else sign * _dual(problem, sign * cost, rational_array(y))
    return Evidence(off, inner(cost, point), bound)


def quadratic_evidence(problem: QuadraticProgram, x: NDArray[Any], y: Floats | None) -> Evidence:
    """The bound of Dorn's dual; y has the duals of the rows, then the point at which the objective is linearized."""
    point, linear = rational_array(x), rational_array(problem.linear)
    value = inner(linear, point) + inner(point, _times(problem.hessian, point)) / 2
    rows = problem.linearized(problem.linear)
    bound: Rational = -float("inf")
    sign = -1 if problem.is_maximization else 1
    for dual in [] if y is None else [y, problem.nearby_dual(y)]:
        prices, z = rational_array(dual[: problem.row_lower.size]), rational_array(dual[problem.row_lower.size :])
        bent = _times(problem.hessian, z)
        bound = max(bound, _dual(rows, sign * (bent + linear), prices) - sign * inner(z, bent) / 2)
    return Evidence(_largest_violation(rows, point), value, sign * bound)


def margin_dual_evidence(problem: GroupedSimplexQP, x: NDArray[Any], y: Floats | None) -> Evidence:
    """The bound is the primal value of the weights -slopesᵀα / λ, or of the weights y if that is lower."""
    alpha, capacity, lam = rational_array(x), rational_array(problem.capacity), Fraction(problem.lam)
    slopes, values = rational_array(problem.slopes), rational_array(problem.values)
    used = [sum(alpha[problem.group == g], Fraction(0)) for g in range(capacity.size)]
    off = max([Fraction(0), *(-alpha), *(np.array(used, dtype=object) - capacity)])
    step = slopes.T @ alpha
    value = inner(values, alpha) - inner(step, step) / (2 * lam)
    bounds = []
    for move in [-step / lam] + ([] if y is None else [rational_array(y)]):
        heights = values + slopes @ move
        tops = [max([Fraction(0), *heights[problem.group == g]]) for g in range(capacity.size)]
        bounds.append(lam * inner(move, move) / 2 + inner(capacity, np.array(tops, dtype=object)))
    return Evidence(off, value, min(bounds))


def inner(left: Iterable[Any], right: Iterable[Any]) -> Fraction:
    """The inner product in rational numbers."""
    return sum((Fraction(a) * b for a, b in zip(left, right, strict=True)), Fraction(0))


def _times(matrix: Any, vector: Exact) -> Exact:
    """matrix @ vector, entry by entry."""
    product = np.array([Fraction(0)] * matrix.shape[0], dtype=object)
    entries = matrix.tocoo()
    for i, j, weight in zip(*(part.tolist() for part in entries.coords), entries.data.tolist(), strict=True):
        product[i] += Fraction(weight) * vector[j]
    return product


def _largest_violation(problem: LinearProgram, point: Exact) -> Fraction:
    """The largest violation of a limit or row, in their units."""
    rows = _times(problem.matrix, point)
    row_units, own_units = problem.units_at(np.array(point, dtype=np.float64))
    worst = Fraction(0)
    for values, lower, upper, units in (
        (rows, problem.row_lower, problem.row_upper, row_units),
        (point, problem.lower, problem.upper, own_units),
    ):
        for value, low, high, unit in zip(values, lower.tolist(), upper.tolist(), units.tolist(), strict=True):
            if low > -np.inf:
                worst = max(worst, (Fraction(low) - value) / Fraction(unit))
            if high < np.inf:
                worst = max(worst, (value - Fraction(high)) / Fraction(unit))
    return worst


def _dual(problem: LinearProgram, cost: Exact, prices: Exact) -> Rational:
    """The bound of weak duality for min cost · x over the program's feasible set."""
    pressing = np.where(prices > 0, np.isfinite(problem.row_lower), np.isfinite(problem.row_upper))
    prices = prices * pressing.astype(int)
    reduced = cost - _times(problem.matrix.T, prices)
    total = Fraction(0)
    for values, lower, upper in (
        (prices, problem.row_lower, problem.row_upper),
        (reduced, problem.lower, problem.upper),
    ):
        used = values != 0
        limits = np.where(values > 0, lower, upper)[used]
        if np.isinf(limits).any():
            return -float("inf")
        total += inner(limits.tolist(), values[used])
    return total


PASSES = 64  # rounds of increasing duals; more are needed only if the order is not quite optimal
NEAR = 40  # binary digits of the largest profit to which the solution's duals are used


def rank_two_evidence(problem: RankTwoAssignment, x: NDArray[Any], y: Floats | None) -> Evidence:
    """The profit matrix c sᵀ - a bᵀ in integers, certified as an assignment. Positions of weight 0 are left out: in any
    order the other documents fill them, without profit."""
    used = (problem.position_weights != 0) | (problem.discount != 0)
    position_weights, scores = _integers(problem.position_weights[used]), _integers(problem.scores)
    discount, gain = _integers(problem.discount[used]), _integers(problem.gain)
    left, right = position_weights[1] + scores[1], discount[1] + gain[1]
    shared = max(left, right)
    weighted = np.outer(position_weights[0], scores[0]) * (1 << shared - left)
    discounted = np.outer(discount[0], gain[0]) * (1 << shared - right)
    y = y if y is None or used.all() else y - y.min()  # the duals of documents left out are 0
    return _order_evidence(weighted - discounted, shared, np.asarray(x, dtype=np.int64)[used], y)


def assignment_evidence(problem: Assignment, x: NDArray[Any], y: Floats | None) -> Evidence:
    """Cells that are not allowed get a profit that no assignment can compensate."""
    profit, exponent = _integers(problem.gains)
    if problem.allowed is not None:  # lower than any dual can compensate
        beyond = 4 * (problem.positions + 1) * int(max(abs(profit.min()), abs(profit.max()))) + 1
        profit = np.where(problem.allowed, profit, -beyond)
    found = _order_evidence(profit, exponent, np.asarray(x, dtype=np.int64), y)
    return found if problem.is_maximization else Evidence(found.violation, -found.value, -found.bound)


def _order_evidence(profit: Exact, exponent: int, order: Ints, y: Floats | None) -> Evidence:
    """For profit / 2^exponent: settled duals prove the order optimal; else the solution's duals bound it."""
    from formulations.problems.assignment import settle

    positions, documents = profit.shape
    value = Fraction(sum(profit[np.arange(positions), order].tolist()), 1 << exponent)
    nothing = np.array([0] * documents, dtype=object)
    starts = [nothing] if y is None else [_below(y, exponent, int(np.abs(profit).max()), order), nothing]
    bounds = []
    for prices in starts:
        settle.in_python(profit, order, prices, 0, min(PASSES, positions + 1))
        bounds.append(_assignment_bound(profit, exponent, prices, exponent))
        if bounds[-1] == value:  # no bound is better
            return Evidence(Fraction(0), value, value)
    if y is not None:
        bounds.append(_assignment_bound(profit, exponent, *_integers(y)))
    return Evidence(Fraction(0), value, min(bounds))


def _below(y: Floats, exponent: int, largest: int, order: Ints) -> Exact:
    """Integer duals just below y, which settle after few increases; 0 for unranked documents."""
    prices = np.array([0] * y.size, dtype=object)
    own, digits = _integers(y[order])
    own = own * (1 << max(exponent - digits, 0)) // (1 << max(digits - exponent, 0))
    prices[order] = np.maximum(own - (largest >> NEAR), 0)
    return prices


def _assignment_bound(profit: Exact, exponent: int, prices: Exact, digits: int) -> Fraction:
    """Σ v + Σ_i max_j (profit[i, j] - v[j]), v >= 0 where a document may stay out, for profit / 2^exponent and
    v = prices / 2^digits."""
    positions, documents = profit.shape
    prices = np.maximum(prices, 0) if documents > positions else prices
    shared = max(exponent, digits)
    prices = prices * (1 << shared - digits)
    best = (profit * (1 << shared - exponent) - prices).max(axis=1)
    return Fraction(int(prices.sum()) + int(best.sum()), 1 << shared)


def flow_evidence(problem: MinCostFlow, x: NDArray[Any], y: Floats | None) -> Evidence:
    """The better bound of potentials recovered from the flow and of the potentials y."""
    flow = np.array([Fraction(amount) for amount in np.asarray(x, dtype=float).tolist()], dtype=object)
    costs = exact_costs(problem.cost)
    cost = np.array(costs.values, dtype=object)
    net = -problem.supply.astype(object)
    np.add.at(net, problem.tail, flow)
    np.subtract.at(net, problem.head, flow)
    off = [*np.abs(net), *(-flow), *(flow - problem.capacity.astype(object))]
    below = 1 << costs.exponent
    potentials = [residual_potentials(problem, np.asarray(x), cost, noise=0)]
    if y is not None:
        potentials.append(np.array([Fraction(price) * below for price in y.tolist()], dtype=object))
    bounds = []
    for price in potentials:
        reduced = cost - price[problem.tail] + price[problem.head]
        pressed = inner(np.minimum(reduced, 0), problem.capacity.tolist())
        bounds.append((inner(price, problem.supply.tolist()) + pressed) / below)
    return Evidence(max(Fraction(0), *off), inner(cost, flow) / below, max(bounds))


def exact_costs(cost: Floats) -> IntegerCosts:
    """Costs as integers of any length, without rounding."""
    ratios = [value.as_integer_ratio() for value in cost.tolist()]
    denominator = max((below for _, below in ratios), default=1)
    values = [above * (denominator // below) for above, below in ratios]
    return IntegerCosts(values, denominator.bit_length() - 1, 0.0)


def _integers(values: Floats) -> tuple[Exact, int]:
    """Integers w and an exponent e with values = w / 2^e."""
    costs = exact_costs(values.ravel())
    return np.array(costs.values, dtype=object).reshape(values.shape), costs.exponent


MOST_RATIONAL = 1 << 16  # largest number of lattice states evaluated in rational numbers


def path_evidence(problem: LatticePath, x: NDArray[Any], y: Floats | None) -> Evidence:
    """The value along the edges of the path; the bound by potentials of the lattice."""
    edges = rational_array(problem.edges)
    chain = np.asarray(x, dtype=np.int64)
    passed = np.concatenate([[0], np.cumsum(problem.levels.strides[chain])[:-1]])
    constant = Fraction(problem.constant)
    value = sum(edges[chain, passed].tolist(), constant)
    return Evidence(Fraction(0), value, _best_bound(edges, problem.levels, y) + constant)


def relevance_evidence(problem: RelevanceRanking, x: NDArray[Any], y: Floats | None) -> Evidence:
    """The value by definition, from the order alone; the bound from the lattice with recomputed edges."""
    order = np.asarray(x, dtype=np.int64)
    if problem.chains.states > MOST_RATIONAL:
        raise UnsupportedProblemError(
            f"{problem.shape_text}; rational certificates take at most {MOST_RATIONAL} states. Use exact=False."
        )
    lengths = problem.chains.lengths
    edges = edges_of(problem.chains, problem.map, problem.earnings, rational_array)
    bound = _best_bound(edges.reshape(len(lengths), -1), LatticeLevels(lengths), y)
    constant = Fraction(float(problem.earnings.constant[0]))
    return Evidence(
        Fraction(0), exact_value(problem.scores, problem.grade, problem.map, problem.earnings, order), bound + constant
    )


def _best_bound(edges: NDArray[Any], levels: LatticeLevels, y: Floats | None) -> Fraction:
    """The better bound of recomputed potentials and the solution's."""
    own = _bound(edges, levels, farthest(edges, levels))
    usable = y is not None and y.shape == (edges.shape[1],)  # none where a bound without potentials was enough
    return min(own, _bound(edges, levels, rational_array(y))) if usable else own


def _bound(edges: NDArray[Any], levels: LatticeLevels, potential: NDArray[Any]) -> Fraction:
    """The rise of the potentials, plus at each level the largest excess of an edge's profit over it."""
    total = potential[-1] - potential[0]
    for states in levels.states[:-1]:
        over = []
        for chain, stride in enumerate(levels.strides.tolist()):
            tail = states[levels.there[chain, states]]
            over += (edges[chain, tail] - potential[tail + stride] + potential[tail]).tolist()
        total += max(over)
    return Fraction(total)


def group_sequence_evidence(problem: GroupSequence, x: NDArray[Any], y: Floats | None) -> Evidence:
    """The bound of the duals y of the passing positions; infinite without them."""
    worth, held = rational_array(problem.worth), problem.counts(x)
    value = Fraction(0)
    for g, first in enumerate(problem.start.tolist()):
        for p, count in enumerate(held[g].tolist()):
            value += sum(worth[p, first : first + count], Fraction(0))
    bound: Rational = (
        float("inf") if y is None else _group_bound(problem, worth, rational_array(y.reshape(problem.lower.shape)))
    )
    return Evidence(Fraction(problem.violation(x)), value, bound)


def _group_bound(problem: GroupSequence, worth: Any, price: Any) -> Fraction:
    """Σ_p max_g Σ_{q >= p} ρ[g, q] + Σ_{g, p} max_N (Σ_{r < N} worth - ρ N)."""
    total, groups = Fraction(0), range(problem.groups)
    for p in range(problem.positions):
        allowed = np.flatnonzero(~problem.banned[:, p]).tolist()
        total += max(sum(price[g, p:], Fraction(0)) for g in allowed)
        for g in groups:
            first, low, high = int(problem.start[g]), int(problem.lower[g, p]), int(problem.upper[g, p])
            gained = [part - price[g, p] for part in worth[p, first : first + high]]
            total += sum(gained[:low], Fraction(0)) + sum((one for one in gained[low:] if one > 0), Fraction(0))
    return total


def prefix_bound(profit: Floats, rows: PrefixRows, order: Ints) -> Fraction:
    """What duals recovered from a ranking of the set prove: Σ_j v_j + Σ μ · limit + Σ_i max_j (profit[i, j] - v_j
    - Σ_{p >= i} μ[g(j), p]), μ the dual of a limit on a prefix, v >= 0 where a document may stay out."""
    k, n = profit.shape
    costs = exact_costs(profit.ravel())
    integers = np.array(costs.values, dtype=object).reshape(k, n)
    fixed = (
        integers[-1] if k == n else integers[-1] * 0
    )  # what all documents earn at the last position, where all are ranked
    free = integers - fixed
    steps = free - np.vstack([free[1:], free[:1] * 0])
    members = [sorted(np.flatnonzero(rows.group == g).tolist(), key=lambda j: -free[0, j]) for g in range(rows.groups)]
    held = np.cumsum(rows.group[order][None, :] == np.arange(rows.groups)[:, None], axis=1)
    passing = _passing(steps, members, held, rows.group[order], rows)
    price, total = np.zeros((rows.groups, k), dtype=object), sum(fixed.tolist())
    for g, p in np.ndindex(rows.groups, k):
        count = int(held[g, p])
        after = steps[p, members[g][count]] if count < len(members[g]) else passing[g, p]
        before = steps[p, members[g][count - 1]] if count else passing[g, p]
        over, under = after - passing[g, p], before - passing[g, p]
        if over > 0 and rows.upper_row[g, p] >= 0 and count == rows.upper[g, p]:
            price[g, p] = over
        elif under < 0 and rows.lower_row[g, p] >= 0 and count == rows.lower[g, p]:
            price[g, p] = under
        total += price[g, p] * count
    excess = steps.T - (passing + price)[rows.group]
    worth = np.where(excess > 0, excess, 0).sum(axis=1)
    behind = np.cumsum(price[:, ::-1], axis=1)[:, ::-1]
    left = free - worth - behind[rows.group].T
    for i in range(k):
        total += max(left[i, ~rows.banned[rows.group, i]].tolist())
    return Fraction(total + sum(worth.tolist()), 1 << costs.exponent)


def _passing(steps: Exact, members: list[list[int]], held: Ints, group: Ints, rows: PrefixRows) -> Exact:
    """(groups, k) the duals of passing: longest paths in the residual graph, in integers."""
    groups, k = held.shape
    height = np.zeros((groups, k + 1), dtype=object)
    for _ in range(groups * k + 1):
        moved = False
        for p in [*range(k), *range(k - 1, -1, -1)]:
            for g in range(groups):
                count, ends = int(held[g, p]), slice(None) if p == k - 1 else g  # all groups end at one node
                offers = []
                if count < min(len(members[g]), int(rows.upper[g, p])):
                    offers.append((ends, p + 1, height[g, p] + steps[p, members[g][count]]))
                if count > rows.lower[g, p]:
                    offers.append((g, p, height[g, p + 1] - steps[p, members[g][count - 1]]))
                if not rows.banned[g, p]:
                    offers.append((g, p, height[group[p], p]))
                for node, position, offered in offers:
                    if offered > np.max(height[node, position]):
                        height[node, position] = offered
                        moved = True
        if not moved:
            break
    return np.asarray(np.diff(height, axis=1))


def constrained_evidence(problem: ConstrainedRanking, x: NDArray[Any], y: Floats | None) -> Evidence:
    """Collapsed or routed sets and limits on prefixes: duals recovered in integers; others: the solution's duals."""
    order = np.asarray(x, dtype=np.int64)
    worth = problem.profit[np.arange(problem.positions), order].tolist()
    value = sum(map(Fraction, worth), Fraction(0))
    off = Fraction(problem.violation(order))
    stated = problem.admissible.compiled
    bounds: list[Rational] = [float("inf")] if y is None else [_set_bound(problem, y)]
    collapse = BlockCollapse.from_rows(stated) if off == 0 else None
    network = LaminarNetwork.from_rows(stated) if off == 0 and collapse is None else None
    if collapse is not None:
        narrow, _ = collapse.assignment(problem.profit)
        bounds.append(assignment_evidence(narrow, collapse.rows_of(order), None).bound)
    elif network is not None:
        bounds.append(-flow_evidence(network.flow(problem.profit), network.integral_flow(order), None).bound)
    elif off == 0:
        prefixes = PrefixNetwork.from_rows(stated)
        if not isinstance(prefixes, str) and falls_in_groups(problem.profit, prefixes.rows.group):
            bounds.append(prefix_bound(problem.profit, prefixes.rows, order))
    return Evidence(off, value, min(bounds))


def penalized_evidence(problem: PenalizedRanking, x: NDArray[Any], y: Floats | None) -> Evidence:
    """Soft constraints: exact penalties of the ranking; bounds by the solution's duals, clipped to the penalties."""
    order = np.asarray(x, dtype=np.int64)
    stated, k = problem.compiled, problem.positions
    cells = np.arange(k) * problem.documents + order
    value = sum(map(Fraction, problem.worth.ravel()[cells].tolist()), Fraction(0))
    if problem.worth_digits is not None:
        value += sum(map(Fraction, problem.worth_digits.ravel()[cells].tolist()), Fraction(0))
    assert stated.price is not None
    held = stated.matrix[:, stated.index[cells]]
    for row in np.flatnonzero(np.isfinite(stated.price)).tolist():
        low, high = float(stated.lower[row]), float(stated.upper[row])
        entries = held.data[held.indptr[row] : held.indptr[row + 1]].tolist()
        reached = sum(map(Fraction, entries), Fraction(0))
        over = reached - Fraction(high) if np.isfinite(high) else Fraction(0)
        under = Fraction(low) - reached if np.isfinite(low) else Fraction(0)
        value -= Fraction(float(stated.price[row])) * max(over, under, Fraction(0))
    bound: Rational = float("inf") if y is None else _set_bound(problem, y)
    return Evidence(Fraction(problem.violation(order)), value, bound)


def _set_bound(problem: ConstrainedRanking, y: Floats) -> Rational:
    """The bound of duals or of a proof by cases."""
    if y.ndim == 1:
        return _case(problem, y, np.empty(0))
    rows = problem.compiled.lower.size - problem.positions
    if not covers(y[:, rows:], *problem.compiled.shape):
        raise CertificateError("the proof by cases is incomplete: its cases are not all leaves of one binary tree")
    return max(_case(problem, case[:rows], case[rows:]) for case in y)


def _case(problem: ConstrainedRanking, y: Floats, path: Floats) -> Rational:
    """Σ dual · limit + Σ_i max_j (profit - duals of the cell's rows) over the open cells."""
    stated, k = problem.compiled, problem.positions
    price, limit = pressing(stated, y)
    pressed = zip(price.tolist(), limit.tolist(), strict=True)
    total = sum((Fraction(p) * Fraction(b) for p, b in pressed if p), Fraction(0))
    left = rational_array(problem.worth.ravel()[stated.cell])
    if problem.worth_digits is not None:
        left = left + rational_array(problem.worth_digits.ravel()[stated.cell])
    exact = rational_array(price)
    entries = stated.weights.tocoo()
    for cell, row, weight in zip(*(part.tolist() for part in entries.coords), entries.data.tolist(), strict=True):
        if exact[row]:
            left[cell] -= Fraction(weight) * exact[row]
    open_ = open_cells(path, k, problem.documents)[stated.cell] == 0
    position = stated.cell // problem.documents
    for i in range(k):
        earned = left[(position == i) & open_]
        if not earned.size:
            return -float("inf")
        total += max(earned)
    return total
