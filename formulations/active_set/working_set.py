"""Which planes carry weight, and the moves among them.

In every group one plane with weight is its base; the others are open, and open plane i moves weight between itself and
its base: a direction with the row slopes[i] - slopes[base]. These rows are kept independent, so that there is one best
point for the open planes; at an optimum of many groups most have a base only. Plane m + g, after the m planes, is the
zero plane of group g: its weight is what the group leaves unused.
"""

from typing import NamedTuple

import numba as nb
import numpy as np

from formulations.active_set.cholesky import MATRIX
from formulations.arrays import Floats, Ints
from formulations.compiled import FLOATS, INTS, READ_FLOATS, READ_INTS, compiled

__all__ = ["MARGIN_DUAL", "WORKING", "MarginDual", "WorkingSet", "combined", "difference", "group_of", "height"]


class MarginDual(NamedTuple):
    """The data of a margin dual; groups[offsets[g]:offsets[g + 1]] are the planes of group g."""

    slopes: Floats
    values: Floats
    group: Ints
    capacity: Floats
    lam: float
    groups: Ints
    offsets: Ints


class WorkingSet(NamedTuple):
    """A point and its open planes: weights (m + G), base of each group, the planes that are open or wait to be, the
    rows and factor of those open, v = slopesᵀ weights, room for vectors, and counts (open, waiting, and
    changes of the factor since it was made)."""

    weights: Floats
    base: Ints
    open: Ints
    waiting: Ints
    rows: Floats
    factor: Floats
    v: Floats
    fresh: Floats
    mix: Floats
    shift: Floats
    counts: Ints


READ_MATRIX = nb.types.Array(nb.float64, 2, "C", readonly=True)
MARGIN_DUAL = nb.types.NamedTuple(
    (READ_MATRIX, READ_FLOATS, READ_INTS, READ_FLOATS, nb.float64, READ_INTS, READ_INTS), MarginDual
)
WORKING = nb.types.NamedTuple(
    (FLOATS, INTS, INTS, INTS, MATRIX, MATRIX, FLOATS, FLOATS, FLOATS, FLOATS, INTS), WorkingSet
)


@compiled(nb.int64(MARGIN_DUAL, nb.int64))
def group_of(program: MarginDual, plane: int) -> int:
    planes = program.values.size
    return plane - planes if plane >= planes else program.group[plane]


@compiled(nb.float64(MARGIN_DUAL, nb.int64))
def height(program: MarginDual, plane: int) -> float:
    return 0.0 if plane >= program.values.size else program.values[plane]


@compiled(nb.void(MARGIN_DUAL, nb.int64, nb.int64, FLOATS))
def difference(program: MarginDual, plane: int, base: int, row: Floats) -> None:
    """Write slopes[plane] - slopes[base] to row."""
    planes = program.values.size
    for j in range(row.size):  # an expression of arrays would take seconds to compile
        own = program.slopes[plane, j] if plane < planes else 0.0
        row[j] = own - program.slopes[base, j] if base < planes else own


def _combined(program: MarginDual, working: WorkingSet) -> None:
    planes, weights = program.values.size, working.weights
    total = weights[planes:] + np.bincount(program.group, weights[:planes], program.capacity.size)
    factor = program.capacity / total
    weights[planes:] *= factor
    weights[:planes] *= factor[program.group]
    working.v[:] = weights[:planes] @ program.slopes


@compiled(nb.void(MARGIN_DUAL, WORKING), numpy=_combined)
def combined(program: MarginDual, working: WorkingSet) -> None:
    """Make each group's weights sum to its capacity again, and v what they give."""
    planes, weights = program.values.size, working.weights
    working.v[:] = 0.0
    for g in range(program.capacity.size):
        total = weights[planes + g]
        for at in range(program.offsets[g], program.offsets[g + 1]):
            total += weights[program.groups[at]]
        factor = program.capacity[g] / total
        weights[planes + g] *= factor
        for at in range(program.offsets[g], program.offsets[g + 1]):
            i = program.groups[at]
            if weights[i] > 0.0:
                weights[i] *= factor
                for j in range(working.v.size):
                    working.v[j] += weights[i] * program.slopes[i, j]
