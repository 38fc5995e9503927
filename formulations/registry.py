"""Lazy imports: tables of `name: "module:object"`, imported on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any


@cache
def load(location: str) -> Any:
    """The object at "module:object"."""
    module, _, name = location.partition(":")
    return getattr(import_module(module), name)


def locations(package: str, names: Mapping[str, str]) -> dict[str, str]:
    """A table of `name: "module:name"`. names: of each module of the package, separated by blanks."""
    return {name: f"{package}.{module}:{name}" for module, listed in names.items() for name in listed.split()}


def member(package: str, name: str, *tables: Mapping[str, str]) -> Any:
    """The object that one of a package's tables names; raises AttributeError for an unknown name."""
    for table in tables:
        if name in table:
            return load(table[name])
    raise AttributeError(f"module {package!r} has no attribute {name!r}")


def lazy(package: str, *tables: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose tables name objects that are imported on first use."""

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *(name for table in tables for name in table)})

    return lambda name: member(package, name, *tables), names
