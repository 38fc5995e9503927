"""Inverse optimization: against linear programs over all points, on small problems."""

import numpy as np
import pytest
from problems.decisions import KINDS, sign_of
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from formulations import Highs, InfeasibleError, LinearProgram, UnboundedError, matching
from rankopt import load_model
from rankopt.data import decision_samples
from rankopt.decisions import DecisionRegressor, recover_costs
from rankopt.errors import DataError, OptionError


def observations(kind, seed, count=6, features=2):
    """Features (m, d) and decisions that are often, not always, best under costs that are linear in them."""
    rng = np.random.default_rng(seed)
    problem, points = KINDS[kind](rng)
    X = rng.normal(size=(count, features))
    noise = rng.choice([0.0, 0.3, 1.0]) * rng.normal(size=(count, points.shape[1]))
    profit = X @ rng.normal(size=(features, points.shape[1])) + noise
    return problem, points, X, points[(points @ profit.T).argmax(axis=0)]


def differences(points, X, observed):
    """(m, p, n d) the gradients by W of sᵀ(y - y_i), s_i = W x_i, for all points y."""
    apart = points[None] - observed[:, None]
    return (apart[..., None] * X[:, None, None, :]).reshape(*apart.shape[:2], -1)


def least_loss(points, X, observed, limits=None):
    """min over W, |W| <= limits, of the mean of max_y ‖y - y_i‖₁ + s_iᵀ(y - y_i)."""
    rows, m = differences(points, X, observed), len(X)
    matrix = np.hstack([rows.reshape(-1, rows.shape[2]), -np.repeat(np.eye(m), len(points), axis=0)])
    heights = np.abs(points[None] - observed[:, None]).sum(axis=2).ravel()
    objective = np.append(np.zeros(rows.shape[2]), np.full(m, 1.0 / m))
    box = [(None, None)] * objective.size
    if limits is not None:
        box[: rows.shape[2]] = [(-limit, limit) for limit in np.tile(limits, points.shape[1])]
    return linprog(objective, matrix, -heights, bounds=box).fun


def has_costs_with_ties(points, X, observed):
    """Whether each decision is an optimum under costs that do not treat all points alike."""
    rows = differences(points, X, observed)
    flat = rows.reshape(-1, rows.shape[2])
    return -linprog(flat.sum(axis=0), flat, np.zeros(len(flat)), bounds=(-1.0, 1.0)).fun > 1e-7


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_unique_optima_are_found_where_they_exist_and_the_least_loss_is_proved_where_not(kind, seed):
    problem, points, X, observed = observations(kind, seed)
    found = recover_costs(problem, X, observed, fit_intercept=False)
    least, proved = least_loss(points, X, observed), found.model.certificate_
    assert proved.bound <= least + 1e-9
    assert proved.value == pytest.approx(least, abs=2e-6)
    assert proved.gap <= 1e-6
    values = sign_of(problem) * found.model.predict(X) @ points.T
    losses = 2.0 * (values - (sign_of(problem) * found.model.predict(X) * observed).sum(axis=1)[:, None])
    losses += np.abs(points[None] - observed[:, None]).sum(axis=2)
    np.testing.assert_allclose(found.loss, losses.max(axis=1), atol=1e-9)
    best = [points[own >= own.max() - 1e-9] for own in values]
    unique = [len(one) == 1 and bool((one[0] == y).all()) for one, y in zip(best, observed, strict=True)]
    np.testing.assert_array_equal(found.explained, unique)
    if least < 1e-9:
        assert found.explained.all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_with_ties_costs_are_found_exactly_where_some_explain_that_tell_decisions_apart(kind, seed):
    problem, points, X, observed = observations(kind, seed)
    exists = has_costs_with_ties(points, X, observed)
    try:
        found = recover_costs(problem, X, observed, ties=True, fit_intercept=False)
    except InfeasibleError:
        assert not exists
        return
    assert found.explained.all() == exists  # features are in general position: no costs of one instance are constant
    assert found.model.certificate_.gap <= 1e-6
    assert (found.model.certificate_.bound > 1e-6) == (not exists)
    profit = sign_of(problem) * found.model.predict(X)
    values, own = profit @ points.T, (profit * observed).sum(axis=1)
    np.testing.assert_allclose(found.loss, 2.0 * (values.max(axis=1) - own), atol=1e-9)
    assert (own - values.mean(axis=1)).mean() > 1e-3 * exists


