"""Bound of the regret as a loss of a network's scores, padded or flat: an autograd function with the slope as
gradient."""

# mypy: allow-subclassing-any
from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import DataError, OptionError
from rankopt.losses.score_loss import ScoreLoss

if TYPE_CHECKING:
    from rankopt.losses.score_loss import GradedLoss

# (PyTorch is optional: its classes are `Any` to a type checker)


def load_torch() -> Any:
    """The package torch; OptionError that names the extra where it is not installed."""
    try:
        import torch
    except ImportError as error:
        raise OptionError(
            f"rankopt.torch needs PyTorch, which cannot be loaded ({error}); pip install 'rankopt[torch]'"
        ) from error
    return torch


def numbers(given: Any) -> Any:
    """A tensor of any device, or an array, as an array of doubles."""
    if hasattr(given, "detach"):
        given = given.detach().cpu().double().numpy()
    return np.asarray(given, dtype=np.float64)


def values(scores: Any, graded: GradedLoss) -> Any:
    """(m,) the loss of each query at a tensor of scores (N,), of its dtype and on its device; differentiable once."""
    return _functions().apply(scores, graded)


@cache
def _functions() -> Any:
    """The function and its gradient, made when PyTorch is first wanted."""
    torch = load_torch()
    function: Any = torch.autograd.Function

    class Once(function):
        """slope × grad, without a gradient of its own."""

        @staticmethod
        def forward(ctx: Any, grad: Any, slope: Any, scores: Any) -> Any:
            return grad * slope  # the scores are here so that a graph of the gradient leads to this function

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            raise OptionError(
                "MarginLoss has no second derivative because it is piecewise linear in the scores: its slope is "
                "constant almost everywhere and jumps elsewhere; call backward without create_graph=True"
            )

    class Values(function):
        """The loss of each query; its gradient is the slope, times what comes from above to the query."""

        @staticmethod
        def forward(ctx: Any, scores: Any, graded: GradedLoss) -> Any:
            found = graded.at(numbers(scores))
            like = {"dtype": scores.dtype, "device": scores.device}
            query = np.repeat(np.arange(len(graded)), np.diff(graded.offsets))
            ctx.save_for_backward(
                torch.as_tensor(found.slope, **like), torch.as_tensor(query, device=scores.device), scores
            )
            return torch.as_tensor(found.value, **like)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            slope, query, scores = ctx.saved_tensors
            return Once.apply(grad[query], slope, scores), None

    return Values


REDUCTIONS = ("mean", "sum", "none")


@dataclass(frozen=True)
class MarginLoss:
    """loss_q(s) = max_π [r(π)ᵀs - gain(π)] + max_π gain(π) - r̄ᵀs, an upper bound of the regret of query q: the loss of
    `LargeMarginRanker`, as a function of network scores [ORM, eq. 20 to 22].

    measure, bound, position_weights, feature_map: as in `rankopt.losses.ScoreLoss`. reduction: "mean" over the queries
    with distinct grades (0 if there are none), "sum" of them, or "none": one value a query, 0 for the others.

    Call it with scores and relevance of one shape:

    * padded (m, n), a row a query; `mask` (m, n) is True for documents (default: everywhere). Padding is ignored.
    * flat (N,), with `offsets` (m + 1,) that increase from 0 to N: documents offsets[q] to offsets[q + 1] are query q;
    one
      query without them. Or flat with a mask that leaves documents out, of one query.

    The value has the dtype and the device of the scores. These are copied to the CPU, where the exact argmax runs in
    double precision. The gradient is the slope of the loss, shared by documents of equal scores and grades; in a batch
    it sums to 0 over each query. Second derivatives are not supported.

    Raises OptionError for invalid options, scores that are not floating-point tensors, or if PyTorch is missing;
    DataError for inconsistent shapes, grades and offsets, and for non-finite scores.
    """

    measure: Any = "nDCG@10"
    bound: Any = "nonconvex"
    position_weights: Any = "power(0.5)"
    reduction: str = "mean"
    feature_map: Any = "positional"

    def __post_init__(self) -> None:
        self._loss()
        if self.reduction not in REDUCTIONS:
            known = ", ".join(map(repr, REDUCTIONS))
            raise OptionError(f"reduction = {self.reduction!r} is unknown; it is one of {known}")

    def __call__(self, scores: Any, relevance: Any, mask: Any = None, offsets: Any = None) -> Any:
        """The loss of these scores, a tensor: () or (m,) by `reduction`."""
        torch = load_torch()
        if not isinstance(scores, torch.Tensor) or not scores.is_floating_point():
            kind = scores.dtype if isinstance(scores, torch.Tensor) else type(scores).__name__
            raise OptionError(f"scores of {kind} have no gradient; pass a floating-point tensor")
        grades = numbers(relevance)
        if grades.shape != tuple(scores.shape):
            raise DataError(
                f"relevance has shape {grades.shape}, but the scores {tuple(scores.shape)}; pass one grade per score"
            )
        if scores.ndim not in (1, 2):
            raise DataError(f"scores of shape {tuple(scores.shape)} are no queries; pass shape (m, n) or (N,)")
        there = self._there(mask, grades)
        bounds = self._bounds(offsets, there)
        self._check_grades(grades, there, mask)
        flat = scores.reshape(-1) if there.all() else scores[torch.as_tensor(there, device=scores.device)]
        graded = self._loss().bind(grades[there], offsets=bounds)
        found = values(flat, graded)
        if self.reduction == "none":
            return found
        return found.sum() / (max(int(graded.counted.sum()), 1) if self.reduction == "mean" else 1)

    def _loss(self) -> ScoreLoss:
        return ScoreLoss(self.measure, self.bound, self.position_weights, self.feature_map)

    def _there(self, mask: Any, grades: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Mask of documents, of the shape of the scores."""
        if mask is None:
            return np.ones(grades.shape, dtype=bool)
        flags = mask.detach().cpu().numpy() if hasattr(mask, "detach") else np.asarray(mask)
        if flags.shape != grades.shape or flags.dtype != np.bool_:
            raise DataError(
                f"mask is {flags.dtype} of shape {flags.shape}, but the scores have shape {grades.shape}; pass True "
                "for a document, False for padding"
            )
        return flags

    def _bounds(self, offsets: Any, there: NDArray[np.bool_]) -> Any:
        """Where each query begins among the documents that are there."""
        if there.ndim == 2:
            if offsets is not None:
                raise DataError(
                    "offsets apply to flat scores only; padded scores have one query per row. Remove offsets"
                )
            return np.append(0, np.cumsum(there.sum(axis=1)))
        if offsets is None:
            return np.array([0, there.sum()])
        if not there.all():
            raise DataError(
                "mask cannot be combined with offsets of flat scores; remove the masked documents, or pad the queries"
            )
        return numbers(offsets)

    def _check_grades(self, grades: NDArray[np.float64], there: NDArray[np.bool_], mask: Any) -> None:
        """Raise DataError for unmasked negative grades, which may mark padding as in other libraries."""
        if mask is None and (grades < 0).any():
            raise DataError(
                "relevance has grades below 0; if they mark padding, pass mask=relevance >= 0, else use grades from 0"
            )
