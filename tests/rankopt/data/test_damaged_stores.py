"""A stored folder is not trusted: damaged in any way it is refused by an error that names the file and the cure, or it
holds what it held."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from planted.damaged_stores import DAMAGE, SIGNED, content, limited, made, run, sign, tried
from planted.damaged_stores import nothing as undamaged

from rankopt.cli import rankopt
from rankopt.data import Queries, open_stored, store, verify_stored, write_svmlight
from rankopt.data import stored_folder as stored
from rankopt.errors import DataError
from rankopt.rankers import LargeMarginRanker, RegressionRanker


@pytest.fixture
def folder(tmp_path):
    store(made(), tmp_path / "dense")
    return tmp_path / "dense"


@pytest.fixture
def sparse(tmp_path):
    store(made(1, sparse=True), tmp_path / "sparse")
    return tmp_path / "sparse"


def unsigned(path):
    """The folder as an earlier version wrote it."""
    (path / "B2SUMS").unlink(missing_ok=True)
    return path


def say(path, **fields):
    said = json.loads((path / "queries.json").read_text(encoding="utf-8"))
    (path / "queries.json").write_text(json.dumps({**said, **fields}), encoding="utf-8")


def test_damaged_folders_are_refused_by_name_or_hold_what_they_held(tmp_path):
    """The long run of this is benchmarks/faults/stores.py."""
    counts, faults = run(tmp_path, 2 * len(DAMAGE) * len(SIGNED), seed=7)
    assert faults == []
    assert counts["refused"] > 60
    assert counts["opened"] > 10


@pytest.mark.parametrize("how", SIGNED)
def test_a_whole_folder_is_opened(folder, tmp_path, how):
    assert tried(folder, tmp_path / "copy", undamaged, how, 0) == "opened"


def reversed_order(path):
    np.save(path / "row_order.npy", np.load(path / "row_order.npy")[::-1])


def shifted_offsets(path):
    offsets = np.load(path / "offsets.npy")
    offsets[1:-1] += 1 if np.diff(offsets)[-1] > 1 else -1
    np.save(path / "offsets.npy", offsets)


def flipped_bit(path):
    data = bytearray((path / "features").read_bytes())
    data[20] ^= 1
    (path / "features").write_bytes(data)


def other_grade(path):
    grades = np.load(path / "relevance.npy")
    np.save(path / "relevance.npy", 2 - grades)


def other_name(path):
    text = (path / "queries.json").read_text(encoding="utf-8")
    (path / "queries.json").write_text(text.replace('"d3"', '"d9"'), encoding="utf-8")


SILENT = {
    reversed_order: "row_order.npy",
    shifted_offsets: "offsets.npy",
    flipped_bit: "features",
    other_grade: "relevance.npy",
    other_name: "queries.json",
}
"""What keeps every kind and shape: told by the digest alone."""


@pytest.mark.parametrize("damage", SILENT)
def test_what_keeps_its_shape_is_told_by_its_digest(folder, damage):
    damage(folder)
    for opening in (open_stored, verify_stored):
        with pytest.raises(DataError, match=rf"/{SILENT[damage]} cannot be used because .* not that of its digest"):
            opening(folder)
    assert content(open_stored(unsigned(folder))) != content(made())


def set_columns(value):
    def damage(path):
        columns = np.fromfile(path / "columns", dtype=np.int64)
        columns[3] = value
        columns.tofile(path / "columns")

    return damage


def falling_columns(path):
    columns, bounds = np.fromfile(path / "columns", dtype=np.int64), np.fromfile(path / "bounds", dtype=np.int64)
    low = bounds[np.flatnonzero(np.diff(bounds) > 1)[0]]
    columns[low : low + 2] = columns[low : low + 2][::-1].copy()
    columns.tofile(path / "columns")


def falling_bounds(path):
    bounds = np.fromfile(path / "bounds", dtype=np.int64)
    bounds[2] = bounds[-1]
    bounds.tofile(path / "bounds")


def of_dtype(kind):
    return lambda path: say(path, dtype=kind)


def of_count(**fields):
    def damage(path):
        text = (path / "queries.json").read_text(encoding="utf-8")
        for name, value in fields.items():
            before = json.dumps(json.loads(text)[name])
            text = text.replace(f'"{name}": {before}', f'"{name}": {value}')
        (path / "queries.json").write_text(text, encoding="utf-8")

    return damage


def header(name, **fields):
    """Another header for an npy file; its entries stay."""

    def damage(path):
        data = (path / name).read_bytes()
        size = int.from_bytes(data[8:10], "little")
        said = {"descr": "<i8", "fortran_order": False, "shape": (1,)} | fields
        text = (repr(said)[:-1] + ", }").encode().ljust(117) + b"\n"
        (path / name).write_bytes(data[:8] + len(text).to_bytes(2, "little") + text + data[10 + size :])

    return damage


def as_fifo(name):
    def damage(path):
        (path / name).unlink(missing_ok=True)
        os.mkfifo(path / name)

    return damage


def as_device(name):
    def damage(path):
        (path / name).unlink(missing_ok=True)
        (path / name).symlink_to("/dev/zero")

    return damage


SHAPES = {
    "dtype of pointers": (of_dtype("O"), "queries.json", "dtype is 'O'"),
    "dtype of the same size": (of_dtype("<i8"), "queries.json", "dtype is '<i8'"),
    "no dtype": (of_dtype(None), "queries.json", "dtype is 'None'"),
    "a column out of range": (set_columns(1 << 28), "columns", "others than 5 features"),
    "a column too many": (set_columns(5), "columns", "others than 5 features"),
    "a negative column": (set_columns(-1), "columns", "others than 5 features"),
    "columns that fall": (falling_columns, "columns", "do not rise within each row"),
    "bounds that fall": (falling_bounds, "bounds", "do not rise"),
    "infinitely many documents": (of_count(documents="1e400"), "queries.json", "documents = inf is no count"),
    "documents that are no number": (of_count(documents="NaN"), "queries.json", "documents = nan is no count"),
    "more documents than memory": (of_count(documents=10**18), "queries.json", "instead of 1000000000000000000"),
    "infinitely many features": (of_count(features="Infinity"), "queries.json", "features = inf is no count"),
    "infinitely many entries": (of_count(entries="1e999"), "queries.json", "entries = inf is no count"),
    "a negative count": (of_count(entries=-8), "queries.json", "entries = -8 is no count"),
    "a header of a huge shape": (header("offsets.npy", shape=(10**18,)), "offsets.npy", "1000000000000000000 entries"),
    "a header of many axes": (header("row_order.npy", shape=(1,) * 30), "row_order.npy", "no npy file of a vector"),
    "a header of pointers": (header("relevance.npy", descr="|O"), "relevance.npy", "no npy file of a vector"),
    "a header that computes": (header("relevance.npy", descr=[("a", "|O")]), "relevance.npy", "no npy file"),
    "rows of another type": (header("row_order.npy", descr="<f8", shape=(23,)), "row_order.npy", "are float64, not"),
    "manifest as FIFO": (as_fifo("queries.json"), "queries.json", "no regular file"),
    "features as FIFO": (as_fifo("features"), "features", "no regular file"),
    "offsets as FIFO": (as_fifo("offsets.npy"), "offsets.npy", "no regular file"),
    "digests as FIFO": (as_fifo("B2SUMS"), "B2SUMS", "no regular file"),
    "features as device": (as_device("features"), "features", "no regular file"),
    "manifest as device": (as_device("queries.json"), "queries.json", "no regular file"),
    "attribute as device": (as_device("attributes/0.npy"), "attributes/0.npy", "no regular file"),
}


@pytest.mark.parametrize("case", SHAPES)
def test_kinds_shapes_and_indices_are_checked_without_digests_too(sparse, case):
    damage, file, says = SHAPES[case]
    damage(unsigned(sparse))
    with limited(10), pytest.raises(DataError) as refused:
        open_stored(sparse)
    told = str(refused.value)
    assert told.startswith(f"{sparse / file} cannot be used because")
    assert says in told
    assert "store its data again" in told


KILLED = ["dtype of pointers", "a column out of range", "a negative column", "bounds that fall"]

SCRIPT = """
import sys
from rankopt.data import open_stored
from rankopt.errors import DataError
from rankopt.rankers import RegressionRanker
for folder in sys.argv[1:]:
    try:
        RegressionRanker().fit(open_stored(folder))
        print("opened", flush=True)
    except DataError as error:
        print("refused", flush=True)
