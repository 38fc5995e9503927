"""The macros as functions, for `changes_page` and `direct_page` only; delete this file with them."""

from __future__ import annotations

from markupsafe import Markup, escape

from rankopt.report.page import environment

Html = Markup
_SHELL = """{% extends "base.html" %}{% block title %}{{ title }}{% endblock %}{% block lead %}{{ lead }}{% endblock %}
{% block main %}{{ sections }}{% endblock %}"""


def _macro(name: str, *arguments: object) -> Html:
    return Html(getattr(environment().get_template("macros.html").module, name)(*arguments))


def table(head: object, rows: object, caption: str = "") -> Html:
    return _macro("table", head, rows, caption)


def figures(drawings: object) -> Html:
    return _macro("figures", drawings)


def element(tag: str, *content: object) -> Html:
    return Html("<{0}>{1}</{0}>").format(Html(tag), Html("").join(map(escape, content)))


def section(heading: str, *parts: object) -> Html:
    return element("section", element("h2", heading), *(p if isinstance(p, Html) else element("p", p) for p in parts))


def page(title: str, lead: str, *sections: Html, finding: str = "", made_by: str = "") -> str:
    shell = environment().from_string(_SHELL)
    data = {"title": title, "lead": lead, "finding": finding, "made_by": made_by}
    return shell.render(data, sections=Html("").join(map(escape, sections)))
