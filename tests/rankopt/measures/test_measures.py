"""Measures against their definitions, written here as one reads them, over all orders of small queries."""

import subprocess
import sys
from itertools import permutations
from math import log2
from pkgutil import iter_modules

import numpy as np
import pytest

import rankopt.measures
from rankopt.errors import MeasureError
from rankopt.measures import MEASURES, Measure, PositionalMeasure, evaluate, parse
from rankopt.measures.tied_ranking import Pool, ranked


def dcg(grades, k, gain=lambda y: 2**y - 1, discount=lambda i: 1 / log2(i + 1)):
    return sum(discount(i) * gain(y) for i, y in enumerate(grades[:k], 1))


def ndcg(grades, k, **forms):
    best = dcg(sorted(grades, reverse=True), k, **forms)
    return dcg(grades, k, **forms) / best if best else None


def precision(grades, k, rel=1):
    return sum(y >= rel for y in grades[:k]) / k


def reciprocal_rank(grades, k):
    ranks = [i for i, y in enumerate(grades, 1) if y > 0]
    return None if not ranks else 1 / ranks[0] if ranks[0] <= k else 0


def average_precision(grades, k):
    ranks = [i for i, y in enumerate(grades, 1) if y > 0]
    return sum(precision(grades, i) for i in ranks if i <= k) / len(ranks) if ranks else None


def recall(grades, k, rel=1):
    count = sum(y >= rel for y in grades)
    return sum(y >= rel for y in grades[:k]) / count if count else None


def r_precision(grades, rel=1):
    count = sum(y >= rel for y in grades)
    return precision(grades, count, rel) if count else None


def rank_biased_precision(grades, k, p, rel=1):
    return (1 - p) * sum(p ** (i - 1) for i, y in enumerate(grades[:k], 1) if y >= rel)


def success(grades, k, rel=1):
    return float(any(y >= rel for y in grades[:k])) if any(y >= rel for y in grades) else None


def expected_reciprocal_rank(grades, k, top):
    total, reached = 0.0, 1.0
    for i, y in enumerate(grades[:k], 1):
        stop = (2**y - 1) / 2**top
        total, reached = total + reached * stop / i, reached * (1 - stop)
    return total


def utility(grades, k, alpha, d):
    return sum(2 ** ((1 - i) / (alpha - 1)) * max(y - d, 0) for i, y in enumerate(grades[:k], 1))


def normalized_utility(grades, k, alpha, d):
    best = utility(sorted(grades, reverse=True), k, alpha, d)
    return utility(grades, k, alpha, d) / best if best else None


def area_under_curve(grades):
    pairs = [grades.index(x) < grades.index(y) for x in grades for y in grades if x.relevant and not y.relevant]
    return sum(pairs) / len(pairs) if pairs else None


class Document(int):
    """A grade that is told from others of its value."""

    relevant = property(lambda self: int(self) > 0)
    __eq__ = object.__eq__
    __hash__ = object.__hash__


def letor(i):
    return 1 / log2(max(i, 2))


def identity(y):
    return y


def halves(n):
    return 0.5 ** np.arange(n)


def squares(relevance):
    return relevance**2


