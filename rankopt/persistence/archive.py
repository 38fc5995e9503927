"""Archives of named, hashed members: zip files that are written atomically and validated when read.

Only the kind of zip that `write_archive` writes is read. Members are stored without compression, so that sizes are
bounded and equal content gives equal bytes. Time stamps are fixed. The member `SHA256SUMS` has the digest of each other
member in the format of `sha256sum`.

Arrays are npy files of version 1.0. The JSON manifest is bounded before it is parsed; duplicate names are refused.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import secrets
import struct
import zipfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import ModelError

LIMIT = 1 << 30
"""Largest size of a file in bytes, written or read."""

DIRECTORY_LIMIT = 1 << 20
"""Largest size of the zip's central directory in bytes: some thousand members."""

SUMS = "SHA256SUMS"
NAME = re.compile(r"[A-Za-z0-9_]+(/[A-Za-z0-9_]+)*\.(json|npy)")
"""Valid member names: no absolute paths, no `..`, no hidden files."""

_STAMP = (1980, 1, 1, 0, 0, 0)
_END = struct.Struct("<4s4H2LH")  # the record that ends a zip without comment
_UNREADABLE = (
    zipfile.BadZipFile, zipfile.LargeZipFile, struct.error, EOFError, OSError, ValueError, KeyError, IndexError,
    RuntimeError, NotImplementedError, OverflowError, MemoryError,
)  # fmt: skip


def write_archive(path: str | PathLike[str], members: Mapping[str, bytes], links: bool = True) -> None:
    """Write the members to `path`. An existing file is replaced atomically: after any failure the old file is intact.

    links: as in `write_whole`.

    Raises ModelError when the file would be larger than can be read back, OSError when it cannot be written.
    """
    sums = "".join(f"{hashlib.sha256(members[name]).hexdigest()}  {name}\n" for name in sorted(members))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in [*sorted(members.items()), (SUMS, sums.encode())]:
            member = zipfile.ZipInfo(name, _STAMP)
            member.create_system = 3  # the same bytes on every system
            member.external_attr = 0o644 << 16
            archive.writestr(member, content)
    content = buffer.getvalue()
    if len(content) > LIMIT:
        raise ModelError(f"{path} cannot be written because it would have {len(content)} bytes, more than {LIMIT}.")
    write_whole(path, content, links)


def write_whole(path: str | PathLike[str], content: bytes, links: bool = True) -> None:
    """Write a file atomically: after any failure, also of the machine, it has the old or the new content.

    links: whether a symbolic link `path` is followed; else the link itself is replaced.
    """
    target = Path(os.path.realpath(path)) if links else Path(path)
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


def read_archive(path: str | PathLike[str]) -> dict[str, bytes]:
    """The members of a file of `write_archive`, each checked against its digest.

    Raises ModelError for any other file: no zip, truncated, changed, compressed, encrypted, unsafe names, false sizes.
    Raises OSError when the file cannot be opened.
    """
    with open(path, "rb") as file:
        content = file.read(min(os.fstat(file.fileno()).st_size, LIMIT) + 1)  # this much memory is allocated at once
    if len(content) > LIMIT:
        raise ModelError(f"{path} cannot be loaded because it has more than {LIMIT} bytes; no saved model has.")
    _check_end(path, content)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_contents(path, archive, len(content))
            members = {member.filename: archive.read(member) for member in archive.infolist()}
    except ModelError:
        raise
    except _UNREADABLE as error:
        raise _damaged(path, str(error)) from error
    _check_sums(path, members)
    del members[SUMS]
    return members


def _damaged(path: str | PathLike[str], why: str) -> ModelError:
    return ModelError(f"{path} cannot be loaded because it is damaged or not a saved model ({why}); save it again.")


