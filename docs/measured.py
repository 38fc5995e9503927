"""The pages of `benchmarks/` as pages of the site, so that the documentation links to what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel

HERE = Path(__file__).parent
MEASURED = HERE.parent / "benchmarks"


def on_files(files: Files, config: Any) -> Files:
    """Add each page, with the pictures of this folder where the site has them; the navigation lists the first alone."""
    for path in sorted(MEASURED.rglob("*.md")):
        place = path.relative_to(MEASURED.parent).as_posix()
        text = path.read_text(encoding="utf-8").replace("](../docs/", "](../")
        page = File.generated(config, place, content=text)
        page.inclusion = InclusionLevel.INCLUDED if place == "benchmarks/README.md" else InclusionLevel.NOT_IN_NAV
        files.append(page)
    return files
