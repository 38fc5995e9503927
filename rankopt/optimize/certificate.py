"""Certificate of a training run, why it ended, and the history of its steps: columns by name, one row a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats
from formulations.display import Axes, CompactReprMixin, axes_for, view, wrapped
from formulations.errors import CertificateError
from formulations.registry import load
from rankopt.errors import ModelError


class Stop(StrEnum):
    """Why a run ended."""

    GAP = "the gap is within the tolerance"
    CHOSEN = "the last step closed its gap; an earlier step was better on eval_set, and weights and gap are of that one"
    START = "the last step closed its gap; the start w0 was best on eval_set, and weights and gap are of the start"
    PATIENCE = "eval_set found nothing better for as many rounds as patience allows"
    ANNEALED = "every sigma was gone through"
    STALLED = "no step narrowed the gap any more, as far as double precision and the master allow"
    ITERATIONS = "max_iter steps were taken"
    TIME = "time_limit passed"
    MASTER = "the solver of the master program failed"
    DIRECTIONS = "no direction led higher any more"
    GROWN = "all trees were grown"
    NO_SPLIT = "no feature separates the documents any more"
    EARLIER = "an earlier state was better on eval_set"
    WEIGHTS = "no single weight can raise the measure"
    PASSES = "the maximum number of passes was reached"
    CALLBACK = "a callback asked to stop"
    INTERRUPTED = "interrupted from the keyboard"


CONTRADICTION = 1e-9  # A bound beyond the value by more than this, relative to 1 + |value|, is no rounding

FACTORS = ("users", "items", "singular", "proof")
BLOCKS = (*FACTORS, "convex")
SMOOTHED = ("sigma", "gradient", "measure", "start")
DIRECTIONS = ("epsilon", "features", "vectors")
TREES = ("trees",)
CLAIMED = ("claimed",)
"""Parts of certificates: of factors, globally and by blocks; of a smoothed measure, of weights along directions, of
trees, and of what is not proved."""

LAYOUTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "global": ((), FACTORS, CLAIMED),
    "stationary": ((), SMOOTHED, CLAIMED),
    "directions": (DIRECTIONS, TREES),
    "blocks": (BLOCKS,),
}
"""The kinds of certificates, and which parts one of each kind may have."""

BLOCKS_CLOSED = "the gaps of both blocks are within the tolerance"
"""Text of `Stop.GAP` in a certificate of factors: not the global gap."""


@dataclass(frozen=True, eq=False)
class Certificate(CompactReprMixin):
    """What is proved of the result of a training run. Parts are attributes too: `certificate.users`.

    Attributes
    ----------
    kind : "global", "stationary", "directions" or "blocks".

        "global": value is J (to be minimized), and bound <= min J, so that gap bounds the suboptimality.

        "stationary": gap bounds the decrease of one more step of the concave-convex procedure (the bound is below the
        convex majorant that touches J at w). It is 0 at a critical point. Without a bound (-inf), of `SmoothRanker`:
        the norm of the gradient is given.

        "directions": value is the measure M (to be maximized) on the training queries, documents of equal score
        averaged. M <= bound along each direction of a list, one at a time, except at jumps. Nothing is claimed of
        combinations of directions.

        "blocks": value is J of a factor model. Only the gaps of the users' and of the items' block are known.
    value : the objective of the result, each ranking proved by dual variables where J is minimized. Also `primal`.
    bound : the proven bound; -inf if there is none. One that contradicts the value raises `CertificateError`.
    stop : why the run ended.
    at_start : the result is the start w₀, which usually means that lam is too large or the bound too loose.
    parts : what a kind has in addition, by name.

        Of factors: users, items, lower bounds of J over one block for the fixed other one; singular, the bound that
        ‖Ψ‖₂ cannot exceed, and proof, how it was proved (NaN and "" without a global bound); convex, whether the blocks
        are those of J itself or of its convex majorant.

        Of a smoothed measure: sigma, the width at which w was found; gradient, the norm of the gradient of J_σ with
        features in units of their deviation within queries (a minimum at a kink has none of 0); measure, the mean of
        the measure on the training queries; start, the same at w₀.

        Of directions: epsilon = bound - value; features (k,), indices of the features whose unit vectors are in the
        list; vectors (r, d), the other directions. Of trees: trees, their number; the directions are their outputs.

        Of an oracle that trusts a solver: claimed, what it takes from it; gap is right if that is.
    """

    kind: str
    value: float
    bound: float
    stop: Stop
    at_start: bool = False
    parts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop", Stop(self.stop))  # a saved certificate holds the plain text
        if self.kind not in LAYOUTS or not isinstance(self.at_start, bool) or not isinstance(self.parts, Mapping):
            raise ValueError(f"a certificate has an invalid kind or at_start; got {self.kind!r} and {self.at_start!r}")
        if not any(self.parts.keys() == set(layout) for layout in LAYOUTS[self.kind]):
            raise ValueError(f"a certificate of kind {self.kind!r} has the parts {sorted(map(str, self.parts))}")
        bounded = self.kind != "blocks" and "gradient" not in self.parts
        unknown = self.bound == -np.inf and self.kind != "directions"
        if not _is_number(self.value, self.bound) or not np.isfinite([self.value, 0 if unknown else self.bound]).all():
            raise ValueError(f"a certificate needs finite value and bound; got {self.value!r} and {self.bound!r}")
        if not bounded and self.bound != -np.inf:
            raise ValueError(f"a certificate of kind {self.kind!r} without a bound has the bound {self.bound!r}")
        for name, part in self.parts.items():
            if not PARTS[name](part):
                raise ValueError(f"a certificate has an invalid part: {name} = {part!r:.80}")
        low, high = (self.value, self.bound) if self.kind == "directions" else (self.bound, self.value)
        if low - high > CONTRADICTION * (1.0 + abs(self.value)):
            side = "upper bound {:.9g} below" if self.kind == "directions" else "lower bound {:.9g} above"
            raise CertificateError(
                f"nothing is proved: the run reports the {side.format(self.bound)} its value {self.value:.9g}. Check a "
                "loss, bound or method of your own with rankopt.testing; a loss that can be negative must set "
                "is_nonnegative = False."
            )

    def __getattr__(self, name: str) -> Any:
        parts = self.__dict__.get("parts", {})
        if name not in parts:
            raise AttributeError(f"a certificate of kind {self.__dict__.get('kind')!r} has no {name!r}")
        return parts[name]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Certificate):
            return NotImplemented
        same = self._key() == other._key() and self.parts.keys() == other.parts.keys()
        return same and all(
            np.array_equal(part, other.parts[name], _is_number(part)) for name, part in self.parts.items()
        )

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.kind, self.value, self.bound, self.stop, self.at_start

    def has(self, *names: str) -> bool:
        """Whether it has these parts and no others."""
        return self.parts.keys() == set(names)

    @property
    def primal(self) -> float:
        """J, the value where it is minimized. AttributeError for "directions"."""
        if self.kind == "directions":
            raise AttributeError("a certificate of directions has no primal; its value is the measure")
        return self.value

    @property
    def gap(self) -> float:
        """The distance of value and bound, 0 where rounding would make it negative; infinite without a bound."""
        if "epsilon" in self.parts:
            return float(self.epsilon)
        return max(self.bound - self.value if self.kind == "directions" else self.value - self.bound, 0.0)

    @property
    def relative_gap(self) -> float:
        """gap / |value|; 0 if the gap is 0, infinite if the value alone is."""
        return _part_of(self.gap, self.value)

    @property
    def users_gap(self) -> float:
        """The gap of the users' block, as a part of J."""
        return _part_of(max(self.value - self.users, 0.0), self.value)

    @property
    def items_gap(self) -> float:
        """The gap of the items' block, as a part of J."""
        return _part_of(max(self.value - self.items, 0.0), self.value)

    @property
    def directions(self) -> int:
        """How many directions are in the list."""
        return int(self.trees) if self.has("trees") else int(self.features.size + len(self.vectors))

    @property
    def ending(self) -> str:
        """How training ended, in words."""
        return BLOCKS_CLOSED if "users" in self.parts and self.stop is Stop.GAP else self.stop.value

    def __str__(self) -> str:
        if "users" in self.parts:
            text = f"gap of the users' block {100 * self.users_gap:.2g}%, of the items' {100 * self.items_gap:.2g}%, "
            if self.kind == "global":
                text += f"of the whole {100 * self.relative_gap:.2g}% (bound {self.bound:.8g}, {self.proof}), "
            kind = self.kind if self.kind == "global" or self.convex else "blocks of the majorant"
            return f"{kind}: J = {self.value:.8g}, {text}{self.ending}"
        if "gradient" in self.parts:
            return (
                f"{self.kind}: J = {self.value:.8g} and its gradient {self.gradient:.2g} at sigma = {self.sigma:g}; "
                f"the measure {self.measure:.6g}, {self.start:.6g} at w0; no bound; {self.ending}"
            )
        if self.has("trees"):
            return (
                f"{self.kind}: M = {self.value:.8g}, at most {self.bound:.8g} by the weight of one of {self.trees} "
                f"trees, {self.ending}"
            )
        if self.kind == "directions":
            several = [f"{self.features.size} features", f"{len(self.vectors)} other directions"]
            along = " and ".join(one for one in several if not one.startswith("0 "))
            claim = f"along {along}, each alone, nothing is higher by more than {self.epsilon:.2g}"
            claim = claim if along else "no direction was tried from here"
            return f"{self.kind}: M = {self.value:.8g}, {claim}, {self.ending}"
        relies = f"; relies on {self.claimed}" if self.has(*CLAIMED) else ""
        return (
            f"{self.kind}: J = {self.value:.8g}, bound {self.bound:.8g}, gap {self.gap:.2g} "
            f"({100 * self.relative_gap:.2g}%), {self.ending}{relies}"
        )


