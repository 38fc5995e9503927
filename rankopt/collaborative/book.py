"""A book of numbers, each of which stands there once, and the pages at which given ones stand: codes of two bytes."""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, INTS, READ_FLOATS, compiled

__all__ = ["CODES", "PAGES", "READ_CODES", "encode_values"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.uint16]

CODES = nb.types.Array(nb.uint16, 1, "C")
READ_CODES = nb.types.Array(nb.uint16, 1, "C", readonly=True)

PAGES = 1 << 16
"""Numbers that a book holds at most."""

LARGE = nb.uint64(0x9E3779B97F4A7C15)


def encode_values(book: Floats, values: Floats) -> tuple[Codes | None, Floats]:
    """The page of each value, and the book with those that it lacked behind the others; None where it is full."""
    pages = np.empty(PAGES)
    pages[: book.size] = book
    codes = np.empty(values.size, dtype=np.uint16)
    held = _entered(np.ascontiguousarray(values), pages, book.size, codes)
    return (None, book) if held < 0 else (codes, pages[:held].copy())


@compiled(nb.void(FLOATS, nb.int64, INTS))
def _indexed(pages: Floats, held: int, table: Ints) -> None:
    """table[slot]: the page that stands there, -1 for none; a power of 2 of slots."""
    bits, size = pages.view(np.int64), nb.uint64(table.size)
    table[:] = -1
    for page in range(held):
        slot = nb.int64(((nb.uint64(bits[page]) * LARGE) >> nb.uint64(32)) * size >> nb.uint64(32))
        while table[slot] >= 0:
            slot = (slot + 1) & (table.size - 1)
        table[slot] = page


@compiled(nb.int64(READ_FLOATS, FLOATS, nb.int64, CODES))
def _entered(values: Floats, pages: Floats, held: int, codes: Codes) -> int:
    """Codes of the values, new ones written into the pages behind the first `held`; how many there are then, -1 where
    they are full. Values are told apart by their bits."""
    size = 1 << 10
    while size < 2 * held:
        size *= 2
    table = np.empty(size, np.int64)
    _indexed(pages, held, table)
    bits, known = values.view(np.int64), pages.view(np.int64)
    for e in range(values.size):
        own = bits[e]
        slot = nb.int64(((nb.uint64(own) * LARGE) >> nb.uint64(32)) * nb.uint64(size) >> nb.uint64(32))
        while table[slot] >= 0 and known[table[slot]] != own:
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            if held == pages.size:
                return -1
            pages[held] = values[e]
            table[slot] = held
            codes[e] = held
            held += 1
            if 2 * held > size:
                size *= 2
                table = np.empty(size, np.int64)
                _indexed(pages, held, table)
        else:
            codes[e] = table[slot]
    return held
