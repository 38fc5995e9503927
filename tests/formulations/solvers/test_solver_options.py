"""Options of solvers are part of their names, swept, and refused where a solver has none of them."""

import re
import subprocess
import sys
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import ClassVar

import numpy as np
import pytest
from scipy.sparse import csr_array

import formulations
from formulations import (
    GroupedSimplexQP,
    LinearProgram,
    QuadraticProgram,
    SolverError,
    UnknownSolverError,
    compatible_solvers,
    get_solver,
    margin_dual,
    matching,
    solve,
    solver_grid,
)
from formulations.solvers import SOLVERS, list_solvers
from formulations.solvers.active_set import ActiveSet
from formulations.solvers.cp_sat import CpSat
from formulations.solvers.cvxpy import Cvxpy
from formulations.solvers.highs import Highs
from formulations.solvers.solver import listed
from formulations.solving.solve import SolveOptions, supports_option
from rankopt.experiments.isolation import resolved, spec_of
from rankopt.optimize import objective
from rankopt.optimize.objective import Objective
from rankopt.optimize.state import PlaneSet


def test_a_name_with_options_is_the_solver_with_them():
    assert get_solver("highs(method='ipm', presolve='off')") == Highs(method="ipm", presolve="off")
    assert get_solver("highs(time_limit=2.5)") == Highs(time_limit=2.5)
    assert get_solver("cvxpy:CLARABEL(tol_gap_abs=1e-12)").options == {"tol_gap_abs": 1e-12}
    assert [one.presolve for one in solver_grid("highs", presolve=["on", "off"], method="simplex")] == ["on", "off"]
    several = solver_grid(Highs(), method=("ipm", "simplex"), presolve=("on", "off"))
    assert [(one.method, one.presolve) for one in several] == [
        ("ipm", "on"), ("ipm", "off"), ("simplex", "on"), ("simplex", "off"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "solver",
    [Highs(presolve="off"), Highs(method="ipm", time_limit=1.0), get_solver("cvxpy:CLARABEL(tol_gap_abs=1e-12)")],
)
def test_the_name_of_a_row_is_read_back(solver):
    assert resolved(spec_of(solver)) == solver
    assert spec_of(spec_of(solver)) == spec_of(solver)


def test_commas_inside_brackets_belong_to_a_name():
    text = " exact,highs(method='ipm', presolve='off'), own.solvers:MINE ,"
    assert list(listed(text)) == ["exact", "highs(method='ipm', presolve='off')", "own.solvers:MINE"]
    assert list(listed("")) == []


@pytest.mark.parametrize(
    "spec", ["highs(", "highs()x", "highs(1)", "highs(method=open)", "highs(method=ipm)", "highs(nonsense=1)",
             "highs(presolve='never')", "exact(depth=3)", "highs(**{})", "highs(a=[1])", "nobody(a=1)",
             "highs(a=" + "9" * 2000 + ")",
             "highs(method='ipm', method='simplex')", "highs(" + "(" * 500 + ")" * 500 + ")"],
    ids=lambda spec: spec[:30],
)  # fmt: skip
def test_what_is_no_option_is_a_typed_error(spec):
    with pytest.raises(UnknownSolverError):
        get_solver(spec)
    with pytest.raises(UnknownSolverError):
        spec_of(spec)


def test_presolve_is_told_to_highs_and_answers_stay():
    problem = LinearProgram([1.0, 2.0, 3.0], [[1.0, 1.0, 1.0]], [1.0], [2.0], [0.0] * 3, [1.0] * 3)
    assert {solve(problem, solver).value for solver in solver_grid("highs", presolve=["choose", "on", "off"])} == {5.0}


@pytest.mark.parametrize("name", ["CpSat", "Cvxpy", "ExactArgmax", "Highs", "OrTools", "QpSolvers", "Scipy"])
def test_the_classes_of_solvers_are_words_of_the_package(name):
    kind = getattr(formulations, name)
    assert name in formulations.__all__
    assert f"{kind.__module__}:{name}" in SOLVERS.values()


@pytest.mark.parametrize("kind", [Highs, CpSat, partial(Cvxpy, "HIGHS")])
def test_solvers_refuse_what_no_solver_could_be_asked_when_they_are_made(kind):
    for wrong in (
        {"time_limit": "a"},
        {"time_limit": -1},
        {"time_limit": 0},
        {"threads": 0},
        {"verbose": 3},
        {"options": 3},
    ):
        with pytest.raises(UnknownSolverError, match=next(iter(wrong))):
            kind(**wrong)


def test_an_unknown_back_end_is_refused_when_it_is_named():
    with pytest.raises(UnknownSolverError, match="no installed solver 'NOPE'"):
        Cvxpy("NOPE")


def test_the_threads_of_highs_through_cvxpy_may_change_from_call_to_call():
    problem = matching([[3.0, 1.0], [2.0, 2.0]])
    assert [solve(problem, "cvxpy:HIGHS", threads=threads).value for threads in (1, 2, 1)] == [5.0] * 3


# Limits of time: handed to every solver that takes one; and a master that HiGHS never ended, ended.


ENDLESS = "margin_dual([[0.0], [333.0]], [.1, .3], lam=.01, groups=[0, 1], group_mass=[1.0, 1.0])"

PATIENT = "options={'qp_iteration_limit': 10**9}, time_limit=1.0"
"""Without our limit of iterations the limit of time is what ends it."""


@pytest.mark.study
def test_two_planes_do_not_hang_highs():
    """In a process of its own: inside HiGHS no signal is heard."""
    solvers = f"'cvxpy:HIGHS', 'qpsolvers:highs', Cvxpy('HIGHS', {PATIENT}), QpSolvers('highs', {PATIENT})"
    code = (
        "from formulations import margin_dual, solve\n"
        "from formulations.solvers.cvxpy import Cvxpy\n"
        "from formulations.solvers.qpsolvers import QpSolvers\n"
        f"for solver in {solvers}:\n"
        "    print(solver, flush=True)\n"
        f"    solution = solve({ENDLESS}, solver)\n"
        "    assert solution.value <= 0.1 + 1e-8 <= solution.bound + 1e-12, solution\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Timed(ActiveSet):
    """A master that takes a limit of time and keeps what it was given."""

    time_limit: float | None = None
    given: list = field(default_factory=list)

    spec: ClassVar[str] = "timed"

    def solve(self, problem, warm_start=None):
        self.given.append(self.time_limit)
        return super().solve(problem, warm_start)


@dataclass(frozen=True)
class Untimed(Timed):
    """One whose back end takes none, as some of cvxpy's."""

    supports_time_limit: ClassVar[bool] = False


def two_planes():
    return margin_dual([[1.0], [-1.0]], [1.0, 0.5], lam=1.0)


def test_a_limit_is_handed_over_and_a_shorter_one_stays():
    for own, asked, expected in ((None, None, None), (None, 3.0, 3.0), (2.0, 3.0, 2.0), (5.0, 3.0, 3.0)):
        solver = Timed(time_limit=own)
        solve(two_planes(), solver, time_limit=asked)
        assert solver.given == [expected]


def test_a_solver_without_a_limit_says_so_and_a_master_may_be_one():
    with pytest.raises(UnknownSolverError, match="no limit of time; leave out time_limit"):
        solve(two_planes(), Untimed(), time_limit=3.0)
    untimed = Untimed()
    planes = PlaneSet.empty(1, 1).plus(np.array([[1.0]]), np.array([1.0]), np.zeros(1, dtype=np.int64))
    Objective(None, 1.0, np.zeros(1), untimed).solve_master(planes, np.ones(1), np.zeros(1))
    assert untimed.given == [None]


@pytest.mark.parametrize("spec", [spec for spec in list_solvers() if spec.startswith(("cvxpy:", "qpsolvers:"))])
def test_a_solver_says_whether_it_takes_a_limit(spec):
    solver = get_solver(spec)
    if solver.supports_time_limit:
        assert replace(solver, time_limit=7.0).time_limit == 7.0
    else:
        with pytest.raises(UnknownSolverError, match="no time limit"):
            replace(solver, time_limit=7.0)
    if solver.supports_time_limit and (GroupedSimplexQP in solver.accepts or spec.startswith("qpsolvers:")):
        assert np.isfinite(solve(two_planes(), spec, time_limit=30.0).value)


def test_a_master_gets_what_training_has_left():
    planes = PlaneSet.empty(1, 1).plus(np.array([[1.0]]), np.array([1.0]), np.zeros(1, dtype=np.int64))
    now = perf_counter()
    for ends, least, most in (
        (None, objective.LONGEST, objective.LONGEST),
        (now + 1e6, objective.LONGEST, objective.LONGEST),
        (now + 60.0, 1.0, 60.0),
        (now - 60.0, objective.SHORTEST, objective.SHORTEST),
    ):
        master = Timed()
        Objective(None, 1.0, np.zeros(1), master, ends=ends).solve_master(planes, np.ones(1), np.zeros(1))
        assert least <= master.given[0] <= most


# Time, threads, a log and options of its own: what a solver has it is given, what it has not is refused by name.


PROBLEM = matching([[1.0, 2.0, 0.5], [3.0, 1.0, 0.0]])


@pytest.mark.parametrize("spec", list_solvers())
@pytest.mark.parametrize(
    ("option", "value"), [("time_limit", 60.0), ("threads", 1), ("verbose", True), ("options", {"no_such_option": 1})]
)
def test_every_solver_takes_an_option_or_refuses_it_by_name(spec, option, value):
    if not supports_option(spec, option):
        with pytest.raises(UnknownSolverError, match=option):
            solve(PROBLEM, spec, **{option: value})
        return
    solver = SolveOptions(**{option: value}).for_solver(get_solver(spec), strict=True) if option != "options" else None
    if solver is not None:
        assert getattr(solver, option) == value
        assert get_solver(spec) != solver or value == getattr(get_solver(spec), option)


@pytest.mark.parametrize("spec", ["highs", "cvxpy:HIGHS", "cvxpy:CLARABEL"])
def test_a_log_is_printed_only_where_it_is_asked_for(spec, capfd):
    assert solve(PROBLEM, spec).value == pytest.approx(5.0)
    assert capfd.readouterr().out == ""
    assert solve(PROBLEM, spec, verbose=True).value == pytest.approx(5.0)
    assert capfd.readouterr().out


def test_options_reach_the_package():
    assert solve(PROBLEM, "highs", options={"presolve": "off"}, threads=1, time_limit=60.0).value == 5.0
    with pytest.raises(UnknownSolverError, match="'highs' has no option 'no_such'"):
        solve(PROBLEM, "highs", options={"no_such": 1})
    with pytest.raises(UnknownSolverError, match="'cp_sat' refuses no_such"):
        solve(PROBLEM, "cp_sat", options={"no_such": 1})
    assert solve(PROBLEM, "cp_sat", options={"linearization_level": 2}, threads=2).value == 5.0
    mixed = SolveOptions(options={"presolve": "off"}).for_solver(Highs(options={"random_seed": 3}), strict=True)
    assert mixed == Highs(options={"random_seed": 3, "presolve": "off"})


@pytest.mark.parametrize("spec", ["auto", "highs", "exact"])
@pytest.mark.parametrize(
    ("option", "value", "cure"),
    [
        *(("time_limit", value, "positive number") for value in (0, -1, np.nan, "5", True)),
        *(("threads", value, "1 or more") for value in (0, 1.5, "2")),
        *(("options", value, "mapping") for value in ([1], {1: 2}, "presolve")),
        *(("verbose", value, "verbose=True") for value in ("x", 2)),
    ],
)
def test_what_no_solver_could_be_asked_is_refused_before_any_is(spec, option, value, cure):
    with pytest.raises(UnknownSolverError, match=cure):
        solve(PROBLEM, spec, **{option: value})


def test_numbers_of_numpy_are_numbers():
    assert (
        solve(PROBLEM, "highs", time_limit=np.float32(60), threads=np.int64(1), verbose=False, options={}).value == 5.0
    )
    assert solve(PROBLEM, "highs", time_limit=np.inf).value == 5.0


def test_auto_takes_what_each_has_and_refuses_options():
    assert solve(PROBLEM, time_limit=60.0, threads=1).value == 5.0
    with pytest.raises(UnknownSolverError, match="name the solver"):
        solve(PROBLEM, options={"presolve": "off"})


def cut_short():
    """A linear, a quadratic and an integer program, too large for a nanosecond."""
    random, n, m = np.random.default_rng(0), 60, 20
    matrix = random.integers(0, 100, (m, n)).astype(float)
    free, sides = np.full(m, -np.inf), np.floor(matrix.sum(axis=1) / 2)
    limits = np.zeros(n), np.ones(n)
    yield LinearProgram(matrix[0], csr_array(matrix), free, sides, *limits)
    yield QuadraticProgram(csr_array(matrix.T @ matrix), -matrix[0], csr_array(matrix), free, sides, *limits)
    yield LinearProgram(matrix[0], csr_array(matrix), sides, sides, *limits, integer=limits[1])


@pytest.mark.parametrize("problem", [*cut_short()], ids=["linear", "quadratic", "integer"])
def test_an_answer_that_a_time_limit_cut_is_not_blamed_on_its_point(problem):
    timed = [spec for spec in compatible_solvers(problem) if supports_option(spec, "time_limit")]
    assert len(timed) > 1
    for spec in timed:
        try:
            found = solve(problem, spec, time_limit=1e-9)
        except SolverError as error:
            reason = str(error)
        else:
            is_solved = found.gap <= 1e-6 * abs(found.value)
            reason = "solved" if is_solved else f"{found.verdict}, {found.reported_status}"
        assert re.search("within its time limit of 1e-09 seconds|^solved$|^time limit, TIME_LIMIT$", reason), spec


def test_threads_that_a_back_end_does_not_have():
    with pytest.raises(UnknownSolverError, match="'cvxpy:OSQP' has no choice of threads"):
        Cvxpy("OSQP", threads=2)
    with pytest.raises(UnknownSolverError, match="threads must be an integer, 1 or more; got 0"):
        CpSat(threads=0)


def test_presolve_of_whole_and_real_variables_is_refused():
    """min 2 x + 3 z, x + z >= 4.5, z whole."""
    program = LinearProgram(
        np.array([2.0, 3.0]), csr_array(np.ones((1, 2))), np.array([4.5]), np.array([np.inf]),
        np.zeros(2), np.full(2, 10.0), is_maximization=False, integer=np.array([False, True]),
    )  # fmt: skip
    assert solve(program, "highs").value == pytest.approx(9.0)
    with pytest.raises(UnknownSolverError, match="remove the option presolve"):
        solve(program, "highs", options={"presolve": "on"})
