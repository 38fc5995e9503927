"""One problem, many solvers: the same value, each proved by prices that we compute ourselves.

python examples/swap_solvers.py
"""

import numpy as np

from formulations import accepting, certify, ranking, solve

rng = np.random.default_rng(0)
documents = 12
problem = ranking(
    scores=rng.normal(size=documents),
    gain=rng.integers(0, 3, documents),
    discount=1 / np.log2(np.arange(2, 7)),
    decay=np.arange(1, 6) ** -0.5,
)
print(problem, "\n")

for solver in accepting(problem):
    solution = solve(problem, solver)
    certificate = certify(problem, solution)
    print(f"{solution.value:.9f}  gap {certificate.gap:.0e}  {1e3 * solution.seconds:8.2f} ms  {solution.solver}")