DEFINITIONS = {
    "WTA": lambda y: y[0] > 0,
    "RR": lambda y: reciprocal_rank(y, 99),
    "RR@2": lambda y: reciprocal_rank(y, 2),
    "DCG": lambda y: dcg(y, 99),
    "DCG(gain='linear')@3": lambda y: dcg(y, 3, gain=identity),
    "nDCG": lambda y: ndcg(y, 99),
    "nDCG@2": lambda y: ndcg(y, 2),
    "nDCG@9": lambda y: ndcg(y, 9),
    "nDCG(discount='letor', gain='linear')@4": lambda y: ndcg(y, 4, gain=identity, discount=letor),
    "nDCG(gain=(0, 1, 5))@3": lambda y: ndcg(y, 3, gain=(0, 1, 5).__getitem__),
    "P@1": lambda y: precision(y, 1),
    "P@3": lambda y: precision(y, 3),
    "P(rel=2)@8": lambda y: precision(y, 8, rel=2),
    "ERU(alpha=5, d=0)": lambda y: utility(y, 99, 5, 0),
    "ERU(alpha=1.5, d=1)@2": lambda y: utility(y, 2, 1.5, 1),
    "NERU(alpha=3, d=0.5)": lambda y: normalized_utility(y, 99, 3, 0.5),
    "NERU(alpha=3, d=1)@2": lambda y: normalized_utility(y, 2, 3, 1),
    "AUC": lambda y: area_under_curve(list(y)),
    "Custom(discount=(3, 2, 2, 0.5), gain=(0, 0, 7))": lambda y: sum(
        a * (0, 0, 7)[grade] for a, grade in zip((3, 2, 2, 0.5), y, strict=False)
    ),
    "AP": lambda y: average_precision(y, 99),
    "AP@3": lambda y: average_precision(y, 3),
    "ERR": lambda y: expected_reciprocal_rank(y, 99, 4),
    "ERR(max_grade=2)@3": lambda y: expected_reciprocal_rank(y, 3, 2),
    "MeanNDCG": lambda y: None if not max(y) else sum(ndcg(y, k) for k in range(1, len(y) + 1)) / len(y),
    "R@1": lambda y: recall(y, 1),
    "R@3": lambda y: recall(y, 3),
    "R(rel=2)@2": lambda y: recall(y, 2, rel=2),
    "Rprec": r_precision,
    "Rprec(rel=2)": lambda y: r_precision(y, rel=2),
    "RBP(p=0.8)": lambda y: rank_biased_precision(y, 99, 0.8),
    "RBP(rel=2, p=0.5)@3": lambda y: rank_biased_precision(y, 3, 0.5, rel=2),
    "Success@1": lambda y: success(y, 1),
    "Success@3": lambda y: success(y, 3),
    "Success(rel=2)@2": lambda y: success(y, 2, rel=2),
    "MeanNDCG(gain='linear')": lambda y: (
        None if not max(y) else sum(ndcg(y, k, gain=identity) for k in range(1, len(y) + 1)) / len(y)
    ),
}

QUERIES = [
    (0,),
    (2,),
    (1, 0),
    (0, 0),
    (1, 1),
    (2, 1, 0),
    (0, 1, 2, 1, 0),
    (2, 0, 2, 0, 0),
    (0, 0, 0, 1, 0, 0),
    (2, 2, 1, 1, 1, 0),
]
RELEVANCE = np.array([float(y) for query in QUERIES for y in query])
OFFSETS = np.cumsum([0, *map(len, QUERIES)])


def defined(definition, grades):
    value = definition(tuple(map(Document, grades)))
    return 0.0 if value is None else float(value)


@pytest.mark.parametrize("text", DEFINITIONS)
def test_every_order_has_the_value_of_the_definition(text):
    measure = parse(text)
    for query in QUERIES:
        orders = set(permutations(query))
        relevance = np.array([y for order in orders for y in order], dtype=float)
        offsets = np.arange(len(orders) + 1) * len(query)
        ranking = ranked(relevance, -np.arange(len(relevance), dtype=float), offsets)
        values = [defined(DEFINITIONS[text], order) for order in orders]
        assert measure.values(ranking) == pytest.approx(values, abs=1e-13)


@pytest.mark.every(3)
@pytest.mark.parametrize("text", DEFINITIONS)
@pytest.mark.parametrize("seed", range(4))
def test_ties_count_the_mean_over_their_orders(text, seed):
    random = np.random.default_rng(seed)
    scores = random.integers(0, 1 + seed, size=len(RELEVANCE)).astype(float)
    found = parse(text).values(ranked(RELEVANCE, scores, OFFSETS))
    broken = {how: parse(text).values(ranked(RELEVANCE, scores, OFFSETS).break_ties(how)) for how in ("best", "worst")}
    for q, query in enumerate(QUERIES):
        s = scores[OFFSETS[q] : OFFSETS[q + 1]]
        orders = [order for order in permutations(range(len(query))) if all(np.diff(s[list(order)]) <= 0)]
        values = [defined(DEFINITIONS[text], [query[j] for j in order]) for order in orders]
        assert found[q] == pytest.approx(np.mean(values), abs=1e-13)
        assert broken["best"][q] == pytest.approx(max(values), abs=1e-13)
        assert broken["worst"][q] == pytest.approx(min(values), abs=1e-13)


