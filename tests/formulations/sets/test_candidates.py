"""Few candidates: documents that a set tells apart nowhere, and the k best-paid of each kind that suffice."""

import numpy as np
import pytest

from formulations import RankingSet, certify, constrained_ranking, named, solve, verify_integrality
from formulations.bridges.narrowing import relaxed
from formulations.constraints.structure import candidates, kinds

N, K = 40, 4
GROUP = np.arange(N) % 3 == 0

SETS = {
    "floor and ceiling": RankingSet(N, K).at_least(1, documents=GROUP).at_most(2, documents=GROUP),
    "a quota on a prefix": RankingSet(N, K).at_least(1, documents=GROUP, positions=range(2)),
    "two prefixes": RankingSet(N, K).at_least(1, documents=GROUP, positions=[0]).at_most(2, documents=~GROUP),
    "overlapping caps": RankingSet(N, K).at_most(1, documents=GROUP).at_most(2, documents=np.arange(N) < 25),
    "bans": RankingSet(N, K).forbid(GROUP, range(2)).at_most(1, documents=np.arange(N) < 20),
    "weights": RankingSet(N, K).add_rows(np.tile(1.0 + GROUP, K)[None, :], upper=6),
    "precedence": RankingSet(N, K).precedes(3, 4).at_most(2, documents=GROUP),
}


def profits():
    rng = np.random.default_rng(5)
    yield rng.normal(size=(K, N))
    yield np.outer(1.0 / np.arange(1, K + 1), rng.normal(size=N)) - np.outer(np.ones(K), rng.integers(0, 2, N))
    yield rng.integers(0, 2, (K, N)).astype(float)


@pytest.mark.parametrize("name", SETS)
def test_the_best_ranking_is_among_the_candidates(name):
    admissible = SETS[name]
    for profit in profits():
        problem = constrained_ranking(profit, admissible)
        needed = candidates(admissible.compiled, profit)
        assert needed is not None
        assert needed.sum() < needed.size
        whole = solve(problem.linear_program(integer=True), "highs")  # all cells
        solution = solve(problem)
        assert solution.value == pytest.approx(whole.value, abs=1e-9)
        assert certify(problem, solution).gap <= 1e-9  # the prices of the candidates prove all cells


def test_prices_of_the_candidates_prove_all_cells():
    rng = np.random.default_rng(6)
    for trial in range(120):
        k = 1 + trial % 4
        admissible = RankingSet(N, k).at_most(1, documents=range(5)).at_most(2, documents=range(4, 9))
        problem = constrained_ranking(rng.integers(0, 4, (k, N)).astype(float), admissible)
        program, back = relaxed(problem)
        answer = named("highs").solve(program)
        order, prices = back(answer.x, answer.y)
        assert problem.bound(prices) - problem.value(order) <= 1e-9


def test_a_kind_is_what_the_set_does_not_tell_apart():
    kind = kinds(SETS["floor and ceiling"].compiled)
    assert len(set(kind[GROUP])) == len(set(kind[~GROUP])) == 1
    assert kind[0] != kind[1]
    kind = kinds(SETS["precedence"].compiled)
    assert np.bincount(kind)[kind[[3, 4]]].tolist() == [1, 1]
    assert len(set(kinds(RankingSet(5, 2).compiled))) == 1
    assert len(set(kinds(RankingSet(5, 2).forbid(1, 0).forbid(2, 1).compiled))) == 3


def test_small_kinds_leave_nothing_out():
    assert candidates(RankingSet(9, 3).at_most(1, by=np.arange(9) // 3).compiled, np.zeros((3, 9))) is None


def test_integrality_is_asked_of_all_cells():
    profit = np.random.default_rng(3).normal(size=(K, N))  # of rank one it would be proved whole
    problem = constrained_ranking(profit, SETS["a quota on a prefix"])
    assert problem.linear_program().matrix.shape[1] == K * N
    names = verify_integrality(problem).column_names
    assert names == verify_integrality(SETS["a quota on a prefix"]).column_names