def _part_of(gap: float, value: float) -> float:
    return 0.0 if gap == 0.0 else gap / abs(value) if value else np.inf


def check_saved(ranker: Any, row: type[Any], *layouts: tuple[str, ...]) -> None:
    """Raise ModelError unless a loaded ranker has a certificate with the parts of one of these layouts, a history of
    these rows, and their number."""
    proved, history, steps = (getattr(ranker, name, None) for name in ("certificate_", "history_", "n_iter_"))
    if not isinstance(proved, Certificate) or not any(proved.has(*names) for names in layouts):
        raise ModelError(f"certificate_ is missing or is no certificate of a {type(ranker).__name__}.")
    if not isinstance(history, History) or history.row != row.__name__:
        raise ModelError(f"history_ is missing or is no history of a {type(ranker).__name__}.")
    if hasattr(ranker, "n_iter_") and type(steps) is not int:
        raise ModelError("n_iter_ is no number of steps.")


def _is_number(*values: Any) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _is_finite(value: Any) -> bool:
    return _is_number(value) and bool(np.isfinite(value))


def _is_array(value: Any, dtype: type[Any], dimensions: int) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == dtype and value.ndim == dimensions


PARTS: dict[str, Callable[[Any], bool]] = {
    "users": lambda value: _is_number(value) and not np.isnan(value),
    "items": lambda value: _is_number(value) and not np.isnan(value),
    "singular": _is_number,
    "proof": lambda value: value in ("", "cholesky", "norms"),
    "convex": lambda value: isinstance(value, bool),
    "sigma": _is_finite,
    "gradient": lambda value: _is_finite(value) and value >= 0,
    "measure": _is_finite,
    "start": _is_finite,
    "epsilon": lambda value: _is_finite(value) and value >= 0,
    "features": lambda ids: _is_array(ids, np.int64, 1) and not (ids < 0).any() and np.unique(ids).size == ids.size,
    "vectors": lambda value: _is_array(value, np.float64, 2) and bool(np.isfinite(value).all()),
    "trees": lambda value: type(value) is int and value >= 0,
    "claimed": lambda value: isinstance(value, str) and bool(value),
}
"""What each part of a certificate must be."""


