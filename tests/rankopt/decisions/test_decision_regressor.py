"""DecisionRegressor: what it minimizes, scikit-learn's conventions, and the samples."""

import pickle

import cvxpy as cp
import numpy as np
import pytest
from problems.decisions import KINDS, instances, sign_of, spo_plus
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankopt
from formulations import (
    LinearProgram,
    RankingSet,
    UnsupportedProblemError,
    constrained_ranking,
    matching,
    solve,
)
from rankopt.data import decision_samples
from rankopt.decisions import DecisionRegressor
from rankopt.engines.dask import Dask
from rankopt.errors import DataError, ModelError, OptionError
from rankopt.optimize.certificate import Stop
from rankopt.rankers import save_model


@pytest.fixture(scope="module")
def paths():
    return decision_samples("shortest-path", 120, degree=4, noise=0.25, size=3, seed=1)


def best_costs(problem, costs):
    found = [solve(type(problem)(problem.tail, problem.head, problem.capacity, c, problem.supply)).value for c in costs]
    return np.array(found)


@pytest.mark.parametrize("kind", ["shortest path", "assignment", "top two"])
@pytest.mark.parametrize("w0", ["zeros", "regression"])
def test_the_certificate_is_of_the_mean_spo_plus_loss_of_the_predictions(kind, w0):
    rng = np.random.default_rng(0)
    problem, points = KINDS[kind](rng)
    X, costs = instances(rng, 8, points.shape[1])
    model = DecisionRegressor(problem, lam=0.05, w0=w0).fit(X, costs)
    sign = -sign_of(problem)
    losses = [spo_plus(points, sign * own, sign * true) for own, true in zip(model.predict(X), costs, strict=True)]
    W = np.column_stack([model.coef_, model.intercept_])
    if w0 == "regression":
        fitted = LinearRegression().fit(X, costs)
        W = W - np.column_stack([fitted.coef_, fitted.intercept_])
    assert model.certificate_.kind == "global"
    assert model.certificate_.relative_gap <= 1e-3
    assert model.certificate_.value == pytest.approx(np.mean(losses) + 0.025 * (W**2).sum(), abs=1e-9)


def test_decisions_are_best_under_the_predicted_costs(paths):
    model = DecisionRegressor(paths.problem).fit(paths.X[:60], paths.costs[:60])
    X, costs = paths.X[60:], paths.costs[60:]
    decided, predicted = model.decide(X), model.predict(X)
    np.testing.assert_allclose(decided.value, (decided.decision * predicted).sum(axis=1))
    np.testing.assert_allclose(decided.value, best_costs(paths.problem, predicted))
    assert (decided.gap <= 1e-9).all()
    regret, best = (
        (decided.decision * costs).sum(axis=1) - best_costs(paths.problem, costs),
        best_costs(paths.problem, costs),
    )
    np.testing.assert_allclose(model.regret(X, costs), regret, atol=1e-9)
    assert model.score(X, costs) == pytest.approx(-regret.sum() / np.abs(best).sum())


def test_training_on_the_decisions_beats_least_squares_where_the_model_is_misspecified():
    sample = decision_samples("shortest-path", 500, degree=8, noise=0.0, seed=2)
    train, test = (sample.X[:300], sample.costs[:300]), (sample.X[300:], sample.costs[300:])
    least, spo = (DecisionRegressor(sample.problem, loss=loss).fit(*train).score(*test) for loss in ("squared", "spo+"))
    assert spo > 0.6 * least  # scores are negative


@pytest.mark.parametrize(
    ("kind", "solvers"),
    [
        ("assignment", ["auto", "scipy", "ortools", "highs", "networkx"]),
        ("shortest path", ["auto", "ortools", "highs"]),
    ],
)
def test_solvers_agree_on_the_objective(kind, solvers):
    rng = np.random.default_rng(3)
    problem, points = KINDS[kind](rng)
    X, costs = instances(rng, 10, points.shape[1], integers=True)
    # As optimal decisions tie, the reference is fixed by the observed ones.
    observed = points[[int(np.argmin(points @ own)) for own in costs]]
    found = [
        DecisionRegressor(problem, loss="hamming", lam=0.1, solver=solver).fit(X, decisions=observed).certificate_
        for solver in solvers
    ]
    assert max(one.bound for one in found) <= min(one.value for one in found) + 1e-9


