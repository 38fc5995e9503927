"""The best ranking under limits of nested groups, over all positions or on prefixes, and with further rows relaxed.

**Limits over all positions.** Positions enter one by one along longest paths of the residual network of the laminar
flow: position → document → the smallest group that contains it → larger groups → sink. A ranked document passes its
position on; a full group returns one of its units. Units required by lower limits earn a reward above any exchange of
documents. At the end the longest paths of the residual network are duals that prove the answer.

**Limits on prefixes.** The best group at each position is found; positions enter one by one along shortest paths. Node
(g, p) is a unit of group g before position p + 1. From it a unit passes position p (N[g, p] rises: it earns the next
worth), goes back over position p - 1 (N[g, p - 1] falls), or changes to another group where position p does. Units
required by lower limits come first: lengths are lexicographic pairs (required, earned). Alternating sweeps along the
positions settle the lengths; few are needed, because paths seldom turn around.

**Further rows.** Rows that a flow through nested groups cannot express are relaxed (Lagrangian relaxation). The result
is the best dual bound, and rankings. Every cell pays y · a for the relaxed rows a π <= limit. Every ranking t that the
flow finds is a cutting plane in the multipliers y >= 0: value[t] - over[t] · y, where over[t, s] is its violation of
side s (negative: slack). The next multipliers minimize the maximum of the planes,

    min φ   subject to   φ + over[t] · y >= value[t],   0 <= y <= cap

whose duals are weights of the rankings [Kelley; Dantzig and Wolfe]. The dual simplex method resumes from the last
vertex when a plane is added or a cap rises. It ends when the flow finds no plane above it: the bound is optimal.
"""

from __future__ import annotations

import numpy as np

from formulations.arrays import Bools, Floats, Ints, Out, Table
from formulations.compiled import compiled, inlined
from formulations.errors import InfeasibleError
from formulations.problems.group_sequence import NOISE, WORK, GroupNetwork, GroupSequence

FOUND, NONE, LOST = 1, 0, -1

FROM_ABOVE, FROM_OUTSIDE = -1, -2
"""How a path came to a group or a document (else from a group below, a document, a position), and to a position."""


@compiled(internal=True)
def _settle(
    profit: Table[Floats], leaf: Ints, parent: Ints, low: Ints, high: Ints, reward: float, noise: float, index: Ints,
    flow: Ints, at_position: Out[Floats], at_document: Out[Floats], at_group: Out[Floats], to_position: Out[Ints],
    to_document: Out[Ints], to_group: Out[Ints],
) -> int:  # fmt: skip
    """Relax the lengths at_... along residual arcs until none gains more than `noise`; LOST if that does not end."""
    k, n = profit.shape
    groups = parent.size
    fresh = np.ones(k, np.bool_)
    for _ in range(2 * (k + n + groups) + 4):
        moved = False
        for i in range(k):
            if not fresh[i] or at_position[i] == -np.inf:
                continue
            fresh[i] = False
            for j in range(n):
                reached = at_position[i] + profit[i, j]
                if index[j] != i and reached > at_document[j] + noise:
                    at_document[j], to_document[j], moved = reached, i, True
        for j in range(n):
            if index[j] < 0 and at_document[j] > at_group[leaf[j]] + noise:
                at_group[leaf[j]], to_group[leaf[j]], moved = at_document[j], -3 - j, True
        for g in range(groups):
            reached = at_group[g] + (reward if flow[g] < low[g] else 0.0)
            if flow[g] < high[g] and reached > at_group[parent[g]] + noise:
                at_group[parent[g]], to_group[parent[g]], moved = reached, g, True
        for g in range(groups - 1, -1, -1):
            reached = at_group[parent[g]] - (reward if flow[g] <= low[g] else 0.0)
            if flow[g] > 0 and reached > at_group[g] + noise:
                at_group[g], to_group[g], moved = reached, FROM_ABOVE, True
        for j in range(n):
            q = index[j]
            if q < 0:
                continue
            if at_group[leaf[j]] > at_document[j] + noise:
                at_document[j], to_document[j], moved = at_group[leaf[j]], FROM_ABOVE, True
            reached = at_document[j] - profit[q, j]
            if reached > at_position[q] + noise:
                at_position[q], to_position[q], fresh[q], moved = reached, j, True, True
        if not moved:
            return FOUND
    return LOST


