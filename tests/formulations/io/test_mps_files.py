"""MPS files as programs write them: every line counts, or is refused by its own name with file and line."""

import numpy as np
import pytest
from problems.program_content import content, variable

from formulations import read_program
from formulations.errors import InvalidProblemError, ProgramFileWarning

HEAD = "NAME T\nROWS\n N COST\n G LOW\n L TOP\n E MID\nCOLUMNS\n X COST 1 LOW 1\n X TOP 1\n Y COST 2 MID 1\n"
INF = np.inf


def read(tmp_path, text):
    path = tmp_path / "a.mps"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return content(read_program(path))


@pytest.mark.parametrize(
    ("tail", "rows", "columns"),
    [
        ("RHS\n ONE LOW 4 TOP 9\n TWO LOW 1\n THREE TOP 2\n", {"LOW": (4, INF), "TOP": (-INF, 9)}, {}),
        ("RHS\n ONE LOW 4\n TWO TOP 9\n", {"LOW": (4, INF), "TOP": (-INF, 0)}, {}),
        ("RHS\n ONE LOW 4 TOP 9\nRANGES\n A LOW 2\n B LOW 7\n B TOP 1\n", {"LOW": (4, 6), "TOP": (-INF, 9)}, {}),
        ("BOUNDS\n UP ONE X 5\n UP TWO X 3\n UP TWO Y 3\n", {}, {"X": (0, 5), "Y": (0, INF)}),
    ],
)
def test_the_first_of_several_vectors_is_read_with_a_warning(tmp_path, tail, rows, columns):
    with pytest.warns(
        ProgramFileWarning, match=r"a.mps: (RHS|RANGES|BOUNDS) has the vectors '.*', '.*'; only '\w+'"
    ) as told:
        _, found_columns, found_rows, _ = read(tmp_path, HEAD + tail + "ENDATA\n")
    assert len(told) == 1
    assert told[0].filename == __file__
    assert {name: found_rows[name][:2] for name in rows} == rows
    assert {name: found_columns[name][1:3] for name in columns} == columns


@pytest.mark.parametrize(
    ("tail", "rows"),
    [
        ("RHS\n LOW 4 TOP 9\n MID 1\n", {"LOW": (4, INF), "TOP": (-INF, 9), "MID": (1, 1)}),
        ("RHS\n R LOW 4\n TOP 9\n", {"LOW": (4, INF), "TOP": (-INF, 9)}),
        ("RHS\n R LOW 4D+1 TOP .5d1\n R MID -2E-1\n", {"LOW": (40, INF), "TOP": (-INF, 5), "MID": (-0.2, -0.2)}),
        (
            "RANGES\n R TOP -3 LOW -2\n R MID -1\nRHS\n R TOP 9 LOW 4\n R MID 7\n",
            {"TOP": (6, 9), "LOW": (4, 6), "MID": (6, 7)},
        ),
        ("RHS\n R MID 7\nRANGES\n R MID 1\n", {"MID": (7, 8)}),
        ("RHS\n R MID 7\nRANGES\n R MID 0\n", {"MID": (7, 7)}),
        ("RHS\n R MID 0.1\nRANGES\n R MID 0.2\n", {"MID": (0.1, 0.3)}),  # of decimals: 0.1 + 0.2 as floats is not 0.3
        ("RHS\n R TOP 1e30\n", {"TOP": (-INF, INF)}),
        (
            "RHS\n\tR\tLOW\t4  \n* a comment\n R TOP 9 $ 1 and more\n R MID 1 $\n",
            {"LOW": (4, INF), "TOP": (-INF, 9), "MID": (1, 1)},
        ),
        ("rhs\n r LOW 4\nranges\n r LOW 2\nendata\n", {"LOW": (4, 6)}),
    ],
)
def test_limits_of_rows(tmp_path, tail, rows):
    _, _, found, _ = read(tmp_path, HEAD + tail + "ENDATA\n")
    assert {name: found[name][:2] for name in rows} == rows


