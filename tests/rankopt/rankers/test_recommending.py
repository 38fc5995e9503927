"""Lists are the best of all lists that may be shown; new users are the best for the items as they are."""

from itertools import permutations

import cvxpy
import numpy as np
import pytest
from problems.rated import few, tastes
from sklearn.exceptions import ConvergenceWarning

from rankopt import Admissible
from rankopt.collaborative.encoded_ratings import EncodedRatings
from rankopt.collaborative.quotas import ConstrainedRecommender
from rankopt.collaborative.regularization import Penalties
from rankopt.collaborative.user_loss import UserLoss, best_users
from rankopt.errors import DataError, ModelError, OptionError
from rankopt.rankers import CofiRanker, load_model
from rankopt.ratings import Ratings, load_ratings_sample

GENRES = ("a", "b", "c")


def some(seed, users=6, items=9, n=30):
    random = np.random.default_rng(seed)
    pairs = random.choice(users * items, n, replace=False)
    genres = {i: tuple(g for g in GENRES if random.random() < 0.5) or None for i in range(items)}
    return Ratings.from_arrays(
        pairs // items, pairs % items, random.integers(1, 6, n), users=range(users), items=range(items),
        attributes={"genre": genres, "new": {i: bool(i % 2) for i in range(items)}},
    )  # fmt: skip


@pytest.fixture(scope="module")
def films():
    return load_ratings_sample()


@pytest.fixture(scope="module")
def ranker(films):
    return CofiRanker(reg=0.4, factors=4).fit(films)


def test_lists_are_those_of_the_scores_without_what_was_seen(films, ranker):
    lists = ranker.recommend(k=7)
    assert lists.users.tolist() == films.users.tolist()
    seen = films.to_csr().toarray() > 0
    for u, (user, items) in enumerate(lists):
        free = films.items[~seen[u]]
        scores = ranker.predict([(user, item) for item in free.tolist()])
        assert items == free[np.argsort(-scores, kind="stable")][:7].tolist()
    np.testing.assert_allclose(
        lists.scores, ranker.predict(np.column_stack([np.repeat(lists.users, 7), lists.items])), rtol=1e-12
    )
    one = ranker.recommend([films.users.item(3)], k=7)
    assert one[films.users.item(3)] == lists[films.users.item(3)]


def test_what_counts_as_seen_and_what_may_be_listed_is_said(films, ranker):
    user = films.users.item(0)
    rated = films.items[films.columns[: films.bounds[1]]].tolist()
    everything = ranker.recommend([user], k=1000, seen="keep")[user]
    assert sorted(everything) == films.items.tolist()
    rest = ranker.recommend([user], k=1000)[user]
    assert rest == [item for item in everything if item not in rated]
    other = Ratings.from_arrays([user, user], [everything[0], "no item"], [1, 1])
    assert ranker.recommend([user], k=3, seen=other)[user] == everything[1:4]
    assert ranker.recommend([user], k=5, among=everything[10:0:-1], seen="keep")[user] == everything[1:6]
    counted = ranker.recommend([user], k=1000, seen="keep", popularity=1000.0)[user]
    places = ranker.item_popularity_[films.item_index(counted)]
    assert (np.diff(places) <= 0).all()


def test_unknown_users_and_items_have_priors(films, ranker):
    lists = ranker.recommend(["nobody", 1], k=5, among=[*films.items.tolist(), "new film"], seen="keep")
    by_offset = films.items[np.argsort(-ranker.item_bias_, kind="stable")]
    assert lists["nobody"] == by_offset[:5].tolist()
    assert len(lists[1]) == 5
    every = ranker.recommend([1], k=1000, among=[*films.items.tolist(), "new film"], seen="keep")
    new = every.scores[every[1].index("new film")]
    assert new == pytest.approx(ranker.cold_start_bias_ + ranker.user_bias_[0])
    with pytest.raises(DataError, match=r"among has no item of training \('new film' is not\); fit with"):
        ranker.recommend([1], among=["new film", "newer film"])
    assert np.isfinite(lists.scores).all()


