"""Live runs: training with one argmax, master or method in the place of the usual one, judged by the usual ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from formulations.errors import FormulationError, UnknownSolver
from formulations.forms.form import Form
from formulations.forms.grouped_simplex import GroupedSimplexQP
from formulations.forms.rank_two_assignment import RankTwoAssignment
from rankopt.data.queries import Queries
from rankopt.data.stored import open_stored
from rankopt.errors import OptionError, RankoptError
from rankopt.evaluation.evaluation import evaluate
from rankopt.experiments.isolation.limits import memory_peak, start_peak
from rankopt.experiments.isolation.shipping import Entrant, resolved
from rankopt.experiments.rows import Outcome, Row
from rankopt.experiments.tapes.replaying import fault, warm
from rankopt.optimize.history import Step

__all__ = ["LiveRun"]

TOLD = 0.2
"""Seconds between two partial rows: what is known of a run that is killed is no older."""

POINTS = 200
"""Steps of a history that a row keeps, evenly spaced, first and last among them."""

FORMS: dict[str, type[Form]] = {"argmax": RankTwoAssignment, "master": GroupedSimplexQP}
"""What is asked in the place of each part that is a solver."""


@dataclass(eq=False)
class LiveRun:
    """The job of a worker: fit `ranker` on the queries stored at `train`, with `entrant` in its parameter `role`.

    attained: an objective that another run attained, which no bound of a convex problem may pass.
    """

    ranker: Any
    role: str
    entrant: Entrant | Any
    train: str
    held_out: str | None
    measures: tuple[str, ...]
    blank: Row
    seconds: float
    attained: float | None = None

    def open(self) -> Iterator[str]:
        self.queries = open_stored(self.train)
        swapped = self.entrant
        if self.role != "method" and swapped != "auto":
            try:
                swapped = resolved(swapped)
            except UnknownSolver as error:
                yield str(error)
                return
        self.swapped = clone(self.ranker).set_params(**{self.role: swapped, "time_limit": self.seconds})

    def warm(self) -> None:
        """Load and compile what training uses on first use, which is no matter of the solver: seconds are of a run."""
        swapped = self.swapped.get_params()[self.role]
        if self.role in FORMS and swapped != "auto":
            warm(swapped, FORMS[self.role])
        few = self.queries.select(range(min(3, len(self.queries))))
        with suppress(FormulationError, RankoptError):
            clone(self.ranker).set_params(max_iter=1).fit(few)

    def row(self, item: int, partial: Callable[[dict[str, Any]], None]) -> Row:
        start_peak()
        known = ReferenceSolution(partial)
        try:
            self.swapped.set_params(callbacks=(*self.swapped.callbacks, known))
            began = perf_counter()
            self.swapped.fit(self.queries)
            row = self._judged(replace(self.blank, seconds=perf_counter() - began, repeats=1, **known.fields()))
        except MemoryError as error:
            row = replace(self.blank, status=Outcome.OUT_OF_MEMORY, message=f"MemoryError {error}".strip())
        except (FormulationError, RankoptError) as error:
            how = {"status": Outcome.UNSUPPORTED} if isinstance(error, OptionError) else fault(error)
            row = replace(self.blank, **known.fields(), message=str(error), **how)
        return replace(row, memory=memory_peak())

    def _judged(self, row: Row) -> Row:
        """The run's claims recomputed: J at its w with the usual argmax and proven bounds, and no bound above a J."""
        proved = self.swapped.certificate_
        row = replace(
            row, value=proved.primal, bound=proved.bound, scale=abs(proved.primal) or 1.0,
            message=proved.stop.value, measures=self._measured(), facts={"kind": proved.kind},
        )  # fmt: skip
        usual = clone(self.ranker).objective(self.queries)
        w = np.asarray(self.swapped.coef_, dtype=np.float64).ravel()
        true = usual.upper(w, usual.risk.at(w, prove=True))
        slack = 1e-6 * max(abs(true), abs(proved.primal))
        if proved.primal < true - slack:
            why = f"it says that J = {proved.primal:.9g}, and J = {true:.9g} there"
            return replace(row, status=Outcome.WRONG, certified=False, message=why)
        attained = true if self.attained is None else min(true, self.attained)
        if proved.kind == "global" and proved.bound > attained + slack:
            why = f"it says that nothing is below {proved.bound:.9g}, but {attained:.9g} is attained"
            return replace(row, status=Outcome.WRONG, certified=False, message=why)
        closed = proved.relative_gap <= (row.tolerance or 0.0)
        return replace(row, status=Outcome.SOLVED if closed else Outcome.INEXACT, certified=True)

    def _measured(self) -> dict[str, float | None]:
        if self.held_out is None:
            return {}
        queries: Queries = open_stored(self.held_out)
        found = evaluate(queries, self.swapped.predict(queries), list(self.measures))
        return {name: float(found.mean(name)) for name in self.measures}


class ReferenceSolution:
    """A callback of training that keeps its history, and tells it now and then."""

    def __init__(self, partial: Callable[[dict[str, Any]], None]) -> None:
        self.steps: list[Step] = []
        self.partial, self.told = partial, -np.inf

    def __call__(self, step: Step, state: Any) -> None:
        self.steps.append(step)
        if step.seconds - self.told >= TOLD:
            self.told = step.seconds
            self.partial(self.fields())

    def fields(self) -> dict[str, Any]:
        """The fields of a row that are known so far."""
        if not self.steps:
            return {}
        last = self.steps[-1]
        spread = np.unique(np.linspace(0, len(self.steps) - 1, min(POINTS, len(self.steps))).round().astype(int))
        kept = [self.steps[index] for index in spread.tolist()]
        names = ("step", "round", "seconds", "primal", "bound")
        history = {name: [_finite(getattr(step, name)) for step in kept] for name in names}
        return {
            "history": history, "iterations": last.step, "value": _finite(last.primal), "bound": _finite(last.bound),
            "scale": abs(last.primal) or 1.0,
        }  # fmt: skip


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
