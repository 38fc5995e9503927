"""SmoothRanker: what it says of its end is so, it climbs, and the conventions of all rankers hold."""

import warnings

import numpy as np
import pytest
from problems.same_bits import assert_same
from problems.training import made
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from rankopt.constraints import Admissible
from rankopt.data import Queries
from rankopt.errors import DataError, ModelError, NoProgressWarning, OptionError, TrainingInterruptedWarning
from rankopt.measures import evaluate, parse
from rankopt.optimize.annealing import AnnealingStep
from rankopt.optimize.certificate import Stop
from rankopt.optimize.least_squares import spread, spreads
from rankopt.optimize.objective import deviation
from rankopt.rankers import Checkpoint, LargeMarginRanker, RegressionRanker, SmoothRanker, load_model
from rankopt.risk import risk

SHORT = {"bandwidths": (1.0, 0.25), "max_iter": 8}


def queries_of(X, y, qid):
    return Queries.from_arrays(X, y, qid=qid)


def j_written_out(w, X, y, qid, lam, w0, sigma, measure="nDCG@3", weight=None):
    """J_σ(w), query by query and place by place."""
    asked, total, counted = parse(measure), 0.0, 0.0
    for q in np.unique(qid):
        scores, grades = X[qid == q] @ w, y[qid == q]
        if np.ptp(grades) == 0:
            continue
        offsets = np.array([0, scores.size])
        gain, discount = asked.gain(grades, offsets), asked.discount(scores.size)
        value = 0.0
        for j, s in enumerate(sorted(scores, reverse=True)):
            h = np.exp(-((scores - s) ** 2) / (2 * sigma**2))
            value += discount[j] * (h @ gain) / h.sum()
        v = 1.0 if weight is None else weight[q]
        total += v * (discount @ np.sort(gain)[::-1] - value)
        counted += v
    return lam / 2 * np.sum((w - w0) ** 2) + total / counted


def test_the_objective_is_the_formula_and_the_gradient_that_of_the_weights():
    X, y, qid = made(3)
    weight = {q: 1.0 + q for q in range(12)}
    for lam in (0.0, 0.3):
        ranker = SmoothRanker("nDCG@3", lam=lam)
        objective = ranker.objective(queries_of(X, y, qid), np.array([weight[q] for q in range(12)]))
        rng = np.random.default_rng(0)
        for sigma in (2.0, 0.4):
            w = objective.w0 + 0.1 * rng.normal(size=4)
            value, gradient = objective.at(w, sigma)
            assert value == pytest.approx(
                j_written_out(w, X, y, qid, lam, objective.w0, sigma, weight=weight), rel=1e-12
            )
            for j in range(4):
                unit = np.eye(4)[j] * 1e-5
                found = (objective.at(w + unit, sigma)[0] - objective.at(w - unit, sigma)[0]) / 2e-5
                assert found == pytest.approx(gradient[j], rel=1e-6, abs=1e-9)
        here = objective.best - objective.risk(w)
        scores = evaluate(queries_of(X, y, qid), X @ w, "nDCG@3")["nDCG@3"]
        assert here == pytest.approx(np.average(scores, weights=[weight[q] for q in range(12)]), abs=1e-12)


@pytest.mark.parametrize("method", ["L-BFGS", "CG"])
@pytest.mark.parametrize("measure", ["nDCG@3", "P@2", "AUC", "DCG@5"])
def test_every_stage_descends_and_the_certificate_is_so(measure, method):
    X, y, qid = made(1)
    ranker = SmoothRanker(measure, method=method).fit(X, y, qid=qid)
    found, history = ranker.certificate_, ranker.history_
    assert found.stop is Stop.ANNEALED
    assert ranker.n_iter_ == len(history) > len(ranker.bandwidths)
    assert (np.diff(history.sigma) <= 0).all()
    for sigma in ranker.bandwidths:
        assert (np.diff(history.primal[history.sigma == sigma]) <= 1e-12).all()
    objective = ranker.objective(queries_of(X, y, qid))
    value, gradient = objective.at(ranker.coef_, found.sigma)
    assert found.sigma == history.sigma[-1]
    assert found.primal == value == history.primal[-1]
    slope = np.sqrt(np.sum((gradient / deviations_of(X, qid)) ** 2))
    assert found.gradient == pytest.approx(slope, rel=1e-9)
    assert found.measure == pytest.approx(ranker.score(X, y, qid=qid), abs=1e-12)
    assert found.start == pytest.approx(clone_at(ranker, ranker.w0_).score(X, y, qid=qid), abs=1e-12)
    assert "no bound" in str(found)


