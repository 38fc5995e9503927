"""Kernels: what may stand in them, what is compiled when, and that they are the same in Python."""

import ast
import importlib
import pkgutil
from pathlib import Path

import numba as nb
import numpy as np
import pytest

import formulations
import rankopt
from formulations.compiled import KERNELS, Kernel, compiled, inlined

BANNED = {
    "sort", "argsort", "searchsorted", "unique", "median", "percentile", "quantile", "partition", "argpartition",
    "lexsort", "linalg", "dot", "convolve", "interp", "histogram", "digitize", "take", "roll", "cov", "corrcoef",
    "where", "nonzero", "flatnonzero", "concatenate", "append", "vstack", "hstack", "repeat", "diff", "cumsum",
}  # fmt: skip
"""Of NumPy: what numba compiles as functions of its own library into every kernel that uses it."""


def modules():
    for package in (formulations, rankopt):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if module.name.rpartition(".")[2] != "__main__":
                importlib.import_module(module.name)
    return [kernel for kernel in KERNELS if kernel.__module__.startswith(("formulations.", "rankopt."))]


def test_kernels_use_no_function_of_numbas_library_that_is_long():
    kernels = modules()
    assert len(kernels) > 60
    used = {}
    for kernel in kernels:
        source = Path(kernel.function.__code__.co_filename).read_text(encoding="utf-8")
        first = kernel.function.__code__.co_firstlineno
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef) and node.name == kernel.__name__ and node.lineno >= first:
                body = [one for statement in node.body for one in ast.walk(statement)]
                names = {one.attr for one in body if isinstance(one, ast.Attribute)}
                used[kernel.__name__] = names & BANNED
                assert "sorted" not in {one.id for one in body if isinstance(one, ast.Name)}
    assert {name: names for name, names in used.items() if names} == {}
    assert len(used) > 60


def test_only_what_is_called_is_compiled():
    @compiled(nb.int64(nb.int64))
    def never(n):
        return no_such_name(n)  # noqa: F821  compiling it would raise

    assert isinstance(never, Kernel)
    assert never.in_python is not None


def test_kernels_call_kernels_and_are_the_same_in_python():
    @compiled(nb.float64(nb.float64), numpy=lambda x: x + 1.0)
    def above(x):
        return x + 1.0

    outer_globals = {"above": above}
    exec("def twice(x):\n    return above(above(x))", outer_globals)
    twice = compiled(nb.float64(nb.float64))(outer_globals["twice"])
    assert twice(1.0) == twice.in_python(1.0) == 3.0


def test_an_inlined_function_is_part_of_the_kernels_that_call_it():
    known = len(KERNELS)
    outer = {"shifted": inlined(lambda x, by: x + by if by > 0.0 else x)}
    exec("def twice(x):\n    return shifted(shifted(x, 1.0), -1.0)", outer)
    twice = compiled(nb.float64(nb.float64))(outer["twice"])
    assert twice(1.0) == twice.in_python(1.0) == 2.0
    assert len(KERNELS) == known + 1
    other = {"shifted": inlined(lambda x, by: x - by)}
    exec("def twice(x):\n    return shifted(shifted(x, 1.0), -1.0)", other)
    assert twice.content != compiled(nb.float64(nb.float64))(other["twice"]).content


def test_a_kernel_of_several_types_compiles_the_one_it_is_called_with():
    types = [nb.float64(nb.types.Array(kind, 1, "C", readonly=True)) for kind in (nb.float64, nb.float32)]

    @compiled(types)
    def first(x):
        return x[0] + 0.0

    assert first(np.array([2.5], dtype=np.float32)) == 2.5
    assert len(first._of_types) == 1
    assert first(np.array([0.1])) == 0.1
    assert len(first._of_types) == 2
    with pytest.raises(TypeError, match="takes arrays of int64"):
        first(np.array([1]))
