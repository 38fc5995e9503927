"""Solvers with planted faults, at the top of a module that a worker can import: each fault must become its own row."""

import os
import signal
import time
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from formulations import Assignment, GroupedSimplexQP, RankTwoAssignment, SolverResult, function_solver, solve
from formulations.solvers.active_set import ActiveSet
from formulations.solvers.exact import ExactArgmax
from formulations.solving.solve import solve_batch
from rankopt.optimize.bundle import Bundle

TINY = 8
"""Problems up to this many documents are solved honestly, among them the one that warms a worker up, but by those
whose name begins with always."""


def honest(problem):
    return solve(problem, "exact").x


def backwards(problem):
    """The worst placing: all but never optimal, and no claim is made."""
    return solve(replace(problem, scores=-problem.scores, gain=-problem.gain), "exact").x


def boasting(problem):
    """A placing that is not optimal, called so."""
    return replace(problem.solution(backwards(problem)), bound=problem.value(backwards(problem)))


def misvalued(problem):
    return replace(solve(problem, "exact"), value=1e3)


def no_numbers(problem):
    return np.full(problem.positions, np.nan)


def twice_the_same(problem):
    return np.zeros(problem.positions, dtype=np.int64)


def raising(problem):
    raise ZeroDivisionError("planted")


@dataclass(frozen=True)
class OneGroup(ActiveSet):
    """A master that takes planes of one group only, as many foreign ones do."""

    def reason_unsupported(self, problem):
        return f"it takes one group and this has {problem.capacity.size}" if problem.capacity.size > 1 else None


@dataclass(frozen=True)
class Failing(ActiveSet):
    """A master that fails once a training has asked it `after` times; the call that loads code does not count."""

    after: int = 0
    asked: list = field(default_factory=list, repr=False)

    def solve(self, problem, warm_start=None):
        self.asked.append(problem.values.size)
        if len(self.asked) > self.after + 1:
            raise RuntimeError("planted")
        return super().solve(problem, warm_start)


def segfaulting(problem):
    if problem.documents > TINY:
        os.kill(os.getpid(), signal.SIGSEGV)
    return honest(problem)


def sleeping(problem):
    if problem.documents > TINY:
        time.sleep(1e6)
    return honest(problem)


def greedy_for_memory(problem):
    if problem.documents > TINY:
        kept = [np.empty(1 << 24) for _ in range(1 << 20)]
        return np.arange(len(kept))
    return honest(problem)


def always_sleeping(problem):
    time.sleep(1e6)


def always_greedy(problem):
    kept = [np.empty(1 << 24) for _ in range(1 << 20)]
    return np.arange(len(kept))


def always_segfaulting(problem):
    os.kill(os.getpid(), signal.SIGSEGV)


def always_killed(problem):
    os.kill(os.getpid(), signal.SIGKILL)


def once_in_a_while(problem):
    """Dies on problems of an even number of documents."""
    if problem.documents > TINY and problem.documents % 2 == 0:
        os._exit(7)
    return honest(problem)


def chattering(problem):
    print("all is well")
    os.write(1, b"{not a message\n")
    return honest(problem)


@dataclass(frozen=True)
class LiarInBatches:
    """Honest problem by problem; asked for a batch it returns the worst placings with their values for bounds."""

    accepts: ClassVar = (RankTwoAssignment,)
    package: ClassVar[str] = "rankopt"
    spec: ClassVar[str] = "liar"

    def reason_unsupported(self, problem):
        return None

    def solve(self, problem, warm_start=None):
        return ExactArgmax().solve(problem, warm_start)

    def solve_batch(self, batch):
        worst = solve_batch(replace(batch, scores=-batch.scores), ExactArgmax())
        value = np.array([batch[q].value(worst[q].order) for q in range(len(batch))])
        return replace(worst, problems=batch, value=value, bound=value)


class Boasting(Bundle):
    """A bundle method whose bounds are too good."""

    def step(self, state, objective):
        after = super().step(state, objective)
        return replace(after, bound=min(after.bound + 0.2, after.primal))


def no_weight(problem):
    """A master of weight zero: feasible, and never good."""
    return SolverResult(np.zeros(problem.values.size))


HONEST = function_solver(honest, accepts=RankTwoAssignment)
ASSIGNED = function_solver(lambda problem: solve(problem, "scipy").x, accepts=Assignment, name="nameless")
IDLE_MASTER = function_solver(no_weight, accepts=GroupedSimplexQP)
EXPECTED = {
    honest: "SOLVED",
    chattering: "SOLVED",
    backwards: "INEXACT",
    boasting: "WRONG",
    misvalued: "WRONG",
    no_numbers: "WRONG",
    twice_the_same: "WRONG",
    raising: "CRASHED",
    segfaulting: "CRASHED",
    sleeping: "TIMED_OUT",
    greedy_for_memory: "OUT_OF_MEMORY",
}
"""What each function's rows must say."""
