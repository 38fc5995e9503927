"""Validated read-only arrays of problems, and a cache of derived values on a frozen record."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Annotated, Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulations.errors import InvalidProblemError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Bytes = NDArray[np.int8]
Text = NDArray[Any]  # of uint8
Bools = NDArray[np.bool_]
Scalar = TypeVar("Scalar", bound=np.generic)
Arrays = TypeVar("Arrays")

Out = Annotated[Arrays, "written"]
Table = Annotated[Arrays, "two dimensions"]
Cube = Annotated[Arrays, "three dimensions"]
"""Of the arguments of kernels, which are else vectors that are only read (`formulations.compiled`)."""

NUMPY: dict[type, type] = {bool: np.bool_, int: np.integer, float: np.floating}
"""NumPy's own of Python's types."""

FLOAT_MAX = float(np.finfo(np.float64).max)

LARGEST = 1e150  # greatest magnitude of a number in a problem: a product of two of them is still finite


LARGEST_INTEGER = 2.0**63  # beyond the integers of 64 bits

LARGEST_EXACT = 2**53  # integers beyond this are not all doubles


def check_type(
    name: str, value: Any, *kinds: type, error: type[Exception] = InvalidProblemError, cure: str = ""
) -> None:
    """Raise the error unless `value` is an instance of one of these classes. cure: what to pass instead."""
    if not isinstance(value, (*kinds, *(NUMPY[kind] for kind in kinds if kind in NUMPY))):
        words = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
        raise error(f"{name} must be a {words}; got a {type(value).__name__}.{cure and ' '}{cure}")


def to_integer(value: Any) -> int | None:
    """The integer that a number is, floats without fraction included; None for anything else, and for booleans."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    return int(value) if isinstance(value, float | np.floating) and float(value).is_integer() else None


def as_path(path: Any, error: type[Exception] = InvalidProblemError, name: str = "path") -> str:
    """The name of a file or folder as text; raises the error for what names none."""
    file = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(file, str) or "\0" in file:
        raise error(f"{name} must be the name of a file, a str or a Path; got {path!r:.80}.")
    return file


def each(name: str, values: Any, error: type[Exception] = InvalidProblemError) -> tuple[Any, ...]:
    """The items of a sequence, or the error."""
    if not isinstance(values, Iterable):
        raise error(f"{name} must be a sequence; got {values!r:.80}.")
    check_no_mask(name, values, error)
    try:
        return tuple(values)
    except TypeError as why:  # an array without dimensions, a sparse matrix
        raise error(f"{name} must be a sequence; got a {type(values).__name__} ({why}).") from None


