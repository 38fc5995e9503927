"""Planes of the users of a shard, mixed by weights that sum to one: each has as many as carry weight, and few more.

A plane is δ + ⟨ψ, f⟩, a height and a slope a rating. Slopes lie as codes (`coded_slopes`), two bytes each, or as they
are, of losses that say too many different ones.

Planes of users as they lie in memory, user after user and plane after plane: read, mixed, moved and joined.

Slopes of planes as codes: a list has few places, so two bytes say which slope a rating has.

The slope of a rating is v (placed - reference), `placed` what its place weighs. A book holds the numbers that occur in
a shard, once each, and a code is a page of it; what is read is to the bit what was written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, INTS, READ_FLOATS, READ_INTS, compiled
from rankopt.collaborative.encoded_ratings import CODES, PAGES, READ_CODES, encode_values
from rankopt.collaborative.linear_algebra import TABLE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.uint16]

FEW = 6
"""Planes of a user from which on one without weight makes way for the next, before there are more; fewer than a user of
the users' block has (`held_planes`), since they are kept from pass to pass and from round to round."""

SLOPES = (READ_FLOATS, READ_CODES, READ_CODES, READ_FLOATS, READ_FLOATS)
"""What slopes are read from: scale, codes, reference, book, plain."""


@compiled(nb.void(nb.int64, nb.int64, nb.int64, nb.int64, *SLOPES, TABLE))
def read_slopes(
    u: int, low: int, at: int, count: int, scale: Floats, codes: Codes, reference: Codes, book: Floats, plain: Floats,
    found: Floats,
) -> None:  # fmt: skip
    """found[k, :size] = the slopes of plane k < count of user u, whose ratings begin at `low` and slopes at `at`."""
    size = found.shape[1]
    if plain.size:
        for k in range(count):
            for e in range(size):
                found[k, e] = plain[at + k * size + e]
        return
    v = scale[u]
    for k in range(count):
        for e in range(size):
            found[k, e] = v * (book[codes[at + k * size + e]] - book[reference[low + e]])


@compiled(nb.boolean(READ_INTS, READ_FLOATS, nb.int64))
def crowded(counts: Ints, weights: Floats, most: int) -> bool:
    """Whether a user has so many planes, or more, that all have weight."""
    first = 0
    for u in range(counts.size):
        if counts[u] >= most:
            full = True
            for k in range(counts[u]):
                full &= weights[first + k] > 0.0
            if full:
                return True
        first += counts[u]
    return False


@compiled(nb.void(READ_INTS, READ_INTS, nb.int64, FLOATS, FLOATS, FLOATS, FLOATS))
def join_lightest(
    bounds: Ints, counts: Ints, most: int, plain: Floats, weights: Floats, heights: Floats, gram: Floats
) -> None:
    first, at, table = 0, 0, 0
    for u in range(counts.size):
        own, size = counts[u], bounds[u + 1] - bounds[u]
        light, other = -1, -1
        for k in range(own):
            if light < 0 or weights[first + k] < weights[first + light]:
                light, other = k, light
            elif other < 0 or weights[first + k] < weights[first + other]:
                other = k
        if own >= most and weights[first + light] > 0.0:
            total = weights[first + light] + weights[first + other]
            p, q = weights[first + light] / total, weights[first + other] / total
            for e in range(size):
                to = at + other * size + e
                plain[to] = p * plain[at + light * size + e] + q * plain[to]
            heights[first + other] = p * heights[first + light] + q * heights[first + other]
            square = gram[table : table + own * own].reshape((own, own))
            alone = p * p * square[light, light] + 2.0 * p * q * square[light, other] + q * q * square[other, other]
            for k in range(own):
                square[other, k] = p * square[light, k] + q * square[other, k]
                square[k, other] = square[other, k]
            square[other, other] = alone
            weights[first + other], weights[first + light] = total, 0.0
        first, at, table = first + own, at + own * size, table + own * own


@compiled(nb.void(READ_INTS, READ_INTS, READ_FLOATS, INTS, INTS))
def place_fresh(bounds: Ints, counts: Ints, weights: Floats, place: Ints, grown: Ints) -> None:
    """The place of each user's next plane, and how many planes he has then."""
    first = 0
    for u in range(counts.size):
        own = counts[u]
        place[u] = own
        if own >= FEW:
            for k in range(own):
                if weights[first + k] == 0.0:
                    place[u] = k
                    break
        if bounds[u + 1] > bounds[u]:
            grown[u] = max(own, place[u] + 1)
        first += own


