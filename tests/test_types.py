"""What a type checker says of a user's script: nothing of a right one, and one error a slip of a wrong one."""

import os
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest

from formulations.constraints import constraint
from rankopt.data import samples
from rankopt.data.normalization import METHODS as NORMALIzATIONS
from rankopt.engines import ENGINES
from rankopt.losses import BOUNDS, FEATURE_MAPS, LOSSES
from rankopt.measures import MEASURES
from rankopt.optimize import METHODS, PENALTIES
from rankopt.rankers import RANKERS, SLOT_STARTS, SMOOTH_STARTS, STARTS, STRENGTHS, starts, typing

ROOT = Path(__file__).parent.parent

RIGHT = """
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import formulations
import numpy as np
import pandas as pd  # type: ignore
import scipy.sparse as sp  # type: ignore
from numpy.typing import NDArray
from formulations import Proof, RankingSet, Solution, Undecided, Witness
from formulations import sensitivity, constrained_ranking, solve, verify_integrality
from formulations.solving.sensitivity import SensitivityCurve
from formulations.solvers.highs import Highs
from rankopt.data import load_sample
from rankopt.ratings import Ratings
from rankopt.constraints import Admissible
from rankopt.data import Queries, read_svmlight, read_table
from rankopt.measures import AP, ERR, P, RBP
from rankopt.measures import compare, compare_runs, evaluate, join, nDCG, parse, read_qrels, read_run, write_run
from rankopt.rankers import MatchingRanker, SmoothRanker
from rankopt.rankers import CofiRanker, DirectRanker, LargeMarginRanker, LossRanker, PairwiseRanker, RegressionRanker

sample = load_sample("les-miserables")
ranker = LargeMarginRanker(nDCG @ 10, bound="convex", w0="ridge", lam="auto", normalize="zscore", argmax_solver=Highs())
fitted: LargeMarginRanker = ranker.fit(sample.train)
gap: float = fitted.certificate_.gap
evaluation = evaluate(sample.test, fitted.predict(sample.test), ["nDCG@10", "AP"])
mean: float = evaluation.mean("AP")
p: float = compare(evaluation, evaluation, measure="AP").p_t
answer: Solution = solve(formulations.matching([[1.0, 2.0]]), "highs", time_limit=3.0, options={"presolve": "off"})
verdict: Proof | Witness | Undecided = verify_integrality(RankingSet(4, 2))
ratings: Ratings = Ratings.from_arrays(["a", "b"], [1, 2], [3.0, 4.0])
factors: CofiRanker = CofiRanker("ordinal", item_prior="means").fit(ratings)
factors.recommend(ratings.users[:2], 3, among=[1, 2]), factors.recommend(None, 3), factors.similar(1)
direct = DirectRanker("AP", step_rule="middle")
diverse: RankingSet = RankingSet(4, 3).at_most(1, by=["a", "a", "b", "c"])
diverse = diverse.precedence_chain([0, 1, 2]).min_distance(2, documents=[0, 3])
shared: RankingSet = RankingSet(4, 3).position_in([0, 1]).at_most(share=0.5, documents=[0, 1], prefixes=[2])
rules: Admissible = Admissible(3).at_most(1, by="site").min_distance(2, by="site").at_least(share=0.3, documents="new")
order: Admissible = rules.precedes("new", {"site": "a"}).precedence_chain([{"stage": 1}, {"stage": 2}, "late"])
waits: RankingSet = RankingSet(4, 3).precedes([0, 1], 2).precedence_chain([[0, 1], {2}, range(3, 4)])
site = constrained_ranking([[2.0, 1.0]], RankingSet(2, 1).at_most(1, documents=[0], name="site"))
curve: SensitivityCurve = sensitivity(site, "site", range(2), side="at most")
curves: SensitivityCurve = sensitivity([site, site], "site", range(2))
judged, scores = join(read_qrels("test.qrels", negative="unjudged"), read_run("a.run"), missing="skip")
wanted = ["ndcg_cut_10", "RBP(p=0.8)"]
found = {"a": evaluate(judged, scores, [*wanted, parse("Bpref")], convention="trec")}
latex: str = compare_runs(found, wanted, test="wilcoxon", interval="bootstrap").to_latex(digits=3)
low, high = found["a"].interval("Bpref", by="bootstrap")
write_run("a.run", sample.test, fitted.predict(sample.test), tag="a", scores="model")
rest = [PairwiseRanker(lam=0.1), RegressionRanker(0.0, target="gain", intercept="all"), LossRanker("pairwise")]
own = [nDCG(gain="linear") @ 10, nDCG(gain=[0.0, 1.0, 3.0], discount=lambda n: np.ones(n)), P(rel=2) @ 5, AP, ERR]
more = [RBP(p=0.9, rel=1) @ np.int64(10), RBP(rel=2) @ 5]
x, y = np.eye(4), np.array([0.0, 1.0, 0.0, 2.0])
qid = np.array(["a", "a", "b", "b"])
fitted.fit(x, y, qid=qid, query_weight={"a": 1.0, "b": 2.0}, eval_set=(x, y), eval_qid=qid)
fitted.fit(x, y, group=[2, 2], eval_set=[(x, y)], eval_group=[[2, 2]], attributes={"site": ["a", "b", None, "c"]})
fitted.fit([[1.0, 2.0], [0.0, 1.0]], [1, 0], eval_X=sample.test)
scores_of: NDArray[np.float64] = fitted.predict(x, qid=["a", "a", "b", "b"])
alone: NDArray[Any] = fitted.rank(x, k=3)
ranked: NDArray[Any] | dict[Hashable, NDArray[Any]] = fitted.rank(sample.test)
score: float = fitted.score(sample.test)
term: str = str(fitted.explain(x[0], x[1], among=x))
starts = [LargeMarginRanker(w0=np.zeros(4), position_weights="power(0.5)@10")]
starts += [LargeMarginRanker(position_weights=[3.0, 2.0], w0=[0.0, 1.0])]
others = [MatchingRanker(3, w0="regression"), SmoothRanker(w0="ridge"), DirectRanker(init=LargeMarginRanker())]
stored = LargeMarginRanker(checkpoint=Path("run"), random_state=3)
table: Queries = read_table(Path("data.csv"), qid="query", unjudged="drop")
file: Queries = read_svmlight("train.txt", unjudged=0.0)
made: Queries = Queries.from_arrays([[0.5, 1], [2, 0]], [0, 2], qid=["b", "a"])
places: RankingSet = RankingSet(4, 3).at_most(np.int64(1), documents=np.array([0, 1]), positions=range(2)).fix(3, 0)
labels: RankingSet = RankingSet(3, 2).exactly(1, by=np.array(["a", "a", "b"])).between(0, 1)
labels = labels.min_distance(2, by=[("a", "b"), None, "c"])
shares: RankingSet = RankingSet(3, 2).at_least({"a": 1}, by=["a", "b", {"a"}]).at_most(share=1 / 3, documents={0, 1})
masked: RankingSet = RankingSet(3, 2).forbid([True, False, False], 0).add_rows(np.ones((1, 6)), upper=[2.0])
frame, column = pd.DataFrame({"qid": [1, 1, 2], "x": [0.5, 1, 2]}), pd.Series([1, 0, 2])
fitted.fit(frame, column, query_weight=column, attributes=frame, eval_set=(frame, column)).predict(frame)
fitted.fit(sp.csr_matrix(np.eye(3)), column, group=column).explain(frame.iloc[0], frame.iloc[1], among=frame)
framed: Queries = Queries.from_arrays(frame[["x"]], column, qid=frame["qid"])
pairs: CofiRanker = CofiRanker().fit(Ratings.from_frame(frame)).fit([("a", 1), ("b", 2)], [3, 4])
by: RankingSet = RankingSet(3, 2).at_most(1, by=frame["qid"], documents=frame["x"] > 1)
of_frame: RankingSet = rules.for_query(frame, 3)
"""