def deviations_of(X, qid):
    """The deviation of each feature inside queries, query by query."""
    return np.sqrt(np.mean([X[qid == q].var(axis=0) for q in np.unique(qid)], axis=0))


def clone_at(ranker, w):
    other = clone(ranker)
    other.__dict__.update(vars(ranker))
    other.coef_ = w
    return other


def test_a_flat_point_is_reached_and_its_neighbors_are_no_better():
    X, y, qid = made(2)
    ranker = SmoothRanker("nDCG@5", bandwidths=[1.0], max_iter=500, tol=1e-7, lam=0.01).fit(X, y, qid=qid)
    assert ranker.certificate_.gradient <= 1e-7
    objective = ranker.objective(queries_of(X, y, qid))
    rng = np.random.default_rng(0)
    for _ in range(50):
        near = ranker.coef_ + 1e-3 * rng.normal(size=4)
        assert objective.at(near, 1.0)[0] >= ranker.certificate_.primal - 1e-10


@pytest.mark.parametrize("seed", range(3))
def test_it_climbs_above_its_start_and_above_the_large_margin_in_training(seed):
    X, y, qid = made(seed, queries=40, features=6)
    whole = SmoothRanker("nDCG@5", bandwidths=[4, 2, 1, 0.5, 0.25, 0.125, 0.0625, 0.03125])
    ranker, margin = (one.fit(X, y, qid=qid) for one in (whole, LargeMarginRanker("nDCG@5")))
    assert ranker.certificate_.measure > ranker.certificate_.start
    assert ranker.certificate_.measure > margin.score(X, y, qid=qid)


def test_the_start_is_scaled_to_scores_of_deviation_1():
    X, y, qid = made(0)
    ranker = SmoothRanker(**SHORT)
    for w0 in ("ridge", "ranksvm", "regression", np.array([1e-5, 0, 0, 3e-5]), np.array([1e9, 0, 1.0, 3.0])):
        objective = ranker.set_params(w0=w0).objective(queries_of(X, y, qid))
        assert deviation(objective.shards, objective.w0) == pytest.approx(1.0, rel=1e-12)
    ridge = RegressionRanker().fit(X, y, qid=qid).coef_
    w0 = SmoothRanker(**SHORT).fit(X, y, qid=qid).w0_
    np.testing.assert_allclose(w0 / np.linalg.norm(w0), ridge / np.linalg.norm(ridge), rtol=1e-12)


def test_units_of_features_change_nothing():
    X, y, qid = made(4)
    few = {"bandwidths": (1.0,), "max_iter": 3}  # of many steps the last digit would be seen
    usual = SmoothRanker("nDCG@3", w0=np.ones(4), **few).fit(X, y, qid=qid)
    for scale in (2.0**-30, 2.0**40):
        other = SmoothRanker("nDCG@3", w0=np.ones(4), **few).fit(X * scale, y, qid=qid)
        assert other.lam_ == pytest.approx(usual.lam_ * scale**2, rel=1e-12)
        np.testing.assert_allclose(other.coef_ * scale, usual.coef_, rtol=1e-6)
        assert other.certificate_.gradient == pytest.approx(usual.certificate_.gradient, rel=1e-6)
    units = np.array([1e-3, 1.0, 1e4, 1e2])  # of single features, where the regularizer has no say
    one = SmoothRanker("nDCG@3", lam=0.0, w0=np.ones(4), **few).fit(X, y, qid=qid)
    other = SmoothRanker("nDCG@3", lam=0.0, w0=1 / units, **few).fit(X * units, y, qid=qid)
    np.testing.assert_allclose(other.coef_ * units, one.coef_, rtol=1e-6)


