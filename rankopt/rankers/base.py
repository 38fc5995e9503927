"""Base classes of the rankers: `rank`, `predict`, `score`, constraints, and model files.

A ranking of a query's documents is their order by decreasing score; under constraints it is the best admissible
ranking. A custom ranker is a subclass with `__init__`, `_fit` and `_scores`; `rankopt.rankers.linear` has `_scores`
for linear scores.
"""

# mypy: allow-subclassing-any
from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from formulations.arrays import Floats, check_type
from formulations.solving.sensitivity import SensitivityCurve, Side
from rankopt.constraints.admissible import Admissible
from rankopt.constraints.sensitivity import rule_sensitivity
from rankopt.data.normalization import METHODS
from rankopt.data.queries import Queries
from rankopt.data.typing import Attributes, Ids, PlainRows, Sizes, Values
from rankopt.data.validation import check_same_index, column_names
from rankopt.errors import DataError, ModelError, OptionError, RankoptError
from rankopt.evaluation.evaluation import Evaluation, Measures
from rankopt.explanations.tightness import Tightness, bounds_at, max_regret_of, of_parts
from rankopt.fitting import atomic
from rankopt.losses import BOUNDS, get_bound
from rankopt.losses.margin import Bound
from rankopt.losses.regret import RegretBound
from rankopt.measures.measure import Convention
from rankopt.measures.notation import MeasureMix, linear_in_gains, parse
from rankopt.options import COUNT, Rules, check
from rankopt.persistence.models import NOTATION, save_model
from rankopt.rankers import inputs
from rankopt.rankers.deployment import Deployment, RegretReport, as_arranged, regret_in_set, regret_of_rankings
from rankopt.rankers.missing import takes_missing
from rankopt.rankers.typing import AnyMap, AnyMeasure, AnyPositionWeights, AnyRows, EvalIds, EvalSet, EvalSizes, Weights
from rankopt.scorers.linear import linear_scores

if TYPE_CHECKING:
    from rankopt.clicks.log import EstimatorName
    from rankopt.clicks.propensities import PositionBias


OURS = {
    **dict.fromkeys(("num_iterations", "num_boost_round", "iterations"), "n_estimators=100"),
    **dict.fromkeys(("early_stopping_rounds", "early_stopping_round"), "early_stopping=50"),
    **dict.fromkeys(("num_threads", "nthread", "thread_count"), "n_jobs=1"),
    "seed": "random_state=0", "random_seed": "random_state=0", "eta": "learning_rate=0.1", "verbosity": "verbose=1",
    "feature_fraction": "colsample_bytree=0.7", "min_data_in_leaf": "min_child_samples=20",
    "max_leaves": "num_leaves=8", "lambdarank_truncation_level": "truncation_level=30",
}  # fmt: skip
"""Parameters of LightGBM, XGBoost and CatBoost, and of `BoostedRanker`."""

CURES = {
    **{word: f"{word} is called {ours.partition('=')[0]} here: BoostedRanker({ours})" for word, ours in OURS.items()},
    **dict.fromkeys(
        ("n_estimators", "learning_rate", "num_leaves"),
        "trees are grown by BoostedRanker(n_estimators=100, learning_rate=0.1, num_leaves=8); others have none",
    ),
    "max_depth": "max_depth has no counterpart here: BoostedRanker(num_leaves=8) limits the size of trees",
    **dict.fromkeys(
        ("categorical_feature", "cat_features", "enable_categorical"),
        "categories are columns of a pandas frame: BoostedRanker().fit(X.astype({'site': 'category'}), y)",
    ),
    "xgb_model": "xgb_model is called init_model here, of BoostedRanker.fit: a ranker or its file",
    "eval_sample_weight": "eval_sample_weight is unknown: every query of eval_set counts as one; leave queries out",
    **{
        word: f"{word} is unknown here: signs are set as in LargeMarginRanker(coef_bounds=(0, None)), of trees as in "
        "BoostedRanker(monotone_constraints={0: 1}); DirectRanker and PlackettLuceRanker have no such limits"
        for word in ("coef_bounds", "bounds", "positive", "monotone_constraints")
    },
    "missing": "missing is of linear rankers; BoostedRanker takes NaN in X as it is: leave missing out",
    "callbacks": "callbacks are of linear rankers, as in LargeMarginRanker(callbacks=[...]); BoostedRanker has "
    "early_stopping= and verbose=",
    "verbose": "verbose is of rankers that train step by step, as in LargeMarginRanker(verbose=1)",
    "objective": "objective is called measure here, as in BoostedRanker(measure='nDCG@10'); a loss of scores is "
    "trained by LossRanker(loss='pairwise')",
    "eval_metric": "eval_metric is called measure here, as in BoostedRanker(measure='nDCG@10'), and evaluates eval_set",
    "eval_at": "eval_at is the cutoff of the measure here, as in BoostedRanker(measure='nDCG@10')",
}
"""What to do about arguments of other libraries, in `fit` and in the constructor."""

