"""Several ascents side by side, round by round, until each is at its end or somebody stops them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from threading import Event
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from rankopt.ascent.path import AscentProblem, Path
from rankopt.optimize.certificate import Stop

__all__ = ["AscentRun", "Limits", "Round", "climbed"]

Floats = NDArray[np.float64]
Judge = Callable[[Floats], float]


@dataclass(frozen=True)
class Round:
    """What callbacks see after each round: its number, from 1; the best measure of any path, how many paths are still
    on their way, line searches of all of them and seconds since the start."""

    step: int
    value: float
    open: int
    lines: int
    seconds: float


@dataclass(frozen=True, eq=False)
class AscentRun:
    """The paths as they ended, why, and the seconds that it took."""

    paths: tuple[Path, ...]
    stop: Stop
    seconds: float


@dataclass(frozen=True, eq=False)
class Limits:
    """Rounds and seconds after which it ends, threads that may follow paths, and the seconds of an earlier part."""

    rounds: int
    seconds: float | None = None
    workers: int = 1
    spent: float = 0.0


def climbed(
    climb: AscentProblem,
    paths: Sequence[Path],
    limits: Limits,
    judge: Judge | None = None,
    callbacks: Sequence[Callable[[Round, tuple[Path, ...]], bool | None]] = (),
    keep: Callable[[tuple[Path, ...], float, bool], None] | None = None,
) -> AscentRun:
    """Follow the paths. A path never looks at another, so the bits are the same however many go side by side.

    An interruption from the keyboard, or from a callback, ends it after the line searches that had begun; what the
    paths have reached is the result. judge: how good weights are on other data; asked once at the start of a path and
    after each of its rounds. keep: told after each round where the paths stand, and at the end.
    """
    standing, halt = list(paths), Event()
    began = perf_counter() - limits.spent
    ends = np.inf if limits.seconds is None else began + limits.seconds

    def follow(number: int) -> None:
        """One path to the end of its round."""
        path = standing[number]
        if judge is not None and path.chosen is None:
            path = standing[number] = judged(path, judge)
        round = path.round
        while path.round == round and not halt.is_set() and perf_counter() < ends:
            path = climb.stepped(path, perf_counter() - began)
            if judge is not None and path.round > round:
                path = judged(path, judge)
            standing[number] = path

    stop = None
    try:
        while stop is None:
            open_paths = [i for i, path in enumerate(standing) if not path.over and path.round < limits.rounds]
            if not open_paths:
                stop = Stop.DIRECTIONS if all(path.over for path in standing) else Stop.ITERATIONS
                break
            lowest = min(standing[i].round for i in open_paths)
            _side_by_side(follow, [i for i in open_paths if standing[i].round == lowest], limits.workers, halt)
            now = perf_counter()
            if now >= ends:
                stop = Stop.TIME
                break
            told = Round(
                lowest + 1, max(path.value for path in standing), sum(not path.over for path in standing),
                sum(path.lines for path in standing), now - began,
            )  # fmt: skip
            if any([callback(told, tuple(standing)) for callback in callbacks]):
                stop = Stop.CALLBACK
            if keep is not None and stop is None:
                keep(tuple(standing), now - began, False)
    except KeyboardInterrupt:
        stop = Stop.INTERRUPTED
    seconds = perf_counter() - began
    if keep is not None:
        keep(tuple(standing), seconds, True)
    return AscentRun(tuple(standing), stop, seconds)


def judged(path: Path, judge: Judge) -> Path:
    """The path with its w chosen, if that is judged better than what was."""
    rating = judge(path.w)
    return replace(path, chosen=path.w, rating=rating) if path.chosen is None or rating > path.rating else path


def _side_by_side(follow: Callable[[int], None], numbers: Sequence[int], workers: int, halt: Event) -> None:
    """Follow these paths. An interruption, or an error of one, halts the others after their line searches."""
    if workers < 2 or len(numbers) < 2:
        for number in numbers:
            follow(number)
        return
    with ThreadPoolExecutor(min(workers, len(numbers)), thread_name_prefix="rankopt-path") as pool:
        following = [pool.submit(follow, number) for number in numbers]
        try:
            done, _ = wait(following, return_when=FIRST_EXCEPTION)
        except KeyboardInterrupt:
            halt.set()
            raise
        if any(one.exception() is not None for one in done):
            halt.set()
    for one in following:
        one.result()
