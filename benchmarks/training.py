"""What training costs: passes over the queries, a step, the master problem, growth, engines, the first result."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from benchmarks.cases import ROOT, Run, call_python, case, least, rounded, table, test_helpers, timed, wall
from benchmarks.data import letor, mq2008, mslr_like, splits
from formulations import FormulationError, compatible_solvers, solve
from formulations.problems.simplex_qp import GroupedSimplexQP
from formulations.solvers.active_set import ActiveSet
from rankopt.data import Queries, concatenate
from rankopt.engines import ENGINES, Threads, get_engine
from rankopt.optimize.bundle import Bundle
from rankopt.rankers import LargeMarginRanker, PairwiseRanker
from rankopt.risk.risk import SHARD_ROWS, Risk

BOUNDS = ("convex", "pairwise hinge", "tie-aware", "nonconvex")


def ranker_of(bound: str, **options: object) -> LargeMarginRanker | PairwiseRanker:
    if bound == "pairwise hinge":
        return PairwiseRanker(**options)
    return LargeMarginRanker(bound=bound, w0="zeros" if bound == "convex" else "regression", **options)


class CountingEngine:
    """Threads that count the passes over the queries."""

    def __init__(self) -> None:
        self.engine, self.passes = Threads(), 0.0

    def map(self, question: Any, shards: Sequence[Any]) -> list[Any]:
        queries = sum(shard.weights.size for shard in shards)
        first, last = question.queries or (0, queries)
        self.passes += (last - first) / queries
        return self.engine.map(question, shards)


@case()
def passes(run: Run) -> None:
    """Passes over the queries to a gap of 0.1% by method, bound and λ; a path of ten λ next to ten fits; `--sets`.

    A cell with a % did not close the gap within 10 seconds. The plain bundle has one plane a pass."""
    methods = {
        "plain bundle": Bundle(groups=1, damping=1.0, keep_idle=200), "bundle": Bundle(),
        **{name: name for name in ("cutting_planes", "block_frank_wolfe", "stochastic_subgradient",
                                   "steepest_subgradient")},
    }  # fmt: skip
    limit = run.size(10.0, 0.5)
    if run.quick or "RANKOPT_DATA" not in os.environ:
        data = {"Les Miserables": splits("Les Miserables")[0].train}
    else:
        makers = {"MQ2008": mq2008, "OHSUMED": lambda: letor("letor2-ohsumed")}
        data = {name: concatenate(makers[name]()) for name in run.chosen(list(makers))}
    row = table("data", "bound", "λ", *methods)
    for (name, queries), bound, lam in product(data.items(), BOUNDS, run.size((1.0, 1e-2, 1e-4), (1.0,))):
        cells = []
        for method in methods.values():
            engine = CountingEngine()
            own = ranker_of(bound, lam=lam, method=method, engine=engine, time_limit=limit, max_iter=10**6).fit(queries)
            gap = own.certificate_.relative_gap
            cells.append(f"{engine.passes:.0f}" + (f", {rounded(100 * gap)}%" if gap > own.tol else ""))
        row(name, bound, f"{lam:g}", *cells)
    row = table("data", "bound", "steps of the path", "of the most expensive fit", "of ten fits", "path / fit")
    lams = np.logspace(0, -4, run.size(10, 3))
    for (name, queries), bound in product(data.items(), BOUNDS):
        fits = [ranker_of(bound, lam=float(lam)).fit(queries).n_iter_ for lam in lams]
        steps = sum(one.n_iter_ for one in ranker_of(bound).path(queries, lams=lams))
        row(name, bound, steps, max(fits), sum(fits), f"{steps / max(fits):.1f}")


@case()
def step(run: Run) -> None:
    """A step (scores, loss-augmented rankings, subgradient) by the two products with the features, X w and Xᵀ r.

    6,000 queries of 120 documents with 136 features; w = 0, middle and end of a run. Then 300 queries over every
    feature map at w = the truth. Processor time of one thread, by turns, the least of the rounds."""
    count, rounds = run.size(6000, 30), run.size(7, 2)
    X, grades = mslr_like(count)
    sizes, r = np.full(count, 120), np.random.default_rng(1).standard_normal(len(X))
    cells = [("nDCG@10", "power(0.5)@10"), ("nDCG@10", "linear"), ("nDCG@10", "power(0.5)"), ("nDCG", "power(0.5)"),
             ("P@5", "power(0.5)@5")]  # fmt: skip
    sparse = csr_array(np.where(np.random.default_rng(2).random(X.shape) < 0.1, X, 0.0))
    jobs = [("float64", X, cell, bound) for cell in cells for bound in ("convex", "tie-aware", "nonconvex")]
    jobs += [("float32", X.astype(np.float32), cell, "convex") for cell in cells]
    jobs += [("CSR, 10% filled", sparse, cell, "convex") for cell in cells[:2]]
    row = table("features", "bound", "measure", "weights", "w = 0", "middle", "end", "argmax, % of the step")
    for label, features, (measure, weights), bound in run.size(jobs, jobs[:2]):
        queries, trials = Queries.from_arrays(features, grades, group=sizes), []
        own = LargeMarginRanker(
            measure, position_weights=weights, bound=bound, w0="zeros", lam=1e-3, max_iter=12, tol=0.0, engine="serial",
            callbacks=(lambda step, state, trials=trials: trials.append(state.trial),),
        ).fit(queries)  # fmt: skip
        risk, same = own.objective(queries).risk, r.astype(features.dtype)
        ratios, shares = [], []
        for w in (np.zeros(136), trials[len(trials) // 2], own.coef_):
            v = w.astype(features.dtype)
            ours, products = least(
                rounds,
                lambda w=w, risk=risk: risk.at(w),
                lambda v=v, X=features, same=same: (X @ v, X.T @ same),
            )
            ratios.append(ours / products)
            shares.append(risk.at(w).seconds / ours)
        row(label, bound, measure, weights, *(f"{ratio:.2f}" for ratio in ratios), f"{100 * np.mean(shares):.0f}")
    X, w = X[:36000], np.random.default_rng(0).normal(size=136) / 12
    relevant = X @ w + np.random.default_rng(3).normal(size=len(X)) > 1.2
    queries = Queries.from_arrays(X, relevant * 1.0, group=[120] * (len(X) // 120))
    losses = [(measure, "pairwise") for measure in ("AP", "AUC", "nDCG", "nDCG@10", "RR")]
    losses += [("RR", "first-relevant"), ("nDCG@10", "positional"), ("AP", "positional"), ("RR@10", "positional")]
    row = table("measure", "map", "convex", "tie-aware", "nonconvex")
    for measure, feature_map in run.size(losses, losses[:2]):
        ratios = []
        for bound in ("convex", "tie-aware", "nonconvex"):
            options = {"feature_map": feature_map, "bound": bound, "w0": np.full(136, 1e-9), "lam": 1.0}
            risk = LargeMarginRanker(measure, engine="serial", **options).objective(queries).risk
            ours, products = least(run.size(15, 2), lambda risk=risk: risk.at(w), lambda: (X @ w, X.T @ r[: len(X)]))
            ratios.append(f"{ours / products:.2f}")
        row(measure, feature_map, *ratios)


@dataclass(frozen=True)
class Recorder:
    """A master solver that records its problems and starts."""

    problems: list = field(default_factory=list)
    accepts: ClassVar = (GroupedSimplexQP,)
    package: ClassVar = "rankopt"
    spec: ClassVar = "recorder"

    def reason_unsupported(self, problem: Any) -> None:
        return None

    def solve(self, problem: Any, warm_start: Any = None) -> Any:
        self.problems.append((problem, warm_start))
        return ActiveSet().solve(problem, warm_start)


def recorded_masters(run: Run, method: Any, **limits: Any) -> Iterator[tuple[Any, Any]]:
    """Eight masters of each run on MQ2008 and OHSUMED, λ = 1, 1e-2, 1e-4."""
    for queries in [concatenate(mq2008()), concatenate(letor("letor3-ohsumed/Feature-min"))]:
        for (bound, w0), lam in product((("convex", "zeros"), ("nonconvex", "regression")), (1.0, 1e-2, 1e-4)):
            recorder = Recorder()
            options = {"lam": lam, "method": method, "master_solver": recorder, **limits}
            LargeMarginRanker(bound=bound, position_weights="linear", w0=w0, **options).fit(queries)
            chosen = np.unique(np.linspace(0, len(recorder.problems) - 1, 8).astype(int))
            yield from (recorder.problems[at] for at in chosen)


@case()
def masters(run: Run) -> None:
    """Master problems: how many each solver solves to a gap of 1e-6 of the objective, and its median milliseconds.

    The corpus is that of the tests: duplicates, zero planes, nearly parallel ones, numbers of 1e±9, λ of 1e±6. The
    recorded ones are masters of real runs. Slow solvers see every seventh problem."""
    with test_helpers():
        from problems.masters import nasty, solved
    slow, endless = ("cvxpy", "qpsolvers:highs", "qpsolvers:osqp", "qpsolvers:scs"), ("cvxpy:HIGHS", "cvxpy:SCS")
    fast, count = ("active_set", "qpsolvers:piqp", "qpsolvers:clarabel", "qpsolvers:daqp"), run.count(360, 8)
    solve(nasty(0), "active_set")  # compiles
    corpora = {
        "corpus, one group": ([(nasty(seed), None) for seed in range(count)], None),
        "corpus, 12 groups": ([(nasty(seed, 12), None) for seed in range(count)], None),
    }
    if not run.quick and "RANKOPT_DATA" in os.environ:
        plain = Bundle(groups=1, damping=0.1, keep_idle=200)
        corpora |= {
            "bundle, one group": (list(recorded_masters(run, plain, max_iter=400)), fast),
            "bundle, 256 groups": (list(recorded_masters(run, Bundle(), max_iter=400)), fast[:-1]),
            "cutting planes": (list(recorded_masters(run, "cutting_planes", max_iter=12)), fast[:-1]),
        }
    for name, (problems, chosen) in corpora.items():
        specs = [spec for spec in chosen or compatible_solvers(GroupedSimplexQP) if spec not in endless]
        seconds, done = defaultdict(list), defaultdict(int)
        for at, (problem, start) in enumerate(problems):
            for spec in specs:
                if at % 7 and spec.startswith(slow):
                    continue
                began = process_time()
                with suppress(FormulationError):
                    done[spec] += bool(solved(problem, solve(problem, spec, start)))
                seconds[spec].append(process_time() - began)
        row = table(f"{name}: {len(problems)} masters", "solved", "median ms", "slowest ms")
        for spec in sorted(specs, key=lambda spec: np.median(seconds[spec])):
            median, slowest = 1e3 * np.median(seconds[spec]), 1e3 * max(seconds[spec])
            row(f"`{spec}`", f"{done[spec]} of {len(seconds[spec])}", f"{median:.3g}", f"{slowest:.3g}")


def held(name: str) -> int:
    """Bytes that this process holds (VmRSS, VmData) or held at most (VmHWM)."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(re.search(rf"{name}:\s+(\d+)", text)[1])