RULES = {
    "overlapping": Admissible(3).at_most(1, by="genre"),
    "two each": Admissible(4).at_most(2, by="genre").at_least(1, documents="new"),
    "exact": Admissible(3).exactly(1, documents="new").at_most(2, by="genre"),
    "first": Admissible(3).at_most(1, by="genre", positions=range(2)).forbid(documents={"genre": "c"}, positions=0),
    "owed": Admissible(4).at_least({"a": 2, "b": 1}, by="genre").at_most(3, documents={"genre": "a"}),
    "if then": Admissible(3).implies({"genre": "a"}, {"genre": "b"}).at_most(2, by="genre"),
    "before": Admissible(3).precedes({"genre": "a"}, {"genre": "b"}).at_most(2, by="genre"),
    "chain": Admissible(4).precedence_chain([{"genre": "c"}, {"genre": "a"}, "new"]).at_least(1, documents="new"),
    "nested": Admissible(4).at_most(2, documents="new"),
}


@pytest.mark.every(5)
@pytest.mark.parametrize("rules", RULES)
def test_admissible_lists_are_the_best_of_all(rules):
    """Against every order of the unseen items."""
    admissible = RULES[rules]
    checked = 0
    for seed in range(8):
        ratings = some(seed)
        ranker = CofiRanker(reg=0.5, factors=2, max_iter=20).fit(ratings)
        for user in range(4):
            free = np.setdiff1d(np.arange(9), ratings.columns[ratings.bounds[user] : ratings.bounds[user + 1]])
            if not 3 <= free.size <= 6:
                continue
            scores = ranker.predict([(user, item) for item in free.tolist()])
            k = min(admissible.k, free.size)
            weights = 1 / np.log2(np.arange(2, k + 2))
            attributes = {name: values[free] for name, values in ratings.attributes.items()}
            try:
                allowed = admissible.for_query(attributes, free.size)
            except Exception:
                with pytest.raises(DataError, match=f"user {user} has no admissible ranking"):
                    ranker.recommend([user], constraints=admissible)
                continue
            orders = np.array(list(permutations(range(free.size), k)))
            values = scores[orders] @ weights
            best = next(values[place] for place in np.argsort(-values) if allowed.is_feasible(orders[place]))
            found = ranker.recommend([user], constraints=admissible)
            places = np.searchsorted(free, found[user])
            assert allowed.is_feasible(places)
            assert weights @ scores[places] == pytest.approx(best, abs=1e-9)
            checked += 1
    assert checked > 3


@pytest.mark.parametrize("first", [1, 2, 6])
@pytest.mark.parametrize("more", [{}, {"at_least": 2}])
def test_few_candidates_hold_the_best_list(films, ranker, first, more, monkeypatch):
    """The reduction, and few of what it leaves with a proof for the rest, against all items in one program."""
    from formulations import solve
    from formulations.constraints.constrained_ranking import ConstrainedRanking

    monkeypatch.setattr("rankopt.collaborative.quotas.FIRST", first)
    admissible = Admissible(6).at_most(2, by="genre").at_most(1, documents={"genre": "War"}, positions=range(4))
    for count in more.values():
        admissible = admissible.at_least(count, documents={"genre": "War"}, positions=range(5))
    lists = ranker.recommend([1, 2, 3], k=6, constraints=admissible)
    for user in (1, 2, 3):
        seen = films.columns[films.bounds[user - 1] : films.bounds[user]]
        free = np.setdiff1d(np.arange(films.n_items), seen)
        scores = ranker.predict([(user, item) for item in films.items[free].tolist()])
        weights = 1 / np.log2(np.arange(2, 8))
        allowed = admissible.for_query({"genre": films.attributes["genre"][free]}, free.size)
        best = solve(ConstrainedRanking(np.outer(weights, scores - scores.min()), allowed))
        places = np.searchsorted(free, films.item_index(lists[user]))
        assert allowed.is_feasible(places)
        assert weights @ (scores[places] - scores.min()) == pytest.approx(best.value, rel=1e-9)
    assert lists.slowest[0] in (1, 2, 3)


def test_an_item_that_a_rule_calls_for_is_a_candidate():
    """If one of a stands, one of b must: it may have the lowest score of all."""
    genre = np.array([*"aaaaaccccccbb"], dtype=object)
    rules = Admissible(3).implies({"genre": "a"}, {"genre": "b"})
    found = ConstrainedRecommender.from_admissible(rules, {"genre": genre}, 13).best(np.arange(13.0, 0.0, -1.0), "ann")
    assert found.tolist() == [0, 1, 11]


