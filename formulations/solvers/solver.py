"""What a solver is, and what it says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

from numpy.typing import NDArray

from formulations.arrays import Floats
from formulations.brevity import CompactReprMixin
from formulations.bridges import chains
from formulations.forms.form import Form, Solution

__all__ = ["Answer", "BatchSolver", "Solver", "suits"]


@dataclass(frozen=True)
class Answer(CompactReprMixin):
    """What a solver says: a primal point, dual prices if it has any, its own word and figures. Nothing is believed."""

    x: NDArray[Any]
    y: Floats | None = None
    message: str = ""
    details: dict[str, Any] = field(default_factory=dict)


@runtime_checkable
class Solver(Protocol):
    """A solver: a frozen dataclass whose fields are its options.

    `accepts` lists the forms it takes as they are, `spec` is the text that `formulations.solvers.named` parses, and
    `package` the distribution whose version is reported.
    """

    package: ClassVar[str]

    @property
    def accepts(self) -> tuple[type[Form], ...]: ...

    @property
    def spec(self) -> str: ...

    def declines(self, problem: Form) -> str | None:
        """Why this problem, though of an accepted form, cannot be solved; None if it can."""
        ...

    def solve(self, problem: Any, start: Solution | None = None) -> Answer: ...


@runtime_checkable
class BatchSolver(Protocol):
    """A solver that takes many rankings at once: batches of each form that it accepts."""

    def solve_batch(self, batch: Any) -> Any: ...


def suits(solver: Solver, form: type[Form]) -> bool:
    """Whether a chain of bridges leads from the form to one that the solver accepts."""
    return bool(chains(form, solver.accepts))
