"""Coordinate ascent on the measure itself, and exact line search.

nDCG@10, queries without relevant documents count 0. Seconds are processor seconds of one thread.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.cases import Run, case, least, ndcg, p_value, table, timed
from benchmarks.data import letor, mq2008, set_names, splits
from formulations.parallel import at_most
from rankopt.data import Queries
from rankopt.measures import parse
from rankopt.optimize import LineSearch
from rankopt.rankers import (
    DirectRanker,
    LargeMarginRanker,
    PairwiseRanker,
    RegressionRanker,
    SmoothRanker,
)
from rankopt.risk.along_line import line_data
from rankopt.scorers.linear import linear_scores
from rankopt.sweeps.step_function import best_interval, window_point
from rankopt.sweeps.sweep import LineSweep

MEASURE, BASE = "nDCG@10", "large margin"
SOME = ("MQ2008", "OHSUMED", "MSLR", "LightGBM")
serial_search = partial(LineSearch.from_measure, MEASURE, engine="serial")


class SampledSteps:
    """Coordinate ascent by steps that are tried, as RankLib does: ±.05 |w_j|, doubled, 25 a coordinate, 25 rounds."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, queries: Queries) -> SampledSteps:
        search, rng = serial_search(queries), np.random.default_rng(self.seed)
        (shard,), w = search.shards, np.full(search.features, 1.0 / search.features)
        columns, scores = shard.scorer.columns(np.arange(search.features)), line_data(shard, w).scores
        value = shard.loss.value(scores)
        for _ in range(25):
            before = value
            for j in rng.permutation(search.features):
                size = 0.05 * (abs(w[j]) or 1.0)
                steps = [sign * size * 2.0**i for sign in (1, -1) for i in range(12)] + [-w[j]]
                reached = [shard.loss.value(scores + t * columns[j]) for t in steps]
                top = int(np.argmax(reached))
                if reached[top] > value:
                    value, scores = reached[top], scores + steps[top] * columns[j]
                    w[j] += steps[top]
            if value < before + 1e-3 * before:
                break
        self.coef_ = w
        return self


def direct(**options: Any) -> Callable[[int], DirectRanker]:
    return lambda seed: DirectRanker(MEASURE, engine="serial", random_state=seed, **options)


margin = LargeMarginRanker(MEASURE, engine="serial")
RANKERS: dict[str, Callable[[int], Any]] = {
    "ridge": lambda seed: RegressionRanker(),
    "RankSVM": lambda seed: PairwiseRanker(engine="serial"),
    BASE: lambda seed: LargeMarginRanker(MEASURE, engine="serial"),
    "smooth": lambda seed: SmoothRanker(MEASURE, engine="serial"),
    "sampled steps": SampledSteps,
    "direct, zeros": direct(init="zeros"),
    "direct, ridge": direct(init="ridge"),
    "direct, large margin": direct(init=margin),
    "direct, smooth": direct(init="smooth"),
    "direct, ridge, mean of 8": direct(init="ridge", n_restarts=8),
    "direct, smooth, mean of 8": direct(init="smooth", n_restarts=8),
}


def values(queries: Queries, w: np.ndarray) -> np.ndarray:
    return ndcg(queries, linear_scores(queries.features, w))


def value(queries: Queries, w: np.ndarray) -> float:
    return float(values(queries, w).mean())


@case()
def accuracy(run: Run) -> None:
    """Training and test measure of ascents next to the rest, p against the large margin; epsilon; predicted steps."""
    labels, counts = run.size(list(RANKERS), ["ridge", BASE, "direct, ridge"]), defaultdict(lambda: [0, 0, 0.0])

    def fitted(name: str, label: str) -> dict[str, Any]:
        found: dict[str, Any] = {"train": [], "test": [], "epsilon": [], "apart": []}
        for split in splits(name):
            with at_most(1):
                own = RANKERS[label](0).fit(split.train)
            found["train"].append(value(split.train, own.coef_))
            found["test"] += values(split.test, own.coef_).tolist()
            found["epsilon"].append(getattr(getattr(own, "certificate_", None), "epsilon", None))
            history = getattr(own, "history_", None)
            if hasattr(history, "predicted"):
                found["apart"] += np.abs(history.predicted - history.value).tolist()
        return found

    for name in set_names(run, SOME):
        row, base = table(name, "train", "test", "p", "epsilon", "s a fit"), None
        found = {label: run.results.timed(lambda name=name, label=label: fitted(name, label), "direct", name, label)
                 for label in labels}  # fmt: skip
        base = found[BASE][0]["test"]
        for label, (own, seconds) in found.items():
            epsilon = "" if None in own["epsilon"] else f"{np.mean(own['epsilon']):.0e}"
            test, fits = f"{np.mean(own['test']):.4f}", len(own["train"])
            row(label, f"{np.mean(own['train']):.4f}", test, p_value(own["test"], base), epsilon,
                f"{seconds / fits:.1f}")  # fmt: skip
            apart = np.array(own["apart"])
            old = counts[name]
            most = max(old[2], float(apart.max(initial=0.0)))
            counts[name] = [old[0] + apart.size, old[1] + int((apart <= 1e-12).sum()), most]
    row = table("accepted steps", "steps", "predicted as measured, to 1e-12", "largest difference")
    for name, (steps, equal, apart) in counts.items():
        row(name, f"{steps:,}", f"{equal:,}", f"{apart:.0e}")


