"""What is wrong with a line that `grammar` refuses: the first thing, in the order of the line, with the cure."""

from math import isfinite

from rankopt.data.svmlight.grammar import INDEX_DIGITS, LARGEST_INDEX, MISSING, NUMBER, Rules
from rankopt.data.text import clipped
from rankopt.errors import DataError

__all__ = ["fault"]


def fault(line: bytes, number: int, rules: Rules, seen: dict[bytes, int]) -> DataError:
    """The error for a line of text; seen: the queries before, the last of which may go on."""
    tokens = line.partition(b"#")[0].split()
    wrong = _of_grade(tokens[0], rules) or _of_query(tokens, seen) or _of_entries(tokens[2:], rules)
    return DataError(f"{rules.file}, line {number}: {wrong or 'no line reads so; write grade qid:QUERY 1:value ...'}")


def _of_grade(token: bytes, rules: Rules) -> str | None:
    word = clipped(token)
    if not NUMBER.fullmatch(token) or not isfinite(float(token)):
        return f"the grade is {word!r}. Lines begin with a finite number: give the document a grade."
    if float(token) < 0 and not rules.negative:
        return (
            f"the grade is {word}. Grades are >= 0: read with unjudged=0 if it means not relevant, or with "
            "unjudged='drop' to leave such documents out."
        )
    return None


def _of_query(tokens: list[bytes], seen: dict[bytes, int]) -> str | None:
    if len(tokens) < 2 or not tokens[1].startswith(b"qid:") or tokens[1] == b"qid:":
        return (
            "no 'qid:' follows the grade. Rankings need the query of each document: write 'grade qid:QUERY 1:value "
            "...', or give the sizes of the queries to Queries.from_arrays(group=)."
        )
    qid = tokens[1][4:]
    if qid in seen and qid != next(reversed(seen)):
        return (
            f"query {clipped(qid)!r} comes back, it began in line {seen[qid]} and other queries stand between. The "
            "lines of a query stand together: sort the file by query, or use Queries.from_arrays."
        )
    return None


def _of_entries(tokens: list[bytes], rules: Rules) -> str | None:
    last = 0
    for token in tokens:
        head, colon, tail = token.partition(b":")
        if not colon or not head.isdigit():
            return f"{clipped(token)!r} is no entry; entries are 'index:value', a whole number first."
        if len(head) > INDEX_DIGITS or int(head) > LARGEST_INDEX:
            return f"feature index {clipped(head)} is beyond {LARGEST_INDEX}; number the features from 1."
        index = int(head)
        wrong = _of_index(index, last, rules) or _of_value(index, tail, rules)
        if wrong:
            return wrong
        last = index
    return None


def _of_index(index: int, last: int, rules: Rules) -> str | None:
    if index == 0:
        return "feature index 0. Indices count from 1: add 1 to the indices of the whole file."
    if index <= last:
        what = "comes twice" if index == last else f"comes after feature {last}"
        return f"feature {index} {what}. Indices rise strictly in a line: sort them, each once."
    if index > rules.width:
        return f"feature {index} but {rules.said} says there are {rules.width}; raise or mend it."
    return None


def _of_value(index: int, tail: bytes, rules: Rules) -> str | None:
    word = clipped(tail)
    if NUMBER.fullmatch(tail) and isfinite(value := float(tail)):
        if abs(value) < rules.limit:
            return None
        return f"feature {index} is {word!r}, which float32 cannot hold; read with dtype=float64, or rescale it."
    cure = "repair the value"
    if MISSING.fullmatch(tail):
        if rules.missing is not None:
            return None
        cure = "impute it, or read with missing=0.0"
    return f"feature {index} is {word!r}. Rankings need finite features: {cure}."
