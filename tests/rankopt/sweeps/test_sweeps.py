"""The measure along a line: every interval against all crossings, by enumeration and the evaluator."""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest

from formulations.sorting import falling_rows
from rankopt.measures import MEASURES, Convention, Measure, MeasureMix, PositionalMeasure, parse
from rankopt.measures.average_precision import AveragePrecision
from rankopt.measures.tied_ranking import totals
from rankopt.sweeps import full_sweeps, step_function
from rankopt.sweeps import sweep as sweep_module
from rankopt.sweeps.intersections import DIGIT, HALF, LOW, first_order, pairs_in_time, sort_times
from rankopt.sweeps.reference import LINES, check_lines, drawn_lines
from rankopt.sweeps.step_function import (
    StepEvents,
    StepFunction,
    best_interval,
    clamped_point,
    inside_point,
    middle_point,
    window_point,
    within,
)
from rankopt.sweeps.sweep import LineSweep
from rankopt.testing import check_line_search

SWEPT = [
    "nDCG@3", "nDCG", "nDCG(discount='letor')@5", "DCG(gain='linear')@2", "P@2", "WTA", "RR", "RR@2", "AUC", "AP",
    "AP@3", "ERR", "ERR@2", "ERU(alpha=3, d=1)", "NERU(alpha=3, d=1)@4", "Custom(discount=(3, 3, 1), gain=(0, 1, 5))",
    "MeanNDCG", "R@3", "Rprec", "RBP(p=0.7)", "RBP(p=0.5)@2", "Success@1", "Success@3",
]  # fmt: skip


def test_every_measure_is_swept_here():
    assert {parse(name).name for name in SWEPT} == set(MEASURES)


@pytest.mark.every(4)
@pytest.mark.parametrize("name", SWEPT)
def test_every_interval_is_that_of_all_crossings(name):
    check_line_search(parse(name))


@pytest.mark.every(2)
@pytest.mark.parametrize("name", ["nDCG", "DCG@3", "NERU(alpha=3, d=0)", "AUC", "P@3"])
def test_discounts_are_walked_as_they_are_listed(name, monkeypatch):
    monkeypatch.setattr(sweep_module, "LONGEST_LIST", 0)
    check_line_search(parse(name))


@pytest.mark.every(3)
@pytest.mark.parametrize("name", ["AP@3", "ERR@2", "AP@1", "ERR@10"])
def test_cuts_are_walked_as_they_are_listed(name, monkeypatch):
    """The first k places, swap by swap, and every document on its own walk: two sweeps, both exact."""
    check_line_search(parse(name))
    monkeypatch.setattr(sweep_module, "LONGEST_LIST", 0)
    check_line_search(parse(name))


@pytest.mark.every(5)
@pytest.mark.parametrize("name", ["AP@10", "ERR@10"])
def test_cuts_of_long_lists_with_ties_of_every_kind(name):
    rng, compared = np.random.default_rng(4), 0
    for kind in LINES:
        offsets = np.array([0, 25, 40, 41])
        grades = rng.integers(0, 5, 41).astype(float)
        compared += check_lines(parse(name), grades, offsets, *drawn_lines(rng, kind, 41), rng.random(3))
    assert compared > 2000


@dataclass(frozen=True, repr=False)
class TwoScreens(PositionalMeasure):
    """A measure of a user's own that says its discount and its gain."""

    name: ClassVar[str] = "TwoScreens"

    def discount(self, n):
        return np.where(np.arange(n) < 2, 2.0, np.where(np.arange(n) < 4, 1.0, 0.5))

    def gain(self, relevance, offsets):
        return relevance + 1


@dataclass(frozen=True, repr=False)
class Unspoilt(Measure):
    """One that says nothing but its value: documents that have no worse one above them."""

    name: ClassVar[str] = "Unspoilt"

    def values(self, ranking):
        worst = np.minimum.reduceat(ranking.relevance, ranking.groups[:-1])[ranking.group]
        parts = [np.minimum.accumulate(worst[low:high]) for low, high in pairwise(ranking.offsets.tolist())]
        least = np.concatenate(parts)
        return totals((ranking.relevance <= least).astype(float), ranking.offsets)


@pytest.mark.parametrize("measure", [TwoScreens(), Unspoilt()])
def test_measures_of_ones_own_are_swept_without_another_line(measure):
    check_line_search(measure)


MIXES = ["AP + nDCG@10 + 2 RR", "ERR + AP@2", "0.5 P@2 + AUC + nDCG", "3 ERR@2 + DCG@4 + nDCG(discount='letor')@5"]


@pytest.mark.every(3)
@pytest.mark.parametrize("name", MIXES)
def test_a_sum_is_swept_part_by_part(name):
    assert parse(name).sweep_kind == "sum"
    check_line_search(parse(name))


