"""Algorithms that were measured to bring little: nothing else imports them, and their names may change at any time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formulations.registry import member

if TYPE_CHECKING:
    from formulations.experimental.nearest_integral import nearest_whole as nearest_whole
    from formulations.experimental.quotas import QuotaCurve as QuotaCurve
    from formulations.experimental.quotas import pareto as pareto
    from formulations.experimental.slack_rescaling import RescaledRanking as RescaledRanking
    from formulations.experimental.slack_rescaling import rescaled_ranking as rescaled_ranking
    from formulations.experimental.slack_rescaling import solve_slack_rescaled as solve_slack_rescaled

NAMES = {
    "QuotaCurve": "formulations.experimental.quotas:QuotaCurve",
    "RescaledRanking": "formulations.experimental.slack_rescaling:RescaledRanking",
    "nearest_whole": "formulations.experimental.nearest_integral:nearest_whole",
    "pareto": "formulations.experimental.quotas:pareto",
    "rescaled_ranking": "formulations.experimental.slack_rescaling:rescaled_ranking",
    "solve_slack_rescaled": "formulations.experimental.slack_rescaling:solve_slack_rescaled",
}

__all__ = [*NAMES]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        return member(__name__, name, NAMES)
