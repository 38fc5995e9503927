"""Programs whose numbers span twelve orders of magnitude, with optima that are known as fractions.

A point, duals and reduced costs are drawn first, complementary to each other; right sides and costs follow. All numbers
are short integers times powers of two, so that these products are doubles exactly.
"""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
from scipy.sparse import csr_array

from formulations import LinearProgram, QuadraticProgram, RankingSet, constrained_ranking
from formulations.constraints.constraint import violations

INF = np.inf


def exact_inner(left, right):
    return sum(
        (Fraction(a) * Fraction(b) for a, b in zip(np.ravel(left).tolist(), np.ravel(right).tolist(), strict=True)),
        Fraction(0),
    )


class Scales:
    """Powers of two for rows, columns, duals and points: moderate ones, or up to 2^20 (six orders) each way."""

    def __init__(self, random, m, n):
        far = int(random.choice([0, 6, 12, 20]))
        near = min(far, 10)
        self.row, self.column = (2.0 ** random.integers(-far, far + 1, size) for size in (m, n))
        self.dual, self.point = (2.0 ** random.integers(-near, near + 1, size) for size in (m, n))


def constraints(random, m, n):
    """Matrix, limits of rows and columns, an optimal point, and for a minimum the gradient that its duals allow."""
    scales = Scales(random, m, n)
    plain = random.integers(-4, 5, (m, n)) * (random.random((m, n)) < random.choice([0.4, 0.7, 1.0]))
    x = np.where(random.random(n) < 0.5, random.integers(1, 9, n), 0)
    if n > 2 and random.random() < 0.3:  # a free variable as a difference
        plain[:, -1], x[-1] = -plain[:, 0], 0
        scales.column[-1], scales.point[-1] = scales.column[0], scales.point[0]
    if m > 1 and random.random() < 0.3:  # a dependent row
        plain[-1] = plain[0]
    matrix = plain * scales.row[:, None] * scales.column
    point = x * scales.point / scales.column
    kind = random.integers(0, 4, m)  # equal, at least, at most, loose
    y = np.where(random.random(m) < 0.7, random.integers(1, 9, m), 0)
    y = np.where(kind == 0, y * random.choice([-1, 1], m), np.where(kind == 1, y, np.where(kind == 2, -y, 0)))
    used = np.array([float(exact_inner(row, point)) for row in matrix])
    loose = 8.0 * scales.row * random.integers(1, 9, m) * 2.0**10
    row_lower = np.select([kind == 0, kind == 1, kind == 2], [used, used, -INF], used - loose)
    row_upper = np.select([kind == 0, kind == 1, kind == 2], [used, INF, used], used + loose)
    # Limits: at 0 without an upper one, at both ends, none, or at 0 from below.
    sort = random.choice(4, n, p=[0.6, 0.2, 0.1, 0.1])
    point = np.where(sort == 3, -point, point)
    if (sort == 3).any():
        used = np.array([float(exact_inner(row, point)) for row in matrix])
        row_lower = np.select([kind == 0, kind == 1, kind == 2], [used, used, -INF], used - loose)
        row_upper = np.select([kind == 0, kind == 1, kind == 2], [used, INF, used], used + loose)
    wide = 16.0 * scales.point / scales.column
    lower = np.select([sort == 1, sort == 0], [np.zeros(n), np.zeros(n)], -INF)
    upper = np.select([sort == 1, sort == 3], [wide, np.zeros(n)], INF)
    d = random.choice([0, 0, 1, 5], n) * (point == 0.0)
    d = np.where(sort == 3, -d, np.where(sort == 2, 0, d)) * scales.column * 2.0 ** random.integers(-6, 7, n)
    if n > 2 and (plain[:, -1] == -plain[:, 0]).all():
        d[[0, -1]] = 0.0
    duals = y * scales.dual / scales.row
    gradient = np.array([float(exact_inner(matrix[:, j], duals) + Fraction(d[j])) for j in range(n)])
    return matrix, (row_lower, row_upper, lower, upper), point, gradient


def linear_program(seed):
    """A linear program and its optimum."""
    random = np.random.default_rng([51, seed])
    m, n = int(random.integers(1, 8)), int(random.integers(1, 12))
    matrix, limits, point, cost = constraints(random, m, n)
    maximum = bool(random.random() < 0.5)
    cost = -cost if maximum else cost
    return LinearProgram(cost, csr_array(matrix), *limits, is_maximization=maximum), exact_inner(cost, point)


