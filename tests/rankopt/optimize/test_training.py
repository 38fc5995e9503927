"""Training: gaps that are true, methods and solvers that agree, results that shuffling does not move."""

import warnings
from dataclasses import replace
from itertools import product

import cvxpy
import numpy as np
import pytest
from planted.solvers import OneGroup
from problems.training import BOUNDS, made, objective_at
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from formulations import SolverError, UnsupportedProblemError
from formulations.active_set.solver import ascend
from formulations.compiled import Kernel
from rankopt.data import load_sample
from rankopt.data.queries import Queries
from rankopt.errors import EngineError, NoProgressWarning, TrainingInterruptedWarning, WorseThanInitWarning
from rankopt.losses.margin import Convex, Nonconvex
from rankopt.optimize import METHODS
from rankopt.optimize.bundle import Bundle, CuttingPlanes
from rankopt.optimize.certificate import Stop
from rankopt.optimize.concave_convex import follow
from rankopt.optimize.frank_wolfe import BlockFrankWolfe, _Dual
from rankopt.rankers import LargeMarginRanker, PairwiseRanker


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("lam", [1.0, 1e-2])
def test_the_certificate_is_true(bound, lam):
    X, y, qid = made()
    ranker = LargeMarginRanker("nDCG@5", bound=bound, lam=lam).fit(X, y, qid=qid)
    proved = ranker.certificate_
    assert proved.kind == ("global" if bound == "convex" else "stationary")
    assert proved.primal == pytest.approx(objective_at(ranker, X, y, qid, ranker.coef_), rel=1e-12)
    assert 0 <= proved.bound <= proved.primal + 1e-12
    assert proved.relative_gap <= ranker.tol
    history = ranker.history_
    assert (history.bound <= history.primal + 1e-12).all()
    for start in np.unique(history.round):
        rows = history.round == start
        assert (np.diff(history.primal[rows]) <= 0).all()
        assert (np.diff(history.bound[rows]) >= 0).all()
    if bound == "convex":  # no point whatever is below the bound
        rng = np.random.default_rng(0)
        for scale in (1e-3, 1e-1, 1.0):
            w = ranker.coef_ + scale * rng.normal(size=ranker.coef_.size)
            assert objective_at(ranker, X, y, qid, w) >= proved.bound - 1e-12


@pytest.mark.every(5)
@pytest.mark.parametrize(
    "method",
    [
        Bundle(),
        Bundle(groups=3, damping=1.0),
        Bundle(groups=1, damping=1.0),
        CuttingPlanes(),
        CuttingPlanes(master_every="plane"),
        CuttingPlanes(master_every=5),
    ],
    ids=str,
)
@pytest.mark.parametrize("argmax", ["exact", "scipy"])
def test_methods_and_argmax_solvers_agree(method, argmax):
    X, y, qid = made()
    best = LargeMarginRanker("nDCG@5", bound="convex", lam=1e-2, tol=1e-6).fit(X, y, qid=qid).certificate_
    other = LargeMarginRanker("nDCG@5", bound="convex", lam=1e-2, tol=1e-4, method=method, argmax_solver=argmax)
    found = other.fit(X, y, qid=qid).certificate_
    assert abs(found.primal - best.primal) <= found.gap + best.gap
    assert found.relative_gap <= 1e-4


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("method", "master_solver"),
    [
        *((Bundle(groups=1), master) for master in ("active_set", "qpsolvers:clarabel", "cvxpy:CLARABEL")),
        *((Bundle(groups=3), master) for master in ("qpsolvers:piqp", "qpsolvers:clarabel")),
        *(("cutting_planes", master) for master in ("qpsolvers:piqp", "qpsolvers:clarabel", "cvxpy:CLARABEL")),
    ],
)
@pytest.mark.parametrize("argmax", ["ortools", "highs"])
def test_masters_agree(master_solver, method, argmax):
    X, y, qid = made(queries=6)
    best = LargeMarginRanker("nDCG@5", bound="convex", lam=0.1, tol=1e-6).fit(X, y, qid=qid).certificate_
    other = LargeMarginRanker(
        "nDCG@5", bound="convex", lam=0.1, tol=1e-3, method=method, argmax_solver=argmax, master_solver=master_solver
    )
    found = other.fit(X, y, qid=qid).certificate_
    assert abs(found.primal - best.primal) <= found.gap + best.gap
    assert found.relative_gap <= 1e-3


