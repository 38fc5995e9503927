"""Names of variables and rows, computed from their index and never stored.

>>> block = Block("π", (2, 3))
>>> block.name(4), block.size
('π[1, 1]', 6)
>>> Block("block", ("a.org", "b.org")).name(1)
"block['b.org']"
>>> Block("document", (4, 7), by_label=True).name(1), Block("π", ((0, 2),)).name(0)
('document[7]', 'π[0, 2]')
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Block", "name_at", "split_by_block"]


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