def fill(table: np.ndarray, grades: np.ndarray) -> None:
    """Features and grades block by block, so that making them needs no memory."""
    random, features = np.random.default_rng(0), table.shape[1]
    w = random.standard_normal(features) / np.sqrt(features)
    for start in range(0, len(table), 4096):
        block = random.standard_normal((min(4096, len(table) - start), features))
        table[start : start + 4096] = block
        latent = block @ w + 0.8 * random.standard_normal(len(block))
        grades[start : start + 4096] = np.digitize(latent, [0.6, 1.2, 1.8, 2.4])


def one_fit(queries: int, documents: int, features: int, kind: str = "f8", folder: str = "") -> None:
    """Print seconds and bytes of one fit; with a folder the features are mapped and memory is limited to .3 of them."""
    own = LargeMarginRanker(position_weights="power(0.5)@10", w0="regression", lam=0.1, max_iter=10, tol=0.0)
    random, rows = np.random.default_rng(1), queries * documents
    own.fit(random.standard_normal((40, 3)), random.integers(0, 3, 40), group=[20, 20])  # loads the code
    before = held("VmRSS")
    if folder:
        table = np.memmap(Path(folder) / "features", dtype=kind, mode="r", shape=(rows, features))
        grades = np.load(Path(folder) / "grades.npy")
        limit = held("VmData") + int(0.3 * table.nbytes)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    else:
        table, grades = np.empty((rows, features), dtype=kind), np.empty(rows)
        fill(table, grades)
    _, seconds = timed(lambda: own.fit(table, grades, group=np.full(queries, documents)))
    print(json.dumps({"seconds": seconds, "bytes": held("VmHWM") - before, "features": table.nbytes}))


