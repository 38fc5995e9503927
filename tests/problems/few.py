"""Tests that go over many cases in a loop: some cases are always met, all of them as a study."""

import pytest


def few(cases, every, first=0, name="seeds"):
    """Parametrizes `name`: by one in `every` of the cases from `first` on, and by all as a study."""
    every_case = pytest.param(cases, marks=pytest.mark.study)
    return pytest.mark.parametrize(name, [cases[first::every], every_case], ids=["few", "all"])
