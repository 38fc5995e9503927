"""Values as data: what a saved model may hold, as JSON and plain arrays, and back.

    None, bool, int, float, str, list        themselves (not finite: {"float": "inf"})
    tuple, mapping                           {"tuple": [...]}, {"dict": [[key, value], ...]}
    array of numbers                         {"array": "arrays/0.npy"}
    array of strings, one-dimensional        {"strings": [...]}
    measure                                  {"measure": "nDCG@10"}, its own notation
    dataclass of `records`                   {"record": "solver:highs", "fields": {...}}
    classifier of `records`, not fitted      {"record": "classifier:...", "fields": {...}}, options beside the defaults
    enumeration of `records`                 {"member": "record:Stop", "name": "GAP"}

Nothing else can be stored, and nothing is read by evaluating it.
"""

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import MeasureError, ModelError
from rankopt.measures.measure import Measure
from rankopt.measures.notation import parse
from rankopt.persistence.npy import KINDS, array_of, npy_of
from rankopt.persistence.records import build, fields_of, member, name_of

DEPTH = 32
"""How deep values may be nested."""

VALUES = 1 << 20
"""How many values may stand in one file; an array counts as one."""

NOTATION = 1000
"""Characters that the notation of a measure may have."""


class Encoder:
    """Turns values into JSON and collects their arrays in `members`, file name → content."""

    def __init__(self) -> None:
        self.members: dict[str, bytes] = {}

    def encode(self, value: Any, what: str, depth: int = 0) -> Any:
        """The JSON of `value`; `what` names it in the ModelError that is raised where it cannot be stored."""
        if depth > DEPTH:
            raise ModelError(f"{what} cannot be saved because it is nested deeper than {DEPTH}.")
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, np.ndarray):
            return self._array(value, what)
        if isinstance(value, Enum):
            return {"member": _name(value, what), "name": value.name}
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, list | tuple):
            items = [self.encode(item, f"{what}[{i}]", depth + 1) for i, item in enumerate(value)]
            return items if isinstance(value, list) else {"tuple": items}
        if isinstance(value, Mapping):
            pairs = [
                [self.encode(key, f"a key of {what}", depth + 1), self.encode(item, f"{what}[{key!r}]", depth + 1)]
                for key, item in value.items()
            ]
            return {"dict": pairs}
        if isinstance(value, Measure):
            return {"measure": _notation(value, what)}
        name, fields = _name(value, what), fields_of(value)
        return {
            "record": name,
            "fields": {key: self.encode(item, f"{what}.{key}", depth + 1) for key, item in fields.items()},
        }

    def _array(self, value: NDArray[Any], what: str) -> Any:
        if value.dtype.kind in KINDS:
            name = f"arrays/{len(self.members)}.npy"
            self.members[name] = npy_of(value)
            return {"array": name}
        if value.ndim == 1 and all(isinstance(item, str) for item in value):
            return {"strings": [str(item) for item in value]}
        raise ModelError(f"{what} cannot be saved because it is an array of {value.dtype}; only numbers can.")


class Decoder:
    """Turns JSON back into values, with the arrays of `members`. Raises ModelError on anything it would not write."""

    def __init__(self, members: Mapping[str, bytes], writeable: bool = False) -> None:
        self.members = members
        self.writeable = writeable
        self._left = VALUES

    def decode(self, stored: Any, depth: int = 0) -> Any:
        """The value of parsed JSON."""
        if depth > DEPTH:
            raise ModelError(f"values are nested deeper than {DEPTH}.")
        self._left -= 1
        if self._left < 0:
            raise ModelError(f"it holds more than {VALUES} values.")
        if stored is None or isinstance(stored, bool | int | float | str):
            return stored
        if isinstance(stored, list):
            return [self.decode(item, depth + 1) for item in stored]
        match stored:
            case {"float": "inf" | "-inf" | "nan" as word, **rest} if not rest:
                return float(word)
            case {"tuple": list(items), **rest} if not rest:
                return tuple(self.decode(item, depth + 1) for item in items)
            case {"dict": list(pairs), **rest} if not rest:
                return self._dict(pairs, depth)
            case {"array": str(name), **rest} if not rest and name in self.members:
                array = array_of(self.members[name])
                return array.copy() if self.writeable else array
            case {"strings": list(items), **rest} if not rest and all(isinstance(item, str) for item in items):
                strings = np.empty(len(items), dtype=object)
                strings[:] = items
                return strings
            case {"measure": str(notation), **rest} if not rest:
                return _measure(notation)
            case {"record": str(name), "fields": dict(fields), **rest} if not rest:
                return build(name, {key: self.decode(item, depth + 1) for key, item in fields.items()})
            case {"member": str(name), "name": str(label), **rest} if not rest:
                return member(name, label)
        raise ModelError(f"{str(stored)[:80]!r} is no value that a model is saved with.")

    def _dict(self, pairs: list[Any], depth: int) -> dict[Any, Any]:
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise ModelError("a dictionary is not a list of pairs.")
        decoded = [(self.decode(key, depth + 1), self.decode(value, depth + 1)) for key, value in pairs]
        try:
            return dict(decoded)
        except TypeError as error:
            raise ModelError(f"a key of a dictionary is no key ({error}).") from error


def _name(value: Any, what: str) -> str:
    name = name_of(type(value))
    if name is None:
        raise ModelError(
            f"{what} cannot be saved because a {type(value).__name__} is not data; a saved model holds numbers, "
            "strings, arrays, measures by their notation, and listed dataclasses of rankopt and formulations. A "
            "loss or bound of your own is saved by its name: give it a line in LOSSES or BOUNDS."
        )
    return name


def _notation(measure: Measure, what: str) -> str:
    notation = str(measure)
    try:
        same = parse(notation) == measure
    except MeasureError:
        same = False
    if not same:
        raise ModelError(f"{what} cannot be saved because {notation} does not read back as the same measure.")
    return notation


def _measure(notation: str) -> Measure:
    if len(notation) > NOTATION:
        raise ModelError(f"the notation of a measure has {len(notation)} characters.")
    try:
        return parse(notation)
    except Exception as error:  # whatever a hostile notation does to its parser
        raise ModelError(f"a measure cannot be read ({error}).") from error
