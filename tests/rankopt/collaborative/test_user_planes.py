"""Planes of users grow where they carry weight, and mix as sums say."""

import numpy as np
import pytest

from rankopt.collaborative.item_block import FEW, UserPlanes

BOUNDS = np.array([0, 4, 4, 7, 12])


def grown(seed, rounds=9, weights=True):
    """Planes after so many rounds, and all slopes and heights that went in, user after user, place by place."""
    draws = np.random.default_rng(seed)
    slopes, heights = draws.normal(size=12), draws.normal(size=4)
    planes = UserPlanes.first(BOUNDS, slopes, heights)
    known = [[(slopes[BOUNDS[u] : BOUNDS[u + 1]], heights[u])] if BOUNDS[u + 1] > BOUNDS[u] else [] for u in range(4)]
    for _ in range(rounds):
        if weights:  # the first two planes of each user carry weight, whatever else there is
            owner = np.repeat(np.arange(4), planes.counts)
            number = np.arange(owner.size) - np.repeat(np.cumsum(planes.counts) - planes.counts, planes.counts)
            planes.weights[:] = np.where(number == 0, 0.25, np.where(number == 1, 0.75, 0.0))
            planes.weights[planes.counts[owner] == 1] = 1.0
        slopes, heights = draws.normal(size=12), draws.normal(size=4)
        planes, place = planes.with_plane(slopes, heights)
        for u in (0, 2, 3):
            fresh = (slopes[BOUNDS[u] : BOUNDS[u + 1]], heights[u])
            known[u][place[u] : place[u] + 1] = [fresh]
    return planes, known


@pytest.mark.parametrize("seed", range(3))
def test_planes_are_what_went_in(seed):
    planes, known = grown(seed)
    assert planes.counts.tolist() == [len(one) for one in known]
    assert max(planes.counts) == FEW  # planes without weight make way
    assert planes.slopes.tobytes() == np.concatenate([one for user in known for one, _ in user]).tobytes()
    assert planes.heights.tolist() == [height for user in known for _, height in user]
    slopes, heights = planes.mixed()
    parts = np.split(planes.weights, np.cumsum(planes.counts)[:-1])
    for u, (own, weights) in enumerate(zip(known, parts, strict=True)):
        sums = sum((w * one for w, (one, _) in zip(weights, own, strict=True)), np.zeros(BOUNDS[u + 1] - BOUNDS[u]))
        assert slopes[BOUNDS[u] : BOUNDS[u + 1]] == pytest.approx(sums, abs=1e-14)
        assert heights[u] == pytest.approx(sum(w * h for w, (_, h) in zip(weights, own, strict=True)), abs=1e-14)
    kept = planes.with_weight()
    kept.check(BOUNDS)
    assert kept.counts.tolist() == [2, 0, 2, 2]
    for before, after in zip((slopes, heights), kept.mixed(), strict=True):
        assert after == pytest.approx(before, abs=1e-14)


def test_planes_with_weight_never_make_way():
    draws = np.random.default_rng(3)
    planes = UserPlanes.first(BOUNDS, draws.normal(size=12), draws.normal(size=4))
    for _ in range(3 * FEW):
        before = tables(planes)
        planes, _ = planes.with_plane(draws.normal(size=12), draws.normal(size=4))
        planes.weights[:] = 1.0 / np.repeat(planes.counts, planes.counts)
        for old, new in zip(before, tables(planes), strict=True):
            assert new[:-1].tobytes() == old.tobytes()
    assert set(planes.counts.tolist()) == {0, 3 * FEW + 1}


def test_of_too_many_planes_the_two_lightest_are_joined():
    """Mixtures stay what they were, and Gram matrices those of the planes."""
    planes, _ = grown(0, rounds=FEW - 1, weights=False)
    assert planes.counts.tolist() == [FEW, 0, FEW, FEW]
    planes.weights[:] = np.tile([0.3, 0.2, 0.05, 0.25, 0.12, 0.08], 3)
    planes.gram[:] = np.concatenate([(own @ own.T).ravel() for own in tables(planes)])
    before, heights = planes.mixed(), np.random.default_rng(5).normal(size=4)
    slopes = np.ones(12)
    after, place = planes.with_plane(slopes, heights, most=0)
    assert after.counts.tolist() == planes.counts.tolist()
    assert place[[0, 2, 3]].tolist() == [2, 2, 2]
    assert after.weights[:6] == pytest.approx([0.3, 0.2, 0.0, 0.25, 0.12, 0.13])
    assert after.heights[[2, 8, 14]].tolist() == heights[[0, 2, 3]].tolist()
    for one, other in zip(before, after.mixed(), strict=True):
        assert other == pytest.approx(one, abs=1e-14)
    found = np.split(after.gram, 3)
    stay = np.delete(np.arange(FEW), 2)
    for own, gram in zip(tables(after), found, strict=True):
        square = gram.reshape(FEW, FEW)
        np.testing.assert_allclose(square[np.ix_(stay, stay)], (own @ own.T)[np.ix_(stay, stay)], atol=1e-12)
    assert planes.with_plane(slopes, heights)[0].counts.max() == FEW + 1


def tables(planes):
    """(planes, ratings) slopes of each user who has any."""
    low, found = 0, []
    for count, size in zip(planes.counts, np.diff(planes.bounds), strict=True):
        if count:
            found.append(planes.slopes[low : low + count * size].reshape(count, size))
            low += count * size
    return found
