"""Sets of admissible rankings for a data set, defined over attributes of documents and applied to each query."""

from rankopt.constraints.admissible import Admissible

__all__ = ["Admissible"]
