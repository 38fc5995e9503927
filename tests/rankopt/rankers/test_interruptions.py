"""Ctrl-C in `ranker = Ranker().fit(...)`: the best model so far is returned with a warning; a second one raises."""

import signal
import subprocess
import sys

import numpy as np
import pytest

from rankopt.data import load_sample
from rankopt.errors import TrainingInterruptedWarning
from rankopt.fitting import raise_interruptions
from rankopt.optimize.certificate import Stop
from rankopt.rankers import (
    CofiRanker,
    DirectRanker,
    LargeMarginRanker,
    MatchingRanker,
    PairwiseRanker,
    SmoothRanker,
    cofi_training,
)
from rankopt.ratings import load_ratings_sample
from rankopt.risk.risk import Risk

HARD = {"lam": 1e-4, "tol": 1e-9}


def ctrl_c(step, state):
    """Pressed as a user does, at the end of each step from the second on."""
    if getattr(step, "step", getattr(step, "round", 2)) >= 2:
        signal.raise_signal(signal.SIGINT)


def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(96, 4))
    y = np.digitize(X[:, 0] + rng.normal(size=96), [0.5, 1.5]).astype(float)
    return {"X": X, "y": y, "qid": np.arange(96) // 8}


RANKERS = {
    "margin": LargeMarginRanker("nDCG@5", bound="convex", **HARD),
    "nonconvex": LargeMarginRanker("nDCG@5", **HARD),
    "matching": MatchingRanker(**HARD),
    "pairwise": PairwiseRanker(**HARD),
    "smooth": SmoothRanker("nDCG@5"),
    "direct": DirectRanker("nDCG@5", init="zeros", directions=("coordinates", "powell"), n_restarts=2),
}


@pytest.mark.parametrize("name", RANKERS)
def test_fit_returns_the_best_model_so_far(name):
    rows = data()
    if name == "matching":
        rows = {"X": rows["X"], "y": np.tile([1, 2, 0, 0, 0, 0, 0, 0], 12), "qid": rows["qid"]}
    with pytest.warns(TrainingInterruptedWarning, match="the best weights so far"):
        ranker = RANKERS[name].set_params(callbacks=[ctrl_c]).fit(**rows)
    assert ranker.certificate_.stop is Stop.INTERRUPTED
    assert ranker.predict(rows["X"], qid=rows["qid"]).shape[0] == 96


def test_factors_are_returned_too():
    ranker = CofiRanker(factors=4, reg=0.1, tol=1e-9, callbacks=[ctrl_c])
    with pytest.warns(TrainingInterruptedWarning, match="the best factors so far"):
        ranker = ranker.fit(load_ratings_sample())
    assert ranker.n_iter_ == 2
    assert ranker.certificate_.stop is Stop.INTERRUPTED


def test_a_second_ctrl_c_raises_and_changes_nothing(monkeypatch):
    """It comes while the best point so far is proved."""
    real = Risk.at

    def proved(risk, w, merged=True, queries=None, prove=False):
        if prove:
            raise KeyboardInterrupt
        return real(risk, w, merged, queries, prove)

    monkeypatch.setattr(Risk, "at", proved)
    ranker = LargeMarginRanker("nDCG@5", w0="zeros", callbacks=[ctrl_c], **HARD)
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(**data())
    assert not hasattr(ranker, "coef_")
    with pytest.raises(KeyboardInterrupt):
        ranker.path(**data(), lams=[1e-3, 1e-4])
    with pytest.warns(TrainingInterruptedWarning):  # the first Ctrl-C, when training is over
        once = LargeMarginRanker("nDCG@5", w0="zeros").fit(**data())
    assert once.certificate_.stop is Stop.INTERRUPTED


def test_a_second_ctrl_c_in_the_second_model_of_a_path_raises(monkeypatch):
    real, calls = Risk.at, []

    def proved(risk, w, merged=True, queries=None, prove=False):
        calls.append(prove)
        if sum(calls) == 2 and prove:
            raise KeyboardInterrupt
        return real(risk, w, merged, queries, prove)

    def late(step, state):
        if sum(calls) == 1 and step.step == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Risk, "at", proved)
    with pytest.raises(KeyboardInterrupt):
        LargeMarginRanker("nDCG@5", w0="zeros", tol=1e-9, callbacks=[late]).path(**data(), lams=[1.0, 1e-4])


def test_a_second_ctrl_c_raises_where_factors_are_bounded(monkeypatch):
    def pressed(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(cofi_training, "certificate_of", pressed)
    ranker = CofiRanker(factors=4, reg=0.1, tol=1e-9, callbacks=[ctrl_c])
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(load_ratings_sample())
    assert not hasattr(ranker, "item_factors_")


@pytest.mark.parametrize("judged", [False, True])
def test_trees_of_complete_rounds_are_returned(judged, monkeypatch):
    """Ctrl-C in the fourth round, before it and in the midst of its three members."""
    pytest.importorskip("lightgbm")
    from rankopt.boosting import BoostedRanker
    from rankopt.boosting.objective import BoostingObjective

    rows, real = data(), BoostingObjective.__call__
    more = {"eval_set": (rows["X"], rows["y"]), "eval_qid": rows["qid"]} if judged else {}
    whole = BoostedRanker(n_estimators=3, random_state=0).fit(**rows, **more)
    for call in (10, 11):
        calls = []

        def pressed(objective, *given, calls=calls, call=call):
            calls.append(0)
            if len(calls) == call:
                raise KeyboardInterrupt
            return real(objective, *given)

        monkeypatch.setattr(BoostingObjective, "__call__", pressed)
        with pytest.warns(TrainingInterruptedWarning, match="the best trees so far"):
            ranker = BoostedRanker(n_estimators=9, random_state=0).fit(**rows, **more)
        np.testing.assert_array_equal(ranker.predict(rows["X"]), whole.predict(rows["X"]))
        assert ranker.n_rounds_ == whole.n_rounds_
    monkeypatch.setattr(BoostingObjective, "__call__", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        BoostedRanker(n_estimators=9).fit(**rows)


def test_what_follows_may_ask_for_an_exception():
    with pytest.raises(KeyboardInterrupt), raise_interruptions():
        LargeMarginRanker("nDCG@5", callbacks=[ctrl_c], **HARD).fit(**data())
    with raise_interruptions():
        RANKERS["margin"].set_params(callbacks=(), lam=1.0).fit(**data())


SCRIPT = """
import signal
from rankopt.data import load_sample
from rankopt.rankers import LargeMarginRanker

press = [lambda step, state: step.step == 3 and signal.raise_signal(signal.SIGINT)]
ranker = LargeMarginRanker("nDCG@10", lam=1e-4, tol=1e-9, callbacks=press).fit(load_sample("les-miserables").train)
print(ranker.n_iter_, ranker.certificate_.stop)
"""


def test_a_script_goes_on_with_the_model():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.split() == ["3", *str(Stop.INTERRUPTED).split()]
    assert "TrainingInterruptedWarning" in done.stderr
    sample = load_sample("les-miserables").train
    limited = LargeMarginRanker("nDCG@10", lam=1e-4, tol=1e-9, callbacks=[lambda step, state: step.step == 3])
    assert limited.fit(sample).n_iter_ == 3
