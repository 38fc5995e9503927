"""How a fitted `CofiRanker` is saved, and whether what was read back can be used."""
# mypy: allow-subclassing-any

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.data.ratings.table import Ratings
from rankopt.errors import ModelError
from rankopt.rankers.cofi_options import check_learned

__all__ = ["CofiPersistenceMixin"]


class CofiPersistenceMixin:
    """What saved models and pickles ask of a ranker, and a table that knows its ids."""

    users_: NDArray[Any]
    items_: NDArray[Any]
    _ids: Ratings
    _check_remembered: Any

    def _known(self) -> Ratings:
        """A table without ratings that knows the ids."""
        held = vars(self).get("_ids")
        if held is None or held.users is not self.users_:
            n = np.zeros(len(self.users_) + 1, dtype=np.int64)
            held = Ratings(self.users_, self.items_, n, np.zeros(0, np.int32), np.zeros(0))
            self._ids = held
        return self._ids

    def save(self, path: Any) -> None:
        """Write the fitted ranker to a file of data only, to be read by `rankopt.rankers.load_model`."""
        from rankopt.persistence.models import save_model

        save_model(self, path)

    def _check_loaded(self) -> None:
        """Raise ModelError where what was read from a file does not fit together, or cannot be used."""
        check_learned(self)
        self._check_remembered()

    def _check_storable(self) -> None:
        for name in ("users_", "items_"):
            ids = getattr(self, name)
            if ids.dtype == object and not all(isinstance(one, str) for one in ids.tolist()):
                what = "neither whole numbers of 64 bits nor strings"
                raise ModelError(f"{name} cannot be saved because ids are {what}; map them")

    def __getstate__(self) -> Any:
        above: Any = super()
        state = dict(above.__getstate__())
        for name in ("_ids", "_model_known"):
            state.pop(name, None)
        return state
