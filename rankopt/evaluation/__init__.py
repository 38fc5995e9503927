"""How good rankings are: measures over queries, paired comparisons, TREC's files; protocols and baselines of ratings.

The table is text: a part, and what it needs, loads when its name is first used.
"""

from typing import TYPE_CHECKING, Any

from formulations.registry import member

if TYPE_CHECKING:  # the table is text: this tells a type checker what the names are
    from rankopt.evaluation.comparison import compare as compare
    from rankopt.evaluation.evaluation import evaluate as evaluate
    from rankopt.evaluation.rating_baselines import ItemMean as ItemMean
    from rankopt.evaluation.rating_baselines import Popularity as Popularity
    from rankopt.evaluation.rating_splits import Split as Split
    from rankopt.evaluation.rating_splits import given_split as given_split
    from rankopt.evaluation.rating_splits import strong_split as strong_split
    from rankopt.evaluation.rating_splits import weak_split as weak_split
    from rankopt.evaluation.ratings import RatingsEvaluation as RatingsEvaluation
    from rankopt.evaluation.ratings import evaluate_ratings as evaluate_ratings
    from rankopt.evaluation.runs import compare_runs as compare_runs

PARTS = {
    "ItemMean": "rankopt.evaluation.rating_baselines:ItemMean",
    "Popularity": "rankopt.evaluation.rating_baselines:Popularity",
    "RatingsEvaluation": "rankopt.evaluation.ratings:RatingsEvaluation",
    "Split": "rankopt.evaluation.rating_splits:Split",
    "compare": "rankopt.evaluation.comparison:compare",
    "compare_runs": "rankopt.evaluation.runs:compare_runs",
    "evaluate": "rankopt.evaluation.evaluation:evaluate",
    "evaluate_ratings": "rankopt.evaluation.ratings:evaluate_ratings",
    "given_split": "rankopt.evaluation.rating_splits:given_split",
    "strong_split": "rankopt.evaluation.rating_splits:strong_split",
    "weak_split": "rankopt.evaluation.rating_splits:weak_split",
}
"""Everything here that is asked for by name, `name: "module:object"`."""

__all__ = [*PARTS]


def __getattr__(name: str) -> Any:
    return member(__name__, name, PARTS)


def __dir__() -> list[str]:
    """Names for completion, loaded or not."""
    return sorted({*globals(), *__all__})