@compiled()
def assign_nested(
    scores: Floats, gain: Floats, discount: Floats, position_weights: Floats, toll: Table[Floats],
    allowed: Table[Bools], leaf: Ints, parent: Ints, low: Ints, high: Ints, near: float, order: Out[Ints],
    report: Out[Floats],
) -> int:  # fmt: skip
    """order[i] = the document at position i of the ranking of most Σ_i c[i] scores[π_i] - discount[i] gain[π_i] -
    toll[i, π_i]; report: its value and dual bound, both up to rounding. FOUND; NONE if no ranking meets the limits;
    LOST if rounding hides which path is longer: then retry with a larger `near`, the relative tolerance of ties.

    leaf[j] is the smallest group of document j, parent[g] the next larger one, larger groups having larger numbers and
    parent.size for all documents. low[g] <= the assigned documents of g <= high[g]. Only allowed[i, j] count.
    """
    k, n, groups = position_weights.size, scores.size, parent.size
    profit = np.empty((k, n))
    largest = 0.0
    for i in range(k):
        for j in range(n):
            profit[i, j] = position_weights[i] * scores[j] - discount[i] * gain[j] - toll[i, j]
            largest = max(largest, abs(profit[i, j]))
            if not allowed[i, j]:
                profit[i, j] = -np.inf
    owed = False
    for g in range(groups):
        owed = owed or low[g] > 0
    reward = (4.0 * k + 4.0) * largest + 1.0 if owed else 0.0
    noise = near * max(largest, reward)
    flow, index = np.zeros(groups, np.int64), np.full(n, -1, np.int64)
    at_position, at_document, at_group = np.empty(k), np.empty(n), np.empty(groups + 1)
    to_position, to_document = np.empty(k, np.int64), np.empty(n, np.int64)
    to_group = np.empty(groups + 1, np.int64)
    order[:] = -1
    for entering in range(k):
        at_position[:], at_document[:], at_group[:] = -np.inf, -np.inf, -np.inf
        at_position[entering], to_position[entering] = 0.0, FROM_OUTSIDE
        ended = _settle(
            profit, leaf, parent, low, high, reward, noise, index, flow, at_position, at_document, at_group,
            to_position, to_document, to_group,
        )  # fmt: skip
        if ended != FOUND:
            return LOST
        if at_group[groups] == -np.inf:
            return NONE
        node, steps = groups, 0
        document, position = -1, -1
        while position < 0 or to_position[position] != FROM_OUTSIDE:
            steps += 1
            if steps > 2 * (k + n + groups) + 4:
                return LOST
            if position >= 0:  # it was freed by a document that moved or left
                document, position = to_position[position], -1
                index[document] = -1
            elif document >= 0:
                way = to_document[document]
                if way == FROM_ABOVE:
                    node, document = leaf[document], -1
                else:
                    order[way], index[document] = document, way
                    document, position = -1, way
            else:
                way = to_group[node]
                if way == FROM_ABOVE:
                    flow[node] -= 1
                    node = parent[node]
                elif way >= 0:
                    flow[way] += 1
                    node = way
                else:
                    document = -3 - way
    for g in range(groups):
        if flow[g] < low[g]:
            return NONE
    at_position[:], at_document[:], at_group[:] = 0.0, 0.0, 0.0
    ended = _settle(
        profit, leaf, parent, low, high, reward, noise, index, flow, at_position, at_document, at_group,
        to_position, to_document, to_group,
    )  # fmt: skip
    if ended != FOUND:
        return LOST
    value, bound = 0.0, 0.0
    for g in range(groups):
        price = at_group[g] - at_group[parent[g]]
        bound += price * (high[g] if price > 0.0 else low[g])
    for j in range(n):  # the dual of a document beyond its groups, at least 0
        at_document[j] = max(at_document[j], at_group[leaf[j]])
        bound += at_document[j] - at_group[leaf[j]]
    for i in range(k):
        most = -np.inf
        for j in range(n):
            most = max(most, profit[i, j] - (at_document[j] - at_group[groups]))
        bound += most
        value += profit[i, order[i]]
    report[0], report[1] = value, bound
    return FOUND


STARTS, PASSES, GOES_BACK = -2, -3, -4
"""How a path came to a node: from outside, over the position before, over its own position; else from a group."""


