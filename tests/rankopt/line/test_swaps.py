"""Uncut measures swap by swap: against walks document by document, which share no order of events with them."""

import numpy as np
import pytest

from rankopt.measures import parse
from rankopt.sweeps import full_sweeps as uncut_module
from rankopt.sweeps.intersections import DIGIT, HALF, LOW, pairs_in_time
from rankopt.sweeps.reference import LINES, check_lines, drawn_lines
from rankopt.sweeps.step_function import StepFunction
from rankopt.sweeps.sweep import LineSweep
from rankopt.testing import check_line_search

UNCUT = ["AP", "ERR", "nDCG", "MeanNDCG", "AP@40", "ERR@40", "ERU(alpha=3, d=50)"]


def swept(measure, relevance, offsets, lines, monkeypatch, pairs):
    monkeypatch.setattr(uncut_module, "PAIRS", pairs)
    weights = np.arange(1.0, offsets.size)
    (events,) = LineSweep(measure, relevance, offsets, weights).events(lines[0], lines[1][None])
    return events


@pytest.mark.every(5)
@pytest.mark.parametrize("name", UNCUT)
@pytest.mark.parametrize("kind", LINES)
def test_swaps_say_what_walks_say(name, kind, monkeypatch):
    rng = np.random.default_rng(LINES.index(kind))
    for size in (2, 30, 90):
        offsets, lines = np.array([0, size, size + 7]), drawn_lines(rng, kind, size + 7)
        relevance = rng.choice(5, size + 7, p=[0.5, 0.3, 0.1, 0.05, 0.05]).astype(float)
        swaps, walks = (swept(parse(name), relevance, offsets, lines, monkeypatch, pairs) for pairs in (1 << 20, 0))
        for t in (StepFunction.from_events(walks).middles, StepFunction.from_events(swaps).middles):
            told = StepFunction.from_events(swaps).at(t)
            known = ~np.isnan(told) & ~np.isnan(StepFunction.from_events(walks).at(t))
            np.testing.assert_allclose(
                told[known], StepFunction.from_events(walks).at(t)[known], rtol=1e-11, atol=1e-12
            )
        assert swaps.times.size <= walks.times.size
        assert np.all(np.isfinite(swaps.steps))


@pytest.mark.every(2)
@pytest.mark.parametrize("name", ["AP", "ERR", "nDCG"])
def test_long_lists_against_all_crossings(name):
    rng, compared = np.random.default_rng(4), 0
    for kind in LINES:
        offsets = np.array([0, 25, 40, 41])
        grades = rng.integers(0, 5, 41).astype(float)
        compared += check_lines(parse(name), grades, offsets, *drawn_lines(rng, kind, 41), rng.random(3))
    assert compared > 2000


@pytest.mark.every(3)
@pytest.mark.parametrize("name", ["AP", "ERR", "nDCG", "AP@40"])
def test_queries_of_too_many_pairs_walk(name, monkeypatch):
    for pairs in (0, 12):
        monkeypatch.setattr(uncut_module, "PAIRS", pairs)
        check_line_search(parse(name))


def test_gains_of_too_many_kinds_walk():
    """What stands above is counted in one number of 63 bits."""
    rng = np.random.default_rng(6)
    grades = rng.permutation(np.linspace(0.0, 4.0, 40))
    sweep = LineSweep(parse("ERR"), grades, np.array([0, 40]), np.ones(1))
    assert not sweep._ways[0].behind[-2].any()
    assert LineSweep(parse("ERR"), np.round(grades), np.array([0, 40]), np.ones(1))._ways[0].behind[-2].all()
    assert check_lines(parse("ERR"), grades, np.array([0, 40]), *drawn_lines(rng, "random", 40), np.ones(1)) > 500


def test_what_one_number_cannot_count_walks():
    """Queries of more documents than half a word numbers, and of more kinds than its bits count."""
    lengths = np.array([70_000, 5_000, 4_000, 3])
    offsets = np.append(0, np.cumsum(lengths))
    grades = np.zeros(offsets[-1])
    grades[offsets[:-1]], grades[1:4] = 1.0, (2.0, 3.0, 4.0)
    for name, expected in (("AP", [0, 1, 1, 1]), ("ERR", [0, 0, 1, 1])):
        sweep = LineSweep(parse(name), grades, offsets, np.ones(4))
        assert sweep._ways[0].behind[-2].tolist() == expected
        lines = drawn_lines(np.random.default_rng(0), "random", grades.size)
        (events,) = sweep.events(lines[0], lines[1][None])
        steps = StepFunction.from_events(events)
        for t in (-0.5, 0.5):
            np.testing.assert_allclose(steps.at(np.array([t])), sweep.value(lines[0] + t * lines[1]), rtol=1e-9)


def test_a_document_that_nobody_passes(monkeypatch):
    """p = (2^60 - 1) / 2^60 is 1 in floats."""
    rng = np.random.default_rng(7)
    for pairs in (1 << 20, 0):
        monkeypatch.setattr(uncut_module, "PAIRS", pairs)
        grades = rng.choice([0.0, 57.0, 58.0, 60.0], 30)
        for kind in ("random", "integer", "zeros"):
            lines = drawn_lines(rng, kind, 30)
            assert check_lines(parse("ERR(max_grade=60)"), grades, np.array([0, 30]), *lines, np.ones(1))


def test_shuffled_documents_give_the_same_bits():
    rng = np.random.default_rng(8)
    for name in ("AP", "ERR", "nDCG"):
        for kind in ("random", "through a point", "many scales", "tied slopes"):
            scores, slopes = drawn_lines(rng, kind, 50)
            relevance, offsets = rng.integers(0, 5, 50).astype(float), np.array([0, 50])
            mixed = rng.permutation(50)
            one, other = (
                LineSweep(parse(name), relevance[rows], offsets, np.ones(1)).events(scores[rows], slopes[None, rows])[0]
                for rows in (np.arange(50), mixed)
            )
            assert one.start == other.start
            assert one.times.tobytes() == other.times.tobytes()
            assert one.steps.tobytes() == other.steps.tobytes()


@pytest.mark.parametrize("kind", LINES)
@pytest.mark.parametrize("lines", [2, 9, 70])
def test_pairs_are_those_of_different_slopes_in_order_of_time(kind, lines):
    rng = np.random.default_rng(0)
    for walkers in {0, 1, lines // 2, lines}:
        s, a = drawn_lines(rng, kind, lines)
        a = np.concatenate([np.sort(a[:walkers]), np.sort(a[walkers:])])
        room = [np.empty(lines * lines, np.int64) for _ in range(2)]
        when = np.empty(lines * lines)
        count = pairs_in_time(s, a, walkers, *room, np.empty(2 << DIGIT, np.int64), when)
        x, y, t = room[0][:count] >> HALF & LOW, room[0][:count] & LOW, when[:count]
        assert np.all(t[:-1] <= t[1:])
        np.testing.assert_array_equal(t, (s[x] - s[y]) / (a[y] - a[x]))
        expected = {(i, j) for i in range(walkers) for j in range(i + 1, lines) if a[i] != a[j]}
        assert expected == set(zip(x.tolist(), y.tolist(), strict=True))
        assert count == len(expected)