def test_decisions_of_one_instance_that_differ_are_optima_only_with_ties():
    problem, points = KINDS["assignment"](None)
    X, observed = np.ones((2, 1)), points[:2]
    apart = recover_costs(problem, X, observed, fit_intercept=False)
    assert not apart.explained.any()
    assert apart.model.certificate_.bound == pytest.approx(least_loss(points, X, observed), abs=1e-6)
    assert recover_costs(problem, X, observed, ties=True, fit_intercept=False).explained.all()
    every = recover_costs(problem, np.ones((len(points), 1)), points, ties=True, fit_intercept=False)
    assert every.model.certificate_.bound > 1e-3  # costs u_i + v_j, under which all assignments tie, do not count
    pair = matching(np.ones((2, 2)))
    with pytest.raises(InfeasibleError, match="all decisions are alike"):
        recover_costs(pair, np.ones((2, 1)), [[1, 0, 0, 1], [0, 1, 1, 0]], ties=True, fit_intercept=False)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e-12, 1e-9, 1e12, (1.0, 1e-10), (3e7, 1e-12)])
def test_units_of_features_do_not_matter(kind, scale, ties):
    for seed in (1, 2):
        problem, _, X, observed = observations(kind, seed)
        try:
            first = recover_costs(problem, X, observed, ties=ties, fit_intercept=False)
        except InfeasibleError:
            with pytest.raises(InfeasibleError):
                recover_costs(problem, X * scale, observed, ties=ties, fit_intercept=False)
            continue
        found = recover_costs(problem, X * scale, observed, ties=ties, fit_intercept=False)
        np.testing.assert_array_equal(found.explained, first.explained)
        np.testing.assert_allclose(found.loss, first.loss, atol=1e-6)
        assert found.model.certificate_.bound == pytest.approx(first.model.certificate_.bound, abs=2e-6)
        assert (np.abs(found.model.coef_) * np.abs(X * scale).max(axis=0)).max() <= 1e6


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [0.1, 1.0])
def test_weights_are_within_the_limit_and_the_bound_is_that_of_such_weights(kind, limit):
    for seed in range(3):
        problem, points, X, observed = observations(kind, seed)
        largest = np.abs(X).max(axis=0)
        found = recover_costs(problem, X * 1e-9, observed, limit=limit, fit_intercept=False)
        least = least_loss(points, X, observed, 2.0 * limit / largest)  # scores are twice the profits
        assert (np.abs(found.model.coef_) * 1e-9 * largest <= limit * (1.0 + 1e-12)).all()
        assert found.model.certificate_.bound <= least + 1e-7
        assert found.model.certificate_.value == pytest.approx(least, abs=2e-6)
        assert found.model.certificate_.gap <= 1e-6


def test_a_unique_optimum_of_a_loss_above_one_is_explained():
    sample = decision_samples("shortest-path", 1, size=2)
    paths = np.array(list(_paths(sample.problem)))
    X, first = np.array([[-0.47], [-0.35], [-0.36], [-0.23]]), [0, 1, 0, 0]
    observed = paths[[int(np.flatnonzero(paths[:, 0] == one)[0]) for one in first]]
    found = recover_costs(sample.problem, X, observed, fit_intercept=False)
    costs = found.model.predict(X)
    unique = (costs * observed).sum(axis=1) < (costs * (1.0 - observed)).sum(axis=1)  # the other path
    np.testing.assert_array_equal(found.explained, unique)
    np.testing.assert_array_equal(unique, [True, False, True, True])
    assert found.loss[3] > 1.0


