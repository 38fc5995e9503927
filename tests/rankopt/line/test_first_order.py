"""With what a sweep begins: documents by rising slope, of equal slopes by falling score."""

import numpy as np
import pytest

from formulations.sorting import falling_rows
from rankopt.sweeps.intersections import first_order
from rankopt.sweeps.reference import LINES, drawn_lines


def ordered(scores, slopes):
    n = scores.size
    order, starts = np.empty(n, np.int64), np.empty(n + 1, np.int64)
    by_score = falling_rows(np.array([0, n]), scores)
    groups = first_order(scores, slopes, by_score, np.empty(n), order, np.empty(n, np.int64), starts)
    lines = np.unique(np.stack([scores, slopes]), axis=1).shape[1] if n else 0
    assert (groups, starts[groups]) == (lines, n)
    return order


@pytest.mark.parametrize("kind", [*LINES, "one far", "zeros and signs", "huge", "crowded"])
@pytest.mark.parametrize("n", [0, 1, 2, 40, 41, 99, 100, 299, 300, 1000])
def test_documents_stand_as_a_stable_sort_has_them(kind, n):
    rng = np.random.default_rng(n)
    scores, slopes = drawn_lines(rng, kind, n)
    if kind == "one far":
        slopes[: n // 50 + 1] = 1e12
    if kind == "zeros and signs":
        slopes *= rng.choice([0.0, -0.0, 1.0], n)
    if kind == "huge":
        slopes *= 1e308 / max(1.0, np.abs(slopes).max(initial=0.0))
    if kind == "crowded":
        slopes = np.exp(30 * slopes)
    np.testing.assert_array_equal(ordered(scores, slopes), np.lexsort((np.arange(n), -scores, slopes)))
