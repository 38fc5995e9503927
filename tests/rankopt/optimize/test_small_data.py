"""Small data train without compiled code, unless their masters are large: features of other scales make them so."""

import numpy as np
import pytest

from formulations.active_set.solver import ascend
from formulations.compiled import Kernel
from rankopt.rankers import PairwiseRanker


def drawn(features, scales):
    random = np.random.default_rng(0)
    X = random.normal(size=(8 * 60, features)) * 10.0 ** random.uniform(-scales, scales, features)
    y = np.clip(np.round(X @ (random.normal(size=features) / np.abs(X).max(axis=0))), 0, 2)
    return X, y, [60] * 8


@pytest.mark.every(5)
@pytest.mark.parametrize(("features", "scales", "compiled"), [(20, 0.0, False), (120, 4.0, True)])
def test_masters_of_small_data_are_compiled_where_many_planes_may_carry_weight(monkeypatch, features, scales, compiled):
    taken = []
    told = type(ascend).__call__
    monkeypatch.setattr(Kernel, "__call__", lambda kernel, *given: (taken.append(kernel), told(kernel, *given))[1])
    X, y, group = drawn(features, scales)
    ranker = PairwiseRanker(lam=1e-3).fit(X, y, group=group)
    assert (ascend in taken) == compiled
    assert ranker.certificate_.gap <= 1e-3 * ranker.certificate_.primal
