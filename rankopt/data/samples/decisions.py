"""Generated instances for learning decisions: features, costs that depend on them, and the problem.

Costs follow Elmachtoub and Grigas (2022, section 6): with features x ~ N(0, I), a random 0/1 vector b_j and noise e_j,
uniform on [1 - noise, 1 + noise],

    c_j = (1 + (b_jᵀx / √p + 3)^degree) e_j / 3.5^degree,

so that a linear model is misspecified where degree > 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from formulations import LinearProgram, MinCostFlow, matching
from formulations.arrays import Floats, Ints
from formulations.display import CompactReprMixin
from formulations.problems.problem import Problem
from rankopt.options import COUNT, SEED, Interval, check


@dataclass(frozen=True, eq=False)
class DecisionSample(CompactReprMixin):
    """Instances of one problem.

    problem: its objective does not count. X: (m, d) features, or (m, n, d) where every variable has its own. costs: (m,
    n) true costs, of a maximization profits. expected_costs: (m, n) their means for these features, without noise.
    """

    problem: Problem
    X: Floats
    costs: Floats
    expected_costs: Floats


def grid_shortest_path(size: int) -> MinCostFlow:
    """The shortest path from the first to the last node of a size × size grid, by arcs to the right and down."""
    node = np.arange(size * size).reshape(size, size)
    tail = np.concatenate([node[:, :-1].ravel(), node[:-1].ravel()])
    head = np.concatenate([node[:, 1:].ravel(), node[1:].ravel()])
    supply = np.zeros(node.size, dtype=np.int64)
    supply[[0, -1]] = 1, -1
    return MinCostFlow(tail, head, np.ones(tail.size, dtype=np.int64), np.ones(tail.size), supply)


def knapsack(size: int, rng: np.random.Generator) -> LinearProgram:
    """The most valuable of `size` items with integer weights from 3 to 8 in two dimensions, of which half fit."""
    weights = rng.integers(3, 9, (2, size)).astype(float)
    capacity, integer = np.floor(weights.sum(axis=1) / 2), np.ones(size, dtype=bool)
    return LinearProgram(
        np.ones(size), weights, np.full(2, -np.inf), capacity, np.zeros(size), np.ones(size), integer=integer
    )


def top_k(size: int) -> LinearProgram:
    """The most valuable third of `size` items."""
    k = np.array([max(1.0, size // 3)])
    return LinearProgram(np.ones(size), np.ones((1, size)), k, k, np.zeros(size), np.ones(size))


@dataclass(frozen=True)
class _Jobs:
    """Jobs on one machine: duration, earliest start, latest end and power of each; `starts` lists job and slot of each
    variable. Jobs that run at once draw at most `limit`."""

    duration: Ints
    power: Ints
    starts: Ints
    slots: int

    @property
    def load(self) -> Floats:
        """(slots, n) the power that each start draws in each slot."""
        job, start = self.starts.T
        slot = np.arange(self.slots)[:, None]
        return np.where((slot >= start) & (slot < start + self.duration[job]), self.power[job], 0).astype(float)

    def problem(self) -> LinearProgram:
        count, job = self.duration.size, self.starts[:, 0]
        once = (job == np.arange(count)[:, None]).astype(float)
        limit = np.full(self.slots, np.ceil(0.75 * self.power.sum()))
        n = len(self.starts)
        return LinearProgram(
            np.ones(n), np.vstack([once, self.load]), np.append(np.ones(count), np.full(self.slots, -np.inf)),
            np.append(np.ones(count), limit), np.zeros(n), np.ones(n), False, np.ones(n, dtype=bool),
        )  # fmt: skip


def jobs(size: int, rng: np.random.Generator) -> _Jobs:
    """`size` jobs on 24 slots. Every job alone is within the limit, and no job has to overlap all others."""
    duration, power = rng.integers(1, 5, size), rng.integers(1, 5, size)
    early = rng.integers(0, 8, size)
    late = np.minimum(24, early + duration + rng.integers(8, 16, size))
    starts = [(j, t) for j in range(size) for t in range(early[j], late[j] - duration[j] + 1)]
    return _Jobs(duration, power, np.array(starts), 24)


SAMPLES: dict[str, tuple[int, Callable[[int, np.random.Generator], Problem | _Jobs]]] = {
    "shortest-path": (5, lambda size, rng: grid_shortest_path(size)),
    "knapsack": (16, knapsack),
    "assignment": (5, lambda size, rng: matching(np.ones((size, size)), sense="min")),
    "scheduling": (5, jobs),
    "top-k": (15, lambda size, rng: top_k(size)),
}
"""The usual size, and the problem."""


def decision_samples(
    name: str,
    n_samples: int = 100,
    *,
    n_features: int = 5,
    degree: int = 1,
    noise: float = 0.5,
    size: int | None = None,
    seed: int = 0,
) -> DecisionSample:
    """Instances of a problem with features, seeded: the same problem and the same b_j for each seed. The first rows of
    a longer sample are those of a shorter one, so that rows can be split into training and test instances.

    Parameters
    ----------
    name : "shortest-path", on a grid of arcs to the right and down; "knapsack", with two weights an item; "assignment",
        of least cost; "scheduling", of jobs on a machine under a limit of power, where the costs of a start are the
        prices of energy of its slots; "top-k", the best third of the items.
        The last two have features of each variable, X (m, n, d); the others of each instance, X (m, d).
    n_samples, n_features : m and d.
    degree, noise : of the costs: a degree of 1 is a linear model, at most it is 100; a noise of 0 has none.
    size : the side of the grid and of the assignment, the number of items or jobs; None is usual in the literature.
    seed : an integer >= 0.

    Raises
    ------
    OptionError : an option has an invalid value.

    >>> sample = decision_samples("shortest-path", 3, degree=4)
    >>> sample.X.shape, sample.costs.shape, type(sample.problem).__name__
    ((3, 5), (3, 40), 'MinCostFlow')
    """
    check("name", name, tuple(SAMPLES))
    usual, make = SAMPLES[name]
    for option, value in (("n_samples", n_samples), ("n_features", n_features)):
        check(option, value, (COUNT,))
    check("degree", degree, (Interval(1, 100, closed="both", integer=True),))
    check("noise", noise, (Interval(0, 1, closed="both"),))
    check("size", size, (Interval(2, integer=True), None))
    check("seed", seed, (SEED,))
    rng = np.random.default_rng(seed)
    features, errors = rng.spawn(2)
    made = make(usual if size is None else int(size), rng)
    problem = made.problem() if isinstance(made, _Jobs) else made
    n = problem.program.objective.size
    if isinstance(made, _Jobs) or name == "top-k":
        count = made.slots if isinstance(made, _Jobs) else n
        b = rng.integers(0, 2, n_features)
        own = features.normal(size=(n_samples, count, n_features))
    else:
        b = rng.integers(0, 2, (n, n_features)).T
        own = features.normal(size=(n_samples, n_features))
    expected = (1.0 + (own @ b / np.sqrt(n_features) + 3.0) ** degree) / 3.5**degree
    costs = expected * errors.uniform(1.0 - noise, 1.0 + noise, expected.shape)
    if isinstance(made, _Jobs):  # of slots; a start pays for the slots in which it draws power
        own = np.einsum("sn,msd->mnd", made.load, own)
        expected, costs = expected @ made.load, costs @ made.load
    return DecisionSample(problem, own, costs, expected)
