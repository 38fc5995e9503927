"""One ascent as plain data, and one line search of it.

What is climbed is J(w) = M(w) - (λ/2) Σ_j σ_j² (w_j - w0_j)²: M the measure, σ_j the deviation of feature j inside
queries; λ is 0 unless given, and then J is M. A step is taken where the measure is measured again, at X w, and J is
larger by more than tol; so J never falls, whatever rounding does to a crossing.

Source: paper 3 (DirectRank), Algorithm 1; measured again, and windows, are ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.brevity import CompactReprMixin
from rankopt.ascent.directions import Directions
from rankopt.ascent.moves import Move
from rankopt.optimize.line_search import LineSearch, Point

__all__ = ["AscentProblem", "Path"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Path(CompactReprMixin):
    """Where an ascent stands between two line searches: all that is needed to go on to the same bits.

    w: (d,), value: M(w). round: rounds begun; place: directions of it that were tried; lines: line searches in all.
    begun, generator: w and the generator of draws as the round began; advance: by which the last round moved w.
    moved: whether this round did; excess: how far above `value` the best of the lines of this round reached, while it
    did not. over: no direction of a whole round led higher. chosen, rating: w as it was best judged, and how well.
    """

    number: int
    w: Floats
    value: float
    begun: Floats
    advance: Floats
    generator: dict[str, Any]
    round: int = 0
    place: int = 0
    lines: int = 0
    moved: bool = False
    excess: float = 0.0
    over: bool = False
    chosen: Floats | None = None
    rating: float = -np.inf
    moves: tuple[Move, ...] = field(default=(), repr=False)

    @classmethod
    def started(cls, number: int, w: Floats, value: float, generator: dict[str, Any]) -> Path:
        """A path that begins at w."""
        return cls(number, w, value, w, np.zeros(w.size), generator)


@dataclass(frozen=True, eq=False)
class AscentProblem:
    """How paths go: along which lines of which measure, where to stand, what counts as higher."""

    search: LineSearch
    directions: Directions
    greedy: bool
    point: Point
    window: float
    lam: float
    w0: Floats
    tol: float

    def listed(self, path: Path) -> list[int | Floats]:
        """The directions of the round that the path is in."""
        return self.directions.of_round(path.advance, path.generator)[0]

    def stepped(self, path: Path, seconds: float) -> Path:
        """The path after its next line search (of a greedy one after all of a round), and the round closed after its
        last."""
        listed = self.listed(path)
        path = self._greedily(path, listed, seconds) if self.greedy else self._next(path, listed, seconds)
        return path if path.place < len(listed) else self._closed(path)

    def _next(self, path: Path, listed: list[int | Floats], seconds: float) -> Path:
        direction = listed[path.place]
        found = self.search.along(path.w, direction, self.point, self.window, self._pull(path.w, direction))
        path = replace(path, place=path.place + 1, lines=path.lines + 1)
        return self._taken(path, path.place - 1, direction, found, seconds)

    def _greedily(self, path: Path, listed: list[int | Floats], seconds: float) -> Path:
        """All lines of a round from one w; of those that lead higher the highest that does so when measured."""
        pulls = [self._pull(path.w, direction) for direction in listed]
        if self.lam > 0:
            lines = [
                self.search.along(path.w, v, self.point, self.window, pull)
                for v, pull in zip(listed, pulls, strict=True)
            ]
        else:
            lines = self.search.along_all(path.w, listed, self.point, self.window)
        path = replace(path, place=len(listed), lines=path.lines + len(listed))
        path = replace(path, excess=max([0.0, *(line.best - path.value for line in lines)]))
        gains = [line.value - self._cost(line.t, pull) for line, pull in zip(lines, pulls, strict=True)]
        for place in np.argsort(-np.array(gains), kind="stable").tolist():
            if gains[place] <= path.value + self.tol:
                break
            after = self._taken(path, place, listed[place], lines[place], seconds)
            if after.moved:
                return after
        return path

    def _taken(self, path: Path, place: int, direction: int | Floats, found: Any, seconds: float) -> Path:
        """The path with this step, if it leads higher."""
        if not path.moved:
            path = replace(path, excess=max(path.excess, found.best - path.value))
        if found.t == 0.0 or found.value - self._cost(found.t, self._pull(path.w, direction)) <= path.value + self.tol:
            return path
        w = moved(path.w, direction, found.t)
        value = self.search.value(w)
        if not (np.isfinite(w).all() and self._height(w, value) > self._height(path.w, path.value) + self.tol):
            return path
        feature = direction if isinstance(direction, int) else -1 - self._drawn(path, place)
        move = Move(
            path.number, path.round + 1, path.lines, feature, found.t, found.low, found.high, path.value, found.value,
            value, seconds,
        )  # fmt: skip
        return replace(path, w=w, value=value, moved=True, moves=(*path.moves, move))

    def _closed(self, path: Path) -> Path:
        """The round is over: the next begins, unless nothing moved."""
        if not path.moved:
            return replace(path, round=path.round + 1, over=True)
        _, generator = self.directions.of_round(path.advance, path.generator)
        return replace(
            path, round=path.round + 1, place=0, moved=False, excess=0.0, advance=path.w - path.begun, begun=path.w,
            generator=generator,
        )  # fmt: skip

    def _drawn(self, path: Path, place: int) -> int:
        """0 of Powell's direction, else the number of the draw, from 1."""
        count = self.directions.units.size if self.directions.coordinates else 0
        return place - count + (0 if self.directions.powell and path.advance.any() else 1)

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
