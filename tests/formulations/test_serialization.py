"""Files of data: values come back as they were, and what `Encoder` would not write is refused."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from formulations.errors import FileVersionError, SerializationError
from formulations.serialization import (
    Decoder,
    Encoder,
    FileFormat,
    array_to_bytes,
    map_array,
    read_zip,
    write_zip,
)


@dataclass(frozen=True, eq=False)
class Pair:
    first: Any
    second: Any


FORMAT = FileFormat("test file", version=3, classes=lambda: {"Pair": f"{__name__}:Pair"}, value_limit=200)


def back(value):
    """The value, written as JSON and arrays and read again."""
    encoder = Encoder(FORMAT)
    stored = encoder.encode(value, "it")
    decoder = Decoder(FORMAT, encoder.arrays)
    decoded = decoder.decode(stored)
    decoder.check_complete()
    return decoded


def test_a_file_comes_back_and_its_arrays_are_read_only(tmp_path):
    encoder = Encoder(FORMAT)
    stored = encoder.encode({"x": np.arange(3.0)}, "it")
    FORMAT.write(tmp_path / "file", {"value": stored}, encoder.arrays)
    manifest, arrays = FORMAT.read(tmp_path / "file")
    decoded = Decoder(FORMAT, arrays).decode(manifest["value"])["x"]
    assert decoded.tolist() == [0.0, 1.0, 2.0]
    assert not decoded.flags.writeable
    assert Decoder(FORMAT, arrays, writeable=True).decode(manifest["value"])["x"].flags.writeable


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 4), (3, 4)])
def test_sparse_matrices_come_back(shape):
    matrix = csr_array(np.arange(float(np.prod(shape))).reshape(shape))
    again = back(matrix)
    assert again.shape == shape
    np.testing.assert_array_equal(again.toarray(), matrix.toarray())


def stored_matrix(data=(1.0, 2.0), indices=(0, 1), indptr=(0, 1, 2), shape=(2, 2)):
    arrays = [np.array(data, dtype=np.float64), np.array(indices), np.array(indptr)]
    members = {f"arrays/{i}.npy": array_to_bytes(array) for i, array in enumerate(arrays)}
    return {"csr": [{"array": name} for name in members], "shape": list(shape)}, members


@pytest.mark.parametrize(
    "damage",
    [
        {"indices": (0, 2)}, {"indices": (0, -1)}, {"indices": (0,)}, {"indices": (0.0, 1.0)}, {"indptr": (0, 2)},
        {"indptr": (0, 3, 2)}, {"indptr": (1, 1, 2)}, {"indptr": (0, 1, 3)}, {"shape": (3, 2)}, {"shape": (2, 1)},
        {"shape": (-1, 2)}, {"shape": (2, 1 << 40)}, {"shape": (2, 2.0)}, {"shape": (2,)}, {"data": ((1.0, 2.0),)},
    ],
)  # fmt: skip
def test_a_sparse_matrix_with_wrong_indices_is_refused(damage):
    assert Decoder(FORMAT, stored_matrix()[1]).decode(stored_matrix()[0]).nnz == 2
    stored, members = stored_matrix(**damage)
    with pytest.raises(SerializationError):
        Decoder(FORMAT, members).decode(stored)


def test_a_shared_record_is_stored_once_and_shared_again():
    shared = Pair(1, np.zeros(2))
    again = back(Pair(shared, (shared, [shared])))
    assert again.first is again.second[0] is again.second[1][0]


def test_a_record_that_is_shared_counts_wherever_it_is_named():
    """Else a file of a few lines could hold 2^n values for whatever reads them one by one."""
    value = Pair(0, 0)
    for _ in range(5):
        value = Pair(value, value)
    again = back(value)
    assert again.first is again.second
    with pytest.raises(SerializationError, match="more than 200 values"):
        back(Pair(value, value))


@pytest.mark.parametrize("stored", [{"same": 0}, {"same": -1}, {"same": "0"}, {"record": "os:system", "fields": {}}])
def test_records_that_the_file_does_not_have_are_refused(stored):
    with pytest.raises(SerializationError):
        Decoder(FORMAT, {}).decode(stored)


@pytest.mark.parametrize(
    ("version", "error", "says"),
    [
        (4, FileVersionError, "has version 4 and this rankopt reads 3; upgrade"),
        (2, FileVersionError, r"development version .format 2.; write it again"),
        ("3", SerializationError, "not a number"),
        (True, SerializationError, "not a number"),
        (None, SerializationError, "not a number"),
    ],
)
def test_a_file_of_another_version_is_told_so(version, error, says):
    with pytest.raises(error, match=says):
        FORMAT.parse(json.dumps({"format": "test file", "version": version}).encode())


def test_a_mapped_array_is_what_its_header_says(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6.0).reshape(2, 3))
    array = map_array(tmp_path / "a.npy")
    assert isinstance(array, np.memmap)
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(SerializationError, match="its type is float64"):
        map_array(tmp_path / "a.npy", "i")
    with open(tmp_path / "a.npy", "ab") as file:
        file.write(b"\0")
    with pytest.raises(SerializationError, match="does not fill 49 bytes"):
        map_array(tmp_path / "a.npy")


def test_members_have_plain_names(tmp_path):
    write_zip(tmp_path / "file", {"../x.json": b"{}"})
    with pytest.raises(SerializationError, match="a member is named"):
        read_zip(tmp_path / "file")
