"""Precedence over attributes: what indices say, said of choices; printed, saved, cut, swept, trained and ranked."""

from itertools import pairwise, permutations

import numpy as np
import pytest

from formulations import RankingSet, confirm, solve, verify_integrality
from formulations.errors import Infeasible, InvalidProblem
from formulations.gallery.assignments import constrained_ranking
from rankopt.constraints import Admissible
from rankopt.constraints.admissible import GroupCapacities
from rankopt.data import Queries
from rankopt.errors import DataError, OptionError
from rankopt.losses import BOUNDS
from rankopt.rankers import LargeMarginRanker, RegressionRanker, load_model

STAGES = Admissible(3).precedence_chain([{"stage": 1}, {"stage": 2}, {"stage": 3}], name="stages")


def attributes_of(rng, n):
    """Several stages a document, one, or none (None, NaN); flags that may lack."""
    stage = np.empty(n, dtype=object)
    kinds = [lambda: tuple(rng.choice([1, 2, 3], 2, replace=False).tolist()), lambda: None, lambda: float("nan")]
    stage[:] = [kinds[rng.integers(3)]() if rng.random() < 0.4 else int(rng.integers(1, 4)) for _ in range(n)]
    new = np.empty(n, dtype=object)
    new[:] = [[True, False, None][rng.integers(3)] for _ in range(n)]
    return {"stage": stage, "new": new}


def carried(stage, wanted):
    return np.array([wanted in one if isinstance(one, tuple) else one == wanted for one in stage], dtype=bool)


@pytest.mark.every(7)
@pytest.mark.parametrize("seed", range(40))
def test_attributes_say_what_indices_say(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 6)), int(rng.integers(1, 6))
    own = attributes_of(rng, n)
    stages, new = [carried(own["stage"], one) for one in (1, 2, 3)], np.array([one is True for one in own["new"]])
    empty = RankingSet(n, min(k, n))
    for rules, meant in (
        (Admissible(k).precedes({"stage": 1}, "new", name="c"), empty.precedes(stages[0], new, name="c")),
        (Admissible(k).precedes("new", {"stage": 2, "new": True}, name="c"), empty),
        (
            Admissible(k).precedence_chain([{"stage": s} for s in (1, 2, 3)], name="c"),
            empty.precedence_chain(stages, name="c"),
        ),
    ):
        found = rules.to_ranking_set(own, n)
        soft, priced = rules.penalized("c", penalty=0.5).for_query(own, n), meant
        for order in permutations(range(n), found.positions):
            assert found.is_feasible(order) == meant.is_feasible(order)
            assert sum(found.violations(order).values()) == sum(meant.violations(order).values())
            assert soft.charge(order) == 0.5 * sum(priced.violations(order).values())
        costs = [sum(found.violations(order).values()) for order in permutations(range(n), found.positions)]
        assert rules.repair(own, n).cost == pytest.approx(min(costs))
        if min(costs) > 0:
            with pytest.raises(Infeasible):
                rules.for_query(own, n)
        else:
            profit = rng.normal(size=found.shape)
            best = max(
                profit[np.arange(found.positions), list(order)].sum()
                for order in permutations(range(n), found.positions)
                if found.is_feasible(order)
            )
            assert solve(constrained_ranking(profit, found)).value == pytest.approx(best, abs=1e-9)


def test_a_precedence_is_a_value_with_names():
    news = Admissible(10).precedes({"genre": "news"}, {"genre": "opinion"})
    assert repr(news) == "Admissible(k=10).precedes({'genre': 'news'}, {'genre': 'opinion'})"
    title = "genre['news'] precedes genre['opinion']"
    own = {"genre": np.array(["news", "opinion", "x"])}
    assert [one.name for one in news.for_query(own, 3).constraints] == [title]
    assert [one.name for one in STAGES.for_query({"stage": np.array([1, 2, 3])}, 3).constraints] == ["stages"]
    for one in (
        news,
        news.penalized(title, penalty=0.5),
        STAGES,
        STAGES.penalized("stages", penalty=0.25),
        STAGES.precedes("a", "b"),
    ):
        assert eval(repr(one)) == one
        assert hash(eval(repr(one))) == hash(one)
    assert Admissible(3).precedence_chain([{"stage": s} for s in np.arange(1, 4)], name="stages") == STAGES
    assert news.attributes == ("genre",)
    assert GroupCapacities.from_specs(news.specs, {"genre": np.array([*"abc"])}, 3, 3) is None  # no greedy pass
    stated = STAGES.for_query({"stage": np.array([1, 1, 2, 2, 3])}, 5)
    assert confirm(stated, verify_integrality(stated))


