"""The loss-augmented argmax of a rescaled slack: the product of two linear functions of a ranking."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import nextafter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints, finite
from formulations.display import CompactReprMixin
from formulations.errors import InvalidProblem
from formulations.problems.directed_rounding import above, below, products
from formulations.problems.problem import EPSILON, Form
from formulations.problems.ranking import RankTwoAssignment, RankTwoBatch


def product_bound(h: Floats, t: Floats) -> Floats:
    """h² / (4 t), rounded up: no D >= 0 and M with D + t M <= h have D M above it, for h >= 0 by D · t M <= (h / 2)²,
    for h < 0 since M is negative then and 0 is above."""
    up = np.maximum(h, 0.0) ** 2 / (4.0 * t)
    return np.asarray(up * (1.0 + 8.0 * EPSILON))


@dataclass(frozen=True, eq=False)
class RescaledRanking(Form):
    """max over placings π of D(π) M(π), π_i the document at position i:

        D(π) = best - Σ_i discount[i] gain[π_i] >= 0,   best the greatest such sum: the loss
        M(π) = 1 + Σ_i decay[i] scores[π_i] - Σ_j reference[j] scores[j]:               the margin

    `scores`, `gain` and `reference` have one entry a document, `decay` and `discount` one a position. A point x is the
    order. A dual y is a direction t > 0 and a price a document: the prices bound D + t M, a ranking (`toward`), by h,
    and h² / 4t bounds D M. Which t proves most depends on x; no t need close the gap.
    """

    scores: Floats
    gain: Floats
    discount: Floats
    decay: Floats
    reference: Floats

    solvable = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "reference", finite("reference", self.reference, 1))
        checked = RankTwoAssignment(self.scores, self.gain, self.discount, self.decay)
        for name in ("scores", "gain", "discount", "decay"):
            object.__setattr__(self, name, getattr(checked, name))
        if self.reference.size != self.scores.size:
            raise InvalidProblem(f"reference has {self.reference.size} entries for {self.scores.size} documents")
        if self.positions < self.documents and min(self.discount[-1], self.decay[-1]) < 0:
            raise InvalidProblem("weights below 0 need a position for every document: the rest stands at weight 0")

    @cached_property
    def _best(self) -> tuple[Floats, Floats, float]:
        """Terms of best: the largest gains at the first positions, as discounts do not increase."""
        return products(self.discount, np.sort(self.gain)[::-1][: self.discount.size])

    @cached_property
    def best(self) -> float:
        """The greatest Σ discount gain of an order."""
        return float(np.sum(self._best[0]))

    def toward(self, t: float) -> RankTwoAssignment:
        """The ranking that maximises D + t M, constants left out."""
        return RankTwoAssignment(t * self.scores, self.gain, self.discount, self.decay)

    def alone(self) -> RescaledBatch:
        """The batch of this query alone."""
        rest = (0, self.documents - self.positions)
        decay, discount = np.pad(self.decay, rest), np.pad(self.discount, rest)
        offsets = np.array([0, self.documents])
        return RescaledBatch(RankTwoBatch(self.scores, self.gain, discount, decay, offsets), self.reference)

    def loss(self, x: NDArray[Any]) -> float:
        """D at x."""
        return self.best - float(self.discount @ self.gain[x])

    def margin(self, x: NDArray[Any]) -> float:
        """M at x."""
        return 1.0 + float(self.decay @ self.scores[x]) - float(self.reference @ self.scores)

    @property
    def positions(self) -> int:
        return int(self.discount.size)

    @property
    def documents(self) -> int:
        return int(self.scores.size)

    @property
    def scale(self) -> float:
        """The largest loss times a bound on the largest margin in magnitude."""
        heights = np.abs(self.scores)
        reach = 1.0 + heights.max() * np.abs(self.decay).sum() + float(np.abs(self.reference) @ heights)
        return float(2.0 * np.abs(self.discount).sum() * np.abs(self.gain).max() * reach)

    @property
    def extent(self) -> str:
        return f"{self.positions} positions × {self.documents} documents"

    @property
    def size(self) -> int:
        return self.positions * self.documents

    def in_algebra(self) -> str:
        return f"maximise D · M over the placings of {self.documents} documents at {self.positions} positions"

    @property
    def rounding(self) -> float:
        return 16.0 * EPSILON * self.scale * (self.positions + self.documents)

    def value(self, x: NDArray[Any]) -> float:
        return self.loss(x) * self.margin(x)

    def attained(self, x: NDArray[Any]) -> float:
        ideal, ideal_digits, off = self._best
        lost, lost_digits, more = products(-self.discount, self.gain[x])
        least = max(below(ideal, ideal_digits, lost, lost_digits, -(off + more)), 0.0)
        most = above(ideal, ideal_digits, lost, lost_digits, off + more)
        placed, placed_digits, off = products(self.decay, self.scores[x])
        back, back_digits, more = products(-self.reference, self.scores)
        margin = below(1.0, placed, placed_digits, back, back_digits, -(off + more))
        return float(nextafter((least if margin >= 0.0 else most) * margin, -np.inf)) if least or margin < 0 else 0.0

    def violation(self, x: NDArray[Any]) -> float:
        return self.toward(1.0).violation(x)

    def bound(self, y: Floats) -> float:
        if np.shape(y) != (self.documents + 1,):
            raise InvalidProblem(f"y has shape {np.shape(y)}, but holds a direction and {self.documents} prices")
        t = float(y[0])
        if not (t > 0.0 and np.isfinite(t)):
            return np.inf
        ahead = self.toward(t)
        # t · scores was rounded: what that may have hidden, at every position
        off = 1.01 * EPSILON * float(np.abs(self.decay).sum() * np.abs(ahead.scores).max())
        back, back_digits, lost = products(-t * self.reference, self.scores)
        off += lost + EPSILON * float(np.abs(back).sum())
        ideal, ideal_digits, more = self._best
        h = above(ideal, ideal_digits, t, back, back_digits, ahead.bound(np.asarray(y[1:])), off + more)
        return float(product_bound(np.array([h]), np.array([t]))[0])

    def recovered_dual(self, x: NDArray[Any]) -> Floats | None:
        loss, margin = self.loss(x), self.margin(x)
        if not (loss > 0.0 and margin > 0.0):
            return None
        t = loss / margin  # the direction in which the product rises at x
        return np.concatenate([[t], self.toward(t).recovered_dual(x)])

    def order_of(self, x: NDArray[Any]) -> Ints:
        return np.asarray(x, dtype=np.int64)

    def named_primal(self, x: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return self.toward(1.0).named_primal(x)

    def named_dual(self, y: Floats) -> dict[str, NDArray[Any]]:
        return {"direction": y[:1], **self.toward(float(y[0])).named_dual(y[1:])}


@dataclass(frozen=True, eq=False)
class RescaledBatch(CompactReprMixin):
    """One `RescaledRanking` a query: the flat arrays of `ranking`, and reference (N,), one entry a document."""

    ranking: RankTwoBatch
    reference: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "reference", finite("reference", self.reference, 1))
        if self.reference.size != self.ranking.scores.size:
            rows = self.ranking.scores.size
            raise InvalidProblem(f"reference has {self.reference.size} entries for {rows} documents")

    def __len__(self) -> int:
        return len(self.ranking)

    def __getitem__(self, query: int) -> RescaledRanking:
        rows, one = slice(*self.ranking.offsets[query : query + 2].tolist()), self.ranking[query]
        return RescaledRanking(one.scores, one.gain, one.discount, one.decay, self.reference[rows])

    def with_scores(self, scores: Floats) -> RescaledBatch:
        """The same batch at other scores."""
        return RescaledBatch(self.ranking.with_scores(scores), self.reference)
