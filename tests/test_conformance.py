"""Every entry of every table (measures, losses, bounds, maps, methods, solvers, problems, rankers) keeps the contract
of its kind; planted faults do not."""

from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from planted.losses import Halfway
from sklearn.base import clone

from formulations import GroupedSimplexQP, LinearProgram, MinCostFlow, QuadraticProgram
from formulations.gallery.rankings import ranking
from formulations.solvers import get_solver, list_solvers
from formulations.testing import check_solver
from formulations.testing.instances import FORMS
from rankopt import Queries, load_model, rankers
from rankopt.losses import BOUNDS, LOSSES, get_bound, get_feature_map, get_loss
from rankopt.losses.margin import MarginLoss
from rankopt.losses.oracle_positional import PositionalOracle
from rankopt.losses.pairwise import PairwiseHinge
from rankopt.measures import MEASURES, evaluate, parse
from rankopt.measures.dcg import DiscountedGain
from rankopt.optimize import METHODS, get_method
from rankopt.optimize.bundle import Bundle
from rankopt.testing import check_bound, check_loss, check_map, check_measure, check_method

POSITIONAL = [
    "nDCG",
    "nDCG@3",
    "nDCG(gain='linear')@5",
    "DCG@2",
    "P@3",
    "WTA",
    "ERU(alpha=5, d=0)",
    "NERU(alpha=3, d=0)@4",
    "R@3",
    "RBP(p=0.7)",
]


@pytest.mark.parametrize("measure", POSITIONAL)
def test_positional_measures(measure):
    check_measure(parse(measure))


def margin(bound):
    def build(relevance, offsets):
        measure = parse("nDCG@3")
        problem = ranking(
            np.zeros(relevance.size),
            measure.gain(relevance, offsets),
            discount=measure.discount,
            position_weights=lambda n: np.arange(1.0, n + 1) ** -0.5,
            offsets=offsets,
        )
        return MarginLoss(PositionalOracle(problem, get_solver("exact")), bound)

    return build


@pytest.mark.parametrize("bound", BOUNDS)
def test_margin_losses(bound):
    check_loss(margin(bound))


@pytest.mark.parametrize("bound", [*BOUNDS, Halfway()], ids=str)
def test_bounds(bound):
    check_bound(get_bound(bound))


@pytest.mark.parametrize("loss", LOSSES)
def test_losses(loss):
    check_loss(get_loss(loss))


@pytest.mark.parametrize("method", METHODS)
def test_methods(method):
    check_method(get_method(method))


@pytest.mark.parametrize(("name", "measure"), [("positional", "ERR@3"), ("pairwise", "AP"), ("first-relevant", "RR")])
def test_maps(name, measure):
    check_map(get_feature_map(name), measure)


def test_planted_faults_are_found():
    @dataclass(frozen=True, repr=False)
    class Rising(DiscountedGain):
        def discount(self, n):
            return super().discount(n)[::-1]

    with pytest.raises(AssertionError, match="increase"):
        check_measure(Rising())

    class Overstated(PairwiseHinge):
        def at(self, scores, prove=False):
            there = super().at(scores, prove)
            return replace(there, height=there.height + 0.1)

    with pytest.raises(AssertionError, match="touch"):
        check_loss(Overstated)

    @dataclass(frozen=True)
    class TooMuch:
        """Twice what the scores like most: no upper bound."""

        convex = False

        def __call__(self, argmax, scores):
            return 2.0 * argmax.top_scoring(scores)

    with pytest.raises(AssertionError, match="below the regret"):
        check_bound(TooMuch())

    class Boasting(Bundle):
        def step(self, state, objective):
            return replace(super().step(state, objective), bound=state.bound + 0.2)

    with pytest.raises(AssertionError):
        check_method(Boasting(), max_iter=50)


NEEDS = {
    "P": "P@3",
    "R": "R@3",
    "Success": "Success@2",
    "NERU": "NERU(alpha=3, d=0)",
    "Custom": "Custom(discount=[3, 2], gain=[0, 1, 3])",
}
"""Measures that have no value without a cutoff or options, with them."""

ALL_MEASURES = [*(NEEDS.get(name, name) for name in MEASURES), "nDCG@2", "AP@3", "RR@2", "ERR@2"]


def graded(seed, queries=6, most=6):
    """Rows of small queries in shuffled order: features, grades, tied scores and query ids."""
    random = np.random.default_rng(seed)
    qid = random.permutation(np.repeat(np.arange(queries), random.integers(2, most + 1, queries)))
    relevance = random.integers(0, 3, qid.size).astype(float)
    for query in range(queries):  # a query of one grade alone has no AUC
        relevance[np.flatnonzero(qid == query)[:2]] = 2.0, 0.0
    return random.normal(size=(qid.size, 2)), relevance, random.integers(0, 3, qid.size).astype(float), qid


