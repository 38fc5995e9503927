"""Features whose products leave double precision: the error names the feature and the cure."""

from collections.abc import Iterator
from contextlib import contextmanager

from formulations.errors import InvalidProblem
from rankopt.data.queries import Queries
from rankopt.errors import DataError
from rankopt.optimize.column_units import largest_magnitudes

__all__ = ["in_range"]

FAR = 1e100
"""Features beyond this are what a problem with numbers that are too large comes from."""


@contextmanager
def in_range(queries: Queries) -> Iterator[None]:
    """Turn the error of a problem whose numbers are too large into one of the feature that makes them so."""
    try:
        yield
    except (InvalidProblem, OverflowError) as error:
        largest = largest_magnitudes(queries.features)
        worst = int(largest.argmax())
        if not largest[worst] > FAR:
            raise
        name = f"feature {worst}" if queries.feature_names is None else f"feature {queries.feature_names[worst]!r}"
        raise DataError(
            f"training cannot go on because {name} reaches {largest[worst]:.3g} in magnitude, and products with it "
            f"leave double precision ({error}); divide it by {largest[worst]:.0e}, and others of that size too"
        ) from error
