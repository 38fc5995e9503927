"""Measures that need to know which documents were judged: a run held against qrels says it, grades alone do not.

Binary preference: how many relevant documents stand above the judged ones that are not relevant.

    Bpref = (1/n₊) Σ_{j relevant, retrieved} (1 - min(above_j, n₊) / min(n₊, n₋))

above_j counts the documents judged not relevant that stand above j, n₊ and n₋ all that were judged relevant and not (of
n₋ = 0 the fraction is 0). What nobody judged does not matter, so that pools may be incomplete.

In a tie group with x documents judged not relevant and b before it, every number b, ..., b + x stands above a relevant
one with the same chance, so that the mean of min(., n₊) over these is what counts.

Source: Buckley and Voorhees, Retrieval evaluation with incomplete information, 2004; the form of trec_eval.

Inferred average precision: AP where of the pooled documents only a sample was judged.

    infAP = (1/n₊) Σ_{j relevant, retrieved} (1/i) (1 + p_j (r_j + ε) / (r_j + n_j + 2ε))          i = π(j), ε = 10⁻⁵

Above j stand r_j documents judged relevant, n_j judged not relevant, and p_j of the pool, judged or not: among those of
the pool the share of relevant ones is that among the judged. Outside the pool nothing is relevant. In qrels a negative
grade says that a document is in the pool and was not judged; without any, all of the pool is, and this is AP but for ε.

In a tie group the mean over its orders sums over how many relevant (a) and not relevant (b) documents of the group come
before, which are hypergeometric; of the rest, unjudged ones of the pool come in their share.

Source: Yilmaz and Aslam, Estimating average precision with incomplete and imperfect judgments, 2006; ε of trec_eval.

Judged at k: the share of the first k documents that somebody judged, relevant or not.

    Judged@k = (judged documents at positions <= k) / min(k, documents retrieved)

Runs of few judged documents are measured by what was not looked at: say it beside every other measure. Without a cutoff
all that was retrieved counts; where nothing was, it is 0.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import MeasureError
from rankopt.measures.binary import Binary
from rankopt.measures.measure import Measure
from rankopt.measures.segments import Floats, Ints, query_of_row, totals
from rankopt.measures.tied_ranking import Pool, Ranking


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


@dataclass(frozen=True, repr=False)
class BinaryPreference(Pooled, Binary):
    """Preferences kept between judged documents; not defined where none is relevant. Needs qrels."""

    name: ClassVar[str] = "Bpref"
    takes_cutoff: ClassVar[bool] = False

    def defined(self, relevance: Floats, offsets: Ints) -> NDArray[np.bool_]:
        return self.any_relevant(relevance, offsets)

    def values(self, ranking: Ranking) -> Floats:
        pool, query = self.pool_of(ranking), query_of_row(ranking.offsets)
        relevant = self.relevant(ranking.relevance) * pool.judged
        other = pool.judged - relevant
        good, bad = totals(relevant, ranking.offsets), totals(other, ranking.offsets)
        counted = np.concatenate([[0.0], np.cumsum(other)])  # whole numbers: exact
        tied = np.diff(counted[ranking.groups])[ranking.group]
        before = counted[ranking.groups[ranking.group]] - counted[ranking.offsets[:-1]][query]
        above = (_clipped(before + tied + 1, good[query]) - _clipped(before, good[query])) / (tied + 1)
        kept = 1 - above / np.maximum(np.minimum(good, bad), 1)[query]
        found = totals(np.where(pool.retrieved, relevant * kept, 0.0), ranking.offsets)
        return np.asarray(found / np.maximum(good, 1))


def _clipped(count: Floats, most: Floats) -> Floats:
    """Σ_{i < count} min(i, most)."""
    inner = np.minimum(count, most + 1)
    return np.asarray(inner * (inner - 1) / 2 + most * (count - inner))


Bpref = BinaryPreference()


EPSILON = 1e-5


@dataclass(frozen=True, repr=False)
class InferredAveragePrecision(Pooled, Binary):
    """Average precision inferred from a sample of the pool; not defined where nothing is relevant. Needs qrels."""

    name: ClassVar[str] = "infAP"
    takes_cutoff: ClassVar[bool] = False

    def defined(self, relevance: Floats, offsets: Ints) -> NDArray[np.bool_]:
        return self.any_relevant(relevance, offsets)

    def values(self, ranking: Ranking) -> Floats:
        pool, query = self.pool_of(ranking), query_of_row(ranking.offsets)
        relevant = self.relevant(ranking.relevance) * pool.judged
        kinds = np.stack([relevant, pool.judged - relevant, (pool.pooled & ~pool.judged).astype(np.float64)])
        counted = np.concatenate([np.zeros((3, 1)), np.cumsum(kinds, axis=1)], axis=1)
        inside = counted[:, ranking.groups[1:]] - counted[:, ranking.groups[:-1]]  # (3, G)
        before = (counted[:, :-1] - counted[:, ranking.offsets[:-1]][:, query])[:, ranking.groups[:-1]]
        share = np.zeros(len(ranking.relevance))
        begin = ranking.position[ranking.groups[:-1]]
        for group in np.flatnonzero((inside[0] > 0) & pool.retrieved[ranking.groups[:-1]]):
            size = int(ranking.size[group])
            value = _in_group(begin[group], size, *inside[:, group], *before[:, group])
            share[ranking.groups[group]] = inside[0, group] * value
        good = totals(relevant, ranking.offsets)
        return np.asarray(totals(share, ranking.offsets) / np.maximum(good, 1))


def _in_group(begin: int, size: int, good: float, bad: float, unknown: float, r: float, n: float, u: float) -> float:
    """What a relevant document of a tie group adds, on average over its orders.

    begin: the position of the first of `size` documents, of which good, bad and unknown are relevant, not, and unjudged
    in the pool; r, n and u such stand before.
    """
    a, b = np.arange(int(good))[:, None], np.arange(int(bad) + 1)[None, :]
    rest, total = size - good - bad, 0.0
    for i in range(size):
        left = i - a - b
        chance = _chance(size - 1, i, ((good - 1, a), (bad, b), (rest, left))) if size > 1 else np.ones((1, 1))
        pooled = r + n + u + a + b + left * (unknown / rest if rest else 0.0)
        precise = (r + a + EPSILON) / (r + a + n + b + 2 * EPSILON)
        total += float(np.sum(chance * (1 + pooled * precise))) / (begin + i)
    return total / size


def _chance(size: int, drawn: int, kinds: tuple[tuple[float, NDArray[np.int64]], ...]) -> Floats:
    """The chance that of `drawn` documents of `size` so many are of each kind, of which there are so many."""
    from scipy.special import gammaln

    possible, log = np.asarray(True), -_choose(gammaln, size, np.asarray(drawn))
    for many, taken in kinds:
        possible = possible & (taken >= 0) & (taken <= many)
        log = log + _choose(gammaln, many, np.clip(taken, 0, many))
    return np.where(possible, np.exp(log), 0.0)


def _choose(gammaln: np.ufunc, many: float, taken: NDArray[np.int64]) -> Floats:
    """log C(many, taken)."""
    return np.asarray(gammaln(many + 1) - gammaln(taken + 1) - gammaln(many - taken + 1))


infAP = InferredAveragePrecision()


@dataclass(frozen=True, repr=False)
class JudgedShare(Pooled):
    """Judged documents among the first k that were retrieved, over those; needs a run held against qrels."""

    name: ClassVar[str] = "Judged"

    def values(self, ranking: Ranking) -> Floats:
        pool = self.pool_of(ranking)
        counted = ((ranking.position <= (self.cutoff or np.inf)) & pool.retrieved).astype(np.float64)
        looked = totals(counted, ranking.offsets)
        found = totals(ranking.averaged(counted) * pool.judged, ranking.offsets)
        return np.asarray(found / np.maximum(looked, 1))


Judged = JudgedShare()
