"""Upper bounds of the regret, as functions of the scores alone; `Risk` joins them to the features.

The bounds as a table: name → class. A bound says which weights c̄ are subtracted (see `margin.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formulations.tables import load
from rankopt.errors import OptionError

if TYPE_CHECKING:
    from rankopt.losses.margin import Reference

__all__ = ["BOUNDS", "bound_named"]

BOUNDS = {
    "convex": "rankopt.losses.bounds.convex:Convex",
    "tie-aware": "rankopt.losses.bounds.tie_aware:TieAware",
    "nonconvex": "rankopt.losses.bounds.nonconvex:Nonconvex",
}


def bound_named(name: str, **options: Any) -> Reference:
    """The bound of this name, with its options; raises `OptionError` naming the bounds."""
    if name not in BOUNDS:
        raise OptionError(f"bound {name!r} is unknown; known are {', '.join(BOUNDS)}")
    bound: Reference = load(BOUNDS[name])(**options)
    return bound
