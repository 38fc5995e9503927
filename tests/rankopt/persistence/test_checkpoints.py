"""Checkpoints: a run that dies at any moment goes on to the same bits."""

import os
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from problems.same_bits import assert_same
from problems.training import BOUNDS as BOUNDS_hostile_checkpoints
from problems.training import made as made_hostile_checkpoints
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from formulations.serialization import Decoder, Encoder, write_zip
from rankopt.data import load_sample
from rankopt.errors import OptionError, TrainingInterruptedWarning
from rankopt.optimize import METHODS, get_method
from rankopt.optimize.certificate import Stop
from rankopt.optimize.state import TrainingState
from rankopt.persistence.checkpoint import CHECKPOINT, SLOTS, stored_run
from rankopt.rankers import Checkpoint, LargeMarginRanker, MatchingRanker, PairwiseRanker
from rankopt.risk import risk

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
        except (kind, TrainingInterruptedWarning):  # warnings are errors here
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
@pytest.mark.filterwarnings("ignore::rankopt.errors.NoProgressWarning")  # the start may be best on eval_set
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("engine", ["threads", "dask"])
def test_interrupted_runs_go_on_with_a_judge_and_on_any_engine(bound, engine, tmp_path, monkeypatch):
    monkeypatch.setattr(risk, "SHARD_ROWS", 40)
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


# What a checkpoint says is looked at and recomputed; its folder is one run's at a time; no link leads out of it.


X, Y, QID = made_hostile_checkpoints(queries=6)


def kill(step, state):
    if step.step == 5:
        raise Killed


def begun(folder, **options):
    """A ranker, and in the folder the standing of its run before it was killed."""
    w0 = "zeros" if options.get("bound") == "convex" else "regression"
    ranker = LargeMarginRanker(
        "nDCG@5", **{"lam": 0.03, "w0": w0, "tol": 1e-6, **options}, checkpoint=Checkpoint(folder, every=0)
    )
    with pytest.raises(Killed):
        clone(ranker).set_params(callbacks=[kill]).fit(X, Y, qid=QID)
    return ranker


def whole(ranker):
    return clone(ranker).set_params(checkpoint=None).fit(X, Y, qid=QID)


def changed(file, change, columns=None):
    """Write the file again with another state, or other columns of its run, and right digests."""
    manifest, arrays = CHECKPOINT.read(file)
    run, encoder = Decoder(CHECKPOINT, arrays, writeable=True).decode(manifest["run"]), Encoder(CHECKPOINT)
    standing = run["standing"]
    run = {**run, "standing": replace(standing, method_state=change(standing.method_state)), **(columns or {})}
    CHECKPOINT.write(file, {**manifest, "run": encoder.encode(run, "run")}, encoder.arrays)


def with_nan(array):
    array = array.copy()
    array.ravel()[:1] = np.nan
    return array


DAMAGE = {
    "NaN in planes": lambda s: replace(s, planes=replace(s.planes, assigned=with_nan(s.planes.assigned))),
    "NaN in heights": lambda s: replace(s, planes=replace(s.planes, heights=with_nan(s.planes.heights))),
    "NaN in w": lambda s: replace(s, w=with_nan(s.w)),
    "NaN bound": lambda s: replace(s, bound=float("nan")),
    "infinite bound": lambda s: replace(s, bound=float("inf")),
    "a primal in words": lambda s: replace(s, primal="little"),
    "no planes": lambda s: replace(s, planes=None),
    "a plane of no group": lambda s: replace(s, planes=replace(s.planes, group=s.planes.group + 10**6)),
    "too few weights": lambda s: replace(s, alpha=s.alpha[1:]),
    "weights below 0": lambda s: replace(s, alpha=s.alpha - 1.0),
    "other numbers": lambda s: replace(s, trial=s.trial.astype(np.float32)),
}


