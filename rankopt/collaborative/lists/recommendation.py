"""The best k items of many users: by score, or under rules the admissible list of the largest Σ c_i s_π(i)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.notebook_view import MOST as MOST_SHOWN
from formulations.notebook_view import table, view
from rankopt.collaborative.lists.candidates import Candidates, KnownItems, Seen, left_out
from rankopt.collaborative.lists.quotas import ConstrainedRecommender
from rankopt.constraints.admissible import Admissible
from rankopt.data.ratings.spelling import check_spelling
from rankopt.data.ratings.universe import check_present
from rankopt.data.values import check_unmasked, sealed
from rankopt.errors import DataError, OptionError

__all__ = ["Recommendations", "check_length", "recommended"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LENGTH = 10
"""Of a list, where nothing says it."""

TOGETHER = 1 << 22
"""Scores that are held at a time."""

MOST = 1e100
"""The largest |c| of the popularity."""


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
        """The user whose list took longest, and its seconds. DataError where there are no lists."""
        if not self.seconds.size:
            raise DataError("no list took longest because there are no lists; ask for those of some users")
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

    def _repr_html_(self) -> str:
        few = islice(self, MOST_SHOWN)
        rows = [(user, "nothing is left" if not items else ", ".join(map(str, items))) for user, items in few]
        rest = len(self) - len(rows)
        said = {"users": f"{len(self):,}", "items in their lists": f"{self.items.size:,}"}
        more = f"<p>and {rest:,} more</p>" if rest else ""
        return view("Recommendations", said, table(["user", "items, the best first"], rows), more)


def recommended(
    model: KnownItems,
    users: Any,
    k: int | None = None,
    *,
    seen: Seen = "leave out",
    among: Any = None,
    popularity: float = 0.0,
    admissible: Admissible | None = None,
) -> Recommendations:
    """See `CofiRanker.recommend`."""
    k = _length(k, admissible)
    known = model.seen
    asked = known.users if users is None else _listed(users)
    places = np.arange(asked.size) if users is None else known.user_index(asked)
    if users is not None:
        check_present(asked, places, "user", "list")
        check_spelling(known.users, asked, places, "user")
    candidates = Candidates.among(model, among)
    offsets = candidates.offsets + _popular(popularity, candidates.counts)
    out, m = left_out(model, seen, asked, candidates), candidates.items.size
    quotas = None if admissible is None else ConstrainedRecommender.of(admissible, candidates.attributes(known), m)
    taken, seconds = [], np.zeros(asked.size)
    for begin in range(0, asked.size, max(1, TOGETHER // max(m, 1))):
        part = places[begin : begin + max(1, TOGETHER // max(m, 1))]
        mine = np.where(part[:, None] >= 0, model.factors.users[part], 0.0)
        level = np.where(part >= 0, model.factors.user_offsets[part], 0.0)
        scores = mine @ candidates.factors.T + offsets
        for row, u in enumerate(range(begin, begin + part.size)):
            own = scores[row]
            own[out(u)] = -np.inf
            began = perf_counter()
            order = _best(own, k) if quotas is None else quotas.best(own, asked.item(u))
            seconds[u] = perf_counter() - began
            taken.append((order, own[order] + level[row]))
    bounds = np.concatenate([[0], np.cumsum([order.size for order, _ in taken], dtype=np.int64)])
    chosen = np.concatenate([np.zeros(0, dtype=np.int64), *(order for order, _ in taken)])
    values = np.concatenate([np.zeros(0), *(some for _, some in taken)])
    return Recommendations(asked, bounds, sealed(candidates.items[chosen]), sealed(values), sealed(seconds))


def _best(scores: Floats, k: int) -> Ints:
    """The k best that are not left out; equal scores as they come."""
    left = int(np.count_nonzero(scores > -np.inf))
    k = min(k, left)
    if not k:
        return np.zeros(0, dtype=np.int64)
    least = np.partition(scores, scores.size - k)[scores.size - k]
    found = np.flatnonzero(scores >= least)
    return np.asarray(found[np.argsort(-scores[found], kind="stable")][:k])


def check_length(k: Any) -> int:
    """OptionError for what is no number of items."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise OptionError(f"k = {k!r} is no number of items; give a whole number, 1 or more")
    return int(k)


def _length(k: Any, admissible: Admissible | None) -> int:
    """What is said; that of the rules, which are of whole lists, where there are some."""
    if k is not None:
        k = check_length(k)
    if not isinstance(admissible, Admissible | None):
        raise OptionError(f"admissible = {admissible!r} are no rules; start from rankopt.Admissible(k)")
    if admissible is None:
        return LENGTH if k is None else k
    if k not in (None, admissible.k):
        raise OptionError(
            f"k = {k} items cannot be listed under rules of lists of {admissible.k}, which would not hold for them; "
            f"state the rules by Admissible({k}), or leave k out"
        )
    return admissible.k


def _popular(popularity: Any, counts: Ints) -> Floats:
    """c log(1 + count)."""
    number = isinstance(popularity, int | float | np.integer | np.floating) and not isinstance(popularity, bool)
    if not number or not np.isfinite(popularity) or abs(float(popularity)) > MOST:
        raise OptionError(f"popularity = {popularity!r} is no number that scores can take; give one up to {MOST:g}")
    return np.asarray(float(popularity) * np.log1p(counts))


def _listed(ids: Any) -> NDArray[Any]:
    """The users that are asked for, (n,)."""
    if isinstance(ids, str | bytes) or not hasattr(ids, "__iter__"):
        raise OptionError(f"users = {ids!r} is no sequence of users; pass a list, [{ids!r}], or None for all")
    values = ids.to_numpy() if hasattr(ids, "to_numpy") else ids
    check_unmasked(values, "user")
    if not isinstance(values, np.ndarray):
        values = list(values)
        if values and all(type(one) is int and abs(one) < 2**63 for one in values):
            return np.array(values, dtype=np.int64)
        values = np.fromiter(values, dtype=object, count=len(values))
    if values.ndim != 1:
        raise OptionError(f"users have shape {values.shape}, but are a sequence of ids; pass a vector, or None for all")
    if values.dtype == object:
        wrong = next((one for one in values.tolist() if not isinstance(one, Hashable)), None)
        if wrong is not None:
            raise OptionError(f"users name {wrong!r}, which is not hashable and so no id; pass ids of users")
    return np.asarray(values)
