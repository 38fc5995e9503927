"""Files of data that are read without trust: plain NumPy arrays and one JSON manifest. Reading never executes content.

`FileFormat` describes a kind of file. `write` makes a zip archive of

    manifest.json    {"format", "version", ...}, with values encoded as below
    arrays/0.npy     the arrays that the manifest names, in npy version 1.0
    SHA256SUMS       the digest of each other member, as `sha256sum` writes it

Members are not compressed and time stamps are fixed: sizes are bounded by the size of the file, and equal content gives
equal bytes. Sizes are checked before memory is allocated. Members that are unknown, missing or duplicate are refused.
Files are replaced atomically. `map_array` memory-maps an array of a folder under the same rules.

Values and their JSON (`Encoder`, `Decoder`):

    None, bool, int, float, str, list        themselves (not finite: {"float": "inf"})
    tuple, mapping                           {"tuple": [...]}, {"dict": [[key, value], ...]}
    array of numbers                         {"array": "arrays/0.npy"}
    array of strings, one-dimensional        {"strings": [...]}
    sparse matrix (csr_array)                {"csr": [data, indices, indptr], "shape": [rows, columns]}
    dataclass or estimator of the format     {"record": "solver:highs", "fields": {...}}; later {"same": number}
    enumeration of the format                {"member": "record:Stop", "name": "GAP"}
    object with a notation (`Notation`)      {"measure": "nDCG@10"}

A record is built by its constructor, which checks its fields. A class whose constructor trusts its caller, for speed,
has a method `check_stored`, which is called for records of files.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import math
import os
import re
import secrets
import struct
import zipfile
from collections.abc import Callable, Mapping
from enum import Enum
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy.sparse import csr_array

from formulations.arrays import as_path
from formulations.errors import FileVersionError, SerializationError
from formulations.registry import load

FILE_LIMIT = (1 << 31) - 1  # largest size of an archive in bytes
HEADER_LIMIT = 4096  # largest size of the header of an array in bytes
DEPTH_LIMIT = 32  # largest depth of nested values
SUMS = "SHA256SUMS"
MEMBER_NAME = re.compile(r"[A-Za-z0-9_]+(/[A-Za-z0-9_]+)*\.(json|npy)")
"""Valid member names: no absolute paths, no `..`, no hidden files."""
NUMBERS = "biuf"  # NumPy kinds of numbers: booleans, signed and unsigned integers, floats
_TIME_STAMP = (1980, 1, 1, 0, 0, 0)
_END = struct.Struct("<4s4H2LH")  # the record that ends a zip file without comment


def write_file(path: str | PathLike[str], content: bytes, links: bool = True) -> None:
    """Write a file atomically: after any failure, also of the machine, it has the old or the new content. links:
    whether a symbolic link `path` is followed; else the link itself is replaced."""
    name = as_path(path, SerializationError)
    target = Path(os.path.realpath(name) if links else name)
    if target.exists() and not (target.is_file() or target.is_symlink()):  # a device or a pipe is not replaced
        target.write_bytes(content)
        return
    part = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    if os.name == "posix":
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the new name, not the content alone
        finally:
            os.close(folder)


def write_zip(path: str | PathLike[str], members: Mapping[str, bytes], links: bool = True) -> None:
    """Write the members and their digests to a zip archive. links: as in `write_file`.

    Raises SerializationError where the archive would be larger than can be read, OSError where it cannot be written.
    """
    sums = "".join(f"{hashlib.sha256(members[name]).hexdigest()}  {name}\n" for name in sorted(members))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in [*sorted(members.items()), (SUMS, sums.encode())]:
            member = zipfile.ZipInfo(name, _TIME_STAMP)
            member.create_system = 3  # the same bytes on every system
            member.external_attr = 0o644 << 16
            archive.writestr(member, content)
    if buffer.tell() > FILE_LIMIT:
        raise SerializationError(f"it would have {buffer.tell()} bytes, more than {FILE_LIMIT}")
    write_file(path, buffer.getvalue(), links)


def read_zip(path: str | PathLike[str], directory_limit: int = 1 << 20) -> dict[str, bytes]:
    """The members of a file of `write_zip`, each checked against its digest.

    Raises SerializationError for any other file: not a zip, truncated, changed, compressed, encrypted, unsafe names,
    false sizes, a central directory of more than `directory_limit` bytes. Raises OSError where it cannot be opened.
    """
    with open(as_path(path, SerializationError), "rb") as file:
        content = file.read(min(os.fstat(file.fileno()).st_size, FILE_LIMIT) + 1)  # this much memory is allocated
    if len(content) > FILE_LIMIT:
        raise SerializationError(f"it has more than {FILE_LIMIT} bytes")
    # zipfile allocates what the end record declares: it is checked before.
    if len(content) < _END.size:
        raise SerializationError(f"{len(content)} bytes")
    signature, _, _, _, _, size, start, comment = _END.unpack(content[-_END.size :])
    if signature != b"PK\5\6" or comment or content[-_END.size - 20 : -_END.size - 16] == b"PK\6\7":
        raise SerializationError("no end of a plain zip file")
    if size > directory_limit or start + size + _END.size != len(content):
        raise SerializationError("its central directory is not at the offset in the file")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_directory(archive, len(content))
            members = {member.filename: archive.read(member) for member in archive.infolist()}
    except SerializationError:
        raise
    except Exception as error:  # a malformed zip file may raise anything in zipfile
        raise SerializationError(_reason(error)) from error
    _check_sums(members.pop(SUMS), members)
    return members


def _check_directory(archive: zipfile.ZipFile, size: int) -> None:
    names: set[str] = set()
    for name in archive.namelist():
        if name != SUMS and not MEMBER_NAME.fullmatch(name):
            raise SerializationError(f"a member is named {name[:80]!r}")
        if name in names:
            raise SerializationError(f"two members are named {name!r}")
        names.add(name)
    if SUMS not in names:
        raise SerializationError(f"no {SUMS}, as in files of development versions")
    for member in archive.infolist():
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 0x1:
            raise SerializationError(f"{member.filename!r} is compressed or encrypted")
    declared = sum(max(member.file_size, member.compress_size) for member in archive.infolist())
    if declared > size:
        raise SerializationError(f"its members claim {declared} bytes, the file has {size}")


def _check_sums(listed: bytes, members: Mapping[str, bytes]) -> None:
    try:
        lines = listed.decode("ascii").splitlines()
    except UnicodeDecodeError as error:
        raise SerializationError(f"{SUMS} is not text") from error
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    if sums.keys() != members.keys() or len(lines) != len(sums):
        raise SerializationError(f"{SUMS} lists other members than the file has")
    for name, digest in sums.items():
        if hashlib.sha256(members[name]).hexdigest() != digest:
            raise SerializationError(f"the sha256 of {name!r} differs")


def array_to_bytes(array: NDArray[Any]) -> bytes:
    """The npy file of an array of numbers: little endian, C order, the same bytes on every platform."""
    buffer = io.BytesIO()
    plain = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
    npy.write_array(buffer, plain, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def array_from_bytes(content: bytes, writeable: bool = False) -> NDArray[Any]:
    """The array of an npy file. Raises SerializationError unless content and header agree."""

    def copied(dtype: np.dtype[Any], shape: tuple[int, ...], start: int) -> NDArray[Any]:
        plain = np.frombuffer(content, dtype=dtype, offset=start).reshape(shape)
        return np.array(plain, dtype=dtype.newbyteorder("="))

    array = _read_npy(io.BytesIO(content), len(content), NUMBERS, copied)
    array.setflags(write=writeable)
    return array


def map_array(path: str | PathLike[str], kinds: str = NUMBERS) -> NDArray[Any]:
    """The array of an npy file, memory-mapped read-only. Raises SerializationError as `array_from_bytes` does."""
    with open(as_path(path, SerializationError), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        return _read_npy(file, size, kinds, lambda dtype, shape, start: np.memmap(file, dtype, "r", start, shape))


def _read_npy(
    file: BinaryIO, size: int, kinds: str, make: Callable[[np.dtype[Any], tuple[int, ...], int], NDArray[Any]]
) -> NDArray[Any]:
    """What `make` returns for type, shape and offset of the entries of an npy file of this size."""
    try:
        if npy.read_magic(file) != (1, 0):
            raise ValueError("not version 1.0")
        shape, by_columns, dtype = npy.read_array_header_1_0(file, max_header_size=HEADER_LIMIT)
        start = file.tell()
        if dtype.kind not in kinds or not dtype.itemsize:
            raise ValueError(f"its type is {dtype}")
        if by_columns or any(length < 0 for length in shape):
            raise ValueError(f"its shape is {shape}, fortran_order {by_columns}")
        if math.prod(shape) * dtype.itemsize != size - start:
            raise ValueError(f"shape {shape} of {dtype} does not fill {size - start} bytes")
        return make(dtype, shape, start)
    except Exception as error:  # a malformed header may raise anything in the parser
        raise SerializationError(f"an array is not a plain npy file ({_reason(error)})") from error


def _reason(error: Exception) -> str:
    """The message in one line, not longer than a line: it may repeat content of the file."""
    return " ".join(str(error).split())[:200] or type(error).__name__


class Notation(NamedTuple):
    """A class whose objects are stored as text. Both functions may raise SerializationError."""

    kind: type
    to_text: Callable[[Any], str]
    from_text: Callable[[str], Any]


@dataclasses.dataclass(frozen=True)
class FileFormat:
    """A kind of file and its limits.

    name: the manifest's "format". manifest: the member with the manifest. classes: a function that returns the classes
    of records and enumerations, name → "module:class"; a file can name no others. notations: key in the JSON →
    `Notation`. rule: end of the error message for a value that cannot be stored. is_printable: whether text fields of
    records must be printable. has_nan: whether the JSON may contain NaN. json_limit, value_limit, directory_limit:
    bytes of JSON, number of values, bytes of the zip's central directory.
    """

    name: str
    version: int
    manifest: str = "manifest.json"
    classes: Callable[[], Mapping[str, str]] = dict
    notations: Mapping[str, Notation] = dataclasses.field(default_factory=dict)
    rule: str = "only numbers, strings and arrays can"
    is_printable: bool = False
    has_nan: bool = False
    json_limit: int = 1 << 24
    value_limit: int = 1 << 20
    directory_limit: int = 1 << 20

    def write(
        self, path: str | PathLike[str], content: Mapping[str, Any], arrays: Mapping[str, bytes], links: bool = True
    ) -> None:
        """Write a file of encoded content. Raises SerializationError where it could not be read back."""
        manifest = {"format": self.name, "version": self.version, **content}
        text = json.dumps(manifest, sort_keys=True, allow_nan=False).encode("ascii")
        if len(text) > self.json_limit:
            raise SerializationError(f"its JSON has {len(text)} bytes, more than {self.json_limit}")
        if sum(46 + len(name) for name in (self.manifest, SUMS, *arrays)) > self.directory_limit:
            raise SerializationError(f"it has {len(arrays)} arrays, more than can be read")
        write_zip(path, {self.manifest: text, **arrays}, links)

    def read(self, path: str | PathLike[str]) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The manifest of a file and its arrays. Raises SerializationError, OSError where it cannot be opened."""
        members = read_zip(path, self.directory_limit)
        return self.parse(members.pop(self.manifest, b"")), members

    def parse(self, text: bytes) -> dict[str, Any]:
        """The manifest. Raises SerializationError for invalid JSON, another format, another version."""
        manifest = parse_json(text, self.manifest, self.json_limit, self.has_nan)
        if not isinstance(manifest, dict) or manifest.get("format") != self.name:
            raise SerializationError(f"it is not a {self.name}")
        version = manifest.get("version")
        if type(version) is not int or version < 0:
            raise SerializationError(f"its version is {str(version)[:80]!r}, not a number")
        if version > self.version:
            raise FileVersionError(f"it has version {version} and this rankopt reads {self.version}; upgrade rankopt")
        if version < self.version:
            raise FileVersionError(f"it is of a development version (format {version}); write it again")
        return manifest


