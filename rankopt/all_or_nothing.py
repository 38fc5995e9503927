"""A fit takes place wholly or not at all.

scikit-learn lets `fit` set attributes one by one, so one that fails halfway leaves the width of the new data beside the
weights of the old. Here every `fit` works on a copy of the estimator, whose state is taken over in one step at its end.
"""

from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import Any

from rankopt.errors import Interrupted

__all__ = ["AllOrNothing"]


class AllOrNothing:
    """An estimator that a failed `fit` leaves as it was, fitted or not, whatever was raised and wherever.

    It stands before `BaseEstimator` among the bases; each `fit` that a class defines is taken care of, in subclasses
    too. A fit that raises `Interrupted` says that it is whole all the same: its state is taken over.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls).get("fit")
        if isfunction(own):
            type.__setattr__(cls, "fit", _wholly(own))


def _wholly(fit: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(fit)
    def fitted(self: Any, *args: Any, **options: Any) -> Any:
        trial = object.__new__(type(self))
        vars(trial).update(vars(self))
        try:
            found = fit(trial, *args, **options)
        except Interrupted:
            self.__dict__ = vars(trial)
            raise
        self.__dict__ = vars(trial)  # one step: not even an interruption comes in between
        return self if found is trial else found

    return fitted
