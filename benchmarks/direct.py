"""Coordinate ascent on the measure itself, exact line search, and trees weighted by the measure.

nDCG@10, queries without relevant documents count 0. Seconds are processor seconds of one thread.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.cases import Run, case, least, ndcg, p_value, table, timed, wall
from benchmarks.data import Split, folds, letor, mq2008, ohsumed_fold, set_names, splits
from formulations.parallel import at_most
from rankopt.data import Queries
from rankopt.engines import Threads
from rankopt.measures import parse
from rankopt.optimize import LineSearch
from rankopt.rankers import (
    DirectRanker,
    LargeMarginRanker,
    PairwiseRanker,
    RandomDirections,
    RegressionRanker,
    SmoothRanker,
)
from rankopt.risk.along_line import line_data
from rankopt.scorers.linear import linear_scores
from rankopt.sweeps.step_function import best_interval, window_point
from rankopt.sweeps.sweep import LineSweep

MEASURE, BASE = "nDCG@10", "large margin"
SOME = ("MQ2008", "OHSUMED", "MSLR", "LightGBM")
serial_search = partial(LineSearch.from_measure, MEASURE, engine="serial")


class SampledSteps:
    """Coordinate ascent by steps that are tried, as RankLib does: ±.05 |w_j|, doubled, 25 a coordinate, 25 rounds."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, queries: Queries) -> SampledSteps:
        search, rng = serial_search(queries), np.random.default_rng(self.seed)
        (shard,), w = search.shards, np.full(search.features, 1.0 / search.features)
        columns, scores = shard.scorer.columns(np.arange(search.features)), line_data(shard, w).scores
        value = shard.loss.value(scores)
        for _ in range(25):
            before = value
            for j in rng.permutation(search.features):
                size = 0.05 * (abs(w[j]) or 1.0)
                steps = [sign * size * 2.0**i for sign in (1, -1) for i in range(12)] + [-w[j]]
                reached = [shard.loss.value(scores + t * columns[j]) for t in steps]
                top = int(np.argmax(reached))
                if reached[top] > value:
                    value, scores = reached[top], scores + steps[top] * columns[j]
                    w[j] += steps[top]
            if value < before + 1e-3 * before:
                break
        self.coef_ = w
        return self


FAR = SmoothRanker(MEASURE, bandwidths=[2.0**i for i in range(2, -6, -1)], lam=1e-5, engine="serial")


class Annealed:
    """The best in training of 24 annealings from around the ridge, each polished by exact lines."""

    def __init__(self, seed: int = 0, count: int = 24) -> None:
        self.seed, self.count = seed, count

    def fit(self, queries: Queries) -> Annealed:
        search, rng = serial_search(queries), np.random.default_rng(self.seed)
        units = np.where(search.deviations > 0, search.deviations, 1.0)
        ridge = RegressionRanker().fit(queries).coef_
        ridge = ridge / (search.deviation(ridge) or 1.0)
        self.histories_, best = [], -1.0
        for number in range(self.count):
            away = rng.normal(size=ridge.size) / units
            w0 = ridge + (((0.5, 1.0, 2.0)[number % 3] / search.deviation(away)) if number else 0.0) * away
            lam = (1e-5, 1e-6, 1e-4)[number // 3 % 3]
            start = SmoothRanker(MEASURE, w0=w0, bandwidths=FAR.bandwidths, lam=lam, engine="serial")
            own = DirectRanker(MEASURE, init=start, step_rule="middle", engine="serial").fit(queries)
            self.histories_.append(own.history_)
            if own.certificate_.value > best:
                best, self.coef_, self.certificate_ = own.certificate_.value, own.coef_, own.certificate_
        return self


class ChosenInside:
    """The candidate that ranks held-out queries of three folds best, trained once more on all."""

    names = ("ridge", BASE, "smooth", "direct, ridge", "direct, large margin", "direct, smooth",
             "direct, smooth, powell and 10 random", "direct, smooth far down, middle")  # fmt: skip

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, queries: Queries) -> ChosenInside:
        parts = list(folds(queries, 3, self.seed))

        def value(name: str) -> float:
            found = [values(part.test, RANKERS[name](self.seed).fit(part.train).coef_) for part in parts]
            return float(np.mean(np.concatenate(found)))

        own = RANKERS[max(self.names, key=value)](self.seed).fit(queries)
        self.coef_ = own.coef_
        return self


