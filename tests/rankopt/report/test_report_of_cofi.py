"""The page of `rankopt cofi`: what is drawn can be seen, what is not is said, numbers are for people."""

import re
from functools import cache
from html import unescape

import pytest

from rankopt.collaborative.recommendation import QuotaPrice
from rankopt.errors import OptimumAtStart
from rankopt.rankers import CofiRanker
from rankopt.ratings import load_ratings_sample
from rankopt.report.cofi_page import page_of_cofi


@cache
def fitted(**options):
    return CofiRanker(**{"factors": 3, "strength": 0.5} | options).fit(load_ratings_sample())


def pages(ranker, prices=()):
    """The page as text, and the words of each of its drawings by its title."""
    text = page_of_cofi(ranker, [], prices, "genre", "sample")
    drawn = [re.findall(r"<text[^>]*>([^<]*)</text>", one) for one in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]
    return unescape(text), {title: words for words in drawn for title in words if title in TITLES}


TITLES = ("objective and bounds of both blocks", "gaps of both blocks", "gap of the users", "the price of genres")


def test_without_factors_nothing_is_drawn_and_why_is_said():
    with pytest.warns(OptimumAtStart, match="every user has the same order"):
        ranker = fitted(strength=1.0)
    text, drawn = pages(ranker)
    assert not drawn
    assert "Objective and gaps are not drawn: the gaps of both blocks were closed from the start." in text
    assert "0 of 3 factors are used" in text


def test_a_gap_that_was_closed_from_the_start_has_no_name_below_the_axes():
    ranker = fitted()
    text, drawn = pages(ranker)
    assert {"users", "items"} <= set(drawn["gaps of both blocks"])  # of the items one point, the start
    assert "What is closed is not drawn." in text
    history = ranker.history_
    late = CofiRanker(factors=3, strength=0.5).fit(load_ratings_sample())
    late.history_ = type(history)(**{name: getattr(history, name)[1:] for name in vars(history)})
    text, drawn = pages(late)
    assert not {"users", "items"} & set(drawn["gap of the users"])
    assert "That of the items was closed from the start and is not drawn." in text
    assert "factors are used" not in text


@pytest.mark.parametrize(("loss", "user"), [("regression", " and one of the user"), ("ordinal", "")])
def test_the_lead_says_what_scores_are(loss, user):
    text, _ = pages(fitted(loss=loss, tol=0.1))
    assert f"Scores are an offset of the item{user} plus a product of two short vectors." in text


def test_prices_are_told_in_ms_or_s_and_no_label_lies_on_another():
    prices = [
        QuotaPrice(None, 4.0011, 6.96, 1.7e-5, (1, 7.4e-5)), QuotaPrice(5, 4.0, 6.96, 0.0128, (1, 0.0436)),
        QuotaPrice(3, 3.9788, 6.93, 0.25, (145, 0.99951)), QuotaPrice(2, 3.8967, 7.0, 0.0281, (10, 3.36)),
        QuotaPrice(1, 3.7903, 7.0, 0.233, ("ann", 0.366)),
    ]  # fmt: skip
    text, drawn = pages(fitted(), prices)
    for told in ("median time a user", ">0.017 ms<", ">1: 43.6 ms<", ">145: 1.0 s<", ">10: 3.4 s<", ">ann: 366 ms<"):
        assert told in text
    assert {"free, 5", "3", "2", "1"} <= set(drawn["the price of genres"])
    assert not {"free", "5"} & set(drawn["the price of genres"])
