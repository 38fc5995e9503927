"""Layers and losses for PyTorch: gradients by differences or by the expectation that defines them; optimality."""

import copy
import pickle
from functools import partial
from itertools import permutations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems.decisions import KINDS, sign_of
from scipy.stats import norm
from sklearn.isotonic import IsotonicRegression

from formulations import LinearProgram
from rankopt.errors import DataError, MeasureError, OptionError
from rankopt.losses import LOSSES, get_loss
from rankopt.losses.listwise import NeuralNDCG
from rankopt.torch import FenchelYoungLoss, PerturbedArgmax, RankingArgmax, RankingLoss, SparseMAP, SPOPlusLoss


@pytest.fixture(scope="module")
def torch():
    """PyTorch takes seconds to load: only these tests load it."""
    return pytest.importorskip("torch")


VERTICES = np.random.default_rng(0).permutation(np.array(list(product([0.0, 1.0], repeat=4))))[:9]


def by_enumeration(scores):
    return VERTICES[(scores @ VERTICES.T).argmax(axis=1)]


def hypercube(scores):
    return (scores > 0).astype(float)


def first(scores):
    """Of the unit vectors."""
    return np.eye(scores.shape[1])[scores.argmax(axis=1)]


def drawn(torch, seed=0, m=5, n=4):
    rng = np.random.default_rng(seed)
    return torch.tensor(rng.normal(size=(m, n)), requires_grad=True), VERTICES[rng.integers(0, 9, m)]


def differences_agree(torch, function, *given, step=1e-6):
    return torch.autograd.gradcheck(function, given, eps=step, atol=1e-6, rtol=1e-5)


# Losses of queries by name


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "smooth"])
def test_losses_by_name_have_the_values_and_slopes_of_numpy_padded_and_flat(torch, name):
    rng = np.random.default_rng(3)
    mask = np.arange(6) < np.array([0, 4, 6, 2, 5])[:, None]
    grades, scores = rng.integers(0, 3, mask.shape).astype(float), rng.normal(size=mask.shape)
    grades[3] = 1.0  # nothing to order
    grades[[1, 2, 4], 0], grades[[1, 2, 4], 1] = 0.0, 2.0
    used = mask & (np.arange(5) != 3)[:, None]
    offsets = np.append(0, np.cumsum(used.sum(axis=1)[[1, 2, 4]]))
    if name in ("lambdaloss", "approx-ndcg", "neural-ndcg"):
        expected = get_loss(name)(grades[used], offsets).gradient(scores[used])
        value, slope = expected.value, expected.slope
    else:
        expected = RankingLoss(name)._bind(grades[used], offsets).at(scores[used])
        value, slope = expected.value, expected.slope
    padded = torch.tensor(np.where(mask, scores, np.nan), requires_grad=True)
    found = RankingLoss(name, "none")(padded, grades, torch.tensor(mask))
    assert_array_equal(found.detach().numpy(), [0.0, value[0], value[1], 0.0, value[2]])
    found.sum().backward()
    assert_array_equal(padded.grad.numpy()[used], slope)
    assert not padded.grad.numpy()[~used].any()
    flat = torch.tensor(scores[mask], requires_grad=True)
    bounds = np.append(0, np.cumsum(mask.sum(axis=1)))
    assert RankingLoss(name)(flat, grades[mask], offsets=bounds).item() == pytest.approx(value.mean(), rel=1e-12)
    assert differences_agree(torch, lambda s: RankingLoss(name, "none")(s, grades[mask], offsets=bounds), flat)


def test_a_loss_of_ones_own_and_options_of_losses_are_taken(torch):
    scores, grades = torch.tensor([[0.3, -0.2, 0.1]]), np.array([[2.0, 0.0, 1.0]])
    cold = RankingLoss(partial(NeuralNDCG, temperature=0.01))(scores, grades)
    assert abs(cold.item()) < 1e-6 < RankingLoss("neural-ndcg")(scores, grades).item()
    for wrong in ({"loss": "listnett"}, {"loss": 3}, {"reduction": "max"}):
        with pytest.raises(OptionError):
            RankingLoss(**wrong)
    with pytest.raises(DataError, match="scores must be finite"):
        RankingLoss()(scores * np.nan, grades)


