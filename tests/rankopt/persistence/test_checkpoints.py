"""Checkpoints: a run that dies at any moment goes on to the same bits."""

import warnings

import numpy as np
import pytest
from problems.same_bits import assert_same
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from rankopt.data import load_sample
from rankopt.errors import OptionError
from rankopt.optimize import METHODS, get_method
from rankopt.optimize.certificate import Stop
from rankopt.optimize.state import TrainingState
from rankopt.persistence.checkpoint import stored_run
from rankopt.rankers import Checkpoint, LargeMarginRanker, MatchingRanker, PairwiseRanker
from rankopt.risk import risk as sharding

BOUNDS = ["convex", "tie-aware", "nonconvex"]


def made(seed=0, queries=12, documents=8, features=4):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(queries * documents, features)), 1)
    truth = X @ np.linspace(1, -1, features) + 0.7 * rng.normal(size=len(X))
    return X, np.digitize(truth, [0.3, 1.2]).astype(float), np.repeat(np.arange(queries), documents)


class Killed(Exception):
    """Stands for an end that training knows nothing of."""


def killed_at(*steps, kind=Killed):
    """A callback that ends the process, as it were, the first time that it sees one of these steps."""
    left = set(steps)

    def kill(step, state):
        if step.step in left:
            left.discard(step.step)
            raise kind

    return kill


def until_done(ranker, *data, kind=Killed, **options):
    """The ranker fitted, by objects that know nothing of those before, as often as it takes; and how often it took."""
    for attempt in range(10_000):
        ranker = clone(ranker)
        try:
            return ranker.fit(*data, **options), attempt
        except kind:
            continue
    raise AssertionError("it never ends")


@pytest.mark.every(5)
@pytest.mark.parametrize(
    "ranker",
    [
        *(LargeMarginRanker("nDCG@5", bound=bound, lam=0.03) for bound in BOUNDS),
        *(LargeMarginRanker("nDCG@5", bound="convex", lam=0.1, tol=1e-2, method=method) for method in METHODS),
        LargeMarginRanker("nDCG@5", bound="nonconvex", lam=0.1, method="cutting_planes", w0="zeros"),
        PairwiseRanker(lam=0.03),
        MatchingRanker(bound="tie-aware", lam=0.1),
    ],
    ids=str,
)
def test_a_run_that_dies_after_every_step_ends_at_the_same_bits(ranker, tmp_path):
    X, y, qid = made()
    whole = clone(ranker).fit(X, y, qid=qid)
    kill = killed_at(*range(2, whole.n_iter_ + 1))
    ranker.set_params(checkpoint=Checkpoint(tmp_path / "kept", every=0), callbacks=[Same(kill)])
    resumed, deaths = until_done(ranker, X, y, qid=qid)
    assert deaths == whole.n_iter_ - 1
    assert_same(resumed, whole)


class Same:
    """A callback that is no copy, whatever copies the ranker."""

    def __init__(self, callback):
        self.callback = callback

    def __call__(self, step, state):
        return self.callback(step, state)

    def __deepcopy__(self, memo):
        return self


@pytest.mark.study
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("engine", ["threads", "dask"])
def test_interrupted_runs_go_on_with_a_judge_and_on_any_engine(bound, engine, tmp_path, monkeypatch):
    monkeypatch.setattr(sharding, "SHARD_ROWS", 40)
    X, y, qid = made()
    judge = {"eval_set": made(seed=5)[:2], "eval_qid": qid}
    ranker = LargeMarginRanker("nDCG@5", bound=bound, lam=0.01)
    whole = clone(ranker).fit(X, y, qid=qid, **judge)
    kill = killed_at(1, 3, 7, kind=KeyboardInterrupt)
    ranker.set_params(checkpoint=tmp_path, callbacks=[Same(kill)], engine=engine, n_jobs=2)
    resumed, deaths = until_done(ranker, X, y, qid=qid, kind=KeyboardInterrupt, **judge)
    assert deaths == 3
    assert_same(resumed, whole)


@pytest.mark.parametrize("bound", BOUNDS)
def test_limits_count_over_all_parts_and_may_be_raised(bound, tmp_path):
    X, y, qid = made()
    ranker = LargeMarginRanker("nDCG@5", bound=bound, lam=0.01)
    whole = clone(ranker).fit(X, y, qid=qid)
    ranker.set_params(checkpoint=tmp_path, max_iter=4)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        first = clone(ranker).fit(X, y, qid=qid)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        again = clone(ranker).fit(X, y, qid=qid)
    assert first.n_iter_ == 4
    assert_same(again, first)
    assert_same(clone(ranker).set_params(max_iter=2000).fit(X, y, qid=qid), whole)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(clone(ranker).set_params(max_iter=2000, time_limit=1e-9).fit(X, y, qid=qid), whole)  # it is over


