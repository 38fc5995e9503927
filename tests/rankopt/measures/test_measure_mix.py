"""Mixes of measures as values: they print, parse, compare, and are worth the sum of their parts."""

import pickle

import numpy as np
import pytest

from rankopt.errors import MeasureError
from rankopt.measures import AP, RR, MeasureMix, evaluate, nDCG, parse

TEXTS = (
    "AP + nDCG@10 + RR",
    "0.5 AP + 2 RR@10",
    "AP[pairwise] + RR[first-relevant]",
    "(AP + P(rel=2)@5)(slack='shared')",
    "nDCG(gain=(0.0, 1.0, 2.0))@5 + 1e+20 ERR(max_grade=2)",
    "AP[pairwise]",
    "2 AP",
    "1 AP",
    "(AP)(slack='shared')",
)


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_printed_is_read_again(text):
    mix = parse(text)
    assert isinstance(mix, MeasureMix)
    assert repr(mix) == text
    assert parse(repr(mix)) == mix == pickle.loads(pickle.dumps(mix))
    assert hash(parse(repr(mix))) == hash(mix)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("map+MRR", "AP + RR"),
        (".5 AP + 2*RR", "0.5 AP + 2 RR"),
        (" 1e+2 AP+RR ", "100 AP + RR"),
        ('(AP + RR)(slack="shared")', "(AP + RR)(slack='shared')"),
        ("(AP + RR)(slack='separate')", "AP + RR"),
        ("(AP + RR)(slack=shared)", "(AP + RR)(slack='shared')"),
        ("(AP + RR)", "AP + RR"),
        ("2 (AP + 3 RR)", "2 AP + 6 RR"),
        ("0.5 (AP + RR[first-relevant])[pairwise] + ERR", "0.5 AP[pairwise] + 0.5 RR[first-relevant] + ERR"),
        ("(AP + (RR + 2 (ERR + WTA)))(slack='shared')", "(AP + RR + 2 ERR + 2 WTA)(slack='shared')"),
    ],
)
def test_other_ways_of_writing(text, meant):
    assert repr(parse(text)) == meant


def test_a_mapping_and_a_list_say_the_same():
    mix = MeasureMix({"AP": 1, "nDCG@10": 1, RR: 2})
    assert mix == parse("AP + nDCG@10 + 2 RR") == MeasureMix([AP, nDCG @ 10, MeasureMix({RR: 2})])
    assert mix(slack="shared") == MeasureMix({"AP": 1, "nDCG@10": 1, "RR": 2}, slack="shared")
    assert parse("AP") == AP
    assert MeasureMix({"AP + RR": 2}) == MeasureMix({"(AP + RR)": 2}) == parse("2 (AP + RR)")
    shared = MeasureMix({"AP": 1}, slack="shared")
    assert MeasureMix([shared, "RR"], slack="shared") == parse("(AP + RR)(slack='shared')")


@pytest.mark.parametrize("mix", [MeasureMix({"AP": 1}), MeasureMix(["AP"], slack="shared"), MeasureMix({"AP[x]": 1})])
def test_a_mix_of_one_part_is_read_again_as_a_mix(mix):
    assert parse(repr(mix)) == mix


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("AP +", r"sum 'AP \+' cannot be read because its summand 2 is empty"),
        ("AP + + RR", r"sum 'AP \+ \+ RR' .* summand 2 is empty"),
        ("AP + 1", r"sum 'AP \+ 1' cannot be read because '1' names no measure"),
        ("(AP + )", "summand 2 is empty"),
        ("(AP + RR)(slack='shared') + ERR", "slack is shared by the full sum"),
        ("(" * 5000 + "AP + RR" + ")" * 5000, "cannot be read"),
        ("1e200 AP + RR", "AP cannot weigh 1e\\+200"),
        ("1e-101 AP + RR", "AP cannot weigh 1e-101"),
        ("1e60 (1e60 AP + RR)", "AP cannot weigh 1e\\+120"),
        ("+", "cannot be read"),
        ("AP - RR", "cannot be read"),
        ("-1 AP + RR", "cannot be read"),
        ("0 AP + RR", "cannot weigh 0"),
        ("1e999 AP + RR", "cannot weigh inf"),
        ("1.2.3 AP + RR", "is no weight of AP"),
        ("AP + PA", "no measure 'PA'"),
        ("(AP + RR)@10", "cannot be read"),
        ("(AP + RR)(slack='both')", "slack='both'"),
        ("+".join(["AP"] * 101), "101 parts"),
    ],
)
def test_what_is_no_mix_is_refused(text, said):
    with pytest.raises(MeasureError, match=said):
        parse(text)


def test_what_cannot_be_a_part_is_refused():
    for parts in ("AP", AP, 3, [], {"AP": -1}, {"AP": "much"}, {3: 1}, {"AP": True}):
        with pytest.raises(MeasureError):
            MeasureMix(parts)
    with pytest.raises(MeasureError, match="shared slack applies to the full sum"):
        MeasureMix(["(AP + RR)(slack='shared')", "ERR"])
    for weight in (True, "much", -1, None):
        with pytest.raises(MeasureError, match="cannot weigh"):
            MeasureMix({"AP + RR": weight})
    with pytest.raises(MeasureError, match="option slack alone"):
        parse("AP + RR")(rel=2)
    with pytest.raises(MeasureError, match="no cutoff for the sum"):
        parse("AP + RR") @ 10


@pytest.mark.parametrize("convention", ["default", "letor4", "trec"])
def test_a_mix_is_worth_the_sum_of_its_parts(convention):
    rng = np.random.default_rng(0)
    offsets = np.array([0, 4, 12, 20, 23])
    grades, scores = rng.integers(0, 3, 23).astype(float), rng.integers(0, 4, 23).astype(float)
    grades[:4] = 0.0  # nothing relevant
    keys = {"convention": convention, "offsets": offsets, "document_ids": [f"d{i}" for i in range(23)]}
    whole = evaluate(grades, scores, "AP + 2 nDCG@5 + P@5", **keys).values[0]
    parts = evaluate(grades, scores, ["AP", "nDCG@5", "P@5"], **keys).values
    np.testing.assert_allclose(whole, parts[0] + 2 * parts[1] + parts[2], rtol=0, atol=1e-12)
