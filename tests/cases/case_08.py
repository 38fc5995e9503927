"""A false 'unbounded', a false 'infeasible' of a back end, passed on as the verdict on a bounded, feasible flow.

Like: scipy/scipy#15507 (unbounded although every variable has limits), networkx/networkx#7562 (large capacities). Every arc of a
`MinCostFlow` has a capacity, so it cannot be unbounded; the optimum ships all over the cheap path. Right: that value, or
SolverError. Seen: UnboundedError and InfeasibleError.
"""
from formulations import InfeasibleError, MinCostFlow, SolverError, UnboundedError, solve

false = []
for capacity, supply in ((2**40, 10**9), (2**40, 2**39)):
    flow = MinCostFlow([0, 0, 1], [1, 2, 2], [capacity] * 3, [1.0, 3.0, 1.0], [supply, 0, -supply])
    assert solve(flow, "ortools").value == 2.0 * supply
    try:
        value = solve(flow, "cvxpy:CLARABEL").value
        assert abs(value - 2.0 * supply) <= 1e-4 * supply, value
    except SolverError as error:
        print("gave up, which is honest:", error)
    except (InfeasibleError, UnboundedError) as error:
        false.append((capacity, supply, type(error).__name__, str(error)))
assert not false, false
