"""How good rankings are: measures over queries, paired comparisons, TREC's files.

The table is text: a part, and what it needs, loads when its name is first used.
"""

from typing import TYPE_CHECKING, Any

from formulations.registry import member

if TYPE_CHECKING:  # the table is text: this tells a type checker what the names are
    from rankopt.evaluation.comparison import compare as compare
    from rankopt.evaluation.evaluation import evaluate as evaluate
    from rankopt.evaluation.runs import compare_runs as compare_runs

PARTS = {
    "compare": "rankopt.evaluation.comparison:compare",
    "compare_runs": "rankopt.evaluation.runs:compare_runs",
    "evaluate": "rankopt.evaluation.evaluation:evaluate",
}
"""Everything here that is asked for by name, `name: "module:object"`."""

__all__ = [*PARTS]


def __getattr__(name: str) -> Any:
    return member(__name__, name, PARTS)


def __dir__() -> list[str]:
    """Names for completion, loaded or not."""
    return sorted({*globals(), *__all__})
