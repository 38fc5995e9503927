"""Limits on prefixes over disjoint groups: an integral optimum for this objective, without total unimodularity.

Let the rows be those of `PrefixRows`, and D[p, j] = profit[p, j] - profit[p + 1, j] with profit[k, ·] = 0. If the
documents of each group have an order in which no D[p, ·] increases (p = k - 1 may be omitted if k = n), the linear
program has an integral optimum, and is feasible if and only if a ranking is. With y[p, j] = Σ_{i <= p} π[i, j],

    Σ profit π  =  Σ_p Σ_j D[p, j] y[p, j]  <=  Σ_p Σ_g  the N[g, p] first D[p, ·] of g,   N[g, p] = Σ_{j in g} y[p, j]

the right-hand side is concave in N with integral breakpoints, and the steps of N are a flow over groups × positions
with integer limits. So an integral N is optimal; with its group at each position, the next documents attain the bound.

Profits of rank one, c_i s_j with c_1 >= ... >= c_k >= 0, satisfy this with the order by s. So do c sᵀ - a bᵀ with a = κ
c or b constant within the groups, and position weights for each group with added worths w[g, i].

Columns are the k × n cells (position, document) in C order. Every row must be of one kind, with coefficients 1:

    position    all cells of a position                                = 1
    document    all cells of a document                               <= 1
    prefix      the cells of a group at positions 0 .. p              between integer limits, any p
    single      the cells of a group at one position                  between integer limits
    suffix      the cells of a group at positions p .. k - 1          the same, if k = n: a prefix from the other end,
                                                                      because every document is ranked

Groups are the sets of documents in the rows; any two are equal or disjoint. The other documents are one more group. A
row over all documents counts positions and is redundant.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from formulations.arrays import Bools, Floats, Ints, frozen
from formulations.integrality.evidence import PrefixGroups, Proof
from formulations.integrality.statement import Statement


@dataclass(frozen=True, eq=False)
class PrefixRows:
    """group (n,) numbers the groups from 0. lower, upper (groups, k): limits on the documents of group g at positions 0
    .. p; lower_row, upper_row: their rows, -1 without one. `turned` marks suffix rows, whose lower limit is the upper
    one of a prefix. banned (groups, k): no document of g is allowed at p; `singles` lists the rows (row, group,
    position) that forbid g at a position or require it."""

    shape: tuple[int, int]
    group: Ints
    lower: Ints
    upper: Ints
    lower_row: Ints
    upper_row: Ints
    turned: Bools
    banned: Bools
    singles: tuple[tuple[int, int, int], ...]

    @property
    def groups(self) -> int:
        return int(self.lower.shape[0])

    @cached_property
    def is_always_integral(self) -> bool:
        """Whether all binding limits are on one position or on all: then the rows are two laminar families."""
        return not ((self.lower_row[:, 1:-1] >= 0) | (self.upper_row[:, 1:-1] >= 0)).any()

    @classmethod
    def from_matrix(cls, matrix: csr_array, low: Floats, high: Floats, k: int) -> PrefixRows | str:
        """The prefix limits of the rows, or why they have another form."""
        n, left = divmod(matrix.shape[1], k)
        if left or n < k:
            return "some cells are forbidden"
        if (matrix.data != 1.0).any():
            return "a row has a coefficient other than 1"
        limits = np.concatenate([low[np.isfinite(low)], high[np.isfinite(high)]])
        if (limits != np.round(limits)).any():
            return "a limit is not an integer"
        matrix.sort_indices()
        size = np.diff(matrix.indptr)
        if (low[size == 0] > 0).any() or (high[size == 0] < 0).any():
            return "a row without cells cannot hold"
        held = np.flatnonzero(size)
        position, document = np.divmod(matrix.indices, n)
        starts = matrix.indptr[:-1][held]
        one_position, one_document = (
            np.minimum.reduceat(part, starts) == np.maximum.reduceat(part, starts) for part in (position, document)
        )
        is_position = one_position & (size[held] == n) & (low[held] == 1.0) & (high[held] == 1.0)
        is_document = one_document & (size[held] == k) & (low[held] <= 0.0) & (high[held] == 1.0) & ~is_position
        found = _Reader(k, n)
        for row in held[~(is_position | is_document)].tolist():
            cells = slice(matrix.indptr[row], matrix.indptr[row + 1])
            why = found.add(row, position[cells], document[cells], float(low[row]), float(high[row]))
            if why:
                return why
        return found.rows(size.size)


class _Reader:
    """Reads the rows one by one."""

    def __init__(self, k: int, n: int) -> None:
        self.k, self.n = k, n
        self.group = np.full(n, -1, dtype=np.int64)
        self.sizes: list[int] = []
        self.limits: list[tuple[int, int, int, float, float, bool]] = []
        self.singles: list[tuple[int, int, int, float, float]] = []

    def add(self, row: int, position: Ints, document: Ints, low: float, high: float) -> str:
        """The reason why the row is of none of the kinds; "" if it is."""
        wide = int(np.searchsorted(position, position[0], side="right"))
        first, last = int(position[0]), int(position[-1])
        documents = document[:wide]
        complete = (last - first + 1) * wide == position.size
        if not complete or (document.reshape(-1, wide) != documents).any():
            return "a row counts other documents at one position than at the next"
        if wide == self.n:
            counted = last - first + 1
            return "" if low <= counted <= high else "a row requires more or fewer documents than it has positions"
        group = self._group(documents)
        if group < 0:
            return "two groups of documents overlap"
        if first == 0:
            self.limits.append((row, group, last, low, high, False))
        elif last == self.k - 1 and self.k == self.n:
            self.limits.append((row, group, first - 1, wide - high, wide - low, True))
        elif first == last:
            self.singles.append((row, group, first, low, high))
        else:
            return "a row limits positions that are no prefix"
        return ""

    def _group(self, documents: Ints) -> int:
        group = int(self.group[documents[0]])
        if (self.group[documents] != group).any():
            return -1
        if group < 0:
            self.group[documents] = len(self.sizes)
            self.sizes.append(documents.size)
            return len(self.sizes) - 1
        return group if documents.size == self.sizes[group] else -1

    def rows(self, count: int) -> PrefixRows:
        k, rest = self.k, self.group < 0
        if rest.any():
            self.group[rest] = len(self.sizes)
            self.sizes.append(int(rest.sum()))
        size = np.array(self.sizes)
        groups = size.size
        lower, upper = np.zeros((groups, k), dtype=np.int64), np.repeat(size[:, None], k, axis=1)
        lower_row, upper_row = np.full((groups, k), -1), np.full((groups, k), -1)
        turned = np.zeros(count, dtype=bool)
        for row, group, last, low, high, suffix in self.limits:
            turned[row] = suffix
            if low > lower[group, last]:
                lower[group, last], lower_row[group, last] = int(low), row
            if high <= upper[group, last]:
                upper[group, last], upper_row[group, last] = int(high), row
        banned, wanted = np.zeros((groups, k), dtype=bool), np.zeros((groups, k), dtype=bool)
        singles = []
        for row, group, at, low, high in self.singles:
            if low > 0.0 or high < 1.0:
                singles.append((row, group, at))
            banned[group, at] |= high < 1.0 or low > 1.0
            wanted[group, at] |= low > 0.0
        banned |= wanted.any(axis=0) & ~wanted
        return PrefixRows(
            (k, self.n), frozen(self.group), frozen(lower), frozen(upper), frozen(lower_row), frozen(upper_row),
            frozen(turned), frozen(banned), tuple(singles),
        )  # fmt: skip


def prefix_proof(statement: Statement) -> Proof | None:
    """A proof that the linear program over the cells π of a ranking has an integral optimum; None for other rows or
    objectives. An objective of zeros needs none."""
    program = statement.program
    if program is None or program.objective.size != statement.matrix.shape[1] or not program.objective.any():
        return None
    cells = program.variables[0] if len(program.variables) == 1 else None
    if cells is None or cells.labeled or len(cells.shape) != 2:
        return None
    if (program.lower != 0).any() or (program.upper != 1).any():
        return None
    k, n = cells.shape
    rows = PrefixRows.from_matrix(statement.matrix, program.row_lower, program.row_upper, k)
    if isinstance(rows, str):
        return None
    profit = (program.objective if program.is_maximization else -program.objective).reshape(k, n)
    order = common_order(profit, rows.group)
    if order is None:
        return None
    return Proof("prefix groups", statement.matrix.shape, PrefixGroups(k, frozen(rows.group), frozen(order)))


def common_order(profit: Floats, group: Ints) -> Ints | None:
    """An order of the documents, group by group, in which no D[p, ·] increases, in exact comparison; or None.

    The sum over p of D[p, ·] does not increase either: it is an order by that sum. Equal sums mean equal D[p, ·].
    """
    k, n = profit.shape
    total = profit[0] - profit[-1] if k == n else profit[0]
    order = np.lexsort((-total, group))
    ranked = profit[:, order]
    together = group[order][1:] == group[order][:-1]
    if k < n:
        ranked = np.vstack([ranked, np.zeros(n)])
    steps = ranked[:-1] - ranked[1:]
    falls = (steps[:, :-1] - steps[:, 1:])[:, together]
    size = np.abs(ranked).max(axis=0)
    noise = 2.0**-49 * np.maximum(size[:-1], size[1:])[together]
    doubtful = falls <= noise
    first, second = np.flatnonzero(together), np.flatnonzero(together) + 1
    doubtful &= (ranked[:, first] != ranked[:, second])[:-1] | (ranked[:, first] != ranked[:, second])[1:]
    doubtful &= (ranked[:-1] != ranked[1:])[:, first] | (ranked[:-1] != ranked[1:])[:, second]
    for p, at in np.argwhere(doubtful).tolist():
        now, after = (tuple(map(Fraction, ranked[i, first[at] : second[at] + 1].tolist())) for i in (p, p + 1))
        if now[0] - after[0] < now[1] - after[1]:
            return None
    return np.asarray(order, dtype=np.int64)
