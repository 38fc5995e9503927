"""A fitted model of factors with the ids that it knows, whoever's users they are.

Items that the factors place near each other.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.display import CompactReprMixin
from rankopt.collaborative.factors import Factors, scores_of_pairs
from rankopt.collaborative.fold_in import FoldInResult
from rankopt.collaborative.reading import places_of_pairs
from rankopt.collaborative.recommendation import Recommendations, Seen, check_length, recommended
from rankopt.constraints.admissible import Admissible
from rankopt.data.typing import Pairs
from rankopt.errors import DataError
from rankopt.ratings.ids import check_spelling
from rankopt.ratings.table import Ratings


def similar_items(known: Ratings, factors: NDArray[np.float64], item: Any, k: int) -> list[tuple[Any, float]]:
    """The k other items of largest cosine ⟨M_i, M_j⟩ / (‖M_i‖ ‖M_j‖), equal ones in the order of their ids; fewer where
    fewer have factors, and none where the item has not. Raises DataError for an item that the model does not know,
    OptionError for no number of items."""
    k = check_length(k)
    if not isinstance(item, Hashable):
        raise DataError(f"item {item!r} is not hashable and so no id; pass one id of an item")
    found = known.item_index([item])
    check_spelling(known.items, [item], found, "item")
    place = int(found[0])
    if place < 0:
        raise DataError(f"item {item!r} is like none because the model does not know it; fit with ratings of it")
    norms = np.linalg.norm(factors, axis=1)
    scale = norms * norms[place]
    placed = scale > 0.0
    cosine = np.divide(factors @ factors[place], scale, out=np.zeros(scale.size), where=placed)
    cosine = np.clip(cosine, -1.0, 1.0)
    order = np.argsort(-cosine, kind="stable")
    nearest = order[placed[order] & (order != place)][:k]
    return list(zip(known.items[nearest].tolist(), cosine[nearest].tolist(), strict=True))


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class KnownModel(CompactReprMixin):
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
