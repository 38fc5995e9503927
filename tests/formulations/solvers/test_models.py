"""Models of other tools: read, solved by any solver, proved, verified, written back; problems as models."""

import warnings
from importlib.util import find_spec
from itertools import permutations, product

import cvxpy as cp
import highspy
import networkx as nx
import numpy as np
import pytest
from ortools.linear_solver import pywraplp
from ortools.linear_solver.python import model_builder
from ortools.math_opt.python import mathopt
from scipy.optimize import linear_sum_assignment, linprog

from formulations import (
    GroupedSimplexQP,
    InfeasibleError,
    InvalidProblemError,
    InvalidSolutionError,
    LinearProgram,
    Proof,
    QuadraticProgram,
    RankingSet,
    UnboundedError,
    UnsupportedProblemError,
    as_problem,
    certify,
    compatible_solvers,
    constrained_ranking,
    function_solver,
    integrality_gap,
    l1_margin_dual,
    margin_dual,
    marginal_ranking,
    matching,
    pairwise_ranking,
    ranking,
    sensitivity,
    solve,
    verify_integrality,
)
from formulations.testing.instances import FORMS, instances

# One model in every tool: maximize Σ margin x + 5, supplies at most, demands exactly, x <= 25, the last x free.

MARGIN = np.array([[4.0, 2.0, 3.0], [3.0, 3.0, 1.0]])
SUPPLY, DEMAND = np.array([30.0, 40.0]), np.array([20.0, 25.0, 15.0])
OPTIMUM = 5.0 - linprog(
    -MARGIN.ravel(),
    np.kron(np.eye(2), np.ones(3)), SUPPLY, np.kron(np.ones(2), np.eye(3)), DEMAND, [(0, 25)] * 5 + [(None, 25)],
).fun  # fmt: skip


def of_cvxpy(tmp_path):
    x = cp.Variable((2, 3), name="x", bounds=[np.array([[0, 0, 0], [0, 0, -np.inf]]), 25])
    rows = [(cp.sum(x[i]) <= SUPPLY[i]).set_label(f"supply_{i}") for i in range(2)]
    rows.append((cp.sum(x, axis=0) == DEMAND).set_label("demand"))
    return cp.Problem(cp.Maximize(cp.sum(cp.multiply(MARGIN, x)) + 5), rows)


def of_linopy(tmp_path):
    model = pytest.importorskip("linopy").Model()
    x = [
        [model.add_variables(-np.inf if (i, j) == (1, 2) else 0, 25, name=f"x_{i}_{j}") for j in range(3)]
        for i in range(2)
    ]
    constant = model.add_variables(5, 5, name="five")  # linopy has no constants in objectives
    for i in range(2):
        model.add_constraints(x[i][0] + x[i][1] + x[i][2] <= SUPPLY[i], name=f"supply_{i}")
    for j in range(3):
        model.add_constraints(x[0][j] + x[1][j] == DEMAND[j], name=f"demand_{j}")
    terms = [float(MARGIN[i, j]) * x[i][j] for i in range(2) for j in range(3)]
    model.add_objective(sum(terms[1:], terms[0]) + 1.0 * constant, sense="max")
    return model


def of_pulp(tmp_path):
    pulp = pytest.importorskip("pulp")
    model = pulp.LpProblem("plan", pulp.LpMaximize)
    x = [[variable(model, f"x_{i}_{j}", None if (i, j) == (1, 2) else 0, 25) for j in range(3)] for i in range(2)]
    model += pulp.lpSum(float(MARGIN[i, j]) * x[i][j] for i in range(2) for j in range(3)) + 5
    for i in range(2):
        model += pulp.lpSum(x[i]) <= SUPPLY[i], f"supply_{i}"
    for j in range(3):
        model += x[0][j] + x[1][j] == DEMAND[j], f"demand_{j}"
    return model


def variable(model, name, low, high, kind="Continuous"):
    """A variable of PuLP 3 or of earlier versions."""
    import pulp

    add = getattr(model, "add_variable", pulp.LpVariable)
    return add(name, low, high, cat=kind)


def of_mathopt(tmp_path):
    model = mathopt.Model(name="plan")
    x = [
        [
            model.add_variable(lb=-np.inf if (i, j) == (1, 2) else 0.0, ub=25.0, name=f"x_{i}_{j}")
            for j in range(3)
        ]
        for i in range(2)
    ]  # fmt: skip
    for i in range(2):
        model.add_linear_constraint(sum(x[i]) <= SUPPLY[i], name=f"supply_{i}")
    for j in range(3):
        model.add_linear_constraint(x[0][j] + x[1][j] == DEMAND[j], name=f"demand_{j}")
    model.maximize(sum(MARGIN[i, j] * x[i][j] for i in range(2) for j in range(3)) + 5)
    return model


def of_model_builder(tmp_path):
    model = model_builder.Model()
    x = [
        [model.new_num_var(-np.inf if (i, j) == (1, 2) else 0.0, 25.0, f"x_{i}_{j}") for j in range(3)]
        for i in range(2)
    ]
    for i in range(2):
        model.add(sum(x[i]) <= SUPPLY[i], f"supply_{i}")
    for j in range(3):
        model.add(x[0][j] + x[1][j] == DEMAND[j], f"demand_{j}")
    model.maximize(sum(MARGIN[i, j] * x[i][j] for i in range(2) for j in range(3)) + 5)
    return model


