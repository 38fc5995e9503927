"""Training under sets, question by question and as a whole: quotas on nested groups, and genres that cross.

    python benchmarks/set_training.py argmax          # milliseconds a query and question, beside the usual solver
    python benchmarks/set_training.py training        # the same training by "auto" and by the usual solver

Drawn: 24 queries of 60 documents, 10 places: Π(B, k) with 20 sites; at most 2 of a site and 4 of a topic of sites; two
groups, at most 5 of each; 18 genres that cross, at most 3 of each. ml-100k: the rated films of 24 users with 40 to 150
ratings, 10 places, at most 3, 4, 5 of each genre; training on genres and counts of ratings,
on half of 48 users.
Processor time; of questions the least of four rounds.
"""

from __future__ import annotations

import gzip
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np

from formulations import RankingSet
from formulations.solvers.solver import Solver
from formulations.solving.set_batch import SetBatch, solve_sets
from rankopt.constraints import Admissible
from rankopt.data import Queries
from rankopt.rankers import LargeMarginRanker

K, USERS, ROUNDS = 10, 24, 3


class Drawn(NamedTuple):
    """Sets and sizes; scores of a batch come with the question."""

    sets: list[RankingSet]
    gain: np.ndarray
    offsets: np.ndarray


def made(kind: str) -> Drawn:
    """24 queries of 60 documents."""
    rng = np.random.default_rng(0)
    sets = []
    for _ in range(USERS):
        site, admissible = rng.integers(0, 20, 60), RankingSet(60, K)
        if kind == "Π(B, k)":
            admissible = admissible.at_most(1, by=site)
        elif kind == "nested":
            admissible = admissible.at_most(2, by=site, name="site").at_most(4, by=site // 4, name="topic")
        elif kind == "two groups":
            admissible = admissible.at_most(5, by=site % 2)
        else:
            for genre in range(18):
                admissible = admissible.at_most(3, documents=rng.random(60) < 0.12, name=f"genre {genre}")
        sets.append(admissible)
    return Drawn(sets, rng.integers(0, 4, 60 * USERS).astype(float), np.arange(0, 60 * USERS + 1, 60))


def films() -> tuple[np.ndarray, np.ndarray]:
    """Genre flags (films, 18), unknown left out, and ratings (user, film, rating, time)."""
    folder = Path(os.environ["RANKOPT_DATA"]) / "ml-100k"
    with gzip.open(folder / "u.item.gz", "rt", encoding="latin-1") as file:
        genres = np.array([[int(flag) for flag in line.rstrip("\n").split("|")[6:24]] for line in file])
    return genres, np.loadtxt(folder / "u.data.gz", dtype=np.int64)


def rated(most: int) -> Drawn:
    """The films that users rated, at most so many of a genre."""
    genres, ratings = films()
    sets, gain, sizes = [], [], []
    for user in np.flatnonzero((counts := np.bincount(ratings[:, 0])) >= 40).tolist():
        if counts[user] <= 150 and len(sets) < USERS:
            mine = ratings[ratings[:, 0] == user]
            held = genres[mine[:, 1] - 1] > 0
            admissible = RankingSet(len(mine), K)
            for genre in np.flatnonzero(held.sum(axis=0) > most).tolist():
                admissible = admissible.at_most(most, documents=held[:, genre], name=f"genre {genre}")
            sets.append(admissible)
            gain.append(2.0 ** mine[:, 2] - 1.0)
            sizes.append(len(mine))
    return Drawn(sets, np.concatenate(gain), np.cumsum([0, *sizes]))


def least(drawn: Drawn, solver: Solver | str) -> tuple[float, float, str]:
    """Milliseconds a query, the largest gap relative to the values, and the ways that were taken."""
    rng = np.random.default_rng(1)
    scores = rng.normal(size=drawn.gain.size)
    discount = np.tile(1.0 / np.log2(np.arange(2.0, K + 2)), len(drawn.sets))
    decay = np.tile(np.linspace(1.0, 0.1, K), len(drawn.sets))
    places = np.arange(0, K * len(drawn.sets) + 1, K)
    best, gap, ways = np.inf, 0.0, ""
    for _ in range(ROUNDS + 1):
        scores = scores + 0.05 * rng.normal(size=scores.size)
        batch = SetBatch(drawn.sets, scores, 0.3 * drawn.gain, discount, decay, drawn.offsets, places)
        began = process_time()
        answer = solve_sets(batch, solver)
        best = min(best, process_time() - began)
        gap = max(gap, float(((answer.bound - answer.value) / (1.0 + np.abs(answer.value))).max()))
        ways = ", ".join(f"{(answer.way == way).sum()} {way}" for way in dict.fromkeys(answer.way))
    return 1e3 * best / len(drawn.sets), gap, ways


def argmax() -> None:
    """A row a set: by "auto", and by the solver that was asked before."""
    sets: dict[str, Callable[[], Drawn]] = {
        name: lambda name=name: made(name)  # type: ignore[misc]
        for name in ("Π(B, k)", "nested", "two groups", "genres")
    }
    if "RANKOPT_DATA" in os.environ:
        sets |= {f"ml-100k, at most {most}": lambda most=most: rated(most) for most in (3, 4, 5)}  # type: ignore[misc]
    print("| set | ms a query | before | factor | largest gap | ways |\n|---|---|---|---|---|---|")
    for name, of in sets.items():
        drawn = of()
        now, gap, ways = least(drawn, "auto")
        before, _, _ = least(drawn, "ortools" if name in ("Π(B, k)", "nested", "two groups") else "highs")
        print(f"| {name} | {now:.4f} | {before:.3f} | {before / now:.0f} | {gap:.0e} | {ways} |", flush=True)


def training() -> None:
    """ml-100k: half of the users learn, the others are ranked."""
    genres, ratings = films()
    count = np.bincount(ratings[:, 1], minlength=len(genres) + 1)[1:]
    users = [user for user, n in enumerate(np.bincount(ratings[:, 0])) if 40 <= n <= 150][: 2 * USERS]
    mine = ratings[np.isin(ratings[:, 0], users)]
    film = mine[:, 1] - 1
    features = np.column_stack([genres[film], np.log1p(count[film])]).astype(float)
    tags = np.empty(len(film), dtype=object)
    tags[:] = [tuple(np.flatnonzero(genres[one]).tolist()) for one in film]
    queries = Queries.from_arrays(features, mine[:, 2] - 1, qid=mine[:, 0], attributes={"genre": tags})
    train, test = queries.select(range(USERS)), queries.select(range(USERS, 2 * USERS))
    print("| at most | solver | seconds | steps | J | proven bound | nDCG@10 of others, under the quota |")
    print("|---|---|---|---|---|---|---|")
    for most in (5, 4):
        quota = Admissible(k=K, short="cut").at_most(most, by="genre")
        for solver in ("auto", "highs"):
            ranker = LargeMarginRanker(f"nDCG@{K}", lam=1.0, bound="convex", constraints=quota, argmax=solver, tol=1e-3,
                                       max_iter=200, w0="zeros")  # fmt: skip
            began = process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ranker.fit(train)
            took, found = process_time() - began, ranker.certificate_
            cells = f"{took:.2f} | {ranker.n_iter_} | {found.primal:.6f} | {found.bound:.6f} | {ranker.score(test):.4f}"
            print(f"| {most} | {solver} | {cells} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:] not in (["argmax"], ["training"]):
        raise SystemExit(__doc__)
    argmax() if sys.argv[1] == "argmax" else training()