def direct(**options: Any) -> Callable[[int], DirectRanker]:
    return lambda seed: DirectRanker(MEASURE, engine="serial", random_state=seed, **options)


margin = LargeMarginRanker(MEASURE, engine="serial")
RANKERS: dict[str, Callable[[int], Any]] = {
    "ridge": lambda seed: RegressionRanker(),
    "RankSVM": lambda seed: PairwiseRanker(engine="serial"),
    BASE: lambda seed: LargeMarginRanker(MEASURE, engine="serial"),
    "smooth": lambda seed: SmoothRanker(MEASURE, engine="serial"),
    "sampled steps": SampledSteps,
    "direct, zeros": direct(init="zeros"),
    "direct, ridge": direct(init="ridge"),
    "direct, large margin": direct(init=margin),
    "direct, smooth": direct(init="smooth"),
    "direct, ridge, best of 8": direct(init="ridge", n_restarts=8, aggregate="best"),
    "direct, ridge, mean of 8": direct(init="ridge", n_restarts=8),
    "direct, smooth, middle": direct(init="smooth", step_rule="middle"),
    "direct, smooth far down, middle": direct(init=FAR, step_rule="middle"),
    "direct, smooth far down, best of 8": direct(init=FAR, step_rule="middle", n_restarts=8, aggregate="best"),
    "direct, smooth, best of 8": direct(init="smooth", n_restarts=8, aggregate="best"),
    "direct, smooth, mean of 8": direct(init="smooth", n_restarts=8),
    "direct, smooth, powell and 10 random": direct(directions=("coordinates", "powell", RandomDirections(10))),
    "direct, best of 24 annealed": Annealed,
    "chosen inside": ChosenInside,
}


def values(queries: Queries, w: np.ndarray) -> np.ndarray:
    return ndcg(queries, linear_scores(queries.features, w))


def value(queries: Queries, w: np.ndarray) -> float:
    return float(values(queries, w).mean())


@case()
def accuracy(run: Run) -> None:
    """Training and test measure of ascents next to the rest, p against the large margin; epsilon; predicted steps."""
    labels, counts = run.size(list(RANKERS), ["ridge", BASE, "direct, ridge"]), defaultdict(lambda: [0, 0, 0.0])

    def fitted(name: str, label: str) -> dict[str, Any]:
        found: dict[str, Any] = {"train": [], "test": [], "epsilon": [], "apart": []}
        for split in splits(name):
            with at_most(1):
                own = RANKERS[label](0).fit(split.train)
            found["train"].append(value(split.train, own.coef_))
            found["test"] += values(split.test, own.coef_).tolist()
            found["epsilon"].append(getattr(getattr(own, "certificate_", None), "epsilon", None))
            history = getattr(own, "history_", None)
            for one in getattr(own, "histories_", [history] if hasattr(history, "predicted") else []):
                found["apart"] += np.abs(one.predicted - one.value).tolist()
        return found

    for name in set_names(run, SOME):
        row, base = table(name, "train", "test", "p", "epsilon", "s a fit"), None
        found = {label: run.results.timed(lambda name=name, label=label: fitted(name, label), "direct", name, label)
                 for label in labels}  # fmt: skip
        base = found[BASE][0]["test"]
        for label, (own, seconds) in found.items():
            epsilon = "" if None in own["epsilon"] else f"{np.mean(own['epsilon']):.0e}"
            test, fits = f"{np.mean(own['test']):.4f}", len(own["train"])
            row(label, f"{np.mean(own['train']):.4f}", test, p_value(own["test"], base), epsilon,
                f"{seconds / fits:.1f}")  # fmt: skip
            apart = np.array(own["apart"])
            old = counts[name]
            most = max(old[2], float(apart.max(initial=0.0)))
            counts[name] = [old[0] + apart.size, old[1] + int((apart <= 1e-12).sum()), most]
    row = table("accepted steps", "steps", "predicted as measured, to 1e-12", "largest difference")
    for name, (steps, equal, apart) in counts.items():
        row(name, f"{steps:,}", f"{equal:,}", f"{apart:.0e}")


