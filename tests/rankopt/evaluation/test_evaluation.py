"""`evaluate`: conventions, ties, invariance, agreement with scikit-learn and trec_eval."""

import csv
import re
import warnings
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

from rankopt.data import Queries, concatenate, read_svmlight
from rankopt.errors import DataError, LargeGainWarning, MeasureError, OptionError
from rankopt.evaluation.comparison import compare, holm, leader
from rankopt.measures import (
    AP,
    AUC,
    ERR,
    NERU,
    RR,
    WTA,
    Convention,
    MeanNDCG,
    P,
    conventions,
    evaluate,
    nDCG,
    ndcg_scorer,
    parse,
)
from rankopt.rankers import RegressionRanker

FIXTURE = np.array([2.0, 1, 0, 0]), np.array([0.1, 0.9, 0.5, 0.5])
ALL = [nDCG @ 10, nDCG, P @ 3, AP, AP @ 5, RR, WTA, ERR @ 4, AUC, MeanNDCG, NERU(alpha=3, d=0)]


def sample(seed=0, queries=40, grades=3, scores=6, empty=0.2):
    """Grades, tied scores and offsets of some queries, a few without a relevant document."""
    random = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(random.integers(1, 25, size=queries))])
    relevance = random.integers(0, grades, size=offsets[-1]).astype(float)
    for q in np.flatnonzero(random.random(queries) < empty):
        relevance[offsets[q] : offsets[q + 1]] = 0
    return relevance, random.integers(0, scores, size=offsets[-1]).astype(float), offsets


@pytest.mark.parametrize(
    ("convention", "value"), [("sklearn", 0.7075), ("burges", 0.6313), ("default", 0.6313), ("letor2", 0.6250)]
)
def test_the_fixture_under_each_convention(convention, value):
    assert round(evaluate(*FIXTURE, nDCG @ 4, convention=convention).mean(), 4) == value


def test_an_option_of_the_measure_outlives_the_convention():
    assert round(evaluate(*FIXTURE, nDCG(gain="linear") @ 4, convention="burges").mean(), 4) == 0.7075
    found = evaluate(*FIXTURE, nDCG(gain="linear", discount="log2") @ 4, convention="letor2").mean()
    assert round(found, 4) == 0.7075


@pytest.mark.parametrize("convention", ["default", "burges", "sklearn"])
def test_shuffling_documents_changes_no_bit(convention):
    relevance, scores, offsets = sample()
    before = evaluate(relevance, scores, ALL, offsets=offsets, convention=convention)
    random = np.random.default_rng(1)
    order = np.concatenate([start + random.permutation(stop - start) for start, stop in pairwise(offsets)])
    after = evaluate(relevance[order], scores[order], ALL, offsets=offsets, convention=convention)
    assert np.array_equal(before.values, after.values, equal_nan=True)
    assert before.tied.tolist() == after.tied.tolist()


@given(seed=st.integers(0, 1000), shift=st.floats(-5, 5), scale=st.sampled_from([1e-9, 0.5, 1e9]))
@settings(derandomize=True, max_examples=15, deadline=None)
def test_only_the_order_of_the_scores_matters(seed, shift, scale):
    relevance, scores, offsets = sample(seed)
    first = evaluate(relevance, scores, ALL, offsets=offsets)
    second = evaluate(relevance, np.exp(scores + shift) * scale, ALL, offsets=offsets)
    assert np.array_equal(first.values, second.values, equal_nan=True)


@pytest.mark.parametrize("ties", ["average", "input", "worst"])
def test_the_average_lies_between_worst_and_best(ties):
    relevance, scores, offsets = sample()
    rules = Convention(no_relevant=0.0, ties=ties)
    values = evaluate(relevance, scores, ALL, offsets=offsets, convention=rules).values
    worst = evaluate(relevance, scores, ALL, offsets=offsets, convention=replace(rules, ties="worst")).values
    best = evaluate(relevance, scores + 1e-6 * relevance, ALL, offsets=offsets, convention=rules).values
    assert np.all(worst <= values + 1e-12)
    assert np.all(values <= best + 1e-12)


