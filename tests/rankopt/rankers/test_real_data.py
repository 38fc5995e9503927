"""The spine on real input: LETOR OHSUMED and MQ2008 read, learned to a proven gap, saved, loaded, applied."""

import numpy as np
import pytest

from rankopt.data import Queries, concatenate, read_svmlight
from rankopt.measures import evaluate
from rankopt.rankers import LargeMarginRanker, PairwiseRanker, load_model

BOUNDS = ["convex", "tie-aware", "nonconvex"]


@pytest.fixture(scope="module")
def parts(data_folder):
    return [read_svmlight(data_folder / "letor4-mq2008" / f"S{i}.txt.gz") for i in (1, 2, 3)]


@pytest.fixture(scope="module")
def ohsumed(data_folder):
    folder = data_folder / "letor3-ohsumed" / "QueryLevelNorm" / "Fold1"
    return read_svmlight(folder / "train.txt.gz"), read_svmlight(folder / "test.txt.gz")


def shuffled(queries, seed):
    """Documents shuffled, queries relabelled."""
    rows = np.random.default_rng(seed).permutation(queries.n_documents)
    query = np.repeat(np.arange(len(queries)), np.diff(queries.offsets))
    names = [f"relabelled {37 * q % 1009}" for q in query[rows]]
    return Queries.from_arrays(queries.features[rows], queries.relevance[rows], qid=names)


@pytest.mark.every(2)
@pytest.mark.filterwarnings("ignore::rankopt.errors.NoProgressWarning")  # the convex bound is least at w = 0 on MQ2008
@pytest.mark.parametrize("bound", BOUNDS)
def test_shuffling_relabelling_and_splitting_real_files_change_nothing(parts, bound):
    ranker = LargeMarginRanker("nDCG@10", bound=bound, lam=1e-2, position_weights="power(0.5)")
    whole = concatenate(parts)
    other = shuffled(concatenate([parts[2], parts[0], parts[1]]), 1)
    rng = np.random.default_rng(2)
    for _ in range(3):
        w = rng.normal(size=whole.n_features)
        risk, same = (ranker.objective(queries).risk.at(w).value for queries in (whole, other))
        assert same == pytest.approx(risk, rel=1e-12)
    first, second = ranker.fit(parts[0]).certificate_, ranker.fit(shuffled(parts[0], 3)).certificate_
    assert abs(first.primal - second.primal) <= min(first.gap, second.gap)


def test_ohsumed_end_to_end(ohsumed, tmp_path):
    train, test = ohsumed
    ranker = LargeMarginRanker(
        "nDCG@10", bound="nonconvex", lam=1.0, argmax_solver="exact", master_solver="active_set"
    ).fit(train)
    assert ranker.certificate_.relative_gap <= ranker.tol
    ranker.save(tmp_path / "ohsumed.rankopt")
    loaded = load_model(tmp_path / "ohsumed.rankopt")
    np.testing.assert_array_equal(loaded.predict(test), ranker.predict(test))
    assert loaded.certificate_ == ranker.certificate_
    learned = evaluate(test, ranker.predict(test), "nDCG@10", convention="letor3").mean()
    chance = evaluate(
        test, np.random.default_rng(0).normal(size=test.n_documents), "nDCG@10", convention="letor3"
    ).mean()
    assert learned > chance + 0.1


@pytest.mark.study
def test_argmax_solvers_agree_along_a_real_run(ohsumed):
    """At points of a real run, exact and scipy find one risk, and prices prove every ranking of the exact one."""
    train, _ = ohsumed
    trials = []

    def follow(step, state):
        trials.append(state.trial)
        return step.step == 40

    LargeMarginRanker("nDCG@10", bound="nonconvex", position_weights="power(0.5)", lam=0.1, callbacks=[follow]).fit(
        train
    )
    for w in [np.zeros(train.n_features), *trials[::13]]:
        exact, scipy = (
            LargeMarginRanker("nDCG@10", bound="nonconvex", position_weights="power(0.5)", argmax_solver=argmax)
            .objective(train)
            .risk
            for argmax in ("exact", "scipy")
        )
        assert exact.at(w).value == pytest.approx(scipy.at(w).value, rel=1e-9)
        assert scipy.at(w).bound <= exact.at(w).bound * (1 + 1e-9)


def test_rank_svm_beats_chance_on_mq2008(parts):
    ranker = PairwiseRanker(lam=1e-3).fit(concatenate(parts[:2]))
    assert ranker.certificate_.relative_gap <= ranker.tol
    assert evaluate(parts[2], ranker.predict(parts[2]), "nDCG@10", convention="burges").mean() > 0.42
