"""Small real data sets that need no download.

The table is text: a new sample is one file and one line here.
"""

from dataclasses import dataclass
from importlib import import_module

from rankopt.data.queries import Queries
from rankopt.errors import OptionError

SAMPLES = {
    "digits": "rankopt.data.samples.digits:digits",
    "les-miserables": "rankopt.data.samples.les_miserables:les_miserables",
}
"""Every sample, `name: "module:function"`."""


@dataclass(frozen=True)
class Sample:
    """Queries to learn from, other queries to test on, and what they are.

    No grade of a test query can be read off the training data: `description` says how that is ensured.
    """

    train: Queries
    test: Queries
    description: str


def load_sample(name: str) -> Sample:
    """The sample of this name, the same on every machine and in every run. Raises OptionError for an unknown name."""
    if name not in SAMPLES:
        raise OptionError(f"{name!r} is no sample; there are {', '.join(map(repr, sorted(SAMPLES)))}.")
    module, function = SAMPLES[name].split(":")
    sample: Sample = getattr(import_module(module), function)()
    return sample