def parse_json(text: bytes, name: str, limit: int, has_nan: bool = False) -> Any:
    """JSON of at most `limit` bytes, without duplicate names, without NaN unless has_nan. SerializationError else."""
    if len(text) > limit:
        raise SerializationError(f"{name} has {len(text)} bytes, more than {limit}")
    try:
        return json.loads(text.decode(), object_pairs_hook=_distinct, parse_constant=float if has_nan else _refuse)
    except (ValueError, RecursionError) as error:
        raise SerializationError(f"{name} is missing or not its JSON ({_reason(error)})") from error


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) != len(pairs):
        raise ValueError("a name occurs twice")
    return names


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


class Encoder:
    """Turns values into JSON and collects their arrays in `arrays`, member name → npy file."""

    def __init__(self, form: FileFormat) -> None:
        self.form = form
        self.arrays: dict[str, bytes] = {}
        self._names = {path: name for name, path in reversed([*form.classes().items()])}
        self._known: dict[int, tuple[int, Any]] = {}

    def encode(self, value: Any, what: str, depth: int = 0) -> Any:
        """The JSON of `value`; `what` names it in the SerializationError that is raised where it cannot be stored."""
        if depth > DEPTH_LIMIT:
            raise SerializationError(f"{what} cannot be saved because it is nested deeper than {DEPTH_LIMIT}.")
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, np.ndarray):
            return self._array(value, what)
        if isinstance(value, Enum):
            return {"member": self._name(value, what), "name": value.name}
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, list | tuple):
            items = [self.encode(item, f"{what}[{i}]", depth + 1) for i, item in enumerate(value)]
            return items if isinstance(value, list) else {"tuple": items}
        if isinstance(value, Mapping):
            pairs = [
                [self.encode(key, f"a key of {what}", depth + 1), self.encode(item, f"{what}[{key!r}]", depth + 1)]
                for key, item in value.items()
            ]
            return {"dict": pairs}
        if isinstance(value, csr_array):
            index = np.int32 if max(*value.shape, value.nnz) < 1 << 31 else np.int64
            parts = (value.data, value.indices.astype(index), value.indptr.astype(index))
            return {"csr": [self._array(part, what) for part in parts], "shape": [int(side) for side in value.shape]}
        for key, notation in self.form.notations.items():
            if isinstance(value, notation.kind):
                try:
                    return {key: notation.to_text(value)}
                except SerializationError as error:
                    raise SerializationError(f"{what} cannot be saved because {error}") from error
        if id(value) in self._known:
            return {"same": self._known[id(value)][0]}
        name, keys = self._name(value, what), sorted(_field_names(type(value)))
        fields = {key: self.encode(getattr(value, key), f"{what}.{key}", depth + 1) for key in keys}
        self._known[id(value)] = len(self._known), value  # the reference keeps its id from being reused
        return {"record": name, "fields": fields}

    def _array(self, value: NDArray[Any], what: str) -> Any:
        if value.dtype.kind in NUMBERS:
            name = f"arrays/{len(self.arrays)}.npy"
            self.arrays[name] = array_to_bytes(value)
            return {"array": name}
        if value.ndim == 1 and all(isinstance(item, str) for item in value):
            return {"strings": [str(item) for item in value]}
        raise SerializationError(f"{what} cannot be saved because it is an array of {value.dtype}; only numbers can.")

    def _name(self, value: Any, what: str) -> str:
        kind = type(value)
        name = self._names.get(f"{kind.__module__}:{kind.__qualname__}")
        if name is None:
            raise SerializationError(f"{what} cannot be saved because a {kind.__name__} is not data; {self.form.rule}")
        return name


