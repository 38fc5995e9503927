"""The best order of chains where states are many: prices of a good one prove it or leave little to search.

The order is greedy at first, then found by ever wider beams. If its prices prove it, that is all. If they leave few
states open, these are searched; if too many, the order is mended by shortest paths, which have no states to run out of.
"""

import numba as nb
import numpy as np

from formulations.argmax.augmenting_paths import augment
from formulations.argmax.order_ideals import NO_BEAM, best_labels
from formulations.argmax.placement import TABLE as AFTER
from formulations.argmax.price_bounds import greedy_labels, loose_positions, open_slack, price_between, raise_prices
from formulations.arrays import Bytes, Floats, Ints, Shorts
from formulations.compiled import BYTES, FLOATS, INTS, READ_FLOATS, READ_SHORTS, SHORTS, compiled

__all__ = ["AUGMENTED", "GIVEN_UP", "LEFT", "PROVED", "priced_labels", "searched_labels"]

TABLE = nb.types.Array(nb.int64, 2, "C")
NUMBERS = nb.types.Array(nb.float64, 2, "C")
PLACES = nb.types.Array(nb.int32, 2, "C")

PROVED, AUGMENTED, GIVEN_UP = 0, -1, -2

LEFT, EARNED, NOISE = 0, 1, 2
"""Places in `told`: what rounding may have left open, the value of the best order so far, what a position rounds."""

EPSILON = 2.0**-52

BEAMS = np.array([0, 0, 8, 16, 32, 64])
PRUNED = np.array([3, 3, 3, 6, 8, 40])
WIDTHS = np.array([64, 64, 64, 1 << 20, 1 << 20, 1 << 20])
"""The efforts made one after the other, each with the prices of the one before: states a position that are kept to find
a good order (none: a greedy one), then states a position, on the mean and at most, of the search that its prices
prune."""

FEW_LOOSE = 2
"""Positions that do not suit the prices and are mended at once."""


@compiled(nb.void(BYTES, BYTES, nb.int64))
def _copy(source: Bytes, target: Bytes, count: int) -> None:
    for i in range(count):
        target[i] = source[i]


@compiled(
    nb.int64(
        FLOATS, READ_FLOATS, INTS, INTS, READ_FLOATS, READ_FLOATS, READ_SHORTS, READ_SHORTS, nb.int64,
        FLOATS, FLOATS, INTS, TABLE, NUMBERS, PLACES, INTS, FLOATS, SHORTS, BYTES, BYTES, BYTES, INTS, BYTES, FLOATS,
    )
)  # fmt: skip
def _pruned(
    height: Floats,
    worth: Floats,
    start: Ints,
    size: Ints,
    discount: Floats,
    decay: Floats,
    low: Shorts,
    high: Shorts,
    stop: int,
    price: Floats,
    most: Floats,
    spare: Ints,
    next_key: Ints,
    next_value: Floats,
    next_from: Shorts,
    key: Ints,
    value: Floats,
    origin: Shorts,
    chain: Bytes,
    label: Bytes,
    member: Bytes,
    placed: Ints,
    best: Bytes,
    told: Floats,
) -> int:
    """Prices of the good order `label`: PROVED where they suffice, the most states of the search that they prune, or
    GIVEN_UP where it has no room. `best` is the best order of all that came by, told[EARNED] its value."""
    value_of = price_between(height, worth, start, size, discount, decay, stop, label, placed, price)
    if value_of > told[EARNED]:
        _copy(label, best, stop)
        told[EARNED] = value_of
    raise_prices(height, worth, start, size, discount, decay, stop, label, placed, price)
    slack = open_slack(height, worth, start, size, discount, decay, stop, price, told[EARNED], spare, most)
    if slack <= told[LEFT]:
        _copy(best, label, stop)
        return PROVED
    widest = best_labels(
        height, worth, start, size, discount, decay, low, high, stop, price, most, slack + 4.0 * told[LEFT], NO_BEAM,
        next_key, next_value, next_from, key, value, origin, chain, member,
    )  # fmt: skip
    if widest < 0:
        return GIVEN_UP
    told[LEFT] = 0.0
    _copy(member, label, stop)
    return widest


@compiled(nb.void(FLOATS, READ_FLOATS, INTS, INTS, READ_FLOATS, READ_FLOATS, nb.int64, FLOATS))
def _begin(
    height: Floats,
    worth: Floats,
    start: Ints,
    size: Ints,
    discount: Floats,
    decay: Floats,
    stop: int,
    told: Floats,
) -> None:
    largest = 0.0
    for g in range(worth.size):
        reach = max(abs(height[start[g]]), abs(height[start[g] + size[g] - 1]))
        largest = max(largest, reach * (decay[0] - decay[stop]) + abs(worth[g]) * (discount[0] - discount[stop]))
    told[NOISE], told[EARNED] = 4.0 * EPSILON * largest, -np.inf
    told[LEFT] = told[NOISE] * stop


