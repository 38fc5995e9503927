"""Histories are tables of columns, certificates have the parts of their kind; both refuse everything else."""

import pickle
from copy import deepcopy
from dataclasses import fields, replace

import numpy as np
import pytest

from formulations.registry import load
from rankopt.optimize.certificate import LAYOUTS, ROWS, Certificate, History, Stop

STEPS = [load(place) for place in ROWS.values()]


def drawn(kind, count):
    rng = np.random.default_rng(0)
    whole = {field.name: field.type == "int" for field in fields(kind)}
    return [
        kind(**{name: int(rng.integers(100)) if whole[name] else float(rng.normal()) for name in whole})
        for _ in range(count)
    ]


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("count", [0, 1, 5])
def test_rows_come_back_as_they_were_given(kind, count):
    rows = drawn(kind, count)
    table = History.from_rows(kind, rows)
    assert [*table] == [table[i] for i in range(len(table))] == rows
    assert [*table.columns] == [field.name for field in fields(kind)]
    for field in fields(kind):
        assert getattr(table, field.name).dtype == (np.int64 if field.type == "int" else np.float64)
        assert getattr(table, field.name).tolist() == [getattr(row, field.name) for row in rows]
    assert [*pickle.loads(pickle.dumps(table))] == [*deepcopy(table)] == rows


@pytest.mark.parametrize("kind", STEPS)
def test_what_is_no_table_is_refused(kind):
    table = History.from_rows(kind, drawn(kind, 3))
    for name, column in table.columns.items():
        for wrong in (column[:2], column[:, None], column.tolist(), None):
            with pytest.raises(ValueError, match="is no column of numbers, one a step"):
                replace(table, columns={**table.columns, name: wrong})
        with pytest.raises(ValueError, match=f"{name} of a history has another type"):
            replace(table, columns={**table.columns, name: column.astype(np.float32)})
        for columns in ({**table.columns, "more": column}, {name: column}, [column], None):
            with pytest.raises(ValueError, match="a history"):
                replace(table, columns=columns)
    with pytest.raises(ValueError, match="is unknown"):
        replace(table, row="os:system")
    with pytest.raises(AttributeError, match="has no column 'nothing'"):
        _ = table.nothing


@pytest.mark.parametrize("kind", STEPS)
def test_every_history_is_drawn(kind):
    figures = pytest.importorskip("matplotlib.figure")
    axes = History.from_rows(kind, drawn(kind, 3)).plot(figures.Figure().subplots())
    assert axes.lines
    assert axes.get_ylabel()


VALUES = {
    "users": 1.0, "items": 0.5, "singular": np.nan, "proof": "", "convex": True, "sigma": 0.5, "gradient": 0.1,
    "measure": 0.7, "start": 0.6, "epsilon": 0.0, "features": np.arange(2), "vectors": np.zeros((1, 4)), "trees": 3,
}  # fmt: skip

WRONG = {
    "users": np.nan, "items": "a", "singular": None, "proof": "trust me", "convex": 1, "sigma": np.inf,
    "gradient": -0.1, "measure": True, "start": np.nan, "epsilon": -1e-9, "features": np.array([1, 1]),
    "vectors": np.full((1, 4), np.nan), "trees": 3.0,
}  # fmt: skip


def certificate(kind, layout):
    bound = -np.inf if kind == "blocks" or "gradient" in layout else 2.0
    return Certificate(kind, 2.0, bound, Stop.GAP, parts={name: VALUES[name] for name in layout})


@pytest.mark.parametrize(("kind", "layout"), [(kind, layout) for kind in LAYOUTS for layout in LAYOUTS[kind]], ids=str)
def test_a_certificate_has_the_parts_of_its_kind(kind, layout):
    proved = certificate(kind, layout)
    assert proved == deepcopy(proved) == pickle.loads(pickle.dumps(proved))
    assert hash(proved) == hash(deepcopy(proved))
    assert proved != replace(proved, value=1.0)
    assert str(proved).startswith(f"{kind}: ")
    for name in layout:
        assert getattr(proved, name) is VALUES[name]
        with pytest.raises(ValueError, match=f"invalid part: {name}"):
            replace(proved, parts={**proved.parts, name: WRONG[name]})
        with pytest.raises(ValueError, match="has the parts"):
            replace(proved, parts={one: part for one, part in proved.parts.items() if one != name})
    for wrong in ({"more": 1}, {**proved.parts, "more": 1}):
        with pytest.raises(ValueError, match="has the parts"):
            replace(proved, parts=wrong)
    for changes in ({"kind": "best"}, {"at_start": 1}, {"parts": None}):
        with pytest.raises(ValueError, match="invalid kind or at_start"):
            replace(proved, **changes)
    for changes in (
        {"value": np.nan},
        {"value": "a"},
        {"value": True},
        {"bound": np.nan},
        {"bound": np.inf},
        {"bound": None},
    ):
        with pytest.raises(ValueError, match="a certificate"):
            replace(proved, **changes)
    with pytest.raises(ValueError, match="over"):
        replace(proved, stop="over")
