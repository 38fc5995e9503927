"""How much a factorisation leaves open: the gaps of both blocks, and of the whole, for factors of every width.

    RANKOPT_DATA=folder python benchmarks/global_gap.py

ml-100k, 50 training ratings of each user who has 60 (`weak_split`, seed 0), λ = 2, offsets 10, popularity .1, decay
(i + 1)^-.25, tolerance 1e-3 of both blocks. J; the gaps in percent of J; θ, by which the dual state was shrunk;
processor seconds of the fit, the bound within; and of `verify`, with the planes of 20 users.
"""

import argparse
import os
import warnings
from pathlib import Path
from time import process_time

from rankopt.data import read_ratings
from rankopt.evaluation import weak_split
from rankopt.rankers import CofiRanker

LOSSES = ("nDCG@10", "ordinal", "preferences", "regression")

WIDTHS = (10, 40, 100)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--losses", nargs="+", default=LOSSES)
    parser.add_argument("--widths", nargs="+", default=[*map(str, WIDTHS), "free"])
    parser.add_argument("--time-limit", type=float, default=600.0)
    options = parser.parse_args()
    ratings = read_ratings(Path(os.environ["RANKOPT_DATA"]) / "ml-100k" / "u.data.gz")
    train = weak_split(ratings, 50, seed=0).train
    print("| loss | factors | J | users' block | items' block | the whole | ‖Ψ‖₂ <= | fit, s | verified | verify, s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for loss in options.losses:
        for width in options.widths:
            warnings.simplefilter("ignore")
            began = process_time()
            ranker = CofiRanker(
                loss, factors=width if width == "free" else int(width), lam=2.0, time_limit=options.time_limit
            ).fit(train)
            trained = process_time()
            said, found = ranker.certificate_, ranker.verify(train, planes=20)
            verified = process_time()
            told = f"{said.primal:.6g} | {100 * said.users_gap:.3f}% | {100 * said.items_gap:.3f}% "
            told += f"| {100 * said.relative_gap:.2f}% | {said.singular:.6g} ({said.proof}) | {trained - began:.0f} "
            shown = ranker.item_factors_.shape[1]
            name = f"free: {shown}" if width == "free" else str(shown)
            yes = "yes" if found else "; ".join(found.wrong)
            print(f"| {loss} | {name} | {told} | {yes} | {verified - trained:.0f} |", flush=True)


if __name__ == "__main__":
    main()