def of_pywraplp(tmp_path):
    model = pywraplp.Solver.CreateSolver("GLOP")
    x = [[model.NumVar(-np.inf if (i, j) == (1, 2) else 0.0, 25.0, f"x_{i}_{j}") for j in range(3)] for i in range(2)]
    for i in range(2):
        model.Add(sum(x[i]) <= SUPPLY[i], f"supply_{i}")
    for j in range(3):
        model.Add(x[0][j] + x[1][j] == DEMAND[j], f"demand_{j}")
    model.Maximize(sum(MARGIN[i, j] * x[i][j] for i in range(2) for j in range(3)) + 5)
    return model


def of_highspy(tmp_path):
    model = silent()
    x = [
        [model.addVariable(-highspy.kHighsInf if (i, j) == (1, 2) else 0, 25, name=f"x_{i}_{j}") for j in range(3)]
        for i in range(2)
    ]
    for i in range(2):
        model.addConstr(sum(x[i]) <= SUPPLY[i], name=f"supply_{i}")
    for j in range(3):
        model.addConstr(x[0][j] + x[1][j] == DEMAND[j], name=f"demand_{j}")
    model.setMaximize()
    for i, j in product(range(2), range(3)):
        model.changeColCost(3 * i + j, MARGIN[i, j])
    model.changeObjectiveOffset(5.0)
    return model


def silent():
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    return model


def of_mps(tmp_path):
    as_problem(of_mathopt(tmp_path)).write(tmp_path / "plan.mps")
    return tmp_path / "plan.mps"


def of_lp(tmp_path):
    as_problem(of_mathopt(tmp_path)).write(tmp_path / "plan.lp")
    return str(tmp_path / "plan.lp")


KINDS = {
    maker.__name__.removeprefix("of_"): maker
    for maker in (of_cvxpy, of_linopy, of_pulp, of_mathopt, of_model_builder, of_pywraplp, of_highspy, of_mps, of_lp)
}


@pytest.fixture(params=KINDS)
def model(request, tmp_path):
    return KINDS[request.param](tmp_path)


def plan_of(solution):
    """The plan (2, 3) of a solution, read by names."""
    parts = solution.primal
    if "x" in parts:
        return parts["x"]
    return np.array([[float(parts[f"x_{i}_{j}"]) for j in range(3)] for i in range(2)])


def test_a_model_keeps_its_sense_constant_names_and_limits(model):
    problem = as_problem(model)
    assert isinstance(problem, LinearProgram)
    assert problem.is_maximization
    assert problem.integer is None
    assert {"supply_0", "supply_1"} <= {problem.row_name(row) for row in range(problem.row_lower.size)}
    columns = [name for name in map(problem.variable_name, range(problem.objective.size)) if name.startswith("x")]
    assert len(columns) == 6
    assert sorted(problem.lower[problem.lower < 0]) == [-np.inf]
    assert as_problem(problem) is problem


@pytest.mark.parametrize(
    "solver", ["auto", "highs", "cvxpy:GLOP", "cvxpy:CLARABEL", "cvxpy:HIGHS", "cvxpy:SCIPY", "cvxpy:OSQP"]
)
def test_every_solver_takes_every_model_and_its_bound_is_proved(model, solver):
    solution = solve(model, solver)
    assert solution.value == pytest.approx(OPTIMUM, rel=1e-6)
    assert solution.value - 1e-6 <= OPTIMUM <= solution.bound + 1e-9
    assert solution.bound == pytest.approx(OPTIMUM, rel=1e-6)
    plan = plan_of(solution)
    assert (MARGIN * plan).sum() + 5 == pytest.approx(OPTIMUM, rel=1e-6)
    np.testing.assert_allclose(plan.sum(axis=0), DEMAND, atol=1e-5)
    certify(model, solution)


def test_a_model_is_proved_integral(model):
    assert isinstance(verify_integrality(model), Proof)
    gap = integrality_gap(model)
    assert gap.integral
    assert gap.integer.value == pytest.approx(OPTIMUM)
    assert len(compatible_solvers(model)) >= 6


def test_the_price_of_a_row_is_what_the_optimum_gains(model):
    curve = sensitivity(model, "supply_0", [20.0, 21.0, 30.0, 31.0])
    assert curve.name == "supply_0 at most"
    assert curve.value[2] == pytest.approx(OPTIMUM)
    assert (np.diff(curve.value) >= -1e-9).all()
    assert curve.price[[0, 2]] == pytest.approx([curve.value[1] - curve.value[0], curve.value[3] - curve.value[2]])
    np.testing.assert_allclose(curve.bound, curve.value)
    with pytest.raises(UnsupportedProblemError, match="at its limits only"):
        curve.above(3.0)


@pytest.mark.parametrize("kind", ["cvxpy", "linopy", "pulp", "highspy"])
def test_a_solution_is_written_into_its_model(kind, tmp_path):
    model = KINDS[kind](tmp_path)
    solution = solve(as_problem(model), "highs")
    solution.assign_to(model)
    held = {
        "cvxpy": lambda: model.value,
        "linopy": lambda: model.objective.value,
        "pulp": lambda: model.objective.value(),
        "highspy": lambda: np.dot(model.getSolution().col_value, MARGIN.ravel()) + 5,
    }[kind]()
    assert held == pytest.approx(OPTIMUM)
    if kind == "cvxpy":
        again = of_cvxpy(tmp_path)
        again.solve(solver="HIGHS")
        for ours, theirs in zip(model.constraints, again.constraints, strict=True):
            np.testing.assert_allclose(ours.dual_value, theirs.dual_value, atol=1e-7)
    if kind == "pulp":
        assert model.constraints()[0].pi == pytest.approx(solution.dual["supply_0"] * -1)
    with pytest.raises(InvalidSolutionError, match="another model"):
        solve(as_problem(c=[1.0])).assign_to(model)


def test_mathopt_has_no_place_for_solutions(tmp_path):
    model = of_mathopt(tmp_path)
    with pytest.raises(UnsupportedProblemError, match=r"read solution\.primal"):
        solve(model).assign_to(model)


