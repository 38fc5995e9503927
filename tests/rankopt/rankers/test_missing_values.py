"""Missing values and categories: what is filled in and by what, for every order of rows and every container."""

import re
import warnings

import numpy as np
import onnxruntime
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems.command import called
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from rankopt.data import Queries, open_queries, read_svmlight, read_table, save_queries, write_svmlight
from rankopt.data.normalization import METHODS, normalized_rows
from rankopt.errors import ColumnWarning, DataError, ModelError, OptionError
from rankopt.persistence.onnx import to_onnx
from rankopt.rankers import (
    BoostedRanker,
    DirectRanker,
    LargeMarginRanker,
    LossRanker,
    MatchingRanker,
    PairwiseRanker,
    RegressionRanker,
    SmoothRanker,
    load_model,
)

LINEAR = (LargeMarginRanker, LossRanker, PairwiseRanker, SmoothRanker, DirectRanker, MatchingRanker, RegressionRanker)

rng = np.random.default_rng(0)
N = 120
NAMES = ["x0", "x1", "x2", "x3"]  # of an array
QID = rng.permutation(np.arange(N) % 12)
FULL = rng.normal(size=(N, 4))
Y = np.clip(np.rint(FULL[:, 0] + FULL[:, 1] + 1), 0, 3)
HOLED = np.where(rng.random((N, 4)) < 0.25, np.nan, FULL)
HOLED[:, 3] = FULL[:, 3]
HOLED[QID == 5, 1] = np.nan  # a query without a value
NEW = np.where(rng.random((N, 4)) < 0.3, np.nan, FULL)  # lacks values of the last feature too


def fitted(ranker, X=HOLED, y=Y, qid=QID):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ranker.fit(X, y, qid=qid)


def by_hand(X, train, qid):
    """The features with query means (training means where a query has none), then indicators of the first three."""
    made = X.copy()
    for query in np.unique(qid):
        for j in range(X.shape[1]):
            own = X[qid == query, j]
            present = own[~np.isnan(own)]
            mean = present.mean() if present.size else np.nanmean(train[:, j])
            made[qid == query, j] = np.where(np.isnan(own), mean, own)
    return np.hstack([made, np.isnan(X[:, :3])])


def test_a_linear_ranker_is_that_of_means_and_indicators():
    ranker = fitted(RegressionRanker(missing="indicator"))
    other = fitted(RegressionRanker(), by_hand(HOLED, HOLED, QID))
    assert_allclose(ranker.coef_, other.coef_, rtol=1e-9)
    assert_allclose(ranker.predict(NEW, qid=QID), other.predict(by_hand(NEW, HOLED, QID)), rtol=1e-9)
    assert ranker.missing_features_.tolist() == [0, 1, 2]
    assert_array_equal(ranker.get_support(), [True] * 4)
    assert ranker.get_feature_names_out().tolist() == [*NAMES, *(f"missingindicator_{name}" for name in NAMES[:3])]
    assert {*ranker.selected_} == {*ranker.get_feature_names_out()[ranker.coef_ != 0.0]}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sparse", [False, True])
def test_normalization_is_that_of_the_present_values(method, sparse):
    if sparse and method != "sum":
        return
    column = np.array([3.0, np.nan, 1.0, 1.0, np.nan, 7.0, np.nan, np.nan, 2.0, 2.0])
    offsets = np.array([0, 6, 8, 10])  # the second query has no value, the third a constant
    table = csr_array(column[:, None]) if sparse else column[:, None]
    found = normalized_rows(table, offsets, method)
    found = (found.toarray() if sparse else found).ravel()
    present = ~np.isnan(column)
    alone = normalized_rows(column[present][:, None], np.array([0, 4, 6]), method).ravel()
    assert_allclose(found[present], alone, atol=1e-15)
    assert np.isnan(found[~present]).all()


@pytest.mark.parametrize("normalize", [None, "zscore", "rank"])
@pytest.mark.parametrize("kind", [*LINEAR, BoostedRanker])
def test_the_order_of_rows_and_of_queries_changes_nothing(kind, normalize):
    options = {"n_estimators": 8} if kind is BoostedRanker else {"missing": "indicator"}
    ranker = kind(normalize=normalize, **options)
    order = np.random.default_rng(1).permutation(N)
    first, second = fitted(clone(ranker)), fitted(clone(ranker), HOLED[order], Y[order], QID[order])
    assert_array_equal(first.predict(NEW, qid=QID)[order], second.predict(NEW[order], qid=QID[order]))


