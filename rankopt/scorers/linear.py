"""Linear scores, and the two products with the features that a training step needs: X w, and sums of Xᵀ r.

Features are dense (possibly memory-mapped) or CSR, float32 or float64; sums are in float64. Documents refer to rows, so
features are not copied. Results are bit-identical for any number of threads. Kernels read indices as unsigned integers,
which avoids the test for negative ones.

`Slots` scores each document once for each slot, with separate weights [ORM, section 7.3].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any, Protocol, Self

import numba as nb
import numpy as np

from formulations.arrays import Floats, Ints
from formulations.compiled import FLOATS, READ_FLOATS, READ_INTS, compiled
from formulations.parallel import share
from rankopt.errors import DataError


class Scorer(Protocol):
    """Documents 0, 1, ..., n - 1 whose scores are linear in the parameters w: s_i = ⟨∂s_i/∂w, w⟩."""

    @property
    def dimensions(self) -> int:
        """The length of w."""
        ...

    @property
    def features(self) -> Any:
        """The table that it reads, shared by many scorers: engines ship it apart."""
        ...

    def with_features(self, features: Any) -> Self:
        """The same scorer of the same table elsewhere, or without one (None)."""
        ...

    def scores(self, w: Floats, first: int, last: int) -> Floats:
        """(last - first,) or (last - first, slots): the scores of the documents first <= i < last."""
        ...

    def pull(self, slopes: tuple[Floats, ...], bounds: Ints) -> tuple[Floats, ...]:
        """(P, dimensions) for each of the slopes r: Σ r_i ∂s_i/∂w over each part bounds[p] <= i < bounds[p + 1]. r has
        an entry, or one a slot, for each of the documents bounds[0] <= i < bounds[-1]."""
        ...


def check_weights(w: Any, needed: int, slots: int = 1) -> None:
    """Raise DataError unless w holds one weight for each feature, of each slot: as many as are needed."""
    if np.shape(w) != (needed,):
        have = f"{needed} features" if slots == 1 else f"{needed // slots} features for each of {slots} slots"
        raise DataError(
            f"scores cannot be computed because the documents have {have} and the weights the shape {np.shape(w)}; "
            "pass one weight for each feature, or the features that the weights were trained on."
        )


def check_slopes(r: Floats, documents: int) -> None:
    """Raise DataError unless r is one slope for each of the documents."""
    if r.shape != (documents,):
        raise DataError(
            f"slopes of shape {r.shape} cannot be pulled back to the weights because there are {documents} documents; "
            "pass one slope for each document."
        )


def check_slots(r: Floats, slots: int) -> None:
    """Raise DataError unless r has a column for each of the slots."""
    if r.ndim != 2 or r.shape[1] != slots:
        raise DataError(
            f"slopes of shape {r.shape} cannot be pulled back because there are {slots} slots; pass one for each slot."
        )


def check_rows(rows: Ints, count: int) -> None:
    """Raise DataError unless all rows are among the first `count` ones."""
    if rows.size and not (rows.min() >= 0 and rows.max() < count):
        wrong = int(np.flatnonzero((rows < 0) | (rows >= count))[0])
        raise DataError(
            f"document {wrong} cannot have row {rows[wrong]} because there are {count} rows; pass valid rows."
        )


def check_bounds(bounds: Ints, documents: int) -> None:
    """Raise DataError unless parts are cut within the documents, one after the other."""
    if not (bounds.size and bounds[0] >= 0 and bounds[-1] <= documents and (bounds[1:] >= bounds[:-1]).all()):
        raise DataError(f"parts {bounds} cannot be summed; pass bounds that increase within {documents} documents.")


def check_entries_fit(features: Any) -> None:
    """Raise DataError unless a CSR table has as many columns as values, and bounds for its rows within them."""
    values, columns, bounds = features.data.size, features.indices.size, features.indptr
    if values != columns or bounds.size != features.shape[0] + 1 or bounds[0] < 0 or bounds[-1] > values:
        raise DataError(
            f"sparse features cannot be read because {values} values, {columns} columns and bounds from {bounds[0]} to "
            f"{bounds[-1]} do not make {features.shape[0]} rows; build the table anew."
        )


PART = 1 << 11  # rows, about, that one thread takes at a time; sums are taken in parts of this size and then added up


@dataclass(frozen=True, eq=False)
class Linear:
    """s_i = ⟨features[rows[i]], w⟩: document i has row rows[i] of the table. DataError for rows that it has not."""

    features: Any
    rows: Ints

    def __post_init__(self) -> None:
        if self.features is not None:
            check_rows(self.rows, self.features.shape[0])

    @property
    def dimensions(self) -> int:
        return int(self.features.shape[1])

    def with_features(self, features: Any) -> Linear:
        return Linear(features, self.rows)

    def select(self, first: int, last: int) -> Linear:
        """The documents first <= i < last."""
        return Linear(self.features, self.rows[first:last])

    def scores(self, w: Floats, first: int, last: int) -> Floats:
        if (first, last) == (0, self.rows.size):
            return row_scores(self.features, self.rows, w, self._turns)
        return row_scores(self.features, self.rows[first:last], w)

    def pull(self, slopes: tuple[Floats, ...], bounds: Ints) -> tuple[Floats, ...]:
        rows, parts = self.rows[bounds[0] : bounds[-1]], bounds - bounds[0]
        if len(slopes) == 2:
            return pair_sums(self.features, rows, *slopes, parts)
        return tuple(row_sums(self.features, rows, r, parts) for r in slopes)

    def columns(self, chosen: Ints) -> Floats:
        """(D, N) the features of these numbers, of every document. Of a CSR table only what is stored is read."""
        if not (hasattr(self.features, "tocsr") or isinstance(self.features, np.ndarray)):
            raise DataError("columns cannot be read because the scorer has no features; pass the feature table")
        values = np.zeros((chosen.size, self.rows.size))
        for line, column in zip(values, chosen.tolist(), strict=True):
            if isinstance(self.features, np.ndarray):
                line[:] = self.features[self.rows, column]
            else:
                table = self._by_column
                stored = slice(table.indptr[column], table.indptr[column + 1])
                line[table.indices[stored]] = table.data[stored]
        return values

    @cached_property
    def _by_column(self) -> Any:
        """The rows of a CSR table with duplicates summed, sorted by columns once."""
        own = self.features[self.rows]
        own.sum_duplicates()
        return own.tocsc()

    @cached_property
    def _turns(self) -> Ints:
        """The documents as they lie in memory."""
        return np.argsort(self.rows)


def parts_of(offsets: Ints, rows: int = PART) -> Ints:
    """Bounds of parts of complete queries, as rows: about `rows` rows each, except the last."""
    marks = np.arange(rows, offsets[-1], rows)
    bounds = np.unique(offsets[np.searchsorted(offsets, marks)])
    return np.unique(np.concatenate([[0], bounds, offsets[-1:]]))


def row_scores(features: Any, rows: Ints, w: Floats, turns: Ints | None = None) -> Floats:
    """(N,) ⟨features[rows[i]], w⟩.

    turns: an order in which the documents are visited, a permutation of 0 ... N - 1. It changes no score; where it
        follows the rows as they lie in memory, it saves up to two thirds of the time.
    Raises DataError where w has another width than the features. Rows, and the columns of a CSR table, are trusted:
    `Linear` and `Queries` check them once.
    """
    check_weights(w, features.shape[1])
    table, scores = _stored(features), np.empty(rows.size)
    kernel: Any = dense_scores if len(table) == 1 else sparse_scores
    turns = np.arange(rows.size) if turns is None else turns
    w = np.ascontiguousarray(w, dtype=np.float64)
    share(
        -(-rows.size // PART),
        lambda p: kernel(*table, rows, turns, w, p * PART, min(rows.size, (p + 1) * PART), scores),
    )
    return scores


def row_sums(features: Any, rows: Ints, r: Floats, bounds: Ints) -> Floats:
    """(P, d) Σ r[i] × features[rows[i]] over each part bounds[p] <= i < bounds[p + 1]. DataError where r has not an
    entry for each of the rows, or a part ends beyond them."""
    check_slopes(r, rows.size)
    check_bounds(bounds, rows.size)
    table, parts = _stored(features), bounds.size - 1
    kernel: Any = dense_sums if len(table) == 1 else sparse_sums
    if kernel is dense_sums and not dense_sums.pays(3 * rows.size * features.shape[1]):
        return dense_sums_in_numpy(table[0], rows, r, bounds)
    sums, some = np.empty((parts, features.shape[1])), _parts_at_once(rows, parts)
    share(-(-parts // some), lambda p: kernel(*table, rows, r, bounds, p * some, min(parts, (p + 1) * some), sums))
    return sums


def pair_sums(features: Any, rows: Ints, r: Floats, other: Floats, bounds: Ints) -> tuple[Floats, Floats]:
    """`row_sums` of r and of `other`; dense features are read once for both."""
    if hasattr(features, "tocsr"):
        return row_sums(features, rows, r, bounds), row_sums(features, rows, other, bounds)

    check_slopes(r, rows.size)
    check_slopes(other, rows.size)
    check_bounds(bounds, rows.size)
    table, parts = np.ascontiguousarray(features), bounds.size - 1
    if not dense_pair_sums.pays(6 * rows.size * table.shape[1]):
        return dense_sums_in_numpy(table, rows, r, bounds), dense_sums_in_numpy(table, rows, other, bounds)
    sums, others = np.empty((parts, table.shape[1])), np.empty((parts, table.shape[1]))
    some = _parts_at_once(rows, parts)
    share(
        -(-parts // some),
        lambda p: dense_pair_sums(table, rows, r, other, bounds, p * some, min(parts, (p + 1) * some), sums, others),
    )
    return sums, others


def _parts_at_once(rows: Ints, parts: int) -> int:
    """How many parts make up about PART rows."""
    return max(1, int(PART * parts / max(rows.size, 1)))


def _stored(features: Any) -> tuple[Any, ...]:
    """What kernels read: a dense table, or the values, columns and bounds of rows of a CSR table."""
    if not hasattr(features, "tocsr"):
        return (np.ascontiguousarray(features),)
    check_entries_fit(features)
    return features.data, features.indices, features.indptr


def linear_scores(features: Any, coef: Floats) -> Floats:
    """The scores X w (N,) of features X (N, d), float64.

    Each row is summed separately in the same order, so equal documents get equal scores in any row. BLAS does not
    guarantee that: it sums the last rows of a block differently, which breaks ties.
    """
    return row_scores(features, np.arange(features.shape[0]), coef)


TABLES = [nb.types.Array(number, 2, "C", readonly=True) for number in (nb.float64, nb.float32)]
SUMS = nb.types.Array(nb.float64, 2, "C")


@compiled(
    [nb.void(table, READ_INTS, READ_INTS, READ_FLOATS, nb.int64, nb.int64, FLOATS) for table in TABLES],
    reassociate=True,
)
def dense_scores(table: Floats, rows: Ints, turns: Ints, w: Floats, first: int, last: int, scores: Floats) -> None:
    """scores[i] = ⟨row rows[i] of the table, w⟩ for the documents i = turns[t], first <= t < last.

    Every row is summed in the same order, so equal rows have equal scores.
    """
    for t in range(first, last):
        i = turns[t]
        row = table[rows[i]]
        total = 0.0
        for j in range(w.size):
            total += row[j] * w[j]
        scores[i] = total


@compiled([nb.void(table, READ_INTS, READ_FLOATS, READ_INTS, nb.int64, nb.int64, SUMS) for table in TABLES])
def dense_sums(table: Floats, rows: Ints, r: Floats, bounds: Ints, first: int, last: int, sums: Floats) -> None:
    """sums[p] = Σ r[i] × row rows[i] over bounds[p] <= i < bounds[p + 1], for the parts first <= p < last.

    Rows of weight 0 are not read: position weights that end at position 10 use ten rows a query. Four of the others are
    loaded at a time and added one after the other.
    """
    features = table.shape[1]
    for p in range(first, last):
        total = sums[p]
        total[:] = 0.0
        i, end = bounds[p], bounds[p + 1]
        while i < end:
            held = 0
            a = b = c = d = i
            while i < end and held < 4:
                if r[i] != 0.0:
                    a, b, c, d = b, c, d, i
                    held += 1
                i += 1
            if held == 4:
                row, second, third, fourth = table[rows[a]], table[rows[b]], table[rows[c]], table[rows[d]]
                for j in range(features):
                    begun = (total[j] + r[a] * row[j]) + r[b] * second[j]
                    total[j] = (begun + r[c] * third[j]) + r[d] * fourth[j]
                continue
            for back in range(held):
                one = d
                if held - back == 3:
                    one = b
                elif held - back == 2:
                    one = c
                row = table[rows[one]]
                for j in range(features):
                    total[j] += r[one] * row[j]


def dense_sums_in_numpy(table: Floats, rows: Ints, r: Floats, bounds: Ints) -> Floats:
    """`dense_sums` of all parts, the same bits: what accumulates is added up one after the other."""
    sums = np.zeros((bounds.size - 1, table.shape[1]))
    for part, (low, high) in enumerate(pairwise(bounds.tolist())):
        nonzero = low + np.flatnonzero(r[low:high])
        if nonzero.size:
            sums[part] += np.add.accumulate(r[nonzero, None] * table[rows[nonzero]], axis=0)[-1]
    return sums


@compiled(
    [nb.void(table, READ_INTS, READ_FLOATS, READ_FLOATS, READ_INTS, nb.int64, nb.int64, SUMS, SUMS) for table in TABLES]
)
def dense_pair_sums(
    table: Floats,
    rows: Ints,
    r: Floats,
    other: Floats,
    bounds: Ints,
    first: int,
    last: int,
    sums: Floats,
    other_sums: Floats,
) -> None:
    """`dense_sums` of r and of `other`, both while a row is at hand."""
    features = table.shape[1]
    for p in range(first, last):
        total, other_total = sums[p], other_sums[p]
        total[:] = 0.0
        other_total[:] = 0.0
        i, end = bounds[p], bounds[p + 1]
        while i < end:
            held = 0
            a = b = c = d = i
            while i < end and held < 4:
                if r[i] != 0.0 or other[i] != 0.0:
                    a, b, c, d = b, c, d, i
                    held += 1
                i += 1
            if held == 4:
                row, second, third, fourth = table[rows[a]], table[rows[b]], table[rows[c]], table[rows[d]]
                for j in range(features):
                    begun = (total[j] + r[a] * row[j]) + r[b] * second[j]
                    total[j] = (begun + r[c] * third[j]) + r[d] * fourth[j]
                    begun = (other_total[j] + other[a] * row[j]) + other[b] * second[j]
                    other_total[j] = (begun + other[c] * third[j]) + other[d] * fourth[j]
                continue
            for back in range(held):
                one = d
                if held - back == 3:
                    one = b
                elif held - back == 2:
                    one = c
                row = table[rows[one]]
                for j in range(features):
                    total[j] += r[one] * row[j]
                    other_total[j] += other[one] * row[j]


PARTS = [
    (nb.types.Array(number, 1, "C", readonly=True), nb.types.Array(index, 1, "C", readonly=True))
    for number, index in product((nb.float64, nb.float32), (nb.int32, nb.int64))
]
"""Types of the entries, and of their columns and the bounds of the rows."""


@compiled([nb.void(data, at, at, READ_INTS, READ_INTS, READ_FLOATS, nb.int64, nb.int64, FLOATS) for data, at in PARTS])
def sparse_scores(
    data: Floats,
    columns: Ints,
    starts: Ints,
    rows: Ints,
    turns: Ints,
    w: Floats,
    first: int,
    last: int,
    scores: Floats,
) -> None:
    """scores[i] = ⟨row rows[i] of the table, w⟩ for the documents i = turns[t], first <= t < last."""
    for t in range(first, last):
        i = turns[t]
        row = rows[i]
        total = 0.0
        for entry in range(nb.uint64(starts[row]), nb.uint64(starts[row + 1])):
            total += data[entry] * w[nb.uint64(columns[entry])]
        scores[i] = total


@compiled([nb.void(data, at, at, READ_INTS, READ_FLOATS, READ_INTS, nb.int64, nb.int64, SUMS) for data, at in PARTS])
def sparse_sums(
    data: Floats,
    columns: Ints,
    starts: Ints,
    rows: Ints,
    r: Floats,
    bounds: Ints,
    first: int,
    last: int,
    sums: Floats,
) -> None:
    """sums[p] = Σ r[i] × row rows[i] over bounds[p] <= i < bounds[p + 1], for the parts first <= p < last."""
    for p in range(first, last):
        total = sums[p]
        total[:] = 0.0
        for i in range(bounds[p], bounds[p + 1]):
            if r[i] != 0.0:
                row = rows[i]
                for entry in range(nb.uint64(starts[row]), nb.uint64(starts[row + 1])):
                    total[nb.uint64(columns[entry])] += r[i] * data[entry]


@dataclass(frozen=True, eq=False)
class Slots:
    """s_ij = ⟨w_j, x_i⟩ for slot j, w being (slots, d) in a row."""

    linear: Linear
    slots: int

    @property
    def dimensions(self) -> int:
        return self.linear.dimensions * self.slots

    @property
    def features(self) -> Any:
        return self.linear.features

    def with_features(self, features: Any) -> Slots:
        return Slots(self.linear.with_features(features), self.slots)

    def select(self, first: int, last: int) -> Slots:
        """The documents first <= i < last."""
        return Slots(self.linear.select(first, last), self.slots)

    def scores(self, w: Floats, first: int, last: int) -> Floats:
        check_weights(w, self.dimensions, self.slots)
        return np.stack([self.linear.scores(own, first, last) for own in w.reshape(self.slots, -1)], axis=1)

    def pull(self, slopes: tuple[Floats, ...], bounds: Ints) -> tuple[Floats, ...]:
        for r in slopes:
            check_slots(r, self.slots)
        by_slot = [
            self.linear.pull(tuple(np.ascontiguousarray(r[:, j]) for r in slopes), bounds) for j in range(self.slots)
        ]
        return tuple(np.hstack(part) for part in zip(*by_slot, strict=True))


def slot_scores(features: Any, coef: Floats) -> Floats:
    """(N, k) the score of each document for each slot; (N,) under one weight vector."""
    if coef.ndim == 1:
        return linear_scores(features, coef)
    return np.stack([linear_scores(features, own) for own in coef], axis=1)
