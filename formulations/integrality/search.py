"""The search for a submatrix whose determinant is not -1, 0 or 1, the surest ways first."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array

from formulations.integrality.bipartite import odd_cycle
from formulations.integrality.evidence import Proof, Signings, Signs, Undecided
from formulations.integrality.fractional import costs, random_polyhedron
from formulations.integrality.ghouila_houri import MOST_ROWS, enumerated
from formulations.integrality.minimal_submatrix import shrunk
from formulations.integrality.proving import Remainder, prove
from formulations.integrality.statement import Statement
from formulations.integrality.unproved_part import narrowed
from formulations.integrality.witness import Violator

__all__ = ["searched"]

OBJECTIVES = 24
POLYHEDRA = 12
NARROWINGS = 4

Way: TypeAlias = Callable[[csr_array, np.random.Generator, int], Violator | None]


def searched(
    statement: Statement, blocks: Remainder, rng: np.random.Generator, effort: int
) -> Violator | Proof | Undecided:
    """A submatrix that refutes; else a proof that splits 2-sums; else what was tried."""
    found = _in_blocks(statement, blocks, (_exactly, _by_vertices), rng, effort)
    if found is not None:
        return found
    rest = prove(statement.matrix, thorough=True)
    if isinstance(rest, Proof):
        return rest
    return _in_blocks(statement, rest, (_exactly, _by_vertices, _by_narrowing), rng, effort) or Undecided(
        (
            "quick proofs: bipartite, interval, laminar, network, enumeration",
            "the same of the parts of 2-sums",
            "two entries a line, or ten lines",
            f"vertices of {POLYHEDRA * effort} random polyhedra, {OBJECTIVES} objectives each",
            f"{NARROWINGS * effort} narrowings to parts without a quick proof",
        )
    )


def _in_blocks(
    statement: Statement, blocks: Remainder, ways: tuple[Way, ...], rng: np.random.Generator, effort: int
) -> Violator | None:
    lines = [(np.array(rows), np.array(columns)) for rows, columns in blocks]
    parts = [statement.matrix[rows][:, columns] for rows, columns in lines]
    for way in ways:
        for (rows, columns), part in zip(lines, parts, strict=True):
            found = way(part, rng, effort)
            if found is not None:
                return Violator(rows[found.rows].tolist(), columns[found.columns].tolist(), found.minimal)
    return None


def _exactly(part: csr_array, rng: np.random.Generator, effort: int) -> Violator | None:
    """Blocks of which every one is decided: no quick proof holds, so they have a witness."""
    for turned in (False, True):
        matrix = csr_array(part.T) if turned else part
        found = odd_cycle(matrix)
        if found is None and matrix.shape[0] <= MOST_ROWS:
            listed = enumerated(_signs(matrix))
            found = None if isinstance(listed, Signings) else listed
        if found is not None:
            rows, columns = found[::-1] if turned else found
            return Violator(rows, columns, True)
    return None


def _by_vertices(part: csr_array, rng: np.random.Generator, effort: int) -> Violator | None:
    matrix = part.astype(np.float64)
    for _ in range(POLYHEDRA * effort):
        polyhedron = random_polyhedron(matrix, rng)
        for cost in costs(part.shape[1], OBJECTIVES, rng):
            x = polyhedron.vertex(cost)
            square = None if x is None else polyhedron.square(x)
            if square is not None:
                return Violator(*shrunk(_signs(part), square.rows, square.columns))
    return None


def _by_narrowing(part: csr_array, rng: np.random.Generator, effort: int) -> Violator | None:
    signs = _signs(part)
    for _ in range(NARROWINGS * effort):
        rows, columns = narrowed(signs, rng)
        smaller = csr_array(signs[np.ix_(rows, columns)])
        found = _exactly(smaller, rng, effort) or _by_vertices(smaller, rng, effort)
        if found is not None:
            return Violator(rows[found.rows].tolist(), columns[found.columns].tolist(), found.minimal)
    return None


def _signs(part: csr_array) -> Signs:
    """The matrix written out."""
    return np.asarray(part.toarray(), dtype=np.int8)
