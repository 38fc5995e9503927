"""What a collaborative ranker costs: beside bare linear algebra, as ratings grow, and in memory.

    RANKOPT_DATA=folder python benchmarks/cofi_seconds.py systems [--rounds 3]
    RANKOPT_DATA=folder python benchmarks/cofi_seconds.py alternation
    python benchmarks/cofi_seconds.py growth [--loss regression] [--most 10000000]

Processor seconds, one thread. systems: a regression with 100 factors on all of MovieLens 100k, and
`numpy.linalg.solve` on the systems (101 unknowns) of all users and items, formed beforehand, as many times as there
were rounds; the least of several turns of both. alternation: seconds a round, beside a regression's. growth: generated
ratings, 100 a user, a fit of two rounds with 15 factors at ρ = .6; bytes are what NumPy and Python held beyond the
ratings, by tracemalloc: the most at a time, and what the fitted ranker goes on to hold.
"""

import argparse
import os
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np

from rankopt.rankers import CofiRanker
from rankopt.ratings import Ratings, read_ratings

FACTORS = 100


def movielens():
    return read_ratings(Path(os.environ["RANKOPT_DATA"]) / "ml-100k")


def timed(call):
    began = time.process_time()
    found = call()
    return found, time.process_time() - began


def formed(table, factors, lam, pull):
    """The normal equations (rows, d + 1, d + 1) and right sides of one side of a regression."""
    table = table.tocsr()
    design = np.hstack([factors, np.ones((factors.shape[0], 1))])
    matrices = np.empty((table.shape[0], design.shape[1], design.shape[1]))
    sides = np.empty((table.shape[0], design.shape[1], 1))
    diagonal = np.diag([*[lam] * factors.shape[1], pull])
    for i in range(table.shape[0]):
        rows = design[table.indices[table.indptr[i] : table.indptr[i + 1]]]
        matrices[i] = rows.T @ rows + diagonal
        sides[i, :, 0] = rows.T @ table.data[table.indptr[i] : table.indptr[i + 1]]
    return matrices, sides


def systems(turns):
    ratings = movielens()
    options = {"factors": FACTORS, "strength": 0.6, "certify": False, "n_jobs": 1}
    ranker = CofiRanker(**options).fit(ratings)
    table = ratings.to_csr()
    both = [
        formed(table, ranker.item_factors_, ranker.lam_, 10.0),
        formed(table.T, ranker.user_factors_, ranker.lam_, 10.0),
    ]
    fits, solves = [], []
    for _ in range(turns):
        fits.append(timed(lambda: CofiRanker(**options).fit(ratings))[1])
        solves.append(timed(lambda: [np.linalg.solve(*one) for one in both])[1] * ranker.n_iter_)
    print(f"{ranker.n_iter_} rounds: fit {min(fits):.2f} s, solve {min(solves):.2f} s, {min(fits) / min(solves):.2f}")


def alternation():
    ratings = movielens()
    print("| loss | ρ | rounds | seconds a round | of a regression's |\n|---|---|---|---|---|")
    first = None
    for loss, strength in (("regression", 0.6), ("ordinal", 0.6), ("preferences", 0.6), ("nDCG@10", 0.6)):
        ranker = CofiRanker(loss, reg=strength, compute_bound=False, n_jobs=1)
        ranker.set_params(max_iter=4, item_prior="mean").fit(ratings)
        seconds = min(timed(lambda ranker=ranker: ranker.fit(ratings))[1] for _ in range(2)) / ranker.n_iter_
        first = first or seconds
        print(f"| {loss} | {strength} | {ranker.n_iter_} | {seconds:.2f} | {seconds / first:.0f} |", flush=True)


def generated(n, seed=0):
    """n ratings, 100 a user, of n/1000 + 1000 items, 1 to 5 of two factors and noise."""
    draws, users = np.random.default_rng(seed), n // 100
    items = 1000 + n // 1000
    start, step = draws.integers(items, size=users), draws.integers(1, items // 100, size=users)
    item = ((start[:, None] + step[:, None] * np.arange(100)) % items).ravel().astype(np.int64)
    user = np.repeat(np.arange(users), 100)
    taste, kind, offset = draws.normal(size=(users, 2)), draws.normal(size=(items, 2)), draws.normal(size=items)
    score = np.einsum("ij,ij->i", taste[user], kind[item]) + offset[item] + 0.5 * draws.normal(size=n)
    return Ratings.from_arrays(user, item, np.clip(np.round(3.0 + 0.5 * score), 1, 5))


def growth(loss, most):
    print("| ratings | seconds | microseconds a rating | bytes a rating | kept |\n|---|---|---|---|---|")
    n = 100_000
    while n <= most:
        ratings = generated(n)
        ranker = CofiRanker(loss, reg=0.6, compute_bound=False, max_iter=2, n_jobs=1, item_prior="mean")
        _, seconds = timed(lambda ranker=ranker, ratings=ratings: ranker.fit(ratings))
        tracemalloc.start()
        ranker.fit(ratings)
        kept, most_held = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        print(f"| {n:,} | {seconds:.2f} | {1e6 * seconds / n:.2f} | {most_held / n:.0f} | {kept / n:.0f} |", flush=True)
        n *= 10


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=("systems", "alternation", "growth"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--loss", default="regression")
    parser.add_argument("--most", type=int, default=10_000_000)
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # rounds are few on purpose
    if given.mode == "growth":
        growth(given.loss, given.most)
    elif given.mode == "alternation":
        alternation()
    else:
        systems(given.rounds)


if __name__ == "__main__":
    main()
