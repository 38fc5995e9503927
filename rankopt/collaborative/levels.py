"""Ratings as codes: there are few different ones, so one byte or two say which a rating is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.book import encode_values

__all__ = ["EncodedValues"]

Floats = NDArray[np.float64]

BYTE = 1 << 8
"""Numbers that one byte tells apart."""


@dataclass(frozen=True, eq=False)
class EncodedValues:
    """(ratings,) numbers, to the bit: `book[codes]`, or `codes` themselves where no book holds them all.

    What is asked of an index or of places is told as floats of the moment.
    """

    codes: NDArray[Any]
    book: Floats

    @classmethod
    def of(cls, values: Floats) -> EncodedValues:
        codes, book = encode_values(np.zeros(0), values)
        if codes is None:
            return cls(values, np.zeros(0))
        return cls(codes.astype(np.uint8) if book.size <= BYTE else codes, book)

    @property
    def size(self) -> int:
        return self.codes.size

    def __getitem__(self, places: Any) -> Floats:
        found = self.codes[places]
        return np.asarray(self.book[found] if self.book.size else found, dtype=np.float64)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self[:], dtype=dtype, copy=copy is not False)

    def kept(self, places: NDArray[Any]) -> EncodedValues:
        """Those at these places, or where a mask holds, as codes."""
        return EncodedValues(self.codes[places], self.book)
