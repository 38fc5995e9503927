"""The tapes of an earlier run, replayed by what is installed here: another version, another machine, other options.

What changed between two runs of the same tapes: another version of a solver, another machine, other options.

Problem by problem and solver by solver a row of before stands beside a row of after. Seconds are compared by all pairs
of repeats: the ratios after / before, of which an interval is kept that holds the true factor (Hodges and Lehmann, by
the exact distribution of Mann and Whitney's count) with at least the chance that `confidence` says.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formulations.display import CompactReprMixin
from formulations.solvers import SOLVERS
from rankopt.errors import DataError, OptionError
from rankopt.experiments.isolation import Entrant, Limits, check_entrants, check_limits, spec_of
from rankopt.experiments.replay import Replay, blank_rows
from rankopt.experiments.rows import Outcome, Row, read_rows, versions
from rankopt.experiments.supervisor import RowFile, grown
from rankopt.experiments.traces import Tape
from rankopt.optimize.method import check_number, check_whole

MARGIN = 1.1
"""The factor up to which seconds count as the same."""

CONFIDENCE = 0.9
"""Of an interval of one problem: three repeats on either side can show no more."""


class Kind(Enum):
    """What became of a problem."""

    WRONG = "refuted now, or its value lies beyond a bound that the other run proved"
    LOST = "solved before, not now; or a worse value where no value is proved best"
    MENDED = "solved now, not before; or a better value where no value is proved best"
    SLOWER = "the same answer, and the whole interval of the factor lies above the margin"
    FASTER = "the same answer, and the whole interval lies below one by the margin"
    SAME = "the same answer, and the whole interval lies within the margin"
    UNDECIDED = "the same answer, but the repeats do not tell; or one of them was not tried"
    UNSOLVED = "solved by neither"

    @property
    def words(self) -> str:
        return self.name.lower()


@dataclass(frozen=True)
class Changed:
    """One problem of one solver. factor: median of all ratios of seconds, after / before; interval: around it, None
    where there are no repeats of both; confidence: the chance that the interval holds the true one, at least."""

    before: Row
    after: Row
    kind: Kind
    why: str = ""
    factor: float | None = None
    interval: tuple[float, float] | None = None
    confidence: float | None = None


def changes(before: Iterable[Row], after: Iterable[Row], margin: float = MARGIN) -> list[Changed]:
    """All problems that both runs have, in the order of `after`. Rows of training and of sets are left out.

    A solver with options that were not there before stands beside the one of the same name without.
    """
    known = {row.key: row for row in before if row.kind in ("argmax", "master")}
    pairs = [(known.get(row.key) or known.get((*row.key[:-1], row.solver.partition("(")[0])), row) for row in after]
    return [_changed(earlier, row, margin) for earlier, row in pairs if earlier is not None]


def _changed(before: Row, after: Row, margin: float) -> Changed:
    beyond = _beyond(before, after)
    if after.status is Outcome.WRONG or beyond:
        return Changed(before, after, Kind.WRONG, beyond or after.message)
    untried = [row for row in (before, after) if row.status is Outcome.GIVEN_UP]
    if untried:
        return Changed(before, after, Kind.UNDECIDED, untried[0].message)
    outcome = _outcome(before, after)
    if outcome is not None:
        return Changed(before, after, *outcome)
    if not (before.times and after.times):
        return Changed(before, after, Kind.UNDECIDED, "a row has no repeats on record; run it again")
    factor, interval, confidence = repeats_factor(before.times, after.times)
    low, high = interval
    kind = Kind.UNDECIDED
    if low > margin:
        kind = Kind.SLOWER
    elif high < 1.0 / margin:
        kind = Kind.FASTER
    elif 1.0 / margin <= low <= high <= margin:
        kind = Kind.SAME
    return Changed(before, after, kind, "", factor, interval, confidence)


def _outcome(before: Row, after: Row) -> tuple[Kind, str] | None:
    """What became of the answer, and why; None where it is the same, so that seconds can be compared."""
    if before.status is after.status is Outcome.NO_OPTIMUM:
        return None
    once, now = (row.status is Outcome.SOLVED for row in (before, after))
    if once and now:
        return None
    if once:
        return Kind.LOST, f"{after.status.words}: {after.message}"
    if now:
        return Kind.MENDED, f"{before.status.words}: {before.message}"
    if not (before.answered and after.answered) or before.value is None or after.value is None:
        return Kind.UNSOLVED, f"{after.status.words}: {after.message}"
    gained = (after.value - before.value) * (1.0 if after.maximises else -1.0)
    if abs(gained) <= (after.tolerance or 0.0) * (after.scale or 1.0):
        return None
    why = f"feasible both times, proved neither; {before.value:.9g} before, {after.value:.9g} now"
    return (Kind.MENDED if gained > 0 else Kind.LOST), why


def _beyond(before: Row, after: Row) -> str:
    """Why both cannot be right: what one attains is beyond what the other proves."""
    for one, other, word in ((after, before, "before"), (before, after, "now")):
        if one.value is None or other.bound is None or not (one.answered and other.answered):
            continue
        over = one.value - other.bound if one.maximises else other.bound - one.value
        if over > 1e-9 * (one.scale or 1.0):
            return f"{one.value:.9g} is attained, which the bound {other.bound:.9g} proved {word} denies"
    return ""


def repeats_factor(
    before: Sequence[float], after: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[float, tuple[float, float], float]:
    """The median of the ratios after / before over all pairs, the narrowest interval of ordered ratios around it whose
    confidence is enough, or the widest where none is, and that confidence."""
    ratios = np.sort((np.array(after)[:, None] / np.maximum(np.array(before)[None, :], 1e-12)).ravel())
    tails = _tails(len(before), len(after))
    cut = 0
    while cut + 1 <= (ratios.size - 1) // 2 and 1.0 - 2.0 * tails[cut + 1] >= confidence:
        cut += 1
    interval = float(ratios[cut]), float(ratios[-1 - cut])
    return float(np.median(ratios)), interval, 1.0 - 2.0 * tails[cut]


@cache
def _tails(m: int, n: int) -> tuple[float, ...]:
    """P(U <= u) for u = 0 .. m n, of Mann and Whitney's count of m and n samples of one continuous distribution."""
    counts = np.zeros((m + 1, m * n + 1))
    counts[0, 0] = 1.0
    for rank in range(1, m + n + 1):  # subsets of ranks by size and by sum less the least possible sum
        for size in range(min(rank, m), 0, -1):
            shift = rank - size
            if shift <= n:
                counts[size, shift:] += counts[size - 1, : m * n + 1 - shift]
    return tuple(np.cumsum(counts[m]) / math.comb(m + n, m))


