"""Methods: each reaches what the others reach, proves it, and is moved by its seed alone."""

import numpy as np
import pytest
from planted.solvers import OneGroup
from problems.training import BOUNDS, made, objective_at

from rankopt.data.queries import Queries
from rankopt.optimize import METHODS, get_method
from rankopt.optimize import bundle as grouping
from rankopt.optimize.bundle import Bundle, at_groups, groups_of, grown, solved
from rankopt.optimize.concave_convex import Clock, train
from rankopt.optimize.frank_wolfe import BlockFrankWolfe
from rankopt.optimize.state import PlaneSet, State
from rankopt.optimize.subgradient import SteepestSubgradient, StochasticSubgradient
from rankopt.rankers import LargeMarginRanker

DRAWING = ["block_frank_wolfe", "stochastic_subgradient"]


def ranker_of(bound, **options):
    return LargeMarginRanker("nDCG@5", bound=bound, **{"lam": 0.1, **options})


@pytest.mark.every(2)
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("method", METHODS)
def test_the_proof_is_true(method, bound):
    """J(w) is as stated; what touches J at w is nowhere below the bound, and near it at w."""
    X, y, qid = made()
    ranker = ranker_of(bound, method=method).fit(X, y, qid=qid)
    proved = ranker.certificate_
    assert proved.relative_gap <= ranker.tol
    assert proved.primal == pytest.approx(objective_at(ranker, X, y, qid, ranker.coef_), rel=1e-12)
    majorant = ranker.objective(Queries.from_arrays(X, y, qid=qid)).majorant(ranker.coef_)
    rng = np.random.default_rng(0)
    for scale in (0.0, 1e-3, 1e-1, 1.0):
        w = ranker.coef_ + scale * rng.normal(size=ranker.coef_.size)
        assert majorant.regulariser(w) + majorant.risk.at(w).value >= proved.bound
    lowest = train(majorant, Bundle(), ranker.coef_, 1e-7, Clock.started(1000, None)).certificate
    assert proved.bound <= lowest.primal
    assert lowest.bound >= proved.primal - proved.gap - 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_shuffled_rows_and_renamed_queries_give_the_same_weights(method):
    X, y, qid = made(seed=3)
    rows = np.random.default_rng(1).permutation(len(X))
    names = np.array([f"query-{(7 * q) % 12}" for q in qid], dtype=object)
    ranker = ranker_of("nonconvex", method=method)
    first = ranker.fit(X, y, qid=qid).coef_
    np.testing.assert_array_equal(ranker.fit(X[rows], y[rows], qid=names[rows]).coef_, first)


@pytest.mark.parametrize("method", DRAWING)
def test_the_seed_alone_moves_what_is_drawn(method):
    X, y, qid = made(queries=40)
    fits = [ranker_of("convex", method=method, random_state=seed).fit(X, y, qid=qid).coef_ for seed in (1, 1, 2)]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert (fits[0] != fits[2]).any()
    assert get_method(method, 7) == get_method(get_method(method), 7) != get_method(method)
    drawn = {get_method(method, np.random.RandomState(0)), get_method(method, np.random.default_rng(0))}
    assert all(found.seed != 0 for found in drawn)
    with pytest.raises(ValueError, match="random_state"):
        ranker_of("convex", method=method, random_state=-1).fit(X, y, qid=qid)


def test_certificates_on_request_leave_the_steps_as_they_are():
    """The mean after 9 passes is the same, whenever it was looked at; at the end J is proven there."""
    X, y, qid = made(queries=40)
    objective = ranker_of("convex").objective(Queries.from_arrays(X, y, qid=qid))
    runs = [
        train(objective, StochasticSubgradient(certify_every=every), objective.w0, 0.0, Clock.started(10, None))
        for every in (0, 1, 4)
    ]
    for run in runs:
        np.testing.assert_array_equal(run.state.trial, runs[0].state.trial)
        assert run.state.latest == pytest.approx(
            objective.regulariser(run.state.trial) + objective.risk.at(run.state.trial).value
        )
        assert 0 < run.certificate.bound <= run.certificate.primal < objective.risk.at(objective.w0).value
    assert len(set(runs[0].history.primal)) == 1  # only the start was looked at on the way


