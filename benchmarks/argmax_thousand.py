"""The loss-augmented argmax of 1,000 documents beside SciPy's, cell by cell, at w = 0 and along a run.

    python benchmarks/argmax_thousand.py [grades]

Three generated queries of 1,000 documents with five grades, as frequent as on MSLR-WEB30K ("skewed") or equally
frequent ("even"). A cell: the seconds of `scipy.optimize.linear_sum_assignment` on the full matrices, positions ×
documents, by ours, and our microseconds a query. Processor time, one thread, one call and the least of many; all
values agree to 1e-9 of the largest profit. SciPy's solver is given the profits ready made; we solve a batch that holds
each query eight times, since a call costs some 20 microseconds, which in training thousands of queries share.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from time import thread_time

import numpy as np
from argmax import mean, scipys
from argmax_problems import DECAYS, MEASURES, POINTS, even, largest, notation, part, posed, thousand, trials

from formulations import solve_batch
from formulations.parallel import at_most
from formulations.problems.ranking import RankTwoBatch

GRADES = {"skewed": thousand, "even": even}
AIM = 1000
COPIES = 8


def compared(batch: RankTwoBatch) -> tuple[float, float, float]:
    """SciPy's seconds by ours, those of the transposed matrices by ours, and our microseconds a query."""
    copies = part(batch, np.tile(np.arange(len(batch)), COPIES))
    with at_most(1):
        times: list[float] = []
        while len(times) < 10 or (sum(times) < 0.01 and len(times) < 50):
            began = thread_time()
            answer = solve_batch(copies)
            times.append((thread_time() - began) / COPIES)
    values, seconds, transposed = scipys(batch, 1)
    assert np.all(np.abs(answer.value[: len(batch)] - values) <= 1e-9 * largest(batch))
    return seconds / min(times), transposed / min(times), 1e6 * min(times) / len(batch)


def main() -> None:
    warnings.simplefilter("ignore")
    print("| grades | measure | decay | " + " | ".join(f"{point} | µs" for point in POINTS) + " |")
    print("|" + "---|" * (3 + 2 * len(POINTS)))
    smooth: dict[str, list[tuple[float, float]]] = {point: [] for point in POINTS}
    for grades in sys.argv[1:] or GRADES:
        queries = GRADES[grades](Path())
        for measure in MEASURES:
            for decay in DECAYS:
                said = notation(measure, grades)
                cells = [compared(posed(queries, said, decay, w)) for w in trials(queries, said, decay)]
                if decay != "linear":
                    for point, (quotient, transposed, _) in zip(POINTS, cells, strict=True):
                        smooth[point].append((quotient, transposed))
                shown = " | ".join(f"{quotient:.0f} | {own:.0f}" for quotient, _, own in cells)
                print(f"| {grades} | {measure} | {decay} | {shown} |", flush=True)
    print(
        "\n| decays other than linear | mean | cells | at least 1,000 | least | transposed, mean |\n" + "|---" * 6 + "|"
    )
    for point, pairs in smooth.items():
        quotients, transposed = map(list, zip(*pairs, strict=True))
        reached = sum(quotient >= AIM for quotient in quotients)
        shown = f"{mean(quotients):.0f} | {len(pairs)} | {reached} | {min(quotients):.0f} | {mean(transposed):.0f}"
        print(f"| {point} | {shown} |")


if __name__ == "__main__":
    main()
