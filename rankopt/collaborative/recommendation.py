"""The best k items of many users by score, or the best admissible list, of largest Σ c_i s_π(i).

`quota_sensitivity` measures how much lower the scores of the lists are at each limit of a quota.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints, check_no_mask, each, to_integer
from formulations.display import CompactReprMixin
from formulations.solving.sensitivity import SensitivityCurve
from rankopt.collaborative.problem import Factors, scores_of_pairs
from rankopt.collaborative.quotas import ConstrainedRecommender
from rankopt.collaborative.reading import indices_of_pairs
from rankopt.collaborative.user_loss import FoldInResult
from rankopt.constraints.admissible import Admissible
from rankopt.data.queries import range_text
from rankopt.data.typing import Pairs
from rankopt.data.validation import sealed
from rankopt.errors import DataError, OptionError
from rankopt.ratings.evaluation import popularity_offsets
from rankopt.ratings.ids import check_present, check_spelling, distinct_ids, indices_of
from rankopt.ratings.table import Ratings

LISTED = 10  # users whose lists `print` shows


@dataclass(frozen=True, eq=False, repr=False)
class KnownModel(CompactReprMixin):
    """seen: the users, the items with their attributes, and which items each user has rated. counts (m,): how many
    ratings each item has, of all users. unknown: the offset of an item that is not among them. proved: of folded users,
    how near they are to the best; given: their ratings, if some are of unknown items."""

    seen: Ratings
    factors: Factors
    counts: Ints
    unknown: float
    proved: FoldInResult | None = None
    given: Ratings | None = None

    def predict(self, X: Pairs | Ratings) -> Floats:
        """The scores (n,) of pairs, as `CofiRanker.predict`."""
        return scores_of_pairs(self.factors, *indices_of_pairs(self.seen, X), self.unknown)

    def recommend(
        self,
        users: Any = None,
        k: int | None = None,
        *,
        seen: Seen = "leave out",
        among: Any = None,
        popularity: float = 0.0,
        constraints: Admissible | None = None,
    ) -> Recommendations:
        """The best k items of each user, as `CofiRanker.recommend`."""
        k = _length(k, constraints)
        known = self.seen
        requested = known.users if users is None else _requested_users(users)
        indices = np.arange(requested.size) if users is None else known.user_index(requested)
        if users is not None:
            check_present(requested, indices, "user", "list")
            check_spelling(known.users, requested, indices, "user")
        candidates = Candidates.among(self, among)
        offsets = candidates.offsets + popularity_offsets(popularity, candidates.counts)
        out, m = left_out(self, seen, requested, candidates), candidates.items.size
        quotas = None
        if constraints is not None:
            quotas = ConstrainedRecommender.from_admissible(constraints, candidates.attributes(known), m)
        taken, seconds = [], np.zeros(requested.size)
        for begin in range(0, requested.size, max(1, TOGETHER // max(m, 1))):
            part = indices[begin : begin + max(1, TOGETHER // max(m, 1))]
            mine = np.where(part[:, None] >= 0, self.factors.users[part], 0.0)
            level = np.where(part >= 0, self.factors.user_offsets[part], 0.0)
            scores = mine @ candidates.factors.T + offsets
            for row, u in enumerate(range(begin, begin + part.size)):
                own = scores[row]
                own[out(u)] = -np.inf
                began = perf_counter()
                order = _best(own, k) if quotas is None else quotas.best(own, requested.item(u))
                seconds[u] = perf_counter() - began
                taken.append((order, own[order] + level[row]))
        bounds = np.concatenate([[0], np.cumsum([order.size for order, _ in taken], dtype=np.int64)])
        chosen = np.concatenate([np.zeros(0, dtype=np.int64), *(order for order, _ in taken)])
        values = np.concatenate([np.zeros(0), *(some for _, some in taken)])
        return Recommendations(requested, bounds, sealed(candidates.items[chosen]), sealed(values), sealed(seconds))

    def similar(self, item: Any, k: int = 10) -> list[tuple[Any, float]]:
        """The k other items of largest cosine ⟨M_i, M_j⟩ / (‖M_i‖ ‖M_j‖), equal ones in the order of their ids; fewer
        where fewer have factors, and none where the item has not. Raises DataError for an item that the model does not
        know, OptionError for no number of items."""
        k, known, factors = check_length(k), self.seen, self.factors.items
        if not isinstance(item, Hashable):
            raise DataError(f"item {item!r} is not hashable and so no id; pass one id of an item")
        found = known.item_index([item])
        check_spelling(known.items, [item], found, "item")
        index = int(found[0])
        if index < 0:
            raise DataError(f"item {item!r} is unknown to the model; fit with ratings of it")
        norms = np.linalg.norm(factors, axis=1)
        scale = norms * norms[index]
        nonzero = scale > 0.0
        cosine = np.divide(factors @ factors[index], scale, out=np.zeros(scale.size), where=nonzero)
        cosine = np.clip(cosine, -1.0, 1.0)
        order = np.argsort(-cosine, kind="stable")
        nearest = order[nonzero[order] & (order != index)][:k]
        return list(zip(known.items[nearest].tolist(), cosine[nearest].tolist(), strict=True))

    def __repr__(self) -> str:
        gap = "" if self.proved is None else f", gap {100 * self.proved.relative_gap:.2g}% ({self.proved.kind})"
        return (
            f"{type(self).__name__}({self.seen.n_users} users, {self.seen.n_items} items, {self.factors.dimensions} "
            f"factors{gap})"
        )


@dataclass(frozen=True, eq=False)
class Candidates:
    """items (m,): ids in their order; indices (m,): those in the model, -1 for an unknown item, with factors (m, d) 0,
    offset (m,) of an item without ratings, and counts (m,) 0."""

    items: NDArray[Any]
    indices: Ints
    factors: Floats
    offsets: Floats
    counts: Ints

    @classmethod
    def among(cls, model: KnownModel, among: Any) -> Candidates:
        """These items; all of the model where `among` is None. DataError for none, and for one that is named twice."""
        known = model.seen
        if among is None:
            return cls(known.items, np.arange(known.n_items), model.factors.items, model.factors.offsets, model.counts)
        items = distinct_ids(_each_once(among), "item")
        indices = known.item_index(items)
        check_spelling(known.items, items, indices, "item")
        inside = indices >= 0
        if not inside.any():
            raise DataError(f"among has no item of training ({items.item(0)!r} is not); fit with ratings of it")
        factors = np.where(inside[:, None], model.factors.items[indices], 0.0)
        offsets = np.where(inside, model.factors.offsets[indices], model.unknown)
        return cls(items, indices, factors, offsets, np.where(inside, model.counts[indices], 0))

    def attributes(self, known: Ratings) -> dict[str, NDArray[Any]]:
        """The attributes of the candidates; an item that is not known has none."""
        if (self.indices >= 0).all():
            return {name: values[self.indices] for name, values in known.attributes.items()}
        indices = self.indices.tolist()
        return {
            name: np.fromiter((values[one] if one >= 0 else None for one in indices), object, len(indices))
            for name, values in known.attributes.items()
        }


Seen: TypeAlias = Literal["leave out", "keep"] | Ratings
"""Treatment of items that a user has seen: leave out or keep them, or leave out those of other ratings."""


def left_out(model: KnownModel, seen: Seen, requested: NDArray[Any], candidates: Candidates) -> Callable[[int], Ints]:
    """The function from a row of the users to the candidates that it has seen, known to the model or not."""
    nothing = np.zeros(0, dtype=np.int64)
    if isinstance(seen, str) and seen == "keep":
        return lambda u: nothing
    table: Any = seen
    if isinstance(seen, str) and seen == "leave out":
        table = model.seen if model.given is None else model.given
    if not isinstance(table, Ratings):
        raise OptionError(f"seen = {seen!r} is unknown; it is 'leave out', 'keep', or Ratings of the items seen")
    indices = table.user_index(requested)
    own = table.items is candidates.items
    of_item = np.arange(table.n_items) if own else indices_of(candidates.items, table.items)
    if table is seen:
        check_spelling(table.users, requested, indices, "user")
        check_spelling(candidates.items, table.items, of_item, "item of seen=")

    def found(u: int) -> Ints:
        index = indices[u]
        if index < 0:
            return nothing
        rated = of_item[table.columns[table.bounds[index] : table.bounds[index + 1]]]
        return np.asarray(rated[rated >= 0])

    return found


def _each_once(among: Any) -> Any:
    if isinstance(among, str | bytes) or not hasattr(among, "__iter__"):
        raise OptionError(f"among = {among!r} is not a sequence of items; pass a list of their ids, or None for all")
    items = among if hasattr(among, "to_numpy") or isinstance(among, np.ndarray) else each("among", among, DataError)
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


LENGTH = 10  # default length of a list
TOGETHER = 1 << 22  # scores that are held at a time


@dataclass(frozen=True, eq=False, repr=False)
class Recommendations(CompactReprMixin):
    """Lists of n users: that of user u is items[bounds[u]:bounds[u + 1]], best first, with the scores that order it.
    users (n,), bounds (n + 1,), items, scores (bounds[-1],). seconds (n,): how long each list took, where rules hold.
    `recommendations[user]` is the list of items of one user."""

    users: NDArray[Any]
    bounds: Ints
    items: NDArray[Any]
    scores: Floats
    seconds: Floats

    def __len__(self) -> int:
        return self.users.size

    def __getitem__(self, user: Hashable) -> list[Any]:
        index = next((u for u, one in enumerate(self.users.tolist()) if one == user), None)
        if index is None:
            raise KeyError(user)
        found: list[Any] = self.items[self.bounds[index] : self.bounds[index + 1]].tolist()
        return found

    def __iter__(self) -> Iterator[tuple[Any, list[Any]]]:
        """User and list, user after user."""
        for u, user in enumerate(self.users.tolist()):
            yield user, self.items[self.bounds[u] : self.bounds[u + 1]].tolist()

    @property
    def slowest(self) -> tuple[Any, float]:
        """The user whose list took longest, and its seconds. DataError where there are no lists."""
        if not self.seconds.size:
            raise DataError("slowest needs at least one list; got none. Recommend for at least one user")
        index = int(self.seconds.argmax())
        return self.users.item(index), float(self.seconds[index])

    def to_frame(self) -> Any:
        """A pandas frame of the columns user, rank (from 1), item and score."""
        import pandas as pd

        sizes = np.diff(self.bounds)
        rank = np.arange(self.items.size) - np.repeat(self.bounds[:-1], sizes) + 1
        columns = {"user": np.repeat(self.users, sizes), "rank": rank, "item": self.items, "score": self.scores}
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        return f"Recommendations({len(self)} lists of {range_text(np.diff(self.bounds))} items)"

    def __str__(self) -> str:
        """The lists of the first users."""
        few = [f"{user}: {', '.join(map(str, items)) or 'nothing is left'}" for user, items in islice(self, LISTED)]
        more = [f"and {len(self) - len(few):,} more"] if len(self) > len(few) else []
        return "\n".join([repr(self), *few, *more])


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
    number = to_integer(k)
    if number is None or number < 1:
        raise OptionError(f"k must be an integer >= 1; got {k!r}")
    return number


def _length(k: Any, constraints: Admissible | None) -> int:
    """The argument, else the list length of the constraints, else the default."""
    if k is not None:
        k = check_length(k)
    if not isinstance(constraints, Admissible | None):
        raise OptionError(f"constraints must be an Admissible instance; got {constraints!r}")
    if constraints is None:
        return LENGTH if k is None else k
    if k not in (None, constraints.k):
        raise OptionError(f"k = {k} differs from the list length {constraints.k}; use Admissible({k}), or leave k out")
    return constraints.k


def _requested_users(ids: Any) -> NDArray[Any]:
    if isinstance(ids, str | bytes) or not hasattr(ids, "__iter__"):
        raise OptionError(f"users = {ids!r} is not a sequence of users; pass a list, [{ids!r}], or None for all")
    values = ids.to_numpy() if hasattr(ids, "to_numpy") else ids
    check_no_mask("user", values, DataError)
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


def quota_sensitivity(
    ranker: Any, by: str, users: Sequence[Any], k: int = 10, limits: Sequence[int] = (1, 2, 3, 5, 10)
) -> SensitivityCurve:
    """The weighted mean score Σ_i c_i s_π(i) / Σ_i c_i, c_i = 1/log2(i + 1), of each user's best list with at most so
    many items of each label: `limits` below k, and k, which is the list without a quota. The value is NaN where a limit
    leaves fewer items than that list has: such means are not comparable. The curve has no duals."""
    if not len(users):
        raise DataError("users must name at least one user; got none. Pass ids of users.")
    limits = [*sorted({limit for limit in limits if limit < k}), k]
    full = np.diff(ranker.recommend(users, k).bounds)
    users, full = [user for user, n in zip(users, full, strict=True) if n], full[full > 0]
    weights, values = 1.0 / np.log2(np.arange(2.0, k + 2.0)), np.full((len(users), len(limits)), np.nan)
    for column, limit in enumerate(limits):
        quota = Admissible(k, on_infeasible="truncate").at_most(limit, by=by)
        lists = ranker.recommend(users, k, constraints=None if limit == k else quota)
        for u in range(len(users)):
            own = lists.scores[lists.bounds[u] : lists.bounds[u + 1]]
            if own.size == full[u]:
                values[u, column] = np.average(own, weights=weights[: own.size])
    none = np.full(values.shape, np.nan)
    limits_ = np.array(limits, dtype=np.float64)
    return SensitivityCurve(f"{by} at most", limits_, values, none, none, none, np.zeros(values.shape, dtype=bool))
