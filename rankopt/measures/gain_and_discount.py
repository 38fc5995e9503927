"""Discounts and gains of DCG by name, by table and by function.

    discount   "log2" 1/log2(i + 1)    "letor" 1, 1, 1/log2(i)    an array (a_1, a_2, ...)    a function n -> (n,)
    gain       "exp2" 2^y - 1          "linear" y                 an array (b(0), b(1), ...)  a function (N,) -> (N,)
               "binary" 1 where y > 0, else 0

An array of discounts is continued by 0. An array of gains is indexed by whole grades.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankopt.errors import MeasureError
from rankopt.measures.segments import Floats

DiscountName = Literal["log2", "letor"]
GainName = Literal["exp2", "linear", "binary"]
Discount: TypeAlias = DiscountName | Sequence[float] | NDArray[Any] | Callable[[int], ArrayLike]
Gain: TypeAlias = GainName | Sequence[float] | NDArray[Any] | Callable[[NDArray[Any]], ArrayLike]
"""What a user may give as one."""


def discount_form(form: Any) -> Any:
    """The form as a measure keeps it: None, name, tuple of floats or function."""
    return _form("discount", form, get_args(DiscountName), falling=True)


def gain_form(form: Any) -> Any:
    """The form as a measure keeps it: None, name, tuple of floats or function."""
    return _form("gain", form, get_args(GainName), falling=False)


def _form(what: str, form: Any, names: tuple[str, ...], *, falling: bool) -> Any:
    if form is None or callable(form) or (isinstance(form, str) and form in names):
        return form
    if isinstance(form, str):
        raise MeasureError(
            f"There is no {what} {form!r}; name one of {', '.join(names)}, or give numbers or a function."
        )
    try:
        table = np.asarray(form, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.zeros((0, 0))
    if table.ndim != 1 or table.size == 0 or not np.all(np.isfinite(table)) or np.any(table < 0):
        raise MeasureError(
            f"A {what} cannot be {form!r}; give finite numbers >= 0, one of {', '.join(names)}, or a function."
        )
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
        weights[:k] = _called("discount", form, n, (n,))[:k]
        if np.any(np.diff(weights) > 0):
            raise MeasureError(f"The discount of {n} positions increases; order the weights, largest first.")
    return weights


def gain_of(form: str | tuple[float, ...] | Callable[[Floats], Floats], relevance: Floats) -> Floats:
    """Document weights (N,) of grades (N,). MeasureError for grades without a gain."""
    if callable(form):
        gain = _called("gain", form, relevance, relevance.shape)
        order = np.argsort(relevance, kind="stable")
        equal_or_more = np.diff(gain[order])
        same = np.diff(relevance[order]) == 0
        if np.any(equal_or_more < 0) or np.any(equal_or_more[same] != 0):
            raise MeasureError(
                "The gain function must give equal grades equal gains and higher grades no less; mend it."
            )
        return gain
    if np.any(relevance < 0):
        raise MeasureError(
            f"DCG cannot use the grade {relevance.min():g} because gains are not negative; "
            "say what unjudged documents count when reading the data."
        )
    if form == "linear":
        return relevance
    if form == "binary":
        return (relevance > 0).astype(np.float64)
    if form == "exp2":
        with np.errstate(over="ignore"):
            gain = np.exp2(relevance) - 1
        if not np.all(np.isfinite(gain)):
            raise MeasureError(
                f"2^y - 1 overflows for the grade {relevance.max():g}; use gain='linear' or smaller grades."
            )
        return gain
    index = relevance.astype(np.int64)
    if np.any(index != relevance) or np.any(index >= len(form)):
        wrong = relevance[(index != relevance) | (index >= len(form))][0]
        raise MeasureError(
            f"The gains {form!r} have no entry for the grade {wrong:g}; list one gain a grade 0, 1, ...."
        )
    return np.asarray(form, dtype=np.float64)[index]


def _called(what: str, function: Any, argument: Any, shape: tuple[int, ...]) -> Floats:
    result = np.asarray(function(argument), dtype=np.float64)
    if result.shape != shape or not np.all(np.isfinite(result)) or np.any(result < 0):
        raise MeasureError(
            f"The {what} function {getattr(function, '__qualname__', function)!r} must return {shape[0]} finite "
            f"numbers >= 0; it returned shape {result.shape}."
        )
    return result