ROWS = {
    "AlternationStep": "rankopt.collaborative.alternation:AlternationStep",
    "AnnealingStep": "rankopt.optimize.annealing:AnnealingStep",
    "Move": "rankopt.ascent.ascent:Move",
    "Step": "rankopt.optimize.certificate:Step",
    "TreeStep": "rankopt.experimental.tree_ensemble:TreeStep",
}
"""The dataclasses of steps. Each has `axis`, the column of the x axis, `draw`, and a line of progress as its `str`."""


@dataclass(frozen=True, eq=False, repr=False)
class History(CompactReprMixin):
    """The steps of a run: a sequence of rows, and their fields as columns (N,), integers int64, others float64.

    `history.primal[i]` is `history[i].primal`. row: a name of `ROWS`.

    >>> history = History.from_rows(Step, [Step(1, 0, 2.0, 1.0, 2.0, 5, 0.1, 0.1, 0.0)])
    >>> history.primal, history.gap, history[-1].planes
    (array([2.]), array([1.]), 5)
    """

    row: str
    columns: Mapping[str, NDArray[Any]]

    def __post_init__(self) -> None:
        if self.row not in ROWS or not isinstance(self.columns, Mapping):
            raise ValueError(f"a history of {self.row!r:.80} is unknown")
        kinds, sizes = _kinds(load(ROWS[self.row])), set[int]()
        if self.columns.keys() != kinds.keys():
            raise ValueError(f"a history of {self.row} has the columns {', '.join(kinds)}")
        for name, column in self.columns.items():
            if not isinstance(column, np.ndarray) or column.ndim != 1 or len(sizes := sizes | {column.size}) > 1:
                raise ValueError(f"{name} of a history is no column of numbers, one a step")
            if column.dtype != kinds[name]:
                raise ValueError(f"{name} of a history has another type")

    @classmethod
    def from_rows(cls, row: type[Any], rows: Sequence[Any]) -> Self:
        """The history of these rows of one dataclass of `ROWS`."""
        kinds = _kinds(row)
        return cls(
            row.__name__, {name: np.array([getattr(one, name) for one in rows], dtype=kinds[name]) for name in kinds}
        )

    def __getattr__(self, name: str) -> Any:
        columns = self.__dict__.get("columns", {})
        if name not in columns:
            raise AttributeError(f"a history of {self.__dict__.get('row')} has no column {name!r}")
        return columns[name]

    @property
    def gap(self) -> Floats:
        """primal - bound after each step."""
        return np.asarray(self.primal - self.bound)

    def __len__(self) -> int:
        return int(next(iter(self.columns.values())).size)

    def __getitem__(self, index: int) -> Any:
        return load(ROWS[self.row])(**{name: column[index].item() for name, column in self.columns.items()})

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def plot(self, axes: Axes | None = None, against: str | None = None) -> Axes:
        """Draw the objective, and its proven bounds if there are any, against a column: "step" ("lines", the line
        searches, of `DirectRanker`) or "seconds"."""
        kind, axes = load(ROWS[self.row]), axes_for(axes)
        against = kind.axis if against is None else against
        label = kind.draw(self, axes, getattr(self, against))
        axes.set(xlabel="line searches" if against == "lines" else against, ylabel=label)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False)
        return axes

    def __repr__(self) -> str:
        last = f", the last {self[-1]!r}" if len(self) else ""
        return wrapped(f"History({len(self)} rows{last})")

    def _repr_html_(self) -> str:
        known = {name: column for name, column in self.columns.items() if len(self) and not np.isnan(column).all()}
        last = {name: f"{column[-1]:.6g}" for name, column in known.items()}
        return view(f"History, {len(self)} rows; the last:", last)


