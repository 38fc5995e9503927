"""The margin loss of any problem: it is SPO+, it bounds the regret, and no oracle can make its certificate wrong."""

from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
import pytest
from problems.decisions import KINDS, instances, sign_of, spo_plus, worst_regret
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from formulations import (
    Highs,
    LinearProgram,
    MinCostFlow,
    RankingSet,
    SolverError,
    SolverResult,
    UnboundedError,
    constrained_ranking,
    function_solver,
    matching,
    ranking,
    solve,
)
from formulations.problems.min_cost_flow import shortest_paths
from rankopt import load_model
from rankopt.data import Queries
from rankopt.decisions import DecisionRegressor, ProblemOracle, minimize_risk
from rankopt.errors import DataError, OptionError
from rankopt.losses import MarginLoss, ScoreLoss
from rankopt.losses.oracle_problem import linear_decisions
from rankopt.rankers import LargeMarginRanker, MatchingRanker

BOUNDS = ("nonconvex", "tie-aware", "convex")


def losses(problem, costs, **options):
    oracle = ProblemOracle(problem, sign_of(problem) * costs, **options)
    return [MarginLoss(oracle, bound) for bound in BOUNDS]


@pytest.mark.parametrize("kind", KINDS)
def test_the_convex_bound_is_the_spo_plus_loss(kind):
    rng = np.random.default_rng(1)
    for _ in range(5):
        problem, points = KINDS[kind](rng)
        predicted, costs = rng.normal(size=(2, 25, points.shape[1]))
        sign = sign_of(problem)
        found = losses(problem, costs)[-1].at(2.0 * sign * predicted).value
        expected = [spo_plus(points, -sign * own, -sign * true) for own, true in zip(predicted, costs, strict=True)]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_regret_is_below_nonconvex_below_tie_aware_below_convex(kind):
    rng = np.random.default_rng(2)
    problem, points = KINDS[kind](rng)
    sign = sign_of(problem)
    predicted = rng.integers(-2, 3, (30, points.shape[1])).astype(float)
    costs = rng.integers(-2, 3, (30, points.shape[1])).astype(float)
    regret = [worst_regret(points, -sign * own, -sign * true) for own, true in zip(predicted, costs, strict=True)]
    values = [loss.at(2.0 * sign * predicted).value for loss in losses(problem, costs)]
    for lower, upper in zip([np.array(regret), *values], values, strict=False):
        assert (lower <= upper + 1e-9).all()
    assert (values[1] < values[2] - 1e-6).any()  # tied costs: there is something to choose


@pytest.mark.parametrize("kind", KINDS)
def test_tie_aware_subtracts_the_best_decision_of_highest_score(kind):
    rng = np.random.default_rng(3)
    problem, points = KINDS[kind](rng)
    profit, scores = rng.integers(-1, 2, (20, points.shape[1])).astype(float), rng.normal(size=(20, points.shape[1]))
    found = ProblemOracle(problem, profit).best_then_score(scores)
    for own, gain, score in zip(found, profit, scores, strict=True):
        best = points[points @ gain == (points @ gain).max()]
        assert score @ own == pytest.approx((best @ score).max(), abs=1e-9)


def random_network(rng, nodes=7, arcs=14):
    ends = np.sort(np.array([rng.choice(nodes, 2, replace=False) for _ in range(arcs)]), axis=1)
    ends = np.vstack([ends, [0, nodes - 1]])
    names, supply = rng.permutation(nodes), np.zeros(nodes, dtype=int)
    supply[names[0]], supply[names[-1]] = 1, -1
    capacity = np.append(rng.integers(0, 3, arcs), 1)
    return MinCostFlow(names[ends[:, 0]], names[ends[:, 1]], capacity, np.ones(arcs + 1), supply)


def test_paths_of_networks_without_cycles_are_cheapest_flows():
    rng = np.random.default_rng(4)
    for _ in range(20):
        problem = random_network(rng)
        costs = rng.integers(-3, 4, (5, problem.cost.size)).astype(float)
        flows, bounds = shortest_paths(problem, costs)
        for cost, flow, bound in zip(costs, flows, bounds, strict=True):
            priced = MinCostFlow(problem.tail, problem.head, problem.capacity, cost, problem.supply)
            assert priced.violation(flow) == 0.0
            assert cost @ flow == pytest.approx(solve(priced, "ortools").value, abs=1e-12)
            assert bound == pytest.approx(cost @ flow, abs=1e-12)


