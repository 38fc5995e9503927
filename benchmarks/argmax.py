"""The loss-augmented argmax beside `scipy.optimize.linear_sum_assignment`, on problems of real training runs.

    RANKOPT_DATA=folder python benchmarks/argmax.py [data set ...]

For each data set, measure and decay a short run of the ranker with its defaults gives the points: w = 0, the start
(least squares), one in the middle, the last. At each point the queries with something to order are solved as one batch,
on one thread, orders, values and bounds included; scipy is given the n × n profit matrix of each query, the writing of
the matrix left out. Times are processor time of the thread, the least of several calls. A cell is the geometric mean of
the quotients at the start, in the middle and at the end; w = 0, where all documents tie, has a column of its own; least
is the least quotient of all points. "transposed": the mean of the row if scipy is given documents by positions, where
it is faster. Scipy takes at most 40 queries (150 if they are short), and so do we, and of the queries of more than 400
documents one a cell, in turn, at the start; of "n = 1000" one at all points. Every value is compared, to 1e-9 of the
largest profit.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from time import thread_time

import numpy as np
from movielens_films import queries as film_queries
from movielens_films import read_ratings
from scipy.optimize import linear_sum_assignment

from formulations import ranking, solve_batch
from formulations.modeling.rank_two import RankTwoBatch
from formulations.threads import at_most
from rankopt.data import Queries, concatenate, read_svmlight
from rankopt.losses.decay import parse_decay
from rankopt.measures.notation import parse
from rankopt.rankers import LargeMarginRanker

MEASURES = ("nDCG", "nDCG@10", "P@5", "ERU")
DECAYS = ("linear", "power(0.25)", "power(0.5)", "power(1)", "log")
STEPS = 24
TERMS = ("decay", "scores", "discount", "gain")


def mq2008(folder: Path) -> Queries:
    return concatenate([read_svmlight(folder / "letor4-mq2008" / f"S{i}.txt.gz") for i in (1, 2, 3)])


def ohsumed(folder: Path) -> Queries:
    return read_svmlight(folder / "letor3-ohsumed" / "QueryLevelNorm" / "Fold1" / "train.txt.gz")


def mslr(folder: Path) -> Queries:
    queries = read_svmlight(folder / "mslr-web30k-sample" / "train.txt.gz")
    spread = queries.features.std(axis=0)
    features = (queries.features - queries.features.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return Queries.from_arrays(features, queries.relevance, qid=np.repeat(np.arange(len(queries)), lengths(queries)))


def films(folder: Path) -> Queries:
    """The larger part of the ratings is asked, features come from the smaller one: long queries."""
    asked, known = (read_ratings(folder / "ml-100k" / f"u1.{part}.gz") for part in ("base", "test"))
    return film_queries(known, asked, folder / "ml-100k")


def drawn(sizes: tuple[int, ...], below: tuple[float, ...] = (0.52, 0.84, 0.97, 0.99)) -> Queries:
    """Grades 0 to 4 from a noisy linear score, by default each as frequent as on MSLR-WEB30K."""
    random, total = np.random.default_rng(7), sum(sizes)
    features = random.normal(size=(total, 20))
    height = features @ random.normal(size=20) / np.sqrt(20) + 0.7 * random.normal(size=total)
    grades = np.searchsorted(np.quantile(height, below), height)
    return Queries.from_arrays(features, grades.astype(float), qid=np.repeat(np.arange(len(sizes)), sizes))


def generated(folder: Path) -> Queries:
    return drawn((100, 100, 200, 200, 400, 700, 1000, 2000))


def thousand(folder: Path) -> Queries:
    """One such query of 1,000 documents is solved, learned with another."""
    return drawn((1000, 1000))


def even(folder: Path) -> Queries:
    """The same with grades that are equally frequent."""
    return drawn((1000, 1000), (0.2, 0.4, 0.6, 0.8))


SETS: dict[str, Callable[[Path], Queries]] = {
    "MQ2008": mq2008, "OHSUMED": ohsumed, "MSLR": mslr, "MovieLens": films, "generated": generated,
    "n = 1000": thousand, "n = 1000, even": even,
}  # fmt: skip


def lengths(queries: Queries) -> np.ndarray:
    return np.diff(queries.offsets)


def sampled(queries: Queries, turn: int | None) -> Queries:
    """At most 40 queries of up to 400 documents (150 short ones), and of the longer that whose turn it is."""
    n = lengths(queries)
    kept, long = np.flatnonzero(n <= 400), np.flatnonzero(n > 400)
    few = 40 if n.mean() > 50 else 150
    if kept.size > few:
        kept = np.random.default_rng(0).choice(kept, few, replace=False)
    if long.size and (turn is not None or not kept.size):
        kept = np.append(kept, long[(turn or 0) % long.size])
    return queries.select(np.sort(kept))


def trials(queries: Queries, measure: str, decay: str) -> list[np.ndarray]:
    """w = 0, the start, the middle and the end of a short run."""
    seen: list[np.ndarray] = []
    LargeMarginRanker(
        measure, decay=decay, max_iter=STEPS, callbacks=[lambda step, state: seen.append(state.trial)]
    ).fit(queries)
    return [np.zeros(queries.n_features), seen[0], seen[len(seen) // 2], seen[-1]]


def batches(queries: Queries, measure: str, decay: str) -> Iterator[RankTwoBatch]:
    """The problems of the queries with something to order at each point of a run."""
    named, weights = parse(measure), parse_decay(decay)
    for point, w in enumerate(trials(queries, measure, decay)):
        part = sampled(queries, DECAYS.index(decay) if point == 1 else None)
        gain = named.gain(part.relevance, part.offsets)
        starts = part.offsets[:-1]
        part = part.select(np.flatnonzero(np.maximum.reduceat(gain, starts) > np.minimum.reduceat(gain, starts)))
        yield ranking(
            part.features @ w, named.gain(part.relevance, part.offsets), offsets=part.offsets,
            discount=named.discount, decay=lambda n: weights.weights(n, named),
        )  # fmt: skip


def scipys(batch: RankTwoBatch, repeats: int) -> tuple[np.ndarray, float, float]:
    """The values of all queries, and the seconds of the solver alone for the matrix and for its transpose."""
    values, seconds = np.empty(len(batch)), [0.0, 0.0]
    for query in range(len(batch)):
        rows = slice(batch.offsets[query], batch.offsets[query + 1])
        profit = np.outer(batch.decay[rows], batch.scores[rows]) - np.outer(batch.discount[rows], batch.gain[rows])
        for way, matrix in enumerate((profit, np.ascontiguousarray(profit.T))):
            times = []
            for _ in range(repeats):
                began = thread_time()
                chosen = linear_sum_assignment(matrix, maximize=True)
                times.append(thread_time() - began)
            seconds[way] += min(times)
            values[query] = matrix[chosen].sum()
    return values, *seconds


def compared(batch: RankTwoBatch) -> tuple[float, float, Counter[str]]:
    """Scipy's seconds by ours, those of the transposed matrix by ours, and how many queries took which way."""
    times: list[float] = []
    while len(times) < 4 or (sum(times) < 0.02 and len(times) < 30):
        began = thread_time()
        answer = solve_batch(batch)
        times.append(thread_time() - began)
    values, seconds, transposed = scipys(batch, 1 if np.diff(batch.offsets).max() > 400 else 2)
    largest = [np.maximum.reduceat(np.abs(getattr(batch, name)), batch.offsets[:-1]) for name in TERMS]
    assert np.all(np.abs(answer.value - values) <= 1e-9 * (largest[0] * largest[1] + largest[2] * largest[3]))
    return seconds / min(times), transposed / min(times), Counter(answer.way.tolist())