class Decoder:
    """Turns JSON back into values, arrays writeable or not. Raises SerializationError for anything that `Encoder` would
    not write."""

    def __init__(self, form: FileFormat, arrays: Mapping[str, bytes], writeable: bool = False) -> None:
        self.form, self.arrays, self.writeable = form, arrays, writeable
        self.classes = form.classes()
        self._unused = set(arrays)
        self._left = form.value_limit
        self._records: list[tuple[Any, int]] = []

    def check_complete(self) -> None:
        """Raise SerializationError where an array was not used."""
        if self._unused:
            raise SerializationError(f"nothing names its member {min(self._unused)!r}")

    def decode(self, stored: Any, depth: int = 0) -> Any:
        """The value of parsed JSON."""
        if depth > DEPTH_LIMIT:
            raise SerializationError(f"values are nested deeper than {DEPTH_LIMIT}")
        self._count(1)
        if stored is None or isinstance(stored, bool | int | float | str):
            return stored
        if isinstance(stored, list):
            return [self.decode(item, depth + 1) for item in stored]
        match stored:
            case {"float": "inf" | "-inf" | "nan" as word, **rest} if not rest:
                return float(word)
            case {"tuple": list(items), **rest} if not rest:
                return tuple(self.decode(item, depth + 1) for item in items)
            case {"dict": list(pairs), **rest} if not rest:
                return self._dict(pairs, depth)
            case {"array": str(name), **rest} if not rest and name in self.arrays:
                self._unused.discard(name)
                return array_from_bytes(self.arrays[name], self.writeable)
            case {"strings": list(items), **rest} if not rest and all(isinstance(item, str) for item in items):
                strings = np.empty(len(items), dtype=object)
                strings[:] = items
                return strings
            case {"csr": [data, indices, indptr], "shape": [int(rows), int(columns)], **rest} if not rest:
                parts = [self.decode(part, depth + 1) for part in (data, indices, indptr)]
                return _sparse_matrix(parts[0], parts[1], parts[2], rows, columns)
            case {"record": str(name), "fields": dict(fields), **rest} if not rest:
                left = self._left
                record = self._build(name, {key: self.decode(item, depth + 1) for key, item in fields.items()})
                self._records.append((record, left - self._left))
                return record
            case {"same": int(number), **rest} if not rest and 0 <= number < len(self._records):
                record, size = self._records[number]
                self._count(size)  # as if written again: what reads the records visits it again
                return record
            case {"member": str(name), "name": str(label), **rest} if not rest:
                kind = self._class(name)
                if not (isinstance(kind, type) and issubclass(kind, Enum) and label in kind.__members__):
                    raise SerializationError(f"{name!r} has no member {label[:80]!r}")
                return kind[label]
        for key, text in stored.items():
            if len(stored) == 1 and key in self.form.notations and isinstance(text, str):
                return self.form.notations[key].from_text(text)
        raise SerializationError(f"{str(stored)[:80]!r} is no value that a {self.form.name} has")

    def _count(self, values: int) -> None:
        self._left -= values
        if self._left < 0:
            raise SerializationError(f"it holds more than {self.form.value_limit} values")

    def _dict(self, pairs: list[Any], depth: int) -> dict[Any, Any]:
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise SerializationError("a dictionary is not a list of pairs")
        decoded = [(self.decode(key, depth + 1), self.decode(value, depth + 1)) for key, value in pairs]
        try:
            return dict(decoded)
        except TypeError as error:
            raise SerializationError(f"a key of a dictionary is no key ({error})") from error

    def _class(self, name: str) -> Any:
        if name not in self.classes:
            raise SerializationError(f"{name[:80]!r} is not one of the records that a {self.form.name} may hold")
        return load(self.classes[name])

    def _build(self, name: str, fields: Mapping[str, Any]) -> Any:
        kind = self._class(name)
        if not isinstance(kind, type) or not (dataclasses.is_dataclass(kind) or hasattr(kind, "_get_param_names")):
            raise SerializationError(f"{name!r} is no record")
        unknown = fields.keys() - _field_names(kind)
        if unknown:
            raise SerializationError(f"{name!r} has no field {min(unknown)[:80]!r}")
        if self.form.is_printable and not all(v.isprintable() for v in fields.values() if isinstance(v, str)):
            raise SerializationError(f"a text of {name!r} has characters that cannot be printed")
        try:
            record = kind(**fields)
            if hasattr(record, "check_stored"):
                record.check_stored()
        except Exception as error:  # invalid fields may raise anything in the class
            raise SerializationError(f"{name!r} cannot be built from its fields ({_reason(error)})") from error
        return record


