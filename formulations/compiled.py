"""Compiled kernels: one way to declare them, typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba as nb

__all__ = ["compiled"]

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(signature: Any) -> Callable[[Kernel], Kernel]:
    """Compile a function for this one signature when its module is loaded, and keep the machine code on disk."""
    return cast(Callable[[Kernel], Kernel], nb.njit(signature, cache=True))
