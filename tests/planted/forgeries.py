"""Forged proofs, witnesses and solutions, and solvers that lie; each judged by means that share nothing with what is
attacked: all subdeterminants, all orders, rational numbers.

A try is lost where a falsehood is believed, or where anything but a typed error is raised.
"""

from dataclasses import fields, is_dataclass, replace
from enum import Enum
from fractions import Fraction
from itertools import combinations, pairwise, permutations

import networkx as nx
import numpy as np
from problems.integrality_matrices import (
    R10,
    complete_graph,
    is_totally_unimodular,
    overlapping_groups,
    pivoted,
    ranking_rows,
    set_program,
)

from formulations import (
    Proof,
    RankingSet,
    Solution,
    Status,
    Witness,
    certify,
    check_evidence,
    constrained_ranking,
    function_solver,
    solve,
    solve_batch,
    verify_integrality,
)
from formulations.constraints.constrained_ranking import ConstrainedRanking, PenalizedRanking
from formulations.errors import FormulationError
from formulations.integrality.evidence import Coloring, Families, Part, Parts, RowOrder, Signings, Tree, Vertex
from formulations.problems.assignment import Assignment
from formulations.problems.linear_program import LinearProgram
from formulations.problems.min_cost_flow import MinCostFlow
from formulations.problems.ranking import RankTwoAssignment, RankTwoBatch
from formulations.solvers.batch_solution import BatchSolution
from formulations.solvers.solver import SolverResult
from formulations.testing.instances import FORMS, instances

__all__ = ["ATTACKS", "attack", "forged"]

GARBAGE = (
    None, "7", "", b"x", 1j, float("nan"), float("inf"), -(2**63), 2**200, True, (), [], {}, object(), np.int8(-128),
    np.zeros(0), np.array(3), np.array([1j, -1j]), np.array(["a"]), np.array([None]), np.full(3, np.nan), slice(None),
)  # fmt: skip

EXTREMES = (0, 1, -1, 2, -2, 127, -128, 2**31, 2**62, 2**63 - 1, -(2**63))


def forged(value, random, times=1):
    """`value` with some change, or something else altogether."""
    for _ in range(times):
        value = _changed(value, random)
    return value


def _changed(value, random):
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value) if field.name != "problem"]
        name = names[random.integers(len(names))]
        return replace(value, **{name: forged(getattr(value, name), random)})
    if random.random() < 0.15:
        return GARBAGE[random.integers(len(GARBAGE))]
    if isinstance(value, np.ndarray):
        return _changed_array(value, random)
    if isinstance(value, tuple) and value:
        return _changed_tuple(value, random)
    if isinstance(value, Enum):
        return [*type(value)][random.integers(len(type(value)))]
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return ("series-parallel", "bipartite", "enumeration", "network", value + " ")[random.integers(5)]
    if isinstance(value, int | float | Fraction):
        steps = (1, -1, -value, value, 1e-6, 1e-3 * abs(value), float("nan"), 2**70)
        return value + steps[random.integers(len(steps))]
    return GARBAGE[random.integers(len(GARBAGE))]


def _changed_tuple(value, random):
    place = int(random.integers(len(value)))
    kinds = (
        lambda: value[:-1],
        lambda: (*value, value[place]),
        lambda: value[::-1],
        lambda: [*value],
        lambda: (*value[:place], forged(value[place], random), *value[place + 1 :]),
        lambda: (value[place], *value[1:]),
    )
    return kinds[random.integers(len(kinds))]()