def test_losses_without_gains_take_any_grades_and_others_those_of_finite_gain(torch):
    scores, grades = torch.tensor([[0.3, -0.2, 0.1]], dtype=torch.float64), np.array([[2000.0, 0.0, 1.0]])
    assert RankingLoss("listnet")(scores, grades).item() == pytest.approx(-torch.log_softmax(scores, 1)[0, 0].item())
    with pytest.raises(MeasureError, match="overflows for the grade 2000"):
        RankingLoss("lambdaloss")(scores, grades)


# Layers


def test_the_mean_and_the_jacobian_of_perturbed_argmax_are_their_expectations(torch):
    """In closed form: y_ε = Φ(θ/ε) on the hypercube; for two multiplied costs Φ(log(θ_1/θ_2) / (ε √2))."""
    theta = torch.tensor([[0.3, -0.4, 1.0]], dtype=torch.float64, requires_grad=True)
    y = PerturbedArgmax(hypercube, epsilon=0.7, samples=100_000, random_state=0)(theta)
    weights = torch.tensor([1.0, 2.0, -3.0], dtype=torch.float64)
    (gradient,) = torch.autograd.grad((y * weights).sum(), theta)
    ratio = theta.detach().numpy() / 0.7
    assert_allclose(y.detach().numpy(), norm.cdf(ratio), atol=0.006)
    assert_allclose(gradient.numpy(), weights.numpy() * norm.pdf(ratio) / 0.7, atol=0.03)
    theta = torch.tensor([[1.5, 2.0]], dtype=torch.float64, requires_grad=True)
    layer = PerturbedArgmax(first, epsilon=0.5, samples=100_000, perturbation="multiplicative", random_state=0)
    y = layer(theta)
    (gradient,) = torch.autograd.grad(y[0, 0], theta)
    ratio = np.log(1.5 / 2.0) / (0.5 * np.sqrt(2.0))
    assert_allclose(y[0].detach().numpy(), [norm.cdf(ratio), 1 - norm.cdf(ratio)], atol=0.006)
    expected = norm.pdf(ratio) / (0.5 * np.sqrt(2.0)) * np.array([1 / 1.5, -1 / 2.0])
    assert_allclose(gradient.numpy()[0], expected, atol=0.03)


