"""Attack: random small integer programs, half of them with real variables too, through every way to a search.

    python benchmarks/faults/mixed_integers.py --tries 500 --seed 0

Each is solved by "highs", "cvxpy", "cvxpy:HIGHS", "cvxpy:SCIPY" and, where all is whole, "cp_sat", and compared with
the best over all choices of the whole variables (a linear program in the real ones for each). A try survives if every
way finds this value, or says infeasible where no choice is feasible. HiGHS 1.14.0 left to presolve loses 2 in a hundred
of the mixed ones.
"""

from itertools import product

import click
import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from formulations import InfeasibleError, solve
from formulations.problems.linear_program import LinearProgram
from formulations.solvers import compatible_solvers

WAYS = ("highs", "cvxpy", "cvxpy:HIGHS", "cvxpy:SCIPY", "cp_sat")
NEAR = 1e-5


def drawn(rng: np.random.Generator, mixed: bool) -> LinearProgram:
    n, m = rng.integers(2, 7), rng.integers(1, 6)
    rows = rng.integers(-3, 4, (m, n)) * (rng.random((m, n)) < rng.choice([0.4, 0.7, 1.0]))
    low, high = -rng.integers(0, 3, n) * rng.integers(0, 2), rng.integers(1, 4, n)
    whole = rng.random(n) < 0.5 if mixed else np.ones(n, dtype=bool)
    whole[[0, -1]] = True, not mixed
    middle = rows @ np.where(whole, rng.integers(low, high + 1), low + rng.random(n) * (high - low))
    slack = rng.choice([0.0, 0.5, 1.0], m)
    kind = rng.integers(0, 3, m)
    units = 2.0 if mixed else 1.0
    below = np.where(kind == 1, -np.inf, np.floor(units * (middle - slack)) / units)
    above = np.where(kind == 0, np.inf, np.ceil(units * (middle + slack)) / units)
    costs = rng.integers(-4, 5, n).astype(float)
    sides = (part.astype(float) for part in (below, above, low, high))
    return LinearProgram(
        costs, csr_array(rows.astype(float)), *sides, integer=whole, is_maximization=bool(rng.integers(2))
    )


def enumerated(problem: LinearProgram) -> float:
    """The least objective over all choices of the whole variables, in the sense of a minimum; infinite without any."""
    whole, real = np.flatnonzero(problem.integer), np.flatnonzero(~problem.integer)
    costs = -problem.objective if problem.is_maximization else problem.objective
    matrix, best = problem.matrix.toarray(), np.inf
    for choice in product(*(range(int(problem.lower[i]), int(problem.upper[i]) + 1) for i in whole)):
        used, worth = matrix[:, whole] @ choice, float(costs[whole] @ choice)
        low, high = problem.row_lower - used, problem.row_upper - used
        if real.size == 0:
            best = min(best, worth) if (low <= 1e-9).all() and (high >= -1e-9).all() else best
            continue
        both, sides = np.vstack([matrix[:, real], -matrix[:, real]]), np.concatenate([high, -low])
        kept, limits = np.isfinite(sides), np.column_stack([problem.lower[real], problem.upper[real]])
        found = linprog(costs[real], A_ub=both[kept], b_ub=sides[kept], bounds=limits, method="highs-ds")
        best = min(best, worth + found.fun) if found.status == 0 else best
    return best


@click.command()
@click.option("--tries", default=500, show_default=True)
@click.option("--seed", default=0, show_default=True)
def main(tries: int, seed: int) -> None:
    survived = 0
    for number in range(tries):
        problem = drawn(np.random.default_rng((seed, number)), mixed=number % 2 == 0)
        optimum, said = enumerated(problem), {}
        for way in set(WAYS) & set(compatible_solvers(problem)):
            try:
                value = solve(problem, way).value
                said[way] = -value if problem.is_maximization else value
            except InfeasibleError:
                said[way] = np.inf
        wrong = {way: value for way, value in said.items() if value != optimum and not abs(value - optimum) <= NEAR}
        survived += not wrong
        if wrong:
            click.echo(f"try {number}: the optimum is {optimum}, found {wrong}")
    click.echo(f"tries {tries}, survived {survived}")


if __name__ == "__main__":
    main()