def _field_names(kind: Any) -> set[str]:
    """Names of the init fields of a dataclass, or of the parameters of an estimator."""
    if dataclasses.is_dataclass(kind):
        return {field.name for field in dataclasses.fields(kind) if field.init}
    return set(kind._get_param_names())


def _sparse_matrix(data: Any, indices: Any, indptr: Any, rows: int, columns: int) -> csr_array:
    """A sparse matrix with checked indices: scipy reads outside of its arrays where they are wrong."""
    kinds = [getattr(part, "dtype", np.dtype(object)).kind for part in (data, indices, indptr)]
    if kinds != ["f", "i", "i"] or not (0 <= rows < 1 << 31 and 0 <= columns < 1 << 31):
        raise SerializationError("a sparse matrix has entries, columns, bounds of its rows, and a shape")
    if indices.shape != data.shape or data.ndim != 1 or indptr.shape != (rows + 1,):
        raise SerializationError("the rows of a sparse matrix do not fit its entries")
    if indptr[0] != 0 or indptr[-1] != data.size or (np.diff(indptr) < 0).any():
        raise SerializationError("the bounds of the rows of a sparse matrix do not rise to its entries")
    if data.size and not 0 <= indices.min() <= indices.max() < columns:
        raise SerializationError("a sparse matrix has entries outside of its shape")
    return csr_array((data, indices, indptr), shape=(rows, columns))
