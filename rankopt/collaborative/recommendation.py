"""The best k items of many users: by score, or under rules the admissible list of the largest Σ c_i s_π(i).

Which items may stand in a list: those of the model or those named, but for what a user has seen.

What quotas cost: how much lower the scores of the lists are, and how much more varied the lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from formulations.display import MOST as MOST_SHOWN
from formulations.display import table, view
from rankopt.collaborative.factors import Factors
from rankopt.collaborative.quotas import ConstrainedRecommender
from rankopt.constraints.admissible import Admissible
from rankopt.data.validation import check_unmasked, sealed
from rankopt.errors import DataError, OptionError
from rankopt.ratings.ids import check_present, check_spelling, distinct_ids, placed
from rankopt.ratings.table import Ratings

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


class SupportsRecommend(Protocol):
    def recommend(self, users: Any = None, k: int = 10, *, admissible: Admissible | None = None) -> Recommendations: ...


@dataclass(frozen=True)
class QuotaPrice:
    """limit: at most so many of each label, None for no quota. score: Σ_i c_i s_π(i) / Σ_i c_i, c_i = 1/log2(i + 1),
    the mean over users; labels: how many different ones a list has; seconds: the median of a list, slowest: that of
    the user who took longest, named."""

    limit: int | None
    score: float
    labels: float
    seconds: float
    slowest: tuple[Any, float]


def quota_prices(
    ranker: SupportsRecommend, labels: dict[Any, tuple[Any, ...]], by: str, users: Sequence[Any], k: int = 10,
    limits: Sequence[int] = (5, 3, 2, 1),
) -> list[QuotaPrice]:  # fmt: skip
    """The lists of these users freely and with at most so many items of each label. labels: those of each item. A limit
    that leaves a list short cuts it, and then its weighted mean is over the items that are left."""
    if not len(users):
        raise DataError("a quota has no price because there are no users; give some")
    found = []
    for limit in (None, *limits):
        rules = None if limit is None else Admissible(k, on_infeasible="truncate").at_most(limit, by=by)
        lists = ranker.recommend(users, k, admissible=rules)
        weights = 1.0 / np.log2(np.arange(2.0, k + 2.0))
        scores, varied = [], []
        for u, (_, items) in enumerate(lists):
            own = lists.scores[lists.bounds[u] : lists.bounds[u + 1]]
            scores.append(float(np.average(own, weights=weights[: own.size])) if own.size else np.nan)
            varied.append(len({label for item in items for label in labels.get(item) or ()}))
        found.append(
            QuotaPrice(
                limit, float(np.nanmean(scores)), float(np.mean(varied)), float(np.median(lists.seconds)), lists.slowest
            )
        )
    return found
