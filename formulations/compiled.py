"""Where compiled code is kept: a file for each function, types and processor, named by the content of the source.

Numba's own cache keeps an index beside the code and goes by dates. Processes that compile side by side can make such an
index name the code of other types, and a date says little where the same version is installed again. Here the name of a
file says all, files are replaced whole, and one that was cut short or changed is compiled again.

Compiled kernels: one way to declare them, and the types of their arguments.

A kernel is compiled when it is first called, for the types of that call; its code is kept on disk (`kernel_cache`).

What is small: so little work in all that compiling code for it would take longer than any other way.
"""

from __future__ import annotations

import gc
import importlib
import logging
import os
import pickle
import pkgutil
import platform
import secrets
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache, update_wrapper
from hashlib import blake2b
from itertools import count
from multiprocessing import parent_process
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar

import numba as nb
import numpy as np
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from formulations.arrays import Ints

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


FLOATS = nb.types.Array(nb.float64, 1, "C")
INTS = nb.types.Array(nb.int64, 1, "C")
READ_FLOATS = nb.types.Array(nb.float64, 1, "C", readonly=True)
READ_INTS = nb.types.Array(nb.int64, 1, "C", readonly=True)
SHORTS = nb.types.Array(nb.int32, 1, "C")
READ_SHORTS = nb.types.Array(nb.int32, 1, "C", readonly=True)
BYTES = nb.types.Array(nb.int8, 1, "C")
"""Contiguous vectors that a kernel writes, and ones that it only reads."""

KERNELS: list[Kernel[Any, Any]] = []
"""All kernels of the modules that were imported; those that others call come before them."""

Given = ParamSpec("Given")
Told = TypeVar("Told")

PAYS = 1e8
"""Nanoseconds that NumPy may take in one process for what a kernel does, about, before the kernel is compiled: less
than the compilation takes, so that larger data do not wait."""

KEPT = 20
"""By how much sooner it is where the code lies on disk, and the process runs compiled code already."""

ONCE = 1e7
"""Nanoseconds from which a single call has the kernel compiled."""

CALL = 2e4
"""Nanoseconds that a call of NumPy's functions costs, whatever it goes over."""


def compiled(
    signature: Any, reassociate: bool = False, numpy: Callable[..., Any] | None = None
) -> Callable[[Callable[Given, Told]], Kernel[Given, Told]]:
    """Let a function be compiled for a signature, or of a list of them for the one that it is called with.

    It runs without the lock of the interpreter, so `formulations.parallel.share` can run parts of a job side by side.
    reassociate: sums may be taken in another order, one that depends on their length alone, which makes them fast.
    numpy: the same by whole arrays, for `Kernel.in_python`; it may round otherwise.

    What NumPy has and numba compiles as functions of its own (`np.sort`, `np.argsort`) must not be used in it: numba
    names these by a counter of the process, and the code of two processes, with one name for two things, kills a third.
    """
    signatures = signature if isinstance(signature, list) else [signature]
    return lambda function: Kernel(function, signatures, reassociate, numpy)


