"""Sound files of every kind that a reader takes, and their faults: bytes, words, lines, packing."""

import gzip
import random

LETOR = [
    b"2 qid:10 1:3 2:2.5 3:-0.25 #docid = GX-1 inc = 1 prob = 0.08\n0 qid:10 1:0.1 2:1e-3 3:+.5 #docid = GX-2\n"
    b"1 qid:q-7 1:1. 2:0 3:12345678901234567890 #docid = 40626\n",
    b"# 1: BM25 of the title\n# 2: length\n\n1 qid:1 1:1 2:0.30000000000000004\r\n0 qid:2 1:2\n0 qid:2 2:5e-324\n",
    b"# feature names: a b c\n3 qid:a 1:1 3:2 # x\n-1 qid:b 2:1\n0 qid:c 1:nan 2:NULL\n",
    b"".join(b"%d qid:%d 1:%d 2:0.5 9:%d\n" % (i % 3, i // 4, i, i * i) for i in range(40)),
    b"\xef\xbb\xbf# made in 2009\n1\tqid:x\t1:1e300 2:-1e300\n 0 qid:x 2:9007199254740993#docid=d\xc3\xa9\n",
    b"1 qid:1 5:1\n" * 30 + b"0 qid:2 50:1\n" + b"2 qid:3\n" * 20,
]
RUN = [
    b"q1 Q0 a 1 3.5 t\nq1 Q0 b 2 -1e-3 t\nq2 Q0 a 1 inf t\n",
    b"".join(b"%d Q0 d%d %d %d ours\n" % (i // 5, i, i % 5, -i) for i in range(40)),
]
QRELS = [b"q1 0 a 2\nq1 0 b 0\nq2 0 a 1\n\n", b"".join(b"%d 0 d%d %d\n" % (i // 5, i, i % 3) for i in range(40))]
TABLE = [
    b"qid,docid,site,year,share\n10,GX-1,x.org,2004,0.5\n10,GX-2,y.org,1999,1e-3\nq-7,40626,\xc3\xa9,2010,-1\n",
    b'\xef\xbb\xbfdocid,qid,"a ""b"", c"\r\n40626,q-7,"two\r\nlines"\r\nGX-2,10,\r\nGX-1,10,x\r\nother,99,y\r\n',
]
RATINGS = [
    b"".join(b"%d\t%d\t%d\t88125%04d\n" % (i // 5 + 1, 7 * i % 11, i % 5 + 1, i) for i in range(30)),
    b"1::1193::5::978300760\n1::661::3.5::978302109\n2::1193::.5::978298413\n",
    b"userId,movieId,rating,timestamp\r\n1,296,5.0,1147880044\r\n1,306,3.5,1147868817\r\n12,296,0,1\r\n",
    b'\xef\xbb\xbf"User-ID";"ISBN";"Book-Rating"\n"276725";"034545104X";"0"\n"276726";"0155061224";"5"\n',
    b'user_id, item, score\nann, "Alien; ""The"" film", 4\nb\xc3\xa9a, Cube, -1e-3\n\nann, Cube, +2\n',
    b"0 0 1\n0 1 2\n1 0 3\n999999999999999999 1 4\n",
    b"1|007|3\n1|7|4\n9223372036854775807|7|1\n",
]
ITEMS = [
    b"1::Toy Story (1995)::Animation|Children's|Comedy\n2::Jumanji (1995)::Adventure\n3::X::\n",
    b'movieId,title,genres\n1,"American President, The (1995)",Comedy|Drama\n2,Heat (1995),(no genres listed)\n',
    b"1|Toy Story (1995)|01-Jan-1995||http://x|0|1\n2|Mis\xe9rables, Les|01-Jan-1995||http://y|1|1\n",
]
STATEMENT = [
    b"documents = 6\npositions = 3\nweights = [1.0, 0.6, 0.5]\nscores = [3, 1, 2.5, 0, -1, 1e3]\n[attributes]\n"
    b'site = ["a", "a", "b", "b", "c", "d"]\n[[constraint]]\nat_most = 1\nby = "site"\n[[constraint]]\nat_least = 1\n'
    b'documents = [4, 5]\npositions = [0, 1]\nname = "fresh"\n',
    b"matrix = [[1, 0, 1], [0, 1, 1], [1, 1, 0]]\n",
    b"documents = 2\npositions = 2\nprofit = [[1, 2], [3, 4]]\n[[constraint]]\nban = [[0, 1]]\n",
]

WORDS = [
    b'nan', b'NULL', b'inf', b'-inf', b'1e999', b'-1', b'0x1', b'1_0', b'1e', b'--1', b'.', b'+', b'1:', b':1',
    b'1:2:3', b'0:1', b'2147483647:1', b'2147483648:1', b'99999999999999999999:1', b'0000000001:1',
    b'00000000001:1', b'qid:', b'qid:7', b'qid:q#x', b'#', b'# 1: a\n', b'# 1: a\n# 1: a\n',
    b'# feature names: a a\n', b'# docid = x y', b'docid=z', b'1e39', b'-4e38:1', b'7:3.4028235677973366e38',
    b'5:1e-400', b'\xd9\xa1', b'3:\xd9\xa1', b'1.7976931348623159e308', b'\n', b'\r', b'\r\n', b'\t', b' ', b'\x00',
    b'\x0b', b'\x1f\x8b', b'\x7f', b'\x85', b'\xa0', b'\xc2\xa0', b'\xe2\x80\xa8', b'\xef\xbb\xbf', b'\xff\xfe',
    b'"', b',', b"'", b'[', b']]', b'{', b'=', b'[[constraint]]\n', b'documents = 3\n', b'true', b'1979-05-27',
    b'-0', b'a.a.a = 1\n', b'::', b'|', b';', b'7::7::7\n', b'7\t7\t7\n', b'007', b'10000000000000000',
]  # fmt: skip
LONG = [
    b"1", b"0", b" ", b"\t", b"9", b"x", b"[", b'"', b"-", b"1:1 ", b"\n", b"# c\n", b"a.", b",", b"\xc3\xa9",
    b"#", b":", b"{a=",
]  # fmt: skip


def mutated(kind: list[bytes], chance: random.Random) -> bytes:
    """A file of this kind with up to four faults, packed or not, the packing damaged or not."""
    text = chance.choice(kind)
    for _ in range(chance.choice([0, 1, 1, 1, 2, 4])):
        text = chance.choice(FAULTS)(text, chance)
    return text


def packed(text: bytes, chance: random.Random) -> bytes:
    """The text as a gzip of one or two members, one in three of them damaged."""
    cut = chance.randint(0, len(text))
    parts = [text] if chance.random() < 0.5 else [text[:cut], text[cut:]]
    whole = b"".join(gzip.compress(part, 1) for part in parts)
    place = chance.randint(0, len(whole) - 1)
    match chance.randint(0, 11):
        case 0:
            return whole[:place]
        case 1:
            return whole[:place] + bytes([whole[place] ^ (1 << chance.randint(0, 7))]) + whole[place + 1 :]
        case 2:
            return whole + b"rest"
        case 3:
            return whole[:place] + whole[place + chance.randint(1, 30) :]
    return whole


BOMBS = [
    (b"# nothing to say here\n", 80), (b"\n", 80), (b"# ::::::::::::::::\n", 80), (b"# 1: a\n", 8), (b"#", 80),
    (b" ", 80), (b":", 80), (b"0", 80), (b"1 qid:1\n", 8), (b" 1:1", 8),
]  # fmt: skip
"""What a bomb repeats, and how many megabytes of it; the last two are data, and are held."""


def bomb(chance: random.Random) -> bytes:
    """A small gzip of very much that says little."""
    line, times = chance.choice(BOMBS)
    part = gzip.compress(line * ((1 << 20) // len(line)), 9)
    first, last = (gzip.compress(chance.choice([b"", b"1 qid:0 1:1\n"])) for _ in range(2))
    return first + part * times + last


def _insert(text: bytes, chance: random.Random) -> bytes:
    place = chance.randint(0, len(text))
    word = chance.choice([b"", b" ", b"\n"]) + chance.choice(WORDS) + chance.choice([b"", b" "])
    return text[:place] + word + text[place:]


def _flip(text: bytes, chance: random.Random) -> bytes:
    place = chance.randint(0, max(0, len(text) - 1))
    return text[:place] + bytes([chance.randint(0, 255)]) + text[place + 1 :]


def _remove(text: bytes, chance: random.Random) -> bytes:
    place = chance.randint(0, len(text))
    return text[:place] + text[place + chance.choice([1, 1, 2, 5, 20, len(text)]) :]


def _swap_word(text: bytes, chance: random.Random) -> bytes:
    words = text.split(b" ")
    words[chance.randrange(len(words))] = chance.choice(WORDS)
    return b" ".join(words)


def _move_line(text: bytes, chance: random.Random) -> bytes:
    lines = text.splitlines(keepends=True) or [b""]
    line = lines.pop(chance.randrange(len(lines))) if chance.random() < 0.5 else chance.choice(lines)
    lines.insert(chance.randint(0, len(lines)), line)
    return b"".join(lines)


def _repeat(text: bytes, chance: random.Random) -> bytes:
    place, end = sorted(chance.randint(0, len(text)) for _ in range(2))
    return text[:end] + text[place:end] * chance.choice([1, 1, 2, 50]) + text[end:]


def _long(text: bytes, chance: random.Random) -> bytes:
    place = chance.randint(0, len(text))
    return text[:place] + chance.choice(LONG) * chance.choice([20, 400, 5_000, 5_000, 200_000]) + text[place:]


def _ends(text: bytes, chance: random.Random) -> bytes:
    ends = [text.replace(b"\n", b"\r\n"), text.replace(b"\n", b"\r"), text.rstrip(b"\n"), text.replace(b" ", b"\t  ")]
    return chance.choice(ends)


FAULTS = [_insert, _insert, _flip, _flip, _remove, _swap_word, _swap_word, _move_line, _repeat, _long, _ends]