@pytest.mark.parametrize(
    "short", ["zero-ndcg", *(pytest.param(short, marks=pytest.mark.study) for short in ("zero", "own"))]
)
def test_a_part_that_counts_nothing_in_short_queries_is_left_out_there(short):
    mix = parse("P@3 + 2 nDCG@2 + RR")
    assert isinstance(mix, MeasureMix)
    check_line_search(mix.with_convention(Convention(fewer_than_k=short)))


def test_a_sum_with_a_part_that_says_nothing_is_valued_between_all_crossings():
    mix = MeasureMix({Unspoilt(): 1.0, parse("AP"): 2.0})
    assert mix.sweep_kind == "crossings"
    check_line_search(mix)


@dataclass(frozen=True, repr=False)
class NotPrecision(AveragePrecision):
    """A planted fault: it is swept as average precision and valued otherwise."""

    def values(self, ranking):
        return super().values(ranking) ** 2


def test_a_measure_that_is_swept_as_another_is_found_out():
    with pytest.raises(AssertionError, match="on a line"):
        check_line_search(NotPrecision())


@pytest.mark.study
def test_grades_and_long_lists_of_many_ties():
    rng = np.random.default_rng(3)
    compared = 0
    for name in ("nDCG@10", "nDCG", "AP", "ERR", "RR@5"):
        for kind in ("integer", "random", "tied slopes"):
            offsets = np.array([0, 25, 40])
            lines = drawn_lines(rng, kind, 40)
            compared += check_lines(parse(name), rng.integers(0, 5, 40).astype(float), offsets, *lines, rng.random(2))
    assert compared > 4000


def test_lines_that_are_all_one_never_jump():
    sweep = LineSweep(parse("nDCG@2"), np.array([2.0, 1.0, 0.0]), np.array([0, 3]), np.ones(1))
    (events,) = sweep.events(np.zeros(3), np.zeros((1, 3)))
    assert events.times.size == 0
    np.testing.assert_allclose(events.start, sweep.value(np.zeros(3)), rtol=1e-15)


def test_three_lines_through_one_point_leave_no_sliver():
    """Of concurrent lines pairs cross at times that differ in floats; no interval lies between."""
    rng = np.random.default_rng(0)
    differing = 0
    for _ in range(500):
        slopes = rng.normal(size=3)
        scores = rng.normal() - slopes * rng.normal()
        sweep = LineSweep(parse("DCG"), np.array([0.0, 1.0, 2.0]), np.array([0, 3]), np.ones(1))
        (events,) = sweep.events(scores, slopes[None])
        differing += np.unique(events.times).size > 1
        assert StepFunction.from_events(events).values.size == 2
    assert differing > 100


def drawn_events(seed, size, decimals=1):
    rng = np.random.default_rng(seed)
    times = np.round(rng.standard_cauchy(size), decimals)
    return StepEvents(0.5, times, rng.normal(size=size), np.abs(rng.normal(size=size)) * 1e-4)


@pytest.mark.parametrize("decimals", [1, 3, 9])
def test_bins_find_the_interval_that_sorting_finds(decimals, monkeypatch):
    monkeypatch.setattr(step_function, "FEW", 0)
    for seed in range(200):
        events = drawn_events(seed, 1 + seed, decimals)
        steps = StepFunction.from_events(events)
        low, high, value = best_interval(events)
        top = np.flatnonzero(steps.values >= steps.values.max() - 1e-10)
        np.testing.assert_allclose(value, steps.values.max(), rtol=0, atol=1e-10)
        assert (low, high) in list(zip(steps.lows[top].tolist(), steps.highs[top].tolist(), strict=True))


def test_bins_are_in_the_order_of_time():
    rng = np.random.default_rng(0)
    times = rng.standard_cauchy(10_000) * 10.0 ** rng.integers(-300, 300, 10_000)
    times[:3] = 0.0, -0.0, 5e-324
    bins = step_function._bins(times)
    assert np.all(np.diff(bins[np.argsort(times)]) >= 0)
    assert bins[0] == bins[1]


def test_the_window_is_the_best_mean():
    """Against means on a fine grid, computed interval by interval."""
    for seed in range(50):
        events, h = drawn_events(seed, 12, 9), 0.3
        steps, found = StepFunction.from_events(events), window_point(events, h)
        lows, highs = np.maximum(steps.lows, -1e9), np.minimum(steps.highs, 1e9)

        def mean(t, lows=lows, highs=highs, steps=steps, h=h):
            overlap = np.clip(np.minimum(highs, t + h) - np.maximum(lows, t - h), 0.0, None)
            return steps.values @ overlap / (2 * h)

        grid = np.concatenate([np.linspace(-30, 30, 3001), [-1e4, 1e4]])
        assert mean(found.t) >= max(map(mean, grid)) - 0.01
        assert found.low < found.t < found.high
        assert steps.at(np.array([found.t]))[0] == found.value