def test_the_worst_order_of_a_constant_ranker_earns_nothing_for_the_order_of_the_file():
    relevance = np.array([2.0, 1, 0, 0, 0])
    assert evaluate(relevance, np.zeros(5), nDCG, convention=Convention(ties="input")).mean() == pytest.approx(1)
    found = evaluate(relevance, np.zeros(5), nDCG)
    reverse = evaluate(relevance[::-1], np.zeros(5), nDCG, convention=Convention(ties="input")).mean()
    assert evaluate(relevance, np.zeros(5), nDCG, convention=Convention(ties="worst")).mean() == pytest.approx(reverse)
    assert reverse < found.mean() < 1
    assert found.tied.tolist() == [1]


def test_ties_that_matter_are_counted():
    relevance = np.array([1.0, 0, 0, 1, 1, 0, 2, 1])
    scores = np.array([2.0, 1, 1, 5, 5, 4, 1, 1])
    found = evaluate(relevance, scores, ["nDCG@1", "nDCG", "P@1", "P(rel=2)@1", "AP"], offsets=[0, 3, 6, 8])
    assert found.tied.tolist() == [1, 1, 0, 1, 0]
    assert evaluate(relevance, np.arange(8.0), "nDCG", offsets=[0, 3, 6, 8]).tied.tolist() == [0]


def test_a_query_without_relevant_documents_counts_what_the_convention_says():
    relevance, scores, offsets = np.array([1.0, 0, 0, 0]), np.array([1.0, 2, 1, 0]), [0, 2, 4]
    skipped = evaluate(relevance, scores, ["nDCG", "P@1"], offsets=offsets)
    assert skipped.n_evaluated("nDCG") == 1
    assert skipped.n_evaluated("P@1") == 2
    assert np.isnan(skipped["nDCG"][1])
    half = skipped.mean("nDCG") / 2
    for value in (0.0, 1.0):
        found = evaluate(relevance, scores, ["nDCG", "P@1"], offsets=offsets, convention=Convention(no_relevant=value))
        assert found.mean("nDCG") == pytest.approx(half + value / 2)
        assert found["P@1"].tolist() == [0.0, 0.0]


def test_no_query_with_a_value_is_an_error_that_names_the_cure():
    with pytest.raises(MeasureError, match=re.escape("nDCG@5 has no value on any of the 1 queries")):
        evaluate([0.0, 0.0], [1.0, 2.0], "nDCG@5")
    assert evaluate([0.0, 0.0], [1.0, 2.0], "nDCG@5", convention="trec", document_ids="ab").mean() == 0


@pytest.mark.parametrize(
    ("short", "wanted"), [("own", [1.0, 0.2, 1.0]), ("zero-ndcg", [0.0, 0.2, 1.0]), ("zero", [0.0, 0.0, 1.0])]
)
def test_a_short_list_counts_what_the_convention_says(short, wanted):
    found = evaluate([1.0, 0.0], [2.0, 1.0], [nDCG @ 5, P @ 5, nDCG @ 2], convention=Convention(fewer_than_k=short))
    assert found.values[:, 0].tolist() == wanted


def test_ties_by_document_id_put_the_last_id_first():
    found = evaluate([1.0, 0.0, 0.0], [1.0, 1, 1], "RR", convention=Convention(ties="id"), document_ids="19x")
    assert found.mean() == pytest.approx(1 / 3)
    with pytest.raises(DataError, match="document id"):
        evaluate([1.0, 0.0], [1.0, 1], "RR", convention="trec")


