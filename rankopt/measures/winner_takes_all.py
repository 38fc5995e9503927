"""Winner takes all: is the first document relevant?

    WTA = y of the document at position 1          a_1 = 1, else 0;  b(y) in {0, 1}

Source: [ORM, section 2.3].
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankopt.measures.binary import Binary
from rankopt.measures.positional import Positional
from rankopt.measures.segments import Floats, Ints


@dataclass(frozen=True, repr=False)
class WinnerTakesAll(Binary, Positional):
    """1 where the first document is relevant, else 0."""

    name: ClassVar[str] = "WTA"
    takes_cutoff: ClassVar[bool] = False

    def discount(self, n: int) -> Floats:
        return np.where(np.arange(n) == 0, 1.0, 0.0)

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        return self.relevant(relevance)


WTA = WinnerTakesAll()
