"""Winning numbers: which ranker is ahead, over sets and measures [paper 3, Tables 3 and 4].

    RANKOPT_DATA=folder python benchmarks/winning.py RESULTS.jsonl [--sets ...] [--rankers ...] [--seeds 0 1 2]
    python benchmarks/winning.py RESULTS.jsonl --table

Sets, splits and protocol are those of `accuracy.py`: what a learner chooses it chooses inside the training queries of a
split, by nDCG@10, and learns once more on all of them. Ours are without a parameter, trained for nDCG@10; what grows
trees has the seeds asked for, and the value of a query is the mean over them. Each ranking is then judged by nine
measures, one cell for each and each set; queries without relevant documents count 0, ties averaged.

    W            how many other rankers a ranker is above, summed over sets: the paper's winning number of a measure
    cells won    cells in which its mean is the largest, to 1e-12
    above, below cells in which its mean is above or below the better of LightGBM's two objectives, in brackets those
                 where the paired randomisation test over the test queries has p < .05 (no correction for how many)
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from accuracy import RANKERS as ACCURACY
from accuracy import Learner, of_ranker
from accuracy_sets import folds, sets

from rankopt.evaluation.comparison import compare
from rankopt.experimental import DirectBoostedRanker, McRanker
from rankopt.measures import evaluate
from rankopt.rankers import DirectRanker, SmoothRanker

MEASURES = ("nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10", "P@1", "P@3", "P@5", "P@10", "AP")
PEERS = ("lambdarank", "rank_xendcg")
GROWN = (*PEERS, "BoostedRanker")
"""What is run with several seeds."""


def stopped_trees(split, seed: int) -> np.ndarray:
    """`DirectBoostedRanker` on two thirds of the queries, as many trees as are best for the last third."""
    inner = next(folds(split.train, 3, seed))
    ranker = DirectBoostedRanker(tree_learner="lightgbm", n_estimators=300, n_jobs=1, random_state=seed)
    return ranker.fit(inner.train, eval_set=inner.test).predict(split.test)


RANKERS: dict[str, Learner] = {
    **{name: ACCURACY[name] for name in ("LargeMarginRanker", "PairwiseRanker", "RegressionRanker")},
    "SmoothRanker": of_ranker(lambda seed: SmoothRanker()),
    "DirectRanker": of_ranker(lambda seed: DirectRanker()),
    "DirectRanker, restarts=8": of_ranker(lambda seed: DirectRanker(n_restarts=8)),
    "DirectBoostedRanker, stopped": stopped_trees,
    "McRanker": of_ranker(lambda seed: McRanker()),
    **{name: ACCURACY[name] for name in ("BoostedRanker", *PEERS)},
}


def run(file: Path, names: list[str] | None, rankers: list[str], seeds: list[int]) -> None:
    known = {(row["ranker"], row["set"], row["seed"]) for row in rows_of(file)}
    for name, splits in sets().items():
        for ranker in rankers if names is None or name in names else []:
            for seed in seeds if ranker in GROWN else [0]:
                if (ranker, name, seed) in known:
                    continue
                found = defaultdict(list)
                for split in splits:
                    judged = evaluate(split.test, RANKERS[ranker](split, seed), list(MEASURES), convention="burges")
                    for measure in MEASURES:
                        found[measure] += judged[measure].tolist()
                with open(file, "a") as opened:
                    opened.write(json.dumps({"ranker": ranker, "set": name, "seed": seed, "values": found}) + "\n")


def rows_of(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def table(file: Path) -> None:
    runs = defaultdict(list)
    for row in rows_of(file):
        for measure, values in row["values"].items():
            runs[row["ranker"], row["set"], measure].append(values)
    found = {key: np.mean(several, axis=0) for key, several in runs.items()}
    names = list(dict.fromkeys(name for _, name, _ in found))
    whole = [ranker for ranker in RANKERS if all((ranker, name, MEASURES[0]) in found for name in names)]
    cells = [(name, measure) for name in names for measure in MEASURES]
    means = {(ranker, *cell): found[ranker, *cell].mean() for ranker in whole for cell in cells}
    best = {cell: max(means[ranker, *cell] for ranker in whole) for cell in cells}
    print(f"{len(names)} sets: {', '.join(names)}; {len(cells)} cells, {len(whole)} rankers\n")
    print("| | " + " | ".join(f"W {measure}" for measure in MEASURES) + " | W | cells won | above | below |")
    print("|---" * (len(MEASURES) + 5) + "|")
    for ranker in whole:
        beaten = {
            measure: sum(means[ranker, name, measure] > means[other, name, measure] + 1e-12
                         for name in names for other in whole)
            for measure in MEASURES
        }  # fmt: skip
        won = sum(means[ranker, *cell] >= best[cell] - 1e-12 for cell in cells)
        sides = [[0, 0], [0, 0]]
        for cell in cells:
            peer = max((found[name, *cell] for name in PEERS if name in whole), key=np.mean)
            apart = found[ranker, *cell] - peer
            if ranker not in PEERS and abs(apart.mean()) > 1e-12:
                side = sides[int(apart.mean() < 0)]
                side[0] += 1
                side[1] += compare(found[ranker, *cell], peer).p_randomization < 0.05
        told = ["", ""] if ranker in PEERS else [f"{count} ({clear})" for count, clear in sides]
        print(f"| {ranker} | " + " | ".join(map(str, [*beaten.values(), sum(beaten.values()), won, *told])) + " |")
    print("\n| most cells of a set | " + " | ".join(names) + " |\n|---" + "|---" * len(names) + "|")
    for ranker in whole:
        counts = [sum(means[ranker, name, m] >= best[name, m] - 1e-12 for m in MEASURES) for name in names]
        print(f"| {ranker} | {' | '.join(map(str, counts))} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--rankers", nargs="+", default=list(RANKERS), choices=list(RANKERS))
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if not given.table:
        run(given.results, given.sets, given.rankers, given.seeds)
    table(given.results)
