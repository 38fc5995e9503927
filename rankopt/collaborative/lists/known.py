"""A fitted model of factors with the ids that it knows, whoever's users they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.notebook_view import view
from rankopt.collaborative.factors import Factors
from rankopt.collaborative.lists.candidates import Seen
from rankopt.collaborative.lists.folding import FoldInResult
from rankopt.collaborative.lists.recommendation import Recommendations, recommended
from rankopt.collaborative.lists.similarity import similar_items
from rankopt.collaborative.prediction import scores_of_pairs
from rankopt.collaborative.reading import places_of_pairs
from rankopt.constraints.admissible import Admissible
from rankopt.data.given import Pairs
from rankopt.data.ratings.table import Ratings

__all__ = ["KnownModel"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class KnownModel:
    """seen: the users, the items with their attributes, and which items each user has rated. counts (m,): how many
    ratings each item has, of all users. unknown: the offset of an item that is not among them. proved: of folded users,
    how near they are to the best; given: what they have rated, where some of it is of items that are not known."""

    seen: Ratings
    factors: Factors
    counts: NDArray[np.int64]
    unknown: float
    proved: FoldInResult | None = None
    given: Ratings | None = None

    @property
    def told(self) -> Ratings:
        """All that users are known to have seen."""
        return self.seen if self.given is None else self.given

    def predict(self, X: Pairs | Ratings) -> Floats:
        """The scores (n,) of pairs, as `CofiRanker.predict`."""
        return scores_of_pairs(self.factors, *places_of_pairs(self.seen, X), self.unknown)

    def recommend(
        self,
        users: Any = None,
        k: int | None = None,
        *,
        seen: Seen = "leave out",
        among: Any = None,
        popularity: float = 0.0,
        admissible: Admissible | None = None,
    ) -> Recommendations:
        """The best k items of each user, as `CofiRanker.recommend`."""
        return recommended(self, users, k, seen=seen, among=among, popularity=popularity, admissible=admissible)

    def similar(self, item: Any, k: int = 10) -> list[tuple[Any, float]]:
        """The k items nearest to this one, as `CofiRanker.similar`."""
        return similar_items(self.seen, self.factors.items, item, k)

    def __repr__(self) -> str:
        gap = "" if self.proved is None else f", gap {100 * self.proved.relative_gap:.2g}% ({self.proved.kind})"
        return (
            f"{type(self).__name__}({self.seen.n_users} users, {self.seen.n_items} items, {self.factors.dimensions} "
            f"factors{gap})"
        )

    def _repr_html_(self) -> str:
        said = {
            "users": f"{self.seen.n_users:,}",
            "items": f"{self.seen.n_items:,}",
            "seen": f"{self.told.n_ratings:,}",
        }
        said["factors"] = str(self.factors.dimensions)
        if self.proved is not None:
            said |= {"objective": f"{self.proved.value:.8g}", "proven bound": f"{self.proved.bound:.8g}"}
            said["gap"] = f"{100 * self.proved.relative_gap:.2g}% ({self.proved.kind})"
        return view("KnownModel", said)
