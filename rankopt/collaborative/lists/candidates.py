"""Which items may stand in a list: those of the model or those named, but for what a user has seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.factors import Factors
from rankopt.data.ratings.spelling import check_spelling
from rankopt.data.ratings.table import Ratings
from rankopt.data.ratings.universe import distinct_ids, placed
from rankopt.errors import DataError, OptionError

__all__ = ["Candidates", "KnownItems", "left_out"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class KnownItems(Protocol):
    """What recommends: see `KnownModel`."""

    @property
    def seen(self) -> Ratings: ...
    @property
    def told(self) -> Ratings: ...
    @property
    def factors(self) -> Factors: ...
    @property
    def counts(self) -> Ints: ...
    @property
    def unknown(self) -> float: ...


@dataclass(frozen=True, eq=False)
class Candidates:
    """items (m,): ids in their order; places (m,) in the model, -1 for one that it does not know, whose factors (m, d)
    are 0, whose offset (m,) is that of an item without ratings, and which has none, counts (m,)."""

    items: NDArray[Any]
    places: Ints
    factors: Floats
    offsets: Floats
    counts: Ints

    @classmethod
    def among(cls, model: KnownItems, among: Any) -> Candidates:
        """These items; all of the model where `among` is None. DataError for none, and for one that is named twice."""
        known = model.seen
        if among is None:
            return cls(known.items, np.arange(known.n_items), model.factors.items, model.factors.offsets, model.counts)
        items = distinct_ids(_each_once(among), "item")
        places = known.item_index(items)
        check_spelling(known.items, items, places, "item")
        inside = places >= 0
        factors = np.where(inside[:, None], model.factors.items[places], 0.0)
        offsets = np.where(inside, model.factors.offsets[places], model.unknown)
        return cls(items, places, factors, offsets, np.where(inside, model.counts[places], 0))

    def attributes(self, known: Ratings) -> dict[str, NDArray[Any]]:
        """The attributes of the candidates; an item that is not known has none."""
        found = {}
        for name, values in known.attributes.items():
            if (self.places >= 0).all():
                found[name] = values[self.places]
            else:
                own = np.full(self.items.size, None, dtype=object)
                for place, one in enumerate(self.places.tolist()):
                    own[place] = values[one] if one >= 0 else None
                found[name] = own
        return found


Seen: TypeAlias = Literal["leave out", "keep"] | Ratings
"""What becomes of items that a user has seen: they are left out, or kept; or what other ratings say is left out."""


def left_out(model: KnownItems, seen: Seen, asked: NDArray[Any], candidates: Candidates) -> Callable[[int], Ints]:
    """The function from a row of `asked` to the candidates that it has seen, known to the model or not."""
    nothing = np.zeros(0, dtype=np.int64)
    if isinstance(seen, str) and seen == "keep":
        return lambda u: nothing
    table = model.told if isinstance(seen, str) and seen == "leave out" else seen
    if not isinstance(table, Ratings):
        raise OptionError(f"seen = {seen!r} is unknown; it is 'leave out', 'keep', or Ratings of what was seen")
    places = table.user_index(asked)
    own = table.items is candidates.items
    of_item = np.arange(table.n_items) if own else placed(candidates.items, table.items)
    if table is seen:
        check_spelling(table.users, asked, places, "user")
        check_spelling(candidates.items, table.items, of_item, "item of seen=")

    def found(u: int) -> Ints:
        place = places[u]
        if place < 0:
            return nothing
        rated = of_item[table.columns[table.bounds[place] : table.bounds[place + 1]]]
        return np.asarray(rated[rated >= 0])

    return found


def _each_once(among: Any) -> Any:
    if isinstance(among, str | bytes) or not hasattr(among, "__iter__"):
        raise OptionError(f"among = {among!r} is no sequence of items; pass a list of their ids, or None for all")
    items = among if hasattr(among, "to_numpy") or isinstance(among, np.ndarray) else list(among)
    if not len(items):
        raise DataError("among names no item, so nothing can be recommended; list some, or leave it out")
    try:
        twice = next((one for one, count in Counter(list(items)).items() if count > 1), None)
    except TypeError as error:
        raise DataError(f"among cannot be read because an id is not hashable ({error}); pass ids of items") from None
    if twice is not None:
        twice = twice.item() if isinstance(twice, np.generic) else twice
        raise DataError(f"among names item {twice!r} twice; name each once")
    return items
