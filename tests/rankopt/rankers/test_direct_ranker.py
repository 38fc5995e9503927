"""Climbing the measure itself: what is predicted is measured, what is proved is true, and nothing else is claimed."""

import warnings
from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
from problems.training import made
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from rankopt.ascent import verify_directions
from rankopt.ascent.ascent import AscentPath, moved
from rankopt.ascent.certificate import as_data, false_claim, paths_of
from rankopt.data import Queries
from rankopt.errors import DataError, OptionError, TrainingInterruptedWarning
from rankopt.measures import evaluate
from rankopt.optimize import LineSearch
from rankopt.optimize.certificate import Certificate, Stop
from rankopt.rankers import (
    BoostedRanker,
    Checkpoint,
    DirectRanker,
    LargeMarginRanker,
    PairwiseRanker,
    RandomDirections,
    RegressionRanker,
    SmoothRanker,
    load_model,
)
from rankopt.risk import risk
from rankopt.sweeps import sweep

X, Y, QID = made(3, queries=14, documents=8, features=4)
ALL = ("coordinates", "powell", RandomDirections(3))


def of_directions(value, epsilon, features, vectors):
    """A certificate of these directions."""
    parts = {"epsilon": epsilon, "features": features, "vectors": vectors}
    return Certificate("directions", value, value + epsilon, Stop.DIRECTIONS, parts=parts)


SETTINGS = {
    "window": {},
    "middle": {"step_rule": "middle"},
    "plackett-luce": {"step_rule": "plackett-luce"},
    "greedy": {"selection": "greedy", "step_rule": "middle"},
    "directions": {"directions": ALL, "step_rule": "middle"},
    "zeros": {"init": "zeros"},
    "array": {"init": [1.0, -3.0, 0.5, 0.0], "step_rule": "middle"},
    "polished": {"init": RegressionRanker(1.0), "step_rule": "middle"},
    "best": {"n_restarts": 3, "aggregate": "best"},
    "mean": {"n_restarts": 3, "aggregate": "mean"},
    "pulled": {"lam": 0.05},
    "pulled greedily": {"lam": 0.05, "selection": "greedy", "directions": ALL},
    "AP": {"measure": "AP", "step_rule": "middle"},
    "ERR": {"measure": "ERR@5", "step_rule": "middle"},
    "RR": {"measure": "RR", "step_rule": "middle"},
    "AUC": {"measure": "AUC"},
    "P": {"measure": "P@3"},
    "two thirds": {"max_iter": 1},
}


def direct(**options):
    return DirectRanker(**{"measure": "nDCG@5", "init": "ridge", "n_restarts": 1, **options})


