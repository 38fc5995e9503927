"""The JSON of a file of ours, read without trust: bounded before it is parsed, and every name once."""

from __future__ import annotations

import json
from typing import Any

from rankopt.errors import ModelError

__all__ = ["LIMIT", "manifest_of"]

LIMIT = 1 << 24
"""Bytes that the JSON of a model or a checkpoint may have; all numbers of weight are in arrays beside it."""


def manifest_of(content: bytes, name: str, form: str, limit: int = LIMIT) -> dict[str, Any]:
    """The JSON object in a file that says of itself to be of this format.

    Raises ModelError for another one, and for what is no JSON, too long, or nested beyond what Python reads.
    """
    if len(content) > limit:
        raise ModelError(f"{name} has {len(content)} bytes, and no {form} more than {limit}.")
    try:
        manifest = json.loads(content.decode("utf-8"), object_pairs_hook=_distinct, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{name} is missing or not its JSON ({error}).") from error
    if not isinstance(manifest, dict) or manifest.get("format") != form:
        raise ModelError(f"it is not a {form}.")
    return manifest


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) != len(pairs):
        raise ValueError("a name occurs twice")
    return names


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
