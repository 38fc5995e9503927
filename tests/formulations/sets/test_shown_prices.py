"""The prices that a solution shows are those that prove its bound: they press on limits which are there, and add up."""

import numpy as np
import pytest

from formulations import RankingSet, constrained_ranking, matching, ranking, solve
from formulations.bridges import restated
from formulations.problems.assignment import Assignment
from formulations.problems.linear_program import LinearProgram


def nested(random):
    """Quotas in two families, of which some have only an upper limit: solved as a flow."""
    n, k = int(random.integers(5, 11)), int(random.integers(2, 5))
    site = random.integers(0, 4, n)
    one = RankingSet(n, k).at_most(2, by=site // 2, name="domain").at_most(2, by=site, name="site")
    if random.random() < 0.5:
        one = one.at_most(k, documents=range(n // 2), name="loose")
    if random.random() < 0.5:
        one = one.at_least(1, documents=range(n // 2, n), name="floor")
    return one


def proved_by(solution):
    """Σ price · limit over the named rows."""
    program, total = solution.problem.program, 0.0
    prices = np.concatenate([np.ravel(part) for part in _in_order(solution)])
    for price, low, high in zip(prices, program.row_lower, program.row_upper, strict=True):
        limit = high if price > 0 else low
        assert price == 0.0 or np.isfinite(limit), "a price on a limit that is not there"
        total += price * limit if price else 0.0
    return total


def _in_order(solution):
    stated, named = solution.problem.admissible.compiled, solution.dual
    for block in stated.blocks:
        yield named["document"][stated.own_row] if block.label == "document" else named[block.label]


@pytest.mark.every(3)
@pytest.mark.parametrize("seed", range(4))
def test_prices_of_flows_prove_the_bound(seed):
    random, flows = np.random.default_rng(seed), 0
    for _ in range(50):
        admissible = nested(random)
        if admissible.max_positions < admissible.positions:
            continue
        problem = constrained_ranking(random.normal(size=admissible.shape) - random.random(), admissible)
        solution = solve(problem)
        flows += "flow" in solution.solver
        assert proved_by(solution) == pytest.approx(solution.bound, abs=1e-9)
        assert problem.bound(solution.y) == pytest.approx(solution.bound, abs=1e-12)
    assert flows > 5


@pytest.mark.parametrize("seed", range(10))
def test_prices_of_other_forms_prove_their_bounds(seed):
    random = np.random.default_rng(seed)
    given = random.normal(size=5)
    square, wide = matching(random.normal(size=(5, 5))), matching(random.normal(size=(3, 5)))
    ranked = ranking(random.normal(size=5), random.random(5), discount=[1.0, 0.5], decay=[2.0, 1.0])
    for problem in (square, wide, ranked):
        for solution in (solve(problem, "scipy"), problem.solution(np.arange(problem.positions), given)):
            dual = solution.dual
            if problem is not square:
                assert dual["document"].min() >= 0.0
            assert dual["position"].sum() + dual["document"].sum() == pytest.approx(solution.bound)
    program = restated(restated(wide, Assignment), LinearProgram)
    solution = program.solution(np.zeros(15), random.normal(size=8))
    prices = np.concatenate([solution.dual["position"], solution.dual["document"]])
    assert (prices == solution.y).all()
    assert (np.isfinite(program.row_lower) | (prices <= 0.0)).all()
