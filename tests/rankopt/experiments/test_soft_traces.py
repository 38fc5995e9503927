"""Problems with soft constraints on traces: stored and read, the same; ties count what is paid."""

import numpy as np

from formulations import RankingSet, constrained_ranking, solve
from rankopt.experiments import ProblemTrace
from rankopt.experiments.replay import tied_pairs


def test_a_soft_problem_is_stored_and_read(tmp_path):
    stated = RankingSet(5, 3).at_most(1, documents=[0, 1, 2], name="few").forbid(4, 0, name="late")
    problem = constrained_ranking(
        np.outer([3.0, 2.0, 1.0], [5.0, 4.0, 3.0, 2.0, 1.0]), stated.penalized("few", penalty=0.5)
    )
    ProblemTrace.from_problems([problem]).save(tmp_path / "soft.npz")
    again = ProblemTrace.load(tmp_path / "soft.npz").problems[0].form
    first, second = solve(problem), solve(again)
    assert (first.value, first.broken) == (second.value, second.broken)
    assert first.order.tolist() == second.order.tolist()


def test_an_exchange_that_pays_another_sum_is_no_tie():
    free = RankingSet(3, 2).at_most(0, documents=[0], name="none").penalized("none", penalty=0.0)
    problem = constrained_ranking(np.ones((2, 3)), free)
    assert tied_pairs(problem, np.array([1, 2])) == 3
    dear = constrained_ranking(np.ones((2, 3)), free.penalized("none", penalty=1.0))
    assert tied_pairs(dear, np.array([1, 2])) == 1