def test_masked_variables_of_linopy_are_left_out():
    model, xarray = pytest.importorskip("linopy").Model(), pytest.importorskip("xarray")
    there = xarray.DataArray([[True, False], [True, True]], coords={"plant": ["p", "q"], "shop": [10, 20]})
    x = model.add_variables(0, 4, coords=there.coords, mask=there, name="x")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what masks will mean in later versions
        need = model.add_constraints(x.sum("plant") >= 3, name="need")
        model.add_objective(x.sum() + x.sum("shop").sel(plant="q"))
    solution = solve(model, "highs")
    assert solution.value == pytest.approx(3 + 2 * 3)
    names = [solution.problem.variable_name(column) for column in range(3)]
    assert names == ["x['p', 10]", "x['q', 10]", "x['q', 20]"]
    assert solution.problem.row_name(1) == "need[20]"
    solution.assign_to(model)
    np.testing.assert_allclose(x.solution.values, [[3.0, np.nan], [0.0, 3.0]])
    np.testing.assert_allclose(need.dual.values, [1.0, 2.0])


def test_auxiliary_variables_of_cvxpy_need_not_be_integers():
    x = cp.Variable(2, name="x", bounds=[0, 3])
    gap = integrality_gap(cp.Problem(cp.Minimize(cp.norm1(x - np.array([0.5, 1.2])) + x[0] / 8)))
    assert gap.relaxed.value == pytest.approx(0.0625)
    assert gap.integer.value == pytest.approx(0.5 + 0.2)
    assert gap.integral is False


def test_models_are_swapped_side_by_side(tmp_path):
    from rankopt.experiments import SolverSwap

    models = [maker(tmp_path) for kind, maker in KINDS.items() if kind not in ("linopy", "pulp") or find_spec(kind)]
    rows = SolverSwap(problems=models, argmax_solvers=["highs"], repeats=1).run()
    assert [row.status.name for row in rows] == ["SOLVED"] * len(models)
    assert [row.value for row in rows] == pytest.approx([OPTIMUM] * len(models))
    assert len(models) >= 7


# Back: every class as a model of cvxpy, HiGHS and MathOpt.


def problems():
    rng = np.random.default_rng(3)
    yield "linear", as_problem(of_mathopt(None))
    knapsack = {"c": [-9.0, -8, -6], "A_ub": [[5.0, 4, 3]], "b_ub": [10.0], "bounds": (0, 1), "integrality": 1}
    yield "integer", as_problem(knapsack)
    yield "matching", matching(rng.normal(size=(3, 4)))
    yield "ranking", ranking(rng.normal(size=3), [2.0, 0.0, 1.0], discount=[1.0, 0.6], position_weights=[2.0, 1.0])
    yield "marginals", marginal_ranking(rng.random((2, 4)))
    yield "l1", l1_margin_dual(rng.normal(size=(4, 3)), rng.random(4), lam=0.5)
    yield "squares", margin_dual(rng.normal(size=(4, 3)), rng.random(4), lam=0.5)
    yield "concave", as_problem(cp.Problem(*concave()))


def concave():
    x = cp.Variable(3, name="w")
    rows = [(cp.sum(x) == 2).set_label("budget"), x <= np.array([0.5, 2, 2])]
    return cp.Maximize(np.array([1.0, 2, 3]) @ x - cp.quad_form(x, np.diag([1.0, 2, 3]) + 0.5) + 4), rows


CLASSES = dict(problems())


@pytest.mark.parametrize("name", CLASSES)
def test_a_problem_is_a_model_of_cvxpy_highs_and_mathopt_and_is_read_back(name):
    problem = CLASSES[name]
    best = solve(problem).value
    stated = problem.to_cvxpy()
    stated.solve(solver="HIGHS" if stated.is_mixed_integer() else "CLARABEL")
    assert stated.value == pytest.approx(best, abs=1e-6)
    assert solve(problem.to_cvxpy()).value == pytest.approx(best, abs=1e-6)
    scaled = solve(as_problem(problem.to_highs())).value
    if name == "squares":  # a margin dual is written in solver scaling
        best = solve(QuadraticProgram.from_program(problem.program)).value
    assert scaled == pytest.approx(best, abs=1e-6)
    assert solve(as_problem(problem.to_mathopt())).value == pytest.approx(scaled, abs=1e-6)
    run = problem.to_highs()
    run.run()
    assert run.getInfo().objective_function_value == pytest.approx(scaled, abs=1e-5)
    again = as_problem(as_problem(problem.to_cvxpy()).to_cvxpy())
    assert str(again) == str(as_problem(problem.to_cvxpy()))


LINEAR = [form for form in FORMS if form not in (GroupedSimplexQP, QuadraticProgram)]


@pytest.mark.parametrize("form", LINEAR, ids=lambda form: form.__name__)
def test_a_problem_of_every_class_has_its_optimum_in_every_tool(form):
    """Integers, constants of objectives and senses included; numbers within the tolerances of HiGHS."""
    usual = [problem for _, problem, _ in instances(form) if 0.01 < problem.scale < 1e6]
    assert usual
    for problem in usual[-4:]:
        best = solve(problem).value
        run = problem.to_highs()
        run.run()
        found = [run.getInfo().objective_function_value]
        found += [mathopt.solve(problem.to_mathopt(), mathopt.SolverType.HIGHS).objective_value()]
        found += [solve(as_problem(problem.to_cvxpy()), "highs").value]
        assert found == pytest.approx([best] * 3, rel=1e-6, abs=1e-8)


