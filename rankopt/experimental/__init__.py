"""Algorithms of the papers that were measured not to help. Nothing else in rankopt imports this package.

docs/results.md has the measurements. Names and results may change without notice.
"""

from typing import TYPE_CHECKING

from formulations.registry import lazy

if TYPE_CHECKING:  # the table is text: this tells a type checker what the names are
    from rankopt.experimental.direct_trees import DirectBoostedRanker as DirectBoostedRanker
    from rankopt.experimental.slack_rescaling import RescaledSlack as RescaledSlack

PARTS = {
    "DirectBoostedRanker": "rankopt.experimental.direct_trees:DirectBoostedRanker",
    "RescaledSlack": "rankopt.experimental.slack_rescaling:RescaledSlack",
}
"""Everything here, `name: "module:object"`, loaded on first use."""

__all__ = [*PARTS]

if not TYPE_CHECKING:  # a type checker would accept any misspelled name
    __getattr__, __dir__ = lazy(__name__, PARTS)
