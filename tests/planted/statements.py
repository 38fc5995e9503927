"""Statement files: the TOML that states a set of rankings, mutated."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import numpy as np

from formulations import FormulationError, RankingSet, read_ranking_set
from formulations.constraints.constrained_ranking import ConstrainedRanking
from planted.attack import survive

FILES = (
    """documents = 6
positions = 3
weights = [1.0, 0.9, 0.8]
scores = [3, 3, 3, 0, 0, 0]
[attributes]
site = ["a", "a", "b", "c", "c", "d"]
topic = [["x", "y"], "x", "y", "z", [], "x"]
[[constraint]]
at_most = 1
by = "site"
[[constraint]]
at_least = 1
documents = { site = "c" }
positions = [0, 1]
name = "fresh"
[[constraint]]
precedes = [1, 4]
[[constraint]]
exactly = 1
documents = [3, 4]
""",
    """documents = 4
positions = 2
profit = [[1.0, 2.0, 3.0, 4.0], [0.5, 1.0, 1.5, 2.0]]
[[constraint]]
forbid = [0]
positions = [1]
[[constraint]]
fix = 2
position = 1
[[constraint]]
add_rows = [[1, 0, 0, 0, 0, 1, 0, 0]]
lower = 0
upper = 1
""",
    "matrix = [[1, 1, 0], [0, 1, 1], [1, 0, 1]]\n",
)

VALUES = (
    "0", "1", "-1", "2", "3", "7", "1.5", "nan", "inf", "-inf", "1e400", "1e308", "true", "9" * 30, "9" * 5000,
    "0x" + "f" * 5000, '""', '"a"', '"site"', "[]", "[[]]", "[[1, 2], [3]]", "[true, false]", "[" * 300 + "]" * 300,
    "{}", "{ site = 'a' }", "{ a = { b = 1 } }", "1979-05-27", "07:32:00", '["a", 1, 1.5, true, []]',
    "[" + "1, " * 10**5 + "]",    "100000", "1000000000000", "2048", "'''x'''", "[0, 1, 2, 3, 4, 5, 6, 7]",
    "[-1]", '"\\u0000"', "[nan]", "[[inf]]",
    "{ a = 1, b = 2, c = -1 }", '[{ x = 1 }]', "[1979-05-27]",
)  # fmt: skip

KEYS = (
    "documents", "positions", "profit", "weights", "scores", "attributes", "constraint", "matrix", "at_most",
    "at_least", "exactly", "forbid", "fix", "precedes", "add_rows", "by", "position", "name", "lower", "upper",
    "labels", "x", "a.b", '""', "a" + ".a" * 20_000,
)  # fmt: skip


def mutated(text, rng):
    """The file with some values, keys, lines or bytes changed."""
    for _ in range(int(rng.integers(1, 4))):
        kind = rng.integers(5)
        if kind == 0:
            lines = text.splitlines(keepends=True)
            first, second = rng.integers(len(lines) + 1, size=2)
            text = "".join([*lines[:first], *lines[second : second + 2], *lines[first:]])
        elif kind == 1:
            place = int(rng.integers(len(text) + 1))
            text = text[:place] + str(rng.choice(list('[]{}"=.,#\n\0\x7fé1-e'))) + text[place + int(rng.integers(3)) :]
        elif kind == 2:
            keys = [*re.finditer(r"^[\w.\"]+(?= =)", text, re.MULTILINE)]
            if keys:
                key = keys[rng.integers(len(keys))]
                text = text[: key.start()] + KEYS[rng.integers(len(KEYS))] + text[key.end() :]
        else:
            values = [*re.finditer(r"(?<== )[^\n]+|(?<=[\[ ])[\w.\"]+(?=[,\]])", text)]
            if values:
                value = values[rng.integers(len(values))]
                text = text[: value.start()] + VALUES[rng.integers(len(VALUES))] + text[value.end() :]
    return text


def attack(tries: int, seed: int) -> bool:
    """Whether any try does not survive."""
    rng, folder = np.random.default_rng(seed), Path(tempfile.mkdtemp(prefix="rankopt-faults-"))

    def attempt(number: int) -> None:
        path = folder / f"try{number}.toml"
        path.write_text(mutated(FILES[rng.integers(len(FILES))], rng), encoding="utf-8")
        try:
            stated = read_ranking_set(path)
            admissible = stated.admissible if isinstance(stated, ConstrainedRanking) else stated
            if isinstance(admissible, RankingSet):
                assert str(admissible)
                assert admissible.compiled.matrix.shape[1] <= admissible.positions * admissible.documents
                admissible.check_nonempty()
            else:
                assert np.isfinite(admissible).all()
        except FormulationError:
            pass
        path.unlink()

    return survive(tries, attempt, seconds=20, memory=3 << 30)
