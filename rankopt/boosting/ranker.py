"""Gradient-boosted trees on an upper bound of a measure's regret, for data on which a linear ranker is too weak.

Fitted trees are stored as model texts of LightGBM (`Forest`), validated before loading; scores of bags are averaged.
"""

# mypy: allow-subclassing-any
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from formulations.arrays import Floats, check_type
from formulations.display import CompactReprMixin
from rankopt.boosting.growth import Growth, Member, grow, lightgbm, report_rounds, smoothed, table
from rankopt.boosting.objective import boosting_metric, boosting_objective
from rankopt.boosting.tree_text import check_text, nodes_of
from rankopt.constraints.admissible import Admissible
from rankopt.data.canonical_order import Arrangement, canonical
from rankopt.data.queries import Queries
from rankopt.data.typing import Attributes, Ids, Sizes, Values
from rankopt.errors import DataError, ModelError, OptionError
from rankopt.explanations.contributions import Explanation
from rankopt.fitting import warn_interrupted
from rankopt.losses.oracle_positional import with_distinct_grades
from rankopt.measures.notation import parse
from rankopt.options import POSITIVE, RUN, Interval, Rules, as_numbers, check_options, seed_from
from rankopt.persistence.models import load_model
from rankopt.persistence.onnx import Nodes
from rankopt.rankers import inputs
from rankopt.rankers import typing as types
from rankopt.rankers.base import Ranker

if TYPE_CHECKING:
    from rankopt.clicks.log import EstimatorName
    from rankopt.clicks.propensities import PositionBias

LARGEST = 2**31 - 1  # the largest integer option of LightGBM

COUNT = Interval(1, LARGEST, "both", integer=True)


def seeds_of(random_state: Any, members: int) -> list[int]:
    """A seed for each member: following numbers, from 0 for None; a generator draws the first."""
    first = seed_from(random_state)
    return [(first * members + member) % LARGEST for member in range(members)]


@dataclass(frozen=True, eq=False)
class Forest(CompactReprMixin):
    """texts: LightGBM's text of each member, in bytes; an empty one scores all documents 0."""

    texts: tuple[NDArray[np.uint8], ...]

    @cached_property
    def boosters(self) -> tuple[Any, ...]:
        """The members that have trees."""
        return tuple(lightgbm().Booster(model_str=text.tobytes().decode("ascii")) for text in self.texts if text.size)

    def scores(self, features: Any, threads: int) -> Floats:
        """The mean (N,) over the members; threads: 0 leaves their number to LightGBM."""
        total = np.zeros(features.shape[0])
        for booster in self.boosters if total.size else ():
            total += booster.predict(table(features), num_threads=threads)
        return total / len(self.texts)

    def contributions(self, features: Floats, threads: int) -> Floats:
        """(N, d) the SHAP values of the mean over the members; without the constant of each row."""
        total = np.zeros(features.shape)
        for booster in self.boosters:
            total += booster.predict(features, pred_contrib=True, num_threads=threads)[:, :-1]
        return total / len(self.texts)


ROUNDS, JUDGED = 100, 1000  # default numbers of trees, without and with queries to evaluate them on
FEWEST, MANY = 30, 200  # queries from which some are held out, and from which no model is grown again on all
LARGE = 30_000  # documents, beyond which half the noise is enough


Parts = Sequence[tuple[Arrangement, Arrangement | None]]
"""For each model the queries that it is trained on, and those that it is evaluated on."""


def hold_out(queries: Arrangement, fraction: float, count: int, seed: int) -> Parts:
    """Several times the queries without, and then, a fraction drawn at random: other ones each time, until all were."""
    drawn = np.random.default_rng(seed).permutation(len(queries))
    size = min(max(round(fraction * drawn.size), 1), drawn.size - 1)
    orders = [np.roll(drawn, -size * turn) for turn in range(count)]
    return [(queries.select(np.sort(one[size:])), queries.select(np.sort(one[:size]))) for one in orders]


