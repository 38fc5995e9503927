"""A data set as an experiment uses it: stored once for all workers, and the tapes of the training runs on it."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from formulations.errors import FormulationError
from rankopt.data.queries import Queries
from rankopt.data.stored import store
from rankopt.experiments.tapes.recording import ArgmaxRecorder, Log, MasterRecorder, argmax_tape, master_tape
from rankopt.experiments.tapes.tape import Tape

__all__ = ["RecordedRun"]


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """Training of `ranker` on queries, in `folder`: data and tapes are written there once and found again.

    problems: about how many a tape holds. seconds: the limit of a recorded run.
    """

    ranker: Any
    queries: Queries
    folder: Path
    problems: int
    seconds: float
    seed: int

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the data and of how it is trained on."""
        known = hashlib.sha256()
        features = self.queries.features
        parts = [features] if isinstance(features, np.ndarray) else [features.data, features.indices, features.indptr]
        for part in (*parts, self.queries.offsets, self.queries.relevance):
            known.update(np.ascontiguousarray(part).tobytes())
        beside = ("callbacks", "engine", "n_jobs", "verbose", "time_limit")
        settings = sorted((name, repr(value)) for name, value in self.ranker.get_params().items() if name not in beside)
        known.update(repr(settings).encode())
        return known.hexdigest()[:8]

    def stored(self, queries: Queries, name: str) -> str:
        """Where queries are stored for the workers."""
        target = self.folder / f"{name}-{self.digest}"
        if not target.exists():
            store(queries, target)
        return str(target)

    def argmax_tape(self) -> Tape:
        return self._kept("argmax", lambda log: argmax_tape(log, self.problems, self.seed), argmax=ArgmaxRecorder)

    def master_tape(self, method: Any, name: str) -> Tape:
        """The masters of a run by this method."""
        count, label = max(1, self.problems // 2), f"master:{name}"
        return self._kept(label, lambda log: master_tape(log, count, label), master=MasterRecorder, method=method)

    def path(self, label: str) -> Path:
        """Where the tape with this label is kept."""
        return self.folder / f"{label.replace(':', '-')}-{self.digest}-{self.problems}-{self.seed}.npz"

    def _kept(self, label: str, made: Any, **parts: Any) -> Tape:
        """The tape with this label: read if it was kept, else recorded now."""
        if self.path(label).exists():
            return Tape.load(self.path(label))
        log = Log()
        recorders = {name: part(log) if isinstance(part, type) else part for name, part in parts.items()}
        usual = {"engine": "serial", "time_limit": self.seconds, "callbacks": (log.stepped,), "verbose": 0}
        ranker = clone(self.ranker).set_params(**usual, **recorders)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the tape of a run that was cut off is a tape
            try:
                ranker.fit(self.queries)
            except FormulationError:
                if not log.heard:
                    raise
        tape: Tape = made(log)
        tape.save(self.path(label))
        return tape
