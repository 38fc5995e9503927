"""What every step of a run with trees did, and what it was predicted to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankopt.optimize.columns import Columns

__all__ = ["TreeHistory", "TreeStep"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class TreeStep:
    """One step, counted from 1. sweep: 0 where a tree is added, else the pass over all trees. tree: which one, from 0.
    weight: what its weight is now; 0 is left out. predicted: M on its line there, by the sweep. measure: M of the
    training queries after the step, measured: `predicted` where the tree got this weight, else as before. judged: the
    measure on eval_set then, NaN without one; of a pass its last step has it, when the pass is
    over."""

    step: int
    sweep: int
    tree: int
    weight: float
    predicted: float
    measure: float
    judged: float = np.nan


@dataclass(frozen=True, eq=False, repr=False)
class TreeHistory(Columns[TreeStep]):
    """The steps of a run as columns: `history.measure[i]` is M after step i, and so for each field of `TreeStep`."""

    row: ClassVar[type[TreeStep]] = TreeStep
    drawn: ClassVar[tuple[str, ...]] = ("measure", "judged")

    step: Ints
    sweep: Ints
    tree: Ints
    weight: Floats
    predicted: Floats
    measure: Floats
    judged: Floats
