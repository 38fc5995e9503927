"""What a line search costs: microseconds a document and direction, by measure, beside `np.argsort` of the same columns.

    python benchmarks/line_search.py [--data RANKOPT_DATA] [--rounds 5]

Data: generated ones of MSLR's shape (100 queries of 20 to 220 documents, grades 0 to 4 in MSLR's shares, half of the
columns of whole numbers, some mostly zero), and MQ2008 and OHSUMED where they are at hand. Scores are those of a ridge.
Sweeps and sorts (of each query's part of the column) take turns; the least processor time of the rounds counts. A sweep
is all of it: events, and the best interval; one thread.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from time import process_time

import numpy as np

from formulations.parallel import at_most
from rankopt.data import Queries, read_svmlight
from rankopt.measures import parse
from rankopt.rankers import RegressionRanker
from rankopt.sweeps.step_function import best_interval, window_point
from rankopt.sweeps.sweep import LineSweep

MEASURES = ("nDCG@5", "nDCG@10", "P@10", "RR", "AP", "ERR", "AP@10", "ERR@10", "AUC", "nDCG")
COLUMNS = 12


def generated(seed: int = 0) -> Queries:
    """Queries of MSLR's shape."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(20, 221, 100)
    count = int(sizes.sum())
    X = rng.normal(size=(count, 40))
    X[:, :20] = np.round(np.exp(X[:, :20]) * 3)  # counts
    X[:, 10:20] *= rng.random((count, 10)) < 0.2  # mostly zero
    truth = X @ (rng.normal(size=40) / X.std(axis=0)) + 4 * rng.normal(size=count)
    grades = np.searchsorted(np.quantile(truth, [0.52, 0.84, 0.975, 0.993]), truth).astype(float)
    return Queries.from_arrays(X.astype(np.float32), grades, qid=np.repeat(np.arange(sizes.size), sizes))


def sets(folder: Path | None) -> dict[str, Queries]:
    found = {"MSLR's shape": generated()}
    for name, path in (("MQ2008", "letor4-mq2008/S1.txt.gz"), ("OHSUMED", "letor2-ohsumed/S1.txt.gz")):
        if folder is not None and (folder / path).is_file():
            found[name] = read_svmlight(folder / path)
    return found


def least(rounds: int, *tasks: Callable[[], object]) -> list[float]:
    """Processor seconds of each task, the least of some rounds in which they take turns."""
    seconds = [np.inf] * len(tasks)
    for _ in range(rounds):
        for number, task in enumerate(tasks):
            began = process_time()
            task()
            seconds[number] = min(seconds[number], process_time() - began)
    return seconds


def rows(name: str, queries: Queries, rounds: int) -> None:
    rng = np.random.default_rng(1)
    table = queries.features.toarray() if hasattr(queries.features, "toarray") else np.asarray(queries.features)
    columns = np.sort(rng.choice(table.shape[1], min(COLUMNS, table.shape[1]), replace=False))
    scores = np.asarray(RegressionRanker(1.0).fit(queries).predict(queries.features), dtype=float)
    slopes = np.ascontiguousarray(table[:, columns].T, dtype=np.float64)
    bounds, amount = list(pairwise(queries.offsets.tolist())), slopes.size

    def sort() -> None:
        for line in slopes:
            for low, high in bounds:
                np.argsort(line[low:high])

    for text in MEASURES:
        measure = parse(text)
        weights = np.where(measure.defined(queries.relevance, queries.offsets), 1.0, 0.0)
        sweep = LineSweep(measure, queries.relevance, queries.offsets, weights / weights.sum())
        events = sweep.events(scores, slopes)
        count = sum(line.times.size for line in events)
        tasks = (
            sort,
            lambda sweep=sweep: sweep.events(scores, slopes),
            lambda events=events: [best_interval(line) for line in events],
            lambda events=events: [window_point(line, 0.1) for line in events],
        )
        sorting, sweeping, best, window = (1e6 * second / amount for second in least(rounds, *tasks))
        print(
            f"| {name} | {measure} | {sorting:.3f} | {sweeping:.3f} | {sweeping / sorting:.2f} | {best:.3f} "
            f"| {window:.3f} | {count / amount:.2f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("RANKOPT_DATA"))
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print(
        "| data | measure | argsort, µs | sweep, µs | by argsort | best interval, µs | window, µs | events a document |"
    )
    print("|---|---|---|---|---|---|---|---|")
    with at_most(1):
        for name, queries in sets(Path(given.data) if given.data else None).items():
            rows(name, queries, given.rounds)


if __name__ == "__main__":
    main()