def unchanged(dual):
    return dual.to_cvxpy()


def with_cap(dual):
    """The dual of cvxpy with a row more: its optimum is below that of the unchanged one."""
    model = dual.to_cvxpy()
    return cvxpy.Problem(model.objective, [*model.constraints, cvxpy.sum(model.variables()[0]) <= dual.capacity[0] / 2])


def infeasible(dual):
    model = dual.to_cvxpy()
    return cvxpy.Problem(model.objective, [*model.constraints, model.variables()[0] >= 1e3])


@pytest.mark.parametrize("method", [Bundle(), Bundle(groups=1)], ids=str)
def test_a_function_may_change_the_master_and_the_bound_stays_one_of_the_objective(method):
    X, y, qid = made(queries=6)
    options = {"bound": "convex", "lam": 0.1, "method": method, "max_iter": 15, "tol": 1e-2}
    best = LargeMarginRanker("nDCG@5", **{**options, "max_iter": 200, "tol": 1e-6}).fit(X, y, qid=qid).certificate_
    same = LargeMarginRanker("nDCG@5", master_solver=unchanged, **options).fit(X, y, qid=qid).certificate_
    assert same.relative_gap <= 1e-2
    assert same.bound <= best.primal + 1e-12
    capped = LargeMarginRanker("nDCG@5", master_solver=with_cap, **options)
    with pytest.warns(ConvergenceWarning, match="before the gap closed"):
        found = capped.fit(X, y, qid=qid).certificate_
    assert found.bound <= best.primal <= found.primal + best.gap
    assert found.relative_gap > capped.tol
    assert found.primal == pytest.approx(objective_at(capped, X, y, qid, capped.coef_), rel=1e-12)
    with pytest.raises(SolverError, match="every GroupedSimplexQP is solvable"):
        LargeMarginRanker("nDCG@5", master_solver=infeasible, **options).fit(X, y, qid=qid)


def test_a_master_that_takes_one_group_says_so_where_there_are_more():
    X, y, qid = made(queries=6)
    ranker = LargeMarginRanker("nDCG@5", bound="convex", lam=0.1, method="cutting_planes", master_solver=OneGroup())
    with pytest.raises(UnsupportedProblemError, match="one group"):
        ranker.fit(X, y, qid=qid)


@pytest.mark.parametrize("bound", ["tie-aware", "nonconvex"])
def test_the_stationary_gap_is_zero_at_a_fixed_point_and_positive_beside_it(bound):
    X, y, qid = made()
    options = {"bound": bound, "lam": 1.0, "measure": "nDCG@5"}
    ranker = LargeMarginRanker(tol=1e-9, **options).fit(X, y, qid=qid)
    assert ranker.certificate_.gap <= 1e-9 * ranker.certificate_.primal

    def gap_at(w):
        """What the convex majorant that touches J at w still leaves to gain."""
        objective = ranker.objective(Queries.from_arrays(X, y, qid=qid))
        majorant = objective.majorant(w)
        (found,) = follow(majorant, Bundle(), w, (majorant.lam,), 1e-10, (5000, None, ()))
        return objective.regularizer(w) + objective.risk.at(w).value - found.certificate.bound

    assert gap_at(ranker.coef_) <= 1e-8
    assert gap_at(ranker.coef_ + 0.1) > 1e-4


