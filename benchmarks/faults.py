"""What may be done to the packages from outside, tried by the thousand; comparison with enumeration.

The attacks live in tests/planted, some tries of each run with the tests. A case ends with `tries N, survived N` and
fails if these differ.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from importlib import import_module
from itertools import permutations

import numpy as np

from benchmarks.cases import ROOT, Run, case, table
from formulations import first_relevant_ranking, pairwise_ranking, relevance_ranking, solve_batch
from formulations.problems.relevance_losses import Discounted, TableLoss
from formulations.solvers.exact import ExactArgmax
from rankopt.measures import parse
from rankopt.sweeps.reference import LINES, check_lines, drawn_lines

sys.path.insert(0, str(ROOT / "tests"))

from planted.attack import memory_limit, survive


def attack(run: Run, name: str, full: int, quick: int) -> bool:
    return import_module(f"planted.{name}").attack(run.count(full, quick), run.seed)


@case()
def statements(run: Run) -> bool:
    """Statement files (TOML) with other values, keys, lines, bytes: an error of formulations, or a set that works."""
    return attack(run, "statements", 2000, 40)


@case()
def models(run: Run) -> bool:
    """Saved models with flipped bytes, or with other values and arrays under right digests.

    Survives: loading ends within 10 seconds and 2 GiB by a `ModelError` or with a model; with false digests it is the
    one that was saved; one loaded from other values saves to the same bytes again, and scores, ranks and explains, or
    says by an error of ours what it cannot do."""
    return attack(run, "models", 2000, 40)


@case()
def arrays(run: Run) -> bool:
    """Arrays of other types, shapes, layouts, values, lying sparse matrices: our errors or finite answers in 20 s.

    The same numbers in another layout give the same coefficients to the last bit; a fit that fails leaves the ranker
    unfitted; no array of the caller is written to."""
    return attack(run, "arrays", 5000, 40)


@case()
def files(run: Run) -> bool:
    """Mutated LETOR files, runs, qrels, ratings, tables and TOML through every reader, plain, gzip and damaged.

    Survives: every way through a reader gives the same bits or the same error, an error of ours that names the file and
    the line; no call takes more than 5 processor seconds or 512 MB."""
    return attack(run, "files", 5000, 39)


@case()
def recovery(run: Run) -> bool:
    """Training killed up to three times at random moments, then left to end: the same bits as undisturbed."""
    return attack(run, "recovery", 200, 2)


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


@case()
def line_search(run: Run) -> bool:
    """The measure along lines: every interval of every measure against the measure itself, at all crossings.

    Up to four small queries and lines of one kind: random, tied slopes or scores, zero, whole numbers, all through one
    point, scales of 1e±9, flat."""
    compared = [0]

    def attempt(number: int) -> None:
        compared[0] += survives(run.seed + number)

    return survive(run.count(1000, 40), attempt, lambda: print(f"values compared {compared[0]}"))


def letor(n):
    return 1 / np.log2(np.maximum(np.arange(1, n + 1), 2))


def power(n):
    return np.arange(1.0, n + 1.0) ** -0.5 - 0.4


LOSSES = {
    **{name: name for name in ("AUC", "AP", "AP@3", "RR", "RR@3", "nDCG", "nDCG@3", "P@3", "DCG@2", "ERR", "ERR@3")},
    "nDCG, LETOR": Discounted(letor, lambda grade: np.exp2(grade) - 1, normalized=True),
    "cells": TableLoss(lambda good, bads, relevant, others: np.exp(-good - 0.3 * bads)),
}
MAPS = {
    "pairwise": pairwise_ranking,
    "first-relevant": first_relevant_ranking,
    "positional": lambda *given, **offsets: relevance_ranking(*given, position_weights=power, **offsets),
}


def drawn_queries(random, count):
    """Queries of one length, so that brute force is one product."""
    n = int(random.choice([1, 2, 3, 4, 5, 6, 7], p=[0.02, 0.08, 0.15, 0.2, 0.25, 0.2, 0.1]))
    shape, grades = (count, n), int(random.choice([1, 2, 2, 2, 3, 4]))
    if random.random() < 0.5:
        scores = random.integers(-2, 3, shape) * random.choice([0.0, 1.0, 0.5, 0.1, 0.01])
    else:
        scores = random.normal(size=shape) * random.choice([1.0, 0.1, 10.0])
    return n, scores.astype(float).ravel(), random.integers(0, grades, shape).astype(float).ravel()


def best_of_all(batch, n):
    """(m,) the greatest value of any order."""
    best = np.full(len(batch), -np.inf)
    for order in permutations(range(n)):
        best = np.maximum(best, batch.judged(np.tile(np.array(order), len(batch))).value)
    return best


@case()
def relevance(run: Run) -> bool:
    """Relevance rankings, every loss under every map, against all orders; ties, zeros, one class, one document.

    Wrong: a value off by more than rounding or above its bound, a bound below the best order. `--sets` names losses."""
    row, total, problems = table("loss", "map", "problems", "wrong", "algorithms"), 0, run.count(20_000, 40)
    for name in run.chosen([name for name in LOSSES if run.sets or name != "cells"]):
        for map_, stated in MAPS.items():
            random, done, wrong, ways = np.random.default_rng([run.seed, len(name), len(map_)]), 0, 0, set()
            while done < problems:
                count = min(500, problems - done)
                n, scores, grades = drawn_queries(random, count)
                batch = stated(scores, grades, LOSSES[name], offsets=np.arange(count + 1) * n)
                best, slack = best_of_all(batch, n), 4.0 * batch.left
                for compiled in (True, False):
                    answer = solve_batch(batch, ExactArgmax(compiled=compiled))
                    off = (np.abs(answer.value - best) > slack) | (answer.value > answer.bound)
                    wrong += int((off | (answer.bound < best - 1e-15 * batch.reach)).sum())
                    ways |= set(answer.algorithm) if compiled else set()
                done += count
            total += wrong
            row(name, map_, done, wrong, ", ".join(sorted(ways)))
    print(f"\nwrong in all: {total}")
    return total > 0


@case()
def forgeries(run: Run) -> bool:
    """Forged proofs, witnesses, solutions, proofs by cases, and solvers that lie: none is believed (`--tries` of each).

    The judge goes through all subdeterminants, all orders, or rational numbers (tests/planted/forgeries.py)."""
    from planted.forgeries import ATTACKS, attack

    tries, survived = run.count(500, 10), 0
    row = table("kind", "tries", "survived", "refused")
    for kind in ATTACKS:
        lost, refused = attack(kind, tries, run.seed)
        print("".join(f"  {line[:2000]}\n" for line in lost[:20]), end="")
        survived += tries - len(lost)
        row(kind, tries, tries - len(lost), refused)
    print(f"tries {tries * len(ATTACKS)}, survived {survived}")
    return survived != tries * len(ATTACKS)


@case()
def certificates(run: Run) -> bool:
    """Certificates of every method × master × bound × set × start against an optimum found by writing out all rankings.

    bound <= optimum <= primal must hold, and the reason of the stop (tests/problems/enumerated.py). Not survived:
    what is wrong, a fit lost to an error, and a stall at an open gap where the master is ours."""
    from problems.enumerated import Tiny, case_of, check

    counts: dict[tuple[str, str], Counter] = {}

    def attempt(number: int) -> str | None:
        own = case_of(number)
        wrong, reason, _ = check(Tiny.drawn(number, run.seed))
        stalled, ours = reason.startswith("stalled"), own[1] == "auto" or own[0] == "block_frank_wolfe"
        for key in (("method", own[0]), ("master", own[1])):
            found = {"tries": 1, "wrong": bool(wrong), "lost": reason.startswith("lost"), "stalled": stalled}
            counts.setdefault(key, Counter()).update(found)
        fault = wrong or reason.startswith("lost") or (stalled and ours)
        return f"{own}: {wrong or reason}"[:300] if fault else None

    def report() -> None:
        row = table("", "", "tries", "wrong", "lost", "stalled")
        for (kind, name), found in sorted(counts.items()):
            row(kind, name, *found.values())

    return survive(run.count(1000, 20), attempt, report)


@case()
def stores(run: Run) -> bool:
    """Stored folders damaged in thirteen ways: refused by name, or opened with the same bits, within 1 GiB.

    A third each: checksums as written, treated as too large to be read on opening, checksums made anew
    (tests/planted/damaged_stores.py)."""
    from planted.damaged_stores import DAMAGE
    from planted.damaged_stores import run as damage

    tries = run.count(2000, 26)
    with tempfile.TemporaryDirectory() as folder:
        damage(f"{folder}/warm", 12 * len(DAMAGE), run.seed + 1)  # kernels are loaded, threads have started
    with tempfile.TemporaryDirectory() as folder, memory_limit(1 << 30):
        counts, faults = damage(folder, tries, run.seed)
    print("".join(f"{fault[:500]}\n" for fault in faults) + f"refused {counts['refused']}, opened {counts['opened']}")
    print(f"tries {tries}, survived {tries - len(faults)}")
    return bool(faults)
