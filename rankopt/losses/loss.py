"""Protocols of losses: values, proven bounds and one plane a query; or a gradient for smooth losses without bounds.

A loss with `protocol = "gradient"` has no planes: `rankopt.optimize.annealing` minimizes it, not one of `METHODS`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from formulations.arrays import Floats, Ints
from formulations.display import CompactReprMixin
from formulations.errors import CertificateError
from rankopt.errors import OptionError
from rankopt.measures.tied_ranking import query_of_row


@dataclass(frozen=True, eq=False)
class LossValue(CompactReprMixin):
    """A loss at scores s, for all queries of a batch.

    value, bound: (m,) what was reached, and what the loss cannot exceed (the argmax is proven to that).
    height, assigned, reference: the plane of query q is height[q] + Σ (assigned - reference)_j s_j over its documents.
    It touches the loss here and nowhere exceeds it. `height` less `paid`, and `assigned`, hold for every reference of
    the same loss.
    seconds: spent in the argmax. paid: (m,) the part of `height` that the reference pays for soft constraints, or None.
    """

    value: Floats
    bound: Floats
    height: Floats
    assigned: Floats
    reference: Floats
    seconds: float
    paid: Floats | None = None


class Loss(Protocol):
    """A function of the scores alone. Its values are nonnegative, or it has the attribute `is_nonnegative = False`."""

    @property
    def convex(self) -> bool: ...

    def at(self, scores: Floats, prove: bool = False) -> LossValue:
        """Values and planes; `prove` takes bounds from dual variables even where the argmax is exact."""
        ...

    def majorant(self, scores: Floats) -> Loss:
        """The convex loss nowhere below this one that touches it at `scores`; itself if convex."""
        ...

    def select_queries(self, first: int, last: int) -> Loss:
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

    protocol: ClassVar[str]

    def gradient(self, scores: Floats, sigma: float | None = None) -> GradientAt:
        """Values and slopes; of a loss that is annealed at the width `sigma`, None for its own."""
        ...

    def select_queries(self, first: int, last: int) -> GradientLoss:
        """The loss of the queries first <= q < last."""
        ...


def is_nonnegative(loss: Any) -> bool:
    """Whether a loss is never below 0, which it is unless it declares `is_nonnegative = False`."""
    return bool(getattr(loss, "is_nonnegative", True))


NEGATIVE = 1e-9  # a value further below 0 than this, in units of the scores, is not due to rounding


def check_sign(loss: Any, value: Floats, scores: Floats) -> None:
    """Raise OptionError for values (m,) at these scores that are below 0, of a loss that claims to be nonnegative;
    CertificateError for a margin loss, whose argmax may be at fault."""
    least = float(value.min(initial=0.0))
    if least < -NEGATIVE * (1.0 + float(np.abs(scores).max(initial=0.0))) and is_nonnegative(loss):
        if hasattr(loss, "argmax"):  # whose best value is at least that of the reference
            raise CertificateError(
                f"nothing is proved: a margin loss is {least:.6g}. Either the argmax solver returned a wrong ranking "
                "or value (choose another solver), or a bound of your own can be negative (set its attribute "
                "is_nonnegative = False)."
            )
        raise OptionError(
            f"{type(loss).__name__} must be nonnegative, as it declares; got the value {least:.6g}. Set the attribute "
            "is_nonnegative = False of the loss (or of its bound), or correct its values."
        )


def protocol_of(loss: Any) -> str:
    """Output of a loss, or of a factory of losses: "plane" or "gradient"."""
    return str(getattr(loss, "protocol", "plane"))


@dataclass(frozen=True, eq=False)
class ConvexLoss:
    """Base of convex losses of grades, relevance (N,), without a reference; a subclass defines `at`."""

    relevance: Floats
    offsets: Ints
    convex = True

    def majorant(self, scores: Floats) -> Self:
        return self

    def select_queries(self, first: int, last: int) -> Self:
        low, high = self.offsets[first], self.offsets[last]
        return replace(self, relevance=self.relevance[low:high], offsets=self.offsets[first : last + 1] - low)

    def reference_weights(self, scores: Floats) -> Floats:
        return np.zeros(scores.size)


@dataclass(frozen=True, eq=False)
class SquaredError(ConvexLoss):
    """loss_q(s) = ½ Σ_j (s_j - y_j)² over the documents of query q, slope s - y [paper 5, A.1, its sign corrected].

    relevance: (N,) targets y. offsets: (m + 1,). A sum, not a mean: a long list counts for more. The plane at s is the
    tangent. `RegressionRanker` minimizes it in closed form, also from queries of one grade, which a `LossRanker` omits.
    """

    linear_in_gains = True  # but for a constant

    def at(self, scores: Floats, prove: bool = False) -> LossValue:
        """Values and tangents at `scores`, (N,)."""
        began, query, lists = perf_counter(), query_of_row(self.offsets), self.offsets.size - 1
        slope = scores - self.relevance
        value: Floats = np.asarray(np.bincount(query, 0.5 * slope * slope, lists), dtype=np.float64)
        height: Floats = np.asarray(np.bincount(query, -0.5 * slope * (scores + self.relevance), lists), np.float64)
        return LossValue(value, value, height, slope, np.zeros(scores.size), perf_counter() - began)
