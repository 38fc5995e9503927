"""Choosing a ridge for many features: in the space of the rows where these are few, else among a few, one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.optimize.least_squares import least_squares
from rankopt.optimize.ridge import Ridges, least, of_queries
from rankopt.optimize.spread import spread
from rankopt.scorers.linear import row_scores

__all__ = ["WIDEST", "Choice", "FewRows", "WideRidges", "ridges_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WIDEST = 2048
"""Features, or rows where these are fewer, up to which every ridge is solved at once: their products with each other
are held densely."""

NUMBERS = 1 << 25
"""Entries of the features up to which few rows are made dense."""


@dataclass(frozen=True, eq=False)
class FewRows:
    """The same for fewer rows than features: w lies in the span of the rows, so the problem is turned into that space.

    For each kind of ridge its scale (d,), a basis (d, N) of the rows so scaled, and the ridges of their coordinates.
    """

    kinds: tuple[tuple[Floats, Floats, Ridges], ...]

    @classmethod
    def of(cls, features: Any, targets: Floats, weights: Floats, rows: Ints, offsets: Ints) -> FewRows:
        sizes = np.diff(offsets)
        own = features[rows].toarray() if hasattr(features, "toarray") else features[rows].astype(np.float64)
        own = own - np.repeat(np.add.reduceat(own, offsets[:-1], axis=0) / sizes[:, None], sizes, axis=0)
        deviations = np.sqrt(weights @ own**2)
        inverse = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0)
        kinds = []
        for scale in (np.ones_like(inverse), inverse):
            basis, coordinates = np.linalg.qr((own * scale).T)
            turned = np.ascontiguousarray(coordinates.T)
            kinds.append((scale, basis, Ridges.of(turned, targets, weights, np.arange(rows.size), offsets)))
        return cls(tuple(kinds))

    @property
    def penalties(self) -> Floats:
        return np.vstack([replace(ridges.families[0], scale=scale).penalties for scale, _, ridges in self.kinds])

    @property
    def weights(self) -> Floats:
        return np.vstack(
            [ridges.families[0].weights(ridges.whole) @ basis.T * scale for scale, basis, ridges in self.kinds]
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
            for place, penalty in enumerate(self.penalties):
                w = self._solved(np.setdiff1d(counted, left), penalty)
                missed = self.targets[own] - row_scores(self.features, self.rows[own], w)
                missed -= np.repeat(np.add.reduceat(missed, cut[:-1]), np.diff(cut)) / middled
                errors[place] += float(self.row_weights[own] @ missed**2)
        return least(self.penalties, errors)

    def _solved(self, queries: Ints, penalty: Floats) -> Floats:
        own, cut = of_queries(self.offsets, queries)
        return least_squares(self.features, self.targets[own], self.row_weights[own], penalty, self.rows[own], cut)


Choice = Ridges | FewRows | WideRidges


def ridges_of(features: Any, targets: Floats, weights: Floats, rows: Ints, offsets: Ints) -> Choice:
    """What a ridge is chosen by; arguments as in `Ridges.of`."""
    wide = features.shape[1]
    if rows.size < wide and rows.size <= WIDEST and rows.size * wide <= NUMBERS:
        return FewRows.of(features, targets, weights, rows, offsets)
    return (WideRidges if wide > WIDEST else Ridges.of)(features, targets, weights, rows, offsets)
