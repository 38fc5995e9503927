"""Evidence about total unimodularity: a proof, a witness, or neither.

A matrix is totally unimodular if each of its square submatrices has determinant -1, 0 or 1. Then every vertex of {x : b
<= Ax <= c, l <= x <= u} is integral for all integral b, c, l, u; of the matrices with full row rank no others have this
property [Hoffman and Kruskal, 1956].

All arrays are read-only and all numbers exact; `check_evidence` checks each record from the matrix alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints
from formulations.display import CompactReprMixin, plural

Signs: TypeAlias = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Coloring(CompactReprMixin):
    """Two classes of rows, at most two entries a column: entries of equal sign in different classes, of unequal sign in
    the same class [Heller and Tompkins, 1956]."""

    side: Signs


@dataclass(frozen=True, eq=False)
class RowOrder(CompactReprMixin):
    """An order of the rows in which the entries of each column, all of one sign, are consecutive."""

    order: Ints


@dataclass(frozen=True, eq=False)
class Families(CompactReprMixin):
    """The laminar family, 0 or 1, of each row; the entries of each row are of one sign."""

    family: Signs


@dataclass(frozen=True, eq=False)
class Tree(CompactReprMixin):
    """A directed tree with one arc a row, tail[i] → head[i]. Column j is a path in it: entries +1 for arcs along the
    way and -1 for arcs against it [Tutte, 1965; Schrijver, Theory of Linear and Integer Programming, 19.3]."""

    tail: Ints
    head: Ints


@dataclass(frozen=True, eq=False)
class Signings(CompactReprMixin):
    """For each set of rows (bits of its index) signs of sums -1, 0 or 1 in every column [Ghouila-Houri, 1962]."""

    signs: Signs


@dataclass(frozen=True, eq=False)
class Removal(CompactReprMixin):
    """Removed rows (axis 0) or columns (axis 1): each has at most one entry (partner -1) or equals ± its partner, which
    stays. Removal preserves total unimodularity in both directions."""

    axis: int
    dropped: Ints
    partner: Ints


@dataclass(frozen=True, eq=False)
class Part(CompactReprMixin):
    """A block of the matrix that shares no row or column with the others, and its proof."""

    rows: Ints
    columns: Ints
    proof: Proof


@dataclass(frozen=True, eq=False)
class Parts(CompactReprMixin):
    """The removals, in order, and proofs of the remaining blocks."""

    removals: tuple[Removal, ...]
    parts: tuple[Part, ...]


@dataclass(frozen=True, eq=False)
class TwoSum(CompactReprMixin):
    """Rows R₁ and columns C₁ such that no other row has an entry in C₁, and R₁ with the other columns is the product of
    its column and row through the entry (row, column); proofs of R₁ × C₁ + column and of all other rows + row × all
    other columns, both in the order of the matrix [Seymour, 1980]."""

    rows: Ints
    columns: Ints
    row: int
    column: int
    first: Proof
    second: Proof


@dataclass(frozen=True, eq=False)
class ThreeSum(CompactReprMixin):
    """Rows R₁ and columns C₁ such that R₁ × all other columns is a product a b, and all other rows × C₁ a product d c;
    b and c are the first rows there that are not 0. Proofs of [A a a; c 0 ε] and [ε 0 b; d d B], where ε = `sign`, A is
    R₁ × C₁, B all other rows × all other columns, in the order of the matrix [Seymour, 1980; Schrijver, 19.4]."""

    rows: Ints
    columns: Ints
    sign: int
    first: Proof
    second: Proof


@dataclass(frozen=True, eq=False)
class Pivot(CompactReprMixin):
    """A proof of the matrix after a pivot on the entry (row, column), which is equivalent."""

    row: int
    column: int
    proof: Proof


@dataclass(frozen=True, eq=False)
class PrefixGroups(CompactReprMixin):
    """Evidence for a linear program over `positions` × n cells in C order with its objective: rows limit disjoint
    groups on prefixes of the positions (`group`: the group of each document). In `order`, group by group, the profit of
    a position minus that of the next never increases. It has an integral optimum (`prefix_limits`)."""

    positions: int
    group: Ints
    order: Ints


Evidence: TypeAlias = (
    Coloring | RowOrder | Families | Tree | Signings | Parts | TwoSum | ThreeSum | Pivot | PrefixGroups
)


@dataclass(frozen=True, eq=False)
class Proof(CompactReprMixin):
    """The matrix (`transposed`: its transpose, which is equivalent) is totally unimodular, by `evidence`. Kind "prefix
    groups" is weaker: the linear program has an integral optimum for its own objective.

    kind   "bipartite", "interval", "laminar", "network" or "enumeration"; of evidence in parts the kind of the hardest
           part, or "series-parallel" if nothing remains; or "prefix groups"
    shape  rows and columns of the matrix
    """

    kind: str
    shape: tuple[int, int]
    evidence: Evidence
    transposed: bool = False

    def __str__(self) -> str:
        rows, columns = self.shape
        if isinstance(self.evidence, PrefixGroups):
            groups = np.unique(self.evidence.group).size
            return (
                f"Proof: this {rows} × {columns} linear program has an integral optimum (prefix groups)\n"
                f"  limits on prefixes over {groups} disjoint groups, profits of rank one inside them; the matrix "
                "alone is not proved totally unimodular"
            )
        text = f"Proof: {rows} × {columns} matrix is totally unimodular ({self._reason()})"
        return "\n".join([text, *self._steps("  ")])

    def _reason(self) -> str:
        sums = self._sums()
        kind = f"{sums}-sum, its hardest part {self.kind}" if sums else self.kind
        return f"{kind}, transposed" if self.transposed else kind

    def _sums(self) -> int:
        """3 if the evidence splits a 3-sum, 2 if only 2-sums, 0 if neither."""
        if isinstance(self.evidence, Pivot):
            return self.evidence.proof._sums()
        if isinstance(self.evidence, Parts):
            return max((part.proof._sums() for part in self.evidence.parts), default=0)
        if not isinstance(self.evidence, TwoSum | ThreeSum):
            return 0
        own = 3 if isinstance(self.evidence, ThreeSum) else 2
        return max(own, self.evidence.first._sums(), self.evidence.second._sums())

    def _steps(self, margin: str) -> list[str]:
        """The removals and the remaining parts, one per line."""
        evidence, lines = self.evidence, list[str]()
        parts: tuple[Proof, ...] = ()
        if isinstance(evidence, TwoSum | ThreeSum):
            lines = [f"{margin}{2 if isinstance(evidence, TwoSum) else 3}-sum of two matrices"]
            parts = evidence.first, evidence.second
        elif isinstance(evidence, Pivot):
            return [
                f"{margin}after a pivot on row {evidence.row}, column {evidence.column}",
                *evidence.proof._steps(margin),
            ]
        elif isinstance(evidence, Parts):
            dropped = sum(removal.dropped.size for removal in evidence.removals)
            if dropped:
                lines = [f"{margin}{dropped} rows and columns left out: one entry, or equal to another up to sign"]
            parts = tuple(part.proof for part in evidence.parts)
        for proof in parts:
            lines.append(f"{margin}{proof.shape[0]} × {proof.shape[1]} of it: {proof._reason()}")
            lines += proof._steps(margin + "  ")
        return lines


@dataclass(frozen=True, eq=False)
class Vertex(CompactReprMixin):
    """A fractional vertex x = numerators / denominator of the problem's own feasible set.

    `objective`, integral, has its unique maximum at x: the sum of the outward normals of all limits tight at x.
    """

    numerators: Ints
    denominator: int
    objective: Ints

    @property
    def x(self) -> Floats:
        return self.numerators / self.denominator

    @property
    def value(self) -> Fraction:
        """The objective at x, exactly."""
        return Fraction(
            sum(int(c) * int(v) for c, v in zip(self.objective, self.numerators, strict=True)), self.denominator
        )


WRITTEN_OUT = 40  # rows up to which a witness prints its submatrix


@dataclass(frozen=True, eq=False)
class Witness(CompactReprMixin):
    """A square submatrix with a determinant other than -1, 0 and 1: the matrix is not totally unimodular.

    `minimal`: every smaller square submatrix of it has determinant -1, 0 or 1. `entries`: its nonzeros as (row index,
    column index, value) within the submatrix, row by row.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    determinant: int | Fraction
    entries: tuple[tuple[int, int, int | Fraction], ...]
    row_names: tuple[str, ...]
    column_names: tuple[str, ...]
    minimal: bool
    vertex: Vertex | None = None

    def __str__(self) -> str:
        size, value = len(self.rows), shown(self.determinant)
        shrunk = ", and every smaller square part of it has determinant -1, 0 or 1" if self.minimal and size > 1 else ""
        lines = [f"Witness: not totally unimodular; this {size} × {size} part has determinant {value}{shrunk}"]
        if size <= WRITTEN_OUT:
            width = max(len(name) for name in self.row_names)
            cells = [["."] * size for _ in self.rows]
            for i, j, entry in self.entries:
                cells[i][j] = shown(entry)
            across = max(len(cell) for row in cells for cell in row)
            for name, row in zip(self.row_names, cells, strict=True):
                lines.append(f"  {name:<{width}} | {' '.join(f'{cell:>{across}}' for cell in row)}")
            lines.append(f"  columns: {', '.join(self.column_names)}")
        else:
            some = [", ".join(names[:3]) for names in (self.row_names, self.column_names)]
            lines.append(f"  of rows {some[0]}, ... and columns {some[1]}, ...")
        if self.vertex is None:
            lines.append("  no fractional vertex was found: the linear program may be integral all the same")
        else:
            part = np.flatnonzero(self.vertex.numerators % self.vertex.denominator)
            several = plural(part.size, "variable") + (" is" if part.size == 1 else " are")
            lines.append(f"  the problem has a fractional vertex: {several} not integral at it")
        return "\n".join(lines)


def shown(value: int | Fraction) -> str:
    """A number for display: floats are fractions with a large denominator."""
    return str(value) if Fraction(value).denominator < 1000 else f"{float(value):g}"


@dataclass(frozen=True)
class Undecided(CompactReprMixin):
    """Neither proof nor witness was found. `tried` lists the methods."""

    tried: tuple[str, ...]

    def __str__(self) -> str:
        return "\n  ".join(["Undecided: neither a proof nor a witness was found. Tried:", *self.tried])
