"""`rankopt verify`, and the TOML files that it reads."""

import json
from html import unescape
from itertools import permutations

import numpy as np
import pytest
from click.testing import CliRunner

from formulations import (
    InfeasibleError,
    InvalidProblemError,
    RankingSet,
    SolverError,
    UnsupportedProblemError,
    read_ranking_set,
    sensitivity,
    solve,
)
from formulations.constraints.constrained_ranking import ConstrainedRanking
from rankopt.cli import main, rankopt

SITES = """
documents = 5
positions = 3
[attributes]
site = ["a.org", "a.org", "b.org", "c.org", "c.org"]
"""

WORDS = """
documents = 5
positions = 3
[attributes]
site = ["a", "a", "b", "c", "c"]
topic = [["x", "y"], "x", "y", "z", []]
[[constraint]]
at_most = 1
by = "site"
[[constraint]]
at_most = 1
by = "topic"
name = "topic"
[[constraint]]
at_least = 1
documents = { site = "c" }
positions = [0, 1]
[[constraint]]
forbid = [0]
positions = [2]
[[constraint]]
fix = 2
position = 2
[[constraint]]
precedes = [1, 4]
[[constraint]]
exactly = 1
documents = [3, 4]
[[constraint]]
add_rows = [[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]
upper = 0
"""


def write(tmp_path, text):
    file = tmp_path / "set.toml"
    file.write_text(text, encoding="utf-8")
    return file


def run(tmp_path, text, *options):
    return CliRunner().invoke(rankopt, ["verify", str(write(tmp_path, text)), *options])


def test_every_word_reads_as_it_is_said(tmp_path):
    read = read_ranking_set(write(tmp_path, WORDS))
    said = (
        RankingSet(5, 3)
        .at_most(1, by=["a", "a", "b", "c", "c"])
        .at_most(1, by=[("x", "y"), "x", "y", "z", ()], name="topic")
        .at_least(1, documents=[3, 4], positions=range(2))
        .forbid(0, 2)
        .fix(2, 2)
        .precedes(1, 4)
        .exactly(1, documents=[3, 4])
        .add_rows(np.eye(1, 15), upper=0)
    )
    assert (read.compiled.matrix != said.compiled.matrix).nnz == 0
    assert np.array_equal(read.compiled.upper, said.compiled.upper)
    orders = list(permutations(range(5), 3))
    assert [read.is_feasible(order) for order in orders] == [said.is_feasible(order) for order in orders]
    assert any(read.is_feasible(order) for order in orders)


def test_a_proof(tmp_path):
    done = run(tmp_path, SITES + '[[constraint]]\nat_most = 1\nby = "site"')
    assert done.exit_code == 0, done.output
    assert "totally unimodular (bipartite)" in done.output
    assert "Checked again" in done.output


def test_a_witness_with_its_optimum(tmp_path):
    text = "documents = 6\npositions = 3\nweights = [1.0, 0.9, 0.8]\nscores = [3, 3, 3, 0, 0, 0]\n"
    text += "".join(f"[[constraint]]\nat_most = 1\ndocuments = {pair}\n" for pair in ([0, 1], [1, 2], [0, 2]))
    done = run(tmp_path, text, "--json")
    record = json.loads(done.output)
    assert done.exit_code == 1
    assert record["verdict"] == "witness"
    square = np.zeros((len(record["row_names"]),) * 2)
    for i, j, value in record["entries"]:
        square[i, j] = float(value)
    assert abs(round(np.linalg.det(square))) == abs(int(record["determinant"])) == 2
    assert record["optimum"]["relaxation"] == pytest.approx(4.35)
    assert record["optimum"]["integer"] == pytest.approx(3.0)