def test_items_that_others_wait_for_are_candidates():
    """The best, a, wait for b, worse than all c, and b for d, the worst; where b costs too much, c are listed."""
    genre = np.array([*"aaaaaccccccbbd"], dtype=object)
    scores = np.arange(14.0, 0.0, -1.0) + 100.0 * (genre == "a")
    one = Admissible(3).precedes({"genre": "b"}, {"genre": "a"})
    two = Admissible(3).precedence_chain([{"genre": "d"}, {"genre": "b"}, {"genre": "a"}])
    for rules, dearer, listed in ((one, 0.0, [11, 0, 1]), (one, 1e3, [5, 6, 7]), (two, 0.0, [13, 11, 0])):
        found = ConstrainedRecommender.from_admissible(rules, {"genre": genre}, 14).best(
            scores - dearer * (genre == "b"), "ann"
        )
        assert found.tolist() == listed


@pytest.mark.filterwarnings("ignore:No item has")  # a drawn catalog may lack one
@pytest.mark.every(4)
@pytest.mark.parametrize("seed", range(25))
def test_lists_under_precedences_are_the_best_of_all_items(seed):
    """Beside quotas on genres that cross, hard and soft, items waiting for each other: against every list."""
    random = np.random.default_rng(seed)
    genre = np.empty(8, dtype=object)
    genre[:] = [tuple(g for g in GENRES if random.random() < 0.4) or None for _ in range(8)]
    new, scores = random.random(8) < 0.5, random.normal(size=8)
    rules = Admissible(3).precedes({"genre": "a"}, {"genre": "b"}, name="order").at_most(2, by="genre")
    rules = rules.precedes("new", {"genre": "c"}) if seed % 2 else rules.precedes({"genre": "b"}, "new", name="two")
    rules = rules.penalized("order", penalty=float(random.choice([0.0, 0.1, 1.0]))) if seed % 3 else rules
    stated = rules.for_query({"genre": genre, "new": new}, 8)
    weights = 1.0 / np.log2(np.arange(2.0, 5.0))
    lists = [np.array(order) for order in permutations(range(8), 3) if stated.is_feasible(order)]
    best = max(weights @ scores[order] - stated.charge(order) for order in lists)
    found = ConstrainedRecommender.from_admissible(rules, {"genre": genre, "new": new}, 8).best(scores, "ann")
    assert stated.is_feasible(found)
    assert weights @ scores[found] - stated.charge(found) == pytest.approx(best, abs=1e-9)


@pytest.mark.study
def test_short_lists_are_cut_where_the_rules_say_so(films, ranker):
    one = Admissible(12, on_infeasible="truncate").at_most(1, by="genre")
    assert 3 <= len(ranker.recommend([1], k=12, constraints=one)[1]) <= 7
    with pytest.raises(
        DataError, match=r"user 1 has no admissible ranking: .* 12 of 148 items.*Or shorten its ranking"
    ):
        ranker.recommend([1], k=12, constraints=Admissible(12).at_most(1, by="genre"))
    with pytest.raises(DataError, match="'site', which is missing"):
        ranker.recommend([1], constraints=Admissible(10).at_most(1, by="site"))


@pytest.mark.every(5)
@pytest.mark.parametrize("loss", ["regression", "nDCG@5", "ordinal"])
def test_folded_users_are_the_best_for_the_items(films, loss):
    train, new = films.select_users(slice(0, 200)), films.select_users(slice(200, 240), drop=True)
    ranker = CofiRanker(loss, reg=0.3, factors=3, tol=1e-4, max_iter=30)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker.fit(train)
    model = ranker.fold_in(new)
    assert model.proved.relative_gap <= 1e-3
    assert model.proved.bound <= model.proved.value + 1e-9 * abs(model.proved.value)
    assert np.isfinite(model.predict(new)).all()
    known = ranker.fold_in(train)  # users of training, for the final items: as good as those of training
    assert known.proved.relative_gap <= 1e-3
    random = np.random.default_rng(0)
    if loss == "regression":
        mu, lam = ranker.bias_reg_, ranker.lam_

        def cost(users, offsets):
            places = ranker._known().seen.item_index(new.items)[new.columns]
            left = new.values - ranker.item_bias_[places] - offsets[new.user_of()]
            left -= np.einsum("ij,ij->i", users[new.user_of()], ranker.item_factors_[places])
            return 0.5 * left @ left + 0.5 * lam * (users**2).sum() + 0.5 * mu * offsets @ offsets

        best = cost(model.factors.users, model.factors.user_offsets)
        assert best == pytest.approx(model.proved.value)
        for _ in range(20):
            moved = model.factors.users + 1e-3 * random.standard_normal(model.factors.users.shape)
            assert cost(moved, model.factors.user_offsets + 1e-3 * random.standard_normal(40)) >= best