def test_squared_loss_is_ridge_regression(paths):
    X, costs = paths.X[:40], paths.costs[:40]
    least = LinearRegression().fit(X, costs)
    model = DecisionRegressor(paths.problem, loss="squared", lam=1e-10).fit(X, costs)
    np.testing.assert_allclose(model.predict(X), least.predict(X), atol=1e-6)
    strong = DecisionRegressor(paths.problem, loss="squared", lam=0.5, fit_intercept=False).fit(X, costs)
    apart = strong.predict(X) - costs
    np.testing.assert_allclose(0.5 * strong.coef_ + apart.T @ X / len(X), 0.0, atol=1e-9)
    assert strong.certificate_.relative_gap <= 1e-9


def test_squared_loss_of_collinear_features_is_least_squares(paths):
    X, costs = np.hstack([paths.X, paths.X, np.ones((len(paths.X), 1))]), paths.costs
    with pytest.warns(ConvergenceWarning):
        model = DecisionRegressor(paths.problem, loss="squared", lam=1e-300).fit(X, costs)
    np.testing.assert_allclose(model.predict(X), LinearRegression().fit(X, costs).predict(X), atol=1e-9)


def test_shared_weights_are_one_weight_vector_of_stacked_features():
    rng = np.random.default_rng(4)
    problem, points = KINDS["assignment"](rng)
    X, costs = instances(rng, 10, points.shape[1])
    stacked = np.einsum("jk,id->ijkd", np.eye(9), X).reshape(10, 9, 27)
    options = {"lam": 0.1, "fit_intercept": False, "w0": "zeros", "tol": 1e-6}
    own = DecisionRegressor(problem, **options).fit(X, costs)
    shared = DecisionRegressor(problem, **options).fit(stacked, costs)
    assert shared.certificate_.value == pytest.approx(own.certificate_.value, rel=2e-6)
    assert shared.coef_.shape == (27,)
    np.testing.assert_allclose(shared.predict(stacked), own.predict(X), atol=0.05)
    assert own.certificate_.bound <= shared.certificate_.value + 1e-12


def test_observed_decisions_are_recovered_where_costs_explain_them(paths):
    truth = decision_samples("shortest-path", 80, degree=1, noise=0.0, size=3, seed=3)
    observed = DecisionRegressor(truth.problem, loss="squared").fit(truth.X, truth.costs).decide(truth.X).decision
    model = DecisionRegressor(truth.problem, loss="hamming", lam=1e-5).fit(truth.X, decisions=observed)
    np.testing.assert_array_equal(model.decide(truth.X).decision, observed)
    assert model.certificate_.value < 1e-2


def test_costs_and_their_best_decisions_are_the_same_to_the_hamming_loss(paths):
    X, costs = paths.X[:30], paths.costs[:30]
    options = {"loss": "hamming", "lam": 0.1, "w0": "zeros"}
    from_costs = DecisionRegressor(paths.problem, **options).fit(X, costs)
    best = DecisionRegressor(paths.problem, loss="squared", lam=1.0, w0=None).fit(X, costs)
    decisions = best._decided((paths.problem,), costs).decision
    observed = DecisionRegressor(paths.problem, **options).fit(X, decisions=decisions)
    assert from_costs.certificate_.value == pytest.approx(observed.certificate_.value, rel=1e-12)


