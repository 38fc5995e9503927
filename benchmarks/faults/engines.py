"""Attacks on workers: stopped, killed and slowed while a ranker is trained on processes or Dask.

Each try fits with two workers, and at random moments one or both of them are killed (SIGKILL), stopped for good
(SIGSTOP), or stopped and let go again and again, as on a machine that has too much to do. It is survived if the fit
ends within its time, with weights, certificate and history of a fit that nothing disturbed, bit for bit.

    python benchmarks/faults/engines.py --tries 60 --seed 0

Workers are given up after SILENT seconds here, not after the 10 that is theirs, so that the script ends.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
import traceback
import warnings
from dataclasses import asdict

import numpy as np
import psutil
from sklearn.base import clone

from rankopt.data import Queries
from rankopt.engines import engine_named
from rankopt.engines import messages as signs
from rankopt.rankers import LargeMarginRanker, PairwiseRanker
from rankopt.risk import shard as sharding

SILENT = 2.0
LIMIT = 90
"""Seconds after which a fit hangs."""

RNG = np.random.default_rng(0)
FEATURES = np.round(RNG.normal(size=(240, 4)), 1)
TRUTH = FEATURES @ np.linspace(1, -1, 4) + 0.7 * RNG.normal(size=240)
QUERIES = Queries.from_arrays(FEATURES, np.digitize(TRUTH, [0.3, 1.2]).astype(float), qid=np.repeat(np.arange(24), 10))
RANKERS = (
    LargeMarginRanker("nDCG@5", bound="convex", lam=0.01),
    LargeMarginRanker("nDCG@5", lam=0.003),
    LargeMarginRanker("nDCG@5", lam=0.1, method="cutting_planes"),
    PairwiseRanker(lam=0.003),
)
FAULTS = ("killed", "stopped", "slow")
ENGINES = ("processes", "dask")


def result(ranker):
    """All that a fit found but the seconds that it took."""
    history = {name: column.tobytes() for name, column in vars(ranker.history_).items() if "seconds" not in name}
    return ranker.coef_.tobytes(), asdict(ranker.certificate_), history


def workers():
    """The processes that compute shards."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            words = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if "engines.worker" in words or "spawn_main" in words:
            found.append(process)
    return found


class Attack(threading.Thread):
    """Hits workers at random moments until it is over."""

    def __init__(self, fault, rng):
        super().__init__(daemon=True)
        self.fault, self.rng = fault, rng
        self.over = threading.Event()
        self.hits = 0

    def run(self):
        if self.fault == "slow":
            while not self.over.wait(0.02):
                for process in workers():
                    self.hit(process, signal.SIGSTOP)
                self.over.wait(0.2)
                for process in workers():
                    self.hit(process, signal.SIGCONT)
            return
        for _ in range(int(self.rng.integers(1, 3))):
            if self.over.wait(self.rng.uniform(0.0, 0.6)):
                return
            there = workers()
            for process in there[: int(self.rng.integers(1, 3))]:
                self.hit(process, signal.SIGKILL if self.fault == "killed" else signal.SIGSTOP)

    def hit(self, process, sign):
        try:
            process.send_signal(sign)
            self.hits += 1
        except psutil.Error:  # it has gone
            pass


def attempt(engine, ranker, whole, fault, rng):
    """One try: how often workers were hit, and what happened if it is not survived."""
    ranker = clone(ranker).set_params(engine=engine, callbacks=[lambda step, state: time.sleep(0.05)])
    attack = Attack(fault, rng)
    attack.start()
    signal.alarm(LIMIT)
    try:
        ranker.fit(QUERIES)
        why = None if result(ranker) == whole else "other bits"
    except Exception:
        why = traceback.format_exc()
    finally:
        signal.alarm(0)
        attack.over.set()
        attack.join()
    return attack.hits, why


class Lasting:
    """An engine that is no copy, whatever copies the ranker."""

    def __init__(self, name):
        self.engine = engine_named(name, 2)

    def map(self, question, shards):
        return self.engine.map(question, shards)

    def __deepcopy__(self, memo):
        return self


def late(*_):
    raise TimeoutError(f"more than {LIMIT} s")


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--tries", type=int, default=60)
    asked.add_argument("--seed", type=int, default=0)
    asked = asked.parse_args()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, late)
    signs.SILENT, sharding.SHARD_ROWS = SILENT, 40
    rng, survived, hits = np.random.default_rng(asked.seed), 0, 0
    wholes = [result(clone(ranker).set_params(engine="serial").fit(QUERIES)) for ranker in RANKERS]
    engines = {name: Lasting(name) for name in ENGINES}
    for number in range(asked.tries):
        name, fault = ENGINES[number % 2], FAULTS[number // 2 % 3]
        chosen = int(rng.integers(len(RANKERS)))
        hit, why = attempt(engines[name], RANKERS[chosen], wholes[chosen], fault, rng)
        hits += hit
        survived += why is None
        if why is not None:
            print(f"try {number}, {name}, {fault}, {RANKERS[chosen]}: {why}", file=sys.stderr)
            engines[name].engine.close()
    for engine in engines.values():
        engine.engine.close()
    print(f"{hits} signals to workers")
    print(f"tries {asked.tries}, survived {survived}")
    return survived != asked.tries


if __name__ == "__main__":
    sys.exit(main())
