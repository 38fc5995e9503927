"""Algorithms with little measured benefit. Nothing else imports them, and their names may change at any time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formulations.registry import member

if TYPE_CHECKING:
    from formulations.experimental.slack_rescaling import SlackRescaledRanking as SlackRescaledRanking
    from formulations.experimental.slack_rescaling import slack_rescaled_ranking as slack_rescaled_ranking
    from formulations.experimental.slack_rescaling import solve_slack_rescaled as solve_slack_rescaled

NAMES = {
    "SlackRescaledRanking": "formulations.experimental.slack_rescaling:SlackRescaledRanking",
    "slack_rescaled_ranking": "formulations.experimental.slack_rescaling:slack_rescaled_ranking",
    "solve_slack_rescaled": "formulations.experimental.slack_rescaling:solve_slack_rescaled",
}

__all__ = [*NAMES]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        return member(__name__, name, NAMES)
