"""Workers that fall silent are replaced and change no bit, slow ones are left to work, and limits of time hold."""

import os
import pickle
import signal
import socket
import subprocess
import sys
import time
import warnings

import numpy as np
import psutil
import pytest
from planted.doomed import Slow, Still, Stopping
from problems.same_bits import assert_same
from problems.training import made
from sklearn.exceptions import ConvergenceWarning

from rankopt.engines import ENGINES, dask, ended, engine_named
from rankopt.engines import messages as signs
from rankopt.engines.messages import BEAT, HEAD, MessageReceiver, MessageSender
from rankopt.errors import EngineError
from rankopt.optimize.certificate import Stop
from rankopt.rankers import LargeMarginRanker
from rankopt.risk import shard as sharding

REMOTE = ["dask", "processes"]


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(sharding, "SHARD_ROWS", 40)
    monkeypatch.setattr(signs, "SILENT", 1.0)


@pytest.fixture
def opened():
    """An engine of a name, with two workers, that ends with the test."""
    engines = []

    def open_(name):
        engines.append(engine_named(name, None if name == "serial" else 2))
        return engines[-1]

    yield open_
    for engine in engines:
        with ended(engine, True):
            pass


@pytest.mark.study
@pytest.mark.parametrize("engine", ["processes", pytest.param("dask", marks=pytest.mark.study)])
def test_a_worker_that_is_stopped_is_replaced_and_changes_nothing(engine, opened, tmp_path):
    X, y, qid = made(queries=20)
    stops = []

    def stop(step, state):
        """The worker that solves next is stopped."""
        if step.step in (2, 5):
            (tmp_path / str(step.step)).touch()
            stops.append(step.step)

    ranker = LargeMarginRanker("nDCG@5", lam=0.03, callbacks=[stop], engine=opened(engine))
    ranker.set_params(argmax=Stopping(folder=str(tmp_path), safe=os.getpid())).fit(X, y, qid=qid)
    assert stops == [2, 5]
    assert list(tmp_path.iterdir()) == []
    assert_same(ranker, LargeMarginRanker("nDCG@5", lam=0.03).fit(X, y, qid=qid))


@pytest.mark.study
def test_workers_that_always_stop_are_an_error_after_a_while(opened, monkeypatch):
    monkeypatch.setattr(signs, "SILENT", 0.5)
    X, y, qid = made()
    engine = opened("processes")
    ranker = LargeMarginRanker(argmax=Still(safe=os.getpid()), engine=engine)
    with pytest.raises(EngineError, match="the last by silence of 2 s"):
        ranker.fit(X, y, qid=qid)
    ranker.set_params(argmax="exact").fit(X, y, qid=qid)  # the engine lives on


@pytest.mark.study
def test_a_scheduler_that_is_stopped_is_an_error_after_a_while(opened, monkeypatch):
    monkeypatch.setattr(dask, "GRACE", 4)
    monkeypatch.setattr(dask, "LOOK", 0.5)
    X, y, qid = made()
    engine = opened("dask")

    def stop(step, state):
        os.kill(engine._contact.cluster.process.pid, signal.SIGSTOP)

    with pytest.raises(EngineError, match="scheduler is silent"):
        LargeMarginRanker(lam=0.01, engine=engine, callbacks=[stop]).fit(X, y, qid=qid)


@pytest.mark.study
def test_a_cluster_of_the_user_may_be_silent_as_long_as_its_patience(opened, monkeypatch):
    """Its workers are not ours to kill."""
    monkeypatch.setattr(signs, "SILENT", 1000.0)
    monkeypatch.setattr(dask, "LOOK", 0.5)
    X, y, qid = made()
    host = opened("dask")
    LargeMarginRanker(lam=0.1, max_iter=10**6, engine=host).fit(X, y, qid=qid)
    serve = psutil.Process(host._contact.cluster.process.pid)
    workers = [process for process in serve.children(recursive=True) if "spawn_main" in " ".join(process.cmdline())]
    assert len(workers) == 2

    def stop(step, state):
        for worker in workers:
            worker.suspend()

    engine = dask.Dask(client=host._contact.cluster.address, patience=1.5)
    with pytest.raises(EngineError, match=r"the Dask worker tcp://.* is silent since \d s"):
        LargeMarginRanker(lam=0.01, engine=engine, callbacks=[stop]).fit(X, y, qid=qid)
    for worker in workers:
        worker.resume()


