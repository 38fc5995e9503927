"""One self-contained page: style, script and figures stand inside it, and it may fetch nothing."""

from __future__ import annotations

from importlib.metadata import version
from importlib.resources import files

from rankopt.report.html import Html, element, rules

NOTHING_IS_FETCHED = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""What the browser itself holds the page to."""


def section(heading: str, *parts: object) -> Html:
    """A part of a page under its heading; text becomes a paragraph."""
    body = [part if isinstance(part, Html) else element("p", part) for part in parts]
    return element("section", element("h2", heading), *body)


def page(title: str, lead: str, *sections: Html, finding: str = "", made_by: str = "") -> str:
    """The whole document.

    Args:
        title: what the page is about; lead: one or two sentences that say what is shown.
        sections: what `section` returns.
        finding: what was found and what to do, computed from the numbers below; it stands first, under the title.
        made_by: the command that made it, printed at the foot.
    """
    foot = [f"rankopt {version('rankopt')}", *([", made by ", element("code", made_by)] if made_by else [])]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=NOTHING_IS_FETCHED),
        element("title", title),
        element("style", Html(rules() + _own("page.css"))),
    )
    found = [element("p", finding, class_="finding")] if finding else []
    body = element(
        "body",
        element("header", element("h1", title), *found, element("p", lead)),
        element("main", *sections),
        element("footer", element("p", *foot)),
        element("script", Html(_own("sorting.js"))),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _own(name: str) -> str:
    """A file that stands beside this one."""
    return files("rankopt.report").joinpath(name).read_text(encoding="utf-8")
