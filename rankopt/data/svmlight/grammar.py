"""The grammar of LETOR / SVMlight files; whatever reads or refuses a line goes by what stands here.

    line       grade qid:QUERY INDEX:VALUE INDEX:VALUE ... # docid = DOCUMENT ...
    grade      a decimal number; negative ones need a meaning
    QUERY      one word without '#'; the lines of a query stand together
    INDEX      one to ten digits, from 1 to 2^31 - 1, rising strictly in a line; one left out is the value 0
    VALUE      a decimal number, or `nan` or `NULL` in any case where a value is given for them
    DOCUMENT   one word

Words stand apart by blanks or tabs. Blank lines and lines of comment only are skipped. No pattern here goes back over
what it has read, so that each takes time linear in the line.
"""

import re
from collections.abc import Hashable
from dataclasses import dataclass
from math import inf

__all__ = [
    "COMMENT", "DOCUMENT", "INDEX_DIGITS", "LARGEST_INDEX", "LINE", "MISSING", "NUMBER", "Rules",
    "are_entries", "query_name",
]  # fmt: skip

_NUMBER = rb"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"
NUMBER = re.compile(_NUMBER)
LINE = re.compile(rb"[ \t]*+(" + _NUMBER + rb")[ \t]++qid:([^\x00- \x7f#]++)([^#]*+)(#.*+)?")
"""Grade, query, entries, comment."""
_ENTRIES = re.compile(rb"(?:[ \t]++[0-9]{1,10}:(?:" + _NUMBER + rb"|(?i:nan|null))){1,64}")
"""Some at a time, because `re` keeps a state for each."""
MISSING = re.compile(rb"(?i:nan|null)")
"""Words for a missing value among entries; LETOR writes NULL."""
COMMENT = re.compile(rb"[ \t]*+(?:#.*+)?")
DOCUMENT = re.compile(rb"#[ \t]*+docid[ \t]*+=[ \t]*+([^ \t]++)")
INDEX_DIGITS = 10
LARGEST_INDEX = 2**31 - 1


@dataclass(frozen=True)
class Rules:
    """What a reader was asked for: how words of one file are to be taken.

    missing: the value of missing ones, None to refuse them. negative: whether grades may be. limit: what the magnitude
    of a value stays below. width, said: the greatest index, and who says so.
    """

    file: str
    missing: float | None = None
    negative: bool = False
    limit: float = inf
    width: int = LARGEST_INDEX
    said: str = ""


def are_entries(text: bytes) -> bool:
    """Whether what stands between query and comment is INDEX:VALUE and nothing else."""
    at = 0
    while found := _ENTRIES.match(text, at):
        at = found.end()
    return not text[at:].strip(b" \t")


def query_name(token: bytes) -> Hashable:
    """A query id: an integer where it is written as Python writes integers, else a string."""
    text = token.decode()
    return int(text) if re.fullmatch("0|-?[1-9][0-9]{0,17}", text) else text
