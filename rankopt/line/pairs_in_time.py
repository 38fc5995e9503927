"""All crossings of a query's lines in order of time, those of two lines that add nothing left out.

Pairs are dealt twice by a number that rises with t = lead / rise: by the digits of lead / (|lead| + c rise), c near the
middle |t|, so that times which spread like those of random lines come out nearly in order. Then their times are
computed, and what is out of order is inserted: right whatever the numbers are. Times that crowd are merged instead.
"""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, INTS, READ_FLOATS, compiled
from formulations.stable_sort import sort_falling

__all__ = ["HALF", "LOW", "pairs_in_time"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HALF, LOW = 16, (1 << 16) - 1
"""A pair (x, y) of lines is x << HALF | y, its number stands above both."""

DIGIT = 11
"""Bits of one digit, at most."""

FEW = 32
"""Pairs that are inserted as they come."""

ASKED = 25
"""Pairs that are asked for the middle |t|, at most."""


@compiled(nb.float64(READ_FLOATS, READ_FLOATS, nb.int64, nb.int64))
def _middle(s: Floats, a: Floats, walkers: int, asked: int) -> float:
    """The middle |t| of some pairs of a walker and another line, of those where it is a number and not 0; else 1."""
    lines, sizes, known = s.size, np.empty(asked), 0
    for i in range(asked):
        x, y = i * walkers // asked, (i * 7919 + 1) % lines
        if a[x] == a[y]:
            continue
        size = abs((s[x] - s[y]) / (a[y] - a[x]))
        if not 0.0 < size < np.inf:
            continue
        place = known
        while place > 0 and sizes[place - 1] > size:
            sizes[place] = sizes[place - 1]
            place -= 1
        sizes[place] = size
        known += 1
    return sizes[known // 2] if known else 1.0


@compiled(nb.void(READ_FLOATS, READ_FLOATS, nb.float64, nb.float64, nb.float64, nb.float64, nb.int64, INTS))
def _deal(s: Floats, a: Floats, own_s: float, own_a: float, middle: float, top: float, pair: int, words: Ints) -> None:
    """words[k]: the number of the crossing of a line with line k of some that are all steeper, or all flatter."""
    for k in range(words.size):
        lead, rise = own_s - s[k], a[k] - own_a
        lead = lead if rise > 0.0 else -lead
        part = (np.divide(lead, abs(lead) + middle * abs(rise)) + 1.0) * (0.5 * top)
        part = part if part > 0.0 else 0.0  # no number either
        part = part if part < top else top
        words[k] = np.int64(np.int32(part)) << (2 * HALF) | (pair + k)


@compiled(nb.int64(READ_FLOATS, READ_FLOATS, nb.int64, INTS, INTS, INTS, FLOATS))
def pairs_in_time(s: Floats, a: Floats, walkers: int, words: Ints, spare: Ints, counts: Ints, times: Floats) -> int:
    """The pairs (x, y) of different slopes, x one of the first lines, the walkers; in order of time.

    s, a: (lines,) the walkers by rising slope, then the others by rising slope. words, spare, times: room for walkers ·
    lines; counts for 2 << DIGIT. Returns how many there are; words[e] & LOW and words[e] >> HALF & LOW are y and x, of
    two walkers x the flatter one, and times[e] is where they cross.
    """
    lines, pairs = s.size, 0
    most = walkers * (walkers - 1) // 2 + walkers * (lines - walkers)
    digit = 4
    while digit < DIGIT and 1 << digit < most:
        digit += 1
    middle = _middle(s, a, walkers, min(ASKED, most // 16)) if most > FEW else 1.0
    top = float((1 << (2 * digit)) - 1)
    after = walkers
    for x in range(walkers):
        begin = x + 1
        while begin < walkers and a[begin] == a[x]:
            begin += 1
        while after < lines and a[after] < a[x]:
            after += 1
        steeper = after
        while steeper < lines and a[steeper] == a[x]:
            steeper += 1
        for low, high in ((begin, walkers), (walkers, after), (steeper, lines)):
            if low < high:
                found = words[pairs : pairs + high - low]
                _deal(s[low:high], a[low:high], s[x], a[x], middle, top, x << HALF | low, found)
                pairs += high - low
    if pairs > FEW:
        _collect(words[:pairs], spare, counts, digit)
    _insert_all(s, a, words[:pairs], spare, times[:pairs])
    return pairs


@compiled(nb.void(INTS, INTS, INTS, nb.int64))
def _collect(words: Ints, spare: Ints, counts: Ints, digit: int) -> None:
    """Put in order of their numbers, of two digits of so many bits."""
    mask = (1 << digit) - 1
    first, second = counts[: mask + 1], counts[mask + 1 : 2 * mask + 2]
    first[:] = 0
    second[:] = 0
    for e in range(words.size):
        number = words[e] >> (2 * HALF)
        first[number & mask] += 1
        second[number >> digit & mask] += 1
    one, two = 0, 0
    for k in range(mask + 1):
        one, first[k] = one + first[k], one
        two, second[k] = two + second[k], two
    for e in range(words.size):
        word = words[e]
        k = word >> (2 * HALF) & mask
        spare[first[k]] = word
        first[k] += 1
    for e in range(words.size):
        word = spare[e]
        k = word >> (2 * HALF + digit) & mask
        words[second[k]] = word
        second[k] += 1


@compiled(nb.void(READ_FLOATS, READ_FLOATS, INTS, INTS, FLOATS))
def _insert_all(s: Floats, a: Floats, words: Ints, spare: Ints, times: Floats) -> None:
    """The times of pairs that are nearly in their order, and both put in order."""
    left = 4 * words.size + FEW * FEW
    for e in range(words.size):
        word = words[e]
        x, y = word >> HALF & LOW, word & LOW
        t = np.divide(s[x] - s[y], a[y] - a[x])
        i = e
        while i > 0 and times[i - 1] > t and left > 0:
            times[i], words[i] = times[i - 1], words[i - 1]
            i -= 1
            left -= 1
        times[i], words[i] = t, word
    if left > 0:
        return
    place = np.empty(words.size, np.int64)
    for e in range(words.size):
        place[e], spare[e], times[e] = e, words[e], -times[e]
    sort_falling(place, times, np.empty(words.size, np.int64))
    for e in range(words.size):
        word = spare[place[e]]
        words[e] = word
        times[e] = np.divide(s[word >> HALF & LOW] - s[word & LOW], a[word & LOW] - a[word >> HALF & LOW])
