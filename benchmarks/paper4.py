"""Which criterion should be trained? The tables of paper 4 on our data.

    RANKOPT_DATA=folder python benchmarks/paper4.py criteria [MQ2008 | OHSUMED]    Figure 9, with Figure 7 in it
    RANKOPT_DATA=folder python benchmarks/paper4.py strength [MQ2008 | OHSUMED]    Figures 4 to 6
    RANKOPT_DATA=folder python benchmarks/paper4.py time                           Figure 8
    RANKOPT_DATA=folder python benchmarks/paper4.py start                          where φ_mrr goes from its start

Documents are relevant or not (grade above 0). The splits are those of `accuracy_sets.py`; in each, a third of the
queries to learn from is left out, on which λ is chosen by the criterion that is trained, of four multiples of the
natural one; then all are trained on. Nobody sees the test queries. Queries without relevant documents are left out of
the means, ties are averaged. p: paired randomisation test over the test queries of all splits against the first row.
Figure 9 of the paper has NDCG@10 alone as the test.
"""

from __future__ import annotations

import sys
import warnings
from time import process_time
from typing import Any

import numpy as np
from accuracy_sets import Split, folds, sets
from scipy.optimize import linear_sum_assignment

from formulations import solve_batch
from formulations.solvers import get_solver
from rankopt.data import Queries
from rankopt.evaluation.comparison import compare
from rankopt.losses.regret import RegretBound
from rankopt.measures import evaluate
from rankopt.optimize.certificate import Stop
from rankopt.rankers import LargeMarginRanker, RegressionRanker
from rankopt.rankers.deployment import as_arranged
from rankopt.rankers.starts import unit_of

warnings.simplefilter("ignore")

SIZES = (10.0, 1.0, 0.1, 0.01)
"""λ that are tried, in units of the natural one."""

TESTS = ("AUC", "AP", "RR", "nDCG@10")

MIX = "AP + nDCG@10 + RR"

CRITERIA = (
    ("AUC", "pairwise"), ("AP", "pairwise"), ("RR", "pairwise"), ("RR", "first-relevant"), ("nDCG@10", "pairwise"),
    ("nDCG", "pairwise"), (MIX, "pairwise"), (f"({MIX})(slack='shared')", "pairwise"), ("AP", "positional"),
    ("RR", "positional"), ("nDCG@10", "positional"), (MIX, "positional"),
)  # fmt: skip


def binary(queries: Queries) -> Queries:
    """Grades above 0 as 1."""
    return Queries.from_arrays(
        queries.features,
        (queries.relevance > 0).astype(float),
        qid=np.repeat(range(len(queries)), np.diff(queries.offsets)),
    )


def splits(name: str) -> list[Split]:
    return [Split(binary(split.train), binary(split.test)) for split in sets()[name]]


def chosen(split: Split, measure: str, map_: str, bound: str) -> tuple[LargeMarginRanker, float]:
    """The ranker at the λ that is best on the queries left out, and that λ in units of the natural one."""
    inner = next(folds(split.train, 3))
    ranker = LargeMarginRanker(measure, feature_map=map_, bound=bound, max_iter=300)
    natural = ranker.objective(inner.train).lam
    path = ranker.path(inner.train, lams=[size * natural for size in SIZES])
    best = max(path.models, key=lambda model: model.score(inner.test)).lam_ / natural
    ranker.lam = best * ranker.objective(split.train).lam
    return ranker.fit(split.train), best


def criteria(name: str) -> None:
    """Mean test measures of each trained criterion."""
    print(f"\n{name}, {sum(len(split.test) for split in splits(name))} test queries\n")
    print("| trained | map | bound | " + " | ".join(TESTS) + " | λ | at w0 | seconds |")
    print("|---" * (len(TESTS) + 6) + "|")
    first: list[Any] = []
    for measure, map_, bound in [("ridge", "", ""), *((m, f, b) for b in ("convex", "nonconvex") for m, f in CRITERIA)]:
        values: list[list[float]] = [[] for _ in TESTS]
        lams, idle, began = [], 0, process_time()
        for split in splits(name):
            if measure == "ridge":
                scores = RegressionRanker().fit(split.train).predict(split.test.features)
            else:
                ranker, lam = chosen(split, measure, map_, bound)
                lams.append(f"{lam:g}")
                idle += ranker.certificate_.at_start
                scores = ranker.predict(split.test.features)
            for own, row in zip(values, evaluate(split.test, scores, TESTS).values, strict=True):
                own.extend(row[~np.isnan(row)])
        first = first or values
        cells = [f"{np.mean(own):.4f}" + mark(own, other) for own, other in zip(values, first, strict=True)]
        told = f"{measure} | {map_} | {bound} | " + " | ".join(cells)
        print(f"| {told} | {', '.join(lams)} | {idle} | {process_time() - began:.0f} |", flush=True)


def mark(own: list[float], other: list[float]) -> str:
    return "" if own == other else f" (p {compare(own, other).p_randomization:.2f})"


