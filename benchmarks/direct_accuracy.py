"""Climbing the measure itself: what it reaches in training and in the test, on every set at hand.

    RANKOPT_DATA=folder python benchmarks/direct_accuracy.py RESULTS.jsonl [--sets ...] [--rankers ...]
    python benchmarks/direct_accuracy.py RESULTS.jsonl --table | --each

Splits are those of `accuracy_sets.py`; nDCG@10, queries without relevant documents count 0, means over the queries of
a set; p is that of the paired randomisation test over its test queries against the large margin. "sampled steps" are
those of `direct.py`. "far down" is a smooth start annealed from sigma = 4 to 1/32 with lam = 1e-5; "best of 24
annealed" begins the annealing at 24 places, the ridge and .5, 1 and 2 deviations of its scores away from it, with lam
of 1e-5, 1e-6 and 1e-4 in turn, polishes each, and takes the best in training.

"chosen inside" takes, in each split, the one of CANDIDATES that ranks best the held-out queries of three folds inside
the training queries (`folds`), and learns it once more on all of them; no test query has a say.

"OHSUMED, fold 5" learns from the training file of that fold alone. --each shows the training measure split by split.

Every step that an ascent accepts was predicted by a sweep and is measured again at X w: the table ends with how many of
them were equal. epsilon is that of the certificate: how much one direction, alone, would still gain. Seconds are of the
processor, one thread, a fit.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections import defaultdict
from pathlib import Path
from time import process_time

import numpy as np
from accuracy_sets import Split, folds, sets
from direct import FAR, MEASURE, RANKERS, direct, reached

from formulations.parallel import at_most
from rankopt.data import Queries, read_svmlight
from rankopt.evaluation.comparison import compare
from rankopt.measures import evaluate
from rankopt.optimize import LineSearch
from rankopt.rankers import DirectRanker, RandomDirections, RegressionRanker, SmoothRanker
from rankopt.scorers.linear import linear_scores

ONE = "OHSUMED, fold 5"
NAMES = ("MQ2008", "OHSUMED", "MSLR", "LightGBM", ONE)
BASE = "large margin"
AWAY, PULLS = (0.5, 1.0, 2.0), (1e-5, 1e-6, 1e-4)


class Annealed:
    """The best in training of `count` annealings, each polished by exact lines."""

    def __init__(self, count: int, seed: int = 0) -> None:
        self.count, self.seed = count, seed

    def fit(self, queries: Queries) -> Annealed:
        search, rng = LineSearch.from_measure(MEASURE, queries, engine="serial"), np.random.default_rng(self.seed)
        units = np.where(search.deviations > 0, search.deviations, 1.0)
        ridge = RegressionRanker().fit(queries).coef_
        ridge = ridge / (search.deviation(ridge) or 1.0)
        self.histories_, best = [], -1.0
        for number in range(self.count):
            away = rng.normal(size=ridge.size) / units
            apart = AWAY[number % 3] / search.deviation(away) if number else 0.0
            start = SmoothRanker(
                MEASURE, w0=ridge + apart * away, bandwidths=FAR.bandwidths, lam=PULLS[number // 3 % 3], engine="serial"
            )
            ranker = DirectRanker(MEASURE, init=start, step_rule="middle", engine="serial").fit(queries)
            self.histories_.append(ranker.history_)
            if ranker.certificate_.value > best:
                best, self.coef_, self.certificate_ = ranker.certificate_.value, ranker.coef_, ranker.certificate_
        return self


class Chosen:
    """The candidate that ranks held-out queries best, learned once more on all."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, queries: Queries) -> Chosen:
        parts = list(folds(queries, 3, self.seed))

        def judged(name: str) -> float:
            found = [values(part.test, LEARNERS[name](self.seed).fit(part.train).coef_) for part in parts]
            return float(np.mean(np.concatenate(found)))

        self.name_ = max(CANDIDATES, key=judged)
        fitted = LEARNERS[self.name_](self.seed).fit(queries)
        self.coef_, self.histories_ = fitted.coef_, [fitted.history_] if self.name_.startswith("direct") else []
        return self


LEARNERS = RANKERS | {
    "direct, smooth, powell and 10 random": direct(directions=("coordinates", "powell", RandomDirections(10))),
    "direct, best of 24 annealed": lambda seed: Annealed(24, seed),
    "chosen inside": Chosen,
}
CANDIDATES = (
    "ridge", "large margin", "smooth", "direct, ridge", "direct, large margin", "direct, smooth",
    "direct, smooth, powell and 10 random", "direct, smooth far down, middle",
)  # fmt: skip


def values(queries: Queries, w: np.ndarray) -> np.ndarray:
    return evaluate(queries, linear_scores(queries.features, w), MEASURE, convention="burges")[MEASURE]


