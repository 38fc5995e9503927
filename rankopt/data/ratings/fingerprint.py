"""The content of a table of ratings in 32 hexadecimal digits."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def fingerprint_of(
    users: NDArray[Any], items: NDArray[Any], attributes: Mapping[str, NDArray[Any]], *arrays: NDArray[Any]
) -> str:
    """SHA-256 of ids, attributes (in the order of their names) and arrays, each with its length before it, cut to 128
    bits. Ids that are no numbers count by their `repr`."""
    named = [part for name in sorted(attributes) for part in (name.encode(), _bytes(attributes[name]))]
    hashed = hashlib.sha256()
    parts: list[Any] = [_bytes(users), _bytes(items), *map(np.ascontiguousarray, arrays), *named]
    for part in parts:
        size = part.nbytes if isinstance(part, np.ndarray) else len(part)
        hashed.update(size.to_bytes(8, "little"))
        hashed.update(part)
    return hashed.hexdigest()[:32]


def _bytes(values: NDArray[Any]) -> bytes:
    """Numbers by their bits, others by their words."""
    if values.dtype.kind in "iufb":
        return b"numbers" + values.tobytes()
    return b"words" + repr(values.tolist()).encode(errors="surrogatepass")
