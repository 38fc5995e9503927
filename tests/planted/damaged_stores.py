"""Stored folders damaged in every way we could think of, and what must hold of each: refused by name, or as it was."""

import json
import os
import pickle
import shutil
import signal
import warnings
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from formulations.errors import FormulationError
from rankopt.data import Queries, open_queries, stored_folder, verify_queries
from rankopt.data.stored_folder import CHECKSUM, MANIFEST, checksum
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
    arrays = [*parts, queries.offsets, queries.relevance, queries.rows]
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
    kind = int(rng.integers(4))
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.mkdir()
    else:
        path.symlink_to(["/dev/zero", path.name][kind - 2])


HOSTILE = [
    None, True, -1, 0, 1, 2, 7, 1 << 31, 1 << 62, 1 << 64, 10**30, 0.5, float("inf"), float("nan"), "", "O", "object",
    "<i8", "<f4", "<f8", ">f8", "<U8", "V8", "f8,O", "M8[s]", "\ud800", [], [[]], [None], ["O"], {}, {"a": 1},
    [["price", None]], [["x", [1]]], [["../../etc/passwd", None]],
]  # fmt: skip
"""Values for the fields of a manifest."""


def said(folder):
    """The fields of the manifest."""
    return json.loads((folder / MANIFEST).read_bytes())


def say(folder, fields):
    """Write a manifest of these fields, with the checksum that it has."""
    text = json.dumps({name: value for name, value in fields.items() if name != "checksum"})
    (folder / MANIFEST).write_bytes(signed(text.encode("utf-8", "surrogatepass")))


def signed(text):
    """A manifest with its own checksum."""
    rest = text[1:] if text.startswith(b"{") else text
    return b'{"checksum": "%s", ' % blake2b(rest).hexdigest().encode() + rest


def sign(folder):
    """The folder with checksums of its arrays as they are now, as a forger would make them."""
    if (folder / MANIFEST).stat().st_size > 1 << 30:
        return
    (folder / MANIFEST).write_bytes(signed(CHECKSUM.sub(b"{", (folder / MANIFEST).read_bytes())))
    fields = said(folder)
    for name in fields["checksums"]:
        with suppress(Exception):  # what NumPy does not read has no checksum
            if (folder / name).is_file():
                fields["checksums"][name] = checksum(np.load(folder / name))
    say(folder, fields)


def hostile_manifest(folder, rng):
    fields = said(folder)
    names = sorted(fields.keys() - {"checksum"})
    for _ in range(int(rng.integers(1, 3))):
        name = names[rng.integers(len(names))]
        value = HOSTILE[rng.integers(len(HOSTILE))]
        if isinstance(fields[name], list) and fields[name] and rng.random() < 0.5:
            fields[name][rng.integers(len(fields[name]))] = value
        else:
            fields[name] = value
    checksum_before = fields.pop("checksum")
    text = json.dumps({"checksum": checksum_before} | fields)
    (folder / MANIFEST).write_bytes(text.encode("utf-8", "surrogatepass"))


def hostile_text(folder, rng):
    text = (folder / MANIFEST).read_bytes()
    width = b'"features": %d' % said(folder)["features"]
    texts = [
        text.replace(width, b'"features": 1e400'),
        text.replace(width, b'"features": -Infinity'),
        text.replace(width, b'"features": ' + b"9" * 5000),
        text.replace(width, width + b', "features": 3'),
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[]",
        b"null",
        text[:-1],
        text + text,
        b"\xef\xbb\xbf" + text,
    ]
    (folder / MANIFEST).write_bytes(texts[rng.integers(len(texts))])


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
    path = [one for one in files_of(folder) if one.suffix == ".npy"]
    path = path[rng.integers(len(path))]
    array = np.load(path)
    flat = array.reshape(-1)
    place, how = int(rng.integers(flat.size)), int(rng.integers(5))
    if how == 0:
        flat[:] = flat[::-1].copy()
    elif how == 1:
        flat[:] = np.roll(flat, 1)
    elif how == 2 and array.dtype.kind in "iuf":
        flat += 1
    elif array.dtype.kind in "i":
        flat[place] = rng.choice([-1, flat.size, 1 << 28, 1 << 40, -(1 << 62), int(flat[place - 1])])
    elif array.dtype.kind in "f":
        flat[place] = rng.choice([np.nan, np.inf, -np.inf, -1.0, 1e38, 5e-324]).astype(array.dtype)
    else:
        flat[place] = flat[place - 1]
    np.save(path, array)


def nothing(folder, rng):
    """The folder as it is: what must not be refused."""


DAMAGE = [
    flip_a_bit, overwrite_bytes, cut_off, make_longer, remove, exchange, enlarge_without_content, no_regular_file,
    hostile_manifest, hostile_text, hostile_header, changed_numbers, nothing,
]  # fmt: skip

SIGNED = ["signed", "large", "forged"]
"""Checksums as written; the same of a folder whose features are not read on opening; and made anew after the damage."""


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
        damage(folder, rng)
        if how == "forged" and (folder / MANIFEST).is_file():
            with suppress(ValueError, TypeError, KeyError, RecursionError, MemoryError, OverflowError):
                sign(folder)
        known = stored_folder.CHEAP
        stored_folder.CHEAP = -1 if how == "large" else known
        try:
            with limited():
                return _opened(original, folder, damage, how)
        finally:
            stored_folder.CHEAP = known
    finally:
        shutil.rmtree(folder)


def _opened(original, folder, damage, how):
    whole = content(open_queries(original))
    try:
        opened = open_queries(folder)
    except DataError as error:
        if damage is nothing:
            raise AssertionError("a whole folder is refused") from error
        assert_told(error, folder)
        return "refused"
    if how in ("signed", "large") and content(opened) != whole:
        assert how == "large", "other data, and nobody says so"
        try:
            verify_queries(folder)
        except DataError as error:
            assert_told(error, folder)
        else:
            raise AssertionError("other data, and it is verified")
    used(opened)
    return "opened"


def assert_told(error, folder):
    """An error names the file and the cure."""
    told = str(error)
    assert str(folder) in told, told
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
            lambda: queries.to_input_order(queries.offsets[0] + np.zeros(queries.n_documents)),
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
    from rankopt.data import save_queries

    folder, counts, faults = Path(folder), {"refused": 0, "opened": 0}, []
    folder.mkdir(parents=True, exist_ok=True)
    originals = []
    for number, (sparse, dtype) in enumerate([(False, np.float64), (False, np.float32), (True, np.float64)]):
        originals.append(folder / f"whole{number}")
        save_queries(made(number, sparse, dtype), originals[-1])
    for number in range(tries):
        damage, how = DAMAGE[number % len(DAMAGE)], SIGNED[number // len(DAMAGE) % len(SIGNED)]
        original = originals[number // (len(DAMAGE) * len(SIGNED)) % len(originals)]
        try:
            counts[tried(original, folder / "damaged", damage, how, [seed, number])] += 1
        except Exception as error:
            faults.append(f"{number}: {damage.__name__}, {how}, {original.name}: {type(error).__name__}: {error}")
    return counts, faults
