"""Scores of an ONNX graph, by onnxruntime, are those of the ranker."""

from importlib.util import find_spec

import numpy as np
import pytest

from rankopt.data import Queries, load_sample
from rankopt.errors import OptionError
from rankopt.experimental import DirectBoostedRanker
from rankopt.rankers import (
    BoostedRanker,
    CofiRanker,
    DirectRanker,
    LargeMarginRanker,
    MatchingRanker,
    PairwiseRanker,
    RegressionRanker,
    load_model,
    save_model,
    save_onnx,
    to_onnx,
)

pytestmark = [
    pytest.mark.skipif(find_spec(name) is None, reason=f"{name} is not installed") for name in ("onnx", "onnxruntime")
]

SAMPLE = load_sample("les-miserables")


def served(graph, features):
    """What a server that knows onnxruntime alone answers."""
    import onnxruntime

    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    (scores,) = session.run(["scores"], {"documents": np.ascontiguousarray(features, dtype=np.float64)})
    return scores


def agrees(ranker, queries):
    graph, told = to_onnx(ranker).SerializeToString(), ranker.predict(queries)
    for start, stop in zip(queries.offsets[:-1], queries.offsets[1:], strict=True):
        scores = served(graph, queries.features[start:stop])
        assert scores.dtype == np.float64
        np.testing.assert_allclose(scores, told[start:stop], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("normalize", [None, "zscore", "minmax", "sum"])
def test_linear_scores(normalize):
    few = SAMPLE.train.select(range(5))
    agrees(RegressionRanker(1.0, normalize=normalize).fit(few), SAMPLE.test)


def test_what_auto_chose_is_computed_by_the_graph():
    random = np.random.default_rng(0)
    qid = np.repeat(np.arange(12), 20)
    features = random.normal(size=(qid.size, 3)) * np.exp(random.normal(size=(12, 3)))[qid]
    queries = Queries.from_arrays(features, random.integers(0, 3, qid.size), qid=qid)
    ranker = RegressionRanker().fit(queries)
    assert (ranker.normalize, ranker.normalize_) == ("auto", "zscore")
    agrees(ranker, queries)


def test_scores_of_features_that_are_constant_in_a_query():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(12, 3))
    features[:6, 0], features[6:, 1], features[:, 2] = 5.0, 0.0, 1e8
    queries = Queries.from_arrays(features, rng.integers(0, 3, 12), qid=np.arange(12) // 6)
    for normalize in ("zscore", "minmax", "sum"):
        agrees(RegressionRanker(1.0, normalize=normalize).fit(queries), queries)


@pytest.mark.parametrize("missing", ["error", "indicator"])
@pytest.mark.parametrize("normalize", ["zscore", "minmax", "sum"])
@pytest.mark.parametrize("scale", [1e160, 1e-170, 1e-310])
def test_squares_of_features_leave_double_precision(scale, normalize, missing):
    random = np.random.default_rng(0)
    features, qid = random.normal(size=(120, 3)), np.repeat(np.arange(6), 20)
    features[:, 1] = np.where(random.random(120) < 0.3, 0.0 if missing == "error" else np.nan, features[:, 1])
    grades = np.clip(np.rint(features[:, 0] + random.normal(size=120) + 1), 0, 3)
    queries = Queries.from_arrays(features * [scale, scale, 1], grades, qid=qid)
    agrees(RegressionRanker(1.0, normalize=normalize, missing=missing).fit(queries), queries)


@pytest.mark.parametrize("members", [1, 2])
def test_boosted_trees(members):
    pytest.importorskip("lightgbm")
    few = SAMPLE.train.select(range(8))
    agrees(BoostedRanker(n_estimators=6, n_bags=members, num_leaves=5, random_state=0).fit(few), SAMPLE.test)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("strategy", ["stage-wise", "leveraging"])
def test_trees_with_exact_weights(strategy):
    few = SAMPLE.train.select(range(8))
    agrees(DirectBoostedRanker(strategy=strategy, n_estimators=5, num_leaves=4, random_state=0).fit(few), SAMPLE.test)


def test_trees_that_never_split():
    same = Queries.from_arrays(np.zeros((6, 2)), [0, 1, 2, 0, 1, 2], qid=[0, 0, 0, 1, 1, 1])
    ranker = DirectBoostedRanker(n_estimators=2, random_state=0).fit(same)
    agrees(ranker, same)


def test_a_loaded_model_and_a_written_file(tmp_path):
    ranker = PairwiseRanker(lam=0.1).fit(SAMPLE.train.select(range(4)))
    save_model(ranker, tmp_path / "m.rankopt")
    save_onnx(load_model(tmp_path / "m.rankopt"), tmp_path / "m.onnx")
    scores = served((tmp_path / "m.onnx").read_bytes(), SAMPLE.test.features)
    np.testing.assert_allclose(scores, ranker.predict(SAMPLE.test), rtol=1e-6)


def test_what_cannot_be_written_says_why():
    few = SAMPLE.train.select(range(4))
    with pytest.raises(OptionError, match=r"normalize = 'rank' of RegressionRanker .*QueryNormalizer"):
        to_onnx(RegressionRanker(1.0, normalize="rank").fit(few))
    with pytest.raises(OptionError, match="CofiRanker cannot be written as ONNX"):
        to_onnx(CofiRanker().fit([["u", "v"], ["u", "w"], ["x", "v"], ["x", "w"]], [1, 2, 2, 1]))
    with pytest.raises(ValueError, match="not fitted"):
        to_onnx(LargeMarginRanker())
    assert not hasattr(CofiRanker, "_as_graph")
    assert hasattr(DirectRanker, "_as_graph")


def test_slots_have_no_graph():
    with pytest.raises(OptionError, match="weights for each slot"):
        to_onnx(MatchingRanker().fit(SAMPLE.train))
