"""Marginal rankings keep exposure as they promise, and lose nothing against lotteries over all rankings."""

import numpy as np
import pandas as pd
import pytest
from problems.few import few
from problems.orders import SHAPES, all_orders
from scipy.optimize import LinearConstraint, linprog

from formulations.certificates.certify import certify
from formulations.errors import InfeasibleError, InvalidProblemError
from formulations.gallery.assignments import marginal_ranking, matching
from formulations.marginals.birkhoff import birkhoff_decomposition
from formulations.marginals.exposure import DemographicParity, DisparateImpact, DisparateTreatment, ExposureBounds
from formulations.problems.problem import Status
from formulations.solving.solve import solve

KINDS = [DemographicParity, DisparateTreatment, DisparateImpact]
ACCURATE = ["highs", *(f"cvxpy:{name}" for name in ("CLARABEL", "GLOP", "HIGHS", "PIQP", "SCIPY", "SCS"))]


def logarithmic(k):
    return 1 / np.log2(np.arange(2.0, k + 2))


def case(rng, k, n, groups=2):
    """Attention, merit, profit and labels, every group with a document."""
    attention, merit = logarithmic(k), 0.2 + rng.random(n)
    label = np.array(list("abcde"[:groups]) + ["a"] * (n - groups))
    return attention, merit, np.outer(attention, merit), rng.permutation(label)


def constraint(kind, label, merit, **bounds):
    return kind(label, **bounds) if kind is DemographicParity else kind(label, merit, **bounds)


def treated(kind, label, merit, exposure):
    """What the groups get for their merit, straight from the definition."""
    got = []
    for name in np.unique(label):
        inside = label == name
        weight = merit[inside] if kind is DisparateImpact else np.ones(inside.sum())
        earned = np.ones(inside.sum()) if kind is DemographicParity else merit[inside]
        got.append((weight * exposure[inside]).mean() / earned.mean())
    return np.array(got)


def best_lottery(profit, matrices, rows):
    """The best value over lotteries on all rankings, by their probabilities: the program before marginals."""
    value = (matrices * profit).sum(axis=(1, 2))
    sides = np.array([(matrices * row).sum(axis=(1, 2)) for row in rows])
    equal = np.vstack([np.ones(len(value)), sides])
    return -linprog(-value, A_eq=equal, b_eq=np.eye(len(equal))[0]).fun


# The program


@pytest.mark.parametrize(("k", "n"), SHAPES)
def test_without_constraints_the_best_assignment_is_found(k, n):
    rng = np.random.default_rng([k, n])
    for _ in range(5):
        profit = rng.normal(size=(k, n))
        problem = marginal_ranking(profit)
        solution = solve(problem, "highs")
        assert solution.value == pytest.approx((all_orders(k, n) * profit).sum(axis=(1, 2)).max(), abs=1e-12)
        lottery = birkhoff_decomposition(solution.primal["P"])
        assert len(lottery) == 1
        assert solution.value == pytest.approx(solve(matching(profit), "scipy").value, abs=1e-12)
        assert certify(problem, solution).gap <= problem.rounding