@pytest.mark.parametrize("kind", LINEAR)
def test_every_weight_of_a_linear_ranker_has_a_name(kind):
    for ranker in (kind(missing="indicator"), make_pipeline(SimpleImputer(), kind())):
        with pytest.raises(NotFittedError):
            ranker.get_feature_names_out()
    ranker = fitted(kind(missing="indicator"))
    assert len({*ranker.get_feature_names_out()}) == ranker.coef_.shape[-1] == 7
    assert {*ranker.selected_} <= {*ranker.get_feature_names_out()}
    plain = fitted(kind(), pd.DataFrame(FULL, columns=[*"abcd"]))
    assert plain.get_feature_names_out().tolist() == plain.feature_names_in_.tolist() == [*"abcd"]


@pytest.mark.parametrize("kind", [RegressionRanker, DirectRanker, MatchingRanker, BoostedRanker])
def test_a_saved_model_scores_the_same(kind, tmp_path):
    options = {"n_estimators": 8} if kind is BoostedRanker else {"missing": "indicator"}
    ranker = fitted(kind(**options))
    ranker.save(tmp_path / "m")
    assert_array_equal(load_model(tmp_path / "m").predict(NEW, qid=QID), ranker.predict(NEW, qid=QID))
    if kind is not BoostedRanker:
        for name, wrong in (("missing_means_", ranker.missing_means_[1:]), ("missing_features_", np.array([2, 1, 0]))):
            damaged = fitted(kind(**options))
            setattr(damaged, name, wrong)
            with pytest.raises(ModelError, match=name):
                damaged.save(tmp_path / "m")


@pytest.mark.parametrize("normalize", [None, "zscore", "minmax", "sum"])
def test_onnx_and_explain_agree_with_predict(normalize):
    ranker = fitted(RegressionRanker(missing="indicator", normalize=normalize))
    session = onnxruntime.InferenceSession(to_onnx(ranker).SerializeToString())
    for query in (0, 5):
        own = NEW[query == QID]
        scores = ranker.predict(own)
        assert_allclose(session.run(None, {"documents": own})[0], scores, rtol=1e-10, atol=1e-12)
        found = ranker.explain(own[0], own[1], among=csr_array(own) if normalize == "sum" else own)
        assert_allclose(found.total, scores[0] - scores[1], rtol=1e-8, atol=1e-12)
        assert "missingindicator_x2" in found.features


