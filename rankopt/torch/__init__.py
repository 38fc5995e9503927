"""PyTorch: bounds of the regret as a loss of network scores (extra `torch`; imported on first use)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formulations.registry import member

if TYPE_CHECKING:  # the table is text: this tells a type checker what the names are
    from rankopt.torch.margin_loss import MarginLoss as MarginLoss

PARTS = {
    "MarginLoss": "rankopt.torch.margin_loss:MarginLoss",
}
"""Everything here, `name: "module:object"`."""

__all__ = [*PARTS]


def __getattr__(name: str) -> object:
    return member(__name__, name, PARTS)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
