"""Validated grades of documents grouped by query, and the protocols of what evaluations accept."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Floats, Ints
from formulations.display import CompactReprMixin
from rankopt.errors import DataError
from rankopt.measures.tied_ranking import Pool


@dataclass(frozen=True, eq=False)
class JudgedQueries(CompactReprMixin):
    """Grades (N,), query boundaries (m + 1,), query ids (m) and optional document ids (N).

    pool: judged and retrieved documents of a run with qrels.
    """

    relevance: Floats
    offsets: Ints
    query_ids: tuple[Hashable, ...]
    document_ids: tuple[Hashable, ...] | None = None
    pool: Pool | None = None

    @classmethod
    def read(
        cls,
        judged: Any,
        offsets: ArrayLike | None = None,
        query_ids: Sequence[Hashable] | None = None,
        document_ids: Sequence[Hashable] | None = None,
    ) -> JudgedQueries:
        """Read an object with these four attributes (a `Queries`), or grades and keywords.

        Without offsets all rows are one query. Raises DataError for shapes that disagree and for infinite grades.
        """
        pool = getattr(judged, "pool", None)
        if hasattr(judged, "relevance") and hasattr(judged, "offsets"):
            if not (offsets is None and query_ids is None and document_ids is None):
                raise DataError(f"A {type(judged).__name__} has its own offsets and ids; omit the keywords.")
            if judged.relevance is None:
                raise DataError(
                    f"This {type(judged).__name__} cannot be evaluated because it has no relevance; add it."
                )
            relevance, offsets = judged.relevance, judged.offsets
            query_ids, document_ids = judged.query_ids, judged.document_ids
        else:
            relevance = judged
        grades = vector("relevance", relevance)
        if not np.all(np.isfinite(grades)):
            row = int(np.argmin(np.isfinite(grades)))
            raise DataError(f"relevance[{row}] cannot be {grades[row]}; grades are finite numbers.")
        bounds = np.asarray([0, len(grades)] if offsets is None else offsets)
        if (
            bounds.ndim != 1
            or len(bounds) == 0
            or bounds[0] != 0
            or bounds[-1] != len(grades)
            or np.any(np.diff(bounds) < 0)
        ):
            raise DataError(f"offsets must rise from 0 to the number of documents, {len(grades)}; they are {bounds}.")
        names = tuple(range(len(bounds) - 1)) if query_ids is None else tuple(query_ids)
        documents = None if document_ids is None else tuple(document_ids)
        for what, ids, wanted in (("query_ids", names, len(bounds) - 1), ("document_ids", documents, len(grades))):
            if ids is not None and len(ids) != wanted:
                raise DataError(f"{what} has {len(ids)} entries, but there are {wanted}; pass one each.")
        return cls(grades, bounds.astype(np.int64), names, documents, pool)

    def check_scores(self, scores: ArrayLike) -> Floats:
        """The scores (N,) as floats. DataError for a wrong length or NaN."""
        values = vector("scores", scores)
        if len(values) != len(self.relevance):
            raise DataError(f"There are {len(values)} scores for {len(self.relevance)} documents; give one a document.")
        if np.any(np.isnan(values)):
            row = int(np.argmax(np.isnan(values)))
            raise DataError(f"scores[{row}] is NaN, which cannot be ordered; correct the ranker.")
        return values

    def descending_ids(self) -> Ints:
        """The key (N,) that sorts by document id as text, descending."""
        if self.document_ids is None:
            raise DataError("Ties cannot be broken by document id because there are none; pass document_ids=.")
        return descending_text([str(name) for name in self.document_ids])


def descending_text(words: Sequence[str]) -> Ints:
    """A key (N,) that sorts words in descending order of code points (as in C)."""
    _, rank = np.unique(np.array(words, dtype=np.str_), return_inverse=True)
    return -rank.astype(np.int64)


def vector(what: str, values: ArrayLike) -> Floats:
    """The values as a vector of floats. DataError for other shapes and non-numbers."""
    try:
        result = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{what} cannot be read as numbers: {error}.") from error
    if result.ndim != 1:
        raise DataError(f"{what} must be one number a document; it has the shape {result.shape}.")
    return result


class QueryIndexed(Protocol):
    """m queries and N documents with their ids; the documents of query q are rows offsets[q]:offsets[q + 1]."""

    @property
    def offsets(self) -> Any: ...

    @property
    def query_ids(self) -> Any: ...

    @property
    def document_ids(self) -> Any: ...


class Grouped(QueryIndexed, Protocol):
    """The same with grades (N,)."""

    @property
    def relevance(self) -> Any: ...
