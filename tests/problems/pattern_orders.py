"""Every order of a few small queries, with its slope by definition and what it earns: the ground truth of the maps."""

from itertools import pairwise, permutations

import numpy as np

from rankopt.data.canonical_order import Arrangement
from rankopt.losses.position_weights import parse_position_weights
from rankopt.measures.tied_ranking import Ranking


def arranged(relevance, offsets):
    """Queries without features, of equal weight."""
    n, m = relevance.size, offsets.size - 1
    return Arrangement(np.zeros((n, 0)), np.arange(n), offsets, np.full(m, 1 / m), relevance, tuple(range(m)), {})


def batch(rng, queries=4, largest=6, grades=2):
    """Relevance and offsets of queries that have something to order."""
    offsets = np.concatenate([[0], np.cumsum(rng.integers(2, largest + 1, queries))])
    relevance = rng.integers(0, grades, offsets[-1]).astype(float)
    for low, high in pairwise(offsets.tolist()):
        relevance[low], relevance[low + 1] = 0.0, grades - 1.0
        rng.shuffle(relevance[low:high])
    return relevance, offsets


def by_positions(worth, order, measure, position_weights="power(0.5)"):
    slope = np.empty(len(order))
    slope[order] = parse_position_weights(position_weights).weights(len(order), measure)
    return slope


def by_pairs(worth, order, measure):
    """r, pair by pair."""
    slope, place = np.zeros(len(order)), np.argsort(order)
    pairs = [(i, j) for i in range(len(order)) for j in range(len(order)) if worth[i] > worth[j]]
    for better, worse in pairs:
        if place[better] > place[worse]:
            slope[better] -= 1 / len(pairs)
            slope[worse] += 1 / len(pairs)
    return slope


def by_the_first(worth, order, measure):
    slope = np.zeros(len(order))
    for document in order:
        if worth[document] > 0:
            slope[document] = -slope.sum()
            return slope
        slope[document] = 1.0
    return np.zeros(len(order))


SLOPES = {"positional": by_positions, "pairwise": by_pairs, "first-relevant": by_the_first}


def every_order(name, measure, relevance):
    """Of one query: all orders, their slopes, and the measure of each."""
    n = relevance.size
    offsets = np.array([0, n])
    worth, _ = measure.optimal_rankings(relevance, offsets)
    orders = [list(order) for order in permutations(range(n))]
    slopes = np.array([SLOPES[name](worth, order, measure) for order in orders])
    every = Ranking(relevance[np.concatenate(orders)], np.arange(len(orders) + 1) * n, np.arange(len(orders) * n + 1))
    return orders, slopes, measure.values(every)
