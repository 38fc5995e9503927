"""Every example runs and prints something."""

import contextlib
import io
import runpy
import subprocess
import sys
from dataclasses import dataclass, field, make_dataclass
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
import sklearn

import formulations
from formulations import RankingSet, certify, integrality_gap, matching, solve, verify_integrality
from formulations.display import LINES, WIDE, CompactReprMixin, first_lines
from formulations.experimental import slack_rescaled_ranking, solve_slack_rescaled
from formulations.problems.problem import Problem
from rankopt.data import Queries, load_sample
from rankopt.evaluation.evaluation import JudgedQueries
from rankopt.measures import compare, compare_runs, evaluate, read_qrels, read_run
from rankopt.rankers import CofiRanker, DirectRanker, LargeMarginRanker, SmoothRanker
from rankopt.ratings import Ratings, evaluate_ratings, load_ratings_sample, weak_split

NEEDS = {"train_a_network": "torch"}
"""Packages of extras that an example needs."""

STARTS = ("swap_solvers",)
"""Examples that start processes, which import the script by its path."""

LONG = (*STARTS, "fair_ranking", "grid_search", "training_under_constraints")
"""Examples that take more than a second."""

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
EACH = pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)


def skip_without_its_package(example):
    if example.stem in NEEDS and find_spec(NEEDS[example.stem]) is None:
        pytest.skip(f"{NEEDS[example.stem]} is not installed")


@pytest.mark.parametrize(
    "example",
    [pytest.param(path, marks=pytest.mark.study if path.stem in LONG else ()) for path in EXAMPLES],
    ids=lambda path: path.stem,
)
def test_example_runs(example, tmp_path, monkeypatch):
    """In this process, where it starts none: warnings are errors here too."""
    skip_without_its_package(example)
    if example.stem in STARTS:
        return alone(example, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(example)])
    with sklearn.config_context(), contextlib.redirect_stdout(io.StringIO()) as output:
        runpy.run_path(str(example), run_name="__main__")
    assert output.getvalue().strip()
    return None


def alone(example, folder):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)], capture_output=True, text=True, timeout=120, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.study
@EACH
def test_example_runs_in_an_interpreter_of_its_own(example, tmp_path):
    skip_without_its_package(example)
    alone(example, tmp_path)


def test_examples_are_few_and_short():
    assert len(EXAMPLES) <= 13
    assert max(len(path.read_text(encoding="utf-8").splitlines()) for path in EXAMPLES) < 60


def test_training_under_the_constraint_beats_re_ranking_in_the_example():
    """The price has one sign between sellers and the other within a seller."""
    example = runpy.run_path(str(EXAMPLES[0].parent / "training_under_constraints.py"))
    train, test = example["product_searches"](40, 0), example["product_searches"](100, 1000)
    under = LargeMarginRanker("nDCG@5", constraints=example["one_each"], w0="zeros").fit(train)
    free = LargeMarginRanker("nDCG@5", w0="zeros").fit(train)
    assert under.coef_[0] < 0 < free.coef_[0]
    ours, theirs = example["values"](under, test), example["values"](free, test)
    assert compare(ours, theirs).p < 0.001
    assert np.mean(ours) > np.mean(theirs) + 0.1


# What notebooks and terminals show: every object that users hold has a view, well formed, escaped and short.


HOSTILE = "<script>alert('&')</script>"
SUITS = [[1, 1, 0], [0, 1, 1], [1, 0, 1]]
"""The smallest matrix that is not totally unimodular."""


def crossing():
    """Two limits that share a document: refuted."""
    held = RankingSet(6, 3).at_most(1, documents=[0, 1, 2], name=HOSTILE)
    return held.at_most(1, documents=[0, 3], positions=range(2))


def texts(held):
    """All that a view says, in its order."""
    return [*ElementTree.fromstring(held._repr_html_()).itertext()]


def weights(positions):
    return 1.0 / np.log2(2.0 + np.arange(positions))