def test_decisions_that_break_constraints_are_counted_and_the_certificate_stays_right():
    rng = np.random.default_rng(5)
    problem, points = KINDS["top two"](rng)
    X = rng.normal(size=(6, 3))
    observed = np.ones((6, 5))
    observed[:3] = points[:3]
    with pytest.warns(UserWarning, match="3 of 6 observed decisions break the constraints"):
        model = DecisionRegressor(problem, loss="hamming", lam=0.1).fit(X, decisions=observed)
    scores = 2.0 * model.predict(X)
    profit = 2.0 * observed - 1.0
    losses = [(points @ (s - b)).max() + b @ y - s @ y for s, b, y in zip(scores, profit, observed, strict=True)]
    size = (model.coef_**2).sum() + (model.intercept_**2).sum()
    assert model.certificate_.value == pytest.approx(np.mean(losses) + 0.05 * size, abs=1e-8)
    assert model.certificate_.relative_gap <= 1e-3


def test_problems_may_differ_by_instance():
    rng = np.random.default_rng(6)

    def problem(x):
        k = np.array([1.0 if x[0] < 0 else 3.0])
        return LinearProgram(np.ones(5), np.ones((1, 5)), k, k, np.zeros(5), np.ones(5))

    X, profits = instances(rng, 12, 5)
    model = DecisionRegressor(problem, lam=0.1).fit(X, profits)
    np.testing.assert_allclose(model.decide(X).decision.sum(axis=1), np.where(X[:, 0] < 0, 1.0, 3.0))
    assert (model.regret(X, profits) >= 0).all()


def test_a_model_of_another_tool_is_a_problem():
    rng = np.random.default_rng(8)
    program, points = KINDS["top two"](rng)
    X, costs = instances(rng, 6, points.shape[1])
    arguments = {"c": np.ones(5), "A_eq": np.ones((1, 5)), "b_eq": [2.0], "bounds": (0.0, 1.0)}
    cheapest = LinearProgram(
        program.objective, program.matrix, program.row_lower, program.row_upper, program.lower, program.upper, False
    )
    one, other = (DecisionRegressor(problem, lam=0.1).fit(X, costs).certificate_ for problem in (arguments, cheapest))
    assert one.value == pytest.approx(other.value, rel=1e-3)


def test_engines_agree_bit_for_bit():
    sample = decision_samples("top-k", 300, size=4, seed=4)
    dask, options = Dask(workers=1), {"problem": sample.problem, "lam": 1.0}
    try:
        models = [DecisionRegressor(**options, engine=one).fit(sample.X, sample.costs) for one in ("serial", dask)]
    finally:
        dask.close()
    np.testing.assert_array_equal(*[model.coef_ for model in models])


def test_neither_order_nor_repetition_of_instances_matters(paths):
    X, costs = paths.X[:30], paths.costs[:30]
    order = np.random.default_rng(0).permutation(30)
    model = DecisionRegressor(paths.problem, lam=0.01, w0="zeros")
    straight = clone(model).fit(X, costs).certificate_
    weights = np.where(np.arange(30) < 10, 2.0, 1.0)
    repeated = clone(model).fit(np.vstack([X, X[:10]]), np.vstack([costs, costs[:10]])).certificate_
    for one, other in (
        (straight, clone(model).fit(X[order], costs[order]).certificate_),
        (repeated, clone(model).fit(X, costs, sample_weight=weights).certificate_),
    ):
        assert max(one.bound, other.bound) <= min(one.value, other.value) + 1e-12


@pytest.mark.parametrize("loss", ["spo+", "nonconvex", "squared"])
@pytest.mark.parametrize("unit", [2.0**-400, 2.0**-40, 2.0**400])
def test_the_unit_of_costs_does_not_matter(paths, loss, unit):
    X, costs = paths.X[:40], paths.costs[:40]
    one, other = (DecisionRegressor(paths.problem, loss=loss).fit(X, scale * costs) for scale in (1.0, unit))
    assert other.certificate_.relative_gap <= 1e-3
    np.testing.assert_allclose(other.coef_ / unit, one.coef_, rtol=1e-6, atol=1e-9)


def test_the_scale_of_features_and_costs_does_not_matter(paths):
    X, costs, units = paths.X[:40], paths.costs[:40], np.array([1e3, 1.0, 1e-2, 1.0, 5.0])
    straight = DecisionRegressor(paths.problem, tol=1e-6).fit(X, costs)
    scaled = DecisionRegressor(paths.problem, tol=1e-6).fit(X * units, 100.0 * costs)
    assert scaled.certificate_.value == pytest.approx(100.0 * straight.certificate_.value, rel=2e-6)
    assert scaled.score(X * units, 100.0 * costs) == pytest.approx(straight.score(X, costs), abs=0.01)


