"""Attacks on arrays given in memory: other types, shapes, layouts and values, and sparse matrices that lie.

Each try changes one to three of the arrays that a ranker is fitted on, or that a fitted one is asked about. It is
survived if it ends within seconds by an error of ours or with finite answers; if arrays that hold the same numbers in
another layout (order of memory, strides, byte order, sparse format, index type) give the same coefficients to the last
bit; if a fit that fails leaves the ranker unfitted, as it was; and if nobody's array was written to.

    python benchmarks/faults/arrays.py --tries 5000 --seed 0
"""

from __future__ import annotations

import argparse
import signal
import sys
import traceback
import warnings

import numpy as np
import scipy.sparse as sp
from changed_arrays import QID, N, X, Y, changed, lying, other_kind, with_value
from sklearn.exceptions import NotFittedError

from formulations.errors import FormulationError
from rankopt.errors import RankoptError
from rankopt.measures import evaluate
from rankopt.rankers import DirectRanker, LargeMarginRanker, LossRanker, PairwiseRanker, RegressionRanker

SECONDS = 20
"""What one try may take."""

RANKERS = (
    lambda: RegressionRanker(1.0),
    lambda: LargeMarginRanker("nDCG@5", lam=1.0, max_iter=20),
    lambda: PairwiseRanker(lam=1.0, max_iter=20),
    lambda: LossRanker("pairwise", lam=1.0, max_iter=20),
    lambda: DirectRanker("nDCG@5", init="zeros", max_iter=2),
)


def bits(value):
    """What an array given by the caller holds, to see whether anybody writes to it."""
    return value.tobytes() if isinstance(value, np.ndarray) and value.dtype != object else None


def answered(error):
    """Whether this is an error of ours, or scikit-learn's own words for what is no table of numbers."""
    if isinstance(error, (RankoptError, FormulationError)):
        return True
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    return isinstance(error, (TypeError, ValueError)) and "sklearn" in last


def attempt(rng, expected):
    """One try; None if it is survived, else what happened."""
    number = int(rng.integers(len(RANKERS)))
    given, same, done = changed(rng)
    before = {name: bits(value) for name, value in given.items()}
    ranker = RANKERS[number]()
    signal.alarm(SECONDS)
    try:
        try:
            ranker.fit(**given)
        except Exception as error:
            if not answered(error):
                raise
            assert not same, "numbers in another layout are refused"
            assert not [name for name in vars(ranker) if name.endswith("_")], "half a model is left"
            try:
                ranker.predict(X)
            except NotFittedError:
                return None
            raise AssertionError("a ranker that was not fitted predicts") from None
        assert {name: bits(value) for name, value in given.items()} == before, "an array of the caller was written to"
        assert np.isfinite(ranker.coef_).all(), "coefficients that are not finite"
        if same:
            assert ranker.coef_.tobytes() == expected[sp.issparse(given["X"]), number], (
                "another layout, other coefficients"
            )
        asked = (with_value, with_value, other_kind, lying)[rng.integers(4)](X, rng)
        done.append("asked about others")
        try:
            scores = ranker.predict(asked)
            assert np.isfinite(scores).all(), "scores that are not finite"
        except Exception as error:
            if not answered(error):
                raise
        truth = with_value(Y, rng) if rng.random() < 0.5 else other_kind(Y, rng)
        try:
            value = evaluate(truth, ranker.predict(X), "nDCG@5", offsets=np.arange(0, N + 1, 6))
            assert not (np.abs(value["nDCG@5"] - 0.5) > 0.5 + 1e-12).any(), "a measure beyond its range"
        except (RankoptError, FormulationError):
            pass
        return None
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"{type(ranker).__name__}, {done}\n" + "".join(traceback.format_exception(error)[-9:])
    finally:
        signal.alarm(0)


def late(*_):
    raise TimeoutError(f"more than {SECONDS} s")


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--tries", type=int, default=5000)
    asked.add_argument("--seed", type=int, default=0)
    asked = asked.parse_args()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, late)
    expected = {
        (sparse, number): make().fit(sp.csr_matrix(X) if sparse else X.copy(), Y.copy(), qid=QID.copy()).coef_.tobytes()
        for sparse in (False, True)
        for number, make in enumerate(RANKERS)
    }
    rng, survived = np.random.default_rng(asked.seed), 0
    for number in range(asked.tries):
        why = attempt(rng, expected)
        survived += why is None
        if why is not None:
            print(f"try {number}: {why}", file=sys.stderr)
    print(f"tries {asked.tries}, survived {survived}")
    return survived != asked.tries


if __name__ == "__main__":
    sys.exit(main())
