"""Slopes of planes as codes: a list has few places, so two bytes say which slope a rating has.

The slope of a rating is v (placed - reference), `placed` what its place weighs. A book holds the numbers that occur in
a shard, once each, and a code is a page of it; what is read is to the bit what was written.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.book import encode_values

__all__ = ["QuantizedSlopes"]

Floats = NDArray[np.float64]
Codes = NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class QuantizedSlopes:
    """book[placed] - book[reference] of each rating, (ratings,) codes."""

    placed: Codes
    reference: Codes
    book: Floats

    @classmethod
    def of(cls, placed: Floats, reference: Floats) -> QuantizedSlopes | None:
        """None where there are more numbers than pages."""
        codes, book = encode_values(np.zeros(0), placed)
        if codes is None:
            return None
        others, book = encode_values(book, reference)
        return None if others is None else cls(codes, others, book)

    def plain(self) -> Floats:
        """(ratings,) the slopes of users who count once."""
        return np.asarray(self.book[self.placed] - self.book[self.reference])

    def under(self, book: Floats) -> tuple[QuantizedSlopes | None, Floats]:
        """The same by a book that begins with this one, and that book; None where it would be too long."""
        pages, book = encode_values(book, self.book)
        if pages is None:
            return None, book
        return QuantizedSlopes(pages[self.placed], pages[self.reference], book), book