@compiled()
def assign_groups(network: GroupNetwork, noise: float, group: Out[Ints], held: Out[Table[Ints]]) -> int:
    """group[p] of the best sequence, held[g, p] the count of g at positions 0 .. p. FOUND; NONE if infeasible; LOST if
    rounding hides which path is longer: then retry with more noise. Gains within `noise` are ties."""
    worth, start, lower, upper, banned = network
    groups, k = lower.shape
    owed = np.empty((groups, k), np.int64)
    earned = np.empty((groups, k))
    came = np.empty((groups, k), np.int64)
    reached = np.empty((groups, k), np.bool_)
    group[:] = -1
    held[:, :] = 0
    for entering in range(k):
        reached[:, :] = False
        for g in range(groups):
            if not banned[g, entering]:
                reached[g, entering], owed[g, entering], earned[g, entering] = True, 0, 0.0
                came[g, entering] = STARTS
        end, end_owed, end_earned = -1, 0, 0.0
        moved, sweeps = True, 0
        while moved and sweeps <= groups * k:
            moved = False
            sweeps += 1
            for step in range(2 * k):  # down the positions, then up
                is_down = step < k
                p = step if is_down else 2 * k - 1 - step
                h = group[p]
                if h >= 0 and reached[h, p]:
                    for g in range(groups):
                        if g == h or banned[g, p]:
                            continue
                        more = owed[h, p] - owed[g, p] if reached[g, p] else 1
                        if more > 0 or (more == 0 and earned[h, p] > earned[g, p] + noise):
                            reached[g, p], owed[g, p], earned[g, p], came[g, p] = True, owed[h, p], earned[h, p], h
                            moved = True
                for g in range(groups if is_down else 0):
                    n = held[g, p]
                    if not reached[g, p] or n >= upper[g, p]:
                        continue
                    wanted = owed[g, p] + (1 if n < lower[g, p] else 0)
                    worthy = earned[g, p] + worth[p, start[g] + n]
                    if p == k - 1:
                        more = wanted - end_owed if end >= 0 else 1
                        if more > 0 or (more == 0 and worthy > end_earned + noise):
                            end, end_owed, end_earned = g, wanted, worthy
                        continue
                    more = wanted - owed[g, p + 1] if reached[g, p + 1] else 1
                    if more > 0 or (more == 0 and worthy > earned[g, p + 1] + noise):
                        reached[g, p + 1], owed[g, p + 1], earned[g, p + 1] = True, wanted, worthy
                        came[g, p + 1] = PASSES
                        moved = True
                for g in range(groups if p and not is_down else 0):
                    n = held[g, p - 1]
                    if not reached[g, p] or n == 0:
                        continue
                    wanted = owed[g, p] - (1 if n <= lower[g, p - 1] else 0)
                    worthy = earned[g, p] - worth[p - 1, start[g] + n - 1]
                    more = wanted - owed[g, p - 1] if reached[g, p - 1] else 1
                    if more > 0 or (more == 0 and worthy > earned[g, p - 1] + noise):
                        reached[g, p - 1], owed[g, p - 1], earned[g, p - 1] = True, wanted, worthy
                        came[g, p - 1] = GOES_BACK
                        moved = True
        if end < 0:
            return NONE
        g, p = end, k - 1
        held[g, p] += 1
        steps = 0
        while came[g, p] != STARTS:
            steps += 1
            if steps > groups * k:
                return LOST
            way = came[g, p]
            if way == PASSES:
                p -= 1
                held[g, p] += 1
            elif way == GOES_BACK:
                held[g, p] -= 1
                p += 1
            else:
                group[p] = g
                g = way
        group[entering] = g
    for g in range(groups):
        for p in range(k):
            if held[g, p] < lower[g, p]:
                return NONE
    return FOUND


def prefix_argmax(problem: GroupSequence) -> tuple[Ints, Floats]:
    """The best sequence of groups, and duals (groups, k) that prove it. Raises `InfeasibleError` if there is none."""
    group, held = np.empty(problem.positions, dtype=np.int64), np.empty(problem.lower.shape, dtype=np.int64)
    small = not assign_groups.pays(WORK * problem.groups * problem.positions**2)
    for noise in NOISES:
        assign = assign_groups.in_python if small else assign_groups
        state = assign(problem.network, noise * problem.scale, group, held)
        if state == FOUND:
            return group, problem.priced(group, held, compiled=not small)
        if state == NONE:
            break
    raise InfeasibleError(
        f"no sequence of {problem.groups} groups meets the limits on {problem.positions} prefixes. Relax a limit."
    )


