"""What every step of a run with trees did, and what it was predicted to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


@dataclass(frozen=True, eq=False)
class TreeHistory:
    """The steps of a run as columns: `history.measure[i]` is M after step i, and so for each field of `TreeStep`."""

    step: Ints
    sweep: Ints
    tree: Ints
    weight: Floats
    predicted: Floats
    measure: Floats
    judged: Floats

    def __post_init__(self) -> None:
        for field in fields(self):
            column = getattr(self, field.name)
            if not isinstance(column, np.ndarray) or column.shape != np.shape(self.step) or column.ndim != 1:
                raise ValueError(f"{field.name} of a history is no column of numbers, one a step")

    @classmethod
    def of(cls, steps: Sequence[TreeStep]) -> TreeHistory:
        """The history of these steps."""
        columns: dict[str, Any] = {
            field.name: np.array([getattr(step, field.name) for step in steps], dtype=np.float64)
            for field in fields(TreeStep)
        }
        return cls(**columns | {name: columns[name].astype(np.int64) for name in ("step", "sweep", "tree")})

    def __len__(self) -> int:
        return int(self.step.size)

    def __getitem__(self, index: int) -> TreeStep:
        return TreeStep(**{field.name: getattr(self, field.name)[index].item() for field in fields(TreeStep)})
