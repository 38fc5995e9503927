"""Text files, plain or gzip, in blocks of complete lines; memory is proportional to the block size.

UTF-8, with or without a byte order mark; lines end in LF or CR LF. For a damaged gzip file the complete lines before
the damage are yielded first, independently of the block size.
"""

import codecs
import gzip
import zlib
from collections.abc import Iterator
from io import BufferedIOBase
from os import PathLike, fspath
from typing import cast

from formulations.arrays import as_path
from rankopt.errors import DataError

BLOCK = 1 << 20  # bytes per read
LONGEST_LINE = 1 << 26  # maximum bytes of a line, a guard against decompression bombs
ALLOWED = bytes({*range(32, 256), 9, 10, 13} - {127})
SHOWN = 60


def text_blocks(path: str | PathLike[str], size: int = BLOCK) -> Iterator[tuple[int, bytes]]:
    """Blocks of complete lines of about `size` bytes, with their first line number. DataError for damaged gzip."""
    file = as_path(path, DataError)
    number, length = 1, 0
    ready: list[bytes] = []
    rest: list[bytes] = []
    try:
        for chunk in _chunks(file):
            begin, cut = chunk.find(b"\n"), chunk.rfind(b"\n") + 1
            length += begin if cut else len(chunk)
            if length > LONGEST_LINE:
                number += sum(part.count(b"\n") for part in ready)
                raise DataError(
                    f"{file}, line {number}: the line is longer than {LONGEST_LINE} bytes; break the text into lines."
                )
            if cut:
                ready += [*rest, chunk[:cut]]
                rest, length = [], len(chunk) - cut
            rest.append(chunk[cut:])
            if sum(map(len, ready)) >= size:
                for block in _cut(b"".join(ready), size):
                    yield number, _unmarked(block, number)
                    number += block.count(b"\n")
                ready = []
    except _Damage as damage:
        if ready:
            block = b"".join(ready)
            yield number, _unmarked(block, number)
            number += block.count(b"\n")
        raise DataError(
            f"{file} cannot be unpacked beyond line {number}: {damage}; it is damaged or truncated; fetch it again."
        ) from None
    last = _unmarked(b"".join([*ready, *rest]), number)
    if last:
        yield number, last


def text_lines(path: str | PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """Numbered lines without line ends. Raises DataError naming the line of a byte that is not text."""
    for first, text in text_blocks(path):
        clean = is_text(text)
        for number, line in enumerate(text.removesuffix(b"\n").split(b"\n"), start=first):
            line = line.removesuffix(b"\r")
            if not clean:
                check_text(line, f"{fspath(path)}, line {number}")
            yield number, line


def is_text(text: bytes) -> bool:
    """Whether complete lines are UTF-8 without control characters."""
    if text.translate(None, ALLOWED) or text.removesuffix(b"\r").count(b"\r") > text.count(b"\r\n"):
        return False
    if not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError:
            return False
    return True


def check_text(line: bytes, where: str) -> None:
    """Raise DataError for the first byte of a line (without line end) that is not text."""
    if b"\r" not in line and is_text(line):
        return
    wrong = line.translate(None, bytes(set(ALLOWED) - {10, 13}))[:1]
    index = line.index(wrong) if wrong else len(line)
    try:
        line.decode()
    except UnicodeDecodeError as error:
        index = min(index, error.start)
    raise DataError(f"{where}: byte 0x{line[index]:02x} in column {index + 1} is not text; save the file as UTF-8.")


def clipped(word: bytes) -> str:
    """A word as a message can show it."""
    text = word[: 4 * SHOWN].decode(errors="replace")
    return text if len(word) <= SHOWN else f"{text[:SHOWN]}..."


class _Damage(Exception):
    """A gzip that cannot be unpacked any further."""


def _chunks(file: str) -> Iterator[bytes]:
    """The bytes of a file, unpacked, some at a time; the same some in every call."""
    with open(file, "rb") as plain:
        if plain.peek(2)[:2] != b"\x1f\x8b":
            while chunk := plain.read(BLOCK):
                yield chunk
            return
        with cast(BufferedIOBase, gzip.GzipFile(fileobj=plain, mode="rb")) as packed:
            while True:
                try:
                    chunk = packed.read1(BLOCK)
                except (EOFError, OSError, zlib.error) as error:
                    raise _Damage(str(error)) from None
                if not chunk:
                    return
                yield chunk


def _cut(text: bytes, size: int) -> Iterator[bytes]:
    """Split the text into minimal blocks of complete lines of at least `size` bytes."""
    begin = 0
    while begin < len(text):
        end = text.find(b"\n", begin + size - 1) + 1 or len(text)
        yield text[begin:end]
        begin = end


def _unmarked(text: bytes, number: int) -> bytes:
    return text.removeprefix(codecs.BOM_UTF8) if number == 1 else text
