"""Qrels of three columns with a header, tab separated (BEIR's qrels/test.tsv), and runs of MS MARCO's three columns.

Like: beir-cellar/beir#43, castorini/anserini#1523. Right: nDCG@10 1 and 1 below, or an error that says what to do. Seen: '3 columns, but a
line is ...' without a cure.
"""
import pathlib
import tempfile

from rankopt.measures import evaluate, join, read_qrels, read_run

failed = []
with tempfile.TemporaryDirectory() as folder:
    tsv, qrels, run, three = (pathlib.Path(folder, name) for name in ("q.tsv", "q.qrels", "r.run", "r.tsv"))
    tsv.write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\n")
    qrels.write_text("q1 0 d1 1\nq1 0 d2 0\n")
    run.write_text("q1 Q0 d1 1 2.0 x\nq1 Q0 d2 2 1.0 x\n")
    three.write_text("q1\td1\t1\nq1\td2\t2\n")
    for judged, ranked in ((tsv, run), (qrels, three)):
        try:
            value = evaluate(*join(read_qrels(judged), read_run(ranked)), "nDCG@10", convention="trec").mean()
            assert value == 1.0, value
        except Exception as error:
            failed.append((judged.name, ranked.name, str(error)))
assert not failed, failed