def test_the_exit_code_is_of_the_set_whatever_objective_the_file_has(tmp_path):
    """At most one document of a site in the first two positions: the matrix is not totally unimodular; under profits of
    rank one inside each site an optimum is integral."""
    text = "documents = 6\npositions = 3\n"
    scores = "weights = [1.0, 0.6, 0.5]\nscores = [6, 5, 4, 3, 2, 1]\n"
    sites = '[attributes]\nsite = ["a", "a", "b", "b", "c", "c"]\n'
    limit = '[[constraint]]\nat_most = 1\nby = "site"\npositions = [0, 1]\n'
    alone, scored = (run(tmp_path, text + more + sites + limit, "--json") for more in ("", scores))
    assert (alone.exit_code, scored.exit_code) == (1, 1)
    alone, scored = json.loads(alone.output), json.loads(scored.output)
    assert (alone["verdict"], scored["verdict"]) == ("witness", "witness")
    assert "objective" not in alone
    assert "advice" in alone
    assert "advice" not in scored  # the objective needs no change
    assert (scored["objective"]["verdict"], scored["objective"]["kind"]) == ("proof", "prefix groups")
    assert scored["optimum"]["integral"] is True
    page = tmp_path / "page.html"
    shown = run(tmp_path, text + scores + sites + limit, "--report", str(page))
    assert shown.exit_code == 1
    assert shown.output.index("Witness: not totally unimodular") < shown.output.index("For this objective: Proof")
    finding = unescape(page.read_text()).split('<p class="finding">')[1].split("</p>")[0]
    assert finding.startswith("Refuted")
    assert "For this objective the linear program is proved to have an integral optimum" in finding


def verified(tmp_path, text):
    (tmp_path / "program.lp").write_text(text, encoding="utf-8")
    return CliRunner().invoke(rankopt, ["verify", str(tmp_path / "program.lp")])


def test_limits_of_an_integer_program_are_rounded_inwards(tmp_path):
    text = "Maximize\n o: 2 a + b\nSubject To\n c: a + b <= 3.5\nBounds\n a <= 1.7\nGeneral\n a b\nEnd\n"
    done = verified(tmp_path, text)
    assert done.exit_code == 0, done.output
    assert "This optimum is integral: 4 with and without integrality" in done.output


def test_a_program_of_many_variables_is_shortened(tmp_path):
    names = [f"variable_{j}" for j in range(60)]
    done = verified(tmp_path, f"Maximize\n o: {' + '.join(names)}\nSubject To\n c: {' + '.join(names)} <= 3\nEnd\n")
    assert done.exit_code == 0, done.output
    assert max(map(len, done.output.splitlines())) <= 120


def test_a_quadratic_program_is_refused(tmp_path):
    done = verified(tmp_path, "Minimize\n o: x + [ x ^ 2 ] / 2\nSubject To\n c: x >= 1\nEnd\n")
    assert isinstance(done.exception, UnsupportedProblemError)


def test_a_bare_matrix(tmp_path):
    assert run(tmp_path, "matrix = [[1, 1, 0], [0, 1, 1], [1, 0, 1]]").exit_code == 1
    assert run(tmp_path, "matrix = [[1, 1, 0], [0, 1, 1], [0, 0, 1]]").exit_code == 0


def test_a_profit_makes_it_a_problem(tmp_path):
    problem = read_ranking_set(write(tmp_path, "documents = 2\npositions = 1\nprofit = [[1.0, 3.0]]"))
    assert isinstance(problem, ConstrainedRanking)
    assert solve(problem).order.tolist() == [1]


def test_an_empty_set_names_its_conflict(tmp_path):
    text = SITES + "".join(f'[[constraint]]\n{word} = {count}\nby = "site"\nname = "{word}"\n' for word, count in TWO)
    done = run(tmp_path, text)
    assert isinstance(done.exception, InfeasibleError)
    assert "Conflict: " in str(done.exception)
    assert "position" not in str(done.exception).partition("Conflict")[2].partition(";")[0]


EMPTY = """documents = 4
positions = 3
weights = [1.0, 0.5, 0.25]
scores = [4.0, 3.0, 2.0, 1.0]
attributes = { site = ["a", "a", "b", "b"] }
[[constraint]]
at_most = 1
by = "site"
"""


def test_an_empty_set_tells_what_breaks_least_and_what_other_limits_cost(tmp_path):
    """Two sites in three positions: one has to have two documents."""
    done = run(tmp_path, EMPTY, "--sensitivity", "site=1:3")
    assert isinstance(done.exception, InfeasibleError)
    assert "'] by 1, at a cost of 1; none costs less" in done.output
    admissible = RankingSet(4, 3).at_most(1, by=[*"aabb"], name="site")
    profit = np.outer([1.0, 0.5, 0.25], [4.0, 3.0, 2.0, 1.0])
    assert str(sensitivity(admissible, "site", range(1, 4), profit=profit)) in done.output
    told = json.loads(run(tmp_path, EMPTY, "--sensitivity", "site=1:3", "--json").output)
    assert told["verdict"] == "empty"
    assert told["least_broken"]["cost"] == 1.0
    assert told["sweep"][0]["value"][1:] == [pytest.approx(4.0 + 1.5 + 0.5)] * 2
    nowhere = run(tmp_path, EMPTY, "--sensitivity", "site=0:1")
    assert isinstance(nowhere.exception, InfeasibleError)
    assert "at a cost of 1; none costs less" in nowhere.output
    assert run(tmp_path, EMPTY, "--sensitivity", "author=1:3").exit_code == 2