@pytest.mark.every(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("k", "n"), [(1, 3), (2, 3), (3, 3), (3, 5), (5, 5)])
def test_marginals_lose_nothing_against_lotteries_over_all_rankings(kind, k, n):
    rng = np.random.default_rng([k, n, 1])
    for _ in range(5):
        attention, merit, profit, label = case(rng, k, n)
        merit = 1 + 0.1 * merit  # near enough for treatment in proportion to be within reach
        inside = label == "a"
        sign = inside / inside.sum() - ~inside / (~inside).sum()
        if kind is not DemographicParity:
            sign = inside / merit[inside].sum() - ~inside / merit[~inside].sum()
            sign = sign * merit if kind is DisparateImpact else sign
        row = np.outer(attention, sign)
        try:
            solution = solve(marginal_ranking(profit, exposure=attention, constraints=constraint(kind, label, merit)))
        except InfeasibleError:
            reach = (all_orders(k, n) * row).sum(axis=(1, 2))
            assert reach.min() > 0 or reach.max() < 0
            continue
        assert solution.value == pytest.approx(best_lottery(profit, all_orders(k, n), [row]), abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize(("k", "n"), [(3, 5), (5, 5), (5, 9), (12, 12)])
def test_lotteries_keep_exposure_on_average_and_a_vertex_needs_few_rankings(kind, groups, k, n):
    rng = np.random.default_rng([k, n, groups])
    attention, merit, profit, label = case(rng, k, n, groups)
    merit = 1 + 0.1 * merit
    problem = marginal_ranking(profit, exposure=attention, constraints=constraint(kind, label, merit))
    solution = solve(problem, "highs")
    lottery = birkhoff_decomposition(solution.primal["P"])
    exposure = lottery.probabilities @ [np.bincount(order, attention, n) for order in lottery.orders]
    assert np.ptp(treated(kind, label, merit, exposure)) <= 1e-9
    free = np.bincount(solve(matching(profit), "scipy").order, attention, n)
    assert np.ptp(treated(kind, label, merit, free)) > 1e-3  # else the constraint would not be seen
    assert lottery.expected(profit) == pytest.approx(solution.value, abs=1e-9)
    assert solution.status is Status.OPTIMAL
    assert 2 <= len(lottery) <= groups


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("k", "n"), [(4, 4), (4, 7)])
def test_bounds_of_difference_and_ratio_hold_and_cost_no_more_than_they_must(kind, k, n):
    rng = np.random.default_rng([k, n, 2])
    attention, merit, profit, label = case(rng, k, n, 3)
    profit = profit * np.where(label == "a", 2, 1)
    merit = 40 * (1 + 0.1 * merit)  # in a unit of its own

    def reached(**bounds):
        fair = constraint(kind, label, merit, **bounds)
        solution = solve(marginal_ranking(profit, exposure=attention, constraints=fair), "highs")
        return solution.value, treated(kind, label, merit, attention @ solution.primal["P"])

    free = treated(kind, label, merit, np.bincount(solve(matching(profit), "scipy").order, attention, n))
    exact, fair = reached()
    assert np.ptp(fair) <= 1e-9
    for part in (0.2, 0.5, 0.8):
        value, got = reached(difference_bound=part * np.ptp(free))
        assert np.ptp(got) == pytest.approx(part * np.ptp(free), abs=1e-9)  # binding, and no tighter than asked
        assert value > exact
        ratio = 1 - part * (1 - free.min() / free.max())
        value, got = reached(ratio_bound=ratio)
        assert got.min() / got.max() == pytest.approx(ratio, abs=1e-9)
        assert value > exact
    assert reached(ratio_bound=1.0)[0] == pytest.approx(exact, abs=1e-9)


def test_a_protected_group_may_get_more_but_not_less():
    attention, profit = logarithmic(3), np.outer(logarithmic(3), [3.0, 2.0, 1.0])
    label = np.array(["a", "a", "b"])

    def means(problem):
        exposure = attention @ solve(problem, "highs").primal["P"]
        return exposure[:2].mean(), exposure[2]

    for bounds, times in (({}, 1.0), ({"ratio_bound": 0.9}, 0.9)):
        lifted = DemographicParity(label, protected="b", **bounds)
        a, b = means(marginal_ranking(profit, exposure=attention, constraints=lifted))
        assert b == pytest.approx(times * a, abs=1e-9)
        idle = DemographicParity(label, protected="a", **bounds)
        a, b = means(marginal_ranking(profit, exposure=attention, constraints=idle))
        assert (a, b) == pytest.approx(((attention[0] + attention[1]) / 2, attention[2]))
    near = DemographicParity(label, protected="b", difference_bound=0.1)
    a, b = means(marginal_ranking(profit, exposure=attention, constraints=near))
    assert a - b == pytest.approx(0.1, abs=1e-9)


