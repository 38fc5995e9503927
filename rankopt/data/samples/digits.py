"""Which handwritten digits look like this one? Each query is an image, its documents are images of all ten digits.

Source: the 1797 images of 8 × 8 pixels that come with scikit-learn (Alpaydin and Kaynak, Optical recognition of
handwritten digits, UCI, 1998). Training takes queries and documents from the first 1000, testing from the others: no
image, hence no grade, is on both sides. No query is a document.

grade(query, document), with r the rank of the document by Euclidean distance of pixels among those of the same digit:

* 4 same digit, r in the nearest quarter; 3 same digit, r in the nearer half; 2 same digit
* 1 another digit, nearer than half of the same digit: it looks alike
* 0 else

Features compare coarse pictures: absolute differences of 16 regions of 2 × 2 pixels, of row and column sums and of
ink, cosines of the regions and of pixels under the best shift by at most one pixel. The digit itself is no feature; it
is the attribute `digit` of the documents.
"""

import numpy as np

from formulations.arrays import Floats, Ints
from rankopt.data.queries import Queries
from rankopt.data.samples import Sample

TRAIN_IMAGES = 1000
DOCUMENTS = 8  # images of each digit among the documents of a query
QUERIES = {"train": 4, "test": 2}  # query images of each digit

FEATURES = (
    *(f"region {row},{column}" for row in range(4) for column in range(4)),
    "rows",
    "columns",
    "ink",
    "cosine of regions",
    "cosine under shifts",
)


def digits() -> Sample:
    """40 training and 20 test queries over 80 documents each, 21 features."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8) / 16.0
    parts = {"train": np.arange(TRAIN_IMAGES), "test": np.arange(TRAIN_IMAGES, len(images))}
    made = {name: _queries(images, labels, rows, QUERIES[name]) for name, rows in parts.items()}
    return Sample(made["train"], made["test"], __doc__ or "")


def _queries(images: Floats, labels: Ints, rows: Ints, each: int) -> Queries:
    """Queries and documents drawn from these rows, evenly over them, the same number of every digit."""
    chosen = [_spread(rows[labels[rows] == digit], each + DOCUMENTS) for digit in range(10)]
    queries = np.sort(np.concatenate([some[:: len(some) // each][:each] for some in chosen]))
    documents = np.setdiff1d(np.concatenate(chosen), queries)
    return Queries.from_arrays(
        np.vstack([_features(images[query], images[documents]) for query in queries]),
        np.concatenate([_grades(query, documents, images, labels) for query in queries]),
        qid=np.repeat(queries, documents.size),
        documents=np.tile(documents, queries.size).tolist(),
        attributes={"digit": np.tile(labels[documents], queries.size)},
        feature_names=FEATURES,
    )


def _spread(rows: Ints, count: int) -> Ints:
    return np.asarray(rows[np.linspace(0, rows.size - 1, count).astype(int)])


def _grades(query: int, documents: Ints, images: Floats, labels: Ints) -> Floats:
    distance = np.sqrt(((images[documents] - images[query]) ** 2).sum(axis=(1, 2)))
    same = labels[documents] == labels[query]
    quarter, half = np.quantile(distance[same], [0.25, 0.5])
    among = 2.0 + (distance <= half) + (distance <= quarter)
    return np.asarray(np.where(same, among, (distance < half).astype(float)))


def _features(query: Floats, documents: Floats) -> Floats:
    """The comparison (n, 21) of an image (8, 8) with n images (n, 8, 8)."""
    regions, others = _regions(query[None]), _regions(documents)
    profiles = [np.abs(documents.sum(axis=axis) - query.sum(axis=axis - 1)).sum(axis=1) for axis in (2, 1)]
    shifts = [_shifted(documents, down, right) for down in (-1, 0, 1) for right in (-1, 0, 1)]
    best = np.max([_cosine(query.reshape(1, -1), shift.reshape(len(documents), -1)) for shift in shifts], axis=0)
    ink = np.abs(documents.sum(axis=(1, 2)) - query.sum())
    return np.column_stack([np.abs(others - regions), *profiles, ink, _cosine(regions, others), best])


def _regions(images: Floats) -> Floats:
    """The mean ink (n, 16) of regions of 2 × 2 pixels."""
    return np.asarray(images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16))


def _shifted(images: Floats, down: int, right: int) -> Floats:
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    return padded[:, 1 - down : 9 - down, 1 - right : 9 - right]


def _cosine(one: Floats, many: Floats) -> Floats:
    norms = np.linalg.norm(one) * np.linalg.norm(many, axis=1)
    return np.asarray((many @ one[0]) / np.maximum(norms, 1e-12))
