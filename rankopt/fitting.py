"""A fit takes place wholly or not at all.

scikit-learn lets `fit` set attributes one by one, so one that fails halfway leaves the width of the new data beside the
weights of the old. Here every `fit` works on a copy of the estimator, whose state is taken over in one step at its end.

scikit-learn's callbacks, 1.9 and later: what `set_callbacks` is given sees a fit and each of its steps.

The whole of `fit` is one task, each step of what trains step by step a task below it. A callback that returns True
after a step ends training there. Where scikit-learn is older there is no `set_callbacks`, and nothing else changes.
"""

# mypy: allow-subclassing-any
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import isfunction, signature
from typing import Any, ClassVar

import numpy as np

from rankopt.errors import Interrupted, UnknownArgument

# mypy: allow-subclassing-any
# (scikit-learn carries no types: its mixin is `Any` to a type checker)


try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:
    CallbackSupportMixin, with_callbacks = object, None


TOLD = ("qid", "group", "attributes", "sample_weight")
"""Options of `fit` that callbacks are told beside X and y: those that `score` takes too."""


class CallbackMixin(CallbackSupportMixin):
    """An estimator that takes `set_callbacks` where scikit-learn has callbacks."""

    def _tasks(self) -> int | None:
        """How many steps `fit` takes at most: None where what it finds decides, 0 where it takes none."""
        return 0

    def _reached(self, state: Any) -> Mapping[str, Any] | None:
        """The fitted attributes that score documents, as of this state; None where they are not at hand."""
        return None

    def _each_step(self) -> Sequence[_Steps]:
        """Functions (step, state) to be called after each step: one while a fit is watched, else none."""
        steps = vars(self).get("_watch")
        if steps is None:
            return ()
        steps.begin()
        return (steps,)


class _Steps:
    """The steps of a fit, each a task from the end of the one before to its own."""

    def __init__(self, estimator: CallbackMixin, whole: Any, told: Mapping[str, Any]) -> None:
        self.estimator, self.whole, self.told = estimator, whole, told
        self.task: Any = None
        self.begun = 0

    def begin(self) -> None:
        most = self.whole.max_subtasks
        if self.task is None and (most is None or self.begun < most):
            self.task, self.begun = self.whole.subcontext(task_name="step"), self.begun + 1
            self.task.call_on_fit_task_begin(estimator=self.estimator, **self.told)

    def __call__(self, step: Any, state: Any) -> bool:
        if self.task is None:
            return False
        task, self.task = self.task, None
        asked = task.call_on_fit_task_end(
            estimator=self.estimator,
            **self.told,
            reconstruction_attributes=lambda: self.as_of(self.estimator._reached(state)),
        )
        if not asked:
            self.begin()
        return bool(asked)

    def as_of(self, learned: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """What a copy of the estimator needs to score the X that callbacks are told: that of `Queries` has no names."""
        bare = {"feature_names_in_": None} if callable(self.told["X"]) else {}
        return None if learned is None else {**learned, **bare}

    def end(self) -> None:
        """End the task of the step that did not come, empty."""
        task, self.task = self.task, None
        if task is not None:
            task.call_on_fit_task_end(estimator=self.estimator)


@contextmanager
def watched(estimator: CallbackMixin, given: Sequence[Any], options: Mapping[str, Any]) -> Iterator[None]:
    """While this block fits the estimator, its callbacks see it; given, options: what `fit` was called with."""
    if "_skl_callbacks" not in vars(estimator):  # where `set_callbacks` and `clone` keep them
        yield
        return
    told = told_of(given, options)
    try:
        whole = estimator._init_callback_context(max_subtasks=estimator._tasks())
        estimator._watch = steps = _Steps(estimator, whole, told)
        whole.call_on_fit_task_begin(estimator=estimator, **told)
        yield
        steps.end()
        whole.call_on_fit_task_end(estimator=estimator, **told, reconstruction_attributes=lambda: steps.as_of({}))
    finally:
        estimator.__dict__.pop("_watch", None)
        _torn_down(estimator)


if with_callbacks is not None:
    _torn_down = with_callbacks(lambda estimator: None)  # what it does after a method is all that is wanted of it


def told_of(given: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """X, y and what names the queries of the rows; of `Queries` worked out when a callback asks for it."""
    X: Any = given[0] if given else options.get("X")
    y = given[1] if len(given) > 1 else options.get("y")
    beside = {name: options[name] for name in TOLD if options.get(name) is not None}
    if hasattr(X, "query_ids"):
        return {"X": lambda: X.features, "y": lambda: X.relevance, "metadata": lambda: {**beside, **_beside(X)}}
    return {"X": X, "y": y, "metadata": beside or None}


def _beside(queries: Any) -> dict[str, Any]:
    """The query of each row, and what else is known of it."""
    ids = np.fromiter(queries.query_ids, dtype=object, count=len(queries))
    named = {"qid": np.repeat(ids, np.diff(queries.offsets))}
    return {**named, "attributes": dict(queries.attributes)} if queries.attributes else named


class AtomicFitMixin(CallbackMixin):
    """An estimator that a failed `fit` leaves as it was, fitted or not, whatever was raised and wherever.

    It stands before `BaseEstimator` among the bases; each `fit` that a class defines is taken care of, in subclasses
    too. A fit that raises `Interrupted` says that it is whole all the same: its state is taken over.
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
                raise UnknownArgument(cure)
        made(self, *args, **options)

    return initialised


def _wholly(fit: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(fit)
    def fitted(self: Any, *args: Any, **options: Any) -> Any:
        for name in self._refused.keys() & options.keys():
            if options.pop(name) is not None:
                raise UnknownArgument(self._refused[name])
        trial = object.__new__(type(self))
        vars(trial).update(vars(self))
        try:
            with watched(trial, args, options):
                found = fit(trial, *args, **options)
        except Interrupted:
            self.__dict__ = vars(trial)
            raise
        self.__dict__ = vars(trial)  # one step: not even an interruption comes in between
        return self if found is trial else found

    return fitted
