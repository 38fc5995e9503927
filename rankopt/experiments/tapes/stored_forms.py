"""Problems as plain arrays and JSON, to be kept in a file of data only.

Records refer to each other by number, so what many problems share (a set of rankings) is stored once. The classes are a
closed list; nothing is read by evaluating it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from formulations.errors import FormulationError
from formulations.forms.form import Form
from formulations.tables import load
from rankopt.errors import DataError, OptionError
from rankopt.experiments.tapes.stored_parts import check_parts

__all__ = ["FORMS", "Packed", "unpacked"]

FORMS = {
    "Assignment": "formulations.forms.assignment:Assignment",
    "Block": "formulations.notation.names:Block",
    "ConstrainedRanking": "formulations.sets.constrained_ranking:ConstrainedRanking",
    "Constraint": "formulations.sets.constraint:Constraint",
    "Earnings": "formulations.forms.earnings:Earnings",
    "FeatureMap": "formulations.forms.feature_map:FeatureMap",
    "GroupedSimplexQP": "formulations.forms.grouped_simplex:GroupedSimplexQP",
    "LatticePath": "formulations.forms.lattice_path:LatticePath",
    "LinearProgram": "formulations.forms.linear_program:LinearProgram",
    "MinCostFlow": "formulations.forms.min_cost_flow:MinCostFlow",
    "PatternRanking": "formulations.forms.pattern_ranking:PatternRanking",
    "PrefixGroupRanking": "formulations.forms.prefix_group_ranking:PrefixGroupRanking",
    "QuadraticProgram": "formulations.forms.quadratic_program:QuadraticProgram",
    "RankTwoAssignment": "formulations.forms.rank_two_assignment:RankTwoAssignment",
    "RescaledRanking": "formulations.forms.rescaled_ranking:RescaledRanking",
    "RankingSet": "formulations.sets.ranking_set:RankingSet",
}
"""What can be stored, `name: "module:class"`."""


LARGEST = range(1 << 31)
"""Rows or columns that a matrix may have."""


_DAMAGE = (
    FormulationError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, MemoryError,
)  # fmt: skip


class Packed:
    """Collects records as JSON and their arrays."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.arrays: list[NDArray[Any]] = []
        self._known: dict[int, tuple[int, Any]] = {}

    def add(self, record: Any) -> int:
        """The number that the record has among all."""
        if id(record) in self._known:
            return self._known[id(record)][0]
        name = type(record).__name__
        if name not in FORMS or load(FORMS[name]) is not type(record):
            raise OptionError(
                f"a {name} cannot be put on a tape; restate the problem as one of {', '.join(sorted(FORMS))}"
            )
        parts = {part.name: self._plain(getattr(record, part.name)) for part in fields(record) if part.init}
        self.records.append({"class": name, "fields": parts})
        number = len(self.records) - 1
        self._known[id(record)] = number, record  # held, so that its id stays its own
        return number

    def _plain(self, value: Any) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.ndarray):
            if value.dtype.kind not in "biuf":
                raise OptionError(f"an array of {value.dtype} cannot be put on a tape; give numbers")
            self.arrays.append(value)
            return {"array": len(self.arrays) - 1}
        if isinstance(value, csr_array):
            parts = [self._plain(part) for part in (value.data, value.indices, value.indptr)]
            return {"csr": parts, "shape": list(map(int, value.shape))}
        if isinstance(value, tuple | list):
            return {"tuple": [self._plain(item) for item in value]}
        if is_dataclass(value):
            return {"record": self.add(value)}
        raise OptionError(f"a {type(value).__name__} cannot be put on a tape; use numbers and words as labels")


def unpacked(records: list[dict[str, Any]], arrays: list[NDArray[Any]], wanted: list[int]) -> list[Form]:
    """The problems with these numbers. Raises DataError for what `Packed` does not write."""
    made: list[Any] = []

    def whole(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        if "array" in value:
            return arrays[_place(value["array"], arrays)]
        if "csr" in value:
            return _matrix([whole(part) for part in value["csr"]], value["shape"])
        if "record" in value:
            return made[_place(value["record"], made)]
        return tuple(whole(item) for item in value["tuple"])

    try:
        for record in records:
            parts = {name: whole(value) for name, value in record["fields"].items()}
            kind = load(FORMS[record["class"]])
            check_parts(kind, parts)
            made.append(kind(**parts))
        forms = [made[_place(number, made)] for number in wanted]
        for form in forms:
            if not isinstance(form, Form):
                raise TypeError(f"a {type(form).__name__} is no problem")
            if not np.isfinite(form.scale):
                raise ValueError("its numbers overflow")
    except (
        FormulationError,
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        if isinstance(error, DataError):
            raise
        why = f"{type(error).__name__} {error}"[:200]
        raise DataError(f"the tape is damaged, or not written by this version: {why}; record it again") from error
    return forms


def _place(number: Any, among: Sequence[Any]) -> int:
    """A number of a list, none counted from its end."""
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < len(among):
        raise IndexError(f"{str(number)[:40]} is none of {len(among)}")
    return number


def _matrix(parts: list[Any], shape: Any) -> csr_array:
    """A sparse matrix whose indices stay inside it."""
    data, indices, starts = parts
    rows, columns = (_place(side, LARGEST) for side in shape)
    if data.ndim != 1 or data.dtype.kind != "f" or indices.dtype.kind != "i" or starts.dtype.kind != "i":
        raise TypeError("a sparse matrix has entries, columns and starts")
    if indices.shape != data.shape or starts.shape != (rows + 1,) or starts[0] != 0 or starts[-1] != data.size:
        raise ValueError("a sparse matrix whose rows do not fit its entries")
    if (np.diff(starts) < 0).any() or (data.size and not 0 <= indices.min() <= indices.max() < columns):
        raise ValueError("a sparse matrix with entries outside of it")
    return csr_array((data, indices, starts), shape=(rows, columns))
