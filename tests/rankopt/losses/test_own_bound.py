"""A bound of one's own is one function, and holds for every feature map: written out over all orders."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from planted.losses import Halfway
from problems import admissible, slots
from problems.training import made

from formulations import ranking
from formulations.solvers import get_solver
from rankopt.constraints import Admissible
from rankopt.data import Queries
from rankopt.errors import OptionError
from rankopt.losses.margin import MarginLoss
from rankopt.losses.oracle_positional import PositionalOracle
from rankopt.losses.oracle_slots import SlotArgmax
from rankopt.losses.position_weights import parse_position_weights
from rankopt.measures import parse
from rankopt.rankers import LargeMarginRanker, MatchingRanker


def halfway(every, mean, scores):
    """From (worth, slope) of every y: H + best - (mean of the best + best of the best by score)ᵀs / 2."""
    best = max(worth for worth, _ in every)
    tallest = max((r * scores).sum() for worth, r in every if worth >= best - 1e-12)
    return max((r * scores).sum() - worth for worth, r in every) + best - ((mean * scores).sum() + tallest) / 2


@pytest.mark.parametrize("tied", [False, True])
def test_of_rankings(tied):
    rng = np.random.default_rng(0)
    measure, decay = parse("nDCG"), parse_position_weights("power(0.5)")
    for _ in range(20):
        offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 6, 3))])
        grades = rng.integers(0, 3, offsets[-1]).astype(float)
        scores = rng.integers(-1, 2, offsets[-1]).astype(float) if tied else rng.normal(size=offsets[-1])
        gain = measure.gain(grades, offsets)
        problem = ranking(
            np.zeros(gain.size), gain, discount=measure.discount, position_weights=decay.weights, offsets=offsets
        )
        loss = MarginLoss.build(PositionalOracle(problem, get_solver("exact")), Halfway())
        for q, (low, high) in enumerate(pairwise(offsets.tolist())):
            every = []
            for order in permutations(range(high - low)):
                weights = np.empty(high - low)
                weights[list(order)] = problem.position_weights[low:high]
                every.append((problem.discount[low:high] @ gain[low:high][list(order)], weights))
            best = max(worth for worth, _ in every)
            mean = np.mean([r for worth, r in every if worth >= best - 1e-12], axis=0)
            assert loss.at(scores).value[q] == pytest.approx(halfway(every, mean, scores[low:high]), abs=1e-12)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("name", admissible.SETS)
def test_under_a_set(name, tied):
    grades, attributes, offsets, scores = admissible.drawn(3, tied=tied)
    argmax = admissible.batch_of(admissible.SETS[name], grades, attributes, offsets)
    loss, mean = MarginLoss.build(argmax, Halfway()), argmax.mean_of_best()
    for q, (low, high) in enumerate(pairwise(offsets.tolist())):
        expected = halfway(admissible.written_out(argmax, q), mean[low:high], scores[low:high])
        assert loss.at(scores).value[q] == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("tied", [False, True])
def test_of_slots(tied):
    slot, offsets, scores = slots.drawn(4, tied=tied)
    argmax = SlotArgmax(slots.benefit_of(slot), offsets)
    loss, mean = MarginLoss.build(argmax, Halfway()), argmax.mean_of_best()
    for q, (low, high) in enumerate(pairwise(offsets.tolist())):
        b = argmax.benefit[low:high]
        every = [((p * b).sum(), p) for p in slots.matchings(high - low)]
        assert loss.at(scores).value[q] == pytest.approx(halfway(every, mean[low:high], scores[low:high]), abs=1e-12)


def trained(bound, kind):
    X, y, qid = made(queries=8)
    if kind == "slots":
        return MatchingRanker(bound=bound, lam=0.1).fit(X, y, qid=qid), Queries.from_arrays(X, y, qid=qid)
    columns = {"site": np.random.default_rng(0).integers(0, 3, len(y))} if kind == "set" else {}
    rule = Admissible(3, on_infeasible="truncate").at_most(1, by="site") if kind == "set" else None
    ranker = LargeMarginRanker("nDCG@3", bound=bound, lam=0.1, constraints=rule, w0="zeros")
    queries = Queries.from_arrays(X, y, qid=qid, attributes=columns)
    return ranker.fit(queries), queries


@pytest.mark.parametrize("kind", ["free", "set", "slots"])
def test_every_ranker_trains_it_and_says_that_it_is_stationary(kind):
    """Its objective lies between those of its two halves at every w, and a mean of theirs it is nearly everywhere."""
    rankers = {name: trained(bound, kind) for name, bound in (("half", Halfway()), ("tie", "tie-aware"))}
    ranker, queries = rankers["half"]
    assert ranker.certificate_.kind == "stationary"
    assert ranker.certificate_.relative_gap <= ranker.tol
    half, tie = (one.objective(queries) for one, _ in rankers.values())
    convex = trained("convex", kind)[0].objective(queries)
    for w in np.random.default_rng(1).normal(size=(5, half.risk.features)):
        mean = (convex.risk.at(w).value + tie.risk.at(w).value) / 2
        assert half.risk.at(w).value == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("kind", ["free", "set", "slots"])
@pytest.mark.parametrize("bound", ["convexx", Halfway, 3, lambda argmax, scores: scores])
def test_what_is_no_bound_is_refused_everywhere(kind, bound):
    with pytest.raises(OptionError, match="bound"):
        trained(bound, kind)
