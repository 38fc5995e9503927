"""A ranker says what is wrong with its data or options, and what to do."""

import inspect
from inspect import signature

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from planted.attack import assert_survived
from problems.rated import tastes
from problems.training import BOUNDS, made
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import has_fit_parameter

import rankopt.rankers
from formulations import FormulationError, RankingSet, matching, solve, verify_integrality
from rankopt.constraints.admissible import Admissible
from rankopt.data import Queries, load_sample
from rankopt.errors import DataError, MeasureError, NoProgressWarning, OptionError
from rankopt.evaluation.evaluation import evaluate
from rankopt.measures import nDCG
from rankopt.optimize import METHODS, get_method
from rankopt.optimize.bundle import Bundle
from rankopt.optimize.least_squares import column_units
from rankopt.rankers import (
    RANKERS,
    BoostedRanker,
    CofiRanker,
    DirectRanker,
    LargeMarginRanker,
    LinearRanker,
    LossRanker,
    MatchingRanker,
    PairwiseRanker,
    RegressionRanker,
)
from rankopt.ratings import weak_split

FEATURES = np.arange(12.0).reshape(6, 2) ** 2
GRADES = np.array([0, 1, 2, 0, 1, 0])
QID = list("aabbbb")
QUERIES = Queries.from_arrays(FEATURES, GRADES, qid=QID)
FRAME = pd.DataFrame(FEATURES, columns=["u", "v"]).assign(qid=QID)


@pytest.mark.parametrize(
    ("X", "y", "options", "says"),
    [
        (FEATURES, GRADES, {"qid": QID, "group": [2, 4]}, "by qid= and group= at once"),
        (FRAME, GRADES, {"qid": QID}, "by qid= and the column 'qid' of X at once"),
        (FRAME, GRADES, {"group": [2, 4]}, "group= and the column"),
        (QUERIES, GRADES, {}, "y cannot be passed with a Queries"),
        (QUERIES, None, {"qid": QID, "group": [6]}, "qid and group cannot be passed with"),
        (QUERIES.replace(relevance=None), None, {}, "requires y .* have no relevance"),
        (FEATURES, None, {"qid": QID}, "requires y"),
        (FEATURES, GRADES[:5], {"qid": QID}, "inconsistent numbers of samples"),
        (FEATURES, GRADES, {"qid": QID[:5]}, "5"),
        (FEATURES, GRADES, {"group": [2, 3]}, "5"),
        (FEATURES, -GRADES, {"qid": QID}, "grade is -1"),
        (FEATURES, GRADES, {"qid": QID, "query_weight": {"a": 1.0}}, "no weight for query 'b'"),
        (FEATURES, GRADES, {"qid": QID, "query_weight": [1.0]}, "there are 2 queries"),
        (FEATURES, GRADES, {"qid": QID, "query_weight": [1.0, -1.0]}, "of query 'b' is -1"),
        (FEATURES, GRADES, {"qid": QID, "query_weight": [np.nan, 1.0]}, "of query 'a' is nan"),
        (FEATURES, GRADES, {"qid": QID, "query_weight": [0, 0]}, "0 for every query"),
        (FEATURES, GRADES, {"qid": QID, "eval_qid": QID}, "belong to eval_set"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": [(FEATURES, GRADES)]}, "pass eval_qid="),
        (FEATURES, GRADES, {"qid": QID, "eval_set": [(FEATURES, GRADES)] * 2}, "list of 2 because one data set"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": [], "eval_qid": []}, "list of 0"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": [FEATURES, GRADES], "eval_qid": QID}, "list of 2"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": [FEATURES]}, "eval_set cannot be a ndarray"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": [(FEATURES, GRADES)], "eval_qid": QID}, r"eval_qid=\[qid\]"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": [(FEATURES, GRADES)], "eval_group": [6]}, r"eval_group=\[group\]"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": (FEATURES, GRADES), "eval_group": [[2, 4]]}, "group"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": {"X": FEATURES}}, r"pass eval_set=\(X, y\)"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": (FEATURES[:, :1], GRADES), "eval_qid": QID}, "1 features"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": (FEATURES, GRADES)}, "pass eval_qid="),
        (FEATURES, GRADES, {"qid": QID, "eval_set": (FEATURES, GRADES), "eval_qid": QID, "eval_group": [6]}, "at once"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": QUERIES, "eval_qid": QID}, "with a Queries"),
        (FEATURES, GRADES, {"qid": QID, "eval_set": QUERIES}, "eval_set needs alpha='auto'"),
    ],
)  # fmt: skip
def test_fit_says_what_is_wrong_with_its_data(X, y, options, says):
    with pytest.raises(ValueError, match=says):
        RegressionRanker(0.0).fit(X, y, **options)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"alpha": -1.0}, OptionError, "alpha must be a number >= 0 or .auto.; got -1.0"),
        ({"alpha": np.inf}, OptionError, "alpha must be a number >= 0 or .auto.; got inf"),
        ({"target": "rank"}, OptionError, "'grade' or 'gain'; got 'rank'"),
        ({"measure": "nDGC@10"}, MeasureError, "nDCG"),
    ],
)
def test_fit_says_what_is_wrong_with_an_option(options, error, says):
    with pytest.raises(error, match=says):
        RegressionRanker(**options).fit(FEATURES, GRADES)


