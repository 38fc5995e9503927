"""Checkpoints: the training state in a folder, written during training, so that a run resumes with identical results.

    standing0.zip, standing1.zip     written alternately, each atomically; if one is damaged the other is used

Each file is an archive as saved models are: `checkpoint.json`, plain arrays and their digests. Digests identify the
problem (parameters, data, starting point), so that a run never resumes from the state of another problem. Equal digests
give bit-identical results, unless the master solver differs. One process at a time writes to a folder.

A state is validated before training resumes:

flaw           checks its form: types, shapes, finite values, groups that exist
false_claim    recomputes J at its w in one pass over the data, and checks that no plane lies above the risk
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from formulations.errors import FileVersionError, SerializationError
from formulations.serialization import Decoder, Encoder
from rankopt.data.canonical_order import fingerprints
from rankopt.data.queries import Queries
from rankopt.errors import OptionError
from rankopt.optimize.bundle import at_groups
from rankopt.optimize.certificate import Step, Stop
from rankopt.optimize.objective import Objective, norms
from rankopt.optimize.state import IterationInfo, PlaneSet, State, TrainingState
from rankopt.optimize.subgradient import generator_of, permuted
from rankopt.persistence.models import MODEL
from rankopt.ratings.table import Ratings

ROUNDING = 1e-9  # relative difference of sums on another machine that is tolerated

OPEN = ("primal", "latest", "precision", "radius", "least")
"""Numbers that are infinite until they are known. They are never NaN."""

SIGNED = ("primal", "latest", "bound", "floor")
"""Numbers that are negative where a loss can be."""

PARTS = ("method_state", "history", "planes", "passed", "stop", "generator")
"""Fields that are neither numbers nor arrays of numbers."""


def flaw(standing: TrainingState) -> str | None:
    """What is wrong with the form of a training state; None if it is valid."""
    held: list[tuple[object, Any]] = [
        (standing, TrainingState), (standing.method_state, State), (standing.method_state.planes, PlaneSet),
        (standing.stop, Stop | None),
    ]  # fmt: skip
    for part, kind in held:
        if not isinstance(part, kind):
            return f"a part has the type {type(part).__name__}, not {getattr(kind, '__name__', kind)}"
    return next(chain(_flaws(standing), _flaws_of_steps(standing)), None)


def _flaws(standing: TrainingState) -> Iterator[str]:
    state, planes = standing.method_state, standing.method_state.planes
    d, p, groups = np.size(state.w), np.size(planes.heights), np.shape(planes.references)[:1]
    shapes = {
        "assigned": (p, d),
        "references": (*groups, d),
        "paid": groups,
        **dict.fromkeys(("heights", "group", "idle", "alpha"), (p,)),
    }
    for name, value in chain(vars(standing).items(), vars(state).items(), vars(planes).items()):
        if isinstance(value, np.ndarray):
            yield from _flaws_of(name, value, shapes.get(name, (d,)))
        elif name not in PARTS and (isinstance(value, bool) or not isinstance(value, int | float)):
            yield f"{name} is a {type(value).__name__}"
        elif name not in PARTS and not _is_possible(name, value, planes.floor):
            yield f"{name} is {value}"
    for point in standing.passed:
        yield from _flaws_of("a point that it passed", point.w, (d,))
        if not np.isfinite([point.primal, point.bound]).all():
            yield f"a point that it passed has J = {point.primal}, bound {point.bound}"
    if (planes.group >= len(planes.references)).any():
        yield "a plane belongs to a group that is not there"
    permuted(1, getattr(state, "generator", None) or generator_of(0))  # raises for an invalid generator state


def _flaws_of_steps(standing: TrainingState) -> Iterator[str]:
    if len(standing.history) != standing.iteration:
        yield f"it took {standing.iteration} steps and {len(standing.history)} are written down"
    for step in standing.history:
        for name, value in vars(step).items():
            if not _is_possible(name, value, standing.method_state.planes.floor):
                yield f"{name} of a step is {value}"


def _is_possible(name: str, value: float, floor: float) -> bool:
    """Whether a number of this name can be of a run whose losses have this floor."""
    if name in SIGNED and floor == -np.inf and value < np.inf:
        return True
    return value >= 0 and (value < np.inf or name in OPEN)


def _flaws_of(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> Iterator[str]:
    counts = name in ("group", "idle")
    if array.shape != shape or array.dtype != (np.int64 if counts else np.float64):
        yield f"{name} is no array of {' × '.join(map(str, shape))} numbers"
    elif not np.isfinite(array).all():
        yield f"{name} is not finite"
    elif (counts or name == "alpha") and (array < 0).any():
        yield f"{name} is negative"


def false_claim(standing: TrainingState, objective: Objective) -> str | None:
    """A false claim of a valid training state about its own w; None if all claims are true."""
    state, planes = standing.method_state, standing.method_state.planes
    if state.w.shape != objective.w0.shape or not 1 <= len(planes.references) <= objective.risk.weights.size:
        return f"it has {state.w.size} weights and {len(planes.references)} groups of queries"
    if not np.isfinite(state.primal):
        return None  # no claims before the first step
    here = at_groups(objective.risk, state.w, len(planes.references))
    primal = objective.upper(state.w, here)
    if abs(primal - state.primal) > ROUNDING * abs(primal):
        return f"J at its w is {primal:.10g}, and the stored value is {state.primal:.10g}"
    if state.bound > primal + ROUNDING * abs(primal):
        return f"its bound {state.bound:.10g} is above J at its w, {primal:.10g}"
    risk = here.heights + (here.slopes - here.references) @ state.w + (here.bound - here.value)
    above = planes.heights + planes.slopes @ state.w - risk[planes.group]
    size = np.abs(planes.heights) + norms(planes.slopes) * np.linalg.norm(state.w) + abs(primal)
    if (above > ROUNDING * size).any():
        return f"a plane lies {above.max():.3g} above the risk at its w"
    return None


LIMITS = ("max_iter", "time_limit")
"""Parameters that may change when a run resumes: they decide when it ends, not its iterates."""

REPLACEABLE = ("master_solver",)
"""Parameters that are stored and may change too: if a master solver fails, another may continue. Planes, points and
bounds remain valid; the following steps differ."""


def identity(
    kind: str,
    params: Mapping[str, Any],
    queries: Queries,
    attributes: Iterable[str],
    weights: NDArray[np.float64],
    start: NDArray[np.float64],
    judged: bool,
) -> dict[str, str]:
    """Digests of the class, of each parameter that affects the result, of the data and of the starting point.

    The data are the queries, in order, the attributes that constraints use, and the weights (m,). "eval_set" is whether
    the result is chosen on an eval_set: then the points of all iterations are stored, else only the last.
    """
    known = (fingerprints(queries.features), queries.offsets, queries.relevance, weights)
    columns = [repr(queries.attributes[name].tolist()).encode() for name in attributes]
    data = _digest([*(np.ascontiguousarray(array).tobytes() for array in known), *columns])
    return {
        "class": kind,
        **{name: _of_value(value, name) for name, value in sorted(params.items()) if name not in LIMITS},
        "data": data,
        "start": _digest([start.tobytes()]),
        "eval_set": str(judged),
    }


def identity_of_ratings(
    kind: str, params: Mapping[str, Any], ratings: Ratings, weights: NDArray[np.float64] | None, judged: Ratings | None
) -> dict[str, str]:
    """The same for ratings, their weights (n_ratings,), and the ratings on which the result is chosen."""
    return {
        "class": kind,
        **{name: _of_value(value, name) for name, value in sorted(params.items()) if name not in LIMITS},
        "data": _digest([ratings.fingerprint.encode(), b"" if weights is None else weights.tobytes()]),
        "eval_set": "" if judged is None else judged.fingerprint,
    }


def _of_value(value: Any, name: str) -> str:
    encoder = Encoder(CHECKPOINT)
    try:
        text = json.dumps(encoder.encode(value, name))
    except SerializationError:  # an object of the user's own
        named = getattr(value, "__qualname__", "<")
        text = f"{type(value).__module__}.{type(value).__qualname__}: {value!r}"
        text = text if "<" in named else f"{value.__module__}.{named}"  # a class or function of a module
        if re.search(r"\b0x[0-9a-f]+", text):
            raise OptionError(
                f"checkpoint cannot identify {name} = {text[:80]} when the run resumes; "
                "make it a dataclass, a function or class of a module, or give it a repr that shows its content"
            ) from None
    return _digest([text.encode(), *encoder.arrays.values()])


def _digest(parts: Iterable[bytes]) -> str:
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little"))
        hashed.update(part)
    return hashed.hexdigest()[:32]


Found = TypeVar("Found")

CHECKPOINT = replace(MODEL, name="rankopt checkpoint", version=1, manifest="checkpoint.json")
SLOTS = ("standing0.zip", "standing1.zip")
COST = 20  # smallest time between two checkpoints, in multiples of the time that writing one takes


@dataclass
class Checkpoint:
    """Stores the training state in `folder`, at most every `every` seconds; 0 stores it after every step."""

    folder: str | os.PathLike[str]
    every: float = 10.0
    _problem: dict[str, str] = field(default_factory=dict, init=False, repr=False)
    _serial: int = field(default=0, init=False, repr=False)
    _next: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        path = os.fspath(self.folder) if isinstance(self.folder, str | os.PathLike) else None
        if not isinstance(path, str) or not path or "\0" in path:
            raise OptionError(f"checkpoint = {self.folder!r} is no folder; give a path")
        if isinstance(self.every, bool) or not isinstance(self.every, int | float) or not 0 <= self.every < np.inf:
            raise OptionError(f"every = {self.every!r} is no number of seconds; give 0 or more")

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Within this block the folder is locked; OptionError where another run holds the lock.

        The lock is on the folder itself: it leaves no file and ends with its process. A file system without such locks
        is not locked.
        """
        folder = self._make_folder()
        try:
            import fcntl
        except ImportError:  # no POSIX system
            yield
            return
        try:
            opened = os.open(folder, os.O_RDONLY)
        except OSError as error:
            raise OptionError(f"checkpoint = {folder} cannot be opened ({error}); give another folder") from error
        try:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OptionError(
                    f"checkpoint = {folder} is in use: another process, or another fit of this one, trains with it "
                    "now; wait until it is done, or choose another folder"
                ) from None
            except OSError:
                pass
            yield
        finally:
            os.close(opened)

    def found(
        self, problem: Mapping[str, str], read: Callable[[Any], Found | None], defaults: Container[str] = ()
    ) -> Found | None:
        """The content of the newest intact file of a run of this problem; None without one.

        problem: a digest for each of its parts, by name. read: converts stored data to a state; None for invalid data.
        defaults: parts that have their default value. Raises OptionError where the folder holds a run of another
        problem, and names the parts that differ.
        """
        folder = self._make_folder()
        with suppress(OSError):
            for part in folder.glob(".standing?.zip.*.part"):  # of a process that was killed while it wrote
                part.unlink()
        self._problem, self._serial = dict(problem), 0
        self._next = perf_counter() + self.every
        found = [held for held in (_read(folder / name) for name in SLOTS) if held is not None]
        for manifest, decoder in sorted(found, key=lambda held: held[0]["serial"], reverse=True):
            self._check_problem(manifest["problem"], problem, defaults)
            try:
                state = read(decoder.decode(manifest["run"]))
            except SerializationError as error:
                raise OptionError(f"checkpoint = {self.folder} is of another version ({error}); remove it") from error
            except (AttributeError, LookupError, TypeError, ValueError):  # data of the wrong type or shape
                continue
            if state is not None:
                self._serial = manifest["serial"]
                return state
        return None

    def check(self, begun: TrainingState, objective: Objective) -> None:
        """Raise OptionError where a state makes a false claim about its own w."""
        false = false_claim(begun, objective)
        if false is not None:
            raise OptionError(f"checkpoint = {self.folder} cannot be resumed because {false}; remove it and fit anew")

    def _make_folder(self) -> Path:
        folder = Path(self.folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OptionError(
                f"checkpoint = {self.folder}: no folder to write to ({error}); give another folder"
            ) from error
        return folder

    def _check_problem(self, known: Mapping[str, str], problem: Mapping[str, str], defaults: Container[str]) -> None:
        """Raise OptionError where the folder's run is of another problem."""
        # Parameters that an older version did not have are not compared: they had their default value.
        expected = {key: value for key, value in problem.items() if key in known or key not in defaults}
        compared = {**known, **expected}.keys() - set(REPLACEABLE)
        differing = sorted(key for key in compared if known.get(key) != expected.get(key))
        if differing:
            raise OptionError(
                f"checkpoint = {self.folder} holds another run: {', '.join(differing)} differ; "
                "fit what it was begun with, choose another folder, or remove this one"
            )

    def keep(self, now: TrainingState) -> None:
        """Write the state if it is due; always at the end. If writing fails, warn and continue training."""
        self.write(lambda: _plain(now), now.stop is not None)

    def write(self, make: Callable[[], Any], over: bool) -> None:
        """Write the plain data that `make` returns, if it is due or the run is over."""
        began = perf_counter()
        if began < self._next and not over:
            return
        self._serial += 1
        encoder = Encoder(CHECKPOINT)
        try:
            run = encoder.encode(make(), "the standing")
        except SerializationError as error:
            raise OptionError(f"checkpoint cannot store the state of this method: {error} Leave it out.") from error
        try:
            slot = Path(self.folder, SLOTS[self._serial % 2])
            content = {"serial": self._serial, "problem": self._problem, "run": run}
            CHECKPOINT.write(slot, content, encoder.arrays, links=False)
        except (OSError, SerializationError) as error:
            warnings.warn(f"no checkpoint could be written: {error}", RuntimeWarning, stacklevel=2)
        ended = perf_counter()
        self._next = ended + (max(self.every, COST * (ended - began)) if self.every else 0)


def _read(path: Path) -> tuple[dict[str, Any], Decoder] | None:
    """The content of one file; None where it is missing or damaged."""
    try:
        manifest, arrays = CHECKPOINT.read(path)
    except FileVersionError as error:
        raise OptionError(f"{path} cannot be resumed: {error}, or remove it") from error
    except (OSError, SerializationError):
        return None
    if type(manifest.get("serial")) is not int or not isinstance(manifest.get("problem"), dict):
        return None
    return manifest, Decoder(CHECKPOINT, arrays, writeable=True)


def _plain(now: TrainingState) -> dict[str, Any]:
    """The state with its many small parts as columns."""
    columns = {
        "w": np.array([point.w for point in now.passed]),
        "primal": np.array([point.primal for point in now.passed]),
        "bound": np.array([point.bound for point in now.passed]),
    }
    return {**replace(now, passed=()).as_data(Step), "passed": columns}


def stored_run(run: Mapping[str, Any]) -> TrainingState | None:
    """The training state of a stored run; None if it is invalid."""
    columns = run["passed"]
    rows = zip(columns["w"], columns["primal"].tolist(), columns["bound"].tolist(), strict=True)
    found = replace(TrainingState.from_data(run, Step), passed=tuple(IterationInfo(*row) for row in rows))
    return found if flaw(found) is None else None
