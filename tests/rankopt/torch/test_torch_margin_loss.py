"""The loss for PyTorch: the values of `ScoreLoss`, its slope for a gradient, padded and flat, one derivative only."""

import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rankopt.errors import DataError, OptionError
from rankopt.losses import BOUNDS, ScoreLoss

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="the extra 'torch' is not installed")


@pytest.fixture(scope="module", autouse=True)
def loaded():
    """PyTorch takes seconds to load: whoever runs these tests loads it, not whoever reads this file."""
    global torch, MarginLoss
    import torch

    from rankopt.torch import MarginLoss


def drawn(seed, queries=6, longest=7, tied=False):
    """Padded scores and grades, with a mask; some queries have nothing to order, one has no document."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, longest + 1, queries)
    sizes[0] = 0
    mask = np.arange(longest) < sizes[:, None]
    scores = rng.integers(-1, 2, mask.shape).astype(float) if tied else rng.normal(size=mask.shape)
    grades = rng.integers(0, 3, mask.shape).astype(float)
    grades[1] = 1.0
    return scores, grades, mask


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("tied", [False, True])
def test_values_and_gradients_are_those_of_the_score_loss(bound, tied):
    scores, grades, mask = drawn(0, tied=tied)
    offsets = np.append(0, np.cumsum(mask.sum(axis=1)))
    expected = ScoreLoss("nDCG@3", bound, "log").bind(grades[mask], offsets=offsets).at(scores[mask])
    weights = torch.arange(1.0, 7.0, dtype=torch.float64)
    padded = torch.tensor(np.where(mask, scores, np.nan), requires_grad=True)
    loss = MarginLoss("nDCG@3", bound, "log", reduction="none")
    found = loss(padded, torch.tensor(np.where(mask, grades, -1.0)), mask=torch.tensor(mask))
    assert_array_equal(found.detach().numpy(), expected.value)
    (found * weights).sum().backward()
    query = np.repeat(np.arange(6), mask.sum(axis=1))
    assert_array_equal(padded.grad.numpy()[mask], expected.slope * (query + 1))
    assert_array_equal(padded.grad.numpy()[~mask], 0.0)
    flat = torch.tensor(scores[mask], requires_grad=True)
    assert_array_equal(loss(flat, grades[mask], offsets=offsets).detach().numpy(), expected.value)
    for reduction, value in (("mean", expected.mean), ("sum", expected.value.sum())):
        alone = MarginLoss("nDCG@3", bound, "log", reduction)(flat, torch.tensor(grades[mask]), offsets=offsets)
        assert alone.shape == ()
        assert alone.item() == pytest.approx(value, rel=1e-15)
    (gradient,) = torch.autograd.grad(alone, flat)
    assert_array_equal(gradient.numpy(), expected.slope)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_is_the_difference_quotient_to_1e_9(bound, seed):
    """Away from kinks the loss is linear: the quotient of a step within one piece is exact up to rounding."""
    scores, grades, mask = drawn(seed)
    loss = MarginLoss("nDCG@4", bound)
    given = torch.tensor(scores, requires_grad=True)
    loss(given, grades, torch.tensor(mask)).backward()
    slope, step = given.grad.numpy(), 1e-5
    for q, j in np.argwhere(mask):
        ends = []
        for sign in (1, -1):
            moved = scores.copy()
            moved[q, j] += sign * step
            ends.append(loss(torch.tensor(moved), grades, torch.tensor(mask)).item())
        assert abs((ends[0] - ends[1]) / (2 * step) - slope[q, j]) < 1e-9
    assert torch.autograd.gradcheck(
        lambda given: loss(given, grades, torch.tensor(mask)), given, eps=1e-5, atol=1e-9, rtol=0.0
    )
    assert_allclose(np.where(mask, slope, 0).sum(axis=1), 0.0, atol=1e-15)


def test_a_second_derivative_is_refused_and_says_why():
    scores, grades, mask = drawn(1)
    given = torch.tensor(scores, requires_grad=True)
    value = MarginLoss()(given, grades, torch.tensor(mask))
    (gradient,) = torch.autograd.grad(value, given, create_graph=True)
    with pytest.raises(OptionError, match="no second derivative because it is piecewise linear"):
        (gradient**2).sum().backward()
    value = MarginLoss()(given, grades, torch.tensor(mask))
    value.backward()
    value = MarginLoss(reduction="sum")(2.0 * given, grades, torch.tensor(mask))
    value.backward()  # once more, of another graph


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
def test_dtype_and_device_are_kept(dtype):
    scores, grades, mask = drawn(2)
    given = torch.tensor(scores, dtype=getattr(torch, dtype), requires_grad=True)
    value = MarginLoss()(given, torch.tensor(grades, dtype=torch.int64), torch.tensor(mask))
    value.backward()
    assert value.dtype == given.grad.dtype == given.dtype
    assert value.device == given.device
    rounded = given.detach().double().numpy()
    offsets = np.append(0, np.cumsum(mask.sum(axis=1)))
    expected = ScoreLoss().bind(grades[mask], offsets=offsets).at(rounded[mask])
    assert value.item() == pytest.approx(expected.mean, rel=2e-2 if "16" in dtype else 1e-6)
    if torch.cuda.is_available():
        moved = given.detach().cuda().requires_grad_()
        MarginLoss()(moved, torch.tensor(grades).cuda(), torch.tensor(mask).cuda()).backward()
        assert moved.grad.device == moved.device


def test_batches_with_nothing_to_order_lose_nothing():
    given = torch.zeros(2, 3, requires_grad=True)
    for reduction, shape in (("mean", ()), ("sum", ()), ("none", (2,))):
        value = MarginLoss(reduction=reduction)(given, torch.ones(2, 3))
        assert value.shape == shape
        assert not value.any()
        value.sum().backward()
    assert not given.grad.any()
    empty = torch.zeros(0, 4, requires_grad=True)
    assert MarginLoss()(empty, torch.zeros(0, 4)).item() == 0.0
    one = MarginLoss()(torch.tensor([0.0, 1.0, 2.0]), [2, 1, 0])
    assert one.item() == MarginLoss()(torch.tensor([[0.0, 1.0, 2.0]]), [[2, 1, 0]]).item() > 0


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        (lambda: {"scores": np.zeros((2, 3))}, OptionError, "scores of ndarray have no gradient"),
        (lambda: {"scores": torch.zeros(2, 3, dtype=torch.int64)}, OptionError, "torch.int64"),
        (lambda: {"relevance": torch.zeros(3)}, DataError, "relevance has shape"),
        (lambda: {"relevance": -torch.ones(2, 3)}, DataError, "pass mask=relevance >= 0"),
        (lambda: {"mask": torch.ones(2, 2, dtype=torch.bool)}, DataError, "mask is bool of shape"),
        (lambda: {"mask": torch.ones(2, 3)}, DataError, "mask is float32"),
        (lambda: {"offsets": [0, 3, 6]}, DataError, "offsets apply to flat scores"),
        (lambda: {"scores": torch.full((2, 3), torch.nan)}, DataError, "nan; scores must be finite"),
        (lambda: {"scores": torch.zeros(1, 2, 3), "relevance": torch.zeros(1, 2, 3)}, DataError, "are no queries"),
    ],
)
def test_what_does_not_fit_is_refused(given, error, says):
    asked = {"scores": torch.zeros(2, 3), "relevance": torch.tensor([[0.0, 1, 2], [2, 1, 0]]), **given()}
    with pytest.raises(error, match=says):
        MarginLoss()(**asked)


def test_options_and_offsets_are_checked():
    for options in ({"measure": "MeanNDCG"}, {"bound": "loose"}, {"position_weights": "steep"}, {"reduction": "max"}):
        with pytest.raises(OptionError):
            MarginLoss(**options)
    with pytest.raises(DataError, match="do not cut"):
        MarginLoss()(torch.zeros(4), torch.zeros(4), offsets=[0, 3])
    with pytest.raises(DataError, match="cannot be combined with offsets"):
        MarginLoss()(torch.zeros(4), torch.zeros(4), torch.tensor([True, True, True, False]), [0, 2, 4])


def test_nothing_loads_torch_before_it_is_called():
    script = (
        "import sys, rankopt, rankopt.torch; from rankopt.torch import MarginLoss; MarginLoss(); "
        "assert 'torch' not in sys.modules; sys.modules['torch'] = None\n"
        "try:\n    MarginLoss()([0.0], [1.0])\n"
        "except ValueError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install 'rankopt[torch]'" in done.stdout
