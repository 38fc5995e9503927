"""A fit is all or nothing: one that fails, wherever, leaves the estimator as it was, and nothing answers at a width
that it was not fitted on."""

import sys
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from problems.training import made
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import rankopt
from formulations.errors import SolverError
from formulations.solvers.active_set import ActiveSet
from rankopt.data import Queries, QueryNormalizer
from rankopt.errors import DataError, ModelError, OptionError, TrainingInterruptedWarning
from rankopt.rankers import (
    RANKERS,
    DirectRanker,
    LargeMarginRanker,
    LossRanker,
    MatchingRanker,
    PairwiseRanker,
    Ranker,
    RegressionRanker,
    SmoothRanker,
    load_model,
)

OPTIMIZED = [
    LargeMarginRanker("nDCG@5", bound="convex", lam=0.03, engine="serial"),
    LargeMarginRanker("nDCG@5", bound="nonconvex", lam=0.03, engine="serial"),
    LossRanker(lam=0.03, engine="serial"),
    PairwiseRanker(lam=0.03, engine="serial"),
    MatchingRanker(bound="tie-aware", lam=0.03, engine="serial"),
    SmoothRanker("nDCG@5", engine="serial"),
    DirectRanker("nDCG@5", init="zeros", step_rule="middle", engine="serial"),
]
ALL = [*OPTIMIZED, RegressionRanker()]

OLD, NEW = made(0, features=4), made(1, features=6)


def fit(ranker, rows, **options):
    X, y, qid = rows
    return ranker.fit(X, y, qid=qid, **options)


KEPT = {}


def fitted(ranker):
    """This ranker, fitted on OLD: a copy of one that was fitted once."""
    if repr(ranker) not in KEPT:
        KEPT[repr(ranker)] = fit(clone(ranker), OLD)
    return deepcopy(KEPT[repr(ranker)])


def bits(value):
    return value.tobytes() if isinstance(value, np.ndarray) else repr(value)


def state(estimator):
    """Every attribute: the object itself, and what it holds."""
    return {name: (value, bits(value)) for name, value in vars(estimator).items()}


def assert_as_it_was(estimator, before):
    now = state(estimator)
    assert now.keys() == before.keys()
    for name, (value, content) in before.items():
        assert now[name][0] is value, name
        assert now[name][1] == content, name


def assert_answers_at(ranker, width):
    """Every product at this width, a typed refusal at any other."""
    assert np.isfinite(ranker.predict(np.ones((3, width)))).all()
    for other in (width - 1, width + 2):
        X, queries = np.ones((3, other)), Queries.from_arrays(np.ones((3, other)), [1.0, 0, 0], group=[3])
        for asked in (
            lambda X=X: ranker.predict(X),
            lambda queries=queries: ranker.predict(queries),
            lambda X=X: ranker.rank(X),
            lambda queries=queries: ranker.rank(queries),
            lambda X=X: ranker.score(X, [1.0, 0, 0], group=[3]),
            lambda X=X: ranker.explain(X[0], X[1]),
        ):
            with pytest.raises(ValueError, match=f"{other} features"):
                asked()


@dataclass(frozen=True)
class Tiring(ActiveSet):
    """Solves master programs until it has solved three."""

    solved: tuple = ()

    def solve(self, problem):
        TIRED.append(1)
        if len(TIRED) > 3:
            raise SolverError("planted")
        return super().solve(problem)


@dataclass(frozen=True)
class Interrupting(ActiveSet):
    """Somebody presses Ctrl-C while the first master program is solved."""

    def solve(self, problem, warm_start=None):
        raise KeyboardInterrupt


TIRED = []


def interrupted_at(number):
    def callback(step, state):
        if step.step == number:
            raise KeyboardInterrupt

    return callback


def raising_at(number):
    def callback(step, state):
        if step.step == number:
            raise ZeroDivisionError("planted")

    return callback


def negative_grades():
    X, y, qid = NEW
    return X, -1.0 - y, qid


