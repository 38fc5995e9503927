"""The loss-augmented argmax: an assignment whose profit matrix has rank two, alone and in batches.

Position weights are non-increasing, one number for each position: an array, or a function of the number of documents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulations.arrays import LARGEST, Floats, Ints, Memoized, check_no_mask, finite, frozen, memoized, offsets_of
from formulations.display import CompactReprMixin
from formulations.errors import InfeasibleError, InvalidProblemError
from formulations.problems.assignment import Assignment, OrderProblem
from formulations.problems.program import Program

if TYPE_CHECKING:
    from typing import Self

    from formulations.problems.ranking_duals import GainLevels

Weights = Floats | Callable[[int], Floats]
"""Position weights: an array (zero beyond its end), or a function from the number of documents to one."""


def non_increasing(name: str, weights: Floats) -> None:
    """Raise `InvalidProblemError` where a weight is above the one before it."""
    rises = weights[1:] > weights[:-1]
    if rises.any():
        index = int(np.flatnonzero(rises)[0])
        raise InvalidProblemError(f"{name} must not increase; got {weights[index]} before {weights[index + 1]}.")


def non_increasing_by_query(name: str, weights: Floats, offsets: Ints) -> None:
    """Raise `InvalidProblemError` where a weight is above the one before it in its query."""
    rises = weights[1:] > weights[:-1]
    rises[offsets[1:-1] - 1] = False
    if rises.any():
        query = int(np.searchsorted(offsets, np.flatnonzero(rises)[0], side="right")) - 1
        raise InvalidProblemError(f"{name} of query {query} increases: position weights must not increase")


def weights_for(weights: ArrayLike | Weights, n: int) -> Floats:
    """The position weights for n documents, at most n entries."""
    if callable(weights):
        try:
            weights = weights(n)
        except TypeError as error:
            raise InvalidProblemError(f"position weights must be numbers or a function of n; got {error}.") from error
    check_no_mask("position weights", weights)
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidProblemError(f"position weights must be numbers or a function of n; got {error}.") from None
    if array.ndim != 1:
        raise InvalidProblemError(f"position weights must have one dimension; got shape {array.shape}.")
    return array[:n]


def laid_out(weights: ArrayLike | Weights, offsets: Ints) -> Floats:
    """Flat position weights: for each query the first n entries, zero beyond the end of the array."""
    sizes = np.diff(offsets)
    table: dict[int, Floats] = {}
    for n in np.unique(sizes).tolist():
        row = weights_for(weights, n)
        table[n] = row if row.size == n else np.append(row, np.zeros(n - row.size))
    return frozen(np.concatenate([table[n] for n in sizes.tolist()]))


def _check_magnitude(problem: RankTwoAssignment | RankTwoBatch) -> None:
    if not problem.scale <= LARGEST:
        raise InvalidProblemError(f"profits must be below {LARGEST:g}; got {problem.scale:g}. Rescale scores or gains.")


def _largest(*factors: Floats) -> float:
    """The largest product of one entry of each factor, in magnitude."""
    return prod(float(max(values.max(), -values.min())) for values in factors)


class ScoredBatch(Memoized, CompactReprMixin):
    """Problems of several queries in flat arrays. Cached values do not depend on the scores."""

    scores: Floats
    offsets: Ints

    def __len__(self) -> int:
        return int(self.offsets.size) - 1

    def check_magnitude(self) -> None:
        """Raise `InvalidProblemError` if values are too large for double precision."""

    def with_scores(self, scores: Floats) -> Self:
        """The same batch with other scores; only these are validated."""
        self.__dict__.setdefault("_cached", {})  # the cache is shared
        batch = object.__new__(type(self))
        batch.__dict__.update(self.__dict__, scores=finite("scores", scores, 1))
        if batch.scores.shape != self.scores.shape:
            raise InvalidProblemError(f"scores must have {self.scores.size} entries; got {batch.scores.size}.")
        batch.check_magnitude()
        return batch


@dataclass(frozen=True, eq=False)
class RankTwoAssignment(Memoized, OrderProblem):
    """max over orders π of Σ_i c[i] scores[π_i] - discount[i] gain[π_i], c the position weights, π_i the document at i.

    `scores` and `gain` have one entry a document, `position_weights` and `discount` one a position (no more positions
    than documents; both non-increasing). A point x is the order; a dual y has one entry per document.
    """

    scores: Floats
    gain: Floats
    discount: Floats
    position_weights: Floats

    def __post_init__(self) -> None:
        for name in ("scores", "gain", "discount", "position_weights"):
            object.__setattr__(self, name, finite(name, getattr(self, name), 1))
        if self.scores.size == 0 or self.discount.size == 0:
            raise InvalidProblemError("a ranking needs at least one document and one position")
        if self.gain.size != self.scores.size or self.position_weights.size != self.discount.size:
            raise InvalidProblemError(
                "scores and gain need one entry a document, discount and position_weights one a position; got "
                f"{self.scores.size}, {self.gain.size}, {self.discount.size} and {self.position_weights.size}"
            )
        if self.positions > self.documents:
            raise InfeasibleError(f"{self.positions} positions cannot be filled by {self.documents} documents")
        non_increasing("discount", self.discount)
        non_increasing("position_weights", self.position_weights)
        _check_magnitude(self)

    @property
    def positions(self) -> int:
        return int(self.discount.size)

    @property
    def documents(self) -> int:
        return int(self.scores.size)

    @cached_property
    def scale(self) -> float:
        """A bound on the largest profit in magnitude."""
        return _largest(self.position_weights, self.scores) + _largest(self.discount, self.gain)

    @memoized
    def assignment(self) -> Assignment:
        """The same problem with its k × n profit matrix written out, once."""
        return Assignment(frozen(np.outer(self.position_weights, self.scores) - np.outer(self.discount, self.gain)))

    def alone(self) -> RankTwoBatch | None:
        """The problem as a batch of one, with weight zero beyond its positions; None if that is not equivalent."""
        spare = self.documents - self.positions
        if spare and min(self.discount[-1], self.position_weights[-1]) < 0:
            return None
        discount, position_weights = (np.pad(part, (0, spare)) for part in (self.discount, self.position_weights))
        return RankTwoBatch(self.scores, self.gain, discount, position_weights, np.array([0, self.documents]))

    @property
    def program(self) -> Program:
        return self.assignment().program

    def value(self, x: NDArray[Any]) -> float:
        return float(self.position_weights @ self.scores[x] - self.discount @ self.gain[x])

    @memoized
    def _levels(self) -> GainLevels | None:
        from formulations.problems.ranking_duals import GainLevels

        return GainLevels.of_long_list(self.scores, self.gain, self.discount, self.position_weights, alone=True)

    def value_lower_bound(self, x: NDArray[Any]) -> float:
        from formulations.problems.ranking_duals import RankedQueries, judged

        ends, rows = np.array([0, self.positions]), np.arange(self.positions)
        ranked = RankedQueries(self.scores[x], self.gain[x], self.discount, self.position_weights, ends, rows)
        return float(judged(ranked, np.zeros(1))[0][0])

    def bound(self, y: Floats) -> float:
        from formulations.problems.ranking_duals import bound_of_prices

        prices = np.ascontiguousarray(self.document_dual(y))
        one = (self.scores, self.gain, self.discount, self.position_weights)
        return float(bound_of_prices(*one, prices, self._levels()))

    def active_dual(self, y: Floats) -> Floats:
        return self.document_dual(y)

    def recover_dual(self, x: NDArray[Any]) -> Floats:
        from formulations.problems.ranking_duals import prices_of

        self.check_point(x)
        one = (self.scores, self.gain, self.discount, self.position_weights)
        return prices_of(*one, np.asarray(x, dtype=np.int64), self._levels())

    def named_primal(self, x: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return self.assignment().named_primal(x)

    def named_dual(self, y: Floats) -> dict[str, NDArray[Any]]:
        return self.assignment().named_dual(y)


@dataclass(frozen=True, eq=False)
class RankTwoBatch(ScoredBatch):
    """One `RankTwoAssignment` a query, in flat arrays: query q owns rows offsets[q] : offsets[q + 1] of all four.

    `scores` and `gain` at row r belong to a document, `discount` and `position_weights` to position r - offsets[q];
    both are zero beyond a cutoff, so every query has as many positions as documents. Cached values of a batch depend on
    gain, weights and offsets only, so they are valid for all scores.
    """

    scores: Floats
    gain: Floats
    discount: Floats
    position_weights: Floats
    offsets: Ints

    def __post_init__(self) -> None:
        for name in ("scores", "gain", "discount", "position_weights"):
            object.__setattr__(self, name, finite(name, getattr(self, name), 1))
        size = self.scores.size
        if any(array.size != size for array in (self.gain, self.discount, self.position_weights)):
            raise InvalidProblemError("scores, gain, discount and position_weights of a batch need the same length")
        object.__setattr__(self, "offsets", offsets_of("offsets", self.offsets, size))
        for name in ("discount", "position_weights"):
            non_increasing_by_query(name, getattr(self, name), self.offsets)
        self.check_magnitude()

    @property
    def scale(self) -> float:
        """A bound on the largest profit in magnitude."""
        position_weights, discounted = self.cached(
            "scale", lambda: (_largest(self.position_weights), _largest(self.discount, self.gain))
        )
        return position_weights * _largest(self.scores) + discounted

    def check_magnitude(self) -> None:
        _check_magnitude(self)

    def __getitem__(self, query: int) -> RankTwoAssignment:
        rows = slice(int(self.offsets[query]), int(self.offsets[query + 1]))
        discount, position_weights = self.discount[rows], self.position_weights[rows]
        weighted = np.flatnonzero((discount != 0) | (position_weights != 0))
        # Trailing positions of weight zero may hold any remaining document.
        end = int(weighted[-1]) + 1 if weighted.size else 1
        return RankTwoAssignment(self.scores[rows], self.gain[rows], discount[:end], position_weights[:end])