def test_numbers_that_highs_would_drop_are_refused():
    for entry, limit in ((1e-10, 1.0), (1.0, 1e21)):
        with pytest.raises(UnsupportedProblemError, match="HiGHS drops coefficients of 1e-09 or less"):
            as_problem(c=[1.0, 1.0], A_ub=[[entry, 1.0]], b_ub=[limit]).to_highs()


def test_variables_and_rows_of_a_statement_have_the_names_of_the_mathematics():
    stated = matching([[3.0, 2.0]]).to_cvxpy()
    assert [(one.name(), one.shape) for one in stated.variables()] == [("π", (1, 2))]
    assert [one.label for one in stated.constraints] == ["position", "document"]
    dual = margin_dual([[1.0], [-1.0]], [1.0, 0.0], lam=1.0).to_cvxpy()
    assert dual.variables()[0].name() == "α"
    assert dual.constraints[0].label == "group"


def test_a_row_is_added_to_the_dual_and_the_bound_is_that_of_the_unchanged_problem():
    problem = margin_dual([[1.0, 0.5], [-1.0, 2.0]], [1.0, 0.4], lam=0.5)
    free = solve(problem, lambda dual: dual.to_cvxpy())
    assert free.value == pytest.approx(solve(problem).value, abs=1e-7)

    def changed(dual):
        stated = dual.to_cvxpy()
        return cp.Problem(stated.objective, [*stated.constraints, stated.variables()[0][0] <= 0.1])

    found = solve(problem, changed)
    assert found.x[0] <= 0.1 + 1e-7
    assert found.value < solve(problem).value < found.bound
    with pytest.raises(InvalidSolutionError, match="no variable 'α'"):
        solve(problem, lambda dual: cp.Problem(cp.Minimize(cp.Variable(nonneg=True))))


def test_a_function_changes_a_linear_program():
    program = as_problem(of_mathopt(None))
    found = solve(program, lambda problem: problem.to_cvxpy())
    assert found.value == pytest.approx(OPTIMUM)
    by_program = function_solver(lambda problem: problem.to_cvxpy(), accepts=LinearProgram)
    assert solve(matching([[3.0, 2.0, 9.0], [2.0, 1.0, 8.5]]), by_program).value == pytest.approx(11.5)
    with pytest.raises(InvalidSolutionError, match="accepts=LinearProgram"):
        solve(pairwise_ranking([0.3, 0.1], [0, 1], "AP"), lambda problem: problem.to_cvxpy())


SCORES = np.outer([1.0, 0.5], [6.0, 5.0, 1.0])
AT_MOST = RankingSet(3, 2).at_most(1, documents=[0, 1], name="q")


@pytest.mark.parametrize(
    ("problem", "changed"),
    [
        (matching(SCORES), [1, 0]),
        (matching(-SCORES, sense="min"), [1, 0]),
        (matching(np.where([[True, True, False], [True] * 3], SCORES, -np.inf)), [1, 0]),
        (ranking([6.0, 5.0, 1.0], [0.0, 0.0, 0.0], discount=[0.0, 0.0], position_weights=[1.0, 0.5]), [1, 0]),
        (constrained_ranking(SCORES, AT_MOST), [1, 2]),
        (constrained_ranking(SCORES, AT_MOST.forbid([2], [0])), [1, 2]),
        (constrained_ranking(SCORES, AT_MOST.penalized("q", penalty=9.0)), [1, 2]),
    ],
    ids=["matching", "costs", "forbidden", "ranking", "constrained", "constrained, forbidden", "soft"],
)
def test_a_row_is_added_to_a_ranking(problem, changed):
    """The first document may not be first; the bound is that of the unchanged problem."""

    def with_row(problem):
        stated = problem.to_cvxpy()
        cells = {variable.name(): variable for variable in stated.variables()}["π"]
        first = cells[0, 0] if cells.ndim == 2 else cells[0]
        return cp.Problem(stated.objective, [*stated.constraints, first <= 0])

    assert solve(problem, lambda problem: problem.to_cvxpy()).order.tolist() == solve(problem).order.tolist()
    found = solve(problem, with_row)
    assert found.order.tolist() == changed
    assert found.bound == pytest.approx(solve(problem).value)
    certify(problem, found)


def test_a_row_that_makes_a_ranking_fractional_names_the_cure():
    def with_row(problem, integral):
        stated = problem.to_cvxpy()
        (π,) = stated.variables()
        whole = [π == cp.Variable(π.shape, boolean=True)] if integral else []
        return cp.Problem(stated.objective, [*stated.constraints, π[0, 0] + π[1, 1] <= 1, *whole])

    problem = matching([[3.0, 1.0], [1.0, 3.0]])
    with pytest.raises(
        InvalidSolutionError, match=r"fractions in π; add .* π == cvxpy.Variable\(π.shape, boolean=True"
    ):
        solve(problem, lambda problem: with_row(problem, False))
    assert solve(problem, lambda problem: with_row(problem, True)).order.tolist() == [1, 0]


# Quadratic programs of every tool


def squares_of(kind):
    """min x² + xy + y² - 3x + y subject to x + y >= 1, x <= 2."""
    if kind == "cvxpy":
        x, y = cp.Variable(name="x"), cp.Variable(name="y")
        curved = cp.quad_form(cp.hstack([x, y]), np.array([[1.0, 0.5], [0.5, 1.0]]))
        return cp.Problem(cp.Minimize(curved - 3 * x + y), [x + y >= 1, x <= 2])
    if kind == "mathopt":
        model = mathopt.Model()
        x, y = model.add_variable(ub=2.0, name="x"), model.add_variable(name="y")
        model.add_linear_constraint(x + y >= 1)
        model.minimize(x * x + x * y + y * y - 3 * x + y)
        return model
    if kind == "linopy":
        model = pytest.importorskip("linopy").Model()
        x, y = model.add_variables(-np.inf, 2, name="x"), model.add_variables(name="y")
        model.add_constraints(x + y >= 1, name="sum")
        model.add_objective(x * x + x * y + y * y - 3 * x + y)
        return model
    model = silent()
    x, y = model.addVariable(-highspy.kHighsInf, 2), model.addVariable(-highspy.kHighsInf)
    model.addConstr(x + y >= 1)
    model.changeColCost(0, -3.0)
    model.changeColCost(1, 1.0)
    lower = np.array([0, 2], dtype=np.int32), np.array([0, 1, 1], dtype=np.int32), np.array([2.0, 1.0, 2.0])
    model.passHessian(2, 3, 1, *lower)
    return model


