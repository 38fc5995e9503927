"""What is known of the end of an annealed descent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.brevity import CompactReprMixin
from formulations.notebook_view import lines
from rankopt.optimize.certificate import Stop

__all__ = ["AnnealingCertificate"]


@dataclass(frozen=True)
class AnnealingCertificate(CompactReprMixin):
    """What is known of the w that is returned. Nothing is known of any other: J_σ is not convex, and no bound is
    claimed.

    primal: J_σ(w) at `sigma`, the width at which w was reached. gradient: the length of its gradient there, each
    feature in units of its deviation inside queries; 0 at a critical point of J_σ, and next to 0 it says that w is near
    one, a minimum or not. J_σ has kinks where documents exchange their places, the more the smaller σ, and a minimum at
    a kink is not flat. Neither number says anything of the measure, which is a step function.
    measure: its weighted mean over the training queries that have something to order, ties averaged; start: the same
    at w₀. at_start: w is w₀ itself.
    """

    sigma: float
    primal: float
    gradient: float
    measure: float
    start: float
    stop: Stop
    at_start: bool = False
    kind: str = "smoothed"

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop", Stop(self.stop))  # a saved certificate holds the plain text
        if self.kind != "smoothed" or not isinstance(self.at_start, bool):
            raise ValueError(f"a certificate of kind {self.kind!r}, at_start = {self.at_start!r}")
        numbers = (self.sigma, self.primal, self.gradient, self.measure, self.start)
        if any(isinstance(one, bool) or not np.isfinite(one) for one in numbers) or self.gradient < 0:
            raise ValueError(f"a certificate of the numbers {numbers!r}")

    def _repr_html_(self) -> str:
        return lines(str(self))

    def __str__(self) -> str:
        return (
            f"smoothed: J = {self.primal:.8g} and its gradient {self.gradient:.2g} at sigma = {self.sigma:g}; the "
            f"measure {self.measure:.6g}, {self.start:.6g} at w0; no bound; {self.stop.value}"
        )
