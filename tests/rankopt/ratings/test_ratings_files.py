"""Files of ratings are read as they stand, or refused with file, line and cure; in linear time and bounded memory."""

import gzip
import re
import time
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from rankopt.cli import rankopt
from rankopt.errors import DataError, OptionError
from rankopt.ratings import Ratings, load_ratings_sample, read_ratings, reading
from rankopt.ratings.films import GENRES
from rankopt.ratings.reading import Layout, read_items

DATA = "1\t10\t5\t880\n2\t10\t3\t881\n1\t9\t4.5\t882\n"
EXPECTED = Ratings.from_arrays([1, 2, 1], [10, 10, 9], [5, 3, 4.5])


@pytest.fixture(params=["at once", "by line", "in blocks"])
def read(request, tmp_path, monkeypatch):
    if request.param == "by line":
        monkeypatch.setattr(Layout, "numbers", lambda self: None)
    if request.param == "in blocks":
        monkeypatch.setattr(reading, "BLOCK", 1)

    def read(content, name="x.txt", **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_ratings(path, **options)

    return read


@pytest.mark.parametrize(
    "content",
    [
        DATA,
        DATA.replace("\t", "::"),
        DATA.replace("\t", ";"),
        DATA.replace("\t", " "),
        DATA.replace("\t", ", "),
        DATA.rstrip("\n"),
        DATA.replace("\n", "\r\n"),
        "\ufeff" + DATA,
        "\n" + DATA.replace("\n", "\n\n"),
        gzip.compress(DATA.encode(), mtime=0),
        "userId,movieId,rating,timestamp\n" + DATA.replace("\t", ","),
        "rating,item_id,user\n5,10,1\n3,10,2\n4.5,9,1\n",
        '"User-ID";"ISBN";"Book-Rating"\n"1";"10";"5"\n"2";"10";"3"\n"1";"9";"4.5"\n'.replace("Book-R", "R"),
    ],
)
def test_files_of_one_content_give_one_table(read, content):
    assert read(content) == EXPECTED


def test_ids_are_whole_numbers_where_all_are_and_else_strings(read):
    assert read("1 10 5\n-2 10 3\n").users.tolist() == [-2, 1]
    assert read("1,10,5\n02,10,3\n").users.tolist() == ["02", "1"]
    assert read("1,10,5\n1000000000000000000000,10,3\n").users.tolist() == ["1", "1" + "0" * 21]
    assert read("999999999999999999,10,5\n999999999999999998,10,3\n").n_users == 2
    named = read('ann,"Alien, the ""film""",5\nb\xe9a,Cube,-1e-3\n')
    assert named.items.tolist() == ['Alien, the "film"', "Cube"]
    assert named.values.tolist() == [5.0, -0.001]


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        (DATA + "1\t8\n", 4, "2 fields, but the first line has 4"),
        (DATA + "1\t8\t3\t1\t1\n", 4, "5 fields"),
        (DATA + "1\t8\t\t1\n", 4, "the rating is ''"),
        (DATA + "1\t8\tnan\t1\n", 4, "the rating is 'nan'. Ratings are finite numbers"),
        (DATA + "1\t8\t1e999\t1\n", 4, "the rating is '1e999'"),
        (DATA + "1\t8\t0x1\t1\n", 4, "the rating is '0x1'"),
        (DATA + "\t8\t3\t1\n", 4, "the user is empty"),
        (DATA + "1\t\t3\t1\n", 4, "the item is empty"),
        (DATA + "\n\n2\t10\t1\t1\n", 6, "user 2 rates item 10, as in line 2; remove one"),
        ("\n" + DATA + "x\t9\t1\t1\n1\t9\t1\t1\nx\t9\t1\t1\n", 6, "user '1' rates item 9, as in line 4; remove"),
        (DATA.encode() + b"1\t8\x00\t3\t1\n", 4, "byte 0x00 in column 4 is not text"),
        (DATA.encode() + b"\xff\t8\t3\t1\n", 4, "byte 0xff in column 1 is not text"),
        ('a,"b",3\na,"c,3\n', 2, "invalid CSV"),
        (
            "one line of text\n",
            1,
            "the rating 'of' is not a number, and as a header the line has no column for the user",
        ),
        ("3 4\n", 1, "is no rating; a line has user, item and rating"),
        ("user,item,movie,rating\n", 1, "several columns for the item"),
        ("user,item\n", 1, "is no rating"),
    ],
)
def test_a_line_that_is_no_rating_is_named(read, content, line, says):
    with pytest.raises(DataError, match=re.escape(says)) as refused:
        read(content)
    assert f"x.txt, line {line}: " in str(refused.value)


