"""`normalize=` of a ranker is normalizing by hand; evaluation data pass through a Pipeline."""

from functools import partial

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankopt.cli import rankopt
from rankopt.data import Queries, QueryNormalizer, load_sample, normalize, write_svmlight
from rankopt.errors import DataError, MissingQueryIdsWarning, ModelError, OptionError
from rankopt.rankers import (
    LargeMarginRanker,
    LossRanker,
    MatchingRanker,
    PairwiseRanker,
    RegressionRanker,
    load_model,
)

METHODS = ["sum", "zscore", "minmax", "rank"]
KINDS = [LargeMarginRanker, LossRanker, PairwiseRanker, RegressionRanker, partial(MatchingRanker, 3, bound="nonconvex")]


def made(seed, queries=9):
    """Rows in no order; each query has a scale and a shift of its own."""
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(np.arange(queries), 8))
    X = rng.normal(size=(qid.size, 4))
    y = np.clip(np.round(X @ [1.0, 0.5, 0.0, -1.0] + 0.5 * rng.normal(size=qid.size)), 0, 3)
    return X * 10.0 ** rng.integers(-3, 4, size=queries)[qid, None] + rng.normal(size=(queries, 4))[qid], y, qid


X, Y, QID = made(0)
V, VY, VQ = made(1, queries=5)
BY_HAND = {method: QueryNormalizer(method).fit_transform(X, qid=QID) for method in METHODS}
SEEN = {method: QueryNormalizer(method).fit_transform(V, qid=VQ) for method in METHODS}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS, ids=["margin", "loss", "pairwise", "regression", "matching"])
def test_the_option_is_normalizing_by_hand(kind, method):
    ranker = kind(normalize=method).fit(X, Y, qid=QID)
    plain = kind().fit(BY_HAND[method], Y, qid=QID)
    assert_array_equal(ranker.coef_, plain.coef_)
    assert_array_equal(ranker.predict(V, qid=VQ), plain.predict(SEEN[method]))
    assert ranker.score(V, VY, qid=VQ) == plain.score(SEEN[method], VY, qid=VQ)
    ours, theirs = ranker.rank(V, VQ), plain.rank(SEEN[method], VQ)
    assert list(ours) == list(theirs)
    for query, order in ours.items():
        assert_array_equal(order, theirs[query])


@pytest.mark.filterwarnings("ignore::rankopt.errors.NoProgressWarning")  # the start may be the best on eval_set
def test_evaluation_data_and_paths_are_normalized_too():
    judge = {"eval_set": (V, VY), "eval_qid": VQ}
    ranker = LargeMarginRanker(normalize="zscore").fit(X, Y, qid=QID, **judge)
    plain = LargeMarginRanker().fit(BY_HAND["zscore"], Y, qid=QID, eval_set=(SEEN["zscore"], VY), eval_qid=VQ)
    assert_array_equal(ranker.coef_, plain.coef_)
    assert ranker.best_score_ == plain.best_score_ == ranker.score(V, VY, qid=VQ)
    apart = {"eval_X": V, "eval_y": VY, "eval_qid": VQ}
    assert_array_equal(LargeMarginRanker(normalize="zscore").fit(X, Y, qid=QID, **apart).coef_, ranker.coef_)
    path = LargeMarginRanker(normalize="zscore").path(X, Y, qid=QID, lams=[0.1], **apart)
    assert_allclose(path[0].best_score_, plain.best_score_, atol=0.05)


@pytest.mark.parametrize("method", METHODS)
def test_shuffled_rows_give_the_same_model_bit_for_bit(method):
    order = np.random.default_rng(2).permutation(len(X))
    rankers = [
        LargeMarginRanker("nDCG@5", normalize=method).fit(X[rows], Y[rows], qid=QID[rows])
        for rows in (slice(None), order)
    ]
    assert_array_equal(rankers[0].coef_, rankers[1].coef_)


