"""Problems that tests of the solver swap are given, and limits under which they are quick."""

import numpy as np

from formulations import ranking
from rankopt.experiments import Limits, SolverSwap

QUICK = Limits(problem=2.0, trace=30.0, training_time=2.0, memory=1 << 30)
TIMED = {"seconds", "times", "seconds_total", "memory", "repeats"}
"""Fields of a row that differ from run to run."""


def rankings(sizes=(9, 12, 15)):
    rng = np.random.default_rng(3)
    return [
        ranking(
            rng.normal(size=n),
            rng.integers(0, 3, n),
            discount=1 / np.log2(np.arange(2, 7)),
            position_weights=6 - np.arange(1, 6),
        )
        for n in sizes
    ]


def swapped(problems, *argmax, **options):
    return SolverSwap(problems, argmax_solvers=argmax, **{"repeats": 1, "limits": QUICK, **options}).run()


def without_times(rows):
    return [{name: value for name, value in vars(row).items() if name not in TIMED} for row in rows]