def test_a_path_is_the_fits_of_each_lam(paths):
    X, costs, test = paths.X[:40], paths.costs[:40], (paths.X[40:], paths.costs[40:])
    found = DecisionRegressor(paths.problem).path(X, costs, lams=[0.01, 1.0, 0.1], eval_set=test)
    assert found.lams == (1.0, 0.1, 0.01)
    for model in found:
        own = DecisionRegressor(paths.problem, lam=model.lam_).fit(X, costs).certificate_
        assert max(own.bound, model.certificate_.bound) <= min(own.value, model.certificate_.value) + 1e-12
        assert model.best_score_ == pytest.approx(model.score(*test))
    assert found.best.best_score_ == max(model.best_score_ for model in found)


def test_scikit_learn_can_clone_search_and_pickle_it(paths, tmp_path):
    model = DecisionRegressor(paths.problem, lam=0.1)
    assert clone(model).get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert cross_val_score(model, paths.X, paths.costs, cv=3).shape == (3,)
    search = GridSearchCV(make_pipeline(StandardScaler(), model), {"decisionregressor__lam": [0.1, 1.0]}, cv=2)
    assert search.fit(paths.X, paths.costs).score(paths.X, paths.costs) <= 0.0
    model.fit(paths.X, paths.costs)
    model.save(tmp_path / "model")
    for same in (pickle.loads(pickle.dumps(model)), rankopt.load_model(tmp_path / "model")):
        np.testing.assert_array_equal(same.predict(paths.X), model.predict(paths.X))
        np.testing.assert_array_equal(same.decide(paths.X).decision, model.decide(paths.X).decision)
        assert same.certificate_ == model.certificate_
    with pytest.raises(NotFittedError):
        clone(model).predict(paths.X)


@pytest.mark.parametrize("kind", ["assignment", "top two"])
def test_models_of_other_problems_are_saved_too(kind, tmp_path):
    rng = np.random.default_rng(7)
    problem, points = KINDS[kind](rng)
    X, costs = instances(rng, 6, points.shape[1])
    model = DecisionRegressor(problem, lam=1.0).fit(X, costs)
    save_model(model, tmp_path / "model")
    np.testing.assert_array_equal(rankopt.load_model(tmp_path / "model").decide(X).decision, model.decide(X).decision)


@pytest.mark.parametrize(
    ("name", "value"),
    [("coef_", np.ones((2, 5))), ("intercept_", np.full(12, np.nan)), ("shared_weights_", True), ("loss", "spo")],
)
def test_a_model_that_does_not_fit_together_is_not_saved(paths, tmp_path, name, value):
    model = DecisionRegressor(paths.problem, lam=1.0).fit(paths.X, paths.costs)
    setattr(model, name, value)
    with pytest.raises(ModelError, match=r"parameter has a value|coef_ or intercept_"):
        model.save(tmp_path / "model")


@pytest.mark.parametrize("profit", [np.ones((2, 4)), np.eye(2, 4)])
def test_a_model_of_constrained_rankings_is_saved(profit, tmp_path):
    rng = np.random.default_rng(0)
    X, profits = instances(rng, 6, 8)
    sites = RankingSet(4, 2).at_most(1, by=["a", "a", "b", "b"], name="site").at_most(0, documents=[3], positions=[0])
    sites = sites.at_most(share=0.5, documents=[0, 1])
    model = DecisionRegressor(constrained_ranking(profit, sites), lam=1.0).fit(X, profits)
    model.save(tmp_path / "model")
    same = rankopt.load_model(tmp_path / "model")
    np.testing.assert_array_equal(same.decide(X).decision, model.decide(X).decision)


def test_a_function_of_problems_cannot_be_saved(tmp_path):
    model = DecisionRegressor(lambda x: matching(np.ones((2, 2))), lam=1.0).fit(np.eye(3), np.ones((3, 4)))
    with pytest.raises(ModelError, match="pass as_problem"):
        model.save(tmp_path / "model")


