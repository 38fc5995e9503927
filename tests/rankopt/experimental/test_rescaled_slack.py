"""The rescaled slack: a convex bound of the regret, valid planes, a certificate with true gaps."""

from functools import partial
from itertools import pairwise, permutations

import numpy as np
import pytest
from problems.rated import tastes
from problems.training import made

from rankopt.data import Queries
from rankopt.errors import OptionError
from rankopt.experimental import RescaledSlack
from rankopt.rankers import CofiRanker, LossRanker
from rankopt.testing import check_loss


def every_order(loss, scores):
    """For each query regret and margin of all orders, and whether the scores allow them."""
    ranking, reference = loss.problem.ranking, loss.problem.reference
    for low, high in pairwise(loss.offsets.tolist()):
        s, gain = scores[low:high], ranking.gain[low:high]
        discount, decay = ranking.discount[low:high], ranking.position_weights[low:high]
        orders = [list(order) for order in permutations(range(high - low))]
        earned = np.array([discount @ gain[order] for order in orders])
        margin = np.array([1 + decay @ s[order] for order in orders]) - reference[low:high] @ s
        yield earned.max() - earned, margin, np.array([(np.diff(s[order]) <= 0).all() for order in orders])


@pytest.mark.every(5)
@pytest.mark.parametrize("position_weights", ["power(0.5)", "linear", "discount"])
def test_it_passes_what_losses_pass(position_weights):
    check_loss(partial(RescaledSlack, measure="nDCG@3", position_weights=position_weights))


def test_value_and_bound_enclose_the_maximum_and_the_maximum_bounds_the_regret():
    rng = np.random.default_rng(0)
    offsets = np.array([0, 3, 8, 9, 15])
    loss = RescaledSlack(rng.integers(0, 3, 15).astype(float), offsets, "nDCG@3")
    for scale in (0.01, 1.0, 100.0):
        scores = scale * rng.normal(size=15)
        for prove in (False, True):
            here = loss.at(scores, prove)
            slope = here.assigned - here.reference
            np.testing.assert_allclose(here.height + np.add.reduceat(slope * scores, offsets[:-1]), here.value)
            for q, (regret, margin, allowed) in enumerate(every_order(loss, scores)):
                most = (regret * margin).max()
                assert here.value[q] <= most + 1e-9 * scale
                assert most <= here.bound[q] + 1e-9 * scale
                assert regret[allowed].max() <= most + 1e-12


def test_training_closes_the_gap_and_its_bound_is_below_every_objective():
    X, y, qid = made(queries=20, documents=12)
    ranker = LossRanker(RescaledSlack, "nDCG@5", lam=0.05, tol=1e-2).fit(X, y, qid=qid)
    proved = ranker.certificate_
    assert proved.kind == "global"
    assert proved.relative_gap <= 1e-2
    risk = ranker.objective(Queries.from_arrays(X, y, qid=qid))
    rng = np.random.default_rng(1)
    for w in ranker.coef_ + rng.normal(size=(20, 4)) * np.logspace(-3, 0, 20)[:, None]:
        there = risk.risk.at(w)
        assert risk.regularizer(w) + there.bound >= proved.bound
        assert there.bound >= there.value
    assert ranker.score(X, y, qid=qid) > 0.7


def test_it_is_of_the_measure_of_its_ranker():
    X, y, qid = made(queries=10)
    named = LossRanker(RescaledSlack, "P@2", lam=0.1, tol=0.1).fit(X, y > 0, qid=qid)
    given = LossRanker(partial(RescaledSlack, measure="P@2"), "nDCG@10", lam=0.1, tol=0.1).fit(X, y > 0, qid=qid)
    np.testing.assert_array_equal(named.coef_, given.coef_)
    with pytest.raises(OptionError, match="has no regret"):
        LossRanker(RescaledSlack, "AP").fit(X, y > 0, qid=qid)


def test_collaborative_ranking_refuses_a_loss_that_is_known_within_bounds_only():
    with pytest.raises(OptionError, match="is known within bounds only"):
        CofiRanker(RescaledSlack).fit(tastes())