@pytest.mark.parametrize("name", ALL_MEASURES)
def test_a_measure_is_the_mean_over_the_orders_that_the_scores_allow(name):
    features, relevance, scores, qid = graded(3)
    queries = Queries.from_arrays(features, relevance, qid=qid)
    found = evaluate(queries, scores, name)
    for query, value in zip(queries.query_ids, found.per_query(), strict=True):
        rows = np.flatnonzero(qid == query)
        orders = [order for order in permutations(rows) if all(np.diff(scores[list(order)]) <= 0)]
        one = [
            evaluate(
                Queries.from_arrays(features[list(order)], relevance[list(order)], qid=[query] * rows.size),
                -np.arange(rows.size, dtype=float),
                name,
            ).per_query()[0]
            for order in orders
        ]
        assert_allclose(value, np.mean(one), rtol=1e-12, atol=1e-12, equal_nan=True)


ACCURACY = {
    "cvxpy:HIGHS": 5e-3,  # HiGHS regularizes quadratic programs
    "qpsolvers:highs": 5e-3,
    "cvxpy:OSQP": 1e-4,
    "qpsolvers:osqp": 1e-4,
    "cvxpy:SCS": 1e-5,
}
"""The largest relative gap on small masters, where it is more than 1e-7."""

PROGRAMS = (MinCostFlow, LinearProgram, GroupedSimplexQP, QuadraticProgram)
"""Forms that cvxpy states; what bridges make of the others is the same for all that it calls, and takes it seconds."""


def studied(spec):
    return pytest.param(spec, FORMS, marks=pytest.mark.study, id=f"{spec}-all")


OTHERS = [spec for spec in list_solvers() if spec.startswith("cvxpy:") and spec != "cvxpy:HIGHS"]


@pytest.mark.parametrize(
    ("spec", "forms"),
    [
        *(pytest.param(spec, PROGRAMS if spec in OTHERS else FORMS, id=spec) for spec in list_solvers()),
        *map(studied, OTHERS),
    ],
)
def test_solver_conforms(spec, forms, capfd):
    checked = check_solver(get_solver(spec), accuracy=ACCURACY.get(spec, 1e-7), forms=forms)
    assert len(checked) >= 10
    assert capfd.readouterr().out == ""


def ranker_data():
    random = np.random.default_rng(8)
    qid = np.repeat(np.arange(30), 8)
    X = random.normal(size=(qid.size, 4))
    y = np.clip(np.round(X[:, 0] + 0.5 * X[:, 1] + 0.5 * random.normal(size=qid.size)), 0, 2)
    return X, y, qid


SETTINGS = {
    "MatchingRanker": {"n_positions": 2, "bound": "nonconvex", "lam": 0.01},
    "BoostedRanker": {"n_estimators": 5, "n_bags": 1},
}
QUERY_RANKERS = [name for name in rankers.RANKERS if name != "CofiRanker"]


def fitted(name, X, y, qid):
    ranker = getattr(rankers, name)(**SETTINGS.get(name, {}))
    seed = {"random_state": 0} if "random_state" in ranker.get_params() else {}
    return ranker.set_params(**seed).fit(X, y, qid=qid)


@pytest.mark.parametrize("name", QUERY_RANKERS)
def test_rankers_do_not_depend_on_the_order_of_rows(name):
    if name == "BoostedRanker":
        pytest.importorskip("lightgbm", reason="needs rankopt[boosting]")
    X, y, qid = ranker_data()
    ranker = fitted(name, X, y, qid)
    order = np.random.default_rng(1).permutation(qid.size)
    again = fitted(name, X[order], y[order], qid[order])
    assert_allclose(again.predict(X), ranker.predict(X), rtol=1e-6, atol=1e-8)
    assert ranker.score(X, y, qid=qid) == pytest.approx(ranker.score(X[order], y[order], qid=qid[order]), abs=1e-12)
    assert_array_equal(ranker.predict(X[order]), ranker.predict(X)[order])


@pytest.mark.parametrize("name", QUERY_RANKERS)
def test_rankers_are_cloned_saved_and_better_than_chance(name, tmp_path):
    if name == "BoostedRanker":
        pytest.importorskip("lightgbm", reason="needs rankopt[boosting]")
    X, y, qid = ranker_data()
    ranker = fitted(name, X, y, qid)
    copied = clone(ranker)
    assert not hasattr(copied, "n_features_in_")
    assert {key for key, value in copied.get_params().items() if value != ranker.get_params()[key]} == set()
    assert_array_equal(copied.fit(X, y, qid=qid).predict(X), ranker.predict(X))
    ranker.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert_array_equal(loaded.predict(X), ranker.predict(X))
    if name != "MatchingRanker":  # it places documents in slots and has no order of a query
        queries = Queries.from_arrays(X, y, qid=qid)
        random = np.random.default_rng(0).normal(size=qid.size)
        assert ranker.score(X, y, qid=qid) > evaluate(queries, random, "nDCG@10").mean() + 0.1
