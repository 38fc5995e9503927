"""What a checkpoint says is looked at and recomputed; its folder is one run's at a time; no link leads out of it."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from problems.same_bits import assert_same
from problems.training import BOUNDS, made
from sklearn.base import clone

from formulations.serialization import Decoder, Encoder, write_zip
from rankopt.errors import OptionError
from rankopt.optimize import METHODS
from rankopt.persistence.checkpoint import CHECKPOINT, SLOTS
from rankopt.rankers import Checkpoint, LargeMarginRanker

X, Y, QID = made(queries=6)


class Killed(Exception):
    """Stands for an end that training knows nothing of."""


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
@pytest.mark.parametrize("bound", BOUNDS)
def test_what_it_says_of_its_own_w_is_recomputed(claim, bound, tmp_path):
    ranker = begun(tmp_path, bound=bound, lam=0.01)
    none = {"passed": {"w": np.zeros((0, 3)), "primal": np.zeros(0), "bound": np.zeros(0)}}
    for file in tmp_path.iterdir():
        changed(file, CLAIMS[claim], none if "weights" in claim else None)
    with pytest.raises(OptionError, match=f"cannot be resumed because .*{claim}.*; remove it and fit anew"):
        clone(ranker).fit(X, Y, qid=QID)


@pytest.mark.every(7)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bound", BOUNDS)
def test_honest_standings_are_believed(method, bound, tmp_path):
    ranker = begun(tmp_path, bound=bound, method=method, tol=1e-9, max_iter=8)
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
