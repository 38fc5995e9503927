"""Policies under limits of exposure: learned, by a linear program after learning, and the proven optimum."""

from __future__ import annotations

import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cases import Run, case, table
from benchmarks.data import experts, movielens, splits, students
from formulations import DemographicParity
from formulations.parallel import at_most
from rankopt.data import Queries
from rankopt.errors import ExposureWarning
from rankopt.losses import Deltr
from rankopt.policies import ExposureRanker, PlackettLuceRanker, evaluate_exposure
from rankopt.rankers import LossRanker, RegressionRanker

COMMON = ("Drama", "Comedy", "Action", "Thriller", "Romance", "Adventure")
FOUR_FIFTHS = DemographicParity("protected", ratio_bound=0.8, protected=True)
GAMMA = 1e4  # weight of the disparity in DELTR
TOLERANCE = 0.05  # of the mean exposure: an excess that counts as kept


def film_fold(fold: int) -> list[Queries]:
    """Every third user; films of other than the common genres are in no group."""
    return [_common_genres(part.select(slice(None, None, 3))) for (both,) in [movielens((fold,))] for part in both]


def _common_genres(queries: Queries) -> Queries:
    genre = [name if name in COMMON else None for name in queries.attributes["genre"]]
    return queries.replace(attributes={"genre": np.array(genre, dtype=object)})


@dataclass(frozen=True)
class Setting:
    """A measure, limits, whether they are amortized, and the splits of a data set."""

    measure: str
    limits: DemographicParity
    amortized: bool
    splits: Callable[[], Iterable[tuple[Queries, Queries]]]


DATA = {
    "Les Miserables": Setting(
        "DCG@10", DemographicParity("community", difference_bound=0.03), True,
        lambda: [(one.train, one.test) for one in splits("Les Miserables")],
    ),
    "W3C experts": Setting("DCG(gain='linear')@10", FOUR_FIFTHS, False, experts),
    "students": Setting("DCG(gain='linear')@20", FOUR_FIFTHS, False, students),
    "MovieLens": Setting(
        "DCG@10", DemographicParity("genre", difference_bound=0.02), True,
        lambda: [film_fold(1)],
    ),
}  # fmt: skip


def evaluated(one: Setting, train: Queries, test: Queries, steps: int) -> dict[str, list[float]]:
    """Of each policy the expected measure, its bound, disparity, worst excess, share of limits kept, and gap."""
    options: dict[str, Any] = {"max_iter": steps, "tol": 100.0}  # without warnings
    with at_most(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ExposureWarning)
        ridge = RegressionRanker(target="gain", measure=one.measure).fit(train)
        limited = PlackettLuceRanker(one.measure, exposure=one.limits, amortized=one.amortized, **options)
        policies: dict[str, Any] = {
            "ridge": ridge,
            "Plackett-Luce": PlackettLuceRanker(one.measure, **options).fit(train),
            "Plackett-Luce, limits": limited.fit(train),
            "ridge, linear program": ExposureRanker(ridge, one.limits, measure=one.measure, amortized=one.amortized),
        }
        if one.limits is FOUR_FIFTHS:
            policies["DELTR"] = LossRanker(Deltr("protected", gamma=GAMMA), one.measure).fit(train)
        found = {
            name: evaluate_exposure(
                policy, test, one.limits, measure=one.measure, amortized=one.amortized, tolerance=TOLERANCE
            )
            for name, policy in policies.items()
        }
    return {
        name: [made.utility.mean(), made.bound, made.mean_disparity, made.excess.max(), made.kept.mean(), made.mean_gap]
        for name, made in found.items()
    }


@case()
def held_out(run: Run) -> None:
    """Expected DCG, disparity, excess of limits and gap to the optimum on test queries, of policies."""
    for name in run.chosen([*DATA]):
        if name != "Les Miserables" and (run.quick or "RANKOPT_DATA" not in os.environ):
            continue
        one, found = DATA[name], defaultdict[str, list[list[float]]](list)
        for number, fold in enumerate(one.splits()):
            values = run.results.get(partial(evaluated, one, *fold, run.size(300, 3)), "exposure", name, number)
            for policy, row in values.items():
                found[policy].append(row)
        line = table(f"{name}, {one.measure}", "expected", "disparity", "worst excess", "limits kept", "gap where kept")
        for policy, rows in found.items():
            utility, bound, disparity, _, kept, _ = np.mean(rows, axis=0)
            gaps = [row[5] for row in rows if row[5] == row[5]]
            gap = f"{np.mean(gaps):.3f}" if gaps else ""
            line(policy, f"{utility:.3f}", f"{disparity:.3f}", f"{max(row[3] for row in rows):.3f}", f"{kept:.0%}", gap)
        line("proven optimum", f"{bound:.3f}", "", "", "", "")
