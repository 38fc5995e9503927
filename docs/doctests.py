"""An extension of griffe: the examples of docstrings are blocks of code on the API pages."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

EXAMPLE = re.compile(r"^>>> .*?(?=^\s*$|\Z)", flags=re.MULTILINE | re.DOTALL)


class Doctests(Extension):
    """Fence each example outside of a section "Examples"."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring is not None and "\nExamples\n---" not in obj.docstring.value:
            obj.docstring.value = EXAMPLE.sub(
                lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", obj.docstring.value
            )