"""


@pytest.mark.study
def test_what_used_to_kill_the_process_is_refused(sparse, folder, tmp_path):
    copies = []
    for case in KILLED:
        for original in (sparse, folder):
            if (original / "columns").exists() or case.startswith("dtype"):
                copies.append(tmp_path / f"{original.name} {case}")
                shutil.copytree(original, copies[-1])
                SHAPES[case][0](copies[-1])
                sign(copies[-1])
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", SCRIPT, *map(str, copies)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["refused"] * len(copies)


def test_folders_of_earlier_versions_open_and_have_nothing_to_verify(folder):
    unsigned(folder)
    assert content(open_stored(folder)) == content(made())
    with pytest.raises(DataError, match="opens, but cannot be verified because it has no digests"):
        verify_stored(folder)


def test_large_features_are_not_read_on_opening_but_verified_and_checked_before_use(folder, monkeypatch):
    table = np.fromfile(folder / "features")
    table[7] = np.nan
    table.tofile(folder / "features")
    with pytest.raises(DataError, match="/features cannot be used"):
        open_stored(folder)
    monkeypatch.setattr(stored, "CHEAP", 8)
    opened = open_stored(folder)  # had it been read, it would not be open
    with pytest.raises(DataError, match="/features cannot be used"):
        verify_stored(folder)
    ranker = RegressionRanker().fit(made())
    named = opened.with_(query_ids=tuple("abcdef"))
    for asked in (
        lambda: LargeMarginRanker().fit(opened),
        lambda: ranker.predict(opened),
        lambda: ranker.rank(named),
        lambda: ranker.score(opened),
        lambda: store(opened, folder.with_name("again")),
        lambda: write_svmlight(opened, folder.with_name("again.txt")),
        lambda: opened.select(slice(None)),
    ):
        with pytest.raises(DataError, match=r"feature column 2 .* is nan"):
            asked()
    assert [path.name for path in folder.parent.iterdir()] == ["dense"]


def test_queries_that_were_looked_at_are_not_looked_at_again(folder, monkeypatch):
    monkeypatch.setattr(stored, "CHEAP", 8)
    opened = open_stored(folder)
    ranker, whole = RegressionRanker().fit(opened), made()
    monkeypatch.setattr("rankopt.data.queries.first_wrong_value", lambda features, *_: None if features is None else 1)
    ranker.predict(opened)
    whole.with_(document_ids=None)
    opened.with_(document_ids=None).with_(attributes={})


@pytest.mark.skipif(shutil.which("b2sum") is None, reason="the tool `b2sum` is not installed")
def test_the_digests_are_those_of_b2sum(sparse):
    done = subprocess.run(["b2sum", "-c", "--strict", "B2SUMS"], cwd=sparse, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(verify_stored(sparse)) == 9


def test_verify_as_a_command(folder, sparse, capsys):
    def asked(*arguments):
        return CliRunner().invoke(rankopt, ["store", *map(str, arguments)])

    run = asked("--verify", folder, sparse)
    assert run.exit_code == 0
    assert run.output.splitlines() == [
        f"{folder}: 7 files are as they were written", f"{sparse}: 9 files are as they were written"
    ]  # fmt: skip
    assert list(json.loads(asked("--verify", folder, "--json").output)["verified"]) == [str(folder)]
    for arguments, says in (
        ((folder, "--verify", "--output", "x"), "writes nothing; leave out --output"),
        ((folder, "--verify", "--sparse", "--features", 3), "leave out --features, --sparse"),
        ((folder,), "Missing option '--output'"),
        ((folder, "--output", "x"), "is a directory; --verify checks"),
    ):
        run = asked(*arguments)
        assert run.exit_code == 2
        assert says in run.output
    flipped_bit(folder)
    run = asked("--verify", folder)
    assert isinstance(run.exception, DataError)
    assert "features cannot be used" in str(run.exception)


def test_every_attribute_that_can_be_stored_comes_back_and_others_are_refused(tmp_path):
    n = made().n_documents
    kept = {
        "long words": np.array(["x" * 5000] * n),
        "bytes": np.array([b"ab"] * n),
        "days": np.array(["2020-01-01"] * n, dtype="M8[D]"),
        "spans": np.arange(n).astype("m8[25s]"),
        "flags": np.arange(n) % 2 == 0,
        "small": np.arange(n, dtype=np.uint8),
        "swapped": np.arange(n, dtype=">i4"),
        "complex": np.arange(n) * 1j,
        "missing": np.array([None, float("nan")] * n, dtype=object)[:n],
    }
    store(made().with_(attributes=kept), tmp_path / "kept")
    opened = open_stored(tmp_path / "kept").attributes
    for name, values in kept.items():
        assert repr(opened[name].tolist()) == repr(values.tolist())
        assert opened[name].dtype == values.dtype.newbyteorder("=")
    for name, values in (
        ("structured", np.zeros(n, dtype=[("a", "f8")])),
        ("void", np.zeros(n, dtype="V3")),
        ("objects", np.array([object()] * n)),
        ("half a character", np.array(["\ud800"] * n, dtype=object)),
    ):
        with pytest.raises(DataError, match="cannot be"):
            store(made().with_(attributes={name: values}), tmp_path / "refused")
    assert not (tmp_path / "refused").exists()


def test_a_manifest_may_name_everything_that_ids_can_be(tmp_path):
    queries = Queries.from_arrays(np.eye(3), [0, 1, 2], qid=["a", 10**30, "\u2028\x00"], documents=[None, -1, "é"])
    store(queries, tmp_path / "stored")
    assert content(open_stored(tmp_path / "stored")) == content(queries)


def test_the_room_of_a_store_holds_nothing_but_its_files(sparse):
    names = sorted(path.relative_to(sparse).as_posix() for path in Path(sparse).rglob("*") if path.is_file())
    assert names == sorted(["B2SUMS", *verify_stored(sparse)])
