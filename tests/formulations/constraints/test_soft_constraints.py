"""Soft constraints cost what they are broken by: against all rankings, in every language, with the proof."""

from dataclasses import replace
from itertools import permutations

import cvxpy as cp
import numpy as np
import pytest
from problems.few import few
from problems.random_sets import EXTENSIONS, drawn

from formulations import (
    CertificateError,
    InfeasibleError,
    InvalidProblemError,
    PenalizedRanking,
    Proof,
    RankingSet,
    Status,
    Witness,
    certify,
    check_evidence,
    constrained_ranking,
    integrality_gap,
    penalized,
    ranking,
    read_ranking_set,
    solve,
    verify_integrality,
)
from formulations.bridges.narrowing import to_group_sequence
from formulations.constraints.constrained_ranking import ConstrainedRanking
from formulations.integrality.evidence import PrefixGroups
from formulations.integrality.prefix_limits import prefix_proof
from formulations.integrality.statement import stated
from formulations.problems.problem import proven
from formulations.problems.ranking import RankTwoAssignment
from formulations.solving.constrained_batch import SetBatch, solve_sets
from formulations.testing import check_problem
from formulations.testing.instances import failing

N, K = 5, 3
EVERY = [np.array(order) for order in permutations(range(N), K)]
SITE = ["a", "a", "b", None, "b"]
START = RankingSet(N, K)


def held(order, documents, positions=range(K)):
    return sum(order[i] in documents for i in positions)


def beyond(count, low=0, high=K):
    return max(low - count, count - high, 0)


SAID = {
    "at most": (START.at_most(1, documents=[0, 1, 4], name="c"), lambda o: beyond(held(o, {0, 1, 4}), high=1)),
    "at least": (START.at_least(2, documents=[3, 4], name="c"), lambda o: beyond(held(o, {3, 4}), low=2)),
    "exactly, on a prefix": (
        START.exactly(1, documents=[2, 3], positions=range(2), name="c"),
        lambda o: abs(held(o, {2, 3}, range(2)) - 1),
    ),
    "by label": (
        START.at_most(1, by=SITE, name="c"),
        lambda o: beyond(held(o, {0, 1}), high=1) + beyond(held(o, {2, 4}), high=1),
    ),
    "between": (START.between(1, 2, documents=[0, 1, 2], name="c"), lambda o: beyond(held(o, {0, 1, 2}), 1, 2)),
    "forbid": (START.forbid([0, 1], [0, 1], name="c"), lambda o: held(o, {0, 1}, range(2))),
    "pin": (START.fix(4, 0, name="c"), lambda o: (o[0] != 4) + (4 in o[1:])),
    "one of": (START.position_in([3, 4], name="c"), lambda o: int(o[0] not in (3, 4))),
    "before": (
        START.precedes(3, 0, name="c"),
        lambda o: (o[0] == 0) + sum(max(held(o, {0}, range(p + 1)) - held(o, {3}, range(p)), 0) for p in (1, 2)),
    ),
    "if then": (START.implies(0, [3, 4], name="c"), lambda o: max(held(o, {0}) - held(o, {3, 4}), 0)),
    "apart": (
        START.min_distance(2, documents=[0, 1, 2], name="c"),
        lambda o: sum(beyond(held(o, {0, 1, 2}, (i, i + 1)), high=1) for i in range(2)),
    ),
    "a share": (
        START.at_most(share=0.4, documents=[0, 1, 2], name="c"),
        lambda o: beyond(held(o, {0, 1, 2}, range(2)), high=1) + beyond(held(o, {0, 1, 2}), high=2),
    ),
    "rows": (
        START.add_rows([np.arange(15.0), np.ones(15)], lower=[20, -np.inf], upper=[22, 2.5], name="c"),
        lambda o: beyond(sum(N * i + j for i, j in enumerate(o)), 20, 22) + 0.5,
    ),
}


