"""Where a run stands: plain data, so that it can be kept and taken up again at any step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from formulations.display import CompactReprMixin
from rankopt.optimize.planes import PlaneSet
from rankopt.risk.risk import Planes

Floats = NDArray[np.float64]

SERIOUS = 0.1
"""Under a nonconvex bound the reference moves to a new point that gains at least this part of what the proven bound
leaves. Points that gain less only give planes: so the model grows until it is either believed or right."""


@dataclass(frozen=True, eq=False)
class State(CompactReprMixin):
    """planes and alpha: the model and the last dual weights. trial: where to evaluate next. w, primal: the best point
    evaluated and its proven objective. bound: proven from below, for J if convex, else for the majorant that touches J
    at w. latest: the objective at the last trial. round: how many majorants there were, 0 if J is convex. steps: how
    many were taken. Seconds are totals."""

    planes: PlaneSet
    alpha: Floats
    trial: Floats
    w: Floats
    primal: float = np.inf
    bound: float = 0.0
    latest: float = np.inf
    round: int = 0
    steps: int = 0
    precision: float = np.inf
    seconds_argmax: float = 0.0
    seconds_master: float = 0.0

    @property
    def gap(self) -> float:
        return self.primal - self.bound

    def seen(self, value: float, here: Planes, convex: bool, enough: float | None = None) -> Self:
        """The state after all queries were evaluated at `trial`, where J is proven to be `value`.

        If that is better by more than `enough`, w moves there. Under a nonconvex bound so does the reference: the
        planes found so far hold for it as well, and of the new majorant nothing is proven yet [ORM, Algorithm 1, each
        convex problem solved only as far as it helps].
        """
        state = replace(self, latest=value, seconds_argmax=self.seconds_argmax + here.seconds)
        first = not np.isfinite(self.primal)
        if enough is None:
            enough = 0.0 if convex or first else SERIOUS * self.gap
        if not value < self.primal - enough:
            return state
        planes = self.planes.with_references(here.references, here.paid)
        state = replace(state, w=self.trial, primal=value, planes=planes)
        return state if convex else replace(state, bound=0.0, round=self.round + 1)

    def bounded(self, bound: float) -> Self:
        """The state once `bound` is proven too."""
        return replace(self, bound=max(self.bound, bound))
