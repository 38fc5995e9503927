"""Atomic `fit`: it completes, or it leaves the estimator unchanged.

An ordinary scikit-learn `fit` sets attributes one by one, so a failure can leave the width of the new data with the
weights of the old. Here `fit` works on a copy of the estimator, whose state is adopted in one step at the end. A fit
that raises `TrainingInterruptedWarning`, as an error by a filter, is complete, so its state is adopted.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import isfunction, signature
from typing import Any, TypeVar

from rankopt.errors import TrainingInterruptedWarning, UnexpectedArgumentError

Kind = TypeVar("Kind", bound=type[Any])


def atomic(kind: Kind) -> Kind:
    """Wrap the `fit` that this class defines, and those of its later subclasses.

    A class may have two mappings from argument names of other libraries to error messages: `_refused`, arguments of
    `fit` (not in the signature, where scikit-learn would treat them as supported), and `_misnamed`, parameters.
    """

    def wrap_subclass(cls: Any, /, **options: Any) -> None:
        super(base, cls).__init_subclass__(**options)
        _wrap(cls)

    base: Any = kind
    _wrap(base)
    base.__init_subclass__ = classmethod(wrap_subclass)
    return kind


@contextmanager
def raise_interruptions() -> Iterator[None]:
    """Raise KeyboardInterrupt for a fit that Ctrl-C ended: what follows has no use for the best model so far."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingInterruptedWarning)
        try:
            yield
        except TrainingInterruptedWarning as warning:
            raise KeyboardInterrupt(str(warning)) from warning


def warn_interrupted(what: str, stacklevel: int = 5) -> None:
    """Warn that the estimator has the best `what` so far. stacklevel: frames up to the user's."""
    message = f"training was interrupted; the estimator holds the best {what} so far. Fit again for a complete result."
    warnings.warn(message, TrainingInterruptedWarning, stacklevel=stacklevel)


def _wrap(kind: type[Any]) -> None:
    made = vars(kind).get("__init__")
    for name in ("fit", "partial_fit"):
        if isfunction(fit := vars(kind).get(name)):
            type.__setattr__(kind, name, _all_or_nothing(fit))
    if isfunction(made) and getattr(kind, "_misnamed", None):
        type.__setattr__(kind, "__init__", _by_our_names(made))


def _by_our_names(made: Callable[..., None]) -> Callable[..., None]:
    own = signature(made).parameters

    @wraps(made)
    def initialized(self: Any, *args: Any, **options: Any) -> None:
        for name, cure in self._misnamed.items():
            if name in options and name not in own:
                raise UnexpectedArgumentError(_naming(name, cure))
        made(self, *args, **options)

    return initialized


def _naming(name: str, cure: str) -> str:
    """The cure, with the name of the argument."""
    return cure if name in cure else f"{name} is unknown: {cure}"


def _all_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
    own = signature(fit).parameters.keys()

    @wraps(fit)
    def fitted(self: Any, *args: Any, **options: Any) -> Any:
        refused = getattr(self, "_refused", {})
        for name in options.keys() - own:
            if name in signature(type(self)).parameters:
                kind = type(self).__name__
                raise UnexpectedArgumentError(f"{name} is a parameter of the constructor: {kind}({name}=...).fit(...)")
            if name in refused and options.pop(name) is not None:
                raise UnexpectedArgumentError(_naming(name, refused[name]))
        if len(args) > 2:
            raise UnexpectedArgumentError(
                f"{fit.__name__} takes X and y by position; got {len(args)} arguments. Pass the others by name, as in "
                "qid=, group="
            )
        trial = object.__new__(type(self))
        vars(trial).update(vars(self))
        try:
            found = fit(trial, *args, **options)
        except TrainingInterruptedWarning:
            self.__dict__ = vars(trial)
            raise
        self.__dict__ = vars(trial)  # one step: an interruption cannot separate it
        return self if found is trial else found

    return fitted
