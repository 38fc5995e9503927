"""One order of the data, whatever order it came in.

Rounding depends on the order of sums, and a nonconvex objective turns the last bit into another stationary point. So
training first puts the documents of a query, and the queries, into an order that depends on their content alone:
features, grade and the attributes in use of a document, documents and weight of a query. Names and places in the input
play no part, so shuffled, relabelled or split data gives the same model bit for bit.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.data.queries import Queries
from rankopt.data.values import taken

__all__ = ["canonical"]

Floats = NDArray[np.float64]
Hashes = NDArray[np.uint64]

CHUNK = 1 << 16
"""Rows whose bits are held at a time."""


def canonical(
    queries: Queries, weights: Floats, keep_documents: bool = False, attributes: Sequence[str] = ()
) -> tuple[Queries, Floats]:
    """The same queries in canonical order, and their weights (m,) with them.

    keep_documents: leave the documents of each query in the order of the input, where that order has a meaning.
    attributes: those that count as content; only they are carried along.
    """
    document = _fingerprints(queries)
    for number, name in enumerate(attributes):
        document = document + _mixed(_labels(queries.attributes[name]) + np.uint64(2 * number + 1))
    order = np.arange(document.size)
    if not keep_documents:
        order = np.lexsort((document, np.repeat(np.arange(len(queries)), np.diff(queries.offsets))))
    place = np.arange(order.size, dtype=np.uint64) - np.repeat(queries.offsets[:-1], np.diff(queries.offsets)).astype(
        np.uint64
    )
    mixed = _mixed(document[order] + place * np.uint64(0x9E3779B97F4A7C15))
    by_content = np.lexsort((weights, np.add.reduceat(mixed, queries.offsets[:-1])))
    rows = np.concatenate([order[queries.offsets[q] : queries.offsets[q + 1]] for q in by_content.tolist()])
    ordered = Queries(
        features=taken(queries.features, rows),
        offsets=np.concatenate([[0], np.cumsum(np.diff(queries.offsets)[by_content])]),
        relevance=None if queries.relevance is None else queries.relevance[rows],
        query_ids=tuple(queries.query_ids[q] for q in by_content.tolist()),  # for messages; they order nothing
        attributes={name: queries.attributes[name][rows] for name in attributes},
    )
    return ordered, weights[by_content]


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


def _labels(values: NDArray[Any]) -> Hashes:
    """(N,) 64 bits for each label, or several: the same in every process, whatever the order of several."""
    entries = values.tolist()
    several = (tuple, list, set, frozenset)
    texts = [repr(sorted(map(repr, entry)) if isinstance(entry, several) else entry) for entry in entries]
    digest = {text: int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") for text in set(texts)}
    return np.array([digest[text] for text in texts], dtype=np.uint64)


def _bits(values: NDArray[Any]) -> Hashes:
    """The bits of numbers as float64; zero has none, whatever its sign."""
    return np.asarray((np.ascontiguousarray(values, dtype=np.float64) + 0.0).view(np.uint64))


def _mixed(bits: Hashes) -> Hashes:
    """Each bit spread over all others (the finaliser of MurmurHash3); 0 stays 0."""
    bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return bits ^ (bits >> np.uint64(33))
