"""A file of rows that grows while an experiment runs, and from which a run that was cut off goes on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path

from rankopt.errors import OptionError
from rankopt.experiments.isolation.limits import Limits
from rankopt.experiments.isolation.supervisor import supervised
from rankopt.experiments.isolation.worker import Job
from rankopt.experiments.rows import Row, read_rows, written


class RowFile:
    """Rows by key, each written to the file at once; without a path they are only kept."""

    def __init__(self, path: str | PathLike[str] | None = None, resume: bool = False) -> None:
        self.path = None if path is None else Path(path)
        self.rows: dict[tuple[str, ...], Row] = {}
        if self.path is None:
            return
        if self.path.exists() and not resume:
            raise OptionError(f"{self.path} exists; remove it, choose another file, or resume=True to go on with it")
        if self.path.exists():
            for row in read_rows(self.path):
                self.rows[row.key] = row
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(written(self.rows.values()), encoding="utf-8")  # a last line that was cut off goes

    def known(self, row: Row) -> Row | None:
        """The row with this one's key that is there already."""
        return self.rows.get(row.key)

    def add(self, row: Row) -> None:
        self.rows[row.key] = row
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(row.as_line() + "\n")


def grown(
    file: RowFile, job: Job, blanks: Sequence[Row], limits: Limits, seconds: float, budget: float = math.inf
) -> Iterator[Row]:
    """The rows of a job that the file does not hold yet, each added to it as it is found; see `supervised`."""
    items = [item for item, blank in enumerate(blanks) if file.known(blank) is None]
    for row in supervised(job, blanks, items, limits, seconds, budget) if items else ():
        file.add(row)
        yield row
