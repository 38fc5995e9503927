"""Mutated models and killed runs, some tries of each."""

import pytest
from planted.attack import assert_survived


@pytest.mark.study
@pytest.mark.parametrize(("name", "tries"), [("models", 300), ("recovery", 8)])
def test_files_that_are_changed_and_runs_that_are_killed(name, tries):
    assert_survived(name, tries, seed=11)
