"""What a command reads: a LETOR / SVMlight file, a table, or a folder of stored queries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rankopt.errors import DataError

if TYPE_CHECKING:
    from rankopt.data.queries import Queries

__all__ = ["queries_at"]


def queries_at(path: str, unjudged: float | None = None, n_features: int | None = None) -> Queries:
    """The queries at a path: a folder that `rankopt store` wrote, a table (parquet, CSV), else a LETOR file."""
    from rankopt.data.tables import is_table, read_table

    if is_table(path):
        return _as_wide(read_table(path, unjudged=unjudged), path, n_features)
    if not Path(path).is_dir():
        from rankopt.data.svmlight.reader import read_svmlight

        return read_svmlight(path, unjudged=unjudged, n_features=n_features)
    from rankopt.data.stored import open_stored

    return _as_wide(open_stored(path), path, n_features)


def _as_wide(queries: Queries, path: str, n_features: int | None) -> Queries:
    """The queries, which must have as many features as are wanted."""
    if n_features is not None and queries.n_features != n_features:
        raise DataError(f"{path} has {queries.n_features} features but {n_features} are wanted; store it with those.")
    return queries
