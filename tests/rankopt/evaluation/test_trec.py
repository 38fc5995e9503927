"""TREC files: in and out, strict, and the same to trec_eval as to us."""

import gzip
import re
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from rankopt.errors import DataError, ListLengthWarning, MeasureError, OptionError
from rankopt.evaluation.comparison import signed_rank_p
from rankopt.evaluation.evaluation import interval_of
from rankopt.evaluation.export import latex_text
from rankopt.measures import (
    compare,
    compare_runs,
    conventions,
    evaluate,
    holm,
    join,
    parse,
    read_qrels,
    read_run,
    write_qrels,
    write_run,
)

QUERIES = SimpleNamespace(
    relevance=np.array([2.0, 0, 1, 0, 1]),
    offsets=np.array([0, 3, 5]),
    query_ids=("q2", 1),
    document_ids=("a", "b", "c", "a", "d"),
)
SCORES = np.array([0.5, 0.5, 1.0, -3.0, 2e40])


@pytest.mark.parametrize("name", ["run.txt", "run.txt.gz"])
def test_a_run_is_written_by_rank_and_read_back(tmp_path, name):
    path = tmp_path / name
    write_run(path, QUERIES, SCORES, tag="ours")
    text = (gzip.decompress(path.read_bytes()) if name.endswith("gz") else path.read_bytes()).decode()
    assert text.splitlines() == [
        "q2 Q0 c 1 3 ours",
        "q2 Q0 b 2 2 ours",
        "q2 Q0 a 3 1 ours",
        "1 Q0 d 1 2 ours",
        "1 Q0 a 2 1 ours",
    ]
    run = read_run(path)
    assert run.query_ids == ("q2", "1")
    assert run.document_ids == ("c", "b", "a", "d", "a")
    assert run.scores.tolist() == [3, 2, 1, 2, 1]
    assert run.offsets.tolist() == [0, 3, 5]


@pytest.mark.parametrize("name", ["qrels.txt", "qrels.gz"])
def test_qrels_are_written_and_read_back(tmp_path, name):
    write_qrels(tmp_path / name, QUERIES)
    qrels = read_qrels(tmp_path / name)
    assert qrels.relevance.tolist() == QUERIES.relevance.tolist()
    assert qrels.document_ids == QUERIES.document_ids
    assert qrels.query_ids == ("q2", "1")


def test_k_keeps_the_first_documents(tmp_path):
    write_run(tmp_path / "run", QUERIES, SCORES, k=1)
    assert read_run(tmp_path / "run").document_ids == ("c", "d")


def test_files_give_the_value_of_the_arrays_and_of_trec_eval(tmp_path):
    import ir_measures

    random = np.random.default_rng(0)
    offsets = np.arange(0, 401, 20)
    queries = SimpleNamespace(
        relevance=random.integers(0, 3, size=400).astype(float),
        offsets=offsets,
        query_ids=tuple(range(20)),
        document_ids=tuple(f"d{name}" for name in random.permutation(400)),
    )
    scores = 1e6 + np.round(random.normal(size=400), 1) * 1e-3  # single precision would tie most of them
    write_run(tmp_path / "run.gz", queries, scores)
    write_qrels(tmp_path / "qrels", queries)
    measures = [ir_measures.nDCG @ 5, ir_measures.AP, ir_measures.P @ 5, ir_measures.RR]
    names = [str(measure) for measure in measures]
    plain = evaluate(queries, scores, names, convention=replace(conventions["trec"], float32=False))
    files = evaluate(*join(read_qrels(tmp_path / "qrels"), read_run(tmp_path / "run.gz")), names, convention="trec")
    run = gzip.decompress((tmp_path / "run.gz").read_bytes()).decode()
    theirs = ir_measures.calc_aggregate(
        measures,
        ir_measures.read_trec_qrels((tmp_path / "qrels").read_text()),
        ir_measures.read_trec_run(run),
    )
    for name, measure in zip(names, measures, strict=True):
        assert files.mean(name) == pytest.approx(theirs[measure])
        assert files[name].tolist() == plain[name].tolist()


