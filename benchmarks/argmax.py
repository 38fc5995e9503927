"""The loss-augmented argmax next to assignment solvers and to sorting, on problems of real training runs.

A short run of the ranker from least squares gives four points: w = 0, the start, the middle, the end. At each point the
queries with something to order are solved as one batch on one thread; orders, values and bounds are included. Times
are thread time, the least of several calls. A package is given matrices that were written beforehand. Cells are
geometric means of quotients, package by ours. Values agree to 1e-9 of the largest profit.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.cases import Run, case, geometric_mean, least, repeated, rounded, table, timed
from benchmarks.data import data_folder, film_queries, film_ratings, mq2008, ohsumed_fold
from formulations import (
    certify,
    first_relevant_ranking,
    pairwise_ranking,
    ranking,
    relevance_ranking,
    solve,
    solve_batch,
)
from formulations.argmax.relevance_layout import RelevanceLayout
from formulations.argmax.relevance_two_grades import sort_range
from formulations.bridges.widening import rounded_costs
from formulations.parallel import at_most
from formulations.problems.ranking import RankTwoBatch
from formulations.solvers.exact import ExactArgmax
from rankopt.constraints import Admissible
from rankopt.data import Queries, concatenate, read_svmlight
from rankopt.losses.position_weights import parse_position_weights
from rankopt.measures.notation import parse
from rankopt.rankers import LargeMarginRanker, RegressionRanker

MEASURES = ("nDCG", "nDCG@10", "P@5", "ERU")
WEIGHTS = ("linear", "power(0.25)", "power(0.5)", "power(1)", "log")
POINTS = ("w = 0", "start", "middle", "end")
COMPILED = ExactArgmax(compiled=True)
"""As in training on larger data; by default small batches use what lies on disk."""

COPIES = 8
"""Of each query of 1,000 documents in the batch: in training thousands of queries share the cost of a call."""


def lengths(queries: Queries) -> np.ndarray:
    return np.diff(queries.offsets)


def mslr() -> Queries:
    queries = read_svmlight(data_folder() / "mslr-web30k-sample" / "train.txt.gz")
    spread = queries.features.std(axis=0)
    features = (queries.features - queries.features.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return Queries.from_arrays(features, queries.relevance, qid=np.repeat(np.arange(len(queries)), lengths(queries)))


def films() -> Queries:
    """Long queries: the larger part of the ratings is ranked, features come from the smaller one."""
    ranked, known = (film_ratings(data_folder() / "ml-100k" / f"u1.{part}.gz") for part in ("base", "test"))
    return film_queries(known, ranked)


def drawn(*sizes: int, below: tuple[float, ...] = (0.52, 0.84, 0.97, 0.99)) -> Queries:
    """Grades 0 to 4 of a noisy linear score, by default as frequent as on MSLR-WEB30K."""
    random, total = np.random.default_rng(7), sum(sizes)
    features = random.normal(size=(total, 20))
    height = features @ random.normal(size=20) / np.sqrt(20) + 0.7 * random.normal(size=total)
    grades = np.searchsorted(np.quantile(height, below), height)
    return Queries.from_arrays(features, grades.astype(float), qid=np.repeat(np.arange(len(sizes)), sizes))


SETS: dict[str, Callable[[], Queries]] = {
    "MQ2008": lambda: concatenate(mq2008()),
    "OHSUMED": lambda: ohsumed_fold(1, "train")[0],
    "MSLR": mslr,
    "MovieLens": films,
    "generated": lambda: drawn(100, 100, 200, 200, 400, 700, 1000, 2000),
    "n = 1000": lambda: drawn(1000, 1000, 1000),
    "quick": lambda: drawn(30, 60, 90),
}


def names(run: Run, *full: str) -> list[str]:
    if run.quick:
        return ["quick"]
    return [name for name in run.chosen(full) if "RANKOPT_DATA" in os.environ or name[0] in "gn"]


def full_name(measure: str, data: str) -> str:
    """ERU needs the neutral grade: 2 of 5 stars, else 0."""
    return measure.replace("ERU", "ERU(d=2)" if data == "MovieLens" else "ERU(d=0)")


def points(queries: Queries, measure: str, weights: str) -> list[np.ndarray]:
    """w at `POINTS` of a run of 24 steps."""
    seen: list[np.ndarray] = []
    callback = [lambda step, state: seen.append(state.trial)]
    options = {"w0": "regression", "lam": 0.1, "max_iter": 24, "callbacks": callback}
    LargeMarginRanker(measure, position_weights=weights, **options).fit(queries)
    return [np.zeros(queries.n_features), seen[0], seen[len(seen) // 2], seen[-1]]


def stated(queries: Queries, measure: str, weights: str, w: np.ndarray) -> RankTwoBatch:
    """The problems at w of the queries that have something to order."""
    rule, c = parse(measure), parse_position_weights(weights)
    gain, starts = rule.gain(queries.relevance, queries.offsets), queries.offsets[:-1]
    part = queries.select(np.flatnonzero(np.maximum.reduceat(gain, starts) > np.minimum.reduceat(gain, starts)))
    return ranking(
        part.features @ w, rule.gain(part.relevance, part.offsets), offsets=part.offsets, discount=rule.discount,
        position_weights=lambda n: c.weights(n, rule),
    )  # fmt: skip


def profits(batch: RankTwoBatch, query: int) -> np.ndarray:
    own = slice(*batch.offsets[[query, query + 1]].tolist())
    return np.outer(batch.position_weights[own], batch.scores[own]) - np.outer(batch.discount[own], batch.gain[own])


def tolerance(batch: RankTwoBatch) -> np.ndarray:
    """1e-9 of a bound on the largest profit of each query."""
    parts = (batch.position_weights, batch.scores, batch.discount, batch.gain)
    c, s, a, g = (np.maximum.reduceat(np.abs(part), batch.offsets[:-1]) for part in parts)
    return 1e-9 * (c * s + a * g)


def selected(batch: RankTwoBatch, queries: np.ndarray) -> RankTwoBatch:
    kept = np.concatenate([np.arange(batch.offsets[q], batch.offsets[q + 1]) for q in queries])
    offsets = np.append(0, np.cumsum(np.diff(batch.offsets)[queries]))
    parts = (batch.scores, batch.gain, batch.discount, batch.position_weights)
    return RankTwoBatch(*(part[kept] for part in parts), offsets)


def sampled(queries: Queries, turn: int | None) -> Queries:
    """At most 40 queries of up to 400 documents (150 short ones), and of the longer ones the `turn`-th."""
    n = lengths(queries)
    kept, long, few = np.flatnonzero(n <= 400), np.flatnonzero(n > 400), 40 if n.mean() > 50 else 150
    if kept.size > few:
        kept = np.random.default_rng(0).choice(kept, few, replace=False)
    if long.size and turn is not None:
        kept = np.append(kept, long[turn % long.size])
    return queries.select(np.sort(kept))


def next_to_scipy(batch: RankTwoBatch, copies: int = 1) -> tuple[float, float, Counter[str], float]:
    """SciPy's seconds by ours, of the transposed matrices by ours, algorithms, our microseconds a query."""
    own = selected(batch, np.tile(np.arange(len(batch)), copies)) if copies > 1 else batch
    with at_most(1):
        answer, seconds = repeated(lambda: solve_batch(own, COMPILED))
    spent, calls = np.zeros(2), 1 if np.diff(batch.offsets).max() > 400 else 2
    for query, most in enumerate(tolerance(batch)):
        profit = profits(batch, query)
        for way, matrix in enumerate((profit, np.ascontiguousarray(profit.T))):
            chosen, time = repeated(lambda matrix=matrix: linear_sum_assignment(matrix, maximize=True), calls, 0.0)
            spent[way] += time
            assert abs(answer.value[query] - matrix[chosen].sum()) <= most
    ratios = spent / (seconds / copies)
    return ratios[0], ratios[1], Counter(answer.algorithm.tolist()), 1e6 * seconds / copies / len(batch)