@pytest.mark.parametrize("text", DEFINITIONS)
def test_a_measure_knows_where_it_is_not_defined(text):
    wanted = [DEFINITIONS[text](tuple(map(Document, query))) is not None for query in QUERIES]
    assert parse(text).defined(RELEVANCE, OFFSETS).tolist() == wanted


@pytest.mark.parametrize("text", [text for text in DEFINITIONS if parse(text).trainable])
def test_a_positional_measure_is_an_inner_product(text):
    measure = parse(text)
    assert isinstance(measure, PositionalMeasure)
    one = text.startswith(("RR", "Success"))  # an inner product with at most one relevant document
    queries = [query for query in QUERIES if not one or sum(y >= (measure.rel or 1) for y in query) <= 1]
    relevance = np.array([float(y) for query in queries for y in query])
    offsets = np.cumsum([0, *map(len, queries)])
    gain, constant = measure.gain(relevance, offsets), measure.constant(relevance, offsets)
    best = measure.best(relevance, offsets)
    for q, query in enumerate(queries):
        n, b = len(query), gain[offsets[q] : offsets[q + 1]]
        a = measure.discount(n)
        assert a.shape == (n,)
        assert np.all(np.diff(a) <= 0)
        assert measure.discounts(offsets)[offsets[q] : offsets[q + 1]].tolist() == a.tolist()
        values = [a @ b[list(order)] - constant[q] for order in permutations(range(n))]
        orders = [[query[j] for j in order] for order in permutations(range(n))]
        assert values == pytest.approx([defined(DEFINITIONS[text], order) for order in orders], abs=1e-13)
        assert best[q] == pytest.approx(max(values), abs=1e-13)
        if not measure.defined(relevance, offsets)[q]:
            assert not np.any(b)


def test_functions_give_the_values_of_their_tables():
    own = rankopt.measures.nDCG(discount=halves, gain=squares) @ 3
    table = parse("nDCG(discount=(1, 0.5, 0.25, 0.125), gain=(0, 1, 4))@3")
    ranking = ranked(RELEVANCE, -np.arange(len(RELEVANCE), dtype=float), OFFSETS)
    assert own.values(ranking).tolist() == table.values(ranking).tolist()


@pytest.mark.parametrize("text", ["RR", "Success@2"])
def test_the_best_of_what_asks_for_the_first_relevant_document_is_one(text):
    assert parse(text).best(RELEVANCE, OFFSETS).tolist() == [float(max(query) > 0) for query in QUERIES]


@pytest.mark.parametrize("text", ["RR", "Success@2"])
def test_no_gains_are_made_of_several_relevant_documents(text):
    with pytest.raises(MeasureError, match=r"query 1 \(from 0\) has 2 relevant"):
        parse(text).gain(np.array([1.0, 0.0, 1.0, 2.0]), np.array([0, 2, 4]))


@pytest.mark.parametrize(
    ("text", "grades", "message"),
    [
        ("nDCG@5", [1, -1], "grade -1"),
        ("nDCG@5", [2000, 0], "overflows"),
        ("nDCG(gain='linear')@5", [1.7e308, 1.7e308], "too large"),
        ("nDCG(gain=(0, 1))", [2, 0], "no entry for the grade 2"),
        ("nDCG(gain=(0, 1))", [0.5, 0], "no entry for the grade 0.5"),
        ("P", [1, 0], "P@10"),
        ("ERR", [5, 0], "max_grade=5"),
        ("Custom", [1, 0], "Custom has no"),
        ("R", [1, 0], "R@100"),
        ("Success", [1, 0], "Success@5"),
    ],
)
def test_grades_without_a_value_are_refused_by_name(text, grades, message):
    with pytest.raises(MeasureError, match=message):
        parse(text).values(ranked(np.array(grades, dtype=float), np.zeros(2), np.array([0, 2])))


