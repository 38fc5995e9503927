"""The measure along a line: every interval against all crossings, by enumeration and the evaluator."""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest

from rankopt.measures import MEASURES, Convention, Measure, MeasureMix, PositionalMeasure, parse
from rankopt.measures.average_precision import AveragePrecision
from rankopt.measures.tied_ranking import totals
from rankopt.sweeps import step_function as best_module
from rankopt.sweeps import sweep as sweep_module
from rankopt.sweeps import sweep as ways_module
from rankopt.sweeps.intersections import sort_times
from rankopt.sweeps.reference import LINES, check_lines, drawn_lines
from rankopt.sweeps.step_function import StepEvents, StepFunction, best_interval, middle_point, window_point
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
    monkeypatch.setattr(ways_module, "LONGEST_LIST", 0)
    check_line_search(parse(name))


@pytest.mark.every(3)
@pytest.mark.parametrize("name", ["AP@3", "ERR@2", "AP@1", "ERR@10"])
def test_cuts_are_walked_as_they_are_listed(name, monkeypatch):
    """The first k places, swap by swap, and every document on its own walk: two sweeps, both exact."""
    check_line_search(parse(name))
    monkeypatch.setattr(ways_module, "LONGEST_LIST", 0)
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
    monkeypatch.setattr(best_module, "FEW", 0)
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
    bins = best_module._bins(times)
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
