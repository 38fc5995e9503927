"""Position weights: one number a position, non-increasing; an array, or a function of the number of documents."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Floats, Ints, frozen
from formulations.errors import InvalidProblem

__all__ = ["Weights", "laid_out", "non_increasing", "weights_for"]

Weights = Floats | Callable[[int], Floats]
"""Position weights: an array (zero beyond its end), or a function from the number of documents to one."""


def non_increasing(name: str, weights: Floats) -> None:
    """Raise `InvalidProblem` where a weight is above the one before it."""
    if (np.diff(weights) > 0).any():
        place = int(np.flatnonzero(np.diff(weights) > 0)[0])
        raise InvalidProblem(
            f"{name}[{place + 1}] = {weights[place + 1]} is above {name}[{place}] = {weights[place]}: "
            "position weights must not increase"
        )


def weights_for(weights: ArrayLike | Weights, n: int) -> Floats:
    """The weights given for n documents, at most n of them."""
    said = weights(n) if callable(weights) else weights
    try:
        given = np.asarray(said, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidProblem(
            f"position weights cannot be read as numbers: {error}; give an array, or a function from the number of "
            "documents to one"
        ) from None
    if given.ndim != 1:
        raise InvalidProblem(f"position weights have shape {given.shape}, but need one dimension")
    return given[:n]


def laid_out(weights: ArrayLike | Weights, offsets: Ints) -> Floats:
    """Position weights laid out flat: for each query the first n entries, zero beyond the end of the array."""
    sizes = np.diff(offsets)
    table: dict[int, Floats] = {}
    for n in np.unique(sizes).tolist():
        given = weights_for(weights, n)
        table[n] = np.pad(given, (0, n - given.size))
    return frozen(np.concatenate([table[n] for n in sizes.tolist()]))
