"""Slopes as codes are to the bit what was written; planes grow where they carry weight, and mix as sums say."""

from dataclasses import replace

import numpy as np
import pytest

from rankopt.collaborative import encoded_ratings as books
from rankopt.collaborative.encoded_ratings import encode_values
from rankopt.collaborative.user_planes import FEW, QuantizedSlopes, UserPlanes

BOUNDS = np.array([0, 4, 4, 7, 12])
SCALE = np.array([1.0, 2.0, 0.5, 3.0])


def drawn(draws, kinds=6, ratings=12):
    """Slopes of few values, with minus zero and numbers that are nearly equal among them."""
    values = np.concatenate([draws.normal(size=kinds), [0.0, -0.0, 1.0, np.nextafter(1.0, 2.0)]])
    return draws.choice(values, ratings), draws.choice(values, ratings)


@pytest.mark.parametrize("seed", range(5))
def test_codes_are_read_as_they_were_written(seed):
    draws = np.random.default_rng(seed)
    placed, reference = drawn(draws, 400, 5000)
    coded = QuantizedSlopes.of(placed, reference)
    assert (coded.book[coded.placed].view(np.int64) == placed.view(np.int64)).all()
    assert (coded.book[coded.reference].view(np.int64) == reference.view(np.int64)).all()
    assert np.unique(coded.book.view(np.int64)).size == coded.book.size
    other, book = coded.under(draws.normal(size=300))
    assert other.plain().tobytes() == (placed - reference).tobytes()
    assert other.book is book


def test_a_full_book_takes_no_more():
    pages = np.arange(float(books.PAGES))
    codes, book = encode_values(np.zeros(0), pages)
    assert (book[codes] == pages).all()
    assert encode_values(book, pages[::-1])[0] is not None
    codes, same = encode_values(book, np.array([-1.0]))
    assert codes is None
    assert same is book
    assert QuantizedSlopes.of(pages, -1.0 - pages) is None
    assert QuantizedSlopes.of(pages[:9], pages[:9] - 0.5).under(book)[0] is None


def added(planes, slopes, heights):
    planes, fresh = planes.told(slopes)
    return planes.with_plane(fresh, heights)


def grown(seed, coded, rounds=9, weights=True):
    """Planes after so many rounds, and all slopes and heights that went in, user after user, place by place."""
    draws = np.random.default_rng(seed)
    _, reference = drawn(draws)
    spread, known = np.repeat(SCALE, np.diff(BOUNDS)), []

    def one():
        placed, heights = drawn(draws)[0], draws.normal(size=4)
        slopes = spread * (placed - reference)
        return (QuantizedSlopes.of(placed, reference) if coded else slopes), slopes, heights

    given, slopes, heights = one()
    planes = UserPlanes.first(BOUNDS, SCALE, given, heights)
    known = [[(slopes[BOUNDS[u] : BOUNDS[u + 1]], heights[u])] if BOUNDS[u + 1] > BOUNDS[u] else [] for u in range(4)]
    for _ in range(rounds):
        if weights:  # the first two planes of each user carry weight, whatever else there is
            owner = np.repeat(np.arange(4), planes.counts)
            number = np.arange(owner.size) - np.repeat(np.cumsum(planes.counts) - planes.counts, planes.counts)
            planes.weights[:] = np.where(number == 0, 0.25, np.where(number == 1, 0.75, 0.0))
            planes.weights[planes.counts[owner] == 1] = 1.0
        given, slopes, heights = one()
        planes, place = added(planes, given, heights)
        for u in (0, 2, 3):
            fresh = (slopes[BOUNDS[u] : BOUNDS[u + 1]], heights[u])
            known[u][place[u] : place[u] + 1] = [fresh]
    return planes, known


