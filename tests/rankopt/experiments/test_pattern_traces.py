"""Traces of pattern rankings: recorded from batches, read back, replayed by our ways, flows and linear programs."""

import numpy as np
import pytest

from formulations import first_relevant_ranking, pairwise_ranking, relevance_ranking, solve, solve_batch
from formulations.problems.relevance_losses import TableLoss
from rankopt.experiments import Outcome, ProblemTrace, SolverSwap
from rankopt.experiments.recording import Log, Recorder, argmax_trace
from rankopt.experiments.replay import batch_claim, tied_pairs
from rankopt.experiments.traces import RecordedProblem


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
    assert {taped.step for taped in trace.problems} == {0, 1, 2}
    assert all(taped.known[1] - taped.known[0] < 1e-12 for taped in trace.problems)


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
    trace = ProblemTrace.from_problems(problems)
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
    taped = RecordedProblem.judged("one", form)
    log = Log()
    assert batch_claim(taped, Recorder(log)) is None

    class Boasting(Recorder):
        def solve_batch(self, batch):
            from dataclasses import replace

            answer = solve_batch(batch)
            return replace(answer, bound=answer.bound - 1.0)

    assert "reports the bound" in batch_claim(taped, Boasting(log))


def test_ties_of_patterns_are_exchanges_that_change_nothing():
    tied = pairwise_ranking([1.0, 1.0, 0.0], [0, 0, 1], "AP")
    assert tied_pairs(tied, np.array([0, 1, 2])) == 1
    assert tied_pairs(pairwise_ranking(np.zeros(3), np.zeros(3), "AP"), np.arange(3)) == 3
    assert tied_pairs(pairwise_ranking([1.0], [1], "AP"), np.arange(1)) == 0
