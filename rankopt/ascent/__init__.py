"""Ascent on a measure, direction by direction: directions, parallel paths, and certificates of their ends."""

from formulations.registry import lazy

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

__getattr__, __dir__ = lazy(__name__, PARTS)
