"""What a solution of a constrained ranking claims: prices, bounds, and answers of foreign solvers, none believed."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from problems.constrained_rankings import EVERY, PROFIT, SIX, brute_force, stated

from formulations import (
    RankingSet,
    Refuted,
    SolverFailed,
    Status,
    Unsupported,
    certify,
    constrained_ranking,
    matching,
    solve,
)
from formulations.constraints.constrained_ranking import ConstrainedRanking
from formulations.problems.assignment import Assignment
from formulations.problems.linear_program import LinearProgram
from formulations.problems.min_cost_flow import MinCostFlow
from formulations.solvers.solver import Answer


@pytest.mark.every(7)
@pytest.mark.parametrize(("kind", "seed"), SIX)
def test_one_more_unit_of_a_limit_raises_the_bound_by_no_more_than_its_price(kind, seed):
    problem = stated(kind, seed)
    if not any(c.name == "quota" and c.rows for c in problem.admissible.constraints):
        return
    solution = solve(problem)
    prices = np.atleast_1d(solution.dual["quota"])
    at = next(i for i, c in enumerate(problem.admissible.constraints) if c.name == "quota")
    constraints = problem.admissible.constraints
    for row, price in enumerate(prices):
        unit = np.eye(prices.size)[row]
        quota = constraints[at]
        more = replace(quota, lower=np.where(unit > 0, quota.lower - 1, quota.lower), upper=quota.upper + unit)
        looser = replace(problem.admissible, constraints=(*constraints[:at], more, *constraints[at + 1 :]))
        # Of a two-sided row only one limit presses; the relaxation's gap is added where there is one.
        reached = brute_force(constrained_ranking(problem.profit, looser))
        relaxed = max(solution.bound, problem.bound(np.concatenate([y.ravel() for y in dual_rows(problem, solution)])))
        assert reached <= relaxed + abs(price) + 1e-9 * (1 + problem.scale)


def dual_rows(problem, solution):
    """The prices of the rows beside the positions, in the order of the rows."""
    named = solution.dual
    blocks_ = problem.admissible.compiled.blocks[1:]
    kept = problem.admissible.compiled.own_row
    return [named[b.label][kept] if b.label == "document" else np.asarray(named[b.label]) for b in blocks_]


def test_a_price_is_what_the_quota_costs():
    """One more or one less of documents worth 2 stands instead of, or gives way to, one worth 0.5."""
    cap = RankingSet(5, 3).at_most(2, documents=[0, 1, 2], name="q")
    assert solve(constrained_ranking(np.ones((3, 1)) * [4.0, 2.0, 2.0, 0.5, 0.5], cap)).dual["q"] == pytest.approx(1.5)
    floor = RankingSet(4, 2).at_least(1, documents=[2, 3], name="q")
    assert solve(constrained_ranking(np.ones((2, 1)) * [4.0, 4.0, 1.0, 1.0], floor)).dual["q"] == pytest.approx(-3.0)


@pytest.mark.every(7)
@pytest.mark.parametrize(("kind", "seed"), SIX)
def test_any_prices_bound_the_optimum(kind, seed):
    problem = stated(kind, seed)
    best = brute_force(problem)
    rows = problem.admissible.compiled.lower.size - problem.positions
    random = np.random.default_rng(seed)
    for scale in (0.0, 0.1, 1.0, 100.0):
        for _ in range(10):
            assert problem.bound(scale * random.normal(size=rows)) >= best - problem.rounding * (1 + rows * scale)


def test_rows_of_small_coefficients_are_proved_by_cases_too():
    """A tenth of a unit is all that a better ranking breaks: to break a row must cost more than any profit."""
    admissible = RankingSet(3, 1).add_rows([[0.1, 0.2, 0.3]], upper=0.25).add_rows([[1e-5, 0.0, 0.0]], upper=5e-6)
    solution = solve(constrained_ranking([[9.0, 1.0, 5.0]], admissible))
    assert (solution.value, solution.bound, solution.status) == (1.0, pytest.approx(1.0), Status.OPTIMAL)


LIES = {
    "a higher value": lambda s: replace(s, value=s.value + 1e-6, bound=s.bound + 1e-6),
    "a tighter bound": lambda s: replace(s, bound=s.bound - 1e-6),
    "a ranking that is not in the set": lambda s: replace(s, x=np.array([0, 1, 2])),
    "no ranking": lambda s: replace(s, x=np.array([0, 0, 2])),
    "a worse ranking called optimal": lambda s: replace(s, x=s.x[::-1].copy(), value=s.problem.value(s.x[::-1])),
    "optimal with a gap": lambda s: replace(s, bound=s.bound + 1.0),
}


@pytest.mark.every(5)
@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("exact", [False, True])
def test_planted_lies_are_refuted(lie, exact):
    for admissible in (EVERY.at_most(1, by=[*"aabbcc"]), EVERY.at_most(2, documents=range(4)), EVERY.precedes(5, 0)):
        problem = constrained_ranking(PROFIT, admissible)
        solution = solve(problem)
        assert solution.status is Status.OPTIMAL
        certify(problem, solution, exact=exact)
        if lie == "a ranking that is not in the set":
            assert not admissible.is_feasible([0, 1, 2])
        with pytest.raises(Refuted):
            certify(problem, LIES[lie](solution), exact=exact)


@pytest.mark.parametrize(
    "prices", [np.array([1e6]), np.array([]), np.full((2, 9), 3.0), np.array(["a"]), np.full(9, np.nan)]
)
def test_what_is_no_dual_proves_nothing(prices):
    """One price for two documents must not be taken for each of them: the bound would exclude the optimum."""
    for problem in (
        matching([[2.0, 1.9], [2.0, 0.0]]),
        constrained_ranking(PROFIT, EVERY.at_most(2, documents=range(4))),
    ):
        best = solve(problem)
        poor = problem.solution(best.x[::-1].copy(), prices)
        assert poor.bound >= best.value - 1e-12
        with pytest.raises(Refuted):
            certify(problem, replace(poor, bound=poor.value, y=prices, status=Status.OPTIMAL), exact=True)


# Solvers of the user's own


def own(form, answer):
    """A solver that accepts one form and always answers this."""

    @dataclass(frozen=True)
    class Own:
        accepts = (form,)
        package = "numpy"
        spec = "own"

        def declines(self, problem):
            return None

        def solve(self, problem, start=None):
            return answer(problem) if callable(answer) else answer

    return Own()


BLOCKS = constrained_ranking(PROFIT, EVERY.at_most(1, by=[*"aabbcc"]))
LAMINAR = constrained_ranking(PROFIT, EVERY.at_most(2, documents=range(4)))
GARBAGE = [
    [99, 0, 1], [-1, 0, 1], [0, 0, 1], [0.5, 1.7, 2.2], [0, 1], [], [[0, 1, 2]], ["a", "b", "c"], [1j, 0, 1],
    [np.nan] * 18, [np.inf] * 18, [1.0] * 18, [0.5] * 18, [-7.0] * 30, [0.2] * 30,
]  # fmt: skip


@pytest.mark.parametrize("x", GARBAGE, ids=str)
@pytest.mark.parametrize("form", [Assignment, MinCostFlow, LinearProgram, ConstrainedRanking])
def test_garbage_is_refused_whatever_the_way_back(form, x):
    """A foreign index must not reach compiled loops, where it ends the process."""
    for problem in (BLOCKS, LAMINAR):
        with pytest.raises((SolverFailed, Unsupported)) as caught:
            solve(problem, own(form, Answer(np.array(x))))
        assert isinstance(caught.value, SolverFailed) or (form is Assignment and problem is LAMINAR)


def test_a_ranking_outside_the_set_is_refused_with_what_it_breaks():
    named = constrained_ranking(PROFIT, EVERY.at_most(1, by=[*"aabbcc"], name="site"))
    with pytest.raises(SolverFailed, match=r"not in the set: it breaks site\['a'\]"):
        solve(named, own(ConstrainedRanking, Answer(np.array([0, 1, 2]))))
    point = np.zeros(18)
    point[[0, 7, 14]] = 1.0
    with pytest.raises(SolverFailed, match=r"it breaks site\['a'\]"):
        solve(named, own(LinearProgram, Answer(point)))


@pytest.mark.parametrize(
    "answer", [None, 3, [0, 2, 4], lambda problem: 1 / 0, Answer([0, 2, 4])], ids=lambda answer: type(answer).__name__
)
def test_what_is_no_answer_is_refused(answer):
    with pytest.raises(SolverFailed, match="'own'"):
        solve(BLOCKS, own(Assignment, answer))


@pytest.mark.parametrize("y", [np.full(7, 1e9), np.array([1e9]), np.array(["a"]), "prices", [0.0, 0.0, 0.0]], ids=str)
@pytest.mark.parametrize("form", [Assignment, ConstrainedRanking])
def test_prices_that_are_none_are_not_believed(form, y):
    """The ranking is one; its bound is that of prices of our own."""
    order = np.array([0, 2, 4])
    found = solve(BLOCKS, own(form, Answer(order if form is ConstrainedRanking else np.arange(3), y)))
    assert (found.order == order).all()
    assert found.bound >= brute_force(BLOCKS) - 1e-12


def test_auto_passes_over_what_fails(monkeypatch):
    monkeypatch.setattr("formulations.solvers.scipy.Scipy.solve", lambda *given: Answer(np.array([7, 7, 7])))
    assert solve(BLOCKS).solver == "ortools via collapsed assignment"


def test_a_written_file_holds_the_program_in_whole_numbers(tmp_path):
    import highspy

    triangle = RankingSet(6, 3).at_most(1, documents=[0, 1]).at_most(1, documents=[1, 2]).at_most(1, documents=[0, 2])
    constrained_ranking(np.outer([1.0, 0.9, 0.8], [3.0, 3.0, 3.0, 0.0, 0.0, 0.0]), triangle).write(tmp_path / "set.mps")
    reader = highspy.Highs()
    reader.setOptionValue("output_flag", False)
    reader.readModel(str(tmp_path / "set.mps"))
    reader.run()
    assert abs(reader.getObjectiveValue()) == pytest.approx(3.0)  # 4.35 without integers
