"""A set stated over attributes admits the rankings that its words say, and its greedy pass is optimal."""

import pickle
import re
from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pytest
from sklearn.base import clone

from formulations import RankingSet, check_evidence, solve, verify_integrality
from formulations.constraints.constrained_ranking import ConstrainedRanking
from formulations.constraints.kinds import KINDS
from formulations.errors import InfeasibleError, InvalidProblemError
from formulations.gallery.assignments import constrained_ranking
from rankopt.constraints import Admissible
from rankopt.constraints.specs import GroupCapacities
from rankopt.data import Queries
from rankopt.errors import DataError, OptionError
from rankopt.losses import BOUNDS
from rankopt.rankers import LargeMarginRanker, RegressionRanker, load_model

SITE = np.array(["a", "a", "b", "b", "c"])
NEW = np.array([True, False, False, True, False])
GENRES = np.empty(5, dtype=object)
GENRES[:] = [("drama",), ("drama", "comedy"), (), ("comedy",), None]
ATTRIBUTES = {"site": SITE, "new": NEW, "genres": GENRES}


def count(order, documents, positions=None):
    return sum(documents[j] for i, j in enumerate(order) if positions is None or i in positions)


@pytest.mark.parametrize(
    ("admissible", "says"),
    [
        (Admissible(3), lambda order: True),
        (Admissible(3).at_most(1, by="site"), lambda order: len(set(SITE[list(order)])) == 3),
        (
            Admissible(3).at_most({"a": 1, "b": 0}, by="site"),
            lambda o: count(o, SITE == "a") <= 1 and count(o, SITE == "b") == 0,
        ),
        (Admissible(3).at_least(1, documents="new", positions=range(2)), lambda o: count(o, NEW, {0, 1}) >= 1),
        (Admissible(3).exactly(1, documents="new", positions=0), lambda o: NEW[o[0]]),
        (Admissible(3).exactly(1, by="site", positions=[0, 2]), lambda o: False),
        (Admissible(4).at_least(1, by="site"), lambda o: len(set(SITE[list(o)])) == 3),
        (Admissible(3).forbid(documents={"site": "b"}), lambda o: count(o, SITE == "b") == 0),
        (Admissible(3).forbid(documents={"site": "b", "new": True}, positions=[1]), lambda o: o[1] != 3),
        (
            Admissible(3).at_most(1, by="genres"),
            lambda o: count(o, [1, 1, 0, 0, 0]) <= 1 and count(o, [0, 1, 0, 1, 0]) <= 1,
        ),
        (Admissible(2).at_least(1, documents={"genres": "comedy"}), lambda o: count(o, [0, 1, 0, 1, 0]) >= 1),
        (
            Admissible(3).at_most(1, by="site", documents="new").at_least(2, documents="new"),
            lambda o: count(o, NEW) == 2,
        ),
        (Admissible(3).between(1, 2, documents="new"), lambda o: 1 <= count(o, NEW) <= 2),
        (Admissible(3).min_distance(2, by="site"), lambda o: not any(SITE[o[i]] == SITE[o[i + 1]] for i in range(2))),
        (Admissible(3).position_in({"site": "b"}, position=1), lambda o: SITE[o[1]] == "b"),
        (
            Admissible(3).implies({"site": "a"}, "new", positions=range(2)),
            lambda o: not count(o, SITE == "a", {0, 1}) or bool(count(o, NEW, {0, 1})),
        ),
        (
            Admissible(4).at_most(share=0.4, by="site"),
            lambda o: all(count(o[:p], s == SITE) <= -(-4 * p // 10) for p in range(1, 5) for s in "abc"),
        ),
        (
            Admissible(4).at_least(share=0.5, documents="new", prefixes=[2, 4], rounding="nearest"),
            lambda o: count(o[:2], NEW) >= 1 and count(o, NEW) >= 2,
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, Admissible) else "",
)  # fmt: skip
def test_a_set_admits_the_rankings_that_its_words_admit(admissible, says):
    orders = list(permutations(range(5), admissible.k))
    wanted = {order for order in orders if says(order)}
    if not wanted:
        with pytest.raises(InfeasibleError):
            admissible.for_query(ATTRIBUTES, 5)
        return
    one = admissible.for_query(ATTRIBUTES, 5)
    assert {order for order in orders if one.is_feasible(order)} == wanted


def test_positions_and_counts_end_where_the_query_ends():
    admissible = (
        Admissible(10).at_least(3, documents="new", positions=range(4)).forbid(documents="new", positions=[8, 9])
    )
    one = admissible.for_query({"new": np.array([True, True])}, 2)
    assert one.positions == 2
    assert one.is_feasible([1, 0])
    with pytest.raises(InfeasibleError, match="new"):
        admissible.for_query({"new": np.array([True, False])}, 2)


def test_what_is_no_query_is_refused_with_what_was_given():
    admissible = Admissible(3).at_most(1, by="site")
    for ask in (admissible.repair, admissible.for_query, admissible.to_ranking_set):
        for n in ("a", None, True, 5.5, -1):
            with pytest.raises(OptionError, match=rf"n must be an integer, 0 or more; got {n!r}"):
                ask(ATTRIBUTES, n)
        for given in (None, 3, "abc", [1]):
            with pytest.raises(DataError, match=rf"\{{'site': \[\.\.\.\]\}}.* got a {type(given).__name__}"):
                ask(given, 5)
    assert (
        admissible.to_ranking_set(ATTRIBUTES, np.int64(5)).positions
        == admissible.to_ranking_set(ATTRIBUTES, 5.0).positions
        == 3
    )
    assert Admissible(3).for_query({}, 5).positions == 3


@pytest.mark.parametrize("word", ["at_least", "exactly"])
def test_a_rule_that_asks_for_more_than_its_positions_hold_is_refused(word):
    for asked, options in ((6, {}), (3, {"positions": [0, 4]}), ({"old": 1, "new": 6}, {"by": "site"})):
        with pytest.raises(OptionError, match=rf"{word}\(\) needs a count of at most"):
            getattr(Admissible(5), word)(asked, **options)
    assert getattr(Admissible(5), word)(5).specs
    assert Admissible(5).at_most(6).specs  # allows more than there is room for, which holds


@pytest.mark.study
def test_a_query_without_room_is_an_error_or_a_shorter_list():
    rng = np.random.default_rng(0)
    shorter = 0
    for _ in range(40):
        n = int(rng.integers(2, 6))
        attributes = {"site": rng.integers(0, 3, n), "new": rng.random(n) < 0.5}
        admissible = (
            Admissible(4, on_infeasible="truncate")
            .at_most(1, by="site")
            .at_most(1, documents="new", positions=range(3))
        )
        longest = max(
            k
            for k in range(1, min(4, n) + 1)
            for order in permutations(range(n), k)
            if len(set(attributes["site"][list(order)])) == k and attributes["new"][list(order[:3])].sum() <= 1
        )
        assert admissible.for_query(attributes, n).positions == longest
        if longest < min(4, n):
            shorter += 1
            with pytest.raises(InfeasibleError, match=f"admits at most {longest} document"):
                Admissible(4, specs=admissible.specs).for_query(attributes, n)
    assert shorter > 10


def test_an_error_names_the_query_and_the_conflict():
    queries = Queries.from_arrays(np.eye(4), qid=["x", "x", "y", "y"], attributes={"site": ["a", "b", "c", "c"]})
    with pytest.raises(
        DataError, match=r"query 'y' .*Conflict: .*site\['c'\].*admits at most 1 document.*on_infeasible='truncate'"
    ):
        Admissible(2).at_most(1, by="site").for_queries(queries)
    lengths = [
        one.positions for one in Admissible(2, on_infeasible="truncate").at_most(1, by="site").for_queries(queries)
    ]
    assert lengths == [2, 1]
    with pytest.raises(DataError, match="query 'x'"):  # a cut is no way out of what never holds
        Admissible(2, on_infeasible="truncate").at_least(1, documents={"site": "z"}).for_queries(queries)


def test_a_list_is_shortened_to_the_prefixes_whose_share_holds():
    """One document of a group: half of each of the first two and three positions, not of four."""
    rules = Admissible(6, on_infeasible="truncate").at_least(share=0.5, documents={"group": "f"}, name="women")
    one = rules.for_query({"group": np.array(list("fmmmmm"))}, 6)
    assert one.positions == 3
    assert one.is_feasible([1, 0, 2])
    assert not one.is_feasible([1, 2, 0])
    with pytest.raises(InfeasibleError):  # a count is not reached by a shorter list
        Admissible(6, on_infeasible="truncate").at_least(2, documents={"group": "f"}).for_query(
            {"group": np.array(list("fmmmmm"))}, 6
        )


def test_an_error_counts_the_queries_and_names_cures_that_help():
    groups = np.array(list("fmmm" + "ffmm" + "mmmm" + "fmmm"))
    queries = Queries.from_arrays(np.eye(16), qid=np.repeat(list("abcd"), 4), attributes={"group": groups})
    two = Admissible(4).at_least(2, documents={"group": "f"}, name="women")
    half = Admissible(4).at_least(share=0.5, documents={"group": "f"}, name="women")
    for rules, shorter in ((two, False), (half, True)):
        with pytest.raises(DataError, match=r"as each document is ranked at most once; loosen it\.") as caught:
            rules.for_queries(queries)
        text = str(caught.value)
        assert ("on_infeasible='truncate'" in text) == shorter
        if not shorter:
            with pytest.raises(DataError, match=r"No shorter ranking helps either \(on_infeasible='truncate'\)"):
                replace(rules, on_infeasible="truncate").for_queries(queries)
        assert ".penalized('women', penalty=...)" in text
        assert text.endswith("2 more of 4 queries have none: 'c', 'd'")
        assert len(rules.penalized("women", penalty=1.0).for_queries(queries)) == 4
    shortened = replace(half, on_infeasible="truncate").for_queries(queries)
    assert [one.positions for one in shortened] == [3, 4, 1, 3]


@pytest.mark.parametrize(
    "rules",
    [
        Admissible(2).at_least(1, documents={"group": "F"}),
        Admissible(2).at_least({"F": 1}, by="group"),
        Admissible(2).position_in({"group": "F"}, position=0),
    ],
)
def test_a_value_that_no_document_has_is_named_with_those_that_there_are(rules):
    queries = Queries.from_arrays(np.eye(4), qid=[0] * 4, attributes={"group": list("ffmm")})
    with pytest.raises(DataError, match=r"No document has group 'F'; the values are 'f', 'm'\."):
        rules.for_queries(queries)


LABELS = {"banned": [True, False, False, False], "brand": list("AABB"), "size": [1, 2, 3, 4], "tags": [None] * 4}


@pytest.mark.parametrize(
    ("documents", "error", "says"),
    [
        ({"banned": "True"}, DataError, "has banned 'True'; the values are False, True; did you mean True?"),
        ({"banned": "yes"}, DataError, "has banned 'yes'; the values are False, True."),
        ({"size": "2"}, DataError, "has size '2'; the values are 1, 2, 3, 4; did you mean 2?"),
        ({"brand": 2}, DataError, "has brand 2; the values are 'A', 'B'."),
        ({"brand": "a"}, UserWarning, "has brand 'a'; the values are 'A', 'B'; did you mean 'A'?"),
        ({"size": 5}, UserWarning, "has size 5; the values are 1, 2, 3, 4. The constraint counts no document."),
        ({"tags": "x"}, UserWarning, "has tags 'x'; the values are missing."),
    ],
)
def test_a_limit_on_a_value_that_no_document_has_is_never_silent(documents, error, says):
    queries = Queries.from_arrays(np.eye(4), [1, 0, 1, 0], qid=[0, 0, 1, 1], attributes=LABELS)
    ranker, rules = RegressionRanker(1.0).fit(queries), Admissible(2).at_most(0, documents=documents)
    for use in (rules.for_queries, lambda queries: ranker.rank(queries, constraints=rules)):
        with (pytest.raises if error is DataError else pytest.warns)(error, match=re.escape(f"No document {says}")):
            use(queries)


def test_a_value_of_another_query_and_a_rare_true_are_no_mistake():
    queries = Queries.from_arrays(np.eye(4), qid=[0, 0, 1, 1], attributes=LABELS | {"banned": [False] * 4})
    rules = Admissible(1).at_most(0, documents={"brand": "B", "size": 3}).at_most(0, documents={"banned": True})
    assert len(rules.for_queries(queries)) == 2  # warnings are errors in tests


def test_a_value_in_place_of_an_attribute_has_a_hint():
    rules = Admissible(2).at_least(share=0.5, by="group", documents="f")
    with pytest.raises(
        DataError, match=r"'f', which is missing .* write documents=\{'group': 'f'\}, or pass attributes="
    ):
        rules.for_query({"group": np.array(list("ffmm"))}, 4)


@pytest.mark.every(7)
@pytest.mark.parametrize("seed", range(60))
def test_the_greedy_pass_is_the_program(seed):
    """Scores with ties and negatives, nested and disjoint limits: the pass and the solver reach the same sum."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 7)), int(rng.integers(1, 6))
    scores = rng.integers(-3, 4, n).astype(float) if seed % 2 else rng.normal(size=n) - 1.0
    site = rng.integers(0, 4, n)
    attributes = {"site": site, "domain": site // 2, "new": site == 1}
    admissible = Admissible(k, on_infeasible="truncate").at_most(1 + seed % 3 // 2, by="site")
    if seed % 3:
        admissible = admissible.at_most(2, by="domain").at_most(1, documents="new")
    if seed % 5 == 0:
        admissible = admissible.forbid(documents={"site": 3}).at_most({0: 3}, by="domain")
    caps = GroupCapacities.from_specs(admissible.specs, attributes, n, min(k, n))
    order = caps.order(scores)
    if order.size == 0:
        with pytest.raises(InfeasibleError):
            admissible.for_query(attributes, n)
        return
    one = admissible.for_query(attributes, n)
    assert one.positions == order.size  # as many as any list has
    assert one.is_feasible(order)
    for weights in (1.0 / np.arange(1.0, order.size + 1), np.sort(rng.random(order.size))[::-1]):
        solution = solve(ConstrainedRanking(np.outer(weights, scores), one))
        best = max(
            float(weights @ scores[list(every)])
            for every in permutations(range(n), order.size)
            if one.is_feasible(every)
        )
        assert float(weights @ scores[order]) == pytest.approx(best, abs=1e-12)
        assert solution.value == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize(
    "admissible",
    [
        Admissible(3).at_least(1, documents="new"),
        Admissible(3).at_most(1, documents="new", positions=range(2)),
        Admissible(3).at_most(1, by="genres"),
        Admissible(3).at_most(1, by="site").at_most(1, documents={"genres": "comedy"}),
    ],
)
def test_the_greedy_pass_declines_what_is_no_laminar_matroid(admissible):
    assert GroupCapacities.from_specs(admissible.specs, ATTRIBUTES, 5, 3) is None


def test_a_set_is_a_value():
    admissible = (
        Admissible(k=4, on_infeasible="truncate")
        .at_most({"b": 1, "a": np.int64(2)}, by="site")
        .at_least(2, documents="new", positions=range(3), name="fresh")
        .forbid(documents={"site": "c"}, positions=[1, 3])
    )
    same = (
        Admissible(4, on_infeasible="truncate")
        .at_most({"a": 2, "b": 1}, by="site")
        .at_least(2, documents="new", positions=(2, 0, 1), name="fresh")
        .forbid(documents={"site": "c"}, positions=[3, 1])
    )
    assert admissible == same
    assert hash(admissible) == hash(same)
    assert eval(repr(admissible)) == admissible
    assert pickle.loads(pickle.dumps(admissible)) == admissible
    assert clone(LargeMarginRanker(constraints=admissible)).constraints == admissible
    assert admissible != admissible.at_most(1, by="site")
    assert admissible.attributes == ("site", "new")


def test_rows_are_named_after_attributes():
    one = (
        Admissible(3)
        .at_most(1, by="site")
        .at_least(1, documents="new")
        .at_most(1, documents={"site": "a", "new": False})
        .at_most(2, by="site", name="cap")
        .for_query(ATTRIBUTES, 5)
    )
    assert [constraint.name for constraint in one.constraints] == ["site", "new", "new[False] and site['a']", "cap"]
    assert one.violations([0, 1, 2]) == {"site['a']": 1.0}


def test_prices_and_witnesses_speak_of_attributes():
    admissible = Admissible(3).at_most(1, by="site").at_least(1, documents="new", positions=range(2))
    problem = ConstrainedRanking(
        np.outer([3.0, 2.0, 1.0], [1.0, 5.0, 4.0, 0.0, 3.0]), admissible.for_query(ATTRIBUTES, 5)
    )
    prices = solve(problem).dual
    assert prices["site"].shape == (3,)
    assert (prices["site"] >= 0).all()
    assert prices["new"] <= 0  # a limit from below
    assert {"new", "site['a']"} <= set(re.findall(r"^ *(\S+) +\|", str(verify_integrality(problem)), re.MULTILINE))


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: Admissible(0), "k must be a positive integer; got 0"),
        (lambda: Admissible(2.5), "got 2.5"),
        (lambda: Admissible(2, on_infeasible="long"), "got 'long'"),
        (lambda: Admissible(2, specs=("site",)), "Start from Admissible"),
        (lambda: Admissible(2).at_most(-1, by="site"), "count must be an integer, 0 or more; got -1"),
        (lambda: Admissible(2).at_most(1.5, by="site"), "count must be an integer, 0 or more; got 1.5"),
        (lambda: Admissible(2).at_most({"a": 1}), "Give by="),
        (lambda: Admissible(2).at_most(1, by=SITE), "the name of an attribute"),
        (lambda: Admissible(2).at_most(1, documents=NEW), "by an attribute of booleans"),
        (lambda: Admissible(2).at_most(1, documents={}), "by an attribute of booleans"),
        (lambda: Admissible(2).at_most(1, documents={"site": ["a"]}), r"one value; got .*isin\(\[...\]\)"),
        (
            lambda: Admissible(2).at_most(1, documents="new", positions=[2]),
            "Positions count from 0 to k - 1 = 1; got 2",
        ),
        (
            lambda: Admissible(2).forbid(documents="new", positions=-1),
            "a position must be an integer, 0 or more; got -1",
        ),
    ],
)
def test_what_is_no_set_is_refused_when_it_is_stated(build, says):
    with pytest.raises(OptionError, match=says):
        build()


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({}, "'site', which is missing"),
        ({"site": SITE, "new": NEW[:3]}, r"'new' needs one value per document; got shape \(3,\) for 5"),
        ({"site": SITE, "new": SITE}, "an attribute of booleans; got the value 'a'"),
    ],
)
def test_what_fits_no_set_is_refused_when_it_is_applied(attributes, says):
    with pytest.raises(DataError, match=says):
        Admissible(2).at_most(1, by="site").at_least(1, documents="new").for_query(attributes, 5)


def test_no_label_is_no_constraint():
    for site in (np.array([np.nan, np.nan, 1.0]), np.array([None, None, "a"], dtype=object)):
        assert Admissible(3).at_most(1, by="site").for_query({"site": site}, 3).is_feasible([0, 1, 2])
    flags = np.array([True, None, np.nan], dtype=object)
    with pytest.raises(InfeasibleError):
        Admissible(3).at_least(2, documents="new").for_query({"new": flags}, 3)


def test_a_cut_list_is_as_long_as_the_rules_let_it_be():
    admissible = (
        Admissible(3, on_infeasible="truncate").at_most(1, by="c").exactly(1, documents={"c": "b"}, positions=2)
    )
    cut = admissible.for_query({"c": np.array(list("aab"))}, 3)
    assert cut.positions == 2  # the rule names a position that a list of two has not
    assert cut.is_feasible([0, 2])


def test_a_share_at_least_asks_nothing_of_prefixes_that_a_query_lacks():
    admissible = Admissible(10).at_least(share=0.5, documents="new")
    short = admissible.for_query({"new": np.array([True, False, False])}, 3)
    assert short.is_feasible([0, 1, 2])  # 1 of 3 is a half, rounded down, and 5 of 10 is not asked for
    assert not short.is_feasible([1, 2, 0])


@pytest.mark.parametrize(
    ("say", "told"),
    [
        (lambda a: a.between(2, 1, documents="new"), "low <= high; got low=2, high=1"),
        (lambda a: a.at_most(share=2.0, by="site"), "from 0 to 1; got 2.0"),
        (lambda a: a.at_most(1, share=0.5), "neither a count nor positions"),
        (lambda a: a.at_most(share=0.5, prefixes=[4]), "count from 0 to k - 1 = 2; got 3"),
        (lambda a: a.min_distance(0, by="site"), "1 or more; got 0"),
        (lambda a: a.implies("new", None), "by an attribute of booleans"),
    ],
)
def test_what_rules_cannot_say_is_named(say, told):
    with pytest.raises(OptionError, match=told):
        say(Admissible(3))


def test_shares_of_labels_and_distances_say_what_sets_of_documents_say():
    site = ["a", "b", "a", "b", "c", "a"]
    with pytest.raises(OptionError, match="Give by="):
        Admissible(6).at_most(share={"a": 0.5})
    one = Admissible(6).at_most(share={"a": 0.5, "b": 1 / 3}, by="site").for_query({"site": np.array(site)}, 6)
    two = RankingSet(6, 6).at_most(share={"a": 0.5, "b": 1 / 3}, by=site)
    for order in permutations(range(6)):
        assert one.is_feasible(order) == two.is_feasible(order)
    assert Admissible(6).min_distance(np.int64(2), by="site") == Admissible(6).min_distance(2, by="site")
    assert Admissible(6).at_most(share=0.5, by="site", prefixes=4) == Admissible(6).at_most(
        share=0.5, by="site", prefixes=[4]
    )
    for wrong in (
        lambda: Admissible(6).at_most(share=0.5, by="site", prefixes=[1.5]),
        lambda: Admissible(6).at_most(share=0.5, by="site", prefixes="12"),
        lambda: Admissible(6).min_distance(0, by="site"),
        lambda: Admissible(6).between(None, 1, by="site"),
    ):
        with pytest.raises(OptionError):
            wrong()


NAMED = {
    "share": Admissible(4).at_most(share=0.5, by="site", name="h"),
    "share of labels": Admissible(4).at_least(share={"a": 0.5, "b": 0.3}, by="site", name="h"),
    "share at some prefixes": Admissible(4).at_most(share=0.5, by="site", prefixes=[2, 4], name="h"),
    "distance": Admissible(4).min_distance(2, by="site", name="h"),
    "both": Admissible(4).at_most(share=0.5, by="site", name="h").min_distance(2, by="site", name="h"),
}


@pytest.mark.parametrize("case", NAMED)
def test_a_name_penalizes_all_constraints_of_that_name(case):
    others = Admissible(4).at_most(1, documents="new", name="h, first").at_least(1, by="site", positions=[0], name="k")
    soft = Admissible(4, specs=(*NAMED[case].specs, *others.specs)).penalized("h", penalty=0.1)
    assert [spec.penalty for spec in soft.specs] == [0.1] * len(NAMED[case].specs) + [None, None]
    site = {"site": np.array(["a", "a", "a", "a", "b"])}
    held, free = NAMED[case].to_ranking_set(site, 5), NAMED[case].penalized("h", penalty=0.1).for_query(site, 5)
    for order in permutations(range(5), 4):
        assert free.is_feasible(order)
        assert free.charge(order) == pytest.approx(0.1 * sum(held.violations(order).values()))


A, NEWS = np.array([True, True, False, False, False]), NEW
"""The documents of site a, and those that are new."""

KINDS_OF_BOTH = {
    "at_most": (lambda s, a, new, by: s.at_most(1, documents=a, positions=[0, 1]), lambda o: count(o, A, {0, 1}) < 2),
    "at_least": (lambda s, a, new, by: s.at_least(1, documents=new), lambda o: count(o, NEWS) >= 1),
    "exactly": (lambda s, a, new, by: s.exactly(1, by=by), lambda o: len({*SITE[list(o)]}) == 3),
    "between": (lambda s, a, new, by: s.between(1, 2, documents=a), lambda o: 1 <= count(o, A) <= 2),
    "share": (lambda s, a, new, by: s.at_least(share=0.5, documents=new),
              lambda o: all(count(o[:p], NEWS) >= p // 2 for p in (1, 2, 3))),
    "forbid": (lambda s, a, new, by: s.forbid(a, [1]), lambda o: not A[o[1]]),
    "position_in": (lambda s, a, new, by: s.position_in(new, position=2), lambda o: NEWS[o[2]]),
    "precedes": (lambda s, a, new, by: s.precedes(a, new),
                 lambda o: all(A[list(o[:p])].any() for p, j in enumerate(o) if NEWS[j] and not A[j])),
    "precedence_chain": (lambda s, a, new, by: s.precedence_chain([new, a]),
                         lambda o: all(NEWS[list(o[:p])].any() for p, j in enumerate(o) if A[j] and not NEWS[j])),
    "min_distance": (lambda s, a, new, by: s.min_distance(2, by=by),
                     lambda o: not any(SITE[o[i]] == SITE[o[i + 1]] for i in range(2))),
    "implies": (lambda s, a, new, by: s.implies(a, new), lambda o: not count(o, A) or count(o, NEWS) >= 1),
}  # fmt: skip


def test_every_kind_over_attributes_is_stated_once_for_both():
    assert {*KINDS_OF_BOTH} | {"fix", "add_rows"} == {*KINDS, "share"}


@pytest.mark.parametrize("kind", KINDS_OF_BOTH)
def test_sets_and_attributes_have_the_same_rows_and_the_rankings_of_the_definition(kind):
    state, meant = KINDS_OF_BOTH[kind]
    over_indices = state(RankingSet(5, 3), A, NEW, SITE.tolist())
    over_attributes = state(Admissible(3), {"site": "a"}, "new", "site").to_ranking_set(ATTRIBUTES, 5)
    for order in permutations(range(5), 3):
        assert over_indices.is_feasible(order) == over_attributes.is_feasible(order) == bool(meant(order)), order
    one, other = over_indices.compiled, over_attributes.compiled
    assert (one.matrix != other.matrix).nnz == 0
    assert np.array_equal(one.lower, other.lower)
    assert np.array_equal(one.upper, other.upper)


# Precedence over attributes: what indices say, said of choices; printed, saved, cut, swept, trained and ranked
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
            with pytest.raises(InfeasibleError):
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
    assert check_evidence(stated, verify_integrality(stated))


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
    with pytest.raises(InvalidProblemError, match="No constraint is named 'stages_3'"):
        rules.repair(late, 4, {"stages_3": 1.0})


def test_a_price_of_a_name_reaches_what_its_rules_brought_and_no_rule_of_a_name_that_looks_numbered():
    """Two documents of a site in three positions, forbidden twice over; `site_2` is also the title of a third rule."""
    own = {"site": np.array([*"aab"]), "new": np.array([True, True, True])}
    twice = Admissible(3).at_most(1, by="site").at_most(1, by="site")
    assert twice.repair(own, 3, {"site": 1.0}).cost == 2.0
    assert twice.penalized("site", penalty=9.0).repair(own, 3, {"site": 1.0}).cost == 2.0
    third = twice.at_most(2, documents="new", name="site_2")
    assert [one.name for one in third.to_ranking_set(own, 3).constraints] == ["site", "site_2", "site_2_2"]
    assert third.repair(own, 3, {"site": 1.0, "site_2_2": 1.0}).violations == {
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
    assert shares.repair(own, 4, {"new half": 2.0}).violations == {"new half[4]": 1.0}
    assert shares.repair(own, 4, {"new half": 2.0}).cost == 2.0
    apart = Admissible(2).min_distance(2, by="site", name="apart").forbid(documents={"site": "b"}, name="b")
    pinned = apart.forbid(documents={"site": "c"}, name="c")
    assert pinned.repair(own, 4, {"apart": 3.0, "b": 9.0, "c": 9.0}).violations == {"apart['a', 0]": 1.0}
    with pytest.raises(InvalidProblemError, match="No constraint is named 'half'"):
        shares.repair(own, 4, {"half": 1.0})


@pytest.mark.parametrize("word", ["at_most", "at_least"])
def test_what_a_share_says_can_be_said_again(word):
    said = getattr(Admissible(4), word)(share=0.4, by="site", name="share")
    assert eval(repr(said)) == said


def test_lists_are_cut_where_nothing_stands_first():
    """Of stages 2 and 3 none is shown in a query without stage 1."""
    own = {"stage": np.array([2, 3, 0, 0])}
    with pytest.raises(InfeasibleError, match="stages"):
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
        (lambda a: a.at_least(1, documents=np.ones(40)), "got a ndarray of 40 values: store it as a column"),
        (lambda a: a.at_most(1, by=np.ones(40)), "got a ndarray of 40 values: store it as a column"),
        (lambda a: a.precedes(0, 1), r"precedes\(\) selects documents by an attribute.*got 0"),
        (lambda a: a.precedes("new", [1, 2]), r"got \[1, 2\]"),
        (lambda a: a.precedes({"site": 1}, {"site": 1}), "cannot precede themselves"),
        (lambda a: a.precedes({"site": None}, "new"), "without a label; got {'site': None}"),
        (lambda a: a.at_most(1, documents={"site": float("nan")}), "without a label"),
        (lambda a: a.precedence_chain("new"), "needs a list of documents in order; got 'new'"),
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
        ridge.sensitivity("stages", [1], queries, constraints=rules)
    scores, weights = ridge.predict(queries), 1.0 / np.log2(np.arange(2.0, 5.0))
    curves = ridge.sensitivity("each", range(1, 4), queries, constraints=rules)
    for q, values in enumerate(curves.value):
        rows = slice(6 * q, 6 * q + 6)
        for at, limit in enumerate(range(1, 4)):
            own = STAGES.at_most(limit, by="stage").for_query({"stage": attributes["stage"][rows]}, 6)
            best = max(weights @ scores[rows][list(o)] for o in permutations(range(6), 3) if own.is_feasible(o))
            assert values[at] == pytest.approx(best)


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
    with pytest.raises(OptionError, match="selects documents of one value"):
        Admissible(2).precedence_chain([{"g": "a"}, {"g": np.array([1, 2])}, {"g": "c"}, {"g": np.array([3, 4])}])
