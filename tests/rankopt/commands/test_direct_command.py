"""`rankopt direct`: the model is that of Python, the page says what the ranker says, lines are those of the search."""

import json
import re
from html import unescape

import numpy as np
import pytest
from click.testing import CliRunner
from problems.training import made

from rankopt.cli import rankopt as command
from rankopt.commands import direct as of_command
from rankopt.data import Queries, read_svmlight, write_svmlight
from rankopt.optimize import line_search
from rankopt.rankers import DirectRanker, Random, load_model
from rankopt.rankers.direct_starts import NAMED


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("climbed")
    for seed, name in enumerate(["train.txt", "test.txt"]):
        X, y, qid = made(seed, queries=12, documents=10)
        write_svmlight(Queries.from_arrays(X, y, qid=qid), folder / name)
    return folder


def run(*arguments):
    done = CliRunner().invoke(command, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.output


def test_its_words_are_those_of_the_ranker():
    assert tuple(NAMED) == of_command.STARTS
    assert line_search.get_args(line_search.Point) == of_command.POINTS
    defaults = {option.name: option.default for option in of_command.direct.params}
    own = DirectRanker().get_params(deep=False)
    shared = {name for name in defaults if own.get(name) is not None}
    assert len(shared) > 10
    assert {name: defaults[name] for name in shared} == {name: own[name] for name in shared}


@pytest.mark.every(5)
@pytest.mark.parametrize(
    ("words", "own"),
    [
        ((), DirectRanker()),
        (("--start", "ridge", "--point", "middle", "--powell", "--random", 2, "--seed", 3),
         DirectRanker(start="ridge", point="middle", directions=("coordinates", "powell", Random(2)), random_state=3)),
        (("--start", "zeros", "--restarts", 3, "--combine", "best", "--measure", "AP", "--order", "greedy"),
         DirectRanker("AP", start="zeros", restarts=3, combine="best", order="greedy")),
    ],
)  # fmt: skip
def test_the_model_is_that_of_python(files, words, own, tmp_path):
    given = ("--validate", files / "test.txt", "--json", "--checkpoint", tmp_path / "kept", "--model", tmp_path / "m")
    told = json.loads(run("direct", files / "train.txt", *words, *given))
    own.fit(read_svmlight(files / "train.txt"), eval_set=read_svmlight(files / "test.txt"))
    loaded = load_model(tmp_path / "m")
    np.testing.assert_array_equal(loaded.coef_, own.coef_)
    assert told["validation"] == own.eval_score_
    assert told["value"] == own.certificate_.value
    assert [one["measure"] for one in told["paths"]] == own.path_values_.tolist()
    again = json.loads(run("direct", files / "train.txt", *words, *given))  # from the checkpoint of its end
    assert again["value"] == told["value"]
    assert again["paths"] == told["paths"]


def test_the_page_says_what_the_ranker_says(files, tmp_path):
    page = tmp_path / "page.html"
    words = ("--start", "ridge", "--point", "middle", "--restarts", 2, "--combine", "best", "--lines", 2)
    said = run("direct", files / "train.txt", *words, "--report", page)
    queries = read_svmlight(files / "train.txt")
    own = DirectRanker(start="ridge", point="middle", restarts=2, combine="best").fit(queries)
    assert str(own.certificate_) in said
    text = unescape(page.read_text(encoding="utf-8"))
    assert str(own.certificate_) in text
    finding = re.search(r'class="finding">(.*?)</p>', text)[1]
    assert f"{own.certificate_.value:.4f}" in finding
    assert "No one of 4 directions leads higher, each alone" in finding
    assert text.count("<svg") == 2 + 2  # the climb, two lines, the weights
    rows = re.findall(r"<tr>(.*?)</tr>", text[text.index("The measure along lines") :], flags=re.DOTALL)
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows if "<td" in row][:2]
    search = line_search.LineSearch.of("nDCG@10", queries)
    for name, weight, events, best, *_ in cells:
        feature = int(name.removeprefix("x"))
        line = search.along(own.coef_, feature, "middle")
        assert float(weight) == pytest.approx(own.coef_[feature], rel=1e-5)
        assert (int(events), best) == (line.events, f"{line.best:.4f}")


def test_lines_and_draws_that_cannot_be_are_refused(files):
    for words in (("--random", "-1"), ("--lines", "0")):
        done = CliRunner().invoke(command, ["direct", str(files / "train.txt"), *words])
        assert done.exit_code == 2