@pytest.mark.parametrize("bound", BOUNDS)
def test_shuffling_relabelling_and_splitting_change_nothing(bound):
    X, y, qid = made(seed=3)
    w = np.random.default_rng(0).normal(size=X.shape[1])
    ranker = LargeMarginRanker("nDCG@5", bound=bound, lam=0.1)
    rows = np.random.default_rng(1).permutation(len(X))
    names = np.array([f"query-{(7 * q) % 12}" for q in qid], dtype=object)
    straight = objective_at(ranker, X, y, qid, w)
    assert objective_at(ranker, X[rows], y[rows], names[rows], w) == pytest.approx(straight, rel=1e-12)
    first = ranker.fit(X, y, qid=qid).coef_
    np.testing.assert_array_equal(ranker.fit(X[rows], y[rows], qid=names[rows]).coef_, first)
    shuffled = ranker.fit(csr_array(X[rows]), y[rows], qid=names[rows]).coef_
    np.testing.assert_array_equal(shuffled, ranker.fit(csr_array(X), y, qid=qid).coef_)


def test_a_bound_as_an_object_is_the_bound_of_its_name():
    X, y, qid = made()
    options = {"lam": 0.1, "position_weights": "linear"}
    for bound, told in ((Convex(), {}), (Convex("first"), {"target_ranking": "first"}), (Nonconvex(), {})):
        name = "nonconvex" if isinstance(bound, Nonconvex) else "convex"
        by_name = LargeMarginRanker("nDCG@5", bound=name, **told, **options).fit(X, y, qid=qid)
        given = LargeMarginRanker("nDCG@5", bound=bound, **options).fit(X, y, qid=qid)
        np.testing.assert_array_equal(by_name.coef_, given.coef_)
        assert by_name.certificate_.kind == given.certificate_.kind


def test_the_first_reference_keeps_the_order_of_the_input():
    """Three documents of one gain: the papers' reference ranks them as they came."""
    X, y = np.array([[1.0], [0.0], [-1.0]]), np.array([1.0, 1.0, 0.0])
    for rows in ([0, 1, 2], [1, 0, 2]):
        ranker = LargeMarginRanker("P@1", bound="convex", position_weights="power(1)", target_ranking="first")
        risk = ranker.objective(Queries.from_arrays(X[rows], y[rows], group=[3])).risk
        weights = risk.shards[0].loss.reference_weights(np.zeros(3))
        np.testing.assert_array_equal(weights, [1, 1 / 2, 1 / 3])
        np.testing.assert_array_equal(risk.shards[0].scorer.features, X[rows])


@pytest.mark.parametrize("scale", [1e9, 1e-9])
def test_the_scale_of_features_does_not_matter(scale):
    """J(w; λ) on X is J(w / scale; λ scale²) on scale X."""
    X, y, qid = made()
    plain = LargeMarginRanker("nDCG@5", bound="convex", lam=0.1).fit(X, y, qid=qid).certificate_
    scaled = LargeMarginRanker("nDCG@5", bound="convex", lam=0.1 * scale**2).fit(scale * X, y, qid=qid).certificate_
    assert abs(scaled.primal - plain.primal) <= scaled.gap + plain.gap
    assert scaled.relative_gap <= 1e-3
    steep = LargeMarginRanker("nDCG@5", bound="convex", lam=0.1).fit(1e6 * X, y, qid=qid).certificate_
    assert steep.relative_gap <= 1e-3


def test_queries_without_an_order_do_not_count():
    X, y, qid = made()
    flat = np.vstack([X, np.random.default_rng(0).normal(size=(5, X.shape[1]))])
    ranker = LargeMarginRanker("nDCG@5", bound="convex", lam=0.1)
    plain = ranker.fit(X, y, qid=qid).certificate_
    padded = ranker.fit(flat, np.append(y, np.zeros(5)), qid=np.append(qid, np.full(5, 99))).certificate_
    assert padded.primal == pytest.approx(plain.primal, rel=1e-12)


def test_weights_repeat_queries():
    """Weight 2 is the same as the query twice."""
    X, y, qid = made(queries=5)
    twice = np.concatenate([np.arange(len(X)), np.flatnonzero(qid == 0)])
    ids = np.append(qid, np.full((qid == 0).sum(), 77))
    ranker = LargeMarginRanker("nDCG@5", bound="convex", lam=0.1, tol=1e-6)
    weighted = ranker.fit(X, y, qid=qid, query_weight={q: 2.0 if q == 0 else 1.0 for q in range(5)}).certificate_
    repeated = ranker.fit(X[twice], y[twice], qid=ids).certificate_
    assert abs(weighted.primal - repeated.primal) <= weighted.gap + repeated.gap


