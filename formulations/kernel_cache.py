"""Where compiled code is kept: a file for each function, types and processor, named by the content of the source.

Numba's own cache keeps an index beside the code and goes by dates. Processes that compile side by side can make such an
index name the code of other types, and a date says little where the same version is installed again. Here the name of a
file says all, files are replaced whole, and one that was cut short or changed is compiled again.
"""

from __future__ import annotations

import logging
import os
import pickle
import platform
import secrets
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

import numba as nb
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target

__all__ = ["KernelCache", "folder", "readable"]

LOGGER = logging.getLogger("formulations.compiled")

DIGEST = 32
"""Bytes at the start of a file: the digest of the others."""

OLD = 30 * 24 * 3600.0
"""Seconds after which code of another version of a function is removed when a new one is kept."""


class KernelCache:
    """The code of one function, as numba's dispatchers ask for it. content: a digest of all that it is made of."""

    cache_path = None

    def __init__(self, function: Callable[..., Any], content: str) -> None:
        self.name, self.content = f"{function.__module__}.{function.__qualname__}", content
        self.folder = folder()

    def load_overload(self, signature: Any, context: Any) -> Any:
        """The code for a signature, or None; it is about to be compiled then, and one line says so, once a process."""
        context.refresh()
        for place in readable():
            with suppress(OSError, ValueError, EOFError, pickle.UnpicklingError):
                return self._read(place / self._file(signature, context), context)
        _tell(self.folder)
        return None

    def holds(self, signature: Any) -> bool:
        """Whether a file has the code for a signature."""
        file = self._file(signature, cpu_target.target_context)
        return any((place / file).is_file() for place in readable())

    def _read(self, path: Path, context: Any) -> Any:
        kept = path.read_bytes()
        if blake2b(kept[DIGEST:], digest_size=DIGEST).digest() != kept[:DIGEST]:
            raise ValueError(f"{path} was changed or cut short")
        return CompileResult._rebuild(context, *pickle.loads(kept[DIGEST:]))

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep the code; where that fails (a full disk), the next process compiles again."""
        if compiled.library.has_dynamic_globals or self.folder is None:
            return
        try:
            content = pickle.dumps(compiled._reduce(), protocol=pickle.HIGHEST_PROTOCOL)
        except pickle.PicklingError:  # it calls kernels that no module holds
            return
        path = self.folder / self._file(signature, compiled.target_context)
        written = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        with suppress(OSError):
            try:
                written.write_bytes(blake2b(content, digest_size=DIGEST).digest() + content)
                written.replace(path)
            finally:
                written.unlink(missing_ok=True)
            for other in self.folder.glob(f"{self.name}-*"):
                if time.time() - other.stat().st_mtime > OLD:
                    other.unlink()

    def _file(self, signature: Any, context: Any) -> str:
        machine = (context.codegen().magic_tuple(), nb.__version__, platform.python_version())
        about = repr((self.content, str(signature), *machine))
        return f"{self.name}-{blake2b(about.encode(), digest_size=12).hexdigest()}.nbc"


def folder() -> Path | None:
    """Where code is kept: the first that can be written to of the folder that NUMBA_CACHE_DIR names, one beside the
    package, one of the user's, and one of the user's own under the system's temporary folder; None if none can."""
    return _places(nb.config.CACHE_DIR)[0]


def readable() -> tuple[Path, ...]:
    """Where code is looked for: those of these folders that exist, up to the one that is written to."""
    return _places(nb.config.CACHE_DIR)[1]


@lru_cache
def _places(named: str) -> tuple[Path | None, tuple[Path, ...]]:
    found = []
    for path, own in _folders(named):
        with suppress(OSError):
            if own and path.is_symlink():
                continue
            with suppress(OSError):
                path.mkdir(mode=0o700 if own else 0o777, parents=not own, exist_ok=True)
            if not path.is_dir() or (own and not _is_own(path)):
                continue  # code that another put there would be run
            found.append(path)
            tempfile.TemporaryFile(dir=path).close()
            return path, tuple(found)
    return None, tuple(found)


def _folders(named: str) -> Iterator[tuple[Path, bool]]:
    """The folders, and whether each must be the user's alone."""
    if named:
        yield Path(named) / "rankopt", False
    yield Path(__file__).parent / "__pycache__" / "kernels", False
    with suppress(RuntimeError):  # no home
        home = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME") or Path.home() / ".cache"
        yield Path(home) / "rankopt" / "kernels", False
    yield Path(tempfile.gettempdir()) / f"rankopt-kernels-{os.getuid() if hasattr(os, 'getuid') else 'own'}", True


def _is_own(path: Path) -> bool:
    found = path.lstat()
    mine = not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o077)
    return stat.S_ISDIR(found.st_mode) and mine


@lru_cache
def _tell(kept_in: Path | None) -> None:
    line = (
        "compiling, once"
        if kept_in
        else "compiling; no folder can be written to, so every process does (set NUMBA_CACHE_DIR)"
    )
    LOGGER.info(line)
    if sys.stderr is not None and sys.stderr.isatty() and parent_process() is None:
        sys.stderr.write(f"rankopt: {line}\n")
