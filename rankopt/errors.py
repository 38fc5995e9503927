"""Everything that rankopt raises on purpose.

    RankoptError
    ├── DataError (ValueError)        a file, a row or a value cannot be used; names the file, line, query or row
    ├── EngineError (RuntimeError)    workers of an engine cannot be started, or are lost again and again
    ├── MasterProblemError (SolverError)   the solver of a master program gave up, crashed or returned no answer
    ├── MeasureError (ValueError)     a measure cannot be parsed, or is undefined for these grades
    ├── ModelError (ValueError)       a saved model is damaged, of another version or not one of ours
    └── OptionError (ValueError)      an option has a value that cannot work
        └── UnexpectedArgumentError (TypeError)   an argument that other libraries take under this name and we do not

Other errors of problems and solvers live in `formulations.errors`. One interruption and two warnings are ours:

    Interrupted (KeyboardInterrupt)   a fit was interrupted after a step; the ranker holds the best weights so far
    MissingQueryIdsWarning (UserWarning)    many rows were taken for one query, since nothing says which belong together
    WorseThanInitWarning (UserWarning)          training ended below its start w₀ on the very queries it learned from
    NoProgressWarning (UserWarning)      training found nothing better than its start w₀
"""

from formulations.errors import SolverError


class RankoptError(Exception):
    """Base of all errors that rankopt raises on purpose."""


class DataError(RankoptError, ValueError):
    """Data that cannot be used as it is: names where (file and line, query, row) and the cure."""


class EngineError(RankoptError, RuntimeError):
    """Workers that cannot be started, or that die or fall silent again and again."""


class MasterProblemError(RankoptError, SolverError):
    """A solver that gave no answer to a master program of training; after the first step it ends the run only."""


class MeasureError(RankoptError, ValueError):
    """A measure that cannot be parsed, or is undefined for the grades at hand."""


class ModelError(RankoptError, ValueError):
    """A saved model that is damaged, of another version, or not one of ours."""


class OptionError(RankoptError, ValueError):
    """An option whose value cannot work; the message names the values that do."""


class UnexpectedArgumentError(OptionError, TypeError):
    """An argument that other libraries take under this name and we do not; the message names ours."""


class TrainingInterrupted(KeyboardInterrupt):
    """A fit that was interrupted from the keyboard and is whole: the best weights so far, and what is proved of them.

    Any other KeyboardInterrupt out of `fit` came before there was anything to keep, and left the ranker as it was.
    """


class MissingQueryIdsWarning(UserWarning):
    """A ranker was fitted on many rows as one query, because neither qid nor group came with them."""


class WorseThanInitWarning(UserWarning):
    """Training lowered the bound and the measure with it: on the training queries the start w₀ ranks better."""


class NoProgressWarning(UserWarning):
    """Training ended at its start w₀, with the gap closed: the ranker orders as w₀ does."""