def test_a_repair_that_fails_does_not_hide_the_conflict(tmp_path, monkeypatch):
    def failing(self):
        raise SolverError("no repair was found in 30 seconds")

    monkeypatch.setattr(RankingSet, "repair", failing)
    done = run(tmp_path, EMPTY)
    assert isinstance(done.exception, InfeasibleError)
    assert "The least broken ranking is not known: no repair was found in 30 seconds" in done.output
    assert json.loads(run(tmp_path, EMPTY, "--json").output)["least_broken"] is None


TWO = (("at_most", 0), ("at_least", 1))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("documents = [", "is no TOML"),
        ("positions = 3", "no number of documents"),
        ("documents = 3", "no number of positions"),
        ("documents = 3\npositions = 2\nquota = 1", "key 'quota'"),
        ("matrix = [[1]]\ndocuments = 1", "a key 'documents'"),
        ("matrix = [[nan]]", "must be finite"),
        ("matrix = [1]", "dimension"),
        (SITES + '[[constraint]]\nat_most = 1\nby = "color"', "constraint 1: there is no list 'color'"),
        (SITES + "[[constraint]]\nby = 'site'", "it needs one of the kinds at_most.*got none"),
        (SITES + "[[constraint]]\nat_mots = 1", "did you mean 'at_most'"),
        (SITES + "[[constraint]]\nkind = 'at_mots'", "did you mean 'at_most'"),
        (SITES + "[[constraint]]\nat_most = 1\nbyy = 'site'", "a key 'byy'; did you mean 'by'"),
        (SITES + "[[constraint]]\nat_most = 1\nforbid = [1]", "got at_most and forbid"),
        (
            SITES + "[[constraint]]\nat_most = 1\ndocument = 1",
            "takes count, share, documents, positions, by.* and penalty",
        ),
        (SITES + "[[constraint]]\nat_most = 1.5", "constraint 1: count must be an integer, 0 or more; got 1.5"),
        (SITES + "[[constraint]]\nprecedes = [1]", "constraint 1: precedes.. needs two documents"),
        (SITES + "[[constraint]]\nprecedes = [1, 1]", "cannot precede itself"),
        (SITES + "[[constraint]]\nat_most = 1\ndocuments = [9]", "from 0 to 4; got 9"),
        (SITES + "[constraint]\nat_most = 1", "two brackets"),
        ("documents = 2\npositions = 1\nweights = [1.0]", "need each other"),
        ("documents = 2\npositions = 1\nprofit = [[1.0]]", "profit must have shape"),
    ],
)
def test_what_cannot_be_read_says_where_and_why(tmp_path, text, says):
    with pytest.raises(InvalidProblemError, match=says.replace("[", r"\[")):
        read_ranking_set(write(tmp_path, text))


@pytest.mark.parametrize(("text", "code"), [("documents = [", 3), (SITES + "[[constraint]]\nexactly = 4", 3)])
def test_a_file_that_cannot_be_used_ends_with_three(tmp_path, monkeypatch, text, code):
    monkeypatch.setattr("sys.argv", ["rankopt", "verify", str(write(tmp_path, text))])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code


def test_rows_are_called_after_their_attribute(tmp_path):
    admissible = read_ranking_set(write(tmp_path, SITES + '[[constraint]]\nat_most = 1\nby = "site"'))
    assert admissible.violations([0, 1, 2]) == {"site['a.org']": 1.0}


SWEPT = """
documents = 5
positions = 3
weights = [3, 2, 1]
scores = [5, 4, 3, 2, 1]
[[constraint]]
at_most = 2
documents = [0, 1, 2]
name = "old"
[[constraint]]
at_least = 0
documents = [3, 4]
positions = [0, 1]
name = "new"
"""