@pytest.mark.parametrize("make", [np.asarray, csr_array], ids=["dense", "CSR"])
def test_deviations_of_features_are_those_inside_queries(make):
    X, y, qid = made(5)
    X[:, 1] = np.repeat(np.arange(12) * 0.1, 8)  # constant inside queries: rounding is no deviation
    X *= X > 0.2
    arranged = SmoothRanker().objective(queries_of(make(X), y, qid))
    np.testing.assert_allclose(arranged.units**2, deviations_of(X, qid) ** 2, rtol=1e-9, atol=1e-15)
    assert arranged.units[1] == 0.0
    ranker = SmoothRanker(**SHORT).fit(make(X), y, qid=qid)
    assert ranker.coef_[1] == ranker.w0_[1]


def test_the_parts_of_the_spread_add_up():
    X, y, qid = made(6)
    offsets, rows = np.arange(0, 97, 8), np.arange(96)
    weights = np.repeat(np.random.default_rng(0).random(12), 8)
    for features in (X, csr_array(X * (X > 0))):
        given = (features, weights, rows, offsets)
        assert spreads(*given).sum() == pytest.approx(spread(*given), rel=1e-12)
    extreme = SmoothRanker().objective(queries_of(X * np.array([1e-200, 1, 1, 1]), y, qid))
    assert extreme.units[0] == pytest.approx(deviations_of(X, qid)[0] * 1e-200, rel=1e-9)


@pytest.mark.every(5)
@pytest.mark.parametrize("features", [np.asarray, csr_array])
def test_every_engine_gives_the_same_bits(features, workers, monkeypatch):
    monkeypatch.setattr(risk, "SHARD_ROWS", 20)
    X, y, qid = made()
    engines = "serial", "threads", workers
    first, *others = (SmoothRanker("nDCG@5", engine=engine, **SHORT).fit(features(X), y, qid=qid) for engine in engines)
    assert len(first.objective(queries_of(X, y, qid)).shards) > 1
    for other in others:
        assert_same(first, other)


@pytest.mark.parametrize("documents", [8, 400], ids=["small", "compiled"])
def test_shuffling_the_input_changes_no_bit(documents):
    X, y, qid = made(documents=documents)
    rows = np.random.default_rng(0).permutation(len(y))
    straight, moved = (SmoothRanker(**SHORT).fit(X[r], y[r], qid=qid[r]) for r in (np.arange(len(y)), rows))
    np.testing.assert_array_equal(straight.coef_, moved.coef_)


def test_weights_of_queries_count_as_copies():
    X, y, qid = made(7, queries=6)
    twice = [np.concatenate([part, part[qid < 3]]) for part in (X, y)]
    names = np.concatenate([qid, qid[qid < 3] + 100])
    options = {"lam": 0.1, "w0": np.ones(4), "bandwidths": [1.0], "max_iter": 300, "tol": 1e-7}
    copied = SmoothRanker(**options).fit(*twice, qid=names)
    weighed = SmoothRanker(**options).fit(X, y, qid=qid, query_weight={q: 2.0 if q < 3 else 1.0 for q in range(6)})
    np.testing.assert_allclose(weighed.coef_, copied.coef_, rtol=1e-4)


def test_an_eval_set_chooses_the_step_and_w0_is_among_them():
    X, y, qid = made()
    held = made(seed=8)
    points = []
    ranker = SmoothRanker(callbacks=[lambda step, at: points.append(at.w)])
    ranker.fit(X, y, qid=qid, eval_set=held[:2], eval_qid=held[2])
    judged = [clone_at(ranker, w).score(held[0], held[1], qid=held[2]) for w in [ranker.w0_, *points]]
    assert ranker.best_score_ == pytest.approx(max(judged), abs=1e-12)
    np.testing.assert_array_equal(ranker.coef_, [ranker.w0_, *points][int(np.argmax(judged))])
    ranker.fit(X, y, qid=qid)
    assert not hasattr(ranker, "best_score_")


