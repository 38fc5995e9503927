"""The command line: a ranker trained, applied and measured through files; TREC runs; errors with their exit codes."""

import gzip
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import threading

import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from problems.command import called

from formulations import ranking
from formulations.serialization import write_file
from rankopt.cli import COMMANDS, main, rankopt
from rankopt.commands.options import RANKERS, OutputPath
from rankopt.commands.options import options_of as parameters_of
from rankopt.constraints import Admissible
from rankopt.data import Queries, load_sample, read_attributes, read_svmlight, save_queries, write_svmlight
from rankopt.errors import DataError, OptionError
from rankopt.experiments.traces import traces_of
from rankopt.measures import compare, evaluate, holm, join, read_qrels, read_run, write_qrels, write_run
from rankopt.optimize.concave_convex import Clock
from rankopt.rankers import LargeMarginRanker, LossRanker, RegressionRanker, load_model


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    sample = load_sample("digits")
    write_svmlight(sample.train, folder / "train.txt")
    write_svmlight(sample.test, folder / "test.txt.gz")
    return folder


def run(*arguments, code=0):
    """The output of the command, which must end with this exit code."""
    return told_by(called(*arguments), code)


def run_apart(*arguments, code=0):
    """The same of the installed command, in a process of its own."""
    words = [sys.executable, "-m", "rankopt", *map(str, arguments)]
    return told_by(subprocess.run(words, capture_output=True, text=True, timeout=300), code)


def told_by(done, code):
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def test_train_predict_evaluate(files):
    model, scores = files / "m.rankopt", files / "scores.txt"
    trained = json.loads(
        run(
            "train", files / "train.txt", "--model", model, "--validate", files / "test.txt.gz",
            "--lam", 1, "--lam", 0.1, "--measure", "nDCG@5", "--position-weights", "linear",
            "--argmax-solver", "scipy", "--master-solver", "qpsolvers:piqp", "--json",
        )
    )  # fmt: skip
    assert [row["lam"] for row in trained["tried"]] == [1.0, 0.1]
    assert trained["chosen"]["validation"] == max(row["validation"] for row in trained["tried"])
    for row in trained["tried"]:
        assert row["bound"] <= row["objective"]
    run("predict", model, files / "test.txt.gz", "--output", scores)
    test = read_svmlight(files / "test.txt.gz")
    written = np.array([float(line) for line in scores.read_text().splitlines()])
    np.testing.assert_array_equal(written, load_model(model).predict(test))
    by_scores = json.loads(run_apart("evaluate", files / "test.txt.gz", "--scores", scores, "--json"))
    by_model = json.loads(run("evaluate", files / "test.txt.gz", "--model", model, "--json"))
    assert by_scores["runs"][str(scores)]["measures"] == by_model["runs"][str(model)]["measures"]


def test_a_loss_is_trained_by_its_name(files):
    model = files / "pairwise.rankopt"
    run("train", files / "train.txt", "--model", model, "--loss", "pairwise", "--lam", 0.1)
    trained = load_model(model)
    assert trained.certificate_.kind == "global"
    own = LossRanker("pairwise", lam=0.1).fit(read_svmlight(files / "train.txt"))
    np.testing.assert_array_equal(trained.coef_, own.coef_)


@pytest.mark.study
def test_decays_are_tried_with_each_lam_and_features_are_left_out(files):
    model = files / "sparse.rankopt"
    trained = json.loads(
        run(
            "train", files / "train.txt", "--model", model, "--validate", files / "test.txt.gz", "--json",
            "--penalty", "l1", "--lam", 0.02, "--lam", 0.005,
            "--position-weights", "log@10", "--position-weights", "linear",
        )
    )  # fmt: skip
    tried = [(row["position_weights"], row["lam"]) for row in trained["tried"]]
    assert tried == [(decay, lam) for decay in ("log@10", "linear") for lam in (0.02, 0.005)]
    assert trained["chosen"]["validation"] == max(row["validation"] for row in trained["tried"])
    kept = load_model(model)
    assert kept.penalty == "l1"
    assert (kept.position_weights, kept.lam_) == (trained["chosen"]["position_weights"], trained["chosen"]["lam"])
    assert kept.get_support().sum() == trained["chosen"]["features"] < kept.n_features_in_
    told = run(
        "train",
        files / "train.txt",
        "--model",
        model,
        "--position-weights",
        "log",
        "--position-weights",
        "linear",
        code=2,
    )
    assert "several --position-weights need --validate FILE" in told


