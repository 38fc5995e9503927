"""Climbing the measure itself: which settings, and what exact lines save beside sampled steps.

    RANKOPT_DATA=folder python benchmarks/direct.py --choose [--sets MQ2008 OHSUMED] [--rankers ...] [--seeds 1]
    RANKOPT_DATA=folder python benchmarks/direct.py --race [--sets MQ2008 OHSUMED]

--choose compares settings on queries that are left out: MQ2008, which has no validation part here, trained on one of S1
to S3 and judged on another; OHSUMED on the training and the validation file of each fold; MSLR and LightGBM's set on
three folds inside each training part. All is nDCG@10, queries
without relevant documents count 0. "sampled" are 25 steps a coordinate, of either sign and doubling, as RankLib's
coordinate ascent tries them, on scores that are kept. --race: sampled steps and exact lines from the same start; how
long until exact lines are as high as sampled steps end. Seconds are of the processor, one thread. RANKERS are those
that `direct_accuracy.py` compares.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np
from accuracy_sets import Split, folds, sets

from formulations.parallel import at_most
from rankopt.data import Queries, read_svmlight
from rankopt.measures import evaluate
from rankopt.optimize import LineSearch
from rankopt.rankers import (
    DirectRanker,
    LargeMarginRanker,
    PairwiseRanker,
    RandomDirections,
    RegressionRanker,
    SmoothRanker,
)
from rankopt.risk.along_line import place
from rankopt.scorers.linear import linear_scores

MEASURE = "nDCG@10"
TRIES, BASE, FACTOR, ROUNDS = 25, 0.05, 2.0, 25


class Sampled:
    """Coordinate ascent by steps that are tried: ±BASE |w_j| (±BASE where w_j is 0), doubled until TRIES are spent; the
    best is taken, round after round until none is better. Scores are kept and moved, as RankLib does."""

    def __init__(self, restarts: int = 1, seed: int = 0) -> None:
        self.restarts, self.seed = restarts, seed

    def fit(self, queries: Queries) -> Sampled:
        search, rng = LineSearch.from_measure(MEASURE, queries, engine="serial"), np.random.default_rng(self.seed)
        (shard,), best = search.shards, -1.0
        columns = shard.scorer.columns(np.arange(search.features))
        for _ in range(self.restarts):
            w = np.full(search.features, 1.0 / search.features)
            scores = place(shard, w).scores
            value = shard.loss.value(scores)
            for _ in range(ROUNDS):
                before = value
                for j in rng.permutation(search.features):
                    size = BASE * (abs(w[j]) or 1.0)
                    steps = [sign * size * FACTOR**i for sign in (1, -1) for i in range(TRIES // 2)] + [-w[j]]
                    reached = [shard.loss.value(scores + t * columns[j]) for t in steps]
                    top = int(np.argmax(reached))
                    if reached[top] > value:
                        value, scores = reached[top], scores + steps[top] * columns[j]
                        w[j] += steps[top]
                if value < before + 1e-3 * before:
                    break
            if value > best:
                best, self.coef_ = value, w
        return self


def direct(**options: object) -> Callable[[int], DirectRanker]:
    return lambda seed: DirectRanker(MEASURE, engine="serial", random_state=seed, **options)


FAR = SmoothRanker(MEASURE, bandwidths=[2.0**i for i in range(2, -6, -1)], lam=1e-5, engine="serial")

RANKERS: dict[str, Callable[[int], object]] = {
    "ridge": lambda seed: RegressionRanker(),
    "RankSVM": lambda seed: PairwiseRanker(engine="serial"),
    "large margin": lambda seed: LargeMarginRanker(MEASURE, engine="serial"),
    "smooth": lambda seed: SmoothRanker(MEASURE, engine="serial"),
    "sampled steps": lambda seed: Sampled(seed=seed),
    "direct, zeros": direct(start="zeros"),
    "direct, ridge": direct(start="ridge"),
    "direct, large margin": direct(start=LargeMarginRanker(MEASURE, engine="serial")),
    "direct, smooth": direct(start="smooth"),
    "direct, ridge, best of 8": direct(start="ridge", restarts=8, combine="best"),
    "direct, ridge, mean of 8": direct(start="ridge", restarts=8),
    "direct, smooth, middle": direct(start="smooth", point="middle"),
    "direct, smooth far down, middle": direct(start=FAR, point="middle"),
    "direct, smooth far down, best of 8": direct(start=FAR, point="middle", restarts=8, combine="best"),
    "direct, smooth, best of 8": direct(start="smooth", restarts=8, combine="best"),
    "direct, smooth, mean of 8": direct(start="smooth", restarts=8),
}

CHOICES: dict[str, Callable[[int], object]] = {
    "ridge": lambda seed: RegressionRanker(),
    "large margin": lambda seed: LargeMarginRanker(MEASURE, engine="serial"),
    **{
        f"{start}, {name}": direct(start=start, **options)
        for start in ("ridge", "smooth")
        for name, options in {
            "window .1": {"window": 0.1},
            "window .2": {"window": 0.2},
            "window .4": {"window": 0.4},
            "middle": {"point": "middle"},
            "plackett-luce": {"point": "plackett-luce"},
            "greedy": {"order": "greedy"},
            "powell and 10 random": {"directions": ("coordinates", "powell", RandomDirections(10))},
            "lam .01": {"lam": 0.01},
            "lam .1": {"lam": 0.1},
            "8, best": {"restarts": 8, "combine": "best"},
            "8, mean": {"restarts": 8},
            "8, mean, middle": {"restarts": 8, "point": "middle"},
        }.items()
    },
}


def choosing() -> dict[str, list[Split]]:
    """Parts to learn from and parts to judge by."""
    folder, found = Path(os.environ["RANKOPT_DATA"]), sets()
    parts = [read_svmlight(folder / "letor4-mq2008" / f"S{i}.txt.gz") for i in (1, 2, 3)]
    home = folder / "letor3-ohsumed" / "QueryLevelNorm"
    return {
        "MQ2008": [Split(parts[i], parts[j]) for i in range(3) for j in range(3) if i != j],
        "OHSUMED": [
            Split(*(read_svmlight(home / f"Fold{fold}" / f"{part}.txt.gz") for part in ("train", "vali")))
            for fold in range(1, 6)
        ],
        **{name: [inner for split in found[name] for inner in folds(split.train, 3)] for name in ("MSLR", "LightGBM")},
    }


def reached(queries: Queries, w: np.ndarray) -> float:
    return float(evaluate(queries, linear_scores(queries.features, w), MEASURE, convention="burges").mean())


def race(queries: Queries) -> list[float]:
    """Where sampled steps end, their seconds, and those of exact lines from the same start until they are as high: the
    seconds of all of their line searches times the part of these that it took."""
    with at_most(1):
        began = process_time()
        sampled = Sampled().fit(queries)
        spent = process_time() - began
        level = LineSearch.from_measure(MEASURE, queries, engine="serial").value(sampled.coef_)
        even = np.full(queries.n_features, 1.0 / queries.n_features)
        began = process_time()
        exact = direct(start=even, point="middle")(0).fit(queries)
        seconds = process_time() - began
    history, lines = exact.history_, exact.n_iter_ * queries.n_features
    first = np.flatnonzero(history.value >= level)
    part = history.lines[first[0]] / lines if first.size else np.nan
    return [level, spent, exact.certificate_.value, seconds, part * seconds, spent / (part * seconds)]


def choose(names: list[str], labels: list[str], seeds: int) -> None:
    print("| data | ranker | train | validation | epsilon | s a fit |\n|---|---|---|---|---|---|", flush=True)
    data = choosing()
    for name in names:
        for label in labels:
            rows = []
            for seed in range(seeds):
                for split in data[name]:
                    began = process_time()
                    with at_most(1):
                        fitted = CHOICES[label](seed).fit(split.train)
                    seconds = process_time() - began
                    proved = getattr(getattr(fitted, "certificate_", None), "epsilon", np.nan)
                    rows.append(
                        [reached(split.train, fitted.coef_), reached(split.test, fitted.coef_), proved, seconds]
                    )
            train, test, epsilon, seconds = np.mean(rows, axis=0)
            told = "" if np.isnan(epsilon) else f"{epsilon:.1e}"
            print(f"| {name} | {label} | {train:.4f} | {test:.4f} | {told} | {seconds:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--choose", action="store_true")
    asked.add_argument("--race", action="store_true")
    parser.add_argument("--sets", nargs="+", default=["MQ2008", "OHSUMED"])
    parser.add_argument("--rankers", nargs="+", default=list(CHOICES), choices=list(CHOICES))
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.choose:
        choose(given.sets, given.rankers, given.seeds)
        return
    data = sets()
    print("| data | sampled reach | s | exact reach | s | s until as high | times |\n|---|---|---|---|---|---|---|")
    for name in given.sets:
        row = np.nanmean([race(split.train) for split in data[name]], axis=0)
        print("| " + " | ".join([name, *(f"{value:.4g}" for value in row)]) + " |", flush=True)


if __name__ == "__main__":
    main()