def test_parity_lifts_the_group_of_lower_merit_and_costs_utility():
    """The job seekers of Singh and Joachims: women a little less relevant, far less exposed [section 1, figure 1]."""
    relevance = np.array([0.82, 0.81, 0.80, 0.79, 0.78, 0.77])
    label = np.array(["men"] * 3 + ["women"] * 3)
    attention = logarithmic(6)
    profit = np.outer(attention, relevance)

    def fared(*constraints):
        solution = solve(marginal_ranking(profit, exposure=attention, constraints=constraints), "highs")
        exposure = attention @ solution.primal["P"]
        return solution.value, exposure[label == "women"].mean(), exposure[label == "men"].mean()

    free, women, men = fared()
    assert (round(men, 2), round(women, 2)) == (0.71, 0.39)  # as printed there
    value, lifted, lowered = fared(DemographicParity(label))
    assert women < lifted < men
    assert lifted == pytest.approx(lowered)
    assert 0.99 * free < value < free - 1e-6
    value, lifted, lowered = fared(DisparateTreatment(label, relevance))
    assert lifted / lowered == pytest.approx(0.78 / 0.81)
    assert value < free - 1e-6


def test_limits_of_your_own_and_rows_of_your_own_bind():
    attention, profit = np.array([1.0, 0.5]), np.outer([1.0, 0.5], [3.0, 2.0, 1.0])
    label = [1, 1, 2]
    problem = marginal_ranking(profit, exposure=attention, constraints=ExposureBounds(label, lower={2: 0.4}))
    assert (attention @ solve(problem, "highs").primal["P"])[2] == pytest.approx(0.4)
    problem = marginal_ranking(profit, exposure=attention, constraints=ExposureBounds(label, upper=0.7))
    assert (attention @ solve(problem, "highs").primal["P"])[:2].mean() == pytest.approx(0.7)
    first = np.zeros((2, 3))
    first[0, 0] = 1.0
    own = LinearConstraint(first.reshape(1, -1), -np.inf, 0.25)
    solution = solve(marginal_ranking(profit, constraints=[own, ExposureBounds([1, None, None], lower=0.1)]), "highs")
    assert solution.primal["P"][0, 0] == pytest.approx(0.25)


def test_groups_of_every_kind_of_label_name_the_rows():
    profit = np.ones((2, 4))
    groups = [7, 7, "b", None]
    several = [
        DemographicParity(groups), DemographicParity(groups, ratio_bound=0.5), ExposureBounds(groups),
        ExposureBounds(pd.Series(["x", pd.NA, "x", "y"], dtype="string")),
        ExposureBounds(np.array([0.5, np.nan, 0.5, 1.5])), LinearConstraint(np.ones((1, 8)), 0, 9),
    ]  # fmt: skip
    problem = marginal_ranking(profit, constraints=several)
    names = [problem.row_name(row) for row in range(problem.row_lower.size)]
    assert names == [
        "position[0]", "position[1]", *(f"document[{j}]" for j in range(4)),
        "demographic_parity['7']", "demographic_parity['b']",
        *(f"demographic_parity 2['{row}']" for row in ("7 least", "b least", "7 most", "b most")),
        "exposure['7']", "exposure['b']", "exposure 2['x']", "exposure 2['y']",
        "exposure 3['0.5']", "exposure 3['1.5']", "row[0]",
    ]  # fmt: skip
    assert problem.variable_name(9) == "level['demographic_parity 2']"
    solution = solve(problem, "highs")
    assert solution.primal["P"].shape == (2, 4)
    assert solution.dual["exposure 2"].shape == (2,)


