"""Kernels: what may stand in them, what is compiled when, and that they are the same in Python."""

import ast
import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
import threading
import time
from itertools import combinations, product
from pathlib import Path

import numba as nb
import numpy as np
import pytest

import formulations
import rankopt
from formulations import compiled as compiled_module
from formulations import pairwise_ranking, ranking, solve_batch
from formulations.argmax.batch import merge_range
from formulations.argmax.layout import fill_cones
from formulations.compiled import FLOATS, KERNELS, READ_FLOATS, Deferral, Kernel, compiled, inlined
from formulations.parallel import at_most, share, threads
from formulations.problems.ranking_duals import judge_range
from formulations.solvers.exact import ExactArgmax

BANNED = {
    "sort", "argsort", "searchsorted", "unique", "median", "percentile", "quantile", "partition", "argpartition",
    "lexsort", "linalg", "dot", "convolve", "interp", "histogram", "digitize", "take", "roll", "cov", "corrcoef",
    "where", "nonzero", "flatnonzero", "concatenate", "append", "vstack", "hstack", "repeat", "diff", "cumsum",
}  # fmt: skip
"""Of NumPy: what numba compiles as functions of its own library into every kernel that uses it."""


def modules():
    for package in (formulations, rankopt):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if module.name.rpartition(".")[2] != "__main__":
                importlib.import_module(module.name)
    return [kernel for kernel in KERNELS if kernel.__module__.startswith(("formulations.", "rankopt."))]


def test_kernels_use_no_function_of_numbas_library_that_is_long():
    kernels = modules()
    assert len(kernels) > 60
    used = {}
    for kernel in kernels:
        source = Path(kernel.function.__code__.co_filename).read_text(encoding="utf-8")
        first = kernel.function.__code__.co_firstlineno
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef) and node.name == kernel.__name__ and node.lineno >= first:
                body = [one for statement in node.body for one in ast.walk(statement)]
                names = {one.attr for one in body if isinstance(one, ast.Attribute)}
                used[kernel.__name__] = names & BANNED
                assert "sorted" not in {one.id for one in body if isinstance(one, ast.Name)}
    assert {name: names for name, names in used.items() if names} == {}
    assert len(used) > 60


def test_internal_kernels_are_those_that_only_kernels_call():
    kernels, by_kernels, by_python = modules(), set(), set()
    for module in [one for name, one in sys.modules.items() if name.split(".")[0] in ("formulations", "rankopt")]:
        tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
        known = dict(vars(module))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in sys.modules:
                known |= {alias.name: getattr(sys.modules[node.module], alias.name, None) for alias in node.names}
        for part in tree.body:
            inside = isinstance(known.get(getattr(part, "name", "")), Kernel | inlined)
            nodes = [one for child in (part.body if inside else [part]) for one in ast.walk(child)]
            named = [known.get(one.id) for one in nodes if isinstance(one, ast.Name)]
            (by_kernels if inside else by_python).update(one for one in named if isinstance(one, Kernel))
    internal = {kernel for kernel in kernels if kernel.internal}
    assert {one.__name__ for one in internal & by_python} == set()
    assert {one.__name__ for one in by_kernels - by_python - internal} == set()


def test_only_what_is_called_is_compiled():
    @compiled(nb.int64(nb.int64))
    def never(n):
        return no_such_name(n)  # noqa: F821  compiling it would raise

    assert isinstance(never, Kernel)
    assert never.in_python is not None


def test_small_work_is_compiled_once_it_has_cost_as_much_or_if_the_code_is_there():
    @compiled(nb.int64(nb.int64))
    def one_more(n):
        return n + 1

    one_more.__dict__["_is_cached"] = False  # an earlier run may have stored it
    deferral = Deferral(1e-3)
    assert not deferral.ends(one_more)
    with deferral.counted():
        time.sleep(2e-3)
    assert deferral.ends(one_more)
    assert one_more(1) == 2
    assert Deferral(1.0).ends(one_more)


