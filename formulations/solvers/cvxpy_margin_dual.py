"""The margin dual in cvxpy, as [paper 2, eq. 10, 11] writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from formulations.forms.grouped_simplex import GroupedSimplexQP

if TYPE_CHECKING:
    import cvxpy

__all__ = ["stated"]


def stated(program: GroupedSimplexQP) -> tuple[cvxpy.Problem, Any]:
    """The program as `GroupedSimplexQP` defines it, in cvxpy, and its variable α.

    The step is a variable of its own, so that cvxpy never sees the Gram matrix. cvxpy's solvers want numbers of order
    one: the variable is β = α / (capacity · usual share), and α an expression in it.
    """
    import cvxpy

    planes, features = program.slopes.shape
    unit = program.capacity[program.group] * program.usual_share
    beta = cvxpy.Variable(planes, nonneg=True, name="beta")
    step = cvxpy.Variable(features, name="step")
    slopes, values = program.slopes * unit[:, None], program.values * unit
    size = max(float(np.einsum("ij,ij->i", slopes, slopes).max()) / program.lam, float(np.abs(values).max()), 1e-300)
    held = np.zeros((program.capacity.size, planes))
    held[program.group, np.arange(planes)] = 1.0
    objective = cvxpy.Maximize((values / size) @ beta - cvxpy.sum_squares(step) / 2)
    constraints = [step == (slopes / np.sqrt(program.lam * size)).T @ beta, held @ beta <= 1.0 / program.usual_share]
    return cvxpy.Problem(objective, constraints), cvxpy.multiply(unit, beta)