@pytest.mark.parametrize(
    ("bounds", "limits"),
    [
        (" UP X 4\n", (0, 4, False)),
        (" FR X\n", (-INF, INF, False)),
        (" FR B X 3\n", (-INF, INF, False)),
        (" MI X 0\n UP X -4\n", (-INF, -4, False)),
        (" BV B X 1\n", (0, 1, True)),
        (" bv b X\n up b X 1.\n", (0, 1, True)),
        (" LI B X -2\n UI B X 7 $ a comment\n", (-2, 7, True)),
        (" UP B X -5\n LO B X -9\n", (-9, -5, False)),
        (" FX B X -5\n", (-5, -5, False)),
        (" UP B X 4\n UP B X 4\n", (0, 4, False)),
    ],
)
def test_limits_of_variables(tmp_path, bounds, limits):
    _, columns, _, _ = read(tmp_path, HEAD + "BOUNDS\n" + bounds + "ENDATA\n")
    assert columns["X"] == (1.0, *limits)


@pytest.mark.parametrize(
    "sense",
    [
        "OBJSENSE\n    MAX\n",
        "OBJSENSE\n  maximize\n",
        "OBJSENSE MAX\n",
        "objsense\nMAXIMISE\n",
        "OBJSEN\n    MAXIMUM\n",
        "*SENSE:Maximize\n",
        "* sense : MAXIMIZE\n",
        "*SENSE:Maximize\nOBJSENSE\n MAX\n",
    ],
)
@pytest.mark.parametrize("at_end", [False, True])
def test_spellings_of_the_sense(tmp_path, sense, at_end):
    text = HEAD + sense + "ENDATA\n" if at_end else sense + HEAD + "ENDATA\n"
    assert read(tmp_path, text)[0] is True
    low = sense.lower().replace("max", "min")
    assert read(tmp_path, text.replace(sense, low))[0] is False


def test_the_objective_is_the_first_free_row_or_the_named_one(tmp_path):
    text = (
        HEAD.replace(" G LOW", " N OTHER\n G LOW").replace("X TOP 1", "X TOP 1 OTHER 7")
        + "RHS\n R COST -5 OTHER 3\nENDATA\n"
    )
    _, columns, rows, _ = read(tmp_path, text)
    assert columns == {"X": variable(1), "Y": variable(2), "objective constant": variable(5, 1, 1)}
    assert "OTHER" not in rows
    _, columns, rows, _ = read(tmp_path, "OBJNAME\n    OTHER\n" + text)
    assert columns == {"X": variable(7), "Y": variable(), "objective constant": variable(-3, 1, 1)}
    assert "COST" not in rows


@pytest.mark.parametrize(
    "squares",
    [
        "QUADOBJ\n X X 2\n X Y 1\n Y Y 4\n",
        "QUADOBJ\n X X 2\n Y X 1\n Y Y 4\n",
        "QSECTION COST\n X X 2\n X Y 1\n Y Y 4\n",
        "QSECTION\n X X 2\n X Y 1\n Y Y 4\n",
        "QMATRIX\n X X 2\n X Y 1\n Y X 1\n Y Y 4D0\n",
    ],
)
def test_sections_of_squares_are_those_that_highs_reads(tmp_path, squares):
    highspy = pytest.importorskip("highspy")
    (tmp_path / "a.mps").write_text(HEAD + squares + "ENDATA\n")
    read = read_program(tmp_path / "a.mps")
    np.testing.assert_array_equal(read.hessian.toarray(), [[2.0, 1.0], [1.0, 4.0]])
    if "D0" not in squares and squares.split("\n")[0] != "QSECTION":  # HiGHS reads neither
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.readModel(str(tmp_path / "a.mps"))
        assert [*highs.getModel().hessian_.value_] == [2.0, 1.0, 4.0]