def large_problems():
    """A problem of each form, and batches, of hundreds of numbers; with solutions where they are soon found."""
    random = np.random.default_rng(0)
    scores, grades, planes = random.random(300), random.integers(0, 3, 300), random.random((60, 25))
    ends, square, ten = (
        [0, 100, 300],
        random.random((30, 30)),
        {"discount": weights(10), "position_weights": weights(10)},
    )
    rules = RankingSet(30, 20).at_most(3, documents=range(9), name="few").at_most(2, documents=range(5, 15))
    assigned = formulations.constrained_ranking(square[:20], rules)
    yield from (assigned, assigned.program, rules.program, rules.compiled, *rules.constraints)
    yield formulations.constrained_ranking(square[:20], rules.penalized("few", penalty=1.0))
    yield from (matching(square), solve(matching(square)), matching(square).program)
    yield formulations.diverse_retrieval(square[:4], [place % 7 for place in range(30)])
    yield formulations.marginal_ranking(square[:20])
    for made in (formulations.margin_dual, formulations.l1_margin_dual):
        yield made(planes, scores[:60], lam=0.1)
    batch = formulations.ranking(scores, grades, offsets=ends, **ten)
    yield from (formulations.ranking(scores, grades, **ten), batch, formulations.solve_batch(batch))
    batch = slack_rescaled_ranking(scores, grades, offsets=ends, **ten)
    yield from (slack_rescaled_ranking(scores, grades, **ten), batch, solve_slack_rescaled(batch))
    pairs = formulations.pairwise_ranking(scores, grades > 0, offsets=ends)
    yield from (pairs, formulations.solve_batch(pairs))
    yield from (formulations.pairwise_ranking(scores, grades > 0), RankingSet(900, 2).at_most(1, by=range(900)))
    witness = verify_integrality(np.kron(np.eye(6, dtype=int), np.ones((2, 2), dtype=int)) + circulant(12))
    yield from (witness, verify_integrality(np.eye(40, dtype=int)))
    yield formulations.birkhoff_decomposition(np.full((12, 12), 1 / 12))
    yield formulations.sensitivity(assigned, "few", range(1, 20))


def circulant(size):
    return np.eye(size, dtype=int) + np.roll(np.eye(size, dtype=int), 1, axis=1)


def large_results(folder):
    """What is read, evaluated and compared of hundreds of documents."""
    sample, random = load_sample("les-miserables"), np.random.default_rng(0)
    held = sample.test
    named = held.replace(attributes={f"attribute {number}": held.relevance for number in range(99)})
    measures = [f"nDCG@{k}" for k in range(1, 16)]
    runs = {name: evaluate(held, random.random(held.n_documents), measures) for name in ("first", HOSTILE)}
    rows = [(query, document) for query in range(40) for document in range(20)]
    (folder / "qrels").write_text("".join(f"{q} 0 d{d} {d % 3}\n" for q, d in rows), encoding="utf-8")
    (folder / "run").write_text("".join(f"{q} Q0 d{d} {d + 1} {20 - d} x\n" for q, d in rows), encoding="utf-8")
    split = weak_split(load_ratings_sample(), n=5)
    yield from (sample, named, JudgedQueries.read(held), JudgedQueries.read(named), runs["first"], compare_runs(runs))
    yield from (read_qrels(folder / "qrels"), read_run(folder / "run"))
    yield from (split, evaluate_ratings(split, random.random(split.test.n_ratings)))
    yield LargeMarginRanker("nDCG@10", max_iter=100).fit(sample.train.select(range(4))).bound_tightness(held)


def fitted():
    few = load_sample("les-miserables").train.select(range(4))
    for ranker in (
        LargeMarginRanker("nDCG@10", max_iter=100),
        SmoothRanker("nDCG@10", bandwidths=(1.0,)),
        DirectRanker("nDCG@10", init="ridge", max_iter=200),
    ):
        ranker.fit(few)
        yield from (ranker.certificate_, ranker.history_)
    factors = CofiRanker(reg=0.7).fit(load_ratings_sample())
    yield from (factors.certificate_, factors.history_, factors.recommend(k=2), factors.recommend([]))
    new = factors.fold_in(Ratings.from_arrays([HOSTILE] * 2, factors.item_ids_[:2], [1.0, 4.0]))
    yield from (new, new.recommend())


def shown():
    grades, queries = np.array([2.0, 1.0, 0.0, 1.0, 0.0]), np.array([HOSTILE] * 3 + ["b"] * 2)
    held = Queries.from_arrays(np.arange(10.0).reshape(5, 2), grades, qid=queries)
    first, second = (evaluate(held, sign * grades, ["nDCG@2", "AP"]) for sign in (1.0, -1.0))
    yield from (
        held,
        Ratings.from_arrays([HOSTILE, "u"], ["i", HOSTILE], [1.0, 2.0]),
        first,
        compare(first, second, measure="AP"),
    )
    yield from (solve(matching([[1.0, 2.0]])), crossing(), verify_integrality(crossing()))
    yield from (verify_integrality(np.array(SUITS)), verify_integrality(RankingSet(4, 2)))
    yield integrality_gap(matching([[1.0, 2.0]]))
    answer = solve(matching([[1.0, 0.1]]))
    yield from (certify(matching([[1.0, 0.1]]), answer), certify(matching([[1.0, 0.1]]), answer, exact=True))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_view_is_well_formed_escaped_and_every_repr_short():
    for held in (*shown(), *fitted()):
        markup = held._repr_html_()
        tree = ElementTree.fromstring(markup)  # raises where a tag is open, or text is no text
        assert not list(tree.iter("script")), type(held)
        assert type(held).__name__.split("Certificate")[0] in markup or "".join(tree.itertext()).strip()
        assert_short(held)


def assert_short(held):
    lines = repr(held).splitlines()
    assert len(lines) <= LINES, type(held)
    assert max(map(len, lines)) <= WIDE, lines


