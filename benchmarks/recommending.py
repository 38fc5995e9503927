"""Milliseconds of processor a user that lists take on MovieLens 100k, freely and under overlapping genre quotas.

    RANKOPT_DATA=folder python benchmarks/recommending.py

A regression with 15 factors at ρ = .6 on all ratings; every tenth user gets 10 films that it has not rated, at most so
many of each of 18 genres (a film has 1 to 6). The list is the exact optimum of Σ s_i / log2(i + 1). The slowest user is
named. "without the proof": all films that a best list may need at once.
"""

import os
import time
from pathlib import Path

import numpy as np

from rankopt import Admissible
from rankopt.collaborative import quotas, recommendation
from rankopt.rankers import CofiRanker
from rankopt.ratings import read_ratings


def main():
    recommendation.perf_counter = time.process_time
    ratings = read_ratings(Path(os.environ["RANKOPT_DATA"]) / "ml-100k")
    ranker = CofiRanker(factors=15, reg=0.6).fit(ratings)
    users = ratings.users[::10].tolist()
    ranker.recommend(users[:2], admissible=Admissible(10).at_most(2, by="genre"))  # what is loaded once is loaded
    print("| quota | median ms | 90% | slowest | Σ c s / Σ c |\n|---|---|---|---|---|")
    weights = 1 / np.log2(np.arange(2.0, 12.0))
    for limit, first in ((None, 6), (3, 6), (2, 6), (2, 1000), (1, 6)):
        quotas.FIRST = first
        rules = None if limit is None else Admissible(10, on_infeasible="truncate").at_most(limit, by="genre")
        lists = ranker.recommend(users, admissible=rules)
        ms = 1e3 * lists.seconds
        scores = np.mean([
            np.average(own := lists.scores[a:b], weights=weights[: own.size])
            for a, b in zip(lists.bounds, lists.bounds[1:], strict=False)
        ])  # fmt: skip
        what = "none" if limit is None else f"at most {limit}" + (", without the proof" if first > 100 else "")
        who, seconds = lists.slowest
        middle, most = np.median(ms), np.quantile(ms, 0.9)
        print(f"| {what} | {middle:.1f} | {most:.1f} | user {who}: {1e3 * seconds:.0f} | {scores:.4f} |", flush=True)


if __name__ == "__main__":
    main()
