"""Collaborative rankers on MovieLens 100k.

NDCG@10, exponential gain, ties averaged; mean over splits of the mean over users. Weak generalization trains on N
ratings of every user with N + 10 or more; strong on all users but the 100 with the most ratings, of whom N are known.
`--tries`: number of splits; `--seed`: the first. All choices are made inside the training ratings.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence
from itertools import product
from time import process_time
from typing import Any

import numpy as np
from scipy.stats import ttest_rel

from benchmarks.cases import Run, case, table, timed
from benchmarks.data import data_folder
from rankopt import Admissible
from rankopt.collaborative import recommendation
from rankopt.rankers import CofiRanker
from rankopt.ratings import (
    ItemMeanBaseline,
    PopularityBaseline,
    Ratings,
    evaluate_ratings,
    leave_out_split,
    read_ratings,
    strong_split,
    weak_split,
)

SPLITS = {"weak": weak_split, "strong": strong_split}
KNOWN = (10, 20, 50)
LOSSES = ("regression", "ordinal", "preferences", "ERU(d=3)", "nDCG@10", "nDCG@10/tie-aware", "nDCG@10/nonconvex")
Fit = Callable[[Any], Any]
"""From a split to something that `evaluate_ratings` takes."""


def movielens() -> Ratings:
    return read_ratings(data_folder() / "ml-100k")


def compare_rankers(run: Run, fits: dict[str, Fit], protocols: list[str], first: str) -> None:
    """Tables by protocol and kind of candidates; p of the paired t-test over the splits against `first`."""
    ratings, known = movielens(), run.size(KNOWN, (20,))
    seeds = range(run.seed, run.seed + run.count(10, 2))
    for protocol in protocols:

        def values(name: str, n: int, seed: int, protocol: str = protocol) -> list[float]:
            split = SPLITS[protocol](ratings, n, seed=seed)
            model = fits[name](split)
            return [evaluate_ratings(split, model, candidates=one).mean for one in ("rated", "all")]

        found = {
            (name, n): np.array([
                run.results.get(lambda name=name, n=n, s=seed: values(name, n, s), "ratings", protocol, name, n, seed)
                for seed in seeds
            ])
            for name in fits for n in known
        }  # fmt: skip
        for at, candidates in enumerate(("rated", "all")):
            row = table(f"{protocol}, {candidates} items", *(f"N = {n}" for n in known))
            for name in fits:
                cells = []
                for n in known:
                    own, base = found[name, n][:, at], found[first, n][:, at]
                    p = f" (p = {ttest_rel(own, base).pvalue:.2g})" if name != first and len(seeds) > 2 else ""
                    cells.append(f"{own.mean():.4f} ± {own.std(ddof=1):.4f}{p}")
                row(name, *cells)


@case(data=True)
def baselines(run: Run) -> None:
    """Item means and popularity under both protocols, among rated items and among all."""
    models = {
        "item mean, shrunk by 5": ItemMeanBaseline(5.0),
        "by 10, + .1 log(1 + count)": ItemMeanBaseline(10.0, 0.1),
        "popularity": PopularityBaseline(),
    }
    fits = {name: lambda split, one=one: one.fit(split.train) for name, one in models.items()}
    compare_rankers(run, fits, list(SPLITS), "item mean, shrunk by 5")


@case(data=True)
def rankers(run: Run) -> None:
    """CofiRanker by loss (`--sets LOSS ...`): "loss/bound/factors/fold-in/reg/unrated", as in "nDCG@10/nonconvex".

    Also "regression//100", "regression///0.15" (new users folded in with that regularization),
    "regression/////0.05"."""
    losses = run.sets or run.size(LOSSES, LOSSES[:2])

    def fit(spec: str) -> Fit:
        loss, bound, factors, fold, reg, unrated = [*spec.split("/"), *[""] * 5][:6]
        options = {"bound": bound or "convex", "factors": int(factors or 15), "reg": float(reg) if reg else "auto"}
        options["unrated_weight"] = float(unrated or 0)

        def fitted(split: Any) -> Any:
            own = CofiRanker(loss, **options).fit(split.train)
            return own.fold_in(split.train if split.known is None else split.known, reg=float(fold)) if fold else own

        return fitted

    compare_rankers(run, {spec: fit(spec) for spec in losses}, run.size(list(SPLITS), ["weak"]), losses[0])


def implicit_als(train: Ratings, factors: int, regularization: float, alpha: float) -> np.ndarray:
    """Scores of all pairs; ratings times alpha are confidences."""
    from implicit.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(factors, regularization, alpha, random_state=0, num_threads=1)
    model.fit(train.to_csr().astype(np.float32), show_progress=False)
    return np.asarray(model.user_factors) @ np.asarray(model.item_factors).T


def ease(train: Ratings, penalty: float) -> np.ndarray:
    """Scores of all pairs: X B, B of the least ‖X - X B‖² + penalty ‖B‖² with diagonal 0 [Steck 2019]."""
    X = train.to_csr().toarray()
    inverse = np.linalg.inv(X.T @ X + penalty * np.eye(X.shape[1]))
    return X - X @ (inverse / np.diag(inverse))


def chosen_among_all(scores: Callable[..., np.ndarray], *grid: Sequence[float]) -> Fit:
    """Parameters are chosen by nDCG@10 among all items on a fifth of each user's training ratings."""

    def fitted(split: Any) -> np.ndarray:
        inner = leave_out_split(split.train, int(np.diff(split.train.bounds).max()) // 5)

        def value(parameters: Sequence[float]) -> float:
            return evaluate_ratings(inner, scores(inner.train, *parameters), candidates="all").mean

        return scores(split.train, *max(product(*grid), key=value))

    return fitted


def cornac_scores(name: str) -> Fit:
    def fitted(split: Any) -> np.ndarray:
        import cornac

        train, kind = split.train, getattr(cornac.models, name)
        settings = {"seed": 0} if "seed" in kind.__init__.__code__.co_varnames else {}
        triplets = zip(train.user_of().tolist(), train.columns.tolist(), train.values.tolist(), strict=True)
        data = cornac.data.Dataset.from_uir(triplets, seed=0)
        model = kind(verbose=False, **settings).fit(data)
        scores = np.zeros((train.n_users, train.n_items))
        known = np.array([data.iid_map.get(j, -1) for j in range(train.n_items)])
        for user, at in data.uid_map.items():
            own = np.ravel(np.asarray(model.score(at), dtype=float))
            scores[user] = np.where(known >= 0, own[known], own.min())  # items never seen come last
        return scores

    return fitted


@case(data=True, packages=["implicit", "cornac"])
def peers(run: Run) -> None:
    """Models of cornac with their defaults, ALS of implicit and EASE with chosen parameters; `--sets EASE ...`."""
    all_fits: dict[str, Fit] = {name: cornac_scores(name) for name in ("MF", "PMF", "BPR")}
    all_fits["ALS"] = chosen_among_all(implicit_als, (5, 10, 20), (3.0, 10.0, 30.0), (1.0, 3.0))
    all_fits["EASE"] = chosen_among_all(ease, (300.0, 1000.0, 3000.0, 10000.0))
    fits = {name: all_fits[name] for name in run.chosen(list(all_fits))}
    compare_rankers(run, fits, ["weak"], next(iter(fits)))


@case()
def growth(run: Run) -> None:
    """Seconds and memory of a fit by ratings; generated, 100 a user, two rounds, 15 factors; `--sets LOSS`.

    Bytes are those held beyond the ratings (tracemalloc): the most at a time, and what the fitted ranker holds."""
    row = table("ratings", "seconds", "microseconds a rating", "bytes a rating", "held after")
    for n in run.size((100_000, 1_000_000, 10_000_000), (20_000,)):
        draws, users, items = np.random.default_rng(0), n // 100, 1000 + n // 1000
        start, step = draws.integers(items, size=users), draws.integers(1, items // 100, size=users)
        item = ((start[:, None] + step[:, None] * np.arange(100)) % items).ravel().astype(np.int64)
        user = np.repeat(np.arange(users), 100)
        taste, kind, level = draws.normal(size=(users, 2)), draws.normal(size=(items, 2)), draws.normal(size=items)
        score = np.einsum("ij,ij->i", taste[user], kind[item]) + level[item] + 0.5 * draws.normal(size=n)
        ratings = Ratings.from_arrays(user, item, np.clip(np.round(3.0 + 0.5 * score), 1, 5))
        loss, options = (run.sets or ("regression",))[0], {"compute_bound": False, "item_prior": "mean"}
        own = CofiRanker(loss, reg=0.6, max_iter=2, n_jobs=1, **options)
        _, seconds = timed(lambda own=own, ratings=ratings: own.fit(ratings))
        tracemalloc.start()
        own.fit(ratings)
        after, most = (held / n for held in tracemalloc.get_traced_memory())
        tracemalloc.stop()
        row(f"{n:,}", f"{seconds:.2f}", f"{1e6 * seconds / n:.2f}", f"{most:.0f}", f"{after:.0f}")


@case(data=True)
def seconds(run: Run) -> None:
    """A fit with 100 factors by `numpy.linalg.solve` on its systems, formed beforehand; seconds a round by loss."""
    ratings, factors = movielens(), run.size(100, 10)
    own = CofiRanker(factors=factors, reg=0.6, compute_bound=False, n_jobs=1).fit(ratings)

    def formed(matrix: Any, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Normal equations and right sides of one block."""
        matrix, design = matrix.tocsr(), np.hstack([other, np.ones((other.shape[0], 1))])
        rows = [design[matrix.indices[a:b]] for a, b in zip(matrix.indptr, matrix.indptr[1:], strict=False)]
        sides = [matrix.data[a:b] for a, b in zip(matrix.indptr, matrix.indptr[1:], strict=False)]
        diagonal = np.diag([*[own.lam_] * other.shape[1], 10.0])
        systems = np.array([one.T @ one + diagonal for one in rows])
        return systems, np.array([one.T @ side for one, side in zip(rows, sides, strict=True)])[..., None]

    matrix = ratings.to_csr()
    both = [formed(matrix, own.item_factors_), formed(matrix.T, own.user_factors_)]
    fits, solves = [], []
    for _ in range(run.size(3, 1)):
        fits.append(timed(lambda: own.fit(ratings))[1])
        solves.append(timed(lambda: [np.linalg.solve(*one) for one in both])[1] * own.n_iter_)
    quotient = min(fits) / min(solves)
    print(f"{own.n_iter_} rounds: fit {min(fits):.2f} s, solve {min(solves):.2f} s, {quotient:.2f}")
    row, first = table("loss", "rounds", "seconds a round", "by the regression's"), None
    for loss in run.size(("regression", "ordinal", "preferences", "nDCG@10"), ("regression",)):
        own = CofiRanker(loss, reg=0.6, compute_bound=False, n_jobs=1, max_iter=4, item_prior="mean").fit(ratings)
        spent = min(timed(lambda own=own: own.fit(ratings))[1] for _ in range(2)) / own.n_iter_
        first = first or spent
        row(loss, own.n_iter_, f"{spent:.2f}", f"{spent / first:.0f}")


@case(data=True)
def global_gap(run: Run) -> None:
    """Gaps of both blocks and of the whole problem, for factors of every width; verification.

    50 training ratings of each user who has 60; nDCG@10 at λ = 2, every loss at .6 λ_max; item bias strength 10,
    tolerance 1e-3 of both blocks; the planes of 20 users are verified."""
    train = weak_split(movielens(), 50, seed=0).train
    runs = {"nDCG@10, λ = 2": ("nDCG@10", {"lam": 2.0})}
    runs |= {f"{loss}, reg .6": (loss, {"reg": 0.6}) for loss in ("nDCG@10", "ordinal", "preferences", "regression")}
    runs = run.size(runs, {"regression, reg .6": runs["regression, reg .6"]})
    heads = ("J", "users' block", "items' block", "the whole", "‖Ψ‖₂ <=", "fit, s", "verified", "verify, s")
    row = table("", "factors", *heads)
    for name, (loss, options) in runs.items():
        unit = CofiRanker(loss, factors=1, reg=1.0, max_iter=1, compute_bound=False, bias_reg=1.0, item_prior="mean")
        options = {**options, "bias_reg": 10.0 / unit.fit(train).bias_reg_, "item_prior": "mean"}
        for width in run.size((10, 40, 100, "free"), (10,)):
            own = CofiRanker(loss, factors=width, tol=1e-3, time_limit=600.0, max_iter=500, **options)
            _, fit_seconds = timed(lambda own=own: own.fit(train))
            verified, verify_seconds = timed(lambda own=own: own.verify(train, planes=20))
            proof, shown = own.certificate_, own.item_factors_.shape[1]
            row(
                name, f"free: {shown}" if width == "free" else shown, f"{proof.primal:.6g}",
                f"{100 * proof.users_gap:.3f}%", f"{100 * proof.items_gap:.3f}%", f"{100 * proof.relative_gap:.2f}%",
                f"{proof.singular:.4f} ({proof.proof})", f"{fit_seconds:.1f}",
                "yes" if verified else "; ".join(verified.wrong), f"{verify_seconds:.1f}",
            )  # fmt: skip


@case(data=True)
def quotas(run: Run) -> None:
    """Milliseconds a user of lists of 10 films, freely and under overlapping genre quotas; every list is optimal.

    A regression with 15 factors; every tenth user gets films that it has not rated; a film has 1 to 6 of 18 genres."""
    recommendation.perf_counter = process_time
    ratings, weights = movielens(), 1 / np.log2(np.arange(2.0, 12.0))
    own, users = CofiRanker(factors=15, reg=0.6).fit(ratings), ratings.users[:: run.size(10, 100)].tolist()
    own.recommend(users[:2], constraints=Admissible(10).at_most(2, by="genre"))  # loads the code
    row = table("quota", "median ms", "90%", "slowest", "Σ c s / Σ c")
    for limit in (None, 3, 2, 1):
        rules = None if limit is None else Admissible(10, on_infeasible="truncate").at_most(limit, by="genre")
        lists = own.recommend(users, constraints=rules)
        parts = [lists.scores[a:b] for a, b in zip(lists.bounds, lists.bounds[1:], strict=False)]
        scores = np.mean([np.average(part, weights=weights[: part.size]) for part in parts])
        (who, slowest), ms = lists.slowest, 1e3 * lists.seconds
        row("none" if limit is None else f"at most {limit}", f"{np.median(ms):.1f}", f"{np.quantile(ms, 0.9):.1f}",
            f"user {who}: {1e3 * slowest:.0f}", f"{scores:.4f}")  # fmt: skip
