"""Losses of one user's scores by the slowest way, to check the quick ones: pair by pair, and by linear programs.

    squared      Σ (w/2)(f - y)²; of the planes with slope ψ the highest is at -Σ (ψ²/(2w) + ψ y)
    pairs        1/|P| Σ over y_i < y_j of C max(0, 1 + f_i - f_j), all pairs formed; the highest plane of slope ψ is a
                 flow, max Σ x_p,  0 <= x_p <= C_p/|P|,  Σ_p x_p (e_i - e_j) = ψ
    margin       max_π [c[π]ᵀf - a[π]ᵀb] + max a[π]ᵀb - r̄ᵀf by SciPy's assignment; the highest plane of slope ψ is a
                 doubly stochastic X, a mean of rankings: max best - Σ a_i b_j X_ij, Σ_i c_i X_ij = ψ_j + r̄_j

Both programs stand in `highest_plane`.

Nothing here is shared with `rankopt.losses` or with a solver of `formulations`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from rankopt.collaborative.bounds.highest_plane import SHORT, cheapest_mean, highest_flow
from rankopt.errors import OptionError
from rankopt.losses.decay import parse_decay
from rankopt.measures.notation import parse
from rankopt.measures.positional import Positional

__all__ = ["SlowLoss", "slow_loss"]

Floats = NDArray[np.float64]

COSTS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "pairwise": lambda low, high: np.ones(low.size),
    "ordinal": lambda low, high: high - low,
    "preferences": lambda low, high: 2.0**high - 2.0**low,
}

MOST_PAIRS, MOST_CELLS = 500_000, 20_000
"""Variables of a flow, and gains × ratings of a mean of rankings, above which planes are not checked: a program at
these takes about a minute and a gigabyte."""

REFERENCES = ("convex", "tie-aware", "nonconvex")


@dataclass(frozen=True)
class SlowLoss:
    """value: of grades y, scores f and weights w of one user's ratings (n,). highest: the height of the highest plane
    of slope ψ below the loss, -inf where none is; None where planes follow the scores. told: whether grades (n,) leave
    anything to order; able: whether their program is small enough to be solved."""

    value: Callable[[Floats, Floats, Floats], float]
    highest: Callable[[Floats, Floats, Floats], float] | None
    told: Callable[[Floats], bool]
    able: Callable[[Floats], bool] = lambda y: True
    squared: bool = False


def slow_loss(spec: Any, bound: Any = "convex", decay: Any = "shifted(0.25)") -> SlowLoss:
    """The loss of this name, as `CofiRanker` takes it. Raises OptionError for losses that have no slow way here."""
    if isinstance(spec, str) and spec in ("regression", "squared"):
        return SlowLoss(_squares, _highest_square, lambda y: spec == "regression" or bool(np.ptp(y) > 0), squared=True)
    if isinstance(spec, str) and spec in COSTS:
        cost = COSTS[spec]
        return SlowLoss(
            lambda y, f, w: float(w[0] * _pairs(y, cost, f)),
            lambda y, psi, w: float(w[0] * _flow(y, cost, psi / w[0])),
            lambda y: bool(np.ptp(y) > 0),
            lambda y: _pairs_of(y) <= MOST_PAIRS,
        )
    known = ", ".join(map(repr, ("regression", "squared", *COSTS)))
    if not isinstance(bound, str) or bound not in REFERENCES:
        raise OptionError(f"bound = {bound!r} cannot be verified; only {', '.join(map(repr, REFERENCES))} can")
    try:
        measure = parse(spec)
    except (TypeError, ValueError):
        measure = None
    if not isinstance(measure, Positional):
        raise OptionError(
            f"loss = {spec!r} cannot be verified because it is neither of {known} nor a positional measure"
        )
    margin = _Margin(measure, parse_decay(decay), bound)
    return SlowLoss(
        lambda y, f, w: float(w[0] * margin.value(y, f)),
        (lambda y, psi, w: float(w[0] * margin.highest(y, psi / w[0]))) if bound == "convex" else None,
        lambda y: bool(y.size > 1 and margin.spread(y) > 0),
        lambda y: y.size <= SHORT or y.size * np.unique(margin.gains(y)).size <= MOST_CELLS,
    )


def _squares(y: Floats, f: Floats, w: Floats) -> float:
    return 0.5 * float(w @ (f - y) ** 2)


def _highest_square(y: Floats, psi: Floats, w: Floats) -> float:
    return -float((psi * psi / w).sum() / 2.0 + psi @ y)


def _pairs_of(y: Floats) -> int:
    """How many pairs of different grades there are."""
    counts = np.unique(y, return_counts=True)[1]
    return int(y.size**2 - counts @ counts) // 2


def _all_pairs(y: Floats, cost: Callable[[Floats, Floats], Floats]) -> tuple[Any, Any, Floats]:
    worse, better = np.nonzero(y[:, None] < y)
    return worse, better, cost(y[worse], y[better]) / max(worse.size, 1)


def _pairs(y: Floats, cost: Callable[[Floats, Floats], Floats], f: Floats) -> float:
    worse, better, share = _all_pairs(y, cost)
    return float(share @ np.maximum(0.0, 1.0 + f[worse] - f[better]))


def _flow(y: Floats, cost: Callable[[Floats, Floats], Floats], psi: Floats) -> float:
    return highest_flow(*_all_pairs(y, cost), psi)


@dataclass(frozen=True)
class _Margin:
    """The margin loss of one list."""

    measure: Positional
    decay: Any
    bound: str

    def _parts(self, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Discounts a, gains b, position weights c."""
        return self.measure.discount(y.size), self.gains(y), self.decay.weights(y.size, self.measure)

    def gains(self, y: Floats) -> Floats:
        """b."""
        return np.asarray(self.measure.gain(y, np.array([0, y.size])))

    def spread(self, y: Floats) -> float:
        """By how much the best order is better than the worst."""
        a, b, _ = self._parts(y)
        falling = np.sort(b)[::-1]
        return float(a @ falling - a @ falling[::-1])

    def value(self, y: Floats, f: Floats) -> float:
        a, b, c = self._parts(y)
        place, item = linear_sum_assignment(np.outer(c, f) - np.outer(a, b), maximize=True)
        best = float(a @ np.sort(b)[::-1])
        return float(c[place] @ f[item] - a[place] @ b[item]) + best - self._reference(a, b, c, f)

    def _reference(self, a: Floats, b: Floats, c: Floats, f: Floats) -> float:
        """r̄ᵀf."""
        if self.bound == "convex":
            return float(self._mean_best(b, c) @ f)
        if self.bound == "nonconvex":
            return float(c @ np.sort(f)[::-1])
        order = np.lexsort((-f, -b))
        liked = f[order].copy()
        cuts = np.flatnonzero(np.diff(a)) + 1  # positions of equal discount may be filled in any order
        for run in np.split(np.arange(a.size), cuts):
            liked[run] = np.sort(liked[run])[::-1]
        return float(c @ liked)

    @staticmethod
    def _mean_best(b: Floats, c: Floats) -> Floats:
        """The mean c of each item over all orders by gain."""
        order, mean = np.argsort(-b, kind="stable"), np.empty(b.size)
        for level in np.unique(b):
            places = np.flatnonzero(b[order] == level)
            mean[b == level] = c[places].mean()
        return mean

    def highest(self, y: Floats, psi: Floats) -> float:
        a, b, c = self._parts(y)
        return float(a @ np.sort(b)[::-1]) - cheapest_mean(a, b, c, psi + self._mean_best(b, c))
