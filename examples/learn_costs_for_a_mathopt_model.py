"""Learn the costs of a model of your own, an OR-Tools MathOpt model, from features of its variables.

minimize     minutes of the tours            predicted from features of each driver on each tour, one weight vector
subject to   each tour has one driver, each driver one tour at most; at most two of the three new drivers drive

These limits are nested, so that the linear program has an integral solution.

python examples/learn_costs_for_a_mathopt_model.py
"""

import numpy as np
from ortools.math_opt.python import mathopt

from rankopt.decisions import DecisionRegressor

DRIVERS, TOURS, NEW = range(6), range(4), range(3)

model = mathopt.Model(name="tours")
drives = [[model.add_variable(lb=0, ub=1, name=f"{driver} drives {tour}") for tour in TOURS] for driver in DRIVERS]
for tour in TOURS:
    model.add_linear_constraint(sum(drives[driver][tour] for driver in DRIVERS) == 1)
for driver in DRIVERS:
    model.add_linear_constraint(sum(drives[driver]) <= 1)
model.add_linear_constraint(sum(drives[driver][tour] for driver in NEW for tour in TOURS) <= 2)

rng = np.random.default_rng(0)
features = rng.normal(size=(240, 24, 5))  # days, variables in the order of the model, features
minutes = np.exp(0.7 * features @ rng.normal(size=5) + 0.3 * rng.normal(size=(240, 24)))  # not linear in the features
train, test = slice(40), slice(40, None)

for loss in ("squared", "spo+"):
    learned = DecisionRegressor(model, loss=loss).fit(features[train], minutes[train])
    late = -learned.score(features[test], minutes[test])
    print(f"{loss:<8} takes {late:.0%} longer than the best plan; {learned.certificate_}")

today = learned.decide(features[-1:])
names = [variable.name for variable in model.variables()]
print("; ".join(name for name, chosen in zip(names, today.decision[0], strict=True) if chosen > 0.5))