class BoostedRanker(Ranker):
    """Gradient-boosted trees (LightGBM) on `boosting_objective`, an upper bound of the regret of `measure`, which for
    nDCG is cut at position 30 at least.

    Each tree is a descent step of Σ_q v_q loss_q(s), with s the scores so far. The sum is over the m queries with
    something to order, v_q = query_weight / Σ query_weight. Trees are grown greedily, so nothing is proved of the
    result; `LargeMarginRanker` has certificates.

    NaN and columns of pandas dtype `category` go to LightGBM as they are. A category is known by its value, in whatever
    order or number a frame has them; one that `fit` did not know is NaN.

    Parameters
    ----------
    **Start here**

    measure : default "nDCG@10"
        As in `LargeMarginRanker`; evaluates eval_set, and defines the objective together with `truncation_level`.
    n_estimators : default None
        Trees, one per round. None: the best number for `measure` on eval_set, at most 1,000; without eval_set on
        queries that are held out of training (`validation_fraction`). With fewer than 30 queries that have something
        to order there are 100 trees.
    learning_rate : default 0.05
        The largest change of a score by a leaf, in units of the margin.
    constraints : default None
        An `Admissible` for `rank`, `score` and `best_score_`; training, early stopping and `evals_result_` ignore it.
    normalize : default None
        As in `LargeMarginRanker`.
    monotone_constraints : default None
        1 (increasing), -1 (decreasing) or 0 for each feature, or a mapping from feature name, or from number where
        features have no names; as in LightGBM.

    **Model**

    feature_map, bound, position_weights : defaults "positional", "tie-aware", "log@30"
        As in `LargeMarginRanker`; the convex bound is not recommended.
    truncation_level : default 30
        The cutoff of nDCG and DCG in the objective if theirs is smaller, as LightGBM's `lambdarank_truncation_level`.
    num_leaves, min_child_samples, colsample_bytree : defaults 8, None, 0.7
        As in LightGBM: leaves of a tree, the minimum documents of a leaf (None: a hundredth of all, but from 20 to 50),
        and the fraction of the features that a tree uses.
    score_noise : default None
        The deviation of the noise added to the scores in each round, in deviations of the scores. None is 1.0, and 0.5
        with more than 30,000 documents, where leaves average over more of them; twice as much where a third of the
        queries is held out and judges that to be better (`validation_fraction`).
    n_bags : default 3
        The number of models, each with its own noise and features, whose scores are averaged. Time is proportional.

    **Solver**

    early_stopping : default 100
        Training ends when the best round is so many rounds ago. The best round has the largest mean of nine values
        around it, because a single value is the largest by chance.
    validation_fraction : default None
        The fraction of the queries that each model holds out if there are neither n_estimators nor an eval_set: other
        queries for each model, as far as there are. None is a tenth, and a third with fewer than 200 queries that have
        something to order; then all models are trained again on all queries, with the number of trees found.
    random_state : default None
        Seed of the trees. The model is reproducible with None too.

    **Run**

    engine, n_jobs : defaults "threads", None
        "threads" with n_jobs threads (None or -1: all cores), or "serial". Results are bit-identical. Other
        engines are refused: the objective needs all queries, and each worker of LightGBM has only its own.
        `DaskLGBMRanker(objective=boosting_objective(...))` normalizes over each worker's queries and gives
        another model.
    verbose : default 0
        1 shows progress; where standard error is no terminal, a line every ten seconds.

    Notes
    -----
    Fitted: `estimators_`, LightGBM's text of each member as an array of bytes
    (`lightgbm.Booster(model_str=text.tobytes().decode())` reads it), `n_rounds_`, the number of trees of each,
    `categories_`, {feature: its categories} (an array holds positions in it), and `feature_importances_`; where rounds
    were evaluated `best_score_`, `best_iteration_`, and `evals_result_`, the measure after each round as `{"eval_set":
    {"nDCG@10": [...]}}`, under "validation" for held-out queries.
    Needs `pip install 'rankopt[boosting]'`; raises OptionError if it is missing.
    """

    _saved: ClassVar[tuple[str, ...]] = (
        *Ranker._saved, "estimators_", "n_rounds_", "best_score_", "evals_result_", "categories_",
    )  # fmt: skip
    _allow_nan: ClassVar[bool] = True
    _linear_in_gains: ClassVar[bool] = True

    _rules: ClassVar[Rules] = {
        "n_estimators": (COUNT, None), "num_leaves": (Interval(2, LARGEST, "both", integer=True),),
        "min_child_samples": (COUNT, None), "n_bags": (COUNT,), "truncation_level": (COUNT,),
        "early_stopping": (COUNT,),
        "learning_rate": (POSITIVE,), "colsample_bytree": (Interval(0, 1, "right"),),
        "validation_fraction": (Interval(0, 1, "neither"), None), "n_jobs": RUN["n_jobs"],
        "verbose": RUN["verbose"],
    }  # fmt: skip

    estimators_: tuple[NDArray[np.uint8], ...]
    categories_: dict[str, tuple[Any, ...]]
    n_rounds_: int
    best_score_: float
    evals_result_: dict[str, dict[str, list[float]]]
    _forest: Forest
    _init_model: BoostedRanker | None

    def __init__(
        self,
        measure: types.AnyMeasure = "nDCG@10",
        *,
        feature_map: types.AnyMap = "positional",
        bound: types.AnyBound = "tie-aware",
        position_weights: types.AnyPositionWeights = "log@30",
        truncation_level: int = 30,
        n_estimators: int | None = None,
        learning_rate: float = 0.05,
        num_leaves: int = 8,
        min_child_samples: int | None = None,
        colsample_bytree: float = 0.7,
        score_noise: float | None = None,
        n_bags: int = 3,
        monotone_constraints: Values | Mapping[str, int] | None = None,
        early_stopping: int = 100,
        validation_fraction: float | None = None,
        engine: Literal["threads", "serial"] = "threads",
        n_jobs: int | None = None,
        random_state: types.Seed = None,
        verbose: int = 0,
        constraints: Admissible | None = None,
        normalize: types.Normalize = None,
    ) -> None:
        self.measure = measure
        self.feature_map = feature_map
        self.bound = bound
        self.position_weights = position_weights
        self.truncation_level = truncation_level
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.min_child_samples = min_child_samples
        self.colsample_bytree = colsample_bytree
        self.score_noise = score_noise
        self.n_bags = n_bags
        self.monotone_constraints = monotone_constraints
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.constraints = constraints
        self.normalize = normalize

    def fit(
        self,
        X: types.AnyRows,
        y: Values | None = None,
        *,
        qid: Ids | None = None,
        group: Sizes | None = None,
        query_weight: types.Weights | None = None,
        attributes: Attributes | None = None,
        eval_set: types.EvalSet | None = None,
        eval_qid: types.EvalIds | None = None,
        eval_group: types.EvalSizes | None = None,
        eval_attributes: Attributes | None = None,
        eval_X: types.AnyRows | None = None,
        eval_y: Values | None = None,
        gains: Values | None = None,
        propensities: PositionBias | None = None,
        estimator: EstimatorName = "ips",
        init_model: BoostedRanker | str | PathLike[str] | None = None,
    ) -> Self:
        """As `Ranker.fit`. init_model: a fitted BoostedRanker of the same features, `n_bags`, `normalize` and
        `monotone_constraints`, or the path of a saved one; its trees are continued by `n_estimators` more."""
        self._init_model = load_model(init_model) if isinstance(init_model, str | PathLike) else init_model
        # The body of `Ranker.fit`: calling it would give its warnings a line of this file instead of the caller's.
        X, eval_set, query_weight = inputs.of_clicks(X, eval_set, propensities, estimator, query_weight)
        queries = inputs.read_queries(self, X, y, qid=qid, group=group, attributes=attributes, gains=gains, reset=True)
        inputs.warn_without_queries(X, queries.n_documents, qid, group, stacklevel=4)
        weights = inputs.query_weights(queries, query_weight)
        self.n_queries_ = len(queries)
        ways = {"qid": eval_qid, "group": eval_group, "attributes": eval_attributes}
        evaluation = inputs.read_evaluation(self, queries, inputs.in_one(eval_set, eval_X, eval_y), **ways)
        with inputs.measuring_gains(self, queries):
            self._fit(queries, weights, evaluation)
        return self

    def _fit(self, queries: Queries, weights: Floats, evaluation: Queries | None) -> None:
        self._check_params()
        if queries.n_documents < 2:
            raise DataError("training cannot learn an order because there is 1 sample; give two documents or more")
        noise = self.score_noise
        if noise is None:
            noise = 1.0 if queries.n_documents <= LARGE else 0.5
        objective = boosting_objective(
            self.measure,
            feature_map=self.feature_map,
            bound=self.bound,
            position_weights=self.position_weights,
            truncation_level=self.truncation_level,
            score_noise=noise,
        )
        measure = parse(self.measure)
        arranged = with_distinct_grades(canonical(queries, weights), measure)
        init, seeds = self._init_texts(), seeds_of(self.random_state, int(self.n_bags))
        parts, is_refitted = self._parts(arranged, evaluation, seeds)
        name, where = ("validation", "on held-out queries") if evaluation is None else ("eval_set", "on eval_set")
        if self._admissible() is not None:
            where += " without the constraints"

        def train(noise: float, parts: Parts, growth: Growth) -> tuple[list[str], int, list[float], bool]:
            members = [
                Member(replace(objective, score_noise=noise, seed=seed), *part, text)
                for seed, part, text in zip(seeds, parts, init, strict=True)
            ]
            with report_rounds(self.verbose, len(members), growth.rounds, repr(measure), where) as progress:
                return grow(members, growth, boosting_metric(measure), progress)

        growth, noise = self._growth(arranged.rows.size, parts[0][1] is not None), objective.score_noise
        texts, rounds, values, interrupted = train(noise, parts, growth)
        if is_refitted and values:
            if self.score_noise is None and not interrupted:
                _, other, curve, interrupted = train(2 * noise, parts, growth)
                if smoothed(curve).max() > smoothed(values).max():
                    noise, rounds, values = 2 * noise, other, curve
            texts, rounds, _, again = train(noise, [(arranged, None)] * len(seeds), replace(growth, rounds=rounds))
            interrupted |= again
        self.estimators_ = tuple(np.frombuffer(text.encode("ascii"), dtype=np.uint8) for text in texts)
        self._forest = Forest(self.estimators_)
        self.n_rounds_ = rounds + (0 if self._init_model is None else self._init_model.n_rounds_)
        for old in ("_init_model", "best_score_", "evals_result_"):
            self.__dict__.pop(old, None)
        if values:
            self.evals_result_ = {name: {repr(measure): values}}
            self.best_score_ = values[rounds - 1]
        if evaluation is not None:
            self.best_score_ = self._mean(evaluation, np.ones(len(evaluation)), None)
        if interrupted:
            warn_interrupted("trees")

    def _parts(self, queries: Arrangement, evaluation: Queries | None, seeds: Sequence[int]) -> tuple[Parts, bool]:
        """The queries that each model is trained and evaluated on, and whether it is then trained again on all."""
        if evaluation is not None:
            return [(queries, canonical(evaluation, np.ones(len(evaluation))))] * len(seeds), False
        if self.n_estimators is not None or len(queries) < FEWEST:
            return [(queries, None)] * len(seeds), False
        is_refitted = self.validation_fraction is None and len(queries) < MANY
        fraction = 1 / 3 if is_refitted else self.validation_fraction or 0.1
        return hold_out(queries, fraction, len(seeds), seeds[0]), is_refitted

    def explain(self, x: types.Document, y: types.Document, *, among: types.AnyRows | None = None) -> Explanation:
        """Explain the score difference of documents x and y (d,): the differences of their SHAP values, largest first.

        The terms sum to the difference (LightGBM's `pred_contrib`). among: all documents (n, d) of their query; needed
        only with `normalize`.
        """
        check_is_fitted(self)
        names, rows = inputs.read_pair(self, x, y, among)
        of_x, of_y = Forest(self.estimators_).contributions(np.stack(rows), self._threads())
        found = Explanation.from_terms(names, of_x - of_y, np.full(len(names), np.nan), *rows)
        return replace(found, documents=(inputs.document_id(x), inputs.document_id(y)))

    @property
    def feature_importances_(self) -> Floats:
        """(d,) the share of each feature in the gain of all splits; 0 for all if no tree has a split."""
        check_is_fitted(self)
        gains = np.zeros(self.n_features_in_)
        for booster in Forest(self.estimators_).boosters:
            gains += booster.feature_importance("gain")
        return gains / (gains.sum() or 1.0)

    @property
    def best_iteration_(self) -> int:
        """The number of trees of each member that was best on eval_set."""
        if not hasattr(self, "evals_result_"):
            raise AttributeError("best_iteration_ needs an evaluation; call fit(..., eval_set=(X, y), eval_qid=qid)")
        return self.n_rounds_

    def _growth(self, documents: int, judged: bool) -> Growth:
        fewest = self.min_child_samples
        if fewest is None:
            fewest = min(max(documents // 100, 20), 50)
        rounds = (JUDGED if judged else ROUNDS) if self.n_estimators is None else int(self.n_estimators)
        return Growth(
            rounds, self.learning_rate, int(self.num_leaves), int(fewest), self.colsample_bytree,
            int(self.early_stopping), self._signs(), self._threads(), self._categorical(),
        )  # fmt: skip

    def _categorical(self) -> tuple[int, ...]:
        """The features whose numbers are codes of categories."""
        if self.categories_ and self.normalize is not None:
            raise OptionError(f"normalize must be None where X has categories; got {self.normalize!r}. Leave it out.")
        return tuple(list(self.feature_names_in_).index(name) for name in self.categories_)

    def _init_texts(self) -> list[str]:
        """The trees that each member continues: none without an init_model."""
        init, members = self._init_model, int(self.n_bags)
        if init is None:
            return [""] * members
        check_type("init_model", init, BoostedRanker, error=OptionError, cure="Pass a fitted one, or its file.")
        check_is_fitted(init)
        old, new = (
            {
                "features": getattr(one, "feature_names_in_", np.arange(one.n_features_in_)).tolist(),
                "categories": one.categories_,
                "n_bags": int(one.n_bags),
                "normalize": one.normalize_,
                "monotone_constraints": one._signs() or None,
            }
            for one in (init, self)
        )
        for name in old:
            if old[name] != new[name]:
                raise OptionError(
                    f"init_model must have the {name} of the ranker; got {old[name]!s:.80} and {new[name]!s:.80}."
                )
        return [text.tobytes().decode("ascii") for text in init.estimators_]

    def _signs(self) -> tuple[int, ...]:
        """The monotone constraint of each feature, if there are any."""
        given = self.monotone_constraints
        if given is None:
            return ()
        names: list[Any] = getattr(self, "feature_names_in_", np.arange(self.n_features_in_)).tolist()
        if isinstance(given, Mapping):
            unknown = given.keys() - set(names)
            if unknown:
                raise OptionError(
                    f"monotone_constraints has {min(map(repr, unknown))}, which is no feature; name columns of X."
                )
            given = [given.get(name, 0) for name in names]
        signs = as_numbers("monotone_constraints", given)
        if signs.shape != (len(names),) or not np.isin(signs, (-1, 0, 1)).all():
            raise OptionError(
                f"monotone_constraints must be one of -1, 0, 1 for each of {len(names)} features, or a mapping from "
                f"name to 1 or -1; got {self.monotone_constraints!r:.80}."
            )
        return tuple(int(sign) for sign in signs)

    def _threads(self) -> int:
        if self.engine == "serial":
            return 1
        return 0 if self.n_jobs in (None, -1) else int(self.n_jobs or 0)

    def _scores(self, features: Any) -> Floats:
        if not hasattr(self, "_forest"):
            self._forest = Forest(self.estimators_)
        return self._forest.scores(features, self._threads())

    def _as_graph(self) -> Nodes:
        return nodes_of(self.estimators_, self.n_features_in_)

    def _check_learned(self) -> None:
        texts, rounds = getattr(self, "estimators_", None), getattr(self, "n_rounds_", None)
        if not (isinstance(texts, tuple) and texts and type(rounds) is int):
            raise ModelError("estimators_ or n_rounds_ is missing, or of another type.")
        for text in texts:
            if not (isinstance(text, np.ndarray) and text.dtype == np.uint8 and text.ndim == 1):
                raise ModelError("estimators_ holds no texts.")
            try:
                found = check_text(text.tobytes().decode("ascii"), self.n_features_in_) if text.size else 0
            except UnicodeDecodeError as error:
                raise ModelError(f"estimators_ holds no text ({error}).") from error
            if found > rounds:
                raise ModelError(f"a text of estimators_ has {found} trees, more than n_rounds_ = {rounds}.")
        known, names = getattr(self, "categories_", {}), [*getattr(self, "feature_names_in_", ())]
        if not (isinstance(known, dict) and all(name in names and type(own) is tuple for name, own in known.items())):
            raise ModelError("categories_ names no features, or lists no categories.")

    def _check_params(self) -> None:
        super()._check_params()
        check_options(self)
        if not isinstance(self.engine, str) or self.engine not in ("threads", "serial"):
            raise OptionError(
                f"engine = {self.engine!r} cannot grow trees because the objective needs all queries, and a worker "
                "has only its own; use 'threads' or 'serial', or DaskLGBMRanker(objective=boosting_objective()) "
                "of LightGBM with chunks of complete queries, which normalizes over each chunk"
            )

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        state.pop("_forest", None)  # LightGBM's own objects: made again from the texts
        return state
