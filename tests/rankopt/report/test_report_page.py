"""The report page: nothing from outside, data escaped, colors that follow the reader; opened in a browser."""

import re
from dataclasses import replace
from functools import cache
from html import unescape
from xml.etree import ElementTree

import numpy as np
import pytest
from browser import NAMES, Browser, installed
from click.testing import CliRunner
from problems.swap_rows import sample_rows
from scipy.sparse import csr_array

from rankopt.cli import rankopt
from rankopt.experiments.rows import Outcome
from rankopt.rankers import CofiRanker
from rankopt.ratings import ItemMeanBaseline, PopularityBaseline, evaluate_ratings, load_ratings_sample, weak_split
from rankopt.report.charts import convergence, heat_map, measure_curves, profile_drawing
from rankopt.report.cofi_page import page_of_cofi
from rankopt.report.page import DARK, LIGHT, Drawing, FormattedCell, environment, line_style
from rankopt.report.set_page import matrix_picture
from rankopt.report.swap_page import page_of_swap, swap_finding

HOSTILE = "<script>document.title = 'broken'</script> & \"quoted\" $x_1$"


def drawings(name="a"):
    steps = np.arange(1, 40)
    run = {
        "step": steps.tolist(),
        "round": (steps // 20).tolist(),
        "seconds": (0.01 * steps).tolist(),
        "primal": [None, *(0.5 + 1 / steps[1:]).tolist()],
        "bound": (0.5 - 1 / steps).tolist(),
    }
    names = [f"{name} {i}" for i in range(10)]
    several = {each: run for each in names}
    shares = np.where(np.eye(10) > 0, 1.0, 0.5)
    shares[2, 3] = np.nan
    return [
        *convergence(several, name),
        *measure_curves({each: {f"nDCG@{k}": 0.1 * k for k in (1, 3, 5)} for each in names}, name),
        heat_map(names, shares, name, name),
        profile_drawing({each: (np.array([1.0, 10.0]), np.array([0.5, 1.0])) for each in names}, name),
        matrix_picture(csr_array(np.eye(5)), [0, 1], [0, 1]),
    ]


ROWS = [["ten", 10, 0.5], ["nine", 9, None], ["two", 2, FormattedCell(30.0, "30 s")], ["nine again", 9, float("nan")]]


TEMPLATE = """{% extends "base.html" %}{% from "macros.html" import figures, table %}
{% block title %}{{ name }}{% endblock %}{% block lead %}{{ name }}{% endblock %}
{% block main %}<section><h2>{{ name }}</h2>
{{ figures(drawings) }}{{ table(head, rows, name) }}</section>{% endblock %}"""


def whole(name="a"):
    data = {"head": [name, "count", "seconds"], "rows": [*ROWS, [name, 1, 0.1]], "drawings": drawings(name)}
    return environment().from_string(TEMPLATE).render(data, name=name, finding=name, made_by=name)


@cache
def the_page():
    return whole()


@pytest.mark.study
def test_text_from_data_is_escaped_wherever_it_enters():
    page = whole(HOSTILE)
    assert "<script>document" not in page
    assert '"quoted"' not in page
    assert unescape(page).count(HOSTILE) > 10


@pytest.mark.study
def test_figures_are_xml_with_text_as_text_and_ids_of_their_own():
    drawn = re.findall(r"<svg.*?</svg>", the_page(), flags=re.DOTALL)
    assert len(drawn) == len(drawings())
    seen = set()
    for one in drawn:
        root = ElementTree.fromstring(one)
        ids = [node.get("id") for node in root.iter() if node.get("id")]
        assert len(ids) == len(set(ids))
        assert not seen.intersection(ids)
        seen.update(ids)
        used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', one))
        assert used <= set(ids)
        words = " ".join("".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text"))
        assert re.search("[a-z]", words)


@pytest.mark.study
def test_nothing_is_fetched():
    addresses = set(re.findall(r"https?://[^\"'\s<)]+", the_page()))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "default-src 'none'" in unescape(the_page())
    assert not re.search(r"<(link|img|iframe|script src)", the_page())


def test_colors_are_variables_that_both_palettes_define():
    assert set(LIGHT) == set(DARK)
    used = set(re.findall(r"var\(--(\w+)\)", the_page()))
    assert used <= set(LIGHT)
    drawn = "".join(re.findall(r"<svg.*?</svg>", the_page(), flags=re.DOTALL))
    assert set(re.findall(r"#[0-9a-f]{6}\b", drawn)) == set()


def luminance(color):
    parts = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return float(np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_text_stands_out_from_every_ground(palette):
    """Contrast 4.5 as WCAG asks of text; 2 at least of lines, which stand beside named others."""

    def contrast(one, other):
        low, high = sorted(luminance(palette[name]) for name in (one, other))
        return (high + 0.05) / (low + 0.05)

    for ground in ("paper", "h0", "h1", "h2", "h3", "bad", "none"):
        assert contrast("ink", ground) >= 4.5, ground
    assert contrast("soft", "paper") >= 4.5
    assert min(contrast(f"s{i}", "paper") for i in range(1, 9)) >= 2


def test_a_drawing_that_fails_leaves_the_style_as_it_was():
    import matplotlib

    before = dict(matplotlib.rcParams)
    with pytest.raises(ZeroDivisionError), Drawing("t", "s"):
        _ = 1 / 0
    assert dict(matplotlib.rcParams) == before


def test_more_series_than_colors_differ_by_dashes():
    styles = [str(line_style(place)) for place in range(24)]
    assert len(set(styles)) == 24


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if installed() is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed, so pages are not opened")
    return Browser(tmp_path_factory.mktemp("browser"))


READ = "const column = (i) => Array.from(document.querySelectorAll('tbody tr'), (row) => row.cells[i].textContent);"
CLICK = READ + "const click = (i) => document.querySelectorAll('thead th button')[i].click();"


def test_a_click_sorts_numbers_by_value_and_leaves_the_unknown_below(browser):
    script = CLICK + "const found = []; for (const i of [1, 1, 2, 2, 0]) { click(i); found.push(column(i)); }"
    state = "return [found, Array.from(document.querySelectorAll('thead th'), (th) => th.getAttribute('aria-sort'))];"
    (found, sorted_by), console = browser.ask(the_page(), script + state)
    assert console == []
    assert found[0] == ["1", "2", "9", "9", "10"]
    assert found[1] == ["10", "9", "9", "2", "1"]
    assert found[2] == ["0.1", "0.5", "30 s", *found[2][3:]]
    assert found[3] == ["30 s", "0.5", "0.1", *found[3][3:]]
    assert found[4] == sorted(found[4])
    assert sorted_by == ["ascending", None, None]


def test_equal_rows_keep_their_order(browser):
    (before, after), _ = browser.ask(the_page(), CLICK + "const a = column(0); click(1); return [a, column(0)];")
    nines = [name for name in after if name.startswith("nine")]
    assert nines == [name for name in before if name.startswith("nine")]


@pytest.mark.every(5)
@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_page_fits_its_width_in_both_colors(browser, width, dark):
    script = (
        "const root = document.documentElement, seen = (node) => getComputedStyle(node);"
        "return [innerWidth, root.scrollWidth, seen(document.body).backgroundColor, seen(document.body).color,"
        "seen(document.querySelector('svg text')).fill];"
    )
    (inner, scroll, ground, ink, letters), console = browser.ask(the_page(), script, width=width, dark=dark)
    assert console == []
    assert inner == width
    assert scroll <= inner
    palette = DARK if dark else LIGHT
    # the first text of the figures is a number beside an axis
    assert [ground, ink, letters] == [rgb(palette["paper"]), rgb(palette["ink"]), rgb(palette["soft"])]


def rgb(color):
    return f"rgb({', '.join(str(int(color[i : i + 2], 16)) for i in (1, 3, 5))})"


@pytest.mark.study
def test_hostile_names_change_nothing(browser):
    title, console = browser.ask(whole(HOSTILE), "return document.title;")
    assert console == []
    assert title == HOSTILE


def test_what_would_be_fetched_or_fails_is_seen_on_the_console(browser):
    """The checks above would notice: a request is refused by the page itself, and an error is printed."""
    broken = the_page().replace("<main>", '<main><img src="http://localhost:1/x.png" alt=""><script>missing()</script>')
    _, console = browser.ask(broken, "return 1;")
    assert any("Content Security Policy" in line for line in console)
    assert any("missing is not defined" in line for line in console)


@pytest.mark.study
def test_a_screenshot_shows_more_than_paper(browser, tmp_path):
    from matplotlib.image import imread

    file, shot = tmp_path / "page.html", tmp_path / "page.png"
    file.write_text(the_page(), encoding="utf-8")
    browser.run(f"--screenshot={shot}", file.as_uri())
    picture = imread(shot)
    assert picture.shape[1] == 1400
    colors = (255 * picture[..., :3]).astype(int) @ [1 << 16, 1 << 8, 1]
    assert len(np.unique(colors)) > 50


# The first sentences of report pages say what the numbers below them say.


ROWS_FOUND = sample_rows()


def finding(text):
    """What stands first on a page, right under its title."""
    return unescape(re.search(r'<header><h1>[^<]*</h1><p class="finding">(.*?)</p>', text)[1])


def of(kind, **changes):
    return [replace(row, **changes) for row in ROWS_FOUND if row.kind == kind]


def test_a_finding_stands_first_and_is_escaped():
    base = environment().get_template("base.html")
    text = base.render(finding="a < b", made_by="")
    assert '<header><h1></h1><p class="finding">a &lt; b</p><p></p></header>' in text
    assert 'class="finding"' not in base.render(finding="", made_by="")


def test_solvers_are_compared_only_where_they_solved_all_problems():
    text = swap_finding(ROWS_FOUND)
    assert finding(page_of_swap(ROWS_FOUND)) == text
    assert text.startswith("2 of 5 solvers solved all 12 rankings. Mean time per problem: exact ")
    runs = {row.solver: row.seconds for row in of("training") if row.role == "argmax"}  # that of highs was cut
    first, second = sorted(("exact", "scipy"), key=runs.get)
    took = f"{runs[first]:.3g} s with {first} as argmax solver, {runs[second]:.3g} s with {second}"
    assert f"Training took {took}." in text
    assert "Do not use own:faulty: 3 answers were refuted." in text
    argmax = of("argmax")
    exact = [row for row in argmax if row.solver == "exact"]
    cut = [replace(row, status=Outcome.TIMED_OUT) for row in exact[:1]] + exact[1:]
    assert swap_finding(cut) == "No solver solved all 12 rankings, so their times are not compared."
    partly = [replace(row, solver="partial", status=Outcome.UNSUPPORTED) for row in exact[:1]]
    partly += [replace(row, solver="partial", seconds=1e-9) for row in exact[1:]]
    assert swap_finding(partly + exact) == "Of 2 solvers exact alone solved all 12 rankings."
    files = swap_finding([replace(row, sizes={"numbers": 168}) for row in argmax])
    assert "solved all 12 problems." in files
    assert "ranking" not in files
    assert swap_finding([]) == ""


def test_every_instance_is_listed_with_value_bound_claim_and_seconds():
    (one,) = (row for row in of("argmax") if row.solver == "exact" and row.problem.endswith("q3"))
    claim = {"reported_status": "OPTIMAL", "reported_bound": 7.5, "status": Outcome.INEXACT, "value": 7.0, "bound": 9.0}
    rows = [replace(one, problem="uflp.mps", shape_text="28 rows × 168 variables", seconds=0.25, **claim),
            replace(one, problem="uflp.mps", solver="partial", status=Outcome.UNSUPPORTED)]  # fmt: skip
    page = page_of_swap(rows)
    body = page[page.index("Instances:") :].split("<tbody>")[1].split("</tbody>")[0]
    cells = re.findall(r"<td[^>]*>(.*?)</td>", body)
    size = "28 rows × 168 variables"
    assert cells == ["uflp.mps", size, "exact", "optimal (claimed)", "7", "9", "0.5", "optimal", "7.5", "0.25"]
    assert "claimed bound" not in page_of_swap([replace(one, reported_status=None)])


def test_many_runs_are_small_multiples_with_full_names():
    several = {f"argmax {i}, master {i}": {"step": [1, 2], "round": [0, 0], "seconds": [0.1, 0.2 + i],
               "primal": [1.0, 0.9], "bound": [0.1, 0.8]} for i in range(12)}  # fmt: skip
    (drawing,) = convergence(several, "pairs")
    text = drawing.svg(1)
    assert all(f">{name}<" in text for name in several)
    assert len(convergence(dict([*several.items()][:6]), "pairs")) == 3


def test_runs_that_end_further_apart_than_their_gaps_are_told():
    runs = of("training")
    assert "all within it of the best" in swap_finding(runs)
    lower = min(row.bound for row in runs) - 1.0
    apart = [replace(runs[0], value=lower, bound=lower), *runs[1:]]
    assert "further from the best than its gap" in swap_finding(apart)


def test_statements_are_counted():
    assert "3 are proved integral, 3 refuted, 3 open" in swap_finding(of("integrality"))
    assert "any solver of linear programs gives rankings" in swap_finding(of("integrality", status=Outcome.PROVED))


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        (
            'at_most = 1\nby = "topic"\n',
            ["Refuted: the matrix is not totally unimodular", "This optimum is", "'cp_sat'"],
        ),
        ("at_most = 1\ndocuments = [0, 1]\n", ["Proved: every vertex of the linear program is a ranking"]),
    ],
)
def test_verify_says_what_to_do(tmp_path, limit, told):
    file, written = tmp_path / "set.toml", tmp_path / "set.html"
    file.write_text(
        "documents = 6\npositions = 3\nweights = [1, 0.9, 0.8]\nscores = [3, 3, 3, 0, 0, 0]\n[attributes]\n"
        f'topic = [["a", "b"], ["b", "c"], ["c", "a"], [], [], []]\n[[constraint]]\n{limit}'
    )
    CliRunner().invoke(rankopt, ["verify", str(file), "--report", str(written)])
    first = finding(written.read_text())
    for part in told:
        assert part in first


def test_ratings_without_a_test_are_told_how_far_training_came_and_how_to_judge():
    ranker = CofiRanker(reg=0.7).fit(load_ratings_sample())
    first = finding(page_of_cofi(ranker, [], None, "genre", "sample"))
    gap = max(ranker.certificate_.users_gap, ranker.certificate_.items_gap)
    assert f"both blocks' proven gaps were {100 * gap:.2g}% or less" in first
    assert "give --test-per-user 10, or --test FILE" in first


def test_who_leads_on_test_ratings_is_to_be_used_there():
    split = weak_split(load_ratings_sample(), 10)
    ranker = CofiRanker(reg=0.7).fit(split.train)
    made = {
        "cofi": ranker,
        "means": ItemMeanBaseline().fit(split.train),
        "popularity": PopularityBaseline().fit(split.train),
    }
    judged = {
        who: [evaluate_ratings(split, one, candidates=among) for among in ("rated", "all")] for who, one in made.items()
    }
    ahead = [max(judged, key=lambda who: judged[who][column].mean) for column in (0, 1)]
    first = finding(page_of_cofi(ranker, list(judged.items()), None, "genre", "sample"))
    told = f"To order items that a user has chosen use: {ahead[0]}. To recommend among all use: {ahead[1]}."
    first, _, hint = first.partition(" For lists among all items try --unrated-weight 0.05 to 0.4, ")
    assert first.endswith(f"Use {ahead[0]}." if ahead[0] == ahead[1] else told)
    assert hint == "chosen by --test-per-user 5."
    cells = ["+.1", "-.1 to +.3", "p = .3"]
    tests = [["a", "rated items", *cells, "cofi is not ahead of means. Use means."], ["b", "all items", *cells, ""]]
    tested = finding(page_of_cofi(ranker, list(judged.items()), None, "genre", "sample", "", tests))
    assert f"cofi is not ahead of means. Use means. To recommend among all use: {ahead[1]}. For lists" in tested
    assert "To order items" not in tested
    alone = finding(page_of_cofi(ranker, [("cofi", judged["cofi"])], None, "genre", "sample"))
    assert " Use cofi. For lists among all items try" in alone
    aware = finding(page_of_cofi(CofiRanker(reg=0.7, unrated_weight=0.1).fit(split.train), [], None, "genre", "sample"))
    assert "--unrated-weight" not in aware