def test_score_needs_the_queries_after_a_fit_on_several():
    ranker = RegressionRanker().fit(FEATURES, GRADES, qid=QID)
    with pytest.raises(DataError, match=r"sklearn\.set_config\(enable_metadata_routing=True\)"):
        ranker.score(FEATURES, GRADES)
    with pytest.raises(DataError, match="requires y"):
        ranker.score(FEATURES, qid=QID)


@pytest.mark.parametrize(
    ("weight", "says"),
    [
        ([1, 1, 2, 2, 3, 2], r"differs inside query 'b' \(row 4\)"),
        ([1, 1], "there are 6 rows"),
        ([1, 1, -2, -2, -2, -2], "of query 'b' is -2"),
    ],
)
def test_weights_of_rows_are_weights_of_queries(weight, says):
    ranker = RegressionRanker().fit(FEATURES, GRADES, qid=QID)
    with pytest.raises(DataError, match=says):
        ranker.score(FEATURES, GRADES, qid=QID, sample_weight=weight)


def test_an_unfitted_ranker_says_so():
    for call in (
        lambda ranker: ranker.predict(FEATURES),
        lambda ranker: ranker.score(FEATURES, GRADES),
        lambda ranker: ranker.rank(FEATURES),
        lambda ranker: ranker.explain(FEATURES[0], FEATURES[1]),
        lambda ranker: ranker.save("nowhere"),
    ):
        with pytest.raises(NotFittedError):
            call(RegressionRanker())
    with pytest.raises(NotImplementedError, match="write one"):
        LinearRanker().fit(FEATURES, GRADES)


def test_rank_and_explain_say_what_they_cannot_do():
    ranker = RegressionRanker().fit(FEATURES, GRADES, qid=QID)
    with pytest.raises(DataError, match="got 0"):
        ranker.rank(FEATURES, QID, k=0)
    with pytest.raises(DataError, match="x has 2 rows"):
        ranker.explain(FEATURES[:2], FEATURES[0])
    with pytest.raises(ValueError, match="3 features"):
        ranker.explain(FEATURES[0], [1.0, 2.0, 3.0])


@pytest.mark.parametrize("name", [name for name in RANKERS if name != "CofiRanker"])
def test_weights_of_rows_are_refused_with_the_word_for_those_of_queries(name):
    try:
        ranker = getattr(rankopt.rankers, name)
    except ImportError:
        pytest.skip("an optional package is missing")
    assert not has_fit_parameter(ranker, "sample_weight")
    X, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 0, 1])
    made = object.__new__(ranker)
    for kind in (OptionError, TypeError):
        with pytest.raises(kind, match="pass query_weight="):
            made.fit(X, y, qid=[0, 0, 0, 1, 1, 1], sample_weight=np.ones(6))
    assert not vars(made)


