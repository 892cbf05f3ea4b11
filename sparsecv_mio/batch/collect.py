"""The results of a batch as one tidy table: a row for every task, pair or fold, with where its numbers come from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsecv_mio.batch.folder import BatchFolder, Outcome
from sparsecv_mio.batch.ours import of_record
from sparsecv_mio.batch.plan import Task
from sparsecv_mio.batch.results import FORMATS
from sparsecv_mio.batch.run import folds_of, numbers_of, rows_of
from sparsecv_mio.batch.sources import source_of
from sparsecv_mio.certificate.record import Record
from sparsecv_mio.errors import BadInput, SparseCVError
from sparsecv_mio.files import replacing
from sparsecv_mio.words import one_of

if TYPE_CHECKING:
    import pandas as pd

LEVELS = ("tasks", "pairs", "folds")
# what was asked for, beside the gamma, tau and gap of the answer; the number of folds, beside the words for them
ASKED = {"gamma": "gammas", "tau": "taus", "gap": "gap_asked"}
COUNTED = {"folds": "folds_of_pair"}
ROUNDING = 1e-9  # of numbers computed again, on another machine perhaps


def collect(
    folder: BatchFolder,
    level: str = "tasks",
    check: bool = True,
    progress: Callable[[Outcome], None] | None = None,
    every: bool = False,
) -> pd.DataFrame:
    """Make a table of the results.

    Parameters
    ----------
    folder : BatchFolder
    level : {"tasks", "pairs", "folds"}
        What a row is.
    check : bool
        Whether every record is verified against its data; `verified` is None where there is nothing to verify.
    progress : callable, optional
        Told of every outcome.
    every : bool
        Whether results that the present plan of the folder does not ask for have rows too.

    Returns
    -------
    pandas.DataFrame
        Settings, numbers and provenance in columns.

    Raises
    ------
    BadInput
        The folder has no results, or the level is unknown.
    """
    import pandas as pd

    word = one_of(level, LEVELS, "--level")
    rows: list[dict[str, Any]] = []
    for outcome in folder.outcomes(every):
        rows += _rows(outcome, word, check)
        if progress is not None:
            progress(outcome)
    if not rows:
        raise BadInput(f"folder {str(folder.path)!r} has no {word}: run the batch first")
    frame = pd.DataFrame(rows)
    columns = {str(name): [row.get(str(name)) for row in rows] for name in frame}
    mixed = [name for name, values in columns.items() if _mixed(values)]
    for name in mixed:  # no format has a column of numbers and words
        frame[name] = [None if value is None else str(value) for value in columns[name]]
    return frame.astype({name: "Int64" for name, values in columns.items() if _whole(values)})


def _whole(values: list[Any]) -> bool:
    """Whether a column holds whole numbers, and some row has none: pandas would make it one of floats."""
    known = [value for value in values if value is not None]
    return 0 < len(known) < len(values) and all(type(value) is int for value in known)


def _mixed(values: list[Any]) -> bool:
    known = {str if isinstance(value, str) else float for value in values if value is not None}
    return len(known) > 1


def write_table(frame: pd.DataFrame, path: str | Path) -> None:
    """Write a table as Parquet or CSV, as its suffix says, completely or not at all.

    Parameters
    ----------
    frame : pandas.DataFrame
    path : str or Path

    Raises
    ------
    BadInput
        The suffix is another one, or the file cannot be written.
    """
    place = Path(path)
    if place.suffix.lower() not in FORMATS:
        raise BadInput(f"--out: {str(place)!r} must end with {' or '.join(FORMATS)}")
    with replacing(place) as temporary:
        if place.suffix.lower() == ".csv":
            frame.to_csv(temporary, index=False)
        else:
            frame.to_parquet(temporary, index=False)


def _rows(outcome: Outcome, level: str, check: bool) -> Iterable[dict[str, Any]]:
    settings = {
        ASKED.get(name, name): ",".join(map(str, value)) if isinstance(value, list | tuple) else value
        for name, value in outcome.task["settings"].items()
    }
    spec = outcome.task["source"]
    design = {f"design_{name}": value for name, value in spec.items() if "design" in spec and name != "design"}
    first = {"data": outcome.task["data"], **design, **settings, "state": outcome.state, "address": outcome.address}
    record = None if outcome.record is None else Record.from_json(outcome.record)
    verified, failure = (None, "") if record is None or not check else _verified(outcome, record)
    last = {"verified": verified, **outcome.provenance}
    if level == "tasks":
        numbers = {"seconds": outcome.seconds, "attempt": outcome.attempt, **outcome.numbers}
        return [{**first, **numbers, "reason": outcome.reason or failure, **last}]
    if record is None:
        return []
    found: list[dict[str, Any]]
    if level == "pairs":
        found = [{COUNTED.get(name, name): value for name, value in asdict(row).items()} for row in record.table]
    else:
        pair = {"gamma": record.gamma, "tau": record.tau}
        found = [{**pair, "fold": one.fold, "support": ",".join(one.support), "error": one.error,
                  "decided": one.decided} for one in record.chosen_folds]  # fmt: skip
    work = {"mios": record.work.mios, "nodes": record.work.nodes}
    return [{**first, **row, **work, **last} for row in found]


def _verified(outcome: Outcome, record: Record) -> tuple[bool, str]:
    """Check a record against its data, read again, and what the task says against the record."""
    from sparsecv_mio.certificate.verify import verify

    try:
        task = task_of(outcome)
        rows = rows_of(task)
        folds = folds_of(task, rows.train)
        if record.folds.digest != folds.digest:
            return False, "not verified: the record has other folds than its task"
        report = verify(record, rows.train)
        held_out = folds if task.settings.get("refit") == "training" else None
        again = numbers_of(task, rows, of_record(record, rows.train, outcome.seconds, held_out))
    except SparseCVError as error:
        return False, f"not verified: {error}"
    except KeyError as error:
        return False, f"not verified: the record has a column {error} that is not in its data"
    if not report.ok:
        return False, f"not verified: {report.failures[0].field}"
    wrong = [name for name, value in again.items() if not _same(outcome.numbers.get(name), value)]
    return not wrong, f"not verified: {wrong[0]} is not that of the record" if wrong else ""


def _same(told: Any, found: Any) -> bool:
    if isinstance(told, int | float) and isinstance(found, int | float):
        return math.isclose(told, found, rel_tol=ROUNDING, abs_tol=ROUNDING) or (told != told and found != found)
    return bool(told == found)


def task_of(outcome: Outcome) -> Task:
    """Return the task of an outcome."""
    return Task(source_of(outcome.task["data"], outcome.task["source"]), outcome.task["settings"])
