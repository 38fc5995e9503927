"""Where factors start: at the top singular pairs of what offsets leave over."""

import numpy as np
import pytest
from problems.rated import tastes

from rankopt.collaborative.encoded_ratings import EncodedRatings
from rankopt.collaborative.regularization import Penalties
from rankopt.collaborative.user_loss import UserLoss
from rankopt.collaborative.widening import start_of
from rankopt.engines.threads import Serial


@pytest.mark.parametrize("loss", ["regression", "nDCG@5"])
def test_pairs_are_those_of_the_dual_state_at_the_best_offsets(loss):
    known = UserLoss.named(loss, "convex", "shifted(0.25)")
    penalties = Penalties(0.1, 10.0, 10.0 if known.sees_levels else None)
    blocks = penalties.blocks(known, known.seen(EncodedRatings.of(tastes())), Serial())[0]
    start = start_of(blocks, 3)
    dense = blocks.problem.rated.table(blocks.offsets_only().slopes).toarray()
    left, size, right = np.linalg.svd(dense)
    assert start.lam_max == pytest.approx(size[0])
    best = -(left[:, :3] * size[:3]) @ right[:3]
    np.testing.assert_allclose(start.factors.users @ start.factors.items.T, best, atol=1e-9)