def test_new_users_may_have_a_strength_of_their_own(films, ranker):
    new = films.select_users(slice(0, 20), drop=True)
    same, weak, none = (ranker.fold_in(new, reg=rho) for rho in (ranker.reg_, 0.05, 1e6))
    np.testing.assert_allclose(same.factors.users, ranker.fold_in(new).factors.users, rtol=1e-9)
    assert np.linalg.norm(weak.factors.users) > np.linalg.norm(same.factors.users)
    assert np.abs(none.factors.users).max() < 1e-3
    assert weak.proved.relative_gap <= 1e-3
    with pytest.raises(OptionError, match=r"reg must be a number >= 1e-100 .* got 0"):
        ranker.fold_in(new, reg=0)


@pytest.mark.filterwarnings("ignore:.*of items that the model does not know")
def test_a_folded_model_recommends_without_what_was_told(films, ranker):
    told = Ratings.from_arrays(["new"] * 4, [1, 2, 3, "a film nobody knows"], [5, 1, 4, 5])
    model = ranker.fold_in(told)
    items = model.recommend(k=1000)["new"]
    assert sorted(items) == films.items[3:].tolist()
    assert model.similar(5, 3) == ranker.similar(5, 3)
    nothing = ranker.fold_in(Ratings.from_arrays(["x"], ["a film nobody knows"], [5]))
    assert nothing.recommend(k=3)["x"] == ranker.recommend(["nobody"], k=3)["nobody"]
    assert "1 users, 160 items, 4 factors" in repr(model)


def test_similar_items_are_nearest_by_angle(films, ranker):
    factors = ranker.item_factors_
    found = ranker.similar(7, 5)
    unit = factors / np.linalg.norm(factors, axis=1, keepdims=True)
    cosine = unit @ unit[6]
    order = [j for j in np.argsort(-cosine, kind="stable") if j != 6][:5]
    assert [item for item, _ in found] == films.items[order].tolist()
    np.testing.assert_allclose([value for _, value in found], cosine[order], rtol=1e-9)
    with pytest.raises(DataError, match="item 'x' is unknown to the model"):
        ranker.similar("x")


def test_a_saved_ranker_recommends_as_before(tmp_path, films, ranker):
    ranker.save(tmp_path / "films.model")
    again = load_model(tmp_path / "films.model")
    rules = Admissible(5).at_most(1, by="genre")
    for options in ({}, {"constraints": rules}, {"popularity": 0.5}):
        first, second = (one.recommend([1, 2, "x"], k=5, **options) for one in (ranker, again))
        assert list(first) == list(second)
    again.seen_indices_ = again.seen_indices_[:-1]
    again._model_known = None
    with pytest.raises(ModelError, match="do not fit together"):
        again._check_loaded()


def test_frames_of_lists(ranker):
    pytest.importorskip("pandas")
    frame = ranker.recommend([1, 2], k=2).to_frame()
    assert frame["rank"].tolist() == [1, 2, 1, 2]
    assert frame.columns.tolist() == ["user", "rank", "item", "score"]
    assert repr(ranker.recommend([1, 2], k=3)) == "Recommendations(2 lists of 3 items)"
    assert repr(ranker.recommend([])) == "Recommendations(0 lists of 0 items)"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"users": "ann"}, "not a sequence of users"),
        ({"k": 0}, "k must be an integer >= 1; got 0"),
        ({"seen": "some"}, "'leave out', 'keep', or Ratings"),
        ({"k": 2.7}, "k must be an integer >= 1; got 2.7"),
        ({"popularity": float("nan")}, "popularity = nan"),
        ({"popularity": "x"}, "popularity = 'x'"),
        ({"popularity": 1e300}, "popularity = 1e"),
        ({"users": np.zeros((2, 2))}, "sequence of ids"),
        ({"users": [[1]]}, "not hashable"),
        ({"among": "film"}, "not a sequence of items"),
        ({"constraints": {"k": 3}}, "must be an Admissible instance"),
        ({"popularity": np.float32("inf")}, "popularity = "),
    ],
)
def test_what_makes_no_sense_is_refused(ranker, options, says):
    with pytest.raises(OptionError, match=says):
        ranker.recommend(**options)
    with pytest.raises(DataError, match="among names no item"):
        ranker.recommend([1], among=[])


