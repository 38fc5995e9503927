"""The argmax of short queries, of small batches, and where a discount is cut, beside SciPy and another checkout.

    python benchmarks/argmax_small.py [folder of another checkout]

Drawn queries: grades equally frequent, normal scores of deviation .01, .1 and 1, gains 2^y - 1, nDCG cut at 5 or 10
by a decay i^-0.5 that goes on. The first table: 200 queries of one length as one batch; `linear_sum_assignment` is
given the full matrices (of 10 queries of 120 documents), which are written beforehand, both ways round. The
second: batches of 12 queries of 20 documents, call by call, other scores each time (`with_scores`, `solve_batch`), by
code that is compiled and warm, by the way that small batches take, which compiles nothing, and by a loop over SciPy
that writes its matrices. Values and bounds of ours are as training takes them. Each checkout runs in processes of its
own, one after the other; processor time, one thread, the least of all. A cell of the first table is the geometric
mean over the deviations of the scores.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np
from scipy.optimize import linear_sum_assignment

from formulations import ranking, solve_batch
from formulations.parallel import at_most
from formulations.problems.ranking import RankTwoBatch
from formulations.solvers.exact import ExactArgmax
from rankopt.losses.position_weights import parse_position_weights
from rankopt.measures.notation import parse

LENGTHS, GRADES, CUTS, SPREADS = (20, 120), (3, 5), (5, 10), (0.01, 0.1, 1.0)
QUERIES, ROUNDS, BATCHES = 200, 1, 40


def drawn(random: np.random.Generator, queries: int, n: int, grades: int, cut: int, spread: float) -> RankTwoBatch:
    measure, decay, offsets = (
        parse(f"nDCG@{cut}"),
        parse_position_weights("power(0.5)"),
        np.arange(0, queries * n + 1, n),
    )
    gain = measure.gain(random.integers(0, grades, queries * n).astype(float), offsets)
    scores = spread * random.normal(size=queries * n)
    return ranking(
        scores, gain, offsets=offsets, discount=measure.discount, position_weights=lambda n: decay.weights(n, measure)
    )


def profits(batch: RankTwoBatch) -> list[np.ndarray]:
    """What documents earn at positions, positions × documents."""
    rows = [slice(*batch.offsets[[q, q + 1]].tolist()) for q in range(len(batch))]
    return [
        np.outer(batch.position_weights[own], batch.scores[own]) - np.outer(batch.discount[own], batch.gain[own])
        for own in rows
    ]


def least(job: Callable[[], object], repeats: int) -> float:
    best = np.inf
    for _ in range(repeats):
        began = process_time()
        job()
        best = min(best, process_time() - began)
    return float(best)


def assigned(matrices: list[np.ndarray]) -> float:
    return sum(float(matrix[linear_sum_assignment(matrix, maximize=True)].sum()) for matrix in matrices)


def once(scipy: bool) -> dict[str, list[float]]:
    """Seconds of ours and, if asked, of SciPy's, of each cell."""
    found, random = {}, np.random.default_rng(0)
    for n in LENGTHS:
        for grades in GRADES:
            for cut in CUTS:
                for spread in SPREADS:
                    batch = drawn(random, QUERIES, n, grades, cut, spread)
                    ours = least(
                        lambda batch=batch: solve_batch(batch, ExactArgmax(compiled=True), directed_rounding=False), 7
                    )
                    found[f"{n} {grades} {cut} {spread}"] = [ours]
                    if not scipy:
                        continue
                    few = profits(batch)[: QUERIES if n <= 60 else 10]
                    turned, share = [np.ascontiguousarray(matrix.T) for matrix in few], QUERIES / len(few)
                    value = solve_batch(batch, ExactArgmax(compiled=True)).value[: len(few)].sum()
                    assert abs(assigned(few) - value) <= 1e-9 * sum(float(np.abs(matrix).max()) for matrix in few)
                    times = [share * least(lambda way=way: assigned(way), 2) for way in (few, turned)]
                    found[f"{n} {grades} {cut} {spread}"] += times
    batches = [drawn(random, 12, 20, 5, 10, 0.1) for _ in range(BATCHES)]
    first = batches[0]
    for name, solver in (("compiled", ExactArgmax(compiled=True)), ("nothing compiled", ExactArgmax(compiled=False))):

        def calls(solver: ExactArgmax = solver) -> None:
            for batch in batches:
                solve_batch(first.with_scores(batch.scores), solver, directed_rounding=False)

        found[name] = [least(calls, 9)]
    found["scipy"] = [least(lambda: [assigned(profits(first.with_scores(batch.scores))) for batch in batches], 9)]
    return found


def measured(trees: list[Path]) -> list[dict[str, np.ndarray]]:
    best: list[dict[str, np.ndarray]] = [{} for _ in trees]
    for _ in range(ROUNDS):
        ask = "--with-scipy"
        for tree, known in zip(trees, best, strict=True):
            environment = {**os.environ, "PYTHONPATH": str(tree)}
            run = [sys.executable, __file__, ask]
            told = subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout
            for name, seconds in json.loads(told).items():
                known[name] = np.minimum(known.get(name, np.inf), seconds)
            ask = "--without"
    return best


def main() -> None:
    if sys.argv[1:2] in (["--with-scipy"], ["--without"]):
        with at_most(1):
            print(json.dumps(once(sys.argv[1] == "--with-scipy")))
        return
    trees = [Path(__file__).resolve().parents[1], *map(Path, sys.argv[1:2])]
    here, *others = measured(trees)
    there = others[0] if others else None
    columns = ["documents", "grades", "cut", "SciPy", "SciPy, transposed"] + ["the other checkout"] * bool(others)
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for n in LENGTHS:
        for grades in GRADES:
            for cut in CUTS:
                cells = [f"{n} {grades} {cut} {spread}" for spread in SPREADS]
                ratios = [[here[cell][way] / here[cell][0] for cell in cells] for way in (1, 2)]
                ratios += [[there[cell][0] / here[cell][0] for cell in cells]] if there else []
                means = [f"{np.exp(np.mean(np.log(ratio))):.3g}" for ratio in ratios]
                print(f"| {n} | {grades} | {cut} | " + " | ".join(means) + " |")
    print("\n| 12 queries of 20 documents | SciPy in a loop |" + " the other checkout |" * bool(others))
    print("|---|---|" + "---|" * bool(others))
    for name in ("compiled", "nothing compiled"):
        told = [here["scipy"][0] / here[name][0]] + ([there[name][0] / here[name][0]] if there else [])
        print(f"| {name} | " + " | ".join(f"{ratio:.2g}" for ratio in told) + " |")


if __name__ == "__main__":
    main()