FAULTS = {
    "bad lam": (OptionError, {"lam": -1.0}, NEW, {}),
    "unknown method": (OptionError, {"method": "guessing"}, NEW, {}),
    "negative grades": (DataError, {}, negative_grades(), {}),
    "weights": (DataError, {}, NEW, {"query_weight": [1.0]}),
    "eval_set of another width": (
        ValueError,
        {},
        NEW,
        {"eval_set": (OLD[0], OLD[1]), "eval_qid": OLD[2]},
    ),
    "interrupted before the first step": (KeyboardInterrupt, {"master_solver": Interrupting()}, NEW, {}),
    "a callback at the third step": (ZeroDivisionError, {"callbacks": [raising_at(3)]}, NEW, {}),
    "a solver at the fourth step": (SolverError, {"master_solver": Tiring(), "lam": 1e-4}, NEW, {}),
}


PLANTED = [(one, name) for one in OPTIMIZED for name in FAULTS if {*FAULTS[name][1]} <= {*one.get_params()}]


@pytest.mark.every(5)
@pytest.mark.parametrize(("ranker", "fault"), PLANTED, ids=str)
def test_a_fit_that_fails_leaves_the_ranker_as_it_was(ranker, fault):
    error, options, rows, more = FAULTS[fault]
    TIRED.clear()
    ranker = fitted(ranker).set_params(**options)
    before = state(ranker)
    with pytest.raises(error) as raised:
        fit(ranker, rows, **more)
    assert not isinstance(raised.value, TrainingInterruptedWarning)
    assert_as_it_was(ranker, before)
    assert_answers_at(ranker, 4)
    TIRED.clear()
    before = state(fresh := clone(ranker))
    with pytest.raises(error):
        fit(fresh, rows, **more)
    assert_as_it_was(fresh, before)
    with pytest.raises(NotFittedError):
        fresh.predict(np.ones((3, 6)))


@pytest.mark.parametrize("option", [{"alpha": -1.0}, {"target": "rank"}, {"measure": "AP", "target": "gain"}])
def test_a_regression_that_fails_leaves_the_ranker_as_it_was(option):
    ranker = fit(RegressionRanker(), OLD)
    before = state(ranker.set_params(**option))
    with pytest.raises(OptionError):
        fit(ranker, NEW)
    assert_as_it_was(ranker, before)
    assert_answers_at(ranker, 4)


def test_a_normalizer_that_fails_stays_as_it_was():
    normalizer = QueryNormalizer().fit(OLD[0])
    before = state(normalizer.set_params(method="guess"))
    with pytest.raises(OptionError):
        normalizer.fit(NEW[0])
    assert_as_it_was(normalizer, before)
    fresh = QueryNormalizer("minmax")
    with pytest.raises(DataError, match="too large"):
        fresh.fit(np.array([[1e308], [-1e308]]))
    with pytest.raises(NotFittedError):
        fresh.transform(NEW[0])


@pytest.mark.parametrize("ranker", OPTIMIZED, ids=str)
def test_an_interruption_after_a_step_leaves_a_whole_ranker(ranker, tmp_path):
    ranker = fit(clone(ranker), OLD)
    ranker.set_params(callbacks=[interrupted_at(3)], lam=1e-4)
    with pytest.warns(TrainingInterruptedWarning, match="best weights so far"):
        fit(ranker, NEW)
    assert ranker.n_features_in_ == 6
    assert ranker.certificate_.stop == "interrupted from the keyboard"
    assert_answers_at(ranker, 6)
    ranker.save(tmp_path / "model")
    assert load_model(tmp_path / "model").coef_.tobytes() == ranker.coef_.tobytes()


@pytest.mark.every(5)
@pytest.mark.parametrize(("first", "drawn", "last"), [(1, 3, 4), pytest.param(0, 12, 10, marks=pytest.mark.study)])
@pytest.mark.parametrize("ranker", ALL, ids=str)
def test_an_interruption_at_any_line_leaves_the_old_ranker_or_the_new_one(ranker, first, drawn, last):
    """KeyboardInterrupt between two lines of any function of ours, drawn evenly from all lines of a fit."""
    ranker = clone(ranker).set_params(**({"tol": 0.1} if hasattr(ranker, "tol") else {}))
    counted = interrupting(lambda: fit(clone(ranker), NEW), at=None)
    rng = np.random.default_rng(0)
    whole = 0
    lines = [*range(1, first + 1), *rng.integers(1, counted, drawn).tolist(), *range(counted - last + 1, counted + 1)]
    for line in lines:
        refitted = fitted(ranker)
        before = state(refitted)
        try:
            interrupting(lambda refitted=refitted: fit(refitted, NEW), at=line)
        except TrainingInterruptedWarning:
            assert refitted.n_features_in_ == 6
        except KeyboardInterrupt:
            pass
        if refitted.n_features_in_ == 4:
            assert_as_it_was(refitted, before)
        else:
            whole += 1
            refitted._check_loaded()
            refitted.predict(NEW[0])
    assert 0 < whole < len(lines)