def test_costs_under_which_all_decisions_of_an_instance_are_alike_do_not_explain_it():
    problem = decision_samples("shortest-path", 1, size=2).problem
    paths = np.array(list(_paths(problem)))
    found = recover_costs(problem, np.eye(2), paths, ties=True, fit_intercept=False)
    differences = (found.model.predict(np.eye(2)) * (paths[::-1] - paths)).sum(axis=1)  # to the other path
    assert found.explained.all()  # though one instance with costs would suffice for the normalization
    assert (differences > 0.1).all()
    X = np.eye(2)[[0, 1, 1]]  # the last two instances contradict one another
    found = recover_costs(problem, X, paths[[0, 0, 1]], ties=True, fit_intercept=False)
    np.testing.assert_array_equal(found.explained, [True, False, False])
    np.testing.assert_allclose(found.loss, 0.0, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_with_ties_as_many_instances_are_explained_as_have_costs_of_their_own(kind, seed):
    """With a feature for each group, each group of instances has its own costs."""
    rng = np.random.default_rng(seed)
    problem, points = KINDS[kind](rng)
    group = np.array([0, 0, 1, 1, 2])
    observed = points[rng.integers(0, len(points), group.size)]
    exists = [has_costs_with_ties(points, np.ones((sum(group == g), 1)), observed[group == g]) for g in range(3)]
    found = recover_costs(problem, np.eye(3)[group], observed, ties=True, fit_intercept=False)
    np.testing.assert_array_equal(found.explained, np.array(exists)[group])


@pytest.mark.parametrize("ties", [False, True])
def test_costs_of_paths_on_a_grid_are_recovered(ties, tmp_path):
    sample = decision_samples("shortest-path", 40, noise=0.0, seed=1)
    paths = np.array([path for path in _paths(sample.problem)])
    observed = paths[(sample.costs @ paths.T).argmin(axis=1)]
    found = recover_costs(sample.problem, sample.X, observed, ties=ties)
    assert found.explained.all()
    costs = found.model.predict(sample.X)
    own = (costs * observed).sum(axis=1)
    others = np.where((paths[None] == observed[:, None]).all(axis=2), np.inf, costs @ paths.T)
    assert (others.min(axis=1) > own if not ties else others.min(axis=1) >= own - 1e-6).all()
    found.model.save(tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict(sample.X), costs)


def _paths(problem):
    """All paths from the first to the last node of a network without cycles."""
    last = int(max(problem.head))

    def onward(node, used):
        if node == last:
            yield np.isin(np.arange(problem.tail.size), used).astype(float)
        for arc in np.flatnonzero(problem.tail == node).tolist():
            yield from onward(int(problem.head[arc]), [*used, arc])

    return onward(0, [])


def test_features_of_each_variable_share_weights():
    rng = np.random.default_rng(0)
    problem, points = KINDS["top two"](rng)
    X = rng.normal(size=(20, 5, 2))
    observed = points[(X @ [1.0, -2.0] @ points.T).argmax(axis=1)]
    for ties in (False, True):
        found = recover_costs(problem, X, observed, ties=ties)
        assert found.explained.all()
        assert found.model.coef_.shape == (2,)
        profit = found.model.predict(X)
        assert ((profit * observed).sum(axis=1) >= (profit @ points.T).max(axis=1) - 1e-6).all()
    assert found.model.coef_[1] / found.model.coef_[0] == pytest.approx(-2.0, rel=0.5)


@pytest.mark.parametrize("ties", [False, True])
def test_feasible_sets_may_differ_by_instance(ties):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 2))

    def problem(x):
        k = np.array([1.0 if x[0] < 0 else 3.0])
        return LinearProgram(np.ones(5), np.ones((1, 5)), k, k, np.zeros(5), np.ones(5))

    order = np.argsort(np.argsort(-X @ rng.normal(size=(2, 5)), axis=1), axis=1)
    observed = (order < np.where(X[:, 0] < 0, 1, 3)[:, None]) * 1.0
    found = recover_costs(problem, X, observed, ties=ties)
    assert found.explained.all()
    profit = found.model.predict(X)
    lowest = np.where(observed == 1.0, profit, np.inf).min(axis=1)
    assert (lowest >= np.where(observed == 0.0, profit, -np.inf).max(axis=1) - 1e-6).all()


