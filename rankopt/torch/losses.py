"""Losses of a network's scores of queries, padded or flat: autograd functions with gradients computed in NumPy."""

# mypy: allow-subclassing-any
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

import numpy as np

from formulations.arrays import Bools, Floats
from rankopt.data.canonical_order import Arrangement
from rankopt.errors import DataError, OptionError
from rankopt.losses import get_loss, make_loss
from rankopt.losses.score_loss import ScoreLoss
from rankopt.measures.tied_ranking import query_of_row
from rankopt.options import check, load_package

# (PyTorch is optional: its classes are `Any` to a type checker)

Pullback = Callable[[Floats], Floats]


def numbers(given: Any) -> Any:
    """A tensor of any device, or an array, as an array of doubles."""
    if hasattr(given, "detach"):
        given = given.detach().cpu().double().numpy()
    return np.asarray(given, dtype=np.float64)


def check_tensor(name: str, given: Any) -> Any:
    """The tensor; OptionError unless it is of floats."""
    torch = load_package("torch", "torch")
    if not isinstance(given, torch.Tensor) or not given.is_floating_point():
        kind = given.dtype if isinstance(given, torch.Tensor) else type(given).__name__
        raise OptionError(f"{name} of {kind} have no gradient; pass a floating-point tensor")
    return given


def differentiable(given: Any, compute: Callable[[Floats], tuple[Floats, Pullback]], reason: str) -> Any:
    """A function of a tensor as a tensor of its dtype and on its device, differentiable once. compute: from an array to
    the value and the product of a gradient with the Jacobian. reason: why there is no second derivative."""
    return _functions().apply(given, compute, reason)


@cache
def _functions() -> Any:
    """The function and its gradient, made when PyTorch is first wanted."""
    torch = load_package("torch", "torch")
    function: Any = torch.autograd.Function

    class Once(function):
        """The product with the Jacobian, without a gradient of its own."""

        @staticmethod
        def forward(ctx: Any, grad: Any, given: Any, pullback: Pullback, reason: str) -> Any:
            ctx.reason = reason  # `given` is here so that a graph of the gradient leads to this function
            return torch.as_tensor(pullback(numbers(grad)), dtype=given.dtype, device=given.device)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            raise OptionError(f"{ctx.reason}; call backward without create_graph=True")

    class Computed(function):
        """The value; its gradient is the pullback of what comes from above."""

        @staticmethod
        def forward(ctx: Any, given: Any, compute: Any, reason: str) -> Any:
            value, ctx.pullback = compute(numbers(given))
            ctx.reason = reason
            ctx.save_for_backward(given)
            return torch.as_tensor(value, dtype=given.dtype, device=given.device)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return Once.apply(grad, *ctx.saved_tensors, ctx.pullback, ctx.reason), None, None

    return Computed


REDUCTIONS = ("mean", "sum", "none")


class QueryLoss:
    """Base of losses of queries: a subclass has `reduction`, and binds grades."""

    reduction: str
    _reason: ClassVar[str]

    def _bind(self, grades: Floats, offsets: Any) -> Any:
        """The loss of documents with these grades: `offsets`, `counted`, and `at(scores)` to values and slopes."""
        raise NotImplementedError

    def __call__(self, scores: Any, relevance: Any, mask: Any = None, offsets: Any = None) -> Any:
        """The loss of these scores, a tensor: () or (m,) by `reduction`."""
        torch, scores = load_package("torch", "torch"), check_tensor("scores", scores)
        grades = numbers(relevance)
        if grades.shape != tuple(scores.shape):
            raise DataError(
                f"relevance has shape {grades.shape}, but the scores {tuple(scores.shape)}; pass one grade per score"
            )
        if scores.ndim not in (1, 2):
            raise DataError(f"scores of shape {tuple(scores.shape)} are no queries; pass shape (m, n) or (N,)")
        there = self._there(mask, grades)
        bounds = self._bounds(offsets, there)
        if mask is None and (grades < 0).any():  # which may mark padding, as in other libraries
            raise DataError(
                "relevance has grades below 0; if they mark padding, pass mask=relevance >= 0, else use grades from 0"
            )
        flat = scores.reshape(-1) if there.all() else scores[torch.as_tensor(there, device=scores.device)]
        graded = self._bind(grades[there], bounds)
        query = query_of_row(graded.offsets)

        def compute(given: Floats) -> tuple[Floats, Pullback]:
            at = graded.at(given)
            return at.value, lambda grad: grad[query] * at.slope

        found = differentiable(flat, compute, self._reason)
        if self.reduction == "none":
            return found
        return found.sum() / (max(int(graded.counted.sum()), 1) if self.reduction == "mean" else 1)

    def _there(self, mask: Any, grades: Floats) -> Bools:
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

    def _bounds(self, offsets: Any, there: Bools) -> Any:
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


@dataclass(frozen=True)
class MarginLoss(QueryLoss):
    """loss_q(s) = max_π [r(π)ᵀs - gain(π)] + max_π gain(π) - r̄ᵀs, an upper bound of the regret of query q: the loss of
    `LargeMarginRanker`, as a function of network scores [ORM, eq. 20 to 22].

    measure, bound, position_weights, feature_map: as in `rankopt.losses.ScoreLoss`. reduction: "mean" over the queries
    with distinct grades (0 if there are none), "sum" of them, or "none": one value a query, 0 for the others.

    Call it with scores and relevance of one shape:

    * padded (m, n), a row a query; `mask` (m, n) is True for documents (default: everywhere). Padding is ignored.
    * flat (N,), with `offsets` (m + 1,) that increase from 0 to N: documents offsets[q] to offsets[q + 1] are query q;
      one query without them. Or flat with a mask that leaves documents out, of one query.

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

    _reason: ClassVar[str] = (
        "MarginLoss has no second derivative because it is piecewise linear in the scores: its slope is constant "
        "almost everywhere and jumps elsewhere"
    )

    def __post_init__(self) -> None:
        self._loss()
        check("reduction", self.reduction, REDUCTIONS)

    def _bind(self, grades: Floats, offsets: Any) -> Any:
        return self._loss().bind(grades, offsets=offsets)

    def _loss(self) -> ScoreLoss:
        return ScoreLoss(self.measure, self.bound, self.position_weights, self.feature_map)


@dataclass(frozen=True)
class RankingLoss(QueryLoss):
    """A loss of `rankopt.losses.LOSSES` as a function of network scores: "listnet", "listmle", "lambdaloss",
    "approx-ndcg", "neural-ndcg", "pairwise", "ordinal", ...

    loss: its name, or a function (relevance, offsets) to a loss, such as partial(NeuralNDCG, temperature=0.5).
    reduction, call, errors: as in `MarginLoss`. Queries without distinct grades do not count, as in `LossRanker`.
    """

    loss: Any = "listnet"
    reduction: str = "mean"

    _reason: ClassVar[str] = "RankingLoss has no second derivative because its gradient is computed outside PyTorch"

    def __post_init__(self) -> None:
        get_loss(self.loss)
        check("reduction", self.reduction, REDUCTIONS)

    def _bind(self, grades: Floats, offsets: Any) -> Any:
        graded = ScoreLoss("nDCG(gain='linear')").bind(grades, offsets=offsets)  # of any grades, which do not overflow
        rows, bounds = graded.selected, graded.selected_offsets
        ids = tuple(range(bounds.size - 1))
        queries = Arrangement(np.empty((grades.size, 0)), rows, bounds, np.ones(len(ids)), grades[rows], ids, {})
        return replace(graded, loss=make_loss(get_loss(self.loss), queries) if ids else None)
