"""Methods: each reaches what the others reach, proves it, and is moved by its seed alone."""

import pickle
import warnings
from copy import deepcopy
from dataclasses import fields, replace

import numpy as np
import pytest
from planted.solvers import Failing, OneGroup
from problems.enumerated import CASES, MASTERS, Tiny, case_of, check
from problems.training import BOUNDS, made, objective_at
from sklearn.exceptions import ConvergenceWarning

from formulations import SolverError
from formulations.registry import load
from rankopt import optimize
from rankopt.data import load_sample
from rankopt.data.queries import Queries
from rankopt.errors import MasterProblemError, TrainingInterruptedWarning
from rankopt.optimize import METHODS, bundle, get_method
from rankopt.optimize.bundle import Bundle, at_groups, groups_of, grown, solved
from rankopt.optimize.certificate import LAYOUTS, ROWS, Certificate, History, Stop
from rankopt.optimize.concave_convex import follow
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
        assert majorant.regularizer(w) + majorant.risk.at(w).value >= proved.bound
    (found,) = follow(majorant, Bundle(), ranker.coef_, (majorant.lam,), 1e-7, (1000, None, ()))
    lowest = found.certificate
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


@pytest.mark.parametrize("method", METHODS)
def test_a_method_is_a_class_of_the_package(method):
    name = METHODS[method].partition(":")[2]
    assert name in optimize.__all__
    assert getattr(optimize, name)() == get_method(method)