def _changed_array(value, random):
    if value.dtype.kind not in "biuf":  # forged before
        return GARBAGE[random.integers(len(GARBAGE))]
    if value.size and random.random() < 0.6:
        changed = value.copy()
        place = int(random.integers(value.size))
        if value.dtype.kind == "f":
            changed.flat[place] += random.choice([1e-9, -1e-9, 1.0, -1.0, 1e300, -1e300, np.nan, np.inf])
        elif value.dtype.kind == "i":
            low = np.iinfo(value.dtype)
            changed.flat[place] = np.clip(EXTREMES[random.integers(len(EXTREMES))], low.min, low.max)
        return changed
    kinds = (
        lambda: value * 1j,
        lambda: value.astype(object),
        lambda: value.astype(np.float64),
        lambda: value.astype(np.bool_),
        lambda: np.ma.masked_array(value, mask=True),
        lambda: value[:-1] if value.ndim else value,
        lambda: np.concatenate([value, value]) if value.ndim else value,
        lambda: value[None],
        lambda: value.ravel(),
        lambda: random.permutation(value) if value.ndim else value,
        lambda: -value if value.dtype.kind != "b" else value,
        lambda: value.tolist(),
        lambda: np.zeros_like(value),
    )
    return kinds[random.integers(len(kinds))]()


# Proofs


def holds(matrix, evidence):
    """Whether evidence of one kind is what it should be, from its definition; True for evidence in parts, which is
    judged by the matrix alone."""
    rows = len(matrix)
    if isinstance(evidence, Coloring):
        for column in matrix.T:
            held = np.flatnonzero(column)
            if held.size > 2:
                return False
            if held.size == 2 and (column[held[0]] == column[held[1]]) == (
                evidence.side[held[0]] == evidence.side[held[1]]
            ):
                return False
        return set(evidence.side.tolist()) <= {0, 1}
    if isinstance(evidence, RowOrder):
        if sorted(evidence.order.tolist()) != list(range(rows)):
            return False
        places = [np.flatnonzero(column) for column in matrix[evidence.order].T]
        return all(not p.size or p[-1] - p[0] + 1 == p.size for p in places) and all(
            len(set(column[column != 0].tolist())) <= 1 for column in matrix.T
        )
    if isinstance(evidence, Families):
        if any(len(set(row[row != 0].tolist())) > 1 for row in matrix):
            return False
        sets = [frozenset(np.flatnonzero(row).tolist()) for row in matrix]
        return all(
            one <= other or other <= one or not one & other
            for family in (0, 1)
            for one, other in combinations([sets[i] for i in np.flatnonzero(evidence.family == family)], 2)
        ) and set(evidence.family.tolist()) <= {0, 1}
    if isinstance(evidence, Signings):
        chosen = (np.arange(2**rows)[:, None] >> np.arange(rows)) & 1
        signs = evidence.signs.astype(np.int64)
        return bool((signs * signs == chosen).all() and (np.abs(signs @ matrix) <= 1).all())
    if isinstance(evidence, Tree):
        return _is_network(matrix, evidence.tail.tolist(), evidence.head.tolist())
    return True


def _is_network(matrix, tail, head):
    tree = nx.Graph()
    tree.add_nodes_from(range(matrix.shape[0] + 1))
    tree.add_edges_from(zip(tail, head, strict=True))
    if len(tree) != matrix.shape[0] + 1 or not nx.is_tree(tree):
        return False
    arcs = {(t, h): i for i, (t, h) in enumerate(zip(tail, head, strict=True))}
    for column in matrix.T:
        found = False
        for start, end in permutations(tree, 2):
            way = nx.shortest_path(tree, start, end)
            path = np.zeros(matrix.shape[0], dtype=int)
            for step in pairwise(way):
                if step in arcs:
                    path[arcs[step]] = 1
                else:
                    path[arcs[step[::-1]]] = -1
            found |= (path == column).all()
        if column.any() and not found:
            return False
    return True


PROVED = [
    np.array([[1, 0, 1, 1], [1, 1, 0, 0], [0, -1, 0, 1], [0, 0, 1, 0]]),
    np.array([[low <= row <= high for low, high in combinations(range(5), 2)] for row in range(5)]) * 1,
    np.vstack([*ranking_rows(2, 3)[:2], [[1, 1, 0] * 2]]),
    pivoted(complete_graph(5), 0, 0),
    R10,
]


