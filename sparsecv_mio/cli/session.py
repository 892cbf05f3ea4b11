"""Functions that several commands share: they read the data, build the folds and check the paths of output files."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from sparsecv_mio.cli import Began, ending, parse, terminate
from sparsecv_mio.cli.command_options import Given
from sparsecv_mio.cli.ending import tell
from sparsecv_mio.declared_options import check_whole
from sparsecv_mio.digits import several
from sparsecv_mio.errors import BadInput, OutOfTime
from sparsecv_mio.files import check_writable, csv_lines, inert, special
from sparsecv_mio.model_space import Restrictions, abbreviate_names, word_of_factor
from sparsecv_mio.search.deadline import GRACE, Deadline, StopSignal, interruptible, run_within_limit
from sparsecv_mio.targets import TargetColumns
from sparsecv_mio.words import Intercept

if TYPE_CHECKING:
    from sparsecv_mio.certificate.restrictions import References
    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.data.fold_plan import FoldPlan
    from sparsecv_mio.search.options import GridOptions, ModelOptions, SearchOptions
    from sparsecv_mio.search.question import Question

T = TypeVar("T")
Options = TypeVar("Options", bound="GridOptions")

LOADING_GRACE = 2.0 * GRACE  # seconds after the limit in which a search may still begin, as small ones answer at once
EXIT_CODE = {"proved": 0, "limit": 3, "interrupted": 130, "doubtful": 3}
READ_BY_ARROW = (".csv", ".tsv", ".txt", ".dat", ".data", ".gz", ".zip", ".parquet", ".feather", ".arrow", ".ipc")
NUMBERS = ".tsv"  # suffix added to the name of a proof, for its table of numbers
THROUGH = ("--json", "--trace", "--progress-json", "--out")  # options whose text may be written to a pipe or a device


@contextmanager
def stop_on_interrupt() -> Iterator[StopSignal]:
    """Yield an event that the first Ctrl-C or SIGTERM sets, on which the search returns its best answer."""
    by_default = signal.getsignal(signal.SIGTERM) is terminate
    if by_default:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with interruptible(terminable=True) as stop:
            yield stop
    finally:
        if by_default:
            signal.signal(signal.SIGTERM, terminate)


def read_data(
    path: str, table: Given, columns: Mapping[str, Sequence[str]] = MappingProxyType({}), *, two_words: bool = False
) -> Dataset:
    """Return the data set that the options describe.

    Parameters
    ----------
    path : str
        Path of the file.
    table : dict
        Options of `TABLE`, by name; formats that store the target need none.
    columns : mapping
        Further columns to keep, by the option that needs them.
    two_words : bool
        True if the target may hold two text values, for classification.

    Returns
    -------
    Dataset
        The data.

    Raises
    ------
    BadInput
        If an option, column or row is wrong; the message names it.
    """
    if table.get("features") is not None and table.get("drop") is not None:
        raise BadInput("--features and --drop exclude each other; give one of the two")
    if Path(path).suffix.lower() in READ_BY_ARROW:
        import pyarrow

        pyarrow.enable_signal_handlers(False)  # its handlers lose a Ctrl-C that comes near the end of a read
    from sparsecv_mio.data.readers import read_data

    reading = {**table, **{name: parse.names(table.get(name), f"--{name}") for name in ("features", "drop")}}
    return read_data(path, reading.pop("target", None), reading, columns, two_words=two_words)


def read_weighted(path: str, table: Given, weights: str | None, how: ModelOptions, id: str | None = None) -> Dataset:
    """Return the data set that the options describe, with row weights and without rows of weight 0.

    Parameters
    ----------
    path, table
        Arguments as for :func:`read_data`.
    weights : str or None
        Value of `--weights`.
    how : options
        Options with the loss, which determines whether the target may hold two text values, and with its columns.
    id : str, optional
        Column that names the rows.
    """
    from sparsecv_mio.data.readers import requested_columns
    from sparsecv_mio.data.weights import apply_weight_column

    columns = requested_columns(weights=weights, id=id, of_target=TargetColumns.from_fields(how))
    two_words = how.loss.target.has_classes
    return apply_weight_column(read_data(path, table, columns, two_words=two_words), weights)


def read_with_folds(
    path: str, table: Given, rows: Given, quiet: bool, id: str | None = None,
    how: ModelOptions | None = None,
) -> tuple[Dataset, FoldPlan]:  # fmt: skip
    """Return the data set that the options describe, with row weights, and its folds.

    Parameters
    ----------
    path, table
        Arguments as for :func:`read_data`.
    rows : dict
        Options of `DEALING`, by name.
    quiet : bool
        True to print no note on a seed that changes nothing.
    id : str, optional
        Column that names the rows.
    how : options, optional
        Options with the loss, which determines whether the target has two classes or counts.
    """
    from sparsecv_mio.data.readers import requested_columns, split_rows

    seed = rows["seed"]
    check_whole("--seed", seed, 0)
    columns = requested_columns(rows["folds"], rows["weights"], id, TargetColumns.from_fields(how))
    dataset = read_data(path, table, columns, two_words=how is not None and how.loss.target.has_classes)
    dataset, plan = split_rows(
        dataset if how is None else how.in_classes(dataset), rows["folds"], seed or 0, rows["weights"]
    )
    note_unused_seed(plan, seed, quiet)
    return dataset, plan


def describe_separated_rows(dataset: Dataset, plan: FoldPlan, id: str | None) -> list[str]:
    """Return a warning if rows with the same value of a column are in different folds; empty values are no value."""
    import numpy as np

    from sparsecv_mio.data.row_structure import Subjects

    if id is None:
        return []
    cells, codes = dataset.aux[id], dataset.n + np.arange(dataset.n)  # a row without a value is alone
    is_known = np.array([cell == cell and cell not in (None, "") for cell in cells.tolist()], dtype=bool)
    values, codes[is_known] = np.unique(cells[is_known], return_inverse=True)
    n_known = int(is_known.sum())
    if plan.is_partition:
        are_separated = len(np.unique(codes * plan.k + plan.labels)) > len(values) + dataset.n - n_known
    else:
        folds = ((codes[plan.scored_rows(fold)], codes[plan.train_rows(fold)]) for fold in range(plan.k))
        are_separated = len(values) < n_known and any(np.isin(scored, trained).any() for scored, trained in folds)
    if not are_separated:
        return []
    return [
        f"id: column {id!r} has {several(len(values), 'different value')} in {n_known:,} rows, and folds separate "
        f"rows of the same value; if such rows belong together, give {Subjects(id, '', len(values)).option}"
    ]


def note_unused_seed(plan: FoldPlan, seed: int | None, quiet: bool) -> None:
    """Print a note if a seed is given and the folds are not random, unless `quiet`."""
    if seed is not None and plan.seed is None and not quiet:
        tell(f"note: --seed {seed} has no effect, because --folds {plan.spec} does not assign rows at random")


def describe_data(dataset: Dataset) -> dict[str, Any]:
    """Return the size, target and fingerprint of the data, for a JSON file."""
    read = {} if dataset.reading is None else {"reading": list(dataset.reading.notes)}
    return {"n": dataset.n, "p": dataset.p, "target": dataset.target, "fingerprint": dataset.fingerprint, **read}


def reading_notes(dataset: Dataset, quiet: bool) -> tuple[str, ...]:
    """Return notes on how the file was read; with `quiet` only those that restrict the answer."""
    return () if dataset.reading is None else tuple(ending.warnings_to_print(dataset.reading.notes, quiet))


def csv_of_rows(
    places: Iterable[int], ids: Mapping[str, Iterable[Any]], columns: Mapping[str, Iterable[Any]]
) -> Iterator[str]:
    """Return the lines of a CSV file of rows; each line begins with the row number.

    Parameters
    ----------
    places : iterable of int
        Positions of the rows in the data file, from 0; the written row numbers start at 1, as in messages.
    ids : mapping of str to iterable
        Column that names the rows, if there is one. Its header is `id` if a column of the table has the same name.
        Spreadsheets do not take its cells for formulas.
    columns : mapping of str to iterable
        Numbers of the rows by column; NaN and None are written as `NA`, which no CSV reader skips.

    Examples
    --------
    >>> print(*csv_of_rows([0, 3], {"who": ["a", "b,c"]}, {"prediction": [1.5, float("nan")]}), end="")
    row,who,prediction
     1,a,1.5
     4,"b,c",NA
    """
    names = ("id" if name in ("row", *columns) else inert(name) for name in ids)
    told = ((inert(cell) if isinstance(cell, str) else cell for cell in cells) for cells in ids.values())
    numbers = ((None if cell != cell else cell for cell in cells) for cells in columns.values())
    rows = zip((place + 1 for place in places), *told, *numbers, strict=True)
    cells = (["NA" if cell is None else cell for cell in row] for row in rows)
    return csv_lines(chain([["row", *names, *columns]], cells))


def check_outputs(places: Mapping[str, str | None], inputs: Sequence[str] = ()) -> None:
    """Raise an error before the work begins if an output file cannot be written.

    Parameters
    ----------
    places : mapping of option to path
        Paths by option; None, and `-` of `--json`, are not files.
    inputs : sequence of path
        Input files, which no output may replace.

    Raises
    ------
    BadInput
        If a file cannot be written; the message names the option.
    """
    taken = {os.path.realpath(name): "the data" for name in inputs if "\0" not in name}
    for option, place in places.items():
        if place is None or (place == "-" and option == "--json"):
            continue
        if place in ("", "-"):
            fault = "'-' is standard output, which this option does not support" if place else "the file name is empty"
            raise BadInput(f"{option}: {fault}; give a name")
        check_writable(place, option, through=option in THROUGH)
        real = os.path.realpath(place)
        if option == "--proof" and os.path.realpath(f"{place}{NUMBERS}") in taken:
            raise BadInput(
                f"--proof: the numbers of the proof would be written to {place}{NUMBERS}, which this run also uses; "
                "give --proof another file name"
            )
        if real in taken and special(real) != "a device":
            raise BadInput(f"{option}: {place} is also {taken[real]}; give another file name")
        taken[real] = f"the file of {option}"


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def on_cores(given: Given) -> Given:
    """Return options with the number of threads; all cores by default."""
    return {**given, "threads": cores() if given["threads"] is None else given["threads"]}


def count_factors_together(question: Question, quiet: bool) -> SearchOptions:
    """Return options with the default of `count` for these data, and print a note on it.

    Parameters
    ----------
    question : Question
        Question without the option `count`.
    quiet : bool
        True to print no note.
    """
    from sparsecv_mio.search.question import with_factors_together

    chosen, note = with_factors_together(question)
    if note and not quiet:
        tell(f"note: {note}")
    return chosen


def find_reference_levels(
    given: Sequence[str], dataset: Dataset, how: Options, gammas: Sequence[float | None] | None, quiet: bool
) -> tuple[Options, References]:
    """Return the options and the reference levels of factors; without a penalty, no model has these levels.

    If every gamma is 0, the levels of a factor and the intercept are linearly dependent. Factors without a given
    reference level then have their first one.

    Parameters
    ----------
    given : sequence of str
        Reference levels of the request.
    dataset : Dataset
        Data set.
    how : SearchOptions, PathOptions or NearOptions
        Options.
    gammas : sequence of float, optional
        Ridge weights; without them, some are positive.
    quiet : bool
        True to print no note on levels that no model has.
    """
    from sparsecv_mio.certificate.restrictions import reference_levels
    from sparsecv_mio.data.reading_options import indicator_name

    levels = dict(reference_levels(given, dataset, how.restrictions))
    if gammas is None or any(gammas) or how.intercept is Intercept.NONE or not how.restrictions.count:
        return how, levels
    every: Restrictions = how.restrictions.resolve_names(dataset.names)
    for columns in every.count:
        named = [name for name in columns if name != indicator_name(word_of_factor(columns))]
        if columns not in levels.values():
            with suppress(BadInput):  # not every group of columns has one level in every row
                levels |= reference_levels(named[:1], dataset, every)
    others = {name for option, name in every.named_columns() if option in ("at_most", "hierarchy")}
    dropped: list[str] = [name for name, columns in levels.items() if others.isdisjoint(columns)]
    dropped.sort(key=dataset.names.index)
    count = [tuple(name for name in columns if name not in dropped) for columns in every.count]
    restrictions = replace(
        every, count=tuple(columns for columns in count if len(columns) > 1),
        force_in=tuple(name for name in every.force_in if name not in dropped),
        force_out=(*every.force_out, *dropped),
    )  # fmt: skip
    if dropped and not quiet:
        tell(f"note: gamma is 0, so coefficients of factors are differences from {abbreviate_names(dropped)}")
    return replace(how, restrictions=restrictions), {name: levels[name] for name in given if name not in dropped}


def run_preparation(work: Callable[[], T], stop: threading.Event, options: GridOptions) -> T:
    """Run the work before the search, such as reading data and loading the engine, within the time limit.

    Parameters
    ----------
    work : callable
        Function without arguments.
    stop : Event
        Event that Ctrl-C sets.
    options : SearchOptions or others
        Options whose time limit counts from the start of the process.

    Returns
    -------
    object
        The result of `work`.

    Raises
    ------
    KeyboardInterrupt
        If the work was interrupted.
    OutOfTime
        If the time limit ended before the work.
    """
    deadline = Deadline.from_options(options, stop, Began.moment)

    def too_early() -> T:
        raise_if_interrupted(stop)
        raise OutOfTime(
            f"--time-limit: the limit of {deadline.limit:g} s ended before the data were read, so no answer exists; "
            "give more time"
        )

    outcome = run_within_limit(work, deadline, too_early, grace=LOADING_GRACE)
    raise_if_interrupted(stop)
    return outcome


def raise_if_interrupted(stop: threading.Event) -> None:
    """Raise KeyboardInterrupt if Ctrl-C was pressed while the data were read."""
    if stop.is_set():
        raise KeyboardInterrupt


def deliver_record(
    record: Any, printer: Callable[[Any], None], json: str | None, quiet: bool, *, status: str | None = None,
    warnings: Iterable[str] = (), **writers: Iterable[Any],
) -> int:  # fmt: skip
    """Print and write a record with its warnings; return the exit code for its status.

    Parameters
    ----------
    record : Record or others
        Record of a command.
    printer : callable
        Function that prints the record on a console.
    json : str or None
        Value of `--json`.
    quiet : bool
        Value of `--quiet`.
    status : str, optional
        Status of the command, if it is not that of the record.
    warnings : iterable of str
        Further warnings.
    **writers
        `files` and `lost` of :func:`sparsecv_mio.cli.ending.deliver`.
    """
    told = ending.warnings_to_print((*record.warnings, *warnings), quiet)
    code = EXIT_CODE[status or record.status]
    return ending.deliver(code, printer, json=json, record=record.pieces, warnings=told, **writers)
