"""Small data sets of queries that need no download.

The table is text: a new sample is one file and one line here, and its name among those for type checkers.
"""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Literal

from formulations.display import CompactReprMixin, wrapped
from rankopt.data.queries import Queries
from rankopt.errors import OptionError

SAMPLES = {
    "digits": "rankopt.data.samples.digits:digits",
    "les-miserables": "rankopt.data.samples.les_miserables:les_miserables",
}
"""Every sample of queries, `name: "module:function"`."""

SampleName = Literal["digits", "les-miserables"]
"""Their names as types; a test holds them to the tables."""


TOLD = 80
"""Characters of a description that a prompt shows."""


@dataclass(frozen=True)
class Sample(CompactReprMixin):
    """Queries to learn from, other queries to test on, and what they are.

    No grade of a test query can be read off the training data: `description` says how that is ensured.
    """

    train: Queries
    test: Queries
    description: str

    def __repr__(self) -> str:
        told = self.description if len(self.description) <= TOLD else f"{self.description[:TOLD]} ..."
        parts = f"Sample(train={self.train},", f"  test={self.test},", f"  description={told!r})"
        return "\n".join(map(wrapped, parts))


def load_sample(name: SampleName) -> Sample:
    """The sample of this name, the same on every machine and in every run. Raises OptionError for an unknown name."""
    if name not in SAMPLES:
        raise OptionError(f"unknown sample {name!r}; available: {', '.join(map(repr, sorted(SAMPLES)))}.")
    sample: Sample = _once(SAMPLES[name])
    return sample


@cache
def _once(place: str) -> Any:
    """Samples take a second to make and cannot be changed."""
    module, function = place.split(":")
    return getattr(import_module(module), function)()
