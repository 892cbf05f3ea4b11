"""The bootstrap, stability selection and inference by splits of a record, for the screen and for the report."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console

from sparsecv_mio.certificate.inference_parts import Bootstrap, DrawPlan, Inference, StabilitySelection
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.digits import format_interval, format_number, several
from sparsecv_mio.report.document import ReportTable, report_table
from sparsecv_mio.report.layout import gap_in_words, join_names, print_table, say

MAX_MODELS_SHOWN = 5  # maximum number of the most frequent models in a table
MAX_FEATURES_SHOWN = 20  # maximum number of features in a table on the screen without --full


@dataclass(frozen=True)
class DrawSummary:
    """The title, the statements and the tables on the models of draws."""

    title: str
    lines: tuple[str, ...]
    tables: tuple[ReportTable, ...]


def summarise_draws(record: Record) -> list[DrawSummary]:
    """Return the summaries of the bootstrap, stability selection and inference by splits, if the record has them.

    Parameters
    ----------
    record : Record
        Record of a search.
    """
    summaries = []
    if record.bootstrap is not None:
        summaries.append(_describe_bootstrap(record, record.bootstrap))
    if record.stability_selection is not None:
        summaries.append(_describe_stability_selection(record.stability_selection))
    if record.inference is not None:
        summaries.append(_describe_inference(record.inference))
    return summaries


def print_draws(console: Console, record: Record, brief: bool, full: bool) -> None:
    """Print the bootstrap, stability selection and inference by splits of a record.

    Parameters
    ----------
    console : rich.console.Console
        Console to print on.
    record : Record
        Record of a search.
    brief : bool
        True to print no tables.
    full : bool
        True to print every feature.
    """
    for summary in summarise_draws(record):
        say(console, summary.title, style="bold")
        say(console, *summary.lines)
        for table in () if brief else summary.tables:
            rows = table.rows if full else table.rows[:MAX_FEATURES_SHOWN]
            console.print(table.caption.rstrip("."))
            print_table(console, table.head, rows, table.head[: table.words])
            if len(rows) < len(table.rows):
                say(console, f"{len(table.rows) - len(rows):,} more rows; --full prints them")


def _describe_plan(plan: DrawPlan, n_done: int, n_certified: int, draws: str) -> list[str]:
    """Return the statements on the draws and on their certificates."""
    by_class = ", separately in each class" if plan.by_class else ""
    number = f"{n_done:,}" if n_done == plan.requested else f"{n_done:,} of {plan.requested:,} requested"
    gap = gap_in_words(plan.gap)
    return [
        f"{number} {draws} of {plan.n_units:,} {plan.units}{by_class} (seed {plan.seed}), each searched again",
        f"choice certified ({gap}) in {n_certified:,} of {n_done:,} searches ({n_certified / n_done:.0%})",
    ]


def _describe_bootstrap(record: Record, found: Bootstrap) -> DrawSummary:
    n_done = len(found.chosen)
    same = next((one.draws for one in found.models if set(one.support) == set(record.support)), 0)
    sizes = ", ".join(f"{one.tau} ({one.draws:,})" for one in found.sizes)
    lines = [
        *_describe_plan(found.plan, n_done, found.certified, "bootstrap draws"),
        f"the features of the reported model are those of {same:,} of {n_done:,} draws; tau (draws): {sizes}",
        "the frequencies describe how the procedure varies; they are not probabilities that a feature belongs in the "
        "model, and the percentiles are not confidence intervals: a coefficient is 0 in draws without its feature",
    ]
    level, ends = f"{100.0 * found.level:g}%", [f"{50.0 * (1.0 + sign * found.level):g}%" for sign in (-1.0, 1.0)]
    heads = ("feature", "draws", "frequency", f"{level} from", "to", f"coefficient {ends[0]}", ends[1], "zeros")
    rows = [
        (
            one.feature, one.draws, "forced" if one.forced else f"{one.frequency:.3f}", f"{one.lower:.3f}",
            f"{one.upper:.3f}", one.coefficient_low, one.coefficient_high, f"{one.zeros:.3f}",
        ) for one in found.features
    ]  # fmt: skip
    caption = f"Inclusion frequencies with {level} binomial intervals, and percentiles of coefficients over all draws."
    models = [(one.support, one.draws) for one in found.models[:MAX_MODELS_SHOWN]]
    return DrawSummary("bootstrap of the whole procedure", tuple(lines), (
        report_table(caption, heads, rows, words=1),
        report_table("Most frequent models.", ("features", "draws"), models, words=1),
    ))  # fmt: skip


def _describe_stability_selection(found: StabilitySelection) -> DrawSummary:
    threshold, n_done = format_number(found.threshold, 3), len(found.chosen)
    names = join_names(found.selected) or "no feature"
    lines = [
        *_describe_plan(found.plan, n_done, found.certified, "halves"),
        f"selected with a frequency of at least {threshold} over {several(found.pairs, 'complementary pair')}: {names}",
        f"in expectation, at most {format_number(found.bound, 3)} selected features are rarely chosen: from a half, "
        f"with a probability of at most {format_number(found.mean_size, 3)} / {found.n_features:,}",
    ]
    if found.bound >= len(found.selected) > 0:
        lines.append(
            f"this bound is not below the number of selected features ({len(found.selected)}), so it says little; a "
            "smaller tau or a larger threshold lowers it"
        )
    rows = [(one.feature, one.draws, f"{one.frequency:.3f}") for one in found.features]
    caption = f"Selection frequencies over the {several(found.pairs, 'complementary pair')} of halves."
    table = report_table(caption, ("feature", "halves", "frequency"), rows, words=1)
    return DrawSummary("stability selection", tuple(lines), (table,))


def _describe_inference(found: Inference) -> DrawSummary:
    n_done, error, level = len(found.splits), 1.0 - found.level, f"{100.0 * found.level:.4g}%"
    small = join_names(term.term for term in found.terms if term.p_value <= error) or "none"
    reasons = [split.note for split in found.splits if split.note]
    lines = [
        *_describe_plan(found.plan, n_done, sum(split.status == "proved" for split in found.splits), "halves"),
        f"features with a p-value of at most {(most := format_number(error, 3))}: {small} (family-wise error at most "
        f"{most})",
    ]
    if reasons:
        lines.append(f"{len(reasons):,} of {n_done:,} halves test no feature; the first reason: {reasons[0]}")
    rows = []
    for term in found.terms:
        interval = "not finite"
        if term.interval_lower is not None and term.interval_upper is not None:
            interval = format_interval(term.interval_lower, term.interval_upper)
        estimate = "none" if term.estimate is None else format_number(term.estimate, 4)
        rows.append((term.term, f"{term.n_chosen:,}", format_number(term.p_value, 3), estimate, interval))
    caption = (
        f"P-values over all splits, median estimates, and intervals of level {level} for all coefficients together, "
        "given that the model contains the feature. A feature that no half chose has the p-value 1."
    )
    heads = ("feature", "models", "p-value", "estimate", f"{level} interval")
    table = report_table(caption, heads, rows, words=1)
    return DrawSummary("tests of features on the halves that did not choose them", tuple(lines), (table,))
