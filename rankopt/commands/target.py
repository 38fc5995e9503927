"""Where a command writes: looked at before the work begins, so that no run ends at a path that cannot be written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

__all__ = ["OutputPath"]


class OutputPath(click.Path):
    """A file (or a folder) to be written; what cannot be is wrong usage, with the cure.

    made: whether folders above it are made where they are missing. dash: whether "-", standard output, is taken.
    """

    def __init__(self, *, folder: bool = False, made: bool = False, dash: bool = False) -> None:
        super().__init__(file_okay=not folder, dir_okay=folder, allow_dash=dash)
        self.made = made

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        if not (path == "-" and self.allow_dash):
            try:
                reason = self._refused(os.fsdecode(path))
            except OSError as error:
                reason = f"{str(path)[:60]!r}: {error.strerror}; choose another path"
            if reason is not None:
                self.fail(reason, param, ctx)
        return path

    def _refused(self, path: str) -> str | None:
        """Why nothing can be written here, and the cure; OSError for names that the system refuses."""
        if not path:
            return "the name is empty; give a path"
        place = Path(path)
        if not _present(place):
            place = place.parent
            while not _present(place) and self.made:
                place = place.parent
            if not _present(place):
                return f"{path!r}: there is no folder '{place}'; make it first, or choose another"
            if not place.is_dir():
                return f"{path!r}: '{place}' is a file, not a folder; choose another path"
        if not os.access(place, os.W_OK):
            return f"{path!r}: '{place}' cannot be written to; choose another path"
        return None


def _present(place: Path) -> bool:
    try:
        place.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
