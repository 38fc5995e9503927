"""Stochastic ranking policies under limits on the exposure of groups, with the gap to the best policy."""

from typing import TYPE_CHECKING

from formulations.registry import lazy, public_names

if TYPE_CHECKING:
    from rankopt.policies.evaluation import ExposureEvaluation as ExposureEvaluation
    from rankopt.policies.evaluation import ExposureRanker as ExposureRanker
    from rankopt.policies.evaluation import evaluate_exposure as evaluate_exposure
    from rankopt.policies.plackett_luce import PlackettLuce as PlackettLuce
    from rankopt.policies.plackett_luce import PlackettLuceRanker as PlackettLuceRanker

PARTS = public_names(__name__)
"""Public names, `name: "module:object"`."""

__all__ = [*PARTS]

if not TYPE_CHECKING:  # a type checker would accept any misspelled name
    __getattr__, __dir__ = lazy(__name__, PARTS)