def mean(quotients: list[float] | list[list[float]]) -> float:
    """The geometric one."""
    return float(np.exp(np.mean(np.log(quotients))))


def main() -> None:
    warnings.simplefilter("ignore")
    folder = Path(os.environ["RANKOPT_DATA"])
    print("| data, documents | measure | " + " | ".join(DECAYS) + " | w = 0 | least | transposed | ways, % |")
    print("|" + "---|" * (len(DECAYS) + 6))
    for name in sys.argv[1:] or SETS:
        queries, logs = SETS[name](folder), []
        for measure in MEASURES:
            notation = "ERU(d=2)" if (measure, name) == ("ERU", "MovieLens") else measure.replace("ERU", "ERU(d=0)")
            cells, turned, ways = [], [], Counter[str]()
            for decay in DECAYS:
                quotients = []
                for batch in batches(queries, notation, decay):
                    with at_most(1):
                        quotient, transposed, taken = compared(batch)
                    quotients.append(quotient)
                    turned.append(transposed)
                    ways += taken
                cells.append(quotients)
            logs += [cell[1:] for cell in cells]
            shares = ", ".join(f"{way} {100 * n / ways.total():.0f}" for way, n in ways.most_common())
            means = (f"{mean(cell[1:]):.0f}" for cell in cells)
            zero, back = mean([cell[0] for cell in cells]), mean([q for i, q in enumerate(turned) if i % 4])
            title = (f"{name}, {lengths(queries).mean():.0f}", measure)
            row = (*title, *means, f"{zero:.0f}", f"{np.min(cells):.2g}", f"{back:.0f}", shares)
            print(f"| {' | '.join(row)} |", flush=True)
        print(f"| {name} | all, mean | {mean(logs):.0f} |" + " |" * (len(DECAYS) + 3), flush=True)


if __name__ == "__main__":
    main()
