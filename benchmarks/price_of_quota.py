"""What a quota costs on real lists: the best list's value against the limit, mean and spread over queries.

RANKOPT_DATA=folder python benchmarks/price_of_quota.py

MovieLens 100k, fold 1: a query is a user of the test part, a list 5 films, at most l of each genre (the rarest genre of
each film), l = 1 to 5. TREC W3C experts, fold 1, both parts: lists of 10 experts, at least l of the protected group
(gender), l = 0 to 10, and the same of the first 5 alone. Scores are those of a ridge regression on the training part;
a list is worth Σ s_π(i) / log2(i + 1), and queries with too few documents for a full list are left out.
"""

import os
from pathlib import Path
from time import process_time

import numpy as np
from diversity import experts, movielens

from formulations import InfeasibleError, constrained_ranking, sensitivity
from formulations.solving.sensitivity import limit_of
from rankopt.constraints import Admissible
from rankopt.rankers import RegressionRanker


def problems(train, asked, admissible, name, loosest):
    """The problem of each query that has k documents, at the loosest limit."""
    ranker = RegressionRanker().fit(train)
    found = []
    for queries in asked:
        scores = ranker.predict(queries)
        for start, stop in zip(queries.offsets[:-1], queries.offsets[1:], strict=True):
            own = {at: queries.attributes[at][start:stop] for at in admissible.attributes}
            if stop - start < admissible.k:
                continue
            try:
                one = limit_of(admissible.for_query(own, int(stop - start)), name).at(loosest)
                weights = 1.0 / np.log2(np.arange(2.0, admissible.k + 2.0))
                found.append(constrained_ranking(np.outer(weights, scores[start:stop]), one))
            except InfeasibleError:
                continue
    return found


def told(title, asked, name, limits):
    began = process_time()
    curves = sensitivity(asked, name, limits)
    each = (process_time() - began) / len(asked) / len(curves.limits)
    print(f"{title}: {len(asked)} queries, {curves.shared} with a list at every limit, {1e3 * each:.1f} ms a point")
    print(f"{curves}\n", flush=True)


def main():
    folder = Path(os.environ["RANKOPT_DATA"])
    train, test = movielens(folder / "ml-100k")[0]
    genre = Admissible(5).at_most(5, by="genre", name="genre")
    told("ml-100k, genre", problems(train, [test], genre, "genre", 5.0), "genre", range(1, 6))
    train, test = experts(folder / "deltr-w3c-experts")[0]
    for title, positions in (("of 10", range(10)), ("of the first 5", range(5))):
        gender = Admissible(10).at_least(0, documents="protected", positions=positions, name="protected")
        asked = problems(train, [train, test], gender, "protected", 0.0)
        told(f"W3C, protected {title}", asked, "protected", range(len(positions) + 1))


if __name__ == "__main__":
    main()
