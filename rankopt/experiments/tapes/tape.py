"""Tapes: the real sequence of problems that a training run met, kept to be replayed through any solver."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.brevity import CompactReprMixin
from formulations.errors import FormulationError
from formulations.forms.form import Form
from formulations.forms.grouped_simplex import GroupedSimplexQP
from formulations.forms.quadratic_program import QuadraticProgram
from formulations.solving.solve import solve
from rankopt.errors import DataError
from rankopt.experiments.tapes.stored_forms import Packed, unpacked
from rankopt.experiments.tapes.tape_file import FORMAT, checked_meta, members

__all__ = ["Tape", "RecordedProblem"]


@dataclass(frozen=True, eq=False)
class RecordedProblem(CompactReprMixin):
    """A problem on a tape. step: when the recorded run met it. known: a value that is attained and a bound that is
    proven, by our own solvers; what any other solver claims is held against them."""

    name: str
    form: Form
    step: int | None = None
    known: tuple[float, float] | None = None

    @classmethod
    def judged(cls, name: str, form: Form, step: int | None = None) -> RecordedProblem:
        """The problem with what the automatic solvers prove of it."""
        try:
            solution = solve(form)
        except FormulationError:
            return cls(name, form, step)
        return cls(name, form, step, (solution.value, solution.bound))


@dataclass(frozen=True, eq=False)
class Tape(CompactReprMixin):
    """Problems in the order in which they are replayed; `label` says what they are."""

    label: str
    problems: tuple[RecordedProblem, ...]

    @classmethod
    def of(cls, forms: Form | Iterable[Form], label: str | None = None) -> Tape:
        """A tape of problems given by hand."""
        given = [forms] if isinstance(forms, Form) else list(forms)
        if not given:
            raise DataError("a tape without problems measures nothing; give one problem at least")
        problems = tuple(RecordedProblem.judged(f"problem {number:03d}", form) for number, form in enumerate(given))
        masters = isinstance(given[0], GroupedSimplexQP | QuadraticProgram)
        return cls(label or ("master" if masters else "argmax"), problems)

    @property
    def kind(self) -> str:
        """The kind of its rows: "master" for a tape of planes, else "argmax"."""
        return "master" if self.label.partition(":")[0] == "master" else "argmax"

    @cached_property
    def _packed(self) -> tuple[bytes, dict[str, Any]]:
        packed = Packed()
        listed = [[taped.name, taped.step, packed.add(taped.form)] for taped in self.problems]
        meta = {"format": FORMAT, "label": self.label, "problems": listed, "records": packed.records}
        return _as_text(meta), {f"a{i}": array for i, array in enumerate(packed.arrays)}

    @cached_property
    def name(self) -> str:
        """The label and a fingerprint of all its numbers, as in "argmax:1f0c9a27"."""
        return _fingerprint(self.label, *self._packed)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the tape to an .npz file, which holds arrays only."""
        meta, arrays = self._packed
        known = np.array([taped.known or (np.nan, np.nan) for taped in self.problems])
        with Path(path).open("wb") as file:
            np.savez_compressed(file, meta=np.frombuffer(meta, dtype=np.uint8), known=known, **arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Tape:
        """The tape that `save` wrote, its fingerprint that of the file. Raises DataError where it did not.

        Files of others are read without trust: see `tape_file`; what is known of a problem is a claim, which
        `judged_again` works out anew.
        """
        meta, arrays = members(path)
        label, listed = checked_meta(path, meta)
        known = arrays.pop("known", np.empty(0))
        names = [f"a{i}" for i in range(len(arrays))]
        if known.shape != (len(listed), 2) or arrays.keys() != {*names}:
            raise DataError(f"{path} is damaged: it lacks arrays, or has others; record it again")
        forms = unpacked(meta["records"], [arrays[name] for name in names], [number for _, _, number in listed])
        pairs = [None if np.isnan(pair).any() else (float(pair[0]), float(pair[1])) for pair in known]
        told = zip(listed, forms, pairs, strict=True)
        tape = cls(label, tuple(RecordedProblem(name, form, step, pair) for (name, step, _), form, pair in told))
        tape.__dict__["name"] = _fingerprint(label, _as_text(meta), {name: arrays[name] for name in names})
        return tape

    def judged_again(self) -> Tape:
        """The tape with what the automatic solvers of this version prove."""
        return replace(
            self, problems=tuple(RecordedProblem.judged(one.name, one.form, one.step) for one in self.problems)
        )


def _as_text(meta: dict[str, Any]) -> bytes:
    return json.dumps(meta, ensure_ascii=False).encode()


def _fingerprint(label: str, meta: bytes, arrays: dict[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(meta)
    for array in arrays.values():
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return f"{label}:{digest.hexdigest()[:8]}"