POSITION_WEIGHTS, MAP = "power(0.5)", "positional"  # defaults of `LargeMarginRanker`, for rankers that train no bound


@atomic
class Ranker(BaseEstimator):
    """Base class: a subclass implements `_fit` and `_scores` (the score of each document).

    X is an (N, d) array, CSR matrix, data frame, or a `rankopt.data.Queries`. The query of each row is set in one of
    four ways, in any order of the rows:

    * `qid=` (N,) hashables; the only way that passes through Pipeline, GridSearchCV and GroupKFold
    * `group=` sizes of consecutive queries
    * a column `qid` (or `query_id`, ..., as in `read_table`) of the data frame, which is not used as a feature
    * a `Queries`, which includes the relevance labels

    With none of them, all rows are one query; `fit` then warns above 300 rows
    (`rankopt.errors.MissingQueryIdsWarning`). The class requests `qid` and the like from scikit-learn's metadata
    routing: a Pipeline needs only `sklearn.set_config(enable_metadata_routing=True)`.

    `normalize=` ("zscore", "minmax", "sum", "rank"; see `rankopt.data.normalization`) normalizes each feature within
    its query in `fit`, on eval_set and for every score. "auto" is "zscore" where scales differ from query to query,
    else None; `normalize_` says which. `missing="indicator"` replaces NaN by means within the query (see
    `rankopt.rankers.missing`). With either, `predict` needs the queries of its rows, and `explain` the documents of
    the query.

    Fitted: `n_queries_`, `n_features_in_`, and `feature_names_in_` if the data have feature names. A model of
    `rankopt train` has `columns_`, the names that --qid, --relevance and --document gave, by role.
    """

    # Row-aligned or keyed by query, so that cross-validation may cut them. eval_set and eval_X are not among them on
    # purpose: the earlier steps of a Pipeline transform what `transform_input` names and nothing else, and
    # scikit-learn's error is better than a silent mismatch.
    __metadata_request__fit: ClassVar = {
        "qid": True, "group": True, "query_weight": True, "attributes": True, "gains": True,
        "eval_y": True, "eval_qid": True, "eval_group": True, "eval_attributes": True,
    }  # fmt: skip
    __metadata_request__predict: ClassVar = {"qid": True, "group": True}
    # Pipeline.score passes sample_weight to its last step whenever routing is on. Constraints name no rows.
    __metadata_request__score: ClassVar = {
        "qid": True, "group": True, "sample_weight": True, "attributes": True, "constraints": True, "gains": True,
    }  # fmt: skip

    _saved: ClassVar[tuple[str, ...]] = ("n_queries_", "n_features_in_", "feature_names_in_", "normalize_", "columns_")
    """Fitted attributes that a saved model holds, where they exist. A subclass adds its own."""

    _unlimited: ClassVar[str] = "got none. Pass constraints=Admissible(k).at_most(...)."
    """Why `sensitivity` is unavailable without constraints."""

    _of_the_run: ClassVar[tuple[str, ...]] = ("callbacks", "checkpoint", "engine", "n_jobs", "verbose")
    """Parameters that concern one run of `fit` only (callbacks): not saved, the default again after loading."""

    _rules: ClassVar[Rules] = {}
    """What options may be, by name; see `rankopt.options`. Others are checked where they are read."""

    _refused: ClassVar[Mapping[str, str]] = {
        "sample_weight": "sample_weight is not supported by fit because a weight applies to a full ranking; pass "
        "query_weight=, one weight a query: a mapping from query id, or an array in order of first appearance",
        **dict.fromkeys(
            ("group_weight", "weights", "weight"),
            "weights are called query_weight here: one weight a query, a mapping from query id, or an array",
        ),
        "groups": "groups is called qid here, one id a row, or group, the sizes of consecutive queries",
        "unjudged": "unjudged is not supported by fit: pass it to Queries.from_arrays(X, y, qid=qid, unjudged=0), "
        "read_table or read_svmlight, and fit the result",
        **CURES,
    }

    _misnamed: ClassVar[Mapping[str, str]] = {
        "metric": "metric is called measure here: write measure='nDCG@10'",
        "normalise": "normalise is spelled normalize here, as in normalize='zscore'",
        **dict.fromkeys(
            ("alpha", "reg_lambda", "lambda_", "l2_regularization"),
            "the regularization strength is called lam here, as in LargeMarginRanker(lam=0.1)",
        ),
        **CURES,
    }

    _allow_nan: ClassVar[bool] = False
    """Whether the model itself takes NaN, and categories as codes."""

    _linear_in_gains: ClassVar[bool] = False
    """Whether what is trained is linear in the gains of documents, so that estimates from clicks do."""

    measure: Any
    normalize: Any = None
    normalize_: str | None
    missing: Any = "error"
    n_queries_: int
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    def fit(
        self,
        X: AnyRows,
        y: Values | None = None,
        *,
        qid: Ids | None = None,
        group: Sizes | None = None,
        query_weight: Weights | None = None,
        attributes: Attributes | None = None,
        eval_set: EvalSet | None = None,
        eval_qid: EvalIds | None = None,
        eval_group: EvalSizes | None = None,
        eval_attributes: Attributes | None = None,
        eval_X: AnyRows | None = None,
        eval_y: Values | None = None,
        gains: Values | None = None,
        propensities: PositionBias | None = None,
        estimator: EstimatorName = "ips",
    ) -> Self:
        """Learn from the features X and the grades y (N,) of the documents, or from clicks.

        query_weight: one weight a query, a mapping from query id or an array (m,) in order of first appearance; a
        pandas Series is a mapping if its index has the query ids, else an array. All other Series count by position;
        a DataError says if their index is that of X in another order.
        attributes: what constraints speak of, one value a row: a data frame, a structured array (cross-validation cuts
        both by rows), or a mapping from name to (N,) values.
        eval_set: `(X, y)` or `Queries` of other queries; rankers that choose something choose it there. Its queries are
        named by `eval_qid` or `eval_group` as above. A list of one such is taken too, `eval_set=[(X, y)]` with
        `eval_group=[sizes]`, as LightGBM, XGBoost and PyTerrier pass it; of several data sets it would not be clear
        which is chosen on (XGBoost takes the last, LightGBM heeds all).
        eval_X, eval_y: the same apart, `eval_set=(eval_X, eval_y)`, as LightGBM 4.7 takes them too: what a Pipeline
        with `transform_input=["eval_X"]` can transform. Raises DataError for data that cannot be used.
        propensities, estimator: of a `rankopt.clicks.ClickLog` X (or eval_set), which becomes its `gains`; its queries
        weigh as many sessions as they have. gains: such estimates (N,), of any sign, in place of y. The trained measure
        is then linear in the gains: DCG@10 where `measure` is the default, DCG@k, P@k.
        A fit that fails leaves the ranker as it was.
        """
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

    def _takes_gains(self) -> bool:
        return self._linear_in_gains

    def _content(self, queries: Queries) -> Sequence[str]:
        """The attributes that training depends on."""
        return self._attribute_names()

    def _attribute_names(self, constraints: Any = None) -> Sequence[str]:
        """The attributes that rankings depend on."""
        admissible = self._admissible(constraints)
        return () if admissible is None else admissible.attributes

    def _fit(self, queries: Queries, weights: Floats, evaluation: Queries | None) -> None:
        """Learn from queries with relevance, weights (m,) that are not normalized, and what to choose on."""
        raise NotImplementedError(f"{type(self).__name__} cannot be fitted because it has no `_fit`; write one.")

    def predict(self, X: AnyRows, *, qid: Ids | None = None, group: Sizes | None = None) -> Floats:
        """Return the scores (N,) of the documents in the order of the rows.

        qid and group matter only to a ranker with `normalize` or missing="indicator". Without them all rows are one
        query; such a ranker then warns above 300 rows, as `fit` does.
        """
        check_is_fitted(self)
        return self._scores(inputs.read_rows(self, X, qid=qid, group=group))

    def score(
        self,
        X: AnyRows,
        y: Values | None = None,
        *,
        qid: Ids | None = None,
        group: Sizes | None = None,
        sample_weight: Values | None = None,
        attributes: Attributes | None = None,
        constraints: Admissible | None = None,
        gains: Values | None = None,
    ) -> float:
        """Return the mean of `measure` over the queries on which it is defined.

        The convention is the default of `rankopt.measures.evaluate`: the mean over all orders of documents of equal
        score. Under constraints the lists are those of `rank`, of at most k documents: positions behind the end of a
        list are empty, and the other documents count as not retrieved, as in trec_eval (for AUC: tied, last).
        constraints=None applies those of the ranker; `Admissible(k)` without constraints evaluates the k documents of
        highest score. The mean is over the orders of documents of equal score here too: of each order, the best list.
        It is exact for measures with position weights (nDCG, P, ...) where the constraints do not distinguish these
        documents, else over random orders, with a `TiedDocumentsWarning` that gives the standard error.

        sample_weight: one weight per row, equal within a query. gains: instead of y, as in `fit`. Raises DataError if
        the ranker was fitted on several queries and the queries of the rows are not passed.
        """
        passed = self._passed(X, y, constraints, qid=qid, group=group, attributes=attributes, gains=gains)
        check_same_index(X=X, sample_weight=sample_weight)
        weights = inputs.weights_of_rows(passed, sample_weight)
        return self._mean(inputs.normalized(self, passed.grouped()), weights, constraints)

    def evaluate(
        self,
        X: AnyRows,
        y: Values | None = None,
        *,
        qid: Ids | None = None,
        group: Sizes | None = None,
        attributes: Attributes | None = None,
        constraints: Admissible | None = None,
        measures: Measures | None = None,
        convention: str | Convention = "default",
        cut_to: Evaluation | None = None,
        gains: Values | None = None,
    ) -> Evaluation:
        """Return the values of each query, of which `score` is the mean: the argument of `compare`.

        measures: one or several, by default the measure of the ranker. gains: as in `score`. cut_to: an evaluation of
        the same queries; each list is cut to its length there. What a quota costs a ranker, in lists of one length, is

            under = ranker.evaluate(test, constraints=rules)
            compare(under, ranker.evaluate(test, constraints=Admissible(rules.k), cut_to=under))
        """
        passed = self._passed(X, y, constraints, qid=qid, group=group, attributes=attributes, gains=gains)
        check_type("cut_to", cut_to, Evaluation, type(None), error=OptionError, cure="Pass what `evaluate` returns.")
        return self._evaluation(inputs.normalized(self, passed.grouped()), constraints, measures, convention, cut_to)

    def _passed(self, X: Any, y: Any, constraints: Any, *, attributes: Any, **ways: Any) -> Queries:
        """The queries that the fitted ranker is evaluated on, before it normalizes them."""
        check_is_fitted(self)
        inputs.check_queries_named(self, X, ways["qid"], ways["group"])
        attributes = self._attributes_of(X, attributes, constraints)
        return inputs.as_queries(self, X, y, attributes=attributes, **ways, reset=False)

    def _mean(self, queries: Queries, weights: Floats, constraints: Any) -> float:
        """The score: a mean over the queries with weights (m,)."""
        return self._evaluation(queries, constraints).mean(weights=weights)

    def _evaluation(
        self,
        queries: Queries,
        constraints: Any,
        measures: Any = None,
        convention: str | Convention = "default",
        cut_to: Evaluation | None = None,
    ) -> Evaluation:
        chosen = inputs.measure_for(self, queries) if measures is None else measures
        shown = self._deployment(queries, constraints)
        return shown.evaluate(self._scores(queries.features), chosen, convention, cut_to)

    @overload
    def rank(
        self,
        X: PlainRows,
        qid: None = None,
        k: int | None = None,
        *,
        group: None = None,
        attributes: Attributes | None = None,
        constraints: Admissible | None = None,
    ) -> NDArray[Any]: ...

    @overload
    def rank(
        self,
        X: AnyRows,
        qid: Ids | None = None,
        k: int | None = None,
        *,
        group: Sizes | None = None,
        attributes: Attributes | None = None,
        constraints: Admissible | None = None,
    ) -> NDArray[Any] | dict[Hashable, NDArray[Any]]: ...

    def rank(
        self,
        X: AnyRows,
        qid: Ids | None = None,
        k: int | None = None,
        *,
        group: Sizes | None = None,
        attributes: Attributes | None = None,
        constraints: Admissible | None = None,
    ) -> NDArray[Any] | dict[Hashable, NDArray[Any]]:
        """Return the documents of each query, best first: row indices of X, or document ids of `Queries` with ids.

        One query gives an array, several a dict from query id to array. `k` truncates each ranking. Documents of equal
        score are ordered by document id, descending as text (as in trec_eval); without ids by a hash of their features.
        So the order of rows has no effect, but among rows of equal features.

        Under constraints (default: those of the ranker) the result is the admissible ranking that maximizes
        Σ_i c_i s_π(i). c are the position weights of training if they are positive and strictly decreasing, else
        1 / log2(i + 1). If all limits are on nested or disjoint sets of documents, as in Π(B, k), one greedy pass by
        score is exact [ORM, section 7.1].
        """
        check_is_fitted(self)
        if k is not None and k not in COUNT:
            raise DataError(f"k must be an integer >= 1 or None; got {k}. Pass None for all documents.")
        if isinstance(qid, int | np.integer):
            raise DataError(f"qid is one id a row; got {qid}. If that is the number of documents, pass k={qid}.")
        admissible = self._admissible(constraints)
        if k is not None and admissible is not None and k > admissible.k:
            raise OptionError(
                f"k must be at most {admissible.k}, the positions of {admissible!r}; got {k}. State constraints "
                f"of {k} positions (Admissible({k}) has none), or lower k."
            )
        attributes = self._attributes_of(X, attributes, constraints)
        queries = inputs.read_queries(self, X, qid=qid, group=group, attributes=attributes, reset=False, labels=False)
        length = None if k is None else int(k)
        shown = zip(queries.query_ids, self._ranked(queries, admissible), strict=True)
        ranked = {query: documents[:length] for query, documents in shown}
        return ranked if len(ranked) > 1 else next(iter(ranked.values()))

    def _ranked(self, queries: Queries, constraints: Any) -> Iterable[NDArray[Any]]:
        """The documents that `rank` returns of each query."""
        documents, bounds = inputs.documents_of(queries), pairwise(queries.offsets.tolist())
        orders = self._deployment(queries, constraints).orders(self._scores(queries.features))
        return (documents[low:high][order] for (low, high), order in zip(bounds, orders, strict=True))

    def _scores(self, features: Any) -> Floats:
        """The scores (N,) of documents with these features (N, d), as `read_features` gives them."""
        raise NotImplementedError(f"{type(self).__name__} cannot score because it has no `_scores`; write one.")

    def _admissible(self, constraints: Any = None) -> Admissible | None:
        """The constraints in effect: the argument, else those of the ranker. Raises OptionError for another type."""
        chosen = getattr(self, "constraints", None) if constraints is None else constraints
        if not isinstance(chosen, Admissible | None):
            raise OptionError(
                f"constraints cannot be a {type(chosen).__name__}; state them as Admissible(k).at_most(...)"
            )
        return chosen

    def _attributes_of(self, X: Any, attributes: Any, constraints: Any) -> Any:
        """The attributes passed; without them those of the constraints that are columns of a frame X, not features."""
        names, known = self._attribute_names(constraints), column_names(X)
        if attributes is not None or not names or known is None or isinstance(X, Queries):
            return attributes
        features = {*getattr(self, "feature_names_in_", ())}
        return {name: X[name] for name in names if name in known and name not in features} or None

    def _deployment(self, queries: Queries, constraints: Any = None) -> Deployment:
        """The rule that ranks the documents of these queries from their scores."""
        return Deployment.from_queries(queries, self._admissible(constraints))

    def bound_tightness(
        self,
        X: AnyRows,
        y: Values | None = None,
        *,
        qid: Ids | None = None,
        group: Sizes | None = None,
        attributes: Attributes | None = None,
        constraints: Admissible | None = None,
        measure: AnyMeasure | None = None,
        position_weights: AnyPositionWeights | None = None,
        feature_map: AnyMap | None = None,
    ) -> Tightness:
        """Return the regret and its bounds for each query that has something to order, as a table.

        The bounds are the convex, the tie-aware and the nonconvex one, and the trained one if it is another. measure,
        position_weights and feature_map default to those of the ranker, else to "nDCG", "power(0.5)" and "positional".
        Under constraints (default: those of the ranker) regret is measured from the best admissible ranking. For a mix
        of measures, `parts` has a table for each part.

        Raises OptionError for a measure whose regret the feature map cannot bound. Data are passed as to `score`.
        """
        passed = self._passed(X, y, constraints, qid=qid, group=group, attributes=attributes)
        queries = inputs.normalized(self, passed.grouped())
        if queries.has_gains:
            measure = inputs.measure_for(self, queries) if measure is None else linear_in_gains(measure)
        parsed = parse(getattr(self, "measure", "nDCG") if measure is None else measure)
        if not isinstance(parsed, MeasureMix) or self._admissible(constraints) is not None:
            return self._tight(self._judged(queries, constraints, measure, position_weights, feature_map))
        own, parts = self._regret(parsed, position_weights, feature_map), list[tuple[float, str, Tightness]]()
        for (weight, regret), part in zip(own.parts, parsed.parts, strict=True):
            judged = regret_of_rankings(as_arranged(queries), self._scores(queries.features), regret)
            parts.append((weight, str(replace(part, weight=1.0)), self._tight(judged)))
        return of_parts(str(parsed), parts, queries.query_ids, parsed.slack == "shared")

    def _tight(self, judged: RegretReport) -> Tightness:
        trained = self._trained_bound()
        bounds: dict[str, Bound] = {name: get_bound(name) for name in BOUNDS}
        name = "nonconvex"
        if trained is not None:
            alike = [known for known, bound in bounds.items() if bound == trained]
            name = alike[0] if alike else f"trained ({type(trained).__name__})"
            bounds.setdefault(name, trained)
        values, growth = bounds_at(judged.argmax, judged.scores, bounds)
        chosen = judged.queries
        return Tightness(
            measure=judged.measure,
            position_weights=judged.position_weights,
            feature_map=judged.feature_map,
            trained=name,
            own=trained is not None,
            lam=hasattr(self, "lam"),
            query=chosen.query_ids,
            documents=np.diff(chosen.offsets),
            regret=judged.regret,
            expected=judged.expected,
            bounds=values,
            max_regret=max_regret_of(judged.argmax),
            growth=growth[[*bounds].index(name)],
            linear=hasattr(self, "coef_"),
        )

    def sensitivity(
        self,
        constraint: str,
        limits: Iterable[float],
        X: AnyRows,
        *,
        qid: Ids | None = None,
        group: Sizes | None = None,
        attributes: Attributes | None = None,
        constraints: Admissible | None = None,
        side: Side | None = None,
    ) -> SensitivityCurve:
        """Return the loss of score caused by one constraint over these queries, for each value in `limits`.

        This is `Admissible.sensitivity` with the scores of the ranker and the position weights of `rank`, which the
        first line of the table shows. constraints defaults to those of the ranker."""
        check_is_fitted(self)
        admissible = self._admissible(constraints)
        if admissible is None:
            raise OptionError(f"sensitivity needs constraints; {self._unlimited}")
        attributes = self._attributes_of(X, attributes, constraints)
        queries = inputs.read_queries(self, X, qid=qid, group=group, attributes=attributes, reset=False, labels=False)
        deployment = self._deployment(queries, Admissible(admissible.k))  # of which no query has too few
        scores = np.asarray(self._scores(queries.features), dtype=np.float64)
        return rule_sensitivity(
            admissible, constraint, limits, queries, scores, deployment.weights, side, deployment.solver
        )

    def _judged(
        self, queries: Queries, constraints: Any, measure: Any, position_weights: Any, feature_map: Any
    ) -> RegretReport:
        """The queries with something to order, their argmax, and the regret of what is shown."""
        admissible = self._admissible(constraints)
        regret = self._regret(measure, position_weights, feature_map)
        arranged = as_arranged(queries)
        scores = self._scores(queries.features)
        if admissible is None:
            return regret_of_rankings(arranged, scores, regret)
        w0 = getattr(self, "w0_", None)
        start = np.zeros(scores.size) if w0 is None else linear_scores(queries.features, w0)
        shown = self._deployment(queries, admissible)
        return regret_in_set(arranged, scores, regret.measure, regret.position_weights, admissible, shown, start)

    def _regret(self, measure: Any, position_weights: Any, feature_map: Any) -> RegretBound:
        """The argument, or this ranker's own setting."""
        measure = self.measure if measure is None else measure
        feature_map = getattr(self, "feature_map", MAP) if feature_map is None else feature_map
        if position_weights is None:
            position_weights = getattr(self, "position_weights", POSITION_WEIGHTS)
        return RegretBound.named(measure, feature_map, "nonconvex", position_weights)

    def _trained_bound(self) -> Bound | None:
        """The bound of the regret that was trained, if one was."""
        bound = getattr(self, "bound", None)
        return None if bound is None else get_bound(bound)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted ranker to a file of data only, to be read by `rankopt.rankers.load_model`."""
        save_model(self, path)

    def _check_loaded(self) -> None:
        """Raise ModelError where what was read from a file does not fit together, or cannot be used."""
        for name in ("n_features_in_", "n_queries_"):
            if not hasattr(self, name):
                raise ModelError(f"{name} is missing.")
            if type(getattr(self, name)) is not int:
                raise ModelError(f"{name} is not an integer.")
        self._check_learned()
        d = self.n_features_in_
        names = getattr(self, "feature_names_in_", np.empty(max(d, 0), dtype=object))
        if not isinstance(names, np.ndarray) or names.shape != (d,) or names.dtype != object:
            raise ModelError(f"feature_names_in_ does not name {d} features.")
        columns = getattr(self, "columns_", {})
        if not (isinstance(columns, dict) and all(isinstance(one, str) for one in columns.values())):
            raise ModelError("columns_ does not name columns.")
        try:
            self._check_params()
        except (RankoptError, TypeError, ValueError, OverflowError) as error:
            raise ModelError(f"a parameter has a value that cannot work ({error}).") from error

    def _check_params(self) -> None:
        """Raise an error for parameters that a fitted ranker could not be used with."""
        inputs.check_normalize(self.normalize)
        if getattr(self, "normalize_", None) not in (None, *METHODS):
            raise OptionError(f"normalize_ is {self.normalize_!r:.80}")
        check("missing", self.missing, ("error", "indicator"))
        measure = getattr(self, "measure", "nDCG")
        if isinstance(measure, str) and len(measure) > NOTATION:
            raise OptionError(f"the notation of a measure has {len(measure)} characters")
        parse(measure)
        self._admissible()

    def _check_learned(self) -> None:
        """Raise ModelError where what `_scores` uses is not what `fit` leaves."""

    def _check_storable(self) -> None:
        """Raise ModelError, with the cure, where what was learned is no data."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.positive_only = True  # grades: 0 is irrelevant, less has no meaning
        tags.input_tags.sparse = self.normalize is None or str(self.normalize) in ("sum", "auto")
        tags.input_tags.allow_nan = takes_missing(self, fitted=False)
        return tags