@pytest.mark.parametrize("sense", ["min", "max"])
def test_assignments_are_proved_by_their_duals(sense):
    """Square and wide, with forbidden cells: by enumeration, and no solver is called one by one."""
    rng = np.random.default_rng(8)
    for k, n in ((3, 3), (3, 5), (1, 4)):
        allowed = (rng.random((k, n)) < 0.7) | np.eye(k, n, dtype=bool)
        points = [np.eye(n)[list(p)] for p in permutations(range(n), k) if allowed[range(k), list(p)].all()]
        points = np.array(points).reshape(len(points), -1)
        profit = rng.integers(-3, 4, (20, k * n)).astype(float)
        oracle = ProblemOracle(matching(np.ones((k, n)), sense=sense, allowed=allowed), profit)
        np.testing.assert_allclose(oracle.optimal.value, (profit @ points.T).max(axis=1), atol=1e-12)
        np.testing.assert_allclose(oracle.optimal.bound, oracle.optimal.value, atol=1e-12)
        assert all((points == own).all(axis=1).any() for own in oracle.optimal.decision)


def test_other_flows_are_no_paths():
    assert MinCostFlow([0, 1, 2], [1, 2, 1], [1, 1, 1], [1.0, 1, 1], [1, 0, -1]).path_order is None  # a cycle
    assert MinCostFlow([0], [1], [2], [1.0], [2, -2]).path_order is None
    assert MinCostFlow([0, 1], [1, 2], [1, 0], [1.0, 1.0], [1, 0, -1]).path_order is None  # nothing arrives


def random_knapsack(rng, **changes):
    weights = rng.integers(0, 7, (int(rng.integers(1, 4)), 7)).astype(float)
    capacity = rng.integers(3, 12, len(weights)) + 0.5
    fields = {
        "objective": np.ones(7), "matrix": weights, "row_lower": np.full(len(weights), -np.inf), "row_upper": capacity,
        "lower": np.zeros(7), "upper": np.ones(7), "integer": np.ones(7, dtype=bool),
    }  # fmt: skip
    return LinearProgram(**{**fields, **changes})


def test_knapsacks_of_integer_weights_are_best_selections():
    rng = np.random.default_rng(6)
    points = np.array(list(product((0.0, 1.0), repeat=7)))
    for _ in range(20):
        problem = random_knapsack(rng)
        within = points[(points @ problem.matrix.toarray().T <= problem.row_upper).all(axis=1)]
        profit = rng.integers(-3, 6, (70, 7)).astype(float)  # ties, and more instances than are solved at once
        oracle = ProblemOracle(problem, profit)
        assert oracle.claimed == ""
        assert all((within == own).all(axis=1).any() for own in oracle.optimal.decision)
        for found in (oracle.optimal.value, oracle.optimal.bound, (profit * oracle.optimal.decision).sum(axis=1)):
            np.testing.assert_array_equal(found, (profit @ within.T).max(axis=1))


@pytest.mark.parametrize(
    "changes",
    [
        {"matrix": np.full((1, 7), 1.5)},
        {"matrix": -np.ones((1, 7))},
        {"matrix": np.ones((1, 7)), "row_lower": np.ones(1)},
        {"upper": np.full(7, 2.0)},
        {"integer": np.arange(7) > 0},
    ],
)
def test_other_integer_programs_are_no_knapsacks(changes):
    """They rely on the solver's bound, and have the same values as by HiGHS."""
    rows = {"row_lower": np.full(1, -np.inf), "row_upper": np.full(1, 4.0)}
    changes = {"matrix": np.ones((1, 7)), **rows, **changes}
    problem, profit = random_knapsack(np.random.default_rng(7), **changes), np.ones((1, 7))
    oracle = ProblemOracle(problem, profit)
    assert oracle.claimed
    np.testing.assert_allclose(oracle.optimal.value, solve(problem, "highs").value, atol=1e-9)