@case()
def settings(run: Run) -> None:
    """Settings of DirectRanker on held-out queries: training, validation, epsilon, seconds; `--seeds`."""
    options = {
        "window .1": {"step_window": 0.1}, "window .2": {"step_window": 0.2}, "window .4": {"step_window": 0.4},
        "middle": {"step_rule": "middle"}, "plackett-luce": {"step_rule": "plackett-luce"},
        "greedy": {"selection": "greedy"}, "lam .01": {"lam": 0.01}, "lam .1": {"lam": 0.1},
        "powell and 10 random": {"directions": ("coordinates", "powell", RandomDirections(10))},
        "8, best": {"n_restarts": 8, "aggregate": "best"}, "8, mean": {"n_restarts": 8},
        "8, mean, middle": {"n_restarts": 8, "step_rule": "middle"},
    }  # fmt: skip
    choices = {"ridge": RANKERS["ridge"], BASE: RANKERS[BASE]}
    choices |= {f"{i}, {name}": direct(init=i, **own) for i in ("ridge", "smooth") for name, own in options.items()}
    row = table("data", "ranker", "train", "validation", "epsilon", "s a fit")
    for name in set_names(run, SOME):
        if name == "MQ2008":
            parts = mq2008()
            pairs = [Split(parts[i], parts[j]) for i in range(3) for j in range(3) if i != j]
        elif name == "OHSUMED":
            pairs = [Split(*ohsumed_fold(fold, "train", "vali")) for fold in range(1, 6)]
        else:
            pairs = [inner for split in splits(name) for inner in folds(split.train, 3)]
        for label in run.size(list(choices), list(choices)[:4]):
            rows = []
            for seed in range(run.seeds):
                for split in pairs:
                    with at_most(1):
                        own, seconds = timed(partial(choices[label](seed).fit, split.train))
                    epsilon = getattr(getattr(own, "certificate_", None), "epsilon", np.nan)
                    rows.append([value(split.train, own.coef_), value(split.test, own.coef_), epsilon, seconds])
            train, test, epsilon, seconds = np.mean(rows, axis=0)
            proved = "" if np.isnan(epsilon) else f"{epsilon:.1e}"
            row(name, label, f"{train:.4f}", f"{test:.4f}", proved, f"{seconds:.1f}")


@case()
def race(run: Run) -> None:
    """Sampled steps and exact lines from the same start: when exact lines are as high as sampled steps end."""
    row = table("data", "sampled reach", "s", "exact reach", "s", "s until as high", "times")
    for name in set_names(run, ("MQ2008", "OHSUMED")):
        rows = []
        for split in splits(name):
            queries = split.train
            with at_most(1):
                sampled, spent = timed(lambda q=queries: SampledSteps().fit(q))
                level = serial_search(queries).value(sampled.coef_)
                even = np.full(queries.n_features, 1.0 / queries.n_features)
                exact, seconds = timed(lambda q=queries, w=even: direct(init=w, step_rule="middle")(0).fit(q))
            history, first = exact.history_, np.flatnonzero(exact.history_.value >= level)
            lines = exact.n_iter_ * queries.n_features
            until = seconds * history.lines[first[0]] / lines if first.size else np.nan
            rows.append([level, spent, exact.certificate_.value, seconds, until, spent / until])
        row(name, *(f"{mean:.4g}" for mean in np.nanmean(rows, axis=0)))


