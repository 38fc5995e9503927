"""Rankers under constraints: they show the best admissible ranking, learn for it, and survive folds and shuffling."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankopt.constraints import Admissible
from rankopt.data import Queries
from rankopt.errors import DataError, OptionError
from rankopt.losses import BOUNDS
from rankopt.measures import compare, evaluate, join, read_qrels, read_run
from rankopt.optimize import METHODS
from rankopt.rankers import LargeMarginRanker, PairwiseRanker, RegressionRanker, load_model

SITES = Admissible(4, on_infeasible="truncate").at_most(1, by="site")
QUOTA = Admissible(4).at_least(1, documents="new", positions=range(2))
CROSSING = Admissible(4, on_infeasible="truncate").at_most(1, by="site").at_most(2, documents="new")
M = 12


@pytest.fixture
def data():
    """Features, grades, ids of 12 queries of 8 shuffled documents, and attributes; each query has a new document."""
    rng = np.random.default_rng(0)
    n = 8 * M
    features = rng.normal(size=(n, 5))
    qid = rng.permutation(np.repeat(np.arange(M), 8))
    grades = np.clip(np.round(features @ rng.normal(size=5) + rng.normal(size=n)), 0, 2)
    site = rng.integers(0, 6, n).astype(str)
    new = rng.random(n) < 0.3
    new[[np.flatnonzero(qid == query)[0] for query in range(M)]] = True
    return features, grades, qid, {"site": site, "new": new}


def best_by_brute_force(admissible, attributes, scores, weights):
    """The largest Σ weights_i s_π(i) over the admissible rankings of one query."""
    one = admissible.for_query(attributes, scores.size)
    orders = np.array(list(permutations(range(scores.size), one.positions)))
    values = scores[orders] @ weights[: one.positions]
    return next(float(values[place]) for place in np.argsort(-values) if one.is_feasible(orders[place]))


@pytest.mark.parametrize("admissible", [SITES, QUOTA, CROSSING], ids=["sites", "quota", "crossing"])
@pytest.mark.parametrize(
    ("ranker", "weights"),
    [
        (RegressionRanker(), 1 / np.log2(np.arange(2.0, 10.0))),
        (PairwiseRanker(), 1 / np.log2(np.arange(2.0, 10.0))),
        (LargeMarginRanker(position_weights="power(1)"), 1 / np.arange(1.0, 9.0)),
        (
            LargeMarginRanker(position_weights="power(1)@2"),
            1 / np.log2(np.arange(2.0, 10.0)),
        ),  # a decay that does not order all
    ],
    ids=["regression", "pairwise", "power", "cut"],
)
def test_any_ranker_shows_the_best_admissible_ranking(ranker, weights, admissible, data):
    features, grades, qid, attributes = data
    ranker.fit(features, grades, qid=qid)
    scores = ranker.predict(features)
    shown = ranker.rank(features, qid, attributes=attributes, constraints=admissible)
    for query, rows in [*shown.items()][:4]:
        members = np.flatnonzero(qid == query)
        own = {name: values[members] for name, values in attributes.items()}
        assert admissible.for_query(own, members.size).is_feasible(np.searchsorted(members, rows))
        best = best_by_brute_force(admissible, own, scores[members], weights)
        assert weights[: rows.size] @ scores[rows] == pytest.approx(best, abs=1e-9)
    first = ranker.rank(features, qid, k=2, attributes=attributes, constraints=admissible)
    assert all(rows.tolist() == shown[query][:2].tolist() for query, rows in first.items())


@pytest.mark.parametrize("ties", [False, True])
def test_rankings_under_crossing_quotas_are_the_best_of_all(ties):
    """Each call has another set; the same documents again, and other kinds of labels that compare equal, too."""
    random, weights = np.random.default_rng(4 + ties), 1 / np.log2(np.arange(2.0, 6.0))
    for _ in range(15):
        features = np.round(random.normal(size=(7, 1)), 0 if ties else 9)
        attributes = {"site": random.integers(0, 4, 7), "topic": random.choice(["a", "b", "c"], 7)}
        attributes["new"] = random.permutation(np.arange(7) < 2)
        admissible = Admissible(4, on_infeasible="truncate").at_most(2, by="site").at_most(2, by="topic")
        if random.random() < 0.5:
            admissible = admissible.at_least(1, documents="new", positions=range(3))
        ranker = RegressionRanker().fit(features, features[:, 0] - features.min(), qid=np.zeros(7))
        scores = ranker.predict(features)
        shown = ranker.rank(features, attributes=attributes, constraints=admissible)
        assert admissible.for_query(attributes, 7).is_feasible(shown)
        best = best_by_brute_force(admissible, attributes, scores, weights)
        assert weights[: shown.size] @ scores[shown] == pytest.approx(best, abs=1e-9)
        for new in (attributes["new"].astype(object), attributes["new"].astype(int)):
            again = ranker.rank(features, attributes={**attributes, "new": new}, constraints=admissible)
            assert again.tolist() == shown.tolist()
        shuffle = random.permutation(7)
        moved = {name: values[shuffle] for name, values in attributes.items()}
        again = ranker.rank(features[shuffle], attributes=moved, constraints=admissible)
        if not ties:
            assert shuffle[again].tolist() == shown.tolist()
        assert scores[shuffle][again].tolist() == pytest.approx(scores[shown].tolist())


@pytest.mark.parametrize(
    "measure", ["nDCG@6", "nDCG", "P@6", "R@6", "AP", "AP@6", "RR", "ERR", "Rprec", "MeanNDCG", "AUC"]
)
def test_score_is_the_measure_of_the_list_that_is_shown_as_a_run_that_lacks_the_rest(measure, data, tmp_path):
    features, grades, qid, attributes = data
    ranker = LargeMarginRanker("nDCG@6", constraints=SITES, lam=0.1).fit(
        features, grades, qid=qid, attributes=attributes
    )
    run = ranker.rank(features, qid, attributes=attributes)
    rows = np.concatenate([*run.values()])
    assert rows.size < 4 * M  # some lists are truncated
    (tmp_path / "qrels").write_text("".join(f"{qid[row]} 0 {row} {grades[row]:.0f}\n" for row in range(grades.size)))
    (tmp_path / "run").write_text("".join(f"{qid[row]} Q0 {row} 0 {-place} t\n" for place, row in enumerate(rows)))
    expected = evaluate(*join(read_qrels(tmp_path / "qrels"), read_run(tmp_path / "run")), measure)
    own = ranker.set_params(measure=measure)
    score = own.score(features, grades, qid=qid, attributes=attributes)
    assert score == pytest.approx(expected.mean())
    free = own.score(features, grades, qid=qid, attributes=attributes, constraints=Admissible(8))
    assert (score == free) == (measure == "RR")  # the first document is that without constraints


def test_what_constraints_cost_is_a_paired_difference_over_queries(data):
    features, grades, qid, attributes = data[:4]
    ranker = RegressionRanker(measure="nDCG@4").fit(features, grades, qid=qid)
    rows = {"qid": qid, "attributes": attributes}
    found, free = (ranker.evaluate(features, grades, **rows, constraints=one) for one in (SITES, Admissible(4)))
    assert found.mean() == ranker.score(features, grades, **rows, constraints=SITES)
    cost = compare(found, free)
    for query in set(qid.tolist()):
        own = qid == query
        rest = {"attributes": {name: np.asarray(values)[own] for name, values in attributes.items()}}
        alone = ranker.score(features[own], grades[own], qid=qid[own], **rest, constraints=SITES)
        assert found.for_queries([query])["nDCG@4"][0] == pytest.approx(alone)
    assert cost.difference == pytest.approx(found.mean() - free.mean())
    assert cost.interval[0] < cost.difference < cost.interval[1]
    exact = ranker.evaluate(features, grades, **rows, constraints=SITES, measures=["nDCG@4", "P@3"])
    assert_array_equal(exact["nDCG@4"], found["nDCG@4"])


def test_more_documents_than_the_constraints_rank_are_refused(data):
    features, grades, qid, attributes = data
    ranker = LargeMarginRanker(lam=1.0, constraints=SITES).fit(features, grades, qid=qid, attributes=attributes)
    with pytest.raises(OptionError, match=r"k must be at most 4, the positions of Admissible\(k=4.*; got 5"):
        ranker.rank(features, qid, k=5, attributes=attributes)
    free = ranker.rank(features, qid, k=5, attributes=attributes, constraints=Admissible(8))
    assert all(rows.size == 5 for rows in free.values())


def test_a_list_that_a_quota_truncates_is_not_filled_up():
    """One document a group shows 2 of 5: gains 0 and 3 at two positions, of an ideal list of gains 7, 3, 1."""
    scores, grades, group = np.array([5.0, 4, 3, 2, 1]), np.array([0, 3, 2, 1, 0]), np.array(list("aabaa"))
    ranker = RegressionRanker(0.0, measure="nDCG@5").fit(scores[:, None], scores, qid=[0] * 5)
    one = Admissible(5, on_infeasible="truncate").at_most(1, by="g")
    value = ranker.score(scores[:, None], grades, qid=[0] * 5, attributes={"g": group}, constraints=one)
    ideal = 7 + 3 / np.log2(3) + 1 / 2
    assert value == pytest.approx((3 / np.log2(3)) / ideal)


@pytest.mark.every(4)
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(
    ("method", "admissible"),
    [*((method, SITES) for method in METHODS), ("bundle", QUOTA), ("cutting_planes", QUOTA)],  # a quota is slow
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_gap_closes_under_constraints(bound, method, admissible, data):
    features, grades, qid, attributes = data
    options = {"bound": bound, "lam": 0.1, "constraints": admissible}
    ranker = LargeMarginRanker(method=method, tol=1e-3, **options)
    found = ranker.fit(features, grades, qid=qid, attributes=attributes).certificate_
    assert found.kind == ("global" if bound == "convex" else "stationary")
    assert found.relative_gap <= 1e-3
    if bound == "convex":
        best = LargeMarginRanker(tol=1e-6, **options).fit(features, grades, qid=qid, attributes=attributes).certificate_
        assert found.bound <= best.primal <= found.primal + best.gap


@pytest.mark.every(7)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_reaches_the_objective_of_soft_constraints_within_its_gap(method, data):
    features, grades, qid, attributes = data
    options = {"bound": "convex", "lam": 1.0, "constraints": SITES.penalized("site", penalty=0.05)}
    ranker = LargeMarginRanker(method=method, tol=2e-2, **options).fit(features, grades, qid=qid, attributes=attributes)
    found = ranker.certificate_
    best = LargeMarginRanker(tol=1e-6, **options).fit(features, grades, qid=qid, attributes=attributes).certificate_
    assert found.relative_gap <= 2e-2
    assert best.bound <= found.primal
    assert found.bound <= best.primal <= found.primal + best.gap


def test_training_under_a_set_is_better_for_it_than_training_without(data):
    """The objective of the set, at the weights learned for it and at those learned for all rankings."""
    features, grades, qid, attributes = data
    queries = Queries.from_arrays(features, grades, qid=qid, attributes=attributes)
    within = LargeMarginRanker(bound="convex", lam=0.1, constraints=SITES).fit(queries)
    without = LargeMarginRanker(bound="convex", lam=0.1).fit(queries)
    objective = within.objective(queries)
    assert objective.upper(within.coef_, objective.risk.at(within.coef_)) == pytest.approx(within.certificate_.primal)
    other = objective.upper(without.coef_, objective.risk.at(without.coef_))
    assert other > within.certificate_.primal + within.certificate_.gap


@pytest.mark.every(5)
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("admissible", [SITES, QUOTA], ids=["sites", "quota"])
def test_shuffled_rows_and_renamed_queries_give_the_same_model(bound, admissible, data):
    features, grades, qid, attributes = data
    features, grades = features.copy(), np.minimum(grades, 1)
    features[::7] = features[0]  # equal documents on different sites: only their attributes tell them apart
    ranker = LargeMarginRanker(bound=bound, lam=0.1, constraints=admissible)
    expected = ranker.fit(features, grades, qid=qid, attributes=attributes).coef_
    for seed in range(2):
        p = np.random.default_rng(seed).permutation(grades.size)
        moved = {name: values[p] for name, values in attributes.items()}
        names = np.array([f"q{(5 * query) % M}" for query in qid[p]])
        assert_array_equal(ranker.fit(features[p], grades[p], qid=names, attributes=moved).coef_, expected)


def test_all_ways_of_giving_attributes_are_the_same(data):
    features, grades, qid, attributes = data
    structured = np.zeros(grades.size, dtype=[("site", "U3"), ("new", "?")])
    for name, values in attributes.items():
        structured[name] = values
    frame = pd.DataFrame(attributes, index=np.arange(grades.size)[::-1])
    categories = frame.assign(site=frame["site"].astype("category"), other=1.0)
    ranker = LargeMarginRanker(lam=0.1, constraints=SITES)
    expected = ranker.fit(features, grades, qid=qid, attributes=attributes)
    coef, shown = expected.coef_, expected.rank(features, qid, attributes=attributes)
    for given in (frame, categories, structured, {"site": list(attributes["site"])}, {"site": frame["site"]}):
        assert_array_equal(ranker.fit(features, grades, qid=qid, attributes=given).coef_, coef)
        again = ranker.rank(features, qid, attributes=given)
        assert all(again[query].tolist() == rows.tolist() for query, rows in shown.items())
    queries = Queries.from_arrays(features, grades, qid=qid, attributes=attributes)
    assert_array_equal(ranker.fit(queries).coef_, coef)
    assert ranker.score(queries) == ranker.score(features, grades, qid=qid, attributes=attributes)


@pytest.mark.study
def test_a_document_may_have_several_labels(data):
    features, grades, qid, _ = data
    rng = np.random.default_rng(1)
    genres = [tuple(rng.choice(6, 2, replace=False).tolist()) for _ in range(grades.size)]
    admissible = Admissible(3, on_infeasible="truncate").at_most(1, by="genres")
    ranker = LargeMarginRanker(lam=1.0, tol=0.1, constraints=admissible)
    for given in (genres, pd.Series(genres), [list(pair) for pair in genres]):
        shown = ranker.fit(features, grades, qid=qid, attributes={"genres": given}).rank(
            features, qid, attributes={"genres": given}
        )
        for rows in shown.values():
            labels = [label for row in rows for label in genres[row]]
            assert len(labels) == len(set(labels)) == 2 * rows.size


@pytest.mark.study
def test_attributes_survive_a_grid_search_over_a_pipeline(data):
    features, grades, qid, attributes = data
    frame = pd.DataFrame(attributes)
    structured = frame.to_records(index=False, column_dtypes={"site": "U3"}).view(np.ndarray)
    lams = [0.1, 10.0]
    ranker = LargeMarginRanker(constraints=SITES, tol=1e-2)
    expected = []
    for train, test in GroupKFold(3).split(features, grades, qid):
        scaler = StandardScaler().fit(features[train])
        seen, unseen = scaler.transform(features[train]), scaler.transform(features[test])
        rankers = [
            LargeMarginRanker(constraints=SITES, tol=1e-2, lam=lam).fit(
                seen, grades[train], qid=qid[train], attributes=frame.iloc[train]
            )
            for lam in lams
        ]
        expected.append(
            [one.score(unseen, grades[test], qid=qid[test], attributes=frame.iloc[test]) for one in rankers]
        )
    with config_context(enable_metadata_routing=True):
        for given in (frame, structured):
            search = GridSearchCV(
                make_pipeline(StandardScaler(), ranker), {"largemarginranker__lam": lams}, cv=GroupKFold(3)
            )
            search.fit(features, grades, qid=qid, groups=qid, attributes=given)
            assert_array_equal(search.cv_results_["mean_test_score"], np.mean(expected, axis=0))
            whole = search.score(features, grades, qid=qid, attributes=given)
            assert whole == search.best_estimator_.score(features, grades, qid=qid, attributes=given)
        search = GridSearchCV(ranker, {"lam": lams}, cv=GroupKFold(3), error_score="raise")
        with pytest.raises(DataError, match=r"96 values but there are 64 rows.*data frame or a structured array"):
            search.fit(features, grades, qid=qid, groups=qid, attributes=attributes)


def test_a_ranker_trained_without_constraints_is_judged_under_them_in_folds(data):
    features, grades, qid, attributes = data
    frame = pd.DataFrame(attributes)
    with config_context(enable_metadata_routing=True):
        params = {"qid": qid, "groups": qid, "attributes": frame, "constraints": SITES}
        scores = cross_val_score(RegressionRanker(), features, grades, params=params, cv=GroupKFold(3))
    for score, (train, test) in zip(scores, GroupKFold(3).split(features, grades, qid), strict=True):
        ranker = RegressionRanker().fit(features[train], grades[train], qid=qid[train])
        expected = ranker.score(
            features[test], grades[test], qid=qid[test], attributes=frame.iloc[test], constraints=SITES
        )
        assert score == expected


def test_what_is_chosen_on_other_queries_is_judged_under_the_set(data):
    features, grades, qid, attributes = data
    train, other = qid < 8, qid >= 8
    own, rest = ({name: values[part] for name, values in attributes.items()} for part in (train, other))
    ranker = LargeMarginRanker(lam=0.01, constraints=SITES).fit(
        features[train], grades[train], qid=qid[train], attributes=own,
        eval_set=(features[other], grades[other]), eval_qid=qid[other], eval_attributes=rest,
    )  # fmt: skip
    assert ranker.best_score_ == ranker.score(features[other], grades[other], qid=qid[other], attributes=rest)


def test_a_saved_ranker_keeps_its_constraints(data, tmp_path):
    features, grades, qid, attributes = data
    admissible = (
        Admissible(3, on_infeasible="truncate")
        .at_most({"1": 1, "2": 0}, by="site", name="cap")
        .forbid(documents={"site": "3", "new": True}, positions=[0])
    )
    ranker = LargeMarginRanker(lam=1.0, constraints=admissible).fit(features, grades, qid=qid, attributes=attributes)
    ranker.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.constraints == admissible
    assert loaded.score(features, grades, qid=qid, attributes=attributes) == ranker.score(
        features, grades, qid=qid, attributes=attributes
    )


@pytest.mark.parametrize(
    ("options", "given", "error", "says"),
    [
        ({}, None, DataError, r"attribute 'site', which is missing \(there is none\); pass attributes="),
        ({}, {"new": [True]}, DataError, "'new' has 1 values but there are 96 rows"),
        ({}, np.zeros((96, 2)), DataError, "columns have no names"),
        ({}, {"site": np.zeros((96, 2))}, DataError, "a document has one value"),
        ({"constraints": {"site": 1}}, {}, OptionError, r"cannot be a dict; state them as Admissible\(k\)"),
        ({"constraints": Admissible(8).at_most(1, by="site")}, "own", DataError, r"query \d+ .* no admissible .*site"),
        ({"bound": "convex", "target_ranking": "first"}, "own", OptionError, "must be 'average'"),
        ({"constraints": QUOTA, "argmax_solver": "scipy"}, "own", OptionError, "Use one of auto, .*highs"),
        ({"argmax_solver": "active_set"}, "own", OptionError,
         "'active_set' cannot rank under constraints; use 'auto' or one of"),
    ],
)  # fmt: skip
def test_fit_says_what_is_wrong_with_constraints_and_attributes(options, given, error, says, data):
    features, grades, qid, attributes = data
    ranker = LargeMarginRanker(**{"constraints": SITES, **options})
    with pytest.raises(error, match=says):
        ranker.fit(features, grades, qid=qid, attributes=attributes if isinstance(given, str) else given)


def test_deployment_names_what_is_missing_and_the_query_without_room(data):
    features, grades, qid, attributes = data
    ranker = RegressionRanker().fit(features, grades, qid=qid, attributes=attributes)
    with pytest.raises(DataError, match="'site', which is missing"):
        ranker.rank(features, qid, constraints=SITES)
    with pytest.raises(DataError, match=r"query \d+ has no admissible ranking.*site\[.*on_infeasible='truncate'"):
        ranker.rank(features, qid, attributes=attributes, constraints=Admissible(8).at_most(1, by="site"))
    with pytest.raises(OptionError, match="constraints cannot be a str"):
        ranker.score(features, grades, qid=qid, attributes=attributes, constraints="site")
    queries = Queries.from_arrays(features, grades, qid=qid)
    with pytest.raises(DataError, match="attributes cannot be passed with a Queries"):
        ranker.rank(queries, attributes=attributes, constraints=SITES)


@pytest.mark.parametrize("argmax_solver", ["scipy", "ortools", "highs"])
def test_other_solvers_learn_the_same(argmax_solver, data):
    features, grades, qid, attributes = data
    options = {"bound": "convex", "lam": 0.1, "constraints": SITES}
    expected = LargeMarginRanker(**options).fit(features, grades, qid=qid, attributes=attributes).certificate_
    found = (
        LargeMarginRanker(argmax_solver=argmax_solver, **options)
        .fit(features, grades, qid=qid, attributes=attributes)
        .certificate_
    )
    assert found.bound <= expected.primal
    assert expected.bound <= found.primal
