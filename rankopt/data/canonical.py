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

from rankopt.data.arrangement import Arrangement, rows_of
from rankopt.data.fingerprints import fingerprints, mixed
from rankopt.data.queries import Queries

__all__ = ["canonical"]

Floats = NDArray[np.float64]
Hashes = NDArray[np.uint64]


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