def test_single_precision_makes_ties():
    scores = [1.0, 1.0 + 1e-12]
    assert evaluate([1.0, 0.0], scores, "RR").mean() == 0.5
    rules = Convention(float32=True)
    assert evaluate([1.0, 0.0], scores, "RR", convention=rules).mean() == 0.75
    assert evaluate([1.0, 0.0], [1e300, 1e200], "RR", convention=rules).mean() == 0.75


@pytest.mark.parametrize("k", [1, 3, 10, None])
def test_scikit_learn_agrees(k):
    from sklearn.metrics import dcg_score, ndcg_score, roc_auc_score

    relevance, scores, offsets = sample(seed=3, grades=5)
    asked = ["nDCG", "DCG"] if k is None else [f"nDCG@{k}", f"DCG@{k}"]
    found = evaluate(relevance, scores, asked, offsets=offsets, convention="sklearn")
    areas = evaluate(relevance, scores, AUC, offsets=offsets).per_query()
    for q, (start, stop) in enumerate(pairwise(offsets)):
        y, s = relevance[None, start:stop], scores[None, start:stop]
        if stop - start == 1:  # refused there
            continue
        assert found.values[0, q] == pytest.approx(ndcg_score(y, s, k=k), abs=1e-13)
        assert found.values[1, q] == pytest.approx(dcg_score(y, s, k=k), abs=1e-12)
        if not np.isnan(areas[q]):
            assert areas[q] == pytest.approx(roc_auc_score(y[0] > 0, s[0]), abs=1e-13)


def test_trec_eval_agrees():
    import ir_measures

    relevance, scores, offsets = sample(seed=5)
    names = np.random.default_rng(0).permutation(len(relevance))
    documents = [f"doc{name}" for name in names]
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    rows = list(zip(map(str, query), documents, strict=True))
    qrels = [ir_measures.Qrel(q, d, int(y)) for (q, d), y in zip(rows, relevance, strict=True)]
    run = [ir_measures.ScoredDoc(q, d, s) for (q, d), s in zip(rows, scores.tolist(), strict=True)]
    nDCG, P, AP = ir_measures.nDCG, ir_measures.P, ir_measures.AP
    theirs = [nDCG, nDCG @ 5, P @ 3, P(rel=2) @ 10, AP, AP @ 4, ir_measures.RR]
    found = evaluate(
        relevance, scores, [str(m) for m in theirs], offsets=offsets, convention="trec", document_ids=documents
    )
    seen = {measure: np.zeros(len(offsets) - 1) for measure in theirs}
    for metric in ir_measures.iter_calc(theirs, qrels, run):
        seen[metric.measure][int(metric.query_id)] = metric.value
    for ours, measure in zip(found.measures, theirs, strict=True):
        assert found[ours] == pytest.approx(seen[measure], abs=1e-9)
        assert found.mean(ours) == pytest.approx(seen[measure].mean(), abs=1e-9)


def test_queries_and_arrays_give_the_same():
    from rankopt.data import Queries

    relevance, scores, offsets = sample()
    names = [f"q{q}" for q in range(len(offsets) - 1)]
    documents = [f"d{j}" for j in range(len(relevance))]
    queries = Queries.from_arrays(
        np.zeros((len(relevance), 1)), relevance, qid=np.repeat(names, np.diff(offsets)), documents=documents
    )
    one = evaluate(queries, scores, ALL, convention="trec")
    two = evaluate(relevance, scores, ALL, convention="trec", offsets=offsets, query_ids=names, document_ids=documents)
    assert np.array_equal(one.values, two.values)
    assert one.query_ids == tuple(names)
    with pytest.raises(DataError, match="has its own queries"):
        evaluate(queries, scores, ALL, offsets=offsets)
    with pytest.raises(DataError, match="no relevance"):
        evaluate(queries.replace(relevance=None), scores, ALL)