def test_a_constant_of_a_model_s_objective_is_no_variable_of_the_decision(tmp_path):
    rng = np.random.default_rng(3)
    X, costs = instances(rng, 8, 4)
    x = cp.Variable(4)
    text = "Minimize\n obj: a + b + c + d + 100\nSubject To\n one: a + b + c + d = 1\nEnd\n"
    (tmp_path / "model.lp").write_text(text, encoding="utf-8")
    rows = LinearProgram(
        np.ones(4), np.ones((1, 4)), [1.0], [1.0], np.zeros(4), np.full(4, np.inf), is_maximization=False
    )
    known = DecisionRegressor(rows, lam=1.0, tol=1e-8).fit(X, costs)
    for model in (cp.Problem(cp.Minimize(cp.sum(x) + 100), [x >= 0, cp.sum(x) == 1]), str(tmp_path / "model.lp")):
        found = DecisionRegressor(model, lam=1.0, tol=1e-8).fit(X, costs)
        assert found.coef_.shape == (4, X.shape[1])
        np.testing.assert_allclose(found.coef_, known.coef_, atol=1e-3)
        np.testing.assert_allclose(found.decide(X).decision, known.decide(X).decision, atol=1e-9)


def test_limits_and_callbacks_end_training(paths):
    seen = []
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = DecisionRegressor(paths.problem, lam=1e-4, tol=1e-9, max_iter=2).fit(paths.X, paths.costs)
    assert model.n_iter_ == len(model.history_) == 2
    DecisionRegressor(
        paths.problem, lam=1e-4, callbacks=[lambda step, state: seen.append(step.primal) or len(seen) > 2]
    ).fit(paths.X, paths.costs)
    assert len(seen) == 3


@pytest.mark.parametrize(
    ("options", "data", "error", "message"),
    [
        ({"loss": "spo"}, {}, OptionError, "loss must be 'spo\\+', "),
        ({"lam": -1.0}, {}, OptionError, "lam must be"),
        ({"w0": "ridge"}, {}, OptionError, "w0 must be 'zeros'"),
        ({"problem": 3}, {}, OptionError, "problem must be a problem of formulations"),
        ({"problem": LinearProgram}, {}, OptionError, "problem must be a problem of formulations"),
        ({}, {"costs": None}, DataError, "either costs or decisions"),
        ({}, {"costs": np.full((4, 9), 1e307)}, DataError, "largest cost .* got 1e.307. Rescale"),
        ({}, {"X": np.full((4, 2), -1e160)}, DataError, "largest feature must be at most 1e.140; got 1e.160. Rescale"),
        ({}, {"costs": np.full((4, 9), 1e-150)}, DataError, "largest cost .* got 1e-150. Rescale"),
        ({}, {"costs": None, "decisions": np.ones((4, 9))}, OptionError, "loss='hamming' for observed decisions"),
        ({}, {"costs": np.ones((3, 9))}, DataError, "does not fit X"),
        ({}, {"costs": np.ones((4, 8))}, DataError, r"costs have the shape \(4, 8\)"),
        ({}, {"costs": np.ma.masked_equal(np.eye(4, 9), 1)}, DataError, "costs .*mask"),
        ({}, {"X": np.ma.masked_equal(np.eye(4), 1)}, DataError, "X .*mask"),
        ({}, {"costs": np.full((4, 9), np.nan)}, ValueError, "costs contains NaN"),
        ({}, {"X": np.full((4, 9, 2), np.inf)}, ValueError, "X contains infinity"),
        ({}, {"costs": 3.0}, DataError, "costs have the shape"),
        ({}, {"costs": [["a"] * 9] * 4}, DataError, "costs must be an array of 4 × 9 numbers"),
        ({}, {"costs": np.full((4, 9), 1j)}, ValueError, "Complex data"),
        ({}, {"eval_set": np.eye(4)}, DataError, "eval_set must be a pair"),
        ({"loss": "squared", "w0": [1.0]}, {}, OptionError, "w0 must be 45 finite numbers"),
        ({}, {"X": np.ones((4, 8, 2))}, DataError, "does not fit X"),
        ({}, {"sample_weight": [1.0, 1.0, 0.0, 1.0]}, DataError, "sample_weight must be 4 positive numbers"),
    ],
)
def test_errors_name_the_cure(options, data, error, message):
    model = DecisionRegressor(**{"problem": matching(np.ones((3, 3))), **options})
    with pytest.raises(error, match=message):
        model.fit(**{"X": np.eye(4), "costs": np.ones((4, 9)), **data})