def test_scores_need_the_queries_of_their_rows():
    ranker = RegressionRanker(normalize="rank").fit(X, Y, qid=QID)
    one = VQ == 3
    assert_array_equal(ranker.predict(V[one]), ranker.predict(V[one], qid=VQ[one]))  # no qid: one query, as in serving
    many = np.tile(V, (301 // len(V) + 1, 1))
    with pytest.warns(MissingQueryIdsWarning, match=f"all {len(many)} rows are treated as one query"):
        ranker.predict(many)
    with pytest.raises(DataError, match="`qid` is missing; pass qid="):
        ranker.score(V, VY)
    queries = Queries.from_arrays(V, VY, qid=VQ)
    assert_array_equal(ranker.predict(queries), ranker.predict(V, qid=VQ))
    alone = RegressionRanker(normalize="zscore").fit(X[:9], Y[:9])
    assert_array_equal(alone.predict(X[:9]), alone.predict(X[:9], group=[9]))
    with pytest.raises(OptionError, match=r"normalize cannot be 'z'; it is None or one of 'sum'"):
        RegressionRanker(normalize="z").fit(X, Y, qid=QID)


@pytest.mark.parametrize("method", METHODS)
def test_single_documents_are_explained_among_those_of_their_query(method):
    ranker = RegressionRanker(normalize=method).fit(X, Y, qid=QID)
    own = VQ == 3
    scores = ranker.predict(V[own], group=[own.sum()])
    explained = ranker.explain(V[own][0], V[own][1], among=V[own])
    assert_allclose(explained.total, scores[0] - scores[1], rtol=1e-12)
    with pytest.raises(DataError, match="pass among=, the rows of their query"):
        ranker.explain(V[0], V[1])
    slots = MatchingRanker(3, bound="nonconvex", normalize=method).fit(X, Y, qid=QID)
    placed = slots.predict(V[own], group=[own.sum()])[:, 1]
    assert_allclose(slots.explain(V[own][0], V[own][1], 2, among=V[own]).total, placed[0] - placed[1], atol=1e-12)


def test_a_saved_model_keeps_it(tmp_path):
    ranker = LargeMarginRanker("nDCG@5", normalize="rank").fit(X, Y, qid=QID)
    ranker.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert again.normalize == "rank"
    assert_array_equal(again.predict(V, qid=VQ), ranker.predict(V, qid=VQ))
    with pytest.raises(ModelError, match="normalize cannot be 'guess'"):
        ranker.set_params(normalize="guess").save(tmp_path / "m")


@pytest.mark.filterwarnings("ignore::rankopt.errors.NoProgressWarning")  # the start may be the best on eval_set
def test_evaluation_data_pass_through_the_steps_of_a_pipeline():
    judge = {"eval_X": V, "eval_y": VY, "eval_qid": VQ}
    with config_context(enable_metadata_routing=True):
        ranker = LargeMarginRanker("nDCG@5").set_fit_request(eval_X=True)
        pipeline = make_pipeline(StandardScaler(), QueryNormalizer("rank"), ranker, transform_input=["eval_X"])
        pipeline.fit(X, Y, qid=QID, **judge)
        scaler = StandardScaler().fit(X)
        train, held = (
            QueryNormalizer("rank").fit_transform(scaler.transform(rows), qid=queries)
            for rows, queries in ((X, QID), (V, VQ))
        )
        plain = LargeMarginRanker("nDCG@5").fit(train, Y, qid=QID, eval_set=(held, VY), eval_qid=VQ)
        assert_array_equal(pipeline[-1].coef_, plain.coef_)
        assert pipeline[-1].best_score_ == plain.best_score_ == pipeline.score(V, VY, qid=VQ)
        assert_array_equal(pipeline.predict(V, qid=VQ), plain.predict(held))
        with pytest.raises(UnsetMetadataPassedError, match="eval_X"):
            make_pipeline(StandardScaler(), LargeMarginRanker()).fit(X, Y, qid=QID, **judge)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"eval_X": V}, "eval_y is missing, but eval_X was passed"),
        ({"eval_y": VY}, "eval_X is missing, but eval_y was passed"),
        ({"eval_X": V, "eval_y": VY}, "pass eval_qid="),
        ({"eval_X": V, "eval_y": VY, "eval_set": (V, VY)}, "pass one of them"),
    ],
)
def test_halves_of_evaluation_data_are_refused(given, told):
    with pytest.raises(DataError, match=told):
        LargeMarginRanker().fit(X, Y, qid=QID, **given)


def test_commands_apply_what_the_model_keeps(tmp_path):
    sample = load_sample("les-miserables")
    train, test = sample.train, sample.test
    files = {name: str(tmp_path / name) for name in ("train", "test", "scores", "m")}
    write_svmlight(train, files["train"])
    write_svmlight(test, files["test"])
    run = CliRunner().invoke
    done = run(rankopt, ["train", files["train"], "--model", files["m"], "--normalize", "zscore", "--lam", "0.1"])
    assert done.exit_code == 0, done.output
    expected = LargeMarginRanker(lam=0.1).fit(normalize(train)).predict(normalize(test))
    assert run(rankopt, ["predict", files["m"], files["test"], "--output", files["scores"]]).exit_code == 0
    assert_allclose(np.loadtxt(files["scores"]), expected, rtol=1e-6)
    measured = [
        run(rankopt, ["evaluate", files["test"], *how]).output.split("\n", 1)[1]
        for how in (["--model", files["m"]], ["--scores", files["scores"]])
    ]
    assert measured[0] == measured[1]
    ranked = run(rankopt, ["rank", files["m"], files["test"], "--k", "1"])
    assert ranked.exit_code == 0
    shown = [float(line.split("\t")[3]) for line in ranked.output.splitlines()]
    best = np.maximum.reduceat(expected, test.offsets[:-1])
    assert_allclose(shown, best, rtol=1e-6)


# normalize="auto": by the scales of the features from query to query.


