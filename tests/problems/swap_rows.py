"""Rows as an experiment writes them, made up: every kind and every outcome, without running a solver."""

import numpy as np

from rankopt.experiments.rows import BenchmarkRow, Outcome

VERSIONS = {"python": "3.12.3", "rankopt": "0.1.0", "numpy": "2.3.0", "platform": "linux-x86_64"}


def sample_rows(seed=0):
    """Four argmax solvers (one faulty), three masters, five training runs and a small integrality study."""
    rng = np.random.default_rng(seed)
    return [*argmax_rows(rng), *master_rows(rng), *training_rows(rng), *integrality_rows()]


def argmax_rows(rng):
    faults = [Outcome.WRONG, Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY, Outcome.INEXACT]
    for index in range(12):
        n, optimum = int(rng.integers(5, 120)), float(rng.normal())
        common = {
            "kind": "argmax", "problem": f"step {40 * (index % 3)} query q{index}", "trace": "argmax:1f0c9a27",
            "shape_text": f"10 positions × {n} documents", "sizes": {"positions": 10, "documents": n},
            "step": 40 * (index % 3), "scale": 4.0, "tolerance": 1e-6, "versions": VERSIONS, "seed": 0,
        }  # fmt: skip
        for solver, speed in (("exact", 2e-5), ("scipy", 2e-4), ("cvxpy:CLARABEL", 0.03)):
            if solver == "cvxpy:CLARABEL" and index > 7:
                message = "not tried: its 5 s for the trace were used up after 8 of 12 problems"
                yield BenchmarkRow(solver=solver, status=Outcome.GIVEN_UP, message=message, **common)
                continue
            seconds = float(speed * n * rng.uniform(0.8, 1.2) / 40)
            yield BenchmarkRow(
                solver=solver, status=Outcome.SOLVED, value=optimum, bound=optimum, certified=True, integral=True,
                ties=int(rng.integers(0, 4)), seconds=seconds, seconds_total=2 * seconds, repeats=3,
                iterations=9 if solver == "cvxpy:CLARABEL" else None, memory=150_000_000, version="1.2.3", **common,
            )  # fmt: skip
        status = faults[index % len(faults)]
        off = {"value": optimum - 0.1, "bound": optimum} if status is Outcome.INEXACT else {}
        yield BenchmarkRow(solver="own:faulty", status=status, message="planted", **off, **common)
        yield BenchmarkRow(
            solver="cvxpy:MOSEK", status=Outcome.MISSING, message="cvxpy has no installed solver", **common
        )


def master_rows(rng):
    for index, planes in enumerate((1, 8, 40, 120)):
        optimum = 0.6 - 0.01 * index
        for solver, seconds in (("active_set", 1e-4), ("qpsolvers:piqp", 1e-3), ("cvxpy:CLARABEL", 1e-2)):
            gap = float(rng.uniform(0, 1e-10))
            yield BenchmarkRow(
                kind="master", solver=solver, status=Outcome.SOLVED, problem=f"step {planes - 1}",
                trace="master:77aa01c3", shape_text=f"{planes} planes × 46 features in 1 group(s)", step=planes - 1,
                sizes={"planes": planes, "features": 46, "groups": 1}, value=optimum - gap, bound=optimum + gap,
                scale=1.0, tolerance=1e-6, certified=True, seconds=seconds * (1 + planes / 10), repeats=3,
                seconds_total=2 * seconds, iterations=planes, memory=120_000_000, versions=VERSIONS, seed=0,
            )  # fmt: skip


def training_rows(rng):
    swapped = [("argmax", "exact"), ("argmax", "scipy"), ("argmax", "highs"), ("master", "qpsolvers:piqp"),
               ("method", "cutting_planes")]  # fmt: skip
    for role, solver in swapped:
        steps = np.arange(1, 31)
        late = solver == "highs"
        primal = 0.55 + 0.3 * np.exp(-steps / 5.0)
        bound = 0.5495 - 0.5 * np.exp(-steps / (12.0 if late else 4.0))
        seconds = np.cumsum(rng.uniform(0.5, 1.5, 30)) * (0.1 if late else 0.004)
        yield BenchmarkRow(
            kind="training", solver=solver, role=role, status=Outcome.TIMED_OUT if late else Outcome.SOLVED,
            problem="nDCG@10, convex, λ = 1", trace="training:0d5b22aa", shape_text="55 queries, 1,204 documents",
            sizes={"queries": 55, "documents": 1204, "features": 46}, is_maximization=False, value=float(primal[-1]),
            bound=float(bound[-1]), scale=float(primal[-1]), tolerance=1e-2, certified=None if late else True,
            iterations=30, seconds=float(seconds[-1]), repeats=1, memory=200_000_000, versions=VERSIONS, seed=0,
            history={"step": steps.tolist(), "round": [0] * 30, "seconds": seconds.tolist(),
                     "primal": primal.tolist(), "bound": bound.tolist()},
            measures={} if late else {"nDCG@1": 0.41, "nDCG@5": 0.45, "nDCG@10": 0.48},
        )  # fmt: skip


def integrality_rows():
    found = {
        "blocks": (Outcome.PROVED, {"proof": "bipartite", "fractional": 0.0, "overestimate_max": 0.0}),
        "overlapping groups": (Outcome.REFUTED, {"witness": "5 rows", "fractional": 0.2, "overestimate_max": 0.45}),
        "exposure": (Outcome.UNDECIDED, {"fractional": 0.9, "overestimate_max": 0.1}),
    }
    for statement, (status, facts) in found.items():
        for n in (4, 6, 8):
            mean = facts["overestimate_max"] / 4
            yield BenchmarkRow(
                kind="integrality", solver="verify_integrality", status=status, problem=f"{statement} n={n} k=3",
                trace="integrality:5c3f00d1", sizes={"n": n, "k": 3, "blocks": 2}, seconds=0.01 * n, repeats=1, seed=0,
                certified=status is not Outcome.UNDECIDED, versions=VERSIONS,
                facts={"statement": statement, "objectives": 20, "overestimate_mean": mean, **facts},
            )  # fmt: skip