def test_judging_joins_by_document(tmp_path):
    (tmp_path / "qrels").write_text("1 0 a 1\n1 0 b 0\n2 0 a 2\n1 0 c 1\n")
    (tmp_path / "run").write_text("3 Q0 a 1 9 t\n1 Q0 x 1 3.5 t\n1 Q0 a 2 1.5 t\n2 Q0 a 1 1 t\n\n")
    judged, scores = join(read_qrels(tmp_path / "qrels"), read_run(tmp_path / "run"))
    assert judged.query_ids == ("1", "2")
    assert judged.document_ids == ("x", "a", "b", "c", "a")
    assert judged.relevance.tolist() == [0, 1, 0, 1, 2]
    assert scores.tolist() == [3.5, 1.5, -np.inf, -np.inf, 1]
    assert evaluate(judged, scores, "P@2").per_query().tolist() == [0.5, 0.5]


def test_a_run_that_lacks_judged_queries_is_refused_or_cut(tmp_path):
    (tmp_path / "qrels").write_text("1 0 a 1\n2 0 a 2\n")
    (tmp_path / "run").write_text("2 Q0 a 1 9 t\n")
    qrels, run = read_qrels(tmp_path / "qrels"), read_run(tmp_path / "run")
    with pytest.raises(DataError, match="lacks 1 judged queries, such as '1'"):
        join(qrels, run)
    assert join(qrels, run, missing="skip")[0].query_ids == ("2",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is empty; a line is 'query Q0 document rank score tag'"),
        (b"1 Q0 a 1 0.5\n", "line 1: 5 columns"),
        (b"1 Q0 a 1 0.5 t\n\n1 Q0 a 2 0.4 t\n", "line 3: document 'a' occurs twice in query '1'"),
        (b"1 Q0 a 1 high t\n", "line 1: 'high' is not a number"),
        (b"1 Q0 a 1 nan t\n", "line 1: 'nan' is not a number"),
        (b"1 Q0 a 1 3 t\n1 Q0 \xff 1 2 t\n", "line 2: byte 0xff in column 6 is not text"),
        (b"\x1f\x8bnot gzip", "cannot be unpacked beyond line 1"),
    ],
)
def test_a_bad_run_is_refused_with_file_and_line(tmp_path, text, message):
    (tmp_path / "bad.run").write_bytes(text)
    with pytest.raises(DataError, match=r"bad\.run") as caught:
        read_run(tmp_path / "bad.run")
    assert message in str(caught.value)


TREC_QRELS = "q1 0 d1 2\nq1 0 d2 0\nq2 0 d1 1\n"
QRELS_LAYOUTS = {
    "BEIR": "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td1\t1\n",
    "BEIR, CR LF, BOM": "\ufeffquery-id\tcorpus-id\tscore\r\nq1\td1\t2\r\nq1\td2\t0\r\nq2\td1\t1\r\n",
    "no header": "q1\td1\t2\nq1 d2   0 \n\nq2 d1 1",
    "MS MARCO": "q1\t0\td1\t2\nq1\t0\td2\t0\nq2\t0\td1\t1\n",
    "blanks and tabs": "q1   0 \td1\t 2  \n  q1 0 d2 0\t\n\nq2\t0 d1 1\n",
    "header": "query_id 0 doc_id relevance\n" + TREC_QRELS,
    "comments": "# of 2020\n#query 0 document grade\n" + TREC_QRELS.replace("q2", "# judged by hand 1\n  # 0 d9 1\nq2"),
}
TREC_RUN = "q1 Q0 d2 7 2.5 t\nq1 Q0 d1 1 1 t\nq2 Q0 d1 1 -3 t\n"  # the rank column is not read
RUN_LAYOUTS = {
    "MS MARCO": "q1\td2\t1\nq1\td1\t2\nq2\td1\t1\n",
    "MS MARCO, any order": "q1 d1 10\nq2 d1 1\nq1 d2 1\n",
    "MS MARCO, from 0": "qid\tpid\trank\r\nq1\td1\t1\r\nq2\td1\t0\r\nq1\td2\t0\r\n",
    "comments": "# my run\n# Q0 d1 1 5.0 t\n" + TREC_RUN,
    "header": "qid iter docid rank score tag\n" + TREC_RUN,
}


