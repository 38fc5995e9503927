"""Saved models: files of `formulations.serialization`. Reading one never executes its content.

    model.json       {"format", "version", "class", "params", "fitted"}
    arrays/0.npy     the arrays that it names
    SHA256SUMS       the digest of each member

The classes that can be saved are those of `rankopt.rankers.MODEL_CLASSES`; `_saved` lists the fitted attributes that
each stores. The same model gives the same bytes. Measures are stored as their notation.

`RECORDS` and `TABLES` list the dataclasses, enumerations and estimators that a saved model or a checkpoint may hold. A
name is `table:entry`, such as `solver:highs` or `record:Certificate`; no other class can be named.
"""

from os import PathLike
from typing import Any

from formulations.errors import FileVersionError, SerializationError
from formulations.registry import load
from formulations.serialization import Decoder, Encoder, FileFormat, Notation
from rankopt.errors import MeasureError, ModelError
from rankopt.measures.measure import Measure
from rankopt.measures.notation import parse

NOTATION = 1000  # characters that the notation of a measure may have

RECORDS = {
    "Admissible": "rankopt.constraints.admissible:Admissible",
    "Assignment": "formulations.problems.assignment:Assignment",
    "Block": "formulations.problems.program:Block",
    "Certificate": "rankopt.optimize.certificate:Certificate",
    "Chosen": "rankopt.collaborative.regularization:RegularizationChoice",
    "ConstrainedRanking": "formulations.constraints.constrained_ranking:ConstrainedRanking",
    "Constraint": "formulations.constraints.constraint:Constraint",
    "ConstraintSpec": "formulations.constraints.language:ConstraintSpec",
    "DemographicParity": "formulations.marginals.exposure:DemographicParity",
    "DisparateImpact": "formulations.marginals.exposure:DisparateImpact",
    "DisparateTreatment": "formulations.marginals.exposure:DisparateTreatment",
    "ExposureBounds": "formulations.marginals.exposure:ExposureBounds",
    "LinearProgram": "formulations.problems.linear_program:LinearProgram",
    "MinCostFlow": "formulations.problems.min_cost_flow:MinCostFlow",
    "PositionWeights": "rankopt.losses.position_weights:PositionWeights",
    "History": "rankopt.optimize.certificate:History",
    "RankTwoAssignment": "formulations.problems.ranking:RankTwoAssignment",
    "RankingSet": "formulations.constraints.ranking_set:RankingSet",
    "RandomDirections": "rankopt.ascent.ascent:RandomDirections",
    "ShareLimit": "formulations.constraints.constraint:ShareLimit",
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
    "record": "rankopt.persistence.models:RECORDS",
    "solver": "formulations.solvers:SOLVERS",
    "state": "rankopt.optimize:STATES",
}
"""Tables of such names: `table: "module:object"`."""


def classes() -> dict[str, str]:
    """The classes that a saved model or a checkpoint may hold: `table:entry` → "module:class"."""
    return {f"{table}:{entry}": path for table, location in TABLES.items() for entry, path in load(location).items()}


def _notation(measure: Measure) -> str:
    notation = str(measure)
    try:
        same = parse(notation) == measure
    except MeasureError:
        same = False
    if not same:
        raise SerializationError(f"{notation} does not read back as the same measure")
    return notation


def _measure(notation: str) -> Measure:
    if len(notation) > NOTATION:
        raise SerializationError(f"the notation of a measure has {len(notation)} characters")
    try:
        return parse(notation)
    except Exception as error:  # whatever a hostile notation does to its parser
        raise SerializationError(f"a measure cannot be read ({error})") from error


MODEL = FileFormat(
    "rankopt model",
    version=1,
    manifest="model.json",
    classes=classes,
    notations={"measure": Notation(Measure, _notation, _measure)},
    rule="a saved model holds numbers, strings, arrays, measures by their notation, and listed dataclasses of rankopt "
    "and formulations. A loss or bound of your own is saved by its name: give it a line in LOSSES or BOUNDS.",
)

MODEL_CLASSES = "rankopt.rankers:MODEL_CLASSES"  # the classes that can be saved, loaded on use


