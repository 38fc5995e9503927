"""The page of `rankopt explain`: what the ranker says of itself stands on it; opened in a browser, narrow and dark."""

import re
from html import unescape

import numpy as np
import pytest
from browser import NAMES, Browser, installed

from rankopt import Admissible, LargeMarginRanker, Queries
from rankopt.explanations.contributions import Weights
from rankopt.report.ranker_pages import MOST_POINTS, page_of_explanations

FEATURES = ["<b>length</b>", "match", "constant"]


@pytest.fixture(scope="module")
def explained():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(120, 3))
    features[:, 2] = 1.0
    grades = (features[:, 1] + rng.normal(size=120) > 0.5) * 2.0
    queries = Queries.from_arrays(
        features, grades, qid=[f"q{i // 8}" for i in range(120)], feature_names=FEATURES,
        attributes={"site": rng.choice(list("ab<"), 120)},
    )  # fmt: skip
    ranker = LargeMarginRanker(
        "nDCG@3", lam=0.1, constraints=Admissible(3, on_infeasible="truncate").at_most(1, by="site")
    )
    ranker.fit(queries)
    found = ranker.bound_tightness(queries)
    weights = Weights.on(FEATURES, ranker.coef_, queries)
    return found, weights


@pytest.fixture(scope="module")
def page(explained):
    found, weights = explained
    return page_of_explanations("ranker", found, [("scores", weights)], 4, "rankopt explain m d")


def cells(page, heading):
    body = page[page.index(heading) :].split("<tbody>")[1].split("</tbody>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", body, flags=re.DOTALL)
    return [[unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)] for row in rows]


def test_the_page_begins_with_what_was_found(page, explained):
    found, *_ = explained
    assert unescape(re.search(r'class="finding">(.*?)</p>', page)[1]) == found.finding


def test_tables_hold_what_was_computed(page, explained):
    found, weights = explained
    means = {row[0]: row[1] for row in cells(page, "Regret and its bounds")}
    assert means["regret"] == f"{found.regret.mean():.3f}"
    assert means["nonconvex bound, trained"] == f"{found.bounds['nonconvex'].mean():.3f}"
    worst = cells(page, "The worst 4 queries")
    assert [row[0] for row in worst] == [found.query[row] for row in found.worst(4)]
    assert [row[0] for row in cells(page, "What moves the scores")] == list(weights.features)
    assert cells(page, "What moves the scores")[-1][2] == "0"  # what is constant in every query varies by nothing
    assert "<b>length" not in page


def test_many_queries_are_drawn_in_part(explained):
    from dataclasses import replace

    found, weights, *_ = explained
    rows = np.tile(np.arange(len(found)), 3 * MOST_POINTS // len(found))
    many = replace(
        found,
        query=tuple(range(rows.size)),
        bounds={name: values[rows] for name, values in found.bounds.items()},
        **{name: getattr(found, name)[rows] for name in ("documents", "regret", "expected", "most", "growth")},
    )
    page = page_of_explanations("ranker", many, [("slot 1", weights), ("slot 2", weights)], 4)
    assert f"{MOST_POINTS} of {rows.size} queries" in page
    assert "slot 2: " in page
    assert len(page) < 1_500_000


@pytest.mark.study
@pytest.mark.skipif(installed() is None, reason=f"no browser is installed (none of {', '.join(NAMES)})")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_fits_its_window(page, tmp_path, width, dark):
    script = """
        const heights = [...document.querySelectorAll('svg text')].map((text) =>
        text.getBoundingClientRect().height); return [document.documentElement.scrollWidth,
        document.querySelectorAll('svg').length, Math.min(...heights)]
    """
    (wide, drawings, least), console = Browser(tmp_path).ask(page, script, width=width, dark=dark)
    assert console == []
    assert wide <= width
    assert drawings == 3
    assert least > 8