@pytest.mark.parametrize("layout", QRELS_LAYOUTS)
def test_qrels_of_every_layout_are_the_same(tmp_path, layout):
    (tmp_path / "trec").write_text(TREC_QRELS)
    (tmp_path / "other").write_bytes(QRELS_LAYOUTS[layout].encode())
    trec, other = read_qrels(tmp_path / "trec"), read_qrels(tmp_path / "other")
    assert (trec.query_ids, trec.document_ids) == (other.query_ids, other.document_ids)
    assert trec.relevance.tolist() == other.relevance.tolist()


@pytest.mark.parametrize("layout", RUN_LAYOUTS)
def test_runs_of_every_layout_order_documents_the_same(tmp_path, layout):
    (tmp_path / "qrels").write_text(TREC_QRELS)
    (tmp_path / "trec").write_text(TREC_RUN)
    (tmp_path / "other").write_bytes(RUN_LAYOUTS[layout].encode())
    qrels = read_qrels(tmp_path / "qrels")
    trec, other = (
        evaluate(*join(qrels, read_run(tmp_path / name)), ["nDCG@10", "RR"], convention="trec")
        for name in ("trec", "other")
    )
    for found in (trec, other):
        assert found.per_query("RR").tolist() == [0.5, 1.0]
        assert found.per_query("nDCG@10").tolist() == pytest.approx([1 / np.log2(3), 1.0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 0 d1 1\nq1 d2 1\n", "line 2: 3 columns, but a line is 'query 0 document grade', as the first"),
        ("query-id\tcorpus-id\tscore\nq 1\td1\t1\n", "line 2: 4 columns"),
        ("q 1\td1\t1\n", "line 1: a column between tabs has a blank"),
        ("query-id\tcorpus-id\tscore\n", "is empty"),
        ("# nothing but comments 1\n", "is empty"),
        ("q1\td1\thigh\n", "line 1: 'high' is not an integer"),
        ("q1 d1 1\nquery-id corpus-id score\n", "line 2: 'score' is not an integer"),
        (
            "query_id doc_id relevance iteration\nq1 7 1 0\n",
            "line 1: column 4 has the name 'iteration', but is the grade",
        ),
        ("#1 0 d1 1\n", "line 1: '#1' is a query or begins a comment"),
        ("q1 d1 1\nq1 d1 0\n", "line 2: document 'd1' occurs twice"),
    ],
)
def test_qrels_of_no_layout_are_refused_with_file_and_line(tmp_path, text, message):
    (tmp_path / "bad.qrels").write_text(text)
    with pytest.raises(DataError, match=r"bad\.qrels") as caught:
        read_qrels(tmp_path / "bad.qrels")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 d1 1\nq1 d2 1\n", "line 2: '1' occurs twice in its query"),
        ("q1 d1 0.75\n", "line 1: '0.75' is not a rank; the third of three columns is the rank"),
        ("q1 d1 -1\n", "line 1: '-1' is not a rank"),
        ("qid docid score\nq1 d1 1\nq1 d2 2\n", "line 1: column 3 has the name 'score', but is the rank"),
        ("q1 d1 1\nq2 d1 40\nq2 d2 30\n", "query 'q2' has no document of rank 1"),
        ("q1 d1 1\nq1 Q0 d2 2 1.0 t\n", "line 2: 6 columns, but a line is 'query document rank', as the first"),
        ("q1 d1 1 0.5\n", "1: 4 columns, but a line is 'query Q0 document rank score tag' or 'query document rank'"),
    ],
)
def test_runs_of_no_layout_are_refused_with_file_and_line(tmp_path, text, message):
    (tmp_path / "bad.run").write_text(text)
    with pytest.raises(DataError, match=r"bad\.run") as caught:
        read_run(tmp_path / "bad.run")
    assert message in str(caught.value)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("word", ["1_0", "\u0661", "0x1", "1e", "1" * 5000 + "x"])
def test_numbers_are_those_of_every_other_file(tmp_path, word, packed):
    path = tmp_path / "bad"
    for columns, reader in (("1 Q0 b 1 {} t", read_run), ("1 0 b {}", read_qrels)):
        text = f"\ufeff1 0 a 1{' 2 t' if reader is read_run else ''}\n{columns.format(word)}\n".encode()
        path.write_bytes(gzip.compress(text) if packed else text)
        with pytest.raises(DataError, match=r"bad, line 2: '.{1,70}' is not a"):
            reader(path)


