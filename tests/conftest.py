"""Fixtures shared by all tests."""

import os
import time
from collections import Counter
from pathlib import Path

import numpy as np
import osqp  # noqa: F401  (before PuLP: the other order ends the process)
import pytest

if "PYTEST_XDIST_WORKER" in os.environ:  # a process a core: threads of OpenMP would wait for those of the others
    os.environ.setdefault("OMP_NUM_THREADS", "1")


STUDIES = "RANKOPT_STUDIES"
"""The variable that has tests run which are marked `study`: they take long, start processes or browsers, or show on
more cases what others show. It is a number of minutes: they come last, and after those no more of them are begun."""

BEGUN = time.monotonic()


def minutes():
    return float(os.environ.get(STUDIES) or 0)


def pytest_collection_modifyitems(config, items):
    """Studies come last, cases that others stand for at their very end; without minutes for them they are left
    out, unless they are asked for: then they are skipped with the reason."""
    counts, left = Counter(), set()
    for item in items:
        every = item.get_closest_marker("every")
        if every:
            place = item.parent.nodeid, item.originalname
            if counts[place] % every.args[0]:
                item.add_marker("study")
                left.add(item)
            counts[place] += 1
    items.sort(key=lambda item: (item.get_closest_marker("study") is not None) + (item in left))  # stable
    asked = config.getoption("markexpr") or any("::" in place for place in config.args)
    if not asked and not minutes():
        studies = [item for item in items if item.get_closest_marker("study")]
        if studies:
            config.hook.pytest_deselected(items=studies)
            items[:] = items[: len(items) - len(studies)]


WHOLE = 5000
"""Tests from which a run will ask for every kernel."""


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session):
    """Before a whole run every process compiles its share of the kernels that nobody has kept: else each compiles what
    the others are compiling at that moment, and so do the processes that tests start."""
    process = getattr(session.config, "workerinput", None)
    if process is None or len(session.items) < WHOLE:
        return
    from formulations.compiled import KernelCache, kernels_of

    kernels = sorted(kernels_of("formulations", "rankopt"), key=lambda kernel: kernel.__module__)  # callers by callees
    size = np.cumsum([len(kernel.function.__code__.co_code) for kernel in kernels])
    shares = (size - 1) * process["workercount"] // size[-1]
    for kernel, share in zip(kernels, shares, strict=True):
        cache = KernelCache(kernel.function, kernel.content)
        if f"gw{share}" == process["workerid"] and not all(map(cache.holds, kernel.signatures)):
            kernel.ready()


def pytest_runtest_setup(item):
    if item.get_closest_marker("study"):
        if not minutes():
            pytest.skip(f"a long study; {STUDIES}=60 runs it")
        if time.monotonic() - BEGUN > 60 * minutes():
            pytest.skip(f"a long study; the {minutes():g} minutes of {STUDIES} are over")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Let each process take one piece of the tests and, at its end, half of what another has left: dealt out in small
    pieces, as is usual, most files come to all processes, and each makes what is made once a file."""
    if config.getvalue("dist") != "load":
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data sets, from the variable RANKOPT_DATA."""
    folder = os.environ.get("RANKOPT_DATA")
    if folder is None:
        pytest.skip("RANKOPT_DATA is not set: it names the folder of the real data sets")
    return Path(folder)


@pytest.fixture
def rows():
    """Features (60, 6), grades and ids of 7 queries of shuffled rows, with some equal documents and unequal queries."""
    documents, features_, queries = 60, 6, 7
    rng = np.random.default_rng(0)
    features = rng.normal(size=(documents, features_))
    features[7] = features[31]
    grades = np.clip(np.round(features @ rng.normal(size=features_) + rng.normal(size=documents)), 0, 4)
    qid = rng.permutation(np.concatenate([np.arange(queries), rng.integers(0, queries, documents - queries)]))
    return features, grades, qid


@pytest.fixture(scope="module")
def workers():
    """A Dask engine of two worker processes for many fits: to start them takes seconds."""
    from rankopt.engines.dask import Dask

    engine = Dask(2)
    yield engine
    engine.close()


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """A folder that takes all temporary files."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder
