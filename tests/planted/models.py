"""Saved models: mutated files, with false digests and with right ones."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from formulations.errors import FormulationError
from planted.attack import survive
from rankopt.constraints import Admissible
from rankopt.data import Queries
from rankopt.errors import ModelError, RankoptError
from rankopt.experimental import DirectBoostedRanker
from rankopt.rankers import LargeMarginRanker, LossRanker, MatchingRanker, RegressionRanker, load_model

RNG = np.random.default_rng(0)
SITES = np.tile(list("abc"), 8)
QUERIES = Queries.from_arrays(
    RNG.normal(size=(24, 3)),
    RNG.integers(0, 3, 24),
    qid=np.repeat(list("abcd"), 6),
    feature_names=["bm25", "age", "année"],
    attributes={"site": SITES},
)
RANKERS = (
    RegressionRanker(0.5, measure="nDCG(gain='linear')@5"),
    LargeMarginRanker("nDCG@5", lam=1.0, w0=np.array([1.0, 0.0, -1.0]), position_weights="power(0.5)@10"),
    LargeMarginRanker(lam=1.0, constraints=Admissible(3).at_most(2, by="site")),
    LossRanker("pairwise", lam=1.0, C=None),
    MatchingRanker(lam=1.0),
    DirectBoostedRanker("AP@3", strategy="both", n_estimators=3, num_leaves=3, min_child_samples=2),
)
"""What is saved."""

VALUES = [
    None, True, False, 0, 1, -1, 5, 2**31, 2**63, 10**30, 10**400, 0.5, -0.5, 1e308, 1e-320, "", "x", "nDCG", "nDCG@0",
    "zeros", "x" * 5000, "(" * 900, "\0", "\ud800", [], {}, [[]], [0.5, 1.0], {"tuple": []}, {"dict": []},
    {"dict": [[1, 2]]}, {"float": "nan"}, {"float": "inf"}, {"float": "-inf"}, {"strings": ["a", "b", "c"]},
    {"array": "arrays/0.npy"}, {"array": "arrays/9.npy"}, {"measure": "nDCG@5"}, {"measure": "P@2"}, {"measure": "5"},
    {"measure": "ERR"}, {"record": "solver:highs", "fields": {}}, {"record": "solver:exact", "fields": {"room": -1}},
    {"record": "record:Admissible", "fields": {"k": 2}}, {"record": "record:Certificate", "fields": {}},
    {"record": "method:bundle", "fields": {"groups": 1}}, {"record": "method:bundle", "fields": {"damping": []}},
    {"record": "engine:dask", "fields": {"workers": 10**9}}, {"member": "record:Stop", "name": "GAP"},
    {"member": "record:Stop", "name": "__class__"}, {"record": "os:system", "fields": {}},
]  # fmt: skip
"""What a value is replaced by."""


def npy(array):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def headed(shape, kind="<f8", data=b""):
    """An npy file whose header says what its data may not hold."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


ARRAYS = [
    b"", npy(np.zeros(0)), npy(np.zeros(3)), npy(np.ones((3, 3))), npy(np.array([1.0, np.nan, 0.0])),
    npy(np.array([np.inf] * 3)), npy(np.zeros(3, dtype=np.float32)), npy(np.zeros(3, dtype=bool)), npy(np.array(3.0)),
    npy(np.arange(3)), npy(np.full(3, 1e308)), npy(np.full(3, 1e-320)), headed("(1000000000000,)"),
    headed("(0, 10**30)"), headed("(0, 9223372036854775807)"), headed("(1000000000, 0)"), headed("(-1,)"),
    headed("(" + "0, " * 64 + ")"),
    headed(f"({'9' * 3000},)"), headed("(3,)", "<f8", bytes(24)), headed("(3,)", "|O", bytes(24)), headed("()", "<f16"),
]  # fmt: skip
"""What an array is replaced by."""


def members_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != "SHA256SUMS"}


def packed(members):
    """The zip of these members with the right digests."""
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in members.items())
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in [*members.items(), ("SHA256SUMS", sums.encode())]:
            archive.writestr(name, content)
    return buffer.getvalue()


def broken(content, rng):
    """The file with some of its bytes changed."""
    place, size = int(rng.integers(len(content))), int(rng.integers(1, 40))
    head, part, tail = content[:place], content[place : place + size], content[place + size :]
    return (
        head + bytes([content[place] ^ (1 << int(rng.integers(8)))]) + content[place + 1 :],
        head,
        head + tail,
        head + part + part + tail,
        head + bytes(len(part)) + tail,
        head + rng.bytes(size) + tail,
    )[rng.integers(6)]


def nodes(value, path=()):
    """The paths to all values of a JSON."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from nodes(item, (*path, key))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def restated(content, rng):
    """The file with other values and arrays in it, and digests that are right."""
    members = members_of(content)
    manifest = json.loads(members["model.json"])
    for _ in range(int(rng.integers(1, 4))):
        kind, arrays = rng.integers(5), [name for name in members if name.endswith(".npy")]
        if kind == 0 and arrays:
            members[arrays[rng.integers(len(arrays))]] = ARRAYS[rng.integers(len(ARRAYS))]
            continue
        places = [path for path in nodes(manifest) if path]
        if not places:
            break
        *parent, key = places[rng.integers(len(places))]
        held = at(manifest, parent)
        if kind == 1:
            del held[key]
        elif kind == 2:
            *other, name = places[rng.integers(len(places))]
            held[key] = copy.deepcopy(at(manifest, [*other, name]))
        else:
            held[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
    try:
        text = json.dumps(manifest).encode()
    except ValueError:  # beyond the digits that Python writes
        text = json.dumps(manifest, default=str).replace("1" + "0" * 400, "9" * 5000).encode()
    return packed({**members, "model.json": text})


def used(model, path):
    """Do with a model what models are for; errors of ours are answers."""
    for use in (
        lambda: model.predict(QUERIES),
        lambda: model.rank(QUERIES),
        lambda: model.score(QUERIES),
        lambda: str(model.explain(QUERIES.features[0], QUERIES.features[1])) if hasattr(model, "explain") else "",
        lambda: repr(model),
        lambda: (
            str(model.certificate_) + str(getattr(model.history_, "gap", "")) if hasattr(model, "certificate_") else ""
        ),
    ):
        try:
            use()
        except (RankoptError, FormulationError):
            continue
    try:
        model.save(path)
    except RankoptError:
        return
    saved = path.read_bytes()
    load_model(path).save(path)
    assert path.read_bytes() == saved, "what was loaded does not save to the same bytes"


def attack(tries: int, seed: int) -> bool:
    """Whether any try does not survive."""
    rng, originals = np.random.default_rng(seed), []
    folder = Path(tempfile.mkdtemp(prefix="rankopt-faults-"))
    path = folder / "model.rankopt"
    for ranker in RANKERS:
        ranker.fit(QUERIES).save(path)
        originals.append(path.read_bytes())

    def attempt(number: int) -> None:
        original, false_digests = originals[rng.integers(len(originals))], bool(rng.integers(2))
        content = broken(original, rng) if false_digests else restated(original, rng)
        path.write_bytes(content)
        try:
            try:
                model = load_model(path)
            except ModelError:
                return
            if false_digests:
                model.save(path)
                assert path.read_bytes() == original, "false digests, and another model"
            else:
                used(model, path)
        except BaseException:
            (folder / f"try{number}.rankopt").write_bytes(content)
            print(f"kept as {folder}/try{number}.rankopt")
            raise

    return survive(tries, attempt, seconds=10, memory=2 << 30)