def test_what_every_other_file_takes_is_read(tmp_path):
    path = tmp_path / "good"
    path.write_bytes("\ufeff1 Q0 a\u00a0b 1 +.5e1 t\r\n\t1  Q0 c 2 -INF t\n".encode())
    assert (read_run(path).scores.tolist(), read_run(path).document_ids) == ([5, -np.inf], ("a\u00a0b", "c"))
    path.write_text(f"1 0 a {'0' * 5000}2\n1 0 b {'9' * 300}\n")
    assert read_qrels(path).relevance.tolist() == [2, float("9" * 300)]
    path.write_text(f"1 0 a 1\n1 0 b {'9' * 5000}\n")
    with pytest.raises(DataError, match=r"line 2: '999.* is not an integer"):
        read_qrels(path)


def test_bad_qrels_are_refused(tmp_path):
    path = tmp_path / "qrels"
    path.write_text("1 0 a 1.5\n")
    with pytest.raises(DataError, match=r"line 1: '1\.5' is not an integer"):
        read_qrels(path)
    path.write_text("1 0 a 1\n1 0 b -2\n")
    with pytest.raises(DataError, match=r"line 2: document 'b' has the grade -2.*negative='unjudged'"):
        read_qrels(path)
    assert read_qrels(path, negative=0).relevance.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"document_ids": None}, "have no ids"),
        ({"document_ids": ("a", "b c", "d", "e", "f")}, "'b c' cannot be written to a TREC file"),
        ({"document_ids": ("a", "", "d", "e", "f")}, "'' cannot be written"),
        ({"document_ids": ("a", None, "d", "e", "f")}, "None cannot be written"),
        ({"document_ids": (1, "1", "d", "e", "f")}, "an id twice"),
        ({"query_ids": (1, "1")}, "an id twice"),
        ({"query_ids": ("#1", "2")}, "'#1' cannot be written .* # begins a comment"),
        ({"relevance": None}, "no relevance"),
        ({"relevance": np.full(5, 0.5)}, "grade 0.5"),
    ],
)
def test_what_the_format_cannot_hold_is_not_written(tmp_path, change, message):
    with pytest.raises(DataError, match=message):
        write_qrels(tmp_path / "qrels", SimpleNamespace(**(vars(QUERIES) | change)))


def test_scores_that_make_no_order_are_not_written(tmp_path):
    for scores in (SCORES[:3], SCORES * np.nan):
        with pytest.raises(DataError, match="needs as many scores, none NaN"):
            write_run(tmp_path / "run", QUERIES, scores)


def test_the_score_column_holds_places_or_the_scores_of_the_model(tmp_path):
    write_run(tmp_path / "places", QUERIES, SCORES)
    write_run(tmp_path / "scores", QUERIES, SCORES, scores="model")
    places, scores = ((tmp_path / name).read_text().splitlines() for name in ("places", "scores"))
    assert [line.split()[:4] for line in places] == [line.split()[:4] for line in scores]
    assert sorted(float(line.split()[4]) for line in scores) == sorted(np.asarray(SCORES, dtype=float).tolist())
    for wrong in ("ranks", SCORES):
        with pytest.raises(OptionError, match="write 'rank' or 'model'"):
            write_run(tmp_path / "run", QUERIES, SCORES, scores=wrong)


# The convention "trec" against trec_eval itself (pytrec_eval) and ir_measures: runs of part of a pool, ties, missing q


NAMES = [
    "map", "map_cut_5", "ndcg", "ndcg_cut_5", "recip_rank", "P_5", "P_30", "recall_5", "Rprec", "bpref", "infAP",
    "success_5", "success_1",
]  # fmt: skip


def drawn(seed, grades):
    """qrels and run as dictionaries: not all that is judged is retrieved, and the other way round."""
    rng = np.random.default_rng(seed)
    qrels, run = {}, {}
    for q in range(30):
        documents = [f"d{i}" for i in rng.permutation(40)]
        qrels[f"q{q}"] = {d: int(rng.choice(grades)) for d in documents[: rng.integers(1, 30)]}
        first = rng.integers(0, 15)
        retrieved = documents[first : first + rng.integers(1, 20)]
        run[f"q{q}"] = dict(zip(retrieved, np.round(rng.normal(size=len(retrieved)), seed % 3).tolist(), strict=True))
    for q in ("q3", "q7"):
        del run[q]
    return qrels, run | {"of no qrels": {"d1": 1.0}}