@pytest.mark.study
def test_sweep_prints_curves_and_draws_them(tmp_path):
    file, page = tmp_path / "set.toml", tmp_path / "page.html"
    file.write_text(SWEPT, encoding="utf-8")
    arguments = ["verify", str(file), "--sensitivity", "old=1:3", "--sensitivity", "new=0:2"]
    text = CliRunner().invoke(rankopt, [*arguments, "--report", str(page)]).stdout
    assert "old at most  value  LP price  LP integral" in text
    assert "new at least  value  LP price  LP integral" in text
    assert "Cost of the limits" in page.read_text(encoding="utf-8")
    told = json.loads(CliRunner().invoke(rankopt, [*arguments, "--json"]).stdout)["sweep"]
    orders = [np.array(order) for order in permutations(range(5), 3)]
    profit = np.outer([3, 2, 1], [5, 4, 3, 2, 1])
    for limit, value in zip(told[0]["limits"], told[0]["value"], strict=True):
        kept = [o for o in orders if (o < 3).sum() <= limit]
        assert value == max(profit[np.arange(3), o].sum() for o in kept)
    program = tmp_path / "knapsack.lp"
    program.write_text("max\n obj: 5 a + 4 b\nst\n weight: 2 a + 3 b <= 5\n size: a + b <= 2\nend\n", encoding="utf-8")
    curve = CliRunner().invoke(rankopt, ["verify", str(program), "--sensitivity", "weight=1:5", "--json"]).stdout
    expected = [max(5 * min(w / 2, 2), 5 * (6 - w) + 4 * (w - 4) if w > 4 else 0) for w in range(1, 6)]
    assert json.loads(curve)["sweep"][0]["value"] == pytest.approx(expected)
    file.write_text(SITES, encoding="utf-8")
    assert (
        "FILE needs a profit" in CliRunner().invoke(rankopt, ["verify", str(file), "--sensitivity", "site=1:2"]).stderr
    )


TWO_SIDED = f"""{SWEPT}
[[constraint]]
between = 0
high = 2
documents = [1, 3]
name = "mid"
"""


@pytest.mark.study
def test_a_sweep_says_its_step_and_which_side_of_a_constraint_is_meant(tmp_path):
    file = write(tmp_path, TWO_SIDED)

    def told(*sweeps):
        said = [word for sweep in sweeps for word in ("--sensitivity", sweep)]
        return json.loads(CliRunner().invoke(rankopt, ["verify", str(file), *said, "--json"]).stdout)["sweep"]

    (upper,), (lower,) = told("mid=0:2:at_most"), told("mid=0:2:2:at_least")
    assert (upper["name"], upper["limits"]) == ("mid at most", [0.0, 1.0, 2.0])
    assert (lower["name"], lower["limits"]) == ("mid at least", [0.0, 2.0])
    orders = [np.array(order) for order in permutations(range(5), 3) if (np.array(order) < 3).sum() <= 2]
    value = np.outer([3, 2, 1], [5, 4, 3, 2, 1])
    for curve, kept in ((upper, np.less_equal), (lower, np.greater_equal)):
        for limit, best in zip(curve["limits"], curve["value"], strict=True):
            admitted = [o for o in orders if np.isin(o, [1, 3]).sum() <= 2 and kept(np.isin(o, [1, 3]).sum(), limit)]
            assert best == max(value[np.arange(3), o].sum() for o in admitted)
    assert [one["name"] for one in told("old=1:3", "mid=0:2:at_least")] == ["old at most", "mid at least"]
    assert len(told("old=0:9000")[0]["value"]) == 9001


