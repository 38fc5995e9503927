"""The language of ranking sets means what it says: each word against its definition, over all rankings."""

from collections import Counter
from fractions import Fraction
from inspect import signature
from itertools import permutations, product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from formulations import (
    InfeasibleError,
    InvalidProblemError,
    RankingSet,
    SolverError,
    check_evidence,
    constrained_ranking,
    diverse_retrieval,
    solve,
    verify_integrality,
)
from formulations.constraints.conflict import conflict
from formulations.constraints.constraint import rounded_share
from formulations.constraints.kinds import KINDS, parameters

N, K = 5, 3
EVERY = list(permutations(range(N), K))
SITE = ["a", "a", "b", None, "b"]
TOPIC = [("x",), ("x", "y"), None, ["y", "z"], {"z"}]
START = RankingSet(N, K)


def carried(order, labels, positions=range(K), documents=range(N)):
    """How many documents of each label stand at these positions."""
    count = Counter()
    for i, j in enumerate(order):
        label = labels[j]
        several = label if isinstance(label, tuple | list | set) else (label,)
        count.update(one for one in several if one is not None and i in positions and j in documents)
    return count


def earlier(order, x, y):
    return y not in order or (x in order and order.index(x) < order.index(y))


MEANINGS = {
    "no constraint": (START, lambda o: True),
    "at most": (START.at_most(1, documents=[0, 1, 4]), lambda o: len({0, 1, 4} & {*o}) <= 1),
    "at least": (START.at_least(2, documents=range(3)), lambda o: len({0, 1, 2} & {*o}) >= 2),
    "exactly": (START.exactly(1, documents={2, 3}), lambda o: len({2, 3} & {*o}) == 1),
    "exactly none": (START.exactly(0, documents=3), lambda o: 3 not in o),
    "on a prefix": (START.at_least(1, documents=[3, 4], positions=range(2)), lambda o: bool({3, 4} & {*o[:2]})),
    "a mask": (
        START.at_most(1, documents=np.array([1, 0, 1, 0, 1]) == 1, positions=[True, False, True]),
        lambda o: (o[0] % 2 == 0) + (o[2] % 2 == 0) <= 1,
    ),
    "no document": (START.at_most(0, documents=[]), lambda o: True),
    "no position": (START.at_most(0, positions=[]), lambda o: True),
    "by label": (START.at_most(1, by=SITE), lambda o: max(carried(o, SITE).values(), default=0) <= 1),
    "by several labels": (START.at_most(1, by=TOPIC), lambda o: max(carried(o, TOPIC).values(), default=0) <= 1),
    "at least by label": (START.at_least(1, by=TOPIC), lambda o: all(carried(o, TOPIC)[t] >= 1 for t in "xyz")),
    "exactly by label": (START.exactly(1, by=SITE), lambda o: all(carried(o, SITE)[s] == 1 for s in "ab")),
    "by label, some documents": (
        START.at_most(1, by=SITE, documents=[0, 1, 2], positions=[0, 2]),
        lambda o: max(carried(o, SITE, (0, 2), (0, 1, 2)).values(), default=0) <= 1,
    ),
    "a count a label": (START.at_most({"a": 0, "zz": 0}, by=SITE), lambda o: carried(o, SITE)["a"] == 0),
    "NaN is no label": (START.at_most(1, by=[1.0, np.nan, 1.0, np.nan, 2.0]), lambda o: not {0, 2} <= {*o}),
    "a column of pandas": (
        START.at_most(1, by=pd.Series(["u", None, "u", pd.NA, "v"], dtype="string")),
        lambda o: not {0, 2} <= {*o},
    ),
    "an array a document": (
        START.at_most(1, by=[np.array(["u", "v"]), "u", "v", None, np.array([])]),
        lambda o: 0 not in o or not {1, 2} & {*o},
    ),
    "pin": (START.fix(4, 1), lambda o: o[1] == 4),
    "two pins": (START.fix(4, 1).fix(np.int64(0), np.int32(2)), lambda o: o[1:] == (4, 0)),
    "ban": (START.forbid([0, 1], [1, 2]), lambda o: not {0, 1} & {*o[1:]}),
    "ban a document": (START.forbid(2), lambda o: 2 not in o),
    "ban a position": (START.forbid([0, 1], 0).forbid(documents=[3], positions=0), lambda o: o[0] in (2, 4)),
    "before": (START.precedes(3, 2), lambda o: earlier(o, 3, 2)),
    "two befores": (START.precedes(0, 1).precedes(1, 2), lambda o: earlier(o, 0, 1) and earlier(o, 1, 2)),
    "rows": (
        START.add_rows([np.arange(15.0), np.ones(15)], lower=[10, -np.inf], upper=[25, 3]),
        lambda o: 10 <= sum(N * i + j for i, j in enumerate(o)) <= 25,
    ),
    "between": (START.between(1, 2, documents=[0, 1, 2]), lambda o: 1 <= len({0, 1, 2} & {*o}) <= 2),
    "between, by label": (
        START.between(0, 1, by=SITE, positions=range(2)),
        lambda o: max(carried(o, SITE, (0, 1)).values(), default=0) <= 1,
    ),
    "chain": (START.precedence_chain([3, 0, 2]), lambda o: earlier(o, 3, 0) and earlier(o, 0, 2) and earlier(o, 3, 2)),
    "two documents before one": (START.precedes([0, 1], 2), lambda o: earlier(o, 0, 2) or earlier(o, 1, 2)),
    "one of these before those": (
        START.precedes([0, 1], [1, 2, 3]),
        lambda o: all(bool({0, 1} & {*o[:p]}) for p, j in enumerate(o) if j in (2, 3)),
    ),
    "a chain of sets": (
        START.precedence_chain([[0, 1], [2], range(3, 5)]),
        lambda o: all(bool(({0, 1} if j == 2 else {2}) & {*o[:p]}) for p, j in enumerate(o) if j > 1),
    ),
    "apart": (
        START.min_distance(2, documents=[0, 1, 4]),
        lambda o: not any({o[i], o[i + 1]} <= {0, 1, 4} for i in range(K - 1)),
    ),
    "apart, by label": (
        START.min_distance(2, by=SITE),
        lambda o: not any(SITE[o[i]] == SITE[o[i + 1]] is not None for i in range(K - 1)),
    ),
    "apart by more than there are": (
        START.min_distance(9, by=SITE),
        lambda o: max(carried(o, SITE).values(), default=0) <= 1,
    ),
    "if then": (START.implies(0, 1), lambda o: 0 not in o or 1 in o),
    "if one then one of them": (
        START.implies([0, 1], [1, 2, 3], positions=range(2)),
        lambda o: not {0, 1} & {*o[:2]} or bool({1, 2, 3} & {*o[:2]}),
    ),
    "one of these first": (START.position_in([1, 3]), lambda o: o[0] in (1, 3)),
    "one of these second": (START.position_in([1, 3], position=1), lambda o: o[1] in (1, 3)),
    "a share at most, rounded up": (
        START.at_most(share=0.4, by=SITE),
        lambda o: all(carried(o, SITE, range(p))[s] <= -(-4 * p // 10) for p in (1, 2, 3) for s in "ab"),
    ),
    "a share at most, rounded down": (
        START.at_most(share=0.67, documents=[0, 2, 4], rounding="down", prefixes=[2, 3]),
        lambda o: len({0, 2, 4} & {*o[:2]}) <= 1 and len({0, 2, 4} & {*o}) <= 2,
    ),
    "a share at least, rounded down": (
        START.at_least(share=0.5, documents=[0, 1, 2]),
        lambda o: all(len({0, 1, 2} & {*o[:p]}) >= p // 2 for p in (1, 2, 3)),
    ),
    "a share at least, to the nearest, a label": (
        START.at_least(share={"a": 0.6}, by=SITE, rounding="nearest"),
        lambda o: all(carried(o, SITE, range(p))["a"] >= round(0.6 * p) for p in (1, 2, 3)),
    ),
    "both sets": (
        START.at_most(1, by=SITE) & START.fix(0, 0),
        lambda o: o[0] == 0 and not {2, 4} <= {*o} and 1 not in o,
    ),
}


VERDICTS = {
    "between": "Proof", "before": "Witness", "one of these before those": "Witness", "chain": "Witness",
    "a chain of sets": "Witness", "apart": "Witness", "if then": "Witness", "one of these first": "Proof",
    "a share at most, rounded up": "Witness", "a share at least, rounded down": "Witness",
}  # fmt: skip
"""Whether the matrix is totally unimodular."""


@pytest.mark.parametrize("word", VERDICTS)
def test_each_word_has_its_verdict(word):
    admissible = MEANINGS[word][0]
    answer = verify_integrality(admissible)
    assert type(answer).__name__ == VERDICTS[word]
    assert check_evidence(admissible, answer)


def test_floats_are_the_fractions_that_they_stand_for():
    for share, positions, most, least in (
        (1 / 3, 6, 2, 2), (2 / 3, 3, 2, 2), (0.1 + 0.2, 10, 3, 3), (np.float32(0.3), 10, 3, 3), (0.7, 10, 7, 7),
        (np.float64(1 / 7), 7, 1, 1), ("1/3", 3, 1, 1), (0.3000001, 10, 4, 3), (0.3333, 3, 1, 0),
    ):  # fmt: skip
        assert (rounded_share(share, positions, "up"), rounded_share(share, positions, "down")) == (most, least)


def test_shares_are_whole_for_a_ranking_by_one_score():
    admissible = MEANINGS["a share at most, rounded up"][0]
    problem = constrained_ranking(np.outer([1.0, 0.6, 0.5], [5.0, 4.0, 3.0, 2.0, 1.0]), admissible)
    assert verify_integrality(problem).kind == "prefix groups"
    assert solve(problem).solver == "exact via prefix groups"


@pytest.mark.parametrize(
    ("say", "reported"),
    [
        (lambda s: s.at_most(share=1.5), "from 0 to 1; got 1.5"),
        (lambda s: s.at_most(share="half"), "from 0 to 1; got 'half'"),
        (lambda s: s.at_most(1, share=0.5), "neither a count nor positions"),
        (lambda s: s.at_most(share=0.5, rounding="out"), "got 'out'"),
        (lambda s: s.at_most(share=0.5, prefixes=[0]), "lengths from 1 to 3"),
        (lambda s: s.at_most(share={"a": 0.5}), "Give by="),
        (lambda s: s.between(2, 1), "low <= high; got low=2, high=1"),
        (lambda s: s.precedence_chain([1]), "two or more documents"),
        (lambda s: s.precedence_chain([1, 2, 1]), "cannot precede itself"),
        (lambda s: s.min_distance(0, by=SITE), "1 or more; got 0"),
        (lambda s: s.add("implies", 3), "two documents or two sets"),
        (lambda s: s.position_in([7]), "got 7"),
    ],
)
def test_what_words_cannot_say_is_named(say, reported):
    with pytest.raises(InvalidProblemError, match=reported):
        say(START)


@pytest.mark.parametrize("word", MEANINGS)
def test_each_word_admits_exactly_the_rankings_of_its_definition(word):
    admissible, meant = MEANINGS[word]
    rows = admissible.program
    place = {int(cell): column for column, cell in enumerate(admissible.compiled.cell)}
    for order in EVERY:
        assert admissible.is_feasible(order) == meant(order), order
        assert bool(admissible.violations(order)) != meant(order)
        cells = [N * i + j for i, j in enumerate(order)]
        point = np.zeros(len(place))
        point[[place[cell] for cell in cells if cell in place]] = 1.0
        assert (rows.violation(point) <= 1e-12) == meant(order), order
    admissible.check_nonempty()


def test_before_needs_its_first_document_to_stand_at_all():
    one = RankingSet(3, 1).precedes(0, 1)
    assert [order for order in permutations(range(3), 1) if one.is_feasible(order)] == [(0,), (2,)]


@pytest.mark.parametrize("seed", range(10))
def test_a_sum_of_tenths_that_meets_its_limit_is_not_broken_by_rounding(seed):
    """0.1 + 0.2 exceeds 0.3 in doubles; a limit in decimals means the decimals."""
    random = np.random.default_rng(seed)
    tenths, limit = random.integers(0, 10, K * N), int(random.integers(5, 20))
    admissible = START.add_rows(tenths / 10, upper=limit / 10)
    for order in EVERY:
        total = sum(Fraction(int(tenths[N * i + j]), 10) for i, j in enumerate(order))
        assert admissible.is_feasible(order) == (total <= Fraction(limit, 10))
        assert (
            constrained_ranking(np.zeros((K, N)), admissible).violation(np.array(order)) == 0.0
        ) == admissible.is_feasible(order)


def test_what_is_broken_is_named_with_its_excess():
    admissible = START.at_most(1, by=SITE, name="site").at_least(1, documents=[3], name="new").fix(2, 2).precedes(4, 0)
    assert admissible.violations([0, 1, 2]) == {"site['a']": 1.0, "new": 1.0, "precedes": 1.0} | {
        f"precedes[4, 0, {p}]": 1.0 for p in (1, 2)
    }
    assert admissible.violations([3, 4, 1]) == {"fix[2, 2]": 1.0}


def test_binding_limits_are_those_that_the_ranking_reaches():
    women = START.at_least(share=0.5, documents=[3, 4], name="women").at_most(1, by=SITE, name="site")
    solution = solve(constrained_ranking(np.outer([3.0, 2.0, 1.0], [5.0, 4.0, 3.0, 2.0, 1.0]), women))
    table = women.binding(solution.order, solution.dual)
    counts = carried(solution.order, SITE)
    assert set(table.index) == {f"site[{label!r}]" for label in counts if counts[label]} | {
        f"women[{p}]" for p in (2, 3) if len({3, 4} & {*solution.order[:p].tolist()}) == p // 2
    }
    assert (table.limit == 1.0).all()
    assert (table.attained == 1.0).all()
    assert table.constraint["women[2]"] == "at least 1 of 2 documents in the first 2"
    prices = dict(zip([f"women[{p}]" for p in (2, 3)], solution.dual["women"].tolist(), strict=True))
    assert table.price.filter(like="women").to_dict() == {name: prices[name] for name in prices if name in table.index}
    assert (table.price.filter(like="women") <= 0.0).all()
    assert (table.price.filter(like="site") >= 0.0).all()


def test_broken_and_absent_limits_among_the_binding_ones():
    soft = START.at_most(1, by=SITE, name="site").penalized("site", penalty=1.0).exactly(1, documents=[3])
    table = soft.binding([0, 1, 3])
    assert table.index.tolist() == ["exactly", "site['a']"]
    assert table.attained.tolist() == [1.0, 2.0]
    assert table.price.isna().all()
    empty = START.binding([0, 1, 2])
    assert len(empty) == 0
    assert [*empty.columns] == ["constraint", "limit", "attained", "price"]


def test_every_method_leaves_its_set_as_it_was():
    limit, weights = np.zeros(1), np.ones((1, N * K))
    first = START.add_rows(weights, upper=limit, name="sum")
    first.at_most(1).fix(0, 0)
    limit[0], weights[:] = 99.0, 0.0
    assert [constraint.name for constraint in first.constraints] == ["sum"]
    assert not START.constraints
    assert first.violations([0, 1, 2]) == {"sum": 3.0}
    part = first.constraints[0]
    for array in (
        part.matrix.data,
        part.lower,
        part.upper,
        first.allowed_cells,
        START.fix(0, 0).constraints[0].forbids,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_names_are_kept_apart():
    twice = START.at_most(1, name="quota").at_most(2, name="quota").at_most(3, name="document")
    assert [constraint.name for constraint in twice.constraints] == ["quota", "quota_2", "document_2"]
    assert [constraint.name for constraint in (twice & twice).constraints][3:] == [
        "quota_3",
        "quota_2_2",
        "document_2_2",
    ]
    assert (
        str(START.at_most(1, by=SITE, name="site").fix(1, 2))
        == "RankingSet: 3 of 5 documents, site (2 rows), fix[1, 2]"
    )


WRONG = {
    "a mask of another length": (
        lambda: START.forbid([True, False]),
        "A mask of documents needs 5 booleans; got shape .2,.",
    ),
    "positions for documents": (
        lambda: START.forbid(positions=np.ones(N, bool)),
        "A mask of positions needs 3 booleans",
    ),
    "an index beyond the end": (lambda: START.at_most(1, documents=[5]), "indices from 0 to 4; got 5"),
    "a negative index": (lambda: START.fix(-1, 0), "from 0 to 4; got -1"),
    "an index twice": (lambda: START.at_most(1, documents=[1, 1]), "distinct indices.*Name each once"),
    "a real index": (lambda: START.forbid([0.5]), "indices or a range"),
    "lists of two lengths": (lambda: START.forbid([[0], [1, 2]]), "must be a mask or indices"),
    "a real count": (lambda: START.at_most(2.5), "0 or more; got 2.5"),
    "a negative count": (lambda: START.at_least(-1), "an integer, 0 or more; got -1"),
    "an endless count": (lambda: START.at_most(np.inf), "an integer, 0 or more"),
    "a huge count": (lambda: START.at_least(10**400), "an integer, 0 or more"),
    "NaN for a count": (lambda: START.exactly(np.nan), "an integer, 0 or more"),
    "a flag for a count": (lambda: START.at_most(True), "an integer, 0 or more"),
    "counts without labels": (lambda: START.at_most({"a": 1}), "Give by="),
    "a negative count of a label": (
        lambda: START.at_most({"a": -1}, by=SITE),
        r"count\['a'\] must be an integer, 0 or more; got -1",
    ),
    "too few labels": (lambda: START.at_most(1, by=["a"]), "one label .* per document; got 1 labels for 5"),
    "one word for labels": (lambda: START.at_most(1, by="sites"), "a list with the label of each document; got a str"),
    "a mapping for labels": (
        lambda: START.at_most(1, by={0: "a"}),
        "a list with the label of each document; got a dict",
    ),
    "a number for labels": (lambda: START.at_most(1, by=3), "got a int"),
    "labels that are none": (
        lambda: START.at_most(1, by=[{}, {}, {}, {}, {}]),
        "Labels must be numbers, strings or tuples",
    ),
    "labels in lists in lists": (
        lambda: START.at_most(1, by=[[["a"]], "a", "b", "c", "d"]),
        "Labels must be numbers",
    ),
    "no positions": (lambda: RankingSet(3, 0), "positions must be 1 or more; got 0"),
    "before itself": (lambda: START.precedes(1, 1), "cannot precede itself"),
    "before nothing": (lambda: START.precedes(None, 1), "needs one index"),
    "a set before none": (lambda: START.precedes([0, 1], None), "needs one index"),
    "a pin of two": (lambda: START.fix([0, 1], 2), "must be one index"),
    "a pin of none": (lambda: START.fix(None, 0), "must be one index"),
    "rows of other columns": (lambda: START.add_rows(np.ones((2, 14))), "needs 15 columns"),
    "rows not flattened": (lambda: START.add_rows(np.ones((2, K, N))), "needs 15 columns"),
    "rows of NaN": (lambda: START.add_rows(np.full(15, np.nan)), "is nan"),
    "rows of words": (lambda: START.add_rows([["a"] * 15]), "cannot be read as numbers"),
    "limits of NaN": (lambda: START.add_rows(np.ones(15), upper=np.nan), "lower <= upper"),
    "limits in the wrong order": (lambda: START.add_rows(np.ones(15), 2, 1), "lower <= upper"),
    "at least infinity": (lambda: START.add_rows(np.ones(15), np.inf), "lower <= upper"),
    "at most minus infinity": (lambda: START.add_rows(np.ones(15), upper=-np.inf), "lower <= upper"),
    "limits of another length": (
        lambda: START.add_rows(np.ones((2, 15)), upper=[1, 1, 1]),
        "one number, or one per row",
    ),
    "labels of another length": (lambda: START.add_rows(np.ones((2, 15)), labels=["a"]), "got 1 for 2 rows"),
    "sets of two shapes": (lambda: START & RankingSet(4, 3), "two sets of the same k and n"),
    "no ranking": (lambda: START.violations([0, 0, 1]), "none twice; got .0, 0, 1."),
    "half a ranking": (lambda: START.is_feasible([0, 1]), "is the document at each position"),
    "profits of another shape": (
        lambda: constrained_ranking(np.ones((N, K)), START),
        r"profit must have shape \(3, 5\)",
    ),
    "profits of NaN": (lambda: constrained_ranking(np.full((K, N), np.nan), START), r"profit\[0, 0\] is nan"),
    "profits of words": (lambda: constrained_ranking([["a"] * N] * K, START), "cannot be read as numbers"),
    "no set": (lambda: constrained_ranking(np.ones((K, N)), [0, 1]), "must be a RankingSet"),
    "profits of one query in a row": (lambda: diverse_retrieval([1.0, 2.0], ["a", "b"]), "must have 2 dimension"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_states_no_set_is_refused_with_the_cure(wrong):
    state, cure = WRONG[wrong]
    with pytest.raises(InvalidProblemError, match=cure):
        state()


def test_more_positions_than_documents_are_an_empty_set():
    with pytest.raises(InfeasibleError, match="lower k to 3"):
        RankingSet(3, 4)


# Conflicts


def empty_set(seed):
    """A random statement of 2 or 3 positions and at most 12 cells."""
    random = np.random.default_rng(seed)
    n, k = [(3, 2), (4, 2), (4, 3), (3, 3)][seed % 4]
    admissible = RankingSet(n, k)
    for _ in range(int(random.integers(2, 6))):
        some, place = random.random(n) < 0.6, random.random(k) < 0.6
        x, y = (int(j) for j in random.choice(n, 2, replace=False))
        admissible = [
            lambda s, some=some: s.at_most(1, documents=some),
            lambda s, some=some, place=place: s.at_least(1, documents=some, positions=place),
            lambda s, random=random: s.at_most(1, by=random.integers(0, 2, s.documents).tolist()),
            lambda s, some=some, place=place: s.forbid(some, place),
            lambda s, x=x, place=place: s.fix(x, int(place[0])),
            lambda s, x=x, y=y: s.precedes(x, y),
            lambda s, random=random: s.add_rows(random.integers(-1, 2, (1, s.documents * s.positions)), lower=1),
        ][int(random.integers(7))](admissible)
    return admissible


def points(k, n):
    """All zeros and ones, one point a row."""
    return np.array(list(product((0, 1), repeat=k * n)), dtype=np.int8)


def held(member, cells):
    """Which points satisfy a constraint, or a member of a conflict."""
    reached = cells @ member.matrix.toarray().T
    good = ((member.lower <= reached) & (reached <= member.upper)).all(axis=1)
    forbids = getattr(member, "forbids", None)
    return good if forbids is None else good & ~cells[:, forbids.ravel()].any(axis=1)


def is_empty(admissible):
    return not any(map(admissible.is_feasible, permutations(range(admissible.documents), admissible.positions)))


EMPTY = [seed for seed in range(120) if is_empty(empty_set(seed))]


def test_there_are_conflicts_to_look_at():
    assert 25 <= len(EMPTY) <= 110


@pytest.mark.every(7)
@pytest.mark.parametrize("seed", EMPTY[:40])
def test_a_conflict_is_irreducible(seed):
    """All of its members exclude every point; without any one of them a point is left."""
    admissible = empty_set(seed)
    members = conflict(admissible.shape, admissible.constraints)
    cells = points(admissible.positions, admissible.documents)
    meets = np.array([held(member, cells) for member in members])
    assert not meets.all(axis=0).any()
    for left_out in range(len(members)):
        assert np.delete(meets, left_out, axis=0).all(axis=0).any(), members[left_out].name
    with pytest.raises(InfeasibleError) as caught:
        admissible.check_nonempty()
    named = [member for member in members if member.name not in ("document", "position")]
    assert all(f"{member.name} ({member.text})" in str(caught.value) for member in named)
    assert all(member.text in str(caught.value) for member in members)  # the others, which cannot be loosened
    assert str(caught.value).endswith("loosen one of them" if len(named) > 1 else "loosen it")


@pytest.mark.every(7)
@pytest.mark.parametrize("seed", EMPTY[:40])
def test_the_room_is_the_most_positions_that_can_be_filled_from_the_top(seed):
    admissible = empty_set(seed)
    k, n = admissible.positions, admissible.documents
    cells = points(k, n)
    cells = cells[(cells.reshape(-1, k, n).sum(axis=1) <= 1).all(axis=1)]
    filled = cells.reshape(-1, k, n).sum(axis=2)
    good = (filled <= 1).all(axis=1) & (np.diff(filled, axis=1) <= 0).all(axis=1)
    for constraint in admissible.constraints:
        good &= held(constraint, cells)
    room = int(filled[good].sum(axis=1).max(initial=0))
    with pytest.raises(InfeasibleError) as caught:
        admissible.check_nonempty()
    many = "1 document" if room == 1 else f"{room} documents"
    assert (f"admits at most {many}: " in str(caught.value)) if room else ("admits at most" not in str(caught.value))


def test_a_shorter_list_is_no_cure_where_constraints_name_positions():
    with pytest.raises(InfeasibleError, match=r"position holds one document; .* at most 2 documents: loosen it$"):
        RankingSet(5, 3).forbid(positions=[2]).check_nonempty()
    with pytest.raises(InfeasibleError, match="lower k to 2, or loosen"):
        RankingSet(5, 3).at_most(1, by=list("aabbb")).check_nonempty()


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e8])
def test_emptiness_does_not_depend_on_the_unit_of_a_row(unit):
    weights = np.tile(np.array([3.0, 2.0, 1.0, 5.0, 4.0]) * unit, 2)[None]
    with pytest.raises(InfeasibleError, match="Conflict: row"):
        RankingSet(5, 2).add_rows(weights, upper=2.5 * unit).check_nonempty()
    RankingSet(5, 2).add_rows(weights, upper=3.5 * unit).check_nonempty()


def test_a_conflict_says_how_many_of_how_many():
    with pytest.raises(InfeasibleError, match=r"at_least\['a'\] \(at least 3 of 2 documents\)"):
        RankingSet(4, 3).at_least({"a": 3}, by=list("aabb")).check_nonempty()
    with pytest.raises(InfeasibleError, match=r"between\['c'\] \(from 5 to 9 of 1 documents\)"):
        RankingSet(6, 4).between(5, 9, by=list("aaabbc")).check_nonempty()
    with pytest.raises(InfeasibleError, match=r"between\['a'\] \(from 1 to 2 of 1 documents at 2 of 3 positions\)"):
        RankingSet(3, 3).between(1, 2, by=list("abc"), positions=[0, 1]).check_nonempty()


CROSSED = RankingSet(4, 4).at_least(2, documents=[0, 1], positions=[0, 3])
CROSSED = CROSSED.at_most(1, documents=[2, 3], positions=[0, 1, 2])


def test_a_conflict_is_found_where_the_presolve_of_highs_fails():
    with pytest.raises(InfeasibleError, match=r"Conflict: at_least .* at_most "):
        CROSSED.check_nonempty()


@pytest.mark.parametrize(("status", "said"), [(4, r"decided \(broken\)"), (1, r"decided in 30 seconds \(broken\)")])
def test_a_search_that_fails_says_why(status, said, monkeypatch):
    found = SimpleNamespace(status=status, x=None, message="broken")
    monkeypatch.setattr("scipy.optimize.milp", lambda *_, **__: found)
    with pytest.raises(SolverError, match=said):
        CROSSED.check_nonempty()


@pytest.mark.parametrize("blocks", [["a"] * 4, ["a", "a", "b", "b"], ["a", "b", "c", "a"]])
def test_lowering_k_to_the_room_cures(blocks):
    room = len(set(blocks))
    for k in range(1, 5):
        if k <= room:
            diverse_retrieval(np.ones((k, 4)), blocks)
            continue
        with pytest.raises(InfeasibleError, match=f"lower k to {room}"):
            diverse_retrieval(np.ones((k, 4)), blocks)


def test_a_label_that_nobody_carries_cannot_be_met():
    with pytest.raises(InfeasibleError, match=r"Conflict: topic\['zz'\]"):
        START.at_least({"zz": 1}, by=SITE, name="topic").check_nonempty()
    START.at_least({"zz": 0}, by=SITE).check_nonempty()
    START.at_most({"zz": 1}, by=SITE).check_nonempty()


def test_every_word_is_a_method_that_takes_what_the_word_takes_and_is_listed():
    made = RankingSet(4, 3)
    assert set(KINDS) <= set(dir(made))
    for word in KINDS:
        given = signature(getattr(RankingSet, word)).parameters.values()
        assert {*parameters(word), "name"} - {"documents"} <= {one.name for one in given}
    with pytest.raises(AttributeError, match="say_nothing"):
        made.say_nothing  # noqa: B018
