"""Ratings in shards for any engine: whole users, and whole items; and what these are asked.

A shard is data alone. A question carries what the other side knows, the answer holds factors of the shard's own rows,
or planes of its users. Shards are cut by the ratings, never by the number of workers, so all engines agree bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.encoded_ratings import EncodedRatings, EncodedValues
from rankopt.collaborative.factors import Factors, pair_scores
from rankopt.collaborative.linear_algebra import solve_ridges
from rankopt.collaborative.user_block import solved_users
from rankopt.collaborative.user_planes import QuantizedSlopes
from rankopt.losses.loss import LossAt
from rankopt.risk.shard import cut

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]

LASTING = 1 << 19
"""Ratings up to which the losses of all users are kept, some 58 bytes each; of more, one shard at a time."""


@dataclass(frozen=True, eq=False)
class Entries:
    """The ratings of a shard as codes (n, 1), which engines put into files of their own, and their book."""

    features: Any
    book: Floats

    def read(self) -> Floats:
        """(n,) of the moment."""
        return EncodedValues(self.features[:, 0], self.book)[:]

    def with_features(self, features: Any) -> Entries:
        return replace(self, features=features)


@dataclass(frozen=True, eq=False)
class GatheredFeatures:
    """The same of ratings that lie in another order, of which no copy is kept: engines with files make one."""

    values: EncodedValues
    order: NDArray[Any]

    @cached_property
    def features(self) -> NDArray[Any]:
        return np.asarray(self.values.codes[self.order, None])

    def read(self) -> Floats:
        """(n,) of the moment."""
        return self.values[self.order]

    def with_features(self, features: Any) -> Entries:
        return Entries(features, self.values.book)


@dataclass(frozen=True, eq=False)
class RatedShard:
    """Rows first <= i < last of one side, "users" or "items", cut by bounds (last - first + 1,), with the columns of
    the other. loss: from ratings and bounds to a loss, of users, made once or, where it is not `lasting`, for each
    question. remembered: for the shard itself."""

    scorer: Entries | GatheredFeatures
    side: str
    first: int
    last: int
    bounds: Ints
    columns: Shorts
    weights: Floats
    user_weights: Floats
    loss: Callable[[Floats, Ints], Any] | None = None
    lasting: bool = True
    remembered: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def values(self) -> Floats:
        return self.scorer.read()

    @property
    def rows(self) -> slice:
        """Its users or items among all."""
        return slice(self.first, self.last)

    def at(self, touch: Floats | None) -> Any:
        """The loss of its users, or the majorant that touches it at these scores."""
        loss = self.remembered.get("loss")
        if loss is None:
            assert self.loss is not None
            loss = self.loss(self.values, self.bounds)
            if self.lasting:
                self.remembered["loss"] = loss
        return loss if touch is None or loss.convex else loss.majorant(touch)


def user_shards(
    rated: EncodedRatings, ratings: int, user_weights: Floats, loss: Callable[[Floats, Ints], Any] | None = None
) -> tuple[RatedShard, ...]:
    """Whole users of at least so many ratings a shard, but the last."""
    found, values = [], rated.values
    for first, last in cut(rated.bounds, ratings):
        scorer = Entries(values.codes[int(rated.bounds[first]) : int(rated.bounds[last]), None], values.book)
        shard = _shard("users", scorer, rated.bounds, rated.columns, rated.weights, first, last)
        lasting = rated.values.size <= LASTING
        found.append(replace(shard, user_weights=user_weights[first:last], loss=loss, lasting=lasting))
    return tuple(found)


def item_shards(rated: EncodedRatings, ratings: int) -> tuple[RatedShard, ...]:
    """Whole items of at least so many ratings a shard, but the last."""
    order, users = rated.by_item
    weights = rated.weights[order] if rated.weights.size else rated.weights
    found = []
    for first, last in cut(rated.item_bounds, ratings):
        entries = slice(int(rated.item_bounds[first]), int(rated.item_bounds[last]))
        scorer = GatheredFeatures(rated.values, order[entries])
        found.append(_shard("items", scorer, rated.item_bounds, users, weights, first, last))
    return tuple(found)


def _shard(
    side: str, scorer: Entries | GatheredFeatures, bounds: Ints, columns: Shorts, weights: Floats, first: int, last: int
) -> RatedShard:
    entries = slice(int(bounds[first]), int(bounds[last]))
    return RatedShard(
        scorer, side, first, last, bounds[first : last + 1] - bounds[first], columns[entries],
        weights[entries] if weights.size else weights, np.zeros(0),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class RidgesFor:
    """The ridge systems of one side: x (rows, d) and z (rows,) for the factors and the offsets of the other, and the
    prior of a row's own offset. Shards of the other side are silent."""

    side: str
    other: Floats
    offsets: Floats
    prior: Floats
    penalty: Floats
    offset_penalty: Floats

    def __call__(self, shard: RatedShard) -> tuple[Floats, Floats] | None:
        if shard.side != self.side:
            return None
        left = self.offsets[shard.columns]
        np.subtract(shard.values, left, out=left)
        if self.prior.size:
            left -= np.repeat(self.prior[shard.rows], np.diff(shard.bounds))
        own = self.offset_penalty[shard.rows] if self.offset_penalty.size else self.offset_penalty
        return solve_ridges(shard.bounds, shard.columns, left, shard.weights, self.other, self.penalty[shard.rows], own)