@case()
def runs(run: Run) -> None:
    """Real runs next to SciPy by data, measure and position weights; `--sets MQ2008 ...`."""
    row = table("data, documents", "measure", *WEIGHTS, "w = 0", "least", "transposed", "algorithms, %")
    for name in names(run, *list(SETS)[:5]):
        queries, logs = SETS[name](), []
        for measure in run.size(MEASURES, MEASURES[:2]):
            cells, turned, algorithms = [], [], Counter[str]()
            for number, weights in enumerate(WEIGHTS):
                said, quotients = full_name(measure, name), []
                for point, w in enumerate(points(queries, said, weights)):
                    part = sampled(queries, number if point == 1 else None)
                    quotient, transposed, taken, _ = next_to_scipy(stated(part, said, weights, w))
                    quotients.append(quotient)
                    turned += [transposed] * (point > 0)
                    algorithms += taken
                cells.append(quotients)
            logs += [cell[1:] for cell in cells]
            shares = ", ".join(f"{way} {100 * n / algorithms.total():.0f}" for way, n in algorithms.most_common())
            zero, back = geometric_mean([cell[0] for cell in cells]), geometric_mean(turned)
            means = (f"{geometric_mean(cell[1:]):.0f}" for cell in cells)
            title = f"{name}, {lengths(queries).mean():.0f}"
            row(title, measure, *means, f"{zero:.0f}", rounded(np.min(cells)), f"{back:.0f}", shares)
        row(name, "all, mean", f"{geometric_mean(logs):.0f}", *[""] * (len(WEIGHTS) + 3))