@pytest.mark.parametrize("kind", ["cvxpy", "mathopt", "linopy", "highspy"])
@pytest.mark.parametrize("solver", ["auto", "qpsolvers:piqp", "qpsolvers:daqp", "cvxpy:OSQP", "cvxpy:CLARABEL"])
def test_quadratic_models_are_solved_and_proved(kind, solver):
    model = squares_of(kind)
    solution = solve(model, solver)
    # On the line y = 1 - x the objective is x² - 5x + 2, least at x = 2 (its limit): x = 2, y = -1.
    x = np.array([2.0, -1.0])
    optimum = float(x @ np.array([[1.0, 0.5], [0.5, 1.0]]) @ x + np.array([-3.0, 1.0]) @ x)
    assert solution.value == pytest.approx(optimum, abs=1e-6)
    assert solution.bound <= optimum + 1e-9
    assert solution.bound == pytest.approx(optimum, abs=1e-5)


def test_a_concave_maximum_has_its_own_sense_and_bound():
    model = cp.Problem(*concave())
    solution = solve(model)
    assert isinstance(solution.problem, QuadraticProgram)
    assert solution.problem.is_maximization
    reference = cp.Problem(*concave())
    reference.solve(solver="CLARABEL")
    assert solution.value == pytest.approx(reference.value, abs=1e-6)
    assert solution.value <= reference.value + 1e-6
    assert solution.bound == pytest.approx(reference.value, abs=1e-6)
    assert model.value == pytest.approx(reference.value, abs=1e-6)
    np.testing.assert_allclose(model.constraints[0].dual_value, reference.constraints[0].dual_value, atol=1e-4)
    np.testing.assert_allclose(model.constraints[1].dual_value, reference.constraints[1].dual_value, atol=1e-4)
    exact = certify(model, solution, exact=True)
    assert float(exact.value) <= reference.value + 1e-6 <= float(exact.bound) + 2e-6
    assert set(solution.dual) == {"budget", "constraint 1"}


@pytest.mark.parametrize("ending", [".mps", ".lp"])
def test_a_concave_maximum_is_written_and_read(ending, tmp_path):
    problem = as_problem(cp.Problem(*concave()))
    problem.write(tmp_path / f"concave{ending}")
    again = as_problem(tmp_path / f"concave{ending}")
    assert again.is_maximization
    assert solve(again).value == pytest.approx(solve(problem).value, abs=1e-7)


# Ten models of textbooks, each in its own tool, with an optimum found in another way.


def transport():
    model = pytest.importorskip("linopy").Model()
    cost = np.array([[8.0, 6.0, 10.0], [9.0, 12.0, 13.0]])
    ship = model.add_variables(lower=0, coords=[["mill", "dock"], ["oslo", "riga", "turku"]], name="ship")
    model.add_constraints(ship.sum("dim_1") <= [35, 50], name="stock")
    model.add_constraints(ship.sum("dim_0") >= [20, 30, 25], name="need")
    model.add_objective((ship * pytest.importorskip("xarray").DataArray(cost, coords=ship.coords)).sum())
    limits = np.vstack([np.kron(np.eye(2), np.ones(3)), -np.kron(np.ones(2), np.eye(3))])
    return model, linprog(cost.ravel(), limits, [35, 50, -20, -30, -25]).fun


def assignment():
    hours = np.array([[7.0, 5, 9, 8], [8, 6, 7, 9], [6, 9, 8, 7], [9, 8, 6, 5]])
    x = cp.Variable((4, 4), boolean=True, name="job")
    rows = [cp.sum(x, axis=0) == 1, cp.sum(x, axis=1) == 1]
    return cp.Problem(cp.Minimize(cp.sum(cp.multiply(hours, x))), rows), hours[linear_sum_assignment(hours)].sum()


def knapsack():
    pulp = pytest.importorskip("pulp")
    weight, worth = [4, 3, 5, 6, 2], [10, 7, 12, 13, 4]
    model = pulp.LpProblem("bag", pulp.LpMaximize)
    take = [variable(model, f"take_{i}", 0, 1, "Integer") for i in range(5)]
    model += pulp.lpSum(w * x for w, x in zip(worth, take, strict=True))
    model += pulp.lpSum(w * x for w, x in zip(weight, take, strict=True)) <= 11, "weight"
    held = [np.array(chosen) for chosen in product((0, 1), repeat=5) if np.dot(chosen, weight) <= 11]
    return model, max(float(chosen @ worth) for chosen in held)


