"""Normalization within queries does what its formulas say, in any order of rows, as a function and in a Pipeline."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, csr_matrix
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankopt.data import Queries, QueryNormalizer, normalize
from rankopt.errors import DataError, OptionError

METHODS = ["sum", "zscore", "minmax", "rank"]


@parametrize_with_checks([QueryNormalizer(method) for method in METHODS])
def test_scikit_learn_accepts_the_transformer(estimator, check):
    check(estimator)


def by_hand(features, qid, method):
    """The definition, one query and one feature at a time."""
    made = np.zeros(features.shape)
    for query in set(qid):
        rows = [row for row, name in enumerate(qid) if name == query]
        for j in range(features.shape[1]):
            x = features[rows, j].astype(float)
            if x.min() < x.max():
                made[rows, j] = {
                    "sum": lambda x: x / np.abs(x).sum(),
                    "zscore": lambda x: (x - x.mean()) / x.std(),
                    "minmax": lambda x: (x - x.min()) / (x.max() - x.min()),
                    "rank": lambda x: np.array([((x < one).sum() - (x > one).sum()) / x.size for one in x]),
                }[method](x)
    return made


@pytest.fixture
def rows():
    """Shuffled rows of unequal queries, one of a single document, some features constant or zero in some queries."""
    rng = np.random.default_rng(0)
    qid = rng.permutation(["a"] * 7 + ["b"] * 4 + ["c"] * 9 + ["d"]).tolist()
    features = rng.normal(size=(len(qid), 5)) * [1, 1e-3, 1e6, 1, 1]
    features[:, 3] = 0.1
    features[[row for row, name in enumerate(qid) if name == "a"], 4] = 0
    features[3, 0] = 0
    return features, qid


@pytest.mark.parametrize("method", METHODS)
def test_the_definitions_hold_in_any_order_of_rows(rows, method):
    features, qid = rows
    expected = by_hand(features, qid, method)
    made = QueryNormalizer(method).fit(features, qid=qid).transform(features, qid=qid)
    assert_allclose(made, expected, rtol=1e-9, atol=1e-12)
    queries = normalize(Queries.from_arrays(features, qid=qid, documents=range(21), attributes={"site": qid}), method)
    assert_array_equal(queries.to_input_order(queries.features), made)
    assert_array_equal(queries.to_input_order(queries.document_ids), range(21))
    assert list(queries.attributes) == ["site"]
    order = np.random.default_rng(1).permutation(21)
    shuffled = QueryNormalizer(method).fit_transform(features[order], qid=[qid[row] for row in order])
    assert_array_equal(shuffled, made[order])


@pytest.mark.parametrize("method", METHODS)
def test_scales_do_not_matter(rows, method):
    features, qid = rows
    base = QueryNormalizer(method).fit_transform(features, qid=qid)
    for scale in (1e-290, 1e-9, 2.0, 1e290):
        assert_allclose(QueryNormalizer(method).fit_transform(features * scale, qid=qid), base, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_float32_stays_float32_and_is_computed_in_float64(rows, method):
    features, qid = rows
    single = features.astype(np.float32)
    made = QueryNormalizer(method).fit_transform(single, qid=qid)
    assert made.dtype == np.float32
    assert_array_equal(made, by_hand(single, qid, method).astype(np.float32))
    assert normalize(Queries.from_arrays(single, qid=qid), method).features.dtype == np.float32


@pytest.mark.parametrize("kind", [csr_array, csr_matrix])
def test_sparse_features_are_shared_out_and_stay_sparse(rows, kind):
    features, qid = rows
    features = np.where(np.abs(features) < np.quantile(np.abs(features), 0.4), 0, features)
    made = QueryNormalizer("sum").fit_transform(kind(features), qid=qid)
    assert isinstance(made, kind)
    assert_allclose(made.toarray(), by_hand(features, qid, "sum"), rtol=1e-12)
    queries = normalize(Queries.from_arrays(kind(features), qid=qid), "sum")
    assert_allclose(queries.to_input_order(queries.features.toarray()), made.toarray(), rtol=1e-12)
    whole = QueryNormalizer("sum").fit(kind(features))
    assert_allclose(whole.transform(kind(features)).toarray(), by_hand(features, [0] * 21, "sum"), rtol=1e-12)
    assert normalize(Queries.from_arrays(kind((21, 3)), qid=qid), "sum").features.nnz == 0


@pytest.mark.parametrize("method", ["zscore", "minmax", "rank"])
def test_sparse_features_cannot_be_shifted(method):
    table = csr_array(np.eye(3))
    for action in (
        lambda: QueryNormalizer(method).fit(table, qid=[1, 1, 2]),
        lambda: normalize(Queries.from_arrays(table, qid=[1, 1, 2]), method),
    ):
        with pytest.raises(DataError, match=r"Sparse features cannot be normalized.*method='sum'.*dense"):
            action()


def test_unknown_methods_and_numbers_too_large():
    with pytest.raises(OptionError, match="'sum', 'zscore', 'minmax', 'rank'"):
        QueryNormalizer("max").fit(np.eye(3))
    for method in ("sum", "zscore", "minmax"):
        with pytest.raises(DataError, match="Feature column 1 has numbers too large"):
            normalize(Queries.from_arrays([[0, 1.7e308], [0, 1.6e308], [0, -1.7e308]], group=[3]), method)


def test_without_qid_all_rows_are_the_query_of_fit():
    train, test = np.array([[1.0], [3.0]]), np.array([[5.0], [1.0]])
    one = QueryNormalizer("minmax").fit(train)
    assert_array_equal(one.transform(test), [[2], [0]])
    assert_array_equal(one.transform(test, qid=["a", "a"]), [[1], [0]])
    several = QueryNormalizer("minmax").fit(np.vstack([train, test]), qid=[1, 1, 2, 2])
    with pytest.raises(DataError, match=r"`qid` is missing.*enable_metadata_routing=True"):
        several.transform(test)
    with pytest.raises(DataError, match="1 entries but there are 2 rows"):
        several.transform(test, qid=[1])


def test_ranks_know_order_alone_and_average_ties(rows):
    features, qid = rows
    base = QueryNormalizer("rank").fit_transform(features, qid=qid)
    for rising in (np.cbrt, lambda x: x * 1e300, np.arctan, lambda x: np.float64(7) * x):
        same = np.unique(features[:, 0]).size == np.unique(rising(features[:, 0])).size
        assert same
        assert_array_equal(QueryNormalizer("rank").fit_transform(rising(features[:, :1]), qid=qid), base[:, :1])
    assert_array_equal(QueryNormalizer("rank").fit_transform(-features, qid=qid), -base)
    ties = np.array([[5.0, 0.0], [1.0, -0.0], [5.0, 0.0], [9.0, 1.0]])
    assert_array_equal(
        QueryNormalizer("rank").fit_transform(ties, qid=list("aaaa")),
        [[0, -0.25], [-0.75, -0.25], [0, -0.25], [0.75, 0.75]],
    )
    n = 101
    drawn = QueryNormalizer("rank").fit_transform(np.random.default_rng(0).normal(size=(n, 1)), qid=["q"] * n)
    assert_allclose([drawn.mean(), drawn.std()], [0, np.sqrt((1 - 1 / n**2) / 3)], atol=1e-15)


def test_new_rows_are_ranked_among_those_of_fit():
    one = QueryNormalizer("rank").fit([[1.0], [3.0], [3.0], [4.0]])
    assert_array_equal(one.transform([[0.0], [1.0], [2.0], [3.0], [9.0]]).ravel(), [-1, -0.75, -0.5, 0, 1])
    assert_array_equal(one.transform([[1.0], [3.0], [3.0], [4.0]]).ravel(), [-0.75, 0, 0, 0.75])


def test_names_of_features_pass_through():
    frame = pd.DataFrame({"bm25": [1.0, 2.0], "length": [3.0, 5.0]})
    made = QueryNormalizer("minmax").set_output(transform="pandas").fit_transform(frame, qid=["a", "a"])
    assert list(made.columns) == ["bm25", "length"]
    assert_array_equal(made, [[0, 0], [1, 1]])


def test_qid_reaches_the_step_of_a_pipeline(rows):
    features, qid = rows
    grades = np.arange(21) % 3
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(QueryNormalizer("zscore"), Ridge()).fit(features, grades, qid=qid)
        scores = model.predict(features, qid=qid)
    expected = Ridge().fit(by_hand(features, qid, "zscore"), grades).predict(by_hand(features, qid, "zscore"))
    assert_allclose(scores, expected)


def test_letor_normalized_its_features_this_way(data_folder):
    from rankopt.data import concatenate, read_svmlight

    folder = data_folder / "letor3-ohsumed"
    raw = concatenate([read_svmlight(folder / f"Feature-min/S{part}.txt.gz") for part in (1, 2, 3)])
    published = read_svmlight(folder / "QueryLevelNorm/Fold1/train.txt.gz")
    made = normalize(raw, "minmax")
    place = {(made.query_ids[made.query_of(row)], name): row for row, name in enumerate(made.document_ids)}
    rows = [
        place[published.query_ids[published.query_of(row)], name] for row, name in enumerate(published.document_ids)
    ]
    assert_allclose(made.features[rows], published.features, atol=2e-6)
