"""The argmax beside SciPy where little can be sorted away: drawn queries, many gains, decays of plateaus.

    python benchmarks/argmax_drawn.py [documents ...]

Scores are normal, a hundredth of the gains in size; gains are drawn from 5 or 40 values that are equally frequent, or
all different. The discounts of nDCG, nDCG@10, P@5 and ERU by the decays linear, power(0.5), power(1), log, power(0.5)
cut at 10, and two of eight and of three plateaus: 28 cells a table entry, each a batch of 400 documents or more (one
query of 1,000), geometric mean and least of SciPy's seconds for the full matrices, positions × documents, by ours.
Processor time, one thread, the least of several calls (SciPy's of two, of one at 1,000); values agree to 1e-9 of the
largest profit. The cells where SciPy is quicker go to the error stream.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from itertools import product
from time import thread_time

import numpy as np
from argmax import mean, scipys
from argmax_problems import MEASURES, largest, notation

from formulations import ranking, solve_batch
from formulations.parallel import at_most
from formulations.problems.ranking import RankTwoBatch
from rankopt.losses.position_weights import parse_position_weights
from rankopt.measures.notation import parse

DOCUMENTS = (20, 50, 100, 300, 1000)
GAINS = {"5": 5, "40": 40, "all": 0}
DECAYS = ("linear", "power(0.5)", "power(1)", "log", "eight plateaus", "three plateaus", "power(0.5)@10")


def weights(position_weights: str, measure: str) -> Callable[[int], np.ndarray]:
    if not position_weights.endswith("plateaus"):
        return lambda n: parse_position_weights(position_weights).weights(n, parse(measure))
    levels = 8 if position_weights.startswith("eight") else 3
    return lambda n: (1.0 + np.arange(n) * levels // n) ** -0.5


def drawn(random: np.random.Generator, n: int, gains: int, measure: str, position_weights: str) -> RankTwoBatch:
    total = n * max(1, -(-400 // n))
    gain = random.integers(gains, size=total) / gains if gains else random.random(total)
    return ranking(
        0.01 * random.normal(size=total), gain, offsets=np.arange(0, total + 1, n),
        discount=parse(measure).discount, position_weights=weights(position_weights, measure),
    )  # fmt: skip


def quotient(batch: RankTwoBatch) -> float:
    with at_most(1):
        times: list[float] = []
        while len(times) < 4 or (sum(times) < 0.02 and len(times) < 30):
            began = thread_time()
            answer = solve_batch(batch)
            times.append(thread_time() - began)
    values, seconds, _ = scipys(batch, 1 if np.diff(batch.offsets).max() > 400 else 2)
    assert np.all(np.abs(answer.value - values) <= 1e-9 * largest(batch))
    return seconds / min(times)


def main() -> None:
    warnings.simplefilter("ignore")
    sizes = [int(size) for size in sys.argv[1:]] or DOCUMENTS
    print("| documents | " + " | ".join(f"{gains} gains | least" for gains in GAINS) + " |")
    print("|" + "---|" * (1 + 2 * len(GAINS)))
    random = np.random.default_rng(3)
    for n in sizes:
        row, worst = [], []
        for gains in GAINS.values():
            cells = {}
            for measure, decay in product(MEASURES, DECAYS):
                cells[measure, decay] = quotient(drawn(random, n, gains, notation(measure, ""), decay))
            row.append(f"{mean(list(cells.values())):.1f} | {float(f'{min(cells.values()):.2g}'):g}")
            worst += [f"{' by '.join(cell)} {ratio:.2g}" for cell, ratio in cells.items() if ratio < 1]
        print(f"| {n} | {' | '.join(row)} |", flush=True)
        print("\n".join(worst), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
