"""Runs that a checkpoint keeps: what a run is of, and where an earlier one of the same problem stands."""
# mypy: allow-subclassing-any

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankopt.optimize.history import Step
from rankopt.optimize.run import TrainingState
from rankopt.persistence.checkpoint import Checkpoint
from rankopt.persistence.identity import identity

if TYPE_CHECKING:
    from rankopt.data.queries import Queries

__all__ = ["CheckpointMixin"]

Floats = NDArray[np.float64]

SLOPES = "slopes of equal documents"
"""A part of what a checkpoint is of: references under a set, and of slots, changed when these slopes were shared."""


class CheckpointMixin:
    """What a ranker that minimises J does with `checkpoint`."""

    _of_the_run: ClassVar[tuple[str, ...]]
    checkpoint: Any
    get_params: Any
    _admissible: Any

    def _checkpoint(self) -> Checkpoint | None:
        """What keeps the run, if anything does."""
        return self.checkpoint if isinstance(self.checkpoint, Checkpoint | None) else Checkpoint(self.checkpoint)

    def _begun(
        self, kept: Checkpoint | None, queries: Queries, weights: Floats, start: Floats, judged: bool
    ) -> tuple[TrainingState | None, Sequence[Step]]:
        """Where an earlier run of the same problem stands, and its steps."""
        if kept is None:
            return None, ()
        of_run, defaults = self._of_run(queries, weights, start, judged), self._defaults()
        if self._planes_stayed():
            defaults.add(SLOPES)
        return kept.opened({**of_run, SLOPES: "shared"}, defaults)

    def _of_run(self, queries: Queries, weights: Floats, start: Floats, judged: bool) -> dict[str, str]:
        """What a run is of: digests of what leads to its result."""
        admissible = self._admissible()
        names = () if admissible is None else admissible.attributes
        matters = {name: value for name, value in self.get_params(deep=False).items() if name not in self._of_the_run}
        return identity(type(self).__name__, matters, queries, names, weights, start, judged)

    def _planes_stayed(self) -> bool:
        """Whether planes of before equal documents shared their slopes still lie below the loss."""
        return True

    def _defaults(self) -> set[str]:
        """The parameters that have their default."""
        given = signature(type(self)).parameters.values()
        return {one.name for one in given if repr(getattr(self, one.name)) == repr(one.default)}