def facility():
    fixed, cost = [12.0, 9.0, 15.0], np.array([[3.0, 8, 6, 9], [7, 4, 8, 5], [5, 6, 3, 4]])
    model = mathopt.Model()
    opened = [model.add_binary_variable(name=f"open_{i}") for i in range(3)]
    serve = [[model.add_variable(lb=0.0, name=f"serve_{i}_{j}") for j in range(4)] for i in range(3)]
    for j in range(4):
        model.add_linear_constraint(sum(serve[i][j] for i in range(3)) == 1, name=f"customer_{j}")
        for i in range(3):
            model.add_linear_constraint(serve[i][j] <= opened[i], name=f"link_{i}_{j}")
    model.minimize(
        sum(f * y for f, y in zip(fixed, opened, strict=True))
        + sum(cost[i, j] * serve[i][j] for i in range(3) for j in range(4))
    )
    choices = [[i for i in range(3) if one[i]] for one in product((0, 1), repeat=3) if any(one)]
    return model, min(sum(fixed[i] for i in sites) + cost[sites].min(axis=0).sum() for sites in choices)


ROADS = {("a", "b"): 4, ("a", "c"): 2, ("c", "b"): 1, ("b", "d"): 5, ("c", "d"): 8, ("d", "e"): 3, ("b", "e"): 9}


def shortest_path():
    model = model_builder.Model()
    use = {road: model.new_num_var(0, 1, "_".join(road)) for road in ROADS}
    for place in "abcde":
        out = sum(use[road] for road in ROADS if road[0] == place)
        into = sum(use[road] for road in ROADS if road[1] == place)
        model.add(out - into == {"a": 1, "e": -1}.get(place, 0), f"balance_{place}")
    model.minimize(sum(length * use[road] for road, length in ROADS.items()))
    graph = nx.DiGraph()
    graph.add_weighted_edges_from((*road, length) for road, length in ROADS.items())
    return model, nx.shortest_path_length(graph, "a", "e", weight="weight")


def max_flow():
    model = silent()
    use = {road: model.addVariable(0, size, name="_".join(road)) for road, size in ROADS.items()}
    for place in "bcd":
        out = sum(use[road] for road in ROADS if road[0] == place)
        into = sum(use[road] for road in ROADS if road[1] == place)
        model.addConstr(out - into == 0, name=f"balance_{place}")
    model.setMaximize()
    for column, road in enumerate(ROADS):
        model.changeColCost(column, float(road[0] == "a"))
    graph = nx.DiGraph()
    graph.add_edges_from((*road, {"capacity": size}) for road, size in ROADS.items())
    return model, nx.maximum_flow_value(graph, "a", "e")


def blending():
    pulp = pytest.importorskip("pulp")
    price, protein, fat = [0.3, 0.9, 0.5], [0.09, 0.6, 0.2], [0.02, 0.06, 0.1]
    model = pulp.LpProblem("feed", pulp.LpMinimize)
    share = [variable(model, name, 0, None) for name in ("maize", "soya", "bran")]
    model += pulp.lpSum(p * x for p, x in zip(price, share, strict=True))
    model += pulp.lpSum(share) == 1, "all"
    model += pulp.lpSum(p * x for p, x in zip(protein, share, strict=True)) >= 0.3, "protein"
    model += pulp.lpSum(f * x for f, x in zip(fat, share, strict=True)) <= 0.05, "fat"
    return model, linprog(price, [[-p for p in protein], fat], [-0.3, 0.05], [[1, 1, 1]], [1]).fun


def scheduling():
    """One machine, jobs with weights: Σ weight × end, either i before j or j before i."""
    length, weight = [3, 5, 2], [2.0, 1.0, 3.0]
    model, total = mathopt.Model(), 10.0
    start = [model.add_variable(lb=0.0, ub=total, name=f"start_{i}") for i in range(3)]
    for i in range(3):
        for j in range(i + 1, 3):
            first = model.add_binary_variable(name=f"first_{i}_{j}")
            model.add_linear_constraint(start[i] + length[i] <= start[j] + total * (1 - first), name=f"{i}_{j}")
            model.add_linear_constraint(start[j] + length[j] <= start[i] + total * first, name=f"{j}_{i}")
    model.minimize(sum(w * (s + p) for w, s, p in zip(weight, start, length, strict=True)))
    costs = [sum(weight[j] * sum(length[i] for i in order[: k + 1]) for k, j in enumerate(order))
             for order in permutations(range(3))]  # fmt: skip
    return model, min(costs)


def portfolio():
    """min ½ xᵀΣx with Σ x = 1, and a return of at least .07; the optimum by its linear optimality conditions."""
    risk = np.array([[0.10, 0.02, 0.01], [0.02, 0.08, 0.03], [0.01, 0.03, 0.12]])
    gain = np.array([0.05, 0.07, 0.09])
    x = cp.Variable(3, name="share", nonneg=True)
    model = cp.Problem(cp.Minimize(cp.quad_form(x, risk) / 2), [cp.sum(x) == 1, (gain @ x >= 0.07).set_label("return")])
    rows = np.vstack([np.ones(3), gain])
    system = np.block([[risk, rows.T], [rows, np.zeros((2, 2))]])
    best = np.linalg.solve(system, [0, 0, 0, 1, 0.07])[:3]
    assert (best > 0).all()
    return model, best @ risk @ best / 2


def least_squares():
    rng = np.random.default_rng(0)
    table, seen = rng.normal(size=(8, 3)), rng.normal(size=8)
    w = cp.Variable(3, name="w")
    return cp.Problem(cp.Minimize(cp.sum_squares(table @ w - seen))), np.linalg.lstsq(table, seen)[1][0]


PROVED = (transport, assignment, shortest_path, max_flow, blending, facility, portfolio, least_squares)
INTEGRAL = (transport, assignment, shortest_path, max_flow)


