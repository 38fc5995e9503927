"""What would exchange two documents: the smallest change of one of them after which a linear ranker has them tie.

variables    δ (d,), the change of the features z of the document that moves; u (d,) their units
minimise     Σ_j (δ_j / u_j)²                      all features together
          or |δ_j| / u_j, δ_i = 0 for i ≠ j        one feature j alone
subject to   wᵀδ = t                               t: what its score lacks, and the margin that is wanted
             low <= z + δ <= high                  and δ_j = 0 for features that may not move

Alone: δ_j = t / w_j, if the limits let it. Together: δ_j = u_j² w_j μ, cut at the limits; wᵀδ is piecewise linear in μ
and rises, so one sort of the points where features reach their limits finds μ. Any smaller change, in either sense,
leaves the order; any more of it exchanges the documents.

How sure an order is: the chance that noise of the scores leaves it, in closed form.

    s_x + ε_x > s_y + ε_y,  ε independent, normal, deviation σ        with chance Φ((s_x - s_y) / (σ √2))

>>> round(chance_in_order(1.0, noise=1.0), 4)
0.7602
>>> round(noise_at(1.0, chance=0.7602), 3)
1.0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from formulations.display import CompactReprMixin
from rankopt.errors import OptionError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SHOWN = 5
"""Features that a printed counterfactual lists of those that move together."""


@dataclass(frozen=True, eq=False)
class CounterfactualChange(CompactReprMixin):
    """The smallest changes of one document that exchange it with the other. Features stand in the order of the data.

    Fields (d features):

    * `features`: their names; `moves`: which document moves, "x" or "y"
    * `lacks`: by how much its score has to change, with a sign
    * `before` (d,): its features; `units` (d,): what a change is measured in
    * `alone` (d,): the change of each feature if nothing else changes, NaN where that is impossible
    * `together` (d,): the smallest change of all that may move, NaN where that is impossible
    * `reach`: by how much the score can change in the wanted direction within the limits
    * `why` (d,): what keeps a feature from exchanging the documents alone, "" where nothing does
    """

    features: tuple[str, ...]
    moves: str
    lacks: float
    before: Floats
    units: Floats
    alone: Floats
    together: Floats
    reach: float
    why: tuple[str, ...]

    @property
    def possible(self) -> bool:
        """Whether the features that may move can exchange the documents, together."""
        return not np.isnan(self.together).any()

    @property
    def feature(self) -> str | None:
        """The feature that exchanges the documents alone by the smallest change in its units, if any can."""
        place = self._place
        return None if place is None else self.features[place]

    @property
    def change(self) -> float:
        """The change of `feature`, in the units of the data; NaN without one."""
        place = self._place
        return float("nan") if place is None else float(self.alone[place])

    @property
    def cost(self) -> float:
        """|change of `feature`| in its unit; infinity without one."""
        place = self._place
        return float("inf") if place is None else abs(self.change) / float(self.units[place])

    @property
    def distance(self) -> float:
        """√Σ (together / units)²; infinity where that is impossible. Never more than `cost`."""
        if not self.possible:
            return float("inf")
        moved = self.together != 0.0
        return float(np.sqrt(((self.together[moved] / self.units[moved]) ** 2).sum()))

    @property
    def document_alone(self) -> Floats:
        """(d,) the document with `feature` changed: its score ties with the other's, up to rounding."""
        after = self.before.copy()
        if self._place is not None:
            after[self._place] += self.change
        return after

    @property
    def document_together(self) -> Floats:
        """(d,) the document with all features changed by `together`."""
        return np.asarray(self.before + np.where(np.isnan(self.together), 0.0, self.together))

    @property
    def reason(self) -> str:
        """Why the documents cannot be exchanged; "" where they can."""
        if self.possible:
            return ""
        if not (self.reach > 0.0):
            return "no feature that may move can change the score: weight 0, at its limit, or never varying"
        return (
            f"within the limits the score of {self.moves} can change by {self.reach:.4g} of the {abs(self.lacks):.4g} "
            "that it lacks; widen low or high, or let more features move"
        )

    def __str__(self) -> str:
        said = "rise" if self.lacks > 0 else "fall"
        lines = [f"the score of {self.moves} has to {said} by {abs(self.lacks):.4g} for a tie, by any more to exchange"]
        if not self.possible:
            return "\n".join([*lines, f"impossible: {self.reason}"])
        place = self._place
        if place is None:
            lines.append("one feature alone: none can within its limits")
        else:
            after = self.before[place] + self.change
            lines.append(
                f"one feature alone: {self.feature} from {self.before[place]:.4g} to {after:.4g} "
                f"({self.change:+.4g}, {self.cost:.3g} units)"
            )
        moved = np.flatnonzero(self.together)
        moved = moved[np.argsort(-np.abs(self.together[moved] / self.units[moved]), kind="stable")]
        parts = [f"{self.features[j]} {self.together[j]:+.4g}" for j in moved[:SHOWN].tolist()]
        rest = moved.size - len(parts)
        parts += [f"{rest} others"] if rest else []
        lines.append(f"all together: {', '.join(parts)} ({self.distance:.3g} units in all)" if parts else "they tie")
        return "\n".join(lines)

    @property
    def _place(self) -> int | None:
        """The column of `feature`."""
        costs = np.where(np.isnan(self.alone), np.inf, np.abs(self.alone)) / np.where(self.units > 0, self.units, 1.0)
        return int(np.argmin(costs)) if np.isfinite(costs).any() else None


