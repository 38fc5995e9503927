"""Workers that are killed, stopped and slowed at random moments, some tries of each."""

import pytest
from problems.attacks import assert_survived


@pytest.mark.study
def test_workers_that_are_hit():
    assert_survived("engines", 6, seed=11)
