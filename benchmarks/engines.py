"""Who computes the shards: seconds a step, and to start, for one and two workers of each engine, on generated data.

    python benchmarks/engines.py [shards]

Queries of 100 documents with 40 float32 features in a file that is mapped into memory, nDCG@10, nonconvex bound, one
step being values and merged planes of all queries at one w. The engines take turns; a cell is the least of the rounds,
and the quotient is to the serial engine of the same run. Every answer is compared bit for bit.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

from rankopt.data import Queries
from rankopt.engines import ENGINES, get_engine
from rankopt.rankers import LargeMarginRanker
from rankopt.risk.risk import SHARD_ROWS, Risk

ROUNDS = 7
FEATURES = 40


def queries(shards: int, folder: Path) -> Queries:
    """Queries enough for so many shards, their grades a noisy linear score cut at its quantiles."""
    rng = np.random.default_rng(0)
    documents = shards * -(-SHARD_ROWS // 100) * 100
    table = np.memmap(folder / "features", np.float32, "w+", 0, (documents, FEATURES))
    table[:] = rng.standard_normal(table.shape, np.float32)
    table.flush()
    score = table @ np.linspace(1, -1, FEATURES, dtype=np.float32) + 3 * rng.standard_normal(documents)
    grades = np.digitize(score, np.quantile(score, [0.7, 0.9, 0.97])).astype(float)
    features = np.memmap(folder / "features", np.float32, "r", 0, (documents, FEATURES))
    return Queries.from_arrays(features, grades, group=[100] * (documents // 100))


def main() -> None:
    shards = int(sys.argv[1]) if sys.argv[1:] else 4
    with tempfile.TemporaryDirectory() as folder:
        data = queries(shards, Path(folder))
        risk = LargeMarginRanker(w0="regression", lam=0.1).objective(data).risk
        w = np.random.default_rng(1).normal(size=FEATURES)
        points = [w * (1 + 0.01 * step) for step in range(ROUNDS + 1)]
        engines = {(name, n): get_engine(name, n) for name in ENGINES for n in ((1,) if name == "serial" else (1, 2))}
        answers, starts, steps = {}, {}, {}
        for key, engine in engines.items():
            began = perf_counter()
            Risk(risk.shards, engine).at(points[0])
            starts[key] = perf_counter() - began
        for point in points[1:]:
            for key, engine in engines.items():
                began = perf_counter()
                planes = Risk(risk.shards, engine).at(point)
                steps.setdefault(key, []).append(perf_counter() - began)
                answers.setdefault(key, []).append(planes.slopes.tobytes() + planes.losses.tobytes())
        for engine in engines.values():
            if hasattr(engine, "close"):
                engine.close()
    alone = ("serial", 1)
    assert all(answer == answers[alone] for answer in answers.values())
    print(f"{data.n_documents} documents in {len(risk.shards)} shards")
    print("| engine | workers | first step (s) | step (s) | × serial |\n|---|--:|--:|--:|--:|")
    for name, n in sorted(engines, key=lambda key: (key != alone, key)):
        least = min(steps[name, n])
        print(f"| {name} | {n} | {starts[name, n]:.2f} | {least:.3f} | {min(steps[alone]) / least:.2f} |")


if __name__ == "__main__":
    main()