def test_a_price_of_a_name_is_one_of_all_its_rules():
    """Of four documents the last two wait: one of the first two is missing, so both links of the chain break."""
    rules = Admissible(4)
    for first, second in pairwise(range(1, 4)):
        rules = rules.precedes({"stage": first}, {"stage": second}, name="stages")
    own = {"stage": np.array([3, 2, 0, 0])}
    for prices, cost in ((2.0, 2.0), ({"stages": 2.0}, 2.0), ({"stages": 2.0, "stages_2": 1.0}, 2.0)):
        assert rules.repair(own, 4, prices).cost == cost
    late = {"stage": np.array([3, 3, 0, 0])}  # stage 3 without stage 2: the second link alone
    assert rules.repair(late, 4, {"stages": 2.0}).cost == 4.0
    assert rules.repair(late, 4, {"stages": 2.0, "stages_2": 0.5}).cost == 1.0
    with pytest.raises(InvalidProblem, match="No constraint is named 'stages_3'"):
        rules.repair(late, 4, {"stages_3": 1.0})


def test_a_price_of_a_name_reaches_what_its_rules_brought_and_no_rule_of_a_name_that_looks_numbered():
    """Two documents of a site in three positions, forbidden twice over; `site_2` is also the title of a third rule."""
    own = {"site": np.array([*"aab"]), "new": np.array([True, True, True])}
    twice = Admissible(3).at_most(1, by="site").at_most(1, by="site")
    assert twice.repair(own, 3, {"site": 1.0}).cost == 2.0
    assert twice.penalized("site", penalty=9.0).repair(own, 3, {"site": 1.0}).cost == 2.0
    third = twice.at_most(2, documents="new", name="site_2")
    assert [one.name for one in third.to_ranking_set(own, 3).constraints] == ["site", "site_2", "site_2_2"]
    assert third.repair(own, 3, {"site": 1.0, "site_2_2": 1.0}).broken == {
        "site['a']": 1,
        "site_2['a']": 1,
        "site_2_2": 1,
    }
    assert third.repair(own, 3, {"site": 1.0, "site_2": 0.5}).cost == 2.0  # site_2_2 is of the title site_2


def test_a_share_or_a_distance_is_priced_by_its_name():
    """One document of four is new; of a.org are the first two. A share of half is owed 1 of the first two and of the
    first three, 2 of four; a distance of 2 keeps a.org apart in three windows."""
    own = {"new": np.array([True, False, False, False]), "site": np.array([*"aabc"])}
    shares = Admissible(4).at_least(share=0.5, documents="new", name="new half")
    assert shares.repair(own, 4, {"new half": 2.0}).broken == {"new half[4]": 1.0}
    assert shares.repair(own, 4, {"new half": 2.0}).cost == 2.0
    apart = Admissible(2).min_distance(2, by="site", name="apart").forbid(documents={"site": "b"}, name="b")
    pinned = apart.forbid(documents={"site": "c"}, name="c")
    assert pinned.repair(own, 4, {"apart": 3.0, "b": 9.0, "c": 9.0}).broken == {"apart['a', 0]": 1.0}
    with pytest.raises(InvalidProblem, match="No constraint is named 'half'"):
        shares.repair(own, 4, {"half": 1.0})