def test_programs_solved_from_one_basis_to_the_next_are_solved():
    rng = np.random.default_rng(5)
    for _ in range(10):
        matrix = rng.integers(-2, 4, (4, 6)).astype(float)
        limits = np.array([np.inf, np.inf, 3.0, 3.0, 3.0, 3.0])  # some duals press on limits that do not exist
        floor, ceiling = np.full(4, -np.inf), rng.integers(2, 9, 4) + matrix[:, :2].max() * 2.0
        matrix[0] = 1.0
        program = LinearProgram(np.ones(6), matrix, floor, ceiling, np.zeros(6), limits)
        profit = rng.integers(-3, 4, (6, 6)).astype(float)
        quick, slow = (ProblemOracle(program, profit, solver).optimal for solver in ("auto", Highs()))
        np.testing.assert_allclose(quick.value, slow.value, atol=1e-9)
        np.testing.assert_allclose(quick.bound, slow.bound, atol=1e-9)
        assert (quick.bound >= quick.value).all()
        assert np.isfinite(linear_decisions(program, profit)[2]).all()  # the first row limits every variable
        for own, decision in zip(profit, quick.decision, strict=True):
            assert program.violation(decision) <= program.tolerance
            least = linprog(-own, matrix, ceiling, bounds=np.column_stack([np.zeros(6), limits]))
            assert own @ decision == pytest.approx(-least.fun)


def test_a_constrained_ranking_is_solved_by_the_first_solver_that_accepts_it():
    sites = RankingSet(4, 2).at_most(1, by=["a", "a", "b", "b"], name="site")
    pairs = [list(pair) for pair in permutations(range(4), 2) if (pair[0] < 2) != (pair[1] < 2)]
    points = np.array([np.eye(4)[pair].ravel() for pair in pairs])
    profit = np.random.default_rng(0).normal(size=(5, 8))
    found = ProblemOracle(constrained_ranking(np.ones((2, 4)), sites), profit).optimal
    np.testing.assert_allclose(found.value, (profit @ points.T).max(axis=1), atol=1e-9)
    np.testing.assert_array_equal(found.decision, points[(profit @ points.T).argmax(axis=1)])


def test_an_unbounded_instance_is_named():
    free = LinearProgram(
        np.ones(2), np.ones((1, 2)), np.array([1.0]), np.array([np.inf]), np.zeros(2), np.full(2, np.inf)
    )
    with pytest.raises(UnboundedError, match="instance 1"):
        _ = ProblemOracle(free, np.array([[-1.0, -1.0], [1.0, 0.0]])).optimal


def own_loss(oracle, points, scores):
    """The loss that an oracle defines, with the maximum over all points."""
    augmented = np.array([(points @ own).max() for own in scores - oracle.profit])
    return augmented + oracle.best - (oracle.target * scores).sum(axis=1)


def poor_point(problem):
    """Whatever comes first: a feasible point, never mind the objective."""
    if isinstance(problem, LinearProgram):
        point = np.zeros(problem.objective.size)
        for column in range(point.size):
            point[column] = 1.0
            if (problem.matrix @ point > problem.row_upper + 1e-9).any():
                point[column] = 0.0
        return point
    return np.arange(problem.positions)


@dataclass(frozen=True)
class Boasting:
    """A point that is not optimal, claimed to be."""

    accepts = (LinearProgram,)
    spec = "boasting"
    package = ""

    def reason_unsupported(self, problem):
        return None

    def solve(self, problem, warm_start=None):
        point = poor_point(problem)
        claims = {"reported_status": "OPTIMAL", "reported_bound": problem.value(point)}
        return SolverResult(point, None, "", claims)


LIARS = {
    "assignment": {"solver": function_solver(poor_point, accepts=type(KINDS["assignment"](None)[0]))},
    "top two": {"solver": function_solver(poor_point, accepts=LinearProgram)},
    "knapsack": {"solver": Boasting(), "proven": True},
}
LATE = {"solver": Highs(time_limit=1e-9)}
SEARCH = {"solver": "highs"}  # which ends at an absolute gap of 1e-6
ORACLES = [(kind, name) for kind in KINDS for name in ("costs", "observed")] + [(kind, "lying") for kind in LIARS]
ORACLES += [("knapsack", name) for name in ("relaxed", "search", "late", "lying, observed")]


