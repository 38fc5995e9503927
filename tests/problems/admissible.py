"""Small queries with attributes, sets over these, and every order of a set written out."""

from itertools import pairwise, permutations

import numpy as np

from rankopt.constraints import Admissible
from rankopt.losses.oracle_constrained import AdmissibleArgmax
from rankopt.losses.position_weights import parse_position_weights
from rankopt.measures import parse

SETS = {
    "sites": Admissible(3, on_infeasible="truncate").at_most(1, by="site"),
    "caps": Admissible(4, on_infeasible="truncate").at_most(2, by="site").at_most(3, by="new"),
    "quota": Admissible(3, on_infeasible="truncate").at_most(1, documents="new", positions=range(2)),
    "overlap": Admissible(3, on_infeasible="truncate").at_most(1, by="genres").at_most(2, documents="new"),
    "order": Admissible(3, on_infeasible="truncate").precedes("new", {"site": 1}).at_most(2, by="site"),
    "free": Admissible(3),
}


def drawn(seed, queries=3, largest=6, tied=False):
    """Grades, attributes, offsets and scores of a few small queries."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, largest + 1, queries)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n = offsets[-1]
    genres = np.empty(n, dtype=object)
    genres[:] = [tuple(rng.choice(4, 2, replace=False)) for _ in range(n)]
    attributes = {"site": rng.integers(0, 3, n), "new": rng.random(n) < 0.5, "genres": genres}
    scores = rng.integers(-1, 2, n).astype(float) if tied else rng.normal(size=n)
    return rng.integers(0, 3, n).astype(float), attributes, offsets, scores


def batch_of(
    admissible, grades, attributes, offsets, measure="nDCG@3", position_weights="power(0.5)", solver="auto", start=None
):
    measure, position_weights = parse(measure), parse_position_weights(position_weights)
    sets = [
        admissible.for_query({name: attributes[name][low:high] for name in admissible.attributes}, high - low)
        for low, high in pairwise(offsets.tolist())
    ]
    return AdmissibleArgmax.build(
        sets,
        measure.gain(grades, offsets),
        np.concatenate([measure.discount(one.documents)[: one.positions] for one in sets]),
        np.concatenate([position_weights.weights(one.documents, measure)[: one.positions] for one in sets]),
        offsets,
        np.zeros(grades.size) if start is None else start,
        solver,
    )


def written_out(batch, q):
    """Every order of the set of query q as (worth for the measure, score weight of each document)."""
    return [(worth, weights) for worth, weights, _ in paid_out(batch, q)]


def paid_out(batch, q):
    """The same with what each order pays for the soft constraints that it breaks."""
    low, high, top, end = (*batch.offsets[q : q + 2].tolist(), *batch.position_offsets[q : q + 2].tolist())
    gain, discount, decay = batch.gain[low:high], batch.discount[top:end], batch.position_weights[top:end]
    found = []
    for order in permutations(range(high - low), end - top):
        if batch.sets[q].is_feasible(order):
            weights = np.zeros(high - low)
            weights[list(order)] = decay
            found.append((float(discount @ gain[list(order)]), weights, batch.sets[q].charge(order)))
    return found


SOFT_SETS = {
    "soft sites": Admissible(3).at_most(1, by="site").penalized("site", penalty=0.3),
    "soft quota": SETS["quota"].at_least(1, documents="new", name="some").penalized("some", penalty=0.2),
    "soft overlap": SETS["overlap"].penalized("genres", penalty=0.15).forbid(documents="new", positions=0, name="late"),
    "soft order": Admissible(3)
    .precedence_chain([{"site": 0}, {"site": 1}, "new"], name="order")
    .penalized("order", penalty=0.2),
    "soft ban": SETS["sites"].forbid(documents="new", positions=[0, 1], name="late").penalized("late", penalty=0.1),
}
