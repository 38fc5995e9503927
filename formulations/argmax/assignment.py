"""The best order from a good one by shortest augmenting paths, compiled for any gains, or with SciPy.

The input has duals v and levels u_p >= profit[p, j] - v_j. Documents that attain the level of their position stay. Each
other position takes the document at the end of a shortest path of exchanges [Jonker and Volgenant 1987], which raises
the duals along it. At the end levels and duals prove the order. Each position visits all documents, in loops without
branches. Documents stay in their initial order, for contiguous access. Unplaced documents are at one additional
position of weight zero and unlimited capacity. Small batches use SciPy's solver, without compiling.
"""

from __future__ import annotations

import numpy as np

from formulations.argmax.layout import ANY, ASSIGNMENT, FEW, ONE_SORT, Answers
from formulations.arrays import Floats, Ints, Out
from formulations.compiled import compiled, inlined
from formulations.problems.problem import EPSILON


@inlined
def greedy_order(
    scores: Floats, gain: Floats, discount: Floats, position_weights: Floats, stop: int, ahead: int, order: Ints
) -> float:
    """Put at each position p < stop the best document in the direction of the step to a later position; the value.

    ahead: 0 for the step to the next position of other weights; else the step by one `ahead`-th of what is left.
    """
    n = order.size
    for i in range(n):
        order[i] = i
    upto, total = 0, 0.0
    for p in range(stop):
        upto = max(upto, p + 1 if ahead == 0 else p + max((stop - p) // ahead, 1))
        while upto < stop and position_weights[upto] == position_weights[p] and discount[upto] == discount[p]:
            upto += 1
        dc, da = position_weights[p] - position_weights[upto], discount[p] - discount[upto]
        best, most = p, -np.inf
        for i in range(p, n):
            key = dc * scores[order[i]] - da * gain[order[i]]
            if key > most:
                best, most = i, key
        order[p], order[best] = order[best], order[p]
        total += (position_weights[p] - position_weights[stop]) * scores[order[p]] - (
            discount[p] - discount[stop]
        ) * gain[order[p]]
    return total


@inlined
def order_prices(s: Floats, b: Floats, a: Floats, c: Floats, stop: int, price: Floats) -> None:
    """Duals of documents in order: midway between neighbors, then raised until no earlier position prefers another.

    Weights count above those of position `stop`, after which documents are unplaced, with dual 0.
    """
    best_out = -np.inf
    for j in range(stop, s.size):
        price[j] = 0.0
        best_out = max(best_out, c[stop - 1] * s[j] - a[stop - 1] * b[j])
    level = 0.0
    for p in range(stop - 1, -1, -1):
        if p == stop - 1:
            level = (c[p] * s[p] - a[p] * b[p] - best_out) / 2.0 if stop < s.size else 0.0
        else:
            level += ((c[p] + c[p + 1]) * (s[p] - s[p + 1]) - (a[p] + a[p + 1]) * (b[p] - b[p + 1])) / 2.0
        level = max(level, 0.0)
        price[p] = level
    for p in range(stop - 1, 0, -1):
        base = price[p] - (c[p] * s[p] - a[p] * b[p])
        for j in range(p):
            price[j] = max(price[j], base + (c[p] * s[j] - a[p] * b[j]))


FREE = -1


@inlined
def _nearest(distance: Floats, row_of: Ints) -> int:
    """The document at the least distance; among ties a free one."""
    n = distance.size
    least = np.empty(8)
    for k in range(8):
        least[k] = np.inf
    for i in range(0, n - n % 8, 8):
        for k in range(8):
            least[k] = distance[i + k] if distance[i + k] < least[k] else least[k]
    bound = np.inf
    for k in range(8):
        bound = min(bound, least[k])
    for j in range(n - n % 8, n):
        bound = min(bound, distance[j])
    nearest = -1
    for j in range(n):
        if distance[j] == bound:
            nearest = j
            if row_of[j] == FREE:
                break
    return nearest


@compiled(internal=True)
def assign(
    scores: Floats, gain: Floats, discount: Floats, position_weights: Floats, stop: int, anew: bool, order: Out[Ints]
) -> float:
    """Fill `order` with an optimal order, positions from `stop` on being equivalent; returns the rounding error.

    anew: start from an empty assignment with duals 0, which is faster if most exchanges are ties.
    """
    n = order.size
    other = np.empty(n, np.int64)
    if greedy_order(scores, gain, discount, position_weights, stop, 2, other) < greedy_order(
        scores, gain, discount, position_weights, stop, 0, order
    ):
        for i in range(n):
            other[i] = order[i]
    s, b, a, c, price = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    highest, dearest = 0.0, 0.0
    for i in range(n):
        s[i], b[i] = scores[other[i]], gain[other[i]]
        a[i], c[i] = discount[i] - discount[stop], position_weights[i] - position_weights[stop]
        highest, dearest = max(highest, abs(s[i])), max(dearest, abs(b[i]))
    order_prices(s, b, a, c, stop, price)
    noise = 4.0 * EPSILON * (highest * c[0] + dearest * a[0])
    row_of, holds, level = np.empty(n, np.int64), np.empty(stop, np.int64), np.empty(stop)
    for i in range(stop, n):
        row_of[i] = stop
    for p in range(stop):
        most = -np.inf
        for j in range(n):
            here = c[p] * s[j] - a[p] * b[j] - price[j]
            most = here if here > most else most
        level[p] = most
        suits = most + price[p] - (c[p] * s[p] - a[p] * b[p]) <= noise
        holds[p], row_of[p] = (p, p) if suits else (FREE, FREE)
    if anew:
        for j in range(n):
            price[j], row_of[j] = 0.0, FREE
        for p in range(stop):
            holds[p], most = FREE, -np.inf
            for j in range(n):
                here = c[p] * s[j] - a[p] * b[j]
                most = here if here > most else most
            level[p] = most
    idle = 0.0
    distance, by, found, length = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    cost = np.empty(n)  # dual, infinite once a document is reached
    for start in range(stop):
        if holds[start] != FREE:
            continue
        for j in range(n):
            distance[j] = np.inf
            cost[j] = idle if row_of[j] == stop else price[j]
        row, base, offset, entry, reached = start, 0.0, level[start], -1, 0
        while True:
            u, w = 0.0, 0.0
            if row < stop:
                u, w = c[row], a[row]
            for j in range(n):
                d = offset + (cost[j] - (u * s[j] - w * b[j]))
                nearer = d < distance[j]
                distance[j] = d if nearer else distance[j]
                by[j] = row if nearer else by[j]
            j = _nearest(distance, row_of)
            base = max(base, distance[j])
            if row_of[j] == FREE:
                break
            row = row_of[j]
            if row == stop:  # all unplaced documents are at this distance
                entry, offset = j, base - idle
                for other_ in range(n):
                    if row_of[other_] == stop:
                        cost[other_], distance[other_] = np.inf, np.inf
            else:
                offset = base - (price[j] - (c[row] * s[j] - a[row] * b[j]))
                cost[j], distance[j] = np.inf, np.inf
            found[reached], length[reached] = j, base
            reached += 1
        for i in range(reached):
            if found[i] == entry:
                idle += base - length[i]
            else:
                price[found[i]] += base - length[i]
        while True:
            row = by[j]
            row_of[j] = row
            if row == stop:
                price[entry], moved = idle, entry
            else:
                moved = holds[row]
                holds[row] = j
            if row == start:
                break
            j = moved
    for p in range(stop):
        order[p] = other[holds[p]]
    p = stop
    for j in range(n):
        if row_of[j] == stop or row_of[j] == FREE:
            order[p] = other[j]
            p += 1
    return float(noise * stop)


def assign_queries(
    scores: Floats, gain: Floats, discount: Floats, position_weights: Floats, offsets: Ints, taken: Ints, found: Answers
) -> None:
    """Fill the answers of these queries."""
    for q in taken.tolist():
        rows = slice(int(offsets[q]), int(offsets[q + 1]))
        s, b, a, c = scores[rows], gain[rows], discount[rows], position_weights[rows]
        assigned, found.way[q], left = _assign_one(s, b, a, c)
        found.order[rows] = assigned
        up, down = c * s[assigned], a * b[assigned]
        rounding = EPSILON * (8.0 + 2.0 * s.size) * (np.abs(up).sum() + np.abs(down).sum())
        found.value[q] = (up - down).sum()
        found.bound[q] = found.value[q] + rounding + left


def _assign_one(scores: Floats, gain: Floats, discount: Floats, position_weights: Floats) -> tuple[Ints, int, float]:
    """The best order, the method, and the rounding error."""
    from scipy.optimize import linear_sum_assignment

    by_gain = np.argsort(gain, kind="stable")
    differ = np.flatnonzero(
        (discount != discount[-1]) | (position_weights != position_weights[-1])
    )  # positions before a tail of equal ones
    if not differ.size or (scores == scores[0]).all():
        return by_gain, ONE_SORT if differ.size else ANY, 0.0
    k = int(differ[-1]) + 1
    a, c = discount[:k] - discount[-1], position_weights[:k] - position_weights[-1]
    candidates = candidates_of(scores, gain, k, 0)
    # More documents than positions: SciPy takes positions as rows. A square matrix of documents by positions would be
    # solved in half the time, but rounding errors would decide between documents of equal score, so training would
    # depend on the last digits of the data.
    profit = np.outer(scores[candidates], c) - np.outer(gain[candidates], a)
    assigned, position = linear_sum_assignment(profit, maximize=True)
    first, rest = np.empty(k, dtype=np.int64), np.ones(scores.size, dtype=bool)
    first[position] = candidates[assigned]
    rest[first] = False
    left = 4.0 * EPSILON * k * (np.abs(scores).max() * c[0] + np.abs(gain).max() * a[0])
    way = FEW if candidates.size < scores.size else ASSIGNMENT
    return np.concatenate([first, by_gain[rest[by_gain]]]), way, float(left)


def candidates_of(scores: Floats, gain: Floats, above: int, below: int) -> Ints:
    """The documents that an optimal order can rank: of each gain only the `above` best-scored at positions of larger
    weight than unplaced documents, and only the `below` worst-scored at positions of smaller weight.

    Sorted by gain and score, so that ties do not depend on the input order."""
    by_score = np.lexsort((-scores, gain))
    sorted_gain = gain[by_score]
    starts = np.flatnonzero(np.append(True, sorted_gain[1:] != sorted_gain[:-1]))
    sizes = np.diff(np.append(starts, gain.size))
    rank = np.arange(gain.size) - np.repeat(starts, sizes)
    needed = (rank < above) | (np.repeat(sizes, sizes) - rank <= below)
    return np.asarray(by_score[needed])
