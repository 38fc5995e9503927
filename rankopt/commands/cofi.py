"""`rankopt cofi`: train on ratings, compare with baselines on held-out ratings, report the cost of a quota.
`rankopt recommend`: the best items for users, by such a model."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import click

from rankopt.commands import options as common
from rankopt.commands.input_output import as_given, as_json, printed_warnings, table, write_output, write_report
from rankopt.errors import DataError, OptionError

if TYPE_CHECKING:
    from formulations.solving.sensitivity import SensitivityCurve
    from rankopt.collaborative.recommendation import KnownModel
    from rankopt.evaluation import Comparison
    from rankopt.rankers import CofiRanker
    from rankopt.ratings import Ratings
    from rankopt.ratings.evaluation import RatingsEvaluation
    from rankopt.ratings.splits import Split

USERS = 25  # number of users, evenly spaced in the order of ids, for whom the cost of a quota is computed


@click.command(cls=common.EstimatorCommand, estimator="CofiRanker", without=("checkpoint", "every"))
@click.argument("train_file", metavar="[TRAIN]", required=False, type=common.EXISTING)
@common.rating_options
@click.option("--test", "test_file", type=common.EXISTING, help="Test ratings.")
@click.option(
    "--test-per-user", type=click.IntRange(1), metavar="N",
    help="Instead of --test: N ratings of every user to test, the others to train, drawn by --random-state.",
)  # fmt: skip
@click.option(
    "--train-per-user", type=click.IntRange(1), metavar="N",
    help="Instead of --test: N ratings of every user to train, the others to test (weak generalization).",
)  # fmt: skip
@click.option("--items", "items_file", type=common.EXISTING, help="Attributes of items: CSV with a header, u.item.")
@click.option("--model", type=common.OutputPath(), help="File of the model, which is trained on all ratings of TRAIN.")
@click.option("--quota-attribute", "by", help="Item attribute for the cost of a quota in the report.  [default: genre]")
@common.report_option
@common.json_option
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
    the rated items and among all items: a method that is good on one is often bad on the other. The file of --model
    has a second model, trained on all ratings of TRAIN. Ctrl-C ends training, saves the best factors so far and exits
    with 130; while --reg is chosen there are none, and nothing is saved.
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

    options = common.given_options(click.get_current_context(), "CofiRanker")
    ranker = CofiRanker(**options, verbose=int(not json_))
    if train_file is None:
        ratings = load_ratings_sample()
        train_per_user = 10 if not chosen else train_per_user
    else:
        ratings = _read(train_file, items_file, columns)
    if by is not None and by not in ratings.attributes:
        known = ", ".join(ratings.attributes) or "none; name a file of them by --items"
        raise OptionError(f"--quota-attribute must be an attribute of the items ({known}); got {by!r}.")
    if by is None:
        others = [name for name in ratings.attributes if name != "title"]
        by = others[0] if len(others) == 1 else "genre"
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
    parted = "" if split is None or test_file is not None else _split_text(ratings, split, train_per_user)
    interrupted = ranker.certificate_.stop == "interrupted from the keyboard"
    accuracy = [] if split is None else _accuracy(ranker, split, str(ranker.measure))
    compared = _compare(ranker, accuracy)
    prices, sampled = _quota_sensitivity(ranker, by) if report is not None else (None, "")
    _print_result(ranker, accuracy, compared, seconds, model, parted, json_)
    if model is None:
        saved = "the model is not saved; give --model FILE"
    elif parted and not interrupted:
        from sklearn.base import clone

        again: CofiRanker = clone(ranker)  # with the regularization that was chosen on a part of the ratings
        again = _fit(again if again.lam is not None else again.set_params(reg=ranker.reg_), ratings)
        again.save(model)
        interrupted = again.certificate_.stop == "interrupted from the keyboard"
        strength = f"--reg {ranker.reg_:.3g}" if ranker.lam is None else f"--lam {ranker.lam_:.3g}"
        saved = f"wrote {model}: trained again on all {ratings.n_ratings} ratings, with {strength}"
        saved += "; interrupted" if interrupted else ""
    else:
        ranker.save(model)
        saved = f"wrote {model}"
        if split is not None:
            saved += f": of the {split.train.n_ratings} training ratings alone; its lists may have items of the test"
    if not json_:
        click.echo(saved)
        if model is not None:
            click.echo(_recommend_line(model, accuracy))
    if report is not None:
        from rankopt.report.cofi_page import page_of_cofi

        name = "A made-up sample" if train_file is None else Path(train_file).name
        name = f"{name}: {ratings}{parted and '. '}{parted}"
        rows = [[*row[:2], *_cells(row[2]), row[3]] for row in compared]
        write_report(report, page_of_cofi(ranker, accuracy, prices, by, name, as_given(), rows, sampled))
    if interrupted:
        raise KeyboardInterrupt  # with the exit code of one, when the best factors so far are saved and shown


def _read(path: str, items: str | None, columns: dict[str, str | None]) -> Ratings:
    """The ratings of a file. Prints which columns are used for what on standard error."""
    from rankopt.ratings.reading import rating_columns, read_ratings

    with common.cures_as_options(), printed_warnings():
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


def _users_in(bounds: Any) -> int:
    return int((bounds[1:] > bounds[:-1]).sum())


def _split_text(ratings: Ratings, split: Split, n: int | None) -> str:
    """How many ratings train, test and are left out. n: ratings of each user to train, of a weak split."""
    from rankopt.ratings.splits import TESTED

    train, test = split.train.n_ratings, split.test.n_ratings
    left = ratings.n_ratings - train - test
    text = f"{train} of the {ratings.n_ratings} ratings train and {test} test the model that is measured here"
    if left and n is not None:
        few = _users_in(ratings.bounds) - _users_in(split.train.bounds)
        text += (
            f"; the other {left} are of users with fewer than {n + TESTED} ratings ({n} to train and {TESTED} to test; "
            f"{few} of {_users_in(ratings.bounds)} users), who take no part"
        )
    return f"{text}. The model that --model saves is trained on all {ratings.n_ratings}"


def _accuracy(ranker: CofiRanker, split: Split, measure: str) -> list[tuple[str, list[RatingsEvaluation]]]:
    """Accuracy of the ranker and the baselines, among rated items and among all items."""
    from rankopt.collaborative.encoded_ratings import unit_of_ratings
    from rankopt.collaborative.regularization import POPULARITY
    from rankopt.ratings import ItemMeanBaseline, PopularityBaseline, evaluate_ratings

    unit = unit_of_ratings(split.train.values)
    c = unit if ranker.loss == "regression" else 1.0  # scores of other losses have the unit 1
    means = ItemMeanBaseline().fit(split.train)
    rows = [
        (f"CofiRanker({ranker.loss})", ranker, 0.0),
        (f"CofiRanker({ranker.loss}) plus popularity ({c:g})", ranker, c),
        ("item mean shrunk by 5", means, 0.0),
        (f"item mean shrunk by 5 plus popularity ({POPULARITY * unit:g})", means, POPULARITY * unit),
        (f"item mean shrunk by 5 plus popularity ({unit:g})", means, unit),
        ("popularity", PopularityBaseline().fit(split.train), 0.0),
    ]
    return [
        (name, [evaluate_ratings(split, one, measure, candidates, popularity=c) for candidates in ("rated", "all")])
        for name, one, c in rows
    ]


def _compare(
    ranker: CofiRanker, accuracy: list[tuple[str, list[RatingsEvaluation]]]
) -> list[tuple[str, str, Comparison, str]]:
    """Paired tests of the better list of the ranker with the best baseline, among rated and among all items: what is
    compared, candidates, test, and a sentence with advice if the ranker is not ahead."""
    from rankopt.evaluation import compare

    found = []
    for column, among in enumerate(("rated items", "all items") if accuracy and accuracy[0][1][0].n_users > 1 else ()):
        rows = [(every[column].mean, name, every[column]) for name, every in accuracy]
        (_, name, own), (_, baseline, theirs) = max(rows[:2]), max(rows[2:])
        test = compare(own, theirs, test="t", resamples=1000)
        sentence = ""
        if test.interval[0] <= 0:
            how = "is behind" if test.difference < 0 else "is not significantly ahead of"
            unsure = ", not significantly" if test.difference < 0 <= test.interval[1] else ""
            other = "Try --popularity-prior 0 or another --loss"
            if ranker.unrated_weight:
                other = "Keep --unrated-weight for lists; to order rated items omit it"
            advice = f"Use {baseline}" if column else f"{other}, or use rankopt.ratings.ItemMeanBaseline"
            size = f"difference {test.difference:+.4f}, {_p(test)}"
            sentence = f"Among {among}, {name} {how} {baseline}{unsure} ({size}). {advice}."
        found.append((f"{name} - {baseline}", among, test, sentence))
    return found


def _p(test: Comparison) -> str:
    return "p < .001" if test.p < 0.001 else f"p = {test.p:.3f}".replace("0.", ".")


def _cells(test: Comparison) -> list[str]:
    return [f"{test.difference:+.4f}", "{:+.4f} to {:+.4f}".format(*test.interval), _p(test)]


def _quota_sensitivity(ranker: CofiRanker, by: str) -> tuple[SensitivityCurve | None, str]:
    """The sensitivity curve of a quota on this attribute, None if items do not have it, and for whom it is."""
    import numpy as np

    from rankopt.collaborative.recommendation import quota_sensitivity

    trained = ranker.user_ids_[np.diff(ranker.seen_indptr_) > 0]
    chosen = trained[np.unique(np.linspace(0, trained.size - 1, USERS).round().astype(int))].tolist()
    sampled = f"{len(chosen)} of the {trained.size} users who train, evenly spaced in the order of their ids,"
    return (quota_sensitivity(ranker, by, chosen) if by in ranker.item_attributes_ else None), sampled


def _print_result(
    ranker: CofiRanker, accuracy: list[tuple[str, list[RatingsEvaluation]]],
    compared: list[tuple[str, str, Comparison, str]], seconds: float, model: str | None, parted: str, json_: bool,
) -> None:  # fmt: skip
    proved, n_users = ranker.certificate_, _users_in(ranker.seen_indptr_)
    if json_:
        as_json(
            {
                "model": model, "users": n_users, "items": len(ranker.item_ids_),
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
                "paired": [
                    {"rankers": names, "candidates": among, "difference": test.difference, "interval": test.interval,
                     "confidence": test.confidence, "p": test.p} for names, among, test, _ in compared
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
                n_users, len(ranker.item_ids_), factors, f"{ranker.reg_:.3g}",
                ranker.n_iter_, f"{seconds:.1f}",
                f"{100 * proved.users_gap:.2g}%", f"{100 * proved.items_gap:.2g}%",
                f"{100 * proved.relative_gap:.2g}%" if proved.kind == "global" else "not known",
            ]
        ],
    )  # fmt: skip
    click.echo(f"\ntraining ended: {proved.ending}")
    from rankopt.report.cofi_page import advice_on_lists, no_factors

    if not learned.used:
        click.echo(no_factors(learned.dimensions))
    if accuracy:
        click.echo()
        rows = [[name, *(one.estimate for one in found)] for name, found in accuracy]
        table([repr(accuracy[0][1][0].measure), "rated items", "all items"], rows)
        click.echo(f"\n{accuracy[0][1][0].protocol}\n{accuracy[0][1][1].protocol}")
        click.echo("popularity (c): plus c log(1 + number of ratings), as in rankopt recommend --popularity c")
    if compared:
        click.echo()
        head = ["paired by user", "candidates", "difference", "95% interval", "p (t test)"]
        table(head, [[*row[:2], *_cells(row[2])] for row in compared])
        for *_, sentence in compared:
            if sentence:
                click.echo(f"\n{sentence}")
    click.echo(f"\n{advice}" if (advice := advice_on_lists(ranker)) else "", nl=bool(advice))
    if parted:
        click.echo(f"\n{parted}.")


def _recommend_line(model: str, accuracy: list[tuple[str, list[RatingsEvaluation]]]) -> str:
    """The command that lists items, with the weight of popularity that was better among all items."""
    command = f"rankopt recommend {shlex.quote(model)}"
    if not accuracy:
        return f"lists of items: {command}"
    alone, plus = (found[1].mean for _, found in accuracy[:2])
    c = accuracy[1][0].rpartition("(")[2].removesuffix(")")
    if plus <= alone:
        return f"lists of items: {command} (among all items {alone:.4f}, and {plus:.4f} with --popularity {c})"
    return f"lists of items: {command} --popularity {c} (among all items {plus:.4f}, and {alone:.4f} without)"


@click.command(cls=common.Command)
@click.argument("model", type=common.FILE)
@click.option("--users", multiple=True, metavar="ID", help="A user; repeatable.  [default: all]")
@click.option("--ratings", "ratings_file", type=common.FILE,
              help="Ratings of new users, who get the lists.")  # fmt: skip
@click.option("--reg", type=float, help="Regularization of the users of --ratings, relative as in training.")
@common.rating_options
@click.option("--items", "items_file", type=common.EXISTING, help="Attributes of items: CSV with a header.")
@click.option("--k", type=click.IntRange(1), default=10, help="Number of items per user.")
@click.option("--popularity", type=float, default=0.0,
              help="c of c log(1 + number of ratings), added to the score of an item.")  # fmt: skip
@click.option("--at-most", multiple=True, metavar="N:ATTR", help="3:seller: at most three items of each seller.")
@click.option("--at-least", multiple=True, metavar="N:ATTR", help="2:brand=own: two items of the brand own.")
@click.option(
    "--exactly", multiple=True, metavar="N:ATTR", help="1:brand=own@1: the first (of @5: the first 5) is of brand own."
)
@click.option("--never", multiple=True, metavar="ITEM", help="An item that is in no list; repeatable.")
@click.option("--on-infeasible", type=click.Choice(["error", "truncate"]), default="error",
              help="For a user without an admissible list of k: fail, or shorten the list.")  # fmt: skip
@click.option(
    "--output", type=common.OutputPath(dash=True),
    help="File of the lists: JSON if the name ends in .json, tab-separated if in .tsv, else CSV; - prints the CSV.",
)  # fmt: skip
@common.json_option
def recommend(
    model: str, users: tuple[str, ...], ratings_file: str | None, items_file: str | None, k: int, popularity: float,
    at_most: tuple[str, ...], at_least: tuple[str, ...], exactly: tuple[str, ...], never: tuple[str, ...],
    on_infeasible: Literal["error", "truncate"], output: str | None, json_: bool, user: str | None, item: str | None,
    rating: str | None, reg: float | None,
) -> None:  # fmt: skip
    """Recommend to each user the best items that the user has not rated.

    \b
    rankopt recommend model.rankopt --users 17 --k 5 --at-most 2:genre

    MODEL is a model of `rankopt cofi --model`. Columns of the output: user, rank, item, score, and the title if known.
    Attributes of items are those of `rankopt cofi --items`, or of --items here.
    """
    from rankopt.rankers import load_model

    if json_ and output is not None:
        raise click.UsageError("--json and --output exclude each other; give one of them")
    ranker = load_model(model)
    if not hasattr(ranker, "recommend"):
        raise click.UsageError(f"{model} ranks documents and recommends no items; use rankopt rank {model} DATA")
    if items_file is not None:
        _add_attributes(ranker, items_file)
    named = {"user": user, "item": item, "rating": rating}
    if ratings_file is None and any(one is not None for one in (*named.values(), reg)):
        raise click.UsageError("--user, --item, --rating and --reg are options of the file of --ratings; give it too")
    source: Any = ranker if ratings_file is None else _fold_in(ranker, _read(ratings_file, None, named), model, reg)
    user_ids = ranker.user_ids_ if source is ranker else source.seen.users
    ids = [_typed(one, user_ids) for one in users]
    known = user_ids.tolist()
    unknown = next((one for one in ids if one not in known), None)
    if unknown is not None:
        several = "repeat --users for several; " if "," in str(unknown) else ""
        new = "" if ratings_file else "; for a new user give ratings: --ratings FILE"
        some = ", ".join(map(str, known[:5]))
        raise DataError(f"{ratings_file or model} has no user {unknown!r}; {several}its {len(known)} users are {some} "
                        f"...{new}")  # fmt: skip
    quotas, rules = common.Quotas(k, at_most, at_least, exactly, on_infeasible), None
    if quotas:
        rules = quotas.admissible(ranker._known().seen)
        missing = [name for name in getattr(rules, "attributes", ()) if name not in ranker.item_attributes_]
        if missing:
            there = ", ".join(ranker.item_attributes_) or "none"
            raise DataError(f"items have no attribute {missing[0]!r} in {model} ({there}); give --items FILE with it, "
                            "or ban single items by --never ITEM")  # fmt: skip
    banned = {_typed(one, ranker.item_ids_) for one in never}
    among = None if not banned else [one for one in ranker.item_ids_.tolist() if one not in banned]
    if absent := sorted(map(str, banned.difference(ranker.item_ids_.tolist()))):
        raise DataError(f"--never {absent[0][:60]!r}: {model} has no such item; correct the id or leave it out")
    with common.cures_as_options():
        lists = source.recommend(ids or None, k, among=among, popularity=popularity, constraints=rules).to_frame()
    titles = ranker.item_attributes_.get("title")
    if titles is not None:
        lists["title"] = lists["item"].map(dict(zip(ranker.item_ids_.tolist(), titles, strict=True)))
    if json_:
        as_json({"model": model, "recommendations": lists.to_dict("records")})
    elif output is not None and output.endswith(".json"):
        write_output(output, json.dumps(lists.to_dict("records"), ensure_ascii=False, indent=1).encode())
    elif output is not None:
        write_output(output, lists.to_csv(index=False, sep="\t" if output.endswith(".tsv") else ",").encode())
    else:
        lists["score"] = lists["score"].map("{:.4f}".format)
        table(list(lists.columns), lists.to_numpy().tolist())


def _typed(word: str, ids: Any) -> Any:
    """The id with the type of these."""
    return int(word) if ids.dtype.kind in "iu" and re.fullmatch(r"-?\d{1,18}", word) else word


def _add_attributes(ranker: CofiRanker, file: str) -> None:
    from rankopt.ratings.reading import read_items, warn_of_missing

    attributes = read_items(file)
    if ranker.item_ids_.dtype == object:
        attributes = {name: {str(one): value for one, value in of.items()} for name, of in attributes.items()}
    with printed_warnings():
        warn_of_missing(ranker.item_ids_[ranker.item_popularity_ > 0], attributes, file)
    known = ranker._known().seen.with_attributes(attributes)
    ranker.item_attributes_ = dict(known.attributes)
    ranker._seen = known


def _fold_in(ranker: CofiRanker, ratings: Ratings, model: str, reg: float | None) -> KnownModel:
    """The model of the users of these ratings. Raises DataError for a user of the training ratings."""
    from rankopt.ratings import Ratings

    users, items = ratings.users[ratings.user_of()].tolist(), ratings.items[ratings.columns].tolist()
    if ranker.item_ids_.dtype == object:  # a file of other ids may hold numbers alone
        items = [str(one) for one in items]
    if ranker.user_ids_.dtype == object:
        users = [str(one) for one in users]
    known = set(ranker.user_ids_.tolist()) & set(users)
    if known:
        raise DataError(
            f"{len(known)} of the users are known to {model} ({min(known)!r}, for example), and --ratings is for new "
            "users; leave their rows out, or train again with all ratings"
        )
    with printed_warnings():
        return ranker.fold_in(Ratings.from_arrays(users, items, ratings.values), reg=reg)
