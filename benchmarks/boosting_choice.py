"""How noise, scale, damping, decay and bound of `boosting_objective` were chosen.

    python benchmarks/boosting_choice.py RESULTS.jsonl VARIANT ... [--seeds 0 1] [--members 3]       needs RANKOPT_DATA
    python benchmarks/boosting_choice.py RESULTS.jsonl --table

No nesting: for each split of a set so many trees of 8 leaves are grown on the training part (learning rate .1, 20
documents a leaf, .7 of the features a tree), and nDCG@10 of the test part is taken after every tenth round, of one
member (the mean over members) and of their averaged scores. The table shows the best round of the mean curve, which
flatters all variants alike. The sets are development sets: nothing here says how good a ranker is on new data.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

import lightgbm
import numpy as np
from accuracy_sets import Split, sets

from rankopt import evaluate
from rankopt.boosting import boosting_objective

ROUNDS, STEP = 150, 10
VARIANTS = {
    "chosen": {},
    "noise 0": {"noise": 0.0},
    "noise .3": {"noise": 0.3},
    "noise .6": {"noise": 0.6},
    "noise 2": {"noise": 2.0},
    "scale .5": {"scale": 0.5},
    "scale 2": {"scale": 2.0},
    "damping 1": {"damping": 1.0},
    "tie-aware": {"bound": "tie-aware"},
    "decay log": {"position_weights": "log"},
    "decay power(1)": {"position_weights": "power(1)"},
    "decay discount": {"position_weights": "discount"},
    "lambdarank": None,
    "rank_xendcg": None,
}


def curves(variant: str, split: Split, seed: int, members: int) -> tuple[np.ndarray, np.ndarray]:
    """nDCG@10 of the test part every `STEP` rounds: of one member, and of the averaged scores."""
    train, test = split.train, split.test
    data = lightgbm.Dataset(
        train.features, train.relevance, group=np.diff(train.offsets), free_raw_data=False, params={"verbosity": -1}
    )
    alone, total = [], 0.0
    for member in range(members):
        drawn = seed * members + member
        options = VARIANTS[variant]
        params = {
            "objective": variant if options is None else boosting_objective("nDCG@10", seed=drawn, **options),
            "learning_rate": 0.1, "num_leaves": 8, "min_child_samples": 20, "colsample_bytree": 0.7, "seed": drawn,
            "num_threads": 1, "verbosity": -1, "deterministic": True, "force_col_wise": True,
        }  # fmt: skip
        grown = lightgbm.train(params, data, ROUNDS)
        steps = [
            grown.predict(test.features, start_iteration=start, num_iteration=STEP) for start in range(0, ROUNDS, STEP)
        ]
        along = np.cumsum(steps, axis=0)
        alone.append([ndcg(test, scores) for scores in along])
        total = total + along
    return np.mean(alone, axis=0), np.array([ndcg(test, scores) for scores in total])


def ndcg(queries, scores: np.ndarray) -> float:
    return evaluate(queries, scores, "nDCG@10", convention="burges").mean()


def table(file: Path) -> None:
    found = defaultdict(list)
    for line in file.read_text().splitlines():
        row = json.loads(line)
        for kind in ("one", "averaged"):
            found[row["variant"], kind, row["set"]].append(row[kind])
    names = list(dict.fromkeys(name for _, _, name in found))
    print("| | | " + " | ".join(names) + " | mean |")
    print("|---" * (len(names) + 3) + "|")
    for variant, kind in dict.fromkeys((variant, kind) for variant, kind, _ in found):
        best = [np.mean(found[variant, kind, name], axis=0).max() for name in names if (variant, kind, name) in found]
        print(f"| {variant} | {kind} | " + " | ".join(f"{one:.4f}" for one in best) + f" | {np.mean(best):.4f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("variants", nargs="*", metavar="VARIANT")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    for variant in given.backends:
        for seed in given.seeds:
            for name, splits in sets().items():
                both = np.mean([curves(variant, split, seed, given.members) for split in splits], axis=0)
                row = {"variant": variant, "set": name, "seed": seed, "one": [*both[0]], "averaged": [*both[1]]}
                with open(given.results, "a") as opened:
                    opened.write(json.dumps(row) + "\n")
    table(given.results)


if __name__ == "__main__":
    main()