@pytest.mark.parametrize(
    "function",
    [lambda relevance: -relevance, lambda relevance: relevance[:1], lambda relevance: np.full(3, np.nan)],
)
def test_a_gain_function_must_grow_with_the_grade(function):
    with pytest.raises(MeasureError, match="gain function"):
        rankopt.measures.DCG(gain=function).gain(np.array([0.0, 1.0, 2.0]), np.array([0, 3]))


def test_a_discount_function_must_not_increase():
    with pytest.raises(MeasureError, match="increases"):
        rankopt.measures.DCG(discount=lambda n: np.arange(n)).discount(3)


def test_no_documents_and_empty_queries_have_no_value_and_no_error():
    for text in DEFINITIONS:
        measure = parse(text)
        for offsets in ([0], [0, 0, 0]):
            ranking = ranked(np.zeros(0), np.zeros(0), np.array(offsets))
            assert measure.values(ranking).tolist() == [0.0] * (len(offsets) - 1)
        ranking = ranked(np.array([1.0]), np.zeros(1), np.array([0, 0, 1, 1]))
        assert measure.values(ranking)[[0, 2]].tolist() == [0.0, 0.0]


def test_the_table_names_every_measure_of_the_folder():
    found = {
        f"{module.name}:{name}"
        for module in iter_modules(rankopt.measures.__path__, "rankopt.measures.")
        for name, value in vars(sys.modules.get(module.name) or __import__(module.name, fromlist=["x"])).items()
        if isinstance(value, Measure)
    }
    assert found == set(MEASURES.values())
    for name in MEASURES:
        assert getattr(rankopt.measures, name).name == name
        assert name in dir(rankopt.measures)


def test_importing_measures_loads_no_heavy_package():
    code = (
        "import sys; from rankopt.measures import evaluate, nDCG; evaluate([1, 0], [0.5, 0.2], [nDCG, 'ERR', 'RR']);"
        "print(sorted({'scipy', 'sklearn', 'pandas', 'cvxpy', 'matplotlib'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


# Measures that ir-measures computes, against their definitions over all orders; runs of part of a pool.


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


DEFINITIONS_POOLED = {
    "Judged@2": lambda marks, *_: judged(marks, 2),
    "Judged": lambda marks, *_: judged(marks, 99),
    "Bpref": bpref,
    "infAP": inferred,
}

QUERIES_POOLED = [
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
    return DEFINITIONS_POOLED[text](found, good, len(known) - good) or 0.0


@pytest.mark.parametrize("text", DEFINITIONS_POOLED)
def test_every_order_has_the_value_of_the_definition_pooled(text):
    pytest.importorskip("ir_measures")
    for found, lost in QUERIES_POOLED:
        orders = sorted(set(permutations(found)), key=repr)
        grades, offsets, pool = arrays([(order, lost) for order in orders])
        ranking = ranked(grades, -np.arange(len(grades), dtype=float), offsets, pool=pool)
        assert parse(text).values(ranking) == pytest.approx([value(text, order, lost) for order in orders], abs=1e-12)


def test_ties_are_not_averaged_and_judgments_are_needed():
    pytest.importorskip("ir_measures")
    grades, offsets, pool = arrays(QUERIES_POOLED)
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
    grades, offsets, pool = arrays(QUERIES_POOLED)
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=len(grades))
    values = measure.values(ranked(grades, scores, offsets, pool=pool))
    hidden = np.where(pool.retrieved, scores, rng.choice([-np.inf, 0, 99], size=len(grades)))
    assert measure.values(ranked(grades, hidden, offsets, pool=pool)).tolist() == values.tolist()
    everything = Pool(pool.judged, pool.pooled, np.ones(len(grades), dtype=bool))
    last = ranked(grades, np.where(pool.retrieved, scores, -np.inf), offsets, pool=everything)
    whole = measure.values(last)
    for q, (found, lost) in enumerate(QUERIES_POOLED):
        good = any(isinstance(mark, int) and mark > 0 for mark in lost)
        if not good:  # what is behind the run has nothing to add
            assert values[q] == pytest.approx(whole[q], abs=1e-15)
        else:
            assert values[q] <= whole[q] + 1e-15
        if not found:
            assert values[q] == 0