@pytest.mark.every(5)
@pytest.mark.parametrize("damage", ["cut off", "changed", "empty", "gone"])
@pytest.mark.parametrize("which", ["newest", "both"])
def test_a_damaged_file_leaves_the_one_before(damage, which, tmp_path):
    X, y, qid = made()
    ranker = LargeMarginRanker("nDCG@5", lam=0.03, w0="regression")
    whole = clone(ranker).fit(X, y, qid=qid)
    ranker.set_params(checkpoint=Checkpoint(tmp_path, every=0))
    with pytest.raises(Killed):
        clone(ranker).set_params(callbacks=[killed_at(9)]).fit(X, y, qid=qid)
    kept = sorted(tmp_path.iterdir(), key=lambda file: file.stat().st_mtime_ns)
    assert [file.name for file in kept] == ["standing1.zip", "standing0.zip"]  # written in turn, eight of them
    for file in kept if which == "both" else kept[-1:]:
        content = bytearray(file.read_bytes())
        for place in range(len(content) // 3, 2 * len(content) // 3, 50):  # some in what is kept, not in its wrapping
            content[place] ^= 1
        file.write_bytes({"cut off": content[: len(content) // 2], "changed": content}.get(damage, b""))
        if damage == "gone":
            file.unlink()
    seen = []
    ranker.set_params(callbacks=[Same(lambda step, state: seen.append(step.step))])
    assert_same(ranker.fit(X, y, qid=qid), whole)
    assert seen[0] == (8 if which == "newest" else 1)


def test_half_written_files_are_swept_away(tmp_path):
    (tmp_path / ".standing0.zip.1234.part").write_bytes(b"half")
    X, y, qid = made()
    LargeMarginRanker(lam=0.1, checkpoint=tmp_path).fit(X, y, qid=qid)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["standing1.zip"]


@pytest.mark.parametrize(
    ("options", "change", "words"),
    [
        ({"lam": 0.2}, None, "lam differ"),
        ({"bound": "convex", "tol": 1e-2}, None, "bound, start, tol differ"),
        ({}, "X", "data, start differ"),
        ({}, "order", "data differ"),
        ({"w0": np.ones(4)}, None, "start, w0 differ"),
    ],
)
def test_another_problem_is_refused(options, change, words, tmp_path):
    X, y, qid = made()
    LargeMarginRanker(lam=0.1, checkpoint=tmp_path, bound="nonconvex").fit(X, y, qid=qid)
    if change == "X":
        X = X + (np.arange(X.size).reshape(X.shape) == 17)
    if change == "order":
        X, y, qid = X[::-1], y[::-1], qid[::-1]
    with pytest.raises(OptionError, match=words):
        LargeMarginRanker(**{"lam": 0.1, **options}, checkpoint=tmp_path).fit(X, y, qid=qid)


def test_what_cannot_be_kept_or_written_is_said(tmp_path):
    from formulations.solvers.exact import ExactArgmax

    class Nameless(ExactArgmax):
        __repr__ = object.__repr__

    X, y, qid = made()
    (tmp_path / "file").touch()
    with pytest.raises(OptionError, match="no folder"):
        LargeMarginRanker(checkpoint=tmp_path / "file").fit(X, y, qid=qid)
    with pytest.raises(OptionError, match="argmax"):
        LargeMarginRanker(checkpoint=tmp_path / "new", argmax_solver=Nameless()).fit(X, y, qid=qid)
    folder = tmp_path / "lost"

    def lose(step, state):
        if folder.exists():
            folder.rmdir()

    ranker = LargeMarginRanker(lam=0.1, checkpoint=folder, callbacks=[lose])
    with pytest.warns(RuntimeWarning, match="no checkpoint could be written"):
        ranker.fit(X, y, qid=qid)
    assert_same(ranker, LargeMarginRanker(lam=0.1).fit(X, y, qid=qid))


def test_a_run_that_is_chosen_on_an_eval_set_is_another_run(tmp_path):
    """Without one only the last point is kept: a judge could not choose among the points before."""
    sample = load_sample("les-miserables")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        LargeMarginRanker(max_iter=3, checkpoint=str(tmp_path)).fit(sample.train)
    with pytest.raises(OptionError, match="eval_set"):
        LargeMarginRanker(checkpoint=str(tmp_path)).fit(sample.train, eval_set=sample.test)


@pytest.mark.study
@pytest.mark.parametrize("cuts", [(5,), pytest.param((7, 3, 1), marks=pytest.mark.study)])
def test_a_run_that_stalls_ends_at_the_same_step_wherever_it_was_cut(cuts, tmp_path):
    sample = load_sample("les-miserables").train
    options = {"bound": "convex", "lam": 1.0, "tol": 0.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = LargeMarginRanker(**options).fit(sample)
        assert whole.certificate_.stop is Stop.STALLED
        for cut in (whole.n_iter_ - before for before in cuts):
            LargeMarginRanker(**options, max_iter=cut, checkpoint=str(tmp_path / str(cut))).fit(sample)
            again = LargeMarginRanker(**options, checkpoint=str(tmp_path / str(cut))).fit(sample)
            assert again.n_iter_ == whole.n_iter_
            np.testing.assert_array_equal(again.coef_, whole.coef_)


@pytest.mark.parametrize("folder", [3, b"x", ""])
def test_a_checkpoint_is_a_folder(folder):
    with pytest.raises(OptionError, match="no folder"):
        LargeMarginRanker(checkpoint=folder).fit(load_sample("les-miserables").train)


@pytest.mark.parametrize("every", [-1, float("nan"), "x", None, True])
def test_seconds_between_checkpoints_are_a_number(tmp_path, every):
    with pytest.raises(OptionError, match="seconds"):
        Checkpoint(tmp_path, every)


def test_a_checkpoint_that_does_not_know_a_parameter_goes_on_where_that_has_its_default(tmp_path):
    """As one of an older version does, which had no such parameter."""
    folder = tmp_path / "run"
    problem = {"lam": "a", "data": "b", "w0": "c"}
    checkpoint = Checkpoint(str(folder), every=0)
    checkpoint.found({"lam": "a", "data": "b"}, stored_run)
    objective = PairwiseRanker().objective(load_sample("les-miserables").train)
    checkpoint.keep(TrainingState(get_method("bundle").start(objective, objective.w0)))
    begun = Checkpoint(str(folder)).found(problem, stored_run, {"w0"})
    assert begun is not None
    for defaults, changed in (((), {}), ({"w0"}, {"lam": "other"}), ({"lam", "w0"}, {"lam": "other"})):
        with pytest.raises(OptionError, match="holds another run"):
            Checkpoint(str(folder)).found({**problem, **changed}, stored_run, defaults)