def test_an_attribute_that_items_lack_comes_with_a_new_fit(films, ranker):
    rules = Admissible(3).at_most(1, by="year")
    says = r"the attribute 'year', which is missing \(there is 'genre', 'title'\); give the ratings .*with_attributes"
    for asked in (ranker, ranker.fold_in(films)):
        with pytest.raises(DataError, match=says):
            asked.recommend([1], constraints=rules)
    dated = films.with_attributes({"year": {item: item % 3 for item in films.items.tolist()}})
    assert len(CofiRanker(reg=0.9, factors=1).fit(dated).recommend([1], constraints=rules)) == 1


def test_rules_are_of_whole_lists(ranker):
    """The first three of the best six are no list of three under these rules: none is cut out of them."""
    rules = Admissible(6).at_least(2, documents={"genre": "War"}, positions=range(4, 6))
    with pytest.raises(OptionError, match=r"k = 3 differs from the list length 6.*Admissible\(3\)"):
        ranker.recommend([1], k=3, constraints=rules)
    with pytest.raises(OptionError, match="k = 10 differs"):
        ranker.recommend([1], k=10, constraints=rules)
    assert len(ranker.recommend([1], constraints=rules)[1]) == len(ranker.recommend([1], 6, constraints=rules)[1]) == 6
    assert len(ranker.recommend([1])[1]) == 10


def test_one_who_has_seen_everything_has_no_list_where_rules_ask_for_items(films, ranker):
    everything = Ratings.from_arrays(["all"] * films.n_items, films.items, np.ones(films.n_items))
    asking = Admissible(3).at_least(1, documents={"genre": "War"})
    with pytest.raises(DataError, match="user 'all' has no admissible list because no item is left"):
        ranker.recommend(["all"], seen=everything, constraints=asking)
    numbered = Ratings.from_arrays([9] * films.n_items, films.items, np.ones(films.n_items))
    for asked in ([9], [np.int64(9)], np.array([9]), list(np.array([9]))):
        with pytest.raises(DataError, match=r"^user 9 has no admissible list"):
            ranker.recommend(asked, seen=numbered, constraints=asking)
    for rules in (
        Admissible(3, on_infeasible="truncate").at_least(1, documents={"genre": "War"}),
        Admissible(3).at_most(1, by="genre"),
    ):
        assert ranker.recommend(["all"], seen=everything, constraints=rules)["all"] == []


@pytest.mark.filterwarnings("ignore:.*of items that the model does not know")
def test_what_was_seen_is_left_out_though_the_model_does_not_know_it(films, ranker):
    seen = Ratings.from_arrays([1, 1], ["new", "other"], [5, 5])
    assert sorted(ranker.recommend([1], among=[4, "new", "newer"], seen=seen)[1], key=str) == [4, "newer"]
    guest = ranker.fold_in(Ratings.from_arrays(["guest"] * 2, [3, "new"], [5, 4]))
    assert sorted(guest.recommend(among=[3, 4, "new", "newer"])["guest"], key=str) == [4, "newer"]


def test_nobody_is_asked_for(ranker):
    lists = ranker.recommend([])
    assert len(lists) == 0
    with pytest.raises(DataError, match="slowest needs at least one list"):
        assert lists.slowest


def test_an_item_is_named_once_and_a_number_of_neighbors_is_one(ranker):
    with pytest.raises(DataError, match="among names item 5 twice"):
        ranker.recommend([1], among=np.array([5, 6, 5]))
    for k in (2.7, -3, True):
        with pytest.raises(OptionError, match="k must be an integer >= 1"):
            ranker.similar(7, k)
    with pytest.raises(DataError, match="not hashable"):
        ranker.similar([7])


def test_ids_of_another_type_are_not_strangers(ranker):
    """NumPy writes 17 as "17" beside a word: no item of that name is known, and its prior would be a silent answer."""
    for ask in (
        lambda: ranker.predict(np.array([("u", 17)])), lambda: ranker.predict([(1, "17")]),
        lambda: ranker.recommend(["1", "2"]), lambda: ranker.recommend([1], among=["17"]), lambda: ranker.similar("17"),
        lambda: ranker.fold_in([("guest", "17")], [4]), lambda: ranker.score([("1", 2), ("1", 3)], [1, 2]),
        lambda: ranker.recommend([1], seen=Ratings.from_arrays([1], ["17"], [1])),
        lambda: ranker.recommend(["1"], seen=Ratings.from_arrays([1], [17], [1])),
    ):  # fmt: skip
        with pytest.raises(DataError, match=r"is text, but the known id is a number"):
            ask()
    words = CofiRanker(factors=1, reg=0.5).fit([("ann", "17"), ("ann", "18"), ("bob", "17")], [1, 2, 3])
    with pytest.raises(DataError, match="item 17 is a number, but the known id is text, '17'"):
        words.predict([("ann", 17)])
    assert words.predict(np.array([("ann", "17"), ("eve", "x")])).shape == (2,)