def test_C_is_one_over_lam_m():
    X, y, qid = made()
    by_lam = LargeMarginRanker("nDCG@5", lam=0.05).fit(X, y, qid=qid)
    m = by_lam.objective(Queries.from_arrays(X, y, qid=qid)).risk.weights.size
    by_c = LargeMarginRanker("nDCG@5", lam=None, C=1 / (0.05 * m)).fit(X, y, qid=qid)
    np.testing.assert_allclose(by_c.coef_, by_lam.coef_)


def test_rank_svm_matches_the_hinge_written_out_in_cvxpy():
    import cvxpy as cp

    X, y, qid = made(queries=4, documents=6)
    ranker = PairwiseRanker(lam=0.1, tol=1e-7).fit(X, y, qid=qid)
    w = cp.Variable(X.shape[1])
    risk = 0
    for q in range(4):
        rows = np.flatnonzero(qid == q)
        pairs = [(i, j) for i in rows for j in rows if y[i] > y[j]]
        risk += sum(cp.pos(1 - (X[i] - X[j]) @ w) for i, j in pairs) / len(pairs) / 4
    problem = cp.Problem(cp.Minimize(0.05 * cp.sum_squares(w) + risk))
    problem.solve(solver="CLARABEL")
    assert ranker.certificate_.primal == pytest.approx(problem.value, rel=1e-5)
    assert ranker.certificate_.bound <= problem.value * (1 + 1e-6)


@pytest.mark.filterwarnings("ignore::rankopt.errors.WorseThanInitWarning")
@pytest.mark.filterwarnings("ignore::rankopt.errors.NoProgressWarning")  # the start may be the best on eval_set
def test_validation_keeps_the_best_and_the_certificate_speaks_of_it():
    X, y, qid = made(noise=2.0)
    V, vy, vq = made(seed=9, noise=2.0)
    for bound in BOUNDS:
        ranker = LargeMarginRanker("nDCG@5", bound=bound, lam=1e-3)
        ranker.fit(X, y, qid=qid, eval_set=(V, vy), eval_qid=vq)
        assert ranker.best_score_ == pytest.approx(ranker.score(V, vy, qid=vq))
        assert ranker.certificate_.primal >= objective_at(ranker, X, y, qid, ranker.coef_) - 1e-12
        assert ranker.best_score_ >= LargeMarginRanker("nDCG@5", bound=bound, lam=1e-3).fit(X, y, qid=qid).score(
            V, vy, qid=vq
        )


def test_limits_stop_with_a_warning_and_a_true_certificate():
    from sklearn.exceptions import ConvergenceWarning

    X, y, qid = made()
    for bound in BOUNDS:
        ranker = LargeMarginRanker("nDCG@5", bound=bound, lam=1e-4, max_iter=3)
        with pytest.warns(ConvergenceWarning, match="max_iter"):
            ranker.fit(X, y, qid=qid)
        assert ranker.n_iter_ == 3
        assert ranker.certificate_.primal >= objective_at(ranker, X, y, qid, ranker.coef_) - 1e-12
        assert ranker.certificate_.bound <= ranker.certificate_.primal
        assert ranker.certificate_.bound > 0 or bound == "convex"  # the planes found so far prove something


def test_a_callback_stops_and_an_interruption_keeps_the_best():
    X, y, qid = made()

    def interrupt(step, state):
        if step.step == 5:
            raise KeyboardInterrupt

    stopped = LargeMarginRanker("nDCG@5", bound="convex", lam=1e-3, callbacks=[lambda step, state: step.step == 4])
    assert stopped.fit(X, y, qid=qid).n_iter_ == 4
    ranker = LargeMarginRanker("nDCG@5", bound="convex", lam=1e-3, callbacks=[interrupt])
    with pytest.warns(TrainingInterruptedWarning):
        assert ranker.fit(X, y, qid=qid) is ranker
    assert ranker.coef_.shape == (4,)
    assert ranker.certificate_.primal <= objective_at(ranker, X, y, qid, np.zeros(4))