def test_lines_that_are_parallel_but_for_rounding_draw_no_window_to_their_crossing():
    """Sums of areas up to 4e15 leave no digits for a window of 1, and once gave a mean above all values."""
    near = np.array([-1.0, 0.0, 0.5, 2.0])
    events = StepEvents(0.2, np.append(near, 4e15), np.array([0.3, 0.3, -0.1, -0.2, 0.1]), np.zeros(5))
    alone = StepEvents(0.2, near, events.steps[:4], np.zeros(4))
    assert window_point(events, 0.2).t == pytest.approx(window_point(alone, 0.2).t)
    assert window_point(events, 0.2).value == 0.8
    only = StepEvents(0.2, np.array([4e15]), np.array([0.3]), np.zeros(1))
    assert window_point(only, 0.2).value == 0.5


def test_a_point_lies_inside_its_interval_and_a_piece_without_end_goes_on_by_half():
    events = StepEvents(0.0, np.array([4.0]), np.array([1.0]), np.zeros(1))
    assert middle_point(events, 0.1).t == 6.0
    assert middle_point(events, 5.0).t == 9.0
    assert middle_point(StepEvents(1.0, np.array([-4.0]), np.array([-1.0]), np.zeros(1)), 0.1).t == -6.0
    assert middle_point(StepEvents(1.0, *np.zeros((3, 0))), 0.1).t == 0.0


@pytest.mark.parametrize("name", ["nDCG@5", "AP + 2 RR", "ERR"])
def test_parts_change_no_event(name, monkeypatch):
    rng = np.random.default_rng(2)
    offsets, shares = np.arange(0, 601, 20), np.full(30, 1 / 30)
    relevance, (scores, _) = rng.integers(0, 3, 600).astype(float), drawn_lines(rng, "tied scores", 600)
    slopes = np.array([drawn_lines(rng, kind, 600)[1] for kind in LINES])
    whole = LineSweep(parse(name), relevance, offsets, shares).events(scores, slopes)
    monkeypatch.setattr(sweep_module, "LEAST", 64)
    monkeypatch.setattr(sweep_module, "MOST", 64)
    cut = LineSweep(parse(name), relevance, offsets, shares).events(scores, slopes)
    for one, other in zip(whole, cut, strict=True):
        assert one.times.tobytes() == other.times.tobytes()
        assert one.steps.tobytes() == other.steps.tobytes()
        assert one.start == other.start


@pytest.mark.parametrize("kind", ["cauchy", "tied", "crowded", "zeros", "scales", "infinite"])
def test_times_are_sorted_whatever_they_are(kind):
    rng = np.random.default_rng(0)
    for n in [0, 1, 2, 23, 24, 25, 60, 200, 1000]:
        t = rng.standard_cauchy(n)
        if kind == "tied":
            t = np.round(t)
        if kind == "crowded":
            t = 1.0 + 1e-12 * t
        if kind == "zeros":
            t = t * (rng.random(n) < 0.3)
        if kind == "scales":
            t = t * 10.0 ** rng.integers(-300, 300, n)
        if kind == "infinite":
            t[rng.random(n) < 0.1] = -np.inf
        times, who = t.copy(), np.arange(n)
        room = [np.empty(max(n, 9)), *(np.empty(max(n, 9) + 1, np.int64) for _ in range(3))]
        sort_times(times, who, *room)
        np.testing.assert_array_equal(times, np.sort(t))
        np.testing.assert_array_equal(t[who], times)
        np.testing.assert_array_equal(np.sort(who), np.arange(n))


def test_of_a_stretch_of_best_points_the_window_takes_the_middle():
    steps = np.array([1.0, -1.0])
    assert window_point(StepEvents(0.0, np.array([1.0, 5.0]), steps, np.zeros(2)), 0.5).t == pytest.approx(3.0)
    assert window_point(StepEvents(0.0, np.array([1.0, 5.0]), -steps, np.zeros(2)), 0.5).t == pytest.approx(0.5)
    far = StepEvents(0.0, np.array([1.0, 2.0, 1e12]), np.array([1.0, -0.5, 0.1]), np.zeros(3))
    assert window_point(far, 0.25).t == pytest.approx(1.5)


# Uncut measures swap by swap: against walks document by document, which share no order of events with them.


UNCUT = ["AP", "ERR", "nDCG", "MeanNDCG", "AP@40", "ERR@40", "ERU(alpha=3, d=50)"]


def swept(measure, relevance, offsets, lines, monkeypatch, pairs):
    monkeypatch.setattr(full_sweeps, "PAIRS", pairs)
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
        monkeypatch.setattr(full_sweeps, "PAIRS", pairs)
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
        monkeypatch.setattr(full_sweeps, "PAIRS", pairs)
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