@pytest.mark.parametrize(
    ("convention", "fate"), [("default", "left out"), ("trec", "counted 0"), ("xgboost", "counted 1")]
)
def test_queries_without_relevant_documents_are_counted(convention, fate):
    relevance, scores, offsets = sample(queries=12, grades=2, empty=0.5)
    ids = [f"d{row}" for row in range(len(relevance))]
    found = evaluate(relevance, scores, [nDCG, P @ 1], offsets=offsets, document_ids=ids, convention=convention)
    lists = [relevance[a:b] for a, b in pairwise(offsets)]
    assert found.defined.tolist() == [[own.max() > 0 for own in lists], [True] * 12]
    assert found.lengths.tolist() == [own.size for own in lists]
    empty = sum(own.max() == 0 for own in lists)
    assert 0 < empty < 12
    assert str(found).splitlines()[-1] == f"nDCG: no relevant document in {empty} of 12 queries: {fate}"
    other = evaluate(relevance, -scores, nDCG, offsets=offsets, document_ids=ids, convention=convention)
    compared = compare(found.select([nDCG]), other)
    assert str(compared).splitlines()[-1] == f"no relevant document in {empty} of 12 queries: {fate}"
    assert compared.queries == (12 - empty if fate == "left out" else 12)
    chosen = [query for query, own in enumerate(lists) if own.max() == 0]
    assert found.for_queries([0, *chosen]).defined[0].sum() == (0 not in chosen)
    assert not found.select([P @ 1]).notes


def test_an_evaluation_prints_a_table_and_is_plain_data():
    relevance, scores, offsets = np.array([1.0, 0, 0]), np.array([1.0, 2, 2]), [0, 2, 3]
    found = evaluate(relevance, scores, ["nDCG@10", AP], offsets=offsets, query_ids=["a", "b"])
    assert str(found).splitlines() == [
        "measure     mean  queries  tied    (convention default)",
        "nDCG@10   0.6309        1     0",
        "AP        0.5000        1     0",
        "no relevant document in 1 of 2 queries: left out",
    ]
    assert found.as_dict()["measures"]["AP"] == {"mean": 0.5, "queries": 1, "tied": 0, "undefined": 1}
    assert found.as_dict()["queries"] == len(found) == 2
    assert found["map"].tolist()[0] == 0.5
    with pytest.raises(MeasureError, match="was not evaluated"):
        found["P@1"]
    with pytest.raises(MeasureError, match="Several measures were evaluated"):
        found.mean()
    with pytest.raises(ValueError, match="read-only"):
        found.values[0, 0] = 1


def test_means_may_be_weighted():
    found = evaluate([1.0, 0, 1, 0, 0], [2.0, 1, 1, 2, 0], RR, offsets=[0, 2, 4, 5])
    assert found.mean() == 0.75
    assert found.mean(weights=[3, 1, 5]) == 0.875
    with pytest.raises(DataError, match="one a query"):
        found.mean(weights=[1, 2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 0], [1.0]), "1 scores for 2 documents"),
        (([1.0, 0], [1.0, np.nan]), r"scores\[1\] is NaN"),
        (([1.0, np.inf], [1.0, 2]), r"relevance\[1\] cannot be inf"),
        (([[1.0, 0]], [1.0, 2]), "one number a document"),
        ((["good", "bad"], [1.0, 2]), "cannot be read as numbers"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        evaluate(*arguments, nDCG)


@pytest.mark.parametrize("offsets", [[0, 1], [1, 2], [0, 3, 2], [], [[0, 2]]])
def test_offsets_that_do_not_fit_are_refused(offsets):
    with pytest.raises(DataError, match="do not cut 2 rows"):
        evaluate([1.0, 0], [1.0, 2], nDCG, offsets=offsets)


def test_ids_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match="query_ids has 2 entries"):
        evaluate([1.0, 0], [1.0, 2], nDCG, query_ids="ab")


def test_infinite_scores_stand_first_and_last():
    assert evaluate([1.0, 0, 0], [np.inf, 5, -np.inf], RR).mean() == 1


