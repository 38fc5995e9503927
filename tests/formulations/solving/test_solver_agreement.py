"""Every solver on random rankings under constraints: one value, each bound above it, each answer certified."""

from collections import Counter, defaultdict
from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, linprog, milp

from formulations import (
    FractionalSolutionError,
    InfeasibleError,
    LinearProgram,
    RankingSet,
    Status,
    certify,
    compatible_solvers,
    constrained_ranking,
    integrality_gap,
    solve,
)
from formulations.bridges.narrowing import quick_proof
from formulations.constraints.structure import BlockCollapse, LaminarNetwork

FEW, ALL = range(1, 200, 9), range(200)
"""Seeds of the problems: these always, all as a study."""

SMALL = 6
"""Documents up to which brute force is asked too."""


def labels(random, n, kinds):
    return [None if random.random() < 0.1 else int(random.integers(kinds)) for _ in range(n)]


def constrained(admissible, random):
    """One more constraint of a random kind."""
    n, k = admissible.documents, admissible.positions
    some, place = random.random(n) < 0.5, range(int(random.integers(1, k + 1)))
    x, y = (int(j) for j in random.choice(n, 2, replace=False))
    kinds = [
        lambda: admissible.at_most(1, by=labels(random, n, k + 1)),
        lambda: admissible.at_most(2, by=labels(random, n, 3)),
        lambda: admissible.at_least(1, documents=some),
        lambda: admissible.exactly(1, documents=some, positions=place),
        lambda: admissible.at_least(1, documents=some, positions=place),
        lambda: admissible.at_most(1, documents=random.random(n) < 0.4),
        lambda: admissible.forbid(random.random(n) < 0.3, place),
        lambda: admissible.fix(x, int(random.integers(k))),
        lambda: admissible.precedes(x, y),
        lambda: admissible.add_rows(random.integers(-1, 3, (1, k * n)), upper=k),
        lambda: admissible.add_rows(random.integers(0, 10, (1, k * n)) / 10, upper=0.6 * k),
    ]
    return kinds[int(random.integers(len(kinds)))]()


def problem_of(seed):
    """2 to 12 documents, 1 to 3 constraints; every other problem is full of ties."""
    for attempt in range(50):
        random = np.random.default_rng([seed, attempt])
        n = int(random.integers(2, 7 if seed % 2 else 13))
        k = int(random.integers(1, min(n, 5) + 1))
        admissible = RankingSet(n, k)
        for _ in range(int(random.integers(1, 4))):
            admissible = constrained(admissible, random)
        tied = random.random() < 0.5
        profit = random.integers(0, 3, (k, n)).astype(float) if tied else random.normal(size=(k, n))
        try:
            return constrained_ranking(profit, admissible)
        except InfeasibleError:
            continue
    raise AssertionError(f"no problem for seed {seed}")


@pytest.fixture(scope="module", params=[FEW, pytest.param(ALL, marks=pytest.mark.study)], ids=["few", "all"])
def answers(request):
    """For each problem its seed and the solution of each solver; None where its relaxation is fractional."""
    found = []
    for seed in request.param:
        problem, by_solver = problem_of(seed), {}
        for spec in compatible_solvers(problem):
            try:
                by_solver[spec] = solve(problem, spec)
            except FractionalSolutionError:
                by_solver[spec] = None
        found.append((seed, problem, by_solver))
    return found


def test_all_values_agree_and_no_bound_excludes_them(answers):
    for seed, problem, by_solver in answers:
        solutions = {spec: solution for spec, solution in by_solver.items() if solution is not None}
        assert "highs" in solutions
        best = max(solution.value for solution in solutions.values())
        for spec, solution in solutions.items():
            assert problem.admissible.is_feasible(solution.order), (seed, spec)
            assert solution.value >= best - problem.rounding, (seed, spec, solution, best)
            assert solution.bound >= best - problem.rounding, (seed, spec, solution, best)
        if problem.documents <= SMALL:
            every = permutations(range(problem.documents), problem.positions)
            assert best == pytest.approx(
                max(problem.value(np.array(o)) for o in every if problem.admissible.is_feasible(o)),
                abs=problem.rounding,
            ), seed


