"""Learning to rank as optimization: exact argmax, certified bounds, any solver.

    data         queries with their documents: files, samples, normalization
    measures     nDCG@10 and other measures as values; conventions
    losses       upper bounds of the regret and other losses, as functions of the scores
    evaluation   evaluation of rankings; paired comparison
    constraints  sets of admissible rankings, defined over attributes of documents
    ratings      ratings of items by users: files, splits, evaluation
    sweeps       a measure as a step function along a line
    optimize     solvers that minimize a loss to a proven gap
    ascent       coordinate ascent on the measure
    collaborative  factors of users and items by block descent, with block bounds and a global bound
    explanations  score differences by feature, tightness of the bounds
    rankers      scikit-learn estimators: large margin, any loss, slots, RankSVM, least squares
    policies     stochastic rankings under limits on the exposure of groups
    decisions    costs of any optimization problem, trained on the regret of its decisions
    experimental algorithms of the papers without a measured benefit

>>> from rankopt import LargeMarginRanker, load_sample
>>> ranker = LargeMarginRanker("nDCG@10", bound="convex", lam=1.0).fit(load_sample("les-miserables").train)
>>> ranker.certificate_.relative_gap < 1e-3
True
"""

from typing import TYPE_CHECKING, Any

from formulations.registry import lazy, public_names

if TYPE_CHECKING:
    from rankopt.constraints import Admissible as Admissible
    from rankopt.data import Queries as Queries
    from rankopt.data import load_sample as load_sample
    from rankopt.data import read_svmlight as read_svmlight
    from rankopt.measures import compare as compare
    from rankopt.measures import evaluate as evaluate
    from rankopt.persistence.models import load_model as load_model
    from rankopt.rankers.large_margin import LargeMarginRanker as LargeMarginRanker
    from rankopt.rankers.linear import RegressionRanker as RegressionRanker
    from rankopt.rankers.loss import LossRanker as LossRanker
    from rankopt.rankers.loss import PairwiseRanker as PairwiseRanker
    from rankopt.rankers.matching import MatchingRanker as MatchingRanker

    __version__: str

FOLDERS = (
    "data", "scorers", "measures", "losses", "evaluation", "clicks", "ratings", "constraints", "sweeps", "risk",
    "engines", "optimize", "ascent", "collaborative", "persistence", "explanations", "rankers", "boosting", "policies",
    "decisions", "torch", "experiments", "report", "experimental", "commands",
)  # fmt: skip
"""The subpackages in import order: each imports only earlier ones, `errors` and `fitting`."""

FRONT = public_names(__name__)
"""Public names, `name: "module:object"`, loaded on first use."""

__all__ = [*FRONT]

if not TYPE_CHECKING:  # a type checker would accept any misspelled name
    _find, __dir__ = lazy(__name__, FRONT)

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from importlib.metadata import version

            return version("rankopt")
        return _find(name)
