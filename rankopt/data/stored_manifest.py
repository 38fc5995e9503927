"""What the manifest of stored queries says, and whether it can be: counts, kinds, ids and names that go together."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["FORMAT", "PLAIN", "VERSION", "Manifest"]

FORMAT, VERSION = "rankopt queries", 1

PLAIN = (str, int, float, bool)
"""Types of the entries of attributes that a manifest can hold, None beside them."""

MOST_FEATURES = 1 << 31
"""Columns of a sparse table cost nothing in a file, and 8 bytes each where weights are learnt."""


@dataclass(frozen=True)
class Manifest:
    """`documents` and `features` are counts, `dtype` the type of the features, `entries` how many a sparse table has,
    else None. attributes: name → values, or None where they are in a file of their own."""

    documents: int
    features: int
    dtype: np.dtype[Any]
    entries: int | None
    graded: bool
    query_ids: tuple[Hashable, ...]
    document_ids: tuple[Hashable, ...] | None
    feature_names: tuple[str, ...] | None
    attributes: dict[str, list[Any] | None]

    @classmethod
    def read(cls, content: bytes) -> Manifest:
        """The manifest of this text; ValueError says what is wrong with it."""
        try:
            said = json.loads(content.decode("utf-8"))
        except (ValueError, RecursionError, MemoryError) as error:
            raise ValueError(f"it is not the JSON of `store` ({error})") from error
        if not isinstance(said, dict):
            raise ValueError("it is not the JSON of `store`")
        if said.get("format") != FORMAT or said.get("version") != VERSION:
            told = f"format {str(said.get('format'))[:40]!r}, version {str(said.get('version'))[:40]!r}"
            raise ValueError(f"it is of {told}, and this rankopt reads {FORMAT!r}, version {VERSION}")
        missing = cls.__dataclass_fields__.keys() - said.keys()
        if missing:
            raise ValueError(f"it does not say {', '.join(sorted(missing))}")
        documents = _count(said, "documents", 1)
        features = _count(said, "features", 1, MOST_FEATURES)
        ids = _listed(said, "query_ids", (str, int))
        if ids is None or not 1 <= len(set(ids)) == len(ids) <= documents:
            raise ValueError(f"query_ids are no distinct names of queries of {documents} documents")
        if not isinstance(said["graded"], bool):
            raise ValueError("graded is neither true nor false")
        return cls(
            documents=documents,
            features=features,
            dtype=_dtype(said["dtype"]),
            entries=None if said["entries"] is None else _count(said, "entries", 0, documents * features),
            graded=said["graded"],
            query_ids=ids,
            document_ids=_listed(said, "document_ids", (str, int, type(None)), documents),
            feature_names=_listed(said, "feature_names", (str,), features),
            attributes=_attributes(said["attributes"], documents),
        )


def _count(said: dict[str, Any], name: str, least: int, most: int | None = None) -> int:
    value = said[name]
    if type(value) is not int or value < least or (most is not None and value > most):
        raise ValueError(f"{name} = {str(value)[:40]} is no count from {least}{'' if most is None else f' to {most}'}")
    return value


def _dtype(name: Any) -> np.dtype[Any]:
    """The type of the features: looked up, for a type that is made from a name may be pointers."""
    known = {np.dtype(kind).str: np.dtype(kind) for kind in (np.float32, np.float64)}
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"dtype is {str(name)[:40]!r}; features are {' or '.join(known)} on this machine")
    return known[name]


def _listed(said: dict[str, Any], name: str, kinds: tuple[type, ...], length: int | None = None) -> Any:
    """A tuple of values of these types, or None."""
    values = said[name]
    if values is None:
        return None
    if not isinstance(values, list) or not all(isinstance(value, kinds) for value in values):
        raise ValueError(f"{name} is no list of words or whole numbers")
    if length is not None and len(values) != length:
        raise ValueError(f"{name} has {len(values)} entries instead of {length}")
    return tuple(values)


def _attributes(said: Any, documents: int) -> dict[str, list[Any] | None]:
    pairs: list[Any] = said if isinstance(said, list) else [None]
    if not all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
        raise ValueError("attributes are no pairs of a name and values")
    found: dict[str, list[Any] | None] = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("two attributes have one name")
    for name, values in found.items():
        if values is None:
            continue
        if not isinstance(values, list) or len(values) != documents:
            raise ValueError(f"the attribute {name[:40]!r} has no value for each of {documents} documents")
        if not all(
            map(_is_plain, (entry for value in values for entry in (value if type(value) is list else [value])))
        ):
            raise ValueError(f"the attribute {name[:40]!r} holds more than words, numbers and lists of them")
    return found


def _is_plain(entry: Any) -> bool:
    return entry is None or isinstance(entry, PLAIN)