def test_warm_start_goes_on_from_the_previous_weights():
    X, y, qid = made()
    ranker = LargeMarginRanker("nDCG@5", bound="convex", lam=1e-2, warm_start=True).fit(X, y, qid=qid)
    first, before = ranker.n_iter_, ranker.certificate_
    ranker.fit(X, y, qid=qid)
    assert ranker.history_.primal[0] <= before.primal * (1 + 1e-9)
    assert abs(ranker.certificate_.primal - before.primal) <= before.gap + ranker.certificate_.gap
    assert ranker.n_iter_ <= first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bound": "convexe"}, "known are convex, tie-aware, nonconvex"),
        ({"target_ranking": "last"}, "average"),
        ({"position_weights": "linear@0"}, "position_weights"),
        ({"lam": None}, "lam or C"),
        ({"lam": 1.0, "C": 1.0}, "lam or C"),
        ({"lam": -1.0}, "lam must be a number > 0"),
        ({"lam": np.inf}, "lam must be a number > 0"),
        ({"w0": "ones"}, "zeros"),
        ({"w0": [1.0]}, "one a feature"),
        ({"w0": [np.nan] * 4}, "finite"),
        ({"method": "newton"}, "bundle"),
        ({"argmax_solver": "active_set"}, "cannot rank"),
        ({"master_solver": "scipy"}, "master"),
        ({"engine": "cloud"}, "serial"),
        ({"engine": None}, "no engine"),
        ({"engine": 42}, "no engine"),
        ({"max_iter": 1.5}, "must be an integer >= 1"),
        ({"measure": "MeanNDCG"}, "cannot bound the regret of MeanNDCG"),
        ({"tol": -1}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"time_limit": 0}, "time_limit"),
        ({"n_jobs": 4, "engine": "serial"}, "n_jobs"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"n_jobs": 1.5}, "n_jobs"),
        ({"position_weights": "power(e)"}, "exponent"),
        ({"position_weights": "power(1.2.3)"}, "exponent"),
        ({"lam": "1"}, "lam must be a number > 0, 'scale', 'auto' or None; got '1'"),
        ({"tol": True}, "tol must be a number >= 0; got True"),
        ({"method": 3}, "no method"),
        ({"argmax_solver": 3}, "is not a solver"),
        ({"master_solver": 3}, "is not a solver"),
        ({"callbacks": 3}, "functions"),
        ({"bound": "nonconvex", "target_ranking": "first"}, "option of bound='convex', not of 'nonconvex'"),
    ],
)
def test_bad_options_name_the_cure(options, message):
    X, y, qid = made()
    with pytest.raises(ValueError, match=message):
        LargeMarginRanker(**{"bound": "convex", **options}).fit(X, y, qid=qid)


@pytest.mark.parametrize("grades", [0.0, 2.0])
def test_nothing_to_order_is_an_error(grades):
    X, _, qid = made()
    for ranker in (LargeMarginRanker(), PairwiseRanker()):
        with pytest.raises(ValueError, match="grades"):
            ranker.fit(X, np.full(len(X), grades), qid=qid)


def test_an_optimum_at_the_start_is_said():
    X, y, qid = made()
    with pytest.warns(NoProgressWarning, match="smaller lam"):
        LargeMarginRanker("nDCG", bound="convex", position_weights="log", target_ranking="first", lam=1e3, tol=0.5).fit(
            X, y, qid=qid
        )


def test_the_gap_plots(tmp_path):
    import matplotlib

    matplotlib.use("Agg")
    X, y, qid = made()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        history = LargeMarginRanker("nDCG@5").fit(X, y, qid=qid).history_
        axes = history.plot(against="seconds")
    rounds = np.unique(history.round).size
    assert rounds > 1
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert f"lower bound of each of {rounds} rounds\n(of its convex problem)" in names
    axes.figure.savefig(tmp_path / "gap.png")
    assert (tmp_path / "gap.png").stat().st_size > 1000