def test_large_problems_are_told_by_kind_and_size():
    for held in large_problems():
        assert_short(held)
        assert type(held).__name__ in repr(held) or type(held).__str__ is not object.__str__
        assert not isinstance(held, Problem) or repr(held).startswith(f"<{type(held).__name__} of "), type(held)
        if hasattr(held, "_repr_html_"):
            assert texts(held), type(held)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_large_results_are_short_and_have_views(tmp_path):
    for held in large_results(tmp_path):
        assert_short(held)
        assert not list(ElementTree.fromstring(held._repr_html_()).iter("script")), type(held)
        assert "".join(texts(held)).strip(), type(held)


def test_a_cut_table_says_how_to_see_all_and_print_shows_it():
    held = load_sample("les-miserables").test
    found = evaluate(held, np.zeros(held.n_documents), [f"nDCG@{k}" for k in range(1, 16)])
    assert len(str(found).splitlines()) == 16
    assert repr(found).splitlines() == [
        *str(found).splitlines()[:9], "... and 7 more lines; print() and to_frame() show all"
    ]  # fmt: skip
    assert first_lines("\n".join(["a"] * 10)) == "\n".join(["a"] * 10)


def test_every_subclass_of_a_brief_record_is_brief():
    @dataclass(frozen=True, eq=False)
    class Long(CompactReprMixin):
        many: np.ndarray
        named: dict = field(default_factory=lambda: {number: "b" * 99 for number in range(99)})

    @dataclass(frozen=True, eq=False)
    class Longer(Long):
        text: str = "c" * 999
        more: tuple = tuple(range(999))

    assert_short(Longer(np.zeros((99, 99))))
    assert repr(Longer(np.zeros(2))).startswith("Longer(many=[0, 0],")
    wide = make_dataclass("Wide", [(f"field_{number}", np.ndarray) for number in range(99)], bases=(CompactReprMixin,))
    assert_short(wide(*[np.zeros((9, 9))] * 99))
    assert repr(wide(*[np.zeros((9, 9))] * 99)).endswith(" more)")


def test_columns_of_nothing_are_left_out():
    hard = RankingSet(6, 3).at_most(1, documents=[0, 1, 2], name="few")
    assert "penalty" not in hard._repr_html_()
    assert "few (soft, penalty 2)" in hard.penalized("few", penalty=2.0)._repr_html_()
    unjudged = CofiRanker(factors=2, reg=0.7, max_iter=1, tol=1.0).fit(load_ratings_sample()).history_
    assert {"step", "primal"} <= {*texts(unjudged)}
    assert "judged" not in texts(unjudged)


def test_views_say_what_was_proved_and_listed():
    problem = matching([[1.0, 0.1]])
    exact = certify(problem, solve(problem), exact=True)._repr_html_()
    assert "in fractions" in exact
    assert "0: the optimum, proved" in exact
    lists = CofiRanker(factors=2, reg=0.7, max_iter=1, tol=1.0).fit(load_ratings_sample()).recommend(k=2)
    (text,) = texts(lists)
    lines = text.splitlines()
    assert lines[-1] == f"and {len(lists) - 10} more"
    user, items = lines[1].split(": ")  # after the numbers of users and items
    assert [str(item) for item in lists[lists.users.tolist()[0]]] == items.split(", ")
    assert user == str(lists.users[0])


def test_a_record_without_words_of_its_own_is_a_table_of_its_fields():
    @dataclass(frozen=True, eq=False)
    class Plain(CompactReprMixin):
        scores: np.ndarray
        name: str = HOSTILE
        _inner: int = 3

    tree = ElementTree.fromstring(Plain(np.zeros((500, 2)))._repr_html_())
    assert tree.findtext("strong") == "Plain"
    rows = {row.findtext("th"): row.findtext("td") for row in tree.iter("tr")}
    assert rows == {"scores": "float64 (500, 2)", "name": repr(HOSTILE)}


def test_long_texts_say_how_much_more_there_is():
    class Long(CompactReprMixin):
        def __str__(self):
            return "\n".join(map(str, range(100)))

    (text,) = texts(Long())
    assert text.splitlines() == [*map(str, range(39)), "... and 61 more lines; print() shows all"]


def test_progress_is_one_line_below_the_cell(monkeypatch):
    told = []

    class ZMQInteractiveShell:
        """What a notebook's kernel answers."""

    class Handle:
        def update(self, text):
            told.append(repr(text))

    def display(text, display_id):
        told.append(repr(text))
        return Handle()

    ipython = SimpleNamespace(get_ipython=ZMQInteractiveShell, display=SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    few = load_sample("les-miserables").train.select(range(3))
    LargeMarginRanker("nDCG@10", verbose=1).fit(few)
    assert told[0] == "training ..."
    assert told[1].startswith("round 1, step 1: objective")
    LargeMarginRanker("nDCG@10").fit(few)
    assert len([line for line in told if line == "training ..."]) == 1
