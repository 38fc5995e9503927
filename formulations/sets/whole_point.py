"""A point in whole numbers by `scipy.optimize.milp`, asked again without presolve where that fails.

The presolve of HiGHS ends some small programs with "Solve error", empty ones among them, that its search decides.
"""

from __future__ import annotations

from typing import Any

__all__ = ["whole_point", "within"]

OUT_OF_TIME, FAILED = 1, 4
"""Statuses of `milp`."""


def whole_point(objective: Any, *, options: dict[str, Any], **program: Any) -> Any:
    """What `milp` found, without presolve where it failed with it."""
    from scipy.optimize import milp

    found = milp(objective, options=options, **program)
    if found.status != FAILED or found.x is not None:
        return found
    return milp(objective, options={**options, "presolve": False}, **program)


def within(found: Any, seconds: float) -> str:
    """The time that a search had, where it ran out: " in 30 seconds"; else nothing."""
    return f" in {seconds:g} seconds" if found.status == OUT_OF_TIME else ""
