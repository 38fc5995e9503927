"""The margin loss: an upper bound of the regret by loss-augmented argmax, for any feature map and bound.

A bound selects the reference [ORM, eq. 20 to 22]. Convex: it does not depend on the scores. Tie-aware: the
highest-scoring of all measure-optimal outputs. Nonconvex: the highest-scoring output.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from formulations.arrays import Floats
from rankopt.errors import OptionError
from rankopt.losses import get_bound
from rankopt.losses.loss import LossValue, is_nonnegative
from rankopt.losses.oracle import MaxOracle
from rankopt.measures.tied_ranking import query_of_row


@dataclass(frozen=True)
class Convex:
    """H(s) + best - r̄ᵀs, with r̄ of a fixed measure-optimal y, or a mean of several.

    reference: a name that the feature map accepts. "average" is the mean of all optimal y and does not depend on the
        input order. Rankings also accept "first": equal gains in input order, as in the papers. Pairs accept "ideal":
        all better documents first. None selects "ideal" where the map has it, else "average".
    """

    reference: str | None = None
    convex: ClassVar[bool] = True

    def __call__(self, argmax: MaxOracle, scores: Floats) -> Floats:
        return argmax.mean_of_best() if self.reference is None else argmax.mean_of_best(self.reference)


@dataclass(frozen=True)
class TieAware:
    """H(s) + best - max over the y of greatest gain of r(y)ᵀs: convex minus convex."""

    convex: ClassVar[bool] = False

    def __call__(self, argmax: MaxOracle, scores: Floats) -> Floats:
        return argmax.best_then_score(scores)


@dataclass(frozen=True)
class Nonconvex:
    """H(s) + best - max over all y of r(y)ᵀs: convex minus convex, the tightest of the three bounds."""

    convex: ClassVar[bool] = False

    def __call__(self, argmax: MaxOracle, scores: Floats) -> Floats:
        return argmax.top_scoring(scores)


class Bound(Protocol):
    """Which bound: a function to the reference r̄ that is subtracted. `convex`: it does not follow the scores."""

    convex: ClassVar[bool]

    def __call__(self, argmax: MaxOracle, scores: Floats) -> Floats:
        """r̄ at these scores: one of the slopes that `argmax` returns, or a mean of them."""
        ...


@dataclass(frozen=True, eq=False)
class MarginLoss:
    """loss_q(s) = max_y [r(y)ᵀs - gain(y)] + max_y gain(y) - r̄ᵀs for every query q of a batch [ORM, eq. 20 to 22].

    argmax: the feature map with its queries. bound: selects the reference r̄: "convex" (of decisions "spo+"),
    "tie-aware", "nonconvex" or a `Bound`. fixed: a reference r̄ that does not depend on the scores: of a convex bound,
    or of the convex majorant of another bound. paid: (m,) its penalty for soft constraints, if any (`charges`).
    """

    argmax: MaxOracle
    bound: Any
    fixed: Floats | None = None
    paid: Floats | None = None

    def __post_init__(self) -> None:
        """The reference of a convex bound is computed once, here. Other bounds use the map `raised`, if it has one: it
        gives the same bound of the regret, but makes the margin of the ranking by score convex."""
        if not hasattr(self.argmax, "best_then_score"):
            raise OptionError(f"a margin loss needs a rankopt.losses.MaxOracle; got {self.argmax!r:.80}")
        bound = get_bound("convex" if isinstance(self.bound, str) and self.bound == "spo+" else self.bound)
        object.__setattr__(self, "bound", bound)
        if self.fixed is not None:
            return
        if bound.convex:
            fixed, paid = reference_of(self.argmax, bound, np.zeros(self.argmax.shape))
            object.__setattr__(self, "fixed", fixed)
            object.__setattr__(self, "paid", paid)
        else:
            object.__setattr__(self, "argmax", getattr(self.argmax, "raised", self.argmax))

    @property
    def convex(self) -> bool:
        return self.fixed is not None

    @property
    def is_nonnegative(self) -> bool:
        """As the bound declares: it is if r̄ᵀs is never above the maximum over y of r(y)ᵀs."""
        return is_nonnegative(self.bound)

    @property
    def unit(self) -> Floats:
        """(m,) the λ that is natural to slopes of this size, in units of that of slopes of 1."""
        return np.asarray(getattr(self.argmax, "unit", np.ones(self.argmax.offsets.size - 1)))

    def at(self, scores: Floats, prove: bool = False) -> LossValue:
        """Values, bounds and planes at `scores`, of the shape of the argmax."""
        found, (reference, paid) = self.argmax.at(scores, prove), self._reference(scores)
        height = self.argmax.best - found.earned
        if paid is not None:
            height = height + paid
        offsets, width = self.argmax.offsets, scores.size // max(scores.shape[0], 1)
        query = np.repeat(query_of_row(offsets), width)
        value = np.bincount(query, ((found.slope - reference) * scores).ravel(), height.size) + height
        return LossValue(
            value, value + (found.bound - found.value), height, found.slope, reference, found.seconds, paid
        )

    def majorant(self, scores: Floats) -> MarginLoss:
        """The convex loss that is nowhere below this one and touches it at `scores`; itself if convex."""
        if self.convex:
            return self
        fixed, paid = self._reference(scores)
        return replace(self, fixed=fixed, paid=paid)

    def select_queries(self, first: int, last: int) -> MarginLoss:
        """The loss of the queries first <= q < last."""
        rows = slice(*self.argmax.offsets[[first, last]].tolist())
        return replace(
            self,
            argmax=self.argmax.select_queries(first, last),
            fixed=None if self.fixed is None else self.fixed[rows],
            paid=None if self.paid is None else self.paid[first:last],
        )

    def reference_weights(self, scores: Floats) -> Floats:
        """r̄ at these scores."""
        return self._reference(scores)[0]

    def _reference(self, scores: Floats) -> tuple[Floats, Floats | None]:
        """r̄ at these scores, and its penalty for soft constraints."""
        if self.fixed is not None:
            return self.fixed, self.paid
        return reference_of(self.argmax, self.bound, scores)


def reference_of(argmax: MaxOracle, bound: Bound, scores: Floats) -> tuple[Floats, Floats | None]:
    """The reference r̄ of a bound at these scores, and what it pays for soft constraints; None where there are none."""
    charges: MaxOracle | None = getattr(argmax, "charges", None)
    if charges is None:
        return bound(argmax, scores), None
    both = bound(charges, scores)
    return both[: scores.size], -both[scores.size :]
