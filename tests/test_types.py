"""What a type checker says of a user's script: nothing of a right one, and one error a slip of a wrong one."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest

from rankopt.data.normalisation import METHODS as NORMALISATIONS
from rankopt.engines import ENGINES
from rankopt.losses import BOUNDS, LOSSES, MAPS
from rankopt.optimize import METHODS, PENALTIES
from rankopt.rankers import RANKERS, STARTS, STRENGTHS, choices

ROOT = Path(__file__).parent.parent

RIGHT = """
import formulations
from formulations import Proof, RankingSet, Solution, Undecided, Witness
from formulations import price_of, ranking_set, solve, verify_integrality
from formulations.solving.price_of import PriceCurve, PriceCurves
from formulations.solvers.highs import Highs
from rankopt.data import Ratings, load_sample
from rankopt.constraints import Admissible
from rankopt.measures import compare, compare_runs, evaluate, judge, nDCG, parse, read_qrels, read_run, write_run
from rankopt.rankers import CofiRanker, DirectRanker, LargeMarginRanker, LossRanker, PairwiseRanker, RegressionRanker

sample = load_sample("les-miserables")
ranker = LargeMarginRanker(nDCG @ 10, bound="convex", w0="ridge", lam="auto", normalize="zscore", argmax=Highs())
fitted: LargeMarginRanker = ranker.fit(sample.train)
gap: float = fitted.certificate_.gap
evaluation = evaluate(sample.test, fitted.predict(sample.test), ["nDCG@10", "AP"])
mean: float = evaluation.mean("AP")
p: float = compare(evaluation, evaluation, measure="AP").p_t
answer: Solution = solve(formulations.matching([[1.0, 2.0]]), "highs", time_limit=3.0, options={"presolve": "off"})
verdict: Proof | Witness | Undecided = verify_integrality(RankingSet(4, 2))
ratings: Ratings = Ratings.of(["a", "b"], [1, 2], [3.0, 4.0])
factors: CofiRanker = CofiRanker("ordinal").fit(ratings)
direct = DirectRanker("AP", point="middle")
diverse: RankingSet = RankingSet(4, 3).at_most(1, by=["a", "a", "b", "c"]).chain([0, 1, 2]).apart(2, documents=[0, 3])
shared: RankingSet = RankingSet(4, 3).one_of([0, 1]).at_most_share(0.5, documents=[0, 1], prefixes=[2]).between(1, 2)
rules: Admissible = Admissible(3).at_most(1, by="site").apart(2, by="site").at_least_share(0.3, documents="new")
order: Admissible = rules.before("new", {"site": "a"}).chain([{"stage": 1}, {"stage": 2}, "late"], name="stages")
waits: RankingSet = RankingSet(4, 3).before([0, 1], 2).chain([[0, 1], {2}, range(3, 4)])
site = ranking_set([[2.0, 1.0]], RankingSet(2, 1).at_most(1, documents=[0], name="site"))
curve: PriceCurve = price_of(site, "site", range(2), side="at most")
curves: PriceCurves = price_of([site, site], "site", range(2))
judged, scores = judge(read_qrels("test.qrels", negative="unjudged"), read_run("a.run"), missing="skip")
wanted = ["ndcg_cut_10", "RBP(p=0.8)"]
found = {"a": evaluate(judged, scores, [*wanted, parse("Bpref")], convention="trec")}
latex: str = compare_runs(found, wanted, test="wilcoxon", interval="bootstrap").to_latex(digits=3)
low, high = found["a"].interval("Bpref", by="bootstrap")
write_run("a.run", sample.test, fitted.predict(sample.test), tag="a", column="model")
rest = [PairwiseRanker(lam=0.1), RegressionRanker(0.0, target="gain", intercept="all"), LossRanker("pairwise")]
"""

WRONG = """
import formulations
from formulations import RankingSet, price_of, ranking_set, solve
from formulations.solving.price_of import PriceCurve
from rankopt.constraints import Admissible
from rankopt.measures import compare_runs, evaluate, judge, read_qrels, read_run, write_run
from rankopt.rankers import BoostedRanker, CofiRanker, DirectBoostedRanker, DirectRanker, LargeMarginRanker, LossRanker
from rankopt.rankers import McRanker, PairwiseRanker, RegressionRanker, SmoothRanker

