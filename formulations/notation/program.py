"""A program as plain data: what printing, files and questions of integrality read of any problem.

    maximise (or minimise)   objective · x + ½ xᵀ hessian x
    subject to               row_lower <= matrix x <= row_upper
                             lower <= x <= upper,   x[j] whole where integer[j]

A form says itself as such a record, so none of its readers has to know the form.

Names of variables and rows, computed from their index and never stored.

>>> block = Block("π", (2, 3))
>>> block.name(4), block.size
('π[1, 1]', 6)
>>> Block("block", ("a.org", "b.org")).name(1)
"block['b.org']"
>>> Block("document", (4, 7), by_label=True).name(1), Block("π", ((0, 2),)).name(0)
('document[7]', 'π[0, 2]')
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from formulations.arrays import Bools, Floats
from formulations.display import CompactReprMixin


@dataclass(frozen=True)
class Block:
    """A named, indexed family of variables or rows.

    `index` is a tuple of whole numbers (the extent of each dimension, C order) or a tuple of labels, one a member;
    `by_label` says so where the labels are whole numbers.
    """

    label: str
    index: tuple[Hashable, ...]
    by_label: bool = False

    @property
    def labelled(self) -> bool:
        return self.by_label or any(not isinstance(part, int | np.integer) for part in self.index)

    @property
    def shape(self) -> tuple[int, ...]:
        if self.labelled:
            return (len(self.index),)
        return tuple(int(part) for part in self.index if isinstance(part, int | np.integer))

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    def name(self, member: int) -> str:
        """The name of the member with this flat index."""
        if self.labelled:
            one = self.index[member]
            return f"{self.label}[{', '.join(map(repr, one)) if isinstance(one, tuple) else repr(one)}]"
        if not self.index:
            return self.label
        return f"{self.label}{[int(i) for i in np.unravel_index(member, self.shape)]}"


def name_at(blocks: Sequence[Block], index: int) -> str:
    """The name of one variable or row, counted through all blocks."""
    for block in blocks:
        if index < block.size:
            return block.name(index)
        index -= block.size
    raise IndexError(index)


def split_by_block(blocks: Sequence[Block], values: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """A flat vector as one array a block, in the block's shape."""
    parts: dict[str, NDArray[Any]] = {}
    start = 0
    for block in blocks:
        parts[block.label] = values[start : start + block.size].reshape(block.shape)
        start += block.size
    return parts


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
