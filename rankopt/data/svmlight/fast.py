"""The LETOR / SVMlight format read by compiled code: the same result as `parser.parse_lines`, or None for text that it
refuses, where `parse_lines` then finds the error.

Decimal numbers are rounded correctly, as by Python's `float`:

* a mantissa below 2^53 and a power of ten up to 22 are exact, so one product or quotient rounds once [Clinger 1990]
* else the product of mantissa and power is formed as a sum of two doubles, with a relative error below 2^-98; where
  that error could change the rounding, Python's `float` decides
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np

from formulations.arrays import Floats, Ints, Out, Shorts, Table, Text
from formulations.compiled import compiled, inlined
from rankopt.data.svmlight.parser import INDEX_DIGITS, Parsed, Rules
from rankopt.data.text import is_text

LIMIT = 250  # powers of ten beyond it come near the ends of the range of doubles, where the error bound fails
DIGITS = 18  # of a mantissa in int64
EXACT, HARD, NONE = 0, 1, 2

PLUS, MINUS, POINT, ZERO, NINE = 43, 45, 46, 48, 57


@cache
def powers_of_ten() -> tuple[Floats, Floats]:
    """Doubles high, low (2 LIMIT + 1,) whose sum is 10^e at index LIMIT + e, to a relative error of 2^-106."""
    exact = [Fraction(10) ** e for e in range(-LIMIT, LIMIT + 1)]
    high = np.array([float(power) for power in exact])
    low = np.array([float(power - Fraction(float(power))) for power in exact])
    for table in (high, low):
        table.setflags(write=False)
    return high, low


@inlined
def scaled(mantissa: int, exponent: int, high: Floats, low: Floats) -> tuple[float, bool]:
    """mantissa · 10^exponent for 0 < mantissa < 10^18, and whether it is sure to be correctly rounded."""
    if mantissa < 1 << 53 and -22 <= exponent <= 22:
        if exponent < 0:
            return mantissa / high[LIMIT - exponent], True
        return mantissa * high[LIMIT + exponent], True
    if not -LIMIT <= exponent <= LIMIT:
        return 0.0, False
    m = np.float64(mantissa)
    rest = np.float64(mantissa - np.int64(m))
    p = high[LIMIT + exponent]
    product = m * p
    # Dekker's product: halves of 26 bits multiply exactly, so `error` is what rounding took from m * p.
    split = 134217729.0 * m
    m1 = split - (split - m)
    m2 = m - m1
    split = 134217729.0 * p
    p1 = split - (split - p)
    p2 = p - p1
    error = ((m1 * p1 - product) + m1 * p2 + m2 * p1) + m2 * p2
    error += m * low[LIMIT + exponent] + rest * p
    value = product + error
    tail = error - (value - product)
    slack = value * 2.0**-98
    return value, value + (tail + slack) == value and value + (tail - slack) == value


@compiled(internal=True)
def number_at(text: Text, at: int, high: Floats, low: Floats) -> tuple[float, int, int]:
    """The decimal number that begins at `at`, where it ends, and whether it is EXACT, HARD (for Python) or NONE at all.
    The text ends with a byte that belongs to no number."""
    negative = text[at] == MINUS
    if negative or text[at] == PLUS:
        at += 1
    mantissa, exponent, digits = 0, 0, 0
    seen, point = False, False
    while True:
        byte = text[at]
        if ZERO <= byte <= NINE:
            seen = True
            if digits > 0 or byte != ZERO:
                digits += 1
            if digits <= DIGITS:
                mantissa = 10 * mantissa + (byte - ZERO)
                exponent -= point
        elif byte == POINT and not point:
            point = True
        else:
            break
        at += 1
    if not seen:
        return 0.0, at, NONE
    if text[at] == 69 or text[at] == 101:  # E, e
        at += 1
        down = text[at] == MINUS
        if down or text[at] == PLUS:
            at += 1
        if not ZERO <= text[at] <= NINE:
            return 0.0, at, NONE
        power = 0
        while ZERO <= text[at] <= NINE:
            if power < 99999:
                power = 10 * power + (text[at] - ZERO)
            at += 1
        exponent += -power if down else power
    if digits > DIGITS:
        return 0.0, at, HARD
    if mantissa == 0:
        return (-0.0 if negative else 0.0), at, EXACT
    value, sure = scaled(mantissa, exponent, high, low)
    return (-value if negative else value), at, (EXACT if sure else HARD)


HARDEST = 1 << 16  # numbers of a text that may be left to Python's `float`; with more it is read line by line

SHORTEST_LINE, SHORTEST_ENTRY = len("1 qid:1\n"), len(" 1:1")
"""Bytes of a line of data, and of an entry with the blank before it."""

NEWLINE, RETURN, TAB, BLANK, HASH, COLON, EQUALS, DELETE = 10, 13, 9, 32, 35, 58, 61, 127


@compiled(internal=True)
def _skip(text: Text, at: int) -> int:
    """The next byte that is no blank; a return that ends its line is one."""
    while text[at] == BLANK or text[at] == TAB:
        at += 1
    return at + 1 if text[at] == RETURN and text[at + 1] == NEWLINE else at


@inlined
def _word(text: Text, at: int) -> int:
    """The end of the word that begins at `at`; a control character in it is its end too."""
    while text[at] > BLANK and text[at] != HASH and text[at] != DELETE:
        at += 1
    return at


@inlined
def _after(text: Text, at: int, word: bytes, fold: int) -> int:
    """The index after `word`, or -1 if `word` is not at `at`. fold: 32 to ignore case, else 0."""
    for letter in word:
        if text[at] | fold != letter:
            return -1
        at += 1
    return at


@compiled()
def _scan(
    text: Text, missing: float, width: int, high: Floats, low: Floats, grades: Out[Floats], bounds: Out[Ints],
    columns: Out[Shorts], values: Out[Floats], lines: Out[Ints], starts: Out[Ints], qids: Out[Table[Ints]],
    documents: Out[Table[Ints]], hard: Out[Table[Ints]],
) -> tuple[int, int, int, int]:  # fmt: skip
    """Fill the arrays; how many rows, entries, queries and hard numbers there are; -1 rows: it gave up. text ends with
    a newline. missing: an infinite one refuses missing values. lines: the newlines before each row. qids, documents:
    where names begin and end in the text, -1 for no document. hard: entry, begin and end of each number that Python
    must read."""
    rows, entries, queries, hards, line = 0, 0, 0, 0, 0
    failed = (-1, 0, 0, 0)
    bounds[0] = 0
    at = 0
    while at < text.size:
        at = _skip(text, at)
        if text[at] == NEWLINE:
            at += 1
            line += 1
            continue
        data = text[at] != HASH
        if data:
            grades[rows], at, state = number_at(text, at, high, low)
            begin = _skip(text, at)
            if state != EXACT or begin == at:
                return failed
            at = _after(text, begin, b"qid:", 0)
            if at < 0:
                return failed
            begin, at = at, _word(text, at)
            if at == begin:
                return failed
            same = queries > 0 and qids[queries - 1, 1] - qids[queries - 1, 0] == at - begin
            if same:
                shift = qids[queries - 1, 0] - begin
                for position in range(begin, at):
                    if text[position] != text[position + shift]:
                        same = False
                        break
            if not same:
                starts[queries], qids[queries, 0], qids[queries, 1] = rows, begin, at
                queries += 1
            last = 0
            stopped = at
            at = _skip(text, at)
            while text[at] != NEWLINE and text[at] != HASH:
                index = 0
                begin = at
                while ZERO <= text[at] <= NINE and at - begin < INDEX_DIGITS:
                    index = 10 * index + (text[at] - ZERO)
                    at += 1
                if begin == stopped or text[at] != COLON or not last < index <= width:
                    return failed
                begin = at + 1
                value, at, state = number_at(text, begin, high, low)
                if state == NONE:
                    at = max(_after(text, begin, b"nan", 32), _after(text, begin, b"null", 32))
                    value = missing
                    if at < 0 or np.isinf(missing):
                        return failed
                elif state != EXACT:
                    if hards == len(hard):
                        return failed
                    hard[hards, 0], hard[hards, 1], hard[hards, 2] = entries, begin, at
                    hards += 1
                columns[entries], values[entries] = index - 1, value
                entries += 1
                last = index
                stopped = at
                at = _skip(text, at)
            documents[rows, 0], documents[rows, 1] = -1, -1
        if text[at] == HASH:
            at = _skip(text, at + 1)
            begin = _after(text, at, b"docid", 0)
            if data and begin >= 0:
                begin = _skip(text, begin)
                if text[begin] == EQUALS:
                    begin = _skip(text, begin + 1)
                    end = begin
                    while text[end] > BLANK and text[end] != DELETE:
                        end += 1
                    if end > begin:
                        documents[rows, 0], documents[rows, 1] = begin, end
            while (text[at] >= BLANK and text[at] != DELETE) or text[at] == TAB:
                at += 1
            at = _skip(text, at)
        if text[at] != NEWLINE:
            return failed
        at += 1
        if data:
            lines[rows] = line
            rows += 1
            bounds[rows] = entries
        line += 1
    return rows, entries, queries, hards


def parse_bytes(text: bytes, first_line: int, rules: Rules, seen: dict[bytes, int]) -> Parsed | None:
    """What `parse_lines` returns, or None where that finds fault; then `seen` is as it was."""
    if not text.isascii() and not is_text(text):
        return None
    size = len(text)
    if not text.endswith(b"\n"):
        text += b"\n"
    count = min(text.count(b"\n"), size // SHORTEST_LINE + 1)
    most = min(text.count(b":"), size // SHORTEST_ENTRY + 1)
    grades, values = np.empty(count), np.empty(most)
    bounds, lines, starts = (np.empty(count + 1, dtype=np.int64) for _ in range(3))
    columns = np.empty(most, dtype=np.int32)
    qids, documents = np.empty((count, 2), dtype=np.int64), np.empty((count, 2), dtype=np.int64)
    hard = np.empty((min(most, HARDEST), 3), dtype=np.int64)
    rows, entries, queries, hards = _scan(
        np.frombuffer(text, dtype=np.uint8), np.inf if rules.missing is None else rules.missing, rules.width,
        *powers_of_ten(), grades, bounds, columns, values, lines, starts, qids, documents, hard,
    )  # fmt: skip
    if rows < 0:
        return None
    for entry, begin, end in hard[:hards].tolist():
        values[entry] = float(text[begin:end])
    grades, values, lines = grades[:rows].copy(), values[:entries].copy(), lines[:rows] + first_line
    if np.fmax.reduce(np.abs(values), initial=0.0) >= rules.limit:
        return None
    if rows and grades.min() < 0 and not rules.negative:
        return None
    names = [text[begin:end] for begin, end in qids[:queries].tolist()]
    starts = starts[:queries].copy()
    if names and names[0] == next(reversed(seen), None):  # it goes on
        names, starts = names[1:], starts[1:]
    if len(set(names)) < len(names) or not seen.keys().isdisjoint(names):
        return None
    seen.update(zip(names, lines[starts].tolist(), strict=True))
    return Parsed(
        grades,
        bounds[: rows + 1].copy(),
        columns[:entries].copy(),
        values,
        lines,
        starts,
        names,
        _documents(text, documents[:rows]),
        size,
    )


def _documents(text: bytes, spans: Ints) -> list[str | None]:
    if not len(spans) or spans.max() < 0:
        return [None] * len(spans)
    return [text[begin:end].decode() if begin >= 0 else None for begin, end in spans.tolist()]
