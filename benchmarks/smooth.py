"""SmoothGrad: training and test measure beside ridge and large margin, σ and λ on validation, what a step costs.

    RANKOPT_DATA=folder python benchmarks/smooth.py RESULTS.jsonl [accuracy] [validation] [step]
    python benchmarks/smooth.py RESULTS.jsonl --table

accuracy    Splits of `accuracy_sets.py`, nDCG@10, gain 2^y - 1, queries without relevant documents count 0, ties
            averaged; p is that of the paired randomisation test over the test queries against LargeMarginRanker().
            Seconds are of one process (processor time) over all splits, the learners in turn, the least of `--rounds`
            rounds, as a ratio to LargeMarginRanker() in the same run.
validation  On the validation queries of each split, what the w at the end of each σ comes to: MQ2008 learns from one
            part and is judged on another (six pairs), OHSUMED has the five validation parts of its folds. No test query
            is seen. λ is given in units of that of lam="scale".
step        Nanoseconds a document of one value and gradient, on generated data of MSLR's shape (120 documents a query,
            136 features): the smoothed measure by compiled code and by NumPy, beside the two products with the
            features that any linear ranker needs. One thread, the least of several calls.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from pathlib import Path
from time import process_time

import numpy as np
from accuracy_sets import sets

from formulations.parallel import at_most
from rankopt import evaluate
from rankopt.data import Queries, read_svmlight
from rankopt.evaluation.comparison import compare
from rankopt.losses.smooth import SmoothedRegret
from rankopt.rankers import LargeMarginRanker, RegressionRanker, SmoothRanker
from rankopt.scorers.linear import Linear, linear_scores, parts_of

NAMES = ("MQ2008", "OHSUMED")
WHOLE = (4.0, 2.0, 1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125)
SCHEDULES = {
    "SmoothRanker()": {},
    "SmoothRanker(max_iter=20)": {"max_iter": 20},
    "SmoothRanker(max_iter=80)": {"max_iter": 80},
    "SmoothRanker(bandwidths=[4, 2, 1, 1/2, 1/4])": {"bandwidths": WHOLE[:5]},
    "SmoothRanker(bandwidths=[1/2])": {"bandwidths": WHOLE[3:4]},
    'SmoothRanker(method="CG")': {"method": "CG"},
}
FACTORS = (10.0, 3.0, 1.0, 0.3, 0.1, 0.01)

MARGIN, SHORT, LONG = "LargeMarginRanker()", "SmoothRanker()", "bandwidths=4 ... 1/32"
LEARNERS = {
    "ridge, the start": RegressionRanker,
    MARGIN: LargeMarginRanker,
    SHORT: SmoothRanker,
    LONG: lambda: SmoothRanker(bandwidths=WHOLE),
    f"{LONG}, lam=0.01 scale": None,
    f'{LONG}, lam=0.01 scale, method="CG"': None,
}
"""The last two learn with a hundredth of the λ of lam="scale", which is a number of each split."""


def faint(queries: Queries, **options) -> SmoothRanker:
    """With a hundredth of the natural λ."""
    ranker = SmoothRanker(bandwidths=WHOLE, **options)
    return ranker.set_params(lam=0.01 * ranker.objective(queries).lam)


def learned(name: str, queries: Queries):
    if LEARNERS[name] is not None:
        return LEARNERS[name]().fit(queries)
    return faint(queries, **({"method": "CG"} if "CG" in name else {})).fit(queries)


def values(queries: Queries, w: np.ndarray) -> np.ndarray:
    return evaluate(queries, linear_scores(queries.features, w), "nDCG@10", convention="burges")["nDCG@10"]


def accuracy(rounds: int) -> list[dict]:
    rows, found = [], sets()
    for name in NAMES:
        splits, seconds = found[name], {learner: [] for learner in LEARNERS}
        for round in range(rounds + 1):  # the first compiles
            for learner in LEARNERS:
                began = process_time()
                models = [learned(learner, split.train) for split in splits]
                if round:
                    seconds[learner].append(process_time() - began)
                if round == 1:
                    pairs = list(zip(models, splits, strict=True))
                    rows.append(
                        {
                            "what": "accuracy",
                            "set": name,
                            "learner": learner,
                            "train": float(np.mean([values(split.train, m.coef_).mean() for m, split in pairs])),
                            "test": [v for m, split in pairs for v in values(split.test, m.coef_).tolist()],
                        }
                    )
        least = {learner: min(times) for learner, times in seconds.items()}
        rows.append({"what": "seconds", "set": name, **{k: least[k] / least[MARGIN] for k in least}})
    return rows


def pairs_of(name: str) -> list[tuple[Queries, Queries]]:
    """What is learned from and what is judged on; no test query is in any of them."""
    folder = Path(os.environ["RANKOPT_DATA"])
    if name == "MQ2008":
        parts = [read_svmlight(folder / "letor4-mq2008" / f"S{i}.txt.gz") for i in (1, 2, 3)]
        return [(one, other) for one in parts for other in parts if one is not other]
    folds = [folder / "letor3-ohsumed" / "QueryLevelNorm" / f"Fold{fold}" for fold in range(1, 6)]
    return [(read_svmlight(fold / "train.txt.gz"), read_svmlight(fold / "vali.txt.gz")) for fold in folds]


class Passed:
    """A callback: the last w of each σ."""

    def __init__(self):
        self.ends = {}

    def __call__(self, step, at):
        self.ends[step.sigma] = at.w


def validation() -> list[dict]:
    rows = []
    for name in NAMES:
        pairs = pairs_of(name)
        for learner in ("ridge, the start", MARGIN):
            judged = [values(vali, learned(learner, train).coef_).mean() for train, vali in pairs]
            rows.append({"what": "validation", "set": name, "learner": learner, "judged": float(np.mean(judged))})
        for factor in FACTORS:
            ends = []
            for train, vali in pairs:
                passed = Passed()
                ranker = SmoothRanker(bandwidths=WHOLE, callbacks=[passed])
                ranker.set_params(lam=factor * ranker.objective(train).lam).fit(train)
                last, line = ranker.w0_, []
                for sigma in WHOLE:
                    last = passed.ends.get(sigma, last)
                    line.append((values(train, last).mean(), values(vali, last).mean()))
                ends.append(line)
            mean = np.mean(ends, axis=0)
            rows.append(
                {
                    "what": "validation",
                    "set": name,
                    "factor": factor,
                    "train": mean[:, 0].tolist(),
                    "judged": mean[:, 1].tolist(),
                }
            )
        for said, options in SCHEDULES.items():
            judged = [values(vali, SmoothRanker(**options).fit(train).coef_).mean() for train, vali in pairs]
            rows.append({"what": "validation", "set": name, "learner": said, "judged": float(np.mean(judged))})
    return rows


def step(calls: int = 9) -> list[dict]:
    rng = np.random.default_rng(0)
    queries, documents, features = 400, 120, 136
    offsets = np.arange(queries + 1) * documents
    relevance, scores = rng.integers(0, 5, offsets[-1]).astype(float), rng.normal(size=offsets[-1])
    linear, w = Linear(rng.normal(size=(offsets[-1], features)), np.arange(offsets[-1])), rng.normal(size=features)

    def least(call) -> float:
        call()
        times = []
        for _ in range(calls):
            began = process_time()
            call()
            times.append(process_time() - began)
        return 1e9 * min(times) / offsets[-1]

    rows = []
    with at_most(1):
        bare = least(lambda: linear.scores(w, 0, scores.size))
        bare += least(lambda: linear.pull((scores,), parts_of(offsets)))
        table = rng.random(10 * scores.size)
        rows.append({"what": "step", "part": "two products with 136 features", "nanoseconds": bare})
        rows.append({"what": "step", "part": "np.exp of 10 numbers", "nanoseconds": least(lambda: np.exp(-table))})
        for measure in ("nDCG@10", "nDCG@5"):
            for small in (False, True):
                loss = SmoothedRegret(relevance, offsets, measure, small=small)
                for sigma in (4.0, 0.25, 0.03125):
                    rows.append(
                        {
                            "what": "step",
                            "part": f"{measure}, σ = {sigma:g}, {'NumPy' if small else 'compiled'}",
                            "nanoseconds": least(lambda loss=loss, sigma=sigma: loss.gradient(scores, sigma)),
                        }
                    )
    return rows


def table(file: Path) -> None:
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    of = {(row["set"], row["learner"]): row for row in rows if row["what"] == "accuracy"}
    seconds = {row["set"]: row for row in rows if row["what"] == "seconds"}
    print("| | " + " | ".join(f"{name}: training | test | p | time" for name in NAMES) + " |")
    print("|---" * (4 * len(NAMES) + 1) + "|")
    for learner in LEARNERS:
        cells = []
        for name in NAMES:
            row, base = of[name, learner], np.array(of[name, MARGIN]["test"])
            own = np.array(row["test"])
            p = "" if learner == MARGIN else f"{compare(own, base).p_randomization:.2f}"
            cells.append(f"{row['train']:.4f} | {own.mean():.4f} | {p} | {seconds[name][learner]:.2f}")
        print(f"| {learner} | {' | '.join(cells)} |")
    judged = [row for row in rows if row["what"] == "validation"]
    for name in NAMES:
        print(f"\n| {name}, validation (training) | " + " | ".join(f"σ = {sigma:g}" for sigma in WHOLE) + " |")
        print("|---" * (len(WHOLE) + 1) + "|")
        for row in judged:
            if row["set"] == name and "factor" in row:
                cells = [f"{v:.4f} ({t:.4f})" for v, t in zip(row["judged"], row["train"], strict=True)]
                print(f"| λ = {row['factor']:g} scale | {' | '.join(cells)} |")
        print()
        own = [row for row in judged if row["set"] == name and "learner" in row]
        print("; ".join(f"`{row['learner']}` {row['judged']:.4f}" for row in own))
    print("\n| one step, a document | ns |\n|---|---|")
    for row in rows:
        if row["what"] == "step":
            print(f"| {row['part']} | {row['nanoseconds']:.0f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("parts", nargs="*", default=["accuracy", "validation", "step"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if not given.table:
        known = {"accuracy": lambda: accuracy(given.rounds), "validation": validation, "step": step}
        for part in given.parts:
            with open(given.results, "a") as opened:
                opened.writelines(json.dumps(row) + "\n" for row in known[part]())
    else:
        table(given.results)