def test_a_start_that_ties_everything_cannot_be_left_and_says_so():
    X, y, qid = made()
    with pytest.warns(NoProgressWarning, match="gradient is 0"):
        ranker = SmoothRanker(w0=np.zeros(4)).fit(X, y, qid=qid)
    assert not ranker.coef_.any()
    assert ranker.certificate_.at_start
    assert ranker.n_iter_ == 0
    with pytest.warns(NoProgressWarning):
        SmoothRanker().fit(np.ones((6, 2)), [0, 1, 2, 0, 1, 2], group=[3, 3])


class Same:
    """A callback that is no copy, whatever copies the ranker: it raises the first time at each of some steps."""

    def __init__(self, *steps, kind):
        self.left, self.kind = set(steps), kind

    def __call__(self, step, at):
        if step.step in self.left:
            self.left.discard(step.step)
            raise self.kind

    def __deepcopy__(self, memo):
        return self


class Killed(Exception):
    """Stands for an end that training knows nothing of."""


@pytest.mark.filterwarnings("ignore::rankopt.errors.NoProgressWarning")  # the start may be the best on eval_set
@pytest.mark.parametrize("kind", [Killed, KeyboardInterrupt])
@pytest.mark.parametrize("judged", [False, True])
def test_a_run_that_dies_goes_on_to_the_same_bits(kind, judged, tmp_path):
    X, y, qid = made()
    data = {"eval_set": made(seed=5)[:2], "eval_qid": qid} if judged else {}
    ranker = SmoothRanker("nDCG@5", bandwidths=(2.0, 1.0, 0.5, 0.1), max_iter=5)
    whole = clone(ranker).fit(X, y, qid=qid, **data)
    kill = Same(1, 4, 7, 13, whole.n_iter_, kind=kind)
    ranker.set_params(checkpoint=Checkpoint(tmp_path, every=0), callbacks=[kill])
    for _ in range(5):
        with pytest.raises((kind, TrainingInterruptedWarning)):
            clone(ranker).fit(X, y, qid=qid, **data)
    resumed = clone(ranker).fit(X, y, qid=qid, **data)
    assert_same(resumed, whole)
    assert_same(clone(ranker).fit(X, y, qid=qid, **data), whole)  # it is over
    with pytest.raises(OptionError, match="bandwidths differ"):
        clone(ranker).set_params(bandwidths=(1.0,)).fit(X, y, qid=qid, **data)


def test_a_checkpoint_that_holds_what_no_run_leaves_is_not_gone_on_from(tmp_path):
    X, y, qid = made()
    ranker = SmoothRanker("nDCG@5", checkpoint=Checkpoint(tmp_path, every=0), **SHORT)
    whole = clone(ranker).fit(X, y, qid=qid)
    for file in tmp_path.iterdir():
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    assert_same(clone(ranker).fit(X, y, qid=qid), whole)


def test_an_interruption_keeps_what_there_is_and_one_before_the_first_step_nothing():
    X, y, qid = made()
    ranker = SmoothRanker(callbacks=[Same(9, kind=KeyboardInterrupt)])
    with pytest.warns(TrainingInterruptedWarning):
        ranker.fit(X, y, qid=qid)
    assert ranker.n_iter_ == 9
    assert ranker.certificate_.stop is Stop.INTERRUPTED
    assert ranker.certificate_.primal == ranker.history_.primal[-1]
    points = []
    SmoothRanker(callbacks=[lambda step, at: points.append(at.w)]).fit(X, y, qid=qid)
    np.testing.assert_array_equal(points[8], ranker.coef_)


