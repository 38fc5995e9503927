"""Matching: place documents by any benefit of standing at a position.

sets         positions i < k, documents j < n, the cells (i, j) that are allowed
variables    π[i, j] = 1 where document j stands at position i
maximise     Σ benefit[i, j] π[i, j]                                                          [ORM, section 7.3]
subject to   position   each position holds one document
             document   each document stands at one position at most
integrality  totally unimodular: the incidence matrix of a bipartite graph

A position need not be a place in a list: it may be a slot for a topic, or the other side of a matching.

>>> from formulations import solve
>>> benefit = [[3.0, 2.0, 9.0], [2.0, 1.0, 8.5]]
>>> solve(matching(benefit), "scipy").order
array([0, 2])
>>> solve(matching(benefit, allowed=[[True, True, True], [True, True, False]]), "scipy").order
array([2, 0])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import finite
from formulations.errors import InvalidProblem
from formulations.forms.assignment import Assignment

__all__ = ["matching"]


def matching(benefit: ArrayLike, *, allowed: ArrayLike | None = None) -> Assignment:
    """The best placing of k of n documents.

    Args:
        benefit: (k, n), a row a position, a column a document; the unit is the caller's.
        allowed: (k, n) booleans, False where a document must not stand. Everything is allowed by default.

    Raises:
        InvalidProblem: a benefit is NaN or infinite (forbid a cell by `allowed`), or shapes do not fit.
        Infeasible: k > n, or some positions share too few allowed documents; names them.
    """
    if np.isneginf(np.asarray(benefit, dtype=np.float64)).any():
        raise InvalidProblem("benefit holds -inf, which is no number to add up: forbid cells by `allowed`")
    return Assignment(finite("benefit", benefit, 2), None if allowed is None else np.asarray(allowed))
