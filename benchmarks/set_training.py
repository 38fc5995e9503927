"""The questions of training under sets, one by one: quotas on nested groups, genres that cross, every other word.

    python benchmarks/set_training.py argmax          # milliseconds a query and question, beside the usual solver
    python benchmarks/set_training.py words           # the same of the words that are no limits on groups

Drawn: 24 queries of 60 documents, 10 places: Π(B, k) with 20 sites; at most 2 of a site and 4 of a topic of sites; two
groups, at most 5 of each; 18 genres that cross, at most 3 of each. ml-100k: the rated films of 24 users with 40 to 150
ratings, 10 places, at most 3, 4, 5 of each genre. The words are said of the 60 documents and 20 sites.
Processor time, the least of four rounds. Whole trainings: set_fits.py.
"""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np

from formulations import RankingSet
from formulations.solvers.solver import Solver
from formulations.solving.constrained_batch import SetBatch, solve_sets

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
        ways = ", ".join(f"{(answer.algorithm == way).sum()} {way}" for way in dict.fromkeys(answer.algorithm))
    return 1e3 * best / len(drawn.sets), gap, ways


def argmax() -> None:
    """A row a set: by "auto", and by the solver that was asked before."""
    sets: dict[str, Callable[[], Drawn]] = {
        name: partial(made, name) for name in ("Π(B, k)", "nested", "two groups", "genres")
    }
    if "RANKOPT_DATA" in os.environ:
        sets |= {f"ml-100k, at most {most}": partial(rated, most) for most in (3, 4, 5)}
    print("| set | ms a query | before | factor | largest gap | ways |\n|---|---|---|---|---|---|")
    for name, of in sets.items():
        drawn = of()
        now, gap, ways = least(drawn, "auto")
        before, _, _ = least(drawn, "ortools" if name in ("Π(B, k)", "nested", "two groups") else "highs")
        print(f"| {name} | {now:.4f} | {before:.3f} | {before / now:.0f} | {gap:.0e} | {ways} |", flush=True)


WORDS: dict[str, Callable[[RankingSet, np.ndarray, np.random.Generator], RankingSet]] = {
    "share: at most .3 of a site in every prefix": lambda one, site, _: one.at_most(share=0.3, by=site),
    "between 2 and 4 of five sites": lambda one, site, _: one.between(2, 4, documents=site < 5),
    "one of twelve at position 1": lambda one, site, _: one.position_in(np.flatnonzero(site < 4)),
    "apart: 3 places between those of a site": lambda one, site, _: one.min_distance(3, by=site),
    "before: one document before another": lambda one, site, rng: one.precedes(
        *rng.choice(60, 2, replace=False).tolist()
    ),
    "before: one of a site before those of another": lambda one, site, _: one.precedes(
        np.flatnonzero(site == site[0]).tolist(), np.flatnonzero(site == site[site != site[0]][0]).tolist()
    ),
    "chain of five": lambda one, site, rng: one.precedence_chain(rng.choice(60, 5, replace=False).tolist()),
    "if a site stands, one of another does": lambda one, site, _: one.implies(
        np.flatnonzero(site == site[0]).tolist(), np.flatnonzero(site == site[site != site[0]][0]).tolist()
    ),
    "rows: documents of whole costs, a budget": lambda one, site, rng: one.rows(
        np.tile(rng.integers(1, 6, 60).astype(float), (1, K)), upper=25.0
    ),
}
"""How each is said of 60 documents and their sites."""


def words() -> None:
    """A row a word: by "auto", and by HiGHS."""
    print("| word | ms a query | by HiGHS | factor | largest gap | ways |\n|---|---|---|---|---|---|")
    for name, said in WORDS.items():
        rng = np.random.default_rng(0)
        sets = []
        for _ in range(USERS):
            site = rng.integers(0, 20, 60)
            sets.append(said(RankingSet(60, K), site, rng))
        gain = rng.integers(0, 4, 60 * USERS).astype(float)
        drawn = Drawn(sets, gain, np.arange(0, 60 * USERS + 1, 60))
        now, gap, ways = least(drawn, "auto")
        asked, _, _ = least(drawn, "highs")
        print(f"| {name} | {now:.4f} | {asked:.3f} | {asked / now:.1f} | {gap:.0e} | {ways} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:] not in (["argmax"], ["words"]):
        raise SystemExit(__doc__)
    argmax() if sys.argv[1] == "argmax" else words()
