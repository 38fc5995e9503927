"""Stored queries: opened as they were stored, read in blocks as a whole, and refused by name when damaged."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from planted.damaged_stores import DAMAGE, SIGNED, content, limited, made, run, said, say, sign, signed, tried
from planted.damaged_stores import nothing as undamaged
from scipy.sparse import csr_array

from rankopt.cli import rankopt
from rankopt.data import (
    Queries,
    concatenate,
    open_queries,
    read_svmlight,
    read_svmlight_blocks,
    save_queries,
    stored_folder,
    verify_queries,
    write_svmlight,
)
from rankopt.data.stored_folder import CHECKSUM
from rankopt.errors import DataError
from rankopt.rankers import LargeMarginRanker, RegressionRanker


def drawn(seed=0, queries=9, features=5, dtype=np.float64, sparse=False, first=0):
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 12, queries)
    table = random.normal(size=(sizes.sum(), features)).astype(dtype) * (random.random((sizes.sum(), features)) < 0.6)
    tags = np.empty(sizes.sum(), dtype=object)
    tags[:] = [("a", "b") if i % 3 else "c" for i in range(sizes.sum())]
    return Queries.from_arrays(
        csr_array(table) if sparse else table,
        random.integers(0, 3, sizes.sum()),
        qid=random.permutation(np.repeat(np.arange(first, first + queries), sizes)),
        documents=[f"d{first}-{i}" for i in range(sizes.sum())],
        attributes={"price": random.random(sizes.sum()), "tags": tags},
        feature_names=[f"f{j}" for j in range(features)],
    )


def same(one, other):
    assert one.features.dtype == other.features.dtype
    dense = [part.features.toarray() if hasattr(part.features, "toarray") else part.features for part in (one, other)]
    np.testing.assert_array_equal(*dense)
    for name in ("rows", "offsets", "relevance"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.query_ids, one.document_ids, one.feature_names) == (
        other.query_ids,
        other.document_ids,
        other.feature_names,
    )
    assert list(one.attributes) == list(other.attributes)
    for name, values in one.attributes.items():
        assert values.tolist() == other.attributes[name].tolist()


def is_mapped(array):
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_is_opened_is_what_was_stored(tmp_path, dtype, sparse):
    queries = drawn(dtype=dtype, sparse=sparse)
    save_queries(queries, tmp_path / "stored")
    opened = open_queries(tmp_path / "stored")
    same(opened, queries)
    assert is_mapped(opened.features.data if sparse else opened.features)


@pytest.mark.parametrize("sparse", [False, True])
def test_parts_are_stored_one_after_the_other(tmp_path, sparse):
    parts = [drawn(seed, first=100 * seed, sparse=sparse) for seed in range(3)]
    save_queries(iter(parts), tmp_path / "stored")
    same(open_queries(tmp_path / "stored"), concatenate(parts))


@pytest.mark.parametrize("sparse", [False, True])
def test_training_on_mapped_data_gives_the_same_bits(tmp_path, sparse):
    queries = drawn(3, queries=25, sparse=sparse)
    save_queries(queries, tmp_path / "stored")
    here = LargeMarginRanker("nDCG@3", lam=0.1).fit(queries)
    there = LargeMarginRanker("nDCG@3", lam=0.1).fit(open_queries(tmp_path / "stored"))
    np.testing.assert_array_equal(here.coef_, there.coef_)
    assert here.certificate_ == there.certificate_


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize("block", [1, 50, 1000, 1 << 20])
def test_a_file_read_in_blocks_is_the_file_read_whole(tmp_path, block, pack):
    path = tmp_path / "data.txt"
    write_svmlight(drawn(1, queries=12).replace(attributes={}), path)
    if pack:
        path.write_bytes(gzip.compress(path.read_bytes()))
    blocks = list(read_svmlight_blocks(path, block=block))
    assert len(blocks) > 1 or block > 1000
    same(concatenate(blocks), read_svmlight(path, sparse=False))


def test_an_error_in_a_later_block_names_its_line(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("1 qid:1 1:0.5\n0 qid:1 1:2\n1 qid:2 1:1\n0 qid:3 1:1\n1 qid:3 1:nan\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 5: feature 1 is 'nan'"):
        list(read_svmlight_blocks(path, block=10))
    path.write_text("1 qid:1 1:0.5\n0 qid:2 1:2 2:3\n0 qid:3 1:1\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"data\.txt, line 2: feature 2 but the first block has 1; pass n_features=2"):
        list(read_svmlight_blocks(path, block=10))
    path.write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="empty"):
        list(read_svmlight_blocks(path))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (lambda: [drawn(0), drawn(1)], "in two parts"),
        (lambda: [drawn(0), drawn(1, first=50, dtype=np.float32)], "type of its features"),
        (lambda: [drawn(0), drawn(1, first=50, features=4)], "in features"),
        (lambda: [drawn(0), drawn(1, first=50).replace(relevance=None)], "having grades"),
        (lambda: [drawn(0).replace(query_ids=tuple((q, 1) for q in range(9)))], "neither a number nor a string"),
        (lambda: [], "no queries"),
    ],
)
def test_what_cannot_be_stored_leaves_nothing_behind(tmp_path, parts, message):
    with pytest.raises(DataError, match=message):
        save_queries(parts(), tmp_path / "stored")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_never_overwritten(tmp_path):
    save_queries(drawn(), tmp_path / "stored")
    with pytest.raises(DataError, match="exists"):
        save_queries(drawn(), tmp_path / "stored")


def cut_short(folder):
    path = folder / "features.npy"
    path.write_bytes(path.read_bytes()[:-3])


def without_manifest(folder):
    (folder / "manifest.json").unlink()


def of_tomorrow(folder):
    say(folder, said(folder) | {"version": 3})


def without_width(folder):
    fields = said(folder)
    del fields["features"]
    say(folder, fields)


def emptied(folder):
    (folder / "offsets.npy").write_bytes(b"")


def not_finite(folder):
    table = np.load(folder / "features.npy")
    table[1, 2] = np.inf
    np.save(folder / "features.npy", table)
    sign(folder)


@pytest.mark.parametrize("damage", [cut_short, without_manifest, of_tomorrow, without_width, emptied, not_finite])
def test_a_damaged_folder_is_refused(tmp_path, damage):
    save_queries(drawn(), tmp_path / "stored")
    damage(tmp_path / "stored")
    with pytest.raises(DataError, match="stored"):
        open_queries(tmp_path / "stored")


def test_commands_take_a_stored_folder_where_they_take_a_file(tmp_path):
    path, folder = str(tmp_path / "data.txt"), str(tmp_path / "stored")
    write_svmlight(drawn(5, queries=20).replace(attributes={}), path)
    run = CliRunner().invoke(rankopt, ["convert", path, "--output", folder, "--float32"], catch_exceptions=False)
    assert "20 queries" in run.output
    assert open_queries(folder).features.dtype == np.float32
    model = str(tmp_path / "model.rankopt")
    for arguments in (
        ["train", folder, "--model", model, "--validate", folder, "--lam", "1"],
        ["predict", model, folder, "--output", str(tmp_path / "scores")],
        ["evaluate", folder, "--model", model],
        ["rank", model, folder, "--k", "2"],
    ):
        run = CliRunner().invoke(rankopt, arguments, catch_exceptions=False)
        assert run.exit_code == 0, run.output
    assert len(Path(tmp_path / "scores").read_text(encoding="utf-8").split()) == open_queries(folder).n_documents


@pytest.fixture
def folder(tmp_path):
    save_queries(made(), tmp_path / "dense")
    return tmp_path / "dense"


@pytest.fixture
def sparse(tmp_path):
    save_queries(made(1, sparse=True), tmp_path / "sparse")
    return tmp_path / "sparse"


def test_damaged_folders_are_refused_by_name_or_hold_what_they_held(tmp_path):
    """The long run of this is `python -m benchmarks faults stores`."""
    counts, faults = run(tmp_path, 3 * len(DAMAGE) * len(SIGNED), seed=7)
    assert faults == []
    assert counts["refused"] > 60
    assert counts["opened"] > 10


@pytest.mark.parametrize("how", SIGNED)
def test_a_whole_folder_is_opened(folder, tmp_path, how):
    assert tried(folder, tmp_path / "copy", undamaged, how, 0) == "opened"


def changed(name, change):
    """Damage that changes the numbers of an array in place."""

    def damage(path):
        array = np.load(path / name)
        change(array)
        np.save(path / name, array)

    return damage


def reverse(array):
    array[:] = array[::-1].copy()


def shift(offsets):
    offsets[1:-1] += 1 if np.diff(offsets)[-1] > 1 else -1


def other_grades(grades):
    grades[:] = 2 - grades


def flipped_bit(path):
    data = bytearray((path / "features.npy").read_bytes())
    data[150] ^= 1
    (path / "features.npy").write_bytes(data)


def other_name(path):
    text = (path / "manifest.json").read_text(encoding="utf-8")
    (path / "manifest.json").write_text(text.replace('"d3"', '"d9"'), encoding="utf-8")


SILENT = {
    "rows.npy": changed("rows.npy", reverse),
    "offsets.npy": changed("offsets.npy", shift),
    "features.npy": flipped_bit,
    "relevance.npy": changed("relevance.npy", other_grades),
    "manifest.json": other_name,
}
"""Damage that keeps types, shapes and ranges: found by the checksum alone."""


@pytest.mark.parametrize("name", SILENT)
def test_damage_that_keeps_every_shape_is_found_by_the_checksum(folder, name):
    SILENT[name](folder)
    for opening in (open_queries, verify_queries):
        with pytest.raises(
            DataError, match=rf"/{name} cannot be used because its (checksum differs|content does not match)"
        ):
            opening(folder)
    if name == "manifest.json":
        manifest = folder / name
        manifest.write_bytes(signed(CHECKSUM.sub(b"{", manifest.read_bytes())))
    sign(folder)
    assert content(open_queries(folder)) != content(made())


def set_columns(value):
    def change(columns):
        columns[3] = value

    return changed("columns.npy", change)


def falling_columns(path):
    columns, bounds = np.load(path / "columns.npy"), np.load(path / "bounds.npy")
    low = bounds[np.flatnonzero(np.diff(bounds) > 1)[0]]
    columns[low : low + 2] = columns[low : low + 2][::-1].copy()
    np.save(path / "columns.npy", columns)


def fall(bounds):
    bounds[2] = bounds[-1]


def other_type(name, kind):
    return lambda path: np.save(path / name, np.load(path / name).view(kind))


def field(**fields):
    return lambda path: say(path, said(path) | fields)


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
    "integers as features": (other_type("features.npy", np.int64), "features.npy", "int64, not float64 or float32"),
    "a column out of range": (set_columns(1 << 28), "columns.npy", "others than 5 features"),
    "a column too many": (set_columns(5), "columns.npy", "others than 5 features"),
    "a negative column": (set_columns(-1), "columns.npy", "others than 5 features"),
    "columns that fall": (falling_columns, "columns.npy", "do not rise within each row"),
    "bounds that fall": (changed("bounds.npy", fall), "bounds.npy", "do not rise"),
    "infinitely many features": (field(features=float("inf")), "manifest.json", "'features' is missing or cannot be"),
    "features that are no number": (field(features=float("nan")), "manifest.json", "'features' is missing or cannot"),
    "a negative count": (field(features=-8), "manifest.json", "'features' is missing or cannot be -8"),
    "no features": (field(features=None), "manifest.json", "'features' is missing or cannot be None"),
    "a query twice": (field(query_ids=[1, 1]), "manifest.json", "'query_ids' is missing or cannot be"),
    "an attribute of pairs": (field(attributes=[["a", [[[1]]]]]), "manifest.json", "'attributes' is missing or cannot"),
    "a header of a huge shape": (header("offsets.npy", shape=(10**18,)), "offsets.npy", "not a plain npy file"),
    "a header of a longer shape": (header("offsets.npy", shape=(3,)), "offsets.npy", "does not fill"),
    "a header of many axes": (header("rows.npy", shape=(1,) * 30), "rows.npy", "does not fill"),
    "a header of pointers": (header("relevance.npy", descr="|O"), "relevance.npy", "not a plain npy file"),
    "a header that computes": (header("relevance.npy", descr=[("a", "|O")]), "relevance.npy", "not a plain npy file"),
    "rows of another type": (header("rows.npy", descr="<f8", shape=(23,)), "rows.npy", "are float64, not"),
    "manifest as FIFO": (as_fifo("manifest.json"), "manifest.json", "no regular file"),
    "features as FIFO": (as_fifo("features.npy"), "features.npy", "no regular file"),
    "manifest as device": (as_device("manifest.json"), "manifest.json", "no regular file"),
    "attribute as device": (as_device("attribute0.npy"), "attribute0.npy", "no regular file"),
}


@pytest.mark.parametrize("case", SHAPES)
def test_types_shapes_and_indices_are_checked_under_valid_checksums_too(sparse, case):
    damage, file, says = SHAPES[case]
    damage(sparse)
    if (sparse / "manifest.json").is_file():
        sign(sparse)
    with limited(10), pytest.raises(DataError) as refused:
        open_queries(sparse)
    told = str(refused.value)
    assert told.startswith(f"{sparse / file} cannot be used because")
    assert says in told
    assert "store its data again" in told


KILLED = ["a header of pointers", "a column out of range", "a negative column", "bounds that fall"]

SCRIPT = """
import sys
from rankopt.data import open_queries
from rankopt.errors import DataError
from rankopt.rankers import RegressionRanker
for folder in sys.argv[1:]:
    try:
        RegressionRanker().fit(open_queries(folder))
        print("opened", flush=True)
    except DataError as error:
        print("refused", flush=True)
