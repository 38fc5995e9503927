"""Position weights c of the feature map: how much a score counts at each position [ORM, eq. 15, section 6.2].

    linear       c_i = max(k + 1 - i, 0), k the cut-off (of the weights, else of the measure, else the list length)
    power(d)     c_i = i^-d
    shifted(d)   c_i = (i + 1)^-d; with d = 0.25 that of [paper 5, section 3]
    log          c_i = 1 / log2(i + 1)
    loglog       c_i = 1 / log2(log2(i + 1) + 1)
    discount     c = a, the measure's own position weights
    an array     these weights, zero beyond its end

`power(0.5)@10` cuts a family at 10 positions.

>>> parse_position_weights("linear@3").weights(5)
array([3., 2., 1., 0., 0.])
>>> parse_position_weights("power(1)@2").weights(3)
array([1. , 0.5, 0. ])
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Floats, check_no_mask
from rankopt.errors import OptionError

FAMILIES: dict[str, Callable[[Floats, float], Floats]] = {
    "power": lambda i, exponent: np.asarray(i**-exponent),
    "shifted": lambda i, exponent: np.asarray((i + 1.0) ** -exponent),
    "log": lambda i, _: 1.0 / np.log2(i + 1.0),
    "loglog": lambda i, _: 1.0 / np.log2(np.log2(i + 1.0) + 1.0),
}
EXPONENTS = ("power", "shifted")  # families that take an exponent
_NOTATION = re.compile(r"(?P<family>[a-z]+)(\((?P<exponent>[-+.0-9e]+)\))?(@(?P<cut>\d{1,9}))?")


@dataclass(frozen=True)
class PositionWeights:
    """A family with its exponent and cutoff, or an explicit array of position weights (`given`)."""

    family: str = "linear"
    exponent: float = 0.5
    cut: int | None = None
    given: tuple[float, ...] = ()

    def weights(self, n: int, measure: Any = None) -> Floats:
        """(n,) the weights of positions 1 to n, non-increasing, zero beyond a cut-off."""
        reach = n if self.cut is None else min(n, self.cut)
        if self.family == "given":
            weights = np.array(self.given[:n])
        elif self.family == "discount":
            discount = getattr(measure, "discount", None)
            if discount is None:
                reason = "there is none" if measure is None else f"{measure} has no discount"
                raise OptionError(
                    f"position_weights = 'discount' takes its weights from a measure, but {reason}; use 'power(0.5)'"
                )
            weights = discount(n)[:reach]
        elif self.family == "linear":
            cutoff = self.cut or getattr(measure, "cutoff", None)
            k = n if cutoff is None else int(cutoff)
            weights = np.maximum(k + 1.0 - np.arange(1, n + 1), 0.0)
        else:
            weights = FAMILIES[self.family](np.arange(1.0, reach + 1.0), self.exponent)
        return weights if weights.size == n else np.append(weights, np.zeros(n - weights.size))

    def __str__(self) -> str:
        if self.family == "given":
            return f"given({len(self.given)})"
        exponent = f"({self.exponent:g})" if self.family in EXPONENTS else ""
        return f"{self.family}{exponent}" + ("" if self.cut is None else f"@{self.cut}")


def parse_position_weights(spec: str | PositionWeights | ArrayLike) -> PositionWeights:
    """The position weights of this notation, or these numbers; raises `OptionError` naming the families."""
    if isinstance(spec, PositionWeights):
        return spec
    if not isinstance(spec, str):
        check_no_mask("position_weights", spec, OptionError)
        try:
            weights = np.asarray(spec, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            weights = np.zeros(0)
        if weights.ndim != 1 or not weights.size or not np.isfinite(weights).all() or (np.diff(weights) > 0).any():
            raise OptionError("position_weights as an array must be a non-empty, finite, non-increasing vector")
        return PositionWeights("given", given=tuple(weights.tolist()))
    match = _NOTATION.fullmatch(spec.strip())
    known = ("linear", "discount", *FAMILIES)
    if match is None or match["family"] not in known or (match["exponent"] and match["family"] not in EXPONENTS):
        raise OptionError(
            f"position_weights = {spec!r} is none of {', '.join(known)}; write 'linear', 'power(0.5)', 'log@10', ..."
        )
    try:
        exponent = float(match["exponent"] or 0.5)
    except ValueError:
        raise OptionError(
            f"position_weights = {spec!r} has an exponent that is not a number; write 'power(0.5)'"
        ) from None
    cut = int(match["cut"]) if match["cut"] else None
    if exponent < 0 or cut == 0:
        raise OptionError(
            f"position_weights = {spec!r} must be non-increasing, with a positive weight for at least one position"
        )
    return PositionWeights(match["family"], exponent, cut)
