"""Crossings of lines with bounds of their rounding errors, and the order of lines at t = -∞: shared by all sweeps.

The initial order sorts slopes by two radix passes over their relative position between the minimum and the maximum,
then by insertion, which makes the order exact. Few documents, and clustered slopes, are merge sorted.

The crossings of one line are sorted in nearly linear time if they are distributed like those of random lines.

All crossings of a query (pairs that contribute nothing are left out) are sorted by two radix passes over
lead / (|lead| + c rise), c near the median |t|, which increases with t = lead / rise. Their times are then computed and
sorted by insertion, which makes the order exact. Clustered times are merge sorted.

After a swap in a truncated list, `entering` finds the line below that reaches the last position next.
"""

import numba as nb
import numpy as np

from formulations.arrays import Floats, Ints
from formulations.compiled import FLOATS, INTS, READ_FLOATS, READ_INTS, compiled
from formulations.sorting import sort_falling

FEW = 40
"""Documents that are merged."""

HIGH = 32
"""Low bits of a document's sort key, which hold its index."""


@compiled(nb.void(READ_FLOATS, READ_FLOATS, READ_INTS, FLOATS, INTS, INTS))
def first_order(scores: Floats, slopes: Floats, by_score: Ints, key: Floats, order: Ints, spare: Ints) -> None:
    """Sort by increasing slope, equal slopes by decreasing score.

    by_score: the documents by decreasing score. key, order, spare: buffers of the same length.
    """
    if by_score.size <= FEW or not dealt(slopes, by_score, order, spare):
        for j in range(by_score.size):
            order[j] = by_score[j]
            key[j] = -slopes[j]
        sort_falling(order, key, spare)


