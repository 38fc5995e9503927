"""Paths of λ: each point is proved as a fit of its own is, and costs less."""

import warnings

import numpy as np
import pytest
from problems.training import BOUNDS, made, objective_at
from sklearn.exceptions import NotFittedError

from rankopt.data import load_sample
from rankopt.data.queries import Queries
from rankopt.engines import Serial
from rankopt.errors import NoProgressWarning, OptionError, TrainingInterruptedWarning
from rankopt.optimize import METHODS
from rankopt.optimize.bundle import Bundle
from rankopt.rankers import LargeMarginRanker, MatchingRanker, PairwiseRanker

LAMS = (1.0, 0.2, 0.05, 0.01)


def fitted(bound, **options):
    if bound == "pairwise":
        return PairwiseRanker(**options)
    return LargeMarginRanker("nDCG@5", bound=bound, **options)


@pytest.mark.every(5)
@pytest.mark.parametrize("bound", [*BOUNDS, "pairwise"])
def test_each_point_is_proved(bound):
    X, y, qid = made()
    path = fitted(bound).path(X, y, qid=qid, lams=reversed(LAMS))
    assert path.lams == LAMS
    assert not path.interrupted
    for lam, model in zip(LAMS, path, strict=True):
        proved = model.certificate_
        assert proved.relative_gap <= model.tol
        assert model.lam == model.lam_ == lam
        assert proved.primal == pytest.approx(objective_at(model, X, y, qid, model.coef_), rel=1e-12)
        alone = fitted(bound, lam=lam).fit(X, y, qid=qid)
        assert proved.kind == alone.certificate_.kind
        if proved.kind == "global":
            assert abs(proved.primal - alone.certificate_.primal) <= max(proved.gap, alone.certificate_.gap)
        majorant = model.objective(Queries.from_arrays(X, y, qid=qid)).majorant(model.coef_)
        rng = np.random.default_rng(0)
        for w in model.coef_ + rng.normal(size=(20, 4)) * np.logspace(-3, 0, 20)[:, None]:
            assert majorant.regularizer(w) + majorant.risk.at(w).value >= proved.bound


@pytest.mark.every(5)
@pytest.mark.parametrize("bound", BOUNDS)
def test_planes_are_kept(bound):
    """A path takes fewer passes than fits of their own; one point is a fit, to the last bit."""
    X, y, qid = made(queries=30, features=6)
    path = fitted(bound).path(X, y, qid=qid, lams=LAMS)
    alone = [fitted(bound, lam=lam).fit(X, y, qid=qid) for lam in LAMS]
    assert sum(model.n_iter_ for model in path) < sum(model.n_iter_ for model in alone)
    np.testing.assert_array_equal(path[0].coef_, alone[0].coef_)
    assert path[0].certificate_ == alone[0].certificate_


def test_what_is_proved_is_not_asked_again():
    """Where w₀ is optimal for one λ, its planes prove that for each: no pass, and no second proof of the same w."""

    class Asked:
        def map(self, question, shards):
            questions.append(question)
            return Serial().map(question, shards)

    X, y, qid = made()
    questions = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoProgressWarning)
        path = PairwiseRanker(engine=Asked()).path(X, y, qid=qid, lams=[1e9, 1e8, 1e7])
    first, *rest = path
    assert all(np.array_equal(model.coef_, first.coef_) for model in rest)
    assert [model.n_iter_ for model in rest] == [0, 0]
    assert all(len(model.history_) == 0 for model in rest)
    assert all(model.certificate_.relative_gap <= model.tol for model in path)
    assert sum(question.prove for question in questions) == 1
    for lam, model in zip(path.lams, path, strict=True):
        objective = PairwiseRanker(lam=lam).objective(Queries.from_arrays(X, y, qid=qid))
        assert model.certificate_.primal == pytest.approx(objective.upper(model.coef_, objective.risk.at(model.coef_)))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_goes_along(method):
    X, y, qid = made()
    path = PairwiseRanker(method=method).path(X, y, qid=qid, lams=LAMS[:3])
    assert [model.certificate_.relative_gap <= 1e-3 for model in path] == [True] * 3


@pytest.mark.filterwarnings("ignore::rankopt.errors.NoProgressWarning")  # the start may be the best on eval_set
def test_the_best_is_chosen_by_the_evaluation_set():
    X, y, qid = made(noise=2.0)
    V, vy, vq = made(seed=9, noise=2.0)
    ranker, seen = LargeMarginRanker("nDCG@5", C=3.0, lam=None), []
    path = ranker.path(X, y, qid=qid, lams=LAMS, eval_set=(V, vy), eval_qid=vq, each=seen.append)
    assert seen == list(path.models)
    assert [model.best_score_ for model in path] == pytest.approx([model.score(V, vy, qid=vq) for model in path])
    assert path.best.best_score_ == max(model.best_score_ for model in path)
    for lam, model in zip(path.lams, path, strict=True):
        alone = LargeMarginRanker("nDCG@5", lam=lam).fit(X, y, qid=qid, eval_set=(V, vy), eval_qid=vq)
        assert np.array_equal(model.coef_, alone.coef_)
    assert (ranker.C, ranker.lam) == (3.0, None)
    with pytest.raises(NotFittedError):
        ranker.predict(X)
    with pytest.raises(ValueError, match="eval_set"):
        _ = ranker.path(X, y, qid=qid, lams=LAMS[:1]).best