@pytest.mark.every(3)
@pytest.mark.parametrize("price", [0.0, 0.25, 2.0, 1e4])
@pytest.mark.parametrize("name", SAID)
def test_a_soft_constraint_costs_its_price_a_unit(name, price):
    stated, units = SAID[name]
    admissible = stated.penalized("c", penalty=price).at_most(2, documents=[0, 1, 2])
    rng = np.random.default_rng(len(name))
    for profit in (rng.normal(size=(K, N)), rng.integers(0, 2, (K, N)).astype(float)):
        problem = constrained_ranking(profit, admissible)
        best = max(profit[np.arange(K), o].sum() - price * units(o.tolist()) for o in EVERY if held(o, {0, 1, 2}) <= 2)
        solution = solve(problem)
        assert solution.value == pytest.approx(best, abs=1e-9 * max(1.0, price))
        assert solution.gap <= problem.rounding
        assert sum(solution.violations.values()) == pytest.approx(float(units(solution.order.tolist())))
        certify(problem, solution, exact=True)


def test_units_are_those_of_broken_for_every_ranking():
    for rules, units in SAID.values():
        admissible = rules.penalized("c", penalty=1.0)
        assert all(admissible.is_feasible(order) for order in EVERY)
        for order in EVERY:
            assert admissible.charge(order) == pytest.approx(float(units(order.tolist())))
            assert sum(admissible.violations(order).values()) == pytest.approx(float(units(order.tolist())))


def test_every_solver_agrees_on_soft_rows():
    profit = np.random.default_rng(3).normal(size=(K, N))
    whole = START.at_most(1, by=SITE, name="site").penalized("site", penalty=0.5).at_least(1, documents=3)
    found = check_problem(constrained_ranking(profit, whole), solvers=["auto", "highs", "cp_sat", "cvxpy:HIGHS"])
    assert len(found) == 4
    cells = START.forbid([0, 1], 0, name="late").penalized("late", penalty=0.5).at_most(1, by=SITE)
    assert solve(constrained_ranking(profit, cells)).solver == "scipy via penalized cells, collapsed assignment"


def test_a_fractional_widened_program_is_searched_and_proved():
    triangle = RankingSet(6, 3)
    for number, pair in enumerate(([0, 1], [1, 2], [0, 2])):
        triangle = triangle.at_most(1, documents=pair, name=f"pair {number}").penalized(f"pair {number}", penalty=5.0)
    problem = constrained_ranking(np.outer([1.0, 0.9, 0.8], [3.0, 3.0, 3.0, 0.0, 0.0, 0.0]), triangle)
    solution = solve(problem)
    assert (solution.value, solution.y.ndim, solution.solver) == (3.0, 2, "highs via widened integer program")
    certify(problem, solution, exact=True)


def test_prices_of_soft_rows_never_exceed_what_breaking_costs():
    profit = np.outer([1.0, 0.6, 0.5], [5.0, 4.0, 3.0, 2.0, 1.0])
    admissible = START.at_most(1, documents=[0, 1, 2], name="few").penalized("few", penalty=0.75)
    solution = solve(constrained_ranking(profit, admissible))
    assert solution.violations == {"few": 1.0}
    assert solution.dual["few"] == pytest.approx(0.75)
    assert solution.problem.bound(100.0 * solution.y) >= solution.value


def test_integrality_is_asked_of_the_widened_statement():
    whole = START.at_most(1, by=SITE, name="site").penalized("site", penalty=0.5)
    answer = verify_integrality(whole)
    check_evidence(whole, answer)
    assert isinstance(answer, Proof)
    assert answer.shape[1] == N * K + 2  # a column for what each site is over
    nested = verify_integrality(START.at_most(1, documents=[0, 1, 2], positions=range(2), name="top"))
    softly = START.at_most(1, documents=[0, 1, 2], positions=range(2), name="top").penalized("top", penalty=1.0)
    widened = verify_integrality(softly)
    check_evidence(softly, widened)
    assert widened.determinant == nested.determinant
    assert all("over" not in name for name in widened.column_names)


