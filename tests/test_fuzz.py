"""Public callables with wrong arguments: each call succeeds or raises an error of the packages, never one from inside.

Every call has valid arguments in which one, two or all are replaced by seeded wrong types, shapes and values.
"""

import importlib
import inspect
import re
import signal
import traceback
from enum import Enum
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from planted.arguments import QID, WRONG, X, Y, fit, instances, is_special, queries, rankers, small, valid, write_files

import formulations
import rankopt.losses
from formulations import RankingSet, matching, ranking, solve, solve_batch
from formulations.errors import FormulationError, InvalidProblemError, UnknownSolverError, UnsupportedProblemError
from rankopt.errors import RankoptError

ROOT = Path(__file__).parents[1]

PACKAGES = (
    "formulations", "formulations.experimental", "formulations.solvers", "rankopt",
    "rankopt.data", "rankopt.evaluation", "rankopt.measures", "rankopt.losses", "rankopt.ratings", "rankopt.rankers",
    "rankopt.optimize", "rankopt.engines", "rankopt.experimental", "rankopt.explanations", "rankopt.boosting",
    "rankopt.policies", "rankopt.ascent", "rankopt.experiments", "rankopt.report", "rankopt.clicks",
    "rankopt.decisions",
)  # fmt: skip

CALLED = ("function", "class", "problem class")
"""What `each` calls: its errors are the caller's own."""

SECONDS = 20.0
"""Time that one call may take."""

DOCUMENTED = {
    word
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for word in re.findall(r"\.([a-z][a-z_0-9]+)\b", path.read_text(encoding="utf-8"))
}
"""What the documentation writes behind a dot: the methods that a user calls."""


def is_protocol(kind):
    return vars(kind).get("_is_protocol", False)


def is_ours(function):
    return (getattr(function, "__module__", None) or "").partition(".")[0] in ("formulations", "rankopt")


def targets():
    """(name, callable, parameters) of every public function, class, method and option of a ranker."""
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            one = getattr(module, name)
            is_left_out = isinstance(one, type) and (issubclass(one, BaseException | Enum) or is_protocol(one))
            if callable(one) and not is_left_out and is_ours(one) and not any(one is other for other in found.values()):
                found[f"{package}.{name}"] = one
                if isinstance(one, type):  # alternative constructors
                    for word, maker in inspect.getmembers(one, inspect.ismethod):
                        if word in DOCUMENTED and is_ours(maker):
                            found[f"{package}.{name}.{word}"] = maker
    for owner, one in instances().items():
        for word in dir(type(one)):
            if word in DOCUMENTED and not word.startswith("set_") and inspect.isroutine(getattr(type(one), word, None)):
                method = getattr(one, word)
                if is_ours(method) and inspect.ismethod(method) and not isinstance(method.__self__, type):
                    found[f"{owner}().{word}"] = method
    for kind in rankers():
        for option in inspect.signature(kind).parameters:
            found[f"{kind.__name__}({option}=).fit"] = option_of(kind, option)
    return [(name, function, parameters(function)) for name, function in found.items()]


def option_of(kind, option):
    def fitted(value):
        return fit(small(kind, **{option: value}))

    return fitted


def parameters(function):
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


def arguments(name, parameters, rng):
    """Positional and keyword arguments of one call, and the names of what was put in place of valid ones."""
    chosen, wrong = {}, {}
    plain = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    several = rng.choice([1, 2, len(plain)], p=[0.75, 0.15, 0.1])
    names = {plain[i].name for i in rng.permutation(len(plain))[: int(several)]}
    for one in plain:
        good = valid(name, one.name)
        if one.name in names or (one.default is one.empty and good is None):
            wrong[one.name] = str(rng.choice([kind for kind in WRONG if one.name != "each" or kind not in CALLED]))
            chosen[one.name] = WRONG[wrong[one.name]]()
        elif one.default is one.empty or is_special(name, one.name):
            chosen[one.name] = good()
    for one in parameters:
        if one.kind is one.VAR_POSITIONAL and rng.random() < 0.7:
            wrong["*"] = str(rng.choice(list(WRONG)))
    positional = [chosen.pop(one.name) for one in plain if one.kind is one.POSITIONAL_ONLY and one.name in chosen]
    if "*" in wrong:  # all before it must be passed in their order
        lead = [one.name for one in plain if one.kind is one.POSITIONAL_OR_KEYWORD]
        if all(name in chosen for name in lead):
            positional += [chosen.pop(name) for name in lead] + [WRONG[wrong["*"]]()]
    return positional, chosen, wrong


pytestmark = pytest.mark.filterwarnings("ignore")  # errors are the subject


def is_typed(error):
    """Whether a caller may see this error: ours, one of a file, of the call's own signature, of scikit-learn's checks.
    The last two are told by their place."""
    if isinstance(error, FormulationError | RankoptError | OSError):
        return not isinstance(error, TimeoutError)
    places = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, TypeError) and places[-1] == Path(__file__):
        return True
    ours = max(i for i, place in enumerate(places) if place.is_relative_to(ROOT))
    return isinstance(error, ValueError | TypeError) and any("sklearn" in place.parts for place in places[ours:])


def overdue(*_):
    raise TimeoutError(f"a call took more than {SECONDS} s")


def untyped(calls, seed):
    """What the errors say that no caller should see, of so many calls."""
    write_files()
    rng, every = np.random.default_rng(seed), targets()
    found = []
    previous = signal.signal(signal.SIGALRM, overdue)
    try:
        for i in range(calls):
            name, function, needed = every[i % len(every)]
            positional, keywords, wrong = arguments(name, needed, rng)
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            try:
                function(*positional, **keywords)
            except (Exception, SystemExit) as error:
                signal.setitimer(signal.ITIMER_REAL, 0)
                if not is_typed(error):
                    frame = traceback.extract_tb(error.__traceback__)[-1]
                    place = f"{frame.filename}:{frame.lineno}"
                    found.append(f"{name} of {wrong}: {type(error).__name__}: {str(error)[:150]} ({place})")
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                plt.close("all")
    finally:
        signal.signal(signal.SIGALRM, previous)
    return found


