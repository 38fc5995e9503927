"""What a rule costs over a data set, straight from the rules, or from a ranker: each point against enumeration."""

from itertools import pairwise, permutations

import numpy as np
import pytest

from formulations.errors import InfeasibleError
from formulations.gallery.assignments import constrained_ranking
from formulations.solving.solve import solve
from rankopt.constraints import Admissible
from rankopt.data import Queries
from rankopt.errors import DataError, OptionError
from rankopt.rankers import LargeMarginRanker, RegressionRanker

SITE = np.array(["a", "a", "a", "b", "a", "b", "b", "c", "a", "a", "c", "c"])
NEW = np.array([1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0], dtype=bool)
QID = [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 4]  # of 3 both are of one site, none of 3 and 4 is new
BY_SITE = Admissible(3).at_most(1, by="site")


def sites_and_news():
    random = np.random.default_rng(0)
    features = random.normal(size=(12, 2))
    return Queries.from_arrays(features, random.integers(0, 3, 12), qid=QID, attributes={"site": SITE, "new": NEW})


def enumerated(queries, scores, admits, k=3):
    """(m,) the best value of each query, NaN where there is none."""
    found = []
    for start, stop in pairwise(queries.offsets.tolist()):
        own, length = scores[start:stop], min(k, stop - start)
        weights = 1.0 / np.log2(np.arange(2.0, length + 2.0))
        orders = [list(order) for order in permutations(range(stop - start), length)]
        found.append(max((weights @ own[o] for o in orders if admits(start + np.array(o))), default=np.nan))
    return np.array(found)


def most_of_a_site(rows):
    return max(np.unique(SITE[rows], return_counts=True)[1])


def test_each_point_is_the_best_admissible_value_of_each_query():
    queries, scores = sites_and_news(), np.random.default_rng(1).normal(size=12)
    found = BY_SITE.sensitivity("site", range(1, 4), queries, scores)
    assert found.name == "site at most"
    for at, limit in enumerate(range(1, 4)):
        best = enumerated(queries, scores, lambda rows, limit=limit: most_of_a_site(rows) <= limit)
        assert found.value[:, at] == pytest.approx(best, nan_ok=True)
    assert found.empty.sum(axis=0).tolist() == [3, 0, 0]
    assert found.shared == 4  # limit 1 has no mean


def test_a_rule_asks_no_more_than_a_query_has_positions_and_nothing_where_it_has_none_of_its_documents():
    queries, scores = sites_and_news(), np.random.default_rng(2).normal(size=12)
    rule = Admissible(3).at_least(0, documents="new", positions=range(2), name="fresh")
    found = rule.sensitivity("fresh", range(3), queries, scores)
    for at, limit in enumerate(range(3)):
        best = enumerated(queries, scores, lambda rows, limit=limit: NEW[rows[:2]].sum() >= limit)
        assert found.value[:, at] == pytest.approx(best, nan_ok=True)
    cut = Admissible(3, on_infeasible="truncate").at_most(1, by="site").sensitivity("site", [1, 2], queries, scores)
    assert not cut.empty.any()


def test_rows_may_come_in_any_order_and_scores_come_along():
    queries, scores = sites_and_news(), np.random.default_rng(3).normal(size=12)
    mixed = np.random.default_rng(4).permutation(12)
    moved = Queries.from_arrays(
        np.zeros((12, 1)), np.zeros(12), qid=np.array(QID)[mixed], attributes={"site": SITE[mixed], "new": NEW[mixed]}
    )
    one, other = (BY_SITE.sensitivity("site", [2, 3], q, s) for q, s in ((queries, scores), (moved, scores[mixed])))
    assert one.mean == pytest.approx(other.mean)


def test_a_ranker_sweeps_with_its_own_scores_and_weights():
    queries = sites_and_news()
    ridge = RegressionRanker().fit(queries)
    direct = BY_SITE.sensitivity("site", [2, 3], queries, ridge.predict(queries))
    told = ridge.sensitivity("site", [2, 3], queries, constraints=BY_SITE)
    assert told.mean == pytest.approx(direct.mean)
    loose = Admissible(3).at_most(2, by="site")
    margin = LargeMarginRanker("nDCG@3", position_weights="linear", constraints=loose, lam=1.0).fit(queries)
    shown, scores = margin.rank(queries), margin.predict(queries)
    weights = margin._shown_weights(3, 4)
    first = float(weights @ scores[shown[1]])
    assert margin.sensitivity("site", [2], queries).value[0, 0] == pytest.approx(first)
    with pytest.raises(OptionError, match="sensitivity needs constraints"):
        ridge.sensitivity("site", [1], queries)


def test_a_constraint_is_found_by_the_attribute_that_it_alone_uses():
    queries, scores = sites_and_news(), np.random.default_rng(2).normal(size=12)
    rules = Admissible(3).at_least(1, documents={"site": "a"}).at_most(2, documents="new")
    by_name, by_attribute = (rules.sensitivity(name, [0, 1], queries, scores) for name in ("site['a']", "site"))
    assert by_attribute.value == pytest.approx(by_name.value, nan_ok=True)
    assert by_attribute.price == pytest.approx(by_name.price, nan_ok=True)
    assert (by_attribute.price[~np.isnan(by_attribute.price)] <= 0).all()
    with pytest.raises(OptionError, match="No constraint is named 'site'"):
        rules.at_least(0, documents={"site": "b"}).sensitivity("site", [1], queries, scores)