def _moved_of(kind: Any, read: Any, write: Any) -> Any:
    return nb.void(READ_INTS, READ_INTS, READ_INTS, READ_INTS, read, read, write)


@compiled([_moved_of(nb.uint16, READ_CODES, CODES), _moved_of(nb.float64, READ_FLOATS, FLOATS)])
def move_slopes(bounds: Ints, counts: Ints, grown: Ints, place: Ints, held: Any, fresh: Any, found: Any) -> None:
    """Slopes of all planes with the fresh ones in their places."""
    old, new = 0, 0
    for u in range(counts.size):
        low, size = bounds[u], bounds[u + 1] - bounds[u]
        for e in range(counts[u] * size):
            found[new + e] = held[old + e]
        if size:
            for e in range(size):
                found[new + place[u] * size + e] = fresh[low + e]
        old += counts[u] * size
        new += grown[u] * size


@compiled(
    nb.void(READ_INTS, READ_INTS, READ_INTS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, FLOATS, FLOATS, FLOATS)
)
def move_numbers(
    counts: Ints, grown: Ints, place: Ints, weights: Floats, heights: Floats, gram: Floats, fresh: Floats,
    more_weights: Floats, more_heights: Floats, more_gram: Floats,
) -> None:  # fmt: skip
    """Weights, heights and gram likewise; the fresh planes have the weight 0, and no entries yet."""
    old, new, at, to = 0, 0, 0, 0
    for u in range(counts.size):
        own, more = counts[u], grown[u]
        for k in range(own):
            more_weights[new + k], more_heights[new + k] = weights[old + k], heights[old + k]
            for other in range(own):
                more_gram[to + k * more + other] = gram[at + k * own + other]
        if more:
            more_heights[new + place[u]] = fresh[u]
        old, new, at, to = old + own, new + more, at + own * own, to + more * more


@compiled(nb.void(READ_INTS, *SLOPES, READ_INTS, READ_FLOATS, READ_FLOATS, FLOATS, FLOATS))
def mix_planes(
    bounds: Ints, scale: Floats, codes: Codes, reference: Codes, book: Floats, plain: Floats, counts: Ints,
    weights: Floats, heights: Floats, found: Floats, height: Floats,
) -> None:  # fmt: skip
    first, at = 0, 0
    for u in range(counts.size):
        low, size, v = bounds[u], bounds[u + 1] - bounds[u], scale[u]
        for e in range(size):
            total = 0.0
            for k in range(counts[u]):
                one = at + k * size + e
                slope = plain[one] if plain.size else v * (book[codes[one]] - book[reference[low + e]])
                total += weights[first + k] * slope
            found[low + e] = total
        height[u] = 0.0
        for k in range(counts[u]):
            height[u] += weights[first + k] * heights[first + k]
        first += counts[u]
        at += counts[u] * size


@compiled(nb.void(READ_INTS, *SLOPES, READ_INTS, FLOATS))
def decode(
    bounds: Ints, scale: Floats, codes: Codes, reference: Codes, book: Floats, plain: Floats, counts: Ints,
    found: Floats,
) -> None:  # fmt: skip
    at = 0
    for u in range(counts.size):
        low, size = bounds[u], bounds[u + 1] - bounds[u]
        for _ in range(counts[u]):
            for e in range(size):
                found[at + e] = scale[u] * (book[codes[at + e]] - book[reference[low + e]])
            at += size


@dataclass(frozen=True, eq=False)
class QuantizedSlopes:
    """book[placed] - book[reference] of each rating, (ratings,) codes."""

    placed: Codes
    reference: Codes
    book: Floats

    @classmethod
    def of(cls, placed: Floats, reference: Floats) -> QuantizedSlopes | None:
        """None where there are more numbers than pages."""
        codes, book = encode_values(np.zeros(0), placed)
        if codes is None:
            return None
        others, book = encode_values(book, reference)
        return None if others is None else cls(codes, others, book)

    def plain(self) -> Floats:
        """(ratings,) the slopes of users who count once."""
        return np.asarray(self.book[self.placed] - self.book[self.reference])

    def under(self, book: Floats) -> tuple[QuantizedSlopes | None, Floats]:
        """The same by a book that begins with this one, and that book; None where it would be too long."""
        pages, book = encode_values(book, self.book)
        if pages is None:
            return None, book
        return QuantizedSlopes(pages[self.placed], pages[self.reference], book), book