def test_several_runs_are_compared_in_pairs(files):
    rng = np.random.default_rng(0)
    test = read_svmlight(files / "test.txt.gz")
    for name, noise in (("good", 0.1), ("bad", 100.0)):
        values = test.to_input_order(test.relevance + noise * rng.normal(size=test.n_documents))
        (files / name).write_text("".join(f"{value!r}\n" for value in values.tolist()))
    told = json.loads(
        run("evaluate", files / "test.txt.gz", "--scores", files / "bad", "--scores", files / "good", "--json")
    )
    assert all(pair["difference"] > 0 and pair["p_randomization"] < 0.05 for pair in told["compared"])
    shown = run("evaluate", files / "test.txt.gz", "--scores", files / "bad", "--scores", files / "good")
    assert "95% interval" in shown
    assert "against" in shown


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["train", "{train}"], 2, "--model"),
        (["train", "{missing}", "--model", "{out}"], 2, "does not exist"),
        (["train", "{train}", "--model", "{out}", "--lam", "1", "--lam", "2"], 2, "--validate"),
        (["train", "{train}", "--model", "{out}", "--lam", "-1"], 5, "--lam must be a number > 0"),
        (["train", "{train}", "--model", "{out}", "--init", "bad"], 5, "--init = 'bad' is unknown"),
        (["train", "{train}", "--model", "{out}", "--max-iter", "0"], 5, "--max-iter must be an integer >= 1"),
        (["train", "{train}", "--model", "{out}", "--ranker", "smooth", "--bandwidth", "-1"], 5, "--bandwidth must be"),
        (["cofi", "--item-prior", "bad"], 5, "--item-prior must be 'auto', 'mean' or 'means'"),
        (["train", "{train}", "--model", "{out}", "--measure", "nDGC@10"], 5, "nDCG"),
        (["train", "{train}", "--model", "{out}", "--argmax-solver", "gurobi"], 5, "known are"),
        (["train", "{broken}", "--model", "{out}"], 3, "line 2"),
        (["train", "{train}", "--model", "{missing}/m"], 2, "there is no folder"),
        (["predict", "{train}", "{train}", "--output", "-"], 4, "ModelError"),
        (["predict", "{train}", "{train}", "--output", "-", "--json"], 2, "standard output"),
        (["evaluate", "{train}", "--scores", "{short}", "--scores", "{short}"], 2, "twice"),
        (["evaluate", "{train}"], 2, "--scores"),
        (["evaluate", "{train}", "--scores", "{broken}"], 3, "one score a line"),
        (["evaluate", "{train}", "--scores", "{short}"], 3, "2 scores"),
        (["evaluate", "{train}", "--scores", "{short}", "--convention", "leto"], 5, "letor2"),
        (["train", "{train}", "--model", "{out}", "--lam", "0.1,1"], 2, "repeat the option: --lam 0.1 --lam 1"),
        (["train", "{train}", "--model", "{out}", "--validate", "{train}", "--validate", "{short}"], 2, "occurs twice"),
        (["rank", "{train}", "{model}"], 4, "{model} may be the model and {train} the data: swap them"),
        (["evaluate", "{model}", "{train}"], 2, "rankopt evaluate {train} --model {model}"),
        (["evaluate", "{short}", "--qrels", "{parquet}"], 3, "write its columns as text: query 0 document grade"),
        (["frobnicate"], 2, "No such command"),
        (["train", "{train}", "--model", "{out}", "--loss", "lambdarank"], 5, "known are pairwise"),
        (["train", "{train}", "--model", "{out}", "--loss", "pairwise", "--bound", "convex"], 2, "--bound is"),
    ],
)
def test_errors_name_the_cure_and_have_codes(files, arguments, code, message):
    (files / "broken.txt").write_text("1 qid:1 1:0.5\n0 qid:1 1:nan\n")
    (files / "short.txt").write_text("0.5\n0.25\n")
    (files / "q.parquet").write_bytes(b"PAR1")
    RegressionRanker().fit(read_svmlight(files / "train.txt")).save(files / "right.rankopt")
    places = {
        "train": files / "train.txt", "missing": files / "missing", "out": files / "out.rankopt",
        "broken": files / "broken.txt", "short": files / "short.txt",
        "parquet": files / "q.parquet", "model": files / "right.rankopt",
    }  # fmt: skip
    printed = run(*(argument.format(**places) for argument in arguments), code=code)
    assert message.format(**places) in printed
    assert "Traceback" not in printed
    assert not (files / "out.rankopt").exists()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_help_text(name):
    command = rankopt.get_command(None, name)
    kinds = [[*command.params]]
    if name == "train":
        kinds = [[*parameters_of(estimator).values()] for estimator in RANKERS.values()]
    for option in (one for several in kinds for one in several if isinstance(one, click.Option)):
        text = (option.help or "").split("  [default")[0].strip()
        assert len(text) >= 10, f"{name} {option.opts}: {text!r}"
        assert not text.rstrip(".").endswith((" the", " of", " their", " as")), f"{name} {option.opts}: {text!r}"


