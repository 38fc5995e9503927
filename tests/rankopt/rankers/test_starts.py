"""Starts by name, and the natural strength of the regularizer: nothing depends on units or on the order of rows."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone

from rankopt.cli import rankopt
from rankopt.data import Queries, load_sample, write_svmlight
from rankopt.data.canonical_order import canonical
from rankopt.errors import DataError, OptionError, WorseThanInitWarning
from rankopt.losses import get_loss
from rankopt.losses.pairwise import PairwiseHinge
from rankopt.measures import evaluate
from rankopt.optimize.bundle import Bundle
from rankopt.rankers import (
    LargeMarginRanker,
    LossRanker,
    MatchingRanker,
    PairwiseRanker,
    RegressionRanker,
    SmoothRanker,
)
from rankopt.rankers.path import FACTORS, FOLDS, LOSS_FACTORS, dealt, judged
from rankopt.rankers.starts import STRENGTH, spread


def drawn(seed, queries=12, features=3):
    random = np.random.default_rng(seed)
    qid = np.repeat(np.arange(queries), random.integers(2, 9, queries))
    X = random.normal(size=(qid.size, features)) + random.normal(size=(queries, features))[qid] * 10
    y = np.digitize(X @ random.normal(size=features) + 9 * random.normal(size=qid.size), [-1.0, 1.0]).astype(float)
    return X, y, qid


def arranged(X, y, qid):
    queries = Queries.from_arrays(X, y, qid=qid)
    return canonical(queries, np.ones(len(queries)))


@pytest.mark.parametrize("make", [np.asarray, csr_array], ids=["dense", "CSR"])
def test_the_spread_is_the_mean_square_distance_from_the_query(make):
    X, y, qid = drawn(0)
    expected = np.mean([np.mean(np.sum((X[qid == q] - X[qid == q].mean(axis=0)) ** 2, axis=1)) for q in np.unique(qid)])
    assert spread(arranged(make(X), y, qid)) == pytest.approx(expected, rel=1e-9)
    assert spread(arranged(make(X * (X > 0) + 1e8), y, qid)) == pytest.approx(
        spread(arranged(X * (X > 0), y, qid)), rel=1e-6
    )
    assert spread(arranged(make(X * (X > 0)), y, qid)) == pytest.approx(
        spread(arranged(X * (X > 0), y, qid)), rel=1e-12
    )


def test_units_and_offsets_of_queries_change_nothing():
    X, y, qid = drawn(1)
    usual = LargeMarginRanker(tol=1e-9).fit(X, y, qid=qid)
    for scale in (2.0**-30, 2.0**40):
        other = LargeMarginRanker(tol=1e-9).fit(X * scale, y, qid=qid)
        assert other.lam_ == pytest.approx(usual.lam_ * scale**2, rel=1e-12)
        assert other.certificate_.primal == pytest.approx(usual.certificate_.primal, rel=1e-6)
        assert other.coef_ * scale == pytest.approx(usual.coef_, rel=1e-4, abs=1e-9)
    moved = LargeMarginRanker(tol=1e-9).fit(X + np.arange(qid.max() + 1)[qid][:, None], y, qid=qid)
    assert moved.coef_ == pytest.approx(usual.coef_, rel=1e-4, abs=1e-9)


def test_the_natural_strength_falls_with_the_number_of_queries():
    X, y, qid = drawn(2)
    ranker = LargeMarginRanker().fit(X, y, qid=qid)
    useful = sum(np.unique(y[qid == q]).size > 1 for q in np.unique(qid))
    assert ranker.lam_ == pytest.approx(STRENGTH * spread(arranged(X, y, qid)) / useful)
    twice = LargeMarginRanker().fit(np.vstack([X, X]), np.r_[y, y], qid=np.r_[qid, qid + 100])
    assert twice.lam_ == pytest.approx(ranker.lam_ / 2)


GAINS = "gain=[0, {0}, {1}, {2}]"


def graded(seed=12):
    """Three features, grades 0 to 3 that follow the first two."""
    random = np.random.default_rng(seed)
    qid = np.repeat(np.arange(12), 8)
    X = random.normal(size=(qid.size, 3))
    return X, np.digitize(X @ [2.0, 1.0, 0.0] + random.normal(size=qid.size), [0.0, 2.0, 3.0]).astype(float), qid


def of_gains(c, measure, bound):
    return LargeMarginRanker(measure.format(c, 2 * c, 5 * c), bound=bound, tol=1e-6), *graded()


def of_features(c, ranker):
    X, y, qid = graded()
    return ranker.set_params(tol=1e-6), X * c, y, qid


def of_benefits(c, bound):
    return MatchingRanker(3, position_weight=[3 * c, 2 * c, c], bound=bound, tol=1e-6), *graded()


def of_losses(c, name):
    return LossRanker(lambda *data: Times(get_loss(name)(*data), c), tol=1e-6), *graded()


class Times:
    """A loss times a number."""

    convex = True

    def __init__(self, loss, times):
        self.loss, self.times = loss, times

    def at(self, scores, prove=False):
        found = self.loss.at(scores, prove)
        scaled = {name: self.times * getattr(found, name) for name in ("value", "bound", "height", "assigned")}
        return replace(found, reference=self.times * found.reference, **scaled)

    def majorant(self, scores):
        return self

    def select_queries(self, first, last):
        return Times(self.loss.select_queries(first, last), self.times)

    def reference_weights(self, scores):
        return self.times * self.loss.reference_weights(scores)


DCG, MIX = f"DCG({GAINS})@5", f"DCG({GAINS})@5 + 2*Custom(discount=[1, .5], {GAINS})"
UNITS = [
    *[(of_gains, (DCG, bound), 1) for bound in ("convex", "tie-aware", "nonconvex")],
    (of_gains, (MIX, "nonconvex"), 1),
    *[(of_benefits, (bound,), 1) for bound in ("tie-aware", "nonconvex")],
    *[
        (of_features, (ranker,), -1)
        for ranker in (PairwiseRanker(), LossRanker("ordinal"), MatchingRanker(bound="nonconvex"))
    ],
    *[(of_losses, (name,), 0) for name in ("pairwise", "ordinal", "preferences")],
]
"""What is scaled by c, its arguments, and the power of c that the weights follow."""


@pytest.mark.parametrize(("make", "arguments", "power"), UNITS)
def test_units_of_gains_features_and_losses_change_no_order(make, arguments, power):
    cases = (make(c, *arguments) for c in (1.0, 1e-3, 1e3))
    one, *others = (clone(ranker).fit(X, y, qid=qid) for ranker, X, y, qid in cases)
    assert one.coef_.any()
    for c, other in zip((1e-3, 1e3), others, strict=True):
        assert other.coef_ == pytest.approx(one.coef_ * c**power, rel=1e-3, abs=1e-6 * c**power)


INVARIANT = {
    "pairwise": PairwiseRanker(),
    "ordinal": LossRanker("ordinal"),
    "nonconvex": LargeMarginRanker(w0="ranksvm"),
    "AP over pairs": LargeMarginRanker("AP", feature_map="pairwise", bound="convex"),
    "slots": MatchingRanker(bound="nonconvex"),
    "smooth": SmoothRanker(w0="ranksvm", tol=1e-9),
    "l1": PairwiseRanker(penalty="l1", tol=1e-6),
    **{
        method: PairwiseRanker(method=method, max_iter=200)
        for method in ("cutting_planes", "block_frank_wolfe", "stochastic_subgradient")
    },
}


@pytest.mark.parametrize("name", INVARIANT)
def test_a_scale_of_each_feature_changes_no_order(name):
    X, y, qid = graded()
    scales = 2.0 ** np.array([-30, 0, 40])
    ranker = INVARIANT[name]
    one, other = (clone(ranker).fit(features, y, qid=qid) for features in (X, X * scales))
    assert other.coef_ * scales == pytest.approx(one.coef_, rel=1e-3, abs=1e-3 * np.abs(one.coef_).max())
    assert other.certificate_.primal == pytest.approx(one.certificate_.primal, rel=1e-4)


@pytest.mark.parametrize(
    "ranker", [LargeMarginRanker("nDCG@5"), PairwiseRanker(), LargeMarginRanker("nDCG@5", method="block_frank_wolfe")]
)
def test_the_certified_objective_is_that_of_units_of_the_features(ranker):
    X, y, qid = drawn(9, queries=20)
    X = np.column_stack([X * [1e-4, 1.0, 1e6], np.ones(len(X))])
    queries = Queries.from_arrays(X, y, qid=qid)
    ranker = clone(ranker).fit(queries)
    squares = np.mean([X[qid == q].var(axis=0) for q in np.unique(qid)], axis=0)
    away = ranker.coef_ - ranker.w0_
    assert away[3] == 0.0
    penalty = ranker.lam_ / 2 * np.sum(squares / squares[:3].mean() * away**2)
    risk = ranker.objective(queries).risk
    assert penalty + risk.at(ranker.coef_).value == pytest.approx(ranker.certificate_.primal, rel=1e-9)
    majorant = risk.majorant(ranker.coef_)
    for w in np.random.default_rng(0).normal(size=(20, 4)) / np.where(squares > 0, np.sqrt(squares), np.inf):
        w = ranker.coef_ + w * (squares > 0)
        there = ranker.lam_ / 2 * np.sum(squares / squares[:3].mean() * (w - ranker.w0_) ** 2)
        assert there + majorant.at(w).value >= ranker.certificate_.bound


def test_the_certified_objective_of_l1_is_in_units_of_the_features_too():
    X, y, qid = drawn(9, queries=20)
    X = np.column_stack([X * [1e-4, 1.0, 1e6], np.ones(len(X))])
    queries = Queries.from_arrays(X, y, qid=qid)
    ranker = PairwiseRanker(penalty="l1").fit(queries)
    squares = np.mean([X[qid == q].var(axis=0) for q in np.unique(qid)], axis=0)
    units = np.sqrt(squares / squares[:3].mean())
    risk = ranker.objective(queries).risk
    for w in (ranker.coef_, *np.random.default_rng(0).normal(size=(20, 4)) / np.where(squares > 0, units, np.inf)):
        value = ranker.lam_ * np.sum(units * np.abs(w)) + risk.at(w).value
        assert value >= ranker.certificate_.bound
        assert value == pytest.approx(ranker.certificate_.primal, rel=1e-9) or w is not ranker.coef_


def test_one_column_of_large_numbers_does_not_spoil_a_sparse_model():
    X, y, qid = graded()
    time = 1.7e9 + 1e5 * np.random.default_rng(1).normal(size=(len(X), 1))
    alone, with_time = (
        PairwiseRanker(penalty="l1").fit(features, y, qid=qid) for features in (X, np.hstack([X, time]))
    )
    assert_array_equal(with_time.get_support()[:3], alone.get_support())


def test_a_column_of_another_scale_does_not_keep_the_others_at_the_start():
    X, y, qid = graded()
    noise = np.random.default_rng(1).normal(size=len(X))
    for scale in (1.0, 1e8):
        ranker = LargeMarginRanker("nDCG@5").fit(np.column_stack([X, scale * noise]), y, qid=qid)
        assert np.linalg.norm(ranker.coef_[:3] - ranker.w0_[:3]) > 0.05 * np.linalg.norm(ranker.w0_[:3])


def test_features_that_vary_nowhere_are_no_error():
    with pytest.warns(UserWarning, match="the optimum is at w0"):
        ranker = LargeMarginRanker().fit(np.ones((4, 2)), [0, 1, 1, 0], qid=[1, 1, 2, 2])
    assert not ranker.coef_.any()


def test_the_ridge_starts_with_margins_of_one():
    X, y, qid = drawn(3)
    w0 = LargeMarginRanker().fit(X, y, qid=qid).w0_
    ridge = RegressionRanker().fit(X, y, qid=qid).coef_
    times = float(w0 @ ridge / (ridge @ ridge))
    assert w0 == pytest.approx(times * ridge, rel=1e-9)
    queries = arranged(X @ ridge[:, None], y, qid)
    useful = np.array(
        [np.ptp(queries.graded[a:b]) > 0 for a, b in zip(queries.offsets, queries.offsets[1:], strict=False)]
    )
    chosen = queries.learnable(useful, "differ")
    loss = PairwiseHinge(chosen.graded, chosen.offsets)
    lam = STRENGTH * spread(queries) / len(chosen)

    def J(t):
        return lam / 2 * t**2 + loss.at(t * chosen.features[chosen.rows, 0]).value.mean()

    least = min(J(t) for t in times * np.linspace(0.5, 2.0, 301))
    assert J(times) <= least * (1 + 2e-3)


def ordered(seed, queries=12):
    """One feature that nearly orders the grades, and noise."""
    X, _, qid = drawn(seed, queries, features=1)
    noise = np.random.default_rng(seed).normal(size=qid.size)
    X -= np.array([X[qid == q].mean() for q in range(queries)])[qid][:, None]
    return X, (X[:, 0] + 0.3 * noise > 0.5).astype(float), qid, noise[::-1]


def test_with_gains_the_margins_of_the_start_are_weighted_by_differences():
    X, y, qid, noise = ordered(3)
    gains = y + 0.1 * noise
    queries = Queries.from_arrays(X, y, qid=qid).with_gains(gains)
    measure = "DCG(gain='linear')@10"
    w0, ridge = LargeMarginRanker(measure).fit(queries).w0_, RegressionRanker().fit(queries).coef_
    best = evaluate(queries, gains, measure).mean(measure)  # the unit of the gains, in which margins are measured
    times = float(w0 @ ridge / (ridge @ ridge)) / best
    scores, parts, deviations = X @ ridge, [], []
    for q in np.unique(qid):
        s, g = scores[qid == q], gains[qid == q]
        apart = np.maximum(g[:, None] - g, 0.0)
        parts.append((s[:, None] - s, apart / apart.sum()))
        deviations.append(g.std())
    effective = sum(deviations) ** 2 / np.square(deviations).sum()
    lam = STRENGTH * np.mean([scores[qid == q].var() for q in np.unique(qid)]) / effective

    def J(t):
        losses = [float((weights * np.maximum(0.0, 1.0 - t * margins)).sum()) for margins, weights in parts]
        return lam / 2 * t**2 + np.average(losses, weights=deviations)

    least = min(J(t) for t in times * np.linspace(0.5, 2.0, 301))
    assert J(times) <= least * (1 + 2e-3)


def test_next_to_no_noise_of_gains_changes_next_to_nothing():
    X, y, qid, noise = ordered(5, queries=40)
    y[qid < 15] = 0.0  # equal gains, which noise makes different
    queries = Queries.from_arrays(X, y, qid=qid)
    exact, noisy = (LargeMarginRanker().fit(queries.with_gains(y + c * noise)).w0_ for c in (0.0, 1e-9))
    assert_allclose(noisy, exact, rtol=0.05)  # equally weighted pairs give a quarter less


def test_ranksvm_is_the_pairwise_ranker():
    X, y, qid = drawn(4)
    ranker = LargeMarginRanker(w0="ranksvm").fit(X, y, qid=qid)
    assert np.array_equal(ranker.w0_, PairwiseRanker().fit(X, y, qid=qid).coef_)


@pytest.mark.parametrize("w0", ["ridge", "ranksvm"])
def test_a_shuffle_changes_no_bit(w0):
    X, y, qid = drawn(5)
    order = np.random.default_rng(6).permutation(qid.size)
    one, other = (LargeMarginRanker(w0=w0).fit(X[p], y[p], qid=qid[p]) for p in (np.arange(qid.size), order))
    assert np.array_equal(one.w0_, other.w0_)
    assert np.array_equal(one.coef_, other.coef_)
    assert one.lam_ == other.lam_


def test_a_start_that_is_none_is_refused_with_those_that_are():
    X, y, qid = drawn(7)
    with pytest.raises(OptionError, match="'zeros', 'regression', 'ridge', 'ranksvm' or an array"):
        LargeMarginRanker(w0="best").fit(X, y, qid=qid)
    with pytest.raises(OptionError, match="'zeros', 'regression' or an array"):
        MatchingRanker(w0="ridge").fit(X, y, qid=qid)


def test_the_default_is_above_its_start_on_the_sample():
    sample = load_sample("les-miserables")
    ranker = LargeMarginRanker().fit(sample.train)
    assert ranker.score(sample.test) >= RegressionRanker().fit(sample.train).score(sample.test)


def test_training_that_orders_its_own_queries_worse_than_the_start_says_so():
    sample = load_sample("les-miserables").train
    with pytest.warns(WorseThanInitWarning) as told:
        ranker = LargeMarginRanker("nDCG@1", bound="tie-aware", lam=0.3).fit(sample)
    start, end = (evaluate(sample, sample.features @ w, "nDCG@1").mean() for w in (ranker.w0_, ranker.coef_))
    assert f"is {end:.4f}, below the {start:.4f} of the start" in str(told[0].message)
    assert end < start


def test_the_command_line_says_so_too(tmp_path):
    sample = load_sample("les-miserables").train
    write_svmlight(sample, tmp_path / "train.txt")
    arguments = ["train", tmp_path / "train.txt", "--model", tmp_path / "m.rankopt", "--measure", "nDCG@1"]
    arguments += ["--bound", "tie-aware", "--lam", "0.3"]
    done = CliRunner().invoke(rankopt, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    assert "The start --init ranks the training queries better" in done.output
    told = CliRunner().invoke(rankopt, list(map(str, [*arguments, "--json"])))
    assert json.loads(told.output)["chosen"]["below_start"] is True


def test_both_starts_are_candidates_on_evaluation_queries():
    sample = load_sample("les-miserables")
    ranker = LargeMarginRanker("nDCG@5", warm_start=True, max_iter=1)
    ranker.coef_, ranker.n_features_in_ = -np.ones(12), 12
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker.fit(sample.train, eval_set=sample.test)
    own = evaluate(sample.test, sample.test.features @ ranker.w0_, "nDCG@5").mean()
    assert ranker.best_score_ >= own


@pytest.mark.parametrize("scale", [1e-155, 1e-165])
def test_features_too_faint_for_a_natural_strength_are_an_error_with_its_cure(scale):
    X, y, qid = drawn(8)
    with pytest.raises(DataError, match="multiply the features by 1e150"):
        LargeMarginRanker().fit(X * scale, y, qid=qid)


# λ by cross-validation over whole queries.


def drawn_auto(seed=0, queries=9):
    random = np.random.default_rng(seed)
    qid = np.repeat(np.arange(queries), random.integers(3, 8, queries))
    X = random.normal(size=(qid.size, 3))
    y = np.digitize(X[:, 0] + random.normal(size=qid.size), [-0.5, 0.8]).astype(float)
    return X, y, qid


@pytest.mark.parametrize("ranker", [LargeMarginRanker("nDCG@3"), PairwiseRanker("nDCG@3"), LargeMarginRanker("P@2")])
def test_the_best_on_queries_left_out_is_chosen(ranker):
    X, y, qid = drawn_auto()
    queries = Queries.from_arrays(X, y, qid=qid)
    found, factors = judged(ranker.set_params(lam="auto"), queries, np.ones(len(queries)))
    assert factors == (LOSS_FACTORS if isinstance(ranker, PairwiseRanker) else FACTORS)
    assert found.shape == (1 + len(factors), len(queries))
    fitted = ranker.fit(queries)
    natural = ranker.set_params(lam="scale").fit(queries).lam_
    means = np.nanmean(found, axis=1)
    best = factors[max(int(np.argmax(means)) - 1, 0)]
    assert ranker.set_params(lam="auto").fit(queries).lam_ == pytest.approx(best * natural, rel=1e-12)
    assert fitted.lam_ > 0


def test_the_first_row_is_the_start_itself():
    X, y, qid = drawn_auto(1)
    queries, w0 = Queries.from_arrays(X, y, qid=qid), np.array([1.0, -2.0, 0.5])
    found, _ = judged(LargeMarginRanker("nDCG@2", w0=w0), queries, np.ones(len(queries)))
    expected = evaluate(queries, queries.features @ w0, ["nDCG@1", "nDCG@2"]).values.mean(axis=0)
    assert found[0] == pytest.approx(expected, nan_ok=True)


def test_folds_are_of_the_content_alone():
    X, y, qid = drawn_auto(2)
    order = np.random.default_rng(3).permutation(qid.size)
    one, other = (Queries.from_arrays(X[p], y[p], qid=qid[p]).grouped() for p in (np.arange(qid.size), order))
    folds = [
        dict(zip(q.query_ids, dealt(q, np.ones(len(q)), np.ones(len(q), dtype=bool), FOLDS), strict=True))
        for q in (one, other)
    ]
    assert folds[0] == folds[1]
    assert np.bincount(list(folds[0].values())).tolist() == [5, 4]
    fits = [LargeMarginRanker(lam="auto").fit(queries) for queries in (one, other)]
    assert fits[0].lam_ == fits[1].lam_
    assert np.array_equal(fits[0].coef_, fits[1].coef_)


def test_one_query_leaves_nothing_to_choose_by():
    with pytest.raises(OptionError, match="lam='scale'"):
        LargeMarginRanker(lam="auto").fit(np.eye(3), [0, 1, 2])


def test_an_unknown_strength_is_refused():
    X, y, qid = drawn_auto()
    with pytest.raises(OptionError, match="'scale', 'auto' or None; got 'best'"):
        LargeMarginRanker(lam="best").fit(X, y, qid=qid)


def test_slots_have_a_strength_of_their_own_too():
    X, y, qid = drawn_auto(4)
    assert MatchingRanker(lam="auto").fit(X, y, qid=qid).lam_ > 0


def test_sparse_models_are_scaled_by_the_largest_that_matters():
    sample = load_sample("les-miserables").train
    ranker = LargeMarginRanker(penalty="l1", bound="convex").fit(sample)
    twice = LargeMarginRanker(penalty="l1", bound="convex").fit(sample.replace(features=sample.features * 2.0))
    assert twice.lam_ == pytest.approx(2.0 * ranker.lam_)


@pytest.mark.parametrize("at", [1, 2, 4])
@pytest.mark.parametrize("options", [{"lam": "auto"}, {"w0": "ranksvm"}], ids=["chosen", "a start"])
def test_ctrl_c_before_the_first_step_leaves_nothing_half(options, at, monkeypatch):
    X, y, qid = drawn_auto(queries=20)
    X = X + np.random.default_rng(1).normal(size=X.shape)
    step, calls = Bundle.step, []

    def interrupted(self, state, objective):
        calls.append(None)
        if len(calls) == at:
            raise KeyboardInterrupt
        return step(self, state, objective)

    monkeypatch.setattr(Bundle, "step", interrupted)
    ranker = LargeMarginRanker(**options)
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(X, y, qid=qid)
    assert not hasattr(ranker, "coef_")


@pytest.mark.study
def test_a_sparse_model_is_not_judged_by_a_start_that_leaves_nothing_out():
    """It chose 10 times the natural strength, which leaves one feature in, since the dense ridge ranks better."""
    sample = load_sample("les-miserables").train
    ranker = LargeMarginRanker(penalty="l1", lam="auto")
    found, factors = judged(ranker, sample, np.ones(len(sample)))
    assert np.isnan(found[0]).all()
    natural = ranker.set_params(lam="scale").fit(sample).lam_
    best = factors[int(np.argmax(np.nanmean(found[1:], axis=1)))]
    assert ranker.set_params(lam="auto").fit(sample).lam_ == pytest.approx(best * natural)


@pytest.mark.parametrize("useful", [0, 1, 2, 3])
def test_queries_with_nothing_to_order_are_in_no_fold(useful):
    X, y, qid = drawn_auto(5, queries=6)
    y = np.where(qid < useful, np.arange(y.size) % 2, 0.0)
    ranker = LargeMarginRanker("nDCG@3", lam="auto")
    if useful < 2:
        with pytest.raises(ValueError, match=r"lam='scale'|something to order|different"):
            ranker.fit(X, y, qid=qid)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert ranker.fit(X, y, qid=qid).lam_ > 0


def test_large_raw_features_do_not_hide_the_one_that_matters():
    random = np.random.default_rng(0)
    qid, rate = np.repeat(np.arange(30), 12), random.random(360)
    X = np.column_stack([random.lognormal(5.0, 1.0, 360), rate, random.integers(0, 1000, 360)])
    y = np.digitize(rate + 0.1 * random.normal(size=360), [0.3, 0.7]).astype(float)
    for ranker in (PairwiseRanker(), LossRanker("ordinal")):
        assert ranker.fit(X, y, qid=qid).score(X, y, qid=qid) > 0.95
