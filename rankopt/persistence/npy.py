"""Arrays of numbers as npy files of version 1.0, read without trust."""

import io
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import ModelError

KINDS = "biuf"
"""Kinds of numbers: booleans, integers of both sorts, floats."""

HEADER = 4096
"""Bytes that the header of an array may have."""


def npy_of(array: NDArray[Any]) -> bytes:
    """The npy file of an array of numbers: little endian, rows one after the other, the same bytes everywhere."""
    buffer = io.BytesIO()
    plain = np.array(array, dtype=array.dtype.newbyteorder("<"), order="C")
    np.lib.format.write_array(buffer, plain, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def array_of(content: bytes) -> NDArray[Any]:
    """The array of such a file, immutable. ModelError unless it holds exactly as many numbers as its header says."""
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
    except Exception as error:  # whatever a hostile header does to its parser
        raise ModelError(f"an array is not a plain npy file ({error}).") from error
    array.setflags(write=False)
    return array
