"""Training under a set of admissible rankings against re-ranking afterwards and against MMR, on real data.

    RANKOPT_DATA=folder python benchmarks/diversity.py

MovieLens 100k, folds u1 to u5: a query is a user, documents are the films that the user rated; half of the training
ratings make features, the other half grades. The set: 5 films, at most one of a genre (the rarest genre of each film).
TREC W3C experts, 6 folds: 10 experts, at least 3 of them of the protected group (gender).

λ is chosen for each method on a fifth of the training queries, by nDCG of the admissible lists, and the model is fitted
again on all of them. What is measured is the list that is shown and nothing behind it; nDCG keeps its normaliser over
all documents. MMR re-ranks the scores of the method trained without the set, penalty 1 for a repeated block.
p: paired t-test of the means of each query over the folds against training under the set.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from movielens_films import queries as film_queries
from movielens_films import read_lines, read_ratings
from scipy.stats import ttest_rel

from formulations import constrained_ranking, solve
from rankopt.constraints import Admissible
from rankopt.data import Queries
from rankopt.measures import parse
from rankopt.rankers import LargeMarginRanker, RegressionRanker

OPTIONS = {"w0": "regression", "tol": 3e-3, "time_limit": 60.0}
LAMS = (1.0, 0.1, 0.01, 0.001)
MMR = (0.95, 0.9, 0.8, 0.6)
"""The weight of relevance; scores are brought to [0, 1] within a query."""

Values = dict[str, dict[object, list[tuple[float, int]]]]
"""method → query → (nDCG of its list, violations) of each fold."""


def movielens(folder: Path) -> list[tuple[Queries, Queries]]:
    pairs = []
    for fold in range(1, 6):
        base, test = (read_ratings(folder / f"u{fold}.{part}.gz") for part in ("base", "test"))
        half = np.random.default_rng(fold).random(len(base)) < 0.5
        pairs.append((film_queries(base[half], base[~half], folder), film_queries(base, test, folder)))
    return pairs


def experts(folder: Path) -> list[tuple[Queries, Queries]]:
    return [tuple(_experts(folder / f"fold_{f}" / f"{part}.csv.gz") for part in ("train", "test")) for f in range(1, 7)]


def _experts(file: Path) -> Queries:
    rows = np.array([line.split(",") for line in read_lines(file)], dtype=float)
    attributes = {"protected": rows[:, 1] == 1.0}
    return Queries.from_arrays(rows[:, 2:-1], rows[:, -1], qid=rows[:, 0].astype(int), attributes=attributes)


DATA = {
    "MovieLens 100k, 5 films of 5 genres": (
        movielens, "ml-100k", "nDCG@5", Admissible(5, on_infeasible="truncate").at_most(1, by="genre"), "genre",
    ),
    "W3C experts, 10 with 3 of the protected group": (
        experts, "deltr-w3c-experts", "nDCG(gain='linear')@10",
        Admissible(10, on_infeasible="truncate").at_least(3, documents="protected"), "protected",
    ),
}  # fmt: skip


def scaled(train: Queries, test: Queries) -> tuple[Queries, Queries]:
    """Features in units of their deviation on the training data."""
    mean, deviation = train.features.mean(axis=0), train.features.std(axis=0)
    unit = np.where(deviation > 0, deviation, 1.0)
    return train.replace(features=(train.features - mean) / unit), test.replace(features=(test.features - mean) / unit)


def list_values(
    queries: Queries, orders: dict, measure: str, admissible: Admissible
) -> dict[object, tuple[float, int]]:
    """nDCG of the shown list, and how many rows of the set it breaks."""
    rule = parse(measure)
    gain = rule.gain(queries.relevance, queries.offsets)
    place, found = np.argsort(queries.input_order), {}
    for q, query in enumerate(queries.query_ids):
        low, high = queries.offsets[q : q + 2]
        rows = place[np.searchsorted(queries.input_order, orders[query], sorter=place)]
        one = admissible.for_query(
            {name: queries.attributes[name][low:high] for name in admissible.attributes}, high - low
        )
        shown = rows[: one.positions]
        broken = len(one.violations(shown - low)) if shown.size == one.positions else 1
        found[query] = float(rule.discount(high - low)[: shown.size] @ gain[shown]), broken
    return found


def mmr(queries: Queries, scores: np.ndarray, attribute: str, k: int, relevance: float) -> dict:
    """Maximal marginal relevance: greedily the document with the best score minus a penalty for a repeated block; for a
    group that wants more of its kind, the penalty falls on what does not belong to it."""
    found = {}
    scores = scores[queries.input_order]
    for q, query in enumerate(queries.query_ids):
        low, high = queries.offsets[q : q + 2]
        own, label = scores[low:high], queries.attributes[attribute][low:high]
        own = (own - own.min()) / max(np.ptp(own), 1e-12)
        left, shown = list(range(high - low)), []
        while left and len(shown) < k:
            held = [label[j] for j in shown]
            repeated = [
                np.mean([h == label[j] for h in held]) if label.dtype == bool and held else label[j] in held
                for j in left
            ]
            best = left[int(np.argmax(relevance * own[left] - (1 - relevance) * np.array(repeated, dtype=float)))]
            shown.append(best)
            left.remove(best)
        found[query] = queries.input_order[low + np.array(shown)]
    return found


def fitted(
    train: Queries, make: Callable[[float], LargeMarginRanker], judge: Callable
) -> tuple[LargeMarginRanker, float]:
    """The ranker with λ chosen on a fifth of the queries, fitted again on all."""
    rng = np.random.default_rng(0)
    held = rng.permutation(len(train)) % 5 == 0
    part, validation = train.select(~held), train.select(held)
    best = max(LAMS, key=lambda lam: judge(make(lam).fit(part), validation))
    return make(best).fit(train), best


def run(name: str, root: Path) -> None:
    load, folder, measure, admissible, attribute = DATA[name]
    values: Values = {}
    chosen: dict[str, list[float]] = {}
    for pair in load(root / folder):
        train, test = scaled(*pair)

        def within(ranker: LargeMarginRanker, queries: Queries) -> float:
            orders = ranker.rank(queries, constraints=admissible)
            return float(np.mean([value for value, _ in list_values(queries, orders, measure, admissible).values()]))

        def note(method: str, orders: dict, queries: Queries = test) -> None:
            for query, value in list_values(queries, orders, measure, admissible).items():
                values.setdefault(method, {}).setdefault(query, []).append(value)

        under, lam = fitted(
            train, lambda lam: LargeMarginRanker(measure, lam=lam, constraints=admissible, **OPTIONS), within
        )
        chosen.setdefault("trained under the set", []).append(lam)
        note("trained under the set", under.rank(test))
        free, lam = fitted(train, lambda lam: LargeMarginRanker(measure, lam=lam, **OPTIONS), within)
        chosen.setdefault("trained without, re-ranked under it", []).append(lam)
        note("trained without, re-ranked under it", free.rank(test, constraints=admissible))
        ridge = RegressionRanker(0.0, target="gain", intercept="all", measure=measure).fit(train)
        note("least squares, re-ranked under it", ridge.rank(test, constraints=admissible))
        note("trained without, no set", free.rank(test))
        note("least squares, no set", ridge.rank(test))
        for relevance in MMR:
            note(
                f"MMR({relevance:g}) of trained without",
                mmr(test, free.predict(test), attribute, admissible.k, relevance),
            )
    ours = np.array([np.mean([v for v, _ in found]) for found in values["trained under the set"].values()])
    print(f"\n{name}: {measure} of the list shown, {len(ours)} queries; lists that break the set; λ by fold\n")
    print("| method | measure | lists that break the set | p |\n|---|---|---|---|")
    for method, found in values.items():
        mean = np.array([np.mean([v for v, _ in found[query]]) for query in values["trained under the set"]])
        broken = [b > 0 for seen in found.values() for _, b in seen]
        compared = method != "trained under the set" and not any(broken)  # lists that keep the set, with lists that do
        p = f"{ttest_rel(ours, mean).pvalue:.3f}" if compared else ""
        print(f"| {method} | {mean.mean():.4f} | {sum(broken)} of {len(broken)} | {p} |")
    print()
    print(
        "; ".join(f"{method}: λ = {', '.join(f'{lam:g}' for lam in lams)}" for method, lams in chosen.items()),
        flush=True,
    )


def overlapping(root: Path) -> None:
    """Ten films, at most two of any genre, a film counting for all its genres: not totally unimodular. How each user's
    list was found, and what the relaxation would have promised."""
    admissible = Admissible(10, on_infeasible="truncate").at_most(2, by="genres")
    ways: Counter[str] = Counter()
    promised, lost, shown = [], [], []
    for pair in movielens(root / "ml-100k"):
        train, test = scaled(*pair)
        free = RegressionRanker(0.0, target="gain", intercept="all", measure="nDCG@10").fit(train)
        scores = free.predict(test)[test.input_order]
        gain, sets = parse("nDCG@10").gain(test.relevance, test.offsets), admissible.for_queries(test)
        for q, one in enumerate(sets):
            rows = slice(*test.offsets[q : q + 2])
            weights = 1 / np.log2(np.arange(2, one.positions + 2))
            problem = constrained_ranking(np.outer(weights, scores[rows]), one)
            solution = solve(problem)
            relaxed = solve(problem.linear_program(), "highs").value
            ways[solution.solver] += 1
            promised.append(relaxed - solution.value > problem.rounding + 1e-9)
            assert one.is_feasible(solution.order)
            shown.append(float(weights @ gain[rows][solution.order]))
            lost.append(float(weights @ gain[rows][np.argsort(-scores[rows])[: one.positions]]))
    print(f"\n10 films, at most 2 of any genre: nDCG@10 {np.mean(shown):.4f}, {np.mean(lost):.4f} without the set")
    print(f"{sum(promised)} of {len(promised)} relaxations are fractional; {dict(ways)}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name in DATA:
        run(name, Path(os.environ["RANKOPT_DATA"]))
    overlapping(Path(os.environ["RANKOPT_DATA"]))
