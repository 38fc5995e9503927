"""Nasty masters: what bundles and cutting planes hand to their solvers when things go wrong, seeded."""

import numpy as np

from formulations import margin_dual

KINDS = (
    "random",
    "duplicates",
    "zero planes",
    "opposite",
    "below zero",
    "parallel",
    "hinges",
    "steep and nearly parallel",
    "unequal features",
    "several hundred",
    "one plane",
    "dependent",
)


def nasty(seed, groups=1):
    """Problem `seed` of the corpus: of kind seed % 12, its numbers in units of 1, 1e-9 or 1e9, lam 1e-6 to 1e6 of them.

    groups: 1, or at most so many, of capacities that sum to 1.
    """
    random = np.random.default_rng([seed, groups])
    kind = KINDS[seed % len(KINDS)]
    planes, features = int(random.integers(2, 40)) * (1 if groups == 1 else 3), int(random.integers(1, 16))
    groups = min(groups, planes)
    slopes, heights = random.normal(size=(planes, features)), random.random(planes)
    if kind == "duplicates":
        which = random.integers(0, min(3, planes), planes)
        slopes, heights = slopes[which], heights[which]
    elif kind == "zero planes":
        slopes[::2] = 0.0
        heights[::4] *= random.choice([0.0, -1.0])
    elif kind == "opposite":
        slopes, heights = np.vstack([slopes, -slopes]), np.append(heights, -heights)
    elif kind == "below zero":
        heights -= 0.7
    elif kind == "parallel":
        slopes = np.outer(random.normal(size=planes), slopes[0])
    elif kind == "hinges":
        slopes, heights = tangents(random, planes, features)
    elif kind == "steep and nearly parallel":
        slopes = 1e3 * slopes[0] + 1e-3 * slopes
    elif kind == "unequal features":
        slopes, heights = tangents(random, 2 * planes, features)
        slopes *= 10.0 ** random.uniform(-3, 3, features)
    elif kind == "several hundred":
        slopes, heights = tangents(random, int(random.integers(200, 500)), features + 10)
    elif kind == "one plane":
        slopes, heights, groups = slopes[:1], heights[:1], 1
    elif kind == "dependent":
        mixes = random.dirichlet(np.ones(3), planes)
        slopes, heights = mixes @ random.normal(size=(3, features)), mixes @ random.random(3)
    size, lam = 10.0 ** random.choice([0, 0, -9, 9]), 10.0 ** random.integers(-6, 7)
    members = random.permutation(np.arange(heights.size) % groups)
    capacity = random.dirichlet(np.ones(groups)) * 0.9 + 0.1 / groups
    return margin_dual(slopes * size, heights * size, lam=lam * size, groups=members, group_mass=capacity)


def tangents(random, planes, features):
    """Tangents of a mean of hinges at random points, as the bundle method finds them."""
    rows, heights = random.normal(size=(60, features)), random.random(60)
    active = (random.normal(size=(planes, features)) @ rows.T + heights > 0) / 60
    return active @ rows, active @ heights


def solved(problem, solution, gap=1e-6):
    """Whether value and bound, recomputed from the problem's data, leave a gap of `gap` of the objective at most.

    An objective of 0 is met to the rounding of the planes' heights, which are never more precise.
    """
    value, bound = problem.value(problem.feasible(solution.x)), problem.bound(solution.y)
    return bool(bound - value <= gap * max(abs(value), abs(bound)) + 1e-14 * problem.scale)
