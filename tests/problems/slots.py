"""Documents that belong in three slots of unlike worth, or pairs of two sides, and all their matchings."""

from itertools import permutations, product

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


def pair_matchings(left, right, degrees):
    """Every set of pairs in which no member has more than its degree, as 0/1 vectors."""
    for chosen in product((0.0, 1.0), repeat=len(left)):
        taken = np.array(chosen, dtype=bool)
        if all(
            np.unique(side[taken], return_counts=True)[1].max(initial=0) <= degree
            for side, degree in zip((left, right), degrees, strict=True)
        ):
            yield np.array(chosen)


def drawn_pairs(seed, queries=12, largest=4, pairs=9):
    """Features φ(i, j) of pairs of a few small graphs, their worth, graph, and members; some pairs have no row."""
    rng = np.random.default_rng(seed)
    rows = []
    for query in range(queries):
        sizes = rng.integers(1, largest + 1, 2)
        cells = rng.permutation(np.argwhere(np.ones(sizes)))[:pairs]
        rows += [(query, *cell) for cell in cells]
    query, left, right = np.array(rows).T
    features = rng.normal(size=(query.size, 3))
    wanted = features @ [1.0, -1.0, 0.5] + 0.5 * rng.normal(size=query.size) > 0.5
    return features, wanted * rng.integers(1, 3, query.size).astype(float), query, left, right