def test_trees_in_onnx_send_missing_values_where_predict_does():
    ranker = fitted(BoostedRanker(n_estimators=20, min_child_samples=5))
    session = onnxruntime.InferenceSession(to_onnx(ranker).SerializeToString())
    assert_allclose(session.run(None, {"documents": NEW})[0], ranker.predict(NEW), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("normalize", [None, "sum"])
def test_sparse_features_give_the_same_model(normalize):
    table = np.where(rng.random((N, 4)) < 0.5, 0.0, HOLED)
    dense, sparse = (
        fitted(RegressionRanker(missing="indicator", normalize=normalize), X) for X in (table, csr_array(table))
    )
    assert_allclose(dense.coef_, sparse.coef_, rtol=1e-9)
    assert_allclose(dense.predict(table, qid=QID), sparse.predict(csr_array(table), qid=QID), rtol=1e-9)


def test_every_container_and_file_holds_missing_values(tmp_path):
    frame = pd.DataFrame(HOLED, columns=[*"abcd"])
    wanted = fitted(RegressionRanker(missing="indicator")).coef_
    columns = {name: [None if np.isnan(one) else one for one in frame[name]] for name in frame}
    for X in (frame, frame.astype("Float64"), pl.DataFrame(columns), pa.table(columns)):
        ranker = fitted(RegressionRanker(missing="indicator"), X)
        assert_array_equal(ranker.coef_, wanted)
    weights = pd.Series(ranker.coef_, index=ranker.get_feature_names_out())
    assert weights.index.tolist() == [*"abcd", *(f"missingindicator_{name}" for name in "abc")]
    assert weights.abs().nlargest(7).index.tolist() == ranker.selected_.tolist()
    table = frame.assign(qid=QID, relevance=Y)
    for source in (table, table.astype({"a": "Float64"}), pl.from_pandas(table)):
        assert_array_equal(read_table(source, missing=np.nan).features, HOLED)
        assert_array_equal(read_table(source, missing=-1.0).features, np.nan_to_num(HOLED, nan=-1.0))
        both = r"'[ab]'.*read with missing=np\.nan and fit with missing='indicator' \(or a BoostedRanker\)"
        with pytest.raises(DataError, match=both):
            read_table(source)
    queries = Queries.from_arrays(HOLED, Y, qid=QID).grouped()
    write_svmlight(queries, tmp_path / "t.txt")
    save_queries(queries, tmp_path / "t")
    for read in (open_queries(tmp_path / "t"), read_svmlight(tmp_path / "t.txt", missing=np.nan)):
        assert_array_equal(read.features, queries.features)


@pytest.mark.parametrize("X", [HOLED, csr_array(HOLED), pd.DataFrame(HOLED), Queries.from_arrays(HOLED, Y, qid=QID)])
def test_the_default_is_an_error_that_names_row_column_and_cure(X):
    by_column = isinstance(X, np.ndarray | pd.DataFrame)
    row, column = (np.isnan(HOLED[:, 0]).argmax(), 0) if by_column else np.argwhere(np.isnan(HOLED))[0]
    own = {} if isinstance(X, Queries) else {"y": Y, "qid": QID}
    says = rf"(?i)row {row},.*column {column} ?.*Fit with missing='indicator', or fit a BoostedRanker"
    with pytest.raises(DataError, match=says):
        RegressionRanker().fit(X, **own)
    with pytest.raises(DataError, match=says):
        fitted(RegressionRanker(), FULL).predict(X)
    with pytest.raises(OptionError, match="missing must be 'error' or 'indicator'; got 'mean'"):
        RegressionRanker(missing="mean").fit(X, **own)
    for ranker in (RegressionRanker(missing="indicator"), BoostedRanker()):
        with pytest.raises(DataError, match="inf"):
            fitted(ranker, np.where(np.isnan(HOLED), np.inf, HOLED))


def test_the_command_line_takes_missing_values_and_names_the_option_that_does(tmp_path):
    frame = pd.DataFrame(HOLED, columns=[*"abcd"]).assign(qid=QID, relevance=Y)
    frame.to_csv(tmp_path / "t.csv", index=False)
    write_svmlight(Queries.from_arrays(HOLED, Y, qid=QID), tmp_path / "t.txt")
    for file, words in (("t.csv", "column 'a'"), ("t.txt", "feature 2 is 'nan'")):
        train = ("train", tmp_path / file, "--model", tmp_path / "m", "--ranker")
        refused = called(*train, "regression")
        assert refused.returncode == 3
        assert words in refused.stderr
        assert "train with --missing indicator or --ranker boosted" in refused.stderr
        for options in (("regression", "--missing", "indicator"), ("boosted", "--n-estimators", "3")):
            assert called(*train, *options).returncode == 0
            done = called("predict", tmp_path / "m", tmp_path / file, "--output", "-")
            scores = np.array(done.stdout.split(), dtype=float)
            queries = (
                read_table(frame, missing=np.nan) if file == "t.csv" else read_svmlight(tmp_path / file, missing=np.nan)
            )
            assert_allclose(scores, load_model(tmp_path / "m").predict(queries), rtol=1e-12)
    called(*train, "regression", "--missing", "indicator")
    explained = called("explain", tmp_path / "m", tmp_path / file).stdout
    assert re.search(r"of 7 features \(indicators of missing values: 3\) have four fifths of the effect", explained)


BRANDS = np.array([f"brand {i}" for i in range(20)])
CODES = rng.integers(0, 20, 400)
SHOP = pd.DataFrame({"price": rng.normal(size=400), "brand": pd.Categorical(BRANDS[CODES])})
SHOP.loc[::9, "brand"] = None
SALES = np.isin(CODES, rng.permutation(20)[:7]) + (SHOP.price.to_numpy() > 0)
VISIT = np.arange(400) // 20


def test_categories_are_known_by_value(tmp_path):
    make = BoostedRanker(n_estimators=15)
    ranker = fitted(clone(make), SHOP, SALES, VISIT)
    scores = ranker.predict(SHOP)
    assert ranker.feature_importances_[1] > 0.1
    turned = SHOP.assign(brand=SHOP.brand.cat.reorder_categories(BRANDS[::-1]))
    assert_array_equal(ranker.predict(turned), scores)
    assert_array_equal(fitted(clone(make), turned, SALES, VISIT).predict(SHOP), scores)
    part = SHOP.iloc[3:6].assign(brand=SHOP.brand.iloc[3:6].cat.remove_unused_categories())
    assert_array_equal(ranker.predict(part), scores[3:6])
    assert_array_equal(ranker.predict(SHOP.astype({"brand": object})), scores)
    with pytest.warns(ColumnWarning, match="no category of fit"):
        unknown = ranker.predict(SHOP.assign(brand="brand 99"))
    assert_array_equal(unknown, ranker.predict(SHOP.assign(brand=np.nan)))
    ranker.save(tmp_path / "m")
    assert_array_equal(load_model(tmp_path / "m").predict(turned), scores)
    with pytest.raises(OptionError, match="category"):
        to_onnx(ranker)
    with pytest.raises(OptionError, match="normalize"):
        fitted(BoostedRanker(normalize="zscore"), SHOP, SALES, VISIT)
    with pytest.raises(DataError, match="column 'brand' has numbers, but in fit it had the categories 'brand 0'"):
        ranker.predict(SHOP.assign(brand=SHOP.brand.cat.codes))
    days = pd.Categorical(pd.to_datetime("2026-01-01") + pd.to_timedelta(CODES, "D"))
    with pytest.raises(DataError, match=r"Timestamp.*which a model cannot store; pass texts or numbers: X\.astype"):
        fitted(clone(make), SHOP.assign(brand=days), SALES, VISIT)


CONTAINERS = {
    "category": lambda frame: frame,
    "pandas": lambda frame: frame.astype({"kind": frame.kind.cat.categories.dtype}),
    "text": lambda frame: frame.astype({"kind": str}),
    "polars": lambda frame: pl.from_pandas(CONTAINERS["pandas"](frame)),
    "polars text": lambda frame: pl.from_pandas(frame.astype({"kind": str})),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "queries": lambda frame: read_table(frame.assign(qid=VISIT, relevance=KINDS)),
    "queries of text": lambda frame: read_table(frame.astype({"kind": str}).assign(qid=VISIT, relevance=KINDS)),
}
KINDS = 2 * (CODES % 3 == 1) + (SHOP.price.to_numpy() > 0)


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=[*CONTAINERS])
@pytest.mark.parametrize("kinds", [[1, 2, 3], ["a", "b", "c"], ["1", "2", "10"], [0.5, 2.0, 10.0]], ids=str)
def test_categories_are_known_by_value_in_every_container(container, kinds):
    frame = pd.DataFrame({"price": SHOP.price, "kind": pd.Categorical(np.array(kinds)[CODES % 3])})
    make = BoostedRanker(n_estimators=15, engine="serial")
    ranker = fitted(clone(make), frame, KINDS, VISIT)
    assert ranker.score(frame, KINDS, qid=VISIT) > 0.95
    assert_array_equal(ranker.predict(container(frame)), ranker.predict(frame))
    queries = read_table(frame.assign(qid=VISIT + 100, relevance=KINDS))
    best = [clone(make).fit(frame, KINDS, qid=VISIT, eval_set=one, eval_qid=ids).best_score_
            for one, ids in ((queries, None), ((frame, KINDS), VISIT + 100))]  # fmt: skip
    assert best[0] == best[1]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("kinds", [[1, 2, 3], ["a", "b", "c"], ["01", "2", "10"]], ids=str)