def quadratic_program(seed):
    """A strictly convex quadratic program and its optimum."""
    random = np.random.default_rng([52, seed])
    m, n = int(random.integers(1, 5)), int(random.integers(1, 7))
    matrix, limits, point, gradient = constraints(random, m, n)
    root = random.integers(-3, 4, (n, n))
    size = np.maximum(np.abs(gradient), 1e-3)
    scale = 2.0 ** np.round(np.log2(size / np.maximum(np.abs(point), 2.0**-6)).clip(-12, 12) / 2.0)
    hessian = (root @ root.T + np.eye(n)) * scale[:, None] * scale
    bent = [exact_inner(row, point) for row in hessian]
    linear = np.array([float(Fraction(g) - b) for g, b in zip(gradient.tolist(), bent, strict=True)])
    if any(Fraction(q) + b != Fraction(g) for q, b, g in zip(linear.tolist(), bent, gradient.tolist(), strict=True)):
        return quadratic_program(seed + 1_000_000)
    optimum = exact_inner(linear, point) + sum(b * Fraction(x) for b, x in zip(bent, point.tolist(), strict=True)) / 2
    return QuadraticProgram(csr_array(hessian), linear, csr_array(matrix), *limits), optimum


def singular_program(seed):
    """A quadratic program whose hessian has a null space, most variables without limits, and its optimum."""
    random = np.random.default_rng([57, seed])
    m, n = int(random.integers(1, 6)), int(random.integers(2, 8))
    root, matrix = random.integers(-3, 4, (n, int(random.integers(0, n)))), random.integers(-4, 5, (m, n))
    if random.random() < 0.3:  # a variable as a difference
        root[-1], matrix[:, -1] = -root[0], -matrix[:, 0]
    point, kind = random.integers(-8, 9, n) / 4, random.integers(0, 4, m)  # equal, at least, at most, loose
    duals = random.integers(0, 9, m) * np.where(kind == 0, random.choice([-1, 1], m), np.array([0, 1, -1, 0])[kind])
    matrix = matrix * 2.0 ** random.integers(-10, 11, (m, 1))
    hessian, used = (root @ root.T).astype(float), matrix @ point
    linear = matrix.T @ duals - hessian @ point
    rows = np.where(kind == 2, -INF, used - 5.0 * (kind == 3)), np.where(kind == 1, INF, used + 5.0 * (kind == 3))
    lower = np.where(random.random(n) < 0.2, point - 1.0, -INF)
    problem = QuadraticProgram(csr_array(hessian), linear, csr_array(matrix), *rows, lower, np.full(n, INF))
    return problem, exact_inner(linear, point) + exact_inner(hessian @ point, point) / 2


def integer_program(seed):
    """An integer program with costs of many magnitudes and its optimum by enumeration; None if it is infeasible."""
    random = np.random.default_rng([53, seed])
    m, n = int(random.integers(1, 4)), int(random.integers(2, 7))
    matrix = (random.integers(-5, 6, (m, n)) * (random.random((m, n)) < 0.8)).astype(float)
    if random.random() < 0.4:  # a large coefficient
        matrix[0, int(random.integers(n))] = -float(10 ** random.integers(3, 8))
    lower, upper = random.integers(-1, 1, n).astype(float), random.integers(1, 3, n).astype(float)
    middle = matrix @ random.integers(lower.astype(int), upper.astype(int) + 1)
    kind = random.integers(0, 3, m)
    row_lower = np.where(kind == 1, -INF, middle - random.integers(0, 2, m))
    row_upper = np.where(kind == 0, INF, middle + random.integers(0, 2, m))
    cost = random.integers(-9, 10, n) * 10.0 ** random.integers(-3, int(random.choice([0, 4, 10])), n)
    maximum = bool(random.random() < 0.5)
    best = None
    for choice in product(*(range(int(a), int(b) + 1) for a, b in zip(lower, upper, strict=True))):
        used = matrix @ choice
        if (used >= row_lower).all() and (used <= row_upper).all():
            value = exact_inner(cost, choice)
            better = best is None or (value > best if maximum else value < best)
            best = value if better else best
    limits = (row_lower, row_upper, lower, upper)
    problem = LinearProgram(cost, csr_array(matrix), *limits, is_maximization=maximum, integer=np.ones(n, dtype=bool))
    return problem, best


