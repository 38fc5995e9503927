"""Traces: forms of any kind are read back as they were, and a recorded run is the run that it records."""

import io
import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from formulations import (
    RankingSet,
    constrained_ranking,
    first_relevant_ranking,
    margin_dual,
    pairwise_ranking,
    ranking,
    relevance_ranking,
    solve,
    solve_batch,
)
from formulations.problems.assignment import Assignment
from formulations.problems.relevance_losses import TableLoss
from formulations.serialization import array_from_bytes, array_to_bytes, read_zip, write_zip
from formulations.testing.instances import FORMS, instances
from rankopt.constraints import Admissible
from rankopt.data import load_sample
from rankopt.errors import DataError, OptionError
from rankopt.experiments import Outcome, ProblemTrace, SolverSwap
from rankopt.experiments.recording import Log, Recorder, argmax_trace
from rankopt.experiments.replay import batch_claim, blank_rows, tied_pairs
from rankopt.experiments.traces import RecordedProblem, traces_of
from rankopt.rankers import LargeMarginRanker


@pytest.fixture(scope="module")
def train():
    return load_sample("les-miserables").train.select(range(6))


@pytest.mark.parametrize("form", FORMS)
def test_a_trace_of_any_form_is_read_back_as_it_was(form, tmp_path):
    problems = [problem for _, problem, _ in instances(form)]
    trace = traces_of(problems)[0]
    trace.save(tmp_path / "trace.npz")
    again = ProblemTrace.load(tmp_path / "trace.npz")
    assert again.name == trace.name
    assert [entry.known for entry in again.problems] == [entry.known for entry in trace.problems]
    for one, other in zip(trace.problems, again.problems, strict=True):
        assert one.form.shape_text == other.form.shape_text
        assert solve(other.form).value == pytest.approx(one.known[0], abs=1e-9)


def test_sets_are_stored_once_and_what_is_no_problem_is_not(tmp_path):
    shared = RankingSet(4, 2).at_most(1, by=["a", "a", "b", None])
    trace = traces_of([constrained_ranking(np.full((2, 4), float(i)), shared) for i in range(3)])[0]
    trace.save(tmp_path / "trace.npz")
    assert (tmp_path / "trace.npz").read_bytes().count(b'"record": "RankingSet"') == 1
    back = [one.form for one in ProblemTrace.load(tmp_path / "trace.npz").problems]
    assert back[0].admissible is back[2].admissible
    with pytest.raises(DataError, match="needs a name and a form"):
        RecordedProblem("x", object())
    with pytest.raises(OptionError, match="cannot be saved because a Own is not data; restate the problem as one of"):
        traces_of([Own([[1.0, 2.0]])])[0].save(tmp_path / "own.npz")


class Own(Assignment):
    """A problem class that no table lists."""


def test_a_damaged_trace_is_an_error(tmp_path):
    (tmp_path / "trace.npz").write_bytes(b"nothing")
    with pytest.raises(DataError, match="record it again"):
        ProblemTrace.load(tmp_path / "trace.npz")


def test_a_recorded_run_meets_what_training_asks_and_changes_nothing(train):
    log = Log(most=8)
    options = {"bound": "convex", "lam": 1.0, "max_iter": 20, "tol": 1e-9, "engine": "serial"}
    with pytest.warns(match="stopped before"):
        usual = LargeMarginRanker("nDCG@5", **options).fit(train)
    with pytest.warns(match="stopped before"):
        ranker = LargeMarginRanker("nDCG@5", argmax_solver=Recorder(log), callbacks=[log.stepped], **options).fit(train)
    np.testing.assert_array_equal(ranker.coef_, usual.coef_)
    assert min(log.heard) == 0
    assert max(log.heard) == 20  # the last evaluation, after 20 steps
    assert len(log.heard) <= 9
    trace = argmax_trace(log, 9, seed=0)
    assert len(trace.problems) == 9
    assert len({entry.step for entry in trace.problems}) == 3
    assert [entry.name for entry in trace.problems] == [entry.name for entry in argmax_trace(log, 9, seed=0).problems]
    first = trace.problems[0]
    assert first.known == (solve(first.form).value, solve(first.form).bound)


