"""A program as plain data: what printing, files and questions of integrality read of any problem.

    maximise (or minimise)   objective · x + ½ xᵀ hessian x
    subject to               row_lower <= matrix x <= row_upper
                             lower <= x <= upper,   x[j] whole where integer[j]

A form says itself as such a record, so none of its readers has to know the form.
"""

from __future__ import annotations

from dataclasses import dataclass

from scipy.sparse import csr_array

from formulations.arrays import Bools, Floats
from formulations.brevity import CompactReprMixin
from formulations.notation.names import Block, name_at

__all__ = ["Program"]


@dataclass(frozen=True, eq=False)
class Program(CompactReprMixin):
    """`objective`, `lower`, `upper` and `integer` have one entry a variable, `row_lower` and `row_upper` one a row of
    `matrix`; a limit that is not there is infinite. No hessian means a linear objective. `variables` and `rows` name
    columns and rows by block; without names they are x[j] and row[i]."""

    objective: Floats
    matrix: csr_array
    row_lower: Floats
    row_upper: Floats
    lower: Floats
    upper: Floats
    maximises: bool = True
    integer: Bools | None = None
    variables: tuple[Block, ...] = ()
    rows: tuple[Block, ...] = ()
    hessian: csr_array | None = None

    def variable_name(self, column: int) -> str:
        return name_at(self.variables or (Block("x", (self.objective.size,)),), column)

    def row_name(self, row: int) -> str:
        return name_at(self.rows or (Block("row", (self.row_lower.size,)),), row)
