"""Evaluation of rankings: measures over queries, paired comparisons, TREC files.

Names are loaded on first use.
"""

from typing import TYPE_CHECKING, Any

from formulations.registry import member

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


def __getattr__(name: str) -> Any:
    return member(__name__, name, PARTS)


def __dir__() -> list[str]:
    """Names for completion, loaded or not."""
    return sorted({*globals(), *__all__})
