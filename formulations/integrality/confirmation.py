"""Evidence checked against the matrix alone: nothing here knows how it was found.

Every claim is recomputed, in integers. What is false raises `Refuted` and says where.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csc_array, csr_array
from scipy.sparse.csgraph import connected_components

from formulations.arrays import Ints
from formulations.errors import Refuted
from formulations.integrality.confirmation_of_prefixes import confirm_prefix_groups
from formulations.integrality.confirmation_of_witness import confirm_witness
from formulations.integrality.evidence import (
    Colouring,
    Families,
    Part,
    Parts,
    PrefixGroups,
    Proof,
    Removal,
    RowOrder,
    Signings,
    Tree,
    TwoSum,
    Undecided,
    Witness,
)
from formulations.integrality.readable import flag, indices, is_whole, items, one_of, record, whole_array
from formulations.integrality.statement import stated

__all__ = ["confirm"]

KINDS = {
    Colouring: "bipartite", RowOrder: "interval", Families: "laminar", Tree: "network", Signings: "enumeration",
}  # fmt: skip
HARDNESS = ("series-parallel", *KINDS.values())

MOST_CELLS, MOST_ROWS = 2**28, 20
"""Larger 2-sums are not written out, sets of more rows not gone through."""


def confirm(problem: csr_array | ArrayLike | Any, evidence: Proof | Witness | Undecided) -> str | None:
    """The kind of a proof that holds, "witness" for a witness that holds, None for what claims nothing.

    Raises `Refuted` where a claim is false of this problem's matrix, or is not made of what such claims are made of;
    `InvalidProblem` where limits are not whole.
    """
    statement = stated(problem)
    record(evidence, (Proof, Witness, Undecided), "what is said of the matrix")
    if isinstance(evidence, Undecided):
        return None
    if isinstance(evidence, Witness):
        confirm_witness(statement, evidence)
        return "witness"
    statement.check_limits()
    if isinstance(evidence.evidence, PrefixGroups):
        _check_frame(statement.matrix, evidence)
        if evidence.kind != "prefix groups" or flag(
            evidence.transposed, "whether the proof is of the transposed matrix"
        ):
            raise Refuted(f"the proof is said to be {evidence.kind!r}, but its evidence is 'prefix groups'")
        confirm_prefix_groups(statement, evidence.evidence)
        return "prefix groups"
    try:
        return _confirm_proof(statement.matrix, evidence)
    except RecursionError:
        raise Refuted("the proof has parts within parts without end, or too many to be checked") from None


def _confirm_proof(matrix: csr_array, proof: Proof) -> str:
    """The kind of the proof."""
    record(proof, Proof, "a part of the proof")
    _check_frame(matrix, proof)
    if (np.abs(matrix.data) != 1).any():
        raise Refuted("the matrix has an entry other than -1, 0 and 1")
    evidence = proof.evidence
    transposed = flag(proof.transposed, "whether the proof is of the transposed matrix")
    if isinstance(evidence, Parts):
        kinds = _confirm_parts(matrix, evidence)
        kind = max(kinds, key=HARDNESS.index, default=HARDNESS[0])
    elif isinstance(evidence, TwoSum):
        kind = max(_confirm_two_sum(matrix, evidence), key=HARDNESS.index)
    else:
        record(evidence, tuple(KINDS), "the evidence of a proof")
        kind = next(kind for form, kind in KINDS.items() if isinstance(evidence, form))
        turned = csr_array(matrix.T) if transposed else matrix
        next(check for form, check in CHECKS.items() if isinstance(evidence, form))(turned, evidence)
    if not isinstance(proof.kind, str) or kind != proof.kind:
        raise Refuted(f"the proof is said to be {proof.kind!r}, but its evidence is {kind!r}")
    return kind


def _check_frame(matrix: csr_array, proof: Proof) -> None:
    if not isinstance(proof.shape, tuple) or not all(map(is_whole, proof.shape)) or proof.shape != matrix.shape:
        raise Refuted(f"the proof is for a matrix of shape {proof.shape}, not {matrix.shape}")


def _confirm_parts(matrix: csr_array, evidence: Parts) -> list[str]:
    """Redo the removals, then check that the parts are all that is left and share nothing."""
    held = [np.ones(size, dtype=np.bool_) for size in matrix.shape]
    for removal in items(evidence.removals, Removal, "what is left out"):
        _confirm_removal(matrix, held, removal)
    parts = [
        (
            indices(part.rows, matrix.shape[0], "a part's rows"),
            indices(part.columns, matrix.shape[1], "a part's columns"),
        )
        for part in items(evidence.parts, Part, "the parts")
    ]
    rows, columns = (np.flatnonzero(part) for part in held)
    left = csr_array(matrix[rows][:, columns])
    covered = 0
    for axis, names in ((0, rows), (1, columns)):
        claimed = [part[axis] for part in parts]
        together = np.sort(np.concatenate([*claimed, np.zeros(0, dtype=np.int64)]))
        uncovered = together.shape != names.shape or (together != names).any()
        if uncovered and (left.nnz or parts):
            raise Refuted(f"the parts do not cover each remaining {'column' if axis else 'row'} once")
    kinds = []
    for (inner, across), part in zip(parts, evidence.parts, strict=True):
        block = csr_array(matrix[inner][:, across])
        covered += block.nnz
        kinds.append(_confirm_proof(block, part.proof))
    if covered != left.nnz:
        raise Refuted("entries outside the parts remain, so the parts are no separate blocks")
    return kinds


def _confirm_two_sum(matrix: csr_array, evidence: TwoSum) -> list[str]:
    height, width = matrix.shape
    if height * width > MOST_CELLS:
        raise Refuted(f"a 2-sum of {height} × {width} entries is too large to be checked")
    dense = matrix.toarray()
    own = indices(evidence.columns, width, "the columns of a 2-sum")
    first = np.isin(np.arange(height), indices(evidence.rows, height, "the rows of a 2-sum"))
    left = np.isin(np.arange(width), own)
    row, column = one_of(evidence.row, height, "the row of a 2-sum"), one_of(evidence.column, width, "its column")
    if not first[row] or left[column]:
        raise Refuted("the row and column of a 2-sum lie on the wrong sides")
    if dense[~first][:, left].any():
        raise Refuted("the parts of a 2-sum meet in more than a row and a column")
    through = np.outer(dense[first, column], dense[row, ~left])
    if abs(dense[row, column]) != 1 or (dense[first][:, ~left] * dense[row, column] != through).any():
        raise Refuted("the parts of a 2-sum do not meet in the product of a column and a row")
    left[column], second = True, ~first
    second[row] = True
    right = ~np.isin(np.arange(left.size), own)
    return [
        _confirm_proof(csr_array(matrix[np.flatnonzero(rows)][:, np.flatnonzero(columns)]), proof)
        for rows, columns, proof in ((first, left, evidence.first), (second, right, evidence.second))
    ]


def _confirm_removal(matrix: csr_array, held: list[Any], removal: Removal) -> None:
    axis = one_of(removal.axis, 2, "the axis of what is left out")
    what = "column" if axis else "row"
    dropped = indices(removal.dropped, matrix.shape[axis], f"a {what} left out")
    partner = indices(removal.partner, matrix.shape[axis], f"what a {what} is left out for", least=-1)
    other = np.flatnonzero(held[1 - axis])
    lines = csr_array((matrix.T if axis else matrix)[:, other])
    if np.unique(dropped).size != dropped.size or partner.shape != dropped.shape or not held[axis][dropped].all():
        raise Refuted(f"a {what} is left out twice")
    alone = partner < 0
    many = np.flatnonzero(alone & (np.diff(lines.indptr)[dropped] > 1))
    if many.size:
        raise Refuted(f"{what} {dropped[many[0]]} is left out with more than one entry")
    held[axis][dropped] = False
    twins, images = lines[dropped[~alone]], lines[partner[~alone]]
    if not held[axis][partner[~alone]].all():
        raise Refuted(f"a {what} is left out for another that is left out as well")
    apart = (abs(twins - images).sum(axis=1) != 0) & (abs(twins + images).sum(axis=1) != 0)
    if apart.any():
        raise Refuted(f"{what} {dropped[~alone][apart.argmax()]} is left out, but is not ± its partner")


def _colouring(matrix: csr_array, evidence: Colouring) -> None:
    columns = csc_array(matrix)
    count = np.diff(columns.indptr)
    if (count > 2).any():
        raise Refuted(f"column {count.argmax()} has {count.max()} entries: two classes of rows prove nothing")
    side = _two_values(evidence.side, matrix.shape[0], "class")
    first = columns.indptr[np.flatnonzero(count == 2)]
    rows, data = columns.indices, columns.data
    wrong = (data[first] == data[first + 1]) == (side[rows[first]] == side[rows[first + 1]])
    if wrong.any():
        place = first[wrong.argmax()]
        raise Refuted(f"rows {rows[place]} and {rows[place + 1]} are in the wrong classes for a column they share")


def _row_order(matrix: csr_array, evidence: RowOrder) -> None:
    rows = matrix.shape[0]
    order = whole_array(evidence.order, (rows,), "the order of rows")
    if (np.sort(order) != np.arange(rows)).any():
        raise Refuted("the order does not hold every row once")
    columns = csc_array(csr_array(matrix[order]))
    columns.sort_indices()
    for column in np.flatnonzero(np.diff(columns.indptr)):
        held = slice(columns.indptr[column], columns.indptr[column + 1])
        place, data = columns.indices[held], columns.data[held]
        if place[-1] - place[0] + 1 != place.size or (data != data[0]).any():
            raise Refuted(f"the entries of column {column} are not consecutive, or not of one sign")


def _laminar(matrix: csr_array, evidence: Families) -> None:
    """From the largest set to the smallest of a family: the columns of each have lain in one set until then."""
    labels = _two_values(evidence.family, matrix.shape[0], "family")
    size = np.diff(matrix.indptr)
    for family in (0, 1):
        inside = np.full(matrix.shape[1], -1)
        for row in sorted(np.flatnonzero(labels == family), key=lambda row: -size[row]):
            held = slice(matrix.indptr[row], matrix.indptr[row + 1])
            columns, data = matrix.indices[held], matrix.data[held]
            if columns.size and ((data != data[0]).any() or (inside[columns] != inside[columns[0]]).any()):
                raise Refuted(f"row {row} is no set, or crosses another set of its family")
            inside[columns] = row


def _tree(matrix: csr_array, evidence: Tree) -> None:
    rows = matrix.shape[0]
    nodes = rows + 1
    tail, head = (indices(ends, nodes, "the ends of a tree's arcs") for ends in (evidence.tail, evidence.head))
    if tail.shape != (rows,) or head.shape != (rows,):
        raise Refuted("the tree has not one arc for each row")
    graph = csr_array((np.ones(rows), (tail, head)), (nodes, nodes))
    if connected_components(graph, directed=False)[0] != 1:
        raise Refuted("the arcs form no tree")
    arc = np.arange(rows)
    ends = csr_array((np.repeat([-1.0, 1.0], rows), (np.r_[tail, head], np.r_[arc, arc])), (nodes, rows))
    left = csr_array((ends @ matrix).T)  # where the arcs of a column, taken with their signs, begin and end
    left.eliminate_zeros()
    met = abs(ends) @ abs(matrix)
    total = np.asarray(abs(left).sum(axis=1)).ravel()
    filled = np.diff(csc_array(matrix).indptr) > 0
    steps = abs(left).max(axis=1).toarray().ravel()
    broken = filled & ((total != 2) | (steps != 1)) | (met.max(axis=0).toarray().ravel() > 2)
    if broken.any():
        raise Refuted(f"column {broken.argmax()} is no path in the tree")


def _signings(matrix: csr_array, evidence: Signings) -> None:
    rows = matrix.shape[0]
    if rows > MOST_ROWS:
        raise Refuted(f"signs for all sets of {rows} rows are too many to be checked")
    signs = whole_array(evidence.signs, (2**rows, rows), "the signs of all sets of rows")
    chosen = (np.arange(2**rows)[:, None] >> np.arange(rows)) & 1
    if ((signs != chosen) & (signs != -chosen)).any():
        raise Refuted("the signs of a set of rows are not ±1 on that set and 0 elsewhere")
    sums = csr_array(matrix.T) @ signs.T.astype(np.float64)
    if (np.abs(sums) > 1).any():
        raise Refuted("the signs of a set of rows leave a sum other than -1, 0 and 1 in a column")


def _two_values(values: Any, rows: int, name: str) -> Ints:
    labels = whole_array(values, (rows,), f"the {name} of each row")
    if not ((labels == 0) | (labels == 1)).all():
        raise Refuted(f"each row needs a {name}, 0 or 1")
    return labels


CHECKS: dict[type, Any] = {
    Colouring: _colouring, RowOrder: _row_order, Families: _laminar, Tree: _tree, Signings: _signings,
}  # fmt: skip
