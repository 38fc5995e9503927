"""Train under a constraint, or re-rank after training? Generated data on which training wins clearly.

python examples/training_under_constraints.py

A query is a product search: 5 sellers with 8 offers each. The list shows one offer of each seller. Good sellers are
expensive, and the good offers of a seller are its cheap ones: price has one sign between sellers and the other sign
within a seller. Without the constraint, most pairs compare offers of different sellers, and training learns the first
sign; under it, training must also choose the offer of each seller, and learns the second.

If the feature is the price relative to the seller's mean, the difference is not significant. On real data re-ranking is
as good (W3C experts, students) or better (MovieLens): `python -m benchmarks sets train_or_rerank` measures all.
"""

import numpy as np

from rankopt import Admissible, LargeMarginRanker, Queries, compare

SELLERS, OFFERS = 5, 8
one_each = Admissible(k=SELLERS).at_most(1, by="seller")


def product_searches(queries, seed):
    rng = np.random.default_rng(seed)
    shape = queries, SELLERS, OFFERS
    seller, offer = np.broadcast_to(rng.normal(size=(queries, SELLERS, 1)), shape), rng.normal(size=shape)
    price = 3 * seller - offer + 0.5 * rng.normal(size=shape)
    stars = seller + offer + 3 * rng.normal(size=shape)  # right in both respects, but noisy
    return Queries.from_arrays(
        np.column_stack([price.ravel(), stars.ravel()]),
        np.clip(np.round(1 + seller + offer), 0, 4).ravel(),
        qid=np.repeat(np.arange(queries), SELLERS * OFFERS),
        attributes={"seller": np.broadcast_to(np.arange(SELLERS)[:, None], shape).ravel()},
        feature_names=["price", "stars"],
    )


def values(ranker, queries):
    """nDCG@5 of each query, of the best list with one offer of each seller."""
    return [ranker.score(queries.select([q]), constraints=one_each) for q in range(len(queries))]


if __name__ == "__main__":
    ours, theirs = [], []
    for seed in range(3):
        train, test = product_searches(40, seed), product_searches(100, 1000 + seed)
        # w0="zeros": the default start, a ridge, ignores the constraint, and training stays near its start.
        under = LargeMarginRanker("nDCG@5", constraints=one_each, w0="zeros").fit(train)
        free = LargeMarginRanker("nDCG@5", w0="zeros").fit(train)
        ours += values(under, test)
        theirs += values(free, test)
        print(f"weight of the price: {free.coef_[0]:+.2f} without the constraint, {under.coef_[0]:+.2f} under it")
    print("\nTrained under the constraint against re-ranked after training:")
    print(compare(ours, theirs))
