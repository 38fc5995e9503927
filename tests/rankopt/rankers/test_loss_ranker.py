"""A ranker for any loss: what holds for the margin losses holds for one of the user's own."""

import numpy as np
import pytest
from planted.losses import TopOne
from problems.same_bits import assert_same
from problems.training import made
from scipy.optimize import minimize
from sklearn.base import clone

from rankopt.constraints import Admissible
from rankopt.data import Queries
from rankopt.errors import DataError, ModelError, OptionError
from rankopt.losses import LOSSES, get_loss
from rankopt.losses.loss import protocol_of
from rankopt.rankers import LossRanker, PairwiseRanker, load_model
from rankopt.risk import risk as sharding
from rankopt.testing import check_loss


def test_the_loss_of_ones_own_passes_the_checks():
    check_loss(TopOne)


def test_pairwise_is_the_ranker_of_that_name():
    X, y, qid = made()
    assert_same(LossRanker("pairwise", lam=0.1).fit(X, y, qid=qid), PairwiseRanker(lam=0.1).fit(X, y, qid=qid))


def test_a_smooth_loss_is_minimised_to_its_gap():
    """Against a quasi-Newton method on the objective written out."""
    X, y, qid = made()
    ranker = LossRanker(TopOne, lam=0.1, tol=1e-6).fit(X, y, qid=qid)
    blocks = [(X[qid == q], y[qid == q]) for q in np.unique(qid) if np.ptp(y[qid == q]) > 0]

    def objective(w):
        total = 0.0
        for rows, grades in blocks:
            s, p = rows @ w, np.exp(grades) / np.exp(grades).sum()
            total += np.log(np.exp(s).sum()) - p @ s
        return 0.05 * w @ w + total / len(blocks)

    best = minimize(objective, np.zeros(X.shape[1]), method="BFGS", options={"gtol": 1e-9}).fun
    certificate = ranker.certificate_
    assert certificate.kind == "global"
    assert certificate.bound <= best + 1e-9
    assert certificate.primal == pytest.approx(best, rel=2e-6)
    assert certificate.primal == pytest.approx(objective(ranker.coef_), rel=1e-12)


PLANES = [name for name in LOSSES if protocol_of(get_loss(name)) == "plane"]


@pytest.mark.every(7)
@pytest.mark.parametrize("loss", [*PLANES, TopOne])
def test_every_engine_gives_the_same_bits(loss, workers, monkeypatch):
    monkeypatch.setattr(sharding, "SHARD_ROWS", 20)
    X, y, qid = made()
    first, *others = (
        LossRanker(loss, lam=0.1, tol=1e-3, engine=engine).fit(X, y, qid=qid)
        for engine in ("serial", "threads", workers)
    )
    assert len(first.objective(Queries.from_arrays(X, y, qid=qid)).risk.shards) > 1
    for other in others:
        assert_same(first, other)


@pytest.mark.parametrize("loss", [*PLANES, TopOne])
def test_shuffling_the_input_changes_no_bit(loss):
    X, y, qid = made()
    rows = np.random.default_rng(0).permutation(len(y))
    ranker = LossRanker(loss, lam=0.1, tol=1e-3)
    straight, moved = (clone(ranker).fit(X[r], y[r], qid=qid[r]) for r in (np.arange(len(y)), rows))
    np.testing.assert_array_equal(straight.coef_, moved.coef_)


def test_path_evaluation_and_checkpoint(tmp_path):
    X, y, qid = made()
    held = made(seed=1)
    options = {"eval_set": held[:2], "eval_qid": held[2]}
    path = LossRanker("pairwise").path(X, y, qid=qid, lams=[1.0, 0.1], **options)
    assert path.best.best_score_ == max(model.best_score_ for model in path)
    whole = LossRanker("pairwise", lam=0.01, tol=1e-6).fit(X, y, qid=qid)
    with pytest.warns(UserWarning, match="stopped"):
        LossRanker("pairwise", lam=0.01, tol=1e-6, max_iter=3, checkpoint=str(tmp_path)).fit(X, y, qid=qid)
    resumed = LossRanker("pairwise", lam=0.01, tol=1e-6, checkpoint=str(tmp_path)).fit(X, y, qid=qid)
    np.testing.assert_array_equal(whole.coef_, resumed.coef_)


def test_constraints_hold_where_it_is_shown():
    X, y, qid = made()
    site = np.random.default_rng(0).integers(0, 3, len(y))
    rule = Admissible(3, on_infeasible="truncate").at_most(1, by="site")
    ranker = LossRanker("pairwise", lam=0.1, constraints=rule).fit(X, y, qid=qid, attributes={"site": site})
    for shown in ranker.rank(X, qid=qid, attributes={"site": site}).values():
        assert len(set(site[shown])) == len(shown) >= 2


def test_it_is_saved_by_the_name_of_its_loss(tmp_path):
    X, y, qid = made()
    ranker = LossRanker("pairwise", lam=0.1).fit(X, y, qid=qid)
    ranker.save(tmp_path / "m")
    assert_same(load_model(tmp_path / "m"), ranker)
    with pytest.raises(ModelError, match="loss of LossRanker"):
        LossRanker(TopOne, lam=0.1).fit(X, y, qid=qid).save(tmp_path / "own")


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ("listnet", "known are pairwise"),
        (3, "is no factory"),
        (lambda *_: None, "is no Loss"),
        ("smooth", "SmoothRanker"),
    ],
)
def test_what_is_no_loss_is_refused(loss, message):
    X, y, qid = made()
    with pytest.raises(OptionError, match=message):
        LossRanker(loss).fit(X, y, qid=qid)


def test_a_slip_in_the_measure_is_an_error_before_training():
    X, y, qid = made()
    with pytest.raises(ValueError, match="nDCH"):
        LossRanker(measure="nDCH@10").fit(X, y, qid=qid)


def test_queries_of_one_grade_teach_nothing():
    X, y, qid = made()
    with pytest.raises(DataError, match="different grades"):
        LossRanker().fit(X, np.zeros(len(y)), qid=qid)
    some = np.where(qid < 3, y, 0.0)
    kept = np.isin(qid, [q for q in range(3) if np.ptp(y[qid == q]) > 0])
    np.testing.assert_array_equal(
        LossRanker(lam=0.1).fit(X, some, qid=qid).coef_, LossRanker(lam=0.1).fit(X[kept], y[kept], qid=qid[kept]).coef_
    )
