"""Rankers fit into scikit-learn; they score, rank and explain what they say they do."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankopt.constraints import Admissible
from rankopt.data import Queries, concatenate, load_sample, read_svmlight
from rankopt.errors import DataError
from rankopt.measures import evaluate, nDCG, parse
from rankopt.rankers import (
    RANKERS,
    CofiRanker,
    DirectRanker,
    LargeMarginRanker,
    LossRanker,
    PairwiseRanker,
    RegressionRanker,
    SmoothRanker,
    load_model,
)
from rankopt.rankers.base import Ranker

N, D, M = 60, 6, 7
NAMES = ["année", "citas", "length", "pagerank", "bm25", "age"]


@pytest.mark.every(5)
@pytest.mark.filterwarnings("ignore::rankopt.errors.NoProgressWarning")  # some checks fit pure noise
@parametrize_with_checks(
    [
        DirectRanker(init="ridge"),
        RegressionRanker(),
        PairwiseRanker(),
        LossRanker(),
        LargeMarginRanker(),
        SmoothRanker(),
    ]
)
def test_scikit_learn_accepts_the_ranker(estimator, check):
    check(estimator)


@pytest.mark.study
@pytest.mark.filterwarnings("ignore::rankopt.errors.NoProgressWarning")
@parametrize_with_checks(
    [
        DirectRanker(),
        RegressionRanker(alpha=0.1, target="grade"),
        LargeMarginRanker(bound="nonconvex", position_weights="power(0.5)"),
        LargeMarginRanker(constraints=Admissible(3)),
    ]
)
def test_scikit_learn_accepts_other_options(estimator, check):
    check(estimator)


@pytest.mark.parametrize("measure", ["nDCG@10", "nDCG@3", parse("nDCG(gain='linear')@5")])
def test_score_is_the_weighted_mean_of_the_measure(rows, measure):
    features, grades, qid = rows
    ranker = RegressionRanker(measure=measure).fit(features, grades, qid=qid)
    queries = Queries.from_arrays(features, grades, qid=qid)
    values = evaluate(queries, ranker.predict(features), measure)[measure]
    weight = np.array([1.0 + q for q in queries.query_ids])
    assert ranker.score(features, grades, qid=qid) == pytest.approx(values.mean())
    assert ranker.score(features, grades, qid=qid, sample_weight=1.0 + qid) == pytest.approx(
        weight @ values / weight.sum()
    )
    half = queries.select([4, 1])
    halves = np.repeat([3.0, 1.0], np.diff(half.offsets))
    assert ranker.score(half, sample_weight=halves) == pytest.approx((3 * values[4] + values[1]) / 4)


def test_rank_lists_rows_by_decreasing_score_and_equal_documents_as_they_came(rows):
    features, grades, qid = rows
    ranker = RegressionRanker().fit(features, grades, qid=qid)
    scores = ranker.predict(features)
    orders = ranker.rank(features, qid)
    assert list(orders) == list(dict.fromkeys(qid.tolist()))
    for query, order in orders.items():
        assert sorted(order) == np.flatnonzero(qid == query).tolist()
        assert (np.diff(scores[order]) <= 0).all()
        assert_array_equal(ranker.rank(features, qid, k=3)[query], order[:3])
    one = ranker.rank(features)
    assert sorted(one) == list(range(N))
    assert one.tolist().index(31) == one.tolist().index(7) + 1  # equal documents
    ranker.coef_ = np.zeros(D)
    assert_array_equal(features[ranker.rank(features)], features[::-1][ranker.rank(features[::-1])])
    assert_array_equal(ranker.rank(np.ones((N, D))), np.arange(N))


def test_rank_gives_document_ids_where_the_data_has_them(rows):
    features, grades, qid = rows
    names = [("doc", row) for row in range(N)]
    queries = Queries.from_arrays(features, grades, qid=qid, documents=names)
    ranker = RegressionRanker().fit(queries)
    by_row = ranker.rank(features, qid)
    for query, order in ranker.rank(queries).items():
        assert order.tolist() == [names[row] for row in by_row[query]]
    alone = ranker.rank(queries.select([2]), k=2)
    assert alone.tolist() == [names[row] for row in by_row[queries.query_ids[2]][:2]]


def test_an_explanation_adds_up_to_the_difference_of_the_scores(rows):
    features, grades, qid = rows
    frame = pd.DataFrame(features, columns=NAMES).assign(qid=qid)
    ranker = RegressionRanker().fit(frame, grades)
    reasons = ranker.explain(frame.iloc[3], frame.iloc[[4]])
    scores = ranker.predict(frame)
    assert reasons.total == pytest.approx(scores[3] - scores[4])
    assert (np.diff(np.abs(reasons.contributions)) <= 0).all()
    assert sorted(reasons.features) == sorted(NAMES)
    j = NAMES.index(reasons.features[0])
    assert reasons.contributions[0] == ranker.coef_[j] * (features[3, j] - features[4, j])
    lines = str(reasons).splitlines()
    assert len(lines) == D + 2
    assert lines[1].startswith(reasons.features[0])
    with pytest.raises(ValueError, match="read-only"):
        reasons.contributions[0] = 0.0


def test_a_long_explanation_prints_the_largest_terms_and_the_sum_of_the_rest():
    rng = np.random.default_rng(2)
    features, grades = rng.normal(size=(50, 30)), rng.integers(0, 3, 50)
    ranker = RegressionRanker().fit(csr_array(features), grades)
    reasons = ranker.explain(features[0].tolist(), csr_array(features[1:2]))
    text = str(reasons)
    assert len(text.splitlines()) == 13
    assert "20 others" in text
    assert set(reasons.features) == {f"x{j}" for j in range(30)}


def test_options_survive_cloning():
    ranker = RegressionRanker(0.25, target="grade", measure="nDCG@3")
    options = {"alpha": 0.25, "target": "grade", "intercept": "query", "measure": "nDCG@3"}
    options |= {"normalize": "auto", "coef_bounds": None, "missing": "error"}
    assert clone(ranker).get_params() == ranker.get_params() == options


def test_the_table_names_every_ranker():
    import rankopt.rankers as package

    for name in RANKERS:
        assert issubclass(getattr(package, name), CofiRanker if name == "CofiRanker" else Ranker)
        assert name in dir(package)
    assert not hasattr(package, "OracleRanker")


# Query ids survive scikit-learn's pipelines, searches and folds of queries.


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


def test_query_ids_reach_the_ranker_through_a_pipeline(rows, routing):
    features, grades, qid = rows
    weight = {query: query + 1.0 for query in range(M)}
    pipeline = make_pipeline(StandardScaler(), RegressionRanker(0.1))
    pipeline.fit(features, grades, qid=qid, query_weight=weight)
    scaled = StandardScaler().fit_transform(features)
    ranker = RegressionRanker(0.1).fit(scaled, grades, qid=qid, query_weight=weight)
    assert_array_equal(pipeline[-1].coef_, ranker.coef_)
    assert pipeline.score(features, grades, qid=qid) == ranker.score(scaled, grades, qid=qid)
    row_weight = 1.0 + qid
    assert pipeline.score(features, grades, qid=qid, sample_weight=row_weight) == ranker.score(
        scaled, grades, qid=qid, sample_weight=row_weight
    )


@pytest.mark.parametrize("name", [int, str, lambda q: ("query", q)], ids=["int", "text", "tuple"])
def test_a_grid_search_over_folds_of_queries_scores_as_by_hand(rows, routing, name):
    features, grades, qid = rows
    named = [name(q) for q in qid.tolist()]
    alphas = [0.01, 10.0, 1000.0]
    search = GridSearchCV(
        make_pipeline(StandardScaler(), RegressionRanker()), {"regressionranker__alpha": alphas}, cv=GroupKFold(3)
    )
    search.fit(features, grades, qid=named, groups=qid)
    expected = []
    for train, test in GroupKFold(3).split(features, grades, qid):
        scaler = StandardScaler().fit(features[train])
        seen, unseen = scaler.transform(features[train]), scaler.transform(features[test])
        fitted = [RegressionRanker(alpha).fit(seen, grades[train], qid=qid[train]) for alpha in alphas]
        expected.append([ranker.score(unseen, grades[test], qid=qid[test]) for ranker in fitted])
    assert_allclose(search.cv_results_["mean_test_score"], np.mean(expected, axis=0), rtol=1e-12)
    assert search.score(features, grades, qid=named) == search.best_estimator_.score(features, grades, qid=named)


def test_cross_validation_keeps_weights_that_are_keyed_by_query(rows, routing):
    features, grades, qid = rows
    weight = {query: query + 1.0 for query in range(M)}
    params = {"qid": qid, "query_weight": weight, "groups": qid}
    scores = cross_val_score(RegressionRanker(), features, grades, params=params, cv=GroupKFold(3))
    for score, (train, test) in zip(scores, GroupKFold(3).split(features, grades, qid), strict=True):
        ranker = RegressionRanker().fit(features[train], grades[train], qid=qid[train], query_weight=weight)
        assert score == ranker.score(features[test], grades[test], qid=qid[test])


def test_a_pipeline_does_not_pass_evaluation_data_that_its_steps_would_not_scale(rows, routing):
    features, grades, qid = rows
    with pytest.raises(UnsetMetadataPassedError, match="eval_set"):
        make_pipeline(StandardScaler(), RegressionRanker()).fit(features, grades, qid=qid, eval_set=(features, grades))


def test_without_routing_a_pipeline_says_which_line_is_missing(rows):
    features, grades, qid = rows
    pipeline = make_pipeline(StandardScaler(), RegressionRanker())
    pipeline.fit(features, grades, regressionranker__qid=qid)
    with pytest.raises(DataError, match=r"sklearn\.set_config\(enable_metadata_routing=True\)"):
        pipeline.score(features, grades)


# The spine on real input: LETOR OHSUMED and MQ2008 read, learned to a proven gap, saved, loaded, applied.


BOUNDS = ["convex", "tie-aware", "nonconvex"]


@pytest.fixture(scope="module")
def parts(data_folder):
    return [read_svmlight(data_folder / "letor4-mq2008" / f"S{i}.txt.gz") for i in (1, 2, 3)]


@pytest.fixture(scope="module")
def ohsumed(data_folder):
    folder = data_folder / "letor3-ohsumed" / "QueryLevelNorm" / "Fold1"
    return read_svmlight(folder / "train.txt.gz"), read_svmlight(folder / "test.txt.gz")


def shuffled(queries, seed):
    """Documents shuffled, queries relabeled."""
    rows = np.random.default_rng(seed).permutation(queries.n_documents)
    query = np.repeat(np.arange(len(queries)), np.diff(queries.offsets))
    names = [f"relabeled {37 * q % 1009}" for q in query[rows]]
    return Queries.from_arrays(queries.features[rows], queries.relevance[rows], qid=names)


@pytest.mark.every(2)
@pytest.mark.filterwarnings("ignore::rankopt.errors.NoProgressWarning")  # the convex bound is least at w = 0 on MQ2008
@pytest.mark.parametrize("bound", BOUNDS)
def test_shuffling_relabelling_and_splitting_real_files_change_nothing(parts, bound):
    ranker = LargeMarginRanker("nDCG@10", bound=bound, lam=1e-2, position_weights="power(0.5)")
    whole = concatenate(parts)
    other = shuffled(concatenate([parts[2], parts[0], parts[1]]), 1)
    rng = np.random.default_rng(2)
    for _ in range(3):
        w = rng.normal(size=whole.n_features)
        risk, same = (ranker.objective(queries).risk.at(w).value for queries in (whole, other))
        assert same == pytest.approx(risk, rel=1e-12)
    first, second = ranker.fit(parts[0]).certificate_, ranker.fit(shuffled(parts[0], 3)).certificate_
    assert abs(first.primal - second.primal) <= min(first.gap, second.gap)


def test_ohsumed_end_to_end(ohsumed, tmp_path):
    train, test = ohsumed
    ranker = LargeMarginRanker(
        "nDCG@10", bound="nonconvex", lam=1.0, argmax_solver="exact", master_solver="active_set"
    ).fit(train)
    assert ranker.certificate_.relative_gap <= ranker.tol
    ranker.save(tmp_path / "ohsumed.rankopt")
    loaded = load_model(tmp_path / "ohsumed.rankopt")
    np.testing.assert_array_equal(loaded.predict(test), ranker.predict(test))
    assert loaded.certificate_ == ranker.certificate_
    learned = evaluate(test, ranker.predict(test), "nDCG@10", convention="letor3").mean()
    chance = evaluate(
        test, np.random.default_rng(0).normal(size=test.n_documents), "nDCG@10", convention="letor3"
    ).mean()
    assert learned > chance + 0.1


@pytest.mark.study
def test_argmax_solvers_agree_along_a_real_run(ohsumed):
    """At points of a real run, exact and scipy find one risk, and prices prove every ranking of the exact one."""
    train, _ = ohsumed
    trials = []

    def follow(step, state):
        trials.append(state.trial)
        return step.step == 40

    LargeMarginRanker("nDCG@10", bound="nonconvex", position_weights="power(0.5)", lam=0.1, callbacks=[follow]).fit(
        train
    )
    for w in [np.zeros(train.n_features), *trials[::13]]:
        exact, scipy = (
            LargeMarginRanker("nDCG@10", bound="nonconvex", position_weights="power(0.5)", argmax_solver=argmax)
            .objective(train)
            .risk
            for argmax in ("exact", "scipy")
        )
        assert exact.at(w).value == pytest.approx(scipy.at(w).value, rel=1e-9)
        assert scipy.at(w).bound <= exact.at(w).bound * (1 + 1e-9)


def test_rank_svm_beats_chance_on_mq2008(parts):
    ranker = PairwiseRanker(lam=1e-3).fit(concatenate(parts[:2]))
    assert ranker.certificate_.relative_gap <= ranker.tol
    assert evaluate(parts[2], ranker.predict(parts[2]), "nDCG@10", convention="burges").mean() > 0.42


# Units: scaling features, gains or grades changes results only as mathematics says.


UNIT_FREE = {
    "convex": LargeMarginRanker("nDCG@10", bound="convex"),
    "nonconvex": LargeMarginRanker("nDCG@10"),
    "tie-aware": LargeMarginRanker("nDCG@10", bound="tie-aware"),
    "l1": LargeMarginRanker("nDCG@10", penalty="l1"),
    "normalized": LargeMarginRanker("nDCG@10", normalize="zscore"),
    "lam auto": LargeMarginRanker("nDCG@10", bound="convex", lam="auto"),
    "ridge": RegressionRanker(),
}


def closeness(name):
    """What w may differ by: rounding; of a convex bound from 0, what the masters leave open after another rounding."""
    return {"convex": 1e-5, "lam auto": 1e-4}.get(name, 1e-9)  # "lam auto" has a small λ: within the gap of training


@pytest.mark.parametrize("name", UNIT_FREE)
@pytest.mark.parametrize("unit", [1e-3, 1e3, 2.0**40])
def test_the_unit_of_the_features_does_not_change_a_score(name, unit):
    """The strength of the penalty is in the units of the data, and so are folds and starts."""
    sample = load_sample("les-miserables")
    train, test = sample.train, sample.test

    def scores(factor):
        ranker = clone(UNIT_FREE[name]).fit(train.replace(features=train.features * factor))
        return ranker, ranker.predict(test.replace(features=test.features * factor))

    (first, known), (other, found) = scores(1.0), scores(unit)
    assert_allclose(found, known, rtol=0, atol=closeness(name) * np.abs(known).max())
    if name == "convex":
        assert other.certificate_.value == pytest.approx(first.certificate_.value, rel=1e-7)


def same_in_all_units(name, fitted):
    first = fitted(1.0)
    for unit in (1e-3, 1e3):
        other = fitted(unit)
        assert_allclose(other.coef_, first.coef_, rtol=0, atol=closeness(name) * np.abs(first.coef_).max())
        assert other.certificate_.value == pytest.approx(first.certificate_.value, rel=1e-7)


@pytest.mark.parametrize("name", ["convex", "nonconvex", "tie-aware", "normalized"])
def test_the_unit_of_gains_does_not_change_a_model(name):
    """nDCG divides by the best DCG: gains times 1,000 are the same measure."""
    train = load_sample("les-miserables").train

    def fitted(unit):
        measure = nDCG(gain=[0.0, 1.0 * unit, 3.0 * unit, 7.0 * unit, 15.0 * unit, 31.0 * unit]) @ 10
        return clone(UNIT_FREE[name]).set_params(measure=measure).fit(train)

    same_in_all_units(name, fitted)


def test_the_unit_of_grades_does_not_change_a_model_with_linear_gains():
    train = load_sample("les-miserables").train
    for name, ranker in (
        ("convex", LargeMarginRanker("nDCG(gain='linear')@10", bound="convex", w0="zeros")),
        ("pairwise", PairwiseRanker()),
    ):
        same_in_all_units(
            name, lambda unit, ranker=ranker: clone(ranker).fit(train.replace(relevance=train.relevance * unit))
        )
