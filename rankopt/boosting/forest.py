"""Grown trees as data: texts of models that are averaged, and the scores that they give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.brevity import CompactReprMixin
from rankopt.boosting.packages import lightgbm, table
from rankopt.boosting.tree_text import check_text
from rankopt.errors import ModelError

__all__ = ["Forest", "check_trees"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Forest(CompactReprMixin):
    """texts: LightGBM's text of each member, in bytes; an empty one scores all documents 0."""

    texts: tuple[NDArray[np.uint8], ...]

    @classmethod
    def of(cls, texts: Sequence[str]) -> Forest:
        return cls(tuple(np.frombuffer(text.encode("ascii"), dtype=np.uint8) for text in texts))

    @cached_property
    def boosters(self) -> tuple[Any, ...]:
        """The members that have trees."""
        package = lightgbm()
        return tuple(package.Booster(model_str=text.tobytes().decode("ascii")) for text in self.texts if text.size)

    def scores(self, features: Any, threads: int) -> Floats:
        """The mean (N,) over the members; threads: 0 leaves their number to LightGBM."""
        total = np.zeros(features.shape[0])
        for booster in self.boosters if total.size else ():
            total += booster.predict(table(features), num_threads=threads)
        return total / len(self.texts)


def check_trees(texts: Any, rounds: Any, features: int) -> None:
    """ModelError unless these are texts of so many trees at most, which split by so many features."""
    if not (isinstance(texts, tuple) and texts and type(rounds) is int):
        raise ModelError("trees_ or n_rounds_ is missing, or of another type.")
    for text in texts:
        if not (isinstance(text, np.ndarray) and text.dtype == np.uint8 and text.ndim == 1):
            raise ModelError("trees_ holds no texts.")
        try:
            found = check_text(text.tobytes().decode("ascii"), features) if text.size else 0
        except UnicodeDecodeError as error:
            raise ModelError(f"trees_ holds no text ({error}).") from error
        if found > rounds:
            raise ModelError(f"a text of trees_ has {found} trees, and n_rounds_ says {rounds} at most.")
