"""A loss of each user's scores by name, and the blocks that minimise it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rankopt.collaborative.problem import Problem
from rankopt.collaborative.rated import Rated
from rankopt.collaborative.regression import Regression
from rankopt.errors import OptionError

__all__ = ["UserLoss"]


@dataclass(frozen=True)
class UserLoss:
    """spec: "regression". sees_levels: whether a constant added to a user's scores changes it."""

    spec: Any

    @classmethod
    def named(cls, spec: Any, bound: Any, decay: Any) -> UserLoss:
        """Of what is said by name or by value; OptionError and MeasureError for what does not go together."""
        if spec != "regression":
            raise OptionError(f"loss = {spec!r} is unknown; say 'regression'")
        return cls(spec)

    @property
    def sees_levels(self) -> bool:
        return True

    def check_weights(self, by_rating: bool) -> None:
        """OptionError where weights of ratings mean nothing."""

    def seen(self, rated: Rated) -> Rated:
        """The users that the loss can learn from; DataError where there are none."""
        return rated

    def blocks(self, problem: Problem, engine: Any) -> Any:
        """The two blocks of the problem."""
        return Regression(problem)
