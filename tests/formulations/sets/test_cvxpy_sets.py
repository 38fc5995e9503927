"""A set stated in cvxpy is the set stated in words: rows, limits, cells and names; what is no row is refused."""

from itertools import permutations

import cvxpy as cp
import numpy as np
import pytest
from scipy.sparse import csr_array

from formulations import InvalidProblemError, RankingSet, constrained_ranking, penalized, solve

K, N = 3, 5
X = cp.Variable((K, N), name="X")
START = RankingSet(N, K)
EVERY = list(permutations(range(N), K))
RANDOM = np.random.default_rng(0)
WEIGHTS = RANDOM.integers(-3, 4, (K, N)).astype(float)


def first_rows(*positions):
    """0/1 rows over the cells in C order: each the cells of one position, documents 0 and 1."""
    found = np.zeros((len(positions), K, N))
    for r, i in enumerate(positions):
        found[r, i, :2] = 1
    return found.reshape(len(positions), -1)


CAP = START.at_most(1, documents=[0, 2], name="cap")
FLOOR = START.at_least(1, documents=[3, 4], positions=[0, 1], name="new")
EQUAL = START.exactly(2, documents=range(1, 5), name="q")
MOVED = WEIGHTS - np.array([[1, 0, 0, 0, 0], [0] * 5, [0, 0, 0, 0, 3]])

