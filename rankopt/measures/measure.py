"""Base class of measures: a frozen value with a name, options and a cutoff."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from formulations.arrays import Bools, Floats, Ints
from formulations.typing import Whole
from rankopt.errors import MeasureError
from rankopt.measures.convention import Convention
from rankopt.measures.tied_ranking import Ranking

if TYPE_CHECKING:
    from formulations.problems.relevance_values import GainTable


@dataclass(frozen=True, repr=False)
class Measure:
    """A measure, written `name(options)@cutoff`.

    Calling a measure sets options, `@` sets the cutoff; both return a new value. An option is a field with the metadata
    {"option": its name in the notation}, and {"shown": True} if it is printed even at its default.

    >>> from rankopt.measures import nDCG
    >>> nDCG(gain="linear") @ 10
    nDCG(gain='linear')@10
    """

    name: ClassVar[str]
    trainable: ClassVar[bool] = False
    """Whether it is an inner product of a discount and a gain, the form that training needs."""
    has_gain_table: ClassVar[bool] = False
    """Whether `gain_table` is implemented, as the pairwise and first-relevant feature maps require."""
    graded: ClassVar[bool] = False
    """Whether its gain table depends on the grades, not only on their order."""
    takes_cutoff: ClassVar[bool] = True
    sweep_kind: ClassVar[str] = "crossings"
    """The sweep algorithm: "places" for a discount and a gain, "precision" for `AP`, "cascade" for `ERR`,
    "first relevant" for `RR`, "sum" for `summands`, else "crossings"."""
    zero_if_short: ClassVar[tuple[str, ...]] = ()
    """Settings of `Convention.fewer_than_k` under which a query with fewer documents than the cutoff has value 0."""

    cutoff: int | None = field(default=None, kw_only=True)

    def __call__(self, **options: Any) -> Self:
        """The measure with these options. MeasureError for unknown options."""
        names = {f.metadata["option"]: f.name for f in fields(self) if "option" in f.metadata}
        for option in options:
            if option not in names:
                known = f"its options are {', '.join(names)}" if names else "it has none"
                raise MeasureError(f"{self.name} has no option {option!r}; {known}.")
        return replace(self, **{names[option]: value for option, value in options.items()})

    def __matmul__(self, cutoff: Whole) -> Self:
        """The measure on the first `cutoff` positions."""
        if not self.takes_cutoff:
            raise MeasureError(
                f"{self.name} takes no cutoff because it is defined on all positions; write {self.name}."
            )
        if isinstance(cutoff, bool) or not isinstance(cutoff, int | np.integer) or cutoff < 1:
            raise MeasureError(f"A cutoff cannot be {cutoff!r}; write {self.name}@k with an integer k >= 1.")
        return replace(self, cutoff=int(cutoff))

    def __repr__(self) -> str:
        options = ", ".join(
            f"{f.metadata['option']}={_written(getattr(self, f.name))}"
            for f in fields(self)
            if "option" in f.metadata and (f.metadata.get("shown") or getattr(self, f.name) != f.default)
        )
        return self.name + (f"({options})" if options else "") + ("" if self.cutoff is None else f"@{self.cutoff}")

    def with_convention(self, convention: Convention) -> Self:
        """The measure with unset options taken from the convention."""
        return self

    def defined(self, relevance: Floats, offsets: Ints) -> Bools:
        """Which queries (m,) the measure is defined on; the convention sets the value of the others."""
        return np.ones(len(offsets) - 1, dtype=np.bool_)

    def inner_product(self, relevance: Floats, offsets: Ints) -> bool:
        """Whether it is an inner product a[π]ᵀb of a discount and a gain on all these queries."""
        return False

    def optimal_rankings(self, relevance: Floats, offsets: Ints) -> tuple[Floats, Floats]:
        """b (N,) of documents and non-increasing a (N,) of positions whose a[π]ᵀb is maximal exactly for the
        optimal rankings of the measure. Raises MeasureError for a measure without them, which cannot be trained on.
        """
        raise MeasureError(
            f"{self} cannot be trained on because it does not define its optimal rankings; use it for evaluation."
        )

    def gain_table(self, classes: Floats, relevance: Floats, offsets: Ints) -> GainTable:
        """The gain of documents at each position, a function of the relevance vector; see `has_gain_table`.

        classes: (N,) grade classes that the measure distinguishes: 0 and 1 for binary measures, else counted from 0.
        """
        raise NotImplementedError(f"{type(self).__name__} has no gain table; evaluate with it.")

    def values(self, ranking: Ranking) -> Floats:
        """The value (m,) of each query, averaged over the orders of tie groups; 0 where undefined."""
        raise NotImplementedError(f"{type(self).__name__} has no `values`; write it.")


def as_number(value: Any) -> float:
    """The value as a float; NaN if it is no number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def _written(value: Any) -> str:
    """Shortest form of numbers that parses back; functions by name."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return getattr(value, "__qualname__", None) or repr(value)
