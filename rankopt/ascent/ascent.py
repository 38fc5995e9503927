"""Coordinate ascent on a measure with exact line search, for several paths in parallel.

The objective is J(w) = M(w) - (λ/2) Σ_j σ_j² (w_j - w0_j)²: M the measure, σ_j the standard deviation of feature j
within queries; λ defaults to 0, and then J is M. A step is accepted if the measure, recomputed at X w, increases J by
more than tol. Hence J never decreases, whatever the rounding of crossings.

Source: paper 3 (DirectRank), Algorithm 1; recomputation and windows are ours.

Directions of a round:

    "coordinates"              the unit vectors e_1, ..., e_d
    "powell"                   w after the last round that moved it, less w before it [Powell 1964; paper 3, section 4]
    RandomDirections(count)    `count` vectors drawn anew for each round, each entry normal in units of one standard
                               deviation of its feature

They are tried in this order. Powell's direction is the sum of the steps of a round: it follows a ridge that no
coordinate follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from threading import Event
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats
from formulations.display import Axes, CompactReprMixin
from rankopt.errors import OptionError
from rankopt.optimize.certificate import History, Stop
from rankopt.optimize.line_search import LineSearch, Point
from rankopt.options import set_integers


@dataclass(frozen=True)
class Move:
    """One accepted step: of which path, in which round, after how many line searches of its path; along which feature
    (-1 for Powell's direction, -2 and below for those drawn), by t, inside (low, high); the measure before it, as
    predicted there, and as measured; seconds since the start."""

    path: int
    round: int
    lines: int
    feature: int
    t: float
    low: float
    high: float
    before: float
    predicted: float
    value: float
    seconds: float

    axis: ClassVar[str] = "lines"

    @staticmethod
    def draw(history: History, axes: Axes, x: NDArray[Any]) -> str:
        """The measure of each path after every accepted step. Steps of one path are contiguous and in order."""
        paths = np.unique(history.path)
        for path in paths:
            own, label = history.path == path, f"path {path}" if 1 < paths.size <= 8 else None
            axes.step(x[own], history.value[own], where="post", label=label)
        return "measure"


NAMES = ("coordinates", "powell")


@dataclass(frozen=True)
class RandomDirections:
    """`count` directions drawn anew in each round."""

    count: int = 10

    def __post_init__(self) -> None:
        set_integers(self, 1, "count")


@dataclass(frozen=True, eq=False)
class Directions:
    """The directions of every round. units: (d,) the deviations of the features, 1 where a feature is constant."""

    coordinates: bool
    powell: bool
    drawn: int
    units: Floats

    @classmethod
    def from_spec(cls, given: Any, deviations: Floats) -> Directions:
        """The directions of a ranker's option: names and `RandomDirections`, in any order. OptionError for anything
        else."""
        check_directions(given)
        drawn = sum(one.count for one in given if isinstance(one, RandomDirections))
        units = np.where(deviations > 0, deviations, 1.0)
        return cls("coordinates" in given, "powell" in given, drawn, units)

    def of_round(self, advance: Floats, generator: dict[str, Any]) -> tuple[list[int | Floats], dict[str, Any]]:
        """The directions of a round, and the generator after its draws. advance: by which the last round moved w."""
        found: list[int | Floats] = [*range(self.units.size)] if self.coordinates else []
        if self.powell and advance.any():
            found.append(advance)
        if not self.drawn:
            return found, generator
        bits: Any = np.random.PCG64()
        bits.state = generator
        rows = np.random.Generator(bits).normal(size=(self.drawn, self.units.size)) / self.units
        return [*found, *rows], dict(bits.state)


def check_directions(given: Any) -> None:
    """Raise OptionError for what names no directions."""
    several = isinstance(given, Sequence) and not isinstance(given, str)
    if not several or not given or not all(isinstance(one, RandomDirections) or one in NAMES for one in given):
        raise OptionError(
            f"directions = {given!r} is invalid; pass a sequence of {', '.join(map(repr, NAMES))} and "
            "RandomDirections(count), such as ('coordinates',)"
        )
    if set(given) == {"powell"}:
        raise OptionError("directions = ('powell',) never begins: 'powell' sums other steps; add 'coordinates'")


@dataclass(frozen=True, eq=False)
class AscentPath(CompactReprMixin):
    """State of an ascent between two line searches; enough to resume with identical results.

    w: (d,), value: M(w). round: rounds begun; index: directions of it that were tried; lines: line searches in total.
    begun, generator: w and the random generator at the start of the round; advance: the last round's change of w.
    moved: whether this round moved; excess: the best value of this round's lines above `value`, as long as it did not.
    over: no direction of a complete round led higher. chosen, rating: the best-rated w, and its rating.
    """

    number: int
    w: Floats
    value: float
    begun: Floats
    advance: Floats
    generator: dict[str, Any]
    round: int = 0
    index: int = 0
    lines: int = 0
    moved: bool = False
    excess: float = 0.0
    over: bool = False
    chosen: Floats | None = None
    rating: float = -np.inf
    moves: tuple[Move, ...] = field(default=(), repr=False)

    @classmethod
    def started(cls, number: int, w: Floats, value: float, generator: dict[str, Any]) -> AscentPath:
        """A path that begins at w."""
        return cls(number, w, value, w, np.zeros(w.size), generator)


@dataclass(frozen=True, eq=False)
class AscentProblem:
    """Settings of the ascent: directions, measure, rule for the point on a line, and acceptance."""

    search: LineSearch
    directions: Directions
    greedy: bool
    point: Point
    window: float
    lam: float
    w0: Floats
    tol: float

    def listed(self, path: AscentPath) -> list[int | Floats]:
        """The directions of the round that the path is in."""
        return self.directions.of_round(path.advance, path.generator)[0]

    def stepped(self, path: AscentPath, seconds: float) -> AscentPath:
        """The path after its next line search (of a greedy one after all of a round), and the round closed after its
        last."""
        listed = self.listed(path)
        path = self._greedily(path, listed, seconds) if self.greedy else self._next(path, listed, seconds)
        return path if path.index < len(listed) else self._end_round(path)

    def _next(self, path: AscentPath, listed: list[int | Floats], seconds: float) -> AscentPath:
        direction = listed[path.index]
        found = self.search.along(path.w, direction, self.point, self.window, self._pull(path.w, direction))
        path = replace(path, index=path.index + 1, lines=path.lines + 1)
        return self._take_step(path, path.index - 1, direction, found, seconds)

    def _greedily(self, path: AscentPath, listed: list[int | Floats], seconds: float) -> AscentPath:
        """All lines of a round from one w; of those that lead higher the highest that does so when measured."""
        pulls = [self._pull(path.w, direction) for direction in listed]
        if self.lam > 0:
            lines = [
                self.search.along(path.w, v, self.point, self.window, pull)
                for v, pull in zip(listed, pulls, strict=True)
            ]
        else:
            lines = self.search.along_all(path.w, listed, self.point, self.window)
        path = replace(path, index=len(listed), lines=path.lines + len(listed))
        path = replace(path, excess=max([0.0, *(line.best - path.value for line in lines)]))
        gains = [line.value - self._cost(line.t, pull) for line, pull in zip(lines, pulls, strict=True)]
        for index in np.argsort(-np.array(gains), kind="stable").tolist():
            if gains[index] <= path.value + self.tol:
                break
            after = self._take_step(path, index, listed[index], lines[index], seconds)
            if after.moved:
                return after
        return path

    def _take_step(
        self, path: AscentPath, index: int, direction: int | Floats, found: Any, seconds: float
    ) -> AscentPath:
        """The path with this step, if it leads higher."""
        if not path.moved:
            path = replace(path, excess=max(path.excess, found.best - path.value))
        if found.t == 0.0 or found.value - self._cost(found.t, self._pull(path.w, direction)) <= path.value + self.tol:
            return path
        w = moved(path.w, direction, found.t)
        value = self.search.value(w)
        if not (np.isfinite(w).all() and self._height(w, value) > self._height(path.w, path.value) + self.tol):
            return path
        feature = direction if isinstance(direction, int) else -1 - self._draw_number(path, index)
        move = Move(
            path.number, path.round + 1, path.lines, feature, found.t, found.low, found.high, path.value, found.value,
            value, seconds,
        )  # fmt: skip
        return replace(path, w=w, value=value, moved=True, moves=(*path.moves, move))

    def _end_round(self, path: AscentPath) -> AscentPath:
        """End the round: the next begins, unless w did not move."""
        if not path.moved:
            return replace(path, round=path.round + 1, over=True)
        _, generator = self.directions.of_round(path.advance, path.generator)
        return replace(
            path, round=path.round + 1, index=0, moved=False, excess=0.0, advance=path.w - path.begun, begun=path.w,
            generator=generator,
        )  # fmt: skip

    def _draw_number(self, path: AscentPath, index: int) -> int:
        """0 of Powell's direction, else the number of the draw, from 1."""
        count = self.directions.units.size if self.directions.coordinates else 0
        return index - count + (0 if self.directions.powell and path.advance.any() else 1)

    def _height(self, w: Floats, value: float) -> float:
        """J(w)."""
        if self.lam == 0:
            return value
        apart = (w - self.w0) * self.directions.units
        return value - 0.5 * self.lam * float(apart @ apart)

    def _pull(self, w: Floats, direction: int | Floats) -> tuple[float, float] | None:
        """Slope and curvature of the penalty along the line."""
        if self.lam == 0:
            return None
        squares = self.directions.units**2
        if isinstance(direction, int):
            return self.lam * squares[direction] * (w - self.w0)[direction], self.lam * squares[direction]
        steep = squares * direction
        return self.lam * float(steep @ (w - self.w0)), self.lam * float(steep @ direction)

    def _cost(self, t: float, pull: tuple[float, float] | None) -> float:
        """By how much a step of t raises the penalty."""
        return 0.0 if pull is None else t * (pull[0] + 0.5 * pull[1] * t)


def moved(w: Floats, direction: int | Floats, t: float) -> Floats:
    """w + t v."""
    if not isinstance(direction, int):
        return w + t * direction
    there = w.copy()
    there[direction] += t
    return there


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

    def __str__(self) -> str:
        left = f"{self.open} paths on their way, {self.lines} line searches"
        return f"round {self.step}: measure {self.value:.6g}, {left}, {self.seconds:.1f} s"


@dataclass(frozen=True, eq=False)
class AscentRun:
    """The paths as they ended, why, and the seconds that it took."""

    paths: tuple[AscentPath, ...]
    stop: Stop
    seconds: float


@dataclass(frozen=True, eq=False)
class AscentLimits:
    """Rounds and seconds after which it ends, threads that may follow paths, and the seconds of an earlier part."""

    rounds: int
    seconds: float | None = None
    workers: int = 1
    spent: float = 0.0


def climbed(
    climb: AscentProblem,
    paths: Sequence[AscentPath],
    limits: AscentLimits,
    judge: Judge | None = None,
    callbacks: Sequence[Callable[[Round, tuple[AscentPath, ...]], bool | None]] = (),
    keep: Callable[[tuple[AscentPath, ...], float, bool], None] | None = None,
) -> AscentRun:
    """Follow the paths. They are independent: results are bit-identical for any number of parallel paths.

    A keyboard interruption or a callback ends the run after the line searches in progress; the result is the current
    state of the paths. judge: rates weights on other data, once at the start of a path and after each round. keep:
    called after each round and at the end with the state of the paths.
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
            finished = Round(
                lowest + 1, max(path.value for path in standing), sum(not path.over for path in standing),
                sum(path.lines for path in standing), now - began,
            )  # fmt: skip
            if any([callback(finished, tuple(standing)) for callback in callbacks]):
                stop = Stop.CALLBACK
            if keep is not None and stop is None:
                keep(tuple(standing), now - began, False)
    except KeyboardInterrupt:
        stop = Stop.INTERRUPTED
    seconds = perf_counter() - began
    if keep is not None:
        keep(tuple(standing), seconds, True)
    return AscentRun(tuple(standing), stop, seconds)


def judged(path: AscentPath, judge: Judge) -> AscentPath:
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
