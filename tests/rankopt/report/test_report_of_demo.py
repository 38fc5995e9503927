"""The page of the demo: what was measured and proved of each ranker, and whether swapped solvers agree."""

from dataclasses import replace
from html import unescape

import pytest

from rankopt.data import load_sample
from rankopt.measures import evaluate
from rankopt.rankers import LargeMarginRanker, RegressionRanker
from rankopt.report.demo_page import finding_of_demo, page_of_demo


@pytest.fixture(scope="module")
def trained():
    sample = load_sample("les-miserables")
    few = sample.train.select(range(6))
    rankers = {
        "least squares": RegressionRanker().fit(few),
        "large margin, convex": LargeMarginRanker("nDCG@5", bound="convex", lam=1.0).fit(few),
    }
    swapped = {("exact", "active_set"): rankers["large margin, convex"]}
    return rankers, swapped, sample.test


@pytest.mark.study
def test_means_and_certificates_are_on_the_page(trained):
    rankers, swapped, test = trained
    page = page_of_demo(rankers, swapped, test, "rankopt demo")
    for ranker in rankers.values():
        assert f"{evaluate(test, ranker.predict(test), 'nDCG@5').mean():.4f}" in page
    proved = rankers["large margin, convex"].certificate_
    assert f"{proved.primal:.6g}" in page
    assert f"{proved.bound:.6g}" in page
    assert "All agree" in page


@pytest.mark.study
def test_solvers_that_do_not_agree_are_not_said_to(trained):
    rankers, swapped, test = trained
    (pair, ranker), *_ = swapped.items()
    liar = LargeMarginRanker("nDCG@5", bound="convex", lam=1.0)
    liar.certificate_ = replace(ranker.certificate_, value=ranker.certificate_.bound / 2)
    liar.history_ = ranker.history_
    page = page_of_demo(rankers, {pair: ranker, ("other", "solver"): liar}, test, "rankopt demo")
    assert "They do not agree." in page
    assert "All agree" not in page


def test_the_page_begins_with_who_ranks_best_and_what_is_proven(trained):
    rankers, swapped, test = trained
    found = {name: evaluate(test, ranker.predict(test), "nDCG@10") for name, ranker in rankers.items()}
    told = finding_of_demo(rankers, found)
    assert told in unescape(page_of_demo(rankers, swapped, test, "rankopt demo"))
    best = max(found, key=lambda name: found[name].mean())
    assert told.startswith(f"{best} ranks best here, nDCG@10 ")
    gap = rankers["large margin, convex"].certificate_.relative_gap
    assert told.endswith(f"Each convex objective is proven to be within {100 * gap:.2g}% of its optimum.")