@case()
def starts(run: Run) -> None:
    """Ascents from 100 random starts [paper 3, section 3.3]: spread of training and test measure, their correlation.

    A start is a vector of normal numbers in units of one deviation of each feature; `--output FILE.png` draws it."""
    count, known, drawn = run.count(100, 3), ("ridge", BASE, "direct, smooth"), {}
    row = table("", "train, over starts", "in a split", "test, over starts", "in a split", "r")

    def followed(split: Split) -> dict[str, list]:
        search = serial_search(split.train)
        units, together = np.where(search.deviations > 0, search.deviations, 1.0), np.zeros(search.features)
        found: dict[str, list] = {"begun": [], "ended": []}
        for number in range(count):
            w = np.random.default_rng(number).normal(size=search.features) / units
            own = direct(init=w)(None).fit(split.train)
            together += own.coef_ / (search.deviation(own.coef_) or 1.0)
            for when, at in (("begun", w), ("ended", own.coef_)):
                found[when].append([value(split.train, at), value(split.test, at)])
        return found | {"mean": [value(split.train, together), value(split.test, together)]}

    def spread(values: np.ndarray) -> str:
        inside = np.sqrt(values.var(axis=1, ddof=1).mean())
        return f"{values.mean():.4f} ± {values.mean(axis=0).std(ddof=1):.4f} | {inside:.4f}"

    for name in set_names(run, ("MQ2008", "OHSUMED")):
        with at_most(1):
            found = [run.results.get(lambda split=split: followed(split), "starts", name, at, count)
                     for at, split in enumerate(splits(name))]  # fmt: skip
        for when in ("begun", "ended"):
            ends = np.array([one[when] for one in found])  # splits, starts, train and test
            r = np.mean([np.corrcoef(one.T)[0, 1] for one in ends])
            row(f"{name}, {when} at", spread(ends[..., 0]), spread(ends[..., 1]), f"{r:+.2f}")
        points = {"mean of the ends": np.mean([one["mean"] for one in found], axis=0)}
        for label in known:
            fits = [(RANKERS[label](0).fit(split.train).coef_, split) for split in splits(name)]
            points[label] = np.mean([[value(s.train, w), value(s.test, w)] for w, s in fits], axis=0)
        for label, (train, test) in points.items():
            row(f"{name}, {label}", f"{train:.4f}", "", f"{test:.4f}", "", "")
        drawn[name] = ends.mean(axis=0), points
    if run.output:
        import matplotlib.pyplot as plt

        size = {"figsize": (4.5 * len(drawn), 3.6), "layout": "constrained", "squeeze": False}
        figure, panels = plt.subplots(1, len(drawn), **size)
        for axes, (name, (ends, points)) in zip(panels[0], drawn.items(), strict=True):
            axes.plot(*ends.T, ".", color="C0", alpha=0.6, label="from a random start")
            for marker, (label, point) in zip("D^sP", points.items(), strict=True):
                color = "C0" if marker == "D" else "black"
                axes.plot(*point, marker, color=color, markeredgecolor="black", linestyle="", label=label)
            axes.locator_params(axis="x", nbins=5)
            axes.set(title=name, xlabel=f"{MEASURE}, training", ylabel=f"{MEASURE}, test")
        panels[0, 0].legend(frameon=False, fontsize="small")
        figure.savefig(run.output, dpi=110)


# Exact line search.


