"""The loss-augmented argmax beside `scipy.optimize.linear_sum_assignment`, on problems of real training runs.

    RANKOPT_DATA=folder python benchmarks/argmax.py [data set ...]

For each data set, measure and decay a short run of the ranker with its defaults gives the points: w = 0, the start
(least squares), one in the middle, the last. At each point the queries with something to order are solved as one batch,
on one thread, orders, values and bounds included (what does not depend on w, such as the order of the gains, is made
once a fit and left out); scipy is given the n × n profit matrix of each query, the writing of the matrix left out.
Times are processor time of the thread, the least of several calls. A cell is the geometric mean of the quotients at the
start, in the middle and at the end; w = 0, where all documents tie, has a column of its own; least is the least
quotient of all points. "transposed": the mean of the row if scipy is given documents by positions, where it is faster.
Scipy takes at most 40 queries (150 if they are short), and so do we, and of the queries of more than 400 documents one
a cell, in turn, at the start. Every value is compared, to 1e-9 of the largest profit.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import thread_time

import numpy as np
from argmax_problems import DECAYS, MEASURES, SETS, largest, lengths, notation, posed, profits, trials
from scipy.optimize import linear_sum_assignment

from formulations import solve_batch
from formulations.parallel import at_most
from formulations.problems.ranking import RankTwoBatch
from rankopt.data import Queries


def sampled(queries: Queries, turn: int | None) -> Queries:
    """At most 40 queries of up to 400 documents (150 short ones), and of the longer that whose turn it is."""
    n = lengths(queries)
    kept, long = np.flatnonzero(n <= 400), np.flatnonzero(n > 400)
    few = 40 if n.mean() > 50 else 150
    if kept.size > few:
        kept = np.random.default_rng(0).choice(kept, few, replace=False)
    if long.size and turn is not None:
        kept = np.append(kept, long[turn % long.size])
    return queries.select(np.sort(kept))


def batches(queries: Queries, measure: str, position_weights: str) -> Iterator[RankTwoBatch]:
    """The problems at each point of a run."""
    for point, w in enumerate(trials(queries, measure, position_weights)):
        yield posed(
            sampled(queries, DECAYS.index(position_weights) if point == 1 else None), measure, position_weights, w
        )


def scipys(batch: RankTwoBatch, repeats: int) -> tuple[np.ndarray, float, float]:
    """The values of all queries, and the seconds of the solver alone for the matrix and for its transpose."""
    values, seconds = np.empty(len(batch)), [0.0, 0.0]
    for query in range(len(batch)):
        profit = profits(batch, query)
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
    assert np.all(np.abs(answer.value - values) <= 1e-9 * largest(batch))
    return seconds / min(times), transposed / min(times), Counter(answer.algorithm.tolist())


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
            cells, turned, ways = [], [], Counter[str]()
            for decay in DECAYS:
                quotients = []
                for batch in batches(queries, notation(measure, name), decay):
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
            row = (*title, *means, f"{zero:.0f}", f"{float(f'{np.min(cells):.2g}'):g}", f"{back:.0f}", shares)
            print(f"| {' | '.join(row)} |", flush=True)
        print(f"| {name} | all, mean | {mean(logs):.0f} |" + " |" * (len(DECAYS) + 3), flush=True)


if __name__ == "__main__":
    main()
