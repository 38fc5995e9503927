"""Co-appearances in Les Misérables: each character is a query, the other characters are its documents.

Source: the co-appearance graph that comes with networkx (Knuth, The Stanford GraphBase, 1993): 77 characters, 254
pairs, weighted by the number of chapters that they share.

grade(query, document)  0, 1, 2, 3, 4 for 0, 1, 2, 3 or 4, 5 or more chapters

Queries have at least 4 acquaintances, and documents of two positive grades at least. Every third is a test query.

No leaks. A pair has one grade, seen from either side, so training happens in a world without the test characters: they
are neither documents nor part of the graph there. Test queries have all characters as documents. Two training queries
do share the pair between them, so a validation on held-out training queries is a little optimistic.
Features of (v, x) are functions of the graph without the pair's own edge: documents are described in the graph without
v, and v by its edges to characters other than x. The number of these is one less for an acquaintance than for a
stranger, which would separate the two inside a query; where the size of v itself is needed, v counts with all its
edges, one number for all documents of the query. The other edges of v do count: each document is judged as if its own
edge alone were unknown.
"""

from typing import Any

import numpy as np

from formulations.arrays import Floats, Ints
from rankopt.data.queries import Queries, concatenate
from rankopt.data.samples import Sample

GRADES_FROM = (1, 2, 3, 5)  # least numbers of chapters of grades 1, 2, 3, 4
ACQUAINTANCES = 4  # fewest acquaintances of a query

FEATURES = (
    "degree",
    "strength",
    "clustering",
    "pagerank",
    "common neighbors",
    "shared weight",
    "Jaccard",
    "Adamic-Adar",
    "resource allocation",
    "preferential attachment",
    "closeness",
    "community share",
)


def les_miserables() -> Sample:
    """23 training queries over 64 characters and 13 test queries over all 77, with the attribute `community`."""
    import networkx as nx

    graph = nx.les_miserables_graph()
    names = list(graph)
    chapters = nx.to_numpy_array(graph, weight="weight")
    queries = _worth_asking(chapters)
    queries = queries[np.argsort(-chapters[queries].sum(axis=1), kind="stable")]
    tested = np.zeros(queries.size, dtype=bool)
    tested[1::3] = True
    known = np.setdiff1d(np.arange(len(names)), queries[tested])
    smaller = chapters[np.ix_(known, known)]
    training = np.intersect1d(_worth_asking(smaller), np.searchsorted(known, np.setdiff1d(queries, queries[tested])))
    return Sample(
        train=_queries(smaller, [names[v] for v in known], training),
        test=_queries(chapters, names, np.sort(queries[tested])),
        description=__doc__ or "",
    )


def _worth_asking(chapters: Floats) -> Ints:
    """The characters whose documents have something to order."""
    grades = _grades(chapters)
    kinds = sum((grades == grade).any(axis=1).astype(int) for grade in range(1, len(GRADES_FROM) + 1))
    return np.flatnonzero(((grades > 0).sum(axis=1) >= ACQUAINTANCES) & (kinds >= 2))


def _grades(chapters: Floats) -> Floats:
    return np.searchsorted(GRADES_FROM, chapters, side="right").astype(np.float64)


def _queries(chapters: Floats, names: list[str], queries: Ints) -> Queries:
    """One query for each of these characters over all others of this graph."""
    blocks = _communities(chapters)
    leaders = np.array([names[max(block, key=lambda v: chapters[v].sum())] for block in blocks])
    block_of = np.empty(len(names), dtype=np.int64)
    for b, block in enumerate(blocks):
        block_of[block] = b
    parts = []
    for v in queries.tolist():
        others = np.delete(np.arange(len(names)), v)
        parts.append(
            Queries.from_arrays(
                pair_features(chapters, v),
                _grades(chapters[v, others]),
                qid=[names[v]] * others.size,
                documents=[names[x] for x in others],
                attributes={"community": leaders[block_of[others]]},
                feature_names=FEATURES,
            )
        )
    return concatenate(parts)


def pair_features(chapters: Floats, v: int) -> Floats:
    """Features (n - 1, 12) of the pairs (v, x), x all others in turn, from the symmetric weights (n, n) of the graph.

    With N(x) the acquaintances of x without v, w the chapters shared, C(x) the community of x in the graph without v:

    * degree |N(x)|, strength Σ_z w(x, z), clustering coefficient, PageRank of x
    * common neighbors |N(v) ∩ N(x)|, shared weight Σ_z min(w(v, z), w(x, z)), Jaccard |N(v) ∩ N(x)| / |N(v) ∪ N(x)|
    * Adamic-Adar Σ_z 1 / log d(z), resource allocation Σ_z 1 / d(z), z the common neighbors and d their degrees
    * preferential attachment |N(v)| |N(x)|
    * closeness 1 / length of the shortest path from v to x other than their own edge, 0 without a path
    * community share: the part of all chapters of v that it shares with other members of C(x)
    """
    import networkx as nx

    others = np.delete(np.arange(len(chapters)), v)
    rest, own = chapters[np.ix_(others, others)], chapters[v, others]
    linked, met = rest > 0, (own > 0).astype(float)
    world = nx.from_numpy_array(rest)
    degree, strength = linked.sum(axis=1), rest.sum(axis=1)
    total = degree + met  # of a common neighbor, which v knows
    common = linked @ met
    rank = nx.pagerank(world)
    clustering = nx.clustering(world)
    members = np.zeros((others.size, others.size), dtype=bool)
    for block in _communities(rest):
        members[np.ix_(block, block)] = True
    np.fill_diagonal(members, False)
    logs = np.log(np.maximum(total, 2.0))
    return np.column_stack(
        [
            degree,
            strength,
            [clustering[x] for x in range(others.size)],
            [rank[x] for x in range(others.size)],
            common,
            np.minimum(rest, own).sum(axis=1),
            common / np.maximum(degree + met.sum() - common, 1.0),
            linked @ (met / logs),
            linked @ (met / np.maximum(total, 1.0)),
            met.sum() * degree,
            _closeness(world, met),
            members @ own / max(own.sum(), 1.0),
        ]
    ).astype(np.float64)


def _closeness(world: Any, met: Floats) -> Floats:
    """1 / (1 + distance to the nearest acquaintance of the query other than the document itself)."""
    import networkx as nx

    distance = np.full((met.size, met.size), np.inf)
    for x, reached in nx.all_pairs_shortest_path_length(world):
        distance[x, list(reached)] = list(reached.values())
    np.fill_diagonal(distance, np.inf)
    return np.asarray(1.0 / (1.0 + distance[:, met > 0].min(axis=1, initial=np.inf)))


def _communities(chapters: Floats) -> list[list[int]]:
    """Blocks of greedy modularity (Clauset, Newman, Moore 2004), each sorted, the largest first."""
    import networkx as nx

    # Nodes are integers here: sets of strings change their order from run to run, and with it the answer on ties.
    return [
        sorted(block) for block in nx.community.greedy_modularity_communities(nx.from_numpy_array(chapters), "weight")
    ]
