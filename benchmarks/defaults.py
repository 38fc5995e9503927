"""Held-out nDCG@10 of settings of the rankers on five real data sets: what the defaults were chosen by.

    RANKOPT_DATA=folder python benchmarks/defaults.py

Validation parts of the folds of OHSUMED (LETOR 2.0 as given, LETOR 3.0 normalised), a 3-fold split of MQ2008's parts
S1 to S3, the validation part of the MSLR sample (zscore per query), the test part of LightGBM's ranking example. Means
over folds, convention "default". "0" behind a figure counts the fits that ended at w = 0. Each fit may take 10 seconds;
what a fit that is cut off returns depends on the speed of the machine (two runs differed by .02 in single figures).
"""

import os
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.base import BaseEstimator

from rankopt.data import Queries, concatenate, read_svmlight
from rankopt.data.normalisation import normalise
from rankopt.measures import evaluate
from rankopt.rankers import LargeMarginRanker, PairwiseRanker, RegressionRanker

SETTINGS: dict[str, BaseEstimator] = {
    "least squares on gains": RegressionRanker(),
    "RankSVM, λ .01": PairwiseRanker(lam=0.01),
    "convex, linear, λ .1": LargeMarginRanker(bound="convex", decay="linear", lam=0.1),
    "convex, power(.5), λ .1": LargeMarginRanker(bound="convex", decay="power(0.5)", lam=0.1),
    "tie-aware, power(.5), λ .1": LargeMarginRanker(bound="tie-aware", decay="power(0.5)", lam=0.1),
    "nonconvex, linear, λ .1": LargeMarginRanker(bound="nonconvex", decay="linear", lam=0.1),
    "nonconvex, log, λ .1": LargeMarginRanker(bound="nonconvex", decay="log", lam=0.1),
    "nonconvex, power(.5), λ 1": LargeMarginRanker(bound="nonconvex", decay="power(0.5)", lam=1.0),
    "nonconvex, power(.5), λ .1 (default)": LargeMarginRanker(),
    "nonconvex, power(.5), λ .01": LargeMarginRanker(bound="nonconvex", decay="power(0.5)", lam=0.01),
}


def splits(folder: Path) -> dict[str, list[tuple[Queries, Queries]]]:
    """(training, held-out) pairs of each data set."""
    two = [read_svmlight(folder / "letor2-ohsumed" / f"S{i}.txt.gz") for i in range(1, 6)]
    three = folder / "letor3-ohsumed" / "QueryLevelNorm"
    mq = [read_svmlight(folder / "letor4-mq2008" / f"S{i}.txt.gz") for i in (1, 2, 3)]
    mslr = [normalise(read_svmlight(folder / "mslr-web30k-sample" / f"{part}.txt.gz"), "zscore") for part in MSLR]
    lightgbm = folder / "lightgbm-rank"
    return {
        "LETOR 2": [(concatenate([two[(f + i) % 5] for i in range(3)]), two[(f + 3) % 5]) for f in range(5)],
        "LETOR 3": [
            (read_svmlight(three / f"Fold{f}" / "train.txt.gz"), read_svmlight(three / f"Fold{f}" / "vali.txt.gz"))
            for f in range(1, 6)
        ],
        "MQ2008": [(concatenate([mq[(f + 1) % 3], mq[(f + 2) % 3]]), mq[f]) for f in range(3)],
        "MSLR": [(mslr[0], mslr[1])],
        "LightGBM": [
            (
                read_svmlight(lightgbm / "rank.train.qid.txt.gz", n_features=300, sparse=False),
                read_svmlight(lightgbm / "rank.test.qid.txt.gz", n_features=300, sparse=False),
            )
        ],
    }


MSLR = ("train", "vali")


def main() -> None:
    warnings.simplefilter("ignore")
    data = splits(Path(os.environ["RANKOPT_DATA"]))
    print(f"| held-out nDCG@10 | {' | '.join(data)} | seconds |\n|---|" + "---|" * (len(data) + 1))
    for name, ranker in SETTINGS.items():
        cells, began = [], perf_counter()
        if hasattr(ranker, "time_limit"):
            ranker.set_params(time_limit=10)
        for folds in data.values():
            means, trapped = [], 0
            for train, held_out in folds:
                ranker.fit(train)
                trapped += int(not ranker.coef_.any())
                means.append(evaluate(held_out, ranker.predict(held_out), "nDCG@10").mean())
            cells.append(f"{np.mean(means):.4f}" + (f" (0: {trapped})" if trapped else ""))
        print(f"| {name} | {' | '.join(cells)} | {perf_counter() - began:.0f} |", flush=True)


if __name__ == "__main__":
    main()
