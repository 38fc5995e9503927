"""SmoothGrad: a smoothed ranking measure with soft positions, Gaussian in score differences [paper 1, section 5].

    A_q(s; σ) = Σ_{j <= k} a_j m_j - constant_q      m_j = Σ_i b_i h_ij / Σ_i h_ij     h_ij = exp(-(s_i - s_(j))² / 2σ²)

a_j is the discount of position j <= k, s_(j) the j-th largest score, b_i the gain of document i.
With t_ij = a_j (b_i - m_j) h_ij (s_i - s_(j)) / (σ² Σ_i h_ij),

    ∂A_q/∂s_i gets -t_ij        ∂A_q/∂s_(j) gets Σ_i t_ij, in equal parts the documents of that very score.

A_q tends to the measure as σ tends to 0; for tied scores to the mean over their orders, as in `evaluate`. It is
continuous, nonconvex, with kinks where two documents exchange positions. It has a gradient elsewhere, but neither
planes nor a bound. Cost a query: O(n k) exponentials, no sorting, no table of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from formulations.arrays import Floats, Ints, Out
from formulations.compiled import compiled, inlined, is_small
from formulations.parallel import share_ranges
from rankopt.data.canonical_order import rows_of
from rankopt.errors import OptionError
from rankopt.losses.loss import GradientAt
from rankopt.losses.oracle_positional import orderable
from rankopt.losses.segment_ops import sorted_rows
from rankopt.measures.measure import Measure, PositionalMeasure
from rankopt.measures.notation import parse
from rankopt.measures.tied_ranking import query_of_row

QUERY_ROWS = 1 << 11
"""Rows of complete queries that one thread processes at a time; the exponentials a row are the positions that count."""


@dataclass(frozen=True, eq=False)
class SmoothedRegret:
    """loss_q(s) = max_π a[π]ᵀb - constant_q - A_q(s; σ): at σ = 0 the regret itself, with slope 0.

    A row of h sums to 1 over documents, but a column need not: A_q may exceed the optimum a little, the loss be < 0.

    measure: positional; a ranker passes its own. sigma: σ, in units of the scores. small: whether the complete data are
    too small to compile kernels for; None decides by these queries alone.
    """

    relevance: Floats
    offsets: Ints
    measure: Any = "nDCG@10"
    sigma: float = 0.5
    small: bool | None = None

    protocol: ClassVar[str] = "gradient"

    @classmethod
    def of_measure(cls, measure: Any) -> Callable[..., SmoothedRegret]:
        """The factory of this loss for a measure."""
        return partial(cls, measure=positional(measure))

    def gradient(self, scores: Floats, sigma: float | None = None) -> GradientAt:
        """Values (m,) and slopes (N,) at `scores`, with width `sigma`, by default that of the loss."""
        width = self.sigma if sigma is None else sigma
        value, slope = np.zeros(self.offsets.size - 1), np.zeros(scores.size)
        arguments = (
            np.ascontiguousarray(scores, dtype=np.float64),
            self.gain,
            self.discount,
            self.cutoffs,
            self.offsets,
        )
        if self._small:
            value, slope = self._by_pairs(arguments[0], width)
        else:
            share_ranges(
                self.offsets,
                QUERY_ROWS,
                lambda first, last: smooth_values(*arguments, width, first, last, value, slope),
            )
        return GradientAt(self.best - value, -slope)

    def select_queries(self, first: int, last: int) -> SmoothedRegret:
        low, high = self.offsets[first], self.offsets[last]
        offsets = self.offsets[first : last + 1] - low
        return SmoothedRegret(self.relevance[low:high], offsets, self.measure, self.sigma, self._small)

    @cached_property
    def best(self) -> Floats:
        """(m,) max_π a[π]ᵀb: the constant of a measure is in A as well, and cancels."""
        rows = sorted_rows(query_of_row(self.offsets), self.gain)
        return np.add.reduceat(self.discount * self.gain[rows], self.offsets[:-1])

    @property
    def ideal(self) -> Floats:
        """(m,) the measure of the best orders."""
        return self.best - self._positional.constant(self.relevance, self.offsets)

    @cached_property
    def gain(self) -> Floats:
        return np.ascontiguousarray(self._positional.gain(self.relevance, self.offsets), dtype=np.float64)

    @cached_property
    def discount(self) -> Floats:
        return np.ascontiguousarray(self._positional.discounts(self.offsets), dtype=np.float64)

    @cached_property
    def cutoffs(self) -> Ints:
        """(m,) k: the position of each query behind which the discount is 0."""
        position = np.arange(self.discount.size) - np.repeat(self.offsets[:-1], np.diff(self.offsets)) + 1
        return np.maximum.reduceat(np.where(self.discount != 0.0, position, 0), self.offsets[:-1])

    @cached_property
    def _positional(self) -> PositionalMeasure:
        found = positional(self.measure)
        if not found.is_inner_product(self.relevance, self.offsets):
            raise _unsupported(found, " on queries with several relevant documents")
        return found

    @cached_property
    def _small(self) -> bool:
        return is_small(self.offsets) if self.small is None else self.small

    @cached_property
    def _pairs(self) -> tuple[Ints, Ints, Ints]:
        """All pairs of a document and a counted position of its query: the document, the row of the position, and the
        start of each position's documents."""
        lengths = np.diff(self.offsets)
        row = np.concatenate([low + np.arange(k) for low, k in zip(self.offsets[:-1], self.cutoffs, strict=True)])
        sizes = np.repeat(lengths, self.cutoffs)
        starts = np.cumsum(sizes) - sizes
        within = np.arange(sizes.sum()) - np.repeat(starts, sizes)
        return np.repeat(np.repeat(self.offsets[:-1], self.cutoffs), sizes) + within, row, starts

    def _by_pairs(self, scores: Floats, sigma: float) -> tuple[Floats, Floats]:
        """A (m,) and its slopes (N,), vectorized: the formula of the module docstring."""
        query, (document, row, starts) = query_of_row(self.offsets), self._pairs
        order = sorted_rows(query, scores)
        sizes = np.diff(np.append(starts, document.size))
        with np.errstate(over="ignore"):
            apart = scores[document] - np.repeat(scores[order[row]], sizes)
        if sigma > 0:
            with np.errstate(over="ignore", under="ignore"):
                near = np.exp(-0.5 * (apart / sigma) ** 2)
        else:
            near = (apart == 0.0).astype(np.float64)
        mass = np.add.reduceat(near, starts)
        gain = self.gain[document]
        mean = np.add.reduceat(near * gain, starts) / mass
        value: Floats = np.bincount(query[row], self.discount[row] * mean, self.offsets.size - 1).astype(np.float64)
        if not sigma > 0:
            return value, np.zeros(scores.size)
        pull = np.repeat(self.discount[row] / (mass * (sigma * sigma)), sizes) * (gain - np.repeat(mean, sizes))
        pull *= near * np.where(near > 0, apart, 0.0)
        slope: Floats = -np.bincount(document, pull, scores.size).astype(np.float64)
        same = apart == 0.0  # of s_(j): the documents of that very score
        shares = np.repeat(np.add.reduceat(pull, starts) / np.add.reduceat(same.astype(np.float64), starts), sizes)
        slope += np.bincount(document[same], shares[same], scores.size)
        return value, slope


