"""Evidence of total unimodularity and against it: what is true is confirmed, lies are refuted."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from planted.forgeries import forged
from problems.integrality_matrices import (
    R10,
    complete_graph,
    is_totally_unimodular,
    overlapping_groups,
    pivoted,
    ranking_rows,
    scrambled,
    set_program,
    three_sum,
    three_sum_part,
)
from scipy.sparse import csr_array

from formulations import Proof, Witness, check_evidence, verify_integrality
from formulations.errors import CertificateError
from formulations.integrality.checker import HARDNESS, three_sum_parts
from formulations.integrality.determinant import determinant, entries_of, rank
from formulations.integrality.evidence import (
    Coloring,
    Families,
    Part,
    Parts,
    Pivot,
    Removal,
    RowOrder,
    Signings,
    ThreeSum,
    Tree,
    TwoSum,
)
from formulations.integrality.proofs import proof_of


def lies(verdict):
    """False claims, each one change away from the truth."""
    evidence = verdict.evidence
    (field,) = [name for name in vars(evidence) if name not in ("head",)]
    values = np.array(getattr(evidence, field))
    for place in range(min(values.size, 8)):
        changed = values.copy()
        changed.flat[place] = 1 - changed.flat[place] if verdict.kind != "network" else values.flat[place] ^ 1
        yield replace(verdict, evidence=replace(evidence, **{field: changed}))
    yield replace(verdict, evidence=replace(evidence, **{field: values[:-1]}))
    yield replace(verdict, kind="series-parallel")
    yield replace(verdict, shape=(1, 1))


@pytest.mark.parametrize(
    ("matrix", "kind"),
    [
        (np.array([[1, 0, 1, 1], [1, 1, 0, 0], [0, -1, 0, 1], [0, 0, 1, 0]]), "bipartite"),
        (
            np.array([[low <= row <= high for low, high in combinations(range(6), 2)] for row in range(6)]) * 1,
            "interval",
        ),
        (np.vstack([*ranking_rows(3, 4)[:2], [[1, 1, 0, 0] * 3]]), "laminar"),
        (pivoted(complete_graph(6), 0, 0), "network"),
        (R10, "enumeration"),
    ],
)
def test_planted_lies_are_refuted(matrix, kind):
    verdict = verify_integrality(matrix)
    assert verdict.kind == check_evidence(matrix, verdict) == kind
    assert not verdict.transposed
    for lie in lies(verdict):
        with pytest.raises(CertificateError):
            check_evidence(matrix, lie)


def test_lies_of_witnesses_are_refuted():
    program = set_program(overlapping_groups())
    truth = verify_integrality(program)
    vertex = truth.vertex
    for change in (
        {"determinant": -truth.determinant},
        {"determinant": 3},
        {"rows": truth.rows[::-1]},
        {"rows": (truth.rows[0],) * len(truth.rows)},
        {"columns": truth.columns[1:]},
        {"columns": (*truth.columns[1:], 999)},
        {"row_names": ("a",) * len(truth.rows)},
        {"column_names": truth.column_names[::-1]},
        {"entries": tuple((i, j, -value) for i, j, value in truth.entries)},
        {"entries": truth.entries[1:]},
        {"vertex": replace(vertex, numerators=vertex.numerators * 0)},
        {"vertex": replace(vertex, denominator=2 * vertex.denominator)},
        {"vertex": replace(vertex, objective=vertex.objective + 1)},
    ):
        with pytest.raises(CertificateError):
            check_evidence(program, replace(truth, **change))


def test_a_witness_that_is_not_minimal_must_not_say_so():
    matrix = np.eye(4, dtype=int)
    matrix[:3, :3] = [[1, 1, 0], [0, 1, 1], [1, 0, 1]]
    names = tuple(f"row {i}" for i in range(4)), tuple(f"column {j}" for j in range(4))
    claim = Witness((0, 1, 2, 3), (0, 1, 2, 3), 2, entries_of(csr_array(matrix)), *names, minimal=False)
    assert check_evidence(matrix, claim) == "witness"
    with pytest.raises(CertificateError, match="minimal"):
        check_evidence(matrix, replace(claim, minimal=True))


def test_proofs_do_not_hold_for_other_matrices():
    proof = verify_integrality(R10)
    with pytest.raises(CertificateError):
        check_evidence(np.abs(R10) - 2 * np.eye(5, dtype=int), proof)
    with pytest.raises(CertificateError, match="other than"):
        check_evidence(2 * R10, proof)


@pytest.mark.parametrize("nodes", [6, 8])
def test_two_sums_of_graphic_and_cographic_matrices_are_proved(nodes):
    """Joined over a row and a column: totally unimodular, and no network matrix."""
    left, right = pivoted(complete_graph(nodes), 0, 0), pivoted(complete_graph(nodes), 0, 0).T
    joint = np.outer(left[:, 0], right[0])
    matrix = np.block([[left, joint], [np.zeros((right.shape[0], left.shape[1]), dtype=int), right]])
    assert proof_of(matrix) is None
    verdict = verify_integrality(matrix)
    assert verdict.kind == check_evidence(matrix, verdict) == "network"
    assert "2-sum of two matrices" in str(verdict)
    for lie in (
        {"row": int(np.setdiff1d(np.arange(len(matrix)), verdict.evidence.rows)[0])},
        {"rows": verdict.evidence.rows[1:]},
        {"columns": verdict.evidence.columns[1:]},
        {"first": verdict.evidence.second},
    ):
        with pytest.raises(CertificateError):
            check_evidence(matrix, replace(verdict, evidence=replace(verdict.evidence, **lie)))
    matrix[0, -1] = 1 - matrix[0, -1]
    broken = verify_integrality(matrix)
    assert isinstance(broken, Witness)
    assert check_evidence(matrix, broken) == "witness"


THREE_SUM = np.array(
    [
        [-1, 0, 0, -1, 1, -1, -1, -1, -1, 0, 0],
        [1, 1, -1, 0, 0, 1, 1, 0, 0, 0, 0],
        [1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 0],
        [-1, -1, 0, 0, 0, 0, -1, 0, 0, 0, 0],
        [0, 0, 1, 1, -1, 0, 0, 0, 1, -1, 1],
        [0, 0, 1, 1, -1, 0, 0, 0, 0, -1, 0],
        [0, 0, -1, -1, 1, 0, 0, 0, -1, 0, -1],
        [0, 0, 1, 1, -1, 0, 0, 0, 0, 0, 0],
        [0, 0, 1, 1, -1, 0, 0, 0, 1, 0, 0],
        [0, 0, -1, -1, 1, 0, 0, -1, -1, 1, 0],
        [0, 0, 0, 0, 0, 0, 0, -1, -1, 0, 0],
    ]
)  # all its 705,431 subdeterminants are -1, 0 or 1


def random_three_sum(size, seed):
    """A network matrix and the transpose of one, and the 3-sum of them."""
    rng = np.random.default_rng([size, seed])
    parts = [three_sum_part(rng, size // 3, size - size // 3, turned) for turned in (False, True)]
    return rng, parts, scrambled(rng, three_sum(*parts), int(rng.integers(0, 9)))


def test_the_smallest_known_three_sum_is_proved():
    verdict = verify_integrality(THREE_SUM)
    assert check_evidence(THREE_SUM, verdict) == "network"
    assert "3-sum" in str(verdict)
    turned = verify_integrality(THREE_SUM.T)
    assert check_evidence(THREE_SUM.T, turned) == "network"


@pytest.mark.every(5)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [24, 26, 28, 30, 32, 34])
def test_three_sums_are_decided_with_evidence(size, seed):
    rng, (first, second), matrix = random_three_sum(size, seed)
    verdict = verify_integrality(matrix)
    assert "3-sum" in str(verdict) or "2-sum" in str(verdict)  # some of these are 2-sums as well
    assert check_evidence(matrix, verdict) == "network"
    second[:-1, -2:] *= -1  # the parts now need unequal signs
    flipped = matrix.copy()
    flipped[tuple(rng.choice(np.argwhere(flipped)))] *= -1
    for other in (scrambled(rng, three_sum(first, second), 0), flipped):
        assert check_evidence(other, verify_integrality(other)) is not None


def small_three_sums(count):
    """3-sums of five rows and columns, half of them after a pivot, with proofs."""
    rng, found = np.random.default_rng(0), []
    while len(found) < count:
        first, second = three_sum_part(rng, 2, 3, False), three_sum_part(rng, 3, 3, True)
        matrix = three_sum(first, second)
        own = [
            np.arange(size) < part - least for size, part, least in zip(matrix.shape, first.shape, (1, 2), strict=True)
        ]
        for sign in (1, -1):
            proofs = [verify_integrality(part) for part in three_sum_parts(matrix, *own, sign)]
            if all(isinstance(proof, Proof) for proof in proofs):
                kind = max((proof.kind for proof in proofs), key=HARDNESS.index)
                proof = Proof(kind, matrix.shape, ThreeSum(*map(np.flatnonzero, own), sign, *proofs))
                if len(found) % 2:
                    row, column = rng.choice(np.argwhere(matrix)).tolist()
                    matrix, proof = pivoted(matrix, row, column), Proof(kind, matrix.shape, Pivot(row, column, proof))
                assert check_evidence(matrix, proof) == kind
                found.append((matrix, proof))
                break
    return found


def test_false_evidence_of_three_sums_is_refuted():
    """500 changes of a true proof or of its matrix: whatever is believed is totally unimodular."""
    truths, believed = small_three_sums(10), 0
    for number in range(500):
        rng = np.random.default_rng([7, number])
        matrix, proof = truths[number % len(truths)]
        if rng.random() < 0.5:
            matrix = matrix.copy()
            matrix[tuple(map(rng.integers, matrix.shape))] = rng.integers(-1, 2)
        else:
            proof = forged(proof, rng)
        try:
            check_evidence(matrix, proof)
        except CertificateError:
            continue
        believed += 1
        assert is_totally_unimodular(matrix)
    assert 0 < believed < 250


# Evidence that is not made of what evidence is made of: imaginary signs, -2**63, proofs inside themselves.


TWO = np.array([[1, 1], [-1, 1]])
"""Its determinant is 2."""


def test_imaginary_signs_prove_nothing():
    chosen = (np.arange(4)[:, None] >> np.arange(2)) & 1
    for unit in ([1.0, 1j], [1j, 1.0]):
        claim = Proof("enumeration", (2, 2), Signings(chosen * np.array(unit)))
        with pytest.raises(CertificateError, match="integers"):
            check_evidence(TWO, claim)
    with pytest.raises(CertificateError, match="±1"):
        check_evidence(TWO, Proof("enumeration", (2, 2), Signings(np.full((4, 2), -128, dtype=np.int8))))


def test_the_least_whole_number_is_no_small_numerator():
    program = set_program(overlapping_groups())
    truth = verify_integrality(program)
    assert check_evidence(program, truth) == "witness"
    for place in range(3):
        numerators = truth.vertex.numerators.copy()
        numerators[place] = -(2**63)
        with pytest.raises(CertificateError):
            check_evidence(program, replace(truth, vertex=replace(truth.vertex, numerators=numerators)))
    for change in ({"denominator": 10**400}, {"denominator": 2.0}, {"objective": truth.vertex.objective * 1j}):
        with pytest.raises(CertificateError):
            check_evidence(program, replace(truth, vertex=replace(truth.vertex, **change)))


def proofs():
    """A true proof of every kind of evidence, and its matrix."""
    interval = np.array([[low <= row <= high for low in range(5) for high in range(low, 5)] for row in range(5)]) * 1
    joint = pivoted(complete_graph(6), 0, 0)
    sum_ = np.block([[joint, np.outer(joint[:, 0], joint.T[0])], [np.zeros((joint.shape[1], joint.shape[1])), joint.T]])
    yield from (
        np.array([[1, 0, 1, 1], [1, 1, 0, 0], [0, -1, 0, 1], [0, 0, 1, 0]]),
        interval,
        np.vstack([*ranking_rows(3, 4)[:2], [[1, 1, 0, 0] * 3]]),
        joint,
        R10,
        np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [1, 0, 0, 1], [0, 0, 1, 1], [1, 1, 1, 1]]) * 0
        + np.eye(6, 4),
        sum_.astype(int),
    )


BROKEN = (
    lambda a: a * 1j,
    lambda a: a.astype(object),
    lambda a: a.astype(float),
    lambda a: np.ma.masked_array(3 * a + 5, mask=True),
    lambda a: a[None],
    lambda a: a.tolist(),
    lambda a: None,
    lambda a: np.full(a.shape, -(2**63)),
    lambda a: np.full(a.shape, 2**63 - 1),
    lambda a: np.full(a.shape, 2**64 - 1, dtype=np.uint64),
    lambda a: np.zeros(0),
)


@pytest.mark.parametrize("matrix", [*proofs()], ids=lambda matrix: f"{matrix.shape[0]}x{matrix.shape[1]}")
def test_arrays_of_another_kind_are_refuted(matrix):
    truth = verify_integrality(matrix)
    assert check_evidence(matrix, truth) == truth.kind
    evidence = truth.evidence
    for name, held in vars(evidence).items():
        if not isinstance(held, np.ndarray):
            continue
        for broken in BROKEN:
            with pytest.raises(CertificateError):
                check_evidence(matrix, replace(truth, evidence=replace(evidence, **{name: broken(held)})))
    for change in ({"kind": None}, {"kind": np.array(["a", "b"])}, {"shape": None}, {"shape": [*matrix.shape]},
                   {"evidence": None}, {"evidence": Proof}, {"transposed": 1}, {"transposed": None}):  # fmt: skip
        with pytest.raises(CertificateError):
            check_evidence(matrix, replace(truth, **change))


def test_parts_of_another_kind_are_refuted():
    matrix = np.eye(3, dtype=int)
    part = Part(np.arange(3), np.arange(3), Proof("bipartite", (3, 3), Coloring(np.zeros(3, dtype=np.int8))))
    assert check_evidence(matrix, Proof("bipartite", (3, 3), Parts((), (part,)))) == "bipartite"
    none = np.zeros(0, dtype=np.int64)
    for parts in (
        Parts([], (part,)),
        Parts((), [part]),
        Parts((None,), (part,)),
        Parts((Removal(2, none, none),), (part,)),
        Parts((Removal(-1, none, none),), (part,)),
        Parts((Removal(0, np.array([3]), np.array([-1])),), (part,)),
        Parts((Removal(0, np.array([0]), np.array([-2])),), (part,)),
        Parts((Removal(0, np.array([0]), np.array([7])),), (part,)),
        Parts((), (replace(part, rows=np.array([0, 1, 5])),)),
        Parts((), (replace(part, proof=None),)),
        TwoSum(np.arange(9), np.arange(1), 0, 1, part.proof, part.proof),
        TwoSum(np.arange(1), np.arange(1), 0.5, 1, part.proof, part.proof),
        TwoSum(np.arange(1), np.arange(1), -1, 1, part.proof, part.proof),
        RowOrder(np.array([0, 1, 1])),
        Families(np.array([0, 1, 2])),
        Tree(np.array([0, 1, 2]), np.array([1, 2, 4])),
    ):
        with pytest.raises(CertificateError):
            check_evidence(matrix, Proof("bipartite", (3, 3), parts))


def test_a_proof_inside_itself_ends():
    part = Part(np.arange(2), np.arange(2), Proof("bipartite", (2, 2), Coloring(np.zeros(2, dtype=np.int8))))
    whole = Proof("bipartite", (2, 2), Parts((), (part,)))
    object.__setattr__(part, "proof", whole)
    with pytest.raises(CertificateError, match="without end"):
        check_evidence(TWO, whole)


@pytest.mark.parametrize("evidence", [None, 7, "proof", np.eye(2), Proof])
def test_what_is_no_evidence_is_refuted(evidence):
    with pytest.raises(CertificateError):
        check_evidence(TWO, evidence)


# Determinants and ranks of integers and fractions, dense and sparse, are exact.


def test_determinants_are_exact():
    rng = np.random.default_rng(0)
    for size in range(1, 8):
        matrix = rng.integers(-5, 6, (size, size))
        assert determinant(entries_of(csr_array(matrix)), size) == round(float(np.linalg.det(matrix)))
    hilbert = tuple((i, j, Fraction(1, i + j + 1)) for i in range(6) for j in range(6))
    assert determinant(hilbert, 6) == Fraction(1, 186313420339200000)
    assert determinant(entries_of(csr_array([[0.5]])), 1) == Fraction(1, 2)


def test_determinants_and_ranks_of_few_entries_are_those_of_numpy():
    random = np.random.default_rng(0)
    for trial in range(600):
        size = int(random.integers(1, 8))
        matrix = random.integers(-2, 3, (size, size)) * (random.random((size, size)) < random.choice([0.2, 0.5, 1.0]))
        if trial % 2 and size > 1:  # one cycle
            matrix[:], rows, columns = 0, random.permutation(size), random.permutation(size)
            matrix[rows, columns] = random.choice([-1, 1, 2], size)
            matrix[np.roll(rows, -1), columns] = random.choice([-1, 1], size)
        entries = entries_of(csr_array(matrix))
        assert determinant(entries, size) == round(float(np.linalg.det(matrix)))
        assert rank(entries) == np.linalg.matrix_rank(matrix)
