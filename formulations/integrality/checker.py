"""Check evidence against the matrix alone, independently of the code that found it.

Every claim is recomputed in integers; a false one raises `CertificateError` with its location.
A forged record may contain anything: imaginary numbers with the expected absolute values, -2**63 (its own negative),
masked arrays, a proof inside itself. Only plain values are accepted; all else raises `CertificateError`.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csc_array, csr_array
from scipy.sparse.csgraph import connected_components

from formulations.arrays import Ints
from formulations.errors import CertificateError
from formulations.integrality.determinant import determinant, entries_of, pivoted, rank
from formulations.integrality.evidence import (
    Coloring,
    Families,
    Part,
    Parts,
    Pivot,
    PrefixGroups,
    Proof,
    Removal,
    RowOrder,
    Signings,
    ThreeSum,
    Tree,
    TwoSum,
    Undecided,
    Vertex,
    Witness,
)
from formulations.integrality.statement import Statement, stated
from formulations.problems.program import Program


def confirm_prefix_groups(statement: Statement, evidence: PrefixGroups) -> None:
    """Raise `CertificateError` unless the hypotheses of the theorem in `prefix_limits` are satisfied."""
    program = statement.program
    if program is None or not program.objective.any():
        raise CertificateError("the proof is about an objective, but a matrix or a set alone has none")
    k = evidence.positions
    cells = statement.matrix.shape[1]
    if not is_integer(k) or k < 1 or cells % k or cells // k < k:
        raise CertificateError(f"{cells} columns are not the cells of {k!r} positions and as many documents or more")
    n = cells // k
    if (program.lower != 0).any() or (program.upper != 1).any():
        raise CertificateError("a cell has limits other than 0 and 1")
    group = indices(evidence.group, n, "the group of each document")
    order = indices(evidence.order, n, "the order of the documents")
    if group.shape != (n,) or order.shape != (n,) or np.unique(order).size != n:
        raise CertificateError(f"the proof does not name each of {n} documents once")
    _check_rows(statement.matrix, program, group, k, n)
    _check_profits(program, group, order, k, n)


def _check_rows(matrix: csr_array, program: Program, group: Ints, k: int, n: int) -> None:
    """Check that each row is of a kind of the theorem, every position is filled, and no document is ranked twice."""
    members = {int(label): frozenset(np.flatnonzero(group == label).tolist()) for label in np.unique(group)}
    filled, once = set[int](), set[int]()
    for row, (low, high) in enumerate(zip(program.row_lower.tolist(), program.row_upper.tolist(), strict=True)):
        part = slice(matrix.indptr[row], matrix.indptr[row + 1])
        if (matrix.data[part] != 1).any():
            raise CertificateError(f"row {row} has a coefficient other than 1")
        cells = {(int(cell) // n, int(cell) % n) for cell in matrix.indices[part]}
        positions, documents = {p for p, _ in cells}, frozenset(d for _, d in cells)
        if len(cells) != len(positions) * len(documents):
            raise CertificateError(f"row {row} counts other documents at one position than at another")
        if not cells:
            if low > 0 or high < 0:
                raise CertificateError(f"row {row} has no cells and cannot hold")
            continue
        if high <= 1 and len(positions) == k:
            once |= documents
        if len(documents) == n:
            if not low <= len(positions) <= high:
                raise CertificateError(f"row {row} cannot hold")
            if len(positions) == 1 and low == high == 1:
                filled |= positions
            continue
        if len(documents) == 1 and len(positions) == k and low <= 0 and high == 1:
            continue
        if members[int(group[min(documents)])] != documents:
            raise CertificateError(f"row {row} does not count exactly the documents of one group")
        first, last = min(positions), max(positions)
        together = len(positions) == last - first + 1
        if not together or not (first == 0 or first == last or (last == k - 1 and k == n)):
            raise CertificateError(f"row {row} limits positions that are neither a prefix nor one position")
    if len(filled) < k or len(once) < n:
        raise CertificateError("a position may stay empty, or a document have two positions")


def _check_profits(program: Program, group: Ints, order: Ints, k: int, n: int) -> None:
    """Check that no difference of adjacent positions increases within a group, in the claimed order."""
    sign = 1 if program.is_maximization else -1
    ratios = [value.as_integer_ratio() for value in program.objective.tolist()]
    shared = max(below for _, below in ratios)
    profit: Any = np.array([sign * above * (shared // below) for above, below in ratios], dtype=object).reshape(k, n)
    rows = list(profit) + ([np.array([0] * n, dtype=object)] if k < n else [])
    for p in range(len(rows) - 1):
        step = (rows[p] - rows[p + 1])[order]
        rising = (step[:-1] < step[1:]) & (group[order][:-1] == group[order][1:])
        if rising.any():
            j = int(rising.argmax())
            raise CertificateError(
                f"the profits are of another kind: from position {p} to {p + 1} document {order[j + 1]} loses more "
                f"than document {order[j]} of its group, which the proof orders first"
            )
    # A group must come in one piece, or its documents are compared in part only.
    if (np.diff(group[order]) != 0).sum() + 1 != np.unique(group).size:
        raise CertificateError("the order does not name group after group")


LARGEST_ENUMERATED = 12  # largest size for which minimality is checked by enumeration of signed row sets

LARGEST_NUMERATOR = 2**31

LARGEST_SUM = 2.0**52  # below this limit doubles represent every integer and half-integer


def confirm_witness(statement: Statement, witness: Witness) -> None:
    """Raise `CertificateError` if a claim of the witness is false."""
    matrix = statement.matrix
    rows, columns = (
        _lines(named, size, kind)
        for named, size, kind in ((witness.rows, matrix.shape[0], "row"), (witness.columns, matrix.shape[1], "column"))
    )
    if len(rows) != len(columns) or not rows:
        raise CertificateError(f"{len(rows)} rows and {len(columns)} columns are not a square submatrix")
    part = matrix[rows][:, columns]
    entries = entries_of(part)
    if not _plain_entries(witness.entries) or witness.entries != entries:
        raise CertificateError("the entries are not those of the matrix")
    if labels(witness.row_names, "the names of rows") != tuple(map(statement.row_name, rows)):
        raise CertificateError("the rows have other names")
    if labels(witness.column_names, "the names of columns") != tuple(map(statement.column_name, columns)):
        raise CertificateError("the columns have other names")
    found = determinant(entries, len(rows))
    if not is_exact(witness.determinant):
        raise CertificateError(f"the determinant is a {type(witness.determinant).__name__} and no exact number")
    if found != witness.determinant:
        raise CertificateError(f"the witness claims determinant {witness.determinant}; the submatrix has {found}")
    if found in (-1, 0, 1):
        raise CertificateError(f"the determinant is {found}: that refutes nothing")
    if flag(witness.minimal, "whether the witness is minimal") and len(rows) > 1:
        _confirm_minimal(part, abs(found) == 2)
    if witness.vertex is not None:
        statement.check_limits()
        _confirm_vertex(statement.program, record(witness.vertex, Vertex, "the vertex"))


def _lines(named: Any, size: int, kind: str) -> list[int]:
    if not isinstance(named, tuple) or not all(map(is_integer, named)):
        raise CertificateError(f"the {kind}s of the witness must be a tuple of integers")
    if len(set(named)) != len(named) or not all(0 <= line < size for line in named):
        raise CertificateError(f"the witness names a {kind} twice, or one that does not exist")
    return list(named)


def _plain_entries(entries: Any) -> bool:
    """Whether these are tuples of plain numbers, so that they can be compared."""
    return isinstance(entries, tuple) and all(
        isinstance(entry, tuple) and len(entry) == 3 and all(map(is_integer, entry[:2])) and is_exact(entry[2])
        for entry in entries
    )


def _confirm_minimal(submatrix: csr_array, of_two: bool) -> None:
    """Check minimality: a cycle (two entries ±1 per row and column, determinant ±2; proper parts are forests), or signs
    for every proper subset of the rows (Ghouila-Houri)."""
    size = submatrix.shape[0]
    if (np.abs(submatrix.data[submatrix.data != 0]) != 1).any():
        raise CertificateError("an entry of the witness refutes alone: it is not minimal")
    held = submatrix != 0
    if of_two and (held.sum(axis=0) == 2).all() and (held.sum(axis=1) == 2).all():
        return
    if size > LARGEST_ENUMERATED:
        raise CertificateError(f"that no part of {size} rows is smaller cannot be confirmed")
    part, half = submatrix.toarray(), size // 2
    first, second = (np.array(list(product((-1, 0, 1), repeat=width))) for width in (half, size - half))
    sums = second @ part[half:]
    index = (second != 0) @ (1 << np.arange(half, size))
    known = np.zeros(2**size, dtype=np.bool_)
    for signs in first:
        good = (np.abs(signs @ part[:half] + sums) <= 1).all(axis=1)
        known[index[good] + int((signs != 0) @ (1 << np.arange(half)))] = True
    if not known[:-1].all():
        raise CertificateError("rows of the witness can be left out: it is not minimal")


def _confirm_vertex(program: Program | None, vertex: Vertex) -> None:
    """Check that x is feasible and fractional, fixed by its tight limits, whose normals add up to the objective."""
    if program is None:
        raise CertificateError("a bare matrix has no feasible set to have a vertex")
    shape = program.objective.shape
    x, unit = integer_array(vertex.numerators, shape, "the vertex"), vertex.denominator
    claimed = integer_array(vertex.objective, shape, "the objective of the vertex")
    if not is_integer(unit) or not 2 <= unit < LARGEST_NUMERATOR or not (x % unit).any():
        raise CertificateError("the vertex is not a fractional point")
    if x.max() >= LARGEST_NUMERATOR or x.min() <= -LARGEST_NUMERATOR:
        raise CertificateError("the vertex has numerators too large to be checked")
    if (program.matrix.data != np.round(program.matrix.data)).any():
        raise CertificateError("the vertex of a matrix with broken entries cannot be confirmed")
    limits = np.concatenate([program.row_lower, program.row_upper, program.lower, program.upper])
    limits = np.abs(limits[np.isfinite(limits)])
    reached = max(float((abs(program.matrix) @ np.abs(x)).max(initial=0.0)), float(limits.max(initial=0.0)) * unit)
    if reached >= LARGEST_SUM:
        raise CertificateError("the vertex leads to numbers too large to be checked")
    matrix = program.matrix.astype(np.int64)
    outward = []
    for held, low, high in ((matrix @ x, program.row_lower, program.row_upper), (x, program.lower, program.upper)):
        if (held < low * unit).any() or (held > high * unit).any():
            raise CertificateError("the vertex breaks a constraint")
        outward.append(((held == low * unit), (held == high * unit)))
    (row_low, row_high), (low_, high_) = outward
    objective = matrix.T @ (row_high.astype(np.int64) - row_low) + high_.astype(np.int64) - low_
    if (claimed != objective).any():
        raise CertificateError("the objective is not the sum of the outward normals at the vertex")
    free = np.flatnonzero(~(low_ | high_))
    tight = matrix[np.flatnonzero(row_low | row_high)][:, free].toarray()
    if rank(entries_of(csr_array(np.unique(tight, axis=0)))) != free.size:
        raise CertificateError("the point is feasible, but not a vertex")


HARDNESS = ("series-parallel", "bipartite", "interval", "laminar", "network", "enumeration")
"""The kinds of proofs in ascending order; a proof of several parts has the kind of its hardest part."""

MOST_CELLS, MOST_ROWS = 2**28, 20  # size limits of matrices with all zeros, and of enumerated row sets


def check_evidence(problem: csr_array | ArrayLike | Any, evidence: Proof | Witness | Undecided) -> str | None:
    """The kind of a valid proof, "witness" for a valid witness, None for `Undecided`.

    Raises `CertificateError` if a claim is false or malformed, `InvalidProblemError` if limits are not integers.
    """
    statement = stated(problem)
    record(evidence, (Proof, Witness, Undecided), "the evidence")
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
            raise CertificateError(f"the proof claims kind {evidence.kind!r}, but its evidence is 'prefix groups'")
        confirm_prefix_groups(statement, evidence.evidence)
        return "prefix groups"
    try:
        return _confirm_proof(statement.matrix, evidence)
    except RecursionError:
        raise CertificateError("the proof has parts within parts without end, or too many to be checked") from None


def _confirm_proof(matrix: csr_array, proof: Proof) -> str:
    """The kind of the proof."""
    record(proof, Proof, "a part of the proof")
    _check_frame(matrix, proof)
    if (np.abs(matrix.data) != 1).any():
        raise CertificateError("the matrix has an entry other than -1, 0 and 1")
    evidence = proof.evidence
    transposed = flag(proof.transposed, "whether the proof is of the transposed matrix")
    record(evidence, tuple(CHECKS), "the evidence of a proof")
    kind, check = next(entry for form, entry in CHECKS.items() if isinstance(evidence, form))
    found = check(csr_array(matrix.T) if kind and transposed else matrix, evidence)
    kind = kind or max(found, key=HARDNESS.index, default=HARDNESS[0])
    if not isinstance(proof.kind, str) or kind != proof.kind:
        raise CertificateError(f"the proof claims kind {proof.kind!r}, but its evidence is {kind!r}")
    return kind


def _check_frame(matrix: csr_array, proof: Proof) -> None:
    if not isinstance(proof.shape, tuple) or not all(map(is_integer, proof.shape)) or proof.shape != matrix.shape:
        raise CertificateError(f"the proof is for a matrix of shape {proof.shape}, not {matrix.shape}")


def _confirm_parts(matrix: csr_array, evidence: Parts) -> list[str]:
    """Repeat the removals, then check that the parts cover the remainder and are disjoint."""
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
            raise CertificateError(f"the parts do not cover each remaining {'column' if axis else 'row'} once")
    kinds = []
    for (inner, across), part in zip(parts, evidence.parts, strict=True):
        block = csr_array(matrix[inner][:, across])
        covered += block.nnz
        kinds.append(_confirm_proof(block, part.proof))
    if covered != left.nnz:
        raise CertificateError("entries outside the parts remain, so the parts are no separate blocks")
    return kinds


def _confirm_two_sum(matrix: csr_array, evidence: TwoSum) -> list[str]:
    height, width = matrix.shape
    dense = _written_out(matrix, "a 2-sum")
    own = indices(evidence.columns, width, "the columns of a 2-sum")
    first = np.isin(np.arange(height), indices(evidence.rows, height, "the rows of a 2-sum"))
    left = np.isin(np.arange(width), own)
    row, column = one_of(evidence.row, height, "the row of a 2-sum"), one_of(evidence.column, width, "its column")
    if not first[row] or left[column]:
        raise CertificateError("the row and column of a 2-sum lie on the wrong sides")
    if dense[~first][:, left].any():
        raise CertificateError("the parts of a 2-sum meet in more than a row and a column")
    through = np.outer(dense[first, column], dense[row, ~left])
    if abs(dense[row, column]) != 1 or (dense[first][:, ~left] * dense[row, column] != through).any():
        raise CertificateError("the parts of a 2-sum do not meet in the product of a column and a row")
    left[column], second = True, ~first
    second[row] = True
    right = ~np.isin(np.arange(left.size), own)
    return [
        _confirm_proof(csr_array(matrix[np.flatnonzero(rows)][:, np.flatnonzero(columns)]), proof)
        for rows, columns, proof in ((first, left, evidence.first), (second, right, evidence.second))
    ]


def three_sum_parts(matrix: Any, rows: Any, columns: Any, sign: int) -> tuple[Any, Any]:
    """The two matrices whose 3-sum the matrix is, by these rows and columns of the first one."""
    corners, outer = [], (~rows, ~columns)
    for side, other in ((rows, outer[1]), (outer[0], columns)):
        corner = matrix[np.ix_(side, other)]
        if not corner.any():
            raise CertificateError("the parts of a 3-sum meet in a corner without entries")
        row, column = np.argwhere(corner)[0]
        along, across = corner[row], corner[:, column] * corner[row, column]
        if (corner != np.outer(across, along)).any():
            raise CertificateError("the parts of a 3-sum meet in a corner that is no product of a column and a row")
        corners.append((across[:, None], along[None]))
    (a, b), (d, c) = corners
    one, none = np.array([[sign]], dtype=np.int8), np.zeros((1, 1), dtype=np.int8)
    first = np.block([[matrix[np.ix_(rows, columns)], a, a], [c, none, one]])
    second = np.block([[one, none, b], [d, d, matrix[np.ix_(*outer)]]])
    return first, second


def _confirm_three_sum(matrix: csr_array, evidence: ThreeSum) -> list[str]:
    rows, columns = (
        np.isin(np.arange(size), indices(named, size, f"the {kind}s of a 3-sum"))
        for named, size, kind in zip((evidence.rows, evidence.columns), matrix.shape, ("row", "column"), strict=True)
    )
    if not is_integer(evidence.sign) or evidence.sign not in (1, -1):
        raise CertificateError(f"the sign of a 3-sum is {evidence.sign!r}, neither 1 nor -1")
    parts = three_sum_parts(_written_out(matrix, "a 3-sum"), rows, columns, evidence.sign)
    proofs = evidence.first, evidence.second
    return [_confirm_proof(csr_array(part), proof) for part, proof in zip(parts, proofs, strict=True)]


def _confirm_pivot(matrix: csr_array, evidence: Pivot) -> list[str]:
    dense = _written_out(matrix, "a pivot")
    row, column = (
        one_of(line, size, f"the {kind} of a pivot")
        for line, size, kind in zip((evidence.row, evidence.column), matrix.shape, ("row", "column"), strict=True)
    )
    if not dense[row, column]:
        raise CertificateError("a pivot needs an entry other than 0")
    return [_confirm_proof(csr_array(pivoted(dense, row, column)), evidence.proof)]


def _written_out(matrix: csr_array, what: str) -> Any:
    """A matrix of entries -1, 0 and 1 with all its zeros."""
    height, width = matrix.shape
    if height * width > MOST_CELLS:
        raise CertificateError(f"{what} of {height} × {width} entries is too large to be checked")
    return matrix.toarray().astype(np.int8)


def _confirm_removal(matrix: csr_array, held: list[Any], removal: Removal) -> None:
    axis = one_of(removal.axis, 2, "the axis of what is left out")
    what = "column" if axis else "row"
    dropped = indices(removal.dropped, matrix.shape[axis], f"a {what} left out")
    partner = indices(removal.partner, matrix.shape[axis], f"what a {what} is left out for", least=-1)
    other = np.flatnonzero(held[1 - axis])
    lines = csr_array((matrix.T if axis else matrix)[:, other])
    if np.unique(dropped).size != dropped.size or partner.shape != dropped.shape or not held[axis][dropped].all():
        raise CertificateError(f"a {what} is left out twice")
    alone = partner < 0
    many = np.flatnonzero(alone & (np.diff(lines.indptr)[dropped] > 1))
    if many.size:
        raise CertificateError(f"{what} {dropped[many[0]]} is left out with more than one entry")
    held[axis][dropped] = False
    twins, images = lines[dropped[~alone]], lines[partner[~alone]]
    if not held[axis][partner[~alone]].all():
        raise CertificateError(f"a {what} is left out for another that is left out as well")
    apart = (abs(twins - images).sum(axis=1) != 0) & (abs(twins + images).sum(axis=1) != 0)
    if apart.any():
        raise CertificateError(f"{what} {dropped[~alone][apart.argmax()]} is left out, but is not ± its partner")


def _coloring(matrix: csr_array, evidence: Coloring) -> None:
    columns = csc_array(matrix)
    count = np.diff(columns.indptr)
    if (count > 2).any():
        raise CertificateError(f"column {count.argmax()} has {count.max()} entries: two classes of rows prove nothing")
    side = _two_values(evidence.side, matrix.shape[0], "class")
    first = columns.indptr[np.flatnonzero(count == 2)]
    rows, data = columns.indices, columns.data
    wrong = (data[first] == data[first + 1]) == (side[rows[first]] == side[rows[first + 1]])
    if wrong.any():
        at = first[wrong.argmax()]
        raise CertificateError(f"rows {rows[at]} and {rows[at + 1]} are in the wrong classes for a column they share")


def _row_order(matrix: csr_array, evidence: RowOrder) -> None:
    rows = matrix.shape[0]
    order = integer_array(evidence.order, (rows,), "the order of rows")
    if (np.sort(order) != np.arange(rows)).any():
        raise CertificateError("the order does not hold every row once")
    columns = csc_array(csr_array(matrix[order]))
    columns.sort_indices()
    for column in np.flatnonzero(np.diff(columns.indptr)):
        held = slice(columns.indptr[column], columns.indptr[column + 1])
        index, data = columns.indices[held], columns.data[held]
        if index[-1] - index[0] + 1 != index.size or (data != data[0]).any():
            raise CertificateError(f"the entries of column {column} are not consecutive, or not of one sign")


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
                raise CertificateError(f"row {row} is no set, or crosses another set of its family")
            inside[columns] = row


def _tree(matrix: csr_array, evidence: Tree) -> None:
    rows = matrix.shape[0]
    nodes = rows + 1
    tail, head = (indices(ends, nodes, "the ends of a tree's arcs") for ends in (evidence.tail, evidence.head))
    if tail.shape != (rows,) or head.shape != (rows,):
        raise CertificateError("the tree has not one arc for each row")
    graph = csr_array((np.ones(rows), (tail, head)), (nodes, nodes))
    if connected_components(graph, directed=False)[0] != 1:
        raise CertificateError("the arcs form no tree")
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
        raise CertificateError(f"column {broken.argmax()} is not a path in the tree")


def _signings(matrix: csr_array, evidence: Signings) -> None:
    rows = matrix.shape[0]
    if rows > MOST_ROWS:
        raise CertificateError(f"signs for all sets of {rows} rows are too many to be checked")
    signs = integer_array(evidence.signs, (2**rows, rows), "the signs of all sets of rows")
    chosen = (np.arange(2**rows)[:, None] >> np.arange(rows)) & 1
    if ((signs != chosen) & (signs != -chosen)).any():
        raise CertificateError("the signs of a set of rows are not ±1 on that set and 0 elsewhere")
    sums = csr_array(matrix.T) @ signs.T.astype(np.float64)
    if (np.abs(sums) > 1).any():
        raise CertificateError("the signs of a set of rows leave a sum other than -1, 0 and 1 in a column")


def _two_values(values: Any, rows: int, name: str) -> Ints:
    labels = integer_array(values, (rows,), f"the {name} of each row")
    if not ((labels == 0) | (labels == 1)).all():
        raise CertificateError(f"each row needs a {name}, 0 or 1")
    return labels


CHECKS: dict[type, tuple[str, Any]] = {
    Parts: ("", _confirm_parts),
    TwoSum: ("", _confirm_two_sum),
    ThreeSum: ("", _confirm_three_sum),
    Pivot: ("", _confirm_pivot),
    Coloring: ("bipartite", _coloring),
    RowOrder: ("interval", _row_order),
    Families: ("laminar", _laminar),
    Tree: ("network", _tree),
    Signings: ("enumeration", _signings),
}
"""For each form of evidence its kind, "" for that of its hardest part, and its check, which returns kinds of parts."""


def record(value: Any, kind: type | tuple[type, ...], name: str) -> Any:
    """`value`, if it is a record of this kind."""
    if not isinstance(value, kind):
        raise CertificateError(f"{name} is a {type(value).__name__} and no evidence of that")
    return value


def flag(value: Any, name: str) -> bool:
    """`value`, if it is a bool."""
    if not isinstance(value, bool):
        raise CertificateError(f"{name} is neither True nor False")
    return value


def is_integer(value: Any) -> bool:
    """Whether it is a Python int and not a bool."""
    return type(value) is int


def one_of(value: Any, size: int, name: str) -> int:
    """`value`, if it is an index below `size`."""
    if not (isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= value < size):
        raise CertificateError(f"{name} is {value!r}, and there are {size}, counted from 0")
    return int(value)


def is_exact(value: Any) -> bool:
    """Whether it is an int or a Fraction."""
    return is_integer(value) or type(value) is Fraction


def labels(values: Any, name: str) -> tuple[str, ...]:
    """`values`, if they are a tuple of strings."""
    if not (isinstance(values, tuple) and all(isinstance(value, str) for value in values)):
        raise CertificateError(f"{name} are no tuple of names")
    return values


def integer_array(values: Any, shape: tuple[int, ...], name: str) -> Ints:
    """A copy of a plain array of 64-bit integers of this shape; masked and other array classes are refused."""
    if type(values) is not np.ndarray or values.dtype.kind not in "iu" or values.shape != shape:
        cells = f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else "no array"
        raise CertificateError(f"{name} must be integers of shape {shape}; got a {type(values).__name__} ({cells})")
    plain = values.copy()
    if plain.dtype.kind == "u" and plain.size and int(plain.max()) > np.iinfo(np.int64).max:
        raise CertificateError(f"{name} has a number of more than 63 binary digits")
    return plain.astype(np.int64)


def indices(values: Any, size: int, name: str, least: int = 0) -> Ints:
    """A plain vector of indices below `size` (and from `least`), of any length."""
    if not isinstance(values, np.ndarray) or values.ndim != 1:
        raise CertificateError(f"{name} must be a vector of integers")
    plain = integer_array(values, values.shape, name) if values.size else np.zeros(0, dtype=np.int64)
    if plain.size and not (least <= plain.min() and plain.max() < size):
        raise CertificateError(f"{name} names what does not exist: there are {size}, counted from 0")
    return plain


def items(values: Any, kind: type, name: str) -> list[Any]:
    """A tuple of records of one kind."""
    if not isinstance(values, tuple):
        raise CertificateError(f"{name} are no tuple")
    return [record(value, kind, f"one of {name}") for value in values]
