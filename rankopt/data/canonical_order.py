"""Canonical order of queries and documents, so that training does not depend on the input order.

Rounding depends on the order of sums, and with a nonconvex objective the last bit can change the stationary point.
Training therefore sorts documents and queries by 64-bit hashes of their content: features, grade and used attributes of
a document, documents and weight of a query. Shuffled, relabeled or split data give bit-identical models. Features are
not copied. The first key hashes features and grades in units of their largest size, rounded to 16 bits: neither the
order nor the folds of a cross-validation depend on the units of features. Exact contents decide among equal ones.

The hash of a row of features sums mixed(bits of x) × an odd constant of the column over its entries x. Zeros add
nothing, so dense and sparse rows of equal content agree. float32 is hashed as float64, every NaN as the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Bools, Floats, Ints, is_sparse
from formulations.display import CompactReprMixin
from formulations.parallel import share
from rankopt.data.queries import Queries
from rankopt.data.validation import Features
from rankopt.errors import DataError


@dataclass(frozen=True, eq=False)
class Arrangement(CompactReprMixin):
    """A reordered subset of queries as a view: document j has the features `features[rows[j]]`, which are not copied.
    The fields are those of `Queries`: `offsets` (m + 1,) delimits the documents of queries, `relevance` (N,) and the
    columns of `attributes` are in document order. `weights` (m,): one per query. `input_order` (N,): the caller's row
    of each document, None where there is no caller. `has_gains`: `relevance` are estimates, as from clicks."""

    features: Features
    rows: Ints
    offsets: Ints
    weights: Floats
    relevance: Floats | None
    query_ids: tuple[Hashable, ...]
    attributes: Mapping[str, NDArray[Any]]
    input_order: Ints | None = None
    has_gains: bool = False

    def __len__(self) -> int:
        return int(self.offsets.size) - 1

    @property
    def n_features(self) -> int:
        return int(self.features.shape[1])

    @property
    def graded(self) -> Floats:
        """(N,) the grades; DataError if there are none."""
        if self.relevance is None:
            raise DataError("training needs relevance labels, and the queries have none; pass y")
        return self.relevance

    def learnable(self, useful: Bools, trait: str) -> Arrangement:
        """The useful queries (m,) of positive weight, with weights scaled to sum to 1. Raises DataError if there is
        none: no query has documents that `trait`."""
        selected = np.flatnonzero(useful & (self.weights > 0))
        if not selected.size:
            grades, starts = self.graded, self.offsets[:-1]
            differs = np.maximum.reduceat(grades, starts) > np.minimum.reduceat(grades, starts)
            cure = "pass queries with at least two different grades (of clicks: gains)"
            if differs[self.weights > 0].any():
                span = f"from {grades.min():g} to {grades.max():g}"
                cure = f"their grades, {span}, differ, but it takes others, or other options"
            raise DataError(
                f"these queries have no order to learn or to judge because none has documents that {trait}; {cure}"
            )
        chosen = self if selected.size == len(self) else self.select(selected)
        return replace(chosen, weights=chosen.weights / chosen.weights.sum())

    def query_of(self, document: int) -> int:
        """The query of a document."""
        return int(np.searchsorted(self.offsets, document, side="right")) - 1

    def select(self, chosen: Ints) -> Arrangement:
        """The queries of these positions, in this order."""
        documents = rows_of(self.offsets, chosen)
        return replace(
            self,
            rows=self.rows[documents],
            offsets=np.concatenate([[0], np.cumsum(np.diff(self.offsets)[chosen])]),
            weights=self.weights[chosen],
            relevance=None if self.relevance is None else self.relevance[documents],
            query_ids=tuple(self.query_ids[q] for q in chosen.tolist()),
            attributes={name: values[documents] for name, values in self.attributes.items()},
            input_order=None if self.input_order is None else self.input_order[documents],
        )


def rows_of(offsets: Ints, chosen: Ints) -> Ints:
    """The rows of these queries, query by query."""
    sizes = np.diff(offsets)[chosen]
    ends = np.cumsum(sizes)
    return np.asarray(np.arange(ends[-1]) + np.repeat(offsets[chosen] - (ends - sizes), sizes))


Hashes = NDArray[np.uint64]

PART = 1 << 14  # numbers per task of a thread; they fit into its cache


def mixed(bits: Hashes) -> Hashes:
    """The finalizer of MurmurHash3, which maps 0 to 0."""
    bits = bits ^ (bits >> np.uint64(33))
    bits *= np.uint64(0xFF51AFD7ED558CCD)
    bits ^= bits >> np.uint64(33)
    bits *= np.uint64(0xC4CEB9FE1A85EC53)
    bits ^= bits >> np.uint64(33)
    return bits


def _of_values(values: NDArray[np.float64]) -> Hashes:
    plain = np.add(values, 0.0, dtype=np.float64)  # -0.0 + 0.0 is 0.0
    if np.isnan(plain.min(initial=0.0)):
        plain[np.isnan(plain)] = np.nan  # of one sign and payload
    return mixed(plain.view(np.uint64))


STEPS = 65521.0  # a prime: values that are simple parts of the largest one are not next to a rounding


def largest_sizes(features: Features, used: Bools) -> NDArray[np.float64]:
    """(d,) max |x| of each feature in the used rows (N,), NaN aside; 1 where that is 0."""
    if is_sparse(features):
        own = features if used.all() else features[np.flatnonzero(used)]
        size = np.asarray(abs(own).nanmax(axis=0).todense(), dtype=np.float64).ravel()
    else:
        high = np.fmax.reduce(features, axis=0, where=used[:, None], initial=-np.inf)
        low = np.fmin.reduce(features, axis=0, where=used[:, None], initial=np.inf)
        size = np.fmax(high, -low).astype(np.float64)
    return np.where(size > 0, size, 1.0)


def fingerprints(features: Features, sizes: NDArray[np.float64] | None = None, rows: Ints | None = None) -> Hashes:
    """64-bit hashes of all rows (N,), or of these; equal content gives equal hashes. sizes: (d,) hash x_j / sizes_j,
    rounded."""
    count, columns = features.shape[0] if rows is None else rows.size, features.shape[1]
    filled = features.nnz if is_sparse(features) else features.shape[0] * columns
    height = max(1, PART * features.shape[0] // max(1, filled))
    salt = mixed(np.arange(1, columns + 1, dtype=np.uint64)) | np.uint64(1)
    found = np.empty(count, dtype=np.uint64)

    def stepped(values: NDArray[Any], which: Any) -> NDArray[Any]:
        return values if sizes is None else np.rint(values / sizes[which] * STEPS)

    def hash_part(p: int) -> None:
        part = slice(p * height, min(count, (p + 1) * height))
        own = features[part if rows is None else rows[part]]
        if is_sparse(own):  # differences of cumulative sums, exact modulo 2^64
            hashed = _of_values(stepped(own.data, own.indices)) * salt[own.indices]
            sums = np.append(np.uint64(0), np.cumsum(hashed, dtype=np.uint64))
            found[part] = np.diff(sums[own.indptr])
        else:
            hashed = _of_values(stepped(np.asarray(own), slice(None))) * salt
            found[part] = hashed.sum(axis=1, dtype=np.uint64)

    share(-(-count // height), hash_part)
    return found


def coarse_fingerprints(queries: Queries, used: Bools) -> Hashes:
    """(N,) the fingerprints in units of the largest sizes in the used rows; computed once for equal sizes."""
    sizes = largest_sizes(queries.features, used)
    return queries.cached(f"fingerprints {sizes.tobytes()!r}", lambda: fingerprints(queries.features, sizes))


def sorted_by(keys: Sequence[NDArray[Any]], decide: Callable[[Ints], Hashes]) -> Ints:
    """The order by keys, as of `np.lexsort`; `decide` hashes entries that are equal in all of them, and sorts these."""
    order = np.lexsort(keys)
    same = np.all([np.diff(key[order]) == 0 for key in keys], axis=0)
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if tied.size:
        own = order[tied]
        order[tied] = own[np.lexsort((decide(own), *(key[own] for key in keys)))]
    return order


def canonical(
    queries: Queries, weights: Floats, keep_documents: bool = False, attributes: Sequence[str] = ()
) -> Arrangement:
    """Queries and their weights (m,) in canonical order. Features are read once, not copied. keep_documents: do not
    reorder documents within queries, if their order has a meaning. attributes: attributes that count as content; only
    these are included."""
    known, starts = np.zeros(queries.n_documents, dtype=np.uint64), queries.offsets[:-1]
    for number, name in enumerate(attributes):
        known = known + mixed(labels(queries.attributes[name]) + np.uint64(2 * number + 1))
    grades = np.zeros(known.size) if queries.relevance is None else queries.relevance + 0.0
    query = np.repeat(np.arange(len(queries)), np.diff(queries.offsets))
    position = (np.arange(known.size) - starts[query]).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    # The units are those of the queries that can teach something: others may be left out.
    learned = weights > 0
    differs = learned & (np.maximum.reduceat(grades, starts) > np.minimum.reduceat(grades, starts))
    used = (differs if differs.any() else learned if learned.any() else ~learned)[query]
    steps = np.rint(grades / (grades[used].max() or 1.0) * STEPS)

    def hashed(values: NDArray[np.float64], rows: Ints, prints: Hashes | None = None) -> Hashes:
        graded = known[rows] + mixed(values[rows].view(np.uint64)) * np.uint64(0xD1342543DE82EF95)
        return graded + (fingerprints(queries.features, rows=rows) if prints is None else prints)

    def exact_contents(chosen: Ints) -> Hashes:
        at, ends = rows_of(queries.offsets, chosen), np.cumsum(np.diff(queries.offsets)[chosen])
        return np.add.reduceat(mixed(hashed(grades, order[at]) + position[at]), ends - np.diff(queries.offsets)[chosen])

    order = np.arange(known.size)
    coarse = hashed(steps, order, coarse_fingerprints(queries, used))
    if not keep_documents:
        order = sorted_by((coarse, query), lambda rows: hashed(grades, rows))
    coarse_contents = np.add.reduceat(mixed(coarse[order] + position), starts)
    by_content = sorted_by((weights, coarse_contents), exact_contents)
    arranged = Arrangement(
        features=queries.features,
        rows=order,
        offsets=queries.offsets,
        weights=weights,
        relevance=None if queries.relevance is None else queries.relevance[order],
        query_ids=queries.query_ids,  # for messages only
        attributes={name: queries.attributes[name][order] for name in attributes},
        input_order=queries.input_order[order],
        has_gains=queries.has_gains,
    )
    return arranged.select(by_content)


def labels(values: NDArray[Any]) -> Hashes:
    """(N,) 64-bit hashes of labels or sets of labels: the same in every process and for every order of a set."""
    entries = values.tolist()
    several = (tuple, list, set, frozenset)
    texts = [repr(sorted(map(repr, entry)) if isinstance(entry, several) else entry) for entry in entries]
    digest = {text: int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") for text in set(texts)}
    return np.array([digest[text] for text in texts], dtype=np.uint64)