@pytest.mark.parametrize("state", ["nothing is compiled", "only merging", "all"])
def test_values_of_small_batches_do_not_depend_on_what_is_compiled(state, monkeypatch):
    """Training's orders do not either: it decides by its data (`for_batch`)."""
    ready = {"nothing is compiled": (), "only merging": (merge_range, fill_cones, judge_range), "all": KERNELS}[state]
    monkeypatch.setattr(Kernel, "is_ready", property(lambda kernel: kernel in ready))
    random = np.random.default_rng(11)
    for gains, cut in product((3, 100), (5, 40)):
        offsets, gain = np.arange(0, 161, 40), random.integers(0, gains, 160) / gains
        scores = gain / 3 + random.normal(size=160)
        weights = {
            "position_weights": lambda n: 1.0 - np.arange(n) / n,
            "discount": lambda n, cut=cut: (np.arange(n) < cut) / (1.0 + np.arange(n)),
        }
        problems = ranking(scores, gain, offsets=offsets, **weights)
        answer, named = solve_batch(problems), solve_batch(problems, "scipy")
        assert (answer.value <= named.bound).all()
        assert (named.value <= answer.bound).all()
        assert np.allclose(answer.value, named.value, rtol=1e-13)
        trained = solve_batch(problems, ExactArgmax().for_batch(offsets), directed_rounding=False)
        assert set(trained.algorithm) <= {"few candidates", "assignment"}
        pairs = solve_batch(pairwise_ranking(scores, gain > 0.5, "AP", offsets=offsets))
        assert set(pairs.algorithm) == {"independent choices" if state == "all" else "grid"}
        assert np.allclose(pairs.value, solve_batch(pairs.problems, ExactArgmax(compiled=False)).value, rtol=1e-13)


def test_kernels_call_kernels_and_are_the_same_in_python():
    @compiled(nb.float64(nb.float64), numpy=lambda x: x + 1.0)
    def above(x):
        return x + 1.0

    outer_globals = {"above": above}
    exec("def twice(x):\n    return above(above(x))", outer_globals)
    twice = compiled(nb.float64(nb.float64))(outer_globals["twice"])
    assert twice(1.0) == twice.in_python(1.0) == 3.0


def test_an_inlined_function_is_part_of_the_kernels_that_call_it():
    known = len(KERNELS)
    outer = {"shifted": inlined(lambda x, by: x + by if by > 0.0 else x)}
    exec("def twice(x):\n    return shifted(shifted(x, 1.0), -1.0)", outer)
    twice = compiled(nb.float64(nb.float64))(outer["twice"])
    assert twice(1.0) == twice.in_python(1.0) == 2.0
    assert len(KERNELS) == known + 1
    other = {"shifted": inlined(lambda x, by: x - by)}
    exec("def twice(x):\n    return shifted(shifted(x, 1.0), -1.0)", other)
    assert twice.content != compiled(nb.float64(nb.float64))(other["twice"]).content


def test_a_kernel_of_several_types_compiles_the_one_it_is_called_with():
    types = [nb.float64(nb.types.Array(kind, 1, "C", readonly=True)) for kind in (nb.float64, nb.float32)]

    @compiled(types)
    def first(x):
        return x[0] + 0.0

    assert first(np.array([2.5], dtype=np.float32)) == 2.5
    assert len(first._of_types) == 1
    assert first(np.array([0.1])) == 0.1
    assert len(first._of_types) == 2
    with pytest.raises(TypeError, match="takes arrays of int64"):
        first(np.array([1]))


# Code that is kept: by content, whole, of one process or of many, and never the death of one.


FEW = """
import json, sys
import numpy as np
from formulations.sorting import sort_pairs
from formulations.sorting import sort_falling
from formulations.argmax.layout import find_cones
from formulations.problems.ranking_duals import settle_prices
from rankopt.losses.segment_ops import table_size

def select():
    values = np.array([3.0, 1.0, 2.0, 5.0])
    sort_pairs(values, np.arange(4, dtype=np.int32), np.empty(4), np.empty(4, np.int32))
    return values[1]
def sort():
    order = np.arange(5)
    sort_falling(order, np.array([2.0, 7.0, 1.0, 7.0, 3.0]), np.empty(5, np.int64))
    return order.tolist()
def cones():
    low, high = np.zeros(4, np.int32), np.zeros(4, np.int32)
    return find_cones(np.array([3.0, 2.0, 1.0, 0.0]), np.array([4.0, 2.0, 1.0, 0.0]), low, high), low.tolist()
def prices():
    found = np.empty(3)
    settle_prices(np.array([2.0, 1.0, 0.0]), np.zeros(3), np.ones(3), np.array([2.0, 1.0, 0.0]), found)
    return found.tolist()
def slots(): return table_size(9)

ALL = {"select": select, "sort": sort, "cones": cones, "prices": prices, "slots": slots}
print(json.dumps({name: ALL[name]() for name in sys.argv[1:]}))
"""
"""A script that calls the kernels named by its arguments, in that order."""