def fitted(ranker, rows=(X, Y, QID), **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return ranker.fit(rows[0], rows[1], qid=rows[2], **options)


@pytest.fixture(params=["numpy", "compiled"])
def sweeps(request, monkeypatch):
    monkeypatch.setattr(sweep, "PAIRS", 2**14 if request.param == "numpy" else 0)


@pytest.mark.every(5)
@pytest.mark.parametrize(
    ("name", "sweeps"),
    [
        pytest.param(name, ways[way], marks=pytest.mark.study if way else ())
        for name, ways in zip(SETTINGS, cycle([("numpy", "compiled"), ("compiled", "numpy")]), strict=False)
        for way in range(2)
    ],
    indirect=["sweeps"],
)
def test_predicted_is_measured_and_the_certificate_is_true(name, sweeps):
    ranker = fitted(direct(**SETTINGS[name]))
    history, proved = ranker.history_, ranker.certificate_
    np.testing.assert_allclose(history.predicted, history.value, rtol=0, atol=1e-12)
    for path in range(ranker.n_restarts):
        own = history.path == path
        assert np.array_equal(history.before[own][1:], history.value[own][:-1])
        if ranker.lam == 0:
            assert (history.value[own] > history.before[own] + ranker.tol).all()
    assert ((history.low < history.t) & (history.t < history.high)).all()
    assert proved.kind == "directions"
    assert proved.value == pytest.approx(ranker.score(X, Y, qid=QID), abs=1e-12)
    assert proved.features.tolist() == [0, 1, 2, 3]
    found = ranker.verify(X, Y, qid=QID)
    assert found.holds
    assert found == ranker.verify()
    assert found.largest == pytest.approx(proved.value + proved.epsilon, abs=1e-12)  # epsilon is no larger than it must
    if (ranker.step_rule == "middle" and ranker.aggregate == "best") or name in (
        "middle",
        "greedy",
        "directions",
        "polished",
    ):
        assert proved.epsilon <= ranker.tol


@pytest.mark.study
def test_a_model_moved_to_a_lower_interval_fails_and_one_moved_inside_its_own_does_not():
    ranker = fitted(direct(step_rule="middle"))
    proved, queries = ranker.certificate_, Queries.from_arrays(X, Y, qid=QID)
    search, failed, stayed = LineSearch.from_measure("nDCG@5", queries), 0, 0
    for feature in proved.features.tolist():
        steps = search.steps(ranker.coef_, feature)
        lower = np.flatnonzero(steps.values < proved.value - proved.epsilon - 1e-6)
        for place in lower[:: max(1, lower.size // 4)].tolist():
            coef, value = moved(ranker.coef_, feature, steps.middles[place]), float(steps.values[place])
            assert not verify_directions(proved, coef, queries, "nDCG@5", only=1)  # the measure is another there
            there = of_directions(value, proved.epsilon, np.array([feature]), proved.vectors)
            found = verify_directions(there, coef, queries, "nDCG@5")  # and the way back leads higher
            assert not found
            assert found.value == pytest.approx(value, abs=1e-12)
            assert found.largest >= proved.value - 1e-12
            failed += 1
        at = np.flatnonzero((steps.lows < 0) & (steps.highs > 0))
        for place in at.tolist():
            for end in (steps.lows[place], steps.highs[place]):
                inside = 0.9 * end if np.isfinite(end) else np.sign(end)
                assert search.value(moved(ranker.coef_, feature, inside)) == pytest.approx(proved.value, abs=1e-12)
                stayed += 1
    assert failed > 10
    assert stayed >= 4


def test_a_certificate_says_nothing_of_two_directions_at_once():
    """Two features that only help together: no coordinate leads higher, the sum of both does, and it is not claimed."""
    x = np.array([[0.0, 0.0], [1.0, -2.0], [-2.0, 1.0], [2.0, 2.0], [-3.0, -3.0]])
    grades = np.array([0.0, 0.0, 0.0, 1.0, 0.0])
    ranker = DirectRanker("P@1", init=[-1.0, -1.0], step_rule="middle", n_restarts=1)
    ranker.fit(x, grades, qid=np.zeros(5))
    both = np.array([1.0, 1.0])
    search = LineSearch.from_measure("P@1", Queries.from_arrays(x, grades, qid=np.zeros(5)))
    assert search.along(ranker.coef_, both, "middle").best == 1.0
    assert ranker.verify()
    wider = of_directions(ranker.certificate_.value, ranker.certificate_.epsilon, np.zeros(0, np.int64), both[None])
    holds = verify_directions(wider, ranker.coef_, Queries.from_arrays(x, grades, qid=np.zeros(5)), "P@1")
    assert holds.holds == (ranker.certificate_.value == 1.0)
    assert "each alone" in str(ranker.certificate_)


@pytest.mark.every(5)
@pytest.mark.parametrize("options", [{}, {"n_restarts": 3}, {"directions": ALL}, {"selection": "greedy"}], ids=str)
def test_shuffled_rows_and_other_tables_give_the_same_bits(options):
    ranker = fitted(direct(**options))
    turn = np.random.default_rng(1).permutation(len(Y))
    names = np.array(list("abcdefghijklmnop"))[QID]
    again = fitted(direct(**options), (X[turn], Y[turn], names[turn]))
    assert np.array_equal(ranker.coef_, again.coef_)
    assert ranker.certificate_.epsilon == again.certificate_.epsilon
    sparse = fitted(direct(**options), (csr_array(X), Y, QID))
    assert sparse.certificate_.value == pytest.approx(ranker.certificate_.value, abs=0.05)


@pytest.mark.every(5)
@pytest.mark.parametrize("engine", ["threads", pytest.param("dask", marks=pytest.mark.study)])
def test_every_engine_gives_the_same_bits(engine, monkeypatch):
    if engine == "dask":
        pytest.importorskip("distributed")
    monkeypatch.setattr(risk, "SHARD_ROWS", 70)
    monkeypatch.setattr(sweep, "PAIRS", 0)
    options = {"n_restarts": 2, "directions": ("coordinates", "powell"), "max_iter": 2, "step_rule": "middle"}
    alone = fitted(direct(engine="serial", **options))
    other = fitted(direct(engine=engine, n_jobs=2, **options))
    assert np.array_equal(alone.coef_, other.coef_)
    assert np.array_equal(alone.path_coefs_, other.path_coefs_)
    assert alone.certificate_.epsilon == other.certificate_.epsilon


@pytest.mark.study
def test_restarts_are_drawn_by_their_seed_and_the_first_is_the_start():
    one, same, other = (fitted(direct(n_restarts=3, aggregate="best", random_state=seed)) for seed in (1, 1, 2))
    assert np.array_equal(one.path_coefs_, same.path_coefs_)
    assert not np.array_equal(one.path_coefs_[1:], other.path_coefs_[1:])
    assert np.array_equal(one.path_coefs_[0], other.path_coefs_[0])
    fewer = fitted(direct(n_restarts=2, random_state=1))
    assert np.array_equal(fewer.path_coefs_, one.path_coefs_[:2])
    assert one.certificate_.value == one.path_values_.max()
    generator = fitted(direct(n_restarts=3, random_state=np.random.RandomState(0)))
    assert np.array_equal(generator.coef_, fitted(direct(n_restarts=3, random_state=np.random.RandomState(0))).coef_)


def test_what_is_drawn_leaves_features_of_one_value_a_query_in_their_scale():
    """Their deviation was rounding once, and a draw in units of it lost every digit of the scores."""
    flat = np.exp(np.random.default_rng(0).normal(size=14))[QID] * 1e3
    options = {"n_restarts": 3, "directions": ALL, "step_rule": "middle"}
    ranker = fitted(direct(**options), (np.column_stack([X, flat]), Y, QID))
    assert np.abs(ranker.path_coefs_[:, 4]).max() < 100
    np.testing.assert_allclose(ranker.history_.predicted, ranker.history_.value, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(ranker.path_coefs_[0, :4] != 0, True)


def test_the_mean_weighs_paths_alike_whatever_their_scale():
    ranker = fitted(direct(n_restarts=4))
    search = LineSearch.from_measure("nDCG@5", Queries.from_arrays(X, Y, qid=QID))
    made = np.mean([w / search.deviation(w) for w in ranker.path_coefs_], axis=0)
    np.testing.assert_allclose(ranker.coef_, made, rtol=1e-12)


@pytest.mark.parametrize("measure", ["RR", "Success@2"])
def test_what_has_no_gains_of_several_relevant_documents_starts_from_another_measure(measure):
    """Smoothing asks for gains, which neither has there; the climb itself asks for values."""
    climbed, start = fitted(direct(measure=measure, init="smooth")), fitted(SmoothRanker("nDCG@10"))
    queries = Queries.from_arrays(X, Y, qid=QID)
    values = [evaluate(queries, one.predict(queries), measure).mean() for one in (climbed, start)]
    assert values[0] >= values[1]


def test_query_weights_count_and_a_weight_of_0_leaves_a_query_out():
    weights = np.where(np.arange(14) < 7, 1.0, 0.0)
    half = QID < 7
    one = direct(step_rule="middle").fit(X, Y, qid=QID, query_weight=weights)
    other = direct(step_rule="middle").fit(X[half], Y[half], qid=QID[half])
    assert one.certificate_.value == pytest.approx(other.certificate_.value, abs=0.02)
    assert one.verify()
    assert one.verify(X, Y, qid=QID, query_weight=weights)
    with_names = direct().fit(Queries.from_arrays(X, Y, qid=QID, feature_names=list("abcd")), query_weight=weights)
    assert with_names.feature_names_in_.tolist() == list("abcd")


def test_an_eval_set_chooses_among_rounds_and_the_start():
    other = made(9, queries=10, documents=9, features=4)
    ranker = direct(n_restarts=3, aggregate="best", step_rule="middle")
    ranker.fit(X, Y, qid=QID, eval_set=(other[0], other[1]), eval_qid=other[2])
    judged = [evaluate(Queries.from_arrays(*other[:2], qid=other[2]), other[0] @ w, "nDCG@5").mean() for w in
              (*ranker.path_coefs_, ranker.w0_)]  # fmt: skip
    assert ranker.best_score_ == pytest.approx(max(judged))
    assert ranker.score(other[0], other[1], qid=other[2]) == pytest.approx(ranker.best_score_)
    assert ranker.verify()
    assert not hasattr(fitted(ranker), "best_score_")


class Killed(Exception):
    """Stands for an end that training knows nothing of."""


def until_done(ranker, folder, rounds):
    """Fitted by a ranker that dies after each of these rounds."""
    left = set(rounds)

    def kill(round, paths):
        if round.step in left:
            left.discard(round.step)
            raise Killed

    for _ in range(100):
        trial = clone(ranker).set_params(checkpoint=Checkpoint(folder, every=0), callbacks=[Same(kill)])
        try:
            return fitted(trial)
        except Killed:
            continue
    raise AssertionError("it never ends")


class Same:
    """A callback that is no copy, whatever copies the ranker."""

    def __init__(self, call):
        self.call = call

    def __call__(self, round, paths):
        return self.call(round, paths)

    def __deepcopy__(self, memo):
        return self


@pytest.mark.every(7)
@pytest.mark.parametrize("name", ["window", "directions", "best", "greedy", "pulled"])
def test_a_run_that_dies_ends_at_the_same_bits(name, tmp_path):
    ranker = direct(**SETTINGS[name])
    whole = fitted(clone(ranker))
    resumed = until_done(ranker, tmp_path / "kept", range(2, whole.n_iter_ + 1))
    assert np.array_equal(resumed.coef_, whole.coef_)
    assert resumed.certificate_.epsilon == whole.certificate_.epsilon
    for column in ("path", "round", "lines", "feature", "t", "low", "high", "before", "predicted", "value"):
        assert np.array_equal(getattr(resumed.history_, column), getattr(whole.history_, column)), column
    with pytest.raises(OptionError, match="holds another run: tol"):
        fitted(clone(ranker).set_params(checkpoint=tmp_path / "kept", tol=1e-3))


def test_an_interrupted_run_is_whole_and_goes_on_to_the_same_bits(tmp_path):
    def press(round, paths):
        raise KeyboardInterrupt

    ranker = direct(n_restarts=2, aggregate="best", directions=ALL)
    whole = fitted(clone(ranker))
    stopped = clone(ranker).set_params(checkpoint=tmp_path / "kept", callbacks=[press])
    with pytest.warns(TrainingInterruptedWarning):
        fitted(stopped)
    assert stopped.certificate_.stop is Stop.INTERRUPTED
    assert stopped.verify()
    assert np.array_equal(fitted(clone(ranker).set_params(checkpoint=tmp_path / "kept")).coef_, whole.coef_)


def test_what_no_run_leaves_is_no_place_to_go_on_from():
    ranker = fitted(direct(directions=ALL, step_rule="middle"))
    path = AscentPath.started(0, ranker.coef_, ranker.certificate_.value, dict(np.random.PCG64(1).state))
    path = replace(path, moves=tuple(ranker.history_[i] for i in range(len(ranker.history_))), chosen=ranker.w0_)
    data = as_data([path], 1.0)
    ((again,), seconds) = paths_of(data, 4)
    assert seconds == 1.0
    assert str(again) == str(path)
    assert again.moves == path.moves
    search = LineSearch.from_measure("nDCG@5", Queries.from_arrays(X, Y, qid=QID))
    assert false_claim([again], search) is None
    assert "claims that the measure is" in false_claim([replace(again, value=again.value + 1e-6)], search)
    damages = {
        "w": np.zeros(3), "begun": np.full(4, np.nan), "advance": [0.0] * 4, "chosen": np.zeros((2, 2)), "index": -1,
        "lines": 1.5, "round": True, "number": 1, "value": np.nan, "rating": "high", "moved": 1,
        "generator": {"state": 1}, "moves": {}, "over": None,
    }  # fmt: skip
    for name, damage in damages.items():
        with pytest.raises((AttributeError, LookupError, TypeError, ValueError)):
            paths_of({**data, "paths": [{**data["paths"][0], name: damage}]}, 4)
    assert paths_of({"paths": [], "seconds": 1.0}, 4) is None
    assert paths_of({**data, "seconds": np.nan}, 4) is None


def test_limits_and_callbacks_end_it():
    seen = []
    ranker = direct(callbacks=[lambda round, paths: seen.append((round.step, round.value)) or round.step == 1])
    fitted(ranker)
    assert ranker.certificate_.stop is Stop.CALLBACK
    assert seen == [(1, ranker.path_values_.max())]
    assert ranker.verify()
    with pytest.warns(ConvergenceWarning, match="raise max_iter") as told:
        direct(max_iter=1).fit(X, Y, qid=QID)
    assert told[0].filename == __file__
    with pytest.warns(ConvergenceWarning, match="some direction may"):
        late = direct(time_limit=1e-9, n_restarts=2).fit(X, Y, qid=QID)
    assert late.certificate_.stop is Stop.TIME
    assert "no direction was tried" in str(late.certificate_)
    assert late.verify()


def test_it_is_saved_as_data_and_its_certificate_comes_along(tmp_path):
    ranker = fitted(direct(init=LargeMarginRanker("nDCG@5", lam=0.1), directions=ALL, step_rule="middle"))
    ranker.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert np.array_equal(loaded.coef_, ranker.coef_)
    assert str(loaded.certificate_) == str(ranker.certificate_)
    assert loaded.get_params()["init__lam"] == 0.1
    assert loaded.verify(X, Y, qid=QID)
    with pytest.raises(OptionError, match="pass X, y and qid"):
        loaded.verify()
    fitted(loaded)


def test_features_normalized_within_the_query_are_climbed():
    ranker = fitted(direct(normalize="zscore", step_rule="middle"))
    assert ranker.verify()
    assert ranker.verify(X, Y, qid=QID)
    assert ranker.score(X, Y, qid=QID) == pytest.approx(ranker.certificate_.value)


@pytest.mark.parametrize("direction", [1, "b", np.array([1.0, 0.0, -1.0, 0.5])])
def test_a_line_is_drawn_as_it_is(direction):
    from matplotlib.figure import Figure

    queries = Queries.from_arrays(X, Y, qid=QID, feature_names=list("abcd"))
    ranker = direct().fit(queries)
    axes = ranker.plot_line(direction, axes=Figure().subplots())
    steps = axes.get_lines()[0]
    t, value = steps.get_xdata(), steps.get_ydata()
    v = direction if isinstance(direction, np.ndarray) else np.eye(4)[1]
    at = 0.0 if isinstance(direction, np.ndarray) else ranker.coef_[1]
    search = LineSearch.from_measure("nDCG@5", queries)
    for low, high, told in zip(t[::2], t[1::2], value[::2], strict=True):
        if high - low > 1e-9:
            measured = search.value(ranker.coef_ + ((low + high) / 2 - at) * v)
            assert measured == pytest.approx(told, abs=1e-12)
    assert "nDCG@5" in axes.get_ylabel()
    ranker.history_.plot(axes=Figure().subplots(), against="seconds")
    with pytest.raises(OptionError, match="is no feature"):
        ranker.plot_line("nobody")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"init": "nowhere"}, "'smooth', 'ridge', 'zeros', a ranker or an array"),
        ({"init": [1.0]}, "needs 4 finite numbers"),
        ({"init": [[1.0] * 4]}, "one number a feature"),
        ({"init": RegressionRanker}, r"RegressionRanker\(\)"),
        ({"init": RegressionRanker(normalize="zscore")}, "cannot normalize by itself"),
        ({"init": BoostedRanker(n_estimators=1)}, "give a linear ranker|boosting"),
        ({"selection": "random"}, "'cyclic' or 'greedy'; got 'random'"),
        ({"aggregate": "sum"}, "'mean' or 'best'"),
        ({"step_rule": "end"}, "'window', 'middle' or 'plackett-luce'"),
        ({"step_window": 0.0}, "a number > 0; got 0.0"),
        ({"n_restarts": 0}, "integer >= 1"),
        ({"lam": -1.0}, "lam must be a number >= 0"),
        ({"lam": "scale"}, "lam must be a number >= 0"),
        ({"tol": np.nan}, "tol must be a number >= 0; got nan"),
        ({"max_iter": 0}, "integer >= 1"),
        ({"directions": "coordinates"}, "pass a sequence of"),
        ({"directions": ("diagonals",)}, "pass a sequence of"),
        ({"directions": ("powell",)}, "never begins"),
        ({"random_state": -1}, "an integer >= 0"),
        ({"callbacks": [3]}, "sequence of functions"),
    ],
    ids=str,
)
def test_options_that_cannot_work_are_refused(options, told):
    with pytest.raises(OptionError, match=told):
        fitted(direct(**options))


