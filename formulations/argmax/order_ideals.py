"""The best order of chains of documents: a merge where the next document is unique, else dynamic programming.

Documents of one gain stay in order of score, so each distinct gain is a chain. A state is the vector of used counts
per chain; their sum is the next position. The next document is the head of a chain that no other head dominates in both
extreme directions of the steps from this position on. Later positions have narrower cones, so mostly one head remains
and nothing is stored. Between two positions with a single state, states are stored layer by layer in order of their
keys. A document of a chain adds a constant to every key, so each chain gives a sorted list of new states. The next
layer is the merge of these lists with the best path to each state. With two gains this takes O(n₊ n₋).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from formulations.arrays import Bytes, Floats, Ints, Out, Shorts, Table
from formulations.compiled import compiled, inlined
from formulations.sorting import sort_pairs

CHAINS = 16  # most distinct gains that are merged; with more, states are too many anyway

LAST = (1 << 63) - 1


class SortedChains(NamedTuple):
    """Chain g holds size[g] documents of gain worth[g], their scores falling in height[start[g] : start[g] + size[g]];
    and the weights of the positions."""

    height: Out[Floats]
    worth: Floats
    start: Out[Ints]
    size: Out[Ints]
    discount: Floats
    position_weights: Floats


@compiled(internal=True)
def best_labels(
    height: Floats,
    worth: Floats,
    start: Ints,
    size: Ints,
    discount: Floats,
    position_weights: Floats,
    low: Shorts,
    high: Shorts,
    stop: int,
    next_key: Out[Table[Ints]],
    next_value: Out[Table[Floats]],
    next_from: Out[Table[Shorts]],
    key: Out[Ints],
    value: Out[Floats],
    origin: Out[Shorts],
    chain: Out[Bytes],
    label: Out[Bytes],
) -> int:
    """label[p] = the chain whose next document is best at position p < stop; the maximum number of states of a
    position, -1 if they or their keys exceed the buffers.

    Chain g holds size[g] documents of gain worth[g], their scores falling in height[start[g] : start[g] + size[g]].
    low, high: see `find_cones`. Buffers: next_* a row per chain, key and value of a layer, origin and chain per state.
    """
    chains = worth.size
    used, shift, mask = np.zeros(CHAINS, np.int64), np.zeros(CHAINS, np.int64), np.zeros(CHAINS, np.int64)
    count, taken = np.zeros(CHAINS, np.int64), np.zeros(CHAINS, np.int64)
    one, two = np.empty(CHAINS), np.empty(CHAINS)
    bits = 0
    for g in range(chains):
        shift[g] = bits
        while size[g] >= 1 << (bits - shift[g]):
            bits += 1
        mask[g] = (1 << (bits - shift[g])) - 1
    # Weights count above those of the last position, so that remaining positions count nothing.
    floor_c, floor_a = position_weights[stop], discount[stop]
    widest, spent, p = 1, 0, 0
    while p < stop:
        # One state: the head that is best in either extreme direction is next, if that is one head.
        dc, da = position_weights[low[p]] - position_weights[low[p] + 1], discount[low[p]] - discount[low[p] + 1]
        ec, ea = position_weights[high[p]] - position_weights[high[p] + 1], discount[high[p]] - discount[high[p] + 1]
        first, second = -1, -1
        first_one, first_two, second_one, second_two = -np.inf, -np.inf, -np.inf, -np.inf
        for g in range(chains):
            if used[g] < size[g]:
                s = height[start[g] + used[g]]
                x, y = dc * s - da * worth[g], ec * s - ea * worth[g]
                if x > first_one or (x == first_one and y > first_two):
                    first, first_one, first_two = g, x, y
                if y > second_two or (y == second_two and x > second_one):
                    second, second_one, second_two = g, x, y
        if first == second:
            label[p] = first
            used[first] += 1
            p += 1
            continue
        # More than one: layers of states from here to the next position that has a single one.
        if bits > 62:
            return -1
        key[0], value[0], origin[0] = 0, 0.0, -1
        for g in range(chains):
            key[0] += used[g] << shift[g]
        begin, width, begun = 0, 1, p
        while True:
            if begin + width + chains * width > origin.size or chains * width > key.size:
                return -1
            dc, da = position_weights[low[p]] - position_weights[low[p] + 1], discount[low[p]] - discount[low[p] + 1]
            ec, ea = (
                position_weights[high[p]] - position_weights[high[p] + 1],
                discount[high[p]] - discount[high[p] + 1],
            )
            c, a = position_weights[p] - floor_c, discount[p] - floor_a
            for g in range(chains):
                count[g] = 0
            for t in range(width):
                here = key[t]
                first, second = -1, -1
                first_one, first_two, second_one, second_two = -np.inf, -np.inf, -np.inf, -np.inf
                for g in range(chains):
                    done = (here >> shift[g]) & mask[g]
                    if done < size[g]:
                        s = height[start[g] + done]
                        x, y = dc * s - da * worth[g], ec * s - ea * worth[g]
                        one[g], two[g] = x, y
                        if x > first_one or (x == first_one and y > first_two):
                            first, first_one, first_two = g, x, y
                        if y > second_two or (y == second_two and x > second_one):
                            second, second_one, second_two = g, x, y
                    else:
                        one[g], two[g] = -np.inf, -np.inf
                for g in range(chains):
                    x, y = one[g], two[g]
                    if g != first and g != second:
                        # Nothing dominates the first and the second; between them in both directions others may stay.
                        if first == second or x <= second_one or y <= first_two:
                            continue
                        dominated = False
                        for h in range(chains):
                            if one[h] >= x and two[h] >= y and (one[h] > x or two[h] > y or h < g):
                                dominated = True
                                break
                        if dominated:
                            continue
                    i, slot = count[g], start[g] + ((here >> shift[g]) & mask[g])
                    reached = value[t] + (c * height[slot] - a * worth[g])
                    next_key[g, i] = here + (1 << shift[g])
                    next_value[g, i] = reached
                    next_from[g, i] = begin + t
                    count[g] = i + 1
            for g in range(chains):
                next_key[g, count[g]] = LAST
                taken[g] = 0
            begin, new = begin + width, 0
            while True:
                least = LAST
                for g in range(chains):
                    least = min(least, next_key[g, taken[g]])
                if least == LAST:
                    break
                best = -np.inf
                for g in range(chains):
                    i = taken[g]
                    if next_key[g, i] == least:
                        if next_value[g, i] > best:
                            best = next_value[g, i]
                            origin[begin + new], chain[begin + new] = next_from[g, i], g
                        taken[g] = i + 1
                key[new], value[new] = least, best
                new += 1
            width, p = new, p + 1
            widest, spent = max(widest, width), spent + width
            if spent > origin.size:
                return -1
            if width == 1 or p == stop:
                break
        last = 0
        for t in range(1, width):
            if value[t] > value[last]:
                last = t
        for g in range(chains):
            used[g] = (key[last] >> shift[g]) & mask[g]
        state = begin + last
        for q in range(p - 1, begun - 1, -1):
            label[q] = chain[state]
            state = origin[state]
    return widest


@inlined
def _few(scores: Floats, members: Shorts, reach: int, height: Floats, document: Shorts) -> None:
    """height, document: the `reach` best scores and their documents, ties in input order."""
    held = 0
    for x in members:
        s = scores[x]
        if held == reach:
            if s <= height[held - 1]:
                continue
            i = held - 1
        else:
            i = held
            held += 1
        while i > 0 and height[i - 1] < s:
            height[i], document[i] = height[i - 1], document[i - 1]
            i -= 1
        height[i], document[i] = s, x


@compiled(internal=True)
def sort_chain(
    scores: Floats,
    members: Shorts,
    reach: int,
    height: Out[Floats],
    document: Out[Shorts],
    other: Out[Floats],
    spare: Out[Shorts],
) -> None:
    """Sort the members stably by falling score into document, their scores into height.

    Only the first `reach` need be right. other, spare: buffers of the same size.
    """
    count = members.size
    if 4 * reach <= count:
        _few(scores, members, reach, height, document)
        return
    for i in range(count):
        height[i], document[i] = scores[members[i]], members[i]
    sort_pairs(height[:count], document[:count], other[:count], spare[:count])


@compiled(internal=True)
def sort_chains(
    scores: Floats,
    members: Shorts,
    begins: Ints,
    top: int,
    last: int,
    height: Out[Floats],
    document: Out[Shorts],
    other: Out[Floats],
    spare: Out[Shorts],
    start: Out[Ints],
    size: Out[Ints],
) -> None:
    """`sort_chain` of every chain of a query whose first row is `top`: chain g begins at row begins[g] and ends where
    the next one begins. start, size: its range among the members, as needed for `last` positions and one more."""
    for g in range(begins.size - 1):
        from_, to = begins[g] - top, begins[g + 1] - top
        start[g], size[g] = from_, min(to - from_, last + 1)
        part = slice(from_, to)
        sort_chain(scores, members[part], last + 1, height[part], document[part], other[part], spare[part])
