"""Atomic `fit`: it completes, or it leaves the estimator unchanged.

An ordinary scikit-learn `fit` sets attributes one by one, so a failure can leave the width of the new data with the
weights of the old. Here `fit` works on a copy of the estimator, whose state is adopted in one step at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import isfunction, signature
from typing import Any, ClassVar

from rankopt.errors import TrainingInterrupted, UnexpectedArgumentError


class AtomicFitMixin:
    """An estimator that a failed `fit` leaves unchanged.

    List it before `BaseEstimator` among the bases; it wraps each `fit` that a class or subclass defines. A fit that
    raises `TrainingInterrupted` is complete, so its state is adopted.
    """

    _refused: ClassVar[Mapping[str, str]] = {}
    """Options of other libraries that `fit` rejects -> the message. They are not in the signature, where scikit-learn
    would treat them as supported."""

    _misnamed: ClassVar[Mapping[str, str]] = {}
    """Parameter names of other libraries -> the message."""

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
        self.__dict__ = vars(trial)  # one step: an interruption cannot separate it
        return self if found is trial else found

    return fitted
