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
    """The ranking that breaks the rules least. A constraint's own name in prices goes before its rule's title, that
    before the name of the share or the distance that brought it."""
    said = RankingSet(n, k)
    asked = prices if isinstance(prices, Mapping) else {}
    priced: dict[str, float] = {}
    spoken: set[str] = set()
    for rule in rules:
        before = names_of(said)
        said = rule.applied(said, attributes, k)
        for name in (rule.said_as, rule.title):
            if name is not None and name in asked:
                priced |= dict.fromkeys(names_of(said) - before, asked[name])
                spoken.add(name)
    if not isinstance(prices, Mapping):
        return said.repaired(prices)
    unsaid = spoken - names_of(said)  # names of several constraints, or of one that says nothing of this query
    return said.repaired({**priced, **{name: price for name, price in asked.items() if name not in unsaid}})


def names_of(said: RankingSet) -> set[str]:
    """Of its constraints, soft ones too."""
    return {*(held.name for held in said.constraints), *(held.name for held in said.softened)}
