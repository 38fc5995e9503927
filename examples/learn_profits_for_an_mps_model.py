"""Learn the profits of a model of your own, a production plan in an MPS file, from features of each day.

maximize     profit · plan                   the profits of the file do not count: they are predicted
subject to   hours of two machines, and a market for the first product

python examples/learn_profits_for_an_mps_model.py
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from formulations import as_problem
from rankopt.decisions import DecisionRegressor

MODEL = """NAME PLAN
OBJSENSE MAX
ROWS
 N PROFIT
 L PRESS
 L OVEN
COLUMNS
 CUPS   PROFIT 1 PRESS 2
 CUPS   OVEN 1
 PLATES PROFIT 1 PRESS 1
 PLATES OVEN 3
 BOWLS  PROFIT 1 PRESS 3
 BOWLS  OVEN 2
RHS
 LIMIT  PRESS 60 OVEN 60
BOUNDS
 UP MARKET CUPS 20
ENDATA
"""

with TemporaryDirectory() as folder:
    path = Path(folder) / "plan.mps"
    path.write_text(MODEL)
    plan = as_problem(path)  # or as_problem("plan.mps"), or the path itself as `problem`

rng = np.random.default_rng(0)
days = rng.normal(size=(600, 4))
profits = np.exp(days @ rng.normal(size=(4, 3)))  # not linear in the features
train, test = slice(100), slice(100, None)

for loss in ("squared", "spo+"):
    model = DecisionRegressor(plan, loss=loss).fit(days[train], profits[train])
    print(f"{loss:<8} loses {-model.score(days[test], profits[test]):.1%} of the best profit; {model.certificate_}")
