"""Ratings of items by users: tables, files, splits, baselines and evaluation."""

from typing import TYPE_CHECKING

from formulations.registry import lazy

if TYPE_CHECKING:  # names for type checkers; the table below is text
    from rankopt.ratings.evaluation import ItemMeanBaseline as ItemMeanBaseline
    from rankopt.ratings.evaluation import PopularityBaseline as PopularityBaseline
    from rankopt.ratings.evaluation import RatingsEvaluation as RatingsEvaluation
    from rankopt.ratings.evaluation import evaluate_ratings as evaluate_ratings
    from rankopt.ratings.films import load_ratings_sample as load_ratings_sample
    from rankopt.ratings.reading import read_ratings as read_ratings
    from rankopt.ratings.splits import Split as Split
    from rankopt.ratings.splits import given_split as given_split
    from rankopt.ratings.splits import leave_out_split as leave_out_split
    from rankopt.ratings.splits import strong_split as strong_split
    from rankopt.ratings.splits import weak_split as weak_split
    from rankopt.ratings.table import Ratings as Ratings

PARTS = {
    "ItemMeanBaseline": "rankopt.ratings.evaluation:ItemMeanBaseline",
    "PopularityBaseline": "rankopt.ratings.evaluation:PopularityBaseline",
    "Ratings": "rankopt.ratings.table:Ratings",
    "RatingsEvaluation": "rankopt.ratings.evaluation:RatingsEvaluation",
    "Split": "rankopt.ratings.splits:Split",
    "evaluate_ratings": "rankopt.ratings.evaluation:evaluate_ratings",
    "given_split": "rankopt.ratings.splits:given_split",
    "load_ratings_sample": "rankopt.ratings.films:load_ratings_sample",
    "read_ratings": "rankopt.ratings.reading:read_ratings",
    "leave_out_split": "rankopt.ratings.splits:leave_out_split",
    "strong_split": "rankopt.ratings.splits:strong_split",
    "weak_split": "rankopt.ratings.splits:weak_split",
}
"""Public names, `name: "module:object"`."""

__all__ = [*PARTS]

__getattr__, __dir__ = lazy(__name__, PARTS)
