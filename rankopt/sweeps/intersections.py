"""Crossings of lines with bounds of their rounding errors, and the order of lines at t = -∞: shared by all sweeps.

All crossings of a query (pairs that contribute nothing are left out) are sorted by two radix passes over
lead / (|lead| + c rise), c near the median |t|, which increases with t = lead / rise. Their times are then computed and
sorted by insertion, which makes the order exact. Clustered times are merge sorted.

After a swap in a truncated list, `entering` finds the line below that reaches the last position next.
"""

from __future__ import annotations

import numpy as np

from formulations.arrays import Floats, Ints, Out
from formulations.compiled import compiled, inlined
from formulations.sorting import sort_falling

ROUNDING = 4 * float(np.finfo(np.float64).eps)
"""Of a computed score s + t a, by |s| + |t a|; twice what two roundings can do, for the time itself is rounded."""


@inlined
def width(t: float, s: float, a: float, other_s: float, other_a: float) -> float:
    """Distance from the crossing within which rounded scores may give either order of the two lines."""
    spread = abs(s) + abs(other_s) + abs(t) * (abs(a) + abs(other_a))
    return ROUNDING * spread / abs(a - other_a)


@compiled(internal=True)
def first_order(
    scores: Floats, slopes: Floats, by_score: Ints, key: Out[Floats], order: Out[Ints], spare: Out[Ints],
    starts: Out[Ints],
) -> int:  # fmt: skip
    """Sort by increasing slope, equal slopes by decreasing score; the number of groups of identical lines, which are
    tied for all t: group g is at starts[g] : starts[g + 1] of `order`.

    by_score: the documents by decreasing score. key, order, spare: buffers of the same length; starts has one more.
    """
    for j in range(by_score.size):
        order[j], key[j] = by_score[j], -slopes[j]
    sort_falling(order, key, spare)
    groups = 0
    for index in range(order.size):
        j = order[index]
        if index == 0 or slopes[j] != slopes[order[index - 1]] or scores[j] != scores[order[index - 1]]:
            starts[groups] = index
            groups += 1
    starts[groups] = order.size
    return groups


@compiled(internal=True)
def first_groups(
    scores: Floats, slopes: Floats, by_score: Ints, gain: Floats, own: Out[Floats], order: Out[Ints], spare: Out[Ints],
    starts: Out[Ints],
) -> int:  # fmt: skip
    """`first_order`, and own[g] = Σ gain of each group."""
    groups = first_order(scores, slopes, by_score, own, order, spare, starts)
    for g in range(groups):
        own[g] = 0.0
        for index in range(starts[g], starts[g + 1]):
            own[g] += gain[order[index]]
    return groups


@compiled(internal=True)
def sort_times(
    times: Out[Floats], crossers: Out[Ints], spare: Out[Floats], lines: Out[Ints], order: Out[Ints], buffer: Out[Ints]
) -> None:
    """Sort times, and the lines that cross with them. spare, lines, order, buffer: buffers of the same length, or
    longer."""
    n = times.size
    for i in range(n):
        order[i], spare[i] = i, -times[i]
    sort_falling(order[:n], spare[:n], buffer[:n])
    for i in range(n):
        spare[i], lines[i] = times[order[i]], crossers[order[i]]
    for i in range(n):
        times[i], crossers[i] = spare[i], lines[i]


HALF, LOW = 16, (1 << 16) - 1  # A pair (x, y) of lines is x << HALF | y; its key is in the bits above
DIGIT = 11  # bits of one digit, at most
FEW_PAIRS_IN_TIME = 32  # pairs that are inserted as they come
SAMPLES = 25  # maximum sample size for the median |t|