def test_what_cannot_be_swept_is_refused_by_name():
    queries = sites_and_news()
    with pytest.raises(OptionError, match="No constraint is named 'sites'"):
        BY_SITE.sensitivity("sites", [1], queries, np.zeros(12))
    for limits, said in (
        (3, "must be one or more finite numbers"),
        ([], "must be one or more finite numbers"),
        (range(10**8), "more than 10000"),
    ):
        with pytest.raises(OptionError, match=said):
            BY_SITE.sensitivity("site", limits, queries, np.zeros(12))
    for scores in (np.zeros(11), np.full(12, np.nan)):
        with pytest.raises(DataError, match="12 finite numbers"):
            BY_SITE.sensitivity("site", [1], queries, scores)


def restated(queries, scores, admissible):
    """(m,) the best value of each query under rules that are stated anew, NaN where it has no ranking."""
    found = []
    for start, stop in pairwise(queries.offsets.tolist()):
        own = {name: values[start:stop] for name, values in queries.attributes.items()}
        try:
            one = admissible.for_query(own, stop - start)
        except InfeasibleError:
            found.append(np.nan)
            continue
        weights = 1.0 / np.log2(np.arange(2.0, one.positions + 2.0))
        found.append(solve(constrained_ranking(np.outer(weights, scores[start:stop]), one)).value)
    return np.array(found)


def of_sites(rows):
    """How many stand there of each site that their query has."""
    query = np.array(QID) == QID[rows[0]]
    return np.array([(SITE[rows] == site).sum() for site in np.unique(SITE[query])])


TWO_SIDED = {
    "the upper rule of between": (
        Admissible(3).between(1, 2, by="site", name="s"), "s", "at most", [0, 1, 2, 3],
        lambda limit: Admissible(3).at_least(1, by="site").at_most(limit, by="site"),
        lambda rows, limit: (of_sites(rows) >= 1).all() and (of_sites(rows) <= limit).all(),
    ),
    "the lower rule of between": (
        Admissible(3).between(0, 2, by="site"), "site", "at least", [0, 1, 2],
        lambda limit: Admissible(3).at_least(limit, by="site").at_most(2, by="site"),
        lambda rows, limit: (of_sites(rows) >= min(limit, len(rows))).all() and (of_sites(rows) <= 2).all(),
    ),
    "the first of several positions": (
        Admissible(3).at_least(0, by="site").at_most(2, by="site", positions=range(2)), "site", "at most", [0, 1, 2],
        lambda limit: Admissible(3).at_most(limit, by="site", positions=range(2)),
        lambda rows, limit: (of_sites(rows[:2]) <= limit).all(),
    ),
    "all positions beside a rule of the first": (
        Admissible(3).at_most(2, by="site").at_most(1, by="site", positions=range(2), name="top"), "site", None,
        [0, 1, 2, 3],
        lambda limit: Admissible(3).at_most(limit, by="site").at_most(1, by="site", positions=range(2)),
        lambda rows, limit: (of_sites(rows) <= limit).all() and (of_sites(rows[:2]) <= 1).all(),
    ),
    "a rule that is called as a row of sets is": (
        Admissible(3).at_most(2, by="site", name="position").at_most(2, by="site"), "position", None, [1, 2],
        lambda limit: Admissible(3).at_most(limit, by="site"),
        lambda rows, limit: (of_sites(rows) <= limit).all(),
    ),
}  # fmt: skip


@pytest.mark.every(5)
@pytest.mark.parametrize("case", TWO_SIDED)
def test_a_rule_beside_others_of_its_name_is_swept_as_if_it_were_stated_anew(case):
    admissible, name, side, limits, anew, admits = TWO_SIDED[case]
    queries, scores = sites_and_news(), np.random.default_rng(5).normal(size=12)
    found = admissible.sensitivity(name, limits, queries, scores, side=side)
    assert found.name == f"{name} {side or 'at most'}"
    for at, limit in enumerate(limits):
        values = found.value[:, at]
        best = enumerated(queries, scores, lambda rows, limit=limit: admits(rows, limit))
        assert values == pytest.approx(best, nan_ok=True)
        assert values == pytest.approx(restated(queries, scores, anew(limit)), nan_ok=True)


