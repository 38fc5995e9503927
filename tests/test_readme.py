"""Every Python block of the README runs as it stands."""

import re
from pathlib import Path

import matplotlib
import pytest

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=[f"block {i}" for i in range(len(BLOCKS))])
def test_block_runs(block):
    matplotlib.use("Agg")
    exec(compile(block, "README.md", "exec"), {})


def test_the_two_commands_stand_alone():
    assert len(re.findall(r"^pip install .* && .*$", README, flags=re.MULTILINE)) == 2
