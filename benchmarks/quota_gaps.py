"""When is a quota whole? One limit on how many of a group stand in the first positions, profits of rank two.

real     loss-augmented problems of training: queries of MovieLens 100k (genres) and of W3C experts (gender; their
         grades in three steps), at the scores of the ridge, brought to the deviation of the gains and to three times
         that, and at noise; every group, prefix and limit. Counted: curves F(r) that are not concave, limits with a
         gap, the largest gap, and the linear program's time beside a curve's
anneal   annealing for a gap with one limit and binary gains (the open case), and with any gains, of small whole
         numbers
figure   the smallest case known, drawn

RANKOPT_DATA=folder python benchmarks/quota_gaps.py real
python benchmarks/quota_gaps.py anneal --steps 20000 --runs 20
python benchmarks/quota_gaps.py figure --to docs/images/quota.svg
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from time import process_time

import numpy as np
from diversity import experts, movielens

from formulations import RankingSet, constrained_ranking, ranking, solve
from formulations.experimental import LimitValueFunction
from formulations.problems.ranking import RankTwoAssignment
from rankopt.measures import parse
from rankopt.rankers import RegressionRanker

DECAYS = {"discount": None, "linear": lambda i: i[::-1], "power .5": lambda i: i**-0.5, "power 1": lambda i: 1 / i}
MOST_QUERIES = 100


def problems(
    name: str, folder: Path, k: int, position_weights: str
) -> list[tuple[RankTwoAssignment, list[np.ndarray]]]:
    """The problems of the first queries at the ridge's scores, at three scales, and the groups of each."""
    train, _ = (movielens if name == "ml-100k" else experts)(folder)[0]
    films = name == "ml-100k"
    measure = parse("nDCG" if films else "nDCG(gain='linear')")
    grades = train.relevance if films else np.floor(2.999 * train.relevance)  # 200 grades a query, in three steps
    gain, scores = measure.gain(grades, train.offsets), RegressionRanker().fit(train).predict(train)
    labels = train.attributes["genre" if films else "protected"]
    random, found = np.random.default_rng(0), []
    i = np.arange(1.0, k + 1)
    discount = 1 / np.log2(i + 1)
    for low, high in zip(train.offsets[:-1][:MOST_QUERIES], train.offsets[1:], strict=False):
        own, n = labels[low:high], high - low
        if n < k or np.ptp(gain[low:high]) == 0:
            continue
        kinds, count = np.unique([str(label) for label in own], return_counts=True)
        largest = kinds[np.argsort(-count)[: 3 if films else 1]]
        chosen = [np.array([str(label) == kind for label in own]) for kind in largest]
        spread = scores[low:high] - scores[low:high].mean()
        made = DECAYS[position_weights]
        unit = gain[low:high].std()  # as training finds them: scores as large as gains, or larger
        spread *= unit / max(spread.std(), 1e-12)
        for heights in (spread, 3.0 * spread, unit * random.normal(size=n)):
            weights = discount if made is None else made(i)
            found.append((ranking(heights, gain[low:high], discount=discount, position_weights=weights), chosen))
    return found