def card(kind="", *fields):
    """A line in the columns of fixed format."""
    name, row, value, second, other = (*fields, *[""] * (5 - len(fields)))
    return f" {kind:<2} {name:<8}  {row:<8}  {value:>12}   {second:<8}  {other:>12}".rstrip() + "\n"


FIXED = (
    "NAME          NAMES WITH BLANKS\nROWS\n"
    + card("N", "COST")
    + card("L", "ROW 1")
    + card("G", "ROW  2")
    + card("E", "3 4")
    + "COLUMNS\n"
    + card("", "COL 1", "COST", "1.5", "ROW 1", "2.")
    + card("", "COL 1", "3 4", "-1.D0")
    + card("", "M 1", "'MARKER'", "", "'INTORG'")
    + card("", "COL 1 2", "ROW  2", "1.")
    + card("", "M 2", "'MARKER'", "", "'INTEND'")
    + "RHS\n"
    + card("", "", "ROW 1", "9.", "ROW  2", "1.")
    + card("", "", "3 4", "2.")
    + "RANGES\n"
    + card("", "THE RNG", "ROW 1", "4.")
    + "BOUNDS\n"
    + card("UP", "BND 1", "COL 1", "4.")
    + card("LO", "BND 1", "COL 1 2", "-3.")
    + "ENDATA\n"
)


def test_fixed_format_has_names_with_blanks(tmp_path):
    assert read(tmp_path, FIXED) == (
        False,
        {"COL 1": variable(1.5, 0, 4), "COL 1 2": variable(0, -3, INF, True)},
        {"ROW 1": (5, 9, {"COL 1": 2}), "ROW  2": (1, INF, {"COL 1 2": 1}), "3 4": (2, 2, {"COL 1": -1})},
        {},
    )
    commented = FIXED.replace(
        card("", "COL 1", "3 4", "-1.D0"), card("", "COL 1", "3 4", "-1.D0", "$ COMMENT", "OF MINE")
    )
    assert commented != FIXED
    assert read(tmp_path, commented) == read(tmp_path, FIXED)
    for free in (FIXED.replace("ROW 1     ", "ROW 1 "), FIXED.replace("    COL 1 2", "\tCOL 1 2")):
        with pytest.raises(InvalidProblemError, match=r"a.mps, line 4 is no row: .*fixed format"):
            read(tmp_path, free)


def test_fixed_and_free_format_without_blanks_in_names_are_the_same(tmp_path):
    fixed = (
        FIXED.replace("COL 1", "COL_1").replace("COL_1 2", "COL_1_2").replace("ROW 1", "ROW_1").replace("3 4", "3_4")
    )
    fixed = fixed.replace("ROW  2", "ROW__2").replace("BND 1", "BND_1").replace("THE RNG", "THE_RNG")
    fixed = fixed.replace("M 1", "M_1").replace("M 2", "M_2")
    free = "".join(" " * line.startswith(" ") + " ".join(line.split()) + "\n" for line in fixed.splitlines())
    assert read(tmp_path, fixed) == read(tmp_path, free)
    assert (
        read(tmp_path, free.replace("\n", "\r\n")) == read(tmp_path, free.encode("utf-8-sig")) == read(tmp_path, free)
    )


def test_a_row_may_be_called_marker_and_a_name_begin_with_a_dollar(tmp_path):
    text = "ROWS\n N C\n L MARKER\n L $R\nCOLUMNS\n $X MARKER 3 C 1\n $X $R 2\nBOUNDS\n UP $B $X 5\nENDATA\n"
    _, columns, rows, _ = read(tmp_path, text)
    assert columns == {"$X": variable(1, 0, 5)}
    assert rows == {"MARKER": (-INF, 0, {"$X": 3}), "$R": (-INF, 0, {"$X": 2})}