"""


@pytest.mark.study
def test_what_used_to_kill_the_process_is_refused(sparse, folder, tmp_path):
    copies = []
    for case in KILLED:
        for original in (sparse, folder):
            if (original / "columns.npy").exists() or case.startswith("a header"):
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


def test_large_features_are_not_read_on_opening_but_verified_and_checked_before_use(folder, monkeypatch):
    def spoil(table):
        table[1, 2] = np.inf

    changed("features.npy", spoil)(folder)
    with pytest.raises(DataError, match=r"/features\.npy cannot be used"):
        open_queries(folder)
    monkeypatch.setattr(stored_folder, "CHEAP", 8)
    opened = open_queries(folder)  # had it been read, it would not be open
    with pytest.raises(DataError, match=r"/features\.npy cannot be used"):
        verify_queries(folder)
    ranker = RegressionRanker().fit(made())
    named = opened.replace(query_ids=tuple("abcdef"))
    for asked in (
        lambda: LargeMarginRanker().fit(opened),
        lambda: ranker.predict(opened),
        lambda: ranker.rank(named),
        lambda: ranker.score(opened),
        lambda: save_queries(opened, folder.with_name("again")),
        lambda: write_svmlight(opened, folder.with_name("again.txt")),
        lambda: opened.select(slice(None)),
    ):
        with pytest.raises(DataError, match=r"feature column 2 .* is inf"):
            asked()
    assert [path.name for path in folder.parent.iterdir()] == ["dense"]


def test_queries_that_were_looked_at_are_not_looked_at_again(folder, monkeypatch):
    monkeypatch.setattr(stored_folder, "CHEAP", 8)
    opened = open_queries(folder)
    ranker, whole = RegressionRanker().fit(opened), made()
    monkeypatch.setattr("rankopt.data.queries.first_wrong_value", lambda features, *_: None if features is None else 1)
    ranker.predict(opened)
    whole.replace(document_ids=None)
    opened.replace(document_ids=None).replace(attributes={})


def test_verify_as_a_command(folder, sparse, capsys):
    def asked(*arguments):
        return CliRunner().invoke(rankopt, ["convert", *map(str, arguments)])

    run = asked("--verify", folder, sparse)
    assert run.exit_code == 0
    assert run.output.splitlines() == [
        f"{folder}: 7 files are as they were written", f"{sparse}: 9 files are as they were written"
    ]  # fmt: skip
    assert list(json.loads(asked("--verify", folder, "--json").output)["verified"]) == [str(folder)]
    for arguments, says in (
        ((folder, "--verify", "--output", "x"), "writes nothing; leave out --output"),
        ((folder, "--verify", "--sparse", "--n-features", 3), "leave out --n-features, --sparse"),
        ((folder,), "Missing option '--output'"),
        ((folder, "--output", "x"), "is a directory; --verify checks"),
    ):
        run = asked(*arguments)
        assert run.exit_code == 2
        assert says in run.output
    flipped_bit(folder)
    run = asked("--verify", folder)
    assert isinstance(run.exception, DataError)
    assert "features.npy cannot be used" in str(run.exception)


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
    save_queries(made().replace(attributes=kept), tmp_path / "kept")
    opened = open_queries(tmp_path / "kept").attributes
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
            save_queries(made().replace(attributes={name: values}), tmp_path / "refused")
    assert not (tmp_path / "refused").exists()


def test_a_manifest_may_name_everything_that_ids_can_be(tmp_path):
    queries = Queries.from_arrays(np.eye(3), [0, 1, 2], qid=["a", 10**30, "\u2028\x00"], documents=[None, -1, "é"])
    save_queries(queries, tmp_path / "stored")
    assert content(open_queries(tmp_path / "stored")) == content(queries)


def test_a_stored_folder_holds_nothing_but_its_files(sparse):
    assert sorted(path.name for path in sparse.iterdir()) == sorted(verify_queries(sparse))
    assert len(verify_queries(sparse)) == 9


def test_lists_of_one_length_are_an_attribute(tmp_path):
    tags = np.empty(made().n_documents, dtype=object)
    tags[:] = [("a", "b") for _ in tags]
    save_queries(made().replace(attributes={"tags": tags}), tmp_path / "stored")
    assert open_queries(tmp_path / "stored").attributes["tags"].tolist() == tags.tolist()
