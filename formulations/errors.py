"""Everything that formulations raises on purpose.

FormulationError
├── InvalidProblemError (ValueError)    numbers that state no problem: NaN, infinity, overflow, shapes that do not fit
├── Infeasible (ValueError)        no point satisfies the constraints; names the conflict where it is known
├── Unbounded (ValueError)         the objective improves for ever
├── Unsupported (TypeError)        no chain of bridges leads from the form to one that the solver accepts
├── UnknownSolverError (ValueError)     no solver has this name, or its package is not installed
├── SolverError (RuntimeError)    the solver gave up, crashed or returned something that is no answer
│   ├── Crashed                    it raised what a solver should not; the cause is attached
│   ├── InvalidSolutionError                   what it returned is no point of the problem, or it denies that there is
one │   └── Fractional                 the relaxation that it solved has a fractional optimum where a whole one is asked
for └── Refuted (ArithmeticError)      a claim of a solution is false when recomputed from the data
"""


class FormulationError(Exception):
    """Base of all errors that formulations raises on purpose."""


class InvalidProblemError(FormulationError, ValueError):
    """Numbers that state no problem: NaN, infinity, overflow, or shapes that do not fit."""


class InfeasibleError(FormulationError, ValueError):
    """No point satisfies the constraints."""


class UnboundedError(FormulationError, ValueError):
    """The objective improves for ever."""


class UnsupportedProblemError(FormulationError, TypeError):
    """No chain of bridges leads from this form to one that the solver accepts."""


class UnknownSolverError(FormulationError, ValueError):
    """No solver has this name, an option of it is unknown, or its package is not installed."""


class SolverError(FormulationError, RuntimeError):
    """The solver gave up, crashed, or returned something that is no answer."""


class SolverCrashError(SolverError):
    """The solver raised what a solver should not; `__cause__` is what it raised."""


class InvalidSolutionError(SolverError):
    """What the solver returned is no point of the problem, or it denies that a solvable problem has one."""


class FractionalSolutionError(SolverError):
    """The relaxation that was solved has a fractional optimum where a whole one is asked for."""


class CertificateError(FormulationError, ArithmeticError):
    """A claim of a solution is false when it is recomputed from the problem's data."""
