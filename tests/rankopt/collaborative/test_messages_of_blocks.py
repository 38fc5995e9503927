"""What users' workers and the items' block tell each other, read as the bytes that go: no rating is among them."""

import itertools
import pickle

import numpy as np
import pytest
from problems.rated import tastes

from rankopt.collaborative import least_squares as regression
from rankopt.collaborative import plane_blocks
from rankopt.collaborative.encoded_ratings import EncodedRatings
from rankopt.collaborative.factors import Factors
from rankopt.collaborative.regularization import Penalties
from rankopt.collaborative.shards import CodedPlanesAt, RidgesFor
from rankopt.collaborative.user_loss import UserLoss
from rankopt.ratings import Ratings


class Pickled:
    """An engine that pickles each question on its way to a shard and each answer on its way back, and keeps both."""

    def __init__(self):
        self.sent, self.came = [], []

    def map(self, question, shards):
        for shard in shards:
            self.sent.append(pickle.dumps(question))
            self.came.append(pickle.dumps(pickle.loads(self.sent[-1])(shard)))
        return [pickle.loads(answer) for answer in self.came[-len(shards) :]]


def unusual(loss):
    """Ratings that no other number equals by chance: each its own, or for a loss of pairs five grades."""
    ratings, draws = tastes(users=12, items=10, each=6), np.random.default_rng(0)
    values = ratings.values + 0.1 * draws.random(len(ratings))
    if loss == "ordinal":
        values = np.sqrt([2.0, 3.0, 5.0, 7.0, 11.0])[ratings.values.astype(int) - 1]
    return Ratings.of(ratings.users[ratings.user_of()], ratings.items[ratings.columns], values)


@pytest.mark.parametrize("loss", ["ordinal", "nDCG@3", pytest.param("regression", marks=pytest.mark.study)])
def test_messages_of_the_items_block_hold_no_rating(loss, monkeypatch):
    monkeypatch.setattr(plane_blocks, "CHUNK", 20)  # several shards
    monkeypatch.setattr(regression, "SHARD_ROWS", 20)
    known, draws = UserLoss.named(loss, "convex", "shifted(0.25)"), np.random.default_rng(1)
    rated = known.seen(EncodedRatings.of(unusual(loss)))
    engine = Pickled()
    problem = Penalties(0.1, 3.0, 2.0 if known.sees_levels else None).problem(rated).at_strength(0.7, 0.4)
    blocks = known.blocks(problem, engine)
    n, m = rated.n_users, rated.n_items
    at = blocks.at(Factors(draws.normal(size=(n, 2)), draws.normal(size=(m, 2)), draws.normal(size=m), np.zeros(n)))
    engine.sent.clear()
    engine.came.clear()
    blocks.with_items(at, 1e-3)
    sent, came = engine.sent, engine.came
    grades = [one.tobytes() for one in np.unique(rated.values[:])]
    lists = [rated.values.codes[low:high].tobytes() for low, high in itertools.pairwise(rated.bounds)]
    lists = [one for one in lists if len(one) >= 4 and len(set(one)) > 1]
    for secrets in (grades, lists):
        assert any(one in pickle.dumps(rated) for one in secrets)  # so they would be found
    assert len(sent) >= 3
    assert len(came) >= 3
    for message in (*sent, *came):
        assert not any(secret in message for secret in (*grades, *lists))
    kind = RidgesFor if loss == "regression" else CodedPlanesAt
    assert {type(pickle.loads(message)) for message in sent} == {kind}
    shards = [shard for shard in blocks._shards if loss != "regression" or shard.side == "items"]
    shapes = {
        # of items their factors and offsets; of users v l_u, δ_u and ψ, of which Σ ψ_uj U_u is made
        ((s.last - s.first, 2), (s.last - s.first,))
        if loss == "regression"
        else ((s.last - s.first,), (s.last - s.first,), s.columns.shape)
        for s in shards
    }
    answers = [pickle.loads(message) for message in came]
    plain = [
        [getattr(one, "plain", lambda one=one: one)() for one in answer] for answer in answers if answer is not None
    ]
    assert {tuple(one.shape for one in answer) for answer in plain} <= shapes
