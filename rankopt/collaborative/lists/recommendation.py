"""The best k items of many users: by score, or under rules the admissible list of the largest Σ c_i s_π(i)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.factors import Factors
from rankopt.collaborative.lists.quotas import Quotas
from rankopt.constraints.admissible import Admissible
from rankopt.data.ratings.table import Ratings
from rankopt.data.ratings.universe import distinct_ids
from rankopt.data.values import sealed
from rankopt.errors import DataError, OptionError

__all__ = ["Recommendations", "recommended"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TOGETHER = 1 << 22
"""Scores that are held at a time."""


class Knowing(Protocol):
    """What recommends: see `KnownModel`."""

    @property
    def seen(self) -> Ratings: ...
    @property
    def factors(self) -> Factors: ...
    @property
    def counts(self) -> Ints: ...
    @property
    def unknown(self) -> float: ...


@dataclass(frozen=True, eq=False, repr=False)
class Recommendations:
    """Lists of n users: that of user u is items[bounds[u]:bounds[u + 1]], best first, with the scores that order it.

    users (n,), bounds (n + 1,), items, scores (bounds[-1],). seconds (n,): how long each list took, where rules hold.
    `recommendations[user]` is the list of items of one user.
    """

    users: NDArray[Any]
    bounds: Ints
    items: NDArray[Any]
    scores: Floats
    seconds: Floats

    def __len__(self) -> int:
        return self.users.size

    def __getitem__(self, user: Hashable) -> list[Any]:
        place = next((u for u, one in enumerate(self.users.tolist()) if one == user), None)
        if place is None:
            raise KeyError(user)
        found: list[Any] = self.items[self.bounds[place] : self.bounds[place + 1]].tolist()
        return found

    def __iter__(self) -> Iterator[tuple[Any, list[Any]]]:
        """User and list, user after user."""
        for u, user in enumerate(self.users.tolist()):
            yield user, self.items[self.bounds[u] : self.bounds[u + 1]].tolist()

    @property
    def slowest(self) -> tuple[Any, float]:
        """The user whose list took longest, and its seconds."""
        place = int(self.seconds.argmax())
        return self.users.item(place), float(self.seconds[place])

    def to_frame(self) -> Any:
        """A pandas frame of the columns user, rank (from 1), item and score."""
        import pandas as pd

        sizes = np.diff(self.bounds)
        rank = np.arange(self.items.size) - np.repeat(self.bounds[:-1], sizes) + 1
        columns = {"user": np.repeat(self.users, sizes), "rank": rank, "item": self.items, "score": self.scores}
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        return f"Recommendations({self.users.size} users, {self.items.size} items)"


def recommended(
    model: Knowing,
    users: Any,
    k: int,
    *,
    seen: Any = "leave out",
    among: Any = None,
    popularity: float = 0.0,
    admissible: Admissible | None = None,
) -> Recommendations:
    """See `CofiRanker.recommend`."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise OptionError(f"k = {k!r} is no number of items; give a whole number, 1 or more")
    if isinstance(users, str | bytes) or (users is not None and not hasattr(users, "__iter__")):
        raise OptionError(f"users = {users!r} is no sequence of users; pass a list, [{users!r}], or None for all")
    known = model.seen
    asked = known.users if users is None else _listed(users)
    places = np.arange(asked.size) if users is None else known.user_index(asked)
    candidates, items, factors, offsets, counts = _candidates(model, among)
    if popularity:
        if not np.isfinite(popularity):
            raise OptionError(f"popularity = {popularity!r} is no number; give one that is finite")
        offsets = offsets + float(popularity) * np.log1p(counts)
    left_out = _left_out(known, seen, asked, candidates)
    quotas = None if admissible is None else Quotas.of(admissible, _attributes(known, items, candidates), items.size)
    taken, seconds = [], np.zeros(asked.size)
    for begin in range(0, asked.size, max(1, TOGETHER // max(items.size, 1))):
        part = places[begin : begin + max(1, TOGETHER // max(items.size, 1))]
        mine = np.where(part[:, None] >= 0, model.factors.users[part], 0.0)
        level = np.where(part >= 0, model.factors.user_offsets[part], 0.0)
        scores = mine @ factors.T + offsets
        for row, u in enumerate(range(begin, begin + part.size)):
            own = scores[row]
            own[left_out(u)] = -np.inf
            began = perf_counter()
            order = _best(own, k) if quotas is None else quotas.best(own, asked.item(u))[:k]
            seconds[u] = perf_counter() - began
            taken.append((order, own[order] + level[row]))
    bounds = np.concatenate([[0], np.cumsum([order.size for order, _ in taken], dtype=np.int64)])
    chosen = np.concatenate([np.zeros(0, dtype=np.int64), *(order for order, _ in taken)])
    values = np.concatenate([np.zeros(0), *(some for _, some in taken)])
    return Recommendations(asked, bounds, sealed(items[chosen]), sealed(values), sealed(seconds))


def _best(scores: Floats, k: int) -> Ints:
    """The k best that are not left out; equal scores as they come."""
    left = int(np.count_nonzero(scores > -np.inf))
    k = min(k, left)
    if not k:
        return np.zeros(0, dtype=np.int64)
    least = np.partition(scores, scores.size - k)[scores.size - k]
    found = np.flatnonzero(scores >= least)
    return np.asarray(found[np.argsort(-scores[found], kind="stable")][:k])


def _listed(ids: Any) -> NDArray[Any]:
    values = ids.to_numpy() if hasattr(ids, "to_numpy") else ids
    if isinstance(values, np.ndarray):
        return values
    values = list(values)
    if values and all(type(one) is int and abs(one) < 2**63 for one in values):
        return np.array(values, dtype=np.int64)
    return np.fromiter(values, dtype=object, count=len(values))


def _candidates(model: Knowing, among: Any) -> tuple[Ints, NDArray[Any], Floats, Floats, Ints]:
    """Places (-1: unknown) and ids of the items that may be recommended, their factors, offsets and counts."""
    if among is None:
        m = model.seen.n_items
        return np.arange(m), model.seen.items, model.factors.items, model.factors.offsets, model.counts
    items = distinct_ids(among, "item")
    if not items.size:
        raise DataError("among names no item, so nothing can be recommended; list some, or leave it out")
    places = model.seen.item_index(items)
    inside = places >= 0
    factors = np.where(inside[:, None], model.factors.items[places], 0.0)
    offsets = np.where(inside, model.factors.offsets[places], model.unknown)
    return places, items, factors, offsets, np.where(inside, model.counts[places], 0)


def _left_out(known: Ratings, seen: Any, asked: NDArray[Any], candidates: Ints) -> Any:
    """The function from a row of `asked` to the candidates that it has seen."""
    nothing = np.zeros(0, dtype=np.int64)
    if isinstance(seen, str) and seen == "keep":
        return lambda u: nothing
    table = known if isinstance(seen, str) and seen == "leave out" else seen
    if not isinstance(table, Ratings):
        raise OptionError(f"seen = {seen!r} is unknown; it is 'leave out', 'keep', or Ratings of what was seen")
    places = table.user_index(asked)
    at = np.full(known.n_items + 1, -1, dtype=np.int64)  # where an item of the model stands among the candidates
    at[candidates] = np.arange(candidates.size)
    at[-1] = -1
    of_item = at[known.item_index(table.items)] if table is not known else at[:-1]

    def left_out(u: int) -> Ints:
        place = places[u]
        if place < 0:
            return nothing
        found = of_item[table.columns[table.bounds[place] : table.bounds[place + 1]]]
        return np.asarray(found[found >= 0])

    return left_out


def _attributes(known: Ratings, items: NDArray[Any], candidates: Ints) -> dict[str, NDArray[Any]]:
    """The attributes of the candidates; an item that is not known has none."""
    found = {}
    for name, values in known.attributes.items():
        if (candidates >= 0).all():
            found[name] = values[candidates]
        else:
            own = np.full(items.size, None, dtype=object)
            for place, one in enumerate(candidates.tolist()):
                own[place] = values[one] if one >= 0 else None
            found[name] = own
    return found