def generated(queries: int = 100, documents: int = 120, features: int = 12, counts: bool = False) -> Queries:
    """Queries of about so many documents, grades in MSLR's shares; with `counts` half of the columns are counts."""
    rng = np.random.default_rng(0)
    sizes = np.maximum(2, rng.integers(documents // 2, documents + documents // 2 + 1, queries))
    X = rng.normal(size=(int(sizes.sum()), features))
    if counts:
        X[:, : features // 2] = np.round(np.exp(X[:, : features // 2]) * 3)
        X[:, features // 4 : features // 2] *= rng.random((len(X), features // 2 - features // 4)) < 0.2
    truth = X @ (rng.normal(size=features) / X.std(axis=0)) + 3 * rng.normal(size=len(X))
    grades = np.searchsorted(np.quantile(truth, [0.52, 0.84, 0.975, 0.993]), truth).astype(float)
    return Queries.from_arrays(X.astype(np.float32), grades, qid=np.repeat(np.arange(queries), sizes))


def sweep_of(measure: str, queries: Queries) -> LineSweep:
    rule = parse(measure)
    weights = np.where(rule.defined(queries.relevance, queries.offsets), 1.0, 0.0)
    return LineSweep(rule, queries.relevance, queries.offsets, weights / weights.sum())


@case()
def line_search(run: Run) -> None:
    """Microseconds a document and direction of an exact line search by measure, next to np.argsort of the columns.

    Twelve columns, scores of a ridge; sweep: all jumping points; best: the best interval; window: the point above the
    highest mean of a window. By turns, least of nine rounds."""
    measures = ("nDCG@5", "nDCG@10", "P@10", "RR", "AP", "ERR", "AP@10", "ERR@10", "AUC", "nDCG")
    data = {"MSLR's shape": generated(run.size(100, 10), features=40, counts=True)}
    if "RANKOPT_DATA" in os.environ and not run.quick:
        data |= {"MQ2008": mq2008((1,))[0], "OHSUMED": letor("letor2-ohsumed", (1,))[0]}
    heads = ("argsort, µs", "sweep, µs", "by argsort", "best interval, µs", "window, µs", "events a document")
    row = table("data", "measure", *heads)
    for name, queries in data.items():
        X = queries.features.toarray() if hasattr(queries.features, "toarray") else np.asarray(queries.features)
        columns = np.sort(np.random.default_rng(1).choice(X.shape[1], min(12, X.shape[1]), replace=False))
        scores = np.asarray(RegressionRanker(1.0).fit(queries).predict(queries.features), dtype=float)
        slopes, ranges = np.ascontiguousarray(X[:, columns].T, dtype=np.float64), list(pairwise(queries.offsets))

        def sort(slopes: np.ndarray = slopes, ranges: list = ranges) -> None:
            for line in slopes:
                for low, high in ranges:
                    np.argsort(line[low:high])

        for measure in run.size(measures, measures[:4]):
            sweep = sweep_of(measure, queries)
            with at_most(1):
                events = sweep.events(scores, slopes)
                jobs = (
                    sort, lambda s=sweep, a=scores, b=slopes: s.events(a, b),
                    lambda e=events: [best_interval(line) for line in e],
                    lambda e=events: [window_point(line, 0.1) for line in e],
                )  # fmt: skip
                found = [1e6 * seconds / slopes.size for seconds in least(run.size(9, 2), *jobs)]
            count = sum(line.times.size for line in events) / slopes.size
            sorting, sweeping, best, window = (f"{micros:.3f}" for micros in found)
            row(name, measure, sorting, sweeping, f"{found[1] / found[0]:.2f}", best, window, f"{count:.2f}")


@case()
def line_growth(run: Run) -> None:
    """A line search by documents a query [paper 3, Table 12], queries and threads; a round over 519 features."""

    def swept(queries: Queries, measure: str) -> tuple[float, float]:
        """Microseconds and jumping points a document and direction."""
        sweep, slopes = sweep_of(measure, queries), np.ascontiguousarray(queries.features.T.astype(float))
        scores = slopes[:4].sum(axis=0)
        (seconds,) = least(run.size(5, 1), lambda: [best_interval(line) for line in sweep.events(scores, slopes)])
        count = sum(line.times.size for line in sweep.events(scores, slopes))
        return 1e6 * seconds / slopes.size, count / slopes.size

    with at_most(1):
        heads = [f"{measure}: {what}" for measure in ("nDCG@5", "nDCG@10", "AP") for what in ("points a query", "µs")]
        row = table("documents a query", *heads)
        for documents in run.size((50, 100, 200, 500, 1000, 2000, 5000), (50, 100)):
            queries, cells = generated(max(4, run.size(20_000, 1000) // documents), documents), []
            for measure in ("nDCG@5", "nDCG@10", "AP"):
                if measure == "AP" and documents > 1000:  # its points grow with the square
                    cells += ["", ""]
                    continue
                micros, count = swept(queries, measure)
                cells += [f"{count * queries.n_documents / len(queries):.1f}", f"{micros:.3f}"]
            row(documents, *cells)
        row = table("queries of 120 documents", "nDCG@10: µs a document and direction")
        for count in run.size((100, 200, 400, 800, 1600, 3200), (20,)):
            row(count, f"{swept(generated(count), 'nDCG@10')[0]:.3f}")
    row = table("measure", "documents", "directions", "one thread by two")
    for measure, count in (("nDCG@10", 100), ("nDCG@10", 2000), ("RR", 2000), ("AP", 500), ("ERR", 500)):
        queries, w = generated(run.size(count, 20)), np.ones(12)
        jobs = [partial(LineSearch.from_measure(measure, queries, engine=Threads(n)).along_all, w, list(range(12)),
                        "middle") for n in (1, 2)]  # fmt: skip
        _, one = wall(jobs[0])
        one, two = np.min([[wall(job)[1] for job in jobs] for _ in range(run.size(5, 1))], axis=0)
        row(measure, queries.n_documents, 12, f"{one / two:.2f}")
    queries = generated(run.size(19_944, 50), 24, 24)
    for measure in ("nDCG@5", "nDCG@10"):
        for threads in (1, 2):
            search = LineSearch.from_measure(measure, queries, engine=Threads(threads))
            job = partial(search.along_all, np.ones(24), list(range(24)), "middle")
            seconds = min(wall(job)[1] for _ in range(2))
            print(f"{measure}, {queries.n_documents} documents, {threads} thread(s): {seconds:.1f} s for 24 features; "
                  f"519 features: {seconds / 24 * 519:.0f} s")  # fmt: skip


@case(packages=["lightgbm"])
def trees(run: Run) -> None:
    """DirectBoostedRanker next to MART and LambdaMART with 100 trees of 10, 30, 50 leaves, and stopped on queries.

    "stopped" trains on two thirds of the training queries and takes as many of 300 trees as are best on the last third.
    Training measure: nDCG@10 where it is defined. p against MART with rate .1 and as many trees and leaves."""
    from benchmarks.trees import QUIET, lightgbm, lightgbm_data
    from rankopt.experimental import DirectBoostedRanker
    from rankopt.measures import evaluate

    def package(objective: str, rate: float, stopped: bool = False) -> Callable[..., Any]:
        def learn(train: Queries, count: int, leaves: int) -> Any:
            inner = next(folds(train, 3)) if stopped else Split(train, train)
            options = QUIET | {"objective": objective, "learning_rate": rate, "num_leaves": leaves}
            options["min_data_in_leaf"] = 20
            grown = lightgbm.train(options, lightgbm_data(inner.train), count)
            if not stopped:
                return lambda queries: grown.predict(queries.features)
            curve = [defined(inner.test, grown.predict(inner.test.features, num_iteration=k + 1)) for k in range(count)]
            return lambda queries: grown.predict(queries.features, num_iteration=int(np.argmax(curve)) + 1)

        return learn

    def ours(stopped: bool = False, **options: Any) -> Callable[..., Any]:
        def learn(train: Queries, count: int, leaves: int) -> Any:
            own = DirectBoostedRanker(
                MEASURE, tree_learner="lightgbm", n_estimators=count, num_leaves=leaves, n_jobs=1, **options
            )
            inner = next(folds(train, 3)) if stopped else None
            return (own.fit(inner.train, eval_set=inner.test) if inner else own.fit(train)).predict

        return learn

    def defined(queries: Queries, scores: np.ndarray) -> float:
        return float(evaluate(queries, scores, MEASURE).mean())

    base, paper, lever = "MART, rate .1", {"weight_bounds": (0.1, 0.5)}, {"weight_bounds": (0.02, 0.1)}
    for stopped in (False, True):
        learners = {base: package("regression", 0.1, stopped)}
        if not stopped:
            learners |= {f"MART, rate .{rate}": package("regression", rate / 10) for rate in (3, 5)}
            learners["LambdaMART, rate .1"] = package("lambdarank", 0.1)
        learners |= {
            "DirectBoostedRanker(): inside [.05, .2]": ours(stopped),
            "paper 3: clamped to [.1, .5]": ours(stopped, weight_rule="clamped", **paper),
            "leveraging": ours(stopped, strategy="leveraging", **lever),
        }
        for leaves in (10,) if stopped or run.quick else (10, 30, 50):
            count = run.size(300 if stopped else 100, 5)
            for name in set_names(run, ("MQ2008", "OHSUMED", "LightGBM")):
                kind = f"{name}, {'at most ' * stopped}{count} trees{', stopped' * stopped}, {leaves} leaves"
                row, first = table(kind, "train", "test", "p", "s"), None
                for label, learn in learners.items():
                    found = []
                    for split in splits(name):
                        scores, seconds = timed(partial(learn, split.train, count, leaves))
                        train, test = defined(split.train, scores(split.train)), ndcg(split.test, scores(split.test))
                        found.append((train, test, seconds))
                    test = np.concatenate([one[1] for one in found])
                    first = test if first is None else first
                    error = test.std(ddof=1) / np.sqrt(test.size)
                    row(label, f"{np.mean([one[0] for one in found]):.4f}", f"{test.mean():.4f} ± {error:.3f}",
                        p_value(test, first), f"{found[0][2]:.1f}")  # fmt: skip
