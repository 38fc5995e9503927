"""What a table of ratings holds, in ten lines at the most."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

SHOWN = 10
"""Distinct ratings that are counted one by one; more are given by their range."""

NAMED = 6
"""Attributes that are named."""


def summary(
    bounds: NDArray[np.int64], counts: NDArray[np.int64], values: NDArray[np.float64], attributes: Mapping[str, Any]
) -> str:
    """For example `Ratings(2 users (1 to 2 ratings each), 2 items (1 to 2), 3 ratings 2: 1, 4: 1, 5: 1)`."""
    facts = seen(bounds, counts, values, attributes)
    users, _, each = facts["users"].partition(" ")
    items, _, rated = facts["items"].partition(" ")
    number, _, ratings = facts["ratings"].partition(" ")
    parts = [f"{users} users {each}", f"{items} items {rated}", f"{number} ratings {ratings}".rstrip()]
    parts += [f"attributes {facts['attributes']}"] if attributes else []
    return f"Ratings({', '.join(parts)})"


def seen(
    bounds: NDArray[np.int64], counts: NDArray[np.int64], values: NDArray[np.float64], attributes: Mapping[str, Any]
) -> dict[str, str]:
    """The same, fact by fact."""
    facts = {
        "users": f"{bounds.size - 1} ({_range(np.diff(bounds))} ratings each)",
        "items": f"{counts.size} ({_range(counts)})",
        "ratings": f"{values.size} {_values(values)}".rstrip(),
    }
    names = [*attributes]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return facts | ({"attributes": f"{', '.join(names[:NAMED])}{more}"} if names else {})


def _range(sizes: NDArray[np.int64]) -> str:
    if not sizes.size:
        return "0"
    return f"{sizes.min()}" if sizes.min() == sizes.max() else f"{sizes.min()} to {sizes.max()}"


def _values(values: NDArray[np.float64]) -> str:
    if not values.size:
        return ""
    some = np.unique(values[:1000])
    if some.size <= SHOWN:
        counted = [int(np.count_nonzero(values == one)) for one in some]
        if sum(counted) == values.size:
            return ", ".join(f"{one:g}: {count}" for one, count in zip(some, counted, strict=True))
        some, numbers = np.unique(values, return_counts=True)
        if some.size <= SHOWN:
            return ", ".join(f"{one:g}: {count}" for one, count in zip(some, numbers, strict=True))
    return f"from {values.min():g} to {values.max():g}"