NOISES = (NOISE, 2.0**-40, 2.0**-30)  # differences that count as none, to the largest worths


CLOSED, SETTLED, GIVEN_UP, FULL = 1, 0, -1, -2

PIVOTS = 40  # pivots a side after which the vertex search stops
SMALL = 1e-11  # what counts as no change of a weight
WEIGHED = 1e-9  # smaller weights are rounding
FARTHEST = 1e9  # how far a cap may rise, of what it began with, before what it limits is taken to be impossible


@inlined
def _corner(over: Floats, plane: int, active: Ints, inverse: Floats) -> None:
    """The vertex of one plane: multipliers at their caps for violated sides, else at 0."""
    sides = active.size - 1
    inverse[:] = 0.0
    for s in range(sides):
        high = over[s] > 0.0
        active[s] = sides + s if high else s
        inverse[s, s] = -1.0 if high else 1.0
        inverse[sides, s] = abs(over[s])
    active[sides], inverse[sides, sides] = 2 * sides + plane, 1.0


@compiled(internal=True)
def _pivot(
    value: Floats, over: Table[Floats], cap: Floats, planes: int, slack: float, active: Out[Ints],
    inverse: Out[Table[Floats]], at: Out[Floats], change: Out[Floats],
) -> bool:  # fmt: skip
    """Exchange active rows (y[s] >= 0 is s, its cap sides + s, plane t 2 sides + t), with an updated inverse, until
    their vertex `at` (y, then φ) violates no row by more than `slack`; False if that does not end."""
    sides = cap.size
    for _ in range(PIVOTS * (sides + 2)):
        at[:] = 0.0
        for index in range(sides + 1):
            row, least = active[index], 0.0
            if row >= 2 * sides:
                least = value[row - 2 * sides]
            elif row >= sides:
                least = -cap[row - sides]
            for i in range(sides + 1):
                at[i] += inverse[i, index] * least
        worst, entering = -slack, -1
        for s in range(sides):
            if at[s] < worst:
                worst, entering = at[s], s
            if cap[s] - at[s] < worst:
                worst, entering = cap[s] - at[s], sides + s
        for t in range(planes):
            margin = at[sides] - value[t]
            for s in range(sides):
                margin += over[t, s] * at[s]
            if margin < worst:
                worst, entering = margin, 2 * sides + t
        if entering < 0:
            return True
        leaving, least = -1, np.inf
        for index in range(sides + 1):
            if active[index] == entering:  # violated by rounding only
                return True
            if entering >= 2 * sides:
                change[index] = inverse[sides, index]
                for s in range(sides):
                    change[index] += over[entering - 2 * sides, s] * inverse[s, index]
            elif entering >= sides:
                change[index] = -inverse[entering - sides, index]
            else:
                change[index] = inverse[entering, index]
            if change[index] > SMALL and max(inverse[sides, index], 0.0) < least * change[index]:
                least, leaving = max(inverse[sides, index], 0.0) / change[index], index
        if leaving < 0:
            return False
        for i in range(sides + 1):
            inverse[i, leaving] /= change[leaving]
        for index in range(sides + 1):
            if index != leaving:
                for i in range(sides + 1):
                    inverse[i, index] -= inverse[i, leaving] * change[index]
        active[leaving] = entering
    return False