WRONG = """
import formulations
from formulations import RankingSet, sensitivity, constrained_ranking, solve
from rankopt.constraints import Admissible
from rankopt.data import Queries, load_sample, read_table, red_table  # wrong
from rankopt.measures import MRR  # wrong
from rankopt.measures import ERR, P, RBP, compare_runs, evaluate, join, nDCG, read_qrels, read_run, write_run
from rankopt.rankers import LargeRanker  # wrong
from rankopt.experimental import DirectBoostedRanker
from rankopt.rankers import BoostedRanker, CofiRanker, DirectRanker, LargeMarginRanker, LossRanker
from rankopt.rankers import MatchingRanker, PairwiseRanker, RegressionRanker, SmoothRanker

LargeMarginRanker(bound="convexx")  # wrong
LargeMarginRanker(feature_map="pair")  # wrong
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
DirectRanker(step_rule="mid")  # wrong
DirectRanker(selection="cyclical")  # wrong
CofiRanker(reg="automatic")  # wrong
CofiRanker(item_prior="none")  # wrong
CofiRanker(factors="all")  # wrong
BoostedRanker(bound="tight")  # wrong
DirectBoostedRanker(strategy="stagewise")  # wrong
solve(formulations.matching([[1.0, 2.0]]), time_limit="3 s")  # wrong
solve(formulations.matching([[1.0, 2.0]]), 3)  # wrong
RankingSet("6", 3)  # wrong
RankingSet(6, 3).atmost(1)  # wrong
RankingSet(6, 3).at_most_shared(0.5)  # wrong
RankingSet(6, 3).position_in([0, 1], positions=0)  # wrong
RankingSet(6, 3).min_distance(2, prefixes=[1])  # wrong
Admissible(3).atmost(1, by="site")  # wrong
Admissible(3).precedes(0, 1)  # wrong
site = constrained_ranking([[2.0, 1.0]], RankingSet(2, 1).at_most(1, documents=[0], name="site"))
sensitivity(site, "site", range(2), side="atmost")  # wrong
evaluate([1, 0], [0.5, 0.1], 10)  # wrong
read_qrels("test.qrels", negative="unjuged")  # wrong
join(read_qrels("test.qrels"), read_run("a.run"), missing="drop")  # wrong
compare_runs({}, test="sign")  # wrong
compare_runs({}, interval="normal")  # wrong
write_run("a.run", None, [0.5])  # wrong
s = load_sample("les-miserables")
load_sample("les-mis")  # wrong
write_run("a.run", s.test, [0.5], scores="ranks")  # wrong
write_run("a.run", s.test, "scores")  # wrong
evaluate(s.test, "scores", "AP")  # wrong
evaluate("grades", [0.5], "AP")  # wrong
read_table(3)  # wrong
read_table("data.csv", unjudged="zero")  # wrong
Queries.from_arrays("x", qid=[0])  # wrong
Queries.from_arrays([[1.0]], qid="a")  # wrong
nDCG(gain="line")  # wrong
nDCG(discount="ln")  # wrong
nDCG(gains="linear")  # wrong
nDCG @ "x"  # wrong
nDCG @ 2.5  # wrong
P(rel="2")  # wrong
RBP(q=0.8)  # wrong
ERR(max_grade="four")  # wrong
LargeMarginRanker(w0="zero")  # wrong
LargeMarginRanker(position_weights=3)  # wrong
LargeMarginRanker(checkpoint=3)  # wrong
LargeMarginRanker(random_state="zero")  # wrong
MatchingRanker(w0="ridge")  # wrong
SmoothRanker(w0="zeros")  # wrong
DirectRanker(init="regression")  # wrong
ranker = LargeMarginRanker()
ranker.fit("x")  # wrong
ranker.fit([[1.0]], "x")  # wrong
ranker.fit([[1.0]], [1.0], qid="a")  # wrong
ranker.fit([[1.0]], [1.0], group=1)  # wrong
ranker.fit(s.train, eval_set=3)  # wrong
ranker.fit(s.train, eval_set="test")  # wrong
ranker.fit(s.train, eval_set=(1, 2))  # wrong
ranker.fit(s.train, query_weight="all")  # wrong
ranker.fit(s.train, attributes="site")  # wrong
ranker.predict("abc")  # wrong
ranker.predict(3)  # wrong
ranker.score("abc")  # wrong
ranker.rank("abc")  # wrong
ranker.rank(s.test, constraints="none")  # wrong
ranker.explain("a", "b")  # wrong
ranker.bound_tightness(s.test, feature_map="pair")  # wrong
ranker.path(s.train, bounds=["convexx"])  # wrong
CofiRanker().fit("x")  # wrong
CofiRanker().recommend(["a"], seen="leave")  # wrong
CofiRanker().recommend("ann")  # wrong
CofiRanker().recommend(["ann"], among=3)  # wrong
CofiRanker().similar([1])  # wrong
RankingSet(3, 2).at_most("two")  # wrong
RankingSet(3, 2).at_most("2", by=["a"])  # wrong
RankingSet(3, 2).at_most(1, documents="abc")  # wrong
RankingSet(3, 2).at_most(1, positions=3.5)  # wrong
RankingSet(3, 2).at_least(1, by="abc")  # wrong
RankingSet(3, 2).between("1", 2)  # wrong
RankingSet(3, 2).forbid("a")  # wrong
RankingSet(3, 2).fix("a", 0)  # wrong
RankingSet(3, 2).precedes("a", 1)  # wrong
RankingSet(3, 2).at_most(share="half")  # wrong
RankingSet(3, 2).at_most(share=0.5, rounding="upward")  # wrong
Admissible(3, on_infeasible="cut")  # wrong
Admissible(3).at_most("two", by="site")  # wrong
Admissible(3).at_most(share=0.5, by="site", rounding="upward")  # wrong
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
    command = [sys.executable, "-m", checker]
    if find_spec(checker) is None:
        if shutil.which(checker) is None:
            pytest.skip(f"{checker} is not installed")
        command = [checker]
    run = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=300)
    if run.returncode:  # pyright's package fetches node where there is none
        pytest.skip(f"{checker} cannot be started: {(run.stderr or run.stdout).strip().splitlines()[-1:]}")
    command += ["--strict"] if checker == "mypy" else ["--pythonpath", sys.executable]
    found, said = checked(command, tmp_path, RIGHT)
    assert not found, said
    found, said = checked(command, tmp_path, WRONG)
    assert found == {number for number, line in enumerate(WRONG.splitlines(), 1) if line.endswith("# wrong")}, said


@pytest.mark.parametrize(
    ("named", "table"),
    [
        (typing.BoundName, BOUNDS),
        (typing.MapName, FEATURE_MAPS),
        (typing.LossName, LOSSES),
        (typing.MethodName, METHODS),
        (typing.PenaltyName, PENALTIES),
        (typing.EngineName, ENGINES),
        (typing.StartName, STARTS),
        (typing.SlotStartName, SLOT_STARTS),
        (typing.SmoothStartName, SMOOTH_STARTS),
        (typing.DirectStartName, starts.NAMED),
        (typing.StrengthName, STRENGTHS),
        (typing.NormalizeName, NORMALIzATIONS),
        (samples.SampleName, samples.SAMPLES),
        (constraint.Rounding, constraint.ROUNDINGS),
    ],
)
def test_every_name_of_a_table_is_known_to_type_checkers(named, table):
    assert set(get_args(named)) == set(table)


@pytest.mark.parametrize("door", ["formulations", "rankopt", "rankopt.data", "rankopt.measures", "rankopt.rankers"])
def test_the_doors_tell_what_their_tables_hold(door):
    """Else a name would be unknown to a type checker, which sees no `__getattr__` there."""
    module, tables = import_module(door), {"rankopt.measures": MEASURES, "rankopt.rankers": RANKERS}
    said = Path(module.__file__).read_text(encoding="utf-8")
    for name in module.__all__:
        assert f" import {name} as {name}\n" in said
    for name, place in tables.get(door, {}).items():
        assert f"from {place.partition(':')[0]} import {name} as {name}" in said
