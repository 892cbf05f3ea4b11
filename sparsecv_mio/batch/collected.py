"""Functions that verify the records of a batch and collect its outcomes in a table with one row for each run."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sparsecv_mio.batch.batch_plan import Task
from sparsecv_mio.batch.estimators import summarise_record
from sparsecv_mio.batch.one_task import BatchFolder, TaskOutcome, collect_numbers, task_folds, task_rows
from sparsecv_mio.batch.oracle_tasks import ORACLES
from sparsecv_mio.batch.sources import data_source
from sparsecv_mio.batch.verified_results import VerifiedResults, digest_of_result
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.errors import BadInput, SparseCVError, match_keyword
from sparsecv_mio.targets import DEFAULT_LOSS
from sparsecv_mio.units import ACCURATE_RTOL

if TYPE_CHECKING:
    import pandas as pd

LEVELS = ("tasks", "pairs", "folds", "sources")
# columns of requested values, in addition to gamma, tau and gap of the answer, and of the number of folds
ASKED = {"gamma": "gammas", "tau": "taus", "gap": "gap_asked"}
COUNTED = {"folds": "folds_of_pair"}
OF_SOURCE = {"nodes": "nodes_of_source"}  # in addition to the nodes of the whole search


def collect(
    folder: BatchFolder,
    level: str = "tasks",
    check: bool = True,
    progress: Callable[[TaskOutcome], None] | None = None,
    every: bool = False,
) -> pd.DataFrame:
    """Return the results of a batch as a table.

    Parameters
    ----------
    level : {"tasks", "pairs", "folds", "sources"}
        Unit of a row.
    check : bool
        True to verify every record against its data; `verified` is None if there is nothing to verify. A record that
        was verified on this machine before is not verified again, unless its result, data or folds have changed.
    progress : callable, optional
        Function that is called with every outcome.
    every : bool
        True to include results that the present plan of the folder does not request.

    Returns
    -------
    pandas.DataFrame
        Table with columns for settings, numbers and provenance.

    Raises
    ------
    BadInput
        If the folder has no results, or the level is unknown.
    """
    import pandas as pd

    word = match_keyword(level, LEVELS, "--level")
    rows: list[dict[str, Any]] = []
    verified_before = VerifiedResults() if check else None
    for outcome in folder.outcomes(every):
        rows += _rows_of_outcome(outcome, word, verified_before)
        if progress is not None:
            progress(outcome)
    if not rows:
        raise BadInput(f"folder {str(folder.path)!r} has no {word}; run the batch first")
    rows = _with_losses(rows)
    settings = dict.fromkeys(name for row in rows for name in itertools.takewhile(lambda name: name != "state", row))
    frame = pd.DataFrame(rows, columns=list(settings | dict.fromkeys(name for row in rows for name in row)))
    columns = {str(name): [row.get(str(name)) for row in rows] for name in frame}
    mixed = [name for name, values in columns.items() if _has_mixed_types(values)]
    for name in mixed:  # no file format has columns with numbers and text
        frame[name] = [None if value is None else str(value) for value in columns[name]]
    return frame.astype({name: "Int64" for name, values in columns.items() if _is_nullable_integer(values)})


def _with_losses(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows in which every search and peer has a loss if one has; peers with squared-error loss name none."""
    fitting = [row.get("estimator") not in ORACLES for row in rows]
    if not any("loss" in row for row, fits in zip(rows, fitting, strict=True) if fits):
        return rows
    squared = {"loss": DEFAULT_LOSS.value}
    return [row if "loss" in row or not fits else {**row, **squared} for row, fits in zip(rows, fitting, strict=True)]


def _is_nullable_integer(values: list[Any]) -> bool:
    """Return True if a column has integers and missing values: pandas would convert it to floats."""
    filled = [value for value in values if value is not None]
    return 0 < len(filled) < len(values) and all(type(value) is int for value in filled)


