"""Random draws whose generator is plain data, so that a run taken up again draws what it would have drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["generator_of", "permuted"]


def generator_of(seed: int) -> dict[str, Any]:
    """The state of a new generator."""
    return dict(np.random.PCG64(seed).state)


def permuted(size: int, generator: dict[str, Any]) -> tuple[NDArray[np.int64], dict[str, Any]]:
    """The numbers below `size` in random order, and the state of the generator after that."""
    bits: Any = np.random.PCG64()
    bits.state = generator
    return np.random.Generator(bits).permutation(size), dict(bits.state)