LargeMarginRanker(bound="convexx")  # wrong
LargeMarginRanker(map="pair")  # wrong
LargeMarginRanker(lam="automatic")  # wrong
LargeMarginRanker(normalise="zscore")  # wrong
LargeMarginRanker(normalize="z")  # wrong
LargeMarginRanker(engine="thread")  # wrong
LargeMarginRanker(penalty="L1")  # wrong
LargeMarginRanker(measure=10)  # wrong
PairwiseRanker(method="bundles")  # wrong
RegressionRanker("automatic")  # wrong
LossRanker("pairs")  # wrong
SmoothRanker(method="BFGS")  # wrong
DirectRanker(point="mid")  # wrong
DirectRanker(order="cyclical")  # wrong
CofiRanker(strength="automatic")  # wrong
CofiRanker(factors="all")  # wrong
BoostedRanker(bound="tight")  # wrong
DirectBoostedRanker(strategy="stagewise")  # wrong
McRanker(expected="gains")  # wrong
solve(formulations.matching([[1.0, 2.0]]), time_limit="3 s")  # wrong
solve(formulations.matching([[1.0, 2.0]]), 3)  # wrong
RankingSet("6", 3)  # wrong
RankingSet(6, 3).atmost(1)  # wrong
RankingSet(6, 3).at_most_shared(0.5)  # wrong
RankingSet(6, 3).one_of([0, 1], places=0)  # wrong
RankingSet(6, 3).apart(2, prefixes=[1])  # wrong
Admissible(3).atmost(1, by="site")  # wrong
Admissible(3).before(0, 1)  # wrong
site = ranking_set([[2.0, 1.0]], RankingSet(2, 1).at_most(1, documents=[0], name="site"))
price_of(site, "site", range(2), side="atmost")  # wrong
several: PriceCurve = price_of([site, site], "site", range(2))  # wrong
evaluate([1, 0], [0.5, 0.1], 10)  # wrong
read_qrels("test.qrels", negative="unjuged")  # wrong
judge(read_qrels("test.qrels"), read_run("a.run"), missing="drop")  # wrong
compare_runs({}, test="sign")  # wrong
compare_runs({}, interval="normal")  # wrong
write_run("a.run", None, [0.5], column="ranks")  # wrong
"""


def checked(command, tmp_path, text):
    """The lines at which the checker finds errors, and what it printed."""
    script = tmp_path / "script.py"
    script.write_text(text, encoding="utf-8")
    env = {**os.environ, "MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)}
    run = subprocess.run([*command, str(script)], capture_output=True, text=True, cwd=tmp_path, env=env, timeout=300)
    told = [line for line in run.stdout.splitlines() if "error" in line and "script.py:" in line]
    return {int(line.partition("script.py:")[2].split(":")[0]) for line in told}, run.stdout + run.stderr


@pytest.mark.study
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_users_script(checker, tmp_path):
    if (checker == "mypy" and find_spec("mypy") is None) or (checker == "pyright" and shutil.which("pyright") is None):
        pytest.skip(f"{checker} is not installed")
    command = [sys.executable, "-m", "mypy", "--strict"] if checker == "mypy" else ["pyright"]
    found, said = checked(command, tmp_path, RIGHT)
    assert not found, said
    found, said = checked(command, tmp_path, WRONG)
    assert found == {number for number, line in enumerate(WRONG.splitlines(), 1) if line.endswith("# wrong")}, said


@pytest.mark.parametrize(
    ("named", "table"),
    [
        (choices.BoundName, BOUNDS),
        (choices.MapName, MAPS),
        (choices.LossName, LOSSES),
        (choices.MethodName, METHODS),
        (choices.PenaltyName, PENALTIES),
        (choices.EngineName, ENGINES),
        (choices.StartName, STARTS),
        (choices.StrengthName, STRENGTHS),
        (choices.NormalizeName, NORMALISATIONS),
    ],
)
def test_every_name_of_a_table_is_known_to_type_checkers(named, table):
    assert set(get_args(named)) == set(table)


def test_the_doors_tell_what_their_tables_hold():
    said = (ROOT / "rankopt/rankers/__init__.py").read_text(encoding="utf-8")
    for name, place in RANKERS.items():
        assert f"from {place.partition(':')[0]} import {name} as {name}" in said
