"""A claim that limits on prefixes over disjoint groups are whole for this objective, checked on the numbers alone.

Nothing here knows how the claim was found: every row and every profit is read again, in whole numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from formulations.arrays import Ints
from formulations.errors import Refuted
from formulations.integrality.evidence import PrefixGroups
from formulations.integrality.readable import indices, is_whole
from formulations.integrality.statement import Statement
from formulations.notation.program import Program

__all__ = ["confirm_prefix_groups"]


def confirm_prefix_groups(statement: Statement, evidence: PrefixGroups) -> None:
    """Raise `Refuted` where the hypotheses of the theorem do not hold (`prefix_groups`)."""
    program = statement.program
    if program is None or not program.objective.any():
        raise Refuted("a matrix or a set alone has no objective, and it is of its objective that the proof speaks")
    k = evidence.positions
    cells = statement.matrix.shape[1]
    if not is_whole(k) or k < 1 or cells % k or cells // k < k:
        raise Refuted(f"{cells} columns are not the cells of {k!r} positions and as many documents or more")
    n = cells // k
    if (program.lower != 0).any() or (program.upper != 1).any():
        raise Refuted("a cell has limits other than 0 and 1")
    group = indices(evidence.group, n, "the group of each document")
    order = indices(evidence.order, n, "the order of the documents")
    if group.shape != (n,) or order.shape != (n,) or np.unique(order).size != n:
        raise Refuted(f"the proof does not name each of {n} documents once")
    _check_rows(statement.matrix, program, group, k, n)
    _check_profits(program, group, order, k, n)


def _check_rows(matrix: csr_array, program: Program, group: Ints, k: int, n: int) -> None:
    """Each row is one of those that the theorem allows; every position is filled, no document placed twice."""
    members = {int(label): frozenset(np.flatnonzero(group == label).tolist()) for label in np.unique(group)}
    filled, once = set[int](), set[int]()
    for row, (low, high) in enumerate(zip(program.row_lower.tolist(), program.row_upper.tolist(), strict=True)):
        part = slice(matrix.indptr[row], matrix.indptr[row + 1])
        if (matrix.data[part] != 1).any():
            raise Refuted(f"row {row} has a coefficient other than 1")
        said = {(int(cell) // n, int(cell) % n) for cell in matrix.indices[part]}
        positions, documents = {p for p, _ in said}, frozenset(d for _, d in said)
        if len(said) != len(positions) * len(documents):
            raise Refuted(f"row {row} counts other documents at one position than at another")
        if not said:
            if low > 0 or high < 0:
                raise Refuted(f"row {row} has no cells and cannot hold")
            continue
        if high <= 1 and len(positions) == k:
            once |= documents
        if len(documents) == n:
            if not low <= len(positions) <= high:
                raise Refuted(f"row {row} cannot hold")
            if len(positions) == 1 and low == high == 1:
                filled |= positions
            continue
        if len(documents) == 1 and len(positions) == k and low <= 0 and high == 1:
            continue
        if members[int(group[min(documents)])] != documents:
            raise Refuted(f"row {row} counts no whole group: groups overlap, or are none")
        first, last = min(positions), max(positions)
        together = len(positions) == last - first + 1
        if not together or not (first == 0 or first == last or (last == k - 1 and k == n)):
            raise Refuted(f"row {row} limits positions that are neither a prefix nor one position")
    if len(filled) < k or len(once) < n:
        raise Refuted("a position may stay empty, or a document be placed twice")


def _check_profits(program: Program, group: Ints, order: Ints, k: int, n: int) -> None:
    """In the order claimed no difference of neighbouring positions rises inside a group."""
    sign = 1 if program.maximises else -1
    ratios = [value.as_integer_ratio() for value in program.objective.tolist()]
    shared = max(below for _, below in ratios)
    profit: Any = np.array([sign * above * (shared // below) for above, below in ratios], dtype=object).reshape(k, n)
    rows = list(profit) + ([np.array([0] * n, dtype=object)] if k < n else [])
    for p in range(len(rows) - 1):
        step = (rows[p] - rows[p + 1])[order]
        rising = (step[:-1] < step[1:]) & (group[order][:-1] == group[order][1:])
        if rising.any():
            j = int(rising.argmax())
            raise Refuted(
                f"the profits are of another kind: from position {p} to {p + 1} document {order[j + 1]} loses more "
                f"than document {order[j]} of its group, which is said to come first"
            )
    # A group must come in one piece, or its documents are compared in part only.
    if (np.diff(group[order]) != 0).sum() + 1 != np.unique(group).size:
        raise Refuted("the order does not name group after group")