def test_cvxpy_says_what_sets_say():
    π = cp.Variable((K, N))
    stated = RankingSet.from_cvxpy(
        π,
        [
            penalized((cp.sum(π[:, [0, 1, 4]]) <= 1).set_label("few"), penalty=0.5),
            penalized((2 * π[0, 3] == 2).set_label("first"), penalty=0.25),
            penalized((π[:, 2] == 0).set_label("never"), penalty=1.0),
            cp.sum(π[:2, [1, 2]]) >= 1,
        ],
    )
    assert [(one.name, one.penalty) for one in stated.soft_constraints] == [
        ("few", 0.5),
        ("first", 0.25),
        ("never", 1.0),
    ]
    for order in EVERY:
        π.value = np.eye(N)[order]
        few, first, never = held(order, {0, 1, 4}), order[0] != 3, held(order, {2})
        assert stated.charge(order) == pytest.approx(0.5 * beyond(few, high=1) + 0.25 * 2 * first + never)
        assert stated.is_feasible(order) == (held(order, {1, 2}, range(2)) >= 1)
    with pytest.raises(InvalidProblemError, match=r"RankingSet\(...\).penalized"):
        penalized("few", penalty=1.0)


def test_a_statement_file_says_what_python_says(tmp_path):
    file = tmp_path / "soft.toml"
    file.write_text(
        "documents = 5\npositions = 3\nweights = [3, 2, 1]\nscores = [5, 4, 3, 2, 1]\n"
        "[[constraint]]\nat_most = 1\ndocuments = [0, 1]\nname = 'few'\npenalty = 2\n"
        "[[constraint]]\nat_least = 1\ndocuments = [4]\n",
        encoding="utf-8",
    )
    problem = read_ranking_set(file)
    assert isinstance(problem, PenalizedRanking)
    solution = solve(problem)
    best = max(
        (np.outer([3, 2, 1], [5, 4, 3, 2, 1])[np.arange(K), o].sum() - 2 * beyond(held(o, {0, 1}), high=1), o.tolist())
        for o in EVERY
        if 4 in o
    )
    assert (solution.value, solution.order.tolist()) == best
    file.write_text(file.read_text(encoding="utf-8").replace("penalty = 2", "penalty = 'dear'"), encoding="utf-8")
    with pytest.raises(
        InvalidProblemError, match=r"constraint 1: The penalty of .* must be a number from 0.*got 'dear'"
    ):
        read_ranking_set(file)


def test_sets_with_soft_constraints_are_joined_named_and_refused():
    left = START.at_most(1, by=SITE, name="site").penalized("site", penalty=0.5)
    both = left & START.at_least(1, documents=3, name="site").penalized("site", penalty=2.0)
    assert [(one.name, one.penalty) for one in both.soft_constraints] == [("site", 0.5), ("site_2", 2.0)]
    assert "site (soft, penalty 0.5)" in str(left)
    assert left.penalized("site", penalty=3.0).soft_constraints[0].penalty == 3.0
    with pytest.raises(InvalidProblemError, match=r"No constraint is named 'cite'.*'site'"):
        left.penalized("cite", penalty=1.0)
    with pytest.raises(InvalidProblemError, match=r"No constraint is named \['site'\]"):
        left.penalized(["site"], penalty=1.0)
    with pytest.raises(InvalidProblemError, match=r"got \['up'\]"):
        left.at_most(share=0.3, by=SITE, rounding=["up"])
    with pytest.raises(InvalidProblemError, match=r"must be a number from 0.*got -1"):
        left.penalized("site", penalty=-1)
    with pytest.raises(InvalidProblemError, match="constrained_ranking"):
        ConstrainedRanking(np.zeros((K, N)), left)


def test_a_price_beyond_the_numbers_of_an_objective_is_named():
    stated = START.at_least(1, by=SITE, name="site")
    with pytest.raises(
        InvalidProblemError, match=r"The penalty of 'site' must be a number from 0 to 1e.150; got 1e.308"
    ):
        stated.penalized("site", penalty=1e308)
    with pytest.raises(InvalidProblemError, match=r"penalty of 'site' must be a number.*got 1e[+]308"):
        stated.repair({"site": 1e308})
    dear = stated.penalized("site", penalty=1e150)
    assert solve(constrained_ranking(np.zeros((K, N)), dear)).value == 0.0
    with pytest.raises(InvalidProblemError, match=r"'site' costs charge 2 × penalty 1e[+]150"):
        PenalizedRanking(np.zeros((K, N)), dear, charge=2.0)