def test_several_rules_of_one_name_are_not_swept_as_if_they_were_one():
    queries, scores = sites_and_news(), np.zeros(12)
    by_site = {"by": "site"}
    several = {
        "one constraint named 'site'; got 2.*name=": Admissible(3)
        .at_most(2, by="site")
        .at_most(1, by="site", positions=[0, 1]),
        "'site', a share, must be from 0 to 1; got .*at_most.count": Admissible(3).at_most(share=0.5, **by_site),
        "one limit.*got 'site', a constraint of kind min_distance": Admissible(3).min_distance(2, **by_site),
        "both sides; got side=None. Give 'at most' or": Admissible(3).between(0, 2, **by_site),
    }
    for said, admissible in several.items():
        with pytest.raises(OptionError, match=said):
            admissible.sensitivity("site", [1, 2], queries, scores)
    both = Admissible(3).at_most(2, by="site", name="h").min_distance(2, by="site", name="h")
    assert both.sensitivity("h", [2], queries, scores, side="at most").name == "h at most"
    with pytest.raises(OptionError, match="got side='exactly'"):
        Admissible(3).between(0, 2, by="site").sensitivity("site", [1], queries, scores, side="exactly")


def test_limits_of_a_share_are_shares_and_those_of_a_count_integers():
    queries, scores = sites_and_news(), np.random.default_rng(6).normal(size=12)
    rule = Admissible(3).at_least(share=0.5, documents="new", prefixes=[2, 3], name="fresh")
    found = rule.sensitivity("fresh", [0, 0.5, 0.7], queries, scores)
    assert found.name == "fresh share at least"
    for at, (second, third) in enumerate([(0, 0), (1, 1), (1, 2)]):

        def admits(rows, second=second, third=third):
            return NEW[rows[:2]].sum() >= second and (len(rows) < 3 or NEW[rows].sum() >= third)

        assert found.value[:, at] == pytest.approx(enumerated(queries, scores, admits), nan_ok=True)
    ridge = RegressionRanker().fit(queries)
    own = ridge.sensitivity("fresh", [0.5], queries, constraints=rule)
    direct = rule.sensitivity("fresh", [0.5], queries, ridge.predict(queries))
    assert own.value == pytest.approx(direct.value, nan_ok=True)
    with pytest.raises(OptionError, match=r"a count, must be integers; got \[0.4\]. For shares .*at_most\(share="):
        BY_SITE.sensitivity("site", [0.4], queries, scores)
    assert BY_SITE.sensitivity("site", [2.0], queries, scores).limits.tolist() == [2.0]


def test_the_own_limit_empties_no_query_and_the_table_shows_weights_and_queries():
    queries, scores = sites_and_news(), np.arange(12.0)
    strict = Admissible(3, on_infeasible="truncate").at_least(2, documents="new", name="fresh")
    found = strict.sensitivity("fresh", range(3), queries, scores)
    assert found.empty.sum(axis=0).tolist() == [0, 2, 3]
    assert str(found).startswith(
        "Sums of scores, not nDCG: Σ c_i s_π(i), c = 1, 0.631, 0.5; lists as long as the original limits admit\n"
    )
    note = "\nMeans are over the 2 of 4 queries with a ranking at every limit but 2, which too few can meet."
    assert str(found).endswith(note)
    assert np.isnan(found.columns()["lost"]).tolist() == [False, False, True]  # not the loss of the few that are left


@pytest.mark.study
def test_limits_that_leave_no_query_a_curve_are_named_below_the_table():
    queries, scores = sites_and_news(), np.arange(12.0)
    blank = BY_SITE.sensitivity("site", range(4), queries, scores)
    assert np.isnan(blank.mean).tolist() == [True, True, False, False]
    assert str(blank).endswith("the 4 of 4 queries with a ranking at every limit but 0, 1, which too few can meet.")
    assert blank.note in blank._repr_html_()
    mended = BY_SITE.sensitivity("site", range(2, 4), queries, scores)
    assert (mended.shared, mended.note, len(str(mended).splitlines())) == (4, "", 4)  # with weights and queries
    assert mended.mean == pytest.approx(blank.mean[2:])
    nothing = BY_SITE.sensitivity("site", [0], queries, scores)
    assert "At no limit do most queries have a ranking" in str(nothing)
    new = Admissible(3).exactly(1, documents="new").sensitivity("new", range(3), queries, scores)
    assert new.empty.sum(axis=0).tolist() == [
        1,
        2,
        3,
    ]  # two of four are new and three shown; of the others one is, or none
    assert "limit but 2, which too few can meet" in str(new)


def test_curves_are_shown_as_frames_drawings_and_in_notebooks():
    pytest.importorskip("pandas")
    import matplotlib.pyplot as plt

    from formulations import RankingSet, sensitivity

    profit = np.outer([3.0, 2.0, 1.0], [5.0, 4.0, 3.0, 2.0, 1.0])
    curve = sensitivity(
        RankingSet(5, 3).at_most(3, documents=[0, 1], name="old & <b>"), "old & <b>", range(4), profit=profit
    )
    curves = BY_SITE.sensitivity("site", range(1, 4), sites_and_news(), np.arange(12.0))
    assert curve.to_frame()["value"].tolist() == curve.value.tolist()
    assert curves.to_frame()["mean"].to_numpy() == pytest.approx(curves.mean, nan_ok=True)
    for one in (curve, curves):
        axes = one.plot()
        assert one.plot(axes) is axes
        axes.figure.canvas.draw()
        assert one._repr_html_().startswith("<div>")
        plt.close(axes.figure)
    assert "old &amp; &lt;b&gt;" in curve._repr_html_()