def test_a_file_without_ratings_says_so(read):
    for content in (b"", b"\n\n", b"user,item,rating\n"):
        with pytest.raises(DataError, match="is empty: it has no line of data"):
            read(content)
    with pytest.raises(DataError, match="cannot be unpacked"):
        read(gzip.compress(DATA.encode())[:-12])


def test_a_misspelled_column_is_the_first_cause_that_is_named(read, tmp_path):
    text = "customer_id,sku,stars\nc1,a,5\n"
    with pytest.raises(DataError) as refused:
        read(text, user="customer", item="sku", rating="stars")
    header = "('customer_id', 'sku', 'stars')"
    says = f"line 1: user='customer': the header has no column of this name {header}; did you mean 'customer_id'?"
    assert str(refused.value).endswith(says)
    with pytest.raises(DataError, match=r"item='zzz': the header has no column of this name .*; pass item= with an"):
        read(text, item="zzz")
    with pytest.raises(DataError, match=r"user='customer' is not the name of one column; .*did you mean 'customer_id'"):
        Ratings.from_frame(pd.DataFrame({"customer_id": ["c"], "sku": ["a"], "stars": [5]}), user="customer")
    (tmp_path / "r.csv").write_text(text)
    done = CliRunner().invoke(rankopt, ["cofi", str(tmp_path / "r.csv"), "--user", "customer"])
    assert "line 1: --user customer: the header has no column" in str(done.exception)


def test_columns_may_be_named(read):
    content = "who,what,how,when\n1,10,5,1\n2,10,3,1\n1,9,4.5,1\n"
    assert read(content, user="who", item="what", rating="how") == EXPECTED
    with pytest.raises(DataError, match="no column for the user"):
        read(content)
    with pytest.raises(DataError, match="need three different columns"):
        read(content, user="who", item="what", rating="who")


ITEM_FILES = {
    "u.item": b"10|Alien (1979)|||http://x|1|1\n9|Mis\xe9rables|||http://y|0|0\n77|Unseen|||http://z|0|1\n",
    "movies.dat": "10::Alien (1979)::Horror|Sci-Fi\n9::Misérables::\n77::Unseen::Sci-Fi\n".encode("latin-1"),
    "movies.csv": "movieId,title,genres\n10,Alien (1979),Horror|Sci-Fi\n9,Misérables,(no genres listed)\n"
    '77,"Unseen",Sci-Fi\n'.encode(),
}


@pytest.mark.parametrize("name", ITEM_FILES)
def test_genres_and_titles_come_with_the_items(tmp_path, name):
    (tmp_path / "u.genre").write_text("Horror|0\nSci-Fi|1\n\n")
    (tmp_path / name).write_bytes(ITEM_FILES[name])
    ratings_name = {"u.item": "u.data", "movies.dat": "ratings.dat", "movies.csv": "ratings.csv"}[name]
    text = DATA if name == "u.item" else DATA.replace("\t", "::" if name == "movies.dat" else ",")
    (tmp_path / ratings_name).write_text(("userId,movieId,rating,t\n" if name == "movies.csv" else "") + text)
    ratings = read_ratings(tmp_path)
    assert ratings == read_ratings(tmp_path / ratings_name, items=tmp_path / name)
    assert ratings.items.tolist() == [9, 10, 77]
    assert ratings.attributes["genre"].tolist() == [None, ("Horror", "Sci-Fi"), ("Sci-Fi",)]
    assert ratings.attributes["title"].tolist() == ["Misérables", "Alien (1979)", "Unseen"]
    assert ratings.counts.tolist() == [1, 2, 0]


