"""Intervals of a mean over queries, by Student's t or by the bootstrap.

    t          v̄ ± t s / √n, t the quantile of Student's distribution with n - 1 degrees of freedom
    bootstrap  quantiles of the means of n queries drawn again, with replacement. Of differences of two rankers it is
               paired: a query that is drawn is drawn for both

Source of the latter: Sakai, Evaluating evaluation metrics based on the bootstrap, 2006.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from rankopt.errors import OptionError
from rankopt.measures.segments import Floats

IntervalBy = Literal["t", "bootstrap"]


def check_interval(by: str, confidence: float, resamples: int) -> None:
    """OptionError for what makes no interval."""
    if by not in get_args(IntervalBy):
        raise OptionError(f"interval cannot be {by!r}; write 't' or 'bootstrap'.")
    if resamples < 1 or not 0 < confidence < 1:
        raise OptionError(f"resamples={resamples} and confidence={confidence} must be >= 1 and between 0 and 1.")


def interval_of(
    values: Floats,
    by: IntervalBy = "t",
    confidence: float = 0.95,
    resamples: int = 10_000,
    random_state: int | np.random.Generator | None = 0,
) -> tuple[float, float]:
    """The interval of the mean of values (n,), none NaN; NaN where n < 2."""
    if len(values) < 2:
        return (np.nan, np.nan)
    if by == "bootstrap":
        return _bootstrap(values, confidence, resamples, np.random.default_rng(random_state))
    from scipy.special import stdtrit

    mean, error = float(values.mean()), float(values.std(ddof=1)) / np.sqrt(len(values))
    half = float(stdtrit(len(values) - 1, 0.5 + confidence / 2) * error) if error else 0.0
    return mean - half, mean + half


def _bootstrap(values: Floats, confidence: float, resamples: int, random: np.random.Generator) -> tuple[float, float]:
    n, means, left = len(values), [], resamples
    while left:
        rows = min(left, max(1, 2**20 // n))
        means.append(values[random.integers(0, n, size=(rows, n))].mean(axis=1))
        left -= rows
    low, high = np.quantile(np.concatenate(means), [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