SEARCH = (
    FLOATS, READ_FLOATS, INTS, INTS, READ_FLOATS, READ_FLOATS, READ_SHORTS, READ_SHORTS, nb.int64,
    FLOATS, FLOATS, FLOATS, INTS, TABLE, NUMBERS, PLACES, INTS, FLOATS, SHORTS, BYTES, BYTES, BYTES,
)  # fmt: skip


@compiled(nb.int64(*SEARCH, FLOATS))
def priced_labels(
    height: Floats,
    worth: Floats,
    start: Ints,
    size: Ints,
    discount: Floats,
    decay: Floats,
    low: Shorts,
    high: Shorts,
    stop: int,
    price: Floats,
    most: Floats,
    nothing: Floats,
    spare: Ints,
    next_key: Ints,
    next_value: Floats,
    next_from: Shorts,
    key: Ints,
    value: Floats,
    origin: Shorts,
    chain: Bytes,
    label: Bytes,
    member: Bytes,
    told: Floats,
) -> int:
    """As `searched_labels`, but the first effort is the only one: GIVEN_UP where more would be needed."""
    _begin(height, worth, start, size, discount, decay, stop, told)
    placed, best = np.zeros(worth.size, np.int64), np.empty(stop, np.int8)
    room = PRUNED[0] * stop + min(512, stop * stop // 4)
    greedy_labels(height, worth, start, size, discount, decay, stop, 0, placed, label)
    return _pruned(
        height, worth, start, size, discount, decay, low, high, stop, price, most, spare, next_key, next_value,
        next_from, key[: WIDTHS[0] * worth.size], value, origin[:room], chain, label, member, placed, best, told,
    )  # fmt: skip


@compiled(nb.int64(*SEARCH, AFTER, FLOATS))
def searched_labels(
    height: Floats,
    worth: Floats,
    start: Ints,
    size: Ints,
    discount: Floats,
    decay: Floats,
    low: Shorts,
    high: Shorts,
    stop: int,
    price: Floats,
    most: Floats,
    nothing: Floats,
    spare: Ints,
    next_key: Ints,
    next_value: Floats,
    next_from: Shorts,
    key: Ints,
    value: Floats,
    origin: Shorts,
    chain: Bytes,
    label: Bytes,
    member: Bytes,
    after: Shorts,
    told: Floats,
) -> int:
    """As `best_labels`, with room for price, member and spare (a document), most (a position), zeros in nothing.

    Returns the most states a position has, PROVED where prices suffice, AUGMENTED where shortest paths were taken;
    told[LEFT]: what rounding may have left open.
    """
    _begin(height, worth, start, size, discount, decay, stop, told)
    noise = told[NOISE]
    placed, fewest = np.zeros(worth.size, np.int64), stop + 1
    best, kept_label, kept_price = np.empty(stop, np.int8), np.empty(stop, np.int8), np.empty(price.size)
    for effort in range(BEAMS.size):
        room = PRUNED[effort] * stop + min(512, stop * stop // 4)
        if effort == 0:
            greedy_labels(height, worth, start, size, discount, decay, stop, 0, placed, label)
        elif BEAMS[effort] == 0:
            greedy_labels(height, worth, start, size, discount, decay, stop, 2, placed, member)
            greedy_labels(height, worth, start, size, discount, decay, stop, 16, placed, label)
            value_of = price_between(height, worth, start, size, discount, decay, stop, member, placed, price)
            if value_of > price_between(height, worth, start, size, discount, decay, stop, label, placed, price):
                _copy(member, label, stop)
        else:
            widest = best_labels(
                height, worth, start, size, discount, decay, low, high, stop, price, nothing, np.inf, BEAMS[effort],
                next_key, next_value, next_from, key, value, origin, chain, label,
            )  # fmt: skip
            if widest < 0:
                break
        widest = _pruned(
            height, worth, start, size, discount, decay, low, high, stop, price, most, spare, next_key, next_value,
            next_from, key[: WIDTHS[effort] * worth.size], value, origin[:room], chain, label, member, placed, best,
            told,
        )  # fmt: skip
        if widest != GIVEN_UP:
            return widest
        loose = loose_positions(height, worth, start, discount, decay, stop, label, placed, price, most, noise)
        if loose < fewest:
            fewest = loose
            _copy(label, kept_label, stop)
            for slot in range(price.size):
                kept_price[slot] = price[slot]
        if loose <= FEW_LOOSE:
            break
    _copy(kept_label, label, stop)
    for slot in range(price.size):
        price[slot] = kept_price[slot]
    open_slack(height, worth, start, size, discount, decay, stop, price, 0.0, spare, most)
    augment(height, worth, start, size, discount, decay, stop, price, most, noise, label, member, after)
    return AUGMENTED
