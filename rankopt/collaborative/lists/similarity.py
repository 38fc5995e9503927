"""Items that the factors place near each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.data.ratings.table import Ratings
from rankopt.errors import DataError

__all__ = ["similar_items"]


def similar_items(known: Ratings, factors: NDArray[np.float64], item: Any, k: int) -> list[tuple[Any, float]]:
    """The k other items of largest cosine ⟨M_i, M_j⟩ / (‖M_i‖ ‖M_j‖), 0 where one of them is 0; equal ones in the order
    of their ids. Raises DataError for an item that the model does not know."""
    place = int(known.item_index([item])[0])
    if place < 0:
        raise DataError(f"item {item!r} is like none because the model does not know it; fit with ratings of it")
    norms = np.linalg.norm(factors, axis=1)
    scale = norms * norms[place]
    cosine = np.divide(factors @ factors[place], scale, out=np.zeros(scale.size), where=scale > 0)
    cosine = np.clip(cosine, -1.0, 1.0)
    order = np.argsort(-cosine, kind="stable")
    nearest = order[order != place][: max(int(k), 0)]
    return list(zip(known.items[nearest].tolist(), cosine[nearest].tolist(), strict=True))