def frozen(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """A read-only `array`; a view of it if the caller owns a writable one."""
    view = array.view()
    view.setflags(write=False)
    return view


def check_no_mask(name: str, values: Any, error: type[Exception] = InvalidProblemError) -> None:
    """Raise the error for an array with masked entries."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        row = int(np.argwhere(np.ma.getmaskarray(values))[0][0])
        raise error(f"{name} of row {row} is masked, so its value is unknown. Fill in masked entries (.filled()).")


def numbers(name: str, values: Any) -> Floats:
    """`values` as an array of doubles, infinite ones included; raises `InvalidProblemError` for masked entries, and for
    complex numbers and dates, which NumPy would convert."""
    check_no_mask(name, values)
    try:
        array = np.asarray(values)
        if array.dtype.kind in "cmM":
            raise TypeError(f"they are {array.dtype}")
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidProblemError(f"{name} cannot be read as numbers: {error}") from None


def check_positive(**settings: Any) -> None:
    """Raise InvalidProblemError unless each value is a positive, finite number."""
    for name, value in settings.items():
        real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        if not (real and 0 < value <= FLOAT_MAX):
            raise InvalidProblemError(f"{name} must be positive and finite; got {value!r:.80}.")


def finite(name: str, values: ArrayLike, dimensions: int) -> Floats:
    """`values` as a read-only float64 array, copied unless it is one already; raises `InvalidProblemError` that
    names the first entry that is not a finite number."""
    read = numbers(name, values)
    if read.ndim != dimensions:
        raise InvalidProblemError(f"{name} must have {dimensions} dimension(s); got shape {read.shape}.")
    array = np.ascontiguousarray(read)
    if array.size and not (array.min() >= -LARGEST and array.max() <= LARGEST):
        wrong = ~(np.abs(array) <= LARGEST)
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise InvalidProblemError(
            f"{name}{list(index)} is {array[index]}, but must be finite and at most {LARGEST:g} in magnitude. "
            "Remove, impute or rescale it."
        )
    if isinstance(values, np.ndarray) and array.flags.writeable and np.may_share_memory(array, values):
        array = array.copy()
    return frozen(array)


def integers(name: str, values: ArrayLike) -> Ints:
    """`values`, floats without fraction included, as a read-only int64 vector, or `InvalidProblemError`."""
    check_no_mask(name, values)
    try:
        array: NDArray[Any] = np.asarray(values)
    except ValueError as error:  # lists of several lengths
        raise InvalidProblemError(f"{name} must be a vector of integers; got {values!r:.80} ({error}).") from None
    if array.ndim != 1 or (array.dtype.kind not in "iuf" and array.size):
        raise InvalidProblemError(f"{name} must be a vector of integers; got {array.dtype} of shape {array.shape}.")
    wrong = np.zeros(array.size, dtype=bool)
    if array.dtype.kind == "f":
        wrong = ~((array == np.floor(array)) & (np.abs(array) < LARGEST_INTEGER))
    elif array.dtype.kind == "u":
        wrong = array > np.iinfo(np.int64).max
    if wrong.any():
        index = int(np.argmax(wrong))
        raise InvalidProblemError(f"{name}[{index}] must be an integer of 64 bits; got {array[index]}; round or scale.")
    return frozen(array.astype(np.int64))


def as_integer(name: str, value: Any) -> int:
    """`value` as an integer >= 0, or `InvalidProblemError`."""
    number = to_integer(value)
    if number is None or not 0 <= number <= LARGEST_EXACT:
        raise InvalidProblemError(f"{name} must be an integer, 0 or more; got {value!r}.")
    return number


def booleans(name: str, values: Any, shape: tuple[int, ...]) -> Bools:
    """`values` as an array of booleans of this shape, or `InvalidProblemError`."""
    check_no_mask(name, values)
    try:
        array: NDArray[Any] = np.asarray(values)
    except ValueError as error:  # lists of several lengths
        raise InvalidProblemError(f"{name} must be boolean of shape {shape}; got {values!r:.80} ({error}).") from None
    if array.shape != shape or array.dtype != np.bool_:
        raise InvalidProblemError(f"{name} must be boolean of shape {shape}; got {array.dtype} of shape {array.shape}.")
    return array


def generator(name: str, seed: Any) -> np.random.Generator:
    """The random generator of a seed, or `InvalidProblemError`."""
    whole = to_integer(seed)
    if whole is not None and whole >= 0:
        return np.random.default_rng(whole)
    if not (isinstance(seed, np.random.Generator | np.random.BitGenerator | np.random.SeedSequence | None)):
        raise InvalidProblemError(f"{name} must be an integer >= 0, a Generator or None; got {seed!r:.80}.")
    return np.random.default_rng(cast(Any, seed))


def offsets_of(name: str, values: ArrayLike, total: int) -> Ints:
    """Offsets of consecutive nonempty parts of `total` rows: part q is rows values[q] : values[q + 1]."""
    offsets = integers(name, values)
    if offsets.size < 2 or offsets[0] != 0 or offsets[-1] != total or (offsets[1:] <= offsets[:-1]).any():
        raise InvalidProblemError(f"{name} must increase strictly from 0 to the row count ({total}); got {offsets}.")
    return offsets


Cached = TypeVar("Cached")


class Memoized:
    """A record that caches values derived from it."""

    def cached(self, name: str, make: Callable[[], Cached]) -> Cached:
        """The result of `make`, computed once per record."""
        store = self.__dict__.setdefault("_cached", {})
        if name not in store:
            store[name] = make()
        return cast(Cached, store[name])


Function = TypeVar("Function", bound=Callable[..., Any])


def memoized(make: Function) -> Function:
    """A function whose last argument is a `Memoized` record, computed once per record."""

    @wraps(make)
    def once(*args: Any) -> Any:
        return args[-1].cached(make.__qualname__, lambda: make(*args))

    return cast(Function, once)


def is_sparse(array: Any) -> bool:
    """Whether an array is a scipy sparse matrix or array, without importing scipy."""
    return hasattr(array, "tocsr")