@pytest.mark.study
def test_traces_under_constraints_hold_the_sets(train):
    ranker = LargeMarginRanker("nDCG@3", constraints=Admissible(k=3).at_most(2, by="community"), max_iter=3, tol=0.5)
    rows = SolverSwap(
        train, argmax_solvers=("highs",), master_solvers=(), methods=(), ranker=ranker, problems=3, repeats=1
    ).run()
    argmax = [row for row in rows if row.kind == "argmax"]
    assert len(argmax) >= 2  # as many steps as training takes
    assert {row.status for row in argmax} == {Outcome.SOLVED}
    assert "under" in argmax[0].shape_text
    assert [row.role for row in rows if row.kind == "training"] == ["argmax", "argmax"]


def test_ties_are_pairs_whose_exchange_costs_nothing():
    distinct = ranking([3.0, 2.0, 1.0], [0.0, 0.0, 0.0], discount=[1.0, 1.0, 1.0], position_weights=[3.0, 2.0, 1.0])
    assert tied_pairs(distinct, np.arange(3)) == 0
    tied = ranking([3.0, 2.0, 2.0, 2.0], np.zeros(4), discount=[1.0, 1.0], position_weights=[3.0, 2.0])
    assert tied_pairs(tied, np.array([0, 1])) == 2  # document 1 with 2 or 3; that 2 and 3 are left out changes nothing
    flat = ranking(np.zeros(3), np.zeros(3), discount=[1.0, 0.5, 0.2], position_weights=[3.0, 2.0, 1.0])
    assert tied_pairs(flat, np.arange(3)) == 3
    blocks = RankingSet(4, 2).at_most(1, by=["a", "a", "b", "b"])
    equal = constrained_ranking(np.ones((2, 4)), blocks)
    # 0 and 2 may change places, 0 may go for 1, 2 for 3; 0 for 3 or 2 for 1 would take two documents of one block.
    assert tied_pairs(equal, np.array([0, 2])) == 3
    assert tied_pairs(margin_dual([[1.0]], [1.0], lam=1.0), np.ones(1)) is None


# Traces of others: a damaged or hostile file is a DataError of one line, and never makes a solver look wrong.


def saved(trace, path):
    """The JSON and the arrays of the file of a trace."""
    trace.save(path)
    members = read_zip(path)
    manifest = json.loads(members.pop("trace.json"))
    return manifest, {name: array_from_bytes(content) for name, content in members.items()}


def written(path, manifest, parts):
    """A file with these parts and the right digests: what someone who knows the format can make."""
    arrays = {name: array_to_bytes(array) for name, array in parts.items()}
    write_zip(path, {"trace.json": json.dumps(manifest).encode(), **arrays})


@pytest.fixture(scope="module")
def every(tmp_path_factory):
    """A trace of one problem of every form: its JSON and its arrays."""
    folder = tmp_path_factory.mktemp("traces")
    forms = [next(iter(instances(form)))[1] for form in FORMS]
    blocks = RankingSet(4, 2).at_most(1, by=["a", "a", "b", None]).forbid([0], positions=[1])
    blocks = blocks.at_least(share=0.5, documents=[1, 3], name="shared")
    forms += [constrained_ranking(np.arange(8.0).reshape(2, 4), blocks)]
    return saved(traces_of(forms)[0], folder / "good.npz")


def read(path):
    """The trace; None where it is refused, in one line."""
    said = ""
    try:
        return ProblemTrace.load(path)
    except DataError as error:
        said = str(error)
    assert 0 < len(said) < 600
    assert "\n" not in said
    return None


