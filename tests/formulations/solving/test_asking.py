"""Time, threads, a log and options of its own: what a solver has it is given, what it has not is refused by name."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from formulations import LinearProgram, UnknownSolverError, matching, solve
from formulations.solvers import get_solver, list_solvers
from formulations.solvers.cp_sat import CpSat
from formulations.solvers.cvxpy import Cvxpy
from formulations.solvers.highs import Highs
from formulations.solving.solve import SolveOptions, takes

PROBLEM = matching([[1.0, 2.0, 0.5], [3.0, 1.0, 0.0]])


@pytest.mark.parametrize("spec", list_solvers())
@pytest.mark.parametrize(
    ("option", "value"), [("time_limit", 60.0), ("threads", 1), ("verbose", True), ("options", {"no_such_option": 1})]
)
def test_every_solver_takes_an_option_or_refuses_it_by_name(spec, option, value):
    if not takes(spec, option):
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