@pytest.mark.parametrize("kind", KINDS)
def test_solvers_agree(kind):
    attention, merit, profit, label = case(np.random.default_rng(5), 4, 6)
    problem = marginal_ranking(profit, exposure=attention, constraints=constraint(kind, label, 1 + merit))
    best = solve(problem).value
    for solver in ACCURATE:
        solution = solve(problem, solver)
        assert solution.value == pytest.approx(best, abs=1e-7)
        assert solution.bound == pytest.approx(best, abs=1e-7)
        lottery = birkhoff_decomposition(solution.primal["P"])
        assert np.abs(lottery.marginals() - solution.primal["P"]).max() <= 1e-9 + lottery.moved
        assert lottery.moved <= 1e-7
        assert np.ptp(treated(kind, label, 1 + merit, attention @ lottery.marginals())) <= 1e-6


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_units_of_attention_merit_and_profit_do_not_matter(unit):
    attention, merit, profit, label = case(np.random.default_rng(6), 4, 6)
    merit = 1 + 0.1 * merit
    base = solve(marginal_ranking(profit, exposure=attention, constraints=DisparateTreatment(label, merit)), "highs")
    for changed in (
        marginal_ranking(unit * profit, exposure=attention, constraints=DisparateTreatment(label, merit)),
        marginal_ranking(profit, exposure=unit * attention, constraints=DisparateTreatment(label, merit)),
        marginal_ranking(profit, exposure=attention, constraints=DisparateTreatment(label, unit * merit)),
    ):
        solution = solve(changed, "highs")
        assert (profit * solution.primal["P"]).sum() == pytest.approx(base.value, rel=1e-9)
        assert np.ptp(treated(DisparateTreatment, label, merit, attention @ solution.primal["P"])) <= 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_shuffled_documents_have_the_same_value(kind):
    rng = np.random.default_rng(8)
    _, merit, profit, label = case(rng, 4, 7, 3)
    merit = 1 + 0.1 * merit
    value = solve(marginal_ranking(profit, constraints=constraint(kind, label, merit)), "highs").value
    for _ in range(3):
        order = rng.permutation(7)
        moved = marginal_ranking(profit[:, order], constraints=constraint(kind, label[order], merit[order]))
        assert solve(moved, "highs").value == pytest.approx(value, abs=1e-12)


# What cannot be


LABELS = ["a", "b", "c", "c"]


@pytest.mark.parametrize(
    ("fair", "words"),
    [
        (ExposureBounds(LABELS, lower={"b": 1.2}), r"'b' must have at least 1.2 .* get at most 1; change the limits"),
        (ExposureBounds(LABELS, lower={"a": 0.8, "b": 0.8}), r"'a', 'b' must have at least 1.6 .* at most 1.5"),
        (ExposureBounds(LABELS, upper={"a": 0.1, "c": 0.1}), r"'a', 'c' must have at most 0.3 .* get at least 0.5"),
        (ExposureBounds(LABELS, lower={"a": 0.5}, upper={"a": 0.4}), r"exposure\['a'\] must be at least 0.5"),
        (DisparateTreatment(LABELS, [1, 18, 1, 1]), r"'b' must have at least 1.28571 .* allow a difference_bound"),
    ],
)
def test_exposure_out_of_reach_names_the_groups(fair, words):
    with pytest.raises(InfeasibleError, match=words):
        marginal_ranking(np.ones((2, 4)), exposure=[1.0, 0.5], constraints=fair)


def test_conflicts_of_several_constraints_are_found_by_the_solver():
    several = [ExposureBounds(LABELS, lower={"b": 0.9}), DemographicParity(LABELS)]
    problem = marginal_ranking(np.ones((2, 4)), exposure=[1.0, 0.5], constraints=several)
    with pytest.raises(InfeasibleError, match=r"demographic_parity\['b'\]"):
        solve(problem, "highs")
    for solver in ("cvxpy:CLARABEL", "cvxpy:SCS"):
        with pytest.raises(InfeasibleError):
            solve(problem, solver)


def test_more_positions_than_documents_are_refused():
    with pytest.raises(InfeasibleError, match="Reduce the problem to 2"):
        marginal_ranking(np.ones((3, 2)))


