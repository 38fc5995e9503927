"""LP files as HiGHS 1.14 itself writes them, of a program with whole variables.

Like: ERGO-Code/HiGHS check instances 2122.lp and fixed-binary.lp, ERGO-Code/HiGHS#209 (an empty `semi` section before `end`). Right:
an empty section says nothing; max 3x + 2y, x + y <= 3.5, x <= 2, y whole: 8.5 at (1.5, 2). Seen: refused as semi-continuous.
"""
import pathlib
import tempfile

import highspy
import numpy as np

from formulations import read_program, solve

with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder, "mine.lp")
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.addVariable(lb=0.0, ub=2.0, obj=3.0, name="x")
    model.addVariable(lb=0.0, ub=10.0, obj=2.0, name="y")
    model.changeColIntegrality(1, highspy.HighsVarType.kInteger)
    model.addRow(-highspy.kHighsInf, 3.5, 2, np.array([0, 1]), np.array([1.0, 1.0]))
    model.changeObjectiveSense(highspy.ObjSense.kMaximize)
    model.writeModel(str(file))
    value = solve(read_program(file)).value
assert abs(value - 8.5) < 1e-6, value
