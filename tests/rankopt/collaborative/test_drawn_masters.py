"""Masters drawn from ratings: programs of users and items that several solvers agree on."""

from functools import partial

import numpy as np
import pytest

from formulations import ranking, solve
from formulations.solvers import named
from rankopt.collaborative.factors import Factors
from rankopt.collaborative.masters_of_ratings import drawn_masters
from rankopt.errors import DataError
from rankopt.experiments import SolverSwap
from rankopt.losses import bound_named, loss_named
from rankopt.losses.margin import MarginLoss
from rankopt.losses.oracle_positional import PositionalArgmax
from rankopt.measures import parse
from rankopt.ratings import Ratings


def made(seed=0, users=20, items=12, width=3):
    rng = np.random.default_rng(seed)
    user, item = np.nonzero(rng.random((users, items)) < 0.5)
    ratings = Ratings.of(user, item, rng.integers(1, 6, user.size), users=range(users), items=range(items))
    factors = Factors(*(rng.normal(size=shape) for shape in ((users, width), (items, width), items, users)))
    return ratings, factors, np.zeros(items)


def margin(relevance, offsets):
    measure = parse("nDCG@5")
    decay = lambda n: np.arange(2.0, n + 2) ** -0.25  # noqa: E731
    gain = measure.gain(relevance, offsets)
    problem = ranking(np.zeros(gain.size), gain, discount=measure.discount, decay=decay, offsets=offsets)
    return MarginLoss.build(PositionalArgmax(problem, named("exact")), bound_named("convex"))


@pytest.mark.parametrize("loss", ["ordinal", "preferences", margin])
def test_solvers_agree_on_every_one(loss):
    ratings, factors, prior = made()
    programs = drawn_masters(
        ratings, loss if callable(loss) else loss_named(loss), factors, prior, users=4, planes=5, lam=0.1
    )
    assert len(programs) == 5
    assert max(program.values.size for program in programs[:-1]) > 1
    assert programs[-1].values.size == sum(program.values.size for program in programs[:-1])
    for program in programs:
        values = [solve(program, solver).value for solver in ("active_set", "cvxpy:CLARABEL")]
        assert values[0] == pytest.approx(values[1], abs=1e-6 * max(1.0, program.scale))


@pytest.mark.study
def test_a_swap_takes_them():
    ratings, factors, prior = made(1)
    programs = drawn_masters(ratings, loss_named("ordinal"), factors, prior, users=2, planes=3)
    rows = SolverSwap(programs, argmax=(), masters=("qpsolvers:piqp",), methods=(), repeats=1).run()
    assert [row.solver for row in rows] == ["qpsolvers:piqp"] * len(programs)
    assert all(row.answered for row in rows)


def test_the_draw_is_seeded_and_needs_an_order():
    ratings, factors, prior = made(2)
    draw = partial(drawn_masters, ratings, loss_named("ordinal"), factors, prior, users=3)
    for one, other in zip(draw(seed=4), draw(seed=4), strict=True):
        np.testing.assert_array_equal(one.slopes, other.slopes)
    same = Ratings.of([0, 0, 1], [0, 1, 1], [3.0, 3.0, 4.0])
    few = Factors(factors.users[:2], factors.items[:2], factors.offsets[:2], factors.user_offsets[:2])
    with pytest.raises(DataError, match="two different ratings"):
        drawn_masters(same, loss_named("ordinal"), few, np.zeros(2))
