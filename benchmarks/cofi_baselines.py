"""Item means and popularity on MovieLens 100k: what a collaborative ranker must beat, under each protocol.

    RANKOPT_DATA=folder python benchmarks/cofi_baselines.py [splits]

NDCG@10, exponential gain, ties averaged; the mean over splits of the mean over users, and the standard deviation over
splits. Weak generalisation trains on N ratings of every user with N + 10 or more, strong on all users but the 100 with
the most ratings, of whom N ratings are known (which means cannot use); see `rankopt.evaluation`.
"""

import os
import sys
from pathlib import Path

import numpy as np

from rankopt.data import read_ratings
from rankopt.evaluation import ItemMean, Popularity, evaluate_ratings, strong_split, weak_split

BASELINES = {
    "item mean, shrunk by 5": ItemMean(5.0),
    "by 10, + .1 log(1 + count)": ItemMean(10.0, 0.1),
    "popularity": Popularity(),
}
PROTOCOLS = {
    "weak, rated items": (weak_split, "rated"),
    "weak, all items": (weak_split, "all"),
    "strong, rated items": (strong_split, "rated"),
    "strong, all items": (strong_split, "all"),
}


def main():
    splits = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    ratings = read_ratings(Path(os.environ["RANKOPT_DATA"]) / "ml-100k")
    print(f"| {splits} splits | N = 10 | 20 | 50 |\n|---|---|---|---|")
    for protocol, (split_of, candidates) in PROTOCOLS.items():
        drawn = {n: [split_of(ratings, n, seed=seed) for seed in range(splits)] for n in (10, 20, 50)}
        for name, baseline in BASELINES.items():
            cells = []
            for cuts in drawn.values():
                means = [evaluate_ratings(cut, baseline.fit(cut.train), candidates=candidates).mean for cut in cuts]
                cells.append(f"{np.mean(means):.4f} ± {np.std(means, ddof=1):.4f}")
            print(f"| {protocol}: {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
