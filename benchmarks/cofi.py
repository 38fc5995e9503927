"""Collaborative rankers on MovieLens 100k, on the splits of `cofi_baselines.py`, every choice made inside the training
ratings.

    RANKOPT_DATA=folder python benchmarks/cofi.py [weak | strong] [splits] [names, separated by commas]

NDCG@10 over the rated items of each test user, ties averaged; mean ± standard deviation over the splits, the mean
difference from the best baseline with its paired t over splits, the largest gaps, and processor seconds of one fit.
"""

import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankopt.data import read_ratings
from rankopt.evaluation import ItemMean, evaluate_ratings, strong_split, weak_split
from rankopt.rankers import CofiRanker

BASELINE = ItemMean(10.0, 0.1)

RANKERS = {
    "regression": CofiRanker(),
    "regression, 50 factors": CofiRanker(factors=50),
    "preferences": CofiRanker("preferences"),
    "ordinal": CofiRanker("ordinal"),
    "nDCG@10, convex": CofiRanker("nDCG@10"),
    "nDCG@10, tie-aware": CofiRanker("nDCG@10", bound="tie-aware", max_iter=30),
    "nDCG@10, nonconvex": CofiRanker("nDCG@10", bound="nonconvex", max_iter=30),
    "NERU": CofiRanker("NERU(d=2)"),
}


def main():
    kind = sys.argv[1] if len(sys.argv) > 1 else "weak"
    splits = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    names = sys.argv[3].split(";") if len(sys.argv) > 3 else list(RANKERS)
    warnings.simplefilter("ignore", ConvergenceWarning)
    ratings = read_ratings(Path(os.environ["RANKOPT_DATA"]) / "ml-100k")
    split_of = {"weak": weak_split, "strong": strong_split}[kind]
    print(f"| {kind}, {splits} splits | N = 10 | 20 | 50 | gaps of users, items, whole | seconds |")
    print("|---|---|---|---|---|---|")
    drawn = {n: [split_of(ratings, n, seed=seed) for seed in range(splits)] for n in (10, 20, 50)}
    base = {
        n: np.array([evaluate_ratings(one, BASELINE.fit(one.train)).mean for one in cuts]) for n, cuts in drawn.items()
    }
    cells = [f"{base[n].mean():.4f} ± {base[n].std(ddof=1):.4f}" for n in drawn]
    print(f"| item mean, shrunk by 10, + .1 log(1 + count) | {' | '.join(cells)} | | |")
    for name in names:
        cells, gaps, seconds = [], np.zeros(3), []
        for n, cuts in drawn.items():
            found = []
            for one in cuts:
                began = time.process_time()
                ranker = RANKERS[name].fit(one.train)
                seconds.append(time.process_time() - began)
                found.append(evaluate_ratings(one, ranker).mean)
                proved = ranker.certificate_
                gaps = np.maximum(gaps, [proved.users_gap, proved.items_gap, proved.relative_gap])
            apart = np.array(found) - base[n]
            t = apart.mean() / (apart.std(ddof=1) / np.sqrt(splits))
            cells.append(f"{np.mean(found):.4f} ± {np.std(found, ddof=1):.4f} ({apart.mean():+.4f}, t {t:.1f})")
        told = ", ".join(f"{100 * gap:.2g}%" for gap in gaps)
        print(f"| {name} | {' | '.join(cells)} | {told} | {np.mean(seconds):.1f} |", flush=True)


if __name__ == "__main__":
    main()
