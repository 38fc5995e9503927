"""The convention "trec" against trec_eval itself (pytrec_eval) and ir_measures: runs of part of a pool, ties, missing
queries, unjudged documents."""

import re

import numpy as np
import pytest

from rankopt.measures import evaluate, join, parse, read_qrels, read_run

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
