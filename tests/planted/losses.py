"""Losses and a bound of one's own, in a module that workers can import."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankopt.losses.loss import LossValue


@dataclass(frozen=True, eq=False)
class TopOne:
    """loss_q(s) = -Σ_j p_j log softmax(s)_j, p the softmax of the grades: the cross entropy of who comes first.

    Smooth and convex: its plane at s is its tangent.
    """

    relevance: np.ndarray
    offsets: np.ndarray
    convex: ClassVar[bool] = True

    def at(self, scores, prove=False):
        given, shown = self.softmax(self.relevance), self.softmax(scores)
        value = -np.add.reduceat(given * np.log(shown), self.offsets[:-1])
        slope = shown - given
        height = value - np.add.reduceat(slope * scores, self.offsets[:-1])
        return LossValue(value, value, height, slope, np.zeros(scores.size), 0.0)

    def softmax(self, values):
        sizes = np.diff(self.offsets)
        shifted = np.exp(values - np.repeat(np.maximum.reduceat(values, self.offsets[:-1]), sizes))
        return shifted / np.repeat(np.add.reduceat(shifted, self.offsets[:-1]), sizes)

    def majorant(self, scores):
        return self

    def select_queries(self, first, last):
        low, high = self.offsets[first], self.offsets[last]
        return TopOne(self.relevance[low:high], self.offsets[first : last + 1] - low)

    def reference_weights(self, scores):
        return np.zeros(scores.size)


@dataclass(frozen=True)
class Halfway:
    """H + best - (r̄ + r̂)ᵀs / 2: r̄ of the convex bound, r̂ of the tie-aware one."""

    convex: ClassVar[bool] = False

    def __call__(self, argmax, scores):
        return (argmax.mean_of_best() + argmax.best_then_score(scores)) / 2
