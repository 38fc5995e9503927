"""Who ranks best, who cannot be told apart from it, and the sentence that says so."""

import numpy as np
import pytest

from rankopt.data import Queries
from rankopt.errors import DataError
from rankopt.evaluation.comparison import compare, holm, leader
from rankopt.measures import evaluate

QUERIES = 40


@pytest.fixture
def runs():
    """Scores that follow the grades with more and more noise; "same" orders as "good" does."""
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 3, size=QUERIES * 10).astype(float)
    queries = Queries.from_arrays(rng.normal(size=(grades.size, 1)), grades, group=[10] * QUERIES)
    noise = rng.normal(size=grades.size)
    scores = {
        "bad": -grades,
        "good": grades + 0.3 * noise,
        "same": 2 * grades + 0.6 * noise,
        "poor": grades + 9 * noise,
    }
    return {name: evaluate(queries, score, "nDCG@5") for name, score in scores.items()}


def test_ties_are_told_as_such_and_p_is_that_of_the_paired_test(runs):
    found = leader(runs)
    assert list(found.means) == ["good", "same", "poor", "bad"]
    assert (found.name, found.ties, found.behind) == ("good", ("same",), ("poor", "bad"))
    p = [compare(runs["good"], runs[name]).p_randomization for name in ("same", "poor", "bad")]
    assert list(found.p.values()) == holm(p).tolist()
    told = str(found)
    assert told.startswith(f"good ranks best here, nDCG@5 {found.means['good']:.3f}".replace("0.", "."))
    assert "but same (" in told
    assert "cannot be distinguished from it by a paired test (p = 1): choose among them by what they cost" in told
    assert "and bad (" in told
    assert told.count(" rank worse (p < .001)") == 1


def test_a_clear_winner_and_one_alone(runs):
    clear = str(leader({name: runs[name] for name in ("bad", "good", "poor")}))
    assert clear.endswith(" by a paired test (p < .001): use it.")
    assert str(leader({"good": runs["good"]})).endswith(f" on {QUERIES} queries.")
    with pytest.raises(DataError, match="without evaluations"):
        leader({})


def test_one_query_tells_nothing_apart():
    one = Queries.from_arrays([[0.0], [1.0]], [0, 1], group=[2])
    runs = {name: evaluate(one, scores, "nDCG@5") for name, scores in {"a": [0.0, 1.0], "b": [1.0, 0.0]}.items()}
    assert leader(runs).ties == ("b",)