@pytest.mark.parametrize("coded", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_planes_are_what_went_in(seed, coded):
    planes, known = grown(seed, coded)
    assert planes.counts.tolist() == [len(one) for one in known]
    assert max(planes.counts) == FEW  # planes without weight make way
    assert bool(planes.plain.size) is not coded
    plain = planes if planes.plain.size else planes._as_plain()
    assert plain.plain.tobytes() == np.concatenate([one for user in known for one, _ in user]).tobytes()
    assert planes.heights.tolist() == [height for user in known for _, height in user]
    slopes, heights = planes.mixed()
    parts = np.split(planes.weights, np.cumsum(planes.counts)[:-1])
    for u, (own, weights) in enumerate(zip(known, parts, strict=True)):
        sums = sum((w * one for w, (one, _) in zip(weights, own, strict=True)), np.zeros(BOUNDS[u + 1] - BOUNDS[u]))
        assert slopes[BOUNDS[u] : BOUNDS[u + 1]] == pytest.approx(sums, abs=1e-14)
        assert heights[u] == pytest.approx(sum(w * h for w, (_, h) in zip(weights, own, strict=True)), abs=1e-14)
    kept = planes.with_weight()
    kept.check(BOUNDS, SCALE)
    assert kept.counts.tolist() == [2, 0, 2, 2]
    for before, after in zip((slopes, heights), kept.mixed(), strict=True):
        assert after == pytest.approx(before, abs=1e-14)


def test_planes_with_weight_never_make_way():
    draws = np.random.default_rng(3)
    _, reference = drawn(draws)
    planes = UserPlanes.first(BOUNDS, SCALE, QuantizedSlopes.of(drawn(draws)[0], reference), draws.normal(size=4))
    for _ in range(3 * FEW):
        before = tables(planes)
        planes, _ = added(planes, QuantizedSlopes.of(drawn(draws)[0], reference), draws.normal(size=4))
        planes.weights[:] = 1.0 / np.repeat(planes.counts, planes.counts)
        for old, new in zip(before, tables(planes), strict=True):
            assert new[:-1].tobytes() == old.tobytes()
    assert set(planes.counts.tolist()) == {0, 3 * FEW + 1}


@pytest.mark.parametrize("coded", [True, False])
def test_of_too_many_planes_the_two_lightest_are_joined(coded):
    """Mixtures stay what they were, and Gram matrices those of the planes."""
    planes, _ = grown(0, coded, rounds=FEW - 1, weights=False)
    assert planes.counts.tolist() == [FEW, 0, FEW, FEW]
    planes.weights[:] = np.tile([0.3, 0.2, 0.05, 0.25, 0.12, 0.08], 3)
    planes.gram[:] = np.concatenate([(own @ own.T).ravel() for own in tables(planes)])
    before, heights = planes.mixed(), np.random.default_rng(5).normal(size=4)
    slopes = np.repeat(SCALE, np.diff(BOUNDS))
    after, place = planes.with_plane(planes.codes[: BOUNDS[-1]] if coded else slopes, heights, most=0)
    assert after.plain.size
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
    assert planes.with_plane(planes.codes[: BOUNDS[-1]] if coded else slopes, heights)[0].counts.max() == FEW + 1


def tables(planes):
    """(planes, ratings) slopes of each user who has any."""
    kept, low, found = planes.plain if planes.plain.size else planes._as_plain().plain, 0, []
    for count, size in zip(planes.counts, np.diff(planes.bounds), strict=True):
        if count:
            found.append(kept[low : low + count * size].reshape(count, size))
            low += count * size
    return found


@pytest.mark.parametrize("why", ["reference", "book", "plain"])
def test_what_cannot_be_told_by_codes_is_kept_as_it_is(why, monkeypatch):
    """Another reference, a book that is full, or slopes without codes: the planes so far stay what they were."""
    planes, _ = grown(1, True, rounds=2)
    draws = np.random.default_rng(7)
    placed, reference = drawn(draws)
    if why != "reference":  # so that it is no reason
        reference = planes.book[planes.reference]
        assert not added(planes, QuantizedSlopes.of(placed, reference), np.zeros(4))[0].plain.size
    given, heights = QuantizedSlopes.of(placed, reference), draws.normal(size=4)
    slopes = np.repeat(SCALE, np.diff(BOUNDS)) * (placed - reference)
    if why == "book":
        monkeypatch.setattr(books, "PAGES", planes.book.size)
    before = planes._as_plain().plain
    after, place = added(planes, slopes if why == "plain" else given, heights)
    assert after.plain.size
    assert not after.codes.size
    weights = np.concatenate([np.full(n, 1.0 / n) for n in after.counts if n])
    replace(after, weights=weights).with_weight().check(BOUNDS, SCALE)
    parts = np.split(after.plain, np.cumsum(np.repeat(np.diff(BOUNDS), after.counts))[:-1])
    old = iter(np.split(before, np.cumsum(np.repeat(np.diff(BOUNDS), planes.counts))[:-1]))
    for u in (0, 2, 3):
        own = [parts.pop(0) for _ in range(after.counts[u])]
        assert own.pop(place[u]).tobytes() == slopes[BOUNDS[u] : BOUNDS[u + 1]].tobytes()
        assert [one.tobytes() for one in own] == [next(old).tobytes() for _ in range(planes.counts[u])]
