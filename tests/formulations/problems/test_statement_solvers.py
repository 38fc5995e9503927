"""The solver that a statement file names, with its options: read as a name, asked by `rankopt verify`."""

import json

import pytest
from click.testing import CliRunner

from formulations import Highs, get_solver, read_ranking_set, read_solver, solve
from formulations.errors import InvalidProblemError, UnknownSolverError
from rankopt.cli import rankopt

HEAD = "documents = 3\npositions = 2\nprofit = [[3.0, 2.0, 1.0], [2.0, 2.0, 0.0]]\n"


def written(tmp_path, text):
    path = tmp_path / "s.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("solver = 'highs'", Highs()),
        ("solver = \"highs(presolve='off', time_limit=10)\"", Highs(presolve="off", time_limit=10)),
        ("[solver]\nname = 'highs'", Highs()),
        ("[solver]\nname = 'highs'\npresolve = 'off'\ntime_limit = 10", Highs(presolve="off", time_limit=10)),
        (
            "[solver]\nname = 'highs'\nverbose = false\nsimplex_scale_strategy = 0",
            Highs(options={"simplex_scale_strategy": 0}),
        ),
        ("solver = { name = 'highs', options = { presolve = 'off' } }", Highs(options={"presolve": "off"})),
    ],
)
def test_a_word_and_a_table_say_the_same(tmp_path, said, meant):
    table = said.startswith("[")
    path = written(tmp_path, HEAD + said + "\n" if table else said + "\n" + HEAD)
    assert get_solver(read_solver(path)) == meant
    assert solve(read_ranking_set(path), read_solver(path)).value == 5.0


def test_no_solver_is_none(tmp_path):
    assert read_solver(written(tmp_path, HEAD)) is None


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("solver = 3", "solver must be a name, such as \"highs\"; got '3'"),
        ("solver = ''", "solver must be a name"),
        ("solver = ['highs']", "solver must be a name"),
        ("[solver]\npresolve = 'off'", 'names no solver; write name = "highs"'),
        ("[solver]\nname = 7", "names no solver"),
        ('[solver]\nname = "highs(verbose=True)"\nlog = true', "and as keys"),
        ("[solver]\nname = 'highs'\ntime_limit = inf", "time_limit must be a word, number or bool"),
        ("[solver]\nname = 'highs'\ntime_limit = nan", "must be a word, number or bool"),
        ("[solver]\nname = 'highs'\nstart = [1, 2]", "must be a word, number or bool"),
        ("[solver]\nname = 'highs'\nsince = 2024-01-01", "must be a word, number or bool"),
        ("[solver]\nname = 'highs'\n'a=1, b' = 2", "must be a word"),
        ("[solver]\nname = 'highs'\nnote = '" + "x" * 2000 + "'", "more than 1000 letters"),
    ],
)
def test_what_names_no_solver_is_refused_with_the_cure(tmp_path, said, message):
    path = written(tmp_path, HEAD + said + "\n" if said.startswith("[") else said + "\n" + HEAD)
    for read in (read_solver, read_ranking_set):
        with pytest.raises(InvalidProblemError) as caught:
            read(path)
        assert message in str(caught.value)
        assert str(path) in str(caught.value)


@pytest.mark.parametrize("said", ["highz", "highs(nonsense(1))", "scipy(threads=3)"])
def test_whether_there_is_one_is_found_out_where_it_is_asked(tmp_path, said):
    path = written(tmp_path, f'solver = "{said}"\n' + HEAD)
    with pytest.raises(UnknownSolverError):
        solve(read_ranking_set(path), read_solver(path))
    run = CliRunner().invoke(rankopt, ["verify", str(path)])
    assert run.exit_code != 0
    assert said.split("(")[0] in run.output + str(run.exception)


def test_verify_asks_the_solver_that_is_named(tmp_path, monkeypatch):
    import formulations.solving.integrality as gap

    asked = []
    real = gap.solve
    monkeypatch.setattr(gap, "solve", lambda problem, solver: asked.append(solver) or real(problem, solver))
    path = written(tmp_path, HEAD + "[solver]\nname = 'highs'\npresolve = 'off'\n")
    run = CliRunner().invoke(rankopt, ["verify", str(path), "--json"])
    assert json.loads(run.output)["optimum"]["integer"] == 5.0
    assert asked == ["highs(presolve='off')"] * 2
