"""Queries with documents, features and grades; files, samples, normalization."""

from typing import TYPE_CHECKING

from formulations.registry import lazy, public_names

if TYPE_CHECKING:
    from rankopt.data.normalization import QueryNormalizer as QueryNormalizer
    from rankopt.data.normalization import normalize as normalize
    from rankopt.data.queries import Queries as Queries
    from rankopt.data.queries import concatenate as concatenate
    from rankopt.data.samples import SAMPLES as SAMPLES
    from rankopt.data.samples import Sample as Sample
    from rankopt.data.samples import load_sample as load_sample
    from rankopt.data.samples.decisions import DecisionSample as DecisionSample
    from rankopt.data.samples.decisions import decision_samples as decision_samples
    from rankopt.data.stored_folder import open_queries as open_queries
    from rankopt.data.stored_folder import save_queries as save_queries
    from rankopt.data.stored_folder import verify_queries as verify_queries
    from rankopt.data.svmlight.reader import read_svmlight as read_svmlight
    from rankopt.data.svmlight.reader import read_svmlight_blocks as read_svmlight_blocks
    from rankopt.data.svmlight.reader import write_svmlight as write_svmlight
    from rankopt.data.tables import read_attributes as read_attributes
    from rankopt.data.tables import read_table as read_table

PARTS = public_names(__name__)
"""Public names, `name: "module:object"`."""

__all__ = [*PARTS]

if not TYPE_CHECKING:  # a type checker would accept any misspelled name
    __getattr__, __dir__ = lazy(__name__, PARTS)
