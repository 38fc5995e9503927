"""Feature maps of rankings: φ(y)·w = r(y)ᵀs for scores s = X w, told by the slope r(y).

    positional       r_j = decay[position of j]                                                    φ_dorm of [paper 4]
    pairwise         r_j = κ (higher grades below j - lower grades above j)                        φ_po
    first-relevant   r_j = 1 on each document above the first relevant one, minus their number on that one  φ_mrr

times a strength. The order by grade has slope 0 under the last two.

What a measure of the pattern of grades counts, in numbers: one set of arrays for the queries of a batch.

The document at position p (from 0) of its query earns

    kind "rank"       share[g] discount[p]       it is relevant, g relevant ones stand above it; others earn nothing
    kind "document"   share[j] Π passing[i] discount[p]       the product over the documents i above it
    kind "table"      table[its chain, how many of each chain stand above it]

and gain(y) is the sum of what all earn, less the constant of the query. Rank-one parts, from which the cells of a
lattice follow: AUC, AP, RR and all sums of discounts are of the first kind, graded ones and ERR of the second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.arrays import LARGEST, Floats, Ints, finite, whole
from formulations.display import CompactReprMixin
from formulations.errors import InvalidProblem

POSITIONAL, PAIRWISE, FIRST = "positional", "pairwise", "first-relevant"


@dataclass(frozen=True, eq=False)
class FeatureMap(CompactReprMixin):
    """kind: "positional", "pairwise" or "first-relevant". weight: of the positional one (N,), the decay of position
    r - offsets[q] at row r; of the others (m,), >= 0: κ, or the strength, of each query."""

    kind: str
    weight: Floats

    def __post_init__(self) -> None:
        if self.kind not in (POSITIONAL, PAIRWISE, FIRST):
            raise InvalidProblem(
                f"no feature map is called {self.kind!r}; write {POSITIONAL!r}, {PAIRWISE!r}, {FIRST!r}"
            )
        object.__setattr__(self, "weight", finite("weight", self.weight, 1))
        if self.kind != POSITIONAL and (self.weight < 0).any():
            raise InvalidProblem("the strength of a feature map must not be negative: it would reward wrong pairs")

    def only(self, first: int, last: int, low: int, high: int) -> FeatureMap:
        """Of the queries first <= q < last, which have the rows low <= r < high."""
        part = slice(low, high) if self.kind == POSITIONAL else slice(first, last)
        return FeatureMap(self.kind, self.weight[part])


def strength_of(strength: float) -> float:
    """The strength that is given for all queries; raises `InvalidProblem` for what is no number, or below 0."""
    number = isinstance(strength, int | float | np.integer | np.floating) and not isinstance(strength, bool)
    if not number or not 0.0 <= strength <= LARGEST:
        raise InvalidProblem(
            f"strength is {strength!r}, but the strength of a feature map must be one number from 0 to {LARGEST:g}, "
            "the same for all queries; below 0 it would reward wrong pairs"
        )
    return float(strength)


def unequal_pairs(grade: Floats, offsets: Ints) -> Floats:
    """(m,) the number of pairs of documents of unequal grade: n₊ n₋ where there are two grades."""
    sizes = np.diff(offsets)
    query = np.repeat(np.arange(sizes.size), sizes)
    rows = np.lexsort((grade, query))
    new = np.ones(grade.size, dtype=bool)
    new[1:] = (np.diff(grade[rows]) != 0) | (np.diff(query[rows]) != 0)
    begins = np.flatnonzero(new)
    runs = np.diff(np.append(begins, grade.size)).astype(np.float64)
    equal = np.bincount(query[rows[begins]], runs * runs, sizes.size)
    return np.asarray((sizes.astype(np.float64) ** 2 - equal) / 2.0)


RANK, DOCUMENT, TABLE = "rank", "document", "table"


@dataclass(frozen=True, eq=False)
class Earnings(CompactReprMixin):
    """discount, share, passing: (N,), row r of query q speaks of position r - offsets[q], of the relevant document of
    that rank ("rank") or of the document r ("document"). constant: (m,). table: the tables of all queries, that of
    query q being table[starts[q] : starts[q + 1]], of shape (chains, N_0 + 1, N_1 + 1, ...), chains by rising grade
    with N_h documents each; empty but for the kind "table"."""

    kind: str
    discount: Floats
    share: Floats
    passing: Floats
    constant: Floats
    table: Floats
    starts: Ints

    def __post_init__(self) -> None:
        if self.kind not in (RANK, DOCUMENT, TABLE):
            raise InvalidProblem(f"earnings of kind {self.kind!r} are unknown; write {RANK!r}, {DOCUMENT!r}, {TABLE!r}")
        for name in ("discount", "share", "passing", "constant", "table"):
            object.__setattr__(self, name, finite(name, getattr(self, name), 1))
        object.__setattr__(self, "starts", whole("starts", self.starts))
        if not self.discount.size == self.share.size == self.passing.size:
            raise InvalidProblem("discount, share and passing need one entry a row each")
        if self.starts.size != self.constant.size + 1 or self.starts[-1] != self.table.size:
            raise InvalidProblem(f"starts must part the {self.table.size} entries of table among the queries")
        if (np.abs(self.passing) > 1.0).any():
            raise InvalidProblem("passing holds a chance above 1")

    @classmethod
    def by_rank(cls, share: Floats, discount: Floats, constant: Floats) -> Earnings:
        return cls(RANK, discount, share, np.ones(share.size), constant, *_no_table(constant.size))

    @classmethod
    def by_document(cls, share: Floats, passing: Floats, discount: Floats, queries: int) -> Earnings:
        return cls(DOCUMENT, discount, share, passing, np.zeros(queries), *_no_table(queries))

    @classmethod
    def by_table(cls, tables: list[Floats], rows: int) -> Earnings:
        """tables: one a query, each (chains, N_0 + 1, ...)."""
        starts = np.cumsum([0] + [table.size for table in tables])
        flat = np.concatenate([table.ravel() for table in tables])
        nothing = np.zeros(rows)
        return cls(TABLE, nothing, nothing, np.ones(rows), np.zeros(len(tables)), flat, starts)

    def only(self, first: int, last: int, low: int, high: int) -> Earnings:
        """Those of the queries first <= q < last, which have the rows low <= r < high."""
        rows, begin, end = slice(low, high), int(self.starts[first]), int(self.starts[last])
        return Earnings(
            self.kind, self.discount[rows], self.share[rows], self.passing[rows], self.constant[first:last],
            self.table[begin:end], self.starts[first : last + 1] - begin,
        )  # fmt: skip


def _no_table(queries: int) -> tuple[Floats, Ints]:
    return np.zeros(0), np.zeros(queries + 1, dtype=np.int64)