@case()
def race(run: Run) -> None:
    """Sampled steps and exact lines from the same start: when exact lines are as high as sampled steps end."""
    row = table("data", "sampled reach", "s", "exact reach", "s", "s until as high", "times")
    for name in set_names(run, ("MQ2008", "OHSUMED")):
        rows = []
        for split in splits(name):
            queries = split.train
            with at_most(1):
                sampled, spent = timed(lambda q=queries: SampledSteps().fit(q))
                level = serial_search(queries).value(sampled.coef_)
                even = np.full(queries.n_features, 1.0 / queries.n_features)
                exact, seconds = timed(lambda q=queries, w=even: direct(init=w, step_rule="middle")(0).fit(q))
            history, first = exact.history_, np.flatnonzero(exact.history_.value >= level)
            lines = exact.n_iter_ * queries.n_features
            until = seconds * history.lines[first[0]] / lines if first.size else np.nan
            rows.append([level, spent, exact.certificate_.value, seconds, until, spent / until])
        row(name, *(f"{mean:.4g}" for mean in np.nanmean(rows, axis=0)))


# Exact line search.


def generated(queries: int = 100, documents: int = 120, features: int = 12, counts: bool = False) -> Queries:
    """Queries of about so many documents, grades in MSLR's shares; with `counts` half of the columns are counts."""
    rng = np.random.default_rng(0)
    sizes = np.maximum(2, rng.integers(documents // 2, documents + documents // 2 + 1, queries))
    X = rng.normal(size=(int(sizes.sum()), features))
    if counts:
        X[:, : features // 2] = np.round(np.exp(X[:, : features // 2]) * 3)
        X[:, features // 4 : features // 2] *= rng.random((len(X), features // 2 - features // 4)) < 0.2
    truth = X @ (rng.normal(size=features) / X.std(axis=0)) + 3 * rng.normal(size=len(X))
    grades = np.searchsorted(np.quantile(truth, [0.52, 0.84, 0.975, 0.993]), truth).astype(float)
    return Queries.from_arrays(X.astype(np.float32), grades, qid=np.repeat(np.arange(queries), sizes))


def sweep_of(measure: str, queries: Queries) -> LineSweep:
    rule = parse(measure)
    weights = np.where(rule.defined(queries.relevance, queries.offsets), 1.0, 0.0)
    return LineSweep(rule, queries.relevance, queries.offsets, weights / weights.sum())


@case()
def line_search(run: Run) -> None:
    """Microseconds a document and direction of an exact line search by measure, next to np.argsort of the columns.

    Twelve columns, scores of a ridge; sweep: all jumping points; best: the best interval; window: the point above the
    highest mean of a window. By turns, least of nine rounds."""
    measures = ("nDCG@5", "nDCG@10", "P@10", "RR", "AP", "ERR", "AP@10", "ERR@10", "AUC", "nDCG")
    data = {"MSLR's shape": generated(run.size(100, 10), features=40, counts=True)}
    if "RANKOPT_DATA" in os.environ and not run.quick:
        data |= {"MQ2008": mq2008((1,))[0], "OHSUMED": letor("letor2-ohsumed", (1,))[0]}
    heads = ("argsort, µs", "sweep, µs", "by argsort", "best interval, µs", "window, µs", "events a document")
    row = table("data", "measure", *heads)
    for name, queries in data.items():
        X = queries.features.toarray() if hasattr(queries.features, "toarray") else np.asarray(queries.features)
        columns = np.sort(np.random.default_rng(1).choice(X.shape[1], min(12, X.shape[1]), replace=False))
        scores = np.asarray(RegressionRanker(1.0).fit(queries).predict(queries.features), dtype=float)
        slopes, ranges = np.ascontiguousarray(X[:, columns].T, dtype=np.float64), list(pairwise(queries.offsets))

        def sort(slopes: np.ndarray = slopes, ranges: list = ranges) -> None:
            for line in slopes:
                for low, high in ranges:
                    np.argsort(line[low:high])

        for measure in run.size(measures, measures[:4]):
            sweep = sweep_of(measure, queries)
            with at_most(1):
                events = sweep.events(scores, slopes)
                jobs = (
                    sort, lambda s=sweep, a=scores, b=slopes: s.events(a, b),
                    lambda e=events: [best_interval(line) for line in e],
                    lambda e=events: [window_point(line, 0.1) for line in e],
                )  # fmt: skip
                found = [1e6 * seconds / slopes.size for seconds in least(run.size(9, 2), *jobs)]
            count = sum(line.times.size for line in events) / slopes.size
            sorting, sweeping, best, window = (f"{micros:.3f}" for micros in found)
            row(name, measure, sorting, sweeping, f"{found[1] / found[0]:.2f}", best, window, f"{count:.2f}")
