"""A linear program with one large cost (a penalty, "big M") is answered far from its optimum, although HiGHS alone solves it.

Like: Netlib's dfl001 and etamacro (11,266,401.58 instead of 11,266,396.05; HiGHS on the same file is exact), ERGO-Code/HiGHS#442. Costs are
divided by their largest power of two before HiGHS sees them, so that its dual tolerance of 1e-7 stands for 1e-7 M. Right: 1, at
x = (0, 0, 1, 0). Seen: "highs" 5 (M = 1e7) and 50 (1e8 and more), "auto" 1.0014 to 14.5; without upper limits both 2, FEASIBLE.
"""
import highspy
import numpy as np
from scipy.sparse import csr_array

from formulations import LinearProgram, solve

matrix = np.array([[1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.0]])
wrong = []
for large in (1e3, 1e6, 1e7, 1e9, 1e12):
    cost = np.array([large, 2.0, 1.0, 3.0])
    for most in (10.0, np.inf):
        alone = highspy.Highs()
        alone.setOptionValue("output_flag", False)
        for c in cost:
            alone.addVariable(lb=0.0, ub=most, obj=c)
        for row, low, high in zip(matrix, (1.0, -np.inf), (np.inf, 5.0)):
            held = np.flatnonzero(row)
            alone.addRow(low, high, len(held), held, row[held])
        alone.run()
        assert abs(alone.getInfo().objective_function_value - 1.0) < 1e-9
        program = LinearProgram(
            cost, csr_array(matrix), [1.0, -np.inf], [np.inf, 5.0], np.zeros(4), np.full(4, most), is_maximization=False
        )
        for solver in ("highs", "auto"):
            found = solve(program, solver)
            if not abs(found.value - 1.0) < 1e-6:
                wrong.append((large, most, solver, found.value, found.bound, found.status.name))
print(*wrong, sep="\n")
assert not wrong, len(wrong)
