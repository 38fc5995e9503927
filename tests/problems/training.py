"""Small queries to be trained on, and the objective written out."""

import numpy as np

from rankopt.data import Queries

BOUNDS = ["convex", "tie-aware", "nonconvex"]


def made(seed=0, queries=12, documents=8, features=4, noise=0.7):
    """Queries whose grades follow a linear score with noise, features rounded so that documents tie."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(queries * documents, features)), 1)
    truth = X @ np.linspace(1, -1, features) + noise * rng.normal(size=len(X))
    y = np.digitize(truth, [0.3, 1.2]).astype(float)
    return X, y, np.repeat(np.arange(queries), documents)


def objective_at(ranker, X, y, qid, w):
    """J(w), evaluated afresh."""
    objective = ranker.objective(Queries.from_arrays(X, y, qid=qid))
    return objective.regularizer(w) + objective.risk.at(w).value
