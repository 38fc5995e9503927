"""Compiled kernels: one way to declare them, and the types of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba as nb

__all__ = ["BYTES", "FLOATS", "INTS", "READ_FLOATS", "READ_INTS", "READ_SHORTS", "SHORTS", "compiled"]

FLOATS = nb.types.Array(nb.float64, 1, "C")
INTS = nb.types.Array(nb.int64, 1, "C")
READ_FLOATS = nb.types.Array(nb.float64, 1, "C", readonly=True)
READ_INTS = nb.types.Array(nb.int64, 1, "C", readonly=True)
SHORTS = nb.types.Array(nb.int32, 1, "C")
READ_SHORTS = nb.types.Array(nb.int32, 1, "C", readonly=True)
BYTES = nb.types.Array(nb.int8, 1, "C")
"""Contiguous vectors that a kernel writes, and ones that it only reads."""

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(signature: Any, reassociate: bool = False) -> Callable[[Kernel], Kernel]:
    """Compile a function for this signature (or list of them) when its module is loaded; keep the code on disk.

    It runs without the lock of the interpreter, so `formulations.threads.share` can run parts of a job side by side.
    reassociate: sums may be taken in another order, one that depends on their length alone, which makes them fast.

    Where no folder can be written to (a read-only install and home), it is compiled anew in every process.
    """

    fastmath = {"reassoc", "contract", "nsz"} if reassociate else False

    def compile_(function: Kernel) -> Kernel:
        try:
            return cast(Kernel, nb.njit(signature, cache=True, nogil=True, fastmath=fastmath)(function))
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            return cast(Kernel, nb.njit(signature, nogil=True, fastmath=fastmath)(function))

    return compile_
