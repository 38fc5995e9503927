"""What is told of back ends without importing them agrees with what cvxpy and qpsolvers say themselves."""

import subprocess
import sys

import pytest

from formulations.errors import UnknownSolverError
from formulations.solvers import back_ends, get_solver
from formulations.solvers.back_ends import CVXPY, QPSOLVERS, present
from formulations.solvers.cvxpy import Cvxpy, back_end_of

LISTED = """
import sys, formulations
from formulations.problems.simplex_qp import GroupedSimplexQP
formulations.compatible_solvers(formulations.matching([[1.0, 2.0]])), formulations.compatible_solvers(GroupedSimplexQP)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_installed_back_ends_are_those_that_the_packages_find():
    import cvxpy
    import qpsolvers

    assert set(present(CVXPY)) == set(cvxpy.installed_solvers()) & set(CVXPY)
    assert set(present(QPSOLVERS)) == set(qpsolvers.available_solvers) & set(QPSOLVERS)


def test_the_table_claims_no_more_than_cvxpy(monkeypatch):
    listed = {name: CVXPY[name] for name in present(CVXPY)}
    monkeypatch.setattr("formulations.solvers.cvxpy.CVXPY", {})
    for name, entry in listed.items():
        own = back_end_of(name)
        assert entry.quadratic <= own.quadratic
        # Of quadratic programs alone cvxpy lists back ends without a word on whole numbers.
        assert entry.integer <= own.integer
        assert Cvxpy(name).accepts == Cvxpy(name).accepts


def test_listing_solvers_imports_no_solver_package():
    loaded = subprocess.run([sys.executable, "-c", LISTED], capture_output=True, text=True, check=True).stdout.split()
    assert not {"cvxpy", "qpsolvers", "highspy", "ortools", "networkx", *(e.module for e in CVXPY.values())} & (
        set(loaded) - {"scipy"}
    )


@pytest.mark.parametrize("name", ["gurobi", "GUROBI", "cvxpy:gurobi"])
def test_a_back_end_that_is_not_installed_names_what_to_install(name, monkeypatch):
    monkeypatch.setattr(back_ends, "_importable", lambda module: module not in ("gurobipy", "mosek"))
    with pytest.raises(UnknownSolverError, match="not installed: pip install gurobipy"):
        get_solver(name)
    with pytest.raises(UnknownSolverError, match="pip install mosek"):
        get_solver("qpsolvers:mosek")