def strength(name: str) -> None:
    """Slack, objective and ‖w‖ of the convex bounds as C = 1 / (λ m) grows, on the first split."""
    queries = splits(name)[0].train
    print(f"\n{name}, convex bounds: mean slack, ‖w‖, and nDCG@10 on the training queries\n")
    sizes = (1e3, 1e2, 10.0, 1.0, 0.1, 0.01, 1e-3)
    print("| trained | map | " + " | ".join(f"λ / natural = {size:g}" for size in sizes) + " |")
    print("|---" * (len(sizes) + 2) + "|")
    for measure, map_ in CRITERIA:
        ranker = LargeMarginRanker(measure, feature_map=map_, bound="convex", max_iter=300)
        natural = ranker.objective(queries).lam
        cells = []
        for model in ranker.path(queries, lams=[size * natural for size in sizes]).models:
            length = float(np.linalg.norm(model.coef_))
            slack = model.certificate_.primal - model.lam_ / 2 * length**2
            reached = evaluate(queries, model.predict(queries.features), "nDCG@10").mean()
            cut = "" if model.certificate_.stop is Stop.GAP else "!"
            cells.append(f"{slack:.3f}{cut}, {length:.2g}, {reached:.3f}")
        print(f"| {measure} | {map_} | " + " | ".join(cells) + " |", flush=True)


def started() -> None:
    """RR over the first relevant document, from the ridge with margins of 1 or of 1 / f, f that of `rankers/starts.py`;
    how far the weights go, and RR before and after, the mean over the splits."""
    print("\n| data | margins of w0 | λ / natural | ‖w - w₀‖ / ‖w₀‖ | RR, training | RR, test |")
    print("|---" * 6 + "|")
    for name in ("digits", "Les Miserables", "MQ2008", "OHSUMED"):
        begun = []
        for split in splits(name):
            objective = LargeMarginRanker("RR", feature_map="first-relevant").objective(split.train)
            begun.append((split, objective.lam, objective.w0, np.sqrt(unit_of(objective.risk.shards))))
        for inward in (False, True):
            for size in (0.1, 0.5, 1.0, 10.0):
                rows = []
                for split, natural, w0, f in begun:
                    w0 = w0 / f if inward else w0
                    w = (
                        LargeMarginRanker("RR", feature_map="first-relevant", w0=w0, lam=size * natural)
                        .fit(split.train)
                        .coef_
                    )
                    reached = [
                        np.nanmean(evaluate(part, part.features @ weights, "RR").values)
                        for part in (split.train, split.test)
                        for weights in (w0, w)
                    ]
                    rows.append([np.linalg.norm(w - w0) / np.linalg.norm(w0), *reached])
                moved, *reached = np.mean(rows, axis=0)
                cells = " | ".join(
                    f"{one:.3f} to {other:.3f}" for one, other in zip(reached[::2], reached[1::2], strict=True)
                )
                print(f"| {name} | {'1 / f' if inward else '1'} | {size:g} | {moved:.2g} | {cells} |", flush=True)


def least(compute: Any, rounds: int = 5) -> float:
    """The least processor time of a few rounds, in milliseconds."""
    times = []
    for _ in range(rounds):
        began = process_time()
        compute()
        times.append(process_time() - began)
    return 1e3 * min(times)


def timed() -> None:
    """Milliseconds a query of the argmax and of a whole loss, beside a general assignment solver."""
    rng = np.random.default_rng(0)
    print("\nMilliseconds a query of the argmax, of the whole loss in brackets; 'sort' is NumPy's of the scores\n")
    print("| n | n₊ | sort | " + " | ".join(f"{a} {b}" for a, b in CRITERIA[:6]) + " | nDCG@10 positional | scipy |")
    print("|---" * 11 + "|")
    for n, good in ((100, 10), (1000, 10), (1000, 100), (1000, 500)):
        m = 50_000 // n
        grades = np.concatenate([rng.permutation(np.arange(n) < good) for _ in range(m)]).astype(float)
        queries = Queries.from_arrays(np.zeros((m * n, 1)), grades, qid=np.repeat(range(m), n))
        scores = rng.normal(size=m * n)
        sort = least(lambda scores=scores, n=n: np.argsort(-scores.reshape(-1, n), axis=1, kind="stable"))
        cells = [f"{sort / m:.3f}"]
        for measure, map_ in (*CRITERIA[:6], ("nDCG@10", "positional")):
            _, loss = RegretBound.named(measure, map_, "convex", "power(0.5)").from_queries(
                as_arranged(queries), get_solver("exact")
            )
            for _ in range(2):
                loss.at(scores)
            problem: Any = loss.argmax.problem  # type: ignore[attr-defined]
            alone = least(
                lambda problem=problem, scores=scores: solve_batch(problem.with_scores(scores), directed_rounding=False)
            )
            cells.append(f"{alone / m:.3f} ({least(lambda loss=loss, scores=scores: loss.at(scores)) / m:.3f})")
        one = problem.with_scores(scores)[0]
        profit = one.assignment().profit
        cells.append(f"{least(lambda profit=profit: linear_sum_assignment(profit, maximize=True), 2):.2f}")
        print(f"| {n} | {good} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    what, *names = sys.argv[1:]
    alone = {"time": timed, "start": started}
    if what in alone:
        alone[what]()
    for name in names or ([] if what in alone else ["MQ2008", "OHSUMED"]):
        {"criteria": criteria, "strength": strength}[what](name)
