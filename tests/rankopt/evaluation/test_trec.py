"""TREC files: in and out, strict, and the same to trec_eval as to us."""

import gzip
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from rankopt.errors import DataError, OptionError
from rankopt.measures import conventions, evaluate, join, read_qrels, read_run, write_qrels, write_run

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


def test_depth_keeps_the_first_documents(tmp_path):
    write_run(tmp_path / "run", QUERIES, SCORES, depth=1)
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
