"""Exceptions and warnings of rankopt. Other errors of problems and solvers are in `formulations.errors`.

A DataError, MeasureError, ModelError or OptionError is also a ValueError; all are a RankoptError.
"""

from formulations.errors import SolverError


class RankoptError(Exception):
    """Base class of all errors of rankopt."""


class DataError(RankoptError, ValueError):
    """Invalid data; the message names the location (file and line, query, row) and the cure."""


class EngineError(RankoptError, RuntimeError):
    """Workers that cannot be started, or that repeatedly die or stop responding."""


class MasterProblemError(RankoptError, SolverError):
    """The solver of a master problem failed; after the first step this only ends the run."""


class MeasureError(RankoptError, ValueError):
    """A measure that cannot be parsed, or is undefined for these grades."""


class ModelError(RankoptError, ValueError):
    """A saved model that is damaged, of another version, or not written by rankopt."""


class OptionError(RankoptError, ValueError):
    """An option with an invalid value; the message names the valid ones."""


class UnexpectedArgumentError(OptionError, TypeError):
    """An argument that other libraries accept under this name; the message names ours."""


class TrainingInterruptedWarning(UserWarning):
    """Ctrl-C ended a fit after its first step: the ranker has the best model so far, with its certificate.

    Before the first step, and when Ctrl-C is pressed again, `fit` raises KeyboardInterrupt and leaves the ranker
    unchanged.
    """


class MissingQueryIdsWarning(UserWarning):
    """A ranker was fitted on many rows as one query, because neither qid nor group was passed."""


class ExposureWarning(UserWarning):
    """No policy keeps the limits of exposure of a query; the one that breaks the worst of them least was served."""


class SharedQueriesWarning(UserWarning):
    """Queries of eval_set have the id and the features of training queries, so what is chosen there overfits."""


class UnreadableModelWarning(UserWarning):
    """A problem file of a folder cannot be read and is left out of a comparison."""


class ColumnWarning(UserWarning):
    """Columns of a table were left out of the features, or are useless as features."""


class ListLengthWarning(UserWarning):
    """Lists of different lengths were compared by a measure that depends on documents behind the end of the shorter."""


class LargeGainWarning(UserWarning):
    """A grade has a gain beyond 2^31, so that others do not count."""


class TiedDocumentsWarning(UserWarning):
    """A score is a mean over random orders of documents of equal score, which constraints do not distinguish."""


class WorseThanInitWarning(UserWarning):
    """Training lowered the bound but also the measure: on the training queries the start w₀ ranks better."""


class NoProgressWarning(UserWarning):
    """Training ended at its start w₀, with the gap closed or best on eval_set: the ranker orders as w₀ does."""
