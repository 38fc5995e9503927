"""Architecture: direction and order of imports, no cycles, complete tables, file sizes, light imports."""

import ast
import inspect
import subprocess
import sys
from collections import Counter
from dataclasses import MISSING
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import NamedTuple

import networkx as nx
import pytest
from planted.losses import TopOne

import formulations
import rankopt
import rankopt.experimental
import rankopt.rankers
from formulations.constraints import kinds
from formulations.constraints.language import ConstraintMethods
from formulations.registry import public_names
from rankopt.losses import MarginLoss, PositionalOracle

SOLVER_PACKAGES = {"cvxpy", "ortools", "highspy", "networkx", "qpsolvers", "clarabel", "daqp", "piqp"}
"""Loaded only inside the function that uses them. scipy is not among them: its arrays are everywhere."""

MAY_LOAD = ("solvers", "integrality")
"""Folders of formulations that may use them."""

HEAVY = {"sklearn", "cvxpy", "ortools", "highspy", "matplotlib", "pandas"}

ABOVE = {"rankopt.__main__", "rankopt.cli", "rankopt.testing"}
"""Modules that may import every folder, as the `__init__` of the packages may."""

DOORS = {"rankopt.__main__", "rankopt.cli", "rankopt.testing", "formulations.testing"}
"""Modules for users that nothing here imports."""

PLUGINS = {
    "formulations.solvers": ("SOLVERS", lambda kind: "accepts" in vars(kind)),
    "rankopt.engines": ("ENGINES", lambda kind: "map" in vars(kind)),
    "rankopt.losses.margin": ("BOUNDS", lambda kind: "__call__" in vars(kind)),
    "rankopt.losses": ("LOSSES", lambda kind: is_loss(kind)),
    "rankopt.measures": ("MEASURES", lambda kind: isinstance(vars(kind).get("name"), str)),
    "rankopt.optimize": ("METHODS", lambda kind: "step" in vars(kind)),
    "rankopt.rankers": ("RANKERS", lambda kind: hasattr(kind, "_fit") and "__init__" in vars(kind)),
}
"""A package, its table, and which classes of the package the table must list."""


def is_loss(kind):
    """Whether a class is a loss that is made of grades and offsets; a function of LOSSES may make any other."""
    fields = getattr(kind, "__dataclass_fields__", {})
    needed = {name for name, one in fields.items() if one.default is one.default_factory is MISSING and is_field(one)}
    has = any(all(hasattr(kind, name) for name in names) for names in (("at", "majorant"), ("gradient", "protocol")))
    return has and needed == {"relevance", "offsets"} and not inspect.isabstract(kind)


def is_field(one):
    return "ClassVar" not in str(one.type)


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
    for_types: bool


