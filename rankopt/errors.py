"""Everything that rankopt raises on purpose.

    RankoptError
    ├── DataError (ValueError)        a file, a row or a value cannot be used; names the file, line, query or row
    ├── EngineError (RuntimeError)    the workers of an engine cannot be started, or die again and again
    ├── MeasureError (ValueError)     a measure cannot be parsed, or is undefined for these grades
    ├── ModelError (ValueError)       a saved model is damaged, of another version or not one of ours
    └── OptionError (ValueError)      an option has a value that cannot work

Errors of problems and solvers live in `formulations.errors`. Two warnings are ours:

    ForgottenQueries (UserWarning)    many rows were taken for one query, since nothing says which belong together
    OptimumAtStart (UserWarning)      training found nothing better than its start w₀
"""

__all__ = [
    "DataError", "EngineError", "ForgottenQueries", "MeasureError", "ModelError", "OptimumAtStart", "OptionError",
    "RankoptError",
]  # fmt: skip


class RankoptError(Exception):
    """Base of all errors that rankopt raises on purpose."""


class DataError(RankoptError, ValueError):
    """Data that cannot be used as it is: names where (file and line, query, row) and the cure."""


class EngineError(RankoptError, RuntimeError):
    """Workers that cannot be started, or that die again and again."""


class MeasureError(RankoptError, ValueError):
    """A measure that cannot be parsed, or is undefined for the grades at hand."""


class ModelError(RankoptError, ValueError):
    """A saved model that is damaged, of another version, or not one of ours."""


class OptionError(RankoptError, ValueError):
    """An option whose value cannot work; the message names the values that do."""


class ForgottenQueries(UserWarning):
    """A ranker was fitted on many rows as one query, because neither qid nor group came with them."""


class OptimumAtStart(UserWarning):
    """Training ended at its start w₀, with the gap closed: the ranker orders as w₀ does."""
