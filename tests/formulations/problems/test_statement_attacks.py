"""Mutated statement files."""

from problems.attacks import assert_survived


def test_statement_files_that_are_changed():
    assert_survived("statements", 300, seed=11)