def _check_end(path: str | PathLike[str], content: bytes) -> None:
    """Bound the central directory before zipfile reads it: a false size there would exhaust memory."""
    if len(content) < _END.size:
        raise _damaged(path, f"{len(content)} bytes")
    signature, _, _, _, _, size, start, comment = _END.unpack(content[-_END.size :])
    if signature != b"PK\5\6" or comment or content[-_END.size - 20 : -_END.size - 16] == b"PK\6\7":
        raise _damaged(path, "no end of a plain zip file")
    if size > DIRECTORY_LIMIT or start + size + _END.size != len(content):
        raise _damaged(path, "its central directory is not at the offset in the file")


def _check_contents(path: str | PathLike[str], archive: zipfile.ZipFile, size: int) -> None:
    names: set[str] = set()
    declared = 0
    for member in archive.infolist():
        name = member.filename
        if name != SUMS and not NAME.fullmatch(name):
            raise _damaged(path, f"a member is named {name[:80]!r}")
        if name in names:
            raise _damaged(path, f"two members are named {name!r}")
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 0x1:
            raise _damaged(path, f"{name!r} is compressed or encrypted")
        declared += max(member.file_size, member.compress_size)
        if declared > size:
            raise _damaged(path, f"its members claim {declared} bytes, the file has {size}")
        names.add(name)
    if SUMS not in names:
        raise _damaged(path, f"no {SUMS}")


def _check_sums(path: str | PathLike[str], members: Mapping[str, bytes]) -> None:
    try:
        lines = members[SUMS].decode("ascii").splitlines()
    except UnicodeDecodeError as error:
        raise _damaged(path, f"{SUMS} is not text") from error
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    if sums.keys() != members.keys() - {SUMS} or len(lines) != len(sums):
        raise _damaged(path, f"{SUMS} lists other members than the file has")
    for name, digest in sums.items():
        if hashlib.sha256(members[name]).hexdigest() != digest:
            raise _damaged(path, f"the sha256 of {name!r} differs")


KINDS = "biuf"
"""NumPy kinds of numbers: booleans, signed and unsigned integers, floats."""

HEADER = 4096
"""Largest size of an array's header in bytes."""


def npy_of(array: NDArray[Any]) -> bytes:
    """The npy file of an array of numbers: little endian, C order, the same bytes on every platform."""
    buffer = io.BytesIO()
    plain = np.array(array, dtype=array.dtype.newbyteorder("<"), order="C")
    np.lib.format.write_array(buffer, plain, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def array_of(content: bytes) -> NDArray[Any]:
    """The read-only array of an npy file. Raises ModelError unless content and header agree in size."""
    try:
        file = io.BytesIO(content)
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError("not version 1.0")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file, max_header_size=HEADER)
        if dtype.kind not in KINDS:
            raise ValueError(f"its type is {dtype}")
        if fortran or any(length < 0 for length in shape):
            raise ValueError(f"its shape is {shape}, fortran_order {fortran}")
        start = file.tell()
        if math.prod(shape) * dtype.itemsize != len(content) - start:
            raise ValueError(f"shape {shape} does not fill {len(content) - start} bytes")
        array = np.frombuffer(content, dtype=dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))
    except Exception as error:  # a malformed header may raise anything in the parser
        raise ModelError(f"an array is not a plain npy file ({error}).") from error
    array.setflags(write=False)
    return array


LIMIT_MANIFEST = 1 << 24
"""Largest size of the JSON manifest in bytes; large arrays are members of their own."""


def manifest_of(content: bytes, name: str, form: str, limit: int = LIMIT_MANIFEST) -> dict[str, Any]:
    """The JSON object in a file whose entry "format" is `form`.

    Raises ModelError for another format, invalid JSON, a file that is too long, or nesting beyond Python's limit.
    """
    if len(content) > limit:
        raise ModelError(f"{name} has {len(content)} bytes, and no {form} more than {limit}.")
    try:
        manifest = json.loads(content.decode("utf-8"), object_pairs_hook=_distinct, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{name} is missing or not its JSON ({error}).") from error
    if not isinstance(manifest, dict) or manifest.get("format") != form:
        raise ModelError(f"it is not a {form}.")
    return manifest


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) != len(pairs):
        raise ValueError("a name occurs twice")
    return names


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
