"""Evaluation of rankings: measures over queries, paired comparisons, TREC files."""

from typing import TYPE_CHECKING

from formulations.registry import lazy, public_names

if TYPE_CHECKING:
    from rankopt.evaluation.comparison import compare as compare
    from rankopt.evaluation.evaluation import evaluate as evaluate
    from rankopt.evaluation.runs import compare_runs as compare_runs

PARTS = public_names(__name__)
"""Public names, `name: "module:object"`."""

__all__ = [*PARTS]

__getattr__, __dir__ = lazy(__name__, PARTS)
