"""Types of array and sequence arguments that exclude `str`.

`str` is a sequence of `str`, so `Iterable[Hashable]` accepts "abc" for the labels a, b, c.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Item = TypeVar("Item", covariant=True)

Integer: TypeAlias = int | np.integer[Any]  # an integer, including those of numpy

Share: TypeAlias = float | np.floating[Any] | Fraction  # A fraction from 0 to 1


class SupportsArray(Protocol):
    """Objects that numpy reads as an array: arrays, columns and frames of pandas and polars, tensors of torch."""

    def __array__(self) -> NDArray[Any]: ...


class Sparse(Protocol):
    """A matrix or array of scipy.sparse."""

    def tocsr(self) -> Any: ...


class NonTextSequence(Protocol[Item]):
    """An iterable of items that is not a string: list, tuple, set, array, column of a data frame."""

    def __contains__(self, item: object, /) -> bool: ...

    def __iter__(self) -> Iterator[Item]: ...

    def __len__(self) -> int: ...
