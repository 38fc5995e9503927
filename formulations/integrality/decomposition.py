"""Reductions of a matrix that preserve total unimodularity: series-parallel rows and columns, blocks, 2- and 3-sums.

A row or column with at most one entry, or equal to another one up to sign, changes nothing (one expands the determinant
along it, or finds it 0); nor do blocks that share no rows and columns have more determinants than products of their
own. A matrix of which nothing remains is called series-parallel [Walter and Truemper, 2013].

A 2-sum joins two matrices in one row and one column:

    M = | A  a b |     R₁ rows, C₁ and C₂ columns; a is a column of A's height, b a row of B's width
        | 0   B  |     R₂ rows

M is totally unimodular if and only if [A a] and [b; B] are, which are parts of M itself: R₁ × C₁ + one column c of C₂,
and R₂ + one row r of R₁ × C₂, where M[r, c] = ±1 [Seymour, 1980; Schrijver, Theory of Linear and Integer Programming,
19.4]. To find such R₁ and C₁ fix r, c and let N = M - M[·, c] M[r, ·] / M[r, c]. A row i in R₁ draws all j with
N[i, j] ≠ 0 into C₁, a column j in C₁ all i with M[i, j] ≠ 0 into R₁; so R₁ and C₁ are what some element reaches, and
exist if and only if the graph of these draws, without r and c, is not strongly connected.

A 3-sum joins two matrices in a column and a row on either side:

    M = | A  a b |     is totally unimodular if   | A a a |   and   | ε 0 b |
        | d c  B |                                | c 0 ε |         | d d B |

are, for ε = 1 or -1 [Seymour, 1980; Schrijver, 19.4]. A matrix with blocks of rank 2 and 0 instead of 1 and 1 has this
form after a pivot in the block of rank 2. A totally unimodular matrix without 2-sums that is no network matrix, nor the
transpose of one, is a 5 × 5 matrix (R10) or has the minor R12, a 6 × 6 matrix, and a 3-sum of R12 extends to one of M
[Seymour, 1980]. So we remove rows and columns of M, and of M after a pivot, while a part remains that is neither kind
of network matrix. One of the 3-sums of the last part then extends by the draws above, with one N for each corner.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from formulations.arrays import Bools, Ints, frozen
from formulations.integrality.determinant import pivoted
from formulations.integrality.evidence import Removal, Signs

Remainder: TypeAlias = list[tuple[list[int], list[int]]]
"""Rows and columns of the blocks that no quick proof covers, parts of a block before it."""


def reduce_matrix(matrix: Signs) -> tuple[list[Removal], Ints, Ints]:
    """What is left out, in order, and the rows and columns that remain."""
    removals: list[Removal] = []
    rows, columns = np.arange(matrix.shape[0]), np.arange(matrix.shape[1])
    idle = 0
    axis = 1
    while idle < 2 and rows.size and columns.size:
        current = matrix[np.ix_(rows, columns)]
        lines, names = (current.T, columns) if axis else (current, rows)
        dropped, partner = _spare(lines)
        if dropped.any():
            idle = 0
            removals.append(
                Removal(axis, frozen(names[dropped]), frozen(np.where(partner < 0, -1, names[partner])[dropped]))
            )
            rows, columns = (rows, columns[~dropped]) if axis else (rows[~dropped], columns)
        else:
            idle += 1
        axis = 1 - axis
    return removals, rows, columns


def _spare(lines: NDArray[np.int8]) -> tuple[Bools, Ints]:
    """Which lines have one entry at most or repeat an earlier one up to sign, and which one (-1: none)."""
    count, width = lines.shape
    weights = np.random.default_rng(0).integers(1, 2**40, width).astype(np.float64)
    key = np.abs(lines.astype(np.float64) @ weights)  # integers below 2^53: exact in any order of summation
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    partner = first[group].astype(np.int64)
    twin = lines[partner]
    repeats = (partner != np.arange(count)) & ((lines == twin).all(axis=1) | (lines == -twin).all(axis=1))
    few = np.count_nonzero(lines, axis=1) <= 1
    return few | repeats, np.where(few, -1, partner)


def components(matrix: Signs) -> list[tuple[Ints, Ints]]:
    """Rows and columns of each block."""
    rows, columns = matrix.shape
    held = np.argwhere(matrix)
    graph = csr_array((np.ones(len(held)), (held[:, 0], rows + held[:, 1])), (rows + columns, rows + columns))
    count, label = connected_components(graph, directed=False)
    return [(np.flatnonzero(label[:rows] == block), np.flatnonzero(label[rows:] == block)) for block in range(count)]


MOST_ENTRIES = 5000  # in larger matrices no r, c are tried: each costs a search of the entire graph


def separation(matrix: Signs) -> tuple[Ints, Ints, int, int] | None:
    """R₁, C₁, r and c of a 2-sum; None where the matrix is none, or too large."""
    entries = np.argwhere(matrix)
    if len(entries) > MOST_ENTRIES:
        return None
    height, width = matrix.shape
    held = matrix != 0
    for r, c in entries.tolist():
        drawn = matrix != np.outer(matrix[:, c] * matrix[r, c], matrix[r])
        back = held.copy()
        back[r] = False
        start = np.arange(height) == (r == 0), np.zeros(width, dtype=np.bool_)
        rows, columns = _closure(drawn, back, *start)
        if rows.sum() + columns.sum() == height + width - 2:  # then: what does not draw the start
            rows, columns = (~part for part in _closure(back, drawn, *start))
            rows[r] = columns[c] = False
        if rows.any() or columns.any():
            rows[r] = True
            return np.flatnonzero(rows), np.flatnonzero(columns), r, c
    return None


def _closure(drawn: Bools, back: Bools, rows: Bools, columns: Bools) -> tuple[Bools, Bools]:
    """The smallest sets that contain these rows and columns, all columns `drawn` by rows and all rows by columns."""
    while True:
        more_columns = columns | drawn[rows].any(axis=0)
        more_rows = rows | back[:, more_columns].any(axis=1)
        if (more_rows == rows).all() and (more_columns == columns).all():
            return rows, columns
        rows, columns = more_rows, more_columns


def three_separation(matrix: Signs, unproved: Callable[[Signs], Remainder]) -> tuple[Bools, Bools] | None:
    """R₁ and C₁ of a 3-sum of a matrix without 2-sums that is no network matrix, nor the transpose of one; None for
    matrices that are not totally unimodular. `unproved`: the parts that are none of these."""
    whole, names, rows, columns = _minor(matrix, unproved)
    if rows.size != 6 or columns.size != 6:
        return None
    part = whole[np.ix_(rows, columns)]
    for chosen in combinations(range(11), 6):
        sides = np.split(np.isin(np.arange(12), chosen), 2)
        corners = [part * np.outer(sides[0] == side, sides[1] != side) for side in (True, False)]
        if sum(np.linalg.matrix_rank(corner) for corner in corners) != 2:
            continue
        drawn, back = (_unspanned(whole, corner, rows, columns) for corner in corners)
        own = (
            np.isin(np.arange(n), line[side]) for n, line, side in zip(whole.shape, (rows, columns), sides, strict=True)
        )
        closed = _closure(drawn, back, *own)
        if not closed[0][rows[~sides[0]]].any() and not closed[1][columns[~sides[1]]].any():
            inside = np.isin(np.arange(names.size), names[np.concatenate(closed)])
            return inside[: len(whole)], inside[len(whole) :]
    return None


def sign_of_three_sum(matrix: Signs, rows: Bools, columns: Bools) -> int | None:
    """The sign ε with which both parts of a 3-sum can be totally unimodular; None if neither can. Pivots reduce a
    shortest path of entries of B, from a row where d has an entry to a column where b has one, to the entry ε d b."""
    upper, lower = matrix[np.ix_(rows, ~columns)], matrix[np.ix_(~rows, columns)]
    b, c = (corner[corner.any(axis=1).argmax()] for corner in (upper, lower))
    d = lower[:, c.nonzero()[0][0]] * c[c.nonzero()[0][0]]
    second = matrix[np.ix_(~rows, ~columns)]
    height = len(second)
    graph = csr_array(np.block([[np.zeros((height, height)), second], [second.T, np.zeros((second.shape[1],) * 2)]]))
    distance, before, _ = dijkstra(
        graph != 0, unweighted=True, indices=np.flatnonzero(d), min_only=True, return_predecessors=True
    )
    ends = np.flatnonzero(b) + height
    path = [int(ends[distance[ends].argmin()])]
    if not np.isfinite(distance[path[0]]):
        return None
    while before[path[-1]] >= 0:
        path.append(int(before[path[-1]]))
    along, across = path[::-1][::2], [column - height for column in path[::2]]
    reduced = np.linalg.det(second[np.ix_(along, [across[0], *across[:0:-1]])])
    if len(along) > 1:
        reduced /= np.linalg.det(second[np.ix_(along[1:], across[:0:-1])])
    sign = round(reduced) * int(d[along[0]]) * int(b[across[0]])
    return sign if abs(sign) == 1 else None


def _unspanned(whole: Signs, corner: Signs, rows: Ints, columns: Ints) -> Bools:
    """Where a matrix is not the combination of a basis of rows and columns of one corner of a part of it."""
    size = int(np.linalg.matrix_rank(corner))
    for r in combinations(range(len(rows)), size):
        for c in combinations(range(len(columns)), size):
            if not size or np.linalg.det(corner[np.ix_(r, c)]):
                basis = np.linalg.inv(corner[np.ix_(r, c)])
                spanned = whole[:, columns[list(c)]] @ basis @ whole[rows[list(r)]]
                return np.asarray(np.abs(whole - spanned) > 0.5)
    raise AssertionError("a matrix of this rank has such a basis")


def _minor(matrix: Signs, unproved: Callable[[Signs], Remainder]) -> tuple[Signs, Ints, Ints, Ints]:
    """The matrix after some pivots; which line of `matrix` each of its lines is (columns are counted after the rows);
    and rows and columns of a part without a quick proof: all minors of the part have one, or it has 12 lines."""
    height = len(matrix)
    whole, names = matrix, np.arange(sum(matrix.shape))
    held = names
    rng = np.random.default_rng(0)
    width = held.size // 2
    while held.size > 12:
        chunks = np.array_split(rng.permutation(held), -(-held.size // width))
        smaller = next(filter(len, (_largest(whole, np.setdiff1d(held, chunk), unproved) for chunk in chunks)), None)
        if smaller is None and width == 1:
            for line in held.tolist():
                turned, order, other = _exchanged(whole, names, held, line)
                left = _largest(turned, np.setdiff1d(held, other), unproved)
                if left.size and np.abs(turned).max() == 1:
                    whole, names, smaller = turned, order, left
                    break
            else:
                break
        held = held if smaller is None else smaller
        width = max(1, min(width if smaller is not None else width // 2, held.size // 2))
    return whole, names, held[held < height], held[held >= height] - height


def _largest(whole: Signs, lines: Ints, unproved: Callable[[Signs], Remainder]) -> Ints:
    """The largest block without a quick proof in these rows and columns, none if all have one."""
    rows, columns = lines[lines < len(whole)], lines[lines >= len(whole)] - len(whole)
    blocks = unproved(whole[np.ix_(rows, columns)]) if rows.size and columns.size else []
    if not blocks:
        return lines[:0]
    inner, across = max(blocks, key=lambda block: len(block[0]) + len(block[1]))
    return np.concatenate([rows[inner], columns[across] + len(whole)])


def _exchanged(whole: Signs, names: Ints, held: Ints, line: int) -> tuple[Signs, Ints, int]:
    """The matrix and its names after a pivot within the part on an entry of a line, and the line that it now is."""
    rows, columns = held[held < len(whole)], held[held >= len(whole)] - len(whole)
    if line < len(whole):
        row, column = line, int(columns[whole[line, columns].nonzero()[0][0]])
    else:
        row, column = int(rows[whole[rows, line - len(whole)].nonzero()[0][0]]), line - len(whole)
    ends = [row, column + len(whole)]
    order = names.copy()
    order[ends] = names[ends[::-1]]
    return pivoted(whole, row, column), order, sum(ends) - line
