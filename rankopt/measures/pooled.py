"""Measures that need to know which documents were judged: a run held against qrels says it, grades alone do not."""

from dataclasses import dataclass

from rankopt.errors import MeasureError
from rankopt.measures.measure import Measure
from rankopt.measures.pool import Pool
from rankopt.measures.tied_ranking import Ranking


@dataclass(frozen=True, repr=False)
class Pooled(Measure):
    """A measure that tells unjudged documents from judged ones."""

    def pool_of(self, ranking: Ranking) -> Pool:
        """The pool of a ranking. MeasureError where nothing is known of it."""
        if ranking.pool is None:
            raise MeasureError(
                f"{self} cannot be valued because nothing says which documents were judged; hold a run against qrels: "
                "evaluate(*judge(read_qrels(...), read_run(...)), ...), or `rankopt evaluate --qrels QRELS RUN`."
            )
        return ranking.pool
