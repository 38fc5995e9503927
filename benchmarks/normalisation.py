"""What normalising features within the query is worth: every set that is at hand, every method, rankers as they come.

    RANKOPT_DATA=folder python benchmarks/normalisation.py

Splits as in accuracy_sets.py: MSLR's 72 queries in four parts, MQ2008 in three, each tested on in turn; LightGBM's
example and the samples as given. Mean nDCG@10 over the test queries, convention "default"; in brackets p of the paired
randomisation test against the features as they are, not adjusted for the number of comparisons. Nothing is chosen on
test queries. LETOR's features (MQ2008) come normalised by minmax.
"""

import warnings

import numpy as np
from accuracy_sets import sets

from rankopt.data.normalisation import METHODS
from rankopt.measures import compare, evaluate
from rankopt.rankers import LargeMarginRanker, PairwiseRanker, RegressionRanker

RANKERS = {"ridge": RegressionRanker, "RankSVM": PairwiseRanker, "large margin": LargeMarginRanker}
SETS = ("MSLR", "LightGBM", "MQ2008", "Les Miserables", "digits")


def main() -> None:
    warnings.simplefilter("ignore")
    known = sets()
    print(f"| set | ranker | as given | {' | '.join(METHODS)} |")
    print("|---|---|---|" + "---|" * len(METHODS))
    for name in SETS:
        for label, kind in RANKERS.items():
            values = {}
            for method in (None, *METHODS):
                parts = []
                for split in known.get(name, []):
                    ranker = kind(normalize=method).fit(split.train)
                    parts.append(evaluate(split.test, ranker.predict(split.test), "nDCG@10").per_query())
                values[method] = np.concatenate(parts)
            cells = [f"{np.nanmean(values[None]):.4f}"]
            for method in METHODS:
                told = compare(values[method], values[None])
                cells.append(f"{told.mean_a:.4f} ({told.p_randomization:.3f})")
            print(f"| {name} | {label} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