def forge_a_proof(random):
    """The proof of a matrix, changed, held against this matrix or another; what fails it."""
    if random.random() < 0.4:
        shape = random.integers(1, 5, 2)
        matrix = random.integers(-1, 2, shape) * (random.random(shape) < 0.7)
    else:
        matrix = PROVED[random.integers(len(PROVED))]
    truth = verify_integrality(matrix)
    if not isinstance(truth, Proof):
        truth = Proof("enumeration", matrix.shape, Signings(_imaginary(matrix.shape[0], random)))
    if random.random() < 0.5:
        matrix = matrix.copy()
        place = tuple(random.integers(size) for size in matrix.shape)
        matrix[place] = random.integers(-1, 2)
    claim = _wrapped(forged(truth, random, int(random.integers(0, 4))), matrix, random)
    verdict = check_evidence(matrix, claim)
    if verdict is None:
        return None
    if not is_totally_unimodular(matrix):
        return f"{matrix.tolist()} is proved by {claim!r}"
    turned = matrix.T if claim.transposed else matrix
    return None if holds(turned, claim.evidence) else f"{claim!r} is believed of {matrix.tolist()}"


def _imaginary(rows, random):
    """Signs of all sets of rows whose absolute values are right."""
    chosen = (np.arange(2**rows)[:, None] >> np.arange(rows)) & 1
    return chosen * random.choice([1j, -1j, 1, -1], chosen.shape)


def _wrapped(claim, matrix, random):
    """The claim, or parts that hold it, some of them themselves."""
    if random.random() < 0.9 or not isinstance(claim, Proof):
        return claim
    lines = [np.arange(size) for size in matrix.shape]
    part = Part(*lines, claim)
    whole = Proof(claim.kind, matrix.shape, Parts((), (part,)))
    if random.random() < 0.3:
        object.__setattr__(part, "proof", whole)
    return whole


# Witnesses

REFUTED = [set_program(overlapping_groups()), np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]]), np.array([[1, 1], [-1, 1]])]


def forge_a_witness(random):
    problem = REFUTED[random.integers(len(REFUTED))]
    if not isinstance(problem, LinearProgram):
        size = int(random.integers(1, 4))
        grown = np.zeros((problem.shape[0] + size, problem.shape[1] + size), dtype=int)
        grown[: problem.shape[0], : problem.shape[1]] = problem
        grown[problem.shape[0] :, problem.shape[1] :] = random.integers(-1, 2, (size, size))
        problem = grown
    truth = verify_integrality(problem, seed=int(random.integers(3)))
    claim = forged(truth, random, int(random.integers(1, 4)))
    if check_evidence(problem, claim) != "witness":
        return None
    matrix = problem.matrix.toarray() if isinstance(problem, LinearProgram) else problem
    part = matrix[list(claim.rows)][:, list(claim.columns)].astype(float)
    true = round(np.linalg.det(part))
    if type(claim) is not Witness or true != claim.determinant or abs(true) < 2:
        return f"determinant {true}: {claim!r}"
    size = len(part)
    smaller = (np.delete(np.delete(part, i, 0), j, 1) for i in range(size) for j in range(size))
    if claim.minimal and not all(map(is_totally_unimodular, smaller)):
        return f"not minimal: {claim!r}"
    return None if claim.vertex is None or _is_vertex(problem, claim.vertex) else f"no vertex: {claim.vertex!r}"