def check_certificate(kind, name, seed):
    """Train with an oracle of this name, and compare value and bound with the maximum over all points."""
    rng = np.random.default_rng(seed)
    problem, points = KINDS[kind](rng)
    X, costs = instances(rng, 6, points.shape[1], integers=seed % 2 == 1)
    sign, lam = sign_of(problem), 10.0 ** rng.integers(-2, 1)
    observed = points[rng.integers(0, len(points), 6)] if name in ("observed", "late", "lying, observed") else None
    profit = sign * costs if observed is None else 2.0 * observed - 1.0
    options = LIARS[kind] if "lying" in name else {"late": LATE, "search": SEARCH}.get(name, {})
    oracle = ProblemOracle(problem, profit, observed=observed, relaxed=name == "relaxed", **options)
    if name == "relaxed":  # the vertices of a knapsack have one fraction at most
        room = 10.0 - points @ problem.matrix.toarray()[0]
        whole = [(y, r, j) for y, r in zip(points, room, strict=True) for j in np.flatnonzero(y == 0.0)]
        parts = [y + min(1.0, r / problem.matrix.toarray()[0, j]) * np.eye(5)[j] for y, r, j in whole]
        points = np.vstack([points, parts])

    def objective(w):
        return lam / 2 * w @ w + own_loss(oracle, points, 2.0 * sign * X @ w.reshape(-1, 3).T).mean()

    honest = ProblemOracle(problem, profit, observed=observed, relaxed=name == "relaxed")
    best = minimize_risk(honest, 2.0 * sign * X, lam=lam, tol=1e-7)
    found = minimize_risk(oracle, 2.0 * sign * X, lam=lam, tol=0.1, max_iter=30)
    is_exact, proved = name in ("costs", "observed", "relaxed"), found.certificate
    assert proved.kind == "global"
    assert objective(found.w) - 1e-8 <= proved.value <= (objective(found.w) + 1e-8 if is_exact else np.inf)
    assert proved.bound <= min(objective(found.w), objective(best.w), objective(0.0 * found.w)) + 1e-9
    assert (oracle.best >= (oracle.profit * oracle.target).sum(axis=1) - 1e-9).all()
    if is_exact:
        assert best.certificate.gap <= 1e-6 * max(best.certificate.value, 1e-3)


@pytest.mark.parametrize(("kind", "name"), ORACLES)
@pytest.mark.parametrize("seed", range(3))
def test_value_and_bound_are_right_and_no_oracle_can_close_the_gap_by_a_lie(kind, name, seed):
    check_certificate(kind, name, seed)


def test_an_instance_without_a_point_in_time_is_named():
    problem, points = KINDS["knapsack"](np.random.default_rng(0))
    with pytest.raises(SolverError, match=r"instance 0: .* Pass a longer time_limit"):
        _ = ProblemOracle(problem, points[:2], **LATE).optimal


@pytest.mark.parametrize("kind", KINDS)
def test_a_certificate_names_what_it_takes_from_a_solver_unproved(kind, tmp_path):
    rng = np.random.default_rng(5)
    problem, points = KINDS[kind](rng)
    X, costs = instances(rng, 4, points.shape[1])
    claims = isinstance(problem, LinearProgram) and problem.integer is not None
    model = DecisionRegressor(problem, lam=1.0, solver="highs" if claims else "auto").fit(X, costs)
    proven = minimize_risk(ProblemOracle(problem, sign_of(problem) * costs, proven=True), X, lam=1.0)
    assert ("relies on bounds of integer programs as solvers report" in str(model.certificate_)) is claims
    assert "relies" not in str(proven.certificate)
    model.save(tmp_path / "m")
    assert str(load_model(tmp_path / "m").certificate_) == str(model.certificate_)