def test_wrong_arguments_raise_errors_of_the_packages(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = untyped(3000, seed=0)
    assert not found, "\n".join(found)


def test_arguments_are_valid_where_none_is_replaced(tmp_path, monkeypatch):
    """So that the errors of the other calls are those of what is replaced, for all but a few callables."""
    monkeypatch.chdir(tmp_path)
    write_files()
    failed, count = [], 0
    for name, function, needed in targets():
        passed = {
            one.name: valid(name, one.name) for one in needed if one.default is one.empty or is_special(name, one.name)
        }
        if None in passed.values() or "=)" in name:  # an option of a ranker has other valid values
            continue
        count += 1
        try:
            function(**{key: make() for key, make in passed.items()})
        except Exception as error:
            failed.append(f"{name}: {error}")
    assert count > 230
    assert len(failed) < 0.1 * count, "\n".join(failed)


@pytest.mark.study
@pytest.mark.parametrize("seed", range(1, 5))
def test_many_wrong_arguments_raise_errors_of_the_packages(tmp_path, monkeypatch, seed):
    monkeypatch.chdir(tmp_path)
    found = untyped(10_000, seed)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "call", [lambda: None.x, lambda: [][0], lambda: {}["a"], lambda: np.average([1.0], weights=[1.0, 2.0])]
)
def test_errors_from_inside_are_found(call, tmp_path, monkeypatch):
    """The fuzz calls what is planted among the targets and reports it."""

    def inside(value):
        return call()

    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(globals(), "targets", lambda: [("planted", inside, parameters(inside))])
    found = untyped(1, seed=0)
    assert len(found) == 1
    assert found[0].startswith("planted of {'value': ")


def test_a_function_is_a_solver_and_a_class_is_not():
    def by_row(problem):
        return np.arange(problem.positions)

    problem = matching([[3.0, 1.0], [2.0, 5.0]])
    assert solve(problem, by_row).value == 8.0
    with pytest.raises(UnknownSolverError, match="a name, such as 'highs'"):
        solve(problem, dict)


def test_what_is_no_batch_of_problems_is_named():
    with pytest.raises(InvalidProblemError, match=r"ranking\(\.\.\., offsets=\), or problems"):
        solve_batch("mine.lp")
    with pytest.raises(UnsupportedProblemError, match="cannot be a float"):
        solve_batch([1.0, 2.0])
    assert solve_batch([]) == []


@pytest.mark.parametrize("allowed", [None, [[True, True, False], [True, True, True]]])
def test_masked_profits_are_forbidden_pairs(allowed):
    """They are the assignment of the same profits with these pairs not allowed."""
    profit = np.ma.masked_array([[3.0, 2.0, 9.0], [2.0, 1.0, 8.5]], [[False, False, False], [False, True, True]])
    masked = matching(profit, allowed=allowed)
    both = ~profit.mask if allowed is None else ~profit.mask & np.array(allowed)
    stated = matching(profit.filled(0.0), allowed=both)
    assert solve(masked).value == solve(stated).value
    assert (masked.allowed == both).all()
    assert both[np.arange(2), solve(masked).order].all()


@pytest.mark.parametrize(
    "call",
    [
        lambda: ranking(masked([0.0, 1.0, 2.0]), [0.0, 1.0, 2.0], discount=[1.0], position_weights=[1.0]),
        lambda: ranking([0.0, 1.0, 2.0], [0.0, 1.0, 2.0], discount=masked([1.0, 0.5]), position_weights=[1.0]),
        lambda: matching(np.ones((1, 3)), allowed=masked([[True, True, True]])),
        lambda: formulations.constrained_ranking(masked(np.ones((2, 3))), RankingSet(3, 2)),
        lambda: RankingSet(4, 3).at_most(1, documents=masked([0, 1])),
        lambda: RankingSet(4, 3).at_most(1, by=masked([0, 0, 1, 1])),
        lambda: RankingSet(4, 3).is_feasible(masked([0, 1, 2])),
        lambda: matching(np.eye(3)).value(masked([0, 1, 2])),
        lambda: formulations.verify_integrality(masked(np.eye(3))),
        lambda: rankopt.RegressionRanker().fit(masked(X), Y, qid=QID),
        lambda: rankopt.RegressionRanker().fit(X, masked(Y), qid=QID),
        lambda: rankopt.RegressionRanker().fit(X, Y, qid=masked(QID)),
        lambda: rankopt.RegressionRanker().fit(X, Y, group=masked([4, 4])),
        lambda: rankopt.RegressionRanker().fit(X, Y, qid=QID, query_weight=masked([1.0, 1.0])),
        lambda: rankopt.RegressionRanker().fit(X, Y, qid=QID, attributes={"a": masked(Y)}),
        lambda: fit(rankopt.RegressionRanker()).predict(masked(X)),
        lambda: rankopt.evaluate(Y, X[:, 0], "AP", offsets=masked([0, 4, 8])),
        lambda: queries().select(masked([0, 1])),
        lambda: rankopt.losses.parse_position_weights(masked([1.0, 0.5])),
    ],
)
def test_masked_arrays_are_refused_where_a_mask_has_no_meaning(call):
    with pytest.raises((FormulationError, RankoptError), match="masked"):
        call()


def masked(values):
    """The values, the first of which is unknown."""
    mask = np.zeros(np.shape(values), dtype=bool)
    mask.flat[0] = True
    return np.ma.masked_array(values, mask)