def test_commands_know_categories_by_value(tmp_path, kinds, ending):
    frame = pd.DataFrame({"kind": pd.Categorical(np.array(kinds)[CODES % 3]), "price": SHOP.price})
    ranker = fitted(BoostedRanker(n_estimators=15, engine="serial"), frame, KINDS, VISIT)
    ranker.save(tmp_path / "m")
    table, file = frame.assign(qid=VISIT, relevance=KINDS), tmp_path / f"t.{ending}"
    table.to_parquet(file) if ending == "parquet" else table.to_csv(file, index=False)
    done = called("predict", tmp_path / "m", file, "--output", "-")
    assert_allclose(np.array(done.stdout.split(), dtype=float), ranker.predict(frame), rtol=1e-12)


def test_a_column_of_text_is_reported_as_an_attribute(tmp_path):
    SHOP.fillna({"brand": "brand 1"}).assign(qid=VISIT, relevance=KINDS).to_csv(tmp_path / "t.csv", index=False)
    done = called("train", tmp_path / "t.csv", "--model", tmp_path / "m", "--ranker", "regression")
    assert "features: 1 (price), no features but attributes brand" in done.stderr
    with pytest.raises(DataError, match=r"'brand' .* text .* frame\.astype\({'brand': 'category'}\)"):
        read_table(str(tmp_path / "t.csv"), features=["price", "brand"])


