"""Small problems with a linear objective, all their points listed, and losses written out over these points."""

from itertools import combinations, permutations, product

import numpy as np

from formulations import LinearProgram, matching
from rankopt.data.samples.decisions import grid_shortest_path


def shortest_path(rng):
    problem = grid_shortest_path(3)
    points = [
        np.array(flow)
        for flow in product((0.0, 1.0), repeat=problem.cost.size)
        if sum(flow) == 4 and problem.violation(np.array(flow)) == 0.0
    ]
    return problem, np.array(points)


def assignment(rng):
    return matching(np.ones((3, 3)), sense="min"), np.array(
        [np.eye(3)[list(p)].ravel() for p in permutations(range(3))]
    )


def top_two(rng):
    program = LinearProgram(np.ones(5), np.ones((1, 5)), np.array([2.0]), np.array([2.0]), np.zeros(5), np.ones(5))
    return program, np.array([np.isin(np.arange(5), pair).astype(float) for pair in combinations(range(5), 2)])


def knapsack(rng):
    weights = rng.integers(2, 7, 5).astype(float)
    program = LinearProgram(
        np.ones(5), weights[None], np.array([-np.inf]), np.array([10.0]), np.zeros(5), np.ones(5),
        integer=np.ones(5, dtype=bool),
    )  # fmt: skip
    return program, np.array([y for y in product((0.0, 1.0), repeat=5) if weights @ y <= 10.0])


KINDS = {"shortest path": shortest_path, "assignment": assignment, "top two": top_two, "knapsack": knapsack}


def sign_of(problem):
    return 1.0 if problem.is_maximization else -1.0


def spo_plus(points, predicted, costs):
    """max_y (c - 2ĉ)ᵀy + 2ĉᵀy* - cᵀy* of a minimization, as Elmachtoub and Grigas state it."""
    best = points[np.argmin(points @ costs)]
    return float((points @ (costs - 2.0 * predicted)).max() + 2.0 * predicted @ best - costs @ best)


def worst_regret(points, predicted, costs):
    """Of a minimization, over all decisions of least predicted cost."""
    values = points @ predicted
    return float((points @ costs)[values <= values.min() + 1e-12].max() - (points @ costs).min())


def instances(rng, count, variables, features=3, integers=False):
    """Features (m, d) and costs (m, n) near a linear function of them; integers tie."""
    X = rng.normal(size=(count, features))
    costs = X @ rng.normal(size=(features, variables)) + 2.0 + 0.5 * rng.normal(size=(count, variables))
    return X, np.round(costs) if integers else costs