RIGHT = {
    "select": 3.0,
    "sort": [1, 3, 4, 0, 2],
    "cones": [3, [0, 2, 2, 0]],
    "prices": [1.0, 0.0, 0.0],
    "slots": 32,
}


def script(*names, cache, source=FEW):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-X", "faulthandler", "-c", source, *names]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def answer(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return json.loads(out)


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """One empty cache, filled by four processes at once, each in an order of its own."""
    cache = tmp_path_factory.mktemp("cache")
    names = list(RIGHT)
    orders = [names, names[::-1], names[2:] + names[:2], names[3:] + names[:3]]
    for process in [script(*order, cache=cache) for order in orders]:
        assert answer(process).keys() == RIGHT.keys()
    return cache


@pytest.mark.study
def test_four_processes_fill_one_cache_and_others_use_it_in_every_order(crowded):
    for first, second in combinations(("select", "sort", "prices"), 2):
        for order in ((first, second), (second, first)):
            assert answer(script(*order, cache=crowded)) == {name: RIGHT[name] for name in order}
    assert answer(script(*RIGHT, cache=crowded)) == RIGHT


VERSIONED = re.compile(rb"_ZN[0-9A-Za-z_$.]*?B\d+v(\d+)B")
"""Numba's name of a function: it ends with a number that tells functions of one name apart."""


def numbers_of(folder):
    return {int(number) for file in folder.rglob("*.nbc") for number in VERSIONED.findall(file.read_bytes())}


@pytest.mark.study
def test_names_in_the_code_of_two_processes_are_never_the_same(tmp_path):
    """Where they were, one was taken for the other, and that was the end of the process."""
    caches = [tmp_path / "one", tmp_path / "other"]
    for cache in caches:
        answer(script("sort", "select", cache=cache))
    one, other = map(numbers_of, caches)
    assert one
    assert other
    assert not one & other


