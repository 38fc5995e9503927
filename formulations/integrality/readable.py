"""Validation of the fields of evidence: plain arrays of integers in range.

A forged record may contain anything: imaginary numbers with the expected absolute values, -2**63 (its own negative),
masked arrays, a proof inside itself. Only plain values are accepted; all else raises `CertificateError`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from formulations.arrays import Ints
from formulations.errors import CertificateError


def record(value: Any, kind: type | tuple[type, ...], name: str) -> Any:
    """`value`, if it is a record of this kind."""
    if not isinstance(value, kind):
        raise CertificateError(f"{name} is a {type(value).__name__} and no evidence of that")
    return value


def flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise CertificateError(f"{name} is neither True nor False")
    return value


def is_whole(value: Any) -> bool:
    """Whether it is a Python int and not a bool."""
    return type(value) is int


def one_of(value: Any, size: int, name: str) -> int:
    """`value`, if it is an index below `size`."""
    if not (isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= value < size):
        raise CertificateError(f"{name} is {value!r}, and there are {size}, counted from 0")
    return int(value)


def exact_number(value: Any, name: str) -> int | Fraction:
    if not (is_whole(value) or type(value) is Fraction):
        raise CertificateError(f"{name} is a {type(value).__name__} and no exact number")
    number: int | Fraction = value
    return number


def labels(values: Any, name: str) -> tuple[str, ...]:
    if not (isinstance(values, tuple) and all(isinstance(value, str) for value in values)):
        raise CertificateError(f"{name} are no tuple of names")
    return values


def whole_array(values: Any, shape: tuple[int, ...], name: str) -> Ints:
    """A copy of a plain array of 64-bit integers of this shape. Masked and other array classes are refused, because
    readers interpret them differently."""
    if type(values) is not np.ndarray or values.dtype.kind not in "iu" or values.shape != shape:
        said = f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else "no array"
        raise CertificateError(f"{name} must be integers of shape {shape}; got a {type(values).__name__} ({said})")
    plain = values.copy()
    if plain.dtype.kind == "u" and plain.size and int(plain.max()) > np.iinfo(np.int64).max:
        raise CertificateError(f"{name} has a number of more than 63 binary digits")
    return plain.astype(np.int64)


def indices(values: Any, size: int, name: str, least: int = 0) -> Ints:
    """A plain vector of indices below `size` (and from `least`), of any length."""
    if not isinstance(values, np.ndarray) or values.ndim != 1:
        raise CertificateError(f"{name} must be a vector of integers")
    plain = whole_array(values, values.shape, name) if values.size else np.zeros(0, dtype=np.int64)
    if plain.size and not (least <= plain.min() and plain.max() < size):
        raise CertificateError(f"{name} names what does not exist: there are {size}, counted from 0")
    return plain


def items(values: Any, kind: type, name: str) -> list[Any]:
    """A tuple of records of one kind."""
    if not isinstance(values, tuple):
        raise CertificateError(f"{name} are no tuple")
    return [record(value, kind, f"one of {name}") for value in values]