def _is_vertex(problem, vertex):
    if type(vertex) is not Vertex:
        return False
    x = [Fraction(int(number), vertex.denominator) for number in vertex.numerators.tolist()]
    matrix = [[Fraction(value) for value in row] for row in problem.matrix.toarray().tolist()]
    held = [sum(a * v for a, v in zip(row, x, strict=True)) for row in matrix]
    tight = []
    for values, low, high, normals in (
        (held, problem.row_lower, problem.row_upper, problem.matrix.toarray()),
        (x, problem.lower, problem.upper, np.eye(len(x))),
    ):
        for value, least, most, normal in zip(values, low.tolist(), high.tolist(), normals, strict=True):
            if not least <= value <= most:
                return False
            tight += [normal] if value in (least, most) else []
    return any(v.denominator > 1 for v in x) and np.linalg.matrix_rank(np.array(tight)) == len(x)


# Solutions

SOLVED = [(problem, known, {}) for form in FORMS for _, problem, known in instances(form)]


def solved(place):
    """A problem, its optimum where that is known, and a true solution."""
    problem, known, kept = SOLVED[place]
    if not kept:
        kept["solution"] = solve(problem)
    return problem, known, kept["solution"]


def forge_a_solution(random):
    problem, known, truth = solved(int(random.integers(len(SOLVED))))
    claim = forged(truth, random, int(random.integers(1, 4)))
    certificate = certify(problem, claim, exact=bool(random.integers(2)))
    return _falsehood(problem, known, claim) or _wrong_certificate(problem, known, certificate)


def _wrong_certificate(problem, known, certificate):
    sign = 1 if problem.is_maximization else -1
    if known is not None and sign * float(certificate.bound) < sign * known - _slack(problem):
        return f"certified bound {float(certificate.bound)!r} of {known!r}"
    return None


def _slack(problem):
    return problem.rounding + 1e-6 * (problem.tolerance > 0.0) * max(problem.scale, 1.0)


def _falsehood(problem, known, claim):
    """What is false of a solution, by enumeration or by an optimum that is known otherwise."""
    sign = 1 if problem.is_maximization else -1
    if not isinstance(claim, Solution) or problem.violation(claim.x) > problem.tolerance:
        return None if isinstance(claim, Solution) and claim.status is Status.INACCURATE else f"infeasible: {claim!r}"
    if isinstance(problem, RankTwoAssignment | Assignment | ConstrainedRanking):
        worth = problem.assignment().profit if isinstance(problem, RankTwoAssignment) else problem.profit
        order = claim.x.tolist()
        if len(set(order)) != len(worth) or min(order) < 0:
            return f"{order} is no order"
        value = sum((Fraction(worth[i, j]) for i, j in enumerate(order)), Fraction(0))
        if isinstance(problem, PenalizedRanking):
            value -= Fraction(problem.charge * problem.admissible.charge(order))
        if abs(value - Fraction(float(claim.value))) > problem.rounding:
            return f"value {claim.value!r} of {float(value)!r}"
    elif not abs(problem.value(claim.x) - claim.value) <= problem.rounding:
        return f"value {claim.value!r} of {problem.value(claim.x)!r}"
    if known is None:
        return None
    if sign * claim.bound < sign * known - _slack(problem):
        return f"bound {claim.bound!r} of the optimum {known!r}"
    if claim.status is Status.OPTIMAL and sign * claim.value < sign * known - 2.0 * _slack(problem):
        return f"{claim.value!r} is called optimal, and {known!r} is"
    return None


# Proofs by cases


def forge_cases(random):
    """Overlapping groups, where the relaxation is fractional: the proof by cases, with cases left out or changed."""
    groups = [(0, 1), (1, 2), (0, 2)]
    admissible = RankingSet(5, 2)
    for name, group in zip("abc", groups, strict=True):
        admissible = admissible.at_most(1, documents=group, name=name)
    problem = constrained_ranking(
        np.outer([2.0, 2.0], [4.0, 4.0, 4.0, 1.0, 0.5]) + 0.1 * random.normal(size=(2, 5)), admissible
    )
    truth = solve(problem)
    y = truth.y
    if y.ndim == 2 and random.random() < 0.8:
        y = y[random.random(len(y)) < 0.7]
    bound = truth.bound - random.choice([0.0, 1e-3, 1.0])
    claim = replace(truth, y=forged(y, random, int(random.integers(0, 2))), bound=bound, status=Status.BOUNDED_GAP)
    certify(problem, claim, exact=True)
    best = max(problem.value(np.array(o)) for o in permutations(range(5), 2) if admissible.is_feasible(list(o)))
    return None if claim.bound >= best - problem.rounding else f"bound {claim.bound} of {best}"


