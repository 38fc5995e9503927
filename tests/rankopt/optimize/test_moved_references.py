"""Block Frank-Wolfe where the reference moves: its dual does not fall behind what holds anyway, and it never stands
still falsely."""

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from problems.training import made
from sklearn.exceptions import ConvergenceWarning

from rankopt.data import load_sample
from rankopt.data.queries import Queries
from rankopt.errors import WorseThanInitWarning
from rankopt.optimize.certificate import Stop
from rankopt.optimize.frank_wolfe import BlockFrankWolfe, _Dual
from rankopt.rankers import LargeMarginRanker


def dual_of(seed):
    """A dual after some passes, its references moved at random and its weights with them: how good they are is lost."""
    X, y, qid = made(seed=seed)
    ranker = LargeMarginRanker("nDCG@5", bound="nonconvex", w0="regression", lam=0.03)
    objective = ranker.objective(Queries.from_arrays(X, y, qid=qid))
    method = BlockFrankWolfe(batch=4, seed=seed)
    state = method.start(objective, objective.w0)
    for _ in range(3):
        state = method.step(state, objective)
    rng = np.random.default_rng(seed)
    references = state.planes.references
    moved = references + rng.normal(size=references.shape) * np.abs(references).mean()
    return (
        _Dual(replace(state, planes=state.planes.with_references(moved, state.planes.paid)), objective),
        state,
        objective,
    )


@pytest.mark.parametrize("seed", range(12))
def test_weights_that_are_shrunk_are_the_best_of_their_direction(seed):
    dual, state, objective = dual_of(seed)

    def value(part):
        step = part * dual_step
        return float(part * (heights + slopes @ objective.w0) - objective.lam / 2 * step @ step)

    heights, slopes = dual.heights.sum(), dual.slopes.sum(axis=0)
    dual_step = -slopes / objective.lam
    dual.shrink()
    kept = dual.alpha.max() / state.alpha.max()
    assert 0 <= kept <= 1
    assert value(kept) >= max(value(part) for part in np.linspace(0, 1, 101)) - 1e-12
    assert value(kept) >= 0
    told = dual.value(replace(state, planes=dual.planes(), alpha=dual.alpha))
    assert told == pytest.approx(value(kept), abs=1e-12)
    np.testing.assert_allclose(dual.w, objective.w0 - dual.slopes.sum(axis=0) / objective.lam, atol=1e-9)


@pytest.mark.study
@pytest.mark.parametrize(("measure", "lam"), list(product(["nDCG@10", "P@5"], [1e-1, 1e-2, 1e-3, 1e-4])))
def test_no_false_stop_on_real_queries(measure, lam):
    """It said so at a gap of 100%: the dual was below 0, where it climbs and the bound of 0 hides that."""
    sample = load_sample("les-miserables").train
    ranker = LargeMarginRanker(measure, lam=lam, method="block_frank_wolfe", max_iter=150)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", WorseThanInitWarning)
        proved = ranker.fit(sample).certificate_
    assert proved.stop is not Stop.STALLED
    assert proved.bound > 0
