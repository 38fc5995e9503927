"""Where one of a set stands, one of another stands earlier: against all rankings, hard, soft, repaired, in batches."""

from itertools import pairwise, permutations

import cvxpy as cp
import numpy as np
import pytest
from scipy.sparse import csr_array

from formulations import (
    InfeasibleError,
    InvalidProblemError,
    RankingSet,
    certify,
    check_evidence,
    constrained_ranking,
    penalized,
    sensitivity,
    solve,
    verify_integrality,
)
from formulations.io.toml_file import read_ranking_set
from formulations.solving.constrained_batch import SetBatch, solve_sets


def units(order, a, b):
    """How many documents of b, but not of a, stand before all of a (n,)."""
    return sum(b[j] and not a[j] and not a[order[:p]].any() for p, j in enumerate(order.tolist()))


def drawn(seed, shortest=1):
    """A set of k of n documents and what it breaks, `before` or `chain` of sets that may be empty and overlap."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(shortest, 6))
    k = int(rng.integers(1, n + 1))
    masks = [rng.random(n) < rng.choice([0.0, 0.3, 0.6, 1.0], p=[0.1, 0.4, 0.4, 0.1]) for _ in range(2 + seed % 3)]
    said = [mask if rng.random() < 0.5 else rng.permutation(np.flatnonzero(mask)) for mask in masks]
    said = [{*one.tolist()} if one.dtype != bool and rng.random() < 0.3 else one for one in said]
    empty = RankingSet(n, k)
    stated = empty.precedes(*said, name="c") if seed % 3 == 0 else empty.precedence_chain(said, name="c")
    orders = [np.array(order) for order in permutations(range(n), k)]
    return stated, orders, [sum(units(order, *pair) for pair in pairwise(masks)) for order in orders], rng


@pytest.mark.every(4)
@pytest.mark.parametrize("seed", range(45))
def test_sets_before_sets_against_all_rankings(seed):
    stated, orders, broken, rng = drawn(seed)
    k, n = stated.shape
    place = np.full(k * n, -1)
    place[stated.compiled.cell] = np.arange(stated.compiled.cell.size)
    for order, off in zip(orders, broken, strict=True):
        assert stated.is_feasible(order) == (off == 0)
        assert sum(stated.violations(order).values()) == off
        cells = place[np.arange(k) * n + order]
        point = np.bincount(cells[cells >= 0], minlength=stated.compiled.cell.size).astype(float)
        assert (stated.program.violation(point) <= 1e-12) == (off == 0)
    profit = rng.normal(size=(k, n)) if seed % 2 else np.outer(np.arange(k, 0, -1.0), rng.integers(-1, 3, n))
    worth = np.array([profit[np.arange(k), order].sum() for order in orders])
    off = np.array(broken)
    repair = stated.repair(2.0)
    assert repair.cost == pytest.approx(2.0 * off.min())
    assert repair.proved
    for price in (0.0, 0.4, 50.0):
        problem = constrained_ranking(profit, stated.penalized("c", penalty=price))
        solution = solve(problem)
        assert solution.value == pytest.approx((worth - price * off).max(), abs=1e-9)
        assert problem.admissible.charge(solution.order) == pytest.approx(price * sum(solution.violations.values()))
        certify(problem, solution, exact=True)
    if off.min() > 0:
        with pytest.raises(InfeasibleError, match=r"Conflict: .*c"):
            stated.check_nonempty()
        return
    problem = constrained_ranking(profit, stated)
    solution = solve(problem)
    assert solution.value == pytest.approx(worth[off == 0].max(), abs=1e-9)
    certify(problem, solution, exact=True)
    assert check_evidence(stated, verify_integrality(stated))


@pytest.mark.parametrize("seed", range(40))
def test_batches_of_training_find_the_best_beside_groups(seed):
    """Hard and soft, beside groups that nest or cross, by tolls or a program: the best ranking, and its bound holds."""
    held, _, _, rng = drawn(seed, shortest=3)
    k, n = held.shape
    held = held.at_most(int(rng.integers(1, 3)), by=rng.integers(0, 2, n), name="site")
    held = held.at_most(2, documents=rng.random(n) < 0.6, name="genre")
    for name in ("c", "site"):
        if rng.random() < 0.5:
            held = held.penalized(name, penalty=float(rng.choice([0.0, 0.3, 2.0])))
    score, gain, decay = rng.normal(size=n), rng.integers(0, 3, n).astype(float), -np.sort(-rng.random(k))
    bounds = np.array([0, n]), np.array([0, k])
    batch = SetBatch([held], score, gain, decay, 1.0 / np.log2(np.arange(2.0, k + 2.0)), *bounds, np.ones(1))
    form = batch[0] if held.max_positions == k else None
    if form is None:
        with pytest.raises(InfeasibleError):
            solve_sets(batch)
        return
    orders = (np.array(order) for order in permutations(range(n), k))
    best = max(form.value(order) for order in orders if held.is_feasible(order))
    answer = solve_sets(batch)
    assert held.is_feasible(answer.order)
    assert answer.value[0] == pytest.approx(best, abs=1e-9 * (1.0 + form.scale))
    assert answer.value[0] == pytest.approx(form.value(answer.order), abs=1e-9 * (1.0 + form.scale))
    assert answer.bound[0] >= best - form.rounding


def test_two_documents_keep_their_stronger_rows_and_sets_of_one_the_unit_of_sets():
    """Σ_{i <= p} π[i, y] <= Σ_{i < p} π[i, x] of documents y after x; of sets a unit is a document."""
    k, n, x, y = 4, 5, 3, 1
    one, sets = RankingSet(n, k).precedes(x, y), RankingSet(n, k).precedes([x], [y])
    rows = one.constraints[0].matrix.toarray().reshape(k - 1, k, n)
    for p in range(1, k):
        expected = np.zeros((k, n))
        expected[: p + 1, y], expected[:p, x] = 1.0, -1.0
        assert (rows[p - 1] == expected).all()
    assert one.constraints[0].labels == ((x, y, 1), (x, y, 2), (x, y, 3))
    order = np.array([0, y, 2, 4])
    assert sum(one.violations(order).values()) == 3.0
    assert sets.violations(order) == {"precedes[1]": 1.0}
    for order in permutations(range(n), k):
        assert one.is_feasible(order) == sets.is_feasible(order)


def test_a_chain_of_sets_is_each_before_the_next():
    sets = [[0, 1], [2], {3, 4}]
    chained = RankingSet(5, 4).precedence_chain(sets)
    pairs = RankingSet(5, 4).precedes(sets[0], sets[1]).precedes(sets[1], sets[2])
    mixed = RankingSet(5, 4).precedence_chain([[0, 1], 2, range(3, 5)])
    for order in permutations(range(5), 4):
        assert chained.is_feasible(order) == pairs.is_feasible(order) == mixed.is_feasible(order)
        assert sum(chained.violations(order).values()) == sum(pairs.violations(order).values())
    assert chained.violations([3, 2, 0, 1]) == {"precedence_chain[0, 1]": 1.0, "precedence_chain[1, 0]": 1.0}


def test_what_says_nothing_and_what_bans():
    start = RankingSet(4, 2)
    for nothing in (
        start.precedes([0], []),
        start.precedes([], []),
        start.precedes([0, 1], [1]),
        start.precedes([2], 2),
    ):
        assert nothing.allowed_cells.all()
        assert nothing.constraints[0].rows == 0
        assert solve(constrained_ranking(np.eye(2, 4), nothing)).order.tolist() == [0, 1]
    for order in permutations(range(4), 2):
        assert start.precedes([], [1, 2]).is_feasible(order) == (not {1, 2} & {*order})
        assert start.precedes(range(4), [1, 2]).is_feasible(order)
    assert [RankingSet(3, 1).precedes([0, 1], 2).is_feasible([j]) for j in range(3)] == [True, True, False]
    assert RankingSet(1, 1).precedes([0], [0]).is_feasible([0])


@pytest.mark.parametrize(
    ("say", "told"),
    [
        (lambda s: s.precedes([0, 7], 2), "precedes.. must be indices from 0 to 4; got 7"),
        (lambda s: s.implies("a", 1), "implies.. must be a mask"),
        (lambda s: s.implies(0, 7), "implies.. must be indices from 0 to 4; got 7"),
        (lambda s: s.precedes(True, False), "precedes.. needs one index from 0 to 4, or a set of indices; got True"),
        (lambda s: s.precedence_chain([0, np.True_]), "precedence_chain.. needs one index.*got True"),
        (lambda s: s.precedes([0], [True, False]), "needs 5 booleans; got shape .2,."),
        (lambda s: s.precedes([[0, 1]], 2), "indices or a range"),
        (lambda s: s.precedes("ab", 2), "indices or a range"),
        (lambda s: s.precedes([0, 0], 2), "must be distinct indices"),
        (lambda s: s.precedes([0], None), "or a set of indices; got None"),
        (lambda s: s.add("precedes", [0, 1, 2]), "needs two documents or two sets of documents"),
        (lambda s: s.precedence_chain([[0, 1], None]), "or a set of indices; got None"),
        (lambda s: s.precedence_chain([[0, 1]]), "needs a list of"),
        (lambda s: s.precedence_chain({0, 1}), "needs a list of"),
        (lambda s: s.precedence_chain([0, [1], 0]), "cannot precede itself"),
    ],
)
def test_what_no_precedence_says_is_named(say, told):
    with pytest.raises(InvalidProblemError, match=told):
        say(RankingSet(5, 3))


def test_a_precedence_has_no_limit_to_sweep():
    profit = np.outer([3.0, 2.0], [4.0, 3.0, 2.0])
    problem = constrained_ranking(profit, RankingSet(3, 2).precedes([1, 2], [0], name="late"))
    with pytest.raises(
        InvalidProblemError, match=r"'late' has rows and forbidden cells.*'late\[1\]'.*penalized\('late'"
    ):
        sensitivity(problem, "late", [0, 1])
    assert sensitivity(problem, "late[1]", [0, 1]).value.tolist() == [17.0, 17.0]


SITES = 'documents = 4\npositions = 3\n[attributes]\nsite = ["a", "a", "b", "c"]\n[[constraint]]\n'


@pytest.mark.parametrize(
    ("constraint", "meant"),
    [
        ('precedes = [{ site = "a" }, [2, 3]]', lambda s: s.precedes([0, 1], [2, 3])),
        (
            'precedes = [3, { site = "a" }]\npenalty = 0.5',
            lambda s: s.precedes(3, [0, 1]).penalized("precedes", penalty=0.5),
        ),
        ('precedence_chain = [{ site = "c" }, [0], { site = "b" }]', lambda s: s.precedence_chain([[3], [0], [2]])),
    ],
)
def test_a_file_says_what_python_says(tmp_path, constraint, meant):
    path = tmp_path / "s.toml"
    path.write_text(SITES + constraint, encoding="utf-8")
    in_file, stated = read_ranking_set(path), meant(RankingSet(4, 3))
    for order in permutations(range(4), 3):
        assert in_file.violations(order) == stated.violations(order)
        assert in_file.charge(order) == stated.charge(order)


@pytest.mark.parametrize(
    "said",
    ["precedes = 3", "precedes = [[0, [1]], 2]", "precedence_chain = 2", 'precedence_chain = [{ site = "a" }, 9]'],
)
def test_what_a_file_cannot_say_names_the_constraint(tmp_path, said):
    path = tmp_path / "s.toml"
    path.write_text(SITES + said, encoding="utf-8")
    with pytest.raises(InvalidProblemError, match="constraint 1"):
        read_ranking_set(path)


def test_thousands_of_documents_make_no_more_entries_than_positions_ask():
    """k rows: |b| entries each, and |a| for each position above."""
    rng = np.random.default_rng(0)
    n, k = 2000, 10
    genre = rng.integers(0, 5, n)
    stated = RankingSet(n, k).precedes(genre == 0, genre != 0).at_most(3, by=genre, name="genre")
    a, b = int((genre == 0).sum()), int((genre != 0).sum())
    assert stated.constraints[0].matrix.nnz == (k - 1) * b + k * (k - 1) // 2 * a
    problem = constrained_ranking(np.outer(1.0 / np.log2(np.arange(2.0, k + 2.0)), rng.normal(size=n)), stated)
    solution = solve(problem)
    assert genre[solution.order[0]] == 0
    assert solution.gap <= problem.rounding


# A set stated in cvxpy is the set stated in words: rows, limits, cells and names; what is no row is refused.


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
    "a declared limit": (cp.Variable((K, N), bounds=[0, 0.5]), [], "declared with bounds; use constraints"),
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
