"""Sets of admissible rankings for a whole data set: stated over attributes of documents, applied query by query."""

from rankopt.constraints.admissible import Admissible

__all__ = ["Admissible"]
