"""The dataclasses, enumerations and rankers that a saved model or a checkpoint may hold, by name.

A name is `table:entry`, such as `solver:highs` or `record:Certificate`. Names in a file are looked up here, and the
objects are built from their fields; no other class can be named.
"""

import dataclasses
from collections.abc import Mapping
from enum import Enum
from importlib import import_module
from typing import Any

from rankopt.errors import ModelError

RECORDS = {
    "Admissible": "rankopt.constraints.admissible:Admissible",
    "Certificate": "rankopt.optimize.certificate:Certificate",
    "Chosen": "rankopt.collaborative.regularization:RegularizationChoice",
    "ConstraintSpec": "formulations.constraints.language:ConstraintSpec",
    "Decay": "rankopt.losses.position_weights:Decay",
    "History": "rankopt.optimize.certificate:History",
    "RandomDirections": "rankopt.ascent.ascent:RandomDirections",
    "Step": "rankopt.optimize.certificate:Step",
    "Stop": "rankopt.optimize.certificate:Stop",
    "TreeTable": "rankopt.experimental.tree_ensemble:TreeTable",
}
"""Records and enumerations in parameters and results of rankers: `name: "module:object"`."""

TABLES = {
    "bound": "rankopt.losses:BOUNDS",
    "engine": "rankopt.engines:ENGINES",
    "method": "rankopt.optimize:METHODS",
    "ranker": "rankopt.rankers:RANKERS",
    "record": "rankopt.persistence.records:RECORDS",
    "solver": "formulations.solvers:SOLVERS",
    "state": "rankopt.optimize:STATES",
}
"""Tables of such names: `table: "module:object"`."""


def name_of(kind: type) -> str | None:
    """The name of a class; None if it is not listed."""
    path = f"{kind.__module__}:{kind.__qualname__}"
    for table in TABLES:
        for entry, listed in _table(table).items():
            if listed == path:
                return f"{table}:{entry}"
    return None


def fields_of(record: Any) -> dict[str, Any]:
    """The init fields of a dataclass; the non-default parameters of an estimator."""
    if not dataclasses.is_dataclass(record):
        defaults = type(record)().get_params(deep=False)
        return {
            name: value for name, value in record.get_params(deep=False).items() if not _same(value, defaults[name])
        }
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record) if field.init}


def build(name: str, fields: Mapping[str, Any]) -> Any:
    """The dataclass or estimator of that name with these fields. ModelError for an unknown name or invalid fields."""
    kind = _listed(name)
    if not isinstance(kind, type) or not (dataclasses.is_dataclass(kind) or hasattr(kind, "_get_param_names")):
        raise ModelError(f"{name!r} is no record.")
    unknown = fields.keys() - _fields(kind)
    if unknown:
        raise ModelError(f"{name!r} has no field {min(unknown)[:80]!r}.")
    try:
        return kind(**fields)
    except Exception as error:  # invalid fields may raise anything in the class
        raise ModelError(f"{name!r} cannot be built from its fields ({error}).") from error


def _same(value: Any, default: Any) -> bool:
    return value is default or (
        isinstance(value, bool | int | float | str) and (type(value), value) == (type(default), default)
    )


def _fields(kind: Any) -> set[str]:
    """Names of the fields of a dataclass, or of the parameters of an estimator."""
    if dataclasses.is_dataclass(kind):
        return {field.name for field in dataclasses.fields(kind) if field.init}
    return set(kind._get_param_names())


def member(name: str, label: str) -> Enum:
    """The member of the enumeration of that name. ModelError for an unknown one."""
    kind = _listed(name)
    if not (isinstance(kind, type) and issubclass(kind, Enum) and label in kind.__members__):
        raise ModelError(f"{name!r} has no member {label[:80]!r}.")
    return kind[label]


def _listed(name: str) -> Any:
    table, _, entry = name.partition(":")
    path = _table(table).get(entry) if table in TABLES else None
    if path is None:
        raise ModelError(f"{name[:80]!r} is not one of the records that a model may hold.")
    module, attribute = path.split(":")
    return getattr(import_module(module), attribute)


def _table(name: str) -> dict[str, str]:
    module, attribute = TABLES[name].split(":")
    table: dict[str, str] = getattr(import_module(module), attribute)
    return table
