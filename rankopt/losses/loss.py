"""Protocols of losses: values, proven bounds and one plane a query; or a gradient for smooth losses without bounds.

A loss with `says = "gradient"` has no planes: `rankopt.optimize.annealing` minimises it, not one of `METHODS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from formulations.arrays import Floats
from formulations.display import CompactReprMixin


@dataclass(frozen=True, eq=False)
class LossValue(CompactReprMixin):
    """A loss at scores s, for all queries of a batch.

    value, bound: (m,) what was reached, and what the loss cannot exceed (the argmax is proven to that).
    height, placed, reference: the plane of query q is height[q] + Σ (placed - reference)_j s_j over its documents; it
    touches the loss here and nowhere exceeds it. `height` less `paid`, and `placed`, hold for every reference of the
    same loss.
    seconds: spent in the argmax. paid: (m,) the part of `height` that belongs to the reference, what this pays for soft
    constraints; None is 0.
    """

    value: Floats
    bound: Floats
    height: Floats
    placed: Floats
    reference: Floats
    seconds: float
    paid: Floats | None = None


class Loss(Protocol):
    """A function of the scores alone."""

    @property
    def convex(self) -> bool: ...

    def at(self, scores: Floats, prove: bool = False) -> LossValue:
        """Values and planes; `prove` takes bounds from dual variables even where the argmax is exact by
        construction."""
        ...

    def majorant(self, scores: Floats) -> Loss:
        """The convex loss nowhere below this one that touches it at `scores`; itself if convex."""
        ...

    def only(self, first: int, last: int) -> Loss:
        """The loss of the queries first <= q < last."""
        ...

    def reference_weights(self, scores: Floats) -> Floats:
        """(N,) the part of the planes' slopes that depends on the reference only."""
        ...


@dataclass(frozen=True, eq=False)
class GradientAt(CompactReprMixin):
    """A smooth loss at scores: value (m,) of each query and slope (N,), the gradient of their sum."""

    value: Floats
    slope: Floats


class GradientLoss(Protocol):
    """A smooth function of the scores alone, not convex, of which no plane is known to lie below it."""

    says: ClassVar[str]

    def gradient(self, scores: Floats, sigma: float | None = None) -> GradientAt:
        """Values and slopes; of a loss that is annealed at the width `sigma`, None for its own."""
        ...

    def only(self, first: int, last: int) -> GradientLoss:
        """The loss of the queries first <= q < last."""
        ...


def says(loss: Any) -> str:
    """Output of a loss, or of a factory of losses: "plane" or "gradient"."""
    return str(getattr(loss, "says", "plane"))
