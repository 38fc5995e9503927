"""Pattern rankings: the argmax against brute force over all orders, for every loss under every feature map."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from formulations import (
    InvalidProblemError,
    compatible_solvers,
    first_relevant_ranking,
    pairwise_ranking,
    relevance_ranking,
    solve,
    solve_batch,
    verify_integrality,
)
from formulations.argmax.relevance_layout import layout_of
from formulations.problems.relevance_losses import StepwiseLoss, TableLoss
from formulations.problems.relevance_values import exact_value

OWN = {
    "cells": TableLoss(lambda good, bads, relevant, others: np.exp(-0.5 * good - 0.3 * bads) / max(relevant, 1)),
    "steps": StepwiseLoss(lambda grade, grades, above: grade / (2.0 + above.sum(axis=0))),
}
LOSSES = ["AUC", "AP", "AP@3", "RR", "RR@2", "nDCG", "nDCG@3", "DCG", "P@3", "ERR", "ERR@3", *OWN]


def falling(n):
    return 0.8 - np.arange(n) ** 0.7


MAPS = {
    "pairwise": pairwise_ranking,
    "first-relevant": first_relevant_ranking,
    "shared": lambda *given, **offsets: first_relevant_ranking(*given, shared=True, **offsets),
    "positional": lambda *given, **offsets: relevance_ranking(
        *given, position_weights=lambda n: 0.8 - np.arange(n) ** 0.7, **offsets
    ),
}


def stated(scores, relevance, loss, map_, **offsets):
    return MAPS[map_](scores, relevance, OWN.get(loss, loss), **offsets)


def drawn(random, largest=6):
    """Scores and grades: ties, zeros, one class only, one document."""
    n = int(random.integers(1, largest))
    scores = random.normal(size=n) if random.random() < 0.4 else random.integers(-2, 3, n) * random.choice([1.0, 0.1])
    return scores, random.integers(0, random.integers(1, 4), n)


def best(problem):
    """The greatest value of any order, as a fraction."""
    parts = (problem.scores, problem.grade, problem.map, problem.earnings)
    return max(exact_value(*parts, np.array(order)) for order in permutations(range(problem.documents)))


@pytest.mark.every(3)
@pytest.mark.parametrize("map_", MAPS)
@pytest.mark.parametrize("loss", LOSSES)
def test_no_order_beats_the_argmax(loss, map_):
    random = np.random.default_rng(1)
    for _ in range(12):
        problem = stated(*drawn(random), loss, map_)
        solution, most = solve(problem), best(problem)
        assert solution.value == pytest.approx(float(most), abs=problem.rounding)
        assert Fraction(solution.value) <= most <= Fraction(solution.bound)
        assert solution.status.name == "OPTIMAL"


@pytest.mark.every(3)
@pytest.mark.parametrize("map_", MAPS)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_batch_answers_as_its_queries_do(loss, map_):
    random = np.random.default_rng(2)
    queries = [drawn(random, 9) for _ in range(8)]
    offsets = np.cumsum([0] + [len(scores) for scores, _ in queries])
    scores, relevance = (np.concatenate(part) for part in zip(*queries, strict=True))
    batch = stated(np.zeros(scores.size), relevance, loss, map_, offsets=offsets).with_scores(scores)
    answer = solve_batch(batch)
    alone = [solve(stated(*query, loss, map_)) for query in queries]
    np.testing.assert_allclose(answer.value, [one.value for one in alone], atol=1e-12)
    assert (answer.value <= answer.bound).all()
    error = layout_of(batch).hidden(batch, layout_of(batch).algorithm)
    rounded = 4.0 * np.spacing(np.abs(answer.bound))  # of value, bound and their difference
    assert (answer.bound - answer.value <= 3.0 * error + rounded).all()
    gained = np.add.reduceat(answer.slope * scores, offsets[:-1]) - answer.earned
    np.testing.assert_allclose(gained, answer.value, atol=1e-12)
    part = solve_batch(batch.select_queries(2, 5), directed_rounding=False)
    np.testing.assert_array_equal(part.order, answer.order[offsets[2] : offsets[5]])


@pytest.mark.parametrize("strength", ["x", [1, 2], None, -1.0, float("nan"), 1e200])
def test_strengths_that_are_none_are_refused_by_name(strength):
    for map_ in (pairwise_ranking, first_relevant_ranking):
        with pytest.raises(InvalidProblemError, match="scale must be a number"):
            map_([1.0, 2.0], [0, 1], "AP", scale=strength)


@pytest.mark.parametrize("position_weights", ["log", lambda n: "log", [[1.0, 0.5], [1.0]]])
def test_position_weights_that_are_no_numbers_are_refused(position_weights):
    with pytest.raises(InvalidProblemError, match="position weights must be numbers"):
        relevance_ranking([1.0, 2.0], [0, 1], "AP", position_weights=position_weights)


def test_solvers_of_flows_solve_them():
    problem = pairwise_ranking([0.5, 0.2, 0.1, -1.0], [0, 1, 1, 0], "AP")
    assert {"exact", "highs", "ortools", "networkx"} <= set(compatible_solvers(problem))
    for solver in ("highs", "ortools", "networkx"):
        assert solve(problem, solver).value == pytest.approx(solve(problem).value, abs=1e-9)
    assert str(verify_integrality(problem)).startswith("Proof")