@pytest.mark.parametrize("state", [*PROVED, knapsack, scheduling], ids=lambda one: one.__name__)
def test_models_of_textbooks_are_solved_proved_and_verified(state):
    model, optimum = state()
    solution = solve(model)
    certify(model, solution)
    assert solution.value == pytest.approx(optimum, abs=1e-6)
    sign = 1.0 if solution.problem.is_maximization else -1.0
    assert sign * solution.bound >= sign * optimum - 1e-9
    if state in PROVED:
        assert solution.bound == pytest.approx(optimum, abs=1e-6)
    else:
        assert solution.verdict in ("optimal", "optimal (claimed)")
        assert integrality_gap(model).integral is False
    if state in INTEGRAL:
        assert isinstance(verify_integrality(model), Proof)


# What breaks


def test_an_infeasible_model_names_its_conflict(tmp_path):
    x = cp.Variable(2, name="x")
    rows = [(cp.sum(x) >= 3).set_label("total"), (x[0] <= 1).set_label("a"), (x[1] <= 1).set_label("b"), x >= -9]
    for goal in (cp.Minimize(cp.sum(x)), cp.Minimize(cp.sum_squares(x))):
        for solver in ("auto", "cvxpy:CLARABEL"):
            with pytest.raises(InfeasibleError, match=r"Conflict: total, a, b$"):
                solve(cp.Problem(goal, rows), solver)
    with pytest.raises(InfeasibleError, match=r"x\[0\] must be at least 3.0, at most 1.0"):
        as_problem(c=[1.0, 2.0], bounds=[(3, 1), (None, None)])
    with pytest.raises(InfeasibleError, match="must be between inf and inf"):
        as_problem(cp.Problem(cp.Minimize(x[0]), [x >= np.inf]))


def test_an_unbounded_model_says_so():
    x = cp.Variable(2, name="x")
    for goal in (cp.Maximize(x[0]), cp.Maximize(x[0] - cp.square(x[1]))):
        with pytest.raises(UnboundedError):
            solve(cp.Problem(goal, [x[1] <= 1]))


def test_variables_of_cvxpy_keep_their_attributes():
    whole, flag = cp.Variable(2, integer=True, name="whole"), cp.Variable(boolean=True, name="flag")
    low, free = cp.Variable(nonneg=True, name="low"), cp.Variable((2, 2), symmetric=True, name="table")
    goal = cp.Maximize(cp.sum(whole) + 3 * flag - low - cp.sum(cp.abs(free - np.array([[1.0, 2], [2, 3]]))))
    model = cp.Problem(goal, [whole <= 2.5, whole[0] + 2 * flag <= 3, low >= flag / 2])
    problem = as_problem(model)
    assert int(problem.integer.sum()) == 3
    solution = solve(model, "highs")
    assert solution.value == pytest.approx(5.5)
    np.testing.assert_allclose(free.value, [[1.0, 2], [2, 3]])
    assert flag.value == 1.0
    assert solution.primal["low"] == pytest.approx(0.5)
    assert {"whole", "flag", "low", "table"} <= set(solution.primal)
    assert model.constraints[0].dual_value is None or np.isfinite(model.constraints[0].dual_value).all()


def test_names_are_unique_and_variables_without_a_name_have_one():
    first, second = cp.Variable(name="v"), cp.Variable(2, name="v")
    found = solve(cp.Problem(cp.Minimize(first + cp.sum(second)), [first >= 1, second >= [2, 3]]))
    assert {name: part.tolist() for name, part in found.primal.items()} == {"v": 1.0, "v (2)": [2.0, 3.0]}
    model = mathopt.Model()
    x, y = model.add_variable(lb=1.0), model.add_variable(lb=2.0, name="y")
    model.add_linear_constraint(x + y >= 4)
    model.minimize(x + 2 * y)
    problem = as_problem(model)
    assert [problem.variable_name(0), problem.variable_name(1), problem.row_name(0)] == ["x[0]", "y", "row[0]"]


def test_parameters_need_values_and_the_present_one_is_read():
    x, rate = cp.Variable(2, name="x"), cp.Parameter(name="rate")
    model = cp.Problem(cp.Minimize(rate * x[0] + x[1] + 2), [x >= 1])
    with pytest.raises(InvalidProblemError, match="parameter 'rate' has no value"):
        as_problem(model)
    for value in (3.0, 5.0):
        rate.value = value
        assert solve(model).value == pytest.approx(value + 3.0)


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        (lambda x: cp.Minimize(cp.quad_form(x, np.diag([1.0, -1.0]))), "the objective is not convex"),
        (lambda x: cp.Maximize(cp.sum_squares(x)), "the objective is not concave"),
        (lambda x: cp.Minimize(x[0] * x[1]), "the objective is not convex"),
        (lambda x: cp.Minimize(cp.quad_form(x, cp.psd_wrap(np.diag([1.0, -1.0])))), "its squares are not convex"),
    ],
)
def test_a_quadratic_objective_of_the_wrong_curvature_is_refused(goal, words):
    x = cp.Variable(2)
    with pytest.raises(InvalidProblemError, match=words):
        as_problem(cp.Problem(goal(x), [x <= 1]))


def test_cone_programs_and_quadratic_ones_with_integers_stay_claims():
    x, whole = cp.Variable(2, nonneg=True), cp.Variable(2, integer=True)
    over = cp.Problem(cp.Minimize(cp.quad_over_lin(x - 1, cp.sum(x))), [x <= 3])
    solution = solve(over, "cvxpy:CLARABEL")
    assert solution.bound == -np.inf
    assert as_problem(cp.Problem(cp.Minimize(cp.sum_squares(whole - 0.4)))).bound(np.empty(0)) == -np.inf
    model = mathopt.Model()
    number = model.add_integer_variable(lb=0.0, ub=3.0)
    model.minimize(number * number)
    with pytest.raises(UnsupportedProblemError, match="quadratic objective and integer variables"):
        as_problem(model)


