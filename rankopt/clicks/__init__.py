"""Learning and evaluation from clicks instead of grades.

log = ClickLog.from_frame(frame)                       or ClickLog.read(file), simulate_clicks(queries, ranker)
bias = PositionBias.from_swaps(log)                    or from_em(log), from_power(1.0), given numbers
ranker = LargeMarginRanker().fit(log, propensities=bias)
evaluate_policy(log, ranker, propensities=bias)
"""

from rankopt.clicks.evaluation import PolicyEvaluation, evaluate_policy
from rankopt.clicks.log import ClickLog
from rankopt.clicks.propensities import PositionBias
from rankopt.clicks.simulation import Cascade, PositionBased, TrustBias, click_probability, simulate_clicks

__all__ = [
    "Cascade",
    "ClickLog",
    "PolicyEvaluation",
    "PositionBased",
    "PositionBias",
    "TrustBias",
    "click_probability",
    "evaluate_policy",
    "simulate_clicks",
]
