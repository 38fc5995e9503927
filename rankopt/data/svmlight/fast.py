"""The LETOR / SVMlight format read by compiled code: the same result as `lines`, or none.

Anything unusual makes it give up, and then `lines` says what is wrong and where.
"""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import compiled
from rankopt.data.svmlight.decimals import EXACT, NINE, NONE, TABLE, TEXT, ZERO, Bytes, Floats, number_at, powers_of_ten
from rankopt.data.svmlight.lines import LARGEST_INDEX, Parsed

Ints = NDArray[np.int64]

HARDEST = 4096
"""Numbers of a file that may be left to Python's `float`; more make the file unusual."""

NEWLINE, RETURN, TAB, BLANK, HASH, COLON, EQUALS, DELETE = 10, 13, 9, 32, 35, 58, 61, 127
SPANS = nb.int64[:, ::1]


@compiled(nb.int64(TEXT, nb.int64))
def _skip(text: Bytes, at: int) -> int:
    """The next byte that is no blank; a return that ends its line is one."""
    while text[at] == BLANK or text[at] == TAB:
        at += 1
    return at + 1 if text[at] == RETURN and text[at + 1] == NEWLINE else at


@compiled(nb.int64(TEXT, nb.int64))
def _word(text: Bytes, at: int) -> int:
    """The end of the word that begins at `at`; a control character in it is its end too."""
    while text[at] > BLANK and text[at] != HASH and text[at] != DELETE:
        at += 1
    return at


@compiled(nb.int64(TEXT, nb.int64, nb.types.Bytes(nb.uint8, 1, "C"), nb.int64))
def _after(text: Bytes, at: int, word: bytes, fold: int) -> int:
    """The place after `word`, or -1 where it does not stand at `at`. fold: 32 for letters of any case, else 0."""
    for letter in word:
        if text[at] | fold != letter:
            return -1
        at += 1
    return at


@compiled(
    nb.types.UniTuple(nb.int64, 4)(
        TEXT, nb.float64, TABLE, TABLE, nb.float64[::1], nb.int64[::1], nb.int32[::1], nb.float64[::1], nb.int64[::1],
        SPANS, SPANS, SPANS,
    )
)  # fmt: skip
def _scan(
    text: Bytes, missing: float, high: Floats, low: Floats, grades: Floats, bounds: Ints, columns: NDArray[np.int32],
    values: Floats, starts: Ints, qids: Ints, documents: Ints, hard: Ints,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Fill the arrays; how many rows, entries, queries and hard numbers there are. No rows: it gave up.

    text ends with a newline. missing: NaN refuses missing values. qids, documents: where names begin and end in the
    text, -1 for no document. hard: entry, begin and end of each number that Python must read.
    """
    rows, entries, queries, hards = 0, 0, 0, 0
    failed = (0, 0, 0, 0)
    bounds[0] = 0
    at = 0
    while at < text.size:
        at = _skip(text, at)
        if text[at] == NEWLINE:
            at += 1
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
                for place in range(begin, at):
                    if text[place] != text[place + shift]:
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
                while ZERO <= text[at] <= NINE and index <= LARGEST_INDEX:
                    index = 10 * index + (text[at] - ZERO)
                    at += 1
                if begin == stopped or text[at] != COLON or not last < index <= LARGEST_INDEX:
                    return failed
                begin = at + 1
                value, at, state = number_at(text, begin, high, low)
                if state == NONE:
                    at = max(_after(text, begin, b"nan", 32), _after(text, begin, b"null", 32))
                    value = missing
                    if at < 0 or np.isnan(missing):
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
            rows += 1
            bounds[rows] = entries
    return rows, entries, queries, hards


def parse_bytes(text: bytes, missing: float | None) -> Parsed | None:
    """What `lines.parse_lines` returns, or None where the text is unusual in any way.

    Negative grades are returned as they are.
    """
    if not text.endswith(b"\n"):
        text += b"\n"
    if not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError:
            return None
    lines, colons = text.count(b"\n"), text.count(b":")
    grades, values = np.empty(lines), np.empty(colons)
    bounds, starts = np.empty(lines + 1, dtype=np.int64), np.empty(lines, dtype=np.int64)
    columns = np.empty(colons, dtype=np.int32)
    qids, documents = np.empty((lines, 2), dtype=np.int64), np.empty((lines, 2), dtype=np.int64)
    hard = np.empty((HARDEST, 3), dtype=np.int64)
    rows, entries, queries, hards = _scan(
        np.frombuffer(text, dtype=np.uint8), np.nan if missing is None else missing, *powers_of_ten(), grades, bounds,
        columns, values, starts, qids, documents, hard,
    )  # fmt: skip
    for entry, begin, end in hard[:hards].tolist():
        values[entry] = float(text[begin:end])
    names = [text[begin:end] for begin, end in qids[:queries].tolist()]
    if rows == 0 or len(set(names)) != queries or not np.isfinite(values[hard[:hards, 0]]).all():
        return None
    return Parsed(
        grades[:rows],
        bounds[: rows + 1],
        columns[:entries],
        values[:entries],
        starts[:queries],
        names,
        [text[begin:end] if begin >= 0 else None for begin, end in documents[:rows].tolist()],
    )
