"""Options of solvers are part of their names, swept, and refused where a solver has none of them."""

from functools import partial

import pytest

import formulations
from formulations import LinearProgram, UnknownSolverError, get_solver, matching, solve, solver_grid
from formulations.solvers import SOLVERS
from formulations.solvers.cp_sat import CpSat
from formulations.solvers.cvxpy import Cvxpy
from formulations.solvers.highs import Highs
from formulations.solvers.solver import listed
from rankopt.experiments.isolation import resolved, spec_of


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
