"""The page of an experiment, `write(rows, path)`: a name for what `rankopt.report` holds."""

from __future__ import annotations

from typing import Any

from formulations.registry import member

WORDS = {"save": "rankopt.report:save", "write": "rankopt.report:write"}


def __getattr__(name: str) -> Any:
    return member(__name__, name, WORDS)
