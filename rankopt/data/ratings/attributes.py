"""What is known of items: one value each, a tuple of labels where several hold at once (the genres of a film)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.data.ratings.spelling import check_spelling
from rankopt.data.ratings.universe import placed, plain_ids, spelled
from rankopt.data.values import as_array, column, frozen, sealed
from rankopt.errors import DataError

SEVERAL = (tuple, list, set, frozenset, np.ndarray)
"""Types of entries that hold several labels."""


def attributes_of_items(
    attributes: Mapping[str, Any] | None, items: NDArray[Any], given: Any
) -> dict[str, NDArray[Any]]:
    """name -> (n_items,) values in the order of `items`. given: the items as the caller listed them, for attributes
    that are no mapping from item to value. Raises DataError where those do not fit."""
    if attributes is not None and not isinstance(attributes, Mapping):
        raise DataError(
            f"attributes cannot be a {type(attributes).__name__} because each has a name; pass name -> {{item: value}}"
            ", such as {'genre': dict(zip(frame['item'], frame['genre']))}"
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
            listed = labels_of_items(values, where.size, name)
            aligned = np.empty(items.size, dtype=listed.dtype)
            aligned[where] = listed
            found[name] = sealed(aligned)
    return found


def labels_of_items(values: Any, n: int, name: str) -> NDArray[Any]:
    """One entry an item, (n,), that nobody can write to: lists and arrays become tuples of labels as they stand, sets
    in the order of their types' names and their words. Raises DataError for another shape, and for what is no label."""
    values = as_array(values)
    if isinstance(values, list | tuple) and any(isinstance(one, SEVERAL) for one in values):
        values = np.fromiter(values, dtype=object, count=len(values))
    array = column(values, n, name)
    if array.dtype != object:
        return frozen(array)
    entries = array.tolist()
    settled = [_settled(one) for one in entries]
    for place, one in enumerate(settled):
        try:
            hash(one)
        except TypeError as error:
            raise DataError(
                f"attribute {name!r}, entry {place}: {entries[place]!r} is no label ({error}); give a label, or a "
                "tuple of labels."
            ) from None
    if all(one is own for one, own in zip(settled, entries, strict=True)):
        return frozen(array)
    return sealed(np.fromiter(settled, dtype=object, count=n))


def _settled(one: Any) -> Any:
    if isinstance(one, set | frozenset):
        return tuple(sorted(one, key=lambda label: (type(label).__name__, spelled(label))))
    if isinstance(one, np.ndarray):
        return tuple(one.tolist())
    return tuple(one) if isinstance(one, list) else one


def _typed(values: NDArray[Any]) -> NDArray[Any]:
    """Numbers as numbers; words, tuples and what is missing stay objects."""
    kinds = {type(one) for one in values.tolist()}
    if kinds and all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        return values.astype(np.int64)
    if kinds and all(issubclass(kind, float | np.floating) for kind in kinds):
        return values.astype(np.float64)
    return values.astype(bool) if kinds == {bool} else values
