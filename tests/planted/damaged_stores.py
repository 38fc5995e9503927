"""Stored folders damaged in every way we could think of, and what must hold of each: refused by name, or as it was."""

import json
import os
import pickle
import shutil
import signal
import socket
import warnings
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from formulations.errors import FormulationError
from rankopt.data import Queries, open_stored, verify_stored
from rankopt.data import stored_folder as stored
from rankopt.data.stored_files import SUMS, sums_of
from rankopt.errors import DataError, RankoptError
from rankopt.rankers import LargeMarginRanker
from rankopt.scorers.linear import linear_scores

SECONDS = 20
"""After which opening, or using what was opened, counts as hanging."""


def made(seed=0, sparse=False, dtype=np.float64, queries=6, features=5):
    """Small queries with all that a folder can hold."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 7, queries)
    n = int(sizes.sum())
    table = (rng.normal(size=(n, features)) * (rng.random((n, features)) < 0.6)).astype(dtype)
    tags = np.empty(n, dtype=object)
    tags[:] = [("a", "b") if i % 3 else "c" for i in range(n)]
    return Queries.from_arrays(
        csr_array(table) if sparse else table,
        rng.integers(0, 3, n),
        qid=rng.permutation(np.repeat(np.arange(queries), sizes)),
        documents=[f"d{i}" for i in range(n)],
        attributes={"price": rng.random(n), "site": rng.choice(["x.org", "y.org"], n), "tags": tags},
        feature_names=[f"f{j}" for j in range(features)],
    )


def content(queries):
    """All that queries hold, as bytes."""
    table = queries.features
    parts = [table] if isinstance(table, np.ndarray) else [table.data, table.indices.astype(np.int64), table.indptr]
    arrays = [*parts, queries.offsets, queries.relevance, queries.row_order]
    names = (queries.query_ids, queries.document_ids, queries.feature_names)
    columns = {name: (str(values.dtype), values.tolist()) for name, values in queries.attributes.items()}
    return repr([(np.shape(a), str(a.dtype), a.tobytes()) for a in arrays if a is not None]) + repr((names, columns))


# What is done to a folder: functions (folder, rng), in the order of how blunt they are.


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def any_file(folder, rng):
    found = files_of(folder)
    return found[rng.integers(len(found))]


def flip_a_bit(folder, rng):
    path = any_file(folder, rng)
    data = bytearray(path.read_bytes())
    data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
    path.write_bytes(data)


def overwrite_bytes(folder, rng):
    path = any_file(folder, rng)
    data = bytearray(path.read_bytes())
    start = int(rng.integers(len(data)))
    length = int(rng.integers(1, 17))
    fill = [bytes(length), b"\xff" * length, rng.bytes(length), b"9" * length][rng.integers(4)]
    data[start : start + length] = fill
    path.write_bytes(data)


def cut_off(folder, rng):
    path = any_file(folder, rng)
    data = path.read_bytes()
    path.write_bytes(data[: rng.integers(len(data))])


def make_longer(folder, rng):
    path = any_file(folder, rng)
    path.write_bytes(path.read_bytes() + rng.bytes(int(rng.choice([1, 8, 64, 4096]))))


def remove(folder, rng):
    any_file(folder, rng).unlink()


def exchange(folder, rng):
    one, other = any_file(folder, rng), any_file(folder, rng)
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def enlarge_without_content(folder, rng):
    os.truncate(any_file(folder, rng), 1 << int(rng.integers(33, 42)))


def no_regular_file(folder, rng):
    path = any_file(folder, rng)
    path.unlink()
    kind = int(rng.integers(7))
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.mkdir()
    elif kind == 2:
        path.symlink_to("/dev/zero")
    elif kind == 3:
        path.symlink_to("/dev/null")
    elif kind == 4:
        path.symlink_to(path.name)
    elif kind == 5:
        path.symlink_to("/dev/stdin")
    else:
        here = os.getcwd()
        os.chdir(path.parent)  # the name of a socket is short
        try:
            with socket.socket(socket.AF_UNIX) as one:
                one.bind(path.name)
        finally:
            os.chdir(here)


HOSTILE = [
    None, True, -1, 0, 1, 2, 7, 1 << 31, 1 << 62, 1 << 64, 10**30, 0.5, float("inf"), float("nan"), "", "O", "object",
    "<i8", "<f4", "<f8", ">f8", "<U8", "V8", "f8,O", "M8[s]", "\ud800", [], [[]], [None], ["O"], {}, {"a": 1},
    [["price", None]], [["x", [1]]], [["../../etc/passwd", None]],
]  # fmt: skip
"""Values for the fields of a manifest."""


def hostile_manifest(folder, rng):
    path = folder / "queries.json"
    said = json.loads(path.read_bytes())
    for _ in range(int(rng.integers(1, 3))):
        name = sorted(said)[rng.integers(len(said))]
        value = HOSTILE[rng.integers(len(HOSTILE))]
        if isinstance(said[name], list) and said[name] and rng.random() < 0.5:
            said[name][rng.integers(len(said[name]))] = value
        else:
            said[name] = value
    path.write_bytes(json.dumps(said).encode("utf-8", "surrogatepass"))


def hostile_text(folder, rng):
    path = folder / "queries.json"
    text = path.read_text(encoding="utf-8")
    documents = f'"documents": {json.loads(text)["documents"]}'
    texts = [
        text.replace(documents, '"documents": 1e400'),
        text.replace(documents, '"documents": -Infinity'),
        text.replace(documents, f'"documents": {"9" * 5000}'),
        text.replace(documents, f'{documents}, "documents": 3'),
        "[" * 100_000,
        '{"a":' * 100_000,
        "[]",
        "null",
        text[:-1],
        text + text,
        "\ufeff" + text,
    ]
    path.write_text(texts[rng.integers(len(texts))], encoding="utf-8")


def other_dtype_of_the_same_size(folder, rng):
    path = folder / "queries.json"
    said = json.loads(path.read_bytes())
    width = np.dtype(said["dtype"]).itemsize
    said["dtype"] = str(rng.choice([f"<i{width}", f">f{width}", f"<u{width}", f"|V{width}", f"|S{width}", "|O"]))
    if said["entries"] is None and rng.random() < 0.5:  # 8 bytes are two numbers of 4
        said["dtype"], factor = ("<f4", 2) if width == 8 else ("<f8", 0.5)
        said["features"] = max(1, int(said["features"] * factor))
        said["feature_names"] = None
    path.write_text(json.dumps(said), encoding="utf-8")


def hostile_header(folder, rng):
    path = [one for one in files_of(folder) if one.suffix == ".npy"]
    path = path[rng.integers(len(path))]
    data = path.read_bytes()
    size = int.from_bytes(data[8:10], "little")
    header = data[10 : 10 + size].decode()
    kind, shape = header.split("'descr': '")[1].split("'")[0], header.split("'shape': ")[1].split(")")[0] + ")"
    changed = [
        header.replace(shape, "(1000000000000000000,)"),
        header.replace(shape, "(18446744073709551616,)"),
        header.replace(shape, "(-1,)"),
        header.replace(shape, "()"),
        header.replace(shape, shape[:-1] + "1,)"),
        header.replace(shape, "(" + "1," * 400 + ")"),
        header.replace("False", "True"),
        header.replace(kind, "|O"),
        header.replace(kind, "<i8" if kind != "<i8" else "<f8"),
        header.replace(kind, "<M8[s]"),
        header.replace(kind, "|V8"),
        header.replace(kind, "<U0"),
        header.replace(f"'{kind}'", "[('a', '|O')]"),
        header.replace(f"'{kind}'", "9" * 2000),
        "(" * 3000,
        "__import__('os').abort()",
        "{'descr': '<f8'}",
    ][rng.integers(17)].encode()
    version = [b"\1\0", b"\1\0", b"\1\0", b"\2\0", b"\3\0", b"\7\7"][rng.integers(6)]
    padded = changed.ljust(-(-(len(changed) + 10) // 64) * 64 - 10) if rng.random() < 0.5 else changed
    told = len(padded) if rng.random() < 0.8 else int(rng.integers(65536))
    path.write_bytes(data[:6] + version + told.to_bytes(2, "little") + padded + data[10 + size :])


def changed_numbers(folder, rng):
    """Other numbers in files of the right shape: orders reversed, offsets shifted, columns out of range."""
    path = any_file(folder, rng)
    raw = path.suffix != ".npy"
    if raw and path.name not in ("features", "columns", "bounds"):
        return
    kind = json.loads((folder / "queries.json").read_bytes())["dtype"] if path.name == "features" else np.int64
    array = np.fromfile(path, dtype=kind) if raw else np.load(path)
    place = int(rng.integers(max(array.size, 1)))
    how = int(rng.integers(6))
    if not array.size:
        return
    if how == 0:
        array = array[::-1].copy()
    elif how == 1:
        array = np.roll(array, 1)
    elif how == 2 and array.dtype.kind in "iuf":
        array += 1
    elif array.dtype.kind in "i":
        array[place] = rng.choice([-1, array.size, 1 << 28, 1 << 40, -(1 << 62), int(array[place - 1])])
    elif array.dtype.kind in "f":
        array[place] = rng.choice([np.nan, np.inf, -np.inf, -1.0, 1e308, 5e-324])
    else:
        array[place] = array[place - 1]
    if raw:
        array.tofile(path)
    else:
        np.save(path, array)


def hostile_digests(folder, rng):
    path = folder / SUMS
    if not path.exists():
        return
    lines = path.read_text(encoding="ascii").splitlines(keepends=True)
    place = int(rng.integers(len(lines)))
    lines[place] = [
        "",
        lines[place].upper(),
        lines[place].replace("  ", " "),
        lines[place].replace("  ", "  ../"),
        lines[place] * 2,
        lines[place][:64] + lines[place][128:],
        lines[place - 1][:128] + lines[place][128:],
        "0" * 128 + lines[place][128:],
        lines[place].rstrip("\n"),
        "\xe9\n",
    ][rng.integers(10)]
    path.write_text("".join(lines), encoding="latin-1")


def nothing(folder, rng):
    """The folder as it is: what must not be refused."""


DAMAGE = [
    flip_a_bit, overwrite_bytes, cut_off, make_longer, remove, exchange, enlarge_without_content, no_regular_file,
    hostile_manifest, hostile_text, other_dtype_of_the_same_size, hostile_header, changed_numbers, hostile_digests,
    nothing,
]  # fmt: skip

SIGNED = ["signed", "large", "unsigned", "forged"]
"""Digests as written; the same of a folder whose features are not read on opening; none, as earlier versions wrote
them; and made anew after the damage, as somebody would who means harm."""


def sign(folder):
    """Digests of the files as they are now."""
    found = {}
    for path in files_of(folder):
        if path.name != SUMS and path.stat().st_size < 1 << 30 and not path.is_symlink():
            found[path.relative_to(folder).as_posix()] = blake2b(path.read_bytes()).hexdigest()
    if (folder / SUMS).is_dir():
        (folder / SUMS).rmdir()
    (folder / SUMS).unlink(missing_ok=True)
    (folder / SUMS).write_bytes(sums_of(found))


@contextmanager
def limited(seconds=SECONDS):
    """TimeoutError after so many seconds, wherever Python is."""

    def late(number, frame):
        raise TimeoutError(f"after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def tried(original, folder, damage, how, seed):
    """Damage a copy of a stored folder and open it: "refused" or "opened". AssertionError where it is neither refused
    by an error that names the file and the cure, nor the same; any other error is a fault too."""
    rng = np.random.default_rng(seed)
    shutil.copytree(original, folder)
    try:
        if how == "unsigned":
            (folder / SUMS).unlink()
        damage(folder, rng)
        if how == "forged" and damage is not hostile_digests:
            sign(folder)
        known = stored.CHEAP
        stored.CHEAP = -1 if how == "large" else known
        try:
            with limited():
                return _opened(original, folder, damage, how)
        finally:
            stored.CHEAP = known
    finally:
        shutil.rmtree(folder)


def _opened(original, folder, damage, how):
    whole = content(open_stored(original))
    try:
        opened = open_stored(folder)
    except DataError as error:
        if damage is nothing:
            raise AssertionError("a whole folder is refused") from error
        assert_told(error, folder)
        return "refused"
    if how in ("signed", "large") and content(opened) != whole:
        assert how == "large", "other data, and nobody says so"
        try:
            verify_stored(folder)
        except DataError as error:
            assert_told(error, folder)
        else:
            raise AssertionError("other data, and it is verified")
    used(opened)
    return "opened"


def assert_told(error, folder):
    """An error names the file and the cure."""
    told = str(error)
    names = ("queries.json", "features", "columns", "bounds", "offsets", "order", "relevance", "attributes", SUMS)
    assert str(folder) in told, told
    assert any(name in told for name in names), told
    assert "store" in told.split(str(folder))[-1], told
    assert len(told) < 1000, told


def used(queries):
    """Everything that reads the queries: none of it may do more than raise an error of ours."""
    if queries.n_features > 1 << 16:
        return  # a table of nothing but width, which costs what it says
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for work in (
            lambda: linear_scores(queries.features, np.ones(queries.n_features)),
            lambda: queries.select([0]),
            lambda: queries.to_caller(queries.offsets[0] + np.zeros(queries.n_documents)),
            lambda: pickle.dumps(queries),
            lambda: repr(queries),
            lambda: LargeMarginRanker("nDCG@3", bound="convex", max_iter=2, engine="serial").fit(queries),
        ):
            try:
                work()
            except (RankoptError, FormulationError):
                continue


def run(folder, tries, seed):
    """So many damaged folders, drawn evenly from what is damaged and how it is signed: how many were refused and how
    many opened, and the faults."""
    from rankopt.data import store

    folder, counts, faults = Path(folder), {"refused": 0, "opened": 0}, []
    folder.mkdir(parents=True, exist_ok=True)
    originals = []
    for number, (sparse, dtype) in enumerate([(False, np.float64), (False, np.float32), (True, np.float64)]):
        originals.append(folder / f"whole{number}")
        store(made(number, sparse, dtype), originals[-1])
    for number in range(tries):
        damage, how = DAMAGE[number % len(DAMAGE)], SIGNED[number // len(DAMAGE) % len(SIGNED)]
        original = originals[number // (len(DAMAGE) * len(SIGNED)) % len(originals)]
        try:
            counts[tried(original, folder / "damaged", damage, how, [seed, number])] += 1
        except Exception as error:
            faults.append(f"{number}: {damage.__name__}, {how}, {original.name}: {type(error).__name__}: {error}")
    return counts, faults