@case()
def growth(run: Run) -> None:
    """Seconds and memory of ten steps by queries, documents and features; each line a process of its own.

    Memory: the peak of `fit` above what the process held before the data, by the bytes of the features. The mapped
    file is trained on with a hard limit of .3 of its size. × is by the line above."""
    base = run.size(6000, 60)

    def quickest(*size: object) -> dict[str, float]:
        code = "import sys, warnings; from benchmarks.training import one_fit; warnings.simplefilter('ignore'); "
        code += "one_fit(*map(int, sys.argv[1:4]), *sys.argv[4:])"
        runs = [json.loads(call_python(code, *size).stdout) for _ in range(run.size(2, 1))]
        return min(runs, key=lambda found: found["seconds"])

    cells = [("queries", (base // 8 * 2**i, 120, 136)) for i in range(run.size(5, 2))]
    cells += [("documents", (base // 2, n, 136)) for n in run.size((60, 120, 240), ())]
    cells += [("features", (base // 2, 120, n)) for n in run.size((68, 136, 272), ())]
    row = table("", "queries", "documents", "features", "seconds", "×", "memory / features", "memory ×")
    last: tuple[str, dict] = ("", {})
    for grows, size in cells:
        found, ratios = quickest(*size), ("", "")
        if grows == last[0]:
            ratios = tuple(f"{found[what] / last[1][what]:.2f}" for what in ("seconds", "bytes"))
        share = f"{found['bytes'] / found['features']:.2f}"
        row(grows, *size, f"{found['seconds']:.2f}", ratios[0], share, ratios[1])
        last = grows, found
    size = (base, 120, 136)
    with tempfile.TemporaryDirectory() as folder:
        features = np.memmap(Path(folder) / "features", dtype="f8", mode="w+", shape=(base * 120, 136))
        grades = np.empty(base * 120)
        fill(features, grades)
        features.flush()
        np.save(Path(folder) / "grades.npy", grades)
        del features
        mapped = () if run.quick else (("mapped file", ("f8", folder)),)  # a limit of .3 of little is too little
        for label, more in (("float32", ("f4",)), *mapped):
            found = quickest(*size, *more)
            row(label, *size, f"{found['seconds']:.2f}", "", f"{found['bytes'] / found['features']:.2f}", "")


@case()
def engines(run: Run) -> None:
    """A step and the first step of each engine with one and two workers; answers are equal bit for bit.

    Two shards of queries of 100 documents with 40 float32 features in a mapped file, nonconvex bound; least of rounds
    by turns. `--tries` is the number of shards."""
    rounds, rng = run.size(7, 2), np.random.default_rng(0)
    documents = run.count(2, 1) * -(-SHARD_ROWS // 100) * 100
    with tempfile.TemporaryDirectory() as folder:
        file, shape = Path(folder) / "features", (documents, 40)
        features = np.memmap(file, np.float32, "w+", 0, shape)
        features[:] = rng.standard_normal(shape, np.float32)
        features.flush()
        score = features @ np.linspace(1, -1, 40, dtype=np.float32) + 3 * rng.standard_normal(documents)
        grades = np.digitize(score, np.quantile(score, [0.7, 0.9, 0.97])).astype(float)
        mapped = np.memmap(file, np.float32, "r", 0, shape)
        queries = Queries.from_arrays(mapped, grades, group=[100] * (documents // 100))
        risk, w = LargeMarginRanker(w0="regression", lam=0.1).objective(queries).risk, rng.normal(size=40)
        own = {(name, n): get_engine(name, n) for name in ENGINES for n in ((1,) if name == "serial" else (1, 2))}
        starts, steps, answers = {}, defaultdict(list), defaultdict(list)
        for key, engine in own.items():
            _, starts[key] = wall(lambda engine=engine: Risk(risk.shards, engine).at(w))
        for at in range(1, rounds + 1):
            for key, engine in own.items():
                point = w * (1 + 0.01 * at)
                planes, seconds = wall(lambda engine=engine, point=point: Risk(risk.shards, engine).at(point))
                steps[key].append(seconds)
                answers[key].append(planes.slopes.tobytes() + planes.losses.tobytes())
        for engine in own.values():
            if hasattr(engine, "close"):
                engine.close()
    alone = ("serial", 1)
    assert all(answer == answers[alone] for answer in answers.values())
    print(f"{documents} documents in {len(risk.shards)} shards")
    row = table("engine", "workers", "first step (s)", "step (s)", "× serial")
    for key in sorted(own, key=lambda key: (key != alone, key)):
        quickest = min(steps[key])
        row(*key, f"{starts[key]:.2f}", f"{quickest:.3f}", f"{min(steps[alone]) / quickest:.2f}")


FIT = """
import numpy as np
from rankopt.rankers import LargeMarginRanker

random = np.random.default_rng(0)
lengths = random.integers(5, 121, 471)
lengths = np.maximum(lengths * 9600 // lengths.sum(), 5)
X = random.normal(size=(lengths.sum(), 46))
latent = X @ random.normal(size=46) + 8.0 * random.normal(size=len(X))
y = (latent > np.quantile(latent, 0.8)) + 1.0 * (latent > np.quantile(latent, 0.94))
LargeMarginRanker("nDCG@10").fit(X, y, group=lengths)
"""
MQ2008 = """
from benchmarks.data import concatenate, mq2008
from rankopt.rankers import LargeMarginRanker

LargeMarginRanker("nDCG@10").fit(concatenate(mq2008((1, 2))))
"""


def child_seconds(command: list[str], folder: str, **environment: str) -> float:
    """Processor seconds of a process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env=os.environ | environment, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@case()
def first_result(run: Run) -> None:
    """Processor seconds with an empty kernel cache and with a warm one, imports included; `--tries` turns."""
    readme = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    cases = {"README's snippet (23 queries)": ["-c", readme[0]]}
    if not run.quick:
        if "RANKOPT_DATA" in os.environ:
            cases["a fit on MQ2008, parts S1 and S2"] = ["-c", MQ2008]
        cases["a fit of that size, generated"] = ["-c", FIT]
        cases["rankopt demo --report"] = ["-m", "rankopt", "demo", "--report", "report.html"]
    row = table("", "empty cache, s", "warm, s", "ratio")
    for name, arguments in cases.items():
        found = []
        for _ in range(run.count(3, 1)):
            with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as folder:
                set_up = {"NUMBA_CACHE_DIR": cache, "MPLBACKEND": "agg", "PYTHONPATH": str(ROOT)}
                found.append([child_seconds([sys.executable, *arguments], folder, **set_up) for _ in range(2)])
        cold, warm = np.min(found, axis=0)
        row(name, f"{cold:.1f}", f"{warm:.1f}", f"{cold / warm:.2f}")
