"""Small data sets of queries that need no download.

A new sample needs a file, an entry in `SAMPLES` and its name in `SampleName`.
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal

from formulations.display import CompactReprMixin, wrapped
from formulations.registry import load
from rankopt.data.queries import Queries
from rankopt.errors import OptionError

SAMPLES = {
    "digits": "rankopt.data.samples.digits:digits",
    "les-miserables": "rankopt.data.samples.les_miserables:les_miserables",
}
"""Every sample of queries, `name: "module:function"`."""

SampleName = Literal["digits", "les-miserables"]
"""Names of samples; a test compares them with `SAMPLES`."""


SHOWN = 80
"""Characters of a description in the repr."""


@dataclass(frozen=True)
class Sample(CompactReprMixin):
    """Training queries, test queries and their description.

    No grade of a test query can be derived from the training data; `description` explains why.
    """

    train: Queries
    test: Queries
    description: str

    def __repr__(self) -> str:
        text = self.description if len(self.description) <= SHOWN else f"{self.description[:SHOWN]} ..."
        parts = f"Sample(train={self.train},", f"  test={self.test},", f"  description={text!r})"
        return "\n".join(map(wrapped, parts))


def load_sample(name: SampleName) -> Sample:
    """The sample of this name, the same on every machine and in every run. Raises OptionError for an unknown name."""
    if not isinstance(name, str) or name not in SAMPLES:
        raise OptionError(f"unknown sample {name!r}; available: {', '.join(map(repr, sorted(SAMPLES)))}.")
    return _made(name)


@cache
def _made(name: str) -> Sample:
    """The sample; cached, because samples take a second to build and are immutable."""
    sample: Sample = load(SAMPLES[name])()
    return sample
