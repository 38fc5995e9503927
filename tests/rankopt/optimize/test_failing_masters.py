"""Masters that fail: training ends with what it has and says so; another master goes on."""

import warnings

import numpy as np
import pytest
from planted.solvers import Failing, OneGroup
from problems.training import BOUNDS, made, objective_at
from sklearn.exceptions import ConvergenceWarning

from formulations import SolverError
from rankopt.data import load_sample
from rankopt.data.queries import Queries
from rankopt.errors import MasterProblemError
from rankopt.optimize.bundle import Bundle
from rankopt.optimize.certificate import Stop
from rankopt.optimize.subgradient import StochasticSubgradient
from rankopt.rankers import LargeMarginRanker

METHODS_WITH_MASTERS = ["bundle", "cutting_planes", "steepest_subgradient", "stochastic_subgradient"]


def ranker_of(bound, **options):
    return LargeMarginRanker("nDCG@5", bound=bound, **{"lam": 1e-3, **options})


@pytest.mark.every(5)
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("method", METHODS_WITH_MASTERS)
def test_the_best_weights_and_their_gap_are_kept(method, bound):
    X, y, qid = made()
    ranker = ranker_of(bound, method=method, master_solver=Failing(after=4), tol=1e-9)
    with pytest.warns(ConvergenceWarning, match=r"planted.*another master"):
        ranker.fit(X, y, qid=qid)
    proved = ranker.certificate_
    assert proved.stop is Stop.MASTER
    assert ranker.n_iter_ >= 1
    assert proved.primal == pytest.approx(objective_at(ranker, X, y, qid, ranker.coef_), rel=1e-12)
    assert proved.primal <= objective_at(ranker, X, y, qid, ranker.w0_) + 1e-12
    assert 0 <= proved.bound <= proved.primal


def test_before_the_first_step_it_is_an_error():
    X, y, qid = made()
    with pytest.raises(MasterProblemError, match="use master='auto'") as caught:
        ranker_of("convex", master_solver=Failing(after=0)).fit(X, y, qid=qid)
    assert isinstance(caught.value, SolverError)


def test_what_was_put_off_to_the_end_fails_alone():
    X, y, qid = made()
    ranker = ranker_of(
        "convex", method=StochasticSubgradient(certify_every=0), master_solver=Failing(after=1), max_iter=3
    )
    with pytest.warns(ConvergenceWarning, match="planted"):
        assert ranker.fit(X, y, qid=qid).certificate_.stop is Stop.ITERATIONS


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_checkpoint_goes_on_with_another_master(bound, tmp_path):
    X, y, qid = made()
    ranker = ranker_of(bound, checkpoint=str(tmp_path), master_solver=Failing(after=4))
    with pytest.warns(ConvergenceWarning, match="planted"):
        ranker.fit(X, y, qid=qid)
    steps, before = ranker.n_iter_, ranker.certificate_
    proved = ranker.set_params(master_solver="auto").fit(X, y, qid=qid).certificate_
    assert ranker.n_iter_ > steps
    assert proved.stop is Stop.GAP
    assert proved.primal <= before.primal
    assert ranker.history_.primal[steps - 1] == pytest.approx(before.primal)


def test_a_path_keeps_the_models_before_it_and_says_which_failed():
    X, y, qid = made()
    whole = ranker_of("convex").path(X, y, qid=qid, lams=[1.0])[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        master = Failing(after=whole.n_iter_ + 2)
        path = ranker_of("convex", master_solver=master).path(X, y, qid=qid, lams=[1.0, 1e-3, 1e-4])
    stops = [model.certificate_.stop for model in path]
    assert stops == [Stop.GAP, Stop.MASTER, Stop.MASTER]
    np.testing.assert_array_equal(path[0].coef_, whole.coef_)
    for model in path:
        proved = model.certificate_
        assert proved.primal == pytest.approx(objective_at(model, X, y, qid, model.coef_), rel=1e-12)
        assert 0 <= proved.bound <= proved.primal


@pytest.mark.every(5)
@pytest.mark.parametrize(
    ("bound", "lam"), [("convex", 1e-3), ("convex", 1e-5), ("tie-aware", 1e-7), ("nonconvex", 1e-3)]
)
@pytest.mark.parametrize("method", ["bundle", "cutting_planes"])
@pytest.mark.parametrize("master_solver", ["cvxpy:CLARABEL", "qpsolvers:clarabel"])
def test_clarabel_does_not_take_a_master_for_unbounded(master_solver, method, bound, lam):
    sample = load_sample("les-miserables").train
    ranker = LargeMarginRanker("nDCG@10", bound=bound, lam=lam, method=method, master_solver=master_solver, max_iter=6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert ranker.fit(sample).certificate_.stop is not Stop.MASTER


@pytest.mark.parametrize("bound", ["convex", "nonconvex"])
def test_mini_batches_share_one_group_where_the_master_takes_one(bound):
    X, y, qid = made()
    method = StochasticSubgradient(batch=4)
    ranker = ranker_of(bound, lam=0.1, tol=1e-2, method=method, master_solver=OneGroup())
    objective = ranker.objective(Queries.from_arrays(X, y, qid=qid))
    assert method.start(objective, objective.w0).planes.references.shape[0] == 1
    proved = ranker.fit(X, y, qid=qid).certificate_
    assert proved.relative_gap <= 1e-2
    if bound == "convex":
        best = ranker_of(bound, lam=0.1, tol=1e-6, method=Bundle()).fit(X, y, qid=qid).certificate_
        assert proved.bound <= best.primal
        assert best.bound <= proved.primal


@pytest.mark.parametrize("method", ["bundle", "block_frank_wolfe", "stochastic_subgradient", "steepest_subgradient"])
@pytest.mark.parametrize("bound", BOUNDS)
def test_an_interruption_in_the_first_callback_leaves_the_first_step(method, bound):
    X, y, qid = made()

    def interrupt(step, state):
        raise KeyboardInterrupt

    ranker = ranker_of(bound, method=method, callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(X, y, qid=qid)
    proved = ranker.certificate_
    assert ranker.n_iter_ == 1
    assert proved.stop is Stop.INTERRUPTED
    assert proved.primal == pytest.approx(objective_at(ranker, X, y, qid, ranker.coef_), rel=1e-12)
    assert 0 <= proved.bound <= proved.primal


def test_an_interrupted_judge_leaves_the_last_weights(monkeypatch):
    X, y, qid = made()

    def judge(ranker, evaluation):
        def interrupted(w):
            raise KeyboardInterrupt

        return interrupted

    monkeypatch.setattr(LargeMarginRanker, "_judge", judge)
    ranker = ranker_of("nonconvex", lam=0.1)
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(X, y, qid=qid, eval_set=(X, y), eval_qid=qid)
    assert not hasattr(ranker, "best_score_")
    assert ranker.n_iter_ == 1
    with pytest.warns(ConvergenceWarning):
        once = ranker_of("nonconvex", lam=0.1, max_iter=1).fit(X, y, qid=qid)
    np.testing.assert_array_equal(ranker.coef_, once.coef_)