def test_an_empty_set_is_repaired_by_what_costs_least():
    empty = START.at_least(2, documents=[0, 1], name="old").at_least(2, documents=[2, 3], name="new")
    with pytest.raises(InfeasibleError):
        empty.check_nonempty()
    found = empty.repair(penalties={"old": 3.0, "new": 1.0})
    assert (found.violations, found.cost, found.bound, found.proved) == ({"new": 1.0}, 1.0, 1.0, True)
    assert str(found).endswith("breaks new by 1, at a cost of 1; none costs less")
    assert empty.repair(penalties={"old": 1.0}).violations == {"old": 1.0}
    with pytest.raises(InfeasibleError, match="Conflict: old"):
        empty.at_most(0, documents=[0, 1], name="none").repair(penalties={"new": 1.0})
    with pytest.raises(InvalidProblemError, match="No constraint is named 'odd'"):
        empty.repair(penalties={"odd": 1.0})
    with pytest.raises(InvalidProblemError, match="No constraint is named 'odd'"):
        empty.repair(penalties={1: 1.0, "odd": 1.0})
    with pytest.raises(InvalidProblemError, match="penalties may differ 1e"):
        empty.repair(penalties={"old": 1e12, "new": 1.0})
    assert str(START.repair()).startswith("Nothing has to be broken")


@pytest.mark.every(7)
@pytest.mark.parametrize("seed", range(40))
def test_repairs_against_all_rankings(seed):
    rng = np.random.default_rng(seed)
    stated, prices = START, {}
    for number in range(4):
        documents, positions = np.flatnonzero(rng.random(N) < 0.5), np.flatnonzero(rng.random(K) < 0.7)
        word = ("at_least", "at_most", "exactly")[number % 3]
        stated = stated.add(word, int(rng.integers(0, 3)), documents=documents, positions=positions, name=f"c{number}")
        prices[f"c{number}"] = float(rng.choice([0.5, 1.0, 2.0]))
    stated = stated.forbid(rng.integers(0, N, 1), name="c4")
    prices["c4"] = 0.75
    if seed % 2:
        del prices["c4"]
    must = [
        order
        for order in EVERY
        if seed % 2 == 0 or (not stated.allowed_cells.all() and stated.allowed_cells[0][order].all())
    ]
    least = min(sum(prices[name] * off for name, off in stated.violations(o).items() if name in prices) for o in must)
    found = stated.repair(prices)
    assert found.cost == pytest.approx(least)
    assert found.proved


@pytest.mark.parametrize("dear", [1.0, 1e3, 1e6])
def test_repairs_at_prices_far_apart_cost_the_least(dear):
    """Against enumeration; "three of the first two" must give, and what else does is weighed exactly."""
    rng = np.random.default_rng(int(dear))
    for _ in range(12):
        groups = [rng.choice(5, 2, replace=False).tolist() for _ in range(3)]
        stated = RankingSet(5, 4).at_least(3, documents=groups[0], name="a").at_most(0, documents=groups[1], name="b")
        stated = stated.at_most(0, documents=groups[2], positions=range(2), name="c")
        prices = {"a": dear, "b": float(rng.integers(1, 9)), "c": float(rng.integers(1, 9)) / 8.0}
        if dear * 8.0 > 1e6:
            prices["c"] = prices["b"] = 1.0 + float(rng.integers(0, 2))

        def cost(order, groups=groups, prices=prices):
            inside = [sum(j in group for j in order) for group in groups]
            early = sum(j in groups[2] for j in order[:2])
            return prices["a"] * max(3 - inside[0], 0) + prices["b"] * inside[1] + prices["c"] * early

        found = stated.repair(prices)
        assert found.cost == pytest.approx(min(map(cost, permutations(range(5), 4))), rel=1e-12)
        assert found.cost == pytest.approx(cost(found.order.tolist()), rel=1e-12)
        assert found.proved


# Limits on prefixes over disjoint groups: the flow of positions through groups is the best ranking, the linear program


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
    sequences, _ = to_group_sequence(problem)
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
    assert "position weights that are no multiple of the discount): the linear program is a bound" in bound.message


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