def test_certificates_on_request_leave_the_steps_as_they_are():
    """The mean after 9 passes is the same, whenever it was looked at; at the end J is proven there."""
    X, y, qid = made(queries=40)
    objective = ranker_of("convex").objective(Queries.from_arrays(X, y, qid=qid))
    runs = [
        next(follow(objective, method, objective.w0, (objective.lam,), 0.0, (10, None, ())))
        for method in [StochasticSubgradient(certify_every=every) for every in (0, 1, 4)]
    ]
    for run in runs:
        np.testing.assert_array_equal(run.state.trial, runs[0].state.trial)
        assert run.state.latest == pytest.approx(
            objective.regularizer(run.state.trial) + objective.risk.at(run.state.trial).value
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
    with pytest.warns(TrainingInterruptedWarning):
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
    monkeypatch.setattr(bundle, "NUMBERS", room)
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
    monkeypatch.setattr(bundle, "NUMBERS", 4 * 3)
    assert groups_of(objective, 100) == 3
    monkeypatch.setattr(bundle, "NUMBERS", 1)
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


# Masters that fail: training ends with what it has and says so; another master goes on.


METHODS_WITH_MASTERS = ["bundle", "cutting_planes", "steepest_subgradient", "stochastic_subgradient"]


def ranker_of_failing(bound, **options):
    return LargeMarginRanker("nDCG@5", bound=bound, **{"lam": 1e-3, **options})


@pytest.mark.every(5)
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("method", METHODS_WITH_MASTERS)
def test_the_best_weights_and_their_gap_are_kept(method, bound):
    X, y, qid = made()
    ranker = ranker_of_failing(bound, method=method, master_solver=Failing(after=4), tol=1e-9)
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
    with pytest.raises(MasterProblemError, match="use master_solver='auto'") as caught:
        ranker_of_failing("convex", master_solver=Failing(after=0)).fit(X, y, qid=qid)
    assert isinstance(caught.value, SolverError)


def test_what_was_put_off_to_the_end_fails_alone():
    X, y, qid = made()
    ranker = ranker_of_failing(
        "convex", method=StochasticSubgradient(certify_every=0), master_solver=Failing(after=1), max_iter=3
    )
    with pytest.warns(ConvergenceWarning, match="planted"):
        assert ranker.fit(X, y, qid=qid).certificate_.stop is Stop.ITERATIONS


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_checkpoint_goes_on_with_another_master(bound, tmp_path):
    X, y, qid = made()
    ranker = ranker_of_failing(bound, checkpoint=str(tmp_path), master_solver=Failing(after=4))
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
    whole = ranker_of_failing("convex").path(X, y, qid=qid, lams=[1.0])[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        master = Failing(after=whole.n_iter_ + 2)
        path = ranker_of_failing("convex", master_solver=master).path(X, y, qid=qid, lams=[1.0, 1e-3, 1e-4])
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
    ranker = ranker_of_failing(bound, lam=0.1, tol=1e-2, method=method, master_solver=OneGroup())
    objective = ranker.objective(Queries.from_arrays(X, y, qid=qid))
    assert method.start(objective, objective.w0).planes.references.shape[0] == 1
    proved = ranker.fit(X, y, qid=qid).certificate_
    assert proved.relative_gap <= 1e-2
    if bound == "convex":
        best = ranker_of_failing(bound, lam=0.1, tol=1e-6, method=Bundle()).fit(X, y, qid=qid).certificate_
        assert proved.bound <= best.primal
        assert best.bound <= proved.primal


@pytest.mark.parametrize("method", ["bundle", "block_frank_wolfe", "stochastic_subgradient", "steepest_subgradient"])
@pytest.mark.parametrize("bound", BOUNDS)
def test_an_interruption_in_the_first_callback_leaves_the_first_step(method, bound):
    X, y, qid = made()

    def interrupt(step, state):
        raise KeyboardInterrupt

    ranker = ranker_of_failing(bound, method=method, callbacks=[interrupt])
    with pytest.warns(TrainingInterruptedWarning):
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
    ranker = ranker_of_failing("nonconvex", lam=0.1)
    with pytest.warns(TrainingInterruptedWarning):
        ranker.fit(X, y, qid=qid, eval_set=(X, y), eval_qid=qid)
    assert not hasattr(ranker, "best_score_")
    assert ranker.n_iter_ == 1
    with pytest.warns(ConvergenceWarning):
        once = ranker_of_failing("nonconvex", lam=0.1, max_iter=1).fit(X, y, qid=qid)
    np.testing.assert_array_equal(ranker.coef_, once.coef_)


# Certificates beside an optimum found apart, by writing out all rankings of tiny problems: none wrong, no fit lost, no


TRIES = 300


@pytest.mark.study
@pytest.mark.parametrize("part", range(10))
def test_certificates_hold(part):
    for number in range(part, TRIES, 10):
        case = case_of(number)
        wrong, told, proved = check(Tiny.drawn(number, 2))
        assert not wrong, f"{number} {case}: {wrong}"
        assert not told.startswith("lost"), f"{number} {case}: {told}"
        if not case[1].lower().endswith("highs"):  # its masters are not solved, which it does not know
            assert not told.startswith("stalled"), f"{number} {case}: {told} {proved}"


def test_the_tries_meet_every_method_and_master():
    met = [case_of(number) for number in range(TRIES)]
    assert len(set(met)) == TRIES
    for place, names in ((0, METHODS), (1, MASTERS)):
        counted = [sum(case[place] == name for case in met) for name in names]
        assert min(counted) > 0.5 * TRIES / len(names)
    assert {case_of(number) for number in range(len(CASES))} == set(CASES)


def test_a_wrong_certificate_is_found_out(monkeypatch):
    """The check itself: bounds that are too good and objectives that are too small do not pass."""
    from planted.solvers import Boasting

    tiny = Tiny.drawn(next(n for n in range(900) if case_of(n)[:3] == ("bundle", "auto", "convex")), 5)
    made = Tiny.ranker
    monkeypatch.setattr(Tiny, "ranker", lambda self, **options: made(self, **options).set_params(method=Boasting()))
    wrong, _, _ = check(tiny)
    assert "above the optimum" in wrong


# Histories are tables of columns, certificates have the parts of their kind; both refuse everything else.


STEPS = [load(place) for place in ROWS.values()]


def drawn(kind, count):
    rng = np.random.default_rng(0)
    whole = {field.name: field.type == "int" for field in fields(kind)}
    return [
        kind(**{name: int(rng.integers(100)) if whole[name] else float(rng.normal()) for name in whole})
        for _ in range(count)
    ]


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("count", [0, 1, 5])
def test_rows_come_back_as_they_were_given(kind, count):
    rows = drawn(kind, count)
    table = History.from_rows(kind, rows)
    assert [*table] == [table[i] for i in range(len(table))] == rows
    assert [*table.columns] == [field.name for field in fields(kind)]
    for field in fields(kind):
        assert getattr(table, field.name).dtype == (np.int64 if field.type == "int" else np.float64)
        assert getattr(table, field.name).tolist() == [getattr(row, field.name) for row in rows]
    assert [*pickle.loads(pickle.dumps(table))] == [*deepcopy(table)] == rows


@pytest.mark.parametrize("kind", STEPS)
def test_what_is_no_table_is_refused(kind):
    table = History.from_rows(kind, drawn(kind, 3))
    for name, column in table.columns.items():
        for wrong in (column[:2], column[:, None], column.tolist(), None):
            with pytest.raises(ValueError, match="is no column of numbers, one a step"):
                replace(table, columns={**table.columns, name: wrong})
        with pytest.raises(ValueError, match=f"{name} of a history has another type"):
            replace(table, columns={**table.columns, name: column.astype(np.float32)})
        for columns in ({**table.columns, "more": column}, {name: column}, [column], None):
            with pytest.raises(ValueError, match="a history"):
                replace(table, columns=columns)
    with pytest.raises(ValueError, match="is unknown"):
        replace(table, row="os:system")
    with pytest.raises(AttributeError, match="has no column 'nothing'"):
        _ = table.nothing


@pytest.mark.parametrize("kind", STEPS)
def test_every_history_is_drawn(kind):
    figures = pytest.importorskip("matplotlib.figure")
    axes = History.from_rows(kind, drawn(kind, 3)).plot(figures.Figure().subplots())
    assert axes.lines
    assert axes.get_ylabel()


VALUES = {
    "users": 1.0, "items": 0.5, "singular": np.nan, "proof": "", "convex": True, "sigma": 0.5, "gradient": 0.1,
    "measure": 0.7, "start": 0.6, "epsilon": 0.0, "features": np.arange(2), "vectors": np.zeros((1, 4)), "trees": 3,
    "claimed": "bounds of a solver",
}  # fmt: skip

WRONG = {
    "users": np.nan, "items": "a", "singular": None, "proof": "trust me", "convex": 1, "sigma": np.inf,
    "gradient": -0.1, "measure": True, "start": np.nan, "epsilon": -1e-9, "features": np.array([1, 1]),
    "vectors": np.full((1, 4), np.nan), "trees": 3.0, "claimed": "",
}  # fmt: skip


def certificate(kind, layout):
    bound = -np.inf if kind == "blocks" or "gradient" in layout else 2.0
    return Certificate(kind, 2.0, bound, Stop.GAP, parts={name: VALUES[name] for name in layout})


@pytest.mark.parametrize(("kind", "layout"), [(kind, layout) for kind in LAYOUTS for layout in LAYOUTS[kind]], ids=str)
def test_a_certificate_has_the_parts_of_its_kind(kind, layout):
    proved = certificate(kind, layout)
    assert proved == deepcopy(proved) == pickle.loads(pickle.dumps(proved))
    assert hash(proved) == hash(deepcopy(proved))
    assert proved != replace(proved, value=1.0 if kind == "directions" else 3.0)
    assert str(proved).startswith(f"{kind}: ")
    for name in layout:
        assert getattr(proved, name) is VALUES[name]
        with pytest.raises(ValueError, match=f"invalid part: {name}"):
            replace(proved, parts={**proved.parts, name: WRONG[name]})
        fewer = {one: part for one, part in proved.parts.items() if one != name}
        if tuple(fewer) not in LAYOUTS[kind]:
            with pytest.raises(ValueError, match="has the parts"):
                replace(proved, parts=fewer)
    for wrong in ({"more": 1}, {**proved.parts, "more": 1}):
        with pytest.raises(ValueError, match="has the parts"):
            replace(proved, parts=wrong)
    for changes in ({"kind": "best"}, {"at_start": 1}, {"parts": None}):
        with pytest.raises(ValueError, match="invalid kind or at_start"):
            replace(proved, **changes)
    for changes in (
        {"value": np.nan},
        {"value": "a"},
        {"value": True},
        {"bound": np.nan},
        {"bound": np.inf},
        {"bound": None},
    ):
        with pytest.raises(ValueError, match="a certificate"):
            replace(proved, **changes)
    with pytest.raises(ValueError, match="over"):
        replace(proved, stop="over")
