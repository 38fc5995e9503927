"""Is one ranker better than another? Paired tests over queries.

With d_q = a_q - b_q on n queries:

    randomisation   p = share of sign vectors ε in {-1, 1}^n with |Σ ε_q d_q| >= |Σ d_q|: were they alike, a and b
                    could be swapped on any query. All vectors where there are few, else a sample and the identity
    t               d̄ / (s / √n) against Student's t with n - 1 degrees of freedom; the interval is d̄ ± t s / √n

Source: Smucker, Allan and Carterette, A comparison of statistical significance tests for information retrieval
evaluation, 2007.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from formulations.notebook_view import lines
from rankopt.errors import DataError, OptionError
from rankopt.evaluation.evaluation import Evaluation
from rankopt.evaluation.judged import vector
from rankopt.measures.measure import Measure
from rankopt.measures.segments import Floats


@dataclass(frozen=True)
class Comparison:
    """Two rankers on the same queries by one measure.

    difference      mean_a - mean_b, with its `interval` at the `confidence`
    p_randomization, p_t   two-sided; `flips` sign vectors were tried, all of them where `exact`
    wins, ties, losses     queries on which a is better, equal to 1e-12, worse
    """

    measure: str
    queries: int
    mean_a: float
    mean_b: float
    difference: float
    interval: tuple[float, float]
    confidence: float
    p_randomization: float
    flips: int
    exact: bool
    p_t: float
    wins: int
    ties: int
    losses: int

    def _repr_html_(self) -> str:
        return lines(str(self))

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.measure} on {self.queries} queries: {self.mean_a:.4f} against {self.mean_b:.4f}\n"
            f"difference  {self.difference:+.4f}, {self.confidence:.0%} interval {low:+.4f} to {high:+.4f}\n"
            f"p           {self.p_randomization:.4f} by randomisation ({self.flips} sign vectors, "
            f"{'all of them' if self.exact else 'sampled'}), {self.p_t:.4f} by the t test\n"
            f"queries     {self.wins} better, {self.ties} equal, {self.losses} worse"
        )


def compare(
    run_a: Evaluation | ArrayLike,
    run_b: Evaluation | ArrayLike,
    *,
    measure: str | Measure | None = None,
    resamples: int = 10_000,
    confidence: float = 0.95,
    random_state: int | np.random.Generator | None = 0,
) -> Comparison:
    """Compare two evaluations, or two arrays (m,) of values in the same order of queries.

    measure: which one, where the evaluations hold several. Queries that both leave out of the mean are left out here.
    Raises DataError where the queries or the conventions differ, or fewer than two queries count.
    """
    if resamples < 1 or not 0 < confidence < 1:
        raise OptionError(f"resamples={resamples} and confidence={confidence} must be >= 1 and between 0 and 1.")
    a, b, name = _paired(run_a, run_b, measure)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        query = int(np.argmax(np.isnan(a) != np.isnan(b)))
        raise DataError(f"Query {query} (from 0) counts in one run only; evaluate both with the same grades.")
    a, b = a[~np.isnan(a)], b[~np.isnan(b)]
    n = len(a)
    if n < 2:
        raise DataError(f"{n} queries cannot be tested because a spread needs two; evaluate on more queries.")
    d = a - b
    level = 1e-12 * np.maximum(np.abs(a), np.abs(b))
    d[np.abs(d) <= level] = 0.0
    p_t, half = _student(d, confidence)
    p_flips, flips, exact = _randomization(d, resamples, np.random.default_rng(random_state))
    mean = float(d.mean())
    return Comparison(
        measure=name,
        queries=n,
        mean_a=float(a.mean()),
        mean_b=float(b.mean()),
        difference=mean,
        interval=(mean - half, mean + half),
        confidence=confidence,
        p_randomization=p_flips,
        flips=flips,
        exact=exact,
        p_t=p_t,
        wins=int(np.count_nonzero(d > 0)),
        ties=int(np.count_nonzero(d == 0)),
        losses=int(np.count_nonzero(d < 0)),
    )


def holm(p_values: Sequence[float]) -> Floats:
    """The p values (c,) of c comparisons made at once, raised so that each may be read alone.

    Holm's step-down: the i-th smallest times (c + 1 - i), never below a smaller one, at most 1.
    """
    p = vector("p_values", p_values)
    order = np.argsort(p, kind="stable")
    adjusted = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    result = np.empty_like(p)
    result[order] = adjusted
    return result


def _paired(
    run_a: Evaluation | ArrayLike, run_b: Evaluation | ArrayLike, measure: str | Measure | None
) -> tuple[Floats, Floats, str]:
    """Values of both runs, query by query in the order of the first, and the name of the measure."""
    if not (isinstance(run_a, Evaluation) and isinstance(run_b, Evaluation)):
        if isinstance(run_a, Evaluation) or isinstance(run_b, Evaluation):
            raise DataError(
                "An evaluation cannot be compared with an array because it names no queries; pass two of one kind."
            )
        a, b = vector("run_a", run_a), vector("run_b", run_b)
        if len(a) != len(b):
            raise DataError(f"Runs of {len(a)} and {len(b)} queries cannot be paired; pass values of the same queries.")
        return a.copy(), b.copy(), "measure" if measure is None else str(measure)
    if run_a.convention != run_b.convention:
        raise DataError(
            f"Runs under {run_a.convention.name} and {run_b.convention.name} cannot be compared; use one convention."
        )
    row_b = {query: row for row, query in enumerate(run_b.query_ids)}
    if len(run_a) != len(run_b) or any(query not in row_b for query in run_a.query_ids):
        alone = set(run_a.query_ids) ^ set(run_b.query_ids)
        some = ", ".join(repr(query) for query in sorted(alone, key=repr)[:3])
        raise DataError(
            f"The runs cannot be paired because {len(alone)} queries are in one only ({some}); use the same."
        )
    return (
        run_a.values_of(measure),
        run_b.values_of(measure)[[row_b[query] for query in run_a.query_ids]],
        run_a.name_of(measure),
    )


def _student(d: Floats, confidence: float) -> tuple[float, float]:
    """p of the paired t test, and half the width of the interval."""
    from scipy.special import stdtr, stdtrit

    error = float(d.std(ddof=1)) / np.sqrt(len(d))
    if error == 0:
        return (0.0 if d[0] else 1.0), 0.0
    p = 2 * stdtr(len(d) - 1, -abs(d.mean()) / error)
    return float(p), float(stdtrit(len(d) - 1, 0.5 + confidence / 2) * error)


def _randomization(d: Floats, resamples: int, random: np.random.Generator) -> tuple[float, int, bool]:
    """p over sign vectors, how many there were, and whether they were all. Zeros do not matter."""
    d = d[d != 0]
    n = len(d)
    reach = abs(d.sum()) - 1e-12 * np.abs(d).sum()
    if n <= np.log2(resamples):
        signs = 1 - 2.0 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)
        return float(np.mean(np.abs(signs @ d) >= reach)), 2**n, True
    extreme, left = 0, resamples
    while left:
        rows = min(left, max(1, 2**22 // n))
        signs = 1 - 2.0 * random.integers(0, 2, size=(rows, n), dtype=np.int8)
        extreme += int(np.count_nonzero(np.abs(signs @ d) >= reach))
        left -= rows
    return (extreme + 1) / (resamples + 1), resamples, False
