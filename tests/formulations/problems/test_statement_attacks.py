"""Mutated statement files."""

import pytest
from planted.attack import assert_survived


@pytest.mark.parametrize("tries", [60, pytest.param(300, marks=pytest.mark.study)])
def test_statement_files_that_are_changed(tries):
    assert_survived("statements", tries, seed=11)
