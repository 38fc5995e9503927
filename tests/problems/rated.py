"""Small tables of ratings."""

import numpy as np

from rankopt.ratings.table import Ratings


def few(users=5, items=8, each=4, seed=0, grades=5):
    """Ratings of a few items by each user, no user with equal ones alone."""
    draws = np.random.default_rng(seed)
    rows = []
    for user in range(users):
        given = draws.integers(1, grades + 1, each)
        given[0] = given[1] % grades + 1
        chosen = draws.permutation(items)[:each]
        rows += [(f"u{user}", f"film {item}", grade) for item, grade in zip(chosen, given, strict=True)]
    return Ratings.from_arrays(*zip(*rows, strict=True), items=[f"film {item}" for item in range(items)])


def tastes(users=40, items=30, each=12, seed=0, rank=2):
    """Ratings 1 to 5 of a model of two factors, offsets and noise."""
    draws = np.random.default_rng(seed)
    score = draws.normal(size=(users, rank)) @ draws.normal(size=(rank, items)) + draws.normal(size=items)
    score += 0.3 * draws.normal(size=score.shape)
    grade = np.clip(np.round(3 + score), 1, 5)
    user = np.repeat(np.arange(users), each)
    item = np.concatenate([draws.permutation(items)[:each] for _ in range(users)])
    return Ratings.from_arrays(user, item, grade[user, item])