SAME = {
    "a cap": ([(X[:, [0, 2]].sum() <= 1).set_label("cap")], CAP),
    "a cap the other way": ([(-X[:, [0, 2]].sum() >= -1).set_label("cap")], CAP),
    "a cap from a constant": ([(cp.Constant(1) >= X[:, [0, 2]].sum()).set_label("cap")], CAP),
    "a floor": ([(cp.sum(X[:2, 3:]) >= 1).set_label("new")], FLOOR),
    "a floor the other way": ([(-cp.sum(X[:2, 3:]) <= -1).set_label("new")], FLOOR),
    "an equation": ([(X[:, 1:].sum() == 2).set_label("q")], EQUAL),
    "an equation the other way": ([(2 - X[:, 1:].sum() == 0).set_label("q")], EQUAL),
    "a vector": (
        [(X[:, :2].sum(axis=1) <= [0, 1, 1]).set_label("v")],
        START.add_rows(first_rows(0, 1, 2), upper=[0, 1, 1], name="v", labels=range(3)),
    ),
    "weights": (
        [(cp.sum(cp.multiply(WEIGHTS, X)) <= 2).set_label("w")],
        START.add_rows(WEIGHTS.ravel(), upper=2, name="w"),
    ),
    "weights on both sides": (
        [(cp.sum(cp.multiply(WEIGHTS, X)) + 1 >= X[0, 0] - 2 + 3 * X[2, 4]).set_label("w")],
        START.add_rows(-MOVED.ravel(), upper=3, name="w"),
    ),
    "a parameter": (
        [(cp.Parameter(value=2.0) * X[0, 0] + X[1, 1] <= 1).set_label("p")],
        START.add_rows([2.0, *[0] * 5, 1, *[0] * 8], upper=1, name="p"),
    ),
    "a sparse right-hand side": (
        [(X[:, :2] + X[:, 1:3] <= csr_array(np.ones((K, 2)))).set_label("s")],
        START.add_rows(
            [np.isin(np.arange(15), [5 * i + j, 5 * i + j + 1]) for i in range(K) for j in range(2)],
            upper=1, name="s", labels=range(6),
        ),
    ),
    "a ban": ([(X[0, 2] == 0).set_label("forbid")], START.forbid(2, 0)),
    "a ban by a cap": ([(2 * X[0, 2] <= 1).set_label("forbid")], START.forbid(2, 0)),
    "a ban of several": ([(X[:2, 3] <= 0).set_label("forbid")], START.forbid(3, [0, 1])),
    "a pin": ([(X[1, 4] == 1).set_label("fix[4, 1]")], START.fix(4, 1)),
    "a pin by a floor": ([(X[1, 4] >= 0.5).set_label("fix[4, 1]")], START.fix(4, 1)),
    "what every set says": ([X.sum(axis=1) == 1, cp.sum(X, axis=0) <= 1, X >= 0, X <= 1, X[0, 0] >= -1], START),
    "two of one name": (
        [(X[:, 0].sum() + X[:, 1].sum() <= 1).set_label("q"), (X[0].sum() + X[1, 0] <= 1).set_label("q")],
        START.at_most(1, documents=[0, 1], name="q").add_rows([1] * 6 + [0] * 9, upper=1, name="q"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SAME)
def test_both_languages_give_the_same_program(case):
    constraints, words = SAME[case]
    found = RankingSet.from_cvxpy(X, constraints)
    assert [c.name for c in found.constraints] == [c.name for c in words.constraints]
    assert (found.allowed_cells == words.allowed_cells).all()
    ours, theirs = words.program, found.program
    assert (ours.matrix.toarray() == theirs.matrix.toarray()).all()
    assert (ours.row_lower == theirs.row_lower).all()
    assert (ours.row_upper == theirs.row_upper).all()
    rows, columns = ours.matrix.shape
    assert [ours.row_name(r) for r in range(rows)] == [theirs.row_name(r) for r in range(rows)]
    assert [ours.variable_name(c) for c in range(columns)] == [theirs.variable_name(c) for c in range(columns)]


@pytest.mark.every(3)
@pytest.mark.parametrize("seed", range(8))
def test_the_set_holds_the_rankings_that_cvxpy_holds_to_be_feasible(seed):
    """cvxpy flattens by columns, we by rows: an error of order would show on a k × n matrix that is not square."""
    random = np.random.default_rng(seed)
    weights = [random.integers(-2, 3, (K, N)) for _ in range(2)]
    left, right = random.integers(-1, 2, (2, K)), random.integers(-1, 2, (N, 2))
    constraints = [
        left @ X @ right <= random.integers(0, 3, (2, 2)),
        cp.sum(cp.multiply(weights[0], X)) >= -2,
        cp.vec(X, order="F")[int(random.integers(15))] == 0,
        cp.vec(X, order="C")[3:6] <= [1, 0, 1],
        cp.cumsum(X, axis=0)[:, 0] <= cp.cumsum(X, axis=0)[:, 1] + 1,
        cp.vstack([X[0] @ weights[1][0], X[2] @ weights[1][2]]) <= 3,
        X[:, ::-1][1, 0] <= 0.25,
    ]
    admissible = RankingSet.from_cvxpy(X, constraints)
    for order in EVERY:
        X.value = np.eye(N)[list(order)]
        assert admissible.is_feasible(order) == all(c.value() for c in constraints), order
    X.value = None


def test_constraints_are_named_in_their_order_equations_among_them():
    found = RankingSet.from_cvxpy(X, [X[0, 0] + X[1, 1] <= 1, (X[0, 1] + X[1, 2] == 1).set_label("two"), X[2, :2] == 0])
    assert [c.name for c in found.constraints] == ["constraint 0", "two", "constraint 2"]


def test_one_position_and_one_document():
    x = cp.Variable((1, 1))
    assert not RankingSet.from_cvxpy(x, [x <= 0.5]).is_feasible([0])
    assert RankingSet.from_cvxpy(x, [x[0, 0] + x[0, 0] >= 1, x == 1]).is_feasible([0])


@pytest.mark.parametrize("value", [None, RANDOM.random((K, N))], ids=["none", "some"])
@pytest.mark.parametrize("constraints", [[X[0, 0] == 0], [X[0, 0] == 0, cp.max(X) <= 1]], ids=["read", "refused"])
def test_the_variable_keeps_its_value(value, constraints):
    X.value = value
    try:
        RankingSet.from_cvxpy(X, constraints)
    except InvalidProblemError:
        assert len(constraints) == 2
    kept, X.value = X.value, None
    assert kept is value is None or (kept == value).all()


Y, FREE, MATRIX = cp.Variable((K, N), name="Y"), cp.Parameter(name="free"), cp.Variable((2, 2), symmetric=True)
REFUSED = {
    "a maximum": (X, [(cp.max(X) <= 1).set_label("top")], "'top' .* is not affine: .* auxiliary columns"),
    "a magnitude": (X, [(cp.abs(X[0, 0] - X[1, 1]) <= 1).set_label("near")], "'near' .* is not affine"),
    "a norm": (X, [X[0, 0] <= 1, cp.norm(X[0]) <= 1], "'constraint 1' .* is not affine"),
    "a quadratic": (X, [(cp.sum_squares(X) <= 1).set_label("ball")], "'ball' .* is not affine"),
    "a second variable": (X, [(X[0, 0] + Y[0, 0] <= 1).set_label("both")], "'both' uses Y"),
    "a cone": (X, [cp.SOC(X[0, 0], X[1])], "'constraint 0' is a SOC"),
    "a semidefinite matrix": (X, [X[:, :3] >> 0], "is a PSD"),
    "a truth": (X, [True], "is a bool"),
    "one alone": (X, X[0, 0] <= 1, "needs a list.*got one Inequality"),
    "one alone at a price": (X, penalized(X[0, 0] <= 1, penalty=1.0), "needs a list.*got one SoftConstraint"),
    "nothing": (X, None, "needs a list.*got None"),
    "an unknown number": (X, [(X[0, 0] + X[1, 1] <= FREE).set_label("late")], "'late' .* parameter without a value"),
    "a vector variable": (cp.Variable(N), [], "one row per position"),
    "an array": (np.ones((K, N)), [], "one row per position"),
    "a parameter for the variable": (cp.Parameter((K, N)), [], "one row per position"),
    "a declared limit": (cp.Variable((K, N), bounds=[0, 0.5]), [], "declared with bounds; state it as constraints"),
    "a declared shape": (MATRIX, [], "declared with symmetric"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_row_is_refused_by_name(case):
    variable, constraints, said = REFUSED[case]
    with pytest.raises(InvalidProblemError, match=said):
        RankingSet.from_cvxpy(variable, constraints)


def test_many_banned_cells_are_one_constraint():
    wide = cp.Variable((20, 60))
    found = RankingSet.from_cvxpy(wide, [(cp.multiply(np.triu(np.ones((20, 60)), 30), wide) == 0).set_label("late")])
    assert [c.name for c in found.constraints] == ["late"]
    assert (found.allowed_cells == (np.triu(np.ones((20, 60)), 30) == 0)).all()


def test_the_optimum_is_that_of_cvxpy():
    profit = RANDOM.normal(size=(K, N))
    constraints = [X[:, [0, 1, 2]].sum() <= 1, X[0, 3] == 0]
    whole = cp.Variable((K, N), boolean=True)
    rules = [whole.sum(axis=1) == 1, whole.sum(axis=0) <= 1, whole[:, [0, 1, 2]].sum() <= 1, whole[0, 3] == 0]
    best = cp.Problem(cp.Maximize(cp.sum(cp.multiply(profit, whole))), rules).solve(solver="HIGHS")
    assert solve(constrained_ranking(profit, RankingSet.from_cvxpy(X, constraints))).value == pytest.approx(
        best, rel=1e-9
    )
    assert (
        solve(constrained_ranking(profit, RankingSet.from_cvxpy(whole, rules))).solver
        == "scipy via collapsed assignment"
    )
