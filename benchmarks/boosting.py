"""Trees on the bound against LightGBM's lambdarank and rank_xendcg and XGBoost's rank:ndcg.

    python benchmarks/boosting.py RESULTS.jsonl --seeds 0 1 2 3 4 [--methods ...] [--sets ...]     needs RANKOPT_DATA
    python benchmarks/boosting.py RESULTS.jsonl --table

Every learner chooses in the same way, inside the training queries of a split: for 4, 8 and 16 leaves it is grown for
200 rounds on two thirds of the queries and judged after each by nDCG@10 on the other third, three times. The leaves and
the round are taken where the mean of the three curves (each value the mean of nine neighbours) is best, and it learns
once more on all. (Stopping each fold by itself takes the rounds from noise: a third of MSLR's sample is 18 queries.)
Learning rate .1, 20 documents a leaf, .7 of the features a tree, one thread, for all. nDCG@10 of the test part, queries
without relevant documents count 0, ties averaged; the mean over the splits of a set, then over the seeds (of features,
noise and folds). What is done is kept in RESULTS.jsonl, so that it can be done in parts.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from time import process_time

import lightgbm
import numpy as np
import xgboost
from accuracy_sets import Split, folds, sets
from scipy.stats import rankdata

from rankopt import evaluate
from rankopt.data import Queries
from rankopt.rankers import BoostedRanker

LEAVES = (4, 8, 16)
ROUNDS, WIDE = 200, 9
BOTH = {"learning_rate": 0.1, "colsample_bytree": 0.7}


@dataclass(frozen=True)
class Learnt:
    """Scores of the queries asked for, or, where a part is held out, its nDCG@10 after each round."""

    scores: np.ndarray | None = None
    curve: np.ndarray | None = None


def by_lightgbm(objective):
    def learn(train, asked, held, leaves, rounds, seed):
        def data(queries, **of):
            sizes = np.diff(queries.offsets)
            return lightgbm.Dataset(queries.features, queries.relevance, group=sizes, **of)

        options = BOTH | {
            "objective": objective, "metric": "ndcg", "eval_at": [10], "num_leaves": leaves, "min_child_samples": 20,
            "seed": seed, "num_threads": 1, "verbosity": -1, "deterministic": True, "force_col_wise": True,
        }  # fmt: skip
        own = data(train)
        watched = {}
        watch = [] if held is None else [lightgbm.record_evaluation(watched)]
        held = [] if held is None else [data(held, reference=own)]
        grown = lightgbm.train(options, own, rounds, valid_sets=held, callbacks=watch)
        if held:
            return Learnt(curve=np.array(watched["valid_0"]["ndcg@10"]))
        return Learnt(grown.predict(asked.features))

    return learn


def by_xgboost(train, asked, held, leaves, rounds, seed):
    def data(queries):
        qid = np.repeat(np.arange(len(queries)), np.diff(queries.offsets))
        return xgboost.DMatrix(queries.features, queries.relevance, qid=qid)

    options = BOTH | {
        "objective": "rank:ndcg", "eval_metric": "ndcg@10", "max_leaves": leaves, "max_depth": 0, "nthread": 1,
        "grow_policy": "lossguide", "tree_method": "hist", "seed": seed, "verbosity": 0,
    }  # fmt: skip
    watched = {}
    watch = {} if held is None else {"evals": [(data(held), "held")], "evals_result": watched}
    grown = xgboost.train(options, data(train), rounds, verbose_eval=False, **watch)
    if held is None:
        return Learnt(grown.predict(data(asked)).astype(float))
    return Learnt(curve=np.array(watched["held"]["ndcg@10"]))


def by_us(**options):
    def learn(train, asked, held, leaves, rounds, seed):
        given = {"num_leaves": leaves, "n_estimators": rounds, "random_state": seed, "n_jobs": 1, **options}
        if held is not None:
            ranker = BoostedRanker(**given, early_stopping=rounds).fit(train, eval_set=held)
            return Learnt(curve=ranker.evals_result_)
        ranker = BoostedRanker(**given).fit(train)
        return Learnt(ranker.predict(asked.features))

    return learn


METHODS = {
    "BoostedRanker": by_us(),
    "BoostedRanker, one member": by_us(n_members=1),
    "lambdarank": by_lightgbm("lambdarank"),
    "rank_xendcg": by_lightgbm("rank_xendcg"),
    "rank:ndcg": by_xgboost,
}


def chosen_inside(learn, split: Split, seed: int) -> np.ndarray:
    """Scores of the test part of a split by a learner that chose inside the training part."""
    chosen = []
    for leaves in LEAVES:
        found = [learn(part.train, part.test, part.test, leaves, ROUNDS, seed) for part in folds(split.train, 3, seed)]
        along = np.pad(np.mean([one.curve for one in found], axis=0), WIDE // 2, mode="edge")
        smooth = np.convolve(along, np.ones(WIDE) / WIDE, "valid")
        chosen.append((smooth.max(), leaves, int(smooth.argmax()) + 1))
    _, leaves, rounds = max(chosen)
    return learn(split.train, split.test, None, leaves, rounds, seed).scores


def tested(learn, split: Split, seed: int) -> float:
    """nDCG@10 there."""
    return ndcg(split.test, chosen_inside(learn, split, seed))


def ndcg(queries: Queries, scores: np.ndarray) -> float:
    return evaluate(queries, scores, "nDCG@10", convention="burges").mean()


def run(file: Path, methods: list[str], names: list[str] | None, seeds: list[int]) -> None:
    known = {(row["method"], row["set"], row["seed"]) for row in rows_of(file)}
    for name, splits in sets().items():
        for seed in seeds if names is None or name in names else []:
            for method in methods:
                if (method, name, seed) in known:
                    continue
                began = process_time()
                values = [tested(METHODS[method], split, seed) for split in splits]
                row = {"method": method, "set": name, "seed": seed, "values": values}
                with open(file, "a") as opened:
                    opened.write(json.dumps(row | {"seconds": process_time() - began}) + "\n")


def rows_of(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def table(file: Path) -> None:
    """Means over seeds ± their deviation; the mean rank over sets; seconds by those of lambdarank."""
    found, seconds = defaultdict(list), defaultdict(float)
    for row in rows_of(file):
        found[row["method"], row["set"]].append(mean(row["values"]))
        seconds[row["method"]] += row["seconds"]
    methods, names = (list(dict.fromkeys(key[place] for key in found)) for place in (0, 1))
    complete = [name for name in names if all((method, name) in found for method in methods)]
    ranks = np.mean([rankdata([-mean(found[method, name]) for method in methods]) for name in complete], axis=0)
    print("| | " + " | ".join(names) + " | mean rank | seconds by lambdarank's |")
    print("|---" * (len(names) + 3) + "|")
    for method, rank in zip(methods, ranks, strict=True):
        cells = []
        for name in names:
            values = found.get((method, name), [])
            spread = f" ± {stdev(values):.4f}" if len(values) > 1 else ""
            cells.append(f"{mean(values):.4f}{spread} ({len(values)})" if values else "")
        ratio = seconds[method] / seconds["lambdarank"] if seconds["lambdarank"] else np.nan
        print(f"| {method} | {' | '.join(cells)} | {rank:.2f} | {ratio:.1f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--methods", nargs="+", default=[*METHODS], choices=[*METHODS])
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if not given.table:
        run(given.results, given.methods, given.sets, given.seeds)
    table(given.results)
