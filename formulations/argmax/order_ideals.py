"""The best order of a part that two sorts cannot split: dynamic programming over order ideals.

Documents of equal gain stay in order of score, so each distinct gain is a chain; a state says how many of each chain
are placed, which also tells the next position. A document may be placed once no document that dominates it (ahead of
it in both extreme sorts) waits: the states are the down-sets of the dominance order. With two gains this is the merge
of two lists in O(n₊ n₋). From position `stop` on all steps of the weights have one direction, so one sort, `tail`,
finishes every state.
"""

import numba as nb
import numpy as np

from formulations.argmax.stable_sort import sort_falling
from formulations.arrays import Floats, Ints
from formulations.compiled import FLOATS, INTS, READ_FLOATS, compiled

__all__ = ["CHAINS", "best_order", "chains_of"]

CHAINS = 12
"""Most distinct gains of one part; with more, states are too many anyway."""


@compiled(nb.int64(READ_FLOATS, INTS, INTS))
def chains_of(gain: Floats, by_gain: Ints, start: Ints) -> int:
    """The number of runs of equal gain in `by_gain`, their bounds in `start`; -1 if there are more than CHAINS."""
    chains = 0
    start[0] = 0
    for i in range(1, by_gain.size):
        if gain[by_gain[i]] != gain[by_gain[i - 1]]:
            chains += 1
            if chains == CHAINS:
                return -1
            start[chains] = i
    start[chains + 1] = by_gain.size
    return chains + 1


@compiled(nb.void(nb.int64, INTS, nb.int64, INTS))
def _decode(key: int, stride: Ints, chains: int, placed: Ints) -> None:
    for g in range(chains):
        placed[g] = (key % stride[g + 1]) // stride[g]


@compiled(nb.boolean(nb.int64, nb.int64, INTS, INTS, INTS, INTS, INTS, nb.int64))
def _dominated(
    x: int, g: int, by_gain: Ints, start: Ints, placed: Ints, first: Ints, second: Ints, chains: int
) -> bool:
    """Whether the head of some other chain is ahead of document x, head of chain g, in both sorts."""
    for h in range(chains):
        head = start[h] + placed[h]
        if h != g and head < start[h + 1]:
            y = by_gain[head]
            if first[y] < first[x] and second[y] < second[x]:
                return True
    return False


@compiled(
    nb.int64(
        READ_FLOATS,
        READ_FLOATS,
        READ_FLOATS,
        READ_FLOATS,
        INTS,
        INTS,
        INTS,
        INTS,
        nb.int64,
        nb.int64,
        INTS,
        INTS,
        INTS,
        FLOATS,
        INTS,
    )
)
def best_order(
    scores: Floats,
    gain: Floats,
    discount: Floats,
    decay: Floats,
    documents: Ints,
    first: Ints,
    second: Ints,
    tail: Ints,
    low: int,
    stop: int,
    table: Ints,
    state_key: Ints,
    state_slot: Ints,
    state_value: Floats,
    state_from: Ints,
) -> int:
    """Put `documents` (given by rank in the first sort) into their best order from position `low` on.

    first, second: the rank of each document in either sort. tail: `documents` in the order best from `stop` on.
    table: slots of an open-addressing hash table, a power of two, at least twice the room for states; its content does
    not matter, a slot counts only if the state it names points back to it. state_*: room for states.
    Returns the number of chains, or -1 (documents untouched) where the room does not suffice.
    """
    count = documents.size
    layers = min(stop - low, count)
    by_gain, worth = documents.copy(), np.empty(gain.size)
    for x in documents:
        worth[x] = gain[x]
    sort_falling(by_gain, worth, np.empty(count, np.int64))
    start = np.zeros(CHAINS + 1, np.int64)
    chains = chains_of(gain, by_gain, start)
    if chains < 0:
        return -1
    stride = np.ones(CHAINS + 1, np.int64)
    for g in range(chains):
        reach = min(start[g + 1] - start[g], layers) + 1
        if stride[g] > (1 << 61) // reach:
            return -1
        stride[g + 1] = stride[g] * reach
    mask = table.size - 1
    placed = np.zeros(CHAINS, np.int64)
    state_key[0], state_slot[0], state_value[0], state_from[0] = 0, -1, 0.0, -1
    begin, end = 0, 1
    for position in range(low, low + layers):
        c, a = decay[position], discount[position]
        grown = end
        for state in range(begin, end):
            key = state_key[state]
            _decode(key, stride, chains, placed)
            for g in range(chains):
                head = start[g] + placed[g]
                if head >= start[g + 1]:
                    continue
                x = by_gain[head]
                if _dominated(x, g, by_gain, start, placed, first, second, chains):
                    continue
                value = state_value[state] + c * scores[x] - a * gain[x]
                next_key = key + stride[g]
                slot = ((next_key * -7046029254386353131) >> 40) & mask
                known = -1
                while 0 <= table[slot] < grown and state_slot[table[slot]] == slot:
                    if state_key[table[slot]] == next_key:
                        known = table[slot]
                        break
                    slot = (slot + 1) & mask
                if known < 0:
                    if grown == state_key.size:
                        return -1
                    table[slot] = grown
                    state_key[grown], state_slot[grown] = next_key, slot
                    known, grown = grown, grown + 1
                elif value <= state_value[known]:
                    continue
                state_value[known] = value
                state_from[known] = state * CHAINS + g
        begin, end = end, grown
    chain_of, rank = np.empty(gain.size, np.int64), np.empty(gain.size, np.int64)
    for g in range(chains):
        for i in range(start[g], start[g + 1]):
            chain_of[by_gain[i]], rank[by_gain[i]] = g, i - start[g]
    best, best_value = begin, -np.inf
    for state in range(begin, end):
        _decode(state_key[state], stride, chains, placed)
        value, position = state_value[state], low + layers
        for x in tail:
            if rank[x] >= placed[chain_of[x]]:
                value += decay[position] * scores[x] - discount[position] * gain[x]
                position += 1
        if value > best_value:
            best, best_value = state, value
    _decode(state_key[best], stride, chains, placed)
    position = layers
    for x in tail:
        if rank[x] >= placed[chain_of[x]]:
            documents[position] = x
            position += 1
    for position in range(layers - 1, -1, -1):
        g = state_from[best] % CHAINS
        best = state_from[best] // CHAINS
        placed[g] -= 1
        documents[position] = by_gain[start[g] + placed[g]]
    return chains
