"""Functions for `sparsecv inspect`: they describe columns, find suspicious columns, and propose options."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.column_choice import Wanted
from sparsecv_mio.data.column_faults import find_faults
from sparsecv_mio.data.columns import RawColumn, RawTable, is_unreadable
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import fold_columns, make_folds
from sparsecv_mio.data.loss_targets import (
    affirmative_class,
    as_counts,
    as_two_classes,
    check_training,
    expand_trials,
    with_offsets,
)
from sparsecv_mio.data.missing_and_text import (
    describe_absent_level,
    describe_codes,
    find_total_row,
    number_dates,
    rows_of_sums,
    rows_without_data,
    skipped_lines,
)
from sparsecv_mio.data.number_format import DAYS, WORDS, describe_ambiguous, describe_formats
from sparsecv_mio.data.readers import name_lines, read_raw, read_with_options
from sparsecv_mio.data.reading_options import ABSENT, Reading, feature_names, order_text
from sparsecv_mio.data.row_structure import (
    CENTRE,
    FEW_ROWS,
    ID,
    IN_ORDER,
    SURE_LEVELS,
    Subjects,
    TimeOrder,
    find_subjects,
    has_subject_name,
    is_name_like,
    numbers_rows,
    quote_names,
    time_order,
)  # fmt: skip
from sparsecv_mio.data.standard import CODES, code_of_column, find_code, standardize
from sparsecv_mio.data.survival_columns import collect_survival_warnings, with_survival
from sparsecv_mio.data.weights import apply_weight_column, least_rows
from sparsecv_mio.declared_options import DEALING
from sparsecv_mio.digits import abbreviate_list, plural, several
from sparsecv_mio.errors import BadInput, did_you_mean
from sparsecv_mio.model_space import EVERY_FACTOR, FACTORS, Restrictions, abbreviate_names
from sparsecv_mio.targets import (
    DEFAULT_LOSS,
    LARGER_GAMMAS,
    NO_TARGET_COLUMNS,
    Loss,
    TargetColumns,
    Values,
    find_loss_of_values,
    find_losses_of_option,
)
from sparsecv_mio.thresholds import FEW_FOLDS, SMALL
from sparsecv_mio.units import ACCURATE_RTOL, OUTWARD, TINY
from sparsecv_mio.words import Encode, Intercept, Missing, Scale, Within

NAMED_CORRELATION = 0.95  # absolute correlation from which `inspect` names two columns
ROUNDED_COPIES = 1.0 - 1e-5  # correlation from which two columns may differ by rounding, as kilograms and pounds to 0.1
NEAR_COPIES = 0.999  # absolute correlation from which a search names two columns
NOTED_ROWS, NOTED_COLUMNS = 2000, 300  # size up to which a search looks for nearly collinear columns: 20 ms
MOST_CORRELATED = 2000  # columns, beyond which correlations are not computed
MOSTLY_EMPTY = 0.5
MAX_CODES = 6  # different whole numbers of a column, up to which they may be codes of categories
UNREADABLE = "mixed"  # kind of a column with cells that are neither numbers nor text values
NEARLY_EVERY = 0.9  # distinct values as a share of the rows, from which a column names its rows
DEFAULT_FOLDS = int(DEALING["folds"])  # default folds of `solve`
LONG_TAIL = 1.5  # skewness from which a target has a long tail; the exponential distribution has 2
FEW_ROWS_LOST = 0.05  # share of rows with missing cells, up to which dropping them is proposed
MOST_ROWS_LOST = 0.5  # the same for rows in time order, where means over all rows would use later rows
RISES_WITH = 0.8  # correlation with counts from which a column may be an exposure
MAX_COMPARED_NUMBERS = 5_000_000  # numbers of a table, up to which rows are compared: about 0.1 s
CHANCE_COPIES = 20.0  # duplicate rows per expected pair of equal rows, up to which they may be due to chance
MIN_COPIES_SHARE = 0.01  # share of duplicate rows, up to which they are not reported
FACTORS_TOGETHER = f"--count {FACTORS}"  # option proposed if levels enter together
RANDOM_FOLDS = re.compile(r"(\d+(x\d+)?|loo|stratified:\d+|holdout:.*?)( weighted)?")
EXPOSURE = re.compile(
    r"(?i:(.*[_. -])?(exposures?|expo|offset|duration|days|hours|weeks|months|years|person[_. -]?years|population|pop|"
    r"km|miles|distance|area|holders?|insured|at[_. -]?risk|trials))"
)

WEIGHTS = re.compile(
    r"(?i:((survey|sampl\w*|case|row|obs\w*|freq\w*|design|final|ip\w?|prob\w*|pop\w*)[_. -]?)?(weights?|wts?|wgts?))"
)
TRIALS = re.compile(r"(?i:(.*[_. -])?(n|trials?|total|attempts|tested|examined|sampled|exposed|at[_. -]?risk))")
EVENT = re.compile(r"(?i:(.*[_. -])?(status|events?|death|dead|died|deceased|cens\w*|failed|failure|relapse\w*))")
MIN_EXCEEDING = 5.0  # rows whose target would exceed a column in random order, from which it may be trials


@dataclass
class ColumnFacts:
    """Facts about one column, which an inspection collects in steps.

    Attributes
    ----------
    name : str
        Name of the column.
    kind : str
        Type of the content: `number`, `whole number`, `0 or 1`, `words (k)`, `mixed` or `empty`.
    missing : int
        Number of missing cells.
    least, mean, largest, spread : float or None
        Minimum, mean, maximum and standard deviation (divisor n - 1) of the numbers.
    notes : tuple of str
        Notes on which a user may want to act.
    drop : bool
        True if dropping the column is proposed.
    """

    name: str
    kind: str
    missing: int
    least: float | None
    mean: float | None
    largest: float | None
    spread: float | None
    notes: Sequence[str]
    drop: bool


@dataclass(frozen=True)
class Inspection:
    """Facts about a file, and the proposed options.

    Attributes
    ----------
    rows : int
        Number of rows.
    columns : tuple of ColumnFacts
        Columns in file order; the target, if it is named, comes last.
    target : str
        Name of the target; empty if none was given.
    incomplete : int
        Number of rows with a missing cell in a column that is kept.
    duplicates : int
        Number of rows that repeat an earlier row.
    options : tuple of str
        Options with which the file can be read, in the form of the command line.
    n, p : int
        Rows and features under these options; all levels of a text column count as one feature if the options say so.
    doubts : mapping of str to str
        Ambiguous number formats by column, which must be decided first.
    folds : int
        Number of folds of the proposed cross-validation.
    least_training : int
        Number of rows of the smallest training set of these folds; 0 if unknown.
    about_target : str
        Note on the fitted loss, if squared error may not suit the target.
    two_classes : bool
        True if the target has two values, for which logistic loss is proposed.
    refused : str
        Reason why `solve` rejects the file with these options.
    counts : bool
        True if the target may hold counts, for which Poisson loss is proposed.
    exposures : tuple of str
        Columns that may be the exposures of counts.
    weights : tuple of str
        Features whose name is usual for weights of rows.
    events : int
        Number of rows of the rarer of two classes, or of events of survival times; 0 for other targets.
    event_columns : tuple of str
        Features that may mark the events of survival times.
    trials : str
        Column that may hold the numbers of trials, if the target is a number of successes; empty if there is none.
    loss : Loss
        Loss of the proposed search.
    levels_alone, levels_together : int
        Number of features if each level of a text column, or all its levels, count as one; 0 if no column has levels.
    """

    rows: int
    columns: tuple[ColumnFacts, ...]
    target: str
    incomplete: int
    duplicates: int
    options: tuple[str, ...]
    n: int
    p: int
    doubts: Mapping[str, str] = field(default_factory=dict)
    folds: int = DEFAULT_FOLDS
    least_training: int = 0
    about_target: str = ""
    two_classes: bool = False
    refused: str = ""
    counts: bool = False
    exposures: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()
    events: int = 0
    trials: str = ""
    loss: Loss = DEFAULT_LOSS
    levels_alone: int = 0
    levels_together: int = 0
    event_columns: tuple[str, ...] = ()


def inspect_file(
    path: str | Path,
    target: str | int | None,
    how: Reading,
    drop: Sequence[str] | None,
    features: Sequence[str] | None = None,
    loss: Loss | None = None,
    of_target: TargetColumns = NO_TARGET_COLUMNS,
    roles: Mapping[str, str | None] = MappingProxyType({}),
) -> Inspection:
    """Return the facts about a data file and the proposed options.

    Parameters
    ----------
    target : str, int or None
        Target column, if it is known.
    how : Reading
        Reading options.
    drop, features : sequence of str, optional
        Columns to drop, or the only columns to inspect.
    loss : Loss, optional
        Loss to propose; by default the loss that suits the target and has the columns of `of_target`.
    of_target : TargetColumns, optional
        Columns of exposures and offsets, which are not features.
    roles : mapping of str to str
        Columns that are not features either, by option: `id` names the rows, and `weights` has their weights.

    Raises
    ------
    BadInput
        If the file is not a table or has no such column, or an exposure or an offset is given with another loss.
    """
    loss, labels = _choose_loss(of_target, loss), {**of_target.by_option(), **roles}
    beside = list(filter(None, labels.values()))
    if features is not None:
        features = [*(name for name in features if name not in beside), *beside]
    goal = "" if target is None else target
    wanted = Wanted(goal, features, drop, (), needed=target is not None, index=how.index_col)
    table, how = _read_rows(path, wanted, how)
    names = [column.name for column in table.features]
    for option, name in labels.items():
        if name not in (None, *names):
            raise BadInput(
                f"{option}: {name!r} is the target, or is not a column{did_you_mean(name, names)}; name another column"
            )
    inspect = partial(inspect_table, loss=loss, labels=labels, wanted=wanted, event=of_target.event)
    inspection, proposal = _inspect_with_dates(table, how, inspect)
    if proposal.without_id:
        rows = several(len(proposal.without_id), "row")
        cells = "cell, or remove the row" if len(proposal.without_id) == 1 else "cells, or remove the rows"
        note = f"{rows} without a value: fill the {cells}"
        if table.find_lines is not None:
            lines = skipped_lines(table, Reading(), proposal.without_id)
            note = (
                f"empty in {name_lines(lines)}: --skip-lines leaves the {plural(len(proposal.without_id), 'row')} out; "
                "or write the subject there"
            )
            how = replace(how, skip_lines=skipped_lines(table, how, proposal.without_id))
            inspection, proposal = _inspect_with_dates(read_raw(path, wanted, how), how, inspect)
        for fact in inspection.columns:
            fact.notes = (*fact.notes, note) if fact.name in fold_columns(proposal.folds or "") else fact.notes
    if not inspection.target or inspection.doubts:
        return inspection
    tried = _try_proposal(inspection, path, proposal, of_target, roles)
    return replace(tried, counts=False) if loss is not None and loss.is_quadratic else tried


def _choose_loss(of_target: TargetColumns, loss: Loss | None) -> Loss | None:
    """Return the loss to propose, None if any loss will do; raise `BadInput` if a loss has no such columns."""
    for option, name in of_target.by_option().items():
        losses = find_losses_of_option(option)
        if name is None:
            continue
        if loss is None and len(losses) == 1:
            loss = losses[0]
        elif loss not in losses:
            raise BadInput(f"{option}: requires --loss {' or '.join(losses)}")
    return loss


class Proposal(NamedTuple):
    """Options with which a table can be read and searched: how, the columns, and the folds if they are not random.

    `without_id` lists the rows, from 0, that have no id in the column of the proposed folds.
    """

    how: Reading
    drop: tuple[str, ...]
    features: tuple[str, ...] | None
    folds: str | None
    without_id: tuple[int, ...] = ()


def _read_rows(path: str | Path, wanted: Wanted, how: Reading) -> tuple[RawTable, Reading]:
    """Return the table without rows that hold no data, and the options that read it."""
    table = read_raw(path, wanted, how)
    rows = {*rows_without_data(table), *rows_of_sums(table)}
    if table.find_lines is not None and (total := find_total_row(table)) is not None:
        rows.add(total)
    if not rows:
        return table, how
    how = replace(how, skip_lines=skipped_lines(table, how, rows))
    return read_raw(path, wanted, how), how


def _describe_formats_to_settle(table: RawTable, how: Reading) -> dict[str, str]:
    """Return a description of each column with ambiguous numbers, or whose texts are numbers in another format."""
    descriptions = describe_ambiguous(table.evidence, how.number_format)
    for column in table.columns:
        rows = [row for row, text in column.texts.items() if not column.has_categories and is_unreadable(text)]
        formats = describe_formats(column.texts[rows[0]], how.number_format) if len(rows) > 1 else ""
        if formats and 2 * len(rows) > len(column.texts):
            descriptions[column.name] = f"{column.texts[rows[0]]!r} in row {rows[0] + 1}; give {formats}"
    return descriptions


def _inspect_with_dates(
    table: RawTable, how: Reading, inspect: Callable[[RawTable, Reading], tuple[Inspection, Proposal]]
) -> tuple[Inspection, Proposal]:
    """Return the inspection of a table in which clear dates are converted to days, unless all of them are dropped."""
    try:
        in_days = replace(how, dates=how.dates or (DAYS,))
        dates = number_dates(table, in_days)[1]
    except BadInput:
        return inspect(table, how)
    inspection, proposal = inspect(table, in_days)
    facts = [fact for fact in inspection.columns if fact.name in dates]
    if not how.dates and all(fact.drop for fact in facts):
        return inspect(table, how)
    for fact in facts if not how.dates else ():
        fact.notes = ("dates, as days since 1970-01-01 (--dates days)", *fact.notes)
    return inspection, proposal


def _try_proposal(
    inspection: Inspection, path: str | Path, proposal: Proposal, of_target: TargetColumns,
    roles: Mapping[str, str | None],
) -> Inspection:  # fmt: skip
    """Return the facts with sizes from actually reading the file with the proposed options."""
    how, drop, features, folds, _ = proposal
    try:
        wanted = Wanted(
            inspection.target, features, drop if features is None else None,
            tuple(dict.fromkeys(filter(None, (*fold_columns(folds or ""), *of_target.names, *roles.values())))),
            index=how.index_col, two_words=inspection.two_classes,
        )  # fmt: skip
        data = apply_weight_column(read_with_options(path, wanted, how), roles.get("weights"))
        describe = _with_times if inspection.loss.target.has_times else _with_target
        inspection, data = describe(inspection, data, of_target)
        if folds is None and data.has_matched_sets:
            folds = f"groups:{data.strata}:{min(DEFAULT_FOLDS, data.n_events or DEFAULT_FOLDS)}"
            inspection = replace(inspection, options=(*inspection.options, f"--folds {shlex.quote(folds)}"))
        usual = "loo" if data.n < DEFAULT_FOLDS else str(DEFAULT_FOLDS)
        return _with_folds(inspection, data, usual if folds is None else folds)
    except BadInput as error:
        return replace(inspection, refused=str(error))


def _with_times(inspection: Inspection, data: Dataset, of_target: TargetColumns) -> tuple[Inspection, Dataset]:
    """Return the facts with sizes and events of the data, and the data with survival times."""
    data = with_survival(data, of_target)
    return replace(inspection, n=data.n, p=data.p, events=data.n_events or 0), data


def _with_target(inspection: Inspection, data: Dataset, of_target: TargetColumns) -> tuple[Inspection, Dataset]:
    """Return the facts with sizes and target of the data, and the data for the loss."""
    if of_target.trials is not None:
        data = expand_trials(with_offsets(data, of_target), of_target.trials)
        return replace(inspection, n=data.split_into_cases()[0].n, p=data.p), data
    if inspection.two_classes:
        data = as_two_classes(data)
        if (positive := affirmative_class(data.classes or ())) not in ("", *(data.classes or ())[1:]):
            data = as_two_classes(data, positive)
            inspection = replace(inspection, options=(*inspection.options, f"--positive {shlex.quote(positive)}"))
        inspection = replace(inspection, events=int(min(data.y.sum(), data.n - data.y.sum())))
    about, counted = describe_target(data), inspection.loss.target.has_counts
    data = with_offsets(as_counts(data) if counted else data, of_target)
    counts = counted or (not inspection.two_classes and _may_be_counts(data.y))
    exposures = _may_be_exposures(data) if counts and not of_target.names else ()
    trials = "" if counted or inspection.two_classes or of_target.names else _find_trials(data)
    exposures = tuple(name for name in exposures if name != trials)
    about = "" if counted else about
    inspection = replace(inspection, n=data.n, p=data.p, about_target=about, counts=counts)
    weights = () if data.weights else _may_be_weights(data)
    events = _may_be_events(data, inspection.loss)
    return replace(inspection, exposures=exposures, trials=trials, weights=weights, event_columns=events), data


def _may_be_events(data: Dataset, loss: Loss) -> tuple[str, ...]:
    """Return the features with two values whose names are usual for events, if the target may be a survival time."""
    if not loss.is_quadratic or data.target_words or data.y.min() < 0.0:
        return ()
    return tuple(
        name for j, name in enumerate(data.names) if EVENT.fullmatch(name) and len(np.unique(data.X[:, j])) == 2
    )


def _with_folds(inspection: Inspection, data: Dataset, folds: str) -> Inspection:
    """Return the facts with those about the folds; raise `BadInput` if a search would."""
    if data.survival is None:
        standardize(data, Scale.LENGTH, Intercept.FOLD)
    plan = make_folds(folds, data)
    if inspection.two_classes or data.survival is not None:
        check_training(data, plan, Intercept.FOLD, inspection.loss)
    if data.reading is not None and data.reading.factors:
        inspection = replace(inspection, levels_alone=data.p, levels_together=_features_together(data))
    if inspection.loss.is_quadratic and should_group_levels(data, plan.k):
        together = (*inspection.options, FACTORS_TOGETHER)
        inspection = replace(inspection, options=together, p=inspection.levels_together)
    counts = inspection.counts and _are_valid_counts(data, plan)
    return replace(inspection, folds=plan.k, least_training=least_rows(data, plan), counts=counts)


def should_group_levels(data: Dataset, folds: int) -> bool:
    """Return True if by default all levels of a text column enter a model together.

    This is the default with few features and few folds. On 280 rows with 38 features of 17 columns and ten folds, one
    thread proves the default grid in 11 CPU seconds. With separate levels the gap is 0.2 after 25 CPU seconds.
    Leave-one-out behaves differently, because one tree solves all folds at once with separate levels. It takes 16 CPU
    seconds with separate levels, and has no upper bound with levels together after the same time. With 61 features (200
    rows, ten folds) there is no bound with levels together after 31 CPU seconds, and a gap of 0.43 with separate levels
    after 12.

    Parameters
    ----------
    data : Dataset
        Data with encoded text columns.
    folds : int
        Number of folds.
    """
    has_factors = data.reading is not None and bool(data.reading.factors)
    return has_factors and folds <= FEW_FOLDS and _features_together(data) <= SMALL


def _features_together(data: Dataset) -> int:
    """Return the number of features if all levels of a text column count as one."""
    return Restrictions(count=EVERY_FACTOR).resolve_names(data.names).n_selectable_features(data.p)


def inspect_table(
    table: RawTable,
    how: Reading,
    loss: Loss | None,
    labels: Mapping[str, str | None],
    wanted: Wanted,
    event: str | None = None,
) -> tuple[Inspection, Proposal]:
    """Return the facts about a table and the proposed options; O(n p^2) for the correlations of up to 2,000 columns.

    Parameters
    ----------
    table : RawTable
        The table.
    how : Reading
        Options with which it was read.
    loss : Loss, optional
        Loss to propose.
    labels : mapping of str to str
        Columns that are not features, by option; None if an option is not given.
    wanted : Wanted
        Columns that the user keeps or drops.
    event : str, optional
        Column of the events of survival times, with its value as `COLUMN=VALUE`.
    """
    ambiguous = _describe_formats_to_settle(table, how)
    order = None if table.target is None or ambiguous else time_order(table.features, table.target)
    in_file = {column.name for column in table.columns}
    table, _ = number_dates(table, how)
    goal = table.target
    facts = {column.name: _facts(column, goal, how, ambiguous.get(column.name, "")) for column in table.columns}
    _note_copies(table.columns, facts, goal)
    for name, fact in facts.items():
        fact.drop &= name in in_file and name not in labels.values()  # a month alone is not a column of the file
        roles = [f"the {option}" for option, used in labels.items() if used == name]
        fact.notes = roles or fact.notes
    features, grouping = _choose_features(table, facts, order, labels)
    loss = loss or _suitable_loss(goal)
    cells = _propose_cell_treatment(table, features, how, loss, isinstance(grouping, TimeOrder))
    for column in cells.imputed:
        if column.has_text_values:
            facts[column.name].notes = [*facts[column.name].notes, describe_absent_level(column)]
    for fact in facts.values():
        fact.notes = tuple(fact.notes)
    given = labels if event is None else {**labels, "event": event}
    proposal, options = _propose_options(wanted, facts, features, cells, loss, given, grouping)
    inspection = Inspection(
        table.rows, tuple(facts.values()), "" if goal is None else goal.name, cells.n_incomplete,
        _count_duplicate_rows(table.columns, table.rows), (*_list_reading_options(how), *options),
        table.rows - cells.n_lost, sum(_width(column, cells.how.na.uses_imputation, how) for column in features),
        ambiguous, two_classes=loss.target.has_classes, loss=loss,
    )  # fmt: skip
    return inspection, proposal


def _choose_features(
    table: RawTable, facts: Mapping[str, ColumnFacts], order: TimeOrder | None, labels: Mapping[str, str | None]
) -> tuple[list[RawColumn], Subjects | TimeOrder | None]:
    """Return the proposed features, and the subjects or the order in time that groups the rows, with a note on it."""
    candidates = [column for column in table.features if column.name not in labels.values()]
    named = [column for column in table.features if column.name == labels.get("id")]
    named += [column for column in candidates if not facts[column.name].drop or column.has_text_values]
    subjects = None if table.target is None else find_subjects(named)
    grouping = subjects or order
    if grouping is not None and grouping.column in facts:
        fact = facts[grouping.column]
        fact.notes = [*(fact.notes if subjects is None else []), grouping.note]
        fact.drop &= subjects is None
    dropped = {name for name, fact in facts.items() if fact.drop} | ({subjects.column} if subjects else set())
    return [column for column in candidates if column.name not in dropped], grouping


class CellTreatment(NamedTuple):
    """Proposed treatment of missing cells and text values.

    `how` has the proposed options, and `options` lists them for the command line. `n_incomplete` rows have a missing
    cell, `n_lost` rows are dropped, and `imputed` lists the features with imputed cells.
    """

    how: Reading
    options: list[str]
    n_incomplete: int
    n_lost: int
    imputed: list[RawColumn]


def _propose_cell_treatment(
    table: RawTable, features: list[RawColumn], how: Reading, loss: Loss, in_time: bool
) -> CellTreatment:
    """Return the proposed treatment of missing cells and text values, in the features and in the target.

    Rows with missing cells are dropped if they are few or in time order.
    """
    na, encode, options = how.na, how.encode, list[str]()
    read_columns = RawTable(features, table.target, {}).columns
    gaps = np.logical_or.reduce([np.zeros(table.rows, dtype=bool), *map(attrgetter("empty"), read_columns)])
    if gaps.any():
        most_lost = MOST_ROWS_LOST if in_time else FEW_ROWS_LOST
        proposed = Missing.DROP if gaps.mean() <= most_lost else Missing.MEAN
        na = proposed if na is Missing.ERROR else na
        options.append(f"--na {na}")
    encoded = features if loss.target.has_classes else read_columns
    if any(column.texts and column.has_text_values and column.name not in how.orders for column in encoded):
        encode = Encode.ONEHOT if encode is Encode.ERROR else encode
        options.append(f"--encode {encode}")
    imputed = [column for column in features if na.uses_imputation and column.has_empty]
    if loss.target.is_sum_over_rows and not all(map(attrgetter("has_text_values"), imputed)):
        options.append(f"--na-within {Within.FOLDS}")
    lost = gaps if na is Missing.DROP else gaps[:0] if table.target is None else table.target.empty
    return CellTreatment(replace(how, na=na, encode=encode), options, int(gaps.sum()), int(lost.sum()), imputed)


def _propose_options(
    wanted: Wanted, facts: Mapping[str, ColumnFacts], features: Sequence[RawColumn], cells: CellTreatment, loss: Loss,
    labels: Mapping[str, str | None], grouping: Subjects | TimeOrder | None,
) -> tuple[Proposal, list[str]]:  # fmt: skip
    """Return the proposal, and its options; `--features` replaces `--drop` if the user gave it."""
    proposed_drop = (name for name, fact in facts.items() if fact.drop)
    drop = tuple(dict.fromkeys([*map(str, wanted.drop or ()), *proposed_drop]))
    names = None if wanted.features is None else tuple(column.name for column in features)
    options = [f"--features {quote_names(names)}"] if names else []
    options += [f"--drop {quote_names(drop)}"] if drop and names is None else []
    options += [*cells.options, *([] if loss.is_quadratic else [f"--loss {loss}"])]
    options += [f"--{option} {shlex.quote(name)}" for option, name in labels.items() if name is not None]
    options += [grouping.option] if grouping is not None else []
    folds = None if grouping is None else shlex.split(grouping.option)[1]
    without_id = grouping.without_id if isinstance(grouping, Subjects) else ()
    return Proposal(cells.how, drop, names, folds, without_id), options


def _suitable_loss(goal: RawColumn | None) -> Loss:
    """Return logistic loss for a target with two numbers or two text values, otherwise squared-error loss."""
    if goal is None:
        return DEFAULT_LOSS
    if goal.texts:
        has_two_values = goal.has_text_values and len(goal.levels()) == 2
    else:
        has_two_values = len(np.unique(goal.numbers[~goal.empty & ~np.isnan(goal.numbers)])) == 2
    return find_loss_of_values(Values.CLASSES) if has_two_values else DEFAULT_LOSS


def _facts(column: RawColumn, goal: RawColumn | None, how: Reading, ambiguous: str) -> ColumnFacts:
    """Return the facts of a column, without comparison with others."""
    numbers, n_empty, is_target = column.numbers[np.isfinite(column.numbers)], int(column.empty.sum()), column is goal
    if ambiguous:
        return ColumnFacts(column.name, UNREADABLE, n_empty, None, None, None, None, [ambiguous], False)
    kind, notes, drop = _kind_of_column(column, numbers, is_target, how)
    notes += _describe_code(column.name, numbers)
    n_values = len(np.unique(numbers)) if kind == "whole number" and not is_target else 0
    if 3 <= n_values <= MAX_CODES and len(numbers) >= FEW_ROWS:
        notes.append(
            f"{n_values} different whole numbers; if they are codes of categories, give --categories "
            f"{quote_names([column.name])}"
        )
    if not is_target and not drop:
        more, drop = _doubts(column, numbers)
        notes += more
    if column.has_text_values:
        codes = describe_codes(column).removeprefix(f"column {column.name!r}: ")
        notes += filter(None, [codes, column.describe_case_variants(column.levels())])
        if CENTRE.fullmatch(column.name) and not is_target and not drop and len(column.levels()) > 1:
            folds = f", --folds {quote_names([f'groups:{column.name}'])} estimates the error in new centres"
            notes.append(
                f"may be the centres of a study: --adjust {quote_names([column.name])} keeps their differences in "
                f"every model{folds if len(column.levels()) > 2 else ''}"
            )
    if not drop and goal is not None and column.empty[~goal.empty].all() and not goal.empty.all():
        notes.append("empty in every row that has a target")
        drop = True
    return ColumnFacts(column.name, kind, n_empty, *_sizes(column, numbers), notes, drop and not is_target)


def _describe_code(name: str, numbers: FloatArray) -> list[str]:
    """Return a note on a value that may be a missing-value code: far from the others, or their only negative value."""
    value, reason = find_code(numbers), "is far from all other values"
    if value is None and numbers.size:
        least = float(numbers.min())
        others = numbers[numbers != least]
        is_alone = len(np.unique(others)) > 2 and float(others.min()) > 0.0
        if is_alone and least == 0.0 and float(others.min()) > 3.0 * float(np.ptp(others)):
            value = least
        elif is_alone and least < 0.0 and least in CODES:
            value, reason = least, "is the only negative value"
    if value is None:
        return []
    return [
        f"{value:g} {reason}; give --na-values {code_of_column(name, value)} and --na if it is a missing-value code"
    ]


def _sizes(column: RawColumn, numbers: FloatArray) -> tuple[float | None, float | None, float | None, float | None]:
    """Return the minimum, the mean, the maximum and the standard deviation (divisor n - 1) of a numeric column."""
    if column.texts or not numbers.size:
        return None, None, None, None
    unit = float(np.abs(numbers).max()) or 1.0
    spread = float((numbers / unit).std(ddof=1)) * unit if numbers.size > 1 else 0.0
    return float(numbers.min()), float(numbers.mean()), float(numbers.max()), spread


def _kind_of_column(
    column: RawColumn, numbers: FloatArray, is_target: bool, how: Reading
) -> tuple[str, list[str], bool]:  # fmt: skip
    """Return the type of a column, notes on it, and whether dropping it is proposed."""
    if column.empty.all():
        return "empty", ["holds nothing"], True
    if column.has_text_values:
        return _kind_of_text_values(column)
    alone = RawTable([] if is_target else [column], column if is_target else None, {})
    faults = find_faults(alone, how, lambda _: False, lambda _: True, False)
    if faults:
        words = faults[0].describe().removeprefix(f"{column.name!r} ")
        return UNREADABLE, [f"{words}; {faults[0].advise()}"], True
    is_whole = bool(np.all(numbers == np.rint(numbers)))
    kind = "0 or 1" if is_whole and set(numbers.tolist()) == {0.0, 1.0} else "whole number" if is_whole else "number"
    return kind, [], False


def _kind_of_text_values(column: RawColumn) -> tuple[str, list[str], bool]:
    levels = column.levels()
    n_words = int(np.sum(~column.empty))
    if len(levels) == 1 and not column.has_empty:
        return "words (1)", [f"constant: {levels[0][:20]}"], True
    if is_name_like(len(levels), n_words):
        note = "nearly every row has a different value, so the column identifies the rows and is not a feature"
        if len(levels) < NEARLY_EVERY * n_words:
            option = f"--folds {quote_names([f'groups:{column.name}'])}"
            note = (
                f"{len(levels)} text values in {n_words} rows, too many for a feature; if each is a subject, give "
                f"{option}"
            )
        return f"words ({len(levels)})", [note], True
    shown = abbreviate_names([word[:20] for word in levels[:6]]) + (", ..." if len(levels) > 6 else "")
    return f"words ({len(levels)})", [shown], False


def _doubts(column: RawColumn, numbers: FloatArray) -> tuple[list[str], bool]:
    """Return reasons against using a column as a feature, and whether dropping it is proposed."""
    share = float(column.empty.mean())
    if share > MOSTLY_EMPTY:
        return [f"{share:.0%} of its cells are empty"], True
    if column.texts:
        return [], False
    if numbers.size and numbers.min() == numbers.max():
        return ["constant"], True
    if why := numbers_rows(column):
        return [why], True
    steps = np.diff(numbers)
    if not column.has_empty and len(steps) > 2 and np.all(steps == 1.0):
        return ["increases by one from row to row, so it may only number the rows"], False
    return [], False


def _note_copies(
    columns: Sequence[RawColumn], facts: Mapping[str, ColumnFacts], goal: RawColumn | None
) -> None:  # fmt: skip
    """Add notes on columns that repeat or nearly repeat an earlier one.

    Copies of columns that are kept are dropped, and so are copies of the target, the last column.
    """
    if goal is not None:
        target = _number_classes(goal)
        columns, goal = [target if column is goal else column for column in columns], target
    plain = [column for column in columns if not column.texts and np.isfinite(column.numbers).any()]
    if not 1 < len(plain) <= MOST_CORRELATED:
        return
    is_full = ~np.any([column.empty | ~np.isfinite(column.numbers) for column in plain], axis=0)
    if is_full.sum() < 3:
        return
    X = _directions(np.array([column.numbers[is_full] for column in plain]))
    for column, row in zip(plain, np.abs(np.tril(X @ X.T, -1)), strict=True):
        fact = facts[column.name]
        for i in np.flatnonzero(row >= NAMED_CORRELATION)[:3].tolist():
            name, correlation = plain[i].name, float(row[i])
            is_near, numbers = correlation >= ROUNDED_COPIES, (plain[i].numbers[is_full], column.numbers[is_full])
            copied = _describe_copy(*numbers, name) if is_near else ""
            above = "above " if correlation > NEAR_COPIES else ""
            correlated = f"correlation {above}{min(correlation, NEAR_COPIES):.3f} with {name!r}"
            is_drop = bool(copied) and is_full.sum() >= DEFAULT_FOLDS
            if is_drop and column is goal:
                copied = f"{_describe_copy(*numbers[::-1], goal.name)}, the target"
                facts[name].notes, facts[name].drop = [*facts[name].notes, copied], True
                continue
            fact.notes = [*fact.notes, copied or correlated]
            fact.drop |= is_drop and not facts[name].drop


def _number_classes(target: RawColumn) -> RawColumn:
    """Return a target of two text values as numbers 0 and 1, and any other target unchanged."""
    levels = target.levels() if target.has_text_values and not target.has_empty else ()
    if len(levels) != 2:
        return target
    numbers = np.array([float(target.texts.get(row) == levels[1]) for row in range(len(target.numbers))])
    return RawColumn(target.name, numbers, target.empty)


def _describe_copy(first: FloatArray, second: FloatArray, name: str) -> str:
    """Return a note that `second` repeats the column `first`, in its units or others; empty if it does not.

    Two columns may differ by the last decimals with which they are written, as kilograms and pounds to 0.1 do.
    """
    x, y = first - first.mean(), second - second.mean()
    slope = float(x @ y) / max(float(x @ x), TINY)
    rounding = _decimal_step(second) + abs(slope) * _decimal_step(first)
    exact = ACCURATE_RTOL * float(np.abs(y).max())
    residual, change = float(np.abs(y - slope * x).max()), float(np.abs(second - first).max())
    if residual > max(exact, rounding):
        return ""
    has_same_units = change <= max(exact, rounding)
    is_rounded = (change if has_same_units else residual) > exact
    return f"a copy of {name!r}{'' if has_same_units else ' in other units'}{', up to rounding' if is_rounded else ''}"


def _decimal_step(numbers: FloatArray) -> float:
    """Return the unit of the last decimal of a column, such as 0.1; 0 if some number has more than nine digits."""
    leading = math.floor(math.log10(max(float(np.abs(numbers).max()), TINY)))
    steps = (10.0**-k for k in range(-leading, 9 - leading) if np.array_equal(np.round(numbers, k), numbers))
    return next(steps, 0.0)


def _directions(X: FloatArray) -> FloatArray:
    """Return rows minus their means, scaled to length 1 unless they are constant."""
    X = X - X.mean(axis=1, keepdims=True)
    X /= np.maximum(np.abs(X).max(axis=1, keepdims=True), TINY)
    length = np.linalg.norm(X, axis=1)
    return np.asarray(X / np.where(length > 0.0, length, 1.0)[:, None])


def describe_collinearity(data: Dataset) -> str:
    """Return a note on columns nearly collinear with earlier ones; empty for duplicates or many columns.

    Examples
    --------
    >>> X = np.arange(12.0).reshape(6, 2) ** 2
    >>> X[:, 1] = X[:, 0] + 1e-6 * np.sin(X[:, 0])
    >>> describe_collinearity(Dataset.from_arrays(X, np.arange(6.0)))[:54]
    "nearly collinear with an earlier column: 'x1' of 'x0';"
    """
    if not 1 < data.p <= NOTED_COLUMNS:
        return ""
    X, near = _directions(data.X[:: -(-data.n // NOTED_ROWS)].T), []
    for j, row in enumerate(np.tril(X @ X.T, -1)):
        for i in np.flatnonzero(np.abs(row) >= NEAR_COPIES)[:1].tolist():
            first, second = _directions(data.X[:, [i, j]].T)
            off = float(np.linalg.norm(second - np.sign(row[i]) * first))
            if OUTWARD < off <= math.sqrt(2.0 * (1.0 - NEAR_COPIES)):
                near.append(f"{data.names[j]!r} of {data.names[i]!r}")
    if not near:
        return ""
    return f"nearly collinear with an earlier column: {abbreviate_list(near)}; the data can hardly distinguish the two"


def _count_duplicate_rows(columns: Sequence[RawColumn], rows: int) -> int:
    """Return the number of rows that repeat an earlier row."""
    keys = np.zeros((rows, len(columns)))
    for k, column in enumerate(columns):
        keys[:, k] = np.where(column.empty, -math.inf, column.numbers)
        for row, word in column.texts.items():
            keys[row, k] = float(hash(word) % (1 << 50))
    distinct = {keys[row].tobytes() for row in range(rows)}
    return rows - len(distinct)


MOST_ROWS_OF_SUBJECT = 10  # rows of a level on average, up to which a factor of many levels may name subjects


def collect_answer_warnings(
    data: Dataset, folds: FoldPlan, coefficients: Mapping[str, float], intercept: float
) -> tuple[str, ...]:
    """Return a warning for each property of the data that makes errors too small or coefficients too large.

    Parameters
    ----------
    data : Dataset
        Data, with classes or counts if the loss needs them.
    folds : FoldPlan
        Folds of the cross-validation.
    coefficients : mapping of str to float
        Coefficients of the full-data model.
    intercept : float
        Intercept of this model.
    """
    notes = [_describe_duplicate_rows(data, folds), *_describe_factors_of_subjects(data, folds)]
    notes += [*_describe_numbers_of_subjects(data, folds), *_describe_row_numbers(data)]
    notes += [_describe_exposures(data), _describe_unsorted_dates(data, folds)]
    columns = {name: data.X[:, data.names.index(name)] for name in coefficients}
    notes += [*collect_survival_warnings(data, folds, columns), *_describe_target_copies(data, columns)]
    if data.classes is not None and columns:
        scores = intercept + np.column_stack(list(columns.values())) @ list(coefficients.values())
        if float(np.min(scores[data.y > 0.0])) > float(np.max(scores[data.y <= 0.0])):
            notes.append(
                "the model separates the two classes in all rows: only gamma limits the size of its coefficients and "
                f"odds ratios; {LARGER_GAMMAS} for moderate effects"
            )
            columns = {}
    notes += [_describe_pure_level(data, name, column) for name, column in columns.items()]
    return tuple(filter(None, notes))


def _describe_target_copies(data: Dataset, columns: Mapping[str, FloatArray]) -> list[str]:
    """Return a warning for each column that repeats the target, in its units or others."""
    if data.n < DEFAULT_FOLDS:
        return []
    notes = []
    for name, column in columns.items():
        x, y = _directions(np.array([column, data.y]))
        copied = _describe_copy(column, data.y, data.target) if abs(float(x @ y)) >= ROUNDED_COPIES else ""
        if copied:
            notes.append(
                f"feature {name!r} is {copied}, the target; give --drop {quote_names([name])} if it is not known "
                "before the target"
            )
    return notes


def _describe_unsorted_dates(data: Dataset, folds: FoldPlan) -> str:
    """Return a warning if folds in the order of the rows meet rows that are not in the order of their dates."""
    forms = () if data.reading is None or not folds.spec.startswith("forward") else data.reading.date_forms
    dates = {name: data.X[:, data.names.index(name)] for name in forms if name in data.names}
    if not dates or any((np.diff(days) >= 0.0).all() for days in dates.values()):
        return ""
    column = quote_names([next(iter(dates))])
    return (
        f"the rows are not in the order of {column}, but {folds.spec} predicts each fold from the rows before it; "
        f"sort the file by {column}"
    )


def _describe_duplicate_rows(data: Dataset, folds: FoldPlan) -> str:
    """Return a warning about duplicate rows in random folds; empty if they are few, or as many as chance makes."""
    if data.X.size > MAX_COMPARED_NUMBERS or not RANDOM_FOLDS.fullmatch(folds.spec):
        return ""
    table = np.column_stack((data.X, data.y)) + 0.0  # -0 is 0
    distinct = len({row.tobytes() for row in table})
    copies = data.n - distinct
    if copies <= MIN_COPIES_SHARE * data.n or copies <= CHANCE_COPIES * _expected_copies(table):
        return ""
    return (
        f"{copies:,} of {data.n:,} rows {'repeats' if copies == 1 else 'repeat'} an earlier row, target included. "
        "If they are copies of one observation, random folds train on copies of held-out rows, and the CV error is too "
        "low; remove the copies, or keep them together by --folds groups:COLUMN"
    )


def _describe_factors_of_subjects(data: Dataset, folds: FoldPlan) -> list[str]:
    """Return a warning for each factor that has a level for every few rows, while rows of a level are in all folds."""
    reading = data.reading
    if reading is None or not RANDOM_FOLDS.fullmatch(folds.spec):
        return []
    notes, place = [], {name: j for j, name in enumerate(data.names)}
    for factor in reading.factors:
        columns = [place[name] for name in reading.column_features(factor) if name in place]
        rows = np.count_nonzero(data.X[:, columns], axis=0)
        rows = rows[rows > 0]
        if len(rows) < SURE_LEVELS or data.n > MOST_ROWS_OF_SUBJECT * len(rows) or 2 * np.sum(rows > 1) <= len(rows):
            continue
        together, quoted = quote_names([f"groups:{factor}"]), quote_names([factor])
        sizes = f"{rows.min()} rows" if rows.min() == rows.max() else f"{rows.min()} to {rows.max()} rows"
        notes.append(
            f"column {factor!r} has {len(rows):,} levels of {sizes} each, and the rows of a level are in several "
            f"folds. If the levels are subjects, the CV error is too low for new subjects; give --folds {together} to "
            f"hold the rows of a level out together, or --drop {quoted}"
        )
    return notes


def _describe_numbers_of_subjects(data: Dataset, folds: FoldPlan) -> list[str]:
    """Return a warning for each feature of numbers that name subjects, while rows of a subject are in all folds."""
    if not RANDOM_FOLDS.fullmatch(folds.spec):
        return []
    notes = []
    for j, name in enumerate(data.names):
        if not has_subject_name(name):
            continue
        empty = np.zeros(data.n, dtype=bool) if data.holes is None else data.holes[:, j]
        subjects = find_subjects([RawColumn(name, np.where(empty, np.nan, data.X[:, j]), empty)])
        if subjects is not None:
            notes.append(
                f"feature {name!r} has {subjects.count:,} values with several rows each, and its name suggests "
                "subjects. The rows of a subject are in several folds, so the CV error is too low for new subjects; "
                f"give {subjects.option} to hold the rows of a subject out together, or --drop {quote_names([name])}"
            )
    return notes


def _describe_row_numbers(data: Dataset) -> list[str]:
    """Return a warning for each feature that only numbers the rows, by its name or because its order is random."""
    cases, notes = data.split_into_cases()[0], []
    for j, name in enumerate(cases.names if cases.n >= FEW_ROWS else ()):
        some = cases.X[:NOTED_ROWS, j]
        if not np.array_equal(some, np.rint(some)) or len(np.unique(some)) < len(some):
            continue
        why = numbers_rows(RawColumn(name, cases.X[:, j], np.zeros(cases.n, dtype=bool)))
        if why and (why != IN_ORDER or ID.fullmatch(name)):
            notes.append(f"feature {name!r}: {why}; --drop {quote_names([name])} leaves it out")
    return notes


def _expected_copies(table: FloatArray) -> float:
    """Return the number of pairs of equal rows that independent columns would have."""
    n = len(table)
    equal = 1.0
    for column in table.T:
        counts = np.unique(column, return_counts=True)[1]
        equal *= float(np.sum(counts * (counts - 1.0))) / (n * (n - 1.0))
    return 0.5 * n * (n - 1.0) * equal


def _describe_exposures(data: Dataset) -> str:
    """Return a warning about features that may be exposures of counts; empty if an exposure was given."""
    names = _may_be_exposures(data) if data.counts and data.row_exposure is None else ()
    if not names:
        return ""
    named = abbreviate_list(list(map(repr, names)))
    has_zeros = not data.X[:, data.names.index(names[0])].all()
    return (
        f"{plural(len(names), 'feature')} {named} may be the exposure of the counts; to model the rate, "
        f"{'correct or remove the rows in which it is 0, and ' if has_zeros else ''}"
        f"give --exposure {shlex.quote(names[0])}"
    )


def _describe_pure_level(data: Dataset, name: str, column: FloatArray) -> str:
    """Return a warning if all rows of a level have one class, or count 0; empty for other columns."""
    if not (data.classes or data.counts) or not np.isin(column, (0.0, 1.0)).all():
        return ""
    for value in (1.0, 0.0):
        targets = data.y[column == value]
        if targets.size and np.all(targets == targets[0]) and (data.classes or targets[0] == 0.0):
            description = "the count 0" if data.classes is None else f"the class {data.classes[int(targets[0])]!r}"
            return (
                f"all {several(targets.size, 'row')} with {name!r} = {value:g} have {description}: only gamma limits "
                f"the size of this coefficient; {LARGER_GAMMAS}, or merge the level with another one"
            )
    return ""


def _list_reading_options(how: Reading) -> list[str]:
    values = {
        "--skip-lines": how.skip_lines,
        "--sep": how.sep, "--decimal": how.decimal, "--comment": how.comment, "--encoding": how.encoding,
        "--index-col": how.index_col, "--thousands": WORDS.get(how.thousands or "", how.thousands),
        "--na-values": ",".join(how.na_values), "--dates": ",".join(how.dates),
    }  # fmt: skip
    orders = [f"--categories {quote_names(how.categories)}"] if how.categories else []
    orders += [f"--order {shlex.quote(order_text(column, words))}" for column, words in how.order]
    names = [
        name.replace("_", "-") for name in how.changed_options() if name not in ("na", "encode", "order", "categories")
    ]
    flags = {name: f"--{name}" for name in names}
    switches = {name: flag if name == "na-indicator" else f"--no-{name}" for name, flag in flags.items()}
    return orders + [f"{flag} {values[flag]!r}" if flag in values else switches[name] for name, flag in flags.items()]


def _width(column: RawColumn, filled: bool, how: Reading) -> int:
    """Return the number of features that a column becomes."""
    if not column.texts:
        return 1
    levels = column.levels()
    if filled and column.has_empty:
        levels = (*levels, ABSENT)
    return len(feature_names(column.name, levels, how.column_encoding(column.name)))


def describe_target(data: Dataset) -> str:
    """Return a note on a target that squared error may not suit, with the usual alternative, or an empty text.

    Examples
    --------
    >>> describe_target(Dataset.from_arrays([[1.0], [2.0], [4.0]], [0.0, 1.0, 1.0], target="ill"))[:73]
    "target 'ill' has two values, 0 and 1: squared-error loss fits a linear pr"
    >>> describe_target(Dataset.from_arrays([[1.0], [2.0], [4.0]], [-1.0, 0.5, 2.0]))
    ''
    """
    name, y = data.target, data.y
    if data.classes is not None:
        positive, negative = (f"{word!r} ({int((y == value).sum()):,} rows)"
                              for value, word in zip((1.0, 0.0), reversed(data.classes), strict=True))  # fmt: skip
        return (
            f"target {name!r} has two values: --loss logistic models the probability of {positive} rather than "
            f"{negative} "
            "(--positive chooses); squared-error loss fits a linear probability model"
        )
    values = np.unique(y)
    if len(values) == 2:
        shown = [f"{word!r} ({k})" for k, word in enumerate(data.target_words)] or [f"{value:g}" for value in values]
        return (
            f"target {name!r} has two values, {' and '.join(shown)}: squared-error loss fits a linear probability "
            "model, whose predictions may lie outside of these values; --loss logistic fits probabilities"
        )
    return "" if len(values) < 3 or values[0] < 0.0 else _describe_counts(name, y, values)


def _skewness(y: FloatArray) -> float:
    largest = float(y.max())
    off = y / largest - float(np.mean(y / largest))
    return float(np.mean(off**3)) / max(float(np.mean(off**2)) ** 1.5, TINY)


def _may_be_counts(y: FloatArray) -> bool:
    """Return True if a target has more than two distinct integers from 0 on, or near 0 with an upper tail."""
    values = np.unique(y)
    whole = len(values) > 2 and values[0] >= 0.0 and bool(np.all(values == np.rint(values)))
    return whole and (values[0] == 0.0 or (values[0] <= 3.0 and _skewness(y) > 0.3))


def _are_valid_counts(data: Dataset, plan: FoldPlan) -> bool:
    """Return True if `solve` accepts the target as counts."""
    try:
        check_training(as_counts(data), plan, Intercept.FOLD, find_loss_of_values(Values.COUNTS))
    except BadInput:
        return False
    return True


def _may_be_exposures(data: Dataset) -> tuple[str, ...]:
    """Return the features whose name is usual for exposures, or that rise with the counts; few values may be 0."""
    least, zeros = data.X.min(axis=0), np.mean(data.X == 0.0, axis=0)
    varying = np.flatnonzero((least >= 0.0) & (zeros <= FEW_ROWS_LOST) & (data.X.std(axis=0) > 0.0)).tolist()
    risen = {j: float(np.corrcoef(data.X[:, j], data.y)[0, 1]) for j in varying}
    return tuple(data.names[j] for j in varying if EXPOSURE.fullmatch(data.names[j]) or risen[j] >= RISES_WITH)


def _may_be_weights(data: Dataset) -> tuple[str, ...]:
    """Return the features whose name is usual for weights of rows, without negative values."""
    least = data.X.min(axis=0)
    return tuple(name for name, low in zip(data.names, least, strict=True) if low >= 0.0 and WEIGHTS.fullmatch(name))


def _find_trials(data: Dataset) -> str:
    """Return the smallest whole-number feature that the target never exceeds, although unrelated numbers would.

    A usual name of trials is enough. The name is empty if there is no such feature.
    """
    y = np.sort(data.y)
    if y[0] < 0.0 or len(np.unique(y)) < 3 or not np.array_equal(y, np.rint(y)):
        return ""
    totals = dict[str, tuple[bool, float]]()
    for j, name in enumerate(data.names):
        sizes = data.X[:, j]
        if sizes.min() < 1.0 or not np.array_equal(sizes, np.rint(sizes)) or np.any(data.y > sizes):
            continue
        expected = (
            float(np.sum(data.n - np.searchsorted(y, sizes, side="right"))) / data.n
        )  # larger ones of random rows
        is_named = TRIALS.fullmatch(name) is not None
        if expected >= MIN_EXCEEDING or is_named:
            totals[name] = not is_named, float(sizes.sum())
    return min(totals, key=totals.__getitem__, default="")


def _describe_counts(name: str, y: FloatArray, values: FloatArray) -> str:
    """Return a note on a loss that may suit a nonnegative target better than squared error."""
    counts = _may_be_counts(y)
    if not counts and _skewness(y) <= LONG_TAIL:
        return ""
    shape = "has whole numbers, perhaps counts" if counts else "has no value below 0 and a long upper tail"
    better = f"log({name})" if values[0] > 0.0 else f"log(1 + {name})" if np.median(y) >= 1.0 else f"the root of {name}"
    better = f"log(1 + {name})" if counts else better
    fitted = "squared-error loss fits its mean, and large values have the most influence"
    also = ", and --loss poisson fits log rates of counts (with --exposure if the rows cover different times or "
    also = f"{also}populations)" if counts else ""
    return f"target {name!r} {shape}: {fitted}; {better} as the target may fit better{also}"
