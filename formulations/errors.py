"""Exceptions of formulations, all of them `FormulationError`, and a warning."""


class FormulationError(Exception):
    """Base class of the exceptions of formulations."""


class InvalidProblemError(FormulationError, ValueError):
    """Invalid data: NaN, infinity, overflow, or wrong shapes."""


class InfeasibleError(FormulationError, ValueError):
    """No point satisfies the constraints; names the conflict where it is known."""


class UnboundedError(FormulationError, ValueError):
    """The objective is unbounded."""


class UnsupportedProblemError(FormulationError, TypeError):
    """No chain of bridges leads from this problem class to one that the solver accepts."""


class UnknownSolverError(FormulationError, ValueError):
    """No solver has this name, an option of it is unknown, or its package is not installed."""


class SolverError(FormulationError, RuntimeError):
    """The solver failed, crashed, or returned an invalid answer."""


class SolverCrashError(SolverError):
    """The solver raised an unexpected exception, which is the `__cause__`."""


class InvalidSolutionError(SolverError):
    """The solver returned an infeasible point, or claims that a feasible problem has none."""


class FractionalSolutionError(SolverError):
    """The relaxation has a fractional optimum, but an integral one is required."""


class CertificateError(FormulationError, ArithmeticError):
    """A claim of a solution is false when it is recomputed from the problem's data."""


class SerializationError(FormulationError, ValueError):
    """A file of data is damaged or not of its format, or a value cannot be stored in one."""


class FileVersionError(SerializationError):
    """The file is of another version of its format."""


class ProgramFileWarning(UserWarning):
    """A program file was read by a convention that other programs may not share; the message states it."""
