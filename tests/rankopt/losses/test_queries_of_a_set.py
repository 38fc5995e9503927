"""Which queries count under constraints: those in which admissible rankings differ in worth, whatever others do."""

import numpy as np
import pytest

from rankopt.constraints import Admissible
from rankopt.data.queries import Queries
from rankopt.errors import DataError
from rankopt.rankers import LargeMarginRanker


def queries_of(*grades):
    X = np.random.default_rng(0).normal(size=(sum(map(len, grades)), 3))
    return Queries.from_arrays(X, np.concatenate(grades), group=[len(own) for own in grades])


def risk_of(queries, k, **options):
    ranker = LargeMarginRanker("P@2", bound="convex", constraints=Admissible(k), **options)
    return ranker.objective(queries).risk


def test_the_choice_of_the_one_that_is_shown_is_worth_something():
    """P@2 finds both rankings of two documents equal; of one position each choice is a ranking of its own."""
    risk = risk_of(queries_of([1.0, 0.0]), 1)
    assert risk.weights.tolist() == [1.0]
    assert risk.at(np.zeros(3)).value == pytest.approx(0.5)
    with pytest.raises(DataError, match="distinguishes"):
        risk_of(queries_of([1.0, 0.0]), 2)


def test_no_query_vanishes_beside_others():
    """J, weights and their number are of all queries in which the set leaves a choice."""
    one, two = queries_of([1.0, 0.0, 1.0]), queries_of([1.0, 0.0], [1.0, 0.0, 1.0])
    assert risk_of(one, 1).weights.size == 1
    risk = risk_of(two, 1)
    assert risk.weights.tolist() == [0.5, 0.5]
    assert sorted(risk.at(np.zeros(3)).losses) == pytest.approx(sorted([0.5, risk_of(one, 1).at(np.zeros(3)).value]))


def test_queries_of_one_grade_are_left_out_before_the_set_is_asked():
    """Three positions with one document a site: the second query has two sites, and nothing to learn."""
    site = np.array(["a", "b", "c", "d", "a", "b", "a"])
    queries = Queries.from_arrays(
        np.arange(7.0)[:, None], np.array([1.0, 0, 0, 1, 0, 0, 0]), group=[4, 3], attributes={"site": site}
    )
    rule = Admissible(3).at_most(1, by="site")
    ranker = LargeMarginRanker("P@2", bound="convex", constraints=rule)
    assert ranker.objective(queries).risk.weights.size == 1