# Solvers that lie


def _lie(problem, known, random):
    """Some answer to a problem of any form."""
    try:
        true = solve(problem)
        answer = SolverResult(true.x, true.y, "all is well", {"reported_bound": true.bound})
    except FormulationError:
        answer = SolverResult(np.zeros(3))
    lies = (
        lambda: forged(answer, random, int(random.integers(1, 4))),
        lambda: forged(answer.x, random),
        lambda: replace(answer, x=random.permutation(answer.x)),
        lambda: replace(answer, y=None if answer.y is None else answer.y * random.normal()),
        lambda: GARBAGE[random.integers(len(GARBAGE))],
        lambda: forged(true, random, 2),
    )
    return lies[random.integers(len(lies))]()


def hear_a_liar(random):
    if random.random() < 0.2:
        return _hear_a_liar_in_batches(random)
    problem, known, _ = solved(int(random.integers(len(SOLVED))))
    accepts = (type(problem), Assignment, MinCostFlow, LinearProgram)[random.integers(4)]
    liar = function_solver(lambda asked: _lie(asked, known, random), accepts=accepts, name="liar")
    solution = solve(problem, liar)
    false = _falsehood(problem, known, solution)
    if false is None:
        certify(problem, solution)
    return false


class LiarInBatches:
    """Says anything of a batch."""

    accepts = (RankTwoAssignment,)
    package = ""
    spec = "liar"

    def __init__(self, random):
        self.random = random

    def reason_unsupported(self, problem):
        return None

    def solve(self, problem, warm_start=None):
        raise AssertionError("it takes batches")

    def solve_batch(self, batch):
        order = np.concatenate([self.random.permutation(n) for n in np.diff(batch.offsets)])
        high = np.full(len(batch), -1e9)
        said = BatchSolution(batch, order, high, high, np.zeros(len(batch), dtype=np.int8), ("liar",), "exact")
        return forged(said, self.random, int(self.random.integers(0, 3)))


def _hear_a_liar_in_batches(random):
    sizes = random.integers(1, 5, 3)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    falling = np.concatenate([1.0 / np.arange(1, n + 1) for n in sizes])
    batch = RankTwoBatch(
        random.normal(size=offsets[-1]), random.integers(0, 3, offsets[-1]) * 1.0, falling, falling, offsets
    )
    answer = solve_batch(batch, LiarInBatches(random))
    for query in range(len(batch)):
        problem = batch[query]
        orders = permutations(range(problem.documents), problem.positions)
        best = max(problem.value(np.array(order)) for order in orders)
        if not answer.value[query] <= best + problem.rounding or not answer.bound[query] >= best - problem.rounding:
            return f"query {query}: {answer.value[query]} <= {best} <= {answer.bound[query]}"
    return None


ATTACKS = {
    "proofs": forge_a_proof,
    "witnesses": forge_a_witness,
    "solutions": forge_a_solution,
    "proofs by cases": forge_cases,
    "lying solvers": hear_a_liar,
}


def attack(kind, tries, seed):
    """What was lost of so many tries, in words; and how many were refused."""
    lost, refused = [], 0
    for number in range(tries):
        random = np.random.default_rng([seed, number])
        try:
            false = ATTACKS[kind](random)
        except FormulationError:
            refused += 1
            continue
        except Exception as error:
            false = f"raises {type(error).__name__}: {error}"
        if false is not None:
            lost.append(f"{kind}, seed {seed}, try {number}: {false}")
    return lost, refused