def test_items_of_strings_join_items_written_as_numbers(tmp_path):
    (tmp_path / "movies.csv").write_text("movieId,title,genres\n7,Seven,Crime\nx,Ex,Crime\n")
    (tmp_path / "ratings.csv").write_text("userId,movieId,rating\n1,7,3\n1,y,4\n")
    ratings = read_ratings(tmp_path)
    assert ratings.items.tolist() == ["7", "x", "y"]
    assert ratings.attributes["title"].tolist() == ["Seven", "Ex", None]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("1::A::B\n2::C\n", "line 2: 2 fields, but an item has 3"),
        ("1::A::B\n1::C::D\n", "line 2: item '1' repeats line 1"),
        ("::A::B\n", "line 1: the item is empty"),
        ("1|A|||u|0|2\n", "line 1: the flag of a genre is '2', not 0 or 1"),
        ("1|A|||u|0\n", "line 1: 6 fields, but an item has 7"),
        ("a,b,c\n", "line 1: a file of items has a header"),
        ("", "is empty"),
    ],
)
def test_a_line_that_is_no_item_is_named(tmp_path, content, says):
    (tmp_path / "u.genre").write_text("Horror|0\nSci-Fi|1\n")
    (tmp_path / "films").write_text(content)
    with pytest.raises(DataError, match=re.escape(says)):
        read_items(tmp_path / "films")


def test_a_folder_without_ratings_and_flags_without_names_are_refused(tmp_path):
    with pytest.raises(DataError, match="has no file of ratings"):
        read_ratings(tmp_path)
    (tmp_path / "u.item").write_text("1|A|||u|0|1\n")
    with pytest.raises(DataError, match="put it in the same folder"):
        read_items(tmp_path / "u.item")


@pytest.mark.study
def test_time_is_linear_and_memory_that_of_the_ratings(tmp_path):
    """Bounds far above what is taken (0.2 s, 35 bytes a rating), far below what a quadratic way would take."""
    random = np.random.default_rng(0)
    n = 200_000
    pairs = random.choice(2_000 * 3_000, n, replace=False)
    rows = np.column_stack([pairs // 3_000, pairs % 3_000, random.integers(1, 6, n)])
    path = tmp_path / "x.tsv"
    np.savetxt(path, rows, "%d", "\t")
    read_ratings(path)  # what it loads is loaded
    tracemalloc.start()
    begin = time.process_time()
    ratings = read_ratings(path)
    assert time.process_time() - begin < 10
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert ratings.n_ratings == n
    assert peak < 60 * n + (24 << 20)  # and a block of text in its stages


def columns_at(path, **columns):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(columns)
    (pytest.importorskip("pyarrow.parquet").write_table if path.suffix == ".parquet" else
     pytest.importorskip("pyarrow.feather").write_feather)(table, path)  # fmt: skip
    return path


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_files_of_columns_are_the_same_table_as_text(tmp_path, ending):
    files = tmp_path / f"x.{ending}", tmp_path / "x.csv", tmp_path / "movies.csv"
    columns_at(files[0], time=[880, 881, 882], movieId=[10, 10, 9], userId=[1, 2, 1], rating=[5, 3, 4.5])
    files[1].write_text("userId,movieId,rating\n1,10,5\n2,10,3\n1,9,4.5\n")
    files[2].write_text("movieId,title,genres\n9,A,x|y\n11,B,z\n")
    assert read_ratings(files[0]) == EXPECTED
    assert read_ratings(files[0], items=files[2]) == read_ratings(files[1], items=files[2])
    assert read_ratings(files[0], user="movieId", item="userId").users.tolist() == [9, 10]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_items_that_are_hardly_those_of_the_ratings_are_counted(tmp_path, ending):
    ratings, movies = tmp_path / f"ratings.{ending}", tmp_path / "movies.csv"
    if ending == "csv":
        ratings.write_text("userId,movieId,rating\n1,10,5\n2,11,3\n1,12,4\n")
    else:
        columns_at(ratings, user=[1, 2, 1], item=[10, 11, 12], rating=[5, 3, 4])
    movies.write_text("movieId,title,genres\n10,A,x\n77,B,y\n")
    with pytest.warns(UserWarning, match=r"movies\.csv has 1 of the 3 rated items; check that their ids agree"):
        read_ratings(ratings, items=movies)


def test_ids_of_text_in_columns_stay_text(tmp_path):
    movies = tmp_path / "movies.csv"
    movies.write_text("movieId,title,genres\n9,A,x\n")
    found = read_ratings(columns_at(tmp_path / "x.parquet", user=["u"], item=["9"], rating=[1]), items=movies)
    assert found.items.tolist() == ["9"]
    assert found.attributes["title"].tolist() == ["A"]


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"user": [1], "item": [2]}, "no unique column of the rating"),
        ({"user": [1, 1], "item": [2, 2], "rating": [1, 2]}, "User 1 rates item 2 twice"),
        ({"user": [1, 1], "item": [2, 3], "rating": [1, None]}, "column 'rating' of .* has no value in row 1"),
        ({"user": [1], "item": [2], "rating": [float("inf")]}, "Row 0, user 1, item 2"),
    ],
)
def test_columns_that_hold_no_ratings_are_refused_with_the_file(tmp_path, columns, says):
    with pytest.raises(DataError, match=says) as caught:
        read_ratings(columns_at(tmp_path / "bad.parquet", **columns))
    assert "bad.parquet" in str(caught.value)


