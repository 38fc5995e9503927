"""`compare`: paired tests against scipy and against counting all sign vectors."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from rankopt.errors import DataError, OptionError
from rankopt.measures import compare, evaluate, holm


def runs(n, effect=0.05, seed=0):
    random = np.random.default_rng(seed)
    a = random.random(n)
    return a + effect + random.normal(scale=0.1, size=n), a


def test_the_t_test_and_its_interval_are_those_of_scipy():
    a, b = runs(40)
    found, theirs = compare(a, b, confidence=0.9), stats.ttest_rel(a, b)
    assert found.p_t == pytest.approx(theirs.pvalue)
    assert found.interval == pytest.approx(tuple(theirs.confidence_interval(0.9)))
    assert found.difference == pytest.approx(found.mean_a - found.mean_b)


def test_few_queries_try_every_sign_vector():
    a, b = runs(8)
    d = a - b
    flipped = [abs(np.dot(signs, d)) >= abs(d.sum()) - 1e-12 for signs in product((-1, 1), repeat=8)]
    found = compare(a, b)
    assert found.exact
    assert found.n_permutations == 256
    assert found.p_randomization == np.mean(flipped)


def test_many_queries_sample_sign_vectors_and_repeat_themselves():
    a, b = runs(14)
    exact, sampled = compare(a, b, resamples=2**14), compare(a, b, resamples=10_000)
    assert exact.exact
    assert not sampled.exact
    assert sampled.p_randomization == pytest.approx(exact.p_randomization, abs=0.02)
    assert sampled == compare(a, b, resamples=10_000)
    assert sampled.p_randomization != compare(a, b, resamples=10_000, random_state=1).p_randomization


def test_a_run_is_not_better_than_itself():
    a, _ = runs(30)
    found = compare(a, a)
    assert (found.difference, found.p_t, found.p_randomization, found.interval) == (0, 1, 1, (0, 0))
    assert (found.wins, found.ties, found.losses) == (0, 30, 0)


def test_swapping_the_runs_changes_the_sign_only():
    a, b = runs(25)
    one, two = compare(a, b), compare(b, a)
    assert one.difference == -two.difference
    assert one.p_t == pytest.approx(two.p_t)
    assert one.p_randomization == two.p_randomization
    assert (one.wins, one.losses) == (two.losses, two.wins)


def test_under_no_difference_small_p_values_are_as_rare_as_they_say():
    random = np.random.default_rng(0)
    found = [compare(random.random(12), random.random(12), resamples=5000) for _ in range(200)]
    for p in ([c.p_randomization for c in found], [c.p_t for c in found]):
        assert stats.kstest(p, "uniform").pvalue > 0.01
    missed = np.mean([not c.interval[0] <= 0 <= c.interval[1] for c in found])
    assert missed < 0.1


def test_evaluations_are_paired_by_query():
    relevance, offsets = np.array([1.0, 0, 1, 0, 0, 1]), [0, 2, 4, 6]
    a = evaluate(relevance, np.array([2.0, 1, 1, 2, 2, 1]), "RR", offsets=offsets, query_ids="xyz")
    order = [4, 5, 0, 1, 2, 3]
    b = evaluate(relevance[order], np.array([1.0, 1, 1, 2, 2, 1]), "RR", offsets=offsets, query_ids="zxy")
    found = compare(a, b)
    assert found.measure == "RR"
    assert (found.wins, found.ties, found.losses) == (1, 0, 2)
    assert str(found).splitlines()[0] == "RR on 3 queries: 0.6667 against 0.7500"
    assert "1 better, 0 equal, 2 worse" in str(found)


def test_queries_left_out_of_both_means_are_left_out():
    relevance, scores, offsets = np.array([1.0, 0, 1, 0, 0, 0]), np.arange(6.0), [0, 2, 4, 6]
    a = evaluate(relevance, scores, ["RR", "P@1"], offsets=offsets)
    b = evaluate(relevance, -scores, ["RR", "P@1"], offsets=offsets)
    assert compare(a, b, measure="RR").queries == 2
    assert compare(a, b, measure="P@1").queries == 3


def test_runs_that_cannot_be_paired_are_refused():
    relevance, scores, offsets = np.array([1.0, 0, 1, 0]), np.arange(4.0), [0, 2, 4]
    a = evaluate(relevance, scores, "RR", offsets=offsets)
    other = evaluate(relevance, scores, "RR", offsets=offsets, query_ids="xy")
    letor = evaluate(relevance, scores, "RR", offsets=offsets, convention="letor2")
    for run, message in ((other, "4 queries are in one only"), (letor, "letor2"), (np.ones(2), "one kind")):
        with pytest.raises(DataError, match=message):
            compare(a, run)
    with pytest.raises(DataError, match="Runs of 2 and 3 queries"):
        compare([1.0, 2], [1.0, 2, 3])
    with pytest.raises(DataError, match="spread needs two"):
        compare([1.0], [2.0])
    with pytest.raises(DataError, match="counts in one run only"):
        compare([1.0, np.nan, 2], [1.0, 2, 3])
    with pytest.raises(OptionError, match="resamples=0"):
        compare([1.0, 2], [1.0, 3], resamples=0)


def test_holm_steps_down():
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []
