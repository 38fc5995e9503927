"""Total unimodularity: every verdict against the definition, all evidence against a checker."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from time import perf_counter

import numpy as np
import pytest
from problems.few import few
from problems.integrality_matrices import (
    FANO,
    R10,
    complete_graph,
    is_totally_unimodular,
    network_matrix,
    overlapping_groups,
    pivoted,
    ranking_rows,
    set_program,
)
from problems.random_sets import random_sets
from scipy.sparse import block_array, csr_array

from formulations import InfeasibleError, Proof, RankingSet, Undecided, Witness, check_evidence, verify_integrality
from formulations.errors import CertificateError, InvalidProblemError, UnsupportedProblemError
from formulations.gallery.assignments import matching
from formulations.integrality.determinant import determinant, entries_of
from formulations.integrality.evidence import Parts
from formulations.integrality.network import tree_of
from formulations.integrality.proofs import proof_of
from formulations.integrality.recognition import laminar_families, leaf_of_columns, tree_parents
from formulations.integrality.verify import Polyhedron, random_polyhedron
from formulations.solving.integrality import integrality_gap


@pytest.mark.parametrize("seed", range(6))
@few(range(150), every=3, name="turns")
def test_small_matrices_are_judged_as_the_definition_says(seed, turns):
    rng = np.random.default_rng(seed)
    for turn in turns:
        density, signed = rng.choice([0.2, 0.4, 0.6, 0.9]), turn % 2
        shape = tuple(rng.integers(1, 6, 2))
        matrix = (rng.random(shape) < density) * np.where(signed, rng.choice([-1, 1], shape), 1)
        verdict = verify_integrality(matrix)
        assert isinstance(verdict, Proof if is_totally_unimodular(matrix) else Witness), matrix
        check_evidence(matrix, verdict)
        if isinstance(verdict, Witness):
            part = matrix[np.ix_(verdict.rows, verdict.columns)]
            assert abs(verdict.determinant) == 2
            assert verdict.minimal
            assert is_totally_unimodular(part[1:])
            assert is_totally_unimodular(part[:, 1:])


@few(range(300), every=6, name="turns")
def test_network_matrices_are_recognized_with_their_tree(turns):
    rng = np.random.default_rng(3)
    for _ in turns:
        matrix = network_matrix(rng, *rng.integers(1, 25, 2))
        assert tree_of(matrix) is not None
        for turned in (matrix, matrix.T):
            proof = proof_of(turned)
            assert proof is not None
            assert check_evidence(turned, proof) == proof.kind


def test_large_network_matrices_and_their_transposes_are_proved():
    rng = np.random.default_rng(4)
    kinds = set()
    for shape in ((40, 300), (60, 120), (25, 200)):
        matrix = network_matrix(rng, *shape)
        for turned in (matrix, matrix.T):
            proof = proof_of(turned)
            kinds.add(proof.kind)
            assert check_evidence(turned, proof) == proof.kind
    assert kinds == {"network"}


@pytest.mark.parametrize("nodes", [5, 6, 7])
def test_graphic_is_not_cographic(nodes):
    matrix = complete_graph(nodes)
    for row, column in ((0, 0), (1, nodes - 2)):
        matrix = pivoted(matrix, row, column)
    assert tree_of(matrix.astype(np.int8)) is not None
    assert tree_of(matrix.T.astype(np.int8)) is None
    assert check_evidence(matrix.T, verify_integrality(matrix.T)) in ("network", "bipartite")


def test_r10_and_its_pivots_are_decided_by_enumeration():
    matrix = R10
    rng = np.random.default_rng(0)
    assert is_totally_unimodular(R10)
    for _ in range(20):
        for turned in (matrix, matrix.T):
            assert tree_of(turned.astype(np.int8)) is None
            verdict = verify_integrality(turned)
            assert verdict.kind == check_evidence(turned, verdict) == "enumeration"
        places = np.argwhere(matrix)
        matrix = pivoted(matrix, *places[rng.integers(len(places))])


def test_the_fano_plane_is_refuted_whatever_its_signs():
    rng = np.random.default_rng(0)
    for _ in range(40):
        matrix = FANO * rng.choice([-1, 1], FANO.shape)
        for turned in (matrix, matrix.T):
            verdict = verify_integrality(turned)
            assert isinstance(verdict, Witness)
            assert check_evidence(turned, verdict) == "witness"


def test_parts_and_what_is_left_out_are_checked():
    rng = np.random.default_rng(1)
    parts = [R10, network_matrix(rng, 12, 30).astype(int), complete_graph(6).T]
    matrix = block_array([[parts[0], None, None], [None, parts[1], None], [None, None, parts[2]]]).toarray()
    matrix = np.hstack([matrix, -matrix[:, ::3], np.eye(len(matrix), dtype=int)])
    matrix = np.vstack([matrix, matrix[::4]])
    verdict = verify_integrality(matrix)
    assert isinstance(verdict.evidence, Parts)
    assert check_evidence(matrix, verdict) == "enumeration"
    assert "left out" in str(verdict)
    removals, inner = verdict.evidence.removals, verdict.evidence.parts
    for lie in (
        Parts(removals[1:], inner),
        Parts(removals, inner[1:]),
        Parts(removals, (*inner[:-1], inner[-2])),
        Parts((replace(removals[0], partner=removals[0].partner * 0 - 1), *removals[1:]), inner),
        Parts((replace(removals[0], partner=removals[0].partner[::-1]), *removals[1:]), inner),
    ):
        with pytest.raises(CertificateError):
            check_evidence(matrix, replace(verdict, evidence=lie))


@pytest.mark.parametrize("turned", [False, True])
def test_two_entries_a_line_are_always_decided(turned):
    rng = np.random.default_rng(7)
    kinds = set()
    for turn in range(60):
        rows, columns = rng.integers(20, 120, 2)
        side = rng.integers(0, 2, rows)
        matrix = np.zeros((rows, columns), dtype=int)
        for column in range(columns):
            first, second = rng.permutation(rows)[:2]
            matrix[first, column] = 1
            matrix[second, column] = 1 if side[first] != side[second] else -1
        if turn % 2:
            matrix[tuple(np.argwhere(matrix)[rng.integers(2 * columns)])] *= -1
        matrix = matrix.T if turned else matrix
        verdict = verify_integrality(matrix)
        kinds.add(check_evidence(matrix, verdict))
    assert kinds == {"bipartite", "witness"}


def test_ten_lines_are_always_decided():
    rng = np.random.default_rng(11)
    for turn in range(12):
        shape = (10, int(rng.integers(10, 60)))
        matrix = rng.choice([-1, 0, 1], shape, p=[0.1, 0.8, 0.1]) if turn % 2 else network_matrix(rng, *shape)
        matrix = matrix.T if turn % 3 else matrix
        verdict = verify_integrality(matrix)
        assert not isinstance(verdict, Undecided)
        check_evidence(matrix, verdict)


@few(range(60), every=3, name="turns")
def test_the_verdict_does_not_depend_on_the_order_of_rows_and_columns(turns):
    rng = np.random.default_rng(2)
    for turn in turns:
        matrix = network_matrix(rng, 12, 16)
        if turn % 2:
            matrix[rng.integers(12)] = rng.integers(-1, 2, 16)
        shuffled = matrix[rng.permutation(12)][:, rng.permutation(16)]
        assert type(verify_integrality(matrix)) is type(verify_integrality(shuffled))


def test_the_same_seed_gives_the_same_witness():
    program = set_program(overlapping_groups())
    first, second = (verify_integrality(program, seed=5) for _ in range(2))
    assert str(first) == str(second)
    assert np.array_equal(first.vertex.numerators, second.vertex.numerators)


def test_overlapping_groups_have_a_fractional_vertex_with_its_objective():
    program = set_program(overlapping_groups())
    verdict = verify_integrality(program)
    assert check_evidence(program, verdict) == "witness"
    assert verdict.minimal
    assert verdict.row_names == tuple(map(program.row_name, verdict.rows))
    assert verdict.column_names == tuple(map(program.variable_name, verdict.columns))
    vertex = verdict.vertex
    assert program.violation(vertex.x) <= 1e-12
    assert np.abs(vertex.x - np.round(vertex.x)).max() > 0.2
    gap = integrality_gap(replace(program, objective=vertex.objective.astype(float)))
    assert not gap.integral
    assert gap.relaxed.value == pytest.approx(float(vertex.value))
    assert "π[" in str(verdict)
    assert "fractional vertex" in str(verdict)


def test_one_optimum_may_be_whole_although_the_matrix_is_not_totally_unimodular():
    flat = integrality_gap(set_program(overlapping_groups()))
    assert flat.integral
    assert (flat.absolute, flat.relative) == (0.0, 0.0)
    profit = np.outer([1, 0.9, 0.8], [3, 3, 3, 0, 0, 0]).ravel()
    gap = integrality_gap(set_program(overlapping_groups(), profit=profit))
    assert (gap.integral, gap.relaxed.value, gap.integer.value) == (False, pytest.approx(4.35), pytest.approx(3.0))
    assert gap.absolute == pytest.approx(1.35)
    assert gap.relative == pytest.approx(0.45)
    assert "not integral" in str(gap)
    costs = replace(set_program(overlapping_groups(), profit=-profit), is_maximization=False)
    assert integrality_gap(costs).absolute == pytest.approx(1.35)


def test_forms_and_sets_are_taken_as_their_linear_programs():
    problem = matching(np.arange(12.0).reshape(3, 4))

    class RankingSet:
        program = set_program(np.zeros((0, 18), dtype=int))

    for given in (problem, RankingSet()):
        verdict = verify_integrality(given)
        assert (verdict.kind, check_evidence(given, verdict)) == ("bipartite", "bipartite")
    assert integrality_gap(problem).integral


def test_sparse_dense_and_nested_lists_are_the_same_matrix():
    for given in (FANO, FANO.tolist(), csr_array(FANO), FANO.astype(float), csr_array(FANO).tocoo()):
        assert check_evidence(given, verify_integrality(given)) == "witness"


def test_the_paper_set_of_a_thousand_documents_is_proved():
    rng = np.random.default_rng(0)
    fill, _, _, document = ranking_rows(10, 1000)
    block = rng.integers(0, 300, 1000)[document]
    caps = (block == np.arange(300)[:, None]).astype(int)
    matrix = csr_array(np.vstack([fill, caps]))
    proof = proof_of(matrix)
    assert proof.kind == check_evidence(matrix, proof) == "bipartite"


def test_nested_blocks_over_all_positions_are_laminar():
    fill, once, _, document = ranking_rows(4, 24)
    nested = [document // size == np.arange(24 // size)[:, None] for size in (2, 6, 12)]
    matrix = np.vstack([fill, once, *nested]).astype(int)
    verdict = verify_integrality(matrix)
    assert verdict.kind == check_evidence(matrix, verdict) == "laminar"


@few(range(400), every=5, name="turns")
def test_the_trees_of_laminar_families_carry_every_column(turns):
    rng = np.random.default_rng(0)
    found = 0
    for _ in turns:
        matrix = (rng.random(rng.integers(1, 7, 2)) < 0.5).astype(int)
        families = laminar_families(matrix)
        if families is None:
            continue
        found += 1
        parents = tree_parents(matrix, families)
        for family in (0, 1):
            for column, leaf in enumerate(leaf_of_columns(matrix, families, family)):
                way = []
                while leaf >= 0:
                    way.append(leaf)
                    leaf = parents[leaf]
                assert sorted(way) == np.flatnonzero((matrix[:, column] != 0) & (families == family)).tolist()
    assert found > len(turns) / 4


@pytest.mark.parametrize("value", [2, -3, 0.5])
def test_an_entry_other_than_ones_and_zero_is_a_witness(value):
    matrix = np.array([[1, 0, 1], [0, value, 1]])
    verdict = verify_integrality(matrix)
    assert (verdict.rows, verdict.columns, verdict.determinant) == ((1,), (1,), Fraction(value))
    assert check_evidence(matrix, verdict) == "witness"


def test_weighted_rows_are_refuted_with_a_vertex_of_the_problem():
    weighted = (ranking_rows(3, 6)[3] < 3).astype(int) * 2
    program = set_program(weighted[None, :], limit=3.0)
    verdict = verify_integrality(program)
    assert verdict.determinant == 2
    assert verdict.row_names == ("group[0]",)
    assert check_evidence(program, verdict) == "witness"
    assert (verdict.vertex.x * 2 == 1).any()
    third = verify_integrality(replace(program, matrix=program.matrix * (1 / 3)))
    assert third.vertex is None
    assert "determinant 0.333333" in str(third)


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[1, np.nan]], "finite"),
        ([[1, np.inf]], "finite"),
        (np.zeros((0, 3)), "shape"),
        (np.zeros((3, 0)), "shape"),
        (np.zeros(3), "shape"),
        (np.zeros((2, 2, 2)), "shape"),
        ([[1, 0], [1]], "equal length"),
        ([["a", "b"]], "convert"),
        (np.array([[1j]]), "convert"),
    ],
)
def test_what_is_no_matrix_is_refused(matrix, words):
    for function in (verify_integrality, proof_of):
        with pytest.raises(InvalidProblemError, match=words):
            function(matrix)


def test_limits_that_are_not_whole_are_named():
    program = set_program(np.zeros((1, 18), dtype=int), limit=1.5)
    for function in (verify_integrality, lambda given: check_evidence(given, proof_of(given))):
        with pytest.raises(InvalidProblemError, match=r"group\[0\] has upper limit 1.5.*round"):
            function(program)
    upper = np.ones(18)
    upper[7] = 0.25
    with pytest.raises(InvalidProblemError, match=r"π\[1, 1\]"):
        verify_integrality(replace(set_program(np.zeros((1, 18), dtype=int)), upper=upper))


def test_a_bare_matrix_has_no_optimum():
    with pytest.raises(UnsupportedProblemError, match="objective"):
        integrality_gap(R10)


def test_undecided_says_what_was_tried():
    rng = np.random.default_rng(0)
    matrix = rng.choice([0, 1], (90, 150))
    verdict = verify_integrality(matrix, max_effort=0)
    assert isinstance(verdict, Undecided)
    assert check_evidence(matrix, verdict) is None
    assert any("polyhedra" in line for line in verdict.tried)
    assert "Undecided" in str(verdict)
    assert isinstance(verify_integrality(matrix), Witness)


def test_no_small_matrix_is_undecided():
    """Below the limit of 3-sums the search for a violator is complete."""
    matrix = np.random.default_rng(0).choice([0, 1], (12, 30))
    verdict = verify_integrality(matrix, max_effort=0)
    assert check_evidence(matrix, verdict) == "witness"


@pytest.mark.parametrize(("positions", "documents"), [(2, 3), (3, 3), (3, 5), (4, 4), (4, 5)])
def test_one_quota_breaks_integrality_where_it_is_partial_both_ways(positions, documents):
    """On P of k positions and G of n documents: exactly when 2 <= |P| < k and 2 <= |G| < n."""
    fill, once, position, document = ranking_rows(positions, documents)
    for places in range(1, positions + 1):
        for group in range(1, documents + 1):
            quota = ((position < places) & (document < group)).astype(int)
            matrix = np.vstack([fill, once, quota])
            kind = check_evidence(matrix, verify_integrality(matrix))
            assert (kind == "witness") == (2 <= places < positions and 2 <= group < documents)


@pytest.mark.study
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("size", [3, 41, 20_001])
def test_long_odd_cycles_are_refuted_and_confirmed(size, turned):
    """Two entries a column are always decided, whatever the size: a cycle is never written out."""
    random = np.random.default_rng(size)
    rows, columns = random.permutation(size), random.permutation(size)
    places = (np.append(rows, np.roll(rows, -1)), np.append(columns, columns))
    matrix = csr_array((np.ones(2 * size, dtype=np.int64), places), shape=(size, size))
    matrix = csr_array(matrix.T) if turned else matrix
    answer = verify_integrality(matrix)
    assert isinstance(answer, Witness)
    assert (abs(answer.determinant), len(answer.rows), answer.minimal) == (2, size, True)
    assert check_evidence(matrix, answer) == "witness"
    assert len(str(answer).splitlines()) < 50
    even = csr_array((np.where(np.arange(2 * size) == 5, -1, 1), places), shape=(size, size))
    assert isinstance(verify_integrality(csr_array(even.T) if turned else even), Proof)


@pytest.mark.parametrize(
    "options", [{"seed": -1}, {"seed": np.nan}, {"seed": "0"}, {"max_effort": -1}, {"max_effort": 0.5}]
)
def test_what_cannot_lead_the_search_is_refused(options):
    with pytest.raises(InvalidProblemError, match="must be an integer, 0 or more; got"):
        verify_integrality(np.eye(2), **options)


# Two thousand random sets of rankings: what is proved has whole vertices, what is refuted has its determinant.


SETS, SHARES, OBJECTIVES = 2000, 4, 50


def vertices(program, rng):
    """Vertices under random whole objectives: of the set, or where it is empty of a random polyhedron of its matrix."""
    polyhedron = Polyhedron(program.matrix, program.row_lower, program.row_upper, program.lower, program.upper)
    if polyhedron.vertex(program.objective) is None:
        polyhedron = random_polyhedron(program.matrix, rng)
    for _ in range(OBJECTIVES):
        yield polyhedron.vertex(rng.integers(-3, 4, program.objective.size).astype(float))


@pytest.fixture(scope="module")
def verdicts():
    """How often each kind of evidence was found."""
    return Counter()


@pytest.mark.study
@pytest.mark.parametrize("share", range(SHARES))
def test_evidence_holds_and_what_is_proved_is_whole(share, verdicts):
    for place, admissible in enumerate(random_sets(SETS // SHARES, seed=share)):
        program = admissible.program  # of an empty set the matrix alone is asked about
        asked = admissible if admissible.max_positions == admissible.positions else program
        verdict = verify_integrality(asked)
        kind = check_evidence(asked, verdict) or "undecided"
        verdicts[kind] += 1
        if isinstance(verdict, Proof):
            for x in vertices(program, np.random.default_rng([share, place])):
                assert np.abs(x - np.round(x)).max() < 1e-7
        if isinstance(verdict, Witness):
            part = program.matrix[list(verdict.rows)][:, list(verdict.columns)].toarray()
            assert (
                determinant(entries_of(csr_array(part)), len(part)) == verdict.determinant == round(np.linalg.det(part))
            )
            assert abs(verdict.determinant) >= 2
            assert verdict.minimal
            verdicts["with a fractional vertex"] += verdict.vertex is not None
        assert isinstance(verdict, Proof | Witness | Undecided)


def test_hardly_any_set_is_undecided(verdicts, capsys):
    """A third is proved by more than Heller and Tompkins, a third is refuted; runs after the shares."""
    if sum(verdicts.values()) < SETS:
        pytest.skip("counts the sets of the tests before it: run the whole file")
    with capsys.disabled():
        print(f"\n{SETS} random sets: {dict(verdicts.most_common())}, undecided {verdicts['undecided']}")
    proved = sum(verdicts[kind] for kind in ("series-parallel", "interval", "laminar", "network", "enumeration"))
    assert verdicts["undecided"] < 0.01 * SETS
    assert proved >= SETS / 3
    assert verdicts["witness"] >= SETS / 3


# A set without a ranking has no vertices: asking about them says so, and why, at once.


SITE = [f"s{i // 20}" for i in range(100)]

EMPTY = {
    "quota": (RankingSet(6, 3).at_most(1, documents=range(6), name="quota"), {"quota", "position"}),
    "fixed": (RankingSet(50, 10).fix(3, 2).fix(4, 2), {"fix[3, 2]", "fix[4, 2]", "position"}),
    "sites": (
        RankingSet(100, 12).at_most(2, by=SITE, name="site"),
        {*(f"site['s{i}']" for i in range(5)), "position"},
    ),
    "floor": (
        RankingSet(100, 10).at_least(3, documents=range(50), positions=range(2), name="fresh").at_most(2, by=SITE),
        {"fresh", "position"},
    ),
    "precedes": (
        RankingSet(40, 10).precedes(1, 2, name="one").precedes(2, 1, name="two").fix(1, 3),
        {"fix[1, 3]", "position"},
    ),
}


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_set_is_said_to_be_empty_and_why(name):
    admissible, members = EMPTY[name]
    began = perf_counter()
    with pytest.raises(InfeasibleError, match=r"no ranking .* is in the set\. Conflict: ") as raised:
        verify_integrality(admissible)
    assert perf_counter() - began < 5.0  # a tenth of a second where nothing else runs
    assert all(member in str(raised.value) for member in members)


def test_its_matrix_can_still_be_asked_about():
    admissible = EMPTY["quota"][0]
    assert isinstance(verify_integrality(admissible.program.matrix), Proof)
