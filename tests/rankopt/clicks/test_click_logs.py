"""Logs of clicks: counts of records in any order, and what simulated users click."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from rankopt.clicks import Cascade, ClickLog, PositionBased, TrustBias, simulate_clicks
from rankopt.data import Queries
from rankopt.errors import DataError


@pytest.fixture
def frame():
    return pd.DataFrame({
        "qid": ["a"] * 4 + ["b"] * 2 + ["a"] * 2, "docid": [1, 2, 2, 1, 1, 2, 1, 3],
        "position": [1, 2, 1, 2, 1, 2, 1, 2], "click": [1, 0, 1, 1, 0, 0, 0, 1], "session": [0, 0, 1, 1, 0, 0, 2, 2],
        "x": [0.1, 0.2, 0.2, 0.1, 0.5, 0.6, 0.1, 0.3],
    })  # fmt: skip


def counts(log):
    return {
        (log.queries.qid[row], log.queries.document_ids[row], position): (shown, clicked)
        for row, position, shown, clicked in zip(
            log.rows.tolist(), log.positions.tolist(), log.shown.tolist(), log.clicked.tolist(), strict=True
        )
    }


def test_records_are_counted_in_any_order(frame, rng, tmp_path):
    log = ClickLog.from_frame(frame, session="session")
    assert counts(log) == {
        ("a", 1, 1): (2, 1), ("a", 1, 2): (1, 1), ("a", 2, 1): (1, 1), ("a", 2, 2): (1, 0), ("a", 3, 2): (1, 1),
        ("b", 1, 1): (1, 0), ("b", 2, 2): (1, 0),
    }  # fmt: skip
    assert dict(zip(log.queries.query_ids, log.sessions.tolist(), strict=True)) == {"a": 3, "b": 1}
    assert log.queries.feature_names == ("x",)
    assert str(log) == "ClickLog(4 sessions of 2 queries, 8 impressions, 4 clicks, positions 1 to 2)"
    shuffled = frame.sample(frac=1, random_state=1)
    for other in (
        ClickLog.from_frame(shuffled, session="session"),
        ClickLog.from_frame(shuffled),
        ClickLog.from_frame(shuffled, features=["x"]),  # sessions by position
    ):
        assert counts(other) == counts(log)
        assert dict(zip(other.queries.query_ids, other.sessions.tolist(), strict=True)) == {"a": 3, "b": 1}
    frame.to_csv(tmp_path / "log.csv", index=False)
    assert counts(ClickLog.read(tmp_path / "log.csv", session="session")) == counts(log)
    known = Queries.from_arrays(np.arange(5.0)[:, None], qid=list("bbaaa"), documents=[1, 2, 3, 2, 1])
    arrays = {name: frame[column] for name, column in (
        ("query", "qid"), ("document", "docid"), ("position", "position"), ("click", "click")
    )}  # fmt: skip
    assert counts(ClickLog.from_arrays(known, **arrays)) == counts(log)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"position": 0}, "position is 0 in row 0; positions are 1, 2"),
        ({"position": 1_000_001}, "position is 1e\\+06 in row 0; positions are 1, 2, ..., 1000000"),
        ({"position": "top"}, "position is 'top' in row 0"),
        ({"position": 1.5}, "position is 1.5 in row 0"),
        ({"click": 2}, "click is 2 in row 0; it is 1 if the document was clicked, else 0"),
        ({"x": 7.0}, "other features than row 0, which is the same document 1 of query 'a'"),
        ({"session": 1}, "a position that its session has already"),
        ({"position": 2, "docid": 3, "x": 0.3}, "a position that its session has already"),
        ({"qid": None}, "no value in row 0"),
    ],
)
def test_records_that_cannot_be(frame, changes, text):
    for name, value in changes.items():
        frame[name] = frame[name].astype(
            object if value is None or isinstance(value, str) else type(value) if name != "qid" else object
        )
        frame.loc[0, name] = value
    with pytest.raises(DataError, match=text):
        ClickLog.from_frame(frame, session="session")


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_documents_may_have_missing_features(frame, kind):
    X, columns = np.array([[np.nan, one] for one in frame["x"]]), ["qid", "docid", "position", "click"]
    ids = dict(zip(["query", "document", "position", "click"], (frame[one] for one in columns), strict=True))
    assert counts(ClickLog.from_arrays(kind(X), **ids)) == counts(ClickLog.from_frame(frame, session="session"))
    X[0, 0] = 3.0
    with pytest.raises(DataError, match="other features than row 0"):
        ClickLog.from_arrays(kind(X), **ids)
    with pytest.raises(DataError, match="got none"):
        ClickLog.from_frame(frame[:0])


def test_without_sessions_a_document_is_in_as_many_as_it_has_impressions(frame):
    log = ClickLog.from_frame(frame[frame.docid == 1], features=["x"])
    assert dict(zip(log.queries.query_ids, log.sessions.tolist(), strict=True)) == {"a": 3, "b": 1}


def test_columns_that_are_missing(frame):
    with pytest.raises(DataError, match=r"no column 'click'; it has .*, x; pass click="):
        ClickLog.from_frame(frame.drop(columns="click"))
    for role in ("position", "session", "features", "attributes"):
        with pytest.raises(DataError, match=f"no column 'rank'; it has .*; pass {role}="):
            ClickLog.from_frame(frame, **{role: "rank"})
    with pytest.raises(DataError, match="no column of document ids"):
        ClickLog.from_frame(frame.drop(columns="docid"))
    with pytest.raises(DataError, match="'site' of the log has no numbers"):
        ClickLog.from_frame(frame.assign(site="x"), session="session")
    known = Queries.from_arrays([[1.0]], qid=["a"], documents=[1])
    with pytest.raises(DataError, match="no document 9 of query 'a'"):
        ClickLog.from_arrays(known, query=["a"], document=[9], position=[1], click=[0])


@pytest.mark.parametrize("role", ["query", "document", "session"])
def test_ids_that_are_missing_are_named(frame, role):
    names = {"query": "qid", "document": "docid", "session": "session", "position": "position", "click": "click"}
    columns = {name: frame[column].astype(object) for name, column in names.items()}
    columns[role][3] = None
    with pytest.raises(DataError, match=f"The {role} of row 3 is None"):
        ClickLog.from_arrays(frame[["x"]], **columns)
    with pytest.raises(DataError, match=f"{role} has 2 entries but there are 8 rows"):
        ClickLog.from_arrays(frame[["x"]], **{**columns, role: [1, 2]})


def test_attributes_of_documents_may_be_text(frame):
    marked = frame.assign(site=["s", "t", "t", "s", "u", "v", "s", "t"], price=[1, np.nan, np.nan, 1, 2, 3, 1, 2])
    log = ClickLog.from_frame(marked, attributes=["site", "price"])
    assert log.queries.feature_names == ("x",)
    wanted = {("a", 1): "s", ("a", 2): "t", ("a", 3): "t", ("b", 1): "u", ("b", 2): "v"}
    names = zip(log.queries.qid.tolist(), log.queries.document_ids, strict=True)
    assert dict(zip(names, log.queries.attributes["site"].tolist(), strict=True)) == wanted
    assert_array_equal(log.queries.attributes["price"], [1, np.nan, 2, 3, 2])
    one = ClickLog.from_frame(marked, attributes="site", features="x")
    assert_array_equal(one.queries.attributes["site"], log.queries.attributes["site"])
    assert one.queries.feature_names == ("x",)
    with pytest.raises(DataError, match=r"'site' of the log has no numbers.*attributes=\['site'\]"):
        ClickLog.from_frame(marked)
    with pytest.raises(DataError, match="row 6 has other 'site' than row 0, which is the same document 1 of query 'a'"):
        ClickLog.from_frame(marked.assign(site=list("sttsuvtt")), attributes=["site"], features=["x"])
    ids = {"query": ["a"], "document": [1], "position": [1], "click": [0]}
    assert ClickLog.from_arrays([[1.0]], **ids, attributes={"site": ["s"]}).queries.attributes["site"] == ["s"]
    with pytest.raises(DataError, match="attributes cannot be passed with Queries"):
        ClickLog.from_arrays(log.queries, **ids, attributes={"site": ["s"]})


def test_grades_are_no_features_unless_they_are_named(frame):
    graded = frame.assign(relevance=frame.docid)
    assert ClickLog.from_frame(graded).queries.feature_names == ("x",)
    assert ClickLog.from_frame(graded, features=["relevance"]).queries.feature_names == ("relevance",)


def test_counts_that_no_sessions_have():
    queries = Queries.from_arrays(np.eye(3), qid=["a", "b", "a"], documents=[1, 2, 3])
    with pytest.raises(DataError, match="query 'a' has 5 sessions but 6 impressions at position 2"):
        ClickLog(queries, [0, 2], [2, 2], [3, 3], [0, 0], [5, 5])
    with pytest.raises(DataError, match="positions 1 to 1000000"):
        ClickLog(queries, [0], [2 * 10**8], [3], [0], [5, 5])
    log = ClickLog(queries, [0, 2], [1, 2], [3, 3], [0, 0], [5, 5])
    for P in ([[0.6, 0], [0, 0], [0.4, 0]], [[0.6], [0], [0.4]]):
        with pytest.raises(DataError, match="row 2 has 3 impressions at position 2, where its placement is 0"):
            replace(log, placements=P)
    with pytest.raises(DataError, match="shows no document of query 'b'"):
        log.select([1])
    assert len(log.select([1, 0]).queries) == 2


def expected(model, r):
    """(K,) probability of a click at each position, of all patterns of wanting and stopping."""
    if isinstance(model, Cascade):
        rates = np.zeros(r.size)
        for wanted in product((0, 1), repeat=r.size):
            for ends in product((0, 1), repeat=r.size):
                p = np.prod(np.where(wanted, r, 1 - r)) * np.prod(np.where(ends, model.stop, 1 - model.stop))
                for at in range(r.size):
                    rates[at] += p * wanted[at]
                    if wanted[at] and ends[at]:
                        break
        return rates
    bias = model.position_bias(r.size)
    return bias.propensities * r + bias.trust


@pytest.mark.parametrize("model", [PositionBased(), TrustBias(), Cascade(), Cascade(0.4)], ids=repr)
def test_simulated_users_click_as_their_model_says(model):
    queries = Queries.from_arrays(np.zeros((4, 1)), [3, 0, 1, 2], qid=[0] * 4, documents=range(4))
    log = simulate_clicks(queries, [4.0, 3.0, 2.0, 1.0], model, sessions=40_000, positions=3)
    r = 0.1 + 0.9 * np.array([7, 0, 1]) / 7
    assert_array_equal(log.rows[np.argsort(log.positions)], [0, 1, 2])
    rates = (log.clicked / log.shown)[np.argsort(log.positions)]
    wanted = expected(model, r)
    assert (np.abs(rates - wanted) < 4.5 * np.sqrt(np.maximum(wanted * (1 - wanted), 0) / 40_000) + 1e-9).all()
    assert_array_equal(log.placements, [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]])


def test_lists_with_a_temperature_are_drawn_by_plackett_and_luce():
    queries = Queries.from_arrays(np.zeros((3, 1)), [1, 0, 1], qid=[0] * 3, documents=range(3))
    scores, temperature = np.array([0.5, 0.0, -0.3]), 0.7
    log = simulate_clicks(queries, scores, sessions=40_000, positions=2, temperature=temperature)
    u = np.exp(scores / temperature)
    first = u / u.sum()
    second = [sum(first[i] * u[j] / (u.sum() - u[i]) for i in range(3) if i != j) for j in range(3)]
    shares = np.zeros((3, 2))
    shares[log.rows, log.positions - 1] = log.shown / 40_000
    assert_allclose(shares, np.column_stack([first, second]), atol=0.012)
    assert_allclose(log.placements, np.column_stack([first, second]), atol=1e-12)


def test_a_simulation_does_not_depend_on_the_order_of_rows(rng):
    X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), rng.integers(0, 6, 60)
    order = rng.permutation(60)
    for documents in (None, np.arange(60)):
        logs = []
        for rows in (np.arange(60), order):
            own = None if documents is None else documents[rows].tolist()
            queries = Queries.from_arrays(X[rows], y[rows], qid=qid[rows], documents=own)
            logs.append(simulate_clicks(queries, X[rows, 0], sessions=500, temperature=0.3))
        tables = []
        for log, rows in zip(logs, (np.arange(60), order), strict=True):
            table = np.zeros((60, 10, 2), dtype=int)
            table[rows[log.rows], log.positions - 1] = np.column_stack([log.shown, log.clicked])
            tables.append(table)
        assert_array_equal(*tables)
