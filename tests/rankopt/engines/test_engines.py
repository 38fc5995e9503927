"""Every engine gives the same bits, also when workers die, and leaves no process and no file."""

import copy
import gc
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import psutil
import pytest
from planted.doomed import Bound, Dying, Failing, Fatal, Slow
from planted.questions import Extent
from problems.same_bits import assert_same
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from formulations.errors import InvalidProblemError
from rankopt.data.queries import Queries
from rankopt.engines import ENGINES, Serial, get_engine
from rankopt.engines.dask import Dask, LoadedShard, store_shards
from rankopt.errors import EngineError, OptionError, TrainingInterruptedWarning
from rankopt.optimize.certificate import Stop
from rankopt.rankers import LargeMarginRanker, MatchingRanker, PairwiseRanker
from rankopt.risk import risk as risk_module

BOUNDS = ["convex", "tie-aware", "nonconvex"]
OTHERS = [name for name in ENGINES if name != "serial"]
TABLES = ["float64", "float32", "csr", "memmap", "memmapped csr"]


@pytest.fixture(autouse=True)
def many_shards(monkeypatch):
    monkeypatch.setattr(risk_module, "SHARD_ROWS", 40)


@pytest.fixture(scope="module")
def engines():
    """One engine of each name, with two workers, for many fits."""
    opened = {name: get_engine(name, 2) for name in ENGINES}
    yield opened
    for engine in opened.values():
        if hasattr(engine, "close"):
            engine.close()


def made(seed=0, queries=16, documents=10, features=4):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(queries * documents, features)), 1)
    truth = X @ np.linspace(1, -1, features) + 0.7 * rng.normal(size=len(X))
    return X, np.digitize(truth, [0.3, 1.2]).astype(float), np.repeat(np.arange(queries), documents)


def mapped(array, file):
    """The same numbers in a file, some way in, mapped into memory."""
    with open(file, "wb") as written:
        written.write(b"\0" * 64)
        array.tofile(written)
    return np.memmap(file, array.dtype, "r", 64, array.shape)


def stored(kind, X, folder):
    """The features as a table of this kind."""
    if kind == "memmap":
        return mapped(X, folder / "X")
    if "csr" in kind:
        sparse = csr_array(np.where(np.abs(X) > 0.3, X, 0))
        if kind == "csr":
            return sparse
        parts = [mapped(getattr(sparse, name), folder / name) for name in ("data", "indices", "indptr")]
        return csr_array(tuple(parts), shape=sparse.shape, copy=False)
    return X.astype(kind)


def children():
    return [process for process in psutil.Process().children(recursive=True) if process.is_running()]


def left_behind(before, folder):
    """Processes and files that were not there before."""
    return {process.pid for process in children()} - before, list(folder.iterdir())


@pytest.mark.every(11)
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("bound", BOUNDS)
def test_all_engines_give_the_same_bits(bound, kind, engines, tmp_path):
    X, y, qid = made()
    queries = Queries.from_arrays(stored(kind, X, tmp_path), y, qid=qid)
    ranker = LargeMarginRanker("nDCG@5", bound=bound, lam=0.03)
    alone = clone(ranker).set_params(engine=Serial()).fit(queries)
    assert len(alone.objective(queries).risk.shards) == 4
    for name in OTHERS:
        assert_same(clone(ranker).set_params(engine=Borrowed(engines[name])).fit(queries), alone)


class Borrowed:
    """An engine that is no copy, whatever copies the ranker: its workers serve all tests."""

    def __init__(self, engine):
        self.engine = engine

    def map(self, question, shards):
        return self.engine.map(question, shards)

    def __deepcopy__(self, memo):
        return self