def real() -> None:
    root = Path(os.environ["RANKOPT_DATA"])
    print("| data | k | decay | curves | not concave | limits | with a gap | largest gap | program / curve |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, folder, k in (("ml-100k", "ml-100k", 5), ("W3C", "deltr-w3c-experts", 8)):
        for decay in DECAYS:
            curves = bent = limits = gaps = 0
            most, spent, other = 0.0, 0.0, 0.0
            for problem, groups in problems(name, root / folder, k, decay):
                for group in groups:
                    for prefix in range(2, k):
                        began = process_time()
                        curve = LimitValueFunction.from_problem(problem, group, prefix)
                        spent += process_time() - began
                        curves, bent = curves + 1, bent + (not curve.concave)
                        for limit in range(1, prefix):
                            for low, high in ((0, limit), (limit, prefix)):
                                if not np.isfinite(curve.whole(low, high)):
                                    continue
                                gap = curve.gap(low, high)
                                limits, gaps = limits + 1, gaps + (gap > 0.0)
                                most = max(most, gap / max(1e-9, abs(curve.whole(low, high))))
                        if curves % 200 == 1:  # beside the linear program, here and there
                            one = RankingSet(problem.documents, k).at_most(1, documents=group, positions=range(prefix))
                            program = constrained_ranking(problem, one).linear_program()
                            began = process_time()
                            relaxed = solve(program, "highs").value
                            other += 200 * (process_time() - began)
                            assert abs(relaxed - curve.relaxed(0, 1)) < 1e-6 * max(1.0, abs(relaxed))
            told = f"{most:.2%}" if gaps else "-"
            cells = [name, k, decay, curves, bent, limits, gaps, told, f"{other / spent:.1f}"]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


def drawn(random: np.random.Generator, binary: bool) -> tuple[np.ndarray, ...]:
    """Scores, gains, decay and discount as steps down, and the group: whole numbers; n of 4 to 8, k of 3 to 5."""
    n = int(random.integers(4, 9))
    k = int(random.integers(3, min(n, 6)))
    gain = random.integers(0, 2 if binary else 4, n)
    return random.integers(0, 10, n), gain, random.integers(0, 4, k), random.integers(0, 4, k), random.random(n) < 0.5


def moved(random: np.random.Generator, given: tuple[np.ndarray, ...], binary: bool) -> tuple[np.ndarray, ...]:
    """One number of one part changed."""
    parts = tuple(part.copy() for part in given)
    which = int(random.integers(0, 5))
    place = int(random.integers(0, parts[which].size))
    largest = (10, 2 if binary else 4, 5, 5, 2)[which]
    parts[which][place] = random.integers(0, largest)
    return parts


def excess(given: tuple[np.ndarray, ...]) -> float:
    """The largest F(r - 1) + F(r + 1) - 2 F(r): above 0 where a limit has a gap."""
    scores, gain, decay, discount, group = given
    c, a = (np.cumsum(steps[::-1])[::-1].astype(float) for steps in (decay, discount))
    problem = ranking(scores, gain, discount=a, position_weights=c)
    worst = -np.inf
    for prefix in range(2, c.size):
        best = LimitValueFunction.from_problem(problem, group, prefix).best
        best = best[np.isfinite(best)]
        if best.size > 2:
            worst = max(worst, float(np.diff(best, 2).max()))
    return worst


def anneal(steps: int, runs: int, first: int) -> None:
    print("| gains | runs | steps a run | runs with a gap | largest second difference |\n|---|---|---|---|---|")
    for binary in (False, True):
        hits, most = 0, -np.inf
        for seed in range(first, first + runs):
            random = np.random.default_rng(seed)
            now = drawn(random, binary)
            worth = best = excess(now)
            for step in range(steps):
                other = moved(random, now, binary)
                told = excess(other)
                heat = 2.0 * (1.0 - step / steps) + 1e-9
                if told >= worth or random.random() < np.exp((told - worth) / heat):
                    now, worth = other, told
                best = max(best, worth)
                if best > 0:
                    break
            hits, most = hits + (best > 0), max(most, best)
        print(f"| {'binary' if binary else '0 to 3'} | {runs} | {steps} | {hits} | {most:g} |", flush=True)


def figure(file: str) -> None:
    """Profits and the optimum of the linear program, group A beside group B; F and its concave envelope."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "quota"
    from matplotlib import pyplot

    problem = ranking([3, 0, 1, 2], [2, 0, 1, 3], discount=[5, 2, 2], position_weights=[4, 4, 3])
    quota = RankingSet(4, 3).at_most(1, documents=[0, 1], positions=range(2))
    stated = constrained_ranking(problem, quota)
    half = solve(stated.linear_program(), "highs").x.reshape(3, 4)
    curve = LimitValueFunction.from_problem(problem, [0, 1], 2)
    drawing, (left, right) = pyplot.subplots(1, 2, figsize=(8.4, 3.0), width_ratios=[1.25, 1])
    for i in range(3):
        for j in range(4):
            tint = "#c9d8ea" if j < 2 else "#f0dcc0"
            left.add_patch(pyplot.Rectangle((j, i), 1, 1, facecolor=tint, edgecolor="white", linewidth=2))
            left.text(j + 0.5, i + 0.36, f"{stated.profit[i, j]:g}", ha="center", va="center", color="#333333")
            if half[i, j] > 0.1:
                left.text(j + 0.5, i + 0.72, "x = ½", ha="center", va="center", weight="bold", color="#8c1c13")
    left.plot([0, 2, 2, 0, 0], [0, 0, 2, 2, 0], color="#8c1c13", linewidth=2.5, clip_on=False)
    left.set(xlim=(-0.05, 4.05), ylim=(3.05, -0.05), xticks=np.arange(4) + 0.5, yticks=np.arange(3) + 0.5)
    left.set_xticklabels(["A: 0", "A: 1", "B: 2", "B: 3"])
    left.set_yticklabels(["first", "second", "third"])
    left.set_title("profits; at most one in the frame", fontsize=10)
    left.tick_params(length=0)
    for side in left.spines.values():
        side.set_visible(False)
    r = np.arange(3)
    right.plot(r, curve.envelope, "--", color="#8c1c13", label="linear program")
    right.plot(r, curve.best, "o", color="#1f3b63", label="best ranking, F(r)")
    right.set(xticks=r, xlabel="r, how many of A in the first two")
    right.legend(frameon=False, fontsize=9)
    for name in ("top", "right"):
        right.spines[name].set_visible(False)
    drawing.tight_layout()
    drawing.savefig(file, metadata={"Date": None} if file.endswith("svg") else None, facecolor="white")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=("real", "anneal", "figure"))
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--to", default="quota.svg", help="the file of the figure")
    given = parser.parse_args()
    if given.table == "real":
        real()
    elif given.table == "figure":
        figure(given.to)
    else:
        anneal(given.steps, given.runs, given.first)


if __name__ == "__main__":
    main()
