"""scikit-learn's callbacks see a fit and each step of it; without them, or under an older one, nothing changes."""

import importlib.util
import pickle
import subprocess
import sys

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankopt.data import KernelFeatures, QueryNormalizer, load_sample
from rankopt.rankers import (
    BoostedRanker,
    CofiRanker,
    DirectRanker,
    LargeMarginRanker,
    LossRanker,
    MatchingRanker,
    PairwiseRanker,
    RegressionRanker,
    SmoothRanker,
)
from rankopt.ratings import load_ratings_sample

KNOWN = importlib.util.find_spec("sklearn.callback") is not None
needs_callbacks = pytest.mark.skipif(not KNOWN, reason=f"scikit-learn {sklearn.__version__} has no callbacks")
needs_lightgbm = pytest.mark.skipif(importlib.util.find_spec("lightgbm") is None, reason="lightgbm is not installed")

QUERIES = load_sample("les-miserables").train.select(range(6))
X, Y = QUERIES.features, QUERIES.relevance
QID = np.repeat(QUERIES.query_ids, np.diff(QUERIES.offsets))

STEPPING = {
    "margin": lambda: LargeMarginRanker("nDCG@10"),
    "slots": lambda: MatchingRanker(slots=5, tol=1e-2),
    "pairs": lambda: PairwiseRanker(),
    "loss": lambda: LossRanker("ordinal"),
    "smooth": lambda: SmoothRanker("nDCG@10", sigmas=(1.0,)),
    "direct": lambda: DirectRanker("nDCG@10", start="ridge"),
    "boosted": lambda: BoostedRanker("nDCG@10", n_estimators=4, n_members=1, engine="serial"),
}
AT_ONCE = {
    "ridge": RegressionRanker,
    "normalizer": QueryNormalizer,
    "kernel": KernelFeatures,
}


class Log:
    """A callback that writes down what it is told, and may stop, or scores what it is given."""

    max_propagation_depth = None

    def __init__(self, stop_at=None, scores=False):
        self.seen, self.stop_at, self.scores = [], stop_at, scores

    def setup(self, estimator, context):
        self.seen.append(("setup", context.task_name))

    def teardown(self, estimator, context):
        self.seen.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.seen.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        value = None
        if self.scores and fitted_estimator is not None:
            value = fitted_estimator.score(X, y, **(metadata or {}))
        self.seen.append(("end", context.task_name, context.task_id, value))
        return self.stop_at is not None and context.task_name == "step" and context.task_id + 1 >= self.stop_at

    def ended(self, name):
        return [entry for entry in self.seen if entry[:2] == ("end", name)]


def steps_of(ranker):
    return ranker.n_rounds_ if isinstance(ranker, BoostedRanker) else len(ranker.history_)


def made(kind):
    if kind == "boosted":
        pytest.importorskip("lightgbm")
    return STEPPING[kind]()


@pytest.mark.every(5)
@needs_callbacks
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", STEPPING)
def test_every_step_is_a_task_below_that_of_the_fit(kind):
    plain, log = made(kind).fit(QUERIES), Log(scores=True)
    ranker = made(kind).set_callbacks(log).fit(QUERIES)
    assert np.array_equal(ranker.predict(QUERIES), plain.predict(QUERIES))  # to be watched changes nothing
    assert log.seen[:2] == [("setup", "fit"), ("begin", "fit", 0)]
    assert log.seen[-2][:3] == ("end", "fit", 0)
    assert log.seen[-1] == ("teardown", "fit")
    begun = [entry for entry in log.seen if entry[:2] == ("begin", "step")]
    ended = log.ended("step")
    assert len(begun) == len(ended)  # every task that begins ends
    scored = [value for *_, value in ended if value is not None]
    rounds = ranker.n_iter_ if kind == "direct" else steps_of(ranker)
    assert len(scored) == rounds
    assert len(ended) - rounds in (0, 1)  # one may have begun that did not come
    assert log.seen[-2][3] == pytest.approx(ranker.score(QUERIES), abs=1e-12)
    assert not {"_watch", "_callback_fit_ctx"} & set(vars(ranker))


@needs_callbacks
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["margin", "smooth", "boosted"])
def test_the_last_step_scores_what_the_ranker_does(kind):
    log = Log(scores=True)
    ranker = made(kind).set_callbacks(log).fit(X, Y, qid=QID)
    last = [value for *_, value in log.ended("step") if value is not None][-1]
    assert last == pytest.approx(ranker.score(X, Y, qid=QID), abs=1e-12)


@needs_callbacks
@pytest.mark.parametrize("kind", AT_ONCE)
def test_what_takes_no_steps_is_one_task(kind):
    log = Log()
    AT_ONCE[kind]().set_callbacks(log).fit(X, Y, **({"qid": QID} if kind != "kernel" else {}))
    assert [entry[0] for entry in log.seen] == ["setup", "begin", "end", "teardown"]


@needs_callbacks
def test_rounds_of_factors_are_steps():
    ratings, log = load_ratings_sample(), Log()
    options = {"factors": 3, "strength": 0.7, "max_iter": 4, "tol": 1e-2}
    ranker = CofiRanker(**options).set_callbacks(log).fit(ratings)
    assert len(log.ended("step")) - ranker.n_iter_ in (0, 1)
    assert np.array_equal(ranker.user_factors_, CofiRanker(**options).fit(ratings).user_factors_)


