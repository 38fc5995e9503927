"""Small problems of every kind of constraint, for the tests of constrained rankings."""

from itertools import permutations

import numpy as np

from formulations import InfeasibleError, RankingSet, constrained_ranking

EVERY = RankingSet(6, 3)

PROFIT = np.outer([1.0, 0.9, 0.8], [3.0, 2.5, 2.0, 1.0, 0.5, 0.0])


def orders(problem):
    every = permutations(range(problem.documents), problem.positions)
    return [np.array(order) for order in every if problem.admissible.is_feasible(order)]


def brute_force(problem):
    return max(problem.value(order) for order in orders(problem))


def blocks(s, r):
    return s.at_most(1, by=r.integers(0, s.positions, s.documents).tolist(), name="quota")


def nested(s, r):
    site = r.integers(0, 3, s.documents).tolist()
    return s.at_most(2, by=site, name="quota").at_least(1, documents=[j for j in range(s.documents) if site[j] < 2])


def prefix(s, r):
    return s.at_least(1, documents=r.random(s.documents) < 0.6, positions=range(2), name="quota").at_most(
        2, documents=r.random(s.documents) < 0.7
    )


def precedence(s, r):
    x, y, z = (int(j) for j in r.choice(s.documents, 3, replace=False))
    return s.precedes(x, y).precedes(y, z).at_most(2, documents=r.random(s.documents) < 0.7, name="quota")


def overlapping(s, r):
    topics = [tuple(t for t in "uvw" if r.random() < 0.5) for _ in range(s.documents)]
    return s.at_most(1, by=topics, name="quota")


def weighted(s, r):
    size = s.documents * s.positions
    return s.add_rows(r.integers(0, 10, (1, size)) / 10, upper=0.5 * s.positions).forbid(0, 0).at_most(3, name="quota")


KINDS = {k.__name__: k for k in (blocks, nested, prefix, precedence, overlapping, weighted)}
SIX = [(kind, seed) for kind in KINDS for seed in range(5)]


def stated(kind, seed):
    """A problem of 3 of 5 or 6 documents whose set is not empty; every other one is full of ties."""
    for attempt in range(20):
        random = np.random.default_rng([seed, attempt])
        n, k = 5 + seed % 2, 3
        profit = random.integers(0, 3, (k, n)).astype(float) if seed % 2 else random.normal(size=(k, n))
        try:
            return constrained_ranking(profit, KINDS[kind](RankingSet(n, k), random))
        except InfeasibleError:
            continue
    raise AssertionError(f"no {kind} for seed {seed}")
