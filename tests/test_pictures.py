"""The gallery shows every picture that the example draws, with what it says of it, and nothing else."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/gallery.md").read_text(encoding="utf-8")


@pytest.mark.study
def test_every_picture_is_drawn_and_shown_with_its_finding(tmp_path):
    command = [sys.executable, "-W", "error", str(ROOT / "examples/pictures.py"), str(tmp_path / "made/here")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    drawn = {path.stem for path in (tmp_path / "made/here").glob("*.svg")}
    assert drawn == set(said) == {path.stem for path in (ROOT / "docs/images/gallery").glob("*.svg")}
    assert set(re.findall(r"!\[[^\]]+\]\(images/gallery/(\w+)\.svg\)", PAGE)) == drawn
    for name, finding in said.items():
        card = PAGE[PAGE.index(f"images/gallery/{name}.svg") :].split("-   [!")[0]
        assert finding in card, f"{name} says {finding!r}"
        assert f"`{name}`" in card
        for folder in (tmp_path / "made/here", ROOT / "docs/images/gallery"):
            assert ElementTree.parse(folder / f"{name}.svg").getroot().tag.endswith("svg")


def test_pictures_have_words_for_who_cannot_see_them():
    pictures = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", PAGE)
    assert len(pictures) == len({file for _, file in pictures})
    for told, file in pictures:
        assert len(told.split()) >= 4, file
        assert (ROOT / "docs" / file).is_file()
