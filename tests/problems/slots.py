"""Documents that belong in three slots of unlike worth, and all their matchings."""

from itertools import permutations

import numpy as np

WEIGHTS = np.array([1.0, 0.5, 2.0])


def drawn(seed, queries=3, largest=5, tied=False):
    """Slot of each document (0: none), offsets and scores of a few small queries, some shorter than the 3 slots."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, largest + 1, queries)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n = offsets[-1]
    scores = rng.integers(-1, 2, (n, 3)).astype(float) if tied else rng.normal(size=(n, 3))
    return rng.integers(0, 4, n), offsets, scores


def benefit_of(slot):
    return (slot[:, None] == np.arange(1, 4)) * WEIGHTS


def matchings(n):
    """Every matching of n documents to 3 slots, as an (n, 3) array: each slot filled, or each document placed."""
    short = max(3 - n, 0)
    for order in permutations(range(n + short), 3):
        if set(range(n, n + short)) <= set(order):
            placed = np.zeros((n + short, 3))
            placed[list(order), range(3)] = 1.0
            yield placed[:n]
