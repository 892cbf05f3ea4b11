"""Parts of a record that only some runs have: draws of the rows, baselines, and the plan and costs of the search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from sparsecv_mio.certificate import inference_parts
from sparsecv_mio.certificate.parts import GapStep, PlanSetting
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.restrictions import complete_factors, restrictions_of
from sparsecv_mio.data.reading_options import indicator_name
from sparsecv_mio.digits import format_interval, format_number, format_with_zeros, quoted_name, round_upward, several
from sparsecv_mio.errors import BadInput
from sparsecv_mio.model_space import word_of_factor, words_of_terms
from sparsecv_mio.report import figures
from sparsecv_mio.report.coefficients import against, requested_references, spreads
from sparsecv_mio.report.document import ReportTable, report_table
from sparsecv_mio.report.layout import gap_in_words, join_names, mark_estimate, print_table, say
from sparsecv_mio.report.record_words import search_space, within_restrictions
from sparsecv_mio.units import ACCURATE_RTOL, TINY
from sparsecv_mio.words import NATIVE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sparsecv_mio.data.dataset import Dataset


MAX_MODELS_SHOWN = 5  # maximum number of the most frequent models in a table
SELECTED_DRAWS = (
    "draws with quick searches are more likely to finish, so the finished ones need not represent all draws"
)
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


def describe_missing_draws(record: Record) -> list[tuple[str, str]]:
    """Return the options that requested outer folds or draws of which none was done, each with the reason.

    Parameters
    ----------
    record : Record
        Record of a search.
    """
    results = {
        "nested": record.nested, "bootstrap": record.bootstrap, "stability_selection": record.stability_selection,
        "infer": record.inference,
    }  # fmt: skip
    notes = [note.partition(": ") for note in record.warnings]
    return [(option, reason.split(";")[0]) for option, _, reason in notes if results.get(option, record) is None]


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
    for option, reason in describe_missing_draws(record):
        say(console, f"{option.replace('_', ' ')}: no results; {reason}")
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


def _describe_plan(
    plan: inference_parts.DrawPlan, n_done: int, n_certified: int, draws: tuple[str, str], n_chosen: int | None = None,
    n_failed: int = 0,
) -> list[str]:  # fmt: skip
    """Return the statements on the draws and on their certificates, which refer to draws with a chosen model."""
    n_chosen = n_done if n_chosen is None else n_chosen
    by_class = ", separately in each class" if plan.by_class else ""
    number = f"{n_done:,}" if n_done == plan.requested else f"{n_done:,} of {plan.requested:,} requested"
    kind = draws[plan.requested > 1]
    searches = f"{n_chosen:,} {'search' if n_chosen == 1 else 'searches'}{' with a model' if n_chosen < n_done else ''}"
    share = f"{n_certified:,} of {searches} ({n_certified / max(n_chosen, 1):.0%})"
    left_out = several(plan.truncated, "more draw")
    truncated = (
        f"{left_out}, truncated by the time limit, {'is' if plan.truncated == 1 else 'are'} left out; hard draws may "
        "be among them. A smaller grid, a larger --draw-gap or a longer --time-limit completes more draws; --draw-file "
        "FILE keeps finished draws for the next run"
    )
    return [
        f"{number} {kind} of {plan.n_units:,} {plan.units}{by_class} (seed {plan.seed}), each searched again",
        *([f"caution: {SELECTED_DRAWS}"] if is_cut(plan, n_done + n_failed) else []),
        *([truncated] if plan.truncated else []),
        f"choice certified ({gap_in_words(plan.gap)}) in {share}",
    ]


def _describe_bootstrap(record: Record, found: inference_parts.Bootstrap) -> DrawSummary:
    n_done, unit = len(found.chosen), restrictions_of(record).unit_of_tau
    factors, references = restrictions_of(record).count, requested_references(record)
    support = complete_factors(record.support, factors)
    same = next((one.draws for one in found.models if set(one.support) == support), 0)
    sizes = ", ".join(f"{one.tau} ({one.draws:,})" for one in found.sizes)
    lines = [
        *_describe_plan(
            found.plan, n_done, found.certified, ("bootstrap draw", "bootstrap draws"), n_failed=len(found.failed)
        ),
        f"draws that choose exactly the {unit}s of the reported model: {same:,} of {n_done:,}; tau (draws): {sizes}",
        f"the frequencies describe how the procedure varies; they are not probabilities that a {unit} belongs in the "
        "model",
    ]
    level, ends = f"{100.0 * found.level:g}%", [f"{50.0 * (1.0 + sign * found.level):g}%" for sign in (-1.0, 1.0)]
    has_levels = any(one.feature in columns for columns in factors if len(columns) > 1 for one in found.features)
    heads = ["term or level" if has_levels else unit, "draws", "frequency", f"{level} from", "to"]
    rows = [
        [one.feature, one.draws, "forced" if one.forced else f"{one.frequency:.3f}", f"{one.lower:.3f}",
         f"{one.upper:.3f}"] for one in found.features
    ]  # fmt: skip
    caption = f"Inclusion frequencies with {level} binomial intervals"
    if found.has_percentiles:
        heads += [f"coefficient {ends[0]}", ends[1], "zeros"]
        for row, one in zip(rows, found.features, strict=True):
            limits = [one.coefficient_low, one.coefficient_high]
            row += [*(["reference", ""] if one.feature in references else limits), f"{one.zeros:.3f}"]
        caption += (
            ", and percentiles of coefficients over all draws, which are not confidence intervals: a coefficient is 0 "
            f"in draws without its {'term or its level' if has_levels else unit}"
        )
    else:
        lines.append(
            f"no percentiles of coefficients are shown: at the level {level}, they require at least "
            f"{found.fewest_draws:,} draws"
        )
    features = report_table(f"{caption}.", heads, rows, words=1)
    models = [(words_of_terms(one.support, factors), one.draws) for one in found.models[:MAX_MODELS_SHOWN]]
    frequent = report_table("Most frequent models.", (f"{unit}s", "draws"), models, words=1)
    return DrawSummary("bootstrap of the whole procedure", lines, (features, frequent))


def _describe_stability_selection(record: Record, found: inference_parts.StabilitySelection) -> DrawSummary:
    threshold, bound, size = (format_number(one, 3) for one in (found.threshold, found.bound, found.mean_size))
    limits, pairs = restrictions_of(record), several(found.pairs, "complementary pair")
    names, unit = join_names(found.selected) or f"no {limits.unit_of_tau}", limits.unit_of_tau
    lines = [
        *_describe_plan(found.plan, len(found.chosen), found.certified, HALVES, n_failed=len(found.failed)),
        f"selected with a frequency of at least {threshold} over {pairs}: {names}",
        f"at most {bound} of the selected {unit}s are expected to be false selections, each chosen by a half with a "
        f"probability of at most {size} / {found.n_features:,}, as by chance",
    ]
    if found.bound >= len(found.selected) > 0:
        lines.append(
            f"this bound is not below the number of selected {unit}s ({len(found.selected)}), so it excludes nothing; "
            "a smaller tau or a larger threshold lowers the bound"
        )
    shares = {one.feature: "forced" if one.feature in limits.forced_columns else f"{one.frequency:.3f}"
              for one in found.features}  # fmt: skip
    by_term = {words_of_terms([one.feature], limits.count)[0]: one for one in reversed(found.features)}
    rows = [(term, one.draws, shares[one.feature]) for term, one in reversed(by_term.items())]
    caption = f"Selection frequencies over the {pairs} of halves."
    table = report_table(caption, (unit, "halves", "frequency"), rows, words=1)
    return DrawSummary("stability selection", lines, (table,))


def find_significant_terms(record: Record) -> list[tuple[inference_parts.TermInference, bool]]:
    """Return the terms whose p-value is at most the family-wise error, with True if the reported model has them.

    Parameters
    ----------
    record : Record
        Record of a search.
    """
    if (tests := record.inference) is None:
        return []
    terms = words_of_terms(list(record.predictor.coefficients), restrictions_of(record).count)
    return [(one, one.term in terms) for one in tests.terms if one.p_value <= 1.0 - tests.level]


def _describe_inference(record: Record, found: inference_parts.Inference) -> DrawSummary:
    n_done, most, level = len(found.splits), format_number(1.0 - found.level, 3), f"{100.0 * found.level:.4g}%"
    outside = {True: "", False: " (not in the reported model)"}
    marked = ", ".join(f"{quoted_name(term.term)}{outside[inside]}" for term, inside in find_significant_terms(record))
    lines = [
        *_describe_plan(found.plan, n_done, found.n_certified, HALVES, found.n_chosen),
        f"terms with a p-value of at most {most}: {marked or 'none'} (family-wise error at most {most}); a large "
        "p-value does not show that a term has no effect",
    ]
    if not marked and (n_failed := count_failed_tests(record)):
        lines[-1] = f"the tests failed in {n_failed:,} of {n_done:,} halves, so they give no result"
    if n_done < FEW_SPLITS:
        lines.append(
            f"caution: with fewer than {FEW_SPLITS} splits, p-values and intervals depend strongly on the seed; give "
            "more splits"
        )
    if without := describe_untested_halves(record):
        reason = next(split.note for split in found.splits if split.note)
        lines.append(f"{without}; their p-values count as 1, which is conservative; the first reason: {reason}")
    if untested := list_untested_terms(record):
        lines.append(f"terms that the other half cannot test (their p-value is then 1): {', '.join(untested)}")
    if missing := find_missing_levels(record):
        lines.append(f'tested without their level "(missing)": {join_names(missing)}')
    caption = (
        f"P-values over all splits, median estimates, and intervals of level {level} for all coefficients together, "
        "given that the model contains the term. An interval has the values that the combined tests do not reject, "
        "so the median estimate can be outside. A term that no half chose has the p-value 1."
    )
    if any(term.is_empty for term in found.terms):
        caption += " An interval is empty if these tests reject every value, because estimates of splits disagree."
    unit = record.wording.unit
    heads = ("term", "models", "p-value", f"estimate ({unit})" if unit else "estimate", f"{level} interval")
    table = report_table(caption, heads, _make_rows_of_tests(record, found), words=1)
    return DrawSummary("tests of terms on the halves that did not choose them", lines, (table,))


def describe_untested_halves(record: Record) -> str:
    """Return the numbers of halves that chose no model, and that tested no term of their model; empty without any.

    Parameters
    ----------
    record : Record
        Record of a search.
    """
    splits = () if record.inference is None else record.inference.splits
    counts = {
        "chose no model": sum(split.gamma is None for split in splits),
        "tested no term": sum(bool(split.note) and split.gamma is not None for split in splits),
    }
    words = [f"{count:,} of the {len(splits):,} halves {what}" for what, count in counts.items() if count]
    return " and ".join(words)


def count_failed_tests(record: Record) -> int:
    """Return the number of halves that tested no term, or 0 if at least half of them tested one.

    Parameters
    ----------
    record : Record
        Record of a search.
    """
    splits = () if record.inference is None else record.inference.splits
    n_failed = sum(split.gamma is None or bool(split.note) for split in splits)
    return n_failed if 2 * n_failed > len(splits) else 0


def is_cut(plan: inference_parts.DrawPlan, n_searched: int) -> bool:
    """Return True if fewer draws than requested were searched to their end.

    Parameters
    ----------
    plan : DrawPlan
        Requested draws.
    n_searched : int
        Number of draws that were searched, with those that gave no model.
    """
    return n_searched < plan.requested


def list_untested_terms(record: Record) -> list[str]:
    """Return the terms that some halves could not test, with the numbers of these models.

    Parameters
    ----------
    record : Record
        Record of a search.
    """
    terms = () if record.inference is None else record.inference.terms
    return [
        f"{quoted_name(one.term)} in {one.n_chosen - one.n_tested:,} of {several(one.n_chosen, 'model')}"
        for one in terms if one.n_tested is not None and one.n_tested < one.n_chosen
    ]  # fmt: skip


def find_missing_levels(record: Record) -> list[str]:
    """Return the tested factors with a level of missing values, which their tests leave out.

    Parameters
    ----------
    record : Record
        Record of a search.
    """
    terms = {} if record.inference is None else {one.term for one in record.inference.terms}
    words = {word_of_factor(one): indicator_name(word_of_factor(one)) in one for one in restrictions_of(record).count}
    return [word for word, is_missing in words.items() if is_missing and word in terms]


def _make_rows_of_tests(record: Record, found: inference_parts.Inference) -> list[tuple[str, ...]]:
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
        p_value = "not tested" if term.n_tested == 0 else format_number(term.p_value, 3)
        rows.append((term.term, f"{term.n_chosen:,}", p_value, estimate, interval))
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
        raise BadInput(
            "panel inclusion: requires a record of `solve --bootstrap`, `solve --stability-selection`, "
            "stability_selection or bootstrap; choose another panel"
        )
    kind = "bootstrap draws" if isinstance(draws, inference_parts.Bootstrap) else "halves"
    rows = draws.features[: figures.MOST_FEATURES]
    names, title = [one.feature for one in draws.features], f"share of {kind} that choose each feature"
    ax, names = figures.prepare_rows(ax, names, record.data.names, title)
    figures.draw_feature_bars(ax, np.array([one.frequency for one in rows]), np.isin(names, list(record.coefficients)))
    if isinstance(draws, inference_parts.Bootstrap):
        shown, label = draws.features[: len(names)], f"{100.0 * draws.level:g}% interval"
        ends = [one.lower for one in shown], [one.upper for one in shown]
        ax.hlines(range(len(shown)), *ends, color=figures.UPPER, linewidth=1.2, label=label)
    else:
        ax.axvline(draws.threshold, color=figures.INK, linewidth=0.8, linestyle=(0, (4, 3)), label="threshold")
    ax.set(xlim=(0.0, 1.02), xlabel=f"share of {len(draws.chosen):,} {kind}")
    figures.draw_outer_legend(ax)
    return ax


def plot_intervals(record: Record, ax: Axes | None = None, data: Dataset | None = None) -> Axes:
    """Draw the percentile intervals of the coefficients over bootstrap draws.

    Parameters
    ----------
    record : Record
        Record with `bootstrap`.
    ax : matplotlib Axes, optional
        Axes to draw on; those of a new pyplot figure by default.
    data : Dataset, optional
        Data of the record. Coefficients are then multiplied by the standard deviation of their column, so that rows
        have a common scale; otherwise each row has its own.

    Returns
    -------
    matplotlib Axes
        The axes. Dots are the coefficients of the full-data model. The text next to an interval gives its limits per
        unit of the column and the share of zeros, or states that the level is a reference level.
    """
    references = requested_references(record)
    record = against(record, references)
    found = record.bootstrap
    if found is None:
        raise BadInput("panel intervals: requires a record of `solve --bootstrap` or bootstrap; choose another panel")
    level = f"{100.0 * found.level:g}%"
    if not found.has_percentiles:
        raise BadInput(
            f"panel intervals: the record has {several(len(found.chosen), 'bootstrap draw')}, but percentiles at the "
            f"level {level} require at least {found.fewest_draws:,}; give {found.fewest_draws} draws or more"
        )
    names, title = [one.feature for one in found.features], f"{level} percentiles over bootstrap draws"
    ax, _ = figures.prepare_rows(ax, names, record.data.names, title)
    ax.axvline(0.0, color=figures.FAINT, linewidth=0.8)
    units = None if data is None else spreads(data, names)
    for at, one in enumerate(found.features[: figures.MOST_FEATURES]):
        own, limits = record.coefficients.get(one.feature, 0.0), (one.coefficient_low, one.coefficient_high)
        size = 1.0 / (max(map(abs, (*limits, own))) or 1.0) if units is None else units[one.feature]
        ax.hlines(at, limits[0] * size, limits[1] * size, color=figures.LOWER, linewidth=3.0)
        label = None if at else "coefficient of the full-data model"
        ends = " to ".join(format_number(limit, 3) for limit in limits)
        words = "reference level" if one.feature in references else f"{ends}, {100.0 * one.zeros:.0f}% zeros"
        ax.plot([own * size], [at], "o", color=figures.UPPER, markersize=5.0, label=label)
        ax.annotate(words, (1.02, at), xycoords=ax.get_yaxis_transform(), va="center", fontsize=7.0,
                    annotation_clip=False)  # fmt: skip
    scale = ", each row on its own scale" if units is None else " per standard deviation of the column"
    ax.set(xlabel=f"coefficient{scale} (at the right: per unit)")
    figures.draw_outer_legend(ax)
    return ax


NAMES = {"lasso": "the lasso", "ridge": "ridge regression", "elasticnet": "the elastic net"}
ERROR_DIGITS = 6  # significant digits of a CV error
MINIMA = (
    "each of these CV errors was minimised over the candidates of its method, which favours methods with many "
    "candidates; --nested compares without this advantage"
)
ONE_SE_RULE = "one SE: the simplest model within one standard error of its smallest CV error"


def baseline_table(record: Record) -> ReportTable | None:
    """Return a table with a row for the reported pair and one for each baseline; None without baselines."""
    if record.baselines is None:
        return None
    error = mark_estimate(format_with_zeros(record.cv_error, ERROR_DIGITS), record.estimate)
    gamma, sources = f"gamma = {format_number(record.gamma, 4)}", record.work.sources
    seconds = f"{sum(work.seconds for work in sources):.2f}" if sources else "?"  # without the start of the process
    rule, least, limits = " (one SE)" if record.one_se else "", record.certificate, restrictions_of(record)
    rows: list[tuple[str | int, ...]] = [(f"best subset{rule}", error, "", "", len(record.support), gamma, seconds)]
    if (least.gamma, least.tau) != (record.gamma, record.tau):
        minimum, gap = format_with_zeros(least.cv_error, ERROR_DIGITS), f"{least.cv_error - record.cv_error:+#.3g}"
        gamma, gap = f"gamma = {format_number(least.gamma, 4)}", mark_estimate(gap, record.estimate)
        is_size_known = not replace(limits, force_in=(), force_out=(), adjust=())  # the record has no such model
        pair = gamma if is_size_known else f"tau = {least.tau}, {gamma}"
        rows.append(("best subset (minimum)", minimum, gap, "", least.tau if is_size_known else "?", pair, ""))
    for entry in record.baselines.methods:
        difference = "?" if entry.difference is None else f"{entry.difference:+#.3g}"
        spread = "?" if entry.standard_error is None else format_with_zeros(entry.standard_error, 3)
        ratio = "" if entry.alpha is None or entry.l1_ratio in (0.0, 1.0) else f", l1_ratio = {entry.l1_ratio:g}"
        penalty = "none" if entry.alpha is None else f"alpha = {format_number(entry.alpha, 4)}{ratio}"
        error = format_with_zeros(entry.cv_error, ERROR_DIGITS)
        difference = mark_estimate(difference, record.estimate)
        rows.append((entry.label, error, difference, spread, len(entry.support), penalty, f"{entry.seconds:.2f}"))
    size = "columns" if limits.count else "features"  # baselines do not count factors as terms
    caption = (
        "Baselines on the same folds, each at the penalty or size with its smallest CV error"
        f"{f' ({ONE_SE_RULE})' if rule else ''}; the difference of this CV error from that of the reported pair, the "
        f"paired standard error of the difference over the folds, and the number of {size} of each model."
    )
    heads = ("method", "CV error", "difference", "standard error", size, "penalty", "seconds")
    return report_table(caption, heads, rows, words=1)


def print_baselines(console: Console, record: Record, brief: bool) -> None:
    """Print the comparison with baselines, if the record has them.

    Parameters
    ----------
    console : rich.console.Console
        Console to print on.
    record : Record
        Record of a search.
    brief : bool
        True to omit the comparison of nested CV errors.
    """
    table = baseline_table(record)
    if table is not None:
        compared = "differences from the reported pair, with paired standard errors over the folds"
        compared += f"; {ONE_SE_RULE}" if record.one_se is not None else ""
        say(console, f"baselines on the same folds; {compared}", style="bold")
        print_table(console, table.head, table.rows, text=("method", "penalty"))
    say(console, *certified_lines(record), *([] if brief else nested_lines(record)))
    if table is not None:
        console.print()


def nested_lines(record: Record) -> list[str]:
    """Return the statement that compares nested CV errors with those of the baselines, or that there are none."""
    methods = () if record.baselines is None else record.baselines.methods
    compared = list[str]()
    for label, nested in ((one.label, one.nested) for one in methods if one.nested is not None):
        where = f"{format_number(abs(nested.difference), 3)} {'above' if nested.difference >= 0.0 else 'below'}"
        spread = "" if nested.standard_error is None else f", standard error {format_number(nested.standard_error, 2)}"
        compared.append(f"{label} {format_number(nested.error)} ({where}{spread})")
    head = "nested CV errors of the baselines, with their differences from that of the whole procedure"
    return [f"{head}: {'; '.join(compared)}"] if compared else [MINIMA] if methods else []


def round_percentage(value: float, up: bool) -> float:
    """Return a positive percentage, rounded up or down to two significant digits.

    Parameters
    ----------
    value : float
        Percentage.
    up : bool
        True to round up, False to round down.

    Examples
    --------
    >>> round_percentage(1.1234, True), round_percentage(1.1234, False), round_percentage(34.2, True)
    (1.2, 1.1, 35.0)
    """
    return round_upward(value + ACCURATE_RTOL) if up else -round_upward(min(ACCURATE_RTOL - value, 0.0))


def certified_lines(record: Record) -> list[str]:
    """Return the statements about the baselines that the certified lower bound of the grid supports.

    A baseline has the CV error E, and no pair a CV error below L. If L < E, no pair is more than 100 (E - L) / E per
    cent better; otherwise every pair is at least 100 (L - E) / E per cent worse.
    """
    if record.baselines is None:
        return []
    if not record.certificate.lower > 0.0:
        return ["no certified lower bound on the CV error is known, so nothing is certified about the baselines"]
    below, above, never = list[str](), list[str](), list[str]()
    limits, same = restrictions_of(record), list[str]()
    n_terms = limits.n_selectable_features(record.data.p)
    for entry in record.baselines.methods:
        if entry.one_se:
            continue  # the statement on its smallest CV error is sharper
        name, gain = NAMES.get(entry.method, entry.method), entry.possible_gain or 0.0
        if gain <= 0.0 and entry.method == "ridge" and n_terms in record.request.taus and not replace(limits, count=()):
            same.append(
                f"ridge regression is best-subset selection with all {several(n_terms, limits.unit_of_tau)}, at other "
                "penalties than those of the grid; only these penalties explain its smaller CV error"
            )
        elif gain > 0.0:
            below.append(f"{round_percentage(gain, True):g}% below that of {name}")
        elif share := round_percentage(-gain, False):
            above.append(f"{share:g}% above that of {name}")
        else:
            never.append(f"that of {name}")
    later = "" if record.status == "proved" else "; a longer search may lower these percentages"
    scope = f"certified {search_space(record)}{within_restrictions(record)}"
    subject = "CV error of best-subset selection is"
    return [
        f"{scope}: {begin} {_join(phrases, conjunction)}{end}"
        for begin, phrases, conjunction, end in (
            (f"no {subject} more than", below, "or", later),
            (f"every {subject} at least", above, "and", ""),
            (f"no {subject} below", never, "or", ""),
        )
        if phrases
    ] + same


def _join(phrases: Sequence[str], conjunction: str) -> str:
    """Return phrases as a list whose last entry follows a conjunction."""
    return f" {conjunction} ".join(filter(None, (", ".join(phrases[:-1]), *phrases[-1:])))


def plot_baselines(record: Record, ax: Axes | None = None) -> Axes:
    """Draw the CV errors of the reported pair and of the baselines, with the certified bounds of the grid.

    Parameters
    ----------
    record : Record
        Record with baselines.
    ax : matplotlib Axes, optional
        Axes to draw on; those of a new pyplot figure by default.

    Returns
    -------
    matplotlib Axes
        The axes; bars are one standard error of the difference from the reported pair to each side.
    """
    if record.baselines is None:
        raise BadInput(
            "panel baselines: requires a record of `solve --baselines` or compare_baselines; choose another panel"
        )
    ax, methods, best = figures.prepare_axes(ax), record.baselines.methods, record.certificate
    if best.lower > 0.0:
        text = "certified lower bound on the CV error of every pair"
        ax.axvline(best.lower, color=figures.LOWER, linewidth=1.2, label=text)
        if math.isfinite(best.upper):
            ax.axvspan(best.lower, best.upper, color=figures.LOWER, alpha=0.2, label="minimum over the grid, certified")
    if math.isfinite(record.cv_error):
        ax.plot([record.cv_error], [0], "*", color=figures.UPPER, markersize=13, zorder=5, label="reported pair")
    ax.errorbar([entry.cv_error for entry in methods], range(1, len(methods) + 1),
                xerr=[entry.standard_error or 0.0 for entry in methods], fmt="o", color=figures.INK, capsize=2.0,
                elinewidth=0.9, label="baseline ± standard error of the difference")  # fmt: skip
    figures.places(ax, "y", ["best subset", *(entry.label for entry in methods)])
    ax.invert_yaxis()
    ax.set_xlabel(f"CV error ({record.wording.cv_error})")
    figures.write_title(ax, "CV error of baselines on the same folds")
    figures.draw_outer_legend(ax)
    return ax


def source_table(record: Record) -> ReportTable | None:
    """Return a table with a row for each source of bounds; None for a record without this information."""
    rows = [
        (work.source, f"{work.problems:,}", f"{work.nodes:,}", f"{work.seconds:.2f}", f"{work.cpu_seconds:.2f}",
         f"{work.decided:,}", f"{work.ruled_out:,}", f"{100.0 * work.gap_closed:.1f}%")
        for work in record.work.sources
    ]  # fmt: skip
    caption = (
        "Cost and gain of each bounding method. Cost: ridge problems set up, branch-and-bound nodes, wall and CPU "
        "seconds. Gain: subproblems solved, subproblems excluded by the bound of their pair, and the share of the "
        "relative gap of the grid (100% at first) that the method closed. The page `how_it_decides` describes the "
        "methods. Reading, preparation, repeated searches and the record take the remaining time of the run."
    )
    heads = ("bounding method", "problems", "nodes", "seconds", "CPU s", "solved", "excluded", "gap closed")
    return report_table(caption, heads, rows, words=1) if rows else None


def print_external_solver(console: Console, record: Record) -> None:
    """Print the solver of `--backend`, its share of the work and its tolerance; nothing for the native engine."""
    solver, sources = record.request.backend, record.work.sources
    if solver in (None, NATIVE):
        return
    from sparsecv_mio.formulation.backends.contract import TRUST  # loads the interface of solvers

    own = [work for work in sources if work.source == f"MIOs of {solver}"]
    n_problems, closed = sum(work.problems for work in own), sum(work.gap_closed for work in own)
    share = sum(work.seconds for work in own) / max(sum(work.seconds for work in sources), TINY)
    say(
        console,
        f"solver {solver}: {several(n_problems, 'MIO problem')} in {share:.0%} of the search time closed {closed:.0%} "
        "of the relative gap (100% at first); the gap may be smaller than the tolerance of the solver, "
        f"{TRUST:g}, because lists of near-optimal supports compensate for this tolerance",
        style="dim",
    )


def print_plan(console: Console, record: Record) -> None:
    """Print the settings that the plan chose for the data, and disabled switches, if the search had a reader of them.

    Parameters
    ----------
    console : rich.console.Console
        Console to print on.
    record : Record
        Record; nothing is printed if it has no plan.
    """
    if not record.work.plan:
        return
    used = settings_used(record)
    changed = [setting for setting in used if not setting.is_default or setting.name == "orders"]
    rows = [(setting.name, _value_in_words(setting), setting.reason) for setting in changed]
    say(console, "settings of the search plan, chosen for these data and options", style="bold")
    print_table(console, ("setting", "value", "meaning"), rows, text=("setting", "value", "meaning"))
    off = ", ".join(setting.name for setting in used if setting.setting is False)
    say(console, f"switches that are off (the field work.plan of the record explains them): {off}", style="dim")


def settings_used(record: Record) -> list[PlanSetting]:
    """Return the settings that an order of the search, or a bounding method that worked in it, reads."""
    from sparsecv_mio.search.plan import Plan  # pages without a search load no search

    readers = {setting.name: set(setting.metadata["readers"]) for setting in fields(Plan)}
    settings: dict[str, Any] = {setting.name: setting.setting for setting in record.work.plan}
    present = {"all", settings["order_of_pairs"], *settings["orders"], *(work.source for work in record.work.sources)}
    if settings["counts_mios"]:
        present.add("subproblem trees")  # their account has the name of the solver
    return [setting for setting in record.work.plan if readers.get(setting.name, present) & present]


def _value_in_words(setting: PlanSetting) -> str:
    """Return the value of a setting with its unit."""
    value, unit = setting.setting, "" if setting.unit in ("-", "name", "names") else f" {setting.unit}"
    unit = unit.removesuffix("s") if value == 1 else unit
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    if value is None:
        return "no limit"
    return (value if isinstance(value, str) else f"{value:,.12g}") + unit


def print_sources(console: Console, record: Record) -> None:
    """Print the table of sources; nothing if the record has no such information.

    Parameters
    ----------
    console : rich.console.Console
        Console to print on.
    record : Record
        Record of a search.
    """
    if (table := source_table(record)) is not None:
        say(console, "cost and gain of each bounding method", style="bold")
        print_table(console, table.head, table.rows, text=table.head[:1])
        say(console, "gap closed: relative gap of the grid (100% at first) that the method closed", style="dim")


def plot_sources(record: Record, ax: Axes) -> Axes:
    """Draw the relative gap of the grid over time, coloured by the source that worked.

    Parameters
    ----------
    record : Record
        Record with the course of the gap.
    ax : matplotlib Axes
        Axes to draw on.
    """
    import matplotlib

    if not record.work.course:
        words = "requires the gap over time, which this record does not contain; choose another panel"
        raise BadInput(f"panel sources: {words}")
    figures.tidy(ax)
    colours = matplotlib.colormaps["tab10"]
    sources = list(dict.fromkeys(step.source for step in record.work.course))
    before, named = GapStep("", 0.0, 1.0), set()
    for step in record.work.course:
        label = "_" if step.source in named else step.source
        colour = colours(sources.index(step.source) % colours.N)
        ends = (before.seconds, step.seconds), (before.gap, step.gap)
        ax.plot(*ends, color=colour, linewidth=2.2, solid_capstyle="butt", label=label)
        named.add(step.source)
        before = step
    ax.set(xlabel="seconds", ylabel="relative gap", ylim=(-0.02, 1.04), xlim=(0.0, None))
    figures.write_title(ax, "Relative gap of the grid, by the bounding method at work")
    figures.draw_outer_legend(ax)
    return ax
