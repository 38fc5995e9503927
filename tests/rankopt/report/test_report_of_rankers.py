"""The page of `rankopt explain`: what the ranker says of itself stands on it; opened in a browser, narrow and dark."""

import re
from dataclasses import replace
from functools import cache
from html import unescape

import numpy as np
import pytest
from browser import NAMES, Browser, installed

from rankopt import Admissible, LargeMarginRanker, Queries
from rankopt.collaborative.recommendation import quota_sensitivity
from rankopt.data import load_sample
from rankopt.errors import DataError, NoProgressWarning
from rankopt.explanations.contributions import Weights
from rankopt.measures import evaluate
from rankopt.rankers import CofiRanker, RegressionRanker
from rankopt.ratings import load_ratings_sample
from rankopt.report.cofi_page import page_of_cofi
from rankopt.report.demo_page import MEASURES, finding_of_demo, page_of_demo
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
    weights = Weights.from_queries(FEATURES, ranker.coef_, queries)
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
        **{name: getattr(found, name)[rows] for name in ("documents", "regret", "expected", "max_regret", "growth")},
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
        document.querySelectorAll('svg').length, Math.min(...heights),
        Math.max(...[...document.querySelectorAll('figure')].map((one) => one.getBoundingClientRect().right))
        - document.querySelector('main').getBoundingClientRect().right]
    """
    (wide, drawings, least, beyond), console = Browser(tmp_path).ask(page, script, width=width, dark=dark)
    assert console == []
    assert wide <= width
    assert drawings == 3
    assert least > 8
    assert abs(beyond) < 1  # figures fill the page to its right edge


# The page of `rankopt cofi`: what is drawn can be seen, what is not is said, numbers are for people.


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
    curve = quota_sensitivity(ranker, "genre", users, k=4, limits=(2, 3, 9))
    assert curve.limits.tolist() == [2, 3, 4]
    weights = 1.0 / np.log2(np.arange(2.0, 6.0))
    for row, user in enumerate(users):
        free = ranker.recommend([user], 4).scores
        assert curve.value[row, -1] == pytest.approx(np.average(free, weights=weights))
        two = ranker.recommend([user], 4, constraints=Admissible(4).at_most(2, by="genre")).scores
        assert curve.value[row, 0] == pytest.approx(np.average(two, weights=weights[: two.size]))
    assert (np.diff(curve.mean) >= 0.0).all()
    text, _ = pages(ranker, curve)
    assert "Cost of a quota" in text
    assert "Mean over 3 users" in text
    assert f">{curve.lost[0][0]:.4f}<" in text
    with pytest.raises(DataError, match="at least one user"):
        quota_sensitivity(ranker, "genre", [])


def test_a_quota_that_shortens_lists_is_marked_and_not_compared():
    """Two sellers, lists of 4: one item of each makes a list of 2, whose mean score is higher, not the better one."""
    films = load_ratings_sample()
    ranker = fitted().fit(films.with_attributes({"seller": {film: film % 2 for film in films.items.tolist()}}))
    users = ranker.user_ids_.tolist()[:5]
    curve = quota_sensitivity(ranker, "seller", users, k=4, limits=(1, 2, 3))
    assert np.isnan(curve.value[:, 0]).all()
    assert not curve.empty[:, 1:].any()
    weights, lost = 1.0 / np.log2(np.arange(2.0, 6.0)), []
    for user in users:
        free, two = (ranker.recommend([user], 4, constraints=rules).scores
                     for rules in (None, Admissible(4).at_most(2, by="seller")))  # fmt: skip
        lost.append(np.average(free - two, weights=weights))
    text, _ = pages(ranker, curve)
    assert "1 (shorter lists for 5 of 5 users)" in text
    assert ">4 (no quota)<" in text
    assert f">{np.mean(lost):.4f}<" in text
    assert f">{np.std(lost, ddof=1):.4f}<" in text


# The page of the demo: what was measured and proved of each ranker, and whether swapped solvers agree.


@pytest.fixture(scope="module")
def trained():
    sample = load_sample("les-miserables")
    few = sample.train.select(range(6))
    rankers = {
        "least squares": RegressionRanker().fit(few),
        "large margin, convex": LargeMarginRanker("nDCG@5", bound="convex", lam=1.0).fit(few),
        "large margin, nonconvex": LargeMarginRanker("nDCG@5", lam=1.0).fit(few),
    }
    swapped = {("exact", "active_set"): rankers["large margin, convex"]}
    found = {name: evaluate(sample.test, one.predict(sample.test), MEASURES) for name, one in rankers.items()}
    return {"les-miserables": rankers}, {"les-miserables": found}, swapped


@pytest.mark.study
def test_means_and_certificates_are_on_the_page(trained):
    rankers, found, swapped = trained
    page = page_of_demo(rankers, found, swapped, "rankopt demo")
    queries = load_sample("les-miserables").test
    for ranker in rankers["les-miserables"].values():
        assert f"{evaluate(queries, ranker.predict(queries), 'nDCG@5').mean():.4f}" in page
    proved = rankers["les-miserables"]["large margin, convex"].certificate_
    assert f"{proved.primal:.6g}" in page
    assert f"{proved.bound:.6g}" in page
    assert "All agree" in page


@pytest.mark.study
def test_solvers_that_do_not_agree_are_not_said_to(trained):
    rankers, found, swapped = trained
    (pair, ranker), *_ = swapped.items()
    liar = LargeMarginRanker("nDCG@5", bound="convex", lam=1.0)
    low = ranker.certificate_.bound / 2
    liar.certificate_ = replace(ranker.certificate_, value=low, bound=low / 2)
    liar.history_ = ranker.history_
    page = page_of_demo(rankers, found, {pair: ranker, ("other", "solver"): liar}, "rankopt demo")
    assert "They do not agree." in page
    assert "All agree" not in page


def test_the_demo_begins_with_this_library_on_every_dataset(trained):
    rankers, found, swapped = trained
    ((sample, fitted),) = rankers.items()
    text = finding_of_demo(rankers, found)
    assert text in unescape(page_of_demo(rankers, found, swapped, "rankopt demo"))
    own, other = (found[sample][name].mean("nDCG@10") for name in ("large margin, nonconvex", "least squares"))
    start = f"LargeMarginRanker with its default bound reaches nDCG@10 {own:.3f} on les-miserables"
    assert text.startswith(f"{start} (least squares {other:.3f}; 13 queries). By paired tests ")
    gap = fitted["large margin, convex"].certificate_.relative_gap
    assert text.endswith(f"Convex objectives are proven to be within {100 * gap:.2g}% of the optimum.")


def test_a_ranker_that_is_better_than_ours_is_named():
    test = load_sample("digits").test
    scores = {"large margin, nonconvex": np.zeros(test.n_documents), "ideal": test.relevance}
    found = {name: evaluate(test, one, "nDCG@10") for name, one in scores.items()}
    assert "By paired tests ideal is better on digits (p = 0.0001)." in finding_of_demo({}, {"digits": found})