@inlined
def _middle(s: Floats, a: Floats, walkers: int, samples: int) -> float:
    """The middle |t| of some pairs of a walker and another line, of those where it is a number and not 0; else 1."""
    lines, sizes, known = s.size, np.empty(samples), 0
    for i in range(samples):
        x, y = i * walkers // samples, (i * 7919 + 1) % lines
        if a[x] == a[y]:
            continue
        size = abs((s[x] - s[y]) / (a[y] - a[x]))
        if not 0.0 < size < np.inf:
            continue
        index = known
        while index > 0 and sizes[index - 1] > size:
            sizes[index] = sizes[index - 1]
            index -= 1
        sizes[index] = size
        known += 1
    return sizes[known // 2] if known else 1.0


@inlined
def _deal(s: Floats, a: Floats, own_s: float, own_a: float, middle: float, top: float, pair: int, words: Ints) -> None:
    """words[k]: the number of the crossing of a line with line k of some that are all steeper, or all flatter."""
    for k in range(words.size):
        lead, rise = own_s - s[k], a[k] - own_a
        lead = lead if rise > 0.0 else -lead
        part = (np.divide(lead, abs(lead) + middle * abs(rise)) + 1.0) * (0.5 * top)
        part = part if part > 0.0 else 0.0  # no number either
        part = part if part < top else top
        words[k] = np.int64(np.int32(part)) << (2 * HALF) | (pair + k)


@compiled(internal=True)
def pairs_in_time(
    s: Floats, a: Floats, walkers: int, words: Out[Ints], spare: Out[Ints], counts: Out[Ints], times: Out[Floats]
) -> int:
    """The pairs (x, y) of different slopes, x one of the first lines, the walkers; in order of time.

    s, a: (lines,) the walkers by increasing slope, then the others by increasing slope. words, spare, times: buffers of
    length walkers · lines; counts of length 2 << DIGIT. Returns the number of pairs. words[e] & LOW and
    words[e] >> HALF & LOW are y and x, of two walkers x the flatter one; times[e] is where they cross.
    """
    lines, pairs = s.size, 0
    most = walkers * (walkers - 1) // 2 + walkers * (lines - walkers)
    digit = 4
    while digit < DIGIT and 1 << digit < most:
        digit += 1
    middle = _middle(s, a, walkers, min(SAMPLES, most // 16)) if most > FEW_PAIRS_IN_TIME else 1.0
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
    if pairs > FEW_PAIRS_IN_TIME:
        _collect(words[:pairs], spare, counts, digit)
    _insert_all_pairs_in_time(s, a, words[:pairs], spare, times[:pairs])
    return pairs


@inlined
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


@compiled(internal=True)
def _insert_all_pairs_in_time(s: Floats, a: Floats, words: Out[Ints], spare: Out[Ints], times: Out[Floats]) -> None:
    """The times of pairs that are nearly in their order, and both put in order."""
    left = 4 * words.size + FEW_PAIRS_IN_TIME * FEW_PAIRS_IN_TIME
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
    index = np.empty(words.size, np.int64)
    for e in range(words.size):
        index[e], spare[e], times[e] = e, words[e], -times[e]
    sort_falling(index, times, np.empty(words.size, np.int64))
    for e in range(words.size):
        word = spare[index[e]]
        words[e] = word
        times[e] = np.divide(s[word >> HALF & LOW] - s[word & LOW], a[word & LOW] - a[word >> HALF & LOW])


TINY = 1e-300  # products below it are treated as 0

NATURAL = (1 << 40) - 1
"""With this mask the compiler can prove that an index is not negative; otherwise every access tests for indices from
the end."""


@compiled(internal=True)
def entering(line_s: Floats, line_a: Floats, index: int, lines: int) -> int:
    """The line below `index`, by increasing slope, that first overtakes the one there; -1 if none.

    Of lines whose times are equal up to rounding, the flattest: later crossings follow.
    """
    own_s, own_a, found, soonest, limit = line_s[index], line_a[index], -1, np.inf, np.inf
    for line in range(lines - 1, index, -1):
        r = line & NATURAL
        rise, lead = line_a[r] - own_a, own_s - line_s[r]
        if rise <= 0.0:
            break
        if lead > rise * limit + TINY:  # later by more than rounding hides: most lines, without a division
            continue
        t = lead / rise
        if found >= 0 and line_a[r] == line_a[found]:
            nearer = line_s[r] > line_s[found]
        else:
            nearer = t <= soonest + ROUNDING * abs(t)
        if nearer and t < np.inf:
            soonest, found = t, r
            limit = t + 2.0 * ROUNDING * abs(t)
    return found
