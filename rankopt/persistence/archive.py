"""A file of named, hashed members: a zip that is written whole or not at all, and read without trust.

The only zip that is read is the kind that is written: members stored without compression (so none can grow while it is
read, and equal content gives equal bytes), a fixed time stamp, and a member `SHA256SUMS` with the digest of each other
member in the format of `sha256sum`.
"""

import hashlib
import io
import os
import re
import secrets
import struct
import zipfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from rankopt.errors import ModelError

LIMIT = 1 << 30
"""Bytes that a file may have, written or read."""

DIRECTORY_LIMIT = 1 << 20
"""Bytes that the zip's table of contents may have: some thousand members."""

SUMS = "SHA256SUMS"
NAME = re.compile(r"[A-Za-z0-9_]+(/[A-Za-z0-9_]+)*\.(json|npy)")
"""What a member may be called: nothing absolute, nothing with `..`, nothing hidden."""

_STAMP = (1980, 1, 1, 0, 0, 0)
_END = struct.Struct("<4s4H2LH")  # the record that ends a zip without comment
_UNREADABLE = (
    zipfile.BadZipFile, zipfile.LargeZipFile, struct.error, EOFError, OSError, ValueError, KeyError, IndexError,
    RuntimeError, NotImplementedError, OverflowError, MemoryError,
)  # fmt: skip


def write_archive(path: str | PathLike[str], members: Mapping[str, bytes], links: bool = True) -> None:
    """Write the members to `path`, replacing a file there in one step: after any failure the old file is whole.

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
    """Write a file in one step: after any failure, of the machine too, it is the old one or the new one.

    links: where `path` is a link the file that it names is replaced, else the link itself.
    """
    target = Path(os.path.realpath(path)) if links else Path(path)
    if target.exists() and not (target.is_file() or target.is_symlink()):  # a device or a pipe stays what it is
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

    Raises ModelError for everything else: no zip, cut off, changed, compressed, encrypted, names that lead elsewhere,
    declared sizes that the file does not have. OSError when the file cannot be opened.
    """
    with open(path, "rb") as file:
        content = file.read(min(os.fstat(file.fileno()).st_size, LIMIT) + 1)  # so much room is taken at once
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
    """Bound the table of contents before zipfile reads it: a false size there costs memory, not only an error."""
    if len(content) < _END.size:
        raise _damaged(path, f"{len(content)} bytes")
    signature, _, _, _, _, size, start, comment = _END.unpack(content[-_END.size :])
    if signature != b"PK\5\6" or comment or content[-_END.size - 20 : -_END.size - 16] == b"PK\6\7":
        raise _damaged(path, "no end of a plain zip file")
    if size > DIRECTORY_LIMIT or start + size + _END.size != len(content):
        raise _damaged(path, "its table of contents is not where the file says")


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
