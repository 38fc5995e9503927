"""What NumPy does while compiling does not pay, kernels do bit for bit."""

import numpy as np
import pytest

from formulations import ranking
from formulations.compiled import CACHE_GAIN, PAYS, Kernel
from formulations.parallel import at_most
from formulations.solvers import get_solver
from rankopt.losses import get_bound
from rankopt.losses import oracle_positional as references
from rankopt.losses import pairwise as pairwise_kernel
from rankopt.losses import segment_ops as ties
from rankopt.losses.margin import MarginLoss
from rankopt.losses.oracle_positional import PositionalOracle
from rankopt.losses.pairwise import PairwiseHinge


@pytest.fixture(params=range(12))
def case(request):
    random = np.random.default_rng(request.param)
    lengths = random.integers(1, 30, 12)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    n = int(offsets[-1])
    scores = random.normal(size=n) if request.param % 3 else random.integers(-2, 3, n) / 2.0
    scores[random.random(n) < 0.1] = -0.0
    gain = random.integers(0, 4, n) / 3.0
    return random, offsets, scores, gain


def compiled(monkeypatch, yes):
    monkeypatch.setattr("formulations.compiled.PAYS", -1 if yes else 1 << 60)


def both(monkeypatch, work):
    """What `work` returns with the kernels and with NumPy."""
    found = []
    for yes in (True, False):
        compiled(monkeypatch, yes)
        with at_most(1):
            found.append(work())
    return found


def assert_same_bits(one, other):
    assert len(one) == len(other)
    for x, y in zip(one, other, strict=True):
        assert np.array_equal(np.asarray(x) + 0.0, np.asarray(y) + 0.0)
        assert x.tobytes() == y.tobytes() or not (np.asarray(x) != 0).all()  # only zeros may differ, in their sign


def argmax_of(offsets, gain, position_weights):
    weights = {"power": lambda n: np.arange(1.0, n + 1) ** -0.5, "cut": lambda n: (np.arange(n) < 3) * 1.0}
    problem = ranking(
        np.zeros(gain.size), gain, discount=weights["cut"], position_weights=weights[position_weights], offsets=offsets
    )
    return PositionalOracle(problem, get_solver("exact"))


@pytest.mark.parametrize("position_weights", ["power", "cut"])
@pytest.mark.parametrize("bound", ["convex", "tie-aware", "nonconvex"])
def test_a_margin_loss_is_the_same_to_the_bit(case, position_weights, bound, monkeypatch):
    _, offsets, scores, gain = case
    argmax = argmax_of(offsets, gain, position_weights)

    def work():
        at = MarginLoss.build(argmax, get_bound(bound)).at(scores)
        return at.value, at.bound, at.height, at.assigned, at.reference

    assert_same_bits(*both(monkeypatch, work))


def test_shared_slopes_are_the_same_to_the_bit(case, monkeypatch):
    random, offsets, scores, gain = case
    slope = random.random(scores.size) * (random.random(scores.size) < 0.7)
    kind = ties.alike(offsets, gain)
    assert_same_bits(*both(monkeypatch, lambda: (ties.shared(slope.copy(), scores, kind, offsets),)))


def test_pairs_are_counted_alike(case, monkeypatch):
    random, offsets, scores, _ = case
    scores = np.round(scores * 4) / 4  # many differences of exactly one
    relevance = random.integers(0, 3, scores.size).astype(float)
    relevance[offsets[:-1]] = 3.0
    keep = np.diff(offsets) > 1
    rows = np.repeat(keep, np.diff(offsets))
    offsets = np.concatenate([[0], np.cumsum(np.diff(offsets)[keep])])
    loss = PairwiseHinge(relevance[rows], offsets)

    def work():
        at = loss.at(scores[rows])
        return at.value, at.height, at.assigned

    assert_same_bits(*both(monkeypatch, work))


def test_a_kernel_is_compiled_once_it_pays(monkeypatch):
    monkeypatch.setattr("formulations.compiled.PAYS", 30_000)
    monkeypatch.setattr("formulations.compiled.CALL", 0)
    monkeypatch.setattr("formulations.compiled.CACHE_GAIN", 0)
    for kernel in (references._scatter, pairwise_kernel.count_violations, ties.share_range):
        monkeypatch.setattr(kernel, "_spared", 0)
        assert [kernel.pays(10_000) for _ in range(5)] == [False, False, False, True, True]


def test_code_on_disk_pays_sooner(monkeypatch):
    monkeypatch.setattr("formulations.compiled.CALL", 0)
    kernel = references._scatter
    kernel.ready()
    for kept, sooner in ((True, True), (False, False)):
        monkeypatch.setattr(kernel, "_spared", PAYS / CACHE_GAIN)
        monkeypatch.setitem(kernel.__dict__, "_is_cached", kept)
        assert kernel.pays(1) == sooner
        monkeypatch.setattr(Kernel, "running", False)
        assert not kernel.pays(1)
        monkeypatch.undo()
        monkeypatch.setattr("formulations.compiled.CALL", 0)