def test_data_that_cannot_be_climbed_are_refused():
    with pytest.raises(DataError, match="give nDCG@5 a value"):
        direct(init="zeros").fit(X, 0 * Y, qid=QID)
    with pytest.raises(DataError, match="1 sample"):
        direct().fit(X[:1], Y[:1], qid=QID[:1])
    with pytest.raises(OptionError, match="an integer >= 1"):
        RandomDirections(0)
    with pytest.raises(ValueError, match="invalid part: features"):
        of_directions(0.5, 0.0, np.array([1, 1]), np.zeros((0, 3)))


@pytest.mark.parametrize("seed", range(5))
def test_a_pulled_step_is_the_best_of_its_line(seed):
    rng = np.random.default_rng(seed)
    search, w = LineSearch.from_measure("nDCG@5", Queries.from_arrays(X, Y, qid=QID)), rng.normal(size=4)
    slope, curvature = rng.normal() / 20, rng.random() / 5
    found, steps = search.along(w, 1, pull=(slope, curvature)), search.steps(w, 1)
    h = 0.2 * search.deviation(w) / search.deviations[1]
    lows, highs = steps.lows + h / 8, steps.highs - h / 8
    t = np.concatenate([rng.uniform(-4, 4, 20_000), [-slope / curvature]])
    place = np.searchsorted(steps.highs, t)
    kept = (t > lows[place]) & (t < highs[place])
    best = (steps.values[place] - slope * t - curvature * t * t / 2)[kept].max()
    assert found.low < found.t < found.high
    assert found.value - slope * found.t - curvature * found.t**2 / 2 >= best - 1e-12


def test_it_polishes_what_another_ranker_found():
    ranker = PairwiseRanker(lam=0.03, measure="nDCG@5").fit(X, Y, qid=QID)
    polished = fitted(direct(init=PairwiseRanker(lam=0.03), step_rule="middle"))
    assert polished.certificate_.value > ranker.score(X, Y, qid=QID) - 1e-12
    again = fitted(direct(init=polished.coef_, step_rule="middle"))
    assert again.certificate_.at_start
    assert len(again.history_) == 0