def big_m_program(seed):
    """Amounts x of at most u that cost f to switch on, by rows x <= M b or x + M b <= M, and the optimum by
    enumeration; every second program has integer amounts."""
    random = np.random.default_rng([58, seed])
    n = int(random.integers(1, 5))
    amount, profit, fee, total = (random.integers(1, most, n) for most in (20, 9, 60, 40))
    large, off = 10.0 ** random.integers(6, 13, n), random.random(n) < 0.5  # off: b = 1 switches off
    best = 0
    for on in product((0, 1), repeat=n):
        left, value = int(total[0]), -int(fee @ on)
        for i in np.argsort(-profit):
            taken = min(left, int(amount[i])) * on[i]
            left, value = left - taken, value + taken * int(profit[i])
        best = max(best, value)
    sign = np.append(random.choice([1.0, -1.0], n), 1.0)  # rows with an upper or a lower limit
    switches = np.hstack([np.eye(n), np.diag(np.where(off, large, -large))])
    matrix = sign[:, None] * np.vstack([switches, np.repeat([1.0, 0.0], n)])
    side = sign * np.append(np.where(off, large, 0.0), total[0])
    rows = np.where(sign > 0.0, -INF, side), np.where(sign > 0.0, side, INF)
    limits = np.zeros(2 * n), np.append(amount, np.ones(n))
    cost, whole = np.append(profit, np.where(off, fee, -fee)), np.arange(2 * n) >= n * (seed % 2)
    problem = LinearProgram(cost, csr_array(matrix), *rows, *limits, integer=whole)
    return problem, Fraction(best + int(fee[off].sum()))


def soft_set(seed):
    """A ranking under soft constraints, penalties from 1e2 to 1e12, and its optimum by enumeration."""
    random = np.random.default_rng([54, seed])
    n = int(random.integers(4, 7))
    k = int(random.integers(2, min(n, 4) + 1))
    rules, penalty = RankingSet(n, k), 10.0 ** random.integers(2, 13)
    for name in "abcd"[: int(random.integers(2, 5))]:
        documents = random.choice(n, int(random.integers(1, n)), replace=False).tolist()
        kind = random.integers(0, 4)
        first = range(int(random.integers(1, k + 1)))
        if kind == 0:
            rules = rules.at_most(int(random.integers(0, 2)), documents=documents, positions=first, name=name)
        elif kind == 1:
            rules = rules.at_least(int(random.integers(1, k + 1)), documents=documents, name=name)
        elif kind == 2:
            rules = rules.precedes(*random.choice(n, 2, replace=False).tolist(), name=name)
        else:
            rules = rules.forbid(documents[:1], first, name=name)
        rules = rules.penalized(name, penalty=penalty * float(random.choice([1, 2, 0.3, 1e-3, 7.7])))
    profit = random.normal(size=(k, n)) * 10.0 ** random.integers(-3, 3)

    def value(order):
        charge = sum(
            Fraction(one.penalty) * Fraction(sum(violations([one.constraint], np.array(order), n).values()))
            for one in rules.soft_constraints
        )
        return sum(Fraction(profit[i, j]) for i, j in enumerate(order)) - charge

    return constrained_ranking(profit, rules), max(value(order) for order in permutations(range(n), k))


def sparse_program(seed):
    """A linear program as Netlib has them, and its optimum: sparse, mostly equations, x >= 0 without an upper limit,
    degenerate, some badly scaled, with free or split variables or a row too many."""
    random = np.random.default_rng([55, seed])
    m = int(random.integers(10, 60))
    n = int(m * random.uniform(1.3, 3.0))
    matrix = random.choice([1.0, -1.0, 0.5, 2.0, 0.3125, -1.0625], (m, n))
    matrix *= random.random((m, n)) < min(1.0, 4.0 / m + 0.03)
    matrix[random.integers(0, m, n), np.arange(n)] = 1.0
    if random.random() < 0.5:
        matrix *= 2.0 ** random.integers(-10, 11, n) * 2.0 ** random.integers(-6, 7, m)[:, None]
    if random.random() < 0.4:
        matrix[-1] = matrix[0] + matrix[1]
    if random.random() < 0.4:
        matrix[:, -1] = -matrix[:, 0]
    unit = 2.0 ** np.frexp(np.abs(matrix).max(axis=0))[1]
    point = np.where(random.random(n) < random.choice([0.2, 0.4]), random.integers(1, 20, n) / unit, 0.0)
    free = (random.random(n) < 0.1) & (random.random() < 0.5)
    kind = random.choice(3, m, p=[0.6, 0.2, 0.2])
    duals = np.where(random.random(m) < 0.7, random.integers(-32, 33, m) / 16, 0.0)
    duals = np.where(kind == 1, np.abs(duals), np.where(kind == 2, -np.abs(duals), duals))
    slack = np.where((point > 0.0) | free, 0.0, random.choice([0, 1, 3.5], n, p=[0.3, 0.4, 0.3]) * unit)
    if (matrix[:, -1] == -matrix[:, 0]).all():
        slack[[0, -1]] = 0.0
    cost, used = matrix.T @ duals + slack, matrix @ point
    sides = np.where(kind == 2, -INF, used), np.where(kind == 1, INF, used)
    upper = np.where(random.random(n) < 0.1, point + 5.0 / unit, INF)
    limits = np.where(free, -INF, 0.0), np.where(free, INF, upper)
    return LinearProgram(cost, csr_array(matrix), *sides, *limits, is_maximization=False), exact_inner(cost, point)