MOST = 512
"""Planes of a user from which on the two lightest are joined in one, which no code tells."""

NO_CODES = np.zeros(0, dtype=np.uint16)
NO_FLOATS = np.zeros(0)


@dataclass(frozen=True, eq=False)
class UserPlanes:
    """bounds (n + 1,) of the ratings of n users, scale (n,) how much each counts; counts (n,) of planes, weights and
    heights (planes,) user after user, slopes plane after plane, of each as many as the user has ratings: `plain`, or
    scale (book[codes] - book[reference]) with one reference (ratings,) for all planes. gram: of each user a matrix of
    his planes in whatever metric the block has, row after row. Weights and gram are written in place.
    """

    bounds: Ints
    scale: Floats
    counts: Ints
    weights: Floats
    heights: Floats
    codes: Codes
    reference: Codes
    book: Floats
    plain: Floats
    gram: Floats

    @classmethod
    def first(cls, bounds: Ints, scale: Floats, slopes: QuantizedSlopes | Floats, heights: Floats) -> UserPlanes:
        """One plane of each user who has ratings."""
        counts = (np.diff(bounds) > 0).astype(np.int64)
        codes, reference, book, plain = NO_CODES, NO_CODES, NO_FLOATS, NO_FLOATS
        if isinstance(slopes, QuantizedSlopes):
            codes, reference, book = slopes.placed, slopes.reference, slopes.book
        else:
            plain = slopes
        planes = heights[counts > 0]
        gram = np.zeros(planes.size)
        return cls(bounds, scale, counts, np.ones(planes.size), planes, codes, reference, book, plain, gram)

    @property
    def slopes(self) -> tuple[Floats, Codes, Codes, Floats, Floats]:
        """What kernels read slopes from."""
        return self.scale, self.codes, self.reference, self.book, self.plain

    def told(self, slopes: QuantizedSlopes | Floats) -> tuple[UserPlanes, Codes | Floats]:
        """The same planes, and slopes (ratings,) of one more of each user as these tell slopes: as codes of a longer
        book, or, where that has no room or the reference is another, as they are."""
        if not self.plain.size:
            coded, book = slopes.under(self.book) if isinstance(slopes, QuantizedSlopes) else (None, self.book)
            if coded is not None and np.array_equal(coded.reference, self.reference):
                return replace(self, book=book), coded.placed
        known = self if self.plain.size else self._as_plain()
        if isinstance(slopes, QuantizedSlopes):
            slopes = np.repeat(self.scale, np.diff(self.bounds)) * slopes.plain()
        return known, slopes

    def with_plane(self, slopes: Codes | Floats, heights: Floats, most: int = MOST) -> tuple[UserPlanes, Ints]:
        """With one more plane of each user, of slopes as they are `told`, without weight, and its place (n,) among his:
        the next of the first `FEW`, else that of a plane without weight, else the next; of `most` or more that all have
        weight the two lightest are joined. Entries of gram are those of the planes that stay."""
        if crowded(self.counts, self.weights, max(most, FEW)):
            if not self.plain.size:
                slopes = np.repeat(self.scale, np.diff(self.bounds)) * (self.book[slopes] - self.book[self.reference])
            return self._joined(max(most, FEW)).with_plane(slopes, heights, most)
        place, counts = np.zeros(self.counts.size, dtype=np.int64), self.counts.copy()
        place_fresh(self.bounds, self.counts, self.weights, place, counts)
        planes, entries = int(counts.sum()), int(counts @ np.diff(self.bounds))
        held = self.plain if self.plain.size else self.codes
        grown = np.empty(entries, dtype=held.dtype)
        move_slopes(self.bounds, self.counts, counts, place, held, slopes, grown)
        weights, higher, gram = np.zeros(planes), np.empty(planes), np.zeros(int(counts @ counts))
        move_numbers(self.counts, counts, place, self.weights, self.heights, self.gram, heights, weights, higher, gram)
        kind: dict[str, Any] = {"plain": grown} if self.plain.size else {"codes": grown}
        return replace(self, counts=counts, weights=weights, heights=higher, gram=gram, **kind), place

    def with_weight(self) -> UserPlanes:
        """The planes that have weight, which sums to one again, since moves of weight round; no gram."""
        there = self.weights > 0.0
        owner = np.repeat(np.arange(self.counts.size), self.counts)
        totals = np.bincount(owner, self.weights, self.counts.size)
        counts = np.bincount(owner[there], minlength=self.counts.size)
        held = self.plain if self.plain.size else self.codes
        kept = held[np.repeat(there, np.diff(self.bounds)[owner])]
        kind: dict[str, Any] = {"plain": kept} if self.plain.size else {"codes": kept}
        weights = self.weights[there] / totals[owner[there]]
        return replace(self, counts=counts, weights=weights, heights=self.heights[there], gram=NO_FLOATS, **kind)

    def again(self) -> UserPlanes:
        """The same, to be written to."""
        return replace(self, weights=self.weights.copy(), gram=np.zeros(int(self.counts @ self.counts)))

    def mixed(self) -> tuple[Floats, Floats]:
        """The mixtures as one plane a user: slopes (ratings,), heights (n,)."""
        found, heights = np.empty(self.bounds[-1]), np.empty(self.counts.size)
        mix_planes(self.bounds, *self.slopes, self.counts, self.weights, self.heights, found, heights)
        return found, heights

    def check(self, bounds: Ints, scale: Floats) -> None:
        """ValueError for what is not planes `with_weight` of users with these ratings, who count so much."""
        sizes, counts = np.diff(bounds), self.counts
        if not np.array_equal(self.bounds, bounds) or not np.array_equal(self.scale, scale):
            raise ValueError("planes are of other ratings")
        users = counts.dtype == np.int64 and counts.shape == sizes.shape and counts.min(initial=0) >= 0
        if not users or not ((counts > 0) == (sizes > 0)).all():
            raise ValueError("users of planes are not those of the ratings")
        planes, entries, none = (int(counts.sum()),), (int(counts @ sizes),), (0,)
        coded = not self.plain.size
        if self.book.ndim != 1 or self.book.size > PAGES:
            raise ValueError("book of planes has another shape")
        for name, kind, shape in (
            ("weights", np.float64, planes), ("heights", np.float64, planes), ("book", np.float64, self.book.shape),
            ("plain", np.float64, none if coded else entries),
            ("codes", np.uint16, entries if coded else none), ("gram", np.float64, none),
            ("reference", np.uint16, (int(bounds[-1]),) if coded else self.reference.shape),
        ):  # fmt: skip
            array = getattr(self, name)
            if array.dtype != kind or array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"{name} of planes have another shape, or are not finite")
        if coded and not max(one.max(initial=0) for one in (self.codes, self.reference)) < max(self.book.size, 1):
            raise ValueError("codes of planes are not in their book")
        sums = np.bincount(np.repeat(np.arange(counts.size), counts), self.weights, counts.size)
        if (self.weights < 0.0).any() or not np.allclose(sums[counts > 0], 1.0, rtol=1e-6):
            raise ValueError("weights of planes are none")

    def _joined(self, most: int) -> UserPlanes:
        """The same mixtures, the two lightest planes of each user who has so many one, and the other without weight."""
        plain = self.plain.copy() if self.plain.size else self._as_plain().plain
        weights, heights, gram = self.weights.copy(), self.heights.copy(), self.gram.copy()
        join_lightest(self.bounds, self.counts, most, plain, weights, heights, gram)
        return replace(
            self, codes=NO_CODES, reference=NO_CODES, book=NO_FLOATS, plain=plain, weights=weights, heights=heights,
            gram=gram,
        )  # fmt: skip

    def _as_plain(self) -> UserPlanes:
        """The same without codes."""
        found = np.empty(self.codes.size)
        decode(self.bounds, *self.slopes, self.counts, found)
        return replace(self, codes=NO_CODES, reference=NO_CODES, book=NO_FLOATS, plain=found)
