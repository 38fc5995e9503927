"""Consecutive lines of a LETOR / SVMlight file as arrays: joined, and cut where a query begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Parsed", "joined"]


@dataclass(frozen=True)
class Parsed:
    """N lines of data: grades (N,), row r holds entries bounds[r]:bounds[r + 1] of columns (from 0) and values (nnz,).

    `lines` (N,): where rows stand in the file. `starts`: the first rows of the queries that begin here, `qids` their
    names; rows before starts[0] go on with the query before. `documents`: N names or None each. `size`: bytes of text.
    """

    grades: NDArray[np.float64]
    bounds: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[np.float64]
    lines: NDArray[np.int64]
    starts: NDArray[np.int64]
    qids: list[bytes]
    documents: list[str | None]
    size: int

    def greatest(self) -> tuple[int, int]:
        """The greatest index of a feature (0 if there is none), and the line of the first that has it."""
        if not self.columns.size:
            return 0, 0
        entry = int(self.columns.argmax())
        row = int(np.searchsorted(self.bounds, entry, side="right")) - 1
        return int(self.columns[entry]) + 1, int(self.lines[row])

    def cut(self) -> tuple[Parsed, Parsed]:
        """The rows before the last query that begins here, and those of that query."""
        row, query = int(self.starts[-1]), len(self.qids) - 1
        return self._rows(0, row, 0, query), self._rows(row, self.grades.size, query, query + 1)

    def _rows(self, first: int, last: int, query: int, until: int) -> Parsed:
        begin, end = self.bounds[first], self.bounds[last]
        return Parsed(
            self.grades[first:last],
            self.bounds[first : last + 1] - begin,
            self.columns[begin:end],
            self.values[begin:end],
            self.lines[first:last],
            self.starts[query:until] - first,
            self.qids[query:until],
            self.documents[first:last],
            self.size * (last - first) // self.grades.size,
        )


def joined(parts: list[Parsed]) -> Parsed:
    """One after the other; the list is emptied, so that what is joined can be forgotten."""
    if len(parts) == 1:
        return parts.pop()
    rows = np.cumsum([0, *(part.grades.size for part in parts)])
    entries = np.cumsum([0, *(part.values.size for part in parts)])
    bounds = [part.bounds[1:] + entry for part, entry in zip(parts, entries, strict=False)]
    starts = [part.starts + row for part, row in zip(parts, rows, strict=False)]
    qids = [name for part in parts for name in part.qids]
    documents = [name for part in parts for name in part.documents]
    size = sum(part.size for part in parts)
    columns, values = [part.columns for part in parts], [part.values for part in parts]
    grades, lines = [part.grades for part in parts], [part.lines for part in parts]
    parts.clear()
    return Parsed(
        _one(grades), _one([np.zeros(1, dtype=np.int64), *bounds]), _one(columns), _one(values), _one(lines),
        _one(starts), qids, documents, size,
    )  # fmt: skip


def _one(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    whole = np.concatenate(arrays)
    arrays.clear()
    return whole
