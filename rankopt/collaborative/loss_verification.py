"""Reference implementations of the losses of one user: pair by pair, and by linear programs.

    squared      Σ (w/2)(f - y)²; of the planes with slope ψ the highest is at -Σ (ψ²/(2w) + ψ y)
    pairs        1/|P| Σ over y_i < y_j of C max(0, 1 + f_i - f_j), all pairs formed; the highest plane of slope ψ is a
                 flow, max Σ x_p,  0 <= x_p <= C_p/|P|,  Σ_p x_p (e_i - e_j) = ψ
    margin       max_π [c[π]ᵀf - a[π]ᵀb] + max a[π]ᵀb - r̄ᵀf by SciPy's assignment; the highest plane of slope ψ is a
                 doubly stochastic X, a mean of rankings: max best - Σ a_i b_j X_ij, Σ_i c_i X_ij = ψ_j + r̄_j

Nothing here is shared with `rankopt.losses` or with a solver of `formulations`.

The program of the mean of rankings, with t = ψ + r̄, has n² variables. Its cost sees the grade of an item only, so
Y_gi, the share of position i of items of gain g, is sufficient; and rows X_j that add up to Y_g with these means t_j
exist if and only if Y_g on the points c is larger in convex order than one unit on each t_j (Hardy, Littlewood and
Pólya; Strassen). Between two neighboring c the one side is linear and the other convex, so check at each c:

    Σ_i Y_gi (c_i - c_m)⁺ >= Σ_j (t_j - c_m)⁺  for every m,    Σ_i Y_gi = n_g,    Σ_i c_i Y_gi = Σ_j t_j

With S_gm = Σ_{i <= m} Y_gi the left side is L_gm = L_g,m-1 + (c_m-1 - c_m) S_g,m-1: n variables a grade, few entries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment, linprog
from scipy.sparse import coo_array, csr_array

from formulations.arrays import Floats, Ints
from rankopt.errors import OptionError
from rankopt.losses.position_weights import parse_position_weights
from rankopt.measures.measure import PositionalMeasure
from rankopt.measures.notation import parse


def highest_flow(worse: Ints, better: Ints, share: Floats, psi: Floats) -> float:
    """Height of the highest plane of slope psi (n,) below Σ_p share_p max(0, 1 + f_worse - f_better); -inf: none."""
    if not worse.size:
        return 0.0 if not psi.any() else -np.inf
    arc = np.arange(worse.size)
    signs = np.concatenate([np.ones(arc.size), -np.ones(arc.size)])
    nodes = csr_array((signs, (np.r_[worse, better], np.r_[arc, arc])), shape=(psi.size, arc.size))
    return -_least(-np.ones(arc.size), nodes, psi, np.zeros(arc.size), share)


def cheapest_mean(a: Floats, b: Floats, c: Floats, t: Floats) -> float:
    """The least mean of a[π]ᵀb over all means of rankings π whose mean c[π] is t (n,); inf where there is none."""
    order, n = np.argsort(-c, kind="stable"), t.size
    a, c = a[order], c[order]
    gains, of = np.unique(b, return_inverse=True)
    size = gains.size * n
    Y = np.arange(size).reshape(gains.size, n)
    S, L = Y + size, Y + 2 * size
    mass, over = n + Y, n + size + Y  # the rows that define S and L
    entries: list[tuple[Ints, Ints, Any]] = [
        (np.broadcast_to(np.arange(n), Y.shape), Y, 1.0),
        (mass, S, 1.0), (mass, Y, -1.0), (mass[:, 1:], S[:, :-1], -1.0),
        (over, L, 1.0), (over[:, 1:], L[:, :-1], -1.0), (over[:, 1:], S[:, :-1], c[1:] - c[:-1]),
    ]  # fmt: skip
    data = np.concatenate([np.broadcast_to(value, rows.shape).ravel() for rows, _, value in entries])
    indices = [np.concatenate([one[axis].ravel() for one in entries]) for axis in (0, 1)]
    rows = csr_array(coo_array((data, tuple(indices)), shape=(n + 2 * size, 3 * size)))
    low, high = np.zeros((3, *Y.shape)), np.full((3, *Y.shape), np.inf)
    for g in range(gains.size):
        own = t[of == g]
        low[1, g, -1] = high[1, g, -1] = own.size
        low[2, g] = np.maximum(own - c[:, None], 0.0).sum(axis=1)
        low[2, g, -1] = high[2, g, -1] = (own - c[-1]).sum()
    cost = np.concatenate([np.outer(gains, a).ravel(), np.zeros(2 * size)])
    return _least(cost, rows, np.concatenate([np.ones(n), np.zeros(2 * size)]), low.ravel(), high.ravel())


def _least(cost: Floats, rows: Any, sides: Floats, low: Floats, high: Floats) -> float:
    """min costᵀx, rows x = sides, low <= x <= high; inf where there is none."""
    found = linprog(cost, A_eq=rows, b_eq=sides, bounds=np.column_stack([low, high]), method="highs")
    return float(found.fun) if found.status == 0 else np.inf


COSTS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "pairwise": lambda low, high: np.ones(low.size),
    "ordinal": lambda low, high: high - low,
    "preferences": lambda low, high: 2.0**high - 2.0**low,
}

MOST_PAIRS, MOST_CELLS = 500_000, 20_000  # variables of a program beyond which planes are not checked: a minute, 1 GB
REFERENCES = ("convex", "tie-aware", "nonconvex")


@dataclass(frozen=True)
class SlowLoss:
    """value: of grades y, scores f and weights w of one user's ratings (n,). highest: the height of the highest plane
    of slope ψ below the loss, -inf where none is; None where planes follow the scores. has_order: whether grades (n,)
    are not all alike. able: whether their program is small enough."""

    value: Callable[[Floats, Floats, Floats], float]
    highest: Callable[[Floats, Floats, Floats], float] | None
    has_order: Callable[[Floats], bool]
    able: Callable[[Floats], bool] = lambda y: True
    squared: bool = False


def slow_loss(spec: Any, bound: Any = "convex", position_weights: Any = "shifted(0.25)") -> SlowLoss:
    """The loss of this name, as `CofiRanker` takes it. Raises OptionError for losses that have no slow way here."""
    if isinstance(spec, str) and spec in ("regression", "squared"):
        return SlowLoss(
            lambda y, f, w: 0.5 * float(w @ (f - y) ** 2),
            lambda y, psi, w: -float((psi * psi / w).sum() / 2.0 + psi @ y),
            lambda y: spec == "regression" or bool(np.ptp(y) > 0),
            squared=True,
        )
    if isinstance(spec, str) and spec in COSTS:
        cost = COSTS[spec]
        return SlowLoss(
            lambda y, f, w: float(w[0] * _pairs(y, cost, f)),
            lambda y, psi, w: float(w[0] * highest_flow(*_all_pairs(y, cost), psi / w[0])),
            lambda y: bool(np.ptp(y) > 0),
            lambda y: int(y.size**2 - (np.unique(y, return_counts=True)[1] ** 2).sum()) // 2 <= MOST_PAIRS,
        )
    known = ", ".join(map(repr, ("regression", "squared", *COSTS)))
    if not isinstance(bound, str) or bound not in REFERENCES:
        raise OptionError(f"bound = {bound!r} cannot be verified; only {', '.join(map(repr, REFERENCES))} can")
    try:
        measure = parse(spec)
    except (TypeError, ValueError):
        measure = None
    if not isinstance(measure, PositionalMeasure):
        raise OptionError(f"loss = {spec!r} cannot be verified: it is neither of {known} nor a positional measure")
    margin = _Margin(measure, parse_position_weights(position_weights), bound)
    return SlowLoss(
        lambda y, f, w: float(w[0] * margin.value(y, f)),
        (lambda y, psi, w: float(w[0] * margin.highest(y, psi / w[0]))) if bound == "convex" else None,
        lambda y: bool(y.size > 1 and margin.spread(y) > 0),
        lambda y: y.size * np.unique(margin.gains(y)).size <= MOST_CELLS,
    )


def _all_pairs(y: Floats, cost: Callable[[Floats, Floats], Floats]) -> tuple[Any, Any, Floats]:
    worse, better = np.nonzero(y[:, None] < y)
    return worse, better, cost(y[worse], y[better]) / max(worse.size, 1)


def _pairs(y: Floats, cost: Callable[[Floats, Floats], Floats], f: Floats) -> float:
    worse, better, share = _all_pairs(y, cost)
    return float(share @ np.maximum(0.0, 1.0 + f[worse] - f[better]))


@dataclass(frozen=True)
class _Margin:
    """The margin loss of one list."""

    measure: PositionalMeasure
    position_weights: Any
    bound: str

    def _parts(self, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Discounts a, gains b, position weights c."""
        return self.measure.discount(y.size), self.gains(y), self.position_weights.weights(y.size, self.measure)

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
        position, item = linear_sum_assignment(np.outer(c, f) - np.outer(a, b), maximize=True)
        best = float(a @ np.sort(b)[::-1])
        return float(c[position] @ f[item] - a[position] @ b[item]) + best - self._reference(a, b, c, f)

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
            indices = np.flatnonzero(b[order] == level)
            mean[b == level] = c[indices].mean()
        return mean

    def highest(self, y: Floats, psi: Floats) -> float:
        a, b, c = self._parts(y)
        return float(a @ np.sort(b)[::-1]) - cheapest_mean(a, b, c, psi + self._mean_best(b, c))
