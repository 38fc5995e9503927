"""All rankings of k of n documents, for shapes that are small enough."""

from itertools import permutations

import numpy as np

SHAPES = [(1, 1), (1, 4), (2, 3), (3, 3), (3, 5), (4, 5), (5, 5)]


def all_orders(k, n):
    """(orders, k, n): the matrix of every ranking."""
    orders = np.array(list(permutations(range(n), k)))
    return np.eye(n)[orders]