def test_callbacks_and_limits_of_time_end_training():
    X, y, qid = made()
    ranker = SmoothRanker(callbacks=[lambda step, at: step.step == 3]).fit(X, y, qid=qid)
    assert (ranker.n_iter_, ranker.certificate_.stop) == (3, Stop.CALLBACK)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        ranker = SmoothRanker(time_limit=1e-9).fit(X, y, qid=qid)
    assert (ranker.n_iter_, ranker.certificate_.stop) == (1, Stop.TIME)


@pytest.mark.filterwarnings("ignore::rankopt.errors.NoProgressWarning")  # the start may be the best on eval_set
def test_it_is_saved_as_data(tmp_path):
    X, y, qid = made()
    ranker = SmoothRanker("P@3", bandwidths=[2, 0.5], method="CG", max_iter=5).fit(
        X, y, qid=qid, eval_set=(X, y), eval_qid=qid
    )
    ranker.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert_same(loaded, ranker)
    np.testing.assert_array_equal(loaded.predict(X), ranker.predict(X))
    assert (loaded.certificate_, loaded.lam_) == (ranker.certificate_, ranker.lam_)
    loaded.n_iter_ += 1
    with pytest.raises(ModelError, match="n_iter_"):
        loaded.save(tmp_path / "m")


def test_constraints_hold_where_it_is_shown_and_normalization_everywhere():
    X, y, qid = made()
    site = np.random.default_rng(0).integers(0, 3, len(y))
    rule = Admissible(3, on_infeasible="truncate").at_most(1, by="site")
    ranker = SmoothRanker(constraints=rule, normalize="zscore", **SHORT)
    ranker.fit(X, y, qid=qid, attributes={"site": site})
    for shown in ranker.rank(X, qid=qid, attributes={"site": site}).values():
        assert len(set(site[shown])) == len(shown) >= 2


def test_a_step_is_shown_on_a_terminal():
    assert str(AnnealingStep(3, 0.5, 0.25, 1e-3, 2.0)) == "sigma 0.5, step 3: objective 0.25, gradient 0.001, 2.0 s"


def test_the_history_is_drawn():
    X, y, qid = made()
    axes = SmoothRanker(**SHORT).fit(X, y, qid=qid).history_.plot()
    assert [line.get_label() for line in axes.get_lines()] == ["σ = 1", "σ = 0.25"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "AP"}, "cannot be smoothed"),
        ({"bandwidths": ()}, "must be one or more numbers above 0"),
        ({"bandwidths": (1.0, 0.0)}, "must be one or more numbers above 0"),
        ({"bandwidths": "auto"}, "array of numbers"),
        ({"lam": -1.0}, "lam must be a number >= 0 or 'scale'"),
        ({"lam": "auto"}, "lam must be a number >= 0 or 'scale'"),
        ({"lam": None}, "lam must be a number >= 0 or 'scale'"),
        ({"method": "newton"}, "method must be 'L-BFGS' or 'CG'"),
        ({"w0": "zeros"}, "unknown"),
        ({"w0": np.ones(3)}, "4 finite numbers"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1.0}, "tol"),
        ({"time_limit": 0}, "time_limit"),
        ({"engine": "quantum"}, "quantum"),
        ({"callbacks": [3]}, "callbacks"),
    ],
)
def test_what_cannot_work_is_refused(options, message):
    X, y, qid = made()
    with pytest.raises(OptionError, match=message):
        SmoothRanker(**options).fit(X, y, qid=qid)


def test_queries_that_teach_nothing_and_features_beyond_double_precision():
    X, y, qid = made()
    with pytest.raises(DataError, match="different grades"):
        SmoothRanker().fit(X, np.zeros(len(y)), qid=qid)
    with pytest.raises(DataError, match="feature 2"):
        SmoothRanker().fit(X * np.array([1, 1, 1e200, 1]), y, qid=qid)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        some = np.where(qid < 6, y, 0.0)
        one, other = (SmoothRanker(**SHORT).fit(X[r], some[r], qid=qid[r]) for r in (qid < 12, qid < 6))
    assert one.lam_ == pytest.approx(other.lam_, rel=0.5)