@pytest.mark.parametrize("word", ["at_most", "at_least"])
def test_what_a_share_says_can_be_said_again(word):
    said = getattr(Admissible(4), word)(share=0.4, by="site", name="share")
    assert eval(repr(said)) == said


def test_lists_are_cut_where_nothing_stands_first():
    """Of stages 2 and 3 none is shown in a query without stage 1."""
    own = {"stage": np.array([2, 3, 0, 0])}
    with pytest.raises(Infeasible, match="stages"):
        STAGES.for_query(own, 4)
    cut = Admissible(3, STAGES.specs, "truncate").for_query(own, 4)
    assert cut.positions == 2
    assert {order for order in permutations(range(4), 2) if cut.is_feasible(order)} == {(2, 3), (3, 2)}
    soft = STAGES.penalized("stages", penalty=0.5).for_query(own, 4)
    assert soft.charge([1, 0, 2]) == 1.0  # 3 before all of 2, 2 before all of 1
    assert soft.charge([0, 1, 2]) == 0.5
    one = Admissible(3).precedes("new", {"stage": 3}).for_query({"stage": np.array([3, 1]), "new": np.array([0, 1])}, 2)
    assert [order for order in permutations(range(2)) if one.is_feasible(order)] == [(1, 0)]
    with pytest.raises(DataError, match=r"query 'q' has no admissible ranking: .*stages.*on_infeasible='truncate'"):
        STAGES.for_queries(Queries.from_arrays(np.eye(4), qid=["q"] * 4, attributes=own))


@pytest.mark.parametrize(
    ("say", "told"),
    [
        (lambda a: a.precedes("new", None), "by an attribute of booleans"),
        (lambda a: a.precedes(None, "new"), "by an attribute of booleans"),
        (lambda a: a.precedes(0, 1), r"precedes\(\) selects documents by an attribute.*got 0"),
        (lambda a: a.precedes("new", [1, 2]), r"got \[1, 2\]"),
        (lambda a: a.precedes({"site": 1}, {"site": 1}), "cannot precede themselves"),
        (lambda a: a.precedes({"site": None}, "new"), "without a label; got {'site': None}"),
        (lambda a: a.at_most(1, documents={"site": float("nan")}), "without a label"),
        (lambda a: a.precedence_chain("new"), "needs a list of documents, the first one first; got 'new'"),
        (lambda a: a.precedence_chain(["new"]), "two or more documents"),
        (lambda a: a.precedence_chain({"new": 1, "old": 2}), "needs a list of documents"),
        (lambda a: a.precedence_chain(["new", "old", "new"]), "cannot precede themselves"),
        (lambda a: a.precedence_chain([["new"], "old"]), r"got \['new'\]"),
        (lambda a: a.add("precedes", "a", "b", by="site"), "no argument 'by'"),
        (lambda a: a.add("precedes", "a", "b", positions=[0]), "no argument 'positions'"),
        (lambda a: a.add("precedes", "a"), "two documents or two sets"),
        (lambda a: a.add("fix", 0, 0), "over attributes; got 'fix'"),
    ],
)
def test_what_no_precedence_says_is_named(say, told):
    with pytest.raises(OptionError, match=told):
        say(Admissible(3))