@pytest.mark.parametrize(
    "ranker",
    [
        PairwiseRanker(lam=0.01),
        MatchingRanker(lam=0.01),
        MatchingRanker(bound="nonconvex", lam=0.1),
        LargeMarginRanker("P@3", bound="convex", lam=0.1, method="cutting_planes"),
        LargeMarginRanker("nDCG@5", lam=0.1, max_iter=3),
    ],
    ids=str,
)
def test_all_rankers_methods_and_limits_agree_on_all_engines(ranker, engines):
    X, y, qid = made(seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        alone = clone(ranker).set_params(engine=Serial()).fit(X, y, qid=qid)
        for name in OTHERS:
            assert_same(clone(ranker).set_params(engine=Borrowed(engines[name])).fit(X, y, qid=qid), alone)


@pytest.mark.parametrize("engine", ENGINES)
def test_limits_return_the_best_so_far_and_say_so(engine, engines):
    X, y, qid = made()
    for options, words in (({"max_iter": 2}, "max_iter"), ({"time_limit": 1e-9}, "time_limit passed")):
        ranker = LargeMarginRanker("nDCG@5", lam=1e-3, engine=Borrowed(engines[engine]), **options)
        with pytest.warns(ConvergenceWarning, match=words):
            ranker.fit(X, y, qid=qid)
        assert ranker.certificate_.bound <= ranker.certificate_.primal
        assert words in ranker.certificate_.stop


@pytest.mark.every(2)
@pytest.mark.parametrize("bound", ["nonconvex", "convex"])
def test_workers_killed_in_mid_step_change_nothing(bound, engines, tmp_path):
    X, y, qid = made()
    marks = tmp_path / "marks"
    marks.mkdir()
    deaths = []

    def doom(step, state):
        """The worker that solves next is killed."""
        if step.step in (2, 5):
            (marks / str(step.step)).touch()
            deaths.append(step.step)

    ranker = LargeMarginRanker("nDCG@5", bound=bound, lam=0.03, callbacks=[doom])
    ranker.set_params(engine=Borrowed(engines["dask"]), argmax_solver=Dying(folder=str(marks), safe=os.getpid()))
    ranker.fit(X, y, qid=qid)
    assert deaths == [2, 5]
    assert list(marks.iterdir()) == []
    assert_same(ranker, LargeMarginRanker("nDCG@5", bound=bound, lam=0.03).fit(X, y, qid=qid))


@pytest.mark.study
def test_workers_that_always_die_are_an_error(engines):
    X, y, qid = made()
    ranker = LargeMarginRanker(argmax_solver=Fatal(safe=os.getpid()), engine=Borrowed(engines["dask"]))
    with pytest.raises(EngineError, match="fewer workers"):
        ranker.fit(X, y, qid=qid)
    ranker.set_params(argmax_solver="exact").fit(X, y, qid=qid)  # the engine lives on


@pytest.mark.study
def test_errors_in_workers_arrive_as_they_are(engines):
    X, y, _ = made()
    qid = np.repeat(np.arange(14), [10] * 12 + [30, 10])
    ranker = LargeMarginRanker(argmax_solver=Failing(limit=30), engine=Borrowed(engines["dask"]))
    with pytest.raises(InvalidProblemError, match="30 documents"):
        ranker.fit(X, y, qid=qid)
    ranker.set_params(argmax_solver=Failing(limit=31)).fit(X, y, qid=qid)


def test_what_cannot_be_sent_is_an_option_error(engines):
    X, y, qid = made()
    ranker = LargeMarginRanker(argmax_solver=Bound(held=lambda: 1), engine=Borrowed(engines["dask"]))
    with pytest.raises(OptionError, match="threads"):
        ranker.fit(X, y, qid=qid)


@pytest.mark.study
@pytest.mark.parametrize("end", ["fit", "error", "interruption"])
def test_an_engine_by_name_leaves_nothing_behind(end, scratch):
    X, y, qid = made()
    before, seen = {process.pid for process in children()}, []

    def watch(step, state):
        seen.append(left_behind(before, scratch))
        if end == "interruption" and step.step == 2:
            raise KeyboardInterrupt
        if end == "error":
            raise ZeroDivisionError

    ranker = LargeMarginRanker(lam=0.1, engine="dask", n_jobs=2, callbacks=[watch])
    errors = {"fit": (), "error": ZeroDivisionError, "interruption": TrainingInterruptedWarning}
    try:
        ranker.fit(X, y, qid=qid)
    except errors[end]:
        pass
    else:
        assert end == "fit"
    assert hasattr(ranker, "coef_") == (end != "error")
    processes, files = seen[0]
    assert len(processes) >= 2
    assert files
    assert left_behind(before, scratch) == (set(), [])


@pytest.mark.study
@pytest.mark.parametrize("end", ["close", "collected"])
def test_an_engine_object_stays_open_until_it_is_closed_or_gone(end, scratch):
    X, y, qid = made()
    engine = Dask(2)
    before = {process.pid for process in children()}
    own = copy.deepcopy(engine)
    ranker = LargeMarginRanker(lam=0.1, engine=own).fit(X, y, qid=qid)
    open_after_fit = left_behind(before, scratch)[0]
    assert open_after_fit
    ranker.fit(X, y, qid=qid)
    assert left_behind(before, scratch)[0] == open_after_fit
    if end == "close":
        own.close()
    del own, ranker
    gc.collect()
    assert left_behind(before, scratch) == (set(), [])
    assert copy.deepcopy(engine) == engine


@pytest.mark.study
@pytest.mark.parametrize("engine", ["dask", Dask(2)], ids=str)
def test_a_path_leaves_nothing_behind(engine, scratch):
    X, y, qid = made()
    before = {process.pid for process in children()}
    ranker = LargeMarginRanker(bound="convex", engine=engine, n_jobs=2)
    path = ranker.path(X, y, qid=qid, lams=[1.0, 0.1])
    assert left_behind(before, scratch) == (set(), [])
    alone = LargeMarginRanker(bound="convex", engine="serial").path(X, y, qid=qid, lams=[1.0, 0.1])
    for one, other in zip(path.models, alone.models, strict=True):
        assert_same(one, other)


@pytest.mark.study
def test_tables_are_written_once_and_mapped_files_stay_where_they_are(engines, scratch, tmp_path, monkeypatch):
    monkeypatch.setattr(risk_module, "SHARD_ROWS", 80)
    X, y, qid = made()
    folder = tmp_path / "shards"
    folder.mkdir()
    LargeMarginRanker(engine=engines["dask"]).fit(X, y, qid=qid)  # its cluster runs now, at an address
    engine = Dask(client=engines["dask"]._connection.client, folder=str(folder))
    for features, tables in ((X, 1), (mapped(X, tmp_path / "X"), 0), (stored("csr", X, tmp_path), 3)):
        LargeMarginRanker(lam=0.1, engine=engine).fit(Queries.from_arrays(features, y, qid=qid))
        written = [file.name for file in folder.rglob("*") if file.is_file()]
        assert sum(name.startswith("table") for name in written) == tables
        assert sum(name.startswith("shard") for name in written) == 2
    engine.close()


@pytest.mark.parametrize("change", ["in memory", "another file"])
def test_a_mapped_table_is_written_where_its_file_holds_other_numbers(change, tmp_path):
    X, y, qid = made()
    X.tofile(tmp_path / "X")
    features = np.memmap(tmp_path / "X", float, "c" if change == "in memory" else "r", 0, X.shape)
    if change == "in memory":
        features[0] += 1
    else:
        (tmp_path / "X").rename(tmp_path / "Y")
        (X + 1).tofile(tmp_path / "X")
    shards = LargeMarginRanker().objective(Queries.from_arrays(features, y, qid=qid)).risk.shards
    folder = tmp_path / "stowed"
    folder.mkdir()
    for own, path in zip(shards, store_shards(shards, str(folder)), strict=True):
        there = LoadedShard(path).shard
        np.testing.assert_array_equal(there.scorer.features, features)
        w = np.arange(4.0)
        np.testing.assert_array_equal(there.scores(w), own.scores(w))
        assert there.remembered == {}


def test_every_engine_asks_any_question(engines):
    """A question is all that an engine knows: here one that no loss has to do with."""
    X, y, qid = made()
    risk = LargeMarginRanker(bound="convex").objective(Queries.from_arrays(X, y, qid=qid)).risk
    question = Extent(np.linspace(-1.0, 1.0, X.shape[1]))
    expected = get_engine("serial").map(question, risk.shards)
    assert len(expected) > 1
    for name in ENGINES:
        answers = engines[name].map(question, risk.shards)
        for told, asked in zip(answers, expected, strict=True):
            np.testing.assert_array_equal(told, asked)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    X, y, qid = made()
    with pytest.raises(OptionError, match=r"pip install 'rankopt\[distributed\]'"):
        LargeMarginRanker(engine="dask").fit(X, y, qid=qid)


@pytest.mark.study
def test_no_scheduler_at_the_address_is_an_error(monkeypatch):
    import dask

    X, y, qid = made()
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}), pytest.raises(EngineError, match="start one"):
        LargeMarginRanker(engine=Dask(client="tcp://127.0.0.1:9")).fit(X, y, qid=qid)


