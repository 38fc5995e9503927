"""Training and ranking under constraints: seconds next to general solvers, fits, limits and their prices."""

from __future__ import annotations

import os
import runpy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.cases import ROOT, Run, case, least, p_value, table, timed
from benchmarks.data import data_folder, experts, film_genres, film_ratings, folds, movielens, students
from formulations import (
    InfeasibleError,
    LinearProgram,
    RankingSet,
    constrained_ranking,
    sensitivity,
    solve,
)
from formulations.bridges import restated
from formulations.solving.constrained_batch import SetBatch, solve_sets
from formulations.solving.sensitivity import limit_of
from rankopt.constraints import Admissible
from rankopt.data import Queries
from rankopt.experiments import Limits, SolverSwap
from rankopt.rankers import LargeMarginRanker, RegressionRanker

K, QUERIES = 10, 24


@case()
def diverse_retrieval(run: Run) -> None:
    """A query of Π(B, 10): collapsed assignment, flow, linear and integer program, cvxpy; medians of five.

    Processor time. "compiled" is the pass over all queries at once that training uses; values of all ways agree."""
    ways = {
        "collapsed": lambda problem: solve(problem, "scipy"),
        "flow": lambda problem: solve(problem, "ortools:flow"),
        "linear program": lambda problem: solve(problem, "highs"),
        "without presolve": lambda problem: solve(problem, "highs(presolve='off')"),
        "integer program": lambda problem: solve(problem.linear_program(integer=True), "highs"),
        "cvxpy": lambda problem: solve(problem, "cvxpy:CLARABEL"),
    }

    def median(work: Callable[[], Any]) -> tuple[Any, float]:
        result = work()
        return result, float(np.median([timed(work)[1] for _ in range(run.size(5, 1))]))

    row = table("n", "collapsed, ms", "compiled, ms", *(f"{way} / collapsed" for way in list(ways)[1:]))
    for n in run.size((50, 100, 200, 500, 1000), (50,)):
        rng, i, count = np.random.default_rng(n), np.arange(1.0, K + 1), run.size(20 if n <= 500 else 8, 2)
        batch = SetBatch(
            [RankingSet(n, K).at_most(1, by=rng.integers(0, n // 3, n), name="block") for _ in range(count)],
            scores=rng.normal(size=n * count), gain=rng.integers(0, 3, n * count) / 10,
            discount=np.tile(1 / np.log2(i + 1), count), position_weights=np.tile(i**-0.5, count),
            offsets=n * np.arange(count + 1), position_offsets=K * np.arange(count + 1),
        )  # fmt: skip
        problems = [batch[q] for q in range(count)]
        best, compiled = median(lambda batch=batch: solve_sets(batch).value)
        seconds = {}
        for way, job in ways.items():
            values, spent = median(lambda job=job, problems=problems: [job(one).value for one in problems])
            seconds[way] = spent / count
            assert np.allclose(values, best, rtol=0, atol=1e-9), way
        first = seconds.pop("collapsed")
        ratios = (f"{spent / first:.3g}" for spent in seconds.values())
        row(n, f"{1e3 * first:.2g}", f"{1e3 * compiled / count:.2g}", *ratios)


@case()
def prefixes(run: Run) -> None:
    """Limits on prefixes over five groups: `solve` by the flow and by the linear program; in training (`solve_sets`).

    At most .3 of the first p of each group, profits of rank one; least processor time of rounds by turns."""
    row = table("n", "k", "limits at", "flow, ms", "in training, ms", "linear program, ms", "/ flow", "/ in training")
    sizes = ((200, 10, False), (1000, 10, True), (1000, 20, False), (1000, 20, True), (1000, 50, True))
    for n, k, everywhere in run.size(sizes, sizes[:1]):
        random = np.random.default_rng(0)
        group, one = random.integers(0, 5, n), RankingSet(n, k)
        for p in range(1, k + 1) if everywhere else (k // 4, k // 2, k):
            one = one.at_most(int(np.ceil(0.3 * p)), by=group, positions=range(p), name=f"first {p}")
        one = one.at_least(1, documents=group == 0, positions=range(3), name="floor")
        weights, scores = 1 / np.log2(np.arange(k) + 2), random.normal(size=n) - (group == 0)
        problem = constrained_ranking(np.outer(weights, scores), one)
        batch = SetBatch([one], scores, np.zeros(n), weights, weights, np.array([0, n]), np.array([0, k]))
        jobs = partial(solve, problem, directed_rounding=False), partial(solve_sets, batch)
        for job in jobs:
            for _ in range(40):  # until its kernel is compiled
                job()
        flow, training = least(run.size(50, 3), *jobs)
        (program,) = least(run.size(10 if k < 50 else 2, 1), partial(solve, problem, "highs", directed_rounding=False))
        where, times = "every prefix" if everywhere else "three prefixes", (flow, training, program)
        row(n, k, where, *(f"{1e3 * t:.3g}" for t in times), f"{program / flow:.0f}", f"{program / training:.0f}")


class Drawn(NamedTuple):
    sets: list[RankingSet]
    gain: np.ndarray
    offsets: np.ndarray


def ask(drawn: Drawn, solver: str) -> tuple[float, float, str]:
    """Milliseconds a query (least of four rounds), the largest relative gap, and the algorithms."""
    rng, count = np.random.default_rng(1), len(drawn.sets)
    scores, best, gap, ways = rng.normal(size=drawn.gain.size), np.inf, 0.0, ""
    discount, weights = np.tile(1.0 / np.log2(np.arange(2.0, K + 2)), count), np.tile(np.linspace(1.0, 0.1, K), count)
    for _ in range(4):
        scores = scores + 0.05 * rng.normal(size=scores.size)
        places = np.arange(0, K * count + 1, K)
        batch = SetBatch(drawn.sets, scores, 0.3 * drawn.gain, discount, weights, drawn.offsets, places)
        answer, seconds = timed(lambda batch=batch: solve_sets(batch, solver))
        best = min(best, seconds)
        gap = max(gap, float(((answer.bound - answer.value) / (1.0 + np.abs(answer.value))).max()))
        ways = ", ".join(f"{(answer.algorithm == way).sum()} {way}" for way in dict.fromkeys(answer.algorithm))
    return 1e3 * best / count, gap, ways


def other_site(site: np.ndarray) -> tuple[list[int], list[int]]:
    """Documents of the first site, and of another one."""
    return np.flatnonzero(site == site[0]).tolist(), np.flatnonzero(site == site[site != site[0]][0]).tolist()


CONSTRAINTS: dict[str, Callable[[RankingSet, np.ndarray, np.random.Generator], RankingSet]] = {
    "Π(B, k)": lambda one, site, rng: one.at_most(1, by=site),
    "nested: site within topic": lambda one, site, rng: one.at_most(2, by=site, name="s").at_most(4, by=site // 4),
    "two groups": lambda one, site, rng: one.at_most(5, by=site % 2),
    "18 overlapping genres, at most 3": lambda one, site, rng: _genres(one, rng),
    "share: at most .3 of a site in every prefix": lambda one, site, rng: one.at_most(share=0.3, by=site),
    "between 2 and 4 of five sites": lambda one, site, rng: one.between(2, 4, documents=site < 5),
    "position_in: one of twelve at position 1": lambda one, site, rng: one.position_in(np.flatnonzero(site < 4)),
    "min_distance: 3 within a site": lambda one, site, rng: one.min_distance(3, by=site),
    "precedes: one document": lambda one, site, rng: one.precedes(*rng.choice(60, 2, replace=False).tolist()),
    "precedes: one of a site": lambda one, site, rng: one.precedes(*other_site(site)),
    "precedence_chain of five": lambda one, site, rng: one.precedence_chain(rng.choice(60, 5, replace=False).tolist()),
    "implies: a site, another": lambda one, site, rng: one.implies(*other_site(site)),
    "add_rows: integer costs, a budget": lambda one, site, rng: one.add_rows(
        np.tile(rng.integers(1, 6, 60).astype(float), (1, K)), upper=25.0
    ),
}
"""Constraints on 60 documents of 20 sites."""


def _genres(one: RankingSet, rng: np.random.Generator) -> RankingSet:
    for genre in range(18):
        one = one.at_most(3, documents=rng.random(60) < 0.12, name=f"genre {genre}")
    return one


def frequent_users(ratings: np.ndarray) -> list[int]:
    """The first 48 users with 40 to 150 ratings."""
    return [user for user, n in enumerate(np.bincount(ratings[:, 0])) if 40 <= n <= 150][: 2 * QUERIES]


@case()
def argmax(run: Run) -> None:
    """Loss-augmented argmax of 24 queries of 60 documents, 10 positions, by "auto" and by the solver it replaces.

    Every kind of constraint, drawn; with RANKOPT_DATA the rated films of 24 users under genre quotas."""
    names, drawn = run.size(list(CONSTRAINTS), list(CONSTRAINTS)[:4]), {}
    for name in names:
        rng = np.random.default_rng(0)
        sets = [CONSTRAINTS[name](RankingSet(60, K), rng.integers(0, 20, 60), rng) for _ in range(QUERIES)]
        gain = rng.integers(0, 4, 60 * QUERIES).astype(float)
        drawn[name] = Drawn(sets, gain, np.arange(0, 60 * QUERIES + 1, 60))
    row = table("constraint", "ms a query", "by the other solver", "factor", "largest gap", "algorithms")
    for name, one in (*drawn.items(), *_rated_films(run)):
        now, gap, ways = ask(one, "auto")
        other, _, _ = ask(one, "ortools" if name in list(CONSTRAINTS)[:3] else "highs")
        row(name, f"{now:.4f}", f"{other:.3f}", f"{other / now:.1f}", f"{gap:.0e}", ways)


def _rated_films(run: Run) -> Iterator[tuple[str, Drawn]]:
    if run.quick or "RANKOPT_DATA" not in os.environ:
        return
    genres, ratings = film_genres()[0][:, 1:], film_ratings(data_folder() / "ml-100k" / "u.data.gz")
    for most in (3, 4, 5):
        sets, gain = [], []
        for user in frequent_users(ratings)[:QUERIES]:
            mine = ratings[ratings[:, 0] == user]
            held, one = genres[mine[:, 1]] > 0, RankingSet(len(mine), K)
            for genre in np.flatnonzero(held.sum(axis=0) > most).tolist():
                one = one.at_most(most, documents=held[:, genre], name=f"genre {genre}")
            sets.append(one)
            gain.append(2.0 ** mine[:, 2] - 1.0)
        yield f"ml-100k, at most {most} of a genre", Drawn(sets, np.concatenate(gain), np.cumsum([0, *map(len, gain)]))


@case(data=True)
def fits(run: Run) -> None:
    """Whole trainings under hard and soft limits (penalty .02 a unit): seconds, J, bound, measure of other lists.

    MovieLens: rated films of 24 users, at most 3, 4, 5 of any genre among 10, measured on 24 others. W3C experts: 24
    queries, at least 3 protected of 10, at least 2 among the first 5. Convex bound, gap 1e-3, from w = 0; `--sets
    highs` names another argmax solver."""
    genres, ratings = film_genres()[0][:, 1:], film_ratings(data_folder() / "ml-100k" / "u.data.gz")
    chosen, count = frequent_users(ratings), np.bincount(ratings[:, 1], minlength=len(genres))
    mine = ratings[np.isin(ratings[:, 0], chosen)]
    mine = mine[np.lexsort((np.arange(len(mine)), ~np.isin(mine[:, 0], chosen[:QUERIES])))]
    tags = np.empty(len(mine), dtype=object)
    tags[:] = [tuple(np.flatnonzero(genres[film]).tolist()) for film in mine[:, 1]]
    features = np.column_stack([genres[mine[:, 1]], np.log1p(count[mine[:, 1]])]).astype(float)
    films = Queries.from_arrays(features, mine[:, 2] - 1, qid=mine[:, 0], attributes={"genre": tags})
    films = films.select(range(QUERIES)), films.select(range(QUERIES, 2 * QUERIES))
    ((train, test),) = experts([1])
    people, base = (train.select(range(QUERIES)), test), Admissible(10, on_infeasible="truncate")
    cases = {f"ml-100k, at most {n} of a genre": (films, base.at_most(n, by="genre"), "genre") for n in (3, 4, 5)}
    ten = base.at_least(3, documents="protected")
    five = base.at_least(2, documents="protected", positions=range(5))
    cases["W3C, at least 3 protected of 10"] = (people, ten, "protected")
    cases["W3C, at least 2 protected of the first 5"] = (people, five, "protected")
    row = table("trained under", "seconds", "steps", "J", "proven bound", "other lists")
    for kind in ("hard", "soft"):
        for name, ((queries, others), constraints, rule) in run.size(cases, dict(list(cases.items())[3:4])).items():
            own = LargeMarginRanker(
                "nDCG(gain='linear')@10" if "W3C" in name else "nDCG@10", lam=0.001 if "W3C" in name else 1.0,
                bound="convex", max_iter=1000, w0="zeros", argmax_solver=(run.sets or ("auto",))[0],
                constraints=constraints if kind == "hard" else constraints.penalized(rule, penalty=0.02),
            )  # fmt: skip
            (seconds,) = least(2, lambda own=own, queries=queries: own.fit(queries))
            proof = own.certificate_
            row(f"{kind}, {name}", f"{seconds:.2f}", own.n_iter_, f"{proof.primal:.6f}", f"{proof.bound:.6f}",
                f"{own.score(others):.4f}")  # fmt: skip


@case(data=True)
def price_of_quota(run: Run) -> None:
    """The best list's value against a limit: genres on MovieLens (5 films), gender on W3C experts (10).

    Scores of a ridge, Σ s_π(i) / log2(i + 1); mean, spread, what is lost against the loosest limit, and its price."""

    def show(title: str, train: Queries, parts: list[Queries], one: Admissible, name: str, limits: range) -> None:
        own, problems = RegressionRanker().fit(train), []
        for queries in parts:
            scores = own.predict(queries)
            for start, stop in zip(queries.offsets[:-1], queries.offsets[1:], strict=True):
                labels = {at: queries.attributes[at][start:stop] for at in one.attributes}
                if stop - start < one.k or (run.quick and len(problems) > 10):
                    continue
                try:
                    loosest = float(limits[-1] if name == "genre" else 0.0)
                    limited = limit_of(one.for_query(labels, int(stop - start)), name).at(loosest)
                    weights = 1.0 / np.log2(np.arange(2.0, one.k + 2.0))
                    problems.append(constrained_ranking(np.outer(weights, scores[start:stop]), limited))
                except InfeasibleError:
                    continue
        curves, seconds = timed(lambda: sensitivity(problems, name, limits))
        each = 1e3 * seconds / len(problems) / len(curves.limits)
        print(f"\n{title}: {len(problems)} queries, {curves.shared} with a list at every limit, {each:.1f} ms a point")
        print(curves, flush=True)

    ((train, test),) = movielens([1])
    show("ml-100k", train, [test], Admissible(5).at_most(5, by="genre", name="genre"), "genre", range(1, 6))
    ((train, test),) = experts([1])
    for title, positions in (("of 10", range(10)), ("of the first 5", range(5))):
        one = Admissible(10).at_least(0, documents="protected", positions=positions, name="protected")
        show(f"W3C, protected {title}", train, [train, test], one, "protected", range(len(positions) + 1))


SETTINGS = [{"w0": start, "lam": lam} for start in ("zeros", "ridge") for lam in ("scale", 0.01)]


def chosen_fit(train: Queries, within: Admissible, **options: Any) -> LargeMarginRanker:
    """Start and λ chosen by two folds of the training queries, by the measure of the admissible lists."""

    def make(one: dict[str, Any]) -> LargeMarginRanker:
        return LargeMarginRanker(**options, **one)

    def validated(one: dict[str, Any]) -> float:
        return sum(make(one).fit(half.train).score(half.test, constraints=within) for half in folds(train, 2))

    return make(max(SETTINGS, key=validated)).fit(train)


def train_or_rerank_data(run: Run) -> Iterator[tuple[str, str, Admissible, list[tuple[Queries, Queries]]]]:
    example = runpy.run_path(str(ROOT / "examples" / "training_under_constraints.py"))
    make = example["product_searches"]
    drawn = [(make(40, seed), make(100, 1000 + seed)) for seed in range(run.size(5, 1))]
    yield "generated, one offer of each seller", "nDCG@5", example["one_each"], drawn
    relative = [tuple(relative_price(part) for part in pair) for pair in drawn]
    yield "the same, price relative to the seller's mean", "nDCG@5", example["one_each"], relative
    if run.quick or "RANKOPT_DATA" not in os.environ:
        return
    within = Admissible(5, on_infeasible="truncate").at_most(1, by="genre")
    yield "MovieLens 100k, 5 films of 5 genres", "nDCG@5", within, [*movielens((1, 2))]
    within = Admissible(10, on_infeasible="truncate").at_least(share=0.5, documents="protected")
    yield "W3C experts, half of each prefix protected", "nDCG(gain='linear')@10", within, [*experts()]
    within = Admissible(20, on_infeasible="truncate").at_least(share=0.5, documents="protected")
    yield "students, half of each prefix protected", "nDCG(gain='linear')@20", within, [*students()]


def relative_price(queries: Queries) -> Queries:
    offers = queries.features.reshape(-1, 8, 2)
    return queries.replace(features=(offers - offers.mean(axis=1, keepdims=True) * [1.0, 0.0]).reshape(-1, 2))


@case()
def train_or_rerank(run: Run) -> None:
    """Train under a set, or re-rank after training: the measure of the best admissible lists on test queries.

    Start and λ are chosen for each method; p is of the paired test over queries of all folds."""
    row = table("data", "queries", "measure", "no constraint", "re-ranked", "trained under it", "p")
    for name, measure, within, pairs in train_or_rerank_data(run):
        found: dict[str, list[float]] = {"no constraint": [], "re-ranked": [], "trained": []}
        for train, test in pairs:
            free = chosen_fit(train, within, measure=measure)
            under = chosen_fit(train, within, measure=measure, constraints=within)
            for one in (test.select([q]) for q in range(len(test))):
                found["no constraint"].append(free.score(one))
                found["re-ranked"].append(free.score(one, constraints=within))
                found["trained"].append(under.score(one))
        means = [f"{np.mean(values):.4f}" for values in found.values()]
        row(name, len(found["trained"]), measure, *means, p_value(found["trained"], found["re-ranked"], 4))


@case()
def versions(run: Run) -> None:
    """Record rows to compare two versions of HiGHS: `--output rows.jsonl`, then `rankopt swap --baseline rows.jsonl`.

    Relaxations of rankings under overlapping groups, and small programs with integer and real variables; HiGHS by
    default, by its interior-point method, and with presolve always on."""

    def relaxed(seed: int) -> LinearProgram:
        rng = np.random.default_rng(seed)
        n = int(rng.integers(40, 200))
        one = RankingSet(n, 10)
        for group in rng.random((8, n)) < 0.2:
            one = one.at_most(2, documents=group)
        profit = np.outer(1.0 / np.log2(np.arange(2.0, 12.0)), rng.normal(size=n)) + 0.1 * rng.normal(size=(10, n))
        return restated(constrained_ranking(profit, one), LinearProgram)

    def mixed(seed: int) -> LinearProgram:
        rng = np.random.default_rng(seed)
        n, m = int(rng.integers(2, 6)), int(rng.integers(1, 4))
        matrix, integer = rng.integers(0, 4, (m, n)).astype(float), rng.random(n) < 0.5
        lower = rng.integers(0, 9, m) + 0.5 * rng.integers(0, 2, m)
        integer[:2] = True, False
        sides = np.minimum(lower, 10 * matrix.sum(axis=1)), np.full(m, np.inf), np.zeros(n), np.full(n, 10.0)
        cost = rng.integers(1, 9, n).astype(float)
        return LinearProgram(cost, matrix, *sides, is_maximization=False, integer=integer)

    solvers = ("highs", "highs(method='ipm')", "highs(presolve='on')")
    problems = [relaxed(seed) for seed in range(run.size(12, 1))] + [mixed(seed) for seed in range(run.size(120, 3))]
    swap = SolverSwap(
        problems,
        argmax_solvers=solvers,
        master_solvers=(),
        repeats=run.size(5, 1),
        limits=Limits(problem=20.0, trace=200.0),
    )
    rows, row = swap.run(run.output), table("solver", "version", "answers")
    for solver in solvers:
        own = [one for one in rows if one.solver == solver]
        words = [one.status.words for one in own]
        counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
        row(solver, next(one.version for one in own if one.version), counts)
