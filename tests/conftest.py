"""Fixtures shared by all tests."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data sets, from the variable RANKOPT_DATA."""
    folder = os.environ.get("RANKOPT_DATA")
    if folder is None:
        pytest.skip("RANKOPT_DATA is not set: it names the folder of the real data sets")
    return Path(folder)
