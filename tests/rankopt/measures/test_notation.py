"""Measures print, parse, compare, hash and copy as values."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankopt.errors import MeasureError
from rankopt.measures import (
    AP,
    AUC,
    DCG,
    ERR,
    ERU,
    MEASURES,
    NERU,
    RBP,
    RR,
    WTA,
    Custom,
    MeanNDCG,
    Measure,
    MeasureMix,
    P,
    R,
    Rprec,
    Success,
    evaluate,
    nDCG,
    parse,
)

VALUES = {
    "nDCG": nDCG,
    "nDCG@10": nDCG @ 10,
    "nDCG(gain='linear')@10": nDCG(gain="linear") @ 10,
    "nDCG(discount='letor', gain='exp2')@3": nDCG(discount="letor", gain="exp2") @ 3,
    "nDCG(gain=(0.0, 1.0, 3.5))": nDCG(gain=[0, 1, 3.5]),
    "DCG@5": DCG @ 5,
    "P@5": P @ 5,
    "P(rel=2)@5": P(rel=2) @ 5,
    "WTA": WTA,
    "RR": RR,
    "RR(rel=0.5)@3": RR(rel=0.5) @ 3,
    "ERU(alpha=5, d=3)": ERU,
    "ERU(alpha=2.5, d=0)@4": ERU(alpha=2.5, d=0) @ 4,
    "NERU(alpha=5, d=2)": NERU(d=2),
    "AUC": AUC,
    "AP@100": AP @ 100,
    "ERR(max_grade=2)@20": ERR(max_grade=2) @ 20,
    "MeanNDCG": MeanNDCG,
    "R@100": R @ 100,
    "Rprec": Rprec,
    "RBP(p=0.8)": RBP,
    "RBP(rel=2, p=0.5)@3": RBP(rel=2, p=0.5) @ 3,
    "Success@5": Success @ 5,
    "Custom(discount=(2.0, 1.0), gain=(0.0, 1.0))@1": Custom(discount=np.array([2, 1]), gain=(0, 1)) @ 1,
}


@pytest.mark.parametrize("text", VALUES)
def test_a_measure_prints_as_it_is_written_and_parses_back(text):
    assert repr(VALUES[text]) == str(VALUES[text]) == text
    assert parse(text) == VALUES[text]
    assert hash(parse(text)) == hash(VALUES[text])
    assert parse(VALUES[text]) is VALUES[text]


@pytest.mark.parametrize("text", VALUES)
def test_a_measure_survives_copies(text):
    for twin in (copy.deepcopy(VALUES[text]), pickle.loads(pickle.dumps(VALUES[text]))):
        assert twin == VALUES[text]


class Theirs:
    """A measure as ir_measures makes it."""

    def __init__(self, name, **params):
        self.NAME, self.params = name, params


def test_objects_of_ir_measures_are_read_without_it():
    assert parse(Theirs("nDCG", dcg="exp-log2", cutoff=10)) == nDCG(gain="exp2") @ 10
    assert parse(Theirs("AP", rel=2)) == AP(rel=2)
    with pytest.raises(MeasureError, match="There is no measure 'XYZ'"):
        parse(Theirs("XYZ"))


def test_objects_of_ir_measures_mean_what_they_print():
    ir_measures = pytest.importorskip("ir_measures")
    words = ["nDCG@10", "AP(rel=2)@100", "RBP(rel=1,p=0.5)", "Success@5", "Judged@10", "Bpref", "infAP", "Rprec", "RR",
             "R(rel=2)@50", "P@5", "nDCG(gains={2:5})@3"]  # fmt: skip
    for measure in map(ir_measures.parse_measure, words):
        assert parse(measure) == parse(str(measure)), measure


@pytest.mark.parametrize("text", ["Bpref", "Bpref(rel=2)", "infAP", "Judged@10", "SetP", "P(judged_only=True)@5"])
def test_measures_of_ir_measures_are_values_too(text):
    ir_measures = pytest.importorskip("ir_measures")
    measure = parse(text)
    assert repr(measure) == measure.name == text
    assert measure == parse(ir_measures.parse_measure(text)) == pickle.loads(pickle.dumps(measure))
    assert parse("bpref") == parse("BPref") == parse("Bpref")
    assert parse("Judged") @ 3 == parse("Judged@3")
    assert parse("Bpref")(rel=2) == parse("Bpref(rel=2)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Bpref@3", "unsupported params found"),
        ("Bpref(depth=3)", "unsupported params found"),
        ("alpha_nDCG@5", "needs subtopics"),
    ],
)
def test_what_ir_measures_cannot_compute_is_refused(text, message):
    pytest.importorskip("ir_measures")
    with pytest.raises(MeasureError, match=message):
        parse(text)


def test_measures_of_ir_measures_name_the_package_that_is_missing(monkeypatch):
    monkeypatch.setattr("rankopt.measures.notation.find_spec", lambda name: None)
    for text in ("Bpref", "P(judged_only=True)@5"):
        with pytest.raises(MeasureError, match=r"pip install 'rankopt\[trec\]'"):
            parse(text)


def test_different_measures_differ():
    assert len(set(VALUES.values())) == len(VALUES)
    assert nDCG @ 10 != nDCG @ 5
    assert nDCG @ 10 != DCG @ 10
    assert ERU != NERU


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("ndcg@10", nDCG @ 10),
        ("NDCG @ 10", nDCG @ 10),
        (' nDCG( gain = "linear" )@10', nDCG(gain="linear") @ 10),
        ("map", AP),
        ("MAP@5", AP @ 5),
        ("mrr", RR),
        ("prec@5", P @ 5),
        ("Precision@5", P @ 5),
        ("meanndcg", MeanNDCG),
        ("mean_ndcg", MeanNDCG),
        ("ERU", ERU),
        ("eru(d=3.0, alpha=5)", ERU),
        ("nDCG()", nDCG),
        ("ndcg", nDCG),
        ("ndcg_cut_10", nDCG @ 10),
        ("ndcg_cut.10", nDCG @ 10),
        ("map_cut_10", AP @ 10),
        ("recip_rank", RR),
        ("P_5", P @ 5),
        ("p.5", P @ 5),
        ("recall_100", R @ 100),
        ("success_5", Success @ 5),
        ("rprec", Rprec),
        ("RBP(p=0.8,rel=1)", RBP(rel=1)),
        ("AP(rel=2)@100", AP(rel=2) @ 100),
        ("nDCG(dcg='exp-log2')@10", nDCG(gain="exp2") @ 10),
        ("nDCG(gains={2:5})@10", nDCG(gain=(0, 1, 5)) @ 10),
        ("P(judged_only=False)@5", P @ 5),
    ],
)
def test_other_spellings_are_read(text, meant):
    assert parse(text) == meant


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nDGC@10", r"did you mean nDCG\? There are nDCG, DCG, P"),
        ("gm_map", "There is no measure 'gm_map'; there are nDCG"),
        ("11pt_avg", "There is no measure '11pt_avg'; there are nDCG"),
        ("2 pt_avg", "There is no measure 'pt_avg'; there are nDCG"),
        ("AP + 2XP@3", "There is no measure '2XP'"),
        ("2nDCG(gain='square')", "There is no gain 'square'"),
        ("α-ERR", "cannot be read"),
        ("P_0", "integer k >= 1"),
        ("P_", "There is no measure 'P_'"),
        ("RBP(p=1)", "persistence between 0 and 1"),
        ("RBP(p='x')", "persistence between 0 and 1"),
        ("RBP(rel='x')", "cannot have rel='x'"),
        ("Rprec@3", "takes no cutoff"),
        ("nDCG(dcg='cubic')@5", "cannot have dcg='cubic'"),
        ("nDCG(gains={-1: 3})@5", "use integer grades"),
        ("nDCG@0", "integer k >= 1"),
        ("nDCG@-3", "integer k >= 1"),
        ("nDCG@2.5", "integer k >= 1"),
        ("nDCG@True", "integer k >= 1"),
        ("WTA@3", "takes no cutoff"),
        ("AUC@3", "takes no cutoff"),
        ("nDCG(gains='linear')", "no option 'gains'; its options are discount, gain"),
        ("nDCG(gain='square')", "There is no gain 'square'; give exp2, linear"),
        ("nDCG(gain=square)@5", "There is no gain 'square'"),
        ("nDCG(gain=-1)", "A gain cannot be"),
        ("nDCG(gain=())", "A gain cannot be"),
        ("nDCG(gain=(1, 0))", "cannot decrease with the grade"),
        ("DCG(discount=(1, 2))", "cannot increase with the position"),
        ("DCG(discount=((1, 2), (3, 4)))", "A discount cannot be"),
        ("DCG(discount=(1, 'x'))", "A discount cannot be"),
        ("DCG(discount=(2, -1))", "A discount cannot be"),
        ("P(rel='x')@5", "cannot have rel='x'"),
        ("ERU(alpha=1)", "alpha > 1"),
        ("ERU(d=None)", "alpha > 1"),
        ("ERR(max_grade=0)", "highest grade"),
        ("nDCG(10)", "cannot be read"),
        ("nDCG(**{})", "no option"),
        ("nDCG(gain=open('x'))", "cannot be read"),
        ("nDCG(gain=(0,) * 10**9)", "cannot be read"),
        ("nDCG(gain={[]: 1})", "cannot be read"),
        ("nDCG@" + "-" * 3000 + "1", "cannot be read"),
        ("nDCG@k", "cannot be read"),
        ("nDCG[10]", "cannot be read"),
        ("a.nDCG", "cannot be read"),
        ("nDCG@10@5", "cannot be read"),
        ("", "cannot be read"),
        ("nDCG\0", "cannot be read"),
        ("(" * 5000 + ")" * 5000, "cannot be read"),
        (10, "cannot be 10"),
        (None, "cannot be None"),
    ],
)
def test_what_is_no_measure_is_refused_with_the_cure(text, message):
    with pytest.raises(MeasureError, match=message):
        parse(text)
    assert parse("nDCG(gain=linear)@5") == parse("nDCG(gain='linear')@5")  # a shell removed the quotes


@pytest.mark.parametrize("name", MEASURES)
@given(k=st.integers(1, 10**9))
@settings(derandomize=True, max_examples=20, deadline=None)
def test_cutoffs_print_and_parse(name, k):
    measure = parse(name)
    assert isinstance(measure, Measure)
    if measure.takes_cutoff:
        assert parse(repr(measure @ k)) == measure @ k
        assert (measure @ k)(**{}).cutoff == k


def test_a_measure_of_functions_prints_their_names_and_does_not_parse():
    def halves(n):
        return 0.5 ** np.arange(n)

    own = Custom(discount=halves, gain=(0, 1))
    assert "halves" in repr(own)
    assert own == Custom(discount=halves, gain=(0, 1))
    with pytest.raises(MeasureError, match="cannot be read"):
        parse(repr(own))


def test_measures_are_frozen():
    with pytest.raises(AttributeError):
        (nDCG @ 10).cutoff = 5


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("RBP(0.8)", "RBP(p=0.8)"),
        ("ERU(3)", "ERU(alpha=5, d=3)"),
        ("ERU(5, 2)", "ERU(alpha=5, d=2)"),
        ("2 AP(2)@10 + RR", "AP(rel=2)"),
        ("nDCG('exp2')@10", "nDCG(discount=..., gain=...)"),
    ],
)
def test_options_without_names_are_told_theirs(text, written):
    with pytest.raises(MeasureError) as caught:
        parse(text)
    assert str(caught.value).endswith(f"its options have no names; write {written}.")


# Mixes of measures as values: they print, parse, compare, and are worth the sum of their parts.


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
