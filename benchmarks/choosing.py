"""Choosing a ridge and λ: what is left out, and what it costs.

    RANKOPT_DATA=folder python benchmarks/choosing.py

First nDCG@10 (queries without relevant documents count 0) of least squares with the same ridges α, chosen by leaving
out whole queries (`RegressionRanker`) or rows (generalised cross-validation), and with one intercept for all queries in
place of one a query; splits as in accuracy_sets.py, so many training queries drawn without replacement, four draws a
split. Then the processor seconds of a fit with lam="auto" by those of one with lam="scale", the least of three each.
"""

import warnings
from statistics import mean
from time import process_time

import numpy as np
from accuracy_sets import Split, resampled, sets

from rankopt import evaluate
from rankopt.data.canonical_order import canonical
from rankopt.optimize.least_squares import least_squares
from rankopt.optimize.ridge import Ridges
from rankopt.rankers import LargeMarginRanker, RegressionRanker

SIZES = (13, 50, 100, None)


def by_rows(split: Split) -> np.ndarray:
    """The weights whose ridge generalised cross-validation chooses, among the same."""
    queries = canonical(split.train, np.ones(len(split.train)))
    given = queries.features, queries.graded, np.ones(queries.rows.size)
    ridges = Ridges.from_features(*given, queries.rows, queries.offsets)
    errors = np.concatenate([family.generalised(ridges.whole, ridges.rows) for family in ridges.families])
    chosen = ridges.penalties[np.flatnonzero(errors == errors.min())[-1]]
    return least_squares(*given, chosen, queries.rows, queries.offsets)


def ndcg(split: Split, w: np.ndarray) -> float:
    return evaluate(split.test, split.test.features @ w, "nDCG@10", convention="burges").mean()


def ridges(name: str, splits: list[Split]) -> None:
    for size in SIZES:
        if size is not None and size >= len(splits[0].train):
            continue
        draws = [split if size is None else resampled(split, size, draw)
                 for split in splits for draw in range(1 if size is None else 4)]  # fmt: skip
        found = [
            mean(ndcg(one, learnt(one)) for one in draws)
            for learnt in (
                lambda one: RegressionRanker().fit(one.train).coef_,
                by_rows,
                lambda one: RegressionRanker(intercept="all").fit(one.train).coef_,
            )
        ]
        print(f"| {name}, {size or 'all'} | {' | '.join(f'{value:.4f}' for value in found)} |", flush=True)


def seconds(split: Split, lam: str) -> float:
    taken = []
    for _ in range(3):
        began = process_time()
        LargeMarginRanker(lam=lam, engine="serial").fit(split.train)
        taken.append(process_time() - began)
    return min(taken)


def main() -> None:
    warnings.simplefilter("ignore")
    found = sets()
    print("| training queries | queries left out | rows left out | one intercept |\n|---|---|---|---|")
    for name, splits in found.items():
        ridges(name, splits)
    print('\n| training queries | lam="auto" by lam="scale" |\n|---|---|')
    for name, splits in found.items():
        for size in (13, None):
            split = splits[0] if size is None else resampled(splits[0], size, 0)
            print(f"| {name}, {size or 'all'} | {seconds(split, 'auto') / seconds(split, 'scale'):.1f} |", flush=True)


if __name__ == "__main__":
    main()