def test_conventions_are_data():
    assert conventions["letor2"] == conventions["letor3"]
    assert conventions["trec"].name == "trec"
    assert evaluate(*FIXTURE, nDCG, convention="trec", document_ids="abcd").convention.name == "trec"
    assert Convention(no_relevant=1.0).name.startswith("Convention(gain=None")
    for field, value in (
        ("gain", "cube"),
        ("no_relevant", "none"),
        ("ties", "best"),
        ("fewer_than_k", "half"),
        ("discount", 2),
    ):
        with pytest.raises(MeasureError, match=f"cannot have {field}="):
            Convention(**{field: value})
    with pytest.raises(MeasureError, match="There is no convention 'letor5'; choose one of default, letor2"):
        evaluate(*FIXTURE, nDCG, convention="letor5")


def test_a_training_measure_and_its_evaluation_are_the_same_number():
    relevance, scores, offsets = sample(empty=0.0)
    strict = scores + np.linspace(0, 0.5, len(scores))
    order = np.lexsort((-strict, np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))))
    for text in ("nDCG@5", "P@3", "DCG", "AUC"):
        measure = parse(text)
        products = (measure.discounts(offsets) * measure.gain(relevance, offsets)[order]).cumsum()
        sums = np.diff(np.concatenate([[0], products[offsets[1:] - 1]])) - measure.constant(relevance, offsets)
        found = evaluate(
            relevance, strict, measure, offsets=offsets, convention=Convention(no_relevant=0.0)
        ).per_query()
        assert found == pytest.approx(np.where(measure.defined(relevance, offsets), sums, 0), abs=1e-11)


# The official LETOR 2.0 table: every feature of OHSUMED alone as a ranker, 25 × 21 published numbers.


MEASURES = [f"{name}@{k}" for name in ("NDCG", "P") for k in range(1, 11)] + ["MAP"]


@pytest.fixture(scope="module")
def ohsumed(data_folder):
    return concatenate([read_svmlight(data_folder / f"letor2-ohsumed/S{part}.txt.gz") for part in range(1, 6)])


@pytest.fixture(scope="module")
def published(data_folder):
    with (data_folder / "reference-tables/letor2_ohsumed_single_features.csv").open() as table:
        return {(int(row["feature"]), row["measure"]): float(row["value"]) for row in csv.DictReader(table)}


@pytest.mark.parametrize("feature", range(1, 26))
def test_single_features_reproduce_to_four_decimals(feature, ohsumed, published):
    found = evaluate(ohsumed, np.asarray(ohsumed.features[:, feature - 1]), MEASURES, convention="letor2")
    assert len(found) == 106
    for measure in MEASURES:
        assert found.mean(measure) == pytest.approx(published[feature, measure], abs=5e-5)


def test_the_order_of_the_file_earns_nothing_where_ties_are_averaged(data_folder):
    parts = [data_folder / f"letor3-ohsumed/QueryLevelNorm/Fold{fold}/test.txt.gz" for fold in range(1, 6)]
    queries = concatenate([read_svmlight(part) for part in parts])
    constant = np.zeros(queries.n_documents)
    assert evaluate(queries, constant, "nDCG@10", convention="letor3").mean() > 0.39
    found = evaluate(queries, constant, "nDCG@10")
    assert found.mean() < 0.2
    assert found.tied.tolist() == [found.n_evaluated()] == [105]


# Who ranks best, who cannot be told apart from it, and the sentence that says so.


QUERIES = 40


@pytest.fixture
def runs():
    """Scores that follow the grades with more and more noise; "same" orders as "good" does."""
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 3, size=QUERIES * 10).astype(float)
    queries = Queries.from_arrays(rng.normal(size=(grades.size, 1)), grades, group=[10] * QUERIES)
    noise = rng.normal(size=grades.size)
    scores = {
        "bad": -grades,
        "good": grades + 0.3 * noise,
        "same": 2 * grades + 0.6 * noise,
        "poor": grades + 9 * noise,
    }
    return {name: evaluate(queries, score, "nDCG@5") for name, score in scores.items()}