def test_limits_of_a_share_are_decimals_on_the_command_line(tmp_path):
    share = '[[constraint]]\nkind = "at_least"\nshare = 0.4\nprefixes = [3]\ndocuments = [3, 4]\nname = "few"\n'
    file = write(tmp_path, SWEPT + share)
    page = tmp_path / "page.html"
    arguments = ["verify", str(file), "--report", str(page), "--json", "--sensitivity"]
    for text, limits in (("few=0:1", [0, 1]), ("few=0.2:0.4", [0.2, 0.3, 0.4]), ("few=0:0.7:0.35", [0, 0.35, 0.7])):
        (found,) = json.loads(CliRunner().invoke(rankopt, [*arguments, text]).stdout)["sweep"]
        assert (found["name"], found["limits"]) == ("few share at least", limits)
        profit = np.outer([3, 2, 1], [5, 4, 3, 2, 1])
        for limit, value in zip(limits, found["value"], strict=True):
            orders = map(np.array, permutations(range(5), 3))
            kept = [o for o in orders if (o < 3).sum() <= 2 and (o >= 3).sum() >= int(3 * limit + 1e-9)]
            assert value == max((profit[np.arange(3), o].sum() for o in kept), default=None)
        assert found["price"] == [None] * len(limits)
    assert "nan<" not in unescape(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("sweeps", "said"),
    [
        (["old=0.5:1.5"], "'old' counts documents: limits must be integers; got 0.5"),
        (["old=1:3:0.0"], "write NAME=LOW:HIGH[:STEP][:SIDE]"),
        (["old"], "write NAME=LOW:HIGH[:STEP][:SIDE]"),
        (["old=3:1"], "write NAME=LOW:HIGH[:STEP][:SIDE]"),
        (["old=1:3:0"], "write NAME=LOW:HIGH[:STEP][:SIDE]"),
        (["old=1:3:above"], "write NAME=LOW:HIGH[:STEP][:SIDE]"),
        ([f"old=1:{'9' * 5000}"], "write NAME=LOW:HIGH[:STEP][:SIDE]"),
        (["odd=1:3"], "no constraint is named 'odd'; with limits there are 'old', 'new', 'mid'"),
        (["mid=0:2"], "limits on both sides; end with :at_most or :at_least"),
        (["mid=0:9:at_least"], "cannot be at least 3: its other limit is 2"),
        (["old=1:100000000"], "more than 10000, the most that a sweep tries; give a shorter range, or one with a step"),
    ],
)  # fmt: skip
def test_what_cannot_be_swept_is_wrong_usage(tmp_path, sweeps, said):
    file = write(tmp_path, TWO_SIDED)
    found = CliRunner().invoke(
        rankopt, ["verify", str(file), *(w for sweep in sweeps for w in ("--sensitivity", sweep))]
    )
    assert found.exit_code == 2
    assert found.stdout == ""
    assert said in " ".join(found.stderr.split())


@pytest.mark.study
def test_refuted_sets_and_fractional_optima_get_advice_and_soft_ones_say_what_broke(tmp_path):
    file = tmp_path / "set.toml"
    pairs = "".join(
        f"[[constraint]]\nat_most = 1\ndocuments = {pair}\nname = '{name}'\n"
        for name, pair in zip("abc", ([0, 1], [1, 2], [0, 2]), strict=True)
    )
    head = "documents = 6\npositions = 3\nweights = [1.0, 0.9, 0.8]\nscores = [3.0, 3.0, 3.0, 0.0, 0.0, 0.0]\n"
    file.write_text(head + pairs, encoding="utf-8")
    text = CliRunner().invoke(rankopt, ["verify", str(file)]).stdout
    assert "Advice: " in text
    page = tmp_path / "page.html"
    sweeps = ["--sensitivity", "a=0:2", "--sensitivity", "b=0:2"]
    text = CliRunner().invoke(rankopt, ["verify", str(file), *sweeps, "--report", str(page)]).stdout
    shown = unescape(page.read_text(encoding="utf-8"))
    advice = [line for line in text.splitlines() if line.startswith("Advice: ")]
    assert advice
    assert all(f"<li>{line}</li>" in shown for line in advice)
    assert "Solve as an integer program ('highs', 'cp_sat').<" in shown  # advice that drops a constraint is listed only
    crossing = "[[constraint]]\nat_least = 1\ndocuments = [0, 2, 4]\nname = 'women'\n[[constraint]]\nat_most = 2\n"
    crossing += "by = ['a', 'a', 'a', 'b', 'b', 'b']\nname = 'age'\n"
    file.write_text(head + crossing, encoding="utf-8")
    CliRunner().invoke(rankopt, ["verify", str(file), "--report", str(integral := tmp_path / "integral.html")])
    shown_too = unescape(integral.read_text(encoding="utf-8"))
    assert "This optimum is integral" in shown_too
    assert "Use this optimum. For other objectives solve as an integer program ('highs', 'cp_sat').<" in shown_too
    assert "<li>Advice: Leave out 'women'" in shown_too
    assert "xtend 'women'" not in shown_too  # to all documents: that would exclude no ranking
    file.write_text(head + pairs, encoding="utf-8")
    assert f"rankopt verify {file} --sensitivity a=0:2 --sensitivity b=0:2 --report {page}" in shown
    file.write_text(
        head + pairs.split("[[constraint]]")[1].join(["[[constraint]]", "penalty = 0.5\n"]), encoding="utf-8"
    )
    text = CliRunner().invoke(rankopt, ["verify", str(file)]).stdout
    assert "Violated at the optimum, at a penalty: a by 1" in text
    file.write_text(head + pairs.replace("at_most", "penalty = 0.5\nat_most"), encoding="utf-8")
    text = CliRunner().invoke(rankopt, ["verify", str(file)]).stdout
    assert "Advice is for hard constraints only" in text