@pytest.mark.parametrize(
    ("theirs", "value", "ours"),
    [
        ("early_stopping_rounds", 3, "early_stopping"), ("eval_metric", "ndcg", "measure"),
        ("eval_at", [5], "measure='nDCG@10'"),
    ],
)  # fmt: skip
def test_words_of_other_libraries_are_refused_with_ours(theirs, value, ours):
    X, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 0, 1])
    for kind in (OptionError, TypeError):
        with pytest.raises(kind, match=f"^{theirs} .*{ours}"):
            RegressionRanker(**{theirs: value})
        with pytest.raises(kind, match=f"^{theirs} .*{ours}"):
            RegressionRanker().fit(X, y, qid=[0, 0, 0, 1, 1, 1], **{theirs: value})
    assert theirs not in RegressionRanker().get_params()
    assert theirs not in signature(RegressionRanker).parameters
    with pytest.raises(TypeError, match="unexpected keyword argument 'rounds'"):
        RegressionRanker(rounds=3)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("feature_fraction", "colsample_bytree"), ("min_data_in_leaf", "min_child_samples"), ("seed", "random_state"),
        ("num_threads", "n_jobs"), ("nthread", "n_jobs"), ("verbosity", "verbose"), ("num_iterations", "n_estimators"),
        ("early_stopping_round", "early_stopping"), ("lambdarank_truncation_level", "truncation_level"),
        ("eta", "learning_rate"), ("max_depth", "num_leaves"), ("xgb_model", "init_model"),
        ("categorical_feature", r"astype\({'site': 'category'}\)"), ("missing", "BoostedRanker takes NaN"),
        ("coef_bounds", "monotone_constraints="), ("eval_sample_weight", "every query of eval_set counts as one"),
    ],
)  # fmt: skip
def test_words_of_libraries_of_trees_name_ours(theirs, ours):
    with pytest.raises(OptionError, match=f"{theirs} .*{ours}"):
        BoostedRanker(**{theirs: 1})
    word = ours.removesuffix("=")
    assert not word.isidentifier() or word in {*signature(BoostedRanker).parameters, "init_model"}
    if theirs not in ("max_depth", "missing", "coef_bounds"):
        with pytest.raises(OptionError, match=f"{theirs} .*{ours}"):
            BoostedRanker().fit(np.ones((6, 2)), np.arange(6), **{theirs: 1})


@pytest.mark.parametrize("theirs", ["monotone_constraints", "positive", "bounds", "coef_bounds"])
@pytest.mark.parametrize("kind", [LargeMarginRanker, DirectRanker, RegressionRanker])
def test_limits_of_weights_are_called_coef_bounds(kind, theirs):
    if theirs in signature(kind).parameters:
        assert kind(**{theirs: (0, None)}).get_params()[theirs] == (0, None)
        return
    with pytest.raises(OptionError, match=rf"^{theirs} is unknown .*LargeMarginRanker\(coef_bounds=.* DirectRanker"):
        kind(**{theirs: (0, None)})


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_two_columns_of_one_name_are_refused_by_name(library):
    X, y, qid = made(queries=4)
    frame = pd.DataFrame(X, columns=[*"abcd"])
    twice = pd.concat([frame, frame[["a"]]], axis=1)
    if library == "pyarrow":
        twice = pa.Table.from_arrays([pa.array(twice.iloc[:, j]) for j in range(5)], names=[*twice.columns])
    ranker = RegressionRanker().fit(frame, y, qid=qid)
    for call in (lambda: ranker.predict(twice), lambda: clone(ranker).fit(twice, y, qid=qid),
                 lambda: BoostedRanker().fit(twice, y, qid=qid), lambda: ranker.rank(twice, qid=qid)):  # fmt: skip
        with pytest.raises(DataError, match="X has two columns 'a'; rename one, or leave it out"):
            call()


def test_a_ranker_of_your_own_may_have_such_a_word():
    class Own(RegressionRanker):
        def __init__(self, eval_at=5):
            super().__init__()
            self.eval_at = eval_at

    assert Own(eval_at=3).eval_at == 3
    with pytest.raises(TypeError, match="early_stopping"):
        Own(early_stopping_rounds=3)


def test_no_weights_of_rows_are_no_fault():
    X, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 0, 1])
    one, two = (RegressionRanker().fit(X, y, qid=[0, 0, 0, 1, 1, 1], **more) for more in ({}, {"sample_weight": None}))
    np.testing.assert_array_equal(one.coef_, two.coef_)


# Numbers that no option can be: a typed error that names the option, never one of Python's own.


