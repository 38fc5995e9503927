"""The best ranking of a set: every way to it against brute force, every claim recomputed, every lie refuted."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from problems.constrained_rankings import EVERY, KINDS, PROFIT, SIX, brute_force, stated

from formulations import (
    CertificateError,
    FractionalSolutionError,
    RankingSet,
    SolverError,
    Status,
    UnsupportedProblemError,
    certify,
    constrained_ranking,
    get_solver,
    matching,
    ranking,
    solve,
    verify_integrality,
)
from formulations.bridges import restated
from formulations.bridges.narrowing import to_linear_program
from formulations.constraints.constrained_ranking import ConstrainedRanking
from formulations.constraints.structure import BlockCollapse, LaminarNetwork, candidates, kinds
from formulations.problems.assignment import Assignment
from formulations.problems.linear_program import LinearProgram
from formulations.problems.min_cost_flow import MinCostFlow
from formulations.solvers.solver import SolverResult

INSIDE = ("cvxpy:CLARABEL", "cvxpy:SCS", "cvxpy:OSQP")
"""Solvers that end inside the optimal face where there are ties."""


@pytest.mark.every(13)
@pytest.mark.parametrize(("kind", "seed"), SIX)
@pytest.mark.parametrize("solver", ["auto", "highs", "cp_sat", "networkx", *INSIDE])
def test_no_ranking_of_the_set_beats_the_solution(kind, seed, solver):
    problem = stated(kind, seed)
    try:
        solution = solve(problem, solver)
    except (FractionalSolutionError, UnsupportedProblemError):
        assert solver not in ("auto", "highs")
        return
    best = brute_force(problem)
    assert problem.admissible.is_feasible(solution.order)
    assert abs(solution.value - best) <= problem.rounding
    assert solution.bound >= best - problem.rounding
    certify(problem, solution)
    exact = certify(problem, solution, exact=True)
    assert exact.value <= exact.bound
    rows = problem.admissible.compiled
    if BlockCollapse.from_rows(rows) is not None or LaminarNetwork.from_rows(rows) is not None:
        assert exact.gap == Fraction(0)
        assert solution.status is Status.OPTIMAL


TRIANGLE = EVERY.at_most(1, documents=[0, 1]).at_most(1, documents=[1, 2]).at_most(1, documents=[0, 2])
RANKED = ranking(
    [3.0, 2.5, 2.0, 1.0, 0.5, 0.0], [0, 1, 0, 2, 0, 1.0], discount=[1, 0.6, 0.5], position_weights=[3, 2, 1.0]
)
FRACTIONAL = constrained_ranking(np.outer([1.0, 0.9, 0.8], [3.0, 3.0, 3.0, 0, 0, 0]), TRIANGLE)
WAYS = {
    "exact via no constraints": (constrained_ranking(RANKED, EVERY), "auto", ""),
    "scipy via collapsed assignment": (
        constrained_ranking(PROFIT, EVERY.at_most(1, by=[*"aabbcc"])),
        "auto",
        "matched",
    ),
    "ortools via collapsed assignment": (
        constrained_ranking(PROFIT, EVERY),
        "ortools",
        "positions and rows are matched",
    ),
    "ortools via laminar flow": (
        constrained_ranking(PROFIT, EVERY.at_most(2, by=[*"aaabbb"])),
        "auto",
        "two laminar families",
    ),
    "networkx via laminar flow": (
        constrained_ranking(PROFIT, EVERY.at_most(2, documents=[0, 1])),
        "networkx",
        "two laminar",
    ),
    "highs via linear program": (
        constrained_ranking(PROFIT, EVERY.precedes(2, 1)),
        "auto",
        "this vertex of the relaxation is integral",
    ),
    "highs via integer program": (FRACTIONAL, "auto", "not proved totally unimodular: integer search"),
    "cp_sat via integer program": (constrained_ranking(PROFIT, EVERY), "cp_sat", "searches over integers"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_solution_says_the_way_it_was_found_and_why(way):
    problem, solver, why = WAYS[way]
    solution = solve(problem, solver)
    assert solution.solver == way
    assert why in solution.message
    assert abs(solution.value - brute_force(problem)) <= problem.rounding


def test_a_proof_of_total_unimodularity_is_named():
    problem = constrained_ranking(PROFIT, EVERY.at_most(2, documents=[0, 1]))
    assert "totally unimodular (laminar)" in solve(problem, "highs").message


def test_a_ranked_problem_under_constraints_is_the_same_problem():
    under = constrained_ranking(RANKED, EVERY.at_most(1, documents=[0, 1]))
    assert solve(under).value == pytest.approx(brute_force(under), abs=1e-12)
    assert solve(constrained_ranking(RANKED, EVERY)).value == pytest.approx(solve(RANKED).value, abs=1e-12)


# Where the relaxation is fractional


def test_a_fractional_relaxation_is_said_and_not_rounded():
    assert solve(FRACTIONAL.linear_program(), "highs").value == pytest.approx(4.35)
    for solver in ("cvxpy:GLOP", "cvxpy:CLARABEL", "cvxpy:SCS"):
        with pytest.raises(
            FractionalSolutionError, match=r"(?s)value 4\.35.*use an integer solver, 'highs' or 'cp_sat'"
        ):
            solve(FRACTIONAL, solver)
    for solver in ("auto", "highs", "cp_sat"):
        solution = solve(FRACTIONAL, solver)
        assert solution.value == pytest.approx(3.0, abs=1e-12) == brute_force(FRACTIONAL)
        assert solution.bound >= 3.0 - 1e-12
        certify(FRACTIONAL, solution, exact=True)
    for solver in ("exact", "scipy", "networkx"):
        with pytest.raises(UnsupportedProblemError, match="compatible_solvers"):
            solve(FRACTIONAL, solver)


# Symmetries, ties and scales


@pytest.mark.every(7)
@pytest.mark.parametrize(("kind", "seed"), SIX)
def test_the_order_in_which_documents_come_does_not_matter(kind, seed):
    problem = stated(kind, seed)
    new = np.random.default_rng(seed).permutation(problem.documents)
    old = np.argsort(new)
    cells = (np.arange(problem.positions)[:, None] * problem.documents + new).ravel()
    moved = tuple(
        replace(
            c,
            matrix=c.matrix[:, cells],
            forbids=None
            if c.forbids is None
            else c.forbids.reshape(problem.profit.shape)[:, new].reshape(c.forbids.shape),
        )
        for c in problem.admissible.constraints
    )
    again = constrained_ranking(problem.profit[:, new], replace(problem.admissible, constraints=moved))
    solution = solve(again)
    assert solution.value == pytest.approx(solve(problem).value, abs=problem.rounding)
    assert problem.admissible.is_feasible(new[solution.order])
    assert (old[new[solution.order]] == solution.order).all()


@pytest.mark.every(7)
@pytest.mark.parametrize("scale", [1e-9, 1e9, 0.0])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ["auto", "cp_sat", *INSIDE])
def test_the_unit_of_profit_does_not_matter(kind, scale, solver):
    problem = stated(kind, 2)
    scaled = constrained_ranking(problem.profit * scale, problem.admissible)
    try:
        solution = solve(scaled, solver)
    except (FractionalSolutionError, UnsupportedProblemError):
        assert solver != "auto"
        return
    assert abs(solution.value - brute_force(scaled)) <= scaled.rounding
    certify(scaled, solution, exact=True)


def test_one_document_at_one_position():
    for admissible in (
        RankingSet(1, 1),
        RankingSet(1, 1).fix(0, 0),
        RankingSet(1, 1).exactly(1),
        RankingSet(1, 1).at_most(3),
    ):
        for solver in ("auto", "highs", "cp_sat", *INSIDE):
            solution = solve(constrained_ranking([[-2.5]], admissible), solver)
            assert (solution.order.tolist(), solution.value, solution.status.name) == ([0], -2.5, "OPTIMAL")


TIED = {
    "all equal": (np.ones((3, 6)), EVERY.at_most(1, by=[*"aabbcc"])),
    "a laminar set": (
        np.tile([1.0, 1, 1, 1, 0, 0], (3, 1)),
        EVERY.at_most(2, documents=range(4)).at_least(1, documents=[5, 4]),
    ),
    "unimodular otherwise": (np.ones((3, 6)), EVERY.precedes(0, 1)),
    "a quota on a prefix": (np.ones((3, 6)), EVERY.at_least(1, documents=[0, 1, 2], positions=range(2))),
    "a thousand share a unit": (
        np.where(np.arange(2002) < 2, 1.0, 10.0) * np.ones((2, 1)),
        RankingSet(2002, 2).at_most(1, by=["A", "B", *["rest"] * 2000]),
    ),
    "a thousand under a quota": (
        np.where(np.arange(1502) < 2, 1.0, 10.0) * np.ones((2, 1)),
        RankingSet(1502, 2).at_most(1, documents=range(2, 1502)).at_most(2, documents=range(1502)),
    ),
}


@pytest.mark.parametrize("case", TIED)
@pytest.mark.parametrize("solver", INSIDE)
def test_ties_end_at_a_vertex(case, solver):
    """Solvers that stay inside the optimal face give shares of documents; what comes back is a best ranking."""
    problem = constrained_ranking(*TIED[case])
    solution = solve(problem, solver)
    assert problem.admissible.is_feasible(solution.order)
    assert solution.value == pytest.approx(solve(problem).value, abs=problem.rounding)
    assert certify(problem, solution, exact=True).gap <= problem.rounding


# What a solution of a constrained ranking claims: prices, bounds, and answers of foreign solvers, none believed
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
        with pytest.raises(CertificateError):
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
        with pytest.raises(CertificateError):
            certify(problem, replace(poor, bound=poor.value, y=prices, status=Status.OPTIMAL), exact=True)


# Solvers of the user's own


def own(form, answer):
    """A solver that accepts one form and always answers this."""

    @dataclass(frozen=True)
    class Own:
        accepts = (form,)
        package = "numpy"
        spec = "own"

        def reason_unsupported(self, problem):
            return None

        def solve(self, problem, warm_start=None):
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
        with pytest.raises((SolverError, UnsupportedProblemError)) as caught:
            solve(problem, own(form, SolverResult(np.array(x))))
        assert isinstance(caught.value, SolverError) or (form is Assignment and problem is LAMINAR)


def test_a_ranking_outside_the_set_is_refused_with_what_it_breaks():
    named = constrained_ranking(PROFIT, EVERY.at_most(1, by=[*"aabbcc"], name="site"))
    with pytest.raises(SolverError, match=r"not in the set: it breaks site\['a'\]"):
        solve(named, own(ConstrainedRanking, SolverResult(np.array([0, 1, 2]))))
    point = np.zeros(18)
    point[[0, 7, 14]] = 1.0
    with pytest.raises(SolverError, match=r"it breaks site\['a'\]"):
        solve(named, own(LinearProgram, SolverResult(point)))


@pytest.mark.parametrize(
    "answer",
    [None, 3, [0, 2, 4], lambda problem: 1 / 0, SolverResult([0, 2, 4])],
    ids=lambda answer: type(answer).__name__,
)
def test_what_is_no_answer_is_refused(answer):
    with pytest.raises(SolverError, match="'own'"):
        solve(BLOCKS, own(Assignment, answer))


@pytest.mark.parametrize("y", [np.full(7, 1e9), np.array([1e9]), np.array(["a"]), "prices", [0.0, 0.0, 0.0]], ids=str)
@pytest.mark.parametrize("form", [Assignment, ConstrainedRanking])
def test_prices_that_are_none_are_not_believed(form, y):
    """The ranking is one; its bound is that of prices of our own."""
    order = np.array([0, 2, 4])
    found = solve(BLOCKS, own(form, SolverResult(order if form is ConstrainedRanking else np.arange(3), y)))
    assert (found.order == order).all()
    assert found.bound >= brute_force(BLOCKS) - 1e-12


def test_auto_passes_over_what_fails(monkeypatch):
    monkeypatch.setattr("formulations.solvers.scipy.Scipy.solve", lambda *given: SolverResult(np.array([7, 7, 7])))
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


# The prices that a solution shows are those that prove its bound: they press on limits which are there, and add up
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
    ranked = ranking(random.normal(size=5), random.random(5), discount=[1.0, 0.5], position_weights=[2.0, 1.0])
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


# Few candidates: documents that a set tells apart nowhere, and the k best-paid of each kind that suffice
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
        program, back = to_linear_program(problem)
        answer = get_solver("highs").solve(program)
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