@pytest.mark.parametrize("inside", [True, False])
def test_an_interruption_keeps_what_is_fitted(inside, monkeypatch):
    """Inside the first step of the second λ, or in a callback after it: then that step is done."""
    X, y, qid = made()
    taken, step_of = [], Bundle.step

    def interrupt(step, state):
        taken.append(step)
        if not inside and len(taken) == whole[0].n_iter_ + 1:
            raise KeyboardInterrupt

    def step(method, state, objective):
        if inside and len(taken) == whole[0].n_iter_:
            raise KeyboardInterrupt
        return step_of(method, state, objective)

    whole = LargeMarginRanker("nDCG@5").path(X, y, qid=qid, lams=LAMS)
    monkeypatch.setattr(Bundle, "step", step)
    with pytest.warns(TrainingInterruptedWarning, match="the best models so far"):
        path = LargeMarginRanker("nDCG@5", callbacks=[interrupt]).path(X, y, qid=qid, lams=LAMS)
    assert path.interrupted
    assert [model.n_iter_ for model in path] == [whole[0].n_iter_] + ([] if inside else [1])
    np.testing.assert_array_equal(path[0].coef_, whole[0].coef_)


def test_slots_have_a_path():
    rng = np.random.default_rng(0)
    y = np.tile([1, 2, 0, 0, 0], 8)
    X = rng.normal(size=(40, 3)) + 3.0 * np.eye(3)[y]
    path = MatchingRanker().path(X, y, group=[5] * 8, lams=[0.1, 0.01])
    assert [model.coef_.shape for model in path] == [(2, 3), (2, 3)]
    assert all(model.certificate_.relative_gap <= 1e-3 for model in path)


@pytest.mark.parametrize(("lams", "message"), [([], "empty"), ([1.0, -1.0], "positive"), ([np.inf], "positive")])
def test_lams_that_cannot_be_are_refused(lams, message):
    X, y, qid = made()
    with pytest.raises(ValueError, match=message):
        LargeMarginRanker("nDCG@5").path(X, y, qid=qid, lams=lams)


@pytest.mark.parametrize("lams", [0.1, [None], ["a"], []])
def test_what_is_no_path_is_an_option_error(lams):
    sample = load_sample("les-miserables").train
    with pytest.raises(OptionError, match="lam"):
        LargeMarginRanker().path(sample, lams=lams)


@pytest.mark.study
def test_a_path_to_where_double_precision_ends_keeps_what_it_has():
    sample = load_sample("les-miserables").train
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = LargeMarginRanker(max_iter=30).path(sample, lams=[1e300, 1e-300])
    assert len(path) == 2
    assert all(np.isfinite(model.coef_).all() and np.isfinite(model.certificate_.primal) for model in path)


@pytest.mark.study
def test_decays_and_bounds_are_gone_through_and_one_is_chosen():
    X, y, qid = made(queries=30, features=6)
    ranker = LargeMarginRanker("nDCG@5", lam=0.1, random_state=0)
    decays, bounds = ["linear", "log@5"], ["tie-aware", "nonconvex"]
    told = []
    path = ranker.path(
        X,
        y,
        qid=qid,
        lams=[0.05, 0.2],
        position_weights=decays,
        bounds=bounds,
        eval_set=(X, y),
        eval_qid=qid,
        each=told.append,
    )
    assert list(path) == told
    triples = [(model.position_weights, model.bound, model.lam_) for model in path]
    assert triples == [(decay, bound, lam) for decay in decays for bound in bounds for lam in (0.2, 0.05)]
    assert path.best.best_score_ == max(model.best_score_ for model in path)
    for model in ranker.path(X, y, qid=qid, lams=[0.05], position_weights=decays, bounds=bounds):
        assert model.certificate_.relative_gap <= model.tol
    assert (ranker.position_weights, ranker.bound) == ("power(0.5)", "nonconvex")
    alone = ranker.path(X, y, qid=qid, position_weights=["log@5"])
    assert [(model.position_weights, model.lam_) for model in alone] == [("log@5", 0.1)]
    fit = LargeMarginRanker("nDCG@5", position_weights="log@5", lam=0.1, random_state=0).fit(X, y, qid=qid)
    np.testing.assert_array_equal(alone[0].coef_, fit.coef_)


@pytest.mark.parametrize(
    ("ranker", "options", "words"),
    [
        (
            PairwiseRanker(),
            {"position_weights": ["log"]},
            "position_weights cannot be chosen here because PairwiseRanker has no such parameter",
        ),
        (LargeMarginRanker(), {"position_weights": "log"}, "no sequence"),
        (LargeMarginRanker(), {"bounds": []}, "bounds is empty"),
        (LargeMarginRanker(), {"bounds": ["loose"]}, "unknown"),
    ],
)
def test_choices_that_cannot_be_made(ranker, options, words):
    X, y, qid = made()
    with pytest.raises(OptionError, match=words):
        ranker.path(X, y, qid=qid, lams=[0.1], **options)
