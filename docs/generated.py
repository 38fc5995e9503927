"""Parts of pages that mkdocs generates: the API and the architecture from docstrings, the changelog, benchmarks/."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel

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
        ("Clicks", "rankopt.clicks", None),
        ("Policies under exposure", "rankopt.policies", "PARTS"),
        ("Decisions", "rankopt.decisions", "PARTS"),
        ("PyTorch", "rankopt.torch", "PARTS"),
        ("Engines", "rankopt.engines", "ENGINES"),
        ("Experiments", "rankopt.experiments", "PARTS"),
        ("Experimental", "rankopt.experimental", "PARTS"),
        ("Models, checkpoints, ONNX", "rankopt.rankers", "_PARTS"),
        ("Line search", "rankopt.optimize", "SEARCHES"),
        ("Errors and warnings", "rankopt.errors", None),
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
"""For each page of the API its parts: heading, module, and the table that lists them. None: what `__all__` names, or
what the module defines."""


GROUP = re.compile(r"<tr class=\"doc-section-item\">\s*<td>\s*<code>\*\*(\w+).*?</tr>", flags=re.DOTALL)
GROUPS = {"Start": "Start here", "Model": "Model", "Solver": "Solver", "Run": "Run"}


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Headings between parameters, which mkdocstrings takes for parameters, become rows of their own."""
    return GROUP.sub(lambda found: f'<tr><td colspan="4"><strong>{GROUPS[found[1]]}</strong></td></tr>', html)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """The theme's search is a dialog without a name: screen readers hear one."""
    nameless = 'data-md-component="search" role="dialog"'
    return output.replace(nameless, nameless + ' aria-label="Search"')


BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
MARK = re.compile(r"^<!-- generated: (\w+)(?: (\w+))? -->$", flags=re.MULTILINE)
OUTSIDE = re.compile(r"\]\(((?:\.\./)*)\.\./benchmarks/")
"""Links that leave the folder docs, for pages that the site has one folder higher."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of benchmarks/, which the navigation does not list."""
    for path in sorted(BENCHMARKS.glob("*.md")):
        text = path.read_text(encoding="utf-8").replace("](../docs/", "](../")
        page = File.generated(config, f"benchmarks/{path.name}", content=text)
        page.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(page)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Fill in what is generated; links to benchmarks/ lead to the pages of the site."""
    writers = {"architecture": architecture, "api": api, "commands": command_line, "changelog": changelog}
    markdown = MARK.sub(lambda found: writers[found[1]](*filter(None, found.groups()[1:])), markdown)
    return OUTSIDE.sub(r"](\1benchmarks/", markdown)


def changelog() -> str:
    """CHANGELOG.md without its heading."""
    return (BENCHMARKS.parent / "CHANGELOG.md").read_text(encoding="utf-8").partition("\n")[2]


def architecture() -> str:
    """The folders of both packages in the order in which they may import each other, and what each file holds."""
    parts = []
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


def api(package: str) -> str:
    """The tables of a package: the first sentence on each name, and below them each in full, by mkdocstrings."""
    parts = []
    full: dict[str, tuple[str, Any]] = {}  # by path: two tables may use one name
    for heading, module, table in TABLES[package]:
        entries = listed(module, table)
        rows = [f"| [`{name}`](#{place}) | {plain(first_line(thing))} |" for name, (place, thing) in entries.items()]
        parts += [f"## {heading}", f"`{module}`", "\n".join(["| name | what |", "|---|---|", *rows])]
        full |= {place: (name, thing) for name, (place, thing) in entries.items() if place not in full}
    parts += ["## Reference"]
    for place, (name, thing) in sorted(full.items(), key=lambda entry: entry[1][0].lower()):
        if isinstance(thing, type) or inspect.isfunction(thing):
            parts += [f"::: {place}"]
        else:  # an instance: the docstring of its class
            parts += [
                f"### `{name}` {{ #{place} }}",
                first_line(thing) if isinstance(thing, dict) else plain(inspect.getdoc(type(thing)) or "", code=True),
            ]
    return "\n\n".join(parts) + "\n"


def command_line() -> str:
    """What each command says of itself under `--help`."""
    import click

    parts = []
    for name, (place, _) in COMMANDS.items():
        command = load(place)
        context = click.Context(command, info_name=f"rankopt {name}", terminal_width=110, max_content_width=110)
        parts += [f"## rankopt {name}", f"```text\n{command.get_help(context)}\n```"]
    return "\n\n".join(parts) + "\n"


def listed(module: str, table: str | None) -> dict[str, tuple[str, Any]]:
    """What a table names: the path of its definition, and the thing."""
    home = import_module(module)
    own = [name for name, one in vars(home).items() if getattr(one, "__module__", "") == module]
    names = getattr(home, "__all__", own)
    places = {name: f"{module}:{name}" for name in names} if table is None else getattr(home, table)
    things = {name: load(place) for name, place in places.items()}
    defined = {
        name: getattr(thing, "__module__", "") + "." + getattr(thing, "__qualname__", name)
        for name, thing in things.items()
    }
    return {name: (defined[name], thing) for name, thing in things.items()}


def first_line(thing: Any) -> str:
    """The first sentence of a docstring, or the keys of a table."""
    if isinstance(thing, dict):
        return "By name: " + ", ".join(f"`{key}`" for key in thing)
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
    safe = [re.sub(r"([\\*_{}\[\]|#])", r"\\\1", part).replace("<", "&lt;") for part in parts[::2]]
    parts[::2] = safe
    return "`".join(parts)
