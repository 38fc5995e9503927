"""One order of the data, whatever order it came in.

Rounding depends on the order of sums, and a nonconvex objective turns the last bit into another stationary point. So
training first puts the documents of a query, and the queries, into an order that depends on their content alone:
features, grade and the attributes in use of a document, documents and weight of a query. Names and places in the input
play no part, so shuffled, relabelled or split data gives the same model bit for bit.

Queries in an order of their own: documents are named by their rows, the features stay where they are.

Sixty-four bits for the content of a row of features, compiled: one pass, no copy.

Entry x at column j adds mixed(bits of x) × an odd number of its own; 0 adds nothing, whatever its sign, so dense and
sparse rows of equal content agree. float32 counts as the float64 of the same value.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import product
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import compiled
from formulations.display import CompactReprMixin
from formulations.parallel import share
from rankopt.data.queries import Queries
from rankopt.data.validation import Features, is_sparse
from rankopt.errors import DataError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Arrangement(CompactReprMixin):
    """Some queries of a data set and their documents, in this order. Document j has the features `features[rows[j]]`.

    Training wants another order of the data, and fewer queries, than the caller has; moving the features would cost as
    much memory again. The fields are those of `Queries`: `offsets` (m + 1,) cuts the documents into queries,
    `relevance` (N,) and the columns of `attributes` are in the order of the documents. `weights` (m,), one a query.
    """

    features: Features
    rows: Ints
    offsets: Ints
    weights: Floats
    relevance: Floats | None
    query_ids: tuple[Hashable, ...]
    attributes: Mapping[str, NDArray[Any]]

    def __len__(self) -> int:
        return int(self.offsets.size) - 1

    @property
    def n_features(self) -> int:
        return int(self.features.shape[1])

    @property
    def graded(self) -> Floats:
        """(N,) the grades; DataError where there are none."""
        if self.relevance is None:
            raise DataError("training needs relevance labels, and the queries have none; pass y")
        return self.relevance

    def learnable(self, useful: NDArray[np.bool_], trait: str) -> Arrangement:
        """The queries that are useful (m,) and have a weight, their weights scaled to sum to 1; DataError where none
        is, saying that no query has documents that `trait`, and what its grades lack."""
        kept = np.flatnonzero(useful & (self.weights > 0))
        if not kept.size:
            raise DataError(
                f"these queries have no order to learn or to judge because none has documents that {trait}; "
                f"{self._lacking()}"
            )
        chosen = self if kept.size == len(self) else self.select(kept)
        return replace(chosen, weights=chosen.weights / chosen.weights.sum())

    def _lacking(self) -> str:
        grades, starts = self.graded, self.offsets[:-1]
        if not (np.maximum.reduceat(grades, starts) > np.minimum.reduceat(grades, starts))[self.weights > 0].any():
            return "pass queries with at least two different grades"
        return f"their grades, from {grades.min():g} to {grades.max():g}, differ, but it takes others, or other options"

    def query_of(self, document: int) -> int:
        """Which query holds a document."""
        return int(np.searchsorted(self.offsets, document, side="right")) - 1

    def select(self, chosen: Ints) -> Arrangement:
        """The queries of these positions, in this order."""
        documents = rows_of(self.offsets, chosen)
        return Arrangement(
            features=self.features,
            rows=self.rows[documents],
            offsets=np.concatenate([[0], np.cumsum(np.diff(self.offsets)[chosen])]),
            weights=self.weights[chosen],
            relevance=None if self.relevance is None else self.relevance[documents],
            query_ids=tuple(self.query_ids[q] for q in chosen.tolist()),
            attributes={name: values[documents] for name, values in self.attributes.items()},
        )


def rows_of(offsets: Ints, chosen: Ints) -> Ints:
    """The rows of these queries, query by query."""
    sizes = np.diff(offsets)[chosen]
    ends = np.cumsum(sizes)
    return np.asarray(np.arange(ends[-1]) + np.repeat(offsets[chosen] - (ends - sizes), sizes))


Hashes = NDArray[np.uint64]

PART = 1 << 14
"""Rows that one thread takes at a time."""

HASHES = nb.types.Array(nb.uint64, 1, "C")
SALT = nb.types.Array(nb.uint64, 1, "C", readonly=True)
TABLES = [nb.types.Array(number, 2, "C", readonly=True) for number in (nb.float64, nb.float32)]
PARTS = [
    (nb.types.Array(number, 1, "C", readonly=True), nb.types.Array(index, 1, "C", readonly=True))
    for number, index in product((nb.float64, nb.float32), (nb.int32, nb.int64))
]


def mixed(bits: Hashes) -> Hashes:
    """Each bit spread over all others (the finaliser of MurmurHash3); 0 stays 0."""
    bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return bits ^ (bits >> np.uint64(33))


@compiled([nb.uint64(nb.float64)])
def _of_value(value: float) -> np.uint64:
    bits = np.float64(value + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
    bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return bits ^ (bits >> np.uint64(33))


@compiled([nb.void(table, SALT, nb.int64, nb.int64, HASHES) for table in TABLES])
def _of_table(table: NDArray[np.float64], salt: Hashes, first: int, last: int, found: Hashes) -> None:
    for i in range(first, last):
        total = np.uint64(0)
        for j in range(salt.size):
            total += _of_value(np.float64(table[i, j])) * salt[j]
        found[i] = total


@compiled([nb.void(data, at, at, SALT, nb.int64, nb.int64, HASHES) for data, at in PARTS])
def _of_entries(
    data: NDArray[np.float64],
    columns: NDArray[np.int64],
    starts: NDArray[np.int64],
    salt: Hashes,
    first: int,
    last: int,
    found: Hashes,
) -> None:
    for i in range(first, last):
        total = np.uint64(0)
        for entry in range(starts[i], starts[i + 1]):
            total += _of_value(np.float64(data[entry])) * salt[columns[entry]]
        found[i] = total


def _values_in_numpy(values: NDArray[np.float64]) -> Hashes:
    """`_of_value` of each."""
    return mixed((values.astype(np.float64) + 0.0).view(np.uint64))


def _entries_in_numpy(
    data: NDArray[np.float64], columns: NDArray[np.int64], starts: NDArray[np.int64], salt: Hashes
) -> Hashes:
    """`_of_entries` of all rows: differences of sums, which are right whatever overflows."""
    sums = np.append(np.uint64(0), np.cumsum(_values_in_numpy(data) * salt[columns], dtype=np.uint64))
    return np.asarray(sums[starts[1:]] - sums[starts[:-1]])


def fingerprints(features: Features) -> Hashes:
    """(N,) 64 bits a row; rows of equal content, and hardly others, have equal ones."""
    rows, columns = features.shape
    salt = mixed(np.arange(1, columns + 1, dtype=np.uint64)) | np.uint64(1)
    found = np.empty(rows, dtype=np.uint64)
    parts = -(-rows // PART)
    if is_sparse(features):
        entries = (features.data, features.indices, features.indptr)
        if not _of_entries.pays(15 * features.nnz):
            return _entries_in_numpy(*entries, salt)
        share(parts, lambda p: _of_entries(*entries, salt, p * PART, min(rows, (p + 1) * PART), found))
    else:
        table = np.asarray(features)
        if not _of_table.pays(15 * table.size):
            return np.asarray((_values_in_numpy(table) * salt).sum(axis=1, dtype=np.uint64))
        share(parts, lambda p: _of_table(table, salt, p * PART, min(rows, (p + 1) * PART), found))
    return found


def canonical(
    queries: Queries, weights: Floats, keep_documents: bool = False, attributes: Sequence[str] = ()
) -> Arrangement:
    """The same queries in canonical order, and their weights (m,) with them. Features are read once, not moved.

    keep_documents: leave the documents of each query in the order of the input, where that order has a meaning.
    attributes: those that count as content; only they are carried along.
    """
    document = _fingerprints(queries)
    for number, name in enumerate(attributes):
        document = document + mixed(_labels(queries.attributes[name]) + np.uint64(2 * number + 1))
    order = np.arange(document.size)
    if not keep_documents:
        order = np.lexsort((document, np.repeat(np.arange(len(queries)), np.diff(queries.offsets))))
    place = np.arange(order.size, dtype=np.uint64) - np.repeat(queries.offsets[:-1], np.diff(queries.offsets)).astype(
        np.uint64
    )
    content = mixed(document[order] + place * np.uint64(0x9E3779B97F4A7C15))
    by_content = np.lexsort((weights, np.add.reduceat(content, queries.offsets[:-1])))
    rows = order[rows_of(queries.offsets, by_content)]
    return Arrangement(
        features=queries.features,
        rows=rows,
        offsets=np.concatenate([[0], np.cumsum(np.diff(queries.offsets)[by_content])]),
        weights=weights[by_content],
        relevance=None if queries.relevance is None else queries.relevance[rows],
        query_ids=tuple(queries.query_ids[q] for q in by_content.tolist()),  # for messages; they order nothing
        attributes={name: queries.attributes[name][rows] for name in attributes},
    )


def _fingerprints(queries: Queries) -> Hashes:
    """(N,) 64 bits for each document; documents of equal features and grade, and hardly others, have equal ones."""
    content = fingerprints(queries.features)
    if queries.relevance is not None:
        content = content + mixed((queries.relevance + 0.0).view(np.uint64)) * np.uint64(0xD1342543DE82EF95)
    return np.asarray(content)


def _labels(values: NDArray[Any]) -> Hashes:
    """(N,) 64 bits for each label, or several: the same in every process, whatever the order of several."""
    entries = values.tolist()
    several = (tuple, list, set, frozenset)
    texts = [repr(sorted(map(repr, entry)) if isinstance(entry, several) else entry) for entry in entries]
    digest = {text: int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") for text in set(texts)}
    return np.array([digest[text] for text in texts], dtype=np.uint64)
