"""Problems as plain arrays and JSON, to be kept in a file of data only.

Records refer to each other by number, so what many problems share (a set of rankings) is stored once. The classes are a
closed list; nothing is read by evaluating it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from formulations.forms.form import Form
from formulations.tables import load
from rankopt.errors import DataError, OptionError

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
    "RankingSet": "formulations.sets.ranking_set:RankingSet",
    "Soft": "formulations.sets.soft:Soft",
    "SoftRanking": "formulations.sets.soft_ranking:SoftRanking",
}
"""What can be stored, `name: "module:class"`."""


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
            return arrays[value["array"]]
        if "csr" in value:
            return csr_array(tuple(whole(part) for part in value["csr"]), shape=tuple(value["shape"]))
        if "record" in value:
            return made[value["record"]]
        return tuple(whole(item) for item in value["tuple"])

    try:
        for record in records:
            parts = {name: whole(value) for name, value in record["fields"].items()}
            made.append(load(FORMS[record["class"]])(**parts))
        return [made[number] for number in wanted]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise DataError(f"the tape is damaged, or not written by this version: {error!r}; record it again") from error
