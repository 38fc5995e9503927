"""Traces of others: a damaged or hostile file is a DataError of one line, and never makes a solver look wrong."""

import io
import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from formulations import RankingSet, constrained_ranking, margin_dual, ranking, solve
from formulations.serialization import array_from_bytes, array_to_bytes, read_zip, write_zip
from formulations.testing.instances import FORMS, instances
from rankopt.errors import DataError
from rankopt.experiments import Outcome, ProblemTrace, SolverSwap
from rankopt.experiments.replay import blank_rows


def saved(trace, path):
    """The JSON and the arrays of the file of a trace."""
    trace.save(path)
    members = read_zip(path)
    manifest = json.loads(members.pop("trace.json"))
    return manifest, {name: array_from_bytes(content) for name, content in members.items()}


def written(path, manifest, parts):
    """A file with these parts and the right digests: what someone who knows the format can make."""
    arrays = {name: array_to_bytes(array) for name, array in parts.items()}
    write_zip(path, {"trace.json": json.dumps(manifest).encode(), **arrays})


@pytest.fixture(scope="module")
def every(tmp_path_factory):
    """A trace of one problem of every form: its JSON and its arrays."""
    folder = tmp_path_factory.mktemp("traces")
    forms = [next(iter(instances(form)))[1] for form in FORMS]
    blocks = RankingSet(4, 2).at_most(1, by=["a", "a", "b", None]).forbid([0], positions=[1])
    forms += [constrained_ranking(np.arange(8.0).reshape(2, 4), blocks)]
    return saved(ProblemTrace.from_problems(forms), folder / "good.npz")


def read(path):
    """The trace; None where it is refused, in one line."""
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
    odd = [None, -1, 0, 1, 2**70, 1e308, "", "x", "\u202e", [], {}, True, {"array": "arrays/0.npy"},
           {"array": "arrays/1000.npy"}, {"same": 0}, {"same": -1}, {"record": "RankingSet", "fields": {}},
           {"tuple": [0]}, {"csr": [0, 0, 0], "shape": [1, 1]}, [[]], "../x", float("nan"),
           {"csr": [{"array": "arrays/0.npy"}] * 3, "shape": [1, 1]}]  # fmt: skip
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
def test_whatever_is_changed_a_trace_is_read_or_refused_in_one_line(every, tmp_path):
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
        trace = read(tmp_path / "bad.npz")
        if trace is None:
            refused += 1
            continue
        rows = blank_rows(trace, "exact", 1e-6, 0, {})
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
    manifest, parts = every
    arrays = {name: array_to_bytes(array) for name, array in parts.items()}
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)})
    text = json.dumps(manifest).encode()
    write_zip(tmp_path / "bomb.npz", {"trace.json": text, **arrays, "arrays/0.npy": header.getvalue()})
    with pytest.raises(DataError, match="does not fill 0 bytes"):
        ProblemTrace.load(tmp_path / "bomb.npz")
    write_zip(tmp_path / "text.npz", {"trace.json": b"[" * 10**6})
    with pytest.raises(DataError, match=r"not its JSON .maximum recursion depth"):
        ProblemTrace.load(tmp_path / "text.npz")
    with zipfile.ZipFile(tmp_path / "packed.npz", "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in {"trace.json": text, "SHA256SUMS": b"", "arrays/0.npy": bytes(10**8)}.items():
            file.writestr(name, content)
    with pytest.raises(DataError, match="compressed or encrypted"):
        ProblemTrace.load(tmp_path / "packed.npz")


def test_arrays_that_are_missing_or_unknown_are_refused(every, tmp_path):
    manifest, parts = every
    for changed in (dict(list(parts.items())[1:]), {**parts, "arrays/1000.npy": np.zeros(1)}):
        written(tmp_path / "bad.npz", manifest, changed)
        with pytest.raises(DataError, match=r"is no value|nothing names"):
            ProblemTrace.load(tmp_path / "bad.npz")


def test_a_file_of_a_development_version_is_told_so(tmp_path):
    np.savez_compressed(tmp_path / "old.npz", meta=np.zeros(3, dtype=np.uint8), known=np.zeros((1, 2)))
    with pytest.raises(DataError, match=r"as in files of development versions.*record it again"):
        ProblemTrace.load(tmp_path / "old.npz")


def test_objects_are_never_unpickled(every, tmp_path):
    manifest, parts = every
    content = io.BytesIO()
    np.save(content, np.array([{}], dtype=object))
    arrays = {name: array_to_bytes(array) for name, array in parts.items()}
    write_zip(
        tmp_path / "bad.npz",
        {"trace.json": json.dumps(manifest).encode(), **arrays, "arrays/0.npy": content.getvalue()},
    )
    with pytest.raises(DataError, match="its type is object"):
        ProblemTrace.load(tmp_path / "bad.npz")


def test_derived_data_of_a_file_are_recomputed(tmp_path):
    """A Gram matrix and a ranking without its set are trusted by the constructors, for speed, but not in a file."""
    problem = margin_dual(np.eye(2), [1.0, 2.0], lam=1.0)
    known = replace(problem, known_gram=problem.slopes @ problem.slopes.T)
    manifest, parts = saved(ProblemTrace.from_problems([known]), tmp_path / "gram.npz")
    name = manifest["trace"]["fields"]["problems"]["tuple"][0]["fields"]["form"]["fields"]["known_gram"]["array"]
    assert ProblemTrace.load(tmp_path / "gram.npz").problems[0].form.known_gram is not None
    written(tmp_path / "gram.npz", manifest, {**parts, name: 2.0 * parts[name]})
    with pytest.raises(DataError, match="Gram matrix of other slopes"):
        ProblemTrace.load(tmp_path / "gram.npz")


@pytest.mark.study
def test_what_a_trace_claims_to_be_attained_makes_nobody_wrong(tmp_path):
    problem = ranking([0.5, 0.2, 0.1], [3.0, 0.0, 1.0], discount=[1.0, 0.6], position_weights=[2.0, 1.0])
    trace = ProblemTrace.from_problems([problem])
    manifest, parts = saved(trace, tmp_path / "lie.npz")
    manifest["trace"]["fields"]["problems"]["tuple"][0]["fields"]["known"] = {"tuple": [99.0, 99.0]}
    written(tmp_path / "lie.npz", manifest, parts)
    lie = ProblemTrace.load(tmp_path / "lie.npz")
    assert lie.name == trace.name
    rows = SolverSwap(lie, argmax_solvers=("highs", "cp_sat"), repeats=1).run()
    assert {row.status for row in rows} == {Outcome.SOLVED}
    assert lie.reevaluate().problems[0].known == (solve(problem).value, solve(problem).bound)


@pytest.mark.study
def test_a_trace_may_not_name_a_file_elsewhere(every, tmp_path):
    meta, parts = every
    fields = {**meta["trace"]["fields"], "label": "../../argmax"}
    written(tmp_path / "named.npz", {**meta, "trace": {**meta["trace"], "fields": fields}}, parts)
    folder = tmp_path / "here"
    folder.mkdir()
    trace = ProblemTrace.load(tmp_path / "named.npz")
    list(SolverSwap(trace, argmax_solvers=("networkx",), repeats=1).rows(folder / "rows.jsonl"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here", "named.npz"]
    assert all(path.parent == folder / "rows.traces" for path in folder.rglob("*.npz"))
