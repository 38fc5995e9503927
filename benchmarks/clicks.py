"""Learning and evaluation from clicks that are simulated as usual in the literature.

A production ranker, a ridge of 1% of the training queries, shows all documents; users examine position p with
probability 1/p and click with probability .1 + .9 (2^y - 1)/(2^y_max - 1) [Joachims, Swaminathan and Schnabel
2017].
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cases import Run, case, ndcg, p_value, table
from benchmarks.data import Split, splits
from rankopt.clicks import ClickLog, PositionBias, click_probability, evaluate_policy, simulate_clicks
from rankopt.data import Queries
from rankopt.measures import evaluate
from rankopt.rankers import LargeMarginRanker, RegressionRanker

ALL = 1000  # positions: more than any query has documents
TRUE = PositionBias.from_power(1.0, ALL)
DCG = "DCG(gain='linear')@10"


def named(queries: Queries) -> Queries:
    return queries.replace(document_ids=tuple(range(queries.n_documents)))


def production(split: Split, seed: int) -> Any:
    """A ranker of 1% of the queries, at least 2, that have something to order."""
    random = np.random.default_rng(seed)
    count = max(2, len(split.train) // 100)
    for _ in range(100):
        chosen = split.train.select(np.sort(random.choice(len(split.train), count, replace=False)))
        if (chosen.relevance > 0).any():
            return RegressionRanker().fit(chosen)
    raise RuntimeError("no query has a relevant document")


def unbiased_by_xgboost(log: ClickLog, test: Queries, seed: int) -> np.ndarray:
    """Scores of the test queries by lambdarank with unbiased gradients; every session is a list of its clicks."""
    import xgboost

    random = np.random.default_rng(seed)
    rows, clicks, qid, number = [], [], [], 0
    query = log.queries.query_of(np.arange(log.queries.n_documents))
    for q in range(len(log.queries)):
        records = np.flatnonzero(query[log.rows] == q)
        records = records[np.argsort(log.positions[records])]
        sessions = int(log.sessions[q])
        if not records.size or not sessions:
            continue
        clicked = np.zeros((sessions, records.size), dtype=bool)
        for at, record in enumerate(records):
            clicked[random.permutation(sessions)[: log.clicked[record]], at] = True
        some = np.flatnonzero(clicked.any(axis=1))
        rows.append(np.tile(log.rows[records], some.size))
        clicks.append(clicked[some].ravel())
        qid.append(np.repeat(number + np.arange(some.size), records.size))
        number += some.size
    data = xgboost.DMatrix(
        log.queries.features[np.concatenate(rows)], np.concatenate(clicks).astype(float), qid=np.concatenate(qid)
    )
    options = {
        "objective": "rank:ndcg", "lambdarank_unbiased": True, "lambdarank_pair_method": "topk", "max_depth": 4,
        "lambdarank_num_pair_per_sample": 10, "ndcg_exp_gain": False, "eta": 0.1, "nthread": 1, "seed": seed,
        "verbosity": 0,
    }  # fmt: skip
    return xgboost.train(options, data, 100, verbose_eval=False).predict(xgboost.DMatrix(test.features)).astype(float)


def gains(log: ClickLog, how: str) -> Queries:
    """Click rates for "naive", estimates of relevance for others."""
    bias = PositionBias(np.ones(ALL)) if how == "naive" else TRUE
    return log.gains(bias, "ips" if how == "naive" else how)


@case(packages=("xgboost",))
def learning(run: Run) -> None:
    """Test nDCG@10 by the number of sessions: naive, IPS, doubly robust, XGBoost unbiased, full information.

    p: of the paired randomization test of IPS against naive."""
    names = run.chosen(run.size(["MQ2008", "OHSUMED"], ["digits"]))
    sizes = run.size([1000, 10_000, 100_000, 1_000_000, 10_000_000], [1000])
    largest = {"MQ2008": 100_000}  # sessions for XGBoost, whose lists are sessions; others: 10,000
    row = table("set", "sessions", "production", "naive", "IPS", "DR", "XGBoost unbiased", "full information", "p")
    for name in names:
        if name != "digits" and "RANKOPT_DATA" not in os.environ:
            continue
        parts = splits(name)

        def scored(learn: Callable[[Split, int], np.ndarray], seed: int, parts: list[Split] = parts) -> list[float]:
            return np.concatenate([ndcg(part.test, learn(part, seed)) for part in parts]).tolist()

        def full(part: Split, seed: int) -> np.ndarray:
            truth = named(part.train).with_gains(click_probability(part.train.relevance))
            return LargeMarginRanker("DCG@10").fit(truth).predict(part.test)

        def by_clicks(how: str, sessions: int) -> Callable[[Split, int], np.ndarray]:
            def learn(part: Split, seed: int) -> np.ndarray:
                log = simulate_clicks(
                    named(part.train), production(part, seed), sessions=sessions, positions=ALL, random_state=seed
                )
                if how == "XGBoost":
                    return unbiased_by_xgboost(log, part.test, seed)
                found = gains(log, how)
                return LargeMarginRanker("DCG@10").fit(found, query_weight=log.sessions).predict(part.test)

            return learn

        def mean(how: str, sessions: int, name: str = name) -> np.ndarray:
            learn = {
                "production": lambda part, seed: production(part, seed).predict(part.test), "full": full,
            }.get(how) or by_clicks(how, sessions)  # fmt: skip
            return np.mean(
                [run.results.get(lambda s=seed: scored(learn, s), "learning", name, how, sessions, seed)
                 for seed in range(run.seeds)], axis=0,
            )  # fmt: skip

        first, last = mean("production", 0), mean("full", 0)
        for sessions in sizes:
            found = {how: mean(how, sessions) for how in ("naive", "ips", "dr")}
            theirs = f"{mean('XGBoost', sessions).mean():.4f}" if sessions <= largest.get(name, 10_000) else ""
            row(name, f"{sessions:,}", f"{first.mean():.4f}", *(f"{one.mean():.4f}" for one in found.values()), theirs,
                f"{last.mean():.4f}", p_value(found["ips"], found["naive"], 3))  # fmt: skip


def interventions(sessions: int, seed: int, shift: float = 1.0) -> ClickLog:
    """Sessions of three rankers of the bundled digits, 5 positions; with shift 0, of one ridge of one query."""
    train, random = named(splits("digits")[0].train), np.random.default_rng(seed)
    if not shift:
        one = RegressionRanker().fit(train.select([seed % len(train)]))
        return simulate_clicks(train, one, sessions=sessions, positions=5, random_state=seed)
    rankers = [train.features[:, 0] + shift * random.normal(size=train.n_documents) for _ in range(3)]
    return simulate_clicks(train, rankers, sessions=sessions, positions=5, random_state=seed)


@case()
def propensities(run: Run) -> None:
    """Error of estimated propensities by the number of sessions, and coverage of 95% intervals, where there is one.

    Three rankers, 5 positions; in the last row one ranker, whose swaps identify nothing."""
    true, tries = 1 / np.arange(1, 6), run.count(60, 2)
    row = table("sessions", "swaps: mean error", "coverage", "EM: mean error", "coverage")
    estimators = {
        "swaps": lambda log, seed: PositionBias.from_swaps(log, resamples=100, random_state=seed),
        "EM": lambda log, seed: PositionBias.from_em(log, resamples=20, random_state=seed),
    }

    def measured(how: str, sessions: int, shift: float, seed: int) -> list[list[float]]:
        one = estimators[how](interventions(sessions, seed, shift), seed)
        return [values[1:].tolist() for values in (one.propensities, one.low, one.high)]

    def cells(how: str, sessions: int, shift: float = 1.0) -> list[str]:
        key = ["propensities", how, sessions, *([] if shift else ["one ranker"])]
        found = [run.results.get(partial(measured, how, sessions, shift, seed), *key, seed) for seed in range(tries)]
        e, low, high = np.moveaxis(np.array(found), 1, 0)
        error, known = np.nanmean(np.abs(e - true[1:])), ~np.isnan(low)
        return [f"{error:.3f}", f"{((low <= true[1:]) & (true[1:] <= high))[known].mean():.2f}"]

    sizes = run.size([1000, 10_000, 100_000], [1000])
    for sessions in sizes:
        row(f"{sessions:,}", *cells("swaps", sessions), *cells("EM", sessions))
    row(f"{sizes[-1]:,}, one ranker", "", "", *cells("EM", sizes[-1], shift=0.0))


@case()
def policies(run: Run) -> None:
    """Estimators of the value of another ranker: bias, deviation, coverage of 95% intervals over simulated logs.

    Logs of 2,000 sessions of a stochastic ranker (temperature 1) of the digits, cut at 10 of 80 documents."""
    tries = run.count(1000, 5)
    train = named(splits("digits")[0].train.grouped())
    logging, new = train.features[:, 0], RegressionRanker().fit(train).predict(train)
    truth = train.with_gains(click_probability(train.relevance))
    per = evaluate(truth, new, DCG).values[0]
    found: dict[str, list[tuple[float, float, float, float]]] = {}
    for seed in range(tries):
        chosen = np.sort(np.random.default_rng(seed).choice(len(train), 30, replace=False))  # intervals: over queries
        part, rows = train.select(chosen), np.isin(train.query_of(np.arange(train.n_documents)), chosen)
        log = simulate_clicks(part, logging[rows], sessions=2000, temperature=1.0, random_state=seed)
        for estimator in ("ips", "clipped", "snips", "dr"):
            one = evaluate_policy(log, new[rows], propensities=TRUE, estimator=estimator, clip=0.1)
            found.setdefault(estimator, []).append((one.value, one.low, one.high, one.without_support))
    row = table("estimator", "true value", "bias", "deviation", "coverage", "without support")
    for estimator, values in found.items():
        value, low, high, without = np.array(values).T
        row(estimator, f"{per.mean():.3f}", f"{value.mean() - per.mean():+.3f}", f"{value.std(ddof=1):.3f}",
            f"{np.mean((low <= per.mean()) & (per.mean() <= high)):.3f}", f"{without.mean():.3f}")  # fmt: skip