def test_an_instance_for_which_the_problem_is_not_made_is_named():
    depots = {0: matching(np.ones((3, 3)))}
    for build, cause in (
        (lambda row: depots[int(row.argmax())], KeyError),
        (lambda row: 3 if row.argmax() else depots[0], UnsupportedProblemError),
    ):
        with pytest.raises(OptionError, match=r"makes no problem of instance 1: \w+: .+") as caught:
            DecisionRegressor(build).fit(np.eye(4), np.ones((4, 9)))
        assert type(caught.value.__cause__) is cause
    with pytest.raises(OptionError, match=r"instance 0: TypeError: .* takes 0 positional arguments"):
        DecisionRegressor(lambda: depots[0]).fit(np.eye(4), np.ones((4, 9)))


def test_a_score_has_positive_weights_of_its_instances(paths):
    model = DecisionRegressor(paths.problem, loss="squared").fit(paths.X, paths.costs)
    for weights in (-np.ones(len(paths.X)), [1.0]):
        with pytest.raises(DataError, match="sample_weight must be"):
            model.score(paths.X, paths.costs, sample_weight=weights)


def test_a_ridge_too_weak_to_be_proved_reports_its_gap(paths):
    with pytest.warns(ConvergenceWarning):
        model = DecisionRegressor(paths.problem, loss="squared", lam=1e-300).fit(paths.X, paths.costs)
    assert model.certificate_.stop is Stop.STALLED
    assert 0.0 <= model.certificate_.bound <= model.certificate_.primal


@pytest.mark.parametrize("name", ["shortest-path", "top-k"])
def test_a_degree_too_high_for_doubles_is_refused(name):
    assert np.isfinite(decision_samples(name, 30, degree=100).costs).all()
    with pytest.raises(OptionError, match="degree must be an integer >= 1 and <= 100; got 1000"):
        decision_samples(name, degree=1000)


@pytest.mark.parametrize("name", ["shortest-path", "knapsack", "assignment", "scheduling", "top-k"])
def test_a_longer_sample_begins_with_the_shorter_one(name):
    short, long = (decision_samples(name, n, degree=3, size=4, seed=7) for n in (5, 20))
    np.testing.assert_array_equal(long.X[:5], short.X)
    np.testing.assert_allclose(long.expected_costs[:5], short.expected_costs, rtol=1e-12)
    np.testing.assert_allclose(long.costs[:5], short.costs, rtol=1e-12)


@pytest.mark.parametrize("name", ["shortest-path", "knapsack", "assignment", "scheduling", "top-k"])
def test_samples_are_seeded_linear_at_degree_one_and_feasible(name):
    sample, again = (decision_samples(name, 30, n_features=4, seed=5) for _ in range(2))
    np.testing.assert_array_equal(sample.costs, again.costs)
    assert solve(sample.problem).status.name in ("OPTIMAL", "BOUNDED_GAP")
    ratio = sample.costs.sum() / sample.expected_costs.sum()
    assert 0.9 < ratio < 1.1
    exact = decision_samples(name, 30, n_features=4, noise=0.0)
    np.testing.assert_array_equal(exact.costs, exact.expected_costs)
    flat = exact.X.reshape(-1, 4)
    targets = exact.costs.reshape(len(flat), -1)
    if name != "scheduling":  # the constant of a start is that of its slots, times their power
        np.testing.assert_allclose(LinearRegression().fit(flat, targets).predict(flat), targets)