@needs_callbacks
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", STEPPING)
def test_a_callback_that_returns_true_ends_training(kind):
    ranker = made(kind).set_callbacks(Log(stop_at=2)).fit(QUERIES)
    rounds = ranker.n_iter_ if kind == "direct" else steps_of(ranker)
    assert rounds <= 2
    if hasattr(ranker, "certificate_") and rounds == 2:
        assert ranker.certificate_.stop.name == "CALLBACK"


@needs_callbacks
def test_a_callback_that_fails_leaves_the_ranker_as_it_was_and_is_torn_down():
    class Failing(Log):
        def on_fit_task_end(self, estimator, context):
            raise ZeroDivisionError("in a callback")

    failing = Failing()
    ranker = LargeMarginRanker("nDCG@10").set_callbacks(failing)
    with pytest.raises(ZeroDivisionError, match="in a callback"):
        ranker.fit(QUERIES)
    assert not hasattr(ranker, "coef_")
    assert failing.seen[-1] == ("teardown", "fit")
    log = Log()
    with pytest.raises(ValueError, match="lam"):
        LargeMarginRanker("nDCG@10", lam=-1.0).set_callbacks(log).fit(QUERIES)
    assert [entry[0] for entry in log.seen] == ["setup", "begin", "teardown"]


@needs_callbacks
def test_ctrl_c_keeps_the_best_so_far_and_tears_down():
    class Pressed(Log):
        def on_fit_task_end(self, estimator, context):
            if context.task_name == "step" and context.task_id == 2:
                raise KeyboardInterrupt
            return super().on_fit_task_end(estimator, context)

    log = Pressed()
    ranker = LargeMarginRanker("nDCG@10").set_callbacks(log)
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(QUERIES)
    assert ranker.certificate_.stop.name == "INTERRUPTED"
    assert log.seen[-1] == ("teardown", "fit")
    ranker.set_callbacks().fit(QUERIES)  # without any again
    assert ranker.certificate_.stop.name != "INTERRUPTED"


@needs_callbacks
def test_clones_keep_callbacks_and_files_do_not(tmp_path):
    log = Log()
    ranker = clone(PairwiseRanker().set_callbacks(log)).fit(QUERIES)
    assert log.ended("fit")
    ranker.save(tmp_path / "model")
    assert pickle.loads(pickle.dumps(ranker)).coef_.tolist() == ranker.coef_.tolist()
    with pytest.raises(TypeError, match="FitCallback"):
        PairwiseRanker().set_callbacks(print)


@needs_callbacks
def test_the_choice_of_lam_and_paths_take_no_part():
    log = Log()
    ranker = LargeMarginRanker("nDCG@10", lam="auto").set_callbacks(log).fit(QUERIES)
    assert len(log.ended("fit")) == 1
    assert len(log.ended("step")) - ranker.n_iter_ in (0, 1)
    log.seen.clear()
    ranker.set_params(lam="scale").path(QUERIES, lams=[1.0, 0.1])
    assert not log.seen


@needs_callbacks
def test_the_progress_bar_goes_over_a_search_and_its_fits(capsys):
    from sklearn.callback import ProgressBar

    with sklearn.config_context(enable_metadata_routing=True):
        steps = make_pipeline(StandardScaler(), PairwiseRanker())
        search = GridSearchCV(steps, {"pairwiseranker__lam": [0.1, 1.0]}, cv=GroupKFold(2))
        search.set_callbacks(ProgressBar(max_propagation_depth=None))
        search.fit(X, Y, qid=QID, groups=QID)  # a warning would be an error: all that it reaches takes callbacks
    told = capsys.readouterr().out
    assert told.count("PairwiseRanker - fit") == 2 * 2 + 1
    assert "GridSearchCV - fit" in told
    assert "0%" not in told.replace("100%", "")


@needs_callbacks
def test_scores_of_each_step_are_logged():
    from sklearn.callback import ScoringMonitor

    monitor = ScoringMonitor(scoring=lambda ranker, X, y, **of_rows: {"score": ranker.score(X, y, **of_rows)})
    ranker = LargeMarginRanker("nDCG@10").set_callbacks(monitor).fit(QUERIES)
    rows = monitor.get_logs().data
    values = [row["score"] for row in rows if row["task_name"] == "step"]
    assert len(values) == ranker.n_iter_
    assert values[-1] == pytest.approx(ranker.score(QUERIES), abs=1e-12)


@pytest.mark.study
def test_without_callbacks_in_scikit_learn_nothing_changes():
    script = (
        "import sklearn.model_selection, sklearn.pipeline, sklearn\n"
        "vars(getattr(sklearn, 'callback', sklearn)).pop('CallbackSupportMixin', None)\n"  # as before 1.9
        "from rankopt.data import load_sample\n"
        "from rankopt.rankers import RegressionRanker\n"
        "ranker = RegressionRanker().fit(load_sample('les-miserables').train)\n"
        "print(hasattr(ranker, 'set_callbacks'), ranker.coef_.size)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert run.stdout.split() == ["False", "12"], run.stderr
