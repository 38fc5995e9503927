"""Losses of patterns of a user's own: a function, asked once for all cells.

>>> import numpy as np
>>> first_three = Cells(lambda good, bads, relevant, others: (good + bads < 3) / np.maximum(relevant, 1))
>>> first_three.earnings(np.array([0.0, 1.0]), np.array([0, 2])).table.reshape(2, 2, 2)[1]
array([[1., 0.],
       [1., 0.]])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from formulations.arrays import Floats, Ints
from formulations.errors import InvalidProblem
from formulations.forms.earnings import Earnings
from formulations.patterns.losses import relevant

__all__ = ["Cells", "StepwiseLoss"]


@dataclass(frozen=True, eq=False)
class Cells:
    """cell(good, bads, relevant, others): what a relevant document earns that has `good` relevant ones and `bads`
    others above it, in a query with so many `relevant` and `others`; arrays of counts in, the same shape out."""

    cell: Callable[[Ints, Ints, int, int], Floats]

    graded = False

    def earnings(self, relevance: Floats, offsets: Ints) -> Earnings:
        tables, known = [], dict[tuple[int, int], Floats]()
        for low, high in pairwise(offsets.tolist()):
            good = int(relevant(relevance[low:high]).sum())
            shape = (good, high - low - good)
            if shape not in known:
                known[shape] = self._table(*shape)
            tables.append(known[shape])
        return Earnings.by_table(tables, relevance.size)

    def _table(self, good: int, bads: int) -> Floats:
        """(chains, others + 1, relevant + 1): others stand before the relevant, being of lower grade."""
        b, g = np.meshgrid(np.arange(bads + 1), np.arange(good), indexing="ij")
        cells = np.zeros((bads + 1, good + 1))
        cells[:, :good] = _asked("cell", self.cell(g, b, good, bads), g.shape)
        if not good:
            return np.zeros((1, bads + 1))
        return cells[:1] if not bads else np.stack([np.zeros(cells.shape), cells])


@dataclass(frozen=True, eq=False)
class StepwiseLoss:
    """step(grade, grades, above): what a document of this grade earns below `above[i]` documents of grades[i], rising;
    grades (G,), above (G, ...) in, (...) out."""

    step: Callable[[float, Floats, Ints], Floats]

    graded = True

    def earnings(self, relevance: Floats, offsets: Ints) -> Earnings:
        tables = []
        for low, high in pairwise(offsets.tolist()):
            grades, sizes = np.unique(relevance[low:high], return_counts=True)
            above = np.indices(tuple(int(size) + 1 for size in sizes))
            steps = [_asked("step", self.step(grade, grades, above), above.shape[1:]) for grade in grades.tolist()]
            for chain, step in enumerate(steps):
                np.moveaxis(step, chain, 0)[-1] = 0.0  # none of this grade is left
            tables.append(np.stack(steps))
        return Earnings.by_table(tables, relevance.size)


def _asked(name: str, said: object, shape: tuple[int, ...]) -> Floats:
    try:
        return np.array(np.broadcast_to(np.asarray(said, dtype=np.float64), shape))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidProblem(f"{name}(...) must return numbers of shape {shape}: {error}") from None