@pytest.mark.filterwarnings("ignore:.*of items that the model does not know")
@pytest.mark.parametrize("loss", ["regression", "ordinal"])
def test_folded_users_are_weighed_as_in_training(films, loss):
    """v_u = 2 at λ and μ is v_u = 1 at half of both; and so is every rating's weight of 2 in a regression."""
    ranker = CofiRanker(loss, lam=2.0, bias_reg=4.0, factors=3, tol=1e-8, max_iter=2, compute_bound=False)
    with pytest.warns(ConvergenceWarning):
        ranker.fit(films)
    items = films.items.tolist()
    rows = [("ann", items[3]), ("ann", items[1]), ("bob", items[9]), ("ann", "unheard"), ("bob", items[2])]
    values = [5.0, 1.0, 2.0, 3.0, 4.0]
    heavy = ranker.fold_in(rows, values, user_weight={"ann": 2.0, "bob": 2.0})
    half = CofiRanker(loss, bias_reg=2.0, tol=1e-8)
    for name in (
        "user_ids_",
        "item_ids_",
        "user_factors_",
        "item_factors_",
        "item_bias_",
        "user_bias_",
        "cold_start_bias_",
    ):
        setattr(half, name, getattr(ranker, name))
    for name in ("item_popularity_", "seen_indptr_", "seen_indices_", "item_attributes_"):
        setattr(half, name, getattr(ranker, name))
    half.lam_, half.reg_ = 1.0, ranker.reg_
    light = half.fold_in(rows, values)
    np.testing.assert_allclose(heavy.factors.users, light.factors.users, atol=1e-4)
    assert heavy.proved.value == pytest.approx(2 * light.proved.value, rel=1e-4)
    assert heavy.proved.bound <= heavy.proved.value * (1 + 1e-12)
    if loss == "ordinal":
        with pytest.raises(DataError, match="give user_weight"):
            ranker.fold_in(rows, values, sample_weight=np.ones(5))
        return
    by_rating = ranker.fold_in(rows, values, sample_weight=np.full(5, 2.0))
    np.testing.assert_allclose(by_rating.factors.users, heavy.factors.users, atol=1e-12)
    one = ranker.fold_in(rows, values, sample_weight=[1.0, 9.0, 1.0, 1.0, 1.0])
    assert one.predict([("ann", items[1])]) < ranker.fold_in(rows, values).predict([("ann", items[1])])
    assert one.proved.relative_gap < 1e-6


MISSING = [None, float("nan"), np.float64("nan"), np.datetime64("NaT")]


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("none", MISSING, ids=repr)
def test_what_is_no_id_in_training_is_none_where_it_is_asked_for(none, words):
    """A stranger has an id; a row without one is a fault of the data, and no stranger."""
    rows = [(0, 5), (0, 6), (1, 5), (1, 7)]
    known = [(f"u{user}", f"i{item}") for user, item in rows] if words else rows
    ranker = CofiRanker(reg=0.5, factors=1, max_iter=3, tol=0.5).fit(known, [1, 2, 3, 5])
    (user, item), stranger = known[0], "u9" if words else 9
    folded = ranker.fold_in([(stranger, item)], [4])
    for of, pair in (("user", (none, item)), ("item", (user, none))):
        pairs = [known[0], (stranger, stranger), pair]
        table = np.empty((3, 2), dtype=object)
        table[:] = pairs
        says = rf"The {of} of row 2 is (None|nan|NaT); every {{}} needs one, fill it in or drop the row\."
        with pytest.raises(DataError, match=says.format("rating")):
            Ratings.from_arrays(*zip(*pairs, strict=True), [1, 2, 3])
        for given in (pairs, table):
            for asked in (ranker, folded):
                with pytest.raises(DataError, match=says.format("pair")):
                    asked.predict(given)
    for asked in (ranker, folded):
        with pytest.raises(DataError, match=r"The user of row 2 is .*; every list needs one, fill it in or drop"):
            asked.recommend([user, stranger, none])
        with pytest.raises(DataError, match="The item of row 1 is "):
            asked.recommend([user], among=[item, none])
        assert np.isfinite(asked.predict([known[0], (stranger, stranger)])).all()
        assert len(asked.recommend([user, stranger, (1, 2), 0.5])) == 4


