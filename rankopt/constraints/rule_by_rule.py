"""The set of one query, said rule by rule, and its repair at prices of rules.

A rule brings a constraint, or none where it says nothing of the query. It bears the rule's title, numbered from the
second of one name on; so a price of a title is one of all constraints that rules of this title brought.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from formulations.sets.ranking_set import RankingSet
from formulations.sets.repair import Repair
from rankopt.constraints.rule import Attributes, Rule

__all__ = ["names_of", "repaired", "stated"]


def stated(rules: Iterable[Rule], attributes: Attributes, n: int, k: int, filled: int) -> RankingSet:
    """The rankings of k of n documents that every rule allows; `filled`, as in `Rule.applied`."""
    said = RankingSet(n, k)
    for rule in rules:
        said = rule.applied(said, attributes, filled)
    return said


def repaired(
    rules: Iterable[Rule], attributes: Attributes, n: int, k: int, prices: float | Mapping[str, float]
) -> Repair:
    """The ranking that breaks the rules least. A constraint's own name in prices goes before its rule's title."""
    said = RankingSet(n, k)
    by_title: dict[str, float] = {}
    for rule in rules:
        before = names_of(said)
        said = rule.applied(said, attributes, k)
        if isinstance(prices, Mapping) and rule.title is not None and rule.title in prices:
            by_title |= dict.fromkeys(names_of(said) - before, prices[rule.title])
    return said.repaired({**by_title, **prices} if isinstance(prices, Mapping) else prices)


def names_of(said: RankingSet) -> set[str]:
    """Of its constraints, soft ones too."""
    return {*(held.name for held in said.constraints), *(held.name for held in said.softened)}