def save_model(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted ranker of `rankopt.rankers` to `path`. An existing file is replaced atomically.

    Raises ModelError when the model, a parameter or a fitted attribute is not data (callbacks, random generators,
    pipelines) and when fitted attributes do not fit together, `sklearn.exceptions.NotFittedError` before fit, OSError
    when the file cannot be written.
    """
    from sklearn.utils.validation import check_is_fitted

    name = _class_name(model)
    check_is_fitted(model)
    model._check_storable()
    try:
        model._check_loaded()
    except ModelError as error:
        raise ModelError(f"This {name} cannot be saved, for it could not be loaded: {error} Fit it again.") from error
    encoder = Encoder(MODEL)
    try:
        params = {
            key: encoder.encode(value, f"the parameter {key} of {name}")
            for key, value in model.get_params(deep=False).items()
            if key not in model._of_the_run
        }
        fitted = {
            key: encoder.encode(getattr(model, key), f"{key} of {name}") for key in model._saved if hasattr(model, key)
        }
    except SerializationError as error:
        raise ModelError(str(error)) from error
    try:
        MODEL.write(path, {"class": name, "params": params, "fitted": fitted}, encoder.arrays)
    except SerializationError as error:
        raise ModelError(f"{name} cannot be saved because {error}; give features shorter names, or none.") from error


def load_model(path: str | PathLike[str]) -> Any:
    """The fitted ranker that `save_model` wrote to `path`.

    Raises ModelError when the file is damaged, of another version, or holds anything but a ranker of this package, and
    OSError when it cannot be opened. Nothing in the file is ever executed.
    """
    try:
        manifest, arrays = MODEL.read(path)
        decoder = Decoder(MODEL, arrays)
        model = _model(manifest, decoder)
        decoder.check_complete()
    except (FileVersionError, ModelError) as error:
        raise ModelError(f"{path} cannot be loaded: {error}") from error
    except SerializationError as error:
        why = f"it is damaged or not a saved model ({error})"
        raise ModelError(f"{path} cannot be loaded because {why}; save it again.") from error
    return model


def _class_name(model: Any) -> str:
    kind = type(model)
    qualified = f"{kind.__module__}:{kind.__qualname__}"
    rankers: dict[str, str] = load(MODEL_CLASSES)
    for name, listed in rankers.items():
        if listed == qualified:
            return name
    if hasattr(model, "steps"):
        others = ", ".join(type(step).__name__ for _, step in model.steps[:-1])
        raise ModelError(
            f"A {kind.__name__} cannot be saved because its steps ({others}) are not models of rankopt; save its last "
            "step by `save_model(pipeline[-1], path)` and build the other steps again before predict."
        )
    if hasattr(model, "best_estimator_"):
        raise ModelError(f"A {kind.__name__} cannot be saved because it is a search; save its `best_estimator_`.")
    listed_names = ", ".join(rankers)
    raise ModelError(f"A {kind.__name__} cannot be saved because its class is not one of {listed_names}.")


def _model(manifest: dict[str, Any], decoder: Decoder) -> Any:
    if not (isinstance(manifest.get("params"), dict) and isinstance(manifest.get("fitted"), dict)):
        raise ModelError(f"{MODEL.manifest} lacks params or fitted.")
    name = manifest.get("class")
    if not isinstance(name, str) or name not in load(MODEL_CLASSES):
        raise ModelError(f"its class {str(name)[:80]!r} is not one of {', '.join(load(MODEL_CLASSES))}.")
    kind = load(load(MODEL_CLASSES)[name])
    _check_known(manifest["params"], set(kind._get_param_names()) - set(kind._of_the_run), f"parameter of {name}")
    _check_known(manifest["fitted"], set(kind._saved), f"fitted attribute of {name}")
    model = kind(**{key: decoder.decode(value) for key, value in manifest["params"].items()})
    for key, value in manifest["fitted"].items():
        setattr(model, key, decoder.decode(value))
    model._check_loaded()
    return model


def _check_known(names: dict[str, Any], known: set[str], what: str) -> None:
    unknown = names.keys() - known
    if unknown:
        raise ModelError(f"{min(unknown)[:80]!r} is no {what}.")
