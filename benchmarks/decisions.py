"""Learn costs for optimization problems: regret, the minimum of SPO+, PyEPO, layers of networks.

Instances are those of `rankopt.data.decision_samples` (knapsack: 10 items), with 1,000 more for test. Regret and values
of SPO+ are divided by the mean of the best values. Adam: batches of 32, rate .01, 100 epochs, of 1,000
instances 20.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np

from benchmarks.cases import Run, case, ndcg, p_value, table, timed
from benchmarks.data import set_names, splits
from rankopt.data import Queries, decision_samples
from rankopt.data.normalization import normalize
from rankopt.decisions import DecisionRegressor, ProblemOracle
from rankopt.losses import MarginLoss
from rankopt.rankers import LargeMarginRanker

PROBLEMS = ("shortest-path", "knapsack", "assignment")
TINY = 1e-6  # λ of the minimum of SPO+, centered at 0
OWN: dict[str, dict[str, Any]] = {
    "least squares": {"loss": "squared"}, "SPO+": {}, "SPO+, λ = 1e-6": {"lam": TINY, "w0": "zeros"},
    "nonconvex": {"loss": "nonconvex"},
}  # fmt: skip
ADAM = ("SPO+, Adam", "Fenchel-Young, Adam")


@dataclass(frozen=True, eq=False)
class Instances:
    """Instances of a problem. X has a constant feature."""

    problem: Any
    X: np.ndarray
    costs: np.ndarray

    @classmethod
    def drawn(cls, name: str, count: int, **options: Any) -> tuple[Instances, Instances]:
        """Those to train on, and those to test on."""
        sample = decision_samples(name, count + 1000, size=10 if name == "knapsack" else None, **options)
        X = np.hstack([sample.X, np.ones((count + 1000, 1))])
        first, last = (cls(sample.problem, X[part], sample.costs[part]) for part in (slice(count), slice(count, None)))
        return first, last

    @property
    def sign(self) -> float:
        return 1.0 if self.problem.is_maximization else -1.0

    @cached_property
    def oracle(self) -> ProblemOracle:
        return ProblemOracle((self.problem,), self.sign * self.costs)

    @property
    def scale(self) -> float:
        """The mean of the best values."""
        return float(np.abs(self.oracle.optimal.value).mean())

    def regret(self, predicted: np.ndarray) -> float:
        decision = self.oracle.solve(self.sign * predicted).decision
        return float((self.oracle.optimal.value - (self.oracle.profit * decision).sum(axis=1)).mean()) / self.scale

    def spo_plus(self, predicted: np.ndarray) -> float:
        return float(MarginLoss(self.oracle, "convex").at(2.0 * self.sign * predicted).value.mean())


def adam(model: Any, loss: Callable[..., Any], seed: int, X: Any, *known: Any, epochs: int | None = None) -> Any:
    """The model after some epochs of Adam on loss(model(X), *known)."""
    import torch

    torch.manual_seed(seed)
    tensors = [torch.as_tensor(one) for one in (X, *known)]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs or (20 if len(X) >= 1000 else 100)):
        for batch in torch.randperm(len(X)).split(32):
            features, *others = (one[batch] for one in tensors)
            optimizer.zero_grad()
            loss(model(features), *others).mean().backward()
            optimizer.step()
    return model


def linear(d: int, n: int) -> Any:
    """A linear model that begins at 0."""
    import torch

    model = torch.nn.Linear(d, n, bias=False, dtype=torch.float64)
    torch.nn.init.zeros_(model.weight)
    return model


def network(d: int, n: int, seed: int, hidden: int = 64) -> Any:
    import torch

    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(d, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, n)).double()


def measured(name: str, count: int, noise: float, degree: int, seed: int) -> dict[str, list[float]]:
    """By method: regret on test, SPO+ in training, by how much the objective of λ = 1e-6 is above the proven bound of
    its minimum, the gap of the certificate; and seconds."""
    train, test = Instances.drawn(name, count, degree=degree, noise=noise, seed=seed)
    best, fitted, bound = train.oracle.optimal.decision, [], np.nan
    for method, options in OWN.items():
        fit = partial(DecisionRegressor(train.problem, fit_intercept=False, **options).fit, train.X, train.costs)
        model, seconds = timed(fit)
        bound = model.certificate_.bound if options.get("lam") == TINY else bound
        fitted.append((method, model.coef_, model.certificate_.gap, seconds))
    if find_spec("torch"):
        from rankopt.torch import FenchelYoungLoss, PerturbedArgmax, SPOPlusLoss

        perturbed = FenchelYoungLoss(PerturbedArgmax(train.problem, samples=3))
        losses = SPOPlusLoss(train.problem), lambda predicted, costs, best: perturbed(predicted, best)
        for method, loss in zip(ADAM, losses, strict=True):
            start = linear(train.X.shape[1], train.costs.shape[1])
            model, seconds = timed(partial(adam, start, loss, seed, train.X, train.costs, best))
            fitted.append((method, model.weight.detach().numpy(), 0.0, seconds))
    found = {}
    for method, weights, gap, seconds in fitted:
        risk = train.spo_plus(train.X @ weights.T)
        above = TINY / 2.0 * float((weights**2).sum()) + risk - bound
        scaled = [value / train.scale for value in (risk, above, gap)]
        found[method] = [test.regret(test.X @ weights.T), *scaled, seconds]
    return found


@case()
def regret(run: Run) -> None:
    """Regret on test, SPO+ in training and seconds of six methods, over degrees, noise and seeds; in %."""
    degrees = run.size((1, 2, 4, 6, 8), (4,))
    kinds = list(product(run.chosen(PROBLEMS), run.size((100, 1000), (20,)), (0.0, 0.5)))
    regrets, summary = [], []
    for name, count, noise in kinds:
        seeds = range(run.seed, run.seed + run.count(10, 2))
        cells = [(name, count, noise, degree, seed) for degree in degrees for seed in seeds]
        found = [run.results.get(partial(measured, *cell), *cell) for cell in cells]
        values = {method: 100.0 * np.array([one[method] for one in found]) for method in found[0]}
        for i, degree in enumerate(degrees):
            part = slice(i * len(seeds), (i + 1) * len(seeds))
            regrets.append((name, count, noise, degree, {key: own[part, 0].mean() for key, own in values.items()}))
        base = values["SPO+"]
        for method, own in values.items():
            risk, above, gap, seconds = own[:, 1:].mean(axis=0)
            p = p_value(own[:, 0], base[:, 0], 4)
            known = "" if np.isnan(above) else f"{above:.2f}"
            cells = (f"{own[:, 0].mean():.2f}", p, f"{risk:.2f}", known, f"{gap:.1g}")
            summary.append((name, count, noise, method, *cells, f"{seconds / base[:, 4].mean():.2g}"))
    row = table("problem", "instances", "noise", "degree", *regrets[0][-1])
    for *key, means in regrets:
        row(*key, *(f"{means[method]:.2f}" if method in means else "" for method in regrets[0][-1]))
    print("\np: paired randomization test of the regrets of all degrees and seeds against SPO+. Above: the minimum.")
    row = table("problem", "instances", "noise", "method", "regret", "p", "SPO+", "above", "gap", "seconds / SPO+")
    for cells in summary:
        row(*cells)


def pyepo_loss(train: Instances) -> Callable[..., Any]:
    """PyEPO's SPO+ of each instance, on its own model of the problem and a solver of OR-Tools."""
    from pyepo.func import SPOPlus
    from pyepo.model.ort import knapsackModel, shortestPathModel

    problem = train.problem
    if problem.is_maximization:
        model, order = knapsackModel(problem.matrix.toarray(), problem.row_upper), np.arange(train.costs.shape[1])
    else:
        arcs, model = list(zip(problem.tail.tolist(), problem.head.tolist(), strict=True)), shortestPathModel((5, 5))
        order = np.array([arcs.index(arc) for arc in model.arcs])
    loss = SPOPlus(model, reduction="none")

    def call(predicted: Any, costs: Any, best: Any) -> Any:
        value = (costs * best).sum(axis=1, keepdims=True)
        return loss(predicted[:, order], costs[:, order], best[:, order], value)

    return call