@compiled(nb.boolean(READ_FLOATS, READ_INTS, INTS, INTS))
def dealt(values: Floats, initial: Ints, order: Ints, spare: Ints) -> bool:
    """Stable sort by increasing values; False if values are too clustered for it."""
    n = initial.size
    least, largest, least_odd, largest_odd = values[0], values[0], values[n - 1], values[n - 1]
    for i in range(n // 2):
        x, y = values[2 * i], values[2 * i + 1]
        least, largest = min(least, x), max(largest, x)
        least_odd, largest_odd = min(least_odd, y), max(largest_odd, y)
    least, largest = min(least, least_odd), max(largest, largest_odd)
    digit = 6 if n < 100 else 7 if n < 300 else 8
    mask, top = (1 << digit) - 1, float((1 << (2 * digit)) - 1)
    scale = top / (largest - least) if largest > least else 0.0
    counts = np.zeros(2 << digit, np.int64)
    first, second = counts[: 1 << digit], counts[1 << digit :]
    for i in range(n):
        j = initial[i]
        part = (values[j] - least) * scale
        part = part if part > 0.0 else 0.0  # no number either
        number = np.int64(part if part < top else top)
        first[number & mask] += 1
        second[number >> digit] += 1
        order[i] = number << HIGH | j
    one, two = 0, 0
    for k in range(mask + 1):
        one, first[k] = one + first[k], one
        two, second[k] = two + second[k], two
    for i in range(n):
        word = order[i]
        k = word >> HIGH & mask
        spare[first[k]] = word
        first[k] += 1
    for i in range(n):
        word = spare[i]
        k = word >> (HIGH + digit)
        order[second[k]] = word & ((1 << HIGH) - 1)
        second[k] += 1
    left = 4 * n
    for i in range(1, n):
        x = order[i]
        place = i
        while place > 0 and values[order[place - 1]] > values[x] and left > 0:
            order[place] = order[place - 1]
            place -= 1
            left -= 1
        order[place] = x
    return left > 0


ROUNDING = 4 * float(np.finfo(np.float64).eps)
"""Of a computed score s + t a, by |s| + |t a|; twice what two roundings can do, for the time itself is rounded."""


@compiled(nb.float64(nb.float64, nb.float64, nb.float64, nb.float64, nb.float64))
def width(t: float, s: float, a: float, other_s: float, other_a: float) -> float:
    """Distance from the crossing within which rounded scores may give either order of the two lines."""
    spread = abs(s) + abs(other_s) + abs(t) * (abs(a) + abs(other_a))
    return ROUNDING * spread / abs(a - other_a)


@compiled(nb.void(READ_FLOATS, READ_INTS, nb.int64, nb.int64, INTS))
def by_falling_score(scores: Floats, offsets: Ints, first: int, last: int, order: Ints) -> None:
    """order[offsets[q] : offsets[q + 1]] are the documents of query q, counted from its first, by falling score."""
    for q in range(first, last):
        low, high = offsets[q], offsets[q + 1]
        own, initial, spare = order[low:high], np.empty(high - low, np.int64), np.empty(high - low, np.int64)
        falls = np.empty(high - low)
        for j in range(high - low):
            own[j], initial[j], falls[j] = j, j, -scores[low + j]
        if high - low <= FEW or not dealt(falls, initial, own, spare):
            for j in range(high - low):
                own[j], falls[j] = j, scores[low + j]
            sort_falling(own, falls, spare)


@compiled(nb.int64(READ_FLOATS, READ_FLOATS, READ_INTS, INTS))
def groups_of(scores: Floats, slopes: Floats, order: Ints, starts: Ints) -> int:
    """The number of groups of identical lines, which are tied for all t, in `order`; group g is at starts[g] : starts[g
    + 1]. starts has one entry more than there are documents."""
    groups = 0
    for place in range(order.size):
        j = order[place]
        if place == 0 or slopes[j] != slopes[order[place - 1]] or scores[j] != scores[order[place - 1]]:
            starts[groups] = place
            groups += 1
    starts[groups] = order.size
    return groups


@compiled(nb.int64(READ_FLOATS, READ_FLOATS, READ_INTS, READ_FLOATS, FLOATS, INTS, INTS, INTS))
def first_groups(
    scores: Floats, slopes: Floats, by_score: Ints, gain: Floats, own: Floats, order: Ints, spare: Ints, starts: Ints
) -> int:
    """A query at t = -∞: its documents in `order`, the number of groups of identical lines, `starts` as in `groups_of`,
    and own[g] = Σ gain of each. by_score, spare: as in `first_order`."""
    first_order(scores, slopes, by_score, own, order, spare)
    groups = groups_of(scores, slopes, order, starts)
    for g in range(groups):
        own[g] = 0.0
        for place in range(starts[g], starts[g + 1]):
            own[g] += gain[order[place]]
    return groups


@compiled(nb.int64(READ_INTS, nb.int64, nb.int64))
def longest(offsets: Ints, first: int, last: int) -> int:
    """Documents of the longest of the queries first <= q < last, at least 1: the buffer size of a sweep."""
    most = 1
    for q in range(first, last):
        most = max(most, offsets[q + 1] - offsets[q])
    return most


FEW_TIMES = 24
"""Times that are put in order one by one; and as many in one bucket, at most."""


@compiled(nb.void(FLOATS, INTS))
def _insert_all(times: Floats, crossers: Ints) -> None:
    """Insertion sort, linear where hardly anything is out of order."""
    for i in range(1, times.size):
        t, line = times[i], crossers[i]
        j = i
        while j > 0 and times[j - 1] > t:
            times[j], crossers[j] = times[j - 1], crossers[j - 1]
            j -= 1
        times[j], crossers[j] = t, line


@compiled(nb.void(FLOATS, INTS, FLOATS, INTS, INTS, INTS))
def sort_times(times: Floats, crossers: Ints, spare: Floats, lines: Ints, bucket: Ints, counts: Ints) -> None:
    """Sort times, and the lines that cross with them. spare, lines, bucket, counts: buffers of the same length, counts
    one more.

    Times are distributed into buckets by t / (|t| + c), c the median of nine |t|, then sorted by insertion, which makes
    the order exact. Clustered times are merge sorted.
    """
    n = times.size
    if n <= FEW_TIMES:
        _insert_all(times, crossers)
        return
    for i in range(9):
        spare[i] = abs(times[i * (n - 1) // 8])
    for i in range(1, 9):
        for j in range(i, 0, -1):
            if spare[j] < spare[j - 1]:
                spare[j], spare[j - 1] = spare[j - 1], spare[j]
    middle, crowd = spare[4], 0
    usable = 0.0 < middle < np.inf
    if usable:
        counts[: n + 1] = 0
        for i in range(n):
            t = times[i]
            size = abs(t)
            part = t / (size + middle) if size < np.inf else -1.0
            b = min(int((part + 1.0) * (0.5 * n)), n - 1)
            bucket[i] = b
            counts[b + 1] += 1
            crowd = max(crowd, counts[b + 1])
    if usable and crowd <= FEW_TIMES:
        for b in range(n):
            counts[b + 1] += counts[b]
        for i in range(n):
            place = counts[bucket[i]]
            counts[bucket[i]] += 1
            spare[place], lines[place] = times[i], crossers[i]
    else:
        for i in range(n):
            bucket[i], spare[i] = i, -times[i]
        sort_falling(bucket[:n], spare[:n], counts[:n])
        for i in range(n):
            spare[i], lines[i] = times[bucket[i]], crossers[bucket[i]]
    for i in range(n):
        times[i], crossers[i] = spare[i], lines[i]
    _insert_all(times, crossers)


HALF, LOW = 16, (1 << 16) - 1
"""A pair (x, y) of lines is x << HALF | y; its key is in the bits above."""

DIGIT = 11
"""Bits of one digit, at most."""

FEW_PAIRS_IN_TIME = 32
"""Pairs that are inserted as they come."""

SAMPLES = 25
"""Maximum sample size for the median |t|."""


@compiled(nb.float64(READ_FLOATS, READ_FLOATS, nb.int64, nb.int64))
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
def _insert_all_pairs_in_time(s: Floats, a: Floats, words: Ints, spare: Ints, times: Floats) -> None:
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
    place = np.empty(words.size, np.int64)
    for e in range(words.size):
        place[e], spare[e], times[e] = e, words[e], -times[e]
    sort_falling(place, times, np.empty(words.size, np.int64))
    for e in range(words.size):
        word = spare[place[e]]
        words[e] = word
        times[e] = np.divide(s[word >> HALF & LOW] - s[word & LOW], a[word & LOW] - a[word >> HALF & LOW])


TINY = 1e-300
"""Products below it are treated as 0."""

NATURAL = (1 << 40) - 1
"""With this mask the compiler can prove that an index is not negative; otherwise every access tests for indices from
the end."""


@compiled(nb.int64(READ_FLOATS, READ_FLOATS, nb.int64, nb.int64))
def entering(line_s: Floats, line_a: Floats, place: int, lines: int) -> int:
    """The line below `place`, by increasing slope, that first overtakes the one there; -1 if none.

    Of lines whose times are equal up to rounding, the flattest: later crossings follow.
    """
    own_s, own_a, found, soonest, limit = line_s[place], line_a[place], -1, np.inf, np.inf
    for line in range(lines - 1, place, -1):
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