def _has_mixed_types(values: list[Any]) -> bool:
    kinds = {str if isinstance(value, str) else float for value in values if value is not None}
    return len(kinds) > 1


def _rows_of_outcome(
    outcome: TaskOutcome, level: str, verified_before: VerifiedResults | None
) -> Iterable[dict[str, Any]]:  # fmt: skip
    """Return the rows of an outcome; its record is verified unless `verified_before` is None or has it."""
    settings = {ASKED.get(name, name): _cell_of_setting(value) for name, value in outcome.task["settings"].items()}
    spec = outcome.task["source"]
    design = {f"design_{name}": value for name, value in spec.items() if "design" in spec and name != "design"}
    first = {"data": outcome.task["data"], **design, **settings, "state": outcome.state, "address": outcome.address}
    record = None if outcome.record is None else Record.from_json(outcome.record)
    verified, failure = (
        (None, "") if record is None or verified_before is None else _verify_record(outcome, record, verified_before)
    )
    last = {"verified": verified, **outcome.provenance}
    if level == "tasks":
        numbers = {"seconds": outcome.seconds, "attempt": outcome.attempt, **outcome.numbers}
        return [{**first, **numbers, "reason": outcome.reason or failure, **last}]
    if record is None:
        return []
    work = {"mios": record.work.mios, "nodes": record.work.nodes}
    return [{**first, **row, **work, **last} for row in _expand_record(record, level)]


def _expand_record(record: Record, level: str) -> list[dict[str, Any]]:
    """Return the pairs, the sources of bounds or the folds of the pair of a record, as names and values."""
    if level == "pairs":
        return [{COUNTED.get(name, name): value for name, value in asdict(row).items()} for row in record.table]
    if level == "sources":
        sources = record.work.sources
        return [{OF_SOURCE.get(name, name): value for name, value in asdict(source).items()} for source in sources]
    pair = {"gamma": record.gamma, "tau": record.tau}
    return [{**pair, "fold": chosen.fold, "support": ",".join(chosen.support), "error": chosen.error,
             "decided": chosen.decided} for chosen in record.chosen_folds]  # fmt: skip


def _cell_of_setting(value: Any) -> Any:
    """Return the value of a setting for a table: a list as text."""
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else value


def _verify_record(outcome: TaskOutcome, record: Record, verified_before: VerifiedResults) -> tuple[bool, str]:
    """Verify a record against its data, read again, and the outcome of the task against the record."""
    from sparsecv_mio.certificate.verify import verify

    try:
        task = restore_task(outcome)
        rows = task_rows(task)
        folds = task_folds(task, rows.train)
        if record.folds.digest != folds.digest:
            return False, "not verified: the folds of the record differ from those of its task"
        digest = digest_of_result(outcome, rows.train, folds)
        if digest in verified_before:
            return True, ""
        report = verify(record, rows.train)
        held_out = folds if task.settings.get("refit") == "training" else None
        again = collect_numbers(task, rows, summarise_record(record, rows.train, outcome.seconds, held_out))
    except SparseCVError as error:
        return False, f"not verified: {error}"
    except KeyError as error:
        return False, f"not verified: column {error} of the record is not in its data"
    if not report.ok:
        return False, f"not verified: {report.failures[0].field}"
    wrong = [name for name, value in again.items() if not _is_same_value(outcome.numbers.get(name), value)]
    if wrong:
        return False, f"not verified: {wrong[0]} differs from the value of the record"
    verified_before.add(digest)
    return True, ""


def _is_same_value(told: Any, found: Any) -> bool:
    if isinstance(told, int | float) and isinstance(found, int | float):
        return math.isclose(told, found, rel_tol=ACCURATE_RTOL, abs_tol=ACCURATE_RTOL) or (
            told != told and found != found
        )
    return bool(told == found)


def restore_task(outcome: TaskOutcome) -> Task:
    """Return the task of an outcome."""
    return Task(data_source(outcome.task["data"], outcome.task["source"]), outcome.task["settings"])