@case(packages=("pyepo", "torch"))
def pyepo(run: Run) -> None:
    """SPO+ of PyEPO: largest difference of value and gradient, and SPO+ after the same steps of Adam.

    Costs are rounded to multiples of 2^-16, since PyEPO passes them to its solver in single precision.
    """
    import torch

    from rankopt.torch import SPOPlusLoss

    row = table("problem", "instances", "value, differs by", "gradient", "after Adam, ours", "PyEPO", "seconds / ours")
    for name in run.chosen(PROBLEMS[:2]):
        train, _ = Instances.drawn(name, run.count(200, 20), degree=4, seed=run.seed)
        noise = np.random.default_rng(run.seed).normal(size=train.costs.shape)
        costs, guess = (np.round(part * 2.0**16) / 2.0**16 for part in (train.costs, train.costs + noise))
        known, found, fits = (costs, train.oracle.optimal.decision), [], []
        for loss in (SPOPlusLoss(train.problem, reduction="none"), pyepo_loss(train)):
            predicted = torch.tensor(guess, requires_grad=True)
            value = loss(predicted, *map(torch.tensor, known))
            value.sum().backward()
            found.append((value.detach().numpy(), predicted.grad.numpy()))
            for epochs in (1, run.size(20, 2)):  # the first fit loads code
                start = linear(train.X.shape[1], train.costs.shape[1])
                fit = timed(partial(adam, start, loss, 0, train.X, *known, epochs=epochs))
            fits.append(fit)
        apart = [f"{np.abs(own - other).max():.1g}" for own, other in zip(*found, strict=True)]
        risks = [f"{train.spo_plus(train.X @ fit.weight.detach().numpy().T):.6g}" for fit, _ in fits]
        row(name, len(train.X), *apart, *risks, f"{fits[1][1] / fits[0][1]:.1f}")


