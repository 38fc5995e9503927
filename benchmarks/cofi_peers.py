"""What others' collaborative models reach under the protocols of benchmarks/cofi.py, with their own defaults.

    pip install implicit cornac
    RANKOPT_DATA=folder python benchmarks/cofi_peers.py rows.jsonl [--splits 10] [--models ...]
    python benchmarks/cofi.py table rows.jsonl

Weak generalisation on MovieLens 100k, the splits of `cofi.py`; NDCG@10, ties averaged. Nothing is chosen: every setting
is the package's default, and where it draws, seed 0. implicit takes ratings as confidences, its way for explicit data.
Goes on with a file of rows.
"""

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np

from rankopt.ratings import evaluate_ratings, read_ratings, weak_split

KNOWN = (10, 20, 50)


def of_implicit(name):
    """All pairs' scores (n_users, n_items) of one of implicit's models."""

    def fitted(train):
        import implicit

        model = {
            "ALS": implicit.als.AlternatingLeastSquares,
            "BPR": implicit.bpr.BayesianPersonalizedRanking,
            "logistic": implicit.lmf.LogisticMatrixFactorization,
        }[name](random_state=0, num_threads=1)
        model.fit(train.to_csr().astype(np.float32), show_progress=False)
        return np.asarray(model.user_factors) @ np.asarray(model.item_factors).T

    return fitted


def of_cornac(name):
    """The same of cornac's. Items and users without training ratings have what cornac gives them."""

    def fitted(train):
        import cornac

        model = getattr(cornac.models, name)
        settings = {"verbose": False, **({"seed": 0} if "seed" in model.__init__.__code__.co_varnames else {})}
        users, items = train.user_of().tolist(), train.columns.tolist()
        data = cornac.data.Dataset.from_uir(zip(users, items, train.values.tolist(), strict=True), seed=0)
        model = model(**settings).fit(data)
        scores = np.full((train.n_users, train.n_items), np.nan)
        known = np.array([data.iid_map.get(j, -1) for j in range(train.n_items)])
        for user, place in data.uid_map.items():
            own = np.ravel(np.asarray(model.score(place), dtype=float))
            scores[user] = np.where(known >= 0, own[known], own.min())  # what was never seen stands last
        scores[np.isnan(scores)] = 0.0
        return scores

    return fitted


MODELS = {
    **{f"implicit {name}": of_implicit(name) for name in ("ALS", "BPR", "logistic")},
    **{f"cornac {name}": of_cornac(name) for name in ("MF", "PMF", "SVD", "MMMF", "BPR", "EASE")},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--models", nargs="+", choices=[*MODELS], default=[*MODELS])
    given = parser.parse_args()
    path = Path(given.rows)
    told = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    done = {tuple(json.loads(line)[key] for key in ("ranker", "n", "seed")) for line in told}
    ratings = read_ratings(Path(os.environ["RANKOPT_DATA"]) / "ml-100k")
    for seed in range(given.splits):
        for n in KNOWN:
            split = weak_split(ratings, n, seed=seed)
            for name in given.models:
                if (name, n, seed) in done:
                    continue
                began = time.process_time()
                scores = MODELS[name](split.train)
                seconds = time.process_time() - began
                values = {one: evaluate_ratings(split, scores, candidates=one).mean for one in ("rated", "all")}
                row = {"ranker": name, "protocol": "weak", "n": n, "seed": seed, **values, "seconds": seconds}
                with path.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
