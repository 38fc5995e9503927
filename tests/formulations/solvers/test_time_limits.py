"""Limits of time: handed to every solver that takes one; and a master that HiGHS never ended, ended."""

import subprocess
import sys
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import ClassVar

import numpy as np
import pytest

from formulations import GroupedSimplexQP, UnknownSolverError, get_solver, margin_dual, solve
from formulations.solvers import list_solvers
from formulations.solvers.active_set import ActiveSet
from rankopt.optimize import objective as objectives
from rankopt.optimize.objective import Objective
from rankopt.optimize.state import PlaneSet

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
        (None, objectives.LONGEST, objectives.LONGEST),
        (now + 1e6, objectives.LONGEST, objectives.LONGEST),
        (now + 60.0, 1.0, 60.0),
        (now - 60.0, objectives.SHORTEST, objectives.SHORTEST),
    ):
        master = Timed()
        Objective(None, 1.0, np.zeros(1), master, ends=ends).solve_master(planes, np.ones(1), np.zeros(1))
        assert least <= master.given[0] <= most
