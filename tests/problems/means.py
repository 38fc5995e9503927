"""Whether a vector is a mean of others."""

import numpy as np
from scipy.optimize import linprog


def is_mean(weights, of):
    """Whether weights are a mean of these vectors, some counting more than others."""
    columns = np.vstack([np.array(of).T, np.ones(len(of))])
    found = linprog(np.zeros(len(of)), A_eq=columns, b_eq=np.append(weights, 1.0), method="highs")
    return found.status == 0
