"""The gallery: what loads, what its table names, and problems that keep their data."""

import subprocess
import sys
from operator import attrgetter

import numpy as np
import pytest
from scipy.sparse import csr_array

import formulations
from formulations import (
    GALLERY,
    certify,
    matching,
    solve,
)
from formulations.problems.linear_program import LinearProgram


def test_importing_formulations_loads_no_solver():
    script = "import sys, formulations; print(*{name.split('.')[0] for name in sys.modules})"
    run = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    heavy = {"cvxpy", "ortools", "highspy", "networkx", "numba", "scipy", "qpsolvers"}
    assert heavy.intersection(run.stdout.split()) == set()


def test_the_gallery_is_a_table_of_functions():
    assert {"ranking", "matching", "margin_dual"} <= set(GALLERY) <= set(dir(formulations))
    for name in GALLERY:
        problem = getattr(formulations, name)
        assert callable(problem), f"{name} is the function even after its file was imported"
        assert problem.__name__ == name
        assert "integrality" in problem.__doc__ or name == "margin_dual"
        assert ">>>" in problem.__doc__
    for name in formulations.__all__:
        assert getattr(formulations, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'rankings'"):
        attrgetter("rankings")(formulations)
    assert all(name in formulations.__doc__ for name in GALLERY)


def test_matching_places_by_any_benefit():
    benefit = [[1.0, 5.0, 2.0], [4.0, 6.0, 1.0]]
    assert solve(matching(benefit), "scipy").order.tolist() == [1, 0]
    held = matching(benefit, allowed=[[True, False, True], [True, True, True]])
    solution = solve(held, "ortools")
    assert solution.order.tolist() == [2, 1]
    assert solution.primal["π"].tolist() == [[0, 0, 1], [0, 1, 0]]
    assert certify(held, solution, exact=True).gap == 0
    assert solution.dual["position"].sum() + solution.dual["document"].sum() == pytest.approx(8.0)


def test_problems_do_not_change_with_the_callers_arrays():
    benefit, allowed = np.eye(3), np.ones((3, 3), dtype=bool) ^ np.eye(3, dtype=bool)
    problem = matching(benefit, allowed=allowed)
    benefit[:], allowed[:] = 7.0, False
    assert problem.profit.tolist() == np.eye(3).tolist()
    assert problem.allowed.sum() == 6
    with pytest.raises(ValueError, match="read-only"):
        problem.profit[0, 0] = 1.0
    rows = csr_array(np.eye(2))
    program = LinearProgram(np.ones(2), rows, np.zeros(2), np.ones(2), np.zeros(2), np.ones(2))
    rows.data[:] = 9.0
    assert program.matrix.toarray().tolist() == np.eye(2).tolist()
