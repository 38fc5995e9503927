"""A point that breaks a row by 10 is judged feasible, because the row holds a large coefficient ("big M").

Like: reports of trickle flow through big-M rows (ERGO-Code/HiGHS, cvxpy/cvxpy with SCIPY). max x - 9.9 b, x <= M b, x <= 10, b whole: 0.1 at x = 10,
b = 1; with b = 0 only x = 0 is allowed. Right: x = 10, b = 0 is refused. Seen: taken, by solve and by certify, with the value 10, since a
row counts in the unit of its largest coefficient; `cvxpy:SCIPY` returns that very point for M = 1e7.
"""
import numpy as np
from scipy.sparse import csr_array

from formulations import FormulationError, LinearProgram, certify, function_solver, solve


def trickle(problem):
    return np.array([10.0, 0.0])


taken = []
for large in (1e3, 1e5, 1e6, 1e7):
    program = LinearProgram(
        [1.0, -9.9], csr_array([[1.0, -large]]), [-np.inf], [0.0], [0.0, 0.0], [10.0, 1.0], is_maximization=True, integer=[False, True]
    )
    for solver in (function_solver(trickle, accepts=LinearProgram), "cvxpy:SCIPY"):
        try:
            found = solve(program, solver)
            certify(program, found)
        except FormulationError:
            continue
        x, b = np.asarray(found.x)
        if x > large * b + 1e-5:
            exact = "-"
            try:
                exact = float(certify(program, found, exact=True).violation)
            except FormulationError as error:
                exact = type(error).__name__
            taken.append((large, found.solver, found.value, found.status.name, "exact:", exact))
print(*taken, sep="\n")
assert not taken, len(taken)
