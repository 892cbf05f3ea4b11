"""Near-optimal lists and common subsets on the screen."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from rich.console import Console
from rich.text import Text

from sparsecv_mio.certificate.near_records import CommonRecord, CommonRow, NearModel, NearRecord, NearSize
from sparsecv_mio.report.layout import Row, listed, print_table, quoted, say
from sparsecv_mio.report.tables import (
    MEANING,
    aligned,
    interval_digits,
    pair,
    print_model,
    print_restrictions,
    shown,
)

FEW_MODELS, FEW_REPLACEMENTS = 10, 5  # of a size, printed without --full
MOST_NAMES = 30  # of features, in a line
VALUE = {"cv": "CV error", "objective": "objective"}


def print_near(console: Console, record: NearRecord, brief: bool = False, full: bool = False) -> None:
    """Print a near-optimal list: for every size the models, and which features all or none of them have.

    Parameters
    ----------
    console : rich.console.Console
        Where to print.
    record : NearRecord
    brief : bool
        Do not say how much work was done.
    full : bool
        Every model, not the ten best of a size.
    """
    word, colour = MEANING[record.status]
    what = "CV error, the same features in every fold" if record.by == "cv" else "training objective on all rows"
    chosen = "" if record.chosen is None else " chosen by cross-validation"
    if not record.models:
        word = word.replace("best answer so far, bounds valid", "no model yet")
    console.print(Text.assemble((word, f"bold {colour}"), f"   gamma = {shown(record.gamma)} (ridge weight){chosen}"))
    print_restrictions(console, record)
    say(console, f"models within {100.0 * record.within:g}% of the least {what}")
    by_tau = {tau: list(models) for tau, models in groupby(record.models, key=lambda model: model.tau)}
    for size in record.sizes:
        _print_size(console, record, size, by_tau.get(size.tau, []), full)
    if not brief:
        say(console, f"work: {record.work.nodes:,} nodes, {record.work.seconds:.2f} s", "dim")


def _print_size(console: Console, record: NearRecord, size: NearSize, models: list[NearModel], full: bool) -> None:
    count = f"{size.models:,} model{'' if size.models == 1 else 's'}"
    say(console, f"\n{_features(size.tau)}: {count}, {_how_complete(record, size)}", "bold")
    if not models:
        say(console, "no model was valued before the limit: give a longer --time-limit")
        return
    digits = interval_digits([(model.value, models[-1].value) for model in models[:1]])
    shared = set(models[0].support).intersection(*(model.support for model in models))
    rows = []
    for model in models if full else models[:FEW_MODELS]:
        excess = f"+{100.0 * (model.value / size.best - 1.0):.3g}%" if size.best > 0.0 else "+0%"
        own = [name for name in model.support if name not in shared]
        rows.append(Row((aligned(model.value, digits), excess, listed(own) or "-")))
    name = "features" if not shared else f"features besides the {len(shared)} that all these models have"
    print_table(console, (VALUE[record.by], "above the best", name), rows, text=(name,))
    if len(models) > FEW_MODELS and not full:
        say(console, f"--full or --json: {len(models) - FEW_MODELS:,} more", "dim")
    below = "" if size.complete else f" with a {VALUE[record.by]} below {shown(size.complete_to)}"
    if size.always or size.never or size.complete:
        say(console, f"in every model{below}: {_names(size.always)}")
        say(console, f"in none{below}: {_names(size.never)}")
    if size.replacements:
        some = size.replacements[:FEW_REPLACEMENTS]
        pairs = [f"{quoted(one.feature)} or {quoted(one.other)} ({one.pairs})" for one in some]
        say(console, f"models that differ in one feature (how many such pairs of models): {', '.join(pairs)}")


def _features(tau: int) -> str:
    return f"{tau} feature{'' if tau == 1 else 's'}"


def _how_complete(record: NearRecord, size: NearSize) -> str:
    """Say up to which value no model is missing, and why there is an end to it."""
    value = VALUE[record.by]
    if size.complete:
        return f"certified to be all that have a {value} up to {shown(size.threshold)}"
    if record.most is not None and size.models >= record.most:
        best = f"the best ones (--most {record.most:,})"
        return f"{best}, certified to be all below a {value} of {shown(size.complete_to)}"
    if size.models and size.complete_to > size.best:
        return f"cut by the limit, certified to be all below a {value} of {shown(size.complete_to)}"
    return f"cut by the limit: missing ones may have a {value} down to {shown(size.lower)}"


def _names(names: tuple[str, ...]) -> str:
    more = len(names) - MOST_NAMES
    return (listed(names[:MOST_NAMES]) or "no feature") + (f" and {more} more" if more > 0 else "")


def print_common(console: Console, record: CommonRecord, brief: bool = False, full: bool = False) -> None:
    """Print the best common subset: the pair, its certified CV error, its model and the best of every size.

    Parameters
    ----------
    console : rich.console.Console
        Where to print.
    record : CommonRecord
    brief : bool
        Only the answer: no table by tau, no work.
    full : bool
        Every coefficient, where they are more than a screen holds.
    """
    word, colour = MEANING[record.status]
    console.print(Text.assemble((word, f"bold {colour}"), f"   {pair(record.tau, record.gamma)}"))
    print_restrictions(console, record)
    digits = interval_digits([(record.lower, record.upper)])
    say(console, f"CV error {shown(record.cv_error, digits)} of one subset for all folds, RMSE {shown(record.rmse)}")
    ends = f"[{shown(record.lower, digits)}, {shown(record.upper, digits)}]"
    say(console, f"certified: the least CV error of any subset of these sizes is in {ends}, gap {shown(record.gap, 3)}")
    print_model(console, record.coefficients, record.intercept, full)
    if brief:
        return
    say(console, "best gamma of every tau", "bold")
    rows = [_row(rows, record) for _, rows in groupby(sorted(record.table, key=_order), key=lambda row: row.tau)]
    print_table(console, ("tau", "gamma", "CV error", "features"), rows, text=("features",))
    said = "a row is the best subset found of its size; the certified interval above is of all sizes and gammas"
    say(console, said, "dim")
    say(console, f"work: {record.work.nodes:,} nodes, {record.work.seconds:.2f} s", "dim")


def _order(row: CommonRow) -> tuple[int, float]:
    return row.tau, row.cv_error


def _row(rows: Iterable[CommonRow], record: CommonRecord) -> Row:
    of_tau = list(rows)
    best = of_tau[0]
    digits = interval_digits([(record.lower, record.upper)])
    style = "bold" if best.tau == record.tau else None
    numbers = str(best.tau), shown(best.gamma, 4), aligned(best.cv_error, digits)
    return Row((*numbers, listed(best.support) or "(intercept alone)"), style)
