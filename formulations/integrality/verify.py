"""Test of integrality, with evidence: search for a violating submatrix and for a fractional vertex after quick proofs.

`shrunk` minimizes a violating submatrix. An entry of the adjugate is the determinant of the submatrix without one row
and one column, so one inverse covers all submatrices of the next size. If none of these violates, all signed sets of up
to twelve rows are enumerated (Ghouila-Houri). A cycle, two entries per line, is minimal: its parts are forests.

`narrow` removes rows and columns, in blocks and then singly, while the quick proofs still fail. Total unimodularity
and the network property are inherited by submatrices; the remainder is often small enough for enumeration.

`Polyhedron` finds fractional vertices. At a vertex x of {b <= Ax <= c, l <= x <= u} with integer limits let F be the
columns where x is fractional, and T the tight rows. A restricted to T × F has full column rank; any |F| independent
rows form a square matrix B with B x_F integral, so |det B| >= 2. If A is not totally unimodular, some integer limits
have such a vertex [Hoffman and Kruskal, 1956]. HiGHS computes vertices of the problem's own polyhedron, then of
polyhedra with random integer limits, under small and tied objectives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import qr
from scipy.sparse import csr_array

from formulations.arrays import Floats, Ints, as_integer, frozen, generator
from formulations.errors import SolverError
from formulations.integrality.checker import LARGEST_ENUMERATED
from formulations.integrality.decomposition import MOST_ENTRIES, Remainder, components
from formulations.integrality.determinant import determinant, entries_of, rank
from formulations.integrality.evidence import Proof, Signings, Signs, Undecided, Vertex, Witness
from formulations.integrality.prefix_limits import prefix_proof
from formulations.integrality.proofs import prove
from formulations.integrality.recognition import MOST_ROWS, enumerate_signings, odd_cycle
from formulations.integrality.statement import Statement, stated
from formulations.problems.program import Program


def verify_integrality(
    problem: csr_array | ArrayLike | Any, *, seed: int = 0, max_effort: int = 1
) -> Proof | Witness | Undecided:
    """Test total unimodularity of the constraint matrix: a proof, a witness, or neither.

    A proof means that every vertex of {x : b <= Ax <= c, l <= x <= u} is integral for all integral b, c, l, u; a
    simplex method then finds integral optima for every objective. A witness means that this fails for some limits; with
    a `vertex`, it fails for the problem's own limits. A problem with an objective may have a proof of kind "prefix
    groups" without total unimodularity: its program has an integral optimum for this objective. For the integrality of
    one optimum use `integrality_gap`.

    problem     a problem, anything with a linear `program`, a model that `as_problem` reads, or a matrix of integers,
                dense or sparse
    seed        of the search for witnesses; results are reproducible
    max_effort  length of the search after the quick proofs fail, as a multiple of the default

    Always decided: at most two entries per column, or per row; at most ten rows or columns; blocks of at most 5,000
    entries, by Seymour's decomposition. `check_evidence` checks the answer. Raises `InvalidProblemError` for anything
    but a matrix of finite numbers, for fractional limits, and for a negative seed or effort; `InfeasibleError` for an
    empty set, naming conflicting constraints (pass `program.matrix` to test the matrix of an empty set).

    At most one document of each site in two positions; then at most one of each of three overlapping groups:

    >>> import numpy as np
    >>> position = [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    >>> site = [[1, 1, 0, 1, 1, 0], [0, 0, 1, 0, 0, 1]]
    >>> print(verify_integrality(np.array(position + site)))
    Proof: 4 × 6 matrix is totally unimodular (bipartite)
    >>> groups = [[1, 1, 0, 1, 1, 0], [0, 1, 1, 0, 1, 1], [1, 0, 1, 1, 0, 1]]
    >>> print(verify_integrality(np.array(position + groups)))
    Witness: not totally unimodular; this 3 × 3 part has determinant -2, and every smaller square part of it has
    determinant -1, 0 or 1
      row 0 | 1 1 .
      row 2 | 1 . 1
      row 3 | . 1 1
      columns: column 0, column 2, column 4
      no fractional vertex was found: the linear program may be integral all the same
    """
    seed, max_effort = as_integer("seed", seed), as_integer("max_effort", max_effort)
    nonempty = getattr(problem, "check_nonempty", None)
    if callable(nonempty):
        nonempty()
    statement, rng = stated(problem), generator("seed", seed)
    found: Violator | Proof | Undecided
    entries = statement.matrix.tocoo()
    other = np.flatnonzero(np.abs(entries.data) != 1)
    if other.size:  # an entry other than -1, 0 and 1 is a witness by itself
        rows, columns = ([int(part[other[0]])] for part in entries.coords)
        found = Violator(rows, columns, True)
    else:
        statement.check_limits()
        quick = prove(statement.matrix)
        if not isinstance(quick, Proof):
            quick = prefix_proof(statement) or quick
        found = quick if isinstance(quick, Proof) else search_violator(statement, quick, rng, max_effort)
    if isinstance(found, Violator):
        return witness(statement, found, fractional_vertex(statement, found.columns, rng, max_effort))
    return found


@dataclass(frozen=True)
class Violator:
    """Rows and columns of a submatrix, and whether it is known to be minimal."""

    rows: list[int]
    columns: list[int]
    minimal: bool


def witness(statement: Statement, found: Violator, vertex: Vertex | None) -> Witness:
    """The record of a violating submatrix, with its determinant in integers."""
    order = np.argsort(found.rows), np.argsort(found.columns)
    rows, columns = (
        tuple(int(line) for line in np.array(part)[by])
        for part, by in zip((found.rows, found.columns), order, strict=True)
    )
    entries = entries_of(statement.matrix[list(rows)][:, list(columns)])
    names = tuple(map(statement.row_name, rows)), tuple(map(statement.column_name, columns))
    return Witness(rows, columns, determinant(entries, len(rows)), entries, *names, found.minimal, vertex)


def shrunk(matrix: Signs, rows: list[int], columns: list[int]) -> tuple[list[int], list[int], bool]:
    """Rows and columns of a submatrix that is at most as large, and whether it is known to be minimal."""
    chosen, across = np.array(rows), np.array(columns)
    while True:
        part = matrix[np.ix_(chosen, across)]
        smaller = _block(part) or _without_single_entries(part)
        if smaller is None and all((np.count_nonzero(part, axis=axis) == 2).all() for axis in (0, 1)):
            return chosen.tolist(), across.tolist(), True
        smaller = smaller or _minor(part)
        if smaller is None and len(part) > LARGEST_ENUMERATED:
            return chosen.tolist(), across.tolist(), False
        if smaller is None:
            found = enumerate_signings(part)
            assert not isinstance(found, Signings), "a determinant other than -1, 0, 1 allows no signs"
            return chosen[found[0]].tolist(), across[found[1]].tolist(), True
        chosen, across = chosen[smaller[0]], across[smaller[1]]


Submatrix = tuple[list[int], list[int]]


def _block(part: Signs) -> Submatrix | None:
    """A smaller diagonal block: the determinant is the product of those of the blocks."""
    blocks = components(part)
    if len(blocks) == 1:
        return None
    sizes = [abs(np.linalg.det(part[np.ix_(*block)].astype(np.float64))) for block in blocks]
    rows, columns = blocks[int(np.argmax(sizes))]
    return rows.tolist(), columns.tolist()


def _without_single_entries(part: Signs) -> Submatrix | None:
    """Expanded along a row or column with one entry."""
    size = len(part)
    for axis in (0, 1):
        alone = np.flatnonzero(np.count_nonzero(part, axis=1 - axis) == 1)
        if alone.size:
            line = int(alone[0])
            other = int((part[line] if axis == 0 else part[:, line]).nonzero()[0][0])
            row, column = (line, other) if axis == 0 else (other, line)
            return [i for i in range(size) if i != row], [j for j in range(size) if j != column]
    return None


def _minor(part: Signs) -> Submatrix | None:
    """All but a row and a column, if some such determinant is not -1, 0 or 1."""
    size = len(part)
    entries = part.astype(np.float64)
    adjugate = np.abs(np.linalg.inv(entries) * np.linalg.det(entries))
    column, row = np.unravel_index(int(adjugate.argmax()), adjugate.shape)
    if adjugate[column, row] < 1.5:
        return None
    return [i for i in range(size) if i != row], [j for j in range(size) if j != column]


def narrow(matrix: Signs, rng: np.random.Generator, thorough: bool = False) -> tuple[Ints, Ints]:
    """Rows and columns of a minimal part without a proof: removing any line gives it one."""
    held = [np.arange(matrix.shape[0]), np.arange(matrix.shape[1])]
    changed = True
    while changed:
        changed = False
        for axis in (1, 0):
            before = held[axis].size
            held[axis] = _fewer(matrix, held, axis, rng, thorough)
            changed |= held[axis].size < before
    return held[0], held[1]


def _fewer(matrix: Signs, held: list[Ints], axis: int, rng: np.random.Generator, thorough: bool) -> Ints:
    lines = rng.permutation(held[axis])
    width = max(1, lines.size // 2)
    while True:
        start = 0
        while start < lines.size:
            remaining = np.sort(np.delete(lines, slice(start, start + width)))
            trial = [remaining, held[1]] if axis == 0 else [held[0], remaining]
            part = csr_array(matrix[np.ix_(*trial)], dtype=np.float64)
            if remaining.size and not isinstance(prove(part, thorough), Proof):
                lines = np.delete(lines, slice(start, start + width))
            else:
                start += width
        if width == 1:
            return np.sort(lines)
        width = max(1, width // 2)


NEAR = 1e-6


class Polyhedron:
    """A HiGHS object with a changing objective, so that each simplex run starts from the last vertex."""

    def __init__(self, matrix: csr_array, row_lower: Floats, row_upper: Floats, lower: Floats, upper: Floats) -> None:
        import highspy

        self.matrix, self.row_lower, self.row_upper = matrix, row_lower, row_upper
        program = highspy.HighsLp()
        program.num_row_, program.num_col_ = matrix.shape
        program.col_cost_ = np.zeros(matrix.shape[1])
        program.col_lower_, program.col_upper_ = lower, upper
        program.row_lower_, program.row_upper_ = row_lower, row_upper
        held = program.a_matrix_
        held.format_ = highspy.MatrixFormat.kRowwise
        held.num_row_, held.num_col_ = matrix.shape
        held.start_, held.index_, held.value_ = matrix.indptr, matrix.indices, matrix.data
        self.optimal = highspy.HighsModelStatus.kOptimal
        self.highs = highspy.Highs()
        for name, value in (("output_flag", False), ("presolve", "off"), ("solver", "simplex")):
            self.highs.setOptionValue(name, value)
        if self.highs.passModel(program) == highspy.HighsStatus.kError:
            raise SolverError("HiGHS refuses the polyhedron")
        self.every = np.arange(matrix.shape[1], dtype=np.int32)

    def vertex(self, cost: Floats) -> Floats | None:
        """A vertex of minimum cost; None if there is none."""
        self.highs.changeColsCost(self.every.size, self.every, cost)
        self.highs.run()
        if self.highs.getModelStatus() != self.optimal:
            return None
        return np.array(self.highs.getSolution().col_value, dtype=np.float64)

    def square(self, x: Floats) -> Submatrix | None:
        """The violating submatrix of a fractional vertex; None for an integral one."""
        columns = np.flatnonzero(np.abs(x - np.round(x)) > NEAR)
        if not columns.size:
            return None
        held = self.matrix @ x
        tight = np.minimum(np.abs(held - self.row_lower), np.abs(held - self.row_upper)) <= NEAR
        rows = np.flatnonzero(tight)
        part = self.matrix[rows][:, columns].toarray()
        if rows.size < columns.size:
            return None
        _, triangle, order = qr(part.T, mode="economic", pivoting=True)
        if abs(triangle[columns.size - 1, columns.size - 1]) < NEAR:
            return None
        return rows[order[: columns.size]].tolist(), columns.tolist()


def random_polyhedron(matrix: csr_array, rng: np.random.Generator) -> Polyhedron:
    """Integer limits around a random integral point: bounds of one or two; equations, lower or upper limits of rows."""
    rows, columns = matrix.shape
    upper = np.full(columns, float(rng.integers(1, 3)))
    through = np.round(rng.random(columns) * upper)
    held = matrix @ through
    loose = rng.integers(0, 2, (2, rows))
    free = rng.random((2, rows)) < rng.choice([0.0, 0.3, 0.5])
    row_lower = np.where(free[0], -np.inf, held - loose[0])
    row_upper = np.where(free[1], np.inf, held + loose[1])
    return Polyhedron(matrix, row_lower, row_upper, np.zeros(columns), upper)


def costs(columns: int, count: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Objectives with many ties (few ones, or small integers), of ±1, and of reals."""
    kinds: tuple[Callable[[], Floats], ...] = (
        lambda: rng.integers(-1, 2, columns).astype(np.float64),
        lambda: -(rng.random(columns) < 0.3).astype(np.float64),
        lambda: rng.choice([-1.0, 1.0], columns),
        lambda: rng.normal(size=columns),
        lambda: rng.integers(-3, 4, columns).astype(np.float64),
    )
    for turn in range(count):
        yield kinds[turn % 5]()


OBJECTIVES = 24
POLYHEDRA = 12
NARROWINGS = 4

Way: TypeAlias = Callable[[csr_array, np.random.Generator, int], Violator | None]


def search_violator(
    statement: Statement, blocks: Remainder, rng: np.random.Generator, effort: int
) -> Violator | Proof | Undecided:
    """A violating submatrix; else a proof that splits 2-sums; else `Undecided`."""
    found = _in_blocks(statement, blocks, (_exactly, _by_vertices), rng, effort)
    if found is not None:
        return found
    rest = prove(statement.matrix, thorough=True)
    if isinstance(rest, Proof):
        return rest
    return _in_blocks(statement, rest, (_exactly, _by_vertices, _by_narrowing), rng, effort) or Undecided(
        (
            "quick proofs: bipartite, interval, laminar, network, enumeration",
            f"the same of the parts of 2-sums and 3-sums, of blocks of at most {MOST_ENTRIES} entries",
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
            listed = enumerate_signings(_signs(matrix))
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
                return Violator(*shrunk(_signs(part), *square))
    return None


def _by_narrowing(part: csr_array, rng: np.random.Generator, effort: int) -> Violator | None:
    signs = _signs(part)
    for _ in range(NARROWINGS * effort):
        rows, columns = narrow(signs, rng)
        smaller = csr_array(signs[np.ix_(rows, columns)])
        found = _exactly(smaller, rng, effort) or _by_vertices(smaller, rng, effort)
        if found is not None:
            return Violator(rows[found.rows].tolist(), columns[found.columns].tolist(), found.minimal)
    if part.nnz > MOST_ENTRIES:
        return None
    rows, columns = narrow(signs, rng, thorough=True)
    violates = rows.size == columns.size and abs(np.linalg.det(signs[np.ix_(rows, columns)].astype(np.float64))) > 1.5
    return Violator(*shrunk(signs, rows.tolist(), columns.tolist())) if violates else None


def _signs(part: csr_array) -> Signs:
    """The matrix written out."""
    return np.asarray(part.toarray(), dtype=np.int8)


OBJECTIVES_VERTEX = 120
LARGE, FEWER_OBJECTIVES = 2000, 24
"""Above this number of columns vertices are expensive, and fewer objectives are tried."""

LARGEST_DENOMINATOR = 120
NEAR_VERTEX = 1e-7


def fractional_vertex(statement: Statement, columns: list[int], rng: np.random.Generator, effort: int) -> Vertex | None:
    """A fractional vertex of the problem's own feasible set, if found; half the objectives reward these columns."""
    program = statement.program
    if program is None or not statement.is_integer:
        return None
    own = Polyhedron(statement.matrix, program.row_lower, program.row_upper, program.lower, program.upper)
    paying = np.zeros(statement.matrix.shape[1])
    if own.vertex(paying) is None:
        return None
    paying[columns] = 3.0
    count = effort * (OBJECTIVES_VERTEX if paying.size <= LARGE else FEWER_OBJECTIVES)
    for turn, cost in enumerate(costs(paying.size, count, rng)):
        x = own.vertex(cost - (turn // 5 % 2) * paying)
        vertex = None if x is None or (np.abs(x - np.round(x)) <= NEAR).all() else exact_vertex(program, x)
        if vertex is not None:
            return vertex
    return None


def exact_vertex(program: Program, x: Floats) -> Vertex | None:
    """The vertex at x, exactly, with an objective that is maximal only there: the sum of the outward normals of all
    limits tight at x. None if x is not a fractional vertex."""
    unit = next(
        (d for d in range(2, LARGEST_DENOMINATOR) if np.abs(x * d - np.round(x * d)).max() < NEAR_VERTEX * d), None
    )
    if unit is None:
        return None
    numerators = np.round(x * unit).astype(np.int64)
    matrix = program.matrix.astype(np.int64)
    held = matrix @ numerators
    row_low, row_high = held == unit * program.row_lower, held == unit * program.row_upper
    low, high = numerators == unit * program.lower, numerators == unit * program.upper
    sides = ((held, program.row_lower, program.row_upper), (numerators, program.lower, program.upper))
    if any((point < unit * lower).any() or (point > unit * upper).any() for point, lower, upper in sides):
        return None
    free = np.flatnonzero(~(low | high))
    tight = np.unique(matrix[np.flatnonzero(row_low | row_high)][:, free].toarray(), axis=0)
    if not (numerators % unit).any() or rank(entries_of(csr_array(tight))) != free.size:
        return None
    objective = matrix.T @ (row_high.astype(np.int64) - row_low) + high.astype(np.int64) - low
    return Vertex(frozen(numerators), unit, frozen(objective))
