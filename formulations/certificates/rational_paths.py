"""Value and bound of a path, or of an order by its pattern, in rational arithmetic.

The potentials are the lengths of longest paths from the first state, in rational numbers too, and every edge is held
against them: an optimal path has the gap 0, not nearly so.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats
from formulations.certificates.rational_programs import Evidence
from formulations.errors import Unsupported
from formulations.forms.lattice_levels import LatticeLevels, farthest
from formulations.forms.lattice_path import LatticePath
from formulations.forms.pattern_edges import edges_of
from formulations.forms.pattern_exact import exact_value, rational_array
from formulations.forms.pattern_ranking import PatternRanking

__all__ = ["MOST_RATIONAL", "patterned", "walked"]

MOST_RATIONAL = 1 << 16
"""States of a lattice that is walked in rational numbers, at most."""


def walked(problem: LatticePath, x: NDArray[Any], y: Floats | None) -> Evidence:
    edges = rational_array(problem.edges)
    chain = np.asarray(x, dtype=np.int64)
    passed = np.concatenate([[0], np.cumsum(problem.levels.strides[chain])[:-1]])
    constant = Fraction(problem.constant)
    value = sum(edges[chain, passed].tolist(), constant)
    return Evidence(Fraction(0), value, _best_bound(edges, problem.levels, y) + constant)


def patterned(problem: PatternRanking, x: NDArray[Any], y: Floats | None) -> Evidence:
    """The value by the definition, from the order alone; the bound from the lattice, its edges worked out anew."""
    order = np.asarray(x, dtype=np.int64)
    if problem.chains.states > MOST_RATIONAL:
        raise Unsupported(
            f"{problem.extent} are more than the {MOST_RATIONAL} that are walked in rational numbers; certify it with "
            "exact=False"
        )
    lengths = problem.chains.lengths
    edges = edges_of(problem.chains, problem.map, problem.earnings, rational_array)
    bound = _best_bound(edges.reshape(len(lengths), -1), LatticeLevels(lengths), y)
    constant = Fraction(float(problem.earnings.constant[0]))
    return Evidence(
        Fraction(0), exact_value(problem.scores, problem.grade, problem.map, problem.earnings, order), bound + constant
    )


def _best_bound(edges: NDArray[Any], levels: LatticeLevels, y: Floats | None) -> Fraction:
    """The better of what potentials of our own prove, and the given ones."""
    own = _bound(edges, levels, farthest(edges, levels))
    given = y is not None and y.shape == (edges.shape[1],)  # none where a bound without potentials was enough
    return min(own, _bound(edges, levels, rational_array(y))) if given else own


def _bound(edges: NDArray[Any], levels: LatticeLevels, potential: NDArray[Any]) -> Fraction:
    """How far the potentials rise, and at each level the most by which an edge earns more than they rise along it."""
    total = potential[-1] - potential[0]
    for states in levels.states[:-1]:
        over = []
        for chain, stride in enumerate(levels.strides.tolist()):
            tail = states[levels.there[chain, states]]
            over += (edges[chain, tail] - potential[tail + stride] + potential[tail]).tolist()
        total += max(over)
    return Fraction(total)