Prepared = tuple[Callable[[], object], Callable[[Any], np.ndarray], float]
"""A call to be timed, what makes columns of its answer, and what the answer may leave open."""


def or_tools(profit: np.ndarray) -> Prepared:
    """Costs shifted to begin at 0, times the largest power of two that its arithmetic holds, rounded."""
    from ortools.graph.python.linear_sum_assignment import SimpleLinearSumAssignment

    costs, solver = rounded_costs(-profit.ravel(), *profit.shape, shift=True), SimpleLinearSumAssignment()
    sources, targets = (index.astype(np.int32).ravel() for index in np.indices(profit.shape))
    solver.add_arcs_with_cost(sources, targets, np.asarray(costs.values))
    return solver.solve, lambda _: np.array([solver.right_mate(i) for i in range(len(profit))]), costs.left


@case()
def solvers(run: Run) -> None:
    """Next to SciPy and OR-Tools, each given the matrix both ways; its quicker time counts; `--sets MQ2008 ...`."""
    packages: dict[str, Callable[[np.ndarray], Prepared]] = {
        "SciPy": lambda profit: (lambda: linear_sum_assignment(profit, maximize=True), lambda a: a[1], 0.0),
        "OR-Tools": or_tools,
    }
    row = table("data", "measure", *packages, "least of all")

    def quotients(batch: RankTwoBatch) -> np.ndarray:
        copies = selected(batch, np.tile(np.arange(len(batch)), COPIES))
        theirs, ours, most = np.full((len(batch), len(packages)), np.inf), np.inf, tolerance(batch)
        for _ in range(2 if len(batch) > 1 else 1):
            answer, seconds = repeated(lambda: solve_batch(copies, COMPILED), 5, 0.0)
            ours = min(ours, seconds / COPIES)
            for query, value in enumerate(answer.value[: len(batch)]):
                profit = profits(batch, query)
                for matrix in (profit, np.ascontiguousarray(profit.T)):
                    for i, prepare in enumerate(packages.values()):
                        call, columns, left = prepare(matrix)
                        said, spent = timed(call)
                        theirs[query, i] = min(theirs[query, i], spent)
                        earned = matrix[np.arange(len(matrix)), columns(said)].sum()
                        assert abs(earned - value) <= most[query] + left
        return theirs.sum(axis=0) / ours

    for name in names(run, *list(SETS)[:6]):
        queries = SETS[name]()
        order = np.random.default_rng(1).permutation(len(queries))  # 1,000 documents together, or one longer query
        short = order[lengths(queries)[order] <= 400]
        held = short[np.cumsum(lengths(queries)[short]) <= 1000] if short.size else order[:1]
        few = queries.select(np.sort(held))
        for measure in run.size(MEASURES, MEASURES[:1]):
            said, cells = full_name(measure, name), []
            for weights in ("linear", "power(0.5)", "log"):
                for w in points(queries, said, weights)[1:]:
                    with at_most(1):
                        cells.append(quotients(stated(few, said, weights, w)))
            means = np.exp(np.mean(np.log(cells), axis=0))
            row(name, measure, *(f"{value:.0f}" for value in means), rounded(np.min(cells)))