def test_each_answer_is_certified(answers):
    """In doubles each; in rational numbers one solver's a problem, another's in turn."""
    for seed, problem, by_solver in answers:
        solutions = [solution for solution in by_solver.values() if solution is not None]
        for turn, solution in enumerate(solutions):
            exact = turn == seed % len(solutions)
            certificate = certify(problem, solution, exact=exact)
            assert certificate.violation == 0
            rows = problem.admissible.compiled
            if exact and (BlockCollapse.from_rows(rows) is not None or LaminarNetwork.from_rows(rows) is not None):
                assert certificate.gap == 0, (seed, solution)


@pytest.mark.parametrize("spec", ["cvxpy:CLARABEL", "cvxpy:SCS", "cvxpy:OSQP"])
def test_solvers_that_stay_inside_the_face_come_back_whole(answers, spec):
    """Wherever the statement is proved integral, and wherever the relaxation has a whole optimum, ties or not."""
    whole = 0
    for _, problem, by_solver in answers:
        if spec in by_solver and (
            quick_proof(problem.admissible.compiled) is not None or integrality_gap(problem).integral
        ):
            assert by_solver[spec] is not None
            assert by_solver[spec].status is Status.OPTIMAL
            whole += 1
    assert whole >= 0.95 * len(answers)


def test_every_solver_and_every_way_was_tried(answers):
    solved, fractional, ways = Counter(), Counter(), defaultdict(Counter)
    for _, _, by_solver in answers:
        for spec, solution in by_solver.items():
            solved[spec] += solution is not None
            fractional[spec] += solution is None
            if solution is not None:
                ways[solution.solver.partition(" via ")[2]][solution.status.name] += 1
    print(f"\n{len(answers)} problems, {sum(solved.values())} solutions")
    for spec in solved:
        print(f"{spec:16} {solved[spec]:4} solved {fractional[spec]:4} fractional")
    for way, statuses in ways.items():
        print(f"{way:22} {dict(statuses)}")
    assert set(ways) == {"collapsed assignment", "laminar flow", "linear program", "integer program"}
    assert sum(fractional.values()) > 0
    assert min(solved.values()) >= len(answers) // 8


@pytest.mark.parametrize("solver", ["auto", "highs", "cp_sat", "cvxpy:HIGHS", "cvxpy:SCIPY", "own"])
def test_bound_of_an_integer_program_is_that_of_its_relaxation(solver):
    # without presolve and duals of its own a solver leaves the sum of all costs as the bound
    rng = np.random.default_rng(11)
    rows, columns = 5, 24
    weights, costs = rng.integers(10, 90, (rows, columns)), -rng.integers(20, 120, columns)
    capacity = np.floor(0.4 * weights.sum(axis=1))
    limits = (np.full(rows, -np.inf), capacity, np.zeros(columns), np.ones(columns))
    program = LinearProgram(costs, weights, *limits, False, integer=np.ones(columns, dtype=bool))
    relaxed = linprog(costs, weights, capacity, bounds=(0, 1)).fun
    best = milp(costs, constraints=LinearConstraint(weights, -np.inf, capacity), bounds=(0, 1), integrality=1)
    chosen = (lambda _: np.round(best.x)) if solver == "own" else solver
    for limit in (None, 5.0):
        solution = solve(program, chosen, time_limit=limit if solver != "own" else None)
        assert solution.value == pytest.approx(best.fun)
        assert solution.bound == np.ceil(relaxed - 1e-9)


def test_bound_is_proved_where_a_search_uses_up_its_time():
    rng = np.random.default_rng(3)
    weights, costs = rng.integers(10, 90, (20, 300)), -rng.integers(20, 120, 300)
    capacity = np.floor(0.3 * weights.sum(axis=1))
    limits = (np.full(20, -np.inf), capacity, np.zeros(300), np.ones(300))
    program = LinearProgram(costs, weights, *limits, False, integer=np.ones(300, dtype=bool))
    solution = solve(program, "highs", time_limit=1.0)
    assert solution.reported_status == "TIME_LIMIT"
    assert solution.bound == np.ceil(linprog(costs, weights, capacity, bounds=(0, 1)).fun - 1e-9)