def scaled(spread, queries=24, documents=25, seed=3):
    """Queries whose features have scales of their own: exp of normal numbers of this deviation."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(queries), documents)
    X = rng.normal(size=(qid.size, 4))
    y = np.clip(np.round(X @ [1.0, 0.5, 0.0, -1.0] + rng.normal(size=qid.size)), 0, 3)
    return X * np.exp(spread * rng.normal(size=(queries, 4)))[qid], y, qid


@pytest.mark.parametrize(("spread", "method"), [(0.0, None), (0.2, None), (1.0, "zscore")])
@pytest.mark.parametrize("kind", KINDS, ids=["margin", "loss", "pairwise", "regression", "matching"])
def test_auto_is_the_method_that_it_names(kind, spread, method):
    X, y, qid = scaled(spread)
    ranker, named = (kind(normalize=how).fit(X, y, qid=qid) for how in ("auto", method))
    assert ranker.normalize_ == named.normalize_ == method
    assert_array_equal(ranker.coef_, named.coef_)
    assert_array_equal(ranker.predict(X, qid=qid), named.predict(X, qid=qid))
    assert ranker.score(X, y, qid=qid) == named.score(X, y, qid=qid)


def test_auto_depends_on_differences_of_scale_alone():
    X, y, qid = scaled(1.0)
    order = np.random.default_rng(4).permutation(len(X))
    alike = scaled(0.0)[0] * [1e-6, 1.0, 1e6, 1e9] + np.arange(24)[qid][:, None]
    fewer = qid < 9
    same, noise = X[qid == 0], scaled(0.0, queries=60, documents=10)[0]
    cases = [
        ((X[order], y[order], qid[order]), "zscore"),
        ((X * [1e-6, 1.0, 1e6, 1e9], y, qid), "zscore"),
        ((alike, y, qid), None),
        ((X[fewer], y[fewer], qid[fewer]), None),
        ((csr_array(X), y, qid), None),
        ((np.tile(same, (24, 1)), y, qid), None),
        ((np.ones_like(X), y, qid), None),
        (scaled(1.0, queries=60, documents=6), "zscore"),
        ((np.exp(1.5 * noise), *scaled(0.0, queries=60, documents=10)[1:]), None),  # long tails are no other scale
    ]
    for (features, grades, ids), method in cases:
        assert RegressionRanker().fit(features, grades, qid=ids).normalize_ == method


def test_an_array_w0_is_of_the_features_as_given():
    X, y, qid = scaled(1.0)
    assert LargeMarginRanker().fit(X, y, qid=qid).normalize_ == "zscore"
    assert LargeMarginRanker(w0=np.ones(4)).fit(X, y, qid=qid).normalize_ is None
    assert LargeMarginRanker(w0=np.ones(4), normalize="rank").fit(X, y, qid=qid).normalize_ == "rank"


def test_what_auto_chose_is_kept(tmp_path, capsys):
    X, y, qid = scaled(1.0)
    ranker = LargeMarginRanker(verbose=1).fit(X, y, qid=qid)
    assert "normalize='auto' is 'zscore'" in capsys.readouterr().err
    ranker.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert (again.normalize, again.normalize_) == ("auto", "zscore")
    assert_array_equal(again.predict(X, qid=qid), ranker.predict(X, qid=qid))
    own = X[qid == 3]
    scores = again.predict(own, group=[len(own)])
    assert_allclose(again.explain(own[0], own[1], among=own).total, scores[0] - scores[1], rtol=1e-12)
    again.normalize_ = "guess"
    with pytest.raises(ModelError, match="normalize_ is 'guess'"):
        again.save(tmp_path / "m")


def test_the_command_line_says_what_auto_chose(tmp_path):
    X, y, qid = scaled(1.0)
    write_svmlight(Queries.from_arrays(X, y, qid=qid), tmp_path / "train")
    words = ["train", str(tmp_path / "train"), "--model", str(tmp_path / "m"), "--ranker", "regression", "--normalize"]
    for option, method in (("auto", "zscore"), ("none", None)):
        done = CliRunner().invoke(rankopt, [*words, option])
        assert done.exit_code == 0, done.output
        assert ("--normalize auto is zscore" in done.output) == (option == "auto")
        assert load_model(tmp_path / "m").normalize_ == method


@pytest.mark.parametrize("fitted", [{"normalize": "zscore", "missing": "error"}, {"missing": "indicator"}])
def test_options_that_are_set_after_fit_are_of_the_next_fit(fitted, tmp_path):
    with_nan = X.copy()
    if fitted["missing"] == "indicator":
        with_nan[::7, 0] = np.nan
    ranker = PairwiseRanker(**fitted).fit(with_nan, Y, qid=QID)
    scores = ranker.predict(with_nan, qid=QID)
    other = {"normalize": "rank", "missing": "error" if fitted["missing"] == "indicator" else "indicator"}
    ranker.set_params(**other)
    ranker.save(tmp_path / "m")
    for same in (ranker, load_model(tmp_path / "m")):
        assert_array_equal(same.predict(with_nan, qid=QID), scores)
        own = np.flatnonzero(QID == 3)
        x, y = own[:2]
        shown = same.explain(with_nan[x], with_nan[y], among=with_nan[own])
        assert_allclose(shown.total, scores[x] - scores[y], atol=1e-12)
