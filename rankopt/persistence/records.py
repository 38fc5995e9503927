"""The closed list of dataclasses, enumerations and rankers that a saved model or a checkpoint may hold,
by name.

A name is `table:entry`, such as `solver:highs` or `record:Certificate`. What stands in a file is looked up here and
built from its fields; nothing else can be named.
"""

import dataclasses
from collections.abc import Mapping
from enum import Enum
from importlib import import_module
from typing import Any

from rankopt.errors import ModelError

RECORDS = {
    "Admissible": "rankopt.constraints.admissible:Admissible",
    "AlternationHistory": "rankopt.collaborative.alternation:AlternationHistory",
    "AnnealingCertificate": "rankopt.optimize.annealing:AnnealingCertificate",
    "AnnealingHistory": "rankopt.optimize.annealing:AnnealingHistory",
    "Certificate": "rankopt.optimize.certificate:Certificate",
    "Chosen": "rankopt.collaborative.regularization:RegularizationChoice",
    "ConstraintSpec": "formulations.constraints.language:ConstraintSpec",
    "DirectionCertificate": "rankopt.ascent.certificate:DirectionCertificate",
    "Decay": "rankopt.losses.position_weights:Decay",
    "FactorCertificate": "rankopt.collaborative.global_bound:FactorCertificate",
    "History": "rankopt.optimize.certificate:History",
    "AscentHistory": "rankopt.ascent.ascent:AscentHistory",
    "RandomDirections": "rankopt.ascent.ascent:RandomDirections",
    "Step": "rankopt.optimize.certificate:Step",
    "Stop": "rankopt.optimize.certificate:Stop",
    "TreeCertificate": "rankopt.experimental.tree_ensemble:TreeCertificate",
    "TreeHistory": "rankopt.experimental.tree_ensemble:TreeHistory",
    "TreeStop": "rankopt.experimental.tree_ensemble:TreeStop",
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
    """The name of a class; None where it is not listed."""
    place = f"{kind.__module__}:{kind.__qualname__}"
    for table in TABLES:
        for entry, listed in _table(table).items():
            if listed == place:
                return f"{table}:{entry}"
    return None


def fields_of(record: Any) -> dict[str, Any]:
    """What a dataclass is built from; of an estimator the options that are not its defaults."""
    if not dataclasses.is_dataclass(record):
        defaults = type(record)().get_params(deep=False)
        return {
            name: value for name, value in record.get_params(deep=False).items() if not _same(value, defaults[name])
        }
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record) if field.init}


def build(name: str, fields: Mapping[str, Any]) -> Any:
    """The dataclass, or the estimator, of that name with these fields. ModelError where there is none, or it refuses
    them."""
    kind = _listed(name)
    if not isinstance(kind, type) or not (dataclasses.is_dataclass(kind) or hasattr(kind, "_get_param_names")):
        raise ModelError(f"{name!r} is no record.")
    unknown = fields.keys() - _fields(kind)
    if unknown:
        raise ModelError(f"{name!r} has no field {min(unknown)[:80]!r}.")
    try:
        return kind(**fields)
    except Exception as error:  # whatever its class says about hostile fields
        raise ModelError(f"{name!r} cannot be built from its fields ({error}).") from error


def _same(value: Any, default: Any) -> bool:
    return value is default or (
        isinstance(value, bool | int | float | str) and (type(value), value) == (type(default), default)
    )


def _fields(kind: Any) -> set[str]:
    """What a dataclass, or an estimator, takes."""
    if dataclasses.is_dataclass(kind):
        return {field.name for field in dataclasses.fields(kind) if field.init}
    return set(kind._get_param_names())


def member(name: str, label: str) -> Enum:
    """The member of the enumeration of that name. ModelError where there is none."""
    kind = _listed(name)
    if not (isinstance(kind, type) and issubclass(kind, Enum) and label in kind.__members__):
        raise ModelError(f"{name!r} has no member {label[:80]!r}.")
    return kind[label]


def _listed(name: str) -> Any:
    table, _, entry = name.partition(":")
    place = _table(table).get(entry) if table in TABLES else None
    if place is None:
        raise ModelError(f"{name[:80]!r} is not one of the records that a model may hold.")
    module, attribute = place.split(":")
    return getattr(import_module(module), attribute)


def _table(name: str) -> dict[str, str]:
    module, attribute = TABLES[name].split(":")
    table: dict[str, str] = getattr(import_module(module), attribute)
    return table
