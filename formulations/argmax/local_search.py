"""The best order of a few chains of many documents, by local search that ends at an optimum.

Let k[p, g] be the number of documents of chain g at positions before p, and S[g](k) the sum of its k best scores. By
summation by parts the objective is Σ over p and g of (c[p-1] - c[p]) S[g](k[p, g]) - (a[p-1] - a[p]) b[g] k[p, g],
a concave function of each k[p, g]. The constraints on k and on its differences, Σ over g of k[p, g] = p and
0 <= k[p+1, g] - k[p, g], are totally unimodular (two laminar families), so an order is optimal if and only if no order
within distance 1, |k'[p, g] - k[p, g]| <= 1 for all p and g, is better [Murota, Saito and Weismantel 2004]. The best
neighbor of an order comes from a dynamic program with at most 3, 7, 19, 51, 141, 393 states a position for 2 to 7
chains. The first order is that of every second document of each chain at every second position, and so on.
"""

from __future__ import annotations

import numpy as np

from formulations.argmax.layout import LOCAL, Answers, Layout, fill_order, fill_up, query_rows, settle
from formulations.argmax.order_ideals import sort_chains
from formulations.arrays import Bytes, Floats, Ints, Out
from formulations.compiled import compiled, inlined, longest_query

SHORTEST = np.array([np.inf, np.inf, 60, 210, 760, 2550, 8460, 27510])
"""By number of chains: documents from which this takes less time than an assignment, 10 times states times chains."""

SEVERAL = SHORTEST.size - 1  # most chains that are searched
FIRST = 32  # positions up to which an order is searched from an arbitrary one
ROUNDING = 2.0**-53


@inlined
def _refined(label: Bytes, count: int, size: Ints, step: int, end: int, spare: Bytes) -> None:
    """Orders of every 2 step-th document become those of every step-th one: each label twice, as long as its chain has
    documents, then what is left. count: the number of labels before, end: after."""
    left = (size + (step - 1)) // step
    new = 0
    for p in range(2 * count):
        g = label[p // 2]
        if new < end and left[g] > 0:
            spare[new] = g
            left[g] -= 1
            new += 1
    for g in range(size.size):
        while new < end and left[g] > 0:
            spare[new] = g
            left[g] -= 1
            new += 1
    label[:end] = spare[:end]


@compiled(internal=True)
def search_labels(
    height: Floats,
    worth: Floats,
    start: Ints,
    size: Ints,
    discount: Floats,
    position_weights: Floats,
    stop: int,
    label: Out[Bytes],
) -> float:
    """label[p] = the chain whose next document is at position p < stop in an optimal order; the rounding error.

    Chains as in `best_labels`. Values count relative to the order at hand and an order is left only for one that is
    better by more than rounding, so that the search ends. If rounding hides an improvement of e within distance 1, it
    hides at most D e in all, by concavity, D being the largest distance of two orders.
    """
    chains = worth.size
    power = 3 ** np.arange(chains + 1)
    index, ahead = np.full(power[chains], -1), np.empty((power[chains], chains), np.int64)
    codes = np.empty(power[chains], np.int64)
    states = 0
    for code in range(power[chains]):  # digit g, less 1: how many more documents of chain g
        total = 0
        for g in range(chains):
            ahead[states, g] = code // power[g] % 3 - 1
            total += ahead[states, g]
        if total == 0:
            index[code], codes[states] = states, code
            states += 1
    here = states // 2  # the order at hand: digits 1
    came, spare = np.empty((stop, states), np.int8), np.empty(stop, np.int8)
    value, new_value = np.empty(states), np.empty(states)
    used, cost = np.empty(chains, np.int64), np.empty((chains, 3))
    tallest, dearest = 0.0, np.abs(worth).max()
    for g in range(chains):  # height is a buffer, with scores of other queries in the rest of it
        tallest = max(tallest, np.abs(height[start[g] : start[g] + size[g]]).max())
    step, count, error = 1, 0, 0.0
    while stop // step > FIRST:
        step *= 2
    while step > 0:
        end = min(((size[:chains] + (step - 1)) // step).sum(), (stop + step - 1) // step)
        _refined(label, count, size[:chains], step, end, spare)
        count = end
        better = True
        while better:
            value[:], used[:], error = -np.inf, 0, 0.0
            value[here] = 0.0
            for p in range(end):
                c = position_weights[p * step] - position_weights[stop]
                a = discount[p * step] - discount[stop]
                for g in range(chains):
                    for i in range(3):
                        k = (used[g] + i - 1) * step
                        cost[g, i] = c * height[start[g] + k] - a * worth[g] if 0 <= k < size[g] else -np.inf
                now = label[p]
                base, largest = cost[now, 1], 0.0
                new_value[:] = -np.inf
                for t in range(states):
                    if value[t] == -np.inf:
                        continue
                    for g in range(chains):
                        if g != now and (ahead[t, g] == 1 or ahead[t, now] == -1):
                            continue
                        u = index[codes[t] + power[g] - power[now]]
                        reached = value[t] + (cost[g, ahead[t, g] + 1] - base)
                        if reached > new_value[u]:
                            new_value[u], came[p, u] = reached, g
                            largest = max(largest, abs(reached))
                value, new_value = new_value, value
                used[now] += 1
                error += ROUNDING * (6.0 * (c * tallest + a * dearest) + largest)
            t = int(np.argmax(value))
            better = value[t] > error
            if better:
                for p in range(end - 1, -1, -1):
                    g, now = came[p, t], label[p]
                    label[p] = g
                    t = index[codes[t] - power[g] + power[now]]
        step //= 2
    return 2.0 * error * stop


@compiled()
def search_range(scores: Floats, layout: Layout, begin: int, end: int, max_states: int, found: Answers) -> None:
    """Solve the queries marked LOCAL, which have at most `SEVERAL` gains."""
    offsets, first_chain, way = layout.offsets, layout.first_chain, found.way
    n = longest_query(offsets, begin, end)
    height, other, label = np.empty(n), np.empty(n), np.empty(n, np.int8)
    document, spare, done = np.empty(n, np.int32), np.empty(n, np.int32), np.zeros(n, np.bool_)
    start, size = np.empty(SEVERAL, np.int64), np.empty(SEVERAL, np.int64)
    for q in range(begin, end):
        if way[q] != LOCAL:
            continue
        top, bottom, last = offsets[q], offsets[q + 1], layout.stop[q]
        s, b, a, c = query_rows(scores, layout, q)
        members, result = layout.by_gain[top:bottom], found.order[top:bottom]
        begins = layout.chain_start[first_chain[q] : first_chain[q + 1] + 1]
        sort_chains(s, members, begins, top, last, height, document, other, spare, start, size)
        left = search_labels(height, layout.worth[first_chain[q] : first_chain[q + 1]], start, size, a, c, last, label)
        fill_order(label, document, start, last, result)
        fill_up(members, last, done, result)
        settle(s, b, a, c, result, left, q, found)
