"""The bootstrap, stability selection and inference by splits of a record: statements, tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console

from sparsecv_mio.certificate.inference_parts import (
    Bootstrap,
    DrawPlan,
    FeatureCount,
    Inference,
    StabilitySelection,
    TermInference,
)
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.restrictions import restrictions_of
from sparsecv_mio.digits import format_interval, format_number, quoted_name, several
from sparsecv_mio.errors import BadInput
from sparsecv_mio.model_space import word_of_factor, words_of_terms
from sparsecv_mio.report import figures
from sparsecv_mio.report.coefficients import against, requested_references
from sparsecv_mio.report.document import ReportTable, report_table
from sparsecv_mio.report.figures import MOST_FEATURES
from sparsecv_mio.report.layout import gap_in_words, join_names, print_table, say

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_MODELS_SHOWN = 5  # maximum number of the most frequent models in a table
FEW_SPLITS = 20  # number of splits below which combined p-values vary strongly with the seed
HALVES = "half", "halves"
MAX_FEATURES_SHOWN = 20  # maximum number of features in a table on the screen without --full


@dataclass(frozen=True)
class DrawSummary:
    """The title, the statements and the tables on the models of draws."""

    title: str
    lines: list[str]
    tables: tuple[ReportTable, ...]


def summarise_draws(record: Record) -> list[DrawSummary]:
    """Return summaries of the bootstrap, stability selection and inference by splits, if the record has them.

    Parameters
    ----------
    record : Record
        Record of a search.
    """
    drawn, halves, tested = record.bootstrap, record.stability_selection, record.inference
    summaries = [] if drawn is None else [_describe_bootstrap(record, drawn)]
    summaries += [] if halves is None else [_describe_stability_selection(record, halves)]
    return summaries + ([] if tested is None else [_describe_inference(record, tested)])


def print_draws(console: Console, record: Record, brief: bool, full: bool) -> None:
    """Print the bootstrap, stability selection and inference by splits of a record.

    Parameters
    ----------
    console : rich.console.Console
        Console to print on.
    record : Record
        Record of a search.
    brief : bool
        True to print the statements only.
    full : bool
        True to print every feature.
    """
    for summary in summarise_draws(record):
        if brief:
            console.print()
            say(console, f"{summary.title}: {summary.lines[0]}", *summary.lines[1:])
            continue
        say(console, summary.title, style="bold")
        say(console, *summary.lines)
        for table in summary.tables:
            rows = table.rows if full else table.rows[:MAX_FEATURES_SHOWN]
            console.print(table.caption.rstrip("."))
            print_table(console, table.head, rows, table.head[: table.words])
            if len(rows) < len(table.rows):
                say(console, f"{len(table.rows) - len(rows):,} more rows; --full prints them")


def _describe_plan(plan: DrawPlan, n_done: int, n_certified: int, draws: tuple[str, str]) -> list[str]:
    """Return the statements on the draws and on their certificates."""
    by_class = ", separately in each class" if plan.by_class else ""
    number = f"{n_done:,}" if n_done == plan.requested else f"{n_done:,} of {plan.requested:,} requested"
    kind = draws[plan.requested > 1]
    share = f"{n_certified:,} of {n_done:,} {'search' if n_done == 1 else 'searches'} ({n_certified / n_done:.0%})"
    left_out = several(plan.truncated, "more draw")
    truncated = (
        f"{left_out}, truncated by the time limit, {'is' if plan.truncated == 1 else 'are'} left out; hard draws may "
        "be among them: a smaller grid, a larger --draw-gap, or a longer --time-limit completes more"
    )
    return [
        f"{number} {kind} of {plan.n_units:,} {plan.units}{by_class} (seed {plan.seed}), each searched again",
        *([truncated] if plan.truncated else []),
        f"choice certified ({gap_in_words(plan.gap)}) in {share}",
    ]


def _describe_bootstrap(record: Record, found: Bootstrap) -> DrawSummary:
    n_done = len(found.chosen)
    same = next((one.draws for one in found.models if set(one.support) == set(record.support)), 0)
    sizes = ", ".join(f"{one.tau} ({one.draws:,})" for one in found.sizes)
    lines = [
        *_describe_plan(found.plan, n_done, found.certified, ("bootstrap draw", "bootstrap draws")),
        f"the features of the reported model are those of {same:,} of {n_done:,} draws; tau (draws): {sizes}",
        "the frequencies describe how the procedure varies; they are not probabilities that a feature belongs in the "
        "model"
        + ", and the percentiles are not confidence intervals: a coefficient is 0 in draws without its feature"
        * found.has_percentiles,
    ]
    level, ends = f"{100.0 * found.level:g}%", [f"{50.0 * (1.0 + sign * found.level):g}%" for sign in (-1.0, 1.0)]
    heads = ["feature", "draws", "frequency", f"{level} from", "to"]
    rows = [
        [one.feature, one.draws, "forced" if one.forced else f"{one.frequency:.3f}", f"{one.lower:.3f}",
         f"{one.upper:.3f}"] for one in found.features
    ]  # fmt: skip
    caption = f"Inclusion frequencies with {level} binomial intervals"
    if found.has_percentiles:
        heads += [f"coefficient {ends[0]}", ends[1], "zeros"]
        for row, one in zip(rows, found.features, strict=True):
            row += [one.coefficient_low, one.coefficient_high, f"{one.zeros:.3f}"]
        caption += ", and percentiles of coefficients over all draws"
    else:
        lines.append(
            f"no percentiles of coefficients are shown: at the level {level}, they require at least "
            f"{found.fewest_draws:,} draws"
        )
    features = report_table(f"{caption}.", heads, rows, words=1)
    models = [(one.support, one.draws) for one in found.models[:MAX_MODELS_SHOWN]]
    frequent = report_table("Most frequent models.", ("features", "draws"), models, words=1)
    return DrawSummary("bootstrap of the whole procedure", lines, (features, frequent))


def _describe_stability_selection(record: Record, found: StabilitySelection) -> DrawSummary:
    threshold, bound, size = (format_number(one, 3) for one in (found.threshold, found.bound, found.mean_size))
    names, pairs = join_names(found.selected) or "no feature", several(found.pairs, "complementary pair")
    lines = [
        *_describe_plan(found.plan, len(found.chosen), found.certified, HALVES),
        f"selected with a frequency of at least {threshold} over {pairs}: {names}",
        f"in expectation, at most {bound} selected features are rarely chosen: from a half, with a probability of at "
        f"most {size} / {found.n_features:,}",
    ]
    if found.bound >= len(found.selected) > 0:
        lines.append(
            f"this bound is not below the number of selected features ({len(found.selected)}), so it says little; a "
            "smaller tau or a larger threshold lowers it"
        )
    forced = restrictions_of(record).forced_columns
    shares = {one.feature: "forced" if one.feature in forced else f"{one.frequency:.3f}" for one in found.features}
    rows = [(one.feature, one.draws, shares[one.feature]) for one in found.features]
    caption = f"Selection frequencies over the {pairs} of halves."
    table = report_table(caption, ("feature", "halves", "frequency"), rows, words=1)
    return DrawSummary("stability selection", lines, (table,))


def is_in_model(record: Record, term: str) -> bool:
    """Return True if the full-data model contains a term, which may be a factor.

    Parameters
    ----------
    record : Record
        Record of a search.
    term : str
        Name of a column, or of a factor that counts as one feature.
    """
    return term in words_of_terms(list(record.predictor.coefficients), restrictions_of(record).count)


def find_significant_terms(record: Record) -> list[tuple[TermInference, bool]]:
    """Return the terms whose p-value is at most the family-wise error, with True if the reported model has them.

    Parameters
    ----------
    record : Record
        Record of a search.
    """
    if (tests := record.inference) is None:
        return []
    return [(one, is_in_model(record, one.term)) for one in tests.terms if one.p_value <= 1.0 - tests.level]


def _describe_inference(record: Record, found: Inference) -> DrawSummary:
    n_done, most, level = len(found.splits), format_number(1.0 - found.level, 3), f"{100.0 * found.level:.4g}%"
    outside = {True: "", False: " (not in the reported model)"}
    marked = ", ".join(f"{quoted_name(term.term)}{outside[inside]}" for term, inside in find_significant_terms(record))
    lines = [
        *_describe_plan(found.plan, n_done, sum(split.status == "proved" for split in found.splits), HALVES),
        f"terms with a p-value of at most {most}: {marked or 'none'} (family-wise error at most {most})",
    ]
    if n_done < FEW_SPLITS:
        lines.append(
            f"caution: with fewer than {FEW_SPLITS} splits, p-values and intervals depend strongly on the seed; give "
            "more splits"
        )
    reasons = [split.note for split in found.splits if split.note]
    if reasons:
        lines.append(f"{len(reasons):,} of {n_done:,} halves test no term; the first reason: {reasons[0]}")
    caption = (
        f"P-values over all splits, median estimates, and intervals of level {level} for all coefficients together, "
        "given that the model contains the term. An interval has the values that the combined tests do not reject, "
        "so the median estimate can be outside. A term that no half chose has the p-value 1."
    )
    if any(term.is_empty for term in found.terms):
        caption += " An interval is empty if these tests reject every value, because estimates of splits disagree."
    heads = ("term", "models", "p-value", "estimate", f"{level} interval")
    table = report_table(caption, heads, _make_rows_of_tests(record, found), words=1)
    return DrawSummary("tests of terms on the halves that did not choose them", lines, (table,))


def _make_rows_of_tests(record: Record, found: Inference) -> list[tuple[str, ...]]:
    """Return the rows of the table of tests by splits."""
    rows, factors = (
        list[tuple[str, ...]](),
        {word_of_factor(one) for one in restrictions_of(record).count if len(one) > 1},
    )
    for term in found.terms:
        interval = "empty" if term.is_empty else "not finite"
        if term.interval_lower is not None and term.interval_upper is not None:
            interval = format_interval(term.interval_lower, term.interval_upper)
        estimate = "none" if term.estimate is None else format_number(term.estimate, 4)
        if term.term in factors:
            estimate, interval = "joint test", "none"
        rows.append((term.term, f"{term.n_chosen:,}", format_number(term.p_value, 3), estimate, interval))
    return rows


def plot_inclusion(record: Record, ax: Axes | None = None) -> Axes:
    """Draw the inclusion frequencies of the bootstrap, or else the frequencies of stability selection.

    Parameters
    ----------
    record : Record
        Record with `bootstrap` or `stability_selection`.
    ax : matplotlib Axes, optional
        Axes to draw on; those of a new pyplot figure by default.

    Returns
    -------
    matplotlib Axes
        The axes. Bars are binomial intervals of the frequencies of the bootstrap; a line marks the threshold of
        stability selection.
    """
    draws = record.bootstrap or record.stability_selection
    if draws is None:
        raise BadInput("panel inclusion: requires a record of `solve --bootstrap` or `solve --stability-selection`")
    kind = "bootstrap draws" if isinstance(draws, Bootstrap) else "halves"
    rows = draws.features[:MOST_FEATURES]
    ax = _prepare_rows(ax, record, draws.features, f"share of {kind} that choose each feature")
    at, shares = np.arange(len(rows)), np.array([one.frequency for one in rows])
    inside = np.array([one.feature in record.coefficients for one in rows], dtype=bool)
    kinds = (inside, figures.LOWER, "in the full-data model"), (~inside, figures.FAINT, "not in the full-data model")
    for mine, colour, label in kinds:
        ax.barh(at[mine], shares[mine], color=colour, height=0.7, label=label if mine.any() else None)
    if isinstance(draws, Bootstrap):
        ends = np.array([(one.lower, one.upper) for one in draws.features[:MOST_FEATURES]]).reshape(-1, 2).T
        ax.hlines(at, *ends, color=figures.UPPER, linewidth=1.2, label=f"{100.0 * draws.level:g}% interval")
    else:
        ax.axvline(draws.threshold, color=figures.INK, linewidth=0.8, linestyle=(0, (4, 3)), label="threshold")
    ax.set(xlim=(0.0, 1.02), xlabel=f"share of {len(draws.chosen):,} {kind}")
    figures.draw_outer_legend(ax)
    return ax


def _prepare_rows(ax: Axes | None, record: Record, features: Sequence[FeatureCount], title: str) -> Axes:
    """Return axes with a row for each of the first features; the title states how many others there are."""
    names = [one.feature for one in features]
    drawn = names[:MOST_FEATURES]
    ax = figures.prepare_axes(ax, (7.0, 1.4 + 0.22 * max(len(drawn), 4)))
    figures.name_rows(ax, drawn, record.data.names)
    figures.write_title(ax, f"{title}{figures.omission_note(drawn, names)}")
    return ax


def plot_intervals(record: Record, ax: Axes | None = None) -> Axes:
    """Draw the percentile intervals of the coefficients over bootstrap draws, each relative to its larger end.

    Parameters
    ----------
    record : Record
        Record with `bootstrap`.
    ax : matplotlib Axes, optional
        Axes to draw on; those of a new pyplot figure by default.

    Returns
    -------
    matplotlib Axes
        The axes. Dots are the coefficients of the full-data model; an interval that reaches 0 has a share of zeros
        next to it.
    """
    record = against(record, requested_references(record))
    found = record.bootstrap
    if found is None:
        raise BadInput("panel intervals: requires a record of `solve --bootstrap`")
    ax = _prepare_rows(ax, record, found.features, f"{100.0 * found.level:g}% percentiles over bootstrap draws")
    ax.axvline(0.0, color=figures.FAINT, linewidth=0.8)
    for at, one in enumerate(found.features[:MOST_FEATURES]):
        own = record.coefficients.get(one.feature, 0.0)
        scale = max(abs(one.coefficient_low), abs(one.coefficient_high), abs(own)) or 1.0
        ax.hlines(at, one.coefficient_low / scale, one.coefficient_high / scale, color=figures.LOWER, linewidth=3.0)
        label = None if at else "coefficient of the full-data model"
        ax.plot([own / scale], [at], "o", color=figures.UPPER, markersize=5.0, label=label)
        ax.annotate(f"{100.0 * one.zeros:.0f}% zeros", (1.05, at), va="center", fontsize=7.0, annotation_clip=False)
    ax.set(xlim=(-1.03, 1.35), xlabel="coefficient, relative to the largest absolute value in its row")
    figures.draw_outer_legend(ax)
    return ax
