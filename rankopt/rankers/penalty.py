"""What `penalty=` may be: the class of the objective, of a form of master program, for the methods that can."""

from __future__ import annotations

from typing import Any

from formulations.tables import load
from rankopt.errors import OptionError
from rankopt.optimize import PENALTIES
from rankopt.optimize.objective import Objective

__all__ = ["penalised"]


def penalised(penalty: Any, method: object) -> type[Objective]:
    """The objective of this penalty; OptionError for a penalty that is none, and for a method that cannot minimise
    it."""
    if not isinstance(penalty, str) or penalty not in PENALTIES:
        raise OptionError(f"penalty {penalty!r} is unknown; known are {', '.join(map(repr, PENALTIES))}")
    kind: type[Objective] = load(PENALTIES[penalty])
    kind.check(method)
    return kind
