"""What a caller may give where a list or an array is wanted, as types that no text satisfies.

`str` is a sequence of `str`, so that `Iterable[Hashable]` takes "abc" for the labels a, b, c: a slip that no type
checker would find. None of these types takes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Item = TypeVar("Item", covariant=True)

Whole: TypeAlias = int | np.integer[Any]
"""A whole number, numpy's included."""

Share: TypeAlias = float | np.floating[Any] | Fraction
"""A part of a whole, from 0 to 1."""


class SupportsArray(Protocol):
    """What numpy reads as an array: arrays, columns and frames of pandas and polars, tensors of torch."""

    def __array__(self) -> NDArray[Any]: ...


class Sparse(Protocol):
    """A matrix or array of scipy.sparse."""

    def tocsr(self) -> Any: ...


class NonTextSequence(Protocol[Item]):
    """Items one after the other: lists, tuples, sets, arrays, columns of frames, but no text, in which only text can
    be."""

    def __contains__(self, item: object, /) -> bool: ...

    def __iter__(self) -> Iterator[Item]: ...

    def __len__(self) -> int: ...
