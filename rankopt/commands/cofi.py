"""`rankopt cofi`: train on ratings, compare with baselines on held-out ratings, report the cost of a quota.
`rankopt recommend`: the best items for users, by such a model."""

from __future__ import annotations

import re
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from rankopt.commands.input_output import as_given, as_json, table, write_output, write_report
from rankopt.commands.options import (
    Command,
    EstimatorCommand,
    OutputPath,
    cures_as_options,
    given_options,
    json_option,
    rating_options,
    report_option,
)
from rankopt.errors import DataError, OptionError

if TYPE_CHECKING:
    from formulations.solving.sensitivity import SensitivityCurve
    from rankopt.rankers import CofiRanker
    from rankopt.ratings import Ratings
    from rankopt.ratings.evaluation import RatingsEvaluation
    from rankopt.ratings.splits import Split

USERS = 25  # number of users, evenly spaced, for whom the cost of a quota is computed


@click.command(cls=EstimatorCommand, estimator="CofiRanker", without=("checkpoint", "every"))
@click.argument("train_file", metavar="[TRAIN]", required=False, type=click.Path(exists=True))
@rating_options
@click.option("--test", "test_file", type=click.Path(exists=True), help="Test ratings.")
@click.option(
    "--test-per-user", type=click.IntRange(1), metavar="N",
    help="Instead of --test: N ratings of every user to test, the others to train, drawn by --random-state.",
)  # fmt: skip
@click.option(
    "--train-per-user", type=click.IntRange(1), metavar="N",
    help="Instead of --test: N ratings of every user to train, the others to test (weak generalization).",
)  # fmt: skip
@click.option("--items", "items_file", type=click.Path(exists=True), help="Titles and genres: u.item, movies.dat.")
@click.option("--model", type=OutputPath(), help="File of the model.")
@click.option("--quota-attribute", "by", help="Item attribute for the cost of a quota in the report [genre].")
@report_option
@json_option
def cofi(
    train_file: str | None,
    test_file: str | None,
    test_per_user: int | None,
    train_per_user: int | None,
    items_file: str | None,
    model: str | None,
    by: str | None,
    report: str | None,
    json_: bool,
    user: str | None,
    item: str | None,
    rating: str | None,
    **_options: Any,
) -> None:
    """Learn factors of users and items from the ratings in TRAIN.

    \b
    rankopt cofi ratings.csv --user customer_id --item sku --rating stars --test-per-user 5

    TRAIN is u.data, ratings.dat, a CSV with a header, parquet, or a folder of MovieLens; by default a bundled synthetic
    sample.

    With --test, --test-per-user or --train-per-user every measure is printed next to item means and popularity, among
    the rated items and among all items: a method that is good on one is often bad on the other. Ctrl-C ends training,
    saves the best factors so far and exits with 130; while --reg is chosen there are none, and nothing is saved.
    """
    parts = {"--test": test_file, "--test-per-user": test_per_user, "--train-per-user": train_per_user}
    chosen = [option for option, value in parts.items() if value is not None]
    if len(chosen) > 1:
        raise click.UsageError(f"{' and '.join(chosen)} exclude each other; give one of them")
    columns = {"user": user, "item": item, "rating": rating}
    named = {f"--{role}": name for role, name in columns.items()}
    for option, value in (("--test", test_file), ("--items", items_file), *named.items()):
        if train_file is None and value is not None:
            raise click.UsageError(f"{option} needs the file TRAIN and cannot be used with the sample; give TRAIN too")
    if by is not None and report is None:
        raise click.UsageError("--quota-attribute needs --report FILE, which shows the cost")
    from rankopt.rankers import CofiRanker
    from rankopt.ratings import given_split, leave_out_split, load_ratings_sample, weak_split

    options = given_options(click.get_current_context(), "CofiRanker")
    ranker = CofiRanker(**options, verbose=int(not json_))
    if train_file is None:
        ratings = load_ratings_sample()
        train_per_user = 10 if not chosen else train_per_user
    else:
        ratings = _read(train_file, items_file, columns)
    if by is not None and by not in ratings.attributes:
        known = ", ".join(ratings.attributes) or "none; name a file of them by --items"
        raise OptionError(f"--quota-attribute must be an attribute of the items ({known}); got {by!r}.")
    by = "genre" if by is None else by
    split = None
    if test_file is not None:
        split = given_split(ratings, _read(test_file, items_file, columns))
    elif train_per_user is not None:
        split = weak_split(ratings, train_per_user, options.get("random_state", 0))
    elif test_per_user is not None:
        split = leave_out_split(ratings, test_per_user, options.get("random_state", 0))
    began = perf_counter()
    ranker = _fit(ranker, ratings if split is None else split.train)
    seconds = perf_counter() - began
    if model is not None:
        ranker.save(model)
    accuracy = [] if split is None else _accuracy(ranker, split, str(ranker.measure))
    prices = _quota_sensitivity(ranker, by) if report is not None else None
    parted = "" if split is None or test_file is not None else _split_text(ratings, split)
    _print_result(ranker, accuracy, seconds, model, parted, json_)
    if report is not None:
        from rankopt.report.cofi_page import page_of_cofi

        name = "A made-up sample" if train_file is None else Path(train_file).name
        name = f"{name}: {ratings}{parted and '. '}{parted}"
        write_report(report, page_of_cofi(ranker, accuracy, prices, by, name, as_given()))
    if ranker.certificate_.stop == "interrupted from the keyboard":
        raise KeyboardInterrupt  # with the exit code of one, when the best factors so far are saved and shown


