"""A set stated over attributes admits the rankings that its words say, and its greedy pass is optimal."""

import pickle
import re
from itertools import permutations

import numpy as np
import pytest
from sklearn.base import clone

from formulations import RankingSet
from formulations.constraints.constrained_ranking import ConstrainedRanking
from formulations.constraints.kinds import KINDS
from formulations.errors import Infeasible
from formulations.integrality import verify_integrality
from formulations.solving.solve import solve
from rankopt.constraints import Admissible
from rankopt.constraints.admissible import GroupCapacities
from rankopt.data import Queries
from rankopt.errors import DataError, OptionError
from rankopt.rankers import LargeMarginRanker

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
        with pytest.raises(Infeasible):
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
    with pytest.raises(Infeasible, match="new"):
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
    assert Admissible(3).on({}, 5).positions == 3


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
            with pytest.raises(Infeasible, match=f"room for {longest} document"):
                Admissible(4, specs=admissible.specs).for_query(attributes, n)
    assert shorter > 10


def test_an_error_names_the_query_and_the_conflict():
    queries = Queries.from_arrays(np.eye(4), qid=["x", "x", "y", "y"], attributes={"site": ["a", "b", "c", "c"]})
    with pytest.raises(
        DataError, match=r"query 'y' .*Conflict: .*site\['c'\].*room for 1 document.*on_infeasible='truncate'"
    ):
        Admissible(2).at_most(1, by="site").for_queries(queries)
    lengths = [
        one.positions for one in Admissible(2, on_infeasible="truncate").at_most(1, by="site").for_queries(queries)
    ]
    assert lengths == [2, 1]
    with pytest.raises(DataError, match="query 'x'"):  # a cut is no way out of what never holds
        Admissible(2, on_infeasible="truncate").at_least(1, documents={"site": "z"}).for_queries(queries)


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
        with pytest.raises(Infeasible):
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
        (lambda: Admissible(2).at_most(1, documents={"site": ["a"]}), "labels are numbers, strings"),
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
    with pytest.raises(Infeasible):
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