def test_ties_are_told_as_such_and_p_is_that_of_the_paired_test(runs):
    found = leader(runs)
    assert list(found.means) == ["good", "same", "poor", "bad"]
    assert (found.name, found.ties, found.behind) == ("good", ("same",), ("poor", "bad"))
    p = [compare(runs["good"], runs[name]).p_randomization for name in ("same", "poor", "bad")]
    assert list(found.p.values()) == holm(p).tolist()
    told = str(found)
    assert told.startswith(f"good ranks best here, nDCG@5 {found.means['good']:.3f}".replace("0.", "."))
    assert "but same (" in told
    assert "cannot be distinguished from it by a paired test (p = 1): choose among them by what they cost" in told
    assert "and bad (" in told
    assert told.count(" rank worse (p < .001)") == 1


def test_a_clear_winner_and_one_alone(runs):
    clear = str(leader({name: runs[name] for name in ("bad", "good", "poor")}))
    assert clear.endswith(" by a paired test (p < .001): use it.")
    assert str(leader({"good": runs["good"]})).endswith(f" on {QUERIES} queries.")
    with pytest.raises(DataError, match="without evaluations"):
        leader({})


def test_one_query_tells_nothing_apart():
    one = Queries.from_arrays([[0.0], [1.0]], [0, 1], group=[2])
    runs = {name: evaluate(one, scores, "nDCG@5") for name, scores in {"a": [0.0, 1.0], "b": [1.0, 0.0]}.items()}
    assert leader(runs).ties == ("b",)


# `compare`: paired tests against scipy and against counting all sign vectors.


def runs_compared(n, effect=0.05, seed=0):
    random = np.random.default_rng(seed)
    a = random.random(n)
    return a + effect + random.normal(scale=0.1, size=n), a


def test_the_t_test_and_its_interval_are_those_of_scipy():
    a, b = runs_compared(40)
    found, theirs = compare(a, b, confidence=0.9), stats.ttest_rel(a, b)
    assert found.p_t == pytest.approx(theirs.pvalue)
    assert found.interval == pytest.approx(tuple(theirs.confidence_interval(0.9)))
    assert found.difference == pytest.approx(found.mean_a - found.mean_b)


def test_few_queries_try_every_sign_vector():
    a, b = runs_compared(8)
    d = a - b
    flipped = [abs(np.dot(signs, d)) >= abs(d.sum()) - 1e-12 for signs in product((-1, 1), repeat=8)]
    found = compare(a, b)
    assert found.exact
    assert found.n_permutations == 256
    assert found.p_randomization == np.mean(flipped)


def test_sixteen_differing_queries_try_every_sign_vector():
    a, b = runs_compared(16)
    found = compare(a, b, resamples=100)
    assert (found.exact, found.n_permutations) == (True, 2**16)


def test_many_queries_sample_sign_vectors_and_repeat_themselves():
    a, b = runs_compared(18)
    exact, sampled = compare(a, b, resamples=2**18), compare(a, b, resamples=10_000)
    assert exact.exact
    assert not sampled.exact
    assert sampled.p_randomization == pytest.approx(exact.p_randomization, abs=0.02)
    assert sampled == compare(a, b, resamples=10_000)
    assert sampled.p_randomization != compare(a, b, resamples=10_000, random_state=1).p_randomization


def test_a_run_is_not_better_than_itself():
    a, _ = runs_compared(30)
    found = compare(a, a)
    assert (found.difference, found.p_t, found.p_randomization, found.interval) == (0, 1, 1, (0, 0))
    assert (found.wins, found.ties, found.losses) == (0, 30, 0)


def test_swapping_the_runs_changes_the_sign_only():
    a, b = runs_compared(25)
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


