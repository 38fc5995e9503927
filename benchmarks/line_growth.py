"""How a line search grows: with the documents of a query, with the queries, with the threads; and a round of paper 3.

    python benchmarks/line_growth.py [--rounds 5]

Data as in `line_search.py`, generated, of MSLR's shape but for what is said. Table 12 of paper 3 counts jumping points
a query by its documents. A round of coordinate ascent over 519 features and 473,134 documents in 19,944 queries
(section 3.3: about 10 minutes) is made of that many queries with 24 features: seconds a feature, times 519.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from time import perf_counter, process_time

import numpy as np
from line_search import generated

from formulations.parallel import at_most
from rankopt.data import Queries
from rankopt.engines import Threads
from rankopt.measures import parse
from rankopt.optimize import LineSearch
from rankopt.sweeps.step_function import best_interval
from rankopt.sweeps.sweep import LineSweep

COUNTS = (50, 100, 200, 500, 1000, 2000, 5000)
UNCUT = 1000
"""Beyond so many documents AP, whose jumping points grow with their square, is left out."""


def drawn(queries: int, documents: int, features: int = 12, seed: int = 0) -> Queries:
    """Queries of about so many documents each; features, and grades in MSLR's shares that lean on them."""
    rng = np.random.default_rng(seed)
    sizes = np.maximum(2, rng.integers(documents // 2, documents + documents // 2 + 1, queries))
    X = rng.normal(size=(int(sizes.sum()), features))
    truth = X @ rng.normal(size=features) + 3 * rng.normal(size=X.shape[0])
    grades = np.searchsorted(np.quantile(truth, [0.52, 0.84, 0.975, 0.993]), truth).astype(float)
    return Queries.from_arrays(X.astype(np.float32), grades, qid=np.repeat(np.arange(queries), sizes))


def least(rounds: int, task: Callable[[], object], clock: Callable[[], float] = process_time) -> float:
    seconds = []
    for _ in range(rounds):
        began = clock()
        task()
        seconds.append(clock() - began)
    return min(seconds)


def swept(queries: Queries, text: str, rounds: int) -> tuple[float, float]:
    """Processor microseconds and jumping points a document and direction."""
    measure = parse(text)
    weights = np.where(measure.defined(queries.relevance, queries.offsets), 1.0, 0.0)
    sweep = LineSweep(measure, queries.relevance, queries.offsets, weights / weights.sum())
    slopes = np.ascontiguousarray(np.asarray(queries.features, dtype=np.float64).T)
    scores = slopes[:4].sum(axis=0)

    def search() -> list[object]:
        return [best_interval(line) for line in sweep.events(scores, slopes)]

    count = sum(line.times.size for line in sweep.events(scores, slopes))
    return 1e6 * least(rounds, search) / slopes.size, count / slopes.size


def by_documents(rounds: int) -> None:
    print(
        "| documents a query | nDCG@5: points a query | µs | nDCG@10: points a query | µs | AP: points a query | µs |"
    )
    print("|---|---|---|---|---|---|---|")
    for documents in COUNTS:
        queries = drawn(max(4, 20_000 // documents), documents)
        cells = []
        for text in ("nDCG@5", "nDCG@10", "AP"):
            if text == "AP" and documents > UNCUT:
                cells.append(" | ")
                continue
            micros, points = swept(queries, text, rounds)
            cells.append(f"{points * queries.n_documents / len(queries):.1f} | {micros:.3f}")
        print(f"| {documents} | {' | '.join(cells)} |", flush=True)


def by_queries(rounds: int) -> None:
    print("\n| queries of 120 documents | nDCG@10: µs a document and direction |\n|---|---|")
    for count in (100, 200, 400, 800, 1600, 3200):
        print(f"| {count} | {swept(drawn(count, 120), 'nDCG@10', rounds)[0]:.3f} |", flush=True)


def by_threads(rounds: int) -> None:
    """Wall seconds of all directions of a `LineSearch`, one thread by two."""
    print("\n| measure | documents | directions | one thread by two |\n|---|---|---|---|")
    for text, queries in (
        ("nDCG@10", generated()),
        ("nDCG@10", drawn(2000, 120)),
        ("RR", drawn(2000, 120)),
        ("AP", drawn(500, 120)),
        ("ERR", drawn(500, 120)),
    ):
        w, directions = np.ones(queries.n_features), list(range(12))
        searches = {threads: LineSearch.from_measure(text, queries, engine=Threads(threads)) for threads in (1, 2)}
        seconds = {1: np.inf, 2: np.inf}
        for threads in (1, 2) * rounds:
            spent = least(1, partial(searches[threads].along_all, w, directions, "middle"), perf_counter)
            seconds[threads] = min(seconds[threads], spent)
        print(f"| {text} | {queries.n_documents} | 12 | {seconds[1] / seconds[2]:.2f} |", flush=True)


def a_round() -> None:
    queries, features = drawn(19_944, 24, 24), 24
    for text in ("nDCG@5", "nDCG@10"):
        w = np.ones(features)
        for threads in (1, 2):
            search = LineSearch.from_measure(text, queries, engine=Threads(threads))
            spent = least(2, partial(search.along_all, w, list(range(features)), "middle"), perf_counter)
            print(
                f"{text}, {queries.n_documents} documents, {features} features, {threads} thread(s): {spent:.1f} s; "
                f"519 features: {spent / features * 519:.0f} s",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with at_most(1):
        by_documents(rounds)
        by_queries(rounds)
    by_threads(rounds)
    print()
    a_round()


if __name__ == "__main__":
    main()
