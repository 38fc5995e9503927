"""The values of a loss of the scores as a PyTorch function, with the slope for its gradient."""
# mypy: allow-subclassing-any
# (PyTorch is optional: its classes are `Any` to a type checker)

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from rankopt.errors import OptionError

if TYPE_CHECKING:
    from rankopt.losses.score_loss import GradedLoss

__all__ = ["loaded", "numbers", "values"]


def loaded() -> Any:
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
    torch = loaded()
    function: Any = torch.autograd.Function

    class Once(function):
        """slope × grad, of which nobody may ask a gradient."""

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