def test_what_is_no_file_is_told_where_it_is_read():
    frame = type("DataFrame", (), {"columns": ["user", "item", "rating"]})()
    with pytest.raises(DataError, match=r"a DataFrame because it is no file; use Ratings.from_frame\(frame\)"):
        read_ratings(frame)
    with pytest.raises(DataError, match=r"a list because it is no file; use Ratings.from_arrays\(user, item, rating\)"):
        read_ratings([1, 2])


# The sample of ratings is made up, the same in every run, and shaped as real ratings are.


def test_it_is_the_same_in_every_run_and_shaped_as_ratings_are():
    films = load_ratings_sample("films")
    assert films == load_ratings_sample()
    assert (films.n_users, films.n_items) == (240, 160)
    assert set(np.unique(films.values)) == {1.0, 2.0, 3.0, 4.0, 5.0}
    assert np.diff(films.bounds).min() >= 12
    genres = films.attributes["genre"].tolist()
    assert {label for of in genres for label in of} == set(GENRES)
    assert {len(of) for of in genres} == {1, 2, 3}
    means = np.bincount(films.columns, films.values, 160) / films.counts
    assert np.corrcoef(np.log(films.counts), means)[0, 1] > 0.3  # what is rated is no random choice


def test_another_name_is_refused():
    with pytest.raises(OptionError, match="available: 'films'"):
        load_ratings_sample("books")


@pytest.mark.parametrize("lines", [
    "customer;sku;stars;when\na;p;4,5;2025-01-09\nb;q;-1,25;2025-01-09\na;q;3;2025-01-09",
    "a;p;4,5;0,5\nb;q;-1,25;0,5\na;q;3;0,5",
    "user\titem\trating\na\tp\t4,5\nb\tq\t-1,25\na\tq\t3,0",
])  # fmt: skip
def test_decimal_commas_are_numbers_where_the_separator_is_no_comma(tmp_path, lines):
    (tmp_path / "x.csv").write_text(lines)
    assert read_ratings(tmp_path / "x.csv") == Ratings.from_arrays(["a", "b", "a"], ["p", "q", "q"], [4.5, -1.25, 3])


def test_frames_of_decimal_commas_are_refused_with_a_cure_that_works(tmp_path):
    (tmp_path / "x.csv").write_text("user;item;rating\na;p;4,5\nb;q;1,5\n")
    with pytest.raises(DataError, match=r"rating '4,5' is text.*pandas.read_csv\(path, sep=';', decimal=','\)"):
        Ratings.from_frame(pd.read_csv(tmp_path / "x.csv", sep=";"))
    frame = pd.read_csv(tmp_path / "x.csv", sep=";", decimal=",")
    assert Ratings.from_frame(frame) == read_ratings(tmp_path / "x.csv")


def test_any_columns_next_to_the_item_are_attributes(tmp_path):
    (tmp_path / "r.csv").write_text("user,item,rating\na,p,4\nb,q,1\n")
    (tmp_path / "i.csv").write_text('brand;SKU;genres;name\n"x;y";p;Action|War;Pan\n;q;;Quilt\n')
    found = read_ratings(tmp_path / "r.csv", items=tmp_path / "i.csv").attributes
    assert {name: values.tolist() for name, values in found.items()} == {
        "brand": ["x;y", None], "genre": [("Action", "War"), None], "title": ["Pan", "Quilt"],
    }  # fmt: skip
    frame = pd.DataFrame({"sku": ["q", "p"], "brand": [None, "x"], "year": [1999, 2001]})
    table = Ratings.from_arrays(["a", "b"], ["p", "q"], [1, 2]).with_attributes(frame)
    assert table.attributes["brand"].tolist() == ["x", None]
    assert table.attributes["year"].tolist() == [2001, 1999]
    for wrong, message in (
        (frame.rename(columns={"sku": "code"}), "0 of its columns, 'code', 'brand', 'year', have a usual name"),
        (pd.concat([frame, frame]), "list an item twice in column 'sku'"),
    ):
        with pytest.raises(DataError, match=message):
            table.with_attributes(wrong)
