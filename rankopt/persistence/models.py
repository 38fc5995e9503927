"""Saved models: data only. A zip of one JSON member and plain arrays; reading one runs nothing that stands in it.

    model.json       {"format", "version", "class", "params", "fitted"}, values as `persistence.values` writes them
    arrays/0.npy     the arrays that it names
    SHA256SUMS       the digest of each member

The classes that can be saved are those of `rankopt.rankers.RANKERS`; what each keeps beyond its parameters it says in
`_saved`. The same model gives the same bytes.
"""

import json
from os import PathLike
from typing import Any

from formulations.tables import load
from rankopt.errors import ModelError
from rankopt.persistence.archive import read_archive, write_archive
from rankopt.persistence.manifest import LIMIT, manifest_of
from rankopt.persistence.values import Decoder, Encoder

FORMAT = "rankopt model"
VERSION = 1
MANIFEST = "model.json"

RANKERS = "rankopt.rankers:RANKERS"
"""The closed list of what a file may be, loaded on use."""


def save_model(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted ranker of `rankopt.rankers` to `path`; a file there is replaced in one step or stays whole.

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
    place = f"{kind.__module__}:{kind.__qualname__}"
    rankers: dict[str, str] = load(RANKERS)
    for name, listed in rankers.items():
        if listed == place:
            return name
    if hasattr(model, "steps"):
        others = ", ".join(type(step).__name__ for _, step in model.steps[:-1])
        raise ModelError(
            f"A {kind.__name__} cannot be saved because its steps ({others}) are not models of rankopt; save its last "
            "step by `save_model(pipeline[-1], path)` and build the other steps again before predict."
        )
    if hasattr(model, "best_estimator_"):
        raise ModelError(f"A {kind.__name__} cannot be saved because it is a search; save its `best_estimator_`.")
    raise ModelError(f"A {kind.__name__} cannot be saved because it is none of {', '.join(load(RANKERS))}.")


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
    if not isinstance(name, str) or name not in load(RANKERS):
        raise ModelError(f"its class {str(name)[:80]!r} is none of {', '.join(load(RANKERS))}.")
    kind = load(load(RANKERS)[name])
    _known(manifest["params"], set(kind._get_param_names()) - set(kind._of_the_run), f"parameter of {name}")
    _known(manifest["fitted"], set(kind._saved), f"fitted attribute of {name}")
    model = kind(**{key: decoder.decode(value) for key, value in manifest["params"].items()})
    for key, value in manifest["fitted"].items():
        setattr(model, key, decoder.decode(value))
    model._check_loaded()
    return model


def _known(given: dict[str, Any], known: set[str], what: str) -> None:
    unknown = given.keys() - known
    if unknown:
        raise ModelError(f"{min(unknown)[:80]!r} is no {what}.")
