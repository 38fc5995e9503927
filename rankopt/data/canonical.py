"""One order of the data, whatever order it came in.

Rounding depends on the order of sums, and a nonconvex objective turns the last bit into another stationary point. So
training first puts the documents of a query, and the queries, into an order that depends on their content alone:
features and grade of a document, documents and weight of a query. Names and places in the input play no part, so
shuffled, relabelled or split data gives the same model bit for bit.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.data.queries import Queries

__all__ = ["canonical"]

Floats = NDArray[np.float64]
Hashes = NDArray[np.uint64]

CHUNK = 1 << 16
"""Rows whose bits are held at a time."""


def canonical(queries: Queries, weights: Floats, keep_documents: bool = False) -> tuple[Queries, Floats]:
    """The same queries in canonical order, and their weights (m,) with them.

    keep_documents: leave the documents of each query in the order of the input, where that order has a meaning.
    """
    document = _fingerprints(queries)
    order = np.arange(document.size)
    if not keep_documents:
        order = np.lexsort((document, np.repeat(np.arange(len(queries)), np.diff(queries.offsets))))
    place = np.arange(order.size, dtype=np.uint64) - np.repeat(queries.offsets[:-1], np.diff(queries.offsets)).astype(
        np.uint64
    )
    mixed = _mixed(document[order] + place * np.uint64(0x9E3779B97F4A7C15))
    by_content = np.lexsort((weights, np.add.reduceat(mixed, queries.offsets[:-1])))
    rows = np.concatenate([order[queries.offsets[q] : queries.offsets[q + 1]] for q in by_content.tolist()])
    relevance = None if queries.relevance is None else queries.relevance[rows]
    offsets = np.concatenate([[0], np.cumsum(np.diff(queries.offsets)[by_content])])
    return Queries.from_arrays(queries.features[rows], relevance, group=np.diff(offsets)), weights[by_content]


def _fingerprints(queries: Queries) -> Hashes:
    """(N,) 64 bits for each document; documents of equal features and grade, and hardly others, have equal ones."""
    features = queries.features
    salt = _mixed(np.arange(1, features.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
    if hasattr(features, "tocsr"):
        products = _mixed(_bits(features.data)) * salt[features.indices]
        total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(products)])
        content = total[features.indptr[1:]] - total[features.indptr[:-1]]
    else:
        content = np.empty(features.shape[0], dtype=np.uint64)
        for start in range(0, features.shape[0], CHUNK):
            stop = start + CHUNK
            content[start:stop] = (_mixed(_bits(features[start:stop])) * salt).sum(axis=1)
    if queries.relevance is not None:
        content = content + _mixed(_bits(queries.relevance)) * np.uint64(0xD1342543DE82EF95)
    return np.asarray(content)


def _bits(values: NDArray[Any]) -> Hashes:
    """The bits of numbers as float64; zero has none, whatever its sign."""
    return np.asarray((np.ascontiguousarray(values, dtype=np.float64) + 0.0).view(np.uint64))


def _mixed(bits: Hashes) -> Hashes:
    """Each bit spread over all others (the finaliser of MurmurHash3); 0 stays 0."""
    bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return bits ^ (bits >> np.uint64(33))
