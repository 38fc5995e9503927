"""Ascent on a measure, direction by direction: directions, parallel paths, and certificates of their ends."""

from typing import Any

from formulations.registry import member

PARTS = {
    "RandomDirections": "rankopt.ascent.ascent:RandomDirections",
    "Verified": "rankopt.ascent.certificate:Verified",
    "verify_directions": "rankopt.ascent.certificate:verify_directions",
}
"""What users may name, `name: "module:object"`, loaded on use."""

ORDERS = ("cyclic", "greedy")
"""In which order directions are taken: one after the other, or the best of all."""

COMBINATIONS = ("mean", "best")
"""What becomes of several paths."""

__all__ = ["COMBINATIONS", "ORDERS", "PARTS", *PARTS]


def __getattr__(name: str) -> Any:
    return member(__name__, name, PARTS)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
