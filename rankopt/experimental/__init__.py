"""Algorithms of the papers that were measured not to help. Nothing else in rankopt imports this package.

docs/results.md has the measurements. Names and results may change without notice.
"""

from typing import TYPE_CHECKING

from formulations.registry import lazy, public_names

if TYPE_CHECKING:
    from rankopt.experimental.direct_trees import DirectBoostedRanker as DirectBoostedRanker
    from rankopt.experimental.slack_rescaling import RescaledSlack as RescaledSlack

PARTS = public_names(__name__)
"""Everything here, `name: "module:object"`, loaded on first use."""

__all__ = [*PARTS]

if not TYPE_CHECKING:  # a type checker would accept any misspelled name
    __getattr__, __dir__ = lazy(__name__, PARTS)