def by_solver(changed: Iterable[Changed]) -> dict[tuple[str, str], list[Changed]]:
    """What became of the problems of each tape and solver, in the order of appearance."""
    parted: dict[tuple[str, str], list[Changed]] = {}
    for one in changed:
        parted.setdefault((one.after.tape, one.after.solver), []).append(one)
    return parted


def mean_factor(changed: Sequence[Changed], seed: int = 0, draws: int = 2000) -> tuple[float, float, float] | None:
    """The geometric mean of the factors, and the ends of an interval of 95%: problems are drawn again, as another tape
    would have others, and of each problem its repeats. None of no factors."""
    told = [one for one in changed if one.factor]
    if not told:
        return None
    rng = np.random.default_rng(seed)
    again = np.array([np.log(_medians(one.after, rng, draws) / _medians(one.before, rng, draws)) for one in told])
    drawn = rng.integers(0, len(told), (len(told), draws))
    low, high = np.quantile(again[drawn, np.arange(draws)].mean(axis=0), [0.025, 0.975])
    mean = float(np.mean(np.log([one.factor for one in told if one.factor])))
    return float(np.exp(mean)), float(np.exp(min(low, mean))), float(np.exp(max(high, mean)))


def _medians(row: Row, rng: np.random.Generator, draws: int) -> NDArray[np.float64]:
    """Medians of repeats drawn again."""
    times = np.maximum(np.array(row.times, dtype=np.float64), 1e-12)
    return np.asarray(np.median(times[rng.integers(0, times.size, (draws, times.size))], axis=1))


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
