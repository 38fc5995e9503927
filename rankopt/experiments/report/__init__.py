"""The page of an experiment: `write(rows, path)` makes one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankopt.experiments.rows import Row

__all__ = ["write"]


def write(rows: Sequence[Row], path: str | PathLike[str], made_by: str = "") -> Path:
    """Write what the rows say to `path`, an HTML file whose folder is made where it is missing; return the path.

    made_by: the command, printed at the foot of the page.
    """
    from rankopt.experiments.report.of_swap import page_of_swap

    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page_of_swap(rows, made_by), encoding="utf-8")
    return file