def test_a_relaxation_raises_the_loss_and_bounds_the_regret():
    rng = np.random.default_rng(6)
    problem, _ = KINDS["knapsack"](rng)
    predicted, costs = rng.uniform(0, 3, (2, 20, 5))
    exact, relaxed = (
        losses(problem, costs, relaxed=relaxed)[-1].at(2.0 * predicted).value for relaxed in (False, True)
    )
    assert (relaxed >= exact - 1e-9).all()
    assert (relaxed > exact + 1e-3).any()
    integral, _ = KINDS["top two"](rng)
    assert losses(integral, costs, relaxed=True)[-1].at(predicted).value == pytest.approx(
        losses(integral, costs)[-1].at(predicted).value
    )


def test_the_relaxation_of_a_constrained_ranking_is_its_linear_program():
    exclusive = RankingSet(5, 2).at_most(0, documents=[4], positions=[1])
    for pair in ([0, 1], [0, 2], [1, 2]):  # half of each of three documents is a fractional point
        exclusive = exclusive.at_most(1, documents=pair)
    problem, rng = constrained_ranking(np.ones((2, 5)), exclusive), np.random.default_rng(0)
    scores, profit = rng.normal(size=(2, 20, 10)) + np.tile([2.0, 2.0, 2.0, 0.0, 0.0], 2)
    exact, relaxed = (
        ProblemOracle(problem, profit, relaxed=relaxed).at(2.0 * scores).bound for relaxed in (False, True)
    )
    cells = np.arange(10).reshape(2, 5)
    filled = [np.isin(np.arange(10), row) for row in cells]
    limits = [np.isin(np.arange(10), cells[:, [j]]) for j in range(5)]
    limits += [np.isin(np.arange(10), cells[:, pair]) for pair in ([0, 1], [0, 2], [1, 2])]
    bounds = [(0.0, 0.0 if cell == 9 else 1.0) for cell in range(10)]
    for own, high in zip(2.0 * scores - profit, relaxed, strict=True):
        found = linprog(-own, np.array(limits) * 1.0, np.ones(8), np.array(filled) * 1.0, np.ones(2), bounds)
        assert high == pytest.approx(-found.fun, abs=1e-9)
    assert (relaxed >= exact - 1e-9).all()
    assert (relaxed > exact + 1e-3).any()


def test_the_driver_trains_what_the_ranker_trains():
    rng = np.random.default_rng(7)
    X, y, qid = rng.normal(size=(40, 3)), rng.integers(0, 3, 40).astype(float), np.repeat(np.arange(8), 5)
    loss = ScoreLoss("nDCG@3", "convex").bind(y, qid=qid)
    found = minimize_risk(loss.loss, X[loss.selected], lam=0.2, tol=1e-6)
    ranker = LargeMarginRanker("nDCG@3", bound="convex", w0="zeros", lam=0.2, tol=1e-6).fit(X, y, qid=qid)
    assert found.certificate.value == pytest.approx(ranker.certificate_.value, rel=2e-6)


@pytest.mark.parametrize("bound", ["convex", "tie-aware", "nonconvex"])
@pytest.mark.parametrize("kind", [LargeMarginRanker, MatchingRanker])
def test_the_driver_and_a_ranker_agree_to_the_bit(kind, bound):
    rng = np.random.default_rng(11)
    X, qid = rng.normal(size=(40, 3)), np.repeat(np.arange(8), 5)
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=40), [0.0, 1.0]).astype(float)
    ranker = kind(bound=bound, tol=1e-5).fit(X, y, qid=qid)
    objective = ranker.objective(Queries.from_arrays(X, y, qid=qid))
    (shard,) = objective.risk.shards
    same = {"lam": ranker.lam_, "w0": ranker.w0_, "units": objective.units, "weights": shard.weights}
    found = minimize_risk(shard.loss, shard.scorer, **same, tol=1e-5)
    assert np.array_equal(found.w, ranker.coef_.ravel())
    assert found.certificate == ranker.certificate_
    assert objective.units is not None


