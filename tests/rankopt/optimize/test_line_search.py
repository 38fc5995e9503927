"""The search along lines over data: same bits from every engine, predicted and measured values, tables of all kinds."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from rankopt.data import Queries
from rankopt.engines import ENGINES, get_engine
from rankopt.errors import DataError, OptionError
from rankopt.losses.pairwise import PairwiseHinge
from rankopt.measures import evaluate
from rankopt.optimize import LineSearch
from rankopt.risk import risk
from rankopt.risk.along_line import LineEvaluation
from rankopt.risk.risk import shards_of_grades
from rankopt.sweeps import sweep

RNG = np.random.default_rng(0)
TABLE = np.round(RNG.normal(size=(240, 5)), 1)
TABLE[:, 4] *= RNG.random(240) < 0.1
GRADES = np.digitize(TABLE @ [1.0, -1.0, 0.5, 0.0, 1.0] + 0.7 * RNG.normal(size=240), [0.3, 1.2]).astype(float)
QID = np.repeat(np.arange(24), 10)
DIRECTIONS = [0, 4, RNG.normal(size=5), 2]


def queries(table=TABLE):
    return Queries.from_arrays(table, GRADES, qid=QID)


@pytest.fixture
def many_shards(monkeypatch):
    monkeypatch.setattr(risk, "SHARD_ROWS", 40)
    monkeypatch.setattr(sweep, "PAIRS", 0)


@pytest.mark.every(3)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.study) if name == "dask" else name for name in ENGINES if name != "serial"],
)
def test_every_engine_gives_the_same_bits(name, many_shards):
    engine = get_engine(name, 2)
    w = RNG.normal(size=5)
    try:
        for measure in ("nDCG@5", "AP", "MeanNDCG"):
            found = [LineSearch.from_measure(measure, queries(), engine=one) for one in ("serial", engine)]
            assert len(found[0].shards) == 6
            for point in ("window", "middle", "plackett-luce"):
                one, other = (search.along_all(w, DIRECTIONS, point) for search in found)
                assert one == other
            assert found[0].value(w) == found[1].value(w)
    finally:
        if hasattr(engine, "close"):
            engine.close()


@pytest.mark.every(3)
@pytest.mark.parametrize("measure", ["nDCG@5", "AP", "ERR", "RR", "AUC", "P@3", "nDCG"])
@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("start", ["zeros", "random"])
def test_what_is_predicted_is_measured_on_every_accepted_step(measure, small, start, monkeypatch):
    monkeypatch.setattr(sweep, "PAIRS", 2**14 if small else 0)
    search = LineSearch.from_measure(measure, queries())
    w = np.zeros(5) if start == "zeros" else np.random.default_rng(3).normal(size=5)
    value, accepted = search.value(w), 0
    for direction in [*range(5), *np.random.default_rng(4).normal(size=(5, 5))]:
        found = search.along(w, direction, "middle")
        assert found.value >= value - 1e-12 or not np.any(w)
        if found.value > value + 1e-12:
            w = w + found.t * (np.eye(5)[direction] if isinstance(direction, int) else direction)
            value, accepted = search.value(w), accepted + 1
            np.testing.assert_allclose(value, found.value, rtol=0, atol=1e-12)
    assert accepted > 1
    np.testing.assert_allclose(value, evaluate(queries(), TABLE @ w, measure).mean(), atol=1e-12)


def test_tables_of_all_kinds_have_the_same_lines(many_shards):
    w = np.random.default_rng(1).normal(size=5)
    single = TABLE.astype(np.float32)
    for one, other in (
        (TABLE, csr_array(TABLE)),
        (single, csr_array(single)),
        (single, single.astype(np.float64)),
        (TABLE, np.asfortranarray(TABLE)),
    ):
        found = [LineSearch.from_measure("nDCG@5", queries(table)).along_all(w, DIRECTIONS) for table in (one, other)]
        for line, same in zip(*found, strict=True):
            np.testing.assert_allclose((line.t, line.value), (same.t, same.value), rtol=1e-9, atol=1e-12)


def test_queries_have_weights_and_those_without_a_value_are_left_out():
    weights = RNG.random(24)
    grades = np.where(QID < 3, 0.0, GRADES)
    data = Queries.from_arrays(TABLE, grades, qid=QID)
    search = LineSearch.from_measure("nDCG@5", data, weights)
    w = RNG.normal(size=5)
    assert search.value(w) == pytest.approx(evaluate(data, TABLE @ w, "nDCG@5").mean(weights=weights))
    steps = search.steps(w, 1)
    assert search.along(w, 1, "middle").value == pytest.approx(steps.values.max(), abs=1e-12)
    for t, value in zip(steps.middles[::7], steps.values[::7], strict=True):
        moved = w + t * np.eye(5)[1]
        assert search.value(moved) == pytest.approx(value, abs=1e-12)


def test_points_lie_in_their_intervals():
    search = LineSearch.from_measure("nDCG@5", queries())
    w = np.random.default_rng(5).normal(size=5)
    for middle, likely in zip(
        search.along_all(w, point="middle"), search.along_all(w, point="plackett-luce"), strict=True
    ):
        assert middle.low < likely.t < middle.high
        assert likely.value == middle.value
    for narrow in search.along_all(w, window=1e-9):
        assert narrow.low < narrow.t < narrow.high


def test_what_cannot_be_asked_is_refused():
    search = LineSearch.from_measure("nDCG@5", queries())
    with pytest.raises(OptionError, match="window, middle, plackett-luce"):
        search.along(np.zeros(5), 0, "best")
    with pytest.raises(OptionError, match="window = 0"):
        search.along(np.zeros(5), 0, window=0)
    with pytest.raises(OptionError, match="direction 5 is no feature"):
        search.along(np.zeros(5), 5)
    with pytest.raises(DataError, match="5 finite numbers"):
        search.along(np.zeros(4), 0)
    with pytest.raises(DataError, match="query_weight must be 24"):
        LineSearch.from_measure("nDCG@5", queries(), [1.0])
    with pytest.raises(DataError, match="give nDCG@5 a value"):
        LineSearch.from_measure("nDCG@5", Queries.from_arrays(TABLE, 0 * GRADES, qid=QID))
    of_loss = shards_of_grades(search_arrangement(), PairwiseHinge)
    with pytest.raises(OptionError, match="PairwiseHinge cannot be swept"):
        LineEvaluation(np.zeros(5), np.arange(2))(of_loss[0])
    with pytest.raises(OptionError, match="has no planes"):
        search.shards[0].loss.at(np.zeros(240))


def search_arrangement():
    from rankopt.data.canonical_order import canonical

    return canonical(queries(), np.ones(24))


def test_weights_that_are_changed_in_place_are_other_weights():
    search, w = LineSearch.from_measure("nDCG@10", queries()), np.zeros(5)
    for feature in range(5):
        w[feature] += search.along(w, feature, point="middle").t
        assert search.value(w) == LineSearch.from_measure("nDCG@10", queries()).value(w)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_feature_of_one_value_a_query_has_no_deviation_whatever_rounding_says(sparse, many_shards):
    flat = np.exp(RNG.normal(size=24))[QID] * 1e3
    table = np.column_stack([TABLE, flat, np.zeros(240), np.where(QID == 5, TABLE[:, 0], flat)])
    search = LineSearch.from_measure("nDCG@5", queries(csr_array(table) if sparse else table), engine="serial")
    assert np.any(np.add.reduceat(flat, np.arange(0, 240, 10)) / 10 != flat[::10])
    assert np.array_equal(search.deviations[5:7], [0.0, 0.0])
    assert search.deviations[7] > 0
    np.testing.assert_array_equal(search.deviations[:5], LineSearch.from_measure("nDCG@5", queries()).deviations)
