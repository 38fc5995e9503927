"""Compiled kernels: one way to declare them, and the types of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
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

    signatures = signature if isinstance(signature, list) else [signature]
    fastmath = {"reassoc", "contract", "nsz"} if reassociate else False

    def compile_(function: Kernel) -> Kernel:
        kernel = nb.njit(nogil=True, fastmath=fastmath, no_cfunc_wrapper=True)(function)
        kernel.content = content = _content(function)
        try:
            kernel.enable_caching()
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
        else:
            # Numba keeps code until the date of the function's file changes: too long where what it calls has changed,
            # and not long enough where the same version is installed again.
            kernel._cache._cache_file._source_stamp = content
        for one in signatures:
            kernel.compile(one)
        kernel.disable_compile()
        return cast(Kernel, kernel)

    return compile_


def _content(function: Callable[..., Any]) -> str:
    """A digest of what a kernel is made of: its file, and the kernels and constants that it uses, wherever they are."""
    used = [function.__globals__.get(name) for name in function.__code__.co_names]
    parts = [getattr(value, "content", None) or repr(value) for value in used if not isinstance(value, ModuleType)]
    return blake2b("\0".join([_source(function.__code__.co_filename), *parts]).encode()).hexdigest()


@lru_cache
def _source(path: str) -> str:
    return Path(path).read_text(encoding="utf-8") if Path(path).is_file() else ""