def test_what_no_problem_class_has_is_named():
    model = mathopt.Model()
    x = model.add_variable(lb=0.0)
    model.add_quadratic_constraint(x * x <= 1)
    with pytest.raises(UnsupportedProblemError, match="the model has quadratic constraints"):
        as_problem(model)
    built = model_builder.Model()
    number, flag = built.new_num_var(0, 4, "u"), built.new_bool_var("b")
    built.add_enforced(number <= 1, flag, True)
    with pytest.raises(UnsupportedProblemError, match="the model has indicator constraints"):
        as_problem(built)
    with pytest.raises(UnsupportedProblemError, match="semicontinuous variables"):
        as_problem(c=[1.0], integrality=[2])


@pytest.mark.parametrize("empty", [mathopt.Model, model_builder.Model, silent, lambda: cp.Problem(cp.Minimize(0))])
def test_an_empty_model_is_refused(empty):
    with pytest.raises(InvalidProblemError, match="the model has no variables"):
        as_problem(empty())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"c": [1.0], "x": 2}, "got 'x'"),
        ({"A_ub": [[1.0]]}, "got no c"),
        ({"c": [1, 2], "A_ub": [[1, 2, 3]], "b_ub": [1]}, r"A_ub has shape \(1, 3\); b_ub and c need \(1, 2\)"),
        ({"c": [1, 2], "A_eq": [[1, 2]]}, "A_eq and b_eq belong together"),
        ({"c": [1, 2], "bounds": [(0, 1)] * 3}, "bounds must be a pair or 2 pairs"),
        ({"c": "abc"}, "c cannot be read as numbers"),
        ({"c": [np.nan]}, "must be finite"),
    ],
)
def test_arguments_of_linprog_are_checked(arguments, words):
    with pytest.raises(InvalidProblemError, match=words):
        as_problem(**arguments)
    with pytest.raises(InvalidProblemError, match=words):
        solve(arguments)


def test_linprog_reads_as_scipy_does():
    rng = np.random.default_rng(5)
    for _ in range(10):
        arguments = {"c": rng.normal(size=4), "A_ub": rng.random((3, 4)), "b_ub": rng.random(3) + 1}
        arguments |= {"A_eq": rng.random((1, 4)), "b_eq": rng.random(1), "bounds": [(0, 3), (None, 2), (-1, 4), (0, 9)]}
        theirs = linprog(**arguments)
        assert theirs.status in (0, 3)
        if theirs.status == 0:
            assert solve(arguments, "highs").value == pytest.approx(theirs.fun)
    assert as_problem(c=[1.0]).lower.tolist() == [0.0]


def test_gurobi_is_read_by_the_file_that_it_writes(tmp_path):
    class Model:
        """The interface of gurobipy.Model."""

        def write(self, path):
            as_problem(of_mathopt(tmp_path)).write(path)

    Model.__module__ = "gurobipy._model"
    assert solve(Model()).value == pytest.approx(OPTIMUM)


@pytest.mark.parametrize("value", [3, None, [1, 2], cp.Variable(2)])
def test_other_objects_are_refused(value):
    with pytest.raises(UnsupportedProblemError, match="pass a problem of formulations, a model of cvxpy"):
        as_problem(value)
    with pytest.raises(InvalidProblemError, match="got both"):
        as_problem(value if value is not None else 3, c=[1.0])


def test_random_programs_agree_with_cvxpy():
    """Equations, ranges, free variables, absolute values, both senses."""
    rng = np.random.default_rng(11)
    for trial in range(12):
        n = int(rng.integers(2, 5))
        x = cp.Variable(n, name="x", integer=trial % 3 == 0)
        goal = rng.integers(-4, 5, n).astype(float) @ x + float(rng.integers(0, 9)) / 2
        rows = [rng.integers(-3, 4, (2, n)) @ x <= rng.integers(2, 9, 2), x >= -3, x <= 4, cp.norm1(x) <= 6]
        if trial % 2:
            model = cp.Problem(cp.Maximize(goal - cp.abs(x[0] - 1)), rows)
        else:
            model = cp.Problem(cp.Minimize(goal + cp.max(x)), rows)
        reference = cp.Problem(model.objective, model.constraints).solve(solver="HIGHS")
        solution = solve(model, "highs")
        assert solution.value == pytest.approx(reference, abs=1e-6)
        assert model.objective.value == pytest.approx(reference, abs=1e-6)
        sign = 1.0 if trial % 2 else -1.0
        assert sign * solution.bound >= sign * reference - 1e-7


def test_steps_of_a_curve_of_an_integer_program():
    """The best of x in {0, 1, 2}³ for each capacity, by enumeration; infeasible limits are empty."""
    x = cp.Variable(3, name="x", integer=True, bounds=[0, 2])
    rows = [(np.array([2, 3, 1]) @ x <= 5).set_label("capacity"), cp.sum(x) >= 1]
    curve = sensitivity(cp.Problem(cp.Maximize(np.array([5, 4, 3]) @ x), rows), "capacity", range(9))
    for limit in range(9):
        feasible = [p for p in product(range(3), repeat=3) if np.dot([2, 3, 1], p) <= limit and sum(p) >= 1]
        best = max((float(np.dot([5, 4, 3], p)) for p in feasible), default=np.nan)
        assert curve.value[limit] == pytest.approx(best, nan_ok=True)
        assert not curve.relaxed[limit] < best - 1e-9
    with pytest.raises(InvalidProblemError, match="no row is named 'weight'; there are 'capacity', 'constraint 1'"):
        sensitivity(cp.Problem(cp.Maximize(cp.sum(x)), rows), "weight", [1])
    with pytest.raises(InfeasibleError, match="no feasible point at any of the limits"):
        sensitivity(cp.Problem(cp.Maximize(cp.sum(x)), rows), "capacity", [0])