LARGE = 10**400
NUMBERS = [float("nan"), float("inf"), -float("inf"), -1, 1j, LARGE, "x", [], {}, np.float64("nan"), object()]

REQUIRED = ["max_iter", "tol", "lam", "C", "time_limit", "n_jobs"]


def refused(name, value):
    """Whether this value can be no option of this name; None and a limit without end can be some."""
    return not (name == "time_limit" and value == float("inf")) and not (name == "n_jobs" and value == -1)


@pytest.mark.parametrize("name", REQUIRED)
@pytest.mark.parametrize("kind", [LargeMarginRanker, LossRanker, MatchingRanker, PairwiseRanker])
def test_options_of_training(kind, name):
    X, y, qid = made(queries=2)
    for value in NUMBERS:
        options = {name: value, **({"lam": None} if name == "C" else {})}
        if refused(name, value):
            with pytest.raises(OptionError, match=f"{name} must be "):
                kind(**options).fit(X, y, qid=qid)
    for name in ("max_iter", "tol"):
        with pytest.raises(OptionError, match=name):
            kind(**{name: None}).fit(X, y, qid=qid)
    for value in (1.5, 0, True):
        with pytest.raises(OptionError, match="max_iter"):
            kind(max_iter=value).fit(X, y, qid=qid)


@pytest.mark.parametrize("value", [1j, 10**400, {}, object(), [float("nan")] * 4])
def test_arrays(value):
    X, y, qid = made(queries=2)
    for kind, name in (
        (LargeMarginRanker, "w0"),
        (LargeMarginRanker, "position_weights"),
        (MatchingRanker, "position_weight"),
    ):
        with pytest.raises(OptionError, match=name):
            kind(**{name: value}).fit(X, y, qid=qid)
    with pytest.raises(OptionError, match="alpha"):
        RegressionRanker(value).fit(X, y, qid=qid)


@pytest.mark.parametrize("name", METHODS)
def test_settings_of_methods(name):
    kind = type(get_method(name))
    for setting, told in inspect.signature(kind).parameters.items():
        for value in [*NUMBERS, None, True]:
            if value is LARGE and not isinstance(told.default, float):
                continue  # a whole number may be as large as it likes
            with pytest.raises(OptionError, match=f"^{setting} (must be|=) "):
                kind(**{setting: value})


# Arrays that are meant ill: errors of ours or finite answers, the same bits for the same numbers, no half model.


X, Y, QID_HOSTILE = np.random.default_rng(0).normal(size=(12, 3)), [0, 1, 2] * 4, np.repeat([0, 1], 6)
BEYOND = np.array([10**400] + [0] * 11, dtype=object)


@pytest.mark.study
@pytest.mark.parametrize("tries", [60, pytest.param(300, marks=pytest.mark.study)])
def test_arrays_by_the_hundred(tries):
    assert_survived("arrays", tries, 9)


def test_whole_numbers_beyond_floats_are_named():
    for given, name in (((BEYOND[:, None], Y), "features"), ((X, BEYOND), "relevance")):
        with pytest.raises(DataError, match=f"{name} cannot be read as numbers"):
            RegressionRanker().fit(*given, qid=QID_HOSTILE)
    with pytest.raises(DataError, match="relevance cannot be read"):
        evaluate(BEYOND, X[:, 0], "nDCG@5", offsets=[0, 12])


@pytest.mark.parametrize("weight", [[object(), 1], [1j, 1], [1e-320, 1], [1, 1e101]])
def test_weights_that_cannot_be_summed_are_refused(weight):
    with pytest.raises(DataError, match="query_weight"):
        LargeMarginRanker().fit(X, Y, qid=QID_HOSTILE, query_weight=np.array(weight))


def test_a_sparse_matrix_has_at_most_as_many_columns_as_a_file():
    wide = sp.csr_array((np.ones(1), ([0], [5])), shape=(2, 2**40))
    with pytest.raises(DataError, match="leave out empty ones"):
        Queries.from_arrays(wide, [0, 1], group=[2])


def test_a_score_beyond_double_precision_is_no_answer():
    ranker = RegressionRanker(1.0).fit(X, Y, qid=QID_HOSTILE)
    ranker.coef_ = np.array([2.0, -2.0, 2.0])
    with pytest.raises(DataError, match="score of row 1 leaves double precision"):
        ranker.predict(np.array([[1.0, 0, 0], [1e308, 1e308, -1e308], [0, 0, 0]]))