def test_numbers_of_arrays_are_positions_where_nothing_else_is_possible():
    def codes_and_scores(kinds):
        frame = pd.DataFrame({"price": SHOP.price, "kind": pd.Categorical(np.array(kinds)[CODES % 3])})
        ranker = fitted(BoostedRanker(n_estimators=15, engine="serial"), frame, KINDS, VISIT)
        return ranker, np.column_stack([SHOP.price, CODES % 3]), ranker.predict(frame)

    for kinds in (["a", "b", "c"], [0, 1, 2]):
        ranker, array, scores = codes_and_scores(kinds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn's, of an array without names
            assert_array_equal(ranker.predict(array), scores)
        assert_array_equal(ranker.predict(Queries.from_arrays(array, qid=VISIT)), scores)
    ranker, array, scores = codes_and_scores([1, 2, 3])
    for X in (array, csr_array(array), Queries.from_arrays(array, qid=VISIT)):
        with pytest.raises(DataError, match=r"'kind' had the categories 1, 2, 3, \.\.\. in fit, .* pass a frame: "):
            ranker.predict(X)
    cure = pd.DataFrame(array + np.array([0, 1]), columns=ranker.feature_names_in_)
    assert_array_equal(ranker.predict(cure), scores)


def test_a_column_without_a_known_category_is_warned_of():
    ranker = fitted(BoostedRanker(n_estimators=5), SHOP, SALES, VISIT)
    with pytest.warns(ColumnWarning, match="'brand' has no category of fit: it has 'Brand', in fit it had 'brand 0'"):
        ranker.predict(SHOP.assign(brand="Brand"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ranker.predict(SHOP.assign(brand=np.where(CODES == 0, "brand 1", "other")))


def test_a_column_with_the_name_of_an_indicator_is_refused():
    frame = pd.DataFrame({"a": [1.0, np.nan, 2.0, 0.5], "missingindicator_a": [0.0, 1.0, 2.0, 3.0], "qid": 1})
    with pytest.raises(DataError, match="'missingindicator_a', which is the name of an indicator; rename the column"):
        RegressionRanker(missing="indicator").fit(frame, [0, 1, 0, 1])


@pytest.mark.parametrize("dtype", ["category", object])
def test_the_cure_for_text_in_linear_rankers_runs(dtype):
    shop = SHOP.assign(brand=SHOP.brand.astype(object).fillna("none").astype(dtype), qid=VISIT)
    with pytest.raises(DataError, match="column 'brand'") as error:
        RegressionRanker().fit(shop, SALES)
    code = str(error.value).partition("encode it: ")[2].partition(", or fit a")[0]
    names = {one.__name__: one for one in (make_pipeline, make_column_transformer, OneHotEncoder, RegressionRanker)}
    steps = eval(code, names).fit(shop, SALES)
    assert "brand_brand 3" in steps[-1].selected_
    code = str(error.value).partition("BoostedRanker on ")[2].removesuffix(".")
    ranker = BoostedRanker(n_estimators=5).fit(eval(code, {"X": shop}), SALES)
    assert len(ranker.categories_["brand"]) == 21


DAMAGE = {
    "a set that is not there": lambda text: text.replace("decision_type=", "decision_type=11 ", 1),
    "no sets": lambda text: text.replace("cat_boundaries=0", "cat_boundaries=1", 1),
    "words beyond the end": lambda text: text.replace("cat_threshold=", "cat_threshold=1 ", 1),
    "a negative word": lambda text: text.replace("cat_threshold=", "cat_threshold=-", 1),
    "no number": lambda text: text.replace("num_cat=", "num_cat=x", 1),
    "another number": lambda text: text.replace("num_cat=", "num_cat=9", 1),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=[*DAMAGE])
def test_damaged_sets_of_categories_never_reach_lightgbm(damage):
    ranker = fitted(BoostedRanker(n_estimators=3), SHOP, SALES, VISIT)
    text = ranker.estimators_[0].tobytes().decode()
    broken = damage(text)
    assert broken != text
    sizes = text.partition("tree_sizes=")[2].split()[0]
    broken = broken.replace(f"tree_sizes={sizes}", f"tree_sizes={int(sizes) + len(broken) - len(text)}", 1)
    ranker.estimators_ = (np.frombuffer(broken.encode(), dtype=np.uint8), *ranker.estimators_[1:])
    with pytest.raises(ModelError, match=r"tree \d (has|splits)|decision_type"):
        ranker._check_loaded()
