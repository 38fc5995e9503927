"""Saved models: a zip of one JSON member and plain arrays. Reading one never executes its content.

    model.json       {"format", "version", "class", "params", "fitted"}, values as `persistence.values` writes them
    arrays/0.npy     the arrays that it names
    SHA256SUMS       the digest of each member

The classes that can be saved are those of `rankopt.rankers.MODEL_CLASSES`; `_saved` lists the fitted attributes that
each stores. The same model gives the same bytes.

Values that can be stored, and their JSON:

    None, bool, int, float, str, list        themselves (not finite: {"float": "inf"})
    tuple, mapping                           {"tuple": [...]}, {"dict": [[key, value], ...]}
    array of numbers                         {"array": "arrays/0.npy"}
    array of strings, one-dimensional        {"strings": [...]}
    measure                                  {"measure": "nDCG@10"}, its own notation
    dataclass of `records`                   {"record": "solver:highs", "fields": {...}}
    enumeration of `records`                 {"member": "record:Stop", "name": "GAP"}

Nothing else can be stored, and nothing is evaluated when read.
"""

import json
import math
from collections.abc import Mapping
from enum import Enum
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.registry import load
from rankopt.errors import MeasureError, ModelError
from rankopt.measures.measure import Measure
from rankopt.measures.notation import parse
from rankopt.persistence.archive import KINDS, array_of, manifest_of, npy_of, read_archive, write_archive
from rankopt.persistence.archive import LIMIT_MANIFEST as LIMIT
from rankopt.persistence.records import build, fields_of, member, name_of

DEPTH = 32
"""Largest depth of nested values."""

VALUES = 1 << 20
"""Largest number of values in one file; an array counts as one."""

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


FORMAT = "rankopt model"
VERSION = 1
MANIFEST = "model.json"

MODEL_CLASSES = "rankopt.rankers:MODEL_CLASSES"
"""The classes that can be saved, loaded on use."""


def save_model(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted ranker of `rankopt.rankers` to `path`. An existing file is replaced atomically.

    Raises ModelError when the model, a parameter or a fitted attribute is not data (callbacks, random generators,
    pipelines) and when fitted attributes do not fit together, `sklearn.exceptions.NotFittedError` before fit, OSError
    when the file cannot be written.
    """
    from sklearn.utils.validation import check_is_fitted

    name = _class_name(model)
    check_is_fitted(model)
    model._check_storable()
    try:
        model._check_loaded()
    except ModelError as error:
        raise ModelError(f"This {name} cannot be saved, for it could not be loaded: {error} Fit it again.") from error
    encoder = Encoder()
    params = {
        key: encoder.encode(value, f"the parameter {key} of {name}")
        for key, value in model.get_params(deep=False).items()
        if key not in model._of_the_run
    }
    fitted = {
        key: encoder.encode(getattr(model, key), f"{key} of {name}") for key in model._saved if hasattr(model, key)
    }
    manifest = {"format": FORMAT, "version": VERSION, "class": name, "params": params, "fitted": fitted}
    text = json.dumps(manifest, indent=1, sort_keys=True, allow_nan=False).encode("ascii")
    if len(text) > LIMIT:
        raise ModelError(
            f"{name} cannot be saved because its names and parameters take {len(text)} bytes, more than {LIMIT}; give "
            "features shorter names, or none."
        )
    write_archive(path, {MANIFEST: text, **encoder.members})


def load_model(path: str | PathLike[str]) -> Any:
    """The fitted ranker that `save_model` wrote to `path`.

    Raises ModelError when the file is damaged, of a newer version, or holds anything but a ranker of this package, and
    OSError when it cannot be opened. Nothing in the file is ever executed.
    """
    members = read_archive(path)
    try:
        return _model(_manifest(members.pop(MANIFEST, b"")), Decoder(members))
    except ModelError as error:
        raise ModelError(f"{path} cannot be loaded: {error}") from error


def _class_name(model: Any) -> str:
    kind = type(model)
    qualified = f"{kind.__module__}:{kind.__qualname__}"
    rankers: dict[str, str] = load(MODEL_CLASSES)
    for name, listed in rankers.items():
        if listed == qualified:
            return name
    if hasattr(model, "steps"):
        others = ", ".join(type(step).__name__ for _, step in model.steps[:-1])
        raise ModelError(
            f"A {kind.__name__} cannot be saved because its steps ({others}) are not models of rankopt; save its last "
            "step by `save_model(pipeline[-1], path)` and build the other steps again before predict."
        )
    if hasattr(model, "best_estimator_"):
        raise ModelError(f"A {kind.__name__} cannot be saved because it is a search; save its `best_estimator_`.")
    listed_names = ", ".join(rankers)
    raise ModelError(f"A {kind.__name__} cannot be saved because its class is not one of {listed_names}.")


def _manifest(content: bytes) -> dict[str, Any]:
    manifest = manifest_of(content, MANIFEST, FORMAT)
    version = manifest.get("version")
    if type(version) is not int or version < 1:
        raise ModelError(f"its version is {str(version)[:80]!r}, not a number.")
    if version > VERSION:
        raise ModelError(f"it has version {version} and this rankopt reads up to {VERSION}; upgrade rankopt.")
    if not (isinstance(manifest.get("params"), dict) and isinstance(manifest.get("fitted"), dict)):
        raise ModelError(f"{MANIFEST} lacks params or fitted.")
    return manifest


def _model(manifest: dict[str, Any], decoder: Decoder) -> Any:
    name = manifest.get("class")
    if not isinstance(name, str) or name not in load(MODEL_CLASSES):
        raise ModelError(f"its class {str(name)[:80]!r} is not one of {', '.join(load(MODEL_CLASSES))}.")
    kind = load(load(MODEL_CLASSES)[name])
    _known(manifest["params"], set(kind._get_param_names()) - set(kind._of_the_run), f"parameter of {name}")
    _known(manifest["fitted"], set(kind._saved), f"fitted attribute of {name}")
    model = kind(**{key: decoder.decode(value) for key, value in manifest["params"].items()})
    for key, value in manifest["fitted"].items():
        setattr(model, key, decoder.decode(value))
    model._check_loaded()
    return model


def _known(names: dict[str, Any], known: set[str], what: str) -> None:
    unknown = names.keys() - known
    if unknown:
        raise ModelError(f"{min(unknown)[:80]!r} is no {what}.")
