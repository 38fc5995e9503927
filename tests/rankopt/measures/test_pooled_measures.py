"""Measures that ir-measures computes, against their definitions over all orders; runs of part of a pool."""

from itertools import permutations

import numpy as np
import pytest

from rankopt.errors import MeasureError
from rankopt.measures import MEASURES, evaluate, parse
from rankopt.measures.tied_ranking import Pool, ranked

EPSILON = 1e-5


def judged(marks, k):
    """marks: of each retrieved document its grade, "pool" where it stands in the qrels unjudged, None outside."""
    return sum(mark is not None for mark in marks[:k]) / min(k, len(marks)) if marks else 0.0


def bpref(marks, good, bad):
    found = 0.0
    for place, mark in enumerate(marks):
        if mark in (1, 2):
            above = sum(other == 0 and isinstance(other, int) for other in marks[:place])
            found += 1 - (min(above, good) / min(good, bad) if bad else 0)
    return found / good if good else None


def inferred(marks, good, bad):
    found = 0.0
    for place, mark in enumerate(marks):
        if mark in (1, 2):
            r = sum(other in (1, 2) for other in marks[:place])
            n = sum(other == 0 for other in marks[:place])
            u = sum(other == "pool" for other in marks[:place])
            found += (1 + (r + n + u) * (r + EPSILON) / (r + n + 2 * EPSILON)) / (place + 1)
    return found / good if good else None


DEFINITIONS = {
    "Judged@2": lambda marks, *_: judged(marks, 2),
    "Judged": lambda marks, *_: judged(marks, 99),
    "Bpref": bpref,
    "infAP": inferred,
}

QUERIES = [
    ((1,), ()),
    ((0, None), (1,)),
    ((1, 0, "pool"), (2, 0)),
    ((2, 1, 0, 0, None), ()),
    ((1, 1, "pool", 0, None), (1, 0, 0, "pool")),
    ((0, "pool", None), (0,)),
    ((), (1, 0)),
    ((1, 1, 1, 0), ()),
    ((1, 0, 0, 0, 0), (2,)),
]
"""Marks of the documents that a run retrieved, and of those of the qrels that it did not."""


def arrays(queries):
    """Grades, offsets and pool of rows that stand as they are listed."""
    marks = [mark for found, lost in queries for mark in (*found, *lost)]
    retrieved = [i < len(found) for found, lost in queries for i in range(len(found) + len(lost))]
    pool = Pool(
        np.array([isinstance(mark, int) for mark in marks]), np.array([mark is not None for mark in marks]),
        np.array(retrieved),
    )  # fmt: skip
    grades = np.array([float(mark) if isinstance(mark, int) else 0.0 for mark in marks])
    return grades, np.cumsum([0, *(len(found) + len(lost) for found, lost in queries)]), pool


def value(text, found, lost):
    known = [mark for mark in (*found, *lost) if isinstance(mark, int)]
    good = sum(mark > 0 for mark in known)
    return DEFINITIONS[text](found, good, len(known) - good) or 0.0


@pytest.mark.parametrize("text", DEFINITIONS)
def test_every_order_has_the_value_of_the_definition(text):
    pytest.importorskip("ir_measures")
    for found, lost in QUERIES:
        orders = sorted(set(permutations(found)), key=repr)
        grades, offsets, pool = arrays([(order, lost) for order in orders])
        ranking = ranked(grades, -np.arange(len(grades), dtype=float), offsets, pool=pool)
        assert parse(text).values(ranking) == pytest.approx([value(text, order, lost) for order in orders], abs=1e-12)


def test_ties_are_not_averaged_and_judgments_are_needed():
    pytest.importorskip("ir_measures")
    grades, offsets, pool = arrays(QUERIES)
    with pytest.raises(MeasureError, match="use convention='trec'"):
        parse("Bpref").values(ranked(grades, np.zeros(len(grades)), offsets, pool=pool))
    with pytest.raises(MeasureError, match=r"needs integer grades; got 1\.5"):
        parse("Bpref").values(ranked(grades + 0.5, -np.arange(float(len(grades))), offsets, pool=pool))
    with pytest.raises(MeasureError, match="needs the judgments of a run"):
        evaluate([1, 0], [0.5, 0.25], "Bpref")


WHOLE = [name for name in MEASURES if name not in ("AUC", "Custom")]


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("seed", range(3))
def test_what_was_not_retrieved_adds_nothing(name, seed):
    """Whatever the order of what is not retrieved, and whether a run says it with scores of -inf."""
    measure = parse(name) @ 3 if name in ("P", "R", "Success") else parse(name)
    grades, offsets, pool = arrays(QUERIES)
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=len(grades))
    values = measure.values(ranked(grades, scores, offsets, pool=pool))
    hidden = np.where(pool.retrieved, scores, rng.choice([-np.inf, 0, 99], size=len(grades)))
    assert measure.values(ranked(grades, hidden, offsets, pool=pool)).tolist() == values.tolist()
    everything = Pool(pool.judged, pool.pooled, np.ones(len(grades), dtype=bool))
    last = ranked(grades, np.where(pool.retrieved, scores, -np.inf), offsets, pool=everything)
    whole = measure.values(last)
    for q, (found, lost) in enumerate(QUERIES):
        good = any(isinstance(mark, int) and mark > 0 for mark in lost)
        if not good:  # what is behind the run has nothing to add
            assert values[q] == pytest.approx(whole[q], abs=1e-15)
        else:
            assert values[q] <= whole[q] + 1e-15
        if not found:
            assert values[q] == 0
