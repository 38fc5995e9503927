"""Trees weighed by the measure itself beside MART and LambdaMART with as many trees: training and test measure.

    RANKOPT_DATA=folder python benchmarks/direct_trees.py RESULTS.jsonl [--sets ...] [--learners ...]
    python benchmarks/direct_trees.py RESULTS.jsonl --table
    RANKOPT_DATA=folder python benchmarks/direct_trees.py RESULTS.jsonl --choose   (held-out queries by interval)

Splits are those of `accuracy_sets.py`. Everybody grows 100 trees of 10, 30 and 50 leaves, by LightGBM, 20 documents a
leaf at least, and learns from the training queries alone. MART is LightGBM's regression of the grades, LambdaMART its
lambdarank. "stopped" learns from two thirds of the training queries, 300 trees at most, and takes as many as are best
for nDCG@10 on the last third. Trees of the measure are slow: 10 trees of 10 leaves, beside MART's 10, on MQ2008.

Training: nDCG@10 of the training queries where it is defined, the mean over splits, which is what is maximised. Test:
nDCG@10, queries without relevant documents count 0, the mean over all test queries ± its standard error; p is that of
the paired randomisation test against MART, rate .1, of as many trees and leaves. Seconds are processor time of one
process on the first split.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from time import process_time

import lightgbm
import numpy as np
from accuracy_sets import Split, folds, sets

from rankopt import evaluate
from rankopt.data import Queries
from rankopt.evaluation.comparison import compare
from rankopt.experimental import DirectBoostedRanker

TREES, LEAVES, FEW, MANY = 100, (10, 30, 50), 10, 300
INTERVALS = ((0.01, 0.2), (0.02, 0.1), (0.02, 0.2), (0.05, 0.2), (0.1, 0.5))
Scores = Callable[[Queries], np.ndarray]
Learner = Callable[[Queries, int, int], Scores]


def package(objective: str, rate: float) -> Learner:
    def learn(train: Queries, trees: int, leaves: int) -> Scores:
        booster = grown(objective, rate, train, trees, leaves)
        return lambda queries: booster.predict(queries.features)

    return learn


def grown(objective: str, rate: float, train: Queries, trees: int, leaves: int) -> lightgbm.Booster:
    settings = {
        "objective": objective, "learning_rate": rate, "num_leaves": leaves, "min_data_in_leaf": 20, "num_threads": 1,
        "deterministic": True, "force_col_wise": True, "verbosity": -1,
    }  # fmt: skip
    data = lightgbm.Dataset(train.features, train.relevance, group=np.diff(train.offsets), params={"verbosity": -1})
    return lightgbm.train(settings, data, trees)


def direct(**options: object) -> Learner:
    def learn(train: Queries, trees: int, leaves: int) -> Scores:
        given = {"trees": "lightgbm", "n_estimators": trees, "num_leaves": leaves, "n_jobs": 1} | options
        return DirectBoostedRanker("nDCG@10", **given).fit(train).predict

    return learn


def stopped_mart(train: Queries, trees: int, leaves: int) -> Scores:
    inner = next(folds(train, 3))
    booster = grown("regression", 0.1, inner.train, trees, leaves)
    curve = [training(inner.test, booster.predict(inner.test.features, num_iteration=k + 1)) for k in range(trees)]
    rounds = int(np.argmax(curve)) + 1
    return lambda queries: booster.predict(queries.features, num_iteration=rounds)


def stopped(**options: object) -> Learner:
    def learn(train: Queries, trees: int, leaves: int) -> Scores:
        inner = next(folds(train, 3))
        given = {"trees": "lightgbm", "n_estimators": trees, "num_leaves": leaves, "n_jobs": 1} | options
        return DirectBoostedRanker("nDCG@10", **given).fit(inner.train, eval_set=inner.test).predict

    return learn


PAPER = {"interval": (0.1, 0.5)}
BASE = "MART, rate .1"
LEARNERS = {
    BASE: package("regression", 0.1),
    "MART, rate .3": package("regression", 0.3),
    "MART, rate .5": package("regression", 0.5),
    "LambdaMART, rate .1": package("lambdarank", 0.1),
    "inside [.02, .2]": direct(interval=(0.02, 0.2)),
    "DirectBoostedRanker(): inside [.05, .2]": direct(),
    "paper 3: clamped to [.1, .5]": direct(weight="clamped", **PAPER),
    "inside [.1, .5]": direct(**PAPER),
    "leveraging": direct(strategy="leveraging", interval=(0.02, 0.1)),
    "both, from [.02, .2]": direct(strategy="both", interval=(0.02, 0.2)),
}
STOPPED = {
    BASE: stopped_mart,
    "inside [.02, .2]": stopped(interval=(0.02, 0.2)),
    "DirectBoostedRanker(): inside [.05, .2]": stopped(),
    "paper 3: clamped to [.1, .5]": stopped(weight="clamped", **PAPER),
    "leveraging": stopped(strategy="leveraging", interval=(0.02, 0.1)),
}
SHORT = {
    BASE: LEARNERS[BASE],
    "MART, rate .5": LEARNERS["MART, rate .5"],
    "inside [.1, .5]": LEARNERS["inside [.1, .5]"],
    "trees of the measure, inside [.02, .2]": direct(trees="measure", interval=(0.02, 0.2)),
    "trees of the measure, inside [.1, .5]": direct(trees="measure", **PAPER),
}


def training(queries: Queries, scores: np.ndarray) -> float:
    return evaluate(queries, scores, "nDCG@10").mean()


def values(queries: Queries, scores: np.ndarray) -> list[float]:
    return evaluate(queries, scores, "nDCG@10", convention="burges")["nDCG@10"].tolist()


def run(file: Path, names: list[str], chosen: list[str] | None = None) -> None:
    known = {(row["set"], row["learner"], row["kind"], row["leaves"]) for row in rows_of(file)}
    found = sets()
    jobs = [("plain", TREES, leaves, LEARNERS) for leaves in LEAVES]
    jobs[1:1] = [("stopped", MANY, 10, STOPPED), ("short", FEW, 10, SHORT)]
    for kind, trees, leaves, learners in jobs:
        for name in names if kind != "short" else [name for name in names if name == "MQ2008"]:
            for label, learn in learners.items():
                if (name, label, kind, leaves) not in known and (chosen is None or label in chosen):
                    told = {"set": name, "learner": label, "kind": kind, "leaves": leaves}
                    parts = [tested(learn, split, trees, leaves) for split in found[name]]
                    with open(file, "a") as opened:
                        opened.write(json.dumps(told | {"parts": parts}) + "\n")


def tested(learn: Learner, split: Split, trees: int, leaves: int) -> dict:
    began = process_time()
    scores = learn(split.train, trees, leaves)
    seconds = process_time() - began
    return {
        "train": training(split.train, scores(split.train)),
        "test": values(split.test, scores(split.test)),
        "seconds": seconds,
    }


def choose(names: list[str]) -> None:
    """By interval and leaves, 100 trees: nDCG@10 where it is defined, of training queries and of some held out of them,
    the mean over three folds inside every training part of a set."""
    found = sets()
    learners = {str(interval): direct(interval=interval) for interval in INTERVALS} | {BASE: LEARNERS[BASE]}
    for name in names:
        for label, learn in learners.items():
            cells = []
            for leaves in LEAVES:
                parts = []
                for split in found[name]:
                    for inner in folds(split.train, 3):
                        scores = learn(inner.train, TREES, leaves)
                        parts.append([training(queries, scores(queries)) for queries in (inner.train, inner.test)])
                cells += [f"{value:.4f}" for value in np.mean(parts, axis=0)]
            print(f"| {name} | {label} | {' | '.join(cells)} |", flush=True)


def rows_of(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def table(file: Path) -> None:
    rows = {(row["set"], row["learner"], row["kind"], row["leaves"]): row["parts"] for row in rows_of(file)}
    names = list(dict.fromkeys(name for name, *_ in rows))
    for kind, leaves in dict.fromkeys((kind, leaves) for _, _, kind, leaves in rows):
        trees = {"plain": TREES, "stopped": MANY, "short": FEW}[kind]
        few = f"{trees} trees" if kind != "stopped" else f"at most {trees} trees, stopped"
        print(f"| {few}, {leaves} leaves | " + " | ".join(f"{n}: train | test | p | s" for n in names) + " |")
        print("|---" * (4 * len(names) + 1) + "|")
        for label in {"plain": LEARNERS, "stopped": STOPPED, "short": SHORT}[kind]:
            cells = []
            for name in names:
                parts, base = rows.get((name, label, kind, leaves)), rows.get((name, BASE, kind, leaves))
                if parts is None or base is None:
                    cells.append(" | | |")
                    continue
                own, other = (np.concatenate([part["test"] for part in one]) for one in (parts, base))
                p = "" if label == BASE else f"{compare(own, other).p_randomization:.2f}"
                error = own.std(ddof=1) / np.sqrt(own.size)
                train = mean(part["train"] for part in parts)
                cells.append(f"{train:.4f} | {own.mean():.4f} ± {error:.3f} | {p} | {parts[0]['seconds']:.1f}")
            print(f"| {label} | {' | '.join(cells)} |")
        print()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--sets", nargs="+", default=["MQ2008", "OHSUMED", "LightGBM"])
    parser.add_argument("--learners", nargs="+", choices=list(LEARNERS | STOPPED | SHORT))
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--choose", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.choose:
        choose(given.sets)
    else:
        if not given.table:
            run(given.results, given.sets, given.learners)
        table(given.results)
