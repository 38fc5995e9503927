"""What is proved of a factorisation: of each block, and of the whole where it can be.

What is proved of a standing: the gaps of both blocks, and where the loss allows it a bound of the whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.display import CompactReprMixin
from rankopt.collaborative.global_bound import GlobalBound, global_bound
from rankopt.collaborative.problem import ModelState
from rankopt.optimize.certificate import Stop

KINDS = ("global", "blocks", "blocks of the majorant")
PROOFS = ("", "cholesky", "norms")


BOTH = "the gaps of both blocks are within the tolerance"
"""What `Stop.GAP` says here: not the gap of the whole."""


@dataclass(frozen=True)
class FactorCertificate(CompactReprMixin):
    """primal: J of the returned factors. users, items: lower bounds of J over U (and b_u) for these M, b, and over M, b
    for these U: all users at once may be better together with all items.

    kind "global": bound is below J of any factors of any number, so gap is what the whole problem leaves open.
    kind "blocks": only those of the blocks are known, bound is -inf. kind "blocks of the majorant": the same of a bound
    that is not convex, whose convex majorant at these scores is meant.
    singular: the bound ‖Ψ‖₂ cannot exceed, and proof: how it was proved; NaN and "" where it was not asked for.
    """

    kind: str
    primal: float
    users: float
    items: float
    stop: Stop
    bound: float = -np.inf
    singular: float = np.nan
    proof: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop", Stop(self.stop))  # a saved certificate holds the plain text
        numbers = (self.primal, self.users, self.items, self.bound, self.singular)
        if any(isinstance(one, bool) or not isinstance(one, int | float) for one in numbers):
            raise ValueError(f"a certificate of {numbers!r}")
        if self.kind not in KINDS or self.proof not in PROOFS or not np.isfinite(self.primal):
            raise ValueError(f"a certificate of kind {self.kind!r}, J = {self.primal!r}, proof {self.proof!r}")
        if np.isnan([self.users, self.items, self.bound]).any() or (self.kind == "global") != np.isfinite(self.bound):
            raise ValueError(f"a certificate of kind {self.kind!r} with the bounds {numbers[1:4]!r}")

    @property
    def users_gap(self) -> float:
        """The gap of the users' block, as a part of J."""
        return self._part(self.users)

    @property
    def items_gap(self) -> float:
        """The gap of the items' block, as a part of J."""
        return self._part(self.items)

    @property
    def relative_gap(self) -> float:
        """The gap of the whole, as a part of J; infinite where only the blocks are known."""
        return self._part(self.bound)

    @property
    def ending(self) -> str:
        """How training ended, in words."""
        return BOTH if self.stop is Stop.GAP else self.stop.value

    def _part(self, bound: float) -> float:
        below = max(self.primal - bound, 0.0)
        return below / abs(self.primal) if below else 0.0

    def __str__(self) -> str:
        told = f"{self.kind}: J = {self.primal:.8g}, gap of the users' block {100 * self.users_gap:.2g}%, of the "
        told += f"items' {100 * self.items_gap:.2g}%, "
        if self.kind == "global":
            told += f"of the whole {100 * self.relative_gap:.2g}% (bound {self.bound:.8g}, {self.proof}), "
        return told + self.ending


Floats = NDArray[np.float64]


def certificate_of(blocks: Any, now: ModelState, stop: Stop, whole: bool = True) -> FactorCertificate:
    """Of the blocks, and of the whole if that is wanted and the loss is convex and never below 0."""
    if not (whole and blocks.proves_whole):
        kind = "blocks" if blocks.convex else "blocks of the majorant"
        return FactorCertificate(kind, now.value, now.users, now.items, stop)
    found = whole_bound(blocks, now)
    singular = found.singular
    return FactorCertificate(
        "global", now.value, now.users, now.items, stop, found.value, singular.bound, singular.proof
    )


def whole_bound(blocks: Any, now: ModelState) -> GlobalBound:
    """The best bound that the dual states of a standing give."""
    now = blocks.whole(now)
    states = [(now.slopes, now.heights)] if now.of_items is None else [(now.slopes, now.heights), now.of_items]
    return max((_bound(blocks, *state) for state in states), key=lambda found: found.value)


def _bound(blocks: Any, slopes: Floats, heights: Floats) -> GlobalBound:
    problem, curvature = blocks.problem, blocks.curvature(slopes)
    return global_bound(
        problem.rated.table(slopes),
        float(heights.sum()) + 0.5 * curvature,
        problem.prior,
        problem.of_users,
        problem.of_items,
        problem.of_offsets if problem.of_offsets.size else np.inf,
        problem.of_user_offsets if problem.of_user_offsets.size else None,
        curvature=curvature,
    )