def test_names_in_the_code_of_a_fork_are_its_own():
    from numba.core.bytecode import FunctionIdentity

    if not hasattr(os, "fork"):
        pytest.skip("no fork on this system")
    before = next(FunctionIdentity._unique_ids)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, str(next(FunctionIdentity._unique_ids)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert abs(int(os.read(read, 100)) - before) > 1000
    assert next(FunctionIdentity._unique_ids) == before + 1


@pytest.mark.study
def test_a_file_that_was_cut_or_changed_is_compiled_again(tmp_path):
    assert answer(script("sort", cache=tmp_path))["sort"] == RIGHT["sort"]
    files = sorted(tmp_path.rglob("*.nbc"))
    assert files
    for change in (lambda kept: kept[: len(kept) // 2], lambda kept: kept[:-9] + b"\0" * 9, lambda kept: b""):
        for file in files:
            file.write_bytes(change(file.read_bytes()))
        assert answer(script("sort", cache=tmp_path))["sort"] == RIGHT["sort"]
        assert all(len(file.read_bytes()) > 1000 for file in files)


@pytest.mark.study
def test_kept_code_is_not_used_when_a_kernel_that_it_calls_has_changed(tmp_path):
    """Numba itself looks at the caller's file only; an upgrade that changes the callee alone would go unnoticed."""
    declare = "import numba as nb\nfrom formulations.compiled import compiled\n"
    caller = tmp_path / "caller.py"
    caller.write_text(
        declare + "from callee import inner, SCALE\n@compiled(nb.int64(nb.int64))\ndef outer(n):\n"
        "    return inner(n) * SCALE\n",
        encoding="utf-8",
    )

    def said(body, scale):
        text = declare + f"SCALE = {scale}\n@compiled(nb.int64(nb.int64))\ndef inner(n):\n    return n {body}\n"
        (tmp_path / "callee.py").write_text(text, encoding="utf-8")
        os.utime(tmp_path / "callee.py", (1e9, 1e9))
        script = (
            "from caller import outer; value = outer(20)\n"
            "hits = outer.code(outer.signatures[0]).stats.cache_hits; print(value, sum(hits.values()))"
        )
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
        run = subprocess.run(
            [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True, env=environment
        )
        return tuple(map(int, run.stdout.split()))

    assert said("+ 1", 1) == (21, 0)
    assert said("+ 1", 1) == (21, 1)
    assert said("+ 2", 1) == (22, 0)
    assert said("+ 2", 3) == (66, 0)
    assert said("+ 2", 3) == (66, 1)


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No folder but the system's temporary one can be written to."""
    monkeypatch.setattr(nb.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/none")
    monkeypatch.setattr(compiled_module, "__file__", "/dev/null/none.py")
    monkeypatch.setattr(compiled_module.tempfile, "gettempdir", lambda: str(tmp_path))
    compiled_module._find_folders.cache_clear()
    yield tmp_path
    compiled_module._find_folders.cache_clear()


def test_without_any_other_folder_code_is_kept_in_one_of_the_users_own(nowhere):
    found = compiled_module.folder()
    assert found is not None
    assert found.parent == nowhere
    assert found.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("trap", ["open to others", "a link", "a file"])
def test_a_folder_that_others_may_write_to_is_not_used(nowhere, trap):
    place = nowhere / f"rankopt-kernels-{os.getuid()}"
    if trap == "open to others":
        place.mkdir()
        place.chmod(0o777)
    elif trap == "a link":
        (nowhere / "elsewhere").mkdir()
        place.symlink_to(nowhere / "elsewhere")
    else:
        place.write_text("")
    assert compiled_module.folder() is None


def test_code_that_another_user_kept_is_read_where_it_cannot_be_written(nowhere, monkeypatch):
    """As in an image: root has compiled, and nobody runs."""
    shared = nowhere / "image"
    shared.mkdir()
    monkeypatch.setattr(nb.config, "CACHE_DIR", str(shared))
    (shared / "rankopt").mkdir()
    real = compiled_module.tempfile.TemporaryFile

    def refused(dir):
        if str(dir).startswith(str(shared)):
            raise PermissionError(dir)
        return real(dir=dir)

    monkeypatch.setattr(compiled_module.tempfile, "TemporaryFile", refused)
    own = nowhere / f"rankopt-kernels-{os.getuid()}"
    assert compiled_module.folder() == own
    assert compiled_module.readable() == (shared / "rankopt", own)


def test_where_nothing_can_be_kept_kernels_are_compiled_all_the_same(monkeypatch, caplog):
    monkeypatch.setattr("formulations.compiled._find_folders", lambda named: (None, ()))
    compiled_module._report_compiling.cache_clear()

    @compiled(nb.float64(READ_FLOATS, FLOATS))
    def total(x, y):
        return x[0] + y[0]

    with caplog.at_level("INFO", logger="formulations.compiled"):
        assert total(np.array([1.0]), np.array([2.0])) == 3.0
    assert "set NUMBA_CACHE_DIR" in caplog.text


@pytest.mark.study
def test_one_line_says_that_code_is_compiled_and_none_that_it_is_loaded(tmp_path):
    source = "import logging; logging.basicConfig(level=logging.INFO)\n" + FEW
    for said in (1, 0):
        process = script("select", cache=tmp_path, source=source)
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0
        assert err.count("compiling, once per machine") == said


# Jobs cut into parts: every part once, whoever computes it; errors arrive, and a job inside a job ends.


@pytest.mark.parametrize("limit", [1, 2, 5])
@pytest.mark.parametrize("parts", [0, 1, 2, 3, 1000])
def test_every_part_is_computed_once(limit, parts):
    seen = []
    with at_most(limit):
        assert threads() == limit
        share(parts, seen.append)
    assert sorted(seen) == list(range(parts))


def test_parts_are_computed_side_by_side():
    """Two parts that wait for one another end only if two threads compute them."""
    meeting = threading.Barrier(2, timeout=20)
    with at_most(2):
        share(2, lambda part: meeting.wait())


@pytest.mark.parametrize("bad", [0, 1, 7])
def test_an_error_is_raised_and_nothing_hangs(bad):
    def compute(part):
        if part == bad:
            raise ZeroDivisionError(part)

    with at_most(3), pytest.raises(ZeroDivisionError):
        share(8, compute)


def test_a_job_inside_a_job_ends():
    seen = []
    with at_most(3):
        share(6, lambda part: share(6, lambda inner: seen.append((part, inner))))
    assert sorted(seen) == [(part, inner) for part in range(6) for inner in range(6)]


def test_a_limit_ends_with_its_block():
    before = threads()
    with at_most(1):
        assert threads() == 1
        with at_most(None):
            assert threads() == before
    assert threads() == before