def test_features_near_the_end_of_double_precision_are_climbed_or_named():
    far = X.copy()
    far[4, 1], far[7, 2] = -1e308, 1e308
    assert np.isfinite(DirectRanker("nDCG@5", init="zeros").fit(far, Y, qid=QID_HOSTILE).coef_).all()
    far = X.copy()
    far[[2, 5, 9], 0] = 1e155
    with pytest.raises(DataError, match="feature 0 reaches 1e\\+155"):
        LossRanker("pairwise", lam=1.0).fit(far, Y, qid=QID_HOSTILE)


def test_a_column_that_only_a_query_without_weight_makes_large_is_constant():
    far = np.where(np.arange(12)[:, None] < 6, X, 1e155 * (1 + X**2))
    ranker = RegressionRanker(1.0).fit(far, Y, qid=QID_HOSTILE, query_weight=[1.0, 0.0])
    assert np.isfinite(ranker.coef_).all()


def test_a_grade_whose_square_cannot_be_held_is_no_target():
    with pytest.raises(DataError, match="a target is 1e\\+308"):
        RegressionRanker().fit(X, np.array([1e308, *[0.0] * 11]), qid=QID_HOSTILE)


# Features near the ends of double precision: least squares as in other units; training says what to rescale.


SCALES = [2.0**-1000, 2.0**-700, 2.0**-530, 2.0**512, 2.0**515, 2.0**700, 2.0**1020]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_least_squares_are_those_of_other_units(form, scale):
    X, y, qid = made()
    plain = RegressionRanker(0.0).fit(form(X), y, qid=qid).coef_
    mixed = scale ** np.array([1, 0, 1, 0])
    for units in (np.full(4, scale), mixed):
        coef = RegressionRanker(0.0).fit(form(X * units), y, qid=qid).coef_
        np.testing.assert_allclose(coef * units, plain, rtol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_a_ridge_lets_large_features_free_and_holds_small_ones(form):
    X, y, qid = made()
    for scale in (2.0**-700, 2.0**700):
        units = np.array([1.0, scale, 1.0, 1.0])
        coef = RegressionRanker(0.5).fit(form(X * units), y, qid=qid).coef_
        assert np.isfinite(coef).all()
        if scale < 1:
            rest = RegressionRanker(0.5).fit(form(X[:, [0, 2, 3]]), y, qid=qid).coef_
            np.testing.assert_allclose(coef[[0, 2, 3]], rest, rtol=1e-9)
        else:
            free = RegressionRanker(0.5).fit(form(X * np.array([1.0, 2.0**60, 1.0, 1.0])), y, qid=qid).coef_
            np.testing.assert_allclose((coef * units)[1], free[1] * 2.0**60, rtol=1e-9)


def test_wide_sparse_data_is_measured_in_units_too():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((80, 600)) < 0.05, rng.normal(size=(80, 600)), 0.0)
    y, qid = rng.integers(0, 3, 80).astype(float), np.repeat(np.arange(8), 10)
    plain = RegressionRanker(1e-3).fit(csr_array(X), y, qid=qid)
    units = np.where(np.arange(600) % 2, 1.0, 2.0**600)
    free = RegressionRanker(0.0).fit(csr_array(X), y, qid=qid).coef_
    coef = RegressionRanker(0.0).fit(csr_array(X * units), y, qid=qid).coef_
    np.testing.assert_allclose(coef * units, free, rtol=1e-6, atol=1e-9 * np.abs(free).max())
    assert np.isfinite(plain.coef_).all()


def test_ordinary_columns_are_left_as_they_are():
    X = np.array([[1e80, 1e-80, 0.0], [-1.0, 0.0, 0.0]])
    assert column_units(X) is None
    assert column_units(csr_array(X)) is None
    assert column_units(np.zeros((3, 0))) is None
    extreme = X * [1.0, 1e-80, 1.0]
    assert column_units(extreme).tolist()[::2] == [1.0, 1.0]
    np.testing.assert_array_equal(column_units(extreme), column_units(csr_array(extreme)))


