"""Types of data arguments: rows of features, grades, ids of queries, attributes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from numpy.typing import NDArray

from formulations.typing import NonTextSequence, Sparse, SupportsArray


class Frame(Protocol):
    """A data frame: of pandas, polars or pyarrow."""

    @property
    def columns(self) -> Any: ...

    @property
    def shape(self) -> Any: ...


PlainRows: TypeAlias = NDArray[Any] | Sparse | Sequence[Sequence[float] | NDArray[Any]]  # features (N, d) without names

Rows: TypeAlias = PlainRows | SupportsArray | Frame  # features (N, d)

Values: TypeAlias = SupportsArray | Sequence[float]  # one number per row (N,)

Ids: TypeAlias = SupportsArray | NonTextSequence[Hashable]  # one id per row (N,); not a string

Pairs: TypeAlias = SupportsArray | Frame | NonTextSequence[NonTextSequence[Hashable]]
"""Rows (user, item): an (n, 2) array, a data frame, or a list of pairs."""

Sizes: TypeAlias = SupportsArray | Sequence[int]  # the number of rows of each query, in order

Attributes: TypeAlias = Frame | NDArray[Any] | Mapping[str, Any]
"""One value per row by name: a data frame, a structured array, or a mapping from name to values."""

Unjudged: TypeAlias = float | Literal["drop"] | None
"""The meaning of negative grades: a grade >= 0, "drop" the document, or None for an error."""
