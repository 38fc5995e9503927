"""Random sets of rankings, stated in the language of sets: the statements whose integrality is in question."""

from collections.abc import Iterator

import numpy as np

from formulations import RankingSet

__all__ = ["random_sets"]


def prefix(rng, k):
    return range(int(rng.integers(1, k + 1)))


def some(rng, size):
    return rng.permutation(size) < rng.integers(1, size + 1)


def block_caps(rng, one):
    labels = rng.integers(0, int(rng.integers(2, one.documents + 1)), one.documents)
    return one.at_most(int(rng.integers(1, 3)), by=labels, name="block")


def nested_blocks(rng, one):
    """Sites within domains, and these perhaps within topics, over all positions."""
    sites, cap = rng.integers(0, one.documents, one.documents), int(rng.integers(1, 4))
    for name, labels in [("site", sites), ("domain", sites // 2), ("topic", sites // 6)][: rng.integers(2, 4)]:
        one = one.at_most(cap, by=labels, name=name)
    return one


def prefix_caps(rng, one):
    group = rng.integers(0, int(rng.integers(2, 5)), one.documents) == 0
    return one.at_most(int(rng.integers(1, 3)), documents=group, positions=prefix(rng, one.positions), name="prefix")


def position_caps(rng, one):
    places, group = some(rng, one.positions), some(rng, one.documents)
    return one.at_most(int(rng.integers(1, 3)), documents=group, positions=places, name="places")


def overlapping_groups(rng, one):
    for _ in range(rng.integers(2, 4)):
        one = one.at_most(int(rng.integers(1, 3)), documents=some(rng, one.documents), name="overlap")
    return one


def quotas(rng, one):
    return one.at_least(int(rng.integers(0, 3)), documents=some(rng, one.documents), name="quota")


def any_documents(rng, one):
    """How many positions of some set are filled: rows that concern positions alone."""
    return one.at_most(one.positions, positions=prefix(rng, one.positions), name="filled")


def before(rng, one):
    x, y = rng.permutation(one.documents)[:2].tolist()
    return one.precedes(x, y)


GENTLE = (block_caps, nested_blocks, quotas, any_documents)
HARSH = (prefix_caps, position_caps, overlapping_groups, before, quotas, block_caps, nested_blocks)


def random_set(rng):
    """3 to 30 documents, 1 to 10 positions, 1 to 6 constraints, and up to two bans."""
    k = int(rng.integers(1, 11))
    one = RankingSet(int(rng.integers(max(k, 3), 31)), k)
    kinds = GENTLE if rng.random() < 0.45 else HARSH
    if kinds is GENTLE and rng.random() < 0.6:
        drawn = [nested_blocks, *[any_documents] * int(rng.integers(0, 3))]
    else:
        drawn = [kinds[rng.integers(len(kinds))] for _ in range(rng.integers(1, 7))]
    for draw in drawn:
        one = draw(rng, one)
    for _ in range(rng.integers(0, 3)):
        places = int(rng.integers(k)) if rng.random() < 0.5 else some(rng, k)
        one = one.forbid(int(rng.integers(one.documents)), places)
    return one


def random_sets(count, seed=0) -> Iterator[RankingSet]:
    for child in np.random.SeedSequence(seed).spawn(count):
        yield random_set(np.random.default_rng(child))