class Kernel(Generic[Given, Told]):
    """A function and its compiled forms, one a signature; called like the function.

    function: the same in Python. content: a digest of what it is made of. signatures: their argument types differ.
    """

    __name__: str

    running: ClassVar[bool] = False
    """Whether this process has called compiled code."""

    def __init__(
        self,
        function: Callable[Given, Told],
        signatures: list[Any],
        reassociate: bool,
        numpy: Callable[..., Any] | None,
    ) -> None:
        update_wrapper(self, function)
        self._numpy = numpy
        self.function, self.signatures, self.content = function, signatures, _content(function)
        self._fastmath = {"reassoc", "contract", "nsz"} if reassociate else False
        first = signatures[0].args
        self._telling = [place for place in range(len(first)) if any(s.args[place] != first[place] for s in signatures)]
        self._of_types: dict[Any, Any] = {}
        self._codes: dict[Any, Any] = {}
        self._spared = 0.0
        KERNELS.append(self)

    def __call__(self, *arguments: Given.args, **_: Given.kwargs) -> Told:
        given: tuple[Any, ...] = arguments
        types = tuple([given[place].dtype for place in self._telling])
        try:
            code = self._of_types[types]
        except KeyError:
            code = self._of_types[types] = self.code(self._signature_of(types))
        told: Told = code(*arguments)
        return told

    def pays(self, nanoseconds: float) -> bool:
        """Whether the kernel is better compiled than spared work that takes NumPy so long, about, after what it was
        asked before. For kernels that have a twin in NumPy with the same bits, so that none depends on the answer."""
        self._spared += nanoseconds + CALL
        if self._spared > PAYS or nanoseconds > ONCE:
            return True
        return KEPT * self._spared > PAYS and Kernel.running and self._kept

    @cached_property
    def _kept(self) -> bool:
        """Whether the code lay on disk when it was asked first."""
        return all(KernelCache(self.function, self.content).holds(signature) for signature in self.signatures)

    def ready(self) -> None:
        """Make the code of all signatures ready: from disk, or compiled now."""
        for signature in self.signatures:
            self.code(signature)

    @cached_property
    def in_python(self) -> Callable[Given, Told]:
        """The function as Python runs it, with what it calls: for problems so small that this costs less than to
        compile. Kernels that say the same by whole arrays are taken so."""
        if self._numpy is not None:
            return self._numpy
        known, code = self.function.__globals__, self.function.__code__
        called = {name: known[name] for name in code.co_names if isinstance(known.get(name), Kernel)}
        return FunctionType(code, {**known, **{name: kernel.in_python for name, kernel in called.items()}})

    def __reduce__(self) -> str:
        return self.__name__  # found again in its module

    @property
    def _numba_type_(self) -> Any:
        """What numba asks for where another kernel calls this one."""
        return nb.types.Dispatcher(self._inner)

    def _signature_of(self, types: tuple[Any, ...]) -> Any:
        for signature in self.signatures:
            wanted = [np.dtype(str(signature.args[place].dtype)) for place in self._telling]
            if wanted == list(types):
                return signature
        raise TypeError(f"no kernel {self.__name__!r} takes arrays of {', '.join(map(str, types))}")

    def code(self, signature: Any) -> Any:
        """The compiled form for a signature that Python calls, from disk or compiled now."""
        with global_compiler_lock:
            if signature not in self._codes:
                self._codes[signature] = self._compiled(signature, KernelCache(self.function, self.content))
                Kernel.running = True
        return self._codes[signature]

    @cached_property
    def _inner(self) -> Any:
        """What other kernels take in: without the way in from Python, which costs as much again, and kept with them."""
        (signature,) = self.signatures
        return self._compiled(signature, NullCache(), no_cpython_wrapper=True)

    def _compiled(self, signature: Any, cache: Any, **options: Any) -> Any:
        with global_compiler_lock, _collecting_later():
            options = {"nogil": True, "no_cfunc_wrapper": True, **options}
            dispatcher = nb.njit(fastmath=self._fastmath, **options)(self.function)
            dispatcher._cache = cache
            dispatcher.compile(signature)
            dispatcher.disable_compile()
        return dispatcher


@contextmanager
def _collecting_later() -> Iterator[None]:
    """Without the search for garbage, which takes a tenth of the time of compiling and finds little."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def kernels_of(*packages: str) -> list[Kernel[Any, Any]]:
    """All kernels of these packages, whose modules are imported."""
    for name in packages:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    return [kernel for kernel in KERNELS if kernel.__module__.startswith(tuple(f"{name}." for name in packages))]


def _content(function: Callable[..., Any]) -> str:
    """Digest of a kernel: its bytecode, and the kernels and constants that it uses, in whatever file they are."""
    used = [function.__globals__.get(name) for name in function.__code__.co_names]
    parts = [getattr(value, "content", None) or repr(value) for value in used if not isinstance(value, ModuleType)]
    return blake2b(repr((_bytecode(function.__code__), function.__defaults__, parts)).encode()).hexdigest()


def _bytecode(code: CodeType) -> tuple[Any, ...]:
    """What a code object computes: no line numbers and no path, so that neither moving nor merging files changes it."""
    constants = [_bytecode(value) if isinstance(value, CodeType) else value for value in code.co_consts]
    return code.co_code, constants, code.co_names, code.co_varnames


def _number_anew() -> None:
    """Let numba's names be this process's own.

    The functions of its own library that numba compiles into a kernel are named by a counter. Where the code of two
    processes meets in a third, equal names must be equal code, so each process counts from a number that it draws.
    """
    FunctionIdentity._unique_ids = count(secrets.randbits(62))


_number_anew()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_number_anew)


ROWS = 1 << 11
"""Documents of a small batch, at most."""

PAIRS = 1 << 18
"""Pairs of documents of one query in it, at most."""

STATES = 1 << 18
"""States, in all, of the lattices of small data that may be searched without compiled code."""


def is_small(offsets: Ints) -> bool:
    """Whether queries of these documents, query q having rows offsets[q] : offsets[q + 1], are a small batch.

    It is asked once of all the data that belong together, and never of a part: ways may differ in how they round.
    """
    lengths = np.diff(offsets)
    return bool(offsets[-1] <= ROWS and lengths @ lengths <= PAIRS)