def positional(measure: Any) -> PositionalMeasure:
    """The measure, if it can be smoothed so; OptionError for others."""
    found: Measure = parse(measure)
    if not isinstance(found, PositionalMeasure):
        raise _unsupported(found, "")
    return found


def smoothable(measure: Any, relevance: Floats, offsets: Ints) -> bool:
    """Whether `SmoothedRegret` takes the measure on those of these queries that have something to order."""
    found: Measure = parse(measure)
    if not isinstance(found, PositionalMeasure):
        return False
    chosen = np.flatnonzero(orderable(relevance, offsets, found))
    rows, lengths = rows_of(offsets, chosen), np.diff(offsets)[chosen]
    return found.is_inner_product(relevance[rows], np.append(0, np.cumsum(lengths)))


def _unsupported(measure: Measure, where: str) -> OptionError:
    return OptionError(
        f"measure {measure} cannot be smoothed: it is not an inner product of position weights and gains{where}; "
        f"use nDCG@k, DCG@k, P@k, AUC, ..., or optimize the measure directly: DirectRanker({str(measure)!r})"
    )


NOTHING = 38.0  # exp(-38) = 3e-17: larger exponents do not change a sum that contains 1


@inlined
def _largest(scores: Floats, low: int, high: int, k: int, top: Floats) -> None:
    """top[:k]: the k largest scores of the rows low <= i < high, falling."""
    held = 0
    for i in range(low, high):
        s = scores[i]
        if held < k:
            p = held
            held += 1
        elif s > top[k - 1]:
            p = k - 1
        else:
            continue
        while p > 0 and top[p - 1] < s:
            top[p] = top[p - 1]
            p -= 1
        top[p] = s


@compiled()
def smooth_values(
    scores: Floats, gain: Floats, discount: Floats, cutoffs: Ints, offsets: Ints, sigma: float, first: int, last: int,
    value: Out[Floats], slope: Out[Floats],
) -> None:  # fmt: skip
    """value[q] = A_q and its slopes, of the queries first <= q < last; σ = 0 is the limit, with slopes of 0. Positions
    of equal score are merged: their discounts add up. `slope` must be zero on input."""
    longest, most = 1, 1
    for q in range(first, last):
        longest, most = max(longest, offsets[q + 1] - offsets[q]), max(most, cutoffs[q])
    near, top = np.empty(longest), np.empty(most)
    sharp = 0.5 / (sigma * sigma) if sigma > 0.0 else 0.0
    for q in range(first, last):
        low, high, k = offsets[q], offsets[q + 1], cutoffs[q]
        _largest(scores, low, high, k, top)
        total, p = 0.0, 0
        while p < k:
            s, worth = top[p], 0.0
            while p < k and top[p] == s:
                worth += discount[low + p]
                p += 1
            mass, earned, same, one = 0.0, 0.0, 0, low
            for i in range(low, high):
                apart = scores[i] - s
                if apart == 0.0:
                    h = 1.0
                    same += 1
                    one = i
                else:
                    far = apart * apart * sharp
                    h = math.exp(-far) if sigma > 0.0 and far < NOTHING else 0.0
                near[i - low] = h
                mass += h
                earned += h * gain[i]
            mean = earned / mass
            total += worth * mean
            if sigma > 0.0:
                strength, pulled = worth * 2.0 * sharp / mass, 0.0
                for i in range(low, high):
                    if near[i - low] > 0.0:
                        pull = strength * (gain[i] - mean) * near[i - low] * (scores[i] - s)
                        slope[i] -= pull
                        pulled += pull
                if same == 1:
                    slope[one] += pulled
                else:
                    for i in range(low, high):
                        if scores[i] == s:
                            slope[i] += pulled / same
        value[q] = total
