"""Bound of a plain linear program: min c x, A x = b, x >= 0 without upper limits.

Like: Netlib LPs (coin-or-tools/Data-Netlib; ERGO-Code/HiGHS check instances), 27 of 90 of which end with bound -inf under
HiGHS, 67 of 69 under CLARABEL. Right: the optimum is finite and unique in value (SciPy's linprog), so a bound within 1e-6 of it is
expected of an answer that the solver calls optimal. Own data.
"""
import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from formulations import LinearProgram, solve

lost = {}
for seed in range(10):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(30, 80)).round(3)
    right = matrix @ np.where(rng.random(80) < 0.5, rng.random(80), 0.0).round(3)
    cost = matrix.T @ rng.normal(size=30).round(3) + rng.random(80).round(3)
    true = linprog(cost, A_eq=matrix, b_eq=right, bounds=(0, None), method="highs-ds").fun
    program = LinearProgram(cost, csr_array(matrix), right, right, np.zeros(80), np.full(80, np.inf), is_maximization=False)
    for solver in ("highs", "auto", "cvxpy:CLARABEL", "cvxpy:GLOP"):
        found = solve(program, solver)
        assert abs(found.value - true) <= 1e-5 * (1 + abs(true)), (solver, found.value, true)
        if not abs(found.bound - true) <= 1e-6 * (1 + abs(true)):
            lost[solver] = lost.get(solver, 0) + 1
print("of 10 programs, without a bound near the optimum:", lost)
assert not lost, lost