@pytest.mark.parametrize(
    "measure", ["nDCG", "nDCG@10", "MeanNDCG", "P@49", "AP", "ERR(max_grade=30)", "R@100", "RBP", "NERU(d=0)"]
)
def test_no_normalized_measure_exceeds_1(measure):
    """Rounding must not: nDCG of the best order of the grades 0 to 299 is 1, not 1.0000000000000002."""
    for n in (5, 20, 49, 60, 100, 300):
        grades = np.minimum(np.arange(float(n)), 30.0)
        assert evaluate(grades, grades, measure).mean() <= 1.0
        assert evaluate(grades > 0, grades, measure).mean() <= 1.0


def test_masked_arrays_are_refused():
    y, scores = np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])
    masked = np.ma.masked_array(y, mask=[False, True, False])
    for arguments in ((masked, scores), (y, np.ma.masked_array(scores, mask=[True, False, False]))):
        with pytest.raises(DataError, match="is masked"):
            evaluate(*arguments, "nDCG@10")
    with pytest.raises(DataError, match="is masked"):
        evaluate(y, scores, "nDCG@10", qid=np.ma.masked_array([1, 1, 2], mask=[False, True, False]))
    assert evaluate(np.ma.masked_array(y), scores, "nDCG@10").mean() == pytest.approx(1.0)


def test_ids_passed_as_sizes_are_named():
    y = np.arange(40) % 3
    for start in (0, 1):
        with pytest.raises(DataError, match="qid="):
            evaluate(y, y, "nDCG@10", group=np.repeat(np.arange(4), 10) + start)


def test_gains_that_hide_all_others_warn():
    with pytest.warns(LargeGainWarning, match="gain beyond 2\\^31"):
        evaluate([40.0, 1.0, 0.0], [3.0, 2.0, 1.0], "nDCG@10")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate([31.0, 1.0, 0.0], [3.0, 2.0, 1.0], "nDCG@10")
        evaluate([40.0, 1.0, 0.0], [3.0, 2.0, 1.0], "nDCG(gain='linear')@10")


def test_a_scorer_finds_the_queries_in_the_column_qid():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 3)), columns=list("abc")).assign(qid=np.arange(120) // 6)
    y = (X.a + rng.normal(size=120) > 0).astype(int)
    scorer, folds = ndcg_scorer(3), GroupKFold(4)
    found = cross_val_score(RegressionRanker(), X, y, scoring=scorer, cv=folds, groups=X.qid)
    for value, (train, test) in zip(found, folds.split(X, y, X.qid), strict=True):
        ranker = RegressionRanker().fit(X.iloc[train], y.iloc[train])
        one = evaluate(y.iloc[test], ranker.predict(X.iloc[test]), nDCG @ 3, qid=X.qid.iloc[test])
        assert value == one.mean()
    search = GridSearchCV(RegressionRanker(), {"alpha": [0.1, 10.0]}, scoring=scorer, cv=folds)
    assert search.fit(X, y, groups=X.qid).best_score_ == search.cv_results_["mean_test_score"].max()
    importances = permutation_importance(search.best_estimator_, X, y, scoring=scorer, random_state=0).importances_mean
    assert importances.argmax() == 0
    with pytest.raises(DataError, match=r"no column of query ids; got a ndarray\. .*X\.assign\(qid=qid\)"):
        scorer(search.best_estimator_, X.to_numpy(), y)


@pytest.mark.parametrize("other", [None, "a run", {"a": 1.0}, 3.0, [[1.0], [2.0]]])
def test_what_compare_takes_is_said_of_anything_else(other):
    found = evaluate([1.0, 0, 1, 0], [2.0, 1, 1, 2], RR, offsets=[0, 2, 4])
    for one in (found, [0.5, 1.0]):
        for pair in ((one, other), (other, one)):
            with pytest.raises(DataError, match="takes two results of `evaluate`, or two arrays"):
                compare(*pair)
