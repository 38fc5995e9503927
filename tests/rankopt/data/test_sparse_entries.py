"""Sparse features whose indices lie elsewhere are refused before compiled code, ours or scipy's, reads them."""

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from rankopt.data import Queries, QueryNormalizer
from rankopt.errors import DataError
from rankopt.rankers import LargeMarginRanker, RegressionRanker
from rankopt.scorers.linear import linear_scores

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
