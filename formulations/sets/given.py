"""What the words of a set are said of, as types: documents and positions, counts and shares, labels."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal, TypeAlias

from formulations.typing import NonTextSequence, Share, SupportsArray, Whole

Some: TypeAlias = Whole | Sequence[Whole] | AbstractSet[Whole] | SupportsArray
"""Documents or positions: an index, a mask, indices or a range."""

Count: TypeAlias = Whole | Mapping[Any, Whole]
"""How many, for all labels alike or by label."""

Shares: TypeAlias = Share | Mapping[Any, Share]
"""The same of shares."""

Labels: TypeAlias = NonTextSequence[Hashable | Iterable[Hashable]] | Iterator[Hashable | Iterable[Hashable]]
"""The label of each document, several, or None for none."""

Prefixes: TypeAlias = Whole | Iterable[Whole]
"""How many positions from the first on."""

Rounding = Literal["up", "down", "nearest"]
"""What becomes of a share that is no whole number."""
