"""What a run is of, as digests by name: its parameters, its data, its start. Equal digests lead to equal bits, but for
another solver of the master programs."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.data.fingerprints import fingerprints
from rankopt.data.queries import Queries
from rankopt.data.ratings.table import Ratings
from rankopt.errors import ModelError, OptionError
from rankopt.persistence.values import Encoder

__all__ = ["REPLACEABLE", "identity", "identity_of_ratings"]

LIMITS = ("max_iter", "time_limit")
"""Parameters that may change from one part of a run to the next: they say when it ends, not where it leads."""

REPLACEABLE = ("master",)
"""Parts that are kept but may change too: where a solver of the master program fails, another goes on. Planes, points
and what is proven of them hold for any; the steps that follow are others."""


def identity(
    kind: str,
    params: Mapping[str, Any],
    queries: Queries,
    attributes: Iterable[str],
    weights: NDArray[np.float64],
    start: NDArray[np.float64],
    judged: bool,
) -> dict[str, str]:
    """Digests of the class, of each parameter that matters to the result, of the queries with the attributes that
    constraints speak of and their weights (m,) as they are ordered, of the point that training starts from, and whether
    the result is chosen on an eval_set: then all points that the run passes through are kept, else the last alone."""
    known = (fingerprints(queries.features), queries.offsets, queries.relevance, weights)
    columns = [repr(queries.attributes[name].tolist()).encode() for name in attributes]
    data = _digest([*(np.ascontiguousarray(array).tobytes() for array in known), *columns])
    return {
        "class": kind,
        **{name: _of_value(value, name) for name, value in sorted(params.items()) if name not in LIMITS},
        "data": data,
        "start": _digest([start.tobytes()]),
        "eval_set": str(judged),
    }


def identity_of_ratings(
    kind: str, params: Mapping[str, Any], ratings: Ratings, weights: NDArray[np.float64] | None, judged: Ratings | None
) -> dict[str, str]:
    """The same of ratings, their weights (n_ratings,), and the ratings that the result is chosen on."""
    return {
        "class": kind,
        **{name: _of_value(value, name) for name, value in sorted(params.items()) if name not in LIMITS},
        "data": _digest([ratings.fingerprint.encode(), b"" if weights is None else weights.tobytes()]),
        "eval_set": "" if judged is None else judged.fingerprint,
    }


def _of_value(value: Any, name: str) -> str:
    encoder = Encoder()
    try:
        text = json.dumps(encoder.encode(value, name))
    except ModelError:  # an object of the user's own
        named = getattr(value, "__qualname__", "<")
        text = f"{type(value).__module__}.{type(value).__qualname__}: {value!r}"
        text = text if "<" in named else f"{value.__module__}.{named}"  # a class or function of a module
        if re.search(r"\b0x[0-9a-f]+", text):
            raise OptionError(
                f"checkpoint cannot tell {name} = {text[:80]} from others of its kind when the run goes on; "
                "make it a dataclass, a function or class of a module, or give it a repr that shows its content"
            ) from None
    return _digest([text.encode(), *encoder.members.values()])


def _digest(parts: Iterable[bytes]) -> str:
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little"))
        hashed.update(part)
    return hashed.hexdigest()[:32]
