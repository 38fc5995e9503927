"""HTML reports: `write(rows, path)` writes the report of an experiment as one self-contained file."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from formulations.arrays import as_path, check_type
from rankopt.errors import OptionError

if TYPE_CHECKING:
    from rankopt.experiments.rows import BenchmarkRow

__all__ = ["save", "write"]


def write(rows: Sequence[BenchmarkRow], path: str | PathLike[str], made_by: str = "") -> Path:
    """Write the report of the rows to `path`, an HTML file, and return the path. made_by: the command, printed at the
    foot of the page."""
    from rankopt.experiments.rows import of_rows
    from rankopt.report.swap_page import page_of_swap

    check_type("made_by", made_by, str, error=OptionError)
    return save(page_of_swap(of_rows("rows", rows), made_by), path)


def save(page: str, path: str | PathLike[str]) -> Path:
    """Write a page; a missing folder is created."""
    file = Path(as_path(path, OptionError))
    check_type("page", page, str, error=OptionError)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page, encoding="utf-8", errors="replace")  # file names may contain invalid text
    return file