@pytest.mark.parametrize("perturbation", ["additive", "multiplicative"])
def test_the_fenchel_young_loss_has_the_gradient_of_its_value(torch, perturbation):
    """With the same noise F is piecewise linear, and the mean of the maximizers its gradient."""
    theta, y = drawn(torch)

    def loss(theta):
        layer = PerturbedArgmax(by_enumeration, epsilon=0.5, samples=7, random_state=3, perturbation=perturbation)
        return FenchelYoungLoss(layer, "none")(theta, y)

    assert differences_agree(torch, loss, theta, step=1e-7)
    if perturbation == "additive":
        layer = PerturbedArgmax(by_enumeration, epsilon=0.5, samples=7, random_state=3)
        (gradient,) = torch.autograd.grad(loss(theta).sum(), theta)
        assert_allclose(gradient.numpy(), layer(theta).detach().numpy() - y, atol=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_sparsemap_is_the_nearest_point_of_the_hull(torch, seed):
    """Variational inequality: (θ - y)ᵀ(v - y) <= 0 for every vertex v; a target of the hull has loss 0."""
    theta, y = drawn(torch, seed)
    layer = SparseMAP(by_enumeration)
    found, scores = layer(theta).detach().numpy(), theta.detach().numpy()
    slack = np.einsum("mn,mvn->mv", scores - found, VERTICES - found[:, None])
    assert slack.max() <= 1e-9
    assert differences_agree(torch, layer, theta)
    loss = FenchelYoungLoss(layer, "none")
    assert differences_agree(torch, lambda theta: loss(theta, y), theta)
    assert (loss(theta, y).detach().numpy() >= -1e-9).all()
    assert_allclose(loss(theta, found).detach().numpy(), 0.0, atol=1e-9)


def test_sparsemap_of_known_hulls(torch):
    """The simplex: sparsemax. Rankings: the permutahedron, whose projection is an isotonic regression."""
    scores = np.random.default_rng(1).normal(size=(20, 6))
    theta = torch.tensor(scores)
    falling = -np.sort(-scores, axis=1)
    threshold = ((np.cumsum(falling, axis=1) - 1) / np.arange(1, 7)).max(axis=1, keepdims=True)
    assert_allclose(SparseMAP(first)(theta).numpy(), np.maximum(scores - threshold, 0.0), atol=1e-9)
    weights = np.arange(1.0, 7.0) ** -0.5
    for found, row in zip(SparseMAP(RankingArgmax())(theta).numpy(), scores, strict=True):
        order = np.argsort(-row)
        fitted = IsotonicRegression(increasing=False).fit_transform(np.arange(6), row[order] - weights)
        assert_allclose(found[order], row[order] - fitted, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_spo_plus_is_the_formula_above_the_nonconvex_bound_above_the_regret(torch, seed):
    predicted, _ = drawn(torch, seed, m=8)
    profit = np.random.default_rng(seed + 10).normal(size=(8, 4))
    p, values = predicted.detach().numpy(), VERTICES @ profit.T
    best = values.argmax(axis=0)
    formula = (VERTICES @ (2 * p - profit).T).max(axis=0) + values.max(axis=0) - 2 * (p * VERTICES[best]).sum(axis=1)
    regret = values.max(axis=0) - (by_enumeration(p) * profit).sum(axis=1)
    convex, tight = (SPOPlusLoss(by_enumeration, bound=bound, reduction="none") for bound in ("convex", "nonconvex"))
    found = convex(predicted, profit)
    assert_allclose(found.detach().numpy(), formula, atol=1e-12)
    assert_array_equal(convex(predicted, profit, VERTICES[best]).detach().numpy(), found.detach().numpy())
    middle = tight(predicted, profit).detach().numpy()
    assert (found.detach().numpy() >= middle - 1e-12).all()
    assert (middle >= regret - 1e-12).all()
    for loss in (convex, tight):
        assert differences_agree(torch, lambda p, loss=loss: loss(p, profit), predicted)


def test_rankings_are_assignments_of_position_weights():
    weights = np.array([3.0, 2.0, 0.5, 0.0])
    scores = np.random.default_rng(0).normal(size=(5, 4))
    found = RankingArgmax(weights)(scores)
    for row, y in zip(scores, found, strict=True):
        assert row @ y == pytest.approx(max(row @ weights[list(order)] for order in permutations(range(4))))
    padded = np.where(np.arange(6) < 4, np.pad(scores, ((0, 0), (0, 2))), -np.inf)
    assert_array_equal(RankingArgmax(weights)(padded), np.pad(found, ((0, 0), (0, 2))))
    tied = RankingArgmax(weights)(np.array([[1.0, 2.0, 1.0, 0.0]]))
    assert_array_equal(tied, [[1.25, 3.0, 1.25, 0.0]])


@pytest.mark.parametrize("layer", [PerturbedArgmax(RankingArgmax(), random_state=0), SparseMAP(RankingArgmax())])
def test_padding_has_no_weight_and_no_gradient(torch, layer):
    scores, mask = (
        torch.tensor([[0.2, 0.1, 7.0], [0.3, -0.1, 0.4]], requires_grad=True),
        np.array([[1, 1, 0], [1, 1, 1]]),
    )
    theta = scores.masked_fill(torch.tensor(mask == 0), -torch.inf)
    grades = np.where(mask, [[1.0, 0.0, 0.0], [2.0, 0.0, 1.0]], -np.inf)
    y = layer(theta)
    loss = FenchelYoungLoss(layer)(theta, RankingArgmax()(grades)) + (y * torch.tensor([1.0, 2.0, 3.0])).sum()
    loss = loss + sum(SPOPlusLoss(RankingArgmax(), bound=bound)(theta, grades) for bound in ("convex", "nonconvex"))
    loss.backward()
    assert y.dtype == scores.dtype
    assert y[0, 2] == scores.grad[0, 2] == 0.0
    assert torch.isfinite(loss)
    assert torch.isfinite(scores.grad).all()


@pytest.mark.parametrize("kind", KINDS)
def test_layers_of_problems_are_those_of_their_points(torch, kind):
    """A problem that minimizes has costs for scores."""
    rng = np.random.default_rng(4)
    problem, points = KINDS[kind](rng)
    sign = sign_of(problem)
    scores = torch.tensor(rng.normal(size=(3, points.shape[1])), requires_grad=True)
    costs = rng.normal(size=scores.shape)

    def among_points(given):
        return points[(given @ points.T).argmax(axis=1)]

    def evaluated(argmax, sign):
        layers = [PerturbedArgmax(argmax, samples=4, random_state=0), SparseMAP(argmax)]
        values = [layer(sign * scores) for layer in layers]
        target = among_points(sign_of(problem) * costs)
        values += [FenchelYoungLoss(layer)(sign * scores, target) for layer in layers]
        values += [SPOPlusLoss(argmax, bound=bound)(sign * scores, sign * costs) for bound in ("convex", "nonconvex")]
        total = sum((value * value).sum() for value in values)
        return [*values, torch.autograd.grad(total, scores)[0]]

    for found, expected in zip(evaluated(problem, 1.0), evaluated(among_points, sign), strict=True):
        assert_allclose(found.detach().numpy(), expected.detach().numpy(), atol=1e-6)


def test_a_network_beats_a_linear_model_on_nonlinear_costs(torch):
    """Pick one of 5, the profit of each is |xᵀa|. The module is one of Lightning: training_step, optimizers."""
    rng = np.random.default_rng(0)
    x, direction = rng.normal(size=(300, 5, 3)), np.array([1.0, -2.0, 0.5])
    profit = np.abs(x @ direction)
    train, test = slice(0, 200), slice(200, None)

    class Model(torch.nn.Module):
        def __init__(self, *layers):
            super().__init__()
            self.net = torch.nn.Sequential(*layers)
            self.loss = SPOPlusLoss(first)

        def training_step(self, batch, index):
            return self.loss(self.net(batch[0]).squeeze(-1), batch[1])

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.02)

    def regret(model):
        optimizer, batch = model.configure_optimizers(), (torch.tensor(x[train]), torch.tensor(profit[train]))
        for step in range(150):
            optimizer.zero_grad()
            model.training_step(batch, step).backward()
            optimizer.step()
        with torch.no_grad():
            chosen = first(model.net(torch.tensor(x[test])).squeeze(-1).numpy())
        return (profit[test].max(axis=1) - (chosen * profit[test]).sum(axis=1)).mean()

    torch.manual_seed(0)
    linear = regret(Model(torch.nn.Linear(3, 1)).double())
    network = Model(torch.nn.Linear(3, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)).double()
    assert regret(network) < linear / 5
    batch = torch.tensor(x), torch.tensor(profit)
    assert copy.deepcopy(network).training_step(batch, 0).item() == network.training_step(batch, 0).item()
    assert pickle.loads(pickle.dumps(network.loss))(*batch[1:] * 2).item() == 0.0


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_losses_of_an_empty_batch_are_zero(torch, reduction):
    theta = torch.zeros(0, 3, requires_grad=True)
    for loss in (FenchelYoungLoss(SparseMAP(first), reduction), SPOPlusLoss(first, reduction=reduction)):
        found = loss(theta, np.zeros((0, 3)))
        found.backward()
        assert found.item() == 0.0
        assert theta.grad.shape == (0, 3)


def test_what_does_not_fit_is_refused(torch):
    theta = torch.zeros(2, 3, requires_grad=True)
    for wrong in (
        {"epsilon": 0.0}, {"samples": 1}, {"perturbation": "gaussian"}, {"argmax": 3}, {"argmax": LinearProgram},
    ):  # fmt: skip
        with pytest.raises(OptionError):
            PerturbedArgmax(**{"argmax": first, **wrong})
    with pytest.raises(OptionError, match="layer must be"):
        FenchelYoungLoss(first)
    with pytest.raises(OptionError, match="bound must be"):
        SPOPlusLoss(first, bound="tight")
    with pytest.raises(DataError, match="one finite vertex for each row"):
        SparseMAP(lambda scores: scores[:1])(theta)
    pair = LinearProgram(np.ones(2), np.ones((1, 2)), np.ones(1), np.ones(1), np.zeros(2), np.ones(2))
    with pytest.raises(DataError, match="one a variable of the problem"):
        SparseMAP(pair)(theta)
    for empty in (theta[:, :0], theta[0, 0]):
        with pytest.raises(DataError, match="n > 0"):
            SparseMAP(first)(empty)
    with pytest.raises(DataError, match="below inf"):
        SparseMAP(first)(theta * np.nan)
    with pytest.raises(DataError, match=r"costs must be numbers of the shape \(2, 3\)"):
        SPOPlusLoss(first)(theta, np.zeros((3, 2)))
    with pytest.raises(OptionError, match="floating-point tensor"):
        SparseMAP(first)(np.zeros((2, 3)))
    (gradient,) = torch.autograd.grad(SparseMAP(first)(theta).sum(), theta, create_graph=True)
    with pytest.raises(OptionError, match="SparseMAP has no second derivative"):
        gradient.sum().backward()
