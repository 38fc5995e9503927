"""The page of an experiment, `write(rows, path)`: a name for what `rankopt.report` holds, which pages are put together
in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formulations.tables import member

if TYPE_CHECKING:
    from rankopt.report import write as write

WORDS = {"write": "rankopt.report:write"}

__all__ = ["write"]


def __getattr__(name: str) -> Any:
    return member(__name__, name, WORDS)
