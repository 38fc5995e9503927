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
    P,
    R,
    Rprec,
    Success,
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
        ("nDCG(gain='square')", "There is no gain 'square'; name one of exp2, linear"),
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
