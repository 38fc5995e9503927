"""Checkpoints: training is killed with SIGKILL at random moments, and resumed to the same bits."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import tempfile
import time
import traceback
from dataclasses import asdict
from pathlib import Path

import numpy as np
from sklearn.base import clone

from planted.attack import survive
from rankopt.constraints import Admissible
from rankopt.data import Queries
from rankopt.optimize import METHODS
from rankopt.rankers import (
    Checkpoint,
    CofiRanker,
    DirectRanker,
    LargeMarginRanker,
    MatchingRanker,
    PairwiseRanker,
)
from rankopt.ratings import Ratings

RNG = np.random.default_rng(0)
FEATURES = np.round(RNG.normal(size=(120, 4)), 1)
TRUTH = FEATURES @ np.linspace(1, -1, 4) + 0.7 * RNG.normal(size=120)
QUERIES = Queries.from_arrays(
    FEATURES,
    np.digitize(TRUTH, [0.3, 1.2]).astype(float),
    qid=np.repeat(np.arange(12), 10),
    attributes={"site": np.arange(120) % 4},
)
USER, ITEM = np.nonzero(RNG.random((40, 30)) < 0.4)
RATINGS = Ratings.from_arrays(USER, ITEM, np.clip(np.round(3 + RNG.normal(size=USER.size)), 1, 5))
RANKERS = (
    *(LargeMarginRanker("nDCG@5", bound=bound, lam=0.01) for bound in ("convex", "tie-aware", "nonconvex")),
    *(LargeMarginRanker("nDCG@5", bound="convex", lam=0.1, tol=1e-2, method=method) for method in METHODS),
    LargeMarginRanker("nDCG@3", lam=0.03, constraints=Admissible(3).at_most(2, by="site")),
    LargeMarginRanker("nDCG@5", lam=1e-3, max_iter=15),
    PairwiseRanker(lam=0.01),
    MatchingRanker(bound="tie-aware", lam=0.05),
    DirectRanker("nDCG@5", init="zeros", n_restarts=2, random_state=0),
    *(
        CofiRanker(loss, factors=3, reg=0.3, tol=tol)
        for loss, tol in (("regression", 1e-7), ("ordinal", 1e-7), ("nDCG@5", 1e-4))
    ),
)
"""What is trained."""

LIMIT = 120
"""Seconds after which a run that nothing disturbs any more hangs."""


def result(ranker):
    """All that a fit found but the seconds that it took, as bytes."""
    history = {name: column.tobytes() for name, column in ranker.history_.columns.items() if "seconds" not in name}
    learned = ("coef_",) if hasattr(ranker, "coef_") else ("user_factors_", "item_factors_", "item_bias_")
    arrays = [getattr(ranker, name).tobytes() for name in learned]
    return pickle.dumps((arrays, sorted(asdict(ranker.certificate_).items()), sorted(history.items())))


def fitted(ranker):
    """Fitted on ratings, or on queries."""
    return ranker.fit(RATINGS if isinstance(ranker, CofiRanker) else QUERIES)


def trained(ranker, folder):
    """In a process of its own: fit with a checkpoint in the folder, and write down the result."""
    child = os.fork()
    if child:
        return child
    try:
        own = clone(ranker).set_params(checkpoint=Checkpoint(folder / "kept", every=0))
        found = result(fitted(own))
        (folder / "part").write_bytes(found)
        os.replace(folder / "part", folder / "result")
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def ended(child, seconds):
    """How a process ended within so many seconds; killed if it did not."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.0005)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_and_resume(ranker, whole, seconds, rng):
    """One try: how often the run was killed, and what happened if it is not survived."""
    kills, wanted = 0, int(rng.integers(1, 4))
    while True:
        folder = Path(tempfile.mkdtemp(prefix="rankopt-faults-"))
        try:
            while kills < wanted:
                code = ended(trained(ranker, folder), rng.uniform(0.0, 1.1 * seconds))
                if code != -signal.SIGKILL:
                    break  # it was over before its time
                kills += 1
            else:
                code = ended(trained(ranker, folder), LIMIT)
            if code == 0 and not kills:
                continue  # the next run begins anew, and may be caught
            if code != 0:
                return kills, f"it ended with {code}"
            return kills, None if (folder / "result").read_bytes() == whole else "other bits"
        finally:
            shutil.rmtree(folder)


def attack(tries: int, seed: int) -> bool:
    """Whether any try does not survive."""
    rng, known, killed = np.random.default_rng(seed), {}, [0]

    def one(number: int) -> str | None:
        chosen = int(rng.integers(len(RANKERS)))
        ranker = clone(RANKERS[chosen]).set_params(engine="serial")  # a fork has no threads of its parent's
        if chosen not in known:
            whole, folder = result(fitted(clone(ranker))), Path(tempfile.mkdtemp(prefix="rankopt-faults-"))
            began = time.monotonic()
            ended(trained(ranker, folder), LIMIT)
            known[chosen] = whole, time.monotonic() - began
            shutil.rmtree(folder)
        kills, why = kill_and_resume(ranker, *known[chosen], rng)
        killed[0] += kills
        return why and f"{ranker}: {why} after {kills} kills"

    return survive(tries, one, lambda: print(f"{killed[0]} kills"))
