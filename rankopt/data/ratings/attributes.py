"""What is known of items: one value each, a tuple of labels where several hold at once (the genres of a film)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.data.ratings.spelling import check_spelling
from rankopt.data.ratings.universe import placed, plain_ids
from rankopt.data.values import column, sealed
from rankopt.errors import DataError


def attributes_of_items(
    attributes: Mapping[str, Any] | None, items: NDArray[Any], given: Any
) -> dict[str, NDArray[Any]]:
    """name -> (n_items,) values in the order of `items`. given: the items as the caller listed them, for attributes
    that are no mapping from item to value. Raises DataError where those do not fit."""
    if attributes is not None and not isinstance(attributes, Mapping):
        raise DataError(
            f"attributes cannot be a {type(attributes).__name__} because each has a name; pass name -> {{item: value}}"
            ", of a frame {'genre': dict(zip(frame['item'], frame['genre']))}"
        )
    found = {}
    for name, values in (attributes or {}).items():
        if isinstance(values, Mapping):
            ids = list(values)
            where = placed(items, ids)
            check_spelling(items, ids, where, f"item of attribute {name!r},")
            aligned = np.full(items.size, None, dtype=object)
            for place, one in zip(where.tolist(), values.values(), strict=True):
                if place >= 0:
                    aligned[place] = one
            found[name] = sealed(_typed(aligned))
        elif given is None:
            raise DataError(
                f"attribute {name!r} has no items to belong to; pass a mapping from item to value, or items= beside it."
            )
        else:
            where = placed(items, plain_ids(given, "item"))
            if isinstance(values, list | tuple) and any(isinstance(one, tuple) for one in values):
                values = np.fromiter(values, dtype=object, count=len(values))
            listed = column(values, where.size, name)
            aligned = np.empty(items.size, dtype=listed.dtype)
            aligned[where] = listed
            found[name] = sealed(aligned)
    return found


def _typed(values: NDArray[Any]) -> NDArray[Any]:
    """Numbers as numbers; words, tuples and what is missing stay objects."""
    kinds = {type(one) for one in values.tolist()}
    if kinds and all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        return values.astype(np.int64)
    if kinds and all(issubclass(kind, float | np.floating) for kind in kinds):
        return values.astype(np.float64)
    return values.astype(bool) if kinds == {bool} else values