@pytest.mark.every(2)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [1e-310, 1e-300, 1e-160])
def test_tiny_features_train(method, scale):
    X, y, qid = made()
    plain = LargeMarginRanker("nDCG@5", method=method, lam=1.0).fit(X, y, qid=qid)
    with pytest.warns(NoProgressWarning):
        tiny = LargeMarginRanker("nDCG@5", method=method, lam=1.0).fit(X * scale, y, qid=qid)
    assert tiny.certificate_.relative_gap <= tiny.tol
    if scale >= 1e-300:  # w0 orders as it does in other units, and no step pays for itself
        start = RegressionRanker(measure="nDCG@5").fit(X, y, qid=qid)
        assert tiny.score(X * scale, y, qid=qid) == pytest.approx(start.score(X, y, qid=qid))
    assert np.isfinite(plain.certificate_.primal)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("scale", [1e155, 1e300])
def test_huge_features_are_named(form, scale):
    X, y, qid = made()
    X = X * np.array([1.0, 1.0, scale, 1.0])
    rankers = [
        PairwiseRanker(),
        MatchingRanker(bound="nonconvex"),
        *(LargeMarginRanker(bound=bound) for bound in BOUNDS),
        *(LargeMarginRanker(method=method) for method in METHODS),
    ]
    queries = Queries.from_arrays(form(X), y, qid=qid, feature_names=["a", "b", "size in bytes", "d"])
    for ranker in rankers:
        with pytest.raises(DataError, match=r"feature 'size in bytes' reaches .*; divide it by"):
            ranker.fit(queries)
        with pytest.raises(DataError, match="feature 2 reaches"):
            ranker.fit(form(X), y, qid=qid)


TRAIN = load_sample("les-miserables").train.select(range(6))
SLOTS = TRAIN.replace(relevance=np.minimum(TRAIN.relevance, 2))
RATINGS = tastes()
TEMPLATE = RankingSet(6, 4)


def recommended(k):
    return CofiRanker(factors=2, reg=0.5).fit(RATINGS).recommend(RATINGS.users[:2], k=k).to_frame()["item"].tolist()


COUNTED = {
    "cutoff": lambda k: nDCG @ k,
    "rank": lambda k: LargeMarginRanker(max_iter=3).fit(TRAIN).rank(TRAIN.select([0]), k=k).tolist(),
    "slots": lambda k: str(MatchingRanker(k).fit(SLOTS).explain(SLOTS.features[0], SLOTS.features[1], slot=k)),
    "recommend": recommended,
    "steps": lambda k: LargeMarginRanker(max_iter=k, method=Bundle(groups=k, keep_idle=k)).fit(TRAIN).coef_.tolist(),
    "restarts": lambda k: DirectRanker(n_restarts=k, max_iter=1).fit(TRAIN).coef_.tolist(),
    "trees": lambda k: BoostedRanker(n_estimators=k, num_leaves=k, n_bags=k).fit(TRAIN).predict(TRAIN).tolist(),
    "factors": lambda k: CofiRanker(factors=k, max_iter=k, n_jobs=k, reg=0.5).fit(RATINGS).item_factors_.tolist(),
    "split": lambda k: str(weak_split(RATINGS, n=k, seed=k)),
    "admissible": lambda k: repr(Admissible(k).at_most(k, by="site", positions=[k - 1])),
    "set": lambda k: str(RankingSet(3 * k, 2 * k).at_most(k, documents=[0, k]).fix(k, k).between(1, k, by=[*"aabbcc"])),
    "share": lambda k: str(TEMPLATE.at_least(share=0.5, documents=[0, 1], prefixes=k).min_distance(k, by=[*"aabbcc"])),
    "effort": lambda k: str(verify_integrality(np.eye(2), seed=k, max_effort=k)),
    "threads": lambda k: solve(matching(np.eye(3)), "highs", threads=k).value,
}
"""What takes a count, an index, a seed: all of these are 2."""


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", COUNTED)
def test_floats_that_are_integers_count_as_such_and_others_are_refused(name):
    expected = COUNTED[name](2)
    for whole in (2.0, np.float32(2.0), np.int16(2)):
        assert COUNTED[name](whole) == expected
    for other in (2.5, True, np.nan):
        with pytest.raises((OptionError, DataError, MeasureError, FormulationError)):
            COUNTED[name](other)
