"""Sensitivity of the optimum to the limit of a constraint: the best value at each limit, with a proved dual.

At limit l let y be a dual solution of the linear program. By weak duality no ranking under limit l' is worth more than

    relaxed(l) + price(l) · (l' - l)     relaxed: the bound of y at l; price: the sum of y over the constraint's rows

so each point proves a line above the full curve. Of several dual solutions with the same bound, the one towards looser
limits is used: where the program is integral, its price bounds the gain of the next unit. Elsewhere `relaxed` is above
the best value, which may gain more. Limits that admit the same rankings (`limit_range`) are solved once.

The price of "at least" is never positive: where the program is integral, one more unit costs at least its magnitude.
Limits of counts are integers. Limits of a constraint with share= are shares, without a price: their counts are rounded.

Of a linear program the limit of rows is swept, by name. The price is the sum of their duals in the relaxation, one of
several optimal ones: the change of the relaxation's optimum per unit of the limit, in the sense of the program.

>>> site = RankingSet(4, 3).at_most(2, documents=[0, 1, 2], name="site")
>>> problem = constrained_ranking(np.outer([3.0, 2.0, 1.0], [5.0, 4.0, 3.0, 1.0]), site)
>>> print(sensitivity(problem, "site", range(1, 4)))
site at most  value  LP price  LP integral
           1  empty
           2     24         2          yes
           3     26         0          yes
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from formulations.arrays import LARGEST_EXACT, Bools, Floats, Ints, check_type, each, finite, frozen, numbers
from formulations.constraints.constrained_ranking import ConstrainedRanking
from formulations.constraints.constraint import Constraint, ShareLimit, row_rounding
from formulations.constraints.duals import relaxation_prices
from formulations.constraints.ranking_set import RankingSet
from formulations.display import Axes, CompactReprMixin, aligned, axes_for, data_frame, tick_each
from formulations.errors import InfeasibleError, InvalidProblemError, UnsupportedProblemError
from formulations.gallery.assignments import constrained_ranking
from formulations.problems.cvxpy_problem import as_form, is_model
from formulations.problems.linear_program import LinearProgram
from formulations.problems.problem import Problem
from formulations.solvers.solver import Solver
from formulations.solving.solve import solve

Side: TypeAlias = Literal["at most", "at least", "exactly"]

SIDES = ("at most", "at least", "exactly")

MAX_POINTS = 10_000  # largest number of points of a curve
MAX_NAMED = 10  # largest number of limits in a message

RELATIVE_GAP = 1e-7
"""Tolerance of equality of the relaxation and a ranking, relative to the largest profit, as of LP solvers."""


@dataclass(frozen=True, eq=False)
class SensitivityCurve(CompactReprMixin):
    """The optimum against the limit of a constraint, for one problem or several (queries).

    A limit at which most problems have no ranking has no mean: those that have one are a selection. Means at the other
    limits are over the same problems: those that have a ranking at each of them.

    name: of the constraint, with its side. limits (m,). The others are (m,), or (problems, m) for several: value, of
    the best ranking, NaN if there is none; bound, proved for it; relaxed, the optimum of the linear program; price, the
    sum of the constraint's duals in the linear program, per unit of the limit, NaN if there is none; integral, whether
    the linear program, without integers, has an integral optimum. title: the first line of the table, if any.
    """

    name: str
    limits: Floats
    value: Floats
    bound: Floats
    relaxed: Floats
    price: Floats
    integral: Bools
    title: str = field(default="", kw_only=True)
    has_lines: bool = field(default=True, kw_only=True)  # False for a program, whose bounds hold at their own limits

    @classmethod
    def from_curves(cls, name: str, limits: Floats, every: Sequence[SensitivityCurve | None]) -> SensitivityCurve:
        """The curves of several problems at the same limits; None: a problem without a ranking at any limit."""
        limits = finite("limits", limits, 1)
        none = np.full(limits.size, np.nan)
        empty = cls(name, limits, none, none, none, none, np.zeros(limits.size, dtype=bool))
        filled = [empty if one is None else one for one in every]
        fields = ("value", "bound", "relaxed", "price", "integral")
        return cls(name, limits, *(frozen(np.array([getattr(one, field) for one in filled])) for field in fields))

    @property
    def empty(self) -> Bools:
        """The limits that leave no ranking."""
        return np.isnan(self.value)

    def above(self, limit: ArrayLike) -> Floats:
        """The least bound that the duals of all points prove for this limit; inf if no point has a ranking. Raises
        UnsupportedProblemError for a curve of a linear program."""
        if not self.has_lines:
            raise UnsupportedProblemError("above() is for rankings; bounds of a program are proved at its limits only")
        at = numbers("limit", limit)[..., None]
        lines = self.relaxed + np.where(at == self.limits, 0.0, self.price * (at - self.limits))
        return np.asarray(np.where(self.empty | np.isnan(lines), np.inf, lines).min(axis=-1))

    @property
    def excluded(self) -> Bools:
        """(m,) the limits without a mean: most problems have no ranking there, or without them no problem would have
        one at all others. Problems without a ranking at any limit do not count."""
        empty = np.atleast_2d(self.empty)
        some = empty[~empty.all(axis=1)]
        if not len(some):
            return np.ones(self.limits.size, dtype=bool)
        out = np.asarray(2 * some.sum(axis=0) > len(some))
        none_left = some[:, ~out].any(axis=1).all()
        return out | some[np.argmin(some[:, ~out].sum(axis=1))] if none_left else out

    @property
    def _is_complete(self) -> Bools:
        """(problems,) which problems have a ranking at every limit that has a mean."""
        empty = np.atleast_2d(self.empty)
        return np.asarray(~empty[:, ~self.excluded].any(axis=1) & ~empty.all(axis=1))

    @property
    def shared(self) -> int:
        """Number of problems with a ranking at every limit that has a mean; means and deviations are over these."""
        return int(self._is_complete.sum())

    @property
    def note(self) -> str:
        """Which queries and limits the means leave out, in words; "" if none."""
        out = [f"{limit:g}" for limit in np.unique(self.limits[self.excluded])]
        if self.excluded.all():
            return "At no limit do most queries have a ranking, so there is no mean: loosen the other constraints."
        if self.shared == len(np.atleast_2d(self.value)) and not out:
            return ""
        more = f" and {len(out) - MAX_NAMED} more" if len(out) > MAX_NAMED else ""
        but = f" but {', '.join(out[:MAX_NAMED])}{more}, which too few can meet" if out else ""
        return f"Means are over the {self.shared} of {len(self.value)} queries with a ranking at every limit{but}."

    def _moments(self, values: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of values (problems, m); NaN of too few, and at excluded limits."""
        none = np.full(self.limits.size, np.nan)
        mean = values.mean(axis=0) if len(values) else none
        spread = values.std(axis=0, ddof=1) if len(values) > 1 else none
        return np.where(self.excluded, none, mean), np.where(self.excluded, none, spread)

    @property
    def mean(self) -> Floats:
        return self._moments(np.atleast_2d(self.value)[self._is_complete])[0]

    @property
    def spread(self) -> Floats:
        """Standard deviation of the values over the problems."""
        return self._moments(np.atleast_2d(self.value)[self._is_complete])[1]

    @property
    def lost(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of each problem's loss against the best value of its own curve."""
        values = np.atleast_2d(self.value)[self._is_complete]
        return self._moments(np.nanmax(values, axis=1, keepdims=True) - values)

    def columns(self) -> dict[str, Any]:
        """The columns of the table by name: the points of one problem; mean, deviation and counts of several."""
        if self.value.ndim == 1:
            points = {name: getattr(self, name) for name in ("value", "bound", "relaxed", "price", "integral")}
            return {"limit": self.limits, **points}
        (mean, spread), (lost, lost_spread) = (self.mean, self.spread), self.lost
        return {
            "limit": self.limits, "queries": np.where(self.excluded, 0, self.shared), "mean": mean,
            "spread": spread, "lost": lost, "spread of it": lost_spread,
            "LP price": self._moments(self.price[self._is_complete])[0],
            "LP integral": (self.integral & ~self.empty).sum(axis=0), "empty": self.empty.sum(axis=0),
        }  # fmt: skip

    def to_frame(self) -> Any:
        """A pandas data frame, one row per limit; FormulationError if pandas is not installed."""
        return data_frame(self.columns())

    def plot(self, axes: Axes | None = None) -> Axes:
        """The best value and the optimum of the linear program against the limit; of several problems the mean loss
        against the loosest limit, with the standard deviation as a band."""
        axes = axes_for(axes)
        if self.value.ndim == 1:
            relaxed = np.where(self.empty, np.nan, self.relaxed)
            axes.plot(self.limits, relaxed, "--s", markersize=4, label="linear program")
            axes.plot(self.limits, self.value, "-o", markersize=4, label="best ranking")
        else:
            lost, off = self.lost
            (line,) = axes.plot(self.limits, lost, "-o", markersize=4, label=f"mean of {self.shared}")
            axes.fill_between(self.limits, np.maximum(lost - off, 0.0), lost + off, color=line.get_color(), alpha=0.2,
                              linewidth=0, label="spread")  # fmt: skip
        axes.set(xlabel=self.name, ylabel="value" if self.value.ndim == 1 else "lost of the best value")
        tick_each(axes, self.limits)
        axes.legend(frameon=False)
        return axes

    def _table(self) -> list[list[str]]:
        """Head and rows as text."""
        if self.value.ndim == 1:
            points = zip(self.limits, self.empty, self.value, self.price + 0.0, self.integral, strict=True)
            return [[self.name, "value", "LP price", "LP integral"], *(
                [f"{limit:g}", "empty", "", ""] if empty
                else [f"{limit:g}", f"{value:.6g}", f"{price:.4g}", "yes" if integral else "no"]
                for limit, empty, value, price, integral in points
            )]  # fmt: skip
        columns = self.columns()
        there = len(self.value) - columns["empty"]
        forms = ("{:g}", "{:d}", "{:.5g}", "{:.3g}", "{:.4g}", "{:.3g}", "{:.4g}", "{:d}", "{:d}")
        rows = [[form.format(cell) for form, cell in zip(forms, row, strict=True)]
                for row in zip(*(column + 0 for column in columns.values()), strict=True)]  # fmt: skip
        for row, count, out in zip(rows, there, self.excluded, strict=True):
            row[-2] += f"/{count}"
            row[1:7] = ["-"] * 6 if out else row[1:7]
        return [[self.name, *[*columns][1:]], *rows]

    def __str__(self) -> str:
        table = self._table()
        if np.isnan(self.price).all():
            column = table[0].index("LP price")
            table = [[*row[:column], *row[column + 1 :]] for row in table]
        lines = aligned(table)
        note = self.note if self.value.ndim > 1 else ""
        return "\n".join(line for line in (self.title, *lines, note) if line)


def sensitivity(
    problem: ConstrainedRanking | RankingSet | LinearProgram | Sequence[ConstrainedRanking] | Any,
    constraint: str,
    limits: Iterable[float],
    *,
    profit: ArrayLike | None = None,
    side: Side | None = None,
    solver: Solver | str = "auto",
) -> SensitivityCurve:
    """The curve of the best value against the limit of a constraint.

    Args:
        problem: a problem of `constrained_ranking`; a set with its profit (it may be empty under its own limit); a
            linear program, with or without integers, or a model that `as_problem` reads as one; or a sequence of
            problems of `constrained_ranking` (queries) whose sets have constraints of this name, for mean and
            deviation.
        constraint: the name of a constraint, all of whose rows get the limit, or of one row, such as "site['a.org']".
        limits: the limits to evaluate, at most 10,000: integers for a constraint of counts, shares from 0 to 1 for one
            with share=.
        side: "at most", "at least" or "exactly"; required if the constraint has limits on both sides.
        solver: of each point.

    Raises:
        InvalidProblemError: no constraint has this name, or has no limits; a set without a profit; no limits, too many,
            or none of this constraint.
        InfeasibleError: the set has no ranking at any of the limits, nor under its own.
        SolverError, UnsupportedProblemError: as `solve`. A limit that leaves no ranking is an empty point.
    """
    requested = read_limits(limits)
    if isinstance(problem, RankingSet):
        if profit is None:
            raise InvalidProblemError(
                "a set alone has no values; pass profit= of shape (k, n), or a problem of constrained_ranking()"
            )
        problem = _feasible_problem(profit, problem, constraint, requested, side)
    if isinstance(problem, ConstrainedRanking):
        return _curve(problem, constraint, requested, side, solver)
    problem = as_form(problem) if is_model(problem) else problem
    if isinstance(problem, LinearProgram):
        return _curve_of_program(problem, constraint, requested, side, solver)
    every = () if isinstance(problem, Problem) else each("problem", problem)
    if not every or not all(isinstance(one, ConstrainedRanking) for one in every):
        raise InvalidProblemError(
            f"problem must be of constrained_ranking(), several of these, a RankingSet, or a linear program; got "
            f"{problem!r:.80}. Of an assignment or a flow pass problem.to_cvxpy()."
        )
    found = [_curve(one, constraint, requested, side, solver) for one in every]
    return SensitivityCurve.from_curves(found[0].name, requested, found)


def _feasible_problem(
    profit: ArrayLike, admissible: RankingSet, name: str, limits: Floats, side: str | None
) -> ConstrainedRanking:
    """The problem of a set; if it is empty, at the first of the limits that leaves a ranking."""
    try:
        return constrained_ranking(profit, admissible)
    except InfeasibleError:
        limit = _checked_limit(admissible, name, limits, side)
        for one in dict.fromkeys(np.clip(limits, *limit_range(limit)).tolist()):
            with suppress(InfeasibleError):
                return constrained_ranking(profit, limit.at(one))
        raise


def _curve(
    problem: ConstrainedRanking, name: str, limits: Floats, side: str | None, solver: Solver | str
) -> SensitivityCurve:
    limit = _checked_limit(problem.admissible, name, limits, side)
    low, high = limit_range(limit)
    differing = np.clip(limits, low, high)
    points = {one: _point(problem, limit, one, solver) for one in dict.fromkeys(differing.tolist())}
    share = "" if limit.shares is None else "share "
    curve = _assembled(f"{name} {share}{limit.side}", limits, [points[one] for one in differing.tolist()])
    loose = limits >= high if limit.side == "at most" else (limits <= low) & (limit.side == "at least")
    loose &= ~curve.empty & (limit.shares is None)  # `relaxed` bounds the rankings under any limit
    return replace(curve, price=frozen(np.where(loose, 0.0, curve.price)))


def _assembled(name: str, limits: Floats, points: list[tuple[float, ...]], has_lines: bool = True) -> SensitivityCurve:
    *values, integral = np.array(points).T.copy()
    return SensitivityCurve(name, *map(frozen, (limits.copy(), *values, integral == 1.0)), has_lines=has_lines)


def _curve_of_program(
    program: LinearProgram, name: str, limits: Floats, side: str | None, solver: Solver | str
) -> SensitivityCurve:
    owner = np.repeat([block.label for block in program.rows], [block.size for block in program.rows])
    rows = owner == name
    if not rows.any():
        rows = np.array([one == name for one in program.program.names[1]], dtype=bool)
    if not rows.any():
        labels = [block.label for block in program.rows[:MAX_NAMED]] + program.program.names[1][:MAX_NAMED]
        known = ", ".join(map(repr, dict.fromkeys(labels))) or "none"
        raise InvalidProblemError(
            f"no row is named {name!r}; there are {known}. The name of a family of rows gives all of them one limit."
        )
    side = _chosen_side(program.row_lower[rows], program.row_upper[rows], name, side)
    points = {one: _point_of_program(program, rows, side, one, solver) for one in dict.fromkeys(limits.tolist())}
    curve = _assembled(f"{name} {side}", limits, [points[one] for one in limits.tolist()], has_lines=False)
    if curve.empty.all():
        raise InfeasibleError(f"the program has no feasible point at any of the limits of {name!r}; give others")
    return curve


def _point_of_program(
    program: LinearProgram, rows: Bools, side: str, at: float, solver: Solver | str
) -> tuple[float, ...]:
    """Value, bound, relaxed value, price and integrality at one limit of these rows."""
    low = program.row_lower if side == "at most" else np.where(rows, at, program.row_lower)
    high = program.row_upper if side == "at least" else np.where(rows, at, program.row_upper)
    try:
        moved = replace(program, row_lower=low, row_upper=high)
        solution = solve(moved, solver)
    except InfeasibleError:
        return (np.nan, np.nan, np.nan, np.nan, 0.0)
    real = solution if moved.integer is None else solve(replace(moved, integer=None), solver)
    price = np.nan if real.y is None else float(real.y[rows].sum()) * (-1.0 if moved.is_maximization else 1.0)
    searched, value = moved.integer is not None, solution.value
    off = abs(real.bound - value) if searched else np.abs(solution.x - np.round(solution.x)).max()
    slack = RELATIVE_GAP * (max(1.0, abs(value)) if searched else 1.0)
    return (value, solution.bound, real.bound, price, float(off <= slack))


def _checked_limit(admissible: RankingSet, name: str, limits: Floats, side: str | None) -> ConstraintLimit:
    """The limit of this name; InvalidProblemError if a requested limit is beyond its limit on the other side."""
    limit = limit_of(admissible, name, side)
    for one in limits.tolist():
        limit.check(one)
    return limit


def _point(problem: ConstrainedRanking, limit: ConstraintLimit, at: float, solver: Solver | str) -> tuple[float, ...]:
    """Value, bound, relaxed value, price and integrality at one limit."""
    admissible = limit.at(at)
    if admissible.max_positions < admissible.positions:  # an InfeasibleError would search for the conflict first
        return (np.nan, np.nan, np.nan, np.nan, 0.0)
    moved = replace(problem, admissible=admissible, ranked=None)
    solution = solve(moved, solver)
    known = [solution.y] if solution.y is not None and solution.y.ndim == 1 else []
    slack = RELATIVE_GAP * float(np.abs(moved.profit).max())  # of what rankings are worth: soft rows may cost far more
    tight = any(moved.bound(y) - solution.value <= slack for y in known)  # these duals are optimal
    found = None if tight else relaxation_prices(moved.compiled, moved.worth)
    prices = [*known, *([] if found is None else [found])]
    bounds = [moved.bound(y) for y in prices]
    relaxed = min(bounds, default=np.inf)
    if limit.shares is not None:
        return (solution.value, solution.bound, relaxed, np.nan, float(relaxed - solution.value <= slack))
    sign = {"exactly": 0.0, "at most": 1.0, "at least": -1.0}[limit.side]
    for towards in (sign * np.array([0.5, 0.125, 0.03125, 0.0078125])).tolist() if sign else ():
        looser = replace(moved, admissible=limit.at(at + towards))
        next_ = relaxation_prices(looser.compiled, looser.worth)
        if next_ is None:
            break
        price = _sum_of_duals(looser, limit, next_)
        shown = looser.bound(next_) - price * towards  # the same duals at `at`: their bound is linear in the limit
        if shown <= relaxed + slack:  # else the price changes between `at` and the looser limit
            return (solution.value, solution.bound, shown, price, float(relaxed - solution.value <= slack))
    price = _sum_of_duals(moved, limit, prices[int(np.argmin(bounds))]) if prices else np.nan
    return (solution.value, solution.bound, relaxed, price, float(relaxed - solution.value <= slack))


def _sum_of_duals(problem: ConstrainedRanking, limit: ConstraintLimit, y: Floats) -> float:
    """The sum of the duals of the varied rows."""
    held = problem.named_dual(y)[limit.constraint.name].ravel()
    return float(held[limit.rows].sum())


@dataclass(frozen=True, eq=False)
class ConstraintLimit:
    """The limits of `rows` (a mask) of a constraint of the set, on one side, or on both for "exactly"; or its share."""

    admissible: RankingSet
    constraint: Constraint
    rows: Bools
    side: str
    shares: ShareLimit | None = None

    def at(self, limit: float) -> RankingSet:
        """The set with this limit (see `check`)."""
        admissible, held = self.admissible, self.constraint
        if self.shares is not None:
            fresh = replace(self.shares.constraint(limit), name=held.name)
        else:
            upper = held.upper if self.side == "at least" else np.where(self.rows, limit, held.upper)
            lower = held.lower if self.side == "at most" else np.where(self.rows, limit, held.lower)
            swept = f"{self.side} {limit:g}, as swept"
            texts = tuple(swept if moved else held.description(r) for r, moved in enumerate(self.rows))
            fresh = replace(held, lower=lower, upper=upper, text=texts, share_limit=None)
        return replace(
            admissible,
            constraints=tuple(fresh if one is held else one for one in admissible.constraints),
            soft_constraints=tuple(
                replace(one, constraint=fresh) if one.constraint is held else one for one in admissible.soft_constraints
            ),
        )

    @property
    def is_soft(self) -> bool:
        return any(one.constraint is self.constraint for one in self.admissible.soft_constraints)

    def check(self, limit: float) -> None:
        """Raise InvalidProblemError for a limit beyond the one on the other side, for a fraction of a count, and for a
        limit that violates a soft row by more than can be counted."""
        name = repr(self.constraint.name)
        if self.shares is not None:
            if not 0.0 <= limit <= 1.0:
                raise InvalidProblemError(
                    f"{name} limits a share: limits must be from 0 to 1; got {limit:g}. State a count without share=."
                )
            return
        if not self.is_soft and limit % 1 and (self.constraint.matrix.data == 1.0).all():
            raise InvalidProblemError(
                f"{name} counts documents: limits must be integers; got {limit:g}. For shares state it with share=."
            )
        loose = limit > 0 if self.side == "at most" else limit < 0 and self.side == "at least"
        largest = float(np.abs(self.constraint.matrix.data).max(initial=1.0))
        if self.is_soft and not loose and abs(limit) > LARGEST_EXACT * largest:
            raise InvalidProblemError(
                f"limit {limit:g} of the soft {self.constraint.name!r} is too large to count; pass a smaller one"
            )
        other = (self.constraint.lower if self.side == "at most" else self.constraint.upper)[self.rows]
        crossed = other[other > limit if self.side == "at most" else other < limit]
        if crossed.size and self.side != "exactly":
            raise InvalidProblemError(
                f"{name} cannot be {self.side} {limit:g}: its other limit is {crossed[0]:g}; sweep that side only"
            )


def limit_of(admissible: RankingSet, constraint: str, side: str | None = None) -> ConstraintLimit:
    """The limit of a constraint (of all its rows), or of a row by its own name: "site", "site['a.org']".

    side: "at most", "at least" or "exactly"; required if rows have two different limits. Raises InvalidProblemError for
    an unknown name, for a constraint without limits, and for a side that it does not have.
    """
    check_type("constraint", constraint, str)
    check_type("side", side, str, type(None))
    every = [*admissible.constraints, *(one.constraint for one in admissible.soft_constraints)]
    for held in every:
        names = [held.block.name(row) for row in range(held.rows)]
        if constraint == held.name or constraint in names:
            if held.share_limit is not None and constraint == held.name:
                own = "at most" if held.share_limit.most else "at least"
                if side not in (None, own):
                    raise InvalidProblemError(f"{constraint!r} has a share on the side {own!r}; got side={side!r}.")
                return ConstraintLimit(admissible, held, np.ones(max(1, held.rows), bool), own, held.share_limit)
            rows = np.array([constraint in (held.name, name) for name in names], dtype=bool)
            if not rows.any():
                raise InvalidProblemError(f"{constraint!r} forbids cells and has no limit; sweep one that counts")
            if held.forbids is not None and constraint == held.name:
                raise InvalidProblemError(
                    f"{constraint!r} has rows and forbidden cells; sweep the row {held.block.name(0)!r}, or use "
                    f"penalized({constraint!r})"
                )
            own = _chosen_side(held.lower[rows], held.upper[rows], constraint, side)
            return ConstraintLimit(admissible, held, rows, own)
    known = ", ".join(repr(held.name) for held in every if held.rows) or "none"
    raise InvalidProblemError(f"no constraint is named {constraint!r}; with limits there are {known}")


def _chosen_side(lower: Floats, upper: Floats, name: str, side: str | None) -> str:
    """The side on which rows have a limit, or the requested one."""
    below, above = np.isfinite(lower), np.isfinite(upper)
    if side is not None:
        if side not in SIDES:
            raise InvalidProblemError(f"side must be one of {', '.join(map(repr, SIDES))}; got {side!r}")
        return side
    if (below & above).all() and (lower == upper).all():
        return "exactly"
    if not below.any():
        return "at most"
    if not above.any():
        return "at least"
    raise InvalidProblemError(f"{name!r} has limits on both sides; pass side='at most' or side='at least'")


def read_limits(limits: Any) -> Floats:
    """Limits to evaluate, (m,) finite numbers in input order; InvalidProblemError for none, too many, or others."""
    try:
        values = [] if isinstance(limits, str) else list(islice(limits, MAX_POINTS + 1))
        parsed = np.array(values, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        parsed = np.empty(0)
    if parsed.ndim != 1 or not parsed.size or not np.isfinite(parsed).all():
        raise InvalidProblemError(f"limits must be one or more finite numbers; got {limits!r}. Try range(1, 5).")
    if parsed.size > MAX_POINTS:
        raise InvalidProblemError(
            f"limits from {parsed[0]:g} on are more than {MAX_POINTS}, the most that a sweep tries; give a shorter "
            "range, or one with a step"
        )
    return parsed


def limit_range(limit: ConstraintLimit) -> tuple[float, float]:
    """The limits below the first admit the same rankings, and those above the second.

    On its loose end the constraint cannot bind, on the other no ranking meets it; a soft constraint has no other end,
    for each unit costs.

    >>> site = RankingSet(6, 4).at_most(1, by=["a.org", "a.org", "a.org", "b.org", "b.org", None], name="site")
    >>> limit_range(limit_of(site, "site"))
    (-1.0, 3.0)
    """
    if limit.shares is not None:
        return 0.0, 1.0
    least, most = _activity(limit)
    below, above = (-np.inf, np.inf)
    if not limit.is_soft:
        below, above = -_beyond(-float(least.max())), _beyond(float(most.min()))
    if limit.side == "at most":
        return below, float(most.max())
    return (float(least.min()) if limit.side == "at least" else below), above


def _beyond(reach: float) -> float:
    """A limit that is clearly beyond the activity of a row."""
    return reach + max(1.0, 1e-9 * reach)


def _activity(limit: ConstraintLimit) -> tuple[Floats, Floats]:
    """Lower and upper bounds on each moved row, of any ranking, and of any point of the linear program:

    a π <= min( Σ_i max(0, max_j a[i, j]),  Σ_j max(0, max_i a[i, j]) ),    likewise from below.
    """
    held, n = limit.constraint, limit.admissible.documents
    matrix = csr_array(held.matrix[np.flatnonzero(limit.rows)])
    matrix.sum_duplicates()
    found = []
    for r in range(matrix.shape[0]):
        part = slice(matrix.indptr[r], matrix.indptr[r + 1])
        position, document = np.divmod(matrix.indices[part], n)
        lines = (position, limit.admissible.positions), (document, n)
        found.append([-min(_sum_of_largest(-matrix.data[part], *line) for line in lines),
                      min(_sum_of_largest(matrix.data[part], *line) for line in lines)])  # fmt: skip
    least, most = np.array(found).T
    off = row_rounding(matrix, least, most, limit.admissible.positions)
    fractional = matrix.copy()
    fractional.data = np.abs(matrix.data - np.round(matrix.data))
    off *= fractional.sum(axis=1) > 0.0  # sums of integers are exact
    return least - off, most + off


def _sum_of_largest(weights: Floats, line: Ints, lines: int) -> float:
    """Σ over lines of the largest weight in each, at least 0."""
    largest = np.zeros(lines)
    np.maximum.at(largest, line, weights)
    return float(largest.sum())
