"""Certificates of a training run, and the history of its steps as a table of columns, one row a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from formulations.display import CompactReprMixin, view, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Stop(StrEnum):
    """Why a run ended."""

    GAP = "the gap is within the tolerance"
    CHOSEN = "the gap closed, and an earlier step was better on eval_set"
    PATIENCE = "eval_set found nothing better for as many rounds as patience allows"
    ANNEALED = "every sigma was gone through"
    STALLED = "no step narrowed the gap any more, as far as double precision and the master allow"
    ITERATIONS = "max_iter steps were taken"
    TIME = "time_limit passed"
    MASTER = "the solver of the master program failed"
    DIRECTIONS = "no direction led higher any more"
    CALLBACK = "a callback asked to stop"
    INTERRUPTED = "interrupted from the keyboard"


@dataclass(frozen=True)
class Certificate(CompactReprMixin):
    """primal: J(w) of the returned w, each ranking proved by dual variables. bound: a proven lower bound.

    kind "global": bound <= min J, so gap bounds the suboptimality (convex bound only).
    kind "stationary": bound is below the convex majorant that touches J at w, so gap bounds the possible decrease of
    one more step of the concave-convex procedure; 0 at a critical point. No global claim is made.
    at_start: w is w₀, which usually means that lam is too large or the bound too loose.
    """

    kind: str
    primal: float
    bound: float
    stop: Stop
    at_start: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop", Stop(self.stop))  # a saved certificate holds the plain text
        if self.kind not in ("global", "stationary") or not isinstance(self.at_start, bool):
            raise ValueError(f"a certificate has an invalid kind or at_start; got {self.kind!r} and {self.at_start!r}")
        if isinstance(self.primal, bool) or isinstance(self.bound, bool) or not np.isfinite(self.primal - self.bound):
            raise ValueError(f"a certificate needs finite J and bound; got {self.primal!r} and {self.bound!r}")

    @property
    def gap(self) -> float:
        """primal - bound, 0 where rounding would make it negative."""
        return max(self.primal - self.bound, 0.0)

    @property
    def relative_gap(self) -> float:
        """gap / primal; 0 if both are 0."""
        return self.gap / abs(self.primal) if self.gap else 0.0

    def __str__(self) -> str:
        return (
            f"{self.kind}: J = {self.primal:.8g}, bound {self.bound:.8g}, gap {self.gap:.2g} "
            f"({100 * self.relative_gap:.2g}%), {self.stop.value}"
        )


Row = TypeVar("Row")


@dataclass(frozen=True, eq=False)
class Columns(CompactReprMixin, Generic[Row]):
    """Rows of one dataclass, its fields as arrays (N,) of the same names: integers int64, others float64.

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
    >>> visits = Visits.from_rows([Visit(1, 0.5), Visit(2, 0.75)])
    >>> visits.value
    array([0.5 , 0.75])
    >>> visits[-1]
    Visit(step=2, value=0.75)
    >>> visits
    Visits(2 rows, the last Visit(step=2, value=0.75))
    """

    row: ClassVar[type[Any]]

    def __post_init__(self) -> None:
        length = np.shape(self._first)
        for field in fields(self):
            column = getattr(self, field.name)
            if not isinstance(column, np.ndarray) or column.shape != length or column.ndim != 1:
                raise ValueError(f"{field.name} of a history is no column of numbers, one a step")

    @classmethod
    def from_rows(cls, rows: Sequence[Row]) -> Self:
        """The table of these rows."""
        kinds = cls.kinds()
        return cls(**{name: np.array([getattr(row, name) for row in rows], dtype=kinds[name]) for name in kinds})

    @classmethod
    def kinds(cls) -> dict[str, type[Any]]:
        """What each column is of, by its name."""
        integer = (int, "int")  # annotations are text where they are not evaluated
        return {field.name: np.int64 if field.type in integer else np.float64 for field in fields(cls.row)}

    def __len__(self) -> int:
        return int(np.size(self._first))

    def __getitem__(self, index: int) -> Row:
        row: Row = self.row(**{name: getattr(self, name)[index].item() for name in self.kinds()})
        return row

    def __repr__(self) -> str:
        last = f", the last {self[-1]}" if len(self) else ""
        return wrapped(f"{type(self).__name__}({len(self)} rows{last})")

    def _repr_html_(self) -> str:
        known = [name for name in self.kinds() if len(self) and not np.isnan(getattr(self, name)).all()]
        last = {name: f"{getattr(self, name)[-1]:.6g}" for name in known}
        return view(f"{type(self).__name__}, {len(self)} rows; the last:", last)

    @property
    def _first(self) -> Any:
        return getattr(self, fields(self)[0].name)


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Step:
    """One step: its number, the number of majorants (0 for a convex bound), the best objective and lower bound of the
    current majorant, the objective at the step's w, planes stored, and seconds so far: total, in the argmax, in the
    master."""

    step: int
    round: int
    primal: float
    bound: float
    latest: float
    planes: int
    seconds: float
    seconds_argmax: float
    seconds_master: float


@dataclass(frozen=True, eq=False, repr=False)
class History(Columns[Step]):
    """The steps of a run as columns: `history.primal[i]` is the primal of step i, and so for each field of `Step`."""

    row: ClassVar[type[Step]] = Step

    step: Ints
    round: Ints
    primal: Floats
    bound: Floats
    latest: Floats
    planes: Ints
    seconds: Floats
    seconds_argmax: Floats
    seconds_master: Floats

    @property
    def gap(self) -> Floats:
        """primal - bound after each step."""
        return np.asarray(self.primal - self.bound)

    def plot(self, axes: Axes | None = None, against: str = "step") -> Axes:
        """Primal and proven bound against "step" or "seconds"; the area between them is what is not yet proven.

        Each round of the concave-convex procedure has a convex problem and a bound of its own: of several rounds each
        is one line, at the bound that was proven when it ended, and the area is that of the last.
        """
        import matplotlib.pyplot as plt

        axes = plt.subplots(layout="constrained")[1] if axes is None else axes
        x, ends = getattr(self, against), np.flatnonzero(np.append(self.round[1:] != self.round[:-1], True))
        axes.plot(x, self.primal, color="C0", label="best objective")
        rows, bound = np.arange(x.size), self.bound
        if ends.size > 1:
            begun = np.append(0, ends[:-1])
            rows, bound = np.arange(begun[-1], ends[-1] + 1), np.full(x.size, bound[-1])
            lines = np.column_stack([x[begun], x[ends], np.full(ends.size, np.nan)]).ravel()
            axes.plot(lines, np.repeat(self.bound[ends], 3), color="C1", label="proven lower bound of a round")
        else:
            axes.plot(x, bound, color="C1", label="proven lower bound")
        axes.fill_between(x[rows], bound[rows], self.primal[rows], color="C0", alpha=0.15, linewidth=0, label="gap")
        axes.set(xlabel=against, ylabel="objective")
        axes.legend(frameon=False)
        return axes
