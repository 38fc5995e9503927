"""Sixty-four bits for the content of a row of features, compiled: one pass, no copy.

Entry x at column j adds mixed(bits of x) × an odd number of its own; 0 adds nothing, whatever its sign, so dense and
sparse rows of equal content agree. float32 counts as the float64 of the same value.
"""

from itertools import product

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import compiled
from formulations.threads import share
from rankopt.data.values import Features, is_sparse

__all__ = ["fingerprints", "mixed"]

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
