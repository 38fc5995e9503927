"""Limits on prefixes over disjoint groups: the flow of positions through groups is the best ranking, the linear program
is whole for these profits, and what lies next to the theorem is never claimed."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from problems.few import few

from formulations import (
    CertificateError,
    InfeasibleError,
    RankingSet,
    Status,
    Witness,
    certify,
    check_evidence,
    constrained_ranking,
    integrality_gap,
    ranking,
    solve,
    verify_integrality,
)
from formulations.bridges.narrowing import by_groups
from formulations.integrality.evidence import PrefixGroups
from formulations.integrality.prefix_limits import prefix_proof
from formulations.integrality.statement import stated
from formulations.problems.problem import proven
from formulations.problems.ranking import RankTwoAssignment
from formulations.solving.constrained_batch import SetBatch, solve_sets
from formulations.testing.instances import EXTENSIONS, drawn, failing

WAY = "exact via prefix groups"


def problems(seeds):
    """Those of the drawn problems that have a ranking and limits on proper prefixes."""
    for seed in seeds:
        kind, profit, admissible = drawn(seed, most=6)
        try:
            yield seed, kind, constrained_ranking(profit, admissible)
        except InfeasibleError:
            continue


def best_of(problem):
    orders = map(np.array, permutations(range(problem.documents), problem.positions))
    return max(problem.value(order) for order in orders if problem.admissible.is_feasible(order))


@few(range(220), every=4, first=2)
def test_no_ranking_and_no_point_of_the_relaxation_beats_the_flow(seeds):
    seen, proved = dict.fromkeys(EXTENSIONS, 0), 0
    for seed, kind, problem in problems(seeds):
        solution = solve(problem)
        if solution.solver != WAY:  # limits on all positions only
            continue
        seen[kind] += 1
        best = best_of(problem)
        assert solution.value == pytest.approx(best, abs=problem.rounding), seed
        assert solution.status is Status.OPTIMAL, seed
        assert solution.bound >= best - problem.rounding, seed
        certify(problem, solution)
        exact = certify(problem, solution, exact=True)
        assert exact.value <= exact.bound
        relaxed = solve(problem.linear_program(), "highs")
        assert relaxed.value == pytest.approx(best, abs=1e-7), seed
        proof = prefix_proof(stated(problem))
        if proof is not None:  # of the very numbers: rounded products may miss rank one by a digit
            proved += 1
            assert exact.gap == 0, seed
            assert check_evidence(problem, proof) == "prefix groups"
    assert min(seen.values()) >= len(seeds) / 55
    assert proved > 0.7 * sum(seen.values())


@few(range(1000, 1030), every=4)
@pytest.mark.parametrize("solver", ["ortools", "networkx", "highs", "cp_sat"])
def test_any_solver_of_flows_finds_it(solver, seeds):
    for seed, _, problem in problems(seeds):
        assert solve(problem, solver).value == pytest.approx(solve(problem).value, abs=1e-7), seed
        if solver == "networkx" and solve(problem).solver == WAY:
            assert solve(problem, solver).solver.startswith("networkx via")


def test_prices_prove_the_answer_of_whoever_found_it():
    for seed, _, problem in problems(range(2000, 2040)):
        order = solve(problem, "cp_sat").order
        assert problem.solution(order).status is Status.OPTIMAL, seed


def test_a_dual_is_taken_where_it_proves_something():
    problem = next(one for _, _, one in problems(range(2000, 2040)) if solve(one).solver == WAY)
    sequences, _ = by_groups(problem)
    y = np.zeros(sequences.groups * sequences.positions)
    hole = np.where(np.arange(y.size) == 1, np.nan, y)
    for dual in (y, y[:-1], y[None], hole, y.tolist(), None, y.astype(str), y.astype(np.int64)):
        assert sequences.is_valid_dual(dual) is (proven(sequences, dual, outward=False) is not None), dual
    assert sequences.is_valid_dual(y)


FAILING = list(failing())


@pytest.mark.parametrize(("name", "problem", "relaxed", "best"), FAILING, ids=[name for name, *_ in FAILING])
def test_what_fails_is_not_claimed(name, problem, relaxed, best):
    gap = integrality_gap(problem)
    assert (gap.relaxed.value, gap.integer.value) == (pytest.approx(relaxed), pytest.approx(best))
    answer = verify_integrality(problem)
    assert isinstance(answer, Witness)
    solution = solve(problem)
    assert "prefix groups" not in solution.solver
    assert solution.value == pytest.approx(best)
    claim = PrefixGroups(problem.positions, np.zeros(problem.documents, np.int64), np.arange(problem.documents))
    rows, columns = stated(problem).matrix.shape
    whole = verify_integrality(quota(np.outer([2.0, 1.0, 0.5], [3.0, 2.0, 1.0, 0.0])))
    with pytest.raises(CertificateError):
        check_evidence(problem, replace(whole, shape=(rows, columns), evidence=claim))


def quota(profit):
    return constrained_ranking(profit, RankingSet(4, 3).at_most(1, documents=[0, 1], positions=range(2), name="top"))


def test_fractional_limits_and_forbidden_cells_are_not_claimed():
    profit = np.outer([2.0, 1.0, 0.5], [3.0, 2.0, 1.0, 0.0])
    row = np.zeros((3, 4))
    row[:2, :2] = 1.0
    half = RankingSet(4, 3).add_rows(row.reshape(1, -1), upper=1.5)
    for admissible in (half, RankingSet(4, 3).at_most(1, documents=[0, 1], positions=range(2)).forbid(3, 0)):
        assert "prefix groups" not in solve(constrained_ranking(profit, admissible)).solver
        assert prefix_proof(stated(constrained_ranking(profit, admissible))) is None


def test_the_proof_is_of_set_and_objective_together():
    problem = quota(np.outer([2.0, 1.0, 0.5], [3.0, 2.0, 1.0, 0.0]))
    proof = verify_integrality(problem)
    assert proof.kind == check_evidence(problem, proof) == "prefix groups"
    assert "has an integral optimum (prefix groups)" in str(proof)
    assert isinstance(verify_integrality(problem.admissible), Witness)
    other = constrained_ranking(np.random.default_rng(0).normal(size=(3, 4)), problem.admissible)
    for wrong in (other, problem.admissible, problem.admissible.program.matrix):
        with pytest.raises(CertificateError):
            check_evidence(wrong, proof)


def test_forged_proofs_are_refuted():
    problem = quota(np.outer([2.0, 1.0, 0.5], [3.0, 2.0, 1.0, 0.0]))
    proof = verify_integrality(problem)
    told = proof.evidence
    group, order = told.group.copy(), told.order.copy()
    for change in (
        {"positions": 2}, {"positions": 0}, {"positions": 3.0}, {"group": group[:3]}, {"group": group * 0},
        {"group": np.arange(4)}, {"order": order[::-1].copy()}, {"order": order * 0}, {"order": order * 1j},
        {"group": group - 7}, {"group": None}, {"order": order[[0, 2, 1, 3]]},
    ):  # fmt: skip
        with pytest.raises(CertificateError):
            check_evidence(problem, replace(proof, evidence=replace(told, **change)))
    for change in ({"kind": "laminar"}, {"transposed": True}, {"shape": (1, 1)}):
        with pytest.raises(CertificateError):
            check_evidence(problem, replace(proof, **change))


def test_a_near_miss_of_rank_one_is_seen():
    """One profit moved by its last digits: still solved exactly, and no longer proved of the numbers."""
    profit = np.outer([3.0, 2.0, 1.0], [1.0, 1.0, 0.5, 0.0])
    profit[0, 1] = np.nextafter(3.0, 4.0)  # document 1 falls faster: of the kind, though not of rank one
    problem = quota(profit)
    assert solve(problem).solver == WAY
    assert prefix_proof(stated(problem)) is not None
    profit[0, 1], profit[2, 1] = 3.0, np.nextafter(1.0, 0.0)  # faster, then slower
    problem = quota(profit)
    assert solve(problem).solver == WAY
    assert solve(problem).value == pytest.approx(best_of(problem))
    assert prefix_proof(stated(problem)) is None


def test_a_solution_says_why_it_is_exact_or_why_it_is_not():
    admissible = RankingSet(6, 4).at_most(1, documents=[0, 1, 2], positions=range(2), name="top")
    scores, gain, decay = [2.0, 1.5, 1.0, 0.5, 0.0, -0.5], [0, 2, 1, 0, 3, 0.0], np.array([1.0, 0.6, 0.5, 0.4])
    whole = solve(constrained_ranking(ranking(scores, gain, discount=decay, position_weights=decay), admissible))
    assert whole.solver == WAY
    assert "profits of rank one within each group: this linear program has an integral optimum" in whole.message
    bound = solve(
        constrained_ranking(ranking(scores, gain, discount=decay, position_weights=[4.0, 3.0, 2.0, 1.0]), admissible)
    )
    assert bound.solver != WAY
    assert "the decay being no multiple of the discount): the linear program is a bound" in bound.message


@pytest.mark.every(5)
@pytest.mark.parametrize("limit", ["none", "beyond the group", "beyond the prefix"])
def test_limits_that_say_nothing_leave_the_best_to_the_last_digit(limit):
    """Scores apart by parts of 1e-6 of the largest: a linear program with tolerances stops beside the best."""
    random = np.random.default_rng(20)
    decay = 1 / np.log2(np.arange(4) + 2)
    for _ in range(20):
        scores = 1e-6 * random.normal(size=5)
        scores[random.integers(5)] = 5.0
        documents = random.choice(5, size=2, replace=False)
        where = {"documents": documents, "positions": range(2)}
        anything = {
            "none": lambda where=where: RankingSet(5, 4).at_least(0, **where),
            "beyond the group": lambda where=where: RankingSet(5, 4).at_most(3, **where),
            "beyond the prefix": lambda where=where: RankingSet(5, 4).at_most(2, **where),
        }[limit]()
        problem = constrained_ranking(np.outer(decay, scores), anything)
        solution = solve(problem)
        assert solution.value == pytest.approx(best_of(problem), abs=problem.rounding)
        assert solution.status is Status.OPTIMAL
        assert integrality_gap(problem).integral
        queries = SetBatch([anything], scores, np.zeros(5), decay, decay, np.array([0, 5]), np.array([0, 4]))
        assert solve_sets(queries).value == pytest.approx([best_of(problem)], abs=problem.rounding)


def batch(seed, decay_of, size=12):
    """Loss-augmented queries under a floor and a ceiling on prefixes."""
    random = np.random.default_rng(seed)
    sets, scores, gain, discount, decay = [], [], [], [], []
    for _ in range(size):
        n = int(random.integers(6, 30))
        k = n if n < 9 else 8
        group = np.arange(n) % 3
        one = RankingSet(n, k).at_most(2, documents=group == 0, positions=range(4), name="ceiling")
        sets.append(one.at_least(1, documents=group == 2, positions=range(2), name="floor"))
        scores.append(random.normal(size=n))
        gain.append(random.integers(0, 3, n).astype(float))
        discount.append(1 / np.log2(np.arange(k) + 2))
        decay.append(decay_of(discount[-1]))
    ends = [np.cumsum([0, *map(len, parts)]) for parts in (scores, decay)]
    return SetBatch(sets, *map(np.concatenate, (scores, gain, discount, decay)), *ends)


@pytest.mark.parametrize("factor", [1.0, 0.3])
def test_queries_of_rank_one_are_solved_without_writing_their_profits_out(factor):
    queries = batch(3, lambda a: factor * a)
    ours, theirs = solve_sets(queries), solve_sets(queries, "highs")
    assert set(ours.algorithm) == {"prefix groups"}
    assert ours.value == pytest.approx(theirs.value, abs=1e-9)
    assert (ours.bound >= theirs.value - 1e-12).all()
    assert ours.bound == pytest.approx(ours.value, abs=1e-9)
    for query, admissible in enumerate(queries.sets):
        assert admissible.is_feasible(ours.order[queries.position_offsets[query] : queries.position_offsets[query + 1]])


@pytest.mark.parametrize("size", [5, pytest.param(12, marks=pytest.mark.study)])
def test_queries_of_rank_two_take_tolls(size):
    queries = batch(4, lambda a: a**3, size)
    ours, theirs = solve_sets(queries), solve_sets(queries, "cp_sat")
    assert set(ours.algorithm) <= {"groups", "groups, by cases"}
    assert ours.value == pytest.approx(theirs.value, abs=1e-9)
    assert (ours.bound >= theirs.value - 1e-12).all()
    assert ours.bound == pytest.approx(ours.value, abs=1e-8)


def test_the_order_of_documents_does_not_matter():
    for seed, _, problem in problems(range(3000, 3030)):
        new = np.random.default_rng(seed).permutation(problem.documents)
        cells = (np.arange(problem.positions)[:, None] * problem.documents + new).ravel()
        moved = tuple(replace(c, matrix=c.matrix[:, cells]) for c in problem.admissible.constraints)
        other = constrained_ranking(problem.profit[:, new], replace(problem.admissible, constraints=moved))
        assert solve(other).value == pytest.approx(solve(problem).value, abs=problem.rounding), seed


def test_a_ranking_without_a_set_is_of_rank_two_as_before():
    problem = ranking([3.0, 2.0, 1.0], [0, 1, 0], discount=[1.0, 0.5], position_weights=[1.0, 0.5])
    assert isinstance(problem, RankTwoAssignment)
    assert solve(constrained_ranking(problem, RankingSet(3, 2))).solver == "exact via no constraints"
