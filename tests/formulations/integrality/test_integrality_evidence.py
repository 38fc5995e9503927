"""Evidence of total unimodularity and against it: what is true is confirmed, lies are refuted."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from problems.integrality_matrices import (
    R10,
    complete_graph,
    overlapping_groups,
    pivoted,
    ranking_rows,
    set_program,
)
from scipy.sparse import csr_array

from formulations.errors import CertificateError
from formulations.integrality import Witness, check_evidence, proof_of, verify_integrality
from formulations.integrality.determinant import entries_of


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
    assert "meet in a row and a column" in str(verdict)
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
