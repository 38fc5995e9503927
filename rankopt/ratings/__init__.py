"""Ratings of items by users: tables, files, splits, baselines and evaluation."""

from typing import TYPE_CHECKING

from formulations.registry import lazy, public_names

if TYPE_CHECKING:
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

PARTS = public_names(__name__)
"""Public names, `name: "module:object"`."""

__all__ = [*PARTS]

__getattr__, __dir__ = lazy(__name__, PARTS)
