"""The argmax of a pattern problem by its whole lattice, by whole arrays: nothing is compiled."""

from __future__ import annotations

from formulations.arrays import Ints
from formulations.forms.pattern_ranking import PatternBatch

__all__ = ["search_lattices"]


def search_lattices(batch: PatternBatch, queries: Ints, order: Ints) -> None:
    """Fill the order of these queries. Raises `Unsupported` for a lattice of too many states."""
    for query in queries.tolist():
        problem = batch[query]
        lattice = problem.lattice()
        path = lattice.levels.path(lattice.edges, lattice.potentials)
        order[batch.offsets[query] : batch.offsets[query + 1]] = problem.chains.order(path)
