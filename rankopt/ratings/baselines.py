"""Baselines for collaborative rankers: one score per item, the same for every user.

>>> from rankopt.ratings import Ratings
>>> ratings = Ratings.from_arrays(["ann", "bob", "ann"], ["Alien", "Alien", "Brazil"], [5, 4, 3])
>>> ItemMeanBaseline(shrinkage=1).fit(ratings).scores.round(2)
array([4.33, 3.5 ])
>>> PopularityBaseline().fit(ratings).predict(ratings)
array([2., 1., 2.])
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats
from formulations.display import CompactReprMixin
from rankopt.data.validation import sealed
from rankopt.errors import DataError, OptionError
from rankopt.ratings.table import Ratings


@dataclass(frozen=True, eq=False)
class ItemScores(CompactReprMixin):
    """`scores` (n_items,) of `items` for all users; other items have the score `unknown`."""

    items: NDArray[np.object_]
    scores: Floats
    unknown: float

    def predict(self, ratings: Ratings) -> Floats:
        """The scores (n_ratings,) of the pairs, in their order; the ratings are not used."""
        index = np.arange(self.items.size)
        if ratings.items is not self.items:
            known = {one: i for i, one in enumerate(self.items.tolist())}
            index = np.array([known.get(one, -1) for one in ratings.items.tolist()], dtype=np.int64)
        return np.append(self.scores, self.unknown)[index[ratings.columns]]


@dataclass(frozen=True)
class ItemMeanBaseline:
    """b_j = m + c log(1 + n_j) + Σ_u (r_uj - m) / (n_j + κ): item means shrunk towards the mean m of all.

    n_j is the number of its ratings, κ `shrinkage` >= 0, c `popularity`. An item without ratings has m.
    """

    shrinkage: float = 5.0
    popularity: float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.shrinkage) and self.shrinkage >= 0 and np.isfinite(self.popularity)):
            raise OptionError(f"shrinkage must be a number >= 0 and popularity a finite number; got {self}.")

    def fit(self, ratings: Ratings) -> ItemScores:
        """Compute the scores. Raises DataError without ratings."""
        mean = _mean(ratings)
        counts = ratings.counts
        above = np.bincount(ratings.columns, ratings.values - mean, ratings.n_items)
        shrunk = above / np.maximum(counts + self.shrinkage, np.finfo(float).tiny)
        return ItemScores(ratings.items, sealed(mean + self.popularity * np.log1p(counts) + shrunk), mean)


@dataclass(frozen=True)
class PopularityBaseline:
    """The number of ratings of an item."""

    def fit(self, ratings: Ratings) -> ItemScores:
        """Count the ratings. Raises DataError without ratings."""
        _mean(ratings)
        return ItemScores(ratings.items, sealed(ratings.counts.astype(np.float64)), 0.0)


def _mean(ratings: Ratings) -> float:
    if not ratings.n_ratings:
        raise DataError("a baseline needs at least one rating; got none.")
    return float(ratings.values.mean())