@few(range(150), every=5, name="turns")
def test_limits_are_refused_exactly_where_the_solver_finds_no_point(turns):
    rng = np.random.default_rng(9)
    refused = []
    for _ in turns:
        k, n = sorted(rng.integers(2, 6, 2))
        label = rng.integers(0, 3, n).tolist()
        if rng.random() < 0.5:
            label[0] = None
        present = sorted({name for name in label if name is not None})
        attention = np.round(rng.random(k), 2) + 0.01
        low = {name: float(rng.random() ** 2) for name in present}
        high = {name: low[name] + float(rng.random() ** 2) for name in present}
        inside = {name: np.array([name == other for other in label]) for name in present}
        rows = [np.outer(attention, inside[name] / inside[name].sum()).ravel() for name in present]
        plain = LinearConstraint(np.array(rows), list(low.values()), list(high.values()))
        try:
            solve(marginal_ranking(np.zeros((k, n)), constraints=plain), "highs")
            possible = True
        except InfeasibleError:
            possible = False
        try:
            limits = ExposureBounds(label, lower=low, upper=high)
            marginal_ranking(np.zeros((k, n)), exposure=attention, constraints=limits)
            assert possible
        except InfeasibleError:
            assert not possible
        refused.append(not possible)
    assert len(turns) / 7.5 < sum(refused) < len(turns) * 13 / 15


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"profit": [[np.nan, 1.0, 1.0]]}, r"profit\[0, 0\] is nan"),
        ({"profit": [1.0, 2.0]}, "must have 2 dimension"),
        ({"profit": np.ones((0, 3))}, "one position and one document"),
        ({"exposure": [1.0, 2.0]}, "exposure must be 1 nonnegative numbers"),
        ({"exposure": [-1.0]}, "nonnegative"),
        ({"exposure": [0.0]}, "not all 0"),
        ({"constraints": DemographicParity(["a", "b"])}, "2 labels for 3 documents"),
        ({"constraints": DemographicParity("aab")}, "one label a document"),
        ({"constraints": DemographicParity([["a"], "b", "b"])}, r"document 0 has \['a'\]"),
        ({"constraints": DemographicParity([None] * 3)}, "no label but None"),
        ({"constraints": DemographicParity(["a"] * 3)}, "give two"),
        ({"constraints": DemographicParity(list("aab"), protected="c")}, "no document is in group 'c'; groups are 'a'"),
        ({"constraints": DemographicParity(list("aab"), ratio_bound=1.2)}, "ratio_bound must be .*got 1.2"),
        ({"constraints": DemographicParity(list("aab"), difference_bound=-1)}, "difference_bound must be .*got -1"),
        ({"constraints": DemographicParity(list("aab"), difference_bound=0, ratio_bound=1)}, "not both"),
        ({"constraints": DisparateTreatment(list("aab"), [0, 0, 1])}, "group 'a' has mean merit 0"),
        ({"constraints": DisparateTreatment(list("aab"), [1, -1, 1])}, "must not be negative; got -1 for document 1"),
        ({"constraints": DisparateImpact(list("aab"), [1, np.inf, 1])}, r"merit\[1\] is inf"),
        ({"constraints": ExposureBounds(list("aab"), lower={"c": 1})}, "no document is in group 'c'"),
        ({"constraints": ExposureBounds(list("aab"), upper=np.nan)}, "upper limit of 'a' is nan"),
        ({"constraints": ExposureBounds(list("aab"), lower=np.inf)}, "lower limit of 'a' is inf"),
        ({"constraints": LinearConstraint(np.ones((1, 4)))}, "4 columns, but P has 1 × 3"),
        ({"constraints": ["parity"]}, "a constraint cannot be a str"),
    ],
)
def test_numbers_that_state_no_problem_are_refused(change, words):
    arguments = {"profit": [[1.0, 2.0, 3.0]], **change}
    with pytest.raises(InvalidProblemError, match=words):
        marginal_ranking(arguments.pop("profit"), **arguments)


@pytest.mark.parametrize("limit", [(0.9, 1.0), "0.9", None])
def test_a_limit_of_exposure_is_one_number(limit):
    with pytest.raises(InvalidProblemError, match=r"lower limit of group 'b' must be a number.*upper="):
        solve(marginal_ranking(np.ones((2, 3)), constraints=ExposureBounds(["a", "b", "b"], lower={"b": limit})))