def test_an_engine_that_loses_a_shard_is_found_out():
    class Lossy:
        def map(self, question, shards):
            return []

    X, y, qid = made()
    with pytest.raises(EngineError, match="0 results for 1 shards"):
        LargeMarginRanker(engine=Lossy()).fit(X, y, qid=qid)


@pytest.mark.every(7)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bound", ["convex", "nonconvex"])
def test_where_double_precision_ends_the_best_so_far_is_the_result(method, bound):
    X, y, qid = made()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker = LargeMarginRanker(bound=bound, method=method, lam=1e-3, w0="zeros", max_iter=20).fit(
            X * 1e150, y, qid=qid
        )
    assert np.isfinite(ranker.coef_).all()
    assert np.isfinite(ranker.certificate_.primal)


def of_the_characters(bound, lam, **options):
    ranker = PairwiseRanker(lam=lam) if bound == "pairwise" else LargeMarginRanker(bound=bound, lam=lam)
    return ranker.set_params(**options).fit(load_sample("les-miserables").train)


@pytest.mark.study
@pytest.mark.parametrize("lam", [1e-12, 1e-16, 1e-19, 1e-21])
@pytest.mark.parametrize("bound", ["convex", "tie-aware", "pairwise"])
def test_a_lam_that_nearly_vanishes_is_solved(bound, lam):
    """w = w₀ - slopesᵀα / lam has no digits left there; J of lam and of a larger one bound each other."""
    tiny, small = of_the_characters(bound, lam), of_the_characters(bound, 1e-9)
    assert tiny.certificate_.stop is Stop.GAP
    if bound != "tie-aware":
        assert tiny.certificate_.bound <= small.certificate_.primal
        more = (1e-9 - lam) / 2 * np.sum(tiny.coef_**2)
        assert small.certificate_.bound <= tiny.certificate_.primal + more


@pytest.mark.study
@pytest.mark.parametrize("lam", [1e-30, pytest.param(1e-300, marks=pytest.mark.study)])
def test_a_lam_that_vanishes_is_minimized_and_no_more_is_claimed(lam):
    """No bound is proved where lam ‖w‖² is lost beside the risk; the weights are good, and a warning names the cure."""
    small = of_the_characters("convex", 1e-9).certificate_
    with pytest.warns(ConvergenceWarning, match="enlarge lam"):
        tiny = of_the_characters("convex", lam, max_iter=60).certificate_
    assert 0 <= tiny.bound <= small.primal
    assert tiny.primal <= small.primal * (1 + 1e-3)


@pytest.mark.every(5)
@pytest.mark.parametrize("lam", [1e12, 1e19, 1e300])
@pytest.mark.parametrize("bound", ["convex", "tie-aware", "pairwise"])
def test_a_lam_beyond_all_risk_keeps_the_start(bound, lam):
    with pytest.warns(NoProgressWarning):
        huge = of_the_characters(bound, lam).certificate_
    assert huge.stop is Stop.GAP
    assert huge.at_start


@pytest.mark.parametrize("bound", BOUNDS)
def test_the_gap_closed_is_said_of_the_weights_that_are_returned(bound):
    """Weights from before that a judge likes better have a gap of their own, and the certificate says why; if they are
    the start, a warning says that training was of no use."""
    stops = set()
    for seed in range(3):
        X, y, qid = made(seed=seed, queries=24)
        near, far = qid < 12, qid >= 12
        ranker = LargeMarginRanker("nDCG@5", bound=bound, lam=1e-3)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ranker.fit(X[near], y[near], qid=qid[near], eval_set=(X[far], y[far]), eval_qid=qid[far])
        proved, at_start = ranker.certificate_, np.array_equal(ranker.coef_, ranker.w0_)
        assert (proved.stop is Stop.GAP) == (proved.relative_gap <= ranker.tol)
        assert (proved.stop is Stop.START) == at_start
        assert [one.category for one in caught] == [NoProgressWarning] * at_start
        assert all("start w0 was best on eval_set" in str(one.message) for one in caught)
        stops.add(proved.stop)
    assert stops <= {Stop.GAP, Stop.CHOSEN, Stop.START}
    assert stops & {Stop.CHOSEN, Stop.START}


