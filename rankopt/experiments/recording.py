"""Recorders: solvers that record the problems of a training run and solve them as the default solvers do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar, overload

import numpy as np

from formulations.constraints.constrained_ranking import ConstrainedRanking, PenalizedRanking
from formulations.problems.problem import Problem, Solution
from formulations.problems.ranking import RankTwoAssignment, RankTwoBatch
from formulations.problems.relevance_ranking import RelevanceBatch, RelevanceRanking
from formulations.problems.simplex_qp import GroupedSimplexQP
from formulations.solvers.batch_solution import BatchSolution, RelevanceSolution
from formulations.solvers.exact import ExactArgmax
from formulations.solvers.solver import SolverResult
from formulations.solving.solve import solve, solve_batch
from rankopt.experiments.traces import ProblemTrace, RecordedProblem


@dataclass
class Log:
    """The recorded problems by step: about `most` evenly spaced steps of a run, and always the latest."""

    most: int = 32
    step: int = 0
    stride: int = 1
    heard: dict[int, list[Any]] = field(default_factory=dict)

    def keep(self, problem: Any) -> None:
        if self.step not in self.heard:
            self.heard = {step: heard for step, heard in self.heard.items() if step % self.stride == 0}
            if len(self.heard) >= self.most:
                self.stride *= 2
                self.heard = {step: heard for step, heard in self.heard.items() if step % self.stride == 0}
        self.heard.setdefault(self.step, []).append(problem)

    def stepped(self, *_: Any) -> None:
        """Training callback: count a step."""
        self.step += 1


@dataclass(frozen=True)
class Recorder:
    """Records every batch of ranking problems, every constrained ranking and every master program of a training run."""

    log: Log

    accepts: ClassVar[tuple[type[Problem], ...]] = (
        RankTwoAssignment, RelevanceRanking, ConstrainedRanking, PenalizedRanking, GroupedSimplexQP,
    )  # fmt: skip
    package: ClassVar[str] = "rankopt"
    spec: ClassVar[str] = "recorder"

    def reason_unsupported(self, problem: Problem) -> str | None:
        return None

    def solve(self, problem: Problem, warm_start: Solution | None = None) -> SolverResult:
        self.log.keep([problem])
        solution = solve(problem, warm_start=warm_start)
        return SolverResult(solution.x, solution.y, solution.message)

    @overload
    def solve_batch(self, batch: RankTwoBatch) -> BatchSolution: ...
    @overload
    def solve_batch(self, batch: RelevanceBatch) -> RelevanceSolution: ...
    def solve_batch(self, batch: RankTwoBatch | RelevanceBatch) -> BatchSolution | RelevanceSolution:
        self.log.keep(batch)
        return solve_batch(batch, ExactArgmax().for_data(batch))  # as in training


def argmax_trace(log: Log, count: int, seed: int) -> ProblemTrace:
    """About `count` ranking problems: the same queries at the start, in the middle and at the end of the run.

    Sizes are evenly spaced. The order of queries is drawn with the seed, so that a slow solver meets all sizes.
    """
    steps = sorted(log.heard)
    stages = sorted({steps[0], steps[len(steps) // 2], steps[-1]})
    recorded = {step: [(b, index) for b in log.heard[step] for index in range(len(b))] for step in stages}
    queries = min(map(len, recorded.values()))  # under constraints the first step begins with the reference rankings
    recorded = {step: problems[-queries:] for step, problems in recorded.items()}
    sizes = np.array([_size(*query) for query in recorded[stages[-1]]])
    wanted = min(max(1, count // len(stages)), sizes.size)
    spread = np.linspace(0, sizes.size - 1, wanted).round().astype(int)
    chosen = np.random.default_rng(seed).permutation(np.argsort(sizes, kind="stable")[spread])
    problems = []
    for query, step in product(chosen.tolist(), stages):
        batch, index = recorded[step][query]  # the problem of a query is built on demand
        problems.append(RecordedProblem.judged(f"step {step:04d} query {query:05d}", batch[index], step))
    return ProblemTrace("argmax", tuple(problems))


def master_trace(log: Log, count: int, label: str = "master") -> ProblemTrace:
    """About `count` master programs, evenly spaced over the run, from few planes to many."""
    steps = sorted(log.heard)
    spread = np.unique(np.linspace(0, len(steps) - 1, min(count, len(steps))).round().astype(int))
    chosen = [(steps[i], log.heard[steps[i]][0][0]) for i in spread]
    return ProblemTrace(label, tuple(RecordedProblem.judged(f"step {step:04d}", form, step) for step, form in chosen))


def _size(batch: RankTwoBatch | RelevanceBatch | Sequence[Problem], index: int) -> int:
    if isinstance(batch, RankTwoBatch | RelevanceBatch):
        return int(batch.offsets[index + 1] - batch.offsets[index])
    return batch[index].size
