"""Summaries of rows: agreement of solvers, times, performance profiles, pairwise wins.

Every summary takes rows of one kind, such as `of_kind(rows, "argmax")`; solvers are compared problem by problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats
from rankopt.experiments.rows import BenchmarkRow, Outcome


def of_kind(rows: Iterable[BenchmarkRow], kind: str) -> list[BenchmarkRow]:
    """The rows of a kind, in their order."""
    return [row for row in rows if row.kind == kind]


def solvers_of(rows: Iterable[BenchmarkRow]) -> list[str]:
    """The solvers in order of first appearance."""
    return list(dict.fromkeys(row.solver for row in rows))


@dataclass(frozen=True, eq=False)
class Agreement:
    """Pairwise agreement of solvers.

    shares[a, b]: share of equal values, within the larger tolerance, among the problems that a and b answered; NaN
    without any. compared[a, b]: number of these problems. differing: both rows of each other problem, a before b.
    """

    solvers: tuple[str, ...]
    shares: Floats
    compared: NDArray[np.int64]
    differing: tuple[tuple[BenchmarkRow, BenchmarkRow], ...]


def agreement(rows: Sequence[BenchmarkRow]) -> Agreement:
    """The pairwise agreement of solvers. A refuted (WRONG) row differs from every answer."""
    solvers, table = solvers_of(rows), _by_problem(rows)
    count = len(solvers)
    same, both = np.zeros((count, count), dtype=np.int64), np.zeros((count, count), dtype=np.int64)
    differing = []
    for answers in table.values():
        for a, one in enumerate(solvers):
            for b, other in enumerate(solvers):
                if not (one in answers and other in answers):
                    continue
                x, y = answers[one], answers[other]
                if not (_has_verdict(x) and _has_verdict(y) and (x.answered or y.answered or a == b)):
                    continue
                both[a, b] += 1
                if _one_value(x, y) or a == b:
                    same[a, b] += 1
                elif a < b:
                    differing.append((x, y))
    with np.errstate(invalid="ignore"):
        return Agreement(tuple(solvers), same / both, both, tuple(differing))


def _has_verdict(row: BenchmarkRow) -> bool:
    return row.answered or row.status is Outcome.WRONG


def _one_value(x: BenchmarkRow, y: BenchmarkRow) -> bool:
    if not (x.answered and y.answered) or x.value is None or y.value is None:
        return False
    scale = max(x.scale or 1.0, y.scale or 1.0)
    allowed = max(x.tolerance or 0.0, y.tolerance or 0.0)
    return abs(x.value - y.value) <= allowed * scale + 1e-12 * max(abs(x.value), abs(y.value))


def shifted_geometric_mean(seconds: Iterable[float], shift: float) -> float:
    """exp(mean(log(t + shift))) - shift; the shift damps the influence of very short times."""
    times = np.array(list(seconds), dtype=np.float64)
    return float(np.exp(np.log(times + shift).mean()) - shift) if times.size else float("nan")


def shifted_geometric_means(
    rows: Sequence[BenchmarkRow], shift: float = 1e-3, penalty: float | None = None
) -> dict[str, float]:
    """Mean seconds of each solver over the problems of the rows that it supports.

    An unsolved problem counts `penalty` seconds, by default ten times the longest time of any solver. The mean is NaN
    for a solver that solved none. Compare means only of solvers that solved all problems.
    """
    table = _by_problem(rows)
    longest = max((row.seconds or 0.0 for row in rows), default=0.0)
    missed = 10.0 * longest if penalty is None else penalty
    able = {row.solver for row in rows if _time(row, np.inf) < np.inf}
    means = dict.fromkeys(solvers_of(rows), float("nan"))
    for solver in able:
        answers = [answers.get(solver) for answers in table.values()]
        supported = [row for row in answers if row is None or row.status is not Outcome.UNSUPPORTED]
        means[solver] = shifted_geometric_mean([_time(row, missed) for row in supported], shift)
    return means


def performance_profile(rows: Sequence[BenchmarkRow]) -> dict[str, tuple[Floats, Floats]]:
    """For each solver factors t >= 1 in rising order, and the share of all problems that it solved within t times the
    seconds of the fastest solver [Dolan and Moré, Math. Program. 91, 2002]. Problems without any solution count too.
    """
    table = _by_problem(rows)
    fastest = [min(_time(row, np.inf) for row in answers.values()) for answers in table.values()]
    curves = {}
    for solver in solvers_of(rows):
        times = np.array([_time(answers.get(solver), np.inf) for answers in table.values()])
        solved = np.isfinite(times)
        ratios = np.sort(times[solved] / np.maximum(np.array(fastest)[solved], 1e-12))
        factors, counts = np.unique(ratios, return_counts=True)
        curves[solver] = factors, np.cumsum(counts) / max(len(table), 1)
    return curves


def pairwise_wins(rows: Sequence[BenchmarkRow]) -> tuple[list[str], NDArray[np.int64]]:
    """wins[a, b]: number of problems that a solved faster than b, or that b did not solve. Equal times do not count."""
    solvers, table = solvers_of(rows), _by_problem(rows)
    times = np.array(
        [[_time(answers.get(solver), np.inf) for answers in table.values()] for solver in solvers], dtype=np.float64
    ).reshape(len(solvers), len(table))
    return solvers, np.array([[int((one < other).sum()) for other in times] for one in times], dtype=np.int64)


def _by_problem(rows: Iterable[BenchmarkRow]) -> Mapping[tuple[str, str, str], dict[str, BenchmarkRow]]:
    table: dict[tuple[str, str, str], dict[str, BenchmarkRow]] = {}
    for row in rows:
        table.setdefault((row.trace, row.problem, row.role), {})[row.solver] = row
    return table


def _time(row: BenchmarkRow | None, missed: float) -> float:
    return missed if row is None or not row.solved or row.seconds is None else row.seconds