@pytest.mark.every(2)
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("method", METHODS)
def test_limits_and_interruptions_keep_the_best_and_what_is_proven(method, bound):
    X, y, qid = made()

    def interrupt(step, state):
        if step.step == 3:
            raise KeyboardInterrupt

    limited = ranker_of(bound, method=method, lam=1e-4, tol=1e-12, callbacks=[lambda step, state: step.step == 3])
    stopped = ranker_of(bound, method=method, lam=1e-4, tol=1e-12, callbacks=[interrupt])
    limited.fit(X, y, qid=qid)
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X, y, qid=qid)
    for ranker in (limited, stopped):
        assert ranker.n_iter_ == 3
        proved = ranker.certificate_
        assert proved.primal == pytest.approx(objective_at(ranker, X, y, qid, ranker.coef_), rel=1e-12)
        assert proved.primal <= objective_at(ranker, X, y, qid, ranker.w0_) + 1e-12
        assert 0 <= proved.bound <= proved.primal


@pytest.mark.parametrize("groups", [1, 3, 5, 12])
@pytest.mark.parametrize("room", [2**22, 1])
def test_groups_sum_to_the_risk(groups, room, monkeypatch):
    X, y, qid = made()
    risk = ranker_of("nonconvex").objective(Queries.from_arrays(X, y, qid=qid)).risk
    w = np.linspace(1, -1, 4)
    whole = risk.at(w)
    monkeypatch.setattr(grouping, "NUMBERS", room)
    parts = at_groups(risk, w, groups)
    assert parts.heights.shape == (groups,)
    np.testing.assert_allclose(parts.heights.sum(), whole.heights[0], rtol=1e-12)
    np.testing.assert_allclose(parts.slopes.sum(axis=0), whole.slopes[0], rtol=1e-12)
    np.testing.assert_allclose(parts.references.sum(axis=0), whole.references[0], rtol=1e-12)
    assert (parts.value, parts.bound) == pytest.approx((whole.value, whole.bound), rel=1e-12)
    np.testing.assert_array_equal(parts.losses, whole.losses)


def test_many_features_make_few_groups(monkeypatch):
    X, y, qid = made()
    objective = ranker_of("convex").objective(Queries.from_arrays(X, y, qid=qid))
    assert [groups_of(objective, most) for most in (1, 5, 100)] == [1, 5, 12]
    monkeypatch.setattr(grouping, "NUMBERS", 4 * 3)
    assert groups_of(objective, 100) == 3
    monkeypatch.setattr(grouping, "NUMBERS", 1)
    assert groups_of(objective, 100) == 1


@pytest.mark.parametrize("method", [Bundle(), SteepestSubgradient()], ids=str)
def test_a_master_of_one_group_gets_one(method):
    X, y, qid = made()
    best = ranker_of("convex", lam=1e-2, tol=1e-6).fit(X, y, qid=qid).certificate_
    ranker = ranker_of("convex", lam=1e-2, tol=1e-2, method=method, master_solver=OneGroup())
    assert groups_of(ranker.objective(Queries.from_arrays(X, y, qid=qid)), 100) == 1
    found = ranker.fit(X, y, qid=qid).certificate_
    assert abs(found.primal - best.primal) <= found.gap + best.gap
    assert found.relative_gap <= 1e-2


def test_finer_groups_prove_more_from_the_same_points():
    """A sum of maxima is nowhere below the maximum of the sums."""
    X, y, qid = made()
    objective = ranker_of("convex", lam=1e-2).objective(Queries.from_arrays(X, y, qid=qid))
    points = np.random.default_rng(0).normal(size=(6, 4))
    bounds = []
    for groups in (1, 3, 12):
        state = State(PlaneSet.empty(groups, 4), np.zeros(0), trial=points[0], w=points[0])
        for point in points:
            state = State(state.planes, state.alpha, trial=point, w=point)
            here = at_groups(objective.risk, point, groups)
            state = grown(state.seen(objective.upper(point, here), here, convex=True), here)
        bounds.append(solved(state, objective, keep_idle=9)[0].bound)
    assert bounds[0] < bounds[1] < bounds[2]


def test_the_plain_bundle_needs_many_times_as_many_passes():
    X, y, qid = made(queries=40, features=8)
    fits = [ranker_of("convex", lam=1e-3, method=method) for method in (Bundle(), Bundle(groups=1, damping=1.0))]
    grouped, plain = (fit.fit(X, y, qid=qid).n_iter_ for fit in fits)
    assert plain >= 5 * grouped


@pytest.mark.parametrize(
    ("method", "options"),
    [
        (Bundle, {"groups": 0}),
        (Bundle, {"damping": 0.0}),
        (BlockFrankWolfe, {"batch": 0}),
        (StochasticSubgradient, {"batch": 0}),
        (StochasticSubgradient, {"shift": 0.0}),
        (StochasticSubgradient, {"certify_every": -1}),
        (SteepestSubgradient, {"armijo": 1.0}),
        (SteepestSubgradient, {"certify_every": 0}),
    ],
)
def test_settings_that_cannot_work_are_refused(method, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        method(**options)