def smallest_swap(
    features: Sequence[str], moves: str, coef: Floats, before: Floats, lacks: float, units: Floats, low: Floats,
    high: Floats, free: Bools,
) -> CounterfactualChange:  # fmt: skip
    """The smallest changes of the document `before` (d,) by which its score changes by `lacks`.

    coef, units, low, high, free: (d,) weights, units >= 0 (0: the feature does not vary, so it cannot move), limits of
    the changed features, and which may move. Raises OptionError where limits exclude what stands there already.
    """
    out = free & ((before < low) | (before > high))
    if out.any():
        j = int(np.argmax(out))
        raise OptionError(
            f"low and high exclude the document as it is: {features[j]} = {before[j]:g} is not within "
            f"[{low[j]:g}, {high[j]:g}]; widen the limits, or leave {features[j]} out of features="
        )
    free = free & (units > 0.0)
    sign = -1.0 if lacks < 0.0 else 1.0
    slope = sign * coef
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        wanted = np.where(slope != 0.0, lacks / coef, np.nan)
        room = np.where(slope > 0.0, high - before, before - low)
        after = before + wanted
        fits = free & np.isfinite(wanted) & (after >= low) & (after <= high)
    if lacks == 0.0:  # they tie as they are
        wanted, fits = np.zeros(coef.size), np.ones(coef.size, dtype=bool)
    alone = np.where(fits, wanted, np.nan)
    together, reach = _together(np.where(free, np.abs(slope) * units, 0.0), room / np.where(free, units, 1.0), lacks)
    change = np.where(together > 0.0, np.sign(slope) * together * units, together)
    why = tuple(_why(j, fits, free, units, coef, after, low, high) for j in range(coef.size))
    found = CounterfactualChange(tuple(features), moves, lacks, before.copy(), units.copy(), alone, change, reach, why)
    for array in (found.before, found.units, found.alone, found.together):
        array.setflags(write=False)
    return found


def _together(weight: Floats, room: Floats, lacks: float) -> tuple[Floats, float]:
    """min Σ e_j² over 0 <= e_j <= room_j with Σ weight_j e_j = |lacks|, and max Σ weight_j e_j: e_j = min(μ weight_j,
    room_j). NaN where the maximum is too small."""
    moves = np.flatnonzero((weight > 0.0) & (room > 0.0))
    found = np.zeros(weight.size)
    if lacks == 0.0:
        return found, 0.0
    largest = weight[moves].max(initial=0.0)
    if not moves.size:
        return np.full(weight.size, np.nan), 0.0
    a, r, t = weight[moves] / largest, room[moves], abs(lacks) / largest
    reach = float((a * r).sum()) * largest
    full = r / a  # the μ at which each stands at its limit
    order = np.argsort(full, kind="stable")
    a, r, full = a[order], r[order], full[order]
    spent = np.concatenate([[0.0], np.cumsum((a * r)[:-1])])  # by those that stand at their limits
    squares = np.cumsum((a**2)[::-1])[::-1]  # of those that do not
    with np.errstate(invalid="ignore"):
        enough = spent + full * squares >= t
    if not enough.any():
        return np.full(weight.size, np.nan), reach
    first = int(np.argmax(enough))
    mu = (t - spent[first]) / squares[first]
    found[moves[order]] = np.minimum(mu * a, r)
    return found, reach


def _why(
    j: int, fits: Bools, free: Bools, units: Floats, coef: Floats, after: Floats, low: Floats, high: Floats
) -> str:  # fmt: skip
    """What keeps feature j from exchanging the documents alone."""
    if fits[j]:
        return ""
    if units[j] == 0.0:
        return "it does not vary: its unit is 0"
    if not free[j]:
        return "it may not move"
    if coef[j] == 0.0:
        return "its weight is 0"
    if not np.isfinite(after[j]):
        return "it would leave double precision"
    which, limit = ("above high", high[j]) if after[j] > high[j] else ("below low", low[j])
    return f"it would have to be {after[j]:.4g}, {which} = {limit:.4g}"


def chance_in_order(lead: Any, noise: float) -> Any:
    """The chance that a document which leads by `lead` (a number or an array, in units of the score) still does when
    each score gets independent normal noise of deviation `noise`; 1/2 where both score the same.

    Without noise the order stays: 1 for a lead above 0, 0 below. Raises OptionError for a noise below 0.
    """
    if not 0.0 <= noise < np.inf:
        raise OptionError(f"noise = {noise} is no deviation of scores; give a finite number, 0 or more")
    lead = np.asarray(lead, dtype=np.float64)
    # Divided before it is compared: a lead of 1e-300 under noise of 1e-300 is no certainty.
    spread = np.sqrt(2.0) * noise
    found = ndtr(lead / spread) if spread > 0.0 else 0.5 * (1.0 + np.sign(lead))
    return float(found) if found.ndim == 0 else found


def noise_at(lead: float, chance: float) -> float:
    """The deviation of the scores' noise at which a lead stays in order with this chance: lead / (√2 Φ⁻¹(chance)).

    Raises OptionError for a chance that is not between 1/2 and 1: no noise makes a lead less likely than a coin.
    """
    if not 0.5 < chance < 1.0:
        raise OptionError(f"chance = {chance} is not between 1/2 and 1; give 0.9, say")
    return abs(float(lead)) / float(np.sqrt(2.0) * ndtri(chance))
