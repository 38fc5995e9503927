"""Algorithms with little measured benefit. Nothing else imports them, and their names may change at any time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formulations.registry import lazy, public_names

if TYPE_CHECKING:
    from formulations.experimental.slack_rescaling import SlackRescaledRanking as SlackRescaledRanking
    from formulations.experimental.slack_rescaling import slack_rescaled_ranking as slack_rescaled_ranking
    from formulations.experimental.slack_rescaling import solve_slack_rescaled as solve_slack_rescaled

NAMES = public_names(__name__)

__all__ = [*NAMES]

if not TYPE_CHECKING:  # a type checker would accept any misspelled name
    __getattr__, __dir__ = lazy(__name__, NAMES)
