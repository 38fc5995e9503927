"""Stored queries: what is opened is what was stored, mapped and not read; files read in blocks are files read whole."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from planted.damaged_stores import said, say, sign
from scipy.sparse import csr_array

from rankopt.cli import rankopt
from rankopt.data import Queries, concatenate, open_stored, read_svmlight, read_svmlight_blocks, store, write_svmlight
from rankopt.errors import DataError
from rankopt.rankers import LargeMarginRanker


def made(seed=0, queries=9, features=5, dtype=np.float64, sparse=False, first=0):
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
    for name in ("offsets", "relevance", "row_order"):
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
    queries = made(dtype=dtype, sparse=sparse)
    store(queries, tmp_path / "stored")
    opened = open_stored(tmp_path / "stored")
    same(opened, queries)
    assert is_mapped(opened.features.data if sparse else opened.features)


@pytest.mark.parametrize("sparse", [False, True])
def test_parts_are_stored_one_after_the_other(tmp_path, sparse):
    parts = [made(seed, first=100 * seed, sparse=sparse) for seed in range(3)]
    store(iter(parts), tmp_path / "stored")
    same(open_stored(tmp_path / "stored"), concatenate(parts))


@pytest.mark.parametrize("sparse", [False, True])
def test_training_on_mapped_data_gives_the_same_bits(tmp_path, sparse):
    queries = made(3, queries=25, sparse=sparse)
    store(queries, tmp_path / "stored")
    here = LargeMarginRanker("nDCG@3", lam=0.1).fit(queries)
    there = LargeMarginRanker("nDCG@3", lam=0.1).fit(open_stored(tmp_path / "stored"))
    np.testing.assert_array_equal(here.coef_, there.coef_)
    assert here.certificate_ == there.certificate_


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize("block", [1, 50, 1000, 1 << 20])
def test_a_file_read_in_blocks_is_the_file_read_whole(tmp_path, block, pack):
    path = tmp_path / "data.txt"
    write_svmlight(made(1, queries=12).with_(attributes={}), path)
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
    with pytest.raises(DataError, match=r"data\.txt, line 2: feature 2 but the first block has 1; say n_features=2"):
        list(read_svmlight_blocks(path, block=10))
    path.write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="empty"):
        list(read_svmlight_blocks(path))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (lambda: [made(0), made(1)], "in two parts"),
        (lambda: [made(0), made(1, first=50, dtype=np.float32)], "type of its features"),
        (lambda: [made(0), made(1, first=50, features=4)], "in features"),
        (lambda: [made(0), made(1, first=50).with_(relevance=None)], "having grades"),
        (lambda: [made(0).with_(query_ids=tuple((q, 1) for q in range(9)))], "no number or word"),
        (lambda: [], "no queries"),
    ],
)
def test_what_cannot_be_stored_leaves_nothing_behind(tmp_path, parts, message):
    with pytest.raises(DataError, match=message):
        store(parts(), tmp_path / "stored")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_never_overwritten(tmp_path):
    store(made(), tmp_path / "stored")
    with pytest.raises(DataError, match="exists"):
        store(made(), tmp_path / "stored")


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
    table[1, 2] = np.nan
    np.save(folder / "features.npy", table)
    sign(folder)


@pytest.mark.parametrize("damage", [cut_short, without_manifest, of_tomorrow, without_width, emptied, not_finite])
def test_a_damaged_folder_is_refused(tmp_path, damage):
    store(made(), tmp_path / "stored")
    damage(tmp_path / "stored")
    with pytest.raises(DataError, match="stored"):
        open_stored(tmp_path / "stored")


def test_commands_take_a_stored_folder_where_they_take_a_file(tmp_path):
    path, folder = str(tmp_path / "data.txt"), str(tmp_path / "stored")
    write_svmlight(made(5, queries=20).with_(attributes={}), path)
    run = CliRunner().invoke(rankopt, ["store", path, "--output", folder, "--float32"], catch_exceptions=False)
    assert "20 queries" in run.output
    assert open_stored(folder).features.dtype == np.float32
    model = str(tmp_path / "model.rankopt")
    for arguments in (
        ["train", folder, "--model", model, "--validate", folder, "--lam", "1"],
        ["predict", model, folder, "--output", str(tmp_path / "scores")],
        ["evaluate", folder, "--model", model],
        ["rank", model, folder, "--k", "2"],
    ):
        run = CliRunner().invoke(rankopt, arguments, catch_exceptions=False)
        assert run.exit_code == 0, run.output
    assert len(Path(tmp_path / "scores").read_text(encoding="utf-8").split()) == open_stored(folder).n_documents