@pytest.mark.study
def test_exit_codes_and_words_leave_the_process(files):
    told = run_apart("train", files / "train.txt", "--model", files / "none.rankopt", "--lam", -1, code=5)
    assert "must be a number > 0" in told
    assert "Traceback" not in told
    assert not (files / "none.rankopt").exists()


@pytest.mark.study
def test_scores_go_down_a_pipe_and_leave_it_a_pipe(files):
    model, pipe = files / "piped.rankopt", files / "pipe"
    LargeMarginRanker(bound="convex", lam=0.1).fit(read_svmlight(files / "train.txt")).save(model)
    os.mkfifo(pipe)
    command = [
        sys.executable,
        "-m",
        "rankopt",
        "predict",
        str(model),
        str(files / "test.txt.gz"),
        "--output",
        str(pipe),
    ]
    with subprocess.Popen(command) as process, open(pipe) as written:
        scores = written.read().split()
        assert process.wait(timeout=60) == 0
    assert len(scores) == read_svmlight(files / "test.txt.gz").n_documents
    assert pipe.is_fifo()


def test_the_doctor_finds_every_solver_healthy():
    report = json.loads(run("doctor", "--json"))
    assert {name: report["versions"][name] for name in ("pandas", "lightgbm")} == {
        name: importlib.metadata.version(name) for name in ("pandas", "lightgbm")
    }
    assert report["healthy"], [row for row in report["solvers"] if not row["works"]]
    assert {"exact", "scipy", "ortools", "highs", "networkx", "active_set"} <= {r["solver"] for r in report["solvers"]}