@pytest.mark.parametrize("loss", ["spo+", "nonconvex"])
@pytest.mark.parametrize("kind", ["top two", "knapsack", "assignment"])
def test_the_driver_and_a_regressor_agree_to_the_bit(kind, loss):
    rng = np.random.default_rng(12)
    problem, points = KINDS[kind](rng)
    X, costs = instances(rng, 16, points.shape[1])
    w0, design = rng.normal(size=(points.shape[1], 4)), np.column_stack([X, np.ones(16)])
    model = DecisionRegressor(problem, loss=loss, w0=w0).fit(X, costs)
    units = np.resize(1.0 / np.sqrt(np.full(16, 1.0 / 16.0) @ design**2), w0.size)
    oracle = ProblemOracle(problem, sign_of(problem) * costs)
    found = minimize_risk(MarginLoss(oracle, loss), 2.0 * sign_of(problem) * design, lam=model.lam_, w0=w0, units=units)
    assert np.array_equal(found.w.reshape(w0.shape), np.column_stack([model.coef_, model.intercept_]))
    assert found.certificate == model.certificate_


@pytest.mark.parametrize("bound", [*BOUNDS, "spo+"])
def test_a_margin_loss_is_made_of_an_oracle_and_the_name_of_a_bound(bound):
    rng = np.random.default_rng(13)
    problem, points = KINDS["top two"](rng)
    costs, scores = rng.integers(0, 2, (8, len(points[0]))).astype(float), rng.normal(size=(8, len(points[0])))
    loss = MarginLoss(ProblemOracle(problem, costs), bound)
    profit, value = costs @ points.T, scores @ points.T
    best = profit.max(axis=1)
    reference = {
        "nonconvex": value.max(axis=1),
        "tie-aware": np.where(profit == best[:, None], value, -np.inf).max(axis=1),
    }.get(bound, (scores * loss.argmax.target).sum(axis=1))
    np.testing.assert_allclose(loss.at(scores).value, (value - profit).max(axis=1) + best - reference, atol=1e-12)
    assert loss.convex is (bound in ("convex", "spo+"))


def test_what_makes_no_margin_loss_is_refused():
    oracle = ProblemOracle(KINDS["top two"](None)[0], np.ones((2, 5)))
    with pytest.raises(OptionError, match="bound 'concave' is unknown; known are convex, tie-aware, nonconvex"):
        MarginLoss(oracle, "concave")
    with pytest.raises(OptionError, match="bound must be one of"):
        MarginLoss(oracle, 3)
    with pytest.raises(OptionError, match=r"a margin loss needs .*MaxOracle; got 3"):
        MarginLoss(3, "convex")


