"""Tables of text, `name: "module:object"`: what they name is loaded when it is first used."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any


@cache
def load(place: str) -> Any:
    """The object at "module:object"."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def member(package: str, name: str, *tables: Mapping[str, str]) -> Any:
    """What a package's `__getattr__` answers: the object that one of its tables names, or an AttributeError."""
    for table in tables:
        if name in table:
            return load(table[name])
    raise AttributeError(f"module {package!r} has no attribute {name!r}")
