"""Choice of the ridge parameter: least squares for all ridges at once, and cross-validation over queries.

With A the rows less the mean of their query, r the targets likewise (both times the roots of the weights),
AᵀA = Σ_i e_i v_i v_iᵀ and c_i = v_iᵀ Aᵀ r, all ridges α have w(α) = Σ_i c_i / (e_i + α) v_i. Held-out queries with
AᵀA = G and Aᵀr = b have the error ‖r‖² - 2 bᵀw + wᵀG w. One pass over the data serves all ridges, also α σ_j² with
the features in units of their standard deviations σ_j.

Queries are held out, not rows. Generalized cross-validation leaves out rows: it treats the documents of a query as
independent and selects ridges that are too small.

For many features the ridge is chosen in the space of the rows if these are few, else from a short list, one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from scipy.optimize import lsq_linear

from formulations.arrays import Floats, Ints
from rankopt.data.canonical_order import rows_of
from rankopt.optimize.least_squares import centered, least_squares, spread
from rankopt.scorers.linear import row_scores

FOLDS = 5

LEAST = 1e-12  # the least eigenvalue, of a matrix with diagonal 1, that a bounded solution sees

POWERS = np.linspace(-10.0, 2.0, 12 * 6 + 1)
"""Ridges of each kind that are looked at, as powers of ten times the largest e_i."""


@dataclass(frozen=True, eq=False)
class Products:
    """G = AᵀA (d, d), b = Aᵀr (d,) and ‖r‖² of some queries."""

    squares: Floats
    crossed: Floats
    total: float

    def plus(self, other: Products, sign: float = 1.0) -> Products:
        return Products(
            self.squares + sign * other.squares, self.crossed + sign * other.crossed, self.total + sign * other.total
        )

    def scaled(self, scale: Floats) -> Products:
        """The products of the features times their scales (d,)."""
        return Products(self.squares * scale * scale[:, None], self.crossed * scale, self.total)

    def errors(self, weights: Floats) -> Floats:
        """(A,) ‖r - A w‖² of each row w of the weights (A, d)."""
        quadratic = np.einsum("ai,ai->a", weights, weights @ self.squares)
        return np.asarray(self.total - 2.0 * weights @ self.crossed + quadratic)


@dataclass(frozen=True, eq=False)
class Ridges:
    """Least squares of one problem of so many rows for many ridges.

    folds: the products of some queries each, in turn left out. penalties (P, d) and weights (P, d): the ridge of each
    feature, and the w of all queries that it leads to. They are of two kinds, α and α σ_j², σ_j² the variance of
    feature j inside the queries: the second is the same at every scale of every feature.
    """

    folds: tuple[Products, ...]
    rows: int

    @classmethod
    def from_features(cls, features: Any, targets: Floats, weights: Floats, rows: Ints, offsets: Ints) -> Ridges:
        """Read the data once. Arguments as in `least_squares`; queries of weight 0 belong to no fold.

        Squares of the features must be within double precision.
        """
        counted = np.flatnonzero(weights[offsets[:-1]] > 0)
        some = min(FOLDS, counted.size)
        folds = []
        for fold in range(some):
            own, cut = of_queries(offsets, counted[fold::some])
            folds.append(products(features, targets[own], weights[own], rows[own], cut))
        return cls(tuple(folds), rows.size)

    @cached_property
    def families(self) -> tuple[RidgeFamily, ...]:
        """The two kinds of ridges: in units of the features as they are, and of their deviations."""
        squares = np.diagonal(self.total.squares)
        deviations = np.sqrt(squares)
        inverse = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0)
        found = []
        for scale in (np.ones_like(inverse), inverse):
            largest = float(np.linalg.eigvalsh(self.total.scaled(scale).squares)[-1])
            found.append(RidgeFamily(scale, largest * 10.0**POWERS if largest > 0 else np.ones(1)))
        return tuple(found)

    @property
    def penalties(self) -> Floats:
        return np.vstack([family.penalties for family in self.families])

    @property
    def weights(self) -> Floats:
        return np.vstack([family.weights(self.total) for family in self.families])

    def cross_validated(self) -> Floats:
        """(d,) the ridge whose weights, learned without a fold, err least on it; of equals the largest of a kind.

        A single query cannot be held out: its rows are left out one by one by generalized cross-validation,
        ‖r - A w‖² / (N - 1 - Σ_i e_i / (e_i + α))² (Golub, Heath and Wahba 1979).
        """
        return least(self.penalties, np.concatenate([self.judged(family) for family in self.families]))

    def judged(self, family: RidgeFamily) -> Floats:
        """(A,) what each ridge of the family errs by."""
        if len(self.folds) < 2:
            return family.generalized(self.total, self.rows)
        without = [self.total.plus(fold, -1.0) for fold in self.folds]
        return np.asarray(
            sum(fold.errors(family.weights(rest)) for fold, rest in zip(self.folds, without, strict=True))
        )

    @cached_property
    def total(self) -> Products:
        """The products of all queries."""
        return reduce(Products.plus, self.folds)


@dataclass(frozen=True, eq=False)
class RidgeFamily:
    """The ridges α / scale_j² of all `alphas` (A,), rising: those of least squares in z = w / scale."""

    scale: Floats
    alphas: Floats

    @property
    def penalties(self) -> Floats:
        """(A, d); 0 for features that vary nowhere, whose weight is 0 under every ridge."""
        inverse = np.divide(1.0, self.scale, out=np.zeros_like(self.scale), where=self.scale > 0)
        return np.asarray(self.alphas[:, None] * inverse**2)

    def weights(self, products: Products) -> Floats:
        """(A, d) w of every ridge, to some digits fewer than `least_squares` gives."""
        own = products.scaled(self.scale)
        values, vectors = np.linalg.eigh(own.squares)
        shifted = np.maximum(values, 0.0) + self.alphas[:, None]
        return np.asarray((vectors.T @ own.crossed / shifted) @ vectors.T * self.scale)

    def generalized(self, total: Products, rows: int) -> Floats:
        """(A,) generalized cross-validation of every ridge."""
        values = np.maximum(np.linalg.eigvalsh(total.scaled(self.scale).squares), 0.0)
        freedom = rows - 1 - np.sum(values / (values + self.alphas[:, None]), axis=1)
        left = np.maximum(total.errors(self.weights(total)), 0.0)
        return np.where(freedom > 0, left / np.maximum(freedom, 1.0) ** 2, np.inf)


def least(penalties: Floats, errors: Floats) -> Floats:
    """The penalty of the least error; of equals the last."""
    return np.asarray(penalties[np.flatnonzero(errors == np.min(errors))[-1]])


def of_queries(offsets: Ints, chosen: Ints) -> tuple[Ints, Ints]:
    """The rows of these queries, and where each of them begins among those."""
    return rows_of(offsets, chosen), np.concatenate([[0], np.cumsum(np.diff(offsets)[chosen])])


def products(features: Any, targets: Floats, weights: Floats, rows: Ints, offsets: Ints | None) -> Products:
    """G, b and ‖r‖² of these queries, in one pass over their rows."""
    matrix, right = centered(features, targets, weights, rows, offsets)

    def both(blocks: Iterator[tuple[slice, Floats]]) -> Floats:
        return np.asarray(sum(block.T @ np.column_stack([block, right[part]]) for part, block in blocks))

    found = np.sum(matrix.reduced(both), axis=0)
    return Products(found[:, :-1], found[:, -1], float(right @ right))


def least_squares_in_box(
    box: Floats, features: Any, targets: Floats, weights: Floats, alpha: Floats, rows: Ints, offsets: Ints | None
) -> Floats:
    """The w of `least_squares` in box (2, d), box[0] <= w <= box[1], by an active-set method [Stark and Parker 1995] on
    a root of AᵀA + α with columns of norm 1."""
    found = products(features, targets, weights, rows, offsets)
    system = found.squares + np.diag(alpha)
    scale = 1.0 / np.sqrt(np.where(np.diagonal(system) > 0, np.diagonal(system), 1.0))
    values, vectors = np.linalg.eigh(system * scale * scale[:, None])
    root = np.sqrt(np.maximum(values, LEAST))  # of several solutions the shortest
    right = vectors.T @ (found.crossed * scale) / root
    matrix, low, high = root[:, None] * vectors.T, *(box / scale)
    free = low < high  # lsq_linear takes no others
    solved = np.where(free, 0.0, low)
    right -= matrix[:, ~free] @ solved[~free]
    if free.any():
        limits, steps = (low[free], high[free]), 20 * free.size + 100
        solved[free] = lsq_linear(matrix[:, free], right, limits, method="bvls", tol=1e-14, max_iter=steps).x
    return np.asarray(np.clip(solved * scale, *box))


WIDEST = 2048
"""Features, or rows where these are fewer, up to which every ridge is solved at once, by their dense products."""

NUMBERS = 1 << 25  # entries of the features up to which few rows are made dense


@dataclass(frozen=True, eq=False)
class FewRows:
    """The same for fewer rows than features: w lies in the span of the rows, so the problem is turned into that space.

    For each kind of ridge its scale (d,), a basis (d, N) of the rows so scaled, and the ridges of their coordinates.
    """

    kinds: tuple[tuple[Floats, Floats, Ridges], ...]

    @classmethod
    def from_features(cls, features: Any, targets: Floats, weights: Floats, rows: Ints, offsets: Ints) -> FewRows:
        sizes = np.diff(offsets)
        own = features[rows].toarray() if hasattr(features, "toarray") else features[rows].astype(np.float64)
        own = own - np.repeat(np.add.reduceat(own, offsets[:-1], axis=0) / sizes[:, None], sizes, axis=0)
        deviations = np.sqrt(weights @ own**2)
        inverse = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0)
        kinds = []
        for scale in (np.ones_like(inverse), inverse):
            basis, coordinates = np.linalg.qr((own * scale).T)
            turned = np.ascontiguousarray(coordinates.T)
            kinds.append((scale, basis, Ridges.from_features(turned, targets, weights, np.arange(rows.size), offsets)))
        return cls(tuple(kinds))

    @property
    def penalties(self) -> Floats:
        return np.vstack([replace(ridges.families[0], scale=scale).penalties for scale, _, ridges in self.kinds])

    @property
    def weights(self) -> Floats:
        return np.vstack(
            [ridges.families[0].weights(ridges.total) @ basis.T * scale for scale, basis, ridges in self.kinds]
        )

    def cross_validated(self) -> Floats:
        """(d,) the ridge that `Ridges` would choose."""
        errors = [ridges.judged(ridges.families[0]) for _, _, ridges in self.kinds]
        return least(self.penalties, np.concatenate(errors))


@dataclass(frozen=True, eq=False)
class WideRidges:
    """The same for more features than that: each ridge of a few is a solution of its own, by iteration where the
    features are sparse. α is the trace of AᵀA times 10⁻¹ to 10⁻⁵."""

    features: Any
    targets: Floats
    row_weights: Floats
    rows: Ints
    offsets: Ints

    @cached_property
    def penalties(self) -> Floats:
        trace = spread(self.features, self.row_weights, self.rows, self.offsets)
        alphas = (trace if trace > 0 else 1.0) * 10.0 ** np.arange(-5.0, 0.0)
        return np.repeat(alphas[:, None], self.features.shape[1], axis=1)

    @property
    def weights(self) -> Floats:
        every = np.arange(self.offsets.size - 1)
        return np.stack([self._solved(every, penalty) for penalty in self.penalties])

    def cross_validated(self) -> Floats:
        """(d,) the ridge that errs least on queries left out, of three folds; one query alone gets the middle one."""
        counted = np.flatnonzero(self.row_weights[self.offsets[:-1]] > 0)
        some = min(3, counted.size)
        if some < 2:
            return np.asarray(self.penalties[len(self.penalties) // 2])
        errors = np.zeros(len(self.penalties))
        for fold in range(some):
            left = counted[fold::some]
            own, cut = of_queries(self.offsets, left)
            middled = np.repeat(np.diff(cut), np.diff(cut))
            for position, penalty in enumerate(self.penalties):
                w = self._solved(np.setdiff1d(counted, left), penalty)
                missed = self.targets[own] - row_scores(self.features, self.rows[own], w)
                missed -= np.repeat(np.add.reduceat(missed, cut[:-1]), np.diff(cut)) / middled
                errors[position] += float(self.row_weights[own] @ missed**2)
        return least(self.penalties, errors)

    def _solved(self, queries: Ints, penalty: Floats) -> Floats:
        own, cut = of_queries(self.offsets, queries)
        return least_squares(self.features, self.targets[own], self.row_weights[own], penalty, self.rows[own], cut)


Choice = Ridges | FewRows | WideRidges


def ridges_of(features: Any, targets: Floats, weights: Floats, rows: Ints, offsets: Ints) -> Choice:
    """What a ridge is chosen by; arguments as in `Ridges.from_features`."""
    wide = features.shape[1]
    if rows.size < wide and rows.size <= WIDEST and rows.size * wide <= NUMBERS:
        return FewRows.from_features(features, targets, weights, rows, offsets)
    return (WideRidges if wide > WIDEST else Ridges.from_features)(features, targets, weights, rows, offsets)
