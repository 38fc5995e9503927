"""A folder that one process writes to at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from rankopt.errors import OptionError

__all__ = ["claimed"]


@contextmanager
def claimed(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Within this block the folder is this one's, and nobody else in this process or another may claim it.

    The claim is a lock of the folder itself, which leaves no file and goes with its process, however that ends. Where a
    file system knows no such locks, nothing is claimed. Raises OptionError where the folder is somebody else's.
    """
    try:
        import fcntl
    except ImportError:  # no POSIX system
        yield
        return
    try:
        opened = os.open(folder, os.O_RDONLY)
    except OSError as error:
        told = f"checkpoint = {os.fspath(folder)} cannot be opened ({error}); give another folder"
        raise OptionError(told) from error
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OptionError(
                f"checkpoint = {os.fspath(folder)} is in use: another process, or another fit of this one, trains with "
                "it now; wait until it is done, or choose another folder"
            ) from None
        except OSError:
            pass
        yield
    finally:
        os.close(opened)