@pytest.mark.study
def test_a_cluster_of_the_user_is_used_and_left_alone(tmp_path):
    from distributed import Client

    X, y, qid = made()
    host = Dask(2)
    LargeMarginRanker(engine=host).fit(X, y, qid=qid)  # its cluster runs now, at an address
    address = host._connection.client.scheduler.address
    with Client(address, set_as_default=False) as client:
        for given in (client, address):
            engine = Dask(client=given, folder=str(tmp_path))
            ranker = LargeMarginRanker(engine=engine).fit(X, y, qid=qid)
            assert len(list(Path(tmp_path).rglob("shard*.pickle"))) == 4
            engine.close()
            assert list(tmp_path.iterdir()) == []
            assert client.status == "running"
            assert_same(ranker, LargeMarginRanker().fit(X, y, qid=qid))
    host.close()


@pytest.mark.study
def test_a_cluster_that_dies_is_an_error_and_the_next_fit_starts_another():
    X, y, qid = made()
    before, engine = children(), Dask(2)

    def kill(step, state):
        for process in children():
            if process not in before:
                process.kill()

    with pytest.raises(EngineError, match="restart the cluster"):
        LargeMarginRanker(engine=Borrowed(engine), callbacks=[kill]).fit(X, y, qid=qid)
    ranker = LargeMarginRanker(engine=engine).fit(X, y, qid=qid)
    engine.close()
    assert_same(ranker, LargeMarginRanker().fit(X, y, qid=qid))


