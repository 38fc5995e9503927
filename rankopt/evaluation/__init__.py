"""Evaluation of rankings: measures over queries, paired comparisons, TREC files."""

from typing import TYPE_CHECKING

from formulations.registry import lazy

if TYPE_CHECKING:  # names for type checkers; the table below is text
    from rankopt.evaluation.comparison import compare as compare
    from rankopt.evaluation.evaluation import evaluate as evaluate
    from rankopt.evaluation.runs import compare_runs as compare_runs

PARTS = {
    "compare": "rankopt.evaluation.comparison:compare",
    "compare_runs": "rankopt.evaluation.runs:compare_runs",
    "evaluate": "rankopt.evaluation.evaluation:evaluate",
}
"""Public names, `name: "module:object"`."""

__all__ = [*PARTS]

__getattr__, __dir__ = lazy(__name__, PARTS)
