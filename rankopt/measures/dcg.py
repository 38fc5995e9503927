"""DCG, nDCG and MeanNDCG, their discounts and gains, and measures with custom ones.

    DCG@k  = Σ_j a[π(j)] b(y_j)          a_i = 1/log2(i + 1) for i <= k, else 0;  b(y) = 2^y - 1
    nDCG@k = DCG@k / max over orders of DCG@k

Options `discount` and `gain`: see below. Their defaults come from the convention of an evaluation; training uses the
formula above.

Source: Järvelin and Kekäläinen 2002; exponential gain of Burges et al. 2005; [ORM, section 2.3].

MeanNDCG: the mean of nDCG@k over all k = 1..n, reported by LETOR.

    MeanNDCG = (1/n) Σ_k DCG@k / best DCG@k = Σ_j A[π(j)] b(y_j),    A_i = (a_i / n) Σ_{k >= i} 1 / best DCG@k

The position weights A depend on the grades of the query, so it is for evaluation only. Options as of nDCG.

Discounts and gains of DCG by name, by table and by function.

    discount   "log2" 1/log2(i + 1)    "letor" 1, 1, 1/log2(i)    an array (a_1, a_2, ...)    a function n -> (n,)
    gain       "exp2" 2^y - 1          "linear" y                 an array (b(0), b(1), ...)  a function (N,) -> (N,)
               "binary" 1 where y > 0, else 0

An array of discounts is continued by 0. An array of gains is indexed by integer grades.

`Custom(discount=a, gain=b)` is Σ_j a[π(j)] b(y_j), whatever the convention; normalized it is nDCG(discount=a, gain=b).
Measures with functions print but do not parse.

>>> from rankopt.measures import Custom, evaluate
>>> evaluate([0, 2, 1], [9., 8., 7.], Custom(discount=[3, 2, 1], gain=[0, 1, 10])).mean()
21.0
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulations.arrays import Bools, Floats, Ints, check_no_mask
from rankopt.errors import LargeGainWarning, MeasureError
from rankopt.measures.measure import Convention, Measure, PositionalMeasure, best_sum, per_best
from rankopt.measures.tied_ranking import Ranking, descending, query_of_row, running, totals

DiscountName = Literal["log2", "letor"]
GainName = Literal["exp2", "linear", "binary"]
LARGE = 2.0**31  # a gain that hides all others

Discount: TypeAlias = DiscountName | Sequence[float] | NDArray[Any] | Callable[[int], ArrayLike]
Gain: TypeAlias = GainName | Sequence[float] | NDArray[Any] | Callable[[NDArray[Any]], ArrayLike]
"""Accepted forms of a discount and of a gain."""


def _form(what: str, form: Any, names: tuple[str, ...], *, falling: bool) -> Any:
    """The normalized form of a discount or gain: None, name, tuple of floats or function."""
    if form is None or callable(form) or (isinstance(form, str) and form in names):
        return form
    if isinstance(form, str):
        raise MeasureError(f"There is no {what} {form!r}; give {', '.join(names)}, numbers or a function.")
    check_no_mask("gain or discount", form, MeasureError)
    try:
        table = np.asarray(form, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.zeros((0, 0))
    if table.ndim != 1 or table.size == 0 or not np.all(np.isfinite(table)) or np.any(table < 0):
        raise MeasureError(f"A {what} cannot be {form!r}; give {', '.join(names)}, finite numbers >= 0 or a function.")
    steps = np.diff(table)
    if np.any(steps > 0) if falling else np.any(steps < 0):
        wanted = "increase with the position" if falling else "decrease with the grade"
        raise MeasureError(f"The {what} {form!r} cannot {wanted}, or sorting by grade would not be best; reorder it.")
    return tuple(table.tolist())


def discount_of(form: str | tuple[float, ...] | Callable[[int], Floats], n: int, cutoff: int | None) -> Floats:
    """Position weights (n,), 0 beyond the cutoff."""
    k = n if cutoff is None else min(n, cutoff)
    weights = np.zeros(n)
    if form == "log2":
        weights[:k] = 1 / np.log2(np.arange(2, k + 2))
    elif form == "letor":
        weights[:k] = 1 / np.log2(np.maximum(np.arange(1, k + 1), 2))
    elif isinstance(form, tuple):
        k = min(k, len(form))
        weights[:k] = form[:k]
    else:
        weights[:k] = _call("discount", form, n, (n,))[:k]
        if np.any(np.diff(weights) > 0):
            raise MeasureError(f"The discount of {n} positions increases; order the weights, largest first.")
    return weights


def gain_of(form: str | tuple[float, ...] | Callable[[Floats], Floats], relevance: Floats) -> Floats:
    """Document weights (N,) of grades (N,). MeasureError for grades without a gain; LargeGainWarning beyond 2^31."""
    gain = _gains(form, relevance)
    if form != "linear":
        warn_if_large(gain)
    return gain


def _not_negative(relevance: Floats) -> None:
    if np.any(relevance < 0):
        raise MeasureError(
            f"DCG cannot use the grade {relevance.min():g} because gains are not negative; "
            "pass unjudged= (the grade of unjudged documents) when reading the data. Gains estimated from clicks "
            "may be, of DCG(gain='linear')@k."
        )


def warn_if_large(gain: Floats) -> None:
    """LargeGainWarning for gains beyond 2^31."""
    with np.errstate(over="ignore"):
        adds_up = gain.sum() < np.inf  # else an error follows
    if adds_up and gain.max(initial=0.0) > LARGE:
        warnings.warn(
            "a grade has a gain beyond 2^31, next to which others count nothing; use gain='linear', as in "
            "nDCG(gain='linear')@10, or grades up to 31",
            LargeGainWarning,
            stacklevel=3,
        )


def _gains(form: str | tuple[float, ...] | Callable[[Floats], Floats], relevance: Floats) -> Floats:
    if callable(form):
        gain = _call("gain", form, relevance, relevance.shape)
        order = np.argsort(relevance, kind="stable")
        equal_or_more = np.diff(gain[order])
        same = np.diff(relevance[order]) == 0
        if np.any(equal_or_more < 0) or np.any(equal_or_more[same] != 0):
            raise MeasureError(
                "The gain function must give equal grades equal gains and higher grades no smaller ones; correct it."
            )
        return gain
    if form == "linear":
        return relevance
    _not_negative(relevance)
    if form == "binary":
        return (relevance > 0).astype(np.float64)
    if form == "exp2":
        with np.errstate(over="ignore"):
            gain = np.exp2(relevance) - 1
        if not np.all(np.isfinite(gain)):
            raise MeasureError(
                f"2^y - 1 overflows for the grade {relevance.max():g}; use gain='linear', as in "
                "nDCG(gain='linear')@10, or smaller grades."
            )
        return gain
    index = relevance.astype(np.int64)
    if np.any(index != relevance) or np.any(index >= len(form)):
        wrong = relevance[(index != relevance) | (index >= len(form))][0]
        raise MeasureError(f"The gains {form!r} have no entry for the grade {wrong:g}; list gains of grades 0, 1, ....")
    return np.asarray(form, dtype=np.float64)[index]


def _call(what: str, function: Any, argument: Any, shape: tuple[int, ...]) -> Floats:
    result = np.asarray(function(argument), dtype=np.float64)
    if result.shape != shape or not np.all(np.isfinite(result)) or np.any(result < 0):
        raise MeasureError(
            f"The {what} function {getattr(function, '__qualname__', function)!r} must return {shape[0]} finite "
            f"numbers >= 0; it returned shape {result.shape}."
        )
    return result


@dataclass(frozen=True, repr=False)
class DiscountOptions(Measure):
    """The options `discount` and `gain`; unset ones come from the convention."""

    stated_discount: Any = field(default=None, metadata={"option": "discount"})
    stated_gain: Any = field(default=None, metadata={"option": "gain"})

    if TYPE_CHECKING:  # the options as keywords

        def __call__(self, *, discount: Discount | None = ..., gain: Gain | None = ...) -> Self: ...  # type: ignore[override]

    def __post_init__(self) -> None:
        discount = _form("discount", self.stated_discount, get_args(DiscountName), falling=True)
        object.__setattr__(self, "stated_discount", discount)
        object.__setattr__(self, "stated_gain", _form("gain", self.stated_gain, get_args(GainName), falling=False))

    def with_convention(self, convention: Convention) -> Self:
        return replace(
            self,
            stated_discount=convention.discount if self.stated_discount is None else self.stated_discount,
            stated_gain=convention.gain if self.stated_gain is None else self.stated_gain,
        )


@dataclass(frozen=True, repr=False)
class DiscountedGain(DiscountOptions, PositionalMeasure):
    """Discounted cumulative gain."""

    name: ClassVar[str] = "DCG"

    @property
    def takes_gains(self) -> bool:
        """Whether documents may have gains of any sign in place of grades."""
        return bool(self.stated_gain == "linear")

    def discount(self, n: int) -> Floats:
        return discount_of("log2" if self.stated_discount is None else self.stated_discount, n, self.cutoff)

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        return gain_of("exp2" if self.stated_gain is None else self.stated_gain, relevance)


@dataclass(frozen=True, repr=False)
class NormalizedDiscountedGain(DiscountedGain):
    """DCG divided by the best DCG of the query; undefined if that is 0."""

    name: ClassVar[str] = "nDCG"
    takes_gains: ClassVar[bool] = False  # the best value, by which it divides, is positive for grades only
    max_value: ClassVar[float] = 1.0
    zero_if_short: ClassVar[tuple[str, ...]] = ("zero", "zero-ndcg")

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        _not_negative(relevance)
        return per_best(super().gain(relevance, offsets), self.discounts(offsets), offsets)

    def defined(self, relevance: Floats, offsets: Ints) -> Bools:
        return np.asarray(best_sum(self.discounts(offsets), super().gain(relevance, offsets), offsets) > 0)


DCG = DiscountedGain()
nDCG = NormalizedDiscountedGain()


@dataclass(frozen=True, repr=False)
class MeanNormalizedDiscountedGain(DiscountOptions):
    """nDCG averaged over all cutoffs; undefined on a query whose best DCG is 0."""

    name: ClassVar[str] = "MeanNDCG"
    max_value: ClassVar[float] = 1.0
    takes_cutoff: ClassVar[bool] = False

    @property
    def dcg(self) -> DiscountedGain:
        """The DCG that is averaged."""
        return DiscountedGain(stated_discount=self.stated_discount, stated_gain=self.stated_gain)

    def defined(self, relevance: Floats, offsets: Ints) -> Bools:
        return np.asarray(self.dcg.best(relevance, offsets) > 0)

    def values(self, ranking: Ranking) -> Floats:
        offsets = ranking.offsets
        _not_negative(ranking.relevance)
        discounts, gain = self.dcg.discounts(offsets), self.dcg.gain(ranking.relevance, offsets)
        best = running(np.add, discounts * descending(gain, offsets), offsets)
        shares = np.divide(1.0, best, out=np.zeros_like(best), where=best > 0)
        backwards = running(np.add, shares[::-1], offsets[-1] - offsets[::-1])[::-1]
        weights = discounts * backwards / np.diff(offsets)[query_of_row(offsets)]
        return totals(ranking.averaged(weights) * gain * ranking.retrieved, offsets)


MeanNDCG = MeanNormalizedDiscountedGain()


@dataclass(frozen=True, repr=False)
class CustomMeasure(DiscountedGain):
    """A discount and a gain defined by the user; conventions do not change them."""

    name: ClassVar[str] = "Custom"

    def with_convention(self, convention: Convention) -> Self:
        return self

    def discount(self, n: int) -> Floats:
        if self.stated_discount is None:
            raise MeasureError("Custom has no discount; write Custom(discount=..., gain=...).")
        return super().discount(n)

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        if self.stated_gain is None:
            raise MeasureError("Custom has no gain; write Custom(discount=..., gain=...).")
        return super().gain(relevance, offsets)


Custom = CustomMeasure()


@dataclass(frozen=True, repr=False)
class PrecisionOfGains(CustomMeasure):
    """P@k or WTA with gains in place of grades, by whose notation it prints: the mean gain of the first k documents."""

    notation: str = ""

    def __repr__(self) -> str:
        return self.notation