def test_help_loads_nothing_heavy():
    told = run_apart("--help")
    assert all(name in told for name in COMMANDS)
    code = (
        "import sys; from rankopt.cli import rankopt; rankopt(['--help'], standalone_mode=False);"
        "sys.exit(', '.join({'numpy', 'sklearn', 'cvxpy', 'numba', 'scipy', 'matplotlib'} & {*sys.modules}) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command):
    told = CliRunner().invoke(rankopt, [command, "--help"])
    assert told.exit_code == 0
    assert "--json" in told.output


def test_ctrl_c_saves_the_best_weights(files, monkeypatch, capsys):
    model = files / "interrupted.rankopt"
    record = Clock.record

    def interrupted(clock, state, number):
        if number == 6:
            raise KeyboardInterrupt
        return record(clock, state, number)

    monkeypatch.setattr(Clock, "record", interrupted)
    monkeypatch.setattr(
        sys,
        "argv",
        ["rankopt", "train", str(files / "train.txt"), "--model", str(model), "--init", "regression", "--lam", "0.1"],
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert "interrupted" in capsys.readouterr().err
    certificate = load_model(model).certificate_
    assert certificate.stop == "interrupted from the keyboard"
    assert certificate.bound <= certificate.primal


def drawn(features):
    rng = np.random.default_rng(features)
    return Queries.from_arrays(rng.normal(size=(12, features)), rng.integers(0, 3, 12), group=[6, 6])


@pytest.mark.parametrize("width", [3, 7])
@pytest.mark.parametrize(
    "command",
    [
        ["predict", "{model}", "{data}", "--output", "{scores}"],
        ["rank", "{model}", "{data}", "--k", "2"],
        ["evaluate", "{data}", "--model", "{model}"],
    ],
)
def test_a_stored_folder_of_another_width_is_refused(tmp_path, command, width):
    names = {name: str(tmp_path / name) for name in ("model", "data", "scores")}
    RegressionRanker().fit(drawn(5)).save(names["model"])
    save_queries(drawn(width), names["data"])
    run = CliRunner().invoke(rankopt, [word.format(**names) for word in command])
    assert isinstance(run.exception, DataError)
    assert f"{names['data']} has {width} features and needs 5" in str(run.exception)
    assert not (tmp_path / "scores").exists()


def test_a_file_with_more_features_than_the_model_is_refused(tmp_path):
    model, data = str(tmp_path / "model"), str(tmp_path / "data.txt")
    RegressionRanker().fit(drawn(5)).save(model)
    write_svmlight(drawn(7), data)
    run = CliRunner().invoke(rankopt, ["predict", model, data, "--output", str(tmp_path / "scores")])
    assert isinstance(run.exception, DataError)
    assert "feature 6 but n_features gives 5 features" in str(run.exception)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Ten queries of eight documents, two models, a CSV of sites, and qrels of most documents."""
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    features = rng.normal(size=(80, 3))
    grades = np.clip(np.round(features[:, 0] + rng.normal(size=80)), 0, 2)
    names = [f"d{i}" for i in rng.permutation(80)]
    queries = Queries.from_arrays(features, grades, qid=np.repeat(np.arange(10), 8), documents=names)
    write_svmlight(queries, folder / "data.txt")
    lines = [f"{i // 8},{name},{'ab'[i % 2]}\n" for i, name in enumerate(names)]
    (folder / "a.csv").write_text("qid,docid,site\n" + "".join(lines))
    RegressionRanker(0.0).fit(queries).save(folder / "m.rankopt")
    RegressionRanker(1e6).fit(queries).save(folder / "n.rankopt")
    write_qrels(folder / "all", queries)
    kept = [line for line in (folder / "all").read_text().splitlines() if rng.random() < 0.8]
    (folder / "qrels").write_text("\n".join(kept) + "\n")
    return folder


def invoked(*arguments):
    return CliRunner().invoke(rankopt, [str(argument) for argument in arguments])


def ranked(folder, *options, model="m.rankopt"):
    done = invoked("rank", folder / model, folder / "data.txt", "--format", "trec", *options)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_run_is_the_ranking_under_a_name(folder, tmp_path):
    lines = [line.split() for line in ranked(folder, "--k", 3, "--tag", "ours").splitlines()]
    assert {(line[1], line[5]) for line in lines} == {("Q0", "ours")}
    assert [line[3:5] for line in lines] == [["1", "3"], ["2", "2"], ["3", "1"]] * 10
    queries = read_svmlight(folder / "data.txt")
    ranker = RegressionRanker(0.0).fit(queries)
    shown = ranker.rank(queries, k=3)
    assert [line[2] for line in lines] == [name for names in shown.values() for name in names]
    ranked(folder, "--output", tmp_path / "run.gz")
    assert gzip.decompress((tmp_path / "run.gz").read_bytes()).decode() == ranked(folder)


def test_scores_of_the_model_are_written_where_they_make_the_ranking(folder):
    lines = [line.split() for line in ranked(folder, "--scores", "model").splitlines()]
    queries = read_svmlight(folder / "data.txt")
    scores = RegressionRanker(0.0).fit(queries).predict(queries)
    assert sorted(float(line[4]) for line in lines) == sorted(scores.tolist())
    quota = ("--attributes", folder / "a.csv", "--k", 4, "--exactly", "2:site=a@2")
    done = invoked("rank", folder / "m.rankopt", folder / "data.txt", "--format", "trec", "--scores", "model", *quota)
    assert done.exit_code != 0
    assert "--scores rank" in str(done.exception)


def test_the_order_under_constraints_comes_back_from_the_file(folder, tmp_path):
    quota = ("--attributes", folder / "a.csv", "--k", 4, "--exactly", "2:site=a@2")
    (tmp_path / "run").write_text(ranked(folder, *quota))
    found = read_run(tmp_path / "run")
    queries = read_attributes(folder / "a.csv", read_svmlight(folder / "data.txt"))
    admissible = Admissible(4).exactly(2, documents={"site": "a"}, positions=range(2))
    ranker = RegressionRanker(0.0).fit(queries)
    shown = ranker.rank(queries, constraints=admissible)
    assert list(found.document_ids) == [name for names in shown.values() for name in names]
    assert found.scores.tolist() == [4, 3, 2, 1] * 10
    write_run(tmp_path / "python", queries, ranker.predict(queries), orders=shown)
    assert (tmp_path / "python").read_text() == (tmp_path / "run").read_text()


def test_formats_and_their_options_go_together(folder):
    for options in (("--tag", "x"), ("--scores", "model"), ("--format", "trec", "--json")):
        done = invoked("rank", folder / "m.rankopt", folder / "data.txt", *options)
        assert done.exit_code == 2, done.output


@pytest.fixture(scope="module")
def runs(folder):
    (folder / "one.run").write_text(ranked(folder, "--k", 5))
    lines = ranked(folder, "--k", 5, model="n.rankopt").splitlines()
    (folder / "two.run").write_text("\n".join(line for line in lines if not line.startswith("9 ")) + "\n")
    return folder / "one.run", folder / "two.run"


def test_runs_are_compared_as_in_python(folder, runs):
    done = invoked(
        "evaluate", "--qrels", folder / "qrels", *runs, "--measure", "ndcg_cut_5", "--measure", "map", "--json"
    )
    assert done.exit_code == 0, done.output
    record = json.loads(done.output)
    qrels = read_qrels(folder / "qrels")
    one, two = (
        evaluate(*join(qrels, read_run(path), missing="skip"), ["nDCG@5", "AP"], convention="trec") for path in runs
    )
    rows = {(row["measure"], row["run"]): row for row in record["rows"]}
    assert rows["nDCG@5", "one.run"]["mean"] == one.mean("nDCG@5")
    assert rows["AP", "two.run"]["mean"] == two.mean("AP")
    common = [query for query in one.query_ids if query != "9"]
    pairs = [compare(two, one.for_queries(common), measure=m) for m in ("nDCG@5", "AP")]
    assert [rows[m, "two.run"]["p"] for m in ("nDCG@5", "AP")] == [pair.p for pair in pairs]
    assert [rows[m, "two.run"]["p_holm"] for m in ("nDCG@5", "AP")] == holm([pair.p for pair in pairs]).tolist()
    assert (record["convention"], record["tests"]) == ("trec", 2)
    assert record["coverage"]["two.run"]["missing_queries"] == 1
    assert record["coverage"]["one.run"]["unjudged_documents"] > 0


def test_what_is_missing_or_unjudged_is_said(folder, runs):
    shown = invoked("evaluate", "--qrels", folder / "qrels", *runs).output
    assert "convention trec; 95% intervals by Student's t, of differences paired" in shown
    assert "raised by Holm for 5 tests" in shown
    assert "1 of 10 judged queries are missing, left out of its means, as by trec_eval" in shown
    assert "are unjudged and count as not relevant" in shown
    assert "two.run       9*  " in shown
    assert "* mean over other queries than those of the first run" in shown
    zero = invoked(
        "evaluate", "--qrels", folder / "qrels", *runs, "--missing", "zero", "--interval", "bootstrap"
    ).output
    assert "counted 0, as by trec_eval -c" in zero
    assert "by the bootstrap" in zero
    done = invoked("evaluate", "--qrels", folder / "qrels", *runs, "--missing", "error")
    assert "lacks 1 judged queries, such as '9'" in str(done.exception)


def test_a_run_without_judged_documents_and_a_table_as_qrels(folder, runs, tmp_path):
    lines = [line.split() for line in runs[0].read_text().splitlines()]
    (tmp_path / "wrong.run").write_text("".join(f"{q} Q0 page{d} {rest}\n" for q, _, d, *more in lines
                                                for rest in [" ".join(more)]))  # fmt: skip
    done = invoked("evaluate", "--qrels", folder / "qrels", tmp_path / "wrong.run")
    assert done.stderr.startswith("warning: no document of wrong.run is in ")
    pd.DataFrame({"qid": [1], "relevance": [1]}).to_csv(table := tmp_path / "t.csv", index=False)
    done = invoked("evaluate", "--qrels", table, runs[0])
    assert f"rankopt convert {table} --qrels FILE" in str(done.exception)


def test_runs_of_the_same_name_keep_their_folders(folder, runs, tmp_path):
    (tmp_path / "one.run").write_bytes(runs[1].read_bytes())
    done = invoked("evaluate", "--qrels", folder / "qrels", runs[0], tmp_path / "one.run", "--measure", "AP", "--json")
    assert json.loads(done.output)["baseline"] == str(runs[0])
    done = invoked("evaluate", "--qrels", folder / "qrels", *runs, "--baseline", runs[1], "--json")
    assert json.loads(done.output)["baseline"] == "two.run"


HOSTILE = {
    "empty.run": (b"", "is empty; a line is 'query Q0 document rank score tag'"),
    "short.run": (b"0 Q0 d1 1 5\n", "line 1: 5 columns"),
    "text.run": (b"0 Q0 d1 1 high t\n", "line 1: 'high' is not a number"),
    "twice.run": (b"0 Q0 d1 1 5 t\n0 Q0 d1 2 4 t\n", "line 2: document 'd1' occurs twice"),
    "bytes.run": (bytes(range(128, 256)), "line 1"),
    "others.run": (b"x Q0 d1 1 5 t\n", "no query of the qrels"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_runs_are_refused_by_name(folder, tmp_path, name):
    content, message = HOSTILE[name]
    (tmp_path / name).write_bytes(content)
    done = invoked("evaluate", "--qrels", folder / "qrels", tmp_path / name)
    assert done.exit_code != 0
    assert message in str(done.exception)
    assert type(done.exception).__name__ == "DataError"


def test_usage_is_explained(folder, runs):
    for arguments, message in (
        (["--qrels", folder / "qrels", *runs, "--model", folder / "m.rankopt"], "leave --scores and --model out"),
        (["--qrels", folder / "qrels", runs[0], runs[0]], "occurs twice"),
        ([folder / "data.txt", runs[0], "--model", folder / "m.rankopt"], "need --qrels"),
        ([folder / "data.txt", "--model", folder / "m.rankopt", "--missing", "zero"], "give --qrels"),
    ):
        done = invoked("evaluate", *arguments)
        assert done.exit_code == 2
        assert message in done.output


def test_negative_grades_of_qrels_are_unjudged_unless_said(folder, runs, tmp_path):
    text = (folder / "qrels").read_text().replace(" 0\n", " -1\n")
    (tmp_path / "qrels").write_text(text)
    unjudged = json.loads(
        invoked("evaluate", "--qrels", tmp_path / "qrels", runs[0], "--measure", "bpref", "--json").output
    )
    told = json.loads(
        invoked(
            "evaluate", "--qrels", tmp_path / "qrels", runs[0], "--measure", "bpref", "--json", "--unjudged-grade", 0
        ).output
    )
    as_given = json.loads(
        invoked("evaluate", "--qrels", folder / "qrels", runs[0], "--measure", "bpref", "--json").output
    )
    assert told["rows"] == as_given["rows"]
    assert unjudged["rows"] != as_given["rows"]
    for value in ("nan", "-1", "inf"):
        done = invoked("evaluate", "--qrels", tmp_path / "qrels", runs[0], "--unjudged-grade", value)
        assert "negative cannot be" in str(done.exception)


# Every command refuses every bad value of every option by an exit code and one line; nothing ends in a traceback.


GOOD = {
    "train": ["t.txt", "--model", "new", "--max-iter", "2", "--checkpoint", "runs"],
    "train --ranker direct": ["t.txt", "--model", "new", "--init", "ridge", "--max-iter", "2", "--checkpoint", "runs"],
    "train --ranker smooth": ["t.txt", "--model", "new", "--max-iter", "2"],
    "train --ranker loss": ["t.txt", "--model", "new", "--max-iter", "2"],
    "train --ranker regression": ["t.txt", "--model", "new"],
    "recommend": ["c", "--users", "1", "--output", "new"],
    "convert": ["t.txt", "--output", "new"],
    "resume": ["kept"],
    "predict": ["m", "t.txt", "--output", "new"],
    "rank": ["m", "t.txt", "--k", "2", "--attributes", "a.csv", "--output", "new"],
    "evaluate": ["t.txt", "--model", "m"],
    "explain": ["m", "t.txt"],
    "verify": ["s.toml"],
    "cofi": ["r.csv", "--train-per-user", "2", "--model", "new", "--reg", "0.7", "--factors", "2", "--max-iter", "3"],
    "swap": [
        "t.txt",
        "--argmax-solvers",
        "exact",
        "--master-solvers",
        "none",
        "--methods",
        "none",
        "--no-train",
        "--output",
        "new",
    ],
    "trace": ["inspect", "p.npz"],
    "demo": [],
    "compile": [],
    "doctor": [],
}
"""Arguments that each command takes; one of them is spoilt at a time."""

WHOLE = ["-1", "0", "-99999999999999999999", "nan", "1.5", "1e3", "two", ""]
REAL = ["nan", "-inf", "-1", "-1e300", "two", "1,5", ""]
TEXT = ["nonsense", "", "-1", "nan", "=", "nDCG@0", "nDCG@-1", "power(nan)", "log@0", "@", "\udcff", "é\n", "x" * 999]
READ = ["missing", "folder", "empty", "garbage", os.devnull, "t.txt/x", "x" * 300, ""]
FILE = ["folder", "missing/x", "empty/x", "x" * 300, "", "."]
FOLDER = ["empty", "empty/x", "x" * 300, ""]

FINE = {
    ("train", "--n-jobs", "-1"),  # all cores
    ("train", "--tol", "0"),
    ("train", "--random-state", "0"),
    ("train --ranker direct", "--n-jobs", "-1"),
    ("train --ranker direct", "--tol", "0"),
    ("train --ranker direct", "--lam", "0"),
    ("train --ranker direct", "--n-random-directions", "0"),
    ("train --ranker direct", "--random-state", "0"),
    ("train --ranker smooth", "--n-jobs", "-1"),
    ("train --ranker loss", "--n-jobs", "-1"),
    ("train --ranker loss", "--tol", "0"),
    ("train --ranker loss", "--random-state", "0"),
    ("resume", "--n-jobs", "-1"),
    ("verify", "--random-state", "0"),
    ("cofi", "--random-state", "0"),
    ("recommend", "--popularity", "-1"),
    ("cofi", "--n-jobs", "-1"),
    ("cofi", "--tol", "0"),
    ("swap", "--argmax-solvers", ""),  # no solver
    ("swap", "--master-solvers", ""),
    ("swap", "--methods", ""),
}
"""What looks bad and is not."""


def options_of(command):
    name, *ranker = command.split()
    found = rankopt.get_command(None, name)
    context = found.make_context(name, ranker, resilient_parsing=True)
    return [p for p in found.get_params(context) if not getattr(p, "is_flag", False) and p.name != "ranker"]


def bad_values(command, option):
    kind = option.type
    if isinstance(kind, OutputPath):
        values = FOLDER if kind.dir_okay else [path for path in FILE if not (kind.made and path == "missing/x")]
        values = [*values, "missing/x"] if kind.dir_okay and not kind.made else values
    elif isinstance(kind, click.Path):
        values = READ
    elif isinstance(kind, click.Choice):
        values = ["nonsense", "", kind.choices[0].upper()]
    elif isinstance(kind, click.types.IntParamType):
        values = WHOLE
    elif isinstance(kind, click.types.FloatParamType):
        values = REAL
    else:
        values = TEXT
    return [value for value in values if (command, option.opts[0], value) not in FINE]


def spoilt(command, option, value, arguments):
    """The arguments with this value in place of that of the option."""
    arguments, name = list(arguments), option.opts[0]
    if isinstance(option, click.Argument):
        before = [p for p in options_of(command) if isinstance(p, click.Argument)]
        arguments[before.index(option)] = value
    elif name in arguments and not option.multiple:
        arguments[arguments.index(name) + 1] = value
    else:
        arguments += [name, value]
    return arguments


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arguments")
    rng = np.random.default_rng(0)
    features, grades = rng.normal(size=(12, 3)), rng.integers(0, 3, 12)
    names = [f"d{i}" for i in range(12)]
    queries = Queries.from_arrays(features, grades, qid=np.repeat([1, 2, 3], 4)).replace(document_ids=names)
    write_svmlight(queries, folder / "t.txt")
    rows = [f"{1 + i // 4},d{i},{'ab'[i % 2]}\n" for i in range(12)]
    (folder / "a.csv").write_text("qid,docid,site\n" + "".join(rows), encoding="utf-8")
    (folder / "s.toml").write_text("documents = 4\npositions = 2\n", encoding="utf-8")
    rated = [f"{u},{i},{1 + (u * i + u + i) % 5}\n" for u in range(6) for i in range(13) if (u + i) % 7]
    (folder / "r.csv").write_text("user,item,rating\n" + "".join(rated), encoding="utf-8")
    traces_of(ranking([2.0, 1.0], [0.0, 1.0], discount=[1.0], position_weights=[1.0]))[0].save(folder / "p.npz")
    (folder / "empty").write_bytes(b"")
    (folder / "garbage").write_bytes(rng.integers(0, 256, 400, dtype=np.uint8).tobytes())
    (folder / "folder").mkdir()
    here = os.getcwd()
    try:
        os.chdir(folder)
        for arguments in (
            ["train", "t.txt", "--model", "m"],
            ["train", "t.txt", "--model", "n", "--checkpoint", "kept"],
            ["cofi", "r.csv", "--model", "c", "--reg", "0.7", "--factors", "2"],
        ):
            assert ended([*arguments, "--max-iter", "2"]) == 0
    finally:
        os.chdir(here)
    return folder


@pytest.fixture
def folder_bad(prepared, tmp_path, monkeypatch):
    """A copy of the prepared files, as the current folder."""
    shutil.copytree(prepared, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


def ended(arguments):
    """The exit code of the command, run in this process; whatever else it raises is a fault."""
    before, sys.argv = sys.argv, ["rankopt", *arguments]
    try:
        with pytest.raises(SystemExit) as end:
            main()
    finally:
        sys.argv = before
    return end.value.code


ASIDE = ("Usage: ", "read ", "Try '", "the model is written to ")
"""How lines begin that stand beside the one that says what is wrong."""


def check_refused(arguments, capfd):
    capfd.readouterr()
    code = ended(arguments)
    said = capfd.readouterr().err
    assert code in range(1, 7), f"{arguments} ended with {code}: {said}"
    lines = [line for line in said.splitlines() if line and not line.startswith(ASIDE)]
    assert len(lines) == 1, f"{arguments}: {said}"
    kind, _, message = lines[0].partition(": ")
    assert kind.isidentifier(), said
    assert len(message) > 15, said


def test_every_command_is_walked():
    assert {name.split()[0] for name in GOOD} == set(COMMANDS)


@pytest.mark.every(5)
@pytest.mark.parametrize("command", [name for name in GOOD if options_of(name)])
def test_every_bad_value_is_refused_in_one_line(command, folder_bad, capfd):
    for option in options_of(command):
        for value in bad_values(command, option):
            check_refused([*command.split(), *spoilt(command, option, value, GOOD[command])], capfd)


@pytest.mark.parametrize("command", [name for name in GOOD if options_of(name)])
def test_several_at_once_are_refused_too(command, folder_bad, capfd):
    rng = np.random.default_rng(len(command))
    options = options_of(command)
    for _ in range(20):
        arguments = GOOD[command]
        for place in rng.permutation(len(options))[: rng.integers(1, 4)]:
            values = bad_values(command, options[place])
            arguments = spoilt(command, options[place], values[rng.integers(len(values))], arguments)
        check_refused([*command.split(), *arguments], capfd)


@pytest.mark.parametrize("command", GOOD)
def test_what_is_unknown_or_missing_is_wrong_usage(command, capfd):
    check_refused([*command.split(), *GOOD[command], "--no-such-option"], capfd)
    if GOOD[command][:1] and not GOOD[command][0].startswith("-") and command not in ("swap", "cofi"):
        check_refused(command.split(), capfd)


def test_an_interval_of_checkpoints_needs_a_folder(folder_bad, capfd):
    check_refused(["train", "t.txt", "--model", "new", "--checkpoint-every", "5"], capfd)


@pytest.mark.skipif(sys.platform != "linux", reason="the system has no file names that are no text")
def test_a_report_on_a_file_whose_name_is_no_text(folder_bad):
    shutil.copy("s.toml", "s\udcff.toml")
    assert ended(["verify", "s\udcff.toml", "--report", "page.html"]) == 0
    assert "s?.toml" in (folder_bad / "page.html").read_text(encoding="utf-8")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_file(pipe, b"model")
    reader.join(10)
    assert got == [b"model"]
    assert pipe.is_fifo()


def test_too_many_features_are_a_typed_error(folder_bad):
    from rankopt.data import read_svmlight

    for count in (0, -1, 10**20):
        with pytest.raises(OptionError, match=r"n_features cannot be .*; it must be an integer from 1 to"):
            read_svmlight("t.txt", n_features=count)
