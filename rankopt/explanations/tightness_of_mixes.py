"""The tightness of a mix of measures: of its parts, and of their sum or of the largest of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rankopt.explanations.tightness import Tightness

__all__ = ["of_parts"]

Floats = NDArray[np.float64]


def of_parts(
    name: str, parts: Sequence[tuple[float, str, Tightness]], query_ids: Sequence[Hashable], shared: bool
) -> Tightness:
    """The table of a mix called `name`. parts: the weight C_l, name and table of each. query_ids: of the data, in order
    (a query counts that is in one of the tables).

    Every number of a query is Σ_l C_l times that of part l; where the slack is shared the largest of these, and the
    growth of the bound is that of the part with the largest.
    """
    tables = [table for _, _, table in parts]
    known = {query: int(count) for table in tables for query, count in zip(table.query, table.documents, strict=True)}
    chosen = [query for query in query_ids if query in known]
    place = {query: number for number, query in enumerate(chosen)}
    rows = [np.array([place[query] for query in table.query], dtype=np.int64) for table in tables]

    def spread(columns: Sequence[Floats]) -> Floats:
        whole = np.zeros((len(parts), len(chosen)))
        for number, ((weight, _, _), own, column) in enumerate(zip(parts, rows, columns, strict=True)):
            whole[number, own] = weight * column
        return whole

    def mixed(columns: Sequence[Floats]) -> Floats:
        every = spread(columns)
        return np.asarray(every.max(axis=0) if shared else every.sum(axis=0))

    first = tables[0]
    growth = spread([table.growth for table in tables])
    if shared:
        largest = spread([table.bound for table in tables]).argmax(axis=0)
        grown = growth[largest, np.arange(len(chosen))]
    else:
        grown = growth.sum(axis=0)
    return replace(
        first,
        measure=name,
        query=tuple(chosen),
        documents=np.array([known[query] for query in chosen], dtype=np.int64),
        regret=mixed([table.regret for table in tables]),
        expected=mixed([table.expected for table in tables]),
        bounds={bound: mixed([table.bounds[bound] for table in tables]) for bound in first.bounds},
        most=mixed([table.most for table in tables]),
        growth=grown,
        parts={part: table for _, part, table in parts},
    )
