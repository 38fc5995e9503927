"""Items that the factors place near each other."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.lists.recommendation import check_length
from rankopt.data.ratings.spelling import check_spelling
from rankopt.data.ratings.table import Ratings
from rankopt.errors import DataError

__all__ = ["similar_items"]


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