@pytest.mark.study
@pytest.mark.parametrize("engine", REMOTE)
@pytest.mark.parametrize("holding", [False, True])
def test_workers_that_are_slow_are_left_to_work(engine, holding, opened, monkeypatch):
    X, y, qid = made(queries=5)
    monkeypatch.setattr(signs, "SILENT", 0.75)
    engine, seen = opened(engine), []

    def watch(step, state):
        seen.append({process.pid for process in psutil.Process().children(recursive=True)})

    ranker = LargeMarginRanker("nDCG@5", lam=0.1, max_iter=2, engine=engine, callbacks=[watch])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ranker.set_params(argmax=Slow(seconds=1.8, holding=holding)).fit(X, y, qid=qid)
        alone = LargeMarginRanker("nDCG@5", lam=0.1, max_iter=2).fit(X, y, qid=qid)
    assert seen[0] == seen[1]
    assert_same(ranker, alone)


@pytest.fixture(scope="module")
def engines():
    """One engine of each name, with two workers, for what ends none."""
    opened = {name: engine_named(name, None if name == "serial" else 2) for name in ENGINES}
    yield opened
    for engine in opened.values():
        with ended(engine, True):
            pass


@pytest.mark.study
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("judged", [False, True])
def test_a_limit_of_time_is_passed_by_one_step_at_most(engine, judged, engines):
    """Whoever computes: the step in which it passes is taken to its end, and what it found is proved."""
    X, y, qid = made(queries=5)
    sleep = 0.3
    ranker = LargeMarginRanker("nDCG@5", lam=1e-4, time_limit=1.0, argmax=Slow(seconds=sleep), engine=engines[engine])
    judge = {"eval_set": (X, y), "eval_qid": qid} if judged else {}
    with pytest.warns(ConvergenceWarning, match="time_limit passed"):
        ranker.fit(X, y, qid=qid, **judge)
    seconds = ranker.history_.seconds
    assert ranker.certificate_.stop is Stop.TIME
    assert seconds[-1] >= 1.0
    assert (seconds[:-1] < 1.0).all()
    assert len(seconds) <= 1.0 / sleep + 1


def test_the_time_of_the_judge_counts(monkeypatch):
    X, y, qid = made(queries=5)
    ranker = LargeMarginRanker("nDCG@5", lam=1e-4, tol=1e-9, time_limit=0.5)
    asked = []

    def slow(self, evaluation):
        def judged(w):
            asked.append(w)
            time.sleep(0.2)
            return -len(asked)

        return judged

    monkeypatch.setattr(LargeMarginRanker, "_judge", slow)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        ranker.fit(X, y, qid=qid, eval_set=(X, y), eval_qid=qid)
    assert len(asked) <= 4
    assert ranker.eval_score_ == -1


@pytest.mark.study
def test_a_process_gives_signs_by_its_word_or_its_clock():
    busy = "import sys\nprint(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE) as process:
        try:
            process.stdout.readline()
            watched = signs.Heartbeat(process.pid)

            def silence(seconds, heard=lambda: None):
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    time.sleep(0.05)
                    told = watched.look(heard())
                return told

            assert silence(1.0) <= 0.7  # on a busy machine it may not get a turn at once
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.1)
            assert silence(1.5) >= 0.7
            assert silence(0.5, heard=time.monotonic) == 0.0
            watched.began()
            assert watched.silence == 0.0
        finally:
            process.kill()


def test_a_message_that_comes_in_parts_or_never_holds_nobody_up():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        post = MessageSender(ours)
        content = pickle.dumps({"told": np.arange(3).tolist()})
        whole = HEAD.pack(0) + HEAD.pack(len(content)) + content
        heard = []
        for byte in whole[:-1]:
            theirs.sendall(bytes([byte]))
            assert post.pump() is None
            heard.append(post.heard)
        assert heard == list(range(1, len(whole)))
        theirs.sendall(whole[-1:])
        assert post.pump() == ({"told": [0, 1, 2]},)
        post.put(bytes(10**7))  # more than anybody reads
        assert post.pump() is None
        assert post.sends
        theirs.close()
        with pytest.raises((EOFError, OSError)):
            post.pump()


@pytest.mark.study
def test_a_worker_beats_while_it_is_asked_and_only_then():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        post, desk = MessageSender(ours), MessageReceiver(theirs)
        post.put("question")
        post.pump()
        assert pickle.loads(desk.take()) == "question"
        before = post.heard
        time.sleep(6 * BEAT)
        assert post.pump() is None
        assert post.heard - before >= 2 * HEAD.size
        desk.give(pickle.dumps(None))
        assert post.pump() == (None,)
        before = post.heard
        time.sleep(3 * BEAT)
        assert post.pump() is None
        assert post.heard == before
