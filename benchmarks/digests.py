"""Digests of trained models and solved problems: whether a change of the code changes a bit of a result.

    python benchmarks/digests.py                    a line a model: digest of its weights, objective J, relative gap
    python benchmarks/digests.py --save old.json    and keep them
    python benchmarks/digests.py --against old.json the same, and what differs from those kept, with the change in J

Bits belong to a machine and to versions of its packages: keep and compare on one machine.
"""

import argparse
import hashlib
import json
import warnings
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from formulations import (
    RankingSet,
    constrained_ranking,
    diverse_retrieval,
    margin_dual,
    marginal_ranking,
    matching,
    ranking,
    solve,
    solve_batch,
)
from rankopt.constraints import Admissible
from rankopt.data import Queries, load_sample
from rankopt.rankers import LargeMarginRanker, MatchingRanker, PairwiseRanker, RegressionRanker


def sparse(queries):
    features = csr_array(np.asarray(queries.features, dtype=np.float32))
    return Queries.from_arrays(features, queries.relevance, group=np.diff(queries.offsets))


def models():
    les = load_sample("les-miserables").train
    digits = load_sample("digits").train
    some = Admissible(k=5).at_most(2, by="community")
    rng = np.random.default_rng(0)
    x = rng.integers(-2, 3, size=(240, 6)).astype(np.float64)
    slots = np.where(rng.random(240) < 0.4, rng.integers(1, 4, 240), 0).astype(np.float64)
    ids = np.arange(240) // 8
    yield "convex, bundle", lambda: LargeMarginRanker("nDCG@10", bound="convex", lam=0.01).fit(les)
    yield (
        "tie-aware, bundle",
        lambda: LargeMarginRanker(
            "nDCG@10", bound="tie-aware", position_weights="power(0.5)", w0="regression", lam=0.1
        ).fit(les),
    )
    yield (
        "nonconvex, bundle",
        lambda: LargeMarginRanker("nDCG@10", bound="nonconvex", w0="regression", lam=0.1).fit(les),
    )
    yield (
        "convex, reference first, cutting planes",
        lambda: LargeMarginRanker("P@5", bound="convex", target_ranking="first", method="cutting_planes", lam=0.1).fit(
            les
        ),
    )
    yield (
        "nonconvex, ERU, block Frank-Wolfe",
        lambda: LargeMarginRanker(
            "ERU(alpha=3)",
            bound="nonconvex",
            w0="regression",
            position_weights="log",
            method="block_frank_wolfe",
            lam=0.1,
            tol=1e-2,
            random_state=0,
        ).fit(les),
    )
    yield "convex, constraints", lambda: LargeMarginRanker("nDCG@5", bound="convex", constraints=some, lam=0.1).fit(les)
    yield (
        "tie-aware, constraints",
        lambda: LargeMarginRanker("nDCG@5", bound="tie-aware", constraints=some, w0="regression", lam=0.1).fit(les),
    )
    yield (
        "nonconvex, constraints",
        lambda: LargeMarginRanker("nDCG@5", bound="nonconvex", constraints=some, w0="regression", lam=0.1).fit(les),
    )
    for bound in ("convex", "tie-aware", "nonconvex"):
        yield f"{bound}, slots", lambda bound=bound: MatchingRanker(bound=bound, lam=0.1).fit(x, slots, qid=ids)
    yield (
        "nonconvex, sparse float32",
        lambda: LargeMarginRanker("nDCG@10", bound="nonconvex", w0="regression", lam=0.1).fit(sparse(les)),
    )
    yield (
        "nonconvex, digits",
        lambda: LargeMarginRanker("nDCG@10", bound="nonconvex", w0="regression", lam=0.1, max_iter=60).fit(digits),
    )
    yield "pairwise", lambda: PairwiseRanker(lam=0.1).fit(les)
    yield "regression", lambda: RegressionRanker(0.0, target="gain", intercept="all").fit(les)


def problems():
    rng = np.random.default_rng(1)
    scores, gain = rng.integers(-3, 4, 60) / 4.0, rng.integers(0, 4, 60).astype(np.float64)

    def decay(n):
        return np.arange(1.0, n + 1) ** -0.5

    def discount(n):
        return np.where(np.arange(n) < 10, 1.0 / np.log2(np.arange(n) + 2.0), 0.0)

    batch = ranking(scores, gain, discount=discount, position_weights=decay, offsets=np.array([0, 7, 30, 60]))
    yield "ranking, a batch, exact", lambda: solve_batch(batch, "exact")
    worth = rng.normal(size=(6, 9))
    for solver in ("scipy", "highs", "ortools"):
        yield f"matching, {solver}", lambda solver=solver: solve(matching(worth), solver)
    yield "diverse retrieval", lambda: solve(diverse_retrieval(worth, groups=[0, 0, 0, 0, 1, 2, 3, 4, 5]), "auto")
    quota = RankingSet(9, 6).at_most(2, by=[0, 0, 0, 0, 1, 1, 1, 2, 3]).at_most(1, documents=[0, 4], positions=[0, 1])
    yield "ranking set, highs", lambda: solve(constrained_ranking(np.abs(worth), quota), "highs")
    yield (
        "margin dual, active set",
        lambda: solve(margin_dual(rng.normal(size=(30, 5)), rng.random(30), lam=0.1), "active_set"),
    )
    yield "marginal ranking, highs", lambda: solve(marginal_ranking(worth), "highs")


def digest(*arrays):
    hashed = hashlib.sha256()
    for array in arrays:
        hashed.update(np.ascontiguousarray(array).tobytes())
    return hashed.hexdigest()[:16]


def measured():
    rows = {}
    for name, fit in models():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fit()
        row = {"digest": digest(model.coef_)}
        if hasattr(model, "certificate_"):
            row |= {"J": model.certificate_.primal, "gap": model.certificate_.relative_gap, "steps": model.n_iter_}
        rows[name] = row
        print(f"{name:40s} {row}", flush=True)
    for name, find in problems():
        found = find()
        parts = [found.order, found.value] if hasattr(found, "ways") else [found.x, found.value, found.bound]
        rows[name] = {"digest": digest(*map(np.asarray, parts))}
        print(f"{name:40s} {rows[name]}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--against", type=Path)
    chosen = parser.parse_args()
    rows = measured()
    if chosen.save:
        chosen.save.write_text(json.dumps(rows, indent=1))
    if chosen.against:
        old = json.loads(chosen.against.read_text())
        changed = [name for name in old if rows.get(name, {}).get("digest") != old[name]["digest"]]
        print(f"{len(old) - len(changed)} of {len(old)} equal")
        for name in changed:
            new = rows.get(name, {})
            print(f"  {name}: J {old[name].get('J')} -> {new.get('J')}")


if __name__ == "__main__":
    main()
