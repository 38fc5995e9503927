"""Trees on the bound against LightGBM's lambdarank and rank_xendcg and XGBoost's rank:ndcg.

    python benchmarks/boosting.py RESULTS.jsonl --seeds 0 1 2 3 4 [--methods ...] [--sets ...]     needs RANKOPT_DATA
    python benchmarks/boosting.py RESULTS.jsonl --table

Every learner chooses in the same way, inside the training queries of a split: for 4, 8 and 16 leaves it is grown on two
thirds of the queries and stopped on the other third (no better nDCG@10 for 30 rounds, 200 at most), three times. The
leaves with the best mean are taken, with the median of the three numbers of rounds, and it learns once more on all.
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
from statistics import mean, median, stdev
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
ROUNDS, PATIENCE = 200, 30
BOTH = {"learning_rate": 0.1, "colsample_bytree": 0.7}


@dataclass(frozen=True)
class Learnt:
    """Scores of the queries asked for, and, where a part was held out, its nDCG@10 and the best number of rounds."""

    scores: np.ndarray
    judged: float = 0.0
    rounds: int = 0


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
        stop = [] if held is None else [lightgbm.early_stopping(PATIENCE, verbose=False)]
        held = [] if held is None else [data(held, reference=own)]
        grown = lightgbm.train(options, own, rounds, valid_sets=held, callbacks=stop)
        scores = grown.predict(asked.features)
        if not held:
            return Learnt(scores)
        return Learnt(scores, grown.best_score["valid_0"]["ndcg@10"], grown.best_iteration)

    return learn


def by_xgboost(train, asked, held, leaves, rounds, seed):
    def data(queries):
        qid = np.repeat(np.arange(len(queries)), np.diff(queries.offsets))
        return xgboost.DMatrix(queries.features, queries.relevance, qid=qid)

    options = BOTH | {
        "objective": "rank:ndcg", "eval_metric": "ndcg@10", "max_leaves": leaves, "max_depth": 0, "nthread": 1,
        "grow_policy": "lossguide", "tree_method": "hist", "seed": seed, "verbosity": 0,
    }  # fmt: skip
    stop = {} if held is None else {"evals": [(data(held), "held")], "early_stopping_rounds": PATIENCE}
    grown = xgboost.train(options, data(train), rounds, verbose_eval=False, **stop)
    if held is None:
        return Learnt(grown.predict(data(asked)).astype(float))
    return Learnt(np.zeros(asked.n_documents), grown.best_score, grown.best_iteration + 1)


def by_us(**options):
    def learn(train, asked, held, leaves, rounds, seed):
        given = {"num_leaves": leaves, "n_estimators": rounds, "random_state": seed, "n_jobs": 1, **options}
        if held is not None:
            one = BoostedRanker(**given, early_stopping=PATIENCE).fit(train, eval_set=held)
            return Learnt(np.zeros(asked.n_documents), one.eval_score_, one.n_rounds_)
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
        chosen.append((mean(one.judged for one in found), leaves, int(median(one.rounds for one in found))))
    _, leaves, rounds = max(chosen)
    return learn(split.train, split.test, None, leaves, max(rounds, 1), seed).scores


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
