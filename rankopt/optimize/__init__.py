"""One loop; cutting planes and bundle are methods of it. The methods as a table: name → class, loaded on use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formulations.tables import load
from rankopt.errors import OptionError

if TYPE_CHECKING:
    from rankopt.optimize.loop import Method

__all__ = ["METHODS", "method_named"]

METHODS = {
    "bundle": "rankopt.optimize.bundle:Bundle",
    "cutting_planes": "rankopt.optimize.cutting_planes:CuttingPlanes",
}


def method_named(spec: str | Method) -> Method:
    """The method of this name with its default settings, or the one that is given."""
    if not isinstance(spec, str):
        if not (hasattr(spec, "start") and hasattr(spec, "step")):
            raise OptionError(f"method = {spec!r} is no method; give a name of {', '.join(METHODS)}, or such an object")
        return spec
    if spec not in METHODS:
        raise OptionError(f"method {spec!r} is unknown; known are {', '.join(METHODS)}")
    method: Method = load(METHODS[spec])()
    return method
