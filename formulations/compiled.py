"""Compilation of kernels, and a cache of compiled code on disk.

A kernel is compiled when it is first called, for the types of that call. Each function, signature and processor has a
file of its own, named by the content of the source. Files are replaced atomically; a truncated or modified file is
compiled again. Numba's own cache uses an index and timestamps, which concurrent processes and reinstallations break.

A batch is small if its total work takes less time than compiling a kernel. `Deferral` says when small batches use
compiled code.
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
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from formulations.arrays import Ints

LOGGER = logging.getLogger("formulations.compiled")

DIGEST = 32  # bytes at the start of a file: the digest of the others
OLD = 30 * 24 * 3600.0  # seconds after which code of another version of a function is removed when a new one is stored


class KernelCache:
    """The code cache of one function, in the interface of numba's dispatchers. content: a digest of the kernel."""

    cache_path = None

    def __init__(self, function: Callable[..., Any], content: str) -> None:
        self.name, self.content = f"{function.__module__}.{function.__qualname__}", content
        self.folder = folder()

    def load_overload(self, signature: Any, context: Any) -> Any:
        """The code for a signature, or None if it must be compiled; then one message a process is printed."""
        context.refresh()
        for folder in readable():
            with suppress(OSError, ValueError, EOFError, pickle.UnpicklingError):
                return self._read(folder / self._file(signature, context), context)
        _report_compiling(self.folder)
        return None

    def holds(self, signature: Any) -> bool:
        """Whether a file has the code for a signature."""
        file = self._file(signature, cpu_target.target_context)
        return any((folder / file).is_file() for folder in readable())

    def _read(self, path: Path, context: Any) -> Any:
        stored = path.read_bytes()
        if blake2b(stored[DIGEST:], digest_size=DIGEST).digest() != stored[:DIGEST]:
            raise ValueError(f"{path} is truncated or was modified")
        return CompileResult._rebuild(context, *pickle.loads(stored[DIGEST:]))

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Write the code. If that fails (a full disk), the next process compiles again."""
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
    """The directory that compiled code is written to: the first writable one of NUMBA_CACHE_DIR, a directory next to
    the package, the user's cache directory, and a private one in the system's temporary directory; else None."""
    return _find_folders(nb.config.CACHE_DIR)[0]


def readable() -> tuple[Path, ...]:
    """The directories that compiled code is read from: the existing ones up to the writable one."""
    return _find_folders(nb.config.CACHE_DIR)[1]


@lru_cache
def _find_folders(named: str) -> tuple[Path | None, tuple[Path, ...]]:
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
    """The directories, and whether each must belong to the user alone."""
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
def _report_compiling(directory: Path | None) -> None:
    line = (
        "compiling, once per machine: up to a minute"
        if directory
        else "compiling; no folder can be written to, so every process does (set NUMBA_CACHE_DIR)"
    )
    LOGGER.info(line)
    if sys.stderr is not None and sys.stderr.isatty() and parent_process() is None:
        sys.stderr.write(f"rankopt: {line}\n")


FLOATS = nb.types.Array(nb.float64, 1, "C")  # a contiguous vector that a kernel writes, and ones that it only reads
READ_FLOATS = nb.types.Array(nb.float64, 1, "C", readonly=True)
READ_INTS = nb.types.Array(nb.int64, 1, "C", readonly=True)

NUMBERS = {"None": nb.void, "bool": nb.boolean, "int": nb.int64, "float": nb.float64}
ARRAYS = {
    "Floats": nb.float64, "Ints": nb.int64, "Shorts": nb.int32, "Bytes": nb.int8, "Bools": nb.boolean, "Text": nb.uint8,
}  # fmt: skip

KERNELS: list[Kernel[Any, Any]] = []
"""All kernels of the modules that were imported; those that others call come before them."""

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")

PAYS = 1e8
"""Nanoseconds that NumPy may take in one process for what a kernel does, about, before the kernel is compiled: less
than the compilation takes, so that larger data do not wait."""

CACHE_GAIN = 20  # by how much sooner it is where the code lies on disk, and the process runs compiled code already
ONCE = 1e7  # nanoseconds from which a single call has the kernel compiled
CALL = 2e4  # nanoseconds that a call of NumPy's functions costs, whatever it goes over


def compiled(
    signature: Any = None, reassociate: bool = False, numpy: Callable[..., Any] | None = None, internal: bool = False
) -> Callable[[Callable[Arguments, Returned]], Kernel[Arguments, Returned]]:
    """Compile a function for the types of its annotations; or for a signature, or the matching one of a list at each
    call. An annotated array is contiguous, of one dimension and only read, unless it is a `Table`, a `Cube` or `Out`.

    The kernel releases the GIL, so `formulations.parallel.share` runs parts of a job in parallel.
    reassociate: sums may be reordered for speed; the order depends on their length alone.
    numpy: a vectorized equivalent for `Kernel.in_python`; it may round differently.
    internal: only kernels call it, so `Kernel.ready` compiles no form for Python.

    A kernel must not call NumPy functions that numba compiles separately (`np.sort`, `np.argsort`): numba names them by
    a counter of the process. Equal names for different code from two processes crash a third process.
    """

    def kernel(function: Callable[Arguments, Returned]) -> Kernel[Arguments, Returned]:
        stated = _annotated(function) if signature is None else signature
        return Kernel(function, stated if isinstance(stated, list) else [stated], reassociate, numpy, internal)

    return kernel


def _annotated(function: Callable[..., Any]) -> Any:
    """The signature of the annotations of a function: numbers, arrays, tuples, and a NamedTuple of such fields."""

    def type_of(name: str) -> Any:
        kind, _, inner = name.removesuffix("]").partition("[")
        if kind == "tuple":
            return nb.types.Tuple([type_of(part) for part in inner.split(", ")])
        if kind == "Out":
            return type_of(inner).copy(readonly=False)
        if name in NUMBERS:
            return NUMBERS[name]
        number = ARRAYS.get(inner or name)
        if number is not None:
            return nb.types.Array(number, {"Table": 2, "Cube": 3}.get(kind, 1), "C", readonly=True)
        known = function.__globals__[name]
        return nb.types.NamedTuple([type_of(field.__forward_arg__) for field in known.__annotations__.values()], known)

    *arguments, returned = map(type_of, function.__annotations__.values())
    return returned(*arguments)


class inlined(Generic[Arguments, Returned]):
    """A short function that numba copies into the kernels that call it and does not compile by itself; elsewhere it is
    plain Python. It must not call kernels."""

    targetoptions: ClassVar[dict[str, str]] = {"inline": "always"}
    _numba_type_ = nb.types.Dummy("inlined")

    __name__: str

    def __init__(self, function: Callable[Arguments, Returned]) -> None:
        update_wrapper(self, function)
        self.py_func, self.content = function, _content(function)

    def __call__(self, *arguments: Arguments.args, **named: Arguments.kwargs) -> Returned:
        return self.py_func(*arguments, **named)

    def __reduce__(self) -> str:
        return self.__name__  # found again in its module


class Kernel(Generic[Arguments, Returned]):
    """A function and its compiled forms, one per signature; called like the function.

    function: the Python function. content: a digest of its source. signatures: must differ in their argument types.
    """

    __name__: str

    running: ClassVar[bool] = False
    """Whether this process has called compiled code."""

    def __init__(
        self,
        function: Callable[Arguments, Returned],
        signatures: list[Any],
        reassociate: bool,
        numpy: Callable[..., Any] | None,
        internal: bool,
    ) -> None:
        update_wrapper(self, function)
        self._numpy, self.internal = numpy, internal
        self.function, self.signatures, self.content = function, signatures, _content(function)
        self._fastmath = {"reassoc", "contract", "nsz"} if reassociate else False
        first = signatures[0].args
        self._telling = [index for index in range(len(first)) if any(s.args[index] != first[index] for s in signatures)]
        self._of_types: dict[Any, Any] = {}
        self._codes: dict[Any, Any] = {}
        self._spared = 0.0
        KERNELS.append(self)

    def __call__(self, *arguments: Arguments.args, **_: Arguments.kwargs) -> Returned:
        values: tuple[Any, ...] = arguments
        types = tuple([values[index].dtype for index in self._telling])
        try:
            code = self._of_types[types]
        except KeyError:
            code = self._of_types[types] = self.code(self._signature_of(types))
        result: Returned = code(*arguments)
        return result

    def pays(self, nanoseconds: float) -> bool:
        """Whether compiling saves time if NumPy takes this long for the work, with earlier calls. Only for kernels
        with a bit-identical NumPy equivalent, so that no result depends on the answer."""
        self._spared += nanoseconds + CALL
        if self._spared > PAYS or nanoseconds > ONCE:
            return True
        return CACHE_GAIN * self._spared > PAYS and Kernel.running and self._is_cached

    @property
    def is_ready(self) -> bool:
        """Whether a call compiles nothing: the code was used before, or lies on disk."""
        return len(self._codes) == len(self.signatures) or self._is_cached

    @cached_property
    def _is_cached(self) -> bool:
        """Whether the code was on disk at the first check."""
        return all(KernelCache(self.function, self.content).holds(signature) for signature in self.signatures)

    def ready(self) -> None:
        """Load or compile the code that Python calls: of all signatures, and nothing for an internal kernel."""
        for signature in () if self.internal else self.signatures:
            self.code(signature)

    @cached_property
    def in_python(self) -> Callable[Arguments, Returned]:
        """The function, with the kernels that it calls, in pure Python or NumPy (`numpy`): for small problems."""
        if self._numpy is not None:
            return self._numpy
        known, code = self.function.__globals__, self.function.__code__
        called = {name: known[name] for name in code.co_names if isinstance(known.get(name), Kernel)}
        return FunctionType(code, {**known, **{name: kernel.in_python for name, kernel in called.items()}})

    def __reduce__(self) -> str:
        return self.__name__  # found again in its module

    @property
    def _numba_type_(self) -> Any:
        """The type that numba uses where another kernel calls this one."""
        return nb.types.Dispatcher(self._inner)

    def _signature_of(self, types: tuple[Any, ...]) -> Any:
        for signature in self.signatures:
            wanted = [np.dtype(str(signature.args[index].dtype)) for index in self._telling]
            if wanted == list(types):
                return signature
        raise TypeError(f"no signature of kernel {self.__name__!r} takes arrays of {', '.join(map(str, types))}")

    def code(self, signature: Any) -> Any:
        """The compiled form for a signature that Python calls, from disk or compiled now."""
        with global_compiler_lock:
            if signature not in self._codes:
                self._codes[signature] = self._compiled(signature, KernelCache(self.function, self.content))
                Kernel.running = True
        return self._codes[signature]

    @cached_property
    def _inner(self) -> Any:
        """The form that other kernels call: without the Python wrapper, which takes as long to compile."""
        (signature,) = self.signatures
        return self._compiled(signature, NullCache(), no_cpython_wrapper=True, pipeline_class=_LinkedCompiler)

    def _compiled(self, signature: Any, cache: Any, **options: Any) -> Any:
        with global_compiler_lock, _collecting_later():
            options = {"nogil": True, "no_cfunc_wrapper": True, **options}
            dispatcher = nb.njit(fastmath=self._fastmath, **options)(self.function)
            dispatcher._cache = cache
            dispatcher.compile(signature)
            dispatcher.disable_compile()
        return dispatcher


class Deferral:
    """Small work that is done without compiled code until that has taken as long as compiling would, or the code lies
    on disk. Results of both ways may differ in the last bits, so what must not depend on the machine's past, such as
    training, decides by its data alone (`is_small`)."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    def ends(self, *kernels: Kernel[Any, Any]) -> bool:
        """Whether to use these kernels now."""
        return self.left <= 0.0 or all(kernel.is_ready for kernel in kernels)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the time of the block."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.left -= time.perf_counter() - began