@case()
def generated(run: Run) -> None:
    """Drawn queries, where little can be sorted away, next to SciPy; then batches of 12 short queries.

    Scores are normal, a hundredth of the gains in size, which take 3, 5 or 40 values or are all different; nDCG,
    nDCG@10, P@5 and ERU by six position weights. Cells: geometric mean and least."""
    kinds = {"3": 3, "5": 5, "40": 40, "all": 0}
    weights = ("linear", "power(0.5)", "power(1)", "log", "power(0.5)@10", "plateaus")
    random, row = np.random.default_rng(3), table("documents", *(f"{kind} gains | least" for kind in kinds))

    def draw(n: int, queries: int, gains: int, measure: str, c: str, spread: float = 0.01) -> RankTwoBatch:
        total, rule = n * queries, parse(full_name(measure, ""))
        gain = random.integers(gains, size=total) / gains if gains else random.random(total)
        scores, offsets = spread * random.normal(size=total), np.arange(0, total + 1, n)

        def position_weights(n: int) -> np.ndarray:
            if c == "plateaus":
                return (1.0 + np.arange(n) * 8 // n) ** -0.5
            return parse_position_weights(c).weights(n, rule)

        return ranking(scores, gain, offsets=offsets, discount=rule.discount, position_weights=position_weights)

    for n in run.size((20, 50, 100, 300), (20, 50)):
        cells = []
        for gains in kinds.values():
            own = [draw(n, max(1, -(-400 // n)), gains, measure, c) for measure in MEASURES for c in weights]
            each = [next_to_scipy(batch, COPIES)[0] for batch in own]
            cells.append(f"{geometric_mean(each):.1f} | {rounded(min(each))}")
        row(n, *cells)
    batches = [draw(20, 12, 5, "nDCG@10", "power(0.5)", 0.1) for _ in range(40)]

    def calls(solver: ExactArgmax) -> None:
        for batch in batches:
            solve_batch(batches[0].with_scores(batch.scores), solver, directed_rounding=False)

    def scipys() -> None:
        for batch in batches:
            other = batches[0].with_scores(batch.scores)
            for query in range(len(other)):
                linear_sum_assignment(profits(other, query), maximize=True)

    with at_most(1):
        compiled, plain, theirs = least(9, lambda: calls(COMPILED), lambda: calls(ExactArgmax(compiled=False)), scipys)
    row = table("12 queries of 20 documents a call", "SciPy in a loop by ours")
    row("compiled", f"{theirs / compiled:.2g}")
    row("nothing compiled (small batches, nothing on disk)", f"{theirs / plain:.2g}")


@case()
def calls(run: Run) -> None:
    """What users call: batches next to SciPy, one list solved and certified, long lists under AP.

    Five gains, nDCG@10, power(0.5) and linear(10); SciPy writes its matrices. Milliseconds a call, code on disk."""

    def linear(n: int) -> np.ndarray:
        return np.maximum(1.0 - np.arange(n) / 10.0, 0.0)

    def power(n: int) -> np.ndarray:
        return (1.0 + np.arange(n)) ** -0.5

    def milliseconds(*jobs: Callable[[], object]) -> list[float]:
        for job in jobs:
            job()
        return [1e3 * seconds for seconds in least(run.size(5, 1), *jobs)]

    rule, random = parse("nDCG@10"), np.random.default_rng(5)

    def documents(n: int) -> tuple[np.ndarray, np.ndarray]:
        gain = random.choice(5, size=n, p=(0.52, 0.32, 0.13, 0.02, 0.01)) / 4.0
        return gain / 100.0 + 0.02 * random.normal(size=n), gain

    row = table("queries × documents", *(f"{name} | SciPy by ours" for name in ("power", "linear")))
    for n, queries in product(run.size((20, 120, 400, 1000), (20,)), (1, 12, 200)):
        cells = []
        for weights in (power, linear):
            batch = ranking(
                *documents(n * queries), offsets=np.arange(0, n * queries + 1, n), discount=rule.discount,
                position_weights=weights,
            )  # fmt: skip
            few = min(queries, 12 if n < 400 else 1)

            def scipy(batch: RankTwoBatch = batch, few: int = few) -> None:
                for query in range(few):
                    linear_sum_assignment(profits(batch, query), maximize=True)

            own, theirs = milliseconds(lambda b=batch: [solve_batch(b) for _ in range(8)], scipy)
            cells.append(f"{rounded(own / 8)} | {rounded(theirs * queries / few / (own / 8))}")
        row(f"{queries} × {n}", *cells)
    row = table("documents", *(f"{name}, solve | certify" for name in ("power", "linear", "AP")), "argmax, power")
    for n in run.size((100, 512, 513, 2000, 20_000, 200_000), (100, 2000)):
        scores, gain = documents(n)
        stated_problems = [
            ranking(scores, gain, discount=rule.discount(n), position_weights=weights(n)) for weights in (power, linear)
        ]
        cells = []
        for problem in (*stated_problems, pairwise_ranking(scores, gain > 0.3, "AP")):
            found = solve(problem)
            times = milliseconds(lambda p=problem: solve(p), lambda p=problem, found=found: certify(p, found))
            cells.append(" | ".join(map(rounded, times)))
        batch = ranking(scores, gain, offsets=[0, n], discount=rule.discount, position_weights=power)
        row(n, *cells, rounded(milliseconds(lambda b=batch: solve_batch(b))[0]))
    row = table("documents ranked", "sorted", "one quota", "two that cross", "one and a position")
    sites = Admissible(10).at_most(2, by="site")
    rules = (None, sites, sites.at_most(3, by="topic"), sites.at_least(1, documents="new", positions=range(3)))
    features = random.normal(size=(1000, 5))
    ranker = RegressionRanker().fit(features, random.integers(0, 3, 1000), qid=np.repeat(np.arange(100), 10))
    for n in run.size((100, 400, 1000), (100,)):
        site, topic, new = random.integers(0, 8 + n // 20, n), random.integers(0, 8, n), random.random(n) < 0.1
        attributes, part = {"site": site, "topic": topic, "new": new}, features[:n]
        jobs = [partial(ranker.rank, part, k=10, constraints=one, attributes=attributes) for one in rules]
        row(n, *map(rounded, milliseconds(*jobs)))


@case()
def relevance(run: Run) -> None:
    """AP, AUC, nDCG, RR under every feature map next to sorting the scores; growth with n.

    8,000,000 / (n log2 n) queries of n documents, n₊ of them relevant. Beyond sorting: the whole answer less the
    sorting of its chains. Sorting is the package's own merge sort; argsort is NumPy's, stable."""
    maps = {
        "pairwise": pairwise_ranking,
        "first-relevant": first_relevant_ranking,
        "positional": lambda *given, **offsets: relevance_ranking(
            *given, position_weights=lambda n: np.arange(1.0, n + 1.0) ** -0.5, **offsets
        ),
    }
    losses = [(measure, "pairwise") for measure in ("AP", "AUC", "nDCG", "RR", "nDCG@10", "P@10")]
    losses += [("RR", "first-relevant"), ("AP", "first-relevant"), ("AP", "positional"), ("RR@10", "positional")]

    def measured(n: int, relevant: int, losses: list) -> tuple[list[float], list[str]]:
        """Microseconds a query of sorting chains, sorting all, argsort, and each loss; algorithms."""
        count = max(1, int(run.size(8e6, 1e5) / (n * np.log2(n))))
        random, grade = np.random.default_rng(0), np.zeros((count, n))
        grade[:, :relevant] = 1.0
        grade = random.permuted(grade, axis=1).ravel()
        scores, offsets = random.normal(size=grade.size) + 0.5 * grade, np.arange(count + 1) * n

        def sorting(part: np.ndarray) -> Callable[[], None]:
            batch = pairwise_ranking(np.zeros(grade.size), part, "AUC", offsets=offsets)
            layout = RelevanceLayout.from_batch(batch)
            height, document = np.empty(scores.size), np.empty(scores.size, np.int32)
            return lambda: sort_range(scores, layout, 0, count, height, document)

        rows = scores.reshape(count, n)
        batches = [maps[feature_map](scores, grade, measure, offsets=offsets) for measure, feature_map in losses]
        jobs = [lambda b=batch: solve_batch(b, COMPILED, directed_rounding=False) for batch in batches]
        ways = [job().algorithm[0] for job in jobs]
        argsort = partial(np.argsort, rows, axis=1, kind="stable")
        times = least(run.size(7, 2), sorting(grade), sorting(0.0 * grade), argsort, *jobs)
        return [1e6 * time / count for time in times], ways

    with at_most(1):
        for n, relevant in run.size([(100, 10), (1000, 10), (1000, 100), (1000, 500)], [(100, 10)]):
            (chains, sort, argsort, *times), ways = measured(n, relevant, losses)
            print(f"\nn = {n}, n₊ = {relevant}: sorting {sort:.2f} µs a query, NumPy's argsort {argsort:.2f}")
            row = table("measure", "map", "algorithm", "whole (µs)", "beyond sorting, by sorting", "by NumPy's sorting")
            for (measure, feature_map), time, way in zip(losses, times, ways, strict=True):
                beyond = time - chains
                row(measure, feature_map, way, f"{time:.2f}", f"{beyond / sort:.2f}", f"{beyond / argsort:.2f}")
        print("\nGrowth, a tenth relevant, pairwise map: whole time by n log2 n (ns)")
        row = table("n", "sorting", *(measure for measure, _ in losses[:5]))
        for n in run.size((100, 1000, 10_000, 100_000), (100, 1000)):
            (_, sort, _, *times), _ = measured(n, n // 10, losses[:5])
            row(n, *(f"{time / (n * np.log2(n) / 1e3):.2f}" for time in (sort, *times)))
    sys.stdout.flush()