def padded(queries: Queries, values: np.ndarray, fill: float) -> np.ndarray:
    """(m, n) values of documents, or (m, n, d), a row a query."""
    sizes = np.diff(queries.offsets)
    table = np.full((sizes.size, sizes.max(), *values.shape[1:]), fill)
    table[np.arange(sizes.max()) < sizes[:, None]] = values
    return table


@case(packages=("torch",))
def layers(run: Run) -> None:
    """A network on nonlinear costs and the linear model; the ranking layer and the margin loss on MQ2008."""
    import torch

    from rankopt.torch import FenchelYoungLoss, PerturbedArgmax, RankingArgmax, SPOPlusLoss
    from rankopt.torch import MarginLoss as TorchMarginLoss

    row = table("shortest paths of degree 6, noise", "linear, regret %", "network", "p")
    for noise in run.size((0.0, 0.5), (0.5,)):
        found = []
        for seed in range(run.seed, run.seed + run.count(10, 2)):
            train, test = Instances.drawn("shortest-path", run.size(1000, 20), degree=6, noise=noise, seed=seed)
            model = DecisionRegressor(train.problem, fit_intercept=False).fit(train.X, train.costs)
            known = train.X, train.costs, train.oracle.optimal.decision
            own = adam(network(6, 40, seed), SPOPlusLoss(train.problem), seed, *known)
            with torch.no_grad():
                found.append([test.regret(model.predict(test.X)), test.regret(own(torch.tensor(test.X)).numpy())])
        values = 100.0 * np.array(found).T
        row(noise, *(f"{own.mean():.2f}" for own in values), p_value(*values, 4))

    layer, target = PerturbedArgmax(RankingArgmax()), RankingArgmax()
    margin, young = TorchMarginLoss("nDCG@10"), FenchelYoungLoss(layer)
    losses = {
        "margin loss": lambda scores, grades, here: margin(scores, grades, here),
        "ranking layer": lambda scores, grades, here: young(
            scores.masked_fill(~here, -np.inf), target(grades.masked_fill(~here, -np.inf))
        ),
    }
    for name in set_names(run, ("MQ2008",)):
        row, ranked = table(f"{name}, nDCG@10 on test", "linear", "network", "p of the linear ones"), {}
        for split in splits(name):
            train, test = (normalize(part, "zscore") for part in (split.train, split.test))
            model = LargeMarginRanker("nDCG@10").fit(train)
            ranked.setdefault(("LargeMarginRanker", ""), []).append(ndcg(test, model.predict(test)))
            X, grades = padded(train, train.features, 0.0), padded(train, train.relevance, -1.0)
            d = X.shape[2]
            for loss, kind in product(losses, ("linear", "network")):
                start = linear(d, 1) if kind == "linear" else network(d, 1, run.seed)
                score = torch.nn.Sequential(start, torch.nn.Flatten(1))
                epochs = run.size(30, 2)
                adam(score, losses[loss], run.seed, X, np.maximum(grades, 0.0), grades >= 0.0, epochs=epochs)
                with torch.no_grad():
                    scores = start(torch.tensor(test.features)).numpy().ravel()
                ranked.setdefault((loss, kind), []).append(ndcg(test, scores))
        joined = {key: np.concatenate(parts) for key, parts in ranked.items()}
        first = joined.pop(("LargeMarginRanker", ""))
        row("LargeMarginRanker", f"{first.mean():.4f}", "", "")
        for loss in losses:
            own = [joined[loss, kind] for kind in ("linear", "network")]
            row(loss, *(f"{one.mean():.4f}" for one in own), p_value(own[0], first))
