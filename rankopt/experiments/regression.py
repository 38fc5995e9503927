"""Compare two runs of the same recorded problems: another version of a solver, another machine, other options.

Seconds of one problem are compared by the repeats of both runs: exact one-sided tests of Mann and Whitney.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

from formulations.solvers import SOLVERS
from rankopt.errors import DataError, OptionError
from rankopt.experiments.rows import BenchmarkRow, Outcome, of_rows, read_rows
from rankopt.experiments.traces import ProblemTrace
from rankopt.options import check_number

TOLERANCE = 1.1  # the factor up to which seconds count as the same
LEVEL = 0.0501  # significance level of a test; three repeats of both runs reach 1/20 and no less


def read_baseline(path: str | PathLike[str]) -> tuple[list[BenchmarkRow], list[ProblemTrace]]:
    """The rows of recorded problems in a file that `rankopt swap --output` wrote, and the traces stored next to it."""
    cure = "give the file that `rankopt swap --output` wrote"
    try:
        rows = [row for row in read_rows(path) if row.kind in ("argmax", "master")]
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}); {cure}") from error
    if not rows:
        raise DataError(f"{path} has no rows of recorded problems; {cure}")
    folder = Path(path).with_suffix(".traces")
    found = {trace.name: trace for trace in map(ProblemTrace.load, sorted(folder.glob("*.npz")))}
    names = list(dict.fromkeys(row.trace for row in rows))
    missing = [name for name in names if name not in found]
    if missing:
        raise DataError(f"{folder} has no trace {missing[0]}; put the traces of {path} there")
    return rows, [found[name] for name in names]


def baseline_solvers(rows: Iterable[BenchmarkRow], kind: str) -> list[str]:
    """The solvers of the rows of this kind. OptionError where one is module:attribute: a file may not start code."""
    names = list(dict.fromkeys(row.solver for row in rows if row.kind == kind))
    for name in names:
        head = name.partition("(")[0].partition(":")[0]
        if ":" in name and head not in SOLVERS:
            raise OptionError(f"the rows name the solver {name!r}, code outside rankopt; pass it in --{kind}-solvers")
    return names


class Kind(Enum):
    """The change of a problem's result."""

    WRONG = "refuted now, or its value lies beyond a bound that the other run proved"
    LOST = "solved before, not now; or a worse value where no value is proved best"
    MENDED = "solved now, not before; or a better value where no value is proved best"
    SLOWER = "the same answer, slower by more than the tolerance"
    FASTER = "the same answer, faster by more than the tolerance"
    SAME = "the same answer, seconds within the tolerance"
    UNDECIDED = "the same answer, but the repeats do not decide; or one of them was not tried"
    UNSOLVED = "solved by neither"

    @property
    def words(self) -> str:
        return self.name.lower()


@dataclass(frozen=True)
class Changed:
    """One problem of one solver. factor: median of all ratios of seconds, after / before; None where the answers differ
    or a run has no repeats."""

    before: BenchmarkRow
    after: BenchmarkRow
    kind: Kind
    why: str = ""
    factor: float | None = None


def changes(
    before: Iterable[BenchmarkRow], after: Iterable[BenchmarkRow], tolerance: float = TOLERANCE
) -> list[Changed]:
    """All problems that both runs have, in the order of `after`; rows of training and of integrality are left out.

    tolerance: the factor up to which seconds count as the same. A solver with options that the earlier run did not have
    is compared with the solver of the same name without options.
    """
    check_number(1, tolerance=tolerance)
    before, after = of_rows("before", before), of_rows("after", after)
    known = {row.key: row for row in before if row.kind in ("argmax", "master")}
    pairs = [(known.get(row.key) or known.get((*row.key[:-1], row.solver.partition("(")[0])), row) for row in after]
    return [_compare(earlier, row, tolerance) for earlier, row in pairs if earlier is not None]


def _compare(before: BenchmarkRow, after: BenchmarkRow, tolerance: float) -> Changed:
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
    factor = float(np.median(np.array(after.times)[:, None] / np.maximum(np.array(before.times), 1e-12)))
    return Changed(before, after, compare_times(before.times, after.times, tolerance), "", factor)


def _outcome(before: BenchmarkRow, after: BenchmarkRow) -> tuple[Kind, str] | None:
    """The change of the answer and its reason; None if it is the same, so that times can be compared."""
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
    gained = (after.value - before.value) * (1.0 if after.is_maximization else -1.0)
    if abs(gained) <= (after.tolerance or 0.0) * (after.scale or 1.0):
        return None
    why = f"feasible both times, proved neither; {before.value:.9g} before, {after.value:.9g} now"
    return (Kind.MENDED if gained > 0 else Kind.LOST), why


def _beyond(before: BenchmarkRow, after: BenchmarkRow) -> str:
    """The contradiction between both runs, if the value of one is beyond the bound of the other; else ""."""
    for one, other, word in ((after, before, "before"), (before, after, "now")):
        if one.value is None or other.bound is None or not (one.answered and other.answered):
            continue
        over = one.value - other.bound if one.is_maximization else other.bound - one.value
        if over > 1e-9 * (one.scale or 1.0):
            return f"{one.value:.9g} is attained, which the bound {other.bound:.9g} proved {word} denies"
    return ""


def compare_times(before: Sequence[float], after: Sequence[float], tolerance: float = TOLERANCE) -> Kind:
    """Whether the seconds `after` are above, below or within the tolerance, by one-sided tests of Mann and Whitney."""

    def is_less(first: NDArray[np.float64], second: NDArray[np.float64]) -> bool:
        return bool(mannwhitneyu(first, second, alternative="less", method="exact").pvalue <= LEVEL)

    low, high, now = np.array(before) / tolerance, np.array(before) * tolerance, np.array(after)
    if is_less(high, now):
        return Kind.SLOWER
    if is_less(now, low):
        return Kind.FASTER
    return Kind.SAME if is_less(low, now) and is_less(now, high) else Kind.UNDECIDED


def by_solver(changed: Iterable[Changed]) -> dict[tuple[str, str], list[Changed]]:
    """The changes of each trace and solver, in the order of appearance."""
    groups: dict[tuple[str, str], list[Changed]] = {}
    for one in changed:
        groups.setdefault((one.after.trace, one.after.solver), []).append(one)
    return groups


def mean_factor(changed: Iterable[Changed]) -> float | None:
    """The geometric mean of the factors; None if there are none."""
    factors = [one.factor for one in changed if one.factor]
    return float(np.exp(np.mean(np.log(factors)))) if factors else None
