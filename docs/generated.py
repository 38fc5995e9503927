"""Pages that mkdocs makes from the packages themselves, so that nothing stands twice: the gallery and the API."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

import formulations
import rankopt
from formulations.registry import load
from rankopt.cli import COMMANDS

TABLES = {
    "rankopt": [
        ("What most programs need", "rankopt", "FRONT"),
        ("Data", "rankopt.data", "PARTS"),
        ("Ratings", "rankopt.ratings", "PARTS"),
        ("Rankers", "rankopt.rankers", "RANKERS"),
        ("Boosting", "rankopt.boosting", "PARTS"),
        ("Measures", "rankopt.measures", "MEASURES"),
        ("Evaluation and files of runs", "rankopt.measures", "PARTS"),
        ("Bounds of the regret", "rankopt.losses", "BOUNDS"),
        ("Feature maps", "rankopt.losses", "FEATURE_MAPS"),
        ("Losses", "rankopt.losses", "LOSSES"),
        ("Losses at scores, and what they are made of", "rankopt.losses", "PARTS"),
        ("Methods", "rankopt.optimize", "METHODS"),
        ("Ascents on a measure", "rankopt.ascent", "PARTS"),
        ("Collaborative ranking", "rankopt.collaborative", "PARTS"),
        ("Explanations", "rankopt.explanations", "PARTS"),
        ("PyTorch", "rankopt.torch", "PARTS"),
        ("Engines", "rankopt.engines", "ENGINES"),
        ("Experiments", "rankopt.experiments", "PARTS"),
        ("Experimental", "rankopt.experimental", "PARTS"),
        ("Checks of extensions", "rankopt.testing", None),
    ],
    "formulations": [
        ("Problems", "formulations", "GALLERY"),
        ("Classes and functions", "formulations", "WORDS"),
        ("Solvers", "formulations.solvers", "SOLVERS"),
        ("Experimental", "formulations.experimental", "NAMES"),
        ("Checks of extensions", "formulations.testing", None),
    ],
}
"""For each page of the API its parts: heading, module, and the table that lists them (None: what `__all__` names)."""


def on_config(config: Any) -> Any:
    """The navigation of the formulations: a page for each problem of the gallery."""
    for entry in config.nav or []:
        if "Formulations" in entry:
            entry["Formulations"] += [{name: f"formulations/{name}.md"} for name in formulations.GALLERY]
    return config


def on_post_page(output: str, page: Any, config: Any) -> str:
    """The theme's search is a dialog without a name: screen readers hear one."""
    nameless = 'data-md-component="search" role="dialog"'
    return output.replace(nameless, nameless + ' aria-label="Search"')


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages to those of the folder."""
    pages: dict[str, Callable[[], str]] = {"formulations/index.md": gallery, "architecture.md": architecture}
    pages["api/command-line.md"] = command_line
    pages |= {f"formulations/{name}.md": (lambda name=name: formulation(name)) for name in formulations.GALLERY}
    pages |= {f"api/{package}.md": (lambda package=package: api(package)) for package in TABLES}
    for path, write in pages.items():
        files.append(File.generated(config, path, content=write()))
    return files


def architecture() -> str:
    """The folders of both packages in the order in which they may import each other, and what each file holds."""
    parts = [
        "# Architecture",
        "Two packages, one direction: `rankopt` imports `formulations`, never the reverse. Each folder is listed after "
        "all that it may import, and no files import each other in a circle; a test checks both. Each folder shows its "
        "docstring, then its files, each with the first sentences of its docstring.",
    ]
    for package in (formulations, rankopt):
        parts += [f"## {package.__name__}", plain(first_paragraph(package))]
        root = Path(package.__file__ or "").parent
        for name in package.FOLDERS:
            parts += [f"### {package.__name__}/{name}", *folder_page(root / name, f"{package.__name__}.{name}")]
    return "\n\n".join(parts) + "\n"


def folder_page(folder: Path, module: str) -> list[str]:
    """The docstring of a folder, its files, and its inner folders."""
    files = [path.stem for path in sorted(folder.glob("*.py")) if path.stem != "__init__"]
    rows = [f"| `{name}` | {plain(first_paragraph(import_module(f'{module}.{name}')))} |" for name in files]
    parts = [plain(first_paragraph(import_module(module)))]
    parts += ["\n".join(["| file | what |", "|---|---|", *rows])] if rows else []
    for inner in sorted(path.parent for path in folder.glob("*/__init__.py")):
        parts += [f"#### {'/'.join(inner.parts[-3:])}", *folder_page(inner, f"{module}.{inner.name}")]
    return parts


def first_paragraph(module: Any) -> str:
    """The first paragraph of a module's docstring, in one line."""
    return (inspect.getdoc(module) or "").partition("\n\n")[0].replace("\n", " ")


