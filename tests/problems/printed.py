"""What a page says that a block prints against what it prints: words alike, decimals near.

Spaces and ends of lines count as one space. Numbers that are others on every machine are listed on the line above the
fence, in a comment that readers do not see: `<!-- varies: 1.1e-16, 12 -->`; each may be any number. Names of traces,
eight digits of a hash, and versions count as numbers. Nothing frees a word.
"""

import re

NEAR = 1e-3
"""By what share of itself a decimal may differ: last digits of long ones, not of short ones. Whole numbers may not."""

NUMBER = re.compile(
    r"(?<!\w)("
    r"(?=[a-f]*\d)[0-9a-f]{8}(?![\w.])|"  # a name of a trace
    r"\d+(?:\.\d+){2,}|"  # a version
    r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)"
)
DECIMAL = re.compile(r"[-+]?(?:\d*\.\d*|\d+(?=e))(?:e[-+]?\d+)?")


def difference(said, printed, varies=()):
    """What differs first, in words; None where nothing does. varies: numbers, as said, that may be any."""
    ours, theirs = pieces(said), pieces(printed)
    for place, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        number = place % 2 == 1
        if one != other and not (number and (one in varies or near(one, other))):
            return f"it says {''.join(ours[place : place + 3])!r} but prints {''.join(theirs[place : place + 3])!r}"
    if len(ours) != len(theirs):
        return f"it says {len(ours) // 2} numbers but prints {len(theirs) // 2}"
    return None


def pieces(text):
    """Text, number, text, ..., number, text."""
    return NUMBER.split(" ".join(text.split()))


def near(one, other):
    if not (DECIMAL.fullmatch(one) and DECIMAL.fullmatch(other)):
        return False
    return abs(float(one) - float(other)) <= NEAR * max(abs(float(one)), abs(float(other)))
