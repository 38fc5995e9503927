"""The measure along lines against all crossings, by the thousand: every interval, of every measure.

Each try draws up to four small queries and lines of one kind: random, with tied slopes, tied scores, all zero, of whole
numbers, all through one point, on scales from 1e-9 to 1e9 (one for all, and one each), flat. The sweep that suits the
measure, and the one in NumPy, are compared with the measure itself at the middle of every interval, theirs and those
between all crossings, where the order is that of exact numbers if floats are too close to tell. It is survived if all
values are equal.

    python benchmarks/faults/line_search.py --tries 100000 --seed 0
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from rankopt.measures import parse
from rankopt.sweeps.reference import LINES, check_lines, drawn_lines

NAMES = (
    "nDCG@3", "nDCG", "nDCG(discount='letor')@5", "DCG@2", "P@2", "WTA", "RR", "RR@2", "AUC", "AP", "AP@3", "ERR",
    "ERR@2", "ERU(alpha=3, d=1)", "NERU(alpha=3, d=1)@4", "Custom(discount=(3, 3, 1), gain=(0, 1, 5, 9))", "MeanNDCG",
)  # fmt: skip
MEASURES = [parse(name) for name in NAMES]


def survives(seed: int) -> int:
    """How many values were compared; raises AssertionError where one differs."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, rng.integers(1, 5))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    relevance = rng.integers(0, 4, offsets[-1]).astype(np.float64)
    lines = drawn_lines(rng, LINES[seed % len(LINES)], offsets[-1])
    return check_lines(MEASURES[seed % len(MEASURES)], relevance, offsets, *lines, rng.random(sizes.size))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    survived, compared = 0, 0
    for seed in range(given.seed, given.seed + given.tries):
        try:
            compared += survives(seed)
            survived += 1
        except AssertionError as error:
            print(f"seed {seed}: {error}", flush=True)
    print(f"tries {given.tries}, survived {survived}, values compared {compared}")
    return int(survived < given.tries)


if __name__ == "__main__":
    sys.exit(main())