@cache
def imports(path, types=False):
    """What a file imports; of imports for types only those that are asked for."""
    found = []

    def visit(node, inside, for_types):
        for_types = for_types or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        if for_types and not types:
            return
        if isinstance(node, ast.Import):
            found.extend(Import(alias.name, inside, for_types) for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute here"
            found.append(Import(node.module, inside, for_types))
            found.extend(Import(f"{node.module}.{alias.name}", inside, for_types) for alias in node.names)
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            visit(child, inside, for_types)

    visit(ast.parse(path.read_text(encoding="utf-8")), False, False)
    return tuple(found)


def is_face(name):
    return MODULES[name].name == "__init__.py"


@cache
def needed(name):
    """The modules that a module imports, types included; but what a face hands on as text it names for types only."""
    found = imports(MODULES[name], types=not is_face(name))
    inner = {one.name for one in found} & MODULES.keys()
    # `from package.folder import file` needs the file, and the folder's `__init__` only for what is no file.
    parents = {one.rpartition(".")[0] for one in inner}
    only_files = {
        parent
        for parent in parents & inner
        if not any(one.name.rpartition(".")[0] == parent and one.name not in MODULES for one in found)
    }
    return frozenset(inner - only_files - {name})


def rank(name):
    """The position of a module in the order of its package: files of the package, its folders, what is above them."""
    package, _, rest = name.partition(".")
    first = rest.partition(".")[0]
    folders = import_module(package).FOLDERS
    if first in folders:
        return folders.index(first)
    return len(folders) if not first or name in ABOVE else -1


def places(name):
    """What the text tables of a module name: the values "module:object" of its dictionaries."""
    tables = [table for table in vars(import_module(name)).values() if isinstance(table, dict)]
    values = [value for table in tables for value in table.values()]
    words = [word for value in values for word in (value if isinstance(value, tuple) else (value,))]
    return [word for word in words if isinstance(word, str) and is_place(word)]


def is_place(word):
    return word.partition(".")[0] in ("rankopt", "formulations") and ":" in word


def test_the_arrow_points_from_rankopt_to_formulations():
    of = [name for name in MODULES if name.split(".")[0] == "formulations"]
    against = {name: [found.name for found in imports(MODULES[name]) if is_of(found, {"rankopt"})] for name in of}
    assert described(against) == {}


def test_solver_packages_are_loaded_where_they_are_used():
    used = {name: [found for found in imports(MODULES[name]) if is_of(found, SOLVER_PACKAGES)] for name in MODULES}
    assert (
        described({name: [one.name for one in found if not one.inside_function] for name, found in used.items()}) == {}
    )
    elsewhere = [name for name in used if name.startswith("formulations.") and name.split(".")[1] not in MAY_LOAD]
    assert described({name: used[name] for name in elsewhere}) == {}


def is_of(found, packages):
    return found.name.split(".")[0] in packages


def described(faults):
    """Of what was found for each module, what is not empty."""
    return {name: found for name, found in faults.items() if found}


@pytest.mark.parametrize("package", [rankopt, formulations])
def test_every_folder_is_listed_and_documented(package):
    root = Path(package.__file__).parent
    folders = {path.parent.relative_to(root).parts[0] for path in root.glob("*/*.py")}
    assert folders == set(package.FOLDERS)
    for name in MODULES:
        if is_face(name) and name.startswith(package.__name__):
            assert len(import_module(name).__doc__.strip()) > 30, f"{name} does not say what it holds"


def test_a_folder_imports_only_folders_before_it():
    """Imports for types included; faces hand names on as text only."""
    own = {name: [other for other in needed(name) if is_sibling(other, name)] for name in MODULES}
    assert (
        described({name: [other for other in found if rank(other) > rank(name)] for name, found in own.items()}) == {}
    )


def is_sibling(name, other):
    return name.partition(".")[0] == other.partition(".")[0]


def test_lazy_packages_list_every_name_that_type_checkers_see():
    packages = [
        name
        for name, path in MODULES.items()
        if is_face(name) and "= public_names(" in path.read_text(encoding="utf-8")
    ]
    assert len(packages) >= 15
    for name in packages:
        blocks = [one for one in ast.parse(MODULES[name].read_text(encoding="utf-8")).body if isinstance(one, ast.If)]
        seen = {alias.asname for block in blocks for one in block.body if isinstance(one, ast.ImportFrom)
                for alias in one.names if alias.asname}  # fmt: skip
        assert seen == public_names(name).keys(), name


def test_no_circle_of_files_exists():
    graph = nx.DiGraph((name, other) for name in MODULES for other in needed(name))
    assert [circle for circle in nx.strongly_connected_components(graph) if len(circle) > 1] == []
    assert nx.number_of_edges(graph) > len(MODULES)


@pytest.mark.parametrize(("package", "share"), [(formulations, 0.20), (rankopt, 0.22)])
def test_no_folder_holds_most_of_a_package(package, share):
    lines = Counter()
    for name, path in MODULES.items():
        if name.startswith(package.__name__):
            lines[name.split(".")[1] if "." in name else ""] += len(path.read_text(encoding="utf-8").splitlines())
    assert max(lines.values()) <= share * lines.total()


def test_a_loss_of_ones_own_would_have_to_be_listed_and_a_feature_map_would_not():
    assert is_loss(TopOne)
    assert not is_loss(MarginLoss)
    assert not is_loss(PositionalOracle)


def test_every_kind_of_constraint_is_in_its_table_and_a_method():
    own = {one.__name__ for one in vars(kinds).values() if inspect.isfunction(one) and one.__module__ == kinds.__name__}
    public = {name for name in own if not name.startswith("_")} - {"parameters"}
    assert public == set(kinds.KINDS)
    assert public == {name for name in vars(ConstraintMethods) if not name.startswith("_")} - {"add"}


def test_no_page_holds_bytes_that_are_no_text():
    """A page of results was once two thirds NUL bytes: a process went on writing to a file that another had cut."""
    root = Path(__file__).parents[1]
    pages = [path for folder in ("benchmarks", "docs", "examples") for path in (root / folder).rglob("*.md")]
    for path in [*pages, *root.glob("*.md")]:
        assert b"\0" not in path.read_bytes(), path


def test_no_test_imports_another():
    for path in Path(__file__).parent.rglob("test_*.py"):
        parts = [part for found in imports(path) for part in found.name.split(".")]
        assert not [part for part in parts if part.startswith("test_")], path


def test_every_file_is_imported_or_in_a_table():
    users = {}
    for name, path in MODULES.items():
        for found in imports(path):
            users.setdefault(found.name, set()).add(name)
    used = {name for name, found in users.items() if found != {name}}
    listed = {place.split(":")[0] for package in MODULES for place in places(package)}
    half_added = [name for name in MODULES if not is_face(name) and name not in DOORS | used | listed]
    assert half_added == [], "give each a line in the table of its package"


def test_every_entry_of_a_table_exists():
    named = {place for name in MODULES for place in places(name)}
    assert len(named) > 100
    assert [place for place in sorted(named) if not exists(*place.split(":"))] == []


def exists(module, attribute):
    return hasattr(import_module(module), attribute)


@pytest.mark.parametrize("package", PLUGINS)
def test_every_plugin_is_in_the_table_of_its_package(package):
    table, must_be_listed = PLUGINS[package]
    listed = set()
    home = package.removesuffix(".margin")
    for place in getattr(import_module(home), table).values():
        module, attribute = place.split(":")
        entry = getattr(import_module(module), attribute)
        listed.add(entry if isinstance(entry, type) else type(entry))
    own = [value for name in MODULES if f"{name}.".startswith(f"{package}.") for value in classes(name)]
    assert [kind for kind in own if must_be_listed(kind) and kind not in listed] == []
    assert all(must_be_listed(kind) for kind in listed if kind is not FunctionType)


def classes(name):
    """Classes that a module defines, protocols left out."""
    found = [value for value in vars(import_module(name)).values() if isinstance(value, type)]
    return [kind for kind in found if kind.__module__ == name and not getattr(kind, "_is_protocol", False)]


def test_an_estimator_has_at_most_three_base_classes_of_ours():
    named = {**rankopt.rankers.MODEL_CLASSES, **rankopt.experimental.PARTS}
    kinds = [kind for kind in (exists_at(place) for place in named.values()) if hasattr(kind, "fit")]
    assert len(kinds) >= 11
    for kind in kinds:
        ours = [one for one in kind.__mro__[1:] if one.__module__.split(".")[0] in ("rankopt", "formulations")]
        assert len(ours) <= 3, f"{kind.__name__}: {', '.join(one.__name__ for one in ours)}"


def exists_at(place):
    module, attribute = place.split(":")
    return getattr(import_module(module), attribute)


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


MOST_FILES = 315
"""Most files of the two packages; a change that needs more lists its files and raises it."""


def test_the_packages_have_at_most_so_many_files():
    assert len(MODULES) <= MOST_FILES


def test_no_small_file_is_imported_by_one_other_alone():
    """A file of fewer than 60 lines that only one other file uses belongs into that file."""
    users = {}
    for name in MODULES:
        for other in needed(name):
            users.setdefault(other, set()).add(name)
    listed = {place.split(":")[0] for package in MODULES for place in places(package)}
    small = [
        name
        for name, path in MODULES.items()
        if not is_face(name)
        and name not in DOORS | listed
        and len(path.read_text(encoding="utf-8").splitlines()) < 60
        and len(users.get(name, ())) <= 1
    ]
    assert small == []


def test_every_public_name_is_documented_and_names_one_thing():
    homes = {}
    for name in MODULES:
        for public in getattr(import_module(name), "__all__", ()) if is_face(name) else ():
            value = getattr(import_module(name), public)
            if (
                inspect.isclass(value) or inspect.isfunction(value)
            ) and name != "rankopt.torch":  # its names are torch's
                assert inspect.getdoc(value), f"{name}.{public} has no docstring"
                homes.setdefault(public, set()).add((value.__module__, value.__qualname__))
    assert {public: found for public, found in homes.items() if len(found) > 1} == {}
