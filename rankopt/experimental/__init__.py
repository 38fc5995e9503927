"""Algorithms of the papers that were measured not to help: nothing else imports them, and names may change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formulations.registry import member

if TYPE_CHECKING:
    from rankopt.experimental.slack_rescaling import RescaledSlack as RescaledSlack

NAMES = {"RescaledSlack": "rankopt.experimental.slack_rescaling:RescaledSlack"}

__all__ = [*NAMES]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        return member(__name__, name, NAMES)