class _LinkedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The LLVM code of a kernel that kernels call: optimized and translated to machine code in the callers only. Where
    sums may be reordered it is optimized here, so that their order is that of the kernel in all callers."""

    reassociates = False

    def _optimize_final_module(self) -> None:
        if self.reassociates:
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, *_: Any) -> None:
        """Numba stores the environment next to the machine code; there is none."""


class _LinkedCompiler(Compiler):  # type: ignore[misc]
    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *options: Any) -> None:
        linked = _LinkedLibrary(targetctx.codegen(), "linked")
        super().__init__(typingctx, targetctx, linked, *options)
        linked.reassociates = bool(self.state.flags.fastmath)


@contextmanager
def _collecting_later() -> Iterator[None]:
    """Disable garbage collection, which takes a tenth of the time of compiling."""
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
    return [
        kernel for kernel in KERNELS if (kernel.__module__ or "").startswith(tuple(f"{name}." for name in packages))
    ]


def _content(function: Callable[..., Any]) -> str:
    """Digest of a kernel: its bytecode, and the kernels and constants that it uses, in any file."""
    used = [function.__globals__.get(name) for name in function.__code__.co_names]
    parts = [getattr(value, "content", None) or repr(value) for value in used if not isinstance(value, ModuleType)]
    return blake2b(repr((_bytecode(function.__code__), function.__defaults__, parts)).encode()).hexdigest()


def _bytecode(code: CodeType) -> tuple[Any, ...]:
    """The bytecode of a code object without line numbers and paths, so that moving a function changes nothing."""
    constants = [_bytecode(value) if isinstance(value, CodeType) else value for value in code.co_consts]
    return code.co_code, constants, code.co_names, code.co_varnames


def _number_anew() -> None:
    """Start numba's counter, which names its own functions, at a random number in each process: code of several
    processes can meet in one, where equal names must mean equal code."""
    FunctionIdentity._unique_ids = count(secrets.randbits(62))


_number_anew()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_number_anew)


ROWS = 1 << 11  # documents of a small batch, at most
PAIRS = 1 << 18  # pairs of documents of one query in it, at most
STATES = 1 << 18  # states, in all, of the lattices of small data that may be searched without compiled code


def is_small(offsets: Ints) -> bool:
    """Whether queries with rows offsets[q] : offsets[q + 1] are a small batch.

    Evaluate it once for all data that belong together, never for a part: the two implementations may round differently.
    """
    rows = int(offsets[-1])
    if rows > ROWS or rows * rows <= PAIRS:  # at once for the calls that take the least time
        return rows <= ROWS
    lengths = offsets[1:] - offsets[:-1]  # np.diff takes a fifth of a small batch
    return bool(lengths @ lengths <= PAIRS)


@inlined
def longest_query(offsets: Ints, first: int, last: int) -> int:
    """The most rows of a query first <= q < last, at least one."""
    longest = 1
    for q in range(first, last):
        longest = max(longest, offsets[q + 1] - offsets[q])
    return longest