# Small data train without compiled code, unless their masters are large: features of other scales make them so.


def drawn(features, scales):
    random = np.random.default_rng(0)
    X = random.normal(size=(8 * 60, features)) * 10.0 ** random.uniform(-scales, scales, features)
    y = np.clip(np.round(X @ (random.normal(size=features) / np.abs(X).max(axis=0))), 0, 2)
    return X, y, [60] * 8


@pytest.mark.every(5)
@pytest.mark.parametrize(("features", "scales", "compiled"), [(20, 0.0, False), (120, 4.0, True)])
def test_masters_of_small_data_are_compiled_where_many_planes_may_carry_weight(monkeypatch, features, scales, compiled):
    taken = []
    told = type(ascend).__call__
    monkeypatch.setattr(Kernel, "__call__", lambda kernel, *given: (taken.append(kernel), told(kernel, *given))[1])
    X, y, group = drawn(features, scales)
    ranker = PairwiseRanker(lam=1e-3).fit(X, y, group=group)
    assert (ascend in taken) == compiled
    assert ranker.certificate_.gap <= 1e-3 * ranker.certificate_.primal


# Block Frank-Wolfe where the reference moves: its dual does not fall behind what holds anyway, and it never stands sti


def dual_of(seed):
    """A dual after some passes, its references moved at random and its weights with them: how good they are is lost."""
    X, y, qid = made(seed=seed)
    ranker = LargeMarginRanker("nDCG@5", bound="nonconvex", w0="regression", lam=0.03)
    objective = ranker.objective(Queries.from_arrays(X, y, qid=qid))
    method = BlockFrankWolfe(batch=4, seed=seed)
    state = method.start(objective, objective.w0)
    for _ in range(3):
        state = method.step(state, objective)
    rng = np.random.default_rng(seed)
    references = state.planes.references
    moved = references + rng.normal(size=references.shape) * np.abs(references).mean()
    return (
        _Dual(replace(state, planes=state.planes.with_references(moved, state.planes.paid)), objective),
        state,
        objective,
    )


@pytest.mark.parametrize("seed", range(12))
def test_weights_that_are_shrunk_are_the_best_of_their_direction(seed):
    dual, state, objective = dual_of(seed)

    def value(part):
        step = part * dual_step
        return float(part * (heights + slopes @ objective.w0) - objective.lam / 2 * step @ step)

    heights, slopes = dual.heights.sum(), dual.slopes.sum(axis=0)
    dual_step = -slopes / objective.lam
    dual.shrink()
    kept = dual.alpha.max() / state.alpha.max()
    assert 0 <= kept <= 1
    assert value(kept) >= max(value(part) for part in np.linspace(0, 1, 101)) - 1e-12
    assert value(kept) >= 0
    found = objective.dual_bound(dual.planes().slopes, dual.planes().heights, dual.alpha)[1]
    assert found == pytest.approx(value(kept), abs=1e-12)
    np.testing.assert_allclose(dual.w, objective.w0 - dual.slopes.sum(axis=0) / objective.lam, atol=1e-9)


@pytest.mark.study
@pytest.mark.parametrize(("measure", "lam"), list(product(["nDCG@10", "P@5"], [1e-1, 1e-2, 1e-3, 1e-4])))
def test_no_false_stop_on_real_queries(measure, lam):
    """It said so at a gap of 100%: the dual was below 0, where it climbs and the bound of 0 hides that."""
    sample = load_sample("les-miserables").train
    ranker = LargeMarginRanker(measure, lam=lam, method="block_frank_wolfe", max_iter=150)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", WorseThanInitWarning)
        proved = ranker.fit(sample).certificate_
    assert proved.stop is not Stop.STALLED
    assert proved.bound > 0
