"""Quick proofs of total unimodularity, the simplest first, without search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from formulations.arrays import Bools, frozen
from formulations.integrality.checker import HARDNESS, MOST_CELLS, three_sum_parts
from formulations.integrality.decomposition import (
    MOST_ENTRIES,
    Remainder,
    components,
    reduce_matrix,
    separation,
    sign_of_three_sum,
    three_separation,
)
from formulations.integrality.determinant import pivoted
from formulations.integrality.evidence import (
    Evidence,
    Families,
    Part,
    Parts,
    Pivot,
    Proof,
    Signings,
    Signs,
    ThreeSum,
    TwoSum,
)
from formulations.integrality.network import tree_of
from formulations.integrality.recognition import (
    MOST_ROWS,
    consecutive_order,
    enumerate_signings,
    laminar_families,
    row_classes,
)
from formulations.integrality.statement import stated

LARGE = 150
SAMPLE = 40

MOST_MEETINGS = 4 * 10**6  # largest number of pairs of sets that a proof by columns compares


def proof_of(problem: csr_array | ArrayLike | Any) -> Proof | None:
    """A proof that the matrix is totally unimodular, if a quick one exists; None proves nothing."""
    matrix = stated(problem).matrix
    if (np.abs(matrix.data) != 1).any():
        return None
    found = prove(matrix)
    return found if isinstance(found, Proof) else None


def prove(matrix: csr_array, thorough: bool = False) -> Proof | Remainder:
    """A proof for a {0, ±1} matrix, or what remains to be decided. `thorough`: 2- and 3-sums are split."""
    proof = _attempt(matrix, SPARSE)
    if proof is not None:
        return proof
    rows, columns = matrix.shape
    if rows * columns > MOST_CELLS:
        return [(list(range(rows)), list(range(columns)))]
    dense = matrix.toarray().astype(np.int8)
    proof = _attempt(dense, (("interval", consecutive_order),))
    if proof is not None:
        return proof
    return _prove_in_parts(dense, 3 if thorough else 1)


def _prove_in_parts(matrix: Signs, sums: int) -> Proof | Remainder:
    """`sums`: 1, blocks; 3, also 2- and 3-sums are split; 2, 2-sums are, and their parts must be network matrices."""
    removals, rows, columns = reduce_matrix(matrix)
    parts: list[Part] = []
    open_blocks: Remainder = []
    for inner_rows, inner_columns in components(matrix[np.ix_(rows, columns)]):
        if not inner_rows.size or not inner_columns.size:
            continue
        part_rows, part_columns = rows[inner_rows], columns[inner_columns]
        block = matrix[np.ix_(part_rows, part_columns)]
        found = _prove_block(block, sums)
        if isinstance(found, Proof):
            parts.append(Part(frozen(part_rows), frozen(part_columns), found))
        else:
            open_blocks += [(part_rows[rows].tolist(), part_columns[columns].tolist()) for rows, columns in found]
    if open_blocks:
        return open_blocks
    shape = (int(matrix.shape[0]), int(matrix.shape[1]))
    single = parts[0].proof if len(parts) == 1 and not removals else None
    if single is not None and (parts[0].rows.size, parts[0].columns.size) == shape:
        return single
    kind = max((part.proof.kind for part in parts), key=HARDNESS.index, default=HARDNESS[0])
    return Proof(kind, shape, Parts(tuple(removals), tuple(parts)))


def _prove_block(block: Signs, sums: int) -> Proof | Remainder:
    unproved = _unproved_sample(block, sums)
    proof = None if unproved else _attempt(block, DENSE[: -1 if sums == 2 else None])
    if proof is not None:
        return proof
    split = separation(block) if sums > 1 else None
    if split is None:
        small = sums == 3 and np.count_nonzero(block) <= MOST_ENTRIES
        found = three_separation(block, _no_network_matrices) if small else None
        proof = None if found is None else _prove_three_sum(block, *found)
        return proof or [*unproved, (list(range(block.shape[0])), list(range(block.shape[1])))]
    rows, columns, row, column = split
    sides = (
        (rows, np.union1d(columns, column)),
        (np.union1d(np.setdiff1d(np.arange(block.shape[0]), rows), row), np.delete(np.arange(block.shape[1]), columns)),
    )
    first, second = (_prove_in_parts(block[np.ix_(*side)], sums) for side in sides)
    if isinstance(first, Proof) and isinstance(second, Proof):
        return _joined(block, TwoSum(frozen(rows), frozen(columns), row, column, first, second), first, second)
    return [
        (side[0][inner].tolist(), side[1][across].tolist())
        for side, found in zip(sides, (first, second), strict=True)
        if not isinstance(found, Proof)
        for inner, across in found
    ]


def _joined(block: Signs, evidence: Evidence, *proofs: Proof) -> Proof:
    kind = max((proof.kind for proof in proofs), key=HARDNESS.index)
    return Proof(kind, (int(block.shape[0]), int(block.shape[1])), evidence)


def _prove_three_sum(block: Signs, rows: Bools, columns: Bools) -> Proof | None:
    """A proof of both parts of a 3-sum, after a pivot if a corner has rank 2; None if they have none."""
    for side, other in ((rows, ~columns), (~rows, columns)):
        corner = block[np.ix_(side, other)]
        if np.linalg.matrix_rank(corner) == 2:
            inner, across = np.argwhere(corner)[0]
            row, column = int(np.flatnonzero(side)[inner]), int(np.flatnonzero(other)[across])
            turned = pivoted(block, row, column)
            rows, columns = rows.copy(), columns.copy()
            rows[row], columns[column] = columns[column], rows[row]
            proof = None if np.abs(turned).max() > 1 else _prove_three_sum(turned, rows, columns)
            return None if proof is None else _joined(block, Pivot(row, column, proof), proof)
    sign = sign_of_three_sum(block, rows, columns)
    if sign is None:
        return None
    first, second = (_prove_in_parts(part, 3) for part in three_sum_parts(block, rows, columns, sign))
    if not isinstance(first, Proof) or not isinstance(second, Proof):
        return None
    inner, across = (frozen(np.flatnonzero(part)) for part in (rows, columns))
    return _joined(block, ThreeSum(inner, across, sign, first, second), first, second)


def _no_network_matrices(matrix: Signs) -> Remainder:
    """The blocks, after 2-sums are split, that are no network matrices, nor transposes of one."""
    found = _prove_in_parts(matrix, 2)
    return [] if isinstance(found, Proof) else found


def _unproved_sample(block: Signs, sums: int) -> Remainder:
    """What remains of a sample of rows of a large block: if the sample has no quick proof, nor has the block."""
    if block.shape[0] <= LARGE or block.shape[1] <= MOST_ROWS:
        return []
    by_size = np.argsort(-np.count_nonzero(block, axis=1), kind="stable")
    others = by_size[SAMPLE:]
    chosen = np.sort(np.concatenate([by_size[:SAMPLE], others[:: -(-others.size // SAMPLE)]]))
    found = _prove_in_parts(block[chosen], sums)
    return [] if isinstance(found, Proof) else [(chosen[rows].tolist(), columns) for rows, columns in found]


def _attempt(matrix: Any, ways: tuple[tuple[str, Callable[[Any], Evidence | None]], ...]) -> Proof | None:
    """The first of some kinds of proof that holds for the matrix or its transpose."""
    for kind, find in ways:
        for transposed in (False, True):
            meetings = (abs(matrix).sum(axis=1, dtype=np.float64) ** 2).sum()
            if transposed and kind == "laminar" and meetings > MOST_MEETINGS:
                continue
            evidence = find(matrix.T if transposed else matrix)
            if evidence is not None:
                return Proof(kind, (int(matrix.shape[0]), int(matrix.shape[1])), evidence, transposed)
    return None


def _families(matrix: csr_array | Signs) -> Families | None:
    family = laminar_families(matrix)
    return None if family is None else Families(frozen(family))


def _signings(matrix: Signs) -> Signings | None:
    if matrix.shape[0] > MOST_ROWS:
        return None
    found = enumerate_signings(matrix)
    return found if isinstance(found, Signings) else None


SPARSE: tuple[tuple[str, Callable[[Any], Evidence | None]], ...] = (("bipartite", row_classes), ("laminar", _families))
DENSE = (
    ("bipartite", lambda matrix: row_classes(csr_array(matrix))),
    ("interval", consecutive_order),
    ("laminar", _families),
    ("network", tree_of),
    ("enumeration", _signings),
)
