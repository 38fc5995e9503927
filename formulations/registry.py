"""Public names of a package that are imported on first use, from tables of `name: "module:object"`.

A package lists its names once, as imports that only type checkers and editors see:

    if TYPE_CHECKING:
        from package.module import name as name

    PARTS = public_names(__name__)
    __all__ = [*PARTS]
    if not TYPE_CHECKING:  # a type checker would accept any misspelled name
        __getattr__, __dir__ = lazy(__name__, PARTS)
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

REEXPORT = re.compile(r"^    from (\S+) import (\w+) as \2$", re.MULTILINE)


@cache
def load(location: str) -> Any:
    """The object at "module:object"."""
    module, _, name = location.partition(":")
    return getattr(import_module(module), name)


def public_names(package: str) -> dict[str, str]:
    """The table of the imports `from module import name as name` in the source of a package that is being imported."""
    loader: Any = sys.modules[package].__loader__
    source = loader.get_source(package)
    if source is None:
        raise ImportError(f"{package} needs its source file, which lists its names; install it with its .py files")
    return {name: f"{module}:{name}" for module, name in REEXPORT.findall(source)}


def lazy(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose table names objects that are imported on first use."""

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return load(names[name])

    return find, lambda: sorted({*vars(sys.modules[package]), *names})