def test_a_solver_that_finds_nothing_better_ends_the_search_with_an_open_gap():
    rng = np.random.default_rng(0)
    problem, points = KINDS["knapsack"](rng)
    X, observed = rng.normal(size=(4, 2)), points[rng.integers(0, len(points), 4)]
    with pytest.warns(ConvergenceWarning, match="no step narrowed the gap"):
        found = recover_costs(problem, X, observed, solver=Highs(time_limit=1e-9))
    assert found.model.certificate_.bound <= least_loss(points, np.column_stack([X, np.ones(4)]), observed) + 1e-9
    assert found.model.certificate_.gap > 0.1


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"decisions": np.eye(3, 5)}, DataError, "3 of 3 decisions break the constraints"),
        ({"decisions": np.full((3, 5), 0.4)}, DataError, "pass ties=True"),
        ({"limit": 0.0}, OptionError, "limit must be"),
        ({"ties": 2}, OptionError, "ties must be"),
        ({"ties": True, "limit": 1e-9}, DataError, "limit = 1e-09 fulfil the normalization; raise limit"),
    ],
)
def test_errors_name_the_cure(options, error, message):
    k = np.array([2.0])
    problem = LinearProgram(np.ones(5), np.ones((1, 5)), k, k, np.zeros(5), np.ones(5))
    given = {"X": np.eye(3), "decisions": np.array([[1.0, 1.0, 0.0, 0.0, 0.0]] * 3), **options}
    with pytest.raises(error, match=message):
        recover_costs(problem, **given)


def test_a_search_that_is_cut_short_names_its_own_options():
    problem, _, X, observed = observations("assignment", 0)
    with pytest.warns(ConvergenceWarning, match=r"recover_costs stopped .* raise max_iter or accept a larger tol$"):
        recover_costs(problem, X, observed, max_iter=2)


@pytest.mark.parametrize("ties", [False, True])
def test_an_unbounded_feasible_set_is_refused(ties):
    endless = np.full(3, np.inf)
    cover = LinearProgram(
        np.ones(3), [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]], np.ones(2), endless[:2], np.zeros(3), endless,
        is_maximization=False,
    )  # fmt: skip
    with pytest.raises(UnboundedError, match="feasible set must be bounded; add upper limits of variables"):
        recover_costs(cover, np.eye(2), [[0, 1, 0], [1, 0, 1]], ties=ties)


def test_variables_beyond_one_are_refused_and_those_that_only_their_limits_permit_are_not():
    many = LinearProgram(np.ones(2), np.ones((1, 2)), [0.0], [10.0], np.zeros(2), [2.0, 1.0], integer=[True, True])
    X, observed = np.ones((3, 1)), [[1, 0]] * 3
    with pytest.raises(DataError, match="not linear"):  # 2 - 1 would count as a distance of -1
        recover_costs(many, X, observed)
    with pytest.raises(DataError, match="not linear"):
        DecisionRegressor(many, loss="hamming").fit(X, decisions=observed)
    assert recover_costs(many, X, [[2, 1]] * 3, ties=True).explained.all()
    one = LinearProgram(np.ones(2), np.ones((1, 2)), [0.0], [1.0], np.zeros(2), [2.0, 1.0], integer=[True, True])
    assert recover_costs(one, X, observed).explained.all()


def test_a_decision_that_a_fractional_vertex_beats_is_not_explained_and_the_least_loss_is_proved():
    program = LinearProgram(np.ones(2), np.ones((1, 2)), [-np.inf], [10.0], np.zeros(2), [0.4, 1.0])
    found = recover_costs(program, np.ones((2, 2, 1)), [[0, 1]] * 2, fit_intercept=False)  # profits (c, c)
    assert found.model.certificate_.value == pytest.approx(0.8, abs=1e-6)  # max(0, .4 + .8 c) + max(0, 1 - 2 c)
    assert found.model.certificate_.gap <= 1e-6
    assert not found.explained.any()
    assert (found.model.decide(np.ones((2, 2, 1))).decision == [0.4, 1.0]).all()
