"""Compare solvers on your own MPS file: value, bound, claim and seconds, each solver in a process of its own.

    python examples/swap_solvers.py [FILE.mps ...]

Without a file, the example writes a knapsack. On the command line, with an HTML report:

    rankopt swap knapsack.mps --argmax-solvers "highs,highs(presolve='off'),cp_sat" --report swap.html
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from formulations import read_program
from rankopt.experiments import Limits, SolverSwap

SOLVERS = "highs", "highs(presolve='off')", "cp_sat", "cvxpy:SCIPY"
COLUMNS = "solver", "value", "bound", "reported_status", "reported_bound", "seconds"


def write_knapsack(path, items=40, seed=0):
    """Choose items of large value under two budgets."""
    rng = np.random.default_rng(seed)
    lines = ["NAME knapsack", "OBJSENSE", "    MAX", "ROWS", " N value", " L budget1", " L budget2", "COLUMNS"]
    for j in range(items):
        value, *costs = rng.integers(10, 100, 3)
        lines.append(f"    x{j} value {value}")
        lines += [f"    x{j} budget{i} {cost}" for i, cost in enumerate(costs, 1)]
    lines += ["RHS", *(f"    RHS budget{i} {items * 20}" for i in (1, 2))]
    lines += ["BOUNDS", *(f" BV BND x{j}" for j in range(items)), "ENDATA"]
    Path(path).write_text("\n".join(lines) + "\n", encoding="ascii")
    return path


def main():
    for path in sys.argv[1:] or [write_knapsack("knapsack.mps")]:
        swap = SolverSwap(problems=[read_program(path)], argmax_solvers=SOLVERS, repeats=3, limits=Limits(problem=10.0))
        rows = swap.run()
        table = pd.DataFrame([{column: getattr(row, column) for column in COLUMNS} for row in rows])
        print(f"{path}\n{table.to_string(index=False)}")
    print("\nvalue, bound: recomputed from the file. The bound is that of the linear relaxation, with proven duals.")
    print("reported_status, reported_bound: what the solver claims. Branch and bound can prove more than duals can.")


if __name__ == "__main__":
    main()