REFUSED = {
    "SOS\n S1 SOS X:1\n": "line 12 states special ordered sets",
    "SETS\n S1 S\n": "line 12 states special ordered sets",
    "COLUMNS\n M 'MARKER' 'SOSORG'\n": "line 12 states special ordered sets",
    "COLUMNS\n M 'MARKER' 'INTEGER'\n": "line 12 is a marker",
    "INDICATORS\n IF LOW X 1\n": "line 12 states indicator constraints",
    "QCMATRIX LOW\n X X 1\n": "line 12 states quadratic constraints",
    "QSECTION LOW\n X X 1\n": "line 11 has quadratic constraints",
    "QUADOBJ\n X Y 1\n Y X 1\n": "line 13 states an entry of the hessian twice",
    "QMATRIX\n X X 1\n X Y 1\n": "QMATRIX is not symmetric",
    "LAZYCONS\n L EXTRA\n": "line 12 states lazy constraints",
    "PWLOBJ\n X 1 2\n": "line 12 states a piecewise linear objective",
    "BOUNDS\n SC B X 5\n": "line 12 states a semicontinuous variable",
    "BOUNDS\n SI B X 5\n": "line 12 states a semi-integer variable",
    "BOUNDS\n XX B X 5\n": "line 12 is a bound of kind 'XX'",
    "BOUNDS\n UP B X 4 5\n": "line 12 is no bound",
    "BOUNDS\n UP B X\n": "line 12 needs a number; got 'X'",
    "BOUNDS\n UP B X 4\n UP B X 5\n": "line 13 states a second, different limit of 'X'",
    "BOUNDS\n FX B X 4\n LO B X 5\n": "line 13 states a second, different limit of 'X'",
    "RHS\n R LOW 4\n R LOW 5\n": "line 13 states a second value of 'LOW' in RHS",
    "RANGES\n R LOW 4\n R LOW 4\n": "line 13 states a second value of 'LOW' in RANGES",
    "RANGES\n R COST 4\n": "line 12 states a range of the objective",
    "RHS LOW 4\n": "line 11 has words after RHS",
    "X LOW 4\n": "line 11 begins an unknown section 'X'",
    "RHS\n R 4 LOW\n": "line 12 names a row '4'",
    "RHS\n R LOW 4 TOP\n": "line 12 names a row 'R'",
    "RHS\n R LOW 1,5\n": "line 12 needs a number; got '1,5'",
    "RHS\n R LOW \u0661\n": "line 12 needs a number",
    "OBJSENSE\n MAX\n MIN\n": "line 13 states a second, different sense",
    "*SENSE:Maximize\nOBJSENSE MIN\n": "line 12 states a second, different sense",
    "OBJSENSE\nROWS\n L NEW\n": "line 12 states the sense 'ROWS'",
    "OBJSENSE\n BEST\n": "line 12 states the sense 'BEST'",
    "OBJNAME\n COST\n": "line 12 is no single name of the objective before ROWS",
    "COLUMNS\n Y LOW 1 LOW 1\n": "line 12 states the entry of 'Y' in 'LOW' twice",
    "COLUMNS\n M 'MARKER' 'INTORG'\n Y LOW 1\n": "line 13 returns to the variable 'Y'",
    "COLUMNS\n X MID 1\n": "line 12 returns to the variable 'X'",
    "COLUMNS\n X LOW\n": "line 12 needs a row and a number",
    "ROWS\n DE SUM\n": "line 12 is no row",
}


@pytest.mark.parametrize("tail", REFUSED)
def test_what_is_not_supported_is_refused_by_its_name(tmp_path, tail):
    (tmp_path / "a.mps").write_text(HEAD + tail + "ENDATA\n", encoding="utf-8")
    with pytest.raises(InvalidProblemError, match=f"a.mps[,:] {REFUSED[tail]}"):
        read_program(tmp_path / "a.mps")


@pytest.mark.parametrize(
    "section", ["SOS", "SETS", "INDICATORS", "LAZYCONS", "QCMATRIX LOW", "RANGES", "BOUNDS", "QUADOBJ"]
)
def test_an_empty_section_states_nothing(tmp_path, section):
    assert read(tmp_path, HEAD + section + "\nENDATA\n") == read(tmp_path, HEAD + "ENDATA\n")