def written(folder, qrels, run):
    lines = [f"{q} 0 {d} {g}\n" for q, found in qrels.items() for d, g in found.items()]
    (folder / "qrels").write_text("".join(lines))
    lines = [f"{q.replace(' ', '-')} Q0 {d} 0 {s!r} t\n" for q, found in run.items() for d, s in found.items()]
    (folder / "run").write_text("".join(lines))
    return read_qrels(folder / "qrels", negative="unjudged"), read_run(folder / "run")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("grades", [(0, 0, 1), (-1, 0, 0, 1, 2), (0, 0, 0, 0, 0, 1)], ids=str)
def test_every_query_has_the_value_of_trec_eval(tmp_path, seed, grades):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels, run = drawn(seed, grades)
    asked = {re.sub(r"_([0-9]+)$", r".\1", name) for name in NAMES}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, asked).evaluate(run)
    files = written(tmp_path, qrels, run)
    found = evaluate(*join(*files, missing="skip"), NAMES, convention="trec")
    assert set(found.query_ids) == set(theirs) == set(qrels) - {"q3", "q7"}
    for name in NAMES:
        assert found[name] == pytest.approx([theirs[q][name] for q in found.query_ids], abs=1e-14), name
    complete = evaluate(*join(*files, missing="zero"), NAMES, convention="trec")
    assert len(complete) == 30
    for name in NAMES:
        assert complete.mean(name) == pytest.approx(sum(theirs[q][name] for q in theirs) / 30)


@pytest.mark.parametrize("seed", range(3))
def test_means_are_those_of_ir_measures(tmp_path, seed):
    ir_measures = pytest.importorskip("ir_measures")
    pytest.importorskip("pytrec_eval")
    qrels, run = drawn(3 * seed + 2, (0, 0, 1, 2))
    measures = [ir_measures.parse_measure(text) for text in (
        "nDCG@10", "nDCG", "AP", "AP(rel=2)@10", "P@5", "RR(rel=2)", "Rprec", "R@5", "Bpref", "infAP",
        "Success@5", "Judged@5",
    )]  # fmt: skip
    theirs = ir_measures.calc_aggregate(measures, qrels, run)
    found = evaluate(*join(*written(tmp_path, qrels, run), missing="zero"), measures, convention="trec")
    for measure in measures:
        assert found.mean(measure) == pytest.approx(theirs[measure]), measure
    assert [repr(one) for one in found.measures] == [repr(parse(measure)) for measure in measures]


# Several runs beside each other: intervals, Holm over all tests, frames and LaTeX; the signed-rank test of paper 1.


MEASURES = ["nDCG@3", "RR", "Success@1"]


def evaluations(names=("a", "b", "c_2"), m=30, seed=0):
    rng = np.random.default_rng(seed)
    relevance, offsets = rng.integers(0, 3, 6 * m).astype(float), np.arange(0, 6 * m + 1, 6)
    relevance[::6] = 1  # something is relevant in each
    return {
        name: evaluate(relevance, relevance + (1 + i) * rng.normal(size=6 * m), MEASURES, offsets=offsets)
        for i, name in enumerate(names)
    }


@pytest.mark.parametrize("n", [1, 5, 11])
@pytest.mark.parametrize("rounded", [1, 9])
def test_few_signed_ranks_are_counted_over_all_signs_ties_too(n, rounded):
    d = np.round(np.random.default_rng(n).normal(size=n) + 0.3, rounded)
    kept = d[d != 0]
    ranks = stats.rankdata(np.abs(kept))
    sums = np.array([np.dot(signs, ranks) for signs in product((0, 1), repeat=len(kept))])
    w = ranks[kept > 0].sum()
    assert signed_rank_p(d) == pytest.approx(min(1, 2 * min(np.mean(sums <= w), np.mean(sums >= w))))


@pytest.mark.parametrize("n", [12, 40, 200, 700])
def test_signed_ranks_are_those_of_scipy(n):
    d = np.random.default_rng(n).normal(size=n) + 0.1
    method = "exact" if n <= 200 else "approx"
    assert signed_rank_p(d) == pytest.approx(stats.wilcoxon(d, method=method).pvalue, rel=1e-9)


