"""What notebooks and terminals show: every object that users hold has a view, well formed, escaped and short."""

import sys
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from formulations import RankingSet, certify, integrality_gap, matching, solve, verify_integrality
from formulations.notebook_view import curves, table
from rankopt.data import Queries, Ratings, load_ratings_sample, load_sample
from rankopt.measures import compare, evaluate
from rankopt.rankers import CofiRanker, DirectRanker, LargeMarginRanker, SmoothRanker

HOSTILE = "<script>alert('&')</script>"
SUITS = [[1, 1, 0], [0, 1, 1], [1, 0, 1]]
"""The smallest matrix that is not totally unimodular."""


def crossing():
    """Two limits that share a document: refuted."""
    held = RankingSet(6, 3).at_most(1, documents=[0, 1, 2], name=HOSTILE)
    return held.at_most(1, documents=[0, 3], positions=range(2))


def fitted():
    few = load_sample("les-miserables").train.select(range(4))
    for ranker in (
        LargeMarginRanker("nDCG@10", max_iter=100),
        SmoothRanker("nDCG@10", sigmas=(1.0,)),
        DirectRanker("nDCG@10", start="ridge", max_iter=200),
    ):
        ranker.fit(few)
        yield from (ranker.certificate_, ranker.history_)
    factors = CofiRanker(strength=0.7).fit(load_ratings_sample())
    yield from (factors.certificate_, factors.history_, factors.recommend(k=2), factors.recommend([]))
    new = factors.fold_in(Ratings.of([HOSTILE] * 2, factors.items_[:2], [1.0, 4.0]))
    yield from (new, new.recommend())


def shown():
    grades, queries = np.array([2.0, 1.0, 0.0, 1.0, 0.0]), np.array([HOSTILE] * 3 + ["b"] * 2)
    held = Queries.from_arrays(np.arange(10.0).reshape(5, 2), grades, qid=queries)
    first, second = (evaluate(held, sign * grades, ["nDCG@2", "AP"]) for sign in (1.0, -1.0))
    yield from (
        held,
        Ratings.of([HOSTILE, "u"], ["i", HOSTILE], [1.0, 2.0]),
        first,
        compare(first, second, measure="AP"),
    )
    yield from (solve(matching([[1.0, 2.0]])), crossing(), verify_integrality(crossing()))
    yield from (verify_integrality(np.array(SUITS)), verify_integrality(RankingSet(4, 2)))
    yield integrality_gap(matching([[1.0, 2.0]]))
    answer = solve(matching([[1.0, 0.1]]))
    yield from (certify(matching([[1.0, 0.1]]), answer), certify(matching([[1.0, 0.1]]), answer, exact=True))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_view_is_well_formed_escaped_and_every_repr_short():
    for held in (*shown(), *fitted()):
        markup = held._repr_html_()
        tree = ElementTree.fromstring(markup)  # raises where a tag is open, or text is no text
        assert not list(tree.iter("script")), type(held)
        assert type(held).__name__.split("Certificate")[0] in markup or "".join(tree.itertext()).strip()
        assert len(repr(held).splitlines()) <= 10, type(held)
        assert len(repr(held)) <= 2000, type(held)


def test_views_say_what_was_proved_and_listed():
    problem = matching([[1.0, 0.1]])
    exact = certify(problem, solve(problem), exact=True)._repr_html_()
    assert "in fractions" in exact
    assert "0: the optimum, proved" in exact
    lists = CofiRanker(factors=2, strength=0.7, max_iter=1, tol=1.0).fit(load_ratings_sample()).recommend(k=2)
    rows = list(ElementTree.fromstring(lists._repr_html_()).iter("tr"))
    assert f"and {len(lists) - 10} more" in lists._repr_html_()
    user, items = (cell.text for cell in rows[3])  # after two facts and the head
    assert [str(item) for item in lists[lists.users.tolist()[0]]] == items.split(", ")
    assert user == str(lists.users[0])


def test_a_history_is_drawn_and_its_ends_are_told():
    drawn = curves({"primal": np.array([3.0, 2.0, 1.5]), "bound": np.array([np.nan, 1.0, 1.25])}, "steps")
    tree = ElementTree.fromstring(f"<div>{drawn}</div>")
    lines = {line.findtext("title"): line.get("points").split() for line in tree.iter("polyline")}
    assert [len(points) for points in lines.values()] == [3, 2]
    assert "primal 1.5, bound 1.25" in "".join(tree.itertext())
    heights = [float(point.split(",")[1]) for point in lines["primal"]]
    assert heights == sorted(heights)  # falling values, down the page
    assert curves({"primal": np.array([np.nan])}, "steps") == ""


def test_long_tables_say_how_much_more_there_is():
    tree = ElementTree.fromstring(f"<div>{table(['a'], [[n] for n in range(13)])}</div>")
    assert len(list(tree.iter("tr"))) == 11
    assert tree.findtext("p") == "and 3 more"


def test_progress_is_one_line_below_the_cell(monkeypatch):
    told = []

    class ZMQInteractiveShell:
        """What a notebook's kernel answers."""

    class Handle:
        def update(self, text):
            told.append(repr(text))

    def display(text, display_id):
        told.append(repr(text))
        return Handle()

    ipython = SimpleNamespace(get_ipython=ZMQInteractiveShell, display=SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    few = load_sample("les-miserables").train.select(range(3))
    LargeMarginRanker("nDCG@10", verbose=1).fit(few)
    assert told[0] == "training ..."
    assert told[1].startswith("round 1, step 1: objective")
    LargeMarginRanker("nDCG@10").fit(few)
    assert len([line for line in told if line == "training ..."]) == 1
