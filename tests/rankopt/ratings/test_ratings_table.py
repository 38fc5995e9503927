"""Ratings are what their triplets say, in whatever order and of whatever type they come."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sparse

from rankopt.errors import DataError
from rankopt.rankers import CofiRanker, load_model
from rankopt.ratings import Ratings


def triplets(seed=0, n=400, users=30, items=40):
    random = np.random.default_rng(seed)
    pairs = random.choice(users * items, n, replace=False)
    return pairs // items, pairs % items, random.integers(0, 6, n).astype(float)


NAMINGS = {
    "numbers": lambda codes: codes * 10**13 - 7,
    "near numbers": lambda codes: codes - 7,
    "strings": lambda codes: [f"u{code}" for code in codes],
    "fixed strings": lambda codes: np.array([f"u{code}" for code in codes]),
    "tuples": lambda codes: [("u", int(code)) for code in codes],
    "floats": lambda codes: codes + 0.5,
    "mixed": lambda codes: [int(code) if code % 2 else f"u{code}" for code in codes],
    "huge": lambda codes: [2**70 + int(code) for code in codes],
}


LABELS = {
    "lists": lambda *labels: [*labels],
    "sets": lambda *labels: {*labels},
    "frozen sets": lambda *labels: frozenset(labels),
    "arrays": lambda *labels: np.array(labels),
}


@pytest.mark.parametrize("naming", NAMINGS)
def test_the_table_holds_each_triplet_once_in_canonical_order(naming):
    user, item, rating = triplets()
    named = list(NAMINGS[naming](user))
    ratings = Ratings.from_arrays(NAMINGS[naming](user), item, rating)
    users = ratings.users.tolist()
    found = {
        (users[u], ratings.items[column]): value
        for u, column, value in zip(ratings.user_of(), ratings.columns, ratings.values, strict=True)
    }
    assert found == {(u, i): r for u, i, r in zip(named, item, rating, strict=True)}
    assert (np.diff(ratings.columns)[np.diff(ratings.user_of()) == 0] > 0).all()
    assert ratings.user_index(named).tolist() == [users.index(one) for one in named]
    assert ratings.user_index(["nobody", 10**15, 1e9 + 0.25, None, (1,)]).tolist() == [-1] * 5
    shuffle = np.random.default_rng(1).permutation(user.size)
    mixed = Ratings.from_arrays([named[i] for i in shuffle], item[shuffle], rating[shuffle])
    assert mixed == ratings
    assert mixed.fingerprint == ratings.fingerprint
    assert pickle.loads(pickle.dumps(ratings)) == ratings


def test_a_sparse_matrix_of_any_format_is_read_with_its_stored_zeros():
    user, item, rating = triplets()
    expected = Ratings.from_arrays(user, item, rating, users=range(31), items=range(41))
    matrix = sparse.coo_array((rating, (user, item)), shape=(31, 41))
    assert (rating == 0).any()
    for kind in ("coo", "csr", "csc"):
        assert Ratings.from_csr(matrix.asformat(kind)) == expected
    assert Ratings.from_csr(expected.to_csr()) == expected
    words = [f"u{i:02d}" for i in range(31)]
    named = Ratings.from_csr(matrix, users=words)
    assert named == Ratings.from_arrays([words[u] for u in user], item, rating, users=words, items=range(41))
    backwards = Ratings.from_csr(matrix, users=words[::-1])
    assert backwards == Ratings.from_arrays([words[30 - u] for u in user], item, rating, users=words, items=range(41))


@pytest.mark.parametrize("kind", ["coo", "csr", "csc"])
def test_an_entry_stored_twice_is_refused_where_scipy_would_add(kind):
    parts = {
        "coo": lambda: sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2)),
        "csr": lambda: sparse.csr_array(([1.0, 2.0], [1, 1], [0, 2, 2]), shape=(2, 2)),
        "csc": lambda: sparse.csc_array(([1.0, 2.0], [0, 0], [0, 0, 2]), shape=(2, 2)),
    }
    with pytest.raises(DataError, match=r"User 0 rates item 1 twice, in rows 0 and 1"):
        Ratings.from_csr(parts[kind]())


def test_some_of_the_ratings_stand_over_the_same_ids_or_their_own():
    ratings = Ratings.from_arrays(*triplets(), attributes={"kind": {i: f"k{i % 3}" for i in range(40)}})
    mask = np.random.default_rng(2).random(len(ratings)) < 0.05
    kept, dropped = ratings.select(mask), ratings.select(mask, drop=True)
    assert (kept.n_users, kept.n_items, len(kept)) == (30, 40, mask.sum())
    users, items = ratings.users[ratings.user_of()[mask]], ratings.items[ratings.columns[mask]]
    kinds = {int(i): f"k{i % 3}" for i in items}
    assert dropped == Ratings.from_arrays(users, items, ratings.values[mask], attributes={"kind": kinds})
    some = ratings.select_users([3, 5])
    assert np.unique(some.user_of()).tolist() == [3, 5]
    with pytest.raises(DataError, match="cannot pick from 30 users"):
        ratings.select_users([30])


def test_it_cannot_be_changed():
    user, item, rating = triplets()
    ratings = Ratings.from_arrays(user, item, rating, attributes={"kind": dict.fromkeys(range(40), 1.0)})
    rating[:] = 0
    for array in (ratings.values, ratings.columns, ratings.bounds, ratings.users, ratings.counts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 9
    with pytest.raises(TypeError):
        ratings.attributes["kind"] = None
    assert ratings.values.any()


@pytest.mark.parametrize(
    ("triplet", "says"),
    [
        (([1, 2, 1], [1, 1, 1], [1, 2, 3]), "User 1 rates item 1 twice, in rows 0 and 2"),
        ((["a", None], [1, 1], [1, 2]), "The user of row 1 is None"),
        (([1.0, np.nan], [1, 1], [1, 2]), "The user of row 1 is nan"),
        (([1, 2], [1, 1], [1, np.inf]), "Row 1, user 2, item 1: the rating is inf"),
        (([1, 2], [1, 1, 3], [1, 2]), "user has 2 entries but item has 3"),
        (([1, 2], [1, 1], [1, 2, 3]), "rating has shape"),
        (([1, 2], [1, 1], ["good", "bad"]), "rating cannot be read"),
        (([1, [2]], [1, 1], [1, 2]), "The user of row 1 is a list, which is not hashable"),
        (([], [], []), "there are no ratings"),
        (("ab", [1, 1], [1, 2]), "user cannot be 'ab'"),
        (([[1, 2]], [1, 1], [1, 2]), "not hashable"),
    ],
)
def test_what_cannot_be_a_table_is_refused_by_name(triplet, says):
    with pytest.raises(DataError, match=says):
        Ratings.from_arrays(*triplet)


def test_a_universe_must_hold_what_is_rated_and_each_id_once():
    with pytest.raises(DataError, match="row 1 is of user 'b', which users= lacks"):
        Ratings.from_arrays(["a", "b"], [1, 1], [1, 2], users=["a"])
    with pytest.raises(DataError, match="list each once"):
        Ratings.from_arrays(["a"], [1], [1], users=["a", "a"])
    listed = Ratings.from_arrays(["a"], [7], [1], items=[9, 7, 8], attributes={"kind": ["nine", "seven", "eight"]})
    assert listed.attributes["kind"].tolist() == ["seven", "eight", "nine"]


def test_ids_that_are_sets_stand_in_one_order():
    ids = [frozenset(one) for one in ("ab", "bc", "ca", "abc", "d", "", "axyz")]
    ids += [frozenset([frozenset("ab"), 1]), frozenset([("b", frozenset("ca")), 2])]
    draws, seen = np.random.default_rng(0), set()
    for _ in range(30):
        again = [ids[i] for i in draws.permutation(len(ids))]
        again = [frozenset(sorted(one, key=repr, reverse=bool(draws.integers(2)))) for one in again]
        seen.add(tuple(Ratings.from_arrays(again, ["film"] * len(ids), np.ones(len(ids))).users.tolist()))
    assert len(seen) == 1


def test_ids_that_are_ordered_by_their_type_stay_in_that_order():
    days = [(2, "b"), (1, "c"), (10, "a")]
    assert Ratings.from_arrays(days, [0, 0, 0], [1, 2, 3]).users.tolist() == sorted(days)


@pytest.mark.parametrize("kind", [np.uint64, np.int64, object])
def test_large_whole_numbers_are_told_apart(kind):
    ratings = Ratings.from_arrays([2**53, 2**53 + 1, 2**53 + 3, 2**62], [0, 0, 0, 0], [1, 2, 3, 4])
    asked = np.array([2**53, 2**53 + 1, 2**53 + 2, 2**53 + 3, 2**62, 2**62 + 1], dtype=kind)
    assert ratings.user_index(asked).tolist() == [0, 1, -1, 2, 3, -1]
    assert ratings.user_index(np.array([2**63, 2**53, 2**64 - 1], dtype=np.uint64)).tolist() == [-1, 0, -1]


def test_frames_are_read_by_the_usual_names():
    pandas = pytest.importorskip("pandas")
    user, item, rating = triplets()
    expected = Ratings.from_arrays(user, item, rating)
    for names in (("user", "item"), ("userID", "itemID"), ("user_id", "movie_id"), ("userId", "movieId")):
        frame = pandas.DataFrame({names[0]: user, names[1]: item, "rating": rating, "timestamp": 0})
        assert Ratings.from_frame(frame) == expected
    frame = pandas.DataFrame({"who": user, "item": item, "movie": item, "rating": rating})
    with pytest.raises(DataError, match=r"no unique column of the user \(none has a usual name"):
        Ratings.from_frame(frame)
    with pytest.raises(DataError, match="'item', 'movie' would all do"):
        Ratings.from_frame(frame, user="who")
    assert Ratings.from_frame(frame, user="who", item="movie") == expected
    missing = pandas.DataFrame({"user": pandas.array([1, None], dtype="Int64"), "item": [1, 2], "rating": [1, 2]})
    with pytest.raises(DataError, match="The user of row 1 is"):
        Ratings.from_frame(missing)


def test_frames_of_polars_are_read():
    polars = pytest.importorskip("polars")
    user, item, rating = triplets()
    frame = polars.DataFrame({"user": [f"u{u}" for u in user], "item": item, "rating": rating})
    assert Ratings.from_frame(frame) == Ratings.from_arrays([f"u{u}" for u in user], item, rating)


def test_the_summary_fits_ten_lines_whatever_the_table():
    user, item, rating = triplets()
    many = {f"a rather long name of attribute {i}": dict.fromkeys(range(40), "x" * 1000) for i in range(50)}
    said = repr(Ratings.from_arrays(user, item, rating + np.arange(400) / 7, attributes=many))
    assert len(said) < 10 * 80
    assert "30 users" in said
    assert "and 44 more" in said


def test_what_is_masked_is_no_number_and_no_id():
    masked = np.ma.array([1, 2], mask=[False, True])
    for given in ((masked, [1, 2], [1.0, 2.0]), ([1, 2], masked, [1.0, 2.0]), ([1, 2], [1, 2], masked)):
        with pytest.raises(DataError, match="of row 1 is masked"):
            Ratings.from_arrays(*given)
    assert Ratings.from_arrays(np.ma.array([1, 2]), [1, 2], np.ma.array([1.0, 2.0])).n_ratings == 2


def test_attributes_of_ids_of_another_type_are_refused():
    ratings = Ratings.from_arrays([1, 2], [1, 2], [1.0, 2.0])
    with pytest.raises(DataError, match="item of attribute 'genre', '1' is text, but the known id is a number"):
        ratings.with_attributes({"genre": {"1": "x"}})
    assert ratings.with_attributes({"genre": {1: "x", 77: "y"}}).attributes["genre"].tolist() == ["x", None]
    for wrong in ("genre", ["genre"]):
        with pytest.raises(DataError, match="which has no names"):
            ratings.with_attributes(wrong)


@pytest.mark.parametrize("of", LABELS.values(), ids=LABELS)
def test_labels_that_hold_at_once_are_tuples_whatever_they_came_as(of, tmp_path):
    """Nobody can write into an immutable table, and what is saved has one order."""
    words = ("Drama", "War"), ("Comedy", "Drama"), ("Comedy", "War")
    given = [of(*some) for some in words]
    named = Ratings.from_arrays(
        [1, 1, 2], [7, 8, 9], [1, 2, 3], attributes={"genre": dict(zip((7, 8, 9), given, strict=True))}
    )
    listed = Ratings.from_arrays([1, 1, 2], [7, 8, 9], [1, 2, 3], items=[7, 8, 9], attributes={"genre": given})
    assert named.attributes["genre"].tolist() == listed.attributes["genre"].tolist() == [*words]
    parts = named.users, named.items, named.bounds, named.columns, named.values
    assert Ratings(*parts, {"genre": given}) == named == listed
    assert named == Ratings.from_arrays(
        [1, 1, 2], [7, 8, 9], [1, 2, 3], items=[7, 8, 9], attributes={"genre": [*words]}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        CofiRanker(reg=0.5, factors=1).fit(named).save(tmp_path / "model")
    assert load_model(tmp_path / "model").item_attributes_["genre"] == [*words]


def test_labels_of_a_set_have_one_order_whatever_their_types():
    ratings = Ratings.from_arrays([1], [7], [1])
    known = ratings.with_attributes({"kind": {7: {"b", 2, "a", frozenset("xyz"), (1, "c")}}})
    assert known.attributes["kind"].tolist() == [(frozenset("xyz"), 2, "a", "b", (1, "c"))]
    for wrong in ({"a": 1}, (["a"],), [["a"], ["b"]], bytearray(b"a")):
        with pytest.raises(DataError, match=r"attribute 'kind', entry 0: .* is no label .*; pass a label, or a tuple"):
            ratings.with_attributes({"kind": {7: wrong}})


COMPLEX = {
    "array": np.array([1j, 2 + 1j]),
    "objects": np.array([np.complex128(1j), 2.0], dtype=object),
    "list": [1, 2 + 1j],
    "scalars": [np.complex64(1j), np.complex64(2)],
}
DATES = {
    "dates": np.array(["2020-01-01", "2021-01-01"], "M8[ns]"),
    "durations": np.array([1, 2], "m8[s]"),
    "objects": np.array([np.datetime64("2020-01-01"), 2.0], dtype=object),
    "scalars": [np.timedelta64(1, "D"), np.timedelta64(2, "D")],
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("given", "says"),
    [(one, "rating cannot be complex numbers .*; pass their real parts") for one in COMPLEX.values()]
    + [(one, "rating cannot be dates or durations.*; pass the column of numbers") for one in DATES.values()],
    ids=[*(f"complex {one}" for one in COMPLEX), *DATES],
)
def test_what_is_no_real_number_is_no_rating(given, says):
    with pytest.raises(DataError, match=says):
        Ratings.from_arrays([1, 2], ["a", "a"], given)


@pytest.mark.filterwarnings("error")
def test_columns_and_entries_that_are_no_real_numbers_are_refused():
    pandas = pytest.importorskip("pandas")
    for given, what in ((COMPLEX["array"], "complex"), (DATES["dates"], "dates"), (DATES["durations"], "durations")):
        with pytest.raises(DataError, match=f"rating cannot be .*{what}"):
            Ratings.from_frame(pandas.DataFrame({"user": [1, 2], "item": [1, 1], "rating": given}))
        parts = Ratings.from_arrays([1, 2], [1, 1], [1, 2])
        with pytest.raises(DataError, match=f"values cannot be .*{what}"):
            Ratings(parts.users, parts.items, parts.bounds, parts.columns, given)
    with pytest.raises(DataError, match="rating cannot be complex"):
        Ratings.from_csr(sparse.csr_array(np.array([[1j, 0], [0, 2]])))
