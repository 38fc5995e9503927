"""A round of boosting on the bound beside one with lambdarank, by turns.

    python benchmarks/boosting_round.py [--rounds 60] [--turns 7]     MQ2008 needs RANKOPT_DATA; other data are made

The same trees (8 and 31 leaves, learning rate .1, 20 documents a leaf), the same data set, one thread. A turn grows
`rounds` trees with lambdarank, then with the bound; processor seconds a round, the least over the turns. The first
round of the bound, which builds what does not vary, is part of its turn. The part of the round that is not LightGBM's
is timed inside: the call of the objective.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from time import process_time

import lightgbm
import numpy as np

from rankopt.boosting import boosting_objective
from rankopt.data import Queries, concatenate, read_svmlight


def mslr_like(queries: int = 200, documents: int = 120, features: int = 136, seed: int = 0) -> Queries:
    """Made queries of the shape of MSLR-WEB: 120 documents, 136 features, five grades with its shares."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * documents, features)).astype(np.float32)
    worth = X[:, :10].sum(axis=1) + np.abs(X[:, 10]) * 2 + 3 * rng.normal(size=len(X))
    cuts = np.quantile(worth, np.cumsum([0.52, 0.32, 0.13, 0.02]))
    return Queries.from_arrays(X, np.digitize(worth, cuts), group=[documents] * queries)


def data_sets() -> dict[str, Queries]:
    found = {"made, shape of MSLR": mslr_like()}
    if "RANKOPT_DATA" in os.environ:
        folder = Path(os.environ["RANKOPT_DATA"]) / "letor4-mq2008"
        found["MQ2008, S1 and S2"] = concatenate([read_svmlight(folder / f"S{part}.txt.gz") for part in (1, 2)])
    return found


class Timed:
    """An objective and the processor seconds of all calls of it and of its copies: LightGBM copies what it is given."""

    def __init__(self) -> None:
        self.objective, self.seconds = boosting_objective("nDCG@10"), [0.0]

    def __call__(self, scores, data):
        began = process_time()
        found = self.objective(scores, data)
        self.seconds[0] += process_time() - began
        return found

    def __deepcopy__(self, memo):
        return self


def grown(objective, data, leaves: int, rounds: int) -> float:
    """Processor seconds a round."""
    options = {
        "objective": objective, "num_leaves": leaves, "learning_rate": 0.1, "min_data_in_leaf": 20, "num_threads": 1,
        "deterministic": True, "force_col_wise": True, "verbosity": -1, "metric": "None",
    }  # fmt: skip
    began = process_time()
    lightgbm.train(options, data, rounds)
    return (process_time() - began) / rounds


def main(rounds: int, turns: int) -> None:
    print("| data | leaves | lambdarank, ms | on the bound, ms | of which ours | ratio |")
    print("|---|---|---|---|---|---|")
    for name, queries in data_sets().items():
        sizes = np.diff(queries.offsets)
        data = lightgbm.Dataset(
            queries.features, queries.relevance, group=sizes, free_raw_data=False,
            params={"verbosity": -1, "min_data_in_leaf": 20},
        ).construct()  # fmt: skip
        grown(Timed(), data, 8, 3)  # kernels are there
        for leaves in (8, 31):
            theirs, ours, own = [], [], []
            for _ in range(turns):
                theirs.append(grown("lambdarank", data, leaves, rounds))
                timed = Timed()
                ours.append(grown(timed, data, leaves, rounds))
                own.append(timed.seconds[0] / rounds)
            ratio = min(ours) / min(theirs)
            print(
                f"| {name} | {leaves} | {1e3 * min(theirs):.2f} | {1e3 * min(ours):.2f} | {1e3 * min(own):.2f} "
                f"| {ratio:.2f} |"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--turns", type=int, default=7)
    given = parser.parse_args()
    main(given.rounds, given.turns)
