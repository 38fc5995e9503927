"""The house stands as DESIGN says: one arrow, tables that name everything, and nothing heavy on the doorstep."""

import ast
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

import formulations
import rankopt

SOLVER_PACKAGES = {"cvxpy", "ortools", "highspy", "networkx", "qpsolvers", "clarabel", "daqp", "piqp"}
"""Loaded only inside the function that uses them. scipy is not among them: its arrays are everywhere."""

HEAVY = {"sklearn", "cvxpy", "ortools", "highspy", "matplotlib", "pandas"}

DOORS = {"rankopt.__main__", "rankopt.cli", "rankopt.testing", "formulations.testing", "rankopt.experiments.report"}
"""Modules for users that nothing here imports."""

PLUGINS = {
    "formulations.solvers": ("SOLVERS", lambda kind: "accepts" in vars(kind)),
    "rankopt.engines": ("ENGINES", lambda kind: "map" in vars(kind)),
    "rankopt.losses": ("BOUNDS", lambda kind: isinstance(vars(kind).get("convex"), bool) and "__call__" in vars(kind)),
    "rankopt.measures": ("MEASURES", lambda kind: isinstance(vars(kind).get("name"), str)),
    "rankopt.optimize": ("METHODS", lambda kind: "step" in vars(kind)),
    "rankopt.rankers": ("RANKERS", lambda kind: hasattr(kind, "_fit") and "__init__" in vars(kind)),
}
"""A package, its table, and which classes of the package the table must list."""


def modules():
    """Every module of both packages: its name and its file."""
    found = {}
    for package in (rankopt, formulations):
        root = Path(package.__file__).parent
        for path in sorted(root.rglob("*.py")):
            parts = (package.__name__, *path.relative_to(root).with_suffix("").parts)
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


class Import(NamedTuple):
    name: str
    inside_function: bool


@cache
def imports(path):
    """What a file imports, types only left out."""
    found = []

    def visit(node, inside):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.Import):
            found.extend(Import(alias.name, inside) for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute here"
            found.append(Import(node.module, inside))
            found.extend(Import(f"{node.module}.{alias.name}", inside) for alias in node.names)
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(ast.parse(path.read_text(encoding="utf-8")), False)
    return tuple(found)


def places(name):
    """What the text tables of a module name: the values "module:object" of its dictionaries."""
    tables = [table for table in vars(import_module(name)).values() if isinstance(table, dict)]
    values = [value for table in tables for value in table.values()]
    words = [word for value in values for word in (value if isinstance(value, tuple) else (value,))]
    return [word for word in words if isinstance(word, str) and is_place(word)]


def is_place(word):
    return word.partition(".")[0] in ("rankopt", "formulations") and ":" in word


@pytest.mark.parametrize("name", [name for name in MODULES if name.split(".")[0] == "formulations"])
def test_the_arrow_points_from_rankopt_to_formulations(name):
    assert [found.name for found in imports(MODULES[name]) if found.name.split(".")[0] == "rankopt"] == []


@pytest.mark.parametrize("name", MODULES)
def test_solver_packages_are_loaded_where_they_are_used(name):
    used = [found for found in imports(MODULES[name]) if found.name.split(".")[0] in SOLVER_PACKAGES]
    assert [found.name for found in used if not found.inside_function] == []
    if name.startswith("formulations.modeling"):
        assert used == []


@pytest.mark.parametrize("name", MODULES)
def test_every_file_is_imported_or_in_a_table(name):
    if name in DOORS or MODULES[name].name == "__init__.py":
        return
    used = {found.name for other, path in MODULES.items() if other != name for found in imports(path)}
    listed = {place.split(":")[0] for package in MODULES for place in places(package)}
    assert name in used | listed, f"{name} is half added: give it a line in the table of its package"


@pytest.mark.parametrize("name", [name for name in MODULES if places(name)])
def test_every_entry_of_a_table_exists(name):
    for place in places(name):
        module, attribute = place.split(":")
        assert hasattr(import_module(module), attribute), place


@pytest.mark.parametrize("package", PLUGINS)
def test_every_plugin_is_in_the_table_of_its_package(package):
    table, must_be_listed = PLUGINS[package]
    listed = set()
    for place in getattr(import_module(package), table).values():
        module, attribute = place.split(":")
        entry = getattr(import_module(module), attribute)
        listed.add(entry if isinstance(entry, type) else type(entry))
    own = [value for name in MODULES if name.startswith(f"{package}.") for value in classes(name)]
    assert [kind for kind in own if must_be_listed(kind) and kind not in listed] == []
    assert all(must_be_listed(kind) for kind in listed)


def classes(name):
    """Classes that a module defines, protocols left out."""
    found = [value for value in vars(import_module(name)).values() if isinstance(value, type)]
    return [kind for kind in found if kind.__module__ == name and not getattr(kind, "_is_protocol", False)]


def test_importing_the_packages_loads_nothing_heavy():
    names = ["rankopt", "formulations", "rankopt.cli", "formulations.solvers", "rankopt.measures", "rankopt.rankers"]
    script = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
        "    print(name, *{module.split('.')[0] for module in sys.modules})\n"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, *names], capture_output=True, text=True, check=True
    )
    for line in run.stdout.splitlines():
        name, *loaded = line.split()
        assert HEAVY.intersection(loaded) == set(), name
