"""What others computed of a frozen record stays with the record: worked out once, whoever asks, and it asks nobody."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

__all__ = ["Memoized"]

Kept = TypeVar("Kept")


class Memoized:
    """A record that keeps what is computed of it."""

    def kept(self, name: str, make: Callable[[], Kept]) -> Kept:
        """What `make` makes of this record: made once."""
        store = self.__dict__.setdefault("_kept", {})
        if name not in store:
            store[name] = make()
        return cast(Kept, store[name])
