"""What `rankopt swap --ratings` replays: masters of users and of items, as training on these ratings meets them."""

from __future__ import annotations

import warnings
from typing import Any

__all__ = ["masters_at"]

FACTORS = 5


def masters_at(path: str | None, problems: int) -> list[Any]:
    """The programs of so many users of the file, of the sample that comes along without one, and of their items last.

    Factors, offsets, prior and penalties are those of a model of the ordinal loss, which the planes cut.
    """
    from rankopt.collaborative.masters_of_ratings import drawn_masters
    from rankopt.data import load_ratings_sample, read_ratings
    from rankopt.losses import loss_named
    from rankopt.rankers import CofiRanker

    loss = "ordinal"
    ratings = load_ratings_sample() if path is None else read_ratings(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a rough model is as good a place to draw from
        model = CofiRanker(loss, factors=FACTORS, strength=0.5, max_iter=10).fit(ratings)
    return drawn_masters(
        ratings, loss_named(loss), model.model_, model.item_prior_,
        lam=model.lam_, lam_offsets=model.offset_strength_, users=problems,
    )  # fmt: skip