def interrupting(work, at):
    """Run, and raise KeyboardInterrupt at a line of rankopt, counted; how many lines there were."""
    inside, seen = str(Path(rankopt.__file__).parent), 0

    def on_line(frame, event, argument):
        nonlocal seen
        if event == "line":
            seen += 1
            if seen == at:
                raise KeyboardInterrupt
        return on_line

    def on_call(frame, event, argument):
        return on_line if frame.f_code.co_filename.startswith(inside) else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        work()
    finally:
        sys.settrace(before)
    return seen


class Careless(RegressionRanker):
    """Sets attributes of its own around the fit, and forgets that it may fail."""

    def fit(self, X, y=None, **options):
        self.seen_ = np.shape(X)
        super().fit(X, y, **options)
        if self.seen_[1] == 6:
            raise ZeroDivisionError("planted")
        return self


def test_no_subclass_can_forget_it():
    ranker = fit(Careless(), OLD)
    assert ranker is fit(ranker, OLD)
    before = state(ranker)
    with pytest.raises(ZeroDivisionError):
        fit(ranker, NEW)
    assert_as_it_was(ranker, before)
    with pytest.raises(ZeroDivisionError):
        fit(fresh := Careless(), NEW)
    assert set(vars(fresh)) == {"alpha", "target", "intercept", "measure", "normalize", "coef_bounds", "missing"}


def test_every_estimator_is_all_or_nothing():
    import rankopt.rankers as package

    for kind in (*(getattr(package, name) for name in RANKERS), QueryNormalizer):
        assert kind.fit.__code__ is Ranker.fit.__code__  # the wrapper, not the function that it wraps
        assert hasattr(kind.fit, "__wrapped__")
        assert {vars(one)["fit"].__code__ for one in kind.__mro__ if "fit" in vars(one)} == {Ranker.fit.__code__}


def test_a_refit_takes_nothing_of_the_old_one_along():
    X, y, qid = OLD
    named = Queries.from_arrays(X, y, qid=qid, feature_names=["a", "b", "c", "d"])
    ranker = LargeMarginRanker("nDCG@5", bound="convex", lam=0.1).fit(named, eval_set=named)
    fit(ranker, NEW)
    assert not hasattr(ranker, "feature_names_in_")
    assert not hasattr(ranker, "best_score_")


def test_a_warm_start_needs_weights_of_the_same_shape():
    """2 slots of 6 features have as many weights as 3 slots of 4: they are no start of each other."""
    X, y, qid = OLD
    ranker = MatchingRanker(n_positions=3, lam=0.1, warm_start=True).fit(X, np.minimum(y, 2), qid=qid)
    X, y, qid = NEW
    warm = ranker.set_params(n_positions=2).fit(X, np.minimum(y, 2), qid=qid)
    cold = MatchingRanker(n_positions=2, lam=0.1).fit(X, np.minimum(y, 2), qid=qid)
    np.testing.assert_array_equal(warm.coef_, cold.coef_)


@pytest.mark.parametrize("ranker", ALL, ids=str)
def test_weights_of_another_width_are_neither_used_nor_saved(ranker, tmp_path):
    ranker = fit(clone(ranker), OLD)
    check_is_fitted(ranker)
    ranker.coef_ = ranker.coef_[..., :-1]
    for asked in (ranker.predict, ranker.rank):
        with pytest.raises(DataError, match="4 features"):
            asked(OLD[0])
    with pytest.raises(DataError, match="4 features"):
        ranker.explain(OLD[0][0], OLD[0][1])
    with pytest.raises(ModelError, match="could not be loaded"):
        ranker.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