def spoilt(value, rng):
    """Something else in place of a part of a JSON."""
    odd = [None, -1, 0, 1, 2**70, 1e308, "", "x", "\u202e", [], {}, True, {"array": "arrays/0.npy"},
           {"array": "arrays/1000.npy"}, {"same": 0}, {"same": -1}, {"record": "RankingSet", "fields": {}},
           {"tuple": [0]}, {"csr": [0, 0, 0], "shape": [1, 1]}, [[]], "../x", float("nan"),
           {"csr": [{"array": "arrays/0.npy"}] * 3, "shape": [1, 1]}]  # fmt: skip
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = list(value)[rng.integers(len(value))]
        if rng.random() < 0.1:
            return {name: part for name, part in value.items() if name != key}
        return {**value, key: spoilt(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.95:
        place = int(rng.integers(len(value)))
        if rng.random() < 0.1:
            return value[:place] + value[place + 1 :]
        return [*value[:place], spoilt(value[place], rng), *value[place + 1 :]]
    return odd[rng.integers(len(odd))]


def spoilt_array(array, rng):
    kinds = ("entry", "shape", "type", "short", "flip")
    kind = kinds[rng.integers(len(kinds))]
    if kind == "shape" or not array.size:
        return array.reshape(-1, 1) if rng.random() < 0.5 else array.ravel()
    if kind == "type":
        return array.astype([np.int8, np.float32, np.bool_, np.uint64][rng.integers(4)])
    if kind == "short":
        return array[:-1]
    changed = array.copy()
    odd = [-1, 2**30, 0, 7] if array.dtype.kind in "biu" else [np.nan, np.inf, -1e200, -1.0, 0.5, 1e18]
    changed.flat[rng.integers(array.size)] = np.array(odd[rng.integers(len(odd))]).astype(array.dtype)
    return changed


@pytest.mark.study
@pytest.mark.filterwarnings("ignore")
def test_whatever_is_changed_a_trace_is_read_or_refused_in_one_line(every, tmp_path):
    meta, parts = every
    rng = np.random.default_rng(0)
    refused = 0
    for attempt in range(160):
        changed, arrays = meta, dict(parts)
        if attempt % 2:
            changed = spoilt(meta, rng)
        else:
            name = list(parts)[rng.integers(len(parts))]
            arrays[name] = spoilt_array(parts[name], rng)
        written(tmp_path / "bad.npz", changed, arrays)
        trace = read(tmp_path / "bad.npz")
        if trace is None:
            refused += 1
            continue
        rows = blank_rows(trace, "exact", 1e-6, 0, {})
        assert all(isinstance(row.shape_text, str) and np.isfinite(row.scale) for row in rows)
    assert 80 < refused < 160


def test_damaged_bytes_are_refused(every, tmp_path):
    written(tmp_path / "good.npz", *every)
    good = (tmp_path / "good.npz").read_bytes()
    rng = np.random.default_rng(1)
    for _ in range(60):
        bad = bytearray(good[: rng.integers(1, len(good))] if rng.random() < 0.3 else good)
        for place in rng.integers(0, len(bad), 3):
            bad[place] ^= 1 << rng.integers(8)
        (tmp_path / "bad.npz").write_bytes(bytes(bad))
        read(tmp_path / "bad.npz")


def test_an_array_is_as_large_as_its_header_says(every, tmp_path):
    manifest, parts = every
    arrays = {name: array_to_bytes(array) for name, array in parts.items()}
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)})
    text = json.dumps(manifest).encode()
    write_zip(tmp_path / "bomb.npz", {"trace.json": text, **arrays, "arrays/0.npy": header.getvalue()})
    with pytest.raises(DataError, match="does not fill 0 bytes"):
        ProblemTrace.load(tmp_path / "bomb.npz")
    write_zip(tmp_path / "text.npz", {"trace.json": b"[" * 10**6})
    with pytest.raises(DataError, match=r"not its JSON .maximum recursion depth"):
        ProblemTrace.load(tmp_path / "text.npz")
    with zipfile.ZipFile(tmp_path / "packed.npz", "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in {"trace.json": text, "SHA256SUMS": b"", "arrays/0.npy": bytes(10**8)}.items():
            file.writestr(name, content)
    with pytest.raises(DataError, match="compressed or encrypted"):
        ProblemTrace.load(tmp_path / "packed.npz")


def test_arrays_that_are_missing_or_unknown_are_refused(every, tmp_path):
    manifest, parts = every
    for changed in (dict(list(parts.items())[1:]), {**parts, "arrays/1000.npy": np.zeros(1)}):
        written(tmp_path / "bad.npz", manifest, changed)
        with pytest.raises(DataError, match=r"is no value|nothing names"):
            ProblemTrace.load(tmp_path / "bad.npz")


def test_a_file_of_a_development_version_is_told_so(tmp_path):
    np.savez_compressed(tmp_path / "old.npz", meta=np.zeros(3, dtype=np.uint8), known=np.zeros((1, 2)))
    with pytest.raises(DataError, match=r"as in files of development versions.*record it again"):
        ProblemTrace.load(tmp_path / "old.npz")


def test_objects_are_never_unpickled(every, tmp_path):
    manifest, parts = every
    content = io.BytesIO()
    np.save(content, np.array([{}], dtype=object))
    arrays = {name: array_to_bytes(array) for name, array in parts.items()}
    write_zip(
        tmp_path / "bad.npz",
        {"trace.json": json.dumps(manifest).encode(), **arrays, "arrays/0.npy": content.getvalue()},
    )
    with pytest.raises(DataError, match="its type is object"):
        ProblemTrace.load(tmp_path / "bad.npz")


def test_derived_data_of_a_file_are_recomputed(tmp_path):
    """A Gram matrix and a ranking without its set are trusted by the constructors, for speed, but not in a file."""
    problem = margin_dual(np.eye(2), [1.0, 2.0], lam=1.0)
    known = replace(problem, known_gram=problem.slopes @ problem.slopes.T)
    manifest, parts = saved(traces_of([known])[0], tmp_path / "gram.npz")
    name = manifest["trace"]["fields"]["problems"]["tuple"][0]["fields"]["form"]["fields"]["known_gram"]["array"]
    assert ProblemTrace.load(tmp_path / "gram.npz").problems[0].form.known_gram is not None
    written(tmp_path / "gram.npz", manifest, {**parts, name: 2.0 * parts[name]})
    with pytest.raises(DataError, match="Gram matrix of other slopes"):
        ProblemTrace.load(tmp_path / "gram.npz")


@pytest.mark.study
def test_what_a_trace_claims_to_be_attained_makes_nobody_wrong(tmp_path):
    problem = ranking([0.5, 0.2, 0.1], [3.0, 0.0, 1.0], discount=[1.0, 0.6], position_weights=[2.0, 1.0])
    trace = traces_of([problem])[0]
    manifest, parts = saved(trace, tmp_path / "lie.npz")
    manifest["trace"]["fields"]["problems"]["tuple"][0]["fields"]["known"] = {"tuple": [99.0, 99.0]}
    written(tmp_path / "lie.npz", manifest, parts)
    lie = ProblemTrace.load(tmp_path / "lie.npz")
    assert lie.name == trace.name
    rows = SolverSwap(lie, argmax_solvers=("highs", "cp_sat"), repeats=1).run()
    assert {row.status for row in rows} == {Outcome.SOLVED}
    assert lie.reevaluate().problems[0].known == (solve(problem).value, solve(problem).bound)


@pytest.mark.study
def test_a_trace_may_not_name_a_file_elsewhere(every, tmp_path):
    meta, parts = every
    fields = {**meta["trace"]["fields"], "label": "../../argmax"}
    written(tmp_path / "named.npz", {**meta, "trace": {**meta["trace"], "fields": fields}}, parts)
    folder = tmp_path / "here"
    folder.mkdir()
    trace = ProblemTrace.load(tmp_path / "named.npz")
    list(SolverSwap(trace, argmax_solvers=("networkx",), repeats=1).rows(folder / "rows.jsonl"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here", "named.npz"]
    assert all(path.parent == folder / "rows.traces" for path in folder.rglob("*.npz"))


# Traces of pattern rankings: recorded from batches, read back, replayed by our ways, flows and linear programs.


def batch(n=8, count=6):
    random = np.random.default_rng(3)
    grades = random.integers(0, 3, n * count)
    return pairwise_ranking(random.normal(size=n * count), grades, "AP", offsets=np.arange(count + 1) * n)


def test_what_a_training_asks_is_recorded_and_answered_as_usual():
    log, asked = Log(), batch()
    for _ in range(3):
        answer = solve_batch(asked, Recorder(log))
        usual = solve_batch(asked)
        np.testing.assert_array_equal(answer.order, usual.order)
        np.testing.assert_allclose(answer.value, usual.value, atol=1e-13)
        asked = asked.with_scores(0.5 * asked.scores)
        log.stepped()
    trace = argmax_trace(log, 9, seed=0)
    assert len(trace.problems) == 9
    assert {entry.step for entry in trace.problems} == {0, 1, 2}
    assert all(entry.known[1] - entry.known[0] < 1e-12 for entry in trace.problems)


@pytest.mark.study
@pytest.mark.parametrize("others", [(), pytest.param(("highs", "networkx"), marks=pytest.mark.study)])
def test_a_trace_of_patterns_is_read_back_and_replayed(tmp_path, others):
    random = np.random.default_rng(4)
    scores, grades = random.normal(size=7), random.integers(0, 3, 7)
    own = TableLoss(lambda good, bads, relevant, others: np.exp(-good - bads) / max(relevant, 1))
    problems = [
        pairwise_ranking(scores, grades, "nDCG@3"),
        first_relevant_ranking(scores, grades, "RR"),
        relevance_ranking(scores, grades, "ERR", position_weights=0.5 ** np.arange(7.0)),
        pairwise_ranking(scores, grades, own),
    ]
    trace = traces_of(problems)[0]
    trace.save(tmp_path / "trace.npz")
    again = ProblemTrace.load(tmp_path / "trace.npz")
    assert again.name == trace.name
    for one, problem in zip(again.problems, problems, strict=True):
        assert solve(one.form).value == pytest.approx(solve(problem).value, abs=1e-12)
    rows = SolverSwap(trace, argmax_solvers=("exact", *others, "scipy"), repeats=1).run()
    told = {name: {row.status for row in rows if row.solver == name} for name in ("exact", *others, "scipy")}
    assert told.pop("scipy") == {Outcome.UNSUPPORTED}
    assert all(one == {Outcome.SOLVED} for one in told.values())


def test_false_claims_in_batches_are_told():
    form = batch()[0]
    entry = RecordedProblem.judged("one", form)
    log = Log()
    assert batch_claim(entry, Recorder(log)) is None

    class Boasting(Recorder):
        def solve_batch(self, batch):
            from dataclasses import replace

            answer = solve_batch(batch)
            return replace(answer, bound=answer.bound - 1.0)

    assert "reports the bound" in batch_claim(entry, Boasting(log))


def test_ties_of_patterns_are_exchanges_that_change_nothing():
    tied = pairwise_ranking([1.0, 1.0, 0.0], [0, 0, 1], "AP")
    assert tied_pairs(tied, np.array([0, 1, 2])) == 1
    assert tied_pairs(pairwise_ranking(np.zeros(3), np.zeros(3), "AP"), np.arange(3)) == 3
    assert tied_pairs(pairwise_ranking([1.0], [1], "AP"), np.arange(1)) == 0


# Problems with soft constraints on traces: stored and read, the same; ties count what is paid.


def test_a_soft_problem_is_stored_and_read(tmp_path):
    stated = RankingSet(5, 3).at_most(1, documents=[0, 1, 2], name="few").forbid(4, 0, name="late")
    problem = constrained_ranking(
        np.outer([3.0, 2.0, 1.0], [5.0, 4.0, 3.0, 2.0, 1.0]), stated.penalized("few", penalty=0.5)
    )
    traces_of([problem])[0].save(tmp_path / "soft.npz")
    again = ProblemTrace.load(tmp_path / "soft.npz").problems[0].form
    first, second = solve(problem), solve(again)
    assert (first.value, first.violations) == (second.value, second.violations)
    assert first.order.tolist() == second.order.tolist()


def test_an_exchange_that_pays_another_sum_is_no_tie():
    free = RankingSet(3, 2).at_most(0, documents=[0], name="none").penalized("none", penalty=0.0)
    problem = constrained_ranking(np.ones((2, 3)), free)
    assert tied_pairs(problem, np.array([1, 2])) == 3
    dear = constrained_ranking(np.ones((2, 3)), free.penalized("none", penalty=1.0))
    assert tied_pairs(dear, np.array([1, 2])) == 1
