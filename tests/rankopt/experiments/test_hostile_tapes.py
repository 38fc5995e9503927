"""Tapes of others: a damaged or hostile file is a DataError of one line, and never makes a solver look wrong."""

import io
import json
import zipfile

import numpy as np
import pytest

from formulations import RankingSet, constrained_ranking, ranking, solve
from formulations.testing.instances import FORMS, instances
from rankopt.errors import DataError
from rankopt.experiments import Outcome, ProblemTrace, SolverSwap
from rankopt.experiments.replay import blank_rows


def saved(tape, path):
    tape.save(path)
    with np.load(path) as file:
        parts = {name: file[name] for name in file.files}
    return json.loads(parts.pop("meta").tobytes()), parts


def written(path, meta, parts):
    np.savez(path, meta=np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8), **parts)


@pytest.fixture(scope="module")
def every(tmp_path_factory):
    """A tape of one problem of every form: its JSON and its arrays."""
    folder = tmp_path_factory.mktemp("tapes")
    forms = [next(iter(instances(form)))[1] for form in FORMS]
    blocks = RankingSet(4, 2).at_most(1, by=["a", "a", "b", None]).forbid([0], positions=[1])
    forms += [constrained_ranking(np.arange(8.0).reshape(2, 4), blocks)]
    return saved(ProblemTrace.from_problems(forms), folder / "good.npz")


def read(path):
    """The tape; None where it is refused, in one line."""
    said = ""
    try:
        return ProblemTrace.load(path)
    except DataError as error:
        said = str(error)
    assert 0 < len(said) < 600
    assert "\n" not in said
    return None


def spoilt(value, rng):
    """Something else in place of a part of a JSON."""
    odd = [None, -1, 0, 1, 2**70, 1e308, "", "x", "\u202e", [], {}, True, {"array": -1}, {"array": 10**9},
           {"record": 0}, {"tuple": [0]}, {"csr": [0, 0, 0], "shape": [1, 1]}, [[]], "../x", float("nan")]  # fmt: skip
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = list(value)[rng.integers(len(value))]
        if rng.random() < 0.1:
            return {name: part for name, part in value.items() if name != key}
        return {**value, key: spoilt(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.95:
        place = int(rng.integers(len(value)))
        if rng.random() < 0.1:
            return value[:place] + value[place + 1 :]
        return [*value[:place], spoilt(value[place], rng), *value[place + 1 :]]
    return odd[rng.integers(len(odd))]


def spoilt_array(array, rng):
    kinds = ("entry", "shape", "type", "short", "flip")
    kind = kinds[rng.integers(len(kinds))]
    if kind == "shape" or not array.size:
        return array.reshape(-1, 1) if rng.random() < 0.5 else array.ravel()
    if kind == "type":
        return array.astype([np.int8, np.float32, np.bool_, np.uint64][rng.integers(4)])
    if kind == "short":
        return array[:-1]
    changed = array.copy()
    odd = [-1, 2**30, 0, 7] if array.dtype.kind in "biu" else [np.nan, np.inf, -1e200, -1.0, 0.5, 1e18]
    changed.flat[rng.integers(array.size)] = np.array(odd[rng.integers(len(odd))]).astype(array.dtype)
    return changed


@pytest.mark.study
@pytest.mark.filterwarnings("ignore")
def test_whatever_is_changed_a_tape_is_read_or_refused_in_one_line(every, tmp_path):
    meta, parts = every
    rng = np.random.default_rng(0)
    refused = 0
    for attempt in range(160):
        changed, arrays = meta, dict(parts)
        if attempt % 2:
            changed = spoilt(meta, rng)
        else:
            name = list(parts)[rng.integers(len(parts))]
            arrays[name] = spoilt_array(parts[name], rng)
        written(tmp_path / "bad.npz", changed, arrays)
        tape = read(tmp_path / "bad.npz")
        if tape is None:
            refused += 1
            continue
        rows = blank_rows(tape, "exact", 1e-6, 0, {})
        assert all(isinstance(row.shape_text, str) and np.isfinite(row.scale) for row in rows)
    assert 80 < refused < 160


def test_damaged_bytes_are_refused(every, tmp_path):
    written(tmp_path / "good.npz", *every)
    good = (tmp_path / "good.npz").read_bytes()
    rng = np.random.default_rng(1)
    for _ in range(60):
        bad = bytearray(good[: rng.integers(1, len(good))] if rng.random() < 0.3 else good)
        for place in rng.integers(0, len(bad), 3):
            bad[place] ^= 1 << rng.integers(8)
        (tmp_path / "bad.npz").write_bytes(bytes(bad))
        read(tmp_path / "bad.npz")


def test_an_array_is_as_large_as_its_header_says(every, tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)})
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w") as file:
        file.writestr("meta.npy", header.getvalue())
    with pytest.raises(DataError, match="of another size"):
        ProblemTrace.load(tmp_path / "bomb.npz")
    with zipfile.ZipFile(tmp_path / "text.npz", "w", zipfile.ZIP_DEFLATED) as file:
        plain = io.BytesIO()
        np.save(plain, np.frombuffer(b"[" * 10**6, dtype=np.uint8))
        file.writestr("meta.npy", plain.getvalue())
    with pytest.raises(DataError, match="RecursionError"):
        ProblemTrace.load(tmp_path / "text.npz")


def test_objects_are_never_unpickled(tmp_path):
    np.savez(tmp_path / "objects.npz", meta=np.array([{}], dtype=object))
    with pytest.raises(DataError, match="no array of numbers"):
        ProblemTrace.load(tmp_path / "objects.npz")


@pytest.mark.study
def test_what_a_tape_claims_to_be_attained_makes_nobody_wrong(tmp_path):
    problem = ranking([0.5, 0.2, 0.1], [3.0, 0.0, 1.0], discount=[1.0, 0.6], position_weights=[2.0, 1.0])
    tape = ProblemTrace.from_problems([problem])
    meta, parts = saved(tape, tmp_path / "lie.npz")
    written(tmp_path / "lie.npz", meta, {**parts, "known": np.array([[99.0, 99.0]])})
    lie = ProblemTrace.load(tmp_path / "lie.npz")
    assert lie.name == tape.name
    rows = SolverSwap(lie, argmax_solvers=("highs", "cp_sat"), repeats=1).run()
    assert {row.status for row in rows} == {Outcome.SOLVED}
    assert lie.reevaluate().problems[0].known == (solve(problem).value, solve(problem).bound)


@pytest.mark.study
def test_a_tape_may_not_name_a_file_elsewhere(every, tmp_path):
    meta, parts = every
    written(tmp_path / "named.npz", {**meta, "label": "../../argmax"}, parts)
    folder = tmp_path / "here"
    folder.mkdir()
    tape = ProblemTrace.load(tmp_path / "named.npz")
    list(SolverSwap(tape, argmax_solvers=("networkx",), repeats=1).rows(folder / "rows.jsonl"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here", "named.npz"]
    assert all(path.parent == folder / "rows.tapes" for path in folder.rglob("*.npz"))
