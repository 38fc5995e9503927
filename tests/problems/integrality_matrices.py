"""Matrices whose total unimodularity is known, and programs with them."""

from itertools import combinations

import numpy as np
from scipy.sparse import csr_array

from formulations.problems.linear_program import LinearProgram
from formulations.problems.program import Block

R10 = np.array(
    [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 1, 1, 0], [1, 0, 0, 1, 1], [1, 1, 0, 0, 1]],
)  # totally unimodular, and neither it nor its transpose is a network matrix
FANO = np.array([[1, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 1]])


def is_totally_unimodular(matrix):
    """The definition: every square submatrix has determinant -1, 0 or 1."""
    rows, columns = matrix.shape
    return all(
        abs(np.linalg.det(matrix[np.ix_(chosen, across)])) < 1.5
        for size in range(1, min(rows, columns) + 1)
        for chosen in combinations(range(rows), size)
        for across in combinations(range(columns), size)
    )


def network_matrix(rng, arcs, paths):
    """Random paths in a random directed tree, rows shuffled."""
    parent = np.array([0, *(rng.integers(0, node) for node in range(1, arcs + 1))])
    along = rng.choice([-1, 1], arcs + 1)
    matrix = np.zeros((arcs, paths), dtype=np.int8)
    for path in range(paths):
        for sign, node in zip((1, -1), rng.integers(0, arcs + 1, 2), strict=True):
            while node:
                matrix[node - 1, path] += sign * along[node]
                node = parent[node]
    return matrix[rng.permutation(arcs)]


def pivoted(matrix, row, column):
    """A pivot keeps total unimodularity, and its absence."""
    pivot = matrix[row, column]
    result = matrix - pivot * np.outer(matrix[:, column], matrix[row])
    result[row], result[:, column], result[row, column] = matrix[row], matrix[:, column], -pivot
    return result


def complete_graph(nodes):
    """The network matrix of a star with all further edges of the complete graph: graphic, not cographic from 5 on."""
    pairs = list(combinations(range(nodes - 1), 2))
    matrix = np.zeros((nodes - 1, len(pairs)), dtype=int)
    for column, (tail, head) in enumerate(pairs):
        matrix[tail, column], matrix[head, column] = 1, -1
    return matrix


def ranking_rows(positions, documents):
    """Position rows, document rows, and the position and document of each column."""
    column = np.arange(positions * documents)
    position, document = column // documents, column % documents
    fill = (position == np.arange(positions)[:, None]).astype(int)
    once = (document == np.arange(documents)[:, None]).astype(int)
    return fill, once, position, document


def set_program(extra, positions=3, documents=6, limit=1.0, profit=None):
    """Rankings under further rows, each at most `limit`."""
    fill, once, _, _ = ranking_rows(positions, documents)
    size = positions * documents
    return LinearProgram(
        objective=np.zeros(size) if profit is None else profit,
        matrix=csr_array(np.vstack([fill, once, extra]).astype(float)),
        row_lower=np.r_[np.ones(positions), np.full(documents + len(extra), -np.inf)],
        row_upper=np.r_[np.ones(positions + documents), np.full(len(extra), limit)],
        lower=np.zeros(size),
        upper=np.ones(size),
        variables=(Block("π", (positions, documents)),),
        rows=(Block("position", (positions,)), Block("document", (documents,)), Block("group", (len(extra),))),
    )


def overlapping_groups(positions=3, documents=6):
    """At most one of each of {0, 1}, {1, 2}, {0, 2}, in all positions."""
    document = ranking_rows(positions, documents)[3]
    return np.array([np.isin(document, pair) for pair in ((0, 1), (1, 2), (0, 2))]).astype(int)


def three_sum(first, second):
    """[A a b; d c B] of [A a a; c 0 1] and [B d d; b 0 1]."""
    (a, c), (d, b) = ((part[:-1, -1], part[-1, :-2]) for part in (first, second))
    return np.block([[first[:-1, :-2], np.outer(a, b)], [np.outer(d, c), second[:-1, :-2]]])


def three_sum_part(rng, arcs, paths, turned):
    """A random network matrix [A a a; c 0 1], or such a transpose of one: two adjacent arcs of the tree, and a path
    that ends between them. Both a and c have two entries at least."""
    while True:
        near = int(rng.integers(0, arcs + 1))
        parent = [0, *(int(rng.integers(0, node)) for node in range(1, arcs + 1)), near]
        if turned:
            parent = [0, 0, 1, *(int(rng.choice([0, *range(2, node)])) for node in range(3, arcs + 2))]
        above = np.zeros((arcs + 2, arcs + 1), dtype=int)
        for node in range(1, arcs + 2):
            above[node] = above[parent[node]]
            above[node, node - 1] = 1
        ends = rng.choice([0, *range(2, arcs + 2)] if turned else arcs + 2, (2, paths))
        held = above[ends[0]] - above[ends[1]]
        if turned:
            last = above[rng.choice(np.flatnonzero(above[:, 1]))] - above[1]
            part = np.roll(np.vstack([held, last]), -2, axis=1)
        else:
            start = above[int(rng.integers(0, arcs + 1))]
            part = np.vstack([held, above[near] - start, above[-1] - start]).T
        if min(np.count_nonzero(part[:-1, -1]), np.count_nonzero(part[-1, :-2])) >= 2:
            return part


def scrambled(rng, matrix, pivots):
    """Pivots on random entries, random signs and orders of the rows and columns."""
    for _ in range(pivots):
        matrix = pivoted(matrix, *rng.choice(np.argwhere(matrix)))
    matrix = matrix * np.outer(*(rng.choice([-1, 1], size) for size in matrix.shape))
    return matrix[rng.permutation(matrix.shape[0])][:, rng.permutation(matrix.shape[1])]
