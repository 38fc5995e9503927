"""17 and "17" are two ids: where one is asked for and the other is known, somebody read a file in two ways."""

from __future__ import annotations

from re import compile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.data.ratings.universe import placed
from rankopt.errors import DataError

__all__ = ["check_spelling"]

WHOLE = compile(r"0|-?[1-9][0-9]{0,17}")


def check_spelling(known: NDArray[Any], ids: Any, found: NDArray[np.int64], what: str) -> None:
    """DataError where an id of `ids` (n,) that is not known, found (n,) < 0, is one of another type: 17 for "17"."""
    missing = np.flatnonzero(found < 0)
    if not missing.size or not known.size:
        return
    given = ids.to_numpy() if hasattr(ids, "to_numpy") else ids
    some = given[missing].tolist() if isinstance(given, np.ndarray) else [given[i] for i in missing.tolist()]
    twins = {_twin(one): one for one in {*some}}
    twins.pop(None, None)
    places = placed(known, list(twins)) if twins else np.zeros(0, dtype=np.int64)
    for (twin, one), place in zip(twins.items(), places.tolist(), strict=True):
        if place < 0:
            continue
        own, other = ("text", "a number") if isinstance(one, str) else ("a number", "text")
        raise DataError(
            f"{what} {one!r} is {own}, but the one that is known is {other}, {twin!r}; give ids as they were in "
            "training (NumPy makes all entries of an array text where one is: pass a list, or dtype=object)"
        )


def _twin(one: Any) -> int | str | None:
    """The number of a text, the text of a number; None for others."""
    if isinstance(one, str):
        return int(one) if WHOLE.fullmatch(one) else None
    if isinstance(one, bool | np.bool_) or not isinstance(one, int | float | np.integer | np.floating):
        return None
    return str(int(one)) if float(one).is_integer() else None
