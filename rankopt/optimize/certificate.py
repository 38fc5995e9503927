"""What a run has proved of its result."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from formulations.brevity import CompactReprMixin
from formulations.notebook_view import view

__all__ = ["Certificate", "Stop"]


class Stop(StrEnum):
    """Why a run ended."""

    GAP = "the gap is within the tolerance"
    CHOSEN = "the gap closed, and an earlier step was better on eval_set"
    PATIENCE = "eval_set found nothing better for as many rounds as patience allows"
    ANNEALED = "every sigma was gone through"
    STALLED = "no step narrowed the gap any more, as far as double precision and the master allow"
    ITERATIONS = "max_iter steps were taken"
    TIME = "time_limit passed"
    MASTER = "the solver of the master program failed"
    DIRECTIONS = "no direction led higher any more"
    CALLBACK = "a callback asked to stop"
    INTERRUPTED = "interrupted from the keyboard"


@dataclass(frozen=True)
class Certificate(CompactReprMixin):
    """primal: J(w) of the returned w, each ranking in it proved by dual prices. bound: proven from below.

    kind "global": bound <= min J, so gap is the distance from the optimum (convex bound only).
    kind "stationary": bound is below the convex majorant that touches J at w, so gap is what one more step of the
    concave-convex procedure could still gain; 0 at a critical point. No global claim is made.
    at_start: w is w₀ itself, which usually says that lam is too large or the bound too loose.
    """

    kind: str
    primal: float
    bound: float
    stop: Stop
    at_start: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop", Stop(self.stop))  # a saved certificate holds the plain text
        if self.kind not in ("global", "stationary") or not isinstance(self.at_start, bool):
            raise ValueError(f"a certificate of kind {self.kind!r}, at_start = {self.at_start!r}")
        if isinstance(self.primal, bool) or isinstance(self.bound, bool) or not np.isfinite(self.primal - self.bound):
            raise ValueError(f"a certificate of J = {self.primal!r} and the bound {self.bound!r}")

    @property
    def gap(self) -> float:
        """primal - bound, 0 where rounding would make it negative."""
        return max(self.primal - self.bound, 0.0)

    @property
    def relative_gap(self) -> float:
        """gap / primal; 0 if both are 0."""
        return self.gap / abs(self.primal) if self.gap else 0.0

    def _repr_html_(self) -> str:
        said = {"J": f"{self.primal:.8g}", "proven bound": f"{self.bound:.8g}"}
        said["gap"] = f"{self.gap:.2g} ({100 * self.relative_gap:.2g}%)"
        return view(f"Certificate, {self.kind}", said | {"ended because": self.stop.value})

    def __str__(self) -> str:
        return (
            f"{self.kind}: J = {self.primal:.8g}, bound {self.bound:.8g}, gap {self.gap:.2g} "
            f"({100 * self.relative_gap:.2g}%), {self.stop.value}"
        )
