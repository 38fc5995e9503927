"""The dual quadratic program of column generation over cutting planes; each group of planes is a simplex."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, eye_array, hstack, vstack

from formulations.arrays import Floats, Ints, check_positive, finite, frozen, integers
from formulations.errors import InvalidProblemError
from formulations.problems.directed_rounding import UNIT, above, below, difference, products
from formulations.problems.dual_enclosure import CARE
from formulations.problems.problem import EPSILON, Problem, checked_dual
from formulations.problems.program import Program, number, program_text, sum_text

MOST_TERMS = 1 << 20  # planes of more numbers are summed in double precision, and what that may lose is added


@dataclass(frozen=True, eq=False)
class GroupedSimplexQP(Problem):
    """The dual of a regularized sum of maxima of planes.

    variables    α[i], one per plane
    maximize     Σ values[i] α[i] - ‖slopesᵀα‖² / (2 lam)
    subject to   group      Σ α[i] over the planes i of group g is at most capacity[g]
                 α >= 0

    `slopes` (m × d) has a row per plane, `values` (m) its height at w₀, `group` (m) its group, `capacity` (G) > 0.
    The primal is min over δ = w - w₀ of (lam/2)‖δ‖² + Σ_g capacity[g] max(0, max_{i in g} values[i] + slopes[i]·δ);
    a dual y is such a δ, and the best one is δ = -slopesᵀα / lam. The Gram matrix is formed on request, or passed in.
    """

    slopes: Floats
    values: Floats
    group: Ints
    capacity: Floats
    lam: float
    known_gram: Floats | None = None

    always_feasible = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "slopes", finite("slopes", self.slopes, 2))
        object.__setattr__(self, "values", finite("values", self.values, 1))
        object.__setattr__(self, "group", integers("group", self.group))
        object.__setattr__(self, "capacity", finite("capacity", self.capacity, 1))
        planes, groups = self.values.size, self.capacity.size
        if planes == 0 or self.slopes.shape[0] != planes or self.group.size != planes:
            raise InvalidProblemError("subgradients, intercepts and groups need an entry a plane, of one plane or more")
        if self.known_gram is not None:
            object.__setattr__(self, "known_gram", finite("gram", self.known_gram, 2))
            if self.known_gram.shape != (planes, planes):
                raise InvalidProblemError(f"gram must have shape {(planes, planes)}; got {self.known_gram.shape}.")
        check_positive(lam=self.lam)
        if (self.capacity <= 0).any() or self.group.min() < 0 or self.group.max() >= groups:
            raise InvalidProblemError(f"groups run from 0 to {groups - 1}, and capacities must be positive")

    def check_stored(self) -> None:
        """Raise InvalidProblemError unless `known_gram` is slopes slopesᵀ."""
        if self.known_gram is not None and not np.allclose(self.known_gram, self.slopes @ self.slopes.T):
            raise InvalidProblemError("known_gram is the Gram matrix of other slopes")

    @cached_property
    def gram(self) -> Floats:
        """slopes slopesᵀ."""
        return frozen(self.slopes @ self.slopes.T) if self.known_gram is None else self.known_gram

    @cached_property
    def usual_share(self) -> float:
        """The largest optimal share of its group's capacity over single planes: the scale of α / capacity.

        Solvers get α / (capacity · usual share), because with a small lam the weights are far below solver tolerances.
        At least 1e-5: the group limits are its inverse, and Clarabel reports limits of 1e7 as unbounded.
        """
        share = self.capacity[self.group]
        steepest = float((self._squares * share * share).max()) / self.lam
        highest = float(np.abs(self.values * share).max())
        return min(1.0, max(1e-5, highest / steepest)) if steepest > 0 else 1.0

    @property
    def unit(self) -> Floats:
        """(m,) the scale of α: solvers get β = α / unit."""
        return np.asarray(self.capacity[self.group] * self.usual_share)

    @property
    def program(self) -> Program:
        """A minimum in β = α / `unit`, its objective scaled to order one: with the Gram matrix if it is known or there
        are no more planes than features; else with the step slopesᵀα as more variables after β."""
        unit = self.unit
        values = self.values * unit
        planes, features = self.slopes.shape
        groups = self.capacity.size
        squares = self._squares * (unit * unit / self.lam)
        scale = max(float(squares.max()), float(np.abs(values).max()), 1e-300)
        held = csr_array((np.ones(planes), (self.group, np.arange(planes))), (groups, planes))
        no_floor, limit = np.full(groups, -np.inf), np.full(groups, 1.0 / self.usual_share)
        zeros, no_limit = np.zeros(planes), np.full(planes, np.inf)
        if planes <= features or self.known_gram is not None:
            gram = csr_array(self.gram * np.outer(unit, unit) / (self.lam * scale))
            return Program(-values / scale, held, no_floor, limit, zeros, no_limit, is_maximization=False, hessian=gram)
        step = self.slopes.T * (unit / np.sqrt(self.lam * scale))
        still, free = np.zeros(features), np.full(features, np.inf)
        held.resize((groups, planes + features))
        return Program(
            np.concatenate([-values / scale, still]),
            csr_array(vstack([held, hstack([csr_array(step), -eye_array(features)])])),
            np.concatenate([no_floor, still]),
            np.concatenate([limit, still]),
            np.concatenate([zeros, -free]),
            np.concatenate([no_limit, free]),
            is_maximization=False,
            hessian=csr_array(diags_array(np.concatenate([zeros, np.ones(features)]))),
        )

    def to_text(self) -> str:
        """The definition above, in α."""
        names = [f"α[{i}]" for i in range(self.values.size)]
        steps = [sum_text(zip(column, names, strict=True)) for column in self.slopes.T]
        squares = " + ".join(f"({step})²" for step in steps)
        objective = f"{sum_text(zip(self.values, names, strict=True))} - {number(0.5 / self.lam)} ({squares})"
        groups = [
            f"group[{g}]: {sum_text((1.0, names[i]) for i in np.flatnonzero(self.group == g))} <= {number(capacity)}"
            for g, capacity in enumerate(self.capacity)
        ]
        return program_text("maximize", objective, [*groups, f"0 <= {', '.join(names)}"])

    @property
    def shape_text(self) -> str:
        return f"{self.values.size} planes × {self.slopes.shape[1]} features in {self.capacity.size} group(s)"

    @property
    def size(self) -> int:
        return self.slopes.size + self.values.size

    @property
    def scale(self) -> float:
        """The objective if the highest plane took all capacity, curvature left out."""
        return float(self.capacity.sum()) * float(np.abs(self.values).max())

    @cached_property
    def _squares(self) -> Floats:
        """‖slopes[i]‖² of each plane."""
        return frozen(np.einsum("ij,ij->i", self.slopes, self.slopes))

    @cached_property
    def rounding(self) -> float:
        """Includes the curvature term: the step of a steep plane is a difference of large numbers."""
        steepest = float(self._squares.max(initial=0.0))
        return float(64.0 * EPSILON * (self.scale + float(self.capacity.sum()) ** 2 * steepest / self.lam))

    @property
    def tolerance(self) -> float:
        """The violation that `feasible` may leave."""
        return 16.0 * EPSILON * float(self.capacity.max()) * self.values.size

    def step(self, alpha: Floats) -> Floats:
        """δ = w - w₀ of the dual point alpha."""
        point = finite("alpha", alpha, 1)
        if point.size != self.values.size:
            raise InvalidProblemError(f"alpha must have {self.values.size} entries, one a plane; got {point.size}.")
        return np.asarray(-(self.slopes.T @ point) / self.lam)

    def feasible(self, alpha: NDArray[Any]) -> Floats:
        """alpha clipped at zero and scaled into each group's capacity."""
        clipped = np.maximum(np.nan_to_num(np.asarray(alpha, dtype=np.float64), nan=0.0, posinf=0.0), 0.0)
        used = np.bincount(self.group, clipped, self.capacity.size)
        factor = np.where(used > self.capacity, self.capacity / np.maximum(used, 1e-300), 1.0)
        return np.asarray(clipped * factor[self.group])

    def repair(self, x: NDArray[Any]) -> Floats:
        return self.feasible(x) if np.shape(x) == self.values.shape else np.asarray(x)

    def value(self, x: NDArray[Any]) -> float:
        step = self.slopes.T @ x
        return float(self.values @ x - step @ step / (2.0 * self.lam))

    def value_lower_bound(self, x: NDArray[Any]) -> float:
        used = np.flatnonzero(x)
        alpha = np.asarray(x, dtype=np.float64)[used]
        step = difference(np.zeros(self.slopes.shape[1]), csr_array(self.slopes[used].T), alpha)
        terms, digits, off = products(step.high, step.high)
        more, more_digits, more_off = products(2.0 * step.high, step.low)
        off += more_off + CARE * float((step.low**2 + 2.0 * np.abs(step.high) * step.off + step.off**2).sum())
        square = above(terms, digits, more, more_digits, off)
        curved = square / (2.0 * self.lam)
        back, back_digits, lack = products(np.array([curved]), np.array([2.0 * self.lam]))
        if below(back, back_digits, -lack, -square) < 0.0:  # the quotient was rounded down
            curved = float(np.nextafter(curved, np.inf))
        earned, earned_digits, lost = products(self.values[used], alpha)
        return below(earned, earned_digits, -curved, -lost)

    def violation(self, x: NDArray[Any]) -> float:
        if np.shape(x) != self.values.shape:
            return float("inf")
        over = np.bincount(self.group, x, self.capacity.size) - self.capacity
        return max(float(np.max(-x, initial=0.0)), float(np.max(over, initial=0.0)))

    def bound(self, y: Floats) -> float:
        step = checked_dual(y, self.slopes.shape[1], "features")
        heights = self._heights(step)
        weighted_, digits, off = products(self.capacity, heights)
        length = np.array([above(*products(step, step))])
        half, half_digits, half_off = products(np.array([self.lam / 2.0]), length)
        return above(weighted_, digits, half, half_digits, off + half_off)

    def bound_float64(self, y: Floats) -> float:
        there = self.values + self.slopes @ y
        if self.capacity.size == 1:
            heights = np.array([max(0.0, float(there.max()))])
        else:
            heights = np.zeros(self.capacity.size)
            np.maximum.at(heights, self.group, there)
        return float(self.lam / 2.0 * (y @ y) + self.capacity @ heights)

    def _heights(self, step: Floats) -> Floats:
        """(G,) max(0, the highest plane) of each group at w₀ + step, rounded up; few near it are summed exactly."""
        there = self.values + self.slopes @ step
        lost = UNIT * (step.size + 8.0) * (np.abs(self.values) + np.sqrt(self._squares * float(step @ step)))
        lost += UNIT * np.abs(there)
        most = np.zeros(self.capacity.size)
        np.maximum.at(most, self.group, there - lost)
        near = np.flatnonzero(there + lost >= most[self.group])
        up = there + 1.01 * lost
        if near.size * step.size <= MOST_TERMS:
            for plane in near.tolist():
                up[plane] = above(self.values[plane], *products(self.slopes[plane], step))
        heights = np.zeros(self.capacity.size)
        np.maximum.at(heights, self.group[near], up[near])
        return heights

    def recover_dual(self, x: NDArray[Any]) -> Floats:
        return self.step(x)

    def named_primal(self, x: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return {"α": x}

    def named_dual(self, y: Floats) -> dict[str, NDArray[Any]]:
        return {"step": y}
