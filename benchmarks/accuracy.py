"""Accuracy of our rankers and of their peers on every set at hand.

    RANKOPT_DATA=folder python benchmarks/accuracy.py RESULTS.jsonl [--rankers ...] [--sets ...] [--seeds ...]
    RANKOPT_DATA=folder python benchmarks/accuracy.py RESULTS.jsonl --small        sizes 13, 50, 100 and 300 queries
    python benchmarks/accuracy.py RESULTS.jsonl --table

The protocol, written down before it was run. Sets and splits are those of `accuracy_sets.py`. Whatever a learner
chooses (a ridge, λ, leaves, rounds) it chooses inside the training queries of a split, by folds of whole queries, and
learns once more on all of them. nDCG@10 of each test query, gain 2^y - 1, queries without relevant documents count 0,
ties averaged over their orders. Linear rankers are deterministic; learners of trees are run with the seeds asked for
(features, noise, folds) and a query's value is the mean over them. Figures are means over all test queries of a set, ±
their standard error; p is that of the paired randomisation test over these queries against the better of LightGBM's two
objectives. Seconds are of one process, learning and choosing, by those of lambdarank.

Ours: all without a parameter, but `lam="auto"`. Theirs: `ridge` is scikit-learn's on grades, α of .01 to 10,000 by
folds of whole queries; `hist` its histogram gradient boosting on grades, and LightGBM's and XGBoost's objectives, with
leaves and rounds chosen as in `boosting.py`.

`--small` draws so many training queries without replacement, four times for each split of a set and twenty times a set
at least, and compares the linear rankers alone.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from time import process_time

import numpy as np
from accuracy_sets import Split, folds, resampled, sets
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge

from rankopt import evaluate
from rankopt.data import Queries
from rankopt.evaluation.comparison import compare
from rankopt.rankers import LargeMarginRanker, PairwiseRanker, RegressionRanker

Learner = Callable[[Split, int], np.ndarray]
"""From a split and a seed to the scores of the test documents."""


def values(queries: Queries, scores: np.ndarray) -> np.ndarray:
    return evaluate(queries, scores, "nDCG@10", convention="burges")["nDCG@10"]


def of_ranker(make: Callable[[int], object]) -> Learner:
    return lambda split, seed: make(seed).fit(split.train).predict(split.test)


def ridge(split: Split, seed: int) -> np.ndarray:
    def learnt(train: Queries, alpha: float) -> Ridge:
        return Ridge(alpha, solver="cholesky").fit(train.features, train.relevance)

    def judged(alpha: float) -> float:
        parts = folds(split.train, 4, seed)
        return mean(values(part.test, learnt(part.train, alpha).predict(part.test.features)).mean() for part in parts)

    best = max(np.logspace(-2, 4, 13), key=judged)
    return learnt(split.train, best).predict(split.test.features)


def hist(split: Split, seed: int) -> np.ndarray:
    def learnt(train: Queries, leaves: int, rounds: int) -> HistGradientBoostingRegressor:
        options = {"max_leaf_nodes": leaves, "max_iter": rounds, "max_features": 0.7}
        return HistGradientBoostingRegressor(**options, early_stopping=False, random_state=seed).fit(
            train.features, train.relevance
        )

    chosen = []
    for leaves in (4, 8, 16):
        parts = list(folds(split.train, 3, seed))
        grown = [learnt(part.train, leaves, 200) for part in parts]
        along = [
            [values(part.test, scores).mean() for scores in one.staged_predict(part.test.features)]
            for part, one in zip(parts, grown, strict=True)
        ]
        means = np.mean(along, axis=0)
        chosen.append((means.max(), leaves, int(means.argmax()) + 1))
    _, leaves, rounds = max(chosen)
    return learnt(split.train, leaves, rounds).predict(split.test.features)


def of_trees(name: str) -> Learner:
    def learn(split: Split, seed: int) -> np.ndarray:
        from boosting import METHODS, chosen_inside  # LightGBM and XGBoost are needed for these alone

        return chosen_inside(METHODS[name], split, seed)

    return learn


LINEAR: dict[str, Learner] = {
    "LargeMarginRanker": of_ranker(lambda seed: LargeMarginRanker()),
    'LargeMarginRanker, lam="auto"': of_ranker(lambda seed: LargeMarginRanker(lam="auto")),
    "RegressionRanker": of_ranker(lambda seed: RegressionRanker()),
    "PairwiseRanker": of_ranker(lambda seed: PairwiseRanker()),
    "LargeMarginRanker, w0 RankSVM": of_ranker(lambda seed: LargeMarginRanker(w0="ranksvm")),
    "LargeMarginRanker as before": of_ranker(lambda seed: LargeMarginRanker(w0="regression", lam=0.1)),
    "ridge (scikit-learn)": ridge,
}
TREES: dict[str, Learner] = {
    "BoostedRanker": of_trees("BoostedRanker"),
    "lambdarank": of_trees("lambdarank"),
    "rank_xendcg": of_trees("rank_xendcg"),
    "rank:ndcg (XGBoost)": of_trees("rank:ndcg"),
    "hist (scikit-learn)": hist,
}
RANKERS = LINEAR | TREES


def run(file: Path, names: list[str], chosen: list[str] | None, seeds: list[int]) -> None:
    """Append a line for each ranker, set and seed that the file has not."""
    known = {(row["ranker"], row["set"], row["seed"]) for row in rows_of(file)}
    for name, splits in sets().items():
        for ranker in names if chosen is None or name in chosen else []:
            for seed in seeds if ranker in TREES else [0]:
                if (ranker, name, seed) not in known:
                    began = process_time()
                    found = [values(split.test, RANKERS[ranker](split, seed)).tolist() for split in splits]
                    keep(file, ranker=ranker, set=name, seed=seed, values=found, seconds=process_time() - began)


def run_small(file: Path, names: list[str], chosen: list[str] | None) -> None:
    known = {(row["ranker"], row["set"], row.get("size")) for row in rows_of(file)}
    for name, splits in sets().items():
        for size in (13, 50, 100, 300):
            if size >= len(splits[0].train) or (chosen is not None and name not in chosen):
                continue
            draws = max(-(-20 // len(splits)), 4)
            drawn = [resampled(split, size, draw) for split in splits for draw in range(draws)]
            for ranker in names:
                if ranker in LINEAR and (ranker, name, size) not in known:
                    began = process_time()
                    found = [float(values(split.test, RANKERS[ranker](split, 0)).mean()) for split in drawn]
                    keep(file, ranker=ranker, set=name, size=size, values=found, seconds=process_time() - began)


def keep(file: Path, **row: object) -> None:
    with open(file, "a") as opened:
        opened.write(json.dumps(row) + "\n")


def rows_of(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def table(file: Path) -> None:
    """Means ± standard error, p against the better of LightGBM's objectives, mean rank, seconds by lambdarank's."""
    runs, seconds = defaultdict(list), defaultdict(float)
    for row in rows_of(file):
        if "size" not in row:
            runs[row["ranker"], row["set"]].append(np.concatenate(row["values"]))
            seconds[row["ranker"], row["set"]] += row["seconds"]
    found = {key: np.mean(several, axis=0) for key, several in runs.items()}
    count = {key: len(several) for key, several in runs.items()}
    names = list(dict.fromkeys(name for _, name in found))
    rankers = [ranker for ranker in RANKERS if any((ranker, name) in found for name in names)]
    whole = [ranker for ranker in rankers if all((ranker, name) in found for name in names)]

    def per_run(ranker: str, name: str) -> float:
        return seconds[ranker, name] / count[ranker, name]

    order = {name: sorted((-found[ranker, name].mean(), ranker) for ranker in whole) for name in names}
    print("| | " + " | ".join(f"{name} ({found[rankers[0], name].size})" for name in names) + " | mean rank |")
    print("|---" * (len(names) + 2) + "|")
    for ranker in rankers:
        cells = []
        for name in names:
            if (ranker, name) not in found:
                cells.append("")
                continue
            own = found[ranker, name]
            cell = f"{own.mean():.4f} ± {own.std(ddof=1) / np.sqrt(own.size):.4f}"
            peers = [found[peer, name] for peer in ("lambdarank", "rank_xendcg") if (peer, name) in found]
            if peers and ranker not in ("lambdarank", "rank_xendcg"):
                cell += f", p {compare(own, max(peers, key=np.mean)).p_randomization:.2f}"
            cells.append(cell)
        places = [[one for _, one in order[name]].index(ranker) + 1 for name in names] if ranker in whole else []
        print(f"| {ranker} | {' | '.join(cells)} | {f'{mean(places):.1f}' if places else ''} |")
    timed = [name for name in names if ("lambdarank", name) in found]
    if timed:
        ratios = {
            ranker: mean(per_run(ranker, name) / per_run("lambdarank", name) for name in timed) for ranker in whole
        }
        print("\nSeconds by lambdarank's: " + ", ".join(f"{ranker} {ratio:.3g}" for ranker, ratio in ratios.items()))
    differences(found, names)
    small(file)


def differences(found: dict[tuple[str, str], np.ndarray], names: list[str]) -> None:
    """Mean of the default less that of every other ranker, and p of the paired test."""
    first, *others = RANKERS
    others = [other for other in others if any((first, name) in found and (other, name) in found for name in names)]
    if not others:
        return
    print("\n| " + first + " less | " + " | ".join(names) + " |\n|---" + "|---" * len(names) + "|")
    for other in others:
        cells = []
        for name in names:
            pair = [found.get((ranker, name)) for ranker in (first, other)]
            if pair[0] is None or pair[1] is None:
                cells.append("")
            elif np.array_equal(*pair):
                cells.append("0")
            else:
                cells.append(f"{(pair[0] - pair[1]).mean():+.4f} (p {compare(*pair).p_randomization:.2f})")
        print(f"| {other} | {' | '.join(cells)} |")


def small(file: Path) -> None:
    """Mean over the draws of each size; and p of the paired test over the draws, against the default."""
    rows = [row for row in rows_of(file) if "size" in row]
    found = {(row["ranker"], row["set"], row["size"]): np.array(row["values"]) for row in rows}
    cases = list(dict.fromkeys((name, size) for _, name, size in found))
    rankers = [ranker for ranker in LINEAR if any((ranker, *case) in found for case in cases)]
    if not cases:
        return
    print("\n| set, queries | " + " | ".join(rankers) + " |\n|---" + "|---" * len(rankers) + "|")
    for case in cases:
        cells = []
        for ranker in rankers:
            own, first = found.get((ranker, *case)), found.get((rankers[0], *case))
            cell = "" if own is None else f"{own.mean():.4f}"
            if own is not None and first is not None and ranker != rankers[0] and (own != first).any():
                cell += f" (p {compare(own, first).p_randomization:.2f})"
            cells.append(cell)
        print(f"| {case[0]}, {case[1]} | {' | '.join(cells)} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--rankers", nargs="+", default=list(RANKERS), choices=list(RANKERS))
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.small:
        run_small(given.results, given.rankers, given.sets)
    elif not given.table:
        run(given.results, given.rankers, given.sets, given.seeds)
    table(given.results)