def test_columns_that_lack_an_id_are_refused(ranker):
    pandas = pytest.importorskip("pandas")
    for column in (pandas.array([1, None], dtype="Int64"), [1.0, float("nan")], pandas.array(["a", None])):
        frame = pandas.DataFrame({"user": column, "item": [1, 2]}, index=[7, 8])
        with pytest.raises(DataError, match="The user of row 1 is"):
            ranker.predict(frame)
        with pytest.raises(DataError, match="The user of row 1 is"):
            ranker.recommend(frame["user"])
    with pytest.raises(DataError, match="The user of row 1 is nan"):
        ranker.predict(np.array([(1, 2), (np.nan, 2)]))
    with pytest.raises(DataError, match="user of row 1 is masked"):
        ranker.recommend(np.ma.array([1, 2], mask=[False, True]))


def test_folded_users_are_the_best_for_the_items_that_were_found():
    """Five users and eight films, a hinge for each pair of different stars, against cvxpy."""
    ratings = few()
    ranker = CofiRanker("ordinal", factors=2, reg=0.3, tol=1e-8, max_iter=500).fit(ratings)
    folded = ranker.fold_in(ratings, reg=0.1)
    lam, costs = 0.1 * ranker.lam_max_, {"ours": 0.0, "trained": 0.0, "best": 0.0}
    for u in range(ratings.n_users):
        rows = slice(*ratings.bounds[u : u + 2].tolist())
        y, items = ratings.values[rows], ratings.columns[rows]
        x, b = ranker.item_factors_[items], ranker.item_bias_[items]
        worse, better = np.nonzero(y[:, None] < y[None, :])
        cost = (y[better] - y[worse]) / worse.size
        own = cvxpy.Variable(2)
        f = b + x @ own
        program = cost @ cvxpy.pos(1 + f[worse] - f[better]) + lam / 2 * cvxpy.sum_squares(own)
        costs["best"] += cvxpy.Problem(cvxpy.Minimize(program)).solve("CLARABEL")
        for name, factors in (("ours", folded.factors.users), ("trained", ranker.user_factors_)):
            own.value = factors[u]
            costs[name] += program.value
    assert costs["ours"] == pytest.approx(costs["best"], rel=1e-6)
    assert 0.0 <= folded.proved.relative_gap <= 1e-6
    assert folded.proved.bound <= costs["best"] * (1.0 + 1e-7)
    assert costs["trained"] > 1.001 * costs["best"]


@pytest.mark.parametrize("loss", ["regression", "ordinal", "nDCG@5", "preferences"])
def test_the_ratings_of_the_fit_folded_in_give_its_users(loss):
    """What is within g of the least of a sum that bends as (λ/2)‖U‖² does lies within √(2g/λ) of it."""
    ratings = tastes()
    ranker = CofiRanker(loss, factors=3, reg=0.5, tol=1e-6, max_iter=500).fit(ratings)
    folded, weaker = ranker.fold_in(ratings), ranker.fold_in(ratings, reg=0.2)
    open_ = ranker.certificate_.users_gap * ranker.certificate_.primal + 1e-6 * folded.proved.value
    away = np.linalg.norm(folded.factors.users - ranker.user_factors_)
    assert away <= 2 * np.sqrt(2 * open_ / ranker.lam_)
    offsets = np.linalg.norm(folded.factors.user_offsets - ranker.user_bias_)
    assert offsets <= 2 * np.sqrt(2 * open_ / 10.0)  # μ is 10
    assert np.linalg.norm(weaker.factors.users - ranker.user_factors_) > 10 * away
    assert np.linalg.norm(weaker.factors.users) > np.linalg.norm(ranker.user_factors_)


