"""Evidence that is not made of what evidence is made of: imaginary signs, -2**63, proofs inside themselves."""

from dataclasses import replace

import numpy as np
import pytest
from problems.integrality_matrices import R10, complete_graph, overlapping_groups, pivoted, ranking_rows, set_program

from formulations.errors import CertificateError
from formulations.integrality import Proof, check_evidence, verify_integrality
from formulations.integrality.evidence import (
    Colouring,
    Families,
    Part,
    Parts,
    Removal,
    RowOrder,
    Signings,
    Tree,
    TwoSum,
)

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
    part = Part(np.arange(3), np.arange(3), Proof("bipartite", (3, 3), Colouring(np.zeros(3, dtype=np.int8))))
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
    part = Part(np.arange(2), np.arange(2), Proof("bipartite", (2, 2), Colouring(np.zeros(2, dtype=np.int8))))
    whole = Proof("bipartite", (2, 2), Parts((), (part,)))
    object.__setattr__(part, "proof", whole)
    with pytest.raises(CertificateError, match="without end"):
        check_evidence(TWO, whole)


@pytest.mark.parametrize("evidence", [None, 7, "proof", np.eye(2), Proof])
def test_what_is_no_evidence_is_refuted(evidence):
    with pytest.raises(CertificateError):
        check_evidence(TWO, evidence)
