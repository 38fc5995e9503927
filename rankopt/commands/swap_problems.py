"""What `rankopt swap a.mps b.lp set.toml tape.npz` replays: the problems of all files, and who may take part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rankopt.experiments.tapes.tape import Tape

__all__ = ["all_of", "are_problems", "forms_of", "tapes_at"]

PARTS = {"argmax": "rankings or linear programs", "master": "quadratic programs"}
"""What is solved by which part."""


def are_problems(files: Sequence[str]) -> bool:
    """Whether the files are of problems. Raises a usage error for several files of which one is not."""
    from rankopt.experiments.tapes.given import ENDINGS

    others = [file for file in files if not file.endswith(ENDINGS)]
    if others and len(files) > 1:
        raise click.UsageError(
            f"{others[0]} is one of {len(files)} files and no problem; give files that end with one of "
            f"{', '.join(ENDINGS)}, or queries alone, in one file"
        )
    return bool(files) and not others


def tapes_at(files: Sequence[str], argmax: str | None, master: str | None) -> list[Tape]:
    """The problems of the files. Raises a usage error for solvers of a part that none of them has, and where no solver
    is left."""
    from rankopt.experiments.tapes.given import tapes_of

    tapes = tapes_of(list(files))
    kinds = dict.fromkeys(tape.kind for tape in tapes)
    given = {"argmax": argmax, "master": master}
    for kind, names in given.items():
        other = "master" if kind == "argmax" else "argmax"
        if names not in (None, "none") and kind not in kinds:
            have = "has" if len(files) == 1 else "have"
            raise click.UsageError(
                f"{', '.join(files)} {have} no {PARTS[kind]}, which --{kind} is for; use --{other}: {_fitting(tapes)}"
            )
    if all(given[kind] == "none" for kind in kinds):
        named = " and ".join(f"--{kind} none" for kind in sorted(kinds))
        raise click.UsageError(f"{named} leaves nothing to swap; name solvers: {_fitting(tapes)}")
    return tapes


def forms_of(tapes: Iterable[Tape], kind: str) -> set[Any]:
    """The forms of the problems that are solved by this part."""
    return {type(taped.form) for tape in tapes if tape.kind == kind for taped in tape.problems}


def all_of(forms: Iterable[Any]) -> list[str]:
    """All installed solvers of any of these forms."""
    from formulations.solvers import accepting

    return list(dict.fromkeys(solver for form in forms for solver in accepting(form)))


def _fitting(tapes: Iterable[Tape]) -> str:
    return f"{', '.join(all_of(taped.form for tape in tapes for taped in tape.problems))} fit"
