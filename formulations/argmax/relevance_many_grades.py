"""Dynamic programming over the lattice of counts of several grades, and the tails after the last discount.

A state is reached from states with one document less of some chain; among tied paths the lowest chain comes last.
States are visited in lexicographic order, so their predecessors are known. If the discount is 0 from position k on,
only states of up to k documents count (C(k + G, G) for G chains). Each state of k documents is completed by its tail,
the remaining documents by score. Under the pairwise map a tail is a sum over pairs of chains, each O(1), as
in `relevance_two_grades`; under the positional map it is merged; under the first-relevant map it is the best number of
others above the first relevant document, if that remains.
"""

from __future__ import annotations

import numpy as np

from formulations.argmax.relevance_layout import RelevanceLayout
from formulations.arrays import Bytes, Floats, Ints, Out, Shorts, Table
from formulations.compiled import compiled, inlined


@compiled(internal=True)
def pair_tails(
    height: Floats,
    begins: Ints,
    grade: Floats,
    k: int,
    total: Out[Table[Floats]],
    free: Out[Table[Floats]],
    until: Out[Table[Ints]],
) -> None:
    """total[h, i]: the sum of the first i of chain h. For chains l of lower grade than h, at row l · G + h: free[i],
    the loss of chain h from i on against l in order of score; until[a]: how many of h are above fewer than a of l."""
    chains = grade.size
    for h in range(chains):
        total[h, 0] = 0.0
        for i in range(begins[h + 1] - begins[h]):
            total[h, i + 1] = total[h, i] + height[begins[h] + i]
    for low in range(chains):
        count = begins[low + 1] - begins[low]
        for h in range(chains):
            if grade[low] >= grade[h]:
                continue
            pair, passed, above = low * chains + h, 0, 0
            length = begins[h + 1] - begins[h]
            for i in range(length):
                s = height[begins[h] + i]
                while passed < count and height[begins[low] + passed] > s:
                    passed += 1
                while above <= min(passed, k):
                    until[pair, above] = i
                    above += 1
                free[pair, i] = total[low, passed] - passed * s
            while above <= min(count, k):
                until[pair, above] = length
                above += 1
            free[pair, length] = 0.0
            for i in range(length - 1, -1, -1):
                free[pair, i] += free[pair, i + 1]


@inlined
def pairwise_tail(taken: Ints, grade: Floats, total: Floats, free: Floats, until: Ints) -> float:
    """The contribution of the remaining pairs under the pairwise map, from the counts taken of each chain."""
    chains, value = grade.size, 0.0
    for low in range(chains):
        a = taken[low]
        for h in range(chains):
            if grade[low] < grade[h]:
                pair, b = low * chains + h, taken[h]
                to = max(until[pair, a], b)
                value += free[pair, to] + (to - b) * total[low, a] - a * (total[h, to] - total[h, b])
    return value


@compiled(internal=True)
def next_of(height: Floats, begins: Ints, taken: Ints, grade: Floats, others: bool) -> int:
    """The chain with the best remaining (for `others`: irrelevant) document, the highest among ties, -1 if none."""
    best, most = -1, -np.inf
    for h in range(grade.size):
        if begins[h] + taken[h] < begins[h + 1] and not (others and grade[h] > 0.0):
            s = height[begins[h] + taken[h]]
            if s >= most:
                best, most = h, s
    return best


@compiled(internal=True)
def positional_tail(
    height: Floats, begins: Ints, taken: Ints, grade: Floats, position_weights: Floats, k: int, cursor: Out[Ints]
) -> float:
    """The contribution of positions from k on, where the rest is sorted by score."""
    for h in range(grade.size):
        cursor[h] = taken[h]
    value = 0.0
    for p in range(k, position_weights.size):
        h = next_of(height, begins, cursor, grade, False)
        value += position_weights[p] * height[begins[h] + cursor[h]]
        cursor[h] += 1
    return value


@compiled(internal=True)
def first_tail(
    height: Floats, begins: Ints, taken: Ints, grade: Floats, strength: float, cursor: Out[Ints], more: Out[Ints]
) -> float:
    """The contribution of others above the first relevant document if it is unplaced; more[0]: their number, or -1."""
    above, lowest, used = 0, np.inf, False
    for h in range(grade.size):
        cursor[h] = taken[h]
        if grade[h] > 0.0:
            used |= taken[h] > 0
            if begins[h] < begins[h + 1]:
                lowest = min(lowest, height[begins[h]])
        else:
            above += taken[h]
    more[0] = -1
    if used or strength == 0.0:
        return 0.0
    most, gained, count = -np.inf if lowest == np.inf else -strength * above * lowest, 0.0, 0
    more[0] = 0
    while True:
        h = next_of(height, begins, cursor, grade, True)
        if h < 0:
            break
        gained += strength * height[begins[h] + cursor[h]]
        cursor[h] += 1
        count += 1
        value = gained if lowest == np.inf else gained - strength * (above + count) * lowest
        if value > most:
            most, more[0] = value, count
    return 0.0 if most == -np.inf else most


MOST_COUNTS = 1 << 25  # maximum number of states of a searched lattice

_PAIRWISE, _POSITIONAL, _FIRST = range(3)


