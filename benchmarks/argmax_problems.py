"""The argmax problems of real training runs: data sets, measures and decays, and points along a short run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from movielens_films import queries as film_queries
from movielens_films import read_ratings

from formulations import ranking
from formulations.problems.ranking import RankTwoBatch
from rankopt.data import Queries, concatenate, read_svmlight
from rankopt.losses.position_weights import parse_position_weights
from rankopt.measures.notation import parse
from rankopt.rankers import LargeMarginRanker

MEASURES = ("nDCG", "nDCG@10", "P@5", "ERU")
DECAYS = ("linear", "power(0.25)", "power(0.5)", "power(1)", "log")
POINTS = ("w = 0", "start", "middle", "end")
STEPS = 24


def mq2008(folder: Path) -> Queries:
    return concatenate([read_svmlight(folder / "letor4-mq2008" / f"S{i}.txt.gz") for i in (1, 2, 3)])


def ohsumed(folder: Path) -> Queries:
    return read_svmlight(folder / "letor3-ohsumed" / "QueryLevelNorm" / "Fold1" / "train.txt.gz")


def mslr(folder: Path) -> Queries:
    queries = read_svmlight(folder / "mslr-web30k-sample" / "train.txt.gz")
    spread = queries.features.std(axis=0)
    features = (queries.features - queries.features.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return Queries.from_arrays(features, queries.relevance, qid=np.repeat(np.arange(len(queries)), lengths(queries)))


def films(folder: Path) -> Queries:
    """The larger part of the ratings is asked, features come from the smaller one: long queries."""
    asked, known = (read_ratings(folder / "ml-100k" / f"u1.{part}.gz") for part in ("base", "test"))
    return film_queries(known, asked, folder / "ml-100k")


def drawn(sizes: tuple[int, ...], below: tuple[float, ...] = (0.52, 0.84, 0.97, 0.99)) -> Queries:
    """Grades 0 to 4 from a noisy linear score, by default each as frequent as on MSLR-WEB30K."""
    random, total = np.random.default_rng(7), sum(sizes)
    features = random.normal(size=(total, 20))
    height = features @ random.normal(size=20) / np.sqrt(20) + 0.7 * random.normal(size=total)
    grades = np.searchsorted(np.quantile(height, below), height)
    return Queries.from_arrays(features, grades.astype(float), qid=np.repeat(np.arange(len(sizes)), sizes))


def generated(folder: Path) -> Queries:
    return drawn((100, 100, 200, 200, 400, 700, 1000, 2000))


def thousand(folder: Path) -> Queries:
    return drawn((1000, 1000, 1000))


def even(folder: Path) -> Queries:
    """Grades that are equally frequent."""
    return drawn((1000, 1000, 1000), (0.2, 0.4, 0.6, 0.8))


SETS: dict[str, Callable[[Path], Queries]] = {
    "MQ2008": mq2008, "OHSUMED": ohsumed, "MSLR": mslr, "MovieLens": films, "generated": generated,
}  # fmt: skip


def lengths(queries: Queries) -> np.ndarray:
    return np.diff(queries.offsets)


def notation(measure: str, data: str) -> str:
    """Expected utility needs to know what a neutral grade is: 2 of 5 stars, else 0."""
    return measure.replace("ERU", "ERU(d=2)" if data == "MovieLens" else "ERU(d=0)")


def trials(queries: Queries, measure: str, position_weights: str) -> list[np.ndarray]:
    """w at `POINTS` of a short run from least squares: zero, least squares, in the middle, the last."""
    seen: list[np.ndarray] = []
    LargeMarginRanker(
        measure,
        position_weights=position_weights,
        w0="regression",
        lam=0.1,
        max_iter=STEPS,
        callbacks=[lambda step, state: seen.append(state.trial)],
    ).fit(queries)
    return [np.zeros(queries.n_features), seen[0], seen[len(seen) // 2], seen[-1]]


def posed(queries: Queries, measure: str, position_weights: str, w: np.ndarray) -> RankTwoBatch:
    """The problems at w of the queries that have something to order."""
    named, weights = parse(measure), parse_position_weights(position_weights)
    gain = named.gain(queries.relevance, queries.offsets)
    starts = queries.offsets[:-1]
    part = queries.select(np.flatnonzero(np.maximum.reduceat(gain, starts) > np.minimum.reduceat(gain, starts)))
    return ranking(
        part.features @ w, named.gain(part.relevance, part.offsets), offsets=part.offsets,
        discount=named.discount, position_weights=lambda n: weights.weights(n, named),
    )  # fmt: skip


def rows(batch: RankTwoBatch, query: int) -> slice:
    return slice(int(batch.offsets[query]), int(batch.offsets[query + 1]))


def profits(batch: RankTwoBatch, query: int) -> np.ndarray:
    """What each document earns at each position of a query, positions × documents."""
    own = rows(batch, query)
    return np.outer(batch.position_weights[own], batch.scores[own]) - np.outer(batch.discount[own], batch.gain[own])


def largest(batch: RankTwoBatch) -> np.ndarray:
    """A bound on the largest profit of each query, in magnitude."""
    most = [
        np.maximum.reduceat(np.abs(getattr(batch, name)), batch.offsets[:-1])
        for name in ("position_weights", "scores", "discount", "gain")
    ]
    return most[0] * most[1] + most[2] * most[3]


def part(batch: RankTwoBatch, queries: np.ndarray) -> RankTwoBatch:
    """The problems of these queries, in this order."""
    kept = np.concatenate([np.arange(batch.offsets[q], batch.offsets[q + 1]) for q in queries])
    offsets = np.append(0, np.cumsum(np.diff(batch.offsets)[queries]))
    return RankTwoBatch(
        batch.scores[kept], batch.gain[kept], batch.discount[kept], batch.position_weights[kept], offsets
    )