def test_an_unknown_engine_is_an_error_that_names_the_choices():
    X, y, qid = made()
    for name in ("processes", "cloud"):
        with pytest.raises(OptionError, match=f"'{name}' is unknown; known are dask, serial, threads"):
            LargeMarginRanker(engine=name).fit(X, y, qid=qid)


@pytest.mark.study
@pytest.mark.filterwarnings("ignore::rankopt.errors.NoProgressWarning")  # the start may be best on eval_set
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("judged", [False, True])
def test_a_limit_of_time_is_passed_by_one_step_at_most(engine, judged, engines):
    """On every engine the step in which the limit passes is completed, and its result is proved."""
    X, y, qid = made(queries=5, documents=10)
    sleep = 0.3
    ranker = LargeMarginRanker(
        "nDCG@5", lam=1e-4, time_limit=1.0, argmax_solver=Slow(seconds=sleep), engine=Borrowed(engines[engine])
    )
    judge = {"eval_set": (X, y), "eval_qid": qid} if judged else {}
    with pytest.warns(ConvergenceWarning, match="time_limit passed"):
        ranker.fit(X, y, qid=qid, **judge)
    seconds = ranker.history_.seconds
    assert ranker.certificate_.stop is Stop.TIME
    assert seconds[-1] >= 1.0
    assert (seconds[:-1] < 1.0).all()
    assert len(seconds) <= 1.0 / sleep + 1


@pytest.mark.filterwarnings("ignore::rankopt.errors.NoProgressWarning")  # the start may be the best on eval_set
def test_the_time_of_the_judge_counts(monkeypatch):
    X, y, qid = made(queries=5, documents=10)
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
    assert ranker.best_score_ == -1
