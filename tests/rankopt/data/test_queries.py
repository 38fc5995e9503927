"""Queries group rows in any order and return values in that order; sparse indices are checked; fingerprints agree."""

import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import coo_array, csr_array, csr_matrix, random_array

from rankopt.data import Queries, QueryNormalizer, concatenate
from rankopt.data.canonical_order import canonical, fingerprints
from rankopt.errors import DataError
from rankopt.rankers import LargeMarginRanker, RegressionRanker
from rankopt.scorers.linear import linear_scores

IDS = [3, -1, "q", "3", (1, "b"), 2.5, frozenset({1})]
"""Query ids of many types; no two are equal."""


def data(m=4, n=12, d=3, seed=0, **more):
    """Rows in any order: features, grades 0 to 2 and a query each; every query has a document."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.concatenate([np.arange(m), rng.integers(0, m, n - m)]))
    return {
        "features": rng.normal(size=(n, d)),
        "relevance": rng.integers(0, 3, n).astype(float),
        "qid": [IDS[code] for code in codes],
        **more,
    }


def equal(one, other):
    """Whether two Queries hold the same, field by field, type by type."""
    for name in ("features", "rows", "offsets", "relevance", "input_order"):
        a, b = getattr(one, name), getattr(other, name)
        if (a is None) != (b is None):
            return False
        if a is not None:
            a, b = (x.toarray() if hasattr(x, "toarray") else x for x in (a, b))
            assert a.dtype == b.dtype
            assert_array_equal(a, b)
    for name in ("query_ids", "document_ids", "feature_names"):
        assert getattr(one, name) == getattr(other, name)
    assert list(one.attributes) == list(other.attributes)
    for name in one.attributes:
        assert_array_equal(one.attributes[name], other.attributes[name])
    return True


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(range(len(IDS))), min_size=1, max_size=30), st.booleans())
def test_rows_stay_in_order_and_queries_are_in_order_of_appearance(codes, sparse):
    n = len(codes)
    features = np.arange(2.0 * n).reshape(n, 2)
    queries = Queries.from_arrays(
        csr_array(features) if sparse else features,
        np.arange(n),
        qid=[IDS[code] for code in codes],
        documents=[f"d{row}" for row in range(n)],
        attributes={"site": codes},
    )
    assert queries.query_ids == tuple(dict.fromkeys(IDS[code] for code in codes))
    for q, name in enumerate(queries.query_ids):
        rows = [row for row in range(n) if IDS[codes[row]] == name]
        part = slice(queries.offsets[q], queries.offsets[q + 1])
        assert_array_equal(queries.rows[part], rows)
        grouped = queries.grouped()
        assert_array_equal(grouped.input_order[part], rows)
        assert_array_equal(grouped.relevance[part], rows)
        assert_array_equal(grouped.attributes["site"][part], [codes[row] for row in rows])
        assert grouped.document_ids[part] == tuple(f"d{row}" for row in rows)
        assert_array_equal(grouped.features.toarray() if sparse else grouped.features, features[grouped.input_order])
    assert_array_equal(queries.features.toarray() if sparse else queries.features, features)
    assert_array_equal(queries.relevance, np.arange(n))
    assert_array_equal(queries.to_input_order(queries.relevance), np.arange(n))
    assert queries.qid.tolist() == [IDS[code] for code in codes]
    assert (len(queries), queries.n_documents, queries.n_features) == (len(set(codes)), n, 2)
    assert [queries.query_of(queries.rows[at]) for at in queries.offsets[:-1]] == list(range(len(queries)))
    assert grouped.is_grouped
    assert queries.is_grouped == (queries.rows.tolist() == list(range(n)))


@pytest.mark.parametrize(
    "qid",
    [
        np.array([2, 1, 2, 1]),
        np.array([2.0, 1.0, 2.0, 1.0]),
        np.array(["b", "a", "b", "a"]),
        np.array([b"b", b"a", b"b", b"a"]),
        np.array(["b", 7, "b", 7], dtype=object),
        np.array(["2001-01-01", "1999-01-01"] * 2, dtype="datetime64[D]"),
        pd.Series(["b", "a", "b", "a"]),
        pd.Series(["b", "a", "b", "a"], dtype="category"),
        pd.Series([2, 1, 2, 1], dtype="Int64"),
        ("b", 7, "b", 7),
        iter(["b", "a", "b", "a"]),
    ],
    ids=lambda qid: type(qid).__name__ + str(getattr(qid, "dtype", "")),
)
def test_query_ids_of_any_kind(qid):
    queries = Queries.from_arrays(np.arange(4.0).reshape(4, 1), qid=qid)
    assert_array_equal(queries.rows, [0, 2, 1, 3])
    assert_array_equal(queries.offsets, [0, 2, 4])
    assert queries.qid.tolist() == [queries.query_ids[q] for q in (0, 1, 0, 1)]
    assert not any(isinstance(name, np.integer | np.floating | np.str_) for name in queries.query_ids)


def test_sizes_name_consecutive_queries():
    given_sizes = Queries.from_arrays(np.arange(6.0).reshape(6, 1), group=[1, 3, 2])
    assert equal(given_sizes, Queries.from_arrays(np.arange(6.0).reshape(6, 1), qid=[0, 1, 1, 1, 2, 2]))
    for group in ([1, 3], [1, 3, 3], [1, 0, 5], [-1, 7], [1.5, 4.5], [[6]], [], "6"):
        with pytest.raises(DataError, match="group"):
            Queries.from_arrays(np.zeros((6, 1)), group=group)


def test_exactly_one_way_to_say_the_queries():
    for ways in ({}, {"qid": [1, 1], "group": [2]}):
        with pytest.raises(DataError, match="exactly one"):
            Queries.from_arrays(np.zeros((2, 1)), **ways)


@pytest.mark.parametrize(
    ("qid", "message"),
    [
        ([1, None, 1], "qid of row 1 is None"),
        ([1, 1, float("nan")], "qid of row 2 is nan"),
        (np.array([np.nan, 1, 1]), "qid of row 0 is nan"),
        (pd.Series(["a", pd.NA, "a"], dtype="string"), "qid of row 1"),
        ([1, [2], 1], "row 1 is a list, which is not hashable"),
        ([1, 1], "2 entries but there are 3 rows"),
        (np.array([[1, 1, 1]]), "shape"),
        ("abc", "sequence of ids"),
        (7, "sequence of ids"),
    ],
)
def test_query_ids_that_cannot_be(qid, message):
    with pytest.raises(DataError, match=message):
        Queries.from_arrays(np.zeros((3, 1)), qid=qid)


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [
        (np.float64, np.float64),
        (np.float32, np.float32),
        (np.int32, np.float64),
        (np.float16, np.float64),
        (bool, np.float64),
    ],
)
def test_float32_is_kept_and_other_numbers_become_float64(dtype, kept):
    table = np.array([[1, 0], [0, 1], [1, 1]], dtype=dtype)
    assert Queries.from_arrays(table, qid=[1, 2, 1]).features.dtype == kept
    assert Queries.from_arrays(table.tolist(), [1, 0, 2], qid=[1, 2, 1]).relevance.dtype == np.float64


@pytest.mark.parametrize("kind", [csr_array, csr_matrix, coo_array])
def test_sparse_features_stay_sparse_and_canonical(kind):
    rows, columns, values = [0, 2, 0, 1, 0], [1, 0, 0, 2, 1], [1.0, 2.0, 3.0, 4.0, 5.0]
    given_table = kind((np.array(values, dtype=np.float32), (rows, columns)), shape=(3, 4))
    queries = Queries.from_arrays(given_table, qid=["b", "a", "b"])
    assert queries.features.has_canonical_format
    assert queries.features.format == "csr"
    assert queries.features.dtype == np.float32
    assert_array_equal(queries.to_input_order(queries.features.toarray()), given_table.toarray())
    assert not queries.features.data.flags.writeable


@pytest.mark.parametrize("sparse", [False, True])
def test_nothing_can_be_changed_from_outside_or_inside(sparse):
    features, relevance, site = np.ones((3, 2)), np.zeros(3), np.array(["a", "b", "c"])
    table = csr_array(features) if sparse else features
    queries = Queries.from_arrays(table, relevance, qid=[1, 1, 1], attributes={"site": site})
    (table.data if sparse else table)[:] = np.nan
    relevance[:], site[:] = -1, "z"
    stored = queries.features.data if sparse else queries.features
    assert_array_equal(stored, np.ones_like(stored))
    assert_array_equal(queries.relevance, np.zeros(3))
    assert_array_equal(queries.attributes["site"], ["a", "b", "c"])
    for array in (stored, queries.relevance, queries.offsets, queries.input_order, queries.attributes["site"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
    with pytest.raises(FrozenInstanceError):
        queries.relevance = None
    with pytest.raises(TypeError):
        queries.attributes["site"] = site


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("sparse", [False, True])
def test_features_that_are_not_finite_are_named(value, sparse):
    """Infinite ones when the queries are made, missing ones where they are refused."""
    features = np.arange(8.0).reshape(4, 2)
    features[2, 1] = value
    with pytest.raises(DataError, match=r"Row 2, query 'b', document 'z': feature column 1 \('bm25'\) is -?(nan|inf)"):
        RegressionRanker().fit(
            Queries.from_arrays(
                csr_array(features) if sparse else features,
                np.arange(4),
                qid=["a", "b", "b", "a"],
                documents=list("xyzw"),
                feature_names=["length", "bm25"],
            )
        )


def test_large_numbers_are_finite():
    assert Queries.from_arrays(np.full((3, 2), 1.7e308), group=[3]).n_documents == 3


@pytest.mark.parametrize("grade", [-1.0, np.nan, np.inf])
def test_grades_that_mean_nothing_are_named(grade):
    cure = "unjudged" if grade < 0 else "leave the document out"
    with pytest.raises(DataError, match=f"Row 1, query 8: the grade is {grade:g}.*{cure}"):
        Queries.from_arrays(np.zeros((3, 1)), [0, grade, 1], qid=[7, 8, 7])


def test_unjudged_documents_get_a_grade_or_go():
    features, relevance, qid = np.arange(6.0).reshape(6, 1), [1, -1, 2, -3, 0, -1], ["c", "a", "b", "b", "c", "a"]
    graded = Queries.from_arrays(features, relevance, qid=qid, unjudged=0.5)
    assert_array_equal(graded.relevance, [1, 0.5, 2, 0.5, 0, 0.5])
    kept = Queries.from_arrays(features, relevance, qid=qid, documents=range(6), unjudged="drop")
    assert kept.query_ids == ("c", "b")
    assert kept.document_ids == (0, 2, 4)
    assert_array_equal(kept.input_order, [0, 2, 4])
    assert_array_equal(kept.rows, [0, 2, 1])
    assert_array_equal(kept.features, [[0], [2], [4]])
    for unjudged in (-1, np.nan, "keep"):
        with pytest.raises(DataError, match="unjudged"):
            Queries.from_arrays(features, relevance, qid=qid, unjudged=unjudged)
    with pytest.raises(DataError, match="no document"):
        Queries.from_arrays(features, -np.ones(6), qid=qid, unjudged="drop")


def test_a_data_frame_names_its_features():
    frame = pd.DataFrame({"bm25": [1.0, 2.0], "length": [3, 4]}, index=[7, 5])
    queries = Queries.from_arrays(frame, pd.Series([0, 1], index=[5, 8]), qid=pd.Series(["b", "a"], index=[9, 9]))
    assert queries.feature_names == ("bm25", "length")
    assert_array_equal(queries.features, [[1, 3], [2, 4]])
    assert_array_equal(queries.relevance, [0, 1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": np.zeros(12)}, "shape"),
        ({"features": np.zeros((12, 0))}, "documents and features"),
        ({"features": [["a", "b"]] * 12}, "cannot be read as numbers"),
        ({"features": np.zeros((12, 2), dtype=complex)}, "complex"),
        ({"relevance": [1, 2]}, "relevance has shape"),
        ({"relevance": ["good"] * 12}, "relevance cannot be read"),
        ({"documents": ["x"]}, "documents has 1 entries"),
        ({"attributes": {"site": ["x"]}}, "site has shape"),
        ({"feature_names": ["x"]}, "feature_names has 1 names"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change, message):
    with pytest.raises(DataError, match=message):
        Queries.from_arrays(**data(**change))


def test_the_constructor_checks_what_it_is_given():
    features = np.zeros((3, 1))
    for offsets in ([0, 3, 2], [0, 0, 3], [1, 3], [0, 2], [0], [[0, 3]]):
        with pytest.raises(DataError, match="offsets"):
            Queries(features, offsets)
    with pytest.raises(DataError, match="query_ids"):
        Queries(features, [0, 1, 3], query_ids=("a", "a"))
    with pytest.raises(DataError, match="document_ids"):
        Queries(features, [0, 1, 3], document_ids=("a",))
    with pytest.raises(DataError, match="documents and features"):
        Queries(np.zeros((0, 2)), [0])
    assert Queries(features, [0, 1, 3]).query_ids == (0, 1)
    assert_array_equal(Queries(features, [0, 1, 3]).input_order, [0, 1, 2])


def full(**more):
    return Queries.from_arrays(
        **data(documents=range(12), attributes={"site": list("abcabcabcabc")}, feature_names=list("xyz"), **more)
    )


def test_select_takes_whole_queries():
    queries = full()
    chosen = queries.select([2, 0])
    assert chosen.query_ids == (queries.query_ids[2], queries.query_ids[0])
    rows = np.concatenate([queries.rows[slice(*queries.offsets[q : q + 2])] for q in (2, 0)])
    for name in ("features", "relevance", "input_order"):
        assert_array_equal(getattr(chosen, name), getattr(queries, name)[rows])
    assert chosen.document_ids == tuple(queries.document_ids[row] for row in rows)
    assert_array_equal(chosen.attributes["site"], queries.attributes["site"][rows])
    assert_array_equal(chosen.to_input_order(chosen.input_order), np.sort(chosen.input_order))
    assert equal(queries.select(np.array([True, False, True, False])), queries.select([0, 2]))
    assert equal(queries.select(slice(-2, None)), queries.select([2, 3]))
    assert equal(queries.select(-1), queries.select([3]))
    for wrong in ([], [0, 0], [4], np.zeros(4, dtype=bool), np.ones(3, dtype=bool), [0.5]):
        with pytest.raises(DataError, match="select"):
            queries.select(wrong)


def test_with_replaces_fields_and_checks_them():
    queries = full()
    assert equal(queries.replace(), queries)
    assert queries.replace(relevance=None).relevance is None
    with pytest.raises(DataError, match="grade is -1"):
        queries.replace(relevance=-np.ones(12))


@pytest.mark.parametrize("sparse", [False, True])
def test_copies_and_pickles_are_as_good(sparse):
    queries = full()
    queries = queries.replace(features=csr_array(queries.features)) if sparse else queries
    for twin in (pickle.loads(pickle.dumps(queries)), copy.deepcopy(queries), copy.copy(queries)):
        assert equal(twin, queries)
        assert not twin.relevance.flags.writeable
        assert not (twin.features.data if sparse else twin.features).flags.writeable


def test_repr_says_what_is_there():
    assert repr(full()).startswith("Queries(4 queries, 12 documents (")
    assert "3 features float64, grades 0: " in repr(full())
    assert "attributes site" in repr(full())
    assert "no grades" in repr(full(relevance=None))
    assert "grades 0 to 11" in repr(full(relevance=np.arange(12.0)))
    assert "sparse" in repr(full(features=csr_array((12, 3))))


def test_views_that_others_can_write_through_are_copied():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    table = np.ones((2, 2))
    view = table.view()
    view.setflags(write=False)
    for features, change in ((frame, lambda: frame.isetitem(0, 9.0)), (view, lambda: table.fill(9.0))):
        queries = Queries.from_arrays(features, group=[2])
        change()
        assert queries.features.max() < 9
    assert np.shares_memory(queries.features, Queries.from_arrays(queries.features, group=[2]).features)


@pytest.mark.parametrize("sparse", [False, True])
def test_parts_are_joined_in_turn(sparse):
    whole = data(m=6, n=24)
    last = [name in IDS[4:] for name in whole["qid"]]
    halves = []
    for keep in (False, True):
        rows = [row for row in range(24) if last[row] == keep]
        table = whole["features"][rows]
        halves.append(
            Queries.from_arrays(
                csr_array(table) if sparse and keep else table,
                whole["relevance"][rows],
                qid=[whole["qid"][row] for row in rows],
                documents=rows,
            )
        )
    joined = concatenate(halves)
    assert joined.query_ids == halves[0].query_ids + halves[1].query_ids
    order = np.array(joined.document_ids)
    table = joined.features.toarray() if sparse else joined.features
    assert_array_equal(table, whole["features"][order])
    assert_array_equal(joined.relevance, whole["relevance"][order])
    assert_array_equal(
        joined.to_input_order(order), [row for keep in (False, True) for row in range(24) if last[row] == keep]
    )
    assert equal(concatenate([joined]), joined)


def test_parts_that_do_not_belong_together_are_refused():
    one = Queries.from_arrays(np.zeros((2, 2)), [0, 1], qid=["a", "b"], attributes={"site": [1, 2]}, feature_names="xy")
    other = one.replace(query_ids=("c", "d"))
    assert len(concatenate([one, other.replace(feature_names=None)])) == 4
    assert concatenate([one, other]).feature_names == ("x", "y")
    for part, message in [
        (one, "Query 'a' is in part 0 and in part 1"),
        (other.replace(features=np.zeros((2, 3)), feature_names=None), "Part 1 has 3 features"),
        (other.replace(feature_names="yx"), "names its features differently"),
        (other.replace(relevance=None), "grades"),
        (other.replace(attributes={}), "attributes"),
    ]:
        with pytest.raises(DataError, match=message):
            concatenate([one, part])
    with pytest.raises(DataError, match="at least one Queries"):
        concatenate([])


def test_dropped_rows_leave_no_gap_where_parts_join():
    features, relevance = np.arange(4.0).reshape(4, 1), [1, -1, 0, 2]
    parts = [Queries.from_arrays(features, relevance, qid=[q] * 4, unjudged="drop") for q in "ab"]
    assert_array_equal(concatenate(parts).input_order, np.arange(6))


ROWS, COLUMNS = 40, 7
FORMATS = ["csr", "csc", "bsr", "coo", "lil", "dia", "dok"]
GRADES = np.arange(ROWS) % 3


def table(format="csr", seed=0):
    return random_array((ROWS, COLUMNS), density=0.3, format=format, rng=np.random.default_rng(seed))


def far_column(found):
    found.indices[5] = 1 << 28


def column_too_many(found):
    found.indices[-1] = COLUMNS


def negative_column(found):
    found.indices[0] = -1


def bounds_that_fall(found):
    found.indptr[4] = found.indptr[6]
    found.indptr[5] = 0


def bounds_beyond_the_entries(found):
    found.indptr[-1] = found.data.size + 1000


def bounds_that_begin_late(found):
    found.indptr[0] = 1


def too_few_bounds(found):
    found.indptr = found.indptr[:-3]


def too_few_columns(found):
    found.indices = found.indices[:-3]


def columns_that_are_no_numbers(found):
    found.indices = found.indices.astype(float)


def columns_in_a_square(found):
    found.indices = found.indices[: found.indices.size // 2 * 2].reshape(2, -1)


DAMAGE = [
    far_column,
    column_too_many,
    negative_column,
    bounds_that_fall,
    bounds_beyond_the_entries,
    bounds_that_begin_late,
    too_few_bounds,
    too_few_columns,
    columns_that_are_no_numbers,
    columns_in_a_square,
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_indices_are_refused_wherever_features_come_in(damage):
    ranker = RegressionRanker().fit(table(), GRADES)
    normalizer = QueryNormalizer("sum").fit(table())
    damage(damaged := table(seed=1))
    for taken in (
        lambda: Queries.from_arrays(damaged, GRADES, group=[ROWS]),
        lambda: Queries(damaged, np.array([0, ROWS])),
        lambda: LargeMarginRanker().fit(damaged, GRADES),
        lambda: RegressionRanker().fit(damaged, GRADES),
        lambda: ranker.predict(damaged),
        lambda: ranker.rank(damaged),
        lambda: ranker.score(damaged, GRADES),
        lambda: QueryNormalizer("sum").fit(damaged),
        lambda: normalizer.transform(damaged),
    ):
        with pytest.raises(DataError, match=r"Sparse features .* build the matrix anew"):
            taken()


@pytest.mark.parametrize("format", ["csr", "csc", "bsr"])
def test_the_error_names_the_place(format):
    damaged = table(format)
    damaged.indices[3] = 1 << 20
    with pytest.raises(DataError, match=rf"{1 << 20} in (row|column|row of blocks) \d+, but there are"):
        Queries.from_arrays(damaged, group=[ROWS])


@pytest.mark.parametrize("axis", ["row", "col"])
def test_coordinates_out_of_range_are_refused(axis):
    damaged = table("coo")
    getattr(damaged, axis)[2] = 1 << 28
    with pytest.raises(DataError, match="268435456 among their"):
        Queries.from_arrays(damaged, group=[ROWS])
    getattr(damaged, axis)[2] = -1
    with pytest.raises(DataError, match="-1 among their"):
        RegressionRanker().fit(damaged, GRADES)


def test_diagonals_without_numbers_are_refused():
    damaged = table("dia")
    damaged.offsets = np.append(damaged.offsets, [3, 4])
    with pytest.raises(DataError, match="diagonals"):
        Queries.from_arrays(damaged, group=[ROWS])


def test_a_list_of_lists_that_names_other_columns_is_refused():
    damaged = table("lil")
    damaged.rows[3] = [0, 1 << 20]
    damaged.data[3] = [1.0, 2.0]
    with pytest.raises((DataError, ValueError)):
        Queries.from_arrays(damaged, group=[ROWS])


@pytest.mark.parametrize("format", FORMATS)
def test_every_sound_format_gives_the_same_queries(format):
    whole = table().toarray()
    found = Queries.from_arrays(table().asformat(format), group=[ROWS])
    assert isinstance(found.features, csr_array)
    np.testing.assert_array_equal(found.features.toarray(), whole)
    scores = RegressionRanker().fit(table(), GRADES).predict(table().asformat(format))
    np.testing.assert_array_equal(scores, RegressionRanker().fit(table(), GRADES).predict(table()))


def test_indices_of_any_type_and_layout_are_read():
    plain, w = table(), np.arange(1.0, COLUMNS + 1)
    expected = linear_scores(plain, w)
    for kind in (np.uint8, np.uint64, np.int16, np.int64, ">i4"):
        other = table()
        other.indices = other.indices.astype(kind)
        np.testing.assert_array_equal(linear_scores(Queries.from_arrays(other, group=[ROWS]).features, w), expected)
    apart = table()
    apart.indices = np.repeat(apart.indices, 2)[::2]
    apart.data = np.repeat(apart.data, 3)[::3]
    ranker = RegressionRanker().fit(plain, GRADES)
    np.testing.assert_array_equal(ranker.predict(apart), ranker.predict(plain))


def test_an_empty_table_is_sound_and_words_are_no_features():
    assert Queries.from_arrays(csr_array((ROWS, COLUMNS)), group=[ROWS]).features.nnz == 0
    words = table()
    words.data = np.array(["word"] * words.data.size, dtype=object)
    with pytest.raises(DataError, match="cannot be read as numbers"):
        Queries.from_arrays(words, group=[ROWS])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_fingerprints_are_the_same(dtype, monkeypatch):
    random = np.random.default_rng(0)
    table = (random.normal(size=(50, 9)) * (random.random((50, 9)) < 0.4)).astype(dtype)
    table[7], table[8, 0] = 0.0, -0.0
    found = []
    for pays in (-1, 1 << 60):
        monkeypatch.setattr("formulations.compiled.PAYS", pays)
        found += [fingerprints(table), fingerprints(csr_matrix(table))]
    for other in found[1:]:
        assert np.array_equal(found[0], other)


@pytest.mark.parametrize("matrix", [np.asarray, csr_array])
def test_the_canonical_order_is_that_of_contents_that_differ_by_less_than_a_step(matrix):
    random = np.random.default_rng(0)
    features, grades = random.normal(size=(6, 5, 3)), random.integers(0, 3, (6, 5)).astype(float)
    features[[1, 3]], grades[[1, 3]] = features[[0, 2]], grades[[0, 2]]  # two queries twice
    features[4, 1:], grades[4, 1:] = features[4, 0], grades[4, 0]  # a document five times
    features[1, 0] += 1e-9
    features[4, 2:] += 1e-9 * np.arange(3)[:, None]

    def arranged(queries, documents):
        X = np.concatenate([features[q][documents] for q in queries])
        y = np.concatenate([grades[q][documents] for q in queries])
        found = canonical(Queries.from_arrays(matrix(X), y, group=[5] * 6), np.ones(6))
        return np.column_stack([X[found.rows], found.relevance])

    for _ in range(10):
        assert_array_equal(arranged(random.permutation(6), random.permutation(5)), arranged(np.arange(6), np.arange(5)))