@pytest.mark.parametrize("bound", ["tie-aware", "nonconvex"])
def test_of_a_bound_that_is_not_convex_majorants_follow_each_other(bound):
    """J never rises from one to the next, and one alone ends above where they end."""
    ratings = tastes()
    kind = UserLoss.named("nDCG@5", bound, "shifted(0.25)")
    rated = kind.seen(EncodedRatings.from_ratings(ratings))
    blocks = kind.blocks(Penalties(0.1, 10.0, None).problem(rated).at_strength(0.02, 0.3), None)
    draws = np.random.default_rng(0)
    start = blocks.problem.without_factors()
    start = type(start)(np.zeros((40, 2)), draws.normal(size=(30, 2)), start.offsets, start.user_offsets)
    now = blocks.at(start)
    found = best_users(blocks, now, 1e-5)
    once = blocks.with_users(now, 1e-5)
    assert found.value < once.value < now.value
    again = best_users(blocks, found, 1e-5)
    assert again.value <= found.value
    assert found.value - again.value <= 1e-3 * found.value


@pytest.mark.parametrize("item_prior", ["mean", "means"])
def test_the_unit_of_the_ratings_does_not_change_a_list(films, item_prior):
    """Stars, a quarter of them, a thousand times, and shifted: the same preferences, hence the same lists."""
    rows = films.users[films.user_of()], films.items[films.columns]

    def lists(values, **options):
        ranker = CofiRanker(factors=4, reg=0.5, item_prior=item_prior, **options)
        ranker.fit(Ratings.from_arrays(*rows, values))
        return [tuple(found) for _, found in ranker.recommend(films.users[:60].tolist(), k=10)]

    stars = lists(films.values)
    for values in (films.values / 4, films.values * 1024, films.values + 64, films.values / 5):
        assert lists(values) == stars
    assert lists(films.values / 4, popularity_prior=0.025) == stars  # an explicit weight is in the unit of the ratings


@pytest.mark.parametrize(("loss", "power"), [("ordinal", 1.0), ("nDCG(gain='linear')@10", 0.0)])
@pytest.mark.parametrize("item_prior", ["mean", "means"])
def test_the_unit_of_the_ratings_scales_the_objective_as_its_costs(films, loss, power, item_prior):
    """Losses of orders: costs that are differences of ratings scale J; a normalized measure does not see the unit."""
    rows, tol = (films.users[films.user_of()], films.items[films.columns]), 1e-4

    def trained(unit):
        ranker = CofiRanker(loss, factors=2, reg=0.5, item_prior=item_prior, tol=tol, max_iter=30, compute_bound=False)
        return ranker.fit(Ratings.from_arrays(*rows, films.values * unit))

    stars = trained(1.0)
    for unit in (0.25, 1024.0):
        other = trained(unit)
        assert other.certificate_.value == pytest.approx(unit**power * stars.certificate_.value, rel=5e-3)
        assert other.lam_max_ == pytest.approx(unit**power * stars.lam_max_, rel=2e-2)  # of offsets to a gap of 1e-4


def test_ids_of_a_type_that_no_known_id_has_are_refused():
    """Numbers among text alone and texts of numbers among numbers alone cannot be known; other text is a new user."""
    words = CofiRanker(factors=1, reg=0.5).fit([("0017", "a"), ("0017", "b"), ("0018", "a")], [1, 2, 3])
    numbers = CofiRanker(factors=1, reg=0.5).fit([(17, 1), (17, 2), (18, 1)], [1, 2, 3])
    for call, message in (
        (lambda: words.recommend([17]), "user 17 is a number, but all known ids are text, such as '0017'"),
        (lambda: words.predict([("0017", 5)]), "item 5 is a number, but all known ids are text, such as 'a'"),
        (lambda: numbers.recommend(["99"]), "user '99' is text, but all known ids are numbers, such as 17"),
    ):
        with pytest.raises(DataError, match=message):
            call()
    assert len(numbers.recommend(["new"], 1)["new"]) == len(words.recommend(["17"], 1)["17"]) == 1


def test_folded_ratings_of_unknown_items_and_of_another_scale_are_counted(films):
    ranker = CofiRanker(factors=2, reg=0.5).fit(films)
    assert ranker.rating_range_.tolist() == [1, 5]
    with pytest.warns(UserWarning, match=" of 3 ratings are ") as caught:
        ranker.fold_in([("guest", 3), ("guest", 4), ("guest", 999)], [80, 5, 2])
    found = [str(one.message) for one in caught]
    assert found[0].startswith("1 of 3 ratings are of items that the model does not know, such as 999, and have no ")
    assert found[1].startswith("1 of 3 ratings are far outside the range of the training ratings, 1 to 5, such as 80;")