def _kinds(row: type[Any]) -> dict[str, type[Any]]:
    """What the column of each field holds."""
    integer = (int, "int")  # annotations are text where they are not evaluated
    return {one.name: np.int64 if one.type in integer else np.float64 for one in fields(row)}


@dataclass(frozen=True)
class Step:
    """One step: its number, the number of majorants (0 for a convex bound), the best objective and lower bound of the
    current majorant, the objective at the step's w, planes, and seconds so far: total, in the argmax, in the master."""

    step: int
    round: int
    primal: float
    bound: float
    latest: float
    planes: int
    seconds: float
    seconds_argmax: float
    seconds_master: float

    axis: ClassVar[str] = "step"

    def __str__(self) -> str:
        text = f"step {self.step}: objective {self.primal:.6g}, bound {self.bound:.6g}"
        text += f", gap {self.primal - self.bound:.2g}, {self.seconds:.1f} s"
        return f"round {self.round}, {text}" if self.round else text

    @staticmethod
    def draw(history: History, axes: Axes, x: NDArray[Any]) -> str:
        """Primal and proven bound; the area between them is what is not yet proven.

        Each round of the concave-convex procedure has a convex problem and a bound of its own: of several rounds each
        is one line, at the bound that was proven when it ended, and the area is that of the last.
        """
        primal, bound, round = history.primal, history.bound, history.round
        ends = np.flatnonzero(np.append(round[1:] != round[:-1], True))
        axes.plot(x, primal, color="C0", label="best objective")
        rows = np.arange(x.size)
        if ends.size > 1:
            begun = np.append(0, ends[:-1])
            lines = np.column_stack([x[begun], x[ends], np.full(ends.size, np.nan)]).ravel()
            label = f"lower bound of each of {ends.size} rounds\n(of its convex problem)"
            axes.plot(lines, np.repeat(bound[ends], 3), color="C1", label=label)
            rows, bound = np.arange(begun[-1], ends[-1] + 1), np.full(x.size, bound[-1])
        else:
            axes.plot(x, bound, color="C1", label="proven lower bound")
        axes.fill_between(x[rows], bound[rows], primal[rows], color="C0", alpha=0.15, linewidth=0, label="gap")
        return "objective"
