"""Here `exact` is compiled whatever the size, so that brute force meets the kernels; `test_by_assignment` asks for the
ways of small batches itself."""

import pytest


@pytest.fixture(autouse=True)
def compiled_ways(monkeypatch):
    monkeypatch.setattr("formulations.solvers.exact.is_small", lambda offsets: False)
    monkeypatch.setattr("formulations.argmax.batch.is_small", lambda offsets: False)
    monkeypatch.setattr("formulations.argmax.batch.FEW_OPEN", -1)