# Points on a piece of a line: the best of it by every value, on every kind of step function.


def drawn(seed, size, decimals=9):
    rng = np.random.default_rng(seed)
    times = np.round(rng.normal(size=size), decimals)
    return StepEvents(0.5, times, rng.normal(size=size), np.abs(rng.normal(size=size)) * 1e-6)


def cases():
    for seed in range(120):
        rng = np.random.default_rng([seed, 1])
        low = rng.normal()
        yield drawn(seed, seed % 30, 1 if seed % 3 == 0 else 9), low, low + rng.random() + 1e-3, rng.random()


def inner(steps, low, high):
    """Values of the open intervals that meet (low, high)."""
    return steps.values[np.minimum(steps.highs, high) > np.maximum(steps.lows, low)]


def told(events, t):
    return float(StepFunction.from_events(events).at(np.array([t]))[0])


def test_a_piece_of_a_line_has_its_values():
    for events, low, high, _ in cases():
        for t in np.random.default_rng(0).uniform(low, high, 20):
            np.testing.assert_allclose(told(within(events, low, high), t), told(events, t), atol=1e-12)


def test_inside_is_the_best_of_the_piece():
    for events, low, high, _ in cases():
        found = inside_point(events, low, high)
        assert low <= found.low < found.t < found.high <= high
        assert found.value == pytest.approx(inner(StepFunction.from_events(events), low, high).max(), abs=1e-12)
        assert found.value == pytest.approx(told(events, found.t), abs=1e-12)


def test_clamped_is_the_best_of_the_line_or_the_nearer_end():
    ends = 0
    for events, low, high, reach in cases():
        best, found = middle_point(events, reach), clamped_point(events, low, high, reach)
        assert low <= found.t <= high
        assert found.value == pytest.approx(told(events, found.t), abs=1e-12)
        if low <= best.t <= high:
            assert found == best
        else:
            ends += 1
            assert abs(found.t - (low if best.t < low else high)) <= (high - low) / 8 + 1e-5
    assert ends > 30


def test_of_equal_values_the_widest_and_its_middle():
    nothing = StepEvents(1.0, *np.zeros((3, 0)))
    found = inside_point(nothing, 0.1, 0.5)
    assert (found.t, found.value, found.events) == (pytest.approx(0.3), 1.0, 0)
    dip = StepEvents(1.0, np.array([0.2, 0.3]), np.array([-1.0, 1.0]), np.zeros(2))
    assert inside_point(dip, 0.1, 0.5).t == pytest.approx(0.4)
    assert clamped_point(StepEvents(0.0, np.array([7.0]), np.array([1.0]), np.zeros(1)), 0.1, 0.5, 1.0).t == 0.5


def test_an_end_within_the_rounding_of_a_jump_is_left():
    rise = StepEvents(0.0, np.array([0.1, 7.0]), np.array([-1.0, 3.0]), np.array([1e-3, 0.0]))
    found = clamped_point(StepEvents(0.0, np.array([0.1]), np.array([-1.0]), np.array([1e-3])), 0.1, 0.5, 1.0)
    assert found.t > 0.101
    assert inside_point(rise, 0.1, 0.5).value == -1.0
    covered = inside_point(StepEvents(0.0, np.array([0.3]), np.array([1.0]), np.array([1.0])), 0.1, 0.5)
    assert 0.1 < covered.t < 0.5


# With what a sweep begins: documents by rising slope, of equal slopes by falling score.


def ordered(scores, slopes):
    n = scores.size
    order, starts = np.empty(n, np.int64), np.empty(n + 1, np.int64)
    by_score = falling_rows(np.array([0, n]), scores)
    groups = first_order(scores, slopes, by_score, np.empty(n), order, np.empty(n, np.int64), starts)
    lines = np.unique(np.stack([scores, slopes]), axis=1).shape[1] if n else 0
    assert (groups, starts[groups]) == (lines, n)
    return order


@pytest.mark.parametrize("kind", [*LINES, "one far", "zeros and signs", "huge", "crowded"])
@pytest.mark.parametrize("n", [0, 1, 2, 40, 41, 99, 100, 299, 300, 1000])
def test_documents_stand_as_a_stable_sort_has_them(kind, n):
    rng = np.random.default_rng(n)
    scores, slopes = drawn_lines(rng, kind, n)
    if kind == "one far":
        slopes[: n // 50 + 1] = 1e12
    if kind == "zeros and signs":
        slopes *= rng.choice([0.0, -0.0, 1.0], n)
    if kind == "huge":
        slopes *= 1e308 / max(1.0, np.abs(slopes).max(initial=0.0))
    if kind == "crowded":
        slopes = np.exp(30 * slopes)
    np.testing.assert_array_equal(ordered(scores, slopes), np.lexsort((np.arange(n), -scores, slopes)))