@compiled()
def ascend(
    scores: Floats, gain: Floats, discount: Floats, position_weights: Floats, base: Table[Floats],
    allowed: Table[Bools], leaf: Ints, parent: Ints, low: Ints, high: Ints, assigned: Ints, reward: float,
    weight: Table[Floats], lower: Floats, upper: Floats, rounding: Floats, price: Floats, side: Ints, sign: Floats,
    cap: Out[Floats], orders: Out[Table[Ints]], value: Out[Floats], reached: Out[Table[Floats]], part: Out[Floats],
    counted: Out[Ints], at: Out[Floats], best: Out[Ints], report: Out[Floats], near: float,
) -> int:  # fmt: skip
    """Improve the Lagrangian bound from `at` (or from the known planes): CLOSED if a feasible ranking attains the bound
    up to `near`; SETTLED if the multipliers are optimal; FULL if the memory for rankings is exhausted; else GIVEN_UP.

    Profits and groups are those of `assign_nested`, base (k, n) fixed penalties. assigned: documents that must
    be ranked, each with a `reward` that is subtracted at the end. lower <= weight (rows, k n) · π <= upper, up
    to `rounding`; price: the penalty of a violated unit, infinite for hard rows. side, sign: the rows with multipliers,
    for their upper limit (1) or their lower (-1); cap: the largest value of each, raised for hard rows.

    Rankings go to orders (flows, k), with their value (flows,) and reached (flows, rows); part: their weights; counted:
    the number of rankings and of solved flows. best, report[0]: the best feasible ranking and its value; report[1]: the
    bound; report[2]: the largest multiplier that proves it.
    """
    k, n = base.shape
    rows, sides, most = lower.size, side.size, orders.shape[0]
    over, limit, first = np.empty((most, sides)), np.empty(sides), cap.copy()
    for s in range(sides):
        limit[s] = upper[side[s]] if sign[s] > 0.0 else -lower[side[s]]
        for t in range(counted[0]):
            over[t, s] = sign[s] * reached[t, side[s]] - limit[s]
    active, inverse, change = np.empty(sides + 1, np.int64), np.empty((sides + 1, sides + 1)), np.empty(sides + 1)
    if counted[0]:
        _corner(over[counted[0] - 1], counted[0] - 1, active, inverse)
    toll, order, proved = np.empty((k, n)), np.empty(k, np.int64), np.empty(2)
    while counted[0] < most:
        planes = counted[0]
        if planes and not _pivot(value, over, cap, planes, 0.01 * near, active, inverse, at, change):
            return GIVEN_UP
        held = 0.0
        for i in range(k):
            for j in range(n):
                toll[i, j] = base[i, j]
        for s in range(sides):
            at[s] = min(max(at[s], 0.0), cap[s])
            held += at[s] * limit[s]
            if at[s] != 0.0:
                for i in range(k):
                    for j in range(n):
                        toll[i, j] += at[s] * sign[s] * weight[side[s], i * n + j]
        for j in assigned:
            held -= reward
            for i in range(k):
                toll[i, j] -= reward
        largest = 0.0
        for i in range(k):
            for j in range(n):
                largest = max(largest, abs(toll[i, j]))
        counted[1] += 1
        ended, same = LOST, 2.0**-50
        while ended == LOST and same < 2.0**-35:
            ended = assign_nested(
                scores, gain, discount, position_weights, toll, allowed, leaf, parent, low, high, same, order, proved
            )
            same *= 128.0
        if ended != FOUND:
            return GIVEN_UP
        bound = proved[1] + held
        if bound < report[1]:
            report[1], report[2] = bound, max(report[2], largest)
        for j in assigned:
            there = False
            for i in range(k):
                there = there or order[i] == j
            if not there:  # none has it: the reward outweighs all else
                return CLOSED
        earned, paid, admitted = 0.0, 0.0, True
        for i in range(k):
            earned += position_weights[i] * scores[order[i]] - discount[i] * gain[order[i]] - base[i, order[i]]
        for r in range(rows):
            here = 0.0
            for i in range(k):
                here += weight[r, i * n + order[i]]
            reached[planes, r] = here
            off = max(lower[r] - here, here - upper[r])
            if off > rounding[r]:
                admitted = admitted and price[r] < np.inf
                paid += price[r] * off if price[r] < np.inf else 0.0
        if admitted and earned - paid > report[0]:
            report[0] = earned - paid
            for i in range(k):
                best[i] = order[i]
        if report[1] <= report[0] + near:
            return CLOSED
        if planes == 0 or bound > at[sides] + near:
            for t in range(planes):
                known = True
                for i in range(k):
                    known = known and orders[t, i] == order[i]
                if known:
                    return GIVEN_UP
            value[planes] = earned
            for i in range(k):
                orders[planes, i] = order[i]
            for s in range(sides):
                over[planes, s] = sign[s] * reached[planes, side[s]] - limit[s]
            if planes == 0:
                _corner(over[0], 0, active, inverse)
            counted[0] += 1
            continue
        raised = False
        for index in range(sides + 1):
            s = active[index] - sides
            if 0 <= s < sides and inverse[sides, index] > WEIGHED and price[side[s]] == np.inf:
                cap[s] *= 4.0
                raised = True
                if cap[s] > FARTHEST * first[s]:
                    return GIVEN_UP
        if raised:
            continue
        part[:] = 0.0
        for index in range(sides + 1):
            if active[index] >= 2 * sides and inverse[sides, index] > WEIGHED:
                part[active[index] - 2 * sides] = inverse[sides, index]
        return SETTLED
    return FULL
