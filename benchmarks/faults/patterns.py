"""Pattern rankings against all orders: every loss under every map, ties, zeros, one class and one document included.

    python benchmarks/faults/patterns.py [--problems 20000] [--seed 0] [--losses AP RR ...]

Queries of up to 7 documents with whole scores of few values, or real ones; brute force goes over all orders at once, by
the definition and not by the lattice. Each query is solved by the compiled ways and by whole arrays. Wrong: a value off
by more than rounding, or a value above its bound, or a bound below the best order.
"""

import argparse
from itertools import permutations

import numpy as np

from formulations import first_relevant_ranking, pairwise_ranking, relevance_ranking, solve_batch
from formulations.problems.relevance_losses import Discounted, TableLoss
from formulations.solvers.exact import ExactArgmax


def letor(n):
    return 1 / np.log2(np.maximum(np.arange(1, n + 1), 2))


def power(n):
    return np.arange(1.0, n + 1.0) ** -0.5 - 0.4


LOSSES = {
    **{name: name for name in ("AUC", "AP", "AP@3", "RR", "RR@3", "nDCG", "nDCG@3", "P@3", "DCG@2", "ERR", "ERR@3")},
    "nDCG, LETOR": Discounted(letor, lambda grade: np.exp2(grade) - 1, normalised=True),
    "cells": TableLoss(lambda good, bads, relevant, others: np.exp(-good - 0.3 * bads)),
}
MAPS = {
    "pairwise": pairwise_ranking,
    "first-relevant": first_relevant_ranking,
    "positional": lambda *given, **offsets: relevance_ranking(*given, position_weights=power, **offsets),
}


def drawn(random, count):
    """Queries of one length, so that brute force is one product."""
    n = int(random.choice([1, 2, 3, 4, 5, 6, 7], p=[0.02, 0.08, 0.15, 0.2, 0.25, 0.2, 0.1]))
    shape, grades = (count, n), int(random.choice([1, 2, 2, 2, 3, 4]))
    if random.random() < 0.5:
        scores = random.integers(-2, 3, shape) * random.choice([0.0, 1.0, 0.5, 0.1, 0.01])
    else:
        scores = random.normal(size=shape) * random.choice([1.0, 0.1, 10.0])
    return n, scores.astype(float).ravel(), random.integers(0, grades, shape).astype(float).ravel()


def best_of_all(batch, n):
    """(m,) the greatest value of any order."""
    best = np.full(len(batch), -np.inf)
    for order in permutations(range(n)):
        best = np.maximum(best, batch.judged(np.tile(np.array(order), len(batch))).value)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=20_000, help="of each loss under each map")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--losses", nargs="+", choices=[*LOSSES], default=[name for name in LOSSES if name != "cells"])
    options = parser.parse_args()
    print("| loss | map | problems | wrong | ways |\n" + "|---" * 5 + "|", flush=True)
    wrong_in_all = 0
    for name, loss in ((name, LOSSES[name]) for name in options.losses):
        for map_, stated in MAPS.items():
            random = np.random.default_rng([options.seed, len(name), len(map_)])
            done = wrong = 0
            ways = set()
            while done < options.problems:
                count = min(500, options.problems - done)
                n, scores, grades = drawn(random, count)
                batch = stated(scores, grades, loss, offsets=np.arange(count + 1) * n)
                best, slack = best_of_all(batch, n), 4.0 * batch.left
                for compiled in (True, False):
                    answer = solve_batch(batch, ExactArgmax(compiled=compiled))
                    off = (np.abs(answer.value - best) > slack) | (answer.value > answer.bound)
                    wrong += int((off | (answer.bound < best - 1e-15 * batch.reach)).sum())
                    ways |= set(answer.algorithm) if compiled else set()
                done += count
            wrong_in_all += wrong
            print(f"| {name} | {map_} | {done} | {wrong} | {', '.join(sorted(ways))} |", flush=True)
    print(f"\nWrong in all: {wrong_in_all}")


if __name__ == "__main__":
    main()
