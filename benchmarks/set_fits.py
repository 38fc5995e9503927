"""Whole trainings under sets, hard and soft: seconds, objective, proven bound, the measure of others' lists under the
set; run by two checkouts, before and after, or by two solvers.

    RANKOPT_DATA=folder python benchmarks/set_fits.py hard     # or soft, or all; or the beginning of a row's name
    RANKOPT_DATA=folder python benchmarks/set_fits.py hard highs          # and its gap: hard highs 1e-6
    RANKOPT_DATA=folder PYTHONPATH=checkout python benchmarks/set_fits.py hard

MovieLens 100k: the rated films of 24 users with 40 to 150 ratings, genres (which cross) and counts of ratings as
features, 10 films, at most 3, 4, 5 of any genre; measured on the next 24 such users. TREC W3C experts, fold 1: the
first 24 queries of the training part, 10 experts, at least 3 of the protected group (a limit on nested groups), at
least 2 of it among the first 5 (a limit on a prefix, of profits of rank two); measured on the test part. soft: the same
limits at a price of 0.02 a unit, in units of nDCG.

Convex bound, λ = 1 (W3C: 0.001), gap 1e-3 or that named, from w = 0, the argmax by "auto" or by the solver named;
processor seconds of the least of two fits, so that neither compiling nor what a set keeps of its rows is in it.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from time import process_time

import numpy as np
from diversity import experts
from set_training import USERS, films

from rankopt.constraints import Admissible
from rankopt.data import Queries
from rankopt.rankers import LargeMarginRanker

PRICE = 0.02


def users() -> tuple[Queries, Queries]:
    """The films that 24 users rated, each with all its genres, and those of 24 others."""
    genres, ratings = films()
    count = np.bincount(ratings[:, 1], minlength=len(genres) + 1)[1:]
    chosen = [user for user, n in enumerate(np.bincount(ratings[:, 0])) if 40 <= n <= 150][: 2 * USERS]
    mine = ratings[np.isin(ratings[:, 0], chosen)]
    mine = mine[np.lexsort((np.arange(len(mine)), ~np.isin(mine[:, 0], chosen[:USERS])))]
    film = mine[:, 1] - 1
    features = np.column_stack([genres[film], np.log1p(count[film])]).astype(float)
    tags = np.empty(len(film), dtype=object)
    tags[:] = [tuple(np.flatnonzero(genres[one]).tolist()) for one in film]
    queries = Queries.from_arrays(features, mine[:, 2] - 1, qid=mine[:, 0], attributes={"genre": tags})
    return queries.select(range(USERS)), queries.select(range(USERS, 2 * USERS))


def cases() -> dict[str, tuple[Queries, Queries, str, Admissible, str]]:
    """Row → queries to learn from and to measure on, measure, the set, and the name of the rule that may be soft."""
    found = {}
    rated, others = users()
    for most in (3, 4, 5):
        quota = Admissible(10, on_infeasible="truncate").at_most(most, by="genre")
        found[f"ml-100k, at most {most} of a genre"] = (rated, others, "nDCG@10", quota, "genre")
    train, test = experts(Path(os.environ["RANKOPT_DATA"]) / "deltr-w3c-experts")[0]
    people, linear = train.select(range(USERS)), "nDCG(gain='linear')@10"
    ten = Admissible(10, on_infeasible="truncate").at_least(3, documents="protected")
    found["W3C, at least 3 protected of 10"] = (people, test, linear, ten, "protected")
    five = Admissible(10, on_infeasible="truncate").at_least(2, documents="protected", positions=range(5))
    found["W3C, at least 2 protected of the first 5"] = (people, test, linear, five, "protected")
    return found


def main(asked: str, solver: str = "auto", gap: str = "1e-3") -> None:
    print("| trained under | seconds | steps | J | proven bound | of others |\n|---|---|---|---|---|---|")
    every = {(kind, name): case for kind in ("hard", "soft") for name, case in cases().items()}
    for (kind, name), (queries, others, measure, quota, rule) in every.items():
        if asked not in (kind, "all") and not f"{kind}, {name}".startswith(asked):
            continue
        admissible = quota if kind == "hard" else quota.penalized(rule, penalty=PRICE)
        least = np.inf
        for _ in range(2):
            ranker = LargeMarginRanker(
                measure,
                lam=0.001 if "W3C" in name else 1.0,
                bound="convex",
                constraints=admissible,
                argmax_solver=solver,
                tol=float(gap),
                max_iter=1000,
                w0="zeros",
            )
            began = process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ranker.fit(queries)
            least = min(least, process_time() - began)
        found = ranker.certificate_
        cells = f"{least:.2f} | {ranker.n_iter_} | {found.primal:.6f} | {found.bound:.6f} | {ranker.score(others):.4f}"
        print(f"| {kind}, {name} | {cells} |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3, 4):
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