@compiled()
def counts_range(
    height: Floats, document: Shorts, layout: RelevanceLayout, stop: Ints, taken: Bytes, begin: int, end: int,
    order: Out[Ints],
) -> None:  # fmt: skip
    """order of the queries that are taken; stop[q]: the first position without discount, or the number of documents."""
    discount, weight, kind, offsets = layout.discount, layout.weight, layout.kind, layout.offsets
    chain_start, first_chain = layout.chain_start, layout.first_chain
    largest, most_chains, longest, deepest = 1, 1, 1, 1
    for q in range(begin, end):
        if taken[q]:
            states = 1
            for h in range(first_chain[q], first_chain[q + 1]):
                states *= min(chain_start[h + 1] - chain_start[h], stop[q]) + 1
            largest, most_chains = max(largest, states), max(most_chains, first_chain[q + 1] - first_chain[q])
            longest, deepest = max(longest, offsets[q + 1] - offsets[q]), max(deepest, stop[q])
    reached, came = np.empty(largest), np.empty(largest, np.int8)
    counts, caps, strides = (
        np.empty(most_chains, np.int64), np.empty(most_chains, np.int64), np.empty(most_chains, np.int64)
    )  # fmt: skip
    cursor, more, retained = np.empty(most_chains, np.int64), np.zeros(1, np.int64), np.empty(most_chains, np.int64)
    pairs = most_chains * most_chains if kind == _PAIRWISE else 1
    total, free = np.empty((most_chains, longest + 1)), np.empty((pairs, longest + 1))
    until, powers = np.empty((pairs, deepest + 1), np.int64), np.ones((most_chains, longest + 1))
    for q in range(begin, end):
        if not taken[q]:
            continue
        low, high, chains, k = offsets[q], offsets[q + 1], first_chain[q + 1] - first_chain[q], stop[q]
        own, c0 = height[low:high], first_chain[q]
        grade = layout.chain_grade[c0 : c0 + chains]
        share, passing = layout.chain_share[c0 : c0 + chains], layout.chain_passing[c0 : c0 + chains]
        begins = chain_start[c0 : c0 + chains + 1] - low
        d, tailed, passes = discount[low:high], k < high - low, False
        position_weights = weight[low:high] if kind == _POSITIONAL else d
        strength = 0.0 if kind == _POSITIONAL else weight[q]
        n, c = counts[:chains], retained[:chains]
        stride = 1
        for h in range(chains - 1, -1, -1):
            caps[h] = min(begins[h + 1] - begins[h], k)
            strides[h] = stride
            stride *= caps[h] + 1
            n[h] = 0
            if passing[h] != 1.0:
                passes = True
            for i in range(caps[h]):
                powers[h, i + 1] = powers[h, i] * passing[h]
        if kind == _PAIRWISE:
            pair_tails(own, begins, grade, k, total, free, until)
        reached[0], came[0] = 0.0, -1
        most, at, level, index = -np.inf, 0, 0, 0
        while True:
            if level:
                value, by = -np.inf, -1
                for h in range(chains):
                    if n[h] == 0:
                        continue
                    s = own[begins[h] + n[h] - 1]
                    step = 0.0
                    if kind == _POSITIONAL:
                        step = position_weights[level - 1] * s
                    elif kind == _PAIRWISE:
                        for lower in range(chains):
                            if grade[lower] < grade[h]:
                                step += total[lower, n[lower]] - n[lower] * s
                        step *= strength
                    else:
                        used, others = 0, 0
                        for lower in range(chains):
                            if grade[lower] > 0.0:
                                used += n[lower]
                            else:
                                others += n[lower]
                        if grade[h] > 0.0:
                            step = -strength * others * s if used == 1 else 0.0
                        elif used == 0:
                            step = strength * s
                    stay = 1.0
                    if passes:
                        for lower in range(chains):
                            stay *= powers[lower, n[lower] - 1 if lower == h else n[lower]]
                    known = reached[index - strides[h]] + step - share[h] * stay * d[level - 1]
                    if known > value:
                        value, by = known, h
                reached[index], came[index] = value, by
            if level == k:
                value = reached[index]
                if tailed:
                    if kind == _PAIRWISE:
                        value += strength * pairwise_tail(n, grade, total, free, until)
                    elif kind == _POSITIONAL:
                        value += positional_tail(own, begins, n, grade, position_weights, k, cursor[:chains])
                    else:
                        value += first_tail(own, begins, n, grade, strength, cursor[:chains], more)
                if value > most:
                    most, at = value, index
                    for h in range(chains):
                        c[h] = n[h]
            h = chains - 1
            while h >= 0 and (n[h] == caps[h] or level == k):
                index -= n[h] * strides[h]
                level -= n[h]
                n[h] = 0
                h -= 1
            if h < 0:
                break
            n[h] += 1
            level += 1
            index += strides[h]
        # The positions before the tail, traced backwards; then the tail.
        for h in range(chains):
            n[h] = c[h]
        for p in range(k - 1, -1, -1):
            h = came[at]
            n[h] -= 1
            order[low + p] = document[low + begins[h] + n[h]]
            at -= strides[h]
        if kind == _FIRST and tailed:
            first_tail(own, begins, c, grade, strength, cursor[:chains], more)
        position = k
        if kind == _FIRST and more[0] >= 0 and tailed:
            for _ in range(more[0]):
                h = next_of(own, begins, c, grade, True)
                order[low + position] = document[low + begins[h] + c[h]]
                c[h] += 1
                position += 1
            h = -1
            for other in range(chains):
                if grade[other] > 0.0 and (h < 0 or own[begins[other]] < own[begins[h]]):
                    h = other
            if h >= 0:
                order[low + position] = document[low + begins[h]]
                c[h] += 1
                position += 1
        while position < high - low:
            h = next_of(own, begins, c, grade, False)
            order[low + position] = document[low + begins[h] + c[h]]
            c[h] += 1
            position += 1
