"""A fit takes place wholly or not at all.

scikit-learn lets `fit` set attributes one by one, so one that fails halfway leaves the width of the new data beside the
weights of the old. Here every `fit` works on a copy of the estimator, whose state is taken over in one step at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import isfunction, signature
from typing import Any, ClassVar

from rankopt.errors import TrainingInterrupted, UnexpectedArgumentError


class AtomicFitMixin:
    """An estimator that a failed `fit` leaves as it was, fitted or not, whatever was raised and wherever.

    It stands before `BaseEstimator` among the bases; each `fit` that a class defines is taken care of, in subclasses
    too. A fit that raises `TrainingInterrupted` says that it is whole all the same: its state is taken over.
    """

    _refused: ClassVar[Mapping[str, str]] = {}
    """Options that `fit` does not take though others do, and what to do. They stand in no signature: scikit-learn would
    read them as supported there."""

    _misnamed: ClassVar[Mapping[str, str]] = {}
    """What others call a parameter, and what to write here."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own, made = vars(cls).get("fit"), vars(cls).get("__init__")
        if isfunction(own):
            type.__setattr__(cls, "fit", _wholly(own))
        if isfunction(made) and cls._misnamed:
            type.__setattr__(cls, "__init__", _by_our_names(made))


def _by_our_names(made: Callable[..., None]) -> Callable[..., None]:
    own = signature(made).parameters

    @wraps(made)
    def initialised(self: Any, *args: Any, **options: Any) -> None:
        for name, cure in self._misnamed.items():
            if name in options and name not in own:
                raise UnexpectedArgumentError(cure)
        made(self, *args, **options)

    return initialised


def _wholly(fit: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(fit)
    def fitted(self: Any, *args: Any, **options: Any) -> Any:
        for name in self._refused.keys() & options.keys():
            if options.pop(name) is not None:
                raise UnexpectedArgumentError(self._refused[name])
        trial = object.__new__(type(self))
        vars(trial).update(vars(self))
        try:
            found = fit(trial, *args, **options)
        except TrainingInterrupted:
            self.__dict__ = vars(trial)
            raise
        self.__dict__ = vars(trial)  # one step: not even an interruption comes in between
        return self if found is trial else found

    return fitted
