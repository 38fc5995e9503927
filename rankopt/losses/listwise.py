"""Listwise losses of networks by name: each is a function of the scores of a query, with its gradient.

`ListNet` and `ListMLE` are convex: `LossRanker` trains them to a global certificate. `LambdaLoss`, `ApproxNDCG` and
`NeuralNDCG` are not: they have a gradient but no planes, and `rankopt.torch.RankingLoss` trains networks with them.
Gains and discounts are those of nDCG: b_j = (2^y_j - 1) / maxDCG and a_i = 1 / log2(i + 1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from time import perf_counter
from typing import ClassVar, Self

import numpy as np

from formulations.arrays import Floats, Ints, Shorts
from formulations.sorting import alike
from rankopt.data.canonical_order import Arrangement
from rankopt.errors import DataError
from rankopt.losses.loss import ConvexLoss, GradientAt, LossValue
from rankopt.losses.segment_ops import shared, sorted_rows
from rankopt.losses.smooth import positional
from rankopt.measures.tied_ranking import query_of_row, running, totals
from rankopt.options import NOT_NEGATIVE, POSITIVE, check

MEASURE = positional("nDCG")
SINKHORN = 30  # scalings of rows and columns in NeuralNDCG


@dataclass(frozen=True, eq=False)
class ListNet(ConvexLoss):
    """loss_q(s) = -Σ_j p_j log softmax(s)_j, with p the softmax of the grades: the cross entropy of the first position
    [Cao et al. 2007].

    relevance: (N,) grades. offsets: (m + 1,). Convex; at least the entropy of p.
    """

    def at(self, scores: Floats, prove: bool = False) -> LossValue:
        """Values and tangents at `scores`, (N,)."""
        began, query = perf_counter(), query_of_row(self.offsets)
        away = _log_sum_exp(scores, self.offsets)[query] - scores
        target = np.exp(self.relevance - _log_sum_exp(self.relevance, self.offsets)[query])
        return _tangent(totals(target * away, self.offsets), np.exp(-away) - target, scores, self.offsets, began)


@dataclass(frozen=True, eq=False)
class ListMLE(ConvexLoss):
    """loss_q(s) = Σ_j [log Σ_{i: y_i <= y_j} exp(s_i) - s_j] over the documents j above the lowest grade of query q:
    without ties, -log of the Plackett-Luce probability of the order by grade [Xia et al. 2008].

    relevance: (N,) grades. offsets: (m + 1,). Documents of one grade each compete with all of this grade or lower
    (Breslow 1974), so that the loss is at least -log of the probability of all orders by grade together. Convex.
    """

    @cached_property
    def groups(self) -> tuple[Ints, Ints, Ints]:
        """(N,) each: the rows by rising grade in their query, and for each the first and the last of its grade."""
        query, level = query_of_row(self.offsets), alike(self.offsets, self.relevance)
        rows = sorted_rows(query, -level)
        starts = np.flatnonzero(np.diff(level[rows], prepend=-1) | np.diff(query[rows], prepend=-1))
        sizes = np.diff(np.append(starts, rows.size))
        return rows, np.repeat(starts, sizes), np.repeat(starts + sizes - 1, sizes)

    def at(self, scores: Floats, prove: bool = False) -> LossValue:
        """Values and tangents at `scores`, (N,)."""
        began, (rows, first, last), offsets = perf_counter(), self.groups, self.offsets
        above, own = first > np.repeat(offsets[:-1], np.diff(offsets)), scores[rows]
        top = running(np.maximum, own, offsets)  # logarithms of sums are relative to it, for large scores
        total = _running_log_sum(own - top, top, offsets)[last]
        top = top[last]
        rest = np.where(above, -total, -np.inf)[::-1]
        backward = _running_log_sum(rest, -top[::-1], offsets[-1] - offsets[::-1])[::-1]
        slope = np.empty(scores.size)
        slope[rows] = np.exp(own - top + backward[first]) - above
        return _tangent(totals(np.where(above, top - own + total, 0.0), offsets), slope, scores, offsets, began)


@dataclass(frozen=True)
class Deltr:
    """DELTR: `ListNet` + γ max(0, u)², with u the mean probability of the first position, p = softmax(s), of documents
    outside of the protected group less that of documents inside [Zehlike and Castillo 2020]. A factory for
    `LossRanker(Deltr("gender", "f"))`.

    attribute: the name of an attribute of documents, and `protected` its value in the protected group. gamma: γ >= 0.
    Not convex, but the difference of a convex function and ½ γ R² ‖s‖², with u = cᵀp and R = max c - min c, for
    u <= R and no eigenvalue of ∇²u is below -R/2. A query without documents on both sides has no such term.
    """

    attribute: str
    protected: Hashable = True
    gamma: float = 1.0

    def __call__(self, relevance: Floats, offsets: Ints, queries: Arrangement) -> DeltrLoss:
        check("gamma", self.gamma, (NOT_NEGATIVE,))
        if self.attribute not in queries.attributes:
            raise DataError(f"Deltr needs the attribute {self.attribute!r}, one value a document; pass attributes=.")
        values = queries.attributes[self.attribute]
        query, inside = query_of_row(offsets), np.asarray(values == self.protected)
        if not inside.any() and np.asarray(values).dtype != np.bool_:
            known = ", ".join(sorted({repr(one) for one in np.asarray(values, dtype=object).tolist()})[:5])
            raise DataError(
                f"no document has {self.attribute} = {self.protected!r}, the protected value of Deltr; it is {known}. "
                "Pass protected=."
            )
        count = np.stack([totals(side.astype(np.float64), offsets) for side in (~inside, inside)])
        sign = np.where(count.min(axis=0) > 0, 1.0, 0.0)[query] * np.where(inside, -1.0, 1.0)
        return DeltrLoss(relevance, offsets, sign / count[inside.astype(np.int64), query], float(self.gamma))


@dataclass(frozen=True, eq=False)
class DeltrLoss:
    """The loss of `Deltr`; compared: (N,) c. touch: (N,) the scores where ½ γ R² ‖s‖² is replaced by its tangent, which
    makes the convex majorant; None is the loss itself."""

    relevance: Floats
    offsets: Ints
    compared: Floats
    gamma: float
    touch: Floats | None = None

    @property
    def convex(self) -> bool:
        return self.touch is not None

    def at(self, scores: Floats, prove: bool = False) -> LossValue:
        """Values and planes at `scores`, (N,)."""
        began, offsets, query = perf_counter(), self.offsets, query_of_row(self.offsets)
        first, reference = ListNet(self.relevance, offsets).at(scores), self.reference_weights(scores)
        shown = np.exp(scores - _log_sum_exp(scores, offsets)[query])
        apart = totals(shown * self.compared, offsets)
        over, touch = np.maximum(apart, 0.0), scores if self.touch is None else self.touch
        slope = 2.0 * self.gamma * over[query] * shown * (self.compared - apart[query])
        assigned = first.assigned + slope + self.curvature * scores
        paid = 0.5 * totals(reference * touch, offsets)
        convex = first.value + self.gamma * over**2 + 0.5 * totals(self.curvature * scores**2, offsets)
        value = convex - totals(reference * scores, offsets) + paid
        height = convex - totals(assigned * scores, offsets) + paid
        return LossValue(value, value, height, assigned, reference, perf_counter() - began, paid)

    @cached_property
    def curvature(self) -> Floats:
        """(N,) γ R² of the query."""
        starts = self.offsets[:-1]
        span = np.maximum.reduceat(self.compared, starts) - np.minimum.reduceat(self.compared, starts)
        return np.asarray(self.gamma * span[query_of_row(self.offsets)] ** 2)

    def reference_weights(self, scores: Floats) -> Floats:
        return self.curvature * (scores if self.touch is None else self.touch)

    def majorant(self, scores: Floats) -> Self:
        return self if self.convex else replace(self, touch=scores)

    def select_queries(self, first: int, last: int) -> Self:
        rows, touch = slice(*self.offsets[[first, last]].tolist()), self.touch
        return replace(
            self, relevance=self.relevance[rows], offsets=self.offsets[first : last + 1] - self.offsets[first],
            compared=self.compared[rows], touch=None if touch is None else touch[rows],
        )  # fmt: skip


def _log_sum_exp(values: Floats, offsets: Ints) -> Floats:
    """(m,) log Σ_j exp(values_j) of each query; 0 without documents."""
    result, sizes = np.zeros(offsets.size - 1), np.diff(offsets)
    filled = sizes > 0
    starts = offsets[:-1][filled]
    top = np.maximum.reduceat(values, starts)
    result[filled] = top + np.log(np.add.reduceat(np.exp(values - np.repeat(top, sizes[filled])), starts))
    return result


def _running_log_sum(values: Floats, shift: Floats, offsets: Ints) -> Floats:
    """(N,) log Σ_{i <= j} exp(values_i + shift_i) - shift_j inside each query, for shifts that rise."""
    result, starts, sizes = values.copy(), offsets[:-1], np.diff(offsets)
    for position in range(1, int(sizes.max(initial=0))):
        rows = starts[sizes > position] + position
        result[rows] = np.logaddexp(result[rows - 1] + (shift[rows - 1] - shift[rows]), values[rows])
    return result


def _tangent(value: Floats, slope: Floats, scores: Floats, offsets: Ints, began: float) -> LossValue:
    """The value and the tangent plane of a smooth convex loss."""
    height = value - totals(slope * scores, offsets)
    return LossValue(value, value, height, slope, np.zeros(scores.size), perf_counter() - began)


@dataclass(frozen=True, eq=False)
class GainLoss(ABC):
    """Base of losses of the gains of a measure, with a gradient. temperature: T > 0, in units of the scores."""

    relevance: Floats
    offsets: Ints
    temperature: float = 1.0

    protocol: ClassVar[str] = "gradient"

    def __post_init__(self) -> None:
        check("temperature", self.temperature, (POSITIVE,))

    @cached_property
    def gain(self) -> Floats:
        """(N,) b."""
        return MEASURE.gain(self.relevance, self.offsets)

    @cached_property
    def kind(self) -> Shorts:
        """(N,) the grade of each document as 0, 1, 2, ... within its query."""
        return alike(self.offsets, self.relevance)

    @staticmethod
    @abstractmethod
    def of_query(scores: Floats, gain: Floats, temperature: float) -> tuple[float, Floats]:
        """The loss of one query of n documents, and its gradient (n,). scores, gain: (n,)."""

    def gradient(self, scores: Floats, sigma: float | None = None) -> GradientAt:
        """Values (m,) and slopes (N,) at `scores`, at temperature `sigma` or T. Equal score and grade share a slope."""
        value, slope = np.zeros(self.offsets.size - 1), np.empty(scores.size)
        width = self.temperature if sigma is None else sigma
        for q, (low, high) in enumerate(pairwise(self.offsets.tolist())):
            if low < high:
                value[q], slope[low:high] = self.of_query(scores[low:high], self.gain[low:high], width)
        return GradientAt(value, shared(slope, scores, self.kind, self.offsets))

    def select_queries(self, first: int, last: int) -> Self:
        low, high = self.offsets[first], self.offsets[last]
        return replace(self, relevance=self.relevance[low:high], offsets=self.offsets[first : last + 1] - low)


@dataclass(frozen=True, eq=False)
class LambdaLoss(GainLoss):
    """loss_q(s) = Σ_{i, j: y_i > y_j} δ_ij |b_i - b_j| log2(1 + exp((s_j - s_i)/T)), nDCG-Loss2 [Wang et al.
    2018], with δ_ij = a_d - a_{d+1} for documents that are d positions apart in the ranking by score.

    relevance: (N,) grades. offsets: (m + 1,). temperature: T. The weights are constants between exchanges of documents,
    where the loss jumps. Of documents of equal score the lower grade comes first.
    """

    @staticmethod
    def of_query(scores: Floats, gain: Floats, temperature: float) -> tuple[float, Floats]:
        n, position = scores.size, np.empty(scores.size, dtype=np.int64)
        position[np.lexsort((gain, -scores))] = np.arange(n)
        discount = MEASURE.discount(n + 1)
        step = np.append(0.0, -np.diff(discount))[np.abs(position[:, None] - position)]
        weight = step * np.maximum(gain[:, None] - gain, 0.0) / np.log(2.0)
        apart = (scores - scores[:, None]) / temperature
        value = float((weight * np.logaddexp(0.0, apart)).sum())
        pull = weight * _sigmoid(apart) / temperature
        return value, pull.sum(axis=0) - pull.sum(axis=1)


@dataclass(frozen=True, eq=False)
class ApproxNDCG(GainLoss):
    """loss_q(s) = 1 - Σ_j b_j / log2(1 + π_j), with the position π_j = 1 + Σ_{i ≠ j} 1 / (1 + exp((s_j - s_i)/T)) of
    document j as T falls to 0 [Qin, Liu and Li 2010].

    relevance: (N,) grades. offsets: (m + 1,). temperature: T.
    """

    temperature: float = 0.1

    @staticmethod
    def of_query(scores: Floats, gain: Floats, temperature: float) -> tuple[float, Floats]:
        above = _sigmoid((scores - scores[:, None]) / temperature)
        position = 0.5 + above.sum(axis=1)  # a document is half above itself
        log = np.log1p(position)
        fall = np.log(2.0) * gain / (log * log * (1.0 + position))
        change = above * (1.0 - above) / temperature
        return 1.0 - float(np.log(2.0) * gain @ (1.0 / log)), change @ fall - fall * change.sum(axis=1)


@dataclass(frozen=True, eq=False)
class NeuralNDCG(GainLoss):
    """loss_q(s) = 1 - aᵀ S b, with S the permutation matrix of the ranking by score as T falls to 0 [Pobrotyn and
    Bialobrzeski 2021].

    S is NeuralSort's matrix, softmax over j of ((n + 1 - 2i) s_j - Σ_k |s_j - s_k|) / T in row i [Grover et al. 2019],
    after 30 Sinkhorn scalings of its columns and rows. relevance: (N,) grades. offsets: (m + 1,). temperature: T. A
    query of n documents costs O(n²) a scaling.
    """

    @staticmethod
    def of_query(scores: Floats, gain: Floats, temperature: float) -> tuple[float, Floats]:
        n, sign = scores.size, np.sign(scores[:, None] - scores)
        factor, discount = (n - 1.0 - 2.0 * np.arange(n)) / temperature, MEASURE.discount(n)
        spread = np.abs(scores[:, None] - scores).sum(axis=0) / temperature
        logits = np.outer(factor, scores) - spread
        soft = np.exp(logits - logits.max(axis=1, keepdims=True))
        soft /= soft.sum(axis=1, keepdims=True)
        rows, columns, scalings = np.ones((n, 1)), np.ones(n), []
        for _ in range(SINKHORN):
            for axis in (0, 1):
                total = (rows * soft * columns).sum(axis=axis, keepdims=True)
                rows, columns = (rows, columns / total[0]) if axis == 0 else (rows / total, columns)
                scalings.append((rows, columns, total, axis))
        value = 1.0 - float(discount @ (rows * soft * columns) @ gain)
        back = -np.outer(discount, gain)  # the derivative by the matrix, before one operation after the other
        for rows, columns, total, axis in reversed(scalings):
            back = (back - (back * rows * soft * columns).sum(axis=axis, keepdims=True)) / total
        back = soft * (back - (back * soft).sum(axis=1, keepdims=True))
        pull = back.sum(axis=0) / temperature
        return value, factor @ back - (sign * (pull[:, None] + pull)).sum(axis=1)


def _sigmoid(x: Floats) -> Floats:
    """1 / (1 + exp(-x)), without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))
