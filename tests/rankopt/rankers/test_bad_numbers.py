"""Numbers that no option can be: a typed error that names the option, never one of Python's own."""

import inspect

import numpy as np
import pytest
from problems.training import made

from rankopt.errors import OptionError
from rankopt.optimize import METHODS, get_method
from rankopt.rankers import LargeMarginRanker, LossRanker, MatchingRanker, PairwiseRanker, RegressionRanker

LARGE = 10**400
NUMBERS = [float("nan"), float("inf"), -float("inf"), -1, 1j, LARGE, "x", [], {}, np.float64("nan"), object()]

REQUIRED = ["max_iter", "tol", "lam", "C", "time_limit", "n_jobs"]


def refused(name, value):
    """Whether this value can be no option of this name; None and a limit without end can be some."""
    return not (name == "time_limit" and value == float("inf")) and not (name == "n_jobs" and value == -1)


@pytest.mark.parametrize("name", REQUIRED)
@pytest.mark.parametrize("kind", [LargeMarginRanker, LossRanker, MatchingRanker, PairwiseRanker])
def test_options_of_training(kind, name):
    X, y, qid = made(queries=2)
    for value in NUMBERS:
        options = {name: value, **({"lam": None} if name == "C" else {})}
        if refused(name, value):
            with pytest.raises(OptionError, match=f"{name} must be "):
                kind(**options).fit(X, y, qid=qid)
    for name in ("max_iter", "tol"):
        with pytest.raises(OptionError, match=name):
            kind(**{name: None}).fit(X, y, qid=qid)
    for value in (1.5, 0, True):
        with pytest.raises(OptionError, match="max_iter"):
            kind(max_iter=value).fit(X, y, qid=qid)


@pytest.mark.parametrize("value", [1j, 10**400, {}, object(), [float("nan")] * 4])
def test_arrays(value):
    X, y, qid = made(queries=2)
    for kind, name in (
        (LargeMarginRanker, "w0"),
        (LargeMarginRanker, "position_weights"),
        (MatchingRanker, "position_weight"),
    ):
        with pytest.raises(OptionError, match=name):
            kind(**{name: value}).fit(X, y, qid=qid)
    with pytest.raises(OptionError, match="alpha"):
        RegressionRanker(value).fit(X, y, qid=qid)


@pytest.mark.parametrize("name", METHODS)
def test_settings_of_methods(name):
    kind = type(get_method(name))
    for setting, told in inspect.signature(kind).parameters.items():
        for value in [*NUMBERS, None, True]:
            if value is LARGE and not isinstance(told.default, float):
                continue  # a whole number may be as large as it likes
            with pytest.raises(OptionError, match=f"^{setting} (must be|=) "):
                kind(**{setting: value})
