"""Random sets of rankings, stated in the language of sets: the statements whose integrality is in question."""

from collections.abc import Iterator

import numpy as np

from formulations import RankingSet

__all__ = ["EXTENSIONS", "drawn", "random_sets"]


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


EXTENSIONS = ("rank one", "a = κ c", "gains constant in groups", "position weights by group", "any sign, all ranked")


def drawn(seed, most=7):
    """The kind of the profits, the profits (k, n), and a set of up to `most` documents, perhaps an empty one: limits on
    prefixes over disjoint groups, and profits to which the theorem of `integrality.prefix_limits` applies."""
    random = np.random.default_rng(seed)
    kind = EXTENSIONS[seed % len(EXTENSIONS)]
    n = int(random.integers(2, most + 1))
    k = n = min(n, 5) if kind == EXTENSIONS[-1] else n
    k = k if random.random() < 0.2 or k != n else int(random.integers(1, min(n, 8) + 1))
    if kind == EXTENSIONS[-1]:
        k = n
    groups = int(random.integers(1, 4))
    group = random.integers(0, groups + 1, n)
    admissible = RankingSet(n, k)
    for _ in range(int(random.integers(1, 5))):
        members = np.flatnonzero(group == random.integers(0, groups))
        last, where = int(random.integers(1, k + 1)), random.random()
        positions = range(last)
        if where < 0.2:
            positions = [last - 1]
        elif where < 0.4 and k == n:
            positions = range(last - 1, k)
        word = str(random.choice(["at_most", "at_least", "exactly"], p=[0.5, 0.4, 0.1]))
        count = int(random.integers(0, min(len(positions), 3) + 1))
        admissible = admissible.add(word, count, documents=members, positions=positions)
    return kind, profit_of(kind, random, k, group), admissible


def profit_of(kind, random, k, group):
    n, integer = group.size, random.random() < 0.5

    def falling(*shape):
        return -np.sort(-(random.integers(0, 4, shape).astype(float) if integer else random.random(shape)), axis=-1)

    score = random.integers(-3, 4, n).astype(float) if integer else random.normal(size=n)
    position_weights, gain, worth = (
        falling(k),
        random.integers(0, 3, n).astype(float),
        random.integers(0, 3, 4).astype(float),
    )
    if kind == "a = κ c":
        return np.outer(position_weights, score) - np.outer(2.0 * position_weights, gain)
    if kind == "gains constant in groups":
        return np.outer(position_weights, score) - np.outer(falling(k), worth[group])
    if kind == "position weights by group":
        several = falling(4, k)[group].T * score
        return several + random.integers(-2, 3, (4, k))[group].T
    return np.outer(position_weights - 1.5 if kind == "any sign, all ranked" else position_weights, score)