def splits() -> dict[str, list[Split]]:
    folder = Path(os.environ["RANKOPT_DATA"]) / "letor3-ohsumed" / "QueryLevelNorm" / "Fold5"
    train, test = (read_svmlight(folder / f"{part}.txt.gz") for part in ("train", "test"))
    return sets() | {ONE: [Split(train, test)]}


def run(file: Path, names: list[str], learners: list[str]) -> None:
    known, found = {(row["set"], row["ranker"]) for row in rows_of(file)}, splits()
    for name in names:
        for label in learners:
            if (name, label) in known:
                continue
            row: dict = {"set": name, "ranker": label, "train": [], "test": [], "epsilon": [], "seconds": 0.0}
            steps = []
            for split in found[name]:
                began = process_time()
                with at_most(1):
                    fitted = LEARNERS[label](0).fit(split.train)
                row["seconds"] += (process_time() - began) / len(found[name])
                row["train"].append(reached(split.train, fitted.coef_))
                row["test"] += values(split.test, fitted.coef_).tolist()
                row["epsilon"].append(getattr(getattr(fitted, "certificate_", None), "epsilon", None))
                row.setdefault("chosen", []).append(getattr(fitted, "name_", None))
                own = getattr(fitted, "history_", None)
                for history in getattr(fitted, "histories_", [own] if hasattr(own, "predicted") else []):
                    steps.append(np.abs(history.predicted - history.value))
            apart = np.concatenate([*steps, np.empty(0)])
            row |= {"steps": apart.size, "equal": int(np.sum(apart <= 1e-12)), "apart": float(apart.max(initial=0.0))}
            with open(file, "a") as opened:
                opened.write(json.dumps(row) + "\n")


def rows_of(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def table(file: Path) -> None:
    rows = {(row["set"], row["ranker"]): row for row in rows_of(file)}
    names = [name for name in NAMES if (name, BASE) in rows]
    print(
        "| | " + " | ".join(f"{name}: train | test | p" for name in names) + " |\n|---" + "|---" * 3 * len(names) + "|"
    )
    labels = [label for label in LEARNERS if any((name, label) in rows for name in names)]
    for label in labels:
        cells = []
        for name in names:
            row = rows.get((name, label))
            if row is None:
                cells.append(" | | ")
                continue
            own, base = np.array(row["test"]), np.array(rows[name, BASE]["test"])
            p = "" if np.array_equal(own, base) else f"{compare(own, base).p_randomization:.2f}"
            cells.append(f"{np.mean(row['train']):.4f} | {own.mean():.4f} | {p}")
        print(f"| {label} | {' | '.join(cells)} |")
    print("\n| epsilon; seconds a fit | " + " | ".join(names) + " |\n|---" + "|---" * len(names) + "|")
    for label in labels:
        found = [rows.get((name, label)) for name in names]
        cells = ["" if row is None or None in row["epsilon"] else f"{np.mean(row['epsilon']):.0e}; " for row in found]
        told = [cell + ("" if row is None else f"{row['seconds']:.1f}") for cell, row in zip(cells, found, strict=True)]
        print(f"| {label} | {' | '.join(told)} |")
    print()
    for name in names:
        if (name, "chosen inside") in rows:
            print(f"{name}, chosen inside: {'; '.join(rows[name, 'chosen inside']['chosen'])}")
    print("\n| accepted steps | " + " | ".join(names) + " |\n|---" + "|---" * len(names) + "|")
    counted: dict = defaultdict(lambda: [0, 0, 0.0])
    for (name, _), row in rows.items():
        was = counted[name]
        counted[name] = [was[0] + row["steps"], was[1] + row["equal"], max(was[2], row["apart"])]
    for place, what in enumerate(("steps", "predicted as measured, to 1e-12", "farthest apart")):
        cells = [f"{counted[name][place]:,}" if place < 2 else f"{counted[name][place]:.0e}" for name in names]
        print(f"| {what} | {' | '.join(cells)} |")


def each(file: Path) -> None:
    """The training measure of each split."""
    rows = {(row["set"], row["ranker"]): row["train"] for row in rows_of(file)}
    names = [name for name in NAMES if (name, BASE) in rows]
    print("| training | " + " | ".join(names) + " |\n|---" + "|---" * len(names) + "|")
    for label in LEARNERS:
        cells = [" ".join(f"{value:.4f}" for value in rows.get((name, label), [])) for name in names]
        print(f"| {label} | {' | '.join(cells)} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(NAMES), choices=NAMES)
    parser.add_argument("--rankers", nargs="+", default=list(LEARNERS), choices=list(LEARNERS))
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--each", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if not (given.table or given.each):
        run(given.results, given.sets, given.rankers)
    (each if given.each else table)(given.results)
