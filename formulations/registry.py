"""Lazy imports: tables of `name: "module:object"`, imported on first use."""

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
    """The object that one of a package's tables names; raises AttributeError for an unknown name."""
    for table in tables:
        if name in table:
            return load(table[name])
    raise AttributeError(f"module {package!r} has no attribute {name!r}")