@dataclass(frozen=True, eq=False)
class PlanesAt:
    """v_u l_u and its plane of every user at these factors: values, heights (users,), slopes (entries,); of the
    majorant that touches the loss at the factors `touch`."""

    users: Floats
    items: Floats
    offsets: Floats
    touch: tuple[Floats, Floats, Floats] | None = None

    @classmethod
    def of(cls, factors: Factors, touch: Factors | None = None) -> Self:
        """Of these factors."""
        known = None if touch is None else (touch.users, touch.items, touch.offsets)
        return cls(factors.users, factors.items, factors.offsets, known)

    def __call__(self, shard: RatedShard) -> tuple[Floats, Floats, Any]:
        touch = None if self.touch is None else scores_of(shard, *self.touch)
        found, v = shard.at(touch).at(scores_of(shard, self.users, self.items, self.offsets)), shard.user_weights
        return v * found.value, v * found.height, self._slopes(shard, found)

    def _slopes(self, shard: RatedShard, found: LossAt) -> Any:
        return np.repeat(shard.user_weights, np.diff(shard.bounds)) * (found.placed - found.reference)


@dataclass(frozen=True, eq=False)
class CodedPlanesAt(PlanesAt):
    """The same with slopes as codes, without the weights of users, where these can be told so."""

    def _slopes(self, shard: RatedShard, found: LossAt) -> Any:
        coded = QuantizedSlopes.of(found.placed, found.reference)
        return super()._slopes(shard, found) if coded is None else coded


@dataclass(frozen=True, eq=False)
class UsersFor:
    """The users' block of a shard: U (users, d), slopes (entries,), heights and v_u l_u (users,). slopes, heights: the
    plane of each user to begin with, in the order of all ratings, of which the shard's begin at `entries[first]`."""

    users: Floats
    items: Floats
    offsets: Floats
    penalty: Floats
    tolerance: float
    entries: Ints
    slopes: Floats
    heights: Floats
    convex: bool

    def __call__(self, shard: RatedShard) -> tuple[Floats, Floats, Floats, Floats]:
        low, high = int(self.entries[shard.first]), int(self.entries[shard.last])
        slopes, heights, touch = self.slopes[low:high], self.heights[shard.rows], None
        if not self.convex:
            touch = scores_of(shard, self.users, self.items, self.offsets)
            known = (self.users, self.items, self.offsets)
            _, heights, slopes = PlanesAt(*known, touch=known)(shard)
        return solved_users(
            shard.at(touch), shard.user_weights, shard.bounds, shard.columns, self.items, self.offsets,
            self.penalty[shard.rows], slopes, heights, self.users[shard.rows],
            np.full(shard.last - shard.first, self.tolerance),
        )  # fmt: skip


def scores_of(shard: RatedShard, users: Floats, items: Floats, offsets: Floats) -> Floats:
    none = np.zeros(shard.last - shard.first)
    own = np.ascontiguousarray(users[shard.rows])
    return pair_scores(own, items, offsets, none, shard.bounds, shard.columns)
