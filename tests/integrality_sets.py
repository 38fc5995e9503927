"""Random sets of rankings, as integer programs: the statements whose integrality is in question.

n documents, k positions, π[i, j] = 1 where document j stands at position i (column i·n + j): each position holds one
document, each document stands at one position at most, and one to six constraints from `CONSTRAINTS` hold as well.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from formulations.modeling.linear_program import LinearProgram
from formulations.modeling.names import Block

__all__ = ["program", "random_sets"]


class Rows(NamedTuple):
    """Rows over positions × documents, with their limits."""

    label: str
    cells: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def sums(label, groups, positions, lower, upper):
    """lower <= how many of each group stand on the positions <= upper; groups: booleans, groups × documents."""
    cells = (groups[:, None, :] & positions[None, :, None]).astype(np.int8)
    count = len(groups)
    return Rows(label, cells, np.full(count, float(lower)), np.full(count, float(upper)))


def everywhere(k):
    return np.ones(k, dtype=bool)


def prefix(rng, k):
    return np.arange(k) < rng.integers(1, k + 1)


def some(rng, k):
    return rng.permutation(k) < rng.integers(1, k + 1)


def partition(rng, n, parts):
    label = rng.integers(0, parts, n)
    return label == np.arange(parts)[:, None]


def group(rng, n):
    return (rng.permutation(n) < rng.integers(1, n + 1))[None, :]


def block_caps(rng, k, n):
    return sums("block", partition(rng, n, int(rng.integers(2, n + 1))), everywhere(k), -np.inf, rng.integers(1, 3))


def nested_blocks(rng, k, n):
    """Sites within domains within topics, over all positions."""
    sites = rng.integers(0, n, n)
    domains, topics = sites // 2, sites // 6
    groups = [np.unique(label)[:, None] == label for label in (sites, domains, topics)]
    chosen = np.concatenate(groups[: rng.integers(2, 4)])
    return sums("nested", chosen, everywhere(k), -np.inf, rng.integers(1, 4))


def prefix_caps(rng, k, n):
    return sums("prefix", partition(rng, n, int(rng.integers(2, 5)))[:1], prefix(rng, k), -np.inf, rng.integers(1, 3))


def position_caps(rng, k, n):
    return sums("places", group(rng, n), some(rng, k), -np.inf, rng.integers(1, 3))


def overlapping_groups(rng, k, n):
    groups = np.concatenate([group(rng, n) for _ in range(rng.integers(2, 4))])
    return sums("overlap", groups, everywhere(k), -np.inf, rng.integers(1, 3))


def quotas(rng, k, n):
    return sums("quota", group(rng, n), everywhere(k), rng.integers(0, 3), np.inf)


def any_documents(rng, k, n):
    """How many positions of some set are filled: rows that concern positions alone."""
    return sums("filled", np.ones((1, n), dtype=bool), prefix(rng, k), -np.inf, k)


def before(rng, k, n):
    """x stands above y where y stands: Σ_{i<p} π[i, x] - Σ_{i<=p} π[i, y] >= 0 for each position p."""
    x, y = rng.permutation(n)[:2]
    cells = np.zeros((k, k, n), dtype=np.int8)
    for p in range(k):
        cells[p, :p, x] = 1
        cells[p, : p + 1, y] = -1
    return Rows("before", cells, np.zeros(k), np.full(k, np.inf))


GENTLE = (block_caps, nested_blocks, quotas, any_documents)
HARSH = (prefix_caps, position_caps, overlapping_groups, before, quotas, block_caps, nested_blocks)


def random_set(rng):
    """The constraints, and which cells are left by pins and bans."""
    k = int(rng.integers(1, 11))
    n = int(rng.integers(max(k, 3), 31))
    kinds = GENTLE if rng.random() < 0.45 else HARSH
    if kinds is GENTLE and rng.random() < 0.6:
        drawn = [nested_blocks]
        drawn += [any_documents] * int(rng.integers(0, 3))
    else:
        drawn = [kinds[rng.integers(len(kinds))] for _ in range(rng.integers(1, 7))]
    allowed = np.ones((k, n), dtype=bool)
    for _ in range(rng.integers(0, 3)):
        if rng.random() < 0.5:  # ban a document from a position
            allowed[rng.integers(k), rng.integers(n)] = False
        else:  # pin a document to some positions
            allowed[some(rng, k), rng.integers(n)] = False
    return k, n, [draw(rng, k, n) for draw in drawn], allowed


def program(k, n, constraints, allowed):
    """The linear program of a set, its objective zero. Document rows that a block of cap one implies are left out."""
    cell = np.arange(k * n).reshape(k, n)
    spare = np.zeros(n, dtype=bool)
    for rows in constraints:
        spare |= (rows.cells[rows.upper == 1] == 1).all(axis=1).any(axis=0) & (rows.cells >= 0).all()
    kept = np.flatnonzero(~spare)
    fill = np.eye(k, dtype=np.int8)[:, :, None] * np.ones(n, dtype=np.int8)
    once = np.eye(n, dtype=np.int8)[kept][:, None, :] * np.ones((k, 1), dtype=np.int8)
    blocks = [
        Rows("position", fill, np.ones(k), np.ones(k)),
        Rows("document", once, np.full(kept.size, -np.inf), np.ones(kept.size)),
        *constraints,
    ]
    columns = cell[allowed]
    matrix = csr_array(vstack([csr_array(rows.cells.reshape(len(rows.cells), k * n)[:, columns]) for rows in blocks]))
    return LinearProgram(
        objective=np.zeros(columns.size),
        matrix=matrix,
        row_lower=np.concatenate([rows.lower for rows in blocks]),
        row_upper=np.concatenate([rows.upper for rows in blocks]),
        lower=np.zeros(columns.size),
        upper=np.ones(columns.size),
        variables=(Block("π", tuple((int(c) // n, int(c) % n) for c in columns)),),
        rows=tuple(Block(rows.label, (len(rows.cells),)) for rows in blocks),
    )


def random_sets(count, seed=0) -> Iterator[LinearProgram]:
    for child in np.random.SeedSequence(seed).spawn(count):
        yield program(*random_set(np.random.default_rng(child)))