def test_no_differences_are_no_evidence():
    assert signed_rank_p(np.zeros(4)) == 1.0


def test_sums_over_cutoffs_are_tested_as_in_paper_one():
    rng = np.random.default_rng(3)
    relevance, offsets = rng.integers(0, 3, 240).astype(float), np.arange(0, 241, 12)
    cutoffs = [f"nDCG@{k}" for k in range(1, 11)]
    a, b = (evaluate(relevance, relevance + s * rng.normal(size=240), cutoffs, offsets=offsets) for s in (1, 2))
    found = compare(a, b, measure=cutoffs, test="wilcoxon")
    d = sum(a[one] - b[one] for one in cutoffs)
    assert found.p == found.p_wilcoxon == pytest.approx(stats.wilcoxon(d, method="exact").pvalue)
    assert found.difference == pytest.approx(d.mean())
    assert found.measure == " + ".join(cutoffs)
    assert "by Wilcoxon's signed ranks" in str(found)
    with pytest.raises(MeasureError, match="was not evaluated"):
        compare(a, b, measure=["nDCG@1", "AP"])
    with pytest.raises(DataError, match="name one or several"):
        compare(a, b, measure=[])


def test_the_bootstrap_is_paired_and_repeats_itself():
    rng = np.random.default_rng(0)
    b = rng.normal(size=60)
    a = b + 0.1 + 0.01 * rng.normal(size=60)
    found = compare(a, b, interval="bootstrap")
    assert found.interval[1] - found.interval[0] < 0.01  # the queries' own spread does not matter
    assert found.interval == pytest.approx(compare(a, b).interval, abs=1e-3)
    assert found == compare(a, b, interval="bootstrap")
    assert found.interval_method == "bootstrap"
    assert "interval by the bootstrap" in str(found)


@pytest.mark.parametrize("by", ["t", "bootstrap"])
def test_an_interval_of_a_mean_covers_it_as_often_as_it_says(by):
    rng = np.random.default_rng(1)
    covered = []
    for _ in range(300):
        low, high = interval_of(rng.exponential(size=50), by, 0.9, 500, 0)
        covered.append(low <= 1 <= high)
    assert 0.83 < np.mean(covered) < 0.95


@pytest.mark.parametrize(("option", "value"), [("test", "sign"), ("interval", "jackknife"), ("confidence", 1.0)])
def test_what_is_no_test_is_refused(option, value):
    with pytest.raises(OptionError):
        compare([1.0, 2.0], [2.0, 1.0], **{option: value})


@pytest.mark.parametrize("test", ["randomization", "t", "wilcoxon"])
def test_all_p_values_are_raised_together(test):
    runs = evaluations()
    found = compare_runs(runs, test=test)
    single = {
        (name, one): compare(runs[name], runs["a"], measure=one, test=test) for name in ("b", "c_2") for one in MEASURES
    }
    assert found.comparisons == single
    assert list(found.p_holm.values()) == holm([one.p for one in single.values()]).tolist()
    assert "raised by Holm for 6 tests" in str(found)
    assert len(str(found).splitlines()) == 1 + 9 + 1
    for name, run in runs.items():
        for one in MEASURES:
            assert found.intervals[name, one] == run.interval(one)


def test_runs_of_different_queries_are_tested_on_those_that_both_have():
    runs = evaluations(("a", "b"))
    part = runs["b"].for_queries(runs["b"].query_ids[5:])
    found = compare_runs({"a": runs["a"], "b": part}, "RR")
    assert found.comparisons["b", "RR"].queries == 25
    assert found.runs["a"].n_evaluated("RR") == 30
    assert found.runs["b"].mean("RR") == part.mean("RR")
    with pytest.raises(DataError, match="1 queries in common"):
        compare_runs({"a": runs["a"], "b": runs["b"].for_queries([3])})
    with pytest.raises(DataError, match="pass evaluations"):
        compare_runs({})


