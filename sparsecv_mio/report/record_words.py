"""Sentences about a record: the certified part of the grid, the stability of the model, hints for further runs."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from sparsecv_mio.certificate.fit_records import CommonRecord, NearRecord, PathRecord
from sparsecv_mio.certificate.parts import FoldInfo, GridRequest, Stability
from sparsecv_mio.certificate.records import NO_AVERAGE, OWN_ERROR, Average, Record, Region, TableRow
from sparsecv_mio.certificate.restrictions import restrictions_of
from sparsecv_mio.data.dataset import MULTIPLICITY, Dataset
from sparsecv_mio.data.fold_plan import WEIGHTED
from sparsecv_mio.data.folds import OF_GROUPS, fold_name
from sparsecv_mio.digits import (
    abbreviate_list,
    format_interval,
    format_lower,
    format_number,
    format_upper,
    interval_digits,
    quoted_name,
    round_upward,
    several,
)
from sparsecv_mio.model_space import FEW_FEATURES, NONE, RANGE_SIGN, text_of_taus, words_of_terms
from sparsecv_mio.report.layout import ESTIMATE, mark_estimate
from sparsecv_mio.targets import LARGER_GAMMAS, split_event
from sparsecv_mio.units import ACCURATE_RTOL, BASELINES_SHARE, MAIN_SHARE, MODEL_SHARE, SO_FAR_GAP, TINY
from sparsecv_mio.words import Method, Model, Within


def describe_region(up_to_tau: int | None, from_gamma: float | None, taus: Sequence[int]) -> str:
    """Return a description of a part of the grid.

    Parameters
    ----------
    up_to_tau : int or None
        Largest tau up to which every gamma is included.
    from_gamma : float or None
        Smallest gamma from which every tau is included.
    taus : sequence of int
        Requested sizes.

    Returns
    -------
    str
        The description.

    Examples
    --------
    >>> describe_region(9, 1.0, range(1, 31)), describe_region(None, 0.5, [1, 2])
    ('tau 1:9 at every gamma, and every tau at gamma >= 1', 'every tau at gamma >= 0.5')
    """
    if up_to_tau == max(taus):
        return "the whole grid"
    parts = []
    if up_to_tau is not None:
        parts.append(f"tau {span([tau for tau in taus if tau <= up_to_tau])} at every gamma")
    if from_gamma is not None:
        parts.append(f"every tau at gamma >= {from_gamma:.4g}")
    return ", and ".join(parts)


NULL_IS_BETTER = "may predict better"  # part of the hint that is not on an edge of the grid
WHY_UNPROVED = {
    "limit": "reached its limit",
    "interrupted": "was interrupted",
    "doubtful": "found a disagreement with a refit of its answer and removed some bounds",
}


def describe_missing_proof(record: Record | PathRecord) -> str:
    """Return why a search ended before its answer was certified, its bounds and a remedy; empty after a proof."""
    if record.status == "proved":
        return ""
    answer = record.path[-1] if isinstance(record, PathRecord) else record
    without_limit = record.status == "limit" and record.request.time_limit is None
    why = "had no search step left" if without_limit else WHY_UNPROVED[record.status]
    upper = f"upper {format_upper(answer.upper)}" if math.isfinite(answer.upper) else "no upper bound yet"
    words = f"{why} before the answer was certified; certified bounds: lower {format_lower(answer.lower)}, {upper}"
    if isinstance(record, PathRecord):
        return words
    estimate = "the CV error is an estimate" if record.estimate else ""
    return "; ".join(filter(None, (words, estimate, _proof_hint(record))))


def search_space(record: Record) -> str:
    """Return the set of pairs over which the minimum CV error is certified."""
    if (continuous := record.continuous) is not None:
        return f"over every gamma from {format_number(continuous.low)} to {format_number(continuous.high)}"
    return "over every tau at this gamma" if record.descent else "over the grid"


def span(values: Collection[float]) -> str:
    """Return the smallest and the largest of some numbers as text.

    Examples
    --------
    >>> span([3, 4, 9]), span([0.001])
    ('3:9', '0.001')
    """
    low, high = min(values), max(values)
    return f"{low:.4g}" if low == high else f"{low:.4g}:{high:.4g}"


def open_rows(record: Record) -> list[TableRow]:
    """Return the pairs of a grid that may still have the minimum CV error, without the best one found."""
    chosen, rows = (record.certificate.gamma, record.certificate.tau), record.table if record.continuous is None else ()
    return [row for row in rows if row.status == "open" and (row.gamma, row.tau) != chosen]


def region_lines(record: Record) -> list[str]:
    """Return lines on the certified region of a record and on the pairs that are not excluded.

    No lines are returned for a fully certified grid, for a descent, and for records without this information.
    """
    rows = open_rows(record) if _has_open_pairs(record) else []
    return [*proved_region(record), *certified_so_far(record), *([_open_pairs_line(record, rows)] if rows else [])]


def proved_region(record: Record) -> list[str]:
    """Return a line on the region in which the best pair is certified, if there is one."""
    region = record.region
    if region is None or not _has_open_pairs(record):
        return []
    where = describe_region(region.up_to_tau, region.from_gamma, record.request.taus)
    return [f"certified for {where}: {_best_of_region(record, region)}"]


def certified_so_far(record: Record) -> list[str]:
    """Return lines on the pairs excluded without a complete proof, and the part certified within 1%."""
    so_far = record.so_far
    if so_far is None:
        return []
    pairs, taus = several(len(record.table), "pair"), record.request.taus
    counts = f"certified so far: {so_far.excluded:,} of {pairs} excluded by bound, {so_far.solved:,} solved"
    region, own, share = so_far.region, record.region, f"{100.0 * max(record.request.gap, SO_FAR_GAP):g}%"
    if region is None:
        return [f"{counts}; the choice is not yet certified within {share} at any gamma"]
    where = describe_region(region.up_to_tau, region.from_gamma, taus)
    if own is not None and where == describe_region(own.up_to_tau, own.from_gamma, taus):
        return [counts]  # the line on the certified region states more about the same pairs
    pair = f"tau = {region.tau}, gamma = {region.gamma:.4g}, CV error at most {format_upper(region.upper)}"
    return [counts, f"certified within {share} for {where}: no pair there is more than {share} better than {pair}"]


def _has_open_pairs(record: Record) -> bool:
    """Return True if a record states its open pairs: not for a fully certified grid or a descent."""
    return record.status != "proved" and not record.descent and any(row.status for row in record.table)


def _best_of_region(record: Record, region: Region) -> str:
    """Return a sentence on the best pair of a region."""
    is_inside = (region.up_to_tau is not None and region.tau <= region.up_to_tau) or (
        region.from_gamma is not None and region.gamma >= region.from_gamma
    )
    best = record.certificate
    if (region.gamma, region.tau) == (best.gamma, best.tau):
        which = "the reported pair" if record.least is None else "the pair with the minimum CV error"
        return f"{which} is the best pair there" if is_inside else f"no pair there is better than {which}"
    pair = f"tau = {region.tau}, gamma = {region.gamma:.4g}, CV error {format_number(region.cv_error)}"
    if is_inside:
        return f"the best pair there is {pair}"
    own = next((row for row in record.table if (row.gamma, row.tau) == (region.gamma, region.tau)), None)
    is_solved = own is not None and own.status == "decided"
    return f"no pair there is better than {'the best solved pair, ' if is_solved and best.estimate else ''}{pair}"


def _open_pairs_line(record: Record, rows: Sequence[TableRow]) -> str:
    """Return a line on the pairs that cannot be excluded, and their best estimate."""
    pairs = several(len(rows), "other pair")
    where = f"tau {span({row.tau for row in rows})}, gamma {span({row.gamma for row in rows})}"
    best, reported = min(row.cv_error for row in rows), record.certificate.cv_error
    has, theirs = ("it has", "its") if len(rows) == 1 else ("they have", "their smallest")
    known = sum(math.isfinite(row.cv_error) for row in rows)
    theirs += " estimated CV error"
    if known < len(rows):
        theirs += f", known for {known:,} of them,"
    estimate = f"{theirs} is not smaller than that of the best pair"
    if best == math.inf:
        estimate = f"{has} no CV error yet"
    elif reported > 0.0:
        worse = 100.0 * (best / reported - 1.0)
        shown = f"{worse:.0f}" if worse >= 9.95 else f"{worse:.2g}"
        comparison = f"{shown}% larger than" if worse >= 0.01 else "at most 0.01% larger than"
        estimate = f"{theirs} is {comparison} that of the best pair"
    return f"not excluded: {pairs} ({where}); {estimate}"


def data_line(record: Record | CommonRecord, data: Dataset | None = None) -> str:
    """Return a line on the rows, the features and the folds of a record.

    Parameters
    ----------
    data : Dataset, optional
        Data of the record, for the numbers of rows of the file, of groups and of the positive class, or the sum of the
        counts.
    """
    about, limits = record.data, record.request.restrictions or NONE
    n = about.n if data is None else data.split_into_cases()[0].n
    rows = f"{n:,} rows"
    if about.reading is not None and about.reading.left_out:
        rows += f" ({about.reading.left_out:,} more dropped because of missing values)"
    if about.trials is not None:
        trials = about.total_weight if data is None else data.aux[MULTIPLICITY].sum()
        rows += f"{' of outcomes' if data is None else ''} with {trials:,.12g} trials ({quoted_name(about.trials)})"
    if grouped := count_groups(record.folds, data):
        rows += f" in {several(grouped[1], 'group')} of {quoted_name(grouped[0])}"
    if about.weights is not None:
        rows += f", weighted by {quoted_name(about.weights)}"
    if about.offset is not None:
        rows += f", offset {quoted_name(about.offset)}"
    if about.trials is None and record.classes is not None and data is not None:
        rows += f", {int((data.y > 0.0).sum()):,} with {quoted_name(about.target)} = {record.classes.positive}"
    if record.counts is not None and data is not None:
        rows += f" with a total count of {data.y.sum():,.0f}"
    features = several(limits.n_selectable_features(about.p), limits.unit_of_tau)
    adjusted = f" and {several(len(limits.adjust), 'adjustment column')}" if limits.adjust else ""
    return f"{rows}; {features}{adjusted}; {describe_folds(record.folds)}"


def event_lines(record: Any, data: Dataset | None = None) -> list[str]:
    """Return a line on the events of survival times, their definition, censoring, ties, entry times and strata.

    Parameters
    ----------
    data : Dataset, optional
        Data of the record, for the number of strata.
    """
    about, limits = record.data, restrictions_of(record)
    if about.n_events is None:
        return []
    column, value = split_event(about.event)
    events = f"{about.n_events:,} events ({quoted_name(column)}{'' if value is None else f' = {value}'})"
    share = count_events_per_coefficient(record)
    of_model = "" if share is None else f"{share:.1f} events per coefficient of the model"
    if about.has_matched_sets:
        sets = f"matched sets ({quoted_name(about.strata)}), each with one case and equal times"
        return ["; ".join(filter(None, (events, of_model, f"{sets}: conditional logistic regression")))]
    n_terms = max(limits.n_selectable_features(about.p), 1)
    n_strata = "" if data is None or data.survival is None else f"{data.survival.n_strata:,} "
    parts = [
        f"{events}, {100.0 * (1.0 - about.n_events / about.n):.0f}% of the rows censored",
        f"{about.n_events / n_terms:.1f} events per candidate {limits.unit_of_tau}",
        of_model,
        describe_follow_up(data),
        f"ties by {about.ties.capitalize()}",
        about.entry and f"delayed entry ({quoted_name(about.entry)})",
        about.strata and f"{n_strata}strata ({quoted_name(about.strata)})",
    ]  # fmt: skip
    return ["; ".join(filter(None, parts))]


def count_events_per_coefficient(record: Any) -> float | None:
    """Return the number of events over that of the coefficients of a model; None without events or a coefficient.

    All levels of a factor count as one coefficient less, since only their differences have an effect.

    Parameters
    ----------
    record : Record, PathRecord or FitRecord
        Record.
    """
    used = set(getattr(record, "coefficients", ()))
    n_coefficients = len(used) - sum(used.issuperset(columns) for columns in restrictions_of(record).count)
    n_events = record.data.n_events
    return n_events / n_coefficients if n_events is not None and n_coefficients > 0 else None


def describe_follow_up(data: Dataset | None) -> str:
    """Return the median follow-up of survival times; empty without data, or if it is not reached.

    Parameters
    ----------
    data : Dataset, optional
        Data of a record.
    """
    if data is None or data.survival is None:
        return ""
    from sparsecv_mio.problem.survival_curves import find_median_follow_up  # other data do not need this import

    median = find_median_follow_up(data)
    return "" if math.isnan(median) else f"median follow-up {format_number(median, 4)} (reverse Kaplan-Meier)"


def count_groups(folds: FoldInfo, data: Dataset | None) -> tuple[str, int] | None:
    """Return the column and the number of the groups that folds keep together; None without groups or data.

    Parameters
    ----------
    folds : FoldInfo
        Folds of a record.
    data : Dataset, optional
        Data of the record.
    """
    kind, _, column = folds.spec.removesuffix(WEIGHTED).partition(":")
    column = column if folds.seed is None else column.rpartition(":")[0]
    ids = None if data is None or kind.lower() != "groups" else data.aux.get(column)
    return None if ids is None else (column, len(set(ids.tolist())))


def describe_folds(folds: FoldInfo) -> str:
    """Return the number, the kind and the seed of folds.

    Examples
    --------
    >>> describe_folds(FoldInfo("10", 0, 10, "")), describe_folds(FoldInfo("groups:who", None, 60, ""))
    ('10 random folds (seed 0)', "60 folds, one for each value of 'who'")
    >>> describe_folds(FoldInfo("5 of whole groups (groups:who:10)", 0, 5, ""))
    '5 folds of whole groups (seed 0)'
    """
    kind, _, value = folds.spec.removesuffix(WEIGHTED).partition(":")
    kind, count = kind.lower(), several(folds.k, "fold")
    seed = "" if folds.seed is None else f" (seed {folds.seed})"
    if OF_GROUPS in folds.spec:
        return f"{count}{OF_GROUPS}{seed}"
    groups = f"{OF_GROUPS} of {value.rpartition(':')[0]!r}" if seed else f", one for each value of {value!r}"
    gap = f", with a gap of {value.partition(':')[2]} rows" if ":" in value else ""
    in_order = f" in the order of the rows, each predicted from the rows before it{gap}"
    own_words = {
        "loo": " of one row (leave-one-out)", "forward": in_order, "groups": f"{groups}{seed}",
        "column": f" from the column {value!r}", "file": f" from the file {value!r}",
    }  # fmt: skip
    if kind in own_words or not seed:
        return f"{count}{own_words.get(kind, ' given in Python')}"
    once, repeats = folds.k // folds.repeats, f", {folds.repeats} times" if folds.repeats > 1 else ""
    kind = kind.partition("x")[2] or kind
    if kind == "holdout":
        return f"1 fold: a random {100.0 * float(value):g}% of the rows, held out{repeats}{seed}"
    words = {"stratified": " random folds, stratified by the outcome", "blocks": f" random blocks of {value} rows"}
    return f"{once:,}{words.get(kind, ' random folds')}{repeats}{seed}"


def stability_lines(record: Record, data: Dataset | None = None) -> list[str]:
    """Return lines on the folds that chose each feature, and on the largest change that a fold makes, or why not.

    For folds in time order the change is described only on request. The first models are fitted to few rows, so their
    losses differ from those of the full-data model even if no fold is influential.

    Parameters
    ----------
    data : Dataset, optional
        Data of the record, for the name of a fold that the user numbered.
    """
    lines, stable = selection_lines(record), record.stability
    if not record.wording.is_sum_over_rows or (is_in_time_order(record) and record.request.stability is None):
        return lines  # without losses of single rows, a fold has no influence on them
    return [*lines, _no_change(record) if stable is None else _change(record, stable, data)]


def _no_change(record: Record) -> str:
    """Return the reason why the effect of holding out a fold on the losses of rows is unknown."""
    request = record.request
    within = {
        "imputed values": ("--na-within folds", request.na_within),
        "scales": ("--scale-within folds", request.scale_within),
    }
    if own := {name: option for name, (option, rows) in within.items() if rows == Within.FOLDS}:
        why = f"because each fold has its own {' and '.join(own)} ({' and '.join(own.values())})"
    elif has_unknown_fold(record):
        why = "because not every fold has a model with a finite held-out loss"
    elif record.status != "proved":
        why = "because the run ended before this computation"
    else:
        why = "because it takes long for this number of folds and rows; --stability 0 computes it"
    return f"most influential fold: not computed, {why}"


def common_stability(record: CommonRecord) -> str:
    """Return a note that records of common subsets have no stability of the choice, and an alternative."""
    losses = record.wording.losses
    return (
        f"stability: all {record.folds.k:,} folds have these features by definition (--criterion common); for the "
        f"influence of each fold on the {losses}, use --criterion folds"
    )


def selection_lines(record: Record) -> list[str]:
    """Return a line on how many folds choose each feature of the model, and on other features that folds choose."""
    total, factors = record.folds.k, (record.request.restrictions or NONE).count
    chosen = {words_of_terms([name], factors)[0]: count for name, count in reversed(record.chosen_in().items())}
    counts = dict(reversed(chosen.items()))  # columns of a factor are one feature, with the count of the first one
    if not counts:
        return []
    unknown = sum(not math.isfinite(error) for error in record.chosen_folds.error.tolist())
    k = total - unknown  # a fold without a known model selects nothing
    rows = "on the rows before one fold" if is_in_time_order(record) else "without one fold"
    fitted = f"{k:,} {'known ' if unknown else ''}fold models (each fitted {rows})"
    unsolved, head = total - int(sum(record.chosen_folds.decided)) if record.estimate else 0, "stability"
    if unsolved:
        many = "no fold is solved yet" if unsolved == total else f"{unsolved:,} of {total:,} folds are not solved"
        head = f"stability (estimate: {many})"
    model = set(words_of_terms(record.support, factors))
    line = f"{head}: {_compare_with_folds(counts, model, k, fitted, restrictions_of(record).unit_of_tau)}"
    if seen := record.seen_folds:
        agree = f"{several(seen, 'fold')} agree{'s' if seen == 1 else ''}"
        line += f"; {agree} by construction: {'it uses' if seen == 1 else 'they use'} the features of this model"
    return [line]


def is_in_time_order(record: Record) -> bool:
    """Return True if each fold is scored by a model of earlier rows only."""
    return record.folds.spec.lower().startswith(("forward:", "splitter:timeseriessplit"))


def _change(record: Record, stable: Stability, data: Dataset | None) -> str:
    """Return a line on the fold that changes the losses of rows most when it is held out."""
    value = mark_estimate(format_number(stable.instability, 4), stable.estimate)
    losses, loss = record.wording.losses, record.wording.row_loss
    share = f" ({100.0 * stable.instability / record.cv_error:.0f}% of the CV error)" if record.cv_error > 0.0 else ""
    ends = f"; the certified change is in {format_interval(stable.instability_lower, stable.instability_upper, 4)}"
    if stable.instability == 0.0 and not stable.estimate:
        return f"most influential fold: none; holding out a fold does not change the {losses}"
    name = fold_name(record.folds.spec, data, stable.fold) if data is not None else ""
    which = f"fold {stable.fold + 1} of {record.folds.k:,}{f' ({name})' if name else ''}"
    rows = "only on the rows before it" if is_in_time_order(record) else "without its rows"
    change = f"refitting the model {rows} changes the {loss} of a {record.data.unit_of_errors} by {value} on average, "
    change += "in absolute value"
    return f"most influential fold: {which}; {change}{share}{ends if stable.estimate else ''}"


def average_lines(record: Record) -> list[str]:
    """Return lines on the averaged model, which predicts instead of the model of the pair; empty without one.

    Parameters
    ----------
    record : Record
        Record of a search.
    """
    average = record.average
    if average is None:
        return [NO_AVERAGE] if record.request.model == Model.AVERAGE else []
    lines = [f"averaged model, used for predictions: {_describe_averaged_pairs(record, average)}"]
    lines.append(_describe_approximation(record, average))
    open_pairs = sum(pair.estimate for pair in average.used)
    if open_pairs:
        which = "pair is" if open_pairs == 1 else "pairs are"
        lines.append(f"{open_pairs} averaged {which} not solved in every fold, so estimates enter the average")
    within, advice = average.within_folds, "; --own-error or --nested K estimates the error of the averaged model"
    has_error = record.nested is not None or within is not None
    lines.append(
        f"the CV error and its interval refer to the pair, not to the averaged model{'' if has_error else advice}"
    )
    if within is not None:
        why = "optimistic, because the weights depend on the held-out rows; --nested K avoids this bias"
        lines.append(f"{OWN_ERROR}: {format_number(within.error)} ({why})")
    return lines


def _describe_averaged_pairs(record: Record, average: Average) -> str:
    """Return the models that are averaged, and the size of the model that approximates them."""
    size = several(len(average.model.support), "feature")
    if len(average.used) == 1:
        return f"the model of the best pair alone (no other pair is near-optimal), approximated with {size}"
    n_ridge = sum(pair.tau > max(record.request.taus) for pair in average.used)
    fits = "is a ridge fit" if n_ridge == 1 else "are ridge fits"
    ridge = f" ({n_ridge} of them {fits} of all features)" if n_ridge else ""
    return f"the average of {len(average.used)} near-optimal pairs{ridge}, approximated with {size}"


def _describe_approximation(record: Record, average: Average) -> str:
    """Return a line on the error of the approximation, and on the rule that chose its size."""
    exact = "the average" if len(average.used) > 1 else "the model of the pair"
    share = 100.0 * average.missed / max(record.cv_error, TINY)
    proof = "certified best subset" if average.model.proved else "best subset found"
    total = record.data.total_weight or record.data.n
    is_smallest = average.fewer is None or average.fewer > average.allowed * total
    rule = f"the smallest size{'' if is_smallest else ' found'} with a difference of at most 0.5%; {proof}"
    if average.missed > average.allowed:  # of no size; the largest one has the smallest difference
        rule = f"the largest requested size, because no size has a difference of at most 0.5%; {proof}"
    return f"the approximation differs from {exact} by {share:.2g}% of the CV error ({rule})"


def choice_lines(record: Record) -> list[str]:
    """Return lines on the pair chosen with a weight of the instability; empty without a requested weight."""
    chosen = None if record.stability is None else record.stability.chosen
    if chosen is None:
        unknown = "stable pair: not known, because the limit was reached before all folds had a model"
        return [unknown] if record.stability is None and record.request.stability else []
    digits, proof = interval_digits([(chosen.lower, chosen.upper)]), "certified" if chosen.proved else "not certified"
    criterion = f"the pair with the minimum of CV error + {format_number(chosen.weight)} x instability ({proof})"
    minimum = f"the minimum is in {format_interval(chosen.lower, chosen.upper, digits)}"
    lines = [f"stable pair: {criterion}; {minimum}"]
    if chosen.outer is not None:
        tried = chosen.tried
        errors = (f"{format_number(weighed.error, 4)} with {format_number(weighed.weight)}" for weighed in tried)
        folds = f"nested CV over {outer_folds(len(tried[0].folds), chosen.outer.k)} chose the weight"
        lines.append(f"{folds} {format_number(chosen.weight)}; errors by weight: {', '.join(errors)}")
    return lines


def fold_models(record: Record) -> str:
    """Return a bound on the training objective of every fold model; empty if unknown or uninformative."""
    if (gap := record.training_gap) is None or not gap < 1.0:
        return ""
    return f"at most {format_share_bound(gap)} above its minimum"


def format_share_bound(share: float) -> str:
    """Return a share below 1 in per cent, rounded up to two digits.

    Examples
    --------
    >>> format_share_bound(0.01101), format_share_bound(0.25), format_share_bound(3e-9)
    ('1.2%', '25%', '0.01%')
    """
    return f"{round_upward(100.0 * max(share, 1e-4) - ACCURATE_RTOL):.3g}%"  # the product may be rounded up


def n_unsolved_pairs(record: Record) -> int:
    """Return the number of unsolved pairs of a proved record, if all were to be solved (`--gap 0`)."""
    if record.status != "proved" or record.request.gap > 0.0 or record.descent or record.continuous is not None:
        return 0
    return sum(row.folds_decided < row.folds for row in record.table)


def stop_reason(record: Record) -> str:
    """Return the reason why a run ended with unsolved pairs."""
    limit = _search_limit(record)
    if limit is not None and record.work.seconds >= WHOLE_LIMIT * limit:
        return "limit reached"
    return "interrupted" if record.request.mio_budget is None else "MIO budget used up"


MOST_LISTED_GAMMAS = 8  # gammas that a hint lists one by one; it gives a range for more
DECADE = 10.0  # factor by which a hint extends a grid of gammas
EQUAL_RATIOS = 1e-6  # relative difference up to which the ratios of neighbouring gammas are equal
WHOLE_LIMIT = 0.95  # share of a time limit, from which the limit counts as the reason for the end
AT_AN_END = 1e-3  # share of the logarithmic interval of gamma within which an optimum is at its edge
MIN_GAIN = 1e-3  # share of the CV error that smaller gammas must be able to gain before a hint proposes them; R^2, from
# which no hint proposes tau 0
BISECTIONS = 50  # bisections of [0.5, 1] to full precision
AS_GOOD = 0.5  # rows; accuracies that differ by less are equal
SLIGHT_RIDGE = 1e-6  # smaller weights hardly change the fit: no wider range is proposed


def limit_words(asked: GridRequest) -> str:
    """Return the time limit of a request as text."""
    return "none" if asked.time_limit is None else f"{asked.time_limit:g} s"


def _search_limit(record: Record | PathRecord | NearRecord | CommonRecord) -> float | None:
    """Return the seconds available to the search, without those for outer folds, baselines and the final model."""
    limit = record.request.time_limit
    if limit is None or not isinstance(record, Record):
        return limit
    request = record.request
    if record.nested is not None:
        limit *= MAIN_SHARE / (record.nested.outer.k + MAIN_SHARE)
    if request.model == Model.AVERAGE or request.na_within is not None or request.scale_within is not None:
        limit *= 1.0 - MODEL_SHARE
    return limit if record.baselines is None else (1.0 - BASELINES_SHARE) * limit


def has_stopped_early(record: Record | PathRecord | NearRecord | CommonRecord) -> bool:
    """Return True if a run without a proof ended before its time limit, so a longer one would not help."""
    limit = _search_limit(record)
    return record.status == "limit" and (limit is None or record.work.seconds < WHOLE_LIMIT * limit)


def has_unknown_fold(record: Record) -> bool:
    """Return True if some fold of the reported pair has no model with a finite held-out loss."""
    return not all(map(math.isfinite, record.chosen_folds.error.tolist()))


def reason_of_early_end(record: Record) -> str:
    """Return the option that ended a run without a proof before its time limit; empty if none did."""
    if is_budget_spent(record):
        return f"the --mio-budget of {record.request.mio_budget:,} is used up"
    if record.request.method == Method.BOUNDS:
        return "--method bounds does not branch"
    return "in some fold, no model has a finite held-out loss" if has_unknown_fold(record) else ""


def is_budget_spent(record: Record) -> bool:
    """Return True if a run has used the requested number of mixed-integer optimisation problems."""
    budget = record.request.mio_budget
    return budget is not None and record.work.mios >= budget


def hints(record: Record) -> list[str]:
    """Return hints: one for each edge of the grid on which the best pair lies, if the grid can be extended there.

    It cannot be extended beyond tau = p or the number of rows of a training set. If some pairs have no CV error, a hint
    proposes a search that tries them. If a limit came before the proof, a hint names options that would complete it.
    """
    if has_stopped_early(record) and not record.descent:
        return [_hint_on_early_end(record)]
    if record.estimate and not record.descent and not all(math.isfinite(row.cv_error) for row in record.table):
        more = "a longer --time-limit or a smaller grid (--gamma, --tau) lets the search evaluate and certify"
        return [f"{more} more pairs"] if record.request.time_limit is not None else []
    others = _full_model_hint(record), _weight_hint(record), _accuracy_hint(record)
    return list(filter(None, (_proof_hint(record), *edge_hints(record), *others)))


def _full_model_hint(record: Record) -> str:
    """Return a hint on the one-standard-error rule if the model with the minimum CV error has every term."""
    limits, own = restrictions_of(record), record.own_row
    n_terms = limits.n_selectable_features(record.data.p)
    is_full = record.least is None and limits.features(record.support) == n_terms > min(record.request.taus)
    if not is_full or record.one_se is not None or own is None or own.standard_error is None:
        return ""
    cutoff = record.cv_error + own.standard_error
    simplest = min((row for row in record.table if row.lower <= cutoff), key=lambda row: (row.tau, -row.gamma))
    rule = "--one-se reports the smallest tau with a CV error within one standard error"
    if simplest.tau < record.tau and simplest.upper <= cutoff and not record.estimate:
        rule = f"--one-se would report tau = {simplest.tau}, gamma = {format_number(simplest.gamma, 4)}"
        rule += f", CV error {mark_estimate(format_number(simplest.cv_error), simplest.estimate)}"
    return f"tau = {record.tau} keeps every {limits.unit_of_tau}; {rule}"


def within_restrictions(record: Any) -> str:
    """Return a clause on the restrictions that forbid models; empty without one, since counted factors forbid none."""
    return " within the restrictions" if replace(restrictions_of(record), count=()) else ""


def _weight_hint(record: Record) -> str:
    """Return a hint if nested cross-validation chose the largest tried weight of the instability."""
    chosen = None if record.stability is None else record.stability.chosen
    if chosen is None or chosen.outer is None or chosen.weight < max(trial.weight for trial in chosen.tried):
        return ""
    more = f"--stability {format_number(3.0 * chosen.weight)} --nested {chosen.outer.k}"
    weight = format_number(chosen.weight)
    return f"the weight {weight} is the largest one tried; {more} computes the error of a larger weight"


def _accuracy_hint(record: Record) -> str:
    """Return a hint if the accuracy equals that of predicting the larger class, with a better measure."""
    classes = record.classes
    if classes is None or classes.accuracy is None or record.data.offset is not None:
        return ""
    larger = larger_class(classes.null_error)
    if classes.accuracy > larger + AS_GOOD / record.data.n:
        return ""
    always = f"the model is not more accurate than always predicting the larger class ({100.0 * larger:.1f}%)"
    return f"{always}: judge it by AUC and log loss; `predict --threshold P` predicts the smaller class for more rows"


def larger_class(null_error: float) -> float:
    """Return the share of the larger of two classes, from the log loss of the class frequencies.

    Examples
    --------
    >>> round(larger_class(-0.9 * math.log(0.9) - 0.1 * math.log(0.1)), 6), larger_class(math.log(2.0))
    (0.9, 0.5)
    """
    low, high = 0.5, 1.0
    for _ in range(BISECTIONS):  # scipy.optimize loads slower than this loop runs
        share = 0.5 * (low + high)
        entropy = -share * math.log(share) - (1.0 - share) * math.log(1.0 - share)
        low, high = (share, high) if entropy > null_error else (low, share)
    return low


def edge_hints(record: Record) -> list[str]:
    """Return the hints on the edges of the grid only."""
    return [text for text in (_gamma_hint(record), _tau_hint(record)) if text]


def _proof_hint(record: Record) -> str:
    """Return the options that are expected to complete the proof."""
    rows, advice = open_rows(record), record.advice
    if advice is None or not rows:
        return ""
    parts = [f"--{name} {value}" for name, value in (("tau", advice.tau), ("gamma", advice.gamma)) if value]
    proved = f"the smaller grid {' or '.join(parts)} is certified already" if parts else _simpler(record, rows)
    if record.request.time_limit is None:
        return proved
    longer = "a longer --time-limit tightens the bounds, and --time-limit none runs until the choice is certified"
    if advice.time_limit is not None:
        longer = f"--time-limit {advice.time_limit:.0f} may certify the whole grid (extrapolated from the cost so far)"
    return "; ".join(filter(None, (proved, longer)))


def _simpler(record: Record, rows: Sequence[TableRow]) -> str:
    """Return the sizes up to that of the best pair, if they halve the number of open pairs at least."""
    best = record.certificate.tau
    simple = sum(row.tau <= best for row in rows)
    if 2 * simple > len(rows):
        return ""
    taus = text_of_taus(tau for tau in record.request.taus if tau <= best)
    return f"--tau {taus} (no larger models) reduces the number of open pairs from {len(rows):,} to {simple:,}"


def _edge(record: Record, name: str) -> str:
    return f"the best {name}" if record.least is None else f"the {name} of the minimum CV error"


def _gamma_hint(record: Record) -> str:
    """Return a hint if the best gamma is at an end of the grid that other gammas would move."""
    every = record.continuous
    gammas = record.request.gammas if every is None else (every.low, every.high)
    least, most = min(gammas), max(gammas)
    if least == most or (every is not None and record.status != "proved"):
        return ""
    near = 1.0 if every is None else (most / least) ** AT_AN_END
    best = record.certificate  # a rule prefers large gammas, so its pair may well be at an edge
    if best.tau == 0 or (best is record and not record.support):  # gamma has no effect on a model without features
        return ""
    is_smallest = best.gamma <= least * near and least > SLIGHT_RIDGE
    if is_largest := best.gamma * near >= most:
        low, high = least, most * DECADE
    elif is_smallest and _gain_of_smaller_gammas(record, best.tau) >= MIN_GAIN:
        low, high = least / DECADE, most
    else:
        return ""
    wider = f"{low:.4g}{RANGE_SIGN}{high:.4g}" if every is not None else extend_gammas(gammas, upwards=is_largest)
    end = "largest" if is_largest else "smallest"
    space = "grid" if every is None else "interval"
    return f"{_edge(record, 'gamma')} is the {end} of the {space}; try --gamma {wider}"


def extend_gammas(gammas: Sequence[float], upwards: bool) -> str:
    """Return a grid of gammas as text that contains a given grid and extends it by a factor of ten.

    Parameters
    ----------
    gammas : sequence of float
        Gammas, of which one at least is positive.
    upwards : bool
        True to add larger gammas, False to add smaller ones.

    Examples
    --------
    >>> extend_gammas([0.01, 0.1, 1.0], upwards=True), extend_gammas([0.01, 0.1, 1.0], upwards=False)
    ('0.01:10:4', '0.001:1:4')
    >>> extend_gammas([0.1, 0.25, 1.0], upwards=False), extend_gammas([1e-4, 1.0], upwards=True)
    ('0.01,0.03162,0.1,0.25,1', '0.0001,1,3.162,10')
    >>> extend_gammas([0.0, 1.0], upwards=True)
    '0,1,3.162,10'
    """
    ordered = sorted(set(gammas))
    positive = [gamma for gamma in ordered if gamma > 0.0]
    least, most, steps = positive[0], positive[-1], len(positive) - 1
    ratio = (most / least) ** (1.0 / max(steps, 1))
    even = all(abs(b / (a * ratio) - 1.0) < EQUAL_RATIOS for a, b in pairwise(ordered) if a > 0.0)
    as_range = steps > 0 and len(positive) == len(ordered) and even and ratio <= DECADE * (1.0 + EQUAL_RATIOS)
    if as_range or len(ordered) > MOST_LISTED_GAMMAS:
        added = max(math.ceil(math.log(DECADE) / math.log(ratio) - EQUAL_RATIOS), 1)
        end = (most if upwards else 1.0 / least) * ratio**added
        low, high = (least, end) if upwards else (1.0 / end, most)
        return f"{low:.6g}:{high:.6g}:{steps + 1 + added}"
    new = [most * math.sqrt(DECADE), most * DECADE] if upwards else [least / DECADE, least / math.sqrt(DECADE)]
    old = [f"{gamma:.12g}" for gamma in ordered]
    more = [f"{gamma:.4g}" for gamma in new]
    return ",".join([*old, *more] if upwards else [*more, *old])


def _gain_of_smaller_gammas(record: Record, tau: int) -> float:
    """Return the share of a CV error that gammas below the grid may gain, by a line through the two smallest gammas.

    The share is infinite if the two CV errors are not both known.
    """
    if LARGER_GAMMAS in " ".join(record.warnings):  # separated classes: smaller gammas only overfit
        return 0.0
    rows = sorted((row for row in record.table if row.tau == tau), key=lambda row: row.gamma)
    if record.continuous is not None or len(rows) < 2 or rows[0].estimate or rows[1].estimate:
        return math.inf
    (low, at_low), (high, at_high) = ((row.gamma, row.cv_error) for row in rows[:2])
    return abs(at_high - at_low) * low / (high - low) / max(at_low, TINY)


def _tau_hint(record: Record) -> str:
    """Return a hint if the best model size is an edge of the requested sizes, or the null model predicts better."""
    taus, best = record.request.taus, record.certificate.tau
    least, most, limits = min(taus), max(taus), record.request.restrictions or NONE
    from_0 = f"--tau 0:{most}"
    if least > 0 and (null := _compare_with_null_model(record)):
        return f"{null}: {from_0} includes it"
    if least == most:
        return ""
    held_out = -(-record.data.n // max(record.folds.k, 2))
    natural = max(1, min(limits.n_selectable_features(record.data.p), record.data.n - held_out - 1))
    below, edge = max(size for size in taus if size < most), _edge(record, "tau")
    if most == natural > FEW_FEATURES and below < natural - 1 and best >= below:
        reason = f"has the largest requested size below {most} (all features)"
        if best == most:
            reason = "is the ridge fit of all features"
        return f"{_edge(record, 'model')} {reason}: --tau {below + 1}:{most - 1} tries the sizes in between"
    if best == most < natural:
        return f"{edge} is the largest of the grid; try --tau {least}:{min(2 * most, natural)}"
    if best == least == 1:
        if record.r_squared is not None and record.r_squared >= MIN_GAIN:  # the null model predicts worse
            return ""
        return f"{edge} is the smallest of the grid: {from_0} includes the model without features"
    if best == least > 0:
        return f"{edge} is the smallest of the grid; try --tau {least // 2}:{most}"
    return ""


def _compare_with_null_model(record: Record) -> str:
    """Return that the model without features may be better, or within one standard error; empty otherwise."""
    null = "R^2 is below 0, so the mean of the target" if record.loss.is_quadratic else "a model without features"
    if record.r_squared is not None and record.r_squared < 0.0:
        return f"{null} {NULL_IS_BETTER}"
    if record.gain_error is None or (record.null_error or 0.0) - record.cv_error > record.gain_error:
        return ""
    return f"{null} {NULL_IS_BETTER}, since the gain over it is at most one standard error"


def estimate_line(decided: int, folds: int, side: str = "") -> str:
    """Return the reason why a CV error is an estimate.

    Parameters
    ----------
    decided, folds : int
        Number of solved folds, and of all folds.
    side : str
        Text of the record on folds that use the features of the full-data model.

    Examples
    --------
    >>> estimate_line(0, 10)
    '~ an estimate: no fold is solved yet, and each fold uses the best subset found so far'
    >>> estimate_line(7, 10)
    '~ an estimate: 7 of 10 folds are solved, and the other folds use the best subset found so far'
    """
    some, others = "no fold is solved yet", "each fold uses"
    if decided:
        some = f"{decided:,} of {several(folds, 'fold')} {'is' if decided == 1 else 'are'} solved"
        others = "the other folds use" if folds - decided > 1 else "the other fold uses"
    end = f"; it is {side}" if side else ""
    return f"{ESTIMATE} an estimate: {some}, and {others} the best subset found so far{end}"


def outer_folds(done: int, k: int) -> str:
    """Return the number of outer folds that were searched as text."""
    return f"{k} outer folds" if done == k else f"{done} of {k} outer folds"


def _hint_on_early_end(record: Record) -> str:
    """Return a hint for a run that ended without a proof before its time limit."""
    easier = "a larger gamma, a smaller tau or fewer columns make a proof easier"
    why = f"more time would not help: {reason_of_early_end(record) or 'no step of the search is left'}"
    if is_budget_spent(record):
        return f"{why}; a larger budget may complete the proof, and {easier}"
    if record.request.method == Method.BOUNDS:
        return f"{why}; --method auto continues until a proof"
    if has_unknown_fold(record):
        return f"{why}; give a larger gamma, or check the rows of the folds that are not solved"
    return f"{why}, because rounding errors hide which subsets are best; {easier}"


def _compare_with_folds(counts: Mapping[str, int], model: set[str], k: int, fitted: str, unit: str) -> str:
    """Return which features of a model all folds choose, and the counts of the other features."""
    n_common = sum(count == k for name, count in counts.items() if name in model)
    some = [f"{quoted_name(name)} by {count:,}" for name, count in counts.items() if name in model and count < k]
    besides = [f"{quoted_name(name)} by {count:,}" for name, count in counts.items() if name not in model]
    common = f"all {fitted} select the {unit}s of this model"
    if n_common < len(model):
        common = f"no {unit} of this model is selected by all {fitted}"
        if n_common:
            features, verb = several(len(model), unit), "is" if n_common == 1 else "are"
            common = f"{n_common} of the {features} of this model {verb} selected by all {fitted}"
    clauses = [f"{common}, {abbreviate_list(some)}" if some else common]
    clauses += [f"other selected {unit}s: {abbreviate_list(besides)}"] if besides else []
    return "; ".join(clauses)
