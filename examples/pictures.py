"""What rankopt draws: each picture in a few lines, with what it shows in one.

    python examples/pictures.py [FOLDER [NAME ...]]

FOLDER, made where it is none, gets NAME.svg of each; without it a temporary one. The pages of the documentation show
these files.
"""

import sys
import tempfile
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot

from formulations import RankingSet, constrained_ranking, sensitivity
from rankopt.data import load_sample
from rankopt.errors import NoProgressWarning
from rankopt.measures import compare, compare_runs, evaluate
from rankopt.rankers import CofiRanker, DirectRanker, LargeMarginRanker, PairwiseRanker, RegressionRanker, SmoothRanker
from rankopt.ratings import load_ratings_sample

SAMPLE = load_sample("les-miserables")


def gap(axes):
    ranker = LargeMarginRanker("nDCG@10", bound="convex").fit(SAMPLE.train)
    ranker.history_.plot(axes)
    known = 100 * ranker.certificate_.relative_gap
    return f"A convex bound: after {ranker.n_iter_} steps the optimum is known to {known:.1g}%."


def rounds(axes):
    ranker = LargeMarginRanker("nDCG@10", bound="tie-aware").fit(SAMPLE.train)
    ranker.history_.plot(axes)
    count = ranker.history_.round.max()
    return f"A bound that is not convex: {count} majorants, each with a bound of its own, and J falls through all."


def annealing(axes):
    ranker = SmoothRanker("nDCG@10").fit(SAMPLE.train)
    ranker.history_.plot(axes)
    widths = ", ".join(f"{width:g}" for width in np.unique(ranker.history_.sigma)[::-1])
    return f"A measure smoothed less and less: {ranker.n_iter_} steps at widths {widths}."


def line(axes):
    ranker = DirectRanker("nDCG@10", init="ridge").fit(SAMPLE.train)
    ranker.coef_[0] += 0.4  # away from where the climb ended
    ranker.plot_line(0, axes=axes)
    steps = round(len(axes.lines[0].get_xdata()) // 2, -2)
    return f"A measure along one weight is a step function: the search finds the best of some {steps:,} intervals."


def runs(axes):
    measures = ["nDCG@5", "nDCG@10", "AP"]
    found = {name: evaluate(SAMPLE.test, ranker.predict(SAMPLE.test), measures) for name, ranker in _two()}
    compare_runs(found).plot(axes)
    return f"Two rankers on {len(SAMPLE.test)} queries: the intervals of 95% overlap in all three measures."


def queries(axes):
    one, two = (evaluate(SAMPLE.test, ranker.predict(SAMPLE.test), "nDCG@10") for _, ranker in _two())
    found = compare(two, one)
    found.plot(axes)
    return f"The same pair query by query: {found.difference:+.2f} on average, p = {found.p:.1f} by randomisation."


def quota(axes):
    profit = np.outer(1 / np.log2(np.arange(2, 7)), np.sort(np.random.default_rng(1).normal(size=9))[::-1])
    sites = RankingSet(9, 5).at_most(3, by=[*"aaaabbbcc"], name="site")
    curve = sensitivity(constrained_ranking(profit, sites), "site", range(2, 5))
    axes.plot(curve.limits, curve.value, marker="o", label="best ranking")
    for limit, value, price in zip(curve.limits, curve.value, curve.price, strict=True):
        axes.plot([limit, limit + 0.5], [value, value + 0.5 * price], color="C1")
    axes.lines[1].set_label("proven slope")
    axes.legend(frameon=False)
    axes.set(xlabel="documents of a site, at most", ylabel="value", xticks=curve.limits)
    gained = np.diff(curve.value)
    told = f"a third document of a site gains {gained[0]:.2f}, a fourth {gained[1]:.2f}"
    return f"What a quota costs: {told}; slopes are proved."


def sparse(axes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoProgressWarning)  # the largest λ leaves nothing in
        path = PairwiseRanker(penalty="l1").path(SAMPLE.train, lams=20)
    weights = np.array([model.coef_ for model in path])
    axes.semilogx([model.lam_ for model in path], weights, color="C0", linewidth=1)
    axes.set(xlabel="λ", ylabel="weights")
    left = [int(np.count_nonzero(model.coef_)) for model in path]
    told = f"from {left[0]} weights to {left[-1]} of {weights.shape[1]}"
    return f"The path of λ under penalty='l1': {told}, each with its gap."


def ratings(axes):
    ranker = CofiRanker(reg=0.3).fit(load_ratings_sample())
    ranker.history_.plot(axes)
    found = ranker.certificate_
    return f"Factors of users and items: {ranker.n_iter_} rounds; the gap of the whole is {found.relative_gap:.1%}."


def _two():
    return [(type(one).__name__, one.fit(SAMPLE.train)) for one in (RegressionRanker(), LargeMarginRanker("nDCG@10"))]


PICTURES = {draw.__name__: draw for draw in (gap, rounds, annealing, line, runs, queries, quota, sparse, ratings)}


def drawn(name, folder):
    """Draw one picture into the folder; what it shows."""
    figure, axes = pyplot.subplots(figsize=(4.8, 3.2), layout="constrained")
    finding = PICTURES[name](axes)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(Path(folder) / f"{name}.svg", metadata={"Date": None}, facecolor="white")
    pyplot.close(figure)
    return finding


if __name__ == "__main__":
    matplotlib.rcParams.update({"svg.hashsalt": "rankopt", "font.size": 9})
    with tempfile.TemporaryDirectory() as temporary:
        folder, *names = sys.argv[1:] or [temporary]
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name in names or PICTURES:
            print(f"{name}: {drawn(name, folder)}")
