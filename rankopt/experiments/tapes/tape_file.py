"""The file of a tape, read without trust: an .npz of plain arrays, each held to the size that its header says.

Nothing is unpickled, nothing is larger than the limits below, and whatever is not as `Tape.save` writes it is a
DataError that names the file.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
import zlib
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from rankopt.errors import DataError

__all__ = ["FORMAT", "checked_meta", "members"]

FORMAT = "rankopt tape 1"

BYTES, TEXT, PROBLEMS, WORD = 1 << 31, 1 << 27, 1 << 18, 400
"""What a tape may have: bytes unpacked, bytes of its JSON, problems and records, letters of a name."""

_UNREADABLE = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, ValueError, KeyError, EOFError, RuntimeError, TypeError,
    NotImplementedError, OverflowError, RecursionError, SyntaxError, IndexError, AttributeError, MemoryError,
)  # fmt: skip


def members(path: str | PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The JSON of a tape and its arrays by name. OSError where the file cannot be opened."""
    try:
        with zipfile.ZipFile(path) as file:
            listed = file.infolist()
            if sum(one.file_size for one in listed) > BYTES or len({one.filename for one in listed}) != len(listed):
                raise DataError(
                    f"{fspath(path)} is no tape: it unpacks to more than {BYTES} bytes, or names a part twice"
                )
            arrays = {one.filename.removesuffix(".npy"): _array(file, one) for one in listed}
        meta = arrays.pop("meta")
        if meta.dtype != np.uint8 or meta.size > TEXT:
            raise ValueError("its JSON is no text, or too long")
        return json.loads(meta.tobytes().decode()), arrays
    except _UNREADABLE as error:
        why = f"{type(error).__name__} {error}"[:200].strip()
        raise DataError(f"{fspath(path)} is no tape, or a damaged one: {why}; record it again") from error


def _array(file: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """One array; its header is read before any room is taken."""
    content = io.BytesIO(file.read(member))
    version = npy.read_magic(content)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    shape, by_columns, dtype = read[version](content)
    if dtype.kind not in "biuf" or content.tell() + math.prod(shape) * dtype.itemsize != member.file_size:
        raise ValueError(f"its part {member.filename[:40]!r} is no array of numbers, or of another size")
    flat = np.frombuffer(content.read(), dtype=dtype)
    return flat.reshape(shape, order="F" if by_columns else "C")


def checked_meta(path: str | PathLike[str], meta: Any) -> tuple[str, list[tuple[str, int | None, int]]]:
    """The label, and name, step and number of each problem. Raises DataError for what `Tape.save` does not write."""
    file = fspath(path)
    told = meta.get("format") if isinstance(meta, dict) else None
    if told != FORMAT:
        raise DataError(f"{file} has the format {str(told)[:40]!r}, not {FORMAT!r}; record it again")
    label, problems, records = (meta.get(name) for name in ("label", "problems", "records"))
    if not (_is_word(label) and isinstance(problems, list) and isinstance(records, list)):
        raise DataError(f"{file} is damaged: a tape needs a label, problems and records; record it again")
    if not 0 < len(problems) <= PROBLEMS or len(records) > PROBLEMS:
        raise DataError(f"{file} has {len(problems)} problems, {len(records)} records; a tape has 1 to {PROBLEMS}")
    for problem in problems:
        fits = isinstance(problem, list) and len(problem) == 3 and _is_word(problem[0])
        if not fits or not (problem[1] is None or _is_count(problem[1])) or not _is_count(problem[2]):
            raise DataError(f"{file} is damaged: a problem is a name, a step and a number of a record; record it again")
    if len({problem[0] for problem in problems}) < len(problems):
        raise DataError(f"{file} has two problems of one name; record it again")
    return label, [(name, step, number) for name, step, number in problems]


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= WORD and value.isprintable()


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53
