"""The page of `rankopt cofi`: what is drawn can be seen, what is not is said, numbers are for people."""

import re
from dataclasses import replace
from functools import cache
from html import unescape

import numpy as np
import pytest

from rankopt.collaborative.recommendation import quota_sensitivity
from rankopt.constraints import Admissible
from rankopt.errors import DataError, NoProgressWarning
from rankopt.rankers import CofiRanker
from rankopt.ratings import load_ratings_sample
from rankopt.report.cofi_page import page_of_cofi


@cache
def fitted(**options):
    return CofiRanker(**{"factors": 3, "reg": 0.5} | options).fit(load_ratings_sample())


def pages(ranker, prices=None):
    """The page as text, and the words of each of its drawings by its title."""
    text = page_of_cofi(ranker, [], prices, "genre", "sample")
    drawn = [re.findall(r"<text[^>]*>([^<]*)</text>", one) for one in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]
    return unescape(text), {title: words for words in drawn for title in words if title in TITLES}


TITLES = ("objective and bounds of both blocks", "gaps of both blocks", "gap of the users")


def test_without_factors_nothing_is_drawn_and_why_is_said():
    with pytest.warns(NoProgressWarning, match="every user has the same order"):
        ranker = fitted(reg=1.0)
    text, drawn = pages(ranker)
    assert not drawn
    assert "Objective and gaps are not drawn: the gaps of both blocks were closed from the start." in text
    assert "0 of 3 factors are used" in text


def test_a_gap_that_was_closed_from_the_start_has_no_name_below_the_axes():
    ranker = fitted()
    text, drawn = pages(ranker)
    assert {"users", "items"} <= set(drawn["gaps of both blocks"])  # of the items one point, the start
    assert "Closed gaps are not drawn." in text
    history = ranker.history_
    late = CofiRanker(factors=3, reg=0.5).fit(load_ratings_sample())
    late.history_ = replace(history, columns={name: column[1:] for name, column in history.columns.items()})
    text, drawn = pages(late)
    assert not {"users", "items"} & set(drawn["gap of the users"])
    assert "That of the items was closed from the start and is not drawn." in text
    assert "factors are used" not in text


@pytest.mark.parametrize(("loss", "user"), [("regression", " and one of the user"), ("ordinal", "")])
def test_the_lead_says_what_scores_are(loss, user):
    text, _ = pages(fitted(loss=loss, tol=0.1))
    assert f"Scores are an offset of the item{user} plus a product of two short vectors." in text


def test_the_price_of_a_quota_is_the_score_that_its_lists_lose():
    ranker = fitted()
    users = ranker.user_ids_.tolist()[:3]
    curve = quota_sensitivity(ranker, "genre", users, k=4, limits=(1, 2, 4))
    weights = 1.0 / np.log2(np.arange(2.0, 6.0))
    for row, user in enumerate(users):
        free = ranker.recommend([user], 4).scores
        assert curve.value[row, -1] == pytest.approx(np.average(free, weights=weights))
        two = ranker.recommend([user], 4, admissible=Admissible(4).at_most(2, by="genre")).scores
        assert curve.value[row, 1] == pytest.approx(np.average(two, weights=weights[: two.size]))
    assert (np.diff(curve.mean) >= 0.0).all()
    text, _ = pages(ranker, curve)
    assert "Cost of a quota" in text
    assert f"the mean over {curve.shared} users" in text
    assert f">{curve.lost[0][0]:.4f}<" in text
    with pytest.raises(DataError, match="at least one user"):
        quota_sensitivity(ranker, "genre", [])
