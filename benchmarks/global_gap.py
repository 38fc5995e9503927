"""How much a factorisation leaves open: the gaps of both blocks, and of the whole, for factors of every width.

    RANKOPT_DATA=folder python benchmarks/global_gap.py
    RANKOPT_DATA=folder python benchmarks/global_gap.py --widths 40 --tol 1e-5

ml-100k, 50 training ratings of each user who has 60 (`weak_split`, seed 0); nDCG@10 at λ = 2, and every loss at .6
λ_max; offsets 10, popularity .1, decay (i + 1)^-.25, tolerance 1e-3 of both blocks, or --tol. J; the gaps in percent of
J; a proven bound of ‖Ψ‖₂ in units of λ; processor seconds of the fit, the bound within; and of `verify`, with the
planes of 20 users.
"""

import argparse
import os
import warnings
from pathlib import Path
from time import process_time

from rankopt.rankers import CofiRanker
from rankopt.ratings import read_ratings, weak_split

RUNS = {
    "nDCG@10, λ = 2": ("nDCG@10", {"lam": 2.0}),
    **{f"{loss}, ρ = .6": (loss, {"strength": 0.6}) for loss in ("nDCG@10", "ordinal", "preferences", "regression")},
}

WIDTHS = (10, 40, 100)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", nargs="+", choices=[*RUNS], default=[*RUNS])
    parser.add_argument("--widths", nargs="+", default=[*map(str, WIDTHS), "free"])
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--time-limit", type=float, default=600.0)
    options = parser.parse_args()
    ratings = read_ratings(Path(os.environ["RANKOPT_DATA"]) / "ml-100k" / "u.data.gz")
    train = weak_split(ratings, 50, seed=0).train
    print("| | factors | J | users' block | items' block | the whole | ‖Ψ‖₂ <= | fit, s | verified | verify, s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for run in options.runs:
        loss, settings = RUNS[run]
        warnings.simplefilter("ignore")
        unit = CofiRanker(loss, factors=1, reg=1.0, max_iter=1, compute_bound=False, bias_reg=1.0, item_prior="mean")
        settings = {**settings, "bias_reg": 10.0 / unit.fit(train).bias_reg_, "prior": "mean"}  # μ = 10
        for width in options.widths:
            began = process_time()
            factors = width if width == "free" else int(width)
            limits = {"tol": options.tol, "time_limit": options.time_limit, "max_iter": 500}
            ranker = CofiRanker(loss, factors=factors, **limits, **settings).fit(train)
            trained = process_time()
            said, found = ranker.certificate_, ranker.verify(train, planes=20)
            verified = process_time()
            told = f"{said.primal:.6g} | {100 * said.users_gap:.3f}% | {100 * said.items_gap:.3f}% "
            told += f"| {100 * said.relative_gap:.2f}% | {said.singular:.4f} ({said.proof}) | {trained - began:.1f} "
            shown = ranker.item_factors_.shape[1]
            name = f"free: {shown}" if width == "free" else str(shown)
            yes = "yes" if found else "; ".join(found.wrong)
            print(f"| {run} | {name} | {told} | {yes} | {verified - trained:.1f} |", flush=True)


if __name__ == "__main__":
    main()
