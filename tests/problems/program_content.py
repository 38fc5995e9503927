"""What a program states, by name, to compare programs whose columns and rows have different orders."""

import numpy as np


def content(problem):
    """Sense; variable -> cost, limits and integrality; row -> limits and entries; pair of variables -> second
    derivative. Zero entries are left out."""
    program = problem.program
    size, count = program.objective.size, program.row_lower.size
    names = [program.variable_name(j) for j in range(size)]
    integer = np.zeros(size, dtype=bool) if program.integer is None else program.integer
    columns = zip(
        program.objective.tolist(), program.lower.tolist(), program.upper.tolist(), integer.tolist(), strict=True
    )
    matrix = program.matrix.toarray()
    rows = {
        program.row_name(i): (
            float(program.row_lower[i]),
            float(program.row_upper[i]),
            {names[j]: float(matrix[i, j]) for j in np.flatnonzero(matrix[i])},
        )
        for i in range(count)
    }
    squares = {} if program.hessian is None else program.hessian.todok()
    return (
        program.is_maximization,
        dict(zip(names, columns, strict=True)),
        rows,
        {(names[i], names[j]): float(value) for (i, j), value in squares.items()},
    )


def variable(cost=0.0, lower=0.0, upper=np.inf, integer=False):
    return (float(cost), float(lower), float(upper), integer)
