"""McRank: the expected grade against the expected gain, rounds by whole queries against rounds by rows, its time.

    RANKOPT_DATA=folder python benchmarks/mcrank.py RESULTS.jsonl [--sets MQ2008 OHSUMED] [--rounds 3]
    python benchmarks/mcrank.py RESULTS.jsonl --table

Splits are those of `accuracy_sets.py`; every learner sees the training queries alone and is tested by nDCG@10, gain
2^y - 1, queries without relevant documents count 0, ties averaged. p is that of the paired randomisation test over the
test queries against the first line. Trees have 8 leaves and the learning rate .1 unless the line says otherwise.
"by rows" is scikit-learn's early_stopping=True: a tenth of the rows held out, queries on both sides, the same patience.
"by nDCG@10" chooses rounds by the mean of nDCG@10 over the same three folds of whole queries, 200 rounds each.

Every line is learned from all training documents, and from those that `Queries.without_contradictions()` leaves, and
tested on all test documents, and on those that it leaves. Seconds are of one process (processor time): the least of
`--rounds` fits on the first split, the learners in turn.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from time import process_time

import numpy as np
from accuracy_sets import Split, sets
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from rankopt import evaluate
from rankopt.data import Queries
from rankopt.data.canonical_order import canonical
from rankopt.data.contradictions import ContradictionFilter
from rankopt.data.validation import taken
from rankopt.evaluation.comparison import compare
from rankopt.mcrank.ranker import folds_of
from rankopt.rankers import BoostedRanker, LargeMarginRanker, McRanker, RegressionRanker

OURS = {"max_iter": 500, "n_iter_no_change": 10, "learning_rate": 0.1, "max_leaf_nodes": 8, "random_state": 0}


def boosted(**options) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(**OURS | options)


def fixed(rounds: int, **options) -> HistGradientBoostingClassifier:
    return boosted(max_iter=rounds, early_stopping=False, **options)


def by_measure(train: Queries) -> McRanker:
    """Rounds by the mean of nDCG@10 over the folds of `McRanker`."""
    arranged = canonical(train, np.ones(len(train)))
    features, grades = taken(arranged.features, arranged.rows), arranged.graded
    of = np.repeat(np.arange(len(arranged)), np.diff(arranged.offsets))
    found = []
    for held in folds_of(arranged):
        part = arranged.select(np.unique(of[held]))
        grown = fixed(200).fit(features[~held], grades[~held])
        for round, one in enumerate(grown.staged_predict_proba(features[held])):
            scores = one @ grown.classes_
            values = evaluate(part.relevance, scores, "nDCG@10", offsets=part.offsets)["nDCG@10"]
            found.append((round, values))
    curve = [np.concatenate([values for at, values in found if at == round]).mean() for round in range(200)]
    return McRanker(fixed(int(np.argmax(curve)) + 1)).fit(train)


def of(make: Callable[[], object]) -> Callable[[Queries], object]:
    return lambda train: make().fit(train)


LEARNERS = {
    "McRanker()": of(McRanker),
    'McRanker(expected="gain")': of(lambda: McRanker(expected="gain")),
    "rounds by rows": of(lambda: McRanker(boosted(early_stopping=True))),
    "rounds by nDCG@10": by_measure,
    "30 rounds, as in the paper": of(lambda: McRanker(fixed(30))),
    "31 leaves, by queries": of(lambda: McRanker(boosted(max_leaf_nodes=31))),
    "31 leaves, by rows": of(lambda: McRanker(boosted(max_leaf_nodes=31, early_stopping=True))),
    "31 leaves, 300 rounds": of(lambda: McRanker(fixed(300, max_leaf_nodes=31))),
    "LogisticRegression, zscore": of(lambda: McRanker(LogisticRegression(max_iter=2000), normalize="zscore")),
    "RegressionRanker()": of(RegressionRanker),
    "LargeMarginRanker()": of(LargeMarginRanker),
    "BoostedRanker()": of(lambda: BoostedRanker(n_jobs=1)),
}


def values(queries: Queries, scores: np.ndarray) -> list[float]:
    return evaluate(queries, scores, "nDCG@10", convention="burges")["nDCG@10"].tolist()


def tested(learn: Callable[[Queries], object], split: Split, test_left: Queries) -> dict:
    ranker = learn(split.train)
    rounds = getattr(ranker, "n_rounds_", None)
    if isinstance(ranker, McRanker):
        rounds = getattr(ranker.classifier_, "n_iter_", rounds)
    return {
        "whole": values(split.test, ranker.predict(split.test)),
        "left": values(test_left, ranker.predict(test_left)),
        "rounds": np.max(rounds).item() if rounds is not None else None,
    }


def counts(left: list[ContradictionFilter]) -> dict[str, int]:
    """What was dropped of the test parts together: every document of the set is in one of them."""
    return {
        "documents": sum(one.kept.size for one in left),
        "all zero": sum(int(one.zeros.sum()) for one in left),
        "contradicting": sum(int(one.contradicting.sum()) for one in left),
        "queries": sum(one.unordered.size for one in left),
        "with nothing to order any more": sum(int(one.unordered.sum()) for one in left),
    }


def run(file: Path, names: list[str], repeats: int) -> None:
    known = {(row["set"], row.get("learner"), row.get("train")) for row in rows_of(file)}
    found = sets()
    for name, splits in found.items():
        if (name, None, "counts") not in known:
            left = [split.test.without_contradictions() for split in splits]
            write(file, {"set": name, "train": "counts", "counts": counts(left)})
    for name in names:
        splits = found[name]
        left = [(split.train.without_contradictions(), split.test.without_contradictions()) for split in splits]
        for learner, learn in LEARNERS.items():
            for train in ("whole", "left"):
                if (name, learner, train) in known:
                    continue
                parts = [
                    tested(learn, split if train == "whole" else Split(clean.queries, split.test), test.queries)
                    for split, (clean, test) in zip(splits, left, strict=True)
                ]
                write(file, {"set": name, "learner": learner, "train": train, "parts": parts})
        if (name, None, "seconds") not in known:
            seconds = {learner: [] for learner in LEARNERS}
            for _ in range(repeats):
                for learner, learn in LEARNERS.items():
                    began = process_time()
                    learn(splits[0].train)
                    seconds[learner].append(process_time() - began)
            write(file, {"set": name, "train": "seconds", "seconds": {k: min(v) for k, v in seconds.items()}})


def write(file: Path, row: dict) -> None:
    with open(file, "a") as opened:
        opened.write(json.dumps(row) + "\n")


def rows_of(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def table(file: Path) -> None:
    rows = rows_of(file)
    names = list(dict.fromkeys(row["set"] for row in rows if "parts" in row))
    parts = {(row["set"], row["learner"], row["train"]): row["parts"] for row in rows if "parts" in row}
    seconds = {row["set"]: row["seconds"] for row in rows if "seconds" in row}

    def of_queries(name: str, learner: str, train: str, test: str) -> np.ndarray:
        return np.concatenate([part[test] for part in parts[name, learner, train]])

    head = [f"{name} | p | rounds | seconds" for name in names]
    print("| learned and tested on all | " + " | ".join(head) + " |")
    print("|---" * (4 * len(names) + 1) + "|")
    first = next(iter(LEARNERS))
    for learner in LEARNERS:
        cells = []
        for name in names:
            own, base = (of_queries(name, one, "whole", "whole") for one in (learner, first))
            p = "" if learner == first else f"{compare(own, base).p_randomization:.2f}"
            rounds = [part["rounds"] for part in parts[name, learner, "whole"]]
            told = "" if None in rounds else f"{min(rounds)} to {max(rounds)}"
            cells.append(f"{mean(own):.4f} | {p} | {told} | {seconds[name][learner]:.2f}")
        print(f"| {learner} | {' | '.join(cells)} |")
    print()
    told = {row["set"]: row["counts"] for row in rows if "counts" in row}
    print("| | " + " | ".join(next(iter(told.values()))) + " |\n" + "|---" * 6 + "|")
    for name, numbers in told.items():
        print(f"| {name} | " + " | ".join(f"{number:,}" for number in numbers.values()) + " |")
    ways = [(train, test) for test in ("whole", "left") for train in ("whole", "left")]
    print(
        "\n| learned, tested | "
        + " | ".join(f"{name}: {train}, {test}" for name in names for train, test in ways)
        + " |"
    )
    print("|---" * (len(ways) * len(names) + 1) + "|")
    for learner in LEARNERS:
        cells = []
        for name in names:
            for train, test in ways:
                own = of_queries(name, learner, train, test)
                p = compare(own, of_queries(name, learner, "whole", test)).p_randomization if train == "left" else None
                cells.append(f"{mean(own):.4f}" + ("" if p is None else f" ({p:.2f})"))
        print(f"| {learner} | {' | '.join(cells)} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--sets", nargs="+", default=["MQ2008", "OHSUMED"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if not given.table:
        run(given.results, given.sets, given.rounds)
    table(given.results)
