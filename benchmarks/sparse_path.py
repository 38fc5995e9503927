"""Sparse paths: how many features are left, and what the ranking is worth, against λ.

    RANKOPT_DATA=folder python benchmarks/sparse_path.py

MQ2008 (parts S1 to S3: one to train, the next for validation, the third for test, thrice; zscore per query) and OHSUMED
(LETOR 3.0, the five folds as given). `path(lams=8)` of penalty="l1" begins, fold by fold, where nothing is left in;
row i is the i-th λ of every fold, means over folds. The last rows are what the best λ on validation gives on test, and
the same for penalty="l2" over λ from 10 to .001; p: paired randomisation test of the two over all test queries.
Seconds are of the processor and of a whole path.
"""

import os
import warnings
from pathlib import Path
from time import process_time

import numpy as np
from rescaled import folds, randomised
from sklearn.base import clone

from rankopt.measures import evaluate
from rankopt.rankers import LargeMarginRanker, PairwiseRanker

RANKERS = {
    "LargeMarginRanker": LargeMarginRanker("nDCG@10", position_weights="power(0.5)", w0="regression", time_limit=30),
    "PairwiseRanker": PairwiseRanker("nDCG@10", time_limit=30),
}
COUNT, DENSE = 8, np.logspace(1, -3, 5)


def values_of(model, queries):
    return evaluate(queries, model.predict(queries), "nDCG@10").per_query()


def best_of(path, validation):
    """The model of a path that is best on validation, of equals the one with the largest λ."""
    return max(path, key=lambda model: np.nanmean(values_of(model, validation)))


def table(name, label, ranker, cuts):
    rows, sparse, dense, counts, times = [[] for _ in range(COUNT)], [], [], [], ([], [])
    for train, validation, test in cuts:
        began = process_time()
        path = clone(ranker).set_params(penalty="l1").path(train, lams=COUNT)
        times[0].append(process_time() - began)
        for row, model in zip(rows, path, strict=True):
            kept = int(model.get_support().sum())
            gap = model.certificate_.relative_gap
            row.append((model.lam_, kept, np.nanmean(values_of(model, test)), gap, model.n_iter_))
        chosen = best_of(path, validation)
        sparse.append(values_of(chosen, test))
        counts.append(chosen.get_support().sum())
        began = process_time()
        path = ranker.path(train, lams=DENSE)
        times[1].append(process_time() - began)
        dense.append(values_of(best_of(path, validation), test))
    print(f"\n### {name}, {label}, {cuts[0][0].n_features} features\n")
    print("| λ | features left | nDCG@10 on test | largest gap | steps |\n|---|---|---|---|---|")
    for row in rows:
        lam, kept, value, _, steps = np.mean(row, axis=0)
        print(f"| {lam:.2g} | {kept:.1f} | {value:.4f} | {max(cell[3] for cell in row):.1e} | {steps:.0f} |")
    one, other = np.concatenate(sparse), np.concatenate(dense)
    words = f"p {randomised(one, other):.3f}, {np.mean(times[0]):.1f} s"
    print(f"| l1, λ by validation | {np.mean(counts):.1f} | {np.nanmean(one):.4f} | | {words} |")
    print(f"| l2, λ by validation | all | {np.nanmean(other):.4f} | | {np.mean(times[1]):.1f} s |", flush=True)


def main():
    warnings.simplefilter("ignore")
    data = folds(Path(os.environ["RANKOPT_DATA"]))
    for label, ranker in RANKERS.items():
        for name in ("MQ2008", "OHSUMED"):
            table(name, label, ranker, data[name])


if __name__ == "__main__":
    main()