def learnable(seed=0, queries=8, n=6):
    """Features, grades, ids, and a stage a document; each query has all three."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(queries * n, 3))
    grades = (features @ [1.0, 0.5, 0.0] + 0.5 * rng.normal(size=queries * n) > 0.4).astype(int)
    stage = np.concatenate([rng.permutation([1, 2, 3, *rng.integers(1, 4, n - 3)]) for _ in range(queries)])
    return features, grades, np.repeat(np.arange(queries), n), {"stage": stage}


@pytest.mark.every(5)
@pytest.mark.parametrize("soft", [None, 0.1])
@pytest.mark.parametrize("bound", BOUNDS)
def test_training_closes_its_gap_and_shows_the_best_of_all(bound, soft, tmp_path):
    features, grades, qid, attributes = learnable()
    rules = STAGES if soft is None else STAGES.penalized("stages", penalty=soft)
    ranker = LargeMarginRanker("nDCG@3", bound=bound, lam=0.1, tol=1e-3, constraints=rules)
    ranker.fit(features, grades, qid=qid, attributes=attributes)
    found = ranker.certificate_
    assert found.gap <= 1e-3 * max(1.0, abs(found.primal))
    if bound == "convex":
        finer = LargeMarginRanker("nDCG@3", bound=bound, lam=0.1, tol=1e-5, constraints=rules)
        best = finer.fit(features, grades, qid=qid, attributes=attributes).certificate_
        assert found.bound <= best.primal <= found.primal + best.gap
    scores, weights = ranker.predict(features), ranker._shown_weights(3, 6)
    for q, order in ranker.rank(features, qid=qid, attributes=attributes).items():
        rows = np.flatnonzero(qid == q)
        own = rules.for_query({"stage": attributes["stage"][rows]}, 6)
        shown = np.searchsorted(rows, order)
        worth = [
            weights @ scores[rows][list(o)] - own.charge(o) for o in permutations(range(6), 3) if own.is_feasible(o)
        ]
        assert own.is_feasible(shown)
        assert weights @ scores[rows][shown] - own.charge(shown) == pytest.approx(max(worth))
        if soft is None:
            assert all(y - 1 <= x for x, y in pairwise(np.maximum.accumulate([0, *attributes["stage"][order]])))
    ranker.save(tmp_path / "stages.model")
    assert load_model(tmp_path / "stages.model").constraints == rules


def test_a_precedence_is_no_limit_to_sweep_but_others_are_swept_beside_it():
    features, grades, qid, attributes = learnable(1, queries=3)
    queries = Queries.from_arrays(features, grades, qid=qid, attributes=attributes)
    ridge = RegressionRanker().fit(queries)
    rules = STAGES.at_most(2, by="stage", name="each")
    with pytest.raises(
        OptionError, match=r"got 'stages', a constraint of kind precedence_chain.*penalized\('stages', penalty"
    ):
        ridge.price_of("stages", [1], queries, constraints=rules)
    scores, weights = ridge.predict(queries), 1.0 / np.log2(np.arange(2.0, 5.0))
    curves = ridge.price_of("each", range(1, 4), queries, constraints=rules)
    for q, curve in enumerate(curves.curves):
        rows = slice(6 * q, 6 * q + 6)
        for at, limit in enumerate(range(1, 4)):
            own = STAGES.at_most(limit, by="stage").for_query({"stage": attributes["stage"][rows]}, 6)
            best = max(weights @ scores[rows][list(o)] for o in permutations(range(6), 3) if own.is_feasible(o))
            assert curve.value[at] == pytest.approx(best)


def test_thousands_of_documents_are_ranked_under_precedence_and_quotas():
    rng = np.random.default_rng(2)
    genre = rng.choice(["news", "opinion", "sport", "arts"], 2000)
    rules = Admissible(10).precedes({"genre": "news"}, {"genre": "opinion"}).at_most(4, by="genre")
    features = np.column_stack([rng.normal(size=2000), genre == "opinion"]).astype(float)
    ranker = RegressionRanker().fit(features, np.maximum(features @ [1.0, 1.0], 0.0), qid=np.zeros(2000, dtype=int))
    order = ranker.rank(features, np.zeros(2000, dtype=int), attributes={"genre": genre}, constraints=rules)
    shown = genre[order].tolist()
    assert shown.count("opinion") == 4
    assert shown.index("news") < shown.index("opinion")


def test_chains_that_repeat_a_choice_are_refused_however_it_is_written():
    with pytest.raises(OptionError, match="cannot precede themselves"):
        Admissible(2).precedence_chain([{"a": 1, "b": 2}, "x", (("b", 2), ("a", 1))])
    with pytest.raises(OptionError, match="labels are numbers"):
        Admissible(2).precedence_chain([{"g": "a"}, {"g": np.array([1, 2])}, {"g": "c"}, {"g": np.array([3, 4])}])
