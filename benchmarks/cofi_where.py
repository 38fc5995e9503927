"""Where optimising nDCG pays in collaborative ranking: longer lists, full histories, no pull towards popularity.

    RANKOPT_DATA=folder python benchmarks/cofi_where.py [--splits 5] [--settings N=100 histories ...]

MovieLens 100k, weak generalisation, NDCG@10 as in `cofi.py`, of two kinds of candidates. Settings: "N=100", "N=150": so
many training ratings of each user who has ten more; "histories": all ratings of a user but ten, of users with 20;
"N=20, c=0": no popularity in the prior of items; "N=20, free": none, and items pulled to their prior by a tenth of a
rating only. Strengths are the usual ones, .65 of λ_max for the regression and .75 for losses of orders, 15 factors, and
items are pulled to the plain mean, tie-aware to their own: nothing is chosen, so no loss is at its best here.
Differences to the regression on the same splits, p of a paired t-test.
"""

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import ttest_rel

from rankopt.rankers import CofiRanker
from rankopt.ratings import evaluate_ratings, given_split, read_ratings, weak_split

LOSSES = {
    "regression": ("regression", "convex"),
    "nDCG@10": ("nDCG@10", "convex"),
    "nDCG@10, tie-aware": ("nDCG@10", "tie-aware"),
    "ordinal": ("ordinal", "convex"),
    "preferences": ("preferences", "convex"),
    "ERU(d=3)": ("ERU(d=3)", "convex"),
}
LEFT = 10


def histories(ratings, seed):
    """All ratings of a user but `LEFT` drawn ones, of users with twice as many."""
    sizes = np.diff(ratings.bounds)
    order = np.lexsort((np.random.default_rng(seed).random(ratings.n_ratings), ratings.user_of()))
    rank = np.empty(ratings.n_ratings, dtype=np.int64)
    rank[order] = np.arange(ratings.n_ratings) - np.repeat(ratings.bounds[:-1], sizes)
    told = np.repeat(sizes >= 2 * LEFT, sizes)
    return given_split(ratings.keep(told & (rank >= LEFT)), ratings.keep(told & (rank < LEFT)))


SETTINGS = {
    "N=100": (lambda ratings, seed: weak_split(ratings, 100, seed=seed), {}),
    "N=150": (lambda ratings, seed: weak_split(ratings, 150, seed=seed), {}),
    "histories": (histories, {}),
    "N=20, c=0": (lambda ratings, seed: weak_split(ratings, 20, seed=seed), {"popularity": 0.0}),
    "N=20, free": (lambda ratings, seed: weak_split(ratings, 20, seed=seed),
                   {"popularity": 0.0, "bias_reg": 0.1, "prior": "mean"}),
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--settings", nargs="+", choices=[*SETTINGS], default=[*SETTINGS])
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # a run that stalls is told by what it reaches
    ratings = read_ratings(Path(os.environ["RANKOPT_DATA"]) / "ml-100k")
    for setting in given.settings:
        split_of, options = SETTINGS[setting]
        found = {name: {"rated": [], "all": []} for name in LOSSES}
        for seed in range(given.splits):
            split = split_of(ratings, seed)
            for name, (loss, bound) in LOSSES.items():
                strength = 0.65 if loss == "regression" else 0.75
                ranker = CofiRanker(loss, bound=bound, reg=strength, compute_bound=False, **options).fit(split.train)
                for candidates, values in found[name].items():
                    values.append(evaluate_ratings(split, ranker, candidates=candidates).mean)
        print(f"\n| {setting} | rated items | all items |\n|---|---|---|")
        first = found["regression"]
        for name, values in found.items():
            cells = [f"{np.mean(one):.4f} ± {np.std(one, ddof=1):.4f}" for one in values.values()]
            if name != "regression":
                for place, kind in enumerate(values):
                    p = ttest_rel(values[kind], first[kind]).pvalue
                    cells[place] += f" ({np.mean(values[kind]) - np.mean(first[kind]):+.4f}, p = {p:.2g})"
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
