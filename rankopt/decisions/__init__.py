"""Learn costs or profits for an optimization problem: estimators that minimize the regret of its decisions."""

from typing import TYPE_CHECKING

from formulations.registry import lazy, public_names

if TYPE_CHECKING:
    from rankopt.decisions.inverse import RecoveredCosts as RecoveredCosts
    from rankopt.decisions.inverse import recover_costs as recover_costs
    from rankopt.decisions.regressor import DecisionRegressor as DecisionRegressor
    from rankopt.losses.oracle_problem import Decisions as Decisions
    from rankopt.losses.oracle_problem import ProblemOracle as ProblemOracle
    from rankopt.optimize.minimize import minimize_risk as minimize_risk

PARTS = public_names(__name__)
"""Public names, `name: "module:object"`."""

__all__ = [*PARTS]

if not TYPE_CHECKING:  # a type checker would accept any misspelled name
    __getattr__, __dir__ = lazy(__name__, PARTS)
