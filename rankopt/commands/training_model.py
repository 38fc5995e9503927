"""Where a training writes its model, and what it may replace there."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import click

from rankopt.errors import OptionError

__all__ = ["destination", "known", "note"]

NOTES = "models.sha256"
"""A file beside `training.json`: the digests of files that this training may replace by its model."""


def destination(folder: Path, begun: str, given: str | None, yes: bool) -> str:
    """Where a training that is resumed from `folder` writes its model: where it is `given`, else where it was begun if
    that is beside the folder, else beside it under the same name.

    Asks before it replaces what the training neither wrote nor was begun with; a usage error where nobody can answer.
    """
    beside = Path(os.path.abspath(folder)).parent
    chosen = Path(os.path.abspath(given)) if given is not None else beside / Path(begun).name
    if given is None and chosen != Path(begun):
        click.echo(
            f"the model is written to {chosen}: {begun} is not beside {folder}, and --model names no file", err=True
        )
    if yes or not os.path.lexists(chosen) or known(folder, chosen):
        return str(chosen)
    what = f"{chosen} (a link to {os.path.realpath(chosen)})" if chosen.is_symlink() else str(chosen)
    question = f"{what} is there, and this training did not write it. Replace it?"
    try:
        click.confirm(question, abort=True, err=True)
    except click.Abort:
        raise OptionError(f"{what} is there, and this training did not write it; say --model FILE, or --yes") from None
    return str(chosen)


def note(folder: Path, model: Path) -> None:
    """Write down that the training of this folder may replace the file that is the model now, if there is one."""
    from rankopt.persistence.archive import write_whole

    digest = _digest(model)
    if digest is None or digest in _noted(folder):
        return
    try:
        write_whole(folder / NOTES, "".join(f"{line}\n" for line in [*_noted(folder), digest]).encode(), links=False)
    except OSError as error:
        raise OptionError(f"--checkpoint {folder} cannot be written to ({error}); give another folder") from error


def known(folder: Path, model: Path) -> bool:
    """Whether a file is one that the training of this folder may replace; a link never is."""
    return not model.is_symlink() and _digest(model) in _noted(folder)


def _digest(file: Path) -> str | None:
    if not file.is_file():  # a pipe or a device may have no end
        return None
    try:
        with open(file, "rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError:
        return None


def _noted(folder: Path) -> list[str]:
    try:
        with open(folder / NOTES, encoding="ascii") as opened:
            return opened.read(1 << 16).split()
    except (OSError, ValueError):
        return []