def test_what_is_no_linear_objective_is_refused():
    with pytest.raises(OptionError, match="objective is not linear in one profit a variable"):
        ProblemOracle(
            ranking([1.0, 2.0], [1.0, 0.0], discount=[1.0, 0.5], position_weights=[1.0, 0.5]), np.ones((1, 2))
        )
    with pytest.raises(DataError, match=r"shape \(instances, 5\)"):
        ProblemOracle(KINDS["top two"](None)[0], np.ones((3, 4)))
    problem = KINDS["top two"](None)[0]
    with pytest.raises(DataError, match="pass one, or each"):
        ProblemOracle((problem, problem), np.ones((3, 5)))
    with pytest.raises(DataError, match="finite"):
        ProblemOracle(problem, np.full((3, 5), np.nan))
    with pytest.raises(DataError, match="observed must have the shape"):
        ProblemOracle(problem, np.ones((3, 5)), observed=np.ones((2, 5)))
    with pytest.raises(OptionError, match="cannot be learned for a int"):
        ProblemOracle(3, np.ones((3, 5)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lam": 0.0}, "lam must be"),
        ({"w0": [1.0]}, "w0 must be 15"),
        ({"weights": [1.0, 0.0]}, "weights must be 2"),
        ({"units": [1.0]}, "units must be 15"),
        ({"units": np.full(15, -1.0)}, "units must not be negative"),
    ],
)
def test_options_of_the_driver(options, message):
    oracle = ProblemOracle(KINDS["top two"](None)[0], np.ones((2, 5)))
    with pytest.raises(OptionError, match=message):
        minimize_risk(oracle, np.ones((2, 3)), **{"lam": 1.0, **options})


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((4, 3)), "a row for each"),
        (np.ones(2), "a row for each"),
        (np.full((2, 3), np.nan), "X must be finite"),
    ],
)
def test_features_of_the_driver(X, message):
    oracle = ProblemOracle(KINDS["top two"](None)[0], np.ones((2, 5)))
    with pytest.raises(DataError, match=message):
        minimize_risk(oracle, X, lam=1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_nonconvex_bound_accepts_decisions_drawn_at_random(kind):
    rng = np.random.default_rng(7)
    problem, points = KINDS[kind](rng)
    X, costs = instances(rng, 20, points.shape[1])
    model = DecisionRegressor(problem, loss="nonconvex", lam=0.1, w0="zeros", solver=_drawn(rng, points))
    with pytest.warns(UserWarning, match="not proved best") as caught:
        model.fit(X, costs)
    assert ConvergenceWarning in {one.category for one in caught}
    assert model.certificate_.claimed.endswith("best decisions that are not proved best")
    sign, weights = sign_of(problem), np.column_stack([model.coef_, model.intercept_])
    scores, profit = 2.0 * sign * model.predict(X) @ points.T, sign * costs @ points.T
    loss = (scores - profit).max(axis=1) + profit.max(axis=1) - scores.max(axis=1)
    assert model.certificate_.value >= loss.mean() + 0.05 * np.sum(weights**2)


def test_regret_of_a_poor_solver_is_not_below_the_true_one():
    rng = np.random.default_rng(8)
    problem, points = KINDS["knapsack"](rng)
    X, costs = instances(rng, 10, points.shape[1])
    model = DecisionRegressor(problem, lam=0.1).fit(X, costs).set_params(solver=lambda _: np.zeros(points.shape[1]))
    true = np.maximum((sign_of(problem) * costs @ points.T).max(axis=1), 0.0)
    with pytest.warns(UserWarning, match="not proved best; regret is counted from their bounds"):
        regret = model.regret(X, costs)
    assert (regret >= true - 1e-9).all()
    assert true.max() > 0.1
    with pytest.warns(UserWarning, match="not proved best"):
        assert model.score(X, costs) < -0.1


@pytest.mark.parametrize("loss", ["spo+", "tie-aware", "nonconvex", "hamming"])
@pytest.mark.parametrize("kind", ["linear", "integer"])
def test_no_instance_depends_on_another_where_decisions_tie(kind, loss):
    rng = np.random.default_rng(9)
    weights = np.ones((1, 6)) if kind == "linear" else rng.uniform(1.0, 5.0, (1, 6))
    least, most = ([2.0], [2.0]) if kind == "linear" else ([-np.inf], [weights.sum() / 2.0])
    integer = None if kind == "linear" else np.ones(6, dtype=bool)
    problem = LinearProgram(np.ones(6), weights, least, most, np.zeros(6), np.ones(6), integer=integer)
    X, costs, order = rng.normal(size=(20, 2)), rng.integers(0, 3, (20, 6)).astype(float), rng.permutation(20)
    first, second = (
        DecisionRegressor(problem, loss=loss, lam=0.1, tol=1e-6).fit(X[rows], costs[rows])
        for rows in (slice(None), order)
    )
    np.testing.assert_allclose(second.certificate_.value, first.certificate_.value, rtol=2e-6)
    tied = ProblemOracle(problem, costs).optimal.decision
    np.testing.assert_array_equal(tied[order], ProblemOracle(problem, costs[order]).optimal.decision)
    np.testing.assert_array_equal(tied[3:4], ProblemOracle(problem, costs[3:4]).optimal.decision)


def _drawn(rng, points):
    """A solver that returns any point: of assignments the column of each row."""

    def solve(problem):
        point = points[rng.integers(len(points))]
        return point.reshape(problem.profit.shape).argmax(axis=1) if hasattr(problem, "profit") else point

    return solve


def test_observed_decisions_of_an_oracle_are_finite_and_its_repr_is_short():
    problem, points = KINDS["top two"](None)
    profit = np.ones((50, points.shape[1]))
    assert len(repr(ProblemOracle(problem, profit))) < 400
    with pytest.raises(DataError, match=r"observed must have the shape .* and be finite"):
        ProblemOracle(problem, profit, observed=np.full(profit.shape, np.nan))
