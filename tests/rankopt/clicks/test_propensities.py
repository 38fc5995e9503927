"""Propensities: recovered from documents that change position, with intervals, and unknown where nothing tells."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import t

from rankopt.clicks import ClickLog, PositionBased, PositionBias, simulate_clicks
from rankopt.data import Queries, load_sample
from rankopt.errors import DataError, OptionError

TRUE = np.array([1.0, 0.6, 0.45, 0.3])


def made(shown, rates, e=TRUE, scale=10**6):
    """The log of expected counts: shown (documents, positions) sessions, relevance `rates` of the documents."""
    rows, positions = np.nonzero(shown)
    counts = shown[rows, positions] * scale
    clicked = np.rint(counts * e[positions] * rates[rows]).astype(int)
    n = len(shown)
    queries = Queries.from_arrays(np.eye(n), qid=np.arange(n), documents=range(n))
    return ClickLog(queries, rows, positions + 1, counts, clicked, np.bincount(rows, counts, n).astype(int))


def test_expected_counts_give_the_propensities(rng):
    for _ in range(20):
        shown = rng.integers(0, 4, size=(8, 4))
        shown[np.arange(4), np.arange(4)] += 1
        shown[np.arange(3), np.arange(1, 4)] += 1  # links all positions
        shown[4:] += shown[4:].sum(axis=1, keepdims=True) == 0
        found = PositionBias.from_swaps(made(shown, rng.uniform(0.1, 0.9, 8)), resamples=0)
        assert_allclose(found.propensities, TRUE, rtol=1e-4)


def test_the_estimate_solves_its_equations(rng):
    queries = load_sample("digits").train
    log = simulate_clicks(queries, [rng.normal(size=queries.n_documents) for _ in range(5)], sessions=5000)
    e = PositionBias.from_swaps(log, resamples=0).propensities
    clicks, shown = np.zeros((queries.n_documents, 10)), np.zeros((queries.n_documents, 10))
    clicks[log.rows, log.positions - 1], shown[log.rows, log.positions - 1] = log.clicked, log.shown
    share = np.divide(shown * e, (shown @ e)[:, None], out=np.zeros_like(shown), where=(shown @ e)[:, None] > 0)
    assert_allclose(clicks.sum(axis=0), share.T @ clicks.sum(axis=1), rtol=1e-6)


def test_positions_that_nothing_links_are_not_identified():
    shown = np.array([[1, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 1]])
    log = made(shown, np.array([0.5, 0.3, 0.4]))
    found = PositionBias.from_swaps(log, resamples=20)
    assert_allclose(found.propensities, [1.0, 0.6, np.nan, np.nan], rtol=1e-4)
    assert np.isnan(found.low[2:]).all()
    assert "not identified: position 3, 4" in str(found)
    with pytest.raises(DataError, match="propensity of position 3 is not known"):
        log.gains(found)


def test_positions_that_are_compared_in_one_direction_are_not_identified():
    queries = Queries.from_arrays(np.eye(2), qid=[0, 1], documents=[0, 1])
    log = ClickLog(queries, [0, 0, 1, 1], [1, 2, 2, 3], [9] * 4, [3, 0, 2, 2], [18, 18])  # likelihood grows as e_2 -> 0
    found = PositionBias.from_swaps(log, resamples=3)
    assert_allclose(found.propensities, [1.0, np.nan, np.nan])
    with pytest.raises(DataError, match="no clicks at position 1"):
        PositionBias.from_em(ClickLog(queries, [0, 0], [1, 2], [9, 9], [0, 3], [18, 0]))


def test_missing_features_change_no_estimate_that_ignores_them(rng):
    e, r, X = np.array([1.0, 0.5]), rng.random(40), rng.normal(size=(40, 2))
    queries = Queries.from_arrays(X, qid=np.arange(40) // 4, documents=np.arange(40))
    rows, at = np.repeat(np.arange(40), 2), np.tile([1, 2], 40)
    clicked = rng.binomial(50, np.outer(r, e).ravel())
    found = [
        PositionBias.from_em(ClickLog(one, rows, at, [50] * 80, clicked, [200] * 10), resamples=0).propensities
        for one in (queries, queries.replace(features=np.column_stack([X, np.full(40, np.nan)])))
    ]
    assert_allclose(*found, atol=1e-3)


def test_never_clicked_positions_have_propensity_zero_and_no_clicks_are_an_error():
    shown = np.array([[1, 1], [1, 1]])
    log = made(shown, np.array([0.5, 0.3]), e=np.array([1.0, 0.0]))
    found = PositionBias.from_swaps(log, resamples=5)
    assert_allclose(found.propensities, [1.0, 0.0])
    most = -np.log(0.025) / (log.clicked.sum())  # each document is shown as often at 2: with e = 1 as many clicks
    assert_allclose([found.low[1], found.high[1]], [0.0, most])
    with pytest.raises(DataError, match="no clicks"):
        PositionBias.from_swaps(made(shown, np.zeros(2)))


def errors(estimate, sessions, seeds):
    found = []
    for seed in range(seeds):
        queries = load_sample("digits").train
        random = np.random.default_rng(seed)
        rankers = [queries.features[:, 0] + random.normal(size=queries.n_documents) for _ in range(3)]
        log = simulate_clicks(queries, rankers, sessions=sessions, positions=5, random_state=seed)
        found.append(np.abs(estimate(log) - 1 / np.arange(1, 6)).mean())
    return np.mean(found)


def test_more_sessions_less_error():
    few, many = (
        errors(lambda log: PositionBias.from_swaps(log, resamples=0).propensities, n, 4) for n in (2000, 50_000)
    )
    assert many < few / 3
    assert many < 0.02


def test_expectation_maximization_recovers_them_where_its_model_is_right(rng):
    X = rng.normal(size=(4000, 2))
    r = 1 / (1 + np.exp(-(X @ [1.0, -0.5] - 1.0)))
    queries = Queries.from_arrays(X, qid=np.repeat(np.arange(400), 10), documents=range(4000))
    rows, positions = np.arange(4000), np.tile(np.arange(1, 11), 400)
    e = PositionBased().position_bias(10).propensities
    clicked = rng.binomial(200, e[positions - 1] * r)
    log = ClickLog(queries, rows, positions, np.full(4000, 200), clicked, np.full(400, 200))
    found = PositionBias.from_em(log, resamples=3)
    assert_allclose(found.propensities, e, atol=0.04)
    assert (found.low <= found.high).all()
    swapped = PositionBias.from_swaps(log, resamples=0)  # one ranker: nothing is identified
    assert np.isnan(swapped.propensities[1:]).all()


def test_given_propensities_and_a_picture():
    given = PositionBias([1.0, 0.5])
    assert len(given) == 2
    assert str(PositionBias([1.0, 0.5], trust=[0.1, 0.0])) == "PositionBias(1, 0.5 by given; trust 0.1, 0)"
    axes = PositionBias.from_power(1.0, 3).plot(given.plot())
    assert axes.get_xlabel() == "position"
    assert axes.get_xticks().tolist() == [1, 2, 3]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["given", "1 / p^1"]
    assert_allclose(PositionBias.from_power(0.5, 4).propensities, np.arange(1, 5) ** -0.5)
    for wrong in ([], [0.0, 1.0], [1.0, -0.1], [1.0, np.inf], [1.0, 1e-101], [[1.0]], ["a"]):
        with pytest.raises(OptionError):
            PositionBias(wrong)
    with pytest.raises(OptionError, match="low must be 2 numbers"):
        PositionBias([1.0, 0.5], low=np.zeros(3))
    for wrong in ([np.nan, 0.0], [-1.0, 0.0]):
        with pytest.raises(OptionError, match="trust must be finite"):
            PositionBias([1.0, 0.5], trust=wrong)


def test_intervals_do_not_depend_on_the_order_of_records(shuffled):
    for estimate, resamples in ((PositionBias.from_swaps, 20), (PositionBias.from_em, 3)):
        one, two = (estimate(log, resamples=resamples) for log in shuffled[:2])
        for name in ("propensities", "low", "high"):
            assert_array_equal(getattr(one, name), getattr(two, name))
        assert (one.low < one.propensities)[1:].all()


def test_intervals_of_samples_that_do_not_differ_are_not_known(shuffled):
    log = shuffled[0]
    for found in (
        PositionBias.from_swaps(log.select([0, 1]), resamples=1),
        PositionBias.from_swaps(log.select([0]), resamples=20),
        PositionBias.from_em(log.select([0]), resamples=3),
    ):
        assert np.isnan([found.low, found.high]).all()
    alike = made(np.ones((6, 4), dtype=int), np.full(6, 0.5))  # queries have equal counts
    found = PositionBias.from_swaps(alike, resamples=20)
    assert_allclose(found.propensities, TRUE, rtol=1e-4)
    assert np.isnan([found.low, found.high])[:, 1:].all()


def test_intervals_are_of_students_t(shuffled):
    log, m = shuffled[0], 12
    found = PositionBias.from_swaps(log, resamples=30, random_state=4)
    random, draws = np.random.default_rng(4), []
    by_name = np.array(sorted(range(m), key=lambda q: str(log.queries.query_ids[q])))
    for _ in range(30):
        times = np.zeros(m, dtype=int)
        times[by_name] = np.bincount(random.integers(0, m, m), minlength=m)
        of_record = times[log.queries.query_of(log.rows)]
        some = replace(log, shown=log.shown * of_record, clicked=log.clicked * of_record, sessions=log.sessions * times)
        draws.append(PositionBias.from_swaps(some, resamples=0).propensities)
    half = t.ppf(0.975, m - 1) * np.log(draws).std(axis=0, ddof=1)
    assert_allclose(found.low, found.propensities * np.exp(-half), rtol=1e-6)
    assert_allclose(found.high, found.propensities * np.exp(half), rtol=1e-6)


@pytest.mark.study
def test_intervals_cover():
    queries, hits = load_sample("digits").train, []
    for seed in range(60):
        random = np.random.default_rng(seed)
        rankers = [queries.features[:, 0] + random.normal(size=queries.n_documents) for _ in range(3)]
        log = simulate_clicks(queries, rankers, sessions=5000, positions=5, random_state=seed)
        found = PositionBias.from_swaps(log, resamples=100, random_state=seed)
        true = 1 / np.arange(1, 6)
        hits.append((found.low <= true) & (true <= found.high))
    assert 0.92 <= np.mean(np.array(hits)[:, 1:]) <= 1.0