def _read(path: str, items: str | None, columns: dict[str, str | None]) -> Ratings:
    """The ratings of a file. Prints which columns are used for what on standard error."""
    from rankopt.ratings.reading import rating_columns, read_ratings

    with cures_as_options():
        ratings, names = read_ratings(path, items=items, **columns), rating_columns(path, **columns)
    if names is not None:
        used = ", ".join(f"{role}: {name}" for role, name in zip(columns, names, strict=True))
        click.echo(f"read {path}; {used}", err=True)
    return ratings


def _fit(ranker: CofiRanker, ratings: Ratings) -> CofiRanker:
    """The fitted ranker. Prints each warning of how training ended once on standard error."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    from rankopt.errors import TrainingInterruptedWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.simplefilter("always", TrainingInterruptedWarning)
        try:
            return ranker.fit(ratings)
        except KeyboardInterrupt:
            click.echo("there are no factors yet, so nothing is saved; --reg NUMBER trains at once", err=True)
            raise
        finally:
            for text in dict.fromkeys(str(one.message) for one in caught):
                click.echo(text, err=True)


def _split_text(ratings: Ratings, split: Split) -> str:
    """A sentence on how many ratings train, test and are left out."""
    train, test = split.train.n_ratings, split.test.n_ratings
    left = ratings.n_ratings - train - test
    aside = f", {left} of users with too few are left out" if left else ""
    return (
        f"Of {ratings.n_ratings} ratings {train} train and {test} test{aside}: the model, which is what --model saves, "
        "its certificate and what a quota costs are of those that train"
    )


def _accuracy(ranker: CofiRanker, split: Split, measure: str) -> list[tuple[str, list[RatingsEvaluation]]]:
    """Accuracy of the ranker and the baselines, among rated items and among all items."""
    from rankopt.collaborative.encoded_ratings import unit_of_ratings
    from rankopt.collaborative.regularization import POPULARITY
    from rankopt.ratings import ItemMeanBaseline, PopularityBaseline, evaluate_ratings

    unit = unit_of_ratings(split.train.values)
    c = unit if ranker.loss == "regression" else 1.0  # scores of other losses have the unit 1
    rows = [
        (f"CofiRanker({ranker.loss})", ranker, 0.0),
        (f"CofiRanker({ranker.loss}) plus popularity ({c:g})", ranker, c),
        ("item mean shrunk by 5", ItemMeanBaseline().fit(split.train), 0.0),
        ("item mean shrunk by 10 plus popularity", ItemMeanBaseline(10.0, POPULARITY * unit).fit(split.train), 0.0),
        ("popularity", PopularityBaseline().fit(split.train), 0.0),
    ]
    return [
        (name, [evaluate_ratings(split, one, measure, candidates, popularity=c) for candidates in ("rated", "all")])
        for name, one, c in rows
    ]


def _quota_sensitivity(ranker: CofiRanker, by: str) -> SensitivityCurve | None:
    """The sensitivity curve of a quota on this attribute; None if items do not have it."""
    from rankopt.collaborative.recommendation import quota_sensitivity

    users = ranker.user_ids_[:: max(1, len(ranker.user_ids_) // USERS)].tolist()
    return quota_sensitivity(ranker, by, users) if by in ranker.item_attributes_ else None


def _print_result(
    ranker: CofiRanker, accuracy: list[tuple[str, list[RatingsEvaluation]]], seconds: float, model: str | None,
    parted: str, json_: bool,
) -> None:  # fmt: skip
    proved = ranker.certificate_
    if json_:
        as_json(
            {
                "model": model, "users": len(ranker.user_ids_), "items": len(ranker.item_ids_),
                "reg": ranker.reg_, "lam": ranker.lam_,
                "rounds": ranker.n_iter_, "seconds": seconds,
                "certificate": {
                    "kind": proved.kind, "objective": proved.primal, "users_gap": proved.users_gap,
                    "items_gap": proved.items_gap, "gap": proved.relative_gap, "stop": proved.ending,
                },
                "accuracy": [
                    {"ranker": name, "measure": repr(one.measure), "candidates": candidates, "mean": one.mean,
                     "standard_error": one.standard_error, "n_users": one.n_users, "protocol": one.protocol}
                    for name, found in accuracy for candidates, one in zip(("rated", "all"), found, strict=True)
                ],
            }
        )  # fmt: skip
        return
    learned = ranker.model_
    factors = f"{learned.used} of {learned.dimensions}" if learned.used < learned.dimensions else f"{learned.used}"
    table(
        [
            "users", "items", "factors", "λ / λ_max", "rounds", "seconds", "users' gap", "items' gap",
            "global gap",
        ],
        [
            [
                len(ranker.user_ids_), len(ranker.item_ids_), factors, f"{ranker.reg_:.3g}",
                ranker.n_iter_, f"{seconds:.1f}",
                f"{100 * proved.users_gap:.2g}%", f"{100 * proved.items_gap:.2g}%",
                f"{100 * proved.relative_gap:.2g}%" if proved.kind == "global" else "not known",
            ]
        ],
    )  # fmt: skip
    click.echo(f"\ntraining ended: {proved.ending}")
    if not learned.used:
        from rankopt.report.cofi_page import no_factors

        click.echo(no_factors(learned.dimensions))
    if accuracy:
        click.echo()
        rows = [[name, *(one.estimate for one in found)] for name, found in accuracy]
        table([repr(accuracy[0][1][0].measure), "rated items", "all items"], rows)
        click.echo(f"\n{accuracy[0][1][0].protocol}\n{accuracy[0][1][1].protocol}")
        click.echo("popularity (c): plus c log(1 + number of ratings), as in rankopt recommend --popularity c")
    if parted:
        click.echo(f"\n{parted}.")
    click.echo("the model is not saved; give --model FILE" if model is None else f"wrote {model}")


@click.command(cls=Command)
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.option("--users", multiple=True, metavar="ID", help="A user; repeatable.  [default: all]")
@click.option("--k", type=click.IntRange(1), default=10, show_default=True, help="Number of items per user.")
@click.option("--popularity", type=float, default=0.0, show_default=True,
              help="c of c log(1 + number of ratings), added to the score of an item.")  # fmt: skip
@click.option(
    "--output", type=OutputPath(dash=True), help="CSV or TSV file of the lists, - for standard output, not a table."
)
@json_option
def recommend(
    model: str, users: tuple[str, ...], k: int, popularity: float, output: str | None, json_: bool
) -> None:  # fmt: skip
    """Recommend to each user the best items that the user has not rated.

    \b
    rankopt recommend model.rankopt --users 17 --k 5

    MODEL is a model of `rankopt cofi --model`. Columns of the output: user, rank, item, score, and the title if known.
    """
    from rankopt.rankers import load_model

    if json_ and output is not None:
        raise click.UsageError("--json and --output exclude each other; give one of them")
    ranker = load_model(model)
    if not hasattr(ranker, "recommend"):
        raise click.UsageError(f"{model} ranks documents and recommends no items; use rankopt rank {model} DATA")
    is_number = ranker.user_ids_.dtype.kind in "iu"
    ids = [int(one) if is_number and re.fullmatch(r"-?\d{1,18}", one) else one for one in users]
    known = ranker.user_ids_.tolist()
    unknown = next((one for one in ids if one not in known), None)
    if unknown is not None:
        several = "repeat --users for several; " if "," in str(unknown) else ""
        raise DataError(
            f"{model} has no user {unknown!r}; {several}its {len(known)} users are {', '.join(map(str, known[:5]))} ..."
        )
    lists = ranker.recommend(ids or None, k, popularity=popularity).to_frame()
    titles = ranker.item_attributes_.get("title")
    if titles is not None:
        lists["title"] = lists["item"].map(dict(zip(ranker.item_ids_.tolist(), titles, strict=True)))
    if json_:
        as_json({"model": model, "recommendations": lists.to_dict("records")})
    elif output is not None:
        write_output(output, lists.to_csv(index=False, sep="\t" if output.endswith(".tsv") else ",").encode())
    else:
        lists["score"] = lists["score"].map("{:.4f}".format)
        table(list(lists.columns), lists.to_numpy().tolist())
