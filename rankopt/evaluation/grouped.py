"""Documents grouped by query, as far as evaluations and files of runs read them: a `Queries`, or one's own."""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["Grouped", "QueryIndexed"]


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
