"""cvxpy, OR-Tools and HiGHS load into one process in every order, and solve there.

highspy and ortools both ship a libhighs.so.1; outside the ranges of pyproject.toml whichever loads second fails
(google/or-tools#5246). Each order runs in an interpreter of its own, with warnings as errors.
"""

import os
import subprocess
import sys
from itertools import permutations

import pytest

LOAD = {
    "cvxpy": "import cvxpy",
    # Not ortools.linear_solver.pywraplp: its SWIG module warns while it loads, and dies where warnings are errors.
    "ortools": "from ortools.graph.python import linear_sum_assignment, min_cost_flow",
    "highspy": "import highspy",
    "numba": "import numba",
    "sklearn": "import sklearn.utils.validation",
}

SOLVE = """
assignment = linear_sum_assignment.SimpleLinearSumAssignment()
assignment.add_arcs_with_cost([0, 0, 1, 1], [0, 1, 0, 1], [5, 1, 2, 9])
assert assignment.solve() == assignment.OPTIMAL and assignment.optimal_cost() == 3

highs = highspy.Highs()
highs.setOptionValue("output_flag", False)
x = highs.addVariable(lb=2.0, obj=1.0)
assert highs.run() == highspy.HighsStatus.kOk and highs.getObjectiveValue() == 2.0

y = cvxpy.Variable(2)
cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(y)), [y >= 1]).solve(solver="HIGHS")
assert abs(y.value.sum() - 2.0) < 1e-6
print("solved")
"""

THREE = list(permutations(("cvxpy", "ortools", "highspy")))
BEFORE = (("numba", "sklearn"), ("sklearn", "numba"))
ORDERS = THREE + [(*BEFORE[i % 2], *order) for i, order in enumerate(THREE)]
FEW = [("ortools", "highspy", "cvxpy"), ("sklearn", "numba", "cvxpy", "highspy", "ortools")]
"""Each of the three comes before each other in one of these; the rest are a study."""
assert set(FEW) < set(ORDERS)


def run(order):
    """Load in this order and solve with all three, in a fresh interpreter."""
    script = "\n".join([*(LOAD[package] for package in order), SOLVE])
    command = [sys.executable, "-W", "error", "-X", "faulthandler", "-c", script]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.study
@pytest.mark.parametrize(
    "order", [order if order in FEW else pytest.param(order, marks=pytest.mark.study) for order in ORDERS], ids="-".join
)
def test_all_three_load_and_solve(order):
    done = run(order)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["solved"]