@pytest.mark.every(5)
@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("which", ["newest", "both"])
def test_what_no_run_holds_is_damage_whatever_its_digest(damage, which, tmp_path):
    """The run resumes from the older file or begins anew, with identical results."""
    ranker = begun(tmp_path)
    files = sorted(tmp_path.iterdir(), key=lambda file: file.stat().st_mtime_ns)
    assert len(files) == len(SLOTS)
    for file in files if which == "both" else files[-1:]:
        changed(file, DAMAGE[damage])
    assert_same(clone(ranker).fit(X, Y, qid=QID), whole(ranker))


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"format": "rankopt checkpoint", "version": 1}', b"{}", b"7"])
def test_a_manifest_of_another_form_is_damage(content, tmp_path):
    ranker = begun(tmp_path)
    for file in tmp_path.iterdir():
        write_zip(file, {CHECKPOINT.manifest: content})
    assert_same(clone(ranker).fit(X, Y, qid=QID), whole(ranker))


CLAIMS = {
    "J at its w is": lambda s: replace(s, primal=s.primal * (1 - 1e-6)),
    "its bound .* is above J": lambda s: replace(s, bound=s.primal * 1.5),
    "above the risk at its w": lambda s: replace(s, planes=replace(s.planes, heights=s.planes.heights + 1e-3)),
    "it has 3 weights": lambda s: narrowed(s),
}


def narrowed(state):
    planes = replace(state.planes, assigned=state.planes.assigned[:, :3], references=state.planes.references[:, :3])
    return replace(state, planes=planes, w=state.w[:3], trial=state.trial[:3])


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("bound", BOUNDS_hostile_checkpoints)
def test_what_it_says_of_its_own_w_is_recomputed(claim, bound, tmp_path):
    ranker = begun(tmp_path, bound=bound, lam=0.01)
    none = {"passed": {"w": np.zeros((0, 3)), "primal": np.zeros(0), "bound": np.zeros(0)}}
    for file in tmp_path.iterdir():
        changed(file, CLAIMS[claim], none if "weights" in claim else None)
    with pytest.raises(OptionError, match=f"cannot be resumed because .*{claim}.*; remove it and fit anew"):
        clone(ranker).fit(X, Y, qid=QID)


@pytest.mark.every(7)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bound", BOUNDS_hostile_checkpoints)
def test_honest_standings_are_believed(method, bound, tmp_path):
    ranker = begun(tmp_path, bound=bound, method=method, tol=1e-9, max_iter=5)
    with pytest.warns(match="training stopped"):
        resumed, alone = clone(ranker).fit(X, Y, qid=QID), whole(ranker)
    assert_same(resumed, alone)


@pytest.mark.study
def test_a_second_run_in_one_folder_is_told_so(tmp_path):
    seen = []

    def second(step, state):
        with pytest.raises(OptionError, match="is in use: another process") as told:
            LargeMarginRanker("nDCG@5", lam=0.03, checkpoint=tmp_path).fit(X, Y, qid=QID)
        seen.append(str(told.value))
        script = f"from rankopt.rankers import Checkpoint\nwith Checkpoint({str(tmp_path)!r}).claimed(): print('mine')"
        if len(seen) == 1:
            done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
            assert "OptionError" in done.stderr
            assert done.stdout == ""

    ranker = LargeMarginRanker("nDCG@5", lam=0.03, checkpoint=Checkpoint(tmp_path, every=0), callbacks=[second])
    ranker.fit(X, Y, qid=QID)
    assert len(seen) == ranker.n_iter_
    clone(ranker).set_params(callbacks=()).fit(X, Y, qid=QID)  # it is free again


def test_links_in_a_folder_lead_nowhere(tmp_path):
    """A folder of somebody else's may hold any: what they name stays as it is."""
    victim, kept = tmp_path / "victim", tmp_path / "kept"
    victim.write_text("precious")
    kept.mkdir()
    for slot in SLOTS:
        (kept / slot).symlink_to(victim)
    LargeMarginRanker("nDCG@5", lam=0.03, checkpoint=Checkpoint(kept, every=0)).fit(X, Y, qid=QID)
    assert victim.read_text() == "precious"
    assert not any(Path(file).is_symlink() for file in kept.iterdir())


@pytest.mark.parametrize("folder", ["a\0b", "\0", os.fsencode("x")])
def test_what_is_no_path_is_no_folder(folder):
    with pytest.raises(OptionError, match="no folder"):
        LargeMarginRanker(checkpoint=folder).fit(X, Y, qid=QID)