def test_short_lists_are_not_compared_with_long_ones_in_silence(tmp_path):
    rng = np.random.default_rng(0)
    queries = SimpleNamespace(
        relevance=rng.integers(0, 3, 180).astype(float), offsets=np.arange(0, 181, 30),
        query_ids=tuple("abcdef"), document_ids=tuple(f"d{i % 30}" for i in range(180)),
    )  # fmt: skip
    write_qrels(tmp_path / "qrels", queries)
    found = {}
    for k in (10, 20, 19):
        write_run(tmp_path / "run", queries, rng.normal(size=180), k=k)
        found[k] = evaluate(*join(read_qrels(tmp_path / "qrels"), read_run(tmp_path / "run")), ["nDCG@10", "AP", "P@5"])
    assert found[20].lengths.tolist() == [20] * 6
    for measure in ("nDCG@10", "P@5"):
        compare(found[10], found[20], measure=measure)
    for one, other in ((10, 20), (20, 10)):
        with pytest.warns(
            ListLengthWarning, match="lists of at most 10 documents are compared with longer ones in 6 of 6 .* AP"
        ):
            compare(found[one], found[other], measure=["AP", "P@5"])
    with pytest.warns(ListLengthWarning, match="by AP, which counts what follows; cut all lists to 19"):
        compare_runs({"short": found[19], "long": found[20]})


def test_one_test_is_one():
    assert "raised by Holm for 1 test\n" in str(compare_runs(evaluations(("a", "b")), "RR")) + "\n"


def test_one_run_has_means_and_nothing_to_compare():
    found = compare_runs(evaluations(("a",)))
    assert found.comparisons == {}
    assert "Holm" not in str(found)
    assert [row["p"] for row in found.rows()] == [None] * 3


def test_frames_hold_what_is_printed():
    pytest.importorskip("pandas")
    runs = evaluations()
    table = runs["a"].to_frame()
    assert list(table.columns) == MEASURES
    assert table["RR"].tolist() == runs["a"]["RR"].tolist()
    found = compare_runs(runs)
    frame = found.to_frame()
    assert frame.shape[0] == 9
    own = frame[(frame["run"] == "b") & (frame["measure"] == "RR")].iloc[0]
    assert own["p_holm"] == found.p_holm["b", "RR"]
    assert (
        compare(runs["a"], runs["b"], measure="RR").to_frame().loc[0, "wins"]
        == compare(runs["a"], runs["b"], measure="RR").wins
    )


def test_latex_is_a_table_that_says_how_it_was_made():
    runs = evaluations()
    text = compare_runs(runs).to_latex(digits=3)
    lines = text.splitlines()
    assert lines[0].startswith("% convention default; 95% intervals by Student's t")
    assert lines[1] == r"\begin{tabular}{lrrr}"
    assert lines[3] == r"run & nDCG@3 & RR & Success@1 \\"
    assert lines[7].startswith(r"c\_2 & ")
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]
    for number, measure in enumerate(MEASURES, 1):
        cells = {name: lines[5 + row].rstrip("\\ ").split(" & ")[number] for row, name in enumerate(runs)}
        best = max(runs, key=lambda name: runs[name].mean(measure))
        assert cells[best].startswith(rf"\textbf{{{runs[best].mean(measure):.3f}}}")
        for name in ("b", "c_2"):
            assert (r"$^\dagger$" in cells[name]) == (compare_runs(runs).p_holm[name, measure] < 0.05)
    for one in (runs["a"].to_latex(), compare(runs["a"], runs["b"], measure="RR").to_latex()):
        assert one.count("{") == one.count("}")
        widths = {line.count("&") for line in one.splitlines() if line.endswith(r"\\")}
        assert len(widths) == 1


def test_letters_that_latex_reads_as_commands_are_written_out():
    assert latex_text("a_b & 5% #1 $x$ {y} ~ ^ \\z") == (
        r"a\_b \& 5\% \#1 \$x\$ \{y\} \textasciitilde{} \textasciicircum{} \textbackslash{}z"
    )


def test_plots_show_means_and_differences():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    runs = evaluations()
    assert [text.get_text() for text in runs["a"].plot().get_yticklabels()] == MEASURES
    assert len(compare_runs(runs).plot().get_legend().get_texts()) == 3
    found = compare(runs["a"], runs["b"], measure="nDCG@3")
    heights = [bar.get_height() for bar in found.plot().patches[: found.queries]]
    assert heights == sorted(found.differences.tolist(), reverse=True)
    plt.close("all")
