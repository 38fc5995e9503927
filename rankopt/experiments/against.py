"""The tapes of an earlier run, replayed by what is installed here: another version, another machine, other options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from formulations.brevity import CompactReprMixin
from formulations.solvers import SOLVERS
from rankopt.errors import DataError, OptionError
from rankopt.experiments.changed import MARGIN, Changed, changes
from rankopt.experiments.isolation.limits import Limits, check_limits
from rankopt.experiments.isolation.shipping import Entrant, check_entrants, spec_of
from rankopt.experiments.row_file import RowFile, grown
from rankopt.experiments.rows import Row, read_rows, versions
from rankopt.experiments.tapes.replaying import Replay, blank_rows
from rankopt.experiments.tapes.tape import Tape
from rankopt.optimize.settings import check_number, check_whole

__all__ = ["Against"]

CURE = "give the file that `rankopt swap --output` wrote"


@dataclass(frozen=True, eq=False)
class Against(CompactReprMixin):
    """Replay the tapes beside `path`, a file of rows, and hold what is found against these rows.

    Args:
        path: rows of a swap; its tapes stand in the folder of the same name that ends with .tapes.
        argmax, masters: who takes part in place of those of the rows; None means the same. A solver with options that
            the rows do not have stands beside the one with the usual options.
        repeats: timed runs of a problem. Three on either side give an interval of 90%, five one of 99%.
        margin: the factor up to which seconds count as the same.
    """

    path: str | PathLike[str]
    argmax: Sequence[Entrant] | None = None
    masters: Sequence[Entrant] | None = None
    repeats: int = 5
    margin: float = MARGIN
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | PathLike):
            raise OptionError(f"path = {self.path!r} is no file; {CURE}")
        check_whole(1, repeats=self.repeats)
        check_number(1.0, margin=self.margin)
        check_limits(self.limits)
        chosen = {"argmax": self.argmax, "masters": self.masters}
        check_entrants(**{role: entrants for role, entrants in chosen.items() if entrants is not None})

    def before(self) -> list[Row]:
        """The rows of tapes. Raises DataError where there are none, or no such file."""
        try:
            rows = [row for row in read_rows(self.path) if row.kind in ("argmax", "master")]
        except OSError as error:
            raise DataError(f"{self.path} cannot be read ({error.strerror}); {CURE}") from error
        if not rows:
            raise DataError(f"{self.path} has no rows of tapes; {CURE}")
        return rows

    def rows(self, output: str | PathLike[str] | None = None, *, resume: bool = False) -> Iterator[Row]:
        """The rows as they are found; with an output the tapes are put beside it, too."""
        before = self.before()
        self._check_places(before)
        tapes = self._tapes(before)
        file = RowFile(output, resume)
        for path, tape in tapes:
            if output is not None:
                path = _copied(path, tape, Path(output).with_suffix(".tapes"))
            earlier = [row for row in before if row.tape == tape.name]
            chosen = self.masters if tape.kind == "master" else self.argmax
            for entrant in list(dict.fromkeys(row.solver for row in earlier)) if chosen is None else chosen:
                spec = entrant if chosen is None and isinstance(entrant, str) else spec_of(entrant)
                blanks = blank_rows(tape, spec, earlier[0].tolerance or 1e-6, earlier[0].seed or 0, versions())
                job = Replay(str(path), entrant, blanks, self.repeats, self.limits.problem)
                yield from grown(file, job, blanks, self.limits, self.limits.problem, self.limits.tape)

    def _check_places(self, before: Sequence[Row]) -> None:
        """Rows may come from elsewhere: what they call module:attribute is code, which the caller alone may name."""
        for kind, chosen, option in (("argmax", self.argmax, "argmax"), ("master", self.masters, "masters")):
            for name in [] if chosen is not None else dict.fromkeys(row.solver for row in before if row.kind == kind):
                head = name.partition("(")[0].partition(":")[0]
                if ":" in name and head not in SOLVERS:
                    raise OptionError(
                        f"{self.path} names the solver {name!r}, which is code of its own that rows may not start; say "
                        f"who takes part: {option}=[...], --argmax or --master NAME"
                    )

    def changes(self, after: Sequence[Row]) -> list[Changed]:
        """What became of each problem."""
        return changes(self.before(), after, self.margin)

    def _tapes(self, before: Sequence[Row]) -> list[tuple[Path, Tape]]:
        """The tapes of the rows, each known by its fingerprint."""
        folder = Path(self.path).with_suffix(".tapes")
        wanted = list(dict.fromkeys(row.tape for row in before))
        found: dict[str, tuple[Path, Tape]] = {}
        for path in sorted(folder.glob("*.npz")):
            tape = Tape.load(path)
            found.setdefault(tape.name, (path, tape))
        missing = [name for name in wanted if name not in found]
        if missing:
            raise DataError(f"{missing[0]} is none of the tapes in {folder}; put the tapes of {self.path} there")
        return [found[name] for name in wanted]


def _copied(path: Path, tape: Tape, folder: Path) -> Path:
    """The tape in the folder beside the new rows, byte by byte."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{re.sub(r'[^A-Za-z0-9]+', '-', tape.name)}.npz"
    if not target.exists():
        target.write_bytes(path.read_bytes())
    return target
