"""A table of columns, one row a step: what the histories of all trainings are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from formulations.brevity import wrapped
from formulations.notebook_view import curves, view

__all__ = ["Columns"]

Row = TypeVar("Row")


@dataclass(frozen=True, eq=False)
class Columns(Generic[Row]):
    """Rows of one dataclass, its fields as arrays (N,) of the same names: whole numbers int64, others float64.

    A table names the dataclass of its rows, `row`, and its columns, which are the fields of that:

    >>> @dataclass(frozen=True)
    ... class Visit:
    ...     step: int
    ...     value: float
    >>> @dataclass(frozen=True, eq=False, repr=False)
    ... class Visits(Columns[Visit]):
    ...     row = Visit
    ...     step: np.ndarray
    ...     value: np.ndarray
    >>> visits = Visits.of([Visit(1, 0.5), Visit(2, 0.75)])
    >>> visits.value
    array([0.5 , 0.75])
    >>> visits[-1]
    Visit(step=2, value=0.75)
    >>> visits
    Visits(2 rows, the last Visit(step=2, value=0.75))
    """

    row: ClassVar[type[Any]]
    drawn: ClassVar[tuple[str, ...]] = ()
    """Columns that a notebook draws."""

    def __post_init__(self) -> None:
        length = np.shape(self._first)
        for field in fields(self):
            column = getattr(self, field.name)
            if not isinstance(column, np.ndarray) or column.shape != length or column.ndim != 1:
                raise ValueError(f"{field.name} of a history is no column of numbers, one a step")

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Self:
        """The table of these rows."""
        kinds = cls.kinds()
        return cls(**{name: np.array([getattr(row, name) for row in rows], dtype=kinds[name]) for name in kinds})

    @classmethod
    def kinds(cls) -> dict[str, type[Any]]:
        """What each column is of, by its name."""
        whole = (int, "int")  # annotations are text where they are not evaluated
        return {field.name: np.int64 if field.type in whole else np.float64 for field in fields(cls.row)}

    def __len__(self) -> int:
        return int(np.size(self._first))

    def __getitem__(self, index: int) -> Row:
        row: Row = self.row(**{name: getattr(self, name)[index].item() for name in self.kinds()})
        return row

    def __repr__(self) -> str:
        last = f", the last {self[-1]}" if len(self) else ""
        return wrapped(f"{type(self).__name__}({len(self)} rows{last})")

    def _repr_html_(self) -> str:
        lines = {name: getattr(self, name) for name in self.drawn if np.size(self._first)}
        known = [name for name in self.kinds() if len(self) and not np.isnan(getattr(self, name)).all()]
        last = {name: f"{getattr(self, name)[-1]:.6g}" for name in known}
        return view(f"{type(self).__name__}, {len(self)} rows; the last:", last, curves(lines, "rows"))

    @property
    def _first(self) -> Any:
        return getattr(self, fields(self)[0].name)