def gallery() -> str:
    """All problems, each in a line."""
    rows = [
        f"| [`{name}`]({name}.md) | {plain(first_line(load(place)))} |" for name, place in formulations.GALLERY.items()
    ]
    return "\n".join(
        ["# Formulations", "", plain(formulations.__doc__ or "", code=True), "", "| name | what |", "|---|---|", *rows]
    )


def formulation(name: str) -> str:
    """One problem: its statement and example, and how it is called."""
    parts = [f"# {name}", *described(name, load(formulations.GALLERY[name]))]
    return "\n\n".join(parts) + "\n"


def api(package: str) -> str:
    """The tables of a package: what is in each, with what its docstring begins with, and below it each in full."""
    parts = [f"# {package}", plain(inspect.getdoc(import_module(package)) or "", code=True)]
    full: dict[str, list[str]] = {}
    for heading, module, table in TABLES[package]:
        entries = listed(module, table)
        rows = [f"| [`{name}`](#{anchor(name)}) | {plain(first_line(thing))} |" for name, thing in entries.items()]
        parts += [f"## {heading}", f"`{module}`", "\n".join(["| name | what |", "|---|---|", *rows])]
        full |= {name: described(name, thing) for name, thing in entries.items() if name not in full}
    parts += ["## Each in full"]
    for name, lines in sorted(full.items()):
        parts += [f"### `{name}` {{ #{anchor(name)} }}", *lines]
    return "\n\n".join(parts) + "\n"


def command_line() -> str:
    """What each command says of itself under `--help`."""
    import click

    parts = ["# Command line"]
    for name, (place, _) in COMMANDS.items():
        command = load(place)
        context = click.Context(command, info_name=f"rankopt {name}", terminal_width=110, max_content_width=110)
        parts += [f"## rankopt {name}", f"```text\n{command.get_help(context)}\n```"]
    return "\n\n".join(parts) + "\n"


def listed(module: str, table: str | None) -> Mapping[str, Any]:
    """What a table names, loaded."""
    home = import_module(module)
    if table is None:
        return {name: getattr(home, name) for name in home.__all__}
    return {name: load(place) for name, place in getattr(home, table).items()}


def described(name: str, thing: Any) -> list[str]:
    """How a thing is called, and its docstring as it stands."""
    parts = []
    if callable(thing) and not isinstance(thing, type) and not inspect.isfunction(thing):
        thing = type(thing)  # a measure is a value: its family tells more
    elif callable(thing) and not (isinstance(thing, type) and issubclass(thing, BaseException)):
        parts.append(f"```python\n{name}{arguments(thing)}\n```")
    return [*parts, plain(inspect.getdoc(thing) or "", code=True)]


def arguments(thing: Any) -> str:
    """The names of the arguments and their defaults; the docstring says what they are."""
    bare = inspect.Parameter.empty
    found = inspect.signature(thing)
    named = [one.replace(annotation=bare) for one in found.parameters.values()]
    text = str(found.replace(parameters=named, return_annotation=bare))
    return re.sub(r"<(?:function|class) '?([\w.<>]+)'?(?: at 0x[0-9a-f]+)?>", r"\1", text)


def first_line(thing: Any) -> str:
    """The first sentence of a docstring."""
    if not isinstance(thing, type) and not inspect.isroutine(thing) and not inspect.ismodule(thing):
        thing = type(thing)
    text = (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")
    return text if len(text) < 160 else text[:160].rpartition(" ")[0] + " …"


def plain(text: str, code: bool = False) -> str:
    """Text that Markdown leaves alone: a block as it stands, or a line whose signs mean nothing outside `code`."""
    if code:
        return f"```text\n{inspect.cleandoc(text).strip()}\n```" if text.strip() else ""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a backtick was cut off
        return plain(text.replace("`", ""))
    return "`".join(part if i % 2 else re.sub(r"([\\*_{}\[\]<>|#])", r"\\\1", part) for i, part in enumerate(parts))


def anchor(name: str) -> str:
    return f"entry-{name}"
